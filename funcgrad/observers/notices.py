"""Warnings about a user's line: what is legal, and hardly ever meant.

They are found where something else is done anyway: when a function has been traced, or before it is
compiled.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from funcgrad.base import environment
from funcgrad.base.tables import keep
from funcgrad.errors import FuncgradWarning, LongProgramWarning, PythonLoopWarning
from funcgrad.observers.source import SourceLocation

_FROM_START = True if environment.is_on("FUNCGRAD_DEBUG_PYTHON_LOOPS") else None
_reports_python_loops: ContextVar[bool | None] = ContextVar(
    "funcgrad_python_loops", default=_FROM_START
)
"""Whether the compiler warns of calls of Python in loops: of all of them, of none, or, if ``None``,
once for a line whose operation NumPy evaluates."""


@contextmanager
def debug_python_loops(enable: bool = True) -> Iterator[None]:
    """Warn, within a block, of all operations in compiled loops that Python evaluates, or of none.

    A few operations have no native code (`signm`, callbacks). Each call of one takes
    microseconds, in every iteration; the rest of the loop is native. The warning names the
    operation and the line. It comes when a function is compiled, so enter the block before the
    first call. Without such a block each line is named once, and callbacks, which are there because
    somebody wants them, are not.

    The environment variable ``FUNCGRAD_DEBUG_PYTHON_LOOPS=1`` does the same for a whole process.

    Args: enable: Whether to warn, of every one in every compilation; ``False`` for silence.

    Example:
        >>> import warnings
        >>> def f(x):
        ...     return fg.lax.fori_loop(0, 3, lambda i, c: fg.scipy.linalg.signm(c) * c, x)
        >>> with warnings.catch_warnings(record=True) as caught, fg.debug_python_loops():
        ...     warnings.simplefilter("always")
        ...     y = fg.jit(f)(np.eye(3))
        >>> print(str(caught[0].message).splitlines()[0])
        signm in a loop of f is evaluated by Python.
    """
    token = _reports_python_loops.set(enable)
    try:
        yield
    finally:
        _reports_python_loops.reset(token)


def warn_at(location: SourceLocation | None, warning: FuncgradWarning) -> None:
    """Warn as if a line of the user's did."""
    if location is None:
        warnings.warn(warning, stacklevel=2)
    else:
        warnings.warn_explicit(warning, None, location.file, location.line)


def warn_of_python_loop(
    name: str, operation: str, line: SourceLocation | None, is_users: bool
) -> None:
    """Name an operation that Python evaluates in every iteration of a compiled loop.

    Args:
        name: What the program is called.
        operation: The operation.
        line: Where it was called.
        is_users: Whether it is a function of the user's.
    """
    mode = _reports_python_loops.get()
    if mode is False or (mode is None and (is_users or line is None or line in _warned_loops)):
        return
    lines = [f"{operation} in a loop of {name} is evaluated by Python."]
    if line is not None:
        keep(_warned_loops, line, None, _MAX_WARNED)
        lines.append(f"  at            {line}")
    lines.append(
        "Every iteration calls it, which takes microseconds. Move it out of the loop, or "
        "write it with operations that compile."
    )
    warn_at(line, PythonLoopWarning("\n".join(lines)))


LONG_PROGRAM = 5000
"""Operations from which on a program counts as long."""

_REPEATED = 50
"""How often lines are run, on average, that a loop must be around."""

_warned_loops: dict[SourceLocation, None] = {}
_warned_of: dict[SourceLocation, None] = {}
_MAX_WARNED = 1024


def warn_of_length(name: str, sources: Sequence[SourceLocation | None]) -> None:
    """Suggest a loop, once per line, if a few lines have made thousands of operations.

    Args:
        name: What the program is called.
        sources: The line of every operation.
    """
    if len(sources) < LONG_PROGRAM:
        return
    counts = Counter(source.unscoped for source in sources if source is not None)
    if not counts or len(sources) < _REPEATED * len(counts):
        return
    line, count = counts.most_common(1)[0]
    if line in _warned_of:
        return
    keep(_warned_of, line, None, _MAX_WARNED)
    text = (
        f"{name} has {len(sources)} operations, {count} of them from one line.\n"
        f"  at            {line}\n"
        "A Python loop is unrolled while it is traced. If there is one around this line, it did "
        "not become a loop again (FUNCGRAD_DEBUG=1 prints why), so every operation is compiled: "
        "lax.scan, fori_loop and while_loop trace their body once, and compile in milliseconds, "
        "whatever the number of steps."
    )
    warn_at(line, LongProgramWarning(text))
