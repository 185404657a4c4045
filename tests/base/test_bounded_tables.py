"""What is remembered has a bound, and the least recently used goes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.api import compilation
from funcgrad.base.tables import keep, used
from funcgrad.core import program as programs


def test_the_least_recently_used_go_first() -> None:
    table: dict[int, int] = {}
    for i in range(100):
        keep(table, i, -i, 16)
        used(table, 0, 0, 16)
        assert len(table) <= 16
        assert 0 in table
    assert list(table)[-1] == 0
    assert {98, 99} <= table.keys()


def test_functions_of_many_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "MAX_PROGRAMS", 8)
    f = fg.jit(lambda x: x + 1)
    for n in range(30):
        np.testing.assert_array_equal(f(np.ones(n)), np.full(n, 2.0))
        f(np.ones(3))
    assert len(f._cache) <= 8
    misses = f.cache_info().misses
    f(np.ones(29)), f(np.ones(3))
    assert f.cache_info().misses == misses
    np.testing.assert_array_equal(f(np.ones(10)), np.full(10, 2.0))
    assert f.cache_info().misses == misses + 1


def test_programs_mapped_over_many_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MAX_FACTS", 12)
    f = fg.jit(lambda x: x * 2)

    def facts(x: Any) -> int:
        f(x)
        (entry,) = f._cache.values()
        return len(entry.staged.program._memo)

    for n in range(1, 40):
        np.testing.assert_array_equal(fg.vmap(f)(np.ones((n, 2))), np.full((n, 2), 2.0))
        assert facts(np.ones(2)) <= 12
