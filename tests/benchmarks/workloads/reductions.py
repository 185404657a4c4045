"""Reductions along every axis, softmax and its kin, and running sums."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload

EVERYWHERE = ("torch", "autograd")


def cube(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


def reduction(kind: str, axis: int, depth: int, rows: int, columns: int) -> Problem:
    """`{kind}` of {depth} x {rows} x {columns} numbers along axis {axis}."""

    def formula(xnp: Any) -> Any:
        return lambda x: getattr(xnp, kind)(x, axis=axis)

    def torch_formula(torch: Any) -> Any:
        function = {"sum": torch.sum, "max": torch.amax, "var": torch.var}[kind]
        options = {"correction": 0} if kind == "var" else {}
        return lambda x: function(x, dim=axis, **options)

    return Problem(
        (cube(depth, rows, columns),),
        lambda xp: formula(xp.numpy),
        formula(np),
        torch=torch_formula,
        as_written=("autograd",),
        # Of so many extremes some change places within every step of finite differences.
        complex_step=kind == "max",
    )


for _kind, _rows in (("sum", FORWARD), ("max", BOTH), ("var", BOTH)):
    for _axis in range(3):
        workload(
            small=(_kind, _axis, 4, 5, 6),
            normal=(_kind, _axis, 160, 160, 160),
            large=(_kind, _axis, 400, 400, 400),
            rows=_rows,
            name=f"{_kind}-axis-{_axis}",
        )(reduction)


@workload(small=(1000,), normal=(8_000_000,), large=(40_000_000,), rows=FORWARD)
def sum_of_squares(count: int) -> Problem:
    """Sum of the squares of {count} numbers."""

    def formula(xnp: Any) -> Any:
        return lambda x: xnp.sum(x * x)

    arguments = (np.random.default_rng(0).normal(size=count),)
    return Problem(arguments, lambda xp: formula(xp.numpy), formula(np), as_written=EVERYWHERE)


@workload(small=(8, 5), normal=(2048, 1024), large=(16384, 1024), rows=BOTH)
def softmax(rows: int, columns: int) -> Problem:
    """Softmax of {rows} rows of {columns} numbers."""

    def formula(xnp: Any) -> Any:
        def run(x: Any) -> Any:
            e = xnp.exp(x - xnp.max(x, axis=-1, keepdims=True))
            return e / xnp.sum(e, axis=-1, keepdims=True)

        return run

    return Problem(
        (cube(rows, columns),),
        lambda xp: partial(xp.nn.softmax, axis=-1),
        formula(np),
        torch=lambda torch: lambda x: torch.softmax(x, -1),
        tolerance=10.0,
    )


@workload(small=(8, 5), normal=(2048, 1024), large=(16384, 1024), rows=BOTH)
def log_sum_exp(rows: int, columns: int) -> Problem:
    """log-sum-exp of {rows} rows of {columns} numbers."""

    def reference(x: Any) -> Any:
        top = np.max(x, axis=-1)
        return top + np.log(np.sum(np.exp(x - top[:, None]), axis=-1))

    return Problem(
        (cube(rows, columns),),
        lambda xp: partial(xp.nn.logsumexp, axis=-1),
        reference,
        torch=lambda torch: lambda x: torch.logsumexp(x, -1),
    )


@workload(small=(8, 6), normal=(2048, 1024), large=(16384, 1024), rows=BOTH)
def layer_norm(rows: int, columns: int) -> Problem:
    """Layer norm of {rows} rows of {columns} numbers, with gain and bias."""
    rng = np.random.default_rng(0)
    arguments = (cube(rows, columns), rng.normal(size=columns), rng.normal(size=columns))

    def formula(xnp: Any) -> Any:
        def run(x: Any, gain: Any, bias: Any) -> Any:
            centred = x - xnp.mean(x, axis=-1, keepdims=True)
            variance = xnp.mean(centred * centred, axis=-1, keepdims=True)
            return gain * centred / xnp.sqrt(variance + 1e-5) + bias

        return run

    def torch_formula(torch: Any) -> Any:
        return lambda x, gain, bias: torch.layer_norm(x, x.shape[-1:], gain, bias, 1e-5)

    return Problem(
        arguments,
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1, 2),
        torch=torch_formula,
        as_written=("autograd",),
        tolerance=10.0,
    )


@workload(small=(6, 5), normal=(2000, 1000), large=(10000, 2000), rows=BOTH)
def standardise(rows: int, columns: int) -> Problem:
    """tanh of {columns} columns of {rows} numbers, standardised."""

    def formula(xnp: Any) -> Any:
        def run(x: Any) -> Any:
            centred = x - xnp.mean(x, axis=0)
            return xnp.tanh(centred / xnp.sqrt(xnp.mean(centred * centred, axis=0)))

        return run

    return Problem(
        (cube(rows, columns) + 1.0,),
        lambda xp: formula(xp.numpy),
        formula(np),
        as_written=EVERYWHERE,
        tolerance=30.0,
    )


@workload(small=(6, 5), normal=(1000, 1000), large=(5000, 4000), rows=FORWARD)
def nearest(rows: int, columns: int) -> Problem:
    """`argmin` of {rows} rows of {columns} numbers."""

    def formula(xnp: Any) -> Any:
        return lambda x: xnp.argmin(x, axis=1)

    def torch_formula(torch: Any) -> Any:
        return lambda x: torch.argmin(x, dim=1)

    arguments = (cube(rows, columns),)
    return Problem(arguments, lambda xp: formula(xp.numpy), formula(np), torch=torch_formula)


@workload(small=(60,), normal=(1_000_000,), large=(20_000_000,), rows=BOTH)
def cumulative_sum(count: int) -> Problem:
    """Running sum of {count} numbers."""

    def formula(xnp: Any) -> Any:
        return lambda x: xnp.cumsum(x, 0)

    arguments = (np.random.default_rng(0).uniform(size=count),)
    return Problem(
        arguments,
        lambda xp: formula(xp.numpy),
        formula(np),
        as_written=EVERYWHERE,
        tolerance=100.0,
    )


@workload(small=(6, 5), normal=(1000, 1000), large=(4000, 4000), rows=BOTH)
def cumulative_rows(rows: int, columns: int) -> Problem:
    """Running sums along {rows} rows of {columns} numbers, and their running maxima."""

    def program(xp: Any) -> Any:
        return lambda x: xp.lax.cummax(xp.numpy.cumsum(x, axis=1), axis=1)

    def reference(x: Any) -> Any:
        return np.maximum.accumulate(np.cumsum(x, axis=1), axis=1)

    def torch_formula(torch: Any) -> Any:
        return lambda x: torch.cummax(torch.cumsum(x, 1), 1).values

    return Problem((cube(rows, columns),), program, reference, torch=torch_formula, tolerance=30.0)


@workload(small=(60, 3), normal=(10_000, 16), large=(200_000, 32), rows=BOTH)
def linear_recurrence(steps: int, lanes: int) -> Problem:
    """h = a h + b over {steps} steps of {lanes} lanes, by `associative_scan`."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 0.95, (steps, lanes)), rng.normal(size=(steps, lanes))

    def program(xp: Any) -> Any:
        def combine(left: Any, right: Any) -> Any:
            return left[0] * right[0], left[1] * right[0] + right[1]

        return lambda a, b: xp.lax.associative_scan(combine, (a, b))[1]

    def reference(a: Any, b: Any) -> Any:
        h, found = np.zeros(lanes), np.empty((steps, lanes))
        for step in range(steps):
            h = a[step] * h + b[step]
            found[step] = h
        return found

    return Problem((a, b), program, reference, argnums=(0, 1), tolerance=10.0)
