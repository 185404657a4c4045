"""The functions of `nn` in compiled programs, with their gradients."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import nn

X = np.random.default_rng(0).normal(size=(5, 6)) * 3
WHERE = np.random.default_rng(1).random((5, 6)) < 0.7
FUNCTIONS = {
    **{name: getattr(nn, name) for name in ("softplus", "mish", "gelu", "selu", "relu6", "glu")},
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "masked softmax": lambda x: nn.softmax(x, where=WHERE),
    "logsumexp": lambda x: nn.logsumexp(x, -1),
    "logmeanexp": lambda x: nn.logmeanexp(x, 0),
    "standardize": nn.standardize,
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name, dtype):
    f, x = FUNCTIONS[name], X.astype(dtype)
    rtol = 1e-5 if dtype == np.float32 else 1e-13

    def loss(v):
        return (f(v) ** 2).sum()

    for function in (f, fg.grad(loss)):
        expected, actual = function(x), fg.jit(function)(x)
        assert actual.dtype == expected.dtype == dtype
        np.testing.assert_allclose(actual, expected, rtol, 10 * rtol)


def test_initial_weights():
    init = nn.initializers.he_normal()
    key = fg.random.key(1)
    expected = init(key, (4, 3))
    np.testing.assert_allclose(fg.jit(lambda k: init(k, (4, 3)))(key), expected, 1e-13)
