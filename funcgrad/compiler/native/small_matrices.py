"""Factorisations and systems of small matrices.

What is computed is written here once, for two layouts: `small_in_lanes` works on as many matrices
at a time as a vector has lanes, `small_in_rows` on one whose rows are vectors. In both of them each
number is the result of the same operations in the same order. So it depends neither on the layout,
nor on how many matrices there are, nor on their neighbours.

Everything is computed in double precision, in which `numpy.linalg` computes, too; single precision
is a matter of loads and stores.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from funcgrad.compiler.abi import REFUSED, SMALL_WORDS
from funcgrad.compiler.native.assembly import Code
from funcgrad.compiler.native.elements import Element
from funcgrad.compiler.native.gemm import CACHE_LINE
from funcgrad.compiler.native.scaled import Scaled

SIDES = (
    "ptr noalias %matrix, i64 %stride, i64 %last, i64 %n, i64 %k, i64 %start, i64 %columns, "
    "i64 %vectors"
)
"""Arguments of what moves right sides: columns of ``k`` from ``%start`` on, ``%columns`` of them,
which are in ``%vectors`` vectors then; of the matrices up to ``%last`` of a group."""


class SmallMatrices(Scaled):
    """The kernels, for a layout that is to be filled in.

    Element ``(i, j)`` of a matrix is at ``i line + j step``, an imaginary part ``gap`` bytes
    behind the real one.

    Attributes:
        most: Rows and columns of the largest matrix.
        step: Bytes from a column to the next one.
        side_step: The same, of vectors of right sides.
        rooms: How many numbers the memory has for matrices, and for right sides.
        lane: The lane of scratch memory that it is in.
    """

    most: int
    step: int
    side_step: int
    rooms: tuple[int, int]
    lane: str

    def text(self, name: str) -> Code:
        """The assembly of a kernel."""
        with self.function(f"fg_{self.letter}small_{name}", "ptr %slots, ptr %args", "i64"):
            _KERNELS[name](self)
        return self.finished()

    # The layout.

    @abstractmethod
    def single(self) -> AbstractContextManager[None]:
        """Operations on one element of every matrix of a group."""

    @abstractmethod
    def line_of(self, columns: str) -> str:
        """Bytes of a row."""

    @abstractmethod
    def gap_of(self, columns: str) -> str:
        """Bytes from a real part to the imaginary part."""

    @abstractmethod
    def side_gap(self, vectors: str) -> str:
        """The same, of right sides."""

    @abstractmethod
    def coefficient(self, place: str, gap: str) -> Element:
        """An element of every matrix, to multiply vectors of right sides with."""

    @abstractmethod
    def divisor_at(self, place: str, gap: str) -> tuple[str, ...]:
        """The same, to divide them by."""

    @abstractmethod
    def exchange(self, rows: str, line: str, p: str) -> None:
        """Rows ``p`` of ``%a`` and of its pivot change places."""

    @abstractmethod
    def exchange_columns(self, p: str, line: str, gap: str) -> None:
        """Columns ``p`` of ``%a`` and of its pivot in ``%columns`` change places."""

    @abstractmethod
    def across(self, x: str, kind: str) -> str:
        """A number of every matrix, to be used with vectors of right sides."""

    @abstractmethod
    def update(self, row: str, top: str, p: str, factor: Element, gap: str) -> None:
        """Put a factor in its column of a row, and take so much of another row off what follows.

        Args:
            row: Where the row is that changes.
            top: Where the other one is.
            p: Number of the factor's column.
            factor: The factor.
            gap: Bytes to the imaginary part.
        """

    @abstractmethod
    def update_symmetric(self, j: str, root: str, line: str, gap: str) -> None:
        """Divide column ``j`` of ``%a`` by its pivot, the square of ``root``, which this replaces.

        The product of the column and its adjoint is taken off what is right of it.
        """

    @abstractmethod
    def group(self) -> str:
        """The number of matrices of a group."""

    @abstractmethod
    def pack(self) -> None:
        """Matrices of a group into the layout."""

    @abstractmethod
    def pack_lower(self) -> None:
        """Lower triangles of a group into the layout that `factor` has."""

    @abstractmethod
    def unpack_lower(self, to: str) -> None:
        """The reverse, with zeros above the diagonal."""

    @abstractmethod
    def unpack(self, to: str) -> None:
        """The reverse."""

    @abstractmethod
    def deliver(self, x: Element, to: str) -> None:
        """One element per matrix into memory."""

    @abstractmethod
    def pack_pivots(self, source: str) -> None:
        """Pivots of a group into the layout."""

    @abstractmethod
    def unpack_pivots(self, pivots: str, orders: str) -> None:
        """Pivots, and the orders of rows that they lead to."""

    @abstractmethod
    def is_bad(self) -> tuple[str, str]:
        """Whether something has failed in a group, and for which of its matrices at first."""

    @abstractmethod
    def vectors_of(self, columns: str) -> str:
        """The number of vectors of so many right sides."""

    @property
    @abstractmethod
    def most_columns(self) -> int:
        """Right sides that are worked on together."""

    # Algorithms.

    def place(self, base: str, i: str, line: str, j: str) -> str:
        return self.at(base, (i, line), (j, self.step))

    def write_lu(self) -> None:
        """``P A = L U`` in place; notes zeros on the diagonal of U.

        What is no number counts as the greatest, so that it is not lost.
        """
        arguments = "ptr noalias %a, i64 %m, i64 %n, ptr noalias %pivots, ptr noalias %bad"
        with self.function("lu", arguments):
            line, gap = self.line_of("%n"), self.gap_of("%n")
            with self._search("0", "0", line, gap):
                pass
            with self.count("0", self.least("%m", "%n")) as p:
                top = self.at("%a", (p, line))
                after = self.add(p, "1")
                self.exchange("%m", line, p)
                with self.single():
                    d = self.element(self.at(top, (p, self.step)), gap)
                    is_zero = self.is_zero(d)
                    self.note("%bad", is_zero, after)
                    divisor = self.divisor(d)
                column = self.least(after, self.sub("%n", "1"))
                with self._search(after, column, line, gap) as row:
                    self._reduce(row, top, p, (is_zero, divisor), gap)

    def _reduce(self, row: str, top: str, p: str, pivot: tuple[str, Element], gap: str) -> None:
        """Take so much of the row of a pivot off another one that its element there is a factor."""
        is_zero, divisor = pivot
        with self.single():
            x = self.element(self.at(row, (p, self.step)), gap)
            factor = self.choose_element(is_zero, x, self.quotient(x, divisor))
        self.update(row, top, p, factor, gap)

    @contextmanager
    def _search(self, first: str, column: str, line: str, gap: str) -> Iterator[str]:
        """The pivot of a column, from a row on, each of which is made first."""
        with self.single():
            kinds = (self.integers, self.integer(-1)), (self.integers, self.same(first))
        with self.fold(first, "%m", *kinds) as (i, (best, place), new):
            row = self.at("%a", (i, line))
            yield row
            with self.single():
                size = self.magnitude(self.element(self.at(row, (column, self.step)), gap))
                # As integers their bits have the same order, with nan behind infinity.
                bits = self.let(f"bitcast {self.vector} {size} to {self.integers}")
                is_more = self.compare("icmp sgt", bits, best)
                new.append(self.choose_integer(is_more, bits, best))
                new.append(self.choose_integer(is_more, self.same(i), place))
        with self.single():
            to = self.at("%pivots", (first, self.pivot_bytes))
            self.do(f"store {self.integers} {place}, ptr {to}, align 8")

    def write_lu_complete(self) -> None:
        """``P A Q = L U`` in place, every pivot the greatest of all numbers that are left.

        Notes zeros on the diagonal of U, of which the last element does not count.
        """
        arguments = "ptr noalias %a, i64 %n, ptr noalias %pivots, ptr noalias %columns"
        with self.function("lu_complete", f"{arguments}, ptr noalias %bad"):
            line, gap = self.line_of("%n"), self.gap_of("%n")
            last = self.sub("%n", "1")
            with self.count("0", "%n") as p:
                top = self.at("%a", (p, line))
                after = self.add(p, "1")
                with self.single():
                    found = self._search_block(p, line, gap)
                    for name, place in zip(("%pivots", "%columns"), found, strict=True):
                        to = self.at(name, (p, self.pivot_bytes))
                        self.do(f"store {self.integers} {place}, ptr {to}, align 8")
                self.exchange("%n", line, p)
                self.exchange_columns(p, line, gap)
                with self.single():
                    d = self.element(self.at(top, (p, self.step)), gap)
                    is_zero = self.is_zero(d)
                    with self.when(self.test("slt", p, last)):
                        self.note("%bad", is_zero, after)
                    divisor = self.divisor(d)
                with self.count(after, "%n") as i:
                    self._reduce(self.at("%a", (i, line)), top, p, (is_zero, divisor), gap)

    def _search_block(self, first: str, line: str, gap: str) -> list[str]:
        """Row and column of the greatest element behind the first rows and columns."""
        start = self.integer(-1), self.same(first), self.same(first)
        with self.fold(first, "%n", *[(self.integers, x) for x in start]) as (i, outer, after):
            row = self.at("%a", (i, line))
            kinds = [(self.integers, x) for x in outer]
            with self.fold(first, "%n", *kinds) as (j, (best, *places), new):
                size = self.magnitude(self.element(self.at(row, (j, self.step)), gap))
                bits = self.let(f"bitcast {self.vector} {size} to {self.integers}")
                is_more = self.compare("icmp sgt", bits, best)
                for x, y in zip((bits, self.same(i), self.same(j)), (best, *places), strict=True):
                    new.append(self.choose_integer(is_more, x, y))
            after += [best, *places]
        return outer[1:]

    @property
    def pivot_bytes(self) -> int:
        with self.single():
            return self.line if self.is_vector else 8

    def write_substitute(self) -> None:
        """The solution of a triangular system, in place of its right sides.

        Element ``(i, j)`` of the matrix is at ``%a + i row + j column``. The unknowns are found
        from the first to the last, or the reverse where ``%back`` is 1.
        """
        arguments = (
            "ptr noalias %a, i64 %row, i64 %column, i64 %gap, ptr noalias %b, i64 %n, "
            "i64 %vectors, i64 %unit, i64 %back"
        )
        with self.function("substitute", arguments):
            line = self.mul("%vectors", self.line * self.unit)
            step, gap = self.side_step, self.side_gap("%vectors")
            is_back = self.test("ne", "%back", "0")
            is_free = self.test("eq", "%unit", "0")
            with self.count("0", "%n") as q:
                other = self.sub(self.sub("%n", "1"), q)
                j = self.pick(is_back, other, q)
                first = self.let(f"select i1 {is_back}, i64 0, i64 {self.add(j, '1')}")
                end = self.pick(is_back, j, "%n")
                column = self.at("%a", (j, "%column"))
                known = self.at("%b", (j, line))
                with self.when(is_free):
                    divisor = self.divisor_at(self.at(column, (j, "%row")), "%gap")
                    with self.count("0", "%vectors") as c:
                        at = self.at(known, (c, step))
                        x = self.element(at, gap)
                        self.put(self.quotient(x, divisor), at, gap)
                is_one = self.test("eq", "%vectors", "1")
                with self.when(is_one):
                    x = self.element(known, gap)
                    with self.count(first, end) as i:
                        factor = self.coefficient(self.at(column, (i, "%row")), "%gap")
                        at = self.at("%b", (i, line))
                        self.put(self.less_product(self.element(at, gap), factor, x), at, gap)
                with self.when(self.lacks(is_one)), self.count(first, end) as i:
                    factor = self.coefficient(self.at(column, (i, "%row")), "%gap")
                    row = self.at("%b", (i, line))
                    with self.count("0", "%vectors") as c:
                        at = self.at(row, (c, step))
                        x = self.element(self.at(known, (c, step)), gap)
                        self.put(self.less_product(self.element(at, gap), factor, x), at, gap)

    def write_check(self) -> None:
        """Note zeros on a diagonal."""
        with self.function("check", "ptr noalias %a, i64 %n, ptr noalias %bad"):
            line, gap = self.line_of("%n"), self.gap_of("%n")
            with self.single(), self.count("0", "%n") as i:
                is_zero = self.is_zero(self.element(self.place("%a", i, line, i), gap))
                self.note("%bad", is_zero, self.add(i, "1"))

    def write_factor(self) -> None:
        """``A = L L^H`` in place; notes pivots that are not positive."""
        with self.function("factor", "ptr noalias %a, i64 %n, ptr noalias %bad"):
            line, gap = self.line_of("%n"), self.gap_of("%n")
            with self.count("0", "%n") as j:
                after = self.add(j, "1")
                with self.single():
                    corner = self.place("%a", j, line, j)
                    square = self.element(corner, gap)[0]
                    is_bad = self.compare("fcmp ole", square, self.number(0.0))
                    self.note("%bad", is_bad, after)
                    root = self.call("sqrt", square)
                self.update_symmetric(j, root, line, gap)

    def from_either_end(self, q: str) -> str:
        """Of ``%rows`` the one of this number, counted from the end where ``%undo`` is 1."""
        other = self.sub(self.sub("%rows", "1"), q)
        return self.let(f"select i1 {self.let('icmp ne i64 %undo, 0')}, i64 {other}, i64 {q}")

    def write_pivots(self) -> None:
        """Pivots of a matrix, and the order of its rows that they lead to."""
        arguments = "ptr noalias %from, ptr noalias %pivots, ptr noalias %order"
        with self.function("pivots", f"{arguments}, i64 %count, i64 %rows"):
            with self.count("0", "%rows") as i:
                short = self.let(f"trunc i64 {i} to i32")
                self.do(f"store i32 {short}, ptr {self.at('%order', (i, 4))}")
            with self.count("0", "%count") as p:
                pivot = self.let(f"load i64, ptr {self.at('%from', (p, self.pivot_bytes))}")
                short = self.let(f"trunc i64 {pivot} to i32")
                self.do(f"store i32 {short}, ptr {self.at('%pivots', (p, 4))}")
                here, there = self.at("%order", (p, 4)), self.at("%order", (pivot, 4))
                x, y = (self.let(f"load i32, ptr {at}") for at in (here, there))
                self.do(f"store i32 {y}, ptr {here}")
                self.do(f"store i32 {x}, ptr {there}")

    # Kernels.

    @contextmanager
    def _groups(self, arrays: str) -> Iterator[None]:
        """A loop over groups of matrices, from ``%first`` to ``%first + %last``.

        Args:
            arrays: The letters of the arrays that the kernel has.
        """
        self.name_words(SMALL_WORDS)
        memory, self.lane = self.claim()
        for name, place in self.memory()[0].items():
            self.do(f"{name} = getelementptr inbounds i8, ptr {memory}, i64 {place}")
        for x in arrays:
            base = self.let(f"load ptr, ptr {self.at('%slots', (f'%slot_{x}', 8))}")
            self.do(f"%base.{x} = getelementptr inbounds i8, ptr {base}, i64 %offset_{x}")
        step = self.group()
        with self.count("%begin", "%end", step) as first:
            with self.single():
                self.do(f"store {self.integers} {self.integer(0)}, ptr %bad, align 8")
            count = self.least(self.sub("%end", first), step)
            self.do(f"%last = sub nsw i64 {count}, 1")
            self.do(f"%first = add nsw i64 {first}, 0")
            for x in arrays:
                distance = self.mul(first, f"%stride_{x}")
                self.do(f"%{x} = getelementptr inbounds i8, ptr %base.{x}, i64 {distance}")
            yield
        self.release(self.lane)

    def memory(self) -> tuple[dict[str, int], int]:
        """Where in a lane of scratch memory its parts begin, and how many bytes a lane has."""
        places, end = {}, 0
        for name, numbers in (
            ("%a.own", self.rooms[0]),
            ("%b.own", self.rooms[1]),
            ("%pivots", (self.most + 1) * self.lanes),
            ("%columns", self.most * self.lanes),
            ("%bad", self.lanes),
        ):
            places[name] = end
            end += -(-8 * numbers // CACHE_LINE) * CACHE_LINE
        return places, end

    def _factor_lu(self) -> None:
        self.pack()
        self.use("lu", "ptr %a.own, i64 %m, i64 %n, ptr %pivots, ptr %bad")

    def _refuse(self) -> None:
        """Say which is the first matrix for which something has failed, if any."""
        is_some, which = self.is_bad()
        is_checked = self.test("ne", "%checked", "0")
        n = next(self._numbers)
        fails = self.let(f"and i1 {is_some}, {is_checked}")
        self.fork(fails, f"bad{n}", f"good{n}")
        self.start(f"bad{n}")
        value = self.let(f"load i64, ptr {self.at('%bad', (which, 8))}")
        for slot, number in enumerate(("%site", value, self.add("%first", which)), 1):
            self.do(f"store i64 {number}, ptr {self.at('%slots', (str(slot), 8))}")
        self.release(self.lane)
        self.do(f"ret i64 {REFUSED}")
        self.start(f"good{n}")

    @contextmanager
    def _sides(self, source: str, target: str) -> Iterator[str]:
        """A loop over right sides: takes some, yields the number of their vectors, gives them back.

        Args:
            source: The letter of their array; none for the identity.
            target: That of the solutions.
        """
        with self.count("0", "%k", self.most_columns) as start:
            columns = self.least(self.sub("%k", start), str(self.most_columns))
            vectors = self.vectors_of(columns)
            place = f"i64 %last, i64 %n, i64 %k, i64 {start}, i64 {columns}, i64 {vectors}"
            if source:
                words = f"ptr %{source}, i64 %stride_{source}, {place}"
                self.use("take", f"ptr %b.own, {words}")
            else:
                self.use("identity", f"ptr %b.own, ptr %{target}, i64 0, {place}")
            yield vectors
            words = f"ptr %{target}, i64 %stride_{target}, {place}"
            self.use("give", f"ptr %b.own, {words}")

    def _call_substitute(
        self, vectors: str, distances: tuple[str, str], unit: str, back: str, n: str = "%n"
    ) -> None:
        row, column = distances
        words = f"i64 {row}, i64 {column}, i64 {self.gap_of('%n')}, ptr %b.own, i64 {n}"
        self.use("substitute", f"ptr %a.own, {words}, i64 {vectors}, i64 {unit}, i64 {back}")

    def solve(self) -> None:
        self._solved("abc", "b", "c")

    def inverse(self) -> None:
        self._solved("ab", "", "b")

    def _solved(self, arrays: str, source: str, target: str) -> None:
        with self._groups(arrays):
            self._factor_lu()
            self._refuse()
            with self._sides(source, target) as vectors:
                self._exchange_sides(vectors, 0)
                self._eliminate(vectors)
                count = self.mul(self.mul("%n", vectors), self.unit)
                self.use("spoil", f"ptr %b.own, i64 {count}, ptr %bad")

    def _exchange_sides(self, vectors: str, is_undone: int, pivots: str = "%pivots") -> None:
        words = f"i64 {self.mul(vectors, self.unit)}, ptr {pivots}, i64 {is_undone}"
        self.use("exchange_all", f"ptr %b.own, i64 %n, {words}")

    def _eliminate(self, vectors: str) -> None:
        by_rows = self.line_of("%n"), str(self.step)
        self._call_substitute(vectors, by_rows, "1", "0")
        self._call_substitute(vectors, by_rows, "0", "1")

    def lu_factors(self) -> None:
        with self._groups("abcd"):
            self._factor_lu()
            self.unpack("b")
            self.unpack_pivots("c", "d")

    def factored(self) -> None:
        with self._groups("abcd"):
            self.pack()
            self.pack_pivots("b")
            self.use("check", "ptr %a.own, i64 %n, ptr %bad")
            self._refuse()
            with self._sides("c", "d") as vectors:
                is_turned = self.test("ne", "%transposed", "0")
                with self.when(self.lacks(is_turned)):
                    self._exchange_sides(vectors, 0)
                    self._eliminate(vectors)
                with self.when(is_turned):
                    by_columns = str(self.step), self.line_of("%n")
                    self._call_substitute(vectors, by_columns, "0", "0")
                    self._call_substitute(vectors, by_columns, "1", "1")
                    self._exchange_sides(vectors, 1)

    def triangular(self) -> None:
        with self._groups("abc"):
            self.pack()
            with self.when(self.test("eq", "%unit", "0")):
                self.use("check", "ptr %a.own, i64 %n, ptr %bad")
            self._refuse()
            is_turned = self.test("ne", "%transposed", "0")
            line = self.line_of("%n")
            row = self.pick(is_turned, self.step, line)
            column = self.pick(is_turned, line, self.step)
            back = self.let(f"zext i1 {self.let('icmp eq i64 %lower, %transposed')} to i64")
            with self._sides("b", "c") as vectors:
                self._call_substitute(vectors, (row, column), "%unit", back)

    def cholesky(self) -> None:
        with self._groups("ab"):
            self.pack_lower()
            self.use("factor", "ptr %a.own, i64 %n, ptr %bad")
            self._refuse()
            self.unpack_lower("b")

    def det(self) -> None:
        with self._groups("ab"):
            x, power = self._determinant()
            with self.single():
                found = tuple(self.raised(part, power) for part in x)
            self.deliver(found, "b")

    def slogdet(self) -> None:
        with self._groups("abc"):
            x, power = self._determinant()
            with self.single():
                size = self.absolute(x[0])
                if self.unit == 2:
                    squares = self.fused(x[0], x[0], self.real("fmul", x[1], x[1]))
                    size = self.call("sqrt", squares)
                is_zero = self.compare("fcmp oeq", size, self.number(0.0))
                zeros = (self.number(0.0),) * self.unit
                sign = self.choose_element(is_zero, zeros, self._sign(x, size))
                logarithm = self.logarithm(size, power)
            self.deliver(sign, "b")
            self.deliver((logarithm,), "c")

    def adjugate(self) -> None:
        """``det(A) A^-1``, of singular matrices too.

        With ``P A Q = L U``, ``U = [[V, u], [0, t]]`` and ``Y = L^-1 P``, whose last row is ``y``,
        it is ``det(V)`` times ``Q [[V^-1 (t Y' - u y)], [y]]``, up to the signs of P and Q.
        """
        with self._groups("ab"):
            self.pack()
            words = "ptr %a.own, i64 %n, ptr %pivots, ptr %columns, ptr %bad"
            self.use("lu_complete", words)
            last = self.sub("%n", "1")
            x, power = self._product_of_pivots(last, ("%pivots", "%columns"))
            x = tuple(self.across(part, "double") for part in x)
            power = self.across(power, "i64")
            with self._sides("", "b") as vectors:
                line = self.mul(vectors, self.line * self.unit)
                side_gap = self.side_gap(vectors)
                rows, gap = self.line_of("%n"), self.gap_of("%n")
                self._exchange_sides(vectors, 0)
                self._call_substitute(vectors, (rows, str(self.step)), "1", "0")
                t = self.coefficient(self.place("%a.own", last, rows, last), gap)
                with self.count("0", last) as i:
                    u = self.coefficient(self.place("%a.own", i, rows, last), gap)
                    with self.count("0", vectors) as c:
                        at = self.at("%b.own", (i, line), (c, self.side_step))
                        y = self.element(
                            self.at("%b.own", (last, line), (c, self.side_step)), side_gap
                        )
                        old = self.product(self.element(at, side_gap), t)
                        self.put(self.less_product(old, u, y), at, side_gap)
                self._call_substitute(vectors, (rows, str(self.step)), "0", "1", last)
                with self.count("0", "%n") as i, self.count("0", vectors) as c:
                    at = self.at("%b.own", (i, line), (c, self.side_step))
                    new = self.product(self.element(at, side_gap), x)
                    new = tuple(self.raised(part, power) for part in new)
                    self.put(new, at, side_gap)
                self._clear_bad(vectors)
                self._exchange_sides(vectors, 1, "%columns")

    def _clear_bad(self, vectors: str) -> None:
        """Zeros where the rank is less by two, or more."""
        with self.single():
            bad = self.integers_at("%bad")
        is_bad = self.compare("icmp ne", self.across(bad, "i64"), self.integer(0))
        with (
            self.when(self.is_some(is_bad)),
            self.count("0", self.mul(self.mul("%n", vectors), self.unit)) as v,
        ):
            at = self.at("%b.own", (v, self.line))
            self.store(self.choose(is_bad, self.number(0.0), self.load(at)), at)

    def _sign(self, x: Element, size: str) -> Element:
        if self.unit == 2:
            return tuple(self.real("fdiv", part, size) for part in x)
        is_negative = self.compare("fcmp olt", x[0], self.number(0.0))
        return (self.choose(is_negative, self.number(-1.0), self.number(1.0)),)

    def _determinant(self) -> tuple[Element, str]:
        """The product of the pivots as a number of moderate size and a power of 2.

        Where the matrix is singular it is 0.
        """
        self._factor_lu()
        x, power = self._product_of_pivots("%n", ("%pivots",))
        with self.single():
            is_bad = self.compare("icmp ne", self.integers_at("%bad"), self.integer(0))
            zeros = (self.number(0.0),) * self.unit
            power = self.choose_integer(is_bad, self.integer(0), power)
            return self.choose_element(is_bad, zeros, x), power

    def _product_of_pivots(self, count: str, exchanges: Sequence[str]) -> tuple[Element, str]:
        """The product of the first pivots, with the sign of exchanges, and its power of 2."""
        line, gap = self.line_of("%n"), self.gap_of("%n")
        with self.single():
            ones = (self.number(1.0), self.number(0.0))[: self.unit]
            carried = [(self.vector, part) for part in ones]
            with self.fold("0", count, *carried, (self.integers, self.integer(0))) as fold:
                p, old, new = fold
                d = self.element(self.place("%a.own", p, line, p), gap)
                for pivots in exchanges:
                    place = self.integers_at(self.at(pivots, (p, self.pivot_bytes)))
                    is_moved = self.compare("icmp ne", place, self.same(p))
                    d = self.choose_element(is_moved, self.negative(d), d)
                d, power = self.moderate(d)
                new += self.product(tuple(old[:-1]), d)
                new.append(self.whole("add", old[-1], power))
        return tuple(old[:-1]), old[-1]


_KERNELS: dict[str, Callable[[SmallMatrices], None]] = {
    "adjugate": SmallMatrices.adjugate,
    "cholesky": SmallMatrices.cholesky,
    "det": SmallMatrices.det,
    "factored": SmallMatrices.factored,
    "inv": SmallMatrices.inverse,
    "lu": SmallMatrices.lu_factors,
    "slogdet": SmallMatrices.slogdet,
    "solve": SmallMatrices.solve,
    "triangular": SmallMatrices.triangular,
}
"""What writes the kernels."""

NAMES = tuple(_KERNELS)
