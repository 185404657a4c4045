"""The competitors of a row: prepared, called once, and verified."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.benchmarks.libraries import Library
from tests.benchmarks.stopwatch import Side
from tests.benchmarks.verify import Judge, Mismatch
from tests.benchmarks.workload import Problem, Program, Row, converted, map_arrays


class Call:
    """A program with its arguments, ready to be called again and again.

    Args:
        library: Whose program it is.
        program: What is called.
        arguments: The library's own arrays.
        feedback: Put the first result in the place of the first argument, and wait only at the
            end of a sample, as a loop of training steps does.
    """

    def __init__(
        self, library: Library, program: Program, arguments: tuple[Any, ...], feedback: bool
    ) -> None:
        self.library, self.program = library, program
        self.state, self.others = arguments[0], arguments[1:]
        self.feedback = feedback
        self.result: Any = None

    def __call__(self) -> None:
        """Compute once; with ``feedback`` the work may still be in flight afterwards."""
        self.result = self.program(self.state, *self.others)
        if self.feedback:
            self.state = self.result[0] if isinstance(self.result, tuple) else self.result
        else:
            self.library.wait(self.result)

    def finish(self) -> None:
        """Wait for the last result."""
        self.library.wait(self.result)


def prepare(library: Library, row: Row, problem: Problem, dtype: str) -> Call | None:
    """The call of a row in one library, or None where that has no definition of it."""
    is_able = not library.lacks(row.workload.needs)
    program = library.program(problem, row.differentiate) if is_able else None
    if program is None:
        return None
    arguments = library.own_tree(converted(problem.arguments, dtype))
    return Call(library, program, arguments, problem.feedback)


def verified_calls(
    libraries: Mapping[str, Library], row: Row, problem: Problem, dtype: str
) -> dict[str, Call]:
    """The calls of all libraries that can run a row; each was called once and is right.

    Raises:
        Mismatch: One differs from NumPy, or two gradients from each other.
    """
    calls: dict[str, Call] = {}
    judge, first = Judge(problem, row.differentiate, dtype), None
    for name, library in libraries.items():
        call = prepare(library, row, problem, dtype)
        if call is None:
            continue
        call()
        call.finish()
        result = map_arrays(np.array, call.result)
        first = result if first is None else first
        try:
            judge.check(result)
            judge.check_agreement(result, first)
        except Mismatch as error:
            raise Mismatch(f"{name}: {error}") from error
        calls[name] = call
    return calls


def sides(calls: Mapping[str, Call], problem: Problem, dtype: str) -> list[Side]:
    """What is timed: every call, and where the call itself counts, JAX's in more than one way."""
    found = [Side(name, call, call.finish) for name, call in calls.items()]
    if problem.mode == "call" and "jax" in calls:
        call = calls["jax"]
        given = converted(problem.arguments, dtype)
        found += [
            Side("jax, not waited for", unawaited(call), call.finish),
            Side("jax, NumPy in", lambda: call.library.wait(call.program(*given))),
        ]
    return found


def unawaited(call: Call) -> Callable[[], object]:
    """Call without waiting."""
    return lambda: call.program(call.state, *call.others)
