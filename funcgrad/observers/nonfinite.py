"""Watching for the operation in which the first NaN or infinity appears.

While a block watches, everything that is evaluated is inspected, forwards and backwards: an
operation is reported whose results contain what is watched for though its operands do not.

A NaN that came in from outside, in an argument or a constant, is only remembered where it is first
read: it may stand for what is missing, and be replaced. It is reported if the results of the
transformed function contain one. An infinity that came in is never reported: -inf is an ordinary
value of a mask.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np

from funcgrad.base import environment
from funcgrad.base.annotations import Values
from funcgrad.core.avals import aval_of
from funcgrad.core.observers import Observer, attach, detach
from funcgrad.core.primitive import Linear
from funcgrad.errors import NonFiniteError
from funcgrad.observers.infinities import followed
from funcgrad.observers.source import current_location

Kinds = frozenset[str]
"""Kinds of values to watch for: "nan", "inf"."""

_TESTS = {"nan": np.isnan, "inf": np.isinf}
_MAX_TEXT = 60


def _from_environment() -> Kinds:
    names = {"nan": "FUNCGRAD_DEBUG_NANS", "inf": "FUNCGRAD_DEBUG_INFS"}
    return frozenset(k for k, name in names.items() if environment.is_on(name))


WATCHED_FROM_START = _from_environment()
_kinds: ContextVar[Kinds] = ContextVar("funcgrad_watched", default=WATCHED_FROM_START)

watched_kinds = _kinds.get
"""Kinds of values that this thread and context watches for."""


class _Watch(Observer):
    """The observer, attached while a block watches in any thread."""

    def evaluating(self, operation: str) -> AbstractContextManager[Any]:
        return np.errstate(all="ignore") if watched_kinds() else nullcontext()

    def computed(self, operation: str, operands: Values, results: Values, primitive: Any) -> None:
        if watched_kinds():
            is_elementwise = primitive is None or primitive.is_elementwise
            inspect(operation, operands, results, is_elementwise)


_WATCH = _Watch()
if WATCHED_FROM_START:
    attach(_WATCH)


_first_reader: ContextVar[list[str]] = ContextVar("funcgrad_first_reader", default=[])  # noqa: B039
"""Lines about the first operation that has read a NaN from outside, if there is one."""


@contextmanager
def watching(kind: str, enable: bool) -> Iterator[Kinds]:
    """Watch for one kind of values within a block, or stop it; gives all that is watched for."""
    kinds = watched_kinds() | {kind} if enable else watched_kinds() - {kind}
    token = _kinds.set(kinds)
    reader = _first_reader.set([])
    if enable:
        attach(_WATCH)
    try:
        yield kinds
    finally:
        if enable:
            detach(_WATCH)
        _first_reader.reset(reader)
        _kinds.reset(token)


def inspect(operation: str, operands: Values, results: Values, is_elementwise: bool) -> None:
    """Raise if a watched kind of value is in the results but not in the operands.

    Args:
        operation: Its name.
        operands: What it was given.
        results: What it gave.
        is_elementwise: Whether it acts on corresponding elements.
    Raises: NonFiniteError: With the user's line, types and values.
    """
    origins = followed()
    if origins is not None:
        reached = origins.note(operation, operands, results, is_elementwise)
        if reached is not None:
            raise _error(operation, "inf", operands, reached.result)
    for kind in sorted(watched_kinds(), reverse=True):
        for result in results:
            if not _contains(result, kind):
                continue
            given = [x for x in operands if _contains(x, kind)]
            if not given:
                if origins is not None and kind == "nan":
                    origins.explain(operation, operands, result, is_elementwise)
                raise _error(operation, kind, operands, result)
            if kind == "nan" and not _first_reader.get():
                _first_reader.get().extend(_reader(operation, given))


def _error(operation: str, kind: str, operands: Values, result: Any) -> NonFiniteError:
    location = current_location()
    line = None if location is None else str(location)
    seen = tuple(x for x in operands if x is not None and not isinstance(x, Linear))
    text = _message(operation, kind, line, seen, result)
    return NonFiniteError(text, kind, operation, line, seen, result)


def _reader(operation: str, given: Values) -> list[str]:
    location = current_location()
    lines = [] if location is None else [f"  at            {location}"]
    lines.append(f"  read by       {operation}")
    return lines + [f"  operand       {describe(x)}" for x in given]


def check_results(what: str, results: Values, holders: Callable[[], list[str]]) -> None:
    """Raise if results contain a NaN, while NaNs are watched for: none of the operations made it.

    Args:
        what: How messages call what was evaluated, such as ``jit(f)``.
        results: Its flat results.
        holders: Lines that name the arguments with a NaN.
    Raises: NonFiniteError: With the first operation that has read a NaN.
    """
    reader = list(_first_reader.get())
    _first_reader.get().clear()
    if "nan" in watched_kinds() and any(_contains(x, "nan") for x in results):
        lines = [f"{what} returned a nan that no operation has made: it came in from outside."]
        lines += [*reader, *holders()]
        lines.append(
            "Look where that argument, or the constant that the function closes over, was made. "
            "If it stands for what is missing, replace it: np.where(np.isnan(x), 0, x)."
        )
        raise NonFiniteError("\n".join(lines))


def holds_nan(value: Any) -> bool:
    """Whether it is a number or an array, not traced, with a NaN."""
    return _contains(value, "nan")


def _contains(value: Any, kind: str) -> bool:
    if not isinstance(value, np.ndarray | np.generic | float | complex):
        return False
    array = np.asarray(value)
    return array.dtype.kind in "fc" and bool(_TESTS[kind](array).any())


def _message(operation: str, kind: str, line: str | None, operands: Values, result: Any) -> str:
    array = np.asarray(result)
    lines = [f"{operation} gave the first {kind}."]
    if line is not None:
        lines.append(f"  at            {line}")
    lines += [f"  operand       {describe(x)}" for x in operands]
    lines.append(f"  result        {describe(result)}")
    if array.ndim:
        place = np.argwhere(_TESTS[kind](array))[0]
        count = int(_TESTS[kind](array).sum())
        lines.append(f"  {'first at':<13} [{', '.join(map(str, place))}], {count} in all")
    lines.append(
        "Keep the operands in the range where the operation and its derivative are finite. What "
        "np.where computes and does not choose is reported too, though it spoils no derivative: "
        "to be rid of the report choose on the argument, np.log(np.where(x > 0, x, 1))."
    )
    return "\n".join(lines)


def describe(value: Any) -> str:
    """Type and, shortened, the values."""
    aval = aval_of(value)
    if not isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        return f"{aval}"
    text = np.array2string(np.asarray(value), threshold=6, edgeitems=2, precision=6)
    text = " ".join(text.split())
    return f"{aval.strong()} {text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + ' ...'}"


_DERIVED = re.compile(r"^((forward|tangent|transpose|jvp|push|vmap|ahead|before)_)+")
"""Prefixes that transformations put in front of the name of a program."""


def add_step(error: NonFiniteError, step: int, loop: str, length: int | None = None) -> None:
    """Say in which step of a loop the operation ran."""
    loop = _DERIVED.sub("", loop)
    of = f" of {length}" if length is not None else ""
    text = f"{step}{of} of the loop {loop}"
    error.steps.append(text)
    *lines, now = str(error).split("\n")
    error.args = ("\n".join([*lines, f"  in step       {text}", now]),)
