"""Shared parts of the example programs: arguments that are checked, and pictures.

Each example is a program by itself; it imports this module from its own folder. `command_line` and
`parser` make a command line with `--output`, the file of the picture. A bad value ends the program
with a message and exit code 2.
"""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

HUGE = float("inf")


def number(kind: Callable[[str], Any], is_allowed: Callable[[Any], bool], what: str) -> Any:
    """A type for `add_argument`: text that `kind` reads and that `is_allowed`."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
        if not is_allowed(value):
            raise argparse.ArgumentTypeError(f"{text} is not {what}")
        return value

    return read


def whole(low: int) -> Any:
    """Whole numbers that are at least `low`."""
    return number(int, lambda x: x >= low, f"a whole number of at least {low}")


positive = number(float, lambda x: 0 < x < HUGE, "a positive number")
not_negative = number(float, lambda x: 0 <= x < HUGE, "a number of at least 0")


Number = float | tuple[Any, Any]


def parser(description: str, output: str | None = None, **numbers: Number) -> ArgumentParser:
    """A command line with `--output FILE`, by default `output`, or with `--out-dir FOLDER`.

    Each keyword becomes an option: `lr=0.1` is a positive number, `steps=(1, 200)` a whole number
    of at least 1, 200 by default; a pair may also have a type such as `not_negative` in front, and
    a list of defaults behind.
    """
    made = ArgumentParser(description=description)
    if output is None:
        made.add_argument("--out-dir", type=Path, default=Path(), metavar="FOLDER")
    else:
        made.add_argument("--output", type=Path, default=Path(output), metavar="FILE")
    for name, given in numbers.items():
        low, default = given if isinstance(given, tuple) else (positive, given)
        kind = low if callable(low) else whole(low)
        nargs = "+" if isinstance(default, list) else None
        option = f"--{name.replace('_', '-')}"
        made.add_argument(option, type=kind, default=default, metavar="N", nargs=nargs)
    return made


def parse(made: ArgumentParser, arguments: list[str] | None) -> argparse.Namespace:
    """The arguments, if there is a folder for what the program will write."""
    args = made.parse_args(arguments)
    name, folder = (
        ("--output", args.output.parent) if "output" in args else ("--out-dir", args.out_dir)
    )
    if not folder.is_dir():
        made.error(f"argument {name}: there is no folder {folder}")
    return args


def command_line(
    description: str, output: str | None = None, **numbers: Number
) -> Callable[..., argparse.Namespace]:
    """A function that parses a command line of numbers alone; the options are those of `parser`."""

    def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
        return parse(parser(description, output, **numbers), arguments)

    return parse_arguments


def panels(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Any, Any]:
    """A figure of `width` x `height` inches, and an array (rows, columns) of axes with grids."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for one in axes.flat:
        one.grid(alpha=0.3)
    return figure, axes


def save(figure: Any, path: Path) -> None:
    """Write the picture and say so."""
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")
