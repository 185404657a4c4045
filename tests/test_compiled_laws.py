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

from funcgrad.extend import laws
from tests.cases import Case
from tests.test_laws import ROWS, every_row, is_single

DERIVATIVES = [
    (case, dtype)
    for case, dtype in ROWS
    if case.order >= 1
    and dtype in "fdD"
    and case.draw(dtype)
    and laws.active_choices(case, case.draw(dtype))
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


@every_row
def test_compiled(case: Case, dtype: str) -> None:
    laws.compiled_results(case, case.draw(dtype), is_single(dtype))


@derivative_rows
def test_derivatives(case: Case, dtype: str) -> None:
    laws.compiled_derivatives(case, case.draw(dtype), is_single(dtype))


# How compiled programs are differentiated does not depend on the precision.
@rows_of_derivatives(lambda case, dtype: dtype in case.compiled_daily and dtype == case.dtypes[0])
def test_derivatives_of_compiled(case: Case, dtype: str) -> None:
    laws.derivatives_of_compiled(case, case.draw(dtype), is_single(dtype))


@derivative_rows
def test_batches(case: Case, dtype: str) -> None:
    laws.compiled_batches(case, [case.draw(dtype, seed) for seed in range(2)], is_single(dtype))
