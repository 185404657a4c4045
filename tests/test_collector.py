"""The collector of cycles is as it was after blocks that it waits for."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from funcgrad.collector import paused


class Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    gc.unfreeze()
    (gc.enable if was_enabled else gc.disable)()


def test_it_waits_and_finds_cycles_later() -> None:
    with paused():
        assert not gc.isenabled()
        found = weakref.ref(Node())
        with paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_count()[0] < gc.get_threshold()[0]  # nothing is searched at once
    gc.collect()
    assert found() is None


def test_it_goes_on_after_errors() -> None:
    with pytest.raises(KeyError), paused():
        raise KeyError
    assert gc.isenabled()


def test_it_stays_off_where_it_was() -> None:
    gc.disable()
    with paused():
        pass
    assert not gc.isenabled()


def test_what_others_have_frozen_stays_frozen() -> None:
    gc.freeze()
    count = gc.get_freeze_count()
    with paused():
        kept = [Node() for _ in range(1000)]
    # Neither thawed nor more of them, though other threads may free a few.
    assert count > 1000
    assert abs(gc.get_freeze_count() - count) < len(kept) / 2


def test_imports_leave_it_as_it_was() -> None:
    code = "import gc; {}; import funcgrad; print(gc.isenabled(), gc.get_freeze_count())"
    for before, expected in (("pass", "True 0"), ("gc.disable()", "False 0")):
        command = [sys.executable, "-c", code.format(before)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.strip() == expected
