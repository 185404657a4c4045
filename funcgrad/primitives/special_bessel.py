"""Bessel, Airy, Kelvin and Struve functions, DLMF 9 to 11, and those of Mathieu and of spheroids.

Derivatives in the argument are made of neighbouring orders (DLMF 10.6.1, 10.29.1) or follow from
the differential equation, so that they close under differentiation; there are none in the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Value
from funcgrad.dtypes import is_complex
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.expressions import Expression, Formula, apply, where
from funcgrad.primitives.families import undefined
from funcgrad.primitives.gamma_functions import rgamma, xlogy
from funcgrad.primitives.special import i0, j0, k0, y0
from funcgrad.primitives.special_rows import Improved, Special, SpecialParts, table

_SQRT_PI = math.sqrt(math.pi)


# Bessel functions of real order.
def _neighbours(family: Callable[[], Special], low: float, high: float) -> p.Derivative:
    """The derivative ``low * f(v - 1) + high * f(v + 1)``."""

    def slope(v: Value, z: Value, y: Value) -> Value:
        f = family()
        return low * f.bind(v - 1, z) + high * f.bind(v + 1, z)

    return slope


def _along_imaginary(z: Value, t: Value) -> tuple[Value, Value]:
    """For the factor ``exp(-|imag(z)|)``."""
    return p.imag.bind(t), p.imag.bind(z)


def _along_real(z: Value, t: Value) -> tuple[Value, Value]:
    """For the factor ``exp(-|real(z)|)``."""
    return p.real.bind(t), p.real.bind(z)


def _bessel(name: str, slope: p.Derivative, ufunc: str = "", **options: object) -> Special:
    """A Bessel function of an order ``v``."""
    options = {"kinds": "fc", "orders": 1, **options}
    return Special(name, "v z", None, slope, ufunc=ufunc, **options)  # type: ignore[arg-type]


jv: Special = _bessel("jv", _neighbours(lambda: jv, 0.5, -0.5))
jve: Special = _bessel("jve", _neighbours(lambda: jve, 0.5, -0.5), damping=_along_imaginary)
yv: Special = _bessel("yv", _neighbours(lambda: yv, 0.5, -0.5))
yve: Special = _bessel("yve", _neighbours(lambda: yve, 0.5, -0.5), damping=_along_imaginary)
iv: Special = _bessel("iv", _neighbours(lambda: iv, 0.5, 0.5))
kv: Special = _bessel("kv", _neighbours(lambda: kv, -0.5, -0.5))
hankel1: Special = _bessel("hankel1", _neighbours(lambda: hankel1, 0.5, -0.5), kinds="c")
hankel2: Special = _bessel("hankel2", _neighbours(lambda: hankel2, 0.5, -0.5), kinds="c")


def _ive_slope(v: Value, z: Value, y: Value) -> Value:
    mean = 0.5 * (ive.bind(v - 1, z) + ive.bind(v + 1, z))
    return mean if is_complex(aval_of(z).dtype) else mean - p.sign.bind(z) * y


def _turning(family: Callable[[], Special], turn: complex) -> p.Derivative:
    """The derivative of a Hankel function that is scaled by ``exp(turn * z)``."""

    def slope(v: Value, z: Value, y: Value) -> Value:
        f, factor = family(), aval_of(z).dtype.type(turn)
        return 0.5 * (f.bind(v - 1, z) - f.bind(v + 1, z)) + factor * y

    return slope


ive: Special = _bessel("ive", _ive_slope, damping=_along_real)
kve: Special = _bessel("kve", lambda v, z, y: y - 0.5 * (kve.bind(v - 1, z) + kve.bind(v + 1, z)))
hankel1e: Special = _bessel("hankel1e", _turning(lambda: hankel1e, -1j), kinds="c")
hankel2e: Special = _bessel("hankel2e", _turning(lambda: hankel2e, 1j), kinds="c")


def _of_integer(family: Callable[[], Special], low: float) -> p.Derivative:
    def slope(n: Value, x: Value, y: Value) -> Value:
        v, f = p.convert(n, aval_of(x).dtype), family()
        return low * f.bind(v - 1, x) - 0.5 * f.bind(v + 1, x)

    return slope


kn = Special("kn", "n x", None, _of_integer(lambda: kv, -0.5), integers=1)
yn = Special("yn", "n x", None, _of_integer(lambda: yv, 0.5), integers=1)


# Spherical Bessel functions, DLMF 10.47: ``f(n)' = n / x f(n) -+ f(n + 1)``, made of neighbours
# where both are finite.
def _spherical(kind: str, below: float, above: float, ending: str = "") -> Special:
    """A spherical function with ``(2n + 1) f(n)' = below n f(n - 1) + above (n + 1) f(n + 1)``.

    The relation is linear: it holds for the derivatives of the functions as well.
    """

    def slope(n: Value, z: Value, y: Value) -> Value:
        is_zero = p.equal.bind(n, p.zero_of(n))
        one = aval_of(n).dtype.type(1)
        low = row.bind(p.select.bind(is_zero, n, n - one), z)
        high = row.bind(n + one, z)
        order = p.convert(n, aval_of(z).dtype)
        low_part = p.select.bind(is_zero, p.zero_of(low), below * order * low)
        return (low_part + above * (order + 1) * high) / (2 * order + 1)

    row: Special = Special(
        f"_spherical_{kind}n{ending}", "n z", None, slope, whole=1, is_single=True, kinds="fc"
    )
    return row


SPHERICAL = tuple(
    _spherical(kind, below, above, ending)
    for kind, below, above in (
        ("j", 1.0, -1.0),
        ("y", 1.0, -1.0),
        ("i", 1.0, 1.0),
        ("k", -1.0, -1.0),
    )
    for ending in ("", "_d")
)

Row = Callable[[], Sequence[Value]]


# Airy functions, DLMF 9, and their integrals.
airy = SpecialParts(
    "airy",
    "z",
    "ai aip bi bip",
    lambda z, y: [lambda: (y[1], z * y[0], y[3], z * y[2])],
    kinds="fc",
)


def _airye_slopes(z: Value, y: Sequence[Value]) -> Sequence[Row | None]:
    if is_complex(aval_of(z).dtype):
        undefined("airye of a complex argument", "z")()
    root = p.sqrt.bind(p.select.bind(p.greater_equal.bind(z, p.zero_of(z)), z, p.zero_of(z)))
    return [
        lambda: (y[1] + root * y[0], z * y[0] + root * y[1],
                 y[3] - root * y[2], z * y[2] - root * y[3])
    ]  # fmt: skip


airye = SpecialParts("airye", "z", "eai eaip ebi ebip", _airye_slopes, kinds="fc")
itairy = SpecialParts(
    "itairy", "x", "apt bpt ant bnt",
    lambda x, y: [
        lambda: (*(airy.bind(x)[i] for i in (0, 2)), *(airy.bind(-x)[i] for i in (0, 2)))
    ],
)  # fmt: skip

# Integrals of Bessel and Struve functions.
itj0y0 = SpecialParts("itj0y0", "x", "ij0 iy0", lambda x, y: [lambda: (j0.bind(x), y0.bind(x))])
iti0k0 = SpecialParts("iti0k0", "x", "ii0 ik0", lambda x, y: [lambda: (i0.bind(x), k0.bind(x))])
it2j0y0 = SpecialParts(
    "it2j0y0", "x", "ij0 iy0", lambda x, y: [lambda: ((1 - j0.bind(x)) / x, -y0.bind(x) / x)]
)
it2i0k0 = SpecialParts(
    "it2i0k0", "x", "ii0 ik0", lambda x, y: [lambda: ((i0.bind(x) - 1) / x, -k0.bind(x) / x)]
)
besselpoly: Special = Special(
    "besselpoly",
    "a lmb nu",
    lambda a, m, v, y: besselpoly.bind(a, m + 1, v - 1) - besselpoly.bind(a, m + 1, v + 1),
    None,
    None,
)


def _inhomogeneity(v: Value, x: Value) -> Value:
    """``(x / 2)**v / (sqrt(pi) gamma(v + 3/2))``."""
    return p.exp.bind(xlogy.bind(v, x / 2)) * rgamma.bind(v + 1.5) / _SQRT_PI


def _struve(name: str, above: float) -> Special:
    """A Struve function (DLMF 11.4.27, 11.4.31).

    For order 0 the order below is left out, whose own derivatives are infinite at 0.
    """

    def slope(v: Value, x: Value, y: Value) -> Value:
        is_zero = p.equal.bind(v, p.zero_of(v))
        below = row.bind(p.select.bind(is_zero, p.ones_like(v), v) - 1, x)
        high = row.bind(v + 1, x)
        mean = 0.5 * (below + above * high + _inhomogeneity(v, x))
        return p.select.bind(is_zero, above * high + 2 / math.pi, mean)

    row: Special = Special(name, "v x", None, slope)
    return row


struve = _struve("struve", -1.0)
modstruve = _struve("modstruve", 1.0)
itstruve0 = Special("itstruve0", "x", lambda x, y: struve.bind(p.zero_of(x) * p.ones_like(x), x))
it2struve0 = Special(
    "it2struve0", "x", lambda x, y: -struve.bind(p.zero_of(x) * p.ones_like(x), x) / x
)
itmodstruve0 = Special(
    "itmodstruve0", "x", lambda x, y: modstruve.bind(p.zero_of(x) * p.ones_like(x), x)
)


# Kelvin functions, DLMF 10.61: real and imaginary parts of Bessel functions on a diagonal. The
# second derivatives follow from x**2 w'' + x w' = 1j x**2 w.
def _over(slope: Value, x: Value, limit: float) -> Value:
    """``slope / x``, and its limit at 0."""
    is_zero = p.equal.bind(x, p.zero_of(x))
    apart = p.select.bind(is_zero, p.ones_like(x), x)
    return p.select.bind(is_zero, limit * p.ones_like(x), slope / apart)


_DIAGONAL = complex(math.sqrt(0.5), math.sqrt(0.5))


def _kelvin(order: int, part: p.LinearUnary) -> Formula:
    """``ker + 1j kei = K0(z)`` for ``z = x exp(1j pi / 4)`` (DLMF 10.61.2), and the derivatives.

    SciPy's own series cancel from 1 on: they lose as many digits as ``exp(sqrt(2) x)`` has.
    """

    def formula(scipys: Formula, x: Expression) -> Expression:
        z = apply(p.Convert(np.dtype(np.complex128)), x) * _DIAGONAL
        k = apply(kv, np.float64(order), z)
        k = k * -_DIAGONAL if order else k
        # Beyond the last number there is nothing, and `kv` gives nan beyond 2**31.
        return where(x < 1500.0, where(x > 1.0, apply(part, k), scipys(x)), x * 0.0)

    return formula


ber: Special = Special("ber", "x", lambda x, y: berp.bind(x))
bei: Special = Special("bei", "x", lambda x, y: beip.bind(x))
ker: Special = Improved("ker", "x", _kelvin(0, p.real), lambda x, y: kerp.bind(x))
kei: Special = Improved("kei", "x", _kelvin(0, p.imag), lambda x, y: keip.bind(x))
berp: Special = Special("berp", "x", lambda x, y: -bei.bind(x) - _over(y, x, 0.0))
beip: Special = Special("beip", "x", lambda x, y: ber.bind(x) - _over(y, x, 0.5))
kerp: Special = Improved("kerp", "x", _kelvin(1, p.real), lambda x, y: -kei.bind(x) - y / x)
keip: Special = Improved("keip", "x", _kelvin(1, p.imag), lambda x, y: ker.bind(x) - y / x)

# Parabolic cylinder functions, DLMF 12.
pbdv = SpecialParts(
    "pbdv",
    "v x",
    "d dp",
    lambda v, x, y: [None, lambda: (y[1], (x * x / 4 - v - 0.5) * y[0])],
    is_double=True,
)
pbvv = SpecialParts(
    "pbvv",
    "v x",
    "v vp",
    lambda v, x, y: [None, lambda: (y[1], (x * x / 4 - v - 0.5) * y[0])],
    is_double=True,
)
pbwa = SpecialParts(
    "pbwa",
    "a x",
    "w wp",
    lambda a, x, y: [None, lambda: (y[1], (a - x * x / 4) * y[0])],
    is_double=True,
)

# Mathieu functions, DLMF 28: ``y'' = (2q cos(2x) - a) y``, angles in degrees; the modified ones
# ``y'' = (a - 2q cosh(2x)) y``.
_DEGREE = math.pi / 180
mathieu_a = Special("mathieu_a", "m q", None, None, is_double=True)
mathieu_b = Special("mathieu_b", "m q", None, None, is_double=True)


def _mathieu(name: str, characteristic: Special, is_modified: bool) -> SpecialParts:
    def slopes(m: Value, q: Value, x: Value, y: Sequence[Value]) -> Sequence[Row | None]:
        def row() -> Sequence[Value]:
            a = characteristic.bind(m, q)
            if is_modified:
                return y[1], (a - 2 * q * p.cosh.bind(2 * x)) * y[0]
            second = (2 * q * p.cos.bind(2 * _DEGREE * x) - a) * y[0]
            return _DEGREE * y[1], _DEGREE * second

        return [None, None, row]

    return SpecialParts(name, "m q x", "y yp", slopes, is_double=True)


mathieu_cem = _mathieu("mathieu_cem", mathieu_a, False)
mathieu_sem = _mathieu("mathieu_sem", mathieu_b, False)
mathieu_modcem1 = _mathieu("mathieu_modcem1", mathieu_a, True)
mathieu_modcem2 = _mathieu("mathieu_modcem2", mathieu_a, True)
mathieu_modsem1 = _mathieu("mathieu_modsem1", mathieu_b, True)
mathieu_modsem2 = _mathieu("mathieu_modsem2", mathieu_b, True)

# Spheroidal wave functions, DLMF 30: with the characteristic value ``w``,
# ``((1 - x**2) s')' + (w - c**2 x**2 - m**2 / (1 - x**2)) s = 0`` for prolate ones; oblate ones
# have ``-c**2``, and radial oblate ones imaginary ``x`` as well.
pro_cv = Special("pro_cv", "m n c", None, None, None, is_double=True)
obl_cv = Special("obl_cv", "m n c", None, None, None, is_double=True)


def _spheroidal(name: str, is_prolate: bool, is_radial: bool) -> SpecialParts:
    is_given = name.endswith("_cv")

    def slopes(*args: Value) -> Sequence[Row | None]:
        m, n, c = args[:3]
        x, y = args[-2:]

        def row() -> Sequence[Value]:
            value = pro_cv if is_prolate else obl_cv
            w = args[3] if is_given else value.bind(m, n, c)
            if is_prolate or not is_radial:
                h = 1 - x * x
                square = c * c * x * x if is_prolate else -c * c * x * x
                return y[1], (2 * x * y[1] - (w - square - m * m / h) * y[0]) / h
            h = 1 + x * x
            return y[1], ((w - c * c * x * x - m * m / h) * y[0] - 2 * x * y[1]) / h

        return [*[None] * (len(args) - 2), row]

    arguments = "m n c cv x" if is_given else "m n c x"
    # In single precision SciPy's search for coefficients need not end.
    return SpecialParts(name, arguments, "s sp", slopes, is_double=True)


SPHEROIDAL = tuple(
    _spheroidal(f"{shape}_{part}{ending}", shape == "pro", part != "ang1")
    for shape in ("pro", "obl")
    for part in ("ang1", "rad1", "rad2")
    for ending in ("", "_cv")
)

TABLE = table(
        jv, jve, yv, yve, iv, ive, kv, kve, hankel1, hankel1e, hankel2, hankel2e, kn, yn,
        *SPHERICAL, airy, airye, itairy, itj0y0, iti0k0,
        it2j0y0, it2i0k0, besselpoly, struve, modstruve, itstruve0, it2struve0, itmodstruve0, ber,
        bei, ker, kei, berp, beip, kerp, keip, pbdv, pbvv, pbwa, mathieu_a, mathieu_b, mathieu_cem,
        mathieu_sem, mathieu_modcem1, mathieu_modcem2, mathieu_modsem1, mathieu_modsem2, pro_cv,
        obl_cv, *SPHEROIDAL,
)  # fmt: skip
"""Primitives by the names of SciPy's ufuncs."""
