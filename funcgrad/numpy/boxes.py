"""Parts of arrays that known integers and slices name: reading them, and writing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from funcgrad.core.avals import Shape, ShapedArray, aval_of, shaped
from funcgrad.core.observers import OBSERVED
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Var
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.higher_order.elements import ElementAt, ElementSet
from funcgrad.primitives.families import linear_jvp
from funcgrad.primitives.indexing import DynamicUpdateSlice
from funcgrad.primitives.shape import Pad, Reverse, Slice, reshape, reshaping
from funcgrad.transforms.linearize import LinearizeTracer, record_linear
from funcgrad.transforms.stage import StageTrace, StageTracer

_KNOWN = (int, type(None))
_WHOLE = (None, None, None)

_UPDATE, _SET = DynamicUpdateSlice(), ElementSet()

_ONE = (1,)
_SCALAR = reshaping(())


class Box:
    """The part of an array that known slices and integers name.

    Args:
        shape: Of the array.
        ranges: Places along every axis.
        layout: Shape of what they name; integers leave axes of length 1 if it is not given.

    Attributes:
        is_element: Whether it is one element, of several, without axes.
        starts: Least places.
        limits: Ends behind the greatest places.
        strides: Distances, which are positive.
        is_dense: Whether places follow each other.
        lengths: How many places there are along every axis.
        backward: Axes whose places descend.
        cuts: Operations that read it, without a change of axes.
        steps: Operations that read it.
        types: For the array of the last reading its type, and those of results of the steps.
    """

    __slots__ = (
        "_begins", "_element", "_part", "backward", "cuts", "is_dense", "is_element", "layout",
        "lengths", "limits", "shape", "starts", "steps", "strides", "types",
    )  # fmt: skip
    types: tuple[ShapedArray | None, Sequence[ShapedArray]]
    _begins: tuple[Atom, ...] | None
    _element: ElementAt | None
    _part: Part | None

    def __init__(self, shape: Shape, ranges: Sequence[range], layout: Shape | None = None) -> None:
        starts, limits, strides, lengths, backward = [], [], [], [], []
        is_dense = True
        for axis, r in enumerate(ranges):
            n, step = len(r), r.step
            if not n:
                r, step = range(0), 1
            elif step < 0:
                backward.append(axis)
                r, step = r[::-1], -step
            starts.append(r.start)
            limits.append(r[-1] + 1 if n else 0)
            strides.append(step)
            lengths.append(n)
            is_dense = is_dense and (step == 1 or n <= 1)
        self.shape = shape
        self.lengths = tuple(lengths)
        self.layout = self.lengths if layout is None else layout
        self.backward = tuple(backward)
        self.starts, self.limits, self.strides = tuple(starts), tuple(limits), tuple(strides)
        self.is_dense = is_dense
        steps: list[Primitive] = []
        if self.lengths != shape:
            steps.append(Slice(self.starts, self.limits, self.strides))
        if self.backward:
            steps.append(Reverse(self.backward))
        self.cuts = tuple(steps)
        self.steps = self.cuts if self.layout == self.lengths else (*steps, reshaping(self.layout))
        self._set_caches()

    @classmethod
    def of_element(cls, n: int, place: int) -> Box:
        """One element of a vector. Loops read thousands of them, so that equal ones are shared."""
        box = cls.__new__(cls)
        box.shape, box.layout = (n,), ()
        box.lengths = box.strides = _ONE
        box.backward, box.is_dense = (), True
        box.starts, box.limits = (place,), (place + 1,)
        box.cuts = () if n == 1 else (Slice(box.starts, box.limits, _ONE),)
        box.steps = (*box.cuts, _SCALAR)
        box._set_caches()
        return box

    def _set_caches(self) -> None:
        self.is_element = not self.layout and len(self.steps) == 2
        self.types, self._begins, self._element, self._part = (None, ()), None, None, None

    @property
    def part(self) -> Part:
        """The operation that reads it of values at once."""
        if self._part is None:
            ranges = map(range, self.starts, self.limits, self.strides)
            index = [slice_of(r[::-1] if i in self.backward else r) for i, r in enumerate(ranges)]
            self._part = Part(self.by_steps, self.shape, self.shape, tuple(index), self.layout)
        return self._part

    def read(self, x: Any) -> Any:
        """This part of an array, by equations whose line is looked up once: loops read thousands.

        Args: x: The array; its value is strong.
        """
        trace = current_trace()
        if self.cuts and is_read_at_once(x):
            return trace.process(self.part, (x,))
        is_recorded = type(x) is StageTracer and x.owner is trace and bool(self.steps)
        if not is_recorded or not isinstance(trace, StageTrace):
            return self.by_steps(x)
        source, var = OBSERVED.locate(), x.atom
        if trace.is_searched and self.is_element:
            if self._element is None:
                self._element = ElementAt(self.starts)
            out = Var(shaped((), var.aval.dtype))
            trace.equations.append(Equation(self._element, (var,), (out,), source))
            return StageTracer(trace, out, source)
        of, types = self.types
        if of is not var.aval:
            types = self._types_of(var.aval)
        for step, aval in zip(self.steps, types, strict=True):
            inputs = (var,)
            var = Var(aval)
            trace.equations.append(Equation(step, inputs, (var,), source))
        return StageTracer(trace, var, source)

    def by_steps(self, x: Any) -> Any:
        """This part of an array, one operation after the other."""
        for step in self.steps:
            x = step.bind(x)
        return x

    def _types_of(self, aval: ShapedArray) -> Sequence[ShapedArray]:
        """The types of results of the steps that read an array of a type, which are kept."""
        types = []
        last = aval
        for step in self.steps:
            last = step.abstract_eval(last)
            types.append(last)
        self.types = aval, tuple(types)
        return types

    def spread(self, value: Any) -> Any:
        """Values of this part under the axes of the array: the reverse of reading them."""
        value = reshape(value, self.lengths)
        return Reverse(self.backward).bind(value) if self.backward else value

    def padded(self, value: Any, zero: Any) -> Any:
        """Zeros like the array, with ``value`` at its place."""
        value = self.spread(value)
        highs = tuple(n - limit for n, limit in zip(self.shape, self.limits, strict=True))
        gaps = tuple(step - 1 for step in self.strides)
        if not any((*self.starts, *highs, *gaps)):
            return value
        return Pad(self.starts, highs, gaps).bind(value, zero)

    def record_overwritten(self, x: StageTracer, value: StageTracer) -> StageTracer | None:
        """A copy with this part replaced, by equations that look their line up once.

        Args:
            x: The array.
            value: Its elements here.
        Returns: The copy; ``None`` unless the present program has both, of one dtype, the value
            has the layout of this part, and that steps of 1.
        """
        trace, var, update = x.owner, x.atom, value.atom
        aval, own = var.aval, update.aval
        is_alike = own.dtype is aval.dtype and own.shape == self.layout and value.owner is trace
        if not (is_alike and self.is_dense) or own.weak_type or aval.weak_type or self.backward:
            return None
        if trace is not current_trace() or self.lengths == self.shape:
            return None
        if self._begins is None:
            self._begins = tuple(trace.atom(np.int64(start)) for start in self.starts)
        source, equations = OBSERVED.locate(), trace.equations
        if trace.is_searched and self.is_element:
            out = Var(aval)
            equations.append(Equation(_SET, (var, update, *self._begins), (out,), source))
            return StageTracer(trace, out, source)
        if self.layout != self.lengths:
            inputs = (update,)
            update = Var(shaped(self.lengths, own.dtype))
            equations.append(Equation(reshaping(self.lengths), inputs, (update,), source))
        out = Var(aval)
        equations.append(Equation(_UPDATE, (var, update, *self._begins), (out,), source))
        return StageTracer(trace, out, source)

    def overwritten(self, x: Any, value: Any) -> Any:
        """Copy of an array with this part, which has steps of 1, replaced."""
        value = self.spread(value)
        if self.lengths == self.shape:
            return value
        return _UPDATE.bind(x, value, *map(np.int64, self.starts))


def slice_of(r: range) -> slice:
    """Places of a range, as Python writes them between brackets."""
    if not len(r):
        return slice(0, 0)
    stop = r[-1] + (1 if r.step > 0 else -1)
    return slice(r.start, None if stop < 0 else stop, r.step)


class Part(Primitive):
    """Some elements of an array, in one entry of a tape however many operations read them.

    Values are read and written by one index; of anything else the operations are applied.

    Args:
        read: The operations, of any array of this shape.
        shape: Of the array.
        seen: Another shape in which it is indexed.
        index: What NumPy takes.
        layout: Shape of the result.
    """

    read: Callable[[Any], Any]
    shape: Shape
    seen: Shape
    index: tuple[Any, ...]
    layout: Shape

    jvp = linear_jvp

    def bind(self, *args: Any) -> Any:
        return self.read(*args)

    def decomposed(self, x: Any) -> Sequence[Any]:
        return [self.read(x)]

    def impl(self, x: Any) -> Any:
        return x.reshape(self.seen)[self.index].reshape(self.layout)

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        if isinstance(ct, Tracer):
            mask, avals = [True], [shaped(self.shape, aval_of(ct).dtype)]
            linear = record_linear(lambda x: [self.read(x)], [None], mask, avals, self.name)[1]
            return linear.pull([ct])
        out = np.zeros(self.seen, ct.dtype)
        places = out[self.index]
        places[...] = ct.reshape(places.shape)
        return (out.reshape(self.shape),)


def is_read_at_once(x: Any) -> bool:
    """Whether it is followed by an eager gradient, so that reading a `Part` is one operation."""
    trace = current_trace()
    return type(x) is LinearizeTracer and x.owner is trace and trace.parent is EVAL


def known_key(index: Any) -> tuple[Any, ...] | None:
    """A hashable form of an index of known integers, slices, ``None`` and ``...``, if it is one."""
    key: list[Any] = []
    for e in index if type(index) is tuple else (index,):
        if type(e) is int or e is None or e is Ellipsis:
            key.append(e)
        elif type(e) is slice:
            start, stop, step = bounds = e.start, e.stop, e.step
            if not (type(start) in _KNOWN and type(stop) in _KNOWN and type(step) in _KNOWN):
                return None
            key.append(bounds)
        else:
            return None
    return tuple(key)


@lru_cache(4096)
def known_box(shape: Shape, key: tuple[Any, ...]) -> Box | None:
    """The part of an array that a `known_key` names.

    ``None`` for an index that is out of bounds, or of too many axes, whose errors are others'.

    It is remembered, as loops repeat their indices, and what they read they write.
    """
    if len(key) == len(shape) == 1 and type(key[0]) is int:  # loops over vectors have thousands
        n, place = shape[0], key[0]
        return Box.of_element(n, place % n) if -n <= place < n else None
    used = sum(e is not None and e is not Ellipsis for e in key)
    places = [i for i, e in enumerate(key) if e is Ellipsis]
    if len(places) > 1 or used > len(shape):
        return None
    i = places[0] if places else len(key)
    layout: list[int] = []
    ranges: list[range] = []
    for e in (*key[:i], *(_WHOLE,) * (len(shape) - used), *key[i + 1 :]):
        if e is None:
            layout.append(1)
            continue
        n = shape[len(ranges)]
        if type(e) is int:
            if not -n <= e < n:
                return None
            ranges.append(range(e % n, e % n + 1))
        else:
            ranges.append(range(*slice(*e).indices(n)))
            layout.append(len(ranges[-1]))
    return Box(shape, ranges, tuple(layout))
