"""Are the results right? Nothing is timed before they are.

The judge is NumPy in float64. Values are compared with `Problem.reference`. A gradient ``g`` is
compared along a random direction ``v`` with central finite differences of the reference ``f``,

    <g, v>  =  f'(x; v)  =  (8 (f(x + hv) - f(x - hv)) - (f(x + 2hv) - f(x - 2hv))) / 12h + O(h^4),

or, where ``f`` jumps and is analytic between the jumps, with a complex step, Im f(x + ihv) / h. A
wrong component of ``g`` passes that with probability zero. Component by component it is compared
with the gradients of the other libraries.

Arguments are rounded to the dtype of the run first, so that both sides compute with equal numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from tests.benchmarks.workload import Problem, converted, leaves, map_arrays

TOLERANCES = {"float32": 3e-5, "float64": 1e-10}
"""Largest error of a value, relative to the largest value of its array."""

SLOPE_TOLERANCES = {"float32": 1e-3, "float64": 1e-6}
"""Error of the slope along a random direction, relative to the norm of the gradient."""

AGREEMENT = {"float32": 2e-3, "float64": 1e-8}
"""Largest difference of two libraries, relative to the largest value of an array."""

STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
COMPLEX_STEP = 1e-30
DIRECTIONS = 2

GOOD_ENOUGH = 0.01
"""Part of the tolerance: finite differences that agree better are not refined."""


class Mismatch(Exception):
    """A result that is not what it should be."""


class Judge:
    """Compares results of one problem with NumPy's, which are computed once.

    Args:
        problem: What is computed.
        differentiate: Are results pairs of value and gradients?
        dtype: The dtype of the run.
    """

    def __init__(self, problem: Problem, differentiate: bool, dtype: str) -> None:
        self.problem, self.differentiate, self.dtype = problem, differentiate, dtype
        self.arguments = map_arrays(as_double, converted(problem.arguments, dtype))
        self._slopes: dict[int, tuple[float, float]] = {}

    def check(self, result: Any) -> None:
        """Judge a result, a tree of NumPy arrays.

        Raises:
            Mismatch: It differs by more than rounding explains.
        """
        problem = self.problem
        tolerance = problem.sampling_error or TOLERANCES[self.dtype] * problem.tolerance
        if problem.is_gradient:
            self._check_gradients(result if len(problem.argnums) > 1 else (result,))
        elif self.differentiate:
            value, gradients = result
            compare_values(value, self._value, tolerance)
            self._check_gradients(gradients)
        else:
            compare_values(result, self._value, tolerance, problem.agreeing)

    def check_agreement(self, one: Any, other: Any) -> None:
        """Compare the results of two libraries element by element.

        Raises:
            Mismatch: They differ by more than rounding explains.
        """
        if not self.problem.sampling_error:
            tolerance = AGREEMENT[self.dtype] * self.problem.tolerance
            compare_values(one, other, tolerance, self.problem.agreeing)

    @cached_property
    def _value(self) -> Any:
        return (self._loss if self.differentiate else self.problem.reference)(*self.arguments)

    def _loss(self, *arguments: Any) -> Any:
        """What gradients are those of: as `libraries.scalar_loss`, or the sum of all elements."""
        result = self.problem.reference(*arguments)
        if self.problem.is_gradient:
            return np.sum(result)
        return result if np.ndim(result) == 0 else np.mean(np.square(result))

    def _check_gradients(self, gradients: tuple[Any, ...]) -> None:
        slope_tolerance = SLOPE_TOLERANCES[self.dtype] * self.problem.tolerance
        tolerance = self.problem.sampling_error or slope_tolerance
        for number in range(DIRECTIONS):
            directions = self._directions(number)
            pairs = zip(leaves(list(gradients)), leaves(list(directions.values())), strict=True)
            terms = [np.asarray(g, np.float64) * v for g, v in pairs]
            slope = sum(float(np.sum(term)) for term in terms)
            norm = float(np.sqrt(sum(np.sum(term**2) for term in terms))) + 1e-30
            if number not in self._slopes:
                enough = GOOD_ENOUGH * tolerance * norm
                self._slopes[number] = self._slope(directions, enough)
            expected, doubt = self._slopes[number]
            if not doubt <= tolerance * norm:
                raise Mismatch(f"finite differences are uncertain by {doubt / norm:.1e}")
            if not abs(slope - expected) <= tolerance * norm:
                error = f"{abs(slope - expected) / norm:.1e}"
                raise Mismatch(f"the gradient is wrong by {error} of its norm along a direction")

    def _directions(self, number: int) -> dict[int, Any]:
        """Random trees like the arguments that are differentiated in."""
        rng = np.random.default_rng(number)
        return {n: random_direction(self.arguments[n], rng) for n in self.problem.argnums}

    def _slope(self, directions: dict[int, Any], enough: float) -> tuple[float, float]:
        """The slope of the reference, and how uncertain it is."""

        def at(h: Any) -> Any:
            moved = [
                added(argument, directions[number], h) if number in directions else argument
                for number, argument in enumerate(self.arguments)
            ]
            return self._loss(*moved)

        if self.problem.complex_step:
            return float(at(1j * COMPLEX_STEP).imag) / COMPLEX_STEP, 0.0
        return finite_difference(lambda h: float(at(h)), enough)


def finite_difference(at: Callable[[float], float], enough: float) -> tuple[float, float]:
    """The slope of ``at`` at 0, and by how much the two best steps disagree about it."""
    best, before = (np.nan, np.inf), np.nan
    for h in STEPS:
        slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
        if abs(slope - before) < best[1]:
            best = slope, abs(slope - before)
        if best[1] < enough:
            break
        before = slope
    return best


def as_double(leaf: Any) -> Any:
    """Floating point as float64, everything else as it is."""
    is_float = isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"
    return leaf.astype(np.float64) if is_float else leaf


def compare_values(found: Any, expected: Any, tolerance: float, agreeing: float = 1.0) -> None:
    """Compare two trees leaf by leaf.

    Args:
        found: The arrays to be judged.
        expected: Those to judge them by.
        tolerance: Of an element, relative to the largest value of its array.
        agreeing: Which share of the elements must be as near as that.

    Raises:
        Mismatch: Another structure, shape or value.
    """
    ours, theirs = leaves(found), leaves(expected)
    if len(ours) != len(theirs):
        raise Mismatch(f"{len(ours)} arrays instead of {len(theirs)}")
    for number, pair in enumerate(zip(ours, theirs, strict=True)):
        one, other = (np.asarray(array, np.float64) for array in pair)
        if one.shape != other.shape:
            raise Mismatch(f"array {number} has shape {one.shape} instead of {other.shape}")
        error = np.abs(one - other) / np.max(np.abs(other), initial=1e-30)
        if np.sum(error <= tolerance) < agreeing * error.size:  # NaN counts as wrong
            raise Mismatch(f"array {number} is wrong by {np.max(error):.1e} of its largest value")


def random_direction(tree: Any, rng: np.random.Generator) -> Any:
    """Normal numbers of the magnitude of each array."""

    def draw(leaf: Any) -> Any:
        leaf = np.asarray(leaf)
        scale = np.sqrt(np.mean(leaf * leaf)) if np.any(leaf) else 1.0
        return scale * rng.normal(size=leaf.shape)

    return map_arrays(draw, tree)


def added(tree: Any, direction: Any, h: Any) -> Any:
    """``tree + h * direction``."""
    if isinstance(tree, dict):
        return {key: added(tree[key], direction[key], h) for key in tree}
    if isinstance(tree, (list, tuple)):
        return type(tree)(added(*pair, h) for pair in zip(tree, direction, strict=True))
    return tree + h * direction
