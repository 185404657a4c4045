"""Boundary value problems: SciPy's `solve_bvp` with exact Jacobians and derivatives of solutions.

SciPy refines the mesh and solves the collocation equations, whose matrix it keeps sparse. Its
blocks come from derivatives of the slope, of which one product for each component has those at all
nodes: nodes do not depend on each other. A solution is differentiated implicitly, through the
collocation equations on the mesh where it was found, with sparse factors.

Source: J. Kierzenka, L. F. Shampine, "A BVP solver based on residual control and the Matlab PSE",
ACM Trans. Math. Softw. 27 (2001) 299.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.compilation import jit
from funcgrad.api.differentiation import jvp
from funcgrad.api.jacobians import jacfwd
from funcgrad.api.sparse_derivatives import colors_of
from funcgrad.api.vectorization import vmap
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.objects import is_traced
from funcgrad.scipy.interpolate.piecewise import CubicHermiteSpline
from funcgrad.scipy.optimize.sparse_steps import solve_linear
from funcgrad.scipy.optimize.systems import is_known
from funcgrad.scipy.results import Result

Function = Callable[..., Any]


def solve_bvp(
    fun: Function,
    bc: Function,
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,
    fun_jac: Any = None,
    bc_jac: Any = None,
    tol: Any = 1e-3,
    max_nodes: int = 1000,
    verbose: int = 0,
    bc_tol: Any = None,
) -> Result:
    """Solve ``dy/dx = fun(x, y, p)`` with conditions at both ends, as `scipy.integrate.solve_bvp`.

    Jacobians are exact. Solutions are differentiated with respect to what ``fun`` and ``bc`` close
    over, by `grad` and others; the mesh is held constant, and follows from values, which `jit` and
    `vmap` do not know.

    Args:
        fun: ``fun(x, y)`` or, if there are parameters, ``fun(x, y, p)``: slopes of shape (n, m) at
            the nodes ``x``, (m,), where the values are ``y``, (n, m).
        bc: ``bc(ya, yb)`` or ``bc(ya, yb, p)``: as many numbers as there are components and
            parameters, zero where the conditions hold.
        x: First mesh, from one end to the other.
        y: First guess at its nodes, of shape (n, m).
        p: First guess of unknown parameters.
        S: A matrix: the slope has the further term ``S @ y / (x - x[0])``.
        fun_jac: Accepted for SciPy's signature: derivatives are those of ``fun``.
        bc_jac: Likewise.
        tol: Relative tolerance of the residual.
        max_nodes: The most nodes.
        verbose: As SciPy's.
        bc_tol: Absolute tolerance of conditions; by default ``tol``.
    Returns: A result with SciPy's fields ``x``, ``y``, ``yp``, ``p``, ``sol``, ``rms_residuals``,
        ``niter``, ``status``, ``message`` and ``success``; and ``sparsity``, a
        `funcgrad.sparsity.Coloring` of the derivative of the collocation equations, where that is
        sparse.

    Raises:
        ArgumentError: If values are not known; or if there is a term ``S``, and derivatives are
            asked for.
        ShapeError: If slopes have another shape than ``y``.

    Example:
        >>> x, y = np.linspace(0.0, 1.0, 11), np.zeros((2, 11))
        >>> def middle(load):
        ...     beam = lambda x, y: fg.numpy.stack([y[1], load * np.exp(y[0])])
        ...     held = lambda ya, yb: fg.numpy.stack([ya[0], yb[0]])
        ...     return fg.scipy.integrate.solve_bvp(beam, held, x, y, tol=1e-8).sol(0.5)[0]
        >>> print(f"{middle(-1.0):.6f} {fg.grad(middle)(-1.0):.6f}")
        0.140539 -0.159203
    """
    problem = _Problem(fun, bc, p)
    mesh, start = (fnp.asarray(as_value(v, "solve_bvp")) for v in (x, y))
    if start.ndim != 2 or mesh.shape != start.shape[1:]:
        raise ShapeError(
            f"solve_bvp: y must have a row for each component and a column for each node, got "
            f"{aval_of(start)} for x, {aval_of(mesh)}."
        )
    if is_traced(mesh):
        raise ArgumentError("solve_bvp: the mesh x must be known, and is traced here.")
    found = scipy.integrate.solve_bvp(
        problem.known(problem.slope), problem.known(problem.conditions), mesh, _known(start),
        None if p is None else _known(problem.p), S, problem.known(problem.slopes),
        problem.known(problem.condition_slopes), tol, max_nodes, verbose, bc_tol,
    )  # fmt: skip
    equations = problem.equations(np.asarray(found.x), found.y.shape)
    solved = fnp.concatenate([np.ravel(found.y), *([] if p is None else [found.p])])
    parts: dict[str, Any] = {}
    if S is None:
        colors = colors_of(equations, solved)
        parts = {} if colors is None else {"sparsity": colors}
    values, parameters, slopes = found.y, found.p, found.yp
    if not is_known(fun, bc):
        if S is not None:
            raise ArgumentError(
                "solve_bvp: solutions of problems with S have no derivatives. Begin a little "
                "beyond the singular end, with the term in `fun`."
            )
        solved = lax.custom_root(equations, solved, lambda _, at: at, solve_linear)
        values, parameters = problem.split(solved, found.y.shape)
        slopes = problem.slope(found.x, values, *parameters)
        parameters = None if p is None else parameters[0]
    return Result(
        sol=CubicHermiteSpline(found.x, values, slopes, axis=1), p=parameters, x=found.x,
        y=values, yp=slopes, rms_residuals=found.rms_residuals, niter=found.niter,
        status=found.status, message=found.message, success=found.success, **parts,
    )  # fmt: skip


def _known(value: Any) -> Any:
    """An array of values, without its derivatives."""
    found = stop_gradient.bind(fnp.asarray(value))
    if is_traced(found):
        raise ArgumentError(
            "solve_bvp: the mesh is refined by values, which are traced here. Call it outside of "
            "jit and vmap; derivatives may be taken there."
        )
    return np.asarray(found)


class _Problem:
    """The functions of a problem, and their derivatives.

    Args:
        fun: The slope.
        bc: The conditions.
        p: Parameters, or ``None``.
    """

    def __init__(self, fun: Function, bc: Function, p: Any) -> None:
        self.fun, self.bc = fun, bc
        self.p = fnp.zeros(0) if p is None else fnp.astype(fnp.ravel(p), np.float64)
        self.has_parameters = p is not None

    def slope(self, x: Any, y: Any, *p: Any) -> Any:
        found = fnp.asarray(as_value(self.fun(x, y, *p), "solve_bvp"))
        if found.shape != y.shape:
            raise ShapeError(
                f"solve_bvp: the slope must have the shape of y, {y.shape}, got {aval_of(found)}."
            )
        return found

    def conditions(self, ya: Any, yb: Any, *p: Any) -> Any:
        return fnp.ravel(fnp.asarray(as_value(self.bc(ya, yb, *p), "solve_bvp")))

    def slopes(self, x: Any, y: Any, *p: Any) -> Any:
        """Derivatives of the slope at all nodes, with respect to values and parameters."""

        def along(*directions: Any) -> Any:
            return jvp(lambda *at: self.slope(x, *at), (y, *p), directions)[1]

        rest = [fnp.zeros_like(v) for v in p]
        units = fnp.eye(y.shape[0], dtype=y.dtype)
        by_values = vmap(lambda e: along(fnp.broadcast_to(e[:, None], y.shape), *rest))(units)
        found = [fnp.swapaxes(by_values, 0, 1)]
        for v in p:
            by_parameters = vmap(lambda e: along(fnp.zeros_like(y), e))(np.eye(v.size))
            found.append(fnp.swapaxes(by_parameters, 0, 1))
        return tuple(found) if p else found[0]

    def condition_slopes(self, ya: Any, yb: Any, *p: Any) -> Any:
        return jacfwd(self.conditions, tuple(range(2 + len(p))))(ya, yb, *p)

    def known(self, function: Function) -> Function:
        """A function of these, compiled, for SciPy."""
        compiled = jit(function)

        def call(*args: Any) -> Any:
            found = compiled(*args)
            return tuple(map(_known, found)) if isinstance(found, tuple) else _known(found)

        return call

    def split(self, unknowns: Any, shape: tuple[int, ...]) -> tuple[Any, list[Any]]:
        """Values at the nodes, and parameters, if there are any."""
        n = shape[0] * shape[1]
        return fnp.reshape(unknowns[:n], shape), [unknowns[n:]] * self.has_parameters

    def equations(self, x: Any, shape: tuple[int, ...]) -> Function:
        """The collocation equations of Lobatto's formula of order 4, and the conditions."""
        h = np.diff(x)
        middle = x[:-1] + h / 2

        def residual(unknowns: Any) -> Any:
            y, p = self.split(unknowns, shape)
            f = self.slope(x, y, *p)
            between = (y[:, 1:] + y[:, :-1]) / 2 - h / 8 * (f[:, 1:] - f[:, :-1])
            inner = self.slope(middle, between, *p)
            steps = y[:, 1:] - y[:, :-1] - h / 6 * (f[:, :-1] + 4 * inner + f[:, 1:])
            ends = self.conditions(y[:, 0], y[:, -1], *p)
            return fnp.concatenate([fnp.ravel(steps), ends])

        return residual
