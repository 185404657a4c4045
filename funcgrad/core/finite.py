"""Watching for the operation in which the first NaN or infinity appears.

While a block watches, everything that is evaluated is inspected, forwards and backwards: an
operation is reported whose results contain what is watched for though its operands do not. What
came in from outside is not reported, and neither is what only passes it on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.source import current_location
from funcgrad.errors import NonFiniteError

Kinds = frozenset[str]
"""What is watched for: "nan", "inf"."""

_TESTS = {"nan": np.isnan, "inf": np.isinf}
_MAX_TEXT = 60


def _from_environment() -> Kinds:
    names = {"nan": "FUNCGRAD_DEBUG_NANS", "inf": "FUNCGRAD_DEBUG_INFS"}
    return frozenset(k for k, name in names.items() if os.environ.get(name, "0") not in ("0", ""))


WATCHED_FROM_START = _from_environment()
_kinds: ContextVar[Kinds] = ContextVar("funcgrad_watched", default=WATCHED_FROM_START)

watched_kinds = _kinds.get
"""What is watched for in this thread and context."""


class _Watch:
    """How many blocks watch, in any thread: nothing is looked up while none does."""

    __slots__ = ("users",)

    def __init__(self) -> None:
        self.users = int(bool(WATCHED_FROM_START))


WATCH = _Watch()


@contextmanager
def watching(kind: str, enable: bool) -> Iterator[Kinds]:
    """Watch for one kind of values within a block, or stop it; gives all that is watched for."""
    kinds = watched_kinds() | {kind} if enable else watched_kinds() - {kind}
    token = _kinds.set(kinds)
    WATCH.users += 1
    try:
        yield kinds
    finally:
        WATCH.users -= 1
        _kinds.reset(token)


def inspect(operation: str, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise if a watched kind of value is in the results but not in the operands.

    Raises:
        NonFiniteError: With the user's line, types and values.
    """
    for kind in sorted(watched_kinds(), reverse=True):
        for i, result in enumerate(results):
            if _contains(result, kind) and not any(_contains(x, kind) for x in operands):
                raise NonFiniteError(_message(operation, kind, operands, results[i]))


def _contains(value: Any, kind: str) -> bool:
    if not isinstance(value, np.ndarray | np.generic | float | complex):
        return False
    array = np.asarray(value)
    return array.dtype.kind in "fc" and bool(_TESTS[kind](array).any())


def _message(operation: str, kind: str, operands: Sequence[Any], result: Any) -> str:
    location = current_location()
    array = np.asarray(result)
    lines = [f"{operation} gave the first {kind}."]
    if location is not None:
        lines.append(f"  at            {location}")
    lines += [f"  operand       {describe(x)}" for x in operands if x is not None]
    lines.append(f"  result        {describe(result)}")
    if array.ndim:
        place = np.argwhere(_TESTS[kind](array))[0]
        count = int(_TESTS[kind](array).sum())
        lines.append(f"  {'first at':<13} [{', '.join(map(str, place))}], {count} in all")
    lines.append(
        "Keep the operands in the range where the operation and its derivative are finite (for "
        "example np.where on the argument, not only on the result)."
    )
    return "\n".join(lines)


def describe(value: Any) -> str:
    """Type and, shortened, the values."""
    try:
        aval = aval_of(value)
    except TypeError:
        return type(value).__name__
    if not isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        return f"{aval}"
    text = np.array2string(np.asarray(value), threshold=6, edgeitems=2, precision=6)
    text = " ".join(text.split())
    return f"{aval.strong()} {text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + ' ...'}"


_DERIVED = re.compile(r"^((forward|tangent|transpose|jvp|push|vmap|ahead|before)_)+")
"""What transformations put in front of the name of a program."""


def add_step(error: NonFiniteError, step: int, loop: str, length: int | None = None) -> None:
    """Say in which step of a loop the operation ran."""
    loop = _DERIVED.sub("", loop)
    of = f" of {length}" if length is not None else ""
    *lines, now = str(error).split("\n")
    error.args = ("\n".join([*lines, f"  in step       {step}{of} of the loop {loop}", now]),)
