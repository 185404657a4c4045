"""``python -m tests.numerics``: the errors of all functions, or of some."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import Any

from tests.numerics import report
from tests.numerics.measure import TABLES, measure


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.numerics", description=__doc__)
    parser.add_argument("names", nargs="*", help="functions; all of them if there is none")
    parser.add_argument("--write", action="store_true", help="the record and the page")
    args = parser.parse_args()
    os.environ["FUNCGRAD_KEEP_SUBNORMALS"] = "1"
    errors = measure(args.names)
    if args.write:
        known = report.recorded() if args.names else {}
        merged = {table: {**known.get(table, {}), **found} for table, found in errors.items()}
        report.write({table: in_order(merged[table], names) for table, names in TABLES.items()})


def in_order(errors: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: errors[name] for name in names if name in errors}


main()
