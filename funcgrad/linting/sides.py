"""Both sides of a point: steps away from it, and jumps from one to the other.

A kink is where a derivative jumps, however near both sides are: at a distance h and at 16 h it is
the same jump, which of a smooth function would be a sixteenth. The distance is so small that data
rarely are there by chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of

FARTHEST = 1e-6
"""The largest distance, in units of the size of the elements."""
BY_CHANCE = 1e-5
"""How many elements of an array may be nearer than that by chance."""
LEAST = 1e-3
"""The least jump, in units of the derivative; less of it in double precision."""


def direction(x: Any, position: int) -> Any:
    """Numbers of both signs, others for each position; nothing where there are no such numbers."""
    dtype = aval_of(x).dtype
    if dtype.kind not in "fc":
        return None
    generator = np.random.default_rng(position)

    def drawn() -> Any:
        signs = np.where(generator.random(np.shape(x)) < 0.5, -1.0, 1.0)
        return signs * generator.uniform(0.5, 1, np.shape(x))

    return (drawn() + (1j * drawn() if dtype.kind == "c" else 0)).astype(dtype)


def distance(x: Any) -> float:
    """The shortest step beside a point, in units of the numbers: nearer than chance would be."""
    eps = float(np.finfo(aval_of(x).dtype).eps)
    return max(64 * eps, min(FARTHEST, BY_CHANCE / max(np.size(x), 1)))


def moved(x: Any, along: Any, times: float) -> Any:
    """A point beside it: at the next numbers, or nearer than chance would be."""
    if along is None or not np.size(x):
        return x
    is_number = np.isfinite(x)
    size = np.sqrt(np.mean(np.square(np.abs(np.where(is_number, x, 0)), dtype=np.float64))) or 1.0
    near = size * min(FARTHEST, BY_CHANCE / np.size(x))
    tiny = 16 * np.finfo(aval_of(x).dtype).tiny
    # Equal elements part, since each goes another way.
    spacing = 64 * np.spacing(np.abs(np.where(is_number, x, 0)))
    step = times * np.maximum(np.maximum(spacing, near), tiny) * along
    return (x + np.where(is_number, step, 0)).astype(aval_of(x).dtype)


def jumps(near: Any, back: Any, far: Any, last: Any) -> int:
    """How many elements of a derivative, or a value, jump, of those finite on both sides.

    A jump is larger than what changes on either side, which is all that a smooth function has.

    Args:
        near: On one side.
        back: On the other one.
        far: On the first one, 16 times farther away.
        last: There on the other one.
    """
    sides = (near, back, far, last)
    if any(x is None or aval_of(x).dtype.kind not in "fc" for x in sides):
        return 0
    is_finite = np.logical_and.reduce([np.isfinite(x) for x in sides])
    near, back, far, last = (np.asarray(x)[is_finite] for x in sides)
    jump, wider = np.abs(near - back), np.abs(far - last)
    change = np.maximum(np.abs(far - near), np.abs(last - back)).max(initial=0)
    return int(np.sum((jump > _least(near, back)) & (jump > change) & (jump > 0.25 * wider)))


def leaps(here: Any, near: Any, back: Any, far: Any, last: Any) -> int:
    """Number of finite elements that equal neither of their one-sided limits at a point.

    Args:
        here: Values at the point.
        near: Values on one side.
        back: Values on the other side.
        far: Values on the first side, 16 times farther away.
        last: Values on the other side, 16 times farther away.
    """
    places = (here, near, back, far, last)
    if any(x is None or aval_of(x).dtype.kind not in "fc" for x in places):
        return 0
    is_finite = np.logical_and.reduce([np.isfinite(x) for x in places])
    here, near, back, far, last = (np.asarray(x)[is_finite] for x in places)
    leap = np.minimum(np.abs(here - near), np.abs(here - back))
    change = np.maximum(np.abs(near - far), np.abs(back - last)).max(initial=0)
    return int(np.sum((leap > _least(here, near)) & (leap > 4 * change)))


def may_jump(near: Any, back: Any) -> bool:
    """Whether two values differ by more than rounding, so that it is worth to look farther."""
    if aval_of(near).dtype.kind not in "fc":
        return False
    is_finite = np.isfinite(near) & np.isfinite(back)
    near, back = np.asarray(near)[is_finite], np.asarray(back)[is_finite]
    return bool(np.any(np.abs(near - back) > _least(near, back)))


def _least(near: Any, back: Any) -> float:
    """The least difference that is a jump."""
    size = np.maximum(np.abs(near), np.abs(back)).max(initial=0)
    return float(min(LEAST, 64 * np.sqrt(np.finfo(near.dtype).eps)) * size)
