"""Results of functions of other packages that are assigned to, as NumPy's and SciPy's are."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special

import funcgrad as fg
from funcgrad import nn
from funcgrad.scipy import fft, linalg, ndimage, signal, special

X = np.array([0.3, -0.8, 1.4])
SQUARE = np.eye(3) + np.diag([0.5, 0.25], 1)
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "expit": (special.expit, scipy.special.expit),
    "logsumexp": (
        lambda x: special.logsumexp(np.stack([x, 2 * x]), axis=0),
        lambda x: scipy.special.logsumexp(np.stack([x, 2 * x]), axis=0),
    ),
    "dct": (fft.dct, scipy.fft.dct),
    "solve": (lambda x: linalg.solve(SQUARE, x), lambda x: scipy.linalg.solve(SQUARE, x)),
    "lfilter": (
        lambda x: signal.lfilter([1.0, 0.5], [1.0, -0.2], x),
        lambda x: scipy.signal.lfilter([1.0, 0.5], [1.0, -0.2], x),
    ),
    "gaussian_filter1d": (
        lambda x: ndimage.gaussian_filter1d(x, 1.0),
        lambda x: scipy.ndimage.gaussian_filter1d(x, 1.0),
    ),
    "softmax": (nn.softmax, scipy.special.softmax),
    "relu": (nn.relu, lambda x: np.maximum(x, 0)),
    "jit": (fg.jit(lambda x: x * x), np.square),
    "a tuple": (
        lambda x: linalg.lu(np.outer(x, x) + SQUARE)[2][0],
        lambda x: scipy.linalg.lu(np.outer(x, x) + SQUARE)[2][0],
    ),
}


def changed(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        y = function(x)
        y[0] = 5.0
        y[1:] *= x[0]
        return y

    return run


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_assigned_to(name: str) -> None:
    own, reference = map(changed, FUNCTIONS[name])
    expected = reference(X)
    np.testing.assert_allclose(own(X), expected, rtol=1e-12)
    np.testing.assert_allclose(fg.jit(own)(X), expected, rtol=1e-12)
    np.testing.assert_allclose(fg.vmap(own)(X[None]), expected[None], rtol=1e-12)
    value, push = fg.linearize(own, X)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    step = 1e-6
    slope = (reference(X + step * X) - reference(X - step * X)) / (2 * step)
    np.testing.assert_allclose(push(X), slope, rtol=1e-7, atol=1e-9)


def test_a_result_that_is_an_argument_is_that_argument() -> None:
    def run(x: Any) -> Any:
        y = 2 * x
        nn.identity(y)[0] = 7.0  # NumPy's identity function gives the array itself
        return y

    np.testing.assert_array_equal(run(X), [7.0, -1.6, 2.8])
    np.testing.assert_array_equal(fg.jit(run)(X), [7.0, -1.6, 2.8])
    with pytest.raises(fg.errors.ArgumentError, match="arrays of the caller are not changed"):
        fg.jit(changed(nn.identity))(X)


def test_outside_of_transformations_results_are_arrays() -> None:
    for own, _ in FUNCTIONS.values():
        assert type(own(X)) is np.ndarray


def test_names_and_descriptions_are_kept() -> None:

    assert special.expit.__module__ == "funcgrad.scipy.special"
    assert "Args:" in (linalg.solve.__doc__ or "")
    assert nn.logsumexp is special.logsumexp
    assert pickle.loads(pickle.dumps(linalg.solve)) is linalg.solve
