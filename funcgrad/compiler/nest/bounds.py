"""Bounds of integers that are computed: interval arithmetic on their expressions.

Indices that lie inside whatever happens need not be looked at. Intervals follow what makes an
operand for a few steps; beyond that an integer is any one of its dtype.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import numpy as np

from funcgrad.compiler.nest.layout import Operand, Uniform
from funcgrad.compiler.nest.nodes import ArgFold, Copies, Guard, Node, Pick, Point, Search
from funcgrad.dtypes import BOOL, INT64

Interval = tuple[int, int]

STEPS = 5
"""How many nodes an interval is followed through."""

_ANY: Interval = (int(np.iinfo(INT64).min), int(np.iinfo(INT64).max))


def bounds_of(x: Operand, steps: int = STEPS) -> Interval | None:
    """The least and the greatest integer that an operand may have; nothing of other dtypes."""
    if x.dtype.kind not in "biu":
        return None
    if isinstance(x, Uniform):
        return int(x.scalar), int(x.scalar)
    array = x.value.array
    if array is not None:
        return (int(array.min()), int(array.max())) if array.size else None
    found = _made(x.value.maker, steps - 1) if steps and x.value.maker is not None else None
    if found is not None:
        return found
    if x.dtype == BOOL:
        return 0, 1
    info = np.iinfo(x.dtype)
    return int(info.min), int(info.max)


def _made(node: Node, steps: int) -> Interval | None:
    match node:
        case ArgFold():
            return 0, max(node.operands[0].shape[node.form.axis] - 1, 0)
        case Search():
            return 0, node.operands[0].shape[-1]
        case Guard() | Copies():
            return _joined([bounds_of(x, steps) for x in node.operands])
        case Pick() if node.mode != "fill":
            return bounds_of(node.operands[0], steps)
        case Point():
            return _computed(node, steps)
    return None


def _joined(parts: Sequence[Interval | None]) -> Interval | None:
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _computed(node: Point, steps: int) -> Interval | None:
    """The interval of an expression of int64, if all in it is understood, and nothing overflows."""
    if node.out.dtype != INT64:
        return None
    if node.expr == "i64({0})":
        found = bounds_of(node.operands[0], steps)
        return None if found is None else _fitting(*found)
    if any(x.dtype not in (INT64, BOOL) for x in node.operands):
        return None
    names = [f"x{i}" for i in range(len(node.operands))]
    known = {name: bounds_of(x, steps) for name, x in zip(names, node.operands, strict=True)}
    return _interval(ast.parse(node.expr.format(*names), mode="eval").body, known)


def _interval(tree: ast.expr, known: dict[str, Interval | None]) -> Interval | None:
    match tree:
        case ast.Name(name):
            return known.get(name)
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return value, value
        case ast.UnaryOp(ast.USub(), operand):
            found = _interval(operand, known)
            return None if found is None else _fitting(-found[1], -found[0])
        case ast.BinOp(left, operator, right):
            rule = _OPERATORS.get(type(operator))
            return _applied(rule, [left, right], known)
        case ast.Call(ast.Name(name), arguments):
            return _applied(_WORDS.get(name), arguments[_CONDITIONS.get(name, 0) :], known)
    return None


def _applied(
    rule: Callable[..., Interval | None] | None,
    arguments: Sequence[ast.expr],
    known: dict[str, Interval | None],
) -> Interval | None:
    found = [_interval(x, known) for x in arguments]
    return None if rule is None or None in found else rule(*found)


def _fitting(low: int, high: int) -> Interval | None:
    return (low, high) if _ANY[0] <= low and high <= _ANY[1] else None


def _product(a: Interval, b: Interval) -> Interval | None:
    corners = [x * y for x in a for y in b]
    return _fitting(min(corners), max(corners))


def _remainder(a: Interval, b: Interval) -> Interval | None:
    return (0, b[1] - 1) if b[0] > 0 else None


def _masked(a: Interval, b: Interval) -> Interval | None:
    bounds = [high for low, high in (a, b) if low >= 0]
    return (0, min(bounds)) if bounds else None


_OPERATORS: dict[type[ast.operator], Callable[[Interval, Interval], Interval | None]] = {
    ast.Add: lambda a, b: _fitting(a[0] + b[0], a[1] + b[1]),
    ast.Sub: lambda a, b: _fitting(a[0] - b[1], a[1] - b[0]),
    ast.Mult: _product,
    ast.Mod: _remainder,
    ast.BitAnd: _masked,
}
_WORDS: dict[str, Callable[..., Interval | None]] = {
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "remainder": _remainder,
    "i64": lambda a: a,
    "select": lambda a, b: _joined([a, b]),
}
_CONDITIONS = {"select": 1}
"""Arguments of words, at the front, that only choose among the others."""
