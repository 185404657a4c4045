"""Offsets of buffers with lifetimes: nothing overlaps, and little is wasted."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad.compiler.machine import VECTOR_BYTES
from funcgrad.compiler.nest.arena import Buffer, live_bytes, packed

SPANS = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=25
)


def buffers_of(spans: list[tuple[int, int, int]]) -> list[Buffer]:
    rows = [Buffer(nbytes, first, first + length) for nbytes, first, length in spans]
    return sorted(rows, key=lambda buffer: buffer.first)


@given(SPANS)
def test_buffers_that_live_at_once_do_not_overlap(spans: list[tuple[int, int, int]]) -> None:
    buffers = buffers_of(spans)
    size = packed(buffers)
    assert live_bytes(buffers) <= size == max(b.offset + b.room for b in buffers)
    for buffer in buffers:
        assert buffer.offset % VECTOR_BYTES == 0
    for a, b in combinations(buffers, 2):
        if a.first <= b.last and b.first <= a.last:
            assert a.offset + a.room <= b.offset or b.offset + b.room <= a.offset


@given(SPANS)
def test_what_lives_at_once_is_counted_step_by_step(spans: list[tuple[int, int, int]]) -> None:
    buffers = buffers_of(spans)
    steps = range(26)
    alive = [sum(b.room for b in buffers if b.first <= step <= b.last) for step in steps]
    assert live_bytes(buffers) == max(alive)


def test_holes_are_filled() -> None:
    """By best fit in order, the last buffer would lie after the two holes of half its size."""
    k = 1 << 20
    buffers = [Buffer(k, 0, 0), Buffer(k, 0, 2), Buffer(k, 0, 0), Buffer(2 * k, 1, 1)]
    assert live_bytes(buffers) == 3 * k
    assert packed(buffers) == 3 * k


def test_a_program_needs_little_more_than_what_lives_at_once() -> None:
    def attention(w: np.ndarray, x: np.ndarray) -> np.ndarray:
        q, k, v = x @ w, x @ (2 * w), np.tanh(x @ (w - 1))
        p = np.exp(q @ k.T)
        return ((p / p.sum(1, keepdims=True)) @ v).sum()

    x = np.ones((200, 64))
    analysis = fg.jit(fg.grad(attention)).lower(np.eye(64), x).compile().memory_analysis()
    assert analysis.live_size_in_bytes <= analysis.temp_size_in_bytes
    assert analysis.temp_size_in_bytes <= 1.1 * analysis.live_size_in_bytes + 4096
    assert "needed at once" in repr(analysis)
