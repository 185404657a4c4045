"""``python -m tests.linting.seeding``: how many seeded faults lint finds, and how often it errs.

Each fault is put into a program of `corpus` that is right: into an argument, into an intermediate
result, or behind the result. Programs of the benchmarks, posteriors and examples get every fault;
the many primitives of the laws and compositions get one in turn. A fault counts as found if its
rule names the line that stands here (``# seeded``). The programs without a fault are linted, too:
whatever is found there and is not known to be so is a false alarm.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.diagnostics.record import Record, record
from tests.benchmarks.workload import leaves
from tests.linting.corpus import CORPORA, Named

ROOT = Path(__file__).parents[2]
STATE = ("funcgrad", "tests/linting")
"""Folders whose code decides what a run finds."""

WORKED_OUT = {
    "benchmarks, rank-test": "cut-derivative",  # ranks are steps of the samples
    "benchmarks, edges": "cut-derivative",  # thresholds decide what is an edge
    "laws, det-singular": "lost-digits",  # 0 but for rounding, which gives it a sign
    # Steps of training have the root of a mean square, which is 0 for units that are dead: a
    # derivative through the step is infinite there. Nobody takes it in these programs.
    "benchmarks, mlp-adam": "singular-derivative",
    "benchmarks, mlp-rmsprop": "singular-derivative",
    "benchmarks, mnist-step": "singular-derivative",
    "benchmarks, digits-step": "singular-derivative",
    # Blank patches of images meet biases that begin at 0, so that relu is at its kink: the
    # derivative with respect to these biases is another one to either side.
    "examples, lenet": "kink",
}
"""Findings in programs without a seeded fault that are true, each with its reason."""


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


STEP = 1e-7
"""How far arguments move."""
IN_TURN = {"laws", "words"}
"""Corpora of many small functions, which get one fault each."""


def _rounded(x: Any, there: Any) -> Any:
    return np.round(x)  # seeded


def _stopped(x: Any, there: Any) -> Any:
    return fg.stop_gradient(x)  # seeded


def _kept(x: Any, there: Any) -> Any:
    return np.full(np.shape(x), 0.5)


def _kink(x: Any, there: Any) -> Any:
    return x + np.abs(x - there)  # seeded


def _tie(x: Any, there: Any) -> Any:
    return np.maximum(x, 2 * x - there)  # seeded


def _choice(x: Any, there: Any) -> Any:
    return np.where(x > there, x, 3 * x - 2 * there)  # seeded


def _root(x: Any, there: Any) -> Any:
    above = np.where(x >= there, x - there, 1.0)
    return x + np.sqrt(above)  # seeded


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
    Fault("cut-derivative", "argument", _stopped),
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


def seeded(known: Record, fault: Fault) -> Callable[..., Any] | None:
    """The program with the fault, as a function of its leaves, if there is a place for it."""
    places = _places(known, fault.where)
    if not places:
        return None
    place = places[len(places) // 2]
    there = _most_sensitive(known, place) if fault.where == "middle" else None

    def program(*args: Any) -> Any:
        environment: dict[Any, Any] = {**known.constants}
        for var, x in zip(known.inputs, args, strict=True):
            environment[var] = fault.put(x, there) if var is place else x
        for equation in known.equations:
            given = [environment.get(a, getattr(a, "value", None)) for a in equation.inputs]
            out = equation.primitive.bind(*given)
            outs = out if equation.primitive.multiple_results else [out]
            for var, x in zip(equation.outputs, outs, strict=True):
                environment[var] = fault.put(x, there) if var is place else x
        return [environment.get(a, getattr(a, "value", None)) for a in known.outputs]

    return program


def _most_sensitive(known: Record, place: Any) -> Any:
    """The element of a value through which most of a derivative passes, or 0 if none does."""
    slopes, tangents = _slopes(known).get(place), _tangents(known, place)
    values = np.ravel(known.value(place))
    if slopes is None:
        return 0.0
    return values[np.argmax(_passing(slopes, tangents))]


def _passing(slopes: Any, tangents: Any) -> Any:
    """How much of a derivative passes each element of a value."""
    found = np.ravel(np.abs(slopes * tangents))
    return np.where(np.isfinite(found), found, 0.0)


def _tangents(known: Record, place: Any) -> Any:
    """The tangents of a value where the arguments move at random, 0 where it does not move so.

    Differences say whether it does: what is less its maximum, whose derivative is stopped, is 0.
    """
    active = [v for v in known.inputs if v.aval.dtype == np.float64]
    moves = [np.random.default_rng(i).normal(size=v.aval.shape) for i, v in enumerate(active)]

    def value(*xs: Any) -> Any:
        environment: dict[Any, Any] = {v: known.value(v) for v in known.inputs}
        environment.update({**known.constants, **dict(zip(active, xs, strict=True))})
        for e in known.equations:
            if place in environment:
                break
            given = [environment.get(a, getattr(a, "value", None)) for a in e.inputs]
            out = e.primitive.bind(*given)
            outs = out if e.primitive.multiple_results else [out]
            environment.update(zip(e.outputs, outs, strict=True))
        return environment[place]

    start = [*map(known.value, active)]
    sides = [[x + t * d for x, d in zip(start, moves, strict=True)] for t in (STEP, -STEP)]
    try:
        with np.errstate(all="ignore"):
            tangents = np.asarray(fg.jvp(value, tuple(start), tuple(moves))[1])
            moved = (np.asarray(value(*sides[0])) - np.asarray(value(*sides[1]))) / (2 * STEP)
    except (fg.errors.FuncgradError, np.linalg.LinAlgError):  # a rule that goes backwards only
        return np.ones(place.aval.shape)
    return np.where(np.abs(moved) > 1e-3 * np.abs(tangents), tangents, 0.0)


def _places(known: Record, where: str) -> list[Any]:
    """Names of floating arrays that a result depends on differentiably."""
    floating = [v for v in known.outputs if v in known.values and v.aval.dtype == np.float64]
    if where == "result":
        read = {atom for equation in known.equations for atom in equation.inputs}
        return [
            v for v in floating if v not in read and v.aval.size
        ]  # a fault may change its shape
    slopes = _slopes(known)
    if where == "argument":
        return [v for v in known.inputs if np.any(slopes.get(v, 0))]
    made = [v for e in known.equations for v in e.outputs if v in slopes and v not in floating]
    some = [v for v in made if v.aval.size > 1 and np.all(slopes[v])]
    middle = len(some) // 2
    for v in some[middle:] + some[:middle]:
        if np.any(_passing(slopes[v], _tangents(known, v))):
            return [v]
    return []


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


def faults_of(corpus: str, number: int) -> Sequence[Fault]:
    """The faults that are put into a program: all, or one in turn."""
    return FAULTS if corpus not in IN_TURN else FAULTS[number % len(FAULTS) :][:1]


@dataclass
class Looked:
    """What lint said of a program.

    Attributes:
        corpus: Where it is from.
        name: Its name.
        seconds: Processor time.
        alarms: What it was blamed for, without a fault.
        found: For each fault that was put into it its rule, and whether it was found.
    """

    corpus: str
    name: str
    seconds: float = 0.0
    alarms: list[str] = field(default_factory=list)
    found: dict[str, tuple[str, bool]] = field(default_factory=dict)

    def __str__(self) -> str:
        n_found = sum(is_there for _, is_there in self.found.values())
        last = f"; {len(self.alarms)} alarms" * bool(self.alarms)
        head = f"{self.corpus}, {self.name}: {self.seconds:.1f} s"
        return f"{head}, {n_found} of {len(self.found)}{last}"


def looked(corpus: str, number: int, named: Named) -> Looked:
    """Lint a program, and then again with faults."""
    name, program, args, argnums = named
    seen, start = Looked(corpus, name), time.process_time()
    for found in fg.lint(program, *args, argnums=argnums):
        if WORKED_OUT.get(f"{corpus}, {name}") != found.rule and found.severity != "note":
            seen.alarms.append(f"{corpus}, {name}: {found}")
    known = record(program, args, {}, "seeding")
    for fault in faults_of(corpus, number):
        made = seeded(known, fault)
        if made is not None and runs(made, leaves(args)):
            report = fg.lint(made, *leaves(args), only=[fault.rule])
            seen.found[fault.put.__name__] = fault.rule, is_found(report, fault)
    seen.seconds = time.process_time() - start
    return seen


@dataclass
class Counts:
    """What was seeded, found and blamed, by corpus and rule."""

    programs: list[Looked] = field(default_factory=list)

    @property
    def faults(self) -> list[tuple[Looked, str, str, bool]]:
        """All faults: program, name, rule, and whether it was found."""
        return [(p, put, *said) for p in self.programs for put, said in p.found.items()]

    @property
    def alarms(self) -> list[str]:
        """What programs without a fault were blamed for."""
        return [alarm for p in self.programs for alarm in p.alarms]

    def __str__(self) -> str:
        lines = [f"{rule:22} {self.of(rule=rule)}" for rule in {x.rule: 0 for x in FAULTS}]
        clean = Counter(p.corpus for p in self.programs)
        lines += [f"{corpus:22} {self.of(corpus=corpus)}, {n} clean" for corpus, n in clean.items()]
        missed = [
            f"{p.corpus}, {p.name}: {put}" for p, put, _, is_there in self.faults if not is_there
        ]
        last = f"{self.of()} seeded faults found; {len(self.alarms)} alarms in "
        last += f"{len(self.programs)} clean programs"
        return "\n".join([*lines, "missed:", *missed, "alarms:", *self.alarms, last])

    def of(self, corpus: str = "", rule: str = "") -> str:
        """How many of a corpus, or of a rule, are found."""
        found = [is_there for p, _, of, is_there in self.faults
                 if corpus in ("", p.corpus) and rule in ("", of)]  # fmt: skip
        return f"{sum(found)} of {len(found)}"

    @property
    def is_good(self) -> bool:
        """At least 95 of 100 found, and at most one alarm for each 1,000 clean programs."""
        n_found = sum(is_there for *_, is_there in self.faults)
        is_found_often = n_found >= 0.95 * len(self.faults)
        return is_found_often and len(self.alarms) <= len(self.programs) / 1000


class Kept:
    """Rows of a run that was ended, in a file, with which a later one goes on.

    Args:
        path: The file; nothing is kept if there is none.

    Raises:
        SystemExit: The rows are of another state of the code.
    """

    def __init__(self, path: str | None) -> None:
        self.path = None if path is None else Path(path)
        self.rows: dict[tuple[str, str], Looked] = {}
        files = sorted(f for folder in STATE for f in (ROOT / folder).rglob("*.py"))
        state = hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()
        if self.path is None:
            return
        if not self.path.exists():
            self.path.write_text(json.dumps(state) + "\n", encoding="utf-8")
        before, *lines = self.path.read_text(encoding="utf-8").splitlines()
        if json.loads(before) != state:
            raise SystemExit(f"{path} is of another state of the code: take a new file")
        for row in map(json.loads, lines):
            self.rows[row["corpus"], row["name"]] = Looked(**row)

    def add(self, row: Looked) -> None:
        """Keep one more."""
        self.rows[row.corpus, row.name] = row
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Seed, lint, count; 1 if fewer than 95 of 100 are found, or clean programs are blamed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take each n-th program")
    parser.add_argument("--first", type=int, default=0, help="begin with this one")
    parser.add_argument("--corpus", choices=CORPORA, action="append", help="all by default")
    parser.add_argument("--results", help="file of rows, with which a later run goes on")
    parser.add_argument("--seconds", type=float, default=np.inf, help="end after that time")
    options = parser.parse_args(arguments)
    kept, counts, start = Kept(options.results), Counts(), time.monotonic()
    for corpus in options.corpus or CORPORA:
        for number, named in enumerate(CORPORA[corpus]()):
            if number % options.every != options.first:
                continue
            if time.monotonic() - start > options.seconds:
                print("time is over: the same command goes on", file=sys.stderr)
                return 2
            if (corpus, named[0]) not in kept.rows:
                kept.add(looked(corpus, number, named))
                print(kept.rows[corpus, named[0]], file=sys.stderr, flush=True)
            counts.programs.append(kept.rows[corpus, named[0]])
    print(counts)
    return int(not counts.is_good)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
