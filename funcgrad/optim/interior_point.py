"""Large problems with constraints by IPOPT, which takes sparse derivatives as they are.

It is called by `funcgrad.optim.minimize` with ``method="ipopt"``, and needs the package cyipopt.

Source: A. Waechter, L. T. Biegler, "On the implementation of an interior-point filter line-search
algorithm for large-scale nonlinear programming", Math. Program. 106 (2006) 25.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from funcgrad.base.imports import load
from funcgrad.base.records import dataclass
from funcgrad.patterns.coloring import Coloring

Vector = np.ndarray

NAMES = {"maxiter": "max_iter", "disp": "print_level"}
"""SciPy's names of options, and IPOPT's."""

SOLVED = (0, 1)
"""Status of solutions: optimal, or to IPOPT's acceptable level."""


@dataclass(frozen=True)
class NonlinearProgram:
    """A smooth function of a vector that is to be minimised, with constraints.

    Args:
        fun: Its value.
        gradient: Its gradient.
        constraints: Values of the constraints.
        jacobian: Their Jacobian, SciPy's matrix with entries where the pattern has them.
        hessian: From a vector and weights, of the function and of each constraint, to the Hessian
            of their sum, likewise.
        jacobian_colors: The colouring of the Jacobian.
        hessian_colors: The colouring of the Hessian.
        low: The least values of constraints.
        high: Their greatest values.
    """

    fun: Callable[[Vector], float]
    gradient: Callable[[Vector], Vector]
    constraints: Callable[[Vector], Vector]
    jacobian: Callable[[Vector], Any]
    hessian: Callable[[Vector, Vector], Any]
    jacobian_colors: Coloring
    hessian_colors: Coloring
    low: Vector
    high: Vector


class _Callbacks:
    """A program as IPOPT asks for it: entries by themselves, of Hessians those of one half."""

    def __init__(self, program: NonlinearProgram, callback: Callable[[Vector], Any] | None) -> None:
        self.program = program
        self.callback = callback
        self.point: Any = None
        self.steps = self.values = self.slopes = 0
        pattern = program.hessian_colors.pattern.pattern
        self.is_lower = pattern.rows >= pattern.indices

    def objective(self, x: Vector) -> float:
        self.values += 1
        return self.program.fun(x)

    def gradient(self, x: Vector) -> Vector:
        self.slopes += 1
        self.point = np.array(x)
        return self.program.gradient(x)

    def constraints(self, x: Vector) -> Vector:
        return self.program.constraints(x)

    def jacobianstructure(self) -> tuple[Vector, Vector]:
        pattern = self.program.jacobian_colors.pattern.pattern
        return pattern.rows, pattern.indices

    def jacobian(self, x: Vector) -> Vector:
        return self.program.jacobian(x).data

    def hessianstructure(self) -> tuple[Vector, Vector]:
        pattern = self.program.hessian_colors.pattern.pattern
        return pattern.rows[self.is_lower], pattern.indices[self.is_lower]

    def hessian(self, x: Vector, multipliers: Vector, factor: float) -> Vector:
        weights = np.concatenate([[factor], multipliers])
        return self.program.hessian(x, weights).data[self.is_lower]

    def intermediate(self, mode: int, step: int, *numbers: float) -> bool:
        self.steps = step
        if self.callback is not None:
            # IPOPT has asked for the gradient there; only new versions tell the point itself.
            self.callback(self.point)
        return True


def minimize_by_ipopt(
    program: NonlinearProgram,
    start: Vector,
    bounds: tuple[Vector, Vector],
    tol: float | None,
    options: Mapping[str, Any] | None,
    callback: Callable[[Vector], Any] | None,
) -> dict[str, Any]:
    """Minimise by IPOPT.

    Args:
        program: The problem.
        start: Where to begin.
        bounds: The least and the greatest values of the vector.
        tol: IPOPT's option ``tol``.
        options: IPOPT's further options, by its names, or SciPy's ``maxiter`` and ``disp``.
        callback: Called after each step, with the vector.
    Returns: Fields of a result.
    Raises: LibraryError: If cyipopt is not installed.
    """
    module = load(
        "cyipopt",
        "minimize with method='ipopt' needs cyipopt, which is not installed: pip install "
        "cyipopt, or conda install cyipopt, which has IPOPT itself. Of SciPy's methods "
        "'trust-constr' takes sparse derivatives.",
    )
    callbacks = _Callbacks(program, callback)
    solver = module.Problem(
        n=len(start), m=len(program.low), problem_obj=callbacks, lb=bounds[0], ub=bounds[1],
        cl=program.low, cu=program.high,
    )  # fmt: skip
    given: dict[str, Any] = {"print_level": 0, "sb": "yes"}
    if tol is not None:
        given["tol"] = float(tol)
    for name, value in (given | dict(options or {})).items():
        number = 5 * value if name == "disp" else value
        solver.add_option(NAMES.get(name, name), number)
    x, info = solver.solve(np.array(start))
    message = info["status_msg"]
    return {
        "x": x, "fun": info["obj_val"], "status": info["status"],
        "success": info["status"] in SOLVED,
        "message": message.decode() if isinstance(message, bytes) else message,
        "constr": info["g"], "multipliers": info["mult_g"], "nit": callbacks.steps,
        "nfev": callbacks.values, "njev": callbacks.slopes, "sparsity": program.hessian_colors,
    }  # fmt: skip
