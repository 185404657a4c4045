"""The numbers are JAX's: draws compared with values that were recorded from it."""

from __future__ import annotations

import numpy as np
import pytest

from funcgrad import dtypes, random
from tests.random.cases import CLOSE, EXACT, SEEDS
from tests.random.recorded import RECORDED

TOLERANCE = {4: 2e-6, 8: 1e-12}


def numbers(drawn):
    """What was drawn, keys as their words."""
    is_keys = dtypes.issubdtype(drawn.dtype, dtypes.prng_key)
    return random.key_data(drawn) if is_keys else drawn


def recorded(name, seed):
    dtype, shape, values = RECORDED[f"{name}-{seed}"]
    return np.array(values, dtype).reshape(shape)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EXACT)
def test_draws_agree_in_every_bit(name, seed):
    expected = recorded(name, seed)
    actual = numbers(EXACT[name](random, random.key(SEEDS[seed])))
    assert np.asarray(actual).dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected, strict=np.ndim(actual) > 0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", EXACT)
def test_keys_that_are_arrays_of_words_draw_the_same(name):
    actual = EXACT[name](random, random.PRNGKey(SEEDS["large"]))
    assert not dtypes.issubdtype(actual.dtype, dtypes.prng_key)
    np.testing.assert_array_equal(actual, recorded(name, "large"))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CLOSE)
def test_draws_agree_up_to_rounding(name, seed):
    expected = recorded(name, seed)
    actual = CLOSE[name](random, random.key(SEEDS[seed]))
    assert np.asarray(actual).dtype == expected.dtype
    assert np.shape(actual) == expected.shape
    tolerance = TOLERANCE[expected.real.dtype.itemsize]
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=0.1 * tolerance)
