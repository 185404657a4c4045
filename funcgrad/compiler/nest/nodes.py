"""The nodes of a graph: what is computed into memory.

`lower` makes them of equations; fusion, the code generators and the memory plan work on them. This
module holds data, and queries that concern one node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self, TypeVar

import numpy as np

from funcgrad import lowering as forms
from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.access import Pieces
from funcgrad.compiler.nest.layout import Box, Operand, Shape, Value, View, whole
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Equation
from funcgrad.intrinsics import expression
from funcgrad.observers.source import SourceLocation

N = TypeVar("N", bound="Node")
T = TypeVar("T")


@dataclass(frozen=True)
class Site:
    """A word of kernels: the number of this entry in the program's list of what they may refuse.

    Attributes:
        equation: What is refused.
        operand: Which of its index arrays is.
        index: That array, where its elements are looked at in the kernel.
        length: That of its axis.
    """

    equation: Equation
    operand: int
    index: Operand | None = None
    length: int = 0


@dataclass(eq=False)
class Node:
    """Something that computes values."""

    operands: tuple[Operand, ...]
    outs: tuple[Value, ...]
    epoch: int = field(default=0, init=False)
    """How many barriers come before it: nodes of different epochs share no kernel."""
    equation: Equation | None = field(default=None, init=False)
    """Equation that it computes, or computes a part of: errors and plans name it."""
    n_parts: int = field(default=1, init=False)
    """Nodes like it that the same array is computed by: axes of it are written out."""

    def __post_init__(self) -> None:
        for out in self.outs:
            out.maker = self
            out.is_stored = False

    @property
    def out(self) -> Value:
        return self.outs[0]

    @property
    def space(self) -> Shape:
        """The index space that it loops over; that of a number, if it has no results."""
        return self.outs[0].shape if self.outs else ()

    @property
    def is_effectful(self) -> bool:
        """Whether it happens even if nobody reads its results, and in order with others."""
        return False

    @property
    def is_expensive(self) -> bool:
        """Whether that is better kept than computed a second time."""
        return False

    def looks_around(self, k: int) -> bool:
        """Whether it reads an operand elsewhere than at the index that it is at."""
        return False

    @property
    def elements(self) -> tuple[Operand, ...]:
        """The operands that it reads at the index that it is at."""
        return tuple(x for k, x in enumerate(self.operands) if not self.looks_around(k))

    def like(self, node: Node) -> Self:
        """The same node, computed for the same equation, and among the same, as another one."""
        self.epoch, self.equation, self.n_parts = node.epoch, node.equation, node.n_parts
        return self


@dataclass(eq=False)
class Point(Node):
    """One scalar expression for every element."""

    expr: str

    @property
    def cost(self) -> int:
        """Operations of its expression for every element, as of `intrinsics`."""
        return expression(self.expr).cost

    @property
    def is_expensive(self) -> bool:
        return expression(self.expr).is_expensive


@dataclass(eq=False)
class Guard(Point):
    """The first operand inside of a box of the index space, the second one outside.

    Outside of the box the first operand need not have elements; it is not read there.
    """

    expr: str = field(default="{0}", init=False)
    box: Box
    is_fence: bool = False
    """Whether nobody uses what it is outside of the box."""


@dataclass(eq=False)
class Fold(Node):
    """A reduction of its operand."""

    form: forms.Reduction

    @property
    def space(self) -> Shape:
        return self.operands[0].shape


@dataclass(eq=False)
class Scan(Node):
    """A running fold of its operands."""

    form: forms.PrefixScan


@dataclass(frozen=True)
class Matrices:
    """A stack of matrices in memory, as BLAS is told of it: strides count elements."""

    is_transposed: bool
    row_stride: int
    batch_stride: int

    @staticmethod
    def of(x: View) -> Matrices | None:
        """The stack that a view with three axes shows, if BLAS can be told of it.

        It wants neighbours in one direction, and a distance of at least a row in the other. Rows or
        columns of length one have no distance.
        """
        _, m, n = x.shape
        step, row, column = x.strides
        if 0 in x.shape:
            return Matrices(False, max(n, 1), 0)  # no element is read
        if column == 1 or n == 1:
            row = n if m == 1 else row
            if row >= n:
                return Matrices(False, row, step)
        if row == 1 or m == 1:
            column = m if n == 1 else column
            if column >= m:
                return Matrices(True, column, step)
        return None


@dataclass(frozen=True, eq=False)
class Tables:
    """Distances of what a product reads, in operands that are no matrices.

    Attributes:
        distances: The tables of `abi.TILE_TABLES` but that of the strips.
        columns: How many neighbours in B go into as many neighbours of the output: a line.
        lines: Bytes to every line, in B and in the output.
    """

    distances: tuple[np.ndarray, ...]
    columns: int
    lines: np.ndarray


@dataclass(eq=False)
class Product(Node):
    """Sums of products of the first operand, A, and the second, B.

    They are stacks of matrices that BLAS takes, ``[batch, m, k] @ [batch, k, n]``; or arrays whose
    elements lie where tables say, in any regular order.

    Attributes:
        tables: What says it.
        is_of_pairs: Whether elements are pairs of integers, halves of one, that are two terms.
    """

    tables: Tables | None = None
    is_of_pairs: bool = False

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The numbers ``(batch, m, n, k)``."""
        if self.tables is not None:
            outer, rows, blocks, terms = map(len, self.tables.distances)
            return outer, rows, self.tables.columns * len(self.tables.lines), blocks * terms
        (batch, m, k), (_, _, n) = (x.shape for x in self.operands)
        return batch, m, n, k

    @property
    def layouts(self) -> tuple[Matrices, Matrices]:
        """Layouts of both operands, if they are matrices."""
        a, b = (Matrices.of(x) for x in self.operands if isinstance(x, View))
        assert a is not None
        assert b is not None
        return a, b

    def looks_around(self, k: int) -> bool:
        return True


@dataclass(eq=False)
class Copies(Node):
    """Operand ``i`` is written to ``places[i]``, a part of the output, one after the other."""

    places: tuple[View, ...]
    is_fresh: bool = False
    """Whether its memory is to be its own, not that of an operand."""

    @property
    def pieces(self) -> Pieces:
        """The array by its pieces."""
        return Pieces(self.operands, self.places)

    @property
    def is_of_one_dtype(self) -> bool:
        """Whether no piece is converted."""
        return all(x.dtype == self.out.dtype for x in self.operands)


@dataclass(eq=False)
class Checked(Node):
    """The integers of its operand as places along an axis, of which wrong ones are refused.

    For places at which there is nothing to be read or written; others are looked at in passing.

    Attributes:
        length: The length of the axis.
        number: Which of the index arrays of its equation it is.
    """

    length: int
    number: int

    @property
    def is_effectful(self) -> bool:
        return True


@dataclass(eq=False)
class Pick(Node):
    """An element of an array for every index: a lookup or window that shares kernels.

    The first operand has, at every index, the element that is meant if all integers are 0. The
    others, of the shape of the output, are these integers: places along some axes of the array.

    Attributes:
        mode: What an integer means, as in `places.resolve`, or "start": that of a window.
        lengths: For every integer, how many places there are along its axis.
        steps: For every integer, how many elements it is from place to place.
        fill: What is read where there is no place, in mode "fill".
        sites: For every integer, in mode "raise", what says that it is out of bounds, or nothing
            where that is impossible.
    """

    mode: str
    lengths: tuple[int, ...]
    steps: tuple[int, ...]
    fill: Any = None
    sites: tuple[Site | None, ...] = ()

    def looks_around(self, k: int) -> bool:
        return k == 0


@dataclass(eq=False)
class Put(Node):
    """The first operand with elements of the second taken in: a scatter, the converse of `Pick`.

    The other operands are integers, of the shape of the second one, which is its index space.

    Attributes:
        target: For every element of the second operand the element of the output that it is taken
            into if all integers are 0.
        mode: As of `Pick`; where there is no place, the element is left out.
        lengths: As of `Pick`.
        steps: As of `Pick`.
        n_rest: How many axes, from the end, are those of the array that are not indexed.
        lanes: Axes at whose indices different elements of the output are meant, whatever the
            integers are.
        step: What an element, ``{0}``, is replaced by when ``{1}`` comes to it.
        sites: As of `Pick`.
    """

    target: View
    mode: str
    lengths: tuple[int, ...]
    steps: tuple[int, ...]
    n_rest: int
    lanes: frozenset[int]
    step: str
    sites: tuple[Site | None, ...] = ()

    @property
    def space(self) -> Shape:
        return self.operands[1].shape

    def looks_around(self, k: int) -> bool:
        return k == 0


@dataclass(eq=False)
class Search(Node):
    """How many elements of the first operand come before each element of the second."""

    form: forms.Search


@dataclass(eq=False)
class Routine(Node):
    """Calls of functions of libraries.

    Attributes:
        calls: The calls; none where results are only memory.
        n_stack: The number of leading axes that count elements of the stack.
        memory: Its arrays as they are stored, by number: operands, results and what is between.
        starts: What some of them are copies of at first, by their numbers.
    """

    calls: tuple[forms.LibraryCall, ...]
    n_stack: int
    memory: dict[int, View]
    starts: tuple[tuple[int, Operand], ...]
    begun_by: Routine | None = None
    """The node that has begun the call that this one waits for."""

    @property
    def is_effectful(self) -> bool:
        return self.equation is not None and self.equation.primitive.is_effectful

    @property
    def background(self) -> forms.Background | None:
        """Work that goes on in the background when it has run."""
        call = self.calls[0] if self.calls else None
        return call.background if isinstance(call, forms.NativeCall) else None

    @property
    def replaced(self) -> Operand | None:
        """The operand whose memory the result may take, if its calls can work in place."""
        call = self.calls[0] if len(self.calls) == 1 else None
        works = isinstance(call, forms.NativeCall) and bool(call.in_place)
        return self.operands[0] if works else None

    @property
    def is_in_place(self) -> bool:
        """Whether the result has the memory of the first operand."""
        x = self.replaced
        return isinstance(x, View) and x.value.home is self.out.home


@dataclass(eq=False)
class External(Node):
    """A call of NumPy, of a callback, or of a loop that Python runs.

    Attributes:
        primitive: What is evaluated.
        source: The user's line.
    """

    primitive: Primitive
    source: SourceLocation | None

    @property
    def is_effectful(self) -> bool:
        return self.primitive.is_effectful

    @property
    def space(self) -> Shape:
        return ()  # it may have no results


@dataclass(frozen=True)
class Link:
    """Memory of an inner value: that of an outer one.

    Attributes:
        inner: An input or a result of an inner graph.
        outer: The value whose memory it has.
        offset: Its first element there.
        step: How many elements further it is with each iteration.
    """

    inner: Value
    outer: Value
    offset: int = 0
    step: int = 0


@dataclass(frozen=True)
class Carry:
    """A value that goes from iteration to iteration.

    Attributes:
        now: The input of the body.
        next: The result of the body.
        initial: Where ``now`` is at first.
        final: The outer value that gets the last result; ``None`` if all results are kept, so that
            ``next`` has a link to their stack.
    """

    now: Value
    next: Value
    initial: Link
    final: Value | None

    @property
    def start(self) -> View:
        """Initial value."""
        return View(self.initial.outer, self.now.shape, self.now.strides, self.initial.offset)

    @property
    def is_in_place(self) -> bool:
        """Whether every iteration changes a part of it where it is: in the final value."""
        return self.now.home is self.next


@dataclass(eq=False)
class Nest(Node):
    """Inner graphs that run under the control of one step.

    Attributes:
        bodies: The inner graphs.
        links: Inputs and results of the inner graphs that are parts of outer values.
    """

    bodies: tuple[Graph, ...]
    links: tuple[Link, ...]

    @property
    def is_effectful(self) -> bool:
        return any(node.is_effectful for body in self.bodies for node in body.nodes)


@dataclass(eq=False)
class Loop(Nest):
    """The last body runs ``length`` times; or as long as the first one's result holds.

    Attributes:
        carries: What goes from iteration to iteration.
        length: Number of iterations, or ``None`` where the first of two bodies is a condition.
        has_flags: As of `lowering.While`: then lanes may stop one by one.
    """

    carries: tuple[Carry, ...]
    length: int | None
    has_flags: bool = False

    @staticmethod
    def reads(
        links: Iterable[Link], carries: Iterable[Carry], made: Iterable[Value]
    ) -> tuple[View, ...]:
        """The operands of a loop with these links and carries, which makes some values."""
        outer = dict.fromkeys(link.outer for link in links if link.outer not in {*made})
        return tuple(map(whole, (*outer, *(carry.initial.outer for carry in carries))))


@dataclass(eq=False)
class Branch(Nest):
    """One of the bodies runs: that of the number which the first operand holds."""


@dataclass(frozen=True)
class Limit:
    """Bound on the memory of intermediate results of a graph.

    Attributes:
        nbytes: Bytes at a time; infinite where loops only compute again what they can.
        scratch: For each group of nodes the bytes that are needed while it runs.
    """

    nbytes: float = float("inf")
    scratch: tuple[int, ...] = ()


@dataclass
class Graph:
    """A program as nodes.

    Attributes:
        inputs: Values given by the caller.
        constants: Values whose elements are known.
        nodes: In an order in which they can run.
        outputs: Values to be returned: all different, and none an input or a constant.
        out_shapes: Of a whole program, the shapes of its results: those of the outputs, or other
            ones of as many elements.
        limit: What its intermediate results may take, if it is limited.
        is_general: Whether its plan is to stand for other sizes, too: nothing in it may depend on
            what divides a size.
    """

    inputs: list[Value] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    out_shapes: list[Shape] = field(default_factory=list)
    limit: Limit | None = None
    is_general: bool = False


def is_copy(node: Node) -> bool:
    """Whether it only puts elements elsewhere."""
    if not isinstance(node, Point) or isinstance(node, Guard):
        return False
    return node.expr == "{0}" and node.operands[0].dtype == node.out.dtype


def is_move(node: Node) -> bool:
    """Whether its results are elements of its operands, of the same bits."""
    if not isinstance(node, Guard):
        return isinstance(node, Pick) or is_copy(node)
    return all(x.dtype == node.out.dtype for x in node.operands)


def values_read(node: Node) -> Iterable[Value]:
    """The values that a node reads, with repetitions."""
    return (x.value for x in node.operands if isinstance(x, View))


def all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of the graphs inside."""
    for node in graph.nodes:
        yield node
        if isinstance(node, Nest):
            for body in node.bodies:
                yield from all_nodes(body)


def precision(nodes: Iterable[Node]) -> str:
    """Precision of what nodes read and make: "double" where any of it is, else "single", if any.

    An operation of single precision may run while subnormal numbers are zero, one of double may
    not. What only moves numbers counts where all do. A loop or branch is what is inside of it.
    """
    found, nodes = "", [*nodes]
    nodes = [node for node in nodes if not is_move(node)] or nodes
    for node in nodes:
        inner = [precision(body.nodes) for body in node.bodies] if isinstance(node, Nest) else []
        letters = {x.dtype.char for x in (*node.operands, *node.outs)}
        if "double" in inner or not letters.isdisjoint("dD"):
            return "double"
        if "single" in inner or not letters.isdisjoint("fF"):
            found = "single"
    return found


def readers_of(nodes: Iterable[Node]) -> defaultdict[Value, list[Node]]:
    """By value the nodes that read it, each once."""
    readers: defaultdict[Value, list[Node]] = defaultdict(list)
    for node in nodes:
        for value in dict.fromkeys(values_read(node)):
            readers[value].append(node)
    return readers


def cloned(node: N, instead: dict[Value, Value]) -> N:
    """A node that does the same with other values; those that it makes are added to them."""
    operands = tuple(reading(x, instead) for x in node.operands)
    out = instead[node.out] = Value(node.out.shape, node.out.dtype)
    clone = replace(node, operands=operands, outs=(out,)).like(node)
    if isinstance(clone, Copies):
        clone.places = tuple(place.of(out) for place in clone.places)
    return clone


def reading(operand: Operand, instead: Mapping[Value, Value]) -> Operand:
    """An operand that reads a value with the same elements at the same places instead."""
    if isinstance(operand, View) and operand.value in instead:
        return operand.of(instead[operand.value])
    return operand


def rewrite(graph: Graph, rule: Callable[[Node], Iterable[Node] | None]) -> None:
    """Put what a rule makes of each node in its place; nothing where a node stays as it is."""
    nodes: list[Node] = []
    for node in graph.nodes:
        found = rule(node)
        nodes += [node] if found is None else [new.like(node) for new in found]
    graph.nodes = nodes


def ordered(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, each after those that it reads; else in the order that they have."""
    own = set(nodes)

    def needs(node: Node) -> list[Node]:
        makers = [v.maker for v in values_read(node)]
        return [maker for maker in reversed(makers) if maker in own and maker is not node]

    return depth_first(nodes, needs)


def depth_first(roots: Iterable[T], needs: Callable[[T], Iterable[T]]) -> list[T]:
    """All that some things need, and they themselves, each after what it needs."""
    done: dict[T, None] = {}
    for root in roots:
        stack = [(root, iter(needs(root)))] if root not in done else []
        while stack:
            item, rest = stack[-1]
            first = next((x for x in rest if x not in done), None)
            if first is not None:
                stack.append((first, iter(needs(first))))
            else:
                done[item] = None
                stack.pop()
    return [*done]


def without_unread(
    nodes: Sequence[Node], outputs: Iterable[Value], kinds: tuple[type[Node], ...]
) -> list[Node]:
    """The nodes but for those of some kinds that nothing reads, and that have no effect."""
    read = set(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        is_kept = not isinstance(node, kinds) or node.is_effectful
        if is_kept or not read.isdisjoint(node.outs):
            kept.append(node)
            read.update(values_read(node))
            if isinstance(node, Nest):
                read.update(link.outer for link in node.links)
    return kept[::-1]
