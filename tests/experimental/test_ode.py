"""`funcgrad.experimental.ode` against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.experimental.ode import odeint

TIMES = np.linspace(0.0, 3.0, 5)


def oscillator(y: Any, t: Any, p: Any) -> Any:
    return {"x": y["v"], "v": -p["k"] * y["x"]}


def test_pytrees() -> None:
    def path(k: Any) -> Any:
        return odeint(oscillator, {"x": 1.0, "v": np.zeros(())}, TIMES, {"k": k})["x"]

    np.testing.assert_allclose(path(2.0), np.cos(np.sqrt(2) * TIMES), rtol=0, atol=1e-6)
    expected = -np.sin(np.sqrt(2) * TIMES) * TIMES / (2 * np.sqrt(2))
    for derivative in (fg.jacfwd(path), fg.jacrev(path)):
        np.testing.assert_allclose(derivative(2.0), expected, rtol=0, atol=1e-6)


def test_options() -> None:
    exact = np.exp(-TIMES)
    loose = odeint(lambda y, t: -y, 1.0, TIMES, rtol=1e-3, atol=1e-3)
    short = odeint(lambda y, t: -y, 1.0, TIMES, rtol=1e-3, atol=1e-3, hmax=0.01, mxstep=1000)
    assert np.max(np.abs(short - exact)) < 1e-9 < np.max(np.abs(loose - exact))
