"""Programs of integers: hashes, primes, distances, tables, runs, words, floods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import FORWARD, Problem, workload


@workload(small=(10, 3), normal=(100_000, 20), large=(2_000_000, 20), rows=FORWARD)
def mixing_hash(count: int, rounds: int) -> Problem:
    """{count} words through {rounds} rounds of products, shifts and rotations, uint32."""

    def program(xp: Any) -> Callable[..., Any]:
        def run(words: Any) -> Any:
            def mix(k: Any, h: Any) -> Any:
                h = (h ^ (h >> 15)) * np.uint32(739982445)
                h = (h << 13) | (h >> 19)
                return h ^ k.astype(np.uint32)

            return xp.lax.fori_loop(0, rounds, mix, words)

        return run

    def loops(words):
        found = np.empty_like(words)
        for i in range(count):
            h = np.int64(words[i])
            for k in range(rounds):
                h = ((h ^ (h >> 15)) * 739982445) & 0xFFFFFFFF
                h = ((h << 13) | (h >> 19)) & 0xFFFFFFFF
                h = h ^ k
            found[i] = h
        return found

    words = np.random.default_rng(0).integers(0, 2**32, count).astype(np.uint32)
    return Problem((words,), program, loops, loops=True)


@workload(small=(50,), normal=(50_000,), large=(2_000_000,), rows=FORWARD)
def sieve(n: int) -> Problem:
    """Primes below {n} by the sieve of Eratosthenes: `fori_loop` with `cond`."""
    last = int(n**0.5) + 1

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(is_prime: Any) -> Any:
            places = xnp.arange(n, dtype=np.int32)

            def strike(i: Any, is_prime: Any) -> Any:
                def struck(is_prime: Any) -> Any:
                    return is_prime & ((places < i * i) | (places % i != 0))

                return xp.lax.cond(is_prime[i], struck, lambda x: x, is_prime)

            return xp.lax.fori_loop(2, last, strike, is_prime)

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(is_prime: Any) -> Any:
            is_prime = is_prime.clone()
            for i in range(2, last):
                if is_prime[i]:
                    is_prime[i * i :: i] = False
            return is_prime

        return run

    def loops(is_prime):
        is_prime = is_prime.copy()
        for i in range(2, last):
            if is_prime[i]:
                for j in range(i * i, n, i):
                    is_prime[j] = False
        return is_prime

    return Problem((np.arange(n) > 1,), program, loops, torch=torch_program, loops=True)


@workload(small=(6, 5, 2), normal=(500, 400, 4), large=(5000, 4000, 8), rows=FORWARD)
def hamming_search(n: int, m: int, words: int) -> Problem:
    """Nearest of {m} codes for each of {n}, {words} words of 32 bits: counts of differing bits."""

    def program(xp: Any) -> Callable[..., Any]:
        def run(codes: Any, others: Any) -> Any:
            differing = codes[:, None, :] ^ others[None, :, :]
            counts = xp.lax.population_count(differing).astype(np.int32)
            return xp.numpy.argmin(xp.numpy.sum(counts, -1), -1)

        return run

    def loops(codes, others):
        found = np.empty(n, np.int64)
        for i in range(n):
            best = 32 * words + 1
            for j in range(m):
                distance = 0
                for k in range(words):
                    x = int(codes[i, k]) ^ int(others[j, k])
                    x = x - ((x >> 1) & 0x55555555)
                    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
                    x = (x + (x >> 4)) & 0x0F0F0F0F
                    distance += ((x * 0x01010101) >> 24) & 0xFF
                if distance < best:
                    best, found[i] = distance, j
        return found

    rng = np.random.default_rng(0)
    codes, others = (rng.integers(0, 2**32, (k, words)).astype(np.uint32) for k in (n, m))
    return Problem((codes, others), program, loops, loops=True)


@workload(small=(6, 7), normal=(300, 400), large=(3000, 4000), rows=FORWARD)
def edit_distance(n: int, m: int) -> Problem:
    """Levenshtein's distance of texts of {n} and {m} letters: rows by `scan`, running minima."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(one: Any, other: Any) -> Any:
            places = xnp.arange(m + 1, dtype=np.int32)

            def row(before: Any, letter: Any) -> Any:
                swapped = before[:-1] + (other != letter).astype(np.int32)
                best = xnp.minimum(swapped, before[1:] + 1)
                best = xnp.concatenate([before[:1] + 1, best])
                return xp.lax.cummin(best - places) + places, None

            return xp.lax.scan(row, places, one)[0][m]

        return run

    def loops(one, other):
        row = np.arange(m + 1)
        for i in range(n):
            diagonal = row[0]
            row[0] += 1
            for j in range(m):
                best = diagonal + (1 if one[i] != other[j] else 0)
                best = min(best, row[j] + 1, row[j + 1] + 1)
                diagonal, row[j + 1] = row[j + 1], best
        return row[m]

    rng = np.random.default_rng(0)
    arguments = tuple(rng.integers(0, 4, k).astype(np.int32) for k in (n, m))
    return Problem(arguments, program, loops, loops=True)


@workload(small=(5, 20), normal=(100, 5000), large=(500, 50_000), rows=FORWARD)
def knapsack(items: int, capacity: int) -> Problem:
    """Best value of {items} things in a sack that holds {capacity}: a table row by row, int32."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(sizes: Any, values: Any) -> Any:
            places = xnp.arange(capacity + 1, dtype=np.int32)

            def add(best: Any, item: Any) -> Any:
                size, value = item
                rest = best[xnp.maximum(places - size, 0)]
                taken = xnp.where(places >= size, rest + value, 0)
                return xnp.maximum(best, taken), None

            return xp.lax.scan(add, xnp.zeros_like(places), (sizes, values))[0]

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(sizes: Any, values: Any) -> Any:
            best = torch.zeros(capacity + 1, dtype=torch.long)
            for size, value in zip(sizes.tolist(), values.tolist(), strict=True):
                best[size:] = torch.maximum(best[size:], best[: capacity + 1 - size] + value)
            return best

        return run

    def loops(sizes, values):
        best = np.zeros(capacity + 1, np.int32)
        for i in range(items):
            for place in range(capacity, sizes[i] - 1, -1):
                best[place] = max(best[place], best[place - sizes[i]] + values[i])
        return best

    rng = np.random.default_rng(0)
    sizes = rng.integers(1, max(2, capacity // 8), items).astype(np.int32)
    return Problem(
        (sizes, (sizes + rng.integers(0, 9, items)).astype(np.int32)),
        program,
        loops,
        torch=torch_program,
        loops=True,
    )


@workload(small=(30,), normal=(200_000,), large=(5_000_000,), rows=FORWARD)
def run_lengths(n: int) -> Problem:
    """Run-length code of {n} symbols: values and lengths of runs, filled up with zeros."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(x: Any) -> Any:
            is_first = xnp.concatenate([xnp.ones(1, dtype=bool), x[1:] != x[:-1]])
            number = xnp.cumsum(is_first.astype(np.int32)) - 1
            lengths = xp.ops.segment_sum(
                xnp.ones_like(x), number, num_segments=n, indices_are_sorted=True
            )
            return xnp.zeros_like(x).at[number].set(x), lengths

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            found, lengths = torch.unique_consecutive(x, return_counts=True)
            rest = n - len(found)
            return tuple(torch.nn.functional.pad(y, (0, rest)) for y in (found, lengths))

        return run

    def loops(x):
        values, lengths, at = np.zeros_like(x), np.zeros_like(x), -1
        for i in range(n):
            if i == 0 or x[i] != x[i - 1]:
                at += 1
                values[at] = x[i]
            lengths[at] += 1
        return values, lengths

    x = np.repeat(*np.random.default_rng(0).integers(1, 6, (2, n)))[:n].astype(np.int32)
    return Problem((x,), program, loops, torch=torch_program, loops=True)


@workload(small=(40, 16), normal=(100_000, 4096), large=(2_000_000, 65_536), rows=FORWARD)
def word_histogram(n: int, bins: int) -> Problem:
    """Words of a text of {n} letters, hashed by `scan` and counted in {bins} bins."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(text: Any) -> Any:
            def letter(state: Any, code: Any) -> Any:
                h, counts = state
                is_space = code == 32
                counts = counts.at[h].add((is_space & (h != 0)).astype(np.int32))
                return (xnp.where(is_space, 0, (31 * h + code) % bins), counts), None

            start = xnp.zeros_like(text[0]), xnp.zeros(bins, dtype=np.int32)
            counts = xp.lax.scan(letter, start, text)[0][1]
            return xnp.argmax(counts), xnp.sort(counts)

        return run

    def loops(text):
        counts, h = np.zeros(bins, np.int32), 0
        for i in range(n):
            if text[i] == 32:
                if h != 0:
                    counts[h] += 1
                h = 0
            else:
                h = (31 * h + text[i]) % bins
        return np.argmax(counts), np.sort(counts)

    rng = np.random.default_rng(0)
    letters = rng.integers(97, 105, n)
    return Problem(
        (np.where(rng.uniform(size=n) < 0.25, 32, letters).astype(np.int32),),
        program,
        loops,
        loops=True,
    )


@workload(small=(6, 50), normal=(96, 400), large=(512, 4000), rows=FORWARD)
def depression_filling(n: int, most: int) -> Problem:
    """Water in a landscape of {n}^2 heights: levels sink until all drain, at most {most} steps."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(heights: Any) -> Any:
            highest = xnp.max(heights)
            inside = (slice(1, -1),) * 2
            levels = heights.at[inside].set(highest)

            def moves(state: Any) -> Any:
                return state[1] & (state[2] < most)

            def sink(state: Any) -> Any:
                levels, _, count = state
                rows = xnp.minimum(levels[2:, 1:-1], levels[:-2, 1:-1])
                columns = xnp.minimum(levels[1:-1, 2:], levels[1:-1, :-2])
                lowest = xnp.maximum(heights[inside], xnp.minimum(rows, columns))
                following = levels.at[inside].set(xnp.minimum(levels[inside], lowest))
                return following, xnp.any(following != levels), count + 1

            return xp.lax.while_loop(moves, sink, (levels, highest > 0, 0))[0]

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(heights: Any) -> Any:
            levels = heights.clone()
            levels[1:-1, 1:-1] = torch.max(heights)
            for _ in range(most):
                rows = torch.minimum(levels[2:, 1:-1], levels[:-2, 1:-1])
                columns = torch.minimum(levels[1:-1, 2:], levels[1:-1, :-2])
                lowest = torch.maximum(heights[1:-1, 1:-1], torch.minimum(rows, columns))
                following = torch.minimum(levels[1:-1, 1:-1], lowest)
                if torch.equal(following, levels[1:-1, 1:-1]):
                    break
                levels[1:-1, 1:-1] = following
            return levels

        return run

    def loops(heights):
        levels, following = heights.copy(), heights.copy()
        levels[1 : n - 1, 1 : n - 1] = heights.max()
        for _ in range(most):
            is_moving = False
            for i in range(n):
                for j in range(n):
                    value = levels[i, j]
                    if 0 < i < n - 1 and 0 < j < n - 1:
                        lowest = min(levels[i - 1, j], levels[i + 1, j])
                        lowest = min(lowest, levels[i, j - 1], levels[i, j + 1])
                        value = min(value, max(heights[i, j], lowest))
                    following[i, j] = value
                    if value != levels[i, j]:
                        is_moving = True
            levels, following = following, levels
            if not is_moving:
                break
        return levels

    heights = np.random.default_rng(0).integers(1, 1000, (n, n)).astype(np.int32)
    return Problem((heights,), program, loops, torch=torch_program, loops=True)
