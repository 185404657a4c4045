"""The machine that kernels are made for: each number with its unit, and how it was found.

The processor is a nominal one, with the smaller caches and slower paths of those that are in use,
apart from its registers: where they are shorter, a vector is two or four of them, and an iteration
computes fewer vectors at once. All else follows from a program and its shapes alone.

Cycles and bytes are rounded from tables of instructions and manuals of processors. The other
numbers were chosen by rows of the benchmarks, each when it came to be, on Zen 4 and Zen 5. What
follows from them is derived where it is used.
"""

from __future__ import annotations

from functools import cache

# The processor.

VECTOR_BYTES = 64
"""Bytes of a vector: a register of AVX-512, two of AVX2, four of SSE2 and NEON; of a cache line."""

WORD_BYTES = 4
"""Bytes of the smallest elements that one instruction permutes in registers of all processors."""

REGISTERS = {"avx512f": (64, 32), "avx": (32, 16), "neon": (16, 32)}
"""Bytes of a register, and how many there are, by the feature of LLVM that brings them; all others
have as many as SSE2: 16 of 16 bytes."""

VECTORS = 4
"""Vectors that an iteration computes at once, at most: of long chains of operations, the processor
sees no other iteration while it waits for one of them. Additions take two to four cycles."""

OPERATIONS_PER_CYCLE = 2
"""Additions, multiplications or comparisons of vectors: two units (all since Haswell, Zen)."""

FUNCTION_CYCLES = 2
"""Cycles for each unit of the cost of what takes longer than an addition (`intrinsics`): divisions
take 2 to 4, roots 4 to 7, exponentials 13 to 18, tanh 22 to 27, measured on Zen 5."""

CACHES = ((1 << 15, 64), (1 << 19, 32), (1 << 23, 12))
"""Bytes of each cache, the last one's share of a core, and bytes a cycle between it and registers:
the first two as of Skylake and Zen 3, the last one an estimate with all cores at work."""

MEMORY_BYTES_PER_CYCLE = 4
"""Bytes a cycle from and to memory, for each of two threads: 8 to 16 GB/s."""

UNALIGNED = 1.0
"""Cycles of loading a vector from a cache line and the next one, as neighbours in a stencil."""

ACROSS = 4.0
"""Cycles of a vector whose elements lie in as many rows: 64 shuffles transpose sixteen of them."""

SCALAR = 8
"""How many times as long arithmetic takes on elements that lie apart, of which few fill a vector:
6 cycles an element, measured with distances of points in a plane, whose coordinates alternate."""

KERNEL_CYCLES = 400
"""Cycles until a kernel is called, has read its words and has written the ends of its rows: 0.1
microseconds, an estimate from kernels of a few elements."""

# Work, in elements that are read or written, or operations on them.

THREAD_WORK = 1 << 18
"""Work of the smallest part that is worth a thread."""

PRODUCT = 8
"""Multiplications of a product of matrices, each with an addition, in the time of a unit of work:
sixteen or more a cycle, without loads of their own."""

JOINED_WORK = 1 << 13
"""Work of the largest iteration of a loop whose kernels are joined: from there on, what the
executor does between them is not worth mentioning."""

PARTS_PER_THREAD = 4
"""The last part of a thread without a processor is what everybody waits for: it has to be small."""

LONGEST_PART = 1 << 25
"""Work of the largest part: tens of milliseconds, after which a program can be stopped."""

EVEN_PARTS = 16
"""About how many parts sums are divided into, whatever the number of threads is."""

FUNCTION = 8
"""Operations that an elementary function counts as: what an exponential takes."""

HEAVY = 12
"""Operations from which an element is so much work that the code is to be there only once: all
vectors are computed as the last one, of which only a part may be there."""

LOOKUP = 4
"""Operations for each lookup in vectors, whose lanes are loaded one by one, from which they are
worth it: others are left to LLVM, one element at a time."""

# Lengths and sizes of code.

FEW = 4
"""Indices of axes, rows and results that are written out without a second thought; fewer elements
than these are computed one by one."""

SHORT_AXIS = 8
"""Length of the longest axis that is written out: steps up to this one are known to LLVM."""

SEVERAL = 16
"""Elements of the largest array of variables, parts of an array that one kernel writes in turn; an
array of so many times another one's size makes that one count as nothing; LLVM looks for no vectors
in loops over fewer elements."""

SMALL = SEVERAL * SEVERAL
"""Work of the largest kernel that is written out with its sizes, the largest of these, and elements
of the largest array of variables that nothing changes."""

SUM_BLOCK = 512
"""Elements of the blocks in which sums are formed: their rounding errors are those of blocks."""

RARE = 128
"""The part of all elements, divided, up to which those at edges are computed one by one: vectors
of them would take the compiler more time than they save."""

MOST_TRANSPOSED = 2
"""Arrays that a kernel reads across whose tiles are transposed in registers first."""

QUESTIONS = 6
"""Parts of assembled arrays that a reader may ask an index about, over all who read one array."""

KERNEL_NODES = 128
"""Operations of the largest kernel. With 64, formulas of distances and flux limiters were cut, and
took up to eight times as long."""

LOOP_OPERATIONS = 1200
"""Operations of the largest loop that is written out as one kernel of variables."""


def cycles_of_moving(nbytes: int) -> float:
    """Cycles for a vector of an array of so many bytes, which shares its cache with another one."""
    rates = (rate for size, rate in CACHES if 2 * nbytes <= size)
    return VECTOR_BYTES / next(rates, MEMORY_BYTES_PER_CYCLE)


@cache
def registers(features: str) -> tuple[int, int]:
    """Bytes of a register, and their number, of a processor with these features of LLVM."""
    names = {name.removeprefix("+") for name in features.split(",") if name.startswith("+")}
    return next((REGISTERS[name] for name in REGISTERS if name in names), (16, 16))


def vectors_held(features: str) -> int:
    """How many vectors the registers of a processor hold, which has these features of LLVM."""
    nbytes, count = registers(features)
    return nbytes * count // VECTOR_BYTES
