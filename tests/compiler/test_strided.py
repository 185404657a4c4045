"""Strided products: what convolutions compile to, and that they make no copies of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax

NUMBERS = {"first": ("NCHW", "OIHW", "NCHW"), "last": ("NHWC", "HWIO", "NHWC")}


def arrays(layout: str, n: int = 8, c: int = 8, size: int = 24, o: int = 12, k: int = 5) -> Any:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, c, size, size)), rng.normal(size=(o, c, k, k))
    if layout == "last":
        x, y = x.transpose(0, 2, 3, 1), y.transpose(2, 3, 1, 0)
    return np.ascontiguousarray(x, np.float32), np.ascontiguousarray(y, np.float32)


def compiled(function: Any, *args: Any) -> tuple[str, int]:
    """The plan, and the bytes of memory that a call needs between its arguments and results."""
    stage = fg.jit(function).lower(*args).compile()
    plan = stage.as_text().partition("\nplan\n")[2].partition("# kernel 0")[0]
    return plan, stage._executable.memory.arena_bytes


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("layout", NUMBERS)
def test_windows_are_not_copied(layout: str, stride: int) -> None:
    """Forward and both gradients need no more than a few arrays of the size of an operand."""
    x, y = arrays(layout)

    def f(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated(
            x, y, (stride, stride), "SAME", dimension_numbers=NUMBERS[layout]
        )

    ct = f(x, y)
    windows = 25 * x.nbytes // stride**2
    for function, args in (
        (f, (x, y)),
        (lambda x, y, ct: fg.vjp(lambda x: f(x, y), x)[1](ct), (x, y, ct)),
        (lambda x, y, ct: fg.vjp(lambda y: f(x, y), y)[1](ct), (x, y, ct)),
    ):
        plan, nbytes = compiled(function, *args)
        assert "strided product f32" in plan
        assert "matrix product" not in plan
        assert nbytes < 4 * max(x.nbytes, ct.nbytes) < windows


def test_results_do_not_depend_on_threads() -> None:
    x, y = arrays("first")

    def f(x: Any, y: Any) -> Any:
        return fg.value_and_grad(lambda x, y: np.sum(lax.conv(x, y, (1, 1), "SAME") ** 2), (0, 1))(
            x, y
        )

    one, two = fg.jit(f, threads=1)(x, y), fg.jit(f, threads=2)(x, y)
    for a, b in zip(fg.tree.leaves(one), fg.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b)


def test_long_sums_are_accurate() -> None:
    """A gradient over 600,000 positions of single precision."""
    rng = np.random.default_rng(0)
    x, ct = (rng.uniform(0.5, 1.0, (64, 2, 9600)).astype(np.float32) for _ in range(2))
    y = np.ones((2, 2, 3), np.float32)
    grad = fg.jit(lambda y: fg.vjp(lambda y: lax.conv(x, y, (1,), "SAME"), y)[1](ct)[0])(y)
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1)))
    expected = [
        np.einsum("ncx,nox->oc", wide[..., k : k + 9600], ct.astype(np.float64)) for k in range(3)
    ]
    np.testing.assert_allclose(grad, np.stack(expected, -1), 3e-6)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("rows", [*range(1, 18), 40])
@pytest.mark.parametrize("columns", [1, 3, 16, 17, 40, 100])
def test_every_number_of_rows_and_columns(rows: int, columns: int) -> None:
    """Inner loops of all sizes write what is theirs."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 40, columns + 2)), rng.normal(size=(rows, 40, 3))
    found = fg.jit(lambda x, y: lax.conv(x, y, (1,), "VALID"))(x, y)
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, -1)
    np.testing.assert_allclose(found, np.einsum("ncxk,ock->nox", windows, y), 1e-11, 1e-11)


def test_loops_run_convolutions_natively() -> None:
    x, y = arrays("first", n=2, size=12, o=8)

    def f(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, c: np.tanh(lax.conv(c, y, (1, 1), "SAME")), x)

    plan, _ = compiled(f, x, y)
    assert "strided product" in plan
    assert "python" not in plan
    np.testing.assert_allclose(fg.jit(f)(x, y), f(x, y), 1e-4, 1e-4)
    small = np.ones((1, 1, 4)), np.ones((1, 1, 3))

    def g(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, c: np.tanh(lax.conv(c, y, (1,), "SAME")), x)

    np.testing.assert_allclose(fg.jit(g)(*small), g(*small), 1e-12)


def test_pooling_is_one_kernel() -> None:
    """With what comes after it."""
    x = np.ones((2, 3, 8, 8), np.float32)
    plan, _ = compiled(
        lambda x: np.tanh(
            lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        ),
        x,
    )
    assert plan.count("kernel") == 1
