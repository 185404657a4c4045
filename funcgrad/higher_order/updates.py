"""Loops over lanes that update arrays: lanes that have ended write again what is there.

A loop that ends for some lanes before others keeps the values of those. To choose between the old
and the new value of an array takes as long as the array is; where the new one is the old one with
some elements replaced, it is enough to choose between these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core.avals import shaped
from funcgrad.core.facets import Facet
from funcgrad.core.program import Atom, Equation, Program, Var, makers
from funcgrad.dtypes import BOOL
from funcgrad.higher_order.jit import Jit
from funcgrad.passes.dce import without_dead
from funcgrad.primitives.elementwise import select
from funcgrad.transforms.programs import stage_closed

overwritten: Facet[Callable[..., Any] | None] = Facet("overwritten", None)
"""Elements that an operation replaces, which puts its second argument into its first one; `None` of
others."""


def update_if(program: Program, n_consts: int) -> tuple[Program, list[bool]]:
    """A step of a loop with a flag as its first input, without which it updates no array.

    Args:
        program: From constants and carries to the new carries.
        n_consts: The number of constants.
    Returns: The step, and which carries stay the same without the flag: its last inputs are those
        once more, as they are updated. What else is computed of them it takes from the others.
    """
    return program.memo(
        ("update if", n_consts), lambda: _update_if(program, program.inputs[n_consts:])
    )


def _update_if(program: Program, carries: Sequence[Var]) -> tuple[Program, list[bool]]:
    flag = Var(shaped((), BOOL))
    pairs = zip(program.outputs, carries, strict=True)
    chains = [_updates(program, out, carry) for out, carry in pairs]
    arrays, outputs = [], list(program.outputs)
    after: dict[int, Equation] = {}
    for i, chain in enumerate(chains):
        if chain:
            last = Var(carries[i].aval)
            arrays.append(last)
            for equation in chain:
                after[id(equation)] = _chosen(equation, flag, last)
                (last,) = after[id(equation)].outputs
            outputs[i] = last
    # Whatever else reads what the updates give goes on to do so.
    equations = [e for old in program.equations for e in (old, after.get(id(old))) if e]
    inputs = [flag, *program.inputs, *arrays]
    step = Program(inputs, equations, outputs, program.name, program.constants)
    live, _ = without_dead(step, [True] * len(outputs))
    step = Program(inputs, live.equations, live.outputs, live.name, live.constants)
    return step, list(map(bool, chains))


def _updates(program: Program, out: Any, carry: Var) -> list[Equation]:
    """The equations, in order, that make a result of a carry by replacing elements, if these do."""
    chain: list[Equation] = []
    while out is not carry:
        equation, _ = makers(program).get(out, (None, 0))
        if equation is None or overwritten(equation.primitive) is None:
            return []
        chain.append(equation)
        out = equation.inputs[0]
    return chain[::-1]


def _chosen(equation: Equation, flag: Var, updated: Atom) -> Equation:
    """An update, of another array, that writes what is there without the flag."""
    primitive = equation.primitive
    read = overwritten(primitive)
    assert read is not None

    def update(on: Any, x: Any, new: Any, *places: Any) -> list[Any]:
        kept = select.bind(on, new, read(x, new, *places))
        return [primitive.bind(x, kept, *places)]

    inputs = [flag, updated, *equation.inputs[1:]]
    call = Jit(stage_closed(update, [atom.aval for atom in inputs], primitive.name))
    return Equation(call, inputs, [Var(equation.outputs[0].aval)], equation.source)
