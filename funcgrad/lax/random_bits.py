"""Random bits from an explicit state of a key and a counter, under XLA's name."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lax.counter_hashes import philox4x32
from funcgrad.lax.elementwise import bitcast_convert_type, shift_right_logical
from funcgrad.lax.operands import Array, ArrayLike, array_operand, canonical_dtype
from funcgrad.lax.shapes import concatenate, iota, reshape, stack
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.random import UINT32, UINT64, threefry2x32


class RandomAlgorithm(enum.IntEnum):
    """How random bits are made; the default is Philox."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """Random bits, and the state that gives the next ones.

    Args:
        key: The state: uint64 of shape ``(2,)``, a key and a counter; or the same as four uint32.
        dtype: uint8, uint16, uint32 or uint64.
        algorithm: ``RNG_DEFAULT`` or ``RNG_PHILOX``, whose bits are those of JAX on processors; or
            ``RNG_THREE_FRY``, likewise along one axis: several are filled in row-major order.
    Returns: The next state, and unsigned integers that have all values equally likely.

    Raises:
        DtypeError: If the dtype is not unsigned.
        ShapeError: If the state is none.

    Example:
        >>> state, bits = fg.lax.rng_bit_generator(np.array([1, 2], np.uint64), (2,))
        >>> print(state, bits)
        [1 3] [2100602697 2847456232]
    """
    check_placement("lax.rng_bit_generator", out_sharding=out_sharding)
    wanted = canonical_dtype(dtype)
    if wanted.kind != "u":
        raise DtypeError(f"lax.rng_bit_generator needs an unsigned dtype, got {wanted}.")
    state = array_operand("rng_bit_generator", key)
    aval = aval_of(state)
    if (aval.dtype, aval.shape) == (UINT32, (4,)):
        words = bitcast_convert_type(reshape(state, (2, 2)), UINT64)
    elif (aval.dtype, aval.shape) == (UINT64, (2,)):
        words = state
    else:
        raise ShapeError(
            f"lax.rng_bit_generator: a state is uint64 of shape (2,) or uint32 of shape (4,), got "
            f"{aval}. Keys of funcgrad.random are for funcgrad.random.bits."
        )
    lengths = tuple(int(n) for n in shape)
    is_threefry = algorithm == RandomAlgorithm.RNG_THREE_FRY
    generate = _threefry_words if is_threefry else _philox_words
    per_word = 2 if wanted == UINT64 else 1
    found, n_blocks = generate(words, math.prod(lengths) * per_word)
    if wanted == UINT64:
        pairs = [p.convert(found[i::2], UINT64) for i in (0, 1)]
        found = p.bitwise_or.bind(pairs[0], p.left_shift.bind(pairs[1], np.uint64(32)))
    counter = p.add.bind(words[1], np.uint64(n_blocks))
    after = concatenate([words[:1], reshape(counter, (1,))], 0)
    if aval.dtype == UINT32:
        after = reshape(bitcast_convert_type(after, UINT32), (4,))
    return after, reshape(p.convert(found, wanted), lengths)


def _threefry_words(state: Array, count: int) -> tuple[Array, int]:
    """So many words of Threefry-2x32, and how many counters they take."""
    n_blocks = -(-count // 2)
    counters = p.add.bind(state[1], iota(UINT64, n_blocks))
    blocks = threefry2x32.bind(*_halves(state[0]), *_halves(counters))
    first, second = shift_right_logical(blocks, 32), p.convert(blocks, UINT32)
    pairs = stack([p.convert(first, UINT32), second], 1)
    return reshape(pairs, (2 * n_blocks,))[:count], n_blocks


def _philox_words(state: Array, count: int) -> tuple[Array, int]:
    """So many words of Philox-4x32; the key is the upper half of the counter, too."""
    n_blocks = -(-count // 4)
    low = p.add.bind(state[1], iota(UINT64, n_blocks))
    carry = p.convert(p.less.bind(low, state[1]), UINT64)
    counter = (*_halves(low), *_halves(p.add.bind(state[0], carry)))
    found = stack(list(philox4x32(_halves(state[0]), counter)), 1)
    return reshape(found, (4 * n_blocks,))[:count], n_blocks


def _halves(words: Array) -> tuple[Array, Array]:
    """The lower and the upper 32 bits."""
    return p.convert(words, UINT32), p.convert(shift_right_logical(words, 32), UINT32)
