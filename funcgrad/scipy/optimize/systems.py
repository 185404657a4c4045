"""Roots of systems, least squares and minima: SciPy's methods with exact derivatives.

Outside of transformations SciPy's own methods run, with derivatives that are ours. Inside, loops
that compile do: damped Newton steps for roots, Levenberg and Marquardt's for least squares, BFGS
for minima. In both cases solutions are differentiated implicitly, through the equation that they
solve (`funcgrad.lax.custom_root`), with respect to ``args`` and what functions close over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.optimize

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.arguments import name_of
from funcgrad.api.compilation import jit
from funcgrad.api.differentiation import grad, value_and_grad
from funcgrad.api.jacobians import jacfwd
from funcgrad.api.sparse_derivatives import colors_of
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import EVAL, current_trace
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.closures import tracers_in
from funcgrad.numpy.promotion import as_value
from funcgrad.optim.minimizing import minimize as minimize_tree
from funcgrad.patterns.coloring import Coloring
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.scipy.optimize.sparse_steps import (
    SparseJacobian,
    TracedNormalEquations,
    levenberg_marquardt,
    newton,
    newton_move,
    solve_linear,
)
from funcgrad.scipy.results import Result

Function = Callable[..., Any]

MOST_DENSE = 1 << 24
"""Elements of the largest dense Jacobian of SciPy's steps, which converge in fewer of them."""


def is_known(*values: Any) -> bool:
    """Whether nothing is traced, so that SciPy can compute."""
    return current_trace() is EVAL and not tracers_in(*values)


def _vector(name: str, x0: Any) -> Any:
    x = fnp.asarray(as_value(x0, name))
    return x if x.dtype.kind in "fc" else fnp.astype(x, np.float64)


def _newton(f: Function, start: Any, tol: Any, limit: int) -> tuple[Any, Any]:
    """Newton's method, with steps halved until the norm of the residual falls."""
    colors = colors_of(f, start)

    def goes_on(state: Any) -> Any:
        count, _, _, change, _ = state
        return (count < limit) & (change > tol)

    def step(state: Any) -> Any:
        count, x, value, _, _ = state
        move = newton_move(f, x, value, colors)
        norm = fnp.linalg.norm(value)

        def is_worse(trial: Any) -> Any:
            part, _, new = trial
            return ~(fnp.linalg.norm(new) < (1 - 1e-4 * part) * norm) & (part > 1e-4)

        def halve(trial: Any) -> Any:
            part = trial[0] / 2
            return part, x + part * move, f(x + part * move)

        one = fnp.ones((), x.real.dtype)
        part, new, value = lax.while_loop(is_worse, halve, (one, x + move, f(x + move)))
        change = fnp.linalg.norm(part * move) / fnp.maximum(fnp.linalg.norm(new), 1e-300)
        return count + 1, new, value, change, fnp.linalg.norm(value)

    value = f(start)
    norm = fnp.linalg.norm(value)
    change = fnp.where(norm == 0, 0.0 * norm, fnp.full_like(norm, np.inf))
    count, x, _, change, _ = lax.while_loop(
        goes_on, step, (np.int64(0), start, value, change, norm)
    )
    return x, (count, change <= tol)


def root(
    fun: Function,
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
) -> Result:
    """Root of a system, with the exact Jacobian, as `scipy.optimize.root`.

    Args:
        fun: ``fun(x, *args)``, as many values as unknowns.
        args: Further arguments, with respect to which the root is differentiated.
        method: SciPy's, where nothing is traced; else damped Newton steps are made. So they are,
            with sparse factors, instead of ``"hybr"`` and ``"lm"``, where the Jacobian of many
            unknowns is sparse.
        jac: Accepted for SciPy's signature: the Jacobian is that of ``fun``; with ``True``, ``fun``
            returns a pair of which the second is not used.
        tol: Tolerance of the root.
        callback: Of SciPy's methods that take one.
        options: Of SciPy's method.
    Returns: A result with SciPy's fields ``x``, ``success``, ``fun``, ``nit``, and what else
        SciPy's method says; with ``sparsity``, a `funcgrad.sparsity.Coloring`, if the Jacobian is
        sparse.
    Raises: ShapeError: If there are more values than unknowns, or fewer.

    Example:
        >>> circle = lambda x, r: fg.numpy.stack([x[0] ** 2 + x[1] ** 2 - r**2, x[0] - x[1]])
        >>> corner = lambda r: fg.scipy.optimize.root(circle, np.array([1.0, 0.5]), args=(r,)).x[0]
        >>> print(f"{corner(2.0):.6f} {fg.grad(corner)(2.0):.6f}")
        1.414214 0.707107
    """
    args = args if isinstance(args, tuple) else (args,)
    start = _vector("root", x0)

    def f(x: Any) -> Any:
        found = fun(x, *args)
        value = fnp.asarray(as_value(found[0] if jac is True else found, "root"))
        if value.size != x.size:
            raise ShapeError(
                f"root: {name_of(fun)} returned {aval_of(value)} for {x.size} unknowns. A system "
                "has as many equations as unknowns; least_squares takes more of them, or fewer."
            )
        return fnp.reshape(fnp.astype(value, x.dtype), x.shape)

    if is_known(f, start):
        if method in ("hybr", "lm"):
            start = fnp.reshape(start, (start.size,))  # as SciPy's
        colors = colors_of(f, start) if method in ("hybr", "lm") else None
        if colors is not None:
            limit = (options or {}).get("maxfev") or 100
            return newton(SparseJacobian(f, colors), start, tol or 1e-12, limit)
        slopes = jit(jacfwd(f))
        has_jacobian = method in ("hybr", "lm")
        found = scipy.optimize.root(
            lambda x: np.asarray(f(x)),
            start,
            method=method,
            jac=(lambda x: np.asarray(slopes(x))) if has_jacobian else None,
            tol=tol,
            callback=callback,
            options=options,
        )
        return Result(**found)
    accuracy = 1e-12 if tol is None else tol

    def solve(f: Function, start: Any) -> Any:
        return _newton(f, fnp.asarray(start), accuracy, 100)

    x, (count, converged) = lax.custom_root(
        f, stop_gradient.bind(start), solve, solve_linear, has_aux=True
    )
    return Result(x=x, success=converged, fun=f(x), nit=count)


def fsolve(
    func: Function,
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: Any = 0,
    col_deriv: Any = 0,
    xtol: Any = 1.49012e-08,
    maxfev: int = 0,
    band: Any = None,
    epsfcn: Any = None,
    factor: Any = 100,
    diag: Any = None,
) -> Any:
    """Root of a system, with the exact Jacobian, as `scipy.optimize.fsolve`.

    Args:
        func: ``func(x, *args)``, as many values as unknowns.
        args: Further arguments, with respect to which the root is differentiated.
        fprime: Accepted for SciPy's signature, as are ``col_deriv``, ``band``, ``epsfcn``,
            ``factor`` and ``diag``.
        full_output: Whether a tuple ``(x, result, success, message)`` is returned.
        col_deriv: Without effect.
        maxfev: The most calls of the function, where SciPy computes.
        band: Without effect.
        epsfcn: Without effect.
        factor: Without effect.
        diag: Without effect.
    Returns: The root.
    Example: print(fg.scipy.optimize.fsolve(lambda x: x**2 - np.array([4.0, 9.0]), np.ones(2)))
        -> [2. 3.]
    """
    start = fnp.atleast_1d(_vector("fsolve", x0))
    options = {"maxfev": maxfev} if maxfev else None
    found = root(func, start, args, tol=xtol, options=options)
    if full_output:
        return found.x, found, found.success, found.get("message", "")
    return found.x


def least_squares(
    fun: Function,
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: Any = 1e-8,
    xtol: Any = 1e-8,
    gtol: Any = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: Any = 1.0,
    diff_step: Any = None,
    tr_solver: Any = None,
    tr_options: Any = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: Any = (),
    kwargs: Any = None,
    callback: Any = None,
    workers: Any = None,
) -> Result:
    """Minimum of a sum of squares, of a vector of residuals.

    As `scipy.optimize.least_squares`, with the exact Jacobian.

    Args:
        fun: ``fun(x, *args, **kwargs)``, the residuals.
        jac: Accepted for SciPy's signature: the Jacobian is that of ``fun``.
        bounds: Where SciPy computes.
        method: SciPy's, where nothing is traced; else Levenberg and Marquardt's steps are made. So
            they are, with sparse factors, instead of ``"trf"`` without bounds, losses, scales, a
            solver and a callback, where the Jacobian of many unknowns is sparse.
        ftol: Tolerance of the sum of squares.
        gtol: Tolerance of the gradient.
        x_scale: Where SciPy computes.
        loss: Where SciPy computes.
        f_scale: Where SciPy computes.
        diff_step: Accepted for SciPy's signature.
        tr_solver: Where SciPy computes.
        tr_options: Where SciPy computes.
        jac_sparsity: Where nothing is traced: a matrix with entries where the Jacobian has some,
            if a smaller one is known than what is found from ``fun``. It is compared with the
            derivative.
        max_nfev: The most iterations.
        verbose: Where SciPy computes.
        args: Further arguments, with respect to which the solution is differentiated.
        kwargs: Further named arguments.
        callback: Where SciPy computes.
        workers: Accepted for SciPy's signature.

    Returns:
        A result with SciPy's fields ``x``, ``cost``, ``fun``, ``jac``, ``grad``, ``success``, and
        what else SciPy's method says. If the Jacobian is sparse, so is ``jac``, and ``sparsity``, a
        `funcgrad.sparsity.Coloring`, tells its pattern.

    Raises:
        ArgumentError: If there are bounds or a loss, and values are traced.
        ShapeError: If ``x0`` or the residuals are no vector.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> from funcgrad.scipy.optimize import least_squares
        >>> t = np.linspace(0.0, 1.0, 5)
        >>> fit = lambda y: least_squares(lambda p: p[0] * np.exp(p[1] * t) - y, [1.0, 0.0]).x
        >>> print(fit(2.0 * np.exp(-t)).round(6))
        [ 2. -1.]
    """
    args = args if isinstance(args, tuple | list) else (args,)
    named = dict(kwargs or {})
    start = fnp.atleast_1d(_vector("least_squares", x0))
    if start.ndim > 1:
        raise ShapeError(
            f"least_squares: `x0` must be a vector, got {aval_of(start)}. Pass x0.ravel(), and "
            "reshape it in the function."
        )

    def f(x: Any) -> Any:
        value = fnp.atleast_1d(as_value(fun(x, *args, **named), "least_squares"))
        if value.ndim > 1:
            raise ShapeError(
                f"least_squares: {name_of(fun)} must return a vector of residuals, got "
                f"{aval_of(value)}. Return its .ravel()."
            )
        return value

    if is_known(f, start):
        options: dict[str, Any] = {
            "bounds": bounds, "method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol,
            "loss": loss, "f_scale": f_scale, "tr_solver": tr_solver, "max_nfev": max_nfev,
            "verbose": verbose,
        }  # fmt: skip
        if x_scale is not None:
            options["x_scale"] = x_scale
        if tr_options is not None:
            options["tr_options"] = tr_options
        if callback is not None:
            options["callback"] = callback
        # Residuals of all unknowns are rows by themselves.
        sparse = jac_sparsity
        if sparse is None:
            sparse = colors_of(f, start, kinds=["columns", "both"])
        is_plain = loss == "linear" and x_scale is None and tr_solver is None and callback is None
        if sparse is not None and is_plain and method == "trf" and _is_unbounded(bounds):
            jacobian = SparseJacobian(f, sparse)
            return levenberg_marquardt(jacobian, start, ftol, xtol, gtol, max_nfev)
        is_asked_for = jac_sparsity is not None or tr_solver == "lsmr"
        is_large = isinstance(sparse, Coloring) and math.prod(sparse.pattern.shape) > MOST_DENSE
        if sparse is not None and method != "lm" and (is_asked_for or is_large):
            jacobian = SparseJacobian(f, sparse)
            found = scipy.optimize.least_squares(jacobian.value, start, jacobian, **options)
            return Result(**found, sparsity=jacobian.colors)
        slopes = jit(jacfwd(f))
        found = scipy.optimize.least_squares(
            lambda x: np.asarray(f(x)), start, lambda x: np.asarray(slopes(x)), **options
        )
        return Result(**found)
    start = stop_gradient.bind(start)
    if loss != "linear" or not _is_unbounded(bounds):
        raise ArgumentError(
            "least_squares: bounds and losses are SciPy's, which takes concrete values only, and "
            "something is traced here. Put them into the function: by a change of variables, and "
            "by the square root of the loss."
        )

    def cost(x: Any) -> Any:
        return fnp.sum(f(x) ** 2) / 2

    limit = 100 if max_nfev is None else max_nfev

    def solve(_: Function, start: Any) -> Any:
        return _marquardt(f, start, xtol, limit)

    x, (count, converged) = lax.custom_root(grad(cost), start, solve, solve_linear, has_aux=True)
    colors = colors_of(f, start)
    value, slopes = f(x), jacfwd(f, sparse=False if colors is None else colors)(x)
    return Result(
        x=x,
        cost=fnp.sum(value**2) / 2,
        fun=value,
        jac=slopes,
        grad=value @ slopes,
        nfev=count,
        success=converged,
        **({} if colors is None else {"sparsity": colors}),
    )


def _is_unbounded(bounds: Any) -> bool:
    pair = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    return bool(np.all(np.isinf(np.concatenate(list(map(np.ravel, pair))))))


def _marquardt(f: Function, start: Any, xtol: Any, limit: int) -> tuple[Any, Any]:
    n = start.shape[0]
    colors = colors_of(f, start)
    system = None if colors is None else TracedNormalEquations(colors.pattern.pattern)

    def step_of(x: Any, value: Any, damping: Any) -> Any:
        if system is not None:
            sparse = jacfwd(f, sparse=colors)(x)
            return system.solve(sparse.data, damping, -(value @ sparse))
        slopes = jacfwd(f)(x)
        matrix = slopes.T @ slopes
        scale = fnp.diagonal(matrix)
        weights = damping * fnp.where(scale > 0, scale, 1.0)
        units = fnp.eye(n, dtype=matrix.dtype)
        return fnp.linalg.solve(matrix + units * weights, -(slopes.T @ value))

    def goes_on(state: Any) -> Any:
        count, _, _, _, change = state
        return (count < limit) & (change > xtol * 1e-3)

    def step(state: Any) -> Any:
        count, x, value, damping, _ = state
        move = step_of(x, value, damping)
        new = f(x + move)
        is_better = fnp.sum(new**2) <= fnp.sum(value**2)
        change = fnp.linalg.norm(move) / (fnp.linalg.norm(x) + 1e-300)
        # A step that was refused says nothing about convergence, unless it was tiny.
        change = fnp.where(is_better | (change < 1e-15), change, np.inf)
        return (
            count + 1,
            fnp.where(is_better, x + move, x),
            fnp.where(is_better, new, value),
            fnp.where(is_better, damping / 10, damping * 5),
            change,
        )

    one = fnp.ones((), start.dtype)
    state = (np.int64(0), start, f(start), 1e-3 * one, np.inf * one)
    count, x, _, _, change = lax.while_loop(goes_on, step, state)
    return x, (count, change <= xtol)


def curve_fit(
    f: Function,
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: Any = None,
    **kwargs: Any,
) -> Any:
    """Parameters of a function that fit samples in the sense of least squares.

    As `scipy.optimize.curve_fit`, with the exact Jacobian; all values must be concrete.

    For derivatives of fitted parameters use `least_squares`.

    Args:
        f: ``f(xdata, *parameters)``.
        xdata: Where samples are taken.
        ydata: The samples.
        p0: Where to begin; by default ones.
        sigma: Errors of the samples, or their covariance.
        absolute_sigma: Whether errors are more than relative.
        check_finite: As SciPy's.
        bounds: As SciPy's.
        method: As SciPy's.
        jac: A Jacobian, or ``None`` for that of ``f``.
        full_output: As SciPy's.
        nan_policy: As SciPy's.
        **kwargs: As SciPy's.
    Returns: Parameters and their covariance.
    Raises: ArgumentError: If a value is traced.

    Example:
        >>> t = np.linspace(0.0, 1.0, 5)
        >>> line = lambda t, a, b: a * t + b
        >>> print(fg.scipy.optimize.curve_fit(line, t, 2 * t + 1)[0].round(6))
        [2. 1.]
    """
    if not is_known(f, xdata, ydata, p0, sigma):
        raise ArgumentError(
            "curve_fit takes concrete values only, and got traced ones. Write "
            "least_squares(lambda p: (f(xdata, *p) - ydata) / sigma, p0).x, which can be "
            "differentiated."
        )
    if jac is None:

        def of_parameters(x: Any, *parameters: Any) -> Any:
            return jacfwd(lambda p: f(x, *p))(np.stack(parameters))

        compiled = jit(of_parameters)

        def jac(x: Any, *parameters: Any) -> Any:
            return np.asarray(compiled(x, *map(np.float64, parameters)))

    return scipy.optimize.curve_fit(
        f, xdata, ydata, p0, sigma, absolute_sigma, check_finite, bounds, method, jac,
        full_output=full_output, nan_policy=nan_policy, **kwargs,
    )  # fmt: skip


def minimize(
    fun: Function,
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    callback: Any = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Minimum of a function of several variables.

    As `scipy.optimize.minimize` and `jax.scipy.optimize.minimize`, with exact derivatives.

    Outside of transformations it is `funcgrad.optim.minimize`: SciPy's methods. Inside, BFGS runs
    as one compiled loop, and the minimum is differentiated implicitly with respect to ``args`` and
    what ``fun`` closes over.

    Args:
        fun: ``fun(x, *args)``, a real number; with ``jac=True`` a pair of which the second is not
            used.
        x0: Where to begin; inside of transformations also complex numbers.
        method: SciPy's name; inside of transformations ``None`` or ``"BFGS"``, under any name
            that JAX has.
        jac: ``True`` as above; else without effect, for gradients are exact.
        hess: Accepted for SciPy's signature.
        hessp: Accepted for SciPy's signature.
        bounds: Where SciPy computes.
        constraints: Where SciPy computes.
        tol: Tolerance of the gradient.
        callback: Where SciPy computes.
        options: Of SciPy's method; ``maxiter`` and ``gtol`` inside of transformations.

    Returns:
        A result with the fields ``x``, ``fun``, ``jac``, ``success``, ``nit``, ``nfev``, and what
        else SciPy's method says.
    Raises: ArgumentError: If another method is wanted for traced values.

    Example:
        >>> from funcgrad.scipy.optimize import minimize
        >>> lowest = lambda a: minimize(lambda x: ((x - a) ** 4 + (x - a) ** 2).sum(), np.ones(2)).x
        >>> print(fg.jit(lowest)(3.0).round(5))
        [3. 3.]
    """
    args = args if isinstance(args, tuple) else (args,)

    def cost(x: Any) -> Any:
        found = fun(x, *args)
        return found[0] if jac is True else found

    if is_known(cost, x0, bounds, constraints):
        return minimize_tree(cost, x0, (), method, bounds, constraints, tol, options, callback)
    if str(method or "bfgs").lower() not in _TRACED or bounds is not None or constraints:
        raise ArgumentError(
            f"minimize: with traced values there is BFGS, without bounds and constraints, got "
            f"method={method!r}. Call it outside of the transformed function, or change variables."
        )
    start = _vector("minimize", x0)
    given = dict(options or {})
    gtol = given.get("gtol", 1e-5 if tol is None else tol)
    limit = given.get("maxiter") or 200 * max(start.size, 1)

    def real_cost(x: Any) -> Any:
        return fnp.reshape(fnp.asarray(cost(joined(x))), ())

    joined = _joined if fnp.iscomplexobj(start) else fnp.asarray
    start = fnp.stack([start.real, start.imag]) if joined is _joined else start

    def solve(_: Function, start: Any) -> Any:
        return _bfgs(real_cost, start, gtol, limit)

    x, (count, calls, converged) = lax.custom_root(
        grad(real_cost), stop_gradient.bind(start), solve, solve_linear, has_aux=True
    )
    value, slope = value_and_grad(real_cost)(x)
    x, slope = joined(x), fnp.conj(joined(slope))
    return Result(x=x, success=converged, fun=value, jac=slope, nit=count, nfev=calls)


_TRACED = ("bfgs", "l-bfgs-experimental-do-not-rely-on-this")
"""Names of BFGS, with traced values."""


def _joined(parts: Any) -> Any:
    """Complex numbers of a stack of their parts."""
    return lax.complex(parts[0], parts[1])


def _bfgs(f: Function, start: Any, gtol: Any, limit: int) -> tuple[Any, Any]:
    """Nocedal and Wright, Numerical Optimization, algorithm 6.1.

    Steps that fulfil Wolfe's conditions are found by doubling and halving.
    """
    n = start.size
    both = value_and_grad(f)

    def search(x: Any, value: Any, slope: Any, way: Any) -> Any:
        descent = fnp.sum(slope * way)

        def judge(length: Any) -> Any:
            new, new_slope = both(x + length * way)
            too_far = ~(new <= value + 1e-4 * length * descent)
            too_short = fnp.sum(new_slope * way) < 0.9 * descent
            return new, new_slope, too_far, too_short

        def goes_on(state: Any) -> Any:
            count, _, _, _, (_, _, too_far, too_short) = state
            return (too_far | too_short) & (count < 40)

        def move(state: Any) -> Any:
            count, low, high, length, (_, _, too_far, _) = state
            high = fnp.where(too_far, length, high)
            low = fnp.where(too_far, low, length)
            length = fnp.where(fnp.isinf(high), 2 * low, (low + fnp.where(
                fnp.isinf(high), low, high)) / 2)  # fmt: skip
            return count + 1, low, high, length, judge(length)

        one = fnp.ones((), value.dtype)
        state = (np.int64(0), 0 * one, np.inf * one, one, judge(one))
        count, _, _, length, found = lax.while_loop(goes_on, move, state)
        return length, found[0], found[1], count + 1, ~found[2]

    def goes_on(state: Any) -> Any:
        count, _, _, _, slope, _, is_stuck = state
        return (fnp.max(abs(slope)) > gtol) & (count < limit) & ~is_stuck

    def step(state: Any) -> Any:
        count, calls, x, value, slope, inverse, _ = state
        way = -fnp.reshape(inverse @ fnp.reshape(slope, (n,)), x.shape)
        length, new, new_slope, tried, is_good = search(x, value, slope, way)
        moved = fnp.reshape(length * way, (n,))
        slope_change = fnp.reshape(new_slope - slope, (n,))
        product = moved @ slope_change
        is_curved = is_good & (product > 0)
        rho = 1 / fnp.where(is_curved, product, 1.0)
        # From the identity the first update starts at the scale of the curvature.
        scaled = fnp.where(
            (count == 0) & is_curved,
            product / fnp.where(is_curved, slope_change @ slope_change, 1.0),
            1.0,
        )
        inverse = inverse * scaled
        left = fnp.eye(n, dtype=x.dtype) - rho * fnp.outer(moved, slope_change)
        updated = left @ inverse @ left.T + rho * fnp.outer(moved, moved)
        return (
            count + 1,
            calls + tried,
            fnp.where(is_good, x + length * way, x),
            fnp.where(is_good, new, value),
            fnp.where(is_good, new_slope, slope),
            fnp.where(is_curved, updated, inverse),
            ~is_good,
        )

    value, slope = both(start)
    state = (
        np.int64(0),
        np.int64(1),
        start,
        value,
        slope,
        fnp.eye(n, dtype=start.dtype),
        np.bool_(False),
    )
    count, calls, x, _, slope, _, _ = lax.while_loop(goes_on, step, state)
    return x, (count, calls, fnp.max(abs(slope)) <= gtol)
