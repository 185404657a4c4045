"""Attempts at a step: the protocol between the control of a solution and the methods.

A method has a *state*, whose derivatives are followed from step to step: the value itself, or rows
of which the first is the value. What else it remembers (Jacobians, factors, numbers of iterations)
only decides how long steps are and how their equations are solved: its *memory*, which has no
derivatives. What the derivative of a step must know of it are the *notes* of that step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.base.records import dataclass
from funcgrad.scipy.integrate.matrices import Dense

Slope = Callable[[Any, Any], Any]
"""``(t, y) -> dy/dt``."""

SAFETY, LEAST, MOST = 0.9, 0.2, 10.0
"""How much shorter than the error allows, and by how much at most, lengths change."""


def rms(x: Any) -> Any:
    """The root of the mean of the squares."""
    return fnp.sqrt(fnp.mean(fnp.square(abs(x))))


def row_of(x: Any, i: Any) -> Any:
    """One row of an array, by an index that may be traced."""
    return lax.dynamic_index_in_dim(x, i, 0, keepdims=False)


@dataclass(frozen=True)
class Controls:
    """Controls of the lengths of steps.

    Args:
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        max_step: The longest step.
        first_step: The first length; nan if it is to be chosen.
    """

    rtol: Any
    atol: Any
    max_step: Any
    first_step: Any

    def values(self) -> tuple[Any, Any, Any, Any]:
        """All of them, in order."""
        return self.rtol, self.atol, self.max_step, self.first_step

    def scale(self, *values: Any) -> Any:
        """The error that is allowed beside values."""
        largest = abs(values[0])
        for y in values[1:]:
            largest = fnp.maximum(largest, abs(y))
        return self.atol + largest * self.rtol


@dataclass(frozen=True, eq=False)
class System:
    """An equation at fixed values of what it depends on.

    Args:
        slope: The slope.
        matrices: How its Jacobians are represented.
        given: The Jacobian ``(t, y) -> df/dy`` that was given, for Newton's iterations.
        varies: Whether the Jacobian can be another one elsewhere.
    """

    slope: Slope
    matrices: Dense
    given: Callable[[Any, Any], Any] | None = None
    varies: bool = True

    def jacobian(self, t: Any, y: Any) -> Any:
        """The Jacobian for iterations: what was given, which need not be exact."""
        return self.exact(t, y) if self.given is None else self.given(t, y)

    def exact(self, t: Any, y: Any) -> Any:
        """The Jacobian that derivatives need."""
        return self.matrices.jacobian(lambda v: self.slope(t, v), y)


class Begin(NamedTuple):
    """The begin of an attempt at a step.

    Attributes:
        t: Begin.
        h: Length.
        state: The state at the begin.
        memory: What the method remembers.
        is_clipped: Whether the length is not the one that the method chose.
        failed: Whether the last attempt failed.
    """

    t: Any
    h: Any
    state: Any
    memory: Any
    is_clipped: Any
    failed: Any


@dataclass(frozen=True)
class Attempt:
    """Outcome of an attempt at a step.

    Args:
        is_good: Whether it is accepted.
        state: The state at the end, if it is.
        length: The next length to try.
        notes: What the derivative of the step must know.
        memory: What the method remembers.
        counts: Evaluations of the slope and of Jacobians, and factorizations.
    """

    is_good: Any
    state: Any
    length: Any
    notes: tuple[Any, ...]
    memory: Any
    counts: Any


@dataclass(frozen=True)
class Piece:
    """A step that was made, of which values are wanted.

    Args:
        t: Begin.
        h: Length.
        state: The state at the begin.
        end: The state at the end.
        notes: What its attempt noted.
    """

    t: Any
    h: Any
    state: Any
    end: Any
    notes: tuple[Any, ...]


class Method:
    """Method, as the control of steps calls it.

    Attributes:
        exponent: The first length is a power of the error.
        rows: How many rows a state has; 0 if it is the value.
    """

    exponent: float
    rows: int = 0

    def first(self, system: System, t: Any, y: Any, h: Any) -> Any:
        """The state at the begin of the interval, for a first length."""
        return y

    def value(self, state: Any) -> Any:
        """The value in a state, or in each of several."""
        return state[..., 0, :] if self.rows else state

    def no_notes(self) -> tuple[Any, ...]:
        """Notes of no step."""
        return ()

    def remember(self, system: System, t: Any, y: Any, k: Any, h: Any) -> Any:
        """The memory at the begin, where the slope is ``k``."""
        raise NotImplementedError

    def attempt(self, system: System, begin: Begin, controls: Controls) -> Attempt:
        """Try a step of an equation, up to tolerances."""
        raise NotImplementedError

    def following(self, system: System, piece: Piece) -> Callable[..., Any]:
        """The end of a step, ``(system, t, h, state) -> state``.

        It is asked at the begin of the step only, and for its derivatives.
        """
        raise NotImplementedError

    def between(self, system: System, piece: Piece, x: Any) -> Any:
        """The value at ``t + x h``."""
        raise NotImplementedError
