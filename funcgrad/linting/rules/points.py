"""Points at which a function has no derivative, or an infinite one: kinks and singularities.

No operation is known by name: kinks are looked for with its own derivative on both sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.linting.rule import Said, rule
from funcgrad.linting.sides import jumps, leaps, may_jump
from funcgrad.linting.subject import Step, Subject, is_finite
from funcgrad.observers.nonfinite import describe

SIDES = (1, -1, 16, -16)
"""Distances on both sides of a point, near and far."""


@rule("kink", "warning", watches="derivatives")
class Kink:
    """A point at which the derivative jumps: abs at 0, equal elements of max, equal eigenvalues.

    The derivative of the whole function has to jump there, too, and neither a ``jump`` nor an
    ``overflow`` say more.

    Why:
        The gradient is one of several slopes, and a step against it need not make the
        function smaller.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def penalty(w):
        ...     return np.sum(np.abs(w))
        >>> [found.rule for found in fg.lint(penalty, np.array([1.0, 0.0]))]
        ['kink']

    Not found:
        >>> [found.rule for found in fg.lint(penalty, np.array([1.0, 0.001]))]
        []
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __call__(self, step: Step) -> Said | None:
        sides = []
        for times in SIDES:
            found = step.tangents(step.at(times), step.directions)
            if found is None:
                return None
            sides.append(found[1])
        n_jumps = sum(map(jumps, *sides))
        if not n_jumps or not self.subject.has_jump:
            return None
        if _is_pole(step) or _n_jumps_of_value(step):
            return None  # which is worse, and which other rules name
        which = "1 element is" if n_jumps == 1 else f"{n_jumps} elements are"
        return (
            step.location,
            f"{step.primitive.name} has a kink at these data ({which} within rounding of it): the "
            f"derivative is one of several; operands {_operands(step)}",
            "a smooth function (logaddexp for maximum, sqrt(x**2 + small) for abs), or data "
            "beside this point",
        )


@rule("jump", "warning", watches="derivatives")
class Jump:
    """A point at which the value jumps: rounding and remainders at their steps, angles at a cut.

    ``x % 1`` at an integer, an angle at the origin, a pseudo-inverse where the rank changes.

    Why:
        The derivative is that of one of the pieces, and says nothing of the step between
        them.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def phase(x):
        ...     return np.sum(x % 1.0)
        >>> [found.rule for found in fg.lint(phase, np.array([3.0, 0.5]))]
        ['jump']

    Not found:
        >>> [found.rule for found in fg.lint(phase, np.array([3.25, 0.5]))]
        []
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __call__(self, step: Step) -> Said | None:
        n_jumps = _n_jumps_of_value(step)
        if not n_jumps or not self.subject.has_break or _is_pole(step):
            return None
        which = "" if n_jumps == 1 else f" ({n_jumps} elements)"
        return (
            step.location,
            f"the value of {step.primitive.name} jumps at these data{which}, and the derivative "
            f"knows nothing of it; operands {_operands(step)}",
            "a function that is continuous there (sin and cos of an angle, the sum of squares of "
            "remainders), or data beside this point",
        )


def _is_pole(step: Step) -> bool:
    return not all(map(is_finite, step.results_at(0)))


def _n_jumps_of_value(step: Step) -> int:
    """How many elements of the result of an operation jump at the data."""
    here, near, back = map(step.results_at, (0, *SIDES[:2]))
    pairs = [pair for side in (here, back) for pair in zip(near, side, strict=False)]
    if not any(may_jump(*pair) for pair in pairs):
        return 0
    far, last = map(step.results_at, SIDES[2:])
    return sum(map(jumps, near, back, far, last)) or sum(map(leaps, here, near, back, far, last))


@rule("kink-of-choice", "warning", watches="derivatives")
class Choice:
    """A comparison of equal numbers, or an order of such, that chooses between derivatives.

    Why:
        The function goes one way at the tie and another beside it, and the gradient is that
        of the way that was taken.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def relu(x):
        ...     return np.sum(np.where(x > 0, x, 0.0))
        >>> [found.rule for found in fg.lint(relu, np.array([1.0, 0.0]))]
        ['kink-of-choice']

    Not found:
        >>> [found.rule for found in fg.lint(relu, np.array([1.0, -1.0]))]
        []
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __call__(self, step: Step) -> Said | None:
        here = step.results_at(0)
        if all(aval_of(x).dtype.kind in "fc" for x in here):
            return None
        sides = map(step.results_at, SIDES[:2])
        rows = [pair for side in sides for pair in zip(here, side, strict=False)]
        if not any(_is_other(*pair) for pair in rows) or not self.subject.differs:
            return None
        return (
            step.location,
            f"{step.primitive.name} chooses at a tie, {_operands(step)}: beside these numbers it "
            "chooses otherwise, and the function goes another way",
            "a smooth choice (expit), or data beside this point",
        )


def _is_other(here: Any, beside: Any) -> bool:
    return aval_of(here).dtype.kind not in "fc" and bool(np.any(np.not_equal(beside, here)))


@rule("singular-derivative", "error", watches="derivatives")
class Singular:
    """A finite value whose derivative is infinite or NaN: sqrt at 0, the power 0.5 of 0.

    Where the gradient of the function is finite and continuous all the same, it is right.

    Why:
        The gradient there is infinite, NaN, or finite and without the terms that have none,
        while the value gives no sign of it.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def length(x):
        ...     return np.sqrt(np.sum(x**2))
        >>> [found.rule for found in fg.lint(length, np.zeros(3))]
        ['singular-derivative']

    Not found:
        >>> [found.rule for found in fg.lint(length, np.ones(3))]
        []
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __call__(self, step: Step) -> Said | None:
        if not all(map(is_finite, step.operands)):
            return None
        found = step.tangents(step.operands, [_ones(x) for x in step.operands])
        if found is None:
            return None
        outs, dots = found
        for out, dot in zip(outs, dots, strict=True):
            if dot is None or np.shape(dot) != np.shape(out):
                continue
            n_bad = int(np.sum(np.isfinite(out) & ~np.isfinite(dot)))
            if n_bad and self.subject.has_break:
                which = "" if np.size(out) == 1 else f" for {n_bad} of {np.size(out)} elements"
                return (
                    step.location,
                    f"the derivative of {step.primitive.name} is not finite here{which}, though "
                    f"its value is; operands {_operands(step)}",
                    "np.where(ok, x, 1.0) inside of the operation, so that it is never at that "
                    "point, or a form without it (x * x instead of its root)",
                )
        return None


def _operands(step: Step) -> str:
    return ", ".join(describe(x) for x in step.operands)


def _ones(x: Any) -> Any:
    return np.ones_like(x) if aval_of(x).dtype.kind in "fc" else None
