"""Loops as values: scan, while_loop, fori_loop, map, associative_scan.

Bodies are traced once. Everything works at every nesting with the transformations; loops run
compiled also outside of `jit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, ShapeError, TreeError
from funcgrad.higher_order.scan import bind_scan
from funcgrad.higher_order.staging import Staged, check_leaf, leaves_with_paths, place
from funcgrad.primitives.elementwise import Convert
from funcgrad.primitives.shape import shape_of
from funcgrad.pytree import PyTreeDef, tree_structure, tree_unflatten

Tree = Any


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Tree,
    xs: Tree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Tree, Tree]:
    """Carry a value along the leading axis of arrays, and stack what every step returns.

    ``carry, y = f(carry, x)`` for every element ``x`` of ``xs``.

    Args:
        f: The step; the carry that it returns has the structure and types of its argument.
        init: Initial carry, a pytree.
        xs: Pytree of arrays with equal leading lengths, or ``None`` to count steps only.
        length: Number of steps; needed if ``xs`` has no arrays.
        reverse: Whether to start with the last element. Results stay at the place of their element.
        unroll: Accepted for compatibility; the compiler decides.

    Returns:
        The final carry, and the stacked results.

    Raises:
        TreeError: If the carry changes its structure.
        ShapeError: If the carry changes its type, or lengths differ.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> total, partial = fg.lax.scan(lambda c, x: (c + x, c + x), 0.0, np.arange(4.0))
        >>> print(total, partial)
        6.0 [0. 1. 3. 6.]
    """
    what = f"scan({_name(f)})"
    x_leaves, x_paths, x_tree = leaves_with_paths(xs, "xs")
    n = _length(x_leaves, x_paths, length, what)
    x_avals = [aval_of(x).strong().update(shape=shape_of(x)[1:]) for x in x_leaves]
    loop = _Carry(init, what)

    def step(carry: Any, x: Any) -> Any:
        out = f(carry, x)
        if not isinstance(out, tuple | list) or len(out) != 2:
            raise TreeError(
                f"{what}: the function must return a pair (carry, y), got a "
                f"{type(out).__name__}.{place()} Return `carry, None` if there is nothing to stack."
            )
        return tuple(out)

    staged = loop.stage(step, (x_tree, x_avals), has_outputs=True)
    arrays = [_array(x) for x in x_leaves]
    results = bind_scan(staged.program, staged.captured, loop.values(), arrays, n, reverse)
    k = len(loop.avals)
    y_tree = staged.out_tree.children()[1]
    return tree_unflatten(loop.tree, results[:k]), tree_unflatten(y_tree, results[k:])


def _name(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _array(x: Any) -> Any:
    return x if isinstance(x, Tracer | np.ndarray) else np.asarray(x)


def _length(leaves: Sequence[Any], paths: Sequence[str], length: int | None, what: str) -> int:
    if length is not None:
        length = int(length.__index__())
        if length < 0:
            raise ArgumentError(f"{what}: length must not be negative, got {length}.{place()}")
    known = length
    for leaf, path in zip(leaves, paths, strict=True):
        aval = check_leaf(leaf, path, what)
        if not aval.shape:
            raise ShapeError(
                f"{what}: `{path}` is {aval}, which has no axis to walk along.{place()} Close over "
                "it instead: what is the same in all steps needs no argument."
            )
        if known is None:
            known, source = aval.shape[0], f"`{path}` has length {aval.shape[0]}"
        elif aval.shape[0] != known:
            reason = f"length={length} was given" if length is not None else source
            raise ShapeError(
                f"{what}: `{path}` has length {aval.shape[0]}, but {reason}.{place()} All arrays "
                "of xs need equal leading lengths."
            )
    if known is None:
        raise ArgumentError(
            f"{what}: xs has no arrays, so the number of steps is unknown.{place()} Pass length=..."
        )
    return known


class _Carry:
    """The value that a loop carries: its types are found by tracing until they stay."""

    def __init__(self, init: Tree, what: str, root: str = "init") -> None:
        self.what = what
        self.leaves, self.paths, self.tree = leaves_with_paths(init, root)
        self.avals = [check_leaf(x, p, what) for x, p in zip(self.leaves, self.paths, strict=True)]

    def values(self) -> list[Any]:
        """The initial values, as arrays of the carried types."""
        converted = []
        for x, aval in zip(self.leaves, self.avals, strict=True):
            own = aval_of(x)
            if isinstance(x, Tracer):
                same = own.dtype == aval.dtype and not own.weak_type
                converted.append(x if same else Convert(aval.dtype).bind(x))
            else:
                converted.append(np.asarray(x, aval.dtype))
        return converted

    def stage(
        self,
        function: Callable[..., Any],
        walked: tuple[PyTreeDef, Sequence[ShapedArray]] | None,
        has_outputs: bool,
    ) -> Staged:
        """Trace ``function(carry, x) -> (carry, y)``, or ``function(carry) -> carry``.

        Weak values (Python scalars) take the dtype that the function returns.
        """
        arguments = tree_structure((0, 0)) if walked is not None else tree_structure((0,))
        del arguments
        for _ in range(1 + sum(a.weak_type for a in self.avals)):
            in_avals = [*self.avals, *(walked[1] if walked is not None else ())]
            in_tree = _pair_tree(self.tree, walked[0] if walked is not None else None)
            staged = Staged(function, in_tree, in_avals, self.what)
            tree = staged.out_tree.children()[0] if has_outputs else staged.out_tree
            if tree != self.tree:
                raise TreeError(
                    f"{self.what}: the carry must keep its structure.{place()}  initially     "
                    f"{self.tree}\n  returned      {tree}"
                )
            outs = staged.out_avals[: len(self.avals)]
            promoted = [self._join(a, b) for a, b in zip(self.avals, outs, strict=True)]
            if promoted == self.avals:
                break
            self.avals = promoted
        self._check(staged.out_avals[: len(self.avals)])
        self.avals = [a.strong() for a in self.avals]
        return Staged(
            function, in_tree, [*self.avals, *(walked[1] if walked is not None else ())], self.what
        )

    @staticmethod
    def _join(before: ShapedArray, after: ShapedArray) -> ShapedArray:
        if not before.weak_type or before.shape != after.shape:
            return before
        dtype = np.result_type(before.dtype, after.dtype) if after.weak_type else after.dtype
        if np.result_type(before.dtype, dtype) != dtype and before.dtype.kind not in "if":
            return before
        return ShapedArray(before.shape, dtype, after.weak_type)

    def _check(self, outs: Sequence[ShapedArray]) -> None:
        wrong = [
            f"  `{path}`: {a.strong()} initially, {b.strong()} returned"
            for path, a, b in zip(self.paths, self.avals, outs, strict=True)
            if a.strong() != b.strong()
        ]
        if wrong:
            raise ShapeError(
                f"{self.what}: the carry must keep its types.{place()}"
                + "\n".join(wrong)
                + "\nConvert the initial value or the returned one (.astype, np.broadcast_to)."
            )


def _pair_tree(carry: PyTreeDef, x: PyTreeDef | None) -> PyTreeDef:
    """The structure of the argument tuple."""
    carry_tree = tree_unflatten(carry, [0] * carry.num_leaves)
    if x is None:
        return tree_structure((carry_tree,))
    return tree_structure((carry_tree, tree_unflatten(x, [0] * x.num_leaves)))


__all__ = ["scan"]
