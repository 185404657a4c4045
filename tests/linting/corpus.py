"""Functions without a fault: the benchmarks, posteriors, examples, and the laws and their words.

Each is a name, a function, arguments at which it has a derivative, and which of them are no data.
Examples and programs are run until they differentiate something at concrete arguments: that is the
function.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from itertools import product
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.base.pytree import tree_leaves
from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.extend import laws
from funcgrad.higher_order.jit import disable_jit
from funcgrad.linting.script import replaced
from tests import test_compositions, test_control_compositions
from tests.benchmarks.libraries import load
from tests.benchmarks.workload import GRADIENT, all_rows, converted
from tests.cases import CASES, Case
from tests.examples import program as examples
from tests.interop import posteriors
from tests.programs.test_programs import PROGRAMS, run, style_of

Named = tuple[str, Callable[..., Any], tuple[Any, ...], Any]
"""A name, a function, arguments, and ``argnums`` of those that are differentiated."""

PARAMETERS = {
    "wood-hessian": (0,),  # what is seen is subtracted, so no derivative has it
    "boundary-hessian": (0,),
    "trigonometric-hessian": (0,),
    "sparse-hessian": (0,),
    "sparse-jacobian": (0,),
    "sparse-bundle-jacobian": (0,),
    "argsort-take": (1,),  # keys decide an order
    "particle-filter": (0, 1),  # uniform numbers decide which particles are kept
    "metropolis": (0, 1),  # and here what is accepted
}
"""Benchmarks that have data among their arguments, with their ``argnums``."""

SECONDS = 20
"""Time in which a program is to differentiate something."""

OF_PROCESSES = {
    "heat_distributed", "tensor_parallel", "train_distributed", "train_sharded", "ensemble_dask",
}  # fmt: skip
"""Examples whose functions run in several processes."""


def of_benchmarks() -> Iterator[Named]:
    """The programs of the benchmarks, at small sizes."""
    ours = load(["funcgrad"], "float64")["funcgrad"]
    rows = {row.workload.name: row.workload for row in all_rows().values()}
    for name, workload in rows.items():
        if ours.lacks(workload.needs):
            continue
        problem = workload.problem("small")
        program = ours.program(problem, differentiate=False)
        if program is not None:
            is_gradient = problem.is_gradient or workload.rows == GRADIENT
            chosen = problem.argnums if is_gradient else PARAMETERS.get(name)
            args = ours.own_tree(converted(problem.arguments, "float64"))
            yield name, program, args, chosen


def of_posteriors() -> Iterator[Named]:
    """Log densities of models, of vectors."""
    for name in posteriors.MODELS:
        found = posteriors.density(name)
        yield name, found, (0.3 * np.random.default_rng(found.n).standard_normal(found.n),), None


def of_laws() -> Iterator[Named]:
    """The primitives, of the arguments in which they have derivatives that are not always 0."""
    for case in CASES:
        args = case.draw(case.dtypes[0])
        active = [i for i, x in enumerate(args) if _is_active(case, i, x)]
        if case.order and active and _has_derivative(case, args, active):
            yield case.name, _observed(case, args, active), tuple(args[i] for i in active), None


def _is_active(case: Case, i: int, x: Any) -> bool:
    return laws.is_inexact(x) and (case.differentiable is None or i in case.differentiable)


def _has_derivative(case: Case, args: list[Any], active: list[int]) -> bool:
    """Whether there is one: roundings say that theirs is 0."""
    if not isinstance(case.primitive, Primitive) or case.primitive.is_composite:
        return True
    tangents = [np.ones_like(x) if i in active else None for i, x in enumerate(args)]
    _, dots = case.primitive.jvp(args, tangents)
    dots = dots if case.primitive.multiple_results else [dots]
    return any(dot is not None for dot in dots)


def _observed(case: Case, args: list[Any], active: list[int]) -> Callable[..., Any]:
    def program(*given: Any) -> Any:
        rest = iter(given)
        return laws.observed(case, *(next(rest) if i in active else x for i, x in enumerate(args)))

    return program


def of_words() -> Iterator[Named]:
    """Compositions of transformations, and of these with loops and branches."""
    for name, sample in test_compositions.SAMPLES.items():
        for word in test_compositions.WORDS:
            f = _composed(test_compositions.LETTERS, word, sample.program)
            yield f"{name}: {' '.join(word)}", f, (test_compositions.POINT,), None
    letters = test_control_compositions.LETTERS
    for n in (1, 2, 3):
        for word in product(letters, repeat=n):
            f = _composed(letters, word, test_control_compositions.base)
            yield " ".join(word), f, (test_control_compositions.POINT,), None


def _composed(letters: dict[str, Any], word: tuple[str, ...], f: Any) -> Any:
    for letter in reversed(word):
        f = letters[letter](f)
    return f


def of_examples() -> Iterator[Named]:
    """The first functions that examples, and programs of the tests, differentiate."""
    for path in sorted(examples.FOLDER.glob("*.py")):
        if "grad(" in path.read_text(encoding="utf-8") and path.stem not in OF_PROCESSES:
            yield from _first(path.stem, lambda path=path: _run_example(path.stem))
    for name in PROGRAMS:
        if style_of(name) == "jax":
            yield from _first(name, lambda name=name: run(name))


def _run_example(name: str) -> None:
    example = examples.load(name)
    if hasattr(example, "run"):
        examples.run(example)


class _Ended(BaseException):
    """Ends a program whose function is known, or whose time is over."""


def _first(name: str, call: Callable[[], Any]) -> Iterator[Named]:
    found: list[Named] = []

    def before(f: Callable[..., Any], args: Any, kwargs: dict[str, Any], argnums: Any) -> None:
        if kwargs or any(isinstance(x, Tracer | bool) for x in tree_leaves(args)):
            return
        if current_trace() is not EVAL:
            return  # it may read values of what is traced, which nobody has later
        found.append((name, f, tuple(args), argnums))
        raise _Ended

    def over(signum: int, frame: Any) -> None:
        raise _Ended

    previous = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with replaced(fg, before), disable_jit(), redirect_stdout(StringIO()):
            call()
    except _Ended:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    yield from found


CORPORA: dict[str, Callable[[], Iterator[Named]]] = {
    "benchmarks": of_benchmarks,
    "posteriors": of_posteriors,
    "examples": of_examples,
    "laws": of_laws,
    "words": of_words,
}
"""All of them, by name."""
