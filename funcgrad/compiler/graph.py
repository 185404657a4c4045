"""From equations to nodes: what is computed into memory, and what is only a view.

Views, repeated scalars and constants disappear here; products of matrices get the layouts that BLAS
understands. What remains are six kinds of nodes, which the rest of the compiler arranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
    reindexed,
    reshaped,
    whole,
)
from funcgrad.compiler.passes.inline import form_of
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.core.source import SourceLocation
from funcgrad.lowering import (
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


@dataclass(eq=False)
class External(Node):
    """A call of NumPy."""

    primitive: Primitive
    source: SourceLocation | None


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
    return _Builder(program).graph


class _Builder:
    def __init__(self, program: Program) -> None:
        self.graph = Graph()
        self.epoch = 0
        self.operands: dict[Var, Operand] = {}
        for var in program.inputs:
            value = Value(var.aval.shape, var.aval.dtype)
            self.graph.inputs.append(value)
            self.operands[var] = whole(value)
        for var, array in program.constants:
            # A copy: what a function closes over may be written to after it was compiled.
            self.operands[var] = self._array(np.array(array, order="C"))
        for equation in program.equations:
            self._equation(equation)
        taken: set[int] = set()
        for atom in program.outputs:
            value = self._output(self._read(atom), taken)
            taken.add(id(value))
            self.graph.outputs.append(value)
        self._prune()

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
        if array.size == 1:
            return Uniform(array.reshape(())[()], array.shape)
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

    _loop = _while = _branch = _extern

    def _contraction(
        self, form: Contraction, equation: Equation, operands: list[Operand]
    ) -> Iterable[Operand]:
        return [_Contractor(self, form, *operands).result]


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
    "Copies",
    "External",
    "Fold",
    "Graph",
    "Matrices",
    "Node",
    "Point",
    "Product",
    "Scan",
    "build",
]
