"""A pendulum that sticks: pytrees with None in loops, and branches that close over values."""

from functools import partial
from typing import NamedTuple

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax


class Pendulum(NamedTuple):
    angle: object
    speed: object


def force(state, params, *, drive=None):
    out = -params["g"] * jnp.sin(state.angle) - params["friction"] * state.speed
    return out if drive is None else out + drive


def midpoint(state, params, h, drive):
    half = Pendulum(
        state.angle + 0.5 * h * state.speed,
        state.speed + 0.5 * h * force(state, params, drive=drive),
    )
    return Pendulum(
        state.angle + h * half.speed, state.speed + h * force(half, params, drive=drive)
    )


def stop(state, params, h, drive):
    return Pendulum(state.angle, 0.9 * state.speed)


@partial(jax.jit, static_argnums=(2,), static_argnames=("keep", "remat"))
def simulate(state, params, steps, *, drives=None, keep=False, remat=False):
    h = 2.0 / steps

    def step(carry, drive):
        state, longest = carry
        limit = params["limit"]
        new = lax.cond(
            jnp.abs(state.angle) > limit if drive is None else drive > 10.0,
            lambda s: stop(s, params, h, drive),
            lambda s: midpoint(s, params, h, drive),
            state,
        )
        longest = {"angle": jnp.maximum(longest["angle"], jnp.abs(new.angle)), "unused": None}
        return (new, longest), new.angle if keep else None

    body = jax.checkpoint(step, prevent_cse=False) if remat else step
    start = (state, {"angle": jnp.abs(state.angle), "unused": None})
    (last, longest), angles = lax.scan(body, start, drives, length=steps)
    return last, {"longest": longest["angle"], "angles": angles}


def plain(angle, speed, g, friction, steps, drives=None):
    h = 2.0 / steps
    for i in range(steps):
        d = 0.0 if drives is None else drives[i]
        a, s = (
            angle + 0.5 * h * speed,
            speed + 0.5 * h * (-g * np.sin(angle) - friction * speed + d),
        )
        angle, speed = angle + h * s, speed + h * (-g * np.sin(a) - friction * s + d)
    return angle


def main():
    params = {"g": 9.81, "friction": 0.1, "limit": 3.0, "comment": None}
    start = Pendulum(1.0, 0.0)
    last, info = simulate(start, params, 200)
    assert info["angles"] is None
    assert abs(last.angle - plain(1.0, 0.0, 9.81, 0.1, 200)) < 1e-12
    drives = np.sin(np.linspace(0, 6, 200))
    last, info = simulate(start, params, 200, drives=drives, keep=True)
    assert abs(last.angle - plain(1.0, 0.0, 9.81, 0.1, 200, drives)) < 1e-12
    assert info["angles"].shape == (200,)

    def final(params, state, remat):
        last, info = simulate(state, params, 200, drives=drives, remat=remat)
        return last.angle, info["longest"]

    results = []
    for remat in (False, True):
        (value, longest), (by_params, _) = jax.value_and_grad(final, argnums=(0, 1), has_aux=True)(
            params, start, remat
        )
        assert by_params["comment"] is None
        results.append(by_params["g"])
    assert abs(results[0] - results[1]) < 1e-12
    e = 1e-5
    change = plain(1.0, 0.0, 9.81 + e, 0.1, 200, drives) - plain(
        1.0, 0.0, 9.81 - e, 0.1, 200, drives
    )
    assert abs(results[0] - change / (2 * e)) < 1e-7

    # Many pendulums at once: some arguments mapped, some not.
    speeds = np.linspace(-1, 1, 5)
    axes = ({"g": None, "friction": 0, "limit": None, "comment": None}, Pendulum(None, 0))
    many = jax.vmap(lambda p, s: simulate(s, p, 100)[0].angle, in_axes=axes)(
        params | {"friction": np.full(5, 0.1)}, Pendulum(1.0, speeds)
    )
    np.testing.assert_allclose(many, [plain(1.0, s, 9.81, 0.1, 100) for s in speeds], 1e-12)

    # One that starts beyond the limit slows down where it is.
    stuck, _ = simulate(Pendulum(3.1, 1.0), params, 10)
    assert stuck.angle == 3.1
    assert abs(stuck.speed - 0.9**10) < 1e-15
    return {"angle": float(value), "slope": float(results[0]), "longest": float(longest)}
