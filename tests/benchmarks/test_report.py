"""The arithmetic and the text of the report, and its pictures."""

from __future__ import annotations

import pytest

from tests.benchmarks.measures import Record
from tests.benchmarks.report import (
    comparison_table,
    count_table,
    geometric_mean,
    mean_rows,
    mean_table,
    pages,
    quantity,
    side_by_side,
)
from tests.benchmarks.stopwatch import Spread


def record(row, group="stencils", measure="run", error="", dtype="float32", **samples):
    return Record(row, group, f"what {row} is", measure, dtype, "normal", 2, samples, error)


RUNS = [
    record("fast", funcgrad=[1e-3], jax=[4e-3], torch=[2e-3]),
    record("slow", funcgrad=[1e-3], jax=[1e-3 / 4]),
    record("other", "networks", funcgrad=[1.0, 2.0, 1.0], jax=[9.0, 18.0, 9.0]),
]


def test_geometric_mean():
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert geometric_mean([1.0, 10.0, 100.0]) == pytest.approx(10.0)


def test_means_of_groups_and_in_total():
    means = mean_rows(RUNS)
    assert list(means) == ["stencils", "networks", "total"]
    assert means["stencils"] == pytest.approx({"jax": 1.0, "torch": 2.0})
    assert means["networks"] == pytest.approx({"jax": 9.0})
    assert means["total"] == pytest.approx({"jax": 9 ** (1 / 3), "torch": 2.0})


def test_limits_are_no_peers():
    limited = record("x", **{"funcgrad": [2.0], "jax": [1.0], "limit: np.copyto": [0.5]})
    assert mean_rows([limited])["total"] == {"jax": 0.5}
    assert comparison_table([limited]).splitlines()[::2] == [
        "| what | funcgrad | jax | limit |",
        "| x: what x is | 2 s | 0.50 | 0.25 np.copyto |",
    ]


def test_the_table_of_means_counts_the_rows_behind():
    lines = mean_table(RUNS).splitlines()
    assert lines[0] == "| geometric mean | jax | torch |"
    assert "| stencils | 1.00 | 2.00 |" in lines
    assert lines[-1] == "| rows behind / all | 1 / 3 | 0 / 1 |"


def test_the_table_of_rows():
    lines = comparison_table(RUNS).splitlines()
    assert lines[0] == "| what | funcgrad | jax | torch |"
    assert lines[2] == "| fast: what fast is | 1 ms | 4.00 | 2.00 |"
    assert lines[4] == "| other: what other is | 1 s | 9.00 |  |"


def test_quartiles_are_shown_where_rounds_differ():
    varied = record("x", funcgrad=[1.0] * 5, jax=[1.0, 2.0, 3.0, 4.0, 5.0])
    assert "3.00 [2.00, 4.00]" in comparison_table([varied])


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2.5e-9, "s", "0.0025 µs"),
        (2.5e-4, "s", "250 µs"),
        (0.25, "s", "250 ms"),
        (3.0, "s", "3 s"),
        (2.5e6, "bytes", "2.5 MB"),
        (0.0, "bytes", "0 kB"),
    ],
)
def test_quantities_have_the_unit_that_suits_them(value, unit, text):
    assert quantity(Spread(value, value, value), unit) == text


def test_counts_of_a_row_stand_in_one_line():
    counts = [
        record("x", measure="kernels, cold", funcgrad=[7]),
        record("x", measure="kernels compiled, warm", funcgrad=[0]),
        record("y", measure="kernels, cold", funcgrad=[3]),
    ]
    assert count_table(counts).splitlines() == [
        "| what | Kernels | Kernels compiled by a second process |",
        "| --- | --- | --- |",
        "| x | 7 | 0 |",
        "| y | 3 |  |",
    ]


def test_the_page_has_every_group_every_setting_and_every_failure():
    failed = record("broken", error="no result after 900 s")
    double = record("fast", dtype="float64", funcgrad=[1.0], jax=[2.0])
    memory = record("fast", measure="memory", funcgrad=[1e6], jax=[2e6])
    texts = pages([*RUNS, double, memory, failed], {"stencils": ["![picture](x.svg)"]})
    text = texts.pop("tuned")
    assert not texts
    assert text.count("## Stencils") == text.count("## Networks") == 1
    for part in (
        "![picture](x.svg)",
        "**Time of a call, float32, 2 threads**",
        "**Time of a call, float64, 2 threads**",
        "**Peak memory of a call beyond its arguments, float32, 2 threads**",
        "- broken: run failed: no result after 900 s",
        "### Time of a call, float32, 2 threads",
    ):
        assert part in text


def test_totals_of_sets_stand_side_by_side():
    fresh = record("new", "kernels", funcgrad=[1.0], jax=[3.0], numba=[0.5])
    texts = pages([*RUNS, fresh], {})
    assert "## Geometric means: fresh rows" in texts["fresh"]
    assert side_by_side(texts).splitlines() == [
        "## Tuned and fresh rows",
        "",
        "| geometric mean (rows behind / all) | set | jax | torch | numba |",
        "| --- | --- | --- | --- | --- |",
        "| Time of a call, float32, 2 threads | tuned | 2.08 (1 / 3) | 2.00 (0 / 1) |  |",
        "| Time of a call, float32, 2 threads | fresh | 3.00 (0 / 1) |  | 0.50 (1 / 1) |",
    ]


def test_pictures_of_every_group(tmp_path):
    charts = pytest.importorskip("tests.benchmarks.charts")
    found = charts.draw(RUNS, tmp_path)
    assert {group: len(paths) for group, paths in found.items()} == {"stencils": 1, "networks": 1}
    (path,) = found["stencils"]
    text = path.read_text()
    for word in ("fast", "slow", "jax", "torch", "time of the peer / time of funcgrad"):
        assert word in text
    assert len(text) < 50_000
    again = charts.draw(RUNS, tmp_path / "again")["stencils"][0]
    assert again.read_text() == text  # no dates, no random names
