"""From equations to nodes: what is computed into memory, and what is only a view.

Views, repeated scalars and constants disappear here; products of matrices get the layouts that BLAS
understands. Loops and branches hold graphs of their own. What remains are a few kinds of nodes,
which the rest of the compiler arranges.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad import lowering as forms
from funcgrad.compiler.foreign import resolve
from funcgrad.compiler.machine import VECTOR_BYTES
from funcgrad.compiler.nest import extremes, lookups
from funcgrad.compiler.nest.access import Pieces
from funcgrad.compiler.nest.bounds import decided, without_division
from funcgrad.compiler.nest.builder import Builder
from funcgrad.compiler.nest.contractions import contracted
from funcgrad.compiler.nest.layout import (
    Operand,
    Shape,
    Uniform,
    Value,
    View,
    contiguous_strides,
    cut,
    domain,
    first,
    of_source,
    same_strides,
    whole,
)
from funcgrad.compiler.nest.loops import Nester
from funcgrad.compiler.nest.nodes import (
    Copies,
    External,
    Fold,
    Graph,
    Node,
    Point,
    Put,
    Routine,
    Scan,
    Search,
    is_copy,
    values_read,
    without_unread,
)
from funcgrad.compiler.nest.orders import followed_order, inverse, permuted_shape
from funcgrad.compiler.nest.slides import sliding_contraction, window_fold
from funcgrad.compiler.nest.sort_places import is_sortable, sorted_places
from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.intrinsics import SCALED, UNSCALED, expression, with_constants
from funcgrad.passes.advance import advance, messages
from funcgrad.passes.cse import cse
from funcgrad.passes.dce import dce
from funcgrad.passes.inline import inline
from funcgrad.passes.padding import add_padded

Operands = list[Operand]
Results = Iterable[Operand]


def build(program: Program, is_general: bool = False) -> Graph:
    """The graph of a program without calls, maybe for other sizes, too."""
    graph = Graph(inputs=[Value(v.aval.shape, v.aval.dtype) for v in program.inputs])
    graph.out_shapes = [atom.aval.shape for atom in program.outputs]
    graph.is_general = is_general
    return Lowering(graph, program, [whole(value) for value in graph.inputs]).graph


def simplified(program: Program) -> Program:
    """A program without calls, repetitions and dead code."""
    return program.memo("simplified", lambda: dce(add_padded(cse(advance(inline(program))))))


class Lowering(Builder):
    """Builds the graph of a program that is applied to operands."""

    def __init__(
        self,
        graph: Graph,
        program: Program,
        operands: Sequence[Operand],
        n_shaped: int | None = None,
    ) -> None:
        super().__init__(graph)
        self.operands: dict[Var, Operand] = {}
        results = self._apply(program, operands)
        taken: set[int] = set()
        if not graph.out_shapes:
            fixed = {x.value for x in results[:n_shaped] if isinstance(x, View)}
        else:
            fixed = set()
        for operand in results:
            value = self._output(operand, taken, fixed)
            taken.add(id(value))
            self.graph.outputs.append(value)
        # An `Assemble` may use no element of an input.
        self.graph.nodes = without_unread(self.graph.nodes, self.graph.outputs, (Node,))
        self.graph.nodes = _with_sums_in_place(self.graph)

    def _apply(self, program: Program, operands: Sequence[Operand]) -> list[Operand]:
        """Append a program without calls; returns its results."""
        self.operands.update(zip(program.inputs, operands, strict=True))
        for var, array in program.constants:
            # A copy: what a function closes over may be written to after it was compiled.
            self.operands[var] = self.array(np.array(array, order="C"))
        for group in messages(program.equations):
            equation = group[0]
            if len(group) > 1:
                self._together(group)
            else:
                self._equation(equation)
        return [self._read(atom) for atom in program.outputs]

    def _read(self, atom: Atom) -> Operand:
        if type(atom) is Var:
            return self.operands[atom]
        return Uniform(atom.aval.dtype.type(atom.value), ())  # type: ignore[union-attr]

    def _output(self, operand: Operand, taken: set[int], fixed: set[Value]) -> Value:
        """The value that is returned, of those that must not be seen under another shape."""
        if isinstance(operand, View) and operand.is_whole:
            value = operand.value
            has_shape = operand.shape == value.shape or value not in fixed
            if has_shape and value.maker is not None and id(value) not in taken:
                return value
        return self.copy(operand)

    def lower_into(
        self,
        graph: Graph,
        program: Program,
        operands: Sequence[Operand],
        n_shaped: int | None = None,
    ) -> None:
        graph.is_general = self.graph.is_general
        Lowering(graph, program, operands, n_shaped)

    @property
    def asked(self) -> Equation:
        """The equation that is lowered."""
        assert self.equation is not None
        return self.equation

    def _made(self) -> Value:
        """A new value for its result."""
        aval = self.asked.outputs[0].aval
        return Value(aval.shape, aval.dtype)

    # Equations, by form.

    def _equation(self, equation: Equation) -> None:
        outer, self.equation = self.equation, equation
        results = map(_of_uncopied, self._treated([self._read(atom) for atom in equation.inputs]))
        self.operands.update(zip(equation.outputs, results, strict=True))
        self.equation = outer

    def _treated(self, operands: Operands) -> Results:
        form = forms.form_of(self.asked)
        treat: Callable[..., Results] = getattr(self, f"_{type(form).__name__.lower()}")
        return treat(form, operands)

    def _together(self, group: Sequence[Equation]) -> None:
        """One message for several arrays, side by side."""
        outer, first = self.equation, group[0]
        shapes = [equation.outputs[0].aval.shape for equation in group]
        sizes = [math.prod(shape) for shape in shapes]
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        flat = first.outputs[0].aval.update(shape=(sum(sizes),))
        self.equation = Equation(first.primitive, [Var(flat)], [Var(flat)], first.source)
        out = Value(flat.shape, flat.dtype)

        def part(value: Value, k: int) -> View:
            return View(value, shapes[k], contiguous_strides(shapes[k]), starts[k])

        kept = [k for k, size in enumerate(sizes) if size]
        parts = tuple(self._read(group[k].inputs[0]) for k in kept)
        places = tuple(part(out, k) for k in kept)
        sent = self.result(Copies(parts, (out,), places))
        (found,) = self._treated([sent])
        assert isinstance(found, View)
        for k, equation in enumerate(group):
            self.operands[equation.outputs[0]] = part(found.value, k)
        self.equation = outer

    def _pointwise(self, form: forms.Pointwise, operands: Operands) -> Results:
        aval = self.asked.outputs[0].aval
        for k in form.counts:
            operands = [*operands[:k], lookups.count_of(self, operands[k], k), *operands[k + 1 :]]
        scalars = [x.scalar if isinstance(x, Uniform) else None for x in operands]
        if all(isinstance(x, Uniform) for x in operands):
            with np.errstate(all="ignore"):
                known_now = self.asked.primitive.impl(*scalars)
            return [Uniform(aval.dtype.type(known_now), aval.shape)]
        counted = self._counted(operands)
        if counted is not None:
            return [counted]
        known = decided(form.expr, operands)
        if known is not None and known.dtype == aval.dtype:
            return [known.broadcast(aval.shape)]
        expr = with_constants(without_division(form.expr, operands), scalars)
        used = operands[: expression(expr).arity]
        aligned = tuple(x.broadcast(aval.shape) for x in used)
        copied = aligned[-1] if expr in ("{0}", "{1}") else None
        if copied is not None and copied.dtype == aval.dtype:
            return [copied]
        computed = domain(aligned, aval.shape)
        expr, aligned = self._with_reciprocal(expr, aligned, computed)
        if computed != aval.shape:  # what is the same along an axis is computed once
            out = Value(computed, aval.dtype)
            once = self.result(Point(tuple(first(x, computed) for x in aligned), (out,), expr))
            return [once.broadcast(aval.shape)]
        return self._in_order(aligned, lambda xs, out, order: Point(xs, (out,), expr))

    def _in_order(
        self,
        operands: Sequence[Operand],
        made: Callable[[tuple[Operand, ...], Value, Sequence[int]], Node],
    ) -> Results:
        """A result of operands of its shape, in the order in which they lie (`followed_order`).

        Args:
            operands: The operands.
            made: Gives the node, of the operands and the result with their axes in an order.
        """
        out, order = self._made(), followed_order(operands)
        if order is None:
            return [self.result(made(tuple(operands), out, range(len(out.shape))))]
        out = Value(permuted_shape(out.shape, order), out.dtype)
        out.is_free = True
        self.add(made(tuple(x.permuted(order) for x in operands), out, order))
        return [whole(out).permuted(inverse(order))]

    def _with_reciprocal(
        self, expr: str, operands: tuple[Operand, ...], shape: Shape
    ) -> tuple[str, tuple[Operand, ...]]:
        """A quotient of tangents as a product, where one divisor serves several of them."""
        if expr != UNSCALED:
            return expr, operands
        tangent, divisor = operands
        few = domain([divisor], divisor.shape)
        if math.prod(few) == math.prod(shape):
            return expr, operands
        made = Point((first(divisor, few),), (Value(few, divisor.dtype),), "1.0 / {0}")
        return SCALED, (tangent, self.result(made).broadcast(divisor.shape))

    def _counted(self, operands: Operands) -> Operand | None:
        """Integers that are made of no fewer ones that are known now: places that lookups read."""
        aval = self.asked.outputs[0].aval
        dtypes = [aval.dtype, *(x.dtype for x in operands)]
        sizes = [math.prod(x.value.shape) for x in operands if isinstance(x, View)]
        if any(dtype.kind not in "biu" for dtype in dtypes) or math.prod(aval.shape) > max(sizes):
            return None
        numbers = [lookups.known_numbers(x) for x in operands]
        if any(x is None for x in numbers):
            return None
        with np.errstate(all="ignore"):
            found = np.asarray(self.asked.primitive.impl(*numbers), aval.dtype)
        return self.array(found).broadcast(aval.shape)

    def _reindex(self, form: forms.Reindex, operands: Operands) -> Results:
        return [operands[0].reindexed(form, self.asked.outputs[0].aval.shape)]

    def _reshape(self, form: forms.Reshape, operands: Operands) -> Results:
        return [self.reshaped(operands[0], self.asked.outputs[0].aval.shape)]

    def _reduction(self, form: forms.Reduction, operands: Operands) -> Results:
        (x,) = operands
        out = self._made()
        x, form = _without_single(x, form)
        if not form.axes:
            return [x if x.dtype == out.dtype else whole(self.copy(x, out.dtype))]
        if isinstance(x, Uniform) and form.accurate and out.dtype.kind in "iufc":
            return [_sum_of_equal(x, form, out)]
        order = followed_order([x])
        if order is None:
            return [self.result(Fold((x,), (out,), form))]
        kept = tuple(i for i in order if i not in form.axes)
        out = Value(permuted_shape(x.shape, kept), out.dtype)
        out.is_free = kept != tuple(sorted(kept))
        axes = tuple(k for k, i in enumerate(order) if i in form.axes)
        self.add(Fold((x.permuted(order),), (out,), replace(form, axes=axes)))
        return [whole(out).permuted(inverse(kept))]

    def _prefixscan(self, form: forms.PrefixScan, operands: Operands) -> Results:
        def made(xs: tuple[Operand, ...], out: Value, order: Sequence[int]) -> Node:
            return Scan(xs, (out,), replace(form, axis=order.index(form.axis)))

        return self._in_order(operands, made)

    def _assemble(self, form: forms.Assemble, operands: Operands) -> Results:
        aval = self.asked.outputs[0].aval
        parts: list[Operand] = []
        forms_of_places: list[forms.Reindex] = []
        if form.fill:
            parts.append(operands[-1].broadcast(aval.shape))
            forms_of_places.append(cut((0,) * len(aval.shape)))
        for piece, operand in zip(form.pieces, operands, strict=False):
            if math.prod(piece.sizes):
                parts.append(operand.reindexed(cut(piece.lows), piece.sizes))
                forms_of_places.append(replace(cut(piece.starts), steps=piece.steps))
        views = any(isinstance(x, View) for x in parts)
        out = Value(domain(parts, aval.shape) if views else aval.shape, aval.dtype)
        parts = [first(x, tuple(map(min, x.shape, out.shape))) for x in parts]
        places = [
            whole(out).reindexed(form, x.shape)
            for form, x in zip(forms_of_places, parts, strict=True)
        ]
        view = Pieces(tuple(parts), tuple(places)).as_view()
        if view is not None:
            return [self.reshaped(view, out.shape).broadcast(aval.shape)]
        copies = Copies(tuple(parts), (out,), tuple(places))
        return [self.result(copies).broadcast(aval.shape)]

    def _constant(self, form: forms.Constant, operands: Operands) -> Results:
        return [self.array(np.asarray(self.asked.primitive.impl()))]

    def _extern(self, form: forms.Extern, operands: Operands) -> Results:
        asked = self.asked
        outs = tuple(Value(v.aval.shape, v.aval.dtype) for v in asked.outputs)
        self.add(External(tuple(operands), outs, asked.primitive, asked.source))
        return [whole(out) for out in outs]

    def _routine(self, form: forms.Routine, operands: Operands) -> Results:
        dtypes = resolve(form)
        if dtypes is None:
            return self._extern(forms.Extern(), operands)
        if is_sortable(form.calls, operands, _stored_shape(form.arrays[-1])):
            keys = [_ordered(x, form.arrays[0]) for x in reversed(operands)]
            places = sorted_places(self, keys)
            return [self._result(places, form.arrays[-1], places.dtype)]
        arrays = [
            replace(array, dtype=dtype) for array, dtype in zip(form.arrays, dtypes, strict=True)
        ]
        used = {i for call in form.calls for i in call.touches}
        memory: dict[int, View] = {}
        starts: list[tuple[int, Operand]] = []
        for i, array in enumerate(arrays):
            if i < len(operands):
                if i in used:
                    memory[i] = self._arranged(operands[i], array)
                continue
            if array.value is not None:
                memory[i] = self.constant(np.full(array.shape, array.value, array.dtype))
                continue
            memory[i] = whole(Value(_stored_shape(array), dtypes[i]))
            if array.start is not None:
                start = _ordered(operands[array.start], array)
                if start.dtype != array.dtype:
                    start = whole(self.copy(start, dtypes[i]))
                starts.append((i, start))
            elif array.counts:
                count = self.constant(np.arange(memory[i].shape[-1], dtype=dtypes[i]))
                starts.append((i, count.broadcast(memory[i].shape)))
        made = {i for i, array in enumerate(arrays) if i >= len(operands) and array.value is None}
        read = [x for i, x in memory.items() if i not in made]
        reads = (*read, *(start for _, start in starts))
        first = form.calls[0] if form.calls else None
        if isinstance(first, forms.NativeCall) and first.background is not None:
            self._begin(first, first.background, memory)
        else:
            outs = tuple(memory[i].value for i in form.results)
            self.add(Routine(reads, outs, form.calls, form.n_stack, memory, tuple(starts)))
        return [
            self._result(memory[i], arrays[i], var.aval.dtype)
            for i, var in zip(form.results, self.asked.outputs, strict=True)
        ]

    def _begin(
        self, call: forms.NativeCall, background: forms.Background, memory: dict[int, View]
    ) -> None:
        """A call that only begins, and the one that waits for its end."""
        x, out = memory[0], memory[1].value
        pending, state = Value(out.shape, out.dtype), Value((2,), np.dtype(np.int64))
        pending.home = out
        arrays = {0: x, 1: whole(pending), 2: whole(state)}
        begin = Routine((x,), (pending, state), (call,), 0, arrays, ())
        read = (whole(pending), whole(state), x)  # which is not to change before the end
        arrays = {0: x, 1: memory[1], 2: whole(state)}
        end = Routine(read, (out,), (background.end,), 0, arrays, ())
        end.begun_by = self.add(begin)
        self.add(end)

    def _arranged(self, operand: Operand, array: forms.Array) -> View:
        """An operand as a routine reads it: contiguous, or one element for all of the stack."""
        assert array.dtype is not None
        shape = _stored_shape(array)
        if math.prod(operand.shape) == 1 != math.prod(shape):
            ordered, shape = self.reshaped(operand, ()), ()
        else:
            ordered = _ordered(operand, array)
        if isinstance(ordered, View) and ordered.dtype == array.dtype:
            strides = contiguous_strides(shape)
            if same_strides(shape, ordered.strides, strides):
                return View(ordered.value, shape, strides, ordered.offset)
        return whole(self.copy(ordered, array.dtype))

    def _result(self, stored: View, array: forms.Array, dtype: np.dtype[Any]) -> Operand:
        """A result of a routine, with its axes and its dtype."""
        strides = [0] * len(array.shape)
        for axis, stride in zip(_order(array), stored.strides, strict=True):
            strides[axis] = stride
        view = View(stored.value, array.shape, tuple(strides))
        return view if dtype == array.dtype else whole(self.copy(view, dtype))

    def _barrier(self, form: forms.Barrier, operands: Operands) -> Results:
        self.epoch += 1
        return operands

    # Places that are computed.

    def _lookup(self, form: forms.Lookup, operands: Operands) -> Results:
        return [lookups.looked_up(self, form, operands, self._made())]

    def _scatter(self, form: forms.Scatter, operands: Operands) -> Results:
        return [lookups.scattered(self, form, operands, self._made())]

    def _window(self, form: forms.Window, operands: Operands) -> Results:
        return [lookups.window(self, operands, self._made())]

    def _replace(self, form: forms.Replace, operands: Operands) -> Results:
        return [lookups.replaced(self, operands, self._made())]

    def _argreduction(self, form: forms.ArgReduction, operands: Operands) -> Results:
        (x,), out = operands, self._made()
        if isinstance(x, Uniform) or x.shape[form.axis] == 1:
            return [Uniform(out.dtype.type(0), out.shape)]
        return [extremes.places(self, form, x, out)]

    def _search(self, form: forms.Search, operands: Operands) -> Results:
        ordered, values = operands
        node = Search((self.stored(ordered), values), (self._made(),), form)
        return [self.result(node)]

    # Loops and branches.

    def _loop(self, form: forms.Loop, operands: Operands) -> Results:
        body: Program = simplified(self.asked.primitive.body)  # type: ignore[attr-defined]
        a = form.n_consts + form.n_carry
        if form.length == 0:
            avals = [v.aval for v in self.asked.outputs[form.n_carry :]]
            return [
                *operands[form.n_consts : a],
                *(Uniform(x.dtype.type(0), x.shape) for x in avals),
            ]
        if form.length == 1:
            elements = [x.element(0) for x in operands[a:]]
            results = self._apply(body, [*operands[:a], *elements])
            ys = [y.as_stack() for y in results[form.n_carry :]]
            return [*results[: form.n_carry], *ys]
        return Nester(self).loop(form, body, operands)

    def _while(self, form: forms.While, operands: Operands) -> Results:
        condition: Program = simplified(self.asked.primitive.condition)  # type: ignore[attr-defined]
        body: Program = simplified(self.asked.primitive.body)  # type: ignore[attr-defined]
        return Nester(self).while_loop(form, condition, body, operands)

    def _branch(self, form: forms.Branch, operands: Operands) -> Results:
        branches = self.asked.primitive.branches  # type: ignore[attr-defined]
        programs = [simplified(branch) for branch in branches]
        index, *rest = operands
        if isinstance(index, Uniform):
            chosen = min(max(int(index.scalar), 0), len(programs) - 1)
            return self._apply(programs[chosen], rest)
        return Nester(self).branch(programs, operands)

    def _contraction(self, form: forms.Contraction, operands: Operands) -> Results:
        if form.slides:
            return [sliding_contraction(self, form, *operands)]
        x, y = operands
        return [contracted(self, form, x, y)]

    def _windowfold(self, form: forms.WindowFold, operands: Operands) -> Results:
        return [window_fold(self, form, operands, self._made())]


def _with_sums_in_place(graph: Graph) -> list[Node]:
    """The nodes, without sums of an array and zeros into which something was taken.

    Transposing a lookup gives zeros with the cotangent taken in, which are added to what there is
    already: the same as taking it in there, without a pass over the whole array.
    """
    uses = Counter(v for node in graph.nodes for v in values_read(node))
    uses.update(graph.outputs)
    nodes: dict[Node, None] = {}
    for node in graph.nodes:
        nodes[node] = None
        if not isinstance(node, Point) or not expression(node.expr).is_sum:
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


def _taken_into_zeros(operand: Operand, reader: Node, uses: Counter[Value]) -> list[Put]:
    """Chain of nodes that wrote an operand into zeros and have no other reader; else empty."""
    chain: list[Put] = []
    while isinstance(operand, View):
        node = operand.value.maker
        is_whole = operand.is_whole and operand.shape == reader.out.shape
        if not isinstance(node, Put) or not is_whole or node.epoch != reader.epoch:
            return []
        is_sum = expression(node.step).is_sum
        is_window = node.mode in ("start", "place") and node.n_rest == len(node.operands[1].shape)
        if uses[operand.value] != 1 or not (is_sum or is_window):
            return []
        chain.insert(0, node)
        operand = node.operands[0]
        if not is_sum:
            break  # what a window replaces is gone, unless it is zeros
    return chain if isinstance(operand, Uniform) and operand.scalar == 0 else []


def _rebased(chain: Sequence[Put], start: Operand, node: Node) -> Iterator[Node]:
    """The same taken into another array; the last one makes the result of a node."""
    for link in chain:
        out = node.out if link is chain[-1] else Value(node.out.shape, node.out.dtype)
        operands = (start, *link.operands[1:])
        target = link.target.of(out)
        put = replace(link, operands=operands, outs=(out,), target=target, step="{0} + {1}")
        yield put.like(link)
        start = whole(out)


def _sum_of_equal(x: Uniform, form: forms.Reduction, out: Value) -> Uniform:
    """A sum of one number that is known now: a product with the number of terms."""
    is_integer = out.dtype.kind in "iu"
    dtype = out.dtype if is_integer else np.result_type(out.dtype, np.float64)
    count = math.prod(x.shape[axis] for axis in form.axes)
    with np.errstate(all="ignore"):
        found = np.multiply(dtype.type(x.scalar), dtype.type(count)) if count else dtype.type(0)
        return Uniform(out.dtype.type(found), out.shape)


def _of_uncopied(x: Operand) -> Operand:
    """A view of a copy as one of its source, where neighbours lie on lines of their own in both."""
    maker = x.value.maker if isinstance(x, View) else None
    if not isinstance(x, View) or maker is None or not is_copy(maker):
        return x
    apart = (abs(s) * x.dtype.itemsize for n, s in zip(x.shape, x.strides, strict=True) if n != 1)
    if min(apart, default=VECTOR_BYTES) < VECTOR_BYTES:
        return x
    return of_source(x, maker.operands[0]) or x


def _without_single(x: Operand, form: forms.Reduction) -> tuple[Operand, forms.Reduction]:
    """A reduction without axes of one element: folding that into the neutral one gives itself.

    Not so complex numbers with infinite parts, multiplied by 1.
    """
    single = [axis for axis in form.axes if x.shape[axis] == 1]
    if not single or (x.dtype.kind == "c" and form.init == "1"):
        return x, form
    kept = [axis for axis in range(len(x.shape)) if axis not in single]
    axes = tuple(kept.index(axis) for axis in form.axes if axis not in single)
    starts = (0,) * len(x.shape)
    view = forms.Reindex(tuple(kept), starts, (1,) * len(kept))
    return x.reindexed(view, tuple(x.shape[axis] for axis in kept)), replace(form, axes=axes)


def _order(array: forms.Array) -> Sequence[int]:
    return range(len(array.shape)) if array.order is None else array.order


def _stored_shape(array: forms.Array) -> Shape:
    return tuple(array.shape[axis] for axis in _order(array))


def _ordered(operand: Operand, array: forms.Array) -> Operand:
    """An operand with the shape of an array and its axes in the order in which they are stored."""
    return operand.broadcast(array.shape).permuted(_order(array))
