"""Dead code: equations whose results nothing needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress

from funcgrad.core.facets import Facet
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Equation, Program, Var, axis_names_of
from funcgrad.passes.common import subprograms

Mask = tuple[bool, ...]

pruned: Facet[Callable[[Mask], tuple[Primitive, Mask, Mask]] | None] = Facet("pruned", None)
"""``pruned(used)``: an operation for some of the results.

Also flags of the arguments that it takes, and of the results that it has: all that are used, and
those that it needs itself. For operations that can leave out what the others need.
"""


def dce(program: Program) -> Program:
    """A program without pure equations and constants that no output depends on."""
    needed = {atom for atom in program.outputs if type(atom) is Var}
    equations = []
    for equation in reversed(program.equations):
        if equation.primitive.is_effectful or not needed.isdisjoint(equation.outputs):
            equation = _pruned(equation, [var in needed for var in equation.outputs])
            equations.append(equation)
            needed.update(atom for atom in equation.inputs if type(atom) is Var)
    constants = [(var, array) for var, array in program.constants if var in needed]
    return Program(program.inputs, equations[::-1], program.outputs, program.name, constants)


def _pruned(equation: Equation, used: Sequence[bool]) -> Equation:
    """The equation for some of its results."""
    rule = pruned(equation.primitive)
    if rule is None or all(used) or has_effects(equation.primitive):
        return equation
    primitive, taken, given = rule(tuple(used))
    inputs, outputs = compress(equation.inputs, taken), compress(equation.outputs, given)
    return Equation(primitive, list(inputs), tuple(outputs), equation.source)


def without_dead(program: Program, used: Sequence[bool]) -> tuple[Program, Mask]:
    """A program for some of the results, without what these do not need, also within calls.

    Messages go as well: all ranks that are asked for the same results leave out the same ones.

    Returns: The program, and flags of the inputs that it has.
    """
    outputs = list(compress(program.outputs, used))
    needed = {atom for atom in outputs if type(atom) is Var}
    equations = []
    for equation in reversed(program.equations):
        flags = [var in needed for var in equation.outputs]
        if not any(flags) and not has_effects(equation.primitive):
            continue
        equation = _pruned(equation, flags)
        equations.append(equation)
        needed.update(atom for atom in equation.inputs if type(atom) is Var)
    constants = [(var, array) for var, array in program.constants if var in needed]
    kept = tuple(var in needed for var in program.inputs)
    inputs = list(compress(program.inputs, kept))
    return Program(inputs, equations[::-1], outputs, program.name, constants), kept


def has_effects(primitive: Primitive) -> bool:
    """Whether an operation does more than give results and tell other ranks."""
    if not primitive.is_effectful:
        return False
    programs = subprograms(primitive)
    if programs:
        return any(has_effects(e.primitive) for p in programs for e in p.equations)
    return not axis_names_of(primitive)
