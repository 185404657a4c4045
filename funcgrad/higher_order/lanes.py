"""Lanes of a batch that go different ways: gates in front of code that only some of them run.

Under `vmap` the code of a branch, or of one more step of a loop, is evaluated for all lanes, and
`choose` keeps the results of those that wanted it. The gate in front of it takes care of the
others: no cotangent or tangent passes it, so nothing that happens behind it reaches a derivative.
Where that is not enough the others get the values of a lane that does run the code: it could run
for ever on values that it was not meant for, or make an infinity that meets, in a contraction with
an array that all lanes share, the zeros of a gate. Checks in it count where it was wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.core.avals import aval_of, shaped
from funcgrad.core.checks import EXPLICIT
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Program, evaluate
from funcgrad.dtypes import BOOL
from funcgrad.higher_order.checked_programs import check_program
from funcgrad.higher_order.checks import FINE, Check, Failure
from funcgrad.primitives.elementwise import select, stop_gradient
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.reductions import ArgMax
from funcgrad.primitives.shape import broadcast_to, reshape, shape_of
from funcgrad.transforms.programs import stage_closed


def choose(flag: Any, x: Any, y: Any) -> Any:
    """``x`` where ``flag`` (leading axes of both) holds, else ``y``."""
    shape = shape_of(flag)
    trailing = len(shape_of(x)) - len(shape)
    return select.bind(reshape(flag, (*shape, *(1,) * trailing)), x, y)


def gate(flag: Any, x: Any) -> Any:
    """``x``, whose derivative is zero where ``flag`` does not hold, whatever happens behind it."""
    if aval_of(x).dtype.kind not in "fc":
        return x
    return choose(flag, x, stop_gradient.bind(x))


def guard(flag: Any, values: Sequence[Any]) -> list[Any]:
    """As `gate`; lanes where ``flag`` does not hold get the values of the first where it does."""
    if not shape_of(flag)[0]:
        return list(values)
    lane = ArgMax(0).bind(flag)
    return [
        choose(flag, x, broadcast_to(stop_gradient.bind(Gather((0,)).bind(x, lane)), shape_of(x)))
        for x in values
    ]


def is_guard_needed(program: Program, values: Sequence[Any], is_mapped: Sequence[bool]) -> bool:
    """Whether gates are not enough in front of a program with these arguments."""
    shared = [aval_of(x) for x, on in zip(values, is_mapped, strict=True) if not on]
    return may_run_forever(program) or any(a.shape and a.dtype.kind in "fc" for a in shared)


def shield(
    program: Program, flag: Any, values: Sequence[Any], is_mapped: Sequence[bool]
) -> list[Any]:
    """Arguments for a program over lanes, with which those without ``flag`` do no harm."""
    mapped = [x for x, on in zip(values, is_mapped, strict=True) if on]
    is_guarded = is_guard_needed(program, values, is_mapped)
    safe = iter(guard(flag, mapped) if is_guarded else [gate(flag, x) for x in mapped])
    return [next(safe) if on else x for x, on in zip(values, is_mapped, strict=True)]


def broadcast_lanes(
    values: Sequence[Any], is_mapped: Sequence[bool], wanted: Sequence[bool], size: int
) -> list[Any]:
    """The values, with a lane axis where one is wanted."""
    return [
        broadcast_to(x, (size, *shape_of(x))) if on and not given else x
        for x, given, on in zip(values, is_mapped, wanted, strict=True)
    ]


def count_if(program: Program) -> Program:
    """The program with a flag as its first input, without which its checks do not count."""
    return program.memo("count if", lambda: _count_if(program))


def _count_if(program: Program) -> Program:
    inner = check_program(program, frozenset({EXPLICIT}))

    def run(flag: Any, *args: Any) -> list[Any]:
        outs = evaluate(inner.program, args)
        if inner.sites:
            found = inner.failure(outs)
            code = select.bind(flag, found.code, FINE)
            Check(found.sites).bind(*Failure(found.sites, code, found.values).flat)
        return outs[: inner.n_outputs]

    return stage_closed(run, [shaped((), BOOL), *program.in_avals], program.name)


def may_run_forever(program: Program) -> bool:
    """Whether a program contains, at any depth, an operation that may never end."""
    return program.memo(
        "may run forever",
        lambda: any(
            e.primitive.may_run_forever or any(map(may_run_forever, subprograms(e.primitive)))
            for e in program.equations
        ),
    )


def subprograms(primitive: Primitive) -> list[Program]:
    """The programs among the parameters of a primitive."""
    found: list[Program] = []
    for value in primitive.params().values():
        parts = value if isinstance(value, tuple) else (value,)
        found.extend(part for part in parts if isinstance(part, Program))
    return found
