"""Measure funcgrad against its peers; prints ratios with their spread as Markdown.

    python tests/benchmarks/run.py                          all rows
    python tests/benchmarks/run.py --rows eager-grad digits-step --rounds 40
    python tests/benchmarks/run.py --output docs/benchmarks.md

The peers (JAX and HIPS autograd) come with the `bench` extra; without them only funcgrad's own
times are shown. Both sides of a row run in one process, turn by turn; a ratio is taken within each
round, and the table shows the median and the quartiles of these ratios.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import fresh
from libraries import load_all
from report import Line, comparison_lines, duration, machine, table
from rows import ROWS
from stopwatch import Spread, interleave

MARKER = "<!-- measured: everything below is written by tests/benchmarks/run.py -->"

FRESH_ROUNDS = 9


def cold_lines(args: argparse.Namespace) -> list[Line]:
    """Cold compilation of the digits step, right after import and after a first small jit."""
    lines = []
    names = [library.name for library in load_all()]
    for started, when in ((False, "first jit of the process"), (True, "after another jit")):
        phases = fresh.cold_compile(names, min(args.rounds, FRESH_ROUNDS), started)
        goal = "at most 1.5 times jax's time"
        lines += comparison_lines(f"cold compile, digits step, {when}", goal, phases.pop("total"))
        for name in names:
            parts = (f"{p} {duration(c.time(name)).split(' [')[0]}" for p, c in phases.items())
            lines.append(Line("", f"{name}, of which", ", ".join(parts)))
    return lines


def reuse_lines(args: argparse.Namespace) -> list[Line]:
    """How many kernels two processes compile, and how many for a new batch size."""
    lines = []
    for process, counts in zip(
        ("first process", "second process"), fresh.kernel_reuse(), strict=True
    ):
        figure = (
            f"{counts['compiled']} compiled, {counts['loaded']} loaded; "
            f"new batch size: {counts['compiled_for_new_batch']} compiled; "
            f"Numba {'imported' if counts['numba_imported'] else 'not imported'}"
        )
        what, goal = (
            ("", "")
            if lines
            else ("kernels of the digits step", "second process 0, new batch size 0")
        )
        lines.append(Line(what, process, figure, "", goal))
    return lines


def import_lines(args: argparse.Namespace) -> list[Line]:
    """Import times in fresh processes, with NumPy's as the base."""
    modules = ["numpy", *(library.name for library in load_all())]
    comparison = fresh.import_times(modules, min(args.rounds, FRESH_ROUNDS))
    base = comparison.samples["numpy"]
    lines = [Line("import, fresh process", "numpy", duration(comparison.time("numpy")))]
    for module in modules[1:]:
        extra = [t - b for t, b in zip(comparison.samples[module], base, strict=True)]
        figure = f"numpy + {duration(Spread.of(extra))}"
        goal = "at most numpy + 150 ms" if module == "funcgrad" else ""
        lines.append(Line("", module, figure, "", goal))
    return lines


FRESH_ROWS: dict[str, Callable[[argparse.Namespace], list[Line]]] = {
    "cold-compile": cold_lines,
    "kernel-reuse": reuse_lines,
    "import": import_lines,
}


def row_lines(key: str, args: argparse.Namespace) -> list[Line]:
    """Measure one row."""
    print(f"measuring {key} ...", file=sys.stderr)
    if key in FRESH_ROWS:
        return FRESH_ROWS[key](args)
    row = ROWS[key]
    libraries = {library.name: library for library in load_all()}
    comparison = interleave(row.sides(libraries, args.tiny), args.rounds)
    return comparison_lines(row.title, row.goal, comparison)


def write(text: str, output: Path | None) -> None:
    """Print the result, or put it into a page below its marker."""
    if output is None:
        print(text)
        return
    page = output.read_text().partition(MARKER)[0] if output.exists() else ""
    output.write_text(f"{page}{MARKER}\n\n{text}\n")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    keys = [*ROWS, *FRESH_ROWS]
    parser = argparse.ArgumentParser(description="Measure funcgrad against its peers.")
    parser.add_argument(
        "--rows", nargs="+", choices=keys, default=keys, metavar="ROW", help=", ".join(keys)
    )
    parser.add_argument("--rounds", type=int, default=25, help="samples of every side")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--output", type=Path, help="page to write the result into")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("argument --rounds: at least 1")
    return args


def main() -> None:
    """Entry point."""
    args = parse_arguments()
    lines = [line for key in args.rows for line in row_lines(key, args)]
    write(f"{machine()}\n- rounds: {args.rounds}\n\n{table(lines)}", args.output)


if __name__ == "__main__":
    main()
