"""Generators besides Threefry-2x32: published values, JAX's words and bits, arrays of keys."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax, random
from funcgrad.errors import ArgumentError, KeyArrayError
from funcgrad.lax.counter_hashes import philox2x32, philox4x32, threefry4x32
from funcgrad.random.generators import GENERATORS

ONES = np.uint32(0xFFFFFFFF)
ZERO = np.uint32(0)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (philox2x32(ZERO, ZERO, ZERO), "ff1dae59 6cd10df2"),
        (philox2x32(ONES, ONES, ONES), "2c3f628b ab4fd7ad"),
        (philox4x32([ZERO] * 2, [ZERO] * 4), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (philox4x32([ONES] * 2, [ONES] * 4), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (threefry4x32([ZERO] * 4, [ZERO] * 4), "9c6ca96a e17eae66 fc10ecd4 5256a7d8"),
        (threefry4x32([ONES] * 4, [ONES] * 4), "2a881696 57012287 f6c7446e a16a6732"),
    ],
)
def test_values_of_the_authors(found, expected):
    """The known answers that come with the authors' library."""
    assert " ".join(f"{int(word):08x}" for word in found) == expected


WORDS = {
    "threefry4x32": ([2749882422, 358690259, 2597816956, 1943259890], 2633638934, 3496647053),
    "philox2x32": ([269672003], 1439538486, 2134859971),
    "philox4x32": ([762606365, 176872025], 3521542914, 1056112636),
    "rbg": ([2, 3755744309, 2, 3755744309], 31069998, 1316103761),
    "unsafe_rbg": ([2, 3755744309, 2, 3755744309], 31069998, 2104303642),
}
"""JAX 0.10's words of the seed 12345678901, first bits, first word of the key with 7 folded in."""


@pytest.mark.parametrize("name", WORDS)
def test_words_are_those_of_jax(name):
    words, bits, folded = WORDS[name]
    key = random.key(12345678901, impl=name)
    assert random.key_data(key).tolist() == words
    assert random.PRNGKey(12345678901, impl=name).tolist() == words
    assert random.bits(key, (2, 3), np.uint32)[0, 0] == bits
    assert random.key_data(random.fold_in(key, 7))[0] == folded
    assert random.key_impl(key) == name
    assert key.dtype is random.key_dtype(name) is random.key_dtype(key.dtype)
    assert key.nbytes == 4 * len(words)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", GENERATORS)
def test_arrays_of_keys(name):
    """What moves elements moves keys, also of four words, and transformations take them."""
    key = random.key(3, impl=name)
    keys = random.split(key, 4)
    words = random.key_data(keys)
    assert (random.wrap_key_data(words, impl=name) == keys).all()
    assert (keys != keys[1]).tolist() == [True, False, True, True]
    moved = fg.jit(lambda keys: keys.reshape(2, 2).T.at[0].set(key))(keys)
    assert random.key_data(moved)[1].tolist() == words.reshape(2, 2, -1)[:, 1].tolist()
    assert (moved[0] == key).all()
    rows = fg.vmap(lambda key: random.uniform(key, (2,)))(keys)
    assert np.array_equal(rows, [random.uniform(key, (2,)) for key in keys])
    last, _ = lax.scan(lambda key, _: (random.split(key)[0], None), key, None, 2)
    assert last == random.split(random.split(key)[0])[0]
    assert pickle.loads(pickle.dumps(keys)).dtype is keys.dtype
    assert fg.eval_shape(random.split, key).dtype is key.dtype
    assert random.gamma(key, 2.0, (3,)).min() > 0


def test_messages():
    with pytest.raises(ArgumentError, match="impl or dtype, which mean the same"):
        random.key(0, impl="rbg", dtype="rbg")
    with pytest.raises(ArgumentError, match=r"key<fry>\[\] .* u32\[2\], got u32\[4\]"):
        random.bits(random.PRNGKey(0, impl="rbg"))
    with pytest.raises(KeyArrayError, match="met values that are no keys"):
        fg.numpy.stack([random.key(0), random.key(0, impl="rbg")])
    with pytest.raises(ArgumentError, match="references hold keys of key<fry>, got key<phx4>"):
        fg.new_ref(random.key(0, impl="philox4x32"))
