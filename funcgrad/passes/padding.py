"""Sums of arrays that are padded alike: what is padded is added up first, and padded once.

``add_padded : Program -> Program``. The derivative of a stencil is a sum of one padded array for
each of its reads, many of which read the same part: a row at the edge, or the inner points. Of each
such part one is left, so that kernels ask fewer conditions of an element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from funcgrad.core.program import Atom, Equation, Literal, Program, Var
from funcgrad.intrinsics import expression
from funcgrad.lowering import Assemble, Pointwise, form_of


def add_padded(program: Program) -> Program:
    """A program in which no sum has two terms that zeros are put around in the same way."""
    uses = Counter[Atom](x for e in program.equations for x in e.inputs)
    uses.update(program.outputs)
    paddings = [e for e in program.equations if _is_padding(e)]
    padded: dict[Atom, Equation] = {e.outputs[0]: e for e in paddings if uses[e.outputs[0]] == 1}
    if len(padded) < 2:
        return program
    sums: dict[Atom, Equation] = {e.outputs[0]: e for e in program.equations if _is_sum(e)}
    inner = {x for e in sums.values() for x in e.inputs if x in sums and uses[x] == 1}
    replaced: dict[Equation, list[Equation]] = {}
    for root, equation in sums.items():
        terms = [] if root in inner else list(_terms(equation, sums, inner))
        groups: dict[Hashable, list[Atom]] = {}
        for x in terms:
            groups.setdefault(_way(padded[x]) if x in padded else object(), []).append(x)
        if len(groups) < len(terms):
            gone = [
                *_equations_of(equation, sums, inner),
                *(padded[x] for x in terms if x in padded),
            ]
            replaced.update((e, []) for e in gone)
            replaced[equation] = list(_added(equation, list(groups.values()), padded))
    if not replaced:
        return program
    equations = [new for e in program.equations for new in replaced.get(e, [e])]
    return Program(program.inputs, equations, program.outputs, program.name, program.constants)


def _is_padding(equation: Equation) -> bool:
    """Whether an equation puts zeros around an array."""
    form = form_of(equation)
    if not isinstance(form, Assemble) or not form.fill or len(equation.inputs) != 2:
        return False
    fill = equation.inputs[1]
    return type(fill) is Literal and fill.value == 0


def _is_sum(equation: Equation) -> bool:
    """Whether an equation adds two arrays of one shape."""
    form, shape = form_of(equation), equation.outputs[0].aval.shape
    if not isinstance(form, Pointwise) or not expression(form.expr).is_sum:
        return False
    return all(x.aval.shape == shape for x in equation.inputs)


def _way(padding: Equation) -> Hashable:
    """Equal for arrays that lie in the same place of zeros."""
    return padding.primitive, padding.inputs[0].aval.strong(), padding.outputs[0].aval


def _equations_of(
    equation: Equation, sums: dict[Atom, Equation], inner: set[Atom]
) -> Iterator[Equation]:
    """The equations of a sum of many terms, the last one first."""
    pending = [equation]
    while pending:
        found = pending.pop()
        yield found
        pending += [sums[x] for x in reversed(found.inputs) if x in inner]


def _terms(equation: Equation, sums: dict[Atom, Equation], inner: set[Atom]) -> Iterator[Atom]:
    """The terms of a sum from left to right."""
    pending: list[Atom] = [*reversed(equation.inputs)]
    while pending:
        x = pending.pop()
        if x in inner:
            pending += reversed(sums[x].inputs)
        else:
            yield x


def _added(
    equation: Equation, groups: Sequence[Sequence[Atom]], padded: dict[Atom, Equation]
) -> Iterator[Equation]:
    """Equations of a sum of groups of terms, of which those of several are padded alike."""
    result = equation.outputs[0]
    terms: list[Atom] = []
    for group in groups:
        term = group[0]
        if term in padded:
            padding = padded[term]
            part, *others = (padded[x].inputs[0] for x in group)
            for x in others:
                out = Var(x.aval.strong())
                yield Equation(equation.primitive, [part, x], [out], equation.source)
                part = out
            term = result if len(groups) == 1 else Var(term.aval)
            yield Equation(padding.primitive, [part, padding.inputs[1]], [term], padding.source)
        terms.append(term)
    total, *rest = terms
    for i, x in enumerate(rest, 1):
        out = result if i == len(rest) else Var(result.aval)
        yield Equation(equation.primitive, [total, x], [out], equation.source)
        total = out
