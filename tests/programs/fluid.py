"""A field advected on a ring: an initial field that becomes a target, by SciPy and autograd."""

import scipy.optimize

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import checkpoint, make_vjp, value_and_grad

N = 32
SPEED = 0.4 + 0.2 * np.sin(2 * np.pi * np.arange(N) / N)


def advect(u):
    """An upwind step of u_t + (speed u)_x = 0, which keeps the sum."""
    flow = SPEED * u
    return u - flow + np.roll(flow, 1)


def simulate(u, steps=20):
    for _ in range(steps):
        u = advect(u)
    return u


def main():
    target = np.exp(-0.5 * ((np.arange(N) - 20) / 4.0) ** 2)

    def misfit(u):
        return np.sum((simulate(u) - target) ** 2) + 1e-6 * np.sum(u**2)

    found = scipy.optimize.minimize(value_and_grad(misfit), np.zeros(N), jac=True, method="BFGS")
    matrix = np.linalg.matrix_power(np.array([advect(row) for row in np.eye(N)]).T, 20)
    exact = np.linalg.solve(matrix.T @ matrix + 1e-6 * np.eye(N), matrix.T @ target)
    assert abs(found.fun - misfit(exact)) < 1e-5
    assert abs(np.sum(simulate(exact)) - np.sum(exact)) < 1e-9
    pull, _ = make_vjp(checkpoint(simulate))(exact)
    assert np.allclose(pull(target), matrix.T @ target)
    return {"misfit": float(found.fun)}
