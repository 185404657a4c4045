"""Functions of windows of one array as windows of the function.

``sin(x[1:]) - sin(x[:-1])`` has nearly every sine twice. In derivatives the windows move against
each other, so that all of them may be read for one entry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.higher_order.extents import read_window
from funcgrad.passes.cost import work_of


def with_shared_windows(program: Program) -> Program:
    """The same program, with functions that cost more than arithmetic once for each element.

    They move from slices of an array to the array, if each of its elements is in one of these.
    """
    while (equations := _moved(program.equations)) is not None:
        program = Program(
            program.inputs, equations, program.outputs, program.name, program.constants
        )
    return program


def _moved(equations: Sequence[Equation]) -> list[Equation] | None:
    """The equations after one round, ``None`` if none has moved."""
    slices: dict[Atom, Equation] = {
        e.outputs[0]: e for e in equations if read_window(e.primitive) is not None
    }
    groups: dict[tuple[object, Atom], list[Equation]] = {}
    for equation in equations:
        if _is_costly(equation):
            (x,) = equation.inputs
            array = slices[x].inputs[0] if x in slices else x
            groups.setdefault((equation.primitive, array), []).append(equation)
    of_arrays: dict[Var, Equation] = {}
    for (_, array), group in groups.items():
        if len(group) > 1 and _is_covered(array, group, slices):
            whole = next((e for e in group if e.inputs[0] is array), None)
            whole = whole or _applied(group[0], array)
            of_arrays.update((e.outputs[0], whole) for e in group)
    if not of_arrays:
        return None
    found: dict[Equation, None] = {}
    for equation in equations:
        whole = of_arrays.get(equation.outputs[0]) if equation.outputs else None
        found[whole or equation] = None
        if whole is not None and whole is not equation:
            window = slices[equation.inputs[0]].primitive
            found[Equation(window, whole.outputs, equation.outputs, equation.source)] = None
    return list(found)


def _is_costly(equation: Equation) -> bool:
    """Whether it is a function of one array, element by element, that is more than arithmetic."""
    primitive, inputs = equation.primitive, equation.inputs
    return (
        primitive.is_elementwise
        and not primitive.is_effectful
        and not primitive.multiple_results
        and len(inputs) == 1
        and type(inputs[0]) is Var
        and work_of(equation) > inputs[0].aval.size
    )


def _is_covered(array: Atom, group: Sequence[Equation], slices: dict[Atom, Equation]) -> bool:
    """Whether each element of an array is in one of the windows that equations read."""
    if sum(e.inputs[0].aval.size for e in group) < array.aval.size:
        return False
    is_read = np.zeros(array.aval.shape, np.bool_)
    for equation in group:
        window = slices.get(equation.inputs[0])
        part = is_read if window is None else window.primitive.impl(is_read)
        part[...] = True
    return bool(is_read.all())


def _applied(equation: Equation, array: Atom) -> Equation:
    """The equation of another operand."""
    out = Var(equation.primitive.abstract_eval(array.aval))
    return Equation(equation.primitive, (array,), (out,), equation.source)
