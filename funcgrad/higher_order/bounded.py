"""Folds and products of parts of arrays, whose bounds are values.

``Bounded(fold) : ([x], [bound]) -> fold of the parts of x within their bounds``

Shapes are static, bounds are not: what is outside of a part counts as the neutral element of the
fold. Evaluated by NumPy, it is the fold of the parts themselves, so that sums have the order, and
the bits, that they have for arrays of these lengths. Everywhere else, compiled, batched and
differentiated, it is the fold of whole arrays with neutral elements in the place of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import BatchDim, Primitive, Value, is_linear, mapped_length
from funcgrad.core.program import Program
from funcgrad.dtypes import INT64
from funcgrad.higher_order.switch import Switch
from funcgrad.lowering import Call, Contraction, Form, Reduction
from funcgrad.primitives.contraction import Contract
from funcgrad.primitives.creation import Iota
from funcgrad.primitives.elementwise import add, bitwise_and, greater_equal, less, neg, select, sub
from funcgrad.primitives.indexing import DynamicSlice, Gather
from funcgrad.primitives.shape import Pad, Slice, moveaxis_from_front, reshape, shape_of
from funcgrad.transforms.batch import batch_flat
from funcgrad.transforms.jvp import jvp_flat
from funcgrad.transforms.programs import stage_closed

Places = tuple[int | None, ...]
"""For every axis of an array, the number of the part that it has along it, if it has one."""

BLOCKS = 8
"""How many lengths operands of large products are cut to: a sixteenth too much in the mean."""

LEAST_PRODUCT = 1 << 16
"""Multiplications from which on a product is large: a switch takes less time than half of them."""

_EXTREMES = ("{lowest}", "{highest}")


class Bounded(Primitive):
    """``bind(*operands, *bounds)``, with begin and end of every part as two bounds.

    Attributes:
        fold: A reduction or a contraction.
        parts: By operand, its parts.
        aligned: By operand, the parts at whose places the elements of its own are taken: axes that
            a contraction runs along together may have parts of equal length that begin elsewhere.
        out: The parts of the result that are computed; elsewhere it is zero.
        sides: By part: "low" if it begins where the axis does, "high" if it ends where that does,
            or nothing; empty if that is not known of any.
    """

    fold: Primitive
    parts: tuple[Places, ...]
    aligned: tuple[Places, ...]
    out: Places
    sides: tuple[str, ...] = ()

    @property
    def folded_parts(self) -> tuple[Places, ...]:
        return self.parts

    def _split(self, args: Sequence[Any]) -> tuple[Sequence[Any], list[tuple[Any, Any]]]:
        n = len(self.parts)
        return args[:n], list(zip(args[n::2], args[n + 1 :: 2], strict=True))

    def impl(self, *args: Any) -> Any:
        operands, bounds = self._split(args)
        taken = [
            np.asarray(x)[_slices(places, bounds)]
            for x, places in zip(operands, self.parts, strict=True)
        ]
        found = self.fold.impl(*taken)
        if not any(place is not None for place in self.out):
            return found
        aval = self.abstract_eval(*map(aval_of, args))
        out = np.zeros(aval.shape, aval.dtype)
        out[_slices(self.out, bounds)] = found
        return out

    def abstract_eval(self, *avals: ShapedArray) -> ShapedArray:
        return self.fold.abstract_eval(*avals[: len(self.parts)])

    def _whole(self, *args: Any) -> list[Any]:
        """The fold of whole arrays, with neutral elements outside of the parts that it runs over.

        Elements of other parts of the result are computed and left out.
        """
        operands, bounds = self._split(args)
        avals = tuple(map(aval_of, operands))
        kept = {p for p in self.out if p is not None}
        taken = []
        for x, own, aligned in zip(operands, self.parts, self.aligned, strict=True):
            for axis, (a, b) in enumerate(zip(own, aligned, strict=True)):
                if a is not None and b is not None and a != b:
                    x = Moved(axis).bind(x, sub.bind(bounds[a][0], bounds[b][0]))
            ends = [None if p is None or p in kept else bounds[p] for p in aligned]
            taken.append(within(x, self._neutral(avals), ends))
        found = self.fold.bind(*taken)
        zero = np.zeros((), avals[0].dtype)[()]
        return [within(found, zero, [None if p is None else bounds[p] for p in self.out])]

    def part_to_cut(self, avals: Sequence[ShapedArray]) -> tuple[int, int] | None:
        """A part, and the length of its axis, to whose size the operands of a product are cut.

        A large product of whole arrays would take longer than that of the parts.
        """
        if not isinstance(self.fold, Contract) or self.parts != self.aligned:
            return None
        axes: dict[str, tuple[int, int | None]] = {}
        for labels, aval, places in zip(
            (self.fold.lhs, self.fold.rhs), avals, self.parts, strict=False
        ):
            for label, size, place in zip(labels, aval.shape, places, strict=True):
                axes[label] = size, axes[label][1] if place is None and label in axes else place
        work = math.prod(size for size, _ in axes.values())
        written = math.prod(axes[label][0] for label in self.fold.out)
        if work < LEAST_PRODUCT or work < BLOCKS * written:
            return None
        found = [(p, n) for n, p in axes.values() if p is not None and any(self.sides[p : p + 1])]
        return max(found, key=lambda pair: pair[1], default=None)

    def cut(self, args: Sequence[Any], part: int, length: int) -> list[Any]:
        """The same with operands that are cut to one of a few lengths, which is long enough.

        Args:
            args: Operands and bounds.
            part: The part.
            length: The length of its axis.
        """
        bounds = self._split(args)[1]
        sizes = [-(-length * k // BLOCKS) for k in range(1, BLOCKS + 1)]
        numbers = np.searchsorted(sizes, np.arange(length + 1))
        count = sub.bind(bounds[part][1], bounds[part][0])
        which = reshape(DynamicSlice((1,)).bind(numbers, count), ())
        avals = [aval_of(x) for x in args]
        branches = tuple(
            stage_closed(lambda *xs, n=n: self._cut_to(xs, part, length, n), avals, self.name)
            for n in sizes
        )
        return Switch(branches).bind(which, *args)

    def _cut_to(self, args: Sequence[Any], part: int, length: int, size: int) -> list[Any]:
        operands, bounds = self._split(args)
        first = length - size if self.sides[part] == "high" else 0
        taken = []
        for x, places in zip(operands, self.parts, strict=True):
            shape = shape_of(x)
            ranges = [
                (first, first + size) if p == part else (0, n)
                for n, p in zip(shape, places, strict=True)
            ]
            starts, limits = zip(*ranges, strict=True) if ranges else ((), ())
            taken.append(Slice(starts, limits, (1,) * len(shape)).bind(x))
        ends = [
            tuple(sub.bind(x, np.int64(first)) for x in pair) if i == part and first else pair
            for i, pair in enumerate(bounds)
        ]
        (found,) = self._whole(*taken, *(x for pair in ends for x in pair))
        if part not in self.out:
            return [found]
        lows = tuple(first if p == part else 0 for p in self.out)
        highs = tuple(length - first - size if p == part else 0 for p in self.out)
        zero = np.zeros((), aval_of(found).dtype)
        return [Pad(lows, highs, (0,) * len(lows)).bind(found, zero)]

    def _neutral(self, avals: Sequence[ShapedArray]) -> Any:
        form = self.fold.lower(*avals)
        dtype = avals[0].dtype
        init = form.init if isinstance(form, Reduction) else "0"
        if init not in _EXTREMES:
            return dtype.type(np.bool_(init == "True") if dtype.kind == "b" else int(init))
        sign = -1 if init == "{lowest}" else 1
        if dtype.kind == "f":
            return dtype.type(sign * np.inf)
        limits = (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return dtype.type(limits[sign > 0])

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        if not self._is_product:
            _, dots = jvp_flat(self._whole, primals, tangents, self.name)
            return out, dots[0]
        x, y, *bounds = primals
        tx, ty = tangents[:2]
        terms = [] if tx is None else [self.bind(tx, y, *bounds)]
        terms += [] if ty is None else [self.bind(x, ty, *bounds)]
        return out, add.bind(*terms) if len(terms) == 2 else terms[0] if terms else None

    @property
    def _is_product(self) -> bool:
        """Whether derivatives are products of the same parts."""
        return isinstance(self.fold, Contract) and self.parts == self.aligned

    @property
    def whole_product(self) -> Primitive | None:
        """The product of whole arrays that it is where it is not zero."""
        is_part = all(p is None or p in self.out for places in self.parts for p in places)
        return self.fold if self._is_product and is_part else None

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        x, y, *bounds = args
        assert isinstance(self.fold, Contract)
        labels = self.fold
        if is_linear(x):
            fold = Contract(labels.out, labels.rhs, labels.lhs)
            parts = self.out, self.parts[1]
            pull = Bounded(fold, parts, parts, self.parts[0], self.sides)
            return pull.bind(ct, y, *bounds), None, *(None for _ in bounds)
        fold = Contract(labels.lhs, labels.out, labels.rhs)
        parts = self.parts[0], self.out
        pull = Bounded(fold, parts, parts, self.parts[1], self.sides)
        return None, pull.bind(x, ct, *bounds), *(None for _ in bounds)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        n = len(self.parts)
        lanes = [d is not None for d in dims]
        if isinstance(self.fold, Contract) and not any(lanes[n:]):

            def wider(rows: Sequence[Places]) -> tuple[Places, ...]:
                return tuple((None,) * on + row for row, on in zip(rows, lanes, strict=False))

            fold, out = self.fold.with_lanes(*lanes[:n]), (None, *self.out)
            batched = Bounded(fold, wider(self.parts), wider(self.aligned), out, self.sides)
            return batched.bind(*args), 0
        size = mapped_length(args, dims)
        outs, out_dims = batch_flat(self._whole, args, dims, size, self.name)
        return outs[0], out_dims[0]

    def lower(self, *avals: ShapedArray) -> Form:
        return Call(_program(self, avals))


@lru_cache(256)
def _program(bounded: Bounded, avals: tuple[ShapedArray, ...]) -> Program:
    sized = bounded.part_to_cut(avals)
    if sized is None:
        return stage_closed(bounded._whole, avals, bounded.name)
    return stage_closed(lambda *args: bounded.cut(args, *sized), avals, bounded.name)


def can_be_bounded(form: Form) -> bool:
    """Whether an operation is a fold that has a neutral element which can be written."""
    if isinstance(form, Contraction):
        return True
    return isinstance(form, Reduction) and form.init in ("0", "1", "True", "False", *_EXTREMES)


def _slices(places: Places, bounds: Sequence[tuple[Any, Any]]) -> tuple[slice, ...]:
    ends = [None if p is None else bounds[p] for p in places]
    return tuple(slice(None) if e is None else slice(int(e[0]), int(e[1])) for e in ends)


def is_inside(shape: Sequence[int], bounds: Sequence[tuple[Any, Any] | None]) -> Any:
    """Mask of the elements within bounds; ``None`` if all of them are.

    Args:
        shape: The shape of the array.
        bounds: By axis: begin and end, integers or traced values, or ``None``.
    """
    found = None
    for axis, ends in enumerate(bounds):
        if ends is None:
            continue
        begin, end = ends
        index = reshape(
            Iota((shape[axis],), 0, INT64).bind(),
            tuple(n if i == axis else 1 for i, n in enumerate(shape)),
        )
        tests = []
        if not (isinstance(begin, int | np.integer) and begin <= 0):
            tests.append(greater_equal.bind(index, begin))
        if not (isinstance(end, int | np.integer) and end >= shape[axis]):
            tests.append(less.bind(index, end))
        for test in tests:
            found = test if found is None else bitwise_and.bind(found, test)
    return found


class Moved(Primitive):
    """``bind(x, by)``: elements nearer to the beginning by so many places, or farther; others zero.

    What goes beyond an end is lost, so the transpose moves the other way.

    Attributes:
        axis: The axis along which they move.
    """

    axis: int

    makes_no_nans = True

    def impl(self, x: Any, by: Any) -> Any:
        rows, out = np.moveaxis(np.asarray(x), self.axis, 0), np.zeros_like(x)
        first, n = int(by), len(rows)
        low, high = min(max(-first, 0), n), max(min(n - first, n), 0)
        np.moveaxis(out, self.axis, 0)[low:high] = rows[low + first : high + first]
        return out

    def abstract_eval(self, x: ShapedArray, by: ShapedArray) -> ShapedArray:
        return x

    def _whole(self, x: Any, by: Any) -> list[Any]:
        """The same by places that are computed."""
        n, ndim = shape_of(x)[self.axis], len(shape_of(x))
        index = add.bind(Iota((n,), 0, INT64).bind(), by)
        taken = moveaxis_from_front(Gather((self.axis,), "clip").bind(x, index), self.axis)
        ends = neg.bind(by), sub.bind(np.int64(n), by)
        bounds = [ends if i == self.axis else None for i in range(ndim)]
        return [within(taken, np.zeros((), aval_of(x).dtype), bounds)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        return self.bind(*primals), self.bind(tangents[0], primals[1])

    def transpose(self, ct: Any, x: Any, by: Any) -> Sequence[Any]:
        return self.bind(ct, neg.bind(by)), None

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = mapped_length(args, dims)
        outs, out_dims = batch_flat(self._whole, args, dims, size, self.name)
        return outs[0], out_dims[0]

    def lower(self, *avals: ShapedArray) -> Form:
        return Call(stage_closed(self._whole, avals, self.name))


def within(x: Any, rest: Any, bounds: Sequence[tuple[Any, Any] | None]) -> Any:
    """An array within bounds, and another one elsewhere."""
    inside = is_inside(shape_of(x), bounds)
    return x if inside is None else select.bind(inside, x, rest)


__all__ = ["Bounded", "Moved", "Places", "can_be_bounded", "is_inside", "within"]
