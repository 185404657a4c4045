"""Parts of kernels for several threads: ranges of the outermost loop."""

from __future__ import annotations

import math

from funcgrad.compiler import machine

MOST_PARTS = 1024
"""Parts of a step, whatever the number of threads is."""

FEWEST_PRODUCTS, MOST_PRODUCTS = (
    machine.PRODUCT * machine.THREAD_WORK // machine.FEW,
    machine.PRODUCT * machine.LONGEST_PART,
)
"""Multiplications of the smallest and the largest part of a product of matrices."""

MOST_RANGES = 1 << 15
"""Parts of a step for which its tables have room."""

FEWEST_PARTS, MOST_EVEN_PARTS = 3 * machine.EVEN_PARTS // 8, 4 * machine.EVEN_PARTS


def part_ranges(
    length: int,
    work: int,
    threads: int,
    per_thread: int = machine.PARTS_PER_THREAD,
    is_bounded: bool = True,
) -> list[tuple[int, int]]:
    """Ranges of an outermost loop that are worth a thread each; one range if it is too small.

    Between two of them a program can be stopped.

    Args:
        length: Iterations of the loop.
        work: That of all of them.
        threads: How many threads may take part; 0 where nothing runs steps in parts.
        per_thread: How many parts every thread is to have.
        is_bounded: Whether no part is to take longer than `LONGEST_PART`.
    """
    most = machine.LONGEST_PART if is_bounded else work + 1
    count = part_count(length, work, threads, machine.THREAD_WORK, most, per_thread)
    if count < 2:
        return [(0, length)]
    size = -(-length // count)
    if length >= machine.VECTOR_BYTES * count:  # whole vectors, and no cache line in two parts
        size = -(-size // machine.VECTOR_BYTES) * machine.VECTOR_BYTES
    return [(a, min(a + size, length)) for a in range(0, length, size)]


def part_count(
    units: int,
    work: int,
    threads: int,
    least: int = FEWEST_PRODUCTS,
    most: int = MOST_PRODUCTS,
    per_thread: int = machine.PARTS_PER_THREAD,
) -> int:
    """The number of parts of a step, of whole units.

    Args:
        units: What can be shared.
        work: That of all of them.
        threads: As of `part_ranges`.
        least: Work of the smallest part.
        most: Work of the largest one.
        per_thread: As of `part_ranges`.
    """
    if threads < 1:
        return 1
    count = min(per_thread * threads, work // least, MOST_PARTS) if threads > 1 else 1
    return max(min(max(count, min(work // most, MOST_RANGES)), units), 1)


def threads_of_product(work: int, threads: int) -> int:
    """How many threads share a product: one where it is too small.

    Args:
        work: Its multiplications.
        threads: As of `part_ranges`.
    """
    return threads if work >= machine.PRODUCT * machine.THREAD_WORK else min(threads, 1)


def even_parts(length: int, least: int) -> int:
    """The number of parts of one length, which depends on the length alone; 0 if none.

    Args:
        length: What is divided.
        least: The length of the shortest part.
    """
    divisors = (n for n in range(FEWEST_PARTS, MOST_EVEN_PARTS + 1) if length % n == 0)
    large = [n for n in divisors if length >= n * least]
    return min(large, key=lambda n: abs(math.log(n / machine.EVEN_PARTS)), default=0)
