"""Distribution functions of `scipy.special`, and their inverses.

The derivative in the variable is the density; that of an inverse is its reciprocal. Derivatives in
parameters are given where a formula is known: shapes of gamma and beta distributions, degrees of
freedom, scales, noncentralities. Counts have none.
"""

from __future__ import annotations

import math

from funcgrad.core.primitive import Value
from funcgrad.primitives.elementwise import (
    Derivative,
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


# The beta distribution. Inverses follow from ``F(a, b, x) = p``.
def _over_density(slope: Derivative) -> Derivative:
    """The derivative of the inverse in ``x``, of that of the function in a parameter."""
    return lambda a, b, p, x: -slope(a, b, x) / beta_density(a, b, x)


betaincc = Special(
    "betaincc",
    "a b x",
    lambda a, b, x, y: -betainc_da.bind(a, b, x),
    lambda a, b, x, y: -betainc_db.bind(a, b, x),
    lambda a, b, x, y: -beta_density(a, b, x),
)
betaincinv = Special(
    "betaincinv",
    "a b y",
    _over_density(betainc_da.bind),
    _over_density(betainc_db.bind),
    lambda a, b, y, x: 1 / beta_density(a, b, x),
)
betainccinv = Special(
    "betainccinv",
    "a b y",
    _over_density(betainc_da.bind),
    _over_density(betainc_db.bind),
    lambda a, b, y, x: -1 / beta_density(a, b, x),
)
btdtria = Special(
    "btdtria",
    "p b x",
    lambda p, b, x, a: 1 / betainc_da.bind(a, b, x),
    lambda p, b, x, a: -betainc_db.bind(a, b, x) / betainc_da.bind(a, b, x),
    lambda p, b, x, a: -beta_density(a, b, x) / betainc_da.bind(a, b, x),
)
btdtrib = Special(
    "btdtrib",
    "a p x",
    lambda a, p, x, b: -betainc_da.bind(a, b, x) / betainc_db.bind(a, b, x),
    lambda a, p, x, b: 1 / betainc_db.bind(a, b, x),
    lambda a, p, x, b: -beta_density(a, b, x) / betainc_db.bind(a, b, x),
)


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


stdtr = Special("stdtr", "df t", lambda df, t, y: _t_ddf(df, t), lambda df, t, y: _t_density(df, t))
stdtrit = Special(
    "stdtrit",
    "df p",
    lambda df, p, t: -_t_ddf(df, t) / _t_density(df, t),
    lambda df, p, t: 1 / _t_density(df, t),
)
stdtridf = Special(
    "stdtridf",
    "p t",
    lambda p, t, df: 1 / _t_ddf(df, t),
    lambda p, t, df: -_t_density(df, t) / _t_ddf(df, t),
)


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


chdtr = Special("chdtr", "v x", lambda v, x, y: _chi_dv(v, x), lambda v, x, y: _chi_density(v, x))
chdtrc = Special(
    "chdtrc", "v x", lambda v, x, y: -_chi_dv(v, x), lambda v, x, y: -_chi_density(v, x)
)
chdtri = Special(
    "chdtri",
    "v p",
    lambda v, p, x: -_chi_dv(v, x) / _chi_density(v, x),
    lambda v, p, x: -1 / _chi_density(v, x),
)
chdtriv = Special(
    "chdtriv",
    "p x",
    lambda p, x, v: 1 / _chi_dv(v, x),
    lambda p, x, v: -_chi_density(v, x) / _chi_dv(v, x),
)
gdtr = Special(
    "gdtr",
    "a b x",
    lambda a, b, x, y: x * gamma_density(b, a * x),
    lambda a, b, x, y: gammainc_da.bind(b, a * x),
    lambda a, b, x, y: a * gamma_density(b, a * x),
)
gdtrc = Special(
    "gdtrc",
    "a b x",
    lambda a, b, x, y: -x * gamma_density(b, a * x),
    lambda a, b, x, y: -gammainc_da.bind(b, a * x),
    lambda a, b, x, y: -a * gamma_density(b, a * x),
)
gdtria = Special(
    "gdtria",
    "p b x",
    lambda p, b, x, a: 1 / (x * gamma_density(b, a * x)),
    lambda p, b, x, a: -gammainc_da.bind(b, a * x) / (x * gamma_density(b, a * x)),
    lambda p, b, x, a: -a / x,
)
gdtrib = Special(
    "gdtrib",
    "a p x",
    lambda a, p, x, b: -x * gamma_density(b, a * x) / gammainc_da.bind(b, a * x),
    lambda a, p, x, b: 1 / gammainc_da.bind(b, a * x),
    lambda a, p, x, b: -a * gamma_density(b, a * x) / gammainc_da.bind(b, a * x),
)
gdtrix = Special(
    "gdtrix",
    "a b p",
    lambda a, b, p, x: -x / a,
    lambda a, b, p, x: -gammainc_da.bind(b, a * x) / (a * gamma_density(b, a * x)),
    lambda a, b, p, x: 1 / (a * gamma_density(b, a * x)),
)


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
chndtr = Special(
    "chndtr",
    "x df nc",
    lambda x, df, nc, y: ncx2_pdf.bind(x, df, nc),
    None,
    lambda x, df, nc, y: -ncx2_pdf.bind(x, df + 2, nc),
)
chndtrix = Special(
    "chndtrix",
    "p df nc",
    lambda p, df, nc, x: 1 / ncx2_pdf.bind(x, df, nc),
    None,
    lambda p, df, nc, x: ncx2_pdf.bind(x, df + 2, nc) / ncx2_pdf.bind(x, df, nc),
)
chndtrinc = Special(
    "chndtrinc",
    "x df p",
    lambda x, df, p, nc: ncx2_pdf.bind(x, df, nc) / ncx2_pdf.bind(x, df + 2, nc),
    None,
    lambda x, df, p, nc: -1 / ncx2_pdf.bind(x, df + 2, nc),
)
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


fdtr = Special(
    "fdtr",
    "dfn dfd x",
    lambda n, d, x, y: _f_dn(n, d, x),
    lambda n, d, x, y: _f_dd(n, d, x),
    lambda n, d, x, y: _f_density(n, d, x),
)
fdtrc = Special(
    "fdtrc",
    "dfn dfd x",
    lambda n, d, x, y: -_f_dn(n, d, x),
    lambda n, d, x, y: -_f_dd(n, d, x),
    lambda n, d, x, y: -_f_density(n, d, x),
)
fdtri = Special(
    "fdtri",
    "dfn dfd p",
    lambda n, d, p, x: -_f_dn(n, d, x) / _f_density(n, d, x),
    lambda n, d, p, x: -_f_dd(n, d, x) / _f_density(n, d, x),
    lambda n, d, p, x: 1 / _f_density(n, d, x),
)
fdtridfd = Special(
    "fdtridfd",
    "dfn p x",
    lambda n, p, x, d: -_f_dn(n, d, x) / _f_dd(n, d, x),
    lambda n, p, x, d: 1 / _f_dd(n, d, x),
    lambda n, p, x, d: -_f_density(n, d, x) / _f_dd(n, d, x),
)
ncf_pdf = Special("ncf_pdf", "x dfn dfd nc", None, None, None, None, ufunc="_ncf_pdf")


def _ncf_dnc(n: Value, d: Value, nc: Value, f: Value) -> Value:
    """The derivative in the noncentrality, as for the chi-square distribution."""
    return 0.5 * (ncfdtr.bind(n + 2, d, nc, f * n / (n + 2)) - ncfdtr.bind(n, d, nc, f))


ncfdtr: Special = Special(
    "ncfdtr",
    "dfn dfd nc f",
    None,
    None,
    lambda n, d, nc, f, y: _ncf_dnc(n, d, nc, f),
    lambda n, d, nc, f, y: ncf_pdf.bind(f, n, d, nc),
)
ncfdtri = Special(
    "ncfdtri",
    "dfn dfd nc p",
    None,
    None,
    lambda n, d, nc, p, f: -_ncf_dnc(n, d, nc, f) / ncf_pdf.bind(f, n, d, nc),
    lambda n, d, nc, p, f: 1 / ncf_pdf.bind(f, n, d, nc),
)
ncfdtridfd = Special("ncfdtridfd", "dfn p nc f", None, None, None, None, is_double=True)
ncfdtridfn = Special("ncfdtridfn", "p dfd nc f", None, None, None, None, is_double=True)
ncfdtrinc = Special(
    "ncfdtrinc",
    "dfn dfd p f",
    None,
    None,
    lambda n, d, p, f, nc: 1 / _ncf_dnc(n, d, nc, f),
    lambda n, d, p, f, nc: -ncf_pdf.bind(f, n, d, nc) / _ncf_dnc(n, d, nc, f),
    is_double=True,
)


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
bdtrik = Special(
    "bdtrik",
    "y n p",
    lambda y, n, p, k: 1 / _binomial_dk(k, n, p),
    lambda y, n, p, k: -_binomial_dn(k, n, p) / _binomial_dk(k, n, p),
    lambda y, n, p, k: beta_density(n - k, k + 1, 1 - p) / _binomial_dk(k, n, p),
)
bdtrin = Special(
    "bdtrin",
    "k y p",
    lambda k, y, p, n: -_binomial_dk(k, n, p) / _binomial_dn(k, n, p),
    lambda k, y, p, n: 1 / _binomial_dn(k, n, p),
    lambda k, y, p, n: beta_density(n - k, k + 1, 1 - p) / _binomial_dn(k, n, p),
)
nbdtr = Special(
    "nbdtr", "k n p", None, None, lambda k, n, p, y: _negative_binomial_density(k, n, p)
)
nbdtrc = Special(
    "nbdtrc", "k n p", None, None, lambda k, n, p, y: -_negative_binomial_density(k, n, p)
)
nbdtri = Special(
    "nbdtri", "k n y", None, None, lambda k, n, y, p: 1 / _negative_binomial_density(k, n, p)
)
nbdtrik = Special(
    "nbdtrik",
    "y n p",
    lambda y, n, p, k: 1 / betainc_db.bind(n, k + 1, p),
    lambda y, n, p, k: -betainc_da.bind(n, k + 1, p) / betainc_db.bind(n, k + 1, p),
    lambda y, n, p, k: -beta_density(n, k + 1, p) / betainc_db.bind(n, k + 1, p),
)
nbdtrin = Special(
    "nbdtrin",
    "k y p",
    lambda k, y, p, n: -betainc_db.bind(n, k + 1, p) / betainc_da.bind(n, k + 1, p),
    lambda k, y, p, n: 1 / betainc_da.bind(n, k + 1, p),
    lambda k, y, p, n: -beta_density(n, k + 1, p) / betainc_da.bind(n, k + 1, p),
)


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
