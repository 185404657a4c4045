"""Greedy colouring of a graph as a program, for graphs that are too large for Python.

One flat loop of a state machine, whose arrays stay where they are: it reads an edge, or tries a
colour, in each step, in three to four nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.core.avals import ShapedArray
from funcgrad.core.program import Program
from funcgrad.transforms.programs import stage_closed


def greedy_program(avals: Sequence[ShapedArray]) -> Program:
    """A program that maps an order of vertices, and a graph, to colours from 1 on.

    Args:
        avals: Types of the order, of the first edges of all vertices, and of the other ends.
    """
    return stage_closed(lambda *args: [_greedy(*args)], avals, "greedy_coloring")


def _greedy(order: Any, starts: Any, neighbours: Any) -> Any:
    n, last = order.shape[0], neighbours.shape[0] - 1

    def goes_on(state: Any) -> Any:
        return state[0] < n

    def step(state: Any) -> Any:
        k, edge, color, memory = state
        v = order[fnp.minimum(k, n - 1)]
        is_reading = edge < starts[v + 1]
        other = memory[neighbours[fnp.minimum(edge, last)]]
        # Behind the colours of vertices: for each colour the last vertex that it is taken for.
        is_done = ~is_reading & (memory[n + color] != k)
        place = fnp.where(is_reading, n + other, fnp.where(is_done, v, 2 * n + 2))
        memory = fnp.at(memory)[place].set(fnp.where(is_reading, k, color))
        next_k = fnp.where(is_done, k + 1, k)
        first = starts[order[fnp.minimum(next_k, n - 1)]]
        return (
            next_k,
            fnp.where(is_reading, edge + 1, fnp.where(is_done, first, edge)),
            fnp.where(is_reading | is_done, 1, color + 1),
            memory,
        )

    memory = fnp.concatenate([fnp.zeros(n, np.int64), fnp.full(n + 3, -1)])
    state = (np.int64(0), starts[order[0]], np.int64(1), memory)
    return lax.while_loop(goes_on, step, state)[3][:n]
