"""The programs run, with all of their options; how fast anything is, is not tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from tests.benchmarks import __main__, busy, patterns
from tests.benchmarks.measures import MEASURES, Record, Setting, measure, server
from tests.benchmarks.report import OURS, pages
from tests.benchmarks.workload import all_rows

ROOT = Path(__file__).parents[2]
PROGRAM, BUSY = "tests.benchmarks", "tests.benchmarks.busy"
QUICK = ("--size", "small", "--rounds", "1", "--first-rounds", "1", "--busy-calls", "2", "--peers")


def run(*arguments: str | Path, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


def good(*arguments: str | Path, program: str = PROGRAM) -> str:
    done = run(*arguments, program=program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_records_page_and_pictures_of_one_row(tmp_path):
    pytest.importorskip("matplotlib")
    page, records = tmp_path / "page.md", tmp_path / "records.json"
    page.write_text("# Kept\n")
    options = ("--only", "small-call", "--output", page, "--plot", tmp_path / "pictures")
    good(*QUICK, *options, "--json", records, "--threads", "1", "--dtype", "float64")
    text = page.read_text()
    assert text.startswith("# Kept\n<!-- measured")
    assert text.count("small-call: `jit(x + 1)` of 10 numbers") == 1
    assert "**Time of a call, float64, size small, 1 thread**" in text
    (found,) = json.loads(records.read_text())
    assert (found["row"], found["threads"], found["error"]) == ("small-call", 1, "")
    assert len(found["samples"]["funcgrad"]) == 1

    # Shown again from the records, the page is the same: later records replace earlier ones.
    good("--show", "--input", records, records, *options)
    assert page.read_text() == text


def write(page: Path, name: str, *sides: str) -> str:
    """Put the results of a row and its sides into a page."""
    row = all_rows()[name]
    samples = {side: [1e-3] for side in sides}
    title = row.title("small")
    record = Record(name, row.group, title, "run", "float64", "small", 1, samples)
    __main__.write_page(pages([record], {}), page)
    return page.read_text()


def test_a_page_keeps_the_sets_that_were_not_measured(tmp_path):
    page = tmp_path / "page.md"
    tuned = write(page, "small-call", OURS)
    write(page, "seidel", OURS)
    after = write(page, "seidel", OURS, "numba")
    assert after.index("<!-- tuned rows -->") < after.index("<!-- fresh rows -->")
    assert after.count("<!-- fresh rows -->") == 1
    assert "| what | funcgrad | numba |" in after
    assert "## Eliminations" in after
    assert tuned[tuned.index("<!-- tuned rows -->") :].strip() in after


def test_a_server_survives_rows_that_fail_and_is_replaced_if_it_ends():
    row = all_rows()["small-call"]
    setting = Setting((OURS,), "float32", "small", 1, 1, 1, 1)
    wrong = replace(row, workload=replace(row.workload, name="no-such-row"))
    (failed,) = measure("speed", wrong, setting)
    assert failed.error == "KeyError: 'no-such-row'"
    first = server(setting.libraries, setting.threads)
    (found,) = measure("speed", row, setting)
    assert found.samples[OURS]
    assert server(setting.libraries, setting.threads) is first
    first.stop()
    (found,) = measure("speed", row, setting)
    assert found.samples[OURS]
    server(setting.libraries, setting.threads).stop()


def test_a_peer_and_its_picture(tmp_path):
    pytest.importorskip("jax")
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.md"
    good(*QUICK, "jax", "--only", "scale", "--output", page, "--plot", tmp_path / "pictures")
    text = page.read_text()
    assert "| what | funcgrad | jax | limit |" in text
    assert "np.copyto" in text
    (picture,) = (tmp_path / "pictures").iterdir()
    assert f"(pictures/{picture.name})" in text


@pytest.fixture(scope="module", name="records")
def of_all_measures(tmp_path_factory):
    """Records of one row, by what was measured: all of it by one process."""
    path = tmp_path_factory.mktemp("benchmarks") / "records.json"
    good(*QUICK, "--only", "digits-step", "--measure", *MEASURES, "import", "--json", path)
    found = {}
    for each in json.loads(path.read_text()):
        found.setdefault(each["measure"], []).append(each)
    return found


@pytest.mark.nightly
def test_every_measure(records):
    assert len(records) >= len(MEASURES) + 1
    for found in chain(*records.values()):
        assert found["error"] == ""
        assert all(figure >= 0 for figure in found["samples"]["funcgrad"])


@pytest.mark.nightly
def test_a_second_process_and_a_new_batch_size_compile_nothing(records):
    counts = {name: found[-1]["samples"]["funcgrad"] for name, found in records.items()}
    assert counts["kernels compiled, cold"] > [0]
    assert counts["kernels compiled, warm"] == [0]
    assert counts["Numba imported, warm"] == [0]
    assert counts["kernels for another size, cold"] == [0]


def test_rows_are_listed_with_what_they_compute():
    lines = good("--list", "--only", "stencils", "orbit", "--size", "large").splitlines()
    assert [line.split()[0] for line in lines].count("simulation") == 1
    assert any("heat-3d-gradient" in line and "a cube of 200^3" in line for line in lines)


@pytest.mark.nightly
@pytest.mark.parametrize("row", ["digits-step", "recurrence-gradient", "wide-step", "example"])
def test_every_row_of_the_busy_machine(row):
    assert "| funcgrad" in good("--calls", "1", "--only", row, program=BUSY)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "colors", "entries"), [("chain", 3, 88), ("plane", 6, 80)])
def test_patterns_are_measured(name, colors, entries):
    found = patterns.measure(name, 30 if name == "chain" else 36)
    assert (found["colors"], found["entries"]) == (colors, entries)
    assert found["seconds"] > 0 < found["bytes"]


@pytest.mark.nightly
def test_a_busy_machine_costs_its_share():
    # Other programs than the one that the benchmark starts may run here.
    attempts = []
    while len(attempts) < 3:
        attempts.append(run("--check", program=BUSY))
        if attempts[-1].returncode == 0:
            return
    pytest.fail("\n".join(done.stdout + done.stderr for done in attempts))


@pytest.mark.parametrize(
    ("main", "arguments", "message"),
    [
        (__main__.main, ["--rounds", "0"], "argument --rounds: at least 1"),
        (__main__.main, ["--only", "speed"], "argument --only: 'speed' is no row"),
        (__main__.main, ["--set", "fresh", "--only", "scale"], "'scale' is no row and no group"),
        (__main__.main, ["--size", "huge"], "invalid choice: 'huge'"),
        (__main__.main, ["--dtype", "float16"], "invalid choice: 'float16'"),
        (__main__.main, ["--peers", "numpy"], "invalid choice: 'numpy'"),
        (__main__.main, ["--measure", "time"], "invalid choice: 'time'"),
        (busy.main, ["--calls", "0"], "argument --calls"),
        (busy.main, ["--only", "speed"], "invalid choice: 'speed'"),
    ],
)
def test_bad_values_end_with_a_message_and_code_2(main, arguments, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert message in capsys.readouterr().err
