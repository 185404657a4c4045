"""The greatest numbers of rows, in order, and their places: by a heap.

A heap (Williams, "Algorithm 232: Heapsort", CACM 7, 1964) holds the best numbers so far, the worst
of them first. Most numbers are worse than that one, which is found out for many at a time. In the
end the heap is sorted where it is. nan counts as the greatest number, and of equal numbers the
first one comes first, so the result depends on nothing but the row.
"""

from __future__ import annotations

from funcgrad.compiler.abi import SELECT_WORDS
from funcgrad.compiler.loops.builder import ProgramBuilder
from funcgrad.compiler.loops.language import Expression, Variable, call

AT_A_TIME = 32
"""Numbers that are compared with the worst one of the heap together."""

Pair = tuple[Expression, Expression]
"""A number and its place."""

_ROWS, _VALUES, _PLACES = 1, 2, 3


class Selection(ProgramBuilder):
    """The step that finds the greatest numbers of rows: `abi.SELECT_WORDS`.

    Args:
        kind: The type of the numbers.
        size: Bytes of one.
    """

    def __init__(self, kind: str, size: int) -> None:
        super().__init__()
        self.kind = kind
        self.size = size

    def write(self) -> None:
        words = self.given(SELECT_WORDS)
        self.n, self.k = (self.let(words[name]) for name in ("n", "k"))
        rows, values, places = (self.address(words, x) for x in "abc")
        with self.count(words["begin"], words["end"]) as r:
            self.row = self._pointer(self.kind, rows + r * self.n * self.size)
            self.values = self._pointer(self.kind, values + r * self.k * self.size)
            self.places = self._pointer("i64", places + r * self.k * 8)
            self._fill()
            self._improve()
            self._sort()

    def _pointer(self, kind: str, address: Expression) -> Variable:
        return self.let(call(f"ptr_{kind}", address))

    def _number(self, i: Expression) -> Variable:
        """A number of the row."""
        return self.let(call("load", self.row, i, _ROWS))

    def _pair(self, i: Expression | int) -> tuple[Variable, Variable]:
        """A number of the heap and its place in the row."""
        number = self.let(call("load", self.values, i, _VALUES))
        return number, self.let(call("load", self.places, i, _PLACES))

    def _put(self, pair: Pair, i: Expression) -> None:
        self.store(self.values, i, pair[0], _VALUES)
        self.store(self.places, i, pair[1], _PLACES)

    def _exceeds(self, a: Expression, b: Expression) -> Expression:
        """Whether one number is greater than another: nan is greater than all but nan."""
        return a > b if self.kind[0] != "f" else ~(a <= b) & ~call("isnan", b)

    def _is_worse(self, a: Pair, b: Pair) -> Expression:
        """Whether one pair comes after another."""
        is_later = ~self._exceeds(a[0], b[0]) & (a[1] > b[1])
        return self._exceeds(b[0], a[0]) | is_later

    def _sift_down(self, size: Expression, hole: Expression | int, pair: Pair) -> None:
        """Fill the hole of a heap with a pair, moving worse ones up."""
        at = self.let(hole)
        left = self.let(at * 2 + 1)
        with self.repeat(left < size):
            right = self.let(left + 1)
            second = self.let(call("select", right < size, right, left))
            first, other = self._pair(left), self._pair(second)
            is_other = self.let(self._is_worse(other, first))
            worst = [
                self.let(call("select_unpredictable", is_other, x, y))
                for x, y in zip((*other, second), (*first, left), strict=True)
            ]
            with self.when(~self._is_worse((worst[0], worst[1]), pair)):
                self.leave()
            self._put((worst[0], worst[1]), at)
            self.change(at, worst[2])
            self.change(left, at * 2 + 1)
        self._put(pair, at)

    def _fill(self) -> None:
        """Make a heap of the first numbers."""
        with self.count(0, self.k) as i:
            self._put((self._number(i), i), i)
        half = self.let(self.k // 2)
        with self.count(0, half) as i:
            hole = self.let(half - (i + 1))
            self._sift_down(self.k, hole, self._pair(hole))

    def _improve(self) -> None:
        """Replace the worst one wherever a number of the others is greater."""
        with self.count(self.k, self.n, AT_A_TIME) as i:
            is_any = self.let(i + AT_A_TIME > self.n)
            with self.when(~is_any):
                # It holds for all numbers if the worst one is nan: each is compared again.
                found = call("load", self.row, call("lanes", i, AT_A_TIME), _ROWS)
                worst, _ = self._pair(0)
                self.change(is_any, call("across_maximum", ~(found <= worst)))
            with self.when(is_any), self.count(i, call("minimum", i + AT_A_TIME, self.n)) as j:
                number, (worst, _) = self._number(j), self._pair(0)
                with self.when(self._exceeds(number, worst)):
                    self._sift_down(self.k, 0, (number, j))

    def _sort(self) -> None:
        """Take the worst one out again and again, and put it behind the others."""
        with self.count(1, self.k) as i:
            last = self.let(self.k - i)
            pair, worst = self._pair(last), self._pair(0)
            self._put(worst, last)
            self._sift_down(last, 0, pair)
