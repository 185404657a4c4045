"""The type checker of programs: every name bound once, before use, at the type it claims."""

from __future__ import annotations

from funcgrad.core.avals import aval_of
from funcgrad.core.program import Equation, Program, Var
from funcgrad.errors import ProgramTypeError


def check_program(program: Program, after: str = "tracing") -> None:
    """Raise `ProgramTypeError` unless ``program`` is well-formed.

    Args:
        program: The program to check.
        after: The step that produced it, for the message.
    """
    bound: set[Var] = set()
    for var in program.inputs:
        _bind(var, bound, f"input of {program.name}", after)
    for var, value in program.constants:
        _bind(var, bound, f"constant of {program.name}", after)
        if aval_of(value) != var.aval:
            raise ProgramTypeError(f"after {after}: a constant of {program.name} is not {var.aval}")
    for index, equation in enumerate(program.equations):
        where = f"equation {index} ({equation.primitive.name}) of {program.name}"
        for atom in equation.inputs:
            if isinstance(atom, Var) and atom not in bound:
                raise ProgramTypeError(f"after {after}: {where} uses an unbound name {atom}")
        _check_types(equation, where, after)
        for var in equation.outputs:
            _bind(var, bound, where, after)
    for atom in program.outputs:
        if isinstance(atom, Var) and atom not in bound:
            raise ProgramTypeError(f"after {after}: {program.name} returns an unbound name {atom}")


def _bind(var: Var, bound: set[Var], where: str, after: str) -> None:
    if var in bound:
        raise ProgramTypeError(f"after {after}: {where} binds {var} a second time")
    bound.add(var)


def _check_types(equation: Equation, where: str, after: str) -> None:
    avals = [atom.aval for atom in equation.inputs]
    result = equation.primitive.abstract_eval(*avals)
    inferred = result if equation.primitive.multiple_results else [result]
    claimed = [var.aval for var in equation.outputs]
    # Weakness steers promotion while tracing and has no meaning afterwards.
    if [(a.shape, a.dtype) for a in inferred] != [(a.shape, a.dtype) for a in claimed]:
        raise ProgramTypeError(f"after {after}: {where} has type {inferred}, but claims {claimed}")
