"""Plans for ranges of sizes: one text, whose numbers are formulas of the sizes.

``Pieces.cover : box of sizes -> pieces``. Kernels do not depend on sizes, but which of them a plan
has may: the compiler prefers others for few elements, and divides work that no cache holds. A piece
is a box of sizes with one plan. Along each axis it begins where the compiler takes kernels of
another text for fewer elements, found by bisection. The numbers of the plan are interpolated by
polynomials, exactly, from those of sizes in the box, and compared with further ones.

Within a piece there may be sizes for which the compiler prefers another plan, such as those whose
product is small. Each of them was seen in the plan of the piece, with other sizes beside it; so
they have that plan, and sums may be rounded in another order there. Sizes that happen to be equal
take the plan of sizes that differ.

Scratch memory is laid out anew, for the compiler packs it by the sizes that it knows. Buffers that
it has once let overlap are never alive together, so they may share a range whatever the sizes are.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError
from funcgrad.interop.c.plan import PlanWriter

Point = tuple[int, ...]
Box = tuple[tuple[int, int], ...]
"""The first and the last size, for every name."""

Monomial = tuple[int, ...]
"""The exponents of all names."""

ALIGNMENT = 64
"""Bytes by which scratch memory may be moved to an aligned address."""

_MOST_PLANS = 2048
"""Plans that are made, at most, to find the pieces of all sizes."""

_MORE = 3
"""Plans that formulas are compared with, besides those that they are made from."""

_MOST_FAILURES = 16
"""Boxes without a piece that are halved."""

_LEAST_VALUES = 4
"""Sizes of every name that formulas are made from, at least, if there are as many."""

_FEW = 12
"""Sizes of a box of which all are looked at."""


# Formulas.


@dataclass(frozen=True)
class Formula:
    """A number of a plan for all sizes of a piece.

    Attributes:
        terms: Monomials with their coefficients, which are not 0.
        divisor: What the sum of the terms is divided by.
        form: Of `_FORMS`: what becomes of the quotient.
    """

    terms: tuple[tuple[Monomial, int], ...]
    divisor: int = 1
    form: str = ""

    def at(self, point: Point) -> int | None:
        """The number for some sizes."""
        total = sum(coefficient * _power(point, m) for m, coefficient in self.terms)
        return _FORMS[self.form].word(Fraction(total, self.divisor))

    def text(self, names: Sequence[str]) -> str:
        """The formula as an expression of C.

        Args: names: Expressions for the sizes.
        """
        total = ""
        for monomial, coefficient in self.terms:
            factors = [name for name, n in zip(names, monomial, strict=True) for _ in range(n)]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = " - " if coefficient < 0 else " + "
            total += (sign if total else sign.strip(" +")) + " * ".join(factors)
        total = total or "0"
        form = _FORMS[self.form].text
        if not form:
            return total if self.divisor == 1 else f"fg_quotient({total}, {self.divisor})"
        number = f"fg_float64({total})"
        return form.format(number if self.divisor == 1 else f"{number} / {self.divisor}")


class _Form(NamedTuple):
    """Numbers that are made of polynomials.

    Attributes:
        inverse: The polynomial's value, of a word; `None` if it is none of this form.
        word: The word, of the polynomial's value; `None` if there is none.
        text: The same as an expression.
    """

    inverse: Callable[[int], Fraction | None]
    word: Callable[[Fraction], int | None]
    text: str = ""


def _of_floats(
    kind: str, text: str, function: Callable[[float], float], invert: Callable[[float], float]
) -> _Form:
    """Bits of a function of a polynomial whose values are quarters of integers."""
    integer = {"d": "=q", "f": "=i"}[kind]

    def inverse(bits: int) -> Fraction | None:
        try:
            (x,) = struct.unpack(f"={kind}", struct.pack(integer, bits))
            found = Fraction(round(4 * invert(x)), 4)
        except (ArithmeticError, ValueError, struct.error):
            return None
        return found if word(found) == bits else None

    def word(x: Fraction) -> int | None:
        try:
            bits = struct.pack(f"={kind}", function(float(x)))
        except (ArithmeticError, ValueError):
            return None
        return int(struct.unpack(integer, bits)[0])

    return _Form(inverse, word, f"fg_word{64 if kind == 'd' else 32}({text})")


_FORMS = {
    "": _Form(Fraction, int),
    **{
        f"{kind} {text}": _of_floats(kind, text, function, invert)
        for kind in "df"
        for text, function, invert in (
            ("{0}", float, float),
            ("1 / ({0})", lambda x: 1 / x, lambda x: 1 / x),
            ("sqrt({0})", math.sqrt, lambda x: x * x),
            ("1 / sqrt({0})", lambda x: 1 / math.sqrt(x), lambda x: 1 / (x * x)),
        )
    },
}
"""Integers, and floats whose bits are words: sizes, means, and scales of them."""


def _power(point: Point, monomial: Monomial) -> int:
    return math.prod(x**n for x, n in zip(point, monomial, strict=True))


def _sets_of_monomials(points: Sequence[Point]) -> Iterator[list[Monomial]]:
    """Sets of monomials, the smaller ones first; a size has no more powers than values."""
    counts = [len({*sizes}) for sizes in zip(*points, strict=True)]
    for most, degree in ((1, len(counts)), (2, 2), (3, 3)):
        exponents = [range(min(most + 1, count)) for count in counts]
        yield [m for m in itertools.product(*exponents) if sum(m) <= degree]


class _Basis:
    """Polynomials that are found from their values at some points.

    Attributes:
        rows: Which points they are found from; fewer than monomials if these do not suffice.
    """

    def __init__(self, points: Sequence[Point], monomials: Sequence[Monomial]) -> None:
        self.points, self.monomials = points, monomials
        self.rows: list[int] = []
        reduced: list[tuple[int, list[Fraction]]] = []  # with the places of their first numbers
        for k, point in enumerate(points):
            row = [Fraction(_power(point, m)) for m in monomials]
            for place, other in reduced:
                row = [x - row[place] * y for x, y in zip(row, other, strict=True)]
            place = next((j for j, x in enumerate(row) if x), -1)
            if place >= 0:
                self.rows.append(k)
                reduced.append((place, [x / row[place] for x in row]))
        if self.is_complete:
            self.inverse = self._inverse()

    @property
    def is_complete(self) -> bool:
        return len(self.rows) == len(self.monomials)

    def _inverse(self) -> list[list[Fraction]]:
        """The matrix that gives coefficients, by the method of Gauss and Jordan."""
        n = len(self.rows)
        table = [
            [Fraction(_power(self.points[k], m)) for m in self.monomials]
            + [Fraction(i == j) for j in range(n)]
            for i, k in enumerate(self.rows)
        ]
        for k in range(n):
            pivot = next(j for j in range(k, n) if table[j][k])
            table[k], table[pivot] = table[pivot], table[k]
            table[k] = [x / table[k][k] for x in table[k]]
            for j in range(n):
                if j != k:
                    factor = table[j][k]
                    table[j] = [x - factor * y for x, y in zip(table[j], table[k], strict=True)]
        return [row[n:] for row in table]

    def fit(self, words: Sequence[int]) -> Formula | None:
        """The formula that has some words at the points."""
        for name, form in _FORMS.items():
            values = [form.inverse(words[k]) for k in self.rows]
            known = [x for x in values if x is not None]
            if len(known) == len(values):
                found = self._interpolated(known, name)
                if all(found.at(p) == word for p, word in zip(self.points, words, strict=True)):
                    return found
        return None

    def _interpolated(self, values: Sequence[Fraction], form: str) -> Formula:
        exact = [sum(map(Fraction.__mul__, row, values), Fraction()) for row in self.inverse]
        divisor = math.lcm(*(x.denominator for x in exact))
        pairs = zip(self.monomials, exact, strict=True)
        return Formula(tuple((m, int(x * divisor)) for m, x in pairs if x), divisor, form)


# Pieces.


class Plan(NamedTuple):
    """A plan of some sizes.

    Attributes:
        text: The statements.
        nbytes: Scratch memory that it takes as the compiler has laid it out.
    """

    text: PlanWriter
    nbytes: int

    @property
    def arena_slot(self) -> int:
        """The slot of its scratch memory; -1 if it needs none."""
        return self.text.memory.arena_slot if self.nbytes else -1

    @property
    def key(self) -> Any:
        """Equal for plans that differ by numbers alone."""
        marks = tuple(mark.buffer for mark in self.text.marks)
        buffers = tuple((x.arena, x.inner) for x in self.text.buffers)
        return self.arena_slot, tuple(self.text.lines), marks, buffers

    @property
    def words(self) -> list[int]:
        """Its numbers, and the sizes of its buffers; those of arenas are found anew."""
        sizes = (0 if x.inner >= 0 else max(x.nbytes, 1) for x in self.text.buffers)
        return [*(_signed(mark.value) for mark in self.text.marks), *sizes]

    @property
    def numbers(self) -> list[int]:
        """Its numbers with the offsets that the compiler has given to buffers."""
        offsets = [*(x.offset for x in self.text.buffers), 0]
        return [_signed(mark.value + offsets[mark.buffer]) for mark in self.text.marks]


def _signed(value: int) -> int:
    """A word of 64 bits."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


@dataclass(frozen=True)
class Piece:
    """Sizes with a plan.

    Attributes:
        box: The sizes.
        plan: Their plan, or that of one of them.
        formulas: Its `Plan.words`; nothing if the box is a point.
        ranges: Buffers by the ranges of scratch memory that they share.
    """

    box: Box
    plan: Plan
    formulas: tuple[Formula, ...] = ()
    ranges: tuple[tuple[int, ...], ...] = ()

    def statements(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Variables and their values: the sizes of arenas, then offsets of buffers in them.

        Args: names: Expressions for the sizes.
        Returns: The pairs, in order. ``total``, the last, is the scratch memory that the plan
            needs.
        """
        buffers, n = self.plan.text.buffers, len(self.plan.text.marks)
        found: list[tuple[str, str]] = []
        totals: dict[int, str] = {}

        def total(arena: int) -> str:
            """The variable of an arena's size."""
            if arena not in totals:
                now = "0"
                for row in self.ranges:
                    if buffers[row[0]].arena != arena:
                        continue
                    sizes = [
                        total(buffers[k].inner)
                        if buffers[k].inner >= 0
                        else self.formulas[n + k].text(names)
                        for k in row
                    ]
                    size = _nested("fg_larger", [*dict.fromkeys(sizes)])
                    found.extend((f"at_{k}", now) for k in row)
                    now = f"at_{row[0]} + fg_room({size})"
                totals[arena] = f"arena_{arena}"
                found.append((totals[arena], now))
            return totals[arena]

        nbytes = f"{total(self.plan.arena_slot)} + {ALIGNMENT}" if self.plan.nbytes else "0"
        return [*found, ("total", nbytes)]

    def nbytes(self, point: Point) -> int:
        """Scratch memory for some sizes."""
        if not self.formulas:
            return self.plan.nbytes
        buffers, n = self.plan.text.buffers, len(self.plan.text.marks)

        def total(arena: int) -> int:
            ranges = (row for row in self.ranges if buffers[row[0]].arena == arena)
            return sum(-(-max(map(size, row)) // ALIGNMENT) * ALIGNMENT for row in ranges)

        def size(k: int) -> int:
            inner = buffers[k].inner
            found = total(inner) if inner >= 0 else self.formulas[n + k].at(point)
            assert found is not None  # a length is no bits of a float
            return found

        return total(self.plan.arena_slot) + ALIGNMENT if self.plan.nbytes else 0

    def numbers(self, names: Sequence[str]) -> list[str]:
        """Expressions of the plan's numbers, of sizes and of the variables of `statements`."""
        texts = []
        for formula, mark in zip(self.formulas, self.plan.text.marks, strict=False):
            text = formula.text(names)
            if mark.buffer >= 0:
                text = f"at_{mark.buffer}" + (f" + {text}" if text != "0" else "")
            texts.append(text)
        return texts


def _nested(function: str, texts: Sequence[str]) -> str:
    """A function of two numbers, of any number of them."""
    first, *others = texts
    return f"{function}({first}, {_nested(function, others)})" if others else first


def _count(box: Box) -> int:
    """The number of points of a box."""
    return math.prod(high - low + 1 for low, high in box)


def _is_in(point: Point, box: Box) -> bool:
    return all(low <= x <= high for x, (low, high) in zip(point, box, strict=True))


def _moved(point: Point, axis: int, size: int) -> Point:
    """A point with another size of an axis."""
    return (*point[:axis], size, *point[axis + 1 :])


class Pieces:
    """Finds the pieces of boxes.

    Args:
        names: Of the sizes.
        plan_of: Makes the plan of sizes.
        what: How messages call the function.
    """

    def __init__(self, names: Sequence[str], plan_of: Callable[[Point], Plan], what: str) -> None:
        self.names, self.what = names, what
        self._plan_of = plan_of
        self._plans: dict[Point, tuple[Plan, Any]] = {}
        self._points: dict[Any, list[Point]] = {}
        self._known: dict[Any, list[tuple[Formula, ...]]] = {}
        self._failures = 0
        self._random = np.random.default_rng(0)

    def cover(self, box: Box) -> Iterator[Piece]:
        """The pieces of a box."""
        top = self._different(box, tuple(high for _, high in box))
        if all(low == high for low, high in box):
            yield Piece(box, self._plan(top))
            return
        piece = self._piece(box, top)
        if piece is not None:
            yield piece
            lows = [low for low, _ in piece.box]
            for axis, (low, _) in enumerate(box):
                if low < lows[axis]:
                    rest = (*piece.box[:axis], (low, lows[axis] - 1), *box[axis + 1 :])
                    yield from self.cover(rest)
            return
        counts = [high - low + 1 for low, high in box]
        axis = min(range(len(box)), key=lambda k: counts[k] if counts[k] > 1 else math.inf)
        parts = [(size, size) for size in range(box[axis][0], box[axis][1] + 1)]
        if counts[axis] > _FEW:
            self._failures += 1
            if self._failures > _MOST_FAILURES:
                self._refuse_numbers(box)
            axis = max(range(len(box)), key=lambda k: (box[k][1] + 1) / (box[k][0] + 1))
            low, high = box[axis]
            middle = min(math.isqrt(low * high), high - 1)
            parts = [(low, middle), (middle + 1, high)]
        for part in parts:
            yield from self.cover((*box[:axis], part, *box[axis + 1 :]))

    def _piece(self, box: Box, top: Point) -> Piece | None:
        """A piece with the largest sizes of a box, if there is one."""
        for axis, (low, _) in enumerate(box):
            self._look_for_least(top, axis, low)
        keys = Counter(self._key(p) for p in self._sample(box, top, None))
        for key in dict.fromkeys(
            [self._key(top), *(x for x, _ in keys.most_common()), *self._known]
        ):
            inner = self._extent(box, key)
            formulas = self._formulas(inner, top, key) if inner else None
            if formulas is not None:
                plans = [self._plan(p) for p in self._points[key]]
                return Piece(inner, plans[0], formulas, _shared(plans))
        return None

    def _extent(self, box: Box, key: Any) -> Box:
        """Sizes of a box that were seen in plans of a text; none if the largest were not."""
        found = []
        for axis, (low, high) in enumerate(box):
            points = self._points[key]
            others = [math.prod(p[:axis] + p[axis + 1 :]) for p in points]
            for p in (points[others.index(max(others))], points[others.index(min(others))]):
                if max(p[axis] for p in points) < high:
                    self._key(_moved(p, axis, high))
            sizes = [p[axis] for p in self._points[key]]
            if not min(sizes) <= high <= max(sizes):
                return ()
            found.append((max(low, min(sizes)), high))
        return tuple(found)

    def check(self, box: Box) -> None:
        """Refuse a large box whose plans seem to have no text in common."""
        if _count(box) <= _MOST_PLANS:
            return
        middle = [(low + high) // 2 + k for k, (low, high) in enumerate(box)]
        for axis, (low, high) in enumerate(box):
            around = range(max(low, middle[axis] - 1), min(high, middle[axis] + 1) + 1)
            points = [(*middle[:axis], x, *middle[axis + 1 :]) for x in around]
            if len({self._key(p) for p in points}) == len(points) > 2:
                self._refuse(f"{self.names[axis]} = {around[0]}, {around[1]} and {around[2]}")

    def _refuse(self, which: str) -> None:
        raise ArgumentError(
            f"{self.what}: every size has a program of its own, such as those of {which}: Python "
            "loops over a size, or arrays that depend on it, are part of the program. Write loops "
            f"with lax.scan and make arrays of arguments, or list up to {_MOST_PLANS} sizes."
        )

    def _refuse_numbers(self, box: Box) -> None:
        pairs = zip(self.names, box, strict=True)
        where = " and ".join(f"{name} = {low} to {high}" for name, (low, high) in pairs)
        raise ArgumentError(
            f"{self.what}: no formula gives the numbers of the programs of {where}: the compiler "
            "divides the work for sizes that no cache holds. Give ranges without them, or list "
            "some of them."
        )

    def _plan(self, point: Point) -> Plan:
        return self._made(point)[0]

    def _key(self, point: Point) -> Any:
        return self._made(point)[1]

    def _made(self, point: Point) -> tuple[Plan, Any]:
        if point not in self._plans:
            if len(self._plans) >= _MOST_PLANS:
                self._refuse(" and of ".join(map(str, (*self._plans,)[-2:])))
            plan = self._plan_of(point)
            self._plans[point] = plan, plan.key
            self._points.setdefault(plan.key, []).append(point)
        return self._plans[point]

    def _different(self, box: Box, point: Point) -> Point:
        """A point, with smaller sizes in place of those that happen to be equal, if there are."""
        found: list[int] = []
        for x, (low, _) in zip(point, box, strict=True):
            free = (y for y in range(x, low - 1, -1) if y not in found)
            found.append(next(free, x))
        return tuple(found)

    def _look_for_least(self, top: Point, axis: int, low: int) -> None:
        """Make the plan of the least size of an axis whose text is that of a larger one."""
        same, key = top[axis], self._key(top)
        if self._key(_moved(top, axis, low)) == key:
            return
        while same - low > 1:
            middle = min(max(math.isqrt(low * same), low + 1), same - 1)
            if self._key(_moved(top, axis, middle)) == key:
                same = middle
            else:
                low = middle

    def _sample(self, box: Box, top: Point, key: Any, n: int = _MORE) -> list[Point]:
        """Points of a box: all of a small one, or more than a number of them.

        Args:
            box: The box.
            top: Its largest sizes.
            key: Of the text that plans of the points are to have; `None` where that is open.
            n: The number.
        """
        ends = (self._different(box, p) for p in itertools.product(*box))
        found = dict.fromkeys((top, *ends))
        if _count(box) <= _FEW:
            every = itertools.product(*(range(low, high + 1) for low, high in box))
            found.update(dict.fromkeys(every))
            return [p for p in found if key is None or self._key(p) == key]
        points = {p: None for p in found if key is None or self._key(p) == key}
        if key is not None:
            inside = (p for p in self._points[key] if _is_in(p, box))
            points.update(dict.fromkeys(inside))
        for _ in range(3 * n):
            if len(points) > n:
                break
            logs = self._random.uniform(*np.log(np.maximum(np.add(box, [-0.5, 0.5]), 0.5)).T)
            sizes = zip(np.exp(logs).tolist(), box, strict=True)
            point = tuple(min(max(round(x), low), high) for x, (low, high) in sizes)
            point = self._different(box, point)
            if key is None or self._key(point) == key:
                points[point] = None
        return [*points]

    def _formulas(self, box: Box, top: Point, key: Any) -> tuple[Formula, ...] | None:
        """Formulas of the words of plans of a text, if there are such.

        They are those of other boxes, if they fit, or else made from points of this one.
        """
        points = self._sample(box, top, key)
        columns = [*zip(*(self._plan(p).words for p in points), strict=True)]
        for known in self._known.get(key, ()):
            if all(
                formula.at(p) == word
                for formula, column in zip(known, columns, strict=False)
                for p, word in zip(points, column, strict=True)
            ):
                return known
        points = self._sample(box, top, key, _MORE + math.comb(3 + len(box), 3))
        found = self._fitted(box, points) if points else None
        if found is not None:
            self._known.setdefault(key, []).append(found)
        return found

    def _fitted(self, box: Box, points: Sequence[Point]) -> tuple[Formula, ...] | None:
        """Formulas of the words of plans, made from some points and compared with others."""
        columns = [*zip(*(self._plan(p).words for p in points), strict=True)]
        is_all = len(points) == _count(box)
        values = [len({*sizes}) for sizes in zip(*points, strict=True)]
        pairs = zip(values, box, strict=True)
        if any(n < min(high - low + 1, _LEAST_VALUES) for n, (low, high) in pairs):
            return None
        found: dict[tuple[int, ...], Formula] = {
            column: Formula((((0,) * len(box), column[0]),) if column[0] else ())
            for column in columns
            if len({*column}) == 1
        }
        for monomials in _sets_of_monomials(points):
            missing = [column for column in dict.fromkeys(columns) if column not in found]
            basis = _Basis(points, monomials) if missing else None
            if basis and basis.is_complete and (is_all or len(points) > len(monomials)):
                fitted = ((column, basis.fit(column)) for column in missing)
                found.update({column: formula for column, formula in fitted if formula})
        if any(column not in found for column in columns):
            return None
        return tuple(found[column] for column in columns)


def _shared(plans: Sequence[Plan]) -> tuple[tuple[int, ...], ...]:
    """Ranges of scratch memory: buffers that have overlapped in one of some plans share one."""
    buffers = [plan.text.buffers for plan in plans]

    def overlap(i: int, j: int) -> bool:
        return any(
            row[i].arena == row[j].arena
            and row[i].offset < row[j].offset + max(row[j].nbytes, 1)
            and row[j].offset < row[i].offset + max(row[i].nbytes, 1)
            for row in buffers
        )

    ranges: list[list[int]] = []
    for k in sorted(range(len(buffers[-1])), key=lambda k: -buffers[-1][k].nbytes):
        row = next((row for row in ranges if all(overlap(k, j) for j in row)), None)
        if row is None:
            ranges.append([k])
        else:
            row.append(k)
    return tuple(map(tuple, ranges))
