"""Search for the origin of the first NaN: in the function itself, or in its derivative."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.api.arguments import check_callable
from funcgrad.api.debugging import debug_infs, debug_nans
from funcgrad.api.differentiation import vjp
from funcgrad.api.floats import OfFloats
from funcgrad.base.records import dataclass
from funcgrad.diagnostics.record import record
from funcgrad.errors import NonFiniteError
from funcgrad.observers.infinities import Made, Origins, following
from funcgrad.observers.nonfinite import describe


@dataclass(frozen=True)
class FirstNonFinite:
    """The first operation that gave a NaN, or an infinity; prints as a short text.

    Attributes:
        kind: ``"nan"`` or ``"inf"``.
        phase: ``"forward"``, in the function, or ``"backward"``, in its derivative.
        operation: Its name; ``None`` if the NaN came in from outside.
        line: The user's line; ``None`` if it is unknown.
        operands: Values that it got.
        result: The value in which it is.
        steps: Steps of the loops around it, from the inside outwards.
        arguments: If it came in, the arguments that hold one; empty if it is a constant.
        infinity: For a NaN that was made of an infinity, where that infinity comes from.
        is_first: Whether there was none of its kind before; not so of the infinity behind a NaN.
    """

    kind: str
    phase: str
    operation: str | None
    line: str | None
    operands: tuple[Any, ...]
    result: Any
    steps: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    infinity: FirstNonFinite | None = None
    is_first: bool = True

    @property
    def index(self) -> tuple[int, ...] | None:
        """Index of the first one in the result; ``None`` if there is no result."""
        if self.result is None:
            return None
        test = np.isnan if self.kind == "nan" else np.isinf
        return tuple(int(i) for i in np.argwhere(test(self.result))[0])

    def _first_entry(self) -> list[str]:
        """The operands' values at the first entry, if the operation is elementwise in shape."""
        shape, index = np.shape(self.result), self.index
        if not index or any(np.shape(x) not in ((), shape) for x in self.operands):
            return []
        entries = [x if not np.shape(x) else np.asarray(x)[index] for x in self.operands]
        values = ", ".join(f"{entry:.6g}" for entry in entries)
        return [f"  first at      {list(index)}, from {values}"]

    def __str__(self) -> str:
        name = "NaN" if self.kind == "nan" else "infinity"
        if self.operation is None:
            holders = ", ".join(self.arguments) or "a constant of the function"
            return f"the {name} came in from outside, in {holders}"
        which = f"the first {name}" if self.is_first else "that infinity"
        lines = [f"{self.operation} gave {which}, in the {self.phase} pass"]
        if self.line is not None:
            lines.append(f"  at            {self.line}")
        lines += [f"  operand       {describe(x)}" for x in self.operands]
        lines.append(f"  result        {describe(self.result)}")
        lines += self._first_entry()
        lines += [f"  in step       {step}" for step in self.steps]
        if self.infinity is not None:
            lines.append(str(self.infinity))
        return "\n".join(lines)


def find_nan(
    f: Callable[..., Any], *args: Any, backward: bool = True, **kwargs: Any
) -> FirstNonFinite | None:
    """The first operation of a function, or of its gradient, that gives a NaN.

    The function is run operation by operation with NumPy, also in compiled functions and loops.
    If it gives no NaN, its gradient is taken with respect to all floating arguments. If nothing
    gives a NaN, but a result or the gradient is infinite, the first infinity is found instead. The
    function runs several times, with its callbacks.

    Args:
        f: Function of arrays or pytrees, such as a loss.
        *args: Its arguments.
        backward: Whether to look at the gradient.
        **kwargs: Keyword arguments.
    Returns: A `FirstNonFinite`, or ``None`` if all is finite.

    Example:
        >>> found = fg.diagnostics.find_nan(lambda x: np.sum(np.sqrt(x * 0) * x), np.ones(2))
        >>> found.kind, found.phase, found.infinity.operation
        ('nan', 'backward', 'the derivative of sqrt')
    """
    check_callable(f, "find_nan")
    search = _Search(f, args, kwargs)
    phases = [("forward", search.forward)] + [("backward", search.backward)] * backward
    for phase, run in phases:
        found = search.first("nan", phase, run)
        if found is not None:
            return replace(found, infinity=search.cause(phases, run, found))
    for phase, run in phases:
        if any(_holds(x, np.isinf) for x in run()):
            found = search.first("inf", phase, run)
            if found is not None:
                return found
    return None


Run = Callable[[], list[Any]]
Phases = list[tuple[str, Run]]


class _Search:
    """A function at a point, to be run under watch."""

    def __init__(self, f: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.origins = Origins()
        self.floats = OfFloats(f, args, kwargs, "f")
        self.leaves, self.paths = self.floats.leaves, self.floats.paths

    def forward(self) -> list[Any]:
        recorded = record(self.f, self.args, self.kwargs, "find_nan")
        return [recorded.value(atom) for atom in recorded.outputs]

    def backward(self) -> list[Any]:
        """The gradient of the sum of all floating results."""
        if not self.floats.active:
            return []
        values, pull = vjp(self.floats.floating, *self.floats.point)
        return list(pull([np.ones_like(x) for x in values]))

    def first(self, kind: str, phase: str, run: Run) -> FirstNonFinite | None:
        """First operation of a run that makes one, if any."""
        watch: Callable[[], AbstractContextManager[None]]
        watch = debug_nans if kind == "nan" else debug_infs
        self.origins = Origins(self.leaves)
        try:
            with watch(), following(self.origins):
                results = run()
        except NonFiniteError as error:
            if error.operation is None:
                return self.from_outside("nan", phase)
            return _found(error, phase)
        if kind == "nan" and any(_holds(x, np.isnan) for x in results):
            return self.from_outside("nan", phase)
        return None

    def from_outside(self, kind: str, phase: str) -> FirstNonFinite:
        rows = zip(self.paths, self.leaves, strict=True)
        test = np.isnan if kind == "nan" else np.isinf
        holders = tuple(path for path, leaf in rows if _holds(leaf, test))
        return FirstNonFinite(kind, phase, None, None, (), None, arguments=holders)

    def cause(self, phases: Phases, run: Run, nan: FirstNonFinite) -> FirstNonFinite | None:
        """Origin of the infinity that the NaN was made of, if it was made of one."""
        cause = self.origins.cause
        if cause is None:
            return None
        if cause.made is None:
            return replace(self.from_outside("inf", nan.phase), is_first=False)
        if nan.phase == "backward":  # the function is run once more there, with its derivative
            forward, run_forward = phases[0]
            self.first("nan", forward, run_forward)
            same = self.origins.like(cause.made)
            if same is not None:
                return self._made(forward, run_forward, same)
        return self._made(nan.phase, run, cause.made)

    def _made(self, phase: str, run: Run, made: Made) -> FirstNonFinite | None:
        """An operation of a run, with the steps of the loops around it."""
        try:
            with debug_nans(), following(Origins(stop_at=made)):
                run()
        except NonFiniteError as error:
            return replace(_found(error, phase), is_first=False)
        return None  # the function did something else this time


def _found(error: NonFiniteError, phase: str) -> FirstNonFinite:
    return FirstNonFinite(
        error.kind,
        phase,
        error.operation,
        error.line,
        error.operands,
        error.result,
        tuple(error.steps),
    )


def _holds(value: Any, test: Callable[[Any], Any]) -> bool:
    array = np.asarray(value)
    return array.dtype.kind in "fc" and bool(test(array).any())
