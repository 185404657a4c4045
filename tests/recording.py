"""Tests of other projects, recorded one by one: shared by `suite_of_jax`, `meshes`, `neighbours`.

A process runs tests of a file with `Recorder`, which writes lines to a file of results: the name of
a test, what became of it, a message, seconds of processor time. The process that started it reads
them; a test that began and never ended was stopped with its process.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "interop_jax.md"
FLAGS = ("-q", "-p", "no:cacheprovider", "--tb=short")
SECONDS = 60
"""For a single test, of processor time or as the clock has it."""
UNENDED = "did not end"
"""The message of a test that was stopped."""
STARTED = "started"
"""What became of a test that never ended."""
FINISHED = "finished"
"""What became of a file, or as many of its tests as were asked for."""


def lines_of(record: Path) -> list[list[Any]]:
    """What a file of results says: a test, what became of it, a message, seconds."""
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []


class Recorder:
    """A plugin of pytest: runs tests but for what is recorded, and writes lines for each of them.

    Args:
        record: The file of results.
        choose: From the tests that were found, those to run; all by default.
        timer: The clock that stops a test: of processor time, or ``signal.ITIMER_REAL``.
    """

    def __init__(
        self,
        record: Path,
        choose: Callable[[list[Any]], list[Any]] = list,
        timer: int = signal.ITIMER_PROF,
    ) -> None:
        self.record = record
        self.choose = choose
        self.timer = timer
        self.recorded = {line[0] for line in lines_of(record)}
        self.spent = 0.0
        number = signal.SIGPROF if timer == signal.ITIMER_PROF else signal.SIGALRM
        signal.signal(number, self._stop)

    def _stop(self, number: int, frame: Any) -> None:
        raise TimeoutError(f"the test took more than {SECONDS} s")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in self.choose(items) if item.nodeid not in self.recorded]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write(report.nodeid, "error", str(report.longrepr)[-600:], 0.0)

    def pytest_runtest_logstart(self, nodeid: str) -> None:  # plugins replace the protocol
        self.write(nodeid, STARTED, UNENDED, time.time())
        self.spent = time.process_time()
        signal.setitimer(self.timer, SECONDS)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            crash = getattr(report.longrepr, "reprcrash", None)
            text = "" if crash is None else f"{crash.message} ({Path(crash.path).name})"
            spent = time.process_time() - self.spent
            self.write(report.nodeid, report.outcome, text[:600], spent)
        if report.when == "teardown":
            signal.setitimer(self.timer, 0)

    def write(self, test: str, outcome: str, message: str, seconds: float) -> None:
        """Append what became of a test."""
        self.append([test, outcome, message, seconds])

    def append(self, line: Sequence[Any]) -> None:
        with self.record.open("a") as lines:
            lines.write(json.dumps(line) + "\n")


def kind_of(message: str) -> str:
    """A message without what differs from test to test."""
    text = re.sub(r"0x[0-9a-f]+", "0x", " ".join(message.split()))
    return re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "#", text)[:110]


def print_classes(messages: Mapping[str, str], most: int | None, examples: int | None = 1) -> None:
    """Print classes of failures, the largest first, with so many of their tests."""
    for kind, number in Counter(map(kind_of, messages.values())).most_common(most):
        named = [test for test, message in messages.items() if kind_of(message) == kind]
        print(f"  {number:4} {kind}\n       {', '.join(named[:examples])}")


def out_of_scope(listed: Path) -> dict[str, str]:
    """Names of tests that are not counted, with the reasons: lines below headings."""
    found, reason = {}, ""
    for line in listed.read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line.strip():
            found[line.strip()] = reason
    return found


def write_between(page: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two marks of a page."""
    head, _, rest = page.read_text().partition(begin)
    page.write_text(f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}")
