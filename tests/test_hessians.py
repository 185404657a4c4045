"""Second derivatives of every public function of two or more floating arguments are symmetric.

`PAIRS` lists functions of two numbers, tried at all pairs of `SPECIAL`: zeros, ones, equal,
negative and infinite ones. `ARRAYS` lists functions of arrays, tried at a few vectors. Each is
differentiated twice in three ways (forward over reverse, reverse over reverse, reverse over
forward), eagerly and compiled. References are finite differences of mpmath's functions, with 160
digits, and of NumPy's and SciPy's; a derivative that does not exist shows in differences that do
not converge. Other public functions of more than one number must be in `EXCLUDED`, by the reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import funcgrad as fg
from funcgrad import lax, nn
from funcgrad import numpy as fnp
from funcgrad.numpy import reexported
from funcgrad.scipy import special
from funcgrad.scipy.special import constants
from tests.scipy.special_samples import NAMES

INF = np.inf
NAMESPACES: dict[str, ModuleType] = {"numpy": fnp, "lax": lax, "special": special, "nn": nn}
SPECIAL = (0.0, 1.0, 0.5, -1.0, 2.0, -0.5, INF, -INF)
POINTS = np.array(list(itertools.product(SPECIAL, SPECIAL))).T
Function = Callable[..., Any]


def public(module: ModuleType) -> list[str]:
    """Names of the functions of a namespace."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    found = ((n, getattr(module, n)) for n in names)
    return [n for n, f in found if callable(f) and not isinstance(f, type | ModuleType)]


def named(name: str) -> Function:
    namespace, _, function = name.partition(".")
    return getattr(NAMESPACES[namespace], function)


def nowhere(x: float, y: float) -> bool:
    return False


@dataclass(frozen=True)
class Pair:
    """Functions of two numbers, by names that mean the same.

    Args:
        names: As ``"lax.pow numpy.power"``.
        reference: Of two numbers of mpmath, or ``None`` where only symmetry is checked.
        use: Makes a function of two numbers of the named one.
        convention: Where the derivative is a convention, and the reference says nothing.
        undefined: Where the function itself is not defined.
    """

    names: str
    reference: Callable[[Any, Any], Any] | None = None
    use: Callable[[Function], Function] = lambda f: f
    convention: Callable[[float, float], bool] = nowhere
    undefined: Callable[[float, float], bool] = nowhere


def log_add(x: Any, y: Any) -> Any:
    return mpmath.log(mpmath.exp(x) + mpmath.exp(y))


def or_zero(x: Any, value: Callable[[], Any]) -> Any:
    """``value()``, and the exact limit 0 where the factor ``x`` is 0."""
    return x if x == 0 else value()


def at_origin(x: float, y: float) -> bool:
    return x == 0 and y == 0


def times_second(*fixed: float) -> Callable[[Function], Function]:
    """``f(*fixed, x) * y``: the first arguments have no second derivative, by declaration."""
    return lambda f: lambda x, y: f(*(np.full(np.shape(x), v) for v in fixed), x) * y


def of_first(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: function(x) * y


LN2 = mpmath.log(2)

PAIRS = [
    # Arithmetic.
    Pair("numpy.add lax.add", lambda x, y: x + y),
    Pair("numpy.subtract lax.sub", lambda x, y: x - y),
    Pair("numpy.multiply lax.mul", lambda x, y: x * y),
    Pair("numpy.divide numpy.true_divide lax.div", lambda x, y: x / y),
    Pair("numpy.floor_divide numpy.nextafter lax.nextafter numpy.heaviside numpy.copysign"),
    Pair("numpy.remainder numpy.mod numpy.fmod lax.rem"),
    Pair("numpy.divmod", use=lambda f: lambda x, y: sum(f(x, y))),
    Pair("numpy.maximum numpy.fmax lax.max", convention=lambda x, y: x == y),
    Pair("numpy.minimum numpy.fmin lax.min", convention=lambda x, y: x == y),
    Pair(
        "numpy.power numpy.pow numpy.float_power lax.pow",
        mpmath.power,
        # Of infinite exponents the limits depend on the order in which they are taken.
        convention=lambda x, y: at_origin(x, y) or bool(np.isinf(y)),
    ),
    Pair("numpy.hypot", mpmath.hypot, convention=at_origin),
    Pair("numpy.arctan2 numpy.atan2 lax.atan2", mpmath.atan2, convention=at_origin),
    Pair("numpy.logaddexp", log_add, convention=lambda x, y: x == y and bool(np.isinf(x))),
    Pair(
        "numpy.logaddexp2",
        lambda x, y: log_add(x * LN2, y * LN2) / LN2,
        convention=lambda x, y: x == y and bool(np.isinf(x)),
    ),
    # Choices.
    Pair("numpy.clip", use=lambda f: lambda x, y: f(x * y, -1.0, y)),
    Pair("lax.clamp", use=lambda f: lambda x, y: f(-1.0 + 0 * y, x * y, y)),
    Pair(
        "numpy.where lax.select",
        lambda x, y: x * x * y if x < y else x * y * y,
        use=lambda f: lambda x, y: f(x < y, x * x * y, x * y * y),
        convention=lambda x, y: x == y or bool(np.isinf(x) or np.isinf(y)),
    ),
    Pair(
        "lax.select_n",
        lambda x, y: x * x * y if x < y else x * y * y,
        use=lambda f: lambda x, y: f(x < y, x * y * y, x * x * y),
        convention=lambda x, y: x == y or bool(np.isinf(x) or np.isinf(y)),
    ),
    Pair(
        "numpy.select",
        lambda x, y: x * x * y if x < y else x * y * y,
        use=lambda f: lambda x, y: f([x < y], [x * x * y], x * y * y),
        convention=lambda x, y: x == y or bool(np.isinf(x) or np.isinf(y)),
    ),
    Pair(
        "numpy.nan_to_num",
        use=lambda f: lambda x, y: f(x, nan=y, posinf=3.0, neginf=-3.0),
    ),
    Pair(
        "lax.complex",
        lambda x, y: x**3 - 3 * x * y**2,
        use=lambda f: lambda x, y: fnp.real(f(x, y) ** 3),
        convention=lambda x, y: bool(np.isinf(x) or np.isinf(y)),
    ),
    # Products with logarithms.
    Pair("special.xlogy", lambda x, y: or_zero(x, lambda: x * mpmath.log(y))),
    Pair("special.xlog1py", lambda x, y: or_zero(x, lambda: x * mpmath.log(1 + y))),
    Pair(
        "special.rel_entr",
        lambda x, y: or_zero(x, lambda: x * mpmath.log(x / y)),
        convention=at_origin,
    ),
    Pair(
        "special.kl_div",
        lambda x, y: y + or_zero(x, lambda: x * mpmath.log(x / y) - x),
        convention=at_origin,
    ),
    # Gamma and beta functions. Where a gamma function has a pole, derivatives of these are nan.
    Pair(
        "special.beta",
        mpmath.beta,
        convention=lambda x, y: min(x, y) <= 0 or bool(np.isinf(x) or np.isinf(y)),
    ),
    Pair(
        "special.betaln",
        lambda x, y: mpmath.log(mpmath.beta(x, y)),
        convention=lambda x, y: min(x, y) <= 0 or bool(np.isinf(x) or np.isinf(y)),
    ),
    Pair(
        "special.binom",
        mpmath.binomial,
        convention=lambda x, y: bool(np.isinf(x) or np.isinf(y)) or min(x, y, x - y) < 0,
    ),
    Pair("special.comb"),
    Pair(
        "special.gammainc lax.igamma",
        of_first(lambda x: mpmath.gammainc(2.5, 0, x, regularized=True)),
        use=times_second(2.5),
        convention=lambda x, y: x <= 0 or bool(np.isinf(x) or np.isinf(y)),
    ),
    Pair(
        "special.gammaincc lax.igammac",
        of_first(lambda x: mpmath.gammainc(2.5, x, regularized=True)),
        use=times_second(2.5),
        convention=lambda x, y: x <= 0 or bool(np.isinf(x) or np.isinf(y)),
    ),
    Pair("special.gammaincinv special.gammainccinv", use=times_second(2.5)),
    Pair(
        "special.betainc lax.betainc",
        of_first(lambda x: mpmath.betainc(2, 3, 0, x, regularized=True)),
        use=times_second(2.0, 3.0),
        convention=lambda x, y: not 0 < x < 1 or bool(np.isinf(y)),
    ),
    Pair(
        "special.zeta lax.zeta",
        of_first(lambda x: mpmath.zeta(2, x)),
        use=times_second(2.0),
        convention=lambda x, y: x <= 0 or bool(np.isinf(x) or np.isinf(y)),
    ),
    Pair(
        "special.polygamma lax.polygamma",
        of_first(lambda x: mpmath.polygamma(1, x)),
        use=times_second(1.0),
        convention=lambda x, y: x <= 0 or bool(np.isinf(x) or np.isinf(y)),
    ),
    # Activations: a kink at 0, and a square that overflows.
    Pair("nn.leaky_relu", convention=lambda x, y: x == 0),
    Pair(
        "nn.elu",
        lambda x, a: x if x > 0 else a * mpmath.expm1(x),
        convention=lambda x, a: x == 0 or bool(np.isinf(x) or np.isinf(a)),
    ),
    Pair(
        "nn.celu",
        lambda x, a: x if x > 0 else a * mpmath.expm1(x / a),
        convention=lambda x, a: x == 0 or bool(np.isinf(x) or np.isinf(a)),
        undefined=lambda x, a: a == 0,
    ),
    Pair(
        "nn.squareplus",
        lambda x, b: (x + mpmath.sqrt(x * x + b)) / 2,
        convention=lambda x, b: b <= 0 or bool(np.isinf(x) or np.isinf(b)),
    ),
]

EVERY_PAIR = [(name, pair) for pair in PAIRS for name in pair.names.split()]

ORDERS = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))


def differences(values: Sequence[Sequence[Any]], h: Any, is_central: bool) -> list[Any]:
    """Gradient and Hessian of a function on a grid of 3 x 3 points, ``h`` apart."""
    v = values
    if is_central:
        return [
            (v[2][1] - v[0][1]) / (2 * h),
            (v[1][2] - v[1][0]) / (2 * h),
            (v[2][1] - 2 * v[1][1] + v[0][1]) / h**2,
            (v[2][2] - v[2][0] - v[0][2] + v[0][0]) / (4 * h**2),
            (v[1][2] - 2 * v[1][1] + v[1][0]) / h**2,
        ]
    return [
        (-3 * v[0][0] + 4 * v[1][0] - v[2][0]) / (2 * h),
        (-3 * v[0][0] + 4 * v[0][1] - v[0][2]) / (2 * h),
        (v[0][0] - 2 * v[1][0] + v[2][0]) / h**2,
        (v[1][1] - v[1][0] - v[0][1] + v[0][0]) / h**2,
        (v[0][0] - 2 * v[0][1] + v[0][2]) / h**2,
    ]


@cache
def expected(reference: Callable[[Any, Any], Any], x: float, y: float) -> list[float | None]:
    """What converges of the gradient and the Hessian at a point; in place of ``inf``, far out."""
    with mpmath.workdps(160):
        for is_central in (True, False):
            fine, coarse = (
                _differences_at(reference, x, y, exponent, is_central) for exponent in (18, 15)
            )
            agreed = [
                a if a is not None and b is not None and np.isclose(a, b, 1e-9, 1e-12) else None
                for a, b in zip(fine, coarse, strict=True)
            ]
            if any(a is not None for a in agreed):
                return agreed
    return [None] * len(ORDERS)


def _differences_at(
    reference: Callable[[Any, Any], Any], x: float, y: float, exponent: int, is_central: bool
) -> list[float | None]:
    h = mpmath.mpf(10) ** -exponent
    far = mpmath.mpf(10) ** (2 * exponent)
    low = -1 if is_central else 0
    at = [mpmath.mpf(v) if np.isfinite(v) else int(np.sign(v)) * far for v in (x, y)]
    try:
        grid = [
            [reference(at[0] + i * h, at[1] + j * h) for j in range(low, low + 3)]
            for i in range(low, low + 3)
        ]
    except (ValueError, ArithmeticError):
        return [None] * len(ORDERS)
    if any(isinstance(v, mpmath.mpc) for row in grid for v in row):
        return [None] * len(ORDERS)
    return [_finite(float(v)) for v in differences(grid, h, is_central)]


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def derivatives(f: Function, wrap: Callable[[Function], Function]) -> tuple[Any, dict[str, Any]]:
    """Gradients at all points, and Hessians by three ways."""

    def total(z: Any) -> Any:
        return fnp.sum(f(z[0], z[1]))

    gradient = fg.grad(total)
    unit = [np.stack([np.full(POINTS.shape[1], float(i == j)) for j in range(2)]) for i in range(2)]

    def along(function: Function, v: Any) -> Function:
        return lambda z: fg.jvp(function, (z,), (v,))[1]

    ways = {
        "forward over reverse": [along(gradient, v) for v in unit],
        "reverse over reverse": [fg.grad(lambda z, i=i: fnp.sum(gradient(z)[i])) for i in range(2)],
        "reverse over forward": [
            fg.grad(lambda z, v=v: fnp.sum(along(lambda z: f(z[0], z[1]), v)(z))) for v in unit
        ],
    }
    with np.errstate(all="ignore"):
        hessians = {
            way: np.stack(wrap(lambda z, rows=rows: [row(z) for row in rows])(POINTS))
            for way, rows in ways.items()
        }
        return wrap(gradient)(POINTS), hessians


def close(a: Any, b: Any) -> Any:
    return np.isclose(a, b, 1e-8, 1e-10, equal_nan=True)


def complaints(pair: Pair, x: float, y: float, gradient: Any, hessian: Any) -> list[str]:
    """What is wrong with derivatives at one point."""
    is_finite = bool(np.isfinite(x) and np.isfinite(y))
    found = []
    one, other = hessian[0, 1], hessian[1, 0]
    are_finite = np.isfinite([one, other])
    if not np.isnan(gradient).any():
        # Where the point is infinite, one of the two may be the nan of a difference of infinities.
        is_symmetric = close(one, other) if are_finite.all() else not are_finite.any()
        if not is_symmetric and (is_finite or not np.isnan([one, other]).any()):
            found.append(f"asymmetric {one} {other}")
    if pair.reference is not None and not pair.convention(x, y):
        ours = [gradient[0], gradient[1], hessian[0, 0], one, hessian[1, 1]]
        for order, a, b in zip(ORDERS, ours, expected(pair.reference, x, y), strict=True):
            if b is not None and not close(a, b) and (is_finite or not np.isnan(a)):
                found.append(f"{order}: {a} is not {b}")
    return found


# Names that mean the same make the same programs: every run compiles those of the first.
@pytest.mark.sampled(64)
@pytest.mark.parametrize(
    ("name", "pair", "wrap"),
    [
        pytest.param(
            name,
            pair,
            wrap,
            id=f"{way}-{name}",
            marks=[pytest.mark.nightly] * (way == "compiled" and name != pair.names.split()[0]),
        )
        for way, wrap in (("eager", lambda f: f), ("compiled", fg.jit))
        for name, pair in EVERY_PAIR
    ],
)
def test_pairs(name: str, pair: Pair, wrap: Callable[[Function], Function]) -> None:
    function = pair.use(named(name))
    gradient, hessians = derivatives(function, wrap)
    found = [
        f"{way} at ({x}, {y}): {text}"
        for k, (x, y) in enumerate(POINTS.T)
        if not pair.undefined(x, y)
        for way, hessian in hessians.items()
        for text in complaints(pair, x, y, gradient[:, k], hessian[:, :, k])
    ]
    assert not found, "\n".join(found)


PLACES = lax.ScatterDimensionNumbers((), (0,), (0,))
RAGGED = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])


@dataclass(frozen=True)
class OnArrays:
    """Functions of arrays, as one function of a vector of ``size`` numbers.

    Args:
        names: As in `Pair`.
        size: Length of the vector.
        use: Of the named function and a vector: an array.
        reference: The same function of NumPy or SciPy; by default NumPy's of that name. ``None``
            where it has kinks at all points, or there is none.
    """

    names: str
    size: int
    use: Callable[[Function, Any], Any]
    reference: Function | str | None = ""


def parts(z: Any, *lengths: int) -> list[Any]:
    stops = np.cumsum(lengths)
    return [z[stop - n : stop] for n, stop in zip(lengths, stops, strict=True)]


def on_two(*lengths: int, **options: Any) -> Callable[[Function, Any], Any]:
    return lambda f, z: f(*parts(z, *lengths), **options)


def on_matrices(*shapes: tuple[int, ...]) -> Callable[[Function, Any], Any]:
    sizes = [int(np.prod(shape)) for shape in shapes]

    def use(f: Function, z: Any) -> Any:
        return f(*(p.reshape(s) for p, s in zip(parts(z, *sizes), shapes, strict=True)))

    return use


def scipy_logsumexp(a: Any, b: Any) -> Any:
    return np.log(np.sum(b * np.exp(a)))


GRID = np.array([0.0, 1.0, 2.0, 3.0])

ARRAYS = [
    OnArrays("numpy.dot numpy.inner numpy.vdot numpy.vecdot numpy.outer", 6, on_two(3, 3)),
    OnArrays("lax.dot", 6, on_two(3, 3), np.dot),
    OnArrays("numpy.convolve numpy.correlate numpy.kron", 5, on_two(3, 2)),
    OnArrays("numpy.cross numpy.polyadd numpy.polysub", 6, on_two(3, 3)),
    # NumPy's own leaves leading zeros away.
    OnArrays("numpy.polymul", 5, on_two(3, 2), np.convolve),
    OnArrays("numpy.matmul", 6, on_matrices((2, 2), (2, 1))),
    OnArrays("numpy.tensordot", 6, lambda f, z: f(z[:4].reshape(2, 2), z[4:], 1)),
    OnArrays("numpy.matvec", 6, on_matrices((2, 2), (2,))),
    OnArrays("numpy.vecmat", 6, on_matrices((2,), (2, 2))),
    OnArrays("numpy.einsum", 6, lambda f, z: f("i,ij,j->", z[:2], z[2:].reshape(2, 2), z[:2])),
    OnArrays("lax.batch_matmul", 8, on_matrices((1, 2, 2), (1, 2, 2)), np.matmul),
    OnArrays(
        "lax.conv",
        7,
        lambda f, z: f(z[:4].reshape(1, 1, 4), z[4:].reshape(1, 1, 3), (1,), "VALID"),
        lambda a, b, *_: np.correlate(a[0, 0], b[0, 0], "valid"),
    ),
    OnArrays(
        "lax.conv_general_dilated",
        7,
        lambda f, z: f(z[:4].reshape(1, 1, 4), z[4:].reshape(1, 1, 3), (1,), [(2, 2)]),
        lambda a, b, *_: np.correlate(a[0, 0], b[0, 0], "full"),
    ),
    OnArrays(
        "lax.conv_with_general_padding",
        7,
        lambda f, z: f(z[:4].reshape(1, 1, 4), z[4:].reshape(1, 1, 3), (1,), [(2, 2)], (1,), (1,)),
        lambda a, b, *_: np.correlate(a[0, 0], b[0, 0], "full"),
    ),
    OnArrays(
        "lax.conv_transpose",
        6,
        lambda f, z: f(z[:4].reshape(1, 4, 1), z[4:].reshape(2, 1, 1), (1,), "VALID"),
        lambda a, b, *_: np.correlate(a[0, :, 0], b[:, 0, 0], "full"),
    ),
    OnArrays(
        "lax.conv_general_dilated_local",
        8,
        lambda f, z: f(z[:4].reshape(1, 1, 4), z[4:].reshape(1, 2, 2), (2,), "VALID", (2,)),
        lambda a, b, *_: np.sum(a.reshape(2, 2) * b[0].T, 1),
    ),
    OnArrays(
        "lax.dot_general",
        6,
        lambda f, z: f(z[:4].reshape(2, 2), z[4:], (((1,), (0,)), ((), ()))),
        lambda a, b, _: np.dot(a, b),
    ),
    OnArrays(
        "lax.scaled_dot",
        6,
        lambda f, z: f(
            z[:2].reshape(1, 2),
            z[2:4].reshape(2, 1),
            lhs_scale=z[4:5].reshape(1, 1),
            rhs_scale=z[5:].reshape(1, 1),
        ),
        lambda a, b, lhs_scale, rhs_scale: (a * lhs_scale) @ (b * rhs_scale),
    ),
    OnArrays(
        "nn.scaled_matmul",
        6,
        lambda f, z: f(
            z[:2].reshape(1, 1, 2), z[2:4].reshape(1, 1, 2), *z[4:].reshape(2, 1, 1, 1), np.float64
        ),
        lambda a, b, c, d, _: np.einsum("bmk,bnk->bmn", a * c, b * d),
    ),
    OnArrays(
        "lax.ragged_dot",
        8,
        lambda f, z: f(z[:4].reshape(2, 2), z[4:].reshape(2, 2, 1), np.array([1, 1])),
        lambda a, b, _: np.stack([a[0] @ b[0], a[1] @ b[1]]),
    ),
    OnArrays(
        "lax.ragged_dot_general",
        6,
        lambda f, z: f(z[:3], z[3:], np.array([2, 1]), RAGGED),
        lambda a, b, *_: np.array([a[:2] @ b[:2], a[2] * b[2]]),
    ),
    OnArrays(
        "lax.scatter_mul",
        6,
        lambda f, z: f(z[:3], np.array([[0], [2], [0]]), z[3:], PLACES),
        lambda a, _, b, __: a * np.array([b[0] * b[2], 1.0, b[1]]),
    ),
    OnArrays("numpy.polyval", 4, lambda f, z: f(z[:3], z[3])),
    OnArrays("numpy.polyfit", 8, lambda f, z: f(GRID + 0.1 * z[:4], z[4:], 1)),
    OnArrays("numpy.vander numpy.polyint numpy.polyder numpy.prod", 3, lambda f, z: f(z)),
    OnArrays("numpy.cumprod numpy.nancumprod numpy.cumulative_prod", 3, lambda f, z: f(z)),
    OnArrays("numpy.trapezoid", 6, on_two(3, 3)),
    OnArrays("numpy.average", 6, lambda f, z: f(z[:3], weights=1.5 + z[3:] ** 2)),
    OnArrays("numpy.interp", 9, lambda f, z: f(z[:1] + 1.5, GRID + 0.1 * z[1:5], z[5:]), None),
    OnArrays(
        "numpy.percentile numpy.nanpercentile",
        4,
        lambda f, z: f(z[:3] + 5 * GRID[:3], 30 + z[3]),
    ),
    OnArrays(
        "numpy.quantile numpy.nanquantile",
        4,
        lambda f, z: f(z[:3] + 5 * GRID[:3], 0.3 + 0.01 * z[3]),
    ),
    OnArrays(
        "numpy.cov numpy.corrcoef", 6, lambda f, z: f(GRID[:3] + z[:3], GRID[:3] ** 2 + z[3:])
    ),
    OnArrays(
        "numpy.var numpy.nanvar",
        4,
        lambda f, z: f(z[:3] + GRID[:3], mean=z[3]),
        lambda x, mean: np.mean((x - mean) ** 2),
    ),
    OnArrays(
        "numpy.std numpy.nanstd",
        4,
        lambda f, z: f(z[:3] + GRID[:3], mean=z[3]),
        lambda x, mean: np.sqrt(np.mean((x - mean) ** 2)),
    ),
    OnArrays("numpy.sum numpy.nansum", 4, lambda f, z: f(z[:3] ** 2, initial=z[3] ** 2)),
    OnArrays("numpy.nanprod", 4, lambda f, z: f(z[:3], initial=z[3])),
    OnArrays(
        "numpy.max numpy.amax numpy.nanmax numpy.min numpy.amin numpy.nanmin",
        4,
        lambda f, z: f(z[:3] ** 2, initial=z[3] ** 2),
        None,
    ),
    OnArrays("numpy.linspace", 2, lambda f, z: f(z[0], z[1] ** 2, 4)),
    OnArrays("numpy.geomspace", 2, lambda f, z: f(1 + z[0] ** 2, 2 + z[1] ** 2, 4)),
    OnArrays("numpy.logspace", 2, lambda f, z: f(z[0], z[1], 4, base=2.0)),
    OnArrays("numpy.gradient", 3, lambda f, z: f(z)),
    OnArrays("numpy.ediff1d", 5, lambda f, z: f(z[:3] ** 2, z[3] ** 2, z[4] ** 3)),
    OnArrays("numpy.diff", 5, lambda f, z: f(z[:3] ** 2, prepend=z[3:4] ** 2, append=z[4:] ** 3)),
    OnArrays("numpy.append", 4, lambda f, z: f(z[:3] ** 2, z[3:] ** 3)),
    OnArrays("numpy.insert", 4, lambda f, z: f(z[:3] ** 2, 1, z[3] ** 3)),
    OnArrays("numpy.full", 2, lambda f, z: f(3, z[0] * z[1])),
    OnArrays("numpy.full_like", 2, lambda f, z: f(z[:1], z[0] * z[1])),
    OnArrays("numpy.unwrap", 3, lambda f, z: f(z**2), None),
    OnArrays("numpy.histogram", 3, lambda f, z: f(GRID[:3], 2, weights=z**3)[0]),
    OnArrays("numpy.bincount", 3, lambda f, z: f(np.array([0, 1, 1]), z**3)),
    OnArrays("numpy.choose", 4, lambda f, z: f(np.array([0, 1]), (z[:2] ** 2, z[2:] ** 3))),
    OnArrays(
        "lax.pad",
        3,
        lambda f, z: f(z[:2] ** 2, z[2] ** 3, [(1, 1, 0)]),
        lambda x, c, _: np.concatenate([[c], x, [c]]),
    ),
    OnArrays(
        "lax.dynamic_update_slice",
        5,
        lambda f, z: f(z[:3] ** 2, z[3:] ** 3, (1,)),
        lambda x, u, _: np.concatenate([x[:1], u]),
    ),
    OnArrays(
        "lax.dynamic_update_slice_in_dim",
        5,
        lambda f, z: f(z[:3] ** 2, z[3:] ** 3, 1, 0),
        lambda x, u, *_: np.concatenate([x[:1], u]),
    ),
    OnArrays(
        "lax.dynamic_update_index_in_dim",
        4,
        lambda f, z: f(z[:3] ** 2, z[3] ** 3, 1, 0),
        lambda x, u, *_: np.stack([x[0], u, x[2]]),
    ),
    OnArrays(
        "lax.reduce",
        4,
        lambda f, z: f(z[:3], z[3] * 0 + 1, lax.mul, (0,)),
        lambda x, *_: np.prod(x),
    ),
    OnArrays("lax.reduce_prod", 3, lambda f, z: f(z, (0,)), lambda z, _: np.prod(z)),
    OnArrays("lax.cumprod", 3, lambda f, z: f(z), np.cumprod),
    OnArrays(
        "lax.sort_key_val",
        6,
        lambda f, z: f(z[:3] ** 2, z[3:] ** 3)[1],
        None,
    ),
    OnArrays(
        "special.logsumexp nn.logsumexp",
        6,
        lambda f, z: f(z[:3], b=1.5 + z[3:] ** 2),
        scipy_logsumexp,
    ),
    OnArrays("special.softmax nn.softmax", 3, lambda f, z: f(z), scipy.special.softmax),
    OnArrays("special.log_softmax nn.log_softmax", 3, lambda f, z: f(z), scipy.special.log_softmax),
    OnArrays("nn.logmeanexp", 3, lambda f, z: f(z), lambda z: np.log(np.mean(np.exp(z)))),
    OnArrays("nn.glu", 4, lambda f, z: f(z), lambda z: z[:2] * scipy.special.expit(z[2:])),
    OnArrays(
        "nn.standardize",
        6,
        lambda f, z: f(z[:3], mean=z[3], variance=1 + z[4] ** 2, epsilon=1 + z[5] ** 2),
        lambda x, mean, variance, epsilon: (x - mean) / np.sqrt(variance + epsilon),
    ),
]

EVERY_ARRAY = [(name, row) for row in ARRAYS for name in row.names.split()]


def vectors(size: int) -> dict[str, Any]:
    rng = np.random.default_rng(size)
    return {
        "random": rng.uniform(-1, 1, size),
        "zeros": np.zeros(size),
        "ones": np.ones(size),
        "one zero": np.where(np.arange(size) == 1, 0.0, 1 - rng.random(size)),
    }


def weighted(function: Function) -> Callable[[Any], Any]:
    """A sum of all results, with different weights."""

    def total(z: Any) -> Any:
        out = function(z)
        outs = out if isinstance(out, list | tuple) else [out]
        return sum(fnp.sum(v * np.cos(np.arange(np.size(v))).reshape(np.shape(v))) for v in outs)

    return total


def slopes_of(function: Callable[[Any], Any], z: Any) -> Any:
    """Hessian by differences of fourth order."""
    h, unit = 0.01, np.eye(len(z))

    def along(f: Callable[[Any], Any], v: Any) -> Callable[[Any], Any]:
        return lambda z: (
            (8 * (f(z + h * v) - f(z - h * v)) - (f(z + 2 * h * v) - f(z - 2 * h * v))) / (12 * h)
        )

    return np.array([[along(along(function, u), v)(z) for u in unit] for v in unit])


@pytest.mark.sampled(32)
@pytest.mark.parametrize(("name", "row"), EVERY_ARRAY, ids=[n for n, _ in EVERY_ARRAY])
def test_arrays(name: str, row: OnArrays) -> None:
    function = weighted(lambda z: row.use(named(name), z))
    reference: Any = row.reference
    if reference == "":
        reference = getattr(np, name.removeprefix("numpy."))
    ways = {"forward over reverse": fg.hessian(function), "reverse": fg.jacrev(fg.grad(function))}
    ways["compiled"] = fg.jit(fg.hessian(function))
    for kind, z in vectors(row.size).items():
        for way, hessian in ways.items():
            with np.errstate(all="ignore"):
                found = hessian(z)
            np.testing.assert_allclose(found, found.T, 1e-9, 1e-12, err_msg=f"{way} at {kind}")
            if reference is not None and np.isfinite(found).all():
                plain = slopes_of(weighted(lambda z: row.use(reference, z)), z)
                np.testing.assert_allclose(found, plain, 1e-4, 1e-5, err_msg=f"{way} at {kind}")


EXCLUDED = {
    "one floating argument, beside others that do not float": {
        "numpy": "frexp kaiser ldexp modf",
        "lax": "bitcast_convert_type convert_element_type imag integer_pow real",
        "special": "multigammaln",
    },
    "special functions with tables of their own, whose tests go to second order": {
        "special": " ".join(n for n in NAMES if not n.startswith("_")),
    },
    "composed of such special functions": {
        "special": """
            assoc_laguerre assoc_legendre_p assoc_legendre_p_all bessel_jn diric factorial2
            factorialk h1vp h2vp ivp jn jvp kelvin kvp lambertw legendre_p legendre_p_all
            modfresnelm modfresnelp perm sinc softplus sph_harm_y sph_harm_y_all sph_legendre_p
            sph_legendre_p_all spherical_in spherical_jn spherical_kn spherical_yn stirling2 yvp
        """,
    },
    "linear in all floating arguments together": {
        "numpy": """
            array array_split asanyarray asarray asarray_chkfinite
            ascontiguousarray astype atleast_1d atleast_2d atleast_3d block broadcast_arrays
            broadcast_to column_stack compress concat concatenate copy cumsum cumulative_sum delete
            diag diagflat diagonal dstack expand_dims extract flip fliplr flipud hsplit hstack
            matrix_transpose mean meshgrid moveaxis nancumsum nanmean pad permute_dims ravel repeat
            reshape resize roll rollaxis rot90 split squeeze stack swapaxes take take_along_axis
            tile trace transpose tril triu unstack vsplit vstack
            dsplit fill_diagonal row_stack histogram2d histogramdd place put put_along_axis
            real_if_close
        """,
        "lax": """
            broadcast broadcast_in_dim broadcast_like broadcast_to_rank collapse concatenate
            conv_general_dilated_patches cumsum fft gather index_take reduce_precision
            scatter scatter_add scatter_sub
            dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim expand_dims full full_like
            index_in_dim reduce_sum reshape rev slice slice_in_dim split squeeze stack tile
            transpose unstack
        """,
    },
    "one array, of which it chooses elements": {
        "numpy": """
            intersect1d median nanmedian partition ptp setdiff1d setxor1d sort sort_complex
            trim_zeros union1d unique unique_all unique_counts unique_inverse unique_values
        """,
        "lax": """
            approx_max_k approx_min_k cumlogsumexp cummax cummin optimization_barrier reduce_max
            pcast pvary reduce_min reduce_window scatter_max scatter_min sort stage top_k
            with_sharding_constraint
        """,
    },
    "parts of networks, whose gradients are compared with PyTorch's": {
        "nn": """
            avg_pool batch_norm conv conv_transpose dense dot_product_attention dropout embed
            group_norm layer_norm max_pool min_pool rms_norm
        """,
    },
    "derivatives of functions of gamma, with tests of their own": {
        "lax": "igamma_grad_a random_gamma_grad",
    },
    "polynomials, whose tests go to second order": {"numpy": "poly polydiv roots"},
    "NumPy's own names": {"numpy": " ".join(public(reexported))},
    "results that are bools, integers, shapes or constants": {
        "numpy": """
            all allclose any arange argmax argmin argpartition argsort argwhere array_equal
            array_equiv bartlett bitwise_and bitwise_invert bitwise_left_shift bitwise_not
            bitwise_or bitwise_right_shift bitwise_xor blackman broadcast_shapes can_cast
            count_nonzero diag_indices digitize einsum_path empty empty_like equal eye flatnonzero
            greater greater_equal hamming hanning histogram_bin_edges identity indices invert
            isclose
            iscomplex iscomplexobj isfinite isin isinf isnan isneginf isposinf isreal isrealobj
            isscalar issubdtype ix_ left_shift less less_equal lexsort logical_and logical_not
            logical_or logical_xor nanargmax nanargmin ndim nonzero not_equal ones ones_like
            promote_types ravel_multi_index result_type right_shift searchsorted shape signbit size
            bitwise_count common_type diag_indices_from finfo from_dlpack fromiter gcd iinfo isdtype
            iterable lcm mask_indices min_scalar_type packbits spacing unpackbits
            tri tril_indices tril_indices_from triu_indices triu_indices_from unravel_index zeros
            zeros_like
        """,
        "special": " ".join(n for n in special.__all__ if hasattr(constants, n)),
        "lax": """
            DotDimensionNumbers
            conv_dimension_numbers conv_general_permutations conv_general_shape_tuple
            conv_shape_tuple conv_transpose_shape_tuple mulhi reduce_window_shape_tuple
            rng_bit_generator rng_uniform shape_as_value dce_sink
            padtype_to_pads argmax argmin axis_index axis_size
            after_all create_token
            bitwise_and bitwise_not
            bitwise_or bitwise_xor broadcast_shapes broadcasted_iota dtype empty eq ge gt iota
            is_finite
            clz le lt ne population_count reduce_and reduce_or reduce_xor shift_left
            shift_right_arithmetic
            shift_right_logical
        """,
        "nn": "one_hot",
    },
    "functions of functions, which have tests of compositions": {
        "numpy": "apply_along_axis apply_over_axes frompyfunc fromfunction piecewise vectorize at",
        "lax": """
            associative_scan composite cond custom_linear_solve custom_root fori_loop map
            platform_dependent scan scatter_apply switch while_loop
        """,
    },
    "exchange of one array along mapped axes": {
        "lax": """
            all_gather all_to_all pbroadcast
            pmax pmean pmin ppermute pshuffle psum psum_scatter pswapaxes
        """,
    },
}


def is_of_one_number(function: Function) -> bool:
    """Whether a function can be called with one array, and treats its elements one by one."""
    x = np.array([0.3, 0.6])
    try:
        with np.errstate(invalid="ignore"):
            found, single = function(x), [function(v) for v in x]
    except (TypeError, ValueError):
        return False
    is_array = isinstance(found, np.ndarray) and found.shape == x.shape
    return is_array and np.allclose(found, single, equal_nan=True)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_function_is_in_a_table_or_excluded(namespace: str) -> None:
    """Functions of one number, such as ``sin``, need no row: they have no mixed derivative."""
    tried = [name.partition(".") for name, _ in (*EVERY_PAIR, *EVERY_ARRAY)]
    tables = [
        {name for space, _, name in tried if space == namespace},
        *(set(spaces.get(namespace, "").split()) for spaces in EXCLUDED.values()),
    ]
    names = set(public(NAMESPACES[namespace]))
    listed = set().union(*tables)
    unlisted = names - listed
    wrong = {name for name in unlisted if not is_of_one_number(named(f"{namespace}.{name}"))}
    assert not wrong, "add them to PAIRS, ARRAYS or EXCLUDED"
    assert not listed - names, "they do not exist any more"
    assert sum(map(len, tables)) == len(listed), "each belongs to one table"
