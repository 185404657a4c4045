"""Views of arrays whose elements can be assigned: what part of which array, and in which order.

A view is an array and a step from it: an index of integers and slices, or one of the operations
that move no elements. A step is read forwards and written backwards. Whether NumPy's `reshape` is a
view or a copy depends on where the elements lie, so strides are kept, counted in elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from funcgrad.core.avals import Shape, ShapedArray
from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import Trace, Tracer, current_trace, run_under
from funcgrad.numpy.boxes import slice_of
from funcgrad.numpy.indexing import assigned, indexed
from funcgrad.primitives.objects import unwrapped
from funcgrad.primitives.shape import Reshape, Reverse, Slice, Transpose

Strides = tuple[int, ...]


def row_major(shape: Shape) -> Strides:
    """Strides of a new array."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def is_row_major(shape: Shape, strides: Strides) -> bool:
    """Whether elements lie one behind the other, in the order of their indices."""
    rows = zip(shape, strides, row_major(shape), strict=True)
    return 0 in shape or all(n == 1 or own == wanted for n, own, wanted in rows)


class Indexed:
    """The step of ``x[key]``.

    Args:
        shape: Of the indexed array.
        key: Integers (traced ones too), ranges and ``None``; a range or an integer for every axis.
    """

    __slots__ = ("key", "shape")

    def __init__(self, shape: Shape, key: Sequence[Any]) -> None:
        self.shape = shape
        self.key = tuple(key)

    @classmethod
    def whole(cls, shape: Shape) -> Indexed:
        """The step to the same array."""
        return cls(shape, [range(n) for n in shape])

    @property
    def index(self) -> tuple[Any, ...]:
        """Source of the index, as Python writes it between the brackets."""
        return tuple(slice_of(e) if type(e) is range else e for e in self.key)

    def read(self, x: Any) -> Any:
        return indexed(x, self.index)

    def write(self, x: Any, part: Any) -> Any:
        return assigned(x, self.index, part)

    def strides(self, strides: Strides) -> Strides:
        own, found = iter(strides), []
        for e in self.key:
            if e is None:
                found.append(0)
                continue
            stride = next(own)
            if type(e) is range:
                found.append(stride * e.step)
        return tuple(found)

    def is_same(self, other: Any) -> bool:
        return (
            type(other) is Indexed
            and len(self.key) == len(other.key)
            and all(
                a is b or _is_known_same(a, b) for a, b in zip(self.key, other.key, strict=True)
            )
        )

    def then(self, key: Sequence[Any]) -> Indexed | None:
        """This step and a further index as one step, or `None` if they cannot be one."""
        rest, found = iter(key), []
        for e in self.key:
            if e is not None and type(e) is not range:
                found.append(e)
                continue
            inner = next(rest)
            while inner is None:
                found.append(None)
                inner = next(rest)
            if e is None:
                if type(inner) is range and len(inner) == 1:
                    found.append(None)
                elif type(inner) is not int:
                    return None
            elif type(inner) in (int, range):
                found.append(e[inner] if type(inner) is int else e[slice_of(inner)])
            elif e == range(self.shape[sum(x is not None for x in found)]):
                found.append(inner)
            else:
                return None
        return Indexed(self.shape, [*found, *rest])


def _is_known_same(a: Any, b: Any) -> bool:
    return not isinstance(a, Tracer) and not isinstance(b, Tracer) and a == b


def basic_key(shape: Shape, index: Any) -> tuple[list[Any], bool] | None:
    """An index of integers, slices, ``None`` and ``...``, one entry per axis, or `None`.

    Traced integers count as integers. With it comes whether there is an ellipsis.

    Raises: IndexError: If there are too many indices, or one is out of bounds.
    """
    entries: list[Any] = []
    for e in index if type(index) is tuple else (index,):
        kind = type(e)
        if kind is int or e is None or e is Ellipsis or kind is slice:
            entries.append(e)
            continue
        e = unwrapped(e)
        if isinstance(e, np.integer):
            entries.append(int(e))
        elif isinstance(e, Tracer) and not e.aval.shape and e.aval.dtype.kind in "iu":
            entries.append(e)
        else:
            return None
    places = [i for i, e in enumerate(entries) if e is Ellipsis]
    missing = len(shape) - sum(e is not None and e is not Ellipsis for e in entries)
    if len(places) > 1 or missing < 0:
        return None  # whose error is that of every index
    i = places[0] if places else len(entries)
    entries[i : i + 1] = [slice(None)] * missing
    lengths, key = iter(shape), []
    for e in entries:
        n = 0 if e is None else next(lengths)
        if type(e) is slice:
            if any(isinstance(v, Tracer) for v in (e.start, e.stop, e.step)):
                return None
            e = range(*e.indices(n))
        elif type(e) is int:
            if not -n <= e < n:
                return None
            e %= n
        key.append(e)
    return key, bool(places)


class Moved:
    """The step of an operation that moves no elements: another shape, or another order of axes."""

    __slots__ = ("primitive", "shape")

    def __init__(self, shape: Shape, primitive: Primitive) -> None:
        self.shape = shape
        self.primitive = primitive

    def read(self, x: Any) -> Any:
        return self.primitive.bind(x)

    def write(self, x: Any, part: Any) -> Any:
        primitive = self.primitive
        if isinstance(primitive, Transpose):
            order = primitive.permutation
            return Transpose(tuple(order.index(i) for i in range(len(order)))).bind(part)
        return Reshape(self.shape).bind(part)

    def is_same(self, other: Any) -> bool:
        return False

    def then(self, key: Sequence[Any]) -> Indexed | None:
        """This step and a further index as one step, where no axes would change places."""
        primitive = self.primitive
        if not isinstance(primitive, Transpose) or len(key) != len(primitive.permutation):
            return None
        if any(e is None for e in key) or sum(type(e) is range for e in key) > 1:
            return None
        places = dict(zip(primitive.permutation, key, strict=True))
        return Indexed(self.shape, [places[i] for i in range(len(key))])


Step = Indexed | Moved


def step_of(shape: Shape, primitive: Primitive) -> Step | None:
    """An operation as a step, if elements stay where they are."""
    if isinstance(primitive, Slice):
        bounds = zip(primitive.starts, primitive.limits, primitive.strides, strict=True)
        return Indexed(shape, [range(*b) for b in bounds])
    if isinstance(primitive, Reverse):
        return Indexed(
            shape, [range(n)[:: -1 if i in primitive.axes else 1] for i, n in enumerate(shape)]
        )
    return Moved(shape, primitive) if isinstance(primitive, Reshape | Transpose) else None


def strides_after(step: Step, strides: Strides, shape: Shape) -> Strides | None:
    """The strides of a view of ``shape``, or `None` if NumPy makes a copy."""
    if isinstance(step, Indexed):
        return step.strides(strides)
    if isinstance(step.primitive, Transpose):
        return tuple(strides[i] for i in step.primitive.permutation)
    return _reshaped(step.shape, strides, shape)


def _reshaped(old: Shape, strides: Strides, new: Shape) -> Strides | None:
    """Strides of the same elements under another shape, if there are any.

    Axes fall into groups of equal size on both sides; those of a group must lie one in another.
    """
    if 0 in old:
        return row_major(new)
    axes = [(n, s) for n, s in zip(old, strides, strict=True) if n != 1]
    found: list[int] = []
    i = j = 0
    while j < len(new):
        if new[j] == 1:
            found.append(0)
            j += 1
            continue
        size, group = 1, []
        wanted, lengths = new[j], [new[j]]
        j += 1
        while size != wanted:
            if size < wanted:
                group.append(axes[i])
                size *= axes[i][0]
                i += 1
            else:
                lengths.append(new[j])
                wanted *= new[j]
                j += 1
        for (_, outer), (n, inner) in pairwise(group):
            if outer != n * inner:
                return None
        innermost = group[-1][1]
        found += [innermost * math.prod(lengths[k + 1 :]) for k in range(len(lengths))]
    return tuple(found)


def keeps_any_order(step: Step, shape: Shape) -> bool:
    """Whether a view has no need of strides: axes of length 1 that come or go."""
    if isinstance(step, Indexed) or isinstance(step.primitive, Transpose):
        return True
    return [n for n in step.shape if n != 1] == [n for n in shape if n != 1] or 0 in shape


Way = Step | tuple[Any, ...]
"""How a view is reached: by a step, by an index ``(None, index)``, or by a function of shapes, its
other arguments, and the place among its results: ``(function, args, options, place)``."""


class _Watched(Tracer):
    """Argument for a function of shapes that records the operations it consists of."""

    __slots__ = ("aval", "steps")
    aval: ShapedArray

    def __init__(
        self, trace: Trace, aval: ShapedArray, steps: tuple[tuple[Step, Shape], ...]
    ) -> None:
        self.owner = trace
        self.aval = aval
        self.steps = steps


class _WatchingTrace(Trace):
    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        (x,) = args
        step = step_of(x.aval.shape, primitive)
        assert step is not None, f"{primitive} is no view"
        out = primitive.abstract_eval(x.aval)
        return _Watched(self, out, (*x.steps, (step, out.shape)))


def steps_of(aval: ShapedArray, way: tuple[Any, ...]) -> list[tuple[Step, Shape]]:
    """The steps of a way that begins at an array, each with the shape that it leads to."""
    if way[0] is None:
        basic = basic_key(aval.shape, way[1])
        assert basic is not None
        lengths = (1 if e is None else len(e) for e in basic[0] if type(e) is not int)
        return [(Indexed(aval.shape, basic[0]), tuple(lengths))]
    function, args, options, place = way
    trace = _WatchingTrace(current_trace(), "a view")
    start = _Watched(trace, aval, ())
    found = run_under(trace, lambda: function(start, *args, **options))
    return list((found if place is None else found[place]).steps)
