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

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from funcgrad.base.dialect import default_dtype
from funcgrad.core.avals import ShapedArray
from funcgrad.core.observers import (
    OBSERVED,
    WANTED,
    current_location,
    enclosed,
    report,
    report_failure,
)
from funcgrad.errors import ConcretizationTypeError, UnexpectedTracerError

T = TypeVar("T")


class Trace:
    """An interpreter of primitives.

    Args:
        parent: The trace that receives what this one does not treat itself.
        what: How messages call the transformation, such as ``grad(loss)``.
    """

    __slots__ = ("is_live", "is_staged", "notes", "parent", "what")

    def __init__(self, parent: Trace | None, what: str) -> None:
        self.parent = parent
        self.what = what
        self.is_live = True
        # The observers' memory of the trace.
        self.notes: Any = None
        # Whether operations are recorded in a program, whose equations carry the user's lines.
        self.is_staged: bool = parent is not None and parent.is_staged

    def process(self, primitive: Any, args: tuple[Any, ...]) -> Any:
        """Interpret one application of ``primitive``."""
        raise NotImplementedError


class EvalTrace(Trace):
    """The outermost interpreter: evaluates with NumPy."""

    __slots__ = ()

    def process(self, primitive: Any, args: tuple[Any, ...]) -> Any:
        for arg in args:
            if isinstance(arg, Tracer):
                raise_leaked(arg)
        if OBSERVED.computed:
            return _observed(primitive, args)
        return primitive.impl(*args)


def _observed(primitive: Any, args: tuple[Any, ...]) -> Any:
    """Evaluate, and report the results."""
    with enclosed(OBSERVED.evaluating, primitive.name):
        out = primitive.impl(*args)
    if not primitive.is_composite:
        results = out if primitive.multiple_results else [out]
        report(primitive.name, args, results, primitive)
    return out


EVAL = EvalTrace(None, "evaluation")
_current: ContextVar[Trace] = ContextVar("funcgrad_current_trace", default=EVAL)
current_trace: Callable[[], Trace] = _current.get
"""The trace that interprets primitives in this thread and context now."""

enter_trace = _current.set
"""Make a trace current; returns the token for `leave_trace`. The fast form of `using_trace`.

Ctrl-C may arrive between any two calls, and a trace that stayed current would receive all later
operations. So first ``token = enter_trace(current_trace())``, which changes nothing, then
``enter_trace(trace)`` inside the ``try`` whose ``finally`` calls ``leave_trace(token)``.
"""

leave_trace = _current.reset

function_trace: ContextVar[Trace | None] = ContextVar("funcgrad_function", default=None)
"""The trace whose user function is running; ``None`` while rules of primitives run. It differs from
the current trace while that trace's parent interprets an operation."""


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
    token, outer = enter_trace(current_trace()), function_trace.set(function_trace.get())
    try:
        enter_trace(trace)
        function_trace.set(trace)
        return function(*args)
    except Exception as error:
        report_failure(error, trace)
        raise
    finally:
        function_trace.reset(outer)
        leave_trace(token)
        trace.is_live = False


class Tracer:
    """A value that a transformation follows through a function.

    It behaves as an immutable NumPy array whose shape and dtype are known and whose contents are
    not. Subclasses add what their trace needs.
    """

    __slots__ = ("__weakref__", "owner")
    owner: Trace
    """The trace that follows it."""

    # NumPy's operators must defer to ours when an ndarray stands on the left.
    __array_priority__ = 1000.0

    @property
    def aval(self) -> ShapedArray:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        aval = self.aval
        return default_dtype(aval.dtype) if aval.weak_type else aval.dtype

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
        return self.aval.dtype.itemsize

    def concrete(self) -> Any:
        """The value, if the outermost trace evaluates; ``None`` if it stages."""
        return None

    def origin(self) -> list[str]:
        """Lines that say where the value came from, for messages."""
        return []

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object: this traced array has no axes")
        return self.aval.shape[0]

    def __hash__(self) -> NoReturn:
        self.refuse("hash")

    if TYPE_CHECKING:
        # The operators, methods and properties that `funcgrad.numpy` gives it.
        def __getattr__(self, name: str) -> Any: ...

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
        return bool(self.refuse("bool") if known is None else known)

    def __int__(self) -> int:
        known = self._known("int")
        return self.refuse("int()") if known is None else int(known)

    # A Python float has no derivative: results computed from it would silently be constants.
    def __float__(self) -> float:
        known = None if self.aval.dtype.kind in "fc" else self._known("float")
        return self.refuse("float()") if known is None else float(known)

    def __complex__(self) -> complex:
        known = None if self.aval.dtype.kind in "fc" else self._known("complex")
        return self.refuse("complex()") if known is None else complex(known)

    def __index__(self) -> int:
        known = self._known("index")
        if known is None or self.aval.dtype.kind not in "iu":
            self.refuse("index")
        return int(known)

    def _known(self, kind: str) -> Any:
        """The concrete value behind the tracer, if Python may branch on it."""
        self.check_live()
        return self.concrete()

    def check_live(self) -> None:
        """Raise if the transformation has returned."""
        if not self.owner.is_live:
            raise_leaked(self)

    def refuse(self, wanted: str) -> NoReturn:
        """Raise the error for a request for contents that are not known.

        Args: wanted: The request: a word of `WANTED`, or the call that needs a number.
        """
        self.check_live()
        for refused in OBSERVED.refused:
            refused(self, wanted)
        raise ConcretizationTypeError(
            f"{WANTED.get(wanted, wanted)} was asked for, but this is a traced {self.aval} inside "
            f"{self.owner.what}, whose contents are not known."
        )


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
