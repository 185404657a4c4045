"""Costs of nodes: the work that a program asks for, as `cost_analysis` counts it.

Counted from expressions and forms: an element that a kernel recomputes counts once. Costs that are
only known at run time are named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.cost import traffic_of
from funcgrad.compiler.nest.layout import Shape
from funcgrad.compiler.nest.nodes import (
    Branch,
    External,
    Fold,
    Loop,
    Nest,
    Node,
    Point,
    Product,
    Put,
    Routine,
    Scan,
)
from funcgrad.intrinsics import CASTS, EXPENSIVE, Intrinsic, expression


@dataclass(frozen=True)
class Cost:
    """Cost of a node or a program.

    Attributes:
        flops: Operations on real numbers, elementary functions apart.
        transcendentals: Elementary functions.
        nbytes: Bytes that are read from and written to memory.
        unknown: What is not counted, because it is decided at run time or elsewhere.
    """

    flops: float = 0.0
    transcendentals: float = 0.0
    nbytes: float = 0.0
    unknown: tuple[str, ...] = ()

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.nbytes + other.nbytes,
            tuple(dict.fromkeys(self.unknown + other.unknown)),
        )

    def times(self, count: float) -> Cost:
        return Cost(
            self.flops * count, self.transcendentals * count, self.nbytes * count, self.unknown
        )


def arithmetic_of(node: Node) -> Cost:
    """Arithmetic of a node, without the bytes that it moves."""
    if isinstance(node, Product):
        is_complex = node.out.dtype.kind == "c"
        flops = 8.0 if is_complex else 4.0 if node.is_of_pairs else 2.0
        return Cost(flops=math.prod(node.sizes) * flops)
    if isinstance(node, Nest):
        return _nest(node)
    if isinstance(node, External | Routine):
        return Cost(unknown=(f"the arithmetic of {_whose(node)}",))
    templates, shape = _evaluated(node)
    count = math.prod(shape)
    uses = [use for template in templates for use in expression(template).uses]
    is_complex = any(x.dtype.kind == "c" for x in (*node.operands, *node.outs))
    functions = sum(map(_is_function, uses))
    flops = sum(_flops(x, is_complex) for x in uses if not _is_function(x))
    return Cost(float(flops * count), float(functions * count))


def cost_of(nodes: Sequence[Node]) -> Cost:
    """The cost of nodes that run together."""
    return sum(map(arithmetic_of, nodes), Cost(nbytes=traffic_of(nodes)))


def _evaluated(node: Node) -> tuple[Sequence[str], Shape]:
    """The expressions that a node evaluates, and where."""
    match node:
        case Point():
            return (node.expr,), node.space
        case Fold() | Scan():
            return (node.form.step,), node.space
        case Put():
            return (node.step,), node.operands[1].shape
    return (), ()


def _is_function(x: Intrinsic) -> bool:
    """Whether it is an elementary function."""
    return bool(x.code) and x.cost >= EXPENSIVE


def _flops(x: Intrinsic, is_complex: bool) -> int:
    """Operations on real numbers."""
    if not x.cost or x.name in _FREE:
        return 0
    if is_complex:
        return _COMPLEX.get(x.name, 2)
    return _SEVERAL.get(x.name, 1)


_FREE = frozenset((*CASTS, "real", "imag", "conj", "positive"))
"""Intrinsics that move bits."""

_COMPLEX = {"multiply": 6, "divide": 11}
_SEVERAL = {"fma": 2, "threefry2x32": 60}


def _nest(node: Nest) -> Cost:
    """A loop, or the most expensive branch."""
    bodies = [sum(map(arithmetic_of, body.nodes), Cost()) for body in node.bodies]
    if isinstance(node, Branch):
        return most_expensive(bodies)
    return repeated(node, bodies)


def most_expensive(branches: Iterable[Cost]) -> Cost:
    """The cost of a branch: nobody knows which one is taken, so that of the worst."""
    return max(branches, key=lambda cost: (cost.flops + cost.transcendentals, cost.nbytes))


def repeated(node: Nest, bodies: Iterable[Cost]) -> Cost:
    """The cost of a loop whose bodies cost so much: of one iteration if their number is unknown."""
    each = sum(bodies, Cost())
    assert isinstance(node, Loop)
    if node.length is not None:
        return each.times(node.length)
    return each + Cost(unknown=(f"the number of iterations of {_whose(node)}, counted as one",))


def _whose(node: Node) -> str:
    equation = node.equation
    if equation is None:
        return "a loop"
    name = equation.primitive.name
    return name if equation.source is None else f"{name} at {equation.source.short()}"
