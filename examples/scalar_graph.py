"""Three formulas of a few numbers: their values, their derivatives, and their graphs.

Introductions to backpropagation derive these gradients by hand. Run it with

    python examples/scalar_graph.py

It prints values and gradients. It writes each graph as Mermaid for Markdown viewers (`product.md`),
as text for Graphviz (`product.dot`) and, if Graphviz is installed, as a picture (`product.svg`).
Every node shows its value and the derivative of the result with respect to it.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import funcgrad as fg


def plane(x: Any, y: Any, z: Any) -> Any:
    """F = x y + z."""
    return x * y + z


def product(a: Any, b: Any, c: Any, d: Any) -> Any:
    """L = (a b + c) (a + d); a is used twice, so that two paths add up in its derivative."""
    return ((a * b) + c) * (a + d)


def cube(x: Any) -> Any:
    """(2 x + 1)^3."""
    return (2 * x + 1) ** 3


POINTS: dict[Callable[..., Any], tuple[float, ...]] = {
    plane: (2.0, -3.0, 10.0),
    product: (2.0, 3.0, 4.0, 5.0),
    cube: (2.0,),
}


@dataclass(frozen=True)
class Result:
    """A formula at a point."""

    value: float
    gradient: tuple[float, ...]
    graph: Any


def examine(formula: Callable[..., Any], point: tuple[float, ...]) -> Result:
    """Value, derivatives with respect to all arguments, and the graph with both on its nodes."""
    value, gradient = fg.value_and_grad(formula, argnums=tuple(range(len(point))))(*point)
    graph = fg.diagnostics.draw(formula, values=True, gradients=True)(*point)
    return Result(float(value), tuple(float(g) for g in gradient), graph)


def write(name: str, graph: Any, folder: Path) -> list[Path]:
    """Save the graph in all its forms; returns the files."""
    texts = {"dot": graph.dot, "md": f"```mermaid\n{graph.mermaid}\n```\n"}
    if shutil.which("dot"):
        texts["svg"] = graph.svg()
    files = []
    for suffix, text in texts.items():
        files.append(folder / f"{name}.{suffix}")
        files[-1].write_text(text, encoding="utf-8")
    return files


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = argparse.ArgumentParser(description="Values, derivatives and graphs of formulas.")
    parser.add_argument(
        "--out-dir", type=Path, default=Path(), metavar="FOLDER", help="where the graphs go"
    )
    args = parser.parse_args(arguments)
    if not args.out_dir.is_dir():
        parser.error(f"argument --out-dir: there is no folder {args.out_dir}")
    return args


def run(args: argparse.Namespace) -> dict[str, Result]:
    """Examine, print and draw every formula."""
    results = {}
    for formula, point in POINTS.items():
        name = formula.__name__
        result = results[name] = examine(formula, point)
        numbers = ", ".join(f"{x:g}" for x in point)
        print(f"{name}({numbers}) = {result.value:g}, gradient {result.gradient}")
        files = write(name, result.graph, args.out_dir)
        print(f"  wrote {', '.join(map(str, files))}")
    return results


def main(arguments: list[str] | None = None) -> None:
    """Entry point."""
    run(parse_arguments(arguments))


if __name__ == "__main__":
    main()
