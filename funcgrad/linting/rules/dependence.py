"""Arguments that the result does not depend on, or not differentiably."""

from __future__ import annotations

from funcgrad.core.facets import Facet
from funcgrad.core.program import Equation, Var
from funcgrad.errors import ConcretizationTypeError, MissingRuleError
from funcgrad.linting.bodies import followed
from funcgrad.linting.rule import Findings, Place, Said, rule
from funcgrad.linting.subject import Subject, is_within
from funcgrad.observers.source import SourceLocation, is_users, location_of

stops_gradients = Facet("stops_gradients", False)
"""Whether an operation is there to end derivatives."""


@rule("unused-argument", "warning")
def unused(subject: Subject) -> Findings:
    """A number or array among the arguments on which no result depends.

    A derivative that does not depend on what the function that it is of reads is right: the
    Jacobian of residuals on what they are subtracted from, the second derivative of a line on the
    point.

    Why:
        A parameter that no result depends on has the derivative 0 and never learns, often
        because its term was forgotten.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def loss(w, x):
        ...     return np.sum(x**2)
        >>> [found.rule for found in fg.lint(loss, np.ones(3), np.ones(3))]
        ['unused-argument']

    Not found:
        >>> def loss(w, x):
        ...     return np.sum(w * x**2)
        >>> [found.rule for found in fg.lint(loss, np.ones(3), np.ones(3))]
        []
    """
    reached = subject.needed.names
    found: dict[Place, list[str]] = {}
    if not any(atom.aval.size for atom in subject.record.outputs):
        return
    for path, var in zip(subject.record.paths, subject.record.inputs, strict=True):
        if var in subject.inputs and var not in reached and var.aval.size:
            reader = _first_reader(subject, var)
            if reader is not None and subject.takes_derivatives:
                continue
            found.setdefault(reader or _head(subject), []).append(f"`{path}`, {var.aval}")
    for place, paths in found.items():
        whose = "its" if len(paths) == 1 else "their"
        yield (
            place,
            f"no result depends on {' or '.join(paths)}: {whose} derivative is 0",
            "the term that should use it, or leave it out of the arguments",
        )


@rule("cut-derivative", "warning")
def cut(subject: Subject) -> Findings:
    """An argument that reaches the result only through operations without derivative.

    Such are rounding, comparisons, ``argmax``, casts to integers, and a ``stop_gradient`` that a
    function called by this one applies.

    Why:
        The derivative is 0 everywhere, whatever the argument does to the result, so an
        optimizer leaves it where it is.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def loss(x):
        ...     return np.mean(np.round(4 * x) ** 2)
        >>> [found.rule for found in fg.lint(loss, np.array([0.3, 0.7]))]
        ['cut-derivative']

    Not found:
        >>> def loss(x):
        ...     return np.mean((4 * x) ** 2)
        >>> [found.rule for found in fg.lint(loss, np.array([0.3, 0.7]))]
        []
    """
    if not any(atom.aval.dtype.kind in "fc" for atom in subject.record.outputs):
        return
    found: dict[tuple[Place, str], list[str]] = {}
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
        how = f"only through {', '.join(operations)}, without derivative{rest}{also}"
        found.setdefault((cuts[0].source, how), []).append(f"`{path}`, {var.aval}")
    for (place, how), paths in found.items():
        them = "it reaches" if len(paths) == 1 else "they reach"
        yield (
            place,
            f"the derivative with respect to {' and '.join(paths)}, is 0: {them} the result {how}",
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


def _head(subject: Subject) -> Place:
    """The line at which the user's function begins."""
    code = subject.code
    return SourceLocation(code, code.co_firstlineno) if code and is_users(code) else None


def _first_reader(subject: Subject, var: Var) -> Place:
    return next((e.source for e in subject.record.equations if var in e.inputs), None)


@rule("left-trace", "error", watches="errors")
def left(error: Exception) -> Said | None:
    """A traced value that Python, NumPy or a library is given as a plain number: no derivative.

    The function ends there with an error, so other rules do not look.

    Why:
        What another library computes from a plain number has no derivative, and a compiled
        function would keep the number of its first call.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> def share(x):
        ...     return x / float(np.sum(x))
        >>> [found.rule for found in fg.lint(share, np.ones(3))]
        ['left-trace']

    Not found:
        >>> def share(x):
        ...     return x / np.sum(x)
        >>> [found.rule for found in fg.lint(share, np.ones(3))]
        []
    """
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
    """An argument in which an operation has no derivative at all, or not in this direction.

    The order of a Bessel function is one. Kinks and singular points are not looked for then.

    Why:
        A gradient in this argument would be an error, and the rules that need derivatives
        cannot look at the function.

    Found:
        >>> import numpy as np, funcgrad as fg
        >>> from funcgrad.scipy import special
        >>> def f(n, x):
        ...     return np.sum(special.polygamma(n, x))
        >>> [found.rule for found in fg.lint(f, 1.0, np.ones(2))]
        ['missing-derivative']

    Not found:
        >>> [found.rule for found in fg.lint(f, 1, np.ones(2))]
        []
    """
    if not isinstance(error, MissingRuleError):
        return None
    return (
        location_of(error.__traceback__),
        f"{str(error).partition(chr(10))[0]} Kinks and singularities were not looked for",
        "the argument as one that is not floating, or bind it before: lint(partial(f, n=2), x)",
    )
