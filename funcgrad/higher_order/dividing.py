"""Loops and branches over arrays of which every process has a part.

An interpreter of parts (`funcgrad.distributed.flat_shards`) makes programs of parts from those that
loops and branches hold. Which values are parts in them follows from the values that are given: the
carry of a loop is as its body leaves it, and a result of branches is a part if it is in one. To
keep the part of a whole array takes no message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Program, axis_names_of

Mask = tuple[bool, ...]
"""For each of some values whether a process has a part of it."""


class Parts(Protocol):
    """The interpreter."""

    def mask(self, values: Sequence[Any]) -> Mask:
        """Flags of values: those that are parts."""

    def program(
        self, program: Program, given: Mask, left: Mask | None = None, agrees: bool = False
    ) -> tuple[Program, Mask]:
        """A program of parts, and which of its results are parts.

        Args:
            program: Of whole arrays.
            given: Which of its inputs are parts.
            left: Which of its results are to be; by default those that are.
            agrees: Whether its result, a condition, has to be known to be equal in all processes.
        """

    def agreed(self, x: Any) -> Any:
        """A number of the parent trace, known to be equal in all processes."""

    def apply(
        self, whole: Primitive, divided: Primitive, args: Sequence[Any], given: Mask, left: Mask
    ) -> list[Any]:
        """The results of an operation on whole arrays, by one on parts.

        Args:
            whole: The operation on whole arrays.
            divided: That on parts.
            args: The operands.
            given: Which of them are parts there.
            left: Which results are.
        """


def divided_switch(switch: Any, args: Sequence[Any], parts: Parts) -> list[Any]:
    """Results of branches."""
    index, *operands = args
    given = parts.mask(operands)
    left = _any([parts.program(b, given)[1] for b in switch.branches])
    branches = tuple(parts.program(b, given, left)[0] for b in switch.branches)
    divided = replace(switch, branches=branches)
    # Processes that meet within a branch have to take the same one.
    index = parts.agreed(index) if axis_names_of(divided) else index
    return parts.apply(switch, divided, [index, *operands], (False, *given), left)


def divided_scan(scan: Any, args: Sequence[Any], parts: Parts) -> list[Any]:
    """Results of a loop, whose rows are whole."""
    consts, carry, xs = scan.split(args)
    fixed, rows = parts.mask(consts), (False,) * len(xs)
    moving = _carried(parts, scan.body, fixed, parts.mask(carry), rows)
    left = (*moving, *(False,) * (len(scan.body.outputs) - len(moving)))
    given = (*fixed, *moving, *rows)
    body, _ = parts.program(scan.body, given, left)
    return parts.apply(scan, replace(scan, body=body), args, given, left)


def divided_while(loop: Any, args: Sequence[Any], parts: Parts) -> list[Any]:
    """Results of a loop with a condition."""
    of_condition, of_body, carry = map(parts.mask, loop.split(args))
    moving = _carried(parts, loop.body, of_body, carry, ())
    body, _ = parts.program(loop.body, (*of_body, *moving), moving)
    seen = (*of_condition, *moving)
    divided = replace(loop, body=body, condition=parts.program(loop.condition, seen, (False,))[0])
    if axis_names_of(divided):
        condition, _ = parts.program(loop.condition, seen, (False,), agrees=True)
        divided = replace(divided, condition=condition)
    return parts.apply(loop, divided, args, (*of_condition, *of_body, *moving), moving)


def _carried(parts: Parts, body: Program, fixed: Mask, carry: Mask, rows: Mask) -> Mask:
    """Flags of carried values: parts in any step, as the first ones may be made so."""
    while True:
        _, left = parts.program(body, (*fixed, *carry, *rows))
        wider = _any([carry, left[: len(carry)]])
        if wider == carry:
            return carry
        carry = wider


def _any(masks: Sequence[Mask]) -> Mask:
    return tuple(map(any, zip(*masks, strict=True)))
