"""Bounds of integers that are computed: interval arithmetic on their expressions.

Indices that lie inside whatever happens need not be looked at, and remainders of integers that lie
near their divisor take no division. Intervals follow what makes an operand for a few steps; they
begin at what is known now, and at the counters of loops (`Value.bounds`). Beyond that an integer is
any one of its dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.compiler.loops.language import SYMBOLS, Apply, Expression, Number, Variable, applied
from funcgrad.compiler.machine import SEVERAL
from funcgrad.compiler.nest.layout import Interval, Operand, Uniform, View
from funcgrad.compiler.nest.nodes import Copies, Fold, Guard, Node, Pick, Point, Search
from funcgrad.dtypes import BOOL
from funcgrad.intrinsics import CASTS

_CHOICES = ("select",)
_BOTH = ("bitwise_and",)
_EXTREMES = {"minimum": 0, "maximum": 1}
"""Words for one of two numbers: the place of the smaller one, if that is it."""
_TURNING = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
"""Comparisons."""
_SUMS = ("add", "radd")
_SIGNS = {"add": 1, "subtract": -1}
_TURNS = {"less": True, "greater_equal": False}
"""Comparisons that turn at a number, and whether they hold below it."""
_REMAINDER = "remainder({0}, {1})"

Known = Mapping[str, Interval | None]
"""The intervals of variables."""

FAR = int(np.iinfo(np.int64).max) // 2
"""A number of steps that takes years."""

STEPS = 5
"""How many nodes an interval is followed through."""


def bounds_of(x: Operand, steps: int = STEPS) -> Interval | None:
    """The least and the greatest integer that an operand may have; nothing of other dtypes."""
    if x.dtype.kind not in "biu":
        return None
    if isinstance(x, Uniform):
        return int(x.scalar), int(x.scalar)
    array = x.value.array
    if array is not None:
        return (int(array.min()), int(array.max())) if array.size else None
    if x.value.bounds is not None:
        return x.value.bounds
    found = _made(x.value.maker, steps - 1) if steps and x.value.maker is not None else None
    return _all_of(x.dtype) if found is None else found


def _all_of(dtype: np.dtype[Any]) -> Interval:
    """The integers that a dtype has."""
    if dtype == BOOL:
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _made(node: Node, steps: int) -> Interval | None:
    match node:
        case Search():
            return 0, node.operands[0].shape[-1]
        case Guard() | Copies():
            return _joined([bounds_of(x, steps) for x in node.operands])
        case Pick() if node.mode != "fill":
            return bounds_of(node.operands[0], steps)
        case Point() if node.out.dtype.kind in "iu":
            return _computed(node, steps)
        case Fold(form=form) if node.out.dtype == node.operands[0].dtype:
            found, n = bounds_of(node.operands[0], steps), [node.space[axis] for axis in form.axes]
            return _folded(found, form.step, math.prod(n), _all_of(node.out.dtype))
    return None


def _folded(found: Interval | None, step: str, n: int, limits: Interval) -> Interval | None:
    """The interval of a sum or an extreme of so many integers."""
    if found is None or not n:
        return None
    tree = applied(step, [Variable("x"), Variable("y")])
    is_plain = isinstance(tree, Apply) and [*map(str, tree.operands)] == ["x", "y"]
    word = tree.word if isinstance(tree, Apply) and is_plain else ""
    if word in _EXTREMES:
        return found
    total = n * found[0], n * found[1]
    return total if word in _SUMS and _is_within(total, limits) else None


def _joined(parts: Sequence[Interval | None]) -> Interval | None:
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _computed(node: Point, steps: int) -> Interval | None:
    """The interval of an expression, if all in it is understood, and nothing overflows."""
    dtype = node.out.dtype
    names = [Variable(f"x{i}") for i in range(len(node.operands))]
    tree: Expression = applied(node.expr, names)
    if isinstance(tree, Apply) and tree.word in CASTS and tree.operands == (names[0],):
        tree = names[0]
    elif any(x.dtype not in (dtype, BOOL) for x in node.operands):
        return None
    known = {str(x): bounds_of(y, steps) for x, y in zip(names, node.operands, strict=True)}
    found = _interval(tree, known, _all_of(dtype))
    return found if found is None or _is_within(found, _all_of(dtype)) else None


def _interval(x: Expression, known: Known, limits: Interval) -> Interval | None:
    """The interval of an expression; nothing where any part of it may be beyond the limits."""
    match x:
        case Number(int(value)) if not isinstance(value, bool):
            return value, value
        case Variable():
            return known.get(str(x))
        case Apply(word, (condition, a, b)) if word in _CHOICES:
            sides = _divided(condition, known)
            pairs = zip((a, b), sides, strict=True)
            return _joined([_interval(y, side, limits) for y, side in pairs if side])
        case Apply(word, operands) if word in _WORDS:
            parts = [_interval(y, known, limits) for y in operands]
            found = None if None in parts else _WORDS[word](*parts)
            return found if found is not None and _is_within(found, limits) else None
    return None


def is_bounded_throughout(node: Point, dtype: np.dtype[Any]) -> bool:
    """Whether a dtype has all integers that an expression computes, and its operands."""
    limits = _all_of(dtype)
    names = [Variable(f"x{i}") for i in range(len(node.operands))]
    known = {str(x): bounds_of(y) for x, y in zip(names, node.operands, strict=True)}

    def holds(x: Expression) -> bool:
        if isinstance(x, Apply) and x.word in (*_CHOICES, *_TURNING, *_BOTH):
            is_choice = x.word in _CHOICES
            return all(map(holds, x.operands)) and (
                not is_choice or _interval(x, known, limits) is not None
            )
        return _interval(x, known, limits) is not None

    return holds(applied(node.expr, names))


def _divided(condition: Expression, known: Known) -> tuple[Known, Known]:
    """Intervals where a condition holds, and where it does not; none where that is never."""
    match condition:
        case Apply(word, (Variable(name), Number(int(turn)))) if word in _TURNS:
            bounds = known.get(name)
            if bounds is None:
                return known, known
            parts = (bounds[0], min(bounds[1], turn - 1)), (max(bounds[0], turn), bounds[1])
            below, above = ({**known, name: (a, b)} if a <= b else {} for a, b in parts)
            return (below, above) if _TURNS[word] else (above, below)
    return known, known


def is_within(found: Interval | None, dtype: np.dtype[Any]) -> bool:
    """Whether a dtype has all integers of an interval."""
    return found is not None and _is_within(found, _all_of(dtype))


def _is_within(found: Interval, limits: Interval) -> bool:
    return limits[0] <= found[0] and found[1] <= limits[1]


def _around(corners: Iterable[int]) -> Interval:
    corners = [*corners]
    return min(corners), max(corners)


def _remainder(a: Interval, b: Interval) -> Interval | None:
    if b[0] <= 0:
        return None
    return a if a[0] >= 0 and a[1] < b[0] else (0, b[1] - 1)


def _masked(a: Interval, b: Interval) -> Interval | None:
    bounds = [high for low, high in (a, b) if low >= 0]
    return (0, min(bounds)) if bounds else None


_WORDS: dict[str, Callable[..., Interval | None]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": lambda a, b: _around(x * y for x in a for y in b),
    "negative": lambda a: (-a[1], -a[0]),
    "abs": lambda a: (max(a[0], -a[1], 0), max(-a[0], a[1])),
    "floor_divide": lambda a, b: _around(x // y for x in a for y in b) if b[0] > 0 else None,
    "remainder": _remainder,
    "right_shift": lambda a, b: (a[0] >> b[0], a[1] >> b[0]) if 0 <= b[0] == b[1] else None,
    "bitwise_and": _masked,
    "popcount": lambda a: (0, a[1].bit_length() if a[0] >= 0 else 64),
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
"""The interval of a word by those of its operands."""


# How integers go on.


def slope_of(x: Operand, steps: int = STEPS) -> int | None:
    """The distance from one integer to the next along the last axis, apart from jumps, if known.

    It is a guess where a remainder or a limit turns.
    """
    if isinstance(x, Uniform) or not x.strides or x.strides[-1] == 0:
        return 0
    if x.value.array is not None:
        first, second = x.value.array.reshape(-1)[[x.offset, x.offset + x.strides[-1]]]
        return int(second) - int(first)
    maker = x.value.maker
    if not steps or type(maker) is not Point or not x.is_value:
        return None
    names = [Variable(f"x{i}") for i in range(len(maker.operands))]
    known = dict(zip(map(str, names), maker.operands, strict=True))
    return _slope(applied(maker.expr, names), known, steps - 1)


def _slope(x: Expression, known: Mapping[str, Operand], steps: int) -> int | None:
    match x:
        case Number():
            return 0
        case Variable():
            return slope_of(known[str(x)], steps)
        case Apply(word, operands) if word in _SLOPES or word in (*_CHOICES, *CASTS):
            parts = [_slope(y, known, steps) for y in operands[word in _CHOICES :]]
            found = [part for part in parts if part is not None]
            if len(found) == len(parts):
                return _SLOPES.get(word, max)(*found) if len(found) > 1 else found[0]
    return None


_SLOPES: dict[str, Callable[..., int]] = {
    **{word: lambda a, b, sign=sign: a + sign * b for word, sign in _SIGNS.items()},
    **dict.fromkeys(("remainder", *_EXTREMES), lambda a, b: a or b),
}
"""The slope of a word by those of its operands."""


def run_of(node: Pick) -> int:
    """The direction, 1 or -1, in which a lookup goes from neighbour to neighbour, or 0."""
    slopes = [slope_of(x) for x in node.operands[1:]]
    if None in slopes:
        return 0
    run = sum(a * b for a, b in zip(slopes, node.steps, strict=True) if a is not None)
    return run if abs(run) == 1 else 0


# Operations that their operands' bounds decide about.


def decided(template: str, operands: Sequence[Operand]) -> Operand | None:
    """Result of an operation on integers, if their bounds decide: an operand, or a flag."""
    word = _WORD_OF.get(template)
    if word is None:
        return None
    if word in _CHOICES:
        found = bounds_of(operands[0])
        return None if found is None or found[0] != found[1] else operands[2 - found[0]]
    a, b = map(bounds_of, operands)
    if a is None or b is None or operands[0].dtype != operands[1].dtype:
        return None
    if word in _COMPARISONS:
        is_mirrored, more = _COMPARISONS[word]
        a, b = (b, a) if is_mirrored else (a, b)
        always, ever = a[1] < b[0] + more, a[0] < b[1] + more
        return Uniform(np.bool_(always), ()) if always == ever else None
    if word not in _EXTREMES:
        return operands[0] if a[0] >= 0 and a[1] < b[0] else None
    k = _EXTREMES[word]
    if a[1] <= b[0]:
        return operands[k]
    return operands[1 - k] if b[1] <= a[0] else None


def without_division(template: str, operands: Sequence[Operand]) -> str:
    """A template of the remainder of integers that says the same without a division.

    There is one where all integers are known to lie less than a divisor beyond the remainders, as
    ``(i + 1) % n`` of the indices of an axis.
    """
    if template != _REMAINDER or not isinstance(operands[1], Uniform):
        return template
    n, found = int(operands[1].scalar), bounds_of(operands[0])
    if found is None or not -n <= found[0] <= found[1] < 2 * n:
        return template
    less = "{0}" if found[1] < n else f"select({{0}} >= {n}, {{0}} - {n}, {{0}})"
    return less if found[0] >= 0 else f"select({{0}} < 0, {{0}} + {n}, {less})"


_COMPARISONS = {"less": (0, 0), "less_equal": (0, 1), "greater": (1, 0), "greater_equal": (1, 1)}
"""Whether the second operand is to be the lesser one, and whether it may be the same."""

_WORD_OF = {
    **{f"{word}({{0}}, {{1}})": word for word in _EXTREMES},
    _REMAINDER: "remainder",
    **{f"{{0}} {symbol} {{1}}": word for word, symbol in SYMBOLS.items() if word in _COMPARISONS},
    "select({0}, {1}, {2})": "select",
}
"""The word of templates that are one of operands."""


def parts_of(node: Point) -> tuple[str, list[Operand]]:
    """The word of an expression that is one of operands, and these."""
    x = applied(node.expr, [Variable(str(i)) for i in range(len(node.operands))])
    if not isinstance(x, Apply) or not all(isinstance(y, Variable) for y in x.operands):
        return "", []
    return x.word, [node.operands[int(str(y))] for y in x.operands]


# Counters of loops.


def step_of(now: Operand, following: Operand) -> int | None:
    """The number that every iteration adds to a carried integer, if that is one."""
    word, operands = _asked(following)
    if word not in _SIGNS:
        return None
    a, b = operands
    if _SIGNS[word] > 0 and isinstance(a, Uniform):
        a, b = b, a
    if not (_is_same(a, now) and isinstance(b, Uniform) and b.dtype == now.dtype):
        return None
    return _SIGNS[word] * int(b.scalar)


def counted(start: Operand, step: int, length: int) -> Interval | None:
    """The bounds of a counter in a loop of known length."""
    found = bounds_of(start)
    if found is None or not length:
        return None
    ends = 0, step * (length - 1)
    bounds = found[0] + min(ends), found[1] + max(ends)
    return bounds if _is_within(bounds, _all_of(start.dtype)) else None


def limited(start: Operand, step: int, now: Operand, condition: Operand) -> Interval | None:
    """The bounds of a counter in the body of a loop that goes on while a condition holds."""
    found, limits = bounds_of(start), _all_of(start.dtype)
    if found is None:
        return None
    low, high = _while_true(now, condition, limits)
    bounds = (found[0], high) if step > 0 else (low, found[1])
    # Where the next one could be beyond all numbers of its dtype, it would begin again.
    following = bounds[0] + min(step, 0), bounds[1] + max(step, 0)
    return bounds if bounds[0] <= bounds[1] and _is_within(following, limits) else None


def drifting(start: Operand, step: int) -> Interval | None:
    """The bounds of a counter in a loop of any length, if it has 64 bits.

    In steps of a few, no loop takes it ``FAR`` from where it begins.
    """
    found = bounds_of(start)
    if found is None or start.dtype.itemsize < 8 or abs(step) > SEVERAL:
        return None
    bounds = (found[0], found[1] + FAR) if step > 0 else (found[0] - FAR, found[1])
    return bounds if _is_within(bounds, _all_of(start.dtype)) else None


def beyond(start: Operand, step: int, bounds: Interval | None) -> Interval | None:
    """The bounds of a counter in all of a loop: where it begins, in its body, and behind that."""
    found = bounds_of(start)
    if found is None or bounds is None:
        return None
    return _around([*found, *bounds, bounds[0] + step, bounds[1] + step])


def _while_true(now: Operand, condition: Operand, limits: Interval) -> Interval:
    """The bounds of a number where a condition holds, which may be about it."""
    word, operands = _asked(condition)
    if word in _BOTH:
        parts = [_while_true(now, x, limits) for x in operands]
        return max(low for low, _ in parts), min(high for _, high in parts)
    if word not in _LIMITS:
        return limits
    (a, b), (side, more) = operands, _LIMITS[word]
    if _is_same(b, now):
        a, b, side = b, a, 1 - side
        more = -more
    bounds = bounds_of(b) if _is_same(a, now) and b.dtype == now.dtype else None
    if bounds is None:
        return limits
    turn = bounds[side] + more
    return (limits[0], min(turn, limits[1])) if side else (max(turn, limits[0]), limits[1])


_LIMITS = {"less": (1, -1), "less_equal": (1, 0), "greater": (0, 1), "greater_equal": (0, 0)}
"""The side on which a comparison with a number bounds another one, and by how much beside it."""


def _asked(x: Operand) -> tuple[str, list[Operand]]:
    """The word that makes an operand, and what of."""
    node = x.value.maker if isinstance(x, View) and x.is_whole else None
    return parts_of(node) if type(node) is Point else ("", [])


def _is_same(x: Operand, y: Operand) -> bool:
    return isinstance(x, View) and isinstance(y, View) and x.value is y.value
