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
import struct
from collections.abc import Sequence
from functools import partial

from funcgrad.compiler.abi import FOURIER_WORDS
from funcgrad.compiler.native.assembly import Code, VectorAssembly

RADICES = (8, 5, 4, 3, 2)
"""What a length is divided into, in this order."""

KINDS = (*((radix, False) for radix in RADICES), (8, True), (4, True))
"""The passes that there is code for: of the last one, whose roots of unity are all 1, the usual
ones have code that does not multiply."""

WORDS = (
    "n",  # elements of a transform
    "groups",  # groups of lanes in every block
    "last",  # the first lane of the last group
    "source_block",  # bytes from block to block
    "source_step",  # bytes from element to element
    "source_lane",  # bytes from lane to lane
    "target_block",
    "target_step",
    "target_lane",
    "first_part",  # bytes from an element's place to its real part, or imaginary one
    "second_part",
    "scale",  # bits of a real number
    "roots",  # address of roots of unity to be multiplied by, or 0
    "roots_step",  # bytes from one element's roots to the next one's
    "roots_part",  # bytes from their real parts to their imaginary ones
    "passes",  # how many passes follow, of `PASS_WORDS`
)
"""The words of a transform."""

PASS_WORDS = ("radix", "m", "s", "roots")

Pair = tuple[str, str]


def fourier_code(letter: str, lanes: int) -> Code:
    """The step that transforms groups of lanes: `abi.FOURIER_WORDS`, then `WORDS` and the passes.

    Args:
        letter: BLAS's name of the complex dtype: c or z.
        lanes: Numbers of its parts in a vector.
    """
    return _Fourier(letter, lanes).text()


class _Fourier(VectorAssembly):
    def __init__(self, letter: str, lanes: int) -> None:
        super().__init__(4 if letter == "c" else 8, lanes)
        self.letter = letter

    def text(self) -> Code:
        self._transform()
        return self.finished()

    # Numbers.

    def _plus(self, a: str, b: str) -> str:
        return self.let(f"fadd contract {self.vector} {a}, {b}")

    def _minus(self, a: str, b: str) -> str:
        return self.let(f"fsub contract {self.vector} {a}, {b}")

    def _times(self, a: str, b: str) -> str:
        return self.let(f"fmul contract {self.vector} {a}, {b}")

    def _constant(self, number: float) -> str:
        """A vector of one number; those of single precision are rounded first."""
        if self.size == 4:
            number = _single(number)
        return self.filled(self.scalar, f"0x{_bits(number):016X}")

    def _sum(self, a: Pair, b: Pair) -> Pair:
        return self._plus(a[0], b[0]), self._plus(a[1], b[1])

    def _difference(self, a: Pair, b: Pair) -> Pair:
        return self._minus(a[0], b[0]), self._minus(a[1], b[1])

    def _multiple(self, a: Pair, factor: str) -> Pair:
        return self._times(a[0], factor), self._times(a[1], factor)

    def _around(self, a: Pair, b: Pair) -> tuple[Pair, Pair]:
        """The numbers a - i b and a + i b."""
        less = self._plus(a[0], b[1]), self._minus(a[1], b[0])
        return less, (self._minus(a[0], b[1]), self._plus(a[1], b[0]))

    def _product(self, a: Pair, b: Pair) -> Pair:
        re = self._minus(self._times(a[0], b[0]), self._times(a[1], b[1]))
        return re, self._plus(self._times(a[0], b[1]), self._times(a[1], b[0]))

    # Transforms of a few numbers.

    def _few(self, x: Sequence[Pair]) -> list[Pair]:
        """The sums over j of x[j] exp(-2 pi i j k / n)."""
        if len(x) == 2:
            return [self._sum(*x), self._difference(*x)]
        if len(x) in (4, 8):
            even, odd = self._few(x[::2]), self._few(x[1::2])
            return self._halves(even, odd)
        return self._three(*x) if len(x) == 3 else self._five(*x)

    def _halves(self, even: list[Pair], odd: list[Pair]) -> list[Pair]:
        n = 2 * len(even)
        low, high = [], []
        for k, (a, b) in enumerate(zip(even, odd, strict=True)):
            if 4 * k == n:  # times -i
                less, more = self._around(a, b)
            else:
                turned = self._eighth(b, 8 * k // n)
                less, more = self._sum(a, turned), self._difference(a, turned)
            low.append(less)
            high.append(more)
        return low + high

    def _eighth(self, x: Pair, k: int) -> Pair:
        """A number times exp(-2 pi i k / 8), for k of 0, 1, 3."""
        if k == 0:
            return x
        root = self._constant(math.sqrt(0.5))
        one, other = self._plus(*x), self._minus(x[1], x[0])
        if k == 1:
            return self._times(one, root), self._times(other, root)
        return self._times(other, root), self._times(one, self._constant(-math.sqrt(0.5)))

    def _three(self, a: Pair, b: Pair, c: Pair) -> list[Pair]:
        total = self._sum(b, c)
        centre = self._sum(a, self._multiple(total, self._constant(-0.5)))
        side = self._multiple(self._difference(b, c), self._constant(math.sqrt(0.75)))
        return [self._sum(a, total), *self._around(centre, side)]

    def _five(self, a: Pair, b: Pair, c: Pair, d: Pair, e: Pair) -> list[Pair]:
        cosines = [self._constant(math.cos(2 * math.pi * k / 5)) for k in (1, 2)]
        sines = [math.sin(2 * math.pi * k / 5) for k in (1, 2)]
        near, far = self._sum(b, e), self._sum(c, d)
        near_side, far_side = self._difference(b, e), self._difference(c, d)

        def combined(p: Pair, q: Pair, x: str, y: str) -> Pair:
            return self._sum(self._multiple(p, x), self._multiple(q, y))

        first = self._sum(a, combined(near, far, *cosines))
        second = self._sum(a, combined(near, far, *cosines[::-1]))
        low, high = map(self._constant, sines)
        one, four = self._around(first, combined(near_side, far_side, low, high))
        minus_low = self._constant(-sines[0])
        two, three = self._around(second, combined(near_side, far_side, high, minus_low))
        return [self._sum(a, self._sum(near, far)), one, two, three, four]

    # Passes.

    _PASS = "ptr %from, ptr %to, i64 %m, i64 %s, ptr %roots"

    def _pass(self, radix: int, is_last: bool) -> None:
        """From ``radix`` arrays of m x s numbers to m arrays of radix x s."""
        with self.function(_pass_name(radix, is_last), self._PASS):
            apart = self.mul(self.mul("%m", "%s"), 2 * self.line)
            beside = self.mul("%s", 2 * self.line)
            with self.count("0", "1" if is_last else "%m") as p:
                roots = []
                if not is_last:
                    place = self.at("%roots", (p, (radix - 1) * 2 * self.size))
                    for _ in range(radix - 1):
                        re = self._filled(place)
                        place = self.after(place, self.size)
                        roots.append((re, self._filled(place)))
                        place = self.after(place, self.size)
                first = self.mul(p, "%s")
                target = self.mul(first, radix)
                with self.count("0", "%s") as q:
                    place = self.at("%from", (self.add(first, q), 2 * self.line))
                    numbers = []
                    for _ in range(radix):
                        numbers.append(self._pair(place))
                        place = self.at(place, (apart, 1))
                    found = self._few(numbers)
                    place = self.at("%to", (self.add(target, q), 2 * self.line))
                    for k, pair in enumerate(found):
                        self._put(
                            pair if is_last or not k else self._product(pair, roots[k - 1]), place
                        )
                        place = self.at(place, (beside, 1))

    def write_choose(self) -> None:
        with self.function("choose", f"i64 %radix, {self._PASS}"):
            code = self.test("eq", "%m", "1")
            code = self.let(f"zext i1 {code} to i64")
            code = self.add(self.mul("%radix", 2), code)
            passes = {
                2 * r + last: (_pass_name(r, last), partial(self._pass, r, last))
                for r, last in KINDS
            }
            passes |= {2 * r + 1: passes[2 * r] for r in RADICES if (r, True) not in KINDS}
            self.use_by_number(code, passes, self._PASS)

    # Memory.

    def _pair(self, place: str) -> Pair:
        return self.load(place), self.load(self.after(place, self.line))

    def _put(self, pair: Pair, place: str) -> None:
        self.store(pair[0], place)
        self.store(pair[1], self.after(place, self.line))

    def _filled(self, place: str) -> str:
        """A vector of the number at a place."""
        return self.spread(self.load(place, kind=self.scalar))

    def _parts(self, place: str) -> Pair:
        """Real and imaginary parts of neighbouring complex numbers."""
        real, imaginary = self.apart(self._pair(place))
        return real, imaginary

    def _join(self, pair: Pair, place: str) -> None:
        """The inverse of `_parts`."""
        first, second = self.together(pair)
        self._put((first, second), place)

    _MEMORY = "ptr %memory, ptr %place, i64 %n, i64 %step, i64 %lane, i64 %first, i64 %second"

    def _load_beside(self) -> None:
        with self.function("load.beside", self._MEMORY), self.count("0", "%n") as j:
            pair = self._parts(self.at("%place", (j, "%step")))
            self._keep(pair, self.at("%memory", (j, 2 * self.line)))

    def _keep(self, pair: Pair, place: str) -> None:
        self.store(pair[0], self.after(place, "%first"))
        self.store(pair[1], self.after(place, "%second"))

    def _kept(self, place: str, scale: str) -> Pair:
        parts = (self.load(self.after(place, part)) for part in ("%first", "%second"))
        return tuple(self._times(part, scale) for part in parts)  # type: ignore[return-value]

    def _load_rows(self) -> None:
        with self.function("load.rows", self._MEMORY):
            last = self.sub("%n", str(self.lanes))
            with self.count("0", "%n", self.lanes) as block:
                j = self.least(block, last)
                place = self.at("%place", (j, "%step"))
                pairs = []
                for _ in range(self.lanes):
                    pairs.append(self._parts(place))
                    place = self.after(place, "%lane")
                memory = self.at("%memory", (j, 2 * self.line))
                for part, name in enumerate(("%first", "%second")):
                    own = self.after(memory, name)
                    for vector in self.transposed([pair[part] for pair in pairs]):
                        self.store(vector, own)
                        own = self.after(own, 2 * self.line)

    _STORED = f"{_MEMORY}, SCALAR %scale, ptr %roots, i64 %roots.step, i64 %roots.part"

    def _store_beside(self) -> None:
        arguments = self._STORED.replace("SCALAR", self.scalar)
        with self.function("store.beside", arguments):
            scale = self.spread("%scale")
            none = self.let("icmp eq ptr %roots, null")
            self.fork(none, "plain", "turned")
            for is_turned in (False, True):
                self.start("turned" if is_turned else "plain")
                with self.count("0", "%n") as k:
                    memory = self.at("%memory", (k, 2 * self.line))
                    if is_turned:
                        # The roots are those of numbers whose parts are where they are in memory.
                        at = self.at("%roots", (k, "%roots.step"))
                        root = self.load(at), self.load(self.after(at, "%roots.part"))
                        self._put(self._product(self._pair(memory), root), memory)
                    pair = self._kept(memory, scale)
                    self._join(pair, self.at("%place", (k, "%step")))
                if not is_turned:
                    self.leave()

    def _store_rows(self) -> None:
        with self.function("store.rows", self._STORED.replace("SCALAR", self.scalar)):
            scale = self.spread("%scale")
            last = self.sub("%n", str(self.lanes))
            with self.count("0", "%n", self.lanes) as block:
                k = self.least(block, last)
                memory = self.at("%memory", (k, 2 * self.line))
                found = []
                for _ in range(self.lanes):
                    found.append(self._kept(memory, scale))
                    memory = self.after(memory, 2 * self.line)
                re, im = (self.transposed([pair[part] for pair in found]) for part in (0, 1))
                place = self.at("%place", (k, "%step"))
                for pair in zip(re, im, strict=True):
                    self._join(pair, place)
                    place = self.after(place, "%lane")

    # The step.

    def _transform(self) -> None:
        with self.function(f"fg_{self.letter}fourier", "ptr %slots, ptr %args", "i64"):
            self.name_words(FOURIER_WORDS)
            words = self.entry("%args", len(FOURIER_WORDS))
            word = {name: self.word(words, k) for k, name in enumerate(WORDS)}
            source, target = (self.array(f"%slot_{x}", f"%offset_{x}") for x in "ab")
            memory, lane_of_memory = self.claim()
            half = self.mul(word["n"], 2 * self.line)
            halves = [memory, self.after(memory, half)]
            turns = [self.room("ptr") for _ in range(2)]
            bits = word["scale"]
            if self.size == 4:
                bits = self.let(f"trunc i64 {bits} to i32")
            kind = "i32" if self.size == 4 else "i64"
            scale = self.let(f"bitcast {kind} {bits} to {self.scalar}")
            roots = self.let(f"inttoptr i64 {word['roots']} to ptr")
            has_roots = self.test("ne", word["roots"], "0")
            passes = self.entry(words, len(WORDS))
            with self.count("%begin", "%end") as unit:
                block = self.let(f"sdiv i64 {unit}, {word['groups']}")
                group = self.let(f"srem i64 {unit}, {word['groups']}")
                lane = self.least(self.mul(group, self.lanes), word["last"])
                for half, turn in zip(halves, turns, strict=True):
                    self.do(f"store ptr {half}, ptr {turn}")
                own = self._own(source, block, lane, word, "source")
                self._either("load", halves[0], own, word, "source", "")
                with self.count("0", word["passes"]) as number:
                    entry = self.at(passes, (number, 8 * len(PASS_WORDS)))
                    radix, m, s, table = (self.word(entry, k) for k in range(len(PASS_WORDS)))
                    table = self.let(f"inttoptr i64 {table} to ptr")
                    here, there = (self.let(f"load ptr, ptr {turn}") for turn in turns)
                    self.use(
                        "choose",
                        f"i64 {radix}, ptr {here}, ptr {there}, i64 {m}, i64 {s}, ptr {table}",
                    )
                    self.do(f"store ptr {there}, ptr {turns[0]}")
                    self.do(f"store ptr {here}, ptr {turns[1]}")
                found = self.let(f"load ptr, ptr {turns[0]}")
                own = self._own(target, block, lane, word, "target")
                of_lane = self.at(roots, (lane, self.size))
                of_lane = self.let(f"select i1 {has_roots}, ptr {of_lane}, ptr null")
                rest = (
                    f", {self.scalar} {scale}, ptr {of_lane}, i64 {word['roots_step']}, "
                    f"i64 {word['roots_part']}"
                )
                self._either("store", found, own, word, "target", rest)
            self.release(lane_of_memory)

    def _own(self, base: str, block: str, lane: str, word: dict[str, str], side: str) -> str:
        return self.at(base, (block, word[f"{side}_block"]), (lane, word[f"{side}_lane"]))

    def _either(
        self, verb: str, memory: str, place: str, word: dict[str, str], side: str, rest: str
    ) -> None:
        """Load or store lanes that lie side by side, or rows."""
        arguments = (
            f"ptr {memory}, ptr {place}, i64 {word['n']}, i64 {word[f'{side}_step']}, "
            f"i64 {word[f'{side}_lane']}, i64 {word['first_part']}, i64 {word['second_part']}{rest}"
        )
        is_beside = self.test("eq", f"{word[f'{side}_lane']}", 2 * self.size)
        n = next(self._numbers)
        self.fork(is_beside, f"beside{n}", f"rows{n}")
        for kind in ("beside", "rows"):
            self.start(f"{kind}{n}")
            self.use(f"{verb}.{kind}", arguments, getattr(self, f"_{verb}_{kind}"))
            self.go(f"done{n}")
        self.start(f"done{n}")


def _pass_name(radix: int, is_last: bool) -> str:
    return f"{'last' if is_last else 'pass'}{radix}"


def _single(number: float) -> float:
    found: float = struct.unpack("f", struct.pack("f", number))[0]
    return found


def _bits(number: float) -> int:
    found: int = struct.unpack("Q", struct.pack("d", number))[0]
    return found
