"""The arithmetic of the timings: order of the sides, means, ratios within a round, quartiles."""

from __future__ import annotations

import pytest

from tests.benchmarks import stopwatch
from tests.benchmarks.stopwatch import Side, Spread, ratios


def test_spread_gives_median_and_quartiles():
    assert Spread.of([4.0, 1.0, 3.0, 2.0, 5.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)


def test_ratios_are_formed_within_a_round():
    # The machine was ten times slower in the second round: the ratio does not see it.
    ours, theirs = [1.0, 10.0, 1.0], [2.0, 20.0, 2.0]
    assert Spread.of(ratios(theirs, ours)) == Spread(2.0, 2.0, 2.0)
    assert Spread.of(ours).median == 1.0


@pytest.mark.usefixtures("small_heap")
def test_sides_take_turns_and_every_round_starts_with_another(monkeypatch):
    order = []
    monkeypatch.setattr(stopwatch, "calls_per_sample", lambda side: 1)
    sides = [Side(name, lambda name=name: order.append(name)) for name in "abc"]
    result = stopwatch.interleave(sides, rounds=3)
    assert "".join(order) == "abcbcacab"
    assert {name: len(samples) for name, samples in result.items()} == dict.fromkeys("abc", 3)


@pytest.mark.usefixtures("small_heap")
def test_a_sample_is_the_mean_of_its_calls_and_includes_finishing(monkeypatch):
    clock = iter([100.0, 106.0])
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: next(clock))
    done = []
    side = Side("x", lambda: done.append("call"), lambda: done.append("finish"))
    assert stopwatch.sample(side, 3) == pytest.approx(2.0)
    assert done == ["call"] * 3 + ["finish"]


def test_long_samples_begin_with_calls_that_do_not_count(monkeypatch):
    clock = iter([0.0, 60.0])
    done = []
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: done.append("clock") or next(clock))
    side = Side("x", lambda: done.append("call"), lambda: done.append("finish"))
    assert stopwatch.sample(side, 20) == 3.0
    warm, timed = ["call"] * 2 + ["finish"], ["call"] * 20 + ["finish"]
    assert done == [*warm, "clock", *timed, "clock"]
