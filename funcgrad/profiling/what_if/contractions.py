"""Two products as one einsum, in the order that takes fewer operations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from funcgrad.api.compilation import jit
from funcgrad.api.staging import StagedFunction
from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.lower import simplified
from funcgrad.core.avals import ShapedArray
from funcgrad.core.program import Equation, Var
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.lowering import Contraction
from funcgrad.numpy import einsum
from funcgrad.observers.source import SourceLocation
from funcgrad.profiling.what_if.trial import Subject, Trial, compared, trial

FEWER = 0.8
"""Part of the operations, at most, of an order that is tried."""


@trial("one einsum for two")
def contractions(subject: Subject) -> Iterator[Trial]:
    """Products of products, alone: as they are, and as one einsum of all three operands."""
    with using_trace(EVAL):
        staged = StagedFunction(subject.f, subject.args, subject.kwargs, "what if")
    for chain in _chains(simplified(staged.program).equations):
        if chain.least() > FEWER * chain.operations((0, 1)):
            continue
        rng = np.random.default_rng(0)
        arrays = [rng.normal(size=a.shape).astype(a.dtype) for a in chain.operands]
        inner, outer, text = chain.texts()
        two = jit(lambda a, b, c, x=inner, y=outer: einsum(y, einsum(x, a, b), c))
        one = jit(lambda a, b, c, x=text: einsum(x, a, b, c, optimize="optimal"))
        before, after = compared(
            lambda f=two, xs=arrays: f(*xs),  # type: ignore[misc]
            lambda f=one, xs=arrays: f(*xs),  # type: ignore[misc]
        )
        what = f'einsum("{text}") of both products'
        yield Trial("one einsum for two", what, chain.line, before, after, "the products alone")


@dataclass(frozen=True)
class _Chain:
    """A product of a product with a third operand.

    Attributes:
        operands: The types of the three.
        labels: The letters of their axes.
        between: Those of the first product.
        out: Those of the result.
        line: The user's.
    """

    operands: tuple[ShapedArray, ...]
    labels: tuple[str, ...]
    between: str
    out: str
    line: SourceLocation | None

    def texts(self) -> tuple[str, str, str]:
        a, b, c = self.labels
        return (
            f"{a},{b}->{self.between}",
            f"{self.between},{c}->{self.out}",
            f"{a},{b},{c}->{self.out}",
        )

    def operations(self, first: tuple[int, ...]) -> int:
        """Multiplications, where two of the operands are multiplied first."""
        sizes: dict[str, int] = {}
        for labels, aval in zip(self.labels, self.operands, strict=True):
            sizes.update(zip(labels, aval.shape, strict=True))
        (last,) = {0, 1, 2} - {*first}
        inside = {x for k in first for x in self.labels[k]}
        left = inside & {*self.labels[last], *self.out}
        return sum(
            math.prod(sizes[x] for x in letters)
            for letters in (inside, left | {*self.labels[last]})
        )

    def least(self) -> int:
        return min(map(self.operations, combinations(range(3), 2)))


def _chains(equations: Sequence[Equation]) -> Iterator[_Chain]:
    uses = Counter(a for e in equations for a in e.inputs)
    made: dict[Var, tuple[Equation, Contraction]] = {}
    for e in equations:
        form = e.primitive.lower(*(a.aval for a in e.inputs))
        if not isinstance(form, Contraction) or form.slides:
            continue
        made[e.outputs[0]] = e, form
        for k, atom in enumerate(e.inputs):
            if isinstance(atom, Var) and atom in made and uses[atom] == 1:
                yield _chain(*made[atom], e, form, k)


def _chain(
    first: Equation, inner: Contraction, then: Equation, outer: Contraction, k: int
) -> _Chain:
    """Two products with the letters of one einsum; the first is operand ``k`` of the second."""
    sides = (outer.lhs, outer.rhs)
    names = dict(zip(inner.out, sides[k], strict=True))
    fresh = iter(x for x in _LETTERS if x not in outer.lhs + outer.rhs + outer.out)
    for letter in inner.lhs + inner.rhs:
        if letter not in names:
            names[letter] = next(fresh)
    labels = tuple("".join(names[x] for x in side) for side in (inner.lhs, inner.rhs))
    operands = (*(a.aval for a in first.inputs), then.inputs[1 - k].aval)
    return _Chain(operands, (*labels, sides[1 - k]), sides[k], outer.out, then.source)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
