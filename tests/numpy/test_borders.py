"""Borders: `pad`, values and derivatives; and diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.testing import check_grads


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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.int8, np.uint8])
@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_odd_reflections_of_every_width(n: int, mode: Any, dtype: Any) -> None:
    x = (np.arange(n * 2.0).reshape(n, 2) ** 2 % 11).astype(dtype)
    for widths in ((0, 1), (2, 3), (4, 4), (7, 30)):
        both = (widths, (1, 2))
        expected = np.pad(x, both, mode=mode, reflect_type="odd")
        got = fnp.pad(x, both, mode=mode, reflect_type="odd")
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)
    if dtype == np.float64:
        check_grads(lambda x: fnp.pad(x, 5, mode, reflect_type="odd") ** 2, (x,), order=2)


def test_one_infinite_end_stays_at_its_side() -> None:
    x = np.array([1.0, 2.0, np.inf])
    np.testing.assert_array_equal(
        fnp.pad(x, (2, 0), "reflect", reflect_type="odd"),
        np.pad(x, (2, 0), "reflect", reflect_type="odd"),
    )


def written(line: Any, widths: Any, axis: int, options: Any) -> None:
    """A border as NumPy's functions make it."""
    line[: widths[0]] = options.get("value", 7.0) + axis
    line[line.size - widths[1] :] = 3 * line[widths[0]] ** 2


def returned(line: Any, widths: Any, axis: int, options: Any) -> Any:
    """The same as JAX's functions make it."""
    line = line.at[: widths[0]].set(options.get("value", 7.0) + axis)
    return line.at[line.size - widths[1] :].set(3 * line[widths[0]] ** 2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", [written, returned])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 2, 2), (2, 0, 1)])
def test_borders_that_functions_make(shape: tuple[int, ...], mode: Any) -> None:
    x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    widths = [(1, 2), (0, 1), (2, 0)][: x.ndim] if 0 not in shape else [(1, 1), (0, 0), (0, 0)]
    if 0 in shape:
        mode = {written: lambda v, *rest: None, returned: lambda v, *rest: v}[mode]
    expected = np.pad(x, widths, mode if mode is written or 0 in shape else written, value=2.0)
    for function in (fnp.pad, np.pad):
        made = fg.jit(lambda x, f=function: f(x, widths, mode, value=2.0))(x)
        np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(fnp.pad(x, widths, mode, value=2.0), expected)
    if 0 not in shape:
        check_grads(lambda x: fnp.pad(x, widths, mode), (x,), order=2)
        stacked = fg.vmap(lambda x: fnp.pad(x, widths, mode, value=2.0))(np.stack([x, x]))
        np.testing.assert_array_equal(stacked, [expected] * 2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("edge",), ValueError, "can't extend empty axis 0"),
        (("nothing",), ValueError, "must be a function or one of 'constant', 'edge'"),
        (("edge", "constant_values"), ValueError, "keyword arguments for mode 'edge': constant"),
        (("reflect", "reflect_type"), ValueError, "reflect_type must be 'even' or 'odd', got 0"),
        ((lambda *args: np.ones(2),), ShapeError, "must return a line like .* f64\\[4\\], but"),
    ],
)
def test_borders_that_cannot_be(arguments: Any, error: Any, message: str) -> None:
    shape = (0, 2) if arguments == ("edge",) else (2, 2)
    with pytest.raises(error, match=message):
        fnp.pad(np.ones(shape), 1, arguments[0], **dict.fromkeys(arguments[1:], 0))
    with pytest.raises(DtypeError, match="has bools"):
        fnp.pad(np.ones(2, bool), 1, "reflect", reflect_type="odd")


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


def test_statistics_of_few_elements_are_known_in_compiled_programs() -> None:
    x = np.array([1.0, 2.0, 6.0])
    padded = fg.jit(lambda x: np.pad(x, 1, "mean", stat_length=((1, 2),)))(x)
    assert padded.tolist() == np.pad(x, 1, "mean", stat_length=((1, 2),)).tolist()
