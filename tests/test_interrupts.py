"""Ctrl-C arrives at odd places: nothing of ours stays changed, and no lock stays closed.

Python looks for signals when a call of native code has returned and when a function begins. So
here the interrupt is raised where a call that changes something has just done so.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.base import error_state, forking
from funcgrad.core import trace
from funcgrad.experimental import jet

X = np.arange(3.0)


def f(x: Any) -> Any:
    return fnp.sum(fnp.sin(x) * 2)


TRANSFORMS = {
    "grad": lambda: fg.grad(f)(X),
    "grad of a number": lambda: fg.grad(fnp.sin)(1.0),
    "grad of grad": lambda: fg.grad(lambda x: fg.grad(f)(x).sum())(X),
    "jvp": lambda: fg.jvp(f, (X,), (X,)),
    "vjp": lambda: fg.vjp(f, X)[1](1.0),
    "vmap": lambda: fg.vmap(f)(np.ones((2, 3))),
    "jet": lambda: jet.jet(fnp.sin, (1.0,), ((1.0, 0.0),)),
    "jit": lambda: fg.jit(lambda x: f(x) + 1)(X),
}


class _Interrupting:
    """A function that raises `KeyboardInterrupt` when one of its calls has done its work."""

    def __init__(self, function: Any, at: int) -> None:
        self.function = function
        self.left = at

    def __call__(self, *args: Any, **named: Any) -> Any:
        result = self.function(*args, **named)
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return result


@pytest.mark.parametrize("name", TRANSFORMS)
def test_no_trace_stays_current(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    transform = TRANSFORMS[name]
    enter = trace.enter_trace
    holders = [m for m in list(sys.modules.values()) if vars(m).get("enter_trace") is enter]
    for at in range(1, 200):
        interrupting = _Interrupting(enter, at)
        for module in holders:
            monkeypatch.setattr(module, "enter_trace", interrupting)
        try:
            transform()
        except KeyboardInterrupt:
            left = trace.current_trace()
            enter(trace.EVAL)
            assert left is trace.EVAL, f"after the interrupt {at}"
        else:
            assert at > 1
            return
    pytest.fail("200 traces in one call")


def enter_a_block() -> None:
    with error_state.without_reports() as block, block:
        pass


class _Memory:
    """A variable of a context that is interrupted when it has been set or reset."""

    def __init__(self, variable: Any, at: int) -> None:
        self.get = variable.get
        self.set = _Interrupting(variable.set, at)
        self.reset = _Interrupting(variable.reset, at - 2)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_memory_of_the_callers_error_state_is_as_before(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, variable = np.geterr(), error_state._of_caller
    monkeypatch.setattr(error_state, "_of_caller", _Memory(variable, at))
    with pytest.raises(KeyboardInterrupt):
        enter_a_block()
    left = variable.get()
    variable.set(None)
    assert left is None
    assert np.geterr() == before


@pytest.mark.parametrize("method", ["__enter__", "__exit__"])
@pytest.mark.parametrize("is_late", [False, True])
def test_numpys_error_state_is_as_before(
    method: str, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real = np.geterr(), getattr(np.errstate, method)

    def interrupted(*args: Any) -> None:
        if is_late:
            real(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(np.errstate, method, interrupted)
    with pytest.raises(KeyboardInterrupt):
        enter_a_block()
    left, of_caller = np.geterr(), error_state._of_caller.get()
    np.seterr(**before)
    error_state._of_caller.set(None)
    assert left == before
    assert of_caller is None


@pytest.mark.parametrize("block", [error_state.without_reports, error_state.without_warnings])
def test_a_block_is_left_wherever_a_function_begins(block: Any) -> None:
    """Also where `__exit__` itself does, in which nothing is caught yet."""
    before = np.geterr()

    def enter(at: int) -> list[str]:
        begun: list[str] = []

        def begin(frame: Any, event: str, arg: Any) -> None:
            if event == "call":
                begun.append(frame.f_code.co_name)
                if len(begun) == at:
                    raise KeyboardInterrupt

        sys.setprofile(begin)
        try:
            with block() as outer, outer:
                pass
        finally:
            sys.setprofile(None)
        return begun

    n_functions = len(enter(0))
    assert n_functions > 6
    for at in range(1, n_functions + 1):
        with pytest.raises(KeyboardInterrupt):
            enter(at)
        left, of_caller = np.geterr(), error_state._of_caller.get()
        np.seterr(**before)
        error_state._of_caller.set(None)
        assert (left, of_caller) == (before, None), f"interrupted at the function {at}"


def test_every_block_is_entered_twice() -> None:
    blocks = [kind.__name__ for kind in error_state._Block.__subclasses__()]
    pattern = re.compile(rf"\b({'|'.join(blocks)})\(\)(?! as block, block:)")
    found = [
        f"{path.name}: {line}"
        for path in Path(fg.__file__).parent.rglob("*.py")
        for line in path.read_text().splitlines()
        if pattern.search(line)
    ]
    assert found == []


def test_locks_run_no_python() -> None:
    lock = forking.Lock()
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(event) if event == "call" else None)
    try:
        with lock, lock:
            pass
    finally:
        sys.setprofile(None)
    assert not seen


def test_no_fork_waits_for_a_call_that_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entrance:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *error: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(forking._Calls, "entrance", Entrance())
    with pytest.raises(KeyboardInterrupt):
        forking.between_forks(lambda: 1)
    left = dict(forking._Calls.under_way)
    forking._Calls.under_way.clear()
    assert not left
