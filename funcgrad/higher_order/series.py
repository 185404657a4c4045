"""Taylor series through operations that hold programs: their programs pass on the coefficients.

A value that changes stands in the new programs as its coefficients, one behind the other. The carry
of a loop is a series wherever it is floating.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from funcgrad.core.avals import ShapedArray
from funcgrad.core.program import Program, Var
from funcgrad.higher_order.taylor import all_terms, by_result, n_terms, taylor_program

Series = Sequence[Any]
"""Coefficients from order 0, ``None`` for zeros; one for what has no series."""


def _flat(args: Sequence[Series], active: Sequence[bool], order: int) -> list[Any]:
    rows = zip(args, active, strict=True)
    return [term for terms, on in rows for term in all_terms(terms, order, on)]


def _is_active(args: Sequence[Series]) -> tuple[bool, ...]:
    return tuple(len(terms) > 1 for terms in args)


def _is_floating(avals: Sequence[ShapedArray]) -> tuple[bool, ...]:
    return tuple(aval.dtype.kind in "fc" for aval in avals)


def taylor_of_call(self: Any, args: Sequence[Series], order: int) -> list[list[Any]]:
    """Series of the results of an operation that runs one program, compiled or by itself."""
    active = _is_active(args)
    made = replace(self, program=taylor_program(self.program, active, order))
    return by_result(made.bind(*_flat(args, active, order)), self.program.out_avals, order)


def taylor_of_switch(self: Any, args: Sequence[Series], order: int) -> list[list[Any]]:
    """Series of the results of the branch that is taken."""
    (index, *_), *operands = args
    active = _is_active(operands)
    made = replace(self, branches=tuple(taylor_program(b, active, order) for b in self.branches))
    outs = made.bind(index, *_flat(operands, active, order))
    return by_result(outs, self.branches[0].out_avals, order)


def taylor_of_scan(self: Any, args: Sequence[Series], order: int) -> list[list[Any]]:
    """Series of the final carry and of the stacked results."""
    consts, _, xs = self.split(args)
    carry_active = _is_floating(self.split(self.body.in_avals)[1])
    active = (*_is_active(consts), *carry_active, *_is_active(xs))
    n_consts = sum(order + 1 if on else 1 for on in active[: self.n_consts])
    n_carry = sum(order + 1 if on else 1 for on in carry_active)
    body = taylor_program(self.body, active, order)
    made = replace(self, body=body, n_consts=n_consts, n_carry=n_carry)
    return by_result(made.bind(*_flat(args, active, order)), self.body.out_avals, order)


def taylor_of_while(self: Any, args: Sequence[Series], order: int) -> list[list[Any]]:
    """Series of the final carry, for the number of steps that the values take."""
    cond_consts, consts, carry = self.split(args)
    avals = self.split([*self.condition.in_avals[: self.n_cond], *self.body.in_avals])[2]
    carry_active = _is_floating(avals)
    active = (*_is_active(consts), *carry_active)
    body = taylor_program(self.body, active, order)
    n_body = sum(order + 1 if on else 1 for on in active[: self.n_body])
    made = replace(self, condition=_ignoring(self, avals, order), body=body, n_body=n_body)
    values = [terms[0] for terms in cond_consts]
    outs = made.bind(*values, *_flat([*consts, *carry], active, order))
    return by_result(outs, self.body.out_avals, order)


def _ignoring(self: Any, avals: Sequence[ShapedArray], order: int) -> Program:
    """The condition of a loop, which reads the values of the carry alone."""
    c = self.condition
    inputs = list(c.inputs[: self.n_cond])
    for var, aval in zip(c.inputs[self.n_cond :], avals, strict=True):
        inputs += [var, *(Var(aval.strong()) for _ in range(n_terms(aval, order) - 1))]
    return Program(inputs, c.equations, c.outputs, c.name, c.constants)
