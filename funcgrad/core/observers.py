"""Observers: the interface through which modules above the calculus watch it.

The interpreters announce events: an operation was evaluated or differentiated, a trace has ended,
an error propagates, a traced value is asked for its contents. They also ask for the user's line.
Error messages and the searches for NaNs and for leaks are observers (`funcgrad.observers`); a
program may attach its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from funcgrad.base.forking import Lock

Location = Any
"""A line of the user's, as an observer describes it: it has a text, and a short one."""

# Classes of `funcgrad.core.trace`, which imports this module to announce events.
Trace = Any
Tracer = Any


class Observer:
    """Base class of observers; a subclass overrides the methods of the events that it wants.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> from funcgrad.core.observers import Observer, attach, detach
        >>> class Log(Observer):
        ...     def computed(self, operation, operands, results, primitive):
        ...         print(operation, *map(np.shape, results))
        >>> log = Log()
        >>> attach(log)
        >>> y = fg.numpy.sin(np.zeros(2))
        sin (2,)
        >>> detach(log)
    """

    def locate(self) -> Location | None:
        """Return the user's line that is executing now."""

    def tracing(self, what: str) -> AbstractContextManager[Any]:
        """Enclose the call of a function that is traced to a program.

        Args: what: The transformation as messages call it, ``jit(f)``.
        Raises: Exception: To prevent it.
        """
        return nullcontext()

    def evaluating(self, operation: str) -> AbstractContextManager[Any]:
        """Enclose the evaluation of an operation by NumPy, if anybody wants results (`computed`).

        Args: operation: Its name.
        """
        return nullcontext()

    def computed(
        self, operation: str, operands: Sequence[Any], results: Sequence[Any], primitive: Any
    ) -> None:
        """Receive an operation that was evaluated, or its derivative or transpose.

        Args:
            operation: Its name.
            operands: Its arguments, ``None`` for zeros; those of a derivative are followed by their
                tangents.
            results: Its results, likewise. Within a trace that stages both are traced values.
            primitive: The primitive, ``None`` for the sum of cotangents.
        Raises: Exception: To stop the program here.
        """

    def ended(self, *traces: Trace) -> None:
        """Receive traces that have ended, whose tracers nobody should hold any more."""

    def failed(self, error: Exception, trace: Trace) -> None:
        """Receive an error that leaves a transformed function.

        Args:
            error: The error; its text may be completed.
            trace: The trace under which the function ran.
        Raises: Exception: To raise another one in its place.
        """

    def calling(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Receive a call of a compiled function that looks for a program, or runs without one.

        Args:
            function: The compiled function.
            args: Its positional arguments.
            kwargs: Its keyword arguments.
        """

    def refused(self, tracer: Tracer, wanted: str) -> None:
        """Receive a request for the contents of a traced value that has none.

        Args:
            tracer: The value.
            wanted: The request: a word of `WANTED`, or the call that needs a number.
        Raises: Exception: A better error than the calculus raises.
        """


WANTED = {
    "bool": "a truth value",
    "int()": "a Python int",
    "float()": "a Python float",
    "complex()": "a Python complex",
    "index": "an index or a length",
    "array": "an array",
    "hash": "a hash",
}
"""Requests for contents: the word of each for observers, and for messages."""

EVENTS = ("tracing", "evaluating", "computed", "ended", "failed", "calling", "refused")


class _Observed:
    """The methods of all attached observers, by event: empty tuples where nobody listens."""

    __slots__ = ("locate", *EVENTS)
    locate: Callable[[], Location | None]  # the last one's: it is asked for every equation
    tracing: tuple[Any, ...]
    evaluating: tuple[Any, ...]
    computed: tuple[Any, ...]
    ended: tuple[Any, ...]
    failed: tuple[Any, ...]
    calling: tuple[Any, ...]
    refused: tuple[Any, ...]


OBSERVED = _Observed()
_attached: list[Observer] = []
_lock = Lock()


def attach(observer: Observer) -> None:
    """Let an observer receive events of all threads; twice attached, it has to be detached twice.

    Args: observer: The observer.
    """
    with _lock:
        _attached.append(observer)
        _list_events()


def detach(observer: Observer) -> None:
    """End what `attach` began.

    Args: observer: An attached observer.
    """
    with _lock:
        _attached.remove(observer)
        _list_events()


def _list_events() -> None:
    """Collect the listeners of every event anew."""
    distinct = list(dict.fromkeys(_attached))
    for event in EVENTS:
        default = getattr(Observer, event)
        listeners = [o for o in distinct if getattr(type(o), event) is not default]
        setattr(OBSERVED, event, tuple(getattr(o, event) for o in listeners))
    locators = [o for o in distinct if type(o).locate is not Observer.locate]
    OBSERVED.locate = locators[-1].locate if locators else lambda: None


_list_events()


def is_observers(code: Any) -> bool:
    """Whether a code object is that of a method of an attached observer."""
    return any(
        getattr(method, "__code__", None) is code
        for observer in _attached
        for kind in type(observer).__mro__
        for method in vars(kind).values()
    )


def current_location() -> Location | None:
    """Return the user's line that is executing now, if an observer knows it.

    In a method of an observer it is the line at which the event happened.
    """
    return _asked()


def _asked() -> Location | None:  # a function more: its caller is not looked at
    return OBSERVED.locate()


def describe_location(location: Location | None, label: str) -> list[str]:
    """Return a line for a message, or none if the location is unknown."""
    return [] if location is None else [f"  {label:<13} {location}"]


def enclosed(listeners: Sequence[Any], what: str) -> AbstractContextManager[Any]:
    """Combine the context managers of all listeners to ``tracing`` or ``evaluating``."""
    if len(listeners) == 1:
        return listeners[0](what)
    stack = ExitStack()
    for enclose in listeners:
        stack.enter_context(enclose(what))
    return stack


def report(operation: str, operands: Sequence[Any], results: Sequence[Any], primitive: Any) -> None:
    """Announce an operation that was computed."""
    for computed in OBSERVED.computed:
        computed(operation, operands, results, primitive)


def report_end(*traces: Trace) -> None:
    """Announce traces that have ended."""
    for ended in OBSERVED.ended:
        ended(*traces)


def report_failure(error: Exception, trace: Trace) -> None:
    """Announce an error that leaves a transformed function."""
    for failed in OBSERVED.failed:
        failed(error, trace)


def report_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Announce a call of a compiled function."""
    for calling in OBSERVED.calling:
        calling(function, args, kwargs)
