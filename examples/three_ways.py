"""Automatic, symbolic and numerical differentiation in one table: errors, sizes and times.

The function is the logistic map, x <- 4 x (1 - x), repeated: three lines of code, a polynomial of
degree 2^n. Symbolic differentiation applies (u v)' = u' v + u v' to its formula, and the formula
of the derivative grows exponentially. Numerical differentiation evaluates the function twice, and
loses half of the digits or more: a large step h errs by the curvature, a small one by cancellation.
Automatic differentiation applies the same rules as the symbolic one, to numbers and not to
formulas: it is exact but for rounding, and takes a few times as long as the function. Run it with

    python examples/three_ways.py

It prints the table and writes `three_ways.png`.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import program

POINT = 0.3
FORWARD_STEP, CENTRAL_STEP = 1e-8, 1e-6

Formula = Any
"""The text "x", a number, or a tuple ("+" or "-" or "*", formula, formula)."""


def logistic(x: Any, n: int) -> Any:
    """The logistic map, n times."""
    for _ in range(n):
        x = 4.0 * x * (1.0 - x)
    return x


# Exact and numerical.


def exact(x: float, n: int) -> float:
    """The derivative in fractions of integers, by the chain rule: (4 u (1 - u))' = (4 - 8 u) u'."""
    value, slope = Fraction(x), Fraction(1)
    for _ in range(n):
        value, slope = 4 * value * (1 - value), (4 - 8 * value) * slope
    return float(slope)


def forward_difference(f: Callable[[Any], Any], x: float, h: float = FORWARD_STEP) -> Any:
    """(f(x + h) - f(x)) / h, with an error of about h f''/2 + epsilon f / h."""
    return (f(x + h) - f(x)) / h


def central_difference(f: Callable[[Any], Any], x: float, h: float = CENTRAL_STEP) -> Any:
    """(f(x + h) - f(x - h)) / 2h, with an error of about h^2 f'''/6 + epsilon f / h."""
    return (f(x + h) - f(x - h)) / (2 * h)


# Symbolic.


def formula(n: int) -> Formula:
    """The logistic map as a formula in x, n times."""
    u: Formula = "x"
    for _ in range(n):
        u = ("*", ("*", 4.0, u), ("-", 1.0, u))
    return u


def differentiate(u: Formula) -> Formula:
    """The formula of the derivative, with the simplifications 0 + a, 0 * a and 1 * a."""
    if not isinstance(u, tuple):
        return 1.0 if u == "x" else 0.0
    operation, a, b = u
    da, db = differentiate(a), differentiate(b)
    if operation == "*":
        return simplified("+", simplified("*", da, b), simplified("*", a, db))
    return simplified(operation, da, db)


def simplified(operation: str, a: Formula, b: Formula) -> Formula:
    """The formula of one operation."""
    if operation == "*" and 0.0 in (a, b):
        return 0.0
    if operation == "*" and 1.0 in (a, b):
        return b if a == 1.0 else a
    if b == 0.0:
        return a
    return b if a == 0.0 and operation == "+" else (operation, a, b)


def size(u: Formula) -> int:
    """How many operations a formula has."""
    return 1 + size(u[1]) + size(u[2]) if isinstance(u, tuple) else 0


def text(u: Formula) -> str:
    """The formula as Python's code."""
    return f"({text(u[1])} {u[0]} {text(u[2])})" if isinstance(u, tuple) else str(u)


# The comparison.


def ways(n: int) -> dict[str, tuple[Callable[[float], Any], int]]:
    """Functions of x that give the derivative, and how many operations each executes."""
    slope, operations = differentiate(formula(n)), 3 * n
    compiled = eval(f"lambda x: {text(slope)}")

    def f(x: Any) -> Any:
        return logistic(x, n)

    automatic = fg.make_jaxpr(fg.grad(f))(POINT)
    return {
        "automatic": (fg.jit(fg.grad(f)), len(automatic.eqns)),
        "symbolic": (compiled, size(slope)),
        "forward difference": (lambda x: forward_difference(f, x), 2 * operations + 3),
        "central difference": (lambda x: central_difference(f, x), 2 * operations + 4),
    }


def relative_error(found: Any, x: float, n: int) -> float:
    """Of a derivative at x."""
    return abs(float(found) / exact(x, n) - 1)


def seconds(call: Callable[[float], Any]) -> float:
    """The shortest of five averages over twenty calls."""
    return min(timeit.repeat(lambda: call(POINT), number=20, repeat=5)) / 20


# The picture.


def plot(depth: int, path: Path) -> None:
    """Draw the error of differences over the step, and the operations over the repetitions."""
    figure, ((left, right),) = program.panels(1, 2, 12, 4.2)
    n = min(depth, 4)
    steps = np.geomspace(1e-15, 1e-1, 57)
    for name, difference in (("forward", forward_difference), ("central", central_difference)):
        errors = [
            relative_error(difference(lambda x: logistic(x, n), POINT, h), POINT, n) for h in steps
        ]
        left.loglog(steps, np.maximum(errors, 1e-17), ".", label=f"{name} difference")
    error = max(relative_error(ways(n)["automatic"][0](POINT), POINT, n), 1e-17)
    left.axhline(error, color="tab:green", label="automatic")
    left.set(title=f"{n} repetitions", xlabel="step h", ylabel="relative error")
    left.legend()
    repetitions = range(1, depth + 1)
    for name in ways(1):
        right.semilogy(repetitions, [ways(k)[name][1] for k in repetitions], ".-", label=name)
    right.set(title="operations of the derivative", xlabel="repetitions")
    right.legend()
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Compare three ways to a derivative.", "three_ways.png", depth=(1, 8)
)


def run(args: argparse.Namespace) -> dict[str, tuple[float, int]]:
    """Compare, print and draw; the relative error and the operations of each way."""
    print(f"the logistic map {args.depth} times, at {POINT}: slope {exact(POINT, args.depth):.6f}")
    print(f"{'':20}{'relative error':>16}{'operations':>12}{'time':>12}")
    found = {}
    for name, (call, operations) in ways(args.depth).items():
        found[name] = relative_error(call(POINT), POINT, args.depth), operations
        microseconds = 1e6 * seconds(call)
        print(f"{name:20}{found[name][0]:16.1e}{operations:12}{microseconds:9.1f} us")
    plot(args.depth, args.output)
    return found


if __name__ == "__main__":
    run(parse_arguments())
