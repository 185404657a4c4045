"""Error messages: the observer that knows the user's lines, and says what to write instead.

It is always attached. `advice` finds out which expression of the user's asked for a value.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from traceback import walk_stack
from typing import NoReturn

from funcgrad import errors
from funcgrad.base import stacks
from funcgrad.core.observers import Observer, attach, describe_location
from funcgrad.core.trace import Trace, Tracer
from funcgrad.observers import source
from funcgrad.observers.advice import INSTEAD_OF_LENGTH, INSTEAD_OF_OBJECTS, Asker, is_about_objects


class _Notes:
    """Memory of earlier messages about a trace.

    Attributes:
        gave_objects: Whether NumPy got an array of objects that stand for a value of the trace.
        gave_part: Whether NumPy got an array that should share its elements with one of the trace.
        length: The last message about a length; NumPy says in its place that it wants a sequence.
    """

    __slots__ = ("gave_objects", "gave_part", "length")

    def __init__(self) -> None:
        self.gave_objects = self.gave_part = False
        self.length = ""


def notes_of(trace: Trace) -> _Notes:
    """Return what is known of a trace."""
    if trace.notes is None:
        trace.notes = _Notes()
    return trace.notes


class Messages(Observer):
    """The observer of errors."""

    locate = staticmethod(source.equation_location)

    def tracing(self, what: str) -> AbstractContextManager[None]:
        check_stack(what)
        return source.outside_scopes()

    def failed(self, error: Exception, trace: Trace) -> None:
        explain(error, trace)

    def refused(self, tracer: Tracer, wanted: str) -> None:
        if wanted == "hash":
            raise errors.ConcretizationTypeError(
                message(
                    tracer,
                    "keys of dicts, members of sets and static arguments must be hashable, but "
                    "this is",
                    "Use what is known while tracing as the key: a name, a shape, a Python number.",
                )
            )
        asker = Asker()
        if wanted == "array":
            _refuse_array(tracer, asker)
        _refuse_length(tracer, asker)
        if wanted == "bool":
            raise errors.TracerBoolConversionError(
                message(
                    tracer,
                    "`if`, `while`, `and`, `or`, `not` and `bool()` need a concrete bool, but this "
                    "is",
                    asker.instead_of_bool() + _about_objects(tracer),
                )
            )
        if wanted == "index":
            notes_of(tracer.owner).length = text = message(
                tracer,
                "an index, a shape or a length must be a concrete integer, but this is",
                asker.instead_of_integer(),
            )
            raise errors.TracerIntegerConversionError(text)
        raise errors.ConcretizationTypeError(
            message(
                tracer, f"{wanted} needs a concrete value, but this is", asker.instead_of_scalar()
            )
        )


attach(Messages())


def message(tracer: Tracer, what: str, now: str) -> str:
    """Return a message about a traced value: what is wrong, where, where it came from, what now."""
    return "\n".join(
        [
            f"{what} a traced {tracer.aval} inside {tracer.owner.what}.",
            *describe_location(source.current_location(), "at"),
            *tracer.origin(),
            now,
        ]
    )


def _refuse_array(tracer: Tracer, asker: Asker) -> NoReturn:
    """Raise the error for a library that wants the values."""
    raise errors.TracerArrayConversionError(
        message(
            tracer,
            f"{asker.library} asked for the values of an array, but it is",
            asker.instead_of_array(tracer.aval.dtype.kind in "fc") + _about_objects(tracer),
        )
    )


def _refuse_length(tracer: Tracer, asker: Asker) -> None:
    """Raise the error for a function that the value tells how long an array is, if it is one."""
    if asker.maker:
        notes_of(tracer.owner).length = text = message(
            tracer, f"{asker.maker}: the shape depends on", INSTEAD_OF_LENGTH
        )
        raise errors.TracerIntegerConversionError(text)


def _about_objects(tracer: Tracer) -> str:
    """Return advice on arrays of objects, if one was made of a value of this trace."""
    return " " + INSTEAD_OF_OBJECTS if notes_of(tracer.owner).gave_objects else ""


def _refuse_numba(tracer: Tracer) -> NoReturn:
    """Raise the error for a function that Numba compiled: it asks its arguments for their types.

    Others (`hasattr`, inspection) find no such attribute.
    """
    requester = next(f for f, _ in walk_stack(sys._getframe(1)) if not source.is_own(f.f_code))
    if not str(requester.f_globals.get("__name__")).startswith("numba."):
        raise AttributeError("_numba_type_")
    tracer.check_live()
    asker = Asker()
    raise errors.TracerArrayConversionError(
        message(
            tracer,
            f"{asker.compiled}, which Numba compiled, needs arrays, but it was called with",
            asker.instead_of_compiled(),
        )
    )


# A `__getattr__` would make every attribute cost three times as much: what a name that is not there
# means is told by `explain`, and protocols of others have names of their own.
Tracer._numba_type_ = property(_refuse_numba)  # type: ignore[attr-defined]


_READ_ONLY = "read-only"
_WANTS_LENGTH = "expected a sequence of integers or a single integer, got 'Traced<"


def explain(error: Exception, trace: Trace) -> None:
    """Say where in the user's code an error of ours or of NumPy's was met, if it does not.

    Raises:
        FuncgradError: The cause, if NumPy has hidden it behind an error of its own, as
            ``y[i] = x`` does.
        TracerArrayConversionError: If a function does not take the objects that stand for traced
            values.
    """
    notes = notes_of(trace)
    if notes.gave_objects and is_about_objects(error):
        refused = errors.TracerArrayConversionError(
            f"an array of objects that stand for traced values inside {trace.what} met a function "
            f"that does not take objects ({error})."
        )
        add_place(refused, source.location_of(error.__traceback__))
        refused.args = (f"{refused}\n{INSTEAD_OF_OBJECTS}",)
        raise refused from error
    if notes.gave_part and isinstance(error, ValueError) and _READ_ONLY in str(error):
        refused_write = errors.ArgumentError(
            f"a change of what NumPy made of an array inside {trace.what}, as np.asarray(x) does, "
            f"would not be seen in the array, as it would be in NumPy ({error})."
        )
        add_place(refused_write, source.location_of(error.__traceback__))
        refused_write.args = (
            f"{refused_write}\nAssign to the array itself, or to a copy: y = np.array(x).",
        )
        raise refused_write from error
    if notes.length and _WANTS_LENGTH in str(error) and not isinstance(error, errors.FuncgradError):
        raise errors.TracerIntegerConversionError(notes.length).with_traceback(
            error.__traceback__
        ) from None
    if isinstance(error, AttributeError) and isinstance(error.obj, Tracer):
        _explain_attribute(error, error.obj)
    hidden = error.__cause__
    if isinstance(hidden, errors.FuncgradError) and not isinstance(error, errors.FuncgradError):
        add_place(hidden, source.location_of(hidden.__traceback__))
        raise hidden from None
    if isinstance(error, errors.FuncgradError) or source.is_raised_by_us(error.__traceback__):
        add_place(error, source.location_of(error.__traceback__))


def _explain_attribute(error: AttributeError, tracer: Tracer) -> None:
    """Say of what an attribute was asked for that is not there."""
    if error.name is None or error.name.startswith("_"):
        return
    error.args = (
        f"a traced {tracer.aval} inside {tracer.owner.what} has no attribute {error.name!r}: it "
        "has those of an ndarray that do not change it or need its values.",
    )
    add_place(error, source.location_of(error.__traceback__))


def add_place(error: Exception, location: source.SourceLocation | None) -> None:
    """Add a line of the user's to the text of an error, unless it has one already."""
    text = str(error)
    if location is None or "at       " in text or error.args != (text,):
        return
    error.args = ("\n".join([text, *describe_location(location, "at")]),)


_LEAST_STACK = 20 << 10
"""Bytes of stack with which a function may still be traced: with fewer Python defines no class."""


def check_stack(what: str) -> None:
    """Refuse to trace where a thread has too little stack left: it would crash."""
    left = stacks.left()
    if left is not None and left < _LEAST_STACK:
        raise errors.StackError(
            f"tracing {what} needs {_LEAST_STACK >> 10} KiB of stack, and this thread has "
            f"{left >> 10} of {(stacks.thread_size() or 0) >> 10} KiB left. Call the function once "
            f"in a thread with more stack (threading.stack_size({stacks.SIZE}) before that is "
            "started); later calls need little."
        )
