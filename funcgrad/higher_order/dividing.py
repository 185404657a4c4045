"""Loops and branches over arrays of which every process has a part.

An interpreter of parts (`funcgrad.distributed.flat_shards`) makes programs of parts from those that
loops and branches hold. Which values are parts in them follows from the values that are given: the
carry of a loop is as its body leaves it, and a result of branches is a part if it is in one. To
keep the part of a whole array takes no message. Rows that a loop goes over are divided each by
itself, and so are those that it makes, looks up, or writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Program, Var, axis_names_of
from funcgrad.lowering import Lookup, Replace, Scatter, Window, form_of

Mask = tuple[int, ...]
"""For each of some values how many axes the part has that a process has of it, 0 for all of it.

A part has a last axis of elements, and before it those axes of the array that are not divided.
"""


class Parts(Protocol):
    """The interpreter."""

    def mask(self, values: Sequence[Any]) -> Mask:
        """Axes of the parts of values."""

    def program(
        self, program: Program, given: Mask, left: Mask | None = None, agrees: bool = False
    ) -> tuple[Program, Mask]:
        """A program of parts, and which of its results are parts.

        Args:
            program: Of whole arrays.
            given: Of its inputs.
            left: What its results are to be; by default what they are.
            agrees: Whether its result, a condition, has to be known to be equal in all processes.
        """

    def rows(self, x: Any) -> Any:
        """An operand in whose parts the first axis is not divided, or all of it."""

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
            given: What they are there.
            left: What the results are.
        """


def divided_switch(switch: Any, args: Sequence[Any], parts: Parts) -> list[Any]:
    """Results of branches."""
    index, *operands = args
    given = parts.mask(operands)
    left = _most([parts.program(b, given)[1] for b in switch.branches])
    branches = tuple(parts.program(b, given, left)[0] for b in switch.branches)
    divided = replace(switch, branches=branches)
    # Processes that meet within a branch have to take the same one.
    index = parts.agreed(index) if axis_names_of(divided) else index
    return parts.apply(switch, divided, [index, *operands], (False, *given), left)


def divided_scan(scan: Any, args: Sequence[Any], parts: Parts) -> list[Any]:
    """Apply a scan to sharded rows."""
    consts, carry, xs = scan.split(args)
    xs = [parts.rows(x) for x in xs]
    fixed, outer = _by_rows(scan.body, parts.mask(consts)), parts.mask(xs)
    rows = tuple(max(axes - 1, 0) for axes in outer)
    moving = _carried(parts, scan.body, fixed, parts.mask(carry), rows)
    _, left = parts.program(scan.body, (*fixed, *moving, *rows))
    left = (*moving, *left[len(moving) :])
    body, _ = parts.program(scan.body, (*fixed, *moving, *rows), left)
    stacked = tuple(axes and axes + 1 for axes in left[len(moving) :])
    return parts.apply(
        scan,
        replace(scan, body=body),
        [*consts, *carry, *xs],
        (*fixed, *moving, *outer),
        (*moving, *stacked),
    )


def divided_while(loop: Any, args: Sequence[Any], parts: Parts) -> list[Any]:
    """Results of a loop with a condition."""
    of_condition, of_body, carry = map(parts.mask, loop.split(args))
    of_body = _by_rows(loop.body, of_body)
    moving = _carried(parts, loop.body, of_body, carry, ())
    body, _ = parts.program(loop.body, (*of_body, *moving), moving)
    seen = (*of_condition, *moving)
    divided = replace(loop, body=body, condition=parts.program(loop.condition, seen, (False,))[0])
    if axis_names_of(divided):
        condition, _ = parts.program(loop.condition, seen, (False,), agrees=True)
        divided = replace(divided, condition=condition)
    return parts.apply(loop, divided, args, (*of_condition, *of_body, *moving), moving)


def _carried(parts: Parts, body: Program, fixed: Mask, carry: Mask, rows: Mask) -> Mask:
    """Axes of the parts of carried values in any step, as the first ones may be made so."""
    n = len(fixed)
    while True:
        carry = _by_rows(body, (*fixed, *carry))[n:]
        _, left = parts.program(body, (*fixed, *carry, *rows))
        wider = _most([carry, left[: len(carry)]])
        if wider == carry:
            return carry
        carry = wider


def _by_rows(body: Program, given: Mask) -> Mask:
    """Axes of the parts of a loop's values, divided by rows if a step reads or writes some."""
    seen = body.memo("arrays of rows", lambda: _of_rows(body))
    pairs = zip(given, body.inputs, strict=False)
    return tuple(2 if axes == 1 and var in seen else axes for axes, var in pairs)


def _of_rows(body: Program) -> frozenset[Var]:
    """Arrays whose rows a program gathers or scatters."""
    found = set()
    for equation in body.equations:
        array = equation.inputs[0] if equation.inputs else None
        if type(array) is Var and len(array.aval.shape) > 1 and array.aval.dtype.kind != "b":
            form, rows = form_of(equation), array.aval.shape[1:]
            if isinstance(form, Lookup | Scatter):
                is_of_rows = set(form.axes) == {0}
            elif isinstance(form, Window):
                is_of_rows = form.sizes[1:] == rows
            else:
                is_of_rows = isinstance(form, Replace)
                is_of_rows = is_of_rows and equation.inputs[1].aval.shape[1:] == rows
            if is_of_rows:
                found.add(array)
    return frozenset(found)


def _most(masks: Sequence[Mask]) -> Mask:
    return tuple(map(max, zip(*masks, strict=True)))
