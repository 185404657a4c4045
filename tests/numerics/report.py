"""Writes the tables of docs/numerics.md from `errors.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RECORDED = FOLDER / "errors.json"
PAGE = FOLDER.parents[1] / "docs" / "numerics.md"
MARKERS = {
    table: (f"<!-- table of {table} functions -->", "<!-- end of table -->")
    for table in ("elementary", "special")
}


def number(x: float) -> str:
    """An error in few digits."""
    return f"{x:.2f}" if x < 10 else f"{x:.0f}" if x < 1e5 else f"{x:.0e}"


def place(args: list[Any]) -> str:
    return ", ".join(f"{x:.6g}" for x in args)


def elementary(errors: dict[str, Any]) -> list[str]:
    lines = [
        "| function | float64 | at | single | NumPy | float32 | all sizes | single | NumPy |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, of in errors.items():
        double, single = of["float64"], of["float32"]
        cells = [
            f"`{name}`",
            number(double["arrays"]["ulp"]),
            place(double["arrays"]["at"]),
            number(double["single"]["ulp"]),
            number(double["numpy"]["ulp"]),
            number(single["arrays"]["ulp"]),
            number(single["sweep"]["ulp"]) if "sweep" in single else "",
            number(single["single"]["ulp"]),
            number(single["numpy"]["ulp"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def special(errors: dict[str, Any]) -> list[str]:
    lines = [
        "| function | float64: worst | at | middle | beyond its condition | float32: worst |",
        "|---|---|---|---|---|---|",
    ]
    for name, of in errors.items():
        double = of["float64"]
        cells = [
            f"`{name}`",
            number(double["ulp"]),
            place(double["at"]),
            number(double["middle"]),
            number(double["conditioned"]),
            number(of["float32"]["ulp"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def with_tables(page: str, errors: dict[str, Any]) -> str:
    """The text of the page with the tables of the record."""
    for table, write in (("elementary", elementary), ("special", special)):
        start, end = MARKERS[table]
        before, rest = page.split(start)
        _, after = rest.split(end, 1)
        body = "\n".join(write(errors[table]))
        page = f"{before}{start}\n\n{body}\n\n{end}{after}"
    return page


def recorded() -> dict[str, Any]:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def write(errors: dict[str, Any]) -> None:
    """Keep a record, one line a function, and renew the page."""
    lines = []
    for table, of in errors.items():
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in of.items())
        lines.append(f"{json.dumps(table)}: {{\n{rows}\n}}")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), errors), encoding="utf-8")
