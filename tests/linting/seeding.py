"""``python -m tests.linting.seeding``: how many seeded faults lint finds, and how often it errs.

Each fault is put into a program that is right: into an argument, into an intermediate result, or
behind the result, of the workloads of the benchmarks at small sizes. A fault counts as found if its
rule names the line that stands here (``# seeded``). The programs without a fault are linted, too:
whatever is found there and is not known to be so is a false alarm.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.diagnostics.record import Record, record
from tests.benchmarks.libraries import load
from tests.benchmarks.workload import all_rows, converted, leaves

WORKED_OUT = {
    "bundle-jacobian": "unused-argument",  # what is seen is subtracted, so no derivative has it
    "sparse-jacobian": "unused-argument",
    "sparse-hessian": "unused-argument",
    "argsort-take": "cut-derivative",  # keys decide an order only
    "rank-test": "cut-derivative",
    "scalar-step": "unrolled-loop",
    "scalar-step-eager": "unrolled-loop",
    "mlp-rmsprop": "singular-derivative",  # the root of a mean square that is 0 at first
    "cart-pole-gradient": "lost-digits",  # returns less their mean, which are all equal
}
"""Findings in programs without a seeded fault that are so."""


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        rule: The rule that is to find it.
        where: ``"argument"``, ``"middle"`` or ``"result"``.
        put: The fault, as a function of what is there, and of its value at the arguments.
    """

    rule: str
    where: str
    put: Callable[[Any, Any], Any]


def _rounded(x: Any, there: Any) -> Any:
    return np.round(x)  # seeded


def _kept(x: Any, there: Any) -> Any:
    return np.full(np.shape(x), 0.5)


def _kink(x: Any, there: Any) -> Any:
    return x + np.abs(x - np.ravel(there)[0])  # seeded


def _tie(x: Any, there: Any) -> Any:
    return np.maximum(x, 2 * x - np.ravel(there)[0])  # seeded


def _choice(x: Any, there: Any) -> Any:
    first = np.ravel(there)[0]
    return np.where(x > first, x, 3 * x - 2 * first)  # seeded


def _root(x: Any, there: Any) -> Any:
    least = fg.stop_gradient(np.min(x))
    return x + np.sqrt(x - least)  # seeded


def _guarded(x: Any, there: Any) -> Any:
    least = fg.stop_gradient(np.min(x))
    return x + np.where(x > least, np.log(x - least), 0.0)  # seeded


def _overflow(x: Any, there: Any) -> Any:
    size = fg.stop_gradient(np.max(np.abs(x))) + 1
    return x + 1 / (1 + np.exp(1000 + x / size))  # seeded


def _cancelled(x: Any, there: Any) -> Any:
    size = 1e12 * (fg.stop_gradient(np.max(np.abs(x))) + 1)
    return (x * 1e-3 + size) - size  # seeded


def _outer(x: Any, there: Any) -> Any:
    row = np.reshape(np.stack([np.sum(x), np.sum(x)]), -1)
    column = np.ones((2, 2)) @ np.ones((2, 1)) * np.sum(x)
    return np.sum(column - row)  # seeded


def _noise(x: Any, there: Any) -> Any:
    key = fg.random.key(0)
    a = fg.random.normal(key)
    return x + a * fg.random.uniform(key)  # seeded


def _noise_in_loop(x: Any, there: Any) -> Any:
    key = fg.random.key(0)

    def step(i: Any, c: Any) -> Any:
        return c + fg.random.normal(key)  # seeded

    return x + fg.lax.fori_loop(0, 3, step, 0.0)


FAULTS = (
    Fault("cut-derivative", "argument", _rounded),
    Fault("unused-argument", "argument", _kept),
    Fault("kink", "middle", _kink),
    Fault("kink", "middle", _tie),
    Fault("kink-of-choice", "middle", _choice),
    Fault("singular-derivative", "middle", _root),
    Fault("hidden-nan", "middle", _guarded),
    Fault("overflow", "middle", _overflow),
    Fault("lost-digits", "result", _cancelled),
    Fault("accidental-broadcast", "result", _outer),
    Fault("reused-key", "result", _noise),
    Fault("constant-key", "result", _noise_in_loop),
)


def functions(every: int = 1) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """The programs of the benchmarks, each with its arguments."""
    ours = load(["funcgrad"], "float64")["funcgrad"]
    rows = {row.workload.name: row for row in all_rows().values() if not row.differentiate}
    for number, (name, row) in enumerate(rows.items()):
        if number % every or ours.lacks(row.workload.needs):
            continue
        problem = row.workload.problem("small")
        program = ours.program(problem, row.differentiate)
        if program is not None:
            yield name, program, ours.own_tree(converted(problem.arguments, "float64"))


def seeded(known: Record, fault: Fault) -> Callable[..., Any] | None:
    """The program with the fault, as a function of its leaves, if there is a place for it."""
    places = _places(known, fault.where)
    if not places:
        return None
    place = places[len(places) // 2]

    def program(*args: Any) -> Any:
        environment: dict[Any, Any] = {**known.constants}
        for var, x in zip(known.inputs, args, strict=True):
            environment[var] = fault.put(x, known.value(place)) if var is place else x
        for equation in known.equations:
            given = [environment.get(a, getattr(a, "value", None)) for a in equation.inputs]
            out = equation.primitive.bind(*given)
            outs = out if equation.primitive.multiple_results else [out]
            for var, x in zip(equation.outputs, outs, strict=True):
                environment[var] = fault.put(x, known.value(place)) if var is place else x
        return [environment.get(a, getattr(a, "value", None)) for a in known.outputs]

    return program


def _places(known: Record, where: str) -> list[Any]:
    """Names of floating arrays that a result depends on differentiably."""
    floating = [v for v in known.outputs if v in known.values and v.aval.dtype == np.float64]
    if where == "result":
        read = {atom for equation in known.equations for atom in equation.inputs}
        return [v for v in floating if v not in read]  # a fault may change its shape
    slopes = _slopes(known)
    if where == "argument":
        return [v for v in known.inputs if np.any(slopes.get(v, 0))]
    depends = {v for v in known.inputs if v.aval.dtype == np.float64}
    made = []
    for equation in known.equations:
        if not depends.isdisjoint(equation.inputs):
            depends.update(equation.outputs)
            made += equation.outputs
    return [v for v in made if v.aval.size > 1 and v not in floating and np.all(slopes.get(v, 0))]


def _slopes(known: Record) -> dict[Any, Any]:
    """Derivatives of the sum of the results with respect to what is made on the way."""
    names = [v for v in known.inputs if v.aval.dtype == np.float64]
    names += [v for e in known.equations for v in e.outputs if v.aval.dtype == np.float64]
    whole = [v for v in known.outputs if v in known.values and v.aval.dtype == np.float64]
    if not whole:
        return {}

    class Summed(Record):
        def run(self, *args: Any, **names_: Any) -> Any:
            outs = known.run(*args, **names_)
            return [sum(np.sum(x) for x in outs if getattr(x, "dtype", None) == np.float64)]

    summed = Summed(known.name)
    summed.__dict__.update(known.__dict__)
    return summed.gradients(names)


def runs(program: Callable[..., Any], args: list[Any]) -> bool:
    """Whether a program with a fault still runs: matrices may have become singular by it."""
    try:
        with np.errstate(all="ignore"):
            program(*args)
    except np.linalg.LinAlgError:
        return False
    return True


def is_found(report: Any, fault: Fault) -> bool:
    """Whether a report names the fault, at its line."""
    for found in report.by_rule(fault.rule):
        line = found.location.text() if found.location is not None else ""
        if fault.rule == "unused-argument" or line.endswith("# seeded"):
            return True
    return False


def main(arguments: list[str] | None = None) -> int:
    """Seed, lint, count; 1 if fewer than 95 of 100 are found, or a clean program is blamed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take each n-th program")
    options = parser.parse_args(arguments)
    seeds, hits, missed, alarms = Counter(), Counter(), [], []
    n_clean = 0
    for name, program, args in functions(options.every):
        n_clean += 1
        for found in fg.lint(program, *args):
            if WORKED_OUT.get(name) != found.rule and found.severity != "note":
                alarms.append(f"{name}: {found}")
        known = record(program, args, {}, "seeding")
        for fault in FAULTS:
            made = seeded(known, fault)
            if made is None or not runs(made, leaves(args)):
                continue
            seeds[fault.rule] += 1
            report = fg.lint(made, *leaves(args), only=[fault.rule])
            if is_found(report, fault):
                hits[fault.rule] += 1
            else:
                missed.append(f"{name}: {fault.put.__name__}")
    for rule, n in seeds.items():
        print(f"{rule:22} {hits[rule]} of {n}")
    print("\n".join(["missed:", *missed, "alarms:", *alarms]))
    n, k = sum(seeds.values()), sum(hits.values())
    print(f"{k} of {n} seeded faults found; {len(alarms)} alarms in {n_clean} clean programs")
    return int(k < 0.95 * n or bool(alarms))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
