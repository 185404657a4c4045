"""The collector of cycles is as it was after blocks that it waits for."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

import funcgrad as fg
from funcgrad import collector
from funcgrad.collector import paused
from funcgrad.errors import UnexpectedTracerError


class Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(collector._Known, "n_frozen", 0)
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


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What was answered to the question for the number of frozen objects."""
    answers = []
    ask = gc.get_freeze_count

    def count() -> int:
        answers.append(ask())
        return answers[-1]

    monkeypatch.setattr(gc, "get_freeze_count", count)
    return answers


@pytest.mark.skipif(not collector._HAS_GENERATIONS, reason="there is no way to make objects old")
def test_a_large_frozen_heap_is_not_counted_again(questions: list[int]) -> None:
    gc.freeze()
    for k in range(5):
        with paused():
            [Node() for _ in range(10)]
        assert len(questions) == 1, k
    assert questions[0] > 10_000
    # Where a search takes longer than to count, it is asked: they may have been thawed meanwhile.
    gc.unfreeze()
    with paused():
        kept = [Node() for _ in range(questions[0] // 5)]
    assert questions[1:] == [0]
    assert gc.get_count()[0] < len(kept) / 2
    with paused():
        pass
    assert questions[2:] == [0]


def test_where_objects_have_no_age_nothing_is_frozen(
    questions: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "_HAS_GENERATIONS", False)
    monkeypatch.setattr(gc, "freeze", lambda: pytest.fail("a walk over the heap"))
    with paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert questions == []


LEAKS: list[object] = []


def leak(x: object) -> object:
    LEAKS.append(x)
    return x


@pytest.mark.parametrize("n_blocks", [1, 2])
@pytest.mark.parametrize("are_frozen", [False, True], ids=["", "frozen by others"])
def test_a_search_for_leaks_thaws_what_it_has_frozen(are_frozen: bool, n_blocks: int) -> None:
    if are_frozen:
        gc.freeze()
    count = gc.get_freeze_count()
    with contextlib.ExitStack() as stack:
        for _ in range(n_blocks):
            stack.enter_context(fg.checking_leaks())
        with pytest.raises(UnexpectedTracerError, match="still alive") as caught:
            fg.grad(leak)(1.0)
        assert (gc.get_freeze_count() > 1000) == are_frozen
    LEAKS.clear()
    # Other threads may free a few.
    assert abs(gc.get_freeze_count() - count) < 1000
    held = "a local variable or a container, or an object that gc.freeze hides"
    assert (held if are_frozen else "the global variable `LEAKS` of") in str(caught.value)


def test_a_search_without_leaks_thaws_what_it_has_frozen() -> None:
    with fg.checking_leaks(), fg.checking_leaks():
        assert gc.get_freeze_count() > 1000
        fg.grad(lambda x: x * x)(1.0)
    assert gc.get_freeze_count() == 0


FORK = """
import gc, os, threading
from funcgrad.collector import paused

inside, outside = threading.Event(), threading.Event()


def wait():
    with paused():
        inside.set()
        outside.wait()


thread = threading.Thread(target=wait)
thread.start()
inside.wait()
child = os.fork()
if not child:
    os._exit(0 if gc.isenabled() else 1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(code, gc.isenabled())
outside.set()
thread.join()
print(gc.isenabled())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_do_not_wait_for_a_thread_that_is_not_there() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["0", "False", "True"]


def test_imports_leave_it_as_it_was() -> None:
    # Python 3.12 freezes some objects of its own.
    code = (
        "import gc; {}; n = gc.get_freeze_count(); import funcgrad; "
        "print(gc.isenabled(), gc.get_freeze_count() - n)"
    )
    for before, expected in (("pass", "True 0"), ("gc.disable()", "False 0")):
        command = [sys.executable, "-c", code.format(before)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.strip() == expected
