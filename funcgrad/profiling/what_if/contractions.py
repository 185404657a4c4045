"""Two products as one einsum, in the order that takes fewer operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from funcgrad.api.compilation import jit
from funcgrad.api.staging import StagedFunction
from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.lower import simplified
from funcgrad.core.avals import ShapedArray
from funcgrad.core.program import Equation
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.lowering import Contraction
from funcgrad.numpy import einsum
from funcgrad.observers.source import SourceLocation
from funcgrad.profiling.what_if.trial import Subject, Trial, compared, trial

FEWER = 0.8
"""Part of the operations, at most, of an order that is tried."""


@trial("one einsum for two")
def contractions(subject: Subject) -> Iterator[Trial]:
    """Products of a product, alone: as they are, and each as one einsum of all three operands."""
    with using_trace(EVAL):
        staged = StagedFunction(subject.f, subject.args, subject.kwargs, "what if")
    program = simplified(staged.program)
    for chains in _chains(program.equations, program.outputs):
        first, *_ = (chain.operations((0, 1))[0] for chain in chains)
        as_they_are = first + sum(chain.operations((0, 1))[1] for chain in chains)
        if sum(chain.least() for chain in chains) > FEWER * as_they_are:
            continue
        rng = np.random.default_rng(0)
        avals = (*chains[0].operands[:2], *(chain.operands[2] for chain in chains))
        arrays = [rng.normal(size=a.shape).astype(a.dtype) for a in avals]
        before, after = compared(*(partial(f, *arrays) for f in _both_ways(chains)))
        texts = ", ".join(dict.fromkeys(chain.texts()[2] for chain in chains))
        what = f'einsum("{texts}") of both products'
        if len(chains) > 1:
            what = f"einsum of three for each product of one: {texts}"
        yield Trial("one einsum for two", what, chains[0].line, before, after, "the products alone")


def _both_ways(chains: Sequence[_Chain]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """All products of a product as functions of the operands: with it, and without."""

    def two(a: Any, b: Any, *rest: Any) -> list[Any]:
        product = einsum(chains[0].texts()[0], a, b)
        rows = zip(chains, rest, strict=True)
        return [einsum(chain.texts()[1], product, c) for chain, c in rows]

    def one(a: Any, b: Any, *rest: Any) -> list[Any]:
        rows = zip(chains, rest, strict=True)
        return [einsum(chain.texts()[2], a, b, c, optimize="optimal") for chain, c in rows]

    return jit(two), jit(one)


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

    def operations(self, first: tuple[int, ...]) -> tuple[int, int]:
        """Multiplications of both products, where two of the operands are multiplied first."""
        sizes: dict[str, int] = {}
        for labels, aval in zip(self.labels, self.operands, strict=True):
            sizes.update(zip(labels, aval.shape, strict=True))
        (last,) = {0, 1, 2} - {*first}
        inside = {x for k in first for x in self.labels[k]}
        left = inside & {*self.labels[last], *self.out}
        rows = (inside, left | {*self.labels[last]})
        one, other = (math.prod(sizes[x] for x in letters) for letters in rows)
        return one, other

    def least(self) -> int:
        return min(sum(self.operations(first)) for first in combinations(range(3), 2))


def _chains(equations: Sequence[Equation], outputs: Sequence[Any]) -> Iterator[list[_Chain]]:
    """For each product that only products use, all of these."""
    users: dict[Any, list[Equation]] = {}
    for e in equations:
        for atom in dict.fromkeys(e.inputs):
            users.setdefault(atom, []).append(e)
    for e in equations:
        inner, then = _form(e), users.get(e.outputs[0], [])
        forms = [*map(_form, then)]
        if inner is None or not then or None in forms or e.outputs[0] in {*outputs}:
            continue
        if all(x.inputs.count(e.outputs[0]) == 1 for x in then):
            yield [
                _chain(e, inner, x, form, x.inputs.index(e.outputs[0]))
                for x, form in zip(then, forms, strict=True)
                if form is not None
            ]


def _form(equation: Equation) -> Contraction | None:
    """The contraction that an operation is, if it is one."""
    form = equation.primitive.lower(*(a.aval for a in equation.inputs))
    return form if isinstance(form, Contraction) and not form.slides else None


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
