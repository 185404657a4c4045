"""Dead code: equations whose results nothing needs."""

from __future__ import annotations

from funcgrad.core.program import Program, Var


def dce(program: Program) -> Program:
    """A program without pure equations and constants that no output depends on."""
    needed = {atom for atom in program.outputs if type(atom) is Var}
    equations = []
    for equation in reversed(program.equations):
        if equation.primitive.is_effectful or not needed.isdisjoint(equation.outputs):
            equations.append(equation)
            needed.update(atom for atom in equation.inputs if type(atom) is Var)
    constants = [(var, array) for var, array in program.constants if var in needed]
    return Program(program.inputs, equations[::-1], program.outputs, program.name, constants)
