"""A `while_loop` over lanes: each has a flag of its own, and keeps its values once it is not set.

The loop that `vmap` makes takes steps until no lane wants another one. Batched again, it is the
first loop over the lanes of both axes, whose flags are asked once for each. Where it is compiled,
it carries the flags::

    flags = condition(values)
    while any(flags):
        values = where(flags, step(values), values)
        flags = condition(values)

So no condition is computed twice, and lanes that need no others may end sooner than these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.core.primitive import BatchDim
from funcgrad.core.program import Program, evaluate
from funcgrad.higher_order.scan import cut
from funcgrad.primitives.reductions import ReduceAny
from funcgrad.primitives.shape import broadcast_to, reshape, shape_of
from funcgrad.transforms.programs import stage_closed

Mask = tuple[bool, ...]


@dataclass(frozen=True)
class Lanes:
    """The origin of a loop over lanes.

    Attributes:
        loop: The `While` of one lane.
        mask: Which of its arguments have a lane axis.
        size: The number of lanes.
        flags: From constants of the condition and the carry to the flags.
        step: From flags and the arguments of the body to the carry, in which lanes without a flag
            keep their values.
        programs: Condition and body of the loop over lanes.
        has_flags: Whether these carry the flags, too, behind all else.
    """

    loop: Any
    mask: Mask
    size: int
    flags: Program
    step: Program
    programs: tuple[Program, Program]
    has_flags: bool = False

    def divided(self, outs: Sequence[Any], dims: Sequence[BatchDim], size: int) -> list[Any]:
        """Results of the loop over the lanes of both axes, with both."""
        return [
            x if d is None else reshape(x, (size, self.size, *shape_of(x)[1:]))
            for x, d in zip(outs, dims, strict=True)
        ]

    def of_both(
        self, args: Sequence[Any], is_mapped: Sequence[bool], size: int
    ) -> tuple[list[Any], Mask] | None:
        """Arguments of the loop over these lanes and an axis in front of them, and which have it.

        None where an array would be repeated for that.
        """
        if self.has_flags:
            return None
        a = self.loop.n_cond
        given, outer = ([*xs[:a], *xs[2 * a :]] for xs in (args, is_mapped))
        mask = tuple(x or y for x, y in zip(self.mask, outer, strict=True))
        avals = [*self.loop.condition.in_avals[:a], *self.loop.body.in_avals]
        found = []
        for x, is_inner, is_outer, aval in zip(given, self.mask, outer, avals, strict=True):
            if is_inner != is_outer and aval.shape:
                return None
            if is_inner or is_outer:
                x = x if is_inner else reshape(x, (size, 1))
                x = broadcast_to(x, (size, self.size, *aval.shape))
                x = reshape(x, (size * self.size, *aval.shape))
            found.append(x)
        return found, mask

    def carrying_flags(self, loop: Any) -> Program:
        """The program of the loop over lanes, as it is compiled."""
        avals = [a.strong() for a in (*loop.condition.in_avals[: loop.n_cond], *loop.body.in_avals)]
        consts, carry = cut(avals[loop.n_cond :], loop.n_body)
        (flag,) = self.flags.out_avals

        def step(*args: Any) -> list[Any]:
            consts, carry, (is_active,) = cut(args, loop.n_body, n_carry)
            new = evaluate(self.step, [is_active, *consts, *carry])
            return [*new, *evaluate(self.flags, [*consts[: loop.n_cond], *new])]

        def condition(*args: Any) -> list[Any]:
            return [ReduceAny((0,)).bind(args[-1])]

        n_carry = len(carry)
        any_lane = stage_closed(condition, [*carry, flag], loop.condition.name)
        body = stage_closed(step, [*consts, *carry, flag], loop.body.name)
        lanes = replace(self, programs=(any_lane, body), has_flags=True)
        carrying = replace(loop, condition=any_lane, body=body, n_cond=0, lanes=lanes)

        def run(*args: Any) -> list[Any]:
            first, rest = cut(args, loop.n_cond)
            carry = rest[loop.n_body :]
            return carrying.bind(*rest, *evaluate(self.flags, [*first, *carry]))[: len(carry)]

        return stage_closed(run, avals, loop.body.name)
