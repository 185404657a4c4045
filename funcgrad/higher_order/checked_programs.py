"""Functionalising checks: what raises becomes a result.

``check : (a -> b) -> (a -> (b, failure))``

Every operation tells what can be wrong with it, and what its programs find; the first of it, in the
order of the program, is the failure of the whole. See `funcgrad.higher_order.checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.base.annotations import Values
from funcgrad.base.records import dataclass
from funcgrad.core.facets import Facet
from funcgrad.core.program import Equation, Program, Var, last_uses
from funcgrad.higher_order.checks import Failure, nan_faults, nothing
from funcgrad.observers.checks import NAN, Fault, Kinds, Site
from funcgrad.observers.source import stands_for
from funcgrad.transforms.programs import stage_closed


@dataclass(frozen=True)
class CheckedProgram:
    """``program`` maps the inputs to the results, followed by a flat failure if there are sites.

    Args:
        program: It raises for nothing that is looked for.
        sites: Where something is looked for.
        n_outputs: Number of results.
    """

    program: Program
    sites: tuple[Site, ...]
    n_outputs: int

    def failure(self, results: Values) -> Failure:
        """First failure, from the results of the program."""
        return Failure.of_flat(self.sites, results[self.n_outputs :])

    def found(self, results: Values) -> list[Failure]:
        """The same, or nothing if nothing is looked for."""
        return [self.failure(results)] if self.sites else []


def check_program(program: Program, kinds: Kinds) -> CheckedProgram:
    """The program with checks of some kinds as results; those of other kinds are left out."""
    return program.memo(("checked", kinds), lambda: _check_program(program, kinds))


def _check_program(program: Program, kinds: Kinds) -> CheckedProgram:
    sites: list[Site] = []

    def run(*args: Any) -> list[Any]:
        outs, failure = evaluate_checked(program, args, kinds)
        sites.extend(failure.sites)
        return [*outs, *(failure.flat if sites else [])]

    staged = stage_closed(run, program.in_avals, program.name)
    n = len(program.outputs)
    if not sites and not program.is_effectful:
        staged = program  # nothing has changed, and its compiled form may be there already
    return CheckedProgram(staged, tuple(sites), n)


def evaluate_checked(program: Program, args: Values, kinds: Kinds) -> tuple[list[Any], Failure]:
    """Results of a program under the current trace, and what was found wrong."""
    environment: dict[Any, Any] = dict(program.constants)
    environment.update(zip(program.inputs, args, strict=True))
    failure = nothing(())

    def read(atom: Any) -> Any:
        return environment[atom] if type(atom) is Var else atom.value

    for equation, dying in zip(program.equations, last_uses(program), strict=True):
        results, found = _apply(equation, [read(a) for a in equation.inputs], kinds)
        environment.update(zip(equation.outputs, results, strict=True))
        for each in found:
            failure = _joined(equation, failure, each)
        for var in dying:
            del environment[var]
    return [read(a) for a in program.outputs], failure


checked: Facet[Callable[..., tuple[Any, Sequence[Any]]] | None] = Facet("checked", None)
"""``checked(args, kinds)``: results, and what may be wrong (`funcgrad.observers.checks`), but nans.

Operations that look for something of their own have it, and those that hold programs in which
something may be looked for. What may be wrong are `Fault`s, or failures of programs inside.
"""

makes_no_nans = Facet("makes_no_nans", False)
"""Whether a nan in the results was in the arguments, or is made by an operation inside."""


@stands_for("equation")
def _apply(equation: Equation, args: Values, kinds: Kinds) -> tuple[Sequence[Any], Sequence[Any]]:
    """Results of an equation, and what may be wrong with it."""
    primitive = equation.primitive
    rule = checked(primitive)
    out, found = (primitive.bind(*args), ()) if rule is None else rule(args, kinds)
    results = out if primitive.multiple_results else [out]
    if NAN in kinds and not makes_no_nans(primitive):
        found = [*found, *nan_faults(primitive.name, results)]
    return results, found


@stands_for("equation")
def _joined(equation: Equation, failure: Failure, found: Fault | Failure) -> Failure:
    source = equation.source
    if isinstance(found, Fault):
        found = Failure.of_fault(found, None if source is None else str(source))
    return failure.then(found.at(source))
