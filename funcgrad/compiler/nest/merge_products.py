"""Sums of products with a factor in common are the product of that factor and a sum.

The derivative of a product of an array with itself, such as ``x.T @ x``, is two products of the
same array with a cotangent, once from each side. Added up, they are one product: with the sum of
the cotangent and its transpose, which is of the size of the cotangent and no work beside a product.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.intrinsics import expression
from funcgrad.lowering import Barrier, Contraction, Pointwise, Reindex
from funcgrad.passes.inline import form_of
from funcgrad.records import dataclass

LEAST_GAIN = 16
"""Multiplications that are saved for every addition that is made instead, at least."""

Factor = tuple[Atom, str]
"""An array, with a letter for each of its axes."""


@dataclass(frozen=True)
class Merged:
    """A product of a factor and a sum, instead of the sum of two products.

    Attributes:
        common: The factor of both.
        terms: The factors that are added up, with the same letters.
        out: The letters of the result.
        without: The equations that it takes the place of, besides that of the sum.
    """

    common: Factor
    terms: tuple[Factor, Factor]
    out: str
    without: tuple[Equation, ...]


@dataclass(frozen=True)
class _Product:
    factors: tuple[Factor, Factor]
    out: str
    equations: tuple[Equation, ...]


def merged_products(program: Program) -> dict[Equation, Merged]:
    """By the equation of each such sum, the product that takes its place."""
    finder = _Finder(program)
    found: dict[Equation, Merged] = {}
    if finder.n_products > 1:
        for equation in program.equations:
            merged = finder.merged(equation)
            if merged is not None:
                found[equation] = merged
    return found


class _Finder:
    def __init__(self, program: Program) -> None:
        self.made: dict[Var, Equation] = {}
        self.forms: dict[Equation, object] = {}
        self.epochs: dict[Equation, int] = {}
        self.uses: Counter[Atom] = Counter(x for x in program.outputs if type(x) is Var)
        epoch = 0
        for equation in program.equations:
            form = self.forms[equation] = form_of(equation)
            epoch += isinstance(form, Barrier)
            self.epochs[equation] = epoch
            self.uses.update(x for x in equation.inputs if type(x) is Var)
            self.made.update((var, equation) for var in equation.outputs)
        self.n_products = sum(isinstance(form, Contraction) for form in self.forms.values())

    def merged(self, equation: Equation) -> Merged | None:
        """What takes the place of an equation, if that is the sum of two such products."""
        form = self.forms[equation]
        if not isinstance(form, Pointwise) or not expression(form.expr).is_sum:
            return None
        out = equation.outputs[0].aval
        if any((x.aval.shape, x.aval.dtype) != (out.shape, out.dtype) for x in equation.inputs):
            return None
        products = [self._product(x, self.epochs[equation]) for x in equation.inputs]
        one, other = products
        if one is None or other is None or one.equations[-1] is other.equations[-1]:
            return None
        for i in (0, 1):
            for j in (0, 1):
                merged = _with_common_factor(one, other, i, j)
                if merged is not None:
                    return merged
        return None

    def _product(self, atom: Atom, epoch: int) -> _Product | None:
        """The product that makes an array which is read once."""
        equations: list[Equation] = []
        axes: Sequence[int] = range(len(atom.aval.shape))
        while True:
            equation = self.made.get(atom) if type(atom) is Var else None
            if equation is None or self.uses[atom] != 1 or self.epochs[equation] != epoch:
                return None
            equations.append(equation)
            form = self.forms[equation]
            if isinstance(form, Contraction):
                break
            order = _permutation(form, equation)
            if order is None:
                return None
            axes = [order[axis] for axis in axes]
            (atom,) = equation.inputs
        if form.slides:
            return None
        lhs, rhs = equation.inputs
        factors = self._origin(lhs, form.lhs), self._origin(rhs, form.rhs)
        return _Product(factors, "".join(form.out[axis] for axis in axes), tuple(equations))

    def _origin(self, atom: Atom, letters: str) -> Factor:
        """An array without the transpositions that it went through."""
        while type(atom) is Var and atom in self.made:
            equation = self.made[atom]
            order = _permutation(self.forms[equation], equation)
            if order is None:
                break
            (atom,) = equation.inputs
            old, found = letters, [""] * len(letters)
            for letter, axis in zip(old, order, strict=True):
                found[axis] = letter
            letters = "".join(found)
        return atom, letters


def _permutation(form: object, equation: Equation) -> Sequence[int] | None:
    """For every axis of a transposed array its axis before, or ``None`` if it is none."""
    if not isinstance(form, Reindex):
        return None
    axes = [axis for axis in form.axes if axis is not None]
    shape = equation.inputs[0].aval.shape
    if sorted(axes) != list(range(len(shape))) or len(axes) != len(form.axes):
        return None
    if any(form.starts) or any(step != 1 for step in form.steps):
        return None
    out = equation.outputs[0].aval.shape
    return axes if all(out[i] == shape[a] for i, a in enumerate(axes)) else None


def _with_common_factor(one: _Product, other: _Product, i: int, j: int) -> Merged | None:
    """The sum of two products by a factor ``i`` of one that is factor ``j`` of the other."""
    (common, letters), (again, others) = one.factors[i], other.factors[j]
    if common is not again:
        return None
    renamed: dict[str, str] = {}
    for new, old in (*zip(one.out, other.out, strict=True), *zip(letters, others, strict=True)):
        if renamed.setdefault(old, new) != new:
            return None
    first, second = one.factors[1 - i], other.factors[1 - j]
    if len(set(renamed.values())) != len(renamed) or not set(second[1]) <= set(renamed):
        return None
    second = second[0], "".join(renamed[letter] for letter in second[1])
    if sorted(first[1]) != sorted(second[1]) or first[0].aval.dtype != second[0].aval.dtype:
        return None
    sizes = dict(zip(letters, common.aval.shape, strict=True))
    sizes |= dict(zip(first[1], first[0].aval.shape, strict=True))
    if any(sizes[x] != n for x, n in zip(second[1], second[0].aval.shape, strict=True)):
        return None
    if math.prod(sizes.values()) < LEAST_GAIN * math.prod(first[0].aval.shape):
        return None
    terms = first, second
    return Merged((common, letters), terms, one.out, one.equations + other.equations)
