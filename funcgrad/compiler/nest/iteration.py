"""Iteration spaces: nested loops over axes, and the accesses to memory that they move along.

Axes come in segments, one inside the other. Neighbouring axes of a segment along which every access
goes on alike are one loop. A loop moves the pointers of accesses by steps in bytes, which are words
of the kernel. The innermost loop that moves an access indexes it instead, if the space has it so:
by a number that LLVM knows, where elements are near each other. The innermost loop of all computes
elements one by one or in vectors; then its index is that of lanes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from funcgrad.compiler.loops.language import Expression, For, Number, Variable, call
from funcgrad.compiler.loops.strip_mine import Vectors, strip_mine
from funcgrad.compiler.machine import FEW, SEVERAL, VECTOR_BYTES
from funcgrad.compiler.nest.kernel import KernelBuilder
from funcgrad.compiler.nest.layout import Operand, Shape, Uniform, Value, View

Span = tuple[Expression, Expression]
"""Half-open range of an index: its begin and its end."""

FIRST = Number(0)
"""The index of a pointer's own element."""

LITERAL_LENGTH = 2 * VECTOR_BYTES // 4
"""Greatest length of rows that kernels are specialised for, of views with literal steps."""


class Access:
    """An operand at the indices of a space, in memory or a number that is the same for all.

    Attributes:
        strides: Elements from one index to the next, along every axis of the space.
        pointers: That to its first element, and those that loops around have moved.
        loop: The loop that indexes it, if one does.
        neighbour: An access to the same elements but for a small distance: both count from one
            pointer, so that LLVM sees that they lie beside each other.
    """

    def __init__(
        self, operand: Operand | Value, strides: Sequence[int] | None = None, offset: int = 0
    ) -> None:
        self.uniform = operand if isinstance(operand, Uniform) else None
        if strides is None:
            strides = operand.strides if isinstance(operand, View) else (0,) * len(operand.shape)
        if not isinstance(operand, Uniform | Value):
            operand, offset = operand.value, operand.offset
        self.value = operand.home if isinstance(operand, Value) else None
        self.dtype = operand.dtype if self.value is None else self.value.dtype
        self.strides = tuple(strides)
        self.offset = offset
        self.pointers: list[Variable] = []
        self.name = ""
        self.scope = 0
        self.loop: Loop | None = None
        self.neighbour: Access | None = None

    @property
    def pointer(self) -> Variable:
        """The pointer to its element at the indices of the loops around, but for the last one."""
        return self.pointers[-1]


class Loop:
    """Axes that are one loop.

    Attributes:
        axis: The last of them.
        steps: Elements from one index to the next, for every access.
        longest: The longest step by which it indexes accesses; 0 if it only moves pointers.
        is_open: Whether statements are inside of it.
    """

    def __init__(self, variable: str, size: int, axis: int, steps: dict[Access, int]) -> None:
        self.variable = variable
        self.size = size
        self.axis = axis
        self.steps = steps
        self.longest = 0
        self.is_open = False
        self.begin: Expression = FIRST
        self.end: Expression = FIRST

    @property
    def index(self) -> Variable:
        """The variable of its index."""
        return Variable(self.variable)

    def is_near(self, access: Access) -> bool:
        """Whether the distance of its elements is a part of the text."""
        return access.loop is self and abs(self.steps[access]) <= self.longest


Segment = tuple[str, Sequence[int], int]
"""Axes from the outside in: how the indices of their loops begin, the axes, and `Loop.longest` of
the innermost one."""


class IterationSpace:
    """Loops over axes, of which those ``apart`` are loops of their own.

    Attributes:
        segments: The loops of every segment, from the outside in.
        in_vectors: Whether the index of the innermost loop is that of lanes.
        suffix: Ends of names of vectors outside of loops: each is one value.
    """

    def __init__(
        self,
        source: KernelBuilder,
        shape: Shape,
        accesses: Iterable[Access],
        segments: Iterable[Segment],
        apart: Collection[int] = (),
    ) -> None:
        self.source = source
        self.shape = shape
        self.accesses = [*accesses]
        self.apart = apart
        self.segments = [self._merged(*segment) for segment in segments]
        self.loops = [loop for loops in self.segments for loop in loops]
        self.suffix = ""
        self.in_vectors = False
        self._suffixes = (f"_{k}" for k in itertools.count(1))
        for access in self.accesses:
            moving = [loop for loop in self.loops if loop.steps[access]]
            access.loop = moving[-1] if moving and moving[-1].longest else None

    def _merged(self, prefix: str, axes: Sequence[int], longest: int) -> list[Loop]:
        loops: list[Loop] = []
        for axis in axes:
            size = self.shape[axis]
            steps = {access: access.strides[axis] for access in self.accesses}
            if loops and not {axis, loops[-1].axis} & {*self.apart}:
                outer = loops[-1]
                if all(outer.steps[access] == step * size for access, step in steps.items()):
                    outer.size, outer.axis, outer.steps = outer.size * size, axis, steps
                    continue
            loops.append(Loop(f"{prefix}{len(loops)}", size, axis, steps))
        if loops:
            loops[-1].longest = longest
        return loops

    # Words.

    def declare(self, first: Loop | None, only_written: Collection[Value | None] = ()) -> None:
        """Names for sizes, pointers and steps in bytes, behind the range of the first loop."""
        source = self.source
        if first is not None:
            begin, end = source.span()
            first.begin, first.end = source.assign("begin", begin), source.assign("end", end)
        for loop in self.loops:
            if loop is not first:
                size = loop.size if self._is_literal(loop) else source.word(loop.size)
                loop.end = source.assign(f"n_{loop.variable}", size)
        for access in sorted(self.accesses, key=lambda access: access.offset):
            access.neighbour = self._neighbour(access)
        scopes: dict[Value | Access, int] = {}
        for k, access in enumerate(self.accesses):
            access.name = f"p{k}"
            if access.value is None:
                continue
            root = access.neighbour or access
            # Parts of one array that is only written have no element in common.
            alone = root if access.value in only_written else access.value
            access.scope = scopes.setdefault(alone, len(scopes) + 1)
            if access.neighbour is None:
                access.pointers = [source.pointer(access.name, access.value, access.offset)]
                for loop in (x for x in self.loops if x.steps[access] and not x.is_near(access)):
                    nbytes = loop.steps[access] * access.dtype.itemsize
                    step = source.step(nbytes, access.dtype.itemsize)
                    source.assign(self.step(access, loop).name, step)

    def _is_literal(self, loop: Loop) -> bool:
        """Whether the text says how long a loop is.

        A few elements inside of another loop, which LLVM then writes out. Every other element of
        rows that are shorter than a few vectors: LLVM would leave most of them to what follows the
        loop over vectors. The only loop may be one over a batch, whose length is to be any.
        """
        skips = any(1 < step <= loop.longest for step in loop.steps.values())
        is_few = loop is self.loops[-1] and loop.size <= FEW
        return (is_few or (skips and loop.size <= LITERAL_LENGTH)) and len(self.loops) > 1

    def _neighbour(self, access: Access) -> Access | None:
        """The first access to elements between which those of this one lie."""
        loop = self.loops[-1] if self.loops else None
        if loop is None or loop.longest < 2 or not 2 <= loop.steps[access] <= SEVERAL:
            return None
        for other in self.accesses:
            distance = access.offset - other.offset
            near = other.neighbour is None and 0 < distance < loop.steps[access]
            if near and (other.value, other.strides) == (access.value, access.strides):
                return other
        return None

    def step(self, access: Access, loop: Loop) -> Variable:
        """The bytes from one index of a loop to the next, where they are a word."""
        return Variable(f"s{access.name[1:]}_{loop.variable}")

    # Loops.

    @contextmanager
    def over(
        self, loop: Loop, span: Span | None = None, is_reverse: bool = False
    ) -> Iterator[Variable]:
        """One loop, or a part of it, from its far end if it is to be."""
        begin, end = span or (loop.begin, loop.end)
        counter = f"{loop.variable}_left" if is_reverse else loop.variable
        with self.source.loop(counter, begin, end) as left:
            if is_reverse:
                self.source.assign(loop.variable, end - 1 - left)
            with self.open(loop):
                yield loop.index

    @contextmanager
    def open(self, loop: Loop) -> Iterator[None]:
        """Statements for the elements at the index of a loop, whose variable is set."""
        moved = [
            access
            for access, step in loop.steps.items()
            if step and access.loop is not loop and access.neighbour is None
        ]
        for access in moved:
            place = call("offset", access.pointer, loop.index * self.step(access, loop))
            name = f"{access.name}_{loop.variable}"
            access.pointers.append(self.source.assign(name, place))
        loop.is_open = True
        yield
        loop.is_open = False
        for access in moved:
            access.pointers.pop()

    @contextmanager
    def inside(
        self, loops: Iterable[Loop], span: Span | None = None, is_reverse: bool = False
    ) -> Iterator[None]:
        """Loops from the outside in; the first one over a part of its range, if one is given."""
        with ExitStack() as stack:
            for loop in loops:
                stack.enter_context(self.over(loop, span, is_reverse))
                span = None
            yield

    @contextmanager
    def elements(
        self,
        span: Span,
        vectors: Vectors | None,
        carried: Mapping[str, str] | None = None,
        is_cold: bool = False,
    ) -> Iterator[None]:
        """The innermost loop: one by one, or in vectors and what is left (`strip_mine`)."""
        source, loop, self.in_vectors = self.source, self.loops[-1], vectors is not None
        # Of few elements in all, LLVM's vectors would take longer to make than they save.
        is_cold |= math.prod(self.shape) < SEVERAL
        with source.loop(loop.variable, *span, is_cold=is_cold), self.open(loop):
            yield
        self.in_vectors = False
        if vectors is not None:
            made = source.body.pop()
            assert isinstance(made, For)
            source.body += strip_mine(made, vectors, self._suffixes, carried or {})

    @contextmanager
    def strided(self, first: Expression, count: Expression, step: Expression) -> Iterator[None]:
        """Elements of the innermost loop, one every so many."""
        loop = self.loops[-1]
        with self.source.loop(f"{loop.variable}_turn", 0, count) as turn:
            self.source.assign(loop.variable, first + turn * step)
            with self.open(loop):
                yield

    def lanes(self, lanes: Expression) -> str:
        """Name the index of lanes, for statements in vectors; the suffix of their names."""
        suffix = next(self._suffixes)
        self.source.assign(f"{self.loops[-1].variable}{suffix}", lanes)
        return suffix

    @contextmanager
    def in_lanes(self, suffix: str) -> Iterator[Variable]:
        """Statements in vectors: the index of the innermost loop is that of lanes."""
        self.suffix, self.in_vectors = suffix, True
        with self.open(self.loops[-1]):
            yield self.index_of(self.loops[-1])
        self.suffix, self.in_vectors = "", False

    def number(self, loops: Sequence[Loop]) -> Expression:
        """The row-major number of the current index, among those of some loops."""
        number: Expression = loops[0].index if loops else call("i64", 0)
        for loop in loops[1:]:
            number = number * loop.end + loop.index
        return number

    # Elements.

    def index_of(self, loop: Loop) -> Variable:
        """The index of a loop: in the innermost one that of lanes where there are vectors."""
        is_last = loop is self.loops[-1]
        return Variable(f"{loop.variable}{self.suffix}") if is_last else loop.index

    def place(self, access: Access) -> tuple[Expression, Expression]:
        """Pointer and index of the current element."""
        root, loop = access.neighbour or access, access.loop
        distance = access.offset - root.offset
        if loop is None or not loop.is_open:
            return root.pointer, Number(distance)
        step = loop.steps[access]
        if not loop.is_near(access):
            move = loop.index * self.step(root, loop)
            return call("offset", root.pointer, move), Number(distance)
        if step == 1:
            return root.pointer, self.index_of(loop)
        index = loop.index * step
        return root.pointer, index + distance if distance else index

    def address(self, access: Access) -> Expression:
        """The pointer to the current element."""
        pointer, index = self.place(access)
        is_there = isinstance(index, Number) and index.value == 0
        return pointer if is_there else call("advance", pointer, index)

    @contextmanager
    def counted_from(self, access: Access, pointer: Variable) -> Iterator[None]:
        """Statements in which an access counts from a pointer to the current element."""
        loop = access.loop
        if loop is not None and loop.is_open:
            access.loop = None
        access.pointers.append(pointer)
        yield
        access.pointers.pop()
        access.loop = loop

    def load(self, access: Access) -> Expression:
        """The current element, or those of lanes."""
        if access.uniform is not None:
            return self.source.literal(access.uniform.scalar)
        if self.in_vectors and self.is_far(access):
            pointer, nbytes = self._each(access)
            nbytes = call("present", self.index_of(self.loops[-1]), nbytes, 0)
            return call("load_each", pointer, nbytes, access.scope)
        if not (self.in_vectors and self.is_apart(access)):
            return call("load", *self.place(access), access.scope)
        return self.load_lanes(self.start(access), access)

    def start(self, access: Access) -> Expression:
        """The pointer to its element at the first index of the innermost loop."""
        root = access.neighbour or access
        distance = access.offset - root.offset
        return call("advance", root.pointer, distance) if distance else root.pointer

    def load_lanes(self, pointer: Expression, access: Access) -> Expression:
        """Elements of lanes, one or a few steps apart, or one for all."""
        loop = self.loops[-1]
        step, lanes = loop.steps[access], self.index_of(loop)
        if step in (0, 1):
            return call("load", pointer, lanes if step else 0, access.scope)
        return call("load_apart", pointer, lanes, step, access.scope)

    def store(self, access: Access, value: Expression | float) -> None:
        """Write the current element, or those of lanes."""
        if not self.in_vectors or self.loops[-1].steps[access] in (0, 1):
            self.source.store(*self.place(access), value, access.scope)
            return
        lanes, (pointer, nbytes) = self.index_of(self.loops[-1]), self._each(access)
        self.source.evaluate(call("store_each", pointer, lanes, nbytes, value, access.scope))

    def _each(self, access: Access) -> tuple[Expression, Expression]:
        """The pointer of the first index of the innermost loop, and bytes to all lanes."""
        loop, root = self.loops[-1], access.neighbour or access
        nbytes = loop.steps[access] * access.dtype.itemsize
        step = Number(nbytes) if loop.is_near(access) else self.step(root, loop)
        return self.start(access), call("i64", self.index_of(loop)) * step

    def is_apart(self, access: Access) -> bool:
        """Whether its elements lie apart along the innermost loop, but near each other."""
        loop = self.loops[-1]
        return loop.steps[access] not in (0, 1) and loop.is_near(access)

    def is_far(self, access: Access) -> bool:
        """Whether they lie farther apart: lanes are loaded and stored one by one."""
        loop = self.loops[-1]
        return loop.steps[access] not in (0, 1) and not loop.is_near(access)
