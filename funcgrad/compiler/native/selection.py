"""The greatest numbers of a row, in order, and their places: by a heap.

A heap (Williams, "Algorithm 232: Heapsort", CACM 7, 1964) holds the best numbers so far, the worst
of them first. Most numbers are worse than that one, which is found out for many at a time. In the
end the heap is sorted where it is. nan counts as the greatest number, and of equal numbers the
first one comes first, so the result depends on nothing but the row.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from funcgrad.compiler.native.assembly import Assembly, Code

AT_A_TIME = 32
"""Numbers that are compared with the worst one of the heap together."""


@cache
def selection_code(dtype: np.dtype[Any]) -> Code:
    """Code that finds the greatest numbers of rows of a dtype."""
    return Selection(dtype.char, dtype.itemsize).code()


class Selection(Assembly):
    """``int64 select(T* row, T* values, int64* places, int64 n, int64 k)``, ``0 < k <= n``.

    Args:
        char: The dtype's character.
        nbytes: The size of a number.
    """

    def __init__(self, char: str, nbytes: int) -> None:
        super().__init__()
        self.symbol = f"fg_select_{ord(char)}"
        self.is_float = char in "fd"
        self.kind = {"f": "float", "d": "double"}.get(char, f"i{8 * nbytes}")
        self.greater = "ugt" if self.is_float or char in "?BHILQ" else "sgt"
        self.nbytes = nbytes

    def code(self) -> Code:
        """The function."""
        arguments = "ptr %row, ptr %values, ptr %places, i64 %n, i64 %k"
        with self.function(self.symbol, arguments, "i64"):
            self._fill()
            self._improve()
            self._sort()
        self._sift()
        return self.finished()

    def _number(self, base: str, i: str) -> str:
        place = self.at(base, (i, self.nbytes))
        return self.let(f"load {self.kind}, ptr {place}, align {self.nbytes}")

    def _put(self, number: str, place: str, i: str) -> None:
        """Store a number and its place in the heap."""
        to = self.at("%values", (i, self.nbytes))
        self.do(f"store {self.kind} {number}, ptr {to}, align {self.nbytes}")
        self.put_word(place, "%places", i)

    def _exceeds(self, a: str, b: str) -> str:
        """Whether one number is greater than another: nan is greater than all but nan."""
        compare = "fcmp" if self.is_float else "icmp"
        found = self.let(f"{compare} {self.greater} {self.kind} {a}, {b}")
        if self.is_float:
            found = self.every(found, self.let(f"fcmp ord {self.kind} {b}, {b}"))
        return found

    def _is_worse(self, a: tuple[str, str], b: tuple[str, str]) -> str:
        """Whether one pair of number and place comes after another."""
        is_less, is_more = self._exceeds(b[0], a[0]), self._exceeds(a[0], b[0])
        is_later = self.every(self.lacks(is_more), self.test("sgt", a[1], b[1]))
        return self.let(f"or i1 {is_less}, {is_later}")

    def _sift(self) -> None:
        """``sift(values, places, size, hole, number, place)``: to where the order of heaps holds.

        What is worse moves up into the hole.
        """
        arguments = (
            f"ptr %values, ptr %places, i64 %size, i64 %hole, {self.kind} %number, i64 %place"
        )
        with self.function("sift", arguments):
            self.go("turn")
            self.start("turn")
            at = self.let("phi i64 [ %hole, %entry ], [ %worst, %up ]")
            left = self.add(self.mul(at, 2), 1)
            self.fork(self.test("slt", left, "%size"), "child", "put")
            self.start("child")
            right = self.add(left, 1)
            second = self.pick(self.test("slt", right, "%size"), right, left)
            pairs = [(self._number("%values", i), self.word("%places", i)) for i in (left, second)]
            is_second = self._is_worse(pairs[1], pairs[0])
            self.do(f"%worst = select i1 {is_second}, i64 {second}, i64 {left}")
            number = self.pick(is_second, pairs[1][0], pairs[0][0], self.kind)
            place = self.pick(is_second, pairs[1][1], pairs[0][1])
            self.fork(self._is_worse((number, place), ("%number", "%place")), "up", "put")
            self.start("up")
            self._put(number, place, at)
            self.go("turn")
            self.start("put")
            self._put("%number", "%place", at)

    def _settle(self, size: str, hole: str, number: str, place: str) -> None:
        arguments = f"i64 {size}, i64 {hole}, {self.kind} {number}, i64 {place}"
        self.do(f"call void @sift(ptr %values, ptr %places, {arguments})")

    def _fill(self) -> None:
        """Make a heap of the first numbers."""
        with self.count("0", "%k") as i:
            self._put(self._number("%row", i), i, i)
        half = self.let("lshr i64 %k, 1")
        with self.count("0", half) as i:
            hole = self.sub(half, self.add(i, 1))
            self._settle("%k", hole, self._number("%values", hole), self.word("%places", hole))

    def _improve(self) -> None:
        """Replace the worst one wherever a number of the others is greater."""
        vector = f"<{AT_A_TIME} x {self.kind}>"
        compare = "fcmp" if self.is_float else "icmp"
        others = self.sub("%n", "%k")
        whole = self.let(f"and i64 {others}, {-AT_A_TIME}")
        rest = self.add("%k", whole)
        with self.count("%k", rest, AT_A_TIME) as i:
            place = self.at("%row", (i, self.nbytes))
            numbers = self.let(f"load {vector}, ptr {place}, align {self.nbytes}")
            worst = self._number("%values", "0")
            one = self.let(f"insertelement {vector} poison, {self.kind} {worst}, i64 0")
            zeros = f"<{AT_A_TIME} x i32> zeroinitializer"
            all_ = self.let(f"shufflevector {vector} {one}, {vector} poison, {zeros}")
            # True of every number if the worst one is nan: `_replace` knows better.
            flags = self.let(f"{compare} {self.greater} {vector} {numbers}, {all_}")
            word = self.let(f"bitcast <{AT_A_TIME} x i1> {flags} to i{AT_A_TIME}")
            with self.when(self.test("ne", word, "0", f"i{AT_A_TIME}")):
                self._replace(i, self.add(i, AT_A_TIME))
        self._replace(rest, "%n")

    def _replace(self, first: str, end: str) -> None:
        with self.count(first, end) as i:
            number = self._number("%row", i)
            with self.when(self._exceeds(number, self._number("%values", "0"))):
                self._settle("%k", "0", number, i)

    def _sort(self) -> None:
        """Take the worst one out again and again, and put it behind the others."""
        with self.count("1", "%k") as i:
            last = self.sub("%k", i)
            number, place = self._number("%values", last), self.word("%places", last)
            self._put(self._number("%values", "0"), self.word("%places", "0"), last)
            self._settle(last, "0", number, place)
