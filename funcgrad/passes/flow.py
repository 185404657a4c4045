"""Facts about values that follow from those about inputs, through loops, branches and calls.

``Flow[T] : (Program, [T]) -> [T]``. A fact is an element of a lattice; what several values bring is
their `meet`. Loops are run until the facts about what they carry no longer change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from funcgrad.core.facets import Facet
from funcgrad.core.program import Atom, Equation, Program, Var, axis_names, axis_names_of
from funcgrad.lowering import Branch, Call, Loop, While, form_of

calls_users = Facet("calls_users", False)
"""Whether an operation holds functions of the user's, which run later than they are traced."""

T = TypeVar("T")


class Flow(Generic[T]):
    """Follows a fact through programs.

    Args:
        of_literal: What holds of literals.
        of_constant: What holds of arrays that a program has closed over.
    """

    def __init__(self, of_literal: T, of_constant: T) -> None:
        self.of_literal = of_literal
        self.of_constant = of_constant

    def meet(self, facts: Sequence[T]) -> T:
        """The fact about a value that is one of several."""
        raise NotImplementedError

    def chosen(self, on: T, facts: Sequence[T]) -> T:
        """The fact about a value that is one of several, by a value of which ``on`` holds."""
        return self.meet([on, *facts])

    def operation(self, equation: Equation, facts: Sequence[T]) -> list[T]:
        """Facts about the results of an operation that holds no program that can be followed."""
        raise NotImplementedError

    def carried(self, equation: Equation, before: Sequence[T], after: Sequence[T]) -> None:
        """Visit the facts about the carry of a loop, before it and after a step."""

    def alternatives(self, equation: Equation, rows: Sequence[Sequence[T]]) -> None:
        """Visit the facts about the results of each branch."""

    def depends(self, equation: Equation, on: T, programs: Sequence[Program]) -> None:
        """Visit the fact about the predicate that chooses among programs."""

    def run(self, program: Program, given: Sequence[T]) -> list[T]:
        """Facts about the results.

        Args:
            program: The program.
            given: What holds of its inputs.
        """
        known: dict[Var, T] = dict(zip(program.inputs, given, strict=True))
        known.update((var, self.of_constant) for var, _ in program.constants)

        def read(atom: Atom) -> T:
            return known[atom] if type(atom) is Var else self.of_literal

        for equation in program.equations:
            facts = self.results(equation, [read(atom) for atom in equation.inputs])
            known.update(zip(equation.outputs, facts, strict=True))
        return [read(atom) for atom in program.outputs]

    def results(self, equation: Equation, facts: list[T]) -> list[T]:
        """Facts about the results of an equation."""
        primitive = equation.primitive
        has_programs = primitive.is_composite or axis_names_of(primitive)
        if calls_users(primitive) or axis_names(primitive) or not has_programs:
            return self.operation(equation, facts)
        form = form_of(equation)
        if isinstance(form, Call):
            return self.run(form.program, facts)
        if isinstance(form, Loop):
            return self._loop(equation, form, facts)
        if isinstance(form, While):
            return self._while(equation, form, facts)
        if isinstance(form, Branch):
            return self._branch(equation, facts)
        return self.operation(equation, facts)

    def _loop(self, equation: Equation, form: Loop, facts: list[T]) -> list[T]:
        body: Program = equation.primitive.body  # type: ignore[attr-defined]
        a, b = form.n_consts, form.n_consts + form.n_carry
        carry = facts[a:b]
        while True:
            outs = self.run(body, [*facts[:a], *carry, *facts[b:]])
            self.carried(equation, carry, outs[: form.n_carry])
            joint = [self.meet(pair) for pair in zip(carry, outs, strict=False)]
            if joint == carry:
                return [*carry, *outs[form.n_carry :]]
            carry = joint

    def _while(self, equation: Equation, form: While, facts: list[T]) -> list[T]:
        primitive = equation.primitive
        condition: Program = primitive.condition  # type: ignore[attr-defined]
        body: Program = primitive.body  # type: ignore[attr-defined]
        a, b = form.n_cond_consts, form.n_cond_consts + form.n_body_consts
        carry = facts[b:]
        while True:
            (on,) = self.run(condition, [*facts[:a], *carry])
            outs = self.run(body, [*facts[a:b], *carry])
            self.carried(equation, carry, outs)
            joint = [self.chosen(on, pair) for pair in zip(carry, outs, strict=True)]
            if joint == carry:
                break
            carry = joint
        self.depends(equation, on, (condition, body))
        return carry

    def _branch(self, equation: Equation, facts: list[T]) -> list[T]:
        branches: tuple[Program, ...] = equation.primitive.branches  # type: ignore[attr-defined]
        self.depends(equation, facts[0], branches)
        rows = [self.run(branch, facts[1:]) for branch in branches]
        self.alternatives(equation, rows)
        return [self.chosen(facts[0], column) for column in zip(*rows, strict=True)]
