"""Arrays that are put together from single elements, as stacks of slices.

Loops of Python that append numbers to a list, of which an array is made, leave a slice and a
reshape for every element. If these come from a few arrays in turn, a few slices are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad import lowering as forms
from funcgrad.core.program import Atom, Equation, Literal, Program, Var
from funcgrad.passes.dce import dce
from funcgrad.patterns.interleave import Order, in_order
from funcgrad.patterns.known import form_of
from funcgrad.transforms.programs import stage_closed

LEAST = 64
"""Operands of a concatenation that is looked at."""


def with_stacks(program: Program) -> Program:
    """The same program with stacks of slices for what is put together element by element."""
    if not any(len(equation.inputs) >= LEAST for equation in program.equations):
        return program
    makers = {v: equation for equation in program.equations for v in equation.outputs}
    equations: list[Equation] = []
    for equation in program.equations:
        equations += _stacked(equation, makers) or [equation]
    found = Program(program.inputs, equations, program.outputs, program.name, program.constants)
    return dce(found)


def _stacked(equation: Equation, makers: Mapping[Var, Equation]) -> Sequence[Equation] | None:
    """A concatenation of elements as equations of a few arrays, if there are few."""
    form, (out, *more) = form_of(equation), equation.outputs
    if more or not isinstance(form, forms.Assemble) or form.fill or out.aval.ndim != 1:
        return None
    if len(equation.inputs) < LEAST or any(isinstance(a, Literal) for a in equation.inputs):
        return None
    origins = [_origin(atom, makers) for atom in equation.inputs]
    sizes = {atom: atom.aval.size for atom, _ in origins}
    starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    lengths = [atom.aval.size for atom in equation.inputs]
    runs = [starts[atom] + k + np.arange(n) for (atom, k), n in zip(origins, lengths, strict=True)]
    source, counts = np.concatenate(runs), list(sizes.values())
    shown = [np.broadcast_to(np.zeros(()), (n,)) for n in counts]
    if len(source) != out.aval.size or Order(shown, counts, source).stretches() is None:
        return None

    def run(*arrays: Any) -> list[Any]:
        flat = [x.reshape(n) for x, n in zip(arrays, counts, strict=True)]
        return [in_order(flat, counts, source, out.aval.dtype)]

    staged = stage_closed(run, [atom.aval for atom in sizes], "elements")
    if staged.constants or not isinstance(staged.outputs[0], Var):
        return None
    names: dict[Any, Atom] = dict(zip(staged.inputs, sizes, strict=True))
    if staged.outputs[0] in names:
        return None
    names[staged.outputs[0]] = out
    return [
        Equation(
            e.primitive,
            [names.get(a, a) for a in e.inputs],
            [out if v is staged.outputs[0] else v for v in e.outputs],
            equation.source,
        )
        for e in staged.equations
    ]


def _origin(atom: Any, makers: Mapping[Var, Equation]) -> tuple[Any, int]:
    """The array that an element is one of, and its number there."""
    number = 0
    while atom.aval.size == 1 and atom in makers:
        equation = makers[atom]
        form = form_of(equation)
        if isinstance(form, forms.Reindex):
            shape = equation.inputs[0].aval.shape
            number = int(np.ravel_multi_index(form.starts, shape)) if shape else 0
        elif not isinstance(form, forms.Reshape):
            break
        if isinstance(equation.inputs[0], Literal):
            break
        atom = equation.inputs[0]
    return atom, number
