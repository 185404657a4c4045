"""The No-U-Turn sampler, in its simple recursive form, on a standard normal target.

Source: Hoffman and Gelman, JMLR 15 (2014), algorithm 3.
"""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp


def log_density(q):
    return -0.5 * jnp.sum((q / jnp.array([1.0, 2.0])) ** 2)


slope = jax.jit(jax.grad(log_density))


def leap(q, p, step):
    p = p + 0.5 * step * slope(q)
    q = q + step * p
    return q, p + 0.5 * step * slope(q)


def turned(minus, plus):
    span = plus[0] - minus[0]
    return span @ minus[1] < 0 or span @ plus[1] < 0


def build(q, p, bound, direction, depth, step, rng):
    """Both ends, a candidate, the number of valid points, and whether to go on."""
    if depth == 0:
        end = leap(q, p, direction * step)
        joint = log_density(end[0]) - 0.5 * end[1] @ end[1]
        return end, end, end[0], int(bound <= joint), bound < joint + 1000
    minus, plus, chosen, n, going = build(q, p, bound, direction, depth - 1, step, rng)
    if going:
        start = minus if direction < 0 else plus
        left, right, other, m, going = build(*start, bound, direction, depth - 1, step, rng)
        minus, plus = (left, plus) if direction < 0 else (minus, right)
        if m and rng.uniform() < m / (n + m):
            chosen = other
        going = going and not turned(minus, plus)
        n += m
    return minus, plus, chosen, n, going


def sample(q, step, rng):
    p = rng.normal(size=2)
    bound = np.log(rng.uniform()) + log_density(q) - 0.5 * p @ p
    minus = plus = (q, p)
    n, depth, going = 1, 0, True
    while going and depth < 6:
        direction = rng.choice([-1, 1])
        start = minus if direction < 0 else plus
        left, right, other, m, going = build(*start, bound, direction, depth, step, rng)
        minus, plus = (left, plus) if direction < 0 else (minus, right)
        if going and rng.uniform() < m / n:
            q = other
        n, depth = n + m, depth + 1
        going = going and not turned(minus, plus)
    return q


def main():
    rng = np.random.default_rng(1)
    q, samples = np.zeros(2), []
    for _ in range(400):
        q = sample(q, 0.6, rng)
        samples.append(np.asarray(q))
    deviation = np.std(samples, axis=0)
    assert np.allclose(deviation, [1.0, 2.0], rtol=0.25)
    return {"deviation": deviation.tolist()}
