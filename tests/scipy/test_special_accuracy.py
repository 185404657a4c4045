"""Special functions against recorded values of mpmath, over their whole range."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.scipy import special
from tests.scipy.record_special import RECORDED

TABLE: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
GOAL = 1e-13
WORSE: dict[str, float] = {"ndtr": 2e-13, "ndtri_exp": 1e-12}
"""Relative errors of functions that are worse: SciPy's own. The documentation has them."""


def number(x: Any) -> Any:
    return complex(x["re"], x["im"]) if isinstance(x, dict) else x


def error_of(name: str) -> float:
    """The largest relative error over the recorded rows."""
    worst = 0.0
    for args, expected in TABLE[name]:
        found = getattr(special, name)(*map(number, args))
        both = zip(found, expected, strict=False) if isinstance(found, tuple) else None
        pairs = [(found, expected)] if both is None else list(both)
        for ours, theirs in pairs:
            exact = number(theirs)
            worst = max(worst, float(np.max(np.abs((ours - exact) / exact))))
    return worst


@pytest.mark.parametrize("name", TABLE)
def test_relative_error(name: str) -> None:
    assert error_of(name) < WORSE.get(name, GOAL)


def test_bounds_are_not_loose() -> None:
    for name, bound in WORSE.items():
        assert error_of(name) > bound / 10


def test_densities_of_gammainc_reach_subnormal_numbers() -> None:
    a, x = 51.79474679231202, 1.3894954943731388e-05
    found = fg.grad(special.gammainc, argnums=1)(a, x)
    assert found == pytest.approx(np.exp((a - 1) * np.log(x) - x - special.gammaln(a)), rel=1e-6)
    assert 0 < found < np.finfo(float).tiny
