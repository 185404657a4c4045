"""Factorisations and systems of small matrices.

What is computed is written here once, for two layouts: `InLanes` works on as many matrices at a
time as a vector has lanes, `InRows` on one whose rows are vectors. In both of them each number is
the result of the same operations in the same order. So it depends neither on the layout, nor on how
many matrices there are, nor on their neighbours. The operations are the same words, too: of vectors
in one layout, and in the other of scalars, which fill vectors where they meet these.

Everything is computed in double precision, in which `numpy.linalg` computes, too; single precision
is a matter of loads and stores. A complex number is a pair, of vectors or of scalars.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from funcgrad.base.records import dataclass
from funcgrad.compiler.abi import REFUSED, SMALL_WORDS
from funcgrad.compiler.loops.language import SLOTS, Expression, Variable, call, equal, of
from funcgrad.compiler.loops.library.elements import Element, Elements, Index, muladd
from funcgrad.compiler.machine import FEW, SEVERAL, VECTOR_BYTES

MOST_IN_LANES = 2 * SEVERAL
"""Rows and columns of the largest matrix in lanes: memory for all of them stays in a near cache."""

ARRAYS = 6
"""The scope of all memory that is not this program's own."""


@dataclass(frozen=True)
class Memory:
    """Numbers of our own.

    Attributes:
        pointer: Where they are.
        scope: The scope of accesses.
        line: Numbers from a row to the next one.
        step: Numbers from a column, or a vector, to the next one.
        gap: Numbers from a real part to the imaginary part.
    """

    pointer: Expression
    scope: int
    line: Index
    step: Index = 1
    gap: Index = 0

    def place(self, i: Expression, j: Index) -> Expression:
        """The number of a real part."""
        return i * self.line + j * self.step


class SmallMatrices(Elements):
    """The programs, for a layout that is to be filled in.

    Args:
        name: What is computed: one of `NAMES`.
        letter: BLAS's letter of the type: s, d, c or z.
        lanes: Numbers of double precision in a vector.

    Attributes:
        rooms: How many numbers the memory has for matrices, and for right-hand sides.
        most: Rows and columns of the largest matrix.
        most_columns: Right-hand sides that are worked on together.
        group: The number of matrices that are worked on together.
    """

    rooms: tuple[int, int]
    most: int
    most_columns: int
    group: int

    def __init__(self, name: str, letter: str, lanes: int) -> None:
        super().__init__(letter, lanes)
        self.name = name
        self.words = self.given(SMALL_WORDS)
        self.m, self.n, self.k = (self.let(self.words[x]) for x in "mnk")

    def memory(self) -> tuple[dict[str, int], int]:
        """Offsets of the parts of a lane of scratch memory, and the bytes of a lane."""
        places, end = {}, 0
        for name, numbers in (
            ("a", self.rooms[0]),
            ("b", self.rooms[1]),
            ("pivots", (self.most + 1) * self.lanes),
            ("columns", self.most * self.lanes),
            ("bad", self.lanes),
        ):
            places[name] = end
            end += -(-8 * numbers // VECTOR_BYTES) * VECTOR_BYTES
        return places, end

    # The layout.

    @abstractmethod
    def one(self, place: Index) -> Expression:
        """The index of a number of every matrix of a group."""

    @abstractmethod
    def filled(self, number: Expression | float) -> Expression:
        """The same number for every matrix."""

    @property
    def zero(self) -> Element:
        """Zero for every matrix."""
        return (self.filled(0.0),) * self.unit

    @abstractmethod
    def vectors_of(self, columns: Expression) -> Expression:
        """The number of vectors of so many columns."""

    @abstractmethod
    def columns(self, first: Expression) -> AbstractContextManager[tuple[Expression, Expression]]:
        """A loop over the vectors with columns from one on: the first of each, and all of them."""

    @abstractmethod
    def move(self, array: str, gives: bool) -> None:
        """Matrices of a group into the layout, or out of it."""

    @abstractmethod
    def pack_lower(self) -> Memory:
        """Lower triangles of a group, as upper triangles."""

    @abstractmethod
    def unpack_lower(self, to: str) -> None:
        """The reverse, with zeros above the diagonal."""

    @abstractmethod
    def move_sides(self, array: str, start: Variable, columns: Variable, gives: bool) -> None:
        """Some right-hand sides into the layout, or out of it."""

    @abstractmethod
    def identity(self, start: Variable, columns: Variable) -> None:
        """Columns of the identity as right-hand sides."""

    @abstractmethod
    def deliver(self, x: Element, to: str) -> None:
        """One element per matrix into memory."""

    @abstractmethod
    def exchange(
        self, x: Memory, rows: Expression, first: Index, p: Expression, place: Memory
    ) -> None:
        """Rows ``p`` and the one that is noted at a place change places, from a row on."""

    @abstractmethod
    def exchange_columns(self, p: Variable) -> None:
        """Columns ``p`` of the matrix and of its pivot change places."""

    @abstractmethod
    def update(self, row: Memory, top: Memory, p: Variable, factor: Element) -> None:
        """Put a factor in its column of a row, and take so much of another row off what follows."""

    @abstractmethod
    def of_matrix(self, t: Variable, name: str) -> Memory:
        """Integers of one matrix of the group."""

    # Numbers.

    def at(self, x: Memory, place: Index) -> Memory:
        """Pointer to the part of a number, such as a row: it takes the fewest registers."""
        return replace(x, pointer=self.let(call("advance", x.pointer, place)))

    @contextmanager
    def lines(
        self, first: Index, end: Expression, *every: tuple[Memory, Index]
    ) -> Iterator[tuple[Variable, list[Memory]]]:
        """A loop over lines that are so many numbers apart: their number, and where each is."""
        each = [self.at(x, first * step) for x, step in every]
        with self.count(first, end) as i:
            yield i, each
            for x, (_, step) in zip(each, every, strict=True):
                assert isinstance(x.pointer, Variable)
                self.change(x.pointer, call("advance", x.pointer, step))

    def element(self, x: Memory, place: Index) -> Element:
        """One element of every matrix."""
        return self._loaded(x, [self.one(place + x.gap * q) for q in range(self.unit)])

    def vector(self, x: Memory, place: Index) -> Element:
        """Neighbours in a row."""
        return self._loaded(x, [self.near(place + x.gap * q) for q in range(self.unit)])

    def _loaded(self, x: Memory, indices: Sequence[Expression]) -> Element:
        return tuple(self.let(call("load", x.pointer, i, x.scope)) for i in indices)

    def put(self, e: Element, x: Memory, place: Index) -> None:
        """Store neighbours in a row."""
        for q, part in enumerate(e):
            self.store(x.pointer, self.near(place + x.gap * q), part, x.scope)

    def put_one(self, e: Element, x: Memory, place: Index) -> None:
        """Store one element of every matrix."""
        for q, part in enumerate(e):
            self.store(x.pointer, self.one(place + x.gap * q), part, x.scope)

    def integer(self, x: Memory, p: Index) -> Variable:
        """One integer of every matrix."""
        return self.let(call("load", x.pointer, self.one(p * x.line), x.scope))

    def put_integer(self, number: Expression, x: Memory, p: Index) -> None:
        self.store(x.pointer, self.one(p * x.line), number, x.scope)

    def note(self, is_bad: Expression, number: Expression) -> None:
        """Keep the first number for which something fails, of every matrix."""
        old = self.integer(self.bad, 0)
        self.put_integer(call("select", is_bad & equal(old, 0), number, old), self.bad, 0)

    # Algorithms.

    def lu(self) -> None:
        """``P A = L U`` in place; notes zeros on the diagonal of U.

        NaN counts as the greatest pivot, so that it is not lost.
        """
        a, n = self.a, self.n
        best, place = self._search(0)
        with self.count(0, self.m) as i:
            self._compare(best, place, i, self.element(a, i * a.line))
        self.put_integer(place, self.pivots, 0)
        with self.count(0, call("minimum", self.m, n)) as p:
            top, after = self.at(a, p * a.line), self.let(p + 1)
            self.exchange(a, self.m, after, p, self.pivots)
            pivot = self._pivot(top, p, after)
            column = self.let(call("minimum", after, n - 1))
            best, place = self._search(after)
            with self.lines(after, self.m, (a, a.line)) as (i, [row]):
                factor = self._factor(row, p, pivot)
                # Not read from where the row is stored: that would wait for it.
                old, other = (self.element(x, column * a.step) for x in (row, top))
                self._compare(best, place, i, self.less_product(old, factor, other))
                self.update(row, top, p, factor)
            self.put_integer(place, self.pivots, after)

    def _search(self, first: Index) -> tuple[Variable, Variable]:
        """State of a search for the greatest element: its bits, and its row."""
        return self.let(self.filled(call("i64", -1))), self.let(self.filled(call("i64", first)))

    def _compare(self, best: Variable, place: Variable, i: Variable, x: Element) -> None:
        bits = self.let(self.magnitude(x))
        is_more = self.let(bits > best)
        self.change(place, call("select", is_more, i, place))
        self.change(best, call("select", is_more, bits, best))

    def _pivot(self, top: Memory, p: Variable, after: Expression) -> tuple[Variable, Element]:
        """Whether a pivot is zero, which is noted, and what to divide by."""
        d = self.element(top, p * top.step)
        is_zero = self.let(self.is_zero(d))
        self.note(is_zero, after)
        return is_zero, self.divisor(d)

    def _factor(self, row: Memory, p: Variable, pivot: tuple[Variable, Element]) -> Element:
        """How much of the row of a pivot is taken off another one, so that its element vanishes."""
        is_zero, divisor = pivot
        x = self.element(row, p * row.step)
        return tuple(map(self.let, self.choose(is_zero, x, self.quotient(x, divisor))))

    def lu_complete(self) -> None:
        """``P A Q = L U`` in place, every pivot the greatest of all numbers that are left.

        Notes zeros on the diagonal of U, of which the last element does not count.
        """
        a, n = self.a, self.n
        with self.count(0, n) as p:
            top, after = self.at(a, p * a.line), self.let(p + 1)
            best, place = self._search(p)
            column = self.let(self.filled(call("i64", p)))
            with self.count(p, n) as i, self.count(p, n) as j:
                bits = self.let(self.magnitude(self.element(a, a.place(i, j))))
                is_more = self.let(bits > best)
                for known, new in ((best, bits), (place, i), (column, j)):
                    self.change(known, call("select", is_more, new, known))
            self.put_integer(place, self.pivots, p)
            self.put_integer(column, self.exchanges, p)
            self.exchange(a, n, after, p, self.pivots)
            self.exchange_columns(p)
            d = self.element(top, p * a.step)
            is_zero = self.let(self.is_zero(d))
            with self.when(after < n):
                self.note(is_zero, after)
            pivot = is_zero, self.divisor(d)
            with self.lines(after, n, (a, a.line)) as (_, [row]):
                self.update(row, top, p, self._factor(row, p, pivot))

    def factor(self, a: Memory) -> None:
        """``A = U^H U`` in place, of upper triangles; notes pivots that are not positive."""
        with self.count(0, self.n) as j:
            top = self.at(a, j * a.line)
            square = self.element(a, a.place(j, j))[0]
            self.note(square <= 0.0, j + 1)
            root = self.let(call("sqrt", square))
            with self.columns(j) as (c, columns):
                x = self.vector(top, c * a.step)
                corner = (root, self.filled(0.0))[: self.unit]
                roots = self.choose(equal(columns, j), corner, tuple(part / root for part in x))
                self.put(roots, top, c * a.step)
            with self.lines(j + 1, self.n, (a, a.line)) as (i, [row]):
                factor = self.element(top, i * a.step)
                with self.columns(i) as (c, _):
                    at = self.let(c * a.step)
                    old, other = self.vector(row, at), self.vector(top, at)
                    self.put(self.less_product(old, factor, other, True), row, at)

    def substitute(
        self,
        row: Index,
        column: Index,
        unit: Expression | bool,
        back: Expression | bool,
        n: Expression,
    ) -> None:
        """The solution of a triangular system, in place of its right-hand sides.

        Args:
            row: Numbers from a row of the matrix to the next one.
            column: Numbers from a column to the next one.
            unit: Whether the diagonal is all ones.
            back: Whether the unknowns are found from the last one to the first.
            n: How many of them there are.
        """
        whole = self.let(n // FEW * FEW)
        for start, end, count in ((0, whole, FEW), (whole, n, 1)):
            with self.count(start, end, count) as q:
                unknowns = [self.let(choice(back, n - 1 - q - t, q + t)) for t in range(count)]
                known = [self.at(self.b, j * self.b.line) for j in unknowns]
                factors = [self.at(self.a, j * column) for j in unknowns]
                self._find(known, factors, [j * row for j in unknowns], unit)
                first = self.let(choice(back, 0, unknowns[-1] + 1))
                last = self.let(choice(back, unknowns[-1], n))
                self._take_off(known, [(x, row) for x in factors], first, last)

    def _find(
        self,
        known: Sequence[Memory],
        factors: Sequence[Memory],
        rows: Sequence[Index],
        unit: Expression | bool,
    ) -> None:
        """A few unknowns, of which each needs those before it.

        Args:
            known: Their right-hand sides, of which everything before them has been taken off.
            factors: Their columns of the matrix.
            rows: Where their rows are in a column.
            unit: Whether the diagonal is all ones.
        """
        each = range(len(known))
        below = {(s, t): self.element(factors[t], rows[s]) for s in each for t in range(s)}
        divisors = [
            self.divisor(self.element(factors[s], rows[s])) for s in each if unit is not True
        ]
        with self.count(0, self.vectors) as c:
            place = self.let(c * self.b.step)
            found: list[tuple[Variable, ...]] = []
            for s in each:
                x: Element = self.vector(known[s], place)
                for t in range(s):
                    x = self.less_product(x, below[s, t], found[t])
                found.append(tuple(map(self.let, x)))
                if unit is not True:
                    with self.when(of(True) if unit is False else ~unit):
                        parts = list(map(self.let, self.quotient(found[s], divisors[s])))
                        for variable, part in zip(found[s], parts, strict=True):
                            self.change(variable, part)
                self.put(found[s], known[s], place)

    def _take_off(
        self,
        known: Sequence[Memory],
        factors: Sequence[tuple[Memory, Index]],
        first: Expression,
        end: Expression,
    ) -> None:
        """Take unknowns that were found off the right-hand sides of others.

        Every number is loaded and stored once for all of them.

        Args:
            known: The unknowns.
            factors: Their columns of the matrix, and the numbers from a row to the next one.
            first: The first row of the others.
            end: The end of these rows.
        """
        b = self.b
        with self.when(equal(self.vectors, 1)):
            xs = [self.vector(x, 0) for x in known]
            with self.lines(first, end, *factors, (b, b.line)) as (_, [*each, line]):
                new: Element = self.vector(line, 0)
                for at, number in zip(each, xs, strict=True):
                    new = self.less_product(new, self.element(at, 0), number, is_fixed=True)
                self.put(new, line, 0)
        with self.otherwise(), self.lines(first, end, *factors, (b, b.line)) as (_, [*each, line]):
            taken = [self.element(at, 0) for at in each]
            with self.count(0, self.vectors) as c:
                place = self.let(c * b.step)
                new = self.vector(line, place)
                for factor, x in zip(taken, known, strict=True):
                    new = self.less_product(new, factor, self.vector(x, place))
                self.put(new, line, place)

    def check(self) -> None:
        """Note zeros on the diagonal."""
        with self.count(0, self.n) as i:
            self.note(self.is_zero(self.element(self.a, self.a.place(i, i))), i + 1)

    def exchange_sides(self, undo: bool, pivots: Memory) -> None:
        """The exchanges of all pivots; the last one first where they are undone."""
        with self.count(0, self.n) as q:
            self.exchange(self.b, self.n, 0, self.n - 1 - q if undo else q, pivots)

    def eliminate(self) -> None:
        """Both triangular systems of a factorisation."""
        self.substitute(self.a.line, self.a.step, True, False, self.n)
        self.substitute(self.a.line, self.a.step, False, True, self.n)

    def product_of_pivots(
        self, count: Expression, exchanges: Sequence[Memory]
    ) -> tuple[Element, Variable]:
        """The product of the first pivots, with the sign of exchanges, and its power of 2."""
        found = [self.let(self.filled(number)) for number in (1.0, 0.0)[: self.unit]]
        power = self.let(self.filled(call("i64", 0)))
        with self.count(0, count) as p:
            d = self.element(self.a, self.a.place(p, p))
            for pivots in exchanges:
                is_moved = call("not_equal", self.integer(pivots, p), p)
                d = self.choose(is_moved, tuple(-part for part in d), d)
            d, own = self.moderate(tuple(map(self.let, d)))
            new = [self.let(part) for part in self.product(tuple(found), d)]
            for variable, part in zip((*found, power), (*new, power + own), strict=True):
                self.change(variable, part)
        return tuple(found), power

    def determinant(self) -> tuple[Element, Expression]:
        """The product of the pivots as a number of moderate size and a power of 2.

        Where the matrix is singular it is 0.
        """
        self.move("a", False)
        self.lu()
        x, power = self.product_of_pivots(self.n, [self.pivots])
        is_bad = self.let(call("not_equal", self.integer(self.bad, 0), 0))
        return self.choose(is_bad, self.zero, x), self.let(call("select", is_bad, 0, power))

    # The programs.

    def write(self) -> None:
        """Append the statements of the program."""
        _PROGRAMS[self.name](self)

    @contextmanager
    def groups(self, arrays: str) -> Iterator[None]:
        """A loop over groups of matrices, of which the array with a letter begins at an address.

        Args: arrays: The letters of the arrays that the program has.
        """
        words, lanes = self.words, self.lanes if self.group > 1 else 1
        memory, self.lane = self.claimed(words)
        place = {name: memory + start for name, start in self.memory()[0].items()}
        self.a = self.matrices(self.let(call("ptr_f64", place["a"])))
        self._sides_at = self.let(call("ptr_f64", place["b"]))
        self.pivots, self.exchanges, self.bad = (
            Memory(self.let(call("ptr_i64", place[name])), 3 + number, lanes)
            for number, name in enumerate(("pivots", "columns", "bad"))
        )
        bases = {x: self.address(words, x) for x in arrays}
        with self.count(words["begin"], words["end"], self.group) as first:
            self.put_integer(self.filled(call("i64", 0)), self.bad, 0)
            self.first = first
            self.last = self.let(call("minimum", words["end"] - first, self.group) - 1)
            self.addresses = {
                x: self.let(base + first * words[f"stride_{x}"]) for x, base in bases.items()
            }
            yield
        self.release(self.lane)

    @abstractmethod
    def matrices(self, pointer: Variable) -> Memory:
        """Pointer to the matrices."""

    @abstractmethod
    def sides(self, pointer: Variable) -> Memory:
        """Pointer to the right-hand sides, which are `vectors` vectors."""

    @abstractmethod
    def first_bad(self) -> tuple[Expression, Expression]:
        """Whether something has failed in a group, and for which of its matrices at first."""

    def refuse(self) -> None:
        """Say which is the first matrix for which something has failed, if any."""
        is_some, which = self.first_bad()
        with self.when(is_some & call("not_equal", self.words["checked"], 0)):
            value = call("load", self.bad.pointer, which, self.bad.scope)
            for slot, number in enumerate((self.words["site"], value, self.first + which), 1):
                self.evaluate(call("write_word", SLOTS, slot, number))
            self.release(self.lane)
            self.give_back(REFUSED)

    @contextmanager
    def right_sides(self, source: str, target: str) -> Iterator[None]:
        """A loop over right-hand sides: takes some, and gives them back.

        Args:
            source: The letter of their array; none for the identity.
            target: That of the solutions.
        """
        with self.count(0, self.k, self.most_columns) as start:
            columns = self.let(call("minimum", self.k - start, self.most_columns))
            self.vectors = self.let(self.vectors_of(columns))
            self.b = self.sides(self._sides_at)
            if source:
                self.move_sides(source, start, columns, False)
            else:
                self.identity(start, columns)
            yield
            self.move_sides(target, start, columns, True)

    def solve(self) -> None:
        self._solved("abc", "b", "c")

    def inverse(self) -> None:
        self._solved("ab", "", "b")

    def _solved(self, arrays: str, source: str, target: str) -> None:
        with self.groups(arrays):
            self.move("a", False)
            self.lu()
            self.refuse()
            with self.right_sides(source, target):
                self.exchange_sides(False, self.pivots)
                self.eliminate()
                is_bad = self.let(call("not_equal", self.integer(self.bad, 0), 0))
                self._where_bad(is_bad, float("nan"))

    def _where_bad(self, is_bad: Variable, number: float) -> None:
        """Put a number in place of the right-hand sides of matrices that are bad."""
        with self.when(self.is_any(is_bad)), self.count(0, self.n * self.vectors * self.unit) as v:
            pointer, index = self.b.pointer, self.near(v * self.lanes)
            old = call("load", pointer, index, self.b.scope)
            self.store(pointer, index, call("select", is_bad, number, old), self.b.scope)

    @abstractmethod
    def is_any(self, flags: Expression) -> Expression:
        """Whether something is so of any matrix of a group."""

    def lu_factors(self) -> None:
        with self.groups("abcd"):
            self.move("a", False)
            self.lu()
            self.move("b", True)
            with self.count(0, self.last + 1) as t:
                self._orders(t)

    def _orders(self, t: Variable) -> None:
        """Pivots of a matrix, and the permutation of its rows that they stand for."""
        own = self.of_matrix(t, "pivots")
        pivots, orders = (self.array("i32", x, t) for x in "cd")
        with self.count(0, self.m) as i:
            self.store(orders, i, call("i32", i), ARRAYS)
        with self.count(0, call("minimum", self.m, self.n)) as p:
            pivot = self.let(call("load", own.pointer, p * own.line, own.scope))
            self.store(pivots, p, call("i32", pivot), ARRAYS)
            x, y = (self.let(call("load", orders, i, ARRAYS)) for i in (p, pivot))
            self.store(orders, p, y, ARRAYS)
            self.store(orders, pivot, x, ARRAYS)

    def array(self, kind: str, x: str, t: Index = 0) -> Variable:
        """A pointer to the numbers of one matrix of the group, or of the last one."""
        number = call("minimum", t, self.last)
        return self.let(call(f"ptr_{kind}", self.addresses[x] + number * self.words[f"stride_{x}"]))

    def factored(self) -> None:
        with self.groups("abcd"):
            self.move("a", False)
            with self.count(0, self.group) as t:
                own, numbers = self.of_matrix(t, "pivots"), self.array("i32", "b", t)
                with self.count(0, self.n) as p:
                    number = call("i64", call("load", numbers, p, ARRAYS))
                    self.store(own.pointer, p * own.line, number, own.scope)
            self.check()
            self.refuse()
            is_transposed = self.let(call("not_equal", self.words["transposed"], 0))
            a = self.a
            with self.right_sides("c", "d"):
                with self.when(~is_transposed):
                    self.exchange_sides(False, self.pivots)
                    self.eliminate()
                with self.otherwise():
                    self.substitute(a.step, a.line, False, False, self.n)
                    self.substitute(a.step, a.line, True, True, self.n)
                    self.exchange_sides(True, self.pivots)

    def triangular(self) -> None:
        words = self.words
        with self.groups("abc"):
            self.move("a", False)
            unit = self.let(call("not_equal", words["unit"], 0))
            with self.when(~unit):
                self.check()
            self.refuse()
            is_transposed = call("not_equal", words["transposed"], 0)
            row = self.let(call("select", is_transposed, self.a.step, self.a.line))
            column = self.let(call("select", is_transposed, self.a.line, self.a.step))
            back = self.let(equal(words["lower"], words["transposed"]))
            with self.right_sides("b", "c"):
                self.substitute(row, column, unit, back, self.n)

    def cholesky(self) -> None:
        with self.groups("ab"):
            self.factor(self.pack_lower())
            self.refuse()
            self.unpack_lower("b")

    def det(self) -> None:
        with self.groups("ab"):
            x, power = self.determinant()
            self.deliver(tuple(self.raised(part, power) for part in x), "b")

    def slogdet(self) -> None:
        with self.groups("abc"):
            x, power = self.determinant()
            x = tuple(map(self.let, x))
            size: Expression = call("abs", x[0])
            if self.unit == 2:
                size = call("sqrt", muladd(x[0], x[0], x[1] * x[1]))
            size = self.let(size)
            if self.unit == 1:
                sign: Element = (call("select", x[0] < 0.0, -1.0, self.filled(1.0)),)
            else:
                sign = tuple(part / size for part in x)
            self.deliver(self.choose(equal(size, 0.0), self.zero, sign), "b")
            self.deliver((self.logarithm(size, power),), "c")

    def adjugate(self) -> None:
        """``det(A) A^-1``, of singular matrices too.

        With ``P A Q = L U``, ``U = [[V, u], [0, t]]`` and ``Y = L^-1 P``, whose last row is ``y``,
        it is ``det(V)`` times ``Q [[V^-1 (t Y' - u y)], [y]]``, up to the signs of P and Q.
        """
        with self.groups("ab"):
            self.move("a", False)
            self.lu_complete()
            a, last = self.a, self.let(self.n - 1)
            x, power = self.product_of_pivots(last, [self.pivots, self.exchanges])
            with self.right_sides("", "b"):
                b = self.b
                self.exchange_sides(False, self.pivots)
                self.substitute(a.line, a.step, True, False, self.n)
                t = self.element(a, a.place(last, last))
                with self.count(0, last) as i:
                    u = self.element(a, a.place(i, last))
                    with self.count(0, self.vectors) as c:
                        y = self.vector(b, b.place(last, c))
                        old = self.product(self.vector(b, b.place(i, c)), t)
                        self.put(self.less_product(old, u, y), b, b.place(i, c))
                self.substitute(a.line, a.step, False, True, last)
                with self.count(0, self.n) as i, self.count(0, self.vectors) as c:
                    new = self.product(self.vector(b, b.place(i, c)), x)
                    self.put(tuple(self.raised(part, power) for part in new), b, b.place(i, c))
                # Zeros where the rank is less by two, or more.
                is_bad = self.let(call("not_equal", self.integer(self.bad, 0), 0))
                self._where_bad(is_bad, 0.0)
                self.exchange_sides(True, self.exchanges)


def choice(test: Expression | bool, a: Index, b: Index) -> Index:
    """One of two values, of which it may be known now which."""
    if isinstance(test, Expression):
        return call("select", test, a, b)
    return a if test else b


_PROGRAMS: dict[str, Callable[[SmallMatrices], None]] = {
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
"""Writers of the programs."""

NAMES = tuple(_PROGRAMS)
