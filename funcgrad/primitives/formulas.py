"""Special functions of compiled programs as formulas of polynomials, which vectorise.

Eager values are SciPy's. SciPy's loops take one number at a time, with branches; compiled programs
use these formulas instead, in double precision. Their relative errors are a few units in the last
place of double precision. The polynomials interpolate 40-digit values at Chebyshev's nodes, to
1e-16.

Formulas that are valid everywhere, such as recurrences and reflections, are those of the Digital
Library of Mathematical Functions (dlmf.nist.gov), whose sections are named.
"""

from __future__ import annotations

import math
from functools import partial

from funcgrad.primitives import elementwise as p
from funcgrad.primitives.expressions import (
    Expression,
    Formula,
    absolute,
    apply,
    exp,
    function,
    log,
    log1p,
    maximum,
    minimum,
    power,
    rint,
    sqrt,
    unless_any,
    where,
)
from funcgrad.primitives.families import Elementwise, UfuncFunction
from funcgrad.primitives.polynomials import fused_horner, shortened

_INFINITY = math.inf
_sign_of = function(p.copysign)
_sin = function(p.sin)


def _polynomial(
    coefficients: tuple[float, ...], x: Expression, low: float = -1.0, high: float = 1.0
) -> Expression:
    """A polynomial of ``x`` between ``low`` and ``high``, as exact as the result needs it."""
    if x.digits == 64:
        return apply(fused_horner(coefficients), x)
    short = shortened(coefficients, low, high)
    # Even and odd powers are two chains of operations, of half the length.
    square, first = x * x, len(short) % 2
    even, odd = (apply(fused_horner(short[k::2]), square) for k in (1 - first, first))
    return odd * x + even


# By powers of ``x / 4 - 1`` on ``0 <= x <= 8``: ``exp(-x) I(x)`` with the factors ``1 + x / 4``,
# ``(1 + x) / x`` and ``((1 + x / 2) / x)**2`` for the orders 0, 1 and 2.
_BESSEL_NEAR = (
    (
        -7.522454300006545e-09, 2.603468695185011e-08, -3.235059516074327e-08,
        9.048597260549614e-08, -4.1010617987231097e-07, 1.1476197727301826e-06,
        -2.71911802985001e-06, 6.578939986883835e-06, -1.5170564865746102e-05,
        3.1493123965308747e-05, -5.804850217831251e-05, 9.044613533810118e-05,
        -9.927594089896944e-05, -6.6184906323058654e-06, 0.0004418595098096043,
        -0.0016247307813646355, 0.004237499622923842, -0.00918739542319652, 0.017369874827707688,
        -0.029194867169345173, 0.04401286839849173, -0.05980716530183987, 0.07358707089963393,
        -0.0825833456581072, 0.08564339099024036, -0.08357125418153692, 0.07602693019369713,
        -0.019006732548424495, 0.4140038424479734,
    ),
    (
        1.0227645682079967e-09, -3.897626820453402e-09, 6.725483411229565e-09,
        -2.2263295879573025e-08, 9.615590996838462e-08, -3.0889852978774194e-07,
        9.037419073080505e-07, -2.647359839113305e-06, 7.485201081158425e-06,
        -2.0081234560673015e-05, 5.1275794153504445e-05, -0.00012452188372240403,
        0.00028655239831055975, -0.000622600079444579, 0.0012721756624493002,
        -0.0024329356355615728, 0.004328674859971024, -0.007109459544471596, 0.010663009800373328,
        -0.01436542617341707, 0.016887521548021367, -0.016255337301799518, 0.01034151288531857,
        0.0022527061987638935, -0.021330581281624125, 0.044906593743710546, -0.07018263139108108,
        0.09579064742889314, -0.12687085064589615, 0.22343854937804417,
    ),
    (
        -2.1974279518815395e-09, 7.664090085680596e-09, -1.0419291350795162e-08,
        3.009147365704199e-08, -1.291439053992388e-07, 3.6774348814562914e-07,
        -9.123223051367605e-07, 2.2909735315497574e-06, -5.507590603780085e-06,
        1.2220149508868068e-05, -2.5016589018406104e-05, 4.67573029593454e-05,
        -7.758339620885703e-05, 0.00010797150392680607, -0.00010629939204807066,
        2.8411876143085713e-06, 0.0003191583403066397, -0.0010027409186805726,
        0.0021378776049441792, -0.0036111445441901315, 0.004926665190860512,
        -0.005119217712698905, 0.0029188575480742595, 0.0027645983342152176,
        -0.012213012527363697, 0.024595204609937592, -0.03890999164240439, 0.06616490707843257,
    ),
)  # fmt: skip
# ``sqrt(x) exp(-x) I(x)`` by powers of ``16 / x - 1`` on ``x >= 8``.
_BESSEL_FAR = (
    (
        1.0881994785468934e-10, 3.525321019700796e-11, -7.473844621887592e-10,
        -2.748111637276033e-10, 2.3981927228949238e-09, 1.0924527246468664e-09,
        -4.8482509221176966e-09, -3.11851456121224e-09, 6.789790403895736e-09,
        7.323310735122893e-09, -5.162517880939013e-09, -1.331979859201994e-08,
        -6.805980075129678e-09, 7.532386417555123e-09, 2.155681110989874e-08,
        3.932926571091252e-08, 8.872154618944625e-08, 2.9735956581528157e-07,
        1.4838475863096976e-06, 1.1143033802583682e-05, 0.00013621607439187193,
        0.0033605519836677235, 0.4021765094450081,
    ),
    (
        -1.13288885034257e-10, -3.2677656089803323e-11, 7.79067217908059e-10,
        2.582169443152386e-10, -2.5062162405593894e-09, -1.0476127785270019e-09,
        5.094016301574338e-09, 3.0717395650769477e-09, -7.222524178953976e-09,
        -7.432535335623792e-09, 5.722677527454156e-09, 1.3952625102162603e-08,
        6.795073490187386e-09, -8.407326839577817e-09, -2.3382691353601083e-08,
        -4.31323156237458e-08, -1.0001220638799958e-07, -3.483853071371078e-07,
        -1.8349101539664522e-06, -1.503854721127423e-05, -0.000219235763833829,
        -0.009749577193235609, 0.38939845902587233,
    ),
    (
        -1.53598307714977e-11, 1.0655021852202356e-10, 1.126755877297644e-10,
        -7.633589103140395e-10, -4.233692860655407e-10, 2.5701493425155495e-09,
        1.2032437815841544e-09, -5.500111812620615e-09, -3.155951731071079e-09,
        8.311022074462565e-09, 7.864658600267628e-09, -7.453627944489433e-09,
        -1.6039927135401515e-08, -6.6631074591803625e-09, 1.1537650590077308e-08,
        2.988395998496133e-08, 5.721752927305904e-08, 1.447696083769453e-07, 5.70271906351871e-07,
        3.593029863631529e-06, 4.04273226671517e-05, 0.001382317694022811, -0.04409555824541168,
        0.35350170206677406,
    ),
)  # fmt: skip


def bessel_ie(order: int, x: Expression) -> Expression:
    """``exp(-|x|)`` times the modified Bessel function of order 0, 1 or 2."""
    a = absolute(x)
    is_near = a < 8.0
    near = where(is_near, a, 0.0)
    value = _polynomial(_BESSEL_NEAR[order], near * 0.25 - 1.0)
    if order == 0:
        value = value / (1.0 + near * 0.25)
    elif order == 1:
        value = near * value / (1.0 + near)
    else:
        ratio = near / (1.0 + near * 0.5)
        value = ratio * ratio * value
    far = where(is_near, 8.0, a)
    value = where(is_near, value, _polynomial(_BESSEL_FAR[order], 16.0 / far - 1.0) / sqrt(far))
    value = where(a < _INFINITY, value, where(a > 8.0, 0.0, x))
    return _sign_of(value, x) if order == 1 else value


def bessel_i(order: int, x: Expression) -> Expression:
    """The modified Bessel function of order 0, 1 or 2."""
    # By halves: the exponential function alone overflows first.
    half = exp(absolute(x) * 0.5)
    return half * bessel_ie(order, x) * half


# ``(1 + 2 x) exp(x**2) erfc(x)`` by powers of ``(x - 3) / (x + 3)`` on ``x >= 0`` (Shepherd and
# Laframboise, Mathematics of Computation 36, 1981).
_ERFCX = (
    8.864219016427092e-10, 9.885798831139365e-10, -8.500397929772615e-09, -1.3326364813003834e-08,
    4.180784698845582e-08, 1.0187000600072885e-07, -1.4160064940265987e-07,
    -6.166496077604353e-07, 3.5683839153992204e-07, 3.472414602875686e-06, -7.315105164159062e-07,
    -2.0100567931289227e-05, 4.949484992570595e-06, 0.00012509935235563107,
    -0.00010515979981501177, -0.0007798322721083991, 0.0018886903591561553, 0.002529391816066239,
    -0.023770514918645888, 0.06830802734397848, -0.11927366341530699, 0.1296451587027606,
    -0.04756229435345087, -0.13562110612458117, 1.2530080582697296,
)  # fmt: skip


def _erfcx_of_size(a: Expression) -> Expression:
    return 0.5 * _polynomial(_ERFCX, 1.0 - 6.0 / (a + 3.0)) / (0.5 + a)


_logit = Elementwise(
    "logit",
    UfuncFunction("scipy.special._ufuncs", "logit"),
    # Near 1/2 the quotient is near 1.
    "select(abs({0} - 0.5) < 0.2, log1p((2 * {0} - 1) / (1 - {0})), log({0} / (1 - {0})))",
)


def logit(p: Expression) -> Expression:
    """``log(p / (1 - p))``."""
    return apply(_logit, p) if p.digits == 64 else log(p / (1.0 - p))


_erfc = Elementwise("erfc", UfuncFunction("scipy.special._ufuncs", "erfc"), "erfc({0})")


def erfc(x: Expression) -> Expression:
    """``1 - erf(x)``."""
    if x.digits == 64:
        return apply(_erfc, x)
    a = absolute(x)
    right = _erfcx_of_size(a) * exp(-a * a)
    return where(x < 0.0, 2.0 - right, right)


def ndtr(x: Expression) -> Expression:
    """The distribution function of the normal distribution."""
    return 0.5 * erfc(-math.sqrt(0.5) * x)


def erfcx(x: Expression) -> Expression:
    """``exp(x**2) erfc(x)``."""
    right = _erfcx_of_size(absolute(x))
    return where(x < 0.0, 2.0 * exp(x * x) - right, right)


def _normal_parts(x: Expression) -> tuple[Expression, Expression, Expression]:
    """``erfcx(|x| / sqrt(2))``, ``x**2 / 2`` and ``exp(-x**2 / 2)``."""
    square = 0.5 * x * x
    return _erfcx_of_size(absolute(x) * math.sqrt(0.5)), square, exp(-square)


def log_ndtr(x: Expression) -> Expression:
    """Logarithm of the distribution function of the normal distribution."""
    right, square, density = _normal_parts(x)
    is_left = x < 0.0
    # One logarithm for both sides; where the limit counts, nothing counts beside the square.
    less_one = where(is_left, maximum(0.5 * right, 1e-16) - 1.0, -0.5 * right * density)
    return log1p(less_one) - where(is_left, square, 0.0)


def normal_hazard(x: Expression) -> Expression:
    """The derivative of `log_ndtr`: the density of the normal distribution over `ndtr`."""
    right, _, density = _normal_parts(x)
    is_left = x < 0.0
    below = where(is_left, right, 2.0 - right * density)
    return math.sqrt(2 / math.pi) * where(is_left, 1.0, density) / below


# The quantile of the normal distribution, divided by ``p - 1/2``, by powers of
# ``2 (p - 1/2)**2 / 0.375**2 - 1``.
_CENTRE = (
    5.028454393907394e-10, 1.3528419842814875e-09, 1.0092099332915785e-09, 2.7692313495142832e-09,
    1.3572584363686685e-08, 3.712454680246568e-08, 9.453514187271127e-08, 2.616909758092388e-07,
    7.347813095695806e-07, 2.0614605171723063e-06, 5.831537775513398e-06, 1.6679939862708467e-05,
    4.833295376032065e-05, 0.00014235236421798197, 0.00042821196543552624, 0.0013252569202209644,
    0.004270141163568559, 0.014631491458160093, 0.055695000431071943, 0.26436689143860226,
    2.7266649486974748,
)  # fmt: skip
# The quantile at ``p``, divided by ``-u`` with ``u = sqrt(-2 log p)``, by powers of
# ``1 / (u + 3)``, which is mapped to -1 ... 1 between these ``u``, the last of double precision.
_TAIL_ENDS = (39.0, 2.0)
_TAIL = (
    9.724802729103712e-08, -1.092316841216663e-07, -7.278903047924296e-07,
    7.894888161850891e-07, 2.5461684592810827e-06, -2.665036322250641e-06,
    -5.4532660698976775e-06, 5.492737363220879e-06, 7.969592456961089e-06,
    -7.701980686316611e-06, -8.367475233936327e-06, 7.721423785734958e-06,
    6.520729551936248e-06, -5.729656763141769e-06, -3.7955863516990625e-06,
    3.11360744824151e-06, 1.685148143704663e-06, -1.4613354273657109e-06,
    -7.002328805619744e-07, -3.1500299008715063e-07, -1.0764482288058223e-06,
    -3.9849372467302055e-06, -8.26620210146759e-06, -2.2566518998890546e-05,
    -5.199912767069262e-05, -0.0001339191537558048, -0.000317568705983395,
    -0.0007931518016044797, -0.0018879672603629497, -0.004608318699540295,
    -0.010807442935992635, -0.02548278366175282, -0.05592749245678942, -0.11683216778389795,
    -0.15411014588243452, 0.9217497563763976,
)  # fmt: skip
_LAST_SHORT = 14.5
"""``u`` is below that if ``p`` is a number of 32 bits."""


def _quantile(centre: Expression, tail: Expression) -> Expression:
    """The size of the quantile at ``p``.

    Args:
        centre: ``|p - 1/2|``.
        tail: The lesser of ``p`` and ``1 - p``.
    """
    near = centre * _polynomial(_CENTRE, centre * centre * (2.0 / 0.375**2) - 1.0)
    u = sqrt(-2.0 * log(tail))
    first, last = (1 / (end + 3.0) for end in _TAIL_ENDS)
    stretch = 2 / (last - first)
    t = (1.0 / (u + 3.0) - first) * stretch - 1.0
    low = (1 / (_LAST_SHORT + 3.0) - first) * stretch - 1.0
    far = where(apply(p.equal, tail, 0.0), _INFINITY, u * _polynomial(_TAIL, t, low))
    return where(centre < 0.365, near, far)


def ndtri(q: Expression) -> Expression:
    """The quantile of the normal distribution."""
    centre = q - 0.5
    tail = where(q < 0.5, q, 1.0 - q)
    return _in_domain(_sign_of(_quantile(absolute(centre), tail), centre), tail)


def erfinv(x: Expression) -> Expression:
    """The inverse of the error function."""
    a = absolute(x)
    tail = 0.5 - 0.5 * a
    value = _sign_of(_quantile(0.5 * a, tail) * math.sqrt(0.5), x)
    return _in_domain(value, tail)


def erfcinv(x: Expression) -> Expression:
    """The inverse of its complement."""
    centre = 0.5 - 0.5 * x
    tail = where(x < 1.0, 0.5 * x, 1.0 - 0.5 * x)
    value = _sign_of(_quantile(absolute(centre), tail) * math.sqrt(0.5), centre)
    return _in_domain(value, tail)


def _in_domain(value: Expression, tail: Expression) -> Expression:
    return where(tail < 0.0, math.nan, value)


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
_MORE_BERNOULLI = (*_BERNOULLI, -174611 / 330, 854513 / 138, -236364091 / 2730)
_SHIFT = 8
"""From here on asymptotic series are used."""

# ``B(2k) / (2k)!``
_MACLAURIN = tuple(b / math.factorial(2 * k) for k, b in enumerate(_MORE_BERNOULLI, 1))


def _zeta(s: Expression, q: Expression) -> Expression:
    """Hurwitz's zeta function of positive ``q``, by the formula of Euler and Maclaurin.

    That is DLMF 25.11.7, with the sum over ``k < 8``. All terms are divided by the first: where
    others count, their logarithms are small, and so are the errors of the logarithms.
    """
    inverse = 1.0 / q
    value = s * 0.0 + 1.0
    for k in range(1, _SHIFT):
        value = value + exp(-s * log1p(inverse * float(k)))
    z = q + float(_SHIFT)
    step = 1.0 / z
    # Where the exponent is larger nothing is left of the last term.
    t = minimum(s * step, 60.0)
    series = None
    for k in range(len(_MACLAURIN), 0, -1):
        rising = t if k == 1 else (t + (2 * k - 3) * step) * (t + (2 * k - 2) * step)
        series = (_MACLAURIN[k - 1] if series is None else series + _MACLAURIN[k - 1]) * rising
    assert series is not None
    last = exp(-s * log1p(inverse * float(_SHIFT)))
    value = value + last * (z / (s - 1.0) + 0.5 + series)
    # By halves: the power alone may be too small or too large.
    half = power(q, -0.5 * s)
    value = half * (value * half)
    value = where(q < _INFINITY, value, where(q > 1.0, 0.0, q))
    at_infinity = where(q < 1.0, _INFINITY, where(q > 1.0, 0.0, q))
    value = where(s < _INFINITY, value, at_infinity)
    return where(s > 1.0, value, where(apply(p.equal, s, 1.0), _INFINITY, math.nan * s))


_SPENCE = tuple(b / math.factorial(2 * k + 1) for k, b in enumerate(_BERNOULLI, 1))[::-1]


def spence(z: Expression) -> Expression:
    """The dilogarithm of ``1 - z``, DLMF 25.12.

    With ``u = -log(z)`` it is ``u - u**2 / 4`` and a series in odd powers of ``u`` ('t Hooft and
    Veltman, Nuclear Physics B 153, 1979), which is short for ``1/2 <= z <= 2``; further by 25.12.3
    and 25.12.6.
    """
    is_left, is_right = z < 0.5, z > 2.0
    logarithm = log(maximum(z, 1e-300))
    rest = log1p(-where(is_left, z, where(is_right, 1.0 / z, 0.0)))
    u = 0.0 - where(is_left | is_right, rest, logarithm)
    square = u * u
    near = u + (u * _polynomial(_SPENCE, square, 0.0, math.log(2.0) ** 2) - 0.25) * square
    left = math.pi**2 / 6 - logarithm * rest - near
    right = near - math.pi**2 / 6 - logarithm * rest - 0.5 * logarithm * logarithm
    value = where(is_left, left, where(is_right, right, near))
    return where(z < 0.0, math.nan, value)


def zeta(scipys: Formula, s: Expression, q: Expression) -> Expression:
    """Hurwitz's zeta function."""
    return unless_any((q < 0.0) | apply(p.equal, q, 0.0), _zeta, scipys, s, q)


_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_LGAMMA_FAR = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1))[::-1]


def _stirling(z: Expression) -> Expression:
    """Logarithm of what Stirling's formula leaves of the gamma function, for ``z >= 8``."""
    inverse = 1.0 / z
    return inverse * _polynomial(_LGAMMA_FAR, inverse * inverse, 0.0, 1 / _SHIFT**2)


_ROOT_2PI = math.sqrt(2 * math.pi)
_HALVED, _ALL_OVERFLOW = 140.0, 200.0


def _rising(x: Expression) -> tuple[Expression, Expression, Expression]:
    """``z >= 8``, how much larger than ``x`` that is, and ``gamma(z) / gamma(x)``."""
    is_low = x < float(_SHIFT)
    low = where(is_low, x, 0.0)
    pair = low * (low + 7.0)  # of low + k and low + 7 - k
    product = where(is_low, pair * (pair + 6.0) * (pair + 10.0) * (pair + 12.0), 1.0)
    added = where(is_low, float(_SHIFT), low)
    return x + added, added, product


def _betaln(a: Expression, b: Expression) -> Expression:
    """The logarithm of the beta function of positive numbers.

    By Stirling's formula (DLMF 5.11.1), whose terms do not cancel: the logarithms are those of the
    lesser argument and of ratios.
    """
    less, more = minimum(a, b), maximum(a, b)
    (first, added, of_less), (q, more_added, of_more) = _rising(less), _rising(more)
    s, total_added, of_total = _rising(less + more)
    shift = added + more_added - total_added  # is p + q - s
    rest = first - shift
    factor = sqrt(s / q / first) * (of_total / of_more / of_less)
    value = first * log(first) - rest * log(s) - q * log1p(rest / q)
    value = value + (log(factor) + (_HALF_LOG_2PI - shift))
    for z, sign in ((first, 1.0), (q, 1.0), (s, -1.0)):
        value = value + sign * _stirling(z)
    return where(more < _INFINITY, value, _betaln_at_infinity(less, more))


def _betaln_at_infinity(less: Expression, more: Expression) -> Expression:
    return less - less - less * more


def _betaln_anywhere(log_gamma: Formula, a: Expression, b: Expression) -> Expression:
    """The same by `lgamma`; at poles, integers below 1, finite where another pole divides it."""
    value = log_gamma(a) + log_gamma(b) - log_gamma(a + b)
    less, more = minimum(a, b), maximum(a, b)
    value = where(more < _INFINITY, value, _betaln_at_infinity(less, more))
    for x, y in ((b, a), (a, b)):
        is_pole = (x < 1.0) & apply(p.equal, x, rint(x))
        rest = 1.0 - x - y
        is_divided = apply(p.equal, y, rint(y)) & (rest > 0.0)
        finite = log_gamma(rest) + log_gamma(y) - log_gamma(1.0 - x)
        value = where(is_pole, where(is_divided, finite, _INFINITY), value)
    return value


def betaln(log_gamma: Formula, a: Expression, b: Expression) -> Expression:
    """The logarithm of the size of the beta function."""
    is_rare = (a < 0.0) | (b < 0.0) | apply(p.equal, a, 0.0) | apply(p.equal, b, 0.0)
    return unless_any(is_rare, _betaln, partial(_betaln_anywhere, log_gamma), a, b)


def _gamma_from_8(z: Expression, lost: Expression) -> Expression:
    """The gamma function of ``z + lost`` from 8 on; little is lost."""
    if z.digits == 32:
        return exp((z - 0.5) * log(z) - z + (_stirling(z) + _HALF_LOG_2PI))
    series = exp(_stirling(z)) * _ROOT_2PI
    # Times the digamma function between 8 and 16.
    series = series + series * (lost * (1.33 + 0.09 * z))
    # By halves where the power alone would overflow.
    is_halved = z > _HALVED
    factor = power(z, where(is_halved, 0.5 * z - 0.25, z - 0.5))
    return factor * (exp(-z) * series) * where(is_halved, factor, 1.0)


def gamma(x: Expression) -> Expression:
    """The gamma function, by Stirling's formula (DLMF 5.11.3) from 8 on."""
    is_left = x < 0.0
    size = where(is_left, -x, x)
    is_low = size < float(_SHIFT)
    low = where(is_low, size, 1.0)
    # Of low + k and low + 7 - k; without the first factor it is that of 1 - x.
    pair = low * (low + 7.0)
    product = where(is_left, low + 7.0, pair) * (pair + 6.0) * (pair + 10.0) * (pair + 12.0)
    z = minimum(where(is_low, size + float(_SHIFT), size), _ALL_OVERFLOW)
    value = _gamma_from_8(z, where(is_low, low - (z - float(_SHIFT)), 0.0))
    value = where(is_low, value / product, where(is_left, z * value, value))
    # DLMF 5.5.3; there are poles at negative whole numbers.
    nearest = rint(x)
    part, count = x - nearest, 0.5 * nearest
    height = _sin(math.pi * where(is_left, part, 0.25))
    is_even = apply(p.equal, count, rint(count))
    reflected = math.pi / (where(is_even, height, -height) * value)
    reflected = where(absolute(part) > 0.0, reflected, math.nan)
    return where(is_left, reflected, value)
