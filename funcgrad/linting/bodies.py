"""Programs within operations: which results of loops and branches depend on which operands.

A loop is one operation of a record. What it carries from step to step, and nothing returns, is not
needed; a derivative may end at a line of its body. Both are found by going around it until nothing
changes any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad import lowering
from funcgrad.base.records import dataclass
from funcgrad.core.program import Equation, Literal, Program, Var
from funcgrad.errors import MissingRuleError
from funcgrad.lowering import Branch, Call, Loop, While
from funcgrad.passes.flow import calls_users

Differentiates = Callable[[Equation, set[Var]], list[Var]]
"""The results of an operation that have a derivative with respect to active names."""


def form_of(equation: Equation) -> Any:
    """The form of an operation; ``None`` if it cannot be compiled."""
    try:
        return lowering.form_of(equation)
    except MissingRuleError:
        return None


@dataclass(frozen=True)
class Body:
    """A program within an operation.

    Attributes:
        program: The program.
        operands: For each of its inputs the position of the operand.
        decides: Whether its results decide what runs, and are no results of the operation.
    """

    program: Program
    operands: tuple[int, ...]
    decides: bool = False


def bodies(equation: Equation) -> tuple[list[Body], dict[int, int]]:
    """The programs in an operation; and for operands that a loop carries, the results they become.

    There are none in operations of which nothing is known.
    """
    form, params, n = form_of(equation), equation.primitive.params(), len(equation.inputs)
    if isinstance(form, Loop):
        carried = {form.n_consts + i: i for i in range(form.n_carry)}
        return [Body(params["body"], tuple(range(n)))], carried
    if isinstance(form, While):
        first = form.n_cond_consts + form.n_body_consts
        carry = range(first, n)
        condition = Body(params["condition"], (*range(form.n_cond_consts), *carry), True)
        body = Body(params["body"], (*range(form.n_cond_consts, first), *carry))
        return [condition, body], {operand: i for i, operand in enumerate(carry)}
    if isinstance(form, Branch):
        return [Body(program, tuple(range(1, n))) for program in params["branches"]], {}
    if isinstance(form, Call):
        return [Body(form.program, tuple(range(n)))], {}
    return [], {}


def all_equations(equations: Iterable[Equation]) -> Iterator[Equation]:
    """Operations, and those within them."""
    for equation in equations:
        yield equation
        for body in bodies(equation)[0]:
            yield from all_equations(body.program.equations)


class Needed:
    """Names and operations that results depend on.

    Attributes:
        names: The names that results depend on, those within operations among them.
        equations: The operations that compute them, also those within others.
    """

    def __init__(self, equations: Sequence[Equation], outputs: Iterable[Any]) -> None:
        self.names: set[Var] = {atom for atom in outputs if isinstance(atom, Var)}
        self.equations: set[Equation] = set()
        self._mark(equations)

    def _mark(self, equations: Sequence[Equation]) -> None:
        for equation in reversed(equations):
            outs = {j for j, var in enumerate(equation.outputs) if var in self.names}
            if outs or equation.primitive.is_effectful:
                self.equations.add(equation)
                operands = [equation.inputs[i] for i in self._operands(equation, outs)]
                self.names.update(atom for atom in operands if isinstance(atom, Var))

    def _operands(self, equation: Equation, outs: set[int]) -> set[int]:
        within, carried = bodies(equation)
        if not within or not outs:
            return set(range(len(equation.inputs)))
        found = {0} if isinstance(form_of(equation), Branch) else set()
        while True:
            for body in within:
                given = body.program.outputs
                wanted = given if body.decides else [given[j] for j in outs]
                self.names.update(atom for atom in wanted if isinstance(atom, Var))
                self._mark(body.program.equations)
                rows = zip(body.program.inputs, body.operands, strict=True)
                found.update(operand for var, operand in rows if var in self.names)
            more = {carried[i] for i in found if i in carried} - outs
            if not more:
                return found
            outs |= more


def followed(
    equations: Sequence[Equation], active: set[Var], needed: Needed, differentiates: Differentiates
) -> list[Equation]:
    """The operations at which derivatives end, within loops as well.

    Args:
        equations: Operations.
        active: Names with a derivative, to which those of results are added.
        needed: What results depend on.
        differentiates: The active results of an operation.
    """

    def look(equations: Sequence[Equation], active: set[Var]) -> list[Equation]:
        return followed(equations, active, needed, differentiates)

    cuts: list[Equation] = []
    for equation in equations:
        if active.isdisjoint(equation.inputs) or equation not in needed.equations:
            continue
        outs = differentiates(equation, active)
        active.update(outs)
        if not any(var in needed.names for var in outs):
            cuts += _within(equation, active, look) or [equation]
    return cuts


def _within(
    equation: Equation,
    active: set[Var],
    look: Callable[[Sequence[Equation], set[Var]], Iterable[Equation]],
) -> list[Equation]:
    """Search the bodies of an operation, until no more carried values become active."""
    within, carried = bodies(equation)
    becomes = {result: operand for operand, result in carried.items()}
    given = {i for i, atom in enumerate(equation.inputs) if atom in active}
    while True:
        found: list[Equation] = []
        more: set[int] = set()
        for body in within:
            rows = zip(body.program.inputs, body.operands, strict=True)
            inner = {var for var, operand in rows if operand in given}
            found += look(body.program.equations, inner)
            ends = () if body.decides else enumerate(body.program.outputs)
            more |= {becomes[j] for j, atom in ends if atom in inner and j in becomes}
        if more <= given:
            return found
        given |= more


def differentiated(
    equations: Iterable[Equation], active: set[Var], differentiates: Differentiates
) -> set[Equation]:
    """Operations with an operand that has a derivative, within loops and branches as well.

    Args:
        equations: Operations.
        active: Names with a derivative, to which those of results are added.
        differentiates: The active results of an operation.
    """

    def look(equations: Sequence[Equation], active: set[Var]) -> set[Equation]:
        return differentiated(equations, active, differentiates)

    found: set[Equation] = set()
    for equation in equations:
        if not active.isdisjoint(equation.inputs):
            found.add(equation)
            if not calls_users(equation.primitive):  # which has a derivative of its own
                found.update(_within(equation, active, look))
            active.update(differentiates(equation, active))
    return found


def stand_in(atom: Any) -> Any:
    """A value of the type of a name, for what depends on types alone."""
    if isinstance(atom, Literal):
        return atom.value
    return np.ones(atom.aval.shape, atom.aval.dtype)
