"""Laws that hold for every row of the table of cases, compiled.

* compiled: the results of native code are those of NumPy;
* derivatives: so are tangents, cotangents and batches, differentiated first and compiled then;
* nested: and compiled first, differentiated then.
"""

from __future__ import annotations

from funcgrad.extend import laws
from funcgrad.primitives.families import Elementwise
from tests.cases import CASES, Case
from tests.test_laws import PLACES, ROWS, is_single, rows_of

DERIVATIVES = [
    (case, dtype)
    for case, dtype in ROWS
    if case.order >= 1
    and dtype in "fdD"
    and case.draw(dtype)
    and laws.active_choices(case, case.draw(dtype))
]


NUMBERS = {id(case): number for number, case in enumerate(CASES)}
"""The place of each row in the table."""


def is_tried(case: Case, dtype: str) -> bool:
    """Whether every run compiles derivatives of a row in a dtype.

    The first row of a primitive is tried in its first dtype, and an eighth in one of the others;
    every 24th of its other rows in one of them, in turn. Of the elementwise primitives every second
    is tried; formulas of elements are the same where there is one element, or none.
    """
    dtypes = [c for c in case.dtypes if c in "fdD" and c in case.compiled_daily]
    if dtype not in dtypes:
        return False
    place, number = PLACES[id(case)], dtypes.index(dtype)
    is_elementwise = isinstance(case.primitive, Elementwise)
    if is_elementwise and (NUMBERS[id(case)] % 2 or case.label.endswith(("empty", "single"))):
        return False
    if place == 0:
        return number == 0 or (NUMBERS[id(case)] + number) % 8 == 0
    return place % 24 == 0 and number == (place // 24) % len(dtypes)


derivative_rows = rows_of(DERIVATIVES, is_tried)


def is_compiled(case: Case, dtype: str) -> bool:
    """Whether every run compiles a row in a dtype: the first one of a primitive, others in turn."""
    place, number = PLACES[id(case)], case.dtypes.index(dtype)
    return place == number == 0 or (place + number) % 16 == 8


@rows_of(ROWS, is_compiled)
def test_compiled(case: Case, dtype: str) -> None:
    laws.compiled_results(case, case.draw(dtype), is_single(dtype))


@derivative_rows
def test_derivatives(case: Case, dtype: str) -> None:
    laws.compiled_derivatives(case, case.draw(dtype), is_single(dtype))


def is_nested(case: Case, dtype: str) -> bool:
    """How compiled programs are differentiated depends on neither the precision nor the shapes.

    Nor does it on the formula of an elementwise operation, of which every sixth is tried.
    """
    if isinstance(case.primitive, Elementwise) and NUMBERS[id(case)] % 6:
        return False
    return dtype == case.dtypes[0] and dtype in case.compiled_daily and PLACES[id(case)] % 8 == 0


@rows_of(DERIVATIVES, is_nested)
def test_derivatives_of_compiled(case: Case, dtype: str) -> None:
    laws.derivatives_of_compiled(case, case.draw(dtype), is_single(dtype))


@derivative_rows
def test_batches(case: Case, dtype: str) -> None:
    laws.compiled_batches(case, [case.draw(dtype, seed) for seed in range(2)], is_single(dtype))
