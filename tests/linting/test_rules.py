"""Each rule finds its fault, at its line, and says nothing of the same function without it.

The pairs stand here as they would in a program of a user; the line with the fault ends with the
comment ``# here``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.higher_order.jit import stepwise
from funcgrad.linting.subject import Subject
from funcgrad.scipy import optimize, special

X = np.linspace(-1.0, 2.0, 7)
KEY = fg.random.key(0)
BIG = np.ones(1 << 18)


def unused(w: Any, x: Any) -> Any:  # here
    return np.sum(x**2)


def used(w: Any, x: Any) -> Any:
    return np.sum(w * x**2)


def rounded(x: Any) -> Any:
    levels = np.round(4 * x)  # here
    return np.mean(levels**2)


def rounded_in_scan(x: Any) -> Any:
    def step(c: Any, y: Any) -> Any:
        return c + np.floor(y), None  # here

    return lax.scan(step, 0.0, x)[0]


def other_at_one_point(x: Any) -> Any:
    return np.sum(np.where(x == 7.0, 49.0, x**2))  # here


def ratio_with_limit(x: Any) -> Any:
    y = x - 7.0
    return np.sum(np.where(y == 0, 1.0, np.sin(y) / np.where(y == 0, 1.0, y)))


def picked_in_scan(x: Any) -> Any:
    def step(c: Any, i: Any) -> Any:
        return c + np.reshape(x, (-1, 1))[:, i - i].sum() * c, None

    return lax.scan(step, 1.0, np.arange(3))[0]


def smooth(x: Any) -> Any:
    return np.mean((4 * x) ** 2)


def at_zero(x: Any) -> Any:
    return np.sum(np.abs(x))  # here


def tie(x: Any) -> Any:
    return np.max(x) ** 2  # here


def in_while(x: Any) -> Any:
    def step(c: Any) -> Any:
        return np.abs(c[0] - 1.0), c[1] + 1  # here

    return lax.while_loop(lambda c: c[1] < 3, step, (x, 0))[0]


def in_checkpoint(x: Any) -> Any:
    return fg.checkpoint(lambda y: np.sum(np.abs(y)))(x)  # here


def in_vmap(x: Any) -> Any:
    return np.sum(fg.vmap(np.abs)(x))  # here


def in_jit(x: Any) -> Any:
    return np.sum(fg.jit(np.abs)(x))  # here


def equal_eigenvalues(a: Any) -> Any:
    return np.linalg.eigvalsh(a + 0 * a)[0]  # here


def relu_at_zero(x: Any) -> Any:
    return np.sum(np.where(x > 0, x, 0.0))  # here


def branch_at_zero(x: Any) -> Any:
    return 2 * x if x > 0 else x  # here


def root(x: Any) -> Any:
    return np.sum(np.sqrt(x))  # here


def overflows(x: Any) -> Any:
    return np.sum(np.log(1 + np.exp(x)))  # here


def stays_in_range(x: Any) -> Any:
    return np.sum(np.logaddexp(0, x))


def guarded_after(x: Any) -> Any:
    return np.sum(np.where(x > 0, np.log(x), 0.0))  # here


def guarded_before(x: Any) -> Any:
    return np.sum(np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0))


def tiny(x: Any) -> Any:
    return np.sum(x * x)  # here


def cancels(x: Any) -> Any:
    return np.sum((1 - np.cos(x)) / x**2)  # here


def _less_mean(counts: Any) -> Any:
    return counts - np.mean(counts)


def does_not_cancel(x: Any) -> Any:
    return np.sum(2 * np.sin(x / 2) ** 2 / x**2)


def variance_of_large(x: Any) -> Any:
    return np.mean(x**2) - np.mean(x) ** 2  # here


def outer_difference(p: Any, y: Any) -> Any:
    return np.mean((p - y) ** 2)  # here


def outer_of_product(x: Any, w: Any, y: Any) -> Any:
    return np.mean((x @ w - y) ** 2)  # here


def meant_as_square(x: Any) -> Any:
    return np.mean((x[:, None] - x) ** 2)


def of_normalized_rows(x: Any) -> Any:
    return np.sum((x / np.sum(x, 1, keepdims=True)) * x[:, 0])


def same_key(key: Any) -> Any:
    a = fg.random.normal(key, (3,))
    return np.sum(a * fg.random.uniform(key, (3,)))  # here


def key_after_split(key: Any) -> Any:
    first, second = fg.random.split(key)
    a = fg.random.normal(key, (3,))  # here
    return np.sum(a * fg.random.normal(first, (3,)) + fg.random.normal(second, (3,)))


def new_keys(key: Any) -> Any:
    first, second = fg.random.split(key)
    return np.sum(fg.random.normal(first, (3,)) * fg.random.uniform(second, (3,)))


def key_in_loop(key: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        return c + fg.random.normal(key)  # here

    return lax.fori_loop(0, 4, step, 0.0)


def folded_key(key: Any) -> Any:
    return lax.fori_loop(0, 4, lambda i, c: c + fg.random.normal(fg.random.fold_in(key, i)), 0.0)


def scanned_keys(key: Any) -> Any:
    keys = fg.random.split(key, 5)
    return lax.scan(lambda c, k: (c + fg.random.normal(k), None), 0.0, keys)[0]


def closes_over(x: Any) -> Any:
    return np.sum(BIG * x)  # here


def takes(x: Any, big: Any) -> Any:
    return np.sum(big * x)


def loop_of_python(x: Any) -> Any:
    for _ in range(100):
        x = np.sin(x)  # here
    return x


def loop_of_library(x: Any) -> Any:
    return lax.fori_loop(0, 100, lambda _, y: np.sin(y), x)


def dead(x: Any) -> Any:
    scaled = x * 3.0  # here
    del scaled
    return np.sum(x**2)


ROWS = np.abs(np.random.default_rng(0).normal(size=(4, 4)))
COLUMN, ROW = np.ones((5, 1)), np.arange(5.0)

SCALE = 1.0


def set_scale(value: float) -> None:
    global SCALE
    SCALE = value


def reads_global(x: Any) -> Any:
    return np.sum(SCALE * x)  # here


class Model:
    def __init__(self) -> None:
        self.rate = 0.5
        self.kept = 2.0

    def cool(self) -> None:
        self.rate = self.rate / 2

    def loss(self, x: Any) -> Any:
        return np.sum(self.rate * x**2)  # here

    def fixed(self, x: Any) -> Any:
        return np.sum(self.kept * x**2)


@fg.jit
def often(x: Any) -> Any:
    return np.sum(x**2)


@fg.jit
def once(x: Any) -> Any:
    return np.sum(x**2)


@pytest.fixture(autouse=True)
def traced_often() -> None:
    """Traces of two functions, which tests of other files may have forgotten."""
    for n in range(2, 8):
        often(np.ones(n))  # here
        once(np.ones(2))


def reads_number(x: Any) -> Any:
    return np.sum(x) / float(np.sum(x))  # here


def of_an_order(n: Any, x: Any) -> Any:
    return np.sum(special.polygamma(n, x))  # here


def stops(x: Any) -> Any:
    return fg.stop_gradient(x) ** 2  # here


def calls_what_stops(x: Any) -> Any:
    return np.sum(stops(x))


def solves(start: Any, b: Any) -> Any:
    return np.sum(optimize.least_squares(lambda x: x**3 - b, start).x)


def full_truncation(x: Any) -> Any:
    return np.sum(np.sqrt(np.maximum(x, 0.0)) * x)


def zero_slope(x: Any) -> Any:
    return np.sum(np.sqrt(x**3 * (x + 1)))  # here


def truncated_before(x: Any) -> Any:
    return np.sum(np.sqrt(np.where(x > 0, x, 1.0)) * x)


def distances(x: Any) -> Any:
    def distance(a: Any, b: Any) -> Any:
        return np.sqrt(np.sum((a - b) ** 2))  # here

    return np.sum(fg.vmap(lambda a: fg.vmap(lambda b: distance(a, b))(x))(x))


def sawtooth(x: Any) -> Any:
    return np.sum(x % 1.0)  # here


def norm(x: Any) -> Any:
    return np.sqrt(np.sum(x**2))  # here


def modulus(z: Any) -> Any:
    return np.sum(np.abs(z))  # here


def one_of_many(x: Any) -> Any:
    return np.sum(np.exp(x)) + np.abs(x[3] - 3.0)  # here


def beside_a_root(x: Any, v: Any) -> Any:
    return np.sqrt(v), np.abs(x)  # here


def chooses_in_loop(x: Any) -> Any:
    def step(c: Any, y: Any) -> Any:
        return c + np.where(y > 0, y, 2 * y), None  # here

    return lax.scan(step, 0.0, x)[0]


def length(x: Any) -> Any:
    return np.linalg.norm(x)  # here


COLUMN_OF_ONES = np.ones(3)


def outer_of_constant(x: Any) -> Any:
    return np.sum((COLUMN_OF_ONES[:, None] * x) ** 2)


def long_sum(x: Any) -> Any:
    return np.sum(np.cumsum(x)[-1] * x[:3])  # here


TENTHS = np.full(1 << 20, 0.1, np.float32)

FAULTS: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("unused-argument", unused, (X, X)),
    ("cut-derivative", rounded, (X,)),
    ("cut-derivative", rounded_in_scan, (X,)),
    ("kink", at_zero, (np.array([1.0, 0.0]),)),
    ("kink", at_zero, (np.array([1.0, 0.0], np.float32),)),
    ("kink", tie, (np.array([1.0, 2.0, 2.0]),)),
    ("kink", in_while, (1.0,)),
    ("kink", in_checkpoint, (np.zeros(2),)),
    ("kink", in_vmap, (np.zeros(2),)),
    ("kink", in_jit, (np.zeros(2),)),
    ("kink", equal_eigenvalues, (np.eye(3),)),
    ("kink-of-choice", relu_at_zero, (np.array([1.0, 0.0]),)),
    ("kink-of-choice", branch_at_zero, (0.0,)),
    ("kink-of-choice", other_at_one_point, (np.array([7.0, 1.0]),)),
    ("singular-derivative", root, (np.array([1.0, 0.0]),)),
    ("singular-derivative", lambda x: root(x), (np.zeros(2, np.float32),)),
    ("overflow", overflows, (np.array([1.0, 800.0]),)),
    ("hidden-nan", guarded_after, (X,)),
    ("subnormal", tiny, (np.array([1.0, 1e-20], np.float32),)),
    ("lost-digits", cancels, (np.array([1e-8, 2e-8]),)),
    ("lost-digits", cancels, (np.array([1e-3, 2e-3], np.float32),)),
    ("lost-digits", variance_of_large, (1e8 + X,)),
    ("accidental-broadcast", outer_difference, (COLUMN, ROW)),
    ("accidental-broadcast", outer_of_product, (ROWS, np.ones((4, 1)), np.ones(4))),
    ("reused-key", same_key, (KEY,)),
    ("reused-key", key_after_split, (KEY,)),
    ("constant-key", key_in_loop, (KEY,)),
    ("large-constant", closes_over, (1.0,)),
    ("unrolled-loop", loop_of_python, (1.0,)),
    ("unused-result", dead, (X,)),
    ("changing-state", reads_global, (X,)),
    ("changing-state", Model().loss, (X,)),
    ("retraced", often, (X,)),
    ("left-trace", reads_number, (X,)),
    ("missing-derivative", of_an_order, (1.0, np.ones(2))),
    ("cut-derivative", calls_what_stops, (X,)),
    ("singular-derivative", norm, (np.zeros(3),)),
    ("kink", modulus, (np.array([0j, 1 + 1j]),)),
    ("kink", one_of_many, (np.arange(100_000) % 7 * 1.0,)),
    ("kink", beside_a_root, (np.zeros(2), np.zeros(2))),
    ("kink-of-choice", length, (np.zeros(3),)),
    ("kink-of-choice", chooses_in_loop, (np.array([1.0, 0.0]),)),
    ("float32-sum", long_sum, (TENTHS,)),
    ("singular-derivative", zero_slope, (np.array([0.0, -0.5, 2.0]),)),
    ("singular-derivative", distances, (np.arange(6.0).reshape(3, 2) ** 2,)),
    ("jump", sawtooth, (np.array([3.0, 0.5]),)),
]

CLEAN: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("unused-argument", used, (X, X)),
    ("cut-derivative", smooth, (X,)),
    ("kink", at_zero, (np.array([1.0, 1e-3]),)),
    ("kink", lambda x: at_zero(x) ** 2, (0.0,)),
    ("kink", tie, (np.array([1.0, 2.0, 2.001]),)),
    ("kink", in_while, (0.7,)),
    ("cut-derivative", picked_in_scan, (X,)),
    ("kink", equal_eigenvalues, (np.diag([1.0, 2.0, 3.0]),)),
    ("kink-of-choice", relu_at_zero, (np.array([1.0, -1.0]),)),
    ("kink-of-choice", lambda x: np.sum(np.where(x > 0, x**2, 0.0)), (np.array([1.0, 0.0]),)),
    ("kink-of-choice", ratio_with_limit, (np.array([7.0, 1.0]),)),
    ("singular-derivative", root, (np.array([1.0, 1e-300]),)),
    ("overflow", stays_in_range, (np.array([1.0, 800.0]),)),
    ("hidden-nan", guarded_before, (X,)),
    ("subnormal", tiny, (np.array([1.0, 1e-18], np.float32),)),
    ("lost-digits", does_not_cancel, (np.array([1e-8, 2e-8]),)),
    ("lost-digits", lambda x: np.var(x), (1e8 + X,)),
    ("lost-digits", lambda x: np.mean(_less_mean(np.where(x < 3, 5.0, 0.0)) * x), (X,)),
    ("lost-digits", lambda x: np.sum(np.log(np.where(x > 0, x, 1.0))), (np.array([-2.0, 1.0]),)),
    ("accidental-broadcast", meant_as_square, (X,)),
    ("accidental-broadcast", of_normalized_rows, (ROWS,)),
    ("accidental-broadcast", outer_difference, (COLUMN, COLUMN)),
    ("reused-key", new_keys, (KEY,)),
    ("reused-key", folded_key, (KEY,)),
    ("constant-key", folded_key, (KEY,)),
    ("constant-key", scanned_keys, (KEY,)),
    ("large-constant", takes, (1.0, BIG)),
    ("unrolled-loop", loop_of_library, (1.0,)),
    ("unused-result", smooth, (X,)),
    ("changing-state", Model().fixed, (X,)),
    ("changing-state", smooth, (X,)),
    ("retraced", once, (X,)),
    ("missing-derivative", used, (X, X)),
    ("cut-derivative", stops, (X,)),
    ("cut-derivative", solves, (np.ones(3), np.arange(1.0, 4.0))),
    ("singular-derivative", truncated_before, (np.array([-1.0, -0.5, 2.0]),)),
    ("singular-derivative", full_truncation, (np.array([-1.0, -0.5, 2.0]),)),
    ("jump", sawtooth, (np.array([3.25, 0.5]),)),
    ("jump", lambda x: np.sum(np.sin(2 * np.pi * (x % 1.0))), (np.array([3.0, 0.5]),)),
    ("accidental-broadcast", outer_of_constant, (np.ones(3),)),
    ("unused-result", solves, (np.ones(3), np.arange(1.0, 4.0))),
    ("left-trace", lambda x: x / float(np.float64(2.0)), (X,)),
    ("float32-sum", long_sum, (TENTHS.astype(np.float64),)),
    ("float32-sum", lambda x: np.sum(x), (TENTHS,)),
]


def names(rows: list[tuple[str, Callable[..., Any], tuple[Any, ...]]]) -> list[str]:
    return [f"{rule}-{function.__name__}" for rule, function, _ in rows]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("rule", "function", "args"), FAULTS, ids=names(FAULTS))
def test_a_fault_is_found_at_its_line(
    rule: str, function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    found = fg.lint(function, *args).by_rule(rule)
    assert len(found) == 1
    assert found[0].location is not None
    line = found[0].location.text()
    assert line.endswith("# here"), line


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("rule", "function", "args"), CLEAN, ids=names(CLEAN))
def test_nothing_is_found_without_it(
    rule: str, function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    assert not fg.lint(function, *args).by_rule(rule)


def test_every_rule_has_a_fault_and_a_clean_function() -> None:
    for rows in (FAULTS, CLEAN):
        assert {rule for rule, _, _ in rows} == set(fg.linting.rules())


def test_all_arguments_of_one_finding_are_named() -> None:
    def loss(a: Any, b: Any, x: Any) -> Any:
        return np.sum(x * np.where(a > b, 2.0, 1.0))

    (cut,) = fg.lint(loss, 1.0, 2.0, X)
    assert "with respect to `args[0]`, ~f64[] and `args[1]`, ~f64[], is 0: they reach" in cut.why
    (unused,) = fg.lint(lambda a, b, x: np.sum(x), 1.0, 2.0, X)
    assert unused.why == (
        "no result depends on `args[0]`, ~f64[] or `args[1]`, ~f64[]: their derivative is 0"
    )
    assert not fg.lint(lambda a, x: np.sum(x), 1.0, X, only=["unused-argument"], argnums=1)


def test_reports_print() -> None:
    text = str(fg.lint(rounded, X))
    assert re.fullmatch(
        r"rounded: 1 warning\n"
        r"warning: the derivative with respect to `args\[0\]`, f64\[7\], is 0: it reaches the "
        r"result only through rint, without derivative   \[cut-derivative\]\n"
        r"  at            test_rules.py:\d+   levels = np.round\(4 \* x\)  # here\n"
        r"  write         a smooth operation in its place .*\n"
        r"why, and examples: python -m funcgrad lint --rules cut-derivative",
        text,
    )
    assert str(fg.lint(smooth, X)) == f"smooth: {len(fg.linting.rules())} rules found nothing"


def test_comments_switch_rules_off() -> None:
    def all_off(x: Any) -> Any:
        return np.sum(np.abs(x))  # lint: ignore

    def one_off(x: Any) -> Any:
        return np.sum(np.abs(x))  # lint: ignore[kink, overflow]

    def another_off(x: Any) -> Any:
        return np.sum(np.abs(x))  # lint: ignore[overflow]

    assert not fg.lint(all_off, np.zeros(2))
    assert str(fg.lint(one_off, np.zeros(2))).endswith("found nothing, 1 switched off by comments")
    assert fg.lint(another_off, np.zeros(2)).by_rule("kink")


@pytest.mark.parametrize(
    ("function", "args", "rules"),
    [
        (lambda x: np.sum(np.where(np.isfinite(np.log(x)), x, 0.0)), (np.zeros(2),), {"overflow"}),
        (lambda x: np.sum(1 / x), (np.array([0.0, 1.0]),), {"overflow"}),
        (lambda x: np.sum(np.mod(x, 1.0) ** 2 + x), (np.array([2.0, 0.5]),), {"jump"}),
        (lambda y, x: np.arctan2(y, x), (0.5, 0.0), set()),
        (lambda y, x: np.arctan2(y, x), (0.0, 0.0), {"jump"}),
        (lambda x: np.sum(np.abs(x)), (np.zeros(2),), {"kink"}),
    ],
    ids=["log", "reciprocal", "mod", "angle", "angle at the origin", "abs"],
)
def test_a_point_is_of_one_kind(
    function: Callable[..., Any], args: tuple[Any, ...], rules: set[str]
) -> None:
    assert {found.rule for found in fg.lint(function, *args)} == rules


def test_data_are_not_differentiated() -> None:
    def loss(p: Any, label: Any, weight: Any = 1.0) -> Any:
        return -np.mean(weight * np.log(np.where(label > 0, p, 1 - p)))

    args = np.array([0.2, 0.7]), np.array([0.0, 1.0])
    assert {found.rule for found in fg.lint(loss, *args)} == {"cut-derivative", "kink-of-choice"}
    assert not fg.lint(loss, *args, argnums=0)
    assert not fg.lint(loss, *args, argnums=(-2,), weight=2.0)
    assert fg.lint(loss, *args, argnums=1).by_rule("cut-derivative")
    with pytest.raises(fg.errors.ArgumentError, match="names positional argument 2"):
        fg.lint(loss, *args, argnums=2)


def test_rules_are_chosen() -> None:
    zeros = np.zeros(2)
    assert not fg.lint(at_zero, zeros, ignore=["kink"])
    assert fg.lint(at_zero, zeros, only=["kink"]).rules == ("kink",)
    with pytest.raises(fg.errors.ArgumentError, match=r"lint has no rule 'knik'\. Its rules are: "):
        fg.lint(at_zero, zeros, ignore=["knik"])


def test_custom_rules_complex_numbers_and_trees() -> None:
    @fg.custom_vjp
    def square(x: Any) -> Any:
        return x**2

    square.defvjp(lambda x: (x**2, x), lambda x, ct: (2 * x * ct,))

    def loss(params: Any, z: Any) -> Any:
        return np.sum(square(params["w"])) + np.abs(np.sum(z)) ** 2 * params["b"]

    params = {"w": X, "b": 2.0}
    assert not fg.lint(loss, params, np.array([1 + 2j, 0.5j]))
    found = fg.lint(lambda p: np.sum(square(np.abs(p["w"])) + np.abs(p["w"])), {"w": np.zeros(2)})
    assert [f.rule for f in found] == ["kink"]


def test_rules_that_go_backwards_only() -> None:
    @fg.custom_vjp
    def root(a: Any) -> Any:
        return np.sqrt(a)

    def backward(y: Any, ct: Any) -> tuple[Any]:
        steps = lax.while_loop(lambda c: np.max(np.abs(c - ct)) > 1e-12, lambda c: ct + 0 * c, ct)
        return (steps / (2 * y),)

    root.defvjp(lambda a: (np.sqrt(a),) * 2, backward)
    assert not fg.lint(lambda x: np.sum(root(x) + np.abs(x)), np.array([1.0, 2.0]))
    found = fg.lint(lambda x: np.sum(root(x) + np.abs(x - 1)), np.array([1.0, 2.0]))
    assert [f.rule for f in found] == ["kink"]


def test_the_function_and_its_arguments_are_left_alone() -> None:
    x = np.array([1.0, 0.0])
    before = x.copy()
    with np.errstate(all="raise"):
        fg.lint(root, x)
        fg.lint(guarded_after, X)
    np.testing.assert_array_equal(x, before)


def test_no_arguments_and_no_numbers() -> None:
    assert not fg.lint(lambda: np.ones(3))
    assert not fg.lint(lambda n: n + 1, 3)
    assert not fg.lint(lambda x: np.sum(x), np.zeros(0))


def test_derivatives_need_not_depend_on_what_their_function_reads() -> None:
    def misfit(x: Any, seen: Any) -> Any:
        return np.sin(x) * 2 - seen

    def unread(x: Any, seen: Any) -> Any:
        return np.sin(x) * 2

    x, seen = np.linspace(0.1, 1, 3), np.ones(3)
    assert not fg.lint(fg.jacobian(misfit), x, seen).by_rule("unused-argument")
    assert fg.lint(fg.jacobian(unread), x, seen).by_rule("unused-argument")
    assert not fg.lint(fg.hessian(lambda x: x @ x), x).by_rule("unused-argument")
    assert not fg.lint(lambda x: np.zeros((0, 3)) @ x, x).by_rule("unused-argument")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["while_loop", "fori_loop", "scan", "nested"])
def test_long_loops_are_compiled_but_for_samples(kind: str) -> None:
    n = 20_000

    def program(x: Any) -> Any:
        if kind == "while_loop":
            loop = fg.lax.while_loop
            return loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 1.0001), (0, x))[1]
        if kind == "fori_loop":
            return fg.lax.fori_loop(0, n, lambda i, c: c * 1.0001, x)
        if kind == "scan":
            step = lambda c, y: (c * y, c)  # noqa: E731
            return fg.lax.scan(step, x, np.full(n, 1.0001), reverse=True)[0]
        inner = lambda i, c: fg.lax.fori_loop(0, 100, lambda j, c: c * 1.0001, c)  # noqa: E731
        return fg.lax.fori_loop(0, n // 100, inner, x)

    seen: list[Any] = []
    subject = Subject(program, (1.0,), {})
    subject.evaluations(lambda step: seen.append(step) if step.primitive.name == "mul" else None)
    assert 32 <= len(seen) < 400
    np.testing.assert_allclose(subject.record.value(subject.record.outputs[0]), 1.0001**n)
    with stepwise(is_sampled=True):
        np.testing.assert_allclose(fg.jit(program)(1.0), 1.0001**n)


def test_constants_do_not_move() -> None:
    labels = np.array([0.0, 1.0, 0.0])

    def same_line(x: Any, y: Any) -> Any:
        return np.sum(np.abs(x) + np.where((y > 0) | (x > 7.0), x * x, 2 * x))

    def rules(*x: float) -> list[str]:
        return [found.rule for found in fg.lint(same_line, np.array(x), labels, argnums=0)]

    assert rules(0.3, 0.5, 0.2) == []
    assert rules(0.0, 0.5, 0.2) == ["kink"]
    assert rules(7.0, 0.5, 0.2) == ["kink-of-choice"]


def test_runs_beside_the_data_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcgrad.linting.subject.patience", lambda seconds: 0.1)

    def waits(x: Any) -> Any:
        start = fg.stop_gradient(x)  # beside 1 the loop never ends
        ends = lax.while_loop(lambda c: c[1] != 1.0, lambda c: (c[0] + 1, c[1]), (0, start))
        return np.abs(x - 1) + 0.0 * ends[1]

    with fg.limits(seconds=60):
        fg.lint(waits, 1.0)


def test_late_rounds_of_loops_are_sampled() -> None:
    def grows(x: Any) -> Any:
        return fg.lax.fori_loop(0, 4000, lambda i, c: c * 1.001, x)

    seen: list[Any] = []
    subject = Subject(grows, (1.0,), {})
    subject.evaluations(lambda step: seen.append(step) if step.primitive.name == "mul" else None)
    rounds = np.log([step.operands[0] for step in seen]) / np.log(1.001)
    np.testing.assert_allclose(rounds, np.round(rounds), atol=1e-6)
    assert [*np.round(rounds[:32])] == [*range(32)]
    assert 3900 < rounds[-1] < 4000
    assert len(seen) < 200
