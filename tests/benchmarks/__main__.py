"""Measure funcgrad beside its peers.

    python -m tests.benchmarks                                   the speed of every row
    python -m tests.benchmarks --set fresh                       that nothing was tuned for
    python -m tests.benchmarks --only stencils 'softmax*' --threads 1 2
    python -m tests.benchmarks --measure speed first busy memory --dtype float32 float64
    python -m tests.benchmarks --output docs/benchmarks.md --plot docs/benchmarks

The peers (JAX, PyTorch, HIPS autograd) come with the `bench` extra; those that are not installed
are left out. Every result is compared with NumPy's in float64 before anything is timed.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.libraries import PEERS, installed, load
from tests.benchmarks.measures import MEASURES, Record, Setting, import_record, measure
from tests.benchmarks.report import OURS, pages, side_by_side
from tests.benchmarks.workload import GROUPS, SETS, SIZES, Row, all_rows, select, set_of

MARKER = "<!-- measured: everything below is written by python -m tests.benchmarks -->"


def settings(args: argparse.Namespace) -> Iterator[Setting]:
    """Every combination of dtype and threads."""
    for dtype in args.dtype:
        for threads in args.threads:
            yield Setting(
                libraries=(OURS, *installed(args.peers)),
                dtype=dtype,
                size=args.size,
                threads=threads,
                rounds=args.rounds,
                first_rounds=args.first_rounds,
                busy_calls=args.busy_calls,
            )


def possible(rows: Sequence[Row]) -> list[Row]:
    """Those that funcgrad has the functions for; the others are reported."""
    ours, found = load([OURS], "float32")[OURS], []
    for row in rows:
        missing = ours.lacks(row.workload.needs)
        if missing:
            print(f"left out: {row.name} needs {', '.join(missing)}", file=sys.stderr)
        else:
            found.append(row)
    return found


def rows_of(sets: Sequence[str]) -> dict[str, Row]:
    """The rows of some sets."""
    return {name: row for name, row in all_rows().items() if set_of(row.group) in sets}


def measure_all(args: argparse.Namespace, rows: Sequence[Row]) -> Iterator[Record]:
    """Every measure of every row; tells on stderr what it is at.

    Only the speed is measured for every dtype and number of threads, the rest for the first of
    them.
    """
    for number, setting in enumerate(settings(args)):
        for name in args.measure:
            if name in MEASURES and (name == "speed" or number == 0):
                for row in rows:
                    at = f"{setting.dtype}, {setting.threads} threads"
                    print(f"{row.name}: {name}, {at}", file=sys.stderr)
                    yield from measure(name, row, setting)
    if "import" in args.measure:
        yield import_record(["numpy", OURS, *installed(args.peers)], args.first_rounds)


def read(path: Path) -> list[Record]:
    """The records of an earlier run."""
    return [Record(**record) for record in json.loads(path.read_text())]


def latest(records: Sequence[Record]) -> list[Record]:
    """Of records of the same row, measure and setting only the last, group by group."""
    found = {(r.row, r.measure, r.dtype, r.size, r.threads): r for r in records}
    groups = {group: number for number, group in enumerate(GROUPS)}
    return sorted(found.values(), key=lambda record: groups[record.group])


def write_json(path: Path, records: Sequence[Record]) -> None:
    """Write records so that `read` finds them."""
    path.write_text(json.dumps([dataclasses.asdict(record) for record in records], indent=1) + "\n")


def write_page(texts: dict[str, str], output: Path | None) -> None:
    """Print the results of each set, or put them into a page; it keeps those of other sets."""
    if output is None:
        print("\n\n".join(texts.values()))
        return
    kept, _, old = (output.read_text() if output.exists() else "").partition(MARKER)
    texts = {name: texts.get(name, part_of(old, name)) for name in SETS}
    parts = [f"{beginning(name)}\n\n{text}" for name, text in texts.items() if text]
    output.write_text("\n\n".join([f"{kept}{MARKER}", side_by_side(texts), *parts]) + "\n")


def beginning(name: str) -> str:
    """The comment before the part of a page that is about a set."""
    return f"<!-- {name} rows -->"


def part_of(text: str, name: str) -> str:
    """What a page says about a set."""
    part = text.partition(beginning(name))[2]
    return part.partition("\n<!-- ")[0].strip()


def pictures(args: argparse.Namespace, records: Sequence[Record]) -> dict[str, list[str]]:
    """Draw the pictures if they are asked for; the Markdown that shows them, by group."""
    if args.plot is None:
        return {}
    charts = importlib.import_module("tests.benchmarks.charts")  # only here: it needs Matplotlib
    base = (args.output or Path("page")).resolve().parent
    return {
        group: [f"![{path.stem}]({os.path.relpath(path.resolve(), base)})" for path in paths]
        for group, paths in charts.draw(records, args.plot).items()
    }


def positive(text: str) -> int:
    """A whole number above zero."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def parser() -> argparse.ArgumentParser:
    """The command line."""
    processors = len(os.sched_getaffinity(0))
    found = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description="Measure funcgrad beside its peers."
    )
    add = found.add_argument
    add(
        "--only",
        nargs="+",
        metavar="PATTERN",
        default=["*"],
        help="rows or groups, as a shell matches",
    )
    add("--set", nargs="+", choices=SETS, default=list(SETS), help="tuned rows, fresh ones")
    add("--list", action="store_true", help="show the rows and what they compute, measure nothing")
    add(
        "--measure",
        nargs="+",
        choices=[*MEASURES, "import"],
        default=["speed"],
        help="what to measure",
    )
    add("--size", choices=SIZES, default="normal", help="of the problems")
    add("--dtype", nargs="+", choices=("float32", "float64"), default=["float32"])
    add("--threads", nargs="+", type=positive, default=[processors], help="processors to use")
    add("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="whom to compare with")
    add("--rounds", type=positive, default=9, help="samples of every side")
    add("--first-rounds", type=positive, default=3, help="new processes for each first call")
    add("--busy-calls", type=positive, default=100, help="single calls beside a spinning process")
    add(
        "--input",
        nargs="+",
        type=Path,
        default=[],
        help="records of earlier runs to show as well, where this run has none",
    )
    add("--json", type=Path, help="file to write the records into")
    add("--output", type=Path, help="page to write the tables into, below its marker")
    add("--plot", type=Path, metavar="FOLDER", help="folder to write pictures into")
    add("--show", action="store_true", help="measure nothing, show what --input has")
    return found


def main() -> None:
    """Entry point."""
    arguments = parser()
    args = arguments.parse_args()
    try:
        rows = list(select(rows_of(args.set), args.only))
    except ValueError as error:
        arguments.error(f"argument --only: {error}")
    if args.list:
        for row in rows:
            print(f"{row.group:16} {row.name:32} {row.title(args.size)}")
        return
    records = [record for path in args.input for record in read(path)]
    if not args.show:
        for record in measure_all(args, possible(rows)):
            records.append(record)
            if args.json:  # after each row: nothing is lost where the rest is interrupted
                write_json(args.json, records)
    records = latest(records)
    if args.json:
        write_json(args.json, records)
    write_page(pages(records, pictures(args, records)), args.output)
    failures = [record for record in records if record.error]
    for record in failures:
        print(f"{record.row}: {record.measure} failed: {record.error}", file=sys.stderr)
    sys.exit(int(bool(failures)))


if __name__ == "__main__":
    main()
