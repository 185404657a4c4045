"""Ragged loops: the parts of padded arrays that each iteration uses.

``extents_of : iterations -> Ragged``

A loop has arrays of one shape. Where those of its iterations differ in length, as in ``a[i, :i]``,
they are the shapes of the longest iteration, and each iteration uses a part of every axis: its
*extent*. A window begins in each iteration somewhere within the window of the longest one; what is
computed elementwise, transposed, reshaped or repeated has the extents of its operands; a fold is
taken over them (`funcgrad.higher_order.bounded`), and what is written replaces them alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from funcgrad import lowering as forms
from funcgrad.base.records import dataclass
from funcgrad.core.facets import Facet
from funcgrad.core.program import Atom, Equation
from funcgrad.higher_order.bounded import can_be_bounded
from funcgrad.lowering import Reshape as ReshapeForm
from funcgrad.passes.repeats import Integers

read_window: Facet[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None] = Facet(
    "read_window", None
)
"""The window of its only argument that an operation returns, if that is all it does.

Where it begins along each axis, how many elements it has, and how far apart they are.
"""

trip_count: Facet[int | None] = Facet("trip_count", None)
"""How many steps an operation takes that is a loop, and could take another number of."""

_MOST_PADDED = 1 << 16
"""The most elements of a padded table, unless a fourth of them or more is used."""

Numbers = tuple[int, ...]
"""One for every iteration."""


@dataclass(frozen=True)
class Extent:
    """The part of an axis that iterations use.

    Attributes:
        begins: Where it begins; ``None`` if all elements along the axis are equal.
        lengths: How long it is.
    """

    begins: Numbers | None
    lengths: Numbers

    @property
    def bounds(self) -> tuple[Numbers, Numbers]:
        """Begin and end."""
        begins = self.begins or (0,) * len(self.lengths)
        return begins, tuple(a + n for a, n in zip(begins, self.lengths, strict=True))

    @property
    def side(self) -> str:
        """The end of the axis that all parts reach: "low", "high", or none."""
        begins, ends = self.bounds
        if not any(begins):
            return "low"
        return "high" if min(ends) == max(self.lengths) else ""


Extents = tuple[Extent | None, ...]
"""By axis; ``None`` where all iterations use all of it."""


@dataclass(frozen=True)
class Handling:
    """How an operation is applied to arrays with extents.

    Attributes:
        kind: "plain" if it is applied to whole arrays, "window", "fold" or "update".
        operands: Extents of its operands.
        aligned: The extents at whose places the elements of operands have to be.
        result: Extents of its result.
    """

    kind: str
    operands: tuple[Extents, ...]
    aligned: tuple[Extents, ...]
    result: Extents


@dataclass(frozen=True)
class Ragged:
    """A loop whose iterations have arrays of different lengths.

    Attributes:
        longest: By equation of the body: the iteration whose arrays are the longest.
        handling: By equation of the body, where lengths differ.
        places: By equation that reads a window: where it begins, by iteration and axis, in the
            arrays of the longest iteration.
        counts: By equation that is a loop: its numbers of steps, if they differ.
    """

    longest: tuple[int, ...]
    handling: Mapping[int, Handling]
    places: Mapping[int, Integers]
    counts: Mapping[int, Numbers]

    def with_counts(self, counts: Mapping[int, Numbers]) -> Ragged:
        """The same with loops whose numbers of steps differ."""
        longest = list(self.longest)
        for j, numbers in counts.items():
            longest[j] = numbers.index(max(numbers))
        return replace(self, longest=tuple(longest), counts=counts)


class Unfit(Exception):
    """The lengths of iterations follow no rule that a loop could have."""


def extents_of(
    iterations: Sequence[Sequence[Equation]],
    local: Mapping[int, tuple[int, int]],
    tables: Collection[int],
    behind: Collection[tuple[int, int]],
    may_differ: bool,
) -> Ragged | str:
    """Lengths of the arrays of a loop.

    Args:
        iterations: The equations of each.
        local: By operand of the body: the equation and result of the same iteration that it is.
        tables: Operands that are known arrays, one for every iteration.
        behind: Results, by equation and number, that are read behind the loop.
        may_differ: Whether lengths may differ between iterations.
    Returns: The extents, or why a loop cannot have them.
    """
    body = iterations[0]
    windows = {j for j, e in enumerate(body) if read_window(e.primitive) is not None}
    shapes = (
        [
            [_lengths([(e[j].outputs[r],) for e in iterations]) for r in range(len(x.outputs))]
            for j, x in enumerate(body)
        ]
        if may_differ
        else []
    )
    if may_differ and not _are_given_alike(iterations, {*local, *tables}):
        return "iterations are given arrays of different lengths"
    counts = _trip_counts(iterations) if may_differ else {}
    if not any((s != s[0]).any() for of_equation in shapes for s in of_equation):
        places = {j: _places(iterations, j) for j in windows}
        return Ragged((0,) * len(body), {}, places, {}).with_counts(counts)
    if any((shapes[j][r] != shapes[j][r][0]).any() for j, r in behind):
        return "arrays of different lengths are read behind them"
    try:
        return _Analysis(iterations, shapes, local, tables).ragged().with_counts(counts)
    except Unfit as unfit:
        return str(unfit)


def _lengths(rows: Sequence[Sequence[Atom]]) -> Integers:
    """Lengths of all axes of the arrays in each row."""
    flat = [n for row in rows for x in row for n in x.aval.shape]
    return np.array(flat, np.int64).reshape(len(rows), -1)


def _trip_counts(iterations: Sequence[Sequence[Equation]]) -> dict[int, Numbers]:
    """Numbers of steps of the loops in a body, where they differ."""
    found = {}
    for j, equation in enumerate(iterations[0]):
        if trip_count(equation.primitive) is not None:
            counts = tuple(trip_count(e[j].primitive) or 0 for e in iterations)
            if len(set(counts)) > 1:
                found[j] = counts
    return found


def _are_given_alike(iterations: Sequence[Sequence[Equation]], others: Collection[int]) -> bool:
    """Whether all operands but some have the same type in all iterations."""
    firsts = [x.aval for e in iterations[0] for x in e.inputs]
    given = [c for c in range(len(firsts)) if c not in others]
    for equations in iterations:
        avals = [x.aval for e in equations for x in e.inputs]
        if any(avals[c] is not firsts[c] and avals[c] != firsts[c] for c in given):
            return False
    return True


def places_of(equations: Sequence[Equation]) -> Integers:
    """Begin of the windows of equations that read one each, by axis."""
    numbers = chain.from_iterable(window[0] for window in map(_WINDOW, equations))
    return np.fromiter(numbers, np.int64).reshape(len(equations), -1)


_WINDOW = attrgetter(f"primitive.{read_window.name}")


def _places(iterations: Sequence[Sequence[Equation]], j: int) -> Integers:
    """Places at which the windows of an equation begin, by iteration and axis."""
    return places_of([e[j] for e in iterations])


@dataclass(eq=False)
class _Analysis:
    """Extents of the results of a body, in order.

    Args:
        iterations: The equations of each.
        shapes: By equation and result: the shapes in all iterations.
        local: As in `extents_of`.
        tables: As in `extents_of`.
    """

    iterations: Sequence[Sequence[Equation]]
    shapes: Sequence[Sequence[Integers]]
    local: Mapping[int, tuple[int, int]]
    tables: Collection[int]

    def __post_init__(self) -> None:
        self.longest = [self._longest(j) for j in range(len(self.shapes))]
        self.found: dict[tuple[int, int], tuple[Extents, bool]] = {}
        """By equation and result: its extents, and whether it is a view of an array."""

    def _longest(self, j: int) -> int:
        """The iteration in which the operands and results of an equation are the longest."""
        sizes = _lengths([(*e[j].inputs, *e[j].outputs) for e in self.iterations])
        longest = int(np.argmax(sizes.sum(1)))
        if (sizes > sizes[longest]).any():
            raise Unfit("arrays grow along one axis and shrink along another one")
        return longest

    def ragged(self) -> Ragged:
        handling: dict[int, Handling] = {}
        places: dict[int, Integers] = {}
        column = 0
        for j, longest in enumerate(self.longest):
            equation = self.iterations[longest][j]
            operands, views = self._operands(column, j, equation)
            is_table = [column + k in self.tables for k in range(len(equation.inputs))]
            column += len(equation.inputs)
            window = read_window(equation.primitive)
            is_ragged = any(map(_is_ragged, operands)) or any(
                (s != s[0]).any() for s in self.shapes[j]
            )
            if window is not None:
                places[j] = self._places(j, operands[0])
            if not is_ragged:
                continue
            if len(equation.outputs) != 1:
                raise Unfit(f"{equation.primitive.name} has arrays of different lengths")
            if window is not None:
                rule = self._window(j, window, places[j], operands)
            else:
                rule = self._rule(j, equation, forms.form_of(equation), operands, views, is_table)
            self._check(j, rule.result)
            handling[j] = rule
            is_view = rule.kind == "window" or (rule.kind == "plain" and all(views))
            self.found[j, 0] = rule.result, is_view
        return Ragged(tuple(self.longest), handling, places, {})

    def _operands(
        self, column: int, j: int, equation: Equation
    ) -> tuple[list[Extents], list[bool]]:
        extents: list[Extents] = []
        views = []
        for k, atom in enumerate(equation.inputs):
            if column + k in self.tables:
                extents.append(_rows_of([e[j].inputs[k] for e in self.iterations]))
                views.append(False)
                continue
            made = self.local.get(column + k)
            known = None if made is None else self.found.get(made)
            extents.append((None,) * atom.aval.ndim if known is None else known[0])
            views.append(known is not None and known[1])
        return extents, views

    def _check(self, j: int, extents: Extents) -> None:
        """Extents have the lengths that the result has in fact."""
        shapes = self.shapes[j][0]
        for axis, extent in enumerate(extents):
            lengths = shapes[:, axis]
            if extent is None and (lengths != lengths[0]).any():
                raise Unfit("lengths of iterations differ where nothing tells why")
            if extent is not None and tuple(lengths.tolist()) != extent.lengths:
                raise Unfit("lengths of iterations do not follow from each other")

    # Windows.

    def _places(self, j: int, operand: Extents) -> Integers:
        """Places at which windows begin in the array of the longest iteration."""
        places = _places(self.iterations, j)
        for axis, extent in enumerate(operand):
            if extent is not None and extent.begins is not None:
                places[:, axis] += np.array(extent.begins)
        return places

    def _window(self, j: int, window: Any, places: Integers, operands: list[Extents]) -> Handling:
        """Bounds of a window within one as long as the longest, whose place is in ``places``.

        The longest iteration's window serves if it holds all others; else windows move along.
        """
        strides = window[2]
        shapes = self.shapes[j][0]
        (x,) = self.iterations[0][j].inputs
        result: list[Extent | None] = []
        for axis in range(shapes.shape[1]):  # none of a single element
            stride, lengths = strides[axis], shapes[:, axis]
            if (lengths == lengths[0]).all():
                result.append(None)
                continue
            firsts = np.full_like(lengths, places[self.longest[j], axis])
            begins, rest = np.divmod(places[:, axis] - firsts, stride)
            if stride == 1 and operands[0][axis] is None and not _lie_within(begins, lengths):
                firsts = np.minimum(places[:, axis], x.aval.shape[axis] - lengths.max())
                begins = places[:, axis] - firsts
            places[:, axis] = firsts
            result.append(self._within(begins, rest, lengths))
        return Handling("window", tuple(operands), (), tuple(result))

    def _within(self, begins: Integers, rest: Integers, lengths: Integers) -> Extent:
        # Where nothing is read, it does not matter from where.
        begins = np.where(lengths == 0, 0, begins)
        rest = np.where(lengths == 0, 0, rest)
        if rest.any() or not _lie_within(begins, lengths):
            raise Unfit("windows do not lie within that of the longest iteration")
        return Extent(tuple(begins.tolist()), tuple(lengths.tolist()))

    # Other operations.

    def _rule(
        self,
        j: int,
        equation: Equation,
        form: forms.Form,
        operands: list[Extents],
        views: list[bool],
        is_table: list[bool],
    ) -> Handling:
        match form:
            case forms.Pointwise(counts=()):
                return self._pointwise(operands, equation.outputs[0].aval.ndim)
            case forms.Reindex():
                return self._reindexed(j, equation, form, operands)
            case ReshapeForm():
                return self._reshaped(equation, operands)
            case forms.Contraction():
                return self._contracted(equation, form, operands, views)
            case forms.Reduction() if can_be_bounded(form):
                self._keeps_layout(equation, operands, views)
                kept = (x for i, x in enumerate(operands[0]) if i not in form.axes)
                return Handling("fold", tuple(operands), tuple(operands), tuple(kept))
            case forms.Lookup() if all(is_table[1:]) and not _is_ragged(operands[0]):
                places = self._pointwise(operands[1:], max(map(len, operands[1:])))
                rest = (None,) * (equation.outputs[0].aval.ndim - len(places.result))
                aligned = (operands[0], *places.aligned)
                return Handling("plain", tuple(operands), aligned, (*places.result, *rest))
            case forms.Replace():
                return self._update(j, equation, operands)
        raise Unfit(f"{equation.primitive.name} has arrays of different lengths")

    def _pointwise(self, operands: list[Extents], ndim: int) -> Handling:
        result: list[Extent | None] = []
        for axis in range(-ndim, 0):
            own = [x[axis] for x in operands if len(x) >= -axis]
            result.append(_common(x for x in own if x is not None))
        aligned = tuple(
            tuple(
                None if x is None else result[axis - len(extents)] for axis, x in enumerate(extents)
            )
            for extents in operands
        )
        return Handling("plain", tuple(operands), aligned, tuple(result))

    def _reindexed(
        self, j: int, equation: Equation, form: forms.Reindex, operands: list[Extents]
    ) -> Handling:
        (extents,) = operands
        shape = equation.inputs[0].aval.shape
        shapes = self.shapes[j][0]
        result: list[Extent | None] = []
        for out_axis, (axis, step) in enumerate(zip(form.axes, form.steps, strict=True)):
            lengths = shapes[:, out_axis]
            extent = None if axis is None else extents[axis]
            if axis is None:
                is_even = bool((lengths == lengths[0]).all())
                result.append(None if is_even else Extent(None, tuple(lengths.tolist())))
            elif extent is None or extent.begins is None or (step, form.starts[axis]) == (1, 0):
                result.append(extent)
            elif (step, form.starts[axis]) == (-1, shape[axis] - 1):
                ends = extent.bounds[1]
                result.append(Extent(tuple(shape[axis] - b for b in ends), extent.lengths))
            else:
                raise Unfit(f"{equation.primitive.name} has arrays of different lengths")
        used = {axis for axis in form.axes if axis is not None}
        if any(x is not None for i, x in enumerate(extents) if i not in used):
            raise Unfit(f"{equation.primitive.name} takes one element of arrays that differ")
        return Handling("plain", tuple(operands), tuple(operands), tuple(result))

    def _reshaped(self, equation: Equation, operands: list[Extents]) -> Handling:
        """Axes of length 1 come and go; the others stay."""
        shape, out = equation.inputs[0].aval.shape, equation.outputs[0].aval.shape
        (extents,) = operands
        if any(x is not None and n < 2 for n, x in zip(shape, extents, strict=True)):
            raise Unfit("iterations have one element at most along an axis")
        kept = [i for i, n in enumerate(shape) if n != 1]
        places = [i for i, n in enumerate(out) if n != 1]
        if [shape[i] for i in kept] != [out[i] for i in places]:
            raise Unfit("arrays of different lengths are put into another shape")
        result: list[Extent | None] = [None] * len(out)
        for i, place in zip(kept, places, strict=True):
            result[place] = extents[i]
        return Handling("plain", tuple(operands), tuple(operands), tuple(result))

    def _contracted(
        self,
        equation: Equation,
        form: forms.Contraction,
        operands: list[Extents],
        views: list[bool],
    ) -> Handling:
        self._keeps_layout(equation, operands, views)
        labels = (form.lhs, form.rhs)
        by_label: dict[str, Extent] = {}
        for label in form.lhs + form.rhs:
            own = [
                x
                for names, extents in zip(labels, operands, strict=True)
                for name, x in zip(names, extents, strict=True)
                if name == label and x is not None
            ]
            common = _common(own)
            if common is not None:
                by_label[label] = common
        aligned = tuple(tuple(map(by_label.get, names)) for names in labels)
        result = tuple(map(by_label.get, form.out))
        return Handling("fold", tuple(operands), aligned, result)

    def _keeps_layout(self, equation: Equation, operands: list[Extents], views: list[bool]) -> None:
        """Sums have an order by layout: parts of arrays that were computed would have another."""
        for atom, extents, is_view in zip(equation.inputs, operands, views, strict=True):
            if _is_ragged(extents) and not is_view and atom.aval.ndim > 1:
                raise Unfit("arrays of several axes that were computed are summed in another order")

    def _update(self, j: int, equation: Equation, operands: list[Extents]) -> Handling:
        """The part that is written of what the longest iteration writes."""
        target, update, *_ = operands
        if _is_ragged(target):
            raise Unfit("elements of arrays of different lengths are assigned to")
        aligned: list[Extent | None] = []
        for axis, extent in enumerate(update):
            if extent is None:
                aligned.append(None)
                continue
            starts = [e[j].inputs[2 + axis] for e in self.iterations]
            if any(not hasattr(x, "value") for x in starts):
                raise Unfit("parts of different lengths begin at places that are computed")
            values = np.array([x.value for x in starts], np.int64)  # type: ignore[union-attr]
            lengths = np.array(extent.lengths)
            begins = values - values[self.longest[j]]
            aligned.append(self._within(begins, np.zeros_like(begins), lengths))
        places = (target, tuple(aligned), *operands[2:])
        return Handling("update", tuple(operands), places, target)


def _rows_of(arrays: Sequence[Atom]) -> Extents:
    """Extents of rows of a table, which are as long as the longest of them."""
    shapes = np.array([x.aval.shape for x in arrays])
    if len(shapes) * shapes.max(0).prod() > max(_MOST_PADDED, 4 * shapes.prod(1).sum()):
        raise Unfit("iterations are given arrays of very different lengths")
    return tuple(
        None if (n == n[0]).all() else Extent((0,) * len(n), tuple(n.tolist())) for n in shapes.T
    )


def _lie_within(begins: Integers, lengths: Integers) -> bool:
    """Whether parts lie in an array as long as the longest of them, but for those of no length."""
    is_outside = (begins < 0) | (begins + lengths > lengths.max())
    return not (is_outside & (lengths > 0)).any()


def _is_ragged(extents: Extents) -> bool:
    return any(x is not None for x in extents)


def _common(extents: Iterable[Extent]) -> Extent | None:
    """The extent at whose places elements are taken together: the first one that has places."""
    found: Extent | None = None
    for x in extents:
        if found is not None and found.lengths != x.lengths:
            raise Unfit("arrays of different lengths are repeated along an axis")
        if found is None or found.begins is None:
            found = x
    return found


__all__ = ["Extent", "Extents", "Handling", "Ragged", "extents_of", "places_of", "read_window"]
