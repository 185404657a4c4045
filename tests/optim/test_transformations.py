"""What holds for all optimisers: dtypes, compilation, derivatives, ensembles; and single parts."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import optim
from funcgrad.errors import ArgumentError, TreeError
from tests.optim.problem import CHAINS, OPTIMIZERS, SCHEDULES
from tests.optim.test_optimizers import made

NAMES = [*OPTIMIZERS, *CHAINS]


def start(dtype: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"w": rng.normal(size=(2, 3)).astype(dtype), "b": rng.normal(size=3).astype(dtype)}


def loss(p: Any, x: Any = 1.0) -> Any:
    return ((p["w"] - 0.5) ** 2).sum() + ((p["b"] * x + 0.5) ** 2).sum()


def step(tx: Any, params: Any, state: Any, x: Any = 1.0) -> tuple[Any, Any]:
    value, grad = fg.value_and_grad(loss)(params, x)
    extra = {"value": value, "grad": grad, "value_fn": lambda p: loss(p, x)}
    updates, state = optim.with_extra_args_support(tx).update(grad, state, params, **extra)
    return optim.apply_updates(params, updates), state


def types_of(tree: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(str(x.dtype), x.shape) for x in fg.tree.leaves(tree)]


def in_dtype(name: str, dtype: str) -> Any:
    """The optimiser; those that accumulate in float64 are made to do it in ``dtype``."""
    if name.startswith("MultiSteps"):
        return optim.MultiSteps(optim.adam(0.1), 2).gradient_transformation()
    return made(name)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_float32_stays_float32(name):
    params, tx = start(np.float32), in_dtype(name, "float32")
    state = tx.init(params)
    numbers = ("inject_hyperparams",)  # their hyperparameters are float64
    allowed = {"float32", "int32", "bool", *(("float64",) if name in numbers else ())}
    assert {dtype for dtype, _ in types_of(state)} <= allowed
    with fg.numpy_dtype_promotion("strict"):
        new, after = step(tx, params, state)
    assert types_of(new) == types_of(params)
    assert types_of(after) == types_of(state)
    new, after = fg.jit(lambda p, s: step(tx, p, s), dtype_drift="error").eval_shape(params, state)
    assert types_of(new) == types_of(params)
    assert types_of(after) == types_of(state)


WITHOUT_SEARCH = [name for name in OPTIMIZERS if not name.startswith("lbfgs")]


def trained(tx: Any, params: Any, steps: int = 5) -> Any:
    def body(carry: Any, _: Any) -> tuple[Any, None]:
        return step(tx, *carry), None

    return fg.lax.scan(body, (params, tx.init(params)), length=steps)[0][0]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", ["sgd nesterov", "rmsprop centered", "adamw", "lamb", "lbfgs"])
def test_learning_rates_can_be_learned(name):
    function, arguments = OPTIMIZERS[name]
    params = start(np.float64)

    def final_loss(rate: Any) -> Any:
        return loss(
            trained(getattr(optim, function)(**{**arguments, "learning_rate": rate}), params)
        )

    rate, h = arguments["learning_rate"], 1e-6
    expected = (final_loss(rate + h) - final_loss(rate - h)) / (2 * h)
    for f in (fg.grad(final_loss), fg.jit(fg.grad(final_loss))):
        np.testing.assert_allclose(f(rate), expected, rtol=1e-5)


@pytest.mark.nightly
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["b1", "b2", "eps", "weight_decay"])
def test_other_hyperparameters_can_be_learned(name):
    params, at = start(np.float64), {"b1": 0.8, "b2": 0.95, "eps": 0.1, "weight_decay": 0.2}

    def final_loss(value: Any) -> Any:
        return loss(trained(optim.adamw(0.1, **{**at, name: value}), params))

    h = 1e-6
    expected = (final_loss(at[name] + h) - final_loss(at[name] - h)) / (2 * h)
    np.testing.assert_allclose(fg.grad(final_loss)(at[name]), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "search", [pytest.param("lbfgs zoom", marks=pytest.mark.nightly), "sgd backtracking"]
)
def test_line_searches_are_differentiable(search):
    """With respect to data that the loss depends on, in reverse mode through the loops."""
    params, tx = start(np.float64), made(search)

    def final_loss(x: Any) -> Any:
        new, state = step(tx, params, tx.init(params), x)
        return loss(step(tx, new, state, x)[0], 2.0)

    h = 1e-6
    expected = (final_loss(1.3 + h) - final_loss(1.3 - h)) / (2 * h)
    np.testing.assert_allclose(fg.grad(final_loss)(1.3), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", ["sgd momentum", "adam", "lion", "lamb", "radam"])
def test_an_ensemble_of_learning_rates(name):
    function, arguments = OPTIMIZERS[name]
    params, rates = start(np.float32), np.array([0.01, 0.1, 0.3])

    def run(rate: Any) -> Any:
        return trained(getattr(optim, function)(**{**arguments, "learning_rate": rate}), params)

    together = fg.jit(fg.vmap(run))(rates)
    for i, rate in enumerate(rates):
        alone = run(rate)
        for key, x in alone.items():
            assert together[key].dtype == np.float32
            np.testing.assert_allclose(together[key][i], x, rtol=2e-5, atol=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("lbfgs zoom", marks=pytest.mark.nightly),
        *("lbfgs backtracking", "MultiSteps", "apply_if_finite"),
    ],
)
def test_an_ensemble_of_starts(name):
    tx = in_dtype(name, "float64")
    starts = fg.tree.map(lambda x: np.stack([x, 2 * x, -x]), start(np.float64))
    together = fg.vmap(lambda p: trained(tx, p, 3))(starts)
    for i in range(3):
        alone = trained(tx, fg.tree.map(lambda x, i=i: x[i], starts), 3)
        for key, x in alone.items():
            np.testing.assert_allclose(together[key][i], x, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["adamw", "rmsprop centered", "sgd momentum"])
def test_a_step_is_one_kernel_for_every_leaf(name):
    """And one more for what depends on the number of the step alone."""
    tx, params = made(name), start(np.float32)
    state = tx.init(params)

    def f(grads: Any, state: Any, params: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return optim.apply_updates(params, updates), state

    plan = fg.jit(f).lower(params, state, params).as_text().partition("\nplan")[2]
    runs = re.findall(r"^  kernel \d+:", plan, re.MULTILINE)
    assert len(runs) <= len(params) + 1, plan


def test_a_step_may_overwrite_its_state():
    params, tx = start(np.float64), optim.chain(optim.adam(0.1), optim.params_ema(0.9))
    f = fg.jit(lambda p, s: step(tx, p, s), donate_argnums=(0, 1))
    expected, state = fg.tree.map(np.array, params), tx.init(params)
    for _ in range(3):
        expected, state = step(tx, expected, state)
    new, state = fg.tree.map(np.array, params), tx.init(params)
    for _ in range(3):
        new, state = f(new, state)
    for key, x in expected.items():
        np.testing.assert_allclose(new[key], x, rtol=1e-12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_traced_and_differentiated(name):
    function, arguments = SCHEDULES[name]
    schedule = getattr(optim, function)(*arguments)
    counts = np.arange(40, dtype=np.int32)
    together = fg.jit(fg.vmap(schedule))(counts)
    np.testing.assert_allclose(together, [float(schedule(n)) for n in counts], rtol=1e-12)
    if isinstance(arguments[0], float):

        def at_ten(value: Any) -> Any:
            return getattr(optim, function)(value, *arguments[1:])(10)

        h, x = 1e-6, arguments[0]
        difference = (at_ten(x + h) - at_ten(x - h)) / (2 * h)
        np.testing.assert_allclose(fg.grad(at_ten)(x), difference, rtol=1e-6, atol=1e-9)


# Norms and clipping.


def test_the_norm_of_zeros_has_derivative_zero():
    zeros = {"w": np.zeros(3), "b": 0.0}
    assert optim.global_norm(zeros) == 0
    for leaf in fg.tree.leaves(fg.grad(optim.global_norm)(zeros)):
        np.testing.assert_array_equal(leaf, np.zeros(np.shape(leaf)))
    assert optim.global_norm({}) == 0
    np.testing.assert_allclose(optim.global_norm([np.array([3j, 4.0])]), 5.0)


@pytest.mark.parametrize(
    "tx",
    [optim.clip_by_global_norm(1.0), optim.clip_by_block_rms(1.0), optim.clip(1.0)],
    ids=["global norm", "block rms", "value"],
)
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e3, np.nan])
def test_clipping_keeps_what_is_small_and_shows_nan(tx, size):
    g = {"w": np.full((2, 2), size), "b": np.zeros(0)}
    out, _ = tx.update(g, tx.init(g))
    if size < 0.1:
        np.testing.assert_array_equal(out["w"], g["w"])
    elif np.isnan(size):
        assert np.isnan(out["w"]).all()
    else:
        assert np.abs(out["w"]).max() <= 1.0


def test_nans_are_replaced_and_told():
    tx = optim.zero_nans()
    g = {"a": np.array([1.0, np.nan]), "b": np.ones(2)}
    out, state = tx.update(g, tx.init(g))
    np.testing.assert_array_equal(out["a"], [1.0, 0.0])
    assert (bool(state.found_nan["a"]), bool(state.found_nan["b"])) == (True, False)


# Wrappers.


def test_steps_that_are_not_finite_are_left_out_until_too_many():
    tx = optim.apply_if_finite(optim.sgd(1.0, 0.5), max_consecutive_errors=2)
    state = tx.init(np.zeros(2))
    seen = []
    for g in (1.0, np.nan, np.inf, 2.0, np.nan, np.nan, np.nan):
        updates, state = fg.jit(tx.update)(np.array([g, 1.0]), state)
        seen.append((float(updates[1]), int(state.notfinite_count), bool(state.last_finite)))
    assert [s[1:] for s in seen] == [
        *((0, True), (1, False), (2, False), (0, True), (1, False), (2, False), (3, False))
    ]
    assert [s[0] for s in seen] == [-1.0, 0.0, 0.0, -1.5, 0.0, 0.0, -1.75]
    assert int(state.total_notfinite) == 5


def test_accumulation_takes_a_step_with_the_mean():
    tx = optim.MultiSteps(optim.sgd(1.0), every_k_schedule=3)
    state = tx.init(0.0)
    updates = []
    for g in (1.0, 2.0, 6.0, 1.0):
        u, state = tx.update(g, state, 0.0)
        updates.append((float(u), bool(tx.has_updated(state))))
    assert updates == [(0.0, False), (0.0, False), (-3.0, True), (0.0, False)]


def test_masks_may_be_functions_and_prefixes():
    params = {"layer": {"w": np.ones((2, 2)), "b": np.ones(2)}, "scale": np.ones(())}
    for mask in (
        lambda p: fg.tree.map(lambda leaf: np.ndim(leaf) > 0, p),
        {"layer": True, "scale": False},
    ):
        tx = optim.masked(optim.scale(3.0), mask)
        out, _ = fg.jit(tx.update)(params, tx.init(params))
        assert [float(np.max(x)) for x in fg.tree.leaves(out)] == [3.0, 3.0, 1.0]


def test_hyperparameters_are_state():
    tx = optim.inject_hyperparams(optim.adamw, static_args="mask")(
        optim.linear_schedule(1.0, 0.0, 10),
        mask=lambda p: {"w": True, "b": False},
        weight_decay=0.5,
    )
    params = {"w": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    state = tx.init(params)
    assert set(state.hyperparams) == {
        "learning_rate",
        "b1",
        "b2",
        "eps",
        "eps_root",
        "weight_decay",
    }
    update = fg.jit(tx.update)
    for count in range(3):
        updates, state = update(fg.tree.map(np.zeros_like, params), state, params)
        np.testing.assert_allclose(state.hyperparams["learning_rate"], 1 - count / 10)
        np.testing.assert_allclose(updates["w"], -0.5 * (1 - count / 10), rtol=1e-6)
        np.testing.assert_array_equal(updates["b"], 0)
    state.hyperparams["weight_decay"] = np.float64(0.25)
    updates, state = update(fg.tree.map(np.zeros_like, params), state, params)
    np.testing.assert_allclose(updates["w"], -0.25 * 0.7, rtol=1e-6)


def test_a_state_is_differentiated_with_respect_to_its_hyperparameters():
    tx = optim.inject_hyperparams(optim.sgd)(0.1)
    state = tx.init(1.0)

    def moved(hyperparams: Any) -> Any:
        return tx.update(3.0, state._replace(hyperparams=hyperparams), 1.0)[0]

    assert fg.grad(moved)(state.hyperparams)["learning_rate"] == -3.0


WITH_RATES = [
    name
    for name in optim.__all__
    if inspect.isfunction(getattr(optim, name))
    and "learning_rate" in inspect.signature(getattr(optim, name)).parameters
]


@pytest.mark.parametrize("name", WITH_RATES)
def test_rates_that_cannot_be_meant_are_refused_where_they_are_given(name):
    make = getattr(optim, name)
    bad = {
        "is (0|0.0), .*set_to_zero": [0, 0.0, np.float32(0)],
        "is -0.1, .*against the gradient already": [-0.1, np.float64(-0.1), np.array(-0.1)],
        "is nan, .*where it was computed": [np.nan, np.float32(np.nan), np.array(np.nan)],
        "is inf, ": [np.inf],
    }
    for text, rates in bad.items():
        for rate in rates:
            with pytest.raises(ArgumentError, match=text):
                make(rate)
    for rate in (0.1, 1, np.float32(0.1), np.array(0.1), np.array(0.0), lambda count: 0.0):
        make(rate)


def test_there_are_rates_to_refuse():
    assert {"sgd", "adam", "lbfgs", "adadelta", "scale_by_learning_rate"} < set(WITH_RATES)
    assert len(WITH_RATES) >= 16


def test_traced_rates_and_those_of_states_may_be_anything():
    def moved(rate: Any) -> Any:
        tx = optim.sgd(rate)
        return tx.update(3.0, tx.init(1.0), 1.0)[0]

    for transformed in (fg.jit(moved), fg.vmap(moved)):
        np.testing.assert_array_equal(transformed(np.array([0.0, -1.0])), [0.0, 3.0])
    assert fg.grad(moved)(-0.5) == -3.0
    tx = optim.inject_hyperparams(optim.sgd)(optim.linear_schedule(0.0, 1.0, 2))
    state = tx.init(1.0)
    assert float(tx.update(3.0, state, 1.0)[0]) == 0.0
    tx = optim.inject_hyperparams(optim.sgd)(learning_rate=0.5)
    state = tx.init(1.0)
    for update in (tx.update, fg.jit(tx.update)):
        state.hyperparams["learning_rate"] = 0.0
        assert float(update(3.0, state, 1.0)[0]) == 0.0
    with pytest.raises(ArgumentError, match=r"the learning rate is -0\.5"):
        optim.inject_hyperparams(optim.sgd)(learning_rate=-0.5).init(1.0)


def test_running_means_of_parameters():
    tx = optim.chain(optim.sgd(1.0), optim.params_ema(0.5))
    p = np.array([4.0])
    state = tx.init(p)
    for _ in range(2):
        updates, state = tx.update(np.ones(1), state, p)
        p = optim.apply_updates(p, updates)
    np.testing.assert_allclose(state[1].ema, [(3.5 + 2) / 2])
    np.testing.assert_allclose(optim.incremental_update(p, np.array([4.0]), 0.25), [3.5])


def test_leaves_may_be_numbers_and_trees_empty():
    for tx in (optim.adam(0.1), optim.sgd(0.1, 0.9), optim.rmsprop(0.1), optim.lamb(0.1)):
        updates, _ = fg.jit(tx.update)(1.0, tx.init(2.0), 2.0)
        new = optim.apply_updates(2.0, updates)
        assert (new.dtype, new.shape) == (np.float64, ())
        assert new < 2.0
        updates, _ = tx.update({}, tx.init({}), {})
        assert optim.apply_updates({}, updates) == {}
        zero_size = {"w": np.zeros((0, 3), np.float32), "none": None}
        updates, _ = tx.update(zero_size, tx.init(zero_size), zero_size)
        assert updates["w"].shape == (0, 3)


def test_complex_parameters_have_real_second_moments():
    p = np.array([1 + 1j, 2.0])
    tx = optim.adam(0.1)
    updates, state = tx.update(np.array([3 + 4j, 1j]), tx.init(p), p)
    assert state[0].nu.dtype == np.float64
    np.testing.assert_allclose(updates, [-0.1 * (0.6 + 0.8j), -0.1j], rtol=1e-6)


def test_many_steps_do_not_overflow_the_count():
    tx = optim.adam(0.1)
    state = tx.init(np.ones(2))
    state = (state[0]._replace(count=np.array(np.iinfo(np.int32).max, np.int32)), *state[1:])
    updates, state = tx.update(np.ones(2), state)
    assert state[0].count == np.iinfo(np.int32).max
    assert np.isfinite(updates).all()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: optim.chain(optim.adam),
            ArgumentError,
            "argument 0 is a function 'adam', no grad",
        ),
        (
            lambda: optim.chain(optim.clip(1.0), optim.sgd(0.1)).update(1.0, ()),
            ArgumentError,
            "a chain of 2 transformations needs the tuple of as many states .* got a tuple of 0",
        ),
        (
            lambda: optim.adamw(0.1).update(1.0, optim.adamw(0.1).init(1.0)),
            ArgumentError,
            r"add_decayed_weights needs the parameters: call update\(updates, state, params\)",
        ),
        (
            lambda: optim.lbfgs().update(1.0, optim.lbfgs().init(1.0), 1.0),
            ArgumentError,
            "needs the loss: call update.* Missing: value, grad, value_fn",
        ),
        (
            lambda: optim.adam(0.1).update({"a": 1.0}, optim.adam(0.1).init({"b": 1.0})),
            TreeError,
            r"expected PyTreeDef\({'b': \*}\), got PyTreeDef\({'a': \*}\)",
        ),
        (lambda: optim.scale_by_lbfgs(0), ArgumentError, "memory_size must be at least 1, got 0"),
        (
            lambda: optim.scale_by_zoom_linesearch(5, initial_guess_strategy="two"),
            ArgumentError,
            "must be 'keep' or 'one', got 'two'",
        ),
        (
            lambda: optim.value_and_grad_from_state(loss)(1.0, state=optim.adam(0.1).init(1.0)),
            ArgumentError,
            "the state holds no gradient of a line search",
        ),
        (lambda: optim.MultiSteps(optim.sgd(0.1), 0), ArgumentError, "must be at least 1, got 0"),
        (
            lambda: fg.jit(lambda m: optim.masked(optim.scale(1.0), m).init(1.0))(True),
            ArgumentError,
            "a mask is a tree of bools that are known before the step",
        ),
        (
            lambda: optim.multi_transform({"a": optim.sgd(0.1)}, "b").init(1.0),
            ArgumentError,
            r"no transformation for label 'b', only for \['a'\]",
        ),
        (
            lambda: optim.inject_hyperparams(optim.sgd, static_args="rate"),
            ArgumentError,
            r"static_args names \['rate'\], but the arguments are \['learning_rate'",
        ),
        (
            lambda: optim.join_schedules([optim.constant_schedule(1.0)], [3]),
            ArgumentError,
            "1 schedules have 0 boundaries between them, got 1",
        ),
        (
            lambda: optim.cosine_decay_schedule(1.0, 0),
            ArgumentError,
            "decay_steps must be positive, got 0",
        ),
        (
            lambda: optim.piecewise_interpolate_schedule("cubic", 1.0),
            ArgumentError,
            "must be 'linear' or 'cosine', got 'cubic'",
        ),
        (
            lambda: optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 10),
            ArgumentError,
            "decay_steps - warmup_steps must be positive, got 0",
        ),
    ],
)
def test_mistakes_are_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
