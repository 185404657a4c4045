"""What checkpoints compute again, inside and outside of loops and compiled programs."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import checkpoint_policies as policies
from funcgrad.core.program import Program
from funcgrad.core.typecheck import check_program

W = np.random.default_rng(1).normal(size=(3, 3)) / 2
X = np.random.default_rng(2).normal(size=(2, 3))
STEPS = 6


def count(program: Program, name: str) -> int:
    """Equations of a primitive, those of held programs included."""
    n = 0
    for equation in program.equations:
        n += equation.primitive.name == name
        for value in equation.primitive.params().values():
            n += count(value, name) if isinstance(value, Program) else 0
    return n


def chain(x):
    for _ in range(3):
        x = np.tanh(x @ W)
    return np.sum(x)


def operations(f, x, name):
    program = fg.make_jaxpr(fg.grad(f))(x).program
    check_all(program)
    return count(program, name)


def check_all(program: Program) -> None:
    check_program(program)
    for equation in program.equations:
        for value in equation.primitive.params().values():
            if isinstance(value, Program):
                check_all(value)


@pytest.mark.parametrize(
    ("policy", "tanhs", "products"),
    [
        (policies.everything_saveable, 3, 3),
        (policies.nothing_saveable, 6, 6),
        (policies.dots_saveable, 6, 3),
    ],
)
def test_how_often_operations_run(policy, tanhs, products):
    f = fg.checkpoint(chain, policy=policy)
    assert operations(f, X, "tanh") == tanhs
    backward = 3  # one product with the transposed weights per layer
    assert operations(f, X, "contract") == products + backward


def test_python_runs_once():
    calls = []

    def f(x):
        calls.append(1)
        return np.sin(np.sin(x))

    assert float(fg.grad(fg.checkpoint(f))(0.0)) == 1.0
    assert len(calls) == 1
    assert fg.checkpoint(f)(0.0) == 0.0


def test_nested_checkpoints_run_the_inner_function_three_times():
    inner = fg.checkpoint(lambda x: np.sin(np.tanh(x)))
    assert operations(fg.checkpoint(lambda x: np.exp(inner(x))), 0.3, "tanh") == 3
    x = 0.3
    expected = np.exp(np.sin(np.tanh(x))) * np.cos(np.tanh(x)) * (1 - np.tanh(x) ** 2)
    found = fg.grad(fg.checkpoint(lambda x: np.exp(inner(x))))(x)
    assert float(found) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_equal_operations_are_merged_only_if_allowed(prevent_cse):
    f = fg.checkpoint(chain, prevent_cse=prevent_cse)
    text = fg.jit(fg.value_and_grad(f)).lower(X).as_text()
    assert text.count(" = tanh ") == (6 if prevent_cse else 3)


def test_nothing_is_computed_again_without_a_derivative():
    text = fg.jit(fg.checkpoint(chain)).lower(X).as_text()
    assert text.count(" = tanh ") == 3
    assert "barrier" not in text


# Loops.


def body(w, x, _):
    return np.tanh(np.sin(x) @ w), None


def looped(wrap):
    def f(w, x):
        step = wrap(lambda x, i: body(w, x, i))
        return np.sum(fg.lax.scan(step, x, np.arange(STEPS))[0])

    return f


def looped_gradient(w, x):
    """By hand."""
    xs = [x]
    for _ in range(STEPS):
        xs.append(np.tanh(np.sin(xs[-1]) @ w))
    ct, ct_w = np.ones_like(x), np.zeros_like(w)
    for before, after in zip(xs[-2::-1], xs[:0:-1], strict=True):
        ct = ct * (1 - after**2)
        ct_w = ct_w + np.sin(before).T @ ct
        ct = (ct @ w.T) * np.cos(before)
    return ct_w, ct


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "f",
    [
        looped(fg.checkpoint),
        looped(lambda step: fg.checkpoint(step, policy=policies.dots_saveable)),
        looped(lambda step: fg.checkpoint(step, prevent_cse=False)),
        fg.checkpoint(looped(lambda step: step)),
        fg.checkpoint(looped(fg.checkpoint)),
    ],
    ids=["inside", "inside, dots", "inside, merged", "around", "both"],
)
def test_gradients_of_loops(f):
    expected = looped_gradient(W, X)
    for g in (
        fg.grad(f, (0, 1)),
        fg.jit(fg.grad(f, (0, 1))),
        fg.jacfwd(f, (0, 1)),
        lambda w, x: [r[0] for r in fg.vmap(fg.grad(f, (0, 1)), (None, 0))(w, x[None])],
    ):
        for a, b in zip(g(W, X), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    h = 1e-6
    second = fg.jacfwd(lambda s: fg.grad(f, 1)(W, X + s))(0.0)
    slope = (looped_gradient(W, X + h)[1] - looped_gradient(W, X - h)[1]) / (2 * h)
    np.testing.assert_allclose(second, slope, rtol=1e-6, atol=1e-8)


def test_loops_stack_only_what_is_saved():
    def stacked(wrap):
        rows = fg.saved_residuals(looped(wrap), W, X)
        return sorted(row.shape for row in rows if row.shape[:1] == (STEPS,))

    # Plainly the cosine, the sine and the derivative of tanh; then the carry alone.
    assert len(stacked(lambda step: step)) == 3
    assert stacked(fg.checkpoint) == [(STEPS, *X.shape)]
    dots = stacked(lambda step: fg.checkpoint(step, policy=policies.dots_saveable))
    assert dots == [(STEPS, *X.shape)] * 2
    around = fg.saved_residuals(fg.checkpoint(looped(lambda step: step)), W, X)
    assert sorted(row.shape for row in around) == [X.shape, W.shape]


def test_custom_rules_inside():
    @fg.custom_vjp
    def clipped(x):
        return np.sin(x)

    clipped.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (ct * 2 * np.cos(x),))

    def f(x):
        return np.exp(clipped(x))

    x = 0.7
    expected = np.exp(np.sin(x)) * 2 * np.cos(x)
    for g in (fg.grad(fg.checkpoint(f)), fg.jit(fg.grad(fg.checkpoint(f)))):
        assert float(g(x)) == pytest.approx(expected, rel=1e-14)


def test_branches_and_loops_of_unknown_length_inside():
    def f(x):
        branch = fg.lax.cond(x > 0, np.sin, np.cos, x)
        last, _ = fg.lax.while_loop(lambda c: c[1] < 3, lambda c: (np.sin(c[0]), c[1] + 1), (x, 0))
        return branch * last

    x, h = 0.4, 1e-4

    def value(x):
        return np.sin(x) * np.sin(np.sin(np.sin(x)))

    first = (value(x + h) - value(x - h)) / (2 * h)
    second = (value(x + h) - 2 * value(x) + value(x - h)) / h**2
    for g in (fg.checkpoint(f), fg.jit(fg.checkpoint(f)), fg.checkpoint(fg.checkpoint(f))):
        assert float(fg.grad(g)(x)) == pytest.approx(first, rel=1e-6)
        assert float(fg.grad(fg.grad(g))(x)) == pytest.approx(second, rel=1e-6)


def test_named_axes_inside():
    def f(x):
        return np.sin(x) * fg.lax.psum(np.cos(x), "lanes")

    x = np.arange(3.0)
    found = fg.vmap(fg.checkpoint(f), axis_name="lanes")(x)
    np.testing.assert_allclose(found, np.sin(x) * np.sum(np.cos(x)), rtol=1e-14)
    gradient = fg.grad(lambda x: np.sum(fg.vmap(fg.checkpoint(f), axis_name="lanes")(x)))(x)
    expected = np.cos(x) * np.sum(np.cos(x)) - np.sin(x) * np.sum(np.sin(x))
    np.testing.assert_allclose(gradient, expected, rtol=1e-14, atol=1e-14)


def test_linear_functions_are_transposed():
    (found,) = fg.linear_transpose(fg.checkpoint(lambda x: x @ W), X)(X)
    np.testing.assert_allclose(found, X @ W.T, rtol=1e-14)
    _, linear = fg.linearize(fg.checkpoint(lambda x: np.sin(np.sin(x))), 1.0)
    assert float(linear(2.0)) == pytest.approx(2 * np.cos(np.sin(1)) * np.cos(1), rel=1e-14)


@pytest.mark.parametrize("policy", [policies.nothing_saveable, policies.dots_saveable])
def test_what_is_printed_is_printed_once(policy, capsys):
    def f(x):
        fg.debug.print("x is {}", x)
        return np.sin(np.sin(x))

    fg.grad(fg.checkpoint(f, policy=policy))(1.0)
    assert capsys.readouterr().out == "x is 1.0\n"
    fg.jit(fg.grad(fg.checkpoint(f, policy=policy)))(1.0)
    assert capsys.readouterr().out == "x is 1.0\n"


def test_random_numbers_are_drawn_again_alike():
    def f(x, key):
        mask = fg.random.bernoulli(key, 0.5, x.shape)
        return np.sum(np.sin(np.where(mask, x, 0.0)) ** 2)

    key = fg.random.key(3)
    mask = np.asarray(fg.random.bernoulli(key, 0.5, X.shape))
    expected = np.where(mask, np.sin(2 * X), 0.0)
    for g in (fg.grad(fg.checkpoint(f)), fg.jit(fg.grad(fg.checkpoint(f)))):
        np.testing.assert_allclose(g(X, key), expected, rtol=1e-12, atol=1e-14)
