"""Keys: where the numbers come from, and how to get independent ones.

A key is an array of two uint32 words, a stack of keys has shape ``(..., 2)``. Nothing has hidden
state: the same key gives the same numbers, and `split` or `fold_in` make new keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.core.avals import aval_of
from funcgrad.core.placement import check_placement
from funcgrad.core.source import called_function
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lax.operands import Array, ArrayLike
from funcgrad.primitives.objects import settled
from funcgrad.primitives.random import UINT32, threefry2x32

_WORD = 0xFFFFFFFF


_IMPLEMENTATIONS = ("threefry2x32", "fry")


def _check_implementation(name: str, impl: Any, dtype: Any = None) -> None:
    for given in (impl, dtype):
        known = given in _IMPLEMENTATIONS if isinstance(given, str) else given in (None, UINT32)
        if not known:
            raise ArgumentError(f"random.{name}: impl must be 'threefry2x32', got {given!r}.")


def key(seed: ArrayLike, *, impl: Any = None, dtype: Any = None) -> Array:
    """A key made from a seed.

    Args:
        seed: Integer scalar: a Python int of 64 bits, or an array of any integer dtype (possibly
            traced).
        impl: Only ``"threefry2x32"``, which is the default.
        dtype: Likewise; or what `key_dtype` returns.

    Returns:
        A uint32 array of shape ``(2,)``: the high and the low word of the seed. (JAX's `key` has
        a dtype of its own; this one is what its `PRNGKey` returns.)

    Raises:
        ArgumentError: If the seed is no integer scalar, or does not fit into 64 bits.

    Example:
        >>> import funcgrad as fg
        >>> print(fg.random.key(42))
        [ 0 42]
    """
    _check_implementation("key", impl, dtype)
    if type(seed) is int:
        if not -(1 << 63) <= seed < 1 << 63:
            raise ArgumentError(f"random.key: the seed {seed} does not fit into 64 bits.")
        return np.array([seed >> 32 & _WORD, seed & _WORD], UINT32)
    aval = aval_of(seed)
    if aval.shape or aval.dtype.kind not in "iu":
        raise ArgumentError(
            f"random.key needs an integer scalar as seed, got {aval}. Use vmap for several seeds."
        )
    low = lax.convert_element_type(seed, UINT32)
    if aval.dtype.itemsize < 8:
        return lax.stack([np.uint32(0), low])
    shifted = lax.shift_right_logical(lax.convert_element_type(seed, aval.dtype), 32)
    return lax.stack([lax.convert_element_type(shifted, UINT32), low])


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """The same as `key`.

    Args:
        seed: Integer scalar.
        impl: Only ``"threefry2x32"``.

    Returns:
        A uint32 array of shape ``(2,)``.
    """
    return key(seed, impl=impl)


def refuse_sharding(name: str, out_sharding: Any) -> None:
    """Samples lie on the processor, whatever JAX's keyword asks for.

    Raises:
        ArgumentError: If it asks for another place.
    """
    if out_sharding is not None:
        called = called_function("random") or name
        check_placement(f"random.{called}", out_sharding=out_sharding)


def words_of(name: str, key: ArrayLike) -> tuple[Array, Array]:
    """The two words of one key.

    Args:
        name: The function that wants to know, for messages.
        key: The key.

    Raises:
        ArgumentError: If it is no key, or several.
    """
    key = settled(key)
    aval = aval_of(key)
    if aval.dtype != UINT32 or aval.shape != (2,):
        many = aval.dtype == UINT32 and aval.shape[-1:] == (2,)
        advice = "Use vmap over the keys." if many else "Make one with random.key(seed)."
        # Distributions are drawn by way of others: the user knows the one that was called.
        called = called_function("random") or name
        raise ArgumentError(
            f"random.{called} needs one key, an array u32[2] as made by random.key, got {aval}. "
            f"{advice}"
        )
    if isinstance(key, np.ndarray):
        return key[0], key[1]
    return lax.index_in_dim(key, 0, keepdims=False), lax.index_in_dim(key, 1, keepdims=False)


def canonical_shape(name: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape as a tuple of ints.

    Raises:
        ArgumentError: If a length is not an integer.
        ShapeError: If a length is negative, or there are more elements than the counter counts.
    """
    listed = shape if isinstance(shape, Sequence | np.ndarray) else (shape,)
    if not all(isinstance(n, int | np.integer | Tracer) for n in listed):
        raise ArgumentError(f"random.{name}: a shape consists of integers, got {shape!r}.")
    lengths = tuple(map(index, listed))
    if any(n < 0 for n in lengths):
        raise ShapeError(f"random.{name}: lengths must not be negative, got {lengths}.")
    if math.prod(lengths) > _WORD:
        raise ShapeError(
            f"random.{name}: shape {lengths} has more than 2**32 - 1 elements. Draw it in parts, "
            "with the keys that random.split makes."
        )
    return lengths


def hash_counters(name: str, key: ArrayLike, shape: Sequence[int]) -> Array:
    """64 random bits for every element of ``shape``: the hash of its row-major number."""
    k0, k1 = words_of(name, key)
    numbers: Array = np.uint32(0)
    if len(shape):
        numbers = lax.reshape(lax.iota(UINT32, math.prod(shape)), shape)
    return threefry2x32.bind(k0, k1, np.uint32(0), numbers)


def _as_keys(blocks: Array) -> Array:
    """64-bit blocks as keys, along a new last axis."""
    high = lax.convert_element_type(lax.shift_right_logical(blocks, 32), UINT32)
    return lax.stack([high, lax.convert_element_type(blocks, UINT32)], axis=-1)


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """New keys, independent of each other and of what the old key would give.

    Args:
        key: A key, not to be used again.
        num: How many, or a shape.

    Returns:
        A uint32 array of shape ``(num, 2)`` or ``(*num, 2)``.

    Example:
        >>> import funcgrad as fg
        >>> key, subkey = fg.random.split(fg.random.key(0))
        >>> print(subkey)
        [ 928981903 3453687069]
    """
    return _as_keys(hash_counters("split", key, canonical_shape("split", num)))


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key from a key and a number, such as the index of a step.

    Args:
        key: A key.
        data: Integer scalar, of which the lower 32 bits count; a Python int must fit into them.

    Returns:
        A uint32 array of shape ``(2,)``.
    """
    aval = aval_of(data)
    if aval.shape or aval.dtype.kind not in "iu":
        raise ArgumentError(
            f"random.fold_in needs an integer scalar, got {aval}. Use vmap for several numbers."
        )
    if type(data) is int and not 0 <= data <= _WORD:
        raise ArgumentError(f"random.fold_in: {data} does not fit into 32 bits.")
    k0, k1 = words_of("fold_in", key)
    block = threefry2x32.bind(k0, k1, np.uint32(0), lax.convert_element_type(data, UINT32))
    return _as_keys(block)


def _check_keys(name: str, keys: ArrayLike) -> Array:
    aval: Any = aval_of(keys)
    if aval.dtype != UINT32 or aval.shape[-1:] != (2,):
        raise ArgumentError(f"random.{name} needs keys, u32[..., 2], got {aval}.")
    return keys


def key_data(keys: ArrayLike) -> Array:
    """The words of keys: the keys themselves, u32[..., 2].

    Args:
        keys: A key, or an array of them.
    """
    return _check_keys("key_data", keys)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: Any = None, dtype: Any = None) -> Array:
    """Keys from their words, u32[..., 2]: the words themselves.

    Args:
        key_bits_array: The words.
        impl: Only ``"threefry2x32"``, which is the default.
        dtype: Likewise; or what `key_dtype` returns.

    Returns:
        The keys.
    """
    _check_implementation("wrap_key_data", impl, dtype)
    return _check_keys("wrap_key_data", key_bits_array)


def key_impl(keys: ArrayLike) -> str:
    """The algorithm that keys belong to: ``"threefry2x32"``."""
    _check_keys("key_impl", keys)
    return "threefry2x32"


def key_dtype(impl_spec: Any = None) -> np.dtype[Any]:
    """The dtype of keys: that of their words.

    Args:
        impl_spec: Only ``"threefry2x32"``, which is the default.

    Returns:
        uint32.
    """
    _check_implementation("key_dtype", impl_spec)
    return UINT32


def clone(key: ArrayLike) -> Array:
    """The same key, said to be used again on purpose.

    Args:
        key: A key of random numbers.
    """
    return _check_keys("clone", key)
