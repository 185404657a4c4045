"""checkpoint against gradients written by hand in NumPy, and what it keeps and computes again."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import checkpoint_policies as policies
from funcgrad.errors import ArgumentError, ConcretizationTypeError, MemoryBudgetError

RNG = np.random.default_rng(0)
DEPTH = 5
WEIGHTS = [RNG.normal(size=(4, 4)) / 2 for _ in range(DEPTH)]
X = RNG.normal(size=(3, 4))

POLICIES = {
    "none": None,
    "everything": policies.everything_saveable,
    "nothing": policies.nothing_saveable,
    "dots": policies.checkpoint_dots,
    "dots without batch": policies.dots_with_no_batch_dims_saveable,
    "only names": policies.save_only_these_names("hidden"),
    "other names": policies.save_any_names_but_these("hidden"),
    "anything but names": policies.save_anything_except_these_names("hidden"),
    "either": policies.save_from_both_policies(
        policies.dots_saveable, policies.save_only_these_names("hidden")
    ),
    "own": lambda primitive, *avals, **params: primitive.name == "tanh",
}


def layer(w, x):
    return fg.checkpoint_name(np.tanh(x @ w), "hidden")


def network(weights, x):
    for w in weights:
        x = layer(w, x)
    return np.sum(x * x)


def network_gradient(weights, x):
    """By hand: gradients for the weights and for x."""
    ys = [x]
    for w in weights:
        ys.append(np.tanh(ys[-1] @ w))
    ct = 2 * ys[-1]
    grads = []
    for w, before, after in zip(weights[::-1], ys[-2::-1], ys[:0:-1], strict=True):
        ct = ct * (1 - after**2)
        grads.append(before.T @ ct)
        ct = ct @ w.T
    return grads[::-1], ct


def assert_same(found, expected, rtol=1e-12):
    found, expected = fg.tree.leaves(found), fg.tree.leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-13)


EXPECTED = network_gradient(WEIGHTS, X)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize(
    "gradient",
    [
        lambda f: fg.grad(f, (0, 1)),
        lambda f: fg.jit(fg.grad(f, (0, 1))),
        lambda f: fg.grad(fg.jit(f), (0, 1)),
        lambda f: fg.jacrev(f, (0, 1)),
        lambda f: fg.jacfwd(f, (0, 1)),
        lambda f: lambda *args: fg.linearize(f, *args) and fg.vjp(f, *args)[1](1.0),
    ],
    ids=["eager", "jit", "jit inside", "jacrev", "jacfwd", "vjp"],
)
def test_gradients_are_those_of_the_function(policy, gradient):
    found = gradient(fg.checkpoint(network, policy=policy))(WEIGHTS, X)
    assert_same(found, EXPECTED)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_compiled_functions_inside_obey_the_policy(policy):
    found = fg.grad(fg.checkpoint(fg.jit(network), policy=policy), (0, 1))(WEIGHTS, X)
    assert_same(found, EXPECTED)


def finite_differences(f, x, step=1e-6):
    rows = []
    for i in range(x.size):
        e = np.zeros(x.size)
        e[i] = step
        e = e.reshape(x.shape)
        rows.append((f(x + e) - f(x - e)) / (2 * step))
    return np.stack(rows)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_second_derivatives(policy):
    inner = fg.checkpoint(network, policy=policy)
    expected = finite_differences(lambda x: network_gradient(WEIGHTS, x)[1], X)
    for f in (
        fg.jacrev(fg.grad(inner, 1), 1),
        fg.jacfwd(fg.grad(inner, 1), 1),
        fg.grad(lambda w, x: np.sum(fg.grad(inner, 1)(w, x) ** 2), 1),
        fg.jit(fg.jacrev(fg.checkpoint(fg.grad(inner, 1)), 1)),
    ):
        found = f(WEIGHTS, X)
        if found.shape == X.shape:
            g = network_gradient(WEIGHTS, X)[1]
            reference = 2 * np.tensordot(expected, g, 2).reshape(X.shape)
        else:
            reference = np.moveaxis(expected.reshape(*X.shape, *X.shape), (0, 1), (2, 3))
        np.testing.assert_allclose(found, reference, rtol=1e-6, atol=1e-8)


def test_mapped_and_nested():
    f = fg.checkpoint(lambda w, x: fg.checkpoint(network)(w[1:], fg.checkpoint(layer)(w[0], x)))
    xs = np.stack([X, 2 * X, -X])
    found = fg.vmap(fg.grad(f, (0, 1)), (None, 0))(WEIGHTS, xs)
    expected = [network_gradient(WEIGHTS, x) for x in xs]
    assert_same(found[1], np.stack([e[1] for e in expected]))
    for i, w in enumerate(found[0]):
        assert_same(w, np.stack([e[0][i] for e in expected]))
    summed = fg.grad(lambda w: np.sum(fg.vmap(f, (None, 0))(w, xs)))(WEIGHTS)
    assert_same(summed, [sum(e[0][i] for e in expected) for i in range(DEPTH)])


def test_decorates_and_closes_over_traced_values():
    @partial(fg.remat, policy=policies.dots_saveable)
    def square(x, *, shift=0.0):
        """Documented."""
        return (x + shift) ** 2

    assert square.__doc__ == "Documented."
    assert float(square(3.0, shift=1.0)) == 16.0
    assert float(fg.grad(square)(3.0, shift=1.0)) == 8.0

    def outer(a, x):
        inner = fg.checkpoint(lambda x: np.sin(a * x))
        return fg.grad(inner)(x)

    a, x = 1.5, 0.3
    assert_same(fg.grad(outer)(a, x), np.cos(a * x) - a * x * np.sin(a * x))
    assert_same(fg.jit(fg.grad(outer))(a, x), np.cos(a * x) - a * x * np.sin(a * x))


def test_static_arguments_and_containers():
    f = fg.checkpoint(
        lambda p, kind, x: {"y": p["w"] * x**2 if kind == "square" else x}, static_argnums=1
    )
    g = fg.grad(lambda p, x: f(p, "square", x)["y"], (0, 1))
    assert_same(g({"w": 3.0}, 2.0), ({"w": 4.0}, 12.0))
    with pytest.raises(ConcretizationTypeError, match=r"checkpoint\(<lambda>\)"):
        fg.grad(fg.checkpoint(lambda x, n: x if n > 1 else -x))(1.0, 2.0)


def test_methods_can_be_checkpointed():
    class Model:
        def __init__(self, w):
            self.w = w

        @fg.checkpoint
        def half(self, x):
            return np.sin(x)

    # The instance is no array: as with any other argument, that is said.
    with pytest.raises(TypeError, match="static_argnums"):
        fg.grad(Model(2.0).half)(1.0)


# What is kept.


def kinds(rows):
    return sorted((row.what, row.shape) for row in rows)


def test_residuals_by_policy():
    def f(w, x):
        return np.sum(np.sin(layer(w, x)))

    w = WEIGHTS[0]
    arguments = [("argument `args[0]`", (4, 4)), ("argument `args[1]`", (3, 4))]

    def saved(policy):
        return kinds(fg.saved_residuals(fg.checkpoint(f, policy=policy), w, X))

    assert saved(None) == arguments
    named = [*arguments, ("named `hidden`", (3, 4))]
    assert saved(policies.save_only_these_names("hidden")) == named
    assert saved(policies.save_only_these_names("other")) == arguments
    assert saved(policies.save_any_names_but_these("hidden")) == arguments
    assert saved(policies.save_any_names_but_these("other")) == named
    assert saved(policies.dots_saveable) == [*arguments, ("output of contract", (3, 4))]
    assert saved(policies.dots_with_no_batch_dims_saveable) == saved(policies.dots_saveable)
    both = policies.save_from_both_policies(
        policies.dots_saveable, policies.save_only_these_names("hidden")
    )
    assert saved(both) == named  # the product is not needed where the named value is there
    plain = kinds(fg.saved_residuals(f, w, X))
    assert saved(policies.everything_saveable) == plain
    assert len(plain) == 4
    without = saved(policies.save_anything_except_these_names("hidden"))
    assert ("output of tanh", (3, 4)) not in without
    assert ("output of cos", (3, 4)) in without


def test_batched_products_are_told_apart():
    def f(w, x):
        return np.sum(np.sin(np.einsum("bij,bjk->bik", x, w)))

    w, x = np.ones((2, 3, 4)), np.ones((2, 5, 3))
    batched = fg.saved_residuals(fg.checkpoint(f, policy=policies.dots_saveable), w, x)
    assert (2, 5, 4) in [row.shape for row in batched]
    policy = policies.dots_with_no_batch_dims_saveable
    assert [row.what for row in fg.saved_residuals(fg.checkpoint(f, policy=policy), w, x)] == [
        "argument `args[0]`",
        "argument `args[1]`",
    ]


def test_printed_residuals_show_types_sizes_and_lines(capsys):
    def f(p, x):
        return np.sum(np.tanh(x @ p["w"]))  # here

    fg.print_saved_residuals(f, {"w": WEIGHTS[0]}, X)
    text = capsys.readouterr().out
    assert re.search(r"f64\[4,4\] +128 B +argument `args\[0\]\['w'\]`", text)
    assert re.search(r"f64\[3,4\] +96 B +output of \w+ +test_checkpointing.py:\d+ .*# here", text)
    assert "3 residuals, 320 B" in text
    rows = fg.saved_residuals(f, {"w": WEIGHTS[0]}, X)
    assert rows.nbytes == 320
    assert not rows.without_effect


def test_lines_inside_of_checkpoints_are_kept():
    def f(x):
        return np.sum(np.sin(np.exp(x)))  # there

    policy = policies.everything_saveable
    for g in (fg.checkpoint(f, policy=policy), fg.jit(f), fg.jit(fg.checkpoint(f, policy=policy))):
        rows = fg.saved_residuals(lambda x, g=g: g(x), X)
        assert rows
        assert all("# there" in row.place for row in rows)


def test_closed_over_arrays_are_listed():
    rows = fg.saved_residuals(lambda x: np.sum(x * X), X)
    assert kinds(rows) == [("array that the function closes over", (3, 4))]


@pytest.mark.parametrize(
    ("f", "policy", "reason"),
    [
        (lambda x: np.sum(x), None, "the derivative needs no residuals"),
        (lambda x: x * x, None, "the derivative needs nothing but the arguments"),
        (np.sin, policies.everything_saveable, "its policy saves all residuals"),
    ],
)
def test_checkpoints_without_effect_are_reported(f, policy, reason, capsys):
    inner = fg.checkpoint(f, policy=policy)
    rows = fg.saved_residuals(lambda x: np.sum(np.cos(inner(x))), X)
    assert len(rows.without_effect) == 1
    assert f"has no effect: {reason}." in rows.without_effect[0]
    assert "test_checkpointing.py" in rows.without_effect[0]
    fg.print_saved_residuals(fg.jit(lambda x: np.sum(inner(x))), X)
    assert f"has no effect: {reason}." in capsys.readouterr().out
    useful = fg.checkpoint(lambda x: np.sin(np.sin(x)))
    assert not fg.saved_residuals(lambda x: np.sum(useful(x)), X).without_effect


# Segments.


@pytest.mark.parametrize("segments", [None, 1, 2, 7, 100])
def test_sequences(segments):
    functions = [partial(layer, w) for w in WEIGHTS]
    f = fg.checkpoint_sequential(functions, segments)
    expected = EXPECTED[1]
    assert_same(fg.grad(lambda x: np.sum(f(x) ** 2))(X), expected)
    assert_same(fg.jit(fg.grad(lambda x: np.sum(f(x) ** 2)))(X), expected)


def test_a_sequence_keeps_the_arguments_of_its_segments():
    f = fg.checkpoint_sequential([np.sin] * 10)
    rows = fg.saved_residuals(lambda x: np.sum(f(x)), X)
    assert len(rows) == 4  # the square root of ten, rounded up
    assert fg.checkpoint_sequential([])(3.0) == 3.0
    with pytest.raises(ArgumentError, match="segments must be a positive int, got 0"):
        fg.checkpoint_sequential([np.sin], 0)


def arena(f, *args):
    """Bytes of intermediate values of a compiled function."""
    return fg.jit(f).lower(*args).compile()._executable.memory.arena_bytes


def test_compiled_segments_take_less_memory():
    w = np.eye(8)
    x = np.ones((256, 8))

    def loss(deep):
        return fg.grad(lambda x: np.sum(deep(x) ** 2))

    functions = [lambda x: np.tanh(x @ w)] * 64
    plain = arena(loss(fg.checkpoint_sequential(functions, 1)), x)
    assert arena(loss(fg.checkpoint_sequential(functions)), x) < 0.35 * plain


def test_what_is_recomputed_joins_no_kernel_of_the_forward_pass():
    def block(x):
        for _ in range(6):
            x = np.exp(np.sin(x * x))
        return x

    def loss(wrap):
        def f(x):
            for _ in range(6):
                x = wrap(block)(x) @ np.eye(8)
            return np.sum(x)

        return fg.grad(f)

    x = np.ones((64, 8))
    plain, checkpointed = arena(loss(lambda f: f), x), arena(loss(fg.checkpoint), x)
    assert checkpointed < 0.6 * plain


# Budgets.


def deep(w, x):
    for _ in range(24):
        x = np.tanh(x @ w)
    return np.sum(x * x)


W, BATCH = RNG.normal(size=(8, 8)) / 3, RNG.normal(size=(64, 8))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["evaluated", "compiled"])
@pytest.mark.parametrize("budget", ["52KiB", 60_000, "90 kB", "0.15MB", "1GB"])
def test_budgets_are_kept_and_gradients_are_right(budget, wrap):
    f = fg.checkpoint(wrap(deep), budget=budget)
    plan = f.plan(W, BATCH)
    limit = {"52KiB": 52 * 1024, "90 kB": 90_000, "0.15MB": 150_000, "1GB": 10**9}.get(
        budget, budget
    )
    assert plan.predicted_peak_bytes <= limit
    assert plan.compiled_peak_bytes <= 1.1 * plan.predicted_peak_bytes
    assert f"predicted peak      {plan.predicted_peak_bytes / 1000:.1f} kB" in str(plan)
    grads, ct = network_gradient([W] * 24, BATCH)
    expected = (sum(grads), ct)
    for g in (fg.grad(f, (0, 1)), fg.jit(fg.grad(f, (0, 1)))):
        assert_same(g(W, BATCH), expected, rtol=1e-9)
    second = fg.grad(fg.grad(lambda s: f(s * W, BATCH)))(1.0)
    h = 1e-5
    slopes = [np.sum(W * sum(network_gradient([s * W] * 24, BATCH)[0])) for s in (1 - h, 1 + h)]
    assert float(second) == pytest.approx((slopes[1] - slopes[0]) / (2 * h), rel=1e-5)


def test_more_memory_is_less_work():
    plans = [fg.checkpoint(deep, budget=b).plan(W, BATCH) for b in ("52kB", "80kB", "120kB", "1MB")]
    work = [p.extra_work for p in plans]
    assert work == sorted(work, reverse=True)
    assert work[0] < 0.5
    assert work[-1] == 0
    assert plans[-1].predicted_peak_bytes == plans[-1].unlimited_peak_bytes


def test_compiled_peak_is_the_memory_of_the_compiled_program():
    for budget in ("52kB", "90kB", "1MB"):
        f = fg.checkpoint(deep, budget=budget)
        stated = f.plan(W, BATCH).compiled_peak_bytes
        found = arena(fg.value_and_grad(f, (0, 1)), W, BATCH) + W.nbytes + BATCH.nbytes
        assert 0.8 * stated < found <= 1.1 * stated


def test_a_budget_that_is_too_small_says_which_one_would_do():
    f = fg.checkpoint(deep, budget="8kB")
    with pytest.raises(MemoryBudgetError, match=r"the least that value and gradient can") as caught:
        fg.grad(f)(W, BATCH)
    text = str(caught.value)
    assert "checkpoint(deep, budget=8.0 kB)" in text
    assert "test_checkpointing.py" in text
    needed = re.search(r"can do with is ([\d.]+ kB)", text)[1]
    plan = fg.checkpoint(deep, budget=f"{float(needed[:-3]) + 0.1} kB").plan(W, BATCH)
    assert plan.predicted_peak_bytes <= (float(needed[:-3]) + 0.1) * 1000
    assert float(f(W, BATCH)) == pytest.approx(float(deep(W, BATCH)))  # no derivative, no budget


# Mistakes.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": "a lot"}, r"memory is a number of bytes, or a text such as '50MB'"),
        ({"budget": 1.5}, r"got 1.5"),
        ({"budget": 0}, r"at least one byte"),
        ({"budget": "1MB", "policy": policies.dots_saveable}, r"a policy or a budget, not both"),
        ({"policy": "dots"}, r"a policy is a function of checkpoint_policies.*got 'dots'"),
        ({"policy": policies.save_only_these_names}, r"Call it: policy=save_only_these_names"),
    ],
)
def test_mistakes_with_options(options, message):
    with pytest.raises(ArgumentError, match=message):
        fg.checkpoint(deep, **options)


def test_other_mistakes():
    with pytest.raises(ArgumentError, match="checkpoint needs a function"):
        fg.checkpoint(3.0)
    with pytest.raises(ArgumentError, match="one by one, got"):
        policies.save_only_these_names(["a"])
    with pytest.raises(ArgumentError, match="needs a str"):
        fg.checkpoint_name(1.0, 2)
