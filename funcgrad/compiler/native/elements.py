"""Real and complex numbers in double precision, one in every lane of a vector.

In memory they are of single or double precision, real and imaginary parts side by side. In
registers a complex number is a pair of vectors; every operation on it is a fixed list of operations
on real numbers, so that it has the same result in whatever lane it is computed, or alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from funcgrad.compiler.native.assembly import VectorAssembly

Element = tuple[str, ...]
"""The names of a real part and, if there is one, an imaginary part."""


class Elements(VectorAssembly):
    """Operations on elements.

    Attributes:
        letter: BLAS's letter of the type: s, d, c or z.
        unit: How many real numbers make an element.
        stored: Type of a real number in memory.
        nbytes: Its size.
        integers: Type of a vector of integers.
        flags: Type of a mask.
    """

    def __init__(self, letter: str, lanes: int) -> None:
        super().__init__(8, lanes)
        self.letter = letter
        self.unit = 2 if letter in "cz" else 1
        self.stored = "float" if letter in "sc" else "double"
        self.nbytes = 4 if letter in "sc" else 8
        self.zeros: Element = ("zeroinitializer",) * self.unit
        self._name_types(True)

    def _name_types(self, is_vector: bool) -> None:
        self.is_vector = is_vector
        self.vector, self.integers, self.flags = (
            f"<{self.lanes} x {kind}>" if is_vector else kind for kind in ("double", "i64", "i1")
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Operations within are on single numbers."""
        before = self.is_vector
        self._name_types(False)
        yield
        self._name_types(before)

    @property
    def suffix(self) -> str:
        return super().suffix if self.is_vector else "f64"

    # Constants.

    def number(self, x: float | str) -> str:
        """A number in all lanes: a float, or the bits of one."""
        text = x if isinstance(x, str) else repr(x)
        return self.filled("double", text) if self.is_vector else text

    def integer(self, x: int) -> str:
        return self.filled("i64", str(x)) if self.is_vector else str(x)

    @property
    def nan(self) -> str:
        return self.number("0x7FF8000000000000")

    def same(self, x: str) -> str:
        """An integer in all lanes."""
        return self.spread(x, "i64") if self.is_vector else x

    # Loads and stores.

    def places(self, place: str, gap: str | int) -> list[str]:
        """Where the parts of an element are."""
        return [place] if self.unit == 1 else [place, self.at(place, ("1", gap))]

    def element(self, place: str, gap: str | int) -> Element:
        """The element at an address, imaginary parts some bytes after the real ones."""
        return tuple(self.load(at) for at in self.places(place, gap))

    def put(self, x: Element, place: str, gap: str | int) -> None:
        for part, at in zip(x, self.places(place, gap), strict=True):
            self.store(part, at)

    def integers_at(self, place: str) -> str:
        return self.let(f"load {self.integers}, ptr {place}, align 8")

    def read(self, place: str, mask: str = "") -> str:
        """A vector of numbers from memory, zeros where a mask does not hold."""
        kind = f"<{self.lanes} x {self.stored}>"
        found = self.load(place, mask, kind, self.nbytes)
        if self.nbytes == 8:
            return found
        return self.let(f"fpext {kind} {found} to {self.vector}")

    def write(self, value: str, place: str, mask: str = "") -> None:
        """A vector of numbers into memory, where a mask holds."""
        kind = f"<{self.lanes} x {self.stored}>"
        if self.nbytes != 8:
            value = self.let(f"fptrunc {self.vector} {value} to {kind}")
        self.store(value, place, mask, kind, self.nbytes)

    # Arithmetic.

    def real(self, operation: str, *operands: str) -> str:
        """An operation on real numbers."""
        return self.let(f"{operation} {self.vector} {', '.join(operands)}")

    def call(self, function: str, x: str) -> str:
        return self.invoke(self.vector, f"llvm.{function}.{self.suffix}", (self.vector, x))

    def whole(self, operation: str, x: str, y: str) -> str:
        """An operation on integers."""
        return self.let(f"{operation} {self.integers} {x}, {y}")

    def conjugate(self, x: Element) -> Element:
        return (x[0], *(self.real("fneg", part) for part in x[1:]))

    def negative(self, x: Element) -> Element:
        return tuple(self.real("fneg", part) for part in x)

    def product(self, x: Element, y: Element) -> Element:
        if self.unit == 1:
            return (self.real("fmul", x[0], y[0]),)
        (a, b), (c, d) = x, y
        minus = self.real("fneg", self.real("fmul", b, d))
        return self.fused(a, c, minus), self.fused(a, d, self.real("fmul", b, c))

    def less_product(self, x: Element, y: Element, z: Element, is_turned: bool = False) -> Element:
        """``x - y z``, or ``x - conj(y) z``."""
        minus = self.negative(y)
        real = self.fused(minus[0], z[0], x[0])
        if self.unit == 1:
            return (real,)
        imaginary = self.fused(minus[0], z[1], x[1])
        with_real, with_imaginary = (minus[1], y[1]) if is_turned else (y[1], minus[1])
        return self.fused(with_real, z[1], real), self.fused(with_imaginary, z[0], imaginary)

    def divisor(self, d: Element) -> Element:
        """What `quotient` needs to know of a divisor.

        Of a complex one ``c + is`` the factors ``p`` and ``q`` that make ``c p + s q`` of moderate
        size: one of them is 1, the other less (R. L. Smith, Commun. ACM 5 (1962) 435).
        """
        if self.unit == 1:
            return d
        c, s = d
        is_real = self.compare("fcmp oge", self.absolute(c), self.absolute(s))
        one = self.number(1.0)
        p = self.choose(is_real, one, self.real("fdiv", c, s))
        q = self.choose(is_real, self.real("fdiv", s, c), one)
        return p, q, self.fused(c, p, self.real("fmul", s, q))

    def quotient(self, x: Element, divisor: Element) -> Element:
        if self.unit == 1:
            return (self.real("fdiv", x[0], divisor[0]),)
        a, b = x
        p, q, length = divisor
        real = self.fused(a, p, self.real("fmul", b, q))
        imaginary = self.fused(b, p, self.real("fneg", self.real("fmul", a, q)))
        return self.real("fdiv", real, length), self.real("fdiv", imaginary, length)

    def absolute(self, x: str) -> str:
        return self.call("fabs", x)

    def magnitude(self, x: Element) -> str:
        """The sum of the absolute values of the parts, by which LAPACK chooses pivots."""
        sizes = [self.absolute(part) for part in x]
        return sizes[0] if self.unit == 1 else self.real("fadd", *sizes)

    # Decisions.

    def compare(self, test: str, x: str, y: str) -> str:
        kind = self.vector if test.startswith("f") else self.integers
        return self.let(f"{test} {kind} {x}, {y}")

    def both(self, x: str, y: str) -> str:
        return self.let(f"and {self.flags} {x}, {y}")

    def choose(self, mask: str, x: str, y: str) -> str:
        """A real number where a mask holds, else another one."""
        return self.let(f"select {self.flags} {mask}, {self.vector} {x}, {self.vector} {y}")

    def choose_integer(self, mask: str, x: str, y: str) -> str:
        return self.let(f"select {self.flags} {mask}, {self.integers} {x}, {self.integers} {y}")

    def choose_element(self, mask: str, x: Element, y: Element) -> Element:
        return tuple(self.choose(mask, p, q) for p, q in zip(x, y, strict=True))

    def is_zero(self, x: Element) -> str:
        return self.compare("fcmp oeq", self.magnitude(x), self.number(0.0))

    def is_some(self, mask: str) -> str:
        """Whether a mask holds in any lane."""
        bits = self.let(f"bitcast {self.flags} {mask} to i{self.lanes}")
        return self.let(f"icmp ne i{self.lanes} {bits}, 0")

    def note(self, bad: str, is_bad: str, number: str) -> None:
        """Keep the first number for which something fails, in every lane."""
        old = self.integers_at(bad)
        is_first = self.compare("icmp eq", old, self.integer(0))
        new = self.choose_integer(self.both(is_bad, is_first), self.same(number), old)
        self.do(f"store {self.integers} {new}, ptr {bad}, align 8")
