"""The formulas of first lessons: their values, their derivatives, and two of their graphs.

Introductions to backpropagation derive these numbers by hand. Here `value_and_grad` computes them,
from plain formulas of numbers. Run it with

    python examples/scalar_graph.py

It prints values and gradients. It writes two graphs as Mermaid for Markdown viewers
(`product.md`), as text for Graphviz (`product.dot`) and, if Graphviz is installed, as a picture
(`product.svg`). Every node shows its value and the derivative of the result with respect to it.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import program


def plane(x: Any, y: Any, z: Any) -> Any:
    """F = x y + z."""
    return x * y + z


def product(a: Any, b: Any, c: Any, d: Any) -> Any:
    """L = (a b + c) (a + d); a is used twice, so that two paths add up in its derivative."""
    return ((a * b) + c) * (a + d)


def neuron(x1: Any, w1: Any, x2: Any, w2: Any) -> Any:
    """tanh(x1 w1 + x2 w2 + b); b is such that the sum is 0.8814 and the output 0.7071."""
    return np.tanh(x1 * w1 + x2 * w2 + 6.8813735870195432)


def sigmoid_neuron(w0: Any, x0: Any, w1: Any, x1: Any, w2: Any) -> Any:
    """1 / (1 + exp(-(w0 x0 + w1 x1 + w2))) in eight steps, each with a derivative of one factor."""
    first = w0 * x0
    second = w1 * x1
    both = first + second
    weighted = both + w2
    negative = -weighted
    power = np.exp(negative)
    total = 1.0 + power
    return 1.0 / total


def ten_sigmoids(x: Any) -> Any:
    """The factor that ten sigmoids can pass back at most: a sigmoid's slope at 0 is s(1 - s)."""
    s = 1.0 / (1.0 + np.exp(-x))
    return (s * (1.0 - s)) ** 10


Formula = Callable[..., Any]

FORMULAS: dict[str, tuple[Formula, tuple[float, ...]]] = {
    "x*y + z": (plane, (2.0, -3.0, 10.0)),
    "(a*b + c)*(a + d)": (product, (2.0, 3.0, 4.0, 5.0)),
    "(a + b*c)*d": (lambda a, b, c, d: (a + b * c) * d, (2.0, 3.0, 4.0, 5.0)),
    "a*a": (lambda a: a * a, (3.0,)),
    "a + a": (lambda a: a + a, (3.0,)),
    "a*a + a": (lambda a: a * a + a, (3.0,)),
    "3*x + 1": (lambda x: 3 * x + 1, (2.0,)),
    "(2*x + 1)^3": (lambda x: (2 * x + 1) ** 3, (1.0,)),
    "(x*w + b)^2": (lambda x, w, b: (x * w + b) ** 2, (2.0, 3.0, 1.0)),
    "tanh(x)": (np.tanh, (0.5,)),
    "neuron": (neuron, (2.0, -3.0, 0.0, 1.0)),
    "sigmoid neuron": (sigmoid_neuron, (2.0, -1.0, -3.0, -2.0, -3.0)),
    "ten sigmoids": (ten_sigmoids, (0.0,)),
}
"""Formulas and points; a variable that is used twice collects the derivatives of both uses."""
DRAWN = ("x*y + z", "(a*b + c)*(a + d)")


@dataclass(frozen=True)
class Result:
    """A formula at a point."""

    value: float
    gradient: tuple[float, ...]


def examine(formula: Formula, point: tuple[float, ...]) -> Result:
    """Value, and derivatives with respect to all arguments."""
    value, gradient = fg.value_and_grad(formula, argnums=tuple(range(len(point))))(*point)
    return Result(float(value), tuple(float(g) for g in gradient))


def show(name: str, point: tuple[float, ...], result: Result) -> str:
    """``name at (2, -3) = 4, gradient (1, 2)``, with four digits."""
    at, gradient = (", ".join(f"{x:.4g}" for x in xs) for xs in (point, result.gradient))
    return f"{name} at ({at}) = {result.value:.4g}, gradient ({gradient})"


# The graphs.


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


# The command line.


parse_arguments = program.command_line("Values, derivatives and graphs of formulas.")


def run(args: argparse.Namespace) -> tuple[dict[str, Result], dict[str, Any]]:
    """Examine every formula and draw two; returns the numbers, and the graphs."""
    results = {name: examine(*given) for name, given in FORMULAS.items()}
    for name, result in results.items():
        print(show(name, FORMULAS[name][1], result))
    graphs = {}
    for name in DRAWN:
        formula, point = FORMULAS[name]
        graphs[name] = fg.diagnostics.draw(formula, values=True, gradients=True)(*point)
        print(f"wrote {', '.join(map(str, write(formula.__name__, graphs[name], args.out_dir)))}")
    return results, graphs


if __name__ == "__main__":
    run(parse_arguments())
