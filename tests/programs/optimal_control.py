"""The gain of a linear regulator by gradients through a plain loop, against Riccati's equation."""

from scipy.linalg import solve_discrete_are

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import grad, jacobian
from funcgrad.interop.autograd.misc.optimizers import adam

A = np.array([[1.0, 0.2], [0.0, 1.0]])
B = np.array([[0.02], [0.2]])


def cost(gain, i=0):
    """The sum over both unit vectors as starts."""
    x, total = np.eye(2), 0.0
    for _ in range(50):
        u = -np.dot(gain, x)
        total = total + np.sum(x**2) + np.sum(u**2)
        x = np.dot(A, x) + np.dot(B, u)
    return total


def main():
    gain = adam(grad(cost), np.array([[0.8, 1.5]]), num_iters=100, step_size=0.05)
    p = solve_discrete_are(A, B, np.eye(2), np.eye(1))
    exact = np.linalg.solve(np.eye(1) + B.T @ p @ B, B.T @ p @ A)
    assert np.allclose(gain, exact, atol=2e-3)
    assert abs(cost(exact) - np.trace(p)) < 1e-2
    curvature = jacobian(lambda g: grad(cost)(g))(gain).reshape(2, 2)
    assert np.all(np.linalg.eigvalsh(curvature) > 0)
    return {"gain": gain.tolist()}
