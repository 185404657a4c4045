"""Single elements that programs read and assign, each recorded as one equation.

Loops over elements are long, and gone when they are found (`funcgrad.higher_order.reroll`): until
then a program has one equation where others have two. Whoever evaluates it gets these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.base.forking import cached_property
from funcgrad.core.avals import Shape, ShapedArray, shaped
from funcgrad.core.facets import Facet
from funcgrad.core.primitive import Primitive, Value
from funcgrad.core.program import Equation, Program, Var
from funcgrad.lowering import Form, Replace
from funcgrad.primitives.indexing import DynamicUpdateSlice
from funcgrad.primitives.shape import Slice, reshaping

spelling: Facet[Callable[[Equation], Sequence[Equation]] | None] = Facet("spelling", None)
"""``spelling(equation)``: the equations that one of a searched program stands for."""

_UPDATE = DynamicUpdateSlice()


class ElementAt(Primitive):
    """The element of an array at a known place."""

    place: Shape

    n_operations = 2

    @cached_property
    def read_window(self) -> tuple[Shape, Shape, Shape]:
        ones = (1,) * len(self.place)
        return self.place, ones, ones

    @property
    def _slice(self) -> Slice:
        return Slice(self.place, tuple(i + 1 for i in self.place), (1,) * len(self.place))

    def bind(self, *args: Value) -> Any:
        return reshaping(()).bind(self._slice.bind(*args))

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x.update(shape=())

    def spelling(self, equation: Equation) -> Sequence[Equation]:
        (x,) = equation.inputs
        part = Var(shaped((1,) * len(self.place), x.aval.dtype))
        return (
            Equation(self._slice, (x,), (part,), equation.source),
            Equation(reshaping(()), (part,), equation.outputs, equation.source),
        )


class ElementSet(Primitive):
    """``bind(x, value, *place)``: a copy of ``x`` with one element replaced."""

    n_operations = 2

    def bind(self, *args: Value) -> Any:
        x, value, *place = args
        return _UPDATE.bind(x, reshaping((1,) * len(place)).bind(value), *place)

    def abstract_eval(self, x: ShapedArray, *others: ShapedArray) -> ShapedArray:
        return x

    def lower(self, *avals: ShapedArray) -> Form:
        return Replace()

    def spelling(self, equation: Equation) -> Sequence[Equation]:
        x, value, *place = equation.inputs
        part = Var(shaped((1,) * len(place), x.aval.dtype))
        return (
            Equation(reshaping(part.aval.shape), (value,), (part,), equation.source),
            Equation(_UPDATE, (x, part, *place), equation.outputs, equation.source),
        )


def spelled_out(program: Program) -> Program:
    """A searched program as others are."""
    equations: list[Equation] = []
    for equation in program.equations:
        spell = spelling(equation.primitive)
        if spell is None:
            equations.append(equation)
        else:
            equations += spell(equation)
    if len(equations) == len(program.equations):
        return program
    return Program(program.inputs, equations, program.outputs, program.name, program.constants)
