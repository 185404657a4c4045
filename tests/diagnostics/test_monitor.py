"""Monitors in a compiled step, and the history of what they saw, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.diagnostics import History, monitor
from funcgrad.errors import ArgumentError

PARAMS = {"w": np.array([[3.0, 4.0]]), "b": np.zeros(2)}
LIMIT = 2.0


def clipped_step(watch):
    before, after = watch

    def step(grads, states, params):
        grads, first = before.update(grads, states[0])
        norm = np.sqrt(sum(np.sum(g**2) for g in fg.tree.leaves(grads)))
        scale = np.minimum(1.0, LIMIT / norm)
        grads = fg.tree.map(lambda g: g * scale, grads)
        return (grads, *after.update(grads, states[1], params)[1:]), first

    return step


@pytest.mark.parametrize("compile_it", [lambda f: f, fg.jit])
def test_norms_before_and_after_clipping(compile_it):
    watch = monitor("before"), monitor("after")
    states = [m.init(PARAMS) for m in watch]
    step = compile_it(clipped_step(watch))
    history = History()
    for scale in (1.0, 0.1, 10.0):
        grads = {"w": scale * np.array([[1.0, 2.0]]), "b": scale * np.array([2.0, 0.0])}
        (_, after), before = step(grads, states, PARAMS)
        states = [before, after]
        history.record({"chain": states}, loss=scale)
    np.testing.assert_allclose(history.norms["before"], [3.0, 0.3, 30.0])
    np.testing.assert_allclose(history.norms["after"], [2.0, 0.3, 2.0])
    np.testing.assert_allclose(history.leaf_norms["before"]["['b']"], [2.0, 0.2, 20.0])
    np.testing.assert_allclose(history.largest["before"], [2.0, 0.2, 20.0])
    ratio = np.array([2.0, 0.3, 2.0]) * np.sqrt(5) / 3 / 5
    np.testing.assert_allclose(history.ratios["after"]["['w']"], ratio)
    assert np.isnan(history.ratios["after"]["['b']"]).all()
    assert history.ratios["before"] == {}
    assert history.values == {"loss": [1.0, 0.1, 10.0]}
    assert int(states[0].count) == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_states_keep_their_types_in_compiled_loops(dtype):
    params = [np.ones(3, dtype), np.ones((0, 2), dtype)]
    watch = monitor()

    def body(state, scale):
        return watch.update([scale * p for p in params], state, params)[1], None

    scales = np.arange(1, 4).astype(dtype)
    state = fg.jit(lambda s: fg.lax.scan(body, s, scales)[0])(watch.init(params))
    np.testing.assert_allclose(state.norms[0], 3 * np.sqrt(3), rtol=1e-6)
    assert (int(state.count), float(state.largest)) == (3, 3.0)
    real = np.zeros((), dtype).real.dtype
    assert {np.asarray(x).dtype for x in fg.tree.leaves(state.norms)} == {real}


def test_what_is_not_finite_is_counted_and_nothing_is_changed():
    watch = monitor()
    updates = [np.array([1.0, np.nan, np.inf]), np.array([-np.inf])]
    same, state = watch.update(updates, watch.init(updates))
    assert same is updates
    assert int(state.non_finite) == 3


@pytest.mark.sampled(2)
@pytest.mark.parametrize("compile_it", [lambda f: f, fg.jit])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_statistics_are_those_of_numpy(compile_it, dtype):
    rng = np.random.default_rng(0)
    grads = {"w": rng.normal(3.0, 2.0, (40, 5)).astype(dtype), "one": np.full((), 2.0, dtype)}
    params = fg.tree.map(lambda x: 2 * x + 1, grads)
    grads["w"] *= 1j if dtype == np.complex128 else 1
    watch, history = monitor("all", bins=7), History()
    state = compile_it(watch.update)(grads, watch.init(grads), params)[1]
    history.record(state)
    history.record(state)
    kinds = (history.statistics, grads), (history.data_statistics, params)
    for kept, tree in kinds:
        for path, x in (("['w']", tree["w"]), ("['one']", tree["one"])):
            seen = kept["all"][path]
            assert len(seen) == 2
            x = np.abs(x) if dtype == np.complex128 else x
            expected = np.mean(x), np.std(x), np.linalg.norm(x.ravel()), np.min(x), np.max(x)
            found = [getattr(seen[1], a) for a in ("mean", "std", "norm", "low", "high")]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-12)
        counts, edges = np.histogram(np.abs(tree["w"]) if dtype == np.complex128 else tree["w"], 7)
        np.testing.assert_array_equal(kept["all"]["['w']"][0].counts, counts)
        np.testing.assert_allclose(kept["all"]["['w']"][0].edges, edges, rtol=1e-5)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex64])
def test_statistics_in_loops_of_empty_and_of_bad_arrays(dtype):
    watch = monitor(bins=4)
    params = [np.ones(3, dtype), np.ones((0, 2), dtype)]

    def body(state, scale):
        return watch.update([scale * p for p in params], state, params)[1], None

    scales = np.arange(1, 4).astype(dtype)
    state = fg.jit(lambda s: fg.lax.scan(body, s, scales)[0])(watch.init(params))
    assert [float(x.mean) for x in state.statistics] == [3.0, 0.0]
    assert [x.counts.tolist() for x in state.statistics] == [[3, 0, 0, 0], [0, 0, 0, 0]]
    if np.dtype(dtype).kind == "f":
        for x in (np.array([1.0, np.nan, np.inf, 3.0], dtype), np.full(4, np.nan, dtype)):
            for update in (watch.update, fg.jit(watch.update)):
                (seen,) = update([x], watch.init([x]))[1].statistics
                finite = x[np.isfinite(x)]
                assert seen.counts.sum() == finite.size
                assert float(seen.mean) == (2.0 if finite.size else 0.0)
                assert float(seen.std) == (1.0 if finite.size else 0.0)


def test_a_monitor_without_bins_has_no_statistics_and_no_further_passes():
    history, watch = History(), monitor("plain")
    state = watch.update(PARAMS, watch.init(PARAMS), PARAMS)[1]
    history.record(state)
    assert state.statistics == state.data_statistics == []
    assert history.statistics == history.data_statistics == {}


def test_mistakes_are_named():
    for bins in (-1, 2.5, True, None):
        with pytest.raises(ArgumentError, match="number of bins of at least 0, got"):
            monitor(bins=bins)
    history, watch = History(), monitor("twice")
    state = watch.init(PARAMS)
    with pytest.raises(ArgumentError, match="two monitors have the same name"):
        history.record([state, state])
    with pytest.raises(ArgumentError, match="no state of a monitor"):
        history.record([1.0])
    with pytest.raises(ArgumentError, match="text as name"):
        monitor(3)
