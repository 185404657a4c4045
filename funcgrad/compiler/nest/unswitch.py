"""Unswitching: rows are divided where a comparison with their index turns.

Whether ``index < k`` holds is known for all of a row but the vector in which ``k`` lies. So a pass
over a row has two bodies: the whole one, for the indices between the bounds of a condition, and one
for the indices outside, where each `select` that asks the condition is one of its operands, and
what led to the other one is not computed. Nothing is left of it where the results are what is in
memory already, or the neutral elements of folds: the iteration space is triangular then. Bounds
are computed for every row, from the numbers that the condition compares (`limits`). Where a
condition compares the number of the row, the loop over rows has the bounds.

Whether a number divides the index holds every so many elements. Where nothing happens at the
others, the pass goes from one multiple to the next: the iteration space is strided.

Vectors stay where they are, so that folds add the same elements in the same order: between the
bounds are whole ones, in which the condition is asked as before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.machine import FUNCTION, HEAVY, LOOKUP, SEVERAL
from funcgrad.compiler.nest.accumulate import is_idempotent
from funcgrad.compiler.nest.bounds import parts_of
from funcgrad.compiler.nest.iteration import Access, Loop, Vectors
from funcgrad.compiler.nest.kernel import neutral
from funcgrad.compiler.nest.layout import Interval, Operand, Uniform, Value, View
from funcgrad.compiler.nest.lookups import known_numbers
from funcgrad.compiler.nest.nodes import Fold, Node, Pick, Point, depth_first
from funcgrad.compiler.nest.plan import Plan, is_function
from funcgrad.dtypes import BOOL

_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}
"""The comparisons, and what they are with their operands exchanged."""

_SIDES = {
    "greater": (("low", 1),),
    "greater_equal": (("low", 0),),
    "less": (("high", 0),),
    "less_equal": (("high", 1),),
    "equal": (("low", 0), ("high", 1)),
}
"""The bounds of indices at which numbers that count compare so with another number, as distances
from the index at which they are equal."""

_REST = {"not_equal": "equal"}
"""Comparisons that hold wherever another one does not."""

_IS_ZERO = {"equal": True, "not_equal": False}
"""Comparisons of a remainder with zero, and whether they hold where a number divides another."""

_DECISIVE = {"bitwise_and": False, "bitwise_or": True}
"""Words that join two conditions, with the value of one that decides about both."""

_REMAINDERS = ("remainder",)

_NEGATIONS = ("logical_not", "bitwise_not")

_OPPOSITE = {"low": "high", "high": "low", "when": "unless", "unless": "when"}

_COUNTED = frozenset({"raise", "place", "fill"})
"""Modes in which an index that means a place means the same one."""

FARTHEST = 1 << 61
"""Counting numbers from which distances are taken begin below it."""


@dataclass(frozen=True)
class Side:
    """A bound on the indices of a row.

    Attributes:
        kind: "low" or "high"; "when" or "unless" a number of the row holds, all indices or none;
            "multiple", the indices whose numbers another one divides.
        key: What is compared, so that equal sides are one.
        more: Indices from that at which both are equal to the bound.
        step: By what the numbers count.
        operand: What is the same all along the row: what is compared, the number, or the divisor.
        counting: The numbers that count along the row, or from row to row.
        firsts: The least and the greatest number that they begin with.
        loop: The loop along which they count.
        of_rows: Whether all of a row is within the bound, or nothing.
        node: The node that reads both.
    """

    kind: str
    key: Hashable
    more: int
    step: int
    operand: Operand = field(compare=False)
    node: Node = field(compare=False)
    counting: Access | None = field(default=None, compare=False)
    firsts: Interval = field(default=(0, 0), compare=False)
    loop: Loop | None = field(default=None, compare=False)
    of_rows: bool = field(default=True, compare=False)

    @property
    def opposite(self) -> Side:
        """The bound of the indices at which this one does not hold."""
        return replace(self, kind=_OPPOSITE[self.kind])


Chosen = Mapping[Node, Operand]
"""Operands that nodes are."""

NOTHING: Chosen = {}

Sides = frozenset[Side]
Range = tuple[Sides, bool]
"""The bounds of a condition, and whether it holds between them or elsewhere."""


@dataclass(frozen=True)
class Part:
    """The nodes that are computed in a part of a row.

    Attributes:
        body: The nodes.
        chosen: For `select` nodes, the operand that they are.
    """

    body: list[Node]
    chosen: Chosen


@dataclass(frozen=True)
class Split:
    """How a pass over a row is divided.

    Attributes:
        sides: The bounds, in the order in which they are computed.
        inner: What is to be computed between them.
        outer: What is to be computed elsewhere.
        is_same: Whether one index elsewhere stands for all that follow each other.
    """

    sides: tuple[Side, ...]
    inner: Part
    outer: Part
    is_same: bool = False

    @property
    def of_whole_rows(self) -> tuple[Side, ...]:
        """Bounds between which all of a row is, or nothing, if nothing is done elsewhere."""
        return () if self.outer.body else tuple(side for side in self.sides if side.of_rows)


class Unswitcher:
    """Divides the passes of a kernel.

    Args:
        plan: The plan of the kernel.
        is_watched: Whether a lookup looks at its indices in passing, which it does everywhere.
    """

    def __init__(self, plan: Plan, is_watched: Callable[[Pick], bool]) -> None:
        self.plan = plan
        self.is_watched = is_watched
        self.ranges: dict[Node, Range | None] = {}

    def split(self, body: Sequence[Node], vectors: Vectors | None) -> Split | None:
        """How to divide the pass over a row that computes some nodes, if that saves anything."""
        plan = self.plan
        if not plan.row or plan.row_vectors is not None:
            return None
        if not any(x.dtype == BOOL for node in body for x in (*node.operands, node.out)):
            return None
        found: dict[Sides, None] = {}
        for node in body:
            for condition, *_ in _choices(node):
                found.update(dict.fromkeys(self._candidates(condition, node)))
        # Of a few vectors, finding out which ones are needed would be most of the work.
        few = SEVERAL if vectors is None else max(vectors.wide, 2 * vectors.narrow)
        is_short = plan.row[-1].size <= few
        wanted = (sides for sides in found if not is_short or _is_about_rows(sides))
        splits = [self._divided(body, sides, vectors) for sides in wanted]
        best = max((s for s in splits if s is not None), key=lambda s: s[0], default=None)
        return None if best is None else best[1]

    # Conditions.

    def _candidates(self, x: Operand, node: Node) -> Iterator[Sides]:
        """Bounds outside of which a condition that a node reads, or a part of it, is known."""
        known = self._range_or_number(x, node)
        if known is not None:
            yield known[0]
            if _has_opposite(known[0]):
                yield frozenset(side.opposite for side in known[0])
        maker = self._maker(x)
        if maker is not None:
            for y in maker.operands:
                if y.dtype == BOOL:
                    yield from self._candidates(y, maker)

    def _maker(self, x: Operand) -> Point | None:
        """The node that computes an operand at each index of the row, if it is a point."""
        node = self.plan.made.get(x.value) if isinstance(x, View) else None
        return node if type(node) is Point and self.plan.is_full(node) else None

    def _range(self, x: Operand) -> Range | None:
        """The range of indices in which a condition holds, or does not."""
        maker = self._maker(x)
        if maker is None:
            return None
        if maker not in self.ranges:
            self.ranges[maker] = self._made(maker)
        return self.ranges[maker]

    def _made(self, node: Point) -> Range | None:
        word, operands = parts_of(node) if node.out.dtype == BOOL else ("", [])
        if word in _MIRRORED and len(operands) == 2:
            a, b = operands
            found = self._compared(word, a, b, node) or self._compared(_MIRRORED[word], b, a, node)
            return found or self._divided_by(word, a, b)
        if word in _NEGATIONS:
            found = self._range(operands[0])
            return None if found is None else _negated(found)
        if word not in _DECISIVE:
            return None
        parts = [self._range_or_number(x, node) for x in operands]
        if _DECISIVE[word]:
            parts = [None if part is None else _negated(part) for part in parts]
        sides: list[Side] = []
        for part in parts:
            if part is None or not part[1]:
                return None
            sides += part[0]
        return frozenset(sides), not _DECISIVE[word]

    def _range_or_number(self, x: Operand, node: Node) -> Range | None:
        if isinstance(x, Uniform) or not self.plan.is_fixed(node, x):
            return self._range(x)
        return frozenset([Side("when", _key(x), 0, 0, x, node)]), True

    def _compared(self, word: str, counting: Operand, other: Operand, node: Node) -> Range | None:
        """The range in which numbers that count along a loop compare so with another one."""
        plan = self.plan
        if isinstance(counting, Uniform) or counting.value in plan.made:
            return None
        if not plan.is_fixed(node, other) or not all(
            x.dtype.kind in "iu" and x.dtype != np.uint64 for x in (counting, other)
        ):
            return None
        access, row = plan.operand_access(counting, node), plan.row[-1]
        of_rows = bool(plan.outer) and plan.is_fixed(node, counting)
        loop = plan.outer[-1] if of_rows else row
        counted = self._counted(counting, access, loop)
        if counted is None or (
            of_rows and (counted[1][0] != counted[1][1] or self._moves(other, node))
        ):
            return None
        step, firsts = counted
        held = _REST.get(word, word)
        sides = _SIDES[held if step > 0 else _MIRRORED[held]]
        key, facts = (access, _key(other)), (step, other, node, access, firsts, loop, of_rows)
        found = frozenset([Side(kind, key, more, *facts) for kind, more in sides])
        return found, word not in _REST

    def _moves(self, x: Operand, node: Node) -> bool:
        """Whether an operand differs from one row to the next."""
        if isinstance(x, Uniform):
            return False
        is_made = x.value in self.plan.made
        return is_made or bool(self.plan.outer[-1].steps[self.plan.operand_access(x, node)])

    def _divided_by(self, word: str, remainder: Operand, zero: Operand) -> Range | None:
        """The range in which a number divides those that count along the row."""
        node = _remainder_of(word, (remainder, zero))
        if node is None or node is not self._maker(remainder):
            return None
        _, (counting, divisor) = parts_of(node)
        found = self._compared("equal", counting, divisor, node)
        if found is None:
            return None
        side = next(iter(found[0]))
        if side.of_rows:
            return None
        multiple = replace(side, kind="multiple", more=0, node=node)
        return frozenset([multiple]), _IS_ZERO[word]

    def _counted(self, x: View, access: Access, loop: Loop) -> tuple[int, Interval] | None:
        """The step of a counter along a loop, 1 or -1, and where it begins, if it is one."""
        if len(x.shape) != len(self.plan.shape) or not loop.steps[access]:
            return None
        numbers = known_numbers(x)
        if numbers is None or loop.size < 2 or numbers.dtype.kind not in "iu":
            return None
        rows = numbers.transpose(self.plan.order).reshape(-1, loop.size).astype(np.int64)
        steps = np.diff(rows, axis=1)
        step, firsts = int(steps[0, 0]), (int(rows[:, 0].min()), int(rows[:, 0].max()))
        is_even = step in (1, -1) and bool((steps == step).all())
        return (step, firsts) if is_even and max(map(abs, firsts)) < FARTHEST else None

    def _known(self, x: Operand, sides: Sides, node: Node, inside: bool) -> bool | None:
        """The value of a condition between some bounds, or outside of them, if it is known."""
        found = self._range_or_number(x, node)
        if found is not None:
            own, is_inside = found
            if own <= sides if inside else sides <= own:
                return is_inside == inside
            if _has_opposite(own):
                opposite = {side.opposite for side in own}
                if opposite <= sides if inside else opposite == sides:
                    return is_inside != inside
        maker = self._maker(x)
        if maker is None:
            return None
        word, operands = parts_of(maker) if maker.out.dtype == BOOL else ("", [])
        known = [self._known(y, sides, maker, inside) for y in operands if y.dtype == BOOL]
        if word in _NEGATIONS:
            return None if known[0] is None else not known[0]
        if word not in _DECISIVE:
            return None
        decisive = _DECISIVE[word]
        if decisive in known:
            return decisive
        return None if None in known else not decisive

    def _chosen(self, body: Sequence[Node], sides: Sides, inside: bool) -> Chosen:
        """The operands that `select` nodes are between some bounds, or outside of them."""
        chosen: dict[Node, Operand] = {}
        for node in body:
            for condition, if_so, if_not in _choices(node):
                known = self._known(condition, sides, node, inside)
                if known is not None:
                    x = if_so if known else if_not
                    if x.dtype == node.out.dtype:
                        chosen[node] = x
        return chosen

    # Parts.

    def _divided(
        self, body: Sequence[Node], sides: Sides, vectors: Vectors | None
    ) -> tuple[tuple[bool, float, int], Split] | None:
        """The body outside of some bounds, with what it saves."""
        chosen = self._chosen(body, sides, inside=False)
        if not chosen:
            return None
        roots = [node for node in body if self._has_effect(node, chosen)]
        outside = self._needed(body, roots, chosen)
        saved = sum(map(_cost, {*body} - {*outside}))
        saved += LOOKUP * len(self._read(body, NOTHING) - self._read(outside, chosen))
        is_same = all(self._is_of_one_number(node, chosen) for node in roots)
        if not is_same and (saved < HEAVY or _is_about_rows(sides)):
            return None
        is_strided = any(side.kind == "multiple" for side in sides)
        if is_strided and (roots or _folds(self.plan, body)):
            return None
        if vectors is None and is_rounded(self.plan, body):
            return None  # LLVM adds in an order of its own, which depends on where a row is divided
        ordered = tuple(sorted(sides, key=self._order))
        rank = is_same, saved, len(sides)
        outer = Part(outside, chosen)
        inner = Part(list(body), NOTHING)
        if not is_rounded(self.plan, body):
            chosen = self._chosen(body, sides, inside=True)
            wanted = [n for n in body if n in self.plan.outs or self._is_kept(n)]
            inner = Part(self._needed(body, wanted, chosen), chosen)
        return rank, Split(ordered, inner, outer, is_same)

    def _needed(self, body: Sequence[Node], roots: Iterable[Node], chosen: Chosen) -> list[Node]:
        """Nodes on which some nodes of a body depend, in its order."""
        members = {*body}

        def needs(node: Node) -> Iterator[Node]:
            for x in (chosen[node],) if node in chosen else node.operands:
                maker = self.plan.made.get(x.value) if isinstance(x, View) else None
                if maker in members and not isinstance(maker, Fold):
                    yield maker

        needed = {*depth_first(roots, needs)}
        return [node for node in body if node in needed]

    def _read(self, body: Iterable[Node], chosen: Chosen) -> set[Access]:
        """The arrays that some nodes read along the row."""
        full = filter(self.plan.is_full, body)
        operands = {node: (chosen[node],) if node in chosen else node.operands for node in full}
        found = (access for row in operands.items() for access in self.plan.read(*row))
        return {access for access in found if self.plan.row[-1].steps[access]}

    def _order(self, side: Side) -> tuple[bool, str, int, int]:
        """Sort key of a side; conditions on row numbers come last."""
        places = [side.operand is x for x in side.node.operands]
        return side.of_rows, side.kind, self.plan.nodes.index(side.node), places.index(True)

    def _source(self, x: Operand, chosen: Chosen) -> Operand:
        """The operand that one is outside."""
        maker = self.plan.made.get(x.value) if isinstance(x, View) else None
        if maker is None or maker not in chosen:
            return x
        return self._source(chosen[maker], chosen)

    def _has_effect(self, node: Node, chosen: Chosen) -> bool:
        """Whether a node changes anything outside."""
        if isinstance(node, Fold):
            x = self._source(node.operands[0], chosen)
            zero = neutral(node.form.init, node.out.dtype)
            return not (isinstance(x, Uniform) and x.dtype == zero.dtype and x.scalar == zero)
        if node in self.plan.outs:
            old = self._source(chosen[node], chosen) if node in chosen else None
            if isinstance(old, View) and old.value in self.plan.made:
                return not _is_of_same_place(self.plan.made[old.value], node)
            if not isinstance(old, View):
                return True
            return self.plan.operand_access(old, node) is not self.plan.outs[node]
        return self._is_kept(node)

    def _is_kept(self, node: Node) -> bool:
        """Whether a node is a fold, or a lookup that is watched."""
        return isinstance(node, Fold) or (isinstance(node, Pick) and self.is_watched(node))

    def _is_of_one_number(self, node: Node, chosen: Chosen) -> bool:
        """Whether it folds one number again and again outside, which changes a result once."""
        if not isinstance(node, Fold) or self.plan.kind(node) not in ("inner", "total"):
            return False
        return is_idempotent(node) and isinstance(self._source(node.operands[0], chosen), Uniform)


def asks_index(node: Node) -> bool:
    """Whether it compares numbers that count along one of the last two axes with one number."""
    if type(node) is not Point or node.out.dtype != BOOL:
        return False
    word, operands = parts_of(node)
    if not node.out.shape:
        return False
    if word in _DECISIVE or word in _NEGATIONS:
        return all(isinstance(x, View) and _is_along(x) for x in operands)
    if word not in _MIRRORED or len(operands) != 2:
        return False
    return any(
        isinstance(x, View) and _counts(x, axis) and not y.strides[axis]
        for x, y in (operands, operands[::-1])
        for axis in range(-min(len(x.shape), 2), 0)
    )


def _is_along(x: View) -> bool:
    """Whether an operand is a condition on the index of its last axis."""
    value = x.value
    if value.maker is None or x.offset or not x.shape or not value.shape:
        return False
    ends = (x.shape[-1], x.strides[-1]) == (value.shape[-1], value.strides[-1])
    return ends and asks_index(value.maker)


def is_bounded(x: Operand) -> bool:
    """Whether the index bounds where a condition holds, or where it does not."""
    maker = x.value.maker if isinstance(x, View) else None
    if type(maker) is not Point or maker.out.dtype != BOOL:
        return False
    word, operands = parts_of(maker)
    return asks_index(maker) or (word in _DECISIVE and any(map(is_bounded, operands)))


def _remainder_of(word: str, operands: Sequence[Operand]) -> Point | None:
    """The node of the remainder that a comparison compares with zero, if it does."""
    if word not in _IS_ZERO:
        return None
    x, zero = operands
    maker = x.value.maker if isinstance(x, View) else None
    if type(maker) is not Point or not isinstance(zero, Uniform) or zero.scalar:
        return None
    return maker if parts_of(maker)[0] in _REMAINDERS else None


def keeps_elements(node: Node, value: Value) -> bool:
    """Whether a node changes an array only where a condition on the index holds."""
    return any(
        isinstance(x, View) and x.value is value and is_bounded(condition)
        for condition, *operands in _choices(node)
        for x in operands
    )


def _counts(x: View, axis: int) -> bool:
    numbers = known_numbers(x)
    if numbers is None or x.dtype.kind not in "iu" or numbers.shape[axis] < 2:
        return False
    steps = np.diff(numbers.astype(np.int64), axis=axis)
    return int(steps.flat[0]) in (1, -1) and bool((steps == steps.flat[0]).all())


def _cost(node: Node) -> float:
    if isinstance(node, Point) and not is_function(node):
        return node.cost
    return FUNCTION


def _key(x: Operand) -> Hashable:
    if isinstance(x, Uniform):
        return x.dtype.char, x.scalar.tobytes()
    return x.value, x.strides, x.offset


def _choices(node: Node) -> list[tuple[Operand, Operand, Operand]]:
    """Conditions of a node, each with its values where it holds and where it does not."""
    if type(node) is not Point:
        return []
    word, operands = parts_of(node)
    if word.startswith("select"):
        condition, a, b = operands
        return [(condition, a, b)] if condition.dtype == BOOL else []
    if word not in _DECISIVE or node.out.dtype != BOOL:
        return []
    decisive: Operand = Uniform(np.bool_(_DECISIVE[word]), node.out.shape)
    a, b = operands
    return [(x, decisive, y) if _DECISIVE[word] else (x, y, decisive) for x, y in ((a, b), (b, a))]


def _negated(found: Range) -> Range:
    sides, is_inside = found
    if _has_opposite(sides):
        return frozenset(side.opposite for side in sides), is_inside
    return sides, not is_inside


def _is_of_same_place(pick: Node, node: Node) -> bool:
    """Whether a lookup finds what a node replaces, in an array of which it changes a row."""
    put, part = node.out.placed_by, node.out.part
    if not isinstance(pick, Pick) or put is None or part is None:
        return False
    x, *indices = pick.operands
    own, base, modes = put.operands[2:], put.operands[0], {pick.mode, put.mode}
    return (
        isinstance(x, View)
        and x.value is base.value
        and (x.shape, x.strides, x.offset) == (part.shape, part.strides, part.offset)
        and (pick.lengths, pick.steps) == (put.lengths, put.steps)
        and (len(modes) == 1 or modes <= _COUNTED)
        and all(_number(a) == _number(b) for a, b in zip(indices, own, strict=True))
    )


def _number(x: Operand) -> Hashable:
    """The number that is the same at all indices, if it is."""
    is_one = not any(s for n, s in zip(x.shape, x.strides, strict=True) if n > 1)
    return (x.value, x.offset) if is_one and isinstance(x, View) else x


def _is_about_rows(sides: Sides) -> bool:
    """Whether all of a row is between some bounds, or nothing."""
    return all(side.of_rows for side in sides)


def _has_opposite(sides: Sides) -> bool:
    """Whether other bounds hold exactly where these do not."""
    return len(sides) == 1 and all(side.kind in _OPPOSITE for side in sides)


def _folds(plan: Plan, body: Collection[Node]) -> list[Fold]:
    """The folds along the row."""
    return [n for n in body if isinstance(n, Fold) and plan.kind(n) in ("inner", "total")]


def is_rounded(plan: Plan, body: Collection[Node]) -> bool:
    """Whether results of folds along the row may depend on their order."""
    return any(fold.out.dtype.kind not in "biu" for fold in _folds(plan, body))
