"""A Kalman filter's likelihood gives back the noise that a course was simulated with."""

import jax
import jax.numpy as jnp
from jax import lax, random
from jax.scipy.linalg import cho_factor, cho_solve

transition = jnp.array([[1.0, 0.1], [0.0, 1.0]])
observation = jnp.array([[1.0, 0.0]])


def simulate(key, process, noise, steps=400):
    def body(state, key):
        k1, k2 = random.split(key)
        state = transition @ state + process * random.normal(k1, (2,))
        return state, observation @ state + noise * random.normal(k2, (1,))

    return lax.scan(body, jnp.zeros(2), random.split(key, steps))[1]


def negative_log_likelihood(logs, data):
    process, noise = jnp.exp(logs)
    q, r = process**2 * jnp.eye(2), noise**2 * jnp.eye(1)

    def body(carry, y):
        mean, cov = carry
        mean, cov = transition @ mean, transition @ cov @ transition.T + q
        s = observation @ cov @ observation.T + r
        error = y - observation @ mean
        factor = cho_factor(s, lower=True)
        gain = cho_solve(factor, observation @ cov).T
        term = 0.5 * (error @ cho_solve(factor, error) + jnp.linalg.slogdet(s)[1])
        return (mean + gain @ error, cov - gain @ s @ gain.T), term

    return lax.scan(body, (jnp.zeros(2), jnp.eye(2)), data)[1].sum()


data = simulate(random.PRNGKey(5), 0.2, 0.5)
value_and_grad = jax.jit(jax.value_and_grad(negative_log_likelihood))
hessian = jax.jit(jax.hessian(negative_log_likelihood))
logs = jnp.log(jnp.array([0.3, 0.4]))
for _ in range(10):
    value, gradient = value_and_grad(logs, data)
    logs = logs - jnp.linalg.solve(hessian(logs, data) + 1e-3 * jnp.eye(2), gradient)
process, noise = jnp.exp(logs)
assert abs(process - 0.2) < 0.06, process
assert abs(noise - 0.5) < 0.06, noise
assert jnp.linalg.norm(gradient) < 1e-3
