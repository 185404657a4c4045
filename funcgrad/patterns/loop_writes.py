"""Arrays that a loop carries and writes to: some elements in each step, at places that are known.

What such an array depends on in the end are the parts that steps write, side by side, each at its
places: there is no array for each step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import lowering as forms
from funcgrad.core.avals import Shape
from funcgrad.core.program import Atom, Equation, Program, makers
from funcgrad.patterns.index_sets import Relation, matrix_of, with_matrix
from funcgrad.patterns.known import form_of, known_places


def writes_of(body: Program, carried: Atom, result: Atom) -> list[Equation] | None:
    """The equations that write to a carried array, ``None`` if others change it.

    Args:
        body: The body of the loop.
        carried: The array at the begin of a step.
        result: The array at its end.
    """
    found: list[Equation] = []
    if 0 in carried.aval.shape:
        return None
    while result is not carried:
        equation, _ = makers(body).get(result, (None, 0))
        if equation is None or not isinstance(form_of(equation), forms.Replace | forms.Scatter):
            return None
        found.append(equation)
        result = equation.inputs[0]
    return found


def written(equation: Equation, parts: Relation, indices: Sequence[Any], length: int) -> Relation:
    """Dependence of an array on what its parts depend on that a loop writes.

    Args:
        equation: The write.
        parts: Dependence of the parts of all steps, one after the other.
        indices: Its further operands: for each step, or one for all of them.
        length: The number of steps.
    """
    form, (x, part, *others) = form_of(equation), [a.aval for a in equation.inputs]
    each = [np.broadcast_to(i, (length, *a.shape)) for i, a in zip(indices, others, strict=True)]
    if isinstance(form, forms.Replace):
        places = _replaced(each, part.shape, x.shape, length)
    else:
        places = numbers_of(each, form.axes, form.mode, x.shape)
    rows = places.ravel()
    here = np.flatnonzero(rows >= 0)
    matrix = matrix_of(rows[here], here, (math.prod(x.shape), len(rows)))
    return with_matrix([], Relation(x.shape, len(rows), [], matrix), parts)


def _replaced(starts: Sequence[Any], part: Shape, shape: Shape, length: int) -> Any:
    """For every element of the parts that steps replace its number in the array."""
    found = np.zeros((length, *(1,) * len(part)), np.int64)
    for axis, (start, n, m) in enumerate(zip(starts, shape, part, strict=True)):
        along = np.arange(m).reshape([-1 if i == axis else 1 for i in range(len(part))])
        first = np.clip(start.astype(np.int64), 0, n - m).reshape(-1, *(1,) * len(part))
        found = found * n + (first + along)
    return found


def numbers_of(indices: Sequence[Any], axes: Sequence[int], mode: str, shape: Shape) -> Any:
    """For every element that is looked up its number in the array, -1 for none.

    Args:
        indices: For each of the axes indices along it.
        axes: The axes; the others are whole, and come last.
        mode: What indices outside mean.
        shape: Of the array.
    """
    indices = np.broadcast_arrays(*indices)
    is_there = np.ones(indices[0].shape, np.bool_)
    found = []
    for index, axis in zip(indices, axes, strict=True):
        place = known_places(index, mode, shape[axis])
        is_there &= place >= 0
        found.append(np.maximum(place, 0))
    numbers = np.arange(math.prod(shape)).reshape(shape)
    front = np.moveaxis(numbers, axes, range(len(axes)))
    taken = front[tuple(i.astype(np.int64) for i in found)]
    more = is_there.reshape(is_there.shape + (1,) * (taken.ndim - is_there.ndim))
    return np.where(more, taken, -1)
