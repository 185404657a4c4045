"""Rays through a lens by Snell's law: the radius for a focal length, by gradient."""

import funcgrad as jax
import funcgrad.numpy as jnp

INDEX = 1.5


def refract(direction, normal, ratio):
    cosine = -jnp.sum(direction * normal)
    root = jnp.sqrt(1 - ratio**2 * (1 - cosine**2))
    return ratio * direction + (ratio * cosine - root) * normal


def focus(height, radius):
    """Where a ray parallel to the axis crosses it behind a plano-convex lens, flat side first."""
    depth = jnp.sqrt(radius**2 - height**2)
    normal = jnp.array([-depth, -height]) / radius
    ray = refract(jnp.array([1.0, 0.0]), normal, INDEX)
    return depth - radius - height * ray[0] / ray[1]


def main():
    heights = jnp.linspace(0.01, 0.02, 5)

    def loss(radius):
        return jnp.mean((jax.vmap(focus, (0, None))(heights, radius) - 10.0) ** 2)

    radius = 4.0
    for _ in range(20):
        radius = radius - jax.grad(loss)(radius) / jax.grad(jax.grad(loss))(radius)
    assert abs(float(radius) - 10.0 * (INDEX - 1)) < 1e-3  # the lensmaker's equation
    aberration = float(jax.grad(jax.grad(focus))(1e-3, 5.0))
    assert abs(aberration + INDEX**2 / ((INDEX - 1) * 5.0)) < 1e-2
    return {"radius": float(radius), "aberration": aberration}
