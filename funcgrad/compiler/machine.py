"""The machine that kernels are made for: each number with its unit, and how it was found.

The processor is a nominal one, with the smaller caches and slower paths of those that are in use.
Decisions so follow from a program and its shapes alone: wherever it runs, it has the same kernels,
the same partial sums, and the same bits. Vectors are twice or four times as many registers where
registers are shorter.
"""

from __future__ import annotations

VECTOR_BYTES = 64
"""Bytes of a vector: a register of AVX-512, two of AVX2, four of SSE2 and NEON."""

OPERATIONS_PER_CYCLE = 2
"""Additions, multiplications or comparisons of vectors: two units (all since Haswell, Zen)."""

FUNCTION_CYCLES = 2
"""Cycles for each unit of the cost of what takes longer than an addition (`intrinsics`): divisions
take 2 to 4, roots 4 to 7, exponentials 13 to 18, tanh 22 to 27, measured on Zen 5."""

CACHES = ((1 << 15, 64), (1 << 19, 32), (1 << 23, 12))
"""Bytes of each cache, the last one's share of a core, and bytes a cycle between it and registers.

Measured with sums and copies of arrays of half of each size; the smallest of Skylake, Ice Lake,
Zen 3 and Zen 5.
"""

MEMORY_BYTES_PER_CYCLE = 4
"""Bytes a cycle from and to memory, for each of two threads: 8 to 16 GB/s, measured likewise."""

UNALIGNED = 1.0
"""Cycles of loading a vector from a cache line and the next one, as neighbours in a stencil."""

ACROSS = 4.0
"""Cycles of a vector whose elements lie in as many rows: 64 shuffles turn sixteen of them."""

SCALAR = 8
"""How many times as long a loop takes that LLVM has to vectorise: elements that lie apart.

Measured with distances of points in a plane, whose coordinates alternate: 6 cycles an element.
"""

MOST_TURNED = 2
"""Arrays that a kernel reads across whose tiles are transposed in registers first."""

KERNEL_CYCLES = 400
"""Cycles until a kernel is called, has read its words and has written the ends of its rows."""


def cycles_of_moving(nbytes: int) -> float:
    """Cycles for a vector of an array of so many bytes, which shares its cache with another one."""
    rates = (rate for size, rate in CACHES if 2 * nbytes <= size)
    return VECTOR_BYTES / next(rates, MEMORY_BYTES_PER_CYCLE)
