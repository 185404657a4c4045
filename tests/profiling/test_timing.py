"""Programs with clocks: the same results and errors, counts that are so, lines of statements."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llvmlite.binding import llvm_version_info

import funcgrad as fg
from funcgrad import lax
from funcgrad.api.staging import StagedFunction
from funcgrad.compiler.pipeline import compile_program
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.executable import Executable
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.profiling import timed_steps
from funcgrad.profiling.line_table import LineTable, read_lines
from funcgrad.profiling.timing import (
    LinedKernel,
    TimedProgram,
    costs_of,
    line_of,
    numbered,
    statements_of,
)


def timed(f: Callable[..., Any], *args: Any, **options: Any) -> TimedProgram:
    with using_trace(EVAL):
        program = StagedFunction(f, args, {}, "timed").program
        found: Executable = compile_program(program, **options)
    log = np.zeros(2, np.int64)
    return TimedProgram(found, log, has_sampler=True)


def chain(x):
    y = np.sin(x) * 2
    z = np.exp(-y)
    return np.sum(z / (1 + z))


def dynamic(x):
    def body(state):
        i, c = state
        return i + 1, np.tanh(c @ np.ones((40, 40))) + np.linalg.norm(c)

    return lax.while_loop(lambda state: state[0] < 7, body, (0, x))[1]


def branches(x):
    return lax.cond(
        x[0] > 0, lambda x: np.linalg.solve(np.eye(3) + x, x), lambda x: np.cumsum(x), x
    )


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (chain, np.linspace(0, 1, 300_000)),
        (fg.grad(chain), np.linspace(0, 1, 1000)),
        (dynamic, np.linspace(0, 1, 40)),
        (branches, np.ones(3)),
        (branches, -np.ones(3)),
        (lambda x: np.sort(np.fft.fft(x).real) + np.sin(x), np.arange(50.0)),
    ],
)
def test_results_are_the_same_with_clocks(f, x):
    program = timed(f, x)
    expected = program.executable(x)
    program.start()
    found = program.executable(x)
    program.keep()
    program.stop()
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)
    outer = [n for k, n in enumerate(program.calls()) if program.steps[k].inside < 0]
    assert outer == [1] * len(outer)
    assert all(time >= 0 for time in program.seconds())
    before = program.counters.copy()
    program.executable(x)  # without clocks
    np.testing.assert_array_equal(program.counters, before)


def test_steps_of_loops_are_counted():
    program = timed(dynamic, np.ones(40))
    program.start()
    program.executable(np.ones(40))
    program.keep()
    program.stop()
    inner = {n for k, n in enumerate(program.calls()) if program.steps[k].inside >= 0}
    assert (inner <= {7, 8} and 7 in inner) or not inner


def test_parts_are_measured_on_their_threads():
    """In a quiet one of many runs, for where others use the processors a step waits, too."""
    x = np.linspace(0, 1, 1 << 20)
    shares = [0.0]
    while len(shares) <= 500 and shares[-1] < 1 / 2:
        program = timed(lambda x: np.exp(np.sin(x)), x, threads=2)
        program.start()
        program.executable(x)
        program.keep()
        program.stop()
        (shared,) = [k for k, step in enumerate(program.steps) if step.parts > 1]
        assert program.kept_parts[shared, timed_steps.CALLS] == program.steps[shared].parts
        shares.append(program.on_threads()[shared] / program.seconds()[shared])
    assert max(shares) >= 1 / 2


def test_refused_index_is_the_same_error_with_clocks():
    x, i = np.ones(5), np.array([1, 9])
    program = timed(lambda x, i: np.sin(x[i]) * 2, x, i)
    program.start()
    with pytest.raises(IndexError, match="9") as error:
        program.executable(x, i)
    program.stop()
    with pytest.raises(IndexError, match="9") as plain:
        program.executable(x, i)
    assert str(error.value) == str(plain.value)


def test_log_has_every_run_in_order():
    x = np.ones(40)
    program = timed(chain, x)
    log = np.zeros(2 + 4 * 8, np.int64)
    program.counters[:, timed_steps.LOG] = log.ctypes.data
    program.start()
    log[1] = 8
    program.executable(x)
    program.stop()
    n = len(program.steps)
    assert log[0] == n
    rows = log[2 : 2 + 4 * n].reshape(n, 4)
    assert rows[:, 0].tolist() == list(range(n))
    assert (rows[:, 1] <= rows[:, 2]).all()
    assert (rows[1:, 1] >= rows[:-1, 2]).all()


def test_statements_know_their_lines():
    program = timed(chain, np.ones(100))
    ((job, kernel),) = [(s.job, s.kernel) for s in program.steps if s.job is not None and s.kernel]
    lines = statements_of(job)
    text = {line.line - chain.__code__.co_firstlineno for line in lines if line is not None}
    assert text == {1, 2, 3}
    sizes = kernel.table.sizes
    assert set(sizes) <= set(range(1, len(lines) + 1))
    assert max(sizes.values()) > 10 * min(sizes.values())  # formulas are long
    assert set(costs_of(job.nodes)) == {line for line in lines if line is not None}


def test_instructions_of_no_statement_count_for_what_is_gone():
    program = timed(chain, np.ones(100))
    (kernel,) = [step.kernel for step in program.steps if step.kernel]
    first, second, *_ = dict.fromkeys(line for line in kernel.lines if line is not None)
    starts, rows = np.array([0, 10, 20]), np.array([3, 4, 0])
    table = LineTable(starts, rows, (), {1: 4, 2: 12, 3: 8, 4: 1}, 0, 30)
    made = LinedKernel(0, table, [first, first, second, None])
    assert made.shares(np.array([5, 15, 25])) == {first: 1.0, second: 1.0}
    assert made.without_line(np.array([5, 15, 25, 35])) == 2.0


@pytest.mark.skipif(kernel_store._is_by_numba(), reason="Numba tells no lines")
@pytest.mark.skipif(llvm_version_info < (21,), reason="this LLVM forgets lines")
def test_moved_instructions_keep_their_lines():
    """Branches for rare arguments divide the loop, and what is behind them moves to its end."""
    program = timed(fg.grad(chain), np.ones(1000))
    ((job, kernel),) = [(s.job, s.kernel) for s in program.steps if s.kernel is not None]
    sizes: dict[Any, int] = {}
    for k, size in kernel.table.sizes.items():
        sizes[kernel.lines[k - 1]] = sizes.get(kernel.lines[k - 1], 0) + size
    found = kernel.table.shares(np.arange(kernel.table.first, kernel.table.end))
    of_lines: dict[Any, float] = {}
    for k, count in found.items():
        line = kernel.lines[k - 1] if k else None
        of_lines[line] = of_lines.get(line, 0.0) + count
    large = [line for line, size in sizes.items() if line and size > sum(sizes.values()) / 50]
    assert {(line.line - chain.__code__.co_firstlineno, line.phase) for line in large} >= {
        (1, ""), (2, ""), (1, "backward")
    }  # fmt: skip
    for line in large:
        assert of_lines[line] / kernel.table.end > sizes[line] / sum(sizes.values()) / 3
    assert set(costs_of(job.nodes)) >= {*large}


def test_joined_loops_know_their_lines():
    def loop(x):
        def body(c, t):
            a = np.sin(c) * t
            return np.exp(-a), np.sum(a)

        return lax.scan(body, x, np.linspace(0, 1, 20))

    program = timed(loop, np.ones(40))
    kernels = [step.job for step in program.steps if step.kernel is not None]
    lines = {line.line for job in kernels for line in statements_of(job) if line is not None}
    first = loop.__code__.co_firstlineno
    assert {first + 2, first + 3} <= lines


@pytest.mark.skipif(kernel_store._is_by_numba(), reason="Numba tells no lines")
def test_line_tables_cover_kernels():
    """Each statement that computes has instructions, or was moved to where none is known."""
    program = timed(chain, np.ones(100))
    (kernel,) = [step.kernel for step in program.steps if step.kernel is not None]
    table = kernel.table
    assert (np.diff(table.starts) >= 0).all()
    known = {int(k) for k in table.lines if k}
    assert known <= set(range(1, len(kernel.lines) + 1))
    assert len({kernel.lines[k - 1] for k in known} - {None}) == 3
    places = kernel.address + np.arange(table.first, table.end)
    shares = kernel.shares(places)
    assert sum(shares.values()) > 0.3 * len(places)
    assert kernel.shares(places + (1 << 40)) == {}


def test_kernels_with_lines_are_the_same_code():
    """Line tables change no instruction: objects differ in what is not code."""
    program = timed(chain, np.ones(100))
    (job,) = [step.job for step in program.steps if step.kernel is not None]
    numbers, lines = numbered(job)
    found = kernel_store.kernel_with_lines(job.function, numbers)
    assert found is not None
    assert found is kernel_store.kernel_with_lines(job.function, numbers)
    assert read_lines(found) is not None
    of_statements = [lines[number - 1] for number in numbers]
    assert of_statements == statements_of(job)


def test_lines_in_phases():
    program = timed(fg.grad(chain), np.ones(100))
    phases = {
        line.phase for step in program.steps if step.job is not None
        for line in costs_of(step.job.nodes) if line is not None
    }  # fmt: skip
    assert phases == {"", "backward"}

    def again(x):
        return np.sum(fg.checkpoint(lambda x: np.sin(np.cos(x) * x))(x) ** 2)

    nodes = [node for step in timed(fg.grad(again), np.ones(100)).steps for node in step.job.nodes]
    assert {line_of(node).phase for node in nodes if line_of(node)} == {"", "backward", "remat"}
    assert re.fullmatch(r"test_timing\.py:\d+", line_of(nodes[0]).short())
