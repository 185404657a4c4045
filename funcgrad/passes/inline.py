"""Inlining: calls of sub-programs become their equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.lowering import Call, form_of
from funcgrad.observers.source import SourceLocation
from funcgrad.passes.dce import dce


def inline(program: Program) -> Program:
    """A program without calls; its variables are new, so that other passes may reuse names."""
    copier = _Inliner()
    inputs = [Var(v.aval) for v in program.inputs]
    outputs = copier.copy(program, inputs)
    return Program(inputs, copier.equations, outputs, program.name, copier.constants)


class _Inliner:
    def __init__(self) -> None:
        self.equations: list[Equation] = []
        self.constants: list[tuple[Var, Any]] = []
        self.constant_of: dict[int, Var] = {}

    def _constant(self, var: Var, array: Any) -> Var:
        """One name for an array, however many programs close over it."""
        if id(array) not in self.constant_of:
            self.constant_of[id(array)] = constant = Var(var.aval)
            self.constants.append((constant, array))
        return self.constant_of[id(array)]

    def copy(
        self, program: Program, args: Sequence[Atom], source: SourceLocation | None = None
    ) -> list[Atom]:
        """Append the equations of ``program`` applied to ``args``; returns its results.

        Args:
            program: The program.
            args: Its arguments.
            source: The user's line of equations that have none.
        """
        program = dce(program)  # which needs no rules of what is dead
        names: dict[Var, Atom] = dict(zip(program.inputs, args, strict=True))
        for var, array in program.constants:
            names[var] = self._constant(var, array)

        def rename(atom: Atom) -> Atom:
            return names[atom] if type(atom) is Var else atom

        for equation in program.equations:
            inputs = [rename(atom) for atom in equation.inputs]
            form = form_of(equation)
            if isinstance(form, Call):
                results = self.copy(form.program, inputs, equation.source or source)
                names.update(zip(equation.outputs, results, strict=True))
                continue
            outputs = [Var(v.aval) for v in equation.outputs]
            names.update(zip(equation.outputs, outputs, strict=True))
            line = equation.source or source
            self.equations.append(Equation(equation.primitive, inputs, outputs, line))
        return [rename(atom) for atom in program.outputs]
