"""Loops as values: scan, while_loop, fori_loop, map.

Bodies are traced once. Everything works at every nesting with the transformations; loops run
compiled also outside of `jit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TreeError
from funcgrad.higher_order.lanes import broadcast_lanes
from funcgrad.higher_order.scan import bind_scan
from funcgrad.higher_order.staging import (
    Staged,
    arguments_tree,
    check_leaf,
    leaves_with_paths,
    name_of,
    place,
)
from funcgrad.higher_order.while_loop import While
from funcgrad.primitives.elementwise import Convert, convert
from funcgrad.primitives.shape import Concatenate, Slice, reshape, shape_of
from funcgrad.pytree import PyTreeDef, tree_flatten, tree_map, tree_unflatten
from funcgrad.transforms.batch import batch_flat

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
    what = f"scan({name_of(f)})"
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


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Tree,
    *,
    checkpoint_every: int | None = None,
    max_checkpoints: int | None = None,
) -> Tree:
    """Apply ``body_fun`` to a value while ``cond_fun`` of it holds.

    Reverse mode works to any order: it records the steps on a tape that grows with their number.
    With ``max_checkpoints`` it keeps at most so many states and computes the others again, so
    that memory is bounded however many steps there are. (JAX has no reverse mode here.)

    Args:
        cond_fun: From the value to a scalar bool.
        body_fun: From the value to the next one, of the same structure and types.
        init_val: Initial value, a pytree.
        checkpoint_every: Steps between recorded states; by default a growing number.
        max_checkpoints: Largest number of recorded states; by default there is no limit.

    Returns:
        The first value for which ``cond_fun`` does not hold. Under `vmap` a lane keeps its value
        from when its own condition ended.

    Raises:
        TreeError: If the value changes its structure.
        ShapeError: If the value changes its type, or the condition is no scalar.

    Example:
        >>> import funcgrad as fg
        >>> def root(x):  # Newton's iteration
        ...     improve = lambda y: (y + x / y) / 2
        ...     return fg.lax.while_loop(lambda y: abs(y * y - x) > 1e-12 * x, improve, x)
        >>> print(f"{root(2.0):.9f} {fg.grad(root)(2.0):.9f}")
        1.414213562 0.353553391
    """
    what = f"while_loop({name_of(body_fun)})"
    for name, number in (
        ("checkpoint_every", checkpoint_every),
        ("max_checkpoints", max_checkpoints),
    ):
        if number is not None and int(number.__index__()) < 1:
            raise ArgumentError(f"{what}: {name} must be at least 1, got {number}.{place()}")
    loop = _Carry(init_val, what, "init_val")
    body = loop.stage(body_fun, None, has_outputs=False)
    condition = Staged(cond_fun, arguments_tree(loop.tree), loop.avals, what)
    _check_condition(condition, what, name_of(cond_fun))
    loop_op = While(
        condition.program,
        body.program,
        len(condition.captured),
        len(body.captured),
        checkpoint_every,
        max_checkpoints,
    )
    results = loop_op.bind(*condition.captured, *body.captured, *loop.values())
    return tree_unflatten(loop.tree, results)


def _check_condition(condition: Staged, what: str, name: str) -> None:
    avals = condition.out_avals
    is_leaf = condition.out_tree.num_leaves == 1 and condition.paths == [""]
    if not is_leaf or avals[0].shape != () or avals[0].dtype.kind != "b":
        got = avals[0] if is_leaf else condition.out_tree
        raise ShapeError(
            f"{what}: {name} must return one bool, got {got}.{place()} Reduce it with .any() or "
            ".all(), or compare numbers: x != 0."
        )


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Tree,
    *,
    unroll: int | bool | None = None,
    checkpoint_every: int | None = None,
    max_checkpoints: int | None = None,
) -> Tree:
    """``for i in range(lower, upper): value = body_fun(i, value)``.

    Args:
        lower: First index, an integer.
        upper: End of the range, excluded. Both may be traced.
        body_fun: From the index and the value to the next value, of the same structure and types.
        init_val: Initial value, a pytree.
        unroll: Accepted for compatibility; the compiler decides.
        checkpoint_every: For traced bounds, as in `while_loop`.
        max_checkpoints: For traced bounds, as in `while_loop`.

    Returns:
        The final value.

    Raises:
        DtypeError: If a bound is not an integer.
        TreeError: If the value changes its structure.
        ShapeError: If the value changes its type, or a bound is not a scalar.

    Example:
        >>> import funcgrad as fg
        >>> power = lambda x, n: fg.lax.fori_loop(0, n, lambda i, y: y * x, 1.0)
        >>> print(power(3.0, 4), fg.grad(power)(3.0, 4))
        81.0 108.0
    """
    what = f"fori_loop({name_of(body_fun)})"
    dtype = _index_dtype(lower, upper, what)
    first, end = (_as_index(b, dtype) for b in (lower, upper))

    def step(state: Any) -> Any:
        i, value = state
        return i + 1, body_fun(i, value)

    step.__name__ = name_of(body_fun)
    if isinstance(lower, Tracer) or isinstance(upper, Tracer):
        state = while_loop(
            lambda state: state[0] < end,
            step,
            (first, init_val),
            checkpoint_every=checkpoint_every,
            max_checkpoints=max_checkpoints,
        )
        return state[1]
    length = max(0, int(end) - int(first))
    state, _ = scan(lambda state, _: (step(state), None), (first, init_val), length=length)
    return state[1]


def _index_dtype(lower: Any, upper: Any, what: str) -> Any:
    dtype: Any = None
    for name, bound in (("lower", lower), ("upper", upper)):
        aval = check_leaf(bound, name, what)
        if aval.dtype.kind not in "iu":
            raise DtypeError(
                f"{what}: `{name}` must be an integer, got {aval}.{place()} Convert it with "
                "int(...) or .astype(int)."
            )
        if aval.shape:
            raise ShapeError(f"{what}: `{name}` must be a scalar, got {aval}.{place()}")
        if not aval.weak_type:
            dtype = aval.dtype if dtype is None else np.result_type(dtype, aval.dtype)
    return np.dtype(np.int64) if dtype is None else dtype


def _as_index(bound: Any, dtype: Any) -> Any:
    return convert(bound, dtype) if isinstance(bound, Tracer) else dtype.type(bound)


def map(f: Callable[[Any], Any], xs: Tree, *, batch_size: int | None = None) -> Tree:
    """Apply a function to the elements along the leading axis, one after the other.

    Args:
        f: The function of one element.
        xs: Pytree of arrays with equal leading lengths.
        batch_size: Elements that are worked on at a time, vectorised as by `vmap`.

    Returns:
        The stacked results.

    Raises:
        ArgumentError: If there are no arrays, or ``batch_size`` is not positive.
        ShapeError: If lengths differ.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.lax.map(lambda row: row.sum(), np.arange(6.0).reshape(3, 2))
        array([1., 5., 9.])
    """
    if batch_size is None:
        return scan(_without_carry(f), None, xs)[1]
    what = f"map({name_of(f)})"
    if int(batch_size.__index__()) < 1:
        raise ArgumentError(f"{what}: batch_size must be at least 1, got {batch_size}.{place()}")
    leaves, paths, tree = leaves_with_paths(xs, "xs")
    n = _length(leaves, paths, None, what)
    vectorised = _vectorised(f, tree)
    n_full = n // batch_size
    rows = [_array(x) for x in leaves]
    parts = []
    if n_full:
        chunks = [
            reshape(_rows(x, 0, n_full * batch_size), (n_full, batch_size, *shape_of(x)[1:]))
            for x in rows
        ]
        results = scan(_without_carry(vectorised), None, chunks)[1]
        parts.append(
            tree_map(lambda y: reshape(y, (n_full * batch_size, *shape_of(y)[2:])), results)
        )
    if n_full * batch_size < n:
        parts.append(vectorised([_rows(x, n_full * batch_size, n) for x in rows]))
    if len(parts) == 1:
        return parts[0]
    return tree_map(lambda a, b: Concatenate(0).bind(a, b), *parts)


def _without_carry(f: Callable[[Any], Any]) -> Callable[[Any, Any], tuple[None, Any]]:
    def step(carry: None, x: Any) -> tuple[None, Any]:
        return None, f(x)

    step.__name__ = name_of(f)
    return step


def _vectorised(f: Callable[[Any], Any], tree: PyTreeDef) -> Callable[[Any], Any]:
    """The function of a list of stacked leaves."""

    def mapped(leaves: Any) -> Any:
        out_tree = tree

        def flat(*xs: Any) -> list[Any]:
            nonlocal out_tree
            results, out_tree = tree_flatten(f(tree_unflatten(tree, xs)))
            return results

        size = shape_of(leaves[0])[0]
        outs, dims = batch_flat(flat, leaves, [0] * len(leaves), size, f"map({name_of(f)})")
        full = broadcast_lanes(outs, [d is not None for d in dims], [True] * len(outs), size)
        return tree_unflatten(out_tree, full)

    mapped.__name__ = name_of(f)
    return mapped


def _rows(x: Any, start: int, stop: int) -> Any:
    rest = shape_of(x)[1:]
    return Slice((start, *(0,) * len(rest)), (stop, *rest), (1,) * (1 + len(rest))).bind(x)


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
        for _ in range(1 + sum(a.weak_type for a in self.avals)):
            staged = self._trace(function, walked, has_outputs)
            outs = staged.out_avals[: len(self.avals)]
            promoted = [self._join(a, b) for a, b in zip(self.avals, outs, strict=True)]
            if promoted == self.avals:
                break
            self.avals = promoted
        if any(a.weak_type for a in self.avals):
            self.avals = [a.strong() for a in self.avals]
            staged = self._trace(function, walked, has_outputs)
        self._check(staged.out_avals[: len(self.avals)])
        return staged

    def _trace(
        self,
        function: Callable[..., Any],
        walked: tuple[PyTreeDef, Sequence[ShapedArray]] | None,
        has_outputs: bool,
    ) -> Staged:
        in_avals = [*self.avals, *(walked[1] if walked is not None else ())]
        in_tree = arguments_tree(self.tree, *([walked[0]] if walked is not None else []))
        staged = Staged(function, in_tree, in_avals, self.what)
        tree = staged.out_tree.children()[0] if has_outputs else staged.out_tree
        if tree != self.tree:
            raise TreeError(
                f"{self.what}: the carry must keep its structure.{place()}  initially     "
                f"{self.tree}\n  returned      {tree}"
            )
        return staged

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
