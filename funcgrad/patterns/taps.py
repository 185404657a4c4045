"""Sums of few elements spelled out: a slice for each of them, and additions.

An element of such a sum depends on some columns of each of its terms, so that no affine map has
them; the terms are slices, of which each keeps its maps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from funcgrad import lowering as forms
from funcgrad.core.avals import Shape
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.primitives.elementwise import add, mul
from funcgrad.primitives.shape import BroadcastTo, Reshape, Slice, Transpose

MOST_TERMS = 8
"""Terms of a sum that is spelled out."""


def spelled_out(equation: Equation, form: Any) -> Program | None:
    """The program of a linear sum or of a sum of products, by its terms.

    Returns: A program of the equation's operands; ``None`` for other equations, and if there are
        too many terms.
    """
    avals = [a.aval for a in equation.inputs]
    if isinstance(form, forms.Reduction) and len(avals) == 1:
        letters = _letters(len(avals[0].shape))
        labels: tuple[str, ...] = (letters,)
        out = "".join(x for i, x in enumerate(letters) if i not in form.axes)
    elif isinstance(form, forms.Contraction) and not form.slides:
        labels, out = (form.lhs, form.rhs), form.out
    else:
        return None
    pairs = zip(labels, avals, strict=True)
    lengths = {x: n for own, a in pairs for x, n in zip(own, a.shape, strict=True)}
    summed = [x for x in lengths if x not in out]
    if not 1 <= math.prod(lengths[x] for x in summed) <= MOST_TERMS:
        return None
    return _Spelled(equation, labels, out, lengths).program(summed)


def _letters(count: int) -> str:
    return "".join(map(chr, range(ord("a"), ord("a") + count)))


class _Spelled:
    """The terms of a sum.

    Args:
        equation: The equation.
        labels: For each operand a letter for each axis.
        out: The letters of the result.
        lengths: The length of the axis of each letter.
    """

    def __init__(
        self, equation: Equation, labels: Sequence[str], out: str, lengths: dict[str, int]
    ) -> None:
        self.equation, self.labels, self.out, self.lengths = equation, labels, out, lengths
        self.shape: Shape = equation.outputs[0].aval.shape
        self.equations: list[Equation] = []
        self.inputs = [Var(a.aval) for a in equation.inputs]

    def program(self, summed: Sequence[str]) -> Program:
        """The program, by the letters over which the sum goes."""
        total: Atom | None = None
        for index in product(*(range(self.lengths[x]) for x in summed)):
            first, *rest = self._factors(dict(zip(summed, index, strict=True)))
            term = self._applied(mul, first, *rest) if rest else first
            total = term if total is None else self._applied(add, total, term)
        assert total is not None
        return Program(self.inputs, self.equations, [total], "terms", ())

    def _factors(self, index: dict[str, int]) -> Iterator[Atom]:
        """Each operand at indices of the letters that are summed, as the result."""
        for x, labels in zip(self.inputs, self.labels, strict=True):
            starts = tuple(index.get(label, 0) for label in labels)
            limits = tuple(
                index[label] + 1 if label in index else self.lengths[label] for label in labels
            )
            atom: Atom = self._applied(Slice(starts, limits, (1,) * len(labels)), x)
            left = [label for label in labels if label not in index]
            atom = self._applied(Reshape(tuple(self.lengths[label] for label in left)), atom)
            order = tuple(left.index(label) for label in self.out if label in left)
            atom = self._applied(Transpose(order), atom)
            sides = tuple(self.lengths[label] if label in left else 1 for label in self.out)
            atom = self._applied(Reshape(sides), atom)
            yield self._applied(BroadcastTo(self.shape), atom)

    def _applied(self, primitive: Primitive, *atoms: Atom) -> Atom:
        """The result of an operation; that of one that changes no shape is its operand."""
        aval = primitive.abstract_eval(*(a.aval for a in atoms))
        is_same = isinstance(primitive, Slice | Reshape | BroadcastTo)
        is_same |= isinstance(primitive, Transpose) and len(aval.shape) < 2
        if is_same and aval.shape == atoms[0].aval.shape:
            return atoms[0]
        out = Var(aval)
        self.equations.append(Equation(primitive, atoms, (out,), self.equation.source))
        return out
