"""Lanes of a batch that go different ways: gates in front of code that only some of them run.

Under `vmap` the code of a branch, or of one more step of a loop, is evaluated for all lanes, and
`choose` keeps the results of those that wanted it. The gate in front of it takes care of the
others: no cotangent or tangent passes it, so nothing that happens behind it reaches a derivative.
Where that is not enough the others get the values of a lane that does run the code: it could run
for ever, or raise, on values that it was not meant for, or make an infinity that meets, in a
contraction with an array that all lanes share, the zeros of a gate. Checks in it count where it was
wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.core.avals import aval_of, shaped
from funcgrad.core.facets import Facet
from funcgrad.core.program import Equation, Program, Var, evaluate
from funcgrad.dtypes import BOOL
from funcgrad.higher_order.checked_programs import check_program
from funcgrad.higher_order.checks import FINE, Check, Failure
from funcgrad.observers.checks import EXPLICIT
from funcgrad.passes.common import subprograms
from funcgrad.primitives.elementwise import select, stop_gradient
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.reductions import ArgMax
from funcgrad.primitives.shape import broadcast_to, repeat_lanes, reshape, shape_of
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
    """Replace lanes where ``flag`` does not hold by the first one where it does, as `gate` does."""
    if not shape_of(flag)[0]:
        return list(values)
    lane, first = ArgMax(0).bind(flag), Gather((0,), "clip")
    return [
        choose(flag, x, broadcast_to(stop_gradient.bind(first.bind(x, lane)), shape_of(x)))
        for x in values
    ]


def is_guard_needed(program: Program, values: Sequence[Any], is_mapped: Sequence[bool]) -> bool:
    """Whether gates are not enough in front of a program with these arguments."""
    return bool(_guarded(program, values, is_mapped)) or needs_its_values(program)


def _guarded(program: Program, values: Sequence[Any], is_mapped: Sequence[bool]) -> frozenset[int]:
    """The numbers of the arguments in front of which gates are not enough."""
    shared = [aval_of(x) for x, on in zip(values, is_mapped, strict=True) if not on]
    if _may_run_forever(program) or any(a.shape and a.dtype.kind in "fc" for a in shared):
        return frozenset(range(len(values)))
    return program.memo("of indices", lambda: _find_of_indices(program))


def shield(
    program: Program, flag: Any, values: Sequence[Any], is_mapped: Sequence[bool]
) -> list[Any]:
    """Arguments for a program over lanes, with which those without ``flag`` do no harm."""
    guarded = _guarded(program, values, is_mapped)
    chosen = [i for i, on in enumerate(is_mapped) if on and i in guarded]
    safe = dict(zip(chosen, guard(flag, [values[i] for i in chosen]), strict=True))
    return [
        safe[i] if i in safe else gate(flag, x) if on else x
        for i, (x, on) in enumerate(zip(values, is_mapped, strict=True))
    ]


def broadcast_lanes(
    values: Sequence[Any], is_mapped: Sequence[bool], wanted: Sequence[bool], size: int
) -> list[Any]:
    """The values, with a lane axis where one is wanted."""
    return [
        repeat_lanes(x, size) if on and not given else x
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


may_run_forever = Facet("may_run_forever", False)
"""Whether an operation may not end on values that it was not meant for."""

may_refuse = Facet("may_refuse", False)
"""Whether an operation raises for some integers among its arguments."""


def needs_its_values(program: Program) -> bool:
    """Whether a program may run for ever, or raise, on values that it was not meant for."""
    return _may_run_forever(program) or _may_refuse(program)


def _may_run_forever(program: Program) -> bool:
    return program.memo(
        "may run forever",
        lambda: any(
            may_run_forever(e.primitive) or any(map(_may_run_forever, subprograms(e.primitive)))
            for e in program.equations
        ),
    )


def _may_refuse(program: Program) -> bool:
    return program.memo(
        "may refuse", lambda: any(_asked(e, _constants(program)) for e in program.equations)
    )


def _find_of_indices(program: Program) -> frozenset[int]:
    known, needed = _constants(program), set()
    for equation in reversed(program.equations):
        needed.update(_asked(equation, known))
        if not needed.isdisjoint(equation.outputs):
            needed.update(x for x in equation.inputs if isinstance(x, Var))
    return frozenset(i for i, var in enumerate(program.inputs) if var in needed)


def _constants(program: Program) -> set[Var]:
    return {var for var, _ in program.constants}


def _asked(equation: Equation, known: set[Var]) -> list[Var]:
    """The inputs on which it depends whether an equation raises."""
    variables = [x for x in equation.inputs if isinstance(x, Var) and x not in known]
    if any(map(_may_refuse, subprograms(equation.primitive))):
        return variables
    is_picky = may_refuse(equation.primitive)
    return [x for x in variables if is_picky and x.aval.dtype.kind in "iu"]
