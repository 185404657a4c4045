"""Taylor series agree with derivatives of derivatives, and cost as products of polynomials do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import MissingRuleError
from funcgrad.experimental.jet import jet
from funcgrad.higher_order.taylor import taylor_flat
from funcgrad.transforms.jvp import jvp_flat
from tests.cases import CASES, Case

ROWS = [(case, dtype) for case in CASES if case.order for dtype in case.dtypes]
IDS = [f"{case.name}-{np.dtype(dtype).name}" for case, dtype in ROWS]
ORDER = 3


def observed(case: Case, *args: Any) -> list[Any]:
    out = case.primitive.bind(*args)
    outs = list(out) if case.primitive.multiple_results else [out]
    return outs if case.observe is None else case.observe(*outs)


def polynomial(terms: list[Any], t: Any) -> Any:
    total = terms[0]
    for k, c in enumerate(terms[1:], 1):
        total = total + c * (t**k).astype(total.dtype)
    return total


def nested(function: Callable[..., list[Any]], args: list[Any], order: int) -> list[list[Any]]:
    """Derivatives along a curve, by forward mode of forward mode."""

    def image(t: Any) -> list[Any]:
        xs = [
            terms[0]
            if len(terms) == 1
            else sum(c * t**k for k, c in enumerate(terms[1:], 1)) + terms[0]
            for terms in args
        ]
        return function(*xs)

    def derivative(of: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
        def run(t: Any) -> list[Any]:
            outs, dots = jvp_flat(of, [t], [np.ones((), t.dtype)], "law")
            return [
                np.zeros(np.shape(x)) if d is None else d for x, d in zip(outs, dots, strict=True)
            ]

        return run

    found, of = [], image
    for k in range(order + 1):
        found.append([np.asarray(y) / math.factorial(k) for y in of(np.float64(0.0))])
        of = derivative(of)
    return [list(terms) for terms in zip(*found, strict=True)]


def curve(case: Case, dtype: str) -> list[list[Any]]:
    rng = np.random.default_rng(3)
    args = case.draw(dtype)
    chosen = range(len(args)) if case.differentiable is None else case.differentiable

    def term(x: Any, size: float) -> Any:
        v = size * rng.standard_normal(np.shape(x))
        if np.asarray(x).dtype.kind == "c":
            v = v + 1j * size * rng.standard_normal(np.shape(x))
        return np.asarray(v, np.asarray(x).dtype)[()]

    return [
        [x, term(x, 0.3), term(x, 0.1)] if i in chosen and np.asarray(x).dtype.kind in "fc" else [x]
        for i, x in enumerate(args)
    ]


def check_row(case: Case, dtype: str) -> None:
    args = curve(case, dtype)
    order = ORDER if case.order > 1 else 1  # more than one does not exist there
    with np.errstate(all="ignore"):
        try:
            expected = nested(lambda *xs: observed(case, *xs), args, order)
        except MissingRuleError:
            order = case.order
            expected = nested(lambda *xs: observed(case, *xs), args, order)
        found = taylor_flat(lambda *xs: observed(case, *xs), args, order, "law")
    tolerance = 1e-8 if dtype in "dD" else 2e-3
    for terms, numbers in zip(found, expected, strict=True):
        scale = max((float(np.max(np.abs(y), initial=0)) for y in numbers), default=0.0) + 1e-30
        for k, number in enumerate(numbers):
            term = np.zeros(np.shape(number)) if terms[k] is None else np.asarray(terms[k])
            assert term.shape == np.shape(number)
            if terms[k] is not None:
                assert term.dtype == np.asarray(terms[0]).dtype
            error = float(np.max(np.abs(term - number), initial=0))
            assert error <= tolerance * scale, f"order {k}: {error:.2e} at scale {scale:.2e}"


CHOSEN = {
    "add", "bessel_jv", "betainc", "cholesky", "contract", "convolution", "cumprod", "det", "div",
    "eigh", "erf", "exp", "fft", "gather", "hypot", "inv", "lgamma", "log", "logistic", "max",
    "mul", "pow", "reduce_max", "reduce_prod", "reduce_sum", "scale", "scatter_mul", "select",
    "sin", "sort", "sqrt", "tan", "tanh", "triangular_solve", "unscale",
}  # fmt: skip
SAMPLE = [i for i, (case, _) in enumerate(ROWS) if case.primitive.name in CHOSEN][::8]


@pytest.mark.parametrize(("case", "dtype"), [ROWS[i] for i in SAMPLE], ids=[IDS[i] for i in SAMPLE])
def test_rows(case: Case, dtype: str) -> None:
    check_row(case, dtype)


@pytest.mark.nightly
@pytest.mark.parametrize(("case", "dtype"), ROWS, ids=IDS)
def test_every_row(case: Case, dtype: str) -> None:
    check_row(case, dtype)


FUNCTIONS = {
    "exp": (np.exp, mpmath.exp), "sin": (np.sin, mpmath.sin), "tan": (np.tan, mpmath.tan),
    "tanh": (np.tanh, mpmath.tanh), "log": (np.log, mpmath.log), "sqrt": (np.sqrt, mpmath.sqrt),
    "arctan": (np.arctan, mpmath.atan), "arccosh": (lambda x: np.arccosh(x + 1),
                                                   lambda x: mpmath.acosh(x + 1)),
    "power": (lambda x: x**2.5, lambda x: x**2.5), "cube": (lambda x: x**3, lambda x: x**3),
    "x to the x": (lambda x: x**x, lambda x: x**x), "erf": (special.erf, mpmath.erf),
    "gammaln": (special.gammaln, mpmath.loggamma),
    "j0": (special.j0, lambda x: mpmath.besselj(0, x)),
    "quotient": (lambda x: x / (1 + x * x), lambda x: x / (1 + x * x)),
    "expit": (special.expit, lambda x: 1 / (1 + mpmath.exp(-x))),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_coefficients_of_high_order(name: str) -> None:
    function, reference = FUNCTIONS[name]
    with mpmath.workdps(40):
        expected = [float(mpmath.diff(reference, mpmath.mpf("0.7"), k)) for k in range(9)]
    y, terms = jet(function, (0.7,), ((1.0, *[0.0] * 7),))
    np.testing.assert_allclose([y, *terms], expected, rtol=1e-9, atol=1e-9)


def scanned(x: Any) -> Any:
    last, ys = lax.scan(lambda c, t: (np.sin(c * x) + t * c, c**2), x, np.arange(4.0))
    return last + ys.sum()


def repeated(x: Any) -> Any:
    state = (0, x * x)
    return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, np.cos(c[1]) * x), state)[1]


@fg.custom_jvp
def by_own_jvp(x: Any) -> Any:
    return np.sin(x)


@by_own_jvp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return by_own_jvp(primals[0]), 2 * np.cos(primals[0]) * tangents[0]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "jit": fg.jit(lambda x: np.exp(np.sin(x))),
    "jit of series": lambda x: fg.jit(lambda y: y * np.sin(y))(x * x) * x,
    "checkpoint": fg.checkpoint(lambda x: np.exp(x) * x),
    "scan": scanned,
    "while": repeated,
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: c * x + i, x),
    "cond": lambda x: lax.cond(x > 0.5, lambda x: np.exp(x) * x, lambda x: x, x),
    "switch": lambda x: lax.switch(1, [np.sin, lambda x: x**3, np.cos], x),
    "own rule": lambda x: by_own_jvp(x) * x,
    "gradient": lambda x: fg.grad(lambda y: np.sin(y) * y)(x),
    "vmap": lambda x: fg.vmap(lambda a: np.sin(a * x))(np.arange(3.0)).sum(),
    "constant": lambda x: np.floor(x) + 1.0,
    "branch of Python": lambda x: np.sin(x) if x > 0 else x,
    "solve": lambda x: np.linalg.solve(np.eye(2) * (2 + x), np.stack([x, x * x])).sum(),
}


def derivatives(function: Callable[[Any], Any], x: Any, order: int) -> list[Any]:
    found = []
    for _ in range(order + 1):
        found.append(function(x))
        function = _derivative(function)
    return found


def _derivative(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: fg.jvp(function, (x,), (np.ones_like(x),))[1]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PROGRAMS)
def test_series_pass_through_programs(name: str) -> None:
    function = PROGRAMS[name]
    series = ((1.0, 0.0, 0.0, 0.0),)
    expected = derivatives(function, 0.7, 4)
    y, terms = jet(function, (0.7,), series)
    np.testing.assert_allclose([y, *terms], expected, rtol=1e-11, atol=1e-12)
    if name != "branch of Python":
        y, terms = fg.jit(lambda x: jet(function, (x,), series))(0.7)
        np.testing.assert_allclose([y, *terms], expected, rtol=1e-11, atol=1e-12)
    if name == "scan":
        rows = fg.vmap(lambda x: jet(function, (x,), series)[1][1])(np.array([0.7, 0.3]))
        np.testing.assert_allclose(rows[0], expected[2], rtol=1e-11)
        slope = fg.grad(lambda x: jet(function, (x,), series)[1][1])(0.7)
        np.testing.assert_allclose(slope, expected[3], rtol=1e-11)


def n_operations(function: Callable[[Any], Any], order: int) -> int:
    series = ((1.0, *[0.0] * (order - 1)),)
    return len(fg.make_jaxpr(lambda x: jet(function, (x,), series))(0.7).eqns)


@pytest.mark.parametrize("name", ["exp", "sin", "tan", "power", "erf", "gammaln", "quotient"])
def test_the_cost_is_quadratic(name: str) -> None:
    few, many = (n_operations(FUNCTIONS[name][0], order) for order in (8, 16))
    assert many <= 4.5 * few


def test_the_cost_of_a_composition_is_quadratic_and_below_that_of_nesting() -> None:
    def function(x: Any) -> Any:
        return np.sin(np.exp(x)) * np.log1p(x) / np.sqrt(1 + x) + np.tanh(x) ** 3

    few, many = (n_operations(function, order) for order in (5, 10))
    assert many <= 4.5 * few
    nested = fg.make_jaxpr(lambda x: derivatives(function, x, 5)[-1])(0.7)
    assert few < len(nested.eqns)


@pytest.mark.parametrize("x", [np.zeros(0), np.ones((1, 1)), np.float32(0.5), 0.3 + 1j])
def test_shapes_and_dtypes_are_kept(x: Any) -> None:
    y, terms = jet(lambda x: np.exp(x) * x + 1, (x,), ((np.ones_like(x), np.zeros_like(x)),))
    for term in terms:
        assert np.shape(term) == np.shape(y)
        assert np.result_type(term) == np.result_type(y)
