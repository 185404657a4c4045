"""Operations that move elements and never compute with them, and the sum, their adjoint.

All are linear. Repetition (`BroadcastTo`) and summation (`ReduceSum`) are each other's transpose,
as are slicing and padding; so they live together, below all arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from funcgrad.base.dialect import default_dtype
from funcgrad.base.forking import cached_property
from funcgrad.core.avals import Shape, ShapedArray
from funcgrad.core.axes import MAPPED_NOW, divided_axis
from funcgrad.core.primitive import BatchDim, Linear, Primitive, Value, is_linear
from funcgrad.dtypes import PYTHON_SCALARS
from funcgrad.errors import ShapeError
from funcgrad.lowering import Assemble, Form, Piece, Reduction, Reindex
from funcgrad.lowering import Reshape as ReshapeForm
from funcgrad.primitives.families import FEW, instantiate, linear_jvp, shape_of, zeros_like_aval


def lengths_in(shape: Any) -> tuple[Any, ...]:
    """The lengths in a shape: a number, or anything that can be gone through."""
    return tuple(shape) if np.iterable(shape) else (shape,)


class Reshape(Primitive):
    """The elements in row-major order under another shape."""

    shape: Shape

    jvp = linear_jvp
    makes_no_nans = True

    @property
    def but_lengths(self) -> int:
        return len(self.shape)

    def impl(self, x: Any) -> Any:
        # NumPy's functions take several times as long as methods, which other classes may lack.
        is_own = type(x) is np.ndarray or isinstance(x, np.generic)
        return x.reshape(self.shape) if is_own else np.reshape(x, self.shape)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        out = x.update(shape=self.shape)
        if out.size != x.size:
            raise ShapeError(
                f"reshape: {x} has {x.size} elements, shape {self.shape} has {out.size}. "
                "Use -1 for at most one axis to have its length computed."
            )
        return out

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (reshape(ct, x.shape),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        (x,) = args
        return Reshape((shape_of(x)[0], *self.shape)).bind(x), 0

    def lower(self, x: ShapedArray) -> Form:
        return ReshapeForm()


reshaping: Callable[[Shape], Reshape] = lru_cache(4096)(Reshape)
"""The operation for a shape, remembered: loops repeat it."""


def reshape(x: Value, shape: Shape) -> Value:
    """``x`` under ``shape`` (no -1), unchanged if it has it already."""
    return x if shape_of(x) == shape else reshaping(shape).bind(x)


def cut(x: Value, axis: int, start: int, stop: int) -> Value:
    """``x[start:stop]`` along an axis, of known bounds within it."""
    shape = shape_of(x)
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    limits = tuple(stop if i == axis else n for i, n in enumerate(shape))
    return Slice(starts, limits, (1,) * len(shape)).bind(x)


class Transpose(Primitive):
    """Permutation of axes: axis ``i`` of the result is axis ``permutation[i]`` of the argument."""

    permutation: tuple[int, ...]

    jvp = linear_jvp
    makes_no_nans = True

    def impl(self, x: Any) -> Any:
        is_array = type(x) is np.ndarray
        return x.transpose(self.permutation) if is_array else np.transpose(x, self.permutation)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        if sorted(self.permutation) != list(range(x.ndim)):
            raise ShapeError(
                f"transpose: {self.permutation} is not a permutation of the {x.ndim} axes of {x}."
            )
        return x.update(shape=tuple(x.shape[i] for i in self.permutation))

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        inverse = inverse_permutation(self.permutation)
        return (Transpose(inverse).bind(ct),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return Transpose((0, *(i + 1 for i in self.permutation))).bind(args[0]), 0

    def lower(self, x: ShapedArray) -> Form:
        return Reindex(self.permutation, (0,) * x.ndim, (1,) * x.ndim)


def moveaxis_to_front(x: Value, axis: int) -> Value:
    """``x`` with one axis moved to the front, the others in order."""
    if axis == 0:
        return x
    ndim = len(shape_of(x))
    return Transpose((axis, *(i for i in range(ndim) if i != axis))).bind(x)


def inverse_permutation(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes another one."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def moveaxis_from_front(x: Value, axis: int) -> Value:
    """``x`` with its first axis moved to position ``axis``, the others in order."""
    if axis == 0:
        return x
    order = list(range(1, len(shape_of(x))))
    order.insert(axis, 0)
    return Transpose(tuple(order)).bind(x)


class BroadcastTo(Primitive):
    """Repetition along new leading axes and along axes of length 1, as NumPy broadcasts."""

    shape: Shape

    jvp = linear_jvp
    makes_no_nans = True

    @property
    def but_lengths(self) -> int:
        return len(self.shape)

    def impl(self, x: Any) -> Any:
        if isinstance(x, np.generic) and math.prod(self.shape) <= FEW:
            repeated = np.empty(self.shape, x.dtype)
            repeated.fill(x)
            return repeated
        repeated = np.broadcast_to(x, self.shape)
        if type(x) not in PYTHON_SCALARS:
            return repeated
        return repeated.astype(default_dtype(repeated.dtype), copy=False)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        lead = len(self.shape) - x.ndim
        if lead < 0 or any(
            m not in (1, n) for m, n in zip(x.shape, self.shape[lead:], strict=True)
        ):
            raise ShapeError(
                f"broadcast_to: {x} cannot be repeated to shape {self.shape}. Axes are aligned "
                "from the right; only axes of length 1 are repeated."
            )
        return x.update(shape=self.shape)

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (unbroadcast(ct, x),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size, *rest = shape_of(args[0])
        ones = (1,) * (len(self.shape) - len(rest))
        return broadcast_to(reshape(args[0], (size, *ones, *rest)), (size, *self.shape)), 0

    def lower(self, x: ShapedArray) -> Form:
        lead = len(self.shape) - x.ndim
        axes: list[int | None] = [None] * lead
        axes += [
            i if m == n else None
            for i, (m, n) in enumerate(zip(x.shape, self.shape[lead:], strict=True))
        ]
        return Reindex(tuple(axes), (0,) * x.ndim, (1,) * len(self.shape))


def broadcast_to(x: Value, shape: Shape) -> Value:
    """``x`` repeated to ``shape``, unchanged if it has it already."""
    # Only scalars broadcast to (), so that the shape of a tangent need not be computed then.
    return x if not shape or shape_of(x) == shape else BroadcastTo(shape).bind(x)


def repeat_lanes(x: Value, size: int, axis_name: Hashable = MAPPED_NOW) -> Value:
    """A value that all lanes share, along a new leading axis of lanes.

    Args:
        x: The value.
        size: The number of lanes.
        axis_name: The axis, by default the one that the current batch rule maps.
    """
    axis = divided_axis(axis_name)
    return broadcast_to(x if axis is None else axis.varied(x), (size, *shape_of(x)))


def sum_lanes(x: Value, axis_name: Hashable = MAPPED_NOW) -> Value:
    """The sum over the leading axis, that of lanes: the transpose of `repeat_lanes`."""
    total = ReduceSum((0,)).bind(x)
    axis = divided_axis(axis_name)
    return total if axis is None else axis.total(total)


class ReduceSum(Primitive):
    """Sum over ``axes`` (ascending, non-negative), which are dropped."""

    axes: tuple[int, ...]

    jvp = linear_jvp

    def impl(self, x: Any) -> Any:
        return np.add.reduce(x, axis=self.axes, dtype=np.asarray(x).dtype)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x.update(shape=drop_axes(x.shape, self.axes)).strong()

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (restore_axes(ct, x.shape, self.axes),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return ReduceSum(tuple(a + 1 for a in self.axes)).bind(args[0]), 0

    def lower(self, x: ShapedArray) -> Form:
        return Reduction(self.axes, "0", "radd({0}, {1})", accurate=True)


def drop_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    """``shape`` without the given axes."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def restore_axes(x: Value, shape: Shape, axes: Sequence[int]) -> Value:
    """``x``, whose ``axes`` had been reduced, repeated to the ``shape`` before the reduction."""
    if len(axes) == len(shape):
        return broadcast_to(x, shape)
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    return broadcast_to(reshape(x, kept), shape)


def unbroadcast(ct: Value, argument: Linear) -> Value:
    """The adjoint of broadcasting an argument: sum over everything that was repeated."""
    own = ct.shape if type(ct) is np.ndarray else shape_of(ct)
    if not own:  # nothing was repeated, and the argument's type need not be found
        return ct
    shape = argument.aval.shape
    if own == shape:
        return ct
    lead = len(own) - len(shape)
    axes = (*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 and own[i + lead] != 1))
    return reshape(ReduceSum(axes).bind(ct) if axes else ct, shape)


class Slice(Primitive):
    """``x[starts[0]:limits[0]:strides[0], ...]`` with static bounds inside the shape."""

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]

    jvp = linear_jvp
    makes_no_nans = True

    def impl(self, x: Any) -> Any:
        return np.asarray(x)[tuple(map(slice, self.starts, self.limits, self.strides))]

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        for a, b, s, n in zip(self.starts, self.limits, self.strides, x.shape, strict=True):
            if not 0 <= a <= b <= n or s < 1:
                raise ShapeError(
                    f"slice: starts {self.starts}, limits {self.limits} and strides "
                    f"{self.strides} do not lie in {x}: 0 <= start <= limit <= length and "
                    "stride >= 1 must hold."
                )
        return x.update(shape=self._shape)

    @cached_property
    def read_window(self) -> tuple[Shape, Shape, Shape]:
        return self.starts, self._shape, self.strides

    @cached_property
    def _shape(self) -> Shape:
        rows = zip(self.starts, self.limits, self.strides, strict=True)
        return tuple([-(-(b - a) // s) for a, b, s in rows])

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        shape = x.shape
        if self._shape == shape:
            return (ct,)
        return (_pad_around(self, shape).bind(ct, np.zeros((), ct.dtype)),)

    def pad_around(self, shape: Shape) -> Pad:
        """The adjoint of a slice of an array of this shape, with zeros around it."""
        rows = zip(self.starts, self._shape, self.strides, shape, strict=True)
        highs = tuple(n - a - (m and (m - 1) * s + 1) for a, m, s, n in rows)
        return Pad(self.starts, highs, tuple(s - 1 for s in self.strides))

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = shape_of(args[0])[0]
        wider = Slice((0, *self.starts), (size, *self.limits), (1, *self.strides))
        return wider.bind(args[0]), 0

    def lower(self, x: ShapedArray) -> Form:
        return Reindex(tuple(range(x.ndim)), self.starts, self.strides)


_pad_around = lru_cache(4096)(Slice.pad_around)


class Reverse(Primitive):
    """The elements in opposite order along ``axes``."""

    axes: tuple[int, ...]

    jvp = linear_jvp
    makes_no_nans = True

    def impl(self, x: Any) -> Any:
        return np.flip(x, self.axes)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (self.bind(ct),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return Reverse(tuple(a + 1 for a in self.axes)).bind(args[0]), 0

    def lower(self, x: ShapedArray) -> Form:
        starts = tuple(max(n - 1, 0) if i in self.axes else 0 for i, n in enumerate(x.shape))
        steps = tuple(-1 if i in self.axes else 1 for i in range(x.ndim))
        return Reindex(tuple(range(x.ndim)), starts, steps)


class Pad(Primitive):
    """``x`` with ``lows`` and ``highs`` elements around it and ``interiors`` between elements.

    The second argument is the scalar that fills them. Negative lows and highs cut.
    """

    lows: tuple[int, ...]
    highs: tuple[int, ...]
    interiors: tuple[int, ...]

    jvp = linear_jvp
    makes_no_nans = True

    def impl(self, x: Any, fill: Any) -> Any:
        x = np.asarray(x)
        shape, target, source = _places_of_pad(self, x.shape)
        out = np.empty(shape, x.dtype)
        out[...] = fill
        out[target] = x[source]
        return out

    def places(self, shape: Shape) -> tuple[Shape, tuple[slice, ...], tuple[slice, ...]]:
        """The shape of the result, where elements come there, and which of the argument."""
        piece = self._piece(shape)
        target = tuple(
            slice(a, a + (n - 1) * s + 1 if n else a, s)
            for a, s, n in zip(piece.starts, piece.steps, piece.sizes, strict=True)
        )
        source = tuple(slice(a, a + n) for a, n in zip(piece.lows, piece.sizes, strict=True))
        return self._shape(shape), target, source

    def abstract_eval(self, x: ShapedArray, fill: ShapedArray) -> ShapedArray:
        if fill.shape or fill.dtype != x.dtype:
            raise ShapeError(
                f"pad: the fill value must be a scalar of dtype {x.dtype}, got {fill}."
            )
        if not len(self.lows) == len(self.highs) == len(self.interiors) == x.ndim:
            raise ShapeError(f"pad: {x} needs one (low, high, interior) for each of its axes.")
        if any(n < 0 for n in self._shape(x.shape)):
            raise ShapeError(f"pad: lows {self.lows} and highs {self.highs} cut more than {x} has.")
        return x.update(shape=self._shape(x.shape)).strong()

    def _shape(self, shape: Shape) -> Shape:
        rows = zip(self.lows, self.highs, self.interiors, shape, strict=True)
        return tuple(low + high + n + max(n - 1, 0) * gap for low, high, gap, n in rows)

    def _piece(self, shape: Shape) -> Piece:
        """Range of input elements that survive, and their place."""
        starts, lows, sizes = [], [], []
        out_shape = self._shape(shape)
        for low, gap, n, m in zip(self.lows, self.interiors, shape, out_shape, strict=True):
            step = gap + 1
            first = max(0, -(low // step)) if low < 0 else 0
            start = low + first * step
            last = min(n - 1, (m - 1 - low) // step)
            starts.append(start)
            lows.append(first)
            sizes.append(max(0, last - first + 1))
        steps = tuple(gap + 1 for gap in self.interiors)
        if 0 in sizes:
            return Piece((0,) * len(sizes), steps, (0,) * len(sizes), (0,) * len(sizes))
        return Piece(tuple(starts), steps, tuple(lows), tuple(sizes))

    def transpose(self, ct: Any, x: Any, fill: Any) -> Sequence[Any]:
        ct_x = ct_fill = None
        if is_linear(x):
            ct_x = self._crop(ct, x.shape)
        if is_linear(fill):
            every = ReduceSum(tuple(range(len(shape_of(ct))))).bind(ct)
            inner = self._crop(ct, x.shape)
            ct_fill = every - ReduceSum(tuple(range(len(x.shape)))).bind(inner)
        return ct_x, ct_fill

    def _crop(self, ct: Any, shape: Shape) -> Any:
        """The elements of ``ct`` at which elements of ``x`` stand; zero for those cut off."""
        piece = self._piece(shape)
        limits = tuple(
            a + (n - 1) * s + 1 if n else a
            for a, s, n in zip(piece.starts, piece.steps, piece.sizes, strict=True)
        )
        inner = Slice(piece.starts, limits, piece.steps).bind(ct)
        highs = tuple(n - a - m for n, a, m in zip(shape, piece.lows, piece.sizes, strict=True))
        if not any(piece.lows) and not any(highs):
            return inner
        zero = np.zeros((), ct.dtype)
        return Pad(piece.lows, highs, (0,) * len(shape)).bind(inner, zero)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        x, fill = args
        if dims[1] is None:
            wider = Pad((0, *self.lows), (0, *self.highs), (0, *self.interiors))
            return wider.bind(x, fill), 0
        # A fill value per lane: pad with zeros and add the fill where nothing was copied.
        size = shape_of(fill)[0]
        if dims[0] is None:
            x = broadcast_to(x, (size, *shape_of(x)))
        wider = Pad((0, *self.lows), (0, *self.highs), (0, *self.interiors))
        padded = wider.bind(x, np.zeros((), x.dtype))
        inside = wider.bind(np.ones(shape_of(x), x.dtype), np.zeros((), x.dtype))
        ones = (1,) * (len(shape_of(x)) - 1)
        return padded + (1 - inside).astype(x.dtype) * reshape(fill, (size, *ones)), 0

    def lower(self, x: ShapedArray, fill: ShapedArray) -> Form:
        return Assemble((self._piece(x.shape),), fill=True)


_places_of_pad = lru_cache(4096)(Pad.places)


class Concatenate(Primitive):
    """The arguments one after the other along ``axis``."""

    axis: int

    jvp = linear_jvp
    makes_no_nans = True

    def impl(self, *args: Any) -> Any:
        return np.concatenate(args, self.axis)

    def abstract_eval(self, *avals: ShapedArray) -> ShapedArray:
        first = avals[0]
        rest = [drop_axes(a.shape, (self.axis,)) for a in avals]
        if any(a.ndim != first.ndim for a in avals) or any(r != rest[0] for r in rest):
            types = ", ".join(map(str, avals))
            raise ShapeError(f"concatenate: all axes but axis {self.axis} must agree, got {types}.")
        length = sum(a.shape[self.axis] for a in avals)
        shape = (*first.shape[: self.axis], length, *first.shape[self.axis + 1 :])
        return first.update(shape=shape).strong()

    def of_rows(self, rows: Value) -> Value:
        shape = list(shape_of(rows))
        length = shape.pop(0)
        shape[self.axis] *= length
        return reshape(moveaxis_from_front(rows, self.axis), tuple(shape))

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        cts, start = [], 0
        own = shape_of(ct)
        for arg in args:
            limit = start + shape_of(arg)[self.axis]
            if is_linear(arg):
                starts = tuple(start if i == self.axis else 0 for i in range(len(own)))
                limits = tuple(limit if i == self.axis else n for i, n in enumerate(own))
                cts.append(Slice(starts, limits, (1,) * len(own)).bind(ct))
            else:
                cts.append(None)
            start = limit
        return cts

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = next(shape_of(a)[0] for a, d in zip(args, dims, strict=True) if d is not None)
        dense = [
            a if d is not None else broadcast_to(a, (size, *shape_of(a)))
            for a, d in zip(args, dims, strict=True)
        ]
        return Concatenate(self.axis + 1).bind(*dense), 0

    def lower(self, *avals: ShapedArray) -> Form:
        pieces, start = [], 0
        for aval in avals:
            starts = tuple(start if i == self.axis else 0 for i in range(aval.ndim))
            zeros = (0,) * aval.ndim
            pieces.append(Piece(starts, (1,) * aval.ndim, zeros, aval.shape))
            start += aval.shape[self.axis]
        return Assemble(tuple(pieces), fill=False)


__all__ = [
    "BroadcastTo", "Concatenate", "Pad", "ReduceSum", "Reshape", "Reverse", "Slice", "Transpose",
    "broadcast_to", "drop_axes", "instantiate", "moveaxis_from_front", "moveaxis_to_front",
    "reshape", "restore_axes", "shape_of", "unbroadcast", "zeros_like_aval",
]  # fmt: skip
