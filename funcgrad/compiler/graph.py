"""From equations to nodes: what is computed into memory, and what is only a view.

Views, repeated scalars and constants disappear here; products of matrices get the layouts that BLAS
understands. Loops and branches hold graphs of their own. What remains are a few kinds of nodes,
which the rest of the compiler arranges.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from funcgrad.compiler.layout import (
    Operand,
    Shape,
    Uniform,
    Value,
    View,
    broadcast,
    contiguous_strides,
    reindexed,
    reshaped,
    same_strides,
    whole,
)
from funcgrad.compiler.passes.inline import form_of, inline
from funcgrad.compiler.passes.prune import prune
from funcgrad.compiler.passes.share import share
from funcgrad.core.avals import ShapedArray
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.core.source import SourceLocation
from funcgrad.lowering import (
    ArgReduction,
    Assemble,
    Barrier,
    Constant,
    Contraction,
    Extern,
    Pointwise,
    PrefixScan,
    Reduction,
    Reindex,
    Reshape,
)
from funcgrad.lowering import Branch as BranchForm
from funcgrad.lowering import Deposit as DepositForm
from funcgrad.lowering import Lookup as LookupForm
from funcgrad.lowering import Loop as LoopForm
from funcgrad.lowering import Replace as ReplaceForm
from funcgrad.lowering import While as WhileForm
from funcgrad.lowering import Window as WindowForm


@dataclass(eq=False)
class Node:
    """Something that computes values."""

    operands: tuple[Operand, ...]
    outs: tuple[Value, ...]
    epoch: int = field(default=0, init=False)
    """How many barriers come before it: nodes of different epochs share no kernel."""

    def __post_init__(self) -> None:
        for out in self.outs:
            out.maker = self
            out.is_stored = False

    @property
    def out(self) -> Value:
        return self.outs[0]

    @property
    def space(self) -> Shape:
        """The index space that it loops over."""
        return self.out.shape


@dataclass(eq=False)
class Point(Node):
    """One scalar expression for every element."""

    expr: str


@dataclass(eq=False)
class Fold(Node):
    """A reduction of its operand."""

    form: Reduction

    @property
    def space(self) -> Shape:
        return self.operands[0].shape


@dataclass(eq=False)
class Scan(Node):
    """A running fold of its operand."""

    form: PrefixScan


@dataclass(frozen=True)
class Matrices:
    """A stack of matrices in memory: ``batch`` of them, with element strides as BLAS wants them."""

    is_transposed: bool
    row_stride: int
    batch_stride: int


@dataclass(eq=False)
class Product(Node):
    """A stack of matrix products; sizes are (batch, m, n, k)."""

    sizes: tuple[int, int, int, int]
    layouts: tuple[Matrices, Matrices]


@dataclass(eq=False)
class Copies(Node):
    """Operand ``i`` is written to ``places[i]``, a part of the output, one after the other."""

    places: tuple[View, ...]


@dataclass(frozen=True)
class Origin:
    """The equation that a node computes: what errors at run time speak of."""

    primitive: Primitive
    avals: tuple[ShapedArray, ...]
    source: SourceLocation | None


@dataclass(eq=False)
class Lookup(Node):
    """Elements of the first operand at places that the others name."""

    form: LookupForm
    origin: Origin

    @property
    def index_shape(self) -> Shape:
        """What its index arrays broadcast to."""
        n_rest = len(self.operands[0].shape) - len(self.form.axes)
        return self.out.shape[: len(self.out.shape) - n_rest]


@dataclass(eq=False)
class Deposit(Node):
    """The first operand with elements of the second taken in at places that the others name."""

    form: DepositForm
    origin: Origin

    @property
    def index_shape(self) -> Shape:
        """What its index arrays broadcast to."""
        shape = self.operands[1].shape
        return shape[: len(shape) - (len(self.out.shape) - len(self.form.axes))]


@dataclass(eq=False)
class Window(Node):
    """A part of the first operand; the others are its starts."""


@dataclass(eq=False)
class Replace(Node):
    """The first operand with a part replaced by the second; the others are its starts."""

    step: str = "{1}"
    """What an element of the part, ``{0}``, is replaced by when ``{1}`` comes to it."""


@dataclass(eq=False)
class ArgFold(Node):
    """The place of the first extreme element along an axis of its operand."""

    form: ArgReduction


@dataclass(eq=False)
class External(Node):
    """A call of NumPy."""

    primitive: Primitive
    source: SourceLocation | None

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


@dataclass(eq=False)
class Loop(Nest):
    """The last body runs ``length`` times; or as long as the first one's result holds.

    Attributes:
        carries: What goes from iteration to iteration.
        length: Number of iterations, or ``None`` where the first of two bodies is a condition.
    """

    carries: tuple[Carry, ...]
    length: int | None


@dataclass(eq=False)
class Branch(Nest):
    """One of the bodies runs: that of the number which the first operand holds."""


@dataclass
class Graph:
    """A program as nodes.

    Attributes:
        inputs: Values given by the caller.
        constants: Values with their arrays.
        nodes: In an order in which they can run.
        outputs: Values to be returned: all different, and none an input or a constant.
    """

    inputs: list[Value] = field(default_factory=list)
    constants: list[tuple[Value, np.ndarray]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)


def build(program: Program) -> Graph:
    """The graph of a program without calls."""
    graph = Graph(inputs=[Value(v.aval.shape, v.aval.dtype) for v in program.inputs])
    return _Builder(graph, program, [whole(value) for value in graph.inputs]).graph


def simplified(program: Program) -> Program:
    """A program without calls, repetitions and dead code."""
    found: Program = program.memo("simplified", lambda: prune(share(inline(program))))
    return found


class _Builder:
    """Builds the graph of a program that is applied to operands."""

    def __init__(self, graph: Graph, program: Program, operands: Sequence[Operand]) -> None:
        self.graph = graph
        self.epoch = 0
        self.operands: dict[Var, Operand] = {}
        taken: set[int] = set()
        for operand in self._apply(program, operands):
            value = self._output(operand, taken)
            taken.add(id(value))
            self.graph.outputs.append(value)
        self._prune()
        self.graph.nodes = _with_sums_in_place(self.graph)

    def _apply(self, program: Program, operands: Sequence[Operand]) -> list[Operand]:
        """Append a program without calls; returns its results."""
        self.operands.update(zip(program.inputs, operands, strict=True))
        for var, array in program.constants:
            # A copy: what a function closes over may be written to after it was compiled.
            self.operands[var] = self._array(np.array(array, order="C"))
        for equation in program.equations:
            self._equation(equation)
        return [self._read(atom) for atom in program.outputs]

    def _prune(self) -> None:
        """Drop nodes that nothing reads: an `Assemble` may use no element of an input."""
        needed = set(self.graph.outputs)
        live = []
        for node in reversed(self.graph.nodes):
            effectful = isinstance(node, External) and node.primitive.is_effectful
            if effectful or not needed.isdisjoint(node.outs):
                live.append(node)
                needed.update(x.value for x in node.operands if isinstance(x, View))
        self.graph.nodes = live[::-1]

    def _read(self, atom: Atom) -> Operand:
        if type(atom) is Var:
            return self.operands[atom]
        return Uniform(atom.aval.dtype.type(atom.value), ())  # type: ignore[union-attr]

    def _array(self, array: np.ndarray) -> Operand:
        if _is_uniform(array):
            return Uniform(array.reshape(-1)[0], array.shape)
        value = Value(array.shape, array.dtype)
        self.graph.constants.append((value, np.require(array, requirements=["C", "A"])))
        return whole(value)

    def _output(self, operand: Operand, taken: set[int]) -> Value:
        if isinstance(operand, View) and operand.is_whole and operand.shape == operand.value.shape:
            value = operand.value
            if value.maker is not None and id(value) not in taken:
                return value
        return self._copy(operand)

    def _add(self, node: Node) -> Node:
        node.epoch = self.epoch
        self.graph.nodes.append(node)
        return node

    def _copy(self, operand: Operand) -> Value:
        """The elements of an operand, stored contiguously."""
        out = Value(operand.shape, operand.dtype)
        return self._add(Point((operand,), (out,), "{0}")).out

    def _stored(self, operand: Operand) -> View:
        """An operand with memory."""
        return whole(self._copy(operand)) if isinstance(operand, Uniform) else operand

    # Equations, by form.

    def _equation(self, equation: Equation) -> None:
        form = form_of(equation)
        operands = [self._read(atom) for atom in equation.inputs]
        treat = getattr(self, f"_{type(form).__name__.lower()}")
        results = treat(form, equation, operands)
        self.operands.update(zip(equation.outputs, results, strict=True))

    def _pointwise(
        self, form: Pointwise, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        aval = equation.outputs[0].aval
        if all(isinstance(x, Uniform) for x in operands):
            return [Uniform(self._fold_scalars(equation, operands), aval.shape)]
        out = Value(aval.shape, aval.dtype)
        aligned = tuple(broadcast(x, aval.shape) for x in operands)
        return [whole(self._add(Point(aligned, (out,), form.expr)).out)]

    def _fold_scalars(self, equation: Equation, operands: Sequence[Any]) -> Any:
        """The result of an operation on scalars that are known now."""
        with np.errstate(all="ignore"):
            result = equation.primitive.impl(*(x.scalar for x in operands))
        return equation.outputs[0].aval.dtype.type(result)

    def _reindex(
        self, form: Reindex, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        return [reindexed(operands[0], form, equation.outputs[0].aval.shape)]

    def _reshape(
        self, form: Reshape, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        shape = equation.outputs[0].aval.shape
        return [self._reshaped(operands[0], shape)]

    def _reshaped(self, operand: Operand, shape: Shape) -> Operand:
        view = reshaped(operand, shape)
        if view is None:
            view = reshaped(whole(self._copy(operand)), shape)
        assert view is not None  # contiguous elements take any shape
        return view

    def _reduction(
        self, form: Reduction, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        aval = equation.outputs[0].aval
        out = Value(aval.shape, aval.dtype)
        if not form.axes:
            return [whole(self._add(Point((operands[0],), (out,), "{0}")).out)]
        return [whole(self._add(Fold((operands[0],), (out,), form)).out)]

    def _prefixscan(
        self, form: PrefixScan, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        aval = equation.outputs[0].aval
        operand = self._stored(operands[0])
        return [whole(self._add(Scan((operand,), (Value(aval.shape, aval.dtype),), form)).out)]

    def _assemble(
        self, form: Assemble, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        aval = equation.outputs[0].aval
        out = Value(aval.shape, aval.dtype)
        parts: list[Operand] = []
        places: list[View] = []
        if form.fill:
            parts.append(broadcast(operands[-1], aval.shape))
            places.append(whole(out))
        for piece, operand in zip(form.pieces, operands, strict=False):
            if not math.prod(piece.sizes):
                continue
            n = len(piece.sizes)
            cut = Reindex(tuple(range(n)), piece.lows, (1,) * n)
            parts.append(reindexed(operand, cut, piece.sizes))
            cut = Reindex(tuple(range(n)), piece.starts, piece.steps)
            place = reindexed(whole(out), cut, piece.sizes)
            assert isinstance(place, View)
            places.append(place)
        return [whole(self._add(Copies(tuple(parts), (out,), tuple(places))).out)]

    def _constant(
        self, form: Constant, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        return [self._array(np.asarray(equation.primitive.impl()))]

    def _extern(
        self, form: Extern, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        outs = tuple(Value(v.aval.shape, v.aval.dtype) for v in equation.outputs)
        self._add(External(tuple(operands), outs, equation.primitive, equation.source))
        return [whole(out) for out in outs]

    def _barrier(
        self, form: Barrier, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        self.epoch += 1
        return operands

    # Places that are computed.

    def _lookup(
        self, form: LookupForm, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        aval = equation.outputs[0].aval
        x, *indices = operands
        if isinstance(x, Uniform) and form.mode in ("clip", "wrap"):
            return [Uniform(x.scalar, aval.shape)]
        known = known_places(form, x.shape, indices)
        if known is not None:
            if None in known:
                return [Uniform(form.fill, aval.shape)]
            row = _row(x, form.axes, known)
            return [broadcast(row, aval.shape)]
        out = Value(aval.shape, aval.dtype)
        node = Lookup((self._stored(x), *indices), (out,), form, _origin(equation))
        return [whole(self._add(node).out)]

    def _deposit(
        self, form: DepositForm, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        aval = equation.outputs[0].aval
        x, updates, *indices = operands
        if not math.prod(updates.shape) and form.mode != "raise":
            return [x]
        out = Value(aval.shape, aval.dtype)
        known = known_places(form, x.shape, indices)
        is_one = all(math.prod(index.shape) == 1 for index in indices)
        if known is not None and is_one and form.step == "{1}":
            if None in known:
                return [x]
            place = _row(whole(out), form.axes, known)
            assert isinstance(place, View)
            update = reshaped(updates, place.shape)
            assert update is not None  # only axes of length 1 go
            return [self._overwritten(x, update, place)]
        node = Deposit(tuple(operands), (out,), form, _origin(equation))
        return [whole(self._add(node).out)]

    def _overwritten(self, x: Operand, update: Operand, place: View) -> Operand:
        """An array with a part of its copy, ``place.value``, replaced."""
        out = place.value
        if not math.prod(place.shape):
            return x
        return whole(self._add(Copies((x, update), (out,), (whole(out), place))).out)

    def _window(
        self, form: WindowForm, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        aval = equation.outputs[0].aval
        x, *starts = operands
        if isinstance(x, Uniform):
            return [Uniform(x.scalar, aval.shape)]
        cut = _known_cut(x.shape, form.sizes, starts)
        if cut is not None:
            return [reindexed(x, cut, form.sizes)]
        out = Value(aval.shape, aval.dtype)
        return [whole(self._add(Window(tuple(operands), (out,))).out)]

    def _replace(
        self, form: ReplaceForm, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        aval = equation.outputs[0].aval
        x, update, *starts = operands
        out = Value(aval.shape, aval.dtype)
        cut = _known_cut(x.shape, update.shape, starts)
        if cut is not None:
            place = reindexed(whole(out), cut, update.shape)
            assert isinstance(place, View)
            return [self._overwritten(x, update, place)]
        return [whole(self._add(Replace(tuple(operands), (out,))).out)]

    def _argreduction(
        self, form: ArgReduction, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        aval = equation.outputs[0].aval
        if isinstance(operands[0], Uniform):
            return [Uniform(aval.dtype.type(0), aval.shape)]
        out = Value(aval.shape, aval.dtype)
        return [whole(self._add(ArgFold((operands[0],), (out,), form)).out)]

    # Loops and branches.

    def _loop(
        self, form: LoopForm, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        body: Program = simplified(equation.primitive.body)  # type: ignore[attr-defined]
        a = form.n_consts + form.n_carry
        if form.length == 0:
            avals = [v.aval for v in equation.outputs[form.n_carry :]]
            return [
                *operands[form.n_consts : a],
                *(Uniform(x.dtype.type(0), x.shape) for x in avals),
            ]
        if form.length == 1:
            elements = [_element(x, 0) for x in operands[a:]]
            results = self._apply(body, [*operands[:a], *elements])
            ys = [_stack_of_one(y) for y in results[form.n_carry :]]
            return [*results[: form.n_carry], *ys]
        nester = _Nester(self, equation)
        return nester.loop(form, body, operands) or self._extern(Extern(), equation, operands)

    def _while(
        self, form: WhileForm, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        condition: Program = simplified(equation.primitive.condition)  # type: ignore[attr-defined]
        body: Program = simplified(equation.primitive.body)  # type: ignore[attr-defined]
        results = _Nester(self, equation).while_loop(form, condition, body, operands)
        return results or self._extern(Extern(), equation, operands)

    def _branch(
        self, form: BranchForm, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        branches = equation.primitive.branches  # type: ignore[attr-defined]
        programs = [simplified(branch) for branch in branches]
        index, *rest = operands
        if isinstance(index, Uniform):
            chosen = min(max(int(index.scalar), 0), len(programs) - 1)
            return self._apply(programs[chosen], rest)
        results = _Nester(self, equation).branch(programs, operands)
        return results or self._extern(Extern(), equation, operands)

    def _contraction(
        self, form: Contraction, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        return [_Contractor(self, form, *operands).result]


def _with_sums_in_place(graph: Graph) -> list[Node]:
    """The nodes, without sums of an array and zeros into which something was taken.

    Transposing a lookup gives zeros with the cotangent taken in, which are added to what there is
    already: the same as taking it in there, without a walk over the whole array.
    """
    uses = Counter(v for node in graph.nodes for v in _read(node))
    uses.update(graph.outputs)
    nodes: dict[Node, None] = {}
    for node in graph.nodes:
        nodes[node] = None
        if not isinstance(node, Point) or node.expr != "{0} + {1}":
            continue
        for k, operand in enumerate(node.operands):
            chain = _taken_into_zeros(operand, node, uses)
            other = node.operands[1 - k]
            if chain and other.dtype == node.out.dtype:
                for absorbed in (node, *chain):
                    del nodes[absorbed]
                nodes.update(dict.fromkeys(_rebased(chain, other, node)))
                break
    return list(nodes)


def _read(node: Node) -> list[Value]:
    return [x.value for x in node.operands if isinstance(x, View)]


def _taken_into_zeros(
    operand: Operand, reader: Node, uses: Counter[Value]
) -> list[Deposit | Replace]:
    """What made zeros, read by one node only, into an operand; nothing if that is not so."""
    chain: list[Deposit | Replace] = []
    while isinstance(operand, View):
        node = operand.value.maker
        is_whole = operand.is_whole and operand.shape == operand.value.shape == reader.out.shape
        is_sum = isinstance(node, Deposit) and node.form.step == "{0} + {1}"
        if not is_sum and not (isinstance(node, Replace) and not chain):
            return []
        if not is_whole or uses[operand.value] != 1 or node.epoch != reader.epoch:
            return []
        chain.insert(0, node)
        operand = node.operands[0]
    return chain if operand.scalar == 0 else []


def _rebased(chain: Sequence[Deposit | Replace], start: Operand, node: Node) -> Iterator[Node]:
    """The same taken into another array; the last one makes the result of a node."""
    for link in chain:
        out = node.out if link is chain[-1] else Value(node.out.shape, node.out.dtype)
        operands = (start, *link.operands[1:])
        new: Node
        if isinstance(link, Deposit):
            new = Deposit(operands, (out,), link.form, link.origin)
        else:
            new = Replace(operands, (out,), "{0} + {1}")
        new.epoch = node.epoch
        yield new
        start = whole(out)


def _is_uniform(array: np.ndarray) -> bool:
    """Whether it has elements, and all have the same bits."""
    if not array.size:
        return False
    # Most arrays differ between these three already.
    few = array.reshape(-1)[[0, array.size // 2, -1]]
    return _is_one(few) and _is_one(array)


def _is_one(array: np.ndarray) -> bool:
    rows = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
    return bool((rows == rows[0]).all())


def _origin(equation: Equation) -> Origin:
    avals = tuple(atom.aval for atom in equation.inputs)
    return Origin(equation.primitive, avals, equation.source)


def known_places(
    form: LookupForm | DepositForm, shape: Shape, indices: Sequence[Operand]
) -> list[int | None] | None:
    """Where scalar indices that are known now point to; ``None`` for one that is filled.

    Nothing is known where an index is not, or is to be refused.
    """
    places: list[int | None] = []
    for axis, index in zip(form.axes, indices, strict=True):
        if not isinstance(index, Uniform):
            return None
        n = shape[axis]
        i = int(index.scalar.astype(np.int64))
        if form.mode in ("clip", "wrap"):
            places.append(min(max(i, 0), n - 1) if form.mode == "clip" else i % n)
        elif -n <= i < n:
            places.append(i % n)
        elif form.mode == "fill":
            places.append(None)
        else:
            return None
    return places


def _row(operand: Operand, axes: Sequence[int], places: Sequence[int | None]) -> Operand:
    """The part of an operand at one place along some axes."""
    found = dict(zip(axes, places, strict=True))
    kept = tuple(i for i in range(len(operand.shape)) if i not in found)
    starts = tuple(found.get(i) or 0 for i in range(len(operand.shape)))
    shape = tuple(operand.shape[i] for i in kept)
    return reindexed(operand, Reindex(kept, starts, (1,) * len(kept)), shape)


def _known_cut(shape: Shape, sizes: Shape, starts: Sequence[Operand]) -> Reindex | None:
    """A window whose starts are known now."""
    found = []
    for n, m, start in zip(shape, sizes, starts, strict=True):
        if n == m:
            found.append(0)
        elif isinstance(start, Uniform):
            found.append(min(max(int(start.scalar), 0), n - m))
        else:
            return None
    return Reindex(tuple(range(len(shape))), tuple(found), (1,) * len(shape))


def _element(operand: Operand, i: int) -> Operand:
    """One element along the first axis."""
    if isinstance(operand, Uniform):
        return Uniform(operand.scalar, operand.shape[1:])
    offset = operand.offset + i * operand.strides[0]
    return View(operand.value, operand.shape[1:], operand.strides[1:], offset)


def _stack_of_one(operand: Operand) -> Operand:
    shape = (1, *operand.shape)
    if isinstance(operand, Uniform):
        return Uniform(operand.scalar, shape)
    return View(operand.value, shape, (0, *operand.strides), operand.offset)


class _Nester:
    """Makes a loop or branch a node with inner graphs.

    Every method returns the results, or nothing where an inner graph calls NumPy: then there is no
    native code that could call it.
    """

    def __init__(self, builder: _Builder, equation: Equation) -> None:
        self.builder = builder
        self.equation = equation
        self.bases: dict[Value, Value] = {}
        self.links: list[Link] = []
        self.n_constants = len(builder.graph.constants)
        self.n_nodes = len(builder.graph.nodes)

    def loop(
        self, form: LoopForm, body: Program, operands: list[Operand]
    ) -> Iterable[Operand] | None:
        a, b = form.n_consts, form.n_consts + form.n_carry
        carried = _changing(body, a, b)
        inner = [self._constant(x) for x in operands[:a]]
        starts: list[tuple[Value, Link]] = []
        for i in range(a, b):
            inner.append(
                self._start(operands[i], starts) if carried[i - a] else self._constant(operands[i])
            )
        inner += [self._walked(x, form) for x in operands[b:]]
        results = body.outputs
        k = form.n_carry
        # Equal stacks are one. A carried value that is stacked, too, is carried in its stack.
        stacks = list(dict.fromkeys(results[k:]))
        changing = [x for x, on in zip(results, carried, strict=False) if on]
        graph = self._graph(body, inner, [*stacks, *(x for x in changing if x not in stacks)])
        if graph is None:
            return None
        made = dict(zip(stacks, graph.outputs, strict=False))
        stacked = {atom: self._stack(value, form) for atom, value in made.items()}
        rest = iter(graph.outputs[len(stacks) :])
        carries = [
            Carry(now, made[atom], link, None)
            if atom in made
            else Carry(now, next(rest), link, Value(now.shape, now.dtype))
            for (now, link), atom in zip(starts, changing, strict=True)
        ]
        self._add_loop([*stacked.values()], (graph,), carries, form.length)
        last = 0 if form.reverse else form.length - 1
        ends = iter(
            _element(whole(stacked[atom]), last) if c.final is None else whole(c.final)
            for c, atom in zip(carries, changing, strict=True)
        )
        kept = [next(ends) if on else x for on, x in zip(carried, operands[a:b], strict=True)]
        return [*kept, *(whole(stacked[atom]) for atom in results[k:])]

    def _stack(self, value: Value, form: LoopForm) -> Value:
        """The outer value that keeps a result of every iteration."""
        stacked = Value((form.length, *value.shape), value.dtype)
        size = math.prod(value.shape)
        start, step = ((form.length - 1) * size, -size) if form.reverse else (0, size)
        self.links.append(Link(value, stacked, start, step) if size else Link(value, stacked))
        return stacked

    def while_loop(
        self, form: WhileForm, condition: Program, body: Program, operands: list[Operand]
    ) -> Iterable[Operand] | None:
        a, b = form.n_cond_consts, form.n_cond_consts + form.n_body_consts
        carried = _changing(body, b - a, len(body.inputs))
        consts = [self._constant(x) for x in operands[:b]]
        starts: list[tuple[Value, Link]] = []
        state = [
            self._start(x, starts) if on else self._constant(x)
            for x, on in zip(operands[b:], carried, strict=True)
        ]
        test = self._graph(condition, [*consts[:a], *state], condition.outputs)
        changing = [x for x, on in zip(body.outputs, carried, strict=True) if on]
        graph = self._graph(body, [*consts[a:], *state], changing)
        if test is None or graph is None:
            return None
        finals = [Value(now.shape, now.dtype) for now, _ in starts]
        carries = [
            Carry(now, result, link, final)
            for (now, link), result, final in zip(starts, graph.outputs, finals, strict=True)
        ]
        self._add_loop([], (test, graph), carries, None)
        rest = iter(finals)
        return [whole(next(rest)) if on else x for on, x in zip(carried, operands[b:], strict=True)]

    def branch(
        self, programs: Sequence[Program], operands: list[Operand]
    ) -> Iterable[Operand] | None:
        index, *rest = operands
        inner = [self._constant(x) for x in rest]
        graphs = []
        for program in programs:
            graph = self._graph(program, inner, program.outputs)
            if graph is None:
                return None
            graphs.append(graph)
        outs = [Value(v.shape, v.dtype) for v in graphs[0].outputs]
        for graph in graphs:
            self.links += [Link(value, out) for value, out in zip(graph.outputs, outs, strict=True)]
        operands = [index, *self._outer(set(outs))]
        self.builder._add(Branch(tuple(operands), tuple(outs), tuple(graphs), tuple(self.links)))
        return [whole(out) for out in outs]

    # Operands of the inner graphs.

    def _constant(self, operand: Operand) -> Operand:
        """The same operand, read from inside."""
        if isinstance(operand, Uniform):
            return operand
        if operand.value not in self.bases:
            inner = Value(operand.value.shape, operand.value.dtype)
            self.bases[operand.value] = inner
            self.links.append(Link(inner, operand.value))
        return View(self.bases[operand.value], operand.shape, operand.strides, operand.offset)

    def _walked(self, operand: Operand, form: LoopForm) -> Operand:
        """An element along the first axis, another one in each iteration."""
        if isinstance(operand, Uniform):
            return _element(operand, 0)
        first = _element(operand, form.length - 1 if form.reverse else 0)
        assert isinstance(first, View)
        inner = Value(first.shape, first.dtype)
        step = -operand.strides[0] if form.reverse else operand.strides[0]
        offset = first.offset if math.prod(operand.shape) else 0
        self.links.append(Link(inner, operand.value, offset, step))
        return View(inner, first.shape, first.strides)

    def _start(self, operand: Operand, starts: list[tuple[Value, Link]]) -> Operand:
        """A carried value; it starts in the memory of its initial value, which is only read."""
        if isinstance(operand, Uniform) or not same_strides(
            operand.shape, operand.strides, contiguous_strides(operand.shape)
        ):
            operand = whole(self.builder._copy(operand))
        now = Value(operand.shape, operand.dtype)
        starts.append((now, Link(now, operand.value, operand.offset)))
        return whole(now)

    def _graph(
        self, program: Program, inner: Sequence[Operand], outputs: Sequence[Atom]
    ) -> Graph | None:
        """An inner graph; its constants are the outer one's. ``None`` if it calls NumPy."""
        part = Program(program.inputs, program.equations, outputs, program.name, program.constants)
        graph = Graph(constants=self.builder.graph.constants)
        _Builder(graph, prune(part), inner)
        if any(isinstance(node, External) for node in graph.nodes):
            del self.builder.graph.constants[self.n_constants :]
            del self.builder.graph.nodes[self.n_nodes :]
            return None
        return graph

    # Results.

    def _outer(self, made: set[Value]) -> list[Operand]:
        """What the inner graphs read of the outer one."""
        read = {link.outer: None for link in self.links if link.outer not in made}
        return [whole(value) for value in read]

    def _add_loop(
        self,
        stacks: list[Value],
        graphs: tuple[Graph, ...],
        carries: list[Carry],
        length: int | None,
    ) -> None:
        outs = [*(c.final for c in carries if c.final is not None), *stacks]
        operands = [*self._outer(set(outs)), *(whole(c.initial.outer) for c in carries)]
        links = tuple(self.links)
        self.builder._add(Loop(tuple(operands), tuple(outs), graphs, links, tuple(carries), length))


def _changing(body: Program, start: int, stop: int) -> list[bool]:
    """Which of the carried inputs may come out different."""
    inputs = body.inputs[start:stop]
    return [body.outputs[i] is not var for i, var in enumerate(inputs)]


class _Contractor:
    """A contraction as a stack of matrix products, or as a sum of elementwise products."""

    def __init__(self, builder: _Builder, form: Contraction, x: Operand, y: Operand) -> None:
        self.builder = builder
        self.lengths = dict(zip(form.lhs, x.shape, strict=True))
        self.lengths |= dict(zip(form.rhs, y.shape, strict=True))
        self.batch = [c for c in form.out if c in form.lhs and c in form.rhs]
        self.rows = [c for c in form.out if c in form.lhs and c not in form.rhs]
        self.columns = [c for c in form.out if c in form.rhs and c not in form.lhs]
        self.summed = [c for c in form.lhs if c not in form.out]
        if not self.summed or not (self.rows or self.columns):
            self.result = self._by_elements(form, x, y)
            return
        if form.out != "".join(self.batch + self.rows + self.columns) and form.out == "".join(
            self.batch + self.columns + self.rows
        ):
            # The transposed product has the order that is asked for.
            self.rows, self.columns = self.columns, self.rows
            self.result = self._by_matrices(form.rhs, y, form.lhs, x, form.out)
            return
        self.result = self._by_matrices(form.lhs, x, form.rhs, y, form.out)

    def _shape(self, labels: Iterable[str]) -> Shape:
        return tuple(self.lengths[c] for c in labels)

    def _size(self, labels: Iterable[str]) -> int:
        return math.prod(self._shape(labels))

    def _by_elements(self, form: Contraction, x: Operand, y: Operand) -> Operand:
        labels = "".join([*form.out, *self.summed])
        space = self._shape(labels)
        aligned = tuple(_spread(z, own, labels, space) for z, own in ((x, form.lhs), (y, form.rhs)))
        product = Value(space, x.dtype)
        node = self.builder._add(Point(aligned, (product,), "{0} * {1}"))
        if not self.summed:
            return whole(node.out)
        axes = tuple(range(len(form.out), len(labels)))
        total = Value(self._shape(form.out), x.dtype)
        fold = Reduction(axes, "0", "radd({0}, {1})", accurate=True)
        return whole(self.builder._add(Fold((whole(node.out),), (total,), fold)).out)

    def _by_matrices(self, lhs: str, x: Operand, rhs: str, y: Operand, out: str) -> Operand:
        a, a_layout = self._matrices(x, lhs, self.rows, self.summed)
        b, b_layout = self._matrices(y, rhs, self.summed, self.columns)
        order = [*self.batch, *self.rows, *self.columns]
        batch, m, n, k = map(self._size, (self.batch, self.rows, self.columns, self.summed))
        value = Value(self._shape(order), x.dtype)
        self.builder._add(Product((a, b), (value,), (batch, m, n, k), (a_layout, b_layout)))
        strides = dict(zip(order, value.strides, strict=True))
        return View(value, self._shape(out), tuple(strides[c] for c in out))

    def _matrices(
        self, x: Operand, own: str, rows: list[str], columns: list[str]
    ) -> tuple[View, Matrices]:
        """An operand as a stack of matrices; copied if no strides describe it."""
        if isinstance(x, View):
            layout = self._layout(x, own, rows, columns)
            if layout is not None:
                return x, layout
        labels = [*self.batch, *rows, *columns]
        ordered = _spread(x, own, "".join(labels), self._shape(labels))
        copy = whole(self.builder._copy(ordered))
        layout = self._layout(copy, "".join(labels), rows, columns)
        assert layout is not None  # contiguous matrices
        return copy, layout

    def _layout(self, x: View, own: str, rows: list[str], columns: list[str]) -> Matrices | None:
        m, n = self._size(rows), self._size(columns)
        if 0 in x.shape:
            return Matrices(False, max(n, 1), 0)  # no element is read
        strides = [self._stride(x, own, labels) for labels in (self.batch, rows, columns)]
        if None in strides:
            return None
        batch, row, column = (int(s) for s in strides if s is not None)
        # BLAS wants neighbours in one direction, and a distance of at least a row in the other.
        # Rows or columns of length one have no distance.
        if column == 1 or n == 1:
            row = max(n, 1) if m == 1 else row
            if row >= max(n, 1):
                return Matrices(False, row, batch)
        if row == 1 or m == 1:
            column = max(m, 1) if n == 1 else column
            if column >= max(m, 1):
                return Matrices(True, column, batch)
        return None

    def _stride(self, x: View, own: str, labels: list[str]) -> int | None:
        """The stride of several axes walked as one, or ``None`` if there is none."""
        stride, step = None, 0
        for c in reversed(labels):
            n, s = self.lengths[c], x.strides[own.index(c)]
            if n == 1:
                continue
            if stride is None:
                stride, step = s, s * n
            elif s == step:
                step = s * n
            else:
                return None
        return 1 if stride is None else stride


def _spread(x: Operand, own: str, labels: str, space: Shape) -> Operand:
    """An operand with axes ``own`` over the axes ``labels``."""
    axes = tuple(own.index(c) if c in own else None for c in labels)
    return reindexed(x, Reindex(axes, (0,) * len(own), (1,) * len(labels)), space)


__all__ = [
    "ArgFold",
    "Branch",
    "Carry",
    "Copies",
    "Deposit",
    "External",
    "Fold",
    "Graph",
    "Link",
    "Lookup",
    "Loop",
    "Matrices",
    "Nest",
    "Node",
    "Origin",
    "Point",
    "Product",
    "Replace",
    "Scan",
    "Window",
    "build",
    "simplified",
]
