"""Common subexpressions: equal operations on equal arguments are computed once."""

from __future__ import annotations

from collections.abc import Hashable

from funcgrad.core.program import Atom, Equation, Program, Var


def cse(program: Program) -> Program:
    """A program in which no pure equation repeats an earlier one."""
    names: dict[Var, Var] = {}
    seen: dict[Hashable, Equation] = {}
    equations = []

    def rename(atom: Atom) -> Atom:
        return names.get(atom, atom) if type(atom) is Var else atom

    for equation in program.equations:
        inputs = [rename(atom) for atom in equation.inputs]
        key = (equation.primitive, *map(_identity, inputs))
        earlier = None if equation.primitive.is_effectful else seen.get(key)
        if earlier is not None:
            names.update(zip(equation.outputs, earlier.outputs, strict=True))
            continue
        equation = Equation(equation.primitive, inputs, equation.outputs, equation.source)
        seen[key] = equation
        equations.append(equation)
    outputs = [rename(atom) for atom in program.outputs]
    return Program(program.inputs, equations, outputs, program.name, program.constants)


def _identity(atom: Atom) -> Hashable:
    """Equal for atoms that are sure to have equal values: nan and -0.0 are told apart by bits."""
    if type(atom) is Var:
        return id(atom)
    dtype = atom.aval.dtype
    return dtype.char, dtype.type(atom.value).tobytes()  # type: ignore[union-attr]
