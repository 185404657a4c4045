"""The tables of docs/numerics.md are what was measured, and measured again it is no worse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.numerics import measure, report, special
from tests.scipy.record_special import ROWS

ERRORS = report.recorded()
SAMPLE = [("elementary", "exp"), ("elementary", "arctan2"), ("special", "gammainc")]
ALL = [(table, name) for table, of in ERRORS.items() for name in of]


@pytest.fixture(autouse=True)
def _keep_subnormals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_KEEP_SUBNORMALS", "1")
    monkeypatch.setattr(measure, "SWEPT", ())


def test_the_page_shows_the_record() -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    assert report.with_tables(page, ERRORS) == page


def test_every_function_is_in_the_record() -> None:
    assert list(ERRORS["elementary"]) == list(measure.ELEMENTARY)
    assert list(ERRORS["special"]) == list(special.MEASURED)
    assert {*ROWS} - {*special.MEASURED} == {"wofz", "loggamma", "hankel1"}


def test_errors_are_found() -> None:
    """A function that is wrong by a few units is seen."""
    args = measure.elementary.sample("exp", float)
    wrong = measure.np.exp(args[0]) * (1 + 8e-16)
    assert measure.elementary.worst("exp", wrong, args)[0] > 3


@pytest.mark.parametrize(
    ("table", "name"),
    [pytest.param(*row, marks=() if row in SAMPLE else pytest.mark.nightly) for row in ALL],
)
def test_no_function_became_worse(table: str, name: str) -> None:
    found = measure.of_elementary(name) if table == "elementary" else measure.of_special(name)
    for dtype, of in found.items():
        for way, bound in largest(ERRORS[table][name][dtype]).items():
            # NumPy's own functions and libm are those of another machine.
            error = largest(of).get(way, 0.0)
            assert error <= 1.1 * bound + 0.1, f"{dtype}, {way}: {error} ulp, it was {bound}"


def largest(of: dict[str, Any]) -> dict[str, float]:
    """The errors that are ours."""
    if "ulp" in of:
        return {"worst": of["ulp"]}
    return {way: error["ulp"] for way, error in of.items() if way in ("arrays", "single")}


@pytest.mark.nightly
@pytest.mark.parametrize("name", measure.ELEMENTARY[:24])
def test_sweeps_of_single_precision(name: str) -> None:
    recorded = ERRORS["elementary"][name]["float32"].get("sweep")
    if recorded is not None:
        assert measure.sweep(name)[0] <= 1.1 * recorded["ulp"] + 0.1
