"""Loops over an index space that move pointers along, for kernels written element by element.

Neighbouring axes that all operands walk as one are one loop; along the innermost one, operands
with neighbouring elements are indexed, which LLVM sees through, others are reached by byte steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from funcgrad.base.records import dataclass
from funcgrad.compiler.loops.language import Expression, Number, Variable, call
from funcgrad.compiler.machine import SUM_BLOCK
from funcgrad.compiler.nest.kernel import KernelBuilder
from funcgrad.compiler.nest.layout import Operand, Shape, Uniform

Span = tuple[Expression, Expression]
"""Where indices begin and end."""

FIRST = Number(0)
"""The index of a pointer's own element."""


class Cursor:
    """An operand: the pointer to its current elements, and the index from there."""

    def __init__(self, source: KernelBuilder, operand: Operand, name: str, scope: int) -> None:
        self.source = source
        self.dtype = operand.dtype
        self.name = name
        self.scope = scope
        self.pointer: Expression = Variable(name)
        self.index: Expression = FIRST
        self.lines: dict[str, Expression] = {}
        """The pointers of several lines that are walked together, by their names."""
        self.literal: Expression | None = None
        if isinstance(operand, Uniform):
            self.literal = source.literal(operand.scalar)
            self.strides: tuple[int, ...] = (0,) * len(operand.shape)
        else:
            self.strides = operand.strides
            source.pointer(name, operand.value.home, operand.offset)

    def load(self, line: str = "") -> Expression:
        """The current element; of one of several lines (`Walk.together`) by its name."""
        if self.literal is not None:
            return self.literal
        return call("load", self.lines.get(line, self.pointer), self.index, self.scope)

    def store(self, value: Expression | float, line: str = "") -> None:
        """Write the current element, likewise."""
        self.source.store(self.lines.get(line, self.pointer), self.index, value, self.scope)

    def move(self, name: str, nbytes: Expression) -> None:
        """Go on to elements some bytes further; those of lines get no names."""
        if self.lines:
            self.lines = {k: call("offset", p, nbytes) for k, p in self.lines.items()}
        else:
            self.pointer = self.source.assign(name, call("offset", self.pointer, nbytes))


@dataclass
class Loop:
    """Several axes walked as one; strides in elements, one per cursor."""

    variable: str
    size: int
    strides: tuple[int, ...]
    begin: Expression = FIRST
    end: Expression = FIRST

    @property
    def index(self) -> Variable:
        """The variable of its index."""
        return Variable(self.variable)


class Walk:
    """Loops over an index space that move cursors along.

    Args:
        source: The kernel.
        prefix: Start of the names of its variables.
        shape: The index space.
        moved: The cursors, with their strides along its axes.
        is_outermost: Whether its first loop, which there is then, is that of the kernel's argument
            words.
        is_reverse: Whether its loops run from their far ends.
    """

    def __init__(
        self,
        source: KernelBuilder,
        prefix: str,
        shape: Shape,
        moved: Sequence[tuple[Cursor, Sequence[int]]],
        is_outermost: bool = False,
        is_reverse: bool = False,
    ) -> None:
        self.source = source
        self.is_reverse = is_reverse
        self.cursors = [cursor for cursor, _ in moved]
        self.loops: list[Loop] = []
        for axis, size in enumerate(shape):
            self._add(prefix, size, tuple(strides[axis] for _, strides in moved))
        if is_outermost and not self.loops:
            self.loops.append(Loop(f"{prefix}0", 1, (0,) * len(moved)))
        self.steps: dict[tuple[str, int], Expression] = {}
        for i, loop in enumerate(self.loops):
            if is_outermost and i == 0:
                loop.begin, loop.end = Variable("begin"), Variable("end")
            else:
                loop.end = self._word(f"n_{loop.variable}", loop.size)
            for k, (cursor, step) in enumerate(zip(self.cursors, loop.strides, strict=True)):
                if step and not self._is_unit(loop, step):
                    nbytes = step * cursor.dtype.itemsize
                    self.steps[loop.variable, k] = self._word(f"s{k}_{loop.variable}", nbytes)

    def _add(self, prefix: str, size: int, strides: tuple[int, ...]) -> None:
        if size == 1:
            return
        if self.loops:
            outer = self.loops[-1]
            if all(s == t * size for s, t in zip(outer.strides, strides, strict=True)):
                self.loops[-1] = Loop(outer.variable, outer.size * size, strides)
                return
        self.loops.append(Loop(f"{prefix}{len(self.loops)}", size, strides))

    def _word(self, name: str, value: int) -> Expression:
        return self.source.assign(name, self.source.word(value))

    def _is_unit(self, loop: Loop, step: int) -> bool:
        return step == 1 and loop is self.loops[-1]

    @property
    def length(self) -> int:
        """Iterations of the first loop."""
        return self.loops[0].size

    @contextmanager
    def over(self, loop: Loop, span: Span | None = None) -> Iterator[None]:
        """One loop."""
        saved = [(cursor.pointer, cursor.lines, cursor.index) for cursor in self.cursors]
        counter = f"{loop.variable}_left" if self.is_reverse else loop.variable
        with self.source.loop(counter, *(span or (loop.begin, loop.end))) as left:
            if self.is_reverse:
                self.source.assign(loop.variable, loop.end - 1 - left)
            for k, (cursor, step) in enumerate(zip(self.cursors, loop.strides, strict=True)):
                if self._is_unit(loop, step):
                    self._settle(cursor, loop)
                    cursor.index = loop.index
                elif step:
                    move = loop.index * self.steps[loop.variable, k]
                    cursor.move(f"{cursor.name}_{loop.variable}", move)
            yield
        for cursor, state in zip(self.cursors, saved, strict=True):
            cursor.pointer, cursor.lines, cursor.index = state

    @contextmanager
    def together(self, loop: Loop, lines: Sequence[str]) -> Iterator[None]:
        """One loop, several lines at a time; the rest of them is from ``whole`` on.

        Args:
            loop: The loop.
            lines: What the names of each line's variables end with.
        """
        source, n = self.source, len(lines)
        whole = source.assign("whole", loop.end - (loop.end - loop.begin) % n)
        saved = [(cursor.pointer, cursor.index) for cursor in self.cursors]
        for cursor, step in zip(self.cursors, loop.strides, strict=True):
            if step:
                self._settle(cursor, loop)
        with source.loop(loop.variable, loop.begin, whole, n):
            for k, (cursor, step) in enumerate(zip(self.cursors, loop.strides, strict=True)):
                if not step:
                    continue
                for r, line in enumerate(lines):
                    place = loop.index + r
                    moved = call("advance", cursor.pointer, place)
                    if not self._is_unit(loop, step):
                        nbytes = place * self.steps[loop.variable, k]
                        moved = call("offset", cursor.pointer, nbytes)
                    cursor.lines[line] = source.assign(f"{cursor.name}{line}", moved)
                cursor.index = FIRST
            yield
        for cursor, (pointer, index) in zip(self.cursors, saved, strict=True):
            cursor.pointer, cursor.lines, cursor.index = pointer, {}, index

    @contextmanager
    def blocks(self, loop: Loop, length: int = SUM_BLOCK) -> Iterator[Span]:
        """One loop in blocks: the span of each."""
        with self.source.loop("q", loop.begin, loop.end, length) as q:
            stop = self.source.assign("stop", call("minimum", q + length, loop.end))
            yield q, stop

    def _settle(self, cursor: Cursor, loop: Loop) -> None:
        """Make room for another index."""
        if cursor.index is not FIRST:
            advanced = call("advance", cursor.pointer, cursor.index)
            cursor.pointer = self.source.assign(f"{cursor.name}_{loop.variable}", advanced)

    @contextmanager
    def inside(
        self, loops: Sequence[Loop] | None = None, span: Span | None = None
    ) -> Iterator[None]:
        """All loops, or some of them from the outside in; the first one over a part of it."""
        loops = self.loops if loops is None else loops
        if not loops:
            yield
            return
        with self.over(loops[0], span), self.inside(loops[1:]):
            yield

    def number(self) -> Expression:
        """The row-major number of the current index."""
        number: Expression = self.loops[0].index if self.loops else call("i64", 0)
        for loop in self.loops[1:]:
            number = number * loop.end + loop.index
        return number
