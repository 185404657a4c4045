"""The command that runs suites of libraries for JAX."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import neighbours
from tests.neighbours import FUNCGRAD, JAX, SINGLE, Library, Suite


def a_suite() -> Suite:
    suite = Suite("ours", "1.0")
    suite.outcomes[JAX] = {"a": "passed", "b": "passed", "c": "passed", "d": "failed"}
    suite.outcomes[FUNCGRAD] = {"a": "passed", "b": "failed", "d": "passed"}
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


def test_the_table_has_a_reason_for_the_rest() -> None:
    row = neighbours.table_of([a_suite()]).splitlines()[-1]
    assert row.startswith("| ours 1.0 | 4, 1 at most | 3 | 1 | 33.3 % | ")
    assert "single tests (1)" in row


def test_the_page_is_written_between_its_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{neighbours.BEGIN}\nold\n{neighbours.END}\nafter\n")
    monkeypatch.setattr(neighbours, "PAGE", page)
    monkeypatch.setattr(neighbours.importlib.metadata, "version", lambda name: "9.9")
    neighbours.write_table("| new |")
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| new |" in text
    assert "JAX 9.9" in text
    assert neighbours.BEGIN in neighbours.PAGE.read_text()


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


def test_marks_are_on_the_page() -> None:
    text = neighbours.PAGE.read_text()
    assert text.count(neighbours.BEGIN) == text.count(neighbours.END) == 1
