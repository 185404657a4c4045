"""Test suites of libraries for JAX, on JAX and on funcgrad: the tables of docs/interop_jax.md.

    python -m tests.neighbours --sources FOLDER              all libraries, a sample of each file
    python -m tests.neighbours --sources FOLDER equinox      one of them
    python -m tests.neighbours --sources FOLDER --most 0     every test
    python -m tests.neighbours --sources FOLDER --write      and the table of the page
    python -m tests.neighbours --recorded --write            that of what was recorded

``FOLDER/<library>`` is the source tree of the release that is installed, with its tests; whatever
is missing is named with the command that gets it. Tests of a file run in a process of their own,
once for JAX and once with the stand-in; a file is stopped after ``--limit`` seconds. What passes on
JAX and not here is listed by class: tests that end with the same message, apart from numbers.
"""

from __future__ import annotations

import argparse
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
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "interop_jax.md"
BEGIN, END = "<!-- suites -->", "<!-- end of suites -->"
JAX, FUNCGRAD = "jax", "funcgrad"
SECONDS = 60
"""Of a single test."""


@dataclass(frozen=True)
class Library:
    """A library and its tests.

    Attributes:
        repository: Where its source trees are; empty if its source archive has the tests.
        tests: The folder of its tests.
        tag: The name of a release there.
    """

    repository: str
    tests: str
    tag: str = "v{}"

    def how_to_get(self, name: str, version: str) -> str:
        """A command that gets the source tree of a release."""
        if not self.repository:
            return (
                f"pip download --no-deps --no-binary :all: {name}=={version}, then unpack it as "
                f"{name}/"
            )
        url = f"https://github.com/{self.repository}"
        return f"git clone --depth 1 --branch {self.tag.format(version)} {url} {name}"


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
}

REASONS = (
    (r"unpack \(expected 2, got 1\)|requires > \S+ devices?", "several devices"),
    (r"b?float16|bfloat", "16-bit floats in traced code"),
    (r"is_deleted|donat", "donation of buffers"),
    (r"numpy_dtype_promotion", "weak integers that become strong, where promotion is strict"),
    (r"weak_type", "weak types of traced values"),
    (r"needs arguments of one dtype", "weak dtypes in programs that are evaluated again"),
    (r"defaultdict|compiler_ir", "primitives and code of a program"),
    (r"not positive definite|Singular matrix", "factorisations that fail raise"),
    (r"MissingNameError", "names that are missing"),
    (r"took more than|did not end", "stopped, or its file could not be imported"),
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
        seconds: By the way it ran and the test.
    """

    name: str
    version: str
    outcomes: dict[str, dict[str, str]] = field(default_factory=lambda: {JAX: {}, FUNCGRAD: {}})
    messages: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, dict[str, float]] = field(default_factory=lambda: {JAX: {}, FUNCGRAD: {}})

    def passing(self) -> list[str]:
        """Tests that pass on JAX."""
        return [test for test, outcome in self.outcomes[JAX].items() if outcome == "passed"]

    def failing(self) -> list[str]:
        """Tests that pass on JAX and do not on funcgrad."""
        here = self.outcomes[FUNCGRAD]
        return [test for test in self.passing() if here.get(test) != "passed"]

    def classes(self) -> Counter[str]:
        """How many tests fail with each message."""
        return Counter(kind_of(self.message(test)) for test in self.failing())

    def message(self, test: str) -> str:
        """What a test ends with on funcgrad, or its file where that could not be imported."""
        of_file = self.messages.get(test.partition("::")[0], "did not end")
        return self.messages.get(test, of_file)

    def reasons(self) -> Counter[str]:
        """How many tests fail for each reason."""
        return Counter(reason_of(self.message(test)) for test in self.failing())


def reason_of(message: str) -> str:
    """How the page says why a test fails."""
    found = (reason for pattern, reason in REASONS if re.search(pattern, message))
    return next(found, SINGLE)


def kind_of(message: str) -> str:
    """A message without what differs from test to test."""
    text = re.sub(r"0x[0-9a-f]+", "0x", " ".join(message.split()))
    return re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "#", text)[:110]


# The process that runs the tests of one file.


class Recorder:
    """A plugin of pytest: runs a sample, and writes a line for each test.

    Args:
        record: The file.
        most: How many tests; all of them if 0.
    """

    def __init__(self, record: Path, most: int) -> None:
        self.record = record
        self.most = most

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.most and len(items) > self.most:
            chosen = {round(i * len(items) / self.most) for i in range(self.most)}
            items[:] = [item for i, item in enumerate(items) if i in chosen]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._write(report.nodeid, "error", str(report.longrepr)[-600:], 0.0)

    def pytest_runtest_protocol(self, item: Any) -> None:
        signal.alarm(SECONDS)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            crash = getattr(report.longrepr, "reprcrash", None)
            text = "" if crash is None else f"{crash.message} ({Path(crash.path).name})"
            self._write(report.nodeid, report.outcome, text[:600], report.duration)
        if report.when == "teardown":
            signal.alarm(0)

    def _write(self, test: str, outcome: str, message: str, seconds: float) -> None:
        with self.record.open("a") as lines:
            lines.write(json.dumps([test, outcome, message, seconds]) + "\n")


def _stop(number: int, frame: Any) -> None:
    raise TimeoutError(f"the test took more than {SECONDS} s")


def run_tests(way: str, record: Path, most: int, files: list[str]) -> None:
    """Run files of tests in this process, and record what became of them."""
    if way == FUNCGRAD:
        from funcgrad.interop.jax import install  # noqa: PLC0415 (JAX's runs know nothing of it)

        install()
    import pytest  # noqa: PLC0415 (plugins of libraries import jax)

    signal.signal(signal.SIGALRM, _stop)
    options = ["-q", "-p", "no:cacheprovider", "--tb=short", *files]
    pytest.main(options, plugins=[Recorder(record, most)])


# The process that runs them all.


def files_of(folder: Path) -> Iterator[Path]:
    """The files of tests below a folder."""
    found = {*folder.rglob("test_*.py"), *folder.rglob("*_test.py")}
    yield from sorted(path for path in found if path.name not in ("test_util.py", "helpers.py"))


def run_suite(name: str, sources: Path, options: argparse.Namespace) -> Suite:
    """Run the tests of a library both ways."""
    suite = Suite(name, importlib.metadata.version(name))
    base = sources / name
    for path in files_of(base / LIBRARIES[name].tests):
        relative = path.relative_to(base)
        if options.files and not re.search(options.files, str(relative)):
            continue
        for way in options.ways:
            record = options.out / f"{way}-{name}-{'-'.join(relative.with_suffix('').parts)}.jsonl"
            is_kept = record.exists() and (options.recorded or (way == JAX and not options.again))
            if not is_kept and not options.recorded:
                _run_file(way, relative, base, record, options)
            lines = record.read_text().splitlines() if record.exists() else []
            for line in lines:
                test, outcome, message, seconds = json.loads(line)
                suite.outcomes[way][test] = outcome
                suite.seconds[way][test] = seconds
                if way == FUNCGRAD:
                    suite.messages[test] = message
        print(f"  {relative}: {_counts(suite, str(relative))}", flush=True)
    return suite


def _counts(suite: Suite, file: str) -> str:
    passing = [t for t in suite.passing() if t.startswith(file)]
    bad = [t for t in suite.failing() if t.startswith(file)]
    return f"{len(passing) - len(bad)} of {len(passing)}"


def _run_file(way: str, file: Path, base: Path, record: Path, options: argparse.Namespace) -> None:
    record.unlink(missing_ok=True)
    record.touch()
    command = [sys.executable, __file__, "--inside", way, "--out", str(record)]
    command += ["--most", str(options.most), str(file)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "OMP_NUM_THREADS": "1",
    }
    with record.with_suffix(".log").open("w") as log, _ended(command, base, environment, log) as p:
        try:
            p.wait(options.limit)
        except subprocess.TimeoutExpired:
            log.write(f"\nstopped after {options.limit} s\n")


@contextmanager
def _ended(
    command: list[str], base: Path, environment: dict[str, str], log: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block."""
    process = subprocess.Popen(command, cwd=base, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def table_of(suites: list[Suite]) -> str:
    """The table of the page."""
    rows = [
        "| library | files, tests of each | pass on JAX | on funcgrad | | what stops the rest |",
        "|---|---|---|---|---|---|",
    ]
    for suite in suites:
        passing, failing = suite.passing(), suite.failing()
        good = len(passing) - len(failing)
        share = f"{100 * good / max(1, len(passing)):.1f} %"
        why = "; ".join(f"{reason} ({n})" for reason, n in suite.reasons().most_common())
        per_file = Counter(test.partition("::")[0] for test in suite.outcomes[JAX])
        ran = f"{len(per_file)}, {max(per_file.values(), default=0)} at most"
        cells = [f"{suite.name} {suite.version}", ran, f"{len(passing)}", f"{good}", share, why]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def report(suite: Suite) -> None:
    """Print the classes of failures, each with a test."""
    failing = suite.failing()
    for kind, count in suite.classes().most_common(25):
        example = next(t for t in failing if kind_of(suite.message(t)) == kind)
        print(f"  {count:4} {kind}\n       {example}")
    both = [t for t in suite.passing() if t not in set(failing)]
    spent = [sum(suite.seconds[way][t] for t in both) for way in (JAX, FUNCGRAD)]
    print(
        f"{suite.name} {suite.version}: {len(both)} of {len(suite.passing())}; tests that pass "
        f"both ways take {spent[0]:.0f} s on JAX and {spent[1]:.0f} s here",
        flush=True,
    )


def write_between(page: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two marks of a page."""
    head, _, rest = page.read_text().partition(begin)
    page.write_text(f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


def write_table(table: str) -> None:
    """Put the table into the page, and say what it was made by."""
    stamp = time.strftime("%Y-%m-%d")
    jax = importlib.metadata.version("jax")
    command = "`python -m tests.neighbours --write`"
    made = f"On JAX {jax}, {stamp}, by {command}; of each file all tests, or so many at most:"
    write_between(PAGE, BEGIN, END, f"{made}\n\n{table}")


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
    parser.add_argument("names", nargs="*", help="libraries; all by default")
    parser.add_argument("--sources", type=Path, default=Path("neighbours"))
    parser.add_argument("--out", type=Path, default=Path("neighbours-results"))
    parser.add_argument("--most", type=int, default=40, help="tests of a file; 0 for all")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a file")
    parser.add_argument("--files", help="pattern of the files")
    parser.add_argument("--ways", nargs="+", default=[JAX, FUNCGRAD])
    parser.add_argument("--again", action="store_true", help="run JAX also where it is recorded")
    parser.add_argument("--recorded", action="store_true", help="only what earlier runs recorded")
    parser.add_argument("--write", action="store_true", help="write the table of the page")
    parser.add_argument("--inside", choices=[JAX, FUNCGRAD], help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        run_tests(options.inside, options.out, options.most, options.names)
        return 0
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.names or list(LIBRARIES)
    missing = missing_sources(names, options.sources)
    if missing:
        print("\n".join(missing))
        return 2
    suites = []
    for name in names:
        print(name, flush=True)
        suites.append(run_suite(name, options.sources.resolve(), options))
        report(suites[-1])
    table = table_of(suites)
    print(table)
    if options.write:
        write_table(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
