"""Shared by the example programs: gradients of every intermediate value, by hand and automatic.

The gradient in an intermediate value is the gradient in a zero that is added to it, its *tap*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
import timing

Values = dict[str, Any]


class Steps:
    """The values of a forward pass, by name: `steps.keep(name, value)` adds a tap if there is one.

    Attributes:
        values: What was kept.
        taps: Zeros by the names of values.
    """

    def __init__(self, taps: Values | None = None) -> None:
        self.values: Values = {}
        self.taps = taps or {}

    def keep(self, name: str, value: Any) -> Any:
        """The value, with its tap."""
        self.values[name] = value + self.taps[name] if name in self.taps else value
        return self.values[name]


def differences(
    forward: Callable[..., Any], backward: Callable[..., Values], params: Values, *batch: Any
) -> dict[str, float]:
    """How much each gradient by hand differs from the automatic one, at most.

    Args:
        forward: The loss, `forward(params, *batch, steps)`.
        backward: All gradients, `backward(params, *batch, values)`.
        params: Arrays by name.
        *batch: What is not differentiated.
    """

    def loss(params: Values, taps: Values) -> Any:
        return forward(params, *batch, Steps(taps))

    steps = Steps()
    forward(params, *batch, steps)
    by_hand = backward(params, *batch, steps.values)
    taps = {name: np.zeros_like(value) for name, value in steps.values.items()}
    of_params, of_taps = fg.grad(loss, argnums=(0, 1))(params, taps)
    automatic = {**of_taps, **of_params}
    if by_hand.keys() != automatic.keys():
        raise ValueError(f"different gradients: {sorted(by_hand.keys() ^ automatic.keys())}")
    return {name: float(np.abs(g - automatic[name]).max()) for name, g in by_hand.items()}


def time_ratios(
    closed: Callable[..., Any], composed: Callable[..., Any], *given: Any
) -> dict[str, float]:
    """Time of a call of the first over that of the second, compiled and eager; also printed."""
    calls = {("compiled", True): fg.jit(closed), ("compiled", False): fg.jit(composed)}
    calls |= {("eager", True): closed, ("eager", False): composed}
    best = timing.fastest(calls, *given, rounds=21)
    ratios = {how: best[how, True] / best[how, False] for how in ("compiled", "eager")}
    print("time, closed / composed: " + ", ".join(f"{k} {x:.2f}" for k, x in ratios.items()))
    return ratios


def report(differences: dict[str, dict[str, float]]) -> None:
    """Print a table: gradients in rows, conventions in columns."""
    print(f"{'largest difference of':24}" + "  ".join(differences))
    for name in next(iter(differences.values())):
        errors = "  ".join(f"{found[name]:{len(c)}.1e}" for c, found in differences.items())
        print(f"  {name:22}{errors}")
