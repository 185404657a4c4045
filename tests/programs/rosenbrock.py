"""Newton-CG and trust regions with autograd's gradients and Hessian-vector products."""

import scipy.optimize
from scipy.optimize import rosen, rosen_der, rosen_hess, rosen_hess_prod

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import (
    grad,
    hessian,
    hessian_vector_product,
    jacobian,
    make_hvp,
    value_and_grad,
)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def main():
    x = np.array([-1.2, 1.0, 0.4, 1.3])
    v = np.array([0.3, -1.0, 2.0, 0.1])
    assert np.allclose(rosenbrock(x), rosen(x))
    assert np.allclose(grad(rosenbrock)(x), rosen_der(x))
    assert np.allclose(hessian(rosenbrock)(x), rosen_hess(x))
    assert np.allclose(jacobian(grad(rosenbrock))(x), rosen_hess(x))
    hvp = hessian_vector_product(rosenbrock)
    assert np.allclose(hvp(x, v), rosen_hess_prod(x, v))
    assert np.allclose(make_hvp(rosenbrock)(x)[0](v), rosen_hess_prod(x, v))
    found = scipy.optimize.minimize(
        value_and_grad(rosenbrock), np.full(4, 0.8), jac=True, hessp=hvp, method="Newton-CG",
        options={"xtol": 1e-10},
    )  # fmt: skip
    assert np.allclose(found.x, 1.0, atol=1e-5)
    return {"x": found.x.tolist()}
