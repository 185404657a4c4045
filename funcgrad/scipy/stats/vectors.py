"""Distributions of vectors: normal, Dirichlet's, multinomial."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.linalg import TriangularSolve
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import broadcast_to, reshape, shape_of
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import both, either, quiet


class Vectors:
    """Base of families of vectors: parameters can be fixed, samples are not drawn."""

    name = ""
    parameters: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<distribution {self.name}({', '.join(self.parameters)})>"

    def __call__(self, *args: Any, **kwargs: Any) -> FrozenVectors:
        """The distribution with its parameters fixed.

        Args:
            *args: Its parameters, in their order.
            **kwargs: The same, by names.
        """
        return FrozenVectors(self, args, kwargs)

    def rvs(self, *args: Any, **kwargs: Any) -> Any:
        """Samples are not drawn here.

        Raises: ArgumentError: Always: randomness comes from a key.
        """
        raise ArgumentError(
            f"{self.name}.rvs: random numbers come from explicit keys. Draw them by "
            f"funcgrad.random.{self.name}."
        )


class FrozenVectors:
    """A family of vectors whose parameters are fixed.

    Args:
        dist: The family.
        args: Parameters by position.
        kwds: Parameters by name.
    """

    def __init__(self, dist: Vectors, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist = dist
        self.args = args
        self.kwds = kwds

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.dist, name)
        return lambda *args: method(*args, *self.args, **self.kwds)


class MultivariateNormal(Vectors):
    """The normal distribution of vectors of given mean and covariance.

    Covariances are matrices of the last two axes, or numbers: variances that all components have
    in common. Leading axes of points, means and covariances broadcast.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.multivariate_normal.logpdf(
        ...     np.array([[0.5, -0.5], [0.0, 1.0]]), np.zeros(2), np.eye(2)
        ... )
        array([-2.08787707, -2.33787707])
    """

    name = "multivariate_normal"
    parameters = ("mean", "cov")

    def _places(
        self, method: str, leading: list[Any], mean: Any, cov: Any
    ) -> tuple[list[Any], Any, Any, int]:
        given = [*leading, 0.0 if mean is None else mean, cov]
        *points, centre, spread = floating(f"multivariate_normal.{method}", *given)
        shapes = [shape_of(centre)[-1:], shape_of(spread)[-1:]]
        if mean is None and not any(shapes):
            shapes.extend(shape_of(x)[-1:] for x in points)
        n = max((s[0] for s in shapes if s), default=1)
        rows = shape_of(spread)
        if (len(rows) > 1 and rows[-2:] != (n, n)) or (rows[-1:] not in ((), (n,))):
            raise ShapeError(
                f"multivariate_normal.{method}: mean and covariance do not fit together: "
                f"{aval_of(centre)} and {aval_of(spread)}."
            )
        if len(rows) == 1:
            spread = reshape(spread, (n, 1)) * np.eye(n, dtype=aval_of(spread).dtype)
        return points, centre, spread, n

    @quiet
    def logpdf(
        self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool | None = None
    ) -> Any:
        """Logarithm of the density.

        Args:
            x: Points, ``(..., n)``.
            mean: Means, ``(..., n)``; by default 0.
            cov: Covariances, ``(..., n, n)``; ``(n,)``, their diagonals; or numbers.
            allow_singular: Whether a covariance may be singular, which must then be one known
                matrix: the density is that on the subspace where the vectors lie.
        Returns: Logarithms, ``(...)``.

        Raises:
            ShapeError: If they do not fit together.
            ArgumentError: If a covariance that may be singular is traced, one of several, or not
                positive semidefinite.

        Example:
            >>> import numpy as np
            >>> from funcgrad.scipy import stats
            >>> x, mean = np.zeros(2), np.zeros(2)
            >>> print(stats.multivariate_normal.logpdf(x, mean, np.eye(2)).round(6))
            -1.837877
        """
        points, centre, spread, n = self._places("logpdf", [x], mean, cov)
        apart = points[0] - centre
        if allow_singular and shape_of(spread):
            return _on_subspace(apart, spread)
        if not shape_of(spread):
            axes = n > 1 or bool(shape_of(centre)) or mean is None
            square = apart * apart
            square = fnp.sum(square, axis=-1) if axes and shape_of(apart) else square
            dimension = n if axes else 1
            return -0.5 * (square / spread) - dimension * (f.HALF_LOG_2PI + 0.5 * f.log(spread))
        if not shape_of(apart) or shape_of(apart)[-1] != n:
            apart = reshape(apart, (*shape_of(apart), 1)) * np.ones(n, aval_of(apart).dtype)
        factor = fnp.linalg.cholesky(spread)
        logs = fnp.sum(f.log(fnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
        z = _solved(factor, apart)
        return -0.5 * fnp.sum(z * z, axis=-1) - n * f.HALF_LOG_2PI - logs

    @quiet
    def pdf(
        self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool | None = None
    ) -> Any:
        """Density.

        Args:
            x: Points, ``(..., n)``.
            mean: Means, ``(..., n)``; by default 0.
            cov: Covariances, as in `logpdf`.
            allow_singular: As in `logpdf`.
        Returns: Densities, ``(...)``.
        """
        return f.exp(self.logpdf(x, mean, cov, allow_singular))

    @quiet
    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        """Entropy in natural units.

        Args:
            mean: Means, ``(..., n)``, of which only the length counts.
            cov: Covariances, as in `logpdf`.
        Returns: Entropies.
        """
        _, _, spread, n = self._places("entropy", [], mean, cov)
        if not shape_of(spread):
            logs = 0.5 * n * f.log(spread)
        else:
            factor = fnp.linalg.cholesky(spread)
            logs = fnp.sum(f.log(fnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
        return n * (f.HALF_LOG_2PI + 0.5) + logs


_NEGLIGIBLE = {4: 1e3, 8: 1e6}
"""So many rounding errors of the largest eigenvalue count as zero, by the bytes of a number."""


def _on_subspace(apart: Any, spread: Any) -> Any:
    """Logarithms of the density on the image of a covariance, and ``-inf`` away from it."""
    if is_traced(spread) or len(shape_of(spread)) > 2:
        raise ArgumentError(
            "multivariate_normal: with allow_singular=True the covariance must be one matrix of "
            f"known values, got {aval_of(spread)}: its rank decides what is computed."
        )
    variances, axes = np.linalg.eigh(spread)
    rounding = np.finfo(variances.dtype).eps * _NEGLIGIBLE[variances.dtype.itemsize]
    negligible = rounding * np.max(np.abs(variances))
    if np.min(variances) < -negligible:
        raise ArgumentError(
            "multivariate_normal: the covariance must be positive semidefinite, its least "
            f"eigenvalue is {np.min(variances):.6g}."
        )
    is_inner = variances > negligible
    inner = fnp.matmul(apart, axes[:, is_inner] / np.sqrt(variances[is_inner]))
    outer = fnp.matmul(apart, axes[:, ~is_inner])
    rank, logs = int(np.sum(is_inner)), float(np.sum(np.log(variances[is_inner])))
    value = -0.5 * fnp.sum(inner * inner, axis=-1) - rank * f.HALF_LOG_2PI - 0.5 * logs
    # SciPy's tolerance of the distance from the subspace.
    is_near = fnp.sum(outer * outer, axis=-1) < (1e3 * negligible) ** 2
    return fnp.where(is_near, value, -np.inf)


def _solved(factor: Any, apart: Any) -> Any:
    """The vectors, multiplied by the inverse of lower triangular matrices."""
    n = shape_of(factor)[-1]
    lead, rows = shape_of(factor)[:-2], shape_of(apart)[:-1]
    if not lead:
        flat = reshape(apart, (math.prod(rows), n))
        solved = TriangularSolve(lower_triangle=True).bind(factor, fnp.swapaxes(flat, 0, 1))
        return reshape(fnp.swapaxes(solved, 0, 1), (*rows, n))
    both_lead = np.broadcast_shapes(lead, rows)
    factor = broadcast_to(factor, (*both_lead, n, n))
    column = reshape(broadcast_to(apart, (*both_lead, n)), (*both_lead, n, 1))
    return reshape(TriangularSolve(lower_triangle=True).bind(factor, column), (*both_lead, n))


class Dirichlet(Vectors):
    """Dirichlet distribution of positive numbers of sum 1.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.dirichlet.logpdf(
        ...     np.array([[0.2, 0.5], [0.3, 0.3], [0.5, 0.2]]), np.array([1.0, 2.0, 3.0])
        ... )
        array([ 1.5040774 , -0.32850407])
    """

    name = "dirichlet"
    parameters = ("alpha",)

    def _alpha(self, method: str, alpha: Any, *rest: Any) -> list[Any]:
        out = floating(f"dirichlet.{method}", alpha, *rest)
        if len(shape_of(out[0])) != 1:
            raise ShapeError(f"dirichlet.{method}: alpha must be a vector, got {aval_of(out[0])}.")
        return out

    @quiet
    def logpdf(self, x: Any, alpha: Any) -> Any:
        """Logarithm of the density.

        Args:
            x: Points along the first axis, ``(n, ...)``; or without their last component, which
                is what is left of 1.
            alpha: Parameters, positive, ``(n,)``.
        Returns: Logarithms, ``-inf`` for what is no point of the simplex.
        Raises: ShapeError: If they do not fit together.
        """
        alpha, x = self._alpha("logpdf", alpha, x)
        n = shape_of(alpha)[0]
        if shape_of(x)[:1] not in ((n,), (n - 1,)):
            raise ShapeError(
                f"dirichlet.logpdf: the first axis of x must have length {n} or {n - 1}, got "
                f"{aval_of(x)}."
            )
        if shape_of(x)[0] != n:
            x = fnp.concatenate([x, 1 - fnp.sum(x, axis=0, keepdims=True)])
        a = reshape(alpha, (n, *(1 for _ in shape_of(x)[1:])))
        norm = fnp.sum(f.lgamma(alpha)) - f.lgamma(fnp.sum(alpha))
        out = fnp.sum(f.xlogy(a - 1, x), axis=0) - norm
        # In single precision a sum of numbers of sum 1 is no nearer to 1 than this.
        slack = 1e-6 if aval_of(x).dtype.itemsize == 4 else 1e-9
        inside = both(fnp.all(x >= 0, axis=0), p.absolute.bind(fnp.sum(x, axis=0) - 1) < n * slack)
        return f.select(both(inside, fnp.all(alpha > 0)), out, -math.inf)

    @quiet
    def pdf(self, x: Any, alpha: Any) -> Any:
        """Density.

        Args:
            x: Points along the first axis, as in `logpdf`.
            alpha: Parameters, positive, ``(n,)``.
        Returns: Densities.
        """
        return f.exp(self.logpdf(x, alpha))

    def mean(self, alpha: Any) -> Any:
        """Mean.

        Args: alpha: Parameters, positive, ``(n,)``.
        Returns: A vector, ``(n,)``.
        """
        (alpha,) = self._alpha("mean", alpha)
        return alpha / fnp.sum(alpha)

    def var(self, alpha: Any) -> Any:
        """Variances of the components.

        Args: alpha: Parameters, positive, ``(n,)``.
        Returns: A vector, ``(n,)``.
        """
        (alpha,) = self._alpha("var", alpha)
        total = fnp.sum(alpha)
        return alpha * (total - alpha) / (total * total * (total + 1))

    def cov(self, alpha: Any) -> Any:
        """Covariances of the components.

        Args: alpha: Parameters, positive, ``(n,)``.
        Returns: A matrix, ``(n, n)``.
        """
        (alpha,) = self._alpha("cov", alpha)
        total = fnp.sum(alpha)
        share = alpha / total
        return (fnp.diag(share) - fnp.outer(share, share)) / (total + 1)

    def entropy(self, alpha: Any) -> Any:
        """Entropy in natural units.

        Args: alpha: Parameters, positive, ``(n,)``.
        Returns: A number.
        """
        (alpha,) = self._alpha("entropy", alpha)
        total, n = fnp.sum(alpha), shape_of(alpha)[0]
        norm = fnp.sum(f.lgamma(alpha)) - f.lgamma(total)
        return norm + (total - n) * f.digamma(total) - fnp.sum((alpha - 1) * f.digamma(alpha))


class Multinomial(Vectors):
    """How often each of several outcomes occurs in ``n`` trials.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.multinomial.logpmf(np.array([[1, 2], [0, 3]]), 3, np.array([0.4, 0.6]))
        array([-0.83932969, -1.53247687])
    """

    name = "multinomial"
    parameters = ("n", "p")

    @quiet
    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """Logarithm of the probability of counts.

        Args:
            x: Counts, ``(..., m)``.
            n: Number of trials.
            p: Probabilities of the outcomes, ``(..., m)``.
        Returns: Logarithms, ``-inf`` unless the counts are integers from 0 on and sum to ``n``.

        Example:
            >>> import numpy as np
            >>> from funcgrad.scipy import stats
            >>> print(stats.multinomial.pmf([1, 2], 3, [0.5, 0.5]).round(6))
            0.375
        """
        x, n, p = floating("multinomial.logpmf", x, n, p)
        x = f.stop_gradient(x)
        out = f.lgamma(n + 1) + fnp.sum(f.xlogy(x, p) - f.lgamma(x + 1), axis=-1)
        counts = fnp.all(either(x < 0, f.floor(x) != x) == np.False_, axis=-1)
        return f.select(both(counts, fnp.sum(x, axis=-1) == n), out, -math.inf)

    @quiet
    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        """Probability of counts.

        Args:
            x: Counts, ``(..., m)``.
            n: Number of trials.
            p: Probabilities of the outcomes, ``(..., m)``.
        Returns: Probabilities.
        """
        return f.exp(self.logpmf(x, n, p))

    def mean(self, n: Any, p: Any) -> Any:
        """Mean.

        Args:
            n: Number of trials.
            p: Probabilities of the outcomes, ``(..., m)``.
        Returns: Vectors, ``(..., m)``.
        """
        n, p = floating("multinomial.mean", n, p)
        return reshape(n, (*shape_of(n), 1)) * p

    def cov(self, n: Any, p: Any) -> Any:
        """Covariances of the counts.

        Args:
            n: Number of trials.
            p: Probabilities of the outcomes, ``(..., m)``.
        Returns: Matrices, ``(..., m, m)``.
        """
        n, p = floating("multinomial.cov", n, p)
        m = shape_of(p)[-1]
        column = reshape(p, (*shape_of(p), 1))
        row = reshape(p, (*shape_of(p)[:-1], 1, m))
        own = column * np.eye(m, dtype=aval_of(p).dtype)
        return reshape(n, (*shape_of(n), 1, 1)) * (own - column * row)

    @quiet
    def entropy(self, n: int, p: Any) -> Any:
        """Entropy in natural units.

        Args:
            n: Number of trials, an int.
            p: Probabilities of the outcomes, ``(..., m)``.
        Returns: Entropies.
        """
        n = int(n)
        (p,) = floating("multinomial.entropy", p)
        counts = np.arange(n + 1).astype(aval_of(p).dtype)
        share = reshape(p, (*shape_of(p), 1))
        ways = f.lgamma(counts[-1] + 1) - f.lgamma(counts + 1) - f.lgamma(counts[-1] - counts + 1)
        mass = f.exp(ways + f.xlogy(counts, share) + f.xlog1py(counts[-1] - counts, -share))
        logs = fnp.sum(mass * f.lgamma(counts + 1), axis=(-2, -1))
        return -f.lgamma(counts[-1] + 1) - n * fnp.sum(f.xlogy(p, p), axis=-1) + logs


multivariate_normal, dirichlet, multinomial = MultivariateNormal(), Dirichlet(), Multinomial()
