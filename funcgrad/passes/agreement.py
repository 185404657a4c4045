"""Processes that run one program must meet: which values are equal in all of them.

A collective inside of a branch or loop is met by all processes only if all take the branch, or go
on with the loop. The predicate must therefore be equal along the axes of the collectives. Nothing
is known of what a program is given within such an axis; outside of all, where only `shard_map` has
collectives, arrays are whole and the same in all processes. Literals are equal, and what follows
from equal values by equal operations; sums and gathered arrays are equal along their own axis,
whatever they are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcgrad.base.ranks import Ranks, ranks_in
from funcgrad.core.axes import DividedAxis, axes_in_scope
from funcgrad.core.facets import Facet
from funcgrad.core.program import Equation, Program, axis_names, axis_names_of
from funcgrad.errors import DistributedError
from funcgrad.passes.flow import Flow, calls_users

agrees: Facet[bool | None] = Facet("agrees", None)
"""Agreement of the results among the processes along the axes of an operation: they are equal
(True), that they differ (False), or that they are equal where all arguments are (``None``)."""

Equal = frozenset[Ranks]
"""The axes along which a value is known to be equal."""


def check_agreement(program: Program) -> None:
    """Raise unless all predicates around collectives are equal in all processes that meet there.

    Raises: DistributedError: With the lines of the loop or branch, and of the collective.
    """
    axes = ranks_in(program.axis_names)
    if axes:
        given = frozenset() if _is_within_processes() else axes
        _Agreement(axes).run(program, [given] * len(program.inputs))


def _is_within_processes() -> bool:
    names = [name for name, _ in axes_in_scope()]
    return any(isinstance(x, Ranks) or (isinstance(x, DividedAxis) and x.is_divided) for x in names)


class _Agreement(Flow[Equal]):
    """Follows what is equal through a program.

    Args: axes: All axes of processes in it.
    """

    def __init__(self, axes: Equal) -> None:
        super().__init__(axes, frozenset())
        self.axes = axes

    def operation(self, equation: Equation, facts: Sequence[Equal]) -> list[Equal]:
        primitive = equation.primitive
        n = len(equation.outputs)
        own = ranks_in(axis_names(primitive))
        holds_programs = primitive.is_composite or bool(axis_names_of(primitive))
        if calls_users(primitive) or (holds_programs and not own):
            return [frozenset()] * n
        joint = self.meet(facts)
        for axis in own:
            joint = joint | {axis} if agrees(primitive) else joint - {axis}
        return [joint] * n

    def meet(self, facts: Sequence[Equal]) -> Equal:
        return self.axes.intersection(*facts)

    def depends(self, equation: Equation, on: Equal, programs: Sequence[Program]) -> None:
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
