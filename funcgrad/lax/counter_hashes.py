"""Hashes of counters besides Threefry-2x32: Philox and Threefry of four words.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
SC 2011. All words are uint32, with NumPy's broadcasting; they are made of other operations, so that
a compiled function fuses them with what needs the bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.primitives import elementwise as p
from funcgrad.primitives.random import UINT32, UINT64

Words = tuple[Any, ...]

_PHILOX_ROUNDS = 10
_MULTIPLIER = 0xD256D193
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
"""Golden ratio and square root of 3, less 1: what is added to keys from round to round."""

_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_THREEFRY_ROUNDS = 20
_PARITY = np.uint32(0x1BD11BDA)


def _xor(*words: Any) -> Any:
    found, *others = words
    for word in others:
        found = p.bitwise_xor.bind(found, word)
    return found


def _product(x: Any, multiplier: int) -> Words:
    """High and low word of a product."""
    whole = p.mul.bind(p.convert(x, UINT64), np.uint64(multiplier))
    return p.convert(p.right_shift.bind(whole, np.uint64(32)), UINT32), p.convert(whole, UINT32)


def philox2x32(key: Any, x0: Any, x1: Any) -> Words:
    """Philox-2x32 of 10 rounds.

    Args:
        key: One word.
        x0: First word of the counter.
        x1: Second word of the counter.
    """
    for i in range(_PHILOX_ROUNDS):
        key = key if i == 0 else p.add.bind(key, _WEYL[0])
        high, low = _product(x0, _MULTIPLIER)
        x0, x1 = _xor(high, x1, key), low
    return x0, x1


def philox4x32(key: Sequence[Any], counter: Sequence[Any]) -> Words:
    """Philox-4x32 of 10 rounds."""
    k0, k1 = key
    x0, x1, x2, x3 = counter
    for i in range(_PHILOX_ROUNDS):
        if i:
            k0, k1 = (p.add.bind(k, weyl) for k, weyl in zip((k0, k1), _WEYL, strict=True))
        first, second = _product(x0, _MULTIPLIERS[0]), _product(x2, _MULTIPLIERS[1])
        x0, x1 = _xor(second[0], x1, k0), second[1]
        x2, x3 = _xor(first[0], x3, k1), first[1]
    return x0, x1, x2, x3


def _mixed(x: Any, y: Any, distance: int) -> Words:
    """One addition, rotation and xor."""
    total = p.add.bind(x, y)
    left = p.left_shift.bind(y, np.uint32(distance))
    right = p.right_shift.bind(y, np.uint32(32 - distance))
    return total, _xor(p.bitwise_or.bind(left, right), total)


def threefry4x32(key: Sequence[Any], counter: Sequence[Any]) -> Words:
    """Threefry-4x32 of 20 rounds."""
    schedule = [*key, _xor(*key, _PARITY)]
    x = [p.add.bind(word, k) for word, k in zip(counter, key, strict=True)]
    for i in range(_THREEFRY_ROUNDS):
        # Words 1 and 3 change places from round to round.
        one, three = (1, 3) if i % 2 == 0 else (3, 1)
        near, far = _ROTATIONS[i % len(_ROTATIONS)]
        x[0], x[one] = _mixed(x[0], x[one], near)
        x[2], x[three] = _mixed(x[2], x[three], far)
        if i % 4 == 3:
            turn = i // 4 + 1
            x = [p.add.bind(x[j], schedule[(turn + j) % 5]) for j in range(4)]
            x[3] = p.add.bind(x[3], np.uint32(turn))
    return tuple(x)
