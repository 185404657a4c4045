"""Kernels as people write them for NumPy: loops, slices, assignments, and their derivatives.

Each is run by NumPy itself, compiled, and differentiated both ways; gradients are compared with
differences of what NumPy computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp

RNG = numpy.random.default_rng(3)


def jacobi(np: Any, a: Any, b: Any) -> Any:
    """Two buffers, each written from the other."""
    for _ in range(30):
        b[1:-1, 1:-1] = 0.25 * (a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1])
        a[1:-1, 1:-1] = 0.25 * (b[1:-1, :-2] + b[1:-1, 2:] + b[:-2, 1:-1] + b[2:, 1:-1])
    return a


def sweep(np: Any, a: Any) -> Any:
    """Gauss and Seidel: every cell is made of neighbours that were changed before."""
    rows, columns = a.shape
    for _ in range(3):
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                a[i, j] = 0.2 * (a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
    return a


def waves(np: Any, e: Any, h: Any) -> Any:
    """Electric and magnetic fields on staggered grids, with a source."""
    for t in range(40):
        e[0] = np.sin(0.2 * t)
        e[1:] -= 0.5 * (h[1:] - h[:-1])
        h[:-1] -= 0.7 * (e[1:] - e[:-1])
    return e, h


def tridiagonal(np: Any, lower: Any, diagonal: Any, upper: Any, x: Any) -> Any:
    """Elimination forwards, substitution backwards."""
    n = x.shape[0]
    for i in range(1, n):
        w = lower[i] / diagonal[i - 1]
        diagonal[i] -= w * upper[i - 1]
        x[i] -= w * x[i - 1]
    x[n - 1] /= diagonal[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (x[i] - upper[i] * x[i + 1]) / diagonal[i]
    return x


def recursive_filter(np: Any, image: Any) -> Any:
    """Second order along rows, both directions."""
    forwards, backwards = np.zeros_like(image), np.zeros_like(image)
    forwards[:, 0] = image[:, 0]
    forwards[:, 1] = image[:, 1] + 0.5 * forwards[:, 0]
    for j in range(2, image.shape[1]):
        forwards[:, j] = image[:, j] + 0.5 * forwards[:, j - 1] - 0.2 * forwards[:, j - 2]
    backwards[:, -1] = image[:, -1]
    for j in range(image.shape[1] - 2, -1, -1):
        backwards[:, j] = 0.3 * image[:, j] + 0.6 * backwards[:, j + 1]
    return forwards + backwards


def levinson(np: Any, r: Any) -> Any:
    """Durbin's recursion: the part in use grows by one in every step."""
    y = np.zeros_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta = beta * (1.0 - alpha * alpha)
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def triangular_factor(np: Any, a: Any) -> Any:
    """Cholesky, element by element, in place."""
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = (a[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - np.dot(a[i, :i], a[i, :i]))
    return np.tril(a)


def gram_schmidt(np: Any, a: Any) -> Any:
    """Columns made orthogonal to those before, modified."""
    r = np.zeros((a.shape[1], a.shape[1]))
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        a[:, k] /= r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(a[:, k], a[:, j])
            a[:, j] -= a[:, k] * r[k, j]
    return a, r


def shortest_paths(np: Any, d: Any) -> Any:
    """Floyd and Warshall."""
    for k in range(d.shape[0]):
        d[:] = np.minimum(d, np.add.outer(d[:, k], d[k, :]))
    return d


def convolution(np: Any, image: Any, weights: Any) -> Any:
    """Windows, one place of the result after the other."""
    k = weights.shape[0]
    out = np.empty((image.shape[0] - k + 1, image.shape[1] - k + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.sum(image[i : i + k, j : j + k] * weights)
    return out


def leapfrog(np: Any, position: Any, velocity: Any) -> Any:
    """Bodies that attract each other, with the energy of every step."""
    energies = np.zeros(60)
    for t in range(60):
        apart = position[None, :] - position[:, None]
        pull = apart / (apart**2 + 0.1) ** 1.5
        velocity += 0.01 * np.sum(pull, axis=1)
        position += 0.01 * velocity
        energies[t] = 0.5 * np.sum(velocity**2)
    return position, energies


def sorting_network(np: Any, x: Any) -> Any:
    """Odd and even exchanges: elements change places."""
    n = x.shape[0]
    for turn in range(n):
        for i in range(turn % 2, n - 1, 2):
            low, high = np.minimum(x[i], x[i + 1]), np.maximum(x[i], x[i + 1])
            x[i], x[i + 1] = low, high
    return x


class Kernel(NamedTuple):
    """A kernel, its arguments, and what tracing makes of it.

    Attributes:
        function: Takes a module of NumPy's functions, and arrays, which it may change.
        arguments: The arrays.
        most: How many equations its program has at most.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    most: int


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape)


BASE = normal(9, 9)
KERNELS = [
    Kernel(jacobi, (normal(8, 9), normal(8, 9)), 1),
    Kernel(sweep, (normal(9, 8),), 1),
    Kernel(waves, (normal(20), normal(20)), 1),
    Kernel(tridiagonal, (0.1 * normal(60), 2 + 0.1 * normal(60), 0.1 * normal(60), normal(60)), 15),
    Kernel(recursive_filter, (normal(4, 70),), 26),
    Kernel(levinson, (0.1 * normal(12),), 230),
    Kernel(triangular_factor, (BASE @ BASE.T + 9 * numpy.eye(9),), 570),
    Kernel(gram_schmidt, (normal(7, 5),), 246),
    Kernel(shortest_paths, (RNG.uniform(1, 9, (50, 50)),), 1),
    Kernel(convolution, (normal(12, 11), normal(3, 3)), 2),
    Kernel(leapfrog, (normal(5), normal(5)), 2),
    Kernel(sorting_network, (normal(20),), 1),
]


def of_copies(kernel: Kernel, np: Any) -> Callable[..., list[Any]]:
    def run(*arrays: Any) -> list[Any]:
        found = kernel.function(np, *(x.copy() for x in arrays))
        return list(found) if isinstance(found, tuple) else [found]

    return run


every_kernel = pytest.mark.parametrize(
    "kernel", KERNELS, ids=lambda kernel: kernel.function.__name__
)


@pytest.mark.sampled(4)
@every_kernel
def test_values(kernel: Kernel) -> None:
    wanted = of_copies(kernel, numpy)(*kernel.arguments)
    got = fg.jit(of_copies(kernel, fnp))(*kernel.arguments)
    for x, y in zip(got, wanted, strict=True):
        numpy.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


@every_kernel
def test_lengths_of_programs(kernel: Kernel) -> None:
    program = fg.make_jaxpr(of_copies(kernel, fnp))(*kernel.arguments)
    assert len(program.eqns) <= kernel.most


@pytest.mark.sampled(8)
@every_kernel
def test_gradients(kernel: Kernel) -> None:
    rng = numpy.random.default_rng(5)
    weights = [rng.normal(size=y.shape) for y in of_copies(kernel, numpy)(*kernel.arguments)]
    steps = [rng.normal(size=x.shape) for x in kernel.arguments]

    def loss(np: Any) -> Callable[..., Any]:
        def total(*arrays: Any) -> Any:
            results = of_copies(kernel, np)(*arrays)
            return sum(np.sum(w * y) for w, y in zip(weights, results, strict=True))

        return total

    def moved(h: float) -> float:
        return float(
            loss(numpy)(*(x + h * s for x, s in zip(kernel.arguments, steps, strict=True)))
        )

    difference = (8 * (moved(1e-4) - moved(-1e-4)) - (moved(2e-4) - moved(-2e-4))) / 12e-4
    every = tuple(range(len(kernel.arguments)))
    of_jit = fg.grad(fg.jit(loss(fnp)), every)(*kernel.arguments)
    eager = fg.grad(loss(fnp), every)(*kernel.arguments)
    for x, y, s in zip(of_jit, eager, steps, strict=True):
        assert x.shape == s.shape
        numpy.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9)
    slope = sum(numpy.sum(x * s) for x, s in zip(of_jit, steps, strict=True))
    numpy.testing.assert_allclose(slope, difference, rtol=1e-7, atol=1e-8)
