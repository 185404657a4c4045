"""The numbers are JAX's: draws compared with values that were recorded from it."""

from __future__ import annotations

import numpy as np
import pytest

from funcgrad import random
from tests.random.cases import CLOSE, EXACT, SEEDS
from tests.random.recorded import RECORDED

TOLERANCE = {4: 2e-6, 8: 1e-12}


def recorded(name, seed):
    dtype, shape, values = RECORDED[f"{name}-{seed}"]
    return np.array(values, dtype).reshape(shape)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EXACT)
def test_draws_agree_in_every_bit(name, seed):
    expected = recorded(name, seed)
    actual = EXACT[name](random, random.key(SEEDS[seed]))
    assert np.asarray(actual).dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected, strict=np.ndim(actual) > 0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CLOSE)
def test_draws_agree_up_to_rounding(name, seed):
    expected = recorded(name, seed)
    actual = CLOSE[name](random, random.key(SEEDS[seed]))
    assert np.asarray(actual).dtype == expected.dtype
    assert np.shape(actual) == expected.shape
    tolerance = TOLERANCE[expected.real.dtype.itemsize]
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=0.1 * tolerance)
