"""Contractions: the one place that decides how sums of products are computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from copy import copy
from string import ascii_letters
from typing import Any

import numpy as np

from funcgrad.compiler.machine import (
    CACHES,
    EVEN_PARTS,
    FEW,
    SEVERAL,
    THREAD_WORK,
    VECTOR_BYTES,
    WORD_BYTES,
)
from funcgrad.compiler.nest.bounds import bounds_of
from funcgrad.compiler.nest.builder import Builder
from funcgrad.compiler.nest.layout import (
    Operand,
    Shape,
    Uniform,
    Value,
    View,
    factored,
    is_overlapping,
    moved_axes,
    reshaped,
    whole,
)
from funcgrad.compiler.nest.nodes import Copies, Matrices, Point, Product, is_copy
from funcgrad.compiler.nest.orders import inverse, stored_order
from funcgrad.compiler.nest.strided import Letters, Strider
from funcgrad.lowering import Contraction, Reindex

_WORD = np.dtype(np.int32)
"""The dtype in which products of narrower integers are added up."""

_HALF = np.iinfo(np.int16)
"""The integers of half as many bits."""


def contracted(
    builder: Builder, form: Contraction, x: Operand, y: Operand, sliding: Iterable[str] = ()
) -> Operand:
    """A contraction, in the form that takes the fewest cycles.

    A loop nest over products of elements, a stack of products of matrices, or a strided product,
    which reads windows where they are.

    Args:
        builder: What appends nodes.
        form: The contraction.
        x: Its first operand.
        y: The second one.
        sliding: Letters of positions of windows.
    """
    contractor = Contractor(builder, form, x, y)
    is_by_elements = contractor.is_by_elements or (not sliding and contractor.is_of_rows)
    if x.dtype.kind in "biu" and not contractor.is_by_elements:
        is_apart = sliding or builder.graph.is_general or (is_by_elements and x.dtype.itemsize == 1)
        found = None if is_apart else _by_pairs(contractor)
        if found is None and not is_by_elements and x.dtype.itemsize < WORD_BYTES:
            found = contracted(builder, form, _as_words(builder, x), _as_words(builder, y), sliding)
        if found is not None:
            return found if found.dtype == x.dtype else whole(builder.copy(found, x.dtype))
    if sliding:
        strider = None if contractor.has_matrices else Strider(builder, form, x, y, sliding)
        if strider is not None and strider.is_possible:
            return strider.result()
    elif not is_by_elements:
        product = _unfolded(builder, form, x, y)
        if product is not None:
            return product
    return contractor.result()


def _as_words(builder: Builder, x: Operand) -> Operand:
    """Integers with 32 bits: sums of these wrap around as their low bits do.

    The sum of flags counts those that are set.
    """
    return x if x.dtype == _WORD else whole(builder.copy(x, _WORD))


def _by_pairs(contractor: Contractor) -> Operand | None:
    """A contraction of integers of which two fit into 32 bits, as one of pairs of terms.

    An instruction multiplies both numbers of a pair, and adds the products. They are neighbours in
    the sum; the last term of an odd number of terms is added to the result.
    """
    builder, form, operands = contractor.builder, contractor.form, contractor.operands
    if min(map(contractor.size, (contractor.rows, contractor.columns))) == 1:
        return None
    bounds = [*filter(None, map(bounds_of, operands))]
    sizes = [max(-low, high + 1) for low, high in bounds]
    letter = max(contractor.summed, key=contractor.lengths.__getitem__)
    n = contractor.lengths[letter]
    if n <= SEVERAL or len(sizes) < 2 or max(sizes) > -_HALF.min:
        return None
    is_long = operands[0].dtype.itemsize > WORD_BYTES
    if is_long and math.prod(sizes) * contractor.size(contractor.summed) > np.iinfo(_WORD).max:
        return None
    sides = [*zip((form.lhs, form.rhs), operands, strict=True)]
    pairs = Contractor(builder, form, *(_pairs(builder, x, own.index(letter)) for own, x in sides))
    pairs.is_of_pairs = True
    found = pairs.result()
    if n % 2 == 0:
        return found
    x, y = (_as_words(builder, _every(z, own.index(letter), n - 1, 0)) for own, z in sides)
    lhs, rhs = (own.replace(letter, "") for own, _ in sides)
    rest = contracted(builder, Contraction(lhs, rhs, form.out), x, y)
    return builder.result(Point((found, rest), (Value(found.shape, _WORD),), "{0} + {1}"))


def _pairs(builder: Builder, x: Operand, axis: int) -> View:
    """Neighbours along an axis as the halves of integers."""
    halves = tuple(_every(x, axis, k, 2) for k in range(2))
    pair = f"(i32({{0}}) & {np.iinfo(np.uint16).max}) | (i32({{1}}) << {_HALF.bits})"
    return builder.result(Point(halves, (Value(halves[0].shape, _WORD),), pair))


def _every(x: Operand, axis: int, start: int, step: int) -> Operand:
    """Whole steps along an axis, from an element on; only this element, without the axis, for 0."""
    axes = [a for a in range(len(x.shape)) if step or a != axis]
    starts = tuple(start * (a == axis) for a in range(len(x.shape)))
    steps = tuple(step if a == axis else 1 for a in axes)
    shape = tuple(x.shape[a] // (step if a == axis else 1) for a in axes)
    return x.reindexed(Reindex(tuple(axes), starts, steps), shape)


def strided_cycles(
    builder: Builder, form: Contraction, x: Operand, y: Operand, sliding: Iterable[str]
) -> float:
    """About how many cycles a strided product takes; 0 for what is none."""
    if isinstance(y, Uniform) or Contractor(builder, form, x, y).has_matrices:
        return 0.0
    strider = Strider(builder, form, x, y, sliding)
    return strider.choice.cost if strider.is_possible and strider.choice is not None else 0.0


def _unfolded(builder: Builder, form: Contraction, x: Operand, y: Operand) -> Operand | None:
    """A contraction of copied windows as one of the windows where they are, if there are any."""
    for own, other, one, two in ((form.lhs, form.rhs, x, y), (form.rhs, form.lhs, y, x)):
        found = _copied_windows(one)
        if found is None or not isinstance(two, View):
            continue
        windows, shapes = found
        fresh = iter(c for c in ascii_letters if c not in form.lhs + form.rhs)
        letters = {
            c: c if len(shape) == 1 else "".join(next(fresh) for _ in shape)
            for c, shape in zip(own, shapes, strict=True)
        }
        by_letter = dict(zip(own, shapes, strict=True))
        split = two.divided([by_letter.get(c, (n,)) for c, n in zip(other, two.shape, strict=True)])
        lhs, rhs, out = ("".join(letters.get(c, c) for c in x) for x in (own, other, form.out))
        strider = Strider(builder, Contraction(lhs, rhs, out), windows, split, ())
        if strider.is_possible:
            lengths = dict(zip(own + other, one.shape + two.shape, strict=True))
            return builder.reshaped(strider.result(), tuple(lengths[c] for c in form.out))
    return None


def _copied_windows(x: Operand) -> tuple[View, list[Shape]] | None:
    """The windows that an operand is a copy of, and the axes that each of its axes joins."""
    maker = x.value.maker if isinstance(x, View) else None
    if not isinstance(x, View) or maker is None or not is_copy(maker):
        return None
    (windows,) = maker.operands
    found = factored(x)
    if found is None or not isinstance(windows, View) or not is_overlapping(windows):
        return None
    lengths, form = found
    return windows.reindexed(form, sum(lengths, ())), lengths


class Contractor(Letters):
    """A contraction as a stack of matrix products, or as a sum of elementwise products.

    Attributes:
        side: The letter of the long side of a narrow constant matrix that is laid out along it: its
            product with a vector has this side, or one with rows that lie in memory sums over it.
            In the first case, columns are added up in their order, as in the product of two
            matrices; in the second, elements are, of one row or many. So a batch and a single call
            have the same bits.
        is_of_pairs: Whether elements are pairs of integers, each of which are two terms.
        n_added: How many letters of the batch, from the first on, products are added up over.
    """

    side: str | None = None
    is_of_pairs = False
    n_added = 0

    def __init__(self, builder: Builder, form: Contraction, x: Operand, y: Operand) -> None:
        super().__init__(builder, form, x, y)
        if len(self.summed) != 1 or self.batch:
            return
        owns = form.lhs, form.rhs
        for is_rhs, matrix in enumerate(self.operands):
            own, other, letters = owns[is_rhs], self.operands[1 - is_rhs], owns[1 - is_rhs]
            if not isinstance(matrix, View) or not _is_constant(matrix) or len(own) != 2:
                continue
            narrow, side = sorted(own, key=self.lengths.__getitem__)
            is_summed = self.summed == [side]
            if is_summed:
                is_near = isinstance(other, View) and self._stride(other, letters, [side]) == 1
                is_narrow = self.lengths[narrow] <= FEW and is_near
            else:
                is_narrow = self.lengths[narrow] <= SEVERAL and len(letters) == 1
            if not is_narrow or self.lengths[side] <= SEVERAL:
                continue
            self.side = side
            if self._stride(matrix, own, [side]) != 1:
                transposed = builder.laid_out(
                    matrix.permuted([own.index(c) for c in (narrow, side)])
                )
                sides = (form.lhs, narrow + side) if is_rhs else (narrow + side, form.rhs)
                self.form = Contraction(*sides, form.out)
                self.operands = (x, transposed) if is_rhs else (transposed, y)
            if not is_summed:
                self.batch, self.rows, self.columns = [side], [], []
            return

    @property
    def _is_along_side(self) -> bool:
        """Whether it sums along the long side of a narrow constant matrix."""
        return self.side is not None and not self.batch

    @property
    def is_by_elements(self) -> bool:
        """Whether there is nothing that a matrix product would gain."""
        if self._is_along_side or not self.summed or not (self.rows or self.columns):
            return True
        return self._is_matrix_vector

    @property
    def is_of_rows(self) -> bool:
        """Whether rows of integers are multiplied with numbers, which tiles do not make faster.

        A vector of bytes has as many products as pairs have, without any copies; those of 64 bits
        take several instructions each, so that loads are not what limits them.
        """
        dtype = self.operands[0].dtype
        if dtype.kind not in "iu" or 1 < dtype.itemsize <= WORD_BYTES:
            return False
        last = self._contiguous
        return last is not None and self.lengths[last] >= VECTOR_BYTES

    @property
    def has_matrices(self) -> bool:
        """Whether both operands are matrices where they are."""
        if self.is_by_elements:
            return False
        sides = (self.form.lhs, self.rows, self.summed), (self.form.rhs, self.summed, self.columns)
        return all(
            isinstance(x, View) and self._layout(x, *side) is not None
            for x, side in zip(self.operands, sides, strict=True)
        )

    def result(self) -> Operand:
        form, (x, y) = self.form, self.operands
        if self.side is not None and not self._is_along_side:
            return self._written_out()
        if self.is_by_elements or self.is_of_rows:
            return self._by_elements()
        if self._is_tiny:
            return self._written_out()
        is_asked = form.out == "".join(self.batch + self.rows + self.columns)
        if self._is_of_columns or (
            not is_asked and form.out == "".join(self.batch + self.columns + self.rows)
        ):
            # The transposed product has the order that is asked for, or goes along rows.
            self.rows, self.columns = self.columns, self.rows
            sides = form.rhs, y, form.lhs, x
        else:
            sides = form.lhs, x, form.rhs, y
        return self._best(*sides)._product(*sides, form.out)

    @property
    def _is_of_columns(self) -> bool:
        """Whether a vector is multiplied with columns that lie side by side, as rows do."""
        x = self.operands[0]
        if not isinstance(x, View) or self.size(self.columns) != 1 or self.size(self.rows) == 1:
            return False
        return self._stride(x, self.form.lhs, self.rows) == 1

    @property
    def _is_matrix_vector(self) -> bool:
        """Whether it is one pass over a matrix whose rows are multiplied with a vector.

        Memory is the limit then: sums along rows that lie in memory as they are read need no tiles,
        and share their kernel with what comes before and after. So need those of a matrix that
        would have to be copied first, and of a large one that would have to be stored, as multiples
        of a matrix. A matrix of few numbers is left to kernels that unroll its product.
        """
        if min(self.size(self.rows), self.size(self.columns)) > 1:
            return False
        # The operand that is multiplied with a vector, and the letters of its axes.
        is_rhs = self.size(self.columns) != 1
        matrix, own = self.operands[is_rhs], (self.form.lhs, self.form.rhs)[is_rhs]
        if not isinstance(matrix, View):
            return False
        if math.prod(matrix.shape) <= SEVERAL:
            return False
        step = self._stride(matrix, own, self.summed)
        if step == 1 or step == self.size(self.rows + self.columns) <= FEW:
            return True
        if is_overlapping(matrix) or self._is_tiny:
            return False
        maker, nbytes = matrix.value.maker, math.prod(matrix.shape) * matrix.dtype.itemsize
        if type(maker) is Point and not maker.is_expensive and nbytes > CACHES[1][0]:
            return self._contiguous is not None
        best = self._best(self.form.lhs, self.operands[0], self.form.rhs, self.operands[1])
        sides = (best.summed, best.columns) if is_rhs else (best.rows, best.summed)
        return best._layout(matrix, own, *sides) is None

    @property
    def _is_tiny(self) -> bool:
        """Whether it is many products of matrices of a few rows and columns."""
        sizes = map(self.size, (self.rows, self.columns, self.summed))
        is_real = self.operands[0].dtype.kind != "c"
        return is_real and self.size(self.batch) >= SEVERAL and all(1 <= n <= FEW for n in sizes)

    def _written_out(self) -> Operand:
        """Every element of a product by itself: the stack makes the loop.

        A chain of multiplications with additions, as in `loops.library.tiles`.
        """
        (x, y), form = self.operands, self.form
        stack, rank = self._shape(self.batch), len(self.batch)
        value = Value(self._shape([*self.batch, *self.rows, *self.columns]), x.dtype)
        terms = [*np.ndindex(self._shape(self.summed))]
        expr = "{0} * {1}"
        for k in range(1, len(terms)):
            first, second = f"{{{2 * k}}}", f"{{{2 * k + 1}}}"
            is_float = x.dtype.kind == "f"
            expr = f"fma({first}, {second}, {expr})" if is_float else f"{first} * {second} + {expr}"
        parts: list[Operand] = []
        places: list[View] = []
        for at in np.ndindex(value.shape[rank:]):
            kept = dict(zip([*self.rows, *self.columns], at, strict=True))
            factors: list[Operand] = []
            for term in terms:
                index = kept | dict(zip(self.summed, term, strict=True))
                factors += [self._element(x, form.lhs, index), self._element(y, form.rhs, index)]
            point = Point(tuple(factors), (Value(stack, x.dtype),), expr)
            parts.append(self.builder.result(point))
            cut = Reindex(tuple(range(rank)), (0,) * rank + at, (1,) * rank)
            places.append(whole(value).reindexed(cut, stack))
        if value.shape == stack:
            return parts[0]
        self.builder.add(Copies(tuple(parts), (value,), tuple(places)))
        strides = dict(zip([*self.batch, *self.rows, *self.columns], value.strides, strict=True))
        return View(value, self._shape(form.out), tuple(strides[c] for c in form.out))

    def _element(self, x: Operand, own: str, index: dict[str, int]) -> Operand:
        """The elements of an operand at an index, one for each product."""
        axes = tuple(own.index(c) if c in own else None for c in self.batch)
        starts = tuple(index.get(c, 0) for c in own)
        return x.reindexed(Reindex(axes, starts, (1,) * len(axes)), self._shape(self.batch))

    def _shape(self, labels: Iterable[str]) -> Shape:
        return tuple(self.lengths[c] for c in labels)

    def _by_elements(self) -> Operand:
        labels = [*self.form.out, *self.summed]
        last = self._contiguous
        if last is not None:
            labels.remove(last)
            labels.append(last)
        space, pairs = (
            self._shape(labels),
            zip(self.operands, (self.form.lhs, self.form.rhs), strict=True),
        )
        factors = tuple(_spread(x, own, "".join(labels), space) for x, own in pairs)
        out = Value(space, factors[0].dtype)
        product = self.builder.result(Point(factors, (out,), "{0} * {1}"))
        if not self.summed:
            return product
        axes = tuple(labels.index(c) for c in self.summed)
        kept = [c for c in labels if c not in self.summed]
        order = moved_axes([kept.index(c) for c in self.form.out])
        sums = whole(self.builder.summed(product, axes))
        return sums.reindexed(order, self._shape(self.form.out))

    @property
    def _contiguous(self) -> str | None:
        """The letter of the result along which rows are multiplied with numbers and added up.

        Of a product of matrices for which there are no tiles, or of many terms: these are then
        vectors. Nothing where terms that are added up lie side by side, or the result has no rows.
        """
        if self._is_along_side:
            return None
        if not (self.rows or self.columns) or self.size(self.summed) <= SEVERAL:
            return None
        owns = self.form.lhs, self.form.rhs
        views = zip(self.operands, owns, strict=True)
        pairs = [(_read_for(x), own) for x, own in views if isinstance(x, View)]

        def is_row(c: str) -> bool:
            return all(self._stride(x, own, [c]) in (0, 1) for x, own in pairs)

        if not self.summed or is_row(self.summed[-1]):
            return None
        return next((c for c in reversed(self.form.out) if self.lengths[c] > 1 and is_row(c)), None)

    def _product(self, lhs: str, x: Operand, rhs: str, y: Operand, out: str) -> Operand:
        a = self._matrices(x, lhs, self.rows, self.summed)
        b = self._matrices(y, rhs, self.summed, self.columns)
        order = [*self.batch, *self.rows, *self.columns]
        value = Value(self._shape(order), x.dtype)
        self.builder.add(Product((a, b), (value,), is_of_pairs=self.is_of_pairs))
        if self.n_added:
            order = order[self.n_added :]
            value = self.builder.summed(whole(value), tuple(range(self.n_added)))
        strides = dict(zip(order, value.strides, strict=True))
        return View(value, self._shape(out), tuple(strides[c] for c in out))

    def _best(self, lhs: str, x: Operand, rhs: str, y: Operand) -> Contractor:
        """The stack of products for which the fewest elements have to be copied.

        An operand whose rows, columns or terms do not lie in memory as a matrix may still be a
        stack of matrices: axes of it count products then, in each of which the other operand is
        the same, or which are added up.
        """
        best, least = self, self._copied(lhs, x, rhs, y)
        for other in self._stacks() if least else ():
            cost = 2 * other._copied(lhs, x, rhs, y)
            if other.n_added:
                cost += 4 * self.size([*other.batch, *other.rows, *other.columns])
            work = self.size([*other.rows, *other.columns, *other.summed])
            if cost < least and work >= THREAD_WORK // EVEN_PARTS:
                best, least = other, cost
        return best

    def _stacks(self) -> Iterator[Contractor]:
        """The same with some axes as those of stacks."""
        batch, rows, columns, summed = self.batch, self.rows, self.columns, self.summed
        for n in range(1, len(rows) + 1):
            yield self._with(batch=[*batch, *rows[:n]], rows=rows[n:])
        for n in range(1, len(columns) + 1):
            yield self._with(batch=[*batch, *columns[:n]], columns=columns[n:])
        for n in range(1, len(summed)):
            yield self._with(batch=[*summed[:n], *batch], summed=summed[n:], n_added=n)

    def _with(self, **roles: Any) -> Contractor:
        other = copy(self)
        vars(other).update(roles)
        return other

    def _copied(self, lhs: str, x: Operand, rhs: str, y: Operand) -> int:
        """How many elements have to be copied."""
        sides = (x, lhs, self.rows, self.summed), (y, rhs, self.summed, self.columns)
        return sum(
            math.prod(operand.shape)
            for operand, own, rows, columns in sides
            if not isinstance(operand, View) or self._layout(operand, own, rows, columns) is None
        )

    def _matrices(self, x: Operand, own: str, rows: list[str], columns: list[str]) -> View:
        """An operand as a stack of matrices; copied if no strides describe it."""
        found = self._layout(x, own, rows, columns) if isinstance(x, View) else None
        if found is None:
            labels = [*(c for c in self.batch if c in own), *rows, *columns]
            ordered = _spread(x, own, "".join(labels), self._shape(labels))
            copy = whole(self.builder.copy(ordered))
            found = self._layout(copy, "".join(labels), rows, columns)
        assert found is not None  # contiguous matrices
        return found

    def _layout(self, x: View, own: str, rows: list[str], columns: list[str]) -> View | None:
        """A view as a stack of matrices that BLAS takes, if it is one."""
        parts = self.batch, rows, columns
        shape = tuple(map(self.size, parts))
        if 0 in x.shape:
            return View(x.value, shape, (0, 0, 0))
        strides = tuple(self._stride(x, own, labels) for labels in parts)
        if None in strides:
            return None
        found = View(x.value, shape, strides, x.offset)  # type: ignore[arg-type]
        return None if Matrices.of(found) is None else found

    def _stride(self, x: View, own: str, labels: list[str]) -> int | None:
        """The stride of several axes collapsed into one, or ``None`` if there is none."""
        strides = tuple(x.strides[own.index(c)] if c in own else 0 for c in labels)
        axes = x.restrided(self._shape(labels), strides, x.offset)
        joined = reshaped(axes, (self.size(labels),))
        return None if joined is None else joined.strides[0]


def _read_for(x: View) -> View:
    """The array that is read where a function of its elements is; else the view itself."""
    maker, order = x.value.maker, stored_order(x)
    if type(maker) is not Point or order is None:
        return x
    arrays = [y for y in maker.operands if isinstance(y, View) and not y.is_repeated]
    places = inverse(order)
    kinds = {y.strides: y for y in arrays if y.shape == x.permuted(order).shape}
    return next(iter(kinds.values())).permuted(places) if len(kinds) == 1 else x


def _is_constant(matrix: View) -> bool:
    """Whether a matrix is one of real constants that is cheap to lay out again."""
    return (
        matrix.value.array is not None
        and matrix.dtype.kind == "f"
        and math.prod(matrix.shape) * matrix.dtype.itemsize <= CACHES[1][0]
    )


def _spread(x: Operand, own: str, labels: str, space: Shape) -> Operand:
    """An operand with axes ``own`` over the axes ``labels``."""
    return x.reindexed(moved_axes([own.index(c) if c in own else None for c in labels]), space)
