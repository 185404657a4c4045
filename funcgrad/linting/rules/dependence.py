"""Arguments that the result does not depend on, or not differentiably."""

from __future__ import annotations

from funcgrad.core.facets import Facet
from funcgrad.core.program import Equation, Var
from funcgrad.errors import ConcretizationTypeError, MissingRuleError
from funcgrad.linting.bodies import followed
from funcgrad.linting.rule import Findings, Place, Said, rule
from funcgrad.linting.subject import Subject, is_within
from funcgrad.observers.source import location_of

stops_gradients = Facet("stops_gradients", False)
"""Whether an operation is there to end derivatives."""


@rule("unused-argument", "warning")
def unused(subject: Subject) -> Findings:
    """A number or array among the arguments on which no result depends.

    A derivative that does not depend on what the function that it is of reads is right: the
    Jacobian of residuals on what they are subtracted from, the second derivative of a line on the
    point.
    """
    reached = subject.needed.names
    if not any(atom.aval.size for atom in subject.record.outputs):
        return
    for path, var in zip(subject.record.paths, subject.record.inputs, strict=True):
        if var in subject.inputs and var not in reached and var.aval.size:
            reader = _first_reader(subject, var)
            if reader is not None and subject.takes_derivatives:
                continue
            yield (
                reader,
                f"no result depends on `{path}`, {var.aval}: its derivative is 0",
                "the term that should use it, or leave it out of the arguments",
            )


@rule("cut-derivative", "warning")
def cut(subject: Subject) -> Findings:
    """An argument that reaches the result only through operations without derivative."""
    if not any(atom.aval.dtype.kind in "fc" for atom in subject.record.outputs):
        return
    for path, var in zip(subject.record.paths, subject.record.inputs, strict=True):
        if var not in subject.inputs or var not in subject.needed.names or not var.aval.size:
            continue
        active = {var}
        rows = subject.record.equations, active, subject.needed
        cuts = followed(*rows, subject.active_results)
        arrives = not active.isdisjoint(subject.record.outputs)
        if not cuts or all(_is_asked(subject, cut) for cut in cuts):
            continue
        if arrives and var not in subject.flat:
            continue
        operations = sorted({equation.primitive.name for equation in cuts})
        more = [str(e.source) for e in cuts[1:3] if e.source is not cuts[0].source]
        also = "".join(f"; also at {line}" for line in more)
        rest = ", and terms in which its derivative is 0 everywhere" if arrives else ""
        yield (
            cuts[0].source,
            f"the derivative with respect to `{path}`, {var.aval}, is 0: it reaches the result "
            f"only through {', '.join(operations)}, without derivative{rest}{also}",
            "a smooth operation in its place (a weighted sum for argmax, expit for a comparison, "
            "the number itself for a rounded one), or stop_gradient if this is meant",
        )


def _is_asked(subject: Subject, cut: Equation) -> bool:
    """Whether a derivative is ended by the function itself, or by a function of the library.

    A function that it calls may end one unasked; a solver does so for its start, of which the
    solution is independent.
    """
    if not stops_gradients(cut.primitive) or cut.source is None:
        return False
    return "stop_gradient" not in cut.source.text() or is_within(cut.source.code, subject.code)


def _first_reader(subject: Subject, var: Var) -> Place:
    return next((e.source for e in subject.record.equations if var in e.inputs), None)


@rule("left-trace", "error", watches="errors")
def left(error: Exception) -> Said | None:
    """A traced value that Python, NumPy or a library is given as a plain number: no derivative."""
    if not isinstance(error, ConcretizationTypeError):
        return None
    return (
        location_of(error.__traceback__),
        f"{str(error).partition(chr(10))[0]} What follows has no derivative",
        "functions of NumPy, SciPy or funcgrad instead, or pure_callback with custom_vjp for a "
        "library of others",
    )


@rule("missing-derivative", "note", watches="errors")
def missing(error: Exception) -> Said | None:
    """An argument in which an operation has no derivative at all, or not in this direction."""
    if not isinstance(error, MissingRuleError):
        return None
    return (
        location_of(error.__traceback__),
        f"{str(error).partition(chr(10))[0]} Kinks and singularities were not looked for",
        "the argument as one that is not floating, or bind it before: lint(partial(f, n=2), x)",
    )
