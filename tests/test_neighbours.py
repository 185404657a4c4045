"""The command that runs suites of libraries for JAX."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import neighbours
from tests.neighbours import FUNCGRAD, JAX, PAGES, PEER, SINGLE, STARTED, Library, Suite


def a_suite() -> Suite:
    suite = Suite("ours", "1.0")
    suite.outcomes[PEER] = {"a": "passed", "b": "passed", "c": "passed", "d": "failed"}
    suite.outcomes[PEER]["not run here"] = "passed"
    suite.outcomes[FUNCGRAD] = {"a": "passed", "b": "failed", "d": "passed", "c": STARTED}
    suite.seconds[PEER], suite.seconds[FUNCGRAD] = {"a": 4.0, "d": 9.0}, {"a": 2.0, "d": 9.0}
    suite.messages = {"b": "ValueError: 1.5 of 0x7f is not 2"}
    return suite


def test_what_passes_on_jax_counts() -> None:
    suite = a_suite()
    assert suite.passing() == ["a", "b", "c"]
    assert suite.failing() == ["b", "c"]
    assert suite.classes() == {"ValueError: # of #x is not #": 1, "did not end": 1}
    stopped = neighbours.reason_of("did not end")
    assert suite.reasons() == {SINGLE: 1, stopped: 1}
    assert stopped != SINGLE


def test_what_passes_here_need_not_be_run_on_jax() -> None:
    suite = a_suite()
    suite.outcomes[FUNCGRAD] |= {"e": "passed", "f": "skipped", "g": "failed", "h": "error"}
    suite.outcomes[PEER]["h::of a file that cannot be imported"] = "passed"
    assert suite.passing() == ["a", "b", "c", "h::of a file that cannot be imported", "e", "g", "h"]
    assert suite.failing() == ["b", "c", "h::of a file that cannot be imported", "g", "h"]
    assert suite.unknown() == ["g", "h"]
    assert neighbours.seconds_of(suite) == [4.0, 2.0]


def test_a_test_that_was_stopped_with_its_file_is_not_counted(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    crashed, stopped = (json.dumps([name, STARTED, "", 0.0]) + "\n" for name in "ab")
    record.write_text(crashed + stopped)
    suite = Suite("ours", "1.0")
    suite.read(FUNCGRAD, record)
    assert suite.failing() == ["a"]


def test_a_test_that_was_stopped_on_the_peer_may_pass_there(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    failed, stopped = ["a", "failed", "no", 1.0], ["b", "error", neighbours.UNENDED, 90.0]
    record.write_text(f"{json.dumps(failed)}\n{json.dumps(stopped)}\n")
    suite = Suite("ours", "1.0")
    suite.outcomes[FUNCGRAD] = {"a": "failed", "b": "failed", "c": "passed"}
    suite.read(PEER, record)
    assert suite.passing() == ["b", "c"]


def test_the_table_has_a_reason_for_the_rest() -> None:
    row = neighbours.table_of([a_suite()]).splitlines()[-1]
    assert row.startswith("| ours 1.0, ")
    assert "| 4, 1 at most | 3 | 1 | 33.3 % | " in row
    assert "single tests (1)" in row


def test_the_page_is_written_between_its_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    old = "| chex 1 | old |\n| optax 1 | kept |"
    page.write_text(f"before\n{neighbours.BEGIN}\n{old}\n{neighbours.END}\nafter\n")
    monkeypatch.setitem(PAGES, JAX, page)
    monkeypatch.setattr(neighbours.importlib.metadata, "version", lambda name: "9.9")
    neighbours.write_table("| library |\n|---|\n| chex 2 | new |")
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| optax 1 | kept |\n| chex 2 | new |\n" in text
    assert "old" not in text
    assert "JAX 9.9" in text


def test_it_says_how_to_get_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "LIBRARIES", {"numpy": Library("numpy/numpy", "tests")})
    (said,) = neighbours.missing_sources(["numpy"], tmp_path)
    assert "git clone --depth 1 --branch v" in said
    (tmp_path / "numpy" / "tests").mkdir(parents=True)
    assert neighbours.missing_sources(["numpy"], tmp_path) == []
    (said,) = neighbours.missing_sources(["no-such-library"], tmp_path)
    assert said == "no-such-library is not installed: pip install no-such-library"


@pytest.mark.parametrize("peer", PAGES)
def test_marks_are_on_the_page(peer: str) -> None:
    text = PAGES[peer].read_text()
    assert text.count(neighbours.BEGIN) == text.count(neighbours.END) == 1
    assert f"`{neighbours.COMMANDS[peer]}`" in text
