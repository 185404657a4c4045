"""Lookups at known, equally distant places as slices: ``x[i + 1]`` for ``i = arange(n)``.

Functions that are mapped over indices read arrays so, and their gradients add to such places;
``x.at[::2].set(y)`` replaces them. The
derivative of a slice has affine index sets, its transpose pads, and kernels fuse with both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import lowering as forms
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Literal, Program, Var
from funcgrad.patterns.known import Scope, form_of, known_places
from funcgrad.primitives.elementwise import add, select
from funcgrad.primitives.indexing import ScatterAdd, ScatterSet
from funcgrad.primitives.shape import BroadcastTo, Pad, Reshape, Slice, Transpose

WRITES = (ScatterAdd.step, ScatterSet.step)
"""Steps of the writes at places that are pads."""


def with_slices(program: Program) -> Program:
    """The same program with slices for lookups at equally distant places, and pads for writes.

    Only indices count that are constants, or computed of constants.
    """
    scope = Scope(program)
    equations: list[Equation] = []
    for equation in program.equations:
        equations += _Sliced(equation, scope).equations or [equation]
    return Program(program.inputs, equations, program.outputs, program.name, program.constants)


class _Sliced:
    """An equation that reads an array along one axis, or writes to it, by slices.

    Attributes:
        equations: These; none if it is no such equation.
    """

    def __init__(self, equation: Equation, scope: Scope) -> None:
        self.equation = equation
        self.equations: list[Equation] = []
        form = form_of(equation)
        is_lookup = isinstance(form, forms.Lookup)
        is_write = isinstance(form, forms.Scatter) and form.step in WRITES
        if not (is_lookup or is_write) or len(form.axes) != 1:
            return
        (self.axis,) = form.axes
        self.index = equation.inputs[-1].aval
        self.shape = equation.inputs[0].aval.shape
        places = self._places(form.mode, scope)
        if places is None:
            return
        self.step = int(places[1] - places[0]) if len(places) > 1 else 1
        self.ends = int(places[0]), int(places[-1]) + 1
        if self.step < 1 or self.ends[0] < 0 or (np.diff(places) != self.step).any():
            return
        if is_lookup:
            self._read()
        else:
            self._write(scope, form.step == ScatterAdd.step)

    def _places(self, mode: str, scope: Scope) -> Any:
        """The places along the axis, if there is one index for each, and they are known."""
        if self.index.ndim > 1 or not self.index.size or 0 in self.shape:
            return None
        value = scope.value(self.equation.inputs[-1])
        if value is None:
            return None
        return known_places(np.atleast_1d(value), mode, self.shape[self.axis])

    def _applied(self, primitive: Primitive, *atoms: Atom) -> Var:
        out = Var(primitive.abstract_eval(*(a.aval for a in atoms)))
        self.equations.append(Equation(primitive, atoms, (out,), self.equation.source))
        return out

    def _named(self) -> None:
        """Make the last equation that of the result."""
        last = self.equations.pop()
        self.equations.append(
            Equation(last.primitive, last.inputs, self.equation.outputs, last.source)
        )

    @property
    def _others(self) -> Sequence[int]:
        return [i for i in range(len(self.shape)) if i != self.axis]

    def _along(self, value: int, others: Sequence[int]) -> tuple[int, ...]:
        """A number for the axis, and those of the other ones."""
        found = list(others)
        found[self.axis] = value
        return tuple(found)

    def _read(self) -> None:
        n = len(self.shape)
        starts, limits = self._along(self.ends[0], [0] * n), self._along(self.ends[1], self.shape)
        strides = self._along(self.step, [1] * n)
        atom = self._applied(Slice(starts, limits, strides), self.equation.inputs[0])
        if self.axis:
            atom = self._applied(Transpose((self.axis, *self._others)), atom)
        if not self.index.ndim:
            self._applied(Reshape(self.equation.outputs[0].aval.shape), atom)
        self._named()

    def _write(self, scope: Scope, is_sum: bool) -> None:
        x, updates = self.equation.inputs[:2]
        if not self.index.ndim:
            updates = self._applied(Reshape((1, *updates.aval.shape)), updates)
        if self.axis:
            order = np.argsort((self.axis, *self._others))
            updates = self._applied(Transpose(tuple(order.tolist())), updates)
        is_there = None if is_sum else self._placed(self._ones(updates.aval.shape))
        placed = self._placed(updates)
        value = scope.value(x)
        if value is None or np.any(value):
            if is_there is None:
                self._applied(add, x, placed)
            else:
                self._applied(select, is_there, placed, x)
        self._named()

    def _ones(self, shape: tuple[int, ...]) -> Atom:
        return self._applied(BroadcastTo(shape), Literal(np.True_))

    def _placed(self, updates: Atom) -> Atom:
        """Updates padded with zeros to the shape of the array."""
        zeros = [0] * len(self.shape)
        lows = self._along(self.ends[0], zeros)
        highs = self._along(self.shape[self.axis] - self.ends[1], zeros)
        interiors = self._along(self.step - 1, zeros)
        fill = Literal(np.zeros((), updates.aval.dtype)[()])
        return self._applied(Pad(lows, highs, interiors), updates, fill)
