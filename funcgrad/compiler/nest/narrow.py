"""Narrowing: outer products of masked vectors leave a carried array as it is beside their masks.

Written with whole arrays, a step of an elimination is ``a - where(i > k, f, 0)[:, None] * r``: all
of the array, though a product with zero changes nothing but the sign of a zero where its other
factor is finite. So it becomes ``where(i > k, a - f[:, None] * r, a)``, of which `unswitch` leaves
out what the mask does, in place. Where a factor is not finite, the number that the mask compares
the index with lets everything through.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.bounds import parts_of
from funcgrad.compiler.nest.layout import Operand, Uniform, Value, View, whole
from funcgrad.compiler.nest.lookups import known_numbers
from funcgrad.compiler.nest.nodes import Fold, Graph, Loop, Node, Point, Put, rewrite
from funcgrad.compiler.nest.unswitch import asks_index, is_bounded
from funcgrad.dtypes import BOOL
from funcgrad.lowering import Reduction

_ALL = Reduction((0,), "True", "{0} & {1}")

_WHOLE = {"add": (0, 1), "subtract": (0,)}
"""Words that add to an array, and which of their operands that may be."""

_SIDES = {"greater": 0, "greater_equal": 0, "less": 1, "less_equal": 1}
"""Comparisons, and which of their operands is the greater one."""


def narrow(graph: Graph, loop: Loop) -> None:
    """Let what is added in the body of a loop change what its masks select."""
    carried = {carry.now for carry in loop.carries if carry.final is not None}
    for node in graph.nodes:
        x = node.operands[0] if isinstance(node, Put) else None
        if isinstance(x, View) and x.is_value and x.value in carried:
            carried.add(node.out)
    rewrite(graph, lambda node: _narrowed(node, carried))


@dataclass(frozen=True)
class _Factor:
    """A vector that is repeated along all axes but one.

    Attributes:
        value: The vector.
        axis: The axis along which it is not repeated.
        mask: The comparison that says where it is not 0, if it is masked.
    """

    value: Value
    axis: int
    mask: Point | None


def _narrowed(node: Node, carried: Collection[Value]) -> list[Node] | None:
    """The nodes in the place of one, if it adds what is masked, or a product of masked vectors."""
    if type(node) is not Point or node.out.dtype.kind != "f":
        return None
    word, operands = parts_of(node)
    for k in _WHOLE.get(word, ()):
        old, product = operands[k], operands[1 - k]
        if isinstance(old, View) and old.is_value and old.value in carried:
            selected = _selected(product)
            if selected is not None and is_bounded(selected[0]):
                condition, value = selected
                added = (old, value) if k == 0 else (value, old)
                changed = Point(added, (Value(old.shape, old.dtype),), node.expr)
                choice = (condition, whole(changed.out), old)
                return [changed, Point(choice, (node.out,), "select({0}, {1}, {2})")]
            factors = _factors(product)
            if any(factor.mask for factor in factors):
                return _masked(node, old, factors)
    return None


def _factors(product: Operand) -> list[_Factor]:
    """The vectors of an outer product, if it is one."""
    maker = product.value.maker if isinstance(product, View) and product.is_value else None
    word, operands = parts_of(maker) if type(maker) is Point else ("", [])
    found = [_factor(x) for x in operands] if word == "multiply" else []
    factors = [factor for factor in found if factor is not None]
    return factors if len({factor.axis for factor in factors}) == 2 else []


def _factor(x: Operand) -> _Factor | None:
    axes = [axis for axis, (n, s) in enumerate(zip(x.shape, x.strides, strict=True)) if s and n > 1]
    if not isinstance(x, View) or len(axes) != 1:
        return None
    (axis,) = axes
    if (x.offset, x.strides[axis], x.value.shape) != (0, 1, (x.shape[axis],)):
        return None
    return _Factor(x.value, axis, _mask(x.value.maker))


def _selected(x: Operand) -> tuple[Operand, Operand] | None:
    """The condition under which an operand is not zero, and what it is then."""
    node = x.value.maker if isinstance(x, View) and x.is_value else None
    word, operands = parts_of(node) if type(node) is Point else ("", [])
    if not word.startswith("select"):
        return None
    condition, value, zero = operands
    if not isinstance(zero, Uniform) or zero.scalar or value.dtype != x.dtype:
        return None
    return condition, value


def _mask(node: Node | None) -> Point | None:
    """The comparison of an index with a number where a node is not zero."""
    word, operands = parts_of(node) if type(node) is Point else ("", [])
    if not word.startswith("select"):
        return None
    condition, _, zero = operands
    maker = condition.value.maker if isinstance(condition, View) and condition.is_value else None
    if not isinstance(zero, Uniform) or zero.scalar or not isinstance(maker, Point):
        return None
    return maker if parts_of(maker)[0] in _SIDES and asks_index(maker) else None


def _masked(node: Point, old: View, factors: list[_Factor]) -> list[Node]:
    """The nodes that change an array where masks select, and where factors are not finite."""
    added: list[Node] = []

    def point(expr: str, shape: tuple[int, ...], dtype: np.dtype[np.generic], *xs: Operand) -> View:
        added.append(Point(xs, (Value(shape, dtype),), expr))
        return whole(added[-1].out)

    is_finite: Operand = Uniform(np.bool_(True), ())
    for factor in factors:
        if any(other.mask for other in factors if other is not factor):
            flags = point("isfinite({0})", factor.value.shape, BOOL, whole(factor.value))
            added.append(Fold((flags,), (Value((), BOOL),), _ALL))
            is_finite = point("{0} & {1}", (), BOOL, is_finite, whole(added[-1].out))
    selected: Operand | None = None
    for factor in (factor for factor in factors if factor.mask):
        assert factor.mask is not None
        word, operands = parts_of(factor.mask)
        k = next(
            k for k, x in enumerate(operands) if known_numbers(x) is None or not any(x.strides)
        )
        limits = np.iinfo(operands[k].dtype)
        far = operands[k].dtype.type(limits.max if k == _SIDES[word] else limits.min)
        number = operands[k].restrided((), (), operands[k].offset)
        bound = point(
            "select({0}, {1}, {2})", (), number.dtype, is_finite, number, Uniform(far, ())
        )
        operands[k] = bound.broadcast(factor.value.shape)
        mask: Operand = point(factor.mask.expr, factor.value.shape, BOOL, *operands)
        strides = tuple(int(axis == factor.axis) for axis in range(len(old.shape)))
        mask = mask.restrided(old.shape, strides, 0)
        selected = mask if selected is None else point("{0} & {1}", old.shape, BOOL, selected, mask)
    assert selected is not None
    changed = point(node.expr, old.shape, old.dtype, *node.operands)
    added.append(Point((selected, changed, old), (node.out,), "select({0}, {1}, {2})"))
    return added
