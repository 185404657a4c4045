"""Places in the stable order of keys: those of NumPy, for all bits that a key can have."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.nest.sort_places import LEAST

SPECIAL = {
    "f": (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0),
    "i": (0, -1, 1),
    "u": (0, 1),
}


def keys_of(dtype: type[np.generic], shape: tuple[int, ...]) -> np.ndarray:
    """Numbers with many equal ones, with extremes, zeros of both signs, and all kinds of NaN."""
    rng, kind = np.random.default_rng(0), np.dtype(dtype).kind
    bits = f"u{np.dtype(dtype).itemsize}"
    with np.errstate(all="ignore"):
        special = np.array(SPECIAL[kind]).astype(dtype)
    every = np.frombuffer(rng.bytes(16 * special.nbytes), bits).view(dtype)
    if kind == "f":
        tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    else:
        tiny, huge = np.iinfo(dtype).min, np.iinfo(dtype).max
    halves = np.array([1, 1 << (4 * np.dtype(dtype).itemsize)], bits).view(dtype)
    return rng.choice(
        np.concatenate([special, every, halves, np.array([tiny, huge], dtype)]), shape
    )


DTYPES = (np.float32, np.float64, np.int16, np.int32, np.int64, np.uint64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_places_are_those_of_numpy(dtype: type[np.generic]) -> None:
    x = keys_of(dtype, (3, 400))
    found = fg.jit(lambda x: np.argsort(x, axis=1, kind="stable"))(x)
    np.testing.assert_array_equal(found, np.argsort(x, axis=1, kind="stable"))


def test_several_keys_along_another_axis() -> None:
    keys = [keys_of(t, (LEAST * 3, 5)) for t in (np.float64, np.uint32, np.float32)]
    keys[2] = np.floor(np.nan_to_num(keys[2], nan=2.0, posinf=1.0, neginf=0.0) % 3)
    found = fg.jit(lambda *keys: np.lexsort(keys, axis=0))(*keys)
    np.testing.assert_array_equal(found, np.lexsort(keys, axis=0))


@pytest.mark.parametrize("length", [0, LEAST - 1])
def test_lengths(length: int) -> None:
    x = keys_of(np.float32, (length,))
    found = fg.jit(lambda x: np.argsort(x, kind="stable"))(x)
    np.testing.assert_array_equal(found, np.argsort(x, kind="stable"))


def test_in_a_loop_and_mapped() -> None:
    x = keys_of(np.float64, (4, 50))

    def ordered(x):
        return fg.lax.fori_loop(0, 3, lambda i, x: x[np.argsort(x, kind="stable")][::-1], x)

    expected = x
    for _ in range(3):
        places = np.argsort(expected, axis=1, kind="stable")
        expected = np.take_along_axis(expected, places, 1)[:, ::-1]
    np.testing.assert_array_equal(fg.jit(fg.vmap(ordered))(x), expected)


def test_the_sort_is_numpys_of_values() -> None:
    text = fg.jit(np.argsort, static_argnames="kind").lower(np.ones(100), kind="stable").as_text()
    assert "numpy's sort" in text
    assert "numpy's argsort" not in text
