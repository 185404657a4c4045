"""Test suites of libraries for JAX and for autograd, on these and on funcgrad: tables of docs.

    python -m tests.neighbours --sources FOLDER              all libraries, a sample of each file
    python -m tests.neighbours --sources FOLDER equinox      one of them
    python -m tests.neighbours --sources FOLDER --peer autograd     those for autograd
    python -m tests.neighbours --sources FOLDER --most 0     every test
    python -m tests.neighbours --sources FOLDER --failing    on the peer, what failed here alone
    python -m tests.neighbours --sources FOLDER --write      and the table of the page
    python -m tests.neighbours --recorded --write            that of what was recorded

``FOLDER/<library>`` is the source tree of the release that is installed, with its tests; whatever
is missing is named with the command that gets it. Tests of a file run in a process of their own,
once with the peer, JAX or autograd, and once with its stand-in; a file is stopped after ``--limit``
seconds. Every test is recorded in the folder ``--out``, and is not run again unless ``--again all``
or ``failed`` is given, so that a run that was stopped goes on where it was. With ``--failing``,
what passes here is taken to pass on the peer. What passes there and not here is listed by class:
tests that end with the same message, apart from numbers.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from tests.recording import (
    FINISHED,
    FLAGS,
    PAGE,
    ROOT,
    SECONDS,
    STARTED,
    UNENDED,
    Recorder,
    kind_of,
    lines_of,
    print_classes,
    write_between,
)

JAX, AUTOGRAD, FUNCGRAD = "jax", "autograd", "funcgrad"
NAMES = {JAX: "JAX", AUTOGRAD: "autograd"}
PAGES = {JAX: PAGE, AUTOGRAD: ROOT / "docs" / "interop.md"}
BEGIN, END = "<!-- suites -->", "<!-- end of suites -->"
COMMANDS = {
    JAX: "python -m tests.neighbours --write",
    AUTOGRAD: "python -m tests.neighbours --peer autograd --write",
}
"""What writes the table of a page."""
PEER = "peer"
"""The other way to run tests: with what the library was written for."""
NEEDED = {
    JAX: ("jax.numpy", "jax.scipy.linalg", "jax.random", "jax.nn"),
    AUTOGRAD: ("autograd.numpy", "autograd.scipy.special"),
}
"""Modules that a process loads before it divides."""


@dataclass(frozen=True)
class Library:
    """A library and its tests.

    Attributes:
        repository: Where its source trees are; empty if its source archive has the tests.
        tests: The folder of its tests.
        tag: The name of a release there; empty if there are none.
        peer: What it was written for.
        variables: Of the environment, with their values.
    """

    repository: str
    tests: str
    tag: str = "v{}"
    peer: str = JAX
    variables: tuple[tuple[str, str], ...] = ()

    def how_to_get(self, name: str, version: str) -> str:
        """A command that gets the source tree of a release."""
        if not self.repository:
            return (
                f"pip download --no-deps --no-binary :all: {name}=={version}, then unpack it as "
                f"{name}/"
            )
        branch = f"--branch {self.tag.format(version)} " if self.tag else ""
        return f"git clone --depth 1 {branch}https://github.com/{self.repository} {name}"


LIBRARIES = {
    "equinox": Library("patrick-kidger/equinox", "tests"),
    "lineax": Library("patrick-kidger/lineax", "tests"),
    "optimistix": Library("patrick-kidger/optimistix", "tests"),
    "diffrax": Library("patrick-kidger/diffrax", "test"),
    "tinygp": Library("", "tests"),
    "jaxopt": Library("google/jaxopt", "tests", "jaxopt-v{}"),
    "optax": Library("", "optax"),
    "chex": Library("", "chex"),
    "blackjax": Library("", "tests"),
    "lifelines": Library("", "lifelines/tests", peer=AUTOGRAD),
    "autograd-gamma": Library("CamDavidsonPilon/autograd-gamma", "tests", "", AUTOGRAD),
    "autoptim": Library("pierreablin/autoptim", "autoptim/tests", "", AUTOGRAD),
    "pymanopt": Library("", "tests", peer=AUTOGRAD),
    "lifetimes": Library("CamDavidsonPilon/lifetimes", "tests", peer=AUTOGRAD),
    "pyerrors": Library("fjosw/pyerrors", "tests", peer=AUTOGRAD),
    "ceviche": Library("fancompute/ceviche", "tests", "", AUTOGRAD),
    "mici": Library("matt-graham/mici", "tests", peer=AUTOGRAD),
    "geomstats": Library(
        "geomstats/geomstats",
        "tests/tests_geomstats",
        "{}",
        AUTOGRAD,
        (("GEOMSTATS_BACKEND", "autograd"),),
    ),
}

REASONS = (
    (r"unpack \(expected 2, got 1\)|requires > \S+ devices?", "several devices"),
    (r"b?float16|bfloat", "16-bit floats in traced code"),
    (r"is_deleted|donat", "donation of buffers"),
    (r"numpy_dtype_promotion", "weak integers that become strong, where promotion is strict"),
    (r"needs arguments of one dtype", "weak dtypes in programs that are evaluated again"),
    (r"defaultdict|compiler_ir", "primitives and code of a program"),
    (r"not positive definite|Singular matrix", "factorisations that fail raise"),
    (r"MissingNameError", "names that are missing"),
    (r"CustomVJPException", "closing over traced values, which is an error there"),
    (r"traced > \d+ times|weak_type", "weak types of traced values"),
    (r"not 'complex'", "`isinstance(x, np.ndarray)`, which is true here"),
    (r"took more than|did not end", "stopped, or its file could not be imported"),
    (r"DID NOT RAISE|not raised by", "errors of JAX where there is a result here"),
    (r"\d != Array\(\d|Array\(\d+, dtype=int\d+\) != \d", "how often Python calls a function"),
)
"""Patterns of messages, and how the page says why."""

SINGLE = "single tests"
"""Failures of no class."""


@dataclass
class Suite:
    """The results of a library.

    Attributes:
        name: Of the library.
        version: Of the library.
        outcomes: By the way it ran and the name of the test: what became of it.
        messages: Of the tests that did not pass on funcgrad.
        seconds: Of processor time, by the way it ran and the test.
    """

    name: str
    version: str
    outcomes: dict[str, dict[str, str]] = field(default_factory=lambda: {PEER: {}, FUNCGRAD: {}})
    messages: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, dict[str, float]] = field(default_factory=lambda: {PEER: {}, FUNCGRAD: {}})

    def read(self, way: str, record: Path) -> None:
        """Take in what is recorded of a file."""
        lines = lines_of(record)
        if lines and lines[-1][1] == STARTED:  # stopped with its file, not by itself
            lines.pop()
        for test, outcome, message, seconds in lines:
            if outcome == FINISHED or (way == PEER and message == UNENDED):
                continue  # what was stopped there may pass
            self.outcomes[way][test] = outcome
            if seconds is not None:  # lines of older runs have none
                self.seconds[way][test] = seconds
            if way == FUNCGRAD:
                self.messages[test] = message

    def passing(self) -> list[str]:
        """Tests that were run here and pass on the peer, or were not run there.

        All of a file that cannot be imported here were.
        """
        here, there = self.outcomes[FUNCGRAD], self.outcomes[PEER]
        known = [test for test, end in there.items() if end == "passed"]
        ran = [test for test in known if test in here or test.partition("::")[0] in here]
        return ran + [t for t, end in here.items() if t not in there and end != "skipped"]

    def failing(self) -> list[str]:
        """Tests that pass on the peer and do not on funcgrad."""
        here = self.outcomes[FUNCGRAD]
        return [test for test in self.passing() if here.get(test) != "passed"]

    def on_both(self) -> list[str]:
        """Tests that were run and timed both ways, and pass."""
        here, there = self.outcomes[FUNCGRAD], self.outcomes[PEER]
        timed = self.seconds[FUNCGRAD].keys() & self.seconds[PEER].keys()
        return [t for t in there if t in timed and there[t] == here.get(t) == "passed"]

    def unknown(self) -> list[str]:
        """Tests that fail here and were not run on the peer."""
        here, there = self.outcomes[FUNCGRAD], self.outcomes[PEER]
        return [t for t, end in here.items() if end in ("failed", "error") and t not in there]

    def classes(self) -> Counter[str]:
        """How many tests fail with each message."""
        return Counter(kind_of(self.message(test)) for test in self.failing())

    def message(self, test: str) -> str:
        """What a test ends with on funcgrad, or its file where that could not be imported."""
        of_file = self.messages.get(test.partition("::")[0], UNENDED)
        return self.messages.get(test, of_file)

    def reasons(self) -> Counter[str]:
        """How many tests fail for each reason."""
        return Counter(reason_of(self.message(test)) for test in self.failing())


def reason_of(message: str) -> str:
    """How the page says why a test fails."""
    found = (reason for pattern, reason in REASONS if re.search(pattern, message))
    return next(found, SINGLE)


# The process that runs the tests of one file.


def run_files(peer: str, way: str, jobs: list[Any], most: int, limit: float) -> None:
    """Run files of tests, each in a process that has the peer already, and record them.

    Args:
        peer: What the library was written for.
        way: How to run.
        jobs: For each file, its record and the tests.
        most: Tests of a file, at most; all if 0.
        limit: Seconds for a file.
    """
    for name in ("tests", "tests.recording"):  # libraries have packages of that name, too
        sys.modules.pop(name, None)
    if way == FUNCGRAD:
        importlib.import_module(f"funcgrad.interop.{peer}").install()
    # Not the library: it might compute something, so that JAX has threads, which a fork would lose.
    for needed in (*NEEDED[peer], "pytest"):
        importlib.import_module(needed)
    for record, tests in jobs:
        end = time.time() + limit
        _forget_last(Path(record))  # an earlier run may have been stopped there
        while not _is_finished(record, tests, most):
            known = len(lines_of(Path(record)))
            child = os.fork()
            if child == 0:
                _run_tests(Path(record), most, tests)
            if not _ends(child, end):
                _give_up_last(Path(record))
                break
            if len(lines_of(Path(record))) == known:  # it cannot even begin
                break


def _is_finished(record: str, tests: list[str], most: int) -> bool:
    return {_all_of(test, most) for test in tests} <= {line[0] for line in lines_of(Path(record))}


def _run_tests(record: Path, most: int, tests: list[str]) -> NoReturn:
    """Run tests in this process, which ends with them."""
    import pytest  # noqa: PLC0415 (plugins of libraries import jax)

    log = os.open(record.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    recorder = Recorder(record, lambda items: _sample(items, most))
    pytest.main([*FLAGS, *tests], plugins=[recorder])
    for test in tests:
        recorder.write(_all_of(test, most), FINISHED, "", 0.0)
    os._exit(0)


def _sample(items: list[Any], most: int) -> list[Any]:
    """At most so many of the tests, spread over all of them; all if 0."""
    if not most or len(items) <= most:
        return items
    return [items[i] for i in sorted({round(i * len(items) / most) for i in range(most)})]


def _ends(child: int, end: float) -> bool:
    """Whether a process ends in time; it does not go on after that."""
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.time() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.05)
    return True


def _forget_last(record: Path) -> None:
    """Take away a test within which an earlier run was stopped, so that it begins again."""
    lines = lines_of(record)
    if lines and lines[-1][1] == STARTED:
        _keep(record, lines[:-1])


def _give_up_last(record: Path) -> None:
    """Record a test that was stopped long after its time was over: it is not to begin again."""
    test, outcome, message, start = (lines_of(record) or [["", "", "", 0.0]])[-1]
    if outcome == STARTED and time.time() - start > 2 * SECONDS:
        _keep(record, [*lines_of(record), [test, "error", message, time.time() - start]])


def _keep(record: Path, lines: list[list[Any]]) -> None:
    record.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _all_of(file: str, most: int) -> str:
    """The name under which it is recorded that a file was run."""
    return file if "::" in file else f"{file}#{most}"


# The process that runs them all.


def files_of(folder: Path) -> Iterator[Path]:
    """The files of tests below a folder."""
    found = {*folder.rglob("test_*.py"), *folder.rglob("*_test.py")}
    yield from sorted(path for path in found if path.name not in ("test_util.py", "helpers.py"))


def run_suite(name: str, sources: Path, options: argparse.Namespace) -> Suite:
    """Run the tests of a library both ways."""
    suite = Suite(name, importlib.metadata.version(name))
    library, base = LIBRARIES[name], sources / name
    files = [path.relative_to(base) for path in files_of(base / library.tests)]
    files = [file for file in files if re.search(options.files, str(file))]
    for way in (FUNCGRAD, PEER):
        named = library.peer if way == PEER else way
        stems = ["-".join((named, name, *file.with_suffix("").parts)) for file in files]
        records = [options.out / f"{stem}.jsonl" for stem in stems]
        if not options.recorded and way in options.ways:
            for record in records if options.again else ():
                kept = ("passed", "skipped") if options.again == "failed" else ()
                _keep(record, [line for line in lines_of(record) if line[1] in kept])
            tests = [_asked_for(way, file, suite, options) for file in files]
            _run_all(way, suite, base, list(zip(map(str, records), tests, strict=True)), options)
        for record in records:
            suite.read(way, record)
    for file in files:
        print(f"  {file}: {_counts(suite, str(file))}", flush=True)
    return suite


def _counts(suite: Suite, file: str) -> str:
    passing = [t for t in suite.passing() if t.startswith(file)]
    bad = [t for t in suite.failing() if t.startswith(file)]
    return f"{len(passing) - len(bad)} of {len(passing)}"


def _asked_for(way: str, file: Path, suite: Suite, options: argparse.Namespace) -> list[str]:
    """What is to be run of a file: all, or on the peer the tests alone that failed here."""
    if not options.failing or way == FUNCGRAD:
        return [str(file)]
    here = suite.outcomes[FUNCGRAD].items()
    return [t for t, end in here if t.startswith(str(file)) and end not in ("passed", "skipped")]


def _run_all(
    way: str, suite: Suite, base: Path, jobs: list[Any], options: argparse.Namespace
) -> None:
    """Run files of tests in a process with the one or the other."""
    most = 0 if options.failing and way == PEER else options.most
    jobs = [job for job in jobs if not _is_finished(*job, most)]
    if not jobs:
        return
    listed = options.out / f"{way}-{suite.name}.json"
    listed.write_text(json.dumps(jobs))
    library = LIBRARIES[suite.name]
    command = [sys.executable, __file__, "--peer", library.peer, "--inside", way]
    command += ["--jobs", str(listed), "--most", str(most), "--limit", str(options.limit)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        **dict(library.variables),
    }
    subprocess.run(command, cwd=base, env=environment, check=True)


def table_of(suites: list[Suite], peer: str = JAX) -> str:
    """The table of the page."""
    name = NAMES[peer]
    rows = [
        f"| library, run on | files, tests of each | pass on {name} | on funcgrad | | "
        f"seconds on {name}, here | what stops the rest |",
        "|---|---|---|---|---|---|---|",
    ]
    for suite in suites:
        passing, failing = suite.passing(), suite.failing()
        good = len(passing) - len(failing)
        share = f"{100 * good / max(1, len(passing)):.1f} %"
        why = "; ".join(f"{reason} ({n})" for reason, n in suite.reasons().most_common())
        per_file = Counter(test.partition("::")[0] for test in suite.outcomes[FUNCGRAD])
        files = f"{len(per_file)}, {max(per_file.values(), default=0)} at most"
        named = f"{suite.name} {suite.version}, {time.strftime('%Y-%m-%d')}"
        timed = len(suite.on_both())
        spent = "{:.0f}, {:.0f} ({})".format(*seconds_of(suite), timed) if timed else ""
        cells = [named, files, f"{len(passing)}", f"{good}", share, spent, why]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def report(suite: Suite) -> None:
    """Print the classes of failures, each with a test."""
    print_classes({test: suite.message(test) for test in suite.failing()}, 25)
    passing, both, spent = suite.passing(), suite.on_both(), seconds_of(suite)
    print(
        f"{suite.name} {suite.version}: {len(passing) - len(suite.failing())} of {len(passing)}; "
        f"{len(suite.unknown())} fail here and were not run on the peer; {len(both)} that were "
        f"run both ways and pass take {spent[0]:.0f} s there and {spent[1]:.0f} s here",
        flush=True,
    )


def seconds_of(suite: Suite) -> list[float]:
    """Processor time on the peer and here, of the tests that were run both ways and pass."""
    return [sum(suite.seconds[way][t] for t in suite.on_both()) for way in (PEER, FUNCGRAD)]


def write_table(table: str, peer: str = JAX) -> None:
    """Put rows into the table of the page, in place of those of the same libraries."""
    page, name = PAGES[peer], NAMES[peer]
    made = (
        f"On {name} {importlib.metadata.version(peer)}, by `{COMMANDS[peer]}`. Of each file all "
        f"tests were run, or so many at most; on {name} those that fail here and some of the "
        "others. What was not run there counts as passing there. Seconds are of processor time, "
        "of so many tests that were run both ways and pass:"
    )
    before = page.read_text().partition(BEGIN)[2].partition(END)[0]
    rows = {**_rows(before), **_rows(table)}
    head = table.splitlines()[:2]
    kept = [rows[name] for name in LIBRARIES if name in rows]
    write_between(page, BEGIN, END, "\n".join([made, "", *head, *kept]))


def _rows(table: str) -> dict[str, str]:
    """The rows of a table by the library's name, with which they begin."""
    return {line.split()[1]: line for line in table.splitlines() if line.startswith("| ")}


def missing_sources(names: list[str], sources: Path) -> list[str]:
    """What is not there, and how to get it."""
    said = []
    for name in names:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            said.append(f"{name} is not installed: pip install {name}")
            continue
        library = LIBRARIES[name]
        if not (sources / name / library.tests).is_dir():
            said.append(f"{sources / name} has no tests: {library.how_to_get(name, version)}")
    return said


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.neighbours", description=(__doc__ or "")[:96])
    parser.add_argument("names", nargs="*", help="libraries; all of the peer by default")
    parser.add_argument("--peer", choices=[JAX, AUTOGRAD], default=JAX)
    parser.add_argument("--sources", type=Path, default=Path("neighbours"))
    parser.add_argument("--out", type=Path, default=Path("neighbours-results"))
    parser.add_argument("--most", type=int, default=40, help="tests of a file; 0 for all")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a file")
    parser.add_argument("--files", default="", help="pattern of the files")
    parser.add_argument("--ways", nargs="+", default=[FUNCGRAD, PEER])
    parser.add_argument("--again", choices=["all", "failed"], help="run what is recorded anew")
    parser.add_argument("--failing", action="store_true", help="on the peer only what failed here")
    parser.add_argument("--recorded", action="store_true", help="only what earlier runs recorded")
    parser.add_argument("--write", action="store_true", help="write the table of the page")
    parser.add_argument("--inside", choices=[PEER, FUNCGRAD], help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        jobs = json.loads(options.jobs.read_text())
        run_files(options.peer, options.inside, jobs, options.most, options.limit)
        return 0
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.names or [n for n, it in LIBRARIES.items() if it.peer == options.peer]
    missing = missing_sources(names, options.sources)
    if missing:
        print("\n".join(missing))
        return 2
    suites = []
    for name in names:
        print(name, flush=True)
        suites.append(run_suite(name, options.sources.resolve(), options))
        report(suites[-1])
    table = table_of(suites, options.peer)
    print(table)
    if options.write:
        write_table(table, options.peer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
