"""Points at which a function has no derivative, or an infinite one: kinks and singularities.

No operation is known by name: kinks are looked for with its own derivative on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.errors import ArgumentError
from funcgrad.linting.rule import Said, rule
from funcgrad.linting.sides import direction, jumps, moved
from funcgrad.linting.subject import Step, Subject
from funcgrad.observers.nonfinite import describe


@rule("kink", "warning", watches="derivatives")
class Kink:
    """A point at which the derivative jumps: abs at 0, equal elements of max, equal eigenvalues."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __call__(self, step: Step) -> Said | None:
        if not all(map(_is_finite, step.operands)):
            return None
        directions = [direction(x, i) for i, x in enumerate(step.operands)]
        sides = []
        for times in (1, -1, 16, -16):
            at = [moved(x, d, times) for x, d in zip(step.operands, directions, strict=True)]
            found = _tangents(step.primitive, at, directions)
            if found is None:
                return None
            sides.append(found[1])
        n_jumps = sum(map(jumps, *sides))
        if not n_jumps or not self.subject.has_jump:
            return None
        which = "it is" if n_jumps == 1 else f"{n_jumps} elements are"
        given = ", ".join(describe(x) for x in step.operands)
        return (
            step.location,
            f"{step.primitive.name} has a kink at these data ({which} within rounding of it): the "
            f"derivative is one of several; operands {given}",
            "a smooth function (logaddexp for maximum, sqrt(x**2 + small) for abs), or data that "
            "are not there",
        )


@rule("kink-of-choice", "warning", watches="evaluations")
class Choice:
    """A comparison of equal numbers that chooses between arms with different derivatives."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __call__(self, step: Step) -> Said | None:
        if not _is_tie(step) or not self.subject.has_jump:
            return None
        given = ", ".join(describe(x) for x in step.operands)
        return (
            step.location,
            f"{step.primitive.name} compares equal numbers, {given}, and the derivative of the "
            "function jumps there",
            "a smooth choice (expit), or data that are not there",
        )


def _is_tie(step: Step) -> bool:
    """Whether a comparison has another value beside these numbers, as that of equal ones has."""
    avals = [aval_of(x) for x in (*step.operands, *step.results)]
    if [aval.dtype.kind for aval in avals] != ["f", "f", "b"] or not step.primitive.is_elementwise:
        return False
    a, b = map(np.asarray, step.operands)
    with using_trace(EVAL):
        beside = [step.primitive.bind(moved(a, np.ones_like(a), t), b) for t in (1, -1)]
    return any(bool(np.any(out != step.results[0])) for out in beside)


@rule("singular-derivative", "error", watches="derivatives")
class Singular:
    """A finite value whose derivative is infinite or NaN: sqrt at 0, the power 0.5 of 0.

    Where nothing moves the operand, as in ``sqrt(maximum(x, 0))`` of negative numbers, it is right.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __call__(self, step: Step) -> Said | None:
        if not all(map(_is_finite, step.operands)):
            return None
        found = _tangents(step.primitive, step.operands, [_ones(x) for x in step.operands])
        if found is None:
            return None
        outs, dots = found
        for out, dot in zip(outs, dots, strict=True):
            if dot is None or np.shape(dot) != np.shape(out):
                continue
            n_bad = int(np.sum(np.isfinite(out) & ~np.isfinite(dot)))
            if n_bad and self.subject.has_break:
                which = "" if np.size(out) == 1 else f" for {n_bad} of {np.size(out)} elements"
                given = ", ".join(describe(x) for x in step.operands)
                return (
                    step.location,
                    f"the derivative of {step.primitive.name} is not finite here{which}, though "
                    f"its value is; operands {given}",
                    "np.where(ok, x, 1.0) inside of the operation, so that it is never at that "
                    "point, or a form without it (x * x instead of its root)",
                )
        return None


def _is_finite(x: Any) -> bool:
    return aval_of(x).dtype.kind not in "fc" or bool(np.isfinite(x).all())


def _ones(x: Any) -> Any:
    return np.ones_like(x) if aval_of(x).dtype.kind in "fc" else None


def _tangents(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]] | None:
    """Results and tangents of one operation, if it has tangents."""
    if all(t is None for t in tangents) or primitive.is_composite:
        return None
    try:
        with using_trace(EVAL):
            out, dot = primitive.jvp([*primals], [*tangents])
    except (np.linalg.LinAlgError, ArgumentError):
        return None  # there is no value beside the data, or the user's rule goes backwards only
    return (out, dot) if primitive.multiple_results else ([out], [dot])
