"""JAX's names about arrays and devices."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError

X = np.arange(3.0)


def test_arrays_and_traced_values_are_arrays() -> None:
    seen = []
    fg.grad(lambda x: seen.append(isinstance(x, fg.Array)) or x.sum())(X)
    fg.jit(lambda x: seen.append(isinstance(x, fg.Array)) or x)(X)
    assert seen == [True, True]
    assert isinstance(np.float64(1), fg.Array)
    assert not isinstance(1.0, fg.Array)
    with pytest.raises(TypeError, match=r"for annotations; make arrays with numpy\.array"):
        fg.Array(3)


def test_arrays_stay_where_they_are() -> None:
    tree = {"x": X, "n": 2}
    assert fg.block_until_ready(tree) is tree
    put = fg.device_put(tree)
    assert put["x"] is X
    assert put["n"].dtype == np.int64
    assert fg.device_get(tree)["x"] is X
    np.testing.assert_array_equal(fg.jit(fg.device_put)(X), X)
    np.testing.assert_array_equal(fg.grad(lambda x: fg.device_put(x).sum())(X), np.ones(3))


def test_mistakes() -> None:
    with pytest.raises(ArgumentError, match="there is one device, the CPU; got device='gpu'"):
        fg.device_put(X, "gpu")
    with pytest.raises(DtypeError):
        fg.device_put(["text"])


def test_names_of_modules() -> None:
    assert fg.custom_batching.custom_vmap is fg.custom_vmap
    assert fg.custom_derivatives.closure_convert is fg.closure_convert
    with fg.named_scope("layer"):
        assert fg.jit(np.sin)(0.0) == 0.0
