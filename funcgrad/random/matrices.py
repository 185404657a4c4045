"""Random vectors of given covariance, and random orthogonal matrices."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.base.dialect import fails_as_nan
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lax.operands import Array, ArrayLike
from funcgrad.primitives import elementwise as primitive
from funcgrad.primitives import linalg
from funcgrad.primitives.contraction import Contract
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.shape import broadcast_to, reshape
from funcgrad.random.distributions import normal
from funcgrad.random.keys import canonical_shape, refuse_sharding
from funcgrad.random.parameters import floating_dtype, parameter

_LETTERS = "abcdefghijklmnopqrstuvw"


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: None = None,
) -> Array:
    """Normal vectors of given mean and covariance.

    Args:
        mean: Means, ``(..., n)``.
        cov: Covariances, symmetric and positive definite, ``(..., n, n)``.
        shape: Shape of the result without its last axis, to which the leading axes of the
            parameters broadcast; by default that of these together.
        method: How a covariance is factored: by ``"cholesky"``, ``"eigh"`` or ``"svd"``. The last
            two take singular ones too.
    Returns: The samples, ``(*shape, n)``, differentiable in ``mean`` and ``cov``.

    Raises:
        ArgumentError: If there is no such method.
        ShapeError: If mean, covariance and shape do not fit.
    Example: fg.random.multivariate_normal(fg.random.key(0), np.zeros(2), np.eye(2))
        -> array([-0.20584214, -0.78476578])
    """
    refuse_sharding("multivariate_normal", out_sharding)
    if method not in ("cholesky", "eigh", "svd"):
        raise ArgumentError(
            "random.multivariate_normal: method must be 'cholesky', 'eigh' or 'svd', got "
            f"{method!r}."
        )
    wanted = floating_dtype("multivariate_normal", dtype)
    centre, spread = (parameter("multivariate_normal", x, wanted) for x in (mean, cov))
    n = shape_of(centre)[-1:]
    if not n or shape_of(spread)[-2:] != (*n, *n):
        raise ShapeError(
            "random.multivariate_normal needs a mean of one axis or more and square matrices of "
            f"the length of its last one, got {aval_of(centre)} and {aval_of(spread)}."
        )
    own = lax.broadcast_shapes(shape_of(centre)[:-1], shape_of(spread)[:-2])
    lead = own if shape is None else canonical_shape("multivariate_normal", shape)
    if lax.broadcast_shapes(lead, own) != lead:
        raise ShapeError(
            f"random.multivariate_normal: parameters of shape {own} do not broadcast to the shape "
            f"{lead} that was asked for."
        )
    drawn = normal(key, (*lead, *n), wanted)
    factor = _factor(spread, method)
    axes = _LETTERS[: len(lead)]
    if len(shape_of(factor)) == 2:
        rotated = Contract(axes + "y", "xy", axes + "x").bind(drawn, factor)
    else:
        factor = broadcast_to(factor, (*lead, *n, *n))
        rotated = Contract(axes + "y", axes + "xy", axes + "x").bind(drawn, factor)
    return primitive.add.bind(rotated, centre)


def _factor(cov: Array, method: str) -> Array:
    """A matrix whose product with its transpose is the covariance."""
    if method == "cholesky":
        return linalg.Cholesky(nan_if_indefinite=fails_as_nan()).bind(cov)
    if method == "eigh":
        values, vectors = linalg.Eigh().bind(cov)
    else:
        vectors, values, _ = linalg.Svd().bind(cov)
    roots = primitive.sqrt.bind(values)
    return vectors * reshape(roots, (*shape_of(roots)[:-1], 1, shape_of(roots)[-1]))


def orthogonal(
    key: ArrayLike,
    n: int,
    shape: int | Sequence[int] = (),
    dtype: Any = None,
    m: int | None = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Orthogonal matrices, uniformly distributed.

    Args:
        n: Number of rows.
        shape: Shape of the result without its last two axes.
        dtype: float64 by default, float32, or a complex dtype, for unitary matrices.
        m: Number of columns, by default ``n``; then rows or columns are orthonormal, the shorter
            ones.
    Returns: Matrices, ``(*shape, n, m)``.

    Example:
        >>> q = fg.random.orthogonal(fg.random.key(0), 3)
        >>> print(bool(np.allclose(q.T @ q, np.eye(3))))
        True
    """
    refuse_sharding("orthogonal", out_sharding)
    wanted = floating_dtype("orthogonal", dtype, "fc")
    lengths = canonical_shape("orthogonal", shape)
    rows = index(n)
    columns = rows if m is None else index(m)
    drawn = normal(key, (*lengths, max(rows, columns), min(rows, columns)), wanted)
    q, r = linalg.Qr().bind(drawn)
    own = np.eye(min(rows, columns), dtype=wanted)
    diagonal = lax.reduce_sum(primitive.mul.bind(r, own), (len(lengths),))
    signs = primitive.sign.bind(diagonal)
    q = q * reshape(signs, (*lengths, 1, min(rows, columns)))
    return q if rows >= columns else linalg.matrix_transpose(q)
