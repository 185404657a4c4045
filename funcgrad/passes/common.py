"""Operations of branches that are computed before them.

One of the branches of a `Switch` runs, so what all of them compute may be computed before; and what
has been computed around them, of the same operands, need not be computed again. A branch that is
given an element needs no array of which it reads it, and its transpose makes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Literal, Program, Var


@dataclass(frozen=True)
class Shared:
    """Branches, and what is computed before them.

    Attributes:
        known: Names of the enclosing program that are further inputs of all programs here.
        before: A program from all inputs to values.
        rest: The branches, with these as further inputs.
    """

    known: list[Var]
    before: Program
    rest: list[Program]


def shared(programs: Sequence[Program], around: Program) -> Shared | None:
    """Split branches into what is computed before and what remains; ``None`` if that is all.

    Args:
        programs: With equal types of inputs.
        around: Operations that have been computed, of the same inputs.
    """
    numbers: dict[Any, int] = {}
    outer = _distinct(around, numbers)
    tables = [_distinct(program, numbers) for program in programs]
    every = dict.fromkeys(number for table in tables for number in table)
    known = [number for number in every if number in outer]
    computed = [n for n in tables[0] if n not in outer and all(n in t for t in tables)]
    if not known and not computed:
        return None
    given = [_outputs(tables[0].get(n), outer[n]) for n in known]
    equations = [tables[0][n] for n in computed]
    before = Program(
        [*programs[0].inputs, *(var for group in given for var in group)],
        equations,
        [var for equation in equations for var in equation.outputs],
        programs[0].name,
    )
    rest = [_rest(p, t, outer, known, computed) for p, t in zip(programs, tables, strict=True)]
    return Shared([var for n in known for var in outer[n].outputs], before, rest)


def _rest(
    program: Program,
    table: dict[int, Equation],
    outer: dict[int, Equation],
    known: Sequence[int],
    computed: Sequence[int],
) -> Program:
    """A branch to which the results of operations are given."""
    given = [var for n in known for var in _outputs(table.get(n), outer[n])]
    given += [var for n in computed for var in table[n].outputs]
    made = set(given)
    kept = [e for e in program.equations if made.isdisjoint(e.outputs)]
    inputs = [*program.inputs, *given]
    return Program(inputs, kept, program.outputs, program.name, program.constants)


def _outputs(equation: Equation | None, equal: Equation) -> Sequence[Var]:
    """The names of results, or new ones where there are none."""
    return [Var(v.aval) for v in equal.outputs] if equation is None else equation.outputs


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


def subprograms(primitive: Primitive) -> list[Program]:
    """The programs among the parameters of a primitive."""
    found: list[Program] = []
    for value in primitive.params().values():
        parts = value if isinstance(value, tuple) else (value,)
        found.extend(part for part in parts if isinstance(part, Program))
    return found
