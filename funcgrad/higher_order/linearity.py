"""Linear operations: those that take arguments without values together with others.

A rule of the user's may call loops, branches and compiled functions that compute values and
tangents at once. Each operation that holds programs tells its results apart (`separate`):
what depends on tangents becomes a linear operation of its own. Every single operation on tangents
then has to be linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.facets import Facet
from funcgrad.core.primitive import Linear, Primitive
from funcgrad.core.program import Program, evaluate
from funcgrad.core.trace import EVAL, Trace, Tracer, run_under
from funcgrad.primitives.families import Elementwise, zeros_like_aval
from funcgrad.transforms.linearize import TapeEntry, record_linear
from funcgrad.transforms.programs import stage_closed

Mask = tuple[bool, ...]


def parted(args: Sequence[Any], is_linear: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """Arguments, with zeros for those that have no values; and these, ``None`` for the others."""
    pairs = list(zip(args, is_linear, strict=True))
    values = [zeros_like_aval(aval_of(x)) if linear else x for x, linear in pairs]
    return values, [x if linear else None for x, linear in pairs]


def together(values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Results: their values, or where they have none, what they are in terms of tangents."""
    return [x if t is None else t for x, t in zip(values, tangents, strict=True)]


def is_zero(value: Any) -> bool:
    """Whether a concrete value is zero everywhere."""
    return isinstance(value, np.ndarray | np.generic | int | float | complex) and not np.any(value)


linear_parts: Facet[Callable[..., list[tuple[Program, Mask]] | None] | None]
linear_parts = Facet("linear_parts", None)
"""``linear_parts(is_linear)``: programs, and the inputs they have to be linear in for the operation
to be.

``None`` where the operation holds no programs, or is not linear whatever these are.
"""


def nonlinear_entry(entries: Sequence[TapeEntry], may_shift: bool = False) -> TapeEntry | None:
    """The first recorded operation that is not linear in what has no value yet.

    Args:
        entries: Recorded operations.
        may_shift: Whether known values may be added.
    """
    return next(filter(None, (_nonlinear_part(e, may_shift) for e in entries)), None)


def _nonlinear_part(entry: TapeEntry, may_shift: bool) -> TapeEntry | None:
    """The operation itself, or one in the program that it runs."""
    rule = linear_parts(entry.primitive)
    parts = rule and rule(tuple(type(x) is Linear for x in entry.inputs))
    if parts is None:
        return None if _is_linear_entry(entry, may_shift) else entry
    return next(filter(None, (nonlinear_equation(*part, may_shift) for part in parts)), None)


def nonlinear_equation(
    program: Program, is_linear: Mask, may_shift: bool = False
) -> TapeEntry | None:
    """The first operation of a program that is not linear in inputs that have no values."""
    return program.memo(
        ("nonlinear", is_linear, may_shift), lambda: _find(program, is_linear, may_shift)
    )


def _find(program: Program, mask: Mask, may_shift: bool) -> TapeEntry | None:
    culprit: TapeEntry | None = None

    def run(*args: Any) -> list[Any]:
        nonlocal culprit
        _, linear = record_linear(
            lambda *xs: evaluate(program, xs),
            args,
            mask,
            program.in_avals,
            program.name,
            separates=True,
        )
        culprit = nonlinear_entry(linear.entries, may_shift)
        return []

    stage_closed(run, program.in_avals, program.name)
    return culprit


def _is_linear_entry(entry: TapeEntry, may_shift: bool) -> bool:
    if type(entry.primitive).transpose is Primitive.transpose:
        return False
    if len(entry.inputs) == 1:
        return True
    return (may_shift or not _is_shifted(entry)) and _transposes_without_values(entry)


def is_linear_in(primitive: Primitive, is_linear: Mask, avals: Sequence[ShapedArray]) -> bool:
    """Whether an operation without programs is linear in some of its arguments together."""
    inputs = [
        Linear(aval) if linear else np.broadcast_to(np.ones((), aval.dtype), aval.shape)
        for aval, linear in zip(avals, is_linear, strict=True)
    ]
    return _is_linear_entry(TapeEntry(primitive, inputs, 0), may_shift=False)


def _is_shifted(entry: TapeEntry) -> bool:
    """Whether an elementwise operation adds a known constant: it maps zero to something else."""
    values = [x for x in entry.inputs if type(x) is not Linear]
    if not values or not isinstance(entry.primitive, Elementwise):
        return False
    if any(isinstance(x, Tracer) or is_zero(x) for x in values):
        return False
    return any(_at_zero(entry, choice) for choice in (True, False))


def _at_zero(entry: TapeEntry, choice: bool) -> bool:
    """Whether an elementwise operation makes something of zeros, known bools being a choice."""
    avals = [None if type(x) is Linear else aval_of(x) for x in entry.inputs]
    known = [a is not None and (choice or a.dtype.kind != "b") for a in avals]
    pairs = zip(entry.inputs, known, strict=True)
    sample = [np.asarray(on, aval_of(x).dtype) for x, on in pairs]
    with np.errstate(all="ignore"):
        return bool(np.any(entry.primitive.impl(*sample)))


class _NeedsValue(Exception):
    """A transpose rule used the value of an argument that has none."""


class _ProbeTracer(Tracer):
    """A value of known type, for a dry run of a transpose rule."""

    __slots__ = ("_aval",)

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        self.owner = trace
        self._aval = aval

    @property
    def aval(self) -> ShapedArray:
        return self._aval


class _ProbeTrace(Trace):
    """Computes types only, and refuses arguments without values."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        if any(type(a) is Linear for a in args):
            raise _NeedsValue
        result = primitive.abstract_eval(*[aval_of(a) for a in args])
        if primitive.multiple_results:
            return [_ProbeTracer(self, a) for a in result]
        return _ProbeTracer(self, result)


def _transposes_without_values(entry: TapeEntry) -> bool:
    """Whether the transpose rule reaches every argument without a value, and asks for none."""
    trace = _ProbeTrace(EVAL, "a check of linearity")
    is_elementwise = isinstance(entry.primitive, Elementwise)
    inputs = [
        _ProbeTracer(trace, aval_of(x)) if is_elementwise and type(x) is not Linear else x
        for x in entry.inputs
    ]
    cts = [_ProbeTracer(trace, aval) for aval in entry.out_avals()]
    ct = cts if entry.primitive.multiple_results else cts[0]
    try:
        pulled = run_under(trace, entry.primitive.transpose, ct, *inputs)
    except _NeedsValue:
        return False
    reached = zip(entry.inputs, pulled, strict=True)
    return all(ct is not None for x, ct in reached if type(x) is Linear)
