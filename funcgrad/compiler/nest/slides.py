"""Windows that slide, as views: several axes of a view go along one axis of memory.

Where windows meet no element, the array is copied into a larger one with something around it. What
is between elements (a dilated base) is never stored: windows fall into *phases*, each of which
meets its own taps only, at elements that lie one stride apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.machine import ACROSS, SEVERAL
from funcgrad.compiler.nest import orders
from funcgrad.compiler.nest.access import difference, everything
from funcgrad.compiler.nest.builder import Builder
from funcgrad.compiler.nest.contractions import contracted, strided_cycles
from funcgrad.compiler.nest.kernel import neutral
from funcgrad.compiler.nest.layout import (
    Operand,
    S,
    Shape,
    Uniform,
    Value,
    View,
    cut,
    moved_axes,
    whole,
)
from funcgrad.compiler.nest.nodes import Copies, Fold, Point
from funcgrad.lowering import Contraction, Reduction, Reindex, Slide, WindowFold


@dataclass(frozen=True)
class Phase:
    """Every ``period``-th window, from ``start`` on, along one axis.

    Tap ``first_tap + tap_step * k`` of window ``start + period * o`` is the element
    ``first + stride * o + dilation * k``.
    """

    start: int
    period: int
    windows: int
    first_tap: int
    tap_step: int
    taps: int
    first: int
    stride: int
    dilation: int

    @property
    def reach(self) -> tuple[int, int]:
        """The first and the last element that is met; meaningful if there is one."""
        ends = [(self.windows - 1) * self.stride, (self.taps - 1) * self.dilation]
        low = self.first + sum(min(0, n) for n in ends)
        return low, self.first + sum(max(0, n) for n in ends)


def phases(slide: Slide) -> list[Phase]:
    """The windows of a slide, by which of its taps meet elements at all."""
    a, s, r = slide.base, slide.stride, slide.dilation
    period = a // math.gcd(s, a)
    tap_step = a // math.gcd(r, a)
    found = []
    for start in range(min(period, slide.windows)):
        windows = -(-(slide.windows - start) // period)
        place = s * start - slide.low
        meets = [k for k in range(min(tap_step, slide.taps)) if (place + r * k) % a == 0]
        first_tap = meets[0] if meets else 0
        taps = -(-(slide.taps - first_tap) // tap_step) if meets else 0
        first = (place + r * first_tap) // a
        stride, dilation = s * period // a, r * tap_step // a
        taken = windows, first_tap, tap_step, taps
        found.append(Phase(start, period, *taken, first, stride, dilation))
    return found


def _bounds(shape: Shape, rows: Sequence[Sequence[Phase]]) -> tuple[Shape, tuple[int, ...]]:
    """The shape of an array with all elements that phases meet, and how many come before it."""
    lows, highs = [], []
    for n, row in zip(shape, rows, strict=True):
        reach = [p.reach for p in row if p.windows and p.taps]
        lows.append(max([0, *(-low for low, _ in reach)]))
        highs.append(max([0, *(high - n + 1 for _, high in reach)]))
    return tuple(a + n + b for a, n, b in zip(lows, shape, highs, strict=True)), tuple(lows)


def _padded(
    builder: Builder,
    x: Operand,
    rows: Sequence[Sequence[Phase]],
    fill: Any,
    order: orders.Order | None = None,
) -> tuple[Operand, tuple[int, ...]]:
    """An operand with all elements that phases meet, and how many there are before its own.

    A copy, if one is made or an order is asked for, lies in that order or in that of the operand.
    """
    shape, lows = _bounds(x.shape, rows)
    if shape == x.shape and order is None:
        return x, lows
    if order is None:
        order = orders.followed_order([x]) or tuple(range(len(shape)))
    own, bounds = x.permuted(order), [(lows[i], shape[i]) for i in order]
    stored = _surrounded(builder, own, bounds, fill)
    stored.is_free = order != tuple(sorted(order))
    return whole(stored).permuted(orders.inverse(order)), lows


def _surrounded(
    builder: Builder, x: Operand, bounds: Sequence[tuple[int, int]], fill: Any
) -> Value:
    """A copy of an operand, ``low`` elements after the begin of each axis of a given length."""
    shape = tuple(length for _, length in bounds)
    out = Value(shape, x.dtype)
    parts: list[Operand] = []
    places: list[View] = []

    def put(part: Operand, bounds: Sequence[tuple[int, int]]) -> None:
        place = whole(out).reindexed(cut([a for a, _ in bounds]), part.shape)
        if math.prod(part.shape):
            parts.append(part)
            places.append(place)

    inner = tuple((low, low + n) for (low, _), n in zip(bounds, x.shape, strict=True))
    for around in difference(everything(shape), inner):
        put(Uniform(fill, tuple(b - a for a, b in around)), around)
    put(x, inner)
    return builder.add(Copies(tuple(parts), (out,), tuple(places))).out


def _assembled(
    builder: Builder,
    shape: Shape,
    dtype: np.dtype[Any],
    rows: Sequence[Sequence[Phase]],
    result: Callable[[tuple[Phase, ...]], Operand],
) -> Operand:
    """An array of the results of all phases, one phase along every axis."""
    every = list(itertools.product(*rows))
    if len(every) == 1:
        return result(every[0])
    out = Value(shape, dtype)
    parts, places = [], []
    for chosen in every:
        parts.append(result(chosen))
        places.append(_of_phase(whole(out), chosen))
    return builder.result(Copies(tuple(parts), (out,), tuple(places)))


def _of_phase(x: S, chosen: Sequence[Phase]) -> S:
    """The elements that stand at the windows of a phase."""
    form = replace(cut([p.start for p in chosen]), steps=tuple(p.period for p in chosen))
    return x.reindexed(form, tuple(p.windows for p in chosen))


def _taps(x: Operand, lows: Sequence[int], chosen: Sequence[Phase], axes: Sequence[int]) -> Operand:
    """Windows of a phase, then their taps along some axes; at the first tap of the others."""
    n = len(chosen)
    starts = tuple(low + p.first for low, p in zip(lows, chosen, strict=True))
    steps = [p.stride for p in chosen] + [chosen[i].dilation for i in axes]
    shape = tuple(p.windows for p in chosen) + tuple(chosen[i].taps for i in axes)
    return x.reindexed(Reindex((*range(n), *axes), starts, tuple(steps)), shape)


def sliding_contraction(builder: Builder, form: Contraction, x: Operand, y: Operand) -> Operand:
    """A convolution as contractions over windows and taps, one for each phase."""
    slides = dict(form.slides)
    lengths = dict(zip(form.rhs, y.shape, strict=True)) | dict(zip(form.lhs, x.shape, strict=True))
    unmoved = {c: phases(Slide(n, 1)) for c, n in lengths.items()}
    lhs_rows = [phases(slides[c]) if c in slides else unmoved[c] for c in form.lhs]
    shape = tuple(slides[c].windows if c in slides else lengths[c] for c in form.out)
    if not math.prod(shape) or not math.prod(x.shape) or not math.prod(y.shape):
        return Uniform(x.dtype.type(0), shape)
    used = form.lhs + form.rhs + form.out
    fresh = dict(zip(slides, (c for c in ascii_letters if c not in used), strict=False))
    lhs = form.lhs + "".join(fresh[c] for c in form.lhs if c in slides)
    rhs = "".join(fresh.get(c, c) for c in form.rhs)
    own = Contraction(lhs, rhs, form.out)
    axes = [i for i, c in enumerate(form.lhs) if c in slides]
    out_rows = [phases(slides[c]) if c in slides else unmoved[c] for c in form.out]

    def operands(
        padded: Operand, lows: Sequence[int], chosen: Sequence[Phase]
    ) -> tuple[Operand, Operand] | None:
        """Windows and taps of a phase, if it has any."""
        by_letter = dict(zip(form.out, chosen, strict=True))
        if any(by_letter[c].taps == 0 for c in slides):
            return None
        of_lhs = [by_letter.get(c, unmoved[c][0]) for c in form.lhs]
        cuts = [
            (by_letter[c].first_tap, by_letter[c].tap_step, by_letter[c].taps)
            if c in slides
            else (0, 1, lengths[c])
            for c in form.rhs
        ]
        starts, steps, sizes = zip(*cuts, strict=True)
        weights = y.reindexed(Reindex(tuple(range(len(cuts))), starts, steps), sizes)
        return _taps(padded, lows, of_lhs, axes), weights

    def cost(order: orders.Order | None) -> float:
        """About how many cycles it takes with a copy in an order, or without one."""
        shape, lows = _bounds(x.shape, lhs_rows)
        copied: Operand = x
        if order is not None:
            stored = Value(orders.permuted_shape(shape, order), x.dtype)
            copied = whole(stored).permuted(orders.inverse(order))
        found = (operands(copied, lows, chosen) for chosen in itertools.product(*out_rows))
        return sum(
            strided_cycles(builder, own, *pair, slides) for pair in found if pair is not None
        )

    order = _copied_order(form, x, _bounds(x.shape, lhs_rows)[0], cost)
    padded, lows = _padded(builder, x, lhs_rows, x.dtype.type(0), order)

    def result(chosen: tuple[Phase, ...]) -> Operand:
        pair = operands(padded, lows, chosen)
        if pair is None:
            return Uniform(x.dtype.type(0), tuple(p.windows for p in chosen))
        return contracted(builder, own, *pair, slides)

    return _assembled(builder, shape, x.dtype, out_rows, result)


def _copied_order(
    form: Contraction, x: Operand, shape: Shape, cost: Callable[[orders.Order | None], float]
) -> orders.Order | None:
    """The order of the axes of a copy of the first operand, if it is better to have one.

    Where there are few channels, and these lie side by side, windows are better side by side.
    """
    if isinstance(x, Uniform):
        return None
    sliding = [c for c, _ in form.slides]
    last = sorted(form.lhs, key=lambda c: (c in sliding, form.lhs.index(c)))
    moved = tuple(form.lhs.index(c) for c in last)
    as_it_is = orders.followed_order([x]) or tuple(range(len(shape)))
    if moved == as_it_is:
        return None
    is_padded = shape != x.shape
    before = cost(as_it_is if is_padded else None)
    after = cost(moved) + ACROSS / 2 * math.prod(shape)
    return moved if after < before else None


def window_fold(
    builder: Builder, form: WindowFold, operands: Sequence[Operand], out: Value
) -> Operand:
    """A fold of windows: an expression of all taps, or a reduction of a view of them."""
    order = orders.followed_order(operands)
    moving = [i for i in order or () if form.slides[i].taps > 1]
    if order is not None and moving == sorted(moving):  # the numbers of taps stay the same
        own = replace(form, slides=tuple(form.slides[i] for i in order))
        moved = Value(orders.permuted_shape(out.shape, order), out.dtype)
        folded = _window_fold(builder, own, [x.permuted(order) for x in operands], moved)
        if isinstance(folded, View):
            folded.value.is_free = True
        return folded.permuted(orders.inverse(order))
    return _window_fold(builder, form, operands, out)


def _window_fold(
    builder: Builder, form: WindowFold, operands: Sequence[Operand], out: Value
) -> Operand:
    if not math.prod(out.shape):
        return Uniform(neutral(form.init, out.dtype), out.shape)
    folding = _WindowFolding(builder, form, operands, out)
    return _assembled(builder, out.shape, out.dtype, folding.rows, folding.result)


class _WindowFolding:
    """A fold of windows, phase by phase.

    Attributes:
        rows: The phases along every axis.
        seen: The operands, and how many elements come before those that slide.
    """

    def __init__(
        self, builder: Builder, form: WindowFold, operands: Sequence[Operand], out: Value
    ) -> None:
        self.builder = builder
        self.form = form
        self.out = out
        self.rows = [phases(slide) for slide in form.slides]
        fills = iter(form.fills)
        self.seen: list[tuple[Operand, tuple[int, ...] | None]] = []
        for x, slides in zip(operands, form.sliding, strict=True):
            fill = next(fills) if slides else ""
            number = x.dtype.type(-1) if fill == "-1" else fill and neutral(fill, x.dtype)
            self.seen.append(_padded(builder, x, self.rows, number) if slides else (x, None))

    def result(self, chosen: tuple[Phase, ...]) -> Operand:
        """Result of one phase."""
        n_taps = math.prod(p.taps for p in chosen)
        shape, out = tuple(p.windows for p in chosen), self.out
        if not n_taps:
            return Uniform(neutral(self.form.init, out.dtype), shape)
        made = out if shape == out.shape else Value(shape, out.dtype)
        if n_taps <= 2 * SEVERAL:
            return self._expression(chosen, made)
        return self._reduction(chosen, made)

    def _expression(self, chosen: Sequence[Phase], out: Value) -> Operand:
        """One expression with an operand for every tap."""
        form, every = self.form, range(len(chosen))
        operands: list[Operand] = []
        names: list[str | None] = []
        views: list[Operand | None] = []
        for x, lows in self.seen:
            views.append(None if lows is None else _taps(x, lows, chosen, every))
            names.append(f"{{{len(operands)}}}" if lows is None else None)
            if lows is None:
                operands.append(_of_phase(x, chosen))
        has_number = f"{{{len(self.seen)}}}" in form.expr
        total = ""
        for place in _places(chosen):
            own = list(names)
            for i, view in enumerate(views):
                if view is not None:
                    own[i] = f"{{{len(operands)}}}"
                    form_of_tap = replace(moved_axes(every), starts=(*(0 for _ in every), *place))
                    operands.append(view.reindexed(form_of_tap, out.shape))
            if has_number:
                own.append(f"{{{len(operands)}}}")
                operands.append(Uniform(np.int32(self._number(chosen, place)), out.shape))
            value = form.expr.format(*own)
            total = form.step.format(total, value) if total else value
        return self.builder.result(Point(tuple(operands), (out,), total))

    def _reduction(self, chosen: Sequence[Phase], out: Value) -> Operand:
        """A reduction over the axes of taps of a view."""
        builder, form, n = self.builder, self.form, len(chosen)
        axes = [i for i, p in enumerate(chosen) if p.taps > 1]
        space = (*(p.windows for p in chosen), *(chosen[i].taps for i in axes))
        operands = []
        for x, lows in self.seen:
            if lows is None:
                spread = moved_axes((*range(n), *(None for _ in axes)))
                operands.append(_of_phase(x, chosen).reindexed(spread, space))
            else:
                operands.append(_taps(x, lows, chosen, axes))
        term = operands[0]
        if form.expr != "{0}":
            numbers = np.array([self._number(chosen, at) for at in _places(chosen)], np.int32)
            numbers = numbers.reshape([chosen[i].taps for i in axes])
            spread = moved_axes((*(None for _ in chosen), *range(len(axes))))
            operands.append(builder.array(numbers).reindexed(spread, space))
            terms = Value(space, out.dtype)
            term = builder.result(Point(tuple(operands), (terms,), form.expr))
        fold = Reduction(tuple(range(n, len(space))), form.init, form.step, form.accurate)
        return builder.result(Fold((term,), (out,), fold))

    def _number(self, chosen: Sequence[Phase], place: Sequence[int]) -> int:
        """The row-major number of a tap of a phase."""
        number = 0
        for p, slide, k in zip(chosen, self.form.slides, place, strict=True):
            number = number * slide.taps + p.first_tap + p.tap_step * k
        return number


def _places(chosen: Sequence[Phase]) -> Iterator[tuple[int, ...]]:
    """All taps of a phase."""
    return itertools.product(*(range(p.taps) for p in chosen))
