"""Are the results right? Nothing is timed before they are.

The judge is NumPy in float64. Values are compared with `Problem.reference`. A gradient ``g`` is
compared along a random direction ``v`` with central finite differences of the reference ``f``,

    <g, v>  =  f'(x; v)  =  (8 (f(x + hv) - f(x - hv)) - (f(x + 2hv) - f(x - 2hv))) / 12h + O(h^4),

which a wrong component of ``g`` passes with probability zero; and component by component with the
gradients of the other libraries.

Arguments are rounded to the dtype of the run first, so that both sides compute with equal numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import Problem, converted, leaves, map_arrays

TOLERANCES = {"float32": 3e-5, "float64": 1e-10}
"""Largest error of a value, relative to the largest value of its array."""

SLOPE_TOLERANCES = {"float32": 1e-3, "float64": 1e-6}
"""Error of the slope along a random direction, relative to the norm of the gradient."""

AGREEMENT = {"float32": 2e-3, "float64": 1e-8}
"""Largest difference of two libraries, relative to the largest value of an array."""

STEPS = (1e-2, 1e-3, 1e-4, 1e-5)
DIRECTIONS = 2


class Mismatch(Exception):
    """A result that is not what it should be."""


def check_result(problem: Problem, differentiate: bool, dtype: str, result: Any) -> None:
    """Compare a result with NumPy's in float64.

    Args:
        problem: What was computed.
        differentiate: Is it a pair of value and gradients?
        dtype: The dtype of the run.
        result: A tree of NumPy arrays.

    Raises:
        Mismatch: It differs by more than rounding explains.
    """
    arguments = map_arrays(as_double, converted(problem.arguments, dtype))
    tolerance = problem.sampling_error or TOLERANCES[dtype] * problem.tolerance
    if problem.is_gradient:
        gradients = result if len(problem.argnums) > 1 else (result,)
        check_gradients(problem, dtype, arguments, gradients, total(problem.reference))
    elif differentiate:
        value, gradients = result
        loss = scalar_loss(problem.reference)
        compare_values(value, loss(*arguments), tolerance)
        check_gradients(problem, dtype, arguments, gradients, loss)
    else:
        expected = problem.reference(*arguments)
        compare_values(result, expected, tolerance, problem.agreeing)


def check_agreement(problem: Problem, dtype: str, one: Any, other: Any) -> None:
    """Compare the results of two libraries element by element.

    Raises:
        Mismatch: They differ by more than rounding explains.
    """
    if not problem.sampling_error:
        compare_values(one, other, AGREEMENT[dtype] * problem.tolerance, problem.agreeing)


def as_double(leaf: Any) -> Any:
    """Floating point as float64, everything else as it is."""
    is_float = isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"
    return leaf.astype(np.float64) if is_float else leaf


def scalar_loss(reference: Callable[..., Any]) -> Callable[..., Any]:
    """What a gradient is taken of, as `libraries.scalar_loss` says it."""

    def loss(*arguments: Any) -> Any:
        result = reference(*arguments)
        return result if np.ndim(result) == 0 else np.mean(np.square(result))

    return loss


def total(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of all elements."""
    return lambda *arguments: np.sum(reference(*arguments))


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


def check_gradients(
    problem: Problem,
    dtype: str,
    arguments: tuple[Any, ...],
    gradients: tuple[Any, ...],
    function: Callable[..., Any],
) -> None:
    """Compare slopes along random directions with finite differences.

    Raises:
        Mismatch: They differ, or finite differences do not converge.
    """
    tolerance = problem.sampling_error or SLOPE_TOLERANCES[dtype] * problem.tolerance
    rng = np.random.default_rng(1)
    for _ in range(DIRECTIONS):
        direction = {n: random_direction(arguments[n], rng) for n in problem.argnums}
        terms = [
            np.asarray(g, np.float64) * v
            for number, gradient in zip(problem.argnums, gradients, strict=True)
            for g, v in zip(leaves(gradient), leaves(direction[number]), strict=True)
        ]
        slope = sum(float(np.sum(term)) for term in terms)
        norm = float(np.sqrt(sum(np.sum(term**2) for term in terms))) + 1e-30
        expected, doubt = finite_difference(function, arguments, direction)
        if not doubt <= tolerance * norm:
            raise Mismatch(f"finite differences are uncertain by {doubt / norm:.1e}")
        if not abs(slope - expected) <= tolerance * norm:
            error = abs(slope - expected) / norm
            raise Mismatch(f"the gradient is wrong by {error:.1e} of its norm along a direction")


def random_direction(tree: Any, rng: np.random.Generator) -> Any:
    """Normal numbers of the magnitude of each array."""

    def draw(leaf: Any) -> Any:
        leaf = np.asarray(leaf)
        scale = np.sqrt(np.mean(leaf * leaf)) if np.any(leaf) else 1.0
        return scale * rng.normal(size=leaf.shape)

    return map_arrays(draw, tree)


def finite_difference(
    function: Callable[..., Any], arguments: tuple[Any, ...], direction: dict[int, Any]
) -> tuple[float, float]:
    """The slope along a direction, and by how much the two best steps disagree about it."""

    def at(h: float) -> float:
        moved = [
            added(argument, direction[number], h) if number in direction else argument
            for number, argument in enumerate(arguments)
        ]
        return float(function(*moved))

    best, before = (np.nan, np.inf), np.nan
    for h in STEPS:
        slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
        if abs(slope - before) < best[1]:
            best = slope, abs(slope - before)
        before = slope
    return best


def added(tree: Any, direction: Any, h: float) -> Any:
    """``tree + h * direction``."""
    if isinstance(tree, dict):
        return {key: added(tree[key], direction[key], h) for key in tree}
    if isinstance(tree, (list, tuple)):
        return type(tree)(added(*pair, h) for pair in zip(tree, direction, strict=True))
    return tree + h * direction
