"""Keys for tests, with what was recorded from JAX of them."""

from __future__ import annotations

import numpy as np

from funcgrad import dtypes, random
from tests.random.cases import SEEDS
from tests.random.recorded import RECORDED


def recorded(name, seed):
    dtype, shape, values = RECORDED[f"{name}-{seed}"]
    return np.array(values, dtype).reshape(shape)


WORDS = np.stack([recorded("key", seed) for seed in SEEDS])
DRAWN = np.stack([recorded("uniform_default", seed) for seed in SEEDS])
SPLIT = np.stack([recorded("split", seed) for seed in SEEDS])
FOLDED = np.stack([recorded("fold_in", seed) for seed in SEEDS])

KEYS = random.wrap_key_data(WORDS)
KEY = KEYS[1]
MATRIX = random.split(KEY, (3, 2))


def integers(keys):
    """One integer for each key, by which NumPy can do what is expected of keys."""
    words = random.key_data(keys).astype(np.uint64)
    return words[..., 0] << np.uint64(32) | words[..., 1]


def assert_keys(keys, expected):
    assert dtypes.issubdtype(keys.dtype, dtypes.prng_key)
    np.testing.assert_array_equal(random.key_data(keys), expected)


def draw(key):
    return random.uniform(key, (3,))
