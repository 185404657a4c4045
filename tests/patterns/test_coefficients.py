"""Products with many seeds: chains of operations on elements are one coefficient."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.passes.dce import dce
from funcgrad.sparsity import coloring, hessian_sparsity

X = np.linspace(-0.9, 1.1, 40)


def hub(x):
    return np.sum(np.exp(np.sin(x[0] * x[1:]) ** 3) / (2.0 + np.cos(x[1:])))


def guarded(x):
    y = x[0] * x
    return np.sum(np.where(y > 0, np.sqrt(np.where(y > 0, y, 1.0)), 0.0) + y**2)


def called(x):
    inner = fg.jit(lambda a, b: (np.sin(a * b), a - b))
    a, b = inner(x[0] + x, x)
    return np.sum(a * b**2)


@pytest.mark.parametrize("f", [hub, guarded, called])
def test_hessians_by_seeds(f):
    found = fg.hessian(f, sparse=True)(X).toarray()
    np.testing.assert_allclose(found, fg.hessian(f)(X), rtol=1e-9, atol=1e-12)


def test_chains_take_one_product_for_each_seed():
    ends = np.random.default_rng(0).permutation(60).reshape(2, 30) % 40

    def pairs(x):
        q = x[ends[0]] + x[ends[1]]
        return np.sum(np.exp(np.sin(q) ** 3) / (2.0 + np.cos(q)))

    program = fg.make_jaxpr(lambda x: fg.hessian(pairs, sparse=True)(x).data)(X).program
    count = coloring(hessian_sparsity(pairs)(X), "symmetric").n_colors
    (equation,) = program.equations
    of_seeds = [
        e.primitive.name
        for e in dce(equation.primitive.program).equations
        if e.primitive.is_elementwise and e.outputs[0].aval.shape == (count, 30)
    ]
    assert of_seeds == ["add", "scale"]
    np.testing.assert_allclose(
        fg.hessian(pairs, sparse=True)(X).toarray(), fg.hessian(pairs)(X), rtol=1e-9, atol=1e-12
    )
