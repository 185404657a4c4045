"""Windows of an array at many places at once, read and written: XLA's gather and scatter.

Dimension numbers say which axes of all arrays belong together. They are put in order here, and what
remains is `Gather` and the scatters of `primitives.indexing`, where the derivatives are. A window
that leaves the array is treated as a whole: moved inside, or filled, or dropped.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad.base.signatures import share
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import INT64
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.higher_order.staging import check_function
from funcgrad.lax.loops import while_loop
from funcgrad.lax.operands import Array, ArrayLike, Shape, array_operand, same_dtype
from funcgrad.lax.shapes import broadcast
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.indexing import SCATTERS, Gather, as_index, default_fill
from funcgrad.primitives.reductions import ReduceAny
from funcgrad.primitives.shape import Transpose, reshape
from funcgrad.transforms.batch import batch_flat

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers", "gather",
    "index_take", "scatter", "scatter_add", "scatter_apply", "scatter_max", "scatter_min",
    "scatter_mul", "scatter_sub",
]  # fmt: skip


class GatherScatterMode(enum.Enum):
    """Treatment of a window that is not inside of the array.

    ``CLIP`` moves it inside. ``FILL_OR_DROP`` fills what is read, and drops what would be written.
    ``PROMISE_IN_BOUNDS`` says that there is none: reading moves it and writing drops it.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of a name: ``"clip"``, ``"fill"``, ``"drop"`` or ``"promise_in_bounds"``.

        Raises: ArgumentError: If it is another one.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        found = _MODES.get(mode)
        if found is None:
            names = ", ".join(repr(name) for name in _MODES if name)
            raise ArgumentError(f"a mode of gather and scatter is one of {names}, got {mode!r}.")
        return found


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


class GatherDimensionNumbers(NamedTuple):
    """Correspondence of the axes of `gather`.

    Args:
        offset_dims: Axes of the result that run through a window, in the order of the array's.
        collapsed_slice_dims: Axes of the array along which windows have length 1 and that the
            result does not have.
        start_index_map: For every element of a start, the axis of the array that it counts along.
        operand_batching_dims: Axes of the array that go with one of the starts each.
        start_indices_batching_dims: The axes of the starts that they go with.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Correspondence of the axes of `scatter` and its kin.

    Args:
        update_window_dims: Axes of the updates that run through a window.
        inserted_window_dims: Axes of the array along which windows have length 1 and that the
            updates do not have.
        scatter_dims_to_operand_dims: For every element of a start, the axis of the array that it
            counts along.
        operand_batching_dims: Axes of the array that go with one of the starts each.
        scatter_indices_batching_dims: The axes of the starts that they go with.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class _Windows:
    """Places of all elements of all windows, as index arrays of some axes of the array.

    The index arrays have the axes of the starts in front, then one for every axis of `inner`.

    Args:
        x: The array.
        starts: Integers; the last axis is that of the elements of a start.
        kept: Axes of the array that windows have in the result.
        mapped: For every element of a start, its axis of the array.
        paired: Pairs of an axis of the array and the axis of the starts that it goes with.
        sizes: Lengths of windows along all axes of the array.
        is_filled: Whether windows that leave the array are marked, by an index that is none, or
            moved inside.
    """

    def __init__(
        self,
        x: Array,
        starts: Array,
        kept: Sequence[int],
        mapped: Sequence[int],
        paired: Sequence[tuple[int, int]],
        sizes: Shape,
        is_filled: bool,
    ) -> None:
        self.lengths = shape_of(x)
        self.sizes = sizes
        self.batch = shape_of(starts)[:-1]
        starts = as_index(starts)
        rooms = {a: self.lengths[a] - sizes[a] for a in mapped}
        whole = [a for a in kept if sizes[a] == self.lengths[a]]
        # A window as long as its axis has one place, unless being elsewhere counts.
        self.rest = [a for a in whole if a not in mapped or not is_filled]
        self.axes = tuple(a for a in range(len(self.lengths)) if a not in self.rest)
        self.inner = [a for a in self.axes if a in kept]
        self.kept = kept
        column = {a: starts[..., i] for i, a in enumerate(mapped)}
        valid = _all_inside(column, rooms) if is_filled else None
        partner = dict(paired)
        self.indices = []
        for axis in self.axes:
            if axis in column:
                index = column[axis] if is_filled else _clipped(column[axis], rooms[axis])
            elif axis in partner:
                index = self._counted(partner[axis])
            else:
                index = np.int64(0)
            self.indices.append(self._spread(index, axis))
        if valid is not None:
            nowhere = np.int64(self.lengths[mapped[0]])
            k = self.axes.index(mapped[0])
            self.indices[k] = p.select.bind(self._aligned(valid), self.indices[k], nowhere)
        if self.axes and not mapped:  # nothing else has all axes of the starts
            shape = (*self.batch, *(sizes[a] for a in self.inner))
            self.indices[0] = p.add.bind(self.indices[0], np.zeros(shape, INT64))

    def _counted(self, axis: int) -> Any:
        n = self.batch[axis]
        return np.arange(n).reshape([n if i == axis else 1 for i in range(len(self.batch))])

    def _aligned(self, index: Any) -> Any:
        shape = shape_of(index)
        return reshape(index, (*shape, *(1,) * len(self.inner))) if shape else index

    def _spread(self, index: Any, axis: int) -> Any:
        """Positions along an axis of all elements of the windows that begin at ``index``."""
        index = self._aligned(index)
        if axis in self.inner:
            place = len(self.inner) - self.inner.index(axis)
            steps = np.arange(self.sizes[axis]).reshape((-1, *(1,) * (place - 1)))
            index = p.add.bind(index, steps)
        ones = len(self.batch) + len(self.inner) - len(shape_of(index))
        return reshape(index, ((1,) * ones + shape_of(index))) if ones else index

    def order(self, window_dims: Sequence[int]) -> tuple[int, ...]:
        """Axes of a gathered array for every axis of one with windows at ``window_dims``."""
        first, inner = len(self.batch), len(self.inner)
        own = {a: first + i for i, a in enumerate(self.inner)}
        own.update({a: first + inner + i for i, a in enumerate(self.rest)})
        windows = dict(zip(window_dims, (own[a] for a in self.kept), strict=True))
        others = iter(range(first))
        count = first + len(self.kept)
        return tuple(windows[i] if i in windows else next(others) for i in range(count))


def _all_inside(column: dict[int, Any], rooms: dict[int, int]) -> Any:
    """Whether windows begin at places where there is room; ``None`` if they all begin at 0."""
    valid = None
    for axis, start in column.items():
        inside = p.bitwise_and.bind(
            p.greater_equal.bind(start, np.int64(0)),
            p.less_equal.bind(start, np.int64(rooms[axis])),
        )
        valid = inside if valid is None else p.bitwise_and.bind(valid, inside)
    return valid


def _clipped(start: Any, room: int) -> Any:
    return p.minimum.bind(p.maximum.bind(start, np.int64(0)), np.int64(room))


def _axes(name: str, what: str, axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Distinct axes of an array of ``ndim``, counted from the front."""
    found = tuple(int(a) for a in axes)
    if len(set(found)) != len(found) or any(not 0 <= a < ndim for a in found):
        raise ShapeError(
            f"lax.{name}: {what} must be different axes out of 0 .. {ndim - 1}, got {found}."
        )
    return found


def _windows(
    name: str,
    x: Array,
    starts: Array,
    collapsed: Sequence[int],
    mapped: Sequence[int],
    own_batch: Sequence[int],
    batch: Sequence[int],
    sizes: Callable[[tuple[int, ...]], Shape],
    is_filled: bool,
) -> _Windows:
    """Checked geometry; ``sizes`` gets the axes of the array that windows keep."""
    aval, ndim = aval_of(x), len(shape_of(x))
    of_starts = aval_of(starts)
    if of_starts.dtype.kind not in "iu" or not of_starts.ndim:
        raise DtypeError(
            f"lax.{name}: the starts must be integers with a last axis for the elements of a "
            f"start, got {of_starts}."
        )
    collapsed = _axes(name, "collapsed or inserted axes", collapsed, ndim)
    own_batch = _axes(name, "operand_batching_dims", own_batch, ndim)
    mapped = _axes(name, "the axes that starts count along", mapped, ndim)
    batch = _axes(name, "batching axes of the starts", batch, of_starts.ndim - 1)
    if len(mapped) != of_starts.shape[-1]:
        raise ShapeError(
            f"lax.{name}: starts {of_starts} have {of_starts.shape[-1]} elements each, and "
            f"dimension_numbers give axes {mapped} for them."
        )
    if set(own_batch) & {*collapsed, *mapped} or len(own_batch) != len(batch):
        raise ShapeError(
            f"lax.{name}: operand_batching_dims {own_batch} must be other axes than "
            f"{sorted({*collapsed, *mapped})}, as many as those of the starts {batch}."
        )
    for a, b in zip(own_batch, batch, strict=True):
        if aval.shape[a] != of_starts.shape[b]:
            raise ShapeError(
                f"lax.{name}: axis {a} of {aval} goes with axis {b} of the starts {of_starts}; "
                "their lengths differ."
            )
    kept = tuple(a for a in range(ndim) if a not in collapsed and a not in own_batch)
    lengths = tuple(sizes(kept))
    wrong = [a for a, n in enumerate(lengths) if not 0 <= n <= aval.shape[a]]
    wrong += [a for a in (*collapsed, *own_batch) if lengths[a] > 1]
    if wrong:
        raise ShapeError(
            f"lax.{name}: windows of shape {lengths} do not fit into {aval} along axes "
            f"{sorted(set(wrong))}; collapsed, inserted and batching axes have length 1 in them."
        )
    pairs = list(zip(own_batch, batch, strict=True))
    return _Windows(x, starts, kept, mapped, pairs, lengths, is_filled)


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """Windows of an array, one at each of many starts.

    Args:
        start_indices: Integers; the last axis holds the elements of one start.
        slice_sizes: Length of windows along every axis of the array.
        fill_value: What mode ``"fill"`` puts; by default nan, the least signed or largest unsigned
            integer, or True.
    Returns: An array with the axes ``offset_dims`` for windows and, in between, those of the
        starts.

    Raises:
        ArgumentError: If the mode is another.
        DtypeError: If starts are no integers.
        ShapeError: If the numbers do not fit the arrays.

    Example:
        >>> numbers = fg.lax.GatherDimensionNumbers((1,), (), (0,))
        >>> print(fg.lax.gather(np.arange(5.0), np.array([[1], [4]]), numbers, (2,), mode="clip"))
        [[1. 2.]
         [3. 4.]]
    """
    x, starts = array_operand("gather", operand), array_operand("gather", start_indices)
    kind = _checked_mode("gather", mode)
    is_filled = kind is GatherScatterMode.FILL_OR_DROP
    numbers = GatherDimensionNumbers(*dimension_numbers)
    sizes = tuple(int(n) for n in slice_sizes)
    if len(sizes) != len(shape_of(x)):
        raise ShapeError(f"lax.gather: {aval_of(x)} needs one size per axis, got {sizes}.")
    windows = _windows(
        "gather",
        x,
        starts,
        numbers.collapsed_slice_dims,
        numbers.start_index_map,
        numbers.operand_batching_dims,
        numbers.start_indices_batching_dims,
        lambda kept: sizes,
        is_filled,
    )
    ndim = len(windows.batch) + len(windows.kept)
    offsets = _window_dims("gather", "offset_dims", numbers.offset_dims, windows, ndim)
    if not windows.axes:
        out = broadcast(x, windows.batch)
    else:
        fill = default_fill(aval_of(x).dtype) if fill_value is None else fill_value
        found = Gather(windows.axes, "fill" if is_filled else "clip", fill if is_filled else None)
        out = found.bind(x, *windows.indices)
    return Transpose(windows.order(offsets)).bind(out)


def _checked_mode(name: str, mode: str | GatherScatterMode | None) -> GatherScatterMode:
    kind = GatherScatterMode.from_any(mode)
    if kind is GatherScatterMode.ONE_HOT:
        raise ArgumentError(
            f"lax.{name}: mode ONE_HOT is a product with a matrix of zeros and ones, for "
            'accelerators. Use "fill" or "clip".'
        )
    return kind


def _window_dims(
    name: str, what: str, dims: Sequence[int], windows: _Windows, ndim: int
) -> tuple[int, ...]:
    found = _axes(name, what, dims, ndim)
    if len(found) != len(windows.kept) or list(found) != sorted(found):
        raise ShapeError(
            f"lax.{name}: {what} must name, in ascending order, one axis for each of the axes "
            f"{windows.kept} of windows, got {found}."
        )
    return found


def _scatter_windows(
    name: str,
    x: Array,
    starts: Array,
    shape: Shape,
    numbers: ScatterDimensionNumbers,
    kind: GatherScatterMode,
) -> tuple[_Windows, tuple[int, ...]]:
    """The geometry of a scatter of updates of that shape, and their axes in a gathered array."""
    inserted = list(numbers.inserted_window_dims)
    if inserted != sorted(inserted):
        raise ShapeError(f"lax.{name}: inserted_window_dims must ascend, got {inserted}.")
    lengths = [shape[d] if 0 <= d < len(shape) else -1 for d in numbers.update_window_dims]

    def sizes(kept: tuple[int, ...]) -> Shape:
        if len(kept) != len(lengths):
            raise ShapeError(
                f"lax.{name}: update_window_dims {tuple(numbers.update_window_dims)} must name one "
                f"axis for each of the axes {kept} of windows in {aval_of(x)}."
            )
        own = dict(zip(kept, lengths, strict=True))
        return [own.get(a, 1) for a in range(len(shape_of(x)))]

    windows = _windows(
        name,
        x,
        starts,
        numbers.inserted_window_dims,
        numbers.scatter_dims_to_operand_dims,
        numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
        sizes,
        kind is not GatherScatterMode.CLIP,
    )
    dims = _window_dims(name, "update_window_dims", numbers.update_window_dims, windows, len(shape))
    others = tuple(n for i, n in enumerate(shape) if i not in dims)
    if others != windows.batch:
        raise ShapeError(
            f"lax.{name}: updates of shape {tuple(shape)} have axes {others} beside those of "
            f"windows, and there are starts of shape {windows.batch}."
        )
    return windows, windows.order(dims)


def _write(
    name: str,
    how: str,
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    numbers: ScatterDimensionNumbers,
    unique_indices: bool,
    mode: str | GatherScatterMode | None,
) -> Array:
    x, starts = array_operand(name, operand), array_operand(name, scatter_indices)
    x, y = same_dtype(name, x, array_operand(name, updates))
    kind = _checked_mode(name, mode)
    numbers = ScatterDimensionNumbers(*numbers)
    windows, order = _scatter_windows(name, x, starts, shape_of(y), numbers, kind)
    y = Transpose(tuple(int(i) for i in np.argsort(order))).bind(y)
    if not windows.axes:  # windows are as large as the array: the starts only count them
        x, y = (reshape(v, (*extra, *shape_of(v))) for v, extra in ((x, (1,)), (y, ())))
        places = np.zeros(windows.batch, INT64)
        out = SCATTERS[how]((0,), "clip", unique_indices).bind(x, y, places)
        return reshape(out, windows.lengths)
    write = SCATTERS[how](
        windows.axes, "clip" if kind is GatherScatterMode.CLIP else "fill", unique_indices
    )
    return write.bind(x, y, *windows.indices)


def _scatter(name: str, how: str, summary: str) -> Callable[..., Array]:
    """A public function that writes by one of `SCATTERS`."""

    def function(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        return _write(
            name, how, operand, scatter_indices, updates, dimension_numbers, unique_indices, mode
        )

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"""{summary}

Args:
    operand: The array.
    scatter_indices: Integers; the last axis holds the elements of the start of one window.
    updates: Windows, of the dtype of the array, at all starts.
    dimension_numbers: Which axes belong together: `ScatterDimensionNumbers`.
    indices_are_sorted: Accepted for JAX's signature.
    unique_indices: The caller's promise that no element is written twice; derivatives get cheaper.
    mode: What becomes of windows that leave the array: `GatherScatterMode`, or a name of it.

Returns:
    An array like ``operand``.

Raises:
    ArgumentError: If the mode is another.
    DtypeError: If dtypes differ, or starts are no integers.
    ShapeError: If the numbers do not fit the arrays.

Example:
    >>> import numpy as np
    >>> from funcgrad import lax
    >>> numbers = lax.ScatterDimensionNumbers((1,), (), (0,))
    >>> starts, updates = np.array([[0], [1]]), np.array([[2.0, 3.0], [5.0, 7.0]])
    >>> print(lax.scatter_add(np.zeros(4), starts, updates, numbers))
    [2. 8. 7. 0.]
"""
    return function


scatter = _scatter(
    "scatter", "set", "A copy of an array with windows replaced; the last one of a place stays."
)
scatter_add = _scatter("scatter_add", "add", "A copy of an array with windows added to it.")
scatter_mul = _scatter("scatter_mul", "mul", "A copy of an array multiplied by windows.")
scatter_min = _scatter(
    "scatter_min", "min", "A copy of an array with the minima of its elements and of windows."
)
scatter_max = _scatter(
    "scatter_max", "max", "A copy of an array with the maxima of its elements and of windows."
)


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """A copy of an array with windows subtracted from it: `scatter_add` of their negatives.

    Args:
        updates: Windows, of the dtype of the array, at all starts.
        dimension_numbers: Which axes belong together: `ScatterDimensionNumbers`.
    Returns: An array like ``operand``.

    Example:
        >>> fg.lax.scatter_sub(
        ...     np.full(3, 5.0),
        ...     np.array([[1]]),
        ...     np.array([2.0]),
        ...     fg.lax.ScatterDimensionNumbers((), (0,), (0,)),
        ... )
        array([5., 3., 5.])
    """
    updates = p.neg.bind(array_operand("scatter_sub", updates))
    return _write(
        "scatter_sub",
        "add",
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        unique_indices,
        mode,
    )


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Shape = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """A copy of an array with a function applied to elements, as often as windows hold them.

    Args:
        func: Function of a scalar of the dtype of the array, to one.
        dimension_numbers: Which axes belong together: `ScatterDimensionNumbers`.
        update_shape: Shape that updates would have: it gives the lengths of windows.
    Returns: An array like ``operand``; differentiable, unlike JAX's.

    Example:
        >>> numbers = fg.lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> double = lambda x: 2 * x
        >>> starts = np.array([[0], [2], [2]])
        >>> print(fg.lax.scatter_apply(np.ones(3), starts, double, numbers, update_shape=(3,)))
        [2. 1. 4.]
    """
    check_function(func, "func", "scatter_apply")
    x = array_operand("scatter_apply", operand)
    aval = aval_of(x)
    counts = _write(
        "scatter_apply",
        "add",
        np.zeros(aval.shape, np.int32),
        scatter_indices,
        np.ones(tuple(update_shape), np.int32),
        dimension_numbers,
        unique_indices,
        mode,
    )

    def applied(values: Array) -> Array:
        (out,), (dim,) = batch_flat(
            lambda v: [func(v)],
            [reshape(values, (aval.size,))],
            [0],
            aval.size,
            "lax.scatter_apply",
            None,
        )
        if dim is None:
            out = broadcast(out, (aval.size,))
        return reshape(p.convert(out, aval.dtype), aval.shape)

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        number, values = state
        is_due = p.greater.bind(counts, number)
        return p.add.bind(number, np.int32(1)), p.select.bind(is_due, applied(values), values)

    if unique_indices:
        return step((np.int32(0), x))[1]
    every = tuple(range(aval.ndim))

    def is_any_due(state: tuple[Any, Any]) -> Any:
        due = p.greater.bind(counts, state[0])
        return ReduceAny(every).bind(due) if every else due

    return while_loop(is_any_due, step, (np.int32(0), x))[1]


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Slices of an array at corresponding indices of some axes, which count modulo their lengths.

    Args:
        src: The array.
        idxs: One line of integers for each of ``axes``, of one length.
        axes: Axes of the array.
    Returns: An array with the slices along the first axis.

    Example:
        >>> x = np.arange(6).reshape(2, 3)
        >>> print(fg.lax.index_take(x, (np.array([0, -1]), np.array([2, 3])), (0, 1)))
        [2 3]
    """
    x = array_operand("index_take", src)
    places = _axes("index_take", "axes", axes, len(shape_of(x)))
    indices = [array_operand("index_take", i) for i in idxs]
    if len(indices) != len(places) or len({shape_of(i) for i in indices}) > 1:
        types = ", ".join(str(aval_of(i)) for i in indices)
        raise ShapeError(
            f"lax.index_take: axes {places} need one line of indices each, of one length, got "
            f"{types}."
        )
    return Gather(places, "wrap").bind(x, *indices)


share(__name__, {"dimension_numbers": "Which axes belong together."})
