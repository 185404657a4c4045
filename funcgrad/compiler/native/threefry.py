"""The hash behind random numbers as instructions: Threefry-2x32 with 20 rounds, inlined.

Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Unrolled and
without branches, so that loops around it vectorise; the rotations become single instructions.
"""

from __future__ import annotations

from funcgrad.compiler.native.llvm import I64
from funcgrad.compiler.native.scalars import Emitted

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry2x32(k0: Emitted, k1: Emitted, x0: Emitted, x1: Emitted) -> Emitted:
    """The encrypted counter, first word in the upper half, from unsigned 32-bit words."""
    words = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << bits) | (x1 >> (32 - bits))) ^ x0
        x0 = x0 + words[(group + 1) % 3]
        x1 = x1 + words[(group + 2) % 3] + (group + 1)
    return (x0.cast(I64, "u") << 32) | x1.cast(I64, "u")
