"""Laws that hold for every row of the table of cases, compiled.

* compiled: the results of native code are those of NumPy;
* derivatives: so are tangents, cotangents and batches, differentiated first and compiled then;
* nested: and compiled first, differentiated then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from funcgrad.core.avals import aval_of
from funcgrad.higher_order.jit import Jit
from funcgrad.transforms.batch import batch_flat
from funcgrad.transforms.jvp import jvp_flat
from funcgrad.transforms.linearize import linearize_flat
from funcgrad.transforms.stage import stage
from tests.cases import Case
from tests.test_laws import (
    ROWS,
    active_choices,
    direction,
    every_row,
    is_inexact,
    observed,
    results,
    tolerance,
)

DERIVATIVES = [
    (case, dtype)
    for case, dtype in ROWS
    if case.order >= 1
    and dtype in "fdD"
    and case.draw(dtype)
    and active_choices(case, case.draw(dtype))
]


def rows_of_derivatives(is_daily: Callable[[Case, str], bool]) -> Any:
    """All rows, of which those in other dtypes than the daily ones run in the night."""
    return pytest.mark.parametrize(
        ("case", "dtype"),
        [
            pytest.param(
                case,
                dtype,
                id=f"{case.name}-{np.dtype(dtype).name}",
                marks=[] if is_daily(case, dtype) else [pytest.mark.nightly],
            )
            for case, dtype in DERIVATIVES
        ],
    )


derivative_rows = rows_of_derivatives(lambda case, dtype: dtype in case.compiled_daily)


def compiled(function: Any, args: list[Any]) -> list[Any]:
    """The results of a flat function, traced and compiled."""
    program, captured = stage(function, [aval_of(x) for x in args], "law")
    assert not captured
    return Jit(program).bind(*args)


def assert_same(found: list[Any], expected: list[Any], rtol: float) -> None:
    for x, y in zip(found, expected, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        if y.dtype.kind not in "fc":
            np.testing.assert_array_equal(x, y)
            continue
        finite = y[np.isfinite(y)]
        scale = float(np.max(np.abs(finite))) if finite.size else 1.0
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * max(scale, 1e-30))


def precision(dtype: str) -> float:
    return 2e-5 if dtype in "fF" else 1e-11


@every_row
def test_compiled(case: Case, dtype: str) -> None:
    args = case.draw(dtype)
    with np.errstate(all="ignore"):
        expected = results(case, *args)
    assert_same(compiled(lambda *xs: results(case, *xs), args), expected, precision(dtype))


def allowed(case: Case, dtype: str) -> float:
    """The relative error of derivatives."""
    return max(10 * precision(dtype), tolerance(case, dtype) if dtype in "fF" else 0)


def tangents_and_cotangents(case: Case, dtype: str, args: list[Any], wrap: Any) -> list[Any]:
    """Tangents of the results, and cotangents of the arguments, at random directions."""
    rng = np.random.default_rng(7)
    active = active_choices(case, case.draw(dtype))[-1]
    function = wrap(lambda *xs: observed(case, *xs), args)
    tangents = [direction(x, rng) if i in active else None for i, x in enumerate(case.draw(dtype))]
    outs, out_dots = jvp_flat(function, args, tangents, "law")
    cts = [direction(np.zeros(aval_of(x).shape, aval_of(x).dtype), rng) for x in outs]
    _, linear = linearize_flat(function, args, [t is not None for t in tangents], "law")
    some = [
        c if s is not None and is_inexact(np.empty(0, aval_of(c).dtype)) else None
        for c, s in zip(cts, linear.outputs, strict=True)
    ]
    pulled = linear.pull(some)
    found = [*outs, *out_dots, *(pulled[i] for i in active)]
    return [x for x in found if x is not None]


@derivative_rows
def test_derivatives(case: Case, dtype: str) -> None:
    args = case.draw(dtype)

    def derived(*xs: Any) -> list[Any]:
        return tangents_and_cotangents(case, dtype, list(xs), lambda f, _: f)

    with np.errstate(all="ignore"):
        expected = derived(*args)
    assert_same(compiled(derived, args), expected, allowed(case, dtype))


# How compiled programs are differentiated does not depend on the precision.
@rows_of_derivatives(lambda case, dtype: dtype in case.compiled_daily and dtype == case.dtypes[0])
def test_derivatives_of_compiled(case: Case, dtype: str) -> None:
    args = case.draw(dtype)

    def staged(function: Any, values: list[Any]) -> Any:
        program, _ = stage(function, [aval_of(x) for x in values], "law")
        return lambda *xs: Jit(program).bind(*xs)

    with np.errstate(all="ignore"):
        expected = tangents_and_cotangents(case, dtype, args, lambda f, _: f)
        nested = tangents_and_cotangents(case, dtype, args, staged)
    assert_same(nested, expected, allowed(case, dtype))


@derivative_rows
def test_batches(case: Case, dtype: str) -> None:
    lanes = [case.draw(dtype, seed) for seed in range(2)]
    stacked = [np.stack(rows) for rows in zip(*lanes, strict=True)]

    def batched(*xs: Any) -> list[Any]:
        outs, dims = batch_flat(lambda *ys: observed(case, *ys), list(xs), [0] * len(xs), 2, "law")
        return [x for x, d in zip(outs, dims, strict=True) if d is not None]

    with np.errstate(all="ignore"):
        expected = batched(*stacked)
    assert_same(compiled(batched, stacked), expected, 10 * precision(dtype))
