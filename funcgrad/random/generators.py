"""Generators of random bits: what becomes of seeds and keys, by the names that JAX has for them.

A key is one to four words of 32 bits. It is held as one integer of 64 bits, or as two: its *parts*,
each of two words with the high one first. All generators but ``unsafe_rbg`` are counter-based: a
child of a key is the hash of a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.base.dialect import draws_together
from funcgrad.errors import ShapeError
from funcgrad.higher_order.custom import bind_rules
from funcgrad.higher_order.rules import Rules
from funcgrad.lax.counter_hashes import Words, philox2x32, philox4x32, threefry4x32
from funcgrad.lax.operands import Array
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.random import UINT32, UINT64, threefry2x32

Parts = tuple[Any, ...]

_ZERO = np.uint32(0)


def halves(block: Array) -> Words:
    """The high and the low word of integers of 64 bits."""
    return p.convert(lax.shift_right_logical(block, 32), UINT32), p.convert(block, UINT32)


def joined(high: Array, low: Array) -> Array:
    """The integers of 64 bits that two words make."""
    shifted = p.left_shift.bind(p.convert(high, UINT64), np.uint64(32))
    return p.bitwise_or.bind(shifted, p.convert(low, UINT64))


def folded(block: Array, dtype: np.dtype[Any]) -> Array:
    """Integers of 64 bits as unsigned ones: both words, or their xor, or its lowest bits."""
    if dtype == UINT64:
        return block
    shifted = p.right_shift.bind(block, np.uint64(32))
    return p.convert(p.bitwise_xor.bind(block, shifted), dtype)


def numbers_of(shape: Sequence[int]) -> Words:
    """The row-major number of every element, as two words."""
    if not len(shape):
        return _ZERO, _ZERO
    count = math.prod(shape)
    if count <= 1 << 32:
        return _ZERO, lax.reshape(lax.iota(UINT32, count), shape)
    return halves(lax.reshape(lax.iota(UINT64, count), shape))


class Generator:
    """Threefry-2x32, and the base class of other generators.

    Attributes:
        name: Its name.
        tag: What dtypes of its keys print.
        width: Words of a key.
    """

    name = "threefry2x32"
    tag = "fry"
    width = 2

    @property
    def sequential(self) -> Generator:
        """The generator whose numbers depend on how many are drawn, as JAX had them once."""
        return self

    @property
    def n_parts(self) -> int:
        """Integers of 64 bits that a key is held as."""
        return 2 if self.width > 2 else 1

    def words(self, parts: Sequence[Array]) -> Words:
        """The words of a key."""
        return tuple(word for part in parts for word in halves(part))[-self.width :]

    def seeded(self, seed: Array) -> Parts:
        """The key for a seed, an integer of 64 bits."""
        return (seed,)

    def child(self, words: Words, number: Array) -> Parts:
        """The key that is the hash of a word."""
        return (threefry2x32.bind(*words, _ZERO, number),)

    def split(self, words: Words, shape: Sequence[int]) -> Parts:
        """Independent keys, of a shape."""
        return self.child(words, numbers_of(shape)[1])

    def bits(self, words: Words, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Unsigned integers of a shape."""
        return folded(threefry2x32.bind(*words, *numbers_of(shape)), dtype)

    def lanes(self, words: Words, shape: Sequence[int]) -> Array:
        """Keys of Threefry-2x32 for all numbers of a shape, each as an integer of 64 bits."""
        return self.bits(words, shape, UINT64)


class _Threefry4x32(Generator):
    name, tag, width = "threefry4x32", "fry4", 4

    def seeded(self, seed: Array) -> Parts:
        return self._parts((*halves(seed), _ZERO, _ZERO), (_ZERO,) * 4)

    def child(self, words: Words, number: Array) -> Parts:
        return self._parts(words, (_ZERO, _ZERO, _ZERO, number))

    def _parts(self, key: Words, counter: Words) -> Parts:
        found = threefry4x32(key, counter)
        return joined(*found[:2]), joined(*found[2:])

    def bits(self, words: Words, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        found = threefry4x32(words, (*numbers_of(shape), _ZERO, _ZERO))
        high, low = (p.bitwise_xor.bind(found[i], found[i + 2]) for i in (0, 1))
        return folded(joined(high, low), dtype)


class _Philox2x32(Generator):
    name, tag, width = "philox2x32", "phx2", 1

    def seeded(self, seed: Array) -> Parts:
        return (p.convert(philox2x32(_ZERO, *halves(seed))[0], UINT64),)

    def child(self, words: Words, number: Array) -> Parts:
        return (p.convert(philox2x32(words[0], _ZERO, number)[0], UINT64),)

    def bits(self, words: Words, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        return folded(joined(*philox2x32(words[0], *numbers_of(shape))), dtype)


class _Philox4x32(Generator):
    name, tag = "philox4x32", "phx4"

    def seeded(self, seed: Array) -> Parts:
        return (joined(*philox4x32((_ZERO, _ZERO), (*halves(seed), _ZERO, _ZERO))[:2]),)

    def child(self, words: Words, number: Array) -> Parts:
        return (joined(*philox4x32(words, (_ZERO, _ZERO, _ZERO, number))[:2]),)

    def bits(self, words: Words, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        found = philox4x32(words, (*numbers_of(shape), _ZERO, _ZERO))
        if dtype == UINT64:
            return joined(*found[:2])
        high, low = (p.bitwise_xor.bind(found[i], found[i + 2]) for i in (0, 1))
        return folded(joined(high, low), dtype)


class _Rbg(Generator):
    """XLA's ``RngBitGenerator``: two keys of Threefry-2x32, and bits from Philox-4x32."""

    name, tag, width = "rbg", "rbg", 4

    @property
    def sequential(self) -> Generator:
        return _SequentialRbg()

    def seeded(self, seed: Array) -> Parts:
        return seed, seed

    def child(self, words: Words, number: Array) -> Parts:
        first, second = (threefry2x32.bind(*words[i : i + 2], _ZERO, number) for i in (0, 2))
        return first, second

    def bits(self, words: Words, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        return self._generated(words, shape, dtype)

    def _generated(self, words: Words, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        state = lax.stack([joined(words[i + 1], words[i]) for i in (0, 2)])
        if not draws_together():
            return lax.rng_bit_generator(state, shape, dtype)[1]

        def draw(state: Array) -> list[Array]:
            return [lax.rng_bit_generator(state, shape, dtype)[1]]

        def draw_all(size: int, is_mapped: list[bool], inputs: Sequence[Any]) -> list[Array]:
            first = lax.index_in_dim(inputs[0], 0, keepdims=False)
            return [lax.rng_bit_generator(first, (size, *shape), dtype)[1]]

        rules = Rules(name="rng_bit_generator", fun=draw, vmap=draw_all)
        return bind_rules(rules, [state])[0]


class _UnsafeRbg(_Rbg):
    """The same with keys from Philox-4x32, of which nobody knows how independent they are."""

    name, tag = "unsafe_rbg", "urbg"

    @property
    def sequential(self) -> Generator:
        return self

    def split(self, words: Words, shape: Sequence[int]) -> Parts:
        drawn = self._generated(words, (10 * math.prod(shape), 4), UINT32)[::10]
        found = [lax.reshape(drawn[:, i], shape) for i in range(4)]
        return joined(*found[:2]), joined(*found[2:])

    def child(self, words: Words, number: Array) -> Parts:
        seed = self.words(self.seeded(p.convert(number, UINT64)))
        drawn = self._generated(seed, (10, 4), UINT32)[-1]
        found = [p.bitwise_xor.bind(word, drawn[i]) for i, word in enumerate(words)]
        return joined(*found[:2]), joined(*found[2:])


def _hashes(words: Words, count: int) -> Array:
    """Hashes of the first numbers: of the first half of them together with the second."""
    half = (count + 1) // 2
    first = lax.iota(UINT32, half)
    second = lax.add(first, np.uint32(half))
    if count % 2:  # the last one has no other
        second = lax.select(lax.eq(first, np.uint32(half - 1)), lax.full_like(second, 0), second)
    return threefry2x32.bind(*words, first, second)


def _sequence(words: Words, count: int) -> Array:
    """So many words: the first ones of all hashes, then the second ones."""
    return lax.concatenate(list(halves(_hashes(words, count))), 0)[:count]


class _SequentialThreefry(Generator):
    """Threefry-2x32 as it is with ``jax_threefry_partitionable`` off."""

    def split(self, words: Words, shape: Sequence[int]) -> Parts:
        pairs = lax.reshape(_sequence(words, 2 * math.prod(shape)), (*shape, 2))
        return (joined(pairs[..., 0], pairs[..., 1]),)

    def lanes(self, words: Words, shape: Sequence[int]) -> Array:
        return self.split(words, shape)[0]

    def bits(self, words: Words, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        size, width = math.prod(shape), 8 * dtype.itemsize
        count = -(-size * width // 32)
        if count >= 0xFFFFFFFF:
            raise ShapeError(
                f"random: {size} numbers of {width} bits cannot be drawn at once with "
                "jax_threefry_partitionable off. Draw them in parts, or switch it on."
            )
        if dtype == UINT64:
            return lax.reshape(_hashes(words, count), shape)
        drawn = _sequence(words, count)
        if dtype != UINT32:  # each word is cut, beginning with its lowest bits
            shifts = np.arange(0, 32, width, dtype=np.uint32)
            cut = lax.shift_right_logical(lax.expand_dims(drawn, (1,)), shifts[None])
            drawn = lax.reshape(cut, (count * len(shifts),))
        return lax.reshape(p.convert(drawn[:size], dtype), shape)


class _SequentialRbg(_Rbg):
    def split(self, words: Words, shape: Sequence[int]) -> Parts:
        first, second = (_SEQUENTIAL.split(words[i : i + 2], shape)[0] for i in (0, 2))
        return first, second


class _Threefry(Generator):
    @property
    def sequential(self) -> Generator:
        return _SEQUENTIAL


_SEQUENTIAL = _SequentialThreefry()
THREEFRY = _Threefry()
GENERATORS = {
    g.name: g
    for g in (THREEFRY, _Threefry4x32(), _Philox2x32(), _Philox4x32(), _Rbg(), _UnsafeRbg())
}
"""Generators by name."""
