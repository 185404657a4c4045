"""Rosenbrock's function, which optimisers are tried on, and its derivatives."""

from __future__ import annotations

from typing import Any

import funcgrad.numpy.values as fnp
from funcgrad.numpy.promotion import as_value


def rosen(x: Any) -> Any:
    """Rosenbrock function ``sum(100 (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)``.

    As `scipy.optimize.rosen`.

    Args: x: Points along the first axis.
    Returns: The value.
    Example: print(fg.scipy.optimize.rosen(np.array([1.0, 1.0, 2.0]))) -> 100.0
    """
    x = fnp.asarray(as_value(x, "rosen"))
    return fnp.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0, axis=0)


def rosen_der(x: Any) -> Any:
    """Gradient of `rosen`, as `scipy.optimize.rosen_der`.

    Args: x: Vector.
    Returns: The gradient.
    Example: fg.scipy.optimize.rosen_der(np.array([1.0, 2.0])) -> array([-400.,  200.])
    """
    x = fnp.asarray(as_value(x, "rosen_der"))
    rises = 200 * (x[1:] - x[:-1] ** 2)
    zero = fnp.zeros_like(x[:1])
    falls = -2 * x[:-1] * rises - 2 * (1 - x[:-1])
    return fnp.concatenate([falls, zero]) + fnp.concatenate([zero, rises])


def rosen_hess(x: Any) -> Any:
    """Hessian of `rosen`, as `scipy.optimize.rosen_hess`.

    Args: x: Vector.
    Returns: The matrix.
    Example: fg.scipy.optimize.rosen_hess(np.array([1.0, 2.0]))
        -> array([[ 402., -400.],
                  [-400.,  200.]])
    """
    x = fnp.asarray(as_value(x, "rosen_hess"))
    beside = -400 * x[:-1]
    zero = fnp.zeros_like(x[:1])
    diagonal = fnp.concatenate([1200 * x[:-1] ** 2 - 400 * x[1:] + 2, zero])
    diagonal = diagonal + fnp.concatenate([zero, fnp.full_like(x[1:], 200)])
    return fnp.diag(diagonal) + fnp.diag(beside, 1) + fnp.diag(beside, -1)


def rosen_hess_prod(x: Any, p: Any) -> Any:
    """Hessian of `rosen` times a vector, as `scipy.optimize.rosen_hess_prod`.

    Args:
        x: Vector.
        p: Vector.
    Returns: The product.
    Example: fg.scipy.optimize.rosen_hess_prod(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
        -> array([ 402., -400.])
    """
    return rosen_hess(x) @ fnp.asarray(as_value(p, "rosen_hess_prod"))
