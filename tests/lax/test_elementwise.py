"""Elementwise functions of lax: values, dtypes, and strictness."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from tests.lax.agreement import FLOATS, INEXACT, INTEGERS, NUMBERS, REAL, SIGNED, check, sample

# function -> (reference, dtypes, range of arguments)
UNARY = {
    "neg": (np.negative, (*SIGNED, *INEXACT), (-2, 2)),
    "sign": (np.sign, NUMBERS, (-2, 2)),
    "floor": (np.floor, FLOATS, (-2, 2)),
    "ceil": (np.ceil, FLOATS, (-2, 2)),
    "abs": (np.abs, (*SIGNED, *INEXACT), (-2, 2)),
    "exp": (np.exp, INEXACT, (-3, 3)),
    "exp2": (np.exp2, INEXACT, (-3, 3)),
    "expm1": (np.expm1, INEXACT, (-1, 1)),
    "log": (np.log, INEXACT, (0.1, 3)),
    "log1p": (np.log1p, INEXACT, (-0.5, 3)),
    "sqrt": (np.sqrt, INEXACT, (0.1, 3)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), INEXACT, (0.1, 3)),
    "cbrt": (np.cbrt, FLOATS, (0.1, 3)),
    "sin": (np.sin, INEXACT, (-3, 3)),
    "cos": (np.cos, INEXACT, (-3, 3)),
    "tan": (np.tan, INEXACT, (-1, 1)),
    "asin": (np.arcsin, INEXACT, (-0.9, 0.9)),
    "acos": (np.arccos, INEXACT, (-0.9, 0.9)),
    "atan": (np.arctan, INEXACT, (-0.9, 0.9)),
    "sinh": (np.sinh, INEXACT, (-3, 3)),
    "cosh": (np.cosh, INEXACT, (-3, 3)),
    "tanh": (np.tanh, INEXACT, (-3, 3)),
    "asinh": (np.arcsinh, INEXACT, (-3, 3)),
    "acosh": (np.arccosh, INEXACT, (1.1, 3)),
    "atanh": (np.arctanh, INEXACT, (-0.9, 0.9)),
    "logistic": (lambda x: (1 / (1 + np.exp(-x))).astype(x.dtype), INEXACT, (-3, 3)),
    "is_finite": (np.isfinite, FLOATS, (-1, 1)),
    "real": (np.real, ("complex64", "complex128"), (-1, 1)),
    "imag": (np.imag, ("complex64", "complex128"), (-1, 1)),
    "conj": (np.conj, ("complex64", "complex128"), (-1, 1)),
    "bitwise_not": (np.invert, ("bool", *INTEGERS), (0, 1)),
    "square": (lambda x: x * x, NUMBERS, (-2, 2)),
    "reciprocal": (lambda x: 1 / x, INEXACT, (0.5, 2)),
}
BINARY = {
    "add": (np.add, NUMBERS, (-2, 2)),
    "sub": (np.subtract, NUMBERS, (-2, 2)),
    "mul": (np.multiply, NUMBERS, (-2, 2)),
    "div": (np.true_divide, INEXACT, (0.5, 2)),
    "rem": (np.fmod, FLOATS, (0.5, 2)),
    "pow": (np.power, INEXACT, (0.5, 2)),
    "max": (np.maximum, REAL, (-2, 2)),
    "min": (np.minimum, REAL, (-2, 2)),
    "atan2": (np.arctan2, FLOATS, (-2, 2)),
    "nextafter": (np.nextafter, FLOATS, (-2, 2)),
    "eq": (np.equal, ("bool", *NUMBERS), (-2, 2)),
    "ne": (np.not_equal, ("bool", *NUMBERS), (-2, 2)),
    "lt": (np.less, REAL, (-2, 2)),
    "le": (np.less_equal, REAL, (-2, 2)),
    "gt": (np.greater, REAL, (-2, 2)),
    "ge": (np.greater_equal, REAL, (-2, 2)),
    "bitwise_and": (np.bitwise_and, ("bool", *INTEGERS), (0, 1)),
    "bitwise_or": (np.bitwise_or, ("bool", *INTEGERS), (0, 1)),
    "bitwise_xor": (np.bitwise_xor, ("bool", *INTEGERS), (0, 1)),
}


def rows(table):
    return [(name, dtype) for name, (_, dtypes, _) in table.items() for dtype in dtypes]


@pytest.mark.parametrize(("name", "dtype"), rows(UNARY))
def test_unary(name, dtype):
    reference, _, (low, high) = UNARY[name]
    check(getattr(lax, name), reference, sample(dtype, low=low, high=high))


@pytest.mark.parametrize(("name", "dtype"), rows(BINARY))
def test_binary(name, dtype):
    reference, _, (low, high) = BINARY[name]
    x, y = (sample(dtype, seed=seed, low=low, high=high) for seed in (1, 2))
    check(getattr(lax, name), reference, x, y)


@pytest.mark.parametrize("name", BINARY)
def test_binary_refuses_mixed_dtypes(name):
    first, second = BINARY[name][1][0], BINARY[name][1][-1]
    with pytest.raises(DtypeError, match=rf"lax\.{name} .*one dtype|integer_pow"):
        getattr(lax, name)(sample(first), sample(second if second != "bool" else "int8"))


@pytest.mark.parametrize("shapes", [((2, 3), (2, 1)), ((1, 3), (2, 1)), ((1, 1), (2, 3))])
@pytest.mark.parametrize("name", BINARY)
def test_axes_of_length_1_are_repeated(name, shapes):
    reference, dtypes, (low, high) = BINARY[name]
    x, y = (
        sample(dtypes[0], shape, seed, low=low, high=high)
        for shape, seed in zip(shapes, (1, 2), strict=True)
    )
    check(getattr(lax, name), reference, x, y)


@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((2, 3), (2, 2)), ((1,), (2, 3))])
@pytest.mark.parametrize("name", BINARY)
def test_binary_adds_no_axes(name, shapes):
    dtype = BINARY[name][1][0]
    with pytest.raises(ShapeError, match=rf"lax\.{name} .*equal in number"):
        getattr(lax, name)(*(sample(dtype, shape) for shape in shapes))


@pytest.mark.parametrize("name", [n for n in (*UNARY, *BINARY) if n not in ("square", "pow")])
def test_containers_are_refused(name):
    args = ([1.0, 2.0],) if name in UNARY else ([1.0, 2.0], 1.0)
    with pytest.raises(ArgumentError, match="list"):
        getattr(lax, name)(*args)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("exp", "int64"), ("floor", "complex128"), ("bitwise_not", "float64"), ("neg", "bool")],
)
def test_undefined_dtypes_are_refused(name, dtype):
    with pytest.raises(DtypeError, match=rf"lax\.{name} is not defined"):
        getattr(lax, name)(sample(dtype))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_python_scalars_take_the_dtype_of_arrays(dtype):
    check(lambda x: lax.add(x, 1), lambda x: x + np.dtype(dtype).type(1), sample(dtype))
    check(lambda x: lax.mul(2, x), lambda x: np.dtype(dtype).type(2) * x, sample(dtype))


def test_python_scalars_never_lift_the_kind():
    with pytest.raises(DtypeError, match=r"lax\.add .*i64"):
        lax.add(np.arange(3), 0.5)
    with pytest.raises(DtypeError, match=r"lax\.add .*f32"):
        lax.add(np.ones(3, np.float32), 1j)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_quotients_truncate(dtype):
    x = sample(dtype, (200,), seed=4)
    y = sample(dtype, (200,), seed=5)
    y[y == 0] = 3
    expected = np.trunc(x.astype(np.float64) / y.astype(np.float64)).astype(dtype)
    check(lax.div, lambda *_: expected, x, y)
    check(lax.rem, np.fmod, x, y)
    np.testing.assert_array_equal(lax.add(lax.mul(lax.div(x, y), y), lax.rem(x, y)), x)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype):
    x, y = sample(dtype), np.abs(sample(dtype, seed=1)) % np.dtype(dtype).type(7)
    unsigned = f"u{np.dtype(dtype).itemsize}"
    check(lax.shift_left, np.left_shift, x, y)
    check(lax.shift_right_arithmetic, np.right_shift, x, y)
    check(
        lax.shift_right_logical,
        lambda a, b: (a.astype(unsigned) >> b.astype(unsigned)).astype(dtype),
        x,
        y,
    )
    counts = np.array([bin(int(v)).count("1") for v in x.astype(unsigned).ravel()], dtype)
    check(lax.population_count, lambda a: counts.reshape(a.shape), x)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5])
def test_integer_pow(dtype, exponent):
    power = np.dtype(dtype).type(exponent)
    check(lambda x: lax.integer_pow(x, exponent), lambda x: np.power(x, power), sample(dtype))
    check(lambda x: lax.pow(x, exponent), lambda x: np.power(x, power), sample(dtype))


def test_integer_pow_of_negative_exponents():
    x = sample("float32", low=0.5)
    check(lambda v: lax.integer_pow(v, -2), lambda v: v**-2, x)
    with pytest.raises(ArgumentError, match="-1"):
        lax.integer_pow(np.arange(3), -1)


def test_pow_with_integer_exponents():
    x, n = sample("float64", low=0.5), sample("int32", seed=3)
    check(lax.pow, lambda a, b: a**b, x, n)


@pytest.mark.parametrize("dtype", FLOATS)
def test_round(dtype):
    below_half = np.nextafter(np.dtype(dtype).type(0.5), np.dtype(dtype).type(0))
    x = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.2, -7.7, 0, below_half], dtype)
    away = np.array([1, -1, 2, 3, -3, 0, -8, 0, 0], dtype)
    check(lax.round, lambda _: away, x)
    check(lambda v: lax.round(v, lax.RoundingMethod.TO_NEAREST_EVEN), np.rint, x)


@pytest.mark.parametrize("dtype", REAL)
def test_clamp(dtype):
    x, scalar = sample(dtype, (20,)), np.dtype(dtype).type
    check(
        lambda v: lax.clamp(scalar(1), v, scalar(2)), lambda v: np.clip(v, scalar(1), scalar(2)), x
    )
    low, high = sample(dtype, (20,), seed=1), sample(dtype, (20,), seed=2)
    check(lax.clamp, lambda a, v, b: np.minimum(np.maximum(v, a), b), low, x, high)
    with pytest.raises(ShapeError, match=r"lax\.clamp"):
        lax.clamp(low[:3], x, high)


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_select(dtype):
    which, x, y = sample("bool", seed=9), sample(dtype, seed=1), sample(dtype, seed=2)
    check(lax.select, np.where, which, x, y)
    check(lax.select_n, lambda w, a, b: np.where(w, b, a), which, x, y)
    check(lambda a, b: lax.select(True, a, b), lambda a, b: a, x, y)


def test_select_n_of_many_cases():
    which = np.array([0, 2, 1, 3, 0])
    cases = [sample("float64", (5,), seed=i) for i in range(4)]
    check(lax.select_n, choose, which, *cases)
    with pytest.raises(ShapeError, match=r"lax\.select_n"):
        lax.select_n(which, *[c[:, None] for c in cases])
    with pytest.raises(ArgumentError, match="2 cases"):
        lax.select_n(which > 1, *cases)
    with pytest.raises(DtypeError, match=r"lax\.select_n"):
        lax.select_n(which > 1, cases[0], cases[1].astype(np.float32))


def choose(which, *cases):
    return np.stack(cases)[which, np.arange(len(which))]


@pytest.mark.parametrize("dtype", FLOATS)
def test_complex(dtype):
    target = np.result_type(dtype, np.complex64)
    x, y = sample(dtype), sample(dtype, seed=1)
    check(lax.complex, lambda a, b: (a + 1j * b).astype(target), x, y)
    check(lax.conj, lambda a: a.astype(target), x)


@pytest.mark.parametrize("source", ["bool", "int8", "uint64", "float32", "complex128"])
@pytest.mark.parametrize("target", ["bool", "int32", "uint8", "float64", "complex64"])
def test_convert_element_type(source, target):
    x = np.abs(sample(source)) if source != "bool" else sample(source)
    check(lambda v: lax.convert_element_type(v, target), lambda v: v.astype(target), x)
    assert lax.convert_element_type(1, target).dtype == target


def test_convert_element_type_drops_imaginary_parts():
    z = sample("complex128")
    check(lambda v: lax.convert_element_type(v, np.float32), lambda v: v.real.astype(np.float32), z)


def test_bitcast_convert_type():
    x = sample("float64")
    check(lambda v: lax.bitcast_convert_type(v, np.uint64), lambda v: v.view(np.uint64), x)
    words = x.view(np.uint32).reshape(2, 3, 2)
    check(lambda v: lax.bitcast_convert_type(v, np.uint32), lambda _: words, x)
    check(lambda v: lax.bitcast_convert_type(v, np.float64), lambda _: x, words)


def test_stop_gradient_of_a_tree():
    def f(x):
        kept = lax.stop_gradient({"a": x, "b": (x,)})
        return kept["a"] * kept["b"][0] * x

    assert fg.grad(f)(3.0) == 9.0


def test_dtype():
    assert lax.dtype(np.float32(1)) == np.float32
    assert lax.dtype(1.0) == np.float64
    with pytest.raises(DtypeError, match="None"):
        lax.dtype(None)


SPECIAL = {
    "erf": (scipy.special.erf, (-2, 2)),
    "erfc": (scipy.special.erfc, (-2, 2)),
    "erf_inv": (scipy.special.erfinv, (-0.9, 0.9)),
    "lgamma": (scipy.special.gammaln, (0.5, 3)),
    "digamma": (scipy.special.psi, (0.5, 3)),
    "bessel_i0e": (scipy.special.i0e, (-3, 3)),
    "bessel_i1e": (scipy.special.i1e, (-3, 3)),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SPECIAL)
def test_special(name, dtype):
    reference, (low, high) = SPECIAL[name]
    check(getattr(lax, name), reference, sample(dtype, low=low, high=high))


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_of_several_arguments(dtype):
    a, b, x = (sample(dtype, seed=i, low=0.5, high=3) for i in range(3))
    u = sample(dtype, seed=3, low=0.1, high=0.9)
    check(lax.igamma, scipy.special.gammainc, a, x)
    check(lax.igammac, scipy.special.gammaincc, a, x)
    check(lambda v: lax.betainc(a, b, v), lambda v: scipy.special.betainc(a, b, v), u)
    check(lambda v: lax.zeta(a + 1, v), lambda v: scipy.special.zeta(a + 1, v).astype(dtype), x)
    order = np.full_like(x, 2)
    check(
        lambda v: lax.polygamma(order, v),
        lambda v: scipy.special.polygamma(2, v).astype(dtype),
        x,
    )
    with pytest.raises(DtypeError, match=r"lax\.igamma"):
        lax.igamma(a, x.astype(np.complex64))
    with pytest.raises(ShapeError, match=r"lax\.igamma"):
        lax.igamma(a, x[0])
