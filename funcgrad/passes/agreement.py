"""Processes that run one program must meet: which values are equal in all of them.

A collective inside of a branch or loop is met by all processes only if all take the branch, or go
on with the loop. The predicate must therefore be equal along the axes of the collectives. Nothing
is known of what a program is given; literals are equal, and what follows from equal values by equal
operations; sums and gathered arrays are equal along their own axis, whatever they are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcgrad.base.ranks import Ranks, ranks_in
from funcgrad.core.facets import Facet
from funcgrad.core.program import Atom, Equation, Program, Var, axis_names, axis_names_of
from funcgrad.errors import DistributedError
from funcgrad.lowering import Branch, Call, Loop, While, form_of

agrees: Facet[bool | None] = Facet("agrees", None)
"""Agreement of the results among the processes along the axes of an operation: they are equal
(True), that they differ (False), or that they are equal where all arguments are (``None``)."""

calls_users = Facet("calls_users", False)
"""Whether an operation holds functions of the user's, which run later than they are traced."""

Equal = frozenset[Ranks]
"""The axes along which a value is known to be equal."""


def check_agreement(program: Program) -> None:
    """Raise unless all predicates around collectives are equal in all processes that meet there.

    Raises:
        DistributedError: With the lines of the loop or branch, and of the collective.
    """
    axes = ranks_in(program.axis_names)
    if axes:
        _Agreement(axes).run(program, [frozenset()] * len(program.inputs))


class _Agreement:
    """Follows what is equal through a program.

    Args:
        axes: All axes of processes in it.
    """

    def __init__(self, axes: Equal) -> None:
        self.axes = axes

    def run(self, program: Program, given: Sequence[Equal]) -> list[Equal]:
        """Agreement of the results, if the inputs are equal along ``given``."""
        known: dict[Var, Equal] = dict(zip(program.inputs, given, strict=True))
        known.update((var, frozenset()) for var, _ in program.constants)

        def read(atom: Atom) -> Equal:
            return known[atom] if type(atom) is Var else self.axes

        for equation in program.equations:
            inputs = [read(atom) for atom in equation.inputs]
            known.update(zip(equation.outputs, self._equation(equation, inputs), strict=True))
        return [read(atom) for atom in program.outputs]

    def _equation(self, equation: Equation, inputs: list[Equal]) -> list[Equal]:
        primitive = equation.primitive
        n = len(equation.outputs)
        if calls_users(primitive):
            return [frozenset()] * n
        own = ranks_in(axis_names(primitive))
        if own:
            joint = self._all(inputs)
            for axis in own:
                joint = joint | {axis} if agrees(primitive) else joint - {axis}
            return [joint] * n
        form = form_of(equation) if primitive.is_composite or axis_names_of(primitive) else None
        if isinstance(form, Call):
            return self.run(form.program, inputs)
        if isinstance(form, Loop):
            return self._loop(equation, form, inputs)
        if isinstance(form, While):
            return self._while(equation, form, inputs)
        if isinstance(form, Branch):
            return self._branch(equation, inputs)
        if form is not None:
            return [frozenset()] * n
        return [self._all(inputs)] * n

    def _all(self, inputs: Sequence[Equal]) -> Equal:
        return self.axes.intersection(*inputs)

    def _loop(self, equation: Equation, form: Loop, inputs: list[Equal]) -> list[Equal]:
        body: Program = equation.primitive.body  # type: ignore[attr-defined]
        a, b = form.n_consts, form.n_consts + form.n_carry
        carry = inputs[a:b]
        while True:
            outs = self.run(body, [*inputs[:a], *carry, *inputs[b:]])
            joint = [x & y for x, y in zip(carry, outs, strict=False)]
            if joint == carry:
                return [*carry, *outs[form.n_carry :]]
            carry = joint

    def _while(self, equation: Equation, form: While, inputs: list[Equal]) -> list[Equal]:
        primitive = equation.primitive
        condition: Program = primitive.condition  # type: ignore[attr-defined]
        body: Program = primitive.body  # type: ignore[attr-defined]
        a, b = form.n_cond_consts, form.n_cond_consts + form.n_body_consts
        carry = inputs[b:]
        while True:
            (on,) = self.run(condition, [*inputs[:a], *carry])
            outs = self.run(body, [*inputs[a:b], *carry])
            joint = [x & y & on for x, y in zip(carry, outs, strict=True)]
            if joint == carry:
                break
            carry = joint
        self._demand(equation, on, (condition, body))
        return carry

    def _branch(self, equation: Equation, inputs: list[Equal]) -> list[Equal]:
        branches: tuple[Program, ...] = equation.primitive.branches  # type: ignore[attr-defined]
        self._demand(equation, inputs[0], branches)
        rows = [self.run(branch, inputs[1:]) for branch in branches]
        return [self._all([inputs[0], *column]) for column in zip(*rows, strict=True)]

    def _demand(self, equation: Equation, on: Equal, programs: Sequence[Program]) -> None:
        for program in programs:
            for axis in ranks_in(axis_names_of(program)) - on:
                raise _refusal(equation, axis, program)


def _refusal(equation: Equation, axis: Ranks, program: Program) -> DistributedError:
    lines = [
        f"{equation.primitive.name}: its predicate may differ between the ranks of axis {axis!r}, "
        "and there are collectives inside, for which some would wait forever."
    ]
    if equation.source is not None:
        lines.append(f"  at            {equation.source}")
    meeting = next(e for e in program.equations if axis in axis_names_of(e.primitive))
    if meeting.source is not None:
        lines.append(f"  collective    {meeting.source}")
    lines.append(
        "Make the predicate equal on all ranks, for example by lax.pmax(predicate, axis_name) or "
        "lax.pmin, or move the collective out."
    )
    return DistributedError("\n".join(lines))
