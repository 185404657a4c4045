"""Radau's method IIA of order 5, for stiff equations.

The stages ``Z`` (differences to the value at the begin) solve ``3 n`` equations
``Z = h A F(t + h c, y + Z)``. With one Jacobian for all of them these fall into a real system of
``n`` equations and a complex one, by the eigenvectors ``T`` of the inverse of ``A`` (Hairer and
Wanner, Solving Ordinary Differential Equations II, section IV.8). A state is the value and the
three stages of the step before, whose polynomial is the first guess of the next ones. Derivatives
are those of the ``3 n`` equations, with the Jacobian at each stage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.base import stacks
from funcgrad.base.records import dataclass
from funcgrad.scipy.integrate import stepping
from funcgrad.scipy.integrate.matrices import Dense
from funcgrad.scipy.integrate.newton import iterate, newton_tolerance

LIMIT = 6

_S6 = 6**0.5
_NODES = np.array([(4 - _S6) / 10, (4 + _S6) / 10, 1.0])
_MATRIX = np.array(
    [
        [(88 - 7 * _S6) / 360, (296 - 169 * _S6) / 1800, (-2 + 3 * _S6) / 225],
        [(296 + 169 * _S6) / 1800, (88 + 7 * _S6) / 360, (-2 - 3 * _S6) / 225],
        [(16 - _S6) / 36, (16 + _S6) / 36, 1 / 9],
    ]
)
_DIFFERENCE = np.array([-13 - 7 * _S6, -13 + 7 * _S6, -1]) / 3
_POLYNOMIAL = np.array(
    [
        [13 / 3 + 7 * _S6 / 3, -23 / 3 - 22 * _S6 / 3, 10 / 3 + 5 * _S6],
        [13 / 3 - 7 * _S6 / 3, -23 / 3 + 22 * _S6 / 3, 10 / 3 - 5 * _S6],
        [1 / 3, -8 / 3, 10 / 3],
    ]
)


def _eigen() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, rows and columns of the inverse of the matrix; the real one comes first."""
    values, columns = np.linalg.eig(np.linalg.inv(_MATRIX))
    places = np.argsort(values.imag)[[1, 0, 2]]
    columns = columns[:, places] / columns[2, places]
    return values[places], np.linalg.inv(columns), columns


_VALUES, _ROWS, _COLUMNS = stacks.with_room(_eigen)  # OpenBLAS takes some


class Radau(stepping.Method):
    """Steps of Radau's method."""

    exponent = -0.25
    rows = 4

    def first(self, system: stepping.System, t: Any, y: Any, h: Any) -> Any:
        return fnp.concatenate([y[None], fnp.zeros((3, *y.shape), y.dtype)])

    def remember(self, system: stepping.System, t: Any, y: Any, k: Any, h: Any) -> Any:
        factors = [system.matrices.no_factors(part.dtype) for part in _parts(y.dtype)]
        return {
            "k": k,
            "length": fnp.ones_like(h),
            "chosen": h,
            "chosen_before": h,
            "error": fnp.full_like(h, np.nan),
            "jacobian": system.matrices.no_jacobian(y.dtype),
            "factors": factors,
            "needs_jacobian": np.bool_(True),
            "needs_factors": np.bool_(True),
            "is_current": np.bool_(True),
            "was_rejected": np.bool_(False),
        }

    def attempt(
        self, system: stepping.System, begin: stepping.Begin, controls: stepping.Controls
    ) -> stepping.Attempt:
        t, h, state, memory, is_clipped, _ = begin
        y, k = state[0], memory["k"]
        end = t + h
        evaluates = memory["needs_jacobian"]
        jacobian = lax.cond(evaluates, lambda: system.jacobian(t, y), lambda: memory["jacobian"])
        factorizes = memory["needs_factors"]
        parts = _parts(y.dtype)
        factors = lax.cond(
            factorizes,
            lambda: [part.factors(system.matrices, h, jacobian) for part in parts],
            lambda: memory["factors"],
        )
        scale = controls.scale(y)

        def correction(z: Any) -> Any:
            slopes = _slopes(system, t, h, y, z)
            step, square = 0.0, 0.0
            for part, factor in zip(parts, factors, strict=True):
                right = part.row @ slopes - (part.shift / h) * (part.row @ z)
                w = system.matrices.solve(factor, right)
                step = step + part.stages(w)
                square = square + part.weight * fnp.sum(fnp.square(abs(w) / scale))
            return step, fnp.sqrt(square / z.size), fnp.all(fnp.isfinite(slopes))

        # Where the polynomial of the last step would be at the stages of this one.
        x = 1 + _as(_NODES, h) * (h / memory["length"])
        guess = _weights(x, h) @ state[1:] - state[3]
        tolerance = newton_tolerance(controls, float(np.finfo(h.dtype).eps))
        found = iterate(correction, guess, LIMIT, tolerance)
        z = found.x
        new = y + z[2]
        change = _as(_DIFFERENCE, h) @ z / h
        allowed = controls.scale(y, new)
        first = system.matrices.solve(factors[0], k + change)
        error = stepping.rms(first / allowed)

        def damped() -> Any:
            right = system.slope(t, y + first) + change
            again = system.matrices.solve(factors[0], right)
            return stepping.rms(again / allowed)

        is_damped = memory["was_rejected"] & (error > 1)
        error = lax.cond(is_damped, damped, lambda: error)
        is_good = found.has_converged & (error <= 1)
        before = fnp.where(is_clipped, np.nan, memory["error"])
        safety = stepping.SAFETY * (2 * LIMIT + 1) / (2 * LIMIT + found.count)
        factor = safety * _factor(h / memory["chosen_before"], error, before)
        is_slow = (found.count > 2) & (found.rate > 1e-3) & system.varies
        keeps = ~is_slow & (factor < 1.2)
        longer = fnp.where(keeps, 1.0, fnp.minimum(stepping.MOST, factor))
        shorter = fnp.where(
            found.has_converged,
            fnp.maximum(stepping.LEAST, factor),
            fnp.where(memory["is_current"], 0.5, 1.0),
        )
        length = fnp.astype(h * fnp.where(is_good, longer, shorter), h.dtype)
        refreshes = ~found.has_converged & ~memory["is_current"]

        def chosen(at_end: Any, else_: Any) -> Any:
            return fnp.where(is_good, at_end, else_)

        memory = {
            "k": lax.cond(is_good, lambda: system.slope(end, new), lambda: k),
            "length": chosen(h, memory["length"]),
            "chosen": chosen(length, memory["chosen"]),
            "chosen_before": chosen(memory["chosen"], memory["chosen_before"]),
            "error": chosen(error, before),
            "jacobian": jacobian,
            "factors": factors,
            "needs_jacobian": chosen(is_slow, refreshes),
            "needs_factors": ~(is_good & keeps),
            "is_current": chosen(is_slow, memory["is_current"] | refreshes) | (not system.varies),
            "was_rejected": ~is_good & (memory["was_rejected"] | found.has_converged),
        }
        evaluations = 3 * found.count + fnp.astype(is_good, np.int64)
        counts = [
            evaluations + fnp.astype(is_damped, np.int64),
            fnp.astype(evaluates, np.int64),
            fnp.astype(factorizes, np.int64) * 2,
        ]
        return stepping.Attempt(is_good, _state(new, z), length, (), memory, fnp.stack(counts))

    def following(self, system: stepping.System, piece: stepping.Piece) -> Callable[..., Any]:
        t, h, y, z = piece.t, piece.h, piece.state[0], piece.end[1:]
        jacobians = [system.exact(t + float(c) * h, y + z[i]) for i, c in enumerate(_NODES)]
        solve = system.matrices.solver(_as(_MATRIX, h), -h, jacobians)

        def follow(system: stepping.System, t: Any, h: Any, state: Any) -> Any:
            y = state[0]
            wrong = z - h * (_as(_MATRIX, h) @ _slopes(system, t, h, y, z))
            stages = z - solve(wrong)
            return _state(y + stages[2], stages)

        return follow

    def between(self, system: stepping.System, piece: stepping.Piece, x: Any) -> Any:
        end = piece.end
        return end[0] - end[3] + _weights(fnp.reshape(x, (1,)), x)[0] @ end[1:]


@dataclass(frozen=True, eq=False)
class _Part:
    """One of the systems of ``n`` equations.

    Args:
        shift: Its eigenvalue.
        row: From the stages to it.
        column: From it to the stages.
        has_conjugate: Whether it stands for two systems whose solutions are conjugate.
        weight: In the square of the size of a solution.
    """

    shift: Any
    row: Any
    column: Any
    has_conjugate: bool
    weight: float

    @property
    def dtype(self) -> Any:
        return self.row.dtype

    def factors(self, matrices: Dense, h: Any, jacobian: Any) -> Any:
        """Factors of its matrix."""
        return matrices.factors(self.shift / h, -1.0, fnp.astype(jacobian, self.dtype))

    def stages(self, w: Any) -> Any:
        """Corrections of the stages by the solution of the linear system."""
        found = self.column[:, None] * w[None]
        return 2 * fnp.real(found) if self.has_conjugate else found


def _parts(dtype: Any) -> list[_Part]:
    """The systems for real or complex values."""
    dtype = np.dtype(dtype)
    real = np.finfo(dtype).dtype
    wide = np.result_type(dtype, np.complex64)
    is_real = dtype.kind == "f"
    parts = [
        _Part(
            real.type(_VALUES[0].real),
            _ROWS[0].real.astype(dtype),
            _COLUMNS[:, 0].real.astype(dtype),
            False,
            1.0,
        )
    ]
    for i in [1] if is_real else [1, 2]:
        row, column = _ROWS[i].astype(wide), _COLUMNS[:, i].astype(wide)
        parts.append(_Part(wide.type(_VALUES[i]), row, column, is_real, 4.0 if is_real else 2.0))
    return parts


def _as(table: np.ndarray, like: Any) -> np.ndarray:
    """Constants in the precision of a value."""
    return table.astype(np.finfo(like.dtype).dtype)


def _state(y: Any, z: Any) -> Any:
    return fnp.concatenate([y[None], z])


def _slopes(system: stepping.System, t: Any, h: Any, y: Any, z: Any) -> Any:
    return fnp.stack([system.slope(t + float(c) * h, y + z[i]) for i, c in enumerate(_NODES)])


def _weights(x: Any, like: Any) -> Any:
    """Weights of the stages at parts ``x`` of a step; one row for each."""
    powers = fnp.stack([x, x * x, x * x * x], axis=-1)
    return powers @ _as(_POLYNOMIAL.T, like)


def _factor(ratio: Any, error: Any, before: Any) -> Any:
    """How much longer a step may be, from its error and from that of the step before."""
    error = fnp.maximum(error, 1e-30)
    trend = ratio * (before / error) ** 0.25
    trend = fnp.where(fnp.isnan(trend), 1.0, fnp.minimum(1.0, trend))
    return trend * error**-0.25
