"""Gradients of posteriors: against differences, by address, and against JAX's of the same code."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from tests.interop import posteriors
from tests.interop.posteriors import MODELS, density

DAILY = (
    "robust", "overdispersed_counts", "ordinal", "schools_noncentered", "radon", "spatial_counts",
    "process", "garch", "local_trend", "hidden_states", "predators", "items", "mixture_of_points",
    "topics", "proportional_hazards",
)  # fmt: skip
NAMES = [
    pytest.param(name, marks=[] if name in DAILY else [pytest.mark.nightly]) for name in MODELS
]


def point(n: int) -> np.ndarray:
    return 0.3 * np.random.default_rng(n).standard_normal(n)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name: str) -> None:
    found = density(name)
    x = point(found.n)
    value, gradient = found.value_and_grad(x)
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))
    way = np.random.default_rng(1).standard_normal(found.n)
    way /= np.linalg.norm(way)
    step = 1e-4
    ahead, behind, far, near = (found(x + s * way) for s in (step, -step, 2 * step, -2 * step))
    slope = (8 * (ahead - behind) - (far - near)) / (12 * step)
    scale = np.linalg.norm(gradient) + 1e-3 * abs(value)
    assert abs(gradient @ way - slope) < 1e-6 * scale
    by_address, gradient_there = found.compiled(x)
    np.testing.assert_allclose(by_address, value, rtol=1e-12)
    np.testing.assert_allclose(gradient_there, gradient, rtol=1e-9, atol=1e-9 * scale)


@cache
def of_jax() -> Any:
    """The same models with JAX in the place of NumPy."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    spec = importlib.util.spec_from_file_location("posteriors_of_jax", posteriors.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    made = {name: module.made(name)[0] for name in MODELS}
    module.np, module.special = jax.numpy, jax.scipy.special
    return jax, made


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_jax(name: str) -> None:
    jax, made = of_jax()
    found = density(name)
    parameters = found.unflatten(point(found.n))
    fun, *_ = posteriors.made(name)
    mine = fg.jit(fg.value_and_grad(fun))(parameters)
    theirs = jax.value_and_grad(made[name])(jax.tree.map(np.asarray, parameters))
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-10)
    for key, expected in theirs[1].items():
        scale = float(np.abs(expected).max()) + 1e-6
        np.testing.assert_allclose(mine[1][key], expected, rtol=1e-8, atol=1e-9 * scale)
