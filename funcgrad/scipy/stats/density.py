"""Densities estimated from samples by Gaussian kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import random
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.shaping import reshape
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.linalg import TriangularSolve
from funcgrad.primitives.shape import shape_of
from funcgrad.primitives.special import ndtr
from funcgrad.scipy.exponentials import floating, logsumexp
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.vectors import multivariate_normal
from funcgrad.tree_util import register_pytree_node_class

Bandwidth = str | float | Callable[..., Any] | None


def _logs_of_pairs(points: Any, others: Any, covariance: Any) -> Any:
    """Logarithms of the normal density of the differences of points, ``(d, m)`` and ``(d, n)``.

    Points, and not their many differences, are multiplied by the root of the inverse covariance. It
    does not matter from where they are counted; from their middle, they are counted accurately.

    Returns: Logarithms, ``(m, n)``.
    """
    points, others, covariance = floating("gaussian_kde", points, others, covariance)
    middle = p.stop_gradient.bind(fnp.mean(others, axis=1, keepdims=True))
    factor = fnp.linalg.cholesky(covariance)
    solve, d = TriangularSolve(lower_triangle=True), shape_of(points)[0]
    rows, columns = (fnp.swapaxes(solve.bind(factor, x - middle), 0, 1) for x in (points, others))
    apart = reshape(rows, (-1, 1, d)) - columns
    logs = fnp.sum(f.log(fnp.diagonal(factor)))
    return -0.5 * fnp.sum(apart * apart, axis=-1) - d * f.HALF_LOG_2PI - logs


@register_pytree_node_class
class gaussian_kde:
    """A density: the mean of normal densities around given points.

    Args:
        dataset: The points, ``(d, n)``, or ``(n,)`` numbers.
        bw_method: How wide the normal densities are, as a factor of the standard deviation of the
            points: ``"scott"`` (the default), ``"silverman"``, a number, or a function of this.
        weights: Weights of the points, ``(n,)``; by default equal ones.

    Attributes:
        dataset: The points, ``(d, n)``.
        weights: Their weights, of sum 1.
        covariance: Covariance of the normal densities.
        inv_cov: Its inverse.
        factor: The factor of the standard deviation.
        neff: The number of points of equal weight that say as much.
    Raises: ShapeError: If the dataset is no vector or matrix, or has less than two points.

    Example:
        >>> kde = fg.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]))
        >>> print(kde(np.array([1.0])).round(3))
        [0.215]
    """

    def __init__(self, dataset: Any, bw_method: Bandwidth = None, weights: Any = None) -> None:
        (points,) = floating("gaussian_kde", dataset)
        if len(shape_of(points)) < 2:
            points = reshape(points, (1, -1) if shape_of(points) else (1, 1))
        d, n = shape_of(points)
        if len(shape_of(points)) != 2 or n < 2:
            raise ShapeError(
                f"gaussian_kde needs several points, (d, n) or (n,), got {aval_of(points)}."
            )
        if weights is None:
            weights = np.full(n, 1 / n, aval_of(points).dtype)
        else:
            points, weights = floating("gaussian_kde", points, weights)
            if shape_of(weights) != (n,):
                raise ShapeError(
                    f"gaussian_kde: {n} points need a vector of {n} weights, got "
                    f"{aval_of(weights)}."
                )
            weights = weights / fnp.sum(weights)
        self.dataset, self.weights = points, weights
        self.neff = 1 / fnp.sum(weights * weights)
        self._spread = fnp.cov(points, rowvar=True, bias=False, aweights=weights)
        self._spread = reshape(self._spread, (d, d))
        self.set_bandwidth(bw_method)

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return int(shape_of(self.dataset)[0])

    @property
    def n(self) -> int:
        """Number of points."""
        return int(shape_of(self.dataset)[1])

    def scotts_factor(self) -> Any:
        """Scott's rule: ``neff ** (-1 / (d + 4))``."""
        return fnp.power(self.neff, -1.0 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """Silverman's rule: ``(neff (d + 2) / 4) ** (-1 / (d + 4))``."""
        return fnp.power(self.neff * (self.d + 2.0) / 4.0, -1.0 / (self.d + 4))

    def set_bandwidth(self, bw_method: Bandwidth = None) -> None:
        """Choose how wide the normal densities are.

        Args: bw_method: As for the class.
        Raises: ArgumentError: If there is no such rule.
        """
        if bw_method is None or bw_method == "scott":
            self.factor = self.scotts_factor()
        elif isinstance(bw_method, str):
            if bw_method != "silverman":
                raise ArgumentError(
                    "gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function, "
                    f"got {bw_method!r}."
                )
            self.factor = self.silverman_factor()
        else:
            self.factor = bw_method(self) if callable(bw_method) else bw_method
        self.covariance = self._spread * (self.factor * self.factor)

    def covariance_factor(self) -> Any:
        """The factor of the standard deviation."""
        return self.factor

    @property
    def inv_cov(self) -> Any:
        """Inverse of the covariance."""
        return fnp.linalg.inv(self.covariance)

    def _points(self, method: str, points: Any) -> Any:
        (points,) = floating(f"gaussian_kde.{method}", points)
        if len(shape_of(points)) < 2:
            points = reshape(
                points, (self.d, 1) if shape_of(points) == (self.d,) and self.d > 1 else (1, -1)
            )
        if shape_of(points)[0] != self.d:
            raise ShapeError(
                f"gaussian_kde.{method}: points have {shape_of(points)[0]} components, the dataset "
                f"has {self.d}."
            )
        return points

    def logpdf(self, x: Any) -> Any:
        """Logarithm of the density.

        Args: x: Points, ``(d, m)`` or ``(m,)``.
        Returns: Logarithms, ``(m,)``.
        """
        points = self._points("logpdf", x)
        logs = _logs_of_pairs(points, self.dataset, self.covariance)
        return logsumexp(logs, axis=1, b=self.weights)

    def evaluate(self, points: Any) -> Any:
        """Density.

        Args: points: Points, ``(d, m)`` or ``(m,)``.
        Returns: Densities, ``(m,)``.
        """
        return f.exp(self.logpdf(points))

    pdf = evaluate
    __call__ = evaluate

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """Integral of the product with a normal density.

        Args:
            mean: Its mean, ``(d,)``.
            cov: Its covariance, ``(d, d)``.
        Returns: A number.
        """
        mean, cov = floating("gaussian_kde.integrate_gaussian", mean, cov)
        mean = reshape(mean, (self.d,))
        total = self.covariance + reshape(cov, (self.d, self.d))
        points = fnp.swapaxes(self.dataset, 0, 1)
        return fnp.sum(multivariate_normal.pdf(points, mean, total) * self.weights)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """Integral between two numbers.

        Args:
            low: Lower end.
            high: Upper end.
        Returns: A number.
        Raises: ArgumentError: If the points have several components.
        """
        if self.d != 1:
            raise ArgumentError("gaussian_kde.integrate_box_1d is for points of one component.")
        width = f.sqrt(self.covariance[0, 0])
        ends = [(end - self.dataset[0]) / width for end in (low, high)]
        return fnp.sum(self.weights * (ndtr.bind(ends[1]) - ndtr.bind(ends[0])))

    def integrate_kde(self, other: gaussian_kde) -> Any:
        """Integral of the product with another one.

        Args: other: Another density, of the same dimension.
        Returns: A number.
        Raises: ShapeError: If the dimensions differ.
        """
        if other.d != self.d:
            raise ShapeError(
                f"gaussian_kde.integrate_kde: the dimensions {self.d} and {other.d} differ."
            )
        total = self.covariance + other.covariance
        densities = f.exp(_logs_of_pairs(self.dataset, other.dataset, total))
        weights = reshape(self.weights, (-1, 1)) * other.weights
        return fnp.sum(densities * weights)

    def resample(self, key: Any, shape: int | tuple[int, ...] = ()) -> Any:
        """Samples, drawn with a key.

        Args:
            key: A key of `funcgrad.random`.
            shape: How many.
        Returns: Points, ``(d, *shape)``.
        """
        lengths = (shape,) if isinstance(shape, int) else tuple(shape)
        which, noise = random.split(key)
        places = random.choice(which, self.n, lengths, p=self.weights)
        dtype = aval_of(self.dataset).dtype
        chosen = fnp.take(self.dataset, places, axis=1)
        steps = random.multivariate_normal(
            noise, np.zeros(self.d, dtype), self.covariance, lengths, dtype
        )
        return chosen + fnp.moveaxis(steps, -1, 0)

    def marginal(self, dimensions: Any) -> gaussian_kde:
        """The density of some of the components.

        Args: dimensions: Their indices.
        Returns: Another density.
        """
        kept = np.atleast_1d(dimensions)
        out = gaussian_kde(self.dataset[kept], 1.0, self.weights)
        out.factor = self.factor
        out.covariance = out._spread * (self.factor * self.factor)
        return out

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Its arrays."""
        return (
            self.dataset, self.weights, self.neff, self._spread, self.factor, self.covariance
        ), None  # fmt: skip

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[Any, ...]) -> gaussian_kde:
        """The density of these arrays."""
        out = object.__new__(cls)
        (
            out.dataset, out.weights, out.neff, out._spread, out.factor, out.covariance
        ) = children  # fmt: skip
        return out
