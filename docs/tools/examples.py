"""Examples of names whose docstring has none: ``docs/examples*.txt``, executed by the tests.

    python -m docs.tools.examples --write       run them all and write down what they show

``examples_numpy.txt`` and ``examples_scipy.txt`` have those of functions that NumPy and SciPy have
too: the tests evaluate the same expressions with the original functions.

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
from types import ModuleType
from typing import Any

import numpy as np

import funcgrad as fg

FILES = sorted(Path(__file__).parents[1].glob("examples*.txt"))


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


def value(example: Example, module: ModuleType) -> Any:
    """The value of the expression with the public names of a module."""
    public = getattr(module, "__all__", dir(module))
    names: dict[str, Any] = {name: getattr(module, name) for name in public}
    names.update(np=np, fg=fg, key=fg.random.key(0))
    return eval(example.expression, names)


def run(example: Example) -> str:
    """What Python shows for the expression, with four digits."""
    return shown(value(example, importlib.import_module(example.module)))


def shown(value: Any) -> str:
    """What Python shows for a value, with four digits and without addresses."""
    with np.printoptions(precision=4, suppress=True):
        return re.sub(r" at 0x[0-9a-f]+", "", repr(rounded(value)))


def rounded(value: Any) -> Any:
    """Numbers, also those in tuples and lists, to four digits; all else as it is."""
    if isinstance(value, complex | np.complexfloating):
        return type(value)(complex(float(f"{value.real:.4g}"), float(f"{value.imag:.4g}")))
    if isinstance(value, float | np.floating):
        return type(value)(f"{value:.4g}")
    if isinstance(value, tuple | list):
        make = getattr(value, "_make", type(value))
        return make([rounded(item) for item in value])
    return value


@functools.cache
def by_path() -> dict[str, Example]:
    """Path of a public name -> its example."""
    found = [parse(file.read_text(encoding="utf-8")) for file in FILES]
    return {example.path: example for examples in found for example in examples}


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
    """Run all examples; with ``--write`` into the files."""
    parser = argparse.ArgumentParser(description="Run the examples of the reference.")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args(arguments)
    for file in FILES:
        examples = parse(file.read_text(encoding="utf-8"))
        found = [replace(example, shown=run(example)) for example in examples]
        for old, new in zip(examples, found, strict=True):
            if old.shown != new.shown:
                print(f"{new.path}: {new.expression} shows {new.shown}")
        if args.write:
            file.write_text(text_of(found), encoding="utf-8")


if __name__ == "__main__":
    main()
