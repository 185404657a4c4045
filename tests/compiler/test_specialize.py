"""Axes of up to eight elements are written out; what reads a part of them reads it in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.scipy.signal
from funcgrad.compiler.machine import SHORT_AXIS
from tests.compiler.plans import steps_of

RNG = np.random.default_rng(0)


def kernels(x: Any, y: Any) -> Any:
    return np.sum(np.exp(-0.5 * np.sum((x[:, None] - y[None]) ** 2, -1)))


@pytest.mark.parametrize(
    "d", [5, *(pytest.param(d, marks=pytest.mark.nightly) for d in (2, 3, 8, 9))]
)
def test_pairs_of_points(d: int) -> None:
    """No array with the coordinates of all pairs is stored, for sums over either point."""
    x, y = RNG.normal(size=(30, d)), RNG.normal(size=(40, d))
    gradient = fg.jit(fg.grad(kernels, argnums=(0, 1)))
    if d <= SHORT_AXIS:
        assert f"[30,40,{d}]" not in steps_of(gradient.lower(x, y).as_text())
    apart = x[:, None] - y[None]
    slopes = -apart * np.exp(-0.5 * np.sum(apart**2, -1))[..., None]
    found = gradient(x, y)
    np.testing.assert_allclose(found[0], slopes.sum(1), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found[1], -slopes.sum(0), rtol=1e-12, atol=1e-13)


def test_more_than_one_kernel_holds() -> None:
    """Rows of eight with more operations than a kernel has are columns in several kernels."""

    def loss(x: Any, y: Any) -> Any:
        apart = x[:, None] - y[None]
        far, turn = np.sum(apart**2, -1), np.sin(np.sum(apart**3, -1))
        return np.sum(np.exp(-far) + turn / (1 + far) + np.sum(np.tanh(apart), -1))

    x, y = RNG.normal(size=(30, 8)), RNG.normal(size=(40, 8))
    gradient = fg.jit(fg.grad(loss, argnums=(0, 1)))
    assert "[30,40,8]" not in steps_of(gradient.lower(x, y).as_text())
    fg.test_util.check_grads(loss, (x[:3], y[:2]), 1, modes=("rev",))


def test_parts_that_are_results_too() -> None:
    x = RNG.normal(size=(20, 6))
    compiled = fg.jit(lambda x: (np.sin(x), np.sin(x).sum(0), np.sin(x)[:, 2] * 2, np.sin(x)[::2]))
    for found, expected in zip(
        compiled(x), (np.sin(x), np.sin(x).sum(0), np.sin(x)[:, 2] * 2, np.sin(x)[::2]), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


def test_sums_over_windows_copy_none() -> None:
    """The gradient of a convolution kernel of one channel is a sum for every element of it."""
    x, w, k = RNG.normal(size=(70, 90)), RNG.normal(size=(66, 86)), RNG.normal(size=(5, 5))

    def loss(k: Any) -> Any:
        return np.sum(w * fg.scipy.signal.convolve(x, k, mode="valid"))

    gradient = fg.jit(fg.grad(loss))
    assert "[5,5,66,86]" not in steps_of(gradient.lower(k).as_text())
    expected = [[np.sum(w * x[4 - a : 70 - a, 4 - b : 90 - b]) for b in range(5)] for a in range(5)]
    np.testing.assert_allclose(gradient(k), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [lambda x: x.sum(0), lambda x: np.exp(x).sum(0)])
def test_sums_of_few_columns_are_one_pass(function: Any) -> None:
    """One kernel adds up all columns, as for every member of a batch: in the same order."""
    x = RNG.normal(size=(300, 3))
    one = fg.jit(function)
    assert steps_of(one.lower(x).as_text()).count("[300,3] ->") == 1
    np.testing.assert_array_equal(one(x), fg.jit(fg.vmap(function))(x[None])[0])
    np.testing.assert_array_equal(one(x), fg.jit(fg.vmap(function))(np.stack([x, x]))[1])


def test_arrays_of_short_axes_in_loops_have_few_parts() -> None:
    """However many short axes there are: 4,608 products are no variables."""
    x, w = RNG.normal(size=(4, 8, 3, 3, 8)), RNG.normal(size=(3, 3, 8, 8))

    def loss(x: Any, w: Any) -> Any:
        def step(total: Any, window: Any) -> Any:
            return total + np.sum(window[..., None] * w, axis=(1, 2, 3)), None

        return np.sum(np.sin(fg.lax.scan(step, np.zeros((8, 8)), x)[0]))

    gradient = fg.jit(fg.grad(loss, (0, 1)))
    assert gradient.lower(x, w).as_text().count("\n") < 3000
    found = gradient(x, w)
    slopes = np.cos(np.einsum("tnijc,ijcd->nd", x, w))
    of_windows = np.broadcast_to(np.einsum("nd,ijcd->nijc", slopes, w), x.shape)
    np.testing.assert_allclose(found[0], of_windows, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        found[1], np.einsum("nd,tnijc->ijcd", slopes, x), rtol=1e-10, atol=1e-12
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("length", [3, 8])
def test_short_rows_of_long_ones_stay_rows(length: int) -> None:
    """A batch is normalised along rows of all its features, however few the last axis has."""

    def loss(x: Any) -> Any:
        apart = x - np.mean(x, axis=0, keepdims=True)
        return np.sum(np.exp(apart / np.sqrt(np.std(x, axis=0, keepdims=True) + 0.1)))

    x = RNG.normal(size=(6, 12, 10, length))
    gradient = fg.jit(fg.grad(loss))
    assert "apart(" not in gradient.lower(x).as_text().partition("\nplan\n")[2]
    np.testing.assert_allclose(gradient(x), fg.grad(loss)(x), rtol=1e-9, atol=1e-12)


def columns(x: Any) -> Any:
    return np.sum(np.sin(x[:, 0]) * x[:, 3] + x[:, 7] * x[:, 8] * x[:, 0] + x[:, 1] ** 2)


def test_gradients_of_columns() -> None:
    x = RNG.normal(size=(400, 11))
    gradient = fg.jit(fg.grad(columns))
    expected = np.zeros_like(x)
    expected[:, 0] = np.cos(x[:, 0]) * x[:, 3] + x[:, 7] * x[:, 8]
    expected[:, 1], expected[:, 3] = 2 * x[:, 1], np.sin(x[:, 0])
    expected[:, 7], expected[:, 8] = x[:, 8] * x[:, 0], x[:, 7] * x[:, 0]
    np.testing.assert_allclose(gradient(x), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("axis", [0, 1])
def test_thirds_of_an_array_are_computed_apart(axis: int) -> None:
    x = RNG.normal(size=(60, 90))

    def thirds(x: Any) -> Any:
        a, b, c = np.split(x, 3, axis)
        return np.exp(np.concatenate([a * 3, np.sin(b), c], axis)) * x

    compiled = fg.jit(thirds)
    code = compiled.lower(x).as_text().partition("\nplan\n")[2]
    assert code.count("\ndef kernel") == 3
    assert "select(g" not in code
    np.testing.assert_allclose(compiled(x), thirds(x), rtol=1e-14)


def test_zeros_beside_pieces_keep_their_sign() -> None:
    x = np.full((400, 9), -0.0)

    def padded(x: Any) -> Any:
        parts = [np.pad(x[:, k : k + 1], ((0, 0), (k, 8 - k))) for k in range(9)]
        return sum(parts[1:], parts[0]), np.concatenate([x[:, :4], x[:, 4:]], 1) + -0.0

    for found, expected in zip(fg.jit(padded)(x), padded(x), strict=True):
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_what_is_repeated_is_computed_once() -> None:
    x, y = RNG.normal(size=300), RNG.normal(size=(200, 300))

    def repeated(x: Any) -> Any:
        wide = np.broadcast_to(x, (200, 300))
        return y * np.exp(wide) * np.pad(wide[:, :100], ((0, 0), (50, 150)))

    compiled = fg.jit(repeated)
    assert "f64[300] -> f64[300]" in steps_of(compiled.lower(x).as_text())
    np.testing.assert_allclose(compiled(x), repeated(x), rtol=1e-14)


def test_what_is_read_whole_is_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Viterbi's algorithm: one matrix per step goes to a maximum and to the place of it."""
    steps, scores = RNG.normal(size=(8, 8)), RNG.normal(size=(20, 8))

    def viterbi(steps: Any, scores: Any) -> Any:
        def advance(best: Any, score: Any) -> Any:
            paths = best[:, None] + steps
            return paths.max(0) + score, paths.argmax(0)

        return fg.lax.scan(advance, scores[0], scores[1:])

    compiled = fg.jit(viterbi)
    best, places = scores[0], []
    for score in scores[1:]:
        paths = best[:, None] + steps
        best, place = paths.max(0) + score, paths.argmax(0)
        places.append(place)
    found, found_places = compiled(steps, scores)
    np.testing.assert_array_equal(found, best)
    np.testing.assert_array_equal(found_places, places)
    monkeypatch.setenv("FUNCGRAD_SKIP_PASSES", "join")
    assert steps_of(compiled.lower(steps, scores).as_text()).count("kernel ") == 3


@pytest.mark.parametrize("n", [5, pytest.param(7, marks=pytest.mark.nightly)])
def test_rows_that_lie_far_apart_are_vectors(n: int) -> None:
    """One of two short axes is written out: the long one takes steps of a whole matrix."""
    a, v = RNG.normal(size=(50, n, n)), RNG.normal(size=(50, n))
    f = fg.jit(lambda a, v: np.einsum("bij,bj->bi", a, v))
    assert f"-> c:f64[50,{n}];" in f.lower(a, v).as_text()
    np.testing.assert_allclose(f(a, v), np.einsum("bij,bj->bi", a, v), rtol=1e-13, atol=1e-13)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_gradients_of_columns_add_what_is_there(axis: int, dtype: str) -> None:
    """Each element has the terms that reach it; zeros have the signs that all of them give."""
    shape = [50, 6, 2]
    shape.insert(axis, shape.pop(1))
    x = RNG.normal(size=shape).astype(dtype)
    x[::3] = -0.0

    def pull_back(x: Any) -> Any:
        columns = [np.take(x, k, axis) for k in range(5)]
        _, pull = fg.vjp(lambda *c: c[0] + c[1] * c[2] - 2 * c[4] * c[1] + c[3], *columns)
        terms = zip(pull(columns[2]), columns, strict=True)
        pads = [[(0, 0)] * 3 for _ in range(5)]
        for k, pad in enumerate(pads):
            pad[axis] = (k, 5 - k)
        rows = [
            fg.numpy.pad(np.expand_dims(a, axis), p) for (a, _), p in zip(terms, pads, strict=True)
        ]
        total = rows[0]
        for row in rows[1:]:
            total = total + row
        return total

    found, expected = fg.jit(pull_back)(x), pull_back(x)
    np.testing.assert_array_equal(found, expected)
    for part in ("real", "imag"):
        signs = [np.signbit(getattr(y, part)) for y in (found, expected)]
        np.testing.assert_array_equal(*signs)
    kernels = steps_of(fg.jit(pull_back).lower(x).as_text()).splitlines()
    assert not any("6" in line.split("->")[1].split(";")[0] for line in kernels)


@pytest.mark.parametrize("n", [4, 6])
def test_rows_of_results_are_vectors(n: int) -> None:
    """Outer products of more than a few numbers are no more parts than a kernel writes."""
    x, y = RNG.normal(size=(50, n)), RNG.normal(size=(50, n))
    f = fg.jit(lambda x, y: (x[:, :, None] - y[:, None]) ** 2)
    assert (f":f64[50,{n},{n}]; " in steps_of(f.lower(x, y).as_text())) == (n > 4)
    np.testing.assert_allclose(f(x, y), (x[:, :, None] - y[:, None]) ** 2, rtol=1e-15)


def test_two_sparse_axes_are_not_parts_of_all_elements() -> None:
    """Gradients of single elements of rows of 16 by 16: one axis is written out."""
    x = RNG.normal(size=(30, 16, 16))

    def loss(x: Any) -> Any:
        return np.sum(sum(np.sin(x[:, k, k]) * x[:, 0, k] for k in range(16)) ** 2)

    gradient = fg.jit(fg.grad(loss))
    text = steps_of(gradient.lower(x).as_text())
    assert text.count("f64[30]") < 200
    np.testing.assert_allclose(gradient(x), fg.grad(loss)(x), rtol=1e-13, atol=1e-13)
