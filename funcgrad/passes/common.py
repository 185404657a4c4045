"""Operations that all of several programs begin with.

``common : [inputs -> outputs] -> (inputs -> shared), [(inputs, shared) -> outputs]``

One of the branches of a `Switch` runs, so what all of them compute may be computed before. A branch
that is given an element needs no array of which it reads it, and its transpose makes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.program import Atom, Equation, Literal, Program, Var


def common(programs: Sequence[Program]) -> tuple[Program, list[Program]] | None:
    """Split programs into what all compute, and what remains; ``None`` if there is nothing.

    Args:
        programs: With equal types of inputs.

    Returns:
        A program from the inputs to values; and the programs, with these as further inputs.
    """
    numbers: dict[Any, int] = {}
    tables = [_distinct(program, numbers) for program in programs]
    first, *others = tables
    shared = [number for number in first if all(number in table for table in others)]
    if not shared:
        return None
    equations = [first[number] for number in shared]
    outputs = [var for equation in equations for var in equation.outputs]
    before = Program(programs[0].inputs, equations, outputs, programs[0].name)
    rest = []
    for program, table in zip(programs, tables, strict=True):
        given = [var for number in shared for var in table[number].outputs]
        known = set(given)
        kept = [e for e in program.equations if known.isdisjoint(e.outputs)]
        rest.append(
            Program(
                [*program.inputs, *given], kept, program.outputs, program.name, program.constants
            )
        )
    return before, rest


def _distinct(program: Program, numbers: dict[Any, int]) -> dict[int, Equation]:
    """Pure equations that depend on the inputs alone, by a number that equal ones share.

    Of equal ones of the program the first is taken, also where others read it.
    """
    known: dict[Atom, Any] = {var: ("input", i) for i, var in enumerate(program.inputs)}
    firsts: dict[Any, Var] = {}

    def read(atom: Atom) -> Any:
        if isinstance(atom, Literal):
            value = np.asarray(atom.value)
            return atom.aval, type(atom.value), value.tobytes()
        return known.get(atom)

    found: dict[int, Equation] = {}
    for equation in program.equations:
        operands = tuple(map(read, equation.inputs))
        if equation.primitive.is_effectful or None in operands or not operands:
            continue
        number = numbers.setdefault((equation.primitive, operands), len(numbers))
        for i, var in enumerate(equation.outputs):
            known[var] = (number, i)
            firsts.setdefault((number, i), var)
        inputs = [firsts.get(x, atom) for x, atom in zip(operands, equation.inputs, strict=True)]
        found.setdefault(
            number, Equation(equation.primitive, inputs, equation.outputs, equation.source)
        )
    return found


def without_unused(programs: Sequence[Program]) -> tuple[list[Program], list[int]]:
    """Programs without the inputs that none of them reads, and the places of those that stay."""
    used: set[int] = set()
    for program in programs:
        read = {x for e in program.equations for x in e.inputs} | set(program.outputs)
        used.update(i for i, var in enumerate(program.inputs) if var in read)
    kept = sorted(used)
    return [
        Program([p.inputs[i] for i in kept], p.equations, p.outputs, p.name, p.constants)
        for p in programs
    ], kept
