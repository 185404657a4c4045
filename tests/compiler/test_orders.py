"""Axes of results in the order that is fastest: convolutions with few channels, and what follows.

References are NumPy's sliding windows.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(2, 10, 12, 1))
KERNEL = RNG.normal(size=(5, 5, 1, 3))
SHAPE = (2, 6, 8, 3)
GIVEN = RNG.normal(size=SHAPE)
BIAS = RNG.normal(size=3)
SECOND = RNG.normal(size=(3, 3, 3, 4))
MATRIX = RNG.normal(size=(3, 4))
LAST = ("NHWC", "HWIO", "NHWC")
FOLLOWED = "[2,3,6,8]"
"""How the axes of a convolution lie: windows side by side."""


def np_convolve(x: Any, w: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], (1, 2))
    return np.einsum("nyxcij,ijco->nyxo", windows, w)


def np_pool(x: Any, fold: Any) -> Any:
    n, h, w, c = x.shape
    return fold(x.reshape(n, h // 2, 2, w // 2, 2, c), axis=(2, 4))


NP = SimpleNamespace(
    np=np,
    conv=np_convolve,
    max_pool=lambda x: np_pool(x, np.max),
    add_pool=lambda x: np_pool(x, np.sum),
    cumsum=lambda x: np.cumsum(x, 1),
)
WINDOW = (1, 2, 2, 1)
OURS = SimpleNamespace(
    np=fnp,
    conv=lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=LAST),
    max_pool=lambda x: lax.reduce_window(x, -np.inf, lax.max, WINDOW, WINDOW, "VALID"),
    add_pool=lambda x: lax.reduce_window(x, 0.0, lax.add, WINDOW, WINDOW, "VALID"),
    cumsum=lambda x: lax.cumsum(x, 1),
)

# What is computed of a convolution.
PROGRAMS = {
    "alone": lambda m, y: y,
    "points": lambda m, y: m.np.tanh(y * 2.0) * y,
    "with a vector": lambda m, y: m.np.maximum(y + BIAS, 0.0),
    "with a constant of its shape": lambda m, y: y * GIVEN,
    "comparison": lambda m, y: m.np.where(y > 0, y, -0.1 * y),
    "sum over places": lambda m, y: m.np.sum(y * y, axis=(0, 1, 2)),
    "sum over channels": lambda m, y: m.np.sum(y * y, axis=3),
    "sum over one axis": lambda m, y: m.np.sum(y * y, axis=1),
    "largest": lambda m, y: m.np.max(y, axis=(1, 3)),
    "mean and variance": lambda m, y: (
        (y - m.np.mean(y, (0, 1, 2))) / m.np.sqrt(m.np.var(y, (0, 1, 2)) + 1.0)
    ),
    "largest of windows": lambda m, y: m.max_pool(y + BIAS),
    "sums of windows": lambda m, y: m.add_pool(y * y),
    "flattened": lambda m, y: (y * 2.0).reshape(2, -1),
    "transposed": lambda m, y: m.np.transpose(y * 2.0, (3, 0, 2, 1)),
    "product": lambda m, y: (y * 2.0) @ MATRIX,
    "part": lambda m, y: (y * 2.0)[:, 1:4, ::2],
    "running sum": lambda m, y: m.cumsum(y * 2.0),
    "joined": lambda m, y: m.np.concatenate([y * 2.0, m.np.flip(y, 2)], 1),
    "chosen": lambda m, y: m.np.take(y * 2.0, np.array([2, 0, 0]), 3),
    "convolution": lambda m, y: m.conv(m.np.tanh(y), SECOND),
}
EVERY_RUN = [
    "with a vector",
    "mean and variance",
    "largest of windows",
    "transposed",
    "convolution",
]


def marked(names: Any) -> list[Any]:
    """Those that compile the most different kernels in every run, the others nightly."""
    return [n if n in EVERY_RUN else pytest.param(n, marks=pytest.mark.nightly) for n in names]


@pytest.mark.parametrize("name", marked(PROGRAMS))
def test_values(name):
    program = PROGRAMS[name]
    f = fg.jit(lambda x, w: program(OURS, OURS.conv(x, w)))
    expected = program(NP, NP.conv(IMAGES, KERNEL))
    y = f(IMAGES, KERNEL)
    assert y.flags.c_contiguous
    np.testing.assert_allclose(y, expected, 1e-10, 1e-12)
    plan = f.lower(IMAGES, KERNEL).as_text().partition("\nplan\n")[2].partition("# kernel")[0]
    assert f"f64{FOLLOWED}" in plan


DIFFERENTIATED = [
    "points", "with a constant of its shape", "mean and variance", "largest of windows",
    "sums of windows", "flattened", "part", "convolution",
]  # fmt: skip


@pytest.mark.parametrize("name", marked(DIFFERENTIATED))
def test_gradients(name):
    program = PROGRAMS[name]
    weights = RNG.normal(size=np.shape(program(NP, NP.conv(IMAGES, KERNEL))))

    def loss(m: Any, x: Any, w: Any) -> Any:
        return m.np.sum(weights * program(m, m.conv(x, w)))

    slopes = fg.jit(fg.grad(lambda x, w: loss(OURS, x, w), (0, 1)))(IMAGES, KERNEL)
    for i, slope in enumerate(slopes):
        direction = RNG.normal(size=slope.shape)
        moved = [[IMAGES, KERNEL] for _ in range(2)]
        for sign, arguments in zip((1e-5, -1e-5), moved, strict=True):
            arguments[i] = arguments[i] + sign * direction
        rise = (loss(NP, *moved[0]) - loss(NP, *moved[1])) / 2e-5
        np.testing.assert_allclose(np.vdot(slope, direction), rise, 1e-6, 1e-7)


def test_an_input_of_the_same_shape_decides():
    # Nothing is gained by walking across an array that somebody has given.
    f = fg.jit(lambda x, w, given: fnp.tanh(OURS.conv(x, w)) + given)
    expected = np.tanh(np_convolve(IMAGES, KERNEL)) + GIVEN
    np.testing.assert_allclose(f(IMAGES, KERNEL, GIVEN), expected, 1e-12)


def test_in_a_loop_whose_state_it_is():
    same = RNG.normal(size=(3, 3, 3, 3)) / 5

    def f(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            y = lax.conv_general_dilated(x, same, (1, 1), "SAME", dimension_numbers=LAST)
            return fnp.tanh(y) + 0.5 * x

        return lax.fori_loop(0, 3, step, x)

    expected = x = RNG.normal(size=(2, 9, 8, 3))
    for _ in range(3):
        padded = np.pad(expected, ((0, 0), (1, 1), (1, 1), (0, 0)))
        expected = np.tanh(np_convolve(padded, same)) + 0.5 * expected
    np.testing.assert_allclose(fg.jit(f)(x), expected, 1e-11)


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_kernels_of_long_sums(rows):
    # Gradients in kernels are sums over all places, block by block.
    x, g = RNG.normal(size=(rows, 30, 36, 1)), RNG.normal(size=(rows, 28, 34, 5))
    f = fg.jit(fg.grad(lambda w: (OURS.conv(x, w) * g).sum()))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    expected = np.einsum("nyxcij,nyxo->ijco", windows, g)
    np.testing.assert_allclose(f(np.zeros((3, 3, 1, 5))), expected, 1e-11, 1e-11)


TRANSPOSED = {
    "points": (lambda m, x: m.exp(x.T) * 2.0, True),
    "sum over columns": (lambda m, x: m.exp(x.T).sum(0), False),
    "sum over rows": (lambda m, x: m.exp(x.T).sum(1), False),
    "two arrays": (lambda m, x: (m.exp(x.T) * m.abs(x.T)).sum(0), False),
    "normalised": (lambda m, x: (lambda e: (e / e.sum(0)).sum(1))(m.exp(x.T)), False),
    "transposed again": (lambda m, x: m.sin(m.exp(x.T) + 1.0).T, False),
    "running sum": (lambda m, x: m.cumsum(m.exp(x.T), 1).T, False),
    "with another array": (lambda m, x: m.exp(x.T) + m.ones_like(x.T) * GIVEN_ROWS, True),
    "product": (lambda m, x: VECTOR @ m.abs(x.T), False),
    "converted product": (lambda m, x: VECTOR @ m.round(x.T * 9).astype(np.int8), False),
    "other axes": (lambda m, x: m.exp(x.reshape(5, 8, 30).transpose(2, 0, 1)).sum((0, 2)), False),
}  # fmt: skip
GIVEN_ROWS = RNG.normal(size=(30, 40))
VECTOR = RNG.normal(size=30)


@pytest.mark.parametrize("name", TRANSPOSED)
def test_functions_of_transposed_arrays_follow_their_order(name):
    """Blocks are transposed only where results or other arrays lie in another order."""
    program, is_turned = TRANSPOSED[name]
    x = RNG.normal(size=(40, 30))
    f = fg.jit(lambda x: program(fnp, x))
    found, expected = f(x), program(np, x)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, expected, 1e-12)
    assert ("turn(" in f.lower(x).as_text()) == is_turned
