"""Elementary functions of compiled code: errors in units in the last place, and special values.

References are mpmath's, and NumPy's at the edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.native.elementary import emit
from funcgrad.compiler.native.llvm import F64, Function, Module
from funcgrad.compiler.native.scalars import Builder
from funcgrad.compiler.native.vecmath.formulas import FORMULAS
from tests.numerics.elementary import DOMAINS, TWO, function, sample, worst
from tests.primitives.test_formulas import CASES

DTYPES = [np.float32, np.float64]
# Units in the last place; 1.5 where nothing is said.
BOUNDS = {"tanh": 2.7, "expit": 2.7, "expm1": 1.8, "power": 2.0, "erfc": 2.0}


@pytest.fixture(autouse=True)
def _keep_subnormals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_KEEP_SUBNORMALS", "1")


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*DOMAINS, *TWO])
def test_errors(name: str, dtype: Any) -> None:
    args = sample(name, dtype)
    found = fg.jit(function(name))(*args)
    assert found.dtype == dtype
    error, place = worst(name, found, args)
    assert error <= BOUNDS.get(name, 1.5), f"{error} ulp at {place}"


def test_powers_of_one_number_share_its_logarithm() -> None:
    module = Module()
    builder = Builder(module, Function("kernel", F64, [F64, F64, F64]))
    x, y, z = builder.arguments("fff")
    powers = [emit("pow", x, y), emit("pow", x, z), emit("pow", x, y)]
    builder.end(f"ret {powers[0]}")
    assert module.n_calls == {"log_of_base.f64": 1, "pow.rest.f64": 2}
    assert powers[2] is powers[0]


def test_rare_arguments_among_others() -> None:
    """Arguments that formulas do not cover, at all places of a vector, for several functions."""
    x = np.linspace(-9, 9, 103)
    for place in range(20):
        huge = x.copy()
        huge[place :: 20 + place] *= 1e80
        found = fg.jit(lambda x: np.sin(x) + 2 * np.cos(x) + 4 * np.tan(x))(huge)
        expected = np.sin(huge) + 2 * np.cos(huge) + 4 * np.tan(huge)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("name", DOMAINS)
def test_loops_over_few_numbers(name: str, n: int, dtype: Any) -> None:
    """They may call libm where arrays use formulas; results differ by rounding only."""
    f = function(name)
    x = np.linspace(0.2, 0.9, n).astype(dtype) + (name == "arccosh")

    def step(carry: Any, _: Any) -> tuple[Any, None]:
        return f(x + 0 * carry), None

    found = fg.jit(lambda x: fg.lax.scan(step, x, None, length=3)[0])(x)
    np.testing.assert_array_max_ulp(found, fg.jit(f)(x), maxulp=4)


EDGES = [0.0, 1.0, 0.5, 2.0, 3.0, 2.5, 1e-310, 5e-324, 1e-40, 1e308, 1e38, 3e9, np.inf]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*DOMAINS, *TWO])
def test_edges(name: str, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = np.array([*EDGES, *[-e for e in EDGES], np.nan]).astype(dtype)
        args = [x]
        if name in TWO:
            args = [a.ravel() for a in np.meshgrid(x, x)]
        found, expected = fg.jit(function(name))(*args), function(name)(*args)
    rtol = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=0)
    np.testing.assert_array_equal(
        np.signbit(found[expected == 0]), np.signbit(expected[expected == 0])
    )


NAMES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh", "pow": "power",
    "lgamma": "gammaln", "trigamma": "digamma",  # whose slopes are tested, too
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({name for name, _ in FORMULAS}))
def test_formulas_are_tested(name: str) -> None:
    assert NAMES.get(name, name) in [*DOMAINS, *TWO, *CASES, *SHORT_ONES]


RNG = np.random.default_rng(0)
SMALL = RNG.choice([-1.0, 1.0], 400) * 10.0 ** RNG.uniform(-300, -0.5, 400)
SHORT_ONES = {
    "short_exp": (np.exp, [RNG.uniform(-707, 708, 400), SMALL]),
    "short_expm1": (np.expm1, [RNG.uniform(-60, 708, 400), SMALL]),
    "short_log": (np.log, [10.0 ** RNG.uniform(-307, 308, 400), RNG.uniform(0.4, 2.5, 400)]),
    "short_log1p": (np.log1p, [10.0 ** RNG.uniform(-307, 308, 400), SMALL]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORT_ONES)
def test_short_formulas(name: str) -> None:
    """Their errors are far below what rounding to 32 bits adds, which is half of a last place."""
    exact, arguments = SHORT_ONES[name]
    f = fg.jit(fg.extend.Elementwise(name, exact, f"{name}({{0}})").bind)
    x = np.concatenate(arguments)
    np.testing.assert_allclose(f(x), exact(x), rtol=2.0**-28, atol=0)
    np.testing.assert_allclose(f(x[:1]), exact(x[:1]), rtol=2.0**-28)
    short = x[(np.abs(x) > 1e-37) & (np.abs(x) < 80)].astype(np.float32)
    bounds = {"rtol": 0.51 * 2.0**-23, "atol": 0.51 * 2.0**-149}
    np.testing.assert_allclose(f(short), exact(short.astype(float)), **bounds)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.0])
    expected = np.minimum(np.array([float(_at_edge(exact, e)) for e in edges]), 1e300)
    np.testing.assert_allclose(np.minimum(f(edges), 1e300), expected, **bounds)


def _at_edge(exact: Any, x: float) -> Any:
    with np.errstate(all="ignore"):
        return exact(x)
