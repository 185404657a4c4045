"""Reading and updating with NumPy's indices: ``x[index]`` and ``x.at[index].add(value)``.

An index is taken apart once, into what every axis of the array does: a known slice, a known
integer, or an array of integers. What is known is slicing and reshaping; only arrays of integers
need `Gather` and the scatters. Lists, masks, ellipses and new axes are gone after that.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from funcgrad.base.dialect import NUMPY, dialect
from funcgrad.base.index_rule import INDEX_RULE
from funcgrad.base.placement import check_placement
from funcgrad.base.records import dataclass
from funcgrad.core.avals import Shape, ShapedArray, aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import INT64, is_complex
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    IndexTypeError,
    NonConcreteBooleanIndexError,
    ShapeError,
)
from funcgrad.lax.loops import while_loop
from funcgrad.numpy import elementwise
from funcgrad.numpy.boxes import Box, known_box, known_key
from funcgrad.numpy.promotion import as_value, result_dtype, stack_nested, strong, to_dtype
from funcgrad.observers.source import place
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.indexing import (
    SCATTERS,
    UNSIGNED,
    Gather,
    as_index,
    demanded,
    lie_inside,
    out_of_bounds,
)
from funcgrad.primitives.objects import unwrapped
from funcgrad.primitives.reductions import ReduceAny
from funcgrad.transforms.stage import StageTracer


@dataclass
class _Plan:
    """Plan of the effect of an index on an array of shape ``shape``.

    Args:
        aval: Type of the indexed array, with an axis of length 1 for every single bool.
        slices: One per axis; integers and index arrays leave a slice of everything.
        numbers: Known integers, by axis, in ``0 .. n-1``.
        arrays: Index arrays and traced integers, by axis.
        layout: The axes of the result before index arrays are put in: an axis of ``x``, or
            ``None`` for a new one.
        front: How many of them stand before the axes of the index arrays.
        is_traced: Whether an index is traced, or outside where JAX does not look at it.
        counts_from_end: Whether negative places count from the end. Otherwise they are none.
        refuses: Whether traced places that are none raise, by default, as known ones do.
    """

    aval: ShapedArray
    slices: list[range] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    arrays: dict[int, Any] = field(default_factory=dict)
    layout: list[int | None] = field(default_factory=list)
    front: int = 0
    is_traced: bool = False
    counts_from_end: bool = True
    refuses: bool = False

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def index_shape(self) -> Shape:
        """The axes that the index arrays bring."""
        return np.broadcast_shapes(*map(s.shape_of, self.arrays.values()))

    @property
    def layout_shape(self) -> Shape:
        """Lengths of the axes in `layout`."""
        return tuple(1 if axis is None else len(self.slices[axis]) for axis in self.layout)

    @property
    def result_shape(self) -> Shape:
        layout = self.layout_shape
        return (*layout[: self.front], *self.index_shape, *layout[self.front :])

    @property
    def ranges(self) -> list[range]:
        """Known slices and integers, by axis."""
        numbers = self.numbers
        return [
            range(numbers[axis], numbers[axis] + 1) if axis in numbers else r
            for axis, r in enumerate(self.slices)
        ]

    def is_whole(self, axis: int) -> bool:
        """Whether an axis is taken as it is."""
        return axis not in self.numbers and self.slices[axis] == range(self.shape[axis])


def _entries(index: Any, ndim: int) -> list[Any]:
    """The index as one entry per axis (masks: per group of axes), the ellipsis spelled out.

    An ellipsis that stands for no axis stays: index arrays on its two sides are apart.
    """
    if type(index) is list and dialect() is not NUMPY:
        raise IndexTypeError(
            "JAX takes no list as an index: write x[np.array(places)] or x[tuple(indices)]."
            f"{place()}"
        )
    entries = list(index) if isinstance(index, tuple) else [index]
    entries = [_entry(e) for e in entries]
    used = sum(_axes_of(e) for e in entries)
    places = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...').")
    if used > ndim:
        raise IndexError(f"too many indices: the array has {ndim} axes, {used} were indexed.")
    i = places[0] if places else len(entries)
    rest: list[Any] = [slice(None)] * (ndim - used)
    entries[i : i + 1] = rest or [Ellipsis]
    return entries


def _entry(e: Any) -> Any:
    """One component of an index, with arrays of integers or bools made arrays."""
    if e is None or e is Ellipsis or isinstance(e, slice) or type(e) is int:
        return e
    e = unwrapped(e)
    if isinstance(e, Tracer):
        return _traced_entry(e)
    if isinstance(e, list | tuple) and any(isinstance(v, Tracer) for v in e):
        return _traced_entry(stack_nested(e))
    if not isinstance(e, np.ndarray | np.generic | list | tuple | bool) and hasattr(e, "__index__"):
        return int(e.__index__())
    array = np.asarray(e)
    if array.size == 0 and isinstance(e, list | tuple):
        array = array.astype(np.intp)
    if array.dtype.kind in "iu":
        return int(array) if array.ndim == 0 else array
    if array.dtype.kind != "b":
        raise IndexTypeError(
            "only integers, slices (`:`), ellipsis (`...`), None and arrays of integers or "
            f"bools are valid indices, got {_describe(e)}.{place()}"
        )
    return array


def _describe(e: Any) -> str:
    return str(aval_of(e)) if isinstance(e, np.ndarray | Tracer) else f"a {type(e).__name__}"


def _traced_entry(e: Tracer) -> Any:
    aval = e.aval
    if aval.dtype.kind in "iu":
        return e
    if aval.dtype.kind == "b" and not aval.size:
        return np.zeros(aval.shape, bool)  # it selects nothing, whatever it is
    if aval.dtype.kind == "b":
        raise NonConcreteBooleanIndexError(mask_message(e))
    raise IndexTypeError(
        f"a traced index must be of integers, but is {aval} inside {e.owner.what}.{place()}\n"
        "Convert it with .astype(int)."
    )


def mask_message(mask: Tracer) -> str:
    """Say that how many elements a traced mask selects is not known."""
    return (
        f"a traced mask, {mask.aval} inside {mask.owner.what}, was used as an index: the shape of "
        f"the result would depend on its values.{place()}\n"
        "Use np.where(mask, x, other), which keeps the shape; for sums np.sum(x, where=mask); "
        "for updates x = np.where(mask, value, x)."
    )


def _is_mask(e: Any) -> bool:
    return isinstance(e, np.ndarray) and e.dtype.kind == "b"


def _axes_of(e: Any) -> int:
    """How many axes an entry consumes."""
    if e is None or e is Ellipsis:
        return 0
    return e.ndim if _is_mask(e) else 1


def _is_advanced(e: Any) -> bool:
    return not (e is None or e is Ellipsis or isinstance(e, slice))


def _plan(aval: ShapedArray, index: Any, mode: str | None, counts_from_end: bool = True) -> _Plan:
    """Take an index apart."""
    entries = _entries(index, aval.ndim)
    plan = _Plan(_with_axes_of_bools(aval, entries), counts_from_end=counts_from_end)
    entries = [_places_of_bool(e) for e in entries]
    advanced = [i for i, e in enumerate(entries) if _is_advanced(e)]
    has_gap = bool(advanced) and advanced[-1] - advanced[0] + 1 != len(advanced)
    for i, e in enumerate(entries):
        if advanced and i == advanced[0] and not has_gap:
            plan.front = len(plan.layout)
        _add(plan, e, mode)
    return plan


def _is_single_bool(e: Any) -> bool:
    return _is_mask(e) and e.ndim == 0


def _with_axes_of_bools(aval: ShapedArray, entries: list[Any]) -> ShapedArray:
    """Insert an axis for every scalar bool of the index."""
    if not any(map(_is_single_bool, entries)):
        return aval
    shape, axis = list(aval.shape), 0
    for e in entries:
        if _is_single_bool(e):
            shape.insert(axis, 1)
        axis += 1 if _is_single_bool(e) else _axes_of(e)
    return aval.update(shape=tuple(shape))


def _places_of_bool(e: Any) -> Any:
    """``True`` takes its axis of length 1, ``False`` nothing of it; others as they are."""
    return np.zeros(int(e), np.int64) if _is_single_bool(e) else e


def _add(plan: _Plan, e: Any, mode: str | None) -> None:
    """Extend a plan by one entry of the index."""
    if e is Ellipsis:
        return
    if e is None:
        plan.layout.append(None)
        return
    if _is_mask(e):
        _add_mask(plan, e)
        return
    axis = len(plan.slices)
    n = plan.shape[axis]
    plan.slices.append(range(n))
    if isinstance(e, slice):
        plan.slices[axis] = range(*_bounds(e, n))
        plan.layout.append(axis)
    elif isinstance(e, Tracer):
        plan.arrays[axis] = e
        plan.is_traced = True
    elif type(e) is int and (-n if plan.counts_from_end else 0) <= e < n:
        plan.numbers[axis] = e % n
    else:
        plan.arrays[axis] = _checked(plan, axis, np.asarray(e), mode)


def _bounds(e: slice, n: int) -> tuple[int, int, int]:
    try:
        return e.indices(n)
    except TypeError:
        parts = [v for v in (e.start, e.stop, e.step) if isinstance(v, Tracer)]
        if not parts:
            raise
        raise IndexTypeError(
            f"a slice has a traced bound, {parts[0].aval} inside {parts[0].owner.what}: its length "
            f"would depend on a value.{place()}\n"
            "Use lax.dynamic_slice(x, starts, sizes), whose sizes are known."
        ) from None


def _checked(plan: _Plan, axis: int, index: Any, mode: str | None) -> Any:
    """Known indices; without a ``mode`` they must lie inside, but by the rules of JAX."""
    n = plan.shape[axis]
    if mode is not None or not index.size:
        return index
    if index.min() < (-n if plan.counts_from_end else 0) or index.max() >= n:
        if dialect().checks_places:
            raise out_of_bounds(s.zeros_like_aval(plan.aval), axis, index)
        plan.is_traced = True
        return index
    if index.min() >= 0:
        return index
    index = index.astype(INT64)
    return np.where(index < 0, index + n, index)


def _add_mask(plan: _Plan, mask: Any) -> None:
    axis = len(plan.slices)
    shape = plan.shape[axis : axis + mask.ndim]
    if mask.shape != shape:
        raise IndexError(
            f"a boolean index of shape {mask.shape} does not match the axes {shape} of the array "
            f"that it stands for.{place()}"
        )
    for i, places in enumerate(np.nonzero(mask)):
        plan.slices.append(range(shape[i]))
        plan.arrays[axis + i] = places


# Reading.


def indexed(x: Any, index: Any) -> Any:
    """``x[index]`` as users write it: indices out of bounds raise IndexError, also traced ones.

    By JAX's rule (`index_rule`) it is `getitem`.
    """
    return getitem(x, index, not INDEX_RULE.clamps)


def demanded_places(
    places: Any, low: int, high: int, message: str, error: type[Exception] = ValueError
) -> Any:
    """Traced integers as int64, which must lie in ``low .. high``, if JAX's rule does not hold.

    Args:
        places: Integers.
        low: The least that is allowed.
        high: The greatest that is allowed.
        message: What the error says, with a gap ``{}`` for the first integer that is outside.
        error: Class of the error.
    """
    return as_index(places) if INDEX_RULE.clamps else demanded(places, low, high, message, error)


_ALONG_FIRST = Gather((0,))


def getitem(x: Any, index: Any, refuses: bool = False) -> Any:
    """``x[index]`` with NumPy's semantics.

    Known indices out of bounds raise IndexError. Traced ones do if ``refuses``; otherwise they are
    clamped to the array, after negative ones were counted from the end.
    """
    key = (index,) if type(index) is int else known_key(index)
    box = None if key is None else known_box(s.shape_of(x), key)
    if box is None:
        aval = aval_of(x)
        is_plain = type(index) is np.ndarray and index.dtype in UNSIGNED and index.ndim
        if is_plain and aval.shape and lie_inside(index, aval.shape[0]):
            return _ALONG_FIRST.bind(strong(x), index)
        plan = _plan(aval, index, None)
        plan.refuses = refuses
        return _get(x, plan, None, None)
    return box.read(strong(x))


def _get(x: Any, plan: _Plan, mode: str | None, fill_value: Any) -> Any:
    """The elements that a plan names; of a single one the number."""
    found = _read(x, plan, mode, fill_value)
    return found[()] if type(found) is np.ndarray and not found.shape else found


def _read(x: Any, plan: _Plan, mode: str | None, fill_value: Any) -> Any:
    x = s.reshape(strong(x), plan.shape)
    for step in Box(plan.shape, plan.ranges).cuts:
        x = step.bind(x)
    if not plan.arrays:
        return s.reshape(x, plan.layout_shape)
    remaining = [axis for axis in range(len(plan.shape)) if axis not in plan.numbers]
    x = s.reshape(x, tuple(s.shape_of(x)[axis] for axis in remaining))
    axes = tuple(remaining.index(axis) for axis in plan.arrays)
    gather = Gather(axes, _reading_mode(plan, mode, fill_value), fill_value)
    out = gather.bind(x, *_index_arrays(plan, mode, fill_value is None))
    return _place(out, plan)


def _place(x: Any, plan: _Plan) -> Any:
    """The axes of index arrays, which are in front, moved to where they belong."""
    ndim = len(plan.index_shape)
    x = s.reshape(x, (*plan.index_shape, *plan.layout_shape))
    if not ndim or not plan.front:
        return x
    kept = range(ndim, ndim + len(plan.layout))
    return s.Transpose((*kept[: plan.front], *range(ndim), *kept[plan.front :])).bind(x)


_MODES = {"fill": "fill", "drop": "fill", "clip": "clip", "wrap": "wrap"}
_MODES["promise_in_bounds"] = "raise"


def _checked_mode(mode: str) -> str:
    if mode not in _MODES:
        raise ArgumentError(f"mode must be one of {sorted(_MODES)}, got {mode!r}.")
    return _MODES[mode]


def _named_mode(mode: str | None, outside: str) -> str | None:
    """The mode that is asked for; in JAX a broken promise that places lie inside is no error."""
    is_promise = mode is not None and _checked_mode(mode) == "raise"
    return outside if is_promise and INDEX_RULE.clamps else mode


def _reading_mode(plan: _Plan, mode: str | None, fill_value: Any) -> str:
    if mode is not None:
        return _checked_mode(mode)
    if fill_value is not None:
        return "fill"
    return "clip" if plan.is_traced and not plan.refuses else "raise"


def _writing_mode(plan: _Plan, mode: str | None) -> str:
    if mode is not None:
        return _checked_mode(mode)
    return "fill" if plan.is_traced and not plan.refuses else "raise"


def _index_arrays(plan: _Plan, mode: str | None, clips_by_default: bool) -> list[Any]:
    """The index arrays, with negative ones replaced where the primitive reads them otherwise.

    It counts them from the end unless it clips, and takes them modulo the length to wrap.
    """
    is_clamped = plan.is_traced and not plan.refuses
    clips = mode == "clip" or (mode is None and clips_by_default and is_clamped)
    if clips == plan.counts_from_end and mode != "wrap":
        return [_nonnegative(i, plan.shape[axis], clips) for axis, i in plan.arrays.items()]
    return [strong(index) for index in plan.arrays.values()]


def _nonnegative(index: Any, n: int, counts_from_end: bool) -> Any:
    """Places with negative ones counted from the end, or else sent behind it."""
    is_unsigned = aval_of(index).dtype.kind == "u"
    index = as_index(strong(index))
    if is_unsigned:
        return index
    other = p.add.bind(index, np.int64(n)) if counts_from_end else np.int64(n)
    other = s.broadcast_to(other, s.shape_of(index))
    return p.select.bind(p.less.bind(index, np.int64(0)), other, index)


# Updating.

_COMBINE = {"add": p.add, "mul": p.mul, "min": p.minimum, "max": p.maximum}


def _update(
    x: Any, plan: _Plan, value: Any, kind: str, mode: str | None = None, unique: bool = False
) -> Any:
    """A copy of ``x`` in which ``value`` is combined with the elements that a plan names.

    Args:
        x: The array.
        plan: Its index, taken apart.
        value: Broadcasts to the shape of ``x[index]``.
        kind: A key of `SCATTERS`.
        mode: What happens with indices out of bounds.
        unique: The caller's promise that no element is named twice.
    """
    x, shape = s.reshape(strong(x), plan.shape), s.shape_of(x)
    return s.reshape(_updated(x, plan, value, kind, mode, unique), shape)


def _updated(x: Any, plan: _Plan, value: Any, kind: str, mode: str | None, unique: bool) -> Any:
    value = _fitted(value, plan.aval, plan.result_shape, kind)
    if plan.arrays:
        return _scatter(x, plan, value, kind, mode, unique)
    if kind == "add" and plan.aval.dtype.kind != "b":
        zero = plan.aval.dtype.type(0)
        return p.add.bind(x, Box(plan.shape, plan.ranges).padded(value, zero))
    if kind != "set":
        value = _COMBINE[kind].bind(_get(x, plan, None, None), value)
    return _overwrite(x, plan, value)


_ASSIGNMENT = "y[index] = value"


def assigned(x: Any, index: Any, value: Any) -> Any:
    """A copy of ``x`` as ``x[index] = value`` of NumPy leaves it.

    Values are converted to the dtype of ``x``, whatever is lost of them. A traced mask takes
    values that do not depend on how many elements it selects.

    Args:
        x: The array.
        index: Any index of NumPy's.
        value: Broadcasts to the shape of ``x[index]``.
    """
    key = known_key(index)
    box = None if key is None else known_box(s.shape_of(x), key)
    if box is not None and type(x) is type(value) is StageTracer:
        found = box.record_overwritten(x, value)
        if found is not None:
            return found
    aval = aval_of(x)
    value = assigned_dtype(as_value(value, _ASSIGNMENT), aval.dtype)
    if box is not None and box.is_dense:
        return box.overwritten(x, _spread(value, aval, box.layout, _ASSIGNMENT))
    mask = traced_mask(index)
    if mask is not None:
        return _where_masked(x, mask, value)
    plan = _plan(aval, index, None)
    plan.refuses = not INDEX_RULE.clamps
    value = _spread(value, aval, plan.result_shape, _ASSIGNMENT)
    whole = s.reshape(x, plan.shape)
    out = (
        _scatter(whole, plan, value, "set", None, False)
        if plan.arrays
        else _overwrite(whole, plan, value)
    )
    return s.reshape(out, aval.shape)


def assigned_dtype(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value converted to the dtype of the array that it is assigned to."""
    if aval_of(value).dtype.kind == "c" and dtype.kind != "c":
        raise DtypeError(
            f"{_ASSIGNMENT}: {aval_of(value).strong()} would lose its imaginary part in an array "
            f"of {dtype}.{place()}\nAssign value.real, or make the array complex."
        )
    return to_dtype(value, dtype)


def traced_mask(index: Any) -> Tracer | None:
    """The index, if it is one mask whose places are not known."""
    (mask,) = index if type(index) is tuple and len(index) == 1 else (index,)
    mask = unwrapped(mask)
    return mask if isinstance(mask, Tracer) and mask.aval.dtype.kind == "b" else None


def _where_masked(x: Any, mask: Tracer, value: Any) -> Any:
    shape = s.shape_of(x)
    ndim = len(mask.shape)
    own = s.shape_of(value)
    rest = shape[ndim:]
    if mask.shape != shape[:ndim]:
        raise IndexError(
            f"a boolean index of shape {mask.shape} does not match the axes {shape[:ndim]} of the "
            f"array that it stands for.{place()}"
        )
    if (
        not _broadcasts(own[-len(rest) :] if rest else (), rest)
        or math.prod(own[: max(len(own) - len(rest), 0)]) != 1
    ):
        _traced_entry(mask)  # as many values as the mask selects
    value = s.reshape(value, own[max(len(own) - len(rest), 0) :])
    mask = s.reshape(mask, (*mask.shape, *(1,) * len(rest)))
    return p.select.bind(s.broadcast_to(mask, shape), s.broadcast_to(value, shape), x)


def _fitted(value: Any, aval: ShapedArray, shape: Shape, kind: str) -> Any:
    """The values of an update in the dtype of the array and the shape of the indexed part."""
    value = as_value(value, f"x.at[index].{kind}")
    dtype = aval.dtype
    if aval_of(value).dtype is not dtype:
        promoted = result_dtype([aval.strong(), aval_of(value)])
        both_exact = promoted.kind in "iu" and dtype.kind in "iu"
        if not (both_exact or np.can_cast(promoted, dtype, "same_kind")):
            error = _refused_dtype(value, aval, kind, promoted)
            if dialect() is NUMPY:
                raise error
            warnings.warn(str(error), FutureWarning, stacklevel=4)  # and converts, as JAX does
            if is_complex(aval_of(value).dtype):
                value = p.real.bind(value)
    return _spread(to_dtype(value, dtype), aval, shape, f"x.at[index].{kind}")


def _spread(value: Any, aval: ShapedArray, shape: Shape, what: str) -> Any:
    """The values of an update in the shape of the indexed part, as NumPy broadcasts them."""
    own = s.shape_of(value)
    extra = len(own) - len(shape)
    if extra > 0 and math.prod(own[:extra]) == 1:
        value, own = s.reshape(value, own[extra:]), own[extra:]
    if own != shape and not _broadcasts(own, shape):
        raise ShapeError(
            f"{what}: the indexed part of {aval} has shape {shape}, to which a value of shape "
            f"{own} does not broadcast.{place()}"
        )
    return s.broadcast_to(value, shape)


def _refused_dtype(value: Any, aval: ShapedArray, kind: str, promoted: Any) -> DtypeError:
    return DtypeError(
        f"x.at[index].{kind}: {aval_of(value)} does not fit into {aval} without loss."
        f"{place()}\n"
        f"Convert the array first, x.astype(np.{promoted}), or the value, "
        f"value.astype(np.{aval.dtype})."
    )


def _broadcasts(own: Shape, shape: Shape) -> bool:
    tail = shape[len(shape) - len(own) :]
    return len(own) <= len(shape) and all(m in (1, n) for m, n in zip(own, tail, strict=True))


def _overwrite(x: Any, plan: _Plan, value: Any) -> Any:
    box = Box(plan.shape, plan.ranges)
    if box.is_dense:
        return box.overwritten(x, value)
    return _scatter(x, plan, value, "set", None, True)


def _scatter(x: Any, plan: _Plan, value: Any, kind: str, mode: str | None, unique: bool) -> Any:
    """By index arrays: slices that do not span their axis become index arrays too."""
    kept = [axis for axis in plan.layout if axis is not None]
    partial = [axis for axis in kept if not plan.is_whole(axis)]
    indices: dict[int, Any] = {axis: np.int64(i) for axis, i in plan.numbers.items()}
    for axis, index in zip(plan.arrays, _index_arrays(plan, mode, False), strict=True):
        shape = s.shape_of(index)
        indices[axis] = s.reshape(index, (*shape, *(1,) * len(partial))) if shape else index
    for j, axis in enumerate(partial):
        places = np.array(plan.slices[axis], np.int64)
        indices[axis] = places.reshape((-1, *(1,) * (len(partial) - 1 - j)))
    axes = tuple(sorted(indices))
    scatter = SCATTERS[kind](axes, _writing_mode(plan, mode), unique)
    value = _rows_first(value, plan, partial)
    return scatter.bind(x, value, *(indices[axis] for axis in axes))


def _rows_first(value: Any, plan: _Plan, partial: list[int]) -> Any:
    """Updates with the axes of index arrays first, then those of ``partial``, then the others."""
    index_shape = plan.index_shape
    before = [axis for axis in plan.layout[: plan.front] if axis is not None]
    after = [axis for axis in plan.layout[plan.front :] if axis is not None]
    lengths = {axis: len(plan.slices[axis]) for axis in (*before, *after)}
    shape = (*(lengths[a] for a in before), *index_shape, *(lengths[a] for a in after))
    value = s.reshape(value, shape)
    places = {axis: i for i, axis in enumerate(before)}
    places |= {axis: len(before) + len(index_shape) + i for i, axis in enumerate(after)}
    own = range(len(before), len(before) + len(index_shape))
    rest = [axis for axis in (*before, *after) if axis not in partial]
    order = (*own, *(places[a] for a in partial), *(places[a] for a in rest))
    return value if order == tuple(range(len(shape))) else s.Transpose(order).bind(value)


def _repeated(x: Any, applied: Callable[[Any, Any], Any], times: Any) -> Any:
    """Repeat an update for elements that an index names more than once.

    Args:
        x: The array after the first round.
        applied: A round, of the array and of the places that take part.
        times: How often the element at each place is named.
    """
    if not isinstance(times, Tracer):
        for done in range(1, int(np.max(times, initial=0))):
            x = applied(x, times > done)
        return x

    def is_behind(done: Any) -> Any:
        # In some dialects the values that a loop carries have fewer bits.
        return p.greater.bind(times, p.convert(done, times.dtype))

    def is_left(state: tuple[Any, Any]) -> Any:
        return ReduceAny(tuple(range(len(times.shape)))).bind(is_behind(state[0]))

    def one_more(state: tuple[Any, Any]) -> tuple[Any, Any]:
        done, x = state
        return p.add.bind(done, aval_of(done).dtype.type(1)), applied(x, is_behind(done))

    return while_loop(is_left, one_more, (np.int64(1), x))[1]


def _combining(operation: str, statement: str, note: str = "") -> Callable[..., Any]:
    """A method that combines elements at an index with values."""

    def method(
        self: IndexUpdateRef,
        values: Any,
        *,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        return self._combine(
            operation, values, mode, unique_indices, fill_value, out_sharding, wrap_negative_indices
        )

    method.__name__ = "multiply" if operation == "mul" else operation
    method.__qualname__ = f"IndexUpdateRef.{method.__name__}"
    method.__doc__ = f"``{statement}``" + (f"; {note}." if note else ".")
    return method


class IndexUpdateRef:
    """Elements of an array, named by an index: ``x.at[index]``.

    Every method returns a new array. All take ``mode``, which says what happens with indices out
    of bounds: ``"drop"`` or ``"fill"`` (reading gives ``fill_value``, writing does nothing),
    ``"clip"``, ``"wrap"``, ``"promise_in_bounds"`` (others are an error); by default known indices
    raise IndexError, traced ones are clamped for reading and dropped for writing. With
    ``unique_indices=True`` the caller promises that no element is named twice. With
    ``wrap_negative_indices=False`` negative indices are out of bounds.
    ``indices_are_sorted`` and ``out_sharding`` are accepted and of no use here.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def _plan(self, mode: str | None, wrap_negative_indices: bool) -> _Plan:
        return _plan(aval_of(self.array), self.index, mode, wrap_negative_indices)

    def _combine(
        self,
        kind: str,
        values: Any,
        mode: str | None,
        unique_indices: bool,
        fill_value: Any,
        out_sharding: Any,
        wrap_negative_indices: bool,
    ) -> Any:
        if out_sharding is not None:
            check_placement(f"x.at[index].{kind}", out_sharding=out_sharding)
        if fill_value is not None:
            raise ArgumentError(f"x.at[index].{kind} reads nothing, so it has no fill_value.")
        mode = _named_mode(mode, "drop")
        if kind == "set" and mode is None and wrap_negative_indices:
            key, aval = known_key(self.index), aval_of(self.array)
            box = None if key is None else known_box(aval.shape, key)
            if box is not None and box.is_dense:
                value = _fitted(values, aval, box.layout, kind)
                return box.overwritten(strong(self.array), value)
        plan = self._plan(mode, wrap_negative_indices)
        return _update(self.array, plan, values, kind, mode, unique_indices)

    def get(
        self,
        *,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """``x[index]``."""
        if out_sharding is not None:
            check_placement("x.at[index].get", out_sharding=out_sharding)
        mode = _named_mode(mode, "clip")
        plan = self._plan(mode or (None if fill_value is None else "fill"), wrap_negative_indices)
        return _get(self.array, plan, mode, fill_value)

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """``x[index] = func(x[index])``; an element that is named twice gets it twice.

        The function is one of arrays, which works element by element.
        """
        mode = _named_mode(mode, "clip")
        plan = self._plan(mode, wrap_negative_indices)

        def applied(x: Any, again: Any = None) -> Any:
            old = _get(x, plan, mode, None)
            new = func(old)
            if again is not None:
                new = p.select.bind(again, to_dtype(as_value(new), aval_of(old).dtype), old)
            return _update(x, plan, new, "set", mode, unique_indices)

        once = applied(self.array)
        if unique_indices or not plan.arrays:
            return once
        return _repeated(once, applied, self._times_named(plan, mode))

    def _times_named(self, plan: _Plan, mode: str | None) -> Any:
        """How often the element is named that stands at each place of ``x[index]``."""
        if plan.is_traced or mode is not None:
            zeros = np.zeros(s.shape_of(self.array), np.int64)
            options: dict[str, Any] = {"mode": mode}
            options["wrap_negative_indices"] = plan.counts_from_end
            counts = IndexUpdateRef(zeros, self.index).add(1, **options)
            return IndexUpdateRef(counts, self.index).get(**options)
        places = np.zeros(plan.index_shape, np.int64)
        for axis, index in plan.arrays.items():
            places = places * plan.shape[axis] + index
        _, number, counts = np.unique(places, return_inverse=True, return_counts=True)
        layout = plan.layout_shape
        shape = (*(1,) * plan.front, *plan.index_shape, *(1,) * (len(layout) - plan.front))
        return np.broadcast_to(counts[number.ravel()].reshape(shape), plan.result_shape)

    set = _combining("set", "x[index] = value", "of several values the last one stays")
    add = _combining("add", "x[index] += value", "an element that is named twice gets both")
    multiply = _combining("mul", "x[index] *= value", "an element that is named twice gets both")
    mul = multiply
    min = _combining("min", "x[index] = minimum(x[index], value)")
    max = _combining("max", "x[index] = maximum(x[index], value)")

    def subtract(self, values: Any, **options: Any) -> Any:
        """``x[index] -= value``; an element that is named twice loses both."""
        return self.add(elementwise.negative(values), **options)

    sub = subtract

    def divide(self, values: Any, **options: Any) -> Any:
        """``x[index] /= value``; an element that is named twice is divided by both."""
        ones = np.ones(s.shape_of(self.array), aval_of(self.array).dtype)
        return elementwise.divide(
            self.array, IndexUpdateRef(ones, self.index).mul(values, **options)
        )

    def power(
        self,
        values: Any,
        *,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
        **options: Any,
    ) -> Any:
        """``x[index] **= value``; an element that is named twice is raised twice."""
        reading: dict[str, Any] = {
            "mode": _named_mode(mode, "clip"),
            "wrap_negative_indices": wrap_negative_indices,
        }
        writing = reading | options
        if not self._plan(**reading).arrays:
            return self.set(elementwise.power(self.get(**reading), values), **writing)
        # Where an index occurs twice, both occurrences see the product of the exponents.
        ones = np.ones(s.shape_of(self.array), aval_of(self.array).dtype)
        exponents = IndexUpdateRef(ones, self.index).mul(values, **writing)
        exponents = IndexUpdateRef(exponents, self.index).get(**reading)
        return self.set(elementwise.power(self.get(**reading), exponents), **writing)


class IndexUpdateHelper:
    """``x.at``: to be indexed, see `IndexUpdateRef`."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"at({aval_of(self.array)})"


def at(x: Any) -> IndexUpdateHelper:
    """Functional updates: ``at(x)[index].set(value)`` is a copy of ``x`` with elements replaced.

    Traced arrays have it as the property ``x.at``; this function serves NumPy's arrays too.

    Returns: An object to be indexed, whose items have the methods ``set``, ``add``, ``subtract``,
        ``multiply``, ``divide``, ``power``, ``min``, ``max``, ``apply`` and ``get``.

    Example:
        >>> x = np.zeros(4)
        >>> fg.numpy.at(x)[[1, 1, 3]].add(1.0)
        array([0., 2., 0., 1.])
        >>> fg.grad(lambda x: (x.at[1:3].multiply(5.0) ** 2).sum())(np.ones(4))
        array([ 2., 50., 50.,  2.])
    """
    return IndexUpdateHelper(as_value(x, "at"))
