"""Numerical differentiation formulas of orders 1 to 5, for stiff equations: SciPy's ``BDF``.

A state is a row of backward differences ``D[j]`` of the last values, on the grid of the last step.
Where the length changes, the polynomial through them is evaluated on another grid; where it does
not, the factors of ``I - h / alpha J`` serve for several steps (L. F. Shampine and M. W. Reichelt,
The MATLAB ODE Suite, 1997). With ``d`` the next difference beyond the order ``k``, the values of a
step solve::

    y = D[0] + ... + D[k] + d
    alpha[k] d = h f(t + h, y) - (gamma[1] D[1] + ... + gamma[k] D[k])

and its differences are sums of ``D`` and ``d``. All this is linear but for ``f``: the derivative of
a step is that of the equation for ``y``, solved with the Jacobian there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.scipy.integrate import stepping
from funcgrad.scipy.integrate.newton import iterate, newton_tolerance

ORDER = 5
ROWS = ORDER + 1
LIMIT = 4

_PLACES = np.arange(ROWS)
_KAPPA = np.array([0, -0.1850, -1 / 9, -0.0823, -0.0415, 0])
_GAMMA = np.concatenate([[0], np.cumsum(1 / np.arange(1, ROWS))])
_ALPHA = (1 - _KAPPA) * _GAMMA
# One more at each end, for the orders below the first and above the last.
_ERROR = _KAPPA * _GAMMA + 1 / np.arange(1, ROWS + 1)

# Tables by the order: the differences that there are, ...
_INSIDE = (_PLACES[:, None] >= _PLACES).astype(np.float64)
# ... what the equation takes from them, ...
_FROM = _INSIDE * _GAMMA / np.where(_ALPHA == 0, 1, _ALPHA)[:, None]
_BOTH = np.stack([_INSIDE, _FROM], 1)
# ... which elements of a change of grid are not those of the identity, ...
_CHANGED = (_INSIDE[:, :, None] * _INSIDE[:, None, :]).astype(bool)
# ... and how the next differences come from the last ones and from the new one.
_KEPT = np.array([
    [
        [1.0 if i <= j <= k else -1.0 if i == k + 2 and j == k + 1 else 0.0 for j in _PLACES]
        for i in _PLACES
    ]
    for k in _PLACES
])  # fmt: skip
_ADDED = (_PLACES[:, None] + 2 >= _PLACES).astype(np.float64)


def _grid(factor: Any) -> Any:
    """From differences on a grid to values on one that is ``factor`` times as wide."""
    rows = [fnp.ones(ROWS, factor.dtype)]
    for i in range(1, ROWS):
        rows.append(rows[-1] * (((i - 1) - factor * _PLACES.astype(np.dtype(factor.dtype))) / i))
    return fnp.stack(rows)


_BACK = np.cumprod(
    np.concatenate(
        [np.ones((1, ROWS)), (_PLACES[1:, None] - 1 - _PLACES) / _PLACES[1:, None]], axis=0
    ),
    axis=0,
)


class Differences(stepping.Method):
    """Steps by backward differences."""

    exponent = -0.5
    rows = ROWS

    def first(self, system: stepping.System, t: Any, y: Any, h: Any) -> Any:
        rest = fnp.zeros((ROWS - 2, *y.shape), y.dtype)
        return fnp.concatenate([fnp.stack([y, h * system.slope(t, y)]), rest])

    def no_notes(self) -> tuple[Any, ...]:
        """The order of the step, the grid of its state, and the order after it."""
        return np.int64(0), np.float64(1.0), np.int64(0)

    def remember(self, system: stepping.System, t: Any, y: Any, k: Any, h: Any) -> Any:
        return {
            "order": np.int64(1),
            "grid": h,
            "repeated": np.int64(0),
            "jacobian": system.matrices.no_jacobian(y.dtype),
            "factors": system.matrices.no_factors(y.dtype),
            "needs_jacobian": np.bool_(True),
            "needs_factors": np.bool_(True),
            "is_current": np.bool_(False),
        }

    def attempt(
        self, system: stepping.System, begin: stepping.Begin, controls: stepping.Controls
    ) -> stepping.Attempt:
        t, h, state, memory, is_clipped, failed = begin
        order = memory["order"]
        known = lax.cond(
            h == memory["grid"], lambda: state, lambda: _rescaled(state, order, h / memory["grid"])
        )
        predicted, pull = _sum(_BOTH, order, known)
        c = h / stepping.row_of(_as(_ALPHA, h), order)
        end = t + h
        evaluates = memory["needs_jacobian"]

        def evaluate() -> Any:
            place = fnp.where(failed, end, t), fnp.where(failed, predicted, state[0])
            return system.jacobian(*place)

        jacobian = lax.cond(evaluates, evaluate, lambda: memory["jacobian"])
        factorizes = memory["needs_factors"] | is_clipped
        factors = lax.cond(
            factorizes,
            lambda: system.matrices.factors(1.0, -c, jacobian),
            lambda: memory["factors"],
        )
        scale = controls.scale(predicted)

        def correction(d: Any) -> Any:
            slope = system.slope(end, predicted + d)
            step = system.matrices.solve(factors, c * slope - pull - d)
            return step, stepping.rms(step / scale), fnp.all(fnp.isfinite(slope))

        tolerance = newton_tolerance(controls, float(np.finfo(h.dtype).eps))
        found = iterate(correction, fnp.zeros_like(predicted), LIMIT, tolerance)
        d = found.x
        allowed = controls.scale(predicted + d)
        error = stepping.row_of(_as(_ERROR, h), order) * stepping.rms(d / allowed)
        is_good = found.has_converged & (error <= 1)
        safety = stepping.SAFETY * (2 * LIMIT + 1) / (2 * LIMIT + found.count)
        repeated = fnp.where(h == memory["grid"], memory["repeated"], 0) + 1
        chooses = is_good & (repeated > order)
        better, factor = _choice(order, error, d, known, allowed)
        chosen = fnp.where(chooses, better, order)
        shorter = fnp.where(
            found.has_converged,
            fnp.maximum(stepping.LEAST, safety * _power(error, order)),
            fnp.where(memory["is_current"], 0.5, 1.0),
        )
        longer = fnp.where(chooses, fnp.minimum(stepping.MOST, safety * factor), 1.0)
        refreshes = ~found.has_converged & ~memory["is_current"]
        new = {
            "order": chosen,
            "grid": fnp.where(is_good, h, memory["grid"]),
            "repeated": fnp.where(chooses, 0, fnp.where(is_good, repeated, memory["repeated"])),
            "jacobian": jacobian,
            "factors": factors,
            "needs_jacobian": refreshes,
            "needs_factors": ~found.has_converged | chooses,
            "is_current": (memory["is_current"] & ~is_good) | refreshes | (not system.varies),
        }
        return stepping.Attempt(
            is_good,
            _next(known, order, d),
            fnp.astype(h * fnp.where(is_good, longer, shorter), h.dtype),
            (order, fnp.astype(memory["grid"], np.float64), chosen),
            new,
            fnp.stack(
                [found.count, fnp.astype(evaluates, np.int64), fnp.astype(factorizes, np.int64)]
            ),
        )

    def following(self, system: stepping.System, piece: stepping.Piece) -> Callable[..., Any]:
        order, grid, _ = piece.notes
        y = piece.end[0]
        alpha = stepping.row_of(_as(_ALPHA, piece.h), order)
        jacobian = system.exact(piece.t + piece.h, y)
        solve = system.matrices.solver(_as(np.ones((1, 1)), alpha), -piece.h / alpha, [jacobian])

        def follow(system: stepping.System, t: Any, h: Any, state: Any) -> Any:
            known = _rescaled(state, order, h / fnp.astype(grid, h.dtype))
            predicted, pull = _sum(_BOTH, order, known)
            d = y - predicted
            wrong = d - h / alpha * system.slope(t + h, y) + pull
            return _next(known, order, d - solve(wrong))

        return follow

    def between(self, system: stepping.System, piece: stepping.Piece, x: Any) -> Any:
        order = piece.notes[2]
        total = piece.end[0]
        weight = fnp.ones_like(x)
        for j in range(1, ROWS):
            weight = weight * (x + (j - 2)) / j
            total = total + fnp.where(j <= order, weight, 0.0 * weight) * piece.end[j]
        return total


def _as(table: np.ndarray, like: Any) -> np.ndarray:
    """Constants in the precision of a value."""
    return table.astype(np.finfo(like.dtype).dtype)


def _sum(table: np.ndarray, order: Any, known: Any) -> Any:
    """Combinations of differences that depend on the order."""
    return stepping.row_of(_as(table, known), order) @ known


def _rescaled(state: Any, order: Any, factor: Any) -> Any:
    """Differences on a grid that is ``factor`` times as wide."""
    there = _grid(factor) @ _as(_BACK, factor)
    matrix = fnp.where(
        stepping.row_of(_CHANGED, order), there, np.eye(ROWS, dtype=np.dtype(there.dtype))
    )
    return fnp.astype(matrix, state.dtype).T @ state


def _next(known: Any, order: Any, d: Any) -> Any:
    """The differences at the end of a step."""
    added = stepping.row_of(_as(_ADDED, known), order)
    return stepping.row_of(_as(_KEPT, known), order) @ known + added[:, None] * d


def _power(error: Any, order: Any) -> Any:
    """By how much a step of an order may be longer."""
    return fnp.maximum(error, 1e-30) ** (-1 / fnp.astype(order + 1, error.dtype))


def _choice(order: Any, error: Any, d: Any, known: Any, allowed: Any) -> tuple[Any, Any]:
    """The order that allows the longest steps: this one, or one beside it; and how much longer."""
    weights = _as(_ERROR, known)
    below = stepping.rms((stepping.row_of(known, order) + d) / allowed) * stepping.row_of(
        weights, fnp.maximum(order - 1, 0)
    )
    above = stepping.rms((d - stepping.row_of(known, fnp.minimum(order + 1, ORDER))) / allowed)
    above = above * stepping.row_of(weights, fnp.minimum(order + 1, ORDER))
    zero = fnp.zeros_like(error)
    factors = fnp.stack([
        fnp.where(order > 1, _power(below, fnp.maximum(order - 1, 1)), zero),
        _power(error, order),
        fnp.where(order < ORDER, _power(above, order + 1), zero),
    ])  # fmt: skip
    return order - 1 + fnp.argmax(factors), fnp.max(factors)
