"""Control: optimal feedback, rollouts of a model, gradients of a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, GRADIENT, Problem, workload


@workload(small=(3, 2, 5), normal=(8, 3, 200), large=(32, 8, 500), rows=BOTH)
def riccati(states: int, inputs: int, steps: int) -> Problem:
    """Riccati's recursion for optimal feedback: {states} states, {inputs} inputs, {steps} steps."""

    def step(xnp: Any, a: Any, b: Any, q: Any, r: Any, p: Any) -> Any:
        along = b.T @ p
        gain = xnp.linalg.solve(r + along @ b, along @ a)
        return q + a.T @ p @ (a - b @ gain)

    def program(xp: Any) -> Callable[..., Any]:
        def run(a: Any, b: Any, q: Any, r: Any) -> Any:
            def body(p: Any, _: Any) -> Any:
                return step(xp.numpy, a, b, q, r, p), None

            return xp.lax.scan(body, q, None, length=steps)[0]

        return run

    def loop(xnp: Any) -> Callable[..., Any]:
        def run(a: Any, b: Any, q: Any, r: Any) -> Any:
            p = q
            for _ in range(steps):
                p = step(xnp, a, b, q, r, p)
            return p

        return run

    rng = np.random.default_rng(0)
    a = np.linalg.qr(rng.normal(size=(states, states)))[0]
    arguments = a, rng.normal(size=(states, inputs)), np.eye(states), np.eye(inputs)
    return Problem(arguments, program, loop(np), argnums=(0, 1, 2, 3), torch=loop, tolerance=100.0)


@workload(small=(8, 5, 2), normal=(512, 30, 10), large=(4096, 50, 50), rows=FORWARD)
def predictive_control(count: int, horizon: int, steps: int) -> Problem:
    """Control of a pendulum by {count} rollouts of {horizon} steps, weighted, {steps} times."""
    h = 0.05

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def moved(angle: Any, speed: Any, torque: Any) -> tuple[Any, Any]:
            speed = speed + h * (9.81 * xnp.sin(angle) + torque - 0.1 * speed)
            return angle + h * speed, speed

        def run(angle: Any, speed: Any, noise: Any) -> Any:
            def cost(angle: Any, speed: Any, torques: Any) -> Any:
                def step(state: Any, torque: Any) -> Any:
                    angle, speed = moved(*state, torque)
                    price = (1.0 - xnp.cos(angle)) * 5.0 + 0.1 * speed * speed
                    return (angle, speed), price + 0.01 * torque * torque

                return xnp.sum(xp.lax.scan(step, (angle, speed), torques)[1])

            def control(state: Any, noise: Any) -> Any:
                angle, speed, plan = state
                plans = xnp.clip(plan + noise, -8.0, 8.0)
                costs = xp.vmap(cost, (None, None, 0))(angle, speed, plans)
                weights = xnp.exp(xnp.min(costs) - costs)
                plan = weights @ plans / xnp.sum(weights)
                angle, speed = moved(angle, speed, plan[0])
                return (angle, speed, xnp.concatenate([plan[1:], plan[-1:]])), angle

            start = angle, speed, xnp.zeros_like(noise[0, 0])
            return xp.lax.scan(control, start, noise)[1]

        return run

    def loops(angle0, speed0, noise):
        angles = np.empty_like(noise[:, 0, 0])
        plan, plans = np.zeros_like(noise[0, 0]), np.empty_like(noise[0])
        costs = np.empty_like(noise[0, :, 0])
        angle, speed = angle0.item(), speed0.item()
        for t in range(steps):
            for i in range(count):
                x, v, total = angle, speed, 0.0
                for k in range(horizon):
                    torque = min(max(plan[k] + noise[t, i, k], -8.0), 8.0)
                    v += h * (9.81 * np.sin(x) + torque - 0.1 * v)
                    x += h * v
                    price = (1.0 - np.cos(x)) * 5.0 + 0.1 * v * v
                    total += price + 0.01 * torque * torque
                    plans[i, k] = torque
                costs[i] = total
            best, weights = costs.min(), 0.0
            plan[:] = 0.0
            for i in range(count):
                weight = np.exp(best - costs[i])
                weights += weight
                for k in range(horizon):
                    plan[k] += weight * plans[i, k]
            for k in range(horizon):
                plan[k] /= weights
            speed += h * (9.81 * np.sin(angle) + plan[0] - 0.1 * speed)
            angle += h * speed
            angles[t] = angle
            for k in range(horizon - 1):
                plan[k] = plan[k + 1]
        return angles

    noise = 2.0 * np.random.default_rng(0).normal(size=(steps, count, horizon))
    arguments = np.array(3.0), np.array(0.0), noise
    return Problem(arguments, program, loops, as_written=("torch",), loops=True, tolerance=300.0)


@workload(small=(6, 5, 3), normal=(64, 50, 16), large=(1000, 100, 64), rows=GRADIENT)
def cart_pole(count: int, steps: int, units: int) -> Problem:
    """Policy gradient of a balanced pole: {count} episodes of {steps} steps, {units} units."""
    h = 0.02

    def step(xnp: Any, fixed: Any, w1: Any, w2: Any, state: Any, draw: Any) -> tuple[Any, Any]:
        x, v, angle, spin, alive, logs = state
        inputs = fixed(xnp.stack([x, v, angle, spin], 1))
        logits = xnp.tanh(inputs @ w1) @ w2
        chance = 1.0 / (1.0 + xnp.exp(-logits))
        right = draw < fixed(chance)
        logs = logs + alive * xnp.log(xnp.where(right, chance, 1.0 - chance))
        force = xnp.where(right, 10.0, -10.0 * xnp.ones_like(x))
        pull = (force + 0.05 * spin * spin * xnp.sin(angle)) / 1.1
        fall = 9.8 * xnp.sin(angle) - xnp.cos(angle) * pull
        fall = fall / (0.5 * (4.0 / 3.0 - 0.1 * xnp.cos(angle) ** 2 / 1.1))
        push = pull - 0.05 * fall * xnp.cos(angle) / 1.1
        x, v, angle, spin = x + h * v, v + h * push, angle + h * spin, spin + h * fall
        alive = xnp.where(xnp.abs(angle) < 0.2, alive, 0.0)
        return (x, v, angle, spin, alive, logs), alive

    def begin(xnp: Any, start: Any) -> tuple[Any, ...]:
        columns = tuple(start[:, i] for i in range(4))
        return (*columns, xnp.ones_like(columns[0]), xnp.zeros_like(columns[0]))

    def loss(xnp: Any, fixed: Any, logs: Any, rewards: Any) -> Any:
        returns = fixed(rewards)
        return -xnp.mean((returns - xnp.mean(returns)) * logs) / steps

    def program(xp: Any) -> Callable[..., Any]:
        xnp, fixed = xp.numpy, xp.lax.stop_gradient

        def run(w1: Any, w2: Any, start: Any, draws: Any) -> Any:
            body = lambda s, d: step(xnp, fixed, w1, w2, s, d)  # noqa: E731
            state, alive = xp.lax.scan(body, begin(xnp, start), draws)
            return loss(xnp, fixed, state[5], xnp.sum(alive, 0))

        return run

    def loop(xnp: Any, fixed: Any) -> Callable[..., Any]:
        def run(w1: Any, w2: Any, start: Any, draws: Any) -> Any:
            state, rewards = begin(xnp, start), 0.0
            for draw in draws:
                state, alive = step(xnp, fixed, w1, w2, state, draw)
                rewards = rewards + alive
            return loss(xnp, fixed, state[5], rewards)

        return run

    rng = np.random.default_rng(0)
    arguments = (
        0.5 * rng.normal(size=(4, units)),
        0.5 * rng.normal(size=units),
        0.05 * rng.normal(size=(count, 4)),
        rng.uniform(size=(steps, count)),
    )
    return Problem(
        arguments,
        program,
        loop(np, lambda x: x),
        argnums=(0, 1),
        torch=lambda torch: loop(torch, lambda x: x.detach()),
        tolerance=30.0,
    )
