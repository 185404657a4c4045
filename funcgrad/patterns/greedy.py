"""Greedy colourings of a graph as programs, for graphs that are too large for Python.

Each is one flat loop of a state machine, whose arrays stay where they are: it reads an edge, or
tries a colour, in each step, in a few nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.program import Program
from funcgrad.higher_order.jit import run_program
from funcgrad.transforms.programs import stage_closed

FEW_STEPS = 1 << 18
"""Entries up to which Python colours stars and trees, in less time than compiling takes."""


def compiled(make: Callable[..., Program], *arrays: Any) -> list[Any]:
    """Results of a program of integers, which is made from the types of its arguments."""
    args = [np.asarray(a, np.int64) for a in arrays]
    return [np.asarray(x) for x in run_program(make([aval_of(a) for a in args]), args)]


def greedy_program(avals: Sequence[ShapedArray]) -> Program:
    """A program that maps an order of vertices, and a graph, to colours from 1 on.

    Args: avals: Types of the order, of the first edges of all vertices, and of the other ends.
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


def star_program(avals: Sequence[ShapedArray]) -> Program:
    """A program that maps an order of vertices, and a graph, to colours of stars.

    A colour is the power of two that is the bit of it in sets; 0 at the first vertex of the order
    says that there are more colours than bits.

    Args: avals: Types of the order, of the first edges of all vertices, and of the other ends.
    """
    return stage_closed(lambda *args: [_stars(*args)], avals, "star_coloring")


_TAKEN, _MADE, _FIRST = range(3)
"""Phases of the vertex whose turn it is: a step reads which colours a neighbour forbids; tells a
neighbour its own colour; or looks for the first neighbour of that one with its colour."""

_COLOR, _NEAR, _TWICE, _BEHIND = range(4)
"""Sets of colours of a vertex: its own one; those of its neighbours; those that several of them
have; those that others must not get in a path from it on."""

MOST_COLORS = 62
"""Colours for which a set has bits."""


def _stars(order: Any, starts: Any, neighbours: Any) -> Any:
    n = order.shape[0]
    zero = np.int64(0)
    known = fnp.zeros(4 * n + 1, np.int64)  # one more, into which is written what is nowhere
    state = (zero, zero, starts[order[0]], zero, zero, (zero, zero), known)
    end, *_, known = lax.while_loop(
        lambda state: state[0] < n, lambda state: _look(order, starts, neighbours, state), state
    )
    colors = fnp.reshape(known[: 4 * n], (n, 4))[:, _COLOR]
    return fnp.where(end == n, colors, 0)


def _look(order: Any, starts: Any, neighbours: Any, state: Any) -> Any:
    """One step: an edge of the vertex ``v`` to ``w``, or of ``w`` to ``u``."""
    n, last = order.shape[0], neighbours.shape[0] - 1
    k, phase, edge, beyond, taken, (bit, behind), known = state
    v = order[fnp.minimum(k, n - 1)]
    w = neighbours[fnp.minimum(edge, last)]
    u = neighbours[fnp.minimum(beyond, last)]
    color, near, twice, forbidden = (known[4 * w + i] for i in range(4))
    is_end = (phase != _FIRST) & (edge >= starts[v + 1])
    is_there = ~is_end & (w != v)
    is_twice = (known[4 * v + _TWICE] & color) > 0
    # Read what a neighbour forbids; behind the last one, take the least colour that is left.
    reads = (phase == _TAKEN) & is_there & (color > 0)
    taken = taken | fnp.where(reads, fnp.where(is_twice, near, forbidden), 0)
    is_chosen = (phase == _TAKEN) & is_end
    taken = fnp.where(is_chosen, taken | known[4 * v + _NEAR], taken)
    bit = fnp.where(is_chosen, ~taken & (taken + 1), bit)
    # Tell a neighbour; if it is the second of this colour that it has, look for the first.
    tells = (phase == _MADE) & is_there
    is_again = tells & ((near & bit) > 0)
    looks = is_again & ((twice & bit) == 0) & (color > 0)
    is_found = (phase == _FIRST) & (u != v) & (known[4 * u + _COLOR] == bit)
    behind = behind | fnp.where(is_again, color, 0)
    is_done = (phase == _MADE) & is_end
    writes = (
        (tells, w, _NEAR, near | bit),
        (is_again, w, _TWICE, twice | bit),
        (tells & is_twice, w, _BEHIND, forbidden | bit),
        (is_found, u, _BEHIND, known[4 * u + _BEHIND] | color),
        (is_done, v, _BEHIND, known[4 * v + _BEHIND] | behind),
        (is_chosen, v, _COLOR, bit),
    )
    for is_written, x, which, value in writes:
        known = fnp.at(known)[fnp.where(is_written, 4 * x + which, 4 * n)].set(value)
    is_full = is_chosen & (bit >= 1 << MOST_COLORS)
    next_k = fnp.where(is_full, n + 1, fnp.where(is_done, k + 1, k))
    stays = looks | ((phase == _FIRST) & ~is_found)
    begins = is_chosen | is_done
    other_phase = fnp.where(is_chosen | (phase == _FIRST), _MADE, phase)
    return (
        next_k,
        fnp.where(is_done, _TAKEN, fnp.where(stays, _FIRST, other_phase)),
        fnp.where(begins, starts[order[fnp.minimum(next_k, n - 1)]], edge + ~stays),
        fnp.where(looks, starts[w], beyond + 1),
        fnp.where(is_done, 0, taken),
        (bit, fnp.where(begins, 0, behind)),
        known,
    )
