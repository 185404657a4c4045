"""Shapes that broadcast by accident."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from funcgrad.core.program import Equation, Var
from funcgrad.linting.bodies import all_equations, bodies, form_of
from funcgrad.linting.rule import Findings, rule
from funcgrad.linting.subject import Subject
from funcgrad.lowering import Reduction, Reindex, Reshape

AXES = re.compile(r"None\s*\]|newaxis|expand_dims|reshape|keepdims")
"""Words of a line that gives an array another axis."""


@rule("accidental-broadcast", "warning")
def accidental(subject: Subject) -> Findings:
    """A column and a row of equal length that make a square: ``(n, 1)`` with ``(n,)``.

    A column that was made of a row, by ``x[:, None]``, is meant so; one that a sum has kept is if
    the square meets another one, as in squares of distances.

    Why:
        A loss over all pairs falls like the right one, while the fit does not improve.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def loss(w, x, y):
        ...     return np.mean((x @ w - y) ** 2)
        >>> x, y = np.eye(4), np.arange(4.0)
        >>> [found.rule for found in fg.lint(loss, np.ones((4, 1)), x, y)]
        ['accidental-broadcast']

    Not found:
        >>> [found.rule for found in fg.lint(loss, np.ones(4), x, y)]
        []
    """
    flow = _Flow(subject)
    for equation in flow.equations:
        if not equation.primitive.is_elementwise:
            continue
        for column, row in flow.pairs(equation):
            if not flow.is_meant(column, equation):
                yield (
                    equation.source,
                    f"{equation.primitive.name} of {column.aval} and {row.aval} is "
                    f"{equation.outputs[0].aval}: each number with each, not in pairs",
                    "x[:, 0] or np.squeeze(x, 1) for the column if pairs are meant, "
                    "x[:, None] for the row if the square is",
                )


class _Flow:
    """Origin and use of arrays, through loops and branches."""

    def __init__(self, subject: Subject) -> None:
        self.constants = subject.record.constants
        self.equations = [*all_equations(subject.record.equations)]
        self.makers = {var: e for e in self.equations for var in e.outputs}
        self.outer: dict[Var, Any] = {}
        for equation in self.equations:
            for body in bodies(equation)[0]:
                for var, operand in zip(body.program.inputs, body.operands, strict=True):
                    self.outer[var] = equation.inputs[operand]

    def pairs(self, equation: Equation) -> Iterator[tuple[Var, Var]]:
        """Columns and rows of equal length among the operands of an operation."""
        arrays = [atom for atom in equation.inputs if isinstance(atom, Var)]
        for column in arrays:
            *lanes, n, last = (0, 0, *column.aval.shape)
            if last == 1 and n > 1:
                for row in arrays:
                    shape = row.aval.shape if row.aval.ndim == 1 else self._in_lanes(row, equation)
                    if shape in ((n,), (*lanes[2:], n)):
                        yield column, row

    def _in_lanes(self, row: Var, equation: Equation) -> tuple[int, ...]:
        """The shape of rows before `vmap` has given them the axis of the columns of its lanes."""
        maker = self.makers.get(row)
        if maker is None or maker.source is not equation.source or _speaks_of_axes(equation):
            return ()
        before = maker.inputs[0].aval.shape
        return before if row.aval.shape == (*before[:-1], 1, *before[-1:]) else ()

    def is_meant(self, column: Var, equation: Equation) -> bool:
        """Whether the square of a column and a row is meant."""
        if column in self.constants and _speaks_of_axes(equation):
            return True
        maker = self._maker_of_column(column)
        if maker is None:
            return False
        first = next((atom for atom in maker.inputs if isinstance(atom, Var)), None)
        if first is None:
            return True
        form, kept = form_of(maker), self.makers.get(first)
        if isinstance(form, Reshape) and kept is not None and _keeps_axis(kept, maker):
            return self._meets_another(equation.outputs[0])
        return isinstance(form, Reindex | Reshape)

    def _maker_of_column(self, var: Var) -> Equation | None:
        """Operation that determined the shape of an array; ``None`` for arguments and products."""
        while True:
            around = self.outer.get(var)
            maker = self.makers.get(var)
            before: Any = around
            if maker is not None:
                before = next((a for a in maker.inputs if isinstance(a, Var)), None)
                if before is None or before.aval.shape != var.aval.shape:
                    return maker
            if not isinstance(before, Var) or before.aval.shape != var.aval.shape:
                return None
            var = before

    def _meets_another(self, square: Var) -> bool:
        """Whether a square matrix is combined with another one that does not depend on it."""
        own, shape = {square}, square.aval.shape
        for equation in self.equations:
            if equation.primitive.is_elementwise and not own.isdisjoint(equation.inputs):
                others = (a for a in equation.inputs if a not in own)
                if any(a.aval.shape == shape for a in others):
                    return True
                own.update(equation.outputs)
        return False


def _keeps_axis(fold: Equation, maker: Equation) -> bool:
    """Whether a column is a sum, or another fold, that has kept its axis."""
    return fold.source is maker.source and isinstance(form_of(fold), Reduction)


def _speaks_of_axes(equation: Equation) -> bool:
    return equation.source is not None and bool(AXES.search(equation.source.text()))
