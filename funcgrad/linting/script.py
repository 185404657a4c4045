"""``python -m funcgrad lint script.py``: lint every function that a script differentiates.

``python -m funcgrad lint --rules`` lists the rules, or shows the pages of some.

The script runs without compilation, so that functions get values; each function is linted before
its first derivative is taken, at the arguments of that call. Nothing but the package's names of
derivatives is replaced, and they are put back.
"""

from __future__ import annotations

import argparse
import functools
import os
import runpy
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from funcgrad.base.annotations import Function
from funcgrad.base.pytree import tree_leaves
from funcgrad.core.observers import attach, detach
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.jit import disable_jit
from funcgrad.linting.calls import CallLog, retraces, watching
from funcgrad.linting.checker import chosen, lint
from funcgrad.linting.findings import LintReport
from funcgrad.linting.rules import RULES

DIFFERENTIATES = ("grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian")
"""Transformations of a function, with ``argnums``, into one of the same arguments."""
AT_POINTS: dict[str, Callable[..., Sequence[Any]]] = {
    "vjp": lambda *primals, has_aux=False: primals,
    "jvp": lambda primals, tangents, has_aux=False: primals,
    "linearize": lambda *primals, has_aux=False: primals,
}
"""Derivatives at a point, which is found in their arguments behind the function."""
NAMES = ", ".join((*DIFFERENTIATES, *AT_POINTS))
_FOLDER = str(Path(__file__).parents[1]) + os.sep


def ignored_by_project(folder: Path) -> list[str]:
    """The rules that ``[tool.funcgrad.lint] ignore`` of the nearest pyproject.toml switches off.

    Args: folder: Where to begin; folders around it are next.
    Raises: ArgumentError: The file is no TOML, or it names what is no list of rules.
    """
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            try:
                table = tomllib.loads(file.read_text(encoding="utf-8"))
            except tomllib.TOMLDecodeError as error:
                raise ArgumentError(f"{file}: {error}") from None
            for name in ("tool", "funcgrad", "lint"):
                table = table.get(name, {})
            return _checked(table.get("ignore", []), file)
    return []


def _checked(ignore: Any, file: Path) -> list[str]:
    """The names of rules that a file gives."""
    if not isinstance(ignore, list):
        raise ArgumentError(f'{file}: ignore is a list, such as ignore = ["kink"], not {ignore!r}')
    try:
        chosen(ignore, None)
    except ArgumentError as error:
        raise ArgumentError(f"{file}: {error}") from None
    return ignore


def lint_script(
    package: ModuleType,
    path: str,
    arguments: Sequence[str] = (),
    ignore: Iterable[str] = (),
    reports: list[LintReport] | None = None,
) -> list[LintReport]:
    """Run a script and lint what it differentiates.

    Args:
        package: The module from which scripts take `grad`: funcgrad.
        path: The script.
        arguments: Its arguments.
        ignore: Names of rules that do not look.
        reports: A list that reports are added to, which has them also if the script fails.
    Returns: A report for each function, in the order of their first derivatives.

    Raises:
        ArgumentError: There is no rule of a name.
        Exception: The script raises it.
    """
    chosen(ignore, None)
    reports = [] if reports is None else reports
    seen: set[CodeType | int] = set()

    def before(f: Function, args: Sequence[Any], kwargs: dict[str, Any], argnums: Any) -> None:
        key = getattr(f, "__code__", id(f))
        if key in seen or any(isinstance(x, Tracer) for x in tree_leaves((args, kwargs))):
            return
        seen.add(key)
        detach(log)  # of the calls that lint makes
        try:
            with disable_jit(False):  # what lint runs many times is compiled
                reports.append(lint(f, *args, argnums=argnums, ignore=ignore, **kwargs))
        finally:
            attach(log)

    log = CallLog()
    before_script = sys.argv, sys.path
    sys.argv = [path, *arguments]
    sys.path = [str(Path(path).resolve().parent), *sys.path]  # as if Python ran it
    try:
        # The status with which a script ends is its own affair.
        with watching(log), replaced(package, before), disable_jit(), suppress(SystemExit):
            runpy.run_path(path, run_name="__main__")
    finally:
        sys.argv, sys.path = before_script
        reports += _of_calls(Path(path).name, log, ignore)
    return reports


def _of_calls(script: str, log: CallLog, ignore: Iterable[str]) -> list[LintReport]:
    """A report on the compiled functions of a script, if there is something to say of them."""
    rule = RULES["retraced"]
    found = [] if rule.name in set(ignore) else [rule.found(*said) for said in retraces(log.calls)]
    found = [finding for finding in found if not finding.is_ignored]
    return [LintReport(script, found, [rule.name])] if found else []


@contextmanager
def replaced(package: ModuleType, before: Callable[[Any, Any, Any, Any], None]) -> Iterator[None]:
    """Call a function before each derivative that is taken, with what is differentiated where.

    Args:
        package: funcgrad.
        before: Called with a function, its arguments, its keyword arguments and ``argnums``.
    """
    originals = {name: getattr(package, name) for name in (*DIFFERENTIATES, *AT_POINTS)}

    def watched(original: Function) -> Function:
        @functools.wraps(original)
        def transformation(fun: Function, argnums: Any = 0, *options: Any, **names: Any) -> Any:
            derivative = original(fun, argnums, *options, **names)

            @functools.wraps(derivative)
            def call(*args: Any, **kwargs: Any) -> Any:
                before(fun, args, kwargs, argnums)
                return derivative(*args, **kwargs)

            return call

        return transformation

    def watched_at(original: Function, point: Function) -> Function:
        @functools.wraps(original)
        def derivative(fun: Function, *args: Any, **options: Any) -> Any:
            before(fun, point(*args, **options), {}, None)
            return original(fun, *args, **options)

        return derivative

    for name, original in originals.items():
        point = AT_POINTS.get(name)
        setattr(package, name, watched_at(original, point) if point else watched(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(package, name, original)


def _show(names: Sequence[str]) -> int:
    """Print the pages of rules, or a line for each rule if there is no name."""
    unknown = [name for name in names if name not in RULES]
    if unknown:
        print(f"lint has no rule {unknown[0]!r}; --rules lists them", file=sys.stderr)
        return 2
    pages = [RULES[name].page for name in names]
    rows = [f"{rule.name:22}{rule.severity:9}{rule.summary}" for rule in RULES.values()]
    print("\n\n\n".join(pages) if names else "\n".join(rows))
    return 0


def main(package: ModuleType, arguments: Sequence[str]) -> int:
    """Lint a script, or show rules.

    Returns 1 if a rule found an error or a warning, 2 if the script, or the command, fails.

    Args:
        package: funcgrad.
        arguments: Those of the command, after ``lint``.
    """
    parser = argparse.ArgumentParser(
        prog="python -m funcgrad lint",
        description=f"Lint every function that a script gives to {NAMES}.",
    )
    parser.add_argument("script", nargs="?")
    parser.add_argument("arguments", nargs="*", help="of the script, after --")
    parser.add_argument("--ignore", nargs="+", default=[], metavar="RULE", help="to leave out")
    parser.add_argument(
        "--rules", nargs="*", metavar="RULE", help="show what rules look for and why, or list all"
    )
    options = parser.parse_args(arguments)
    if options.rules is None and options.script is None:
        parser.error("a script is needed, before --ignore, or --rules")
    if options.rules is not None:
        return _show(options.rules)
    reports: list[LintReport] = []
    try:
        folder = Path(options.script).resolve().parent
        ignore = [*options.ignore, *ignored_by_project(folder)]
        chosen(ignore, None)
        Path(options.script).read_bytes()  # or say so, before anything runs
    except (OSError, ArgumentError) as error:
        print(error, file=sys.stderr)
        return 2
    failure = None
    try:
        lint_script(package, options.script, options.arguments, ignore, reports)
    except Exception as error:
        failure = error
    return _told(reports, failure)


def _told(reports: Sequence[LintReport], failure: Exception | None) -> int:
    """Print reports, and the error with which a script has ended; the status of the command."""
    for report in reports:
        print(report)
    if failure is not None:
        print("the script ended with an error:", file=sys.stderr)
        frames = traceback.extract_tb(failure.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(("<frozen", _FOLDER))]
        print(*traceback.format_list(own), sep="", end="", file=sys.stderr)
        print(*traceback.format_exception_only(failure), sep="", end="", file=sys.stderr)
        return 2
    if not reports:
        print(f"the script takes no derivative with {NAMES}")
    bad = [found for report in reports for found in report if found.severity != "note"]
    return int(bool(bad))
