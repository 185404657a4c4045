"""Reading and writing at places that are computed: gather, scatter, slices with traced starts.

`Gather` is NumPy's ``x[i, j]`` for integer index arrays, with the indexed axes moved to the front;
the scatters are its counterparts for writing. They are each other's transpose, with the same
treatment (``mode``) of indices out of bounds, so that adjoints are exact:

* ``"raise"``: an index in ``-n .. n-1`` is valid, negative ones count from the end; others raise
  `OutOfBoundsError`;
* ``"fill"``: valid as before; reading elsewhere gives the fill value, writing elsewhere is dropped;
* ``"clip"``: indices are clipped to ``0 .. n-1`` (so negative ones become 0);
* ``"wrap"``: indices are taken modulo ``n``.

Static integers and slices are `primitives.shape.Slice`; masks must be made integers above.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from funcgrad.core.avals import Shape, ShapedArray, aval_of, shaped
from funcgrad.core.primitive import BatchDim, Linear, Primitive, Value, is_linear, with_differential
from funcgrad.dtypes import INT64, UINT64
from funcgrad.errors import DtypeError, OutOfBoundsError, ShapeError
from funcgrad.lowering import Extern, Form, Lookup, Replace, Scatter, Window
from funcgrad.observers.checks import INDEX, Fault, Kinds
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import broadcast_shapes, instantiate, shape_of, zeros_like_aval
from funcgrad.primitives.ordering import ArgSort
from funcgrad.primitives.shape import (
    Pad,
    Transpose,
    broadcast_to,
    inverse_permutation,
    moveaxis_from_front,
    moveaxis_to_front,
    reshape,
)

MODES = ("raise", "fill", "clip", "wrap")


def default_fill(dtype: np.dtype[Any]) -> Any:
    """Value of reads out of bounds with mode "fill": nan, or an extreme integer, or True."""
    if dtype.kind in "fc":
        return dtype.type(np.nan)
    if dtype.kind == "b":
        return np.True_
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if dtype.kind == "i" else limits.max)


def _check_indices(
    name: str, x: ShapedArray, axes: Sequence[int], indices: Sequence[ShapedArray]
) -> None:
    if len(axes) != len(indices) or any(not 0 <= a < x.ndim for a in axes):
        raise ShapeError(
            f"{name}: axes {tuple(axes)} of {x} need one index array each, got {len(indices)}."
        )
    for axis, index in zip(axes, indices, strict=True):
        if index.dtype.kind not in "iu":
            raise DtypeError(
                f"{name}: the index of axis {axis} of {x} must be of integers, got {index}. Use "
                ".astype(int), or np.flatnonzero for a mask."
            )


def _rest(ndim: int, axes: Sequence[int]) -> tuple[int, ...]:
    """The axes that are not indexed, in order."""
    return tuple(i for i in range(ndim) if i not in axes)


_FIRST = tuple(range(64))
"""The axes of an array, of which NumPy has 64 at most."""


def _front(x: Any, axes: Sequence[int]) -> Any:
    """A view with the indexed axes in front, in the order of ``axes``."""
    return x if axes == _FIRST[: len(axes)] else x.transpose((*axes, *_rest(x.ndim, axes)))


_FARTHEST = np.uint64(np.iinfo(INT64).max)
"""Replacement for all unsigned indices beyond it: no axis is as long."""


def as_index(x: Value) -> Value:
    """Integers as int64, those beyond it as the greatest one."""
    return p.convert(p.minimum.bind(x, _FARTHEST) if aval_of(x).dtype == UINT64 else x, INT64)


UNSIGNED: Mapping[np.dtype[Any], type] = {
    np.dtype(f"{kind}{size}"): getattr(np, f"uint{8 * size}")
    for kind in "iu"
    for size in (1, 2, 4, 8)
}
"""The dtypes of integers, and unsigned ones of as many bits."""


def lie_inside(index: Any, n: int) -> bool:
    """Whether integers, of a dtype of `UNSIGNED`, all lie in ``0 .. n-1``.

    Read as unsigned, negative ones are the largest: one extreme value tells.
    """
    unsigned = index.view(UNSIGNED[index.dtype])
    return not index.size or bool(np.maximum.reduce(unsigned, axis=None) < n)


def _integers(index: Any) -> Any:
    index = np.asarray(index)
    if index.dtype == UINT64:
        index = np.minimum(index, _FARTHEST)
    return index.astype(np.intp, copy=False)


class _Places:
    """Concrete indices made valid: all in ``0 .. n-1``, and a mask of those that were.

    Args:
        x: The array that is indexed.
        axes: Its indexed axes.
        indices: One integer array per axis.
        mode: One of `MODES`.
    """

    def __init__(self, x: Any, axes: Sequence[int], indices: Sequence[Any], mode: str) -> None:
        self.valid: Any = None
        self.indices = [
            self._resolve(x, axis, np.asarray(index), mode)
            for axis, index in zip(axes, indices, strict=True)
        ]

    def _resolve(self, x: Any, axis: int, index: Any, mode: str) -> Any:
        n = x.shape[axis]
        if mode == "wrap" and n and index.dtype == UINT64:
            index = index % UINT64.type(n)
        index = _integers(index)
        if lie_inside(index, n):  # as most do
            return index
        low, high = index.min(), index.max()
        if mode in ("clip", "wrap"):
            if not n:
                raise out_of_bounds(x, axis, index)
            return np.clip(index, 0, n - 1) if mode == "clip" else np.remainder(index, n)
        if not (-n <= low and high < n):
            if mode == "raise":
                raise out_of_bounds(x, axis, index)
            is_valid = (index >= -n) & (index < n)
            self.valid = is_valid if self.valid is None else self.valid & is_valid
        return np.where(index < 0, index + n, index)

    def surviving(self) -> tuple[list[Any], Any]:
        """One-dimensional indices of the valid places, and the mask over the index shape."""
        shape = np.broadcast_shapes(self.valid.shape, *(i.shape for i in self.indices))
        mask = np.broadcast_to(self.valid, shape)
        return [np.broadcast_to(i, mask.shape)[mask] for i in self.indices], mask


def out_of_bounds(x: Any, axis: int, index: Any) -> OutOfBoundsError:
    """The error that names the first index out of bounds, its axis and its length."""
    n = np.shape(x)[axis]
    wrong = np.argwhere((index < -n) | (index >= n)) if n else np.zeros((1, index.ndim), int)
    place = tuple(int(i) for i in wrong[0])
    return _out_of_bounds_at(aval_of(x), axis, int(index[place]), place)


def _out_of_bounds_at(x: ShapedArray, axis: int, index: int, place: Shape) -> OutOfBoundsError:
    n = x.shape[axis]
    where = f" (element {list(place)} of the index array)" if place else ""
    valid = f"Valid are {-n} to {n - 1}" if n else "No index is valid"
    return OutOfBoundsError(
        f"index {index}{where} is out of bounds for axis {axis} of {x}, which "
        f'has length {n}. {valid}; to clip, wrap or drop such indices pass mode="clip", "wrap" or '
        '"fill", as in x.at[i].get(mode="clip").'
    )


def _refused(
    axes: Sequence[int], operand: int, value: int, position: int, x: ShapedArray, shape: Shape
) -> OutOfBoundsError:
    """The error of a compiled lookup."""
    place = tuple(int(i) for i in np.unravel_index(position, shape)) if position >= 0 else ()
    return _out_of_bounds_at(x.strong(), axes[operand], value, place)


def _is_native(axes: Sequence[int], mode: str, x: ShapedArray) -> bool:
    """Whether a kernel can compute the places: along empty axes nothing can be clipped."""
    return mode not in ("clip", "wrap") or all(x.shape[a] for a in axes)


def _checked_places(
    primitive: Gather | _Scatter, args: Sequence[Value], indices: Sequence[Value], kinds: Kinds
) -> tuple[Any, Sequence[Fault]]:
    """Evaluation, and where indices are out of bounds: what would raise is then filled."""
    if INDEX not in kinds or primitive.mode == "wrap":
        return primitive.bind(*args), ()
    is_counted_back = primitive.mode != "clip"
    x = aval_of(args[0]).strong()
    faults = [
        _outside(x, axis, index, is_counted_back)
        for axis, index in zip(primitive.axes, indices, strict=True)
    ]
    quiet = replace(primitive, mode="fill") if primitive.mode == "raise" else primitive
    return quiet.bind(*args), faults


def _outside(x: ShapedArray, axis: int, index: Value, is_counted_back: bool) -> Fault:
    """Error for integers that are no indices along an axis."""
    n = x.shape[axis]
    number = as_index(index)
    low = np.int64(-n if is_counted_back else 0)
    inside = p.bitwise_and.bind(p.greater_equal.bind(number, low), p.less.bind(number, np.int64(n)))
    # Callers that clip have already resolved negative indices.
    counted = "" if is_counted_back else ", counted from the start,"
    message = f"index {{}}{counted} is out of bounds for axis {axis} of {x}, which has length {n}"
    return Fault(INDEX, message, p.bitwise_not.bind(inside), (number,))


def _checked_starts(
    primitive: DynamicSlice | DynamicUpdateSlice,
    args: Sequence[Value],
    sizes: Shape,
    starts: Sequence[Value],
    kinds: Kinds,
) -> tuple[Any, Sequence[Fault]]:
    """Evaluation, and where starts are clamped."""
    out = primitive.bind(*args)
    if INDEX not in kinds:
        return out, ()
    x = aval_of(args[0]).strong()
    faults = []
    for axis, (n, m, start) in enumerate(zip(x.shape, sizes, starts, strict=True)):
        number = as_index(start)
        is_wrong = p.not_equal.bind(number, _clamp(start, n - m))
        message = (
            f"start {{}} of a window of length {m} is out of bounds for axis {axis} of {x}, which "
            f"has length {n}"
        )
        faults.append(Fault(INDEX, message, is_wrong, (number,)))
    return out, faults


def _read_differential(
    self: Gather, primals: Sequence[Value], slots: Sequence[Linear | None]
) -> tuple[Any, Any, Any]:
    return self.impl(*primals), self._linear(), [slots[0], *primals[1:]]


class Gather(Primitive):
    """Elements of ``x`` at index arrays of some of its axes.

    ``Gather(axes).bind(x, *indices)``: the index arrays broadcast together; the result has their
    axes first, then the axes of ``x`` that are not indexed, in order.

    Args:
        axes: One axis of ``x`` per index array, distinct.
        mode: What happens with indices out of bounds, one of `MODES`.
        fill_value: Scalar for mode "fill"; ``None`` is `default_fill`.
    """

    axes: tuple[int, ...]
    mode: str = "raise"
    fill_value: Any = None

    makes_no_nans = True

    @property
    def may_refuse(self) -> bool:
        return self.mode == "raise"

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Fault]]:
        return _checked_places(self, args, args[1:], kinds)

    def impl(self, x: Any, *indices: Any) -> Any:
        x = np.asarray(x)
        if self.mode == "raise":
            return self._take(x, indices)
        places = _Places(x, self.axes, indices, self.mode)
        if places.valid is None:
            return self._take(x, places.indices)
        return self._take_filled(x, places)

    def _take(self, x: Any, indices: Sequence[Any]) -> Any:
        try:
            if self.axes == (0,):
                return x.take(_integers(indices[0]), 0)
            return _front(x, self.axes)[tuple(map(_integers, indices))]
        except IndexError:
            _Places(x, self.axes, indices, "raise")
            raise

    def _take_filled(self, x: Any, places: _Places) -> Any:
        indices, mask = places.surviving()
        rest = tuple(x.shape[i] for i in _rest(x.ndim, self.axes))
        fill = default_fill(x.dtype) if self.fill_value is None else self.fill_value
        out = np.full((*mask.shape, *rest), fill, x.dtype)
        out[mask] = _front(x, self.axes)[tuple(indices)]
        return out

    def lower(self, x: ShapedArray, *indices: ShapedArray) -> Form:
        if not _is_native(self.axes, self.mode, x):
            return Extern()
        fill = default_fill(x.dtype) if self.fill_value is None else self.fill_value
        return Lookup(self.axes, self.mode, np.full((), fill, x.dtype)[()])

    def refusal(
        self, operand: int, value: int, position: int, x: ShapedArray, *indices: ShapedArray
    ) -> Exception:
        return _refused(self.axes, operand, value, position, x, indices[operand].shape)

    def abstract_eval(self, x: ShapedArray, *indices: ShapedArray) -> ShapedArray:
        _check_indices(self.name, x, self.axes, indices)
        rest = tuple(x.shape[i] for i in _rest(x.ndim, self.axes))
        return shaped((*_index_shape(self.name, indices), *rest), x.dtype)

    @with_differential(_read_differential)
    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, *indices = primals
        return self.bind(x, *indices), self._linear().bind(tangents[0], *indices)

    def _linear(self) -> Gather:
        """The same places; zero is what linearity puts elsewhere."""
        return replace(self, fill_value=0) if self.mode == "fill" else self

    def transpose(self, ct: Any, x: Any, *indices: Any) -> Sequence[Any]:
        zeros = zeros_like_aval(shaped(x.shape, aval_of(ct).dtype))
        ct_x = ScatterAdd(self.axes, self.mode).bind(zeros, ct, *indices)
        return (ct_x, *(None,) * len(indices))

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        x, *indices = args
        x_dim, *index_dims = dims
        if x_dim is None:
            return self.bind(x, *_align(indices, index_dims)), 0
        shifted = tuple(a + 1 for a in self.axes)
        if all(d is None for d in index_dims):
            out = replace(self, axes=shifted).bind(x, *indices)
            return moveaxis_to_front(out, _index_ndim(indices)), 0
        aligned = _align(indices, index_dims)
        lanes = _lane_index(shape_of(x)[0], _index_ndim(aligned))
        return replace(self, axes=(0, *shifted)).bind(x, lanes, *aligned), 0


class Demand(Gather):
    """Zeros for numbers that are 0 or -1; others raise.

    ``Demand((0,), message=...).bind(np.zeros(1, int), numbers)``. See `demanded`.

    Args:
        message: What the error says, with a gap for what the number stands for.
        error: Its class.
    """

    message: str = ""
    error: type[Exception] = ValueError

    def impl(self, x: Any, *indices: Any) -> Any:
        try:
            return super().impl(x, *indices)
        except OutOfBoundsError:
            numbers = np.asarray(indices[0])
            first = numbers[(numbers < -1) | (numbers > 0)][0]
            raise self.refusal(0, int(first), -1, aval_of(x)) from None

    def refusal(
        self, operand: int, value: int, position: int, x: ShapedArray, *indices: ShapedArray
    ) -> Exception:
        return self.error(self.message.format(value - 1 if value > 0 else value + 1))

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Fault]]:
        if INDEX not in kinds:
            return self.bind(*args), ()
        x, number = args
        is_wrong = p.not_equal.bind(number, p.zero_of(number))
        value = p.select.bind(p.greater_equal.bind(number, np.int64(0)), number - 1, number + 1)
        quiet = Gather(self.axes, "fill").bind(x, number)
        return quiet, [Fault(INDEX, self.message, is_wrong, (value,))]


def demanded(
    numbers: Value, low: int, high: int, message: str, error: type[Exception] = ValueError
) -> Value:
    """Integers as int64, which raise an error when they are computed outside of ``low .. high``.

    Args:
        numbers: Integers.
        low: The least that is allowed.
        high: The greatest that is allowed.
        message: What the error says, with a gap ``{}`` for the first number that is not.
        error: Class of the error.
    """
    number = as_index(numbers)
    inside = p.bitwise_and.bind(
        p.greater_equal.bind(number, np.int64(low)), p.less.bind(number, np.int64(high + 1))
    )
    zero = np.int64(0)
    # Numbers outside, beside 0 and -1, which are a place in a table of one element.
    apart = p.select.bind(p.less.bind(number, zero), number - 1, number + 1)
    demand = Demand((0,), message=message, error=error)
    return p.add.bind(number, demand.bind(np.zeros(1, INT64), p.select.bind(inside, zero, apart)))


def _index_shape(name: str, indices: Sequence[ShapedArray]) -> Shape:
    return broadcast_shapes(f"the indices of {name}", indices) if indices else ()


def _index_ndim(indices: Sequence[Value]) -> int:
    return max((len(shape_of(i)) for i in indices), default=0)


def _align(indices: Sequence[Value], dims: Sequence[BatchDim]) -> list[Value]:
    """Axes of length 1 behind the batch axis, so that mapped and other indices broadcast."""
    ranks = [len(shape_of(i)) - (d is not None) for i, d in zip(indices, dims, strict=True)]
    rank = max(ranks)
    aligned = []
    for index, dim, own in zip(indices, dims, ranks, strict=True):
        if dim is not None and own < rank:
            size, *rest = shape_of(index)
            index = reshape(index, (size, *(1,) * (rank - own), *rest))
        aligned.append(index)
    return aligned


def _lane_index(size: int, ndim: int) -> Any:
    """``0 .. size-1`` along the first of ``ndim`` axes: every lane reads and writes itself."""
    return np.arange(size).reshape((size, *(1,) * (ndim - 1)))


class _Scatter(Primitive):
    """A copy of ``x`` with ``updates`` combined into the places that indices name.

    ``Scatter...(axes).bind(x, updates, *indices)``: ``updates`` has the shape that
    ``Gather(axes).bind(x, *indices)`` has.

    Args:
        axes: One axis of ``x`` per index array, distinct.
        mode: What happens with indices out of bounds, one of `MODES`; "fill" drops the update.
        unique_indices: The caller's promise that no place is named twice; makes derivatives
            cheaper.
    """

    axes: tuple[int, ...]
    mode: str = "raise"
    unique_indices: bool = False

    ufunc: ClassVar[Any] = None
    step: ClassVar[str]
    """Scalar expression: what a place holds when ``{1}`` comes to ``{0}``."""
    kinds: ClassVar[str] = "biufc"
    """Kinds of dtypes that the expression is for."""

    @property
    def may_refuse(self) -> bool:
        return self.mode == "raise"

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Fault]]:
        return _checked_places(self, args, args[2:], kinds)

    def impl(self, x: Any, updates: Any, *indices: Any) -> Any:
        x, updates = np.asarray(x), np.asarray(updates)
        places = _Places(x, self.axes, indices, self.mode)
        index = places.indices
        if places.valid is not None:
            index, mask = places.surviving()
            updates = updates[mask]
        front = np.array(_front(x, self.axes), order="C")
        self._write(front, index, updates)
        is_ordered = self.axes == _FIRST[: len(self.axes)]
        return front if is_ordered else front.transpose(_order_back(x.ndim, self.axes))

    def _write(self, front: Any, index: Sequence[Any], updates: Any) -> None:
        """Combine updates into ``front`` in place: by rows if they are long, else by elements."""
        k = len(self.axes)
        rows = front.reshape((math.prod(front.shape[:k]), math.prod(front.shape[k:])))
        if not rows.size or not updates.size:
            return
        places = _row_numbers(index, front.shape[:k])
        width = rows.shape[1]
        values = updates.reshape(places.size, width)
        if width >= _ROW:
            for place, value in zip(places.tolist(), values, strict=True):
                row = rows[place]
                self.ufunc(row, value, out=row)
            return
        if width > 1:
            places = (places[:, None] * width + np.arange(width)).reshape(-1)
        with np.errstate(invalid="ignore"):  # maximum.at reports every nan
            self.ufunc.at(rows.reshape(-1), places, values.reshape(-1))

    def lower(self, x: ShapedArray, updates: ShapedArray, *indices: ShapedArray) -> Form:
        if x.dtype.kind not in self.kinds or not _is_native(self.axes, self.mode, x):
            return Extern()
        return Scatter(self.axes, self.mode, self.step)

    def refusal(
        self,
        operand: int,
        value: int,
        position: int,
        x: ShapedArray,
        updates: ShapedArray,
        *indices: ShapedArray,
    ) -> Exception:
        return _refused(self.axes, operand, value, position, x, indices[operand].shape)

    def abstract_eval(
        self, x: ShapedArray, updates: ShapedArray, *indices: ShapedArray
    ) -> ShapedArray:
        _check_indices(self.name, x, self.axes, indices)
        if updates.dtype != x.dtype:
            raise DtypeError(f"{self.name}: the updates must have dtype {x.dtype}, got {updates}.")
        rest = tuple(x.shape[i] for i in _rest(x.ndim, self.axes))
        expected = (*_index_shape(self.name, indices), *rest)
        if updates.shape != expected:
            raise ShapeError(
                f"{self.name}: the places in {x} have shape {expected}, the updates are {updates}. "
                "Broadcast the updates to that shape."
            )
        return shaped(x.shape, x.dtype)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = next(shape_of(a)[0] for a, d in zip(args, dims, strict=True) if d is not None)
        x, updates, *indices = args
        x, updates = (
            a if d is not None else broadcast_to(a, (size, *shape_of(a)))
            for a, d in zip((x, updates), dims, strict=False)
        )
        shifted = tuple(a + 1 for a in self.axes)
        if all(d is None for d in dims[2:]):
            updates = moveaxis_from_front(updates, _index_ndim(indices))
            return replace(self, axes=shifted).bind(x, updates, *indices), 0
        aligned = _align(indices, dims[2:])
        lanes = _lane_index(size, _index_ndim(aligned))
        return replace(self, axes=(0, *shifted)).bind(x, updates, lanes, *aligned), 0

    def _gather(self) -> Gather:
        """Reading at the same places; zero where an update is dropped."""
        return Gather(self.axes, self.mode, 0 if self.mode == "fill" else None)


def _row_numbers(index: Sequence[Any], lengths: Shape) -> Any:
    """Row-major numbers of places, one-dimensional."""
    number = index[0] if index else np.zeros((), np.intp)
    for i, n in zip(index[1:], lengths[1:], strict=True):
        number = number * n + i
    return number.reshape(-1)


_ROW = 128
"""Rows of at least this many elements are combined by one NumPy call each."""


class ScatterAdd(_Scatter):
    """``x`` with the updates added, each as often as its place is named."""

    ufunc = np.add
    step = "{0} + {1}"

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, updates, *indices = primals
        tx, tu = tangents[:2]
        out = self.bind(x, updates, *indices)
        return out, tx if tu is None else self.bind(instantiate(tx, x), tu, *indices)

    def transpose(self, ct: Any, x: Any, updates: Any, *indices: Any) -> Sequence[Any]:
        ct_updates = self._gather().bind(ct, *indices) if is_linear(updates) else None
        return (ct if is_linear(x) else None, ct_updates, *(None,) * len(indices))


class ScatterSet(_Scatter):
    """``x`` with elements replaced; of several updates of one place the last one stays."""

    step = "{1}"
    makes_no_nans = True

    def _write(self, front: Any, index: Sequence[Any], updates: Any) -> None:
        front[tuple(index)] = updates

    def overwritten(self, x: Any, updates: Any, *indices: Any) -> Any:
        """The elements that are replaced, in the shape of the updates."""
        return self._gather().bind(x, *indices)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, updates, *indices = primals
        tx, tu = tangents[:2]
        if tx is None and tu is None:
            return self.bind(x, updates, *indices), None
        # The same update wins in the tangent, since the same indices are written in one order.
        tangent = self.bind(instantiate(tx, x), instantiate(tu, updates), *indices)
        return self.bind(x, updates, *indices), tangent

    def transpose(self, ct: Any, x: Any, updates: Any, *indices: Any) -> Sequence[Any]:
        ct_x = ct_updates = None
        shape = shape_of(updates) if not is_linear(updates) else updates.shape
        if is_linear(x):
            ct_x = self.bind(ct, np.zeros(shape, ct.dtype), *indices)
        if is_linear(updates):
            ct_updates = self._gather().bind(ct, *indices)
            if not self._is_unique(indices):
                winner = self._winners(ct, indices)
                rest = (1,) * (len(shape) - len(shape_of(winner)))
                winner = reshape(winner, (*shape_of(winner), *rest))
                ct_updates = p.select.bind(winner, ct_updates, np.zeros((), ct.dtype)[()])
        return (ct_x, ct_updates, *(None,) * len(indices))

    def _is_unique(self, indices: Sequence[Value]) -> bool:
        return self.unique_indices or all(math.prod(shape_of(i)) == 1 for i in indices)

    def _winners(self, like: Value, indices: Sequence[Value]) -> Value:
        """Mask of the updates that stay: write their numbers, read back, and compare."""
        lengths = tuple(shape_of(like)[a] for a in self.axes)
        shape = np.broadcast_shapes(*(shape_of(i) for i in indices))
        numbers = np.arange(math.prod(shape)).reshape(shape)
        axes = tuple(range(len(lengths)))
        written = ScatterSet(axes, self.mode).bind(np.full(lengths, -1), numbers, *indices)
        read = Gather(axes, self.mode, -1 if self.mode == "fill" else None).bind(written, *indices)
        return p.equal.bind(read, numbers)


class ScatterMul(_Scatter):
    """``x`` with the updates multiplied in, each as often as its place is named."""

    ufunc = np.multiply
    step = "{0} * {1}"

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, updates, *indices = primals
        tx, tu = tangents[:2]
        terms = []
        if tx is not None:
            terms.append(self.bind(tx, updates, *indices))
        if tu is not None:
            slope = self._gather().bind(x, *indices)
            if not self.unique_indices:
                slope = p.mul.bind(slope, self._product_of_others(x, updates, indices))
            writing = ScatterAdd(self.axes, self.mode, self.unique_indices)
            zeros = zeros_like_aval(aval_of(x).strong())
            terms.append(writing.bind(zeros, p.scale.bind(tu, slope), *indices))
        out = self.bind(x, updates, *indices)
        return out, (p.add.bind(*terms) if len(terms) == 2 else terms[0] if terms else None)

    def transpose(self, ct: Any, x: Any, updates: Any, *indices: Any) -> Sequence[Any]:
        return (self.bind(ct, updates, *indices), None, *(None,) * len(indices))

    def _product_of_others(self, x: Value, updates: Value, indices: Sequence[Value]) -> Value:
        """For every update the product of all others of the same place, without division.

        Sorted by place, it is the product of those before and those behind within a group.
        """
        shape = shape_of(updates)
        lengths = [shape_of(x)[a] for a in self.axes]
        groups = self._group_numbers(lengths, indices)
        n = math.prod(shape_of(groups))
        if n <= 1:
            return np.ones(shape, aval_of(updates).dtype)
        groups = reshape(groups, (n,))
        order = ArgSort(0, stable=True).bind(groups)
        first = Gather((0,))
        labels = first.bind(groups, order)
        values = first.bind(reshape(updates, (n, math.prod(shape) // n)), order)
        others = p.mul.bind(
            _exclusive_products(values, labels, 1), _exclusive_products(values, labels, -1)
        )
        back = ScatterSet((0,), "raise", True)
        unsorted = back.bind(np.zeros(shape_of(others), aval_of(others).dtype), others, order)
        return reshape(unsorted, shape)

    def _group_numbers(self, lengths: Sequence[int], indices: Sequence[Value]) -> Value:
        """One integer per place; -1 for all that are dropped."""
        number: Value = np.zeros((), INT64)
        valid: Value = None
        for n, index in zip(lengths, indices, strict=True):
            place, ok = _resolve(index, n, self.mode)
            number = p.add.bind(p.mul.bind(number, np.int64(n)), place)
            if ok is not None:
                valid = ok if valid is None else p.bitwise_and.bind(valid, ok)
        return number if valid is None else p.select.bind(valid, number, np.int64(-1))


def index_within(index: Value, n: int, mode: str) -> Value:
    """An index as int64, by modes "clip" and "wrap" in ``0 .. n-1``, by others as it is."""
    if mode == "wrap" and aval_of(index).dtype == UINT64:
        return p.convert(p.remainder.bind(index, UINT64.type(n)), INT64)
    index = as_index(index)
    if mode == "wrap":
        return p.remainder.bind(index, np.int64(n))
    return _clamp(index, n - 1) if mode == "clip" else index


def _resolve(index: Value, n: int, mode: str) -> tuple[Value, Value | None]:
    """An index in ``0 .. n-1``, and for mode "fill" whether it was one."""
    zero, length = np.int64(0), np.int64(n)
    index = index_within(index, n, mode)
    if mode in ("clip", "wrap"):
        return index, None
    counted = p.select.bind(p.less.bind(index, zero), p.add.bind(index, length), index)
    if mode == "raise":
        return counted, None
    inside = p.bitwise_and.bind(p.greater_equal.bind(counted, zero), p.less.bind(counted, length))
    return counted, inside


def _exclusive_products(values: Value, labels: Value, step: int) -> Value:
    """Products of the rows before (``step=1``) or behind (``-1``) within groups of equal labels.

    Doubling: after the round with distance d every row holds the product of 2 d rows.
    """
    n = shape_of(values)[0]
    product = _neighbour(values, labels, step)
    distance = 1
    while distance < n:
        product = p.mul.bind(product, _neighbour(product, labels, step * distance))
        distance *= 2
    return product


def _neighbour(values: Value, labels: Value, distance: int) -> Value:
    """The row at ``-distance``, or ones if it is of another group or outside."""
    one = aval_of(values).dtype.type(1)
    rows = Pad((distance, 0), (-distance, 0), (0, 0)).bind(values, one)
    marks = Pad((distance,), (-distance,), (0,)).bind(labels, np.int64(-2))
    return p.select.bind(reshape(p.equal.bind(marks, labels), (shape_of(labels)[0], 1)), rows, one)


class _ScatterExtreme(_Scatter):
    """The larger or smaller of ``x`` and all updates of a place; ties share the derivative."""

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, updates, *indices = primals
        tx, tu = tangents[:2]
        out = self.bind(x, updates, *indices)
        if tx is None and tu is None:
            return out, None
        dtype = aval_of(x).dtype
        x_attains = p.convert(p.equal.bind(x, out), dtype)
        u_attains = p.convert(p.equal.bind(updates, self._gather().bind(out, *indices)), dtype)
        total = ScatterAdd(self.axes, self.mode)
        # Where the result is nan no element attains it: divide by one, so the derivative is zero.
        count = p.maximum.bind(total.bind(x_attains, u_attains, *indices), dtype.type(1))
        tx_part = p.scale.bind(instantiate(tx, x), x_attains)
        tu_part = p.scale.bind(instantiate(tu, updates), u_attains)
        return out, p.unscale.bind(total.bind(tx_part, tu_part, *indices), count)


class ScatterMax(_ScatterExtreme):
    """``x`` with the maximum of itself and the updates at every named place."""

    ufunc = np.maximum
    step = "maximum({0}, {1})"
    kinds = "biuf"


class ScatterMin(_ScatterExtreme):
    """``x`` with the minimum of itself and the updates at every named place."""

    ufunc = np.minimum
    step = "minimum({0}, {1})"
    kinds = "biuf"


SCATTERS: dict[str, type[_Scatter]] = {
    "set": ScatterSet,
    "add": ScatterAdd,
    "mul": ScatterMul,
    "min": ScatterMin,
    "max": ScatterMax,
}


def along_axis_indices(shape: Shape, index: Value, axis: int) -> list[Value]:
    """Index arrays of all axes that make `Gather` read ``index`` along one axis only.

    Args:
        shape: Shape of the array to be indexed.
        index: Integers, of as many axes; along the others than ``axis`` it broadcasts with
            ``shape``.
        axis: The axis that ``index`` counts along, non-negative.
    """
    ndim = len(shape)
    return [
        index if i == axis else np.arange(n).reshape([-1 if j == i else 1 for j in range(ndim)])
        for i, n in enumerate(shape)
    ]


def take_along_axis(
    x: Value, index: Value, axis: int, mode: str = "raise", fill_value: Any = None
) -> Value:
    """``x`` at ``index`` along ``axis``, element by element in the other axes."""
    shape = shape_of(x)
    gather = Gather(tuple(range(len(shape))), mode, fill_value)
    return gather.bind(x, *along_axis_indices(shape, index, axis))


def _clamp(start: Value, room: int) -> Value:
    index = as_index(start)
    return p.minimum.bind(p.maximum.bind(index, np.int64(0)), np.int64(room))


def _windows(
    shape: Shape, sizes: Shape, starts: Sequence[Value]
) -> tuple[tuple[int, ...], list[Value]]:
    """Axes that a window does not fill, and the indices of its elements along them.

    A batched start has one axis, in front; every indexed axis gets one of its own behind it.
    """
    axes = tuple(i for i, (n, m) in enumerate(zip(shape, sizes, strict=True)) if m < n)
    indices = []
    for k, axis in enumerate(axes):
        start = _clamp(starts[axis], shape[axis] - sizes[axis])
        lanes = shape_of(start)
        start = reshape(start, (*lanes, *(1,) * len(axes))) if lanes else start
        steps = np.arange(sizes[axis]).reshape([-1 if j == k else 1 for j in range(len(axes))])
        indices.append(p.add.bind(start, steps))
    return axes, indices


def _check_starts(name: str, x: ShapedArray, sizes: Shape, starts: Sequence[ShapedArray]) -> None:
    if len(sizes) != x.ndim or any(not 0 <= m <= n for m, n in zip(sizes, x.shape, strict=True)):
        raise ShapeError(f"{name}: a window of shape {sizes} does not fit into {x}.")
    if len(starts) != x.ndim or any(s.shape or s.dtype.kind not in "iu" for s in starts):
        types = ", ".join(map(str, starts))
        raise ShapeError(f"{name}: {x} needs one integer scalar per axis as start, got {types}.")


class DynamicSlice(Primitive):
    """The window of shape ``sizes`` of ``x`` at traced scalar ``starts``.

    ``bind(x, *starts)``. Starts are clamped so that the window lies inside (JAX's rule).
    """

    sizes: tuple[int, ...]

    makes_no_nans = True

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Fault]]:
        return _checked_starts(self, args, self.sizes, args[1:], kinds)

    def lower(self, x: ShapedArray, *starts: ShapedArray) -> Form:
        return Window(self.sizes)

    def impl(self, x: Any, *starts: Any) -> Any:
        x = np.asarray(x)
        return x[_window(x.shape, self.sizes, starts)]

    def abstract_eval(self, x: ShapedArray, *starts: ShapedArray) -> ShapedArray:
        _check_starts(self.name, x, self.sizes, starts)
        return shaped(self.sizes, x.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, *starts = primals
        return self.bind(x, *starts), self.bind(tangents[0], *starts)

    def transpose(self, ct: Any, x: Any, *starts: Any) -> Sequence[Any]:
        zeros = zeros_like_aval(shaped(x.shape, aval_of(ct).dtype))
        return (DynamicUpdateSlice().bind(zeros, ct, *starts), *(None,) * len(starts))

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        x, *starts = args
        x_dim, *start_dims = dims
        if all(d is None for d in start_dims):
            return DynamicSlice((shape_of(x)[0], *self.sizes)).bind(x, np.int64(0), *starts), 0
        shape = shape_of(x)[x_dim is not None :]
        axes, indices = _windows(shape, self.sizes, starts)
        if not axes:
            return x, x_dim
        index_dims: list[BatchDim] = [start_dims[a] for a in axes]
        if all(d is None for d in (x_dim, *index_dims)):
            size = next(shape_of(s)[0] for s, d in zip(starts, start_dims, strict=True) if d == 0)
            out = self.bind(
                x,
                *[s if d is None else np.int64(0) for s, d in zip(starts, start_dims, strict=True)],
            )
            return broadcast_to(out, (size, *self.sizes)), 0
        out, dim = Gather(axes).batch([x, *indices], [x_dim, *index_dims])
        return Transpose((0, *(i + 1 for i in _order_back(len(shape), axes)))).bind(out), dim


def _order_back(ndim: int, axes: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes moving ``axes`` to the front."""
    return inverse_permutation((*axes, *_rest(ndim, axes)))


def _window(shape: Shape, sizes: Shape, starts: Sequence[Any]) -> tuple[slice, ...]:
    lows = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(a, a + m) for a, m in zip(lows, sizes, strict=True))


class DynamicUpdateSlice(Primitive):
    """``x`` with the window at traced scalar ``starts`` replaced by ``update``.

    ``bind(x, update, *starts)``. Starts are clamped so that the window lies inside (JAX's rule).
    """

    makes_no_nans = True

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Fault]]:
        return _checked_starts(self, args, shape_of(args[1]), args[2:], kinds)

    def lower(self, x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> Form:
        return Replace()

    def overwritten(self, x: Any, update: Any, *starts: Any) -> Any:
        """The elements that are replaced, in the shape of the update."""
        return DynamicSlice(shape_of(update)).bind(x, *starts)

    def impl(self, x: Any, update: Any, *starts: Any) -> Any:
        out = np.array(x)
        out[_window(out.shape, np.shape(update), starts)] = update
        return out

    def abstract_eval(
        self, x: ShapedArray, update: ShapedArray, *starts: ShapedArray
    ) -> ShapedArray:
        _check_starts(self.name, x, update.shape, starts)
        if update.dtype != x.dtype:
            raise DtypeError(f"{self.name}: the update must have dtype {x.dtype}, got {update}.")
        return shaped(x.shape, x.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        x, update, *starts = primals
        tx, tu = tangents[:2]
        out = self.bind(x, update, *starts)
        if tx is None and tu is None:
            return out, None
        return out, self.bind(instantiate(tx, x), instantiate(tu, update), *starts)

    def transpose(self, ct: Any, x: Any, update: Any, *starts: Any) -> Sequence[Any]:
        sizes = update.shape if is_linear(update) else shape_of(update)
        ct_x = self.bind(ct, np.zeros(sizes, ct.dtype), *starts) if is_linear(x) else None
        ct_update = DynamicSlice(sizes).bind(ct, *starts) if is_linear(update) else None
        return (ct_x, ct_update, *(None,) * len(starts))

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = next(shape_of(a)[0] for a, d in zip(args, dims, strict=True) if d is not None)
        x, update, *starts = args
        x, update = (
            a if d is not None else broadcast_to(a, (size, *shape_of(a)))
            for a, d in zip((x, update), dims, strict=False)
        )
        if all(d is None for d in dims[2:]):
            return self.bind(x, update, np.int64(0), *starts), 0
        shape, sizes = shape_of(x)[1:], shape_of(update)[1:]
        axes, indices = _windows(shape, sizes, starts)
        if not axes:
            return update, 0
        moved = Transpose((0, *(i + 1 for i in (*axes, *_rest(len(shape), axes))))).bind(update)
        index_dims = [dims[2 + a] for a in axes]
        scatter = ScatterSet(axes, "raise", True)
        return scatter.batch([x, moved, *indices], [0, 0, *index_dims])
