"""Values that are lost: infinities, hidden NaNs, subnormal numbers, digits that cancel."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.program import Equation, Var
from funcgrad.diagnostics.record import Record
from funcgrad.errors import ArgumentError, MissingRuleError
from funcgrad.linting.bodies import form_of
from funcgrad.linting.rule import Findings, Said, rule
from funcgrad.linting.subject import Step, Subject, is_finite
from funcgrad.lowering import Call, PrefixScan, Reduction, Routine
from funcgrad.observers.nonfinite import describe
from funcgrad.transforms.linearize import linearize

DIGITS = 3
"""Fewer right digits than that are too few."""
CHOICES = re.compile(r"where|select|choose|piecewise|cond|switch|nan_to_num|maximum|minimum|clip")
"""Words of a line that chooses."""
DRAWS = 3
"""Runs with other errors."""
LONG = 1 << 12
"""Elements of a sum that may be long."""
EATEN = 1e-5
"""Error of a sum, of what is added up, that its length has made: a hundred roundings."""
TINIEST = 1e-300
GROWTH = 100.0
"""How many times larger than those of its operands errors of a result must be to be its own."""


@rule("overflow", "warning", watches="evaluations")
class Overflow:
    """An infinity or a NaN that an operation makes of finite numbers.

    Why:
        One infinity or NaN is enough for a loss, or a whole gradient, that is NaN.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def softplus(x):
        ...     return np.sum(np.log(1 + np.exp(x)))
        >>> [found.rule for found in fg.lint(softplus, np.array([1.0, 800.0]))]
        ['overflow']

    Not found:
        >>> def softplus(x):
        ...     return np.sum(np.logaddexp(0, x))
        >>> [found.rule for found in fg.lint(softplus, np.array([1.0, 800.0]))]
        []
    """

    def __init__(self, subject: Subject) -> None:
        pass

    def __call__(self, step: Step) -> Said | None:
        if not all(map(is_finite, step.operands)) or all(map(is_finite, step.results)):
            return None
        given = ", ".join(describe(x) for x in step.operands)
        return (
            step.location,
            f"{step.primitive.name} makes {_kind(step.results)} of finite numbers, {given}",
            "a form that stays in range (logsumexp, log1p, expm1, logaddexp, softmax), or keep the "
            "operand from that range with np.where before the operation",
        )


@rule("hidden-nan", "warning", watches="evaluations")
class Hidden:
    """A NaN or an infinity that a choice between two arrays hides: the arm is bad all the same.

    Why:
        The value looks right; in other libraries, and in rules written by hand, the
        derivative is 0 times infinity, which is NaN.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def entropy(p):
        ...     return -np.sum(np.where(p > 0, p * np.log(p), 0.0))
        >>> x = np.array([-0.1, 1.0])
        >>> [found.rule for found in fg.lint(entropy, x, only=["hidden-nan"])]
        ['hidden-nan']

    Not found:
        >>> def entropy(p):
        ...     return -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0))
        >>> [found.rule for found in fg.lint(entropy, x, only=["hidden-nan"])]
        []
    """

    def __init__(self, subject: Subject) -> None:
        pass

    def __call__(self, step: Step) -> Said | None:
        kinds = [aval_of(x).dtype.kind for x in step.operands]
        if "b" not in kinds or not step.primitive.is_elementwise:
            return None
        if all(map(is_finite, step.operands)) or not all(map(is_finite, step.results)):
            return None
        if step.location is None or not CHOICES.search(step.location.text()):
            return None  # functions of libraries know what they hide
        arm = next(x for x in step.operands if not is_finite(x))
        return (
            step.location,
            f"{step.primitive.name} hides {_kind([arm])} in an array that it does not choose from "
            "there; other libraries, and rules written by hand, differentiate it to NaN",
            "the choice before the operation as well: np.log(np.where(x > 0, x, 1.0))",
        )


@rule("subnormal", "note", watches="evaluations")
class Subnormal:
    """Results in single precision too small for all their digits, which compiled code flushes.

    Why:
        Compiled code takes such numbers for 0, so a compiled function and the same function
        without ``jit`` differ.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def energy(x):
        ...     return np.sum(x * x)
        >>> [found.rule for found in fg.lint(energy, np.array([1.0, 1e-20], np.float32))]
        ['subnormal']

    Not found:
        >>> [found.rule for found in fg.lint(energy, np.array([1.0, 1e-20]))]
        []
    """

    def __init__(self, subject: Subject) -> None:
        pass

    def __call__(self, step: Step) -> Said | None:
        for x in step.results:
            if aval_of(x).dtype == np.float32 and not any(map(_has_subnormals, step.operands)):
                n = _has_subnormals(x)
                if n:
                    return (
                        step.location,
                        f"{step.primitive.name} gives {n} subnormal numbers, which compiled code "
                        "takes for 0",
                        "logarithms of these numbers, a scale, or float64",
                    )
        return None


@rule("lost-digits", "warning")
def lost_digits(subject: Subject) -> Findings:
    """A result of which fewer than three digits are right, because near numbers are subtracted.

    Rounding errors are drawn at random for every operation, and carried on by its derivative (Monte
    Carlo arithmetic, Parker 1997, to first order). An operation is blamed where errors, compared
    with the numbers, grow a hundred times over, if a result of the function has them. Arguments,
    and integers that are made of integers alone, count as exact; but algorithms for matrices are
    exact for operands that are rounded only.

    Why:
        The result is a plausible number made of rounding errors, and so is its derivative.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def curvature(x):
        ...     return np.sum((1 - np.cos(x)) / x**2)
        >>> [found.rule for found in fg.lint(curvature, np.array([1e-8, 2e-8]))]
        ['lost-digits']

    Not found:
        >>> def curvature(x):
        ...     return np.sum(2 * np.sin(x / 2) ** 2 / x**2)
        >>> [found.rule for found in fg.lint(curvature, np.array([1e-8, 2e-8]))]
        []
    """
    if not all(map(is_finite, map(subject.record.value, subject.record.outputs))):
        return
    exact = _exact(subject.record)
    draws = map(np.random.default_rng, range(DRAWS))
    drawn = [_drawn(subject.record, exact, generator) for generator in draws]
    worst = max(end for end, _ in drawn)
    if worst < 10.0**-DIGITS:
        return
    blamed: dict[Equation, float] = {}
    for equation, error in (row for _, rows in drawn for row in rows):
        blamed[equation] = max(error, blamed.get(equation, 0.0))
    for equation, error in blamed.items():
        if error >= 0.01 * worst:
            yield (
                equation.source,
                f"about {max(0, int(-np.log10(error)))} digits of the result of "
                f"{equation.primitive.name} are right here, of operands that have more",
                "a form that does not subtract near numbers (log1p, expm1, hypot, a mean taken off "
                "first), or float64",
            )


@rule("float32-sum", "warning", watches="evaluations")
class LongSum:
    """A sum in single precision whose length has eaten digits: the same in double differs.

    Why:
        Each addition rounds the whole sum, so that a mean over many samples drifts, and
        small terms are not added at all.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def last(x):
        ...     return np.cumsum(x)[-1]
        >>> tenths = np.full(1 << 20, 0.1, np.float32)
        >>> [found.rule for found in fg.lint(last, tenths)]
        ['float32-sum']

    Not found:
        >>> [found.rule for found in fg.lint(np.sum, tenths)]
        []
    """

    def __init__(self, subject: Subject) -> None:
        pass

    def __call__(self, step: Step) -> Said | None:
        avals = [aval_of(x) for x in step.operands]
        if len(avals) != 1 or avals[0].dtype != np.float32 or avals[0].size < LONG:
            return None
        form = form_of(Equation(step.primitive, [*map(Var, avals)], []))
        if not isinstance(form, Reduction | PrefixScan) or not all(map(is_finite, step.operands)):
            return None
        wide = np.asarray(step.operands[0], np.float64)
        exact, size = (np.asarray(step.primitive.impl(x)) for x in (wide, np.abs(wide)))
        error = np.max(np.abs(exact - step.results[0]) / np.maximum(np.abs(size), TINIEST))
        if error < EATEN:
            return None
        return (
            step.location,
            f"{step.primitive.name} of {avals[0]} is off by {error:.0e} of what it adds up: each "
            "addition rounds a large number",
            "dtype=np.float64 for the sum, the axis of the sum last in memory, or jit, which adds "
            "in blocks",
        )


def _drawn(
    record: Record, exact: dict[Var, Any], generator: np.random.Generator
) -> tuple[float, list[tuple[Equation, float]]]:
    """Relative errors of the results, and of operations at which they grow."""
    errors: dict[Any, Any] = {}
    grown = []
    for equation in record.equations:
        values = [record.value(atom) for atom in equation.inputs]
        carried = [errors.get(atom) for atom in equation.inputs]
        if isinstance(form_of(equation), Routine | Call):
            carried = [
                _sum(x, _backward(v, generator)) for x, v in zip(carried, values, strict=True)
            ]
        dots: Any = [None] * len(equation.outputs)
        if any(x is not None for x in carried) and linearize(equation.primitive) is None:
            with np.errstate(all="ignore"), suppress(MissingRuleError, ArgumentError):
                _, found = equation.primitive.jvp(values, carried)
                dots = found if equation.primitive.multiple_results else [found]
        before = max(map(_relative, values, carried), default=0.0)
        for var, dot in zip(equation.outputs, dots, strict=True):
            if var.aval.dtype.kind != "f":
                continue
            out = record.values[var]
            made = np.where(exact[var], 0, _rounded(out, generator))
            errors[var] = _sum(made.astype(var.aval.dtype), dot)
            after = _relative(out, errors[var])
            if after > GROWTH * max(before, float(np.finfo(var.aval.dtype).eps)):
                grown.append((equation, after))
    ends = (_relative(record.value(a), errors.get(a)) for a in record.outputs)
    return max(ends, default=0.0), grown


def _exact(record: Record) -> dict[Var, Any]:
    """Masks of the elements in which an operation rounds nothing.

    It only passes them on, or negates them, or they are integers that it makes of integers alone.
    """
    found: dict[Var, Any] = {}
    for equation in record.equations:
        values = map(record.value, equation.inputs)
        numbers = [np.abs(np.ravel(x)) for x in values if aval_of(x).dtype.kind in "biufc"]
        are_counts = all(map(_are_integers, numbers))
        for var in equation.outputs:
            if var.aval.dtype.kind == "f":
                out = np.abs(record.values[var])
                found[var] = np.isin(out, np.concatenate(numbers)) if numbers else False
                if are_counts:
                    found[var] |= (out == np.rint(out)) & (out < 1 / np.finfo(out.dtype).eps)
    return found


def _are_integers(x: Any) -> bool:
    return bool(np.all(x == np.rint(x)))


def _rounded(x: Any, generator: np.random.Generator) -> Any:
    """Errors of rounding, one for each element of a result."""
    dtype, drawn = aval_of(x).dtype, generator.uniform(-0.5, 0.5, np.shape(x))
    drawn += np.copysign(0.25, drawn)  # errors of one size would cancel in sums
    return drawn.astype(dtype) * np.finfo(dtype).eps * np.where(np.isfinite(x), x, 0)


def _backward(x: Any, generator: np.random.Generator) -> Any:
    """Errors of operands for which the result of a stable algorithm, of matrices, is exact."""
    return None if aval_of(x).dtype.kind != "f" else _rounded(x, generator)


def _sum(error: Any, more: Any) -> Any:
    return more if error is None else error if more is None else error + more


def _relative(x: Any, error: Any) -> float:
    """The size of errors, compared with that of the numbers."""
    if error is None or not np.size(x):
        return 0.0
    with np.errstate(all="ignore"):
        size = np.sqrt(np.mean(np.square(np.where(np.isfinite(x), x, 0), dtype=np.float64)))
        found = np.sqrt(np.mean(np.square(error, dtype=np.float64)))
    return 0.0 if not np.isfinite(found) or found == 0 else float(found / size) if size else 1.0


def _kind(values: Any) -> str:
    is_nan = any(aval_of(x).dtype.kind in "fc" and np.isnan(x).any() for x in values)
    return "NaN" if is_nan else "an infinity"


def _has_subnormals(x: Any) -> int:
    if aval_of(x).dtype.kind != "f":
        return 0
    return int(np.sum((np.abs(x) < np.finfo(aval_of(x).dtype).tiny) & (np.asarray(x) != 0)))
