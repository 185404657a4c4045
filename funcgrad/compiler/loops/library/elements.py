"""Programs over numbers of one type, and their complex numbers.

A complex number is a pair of a real and an imaginary part. Every operation on it is a fixed list
of operations on real numbers, so that it has the same result in whatever lane it is computed, or
alone.
"""

from __future__ import annotations

from funcgrad.compiler.loops.builder import ProgramBuilder
from funcgrad.compiler.loops.language import Expression, Variable, call, equal

Index = Expression | int

Element = tuple[Expression, ...]
"""A real part and, if there is one, an imaginary part."""


LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z", "i4": "i", "u4": "i", "i8": "l", "u8": "l"}
"""Letters of dtypes by kinds and sizes: integers wrap around, with and without a sign alike."""

PAIRS = "h"
"""The letter of pairs of integers of 16 bits, whose products are two terms of a sum."""

_REALS = {"s": "f32", "c": "f32", "d": "f64", "z": "f64", "i": "i32", "l": "i64", PAIRS: "i32"}
"""Types of real numbers in memory."""


class Program(ProgramBuilder):
    """A program over arrays of one type.

    Args:
        letter: The type in memory: BLAS's letter s, d, c or z; i or l of integers (`LETTERS`).
        lanes: Real numbers in a vector.

    Attributes:
        unit: How many real numbers make an element.
        real: The type of a real number in memory.
        size: Bytes of one.
        dtype: The type of an element.
    """

    def __init__(self, letter: str, lanes: int) -> None:
        super().__init__()
        self.letter = letter
        self.lanes = lanes
        self.unit = 2 if letter in "cz" else 1
        self.real = _REALS[letter]
        self.size = int(self.real[1:]) // 8
        self.dtype = {"c": "c64", "z": "c128"}.get(letter, self.real)

    def near(self, place: Index, lanes: int = 0) -> Expression:
        """The index of a vector."""
        return call("lanes", place, lanes or self.lanes)

    @property
    def zeros(self) -> Expression:
        """Zeros in a vector."""
        return call("splat", call(self.real, 0), self.lanes)

    def pointer(self, address: Expression, kind: str = "") -> Variable:
        """A pointer to real numbers, or to elements of a type, for the loops that access them.

        Other places are addresses: of those, LLVM does not look for differences to count along in
        all loops around, which takes it more time than all else.
        """
        return self.let(call(f"ptr_{kind or self.real}", address))


class Elements(Program):
    """Operations on numbers, one for every matrix of a group or one in every lane of a vector."""

    def product(self, x: Element, y: Element) -> Element:
        if self.unit == 1:
            return (x[0] * y[0],)
        (a, b), (c, d) = x, y
        return muladd(a, c, -(b * d)), muladd(a, d, b * c)

    def less_product(
        self,
        x: Element,
        y: Element,
        z: Element,
        is_conjugated: bool = False,
        is_fixed: bool = False,
    ) -> Element:
        """``x - y z``, or ``x - conj(y) z``.

        What is negated is the factor that varies in a loop, or the other one where ``z`` is fixed:
        a negation that is moved out of the loop is no part of its instruction.
        """

        def less(x: Expression, y: Expression, z: Expression) -> Expression:
            return muladd(-y, z, x) if is_fixed else muladd(y, -z, x)

        real = less(x[0], y[0], z[0])
        if self.unit == 1:
            return (real,)
        imaginary = less(x[1], y[0], z[1])
        if is_conjugated:
            return less(real, y[1], z[1]), muladd(y[1], z[0], imaginary)
        return muladd(y[1], z[1], real), less(imaginary, y[1], z[0])

    def divisor(self, d: Element) -> Element:
        """Prepare a divisor for `quotient`.

        Of a complex one ``c + is`` the factors ``p`` and ``q`` that make ``c p + s q`` of moderate
        size: one of them is 1, the other less (R. L. Smith, Commun. ACM 5 (1962) 435).
        """
        if self.unit == 1:
            return d
        c, s = d
        sizes = [call("abs", part) for part in d]
        is_real = self.let(sizes[0] >= sizes[1])
        p = self.let(call("select", is_real, 1.0, c / s))
        q = self.let(call("select", is_real, s / c, 1.0))
        return p, q, self.let(muladd(c, p, s * q))

    def quotient(self, x: Element, divisor: Element) -> Element:
        if self.unit == 1:
            return (x[0] / divisor[0],)
        a, b = x
        p, q, length = divisor
        return muladd(a, p, b * q) / length, muladd(b, p, -(a * q)) / length

    def choose(self, flags: Expression, x: Element, y: Element) -> Element:
        return tuple(call("select", flags, p, q) for p, q in zip(x, y, strict=True))

    def magnitude(self, x: Element) -> Expression:
        """The sum of the absolute values of the parts, by which LAPACK chooses pivots.

        As integers their bits have the same order, with nan behind infinity.
        """
        first, *others = (call("abs", part) for part in x)
        return call("bitcast_f64_i64", first + others[0] if others else first)

    def is_zero(self, x: Element) -> Expression:
        first, *others = (call("abs", part) for part in x)
        return equal(first + others[0] if others else first, 0.0)

    # Numbers with powers of 2 of their own: products that neither overflow nor vanish.

    def moderate(self, d: Element) -> tuple[Element, Expression]:
        """An element as one between 1 and 4 and a power of 2.

        Zero, and what is not finite, stays as it is.
        """
        sizes = [call("abs", part) for part in d]
        largest: Expression = sizes[0]
        if self.unit == 2:
            largest = call("select", sizes[0] < sizes[1], sizes[1], sizes[0])
        is_tiny = self.let(largest < 2.0**-1022)
        lift = self.let(call("select", is_tiny, 2.0**54, 1.0))
        size = self.let(largest * lift)
        is_zero = equal(size, 0.0)
        power = self.let(call("select", is_zero, 0, self.exponent(size)))
        factor = power_of_2(-power)
        lifted = call("select", is_tiny, 54, 0)
        return (
            tuple(part * lift * factor for part in d),
            call("select", is_zero, 0, power - lifted),
        )

    def exponent(self, size: Expression) -> Expression:
        """Exponent of a positive number, 1022 at most; 0 of infinities and nan."""
        raised = self.let(call("right_shift", call("bitcast_f64_i64", size), 52))
        most = call("minimum", raised - 1023, 1022)
        return call("select", equal(raised, 2047), 0, most)

    def raised(self, x: Expression, power: Expression) -> Expression:
        """A moderate number times a power of 2, or what that overflows to."""
        power = self.let(call("maximum", call("minimum", power, 4000), -4000))
        quarter = self.let(power_of_2(call("right_shift", power, 2)))
        x = x * power_of_2(power & 3)
        for _ in range(4):
            x = x * quarter
        return x

    def logarithm(self, x: Expression, power: Expression) -> Expression:
        """Logarithm of a moderate number from 1 on times a power of 2; of 0 it is infinite."""
        exponent = self.let(self.exponent(x))
        moderate = self.let(x * power_of_2(-exponent))
        is_great = self.let(moderate > 2.0**0.5)
        y = moderate * call("select", is_great, 0.5, 1.0)
        power = power + exponent + call("select", is_great, 1, 0)
        k = self.let(call("f64", power))
        found = k * _LN2[0] + (call("log", y) + k * _LN2[1])
        found = call("select", x < float("inf"), found, x)
        return call("select", equal(x, 0.0), float("-inf"), found)


def muladd(x: Expression, y: Expression, z: Expression) -> Expression:
    """``x y + z``."""
    return call("muladd", x, y, z)


def power_of_2(exponent: Expression) -> Expression:
    """2 to the power of an exponent that a number can have."""
    return call("bitcast_i64_f64", call("left_shift", exponent + 1023, 52))


_LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
"""Its first 33 bits, whose products with exponents are exact, and the rest."""
