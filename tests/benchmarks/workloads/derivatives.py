"""Derivatives of all orders: gradients, products with Hessians, Hessians, Jacobians."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import GRADIENT, Problem, workload


def rosenbrock_function(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def np_rosenbrock_hessian(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Diagonal and side diagonal of the Hessian."""
    diagonal = np.zeros(len(x))
    diagonal[:-1] += 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
    diagonal[1:] += 200.0
    return diagonal, -400.0 * x[:-1]


def point(n: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1.0, 1.0, n)


@workload(small=(8,), normal=(1_000_000,), large=(10_000_000,), rows=GRADIENT)
def rosenbrock(n: int) -> Problem:
    """Rosenbrock's function of {n} variables."""
    return Problem(
        (point(n),),
        lambda xp: rosenbrock_function,
        rosenbrock_function,
        as_written=("torch", "autograd"),
        tolerance=30.0,
    )


@workload(small=(6,), normal=(200_000,), large=(5_000_000,))
def hessian_product(n: int) -> Problem:
    """Hessian of Rosenbrock's function of {n} variables times a vector: `jvp` of `grad`."""
    v = np.random.default_rng(1).normal(size=n)

    def program(xp: Any) -> Callable[..., Any]:
        gradient = xp.grad(rosenbrock_function)
        return lambda x, v: xp.jvp(gradient, (x,), (v,))[1]

    def reference(x: Any, v: Any) -> Any:
        diagonal, side = np_rosenbrock_hessian(x)
        found = diagonal * v
        found[:-1] += side * v[1:]
        found[1:] += side * v[:-1]
        return found

    def torch_program(torch: Any) -> Callable[..., Any]:
        gradient = torch.func.grad(rosenbrock_function)
        return lambda x, v: torch.func.jvp(gradient, (x,), (v,))[1]

    return Problem((point(n), v), program, reference, torch=torch_program, tolerance=10.0)


@workload(small=(6,), normal=(300,), large=(2000,))
def rosenbrock_hessian(n: int) -> Problem:
    """Hessian of Rosenbrock's function of {n} variables."""

    def reference(x: Any) -> Any:
        diagonal, side = np_rosenbrock_hessian(x)
        return np.diag(diagonal) + np.diag(side, 1) + np.diag(side, -1)

    return Problem(
        (point(n),),
        lambda xp: xp.hessian(rosenbrock_function),
        reference,
        torch=lambda torch: torch.func.hessian(rosenbrock_function),
        tolerance=10.0,
    )


@workload(small=(12, 3), normal=(2000, 40), large=(20_000, 200))
def logistic_hessian(rows: int, features: int) -> Problem:
    """Hessian of logistic regression: {rows} observations of {features} features."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(rows, features)), 0.1 * rng.normal(size=features)

    def loss(xnp: Any) -> Callable[..., Any]:
        return lambda w, x: xnp.mean(xnp.log(1.0 + xnp.exp(x @ w)))

    def reference(w: Any, x: Any) -> Any:
        p = 1 / (1 + np.exp(-(x @ w)))
        return (x * (p * (1 - p))[:, None]).T @ x / rows

    return Problem(
        (w, x),
        lambda xp: xp.hessian(loss(xp.numpy)),
        reference,
        torch=lambda torch: torch.func.hessian(loss(torch)),
        tolerance=10.0,
    )


@workload(small=(5, 3), normal=(300, 100), large=(1000, 500))
def jacobian(n: int, m: int) -> Problem:
    """Jacobian of tanh(a x) in x, {n} x {m}, in reverse mode."""
    rng = np.random.default_rng(0)
    a, x = rng.normal(size=(n, m)) / np.sqrt(m), rng.normal(size=m)

    def function(xnp: Any) -> Callable[..., Any]:
        return lambda x, a: xnp.tanh(a @ x)

    return Problem(
        (x, a),
        lambda xp: xp.jacrev(function(xp.numpy)),
        lambda x, a: (1 - np.tanh(a @ x) ** 2)[:, None] * a,
        torch=lambda torch: torch.func.jacrev(function(torch)),
    )


def residual(xnp: Any) -> Callable[..., Any]:
    """Where cameras see points, less where they were seen: one row for each observation.

    A camera is a rotation vector, a centre, a focal length, two coefficients of radial distortion.
    """

    def cross(a: Any, b: Any) -> Any:
        return xnp.stack(
            [
                a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1],
                a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2],
                a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0],
            ],
            -1,
        )

    def run(camera: Any, x: Any, seen: Any) -> Any:
        turn = camera[..., :3]
        angle = xnp.sqrt(xnp.sum(turn * turn, -1) + 1e-12)[..., None]
        axis, moved = turn / angle, x - camera[..., 3:6]
        across = cross(axis, moved)
        along = xnp.sum(axis * moved, -1)[..., None]
        c, s = xnp.cos(angle), xnp.sin(angle)
        local = moved * c + across * s + axis * along * (1.0 - c)
        plane = local[..., :2] / local[..., 2:3]
        squares = xnp.sum(plane * plane, -1)[..., None]
        bent = plane * (1.0 + camera[..., 7:8] * squares + camera[..., 8:9] * squares * squares)
        return camera[..., 6:7] * bent - seen

    return run


def scene(cameras: int, points: int, observations: int) -> tuple[np.ndarray, ...]:
    """Cameras, points, what was seen, and by which camera of which point."""
    rng = np.random.default_rng(0)
    view = np.concatenate(
        [
            0.1 * rng.normal(size=(cameras, 3)),
            0.1 * rng.normal(size=(cameras, 3)) - [0.0, 0.0, 5.0],
            rng.uniform(0.9, 1.1, (cameras, 1)),
            0.01 * rng.normal(size=(cameras, 2)),
        ],
        axis=1,
    )
    x = rng.normal(size=(points, 3)).clip(-2.0, 2.0)
    who = rng.integers(0, cameras, observations).astype(np.int32)
    what = rng.integers(0, points, observations).astype(np.int32)
    return view, x, 0.2 * rng.normal(size=(observations, 2)), who, what


@workload(small=(2, 5, 8), normal=(50, 5000, 30_000), large=(200, 50_000, 400_000), rows=GRADIENT)
def bundle_adjustment(cameras: int, points: int, observations: int) -> Problem:
    """Errors of {cameras} cameras that see {points} points in {observations} observations."""

    def formula(xnp: Any) -> Callable[..., Any]:
        function = residual(xnp)

        def run(view: Any, x: Any, seen: Any, who: Any, what: Any) -> Any:
            return xnp.mean(function(view[who], x[what], seen) ** 2)

        return run

    return Problem(
        scene(cameras, points, observations),
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1),
        torch=formula,
        as_written=("autograd",),
    )


@workload(small=(2, 5, 8), normal=(50, 5000, 30_000), large=(200, 50_000, 400_000))
def bundle_jacobian(cameras: int, points: int, observations: int) -> Problem:
    """Jacobian blocks 2 x 9 and 2 x 3 of {observations} observations: `vmap` of `jacfwd`."""
    view, x, seen, who, what = scene(cameras, points, observations)

    def program(xp: Any) -> Callable[..., Any]:
        blocks = xp.vmap(xp.jacfwd(residual(xp.numpy), (0, 1)))
        return lambda view, x, seen, who, what: blocks(view[who], x[what], seen)

    def reference(view: Any, x: Any, seen: Any, who: Any, what: Any) -> Any:
        """By complex steps: the real part of h f'(x) i does not cancel."""
        function, given = residual(np), (view[who], x[what])

        def column(number: int, index: int) -> np.ndarray:
            moved = [np.array(array, complex) for array in given]
            moved[number][:, index] += 1e-30j
            return function(*moved, seen).imag / 1e-30

        return tuple(
            np.stack([column(number, index) for index in range(given[number].shape[1])], axis=-1)
            for number in range(2)
        )

    return Problem((view, x, seen, who, what), program, reference, tolerance=10.0)


def by_period(period: int, n: int) -> np.ndarray:
    """Seeds of a band of so many diagonals: columns as far apart are computed together."""
    return (np.arange(n) % period == np.arange(period)[:, None]).astype(np.float64)


def band_places(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries of a tridiagonal matrix, row by row."""
    rows = np.repeat(np.arange(n), 3)[1:-1]
    columns = (np.arange(n)[:, None] + np.array([-1, 0, 1])).ravel()[1:-1]
    return rows, columns


def entries_of_band(xp: Any, push: Callable[[Any], Any], seeds: Any, n: int) -> Any:
    """Entries of a tridiagonal matrix out of products with three seeds, colours by hand."""
    rows, columns = band_places(n)
    return xp.vmap(push)(seeds)[columns % 3, rows]


def wood(xnp: Any, n: int) -> Callable[[Any], Any]:
    """Chain of Wood's functions."""

    def run(x: Any) -> Any:
        a, b, c, d = x[:-3:2], x[1:-2:2], x[2:-1:2], x[3::2]
        first = 100.0 * (a**2 - b) ** 2 + (a - 1.0) ** 2 + 90.0 * (c**2 - d) ** 2
        return xnp.sum(first + (c - 1.0) ** 2 + 10.0 * (b + d - 2.0) ** 2 + 0.1 * (b - d) ** 2)

    return run


def wood_band(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Its Hessian: a row for each distance from the diagonal, -2 to 2, and where entries are."""
    a, b, c, d = x[:-3:2], x[1:-2:2], x[2:-1:2], x[3::2]
    band, n = np.zeros((5, len(x))), len(x)
    for start, curvature in (
        (0, 1200.0 * a**2 - 400.0 * b + 2.0),
        (1, 220.2),
        (2, 1080.0 * c**2 - 360.0 * d + 2.0),
        (3, 200.2),
    ):
        band[2, start : n - 3 + start : 2] += curvature
    band[3, :-3:2] -= 400.0 * a
    band[3, 2:-1:2] -= 360.0 * c
    band[4, 1:-2:2] = 19.8
    return band, np.array([[False, True]] * (n // 2)).ravel()


def boundary(xnp: Any, n: int) -> Callable[[Any], Any]:
    """Sum of squares of a discretised boundary value problem."""
    h = 1.0 / (n + 1)
    ahead = 1.0 + h * np.arange(1.0, n + 1)

    def run(x: Any) -> Any:
        wide = xnp.pad(x, 1)
        return xnp.sum((2.0 * x - wide[:-2] - wide[2:] + h**2 / 2 * (x + ahead) ** 3) ** 2)

    return run


def boundary_band(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Its Hessian, likewise."""
    n = len(x)
    h = 1.0 / (n + 1)
    t, wide = x + 1.0 + h * np.arange(1.0, n + 1), np.pad(x, 1)
    residual = 2.0 * x - wide[:-2] - wide[2:] + h**2 / 2 * t**3
    slope, band = 2.0 + 1.5 * h**2 * t**2, np.zeros((5, n))
    band[2] = 2.0 * (slope**2 + 2.0 + 3.0 * h**2 * t * residual)
    band[2, [0, -1]] -= 2.0
    band[3, :-1] = -2.0 * (slope[:-1] + slope[1:])
    band[4, :-2] = 2.0
    return band, np.ones(n, np.bool_)


def hessian_of_band(
    n: int,
    function: Callable[[Any, int], Callable[[Any], Any]],
    band_of: Callable[[Any], tuple[np.ndarray, np.ndarray]],
) -> Problem:
    """Entries of a Hessian of up to five diagonals; elsewhere by five colours."""
    x = point(n)
    band, is_wide = band_of(x)
    there = np.zeros((n, 5), np.bool_)
    there[:, 2], there[:-1, 3], there[:-2, 4] = True, band[3, :-1] != 0, is_wide[:-2]
    there[1:, 1], there[2:, 0] = there[:-1, 3], there[:-2, 4]
    rows, ahead = np.nonzero(there)
    columns = rows + ahead - 2

    def program(xp: Any) -> Callable[..., Any]:
        run = function(xp.numpy, n)
        if hasattr(xp, "sparsity"):
            hessian = xp.hessian(run, sparse=True)
            return lambda x, seeds: hessian(x).data
        gradient = xp.grad(run)

        def by_hand(x: Any, seeds: Any) -> Any:
            return xp.vmap(lambda v: xp.jvp(gradient, (x,), (v,))[1])(seeds)[columns % 5, rows]

        return by_hand

    def reference(x: Any, seeds: Any) -> Any:
        band, _ = band_of(x)
        return band[2 + abs(columns - rows), np.minimum(rows, columns)]

    return Problem((x, by_period(5, n)), program, reference, tolerance=30.0)


@workload(small=(8,), normal=(100_000,), large=(1_000_000,))
def wood_hessian(n: int) -> Problem:
    """Entries of the sparse Hessian of a chain of Wood's functions of {n} variables."""
    return hessian_of_band(n, wood, wood_band)


@workload(small=(9,), normal=(100_000,), large=(1_000_000,))
def boundary_hessian(n: int) -> Problem:
    """Entries of the sparse Hessian of a boundary value problem at {n} nodes."""
    return hessian_of_band(n, boundary, boundary_band)


def trigonometric(xnp: Any, n: int) -> Callable[[Any], Any]:
    """Sum of squares of a tridiagonal trigonometric system."""
    number = np.arange(1.0, n + 1) / n

    def run(x: Any) -> Any:
        wide = xnp.pad(xnp.sin(x), 1)
        return xnp.sum((number * (1.0 - xnp.cos(x)) + wide[:-2] - wide[2:]) ** 2)

    return run


def trigonometric_band(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Its Hessian, likewise."""
    n = len(x)
    number, wide = np.arange(1.0, n + 1) / n, np.pad(np.sin(x), 1)
    residual = number * (1.0 - np.cos(x)) + wide[:-2] - wide[2:]
    own, ahead = number * np.sin(x), np.cos(x)  # a residual's slopes: own, at the next one -ahead
    around = np.pad(residual, 1)
    band = np.zeros((5, n))
    has_next, has_last = np.arange(n) < n - 1, np.arange(n) > 0
    band[2] = 2.0 * (own**2 + ahead**2 * (has_next * 1.0 + has_last))
    band[2] += 2.0 * (residual * number * np.cos(x) - np.sin(x) * (around[2:] - around[:-2]))
    band[3, :-1] = 2.0 * (own[1:] * ahead[:-1] - own[:-1] * ahead[1:])
    band[4, :-2] = -2.0 * ahead[:-2] * ahead[2:]
    return band, np.ones(n, np.bool_)


@workload(small=(9,), normal=(100_000,), large=(1_000_000,))
def trigonometric_hessian(n: int) -> Problem:
    """Entries of the sparse Hessian of a trigonometric sum of squares of {n} variables."""
    return hessian_of_band(n, trigonometric, trigonometric_band)


@workload(small=(40, 2), normal=(10_000, 10), large=(100_000, 30))
def windowed_hessian(n: int, ahead: int) -> Problem:
    """Entries of the sparse Hessian of a sum over windows of {n} variables, {ahead} ahead."""
    colors = 2 * ahead + 1
    columns = np.arange(n)[:, None] + np.arange(-ahead, ahead + 1)
    rows, places = np.nonzero((columns >= 0) & (columns < n))
    columns = columns[rows, places]

    def curved(xnp: Any) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            q = xnp.convolve(xnp.pad(x, (0, ahead)), np.ones(ahead + 1, x.dtype), mode="valid")
            return xnp.sum(q * (q * (q**2 - 20.0) - 0.1))

        return run

    def program(xp: Any) -> Callable[..., Any]:
        run = curved(xp.numpy)
        if hasattr(xp, "sparsity"):
            hessian = xp.hessian(run, sparse=True)
            return lambda x, seeds: hessian(x).data
        gradient = xp.grad(run)

        def by_hand(x: Any, seeds: Any) -> Any:
            products = xp.vmap(lambda v: xp.jvp(gradient, (x,), (v,))[1])(seeds)
            return products[columns % colors, rows]

        return by_hand

    def reference(x: Any, seeds: Any) -> Any:
        q = np.convolve(np.pad(x, (0, ahead)), np.ones(ahead + 1), mode="valid")
        slope = np.pad(12.0 * q**2 - 40.0, (ahead, 0))
        sums = [
            np.convolve(slope[d:], np.ones(ahead + 1 - d), mode="valid") for d in range(ahead + 1)
        ]
        return np.stack(sums)[abs(columns - rows), np.minimum(rows, columns)]

    return Problem((point(n), by_period(colors, n)), program, reference, tolerance=30.0)


@workload(small=(7,), normal=(100_000,), large=(1_000_000,))
def sparse_hessian(n: int) -> Problem:
    """Entries of the sparse Hessian of Rosenbrock's function of {n} variables."""

    def program(xp: Any) -> Callable[..., Any]:
        if hasattr(xp, "sparsity"):
            hessian = xp.hessian(rosenbrock_function, sparse=True)
            return lambda x, seeds: hessian(x).data
        gradient = xp.grad(rosenbrock_function)

        def by_hand(x: Any, seeds: Any) -> Any:
            return entries_of_band(xp, lambda v: xp.jvp(gradient, (x,), (v,))[1], seeds, n)

        return by_hand

    def reference(x: Any, seeds: Any) -> Any:
        diagonal, side = np_rosenbrock_hessian(x)
        found = np.zeros((n, 3))
        found[1:, 0], found[:, 1], found[:-1, 2] = side, diagonal, side
        return found.ravel()[1:-1]

    return Problem((point(n), by_period(3, n)), program, reference, tolerance=30.0)


@workload(small=(7,), normal=(100_000,), large=(1_000_000,))
def sparse_jacobian(n: int) -> Problem:
    """Entries of the sparse Jacobian of Broyden's tridiagonal system of {n} equations."""

    def system(xnp: Any) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            wide = xnp.pad(x, 1)
            return (3.0 - 2.0 * x) * x - wide[:-2] - 2.0 * wide[2:] + 1.0

        return run

    def program(xp: Any) -> Callable[..., Any]:
        function = system(xp.numpy)
        if hasattr(xp, "sparsity"):
            jacobian = xp.jacfwd(function, sparse=True)
            return lambda x, seeds: jacobian(x).data

        def by_hand(x: Any, seeds: Any) -> Any:
            return entries_of_band(xp, lambda v: xp.jvp(function, (x,), (v,))[1], seeds, n)

        return by_hand

    def reference(x: Any, seeds: Any) -> Any:
        found = np.tile([-1.0, 0.0, -2.0], (n, 1))
        found[:, 1] = 3.0 - 4.0 * x
        return found.ravel()[1:-1]

    return Problem((point(n), by_period(3, n)), program, reference)


def reprojected(xnp: Any, cameras: Any, points: Any) -> Any:
    """Places of points, a row for each, in pictures of cameras that turn little."""
    x = points - cameras[:, 3:]
    x = x + xnp.cross(cameras[:, :3], x)
    return x[:, :2] / (x[:, 2:] + 5.0)


def cross_matrices(v: np.ndarray) -> np.ndarray:
    """The matrices of cross products with vectors on the left."""
    found = np.zeros((len(v), 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        found[:, i, j], found[:, j, i] = -v[:, k], v[:, k]
    return found


@workload(small=(3, 5), normal=(50, 1_000), large=(500, 2_000))
def sparse_bundle_jacobian(cameras: int, points: int) -> Problem:
    """Entries of the sparse Jacobian of {cameras} cameras that see {points} points."""
    n_own, n = 6 * cameras, 6 * cameras + 3 * points
    who, what = np.repeat(np.arange(cameras), points), np.tile(np.arange(points), cameras)

    def program(xp: Any) -> Callable[..., Any]:
        def run(p: Any) -> Any:
            own, others = p[:n_own].reshape(cameras, 6), p[n_own:].reshape(points, 3)
            return reprojected(xp.numpy, own[who], others[what]).ravel()

        if hasattr(xp, "sparsity"):
            jacobian = xp.jacfwd(run, sparse=True)
            return lambda p, seeds: jacobian(p).data

        def by_hand(p: Any, seeds: Any) -> Any:
            return xp.vmap(lambda v: xp.jvp(run, (p,), (v,))[1])(seeds).T.ravel()

        return by_hand

    def reference(p: Any, seeds: Any) -> Any:
        own, others = p[:n_own].reshape(cameras, 6)[who], p[n_own:].reshape(points, 3)[what]
        before = others - own[:, 3:]
        turned = np.eye(3) + cross_matrices(own[:, :3])
        x, y, z = (turned @ before[..., None])[..., 0].T + np.array([[0.0], [0.0], [5.0]])
        zero = np.zeros_like(z)
        slopes = np.stack([np.stack([1 / z, zero, -x / z**2]), np.stack([zero, 1 / z, -y / z**2])])
        blocks = np.concatenate([-cross_matrices(before), -turned, turned], 2)
        return np.einsum("qin,nij->nqj", slopes, blocks).ravel()

    seeds = np.zeros((9, n))
    for k in range(9):
        seeds[k, slice(k, n_own, 6) if k < 6 else slice(n_own + k - 6, None, 3)] = 1.0
    rng = np.random.default_rng(0)
    start = np.concatenate([0.05 * rng.normal(size=n_own), rng.uniform(-1.0, 1.0, 3 * points)])
    return Problem((start, seeds), program, reference, tolerance=30.0)


@workload(small=(300,), normal=(20_000,), large=(200_000,), needs=("scipy.optimize.least_squares",))
def sparse_least_squares(n: int) -> Problem:
    """Least squares of {n} unknowns, of which each residual has three: Gauss and Newton's steps."""

    def residuals(concatenate: Callable[[list[Any]], Any], x: Any, data: Any) -> Any:
        inside = x[1:-1] - 0.3 * x[:-2] ** 2 + 0.1 * x[2:] - 0.2
        return concatenate([inside, 0.5 * (x - data)])

    def program(xp: Any) -> Callable[..., Any]:
        concatenate = xp.numpy.concatenate

        def run(start: Any, data: Any) -> Any:
            found = xp.scipy.optimize.least_squares(
                lambda x: residuals(concatenate, x, data), start
            )
            return found.x

        return run

    def reference(start: Any, data: Any) -> Any:
        linalg = importlib.import_module("scipy.linalg")
        x = start
        for _ in range(8):
            value = residuals(np.concatenate, x, data)
            inside, first = value[: n - 2], -0.6 * x[:-2]
            slope = 0.5 * value[n - 2 :]
            slope[:-2] += first * inside
            slope[1:-1] += inside
            slope[2:] += 0.1 * inside
            band = np.zeros((3, n))  # the lower half of J^T J
            band[0] = 0.25
            band[0, :-2] += first**2
            band[0, 1:-1] += 1
            band[0, 2:] += 0.01
            band[1, :-2] += first
            band[1, 1:-1] += 0.1
            band[2, :-2] = 0.1 * first
            x = x - linalg.solveh_banded(band, slope, lower=True)
        return x

    data = np.random.default_rng(0).uniform(0.0, 1.0, n)
    return Problem((np.full(n, 0.5), data), program, reference, tolerance=1e4)


@workload(small=(300,), normal=(20_000,), large=(200_000,), needs=("scipy.optimize.least_squares",))
def scattered_least_squares(n: int) -> Problem:
    """Least squares of {n} unknowns, of which each residual touches three at random."""
    rng = np.random.default_rng(0)
    i, j, k = rng.integers(0, n, (3, n))

    def residuals(xnp: Any, x: Any, data: Any) -> Any:
        return xnp.concatenate([x[i] - xnp.sin(x[j]) * x[k] - 0.1, 2.0 * (x - data)])

    def program(xp: Any) -> Callable[..., Any]:
        def run(start: Any, data: Any) -> Any:
            fun = lambda x: residuals(xp.numpy, x, data)  # noqa: E731
            return xp.scipy.optimize.least_squares(fun, start).x

        return run

    def reference(start: Any, data: Any) -> Any:
        sparse, solvers = map(importlib.import_module, ("scipy.sparse", "scipy.sparse.linalg"))
        x, rows = start, np.arange(n)
        for _ in range(30):
            slopes = (np.ones(n), -np.cos(x[j]) * x[k], -np.sin(x[j]))
            columns = (i, j, k)
            parts = [
                sparse.csr_array((v, (rows, c)), (n, n))
                for v, c in zip(slopes, columns, strict=True)
            ]
            matrix = sparse.vstack([sum(parts[1:], parts[0]), 2.0 * sparse.eye_array(n)]).tocsr()
            value = residuals(np, x, data)
            x = x - solvers.lsqr(matrix, value, atol=1e-14, btol=1e-14)[0]
        return x

    data = rng.uniform(0.0, 1.0, n)
    return Problem((np.full(n, 0.5), data), program, reference, tolerance=1e4)
