"""Distribution functions of `scipy.special`, and their inverses.

The derivative in the variable is the density; that of an inverse is its reciprocal. Derivatives in
parameters are given where a formula is known: shapes of gamma and beta distributions, degrees of
freedom, scales, noncentralities. Counts have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from funcgrad.core.primitive import Value
from funcgrad.primitives.elementwise import (
    bitwise_and,
    equal,
    exp,
    floor,
    isinf,
    less,
    log,
    log1p,
    ones_like,
    select,
    sign,
    sqrt,
    zero_of,
)
from funcgrad.primitives.gamma_functions import betaln, lgamma, xlog1py, xlogy
from funcgrad.primitives.incomplete import (
    beta_density,
    betainc_da,
    betainc_db,
    gamma_density,
    gammainc_da,
)
from funcgrad.primitives.special import erf
from funcgrad.primitives.special_rows import Counted, Special, table

_SQRT_2PI = math.sqrt(2 * math.pi)

Slope = Callable[..., Value]


def _of(*slopes: Slope | None, sign: int = 1) -> list[Slope | None]:
    """Derivatives of a function from those that need its arguments alone; -1 for its complement."""

    def derivative(slope: Slope | None) -> Slope | None:
        if slope is None:
            return None
        return (lambda *args: slope(*args[:-1])) if sign > 0 else (lambda *args: -slope(*args[:-1]))

    return [derivative(slope) for slope in slopes]


def _solved(place: int, *slopes: Slope | None, sign: int = 1) -> list[Slope | None]:
    """Derivatives of an inverse, by the implicit function theorem.

    Args:
        place: The argument for which ``F(...) = p`` is solved, and in whose place ``p`` stands.
        *slopes: Derivatives of ``F``, from its arguments.
        sign: -1 if ``p`` is the value of the complement of ``F``.
    """
    own = slopes[place]

    def derivative(other: Slope | None, is_own: bool) -> Slope | None:
        if own is None or other is None:
            return None

        def slope(*args: Value) -> Value:
            at = (*args[:place], args[-1], *args[place + 1 : -1])
            return sign / own(*at) if is_own else -other(*at) / own(*at)

        return slope

    return [derivative(other, i == place) for i, other in enumerate(slopes)]


# The beta distribution.
_BETA = betainc_da.bind, betainc_db.bind, beta_density
betaincc = Special("betaincc", "a b x", *_of(*_BETA, sign=-1))
betaincinv = Special("betaincinv", "a b y", *_solved(2, *_BETA))
betainccinv = Special("betainccinv", "a b y", *_solved(2, *_BETA, sign=-1))
btdtria = Special("btdtria", "p b x", *_solved(0, *_BETA))
btdtrib = Special("btdtrib", "a p x", *_solved(1, *_BETA))


# Student's t distribution, central and noncentral.
def _t_density(df: Value, t: Value) -> Value:
    """The density; with infinitely many degrees of freedom that of the normal distribution."""
    is_normal = isinf.bind(df)
    v = select.bind(is_normal, ones_like(df), df)
    kernel = xlog1py.bind(-(v + 1) / 2, t * t / v) - betaln.bind(0.5 * ones_like(v), v / 2)
    normal = exp.bind(-0.5 * t * t) / _SQRT_2PI
    return select.bind(is_normal, normal, exp.bind(kernel) / sqrt.bind(v))


def _t_ddf(df: Value, t: Value) -> Value:
    """The derivative of `stdtr` in ``df``: its tails are those of a beta distribution."""
    square = t * t
    a, b, x = df / 2, 0.5 * ones_like(df), df / (df + square)
    change = 0.5 * betainc_da.bind(a, b, x) + beta_density(a, b, x) * square / (df + square) ** 2
    # In the middle, where the density is infinite, nothing changes.
    is_middle = equal.bind(t, zero_of(t))
    return select.bind(is_middle, zero_of(change), -0.5 * sign.bind(t) * change)


stdtr = Special("stdtr", "df t", *_of(_t_ddf, _t_density))
stdtrit = Special("stdtrit", "df p", *_solved(1, _t_ddf, _t_density))
stdtridf = Special("stdtridf", "p t", *_solved(0, _t_ddf, _t_density))


def _nct_slope(x: Value, df: Value, nc: Value, y: Value) -> Value:
    """By ``x f(x, df) / df = F(c x, df + 2) - F(x, df)`` with ``c**2 = 1 + 2 / df``."""
    c = sqrt.bind(1 + 2 / df)
    is_middle = equal.bind(x, zero_of(x))
    apart = select.bind(is_middle, ones_like(x), x)
    slope = (df * (c * nct_pdf.bind(c * apart, df + 2, nc) - y) - y) / apart
    return select.bind(is_middle, nc * exp.bind(-0.5 * nc * nc) / _SQRT_2PI, slope)


nct_pdf: Special = Special("nct_pdf", "x df nc", _nct_slope, None, None, ufunc="_nct_pdf")
nctdtr = Special("nctdtr", "df nc t", None, None, lambda df, nc, t, y: nct_pdf.bind(t, df, nc))
nctdtrit = Special(
    "nctdtrit", "df nc p", None, None, lambda df, nc, p, t: 1 / nct_pdf.bind(t, df, nc)
)
nctdtridf = Special("nctdtridf", "p nc t", None, None, None)
nctdtrinc = Special("nctdtrinc", "df p t", None, None, None)


# Gamma, chi-square and Poisson distributions: the incomplete gamma functions of DLMF 8.
def _chi_density(v: Value, x: Value) -> Value:
    return 0.5 * gamma_density(v / 2, x / 2)


def _chi_dv(v: Value, x: Value) -> Value:
    return 0.5 * gammainc_da.bind(v / 2, x / 2)


chdtr = Special("chdtr", "v x", *_of(_chi_dv, _chi_density))
chdtrc = Special("chdtrc", "v x", *_of(_chi_dv, _chi_density, sign=-1))
chdtri = Special("chdtri", "v p", *_solved(1, _chi_dv, _chi_density, sign=-1))
chdtriv = Special("chdtriv", "p x", *_solved(0, _chi_dv, _chi_density))
_GAMMA: tuple[Slope, ...] = (
    lambda a, b, x: x * gamma_density(b, a * x),
    lambda a, b, x: gammainc_da.bind(b, a * x),
    lambda a, b, x: a * gamma_density(b, a * x),
)
gdtr = Special("gdtr", "a b x", *_of(*_GAMMA))
gdtrc = Special("gdtrc", "a b x", *_of(*_GAMMA, sign=-1))
# Only the product of ``a`` and ``x`` counts, also where the density vanishes.
gdtria = Special("gdtria", "p b x", *_solved(0, *_GAMMA)[:2], lambda p, b, x, a: -a / x)
gdtrib = Special("gdtrib", "a p x", *_solved(1, *_GAMMA))
gdtrix = Special("gdtrix", "a b p", lambda a, b, p, x: -x / a, *_solved(2, *_GAMMA)[1:])


def _poisson_mass(k: Value, m: Value) -> Value:
    k = floor.bind(k)
    return exp.bind(xlogy.bind(k, m) - m - lgamma.bind(k + 1))


pdtr = Special("pdtr", "k m", None, lambda k, m, y: -_poisson_mass(k, m))
pdtrc = Special("pdtrc", "k m", None, lambda k, m, y: _poisson_mass(k, m))
pdtri = Special("pdtri", "k y", None, lambda k, y, m: -1 / _poisson_mass(k, m))
pdtrik = Special(
    "pdtrik",
    "p m",
    lambda p, m, k: -1 / gammainc_da.bind(k + 1, m),
    lambda p, m, k: -gamma_density(k + 1, m) / gammainc_da.bind(k + 1, m),
)

# The noncentral chi-square distribution: in the noncentrality its functions are differences of
# those with two degrees of freedom more, which are densities.
ncx2_pdf: Special = Special(
    "ncx2_pdf",
    "x df nc",
    lambda x, df, nc, y: y * ((df / 2 - 1) / x - 0.5) + nc / (2 * x) * ncx2_pdf.bind(x, df + 2, nc),
    None,
    lambda x, df, nc, y: 0.5 * (ncx2_pdf.bind(x, df + 2, nc) - y),
    ufunc="_ncx2_pdf",
)
_NCX2: tuple[Slope | None, ...] = (
    ncx2_pdf.bind,
    None,
    lambda x, df, nc: -ncx2_pdf.bind(x, df + 2, nc),
)
chndtr = Special("chndtr", "x df nc", *_of(*_NCX2))
chndtrix = Special("chndtrix", "p df nc", *_solved(0, *_NCX2))
chndtrinc = Special("chndtrinc", "x df p", *_solved(2, *_NCX2))
chndtridf = Special("chndtridf", "x p nc", None, None, None)


# Fisher's F distribution, central and noncentral.
def _f_density(dfn: Value, dfd: Value, x: Value) -> Value:
    a, b, u = dfn / 2, dfd / 2, dfn * x / dfd
    kernel = xlogy.bind(a - 1, u) - (a + b) * log1p.bind(u) - betaln.bind(a, b)
    return dfn / dfd * exp.bind(kernel)


def _f_dn(n: Value, d: Value, x: Value) -> Value:
    """The derivative of `fdtr` in ``dfn``."""
    total = d + n * x
    w = n * x / total
    moved = beta_density(n / 2, d / 2, w) * x * d / (total * total)
    return 0.5 * betainc_da.bind(n / 2, d / 2, w) + moved


def _f_dd(n: Value, d: Value, x: Value) -> Value:
    """The derivative of `fdtr` in ``dfd``."""
    total = d + n * x
    w = n * x / total
    moved = beta_density(n / 2, d / 2, w) * n * x / (total * total)
    return 0.5 * betainc_db.bind(n / 2, d / 2, w) - moved


_F = _f_dn, _f_dd, _f_density
fdtr = Special("fdtr", "dfn dfd x", *_of(*_F))
fdtrc = Special("fdtrc", "dfn dfd x", *_of(*_F, sign=-1))
fdtri = Special("fdtri", "dfn dfd p", *_solved(2, *_F))
fdtridfd = Special("fdtridfd", "dfn p x", *_solved(1, *_F))
ncf_pdf = Special("ncf_pdf", "x dfn dfd nc", None, None, None, None, ufunc="_ncf_pdf")


def _ncf_dnc(n: Value, d: Value, nc: Value, f: Value) -> Value:
    """The derivative in the noncentrality, as for the chi-square distribution."""
    return 0.5 * (ncfdtr.bind(n + 2, d, nc, f * n / (n + 2)) - ncfdtr.bind(n, d, nc, f))


_NCF: tuple[Slope | None, ...] = (
    None,
    None,
    _ncf_dnc,
    lambda n, d, nc, f: ncf_pdf.bind(f, n, d, nc),
)
ncfdtr: Special = Special("ncfdtr", "dfn dfd nc f", *_of(*_NCF))
ncfdtri = Special("ncfdtri", "dfn dfd nc p", *_solved(3, *_NCF))
ncfdtridfd = Special("ncfdtridfd", "dfn p nc f", None, None, None, None, is_double=True)
ncfdtridfn = Special("ncfdtridfn", "p dfd nc f", None, None, None, None, is_double=True)
ncfdtrinc = Special("ncfdtrinc", "dfn dfd p f", *_solved(2, *_NCF), is_double=True)


# Binomial and negative binomial distributions.
def _binomial_density(k: Value, n: Value, p: Value) -> Value:
    k = floor.bind(k)
    kernel = xlogy.bind(k, p) + xlog1py.bind(n - k - 1, -p) - betaln.bind(k + 1, n - k)
    is_inside = bitwise_and.bind(less.bind(-ones_like(k), k), less.bind(k, n))
    return select.bind(is_inside, exp.bind(kernel), zero_of(kernel))


def _binomial_dk(k: Value, n: Value, p: Value) -> Value:
    """The derivative in ``k`` of ``betainc(n - k, k + 1, 1 - p)``, which is `bdtr` at integers."""
    return betainc_db.bind(n - k, k + 1, 1 - p) - betainc_da.bind(n - k, k + 1, 1 - p)


def _binomial_dn(k: Value, n: Value, p: Value) -> Value:
    return betainc_da.bind(n - k, k + 1, 1 - p)


def _negative_binomial_density(k: Value, n: Value, p: Value) -> Value:
    k = floor.bind(k)
    return exp.bind(xlogy.bind(n - 1, p) + xlog1py.bind(k, -p) - betaln.bind(n, k + 1))


bdtr = Counted("bdtr", "k n p", None, None, lambda k, n, p, y: -_binomial_density(k, n, p))
bdtrc = Counted("bdtrc", "k n p", None, None, lambda k, n, p, y: _binomial_density(k, n, p))
bdtri = Counted("bdtri", "k n y", None, None, lambda k, n, y, p: -1 / _binomial_density(k, n, p))
_BINOMIAL: tuple[Slope, ...] = (
    _binomial_dk,
    _binomial_dn,
    lambda k, n, p: -beta_density(n - k, k + 1, 1 - p),
)
bdtrik = Special("bdtrik", "y n p", *_solved(0, *_BINOMIAL))
bdtrin = Special("bdtrin", "k y p", *_solved(1, *_BINOMIAL))
nbdtr = Special(
    "nbdtr", "k n p", None, None, lambda k, n, p, y: _negative_binomial_density(k, n, p)
)
nbdtrc = Special(
    "nbdtrc", "k n p", None, None, lambda k, n, p, y: -_negative_binomial_density(k, n, p)
)
nbdtri = Special(
    "nbdtri", "k n y", None, None, lambda k, n, y, p: 1 / _negative_binomial_density(k, n, p)
)
_NEGATIVE_BINOMIAL: tuple[Slope, ...] = (
    lambda k, n, p: betainc_db.bind(n, k + 1, p),
    lambda k, n, p: betainc_da.bind(n, k + 1, p),
    lambda k, n, p: beta_density(n, k + 1, p),
)
nbdtrik = Special("nbdtrik", "y n p", *_solved(0, *_NEGATIVE_BINOMIAL))
nbdtrin = Special("nbdtrin", "k y p", *_solved(1, *_NEGATIVE_BINOMIAL))


# The normal distribution.
def _quantile_slope(z: Value) -> Value:
    """The derivative of `ndtri` where its value is ``z``."""
    return _SQRT_2PI * exp.bind(0.5 * z * z)


ndtri_exp = Special("ndtri_exp", "y", lambda y, x: _SQRT_2PI * exp.bind(0.5 * x * x + y))
nrdtrimn = Special(
    "nrdtrimn",
    "p std x",
    lambda p, std, x, mn: -std * _quantile_slope((x - mn) / std),
    lambda p, std, x, mn: (mn - x) / std,
    lambda p, std, x, mn: ones_like(x),
)
nrdtrisd = Special(
    "nrdtrisd",
    "mn p x",
    lambda mn, p, x, sd: sd / (mn - x),
    lambda mn, p, x, sd: sd * sd / (mn - x) * _quantile_slope((x - mn) / sd),
    lambda mn, p, x, sd: sd / (x - mn),
)
owens_t = Special(
    "owens_t",
    "h a",
    lambda h, a, y: (-0.5 / _SQRT_2PI) * exp.bind(-0.5 * h * h) * erf.bind(math.sqrt(0.5) * a * h),
    lambda h, a, y: exp.bind(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a)),
)


# Kolmogorov's and Smirnov's distributions, Tukey's lambda distribution.
kolmogorov_slope = Special("kolmogorov_slope", "x", None, ufunc="_kolmogp")
smirnov_slope = Special("smirnov_slope", "n d", None, None, integers=1, ufunc="_smirnovp")
kolmogorov = Special("kolmogorov", "y", lambda x, y: kolmogorov_slope.bind(x))
kolmogi = Special("kolmogi", "p", lambda p, x: 1 / kolmogorov_slope.bind(x))
smirnov = Special("smirnov", "n d", None, lambda n, d, y: smirnov_slope.bind(n, d), integers=1)
smirnovi = Special(
    "smirnovi", "n p", None, lambda n, p, d: 1 / smirnov_slope.bind(n, d), integers=1
)


def _tukey_density(x: Value, lam: Value, y: Value) -> Value:
    low, high = log.bind(y), log1p.bind(-y)
    density = 1 / (exp.bind((lam - 1) * low) + exp.bind((lam - 1) * high))
    is_inside = bitwise_and.bind(less.bind(zero_of(y), y), less.bind(y, ones_like(y)))
    return select.bind(is_inside, density, zero_of(y))


tklmbda = Special("tklmbda", "x lmbda", _tukey_density, None)

TABLE = table(
    betaincc, betaincinv, betainccinv, btdtria, btdtrib, stdtr, stdtrit, stdtridf, nctdtr, nctdtrit,
    nctdtridf, nctdtrinc, chdtr, chdtrc, chdtri, chdtriv, gdtr, gdtrc, gdtria, gdtrib, gdtrix, pdtr,
    pdtrc, pdtri, pdtrik, chndtr, chndtrix, chndtrinc, chndtridf, fdtr, fdtrc, fdtri, fdtridfd,
    ncfdtr, ncfdtri, ncfdtridfd, ncfdtridfn, ncfdtrinc, bdtr, bdtrc, bdtri, bdtrik, bdtrin, nbdtr,
    nbdtrc, nbdtri, nbdtrik, nbdtrin, ndtri_exp, nrdtrimn, nrdtrisd, owens_t, kolmogorov, kolmogi,
    smirnov, smirnovi, tklmbda,
)  # fmt: skip
"""Primitives by the names of SciPy's ufuncs."""
