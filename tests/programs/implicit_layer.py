"""Fixed points and a linear solve as differentiable layers, in autograd's style."""

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import grad, jacobian
from funcgrad.interop.autograd.misc.fixed_points import fixed_point

RNG = np.random.RandomState(6)
W = 0.2 * RNG.randn(4, 4)


def distance(x, y):
    return np.max(np.abs(x - y))


def layer(b):
    return lambda z: np.tanh(np.dot(W, z) + b)


def equilibrium(b):
    return fixed_point(layer, b, np.zeros(4), distance, 1e-13)


def main():
    b = RNG.randn(4)
    z = equilibrium(b)
    assert np.allclose(z, np.tanh(W @ z + b))
    local = np.diag(1 - z**2)
    exact = np.linalg.solve(np.eye(4) - local @ W, local)
    slopes = np.array([grad(lambda b, i=i: equilibrium(b)[i])(b) for i in range(4)])
    assert np.allclose(slopes, exact, atol=1e-9)
    solve = jacobian(lambda m: np.linalg.solve(m, b))(np.eye(4) + W)
    inverse = np.linalg.inv(np.eye(4) + W)
    assert np.allclose(solve, -np.einsum("ij,k->ijk", inverse, inverse @ b))
    return {"z": z.tolist()}
