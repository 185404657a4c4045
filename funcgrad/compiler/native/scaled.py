"""Numbers with powers of 2 of their own: products that neither overflow nor vanish."""

from __future__ import annotations

from funcgrad.compiler.native.elements import Element, Elements


class Scaled(Elements):
    """Operations on numbers of moderate size, each with the power of 2 that belongs to it."""

    def moderate(self, d: Element) -> tuple[Element, str]:
        """An element as one between 1 and 4 and a power of 2.

        Zero, and what is not finite, stays as it is.
        """
        sizes = [self.absolute(part) for part in d]
        size = sizes[0]
        if self.unit == 2:
            size = self.choose(self.compare("fcmp olt", size, sizes[1]), sizes[1], size)
        is_tiny = self.compare("fcmp olt", size, self.number(2.0**-1022))
        lift = self.choose(is_tiny, self.number(2.0**54), self.number(1.0))
        size = self.real("fmul", size, lift)
        is_zero = self.compare("fcmp oeq", size, self.number(0.0))
        power = self.choose_integer(is_zero, self.integer(0), self.exponent(size))
        factor = self.power(power, is_negative=True)
        lifted = self.choose_integer(is_tiny, self.integer(54), self.integer(0))
        power = self.choose_integer(is_zero, self.integer(0), self.whole("sub", power, lifted))
        lifts = [self.real("fmul", part, lift) for part in d]
        return tuple(self.real("fmul", part, factor) for part in lifts), power

    def exponent(self, size: str) -> str:
        """That of a positive number, 1022 at most; 0 of what is not finite."""
        bits = self.let(f"bitcast {self.vector} {size} to {self.integers}")
        raised = self.whole("lshr", bits, self.integer(52))
        exponent = self.whole("sub", raised, self.integer(1023))
        is_last = self.compare("icmp eq", exponent, self.integer(1023))
        exponent = self.choose_integer(is_last, self.integer(1022), exponent)
        is_other = self.compare("icmp eq", raised, self.integer(2047))
        return self.choose_integer(is_other, self.integer(0), exponent)

    def power(self, exponent: str, is_negative: bool = False) -> str:
        """2 to the power of an exponent that a number can have."""
        raised = self.whole("sub" if is_negative else "add", self.integer(1023), exponent)
        bits = self.whole("shl", raised, self.integer(52))
        return self.let(f"bitcast {self.integers} {bits} to {self.vector}")

    def raised(self, x: str, power: str) -> str:
        """A moderate number times a power of 2, or what that overflows to."""
        most = 4000
        for test, limit in (("icmp sgt", most), ("icmp slt", -most)):
            is_beyond = self.compare(test, power, self.integer(limit))
            power = self.choose_integer(is_beyond, self.integer(limit), power)
        x = self.real("fmul", x, self.power(self.whole("and", power, self.integer(3))))
        quarter = self.power(self.whole("ashr", power, self.integer(2)))
        for _ in range(4):
            x = self.real("fmul", x, quarter)
        return x

    def logarithm(self, x: str, power: str) -> str:
        """That of a moderate number from 1 on times a power of 2; of 0 it is infinite.

        With ``2^k (1 + f)`` between the roots of 1/2 and 2, ``log(1 + f) = 2 artanh(s)`` with ``s =
        f / (2 + f)`` as in FreeBSD's e_log.c.
        """
        exponent = self.exponent(x)
        y = self.real("fmul", x, self.power(exponent, is_negative=True))
        is_great = self.compare("fcmp ogt", y, self.number(2.0**0.5))
        y = self.real("fmul", y, self.choose(is_great, self.number(0.5), self.number(1.0)))
        power = self.whole("add", power, exponent)
        one = self.choose_integer(is_great, self.integer(1), self.integer(0))
        power = self.whole("add", power, one)
        k = self.let(f"sitofp {self.integers} {power} to {self.vector}")
        f = self.real("fsub", y, self.number(1.0))
        s = self.real("fdiv", f, self.real("fadd", f, self.number(2.0)))
        z = self.real("fmul", s, s)
        series = self.number(_SERIES[-1])
        for coefficient in reversed(_SERIES[:-1]):
            series = self.fused(series, z, self.number(coefficient))
        series = self.real("fmul", series, z)
        square = self.real("fmul", self.real("fmul", f, f), self.number(0.5))
        low = self.real("fmul", k, self.number(_LN2[1]))
        inner = self.fused(s, self.real("fadd", square, series), low)
        inner = self.real("fsub", self.real("fsub", square, inner), f)
        found = self.real("fsub", self.real("fmul", k, self.number(_LN2[0])), inner)
        found = self.choose(self.compare("fcmp olt", x, self.number(_INFINITY)), found, x)
        is_zero = self.compare("fcmp oeq", x, self.number(0.0))
        return self.choose(is_zero, self.number(_MINUS_INFINITY), found)


_LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
"""Its first 33 bits, whose products with exponents are exact, and the rest."""

_SERIES = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
"""Coefficients of ``log((1 + s) / (1 - s)) / s - 2`` by powers of ``s^2``, from the second on."""

_INFINITY = "0x7FF0000000000000"
_MINUS_INFINITY = "0xFFF0000000000000"
