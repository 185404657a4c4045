"""Loops over an index space that move pointers along, for kernels written element by element.

Neighbouring axes that all operands walk as one are one loop; along the innermost one, operands
with neighbouring elements are indexed, which LLVM sees through, others are reached by byte steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from funcgrad.compiler.nest.layout import Operand, Shape, Uniform
from funcgrad.compiler.nest.source import BLOCK, Source
from funcgrad.records import dataclass


class Cursor:
    """An operand: the pointer to its current elements, and the index from there."""

    def __init__(self, source: Source, operand: Operand, name: str, scope: int) -> None:
        self.dtype = operand.dtype
        self.name = name
        self.scope = scope
        self.pointer = name
        self.index = "0"
        self.literal = ""
        if isinstance(operand, Uniform):
            self.literal = source.literal(operand.scalar)
            self.strides: tuple[int, ...] = (0,) * len(operand.shape)
        else:
            self.strides = operand.strides
            source.pointer(name, operand.value.home, operand.offset)

    def load(self, line: str = "") -> str:
        """The current element; of one of several lines (`Walk.together`) by its name."""
        return self.literal or f"load({self.pointer.format(line)}, {self.index}, {self.scope})"

    def store(self, value: str, line: str = "") -> str:
        return f"store({self.pointer.format(line)}, {self.index}, {value}, {self.scope})"


@dataclass
class Loop:
    """Several axes walked as one; strides in elements, one per cursor."""

    variable: str
    size: int
    strides: tuple[int, ...]
    length: str = ""

    @property
    def end(self) -> str:
        """Where it ends."""
        return self.length.rpartition(", ")[2]

    @property
    def begin(self) -> str:
        """Where it begins."""
        return self.length.rpartition(", ")[0] or "0"


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
        source: Source,
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
        self.steps: dict[tuple[str, int], str] = {}
        for i, loop in enumerate(self.loops):
            is_first = is_outermost and i == 0
            loop.length = "begin, end" if is_first else self._word(f"n_{loop.variable}", loop.size)
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

    def _word(self, name: str, value: int) -> str:
        self.source.add(f"{name} = {self.source.word(value)}")
        return name

    def _is_unit(self, loop: Loop, step: int) -> bool:
        return step == 1 and loop is self.loops[-1]

    @property
    def length(self) -> int:
        """Iterations of the first loop."""
        return self.loops[0].size

    @contextmanager
    def over(self, loop: Loop, span: str = "") -> Iterator[None]:
        """One loop."""
        saved = [(cursor.pointer, cursor.index) for cursor in self.cursors]
        counter = f"{loop.variable}_left" if self.is_reverse else loop.variable
        with self.source.block(f"for {counter} in range({span or loop.length}):"):
            if self.is_reverse:
                self.source.add(f"{loop.variable} = {loop.length} - 1 - {counter}")
            for k, (cursor, step) in enumerate(zip(self.cursors, loop.strides, strict=True)):
                if self._is_unit(loop, step):
                    self._settle(cursor, loop)
                    cursor.index = loop.variable
                elif step:
                    name = f"{cursor.name}_{loop.variable}"
                    move = f"{loop.variable} * {self.steps[loop.variable, k]}"
                    if "{}" in cursor.pointer:  # of several lines
                        cursor.pointer = f"offset({cursor.pointer}, {move})"
                        continue
                    self.source.add(f"{name} = offset({cursor.pointer}, {move})")
                    cursor.pointer = name
            yield
        for cursor, (pointer, index) in zip(self.cursors, saved, strict=True):
            cursor.pointer, cursor.index = pointer, index

    @contextmanager
    def together(self, loop: Loop, lines: Sequence[str]) -> Iterator[None]:
        """One loop, several lines at a time; the rest of them is from ``whole`` on.

        Args:
            loop: The loop.
            lines: What the names of each line's variables end with.
        """
        source, n = self.source, len(lines)
        source.add(f"whole = {loop.end} - ({loop.end} - {loop.begin}) % {n}")
        saved = [(cursor.pointer, cursor.index) for cursor in self.cursors]
        for cursor, step in zip(self.cursors, loop.strides, strict=True):
            if step:
                self._settle(cursor, loop)
        with source.block(f"for {loop.variable} in range({loop.begin}, whole, {n}):"):
            for k, (cursor, step) in enumerate(zip(self.cursors, loop.strides, strict=True)):
                if not step:
                    continue
                for r, line in enumerate(lines):
                    place = f"{loop.variable} + {r}"
                    moved = f"advance({cursor.pointer}, {place})"
                    if not self._is_unit(loop, step):
                        steps = self.steps[loop.variable, k]
                        moved = f"offset({cursor.pointer}, ({place}) * {steps})"
                    source.add(f"{cursor.name}{line} = {moved}")
                cursor.pointer, cursor.index = f"{cursor.name}{{}}", "0"
            yield
        for cursor, (pointer, index) in zip(self.cursors, saved, strict=True):
            cursor.pointer, cursor.index = pointer, index

    @contextmanager
    def blocks(self, loop: Loop, length: int = BLOCK) -> Iterator[None]:
        """One loop, from ``q`` to ``stop`` each time."""
        with self.source.block(f"for q in range({loop.begin}, {loop.end}, {length}):"):
            self.source.add(f"stop = minimum(q + {length}, {loop.end})")
            yield

    def _settle(self, cursor: Cursor, loop: Loop) -> None:
        """Make room for another index."""
        if cursor.index != "0":
            name = f"{cursor.name}_{loop.variable}"
            self.source.add(f"{name} = advance({cursor.pointer}, {cursor.index})")
            cursor.pointer = name

    @contextmanager
    def inside(self, loops: Sequence[Loop] | None = None, span: str = "") -> Iterator[None]:
        """All loops, or some of them from the outside in; the first one over a part of it."""
        loops = self.loops if loops is None else loops
        if not loops:
            yield
            return
        with self.over(loops[0], span), self.inside(loops[1:]):
            yield

    def number(self) -> str:
        """The row-major number of the current index."""
        number = self.loops[0].variable if self.loops else "i64(0)"
        for loop in self.loops[1:]:
            number = f"({number}) * {loop.length} + {loop.variable}"
        return number
