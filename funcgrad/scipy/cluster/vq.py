"""`scipy.cluster.vq` on arrays and traced values: the nearest of some vectors, and their means."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.cluster.vq

import funcgrad.numpy.values as fnp
from funcgrad import lax, ops
from funcgrad.core.avals import aval_of
from funcgrad.errors import ShapeError
from funcgrad.numpy.host_functions import host_function
from funcgrad.numpy.public_functions import present_results
from funcgrad.numpy.reducing import safe_sqrt
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import floating

__all__ = ["ClusterError", "kmeans", "kmeans2", "py_vq", "vq", "whiten"]

ClusterError = scipy.cluster.vq.ClusterError
kmeans = host_function("scipy.cluster.vq", "kmeans")


def whiten(obs: Any, check_finite: bool | None = None) -> Any:
    """Columns over their standard deviations, as `scipy.cluster.vq.whiten`.

    Args: obs: ``(m, n)``.
    Returns: ``(m, n)``; columns that do not vary are left as they are.
    Example: fg.scipy.cluster.vq.whiten(np.array([[1.0, 10.0], [3.0, 30.0]]))
        -> array([[1., 1.],
                  [3., 3.]])
    """
    (x,) = floating("whiten", obs)
    deviation = fnp.std(x, axis=0)
    return x / fnp.where(deviation == 0, 1.0, deviation)


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """Nearest vector of a book to every observation, as `scipy.cluster.vq.vq`.

    Args:
        obs: ``(m, n)``; or ``(m,)``, of numbers.
        code_book: ``(k, n)``; or ``(k,)``.
    Returns: Its number ``(m,)``, and its distance ``(m,)``, whose derivative is 0 where it is 0.
    Raises: ShapeError: If vectors have different lengths.
    Example: print(fg.scipy.cluster.vq.vq(np.array([0.0, 1.0, 5.0]), np.array([0.5, 4.0])))
        -> (array([0, 0, 1]), array([0.5, 0.5, 1. ]))
    """
    x, book = floating("vq", obs, code_book)
    ndim = len(shape_of(x))
    if ndim == 1 and len(shape_of(book)) == 1:
        x, book = x[:, None], book[:, None]
    if len(shape_of(x)) != 2 or len(shape_of(book)) != 2 or shape_of(x)[1] != shape_of(book)[1]:
        raise ShapeError(f"vq: {aval_of(x)} and {aval_of(book)} are not vectors of one length.")
    squares = fnp.sum(fnp.square(x[:, None, :] - book[None, :, :]), axis=-1)
    code = fnp.argmin(squares, axis=1)
    nearest = fnp.take_along_axis(squares, code[:, None], axis=1)[:, 0]
    return code, safe_sqrt(nearest)


py_vq = vq


def kmeans2(
    data: Any,
    k: Any,
    iter: int = 10,
    thresh: float = 1e-5,
    minit: str = "random",
    missing: str = "warn",
    check_finite: bool = True,
    *,
    rng: Any = None,
    seed: Any = None,
) -> tuple[Any, Any]:
    """Means of the observations that are nearest to each of them, as `scipy.cluster.vq.kmeans2`.

    With first means given (``minit="matrix"``), arguments may be traced: the result is
    differentiable, with the numbers of the nearest means as constants. Otherwise it is SciPy's own
    function, of known values.

    Args:
        data: ``(m, n)``, or ``(m,)`` of numbers.
        k: First means ``(k, n)`` (or ``(k,)``); for other ``minit``, how many.
        iter: How many times means are taken.
        thresh: Accepted for SciPy's signature, where it is not used either.
        minit: "matrix"; or how SciPy's function finds first means.
        missing: What SciPy's function does where no observation is nearest to a mean. With
            ``"matrix"`` the mean stays where it is.
        rng: For SciPy's function.
        seed: For SciPy's function.
    Returns: Means ``(k, n)``, and the numbers of the nearest ones ``(m,)``.

    Example:
        >>> x = np.array([0.0, 1.0, 9.0, 11.0])
        >>> print(fg.scipy.cluster.vq.kmeans2(x, np.array([0.0, 10.0]), minit="matrix"))
        (array([ 0.5, 10. ]), array([0, 0, 1, 1]))
    """
    if minit != "matrix" and not np.ndim(k):
        options = {"rng": rng, "seed": seed}
        given = {name: value for name, value in options.items() if value is not None}
        return _of_scipy(data, k, iter, thresh, minit, missing, check_finite, **given)
    x, means = floating("kmeans2", data, k)
    is_line = len(shape_of(x)) == 1
    x, means = (v[:, None] if is_line else v for v in (x, means))
    if len(shape_of(x)) != 2 or shape_of(x)[1:] != shape_of(means)[1:]:
        raise ShapeError(f"kmeans2: {aval_of(x)} and means {aval_of(means)} do not fit.")
    count = shape_of(means)[0]

    def step(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        means, _ = carry
        code, _ = vq(x, means)
        sizes = ops.segment_sum(fnp.ones_like(x[:, 0]), code, count)[:, None]
        sums = ops.segment_sum(x, code, count)
        return fnp.where(sizes > 0, sums / fnp.maximum(sizes, 1), means), code

    first = (means, np.zeros(shape_of(x)[0], np.int64))
    means, code = lax.fori_loop(0, int(iter), step, first)
    return (means[:, 0] if is_line else means), code


_of_scipy = host_function("scipy.cluster.vq", "kmeans2")

present_results(__name__)
