"""Examples of names whose docstring has none: ``docs/examples.txt``, executed by the tests.

    python -m docs.tools.examples --write       run them all and write down what they show

A line ``# funcgrad.lax`` says whose names follow; ``name: expression`` is an example of a name, and
the rows below it are what Python shows, indented. ``np`` is NumPy, ``fg`` is funcgrad, ``key`` a
key of random numbers, and the public names of the module are there by themselves.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg

FILE = Path(__file__).parents[1] / "examples.txt"


@dataclass(frozen=True)
class Example:
    """One expression and what Python shows for it."""

    module: str
    name: str
    expression: str
    shown: str

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def parse(text: str) -> list[Example]:
    """The examples of a file."""
    module = ""
    found: list[Example] = []
    for line in text.splitlines():
        if line.startswith("# "):
            module = line.removeprefix("# ")
        elif line.startswith("    "):
            shown = f"{found[-1].shown}\n{line.removeprefix('    ')}".strip("\n")
            found[-1] = replace(found[-1], shown=shown)
        elif line:
            name, _, expression = line.partition(": ")
            found.append(Example(module, name, expression, ""))
    return found


def run(example: Example) -> str:
    """What Python shows for the expression, with four digits."""
    module = importlib.import_module(example.module)
    names: dict[str, Any] = {name: getattr(module, name) for name in module.__all__}
    names.update(np=np, fg=fg, key=fg.random.key(0))
    with np.printoptions(precision=4, suppress=True):
        value = eval(example.expression, names)
        if isinstance(value, float | np.floating):
            return f"{float(value):.4g}"
        text = str(value) if isinstance(value, np.generic) else repr(value)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


@functools.cache
def by_path() -> dict[str, Example]:
    """Path of a public name -> its example."""
    return {example.path: example for example in parse(FILE.read_text(encoding="utf-8"))}


def text_of(examples: list[Example]) -> str:
    """The file: what `parse` reads."""
    lines: list[str] = []
    module = ""
    for example in examples:
        if example.module != module:
            module = example.module
            lines += [""] * bool(lines) + [f"# {module}"]
        lines.append(f"{example.name}: {example.expression}")
        lines += [f"    {row}" for row in example.shown.splitlines()]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Run all examples; with ``--write`` into the file."""
    parser = argparse.ArgumentParser(description="Run the examples of the reference.")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args(arguments)
    examples = parse(FILE.read_text(encoding="utf-8"))
    found = [replace(example, shown=run(example)) for example in examples]
    for old, new in zip(examples, found, strict=True):
        if old.shown != new.shown:
            print(f"{new.path}: {new.expression} shows {new.shown}")
    if args.write:
        FILE.write_text(text_of(found), encoding="utf-8")


if __name__ == "__main__":
    main()
