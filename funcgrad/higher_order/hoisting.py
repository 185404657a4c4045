"""Loop-invariant equations: what the body of a loop computes from constants alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.compiler.passes.share import share
from funcgrad.core.program import Program, Var, evaluate


def invariant_vars(body: Program, n_consts: int) -> set[Var]:
    """Results of pure equations that depend on the first inputs and on constants only."""
    known = set(body.inputs[:n_consts]) | {var for var, _ in body.constants}
    found: set[Var] = set()
    for equation in body.equations:
        if equation.primitive.is_effectful:
            continue
        variables = [atom for atom in equation.inputs if type(atom) is Var]
        if all(var in known for var in variables):
            known.update(equation.outputs)
            found.update(equation.outputs)
    return found


def hoist(body: Program, n_consts: int) -> tuple[Program | None, Program]:
    """Split a loop's body into what is computed once and what remains.

    Args:
        body: Its first inputs are the same in all iterations.
        n_consts: How many these are.

    Returns:
        A program from the constant inputs to further constants, or ``None`` if there are none; and
        the body with these as inputs behind the constant ones.
    """
    return body.memo(("hoist", n_consts), lambda: _hoist(body, n_consts))


def _hoist(body: Program, n_consts: int) -> tuple[Program | None, Program]:
    body = share(body)  # what is hoisted twice would be two constants
    invariant = invariant_vars(body, n_consts)
    if not invariant:
        return None, body
    before = [e for e in body.equations if not invariant.isdisjoint(e.outputs)]
    inside = [e for e in body.equations if invariant.isdisjoint(e.outputs)]
    read = {atom for e in inside for atom in e.inputs} | set(body.outputs)
    extra = [var for e in before for var in e.outputs if var in read]
    name = body.name
    prelude = Program(body.inputs[:n_consts], before, extra, f"before_{name}", body.constants)
    inputs = [*body.inputs[:n_consts], *extra, *body.inputs[n_consts:]]
    return prelude, Program(inputs, inside, body.outputs, name, body.constants)


def hoisted(body: Program, consts: Sequence[Any]) -> tuple[Program, list[Any]]:
    """The body without invariant equations, and its constants with their results."""
    prelude, rest = hoist(body, len(consts))
    if prelude is None:
        return body, list(consts)
    return rest, [*consts, *evaluate(prelude, consts)]
