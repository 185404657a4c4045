"""Shared by the example programs: what the diagnostics say of the beginning of a training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import funcgrad as fg
from funcgrad import diagnostics, optim

HEALTHY = "healthy"


class Training(NamedTuple):
    """A loss of parameters and a batch, initial parameters, and an optimiser."""

    loss: Callable[..., Any]
    params: Any
    optimizer: optim.GradientTransformation


class Finding(NamedTuple):
    """A verdict in one or two words, and the reasons, with the place in the code."""

    verdict: str
    reasons: tuple[str, ...] = ()


def worst(training: Training, *batch: Any) -> Finding:
    """Look for the worst problem of the first step, without knowing what to look for."""
    loss, params, optimizer = training
    nan = diagnostics.find_nan(loss, params, *batch)
    if nan is not None:
        return Finding(nan.kind, (f"{nan.operation} at {nan.line}", *str(nan).splitlines()))
    updates, _ = optimizer.update(fg.grad(loss)(params, *batch), optimizer.init(params), params)
    report = diagnostics.gradient_report(loss, params, *batch, updates=updates)
    leaves = [] if report else [x for x in report.leaves if x.verdict == report.verdict]
    return Finding(report.verdict, tuple(f"{leaf.path}: {leaf.reason}" for leaf in leaves))
