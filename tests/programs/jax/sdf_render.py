"""Sphere tracing of a signed distance field, shaded, and fitted to a picture by its gradients."""

import jax
import jax.numpy as jnp
from jax import lax


def sdf(s, p):
    balls = jnp.linalg.norm(p - s["c"], axis=-1) - s["r"]
    k = 8.0
    return -jax.nn.logsumexp(-k * balls) / k


def trace(s, o, d):
    def body(c):
        t, i, _ = c
        h = sdf(s, o + t * d)
        return t + h, i + 1, h

    t, _, h = lax.while_loop(
        lambda c: (c[1] < 40) & (jnp.abs(c[2]) > 1e-6) & (c[0] < 10), body, (0.0, 0, 1.0)
    )
    return lax.stop_gradient(t), h


def pixel(s, uv):
    o = jnp.array([0.0, 0.0, -3.0])
    d = jnp.append(uv, 1.5)
    d = d / jnp.linalg.norm(d)
    t, _ = trace(s, o, d)
    p = o + t * d
    n = jax.grad(sdf, argnums=1)(s, p)
    dist = sdf(s, p)
    p = p - (dist - lax.stop_gradient(dist)) * d / jnp.dot(n, d)
    n = jax.grad(sdf, argnums=1)(s, p)
    light = jnp.array([0.6, 0.7, -0.4]) / jnp.sqrt(1.01)
    shade = 0.1 + 0.9 * jax.nn.relu(n @ light)
    cover = jax.nn.sigmoid(-sdf(s, o + jnp.minimum(t, 3.5) * d) * 20)
    return jnp.where(t < 10, shade, 0.0) * cover + 0.05


def main():
    u = jnp.linspace(-0.8, 0.8, 12)
    grid = jnp.stack(jnp.meshgrid(u, u, indexing="xy"), -1)
    image = jax.jit(lambda s: jax.vmap(jax.vmap(lambda uv: pixel(s, uv)))(grid))
    target = {"c": jnp.array([[0.4, 0.1, 0.0], [-0.4, -0.2, 0.3]]), "r": jnp.array([0.5, 0.4])}
    goal = image(target)
    s = {"c": target["c"] + 0.15, "r": target["r"] * 0.9}
    loss = jax.jit(jax.value_and_grad(lambda s: jnp.mean((image(s) - goal) ** 2)))
    l0, _ = loss(s)
    for _ in range(30):
        now, g = loss(s)
        s = jax.tree.map(lambda a, g: a - 0.3 * g, s, g)
    assert now < 0.5 * l0, (l0, now)
    return {"l0": l0, "l": now}


main()
