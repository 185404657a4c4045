"""Loop-invariant code motion for the bodies of loops.

Equations that depend on constants alone run once, before the loop. Matrix products that depend on
constants and scanned arrays alone run before the loop for all steps at once: one large product is
much faster than many small ones, and the transpose of a linear loop inherits that, so that the
cotangent of a matrix which is the same in all steps is one product too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray
from funcgrad.core.axes import axis_scope
from funcgrad.core.facets import Facet
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Equation, Program, Var, axis_names, evaluate
from funcgrad.lowering import Contraction, Loop, form_of
from funcgrad.passes.cse import cse
from funcgrad.passes.dce import dce
from funcgrad.passes.flow import Flow
from funcgrad.transforms.programs import batch_program

LEAST_WORK = 4096
"""Multiplications of a product that is worth leaving a loop."""

MEMORY_FACTOR = 4
"""Products of all steps may take so many times the memory of the arrays that are scanned over: the
four gates of an LSTM do."""

whole_product: Facet[Primitive | None] = Facet("whole_product", None)
"""The product of whole arrays that an operation computes a part of, if that is all it does."""


def invariant_vars(body: Program, n_consts: int) -> set[Var]:
    """Results of pure equations that depend on the first inputs and on constants only."""
    known = set(body.inputs[:n_consts]) | {var for var, _ in body.constants}
    found: set[Var] = set()
    for equation in body.equations:
        if equation.primitive.is_effectful:
            continue
        variables = [atom for atom in equation.inputs if type(atom) is Var]
        if all(var in known for var in variables):
            known.update(equation.outputs)
            found.update(equation.outputs)
    return found


class _Origins(Flow[int | None]):
    """Number of the input of a program that a value is; ``None`` if it is none of them."""

    def __init__(self) -> None:
        super().__init__(None, None)

    def meet(self, facts: Sequence[int | None]) -> int | None:
        return facts[0] if all(fact == facts[0] for fact in facts) else None

    def chosen(self, on: int | None, facts: Sequence[int | None]) -> int | None:
        return self.meet(facts)

    def operation(self, equation: Equation, facts: Sequence[int | None]) -> list[int | None]:
        return [None for _ in equation.outputs]

    def _loop(self, equation: Equation, form: Loop, facts: list[int | None]) -> list[int | None]:
        """Elements of arrays are no arrays."""
        k, n = form.n_carry, form.n_consts + form.n_carry
        outs = super()._loop(equation, form, [*facts[:n], *(None for _ in facts[n:])])
        return [*outs[:k], *(None for _ in outs[k:])]


def unchanged(body: Program, carried: slice) -> tuple[bool, ...]:
    """For each value that a loop carries whether its steps leave it as it is.

    Args:
        body: The first of its outputs are the carried values of the next step.
        carried: Which inputs of the body these are.
    """
    return body.memo(("unchanged", carried.start, carried.stop), lambda: _unchanged(body, carried))


def _unchanged(body: Program, carried: slice) -> tuple[bool, ...]:
    numbers = range(len(body.inputs))
    origins = _Origins().run(body, numbers)
    return tuple(i == origin for i, origin in zip(numbers[carried], origins, strict=False))


def hoist(body: Program, n_consts: int) -> tuple[Program | None, Program]:
    """Split a loop's body into what is computed once and what remains.

    Args:
        body: Its first inputs are the same in all iterations.
        n_consts: How many these are.
    Returns: A program from the constant inputs to further constants, or ``None`` if there are none;
        and the body with these as inputs behind the constant ones.
    """
    return body.memo(("hoist", n_consts), lambda: _hoist(body, n_consts))


def _hoist(body: Program, n_consts: int) -> tuple[Program | None, Program]:
    body = cse(body)  # what is hoisted twice would be two constants
    invariant = invariant_vars(body, n_consts)
    if not invariant:
        return None, body
    before = [e for e in body.equations if not invariant.isdisjoint(e.outputs)]
    inside = [e for e in body.equations if invariant.isdisjoint(e.outputs)]
    read = {atom for e in inside for atom in e.inputs} | set(body.outputs)
    extra = [var for e in before for var in e.outputs if var in read]
    name = body.name
    prelude = Program(body.inputs[:n_consts], before, extra, f"before_{name}", body.constants)
    inputs = [*body.inputs[:n_consts], *extra, *body.inputs[n_consts:]]
    return prelude, Program(inputs, inside, body.outputs, name, body.constants)


def hoisted(body: Program, consts: Sequence[Any]) -> tuple[Program, list[Any]]:
    """The body without invariant equations, and its constants with their results."""
    prelude, rest = hoist(body, len(consts))
    if prelude is None:
        return body, list(consts)
    return rest, [*consts, *evaluate(prelude, consts)]


@dataclass(frozen=True)
class Split:
    """A loop's body without the products that run ahead.

    Attributes:
        ahead: From constants and scanned arrays to the products of all steps.
        body: The body, with an element of every product as a further scanned input.
    """

    ahead: Program
    body: Program


def split_ahead(body: Program, n_consts: int, n_carry: int, length: int) -> Split | None:
    """Take the products out of a loop that do not wait for carried values.

    Args:
        body: From constants, carried values and elements of scanned arrays.
        n_consts: Number of constants.
        n_carry: Number of carried values.
        length: Number of steps.
    Returns: The parts, or ``None`` if there is nothing to take out.
    """
    if length < 2:
        return None
    key = ("split ahead", n_consts, n_carry, length)
    return body.memo(key, lambda: _split(body, n_consts, n_consts + n_carry, length))


def _split(body: Program, a: int, b: int, length: int) -> Split | None:
    scanned = body.inputs[b:]
    room = MEMORY_FACTOR * sum(map(_nbytes, (v.aval for v in scanned)))
    known = {*body.inputs[:a], *scanned, *(var for var, _ in body.constants)}
    varying = set(scanned)
    taken: dict[Equation, None] = {}  # in order
    for equation in body.equations:
        variables = [x for x in equation.inputs if type(x) is Var]
        if equation.primitive.is_effectful or not known.issuperset(variables):
            continue
        known.update(equation.outputs)
        if varying.isdisjoint(variables):
            continue
        varying.update(equation.outputs)
        nbytes = sum(_nbytes(v.aval) for v in equation.outputs)
        if _work(equation) >= LEAST_WORK and nbytes <= room:
            taken[equation] = None
            room -= nbytes
    if not taken:
        return None
    outs = [v for e in taken for v in e.outputs]
    inputs = [*body.inputs[:a], *scanned]
    equations = [
        e for e in body.equations if not e.primitive.is_effectful and known.issuperset(e.outputs)
    ]
    name = body.name
    ahead = dce(Program(inputs, equations, outs, f"ahead_{name}", body.constants))
    mask = (*(False for _ in range(a)), *(True for _ in scanned))
    rest = [e for e in body.equations if e not in taken]
    inner = Program([*body.inputs, *outs], rest, body.outputs, name, body.constants)
    with axis_scope(None, length):  # the steps are not the axis that a batch rule maps
        return Split(batch_program(ahead, mask, length).program, inner)


def _nbytes(aval: ShapedArray) -> int:
    return math.prod(aval.shape) * aval.dtype.itemsize


def _work(equation: Equation) -> int:
    """Multiplications of a product, 0 of anything else."""
    if axis_names(equation.primitive):
        return 0  # what computes it is not known before the axis is mapped
    avals = [atom.aval for atom in equation.inputs[:2]]
    whole = whole_product(equation.primitive)
    form = form_of(equation) if whole is None else whole.lower(*avals)
    if not isinstance(form, Contraction):
        return 0
    x, y = (aval.shape for aval in avals)
    lengths = dict(zip(form.lhs + form.rhs, (*x, *y), strict=True))
    return math.prod(lengths.values())
