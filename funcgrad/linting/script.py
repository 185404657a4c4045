"""``python -m funcgrad lint script.py``: lint every function that a script differentiates.

``python -m funcgrad lint --rules`` lists the rules, or shows the pages of some.

The script runs without compilation, so that functions get values; each function is linted before
its first derivative is taken, at the arguments of that call. Nothing but the two names of
the package is replaced, and they are put back.
"""

from __future__ import annotations

import argparse
import functools
import runpy
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from funcgrad.base.pytree import tree_leaves
from funcgrad.core.observers import attach, detach
from funcgrad.core.trace import Tracer
from funcgrad.errors import FuncgradError
from funcgrad.higher_order.jit import disable_jit
from funcgrad.linting.calls import CallLog, retraces, watching
from funcgrad.linting.checker import lint
from funcgrad.linting.findings import LintReport
from funcgrad.linting.rules import RULES

DIFFERENTIATES = ("grad", "value_and_grad")


def ignored_by_project(folder: Path) -> list[str]:
    """The rules that ``[tool.funcgrad.lint] ignore`` of the nearest pyproject.toml switches off.

    Args:
        folder: Where to begin; folders around it are next.
    """
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            table = tomllib.loads(file.read_text(encoding="utf-8"))
            for name in ("tool", "funcgrad", "lint"):
                table = table.get(name, {})
            return list(table.get("ignore", ()))
    return []


def lint_script(
    package: ModuleType, path: str, arguments: Sequence[str] = (), ignore: Iterable[str] = ()
) -> list[LintReport]:
    """Run a script and lint what it differentiates.

    Args:
        package: The module from which scripts take `grad`: funcgrad.
        path: The script.
        arguments: Its arguments.
        ignore: Names of rules that do not look.

    Returns:
        A report for each function, in the order of their first derivatives.

    Raises:
        OSError: The script cannot be read.
    """
    reports: list[LintReport] = []
    seen: set[CodeType | int] = set()

    def before(
        f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], argnums: Any
    ) -> None:
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
    before_script = sys.argv
    sys.argv = [path, *arguments]
    try:
        # The status with which a script ends is its own affair.
        with watching(log), replaced(package, before), disable_jit(), suppress(SystemExit):
            runpy.run_path(path, run_name="__main__")
    finally:
        sys.argv = before_script
    return reports + _of_calls(Path(path).name, log, ignore)


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
    originals = {name: getattr(package, name) for name in DIFFERENTIATES}

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def transformation(
            fun: Callable[..., Any], argnums: Any = 0, *options: Any, **names: Any
        ) -> Any:
            derivative = original(fun, argnums, *options, **names)

            @functools.wraps(derivative)
            def call(*args: Any, **kwargs: Any) -> Any:
                before(fun, args, kwargs, argnums)
                return derivative(*args, **kwargs)

            return call

        return transformation

    for name, original in originals.items():
        setattr(package, name, watched(original))
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
    """Lint a script, or show rules; 1 if a rule found an error or a warning, 2 for a failure.

    Args:
        package: funcgrad.
        arguments: Those of the command, after ``lint``.
    """
    parser = argparse.ArgumentParser(
        prog="python -m funcgrad lint",
        description="Lint every function that a script differentiates with grad or value_and_grad.",
    )
    parser.add_argument("script", nargs="?")
    parser.add_argument("arguments", nargs="*", help="of the script, after --")
    parser.add_argument("--ignore", nargs="+", default=[], metavar="RULE", help="to leave out")
    parser.add_argument(
        "--rules", nargs="*", metavar="RULE", help="show what rules look for and why, or list all"
    )
    options = parser.parse_args(arguments)
    if options.rules is None and options.script is None:
        parser.error("a script is needed, or --rules")
    if options.rules is not None:
        return _show(options.rules)
    ignore = [*options.ignore, *ignored_by_project(Path(options.script).resolve().parent)]
    try:
        reports = lint_script(package, options.script, options.arguments, ignore)
    except (OSError, FuncgradError) as error:
        print(error, file=sys.stderr)
        return 2
    for report in reports:
        print(report)
    if not reports:
        print("the script takes no derivative with grad or value_and_grad")
    bad = [found for report in reports for found in report if found.severity != "note"]
    return int(bool(bad))
