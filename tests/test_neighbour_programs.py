"""The command that measures programs of libraries for JAX."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests import neighbour_programs, neighbours
from tests.neighbour_programs import FOLDER, Row, Run

JAX = Run(first=6.0, call=8e-3, means=(1.0,), is_random=False)
FRESH = replace(JAX, first=3.0, call=4e-3)


def test_rows_have_both_ratios_and_the_table_their_means() -> None:
    rows = [
        Row("filter", JAX, FRESH, replace(FRESH, first=2.0, call=2e-3)),
        Row("training", JAX, FRESH, replace(FRESH, first=6.0, call=8e-3)),
    ]
    table = neighbour_programs.table_of([row.cells() for row in rows])
    first, second, mean = table.splitlines()[2:]
    assert first == "| filter | 8 ms | 2 ms | 4 | 6.0 s | 3.0 s | 2.0 s | 3 |"
    assert second.endswith("| 1 | 6.0 s | 3.0 s | 6.0 s | 1 |")
    assert mean == "| mean |  |  | 2 |  |  |  | 1.7 |"


def test_results_that_differ_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter([FRESH, JAX, replace(FRESH, means=(1.5,))])
    monkeypatch.setattr(neighbour_programs, "measure", lambda *args: next(runs))
    with pytest.raises(ValueError, match=r"training: \(1.0,\) on JAX, \(1.5,\) here"):
        neighbour_programs.compare("training")


def test_short_calls_are_timed_several_together() -> None:
    calls: list[int] = []
    spent = neighbour_programs.spent_on(lambda: calls.append(sum(range(1000))))
    assert len(calls) > 1
    assert spent * len(calls) >= neighbour_programs.SHORTEST


def test_programs_say_what_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour_programs, "measure", lambda *args: JAX)
    titles = [neighbour_programs.compare(path.stem).title for path in FOLDER.glob("*.py")]
    assert len(titles) >= 12
    assert all(0 < len(title) < 90 and "\n" not in title for title in titles)


def test_marks_are_on_the_page() -> None:
    text = Path(neighbours.PAGE).read_text()
    assert text.count(neighbour_programs.BEGIN) == text.count(neighbour_programs.END) == 1
