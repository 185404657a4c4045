"""A loop whose number of steps is a value, of which a bound is known.

``counted : n -> (c -> x -> (c, y)) -> c -> [x] -> (c, [y])``

It is `Scan` but for its end: shapes follow from the bound, so whatever is derived from a scan, its
residuals above all, has its place, and the loop backwards takes as many steps as the one forwards.
Loops within loops that grow with the counter of the outer one are such loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.primitive import BatchDim, Value
from funcgrad.core.program import Program, Var, evaluate
from funcgrad.dtypes import INT64
from funcgrad.higher_order.lanes import choose, gate
from funcgrad.higher_order.scan import Mask, Scan, cut
from funcgrad.higher_order.while_loop import While
from funcgrad.lowering import Call, Form
from funcgrad.primitives.creation import Iota, Unset
from funcgrad.primitives.elementwise import greater_equal, less
from funcgrad.primitives.families import zeros_like_aval
from funcgrad.primitives.indexing import DynamicSlice, DynamicUpdateSlice
from funcgrad.primitives.reductions import ReduceMax
from funcgrad.primitives.shape import reshape, shape_of
from funcgrad.transforms.programs import stage_closed

_ZERO = np.int64(0)


class CountedScan(Scan):
    """Take as many steps as the first constant says: ``length`` of them at most.

    Stacked results have rows for ``length`` steps. Those of steps that are not taken are zero.

    Attributes:
        n_unset: How many of the last outputs have rows, of steps not taken, that nobody reads.
    """

    n_unset: int = 0

    is_counted: ClassVar[bool] = True

    def steps(self, args: Sequence[Any]) -> int:
        return int(args[0])

    def empty_results(self) -> list[Any]:
        y_avals = self.body.out_avals[self.n_carry :]
        return [np.zeros((self.length, *a.shape), a.dtype) for a in y_avals]

    def recording(self, body: Program, n_consts: int, n_residuals: int) -> Scan:
        n_unset = self.n_unset + n_residuals
        return replace(self, body=body, n_consts=n_consts, n_unset=n_unset)

    def pruned(self, used: Mask) -> tuple[Scan, Mask, Mask]:
        loop, taken, given = super().pruned(used)
        unset = given[len(given) - self.n_unset :]
        return replace(loop, n_unset=sum(unset)), taken, given  # type: ignore[call-arg]

    def lower(self, *avals: ShapedArray) -> Form:
        key = ("counted", self)
        program = self.body.memo(key, lambda: stage_closed(self._run_natively, avals, self.name))
        return Call(program)

    def _run_natively(self, *args: Any) -> list[Any]:
        """The loop as one that ends when its condition does, and writes outputs into stacks."""
        consts, carry, xs = self.split(args)
        k, n_consts, n_carry = len(self.body.outputs) - self.n_carry, len(consts), len(carry)
        count = consts[0]

        def holds(*values: Any) -> list[Any]:
            end, i = values[0], values[1]
            return [greater_equal.bind(i, _ZERO) if self.reverse else less.bind(i, end)]

        def step(*values: Any) -> list[Any]:
            consts, xs, (i,), carry, stacks = cut(values, n_consts, len(xs_avals), 1, n_carry)
            outs = evaluate(self.body, [*consts, *carry, *(_row(x, i) for x in xs)])
            stacks = [_with_row(s, i, y) for s, y in zip(stacks, outs[n_carry:], strict=True)]
            return [i - 1 if self.reverse else i + 1, *outs[:n_carry], *stacks]

        y_avals = [a.strong() for a in self.body.out_avals[n_carry:]]
        stack_avals = [a.update(shape=(self.length, *a.shape)) for a in y_avals]
        stacks = [
            Unset(a.shape, a.dtype, i).bind() if i >= k - self.n_unset else zeros_like_aval(a)
            for i, a in enumerate(stack_avals)
        ]
        xs_avals = [aval_of(x).strong() for x in xs]
        state = [count - 1 if self.reverse else _ZERO, *carry, *stacks]
        state_avals = [aval_of(x).strong() for x in state]
        fixed = [*consts, *xs]
        loop = While(
            stage_closed(holds, [shaped((), INT64), *state_avals], self.body.name),
            stage_closed(
                step, [*(aval_of(x).strong() for x in fixed), *state_avals], self.body.name
            ),
            1,
            len(fixed),
        )
        found: list[Any] = loop.bind(count, *fixed, *state)
        return found[1:]

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        if dims[0] is None:
            return super().batch(args, dims)
        counts, *rest = args
        most = ReduceMax((0,)).bind(counts)
        numbers = Iota((self.length,), 0, INT64).bind()
        loop = self.body.memo(("counted by lane", self), self._by_lane)
        return super(CountedScan, loop).batch(
            [most, counts, *rest, numbers], [None, dims[0], *dims[1:], None]
        )

    def _by_lane(self) -> CountedScan:
        """The loop with one number of steps for each lane, its second constant."""
        body = self.body
        number, counts = Var(shaped((), INT64)), Var(shaped((), INT64))

        def run(*args: Any) -> list[Any]:
            (_, count), consts, carry, xs, (i,) = cut(
                args, 2, self.n_consts - 1, self.n_carry, len(body.inputs) - self._n_before
            )
            is_active = less.bind(i, count)
            given = [gate(is_active, x) for x in (*consts, *carry, *xs)]
            outs = evaluate(body, [count, *given])
            old = [*carry, *map(zeros_like_aval, body.out_avals[self.n_carry :])]
            return [choose(is_active, x, y) for x, y in zip(outs, old, strict=True)]

        avals = [number.aval, counts.aval, *(a.strong() for a in body.in_avals[1:]), number.aval]
        return replace(self, body=stage_closed(run, avals, body.name), n_consts=self.n_consts + 1)

    @property
    def _n_before(self) -> int:
        """Number of constants and carried values."""
        return self.n_consts + self.n_carry


def with_count(scan: Scan, length: int) -> CountedScan:
    """The loop that takes the number of its steps as another constant, the first one.

    Args:
        scan: The loop.
        length: The largest number of steps.
    """
    body = scan.body.memo("with count", lambda: _with_count(scan.body))
    return CountedScan(body, scan.n_consts + 1, scan.n_carry, length, scan.reverse)


def _with_count(body: Program) -> Program:
    inputs = [Var(shaped((), INT64)), *body.inputs]
    return Program(inputs, body.equations, body.outputs, body.name, body.constants)


def _row(stack: Any, i: Any) -> Any:
    """A row of an array, at a place that is a value."""
    shape = shape_of(stack)[1:]
    row = DynamicSlice((1, *shape)).bind(stack, i, *(_ZERO for _ in shape))
    return reshape(row, shape)


def _with_row(stack: Any, i: Any, row: Any) -> Any:
    """The array with another row at such a place."""
    shape = shape_of(row)
    new = reshape(row, (1, *shape))
    return DynamicUpdateSlice().bind(stack, new, i, *(_ZERO for _ in shape))


__all__ = ["CountedScan", "with_count"]
