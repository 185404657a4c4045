"""A primitive with rules of its own, as in autograd's tutorial: a stable log-sum-exp."""

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import elementwise_grad, grad, hessian, make_jvp
from funcgrad.interop.autograd.extend import defjvp, defvjp, primitive
from funcgrad.interop.autograd.test_util import check_grads


@primitive
def logsumexp(x):
    """Written into an array on the way, as a compiled routine would."""
    work = np.array(x, dtype=float)
    top = work.max()
    work -= top
    np.exp(work, out=work)
    return top + np.log(work.sum())


defvjp(logsumexp, lambda ans, x: lambda g: np.full(x.shape, g) * np.exp(x - np.full(x.shape, ans)))
defjvp(logsumexp, lambda g, ans, x: np.sum(g * np.exp(x - ans)))


@primitive
def clipped(x, bound):
    return np.clip(x, -bound, bound)


defvjp(clipped, lambda ans, x, bound: lambda g: g * (np.abs(x) <= bound), None)
defjvp(clipped, lambda g, ans, x, bound: g * (np.abs(x) <= bound), None)


def main():
    x = np.array([1.0, -2.0, 0.5])
    p = np.exp(x) / np.sum(np.exp(x))

    def example(y):
        z = y**2
        return logsumexp(z) + np.sum(np.sin(z))

    check_grads(example)(x)
    assert np.allclose(grad(logsumexp)(x), p)
    assert np.allclose(hessian(logsumexp)(x), np.diag(p) - np.outer(p, p))
    assert np.allclose(make_jvp(logsumexp)(x)(x)[1], p @ x)
    assert np.allclose(elementwise_grad(clipped)(x, 1.0), [1, 0, 1])
    return {"gradient": grad(example)(x).tolist()}
