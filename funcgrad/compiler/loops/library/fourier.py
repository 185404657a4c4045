"""Fourier transforms of complex numbers, of as many lanes at once as a vector has numbers.

A step transforms groups of lanes. It brings those of a group into memory of its own, element by
element, real and imaginary parts of all lanes in a vector each; goes over them once for every
radix, from one half of that memory to the other, so that the result comes out in order
(Stockham's algorithm); and writes them where they belong. Lanes may lie side by side, or one after
the other: then blocks of as many elements as there are lanes are transposed on the way, in
registers. A transform with more elements than that memory is for is two steps, of its columns and
of its rows, and the first one also multiplies by the roots of unity between them.

A transform to the other side is the same with real and imaginary parts exchanged, before and after.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from funcgrad.base.records import dataclass
from funcgrad.compiler.abi import FOURIER_WORDS
from funcgrad.compiler.loops.builder import read_word
from funcgrad.compiler.loops.language import WORDS, Expression, Variable, call
from funcgrad.compiler.loops.library.elements import Element, Elements

RADICES = (8, 5, 4, 3, 2, 7, 11, 13)
"""Factors that a length is divided into, in this order."""

MEANINGS = (
    "n",  # elements of a transform
    "lanes",  # lanes of every block
    "groups",  # groups of lanes in every block
    "source_block",  # bytes from block to block
    "source_step",  # bytes from element to element
    "source_lane",  # bytes from lane to lane
    "target_block",
    "target_step",
    "target_lane",
    "first_part",  # numbers from an element's place to its real part, or imaginary one
    "second_part",
    "scale",  # bits of a real number
    "roots",  # address of roots of unity to be multiplied by
    "roots_step",  # bytes from one element's roots to the next one's
    "roots_part",  # bytes from their real parts to their imaginary ones
    "passes",  # how many passes follow, of `PASS_WORDS`
)
"""The words of a transform, behind `abi.FOURIER_WORDS`."""

PASS_WORDS = ("kind", "m", "s", "roots")
"""The words of a pass: its `Pass.code`, and the address of its roots of unity."""

_GIVEN, _RESULT, _ROOTS, _OWN = range(1, 5)

Pair = tuple[Expression, Expression]


@dataclass(frozen=True)
class Pass:
    """A kind of pass.

    Attributes:
        radix: Of how many numbers it makes transforms.
        is_last: Whether all its roots of unity are 1.
    """

    radix: int
    is_last: bool

    @property
    def code(self) -> int:
        return 2 * self.radix + self.is_last


def passes_of(n: int) -> Iterator[tuple[Pass, int, int]]:
    """The passes of a length, with ``m`` and ``s``: from ``radix`` arrays of m x s numbers."""
    left = n
    for radix in RADICES:
        while left % radix == 0:
            m = left // radix
            yield Pass(radix, m == 1), m, n // left
            left = m


@dataclass(frozen=True)
class Layout:
    """How lanes lie in memory.

    Attributes:
        is_beside: Whether they are neighbours; else the elements of each are.
        is_partial: Whether there are fewer neighbours than a vector has numbers.
    """

    is_beside: bool
    is_partial: bool


class Fourier(Elements):
    """The step that transforms groups of lanes.

    Args:
        letter: BLAS's name of the complex dtype: c or z.
        lanes: Numbers of its parts in a vector.
        kinds: The kinds of passes that it may have.
        source: How lanes are read.
        target: How they are written.
        has_twiddles: Whether results are multiplied by roots of unity.
    """

    def __init__(
        self, letter: str, lanes: int, kinds: Sequence[Pass], source: Layout, target: Layout,
        has_twiddles: bool,
    ) -> None:  # fmt: skip
        super().__init__(letter, lanes)
        self.line = 2 * lanes
        """Numbers of an element, of all lanes."""
        self.kinds = kinds
        self.source, self.target = source, target
        self.has_twiddles = has_twiddles

    # Transforms of a few numbers.

    def few(self, x: Sequence[Pair]) -> list[Pair]:
        """The sums over j of x[j] exp(-2 pi i j k / n)."""
        if len(x) == 2:
            return [_sum(*x), _difference(*x)]
        if len(x) % 2:
            return self.odd(x)
        even, odd = ([self._named(pair) for pair in self.few(half)] for half in (x[::2], x[1::2]))
        low, high = [], []
        for k, (a, b) in enumerate(zip(even, odd, strict=True)):
            if 4 * k == len(x):  # times -i
                less, more = _around(a, b)
            elif k:
                rotated = self._named((b[0] + b[1], b[1] - b[0]))
                re, im = _EIGHTHS[8 * k // len(x)]
                rotated = rotated if im > 0 else rotated[::-1]
                less, more = (_plus_multiple(a, rotated, s * re, s * im) for s in (1, -1))
            else:
                less, more = _sum(a, b), _difference(a, b)
            low.append(less)
            high.append(more)
        return low + high

    def odd(self, x: Sequence[Pair]) -> list[Pair]:
        """The same of an odd number: symmetric and antisymmetric halves have cosines and sines."""
        n, half = len(x), len(x) // 2
        sums = [self._named(_sum(x[j], x[n - j])) for j in range(1, half + 1)]
        sides = [self._named(_difference(x[j], x[n - j])) for j in range(1, half + 1)]
        total = x[0]
        for pair in sums:
            total = _sum(total, pair)
        found: list[Pair] = [total] * n
        for k in range(1, half + 1):
            centre, side = x[0], (sides[0][0] * _sine(k, n), sides[0][1] * _sine(k, n))
            for j, (even, odd) in enumerate(zip(sums, sides, strict=True), 1):
                cosine, sine = math.cos(2 * math.pi * (j * k % n) / n), _sine(j * k % n, n)
                centre = _plus_multiple(centre, even, cosine, cosine)
                if j > 1:
                    side = _plus_multiple(side, odd, sine, sine)
            found[k], found[n - k] = _around(self._named(centre), self._named(side))
        return found

    def _named(self, pair: Pair) -> Pair:
        return self.let(pair[0]), self.let(pair[1])

    # Passes.

    def step(
        self, kind: Pass, source: Expression, target: Expression, m: Expression, s: Expression,
        roots: Expression,
    ) -> None:  # fmt: skip
        """From ``radix`` arrays of m x s numbers to m arrays of radix x s."""
        radix, line = kind.radix, self.line
        apart, beside = self.let(m * s * line), self.let(s * line)
        with self.count(0, 1 if kind.is_last else m) as p:
            turns = []
            if not kind.is_last:
                at = self.pointer(roots + p * ((radix - 1) * 2 * self.size))
                parts = [self.let(call("load", at, k, _ROOTS)) for k in range(2 * (radix - 1))]
                turns = list(zip(parts[::2], parts[1::2], strict=True))
            first = self.let(p * s)
            read = self.pointer(source + first * (line * self.size))
            written = self.pointer(target + first * (radix * line * self.size))
            with self.count(0, s):
                numbers: list[Pair] = []
                place: Expression = read
                for _ in range(radix):
                    numbers.append(self._pair(place))
                    place = self.let(call("advance", place, apart))
                place = written
                for k, pair in enumerate(self.few(numbers)):
                    pair = self._named(pair)
                    self._put(self.product(pair, turns[k - 1]) if turns and k else pair, place)
                    place = self.let(call("advance", place, beside))
                for pointer in (read, written):
                    self.change(pointer, call("advance", pointer, line))

    # Memory.

    def _pair(self, pointer: Expression) -> Pair:
        """Real and imaginary parts of an element in memory of our own."""
        re, im = (self.let(call("load", pointer, self.near(k), _OWN)) for k in (0, self.lanes))
        return re, im

    def _put(self, pair: Element, pointer: Expression) -> None:
        for k, part in enumerate(pair):
            self.store(pointer, self.near(k * self.lanes), part, _OWN)

    def _read(self, pointer: Expression, index: Expression) -> Pair:
        """Real and imaginary parts of neighbouring complex numbers."""
        found = self.let(call("load", pointer, index, _GIVEN))
        return self.let(call("real", found)), self.let(call("imag", found))

    def _index(self, first: Expression | int, count: Expression, is_partial: bool) -> Expression:
        """Neighbours, of which there may be too few."""
        return call("some_lanes", first, count, self.lanes) if is_partial else self.near(first)

    def load(self, memory: Expression, place: Expression, first: Expression) -> None:
        """Lanes into memory of our own, from the first of a group on."""
        w = self.words
        own = self.pointer(memory)
        if self.source.is_beside:
            index = self._index(0, w["lanes"], self.source.is_partial)
            at = self.let(place + first * w["source_lane"])
            with self.count(0, w["n"]) as j:
                source = self.pointer(at + j * w["source_step"], self.dtype)
                self._keep(self._read(source, index), own, j * self.line)
            return
        rows = [self._row(place, first + t, "source") for t in range(self.lanes)]
        for start, index in self._blocks(self.source):
            pairs = [self._read(row, index) for row in rows]
            parts = [self.transposed([pair[q] for pair in pairs]) for q in range(2)]
            for t, (re, im) in enumerate(zip(*parts, strict=True)):
                self._keep((re, im), own, (start + t) * self.line)

    def _row(self, place: Expression, number: Expression, side: str) -> Variable:
        """Pointer to the row of a lane; beyond the last one, to that one."""
        w = self.words
        number = call("minimum", number, w["lanes"] - 1)
        return self.pointer(place + number * w[f"{side}_lane"], self.dtype)

    def _blocks(self, layout: Layout) -> Iterator[tuple[Expression, Expression]]:
        """Blocks of as many elements as there are lanes; the last one may overlap another."""
        n = self.words["n"]
        with self.count(0, n, self.lanes) as block:
            if layout.is_partial:
                yield block, self._index(block, n, True)
            else:
                j = self.let(call("minimum", block, n - self.lanes))
                yield j, self.near(j)

    def _keep(self, pair: Pair, own: Expression, place: Expression) -> None:
        for part, name in zip(pair, ("first_part", "second_part"), strict=True):
            self.store(own, self.near(place + self.words[name]), part, _OWN)

    def _kept(self, own: Expression, place: Expression, scale: Expression) -> Pair:
        re, im = (
            self.let(call("load", own, self.near(place + self.words[name]), _OWN) * scale)
            for name in ("first_part", "second_part")
        )
        return re, im

    def write_back(
        self, memory: Expression, place: Expression, first: Expression, scale: Expression
    ) -> None:
        """The reverse of `load`, and a multiplication by a number, and by roots of unity."""
        w = self.words
        own = self.pointer(memory)
        if self.target.is_beside:
            index = self._index(0, w["lanes"], self.target.is_partial)
            at = self.let(place + first * w["target_lane"])
            with self.count(0, w["n"]) as k:
                if self.has_twiddles:
                    # The roots are those of numbers whose parts are where they are in memory.
                    turn = self.let(w["roots"] + first * self.size + k * w["roots_step"])
                    root = [self.pointer(turn + q * w["roots_part"]) for q in range(2)]
                    re, im = (self.let(call("load", x, index, _ROOTS)) for x in root)
                    at_own = self.pointer(memory + k * (self.line * self.size))
                    self._put(self.product(self._pair(at_own), (re, im)), at_own)
                pair = self._kept(own, k * self.line, scale)
                target = self.pointer(at + k * w["target_step"], self.dtype)
                self.store(target, index, call(self.dtype, *pair), _RESULT)
            return
        rows = [self._row(place, first + t, "target") for t in range(self.lanes)]
        for start, index in self._blocks(self.target):
            pairs = [self._kept(own, (start + t) * self.line, scale) for t in range(self.lanes)]
            parts = [self.transposed([pair[q] for pair in pairs]) for q in range(2)]
            for row, both in zip(rows, zip(*parts, strict=True), strict=True):
                self.store(row, index, call(self.dtype, *both), _RESULT)

    # The step.

    def write(self) -> None:
        words = self.given(FOURIER_WORDS)
        n_words = len(FOURIER_WORDS)
        self.words: dict[str, Expression] = {
            name: self.let(read_word(WORDS, n_words + k)) for k, name in enumerate(MEANINGS)
        }
        w = self.words
        source, target = (self.address(words, x) for x in "ab")
        memory, lane_of_memory = self.claimed(words)
        half = call("maximum", w["n"], self.lanes) * (self.line * self.size)
        scale = self._real(w["scale"])
        with self.count(words["begin"], words["end"]) as unit:
            block = self.let(unit // w["groups"])
            group = self.let(unit - block * w["groups"])
            last = call("maximum", w["lanes"] - self.lanes, 0)
            first = self.let(call("minimum", group * self.lanes, last))
            here, there = self.let(memory), self.let(memory + half)
            self.load(here, self.let(source + block * w["source_block"]), first)
            with self.count(0, w["passes"]) as number:
                row = number * len(PASS_WORDS) + (n_words + len(MEANINGS))
                kind, m, s, roots = (self.let(read_word(WORDS, row + k)) for k in range(4))
                cases = {
                    x.code: partial(self.step, x, here, there, m, s, roots) for x in self.kinds
                }
                if cases:
                    self.by_number(kind, cases, self.kinds[-1].code)
                spare = self.let(here)
                self.change(here, there)
                self.change(there, spare)
            self.write_back(here, self.let(target + block * w["target_block"]), first, scale)
        self.release(lane_of_memory)

    def _real(self, bits: Expression) -> Variable:
        if self.real == "f64":
            return self.let(call("bitcast_i64_f64", bits))
        return self.let(call("bitcast_i32_f32", call("i32", bits)))


def _sine(k: int, n: int) -> float:
    return math.sin(2 * math.pi * k / n)


def _sum(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def _difference(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


def _plus_multiple(a: Pair, b: Pair, re: float, im: float) -> Pair:
    """The sum of a number and a multiple of each part of another."""
    return call("muladd", b[0], re, a[0]), call("muladd", b[1], im, a[1])


def _around(a: Pair, b: Pair) -> tuple[Pair, Pair]:
    """The numbers a - i b and a + i b."""
    return (a[0] + b[1], a[1] - b[0]), (a[0] - b[1], a[1] + b[0])


_EIGHTHS = {1: (math.sqrt(0.5), math.sqrt(0.5)), 3: (math.sqrt(0.5), -math.sqrt(0.5))}
"""Real factors of ``exp(-2 pi i k / 8)``: of the sum and the difference of the parts of a number,
or the reverse."""
