"""Pictures: marched rays, edges, smoothing that keeps them, components, dithering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload


@workload(small=(6, 10), normal=(128, 40), large=(1024, 60), rows=FORWARD)
def ray_marching(n: int, steps: int) -> Problem:
    """{n}^2 rays towards a sphere, a torus and a floor, {steps} steps along their distances."""

    def distance(xnp: Any, x: Any, y: Any, z: Any) -> Any:
        sphere = xnp.sqrt((x - 0.5) ** 2 + y * y + (z - 3.0) ** 2) - 0.7
        ring = xnp.sqrt((x + 0.7) ** 2 + (z - 3.5) ** 2) - 0.6
        torus = xnp.sqrt(ring * ring + y * y) - 0.2
        return xnp.minimum(xnp.minimum(sphere, torus), y + 0.8)

    def march(xnp: Any, loop: Any) -> Callable[..., Any]:
        def run(u: Any, v: Any) -> Any:
            length = xnp.sqrt(u * u + v * v + 1.0)
            dx, dy, dz = u / length, v / length, 1.0 / length

            def step(t: Any) -> Any:
                near = distance(xnp, t * dx, t * dy, t * dz)
                return xnp.where((near > 1e-3) & (t < 20.0), t + near, t)

            return loop(step, xnp.zeros_like(u))

        return run

    def program(xp: Any) -> Callable[..., Any]:
        def loop(step: Any, t: Any) -> Any:
            return xp.lax.fori_loop(0, steps, lambda _, t: step(t), t)

        return march(xp.numpy, loop)

    def loops(u, v):
        found = np.empty_like(u)
        for i in range(n):
            for j in range(n):
                length = np.sqrt(u[i, j] * u[i, j] + v[i, j] * v[i, j] + 1.0)
                dx, dy, dz = u[i, j] / length, v[i, j] / length, 1.0 / length
                t = 0.0
                for _ in range(steps):
                    x, y, z = t * dx, t * dy, t * dz
                    sphere = np.sqrt((x - 0.5) ** 2 + y * y + (z - 3.0) ** 2) - 0.7
                    ring = np.sqrt((x + 0.7) ** 2 + (z - 3.5) ** 2) - 0.6
                    torus = np.sqrt(ring * ring + y * y) - 0.2
                    near = min(sphere, torus, y + 0.8)
                    if near <= 1e-3 or t >= 20.0:
                        break
                    t += near
                found[i, j] = t
        return found

    u, v = np.meshgrid(np.linspace(-0.8, 0.8, n), np.linspace(-0.8, 0.8, n))
    return Problem(
        (u, v), program, loops, as_written=("torch",), loops=True, tolerance=100.0, agreeing=0.99
    )


@workload(small=(7, 8, 1), normal=(128, 128, 3), large=(1024, 1024, 5), rows=BOTH)
def bilateral(rows: int, columns: int, reach: int) -> Problem:
    """Bilateral filter of an image {rows} x {columns}, neighbours up to {reach} away."""
    moves = [(i, j) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)]

    def formula(xnp: Any, pad: Any) -> Callable[..., Any]:
        def run(image: Any) -> Any:
            padded, total, weights = pad(image), 0.0, 0.0
            for i, j in moves:
                top, left = reach + i, reach + j
                other = padded[top : top + rows, left : left + columns]
                weight = xnp.exp(-0.5 * (i * i + j * j) / 4.0 - 12.5 * (other - image) ** 2)
                total, weights = total + weight * other, weights + weight
            return total / weights

        return run

    def loops(image):
        found = np.empty_like(image)
        for i in range(rows):
            for j in range(columns):
                total = weights = 0.0
                for k in range(-reach, reach + 1):
                    for m in range(-reach, reach + 1):
                        row, column = i + k, j + m
                        inside = 0 <= row < rows and 0 <= column < columns
                        other = image[row, column] if inside else 0.0
                        gap = other - image[i, j]
                        weight = np.exp(-0.5 * (k * k + m * m) / 4.0 - 12.5 * gap * gap)
                        total += weight * other
                        weights += weight
                found[i, j] = total / weights
        return found

    return Problem(
        (np.random.default_rng(0).uniform(size=(rows, columns)),),
        lambda xp: formula(xp.numpy, lambda x: xp.numpy.pad(x, reach)),
        loops,
        torch=lambda torch: formula(
            torch, lambda x: torch.nn.functional.pad(x, (reach, reach, reach, reach))
        ),
        loops=True,
        tolerance=10.0,
    )


@workload(small=(8, 9), normal=(300, 400), large=(2000, 3000), rows=FORWARD)
def edges(rows: int, columns: int) -> Problem:
    """Edges of an image {rows} x {columns}: Sobel's slopes, ridges across them, two thresholds."""

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(image: Any) -> Any:
            left, right = image[:, :-2], image[:, 2:]
            across = right - left
            x = across[:-2] + 2.0 * across[1:-1] + across[2:]
            down = image[2:] - image[:-2]
            y = down[:, :-2] + 2.0 * down[:, 1:-1] + down[:, 2:]
            size = xnp.sqrt(x * x + y * y)
            x, y, middle = x[1:-1, 1:-1], y[1:-1, 1:-1], size[1:-1, 1:-1]
            steep, flat = xnp.abs(y) > 2.4 * xnp.abs(x), xnp.abs(x) > 2.4 * xnp.abs(y)
            rising = x * y > 0.0
            one = xnp.where(rising, size[2:, 2:], size[2:, :-2])
            other = xnp.where(rising, size[:-2, :-2], size[:-2, 2:])
            one = xnp.where(steep, size[2:, 1:-1], xnp.where(flat, size[1:-1, 2:], one))
            other = xnp.where(steep, size[:-2, 1:-1], xnp.where(flat, size[1:-1, :-2], other))
            ridge = xnp.where((middle >= one) & (middle >= other), middle, 0.0 * middle)
            levels = xnp.where(ridge > 0.5, 0.5 + 0.0 * ridge, 0.0 * ridge)
            return levels + xnp.where(ridge > 2.0, 0.5 + 0.0 * ridge, 0.0 * ridge)

        return run

    def loops(image):
        x, y = np.empty((rows - 2, columns - 2)), np.empty((rows - 2, columns - 2))
        size, found = np.empty_like(x), np.zeros((rows - 4, columns - 4), image.dtype)
        for i in range(rows - 2):
            for j in range(columns - 2):
                sx = sy = 0.0
                for k in range(3):
                    weight = 2.0 if k == 1 else 1.0
                    sx += weight * (image[i + k, j + 2] - image[i + k, j])
                    sy += weight * (image[i + 2, j + k] - image[i, j + k])
                x[i, j], y[i, j], size[i, j] = sx, sy, np.sqrt(sx * sx + sy * sy)
        for i in range(1, rows - 3):
            for j in range(1, columns - 3):
                if abs(y[i, j]) > 2.4 * abs(x[i, j]):
                    di, dj = 1, 0
                elif abs(x[i, j]) > 2.4 * abs(y[i, j]):
                    di, dj = 0, 1
                elif x[i, j] * y[i, j] > 0.0:
                    di, dj = 1, 1
                else:
                    di, dj = 1, -1
                middle = size[i, j]
                if middle >= size[i + di, j + dj] and middle >= size[i - di, j - dj]:
                    found[i - 1, j - 1] = 1.0 if middle > 2.0 else 0.5 if middle > 0.5 else 0.0
        return found

    image = np.random.default_rng(0).uniform(size=(rows, columns))
    return Problem(
        (image,),
        lambda xp: formula(xp.numpy),
        loops,
        as_written=("torch",),
        loops=True,
        agreeing=0.99,
    )


@workload(small=(7, 30), normal=(128, 300), large=(1024, 3000), rows=FORWARD)
def components(n: int, most: int) -> Problem:
    """Connected parts of a picture of {n}^2 pixels: least labels spread, at most {most} steps."""
    pixels = np.random.default_rng(0).uniform(size=(n, n)) < 0.45
    labels = np.where(pixels, np.arange(n * n).reshape(n, n), n * n).astype(np.int32)

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(labels: Any) -> Any:
            is_set = labels < n * n

            def moves(state: Any) -> Any:
                return state[1] & (state[2] < most)

            def spread(state: Any) -> Any:
                labels, _, count = state
                padded = xnp.pad(labels, 1, constant_values=n * n)
                rows = xnp.minimum(padded[2:, 1:-1], padded[:-2, 1:-1])
                columns = xnp.minimum(padded[1:-1, 2:], padded[1:-1, :-2])
                least = xnp.minimum(labels, xnp.minimum(rows, columns))
                following = xnp.where(is_set, least, labels)
                return following, xnp.any(following != labels), count + 1

            return xp.lax.while_loop(moves, spread, (labels, xnp.any(is_set), 0))[0]

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(labels: Any) -> Any:
            is_set = labels < n * n
            for _ in range(most):
                padded = torch.nn.functional.pad(labels, (1, 1, 1, 1), value=n * n)
                rows = torch.minimum(padded[2:, 1:-1], padded[:-2, 1:-1])
                columns = torch.minimum(padded[1:-1, 2:], padded[1:-1, :-2])
                least = torch.minimum(labels, torch.minimum(rows, columns))
                following = torch.where(is_set, least, labels)
                if torch.equal(following, labels):
                    break
                labels = following
            return labels

        return run

    def loops(labels):
        labels, following = labels.copy(), labels.copy()
        for _ in range(most):
            is_moving = False
            for i in range(n):
                for j in range(n):
                    least = labels[i, j]
                    if least < n * n:
                        if i > 0:
                            least = min(least, labels[i - 1, j])
                        if i < n - 1:
                            least = min(least, labels[i + 1, j])
                        if j > 0:
                            least = min(least, labels[i, j - 1])
                        if j < n - 1:
                            least = min(least, labels[i, j + 1])
                        if least != labels[i, j]:
                            is_moving = True
                    following[i, j] = least
            labels, following = following, labels
            if not is_moving:
                break
        return labels

    return Problem((labels,), program, loops, torch=torch_program, loops=True)


@workload(small=(6, 7), normal=(64, 100), large=(400, 600), rows=FORWARD)
def dithering(rows: int, columns: int) -> Problem:
    """Black and white by Floyd and Steinberg, {rows} x {columns} pixels: `scan` in `scan`."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(image: Any) -> Any:
            def row(below: Any, pixels: Any) -> Any:
                def pixel(state: Any, j: Any) -> Any:
                    error, spread = state
                    value = pixels[j] + (below[j + 1] + 7 * error) // 16
                    is_white = value > 127
                    error = value - 255 * is_white.astype(np.int32)
                    spread = spread.at[j].add(3 * error).at[j + 1].add(5 * error)
                    return (error, spread.at[j + 2].add(error)), is_white

                start = xnp.zeros_like(pixels[0]), xnp.zeros_like(below)
                places = xnp.arange(columns, dtype=np.int32)
                (_, spread), white = xp.lax.scan(pixel, start, places)
                return spread, white

            zeros = xnp.zeros(columns + 2, dtype=image.dtype)
            return xp.lax.scan(row, zeros, image)[1]

        return run

    def loops(image):
        below, spread = np.zeros(columns + 2, np.int32), np.zeros(columns + 2, np.int32)
        found = np.empty((rows, columns), np.bool_)
        for i in range(rows):
            error = 0
            spread[:] = 0
            for j in range(columns):
                value = image[i, j] + (below[j + 1] + 7 * error) // 16
                found[i, j] = value > 127
                error = value - (255 if value > 127 else 0)
                spread[j] += 3 * error
                spread[j + 1] += 5 * error
                spread[j + 2] += error
            below, spread = spread, below
        return found

    image = np.random.default_rng(0).integers(0, 256, (rows, columns)).astype(np.int32)
    return Problem((image,), program, loops, loops=True)
