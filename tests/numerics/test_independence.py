"""A result depends on its own arguments: not on the batch that it is in, nor on other threads.

Where single calls and batches do differ, docs/numerics.md says so, and the last test shows it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.runtime.threads import is_available

RNG = np.random.default_rng(0)
DTYPES = ["float32", "float64"]
PLACES = np.array([3, 1, 3, 0])


def weights(x: Any, *shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape).astype(x.dtype)


def layer_norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def network(x: Any) -> Any:
    return np.tanh(x @ weights(x, 64, 128)) @ weights(x, 128, 10)


def convolution(x: Any) -> Any:
    return fg.lax.conv(x[None], weights(x, 4, 3, 3, 3), (1, 1), "SAME")


def positive(x: Any) -> Any:
    return x @ x.T + 10 * np.eye(6, dtype=x.dtype)


def steps(x: Any) -> Any:
    return fg.lax.scan(lambda c, _: (c * 0.9 + 0.1 * x * c, None), x, None, length=50)[0]


# A function of one member of the batch, and the shape of that.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "elementwise": (lambda x: np.exp(np.sin(x)) * x / (1 + x * x), (257,)),
    "power": (lambda x: np.abs(x) ** 1.7, (57,)),
    "special": (lambda x: fg.scipy.special.gammaln(np.abs(x)), (57,)),
    "softmax": (lambda x: fg.nn.softmax(x), (100,)),
    "sum": (lambda x: x.sum(), (100,)),
    "rows": (lambda x: x.mean(axis=1), (3, 41)),
    "columns": (lambda x: x.sum(axis=0), (300, 7)),
    "few columns": (lambda x: x.sum(axis=0), (300, 3)),
    "extremes": (lambda x: x.max(axis=-1), (30, 70)),
    "layer_norm": (layer_norm, (20, 64)),
    "running": (lambda x: np.cumsum(x), (333,)),
    "steps": (steps, (3,)),
    "sort": (lambda x: np.sort(x), (77,)),
    "gather": (lambda x: x[PLACES], (10,)),
    "scatter": (lambda x: fg.numpy.zeros(9, x.dtype).at[PLACES].add(x), (4,)),
    "network": (network, (64,)),
    "product": (lambda x: x @ x.T, (20, 33)),
    "convolution": (convolution, (3, 16, 16)),
    "cholesky": (lambda x: np.linalg.cholesky(positive(x)), (6, 6)),
    "solve": (lambda x: np.linalg.solve(positive(x), x[:, 0]), (6, 6)),
    "fft": (lambda x: np.fft.rfft(x).imag, (64,)),
}
SAMPLE = ["elementwise", "columns", "network", "sort"]
in_every_run = [
    pytest.param(name, marks=() if name in SAMPLE else pytest.mark.nightly) for name in PROGRAMS
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", in_every_run)
def test_members_of_a_batch_do_not_know_of_each_other(name: str, dtype: str) -> None:
    function, shape = PROGRAMS[name]
    x = RNG.normal(size=(65, *shape)).astype(dtype)
    together = fg.jit(fg.vmap(function))
    whole = together(x)
    for n in (1, 2, 5, 33):
        np.testing.assert_array_equal(together(x[:n]), whole[:n])
    np.testing.assert_array_equal(together(x[::-1])[::-1], whole)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", in_every_run)
def test_a_batch_gives_what_single_calls_give(name: str, dtype: str) -> None:
    function, shape = PROGRAMS[name]
    x = RNG.normal(size=(9, *shape)).astype(dtype)
    single = fg.jit(function)
    np.testing.assert_array_equal(fg.jit(fg.vmap(function))(x), [single(member) for member in x])


# Large enough that threads divide them.
LARGE: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "elementwise": (PROGRAMS["elementwise"][0], (300_000,)),
    "sum": (lambda x: x.sum(), (2_000_000,)),
    "norm": (lambda x: np.sqrt((x * x).sum()), (300_001,)),
    "rows": (lambda x: x.mean(axis=1), (700, 700)),
    "columns": (lambda x: x.sum(axis=0), (700, 700)),
    "softmax": (lambda x: fg.nn.softmax(x), (700, 700)),
    "running": (lambda x: np.cumsum(x, axis=1), (700, 700)),
    "network": (lambda x: fg.grad(lambda x: network(x).sum())(x), (3000, 64)),
    "product": (lambda x: x.T @ x, (800, 300)),
    "vector": (lambda x: x @ x[0], (900, 900)),
    "convolution": (fg.vmap(fg.grad(lambda x: convolution(x).sum())), (16, 3, 32, 32)),
    "scatter": (
        lambda x: fg.numpy.zeros(50, x.dtype).at[np.arange(x.size) % 50].add(x), (200_000,)
    ),
    "lanes": (lambda x: fg.vmap(steps)(x), (20_000, 3)),
    "factors": (fg.vmap(PROGRAMS["cholesky"][0]), (3000, 6, 6)),
    "sort": (lambda x: np.sort(x), (700, 700)),
}  # fmt: skip


@pytest.mark.skipif(not is_available(), reason="one thread only")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("sum", "network") else pytest.mark.nightly)
        for name in LARGE
    ],
)
def test_results_do_not_depend_on_the_number_of_threads(name: str, dtype: str) -> None:
    function, shape = LARGE[name]
    x = RNG.normal(size=shape).astype(dtype)
    alone = fg.jit(function, threads=1)(x)
    for threads in (2, 3, 4):
        np.testing.assert_array_equal(fg.jit(function, threads=threads)(x), alone)


def digests() -> str:
    """What compiled programs compute, as bytes in short."""
    random = np.random.default_rng(5)
    digest = hashlib.sha256()
    for name in ("elementwise", "sum", "network", "cholesky"):
        function, shape = PROGRAMS[name]
        x = random.normal(size=(3, *shape)).astype(np.float32)
        digest.update(fg.jit(fg.vmap(function))(x).tobytes())
    return digest.hexdigest()


def test_another_process_gives_the_same_bits() -> None:
    program = "from tests.numerics.test_independence import digests; print(digests())"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == digests()


def slope(x: Any) -> Any:
    return fg.grad(lambda x: network(x).sum())(x)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (slope, (64,)),
        (lambda x: x.sum(), (1000,)),
        (lambda x: x.mean(axis=1), (30, 70)),
        (lambda x: (np.exp(x) * x).mean(axis=0), (70, 8)),
    ],
    ids=["product of one row", "sum", "rows", "computed columns"],
)
def test_some_programs_differ_by_rounding(
    function: Callable[[Any], Any], shape: tuple[int, ...]
) -> None:
    """Products of one row sum in another order, and so do rows of which there are many."""
    x = RNG.normal(size=(9, *shape)).astype(np.float32)
    single = fg.jit(function)
    np.testing.assert_allclose(
        fg.jit(fg.vmap(function))(x), [single(member) for member in x], rtol=1e-4, atol=1e-4
    )
