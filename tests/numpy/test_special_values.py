"""Functions that are composed of others, traced, against NumPy: special values and small dtypes.

A formula that is only algebraically NumPy's gives other infinities and other NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import funcgrad as fg
import funcgrad.numpy as fnp

INF, NAN = np.inf, np.nan
ROWS = (
    [-745.2, 1e16, 3.0, 2.0],
    [1.0, NAN, 3.0, 4.0],
    [1.0, INF, 3.0, -2.0],
    [1.0, -INF, INF, 4.0],
    [1.7e308, -1.7e308, 1e308, 1.0],
    [0.0, -0.0, 0.0, -0.0],
    [0.1, 0.2, 0.7, 0.3],
    [1e16, 1e16 + 2, 1e16 + 4, 1e16 + 8],
)
INTEGERS = ([1, -2, 100, 127], [-128, 127, 0, 1])
EVEN, UNEVEN = np.arange(4.0), np.array([0.0, 1.0, 2.5, 3.0])

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gradient": np.gradient,
    "gradient, h": lambda x: np.gradient(x, 0.1),
    "gradient, even": lambda x: np.gradient(x, EVEN),
    "gradient, uneven": lambda x: np.gradient(x, UNEVEN),
    "gradient, integers": lambda x: np.gradient(x, np.array([0, 1, 100, 101], np.int8)),
    "gradient, second order": lambda x: np.gradient(x, edge_order=2),
    "gradient, uneven, second order": lambda x: np.gradient(x, UNEVEN, edge_order=2),
    "interp": lambda x: np.interp(x, [0.0, 1.0, 3.0], [1.0, 5.0, 2.0]),
    "interp, infinite": lambda x: np.interp(x, [0.0, 1.0, 3.0], [1.0, INF, INF]),
    "interp between": lambda x: np.interp([0.3, 1.5, 2.1, 3.5, -1.0], EVEN, x),
    "linspace": lambda x: np.linspace(x[0], x[2], 5),
    "linspace of arrays": lambda x: np.linspace(0, x, 3),
    "linspace, open": lambda x: np.linspace(x[0], x[3], 5, endpoint=False),
    "logspace": lambda x: np.logspace(x[0], x[2], 5),
    "trapezoid": lambda x: np.trapezoid(x, UNEVEN),
    "diff": lambda x: np.diff(x, 2),
    "unwrap": np.unwrap,
    "unwrap, period": lambda x: np.unwrap(x, period=4.0),
    "matrix_power": lambda x: np.linalg.matrix_power(x.reshape(2, 2), 3),
    "vander": np.vander,
    "polyval": lambda x: np.polyval([1.0, -2.0, 3.0], x),
    "nanmax": np.nanmax,
    "cross": lambda x: np.cross(x[:3], x[1:]),
    "clip": lambda x: np.clip(x, -1, 2),
    "round": lambda x: np.round(x, 2),
    "angle": np.angle,
    "average": lambda x: np.average(x, weights=[1, 2, 0, 1]),
    "norm": lambda x: np.linalg.norm(x, -INF),
    "logaddexp": lambda x: np.logaddexp(x, x[::-1]),
}
SAMPLED = ("gradient", "gradient, even", "interp, infinite", "linspace", "unwrap, period",
           "matrix_power")  # fmt: skip


def assert_numpys(function: Callable[..., Any], *args: Any, compiled: Any = None) -> None:
    with np.errstate(all="ignore"):
        expected = np.asarray(function(*args))
        found = np.asarray((compiled or fg.jit(function))(*args))
    if found.dtype == np.float32 and expected.dtype == np.float16:
        expected = expected.astype(np.float32)  # which has no arithmetic here
        np.testing.assert_allclose(found, expected, 1e-2)
        return
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    eps = np.finfo(expected.dtype).eps if expected.dtype.kind == "f" else 0.0
    np.testing.assert_allclose(found, expected, 32 * eps)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in SAMPLED else pytest.mark.nightly) for n in FUNCTIONS],
)
def test_composed_functions_at_special_values(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = fg.jit(function)
    for row in ROWS:
        assert_numpys(function, np.array(row), compiled=compiled)
    for row in INTEGERS:
        assert_numpys(function, np.array(row, np.int8), compiled=compiled)
    for row in ROWS[:4]:
        assert_numpys(function, np.array(row, np.float32), compiled=compiled)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradient_along_traced_coordinates() -> None:
    compiled = fg.jit(np.gradient)
    for coordinates in (EVEN, UNEVEN):
        for row in ROWS:
            assert_numpys(np.gradient, np.array(row), coordinates, compiled=compiled)
        numbers = np.array([0.5, -1.0, 2.0, 0.3])
        fg.test_util.check_grads(np.gradient, (numbers, coordinates), 2)
    with pytest.raises(fg.errors.ShapeError, match=r"coordinates, an array of shape \(4,\)"):
        fg.jit(np.gradient)(EVEN, np.arange(3.0))


def test_gradient_of_small_integers_does_not_wrap_around() -> None:
    x = np.array([127, -128, 127], np.int8)
    found = fg.jit(np.gradient)(x)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.gradient(x))


def test_dtypes_and_whole_numbers_of_sequences() -> None:
    x = np.array([1.0, 8.0], np.float32)
    assert fg.jit(lambda x: np.geomspace(x[0], x[1], 4))(x).dtype == np.float64
    assert fg.jit(np.poly)(x).dtype == np.poly(x).dtype == np.float32
    for low, high in ((-3.0, 4.0), (0.0, 3.0), (-0.5, -7.0)):
        expected = np.linspace(low, high, 10, dtype=int)
        found = fg.jit(lambda a, b: np.linspace(a, b, 10, dtype=int))(low, high)
        np.testing.assert_array_equal(found, expected)


def test_differences_of_large_integers_are_unwrapped_exactly() -> None:
    x = np.array([1, 2**53 + 1, 2**53 + 3])
    expected = np.unwrap(x, period=4.0)
    np.testing.assert_array_equal(fg.jit(lambda x: np.unwrap(x, period=4.0))(x), expected)


def test_the_operator_takes_roots() -> None:
    x = np.array([-0.0, 0.0, 4.0, -INF, -1.0])
    with np.errstate(invalid="ignore"):
        expected = x**0.5
    found = fg.jit(lambda x: x**0.5)(x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[:3]), np.signbit(expected[:3]))


@pytest.mark.parametrize("transform", [lambda f: f, fg.jit, fg.vmap])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_infinite_complex_numbers_are_not_lost_among_nan(transform: Any, dtype: Any) -> None:
    x = np.array([[np.nan, complex(np.inf, 3)], [complex(-np.inf, 2), complex(1, np.nan)]], dtype)
    for numpys, ours in ((np.nanmin, fnp.nanmin), (np.nanmax, fnp.nanmax)):
        for y in (x, -x):
            found = transform(lambda row, ours=ours: ours(row, axis=-1))(y)
            np.testing.assert_array_equal(found, numpys(y, axis=-1))


@pytest.mark.parametrize("transform", [lambda f: f, fg.jit, fg.vmap])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_multiples_of_the_least_integer(transform: Any, dtype: Any) -> None:
    least = np.iinfo(dtype).min
    x, y = (a.ravel() for a in np.meshgrid(*[np.array([least, least + 1, -6, 0, 1, 4], dtype)] * 2))
    np.testing.assert_array_equal(transform(fnp.lcm)(x, y), np.lcm(x, y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ufunc", [np.deg2rad, np.rad2deg])
def test_conversions_of_angles_are_numpys_to_the_last_digit(ufunc: Any, dtype: Any) -> None:
    x = np.linspace(-400.0, 400.0, 1001).astype(dtype)
    np.testing.assert_array_equal(fg.jit(ufunc)(x), ufunc(x))
    np.testing.assert_array_equal(fg.vjp(ufunc, x)[0], ufunc(x))


@pytest.mark.parametrize("char", "bBhHiIlL")
def test_reciprocals_of_integers_are_numpys_for_zeros_too(char: str) -> None:
    info = np.iinfo(char)
    x = np.tile(np.array([0, 1, 2, info.min, info.max - 1, info.max], char), 30)
    with np.errstate(all="ignore"):
        expected = np.reciprocal(x)
        for f in (fnp.reciprocal, fg.jit(np.reciprocal), fg.vmap(np.reciprocal)):
            np.testing.assert_array_equal(f(x), expected)
            assert f(x).dtype == expected.dtype


COMPLEX = """
    negative conjugate absolute square reciprocal sqrt exp exp2 expm1 log log2 log10 log1p sin cos
    tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh angle isnan isinf isfinite
"""


def kinds_of(x: Any) -> Any:
    """NaN, infinities and zeros with their signs, and other numbers."""
    signed = np.copysign(np.where(np.isinf(x), 2.0, 1.0), x)
    return np.where(np.isnan(x), 3.0, np.where(np.isinf(x) | (x == 0), signed, 0.0))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", COMPLEX.split())
def test_complex_numbers_of_special_parts(name: str, dtype: Any) -> None:
    ufunc = getattr(np, name)
    sizes = [0.0, 1e-30, 0.5, 1.0, 3.25, 1e5, INF]
    parts = np.array([NAN, *sizes, *(-x for x in sizes)])
    x = np.empty(2 * parts.shape, dtype)
    x.real, x.imag = parts, parts[:, None]
    with np.errstate(all="ignore"):
        expected = ufunc(x)
        results = fg.jit(ufunc)(x), getattr(fnp, name)(x)
    if expected.dtype == bool:
        expected = expected.astype(float)
    for found in results:
        for ours, theirs in ((found.real, expected.real), (found.imag, expected.imag)):
            special = kinds_of(theirs) != 0
            np.testing.assert_array_equal(kinds_of(ours)[special], kinds_of(theirs)[special])
        finite = np.isfinite(expected)
        error = np.abs(found[finite] - expected[finite])
        assert np.all(error <= 1e-5 * np.abs(expected[finite]))


def test_parts_of_complex_numbers_keep_infinities_and_zeros() -> None:
    """A product with i would make NaN of the one and lose the signs of the other."""
    re = np.array([1.0, -0.0, INF, 2.0, NAN, -0.0])
    im = np.array([INF, -0.0, -INF, NAN, 1.0, 3.0])
    z = np.empty(6, complex)
    z.real, z.imag = re, im
    pairs = np.stack([re, im], -1).ravel()
    cases: list[tuple[Any, Any, tuple[Any, ...]]] = [
        (fg.lax.complex, z, (re, im)),
        (lambda x: x.view(complex), z, (pairs,)),
        (
            lambda z: np.nan_to_num(z, posinf=INF, neginf=-INF),
            np.nan_to_num(z, True, 0, INF, -INF),
            (z,),
        ),
    ]
    for f, expected, args in cases:
        for found in (f(*args), fg.jit(f)(*args), fg.vmap(f)(*(a[None] for a in args))[0]):
            np.testing.assert_array_equal(found.view(float), expected.view(float))
            np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected.real))
    assert fg.vjp(np.imag, 1 + 2j)[1](INF)[0] == complex(0, -INF)


def test_entropies_of_what_is_subnormal_are_no_nan() -> None:
    y, x = np.full(40, -1.7632415e-38, np.float32), np.full(40, 2.5, np.float32)
    found = fg.jit(lambda y, x: fg.scipy.special.entr(np.arctan2(y, x)))(y, x)
    assert set(found.tolist()) <= {0.0, -INF}
    assert fg.jit(fg.scipy.special.entr)(np.float32(-1.0)) == -INF


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["entr", "xlogy", "xlog1py"])
def test_infinities_of_formulas_have_the_precision_of_their_arguments(name, dtype):
    """An infinity written as a quotient of numbers was double, and sums of it did not compile."""
    x = np.array([[-1, 0, 1, 2, np.nan, np.inf, 0.5]] * 3, dtype)
    args = (x,) if name == "entr" else (x, x[:, ::-1])

    @fg.jit
    def both(*args):
        y = getattr(fg.scipy.special, name)(*args)
        return y, np.sum(y, -1, keepdims=True)

    values, sums = both(*args)
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(*args)
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    assert values.dtype == sums.dtype == x.dtype
