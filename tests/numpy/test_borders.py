"""Borders: `pad` in the modes that repeat elements, values and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_borders_of_every_width(n: int, mode: Any) -> None:
    """Narrow ones are made of slices, those of many repetitions looked up."""
    x = np.arange(n * 2.0).reshape(n, 2)
    for widths in ((0, 1), (2, 3), (4, 4), (7, 30)):
        both = (widths, (1, 2))
        expected = np.pad(x, both, mode=mode)
        factors = np.arange(float(expected.size)).reshape(expected.shape)

        def weighted(x: Any, both: Any = both, factors: Any = factors) -> Any:
            return (fnp.pad(x, both, mode=mode) * factors).sum()

        np.testing.assert_array_equal(fnp.pad(x, both, mode=mode), expected)
        slopes = np.zeros(x.size)
        np.add.at(slopes, np.pad(np.arange(x.size).reshape(n, 2), both, mode=mode), factors)
        np.testing.assert_allclose(fg.grad(weighted)(x).ravel(), slopes)


def test_borders_take_no_index() -> None:
    """Slices that are put together are compiled into one pass."""
    program = fg.make_jaxpr(lambda x: fnp.pad(x, 3, mode="wrap"))(np.ones((9, 9)))
    assert "gather" not in str(program)
    program = fg.make_jaxpr(lambda x: fnp.pad(x, 99, mode="wrap"))(np.ones(9))
    assert "gather" in str(program)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (0, 3), (2, 4, 3)])
def test_diagonals_of_every_offset(shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    for axes in ((0, 1), (1, 0), (-1, 0)):
        for offset in range(-6, 7):
            where = (offset, *axes)

            def squares(x: Any, where: Any = where) -> Any:
                return (fnp.diagonal(x, *where) ** 2).sum()

            def trace(x: Any, where: Any = where) -> Any:
                return fnp.trace(x**2, *where).sum()

            expected = np.diagonal(x, *where)
            np.testing.assert_array_equal(fnp.diagonal(x, *where), expected)
            slopes = fg.grad(squares)(x)
            np.testing.assert_allclose(np.diagonal(slopes, *where), 2 * expected)
            assert np.count_nonzero(slopes) <= expected.size
            np.testing.assert_allclose(fg.grad(trace)(x), slopes)
