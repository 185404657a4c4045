"""Values at the edges: NaN, infinities, signed zeros, overflow, subnormals, and result types.

NumPy's own results are the reference; warnings about them are its business.
"""

from __future__ import annotations

import itertools
import operator
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import DtypeError, MissingRuleError
from funcgrad.numpy.elementwise import UFUNCS

EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -5e-324,
     2.2250738585072014e-308, np.pi, 1e-300]
)  # fmt: skip
INTS = "bhilBHIL"
CODES = "?fdFDbhilBHIL"


def edges_of(dtype: Any) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = {0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 2}
        values |= {-1, -2, -7} if dtype.kind == "i" else set()
        return np.array(sorted(values), dtype)
    with np.errstate(all="ignore"):
        return EDGES.astype(dtype)


# The sign of the larger of 0.0 and -0.0 depends on the length of the array in NumPy.
CHOICES = [np.maximum, np.minimum, np.fmax, np.fmin, np.max, np.min]


def assert_same(found: Any, expected: Any, rtol: float = 0.0, signs: bool = True) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if rtol:
        for part in (np.real, np.imag):
            np.testing.assert_allclose(part(found), part(expected), rtol=rtol)
    else:
        np.testing.assert_array_equal(found, expected)
    if expected.dtype.kind == "f" and signs:
        same = np.isnan(expected) | (np.signbit(found) == np.signbit(expected))
        assert same.all(), f"signs of {found} and {expected}"


def check(fun: Callable[..., Any], *args: Any, rtol: float = 0.0, signs: bool = True) -> None:
    with np.errstate(all="ignore"):
        expected = fun(*args)
    f = fg.jit(fun)
    for _ in range(2):
        for place, (x, y) in enumerate(zip(as_tuple(f(*args)), as_tuple(expected), strict=True)):
            try:
                assert_same(x, y, rtol, signs and fun not in CHOICES)
            except AssertionError as error:
                error.add_note(f"result {place}")
                raise


def as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def named(values: list[Any]) -> Any:
    return pytest.mark.parametrize("fun", values, ids=lambda f: getattr(f, "__name__", str(f)))


# Every ufunc, for every type: refused or computed like NumPy.


def complex_edges(code: str) -> np.ndarray:
    """Without huge numbers: products that overflow depend on how NumPy's loops contract them."""
    parts = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 0.5, 2.0**-17])
    z = np.empty((len(parts), len(parts)), code)
    z.real, z.imag = parts[:, None], parts[None, :]
    return z.ravel()


def arguments_of(ufunc: np.ufunc, code: str) -> tuple[np.ndarray, ...]:
    x = complex_edges(code) if code in "FD" else edges_of(code)
    # Single precision takes subnormal numbers for zero, but for their bits.
    if code == "f" and ufunc is not np.nextafter:
        x = x[(x == 0) | ~(np.abs(x) < np.finfo(np.float32).tiny)]
    if ufunc is np.reciprocal and code not in "fd":
        x = x[x != 0]
    return (x[:, None], x[None, :]) if ufunc.nin == 2 else (x,)


EXTENSIONS = {(np.positive, "?"), *itertools.product([np.logaddexp, np.logaddexp2], "FD")}
"""What NumPy refuses and funcgrad computes."""


@pytest.mark.sampled(24)
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_ufunc(ufunc: np.ufunc, code: str) -> None:
    args = arguments_of(ufunc, code)
    f = fg.jit(lambda *args: ufunc(*args))
    try:
        with np.errstate(all="ignore"):
            expected = ufunc(*args)
    except (TypeError, ValueError) as refusal:
        if (ufunc, code) not in EXTENSIONS:
            with pytest.raises((DtypeError, MissingRuleError, type(refusal))):
                f(*args)
        return
    for x, y in zip(as_tuple(f(*args)), as_tuple(expected), strict=True):
        y = np.asarray(y)
        if y.dtype == np.float16:  # which funcgrad does not have
            assert x.dtype in (np.float32, np.float64)
        else:
            assert_same(x, y, RTOL[y.dtype.char], signs=ufunc not in CHOICES)


RTOL = {**dict.fromkeys("?bhilBHIL", 0.0), "f": 2e-6, "F": 3e-6, "d": 1e-14, "D": 1e-13}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("code", "?bhilBHIL")
@named([operator.truediv, operator.floordiv, operator.mod, operator.pow, divmod])
def test_operators_of_exact_numbers(fun: Any, code: str) -> None:
    x = edges_of(code)
    y = x[x >= 0] if fun is operator.pow else x
    with np.errstate(all="ignore"):
        expected = fun(x[:, None], y[None, :])
    found = fg.jit(lambda x, y: fun(x, y))(x[:, None], y[None, :])
    for a, b in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert_same(a, b)


def test_rounded_bools_are_floats() -> None:
    x = np.array([True, False])
    assert_same(fg.jit(np.round)(x), np.round(x).astype(np.float64))
    with pytest.raises(TypeError):
        fg.jit(lambda x: np.round(x, 1))(x)


@pytest.mark.parametrize("code", "fd")
def test_nan_to_num(code: str) -> None:
    check(np.nan_to_num, edges_of(code))


@pytest.mark.parametrize("code", "fd")
def test_positive_zero_is_larger_than_negative_zero(code: str) -> None:
    x = np.array([0.0, -0.0] * 20, code)
    for choose in (np.maximum, np.fmax, lambda x, y: np.max(np.stack([x, y]), axis=0)):
        assert not np.signbit(fg.jit(choose)(x, -x)).any()
    for choose in (np.minimum, np.fmin, lambda x, y: np.min(np.stack([x, y]), axis=0)):
        assert np.signbit(fg.jit(choose)(x, -x)).all()


def test_calls_of_numpy_inside_a_plan_warn_no_more_than_kernels() -> None:
    x, y = np.array([1, 2]), np.array([0, 3])
    f = fg.jit(lambda x, y: np.power(1.0 / x, y).astype(complex) ** (-1.0 / y))
    with np.errstate(all="raise"):
        assert np.isfinite(f(x, y)[1])


# Reductions.


@pytest.mark.sampled(6)
@pytest.mark.parametrize("code", "?fdbhilBHIL")
def test_reductions_of_edges(code: str) -> None:
    x = edges_of(code)
    folds = [np.sum, np.prod, np.any, np.all, np.argmax, np.argmin]
    rtol = {"f": 1e-6, "d": 1e-14}.get(code, 0.0)
    for row in (x, x[::-1], x[:1], x[:2]):
        check(lambda x: tuple(fun(x) for fun in folds), row, rtol=rtol)
        check(lambda x: (np.max(x), np.min(x)), row, signs=False)
        check(np.mean, row, rtol=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", "fd")
@named([np.max, np.min, np.argmax, np.argmin, np.sum, np.prod])
def test_reductions_of_nans(fun: Any, code: str) -> None:
    nan = np.full((3, 40), np.nan, code)
    some = np.arange(120.0).astype(code).reshape(3, 40)
    some[0, 0] = some[1, -1] = np.nan
    infinite = np.full((3, 40), -np.inf, code)
    for x, axis in itertools.product((nan, some, infinite, -infinite), (None, 0, 1)):
        check(lambda x, axis=axis: fun(x, axis=axis), x, rtol=1e-6)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("code", CODES)
@named([np.sum, np.prod])
def test_empty_folds(fun: Any, code: str) -> None:
    for shape in [(0,), (0, 3), (3, 0), (2, 0, 3)]:
        check(lambda x: tuple(fun(x, axis=axis) for axis in (None, 0, -1)), np.zeros(shape, code))


@named([np.max, np.min, np.argmax])
def test_empty_extrema_are_errors(fun: Any) -> None:
    with pytest.raises(ValueError, match="has no value"):
        fg.jit(fun)(np.zeros(0))
    check(lambda x: fun(x, axis=0), np.zeros((3, 0)))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("code", "bhilBHIL")
def test_integer_sums_wrap(code: str) -> None:
    x = np.full(1000, np.iinfo(code).max, code)
    for fun in (np.sum, np.prod, np.cumsum, np.cumprod):
        check(fun, x)
    check(lambda x: np.sum(x.reshape(10, 100), axis=0), x)
    check(lambda x: x * x + x - 3, x)
    check(lambda x: x.sum(dtype=x.dtype), x)


# Types.


@pytest.mark.sampled(6)
@pytest.mark.parametrize("code", CODES)
def test_types_of_results(code: str) -> None:
    def with_all(x: Any, ys: list[Any]) -> tuple[Any, ...]:
        rows = [
            (x + y, x * y, x / y, x == y, np.where(x == 1, x, y), np.concatenate([x, y]), x @ y)
            for y in ys
        ]
        return tuple(itertools.chain(*rows))

    check(with_all, np.array([1, 0, 1], code), [np.array([1, 1, 1], other) for other in CODES])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("code", CODES)
def test_types_with_scalars(code: str) -> None:
    def with_all(x: Any) -> tuple[Any, ...]:
        rows = [
            (x + y, x * y, x / y, y + x, y * x, y / (x + 1), x[0] + y, x[0] * y, x[0] / y)
            for y in (True, 2, 2.0, 2j, np.float32(2), np.float64(2), np.int8(2))
        ]
        return tuple(itertools.chain(*rows))

    check(with_all, np.array([1, 0, 1], code))


def casts_to(targets: str, x: np.ndarray) -> None:
    check(lambda x: tuple(x.astype(target) for target in targets), x)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("source", CODES)
def test_casts(source: str) -> None:
    """Of complex numbers to complex ones: NumPy warns that others drop imaginary parts."""
    kind = np.dtype(source).kind
    targets = CODES if kind != "c" else "FD"
    unsigned = "".join(code for code in targets if np.dtype(code).kind == "u")
    signed = "".join(code for code in targets if code not in unsigned)
    small = [0, 1] if kind == "b" else [0, 1, 2, 100, 127]
    negative = [-1, -100] if kind in "ifc" else []
    casts_to(unsigned, np.array(small, source))
    casts_to(signed, np.array(small + negative, source))
    if kind in "iu":
        casts_to(INTS, edges_of(source))
    if kind == "f":
        x = np.array([1.9, -1.9, 0.5, 100.7], source)
        casts_to(unsigned, np.abs(x))
        casts_to(signed, x)


@pytest.mark.sampled(2)
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="wraps as x86 does")
@pytest.mark.parametrize("code", "fd")
def test_casts_out_of_range(code: str) -> None:
    x = np.array(
        [np.nan, np.inf, -np.inf, 1e10, -1e10, 1e20, -1e20, 300.9, -1.0, -300.0, 7e4, -7e4, 2.0**31,
         2.0**32, 2.0**63, -(2.0**63), 2.0**64, 128.0, -129.0, 255.9, 256.0, 1e19] * 3, code,
    )  # fmt: skip
    for target in "bhilBHL":  # to uint32 NumPy itself has several ways
        check(lambda x, target=target: x.astype(target), x)
        check(lambda x, target=target: x[::-2].astype(target), x)


# Complex numbers.


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", "FD")
def test_complex_arithmetic(code: str) -> None:
    rng = np.random.default_rng(0)
    x, y = ((rng.normal(size=7) + 1j * rng.normal(size=7)).astype(code) for _ in range(2))
    rtol = 1e-5 if code == "F" else 1e-13
    for fun in (
        lambda x, y: x * y - x / y,
        lambda x, y: np.exp(x) + np.sqrt(y),
        lambda x, y: np.abs(x) + np.real(y) - np.imag(x) * np.angle(y),
        lambda x, y: np.conj(x) * y,
        lambda x, y: (x @ y) + np.sum(x) * np.prod(y) + np.mean(y),
        lambda x, y: np.cumsum(x) + np.cumprod(y),
        lambda x, y: np.where(x == y, x, y),
        lambda x, y: x**2 + np.sin(y),
        lambda x, y: np.outer(x, y).T @ np.outer(y, x),
    ):
        check(fun, x, y, rtol=rtol)


def test_complex_edges() -> None:
    parts = np.array([0.0, -0.0, 1.0, -2.0, np.inf, np.nan])
    z = np.empty((6, 6), complex)
    z.real, z.imag = parts[:, None], parts[None, :]
    for fun in (np.isnan, np.isinf, np.isfinite, np.real, np.imag, np.abs):
        check(fun, z)
    check(lambda z: z + z, z)
    check(lambda z: -z, z)
    check(np.conj, z)


# Subnormal numbers.


def test_subnormals() -> None:
    tiny = np.float32(1e-40)
    assert fg.jit(lambda x: x * np.float32(0.5))(np.full(3, tiny)).max() == 0.0
    # In double precision they are numbers like others; see test_modes.py.
    check(lambda x: x * 0.5, np.full(3, 1e-310))
    # The mode of the processor is left as it was found.
    assert (np.full(3, tiny) * np.float32(0.5)).min() > 0.0


def test_flushing_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_KEEP_SUBNORMALS", "1")
    check(lambda x: x * np.float32(0.5), np.full(3, 1e-40, np.float32))
