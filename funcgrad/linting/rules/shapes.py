"""Shapes that broadcast by accident."""

from __future__ import annotations

import re
from collections.abc import Iterator

from funcgrad.core.program import Equation, Var
from funcgrad.linting.rule import Findings, rule
from funcgrad.linting.subject import Subject, form_of
from funcgrad.lowering import Reduction, Reindex, Reshape

AXES = re.compile(r"None\s*\]|newaxis|expand_dims|reshape|keepdims")
"""Words of a line that gives an array another axis."""


@rule("accidental-broadcast", "warning")
def accidental(subject: Subject) -> Findings:
    """A column and a row of equal length that make a square: ``(n, 1)`` with ``(n,)``.

    A column that was made of a row, by ``x[:, None]``, is meant so.
    """
    makers = {v: e for e in subject.record.equations for v in e.outputs}
    for equation in subject.record.equations:
        if not equation.primitive.is_elementwise:
            continue
        columns = [*_operands(equation, is_column=True)]
        rows = [*_operands(equation, is_column=False)]
        for column in columns:
            if _is_made_a_column(column, makers) or _is_written_so(column, equation, subject):
                continue
            for row in rows:
                (n,) = row.aval.shape
                if n > 1 and n == column.aval.shape[0]:
                    yield (
                        equation.source,
                        f"{equation.primitive.name} of {column.aval} and {row.aval} is "
                        f"{equation.outputs[0].aval}: each number with each, not in pairs",
                        "x[:, 0] or np.squeeze(x, 1) for the column if pairs are meant, "
                        "x[:, None] for the row if the square is",
                    )


def _is_written_so(column: Var, equation: Equation, subject: Subject) -> bool:
    """Whether a constant is made a column at the line that uses it, before it gets here."""
    is_constant = column in subject.record.constants
    return is_constant and equation.source is not None and bool(AXES.search(equation.source.text()))


def _operands(equation: Equation, is_column: bool) -> Iterator[Var]:
    for atom in equation.inputs:
        if isinstance(atom, Var):
            shape = atom.aval.shape
            if (len(shape) == 2 and shape[1] == 1) if is_column else len(shape) == 1:
                yield atom


def _is_made_a_column(var: Var, makers: dict[Var, Equation]) -> bool:
    """Whether an operation has given an array of fewer axes this shape, or kept an axis for it."""
    while (maker := makers.get(var)) is not None:
        before = next((a for a in maker.inputs if isinstance(a, Var)), None)
        if before is None:
            return True
        if before.aval.shape != var.aval.shape:
            return isinstance(form_of(maker), Reindex | Reshape | Reduction)
        var = before
    return False
