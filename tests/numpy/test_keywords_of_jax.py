"""Keywords that JAX's functions take and NumPy's do not."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import ArgumentError, DtypePromotionError
from funcgrad.testing import check_grads

X, V = np.arange(5.0), np.array([1.0, -2.0, 0.5])


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions(name, mode):
    ours, reference = getattr(fnp, name), getattr(np, name)
    narrow = X.astype(np.float32), V.astype(np.float32)
    out = ours(*narrow, mode, precision="highest", preferred_element_type=np.float64)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, reference(X, V, mode))
    assert ours(*narrow, mode, preferred_element_type=None).dtype == np.float32
    check_grads(lambda x: ours(x, V, mode, preferred_element_type=np.float64), (X,), order=2)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mode", ["raise", "clip", "wrap", ("clip", "wrap")])
def test_numbers_of_places(order, mode):
    i, j = np.array([0, 1, 1]), np.array([2, 0, 1])
    if mode != "raise":
        i, j = i * 5 - 1, j * 7 - 3
    expected = np.ravel_multi_index((i, j), (2, 3), mode, order)

    def function(i, j):
        return fnp.ravel_multi_index((i, j), (2, 3), mode, order, dtype=np.int32)

    for found in (function(i, j), fg.jit(function)(i, j), fg.vmap(function)(i, j)):
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, expected)
    assert fnp.ravel_multi_index((1, 2), (2, 3)).dtype == np.int64
    with pytest.raises(ValueError, match=r"invalid entry|out of bounds"):
        fnp.ravel_multi_index(([5], [0]), (2, 3))


def test_frequencies():
    for name in ("fftfreq", "rfftfreq"):
        ours, reference = getattr(fnp.fft, name), getattr(np.fft, name)
        np.testing.assert_array_equal(ours(5, 0.1), reference(5, 0.1))
        assert ours(5, dtype=np.float32, device="cpu").dtype == np.float32
        np.testing.assert_allclose(fg.jit(lambda d, f=ours: f(5, d))(0.1), reference(5, 0.1))
        check_grads(lambda d, f=ours: f(5, d), (0.3,), order=2)
        with pytest.raises(ArgumentError, match="one device"):
            ours(5, device="gpu")


def test_arguments_by_name():
    assert fnp.fmax(x1=1.0, x2=2.0) == fnp.fmin(2.0, x2=3.0) == 2.0
    assert fnp.trunc(x=1.5) == 1.0
    np.testing.assert_array_equal(fnp.matmul(a=np.eye(2), b=np.ones(2)), np.ones(2))
    assert fnp.promote_types(a="f4", b=np.float64) == np.float64
    assert fnp.polyval(np.ones(3), 2.0, unroll=1) == 7.0
    assert fnp.modf(1.5, out=None) == (0.5, 1.0)
    with pytest.raises(TypeError, match=r"unexpected keyword|too many|missing"):
        fnp.fmax(1.0, x3=2.0)
    with pytest.raises(TypeError):
        fnp.sin(x=1.0)
    assert fg.nn.standardize(X, algorithm="fast").shape == X.shape
    with pytest.raises(ArgumentError, match="must be 'stable' or 'fast'"):
        fg.nn.standardize(X, algorithm="slow")


def test_strict_promotion():
    with fg.numpy_dtype_promotion("strict"):
        assert fnp.add(np.float32(1), 1).dtype == np.float32
        with pytest.raises(DtypePromotionError):
            fnp.add(np.float32(1), np.float64(1))


class Carrier:
    def __jax_array__(self):
        return np.arange(3.0)


def test_carriers_of_arrays():
    carrier = Carrier()
    np.testing.assert_array_equal(fnp.sin(carrier), np.sin(np.arange(3.0)))
    np.testing.assert_array_equal(fg.jit(lambda x: x * 2)(carrier), 2 * np.arange(3.0))
    np.testing.assert_array_equal(fg.lax.rev(carrier, (0,)), [2.0, 1.0, 0.0])
    np.testing.assert_array_equal(fg.grad(lambda x: fnp.sum(x**2))(carrier), 2 * np.arange(3.0))


LINE = np.array([-2.0, -1.0, 0.0, 0.3, 1.0, 2.0, 2.5, np.nan])


@pytest.mark.parametrize("left", [None, -7.0, "extrapolate"])
@pytest.mark.parametrize("right", [None, 7.0, "extrapolate"])
def test_lines_that_go_on(left, right):
    xp, fp = np.array([-1.0, 0.0, 0.5, 2.0]), np.array([3.0, 1.0, 4.0, 1.0])
    given = [None if v == "extrapolate" else v for v in (left, right)]
    expected = np.interp(LINE, xp, fp, *given)
    if left == "extrapolate":
        expected[LINE < -1] = 3.0 - 2.0 * (LINE[LINE < -1] + 1.0)
    if right == "extrapolate":
        expected[LINE > 2] = 1.0 - 2.0 * (LINE[LINE > 2] - 2.0)

    def function(x):
        return fnp.interp(x, xp, fp, left, right)

    for found in (function(LINE), fg.vmap(function)(LINE)):
        np.testing.assert_allclose(found, expected, 1e-14)
    with pytest.raises(ArgumentError, match="left is a number or 'extrapolate', got 'constant'"):
        fnp.interp(LINE, xp, fp, "constant")


def test_places_with_a_traced_fill():
    def function(x, fill):
        return fnp.nonzero(x, size=4, fill_value=fill)

    x = np.array([[0.0, 1.0], [2.0, 0.0]])
    for fill in (7, np.array([7, 8])):
        expected = [[0, 1, *[np.broadcast_to(fill, 2)[i]] * 2] for i in (0, 1)]
        expected[1][:2] = [1, 0]
        np.testing.assert_array_equal(function(x, fill), expected)
        np.testing.assert_array_equal(fg.jit(function)(x, fill), expected)
