"""Sparse derivatives diagonal by diagonal: entries from coefficients, without seeds.

Where index sets are affine, an element of a value depends on the columns that a few affine maps of
its index give: on *diagonals*. Of each of them the coefficients are an array, of the part of the
value where they are. A linear operation does to coefficients what it does to the value, and index
sets say which diagonal they are then on. So there is an operation for every entry, as in formulas
that are derived by hand, where products with seeds compute the zeros between entries, too.

A sum over elements depends on many columns, which no diagonal has. Of a symmetric matrix such rows,
those of hubs, follow from mirrored entries: only their places are kept. Where two of them meet,
neither does, and a second pass takes the elements of these columns out of the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lowering as forms
from funcgrad.base.records import dataclass
from funcgrad.core.avals import Shape, ShapedArray
from funcgrad.core.program import Atom, Equation, Literal
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.patterns.dependence import image_through
from funcgrad.patterns.index_sets import (
    FREE,
    Dimension,
    Piece,
    Relation,
    identity,
    piece_of,
    strides_of,
)
from funcgrad.patterns.interleave import in_order
from funcgrad.patterns.known import Scope, form_of
from funcgrad.patterns.sparsity_pattern import SparsityPattern
from funcgrad.patterns.taps import MOST_TERMS, spelled_out
from funcgrad.primitives.elementwise import add
from funcgrad.primitives.shape import Pad, Slice, reshape
from funcgrad.primitives.sparse import scipy_sparse
from funcgrad.transforms.jvp import jvp_flat

MOST_DIAGONALS = 40
"""Diagonals of one value, each with operations of its own; of more, products take less code."""

MOST_APART = 8
"""Distance of neighbours up to which an array is taken apart where only some of its elements
are in a sum."""

Box = tuple[range, ...]
"""For each axis the indices inside, which ascend."""


class NotDiagonalError(Exception):
    """Raised inside this package where a value has no diagonals, or too many."""


class HiddenError(NotDiagonalError):
    """Raised inside this package where neither of two mirrored entries is known.

    Attributes:
        columns: Those of such entries.
    """

    def __init__(self, columns: tuple[int, ...]) -> None:
        super().__init__()
        self.columns = columns


@dataclass(frozen=True)
class Diagonal:
    """Dependence of a value on columns by one affine map.

    Args:
        pieces: Where it does.
        box: A part of the value with all these places.
        values: The coefficients there, an array, or one number for all of them.
    """

    pieces: tuple[Piece, ...]
    box: Box
    values: Any

    @property
    def shape(self) -> Shape:
        """The shape of the box."""
        return tuple(map(len, self.box))

    def within(self, box: Box, dtype: Any) -> Any:
        """The coefficients in a part of the value, with zeros where there are none."""
        inside = tuple(map(meet, self.box, box))
        if inside == box:
            return _part(self.values, self.box, box)
        if not all(inside):
            return zeros_of(ShapedArray(tuple(map(len, box)), dtype))
        values = Diagonal(self.pieces, inside, _part(self.values, self.box, inside)).array(dtype)
        lows = tuple(map(_place, box, inside))
        interiors = tuple(max(b.step // a.step, 1) - 1 for a, b in zip(box, inside, strict=True))
        ends = ((n - 1) * (k + 1) + 1 for n, k in zip(map(len, inside), interiors, strict=True))
        highs = tuple(len(a) - low - n for a, low, n in zip(box, lows, ends, strict=True))
        return Pad(lows, highs, interiors).bind(values, np.zeros((), dtype)[()])

    def cropped(self) -> Diagonal:
        """The same without elements before, between and behind those that are there."""
        if len(self.box) != 1:
            return self
        inside = (meet(self.box[0], _reach(self.pieces)),)
        return Diagonal(self.pieces, inside, _part(self.values, self.box, inside))

    def apart(self, axis: int, index: int) -> list[Diagonal]:
        """The parts before, at and behind an index along an axis."""
        side = self.box[axis]
        ends = (side.start, index, index + 1, side.stop)
        return self.at(axis, [range(a, b) for a, b in pairwise(ends)])

    def at(self, axis: int, limits: Sequence[range]) -> list[Diagonal]:
        """The parts in some indices along an axis, those that have elements."""
        found = []
        for limit in limits:
            pieces, inside = _cut(self.pieces, axis, limit), meet(self.box[axis], limit)
            if pieces and inside:
                box = (*self.box[:axis], inside, *self.box[axis + 1 :])
                found.append(Diagonal(pieces, box, _part(self.values, self.box, box)))
        return found

    def array(self, dtype: Any) -> Any:
        """The coefficients as an array."""
        if type(self.values) is not float:
            return self.values
        return fnp.broadcast_to(np.asarray(self.values, dtype), self.shape)


@dataclass(frozen=True)
class Hidden:
    """Dependence of a value on columns whose coefficients are not computed."""

    relation: Relation


Diagonals = list[Diagonal | Hidden]


def whole(shape: Shape) -> Box:
    """All of an array."""
    return tuple(map(range, shape))


def meet(a: range, b: range) -> range:
    """The integers that two ascending ranges have in common, one after the other."""
    common = math.gcd(a.step, b.step)
    if (b.start - a.start) % common:
        return range(0)
    period = b.step // common
    ahead = (b.start - a.start) // common * pow(a.step // common, -1, period) % period
    first, step = a.start + ahead * a.step, a.step * period
    first += max(0, -((first - max(a.start, b.start)) // step)) * step
    found = range(first, min(a.stop, b.stop), step)
    return found if len(found) > 1 else range(first, first + len(found))


def _place(inside: range, part: range) -> int:
    """The number of the first element of a part."""
    return (part.start - inside.start) // inside.step


def unit_diagonal(aval: Any, width: int, column: int) -> Diagonals:
    """The diagonal of an array whose elements are columns, from one on."""
    pieces = identity(aval.shape, width, column).pieces
    return [Diagonal(tuple(pieces), whole(aval.shape), 1.0)] if pieces else []


def push(
    scope: Scope,
    values: Sequence[Any],
    given: Sequence[Diagonals],
    width: int,
    hubs: tuple[int, ...] | None = None,
) -> list[Diagonals]:
    """Diagonals of the results of a program that is linear in inputs with diagonals.

    Args:
        scope: The program, and what is known of its inputs.
        values: The inputs that have values; anything for the others.
        given: The diagonals of each input, none for those with values.
        width: The number of columns.
        hubs: Columns that are taken out of sums, which have no diagonals; ``None`` if the matrix
            is not symmetric, so that no rows may be hidden.
    Raises: NotDiagonalError: If a value has none, or too many.
    """
    program = scope.program
    found: dict[Atom, Diagonals] = {a: d for a, d in zip(program.inputs, given, strict=True) if d}
    known: dict[Atom, Any] = dict(program.constants)
    known.update((a, x) for a, x in zip(program.inputs, values, strict=True) if a not in found)
    for equation in program.equations:
        each = [found.get(a, []) for a in equation.inputs]
        args = [
            a.value if isinstance(a, Literal) else known[a] if a in known else zeros_of(a.aval)
            for a in equation.inputs
        ]
        primitive = equation.primitive
        if not any(each):
            outs = primitive.bind(*args)
            listed = outs if primitive.multiple_results else [outs]
            known.update(zip(equation.outputs, listed, strict=True))
            continue
        form = form_of(equation)
        inner = form.program if isinstance(form, forms.Call) else spelled_out(equation, form)
        if inner is not None and not primitive.is_effectful:
            results = push(scope.callee(inner, equation.inputs), args, each, width, hubs)
        else:
            is_active = [bool(d) for d in each]
            step = Step(equation, form, scope, args, is_active, width, hubs)
            results = [step.result(each)]
        found.update(zip(equation.outputs, results, strict=True))
    return [found.get(a, []) for a in program.outputs]


def zeros_of(aval: Any) -> Any:
    """Zeros of a type, in no memory."""
    return np.broadcast_to(np.zeros((), aval.dtype), aval.shape)


class Step:
    """Propagation of stored diagonals through an equation with one result.

    Args:
        equation: The equation.
        form: Its form.
        scope: The program that it is in.
        args: Its operands, zeros for those that have diagonals.
        is_active: Which have these.
        width: The number of columns.
        hubs: As of `push`.
    """

    def __init__(
        self,
        equation: Equation,
        form: Any,
        scope: Scope,
        args: Sequence[Any],
        is_active: Sequence[bool],
        width: int,
        hubs: tuple[int, ...] | None = None,
    ) -> None:
        primitive = equation.primitive
        if primitive.multiple_results or primitive.is_composite or primitive.is_effectful:
            raise NotDiagonalError
        (out,) = equation.outputs
        if out.aval.dtype.kind != "f":
            raise NotDiagonalError
        self.equation, self.form, self.scope, self.width = equation, form, scope, width
        self.primitive, self.aval, self.is_active = primitive, out.aval, is_active
        self.args, self.hubs = args, hubs
        pairs = zip(equation.inputs, is_active, strict=True)
        self.known = [0.0 if active else scope.value(a) for a, active in pairs]

    def result(self, each: Sequence[Diagonals]) -> Diagonals:
        """The diagonals of the result, by those of the operands."""
        found: list[Diagonal] = []
        hidden: list[Hidden] = []
        for k, diagonals in enumerate(each):
            if diagonals and not self.scope.is_zero(self.equation, k):
                for diagonal in diagonals:
                    for image in self._images(k, diagonal):
                        if isinstance(image, Hidden):
                            hidden.append(image)
                        else:
                            found = _with(found, image, self.aval)
        if len(hidden) > MOST_DIAGONALS:
            raise NotDiagonalError
        return [*found, *hidden]

    def _images(self, k: int, given: Diagonal | Hidden) -> list[Diagonal | Hidden]:
        """Diagonals that one becomes, index by index along short axes if it is taken apart."""
        if isinstance(given, Hidden):
            return self._hidden(k, given.relation)
        diagonal = given.cropped()
        try:
            image = self._image(k, diagonal)
            return [] if image is None else [image]
        except NotDiagonalError:
            short = [i for i, side in enumerate(diagonal.box) if 1 < len(side) <= MOST_TERMS]
            if not short:
                return self._hidden_but_hubs(k, diagonal)
            axis = short[-1]
            parts = (diagonal.at(axis, [range(i, i + 1)]) for i in diagonal.box[axis])
            return [image for part in parts for d in part for image in self._images(k, d)]

    def _hidden(self, k: int, relation: Relation) -> list[Diagonal | Hidden]:
        """The places of an image, if they may be hidden: there are no more than in a dense row."""
        image = image_through(self.equation, self.scope, self.form, k, relation)
        if self.hubs is None or image.bound > self.width:
            raise NotDiagonalError
        return [] if image.is_empty else [Hidden(image)]

    def _hidden_but_hubs(self, k: int, diagonal: Diagonal) -> list[Diagonal | Hidden]:
        """Images of a diagonal: the elements of hubs one by one, the places of the others."""
        shape = self.equation.inputs[k].aval.shape
        alone: list[Diagonal] = []
        parts = [diagonal]
        for column in self.hubs or ():
            index = _index_of(column, diagonal, shape)
            own = [] if index is None else diagonal.at(0, [range(index, index + 1)])
            if index is not None and own:
                alone += own
                rest = (part for d in parts for part in d.apart(0, index))
                parts = [part for part in rest if part.box != own[0].box]
        images = (self._image(k, part) for part in alone)
        found: list[Diagonal | Hidden] = [image for image in images if image is not None]
        for part in parts:
            found += self._hidden(k, Relation(shape, self.width, part.pieces))
        return found

    def _image(self, k: int, diagonal: Diagonal) -> Diagonal | None:
        shape = self.equation.inputs[k].aval.shape
        relation = Relation(shape, self.width, diagonal.pieces)
        image = image_through(self.equation, self.scope, self.form, k, relation)
        if image.is_empty:
            return None
        if not _is_one_to_one(relation, image):
            raise NotDiagonalError
        pieces = tuple(image.pieces)
        moved = self._moved(k, diagonal)
        if moved is not None:
            return Diagonal(pieces, *moved)
        if self.primitive.is_elementwise and shape == self.aval.shape:
            return Diagonal(pieces, diagonal.box, self.by_element(k, diagonal))
        dtype = self.equation.inputs[k].aval.dtype
        values = Diagonal(pieces, whole(shape), diagonal.within(whole(shape), dtype)).array(dtype)
        return Diagonal(pieces, whole(self.aval.shape), self._derivative(k, values, self.args))

    def _moved(self, k: int, diagonal: Diagonal) -> tuple[Box, Any] | None:
        """Box and coefficients of a result that has the operand, or a part of it, as a part."""
        form, rank = self.form, len(diagonal.box)
        if isinstance(form, forms.Assemble) and k < len(form.pieces):
            piece = form.pieces[k]
            limits = [range(a, a + n) for a, n in zip(piece.lows, piece.sizes, strict=True)]
            starts, steps = piece.starts, piece.steps
        elif isinstance(form, forms.Reindex) and form.axes == tuple(range(rank)):
            if any(step < 1 for step in form.steps):
                return None
            sides = zip(form.starts, form.steps, self.aval.shape, strict=True)
            limits = [range(a, a + step * n, step) for a, step, n in sides]
            starts, steps = (0,) * rank, (1,) * rank
        elif isinstance(form, forms.Reshape):
            same = _reshaped(diagonal.box, self.equation.inputs[k].aval.shape, self.aval.shape)
            if same is None or type(diagonal.values) is float:
                return None if same is None else (same, diagonal.values)
            return same, reshape(diagonal.values, tuple(map(len, same)))
        else:
            return None
        inside = tuple(map(meet, diagonal.box, limits))
        if not all(inside):
            return None
        box = []
        for own, limit, start, step in zip(inside, limits, starts, steps, strict=True):
            first, apart = start + step * _place(limit, own), step * own.step // limit.step
            box.append(range(first, first + apart * (len(own) - 1) + 1, max(apart, 1)))
        return tuple(box), _part(diagonal.values, diagonal.box, inside)

    def by_element(self, k: int, diagonal: Diagonal) -> Any:
        """Coefficients after an operation on elements."""
        avals = [a.aval for a in self.equation.inputs]
        numbers = [
            None if x is None else _number(_elements(x, self._box_of(np.shape(x), diagonal.box)))
            for x in self.known
        ]
        others = [i for i in range(len(avals)) if i != k]
        values = diagonal.values
        if type(values) is float and all(numbers[i] is not None for i in others):
            with using_trace(EVAL):
                args = [a.dtype.type(x) for a, x in zip(avals, numbers, strict=True)]
                return float(self._derivative(k, avals[k].dtype.type(values), args))
        args = [
            self._beside(x, a.shape, diagonal.box)
            if number is None or a.dtype.kind != "b"
            else np.bool_(number)
            for x, a, number in zip(self.args, avals, numbers, strict=True)
        ]
        at_number = getattr(self.primitive, "at_number", None)
        if at_number is not None and type(values) is float:
            return at_number(values, args[1 - k])
        if at_number is not None and numbers[1 - k] is not None:
            return at_number(numbers[1 - k], values)
        return self._derivative(k, diagonal.array(avals[k].dtype), args)

    def _beside(self, x: Any, shape: Shape, box: Box) -> Any:
        """The part of an operand that meets a part of the result."""
        return _part(x, whole(shape), self._box_of(shape, box))

    def _box_of(self, shape: Shape, box: Box) -> Box:
        """The part of an operand of a shape that meets a part of the result."""
        lead = len(box) - len(shape)
        aligned = zip(shape, self.aval.shape[lead:], box[lead:], strict=True)
        return tuple(b if n == m else range(n) for n, m, b in aligned)

    def _derivative(self, k: int, values: Any, args: Sequence[Any]) -> Any:
        """Effect of a linear operation on an array in place of one of its operands."""

        def operation(x: Any) -> list[Any]:
            return [self.primitive.bind(*args[:k], x, *args[k + 1 :])]

        found = jvp_flat(operation, [args[k]], [values], "sparse derivative")[1][0]
        if found is None:
            raise NotDiagonalError
        return found


def _reshaped(box: Box, own: Shape, shape: Shape) -> Box | None:
    """The box of the same elements under another shape, ``None`` if there is none.

    Sides of the box that follow each other, as one, become sides along one axis each.
    """
    first = 0
    sides: list[tuple[int, int]] = []
    for side, stride in zip(box, strides_of(own), strict=True):
        first += side.start * stride
        if len(side) > 1:
            step, count = side.step * stride, len(side)
            if sides and sides[-1][0] == step * count:
                count *= sides.pop()[1]
            sides.append((step, count))
    found = []
    for stride, length in zip(strides_of(shape), shape, strict=True):
        start, first = divmod(first, stride)
        step, count = sides[0] if sides else (0, 1)
        if not sides or step % stride:
            found.append(range(start, start + 1))
            continue
        if start + step // stride * (count - 1) >= length:
            return None
        found.append(range(start, start + step // stride * (count - 1) + 1, step // stride))
        sides.pop(0)
    return None if sides else tuple(found)


def _elements(known: Any, box: Box) -> Any:
    """The elements of a known value in a part of it."""
    return np.asarray(known)[tuple(slice(r.start, r.stop, r.step) for r in box)]


def _number(array: Any) -> float | None:
    """The finite number that all elements of an array are, if there is one."""
    if array.dtype.kind not in "fiub" or not array.size:
        return None
    number = float(array.flat[0])
    return number if math.isfinite(number) and (array == array.flat[0]).all() else None


def _part(values: Any, box: Box, inside: Box) -> Any:
    """The elements of a part of a box."""
    if type(values) is float or box == inside:
        return values
    starts = tuple(map(_place, box, inside))
    sides = list(zip(starts, map(len, inside), box, inside, strict=True))
    steps = tuple(max(1, part.step // whole.step) for _, _, whole, part in sides)
    limits = tuple(a + step * (n - 1) + 1 for (a, n, *_), step in zip(sides, steps, strict=True))
    return Slice(starts, limits, steps).bind(values)


def _is_one_to_one(relation: Relation, image: Relation) -> bool:
    """Whether each element of an image depends on one column, as those that it is an image of."""
    return (
        image.extra is None
        and len(image.pieces) <= len(relation.pieces)
        and all(_is_on_one_column(p) for p in image.pieces)
    )


def _is_on_one_column(piece: Piece) -> bool:
    """Whether each element depends on one column, by one affine map.

    Of an array of rows as a vector, a part has several sides along one axis, of one slope. Short
    rows are better taken apart.
    """
    for axis in {d.axis for d in piece.dims}:
        sides = piece.on(axis)
        is_short = any(d.size <= MOST_TERMS for d in sides)
        if axis == FREE or (len(sides) > 1 and is_short):
            return False
        if len({Fraction(d.stride, d.step) for d in sides}) > 1:
            return False
    return True


def _with(diagonals: list[Diagonal], more: Diagonal | None, aval: Any) -> list[Diagonal]:
    """Diagonals and another one, which may be on the affine map of one of them."""
    if more is None:
        return diagonals
    for i, own in enumerate(diagonals):
        pieces = tuple(dict.fromkeys(own.pieces + more.pieces))
        others = [*diagonals[:i], *diagonals[i + 1 :]]
        if not _is_on_one_map(pieces, aval.shape):
            crossing = _crossing(own, more, aval.shape)
            if crossing is None:
                continue
            others += own.apart(*crossing)
            for part in more.apart(*crossing):
                others = _with(others, part, aval)
            return others
        if len(aval.shape) != 1:
            if all(map(meet, own.box, more.box)):
                return _with(others, _sum(own, more, pieces, aval.dtype), aval)
            continue
        common = _common(_reach(own.pieces), _reach(more.pieces))
        if common:
            a, b = (x.within((common,), aval.dtype) for x in (own, more))
            joined = Diagonal(_cut(pieces, 0, common), (common,), _added(a, b, aval.dtype))
            others = _with([*others, *_outside(own, common)], joined, aval)
            for rest in _outside(more, common):
                others = _with(others, rest, aval)
            return others
    if len(diagonals) == MOST_DIAGONALS:
        raise NotDiagonalError
    return [*diagonals, more]


def _reach(pieces: Sequence[Piece]) -> range:
    """The part of a vector in which pieces are."""
    ends = [(p.starts[0], p.starts[0] + sum(d.reach for d in p.dims)) for p in pieces]
    first = min(a for a, _ in ends)
    apart = math.gcd(*(d.step for p in pieces for d in p.dims), *(a - first for a, _ in ends))
    return range(first, max(b for _, b in ends) + 1, max(apart, 1))


def _common(a: range, b: range) -> range:
    """The part of a vector in which two diagonals may both be.

    Where one of them has elements far apart, those between count, too.
    """
    both = meet(a, b)
    if max(both.step // a.step, both.step // b.step) <= MOST_APART:
        return both
    step, stop = math.gcd(a.step, b.step), min(a.stop, b.stop)
    return meet(range(max(a.start, b.start), stop), range(both.start % step, stop, step))


def _outside(diagonal: Diagonal, box: range) -> list[Diagonal]:
    """The parts of a diagonal of a vector before, between and behind the elements of a box."""
    own = _reach(diagonal.pieces)
    parts = [range(own.start, box.start, own.step)]
    parts += [
        range(box.start + shift, box[-1], box.step) for shift in range(own.step, box.step, own.step)
    ]
    parts.append(meet(own, range(box[-1] + 1, own.stop)))
    cut = [_cut(diagonal.pieces, 0, part) for part in parts]
    return [Diagonal(pieces, diagonal.box, diagonal.values) for pieces in cut if pieces]


def _cut(pieces: Sequence[Piece], axis: int, part: range) -> tuple[Piece, ...]:
    """The parts of pieces that are in some indices along an axis."""
    found = []
    for piece in pieces:
        start = piece.starts[axis]
        if len(piece.on(axis)) > 1:
            own = _reach([piece])
            if meet(own, part) not in (own, range(0)):
                raise NotDiagonalError
            found += [piece] if meet(own, part) else []
            continue
        dim = next(iter(piece.on(axis)), Dimension(axis, 1, 1, 0))
        inside = meet(range(start, start + dim.reach + 1, dim.step), part)
        if inside:
            number, apart = (inside.start - start) // dim.step, inside.step // dim.step
            side = Dimension(axis, inside.step, len(inside), dim.stride * apart)
            starts = [*piece.starts[:axis], inside.start, *piece.starts[axis + 1 :]]
            others = [d for d in piece.dims if d.axis != axis]
            found.append(piece_of(starts, [*others, side], piece.column + number * dim.stride))
    return tuple(found)


def _crossing(a: Diagonal, b: Diagonal, shape: Shape) -> tuple[int, int] | None:
    """The axis, and the index along it, where diagonals of two affine maps meet.

    ``None`` if they do not, or along more than one axis.
    """
    inside = tuple(map(meet, a.box, b.box))
    if not all(inside):
        return None
    first = [side.start for side in inside]
    (from_a, slopes_a), (from_b, slopes_b) = (_affine(d.pieces[0], first, shape) for d in (a, b))
    apart = [
        (axis, x - y)
        for axis, (x, y, side) in enumerate(zip(slopes_a, slopes_b, inside, strict=True))
        if x != y and len(side) > 1
    ]
    if len(apart) != 1:
        return None
    axis, slope = apart[0]
    index = first[axis] + (from_b - from_a) / slope
    return (axis, int(index)) if index in inside[axis] else None


def _affine(
    piece: Piece, index: Sequence[int], shape: Shape
) -> tuple[Fraction, tuple[Fraction, ...]]:
    """The column of an element by the affine map of a piece, and the map's slopes."""
    column, slopes = Fraction(piece.column), []
    for axis, slope in enumerate(strides_of(shape)):
        side = next(iter(piece.on(axis)), Dimension(axis, 1, 1, slope))
        slopes.append(Fraction(side.stride, side.step))
        column += (index[axis] - piece.starts[axis]) * slopes[-1]
    return column, tuple(slopes)


def _index_of(column: int, diagonal: Diagonal, shape: Shape) -> int | None:
    """The element of a vector that is on a diagonal at a column, if there is one."""
    if len(shape) != 1 or len(diagonal.box[0]) < 2:
        return None
    first = diagonal.box[0].start
    (piece, *more) = diagonal.pieces
    start, (slope,) = _affine(piece, [first], shape)
    index = first + (column - start) / slope if slope and not more else Fraction(-1)
    return int(index) if index in diagonal.box[0] else None


def _sum(a: Diagonal, b: Diagonal, pieces: tuple[Piece, ...], dtype: Any) -> Diagonal:
    """The sum of two diagonals on one map."""
    if a.box == b.box and type(a.values) is type(b.values) is float:
        return Diagonal(pieces, a.box, a.values + b.values)
    box = tuple(map(_hull, a.box, b.box))
    return Diagonal(pieces, box, _added(a.within(box, dtype), b.within(box, dtype), dtype))


def _hull(a: range, b: range) -> range:
    """The smallest range that has all elements of two of them."""
    steps = [r.step for r in (a, b) if len(r) > 1]
    apart = math.gcd(*steps, a.start - b.start)
    return range(min(a.start, b.start), max(a[-1], b[-1]) + 1, max(apart, 1))


def _added(a: Any, b: Any, dtype: Any) -> Any:
    if type(a) is type(b) is float:
        return a + b
    return add.bind(*(np.asarray(x, dtype)[()] if type(x) is float else x for x in (a, b)))


def _is_on_one_map(pieces: Sequence[Piece], shape: Shape) -> bool:
    """Whether one affine map has the columns of all pieces.

    Along axes on which none of them moves it may have any slope: that of the array's elements.
    """
    first = pieces[0]
    ahead = [p.column - first.column for p in pieces]
    for axis, slope in enumerate(strides_of(shape)):
        sides = [d for p in pieces for d in p.on(axis)]
        moves = {(d.step // n, d.stride // n) for d in sides for n in [math.gcd(d.step, d.stride)]}
        if len(moves) > 1:
            return False
        step, stride = moves.pop() if moves else (1, slope)
        for i, piece in enumerate(pieces):
            number, rest = divmod(piece.starts[axis] - first.starts[axis], step)
            if rest:
                return False
            ahead[i] -= number * stride
    return not any(ahead)


# The matrix.


def entries(
    results: Sequence[Diagonals], avals: Sequence[Any], width: int, is_symmetric: bool
) -> tuple[SparsityPattern, Callable[[Any], Any]]:
    """Pattern of a matrix, and a function that gives its entries in a dtype, row by row.

    Args:
        results: The diagonals of each result.
        avals: The types of the results.
        width: The number of columns.
        is_symmetric: Whether an entry counts only if its mirror image is there.
    """
    places: list[tuple[Any, Any, Any]] = [(np.zeros(0, np.int64),) * 3]
    hidden: list[Any] = [np.zeros(0, np.int64)]
    parts: list[tuple[Diagonal, Any]] = []
    start = taken = 0
    for diagonals, aval in zip(results, avals, strict=True):
        for diagonal in diagonals:
            if isinstance(diagonal, Hidden):
                row, column = diagonal.relation.places
                hidden.append((row + start) * width + column)
                continue
            row, column = Relation(aval.shape, width, diagonal.pieces).places
            inside = _numbers(row, aval.shape, diagonal)
            places.append((row + start, column, inside + taken))
            parts.append((diagonal, aval.dtype))
            taken += math.prod(diagonal.shape)
        start += aval.size
    row, column, source = map(np.concatenate, zip(*places, strict=True))
    # Pieces of one diagonal may have elements in common, others must not.
    numbers, chosen = np.unique(row * width + column, return_index=True)
    if len(numbers) < len(row) and len(numbers) != len(np.unique(source)):
        raise NotDiagonalError
    source = source[chosen]
    if is_symmetric:
        numbers, source = _mirrored(numbers, source, np.unique(np.concatenate(hidden)), width)
    row, column = np.divmod(numbers, width)
    parts, source = _used(parts, source)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=start))])
    matrix = scipy_sparse().csr_array((np.ones(len(row), np.bool_), column, indptr), (start, width))

    def data(dtype: Any) -> Any:
        if not parts:
            return fnp.zeros(0, dtype)
        sizes = [math.prod(d.shape) for d, _ in parts]
        vectors = [
            own.type(d.values) if type(d.values) is float else fnp.reshape(d.values, (n,))
            for (d, own), n in zip(parts, sizes, strict=True)
        ]
        return in_order(vectors, sizes, source, dtype)

    return SparsityPattern.of(matrix), data


def _mirrored(numbers: Any, source: Any, hidden: Any, width: int) -> tuple[Any, Any]:
    """Numbers of the entries of a symmetric matrix that have mirror images, and their sources.

    Args:
        numbers: Row times width plus column of entries, ascending.
        source: Where these come from.
        hidden: Numbers of entries whose sums are not known, so that mirrored ones serve for them.
        width: The number of columns.
    Raises: HiddenError: If neither is known.
    """
    every = np.union1d(numbers, hidden) if len(hidden) else numbers
    row, column = np.divmod(every, width)
    mirrored = column * width + row
    is_there = _is_among(mirrored, every)
    every, mirrored = every[is_there], mirrored[is_there]
    # Entries above the diagonal serve for those below, too.
    served = np.minimum(every, mirrored)
    if len(hidden):
        is_known = ~_is_among(numbers, hidden)
        numbers, source = numbers[is_known], source[is_known]
        served = np.where(_is_among(served, numbers), served, np.maximum(every, mirrored))
        wrong = served[~_is_among(served, numbers)]
        if len(wrong):
            raise HiddenError(tuple(np.unique(np.divmod(wrong, width)).tolist()))
    return every, source[np.searchsorted(numbers, served)]


def _is_among(wanted: Any, numbers: Any) -> Any:
    """Tell which numbers are among others, which ascend."""
    places = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    return numbers[places] == wanted if len(numbers) else np.zeros(len(wanted), np.bool_)


def _used(
    parts: Sequence[tuple[Diagonal, Any]], source: Any
) -> tuple[list[tuple[Diagonal, Any]], Any]:
    """The diagonals of which elements are taken, and the numbers of these among them."""
    sizes = np.array([math.prod(d.shape) for d, _ in parts], np.int64)
    ends = np.cumsum(sizes)
    owner = np.searchsorted(ends, source, "right")
    is_used = np.zeros(len(parts), np.bool_)
    is_used[owner] = True
    skipped = np.cumsum(np.where(is_used, 0, sizes))
    kept = [part for part, used in zip(parts, is_used, strict=True) if used]
    return kept, source - skipped[owner] if len(source) else source


def _numbers(row: Any, shape: Shape, diagonal: Diagonal) -> Any:
    """Numbers of elements in the box of a diagonal, by those in the whole value."""
    if diagonal.box == whole(shape):
        return row
    index = zip(np.unravel_index(row, shape), diagonal.box, strict=True)
    inside = tuple((i - side.start) // side.step for i, side in index)
    return np.ravel_multi_index(inside, diagonal.shape)
