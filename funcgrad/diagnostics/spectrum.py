"""The spectrum of a Hessian, without the Hessian.

Lanczos' method needs products of the Hessian with vectors alone, and those are derivatives of the
gradient along a direction. From a random unit vector ``v`` it makes a tridiagonal matrix ``T`` of
a few rows. The eigenvalues ``t_i`` of ``T`` approximate extreme eigenvalues of the Hessian ``H``;
with the squares ``w_i`` of the first entries of its eigenvectors they are the nodes and weights of
Gauss' quadrature: ``sum_i w_i f(t_i)`` equals ``v^T f(H) v`` for polynomials up to degree
``2 m - 1``. The mean over random ``v`` estimates ``trace f(H) / n`` (Golub and Meurant; Ghorbani,
Krishnan and Xiao, 2019).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.api.arguments import check_callable
from funcgrad.api.compilation import jit
from funcgrad.api.differentiation import grad, jvp
from funcgrad.base.annotations import Function
from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError
from funcgrad.flatten_util import ravel_pytree


@dataclass(frozen=True)
class Spectrum:
    """The result of `hessian_spectrum`.

    Attributes:
        size: Number of parameters, which is the number of eigenvalues.
        nodes: Eigenvalues of the tridiagonal matrices in ascending order, one array per start.
        weights: Weights of the nodes, likewise; each array sums to 1.
        errors: Bounds of the nodes' distances to an eigenvalue, likewise.
    """

    size: int
    nodes: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, ...]
    errors: tuple[np.ndarray, ...]

    @property
    def largest(self) -> float:
        """The largest eigenvalue: from below, and soon exact."""
        return max(float(nodes[-1]) for nodes in self.nodes)

    @property
    def smallest(self) -> float:
        """The least eigenvalue: from above, and soon exact."""
        return min(float(nodes[0]) for nodes in self.nodes)

    @property
    def trace(self) -> float:
        """An estimate of the sum of the eigenvalues."""
        return self.size * self.mean(lambda x: x)

    def mean(self, f: Callable[[Any], Any]) -> float:
        """An estimate of the mean of ``f`` over the eigenvalues.

        Args: f: Maps an array to one of its shape.
        """
        rows = zip(self.nodes, self.weights, strict=True)
        return float(np.mean([np.sum(weights * f(nodes)) for nodes, weights in rows]))

    def density(self, points: Any, width: float | None = None) -> np.ndarray:
        """Density of the eigenvalues, smoothed by a Gaussian.

        Args:
            points: Where: array of any shape.
            width: Standard deviation of the Gaussian; by default a hundredth of the range.
        Returns: An array of the shape of ``points``; its integral is 1.
        """
        points = np.asarray(points, np.float64)
        if width is None:
            width = max((self.largest - self.smallest) / 100, 1e-12)
        total = np.zeros(points.shape)
        for nodes, weights in zip(self.nodes, self.weights, strict=True):
            apart = (points[..., None] - nodes) / width
            total += np.sum(weights * np.exp(-0.5 * apart**2), axis=-1)
        return total / (len(self.nodes) * width * np.sqrt(2 * np.pi))

    def __str__(self) -> str:
        return (
            f"{self.size} eigenvalues from {self.smallest:.4g} to {self.largest:.4g}, trace about "
            f"{self.trace:.4g} ({len(self.nodes)} starts of {len(self.nodes[0])} steps)"
        )


def hessian_spectrum(
    loss: Function, params: Any, *batch: Any, steps: int = 30, starts: int = 4, seed: int = 0
) -> Spectrum:
    """Extreme eigenvalues and the density of the spectrum of a loss' Hessian.

    Costs ``steps * starts`` products of the Hessian with a vector, about two gradients each, and
    memory for ``steps`` vectors. Vectors are made orthogonal to all earlier ones, twice, so that
    eigenvalues do not appear several times.

    Args:
        loss: Maps the parameters and the batch to a real scalar, twice differentiable.
        params: Pytree of real floating arrays.
        *batch: Further arguments of ``loss``.
        steps: Rows of the tridiagonal matrices; at most the number of parameters is used.
        starts: Number of random start vectors.
        seed: Their seed.
    Returns: A `Spectrum`.
    Raises: ArgumentError: If there are no parameters, or no steps.

    Example:
        >>> scales = np.array([1.0, 2.0, 7.0])
        >>> found = fg.diagnostics.hessian_spectrum(
        ...     lambda p: np.sum(scales * p["x"] ** 2) / 2, {"x": np.zeros(3)}
        ... )
        >>> round(found.smallest, 6), round(found.largest, 6)
        (1.0, 7.0)
    """
    check_callable(loss, "hessian_spectrum")
    flat, unravel = ravel_pytree(params)
    if flat.dtype.kind != "f" or not flat.size or steps < 1 or starts < 1:
        raise ArgumentError(
            "hessian_spectrum needs parameters that are real floating arrays, steps >= 1 and "
            f"starts >= 1, got {flat.size} numbers of dtype {flat.dtype}, steps={steps} and "
            f"starts={starts}."
        )

    @jit
    def product(flat: Any, vector: Any, *batch: Any) -> Any:
        def slope(flat: Any) -> Any:
            return grad(lambda x: loss(unravel(x), *batch))(flat)

        return jvp(slope, (flat,), (vector,))[1]

    rng = np.random.default_rng(seed)

    def image(vector: Any) -> Any:
        return product(flat, vector.astype(flat.dtype), *batch)

    rows = [_gauss(*_lanczos(image, rng.standard_normal(flat.size), steps)) for _ in range(starts)]
    nodes, weights, errors = zip(*rows, strict=True)
    return Spectrum(flat.size, tuple(nodes), tuple(weights), tuple(errors))


def _lanczos(
    product: Callable[[Any], Any], start: np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Diagonal and off-diagonal of the tridiagonal matrix; the latter has one entry more.

    It ends early where the vectors span a space that the matrix maps to itself.
    """
    steps = min(steps, start.size)
    basis = np.zeros((steps, start.size))
    basis[0] = start / np.linalg.norm(start)
    diagonal, off = [], []
    for i in range(steps):
        image = np.asarray(product(basis[i]), np.float64)
        diagonal.append(float(basis[i] @ image))
        size = float(np.linalg.norm(image))
        for _ in range(2):
            image = image - basis[: i + 1].T @ (basis[: i + 1] @ image)
        off.append(float(np.linalg.norm(image)))
        if i + 1 == steps or off[-1] <= 1e-12 * size:
            break
        basis[i + 1] = image / off[-1]
    return np.array(diagonal), np.array(off)


def _gauss(diagonal: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, weights and error bounds of the quadrature that belongs to a tridiagonal matrix."""
    matrix = np.diag(diagonal) + np.diag(off[:-1], 1) + np.diag(off[:-1], -1)
    nodes, vectors = np.linalg.eigh(matrix)
    return nodes, vectors[0] ** 2, off[-1] * np.abs(vectors[-1])
