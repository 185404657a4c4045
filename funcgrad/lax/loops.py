"""Loops as values: scan, while_loop, fori_loop, map.

Bodies are traced once. Everything works at every nesting with the transformations; loops run
compiled also outside of `jit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from funcgrad.base.dialect import default_dtype, dialect
from funcgrad.base.pytree import PyTreeDef, tree_flatten, tree_unflatten
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.observers import describe_location
from funcgrad.core.program import Atom, Equation, Program, makers
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TreeError
from funcgrad.higher_order.cells import Cell, fill_cells, passing_cells, rows_of
from funcgrad.higher_order.lanes import broadcast_lanes
from funcgrad.higher_order.progress import checked_label
from funcgrad.higher_order.scan import bind_scan
from funcgrad.higher_order.staging import (
    Staged,
    arguments_tree,
    check_function,
    check_leaf,
    checked_integer,
    described,
    kept_weak,
    leaves_with_paths,
    located,
    name_of,
    put_back,
    stage_again,
    stage_once,
    type_texts,
)
from funcgrad.higher_order.while_loop import While
from funcgrad.primitives.elementwise import Convert, convert
from funcgrad.primitives.objects import HoldsArray, flatten_values, map_values
from funcgrad.primitives.shape import Concatenate, Slice, reshape, shape_of
from funcgrad.transforms.batch import batch_flat

Tree = Any


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Tree,
    xs: Tree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    progress: str | None = None,
) -> tuple[Tree, Tree]:
    """Carry a value along the leading axis of arrays, and stack what every step returns.

    ``carry, y = f(carry, x)`` for every element ``x`` of ``xs``.

    Args:
        f: The step; the carry that it returns has the structure and types of its argument.
        init: Initial carry, a pytree.
        xs: Pytree of arrays with equal leading lengths, or ``None`` to count steps only. Of a
            reference a step gets one to its element.
        length: Number of steps; needed if ``xs`` has no arrays.
        reverse: Whether to start with the last element. Results stay at the place of their element.
        _split_transpose: Accepted for JAX's signature.
        progress: Label of a bar of steps, forwards and backwards, where tqdm is installed.
    Returns: The final carry, and the stacked results.

    Raises:
        TreeError: If the carry changes its structure.
        ShapeError: If the carry changes its type, or lengths differ.

    Example:
        >>> total, partial = fg.lax.scan(lambda c, x: (c + x, c + x), 0.0, np.arange(4.0))
        >>> print(total, partial)
        6.0 [0. 1. 3. 6.]
    """
    what = f"scan({name_of(f)})"
    check_function(f, "f", what)
    if not isinstance(unroll, bool):
        checked_integer(unroll, "unroll", what, 0)
    label = checked_label(progress, what)
    loop = _Carry(init, "init", what)
    leaves, tree = tree_flatten(xs)
    if any(isinstance(x, Cell) for x in leaves):
        return _scan_cells(f, loop, leaves, tree, length, reverse, label)
    return _scan(f, loop, _Scanned(xs, length, what), reverse, label)


def _scan_cells(
    f: Callable[[Any, Any], Any],
    loop: _Carry,
    leaves: list[Any],
    tree: PyTreeDef,
    length: int | None,
    reverse: bool,
    progress: str | None,
) -> tuple[Tree, Tree]:
    """Scan what references hold: a step gets one to its element, and may change it."""
    rows = rows_of(leaves)
    cells = [leaves[i] for i, _ in rows]

    def step(carry: Any, x: Any) -> Any:
        inner = list(x)
        made = fill_cells(inner, rows)
        new, y = _checked_pair(f(carry, tree_unflatten(tree, inner)), loop.what)
        return new, (y, [cell.content() for cell in made])

    step.__name__ = name_of(f)
    with passing_cells(cells, loop.what) as contents:
        for (i, _), content in zip(rows, contents, strict=True):
            leaves[i] = content
        scanned = _Scanned(leaves, length, loop.what)
        carry, (ys, left) = _scan(step, loop, scanned, reverse, progress)
    for cell, value in zip(cells, left, strict=True):
        cell.put(value, loop.what)
    return carry, ys


def _checked_pair(out: Any, what: str) -> tuple[Any, Any]:
    """Check that a step returned a carry and an output."""
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise located(
            TreeError,
            f"{what}: the function must return a pair (carry, y), got {described(out)}.",
            "Return `carry, None` if there is nothing to stack.",
        )
    carry, y = out
    return carry, y


def _scan(
    f: Callable[[Any, Any], Any],
    loop: _Carry,
    scanned: _Scanned,
    reverse: bool = False,
    progress: str | None = None,
) -> tuple[Tree, Tree]:
    what = loop.what  # not the loop, whose values differ from call to call

    def step(carry: Any, x: Any) -> Any:
        return _checked_pair(f(carry, x), what)

    step.__name__ = name_of(f)
    staged = loop.stage(step, (scanned.tree, scanned.avals), has_outputs=True)
    cells = staged.changed
    body = staged.carrying(cells, cells)
    results = bind_scan(
        body.program,
        body.captured,
        [*(cell.content() for cell in cells), *loop.values()],
        scanned.arrays,
        scanned.length,
        reverse,
        progress,
    )
    rest = put_back(cells, results, what)
    k = len(loop.avals)
    y_tree = staged.out_tree.children()[1]
    carry = loop.handed_on(body, len(cells), kept_weak(rest[:k], loop.avals))
    ys = kept_weak(rest[k:], staged.out_avals[k:])
    return tree_unflatten(loop.tree, carry), tree_unflatten(y_tree, ys)


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Tree,
    *,
    checkpoint_every: int | None = None,
    max_checkpoints: int | None = None,
    progress: str | None = None,
) -> Tree:
    """Apply ``body_fun`` to a value while ``cond_fun`` of it holds.

    Reverse mode works to any order. It runs the loop again, in segments of steps whose residuals
    are recorded, and keeps states between them; those that it does not keep are computed again. So
    memory is bounded for any number of steps. (JAX has no reverse mode here.)

    Args:
        cond_fun: From the value to a scalar bool.
        body_fun: From the value to the next one, of the same structure and types.
        init_val: Initial value, a pytree.
        checkpoint_every: Steps of a segment; by default as many as fit into a few megabytes.
        max_checkpoints: Largest number of states that are kept; by default 32, or up to 64 if they
            are small.
        progress: Label of a counter of steps, and of a bar on the way back, where tqdm is
            installed.
    Returns: The first value for which ``cond_fun`` does not hold. Under `vmap` a lane keeps its
        value from when its own condition ended.

    Raises:
        TreeError: If the value changes its structure.
        ShapeError: If the value changes its type, or the condition is no scalar.

    Example:
        >>> def root(x):  # Newton's iteration
        ...     improve = lambda y: (y + x / y) / 2
        ...     return fg.lax.while_loop(lambda y: abs(y * y - x) > 1e-12 * x, improve, x)
        >>> print(f"{root(2.0):.9f} {fg.grad(root)(2.0):.9f}")
        1.414213562 0.353553391
    """
    what = f"while_loop({name_of(body_fun)})"
    check_function(cond_fun, "cond_fun", what)
    check_function(body_fun, "body_fun", what)
    loop = _Carry(init_val, "init_val", what)
    label = checked_label(progress, what)
    return _while(cond_fun, body_fun, loop, checkpoint_every, max_checkpoints, label)


def _while(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    loop: _Carry,
    checkpoint_every: int | None,
    max_checkpoints: int | None,
    progress: str | None,
) -> Tree:
    if checkpoint_every is not None:
        checkpoint_every = checked_integer(checkpoint_every, "checkpoint_every", loop.what, 1)
    if max_checkpoints is not None:
        max_checkpoints = checked_integer(max_checkpoints, "max_checkpoints", loop.what, 1)
    body = loop.stage(body_fun, None, has_outputs=False)
    condition = stage_once(cond_fun, arguments_tree(loop.tree), loop.avals, loop.what, True)
    _check_condition(condition, loop.what, name_of(cond_fun))
    cells = body.changed
    body, condition = body.carrying(cells, cells), condition.carrying(cells, ())
    loop_op = While(
        condition.program,
        body.program,
        len(condition.captured),
        len(body.captured),
        checkpoint_every,
        max_checkpoints,
        progress,
    )
    contents = (cell.content() for cell in cells)
    results = loop_op.bind(*condition.captured, *body.captured, *contents, *loop.values())
    left = kept_weak(put_back(cells, results, loop.what), loop.avals)
    return tree_unflatten(loop.tree, left)


def _check_condition(condition: Staged, what: str, name: str) -> None:
    for cell in condition.changed:
        raise cell.misuse(
            f"{what}: {name} writes into a reference to {cell.inside}, but a condition is asked, "
            "not told.",
            "Write in the body.",
        )
    avals = condition.out_avals
    is_leaf = condition.out_tree.num_leaves == 1 and condition.paths == [""]
    if not is_leaf or avals[0].shape != () or avals[0].dtype.kind != "b":
        got = avals[0].strong() if is_leaf else condition.out_tree
        raise located(
            ShapeError,
            f"{what}: {name} must return one bool, got {got}.",
            "Reduce it with .any() or .all(), or compare numbers: x != 0.",
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
    progress: str | None = None,
) -> Tree:
    """``for i in range(lower, upper): value = body_fun(i, value)``.

    Args:
        lower: First index, an integer.
        upper: End of the range, excluded. Both may be traced.
        body_fun: From the index and the value to the next value, of the same structure and types.
        init_val: Initial value, a pytree.
        checkpoint_every: For traced bounds, as in `while_loop`.
        max_checkpoints: For traced bounds, as in `while_loop`.
        progress: As in `scan`; for traced bounds as in `while_loop`.
    Returns: The final value.

    Raises:
        DtypeError: If a bound is not an integer.
        TreeError: If the value changes its structure.
        ShapeError: If the value changes its type, or a bound is not a scalar.

    Example:
        >>> power = lambda x, n: fg.lax.fori_loop(0, n, lambda i, y: y * x, 1.0)
        >>> print(power(3.0, 4), fg.grad(power)(3.0, 4))
        81.0 108.0
    """
    what = f"fori_loop({name_of(body_fun)})"
    check_function(body_fun, "body_fun", what)
    label = checked_label(progress, what)
    dtype = _index_dtype(lower, upper, what)
    first, end = (_as_index(b, dtype) for b in (lower, upper))

    def step(state: Any) -> Any:
        i, value = state
        return i + 1, body_fun(i, value)

    step.__name__ = name_of(body_fun)
    loop = _Carry((first, init_val), "init_val", what, is_counted=True)
    if isinstance(lower, Tracer) or isinstance(upper, Tracer):
        state = _while(
            lambda state: state[0] < end, step, loop, checkpoint_every, max_checkpoints, label
        )
        return state[1]
    scanned = _Scanned(None, max(0, int(end) - int(first)), what)
    state, _ = _scan(lambda state, _: (step(state), None), loop, scanned, progress=label)
    return state[1]


def _index_dtype(lower: Any, upper: Any, what: str) -> Any:
    """Dtype of the index; ``None`` if both bounds are Python numbers, and so is the index."""
    dtype: Any = None
    for name, bound in (("lower", lower), ("upper", upper)):
        aval = check_leaf(bound, name, what)
        if aval.dtype.kind not in "iu":
            raise located(
                DtypeError,
                f"{what}: `{name}` must be an integer, got {aval}.",
                "Convert it with int(...) or .astype(int).",
            )
        if aval.shape:
            raise located(ShapeError, f"{what}: `{name}` must be a scalar, got {aval}.")
        if not aval.weak_type:
            dtype = aval.dtype if dtype is None else np.result_type(dtype, aval.dtype)
    return dtype


def _as_index(bound: Any, dtype: Any) -> Any:
    if dtype is None:
        return bound
    return convert(bound, dtype) if isinstance(bound, Tracer) else dtype.type(bound)


def map(f: Callable[[Any], Any], xs: Tree, *, batch_size: int | None = None) -> Tree:
    """Apply a function to the elements along the leading axis, one after the other.

    Args:
        f: The function of one element.
        xs: Pytree of arrays with equal leading lengths.
        batch_size: Elements that are worked on at a time, vectorised as by `vmap`.
    Returns: The stacked results.

    Raises:
        ArgumentError: If there are no arrays, or ``batch_size`` is not positive.
        ShapeError: If lengths differ.
    Example: fg.lax.map(lambda row: row.sum(), np.arange(6.0).reshape(3, 2)) -> array([1., 5., 9.])
    """
    what = f"map({name_of(f)})"
    check_function(f, "f", what)
    scanned = _Scanned(xs, None, what)
    if batch_size is None:
        return _map(f, scanned)
    batch_size = checked_integer(batch_size, "batch_size", what, 1)
    vectorised = _vectorised(f, what)
    rows, n = scanned.arrays, scanned.length
    n_whole = n // batch_size * batch_size
    parts = []
    if n_whole:
        chunks = [
            reshape(_rows(x, 0, n_whole), (n // batch_size, batch_size, *shape_of(x)[1:]))
            for x in rows
        ]
        results = _map(vectorised, _Scanned(tree_unflatten(scanned.tree, chunks), None, what))
        parts.append(map_values(lambda y: reshape(y, (n_whole, *shape_of(y)[2:])), results))
    if n_whole < n or not n:
        rest = [_rows(x, n_whole, n) for x in rows]
        parts.append(vectorised(tree_unflatten(scanned.tree, rest)))
    if len(parts) == 1:
        return parts[0]
    (heads, tree), (rests, _) = flatten_values(parts[0]), flatten_values(parts[1])
    joined = [Concatenate(0).bind(a, b) for a, b in zip(heads, rests, strict=True)]
    return tree_unflatten(tree, joined)


def _map(f: Callable[[Any], Any], scanned: _Scanned) -> Tree:
    what = scanned.what

    def step(carry: None, x: Any) -> tuple[None, Any]:
        return None, _checked(f(x), what)

    step.__name__ = name_of(f)
    return _scan(step, _Carry(None, "", scanned.what), scanned)[1]


def _checked(result: Tree, what: str) -> Tree:
    """Check that the result of a function consists of arrays."""
    leaves, paths, _ = leaves_with_paths(result, "result")
    for leaf, path in zip(leaves, paths, strict=True):
        check_leaf(leaf, path, what)
    return result


def _vectorised(f: Callable[[Any], Any], what: str) -> Callable[[Any], Any]:
    """The function of a tree of stacked leaves."""

    def mapped(xs: Any) -> Any:
        leaves, _, tree = leaves_with_paths(xs, "xs")
        out_tree = tree

        def flat(*xs: Any) -> list[Any]:
            nonlocal out_tree
            results, out_tree = flatten_values(_checked(f(tree_unflatten(tree, xs)), what))
            return results

        size = shape_of(leaves[0])[0]
        outs, dims = batch_flat(flat, leaves, [0] * len(leaves), size, what)
        full = broadcast_lanes(outs, [d is not None for d in dims], [True] * len(outs), size)
        return tree_unflatten(out_tree, full)

    mapped.__name__ = name_of(f)
    return mapped


def _rows(x: Any, start: int, stop: int) -> Any:
    rest = shape_of(x)[1:]
    return Slice((start, *(0,) * len(rest)), (stop, *rest), (1,) * (1 + len(rest))).bind(x)


def _array(x: Any) -> Any:
    return x if isinstance(x, Tracer | np.ndarray) else np.asarray(x)


class _Scanned:
    """The arrays that a loop scans over."""

    def __init__(self, xs: Tree, length: int | None, what: str) -> None:
        self.what = what
        leaves, self.paths, self.tree = leaves_with_paths(xs, "xs")
        self.own = [check_leaf(x, p, what) for x, p in zip(leaves, self.paths, strict=True)]
        self.length = self._length(length)
        self.avals = [a.strong().update(shape=a.shape[1:]) for a in self.own]
        self.arrays = [_array(x) for x in leaves]

    def _length(self, given: int | None) -> int:
        known = None if given is None else checked_integer(given, "length", self.what, 0)
        reason = f"length={known} was given"
        for aval, path in zip(self.own, self.paths, strict=True):
            if not aval.shape:
                raise located(
                    ShapeError,
                    f"{self.what}: `{path}` is {aval}, which has no axis to scan over.",
                    "Close over what is the same in all steps. A list of numbers is a pytree: "
                    "make it an array.",
                )
            if known is None:
                known, reason = aval.shape[0], f"`{path}` has length {aval.shape[0]}"
            elif aval.shape[0] != known:
                raise located(
                    ShapeError,
                    f"{self.what}: `{path}` has length {aval.shape[0]}, but {reason}.",
                    "All arrays of xs need equal leading lengths.",
                )
        if known is None:
            cure = ["Pass length=..."] if self.what.startswith("scan") else []
            raise located(
                ArgumentError,
                f"{self.what}: xs has no arrays, so the number of steps is unknown.",
                *cure,
            )
        return known


class _Carry:
    """The value that a loop carries: its types are found by tracing until they stay.

    Args:
        init: The initial value.
        root: Its name in messages.
        what: The loop, for messages.
        is_counted: Whether the value is a pair of an index, which users do not see, and theirs.
    """

    def __init__(self, init: Tree, root: str, what: str, is_counted: bool = False) -> None:
        self.what = what
        self.is_counted = is_counted
        self.leaves, self.paths, self.tree = leaves_with_paths(init, root)
        if is_counted:
            self.paths = ["index", *leaves_with_paths(init[1], root)[1]]
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

    def handed_on(self, body: Any, n_cells: int, carry: list[Any]) -> list[Any]:
        """The carry behind the loop: a traced value that no step changes is the initial one.

        Args:
            body: The program of a step, and what it closes over.
            n_cells: How many references are carried in front of the value.
            carry: What the loop gave.
        """
        program, ahead = body.program, len(body.captured)
        for i, x in enumerate(self.leaves, n_cells):
            is_same = program.outputs[i] is program.inputs[ahead + i]
            if is_same and isinstance(x, Tracer) and x.aval == aval_of(carry[i - n_cells]):
                carry[i - n_cells] = x
        return carry

    def stage(
        self,
        function: Callable[..., Any],
        scanned: tuple[PyTreeDef, Sequence[ShapedArray]] | None,
        has_outputs: bool,
    ) -> Staged:
        """Trace ``function(carry, x) -> (carry, y)``, or ``function(carry) -> carry``.

        Weak values (Python scalars) take the dtype that the function returns. Those that it keeps
        weak are so in every step: `i * x` has the dtype of x, as in Python's loops.
        """
        staged = self._trace(function, scanned, has_outputs)
        while True:
            outs = staged.out_avals[: len(self.avals)]
            joined = [self._join(a, b) for a, b in zip(self.avals, outs, strict=True)]
            if joined != self.avals:
                before, self.avals = self.avals, joined
                if not staged.cells and self._differ_in_weakness(before):
                    in_tree, in_avals = self._arguments(scanned)
                    staged = stage_again(staged, function, in_tree, in_avals, self.what)
                    continue
            elif self._differ_in_bits(outs):
                function = self._in_carried_bits(function, has_outputs)
            else:
                break
            staged = self._trace(function, scanned, has_outputs)
        self._check(staged)
        return staged

    def _differ_in_weakness(self, before: Sequence[ShapedArray]) -> bool:
        """Whether types were the same but for weakness, where the dialect traces them as weak."""
        return dialect().weak is not None and all(
            default_dtype(a.dtype) == default_dtype(b.dtype)
            for a, b in zip(before, self.avals, strict=True)
        )

    def _differ_in_bits(self, outs: Sequence[ShapedArray]) -> bool:
        """Whether some types are returned in bits that the dialect does not tell apart."""
        return any(
            a.dtype != b.dtype and default_dtype(a.dtype) == default_dtype(b.dtype)
            for a, b in zip(self.avals, outs, strict=True)
        )

    def _in_carried_bits(self, function: Callable[..., Any], has_outputs: bool) -> Any:
        """The function with results of the carried types, where they differ in bits alone."""

        def converted(x: Any, aval: ShapedArray) -> Any:
            if isinstance(x, HoldsArray):
                return x  # keys
            own = aval_of(x)
            is_one = default_dtype(own.dtype) == default_dtype(aval.dtype)
            if own.dtype == aval.dtype or not is_one:
                return x
            return Convert(aval.dtype, weak=own.weak_type and aval.weak_type).bind(x)

        def step(*args: Any) -> Any:
            carry, *ys = function(*args) if has_outputs else (function(*args),)
            leaves, tree = tree_flatten(carry)
            kept = [converted(x, a) for x, a in zip(leaves, self.avals, strict=True)]
            carry = tree_unflatten(tree, kept)
            return (carry, *ys) if has_outputs else carry

        step.__name__ = name_of(function)
        return step

    def _trace(
        self,
        function: Callable[..., Any],
        scanned: tuple[PyTreeDef, Sequence[ShapedArray]] | None,
        has_outputs: bool,
    ) -> Staged:
        staged = stage_once(function, *self._arguments(scanned), self.what, True)
        tree = staged.out_tree.children()[0] if has_outputs else staged.out_tree
        if tree != self.tree:
            shown = [t.children()[1] if self.is_counted else t for t in (self.tree, tree)]
            raise located(
                TreeError,
                f"{self.what}: the carry must keep its structure.",
                f"  initially     {shown[0]}",
                f"  returned      {shown[1]}",
            )
        return staged

    def _arguments(
        self, scanned: tuple[PyTreeDef, Sequence[ShapedArray]] | None
    ) -> tuple[PyTreeDef, list[ShapedArray]]:
        """Structure and types of what the function is given."""
        tree, avals = scanned if scanned is not None else (None, ())
        in_tree = arguments_tree(self.tree, *([] if tree is None else [tree]))
        return in_tree, [*self.avals, *avals]

    @staticmethod
    def _join(before: ShapedArray, after: ShapedArray) -> ShapedArray:
        if not before.weak_type or before.shape != after.shape:
            return before
        dtype = np.result_type(before.dtype, after.dtype) if after.weak_type else after.dtype
        if np.result_type(before.dtype, dtype) != dtype and before.dtype.kind not in "if":
            return before
        return ShapedArray(before.shape, dtype, after.weak_type)

    def _check(self, staged: Staged) -> None:
        """Raise if a step returns other types than it is given, with the lines that make them."""
        outs = staged.program.outputs[: len(self.avals)]
        types = [type_texts(self.tree, x) for x in (self.avals, [out.aval for out in outs])]
        wrong: list[str] = []
        for path, aval, out, before, after in zip(
            self.paths, self.avals, outs, *types, strict=True
        ):
            if before != after:
                wrong.append(f"  `{path}`: {before} initially, {after} returned")
                origin = _origin_of_type(staged.program, out, aval)
                wrong += describe_location(origin and origin.source, "changed at")
        if wrong:
            raise located(
                ShapeError,
                f"{self.what}: the carry must keep its types.",
                *wrong,
                "Convert the initial value or the returned one (.astype, np.broadcast_to).",
            )


def _origin_of_type(program: Program, atom: Atom, given: ShapedArray) -> Equation | None:
    """Find the equation that gives a value its dtype, or its shape if the dtype is as expected."""
    made = makers(program)
    wanted = attrgetter("dtype" if atom.aval.dtype != given.dtype else "shape")
    kind = wanted(atom.aval)
    origin: Equation | None = None
    operands: Sequence[Atom] = (atom,)
    while same := [x for x in operands if x in made and wanted(x.aval) == kind]:
        origin, _ = made[same[0]]
        operands = origin.inputs
    return origin
