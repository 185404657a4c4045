"""Inlining: calls of sub-programs become their equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.lowering import Call, Form


def form_of(equation: Equation) -> Form:
    """What an equation computes, as data."""
    form: Form = equation.primitive.lower(*(atom.aval for atom in equation.inputs))
    return form


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

    def copy(self, program: Program, args: Sequence[Atom]) -> list[Atom]:
        """Append the equations of ``program`` applied to ``args``; returns its results."""
        names: dict[Var, Atom] = dict(zip(program.inputs, args, strict=True))
        for var, array in program.constants:
            names[var] = self._constant(var, array)

        def rename(atom: Atom) -> Atom:
            return names[atom] if type(atom) is Var else atom

        for equation in program.equations:
            inputs = [rename(atom) for atom in equation.inputs]
            if isinstance(form_of(equation), Call):
                callee: Program = getattr(equation.primitive, "program")  # noqa: B009
                results = self.copy(callee, inputs)
                names.update(zip(equation.outputs, results, strict=True))
                continue
            outputs = [Var(v.aval) for v in equation.outputs]
            names.update(zip(equation.outputs, outputs, strict=True))
            self.equations.append(Equation(equation.primitive, inputs, outputs, equation.source))
        return [rename(atom) for atom in program.outputs]
