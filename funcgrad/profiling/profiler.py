"""Profiles of functions: `profile`, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.base.records import dataclass
from funcgrad.diagnostics.tables import table
from funcgrad.errors import ArgumentError
from funcgrad.observers.limits import format_bytes, format_seconds
from funcgrad.observers.source import BACKWARD, FORWARD, REMAT, SourceLocation
from funcgrad.profiling import pictures
from funcgrad.profiling.lines import LineTimes, lines_of
from funcgrad.profiling.memory import MemoryProfile, of_program
from funcgrad.profiling.roofline import Roofline, roofline
from funcgrad.profiling.session import FirstCall, Measured, measure
from funcgrad.profiling.timing import Line
from funcgrad.profiling.what_if import Subject, WhatIf, try_all

SHOWN = 20
"""Lines of a table."""

PHASES = ("forward", "backward", "remat")
"""Phases, as attributes of `LineProfile`."""


@dataclass(frozen=True)
class LineProfile:
    """Work and time of a line in one call.

    Attributes:
        location: The line: it has a ``file``, a ``line`` number and a `text`.
        seconds: Its time: forward, backward and computed again.
        forward: Time of what the line computes, and of its tangents.
        backward: Time of its transpose.
        remat: Time of what is computed again for the backward pass.
        python: The part of its time that Python and NumPy take, outside of compiled programs.
        threads: Time on all threads together.
        calls: How often it runs.
        flops: Operations on numbers.
        functions: Elementary functions.
        nbytes: Bytes that it moves.
        bound: What bounds it: ``"arithmetic"``, ``"functions"``, a level of memory, ``"latency"``
            where it is far from all of these, ``"Python"``, or ``""`` where nothing is known.
        least: The least time that it can take on this machine, by its operations and bytes.
        how: ``"measured"`` by timers, ``"sampled"`` within kernels of several lines, ``"modelled"``
            within such by what operations should take, or ``"Python"``.
        neighbours: Lines that its kernels compute as well, and the time of these there.
    """

    location: SourceLocation
    seconds: float
    forward: float
    backward: float
    remat: float
    python: float
    threads: float
    calls: float
    flops: float
    functions: float
    nbytes: float
    bound: str
    least: float
    how: str
    neighbours: tuple[tuple[SourceLocation, float], ...]

    @property
    def text(self) -> str:
        """The line itself."""
        return self.location.text()


@dataclass(frozen=True)
class Profile:
    """Time of a function by line, in one call; prints as a table.

    Attributes:
        name: Name of the function.
        seconds: Time of a call.
        n_calls: Calls that were measured.
        lines: The lines, the slowest first.
        coverage: Part of the time that belongs to lines.
        first: What the first call took.
        memory: The most memory at a time.
        roofline: Rates of the machine.
        result: What the function returned.
        measured: The measurements.
        call: The function and its arguments.
    """

    name: str
    seconds: float
    n_calls: int
    lines: tuple[LineProfile, ...]
    coverage: float
    first: FirstCall
    memory: MemoryProfile
    roofline: Roofline
    result: Any
    measured: Measured
    call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

    def __str__(self) -> str:
        parts = [self._head(), self._table(), *self._shared(), self._first(), self._memory()]
        return "\n".join([*parts, f"this machine: {self.roofline}"])

    __repr__ = __str__

    def _head(self) -> str:
        return (
            f"profile of {self.name}: {format_seconds(self.seconds)} a call, {self.n_calls} calls, "
            f"{self.coverage:.1%} on lines"
        )

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Header and rows of the table."""
        phases = [
            p for p in ("forward", "backward", "remat") if any(getattr(x, p) for x in self.lines)
        ]
        head = (
            "share",
            "time",
            *phases,
            "calls",
            "flops",
            "bytes",
            "bound by",
            "of it",
            "how",
            "line",
        )
        rows = []
        for x in self.lines[:SHOWN]:
            share = f"{x.seconds / self.seconds:.1%}"
            times = [format_seconds(getattr(x, phase)) for phase in phases]
            reached = f"{x.least / x.seconds:.0%}" if x.least and x.seconds else ""
            numbers = f"{x.calls:.4g}" if x.calls else "", _count(x.flops + x.functions)
            nbytes = format_bytes(int(x.nbytes)) if x.nbytes else ""
            rows.append(
                (share, format_seconds(x.seconds), *times, *numbers, nbytes, x.bound, reached,
                 x.how, str(x.location))
            )  # fmt: skip
        return head, rows

    def _table(self) -> str:
        head, rows = self.rows()
        left = len(self.lines) - SHOWN
        return table(head, rows) + (f"\n... and {left} more" if left > 0 else "")

    def _shared(self) -> list[str]:
        """The kernels that the slowest lines share with others."""
        shared = [x for x in self.lines[:SHOWN] if x.neighbours]
        rows = [
            f"  {x.location.short()} with "
            + ", ".join(f"{line.short()} ({format_seconds(t)})" for line, t in x.neighbours[:4])
            for x in shared[:4]
        ]
        return ["in kernels of several lines:", *rows] if rows else []

    def _first(self) -> str:
        first = self.first
        rest = max(first.seconds - first.tracing - self.seconds, 0.0)
        if not (first.tracing or first.n_kernels):
            return f"first call: {format_seconds(first.seconds)}; nothing was compiled in it"
        text = f"first call: {format_seconds(first.seconds)}; tracing "
        text += f"{format_seconds(first.tracing)}, the rest of compilation "
        text += f"{format_seconds(rest)}, {first.n_kernels} kernels compiled"
        text += f" in {format_seconds(first.kernels)}" * bool(first.n_kernels)
        if not first.n_kernels:
            return text
        rows = [("tracing", first.tracing_lines), ("LLVM", first.kernel_lines)]
        return "\n".join(
            [text, *(f"  {what} most at {_most(times)}" for what, times in rows if times)]
        )

    def _memory(self) -> str:
        return f"memory: {self.memory}"

    def what_if(self) -> WhatIf:
        """Try other ways to write the function, and measure each beside what there is.

        Arguments in float32; each large argument with its axes in another order in memory; the
        function in a `checkpoint`; loops of Python as loops of the program, or unrolled; two
        products as one einsum in another order; donated arguments.

        Returns: A `WhatIf`: trials, the best first, which prints as a table.

        Example:
            >>> f = fg.jit(lambda a, b, c: a @ b @ c)
            >>> args = np.ones((300, 300)), np.ones((300, 300)), np.ones((300, 1))
            >>> [x.is_gain for x in fg.profile(f, seconds=0)(*args).what_if().trials if x.location]
            [True]
        """
        lines = [line.location for line in self.lines]
        return try_all(Subject(*self.call, lines))

    # Pictures.

    def _repr_html_(self) -> str:
        """The table and the flame graph, for notebooks."""
        return pictures.html(self)

    def flame_graph(self, path: str | Path | None = None) -> str:
        """Draw functions, their lines, and the phases of these, as wide as their time.

        Args: path: Where the picture is written, if anywhere.
        Returns: The picture, as SVG.

        Example:
            >>> profile = fg.profile(fg.jit(lambda x: np.sum(np.sin(x))), seconds=0.01)(np.ones(9))
            >>> profile.flame_graph()[:4]
            '<svg'
        """
        return _written(pictures.flame_graph(self), path)

    def trace(self, path: str | Path | None = None) -> str:
        """Show when each step of the compiled programs runs in one call, and on which thread.

        Args: path: Where it is written, if anywhere; ``chrome://tracing`` and Perfetto open it.
        Returns: JSON in the Trace Event Format.

        Example:
            >>> import json, numpy as np, funcgrad as fg
            >>> profile = fg.profile(fg.jit(lambda x: np.sum(np.sin(x))), seconds=0.01)(np.ones(9))
            >>> sorted(json.loads(profile.trace()))
            ['displayTimeUnit', 'traceEvents']
        """
        return _written(pictures.trace(self), path)


def profile(f: Callable[..., Any], *, seconds: float = 1.0) -> Callable[..., Profile]:
    """Measure where the time of a function goes, line by line.

    The function runs several times: once as it comes, once to count its operations, and then for
    some time with timers around each step of its compiled programs. In kernels that
    compute several lines, the processor is sampled. It may be jitted or not, differentiated, mapped
    or both; what it does besides computing, it does each time.

    Args:
        f: The function.
        seconds: Time of the calls that are measured, of which there is at least one.
    Returns: A function of the same arguments that returns a `Profile`.
    Raises: ArgumentError: Another profile is running, or ``seconds`` is negative.

    Example:
        >>> def loss(w, x):
        ...     return np.sum(np.tanh(x @ w) ** 2)
        >>> found = fg.profile(fg.jit(fg.grad(loss)), seconds=0.05)(np.ones(50), np.ones((200, 50)))
        >>> found.coverage > 0.5, max(line.flops for line in found.lines) > 0
        (True, True)
    """
    check_callable(f, "profile")
    if not seconds >= 0:
        raise ArgumentError(f"profile: seconds must not be negative, but is {seconds!r}.")

    @wraps(f)
    def profiled(*args: Any, **kwargs: Any) -> Profile:
        return _profile_of(measure(f, args, kwargs, seconds), (f, args, kwargs))

    return profiled


def _profile_of(
    measured: Measured, call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
) -> Profile:
    machine = roofline()
    found, nowhere = lines_of(measured, machine.machine)
    seconds = measured.seconds / measured.n_calls
    lines = sorted((_line(x, machine) for x in found.values()), key=lambda x: -x.seconds)
    memories = [measured.memory, *(of_program(p.executable.plan) for p in measured.programs)]
    return Profile(
        name_of(call[0]),
        seconds,
        measured.n_calls,
        tuple(x for x in lines if x.seconds or x.calls),
        1 - nowhere / seconds if seconds else 0.0,
        measured.first,
        max(memories, key=lambda memory: memory.peak),
        machine,
        measured.result,
        measured,
        call,
    )


def _line(x: LineTimes, machine: Roofline) -> LineProfile:
    cost, total = x.cost, x.total
    times = max(x.calls, 1.0)
    bound, least = machine.bound(cost.times(1 / times), total / times)
    is_python = x.python > total / 2
    hows = {"sampled": x.sampled, "modelled": x.modelled, "Python": x.python}
    hows["measured"] = total - sum(hows.values())
    return LineProfile(
        location=x.location,
        seconds=total,
        forward=x.seconds[FORWARD],
        backward=x.seconds[BACKWARD],
        remat=x.seconds[REMAT],
        python=x.python,
        threads=x.threads,
        calls=x.calls,
        flops=cost.flops,
        functions=cost.transcendentals,
        nbytes=cost.nbytes,
        bound="Python" if is_python and bound in ("", "latency") else bound,
        least=least * times,
        how=max(hows, key=hows.__getitem__),
        neighbours=tuple(sorted(x.neighbours.items(), key=lambda row: -row[1])),
    )


def _most(times: Mapping[Line, float]) -> str:
    """The lines that take most of a time."""
    rows = sorted(times.items(), key=lambda row: -row[1])
    known = [(line, seconds) for line, seconds in rows if line is not None]
    return ", ".join(f"{line.short()} ({format_seconds(t)})" for line, t in known[:3])


_COUNTS = {"G": 1e9, "M": 1e6, "k": 1e3}


def _count(number: float) -> str:
    for unit, size in _COUNTS.items():
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f}" if number else ""


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
