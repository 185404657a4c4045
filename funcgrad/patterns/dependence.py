"""Dependence: which elements of the results of a program depend on which inputs.

``dependence : Program, relations of inputs -> relations of outputs``. What an equation does to a
relation follows from its form (`funcgrad.lowering`): so primitives need no rules, and those without
a form depend on everything. Programs are linear in the inputs that are asked about: tangents of a
function, for its Jacobian. Only floating and complex numbers depend on anything.

Loops are no steps: how the carry depends on itself after any number of them is a closure, found by
squaring. Indices that are known when the program is read (constants, and what is computed of them)
are looked at; others are taken to be anywhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import lowering as forms
from funcgrad.base.records import dataclass
from funcgrad.core.avals import Shape, ShapedArray
from funcgrad.core.program import Atom, Equation, Program
from funcgrad.passes.dce import dce
from funcgrad.patterns.index_sets import (
    MOST_ENTRIES,
    MOST_PIECES,
    Accumulate,
    AffineMove,
    Fold,
    Move,
    Pick,
    Piece,
    Relation,
    TooLargeError,
    collapsed,
    dense,
    identity,
    matrix_of,
    moved,
    product_of,
    reshaped,
    strides_of,
    transformed,
    union,
    with_matrix,
)
from funcgrad.patterns.known import Scope, form_of, side_by_side
from funcgrad.patterns.loop_writes import numbers_of, writes_of, written
from funcgrad.primitives.sparse import scipy_sparse
from funcgrad.transforms.programs import BatchedProgram

Found = Relation | None
"""Dependence of a value; ``None`` for none."""

MOST_LAGS = 16
"""Steps after which a loop must have forgotten what it carried, to be followed step by step."""

MOST_ROWS = 1 << 22
"""Elements of what a loop carries or stacks, in all of its steps, up to which these are looked at
side by side."""

MOST_FACTORS = 1 << 22
"""Products of elements with known factors that are not zero, up to which these are looked at."""


@dataclass(frozen=True)
class _Moved:
    """A rule: what becomes of each axis."""

    moves: tuple[Move, ...]
    shape: Shape
    filled: tuple[int, ...]

    def __call__(self, piece: Piece) -> list[Piece]:
        return moved(piece, self.moves, self.shape, self.filled)


def dependence(scope: Scope, relations: Sequence[Found], width: int) -> list[Found]:
    """Dependence of the results of a program on columns.

    Args:
        scope: The program, linear in the inputs that depend on anything.
        relations: What each of its inputs depends on.
        width: The number of columns.
    Returns: A relation for each result, or ``None`` if it depends on nothing.
    """
    program = scope.program
    found: dict[Atom, Found] = dict(zip(program.inputs, relations, strict=True))
    for equation in program.equations:
        given = [found.get(a) for a in equation.inputs]
        if all(r is None for r in given):
            continue
        outs = _Equation(equation, scope, given, width).outputs()
        for var, out in zip(equation.outputs, outs, strict=True):
            if out is not None and var.aval.dtype.kind in "fc" and not out.is_empty:
                found[var] = out
    return [found.get(a) for a in program.outputs]


def image_through(
    equation: Equation, scope: Scope, form: Any, k: int, relation: Relation
) -> Relation:
    """Dependence of the only result of an equation, of which one input depends on columns."""
    given = [relation if i == k else None for i in range(len(equation.inputs))]
    shape = equation.outputs[0].aval.shape
    return _Equation(equation, scope, given, relation.width)._through(form, k, shape, 0)


class _Equation:
    """An equation, and what its inputs depend on."""

    def __init__(
        self, equation: Equation, scope: Scope, given: Sequence[Found], width: int
    ) -> None:
        self.equation = equation
        self.scope = scope
        self.given = given
        self.width = width
        self.in_shapes = [a.aval.shape for a in equation.inputs]
        self.out_avals: list[ShapedArray] = [v.aval for v in equation.outputs]

    def outputs(self) -> list[Found]:
        form = form_of(self.equation)
        if isinstance(form, forms.Call):
            callee = self.scope.callee(form.program, self.equation.inputs)
            return dependence(callee, self.given, self.width)
        if isinstance(form, forms.Branch):
            return self._branches()
        if isinstance(form, forms.Loop):
            n, m = form.n_consts, form.n_carry
            return _Loop(self, self._body, 0, n, m, form.length, form.reverse).outputs()
        if isinstance(form, forms.While):
            n, m = form.n_cond_consts, form.n_body_consts
            return _Loop(self, self._body, n, m, len(self.out_avals), None).outputs()
        if isinstance(form, forms.Barrier):
            return list(self.given)
        return [self._output(form, i) for i in range(len(self.out_avals))]

    @property
    def _body(self) -> Program:
        body: Program = self.equation.primitive.body  # type: ignore[attr-defined]
        return body

    def _branches(self) -> list[Found]:
        inputs = self.equation.inputs[1:]
        each = [
            dependence(self.scope.callee(p, inputs), self.given[1:], self.width)
            for p in self.scope.branches(self.equation)
        ]
        return [together(found) for found in zip(*each, strict=True)]

    def _output(self, form: Any, number: int) -> Found:
        shape = self.out_avals[number].shape
        found: list[Found] = []
        linear = [k for k, relation in enumerate(self.given) if relation is not None]
        for k in linear:
            zeros = self.scope.zeros(self.equation, k, linear)
            if zeros is not None and zeros.all():
                continue
            image = self._through(form, k, shape, number)
            is_part = zeros is not None and bool(zeros.any())
            found.append(_at(image, ~np.broadcast_to(zeros, shape)) if is_part else image)
        return together(found)

    def _through(self, form: Any, k: int, shape: Shape, number: int) -> Relation:
        """Dependence of a result by one input."""
        relation, own = self.given[k], self.in_shapes[k]
        assert relation is not None
        if isinstance(form, forms.Reshape):
            return _reshaped(relation, own, shape)
        if isinstance(form, forms.Lookup | forms.Scatter):
            places = self._places(form)
            if places is not None:
                return self._at_places(form, k, places, shape)
        if isinstance(form, forms.Contraction) and not form.slides:
            factors = self._known_factors(form, k, shape)
            if factors is not None:
                return with_matrix([], factors, relation)
        rule = self._rule(form, k, own, shape, number)
        return collapsed(relation, shape) if rule is None else transformed(relation, rule, shape)

    def _rule(self, form: Any, k: int, own: Shape, shape: Shape, number: int) -> _Moved | None:
        """Effect on the axes of an input; ``None`` if everything depends on it."""
        if self.equation.primitive.is_elementwise or isinstance(form, forms.Pointwise):
            return _broadcast(own, shape)
        if isinstance(form, forms.Reindex):
            return _reindexed(form, own, shape)
        if isinstance(form, forms.Reduction):
            return _reduced(form.axes, own, shape)
        if isinstance(form, forms.PrefixScan):
            moves: list[Move] = [AffineMove(i, n) for i, n in enumerate(own)]
            moves[form.axis] = Accumulate(form.axis, own[form.axis], form.reverse)
            return _Moved(tuple(moves), shape, ())
        if isinstance(form, forms.Contraction):
            return _contracted(form, k, own, shape)
        if isinstance(form, forms.WindowFold):
            return _slid(form, k, own, shape)
        if isinstance(form, forms.Assemble):
            return _assembled(form, k, own, shape)
        if isinstance(form, forms.Lookup):
            return _anywhere(form.axes, own, shape) if k == 0 else None
        if isinstance(form, forms.Scatter):
            return _broadcast(own, shape) if k == 0 else _into(form.axes, own, shape)
        if isinstance(form, forms.Window | forms.Replace):
            return self._window(form, k, own, shape)
        if isinstance(form, forms.Routine):
            return _stacked(form, k, own, shape, number)
        return None

    def _known_factors(self, form: forms.Contraction, k: int, shape: Shape) -> Relation | None:
        """Dependence of a contraction on one input where the other one is known, and has zeros."""
        value = self.scope.value(self.equation.inputs[1 - k])
        if value is None:
            return None
        own, other = (form.lhs, form.rhs)[k], (form.lhs, form.rhs)[1 - k]
        own_shape = self.in_shapes[k]
        free = [(label, n) for label, n in zip(own, own_shape, strict=True) if label not in other]
        repeats = math.prod(n for _, n in free)
        nonzero = np.argwhere(value).T
        count = int(np.count_nonzero(value))
        if count == np.size(value) or count * repeats > MOST_FACTORS:
            return None
        index: dict[str, Any] = dict(zip(other, (i[:, None] for i in nonzero), strict=True))
        numbers = np.unravel_index(np.arange(repeats), [n for _, n in free]) if free else ()
        index.update((label, i[None]) for (label, _), i in zip(free, numbers, strict=True))

        def flat(labels: str, lengths: Shape) -> Any:
            each = zip(labels, strides_of(lengths), strict=True)
            number = sum((index[label] * stride for label, stride in each), np.zeros((), np.int64))
            return np.broadcast_to(number, (count, repeats)).ravel()

        rows, columns = flat(form.out, shape), flat(own, own_shape)
        width = math.prod(own_shape)
        matrix = matrix_of(rows, columns, (math.prod(shape), width))
        return Relation(shape, width, [], matrix)

    def _starts(self, atoms: Sequence[Atom], whole: Shape, part: Shape) -> list[int | None]:
        """The first indices of a part, moved to be inside; ``None`` for unknown ones."""
        found: list[int | None] = []
        for atom, n, m in zip(atoms, whole, part, strict=True):
            value = 0 if n == m else self.scope.value(atom)
            found.append(None if value is None else min(max(int(value), 0), n - m))
        return found

    def _window(self, form: Any, k: int, own: Shape, shape: Shape) -> _Moved:
        is_read = isinstance(form, forms.Window)
        if not is_read and k == 0:
            return _broadcast(own, shape)
        first = 1 if is_read else 2
        whole, part = (own, shape) if is_read else (shape, own)
        starts = self._starts(self.equation.inputs[first:], whole, part)
        moves: list[Move] = [
            Fold() if s is None else AffineMove(i, shape[i], shift=-s if is_read else s)
            for i, s in enumerate(starts)
        ]
        return _Moved(tuple(moves), shape, tuple(i for i, s in enumerate(starts) if s is None))

    # Gathers and scatters at places that are known.

    def _places(self, form: Any) -> Any:
        """For every element that is looked up its number in the array, -1 for none.

        ``None`` if indices are not known.
        """
        n_before = 1 if isinstance(form, forms.Lookup) else 2
        values = [self.scope.value(a) for a in self.equation.inputs[n_before:]]
        if any(v is None for v in values):
            return None
        shape = self.in_shapes[0]
        if 0 in shape:
            return None
        return numbers_of([np.asarray(v) for v in values], form.axes, form.mode, shape)

    def _at_places(self, form: Any, k: int, places: Any, shape: Shape) -> Relation:
        relation, own = self.given[k], self.in_shapes[k]
        assert relation is not None
        if isinstance(form, forms.Scatter) and k == 0:
            return relation
        here = np.flatnonzero(places.ravel() >= 0)
        there = places.ravel()[here]
        rows, columns = (here, there) if isinstance(form, forms.Lookup) else (there, here)
        n, m = math.prod(shape), math.prod(own)
        matrix = matrix_of(rows, columns, (n, m))
        return with_matrix([], Relation(shape, m, [], matrix), relation)


def _at(relation: Relation, flags: Any) -> Relation:
    """Dependence of flagged elements, that of the others being nothing."""
    (rows,) = np.nonzero(flags.ravel())
    n = relation.n_rows
    return with_matrix([], Relation(relation.shape, n, [], matrix_of(rows, rows, (n, n))), relation)


def together(found: Sequence[Found]) -> Found:
    """The union of what is there."""
    there = [r for r in found if r is not None]
    return union(there) if there else None


# The forms.


def _reshaped(relation: Relation, own: Shape, shape: Shape) -> Relation:
    """The same elements under another shape: rows of matrices stay where they are."""
    pieces = Relation(own, relation.width, relation.pieces)
    found = transformed(pieces, lambda p: reshaped(p, own, shape), shape)
    if relation.extra is None:
        return found
    return union([found, Relation(shape, relation.width, [], relation.extra)])


def _broadcast(own: Shape, shape: Shape) -> _Moved:
    """Corresponding elements, with NumPy's broadcasting."""
    lead = len(shape) - len(own)
    is_kept = [n == shape[lead + i] for i, n in enumerate(own)]
    moves = tuple(AffineMove(lead + i, n) if is_kept[i] else Pick(0) for i, n in enumerate(own))
    repeated = (lead + i for i, kept in enumerate(is_kept) if not kept)
    return _Moved(moves, shape, (*range(lead), *repeated))


def _reindexed(form: forms.Reindex, own: Shape, shape: Shape) -> _Moved | None:
    named = [a for a in form.axes if a is not None]
    if len(set(named)) < len(named):
        return None
    moves: list[Move] = [Pick(s) for s in form.starts]
    for o, (axis, step) in enumerate(zip(form.axes, form.steps, strict=True)):
        if axis is not None:
            moves[axis] = AffineMove(o, shape[o], stride=step, taps=(form.starts[axis],))
    return _Moved(tuple(moves), shape, tuple(o for o, a in enumerate(form.axes) if a is None))


def _reduced(axes: Sequence[int], own: Shape, shape: Shape) -> _Moved:
    kept = [i for i in range(len(own)) if i not in axes]
    moves = tuple(AffineMove(kept.index(i), n) if i in kept else Fold() for i, n in enumerate(own))
    return _Moved(moves, shape, ())


def _contracted(form: forms.Contraction, k: int, own: Shape, shape: Shape) -> _Moved:
    labels = (form.lhs, form.rhs)[k]
    slides = dict(form.slides)
    moves: list[Move] = []
    taken = set()
    for label in labels:
        o = form.out.find(label)
        if o < 0 or (label in slides and k == 1):
            moves.append(Fold())
            continue
        taken.add(o)
        moves.append(_sliding(slides[label], o) if label in slides else AffineMove(o, shape[o]))
    return _Moved(tuple(moves), shape, tuple(o for o in range(len(shape)) if o not in taken))


def _sliding(slide: forms.Slide, axis: int) -> AffineMove:
    """Relation for elements that windows slide along."""
    taps = tuple(slide.dilation * t for t in range(slide.taps))
    return AffineMove(axis, slide.windows, slide.base, slide.low, slide.stride, taps)


def _slid(form: forms.WindowFold, k: int, own: Shape, shape: Shape) -> _Moved | None:
    if not form.sliding[k]:
        return _broadcast(own, shape)
    if math.prod(s.taps for s in form.slides) > MOST_PIECES:
        return None
    return _Moved(tuple(_sliding(s, i) for i, s in enumerate(form.slides)), shape, ())


def _assembled(form: forms.Assemble, k: int, own: Shape, shape: Shape) -> _Moved | None:
    if k >= len(form.pieces):
        return None
    piece = form.pieces[k]
    rows = zip(piece.starts, piece.steps, piece.lows, piece.sizes, strict=True)
    moves = tuple(
        AffineMove(i, shape[i], step, start - step * low, limits=(low, low + size))
        for i, (start, step, low, size) in enumerate(rows)
    )
    return _Moved(moves, shape, ())


def _anywhere(axes: Sequence[int], own: Shape, shape: Shape) -> _Moved:
    """Elements at unknown places along some axes."""
    kept = [i for i in range(len(own)) if i not in axes]
    lead = len(shape) - len(kept)
    moves = tuple(
        AffineMove(lead + kept.index(i), n) if i in kept else Fold() for i, n in enumerate(own)
    )
    return _Moved(moves, shape, tuple(range(lead)))


def _into(axes: Sequence[int], own: Shape, shape: Shape) -> _Moved:
    """Elements that go to unknown places along some axes."""
    kept = [i for i in range(len(shape)) if i not in axes]
    lead = len(own) - len(kept)
    moves: list[Move] = [Fold() for _ in range(lead)]
    moves += [AffineMove(i, shape[i]) for i in kept]
    return _Moved(tuple(moves), shape, tuple(axes))


def _stacked(form: forms.Routine, k: int, own: Shape, shape: Shape, number: int) -> _Moved | None:
    """The elements of a stack on their own."""
    n, array, result = form.n_stack, form.arrays[k], form.arrays[form.results[number]]
    if not n or array.shape != own or result.shape != shape or len(own) < n:
        return None
    before, after = (x.order or tuple(range(len(x.shape))) for x in (array, result))
    moves: list[Move] = [Fold() for _ in own]
    for axis, o in zip(before[:n], after[:n], strict=True):
        if own[axis] != shape[o]:
            return None
        moves[axis] = AffineMove(o, shape[o])
    return _Moved(tuple(moves), shape, after[n:])


# Loops.


def _is_diagonal(relation: Relation, start: int) -> bool:
    """Whether each element depends on nothing but a column of its own, from a column on."""
    if relation.bound > relation.n_rows:
        return False
    row, column = relation.places
    return bool((row + start == column).all())


def _closure(step: Any, length: int | None) -> Any:
    """Transitive closure after at most so many steps, any number for ``None``."""
    found = step + scipy_sparse().eye_array(step.shape[0], dtype=np.bool_, format="csr")
    reached = 1
    while length is None or reached < length:
        squared = product_of(found, found)
        if squared.nnz == found.nnz:
            break
        found, reached = squared, 2 * reached
    return found


def _stack(blocks: Sequence[Any], width: int) -> Any:
    """Matrices of one width below each other."""
    empty = scipy_sparse().csr_array((0, width), dtype=np.bool_)
    return scipy_sparse().vstack([empty, *blocks], format="csr")


class _Loop:
    """A loop, whose body maps constants, the carry, and what is scanned, to carry and results.

    With the step ``c' = C c + D k + E x[t]``, ``y[t] = F c + G k + H x[t]`` and the closure ``K``
    of ``C``: a carry depends on its first value by ``K``, on constants by ``K D``, and on what is
    scanned, at any step, by ``K E``. Results depend by ``G`` on constants, by ``H`` on what
    belongs to their own step, and by ``F K`` on first values, by ``F K D`` on constants, and by
    ``F K E`` on earlier steps. Where powers of ``C`` vanish, as those of delays, each of them is
    followed in place of ``K``: then results depend on the last few steps only.

    Where ``C`` is diagonal and ``F`` zero, as of maps, sums, and arrays that are filled, steps need
    no order: the body of all of them side by side says what each depends on.

    Args:
        equation: The equation.
        body: Its body.
        n_before: Number of inputs that the body does not have.
        n_consts: Number of constants.
        n_carry: Number of carried values.
        length: Number of steps; ``None`` if it is not known.
        is_reversed: Whether the last element that is scanned comes first.
    """

    def __init__(
        self,
        equation: _Equation,
        body: Program,
        n_before: int,
        n_consts: int,
        n_carry: int,
        length: int | None,
        is_reversed: bool = False,
    ) -> None:
        self.is_reversed = is_reversed
        self.given = equation.given[n_before:]
        self.width = equation.width
        self.out_avals = equation.out_avals
        self.body = body
        self.carry = range(n_consts, n_consts + n_carry)
        self.length = length
        atoms = equation.equation.inputs[n_before:]
        self.known = [equation.scope.lazy(a) for a in atoms]
        constants = [a if i < n_consts else None for i, a in enumerate(atoms)]
        self.scope = equation.scope.callee(body, constants)
        self.active = [r is not None for r in self.given]

    def outputs(self) -> list[Found]:
        if self.length == 0:
            ys = [None] * (len(self.out_avals) - len(self.carry))
            return [*(self.given[i] for i in self.carry), *ys]
        outs = self._fixed_point()
        if self.length is not None and self._keeps_places():
            at_once = self._at_once(self.length)
            if at_once is not None:
                return at_once
        try:
            return self._exact(outs)
        except TooLargeError:
            return [
                None if out is None else dense(aval.shape, self.width)
                for out, aval in zip(outs, self.out_avals, strict=True)
            ]

    def _fixed_point(self) -> list[Found]:
        """Dependence of the results of the body: a fixed point over the carried values."""
        while True:
            sizes = [
                a.size if on else 0 for a, on in zip(self.body.in_avals, self.active, strict=True)
            ]
            self.ends = list(map(int, np.cumsum([0, *sizes])))
            given = [
                identity(a.shape, self.ends[-1], start) if on else None
                for a, on, start in zip(self.body.in_avals, self.active, self.ends, strict=False)
            ]
            outs = dependence(self.scope, given, self.ends[-1])
            more = [
                i for i, out in zip(self.carry, outs, strict=False) if out and not self.active[i]
            ]
            if not more:
                return outs
            for i in more:
                self.active[i] = True

    def _keeps_places(self) -> bool:
        """Whether nothing but the carry depends on the carry, and of it each element on itself."""
        width = sum(self.body.in_avals[i].size for i in self.carry if self.active[i])
        given: list[Found] = [None] * len(self.body.inputs)
        start, starts = 0, {}
        for i in self.carry:
            if self.active[i]:
                aval, starts[i] = self.body.in_avals[i], start
                given[i] = identity(aval.shape, width, start)
                start += aval.size
        outs = dependence(self.scope, given, width)
        own, others = outs[: len(self.carry)], outs[len(self.carry) :]
        return all(r is None for r in others) and all(
            r is None or _is_diagonal(r, starts[i]) for i, r in zip(self.carry, own, strict=True)
        )

    def _at_once(self, length: int) -> list[Found] | None:
        """Dependence by the body of all steps side by side: each reads known indices of its own.

        What is carried has what any step adds to it, or what steps write to it. ``None`` if that is
        too large, or the body cannot be mapped.
        """
        inputs = self.body.inputs
        pairs = zip(self.carry, self.body.outputs, strict=False)
        writes = [writes_of(self.body, inputs[i], out) for i, out in pairs]
        for each in (writes, [None] * len(writes)):
            outputs: list[Atom] = []
            for number, out in enumerate(self.body.outputs):
                own = each[number] if number < len(each) else None
                outputs += [out] if own is None else [a for e in own for a in e.inputs[1:]]
            steps = _Steps.of(self, outputs, length)
            found = None if steps is None else self._by_steps(steps, each)
            if found is not None:
                return found
        return None

    def _by_steps(
        self, steps: _Steps, writes: Sequence[Sequence[Equation] | None]
    ) -> list[Found] | None:
        """Dependence of the results by all steps side by side, without arrays that these write."""
        numbers = itertools.count()
        found: list[Found] = []
        for number, aval in enumerate(self.body.out_avals):
            is_carried = number < len(writes)
            first = self.given[self.carry[number]] if is_carried else None
            own = writes[number] if is_carried else None
            if own is None:
                out = (steps.total if is_carried else steps.stacked)(next(numbers), aval.shape)
                found.append(together([out, first]))
                continue
            parts = [first]
            for equation in own:
                k, *starts = (next(numbers) for _ in equation.inputs[1:])
                out = steps.stacked(k, equation.inputs[1].aval.shape)
                if out is not None:
                    values = [steps.value(s) for s in starts]
                    if any(v is None for v in values):
                        return None
                    out = written(equation, out, values, steps.length)
                parts.append(out)
            found.append(together(parts))
        return found

    def _matrix(self, i: int) -> Any:
        """Dependence of an input of the loop, as a matrix."""
        relation = self.given[i]
        if relation is not None:
            return relation.matrix
        return scipy_sparse().csr_array((self.body.in_avals[i].size, self.width), dtype=np.bool_)

    def _some(self, inputs: Sequence[int]) -> Any:
        """The same of several inputs, those that depend on anything."""
        return _stack([self._matrix(i) for i in inputs if self.active[i]], self.width)

    def _exact(self, outs: Sequence[Found]) -> list[Found]:
        first, last = self.carry.start, self.carry.stop
        scanned = [i for i in range(last, len(self.given)) if self.active[i]]
        start, stop, width = self.ends[first], self.ends[last], self.ends[-1]
        blocks = [
            scipy_sparse().csr_array((atom.aval.size, width), dtype=np.bool_)
            if out is None
            else out.matrix
            for atom, out in zip(self.body.outputs, outs, strict=True)
        ]
        carried = [j for j, i in enumerate(self.carry) if self.active[i]]
        step = _stack([blocks[j] for j in carried], width)
        constants, init = self._some(range(first)), self._some(self.carry)
        anywhere = _stack([self._at_any_step(i) for i in scanned], self.width)
        ready = product_of(step[:, :start], constants) + product_of(step[:, stop:], anywhere)
        closure = _closure(step[:, start:stop], self.length)
        state = product_of(closure, init + ready)
        ends = np.cumsum([0, *(blocks[j].shape[0] for j in carried)])
        found: list[Found] = [None] * len(outs)
        for j, a, b in zip(carried, ends, ends[1:], strict=False):
            found[j] = Relation(self.out_avals[j].shape, self.width, [], state[int(a) : int(b)])
        powers = _powers(step[:, start:stop])
        from_constants = product_of(closure, product_of(step[:, :start], constants))
        forgets = bool(powers)
        carried_on = _Carried(step, powers or [closure], forgets, init, constants, from_constants)
        for j in range(len(self.carry), len(outs)):
            if outs[j] is not None:
                found[j] = self._stacked(j, blocks[j], carried_on, scanned)
        return found

    def _at_any_step(self, i: int) -> Any:
        """Dependence of the scanned elements, at some step."""
        each = self._matrix(i).tocoo()
        n = self.body.in_avals[i].size
        entries = (each.data, (each.row % max(n, 1), each.col))
        return _csr(scipy_sparse().coo_array(entries, (n, self.width)))

    def _stacked(self, j: int, y: Any, carried: _Carried, scanned: Sequence[int]) -> Relation:
        """Dependence of a stacked result: each step on that one and on earlier ones."""
        steps = self.length
        assert steps is not None, "loops that stack results have a length"
        first, last = self.ends[self.carry.start], self.ends[self.carry.stop]
        by_carry = y[:, first:last]
        always = product_of(y[:, :first], carried.constants)
        always = always + product_of(by_carry, carried.from_constants)
        total = self._kron(np.ones((steps, 1), np.bool_), always)
        for lag, power in enumerate(carried.powers):
            block = product_of(product_of(by_carry, power), carried.init)
            if block.nnz:
                total = total + self._kron(self._steps_with_begin(lag, carried), block)
        for i in scanned:
            own = y[:, self.ends[i] : self.ends[i + 1]]
            total = total + self._through_steps(_diagonal(steps, 0), own, i)
            entering = carried.step[:, self.ends[i] : self.ends[i + 1]]
            for lag, power in enumerate(carried.powers):
                block = product_of(product_of(by_carry, power), entering)
                if block.nnz:
                    which = self._steps_after(lag + 1, carried)
                    total = total + self._through_steps(which, block, i)
        return Relation(self.out_avals[j].shape, self.width, [], total)

    def _steps_with_begin(self, lag: int, carried: _Carried) -> Any:
        """Steps, as rows, that first values have an effect on: after so many, or any more."""
        steps = self.length
        assert steps is not None
        number = np.arange(steps)
        if self.is_reversed:
            number = number[::-1]
        return (number == lag if carried.forgets else number >= lag)[:, None]

    def _steps_after(self, lag: int, carried: _Carried) -> Any:
        """Steps, as rows, that a step has an effect on: after so many, or any more."""
        steps = self.length
        assert steps is not None
        if carried.forgets:
            found = _diagonal(steps, -lag)
        elif steps**2 > MOST_ENTRIES:
            raise TooLargeError
        else:
            found = scipy_sparse().csr_array(np.tri(steps, k=-lag, dtype=np.bool_))
        return found[::-1, ::-1] if self.is_reversed else found

    def _through_steps(self, which: Any, block: Any, i: int) -> Any:
        """Dependence of results through the scanned elements."""
        return product_of(self._kron(which, block), self._matrix(i))

    def _kron(self, which: Any, block: Any) -> Any:
        matrix = scipy_sparse().csr_array(which)
        if matrix.nnz * block.nnz > MOST_ENTRIES:
            raise TooLargeError
        return _csr(scipy_sparse().kron(matrix, block))


class _Steps:
    """Results of the body of a loop for all of its steps, side by side.

    Args:
        batched: The program of all steps.
        scope: What is known in it.
        relations: Dependence of its results.
        length: The number of steps.
    """

    def __init__(
        self, batched: BatchedProgram, scope: Scope, relations: Sequence[Found], length: int
    ) -> None:
        self.batched, self.scope, self.relations, self.length = batched, scope, relations, length

    @classmethod
    def of(cls, loop: _Loop, outputs: Sequence[Atom], length: int) -> _Steps | None:
        """Some values of the body of a loop, ``None`` if they are too large."""
        if length * max((a.aval.size for a in outputs), default=0) > MOST_ROWS:
            return None
        n, body = loop.carry.start, loop.body
        part = dce(Program(body.inputs, body.equations, outputs, body.name, body.constants))
        is_mapped = tuple(i >= n for i in range(len(loop.given)))
        batched = side_by_side(part, is_mapped, length)
        if batched is None:
            return None
        known = [*loop.known[:n], *(None for _ in loop.carry), *loop.known[loop.carry.stop :]]
        given = [None if i in loop.carry else r for i, r in enumerate(loop.given)]
        scope = Scope(batched.program, known)
        return cls(batched, scope, dependence(scope, given, loop.width), length)

    def value(self, number: int) -> Any:
        """The values in all steps, or one for all of them; ``None`` if they are not known."""
        return self.scope.value(self.batched.program.outputs[number])

    def total(self, number: int, shape: Shape) -> Found:
        """Dependence of a result in any step."""
        found = self.relations[number]
        if found is None or not self.batched.is_mapped_out[number]:
            return found
        return transformed(found, _reduced((0,), (self.length, *shape), shape), shape)

    def stacked(self, number: int, shape: Shape) -> Found:
        """Dependence of a result, step by step."""
        found = self.relations[number]
        if found is None or self.batched.is_mapped_out[number]:
            return found
        whole = (self.length, *shape)
        return transformed(found, _broadcast(shape, whole), whole)


@dataclass(frozen=True)
class _Carried:
    """How what is carried depends on what comes before.

    Args:
        step: The effect of one step.
        powers: The effects of the carry on itself after 0, 1, ... steps; or that of all of them.
        forgets: Whether these are all that there are: after more steps nothing is left.
        init: What first values depend on.
        constants: What constants depend on.
        from_constants: What the carry depends on by constants.
    """

    step: Any
    powers: Sequence[Any]
    forgets: bool
    init: Any
    constants: Any
    from_constants: Any


def _powers(carry: Any) -> list[Any]:
    """Powers of a matrix until they vanish; none if they do not soon."""
    found = [scipy_sparse().eye_array(carry.shape[0], dtype=np.bool_, format="csr")]
    while found[-1].nnz:
        if len(found) > MOST_LAGS:
            return []
        found.append(product_of(found[-1], carry))
    return found[:-1]


def _diagonal(n: int, offset: int) -> Any:
    return scipy_sparse().eye_array(n, k=offset, dtype=np.bool_, format="csr")


def _csr(matrix: Any) -> Any:
    return matrix.tocsr().astype(np.bool_)
