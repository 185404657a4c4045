"""Traces and tracers: how a transformation gets to see the operations of a function.

A transformation is an interpreter, a `Trace`. While it runs a user's function it is the *current
trace* of this thread and context; every primitive that is applied is handed to it, together with
whatever arguments came, and it decides: arguments that are tracers of its own get its treatment,
everything else is passed on to the parent trace. So closing over values of outer transformations
needs no special care, and evaluation outside of any transformation costs one look-up.

This file knows no transformation and no primitive. The operators of `Tracer` are installed by
`funcgrad.numpy`, the one sanctioned inversion of the import order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from funcgrad.core.asking import INSTEAD_OF_LENGTH, INSTEAD_OF_OBJECTS, Asker, is_about_objects
from funcgrad.core.avals import ShapedArray
from funcgrad.core.finite import WATCH, inspect, watched_kinds
from funcgrad.core.source import SourceLocation, current_location, is_raised_by_us, location_of
from funcgrad.errors import (
    ConcretizationTypeError,
    FuncgradError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

T = TypeVar("T")


class Trace:
    """An interpreter of primitives.

    Args:
        parent: The trace that receives what this one does not treat itself.
        what: How messages call the transformation, such as ``grad(loss)``.
    """

    __slots__ = ("gave_objects", "hidden", "is_live", "is_staged", "parent", "what")

    def __init__(self, parent: Trace | None, what: str) -> None:
        self.parent = parent
        self.what = what
        self.is_live = True
        # Whether NumPy got an array of objects that stand for a value of this trace.
        self.gave_objects = False
        # What was last said of a length; NumPy says in its place that it wants a sequence.
        self.hidden = ""
        # Whether operations end up in a program, where they carry the user's lines.
        self.is_staged: bool = parent is not None and parent.is_staged

    def process(self, primitive: Any, args: tuple[Any, ...]) -> Any:
        """Interpret one application of ``primitive``."""
        raise NotImplementedError

    @property
    def main(self) -> Trace:
        """The trace itself, under the name by which programs for JAX compare traces."""
        return self


class EvalTrace(Trace):
    """The outermost interpreter: evaluates with NumPy."""

    __slots__ = ()

    def process(self, primitive: Any, args: tuple[Any, ...]) -> Any:
        for arg in args:
            if isinstance(arg, Tracer):
                raise_leaked(arg)
        if WATCH.users and watched_kinds():
            return _watched(primitive, args)
        return primitive.impl(*args)


def _watched(primitive: Any, args: tuple[Any, ...]) -> Any:
    """Evaluate, and look for the first nan or infinity."""
    with np.errstate(all="ignore"):
        out = primitive.impl(*args)
    if not primitive.is_composite:
        results = out if primitive.multiple_results else [out]
        inspect(primitive.name, args, results, primitive.is_elementwise)
    return out


EVAL = EvalTrace(None, "evaluation")
_current: ContextVar[Trace] = ContextVar("funcgrad_current_trace", default=EVAL)
current_trace: Callable[[], Trace] = _current.get
"""The trace that interprets primitives in this thread and context now."""

enter_trace = _current.set
"""Make a trace current; returns the token for `leave_trace`. The fast form of `using_trace`.

Ctrl-C may arrive as soon as this has returned, and a trace that stayed current would get all that
follows. So the token is that of a call that changes nothing, and the trace is entered within the
``try`` whose ``finally`` leaves it.
"""

leave_trace = _current.reset


@contextmanager
def using_trace(trace: Trace) -> Iterator[None]:
    """Make ``trace`` the current trace within a block."""
    token = enter_trace(current_trace())
    try:
        enter_trace(trace)
        yield
    finally:
        leave_trace(token)


def run_under(trace: Trace, function: Callable[..., T], *args: Any) -> T:
    """Call ``function`` with ``trace`` current; its tracers are dead afterwards."""
    token = enter_trace(current_trace())
    try:
        enter_trace(trace)
        return function(*args)
    except Exception as error:
        explain(error, trace)
        raise
    finally:
        leave_trace(token)
        trace.is_live = False


class Tracer:
    """A value that a transformation follows through a function.

    It behaves as an immutable NumPy array whose shape and dtype are known and whose contents are
    not. Subclasses add what their trace needs.
    """

    __slots__ = ("owner",)
    owner: Trace
    """The trace that follows it."""

    # NumPy's operators must defer to ours when an ndarray stands on the left.
    __array_priority__ = 1000.0
    # As those of pandas, which asks for a number above its own.
    __pandas_priority__ = 5000

    @property
    def aval(self) -> ShapedArray:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def nbytes(self) -> int:
        return self.aval.nbytes

    @property
    def itemsize(self) -> int:
        itemsize: int = self.aval.dtype.itemsize
        return itemsize

    def concrete(self) -> Any:
        """The value if this trace happens to know it (it evaluates eagerly), else `None`."""
        return None

    @property
    def _trace(self) -> Trace:
        """Its trace, under the name that programs for JAX know."""
        return self.owner

    @property
    def _value(self) -> Any:
        """The innermost value, under the name by which programs for autograd print it.

        Raises:
            ConcretizationTypeError: If there is no value yet, as under `jit` and `vmap`.
        """
        value = self.concrete()
        if value is None:
            raise ConcretizationTypeError(
                f"getval needs a value, but this is {self!r}, which has none yet. Print with "
                "funcgrad.debug.print, branch with numpy.where or funcgrad.lax.cond."
            )
        return value._value if isinstance(value, Tracer) else value

    def origin(self) -> list[str]:
        """Lines that say where the value came from, for messages."""
        return []

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object: this traced array has no axes")
        return self.aval.shape[0]

    def __hash__(self) -> NoReturn:
        self._check_live()
        raise ConcretizationTypeError(
            self._message(
                "keys of dicts, members of sets and static arguments must be hashable, but this is",
                "Use what is known while tracing as the key: a name, a shape, a Python number.",
            )
        )

    if TYPE_CHECKING:
        # The operators, methods and properties that `funcgrad.numpy` gives it.
        def __getattr__(self, name: str) -> Any: ...

    # A `__getattr__` would make every attribute cost three times as much: what a name that is not
    # there means is told by `explain`, and protocols of others have names of their own.

    @property
    def _numba_type_(self) -> NoReturn:
        # A function of Numba's asks its arguments for their types. Others (`hasattr`, inspection)
        # find nothing here.
        if not str(sys._getframe(1).f_globals.get("__name__")).startswith("numba."):
            raise AttributeError("_numba_type_")
        self._check_live()
        asker = Asker()
        raise TracerArrayConversionError(
            self._message(
                f"{asker.compiled}, which Numba compiled, needs arrays, but it was called with",
                asker.instead_of_compiled(),
            )
        )

    def __repr__(self) -> str:
        what = f"Traced<{self.aval}>"
        known = self.concrete()
        if known is not None:
            start = f"{what}(value="
            array = np.asarray(known)
            text = np.array2string(array, prefix=start) if array.ndim else str(array)
            what = f"{start}{text})"
        return f"{what} in {self.owner.what}"

    def __format__(self, spec: str) -> str:
        known = self.concrete() if spec and not self.aval.shape else None
        return repr(self) if known is None else format(np.asarray(known).item(), spec)

    def __bool__(self) -> bool:
        known = self._known("bool")
        if known is not None:
            return bool(known)
        asker = Asker()
        self._refuse_length(asker)
        raise TracerBoolConversionError(
            self._message(
                "`if`, `while`, `and`, `or`, `not` and `bool()` need a concrete bool, but this is",
                asker.instead_of_bool() + self._about_objects(),
            )
        )

    def __int__(self) -> int:
        known = self._known("int")
        return self._no_scalar("int()") if known is None else int(known)

    # A Python float has no derivative: what followed would be silently treated as a constant.
    def __float__(self) -> float:
        known = None if self._is_differentiable() else self._known("float")
        return self._no_scalar("float()") if known is None else float(known)

    def __complex__(self) -> complex:
        known = None if self._is_differentiable() else self._known("complex")
        return self._no_scalar("complex()") if known is None else complex(known)

    def _is_differentiable(self) -> bool:
        return self.aval.dtype.kind in "fc"

    def __index__(self) -> int:
        known = self._known("index")
        if known is not None and self.aval.dtype.kind in "iu":
            return int(known)
        asker = Asker()
        self._refuse_length(asker)
        self.owner.hidden = self._message(
            "an index, a shape or a length must be a concrete integer, but this is",
            asker.instead_of_integer(),
        )
        raise TracerIntegerConversionError(self.owner.hidden)

    def _refuse_length(self, asker: Asker) -> None:
        """Raise the error for a function that the value tells how long an array is."""
        if asker.maker:
            self.owner.hidden = self._message(
                f"{asker.maker}: the shape depends on", INSTEAD_OF_LENGTH
            )
            raise TracerIntegerConversionError(self.owner.hidden)

    def refuse_array(self) -> NoReturn:
        """Raise the error for a library that wants the values."""
        self._check_live()
        asker = Asker()
        raise TracerArrayConversionError(
            self._message(
                f"{asker.library} asked for the values of an array, but it is",
                asker.instead_of_array(self._is_differentiable()) + self._about_objects(),
            )
        )

    def _about_objects(self) -> str:
        """What to write if the value was asked for on behalf of an array of objects."""
        return " " + INSTEAD_OF_OBJECTS if self.owner.gave_objects else ""

    def _no_scalar(self, what: str) -> NoReturn:
        self._check_live()
        asker = Asker()
        self._refuse_length(asker)
        raise ConcretizationTypeError(
            self._message(f"{what} needs a concrete value, but this is", asker.instead_of_scalar())
        )

    def _known(self, kind: str) -> Any:
        """The concrete value behind the tracer, if Python may branch on it."""
        self._check_live()
        return self.concrete()

    def _check_live(self) -> None:
        if not self.owner.is_live:
            raise_leaked(self)

    def _message(self, what: str, now: str) -> str:
        location = current_location()
        lines = [f"{what} a traced {self.aval} inside {self.owner.what}."]
        if location is not None:
            lines.append(f"  at            {location}")
        lines += self.origin()
        return "\n".join([*lines, now])


def raise_leaked(tracer: Tracer) -> NoReturn:
    """Raise the error for a tracer that is used after, or outside of, its transformation."""
    location = current_location()
    where = f"\n  used at       {location}" if location is not None else ""
    origin = "".join("\n" + line for line in tracer.origin())
    state = "has returned" if not tracer.owner.is_live else "is not the one that runs now"
    raise UnexpectedTracerError(
        f"a traced {tracer.aval} has escaped: it was used, but {tracer.owner.what}, which made it, "
        f"{state}."
        f"{where}{origin}\n"
        "A traced function must not store values in globals, attributes or lists that outlive the "
        "call: return them instead (grad and value_and_grad pass extra results through has_aux)."
    )


_WANTS_LENGTH = "expected a sequence of integers or a single integer, got 'Traced<"


def explain(error: Exception, trace: Trace) -> None:
    """Say where in the user's code an error of ours or of NumPy's was met, if it does not.

    Raises:
        FuncgradError: The cause, if NumPy has hidden it behind an error of its own, as
            ``y[i] = x`` does.
        TracerArrayConversionError: If a function does not take the objects that stand for traced
            values.
    """
    if trace.gave_objects and is_about_objects(error):
        refused = TracerArrayConversionError(
            f"an array of objects that stand for traced values inside {trace.what} met a function "
            f"that does not take objects ({error})."
        )
        add_place(refused, location_of(error.__traceback__))
        refused.args = (f"{refused}\n{INSTEAD_OF_OBJECTS}",)
        raise refused from error
    if trace.hidden and _WANTS_LENGTH in str(error) and not isinstance(error, FuncgradError):
        raise TracerIntegerConversionError(trace.hidden).with_traceback(
            error.__traceback__
        ) from None
    if isinstance(error, AttributeError) and isinstance(error.obj, Tracer):
        _explain_attribute(error, error.obj)
    hidden = error.__cause__
    if isinstance(hidden, FuncgradError) and not isinstance(error, FuncgradError):
        add_place(hidden, location_of(hidden.__traceback__))
        raise hidden from None
    if isinstance(error, FuncgradError) or is_raised_by_us(error.__traceback__):
        add_place(error, location_of(error.__traceback__))


def _explain_attribute(error: AttributeError, tracer: Tracer) -> None:
    """Say of what an attribute was asked for that is not there."""
    if error.name is None or error.name.startswith("_"):
        return
    error.args = (
        f"a traced {tracer.aval} inside {tracer.owner.what} has no attribute {error.name!r}: it "
        "has those of an ndarray that do not change it or need its values.",
    )
    add_place(error, location_of(error.__traceback__))


def add_place(error: Exception, location: SourceLocation | None) -> None:
    """Add a line of the user's to the text of an error, unless it has one already."""
    text = str(error)
    if location is None or "at       " in text or error.args != (text,):
        return
    error.args = ("\n".join([text, *describe_location(location, "at")]),)


def describe_location(location: SourceLocation | None, label: str) -> list[str]:
    """A line for a message, or none if the location is unknown."""
    return [] if location is None else [f"  {label:<13} {location}"]
