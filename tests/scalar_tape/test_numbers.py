"""Eager gradients of numbers, whose operations take a short path through the trace.

Every program is checked against its derivatives by hand, and bit by bit against `vjp`, whose tape
is kept and therefore long.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import NonFiniteError
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.elementwise import Convert, IntegerPower

CONVERSIONS = [Convert(np.dtype(np.float64))]
POWERS = [IntegerPower(n) for n in (0, 1, 2, 3, 7, -1, -2)]
PRIMITIVES = [
    q
    for q in [*vars(p).values(), *POWERS, *CONVERSIONS]
    if getattr(q, "at_numbers", None) and hasattr(q, "impl")
]
PRIMITIVES = [q for q in PRIMITIVES if not isinstance(q, type)]
TWO = [q for q in PRIMITIVES if isinstance(q, (p.Sum, p.Product, p.Quotient, p.Choice))]
OF_COMPLEX = (p.real, p.imag)
ONE = [q for q in PRIMITIVES if q not in TWO and q not in OF_COMPLEX]


def slope_of(function, x):
    h = 1e-5 * max(abs(x), 0.1)
    ends = [float(function(np.float64(x + k * h))) for k in (1, -1, 2, -2)]
    return (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * h)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("x", [-3.7, -0.4, 0.3, 0.9, 1.8, 11.5])
@pytest.mark.parametrize("primitive", ONE, ids=str)
def test_rules_for_one_number_agree_with_finite_differences(primitive, x):
    x = np.float64(x)
    found = primitive.at_numbers(x)
    if found is None:
        value = primitive.impl(x)
        assert not np.isfinite(value) or primitive in (*POWERS[:2], *POWERS[-2:])
        return
    assert found[0] == primitive.impl(x)
    assert found[1] == pytest.approx(slope_of(primitive.impl, x), rel=1e-6, abs=1e-6)


def rosenbrock(p):
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in itertools.pairwise(p))


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize(
    ("function", "x"),
    [
        (np.tanh, 0.3),
        (lambda x: np.exp(-x) * x + x**2 / (1 + x), np.float64(0.7)),
        (rosenbrock, [0.1, -0.4, 1.2]),
    ],
)
def test_the_tape_of_scalars_can_be_switched_off(monkeypatch, function, x, is_on):
    expected, pull = fg.vjp(function, x)
    seen = []
    monkeypatch.setattr("funcgrad.scalar_tape.trace.IS_ON", is_on)
    value, slope = fg.value_and_grad(lambda x: seen.append(x) or function(x))(x)
    assert (value, slope) == (expected, pull(np.float64(1.0))[0])
    kinds = {type(leaf).__name__ for leaf in fg.tree_util.tree_leaves(seen)}
    assert kinds == {"NumberTracer" if is_on else "LinearizeTracer"}


@pytest.mark.parametrize("primitive", TWO, ids=str)
def test_rules_for_two_numbers_agree_with_finite_differences(primitive):
    x, y = np.float64(1.7), np.float64(-0.6)
    out, dx, dy = primitive.at_numbers(x, y)
    assert out == primitive.impl(x, y)
    slopes = (
        slope_of(lambda x: primitive.impl(x, y), x),
        slope_of(lambda y: primitive.impl(x, y), y),
    )
    assert (1.0 * dx, 1.0 * dy) == pytest.approx(slopes, rel=1e-8, abs=1e-10)


def test_sums_products_powers_and_functions_have_such_rules():
    assert set(TWO) == {p.add, p.sub, p.mul, p.div, p.maximum, p.minimum}
    assert {p.tanh, p.exp, p.log, p.sin, p.sqrt, p.neg, p.relu, p.absolute} <= set(ONE)


@pytest.mark.parametrize(
    ("primitive", "numbers"),
    [
        (p.mul, (1e200, 1e200)),
        (p.mul, (math.inf, 1.0)),
        (p.mul, (0.0, math.inf)),
        (p.add, (1.7e308, 1.7e308)),
        (p.sub, (math.inf, math.inf)),
        (p.add, (math.nan, 1.0)),
        (p.log, (np.float64(0.0),)),
        (p.sqrt, (np.float64(0.0),)),
        (p.exp, (np.float64(1000.0),)),
        (p.div, (1.0, 0.0)),
        (p.div, (0.0, np.float64(0.0))),
        (p.div, (1.0, math.inf)),
        (p.div, (1e300, 1e-300)),
        (p.maximum, (1.0, 1.0)),
        (p.maximum, (math.nan, 1.0)),
        (p.minimum, (0.0, -0.0)),
        (p.absolute, (0.0,)),
        (p.absolute, (math.nan,)),
        (p.relu, (math.inf,)),
        (p.neg, (math.nan,)),
        (Convert(np.dtype(np.float32)), (1.0,)),
        (Convert(np.dtype(np.float64), weak=True), (1.0,)),
        (IntegerPower(2), (1e200,)),
        (IntegerPower(-1), (np.float64(0.0),)),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rules_decline_what_is_not_finite(primitive, numbers):
    assert primitive.at_numbers(*numbers) is None


def branch(x, y):
    return x * y if x > 0 else y - x


PROGRAMS = {
    "product": (lambda x, y: x * y, lambda x, y: (y, x)),
    "reused": (lambda x, y: x * x * y + x, lambda x, y: (2 * x * y + 1, x * x)),
    "same twice": (
        lambda x, y: (x + x) * (y - y * x),
        lambda x, y: (2 * y - 4 * x * y, 2 * x - 2 * x * x),
    ),
    "constants": (lambda x, y: 3 * x - y * 2.5 + (1 - x), lambda x, y: (2.0, -2.5)),
    "numpy constants": (
        lambda x, y: np.float64(3) * x - y * np.float32(2),
        lambda x, y: (3.0, -2.0),
    ),
    "sum": (lambda x, y: sum([x, y, x * y]), lambda x, y: (1 + y, 1 + x)),
    "powers": (lambda x, y: x**3 + y**2 + x**1 + y**0, lambda x, y: (3 * x * x + 1, 2 * y)),
    "quotient": (lambda x, y: x / y + 1 / y, lambda x, y: (1 / y, -(x + 1) / y**2)),
    "divisions": (
        lambda x, y: 1 / (x * x + 1) + x / 4 - 2.0 / (y - 3),
        lambda x, y: (-2 * x / (x * x + 1) ** 2 + 0.25, 2 / (y - 3) ** 2),
    ),
    "choices": (
        lambda x, y: np.maximum(x, 0.25) * y + np.minimum(x, y) + abs(y),
        lambda x, y: ((x > 0.25) * y + (x < y), max(x, 0.25) + (y < x) + np.sign(y)),
    ),
    "functions": (
        lambda x, y: fg.nn.relu(x) * y + fg.nn.sigmoid(y) + fg.numpy.tanh(x),
        lambda x, y: (
            (x > 0) * y + 1 / np.cosh(x) ** 2,
            max(x, 0.0) + 0.25 / np.cosh(y / 2) ** 2,
        ),
    ),
    "logarithms": (
        lambda x, y: np.log(x * x + y * y) + fg.numpy.log1p(y * y) + np.sqrt(x * x),
        lambda x, y: (
            2 * x / (x * x + y * y) + np.sign(x),
            2 * y / (x * x + y * y) + 2 * y / (1 + y * y),
        ),
    ),
    "negative": (lambda x, y: -x * -y, lambda x, y: (y, x)),
    "ufuncs": (
        lambda x, y: np.tanh(x) * np.sin(y) + np.exp(x * y),
        lambda x, y: (
            np.sin(y) / np.cosh(x) ** 2 + y * np.exp(x * y),
            np.tanh(x) * np.cos(y) + x * np.exp(x * y),
        ),
    ),
    "through arrays": (
        lambda x, y: np.sum(np.stack([x * y, x + y]) * np.array([1.0, 2.0])) * x,
        lambda x, y: (2 * x * y + 4 * x + 2 * y, x * x + 2 * x),
    ),
    "element": (lambda x, y: np.stack([x, x * y])[1] * y, lambda x, y: (y * y, 2 * x * y)),
    "branch": (branch, lambda x, y: (y, x) if x > 0 else (-1.0, 1.0)),
    "where": (
        lambda x, y: np.where(x > 0, x * y, y - x),
        lambda x, y: (y, x) if x > 0 else (-1.0, 1.0),
    ),
    "unused": (lambda x, y: x * 2.0, lambda x, y: (2.0, 0.0)),
    "stopped": (lambda x, y: x * fg.stop_gradient(x * y), lambda x, y: (x * y, 0.0)),
    "inner gradient": (
        lambda x, y: fg.grad(lambda x: x * x * x * y)(x) * y,
        lambda x, y: (6 * x * y * y, 6 * x * x * y),
    ),
    "inner function": (
        lambda x, y: fg.jit(lambda x: x * y + x)(x) * y,
        lambda x, y: (y * y + y, 2 * x * y + x),
    ),
    "inner tangent": (
        lambda x, y: fg.jvp(lambda x: x * x * y, (x,), (y * 1.0,))[1],
        lambda x, y: (2 * y * y, 4 * x * y),
    ),
    "loop": (
        lambda x, y: fg.lax.fori_loop(0, 3, lambda i, c: c * y, x * 1.0),
        lambda x, y: (y**3, 3 * x * y * y),
    ),
}

POINTS = [
    (1.5, -0.5),
    (np.float64(1.5), np.float64(-0.5)),
    (-1.25, np.float64(0.75)),
    (np.array(-2.0), 0.5),
]


@pytest.mark.parametrize("point", POINTS, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_by_hand(name, point):
    function, by_hand = PROGRAMS[name]
    value, found = fg.value_and_grad(function, argnums=(0, 1))(*point)
    np.testing.assert_allclose(found, by_hand(*map(float, point)), rtol=1e-13)
    assert all(type(g) in (np.float64, np.ndarray) and g.dtype == np.float64 for g in found)
    out, pull = fg.vjp(function, *point)
    assert value == out
    np.testing.assert_array_equal(found, pull(np.float64(1.0)))


ODD = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e200, -1e308, 5e-324)


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name", [name for name in PROGRAMS if name not in ("inner function", "loop")]
)
def test_gradients_at_odd_numbers_are_those_of_a_kept_tape(name):
    function, _ = PROGRAMS[name]
    for x in ODD:
        for y in (*ODD, 2.0):
            value, found = fg.value_and_grad(function, argnums=(0, 1))(np.float64(x), np.float64(y))
            out, pull = fg.vjp(function, np.float64(x), np.float64(y))
            np.testing.assert_array_equal(value, out)
            np.testing.assert_array_equal(found, pull(np.float64(1.0)), err_msg=f"{x} {y}")


def test_an_arm_that_is_not_taken_contributes_nothing():
    def function(x):
        return np.where(x > 0, np.log(x) * x, 0.0) + np.where(x > 0, 1.0, 1 / (x * x))

    with np.errstate(all="ignore"):
        assert fg.grad(lambda x: np.where(x > 0, np.log(x) * x, x))(np.float64(0.0)) == 1.0
        assert fg.grad(function)(np.float64(2.0)) == pytest.approx(np.log(2.0) + 1)


@pytest.mark.parametrize("scalar", [np.float32, np.float16, np.longdouble, int, bool, complex])
def test_other_numbers_take_the_long_path(scalar):
    if scalar is np.float32:
        found = fg.grad(lambda x: x * x + x)(scalar(1.5))
        assert (found, found.dtype) == (4.0, np.float32)
    else:
        with pytest.raises(TypeError):
            fg.grad(lambda x: x * x + x)(scalar(1))


def test_the_value_keeps_its_kind():
    assert type(fg.value_and_grad(lambda x: x * 2.0)(1.5)[0]) is float
    assert type(fg.value_and_grad(lambda x: x * 2.0)(np.float64(1.5))[0]) is np.float64
    assert type(fg.value_and_grad(np.tanh)(1.5)[0]) is np.float64


def test_extra_results_are_numbers():
    (value, (a, b)), slope = fg.value_and_grad(lambda x: (x * x, (x * 3.0, 2.0)), has_aux=True)(2.0)
    assert (value, a, b, slope) == (4.0, 6.0, 2.0, 4.0)


def test_rules_of_ones_own_are_kept():
    @fg.custom_jvp
    def twice(x):
        return 2.0 * x

    @twice.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return twice(x), 10.0 * t

    assert fg.grad(lambda x: twice(x * x) * x)(3.0) == 10.0 * 2 * 3.0 * 3.0 + 2.0 * 9.0


def test_a_nan_is_found_where_it_appears():
    with fg.debug_nans(True), pytest.raises(NonFiniteError, match="log"):
        fg.grad(lambda x: np.log(x * 1.0) * x)(-1.0)


def test_traced_numbers_are_checked_when_they_leave():
    kept = []
    fg.grad(lambda x: kept.append(x * 2.0) or x * x)(1.5)
    with pytest.raises(fg.errors.UnexpectedTracerError):
        kept[0] * 2.0


def test_the_network_of_41_numbers():
    rng = np.random.default_rng(0)
    sizes = (3, 4, 4, 1)
    params = [rng.uniform(-1, 1, (n, m + 1)) for m, n in itertools.pairwise(sizes)]
    points, targets = rng.normal(size=(4, 3)), rng.normal(size=4)

    def loss(units):
        total = 0.0
        for x, y in zip(points.tolist(), targets.tolist(), strict=True):
            for layer in units:
                x = [
                    np.tanh(sum((w * v for w, v in zip(u, x, strict=False)), u[-1])) for u in layer
                ]
            total += (x[0] - y) ** 2
        return total

    found = fg.grad(loss)([w.tolist() for w in params])
    rows = [points]
    for w in params:
        rows.append(np.tanh(rows[-1] @ w[:, :-1].T + w[:, -1]))
    cotangent = 2 * (rows[-1] - targets[:, None])
    for w, given, out, slopes in zip(
        params[::-1], rows[-2::-1], rows[:0:-1], found[::-1], strict=True
    ):
        cotangent = cotangent * (1 - out**2)
        np.testing.assert_allclose(
            np.array(slopes)[:, :-1], cotangent.T @ given, rtol=1e-11, atol=1e-14
        )
        np.testing.assert_allclose(np.array(slopes)[:, -1], cotangent.sum(axis=0), rtol=1e-11)
        cotangent = cotangent @ w[:, :-1]
