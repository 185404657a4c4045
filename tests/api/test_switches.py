"""Parts that only make calls fast can be switched off, and nothing else changes."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.api import calls
from funcgrad.higher_order import remembered

X = np.array([0.5, 1.5, -2.0])


@pytest.mark.parametrize("is_on", [True, False])
def test_call_paths(monkeypatch, is_on):
    monkeypatch.setattr(calls, "ARE_ON", is_on)
    f = fg.jit(lambda p, n: {"y": np.sin(p["x"]) * n, "n": n}, static_argnums=1)
    found = [f({"x": X}, 3) for _ in range(3)]
    assert all(np.array_equal(out["y"], np.sin(X) * 3) and out["n"] == 3 for out in found)
    assert bool(f._paths) is is_on
    assert f.cache_info().hits == 2


@pytest.mark.parametrize("is_on", [True, False])
def test_traces_that_are_used_again(monkeypatch, is_on):
    monkeypatch.setattr(remembered, "IS_ON", is_on)
    monkeypatch.setattr(remembered, "_remembered", OrderedDict())  # one that is not full
    n_traces = 0

    def once():
        nonlocal n_traces
        before = len(remembered._remembered)
        out = lax.fori_loop(0, 3, lambda i, c: c * 0.125 + i, X)
        n_traces += len(remembered._remembered) - before
        return out

    first, second = once(), once()
    expected = X
    for i in range(3):
        expected = expected * 0.125 + i
    assert np.array_equal(first, expected)
    assert np.array_equal(second, expected)
    assert n_traces == (1 if is_on else 0)
