"""Wide bands of sparse derivatives: one sum of products for all entries of a row.

Windows that slide along a vector, and sums of its slices, make each element depend on adjacent
columns. The coefficients of element ``j`` are sums over a window of some array, with factors that
are the same for all elements::

    coefficient[j, d] = sum over k of source[j + low + k] * taps[k, d]     of column j + first + d

Operations on elements change the array, windows and slices the numbers. So the entries of a Hessian
of windowed sums are one product of windows with a small matrix, row by row as they are stored.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad import lowering as forms
from funcgrad.base.records import dataclass
from funcgrad.core.program import Atom, Equation, Literal
from funcgrad.patterns.diagonals import Diagonal, NotDiagonalError, Step, whole, zeros_of
from funcgrad.patterns.known import Scope, form_of
from funcgrad.patterns.sparsity_pattern import SparsityPattern
from funcgrad.primitives.convolution import Convolution
from funcgrad.primitives.shape import Pad

MOST_EMPTY = 1.25
"""How many places a band may have for each entry of the matrix."""

MOST_TABLES = 8
"""Sums over windows, each of which is computed for all places; of more, products with seeds take
less time."""


@dataclass(frozen=True, eq=False)
class Term:
    """A sum over windows of an array, times factors for each column.

    Args:
        source: The array, with zeros around; ``None`` for ones at all elements of the value.
        low: Where the window of element 0 begins.
        taps: For each place in the window, the factors of all columns of an element.
        rows: Factors of all elements, ``None`` for ones.
        columns: Factors of all columns of the matrix, ``None`` for ones.
    """

    source: Any
    low: int
    taps: Any
    rows: Any = None
    columns: Any = None

    @property
    def is_alone(self) -> bool:
        """Whether windows have one place."""
        return len(self.taps) == 1

    @property
    def place(self) -> int | None:
        """The place of the only column, of which each element has one coefficient."""
        (places,) = np.nonzero(self.taps[0])
        is_one = self.is_alone and self.columns is None and len(places) == 1
        return int(places[0]) if is_one else None

    def scaled(self, size: int, operation: Callable[[Any], Any]) -> Term:
        """The term after an operation on its elements, which maps coefficients, or 1.0."""
        if not self.is_alone:
            return replace(self, rows=operation(1.0 if self.rows is None else self.rows))
        values = 1.0 if self.source is None else _shifted(self.source, self.low, size)
        return replace(self, source=operation(values), low=0)

    def part(self, start: int, size: int) -> Term:
        """The term of some elements, from one on."""
        rows = None if self.rows is None else _shifted(self.rows, start, size)
        return replace(self, low=0 if self.source is None else self.low + start, rows=rows)

    def closed(self, size: int) -> Term:
        """The same with sums that are zero before and behind all elements."""
        ones = np.ones(size, self.taps.dtype)
        if self.is_alone:
            source = ones if self.source is None else _shifted(self.source, self.low, size)
            return replace(self, source=source, low=0)
        length = self.source.shape[0]
        is_inside = -self.low - (len(self.taps) - 1) >= 0 and length - self.low <= size
        return self if is_inside or self.rows is not None else replace(self, rows=ones)

    def by_columns(self, size: int, first: int, width: int) -> Term:
        """The term of one column for each element, by factors of columns."""
        if self.source is None and first <= 0 and first + size >= width:
            return self
        factors = _shifted(self.closed(size).source, -first, width)
        columns = factors if self.columns is None else self.columns * factors
        return Term(None, 0, self.taps, None, columns)

    def convolved(self, taps: Any, steps: Any, low: int) -> Term:
        """The term of sums over windows of elements: steps of the taps, and where they begin."""
        if self.rows is not None:
            raise NotDiagonalError
        count, width = self.taps.shape
        breadth, is_same = int(steps.max()), self.source is None
        found = np.zeros((1 if is_same else count + breadth, width + breadth), self.taps.dtype)
        for tap, step in zip(taps, steps, strict=True):
            k = 0 if is_same else step
            found[k : k + count, step : step + width] += tap * self.taps
        return replace(self, low=0 if is_same else self.low + low, taps=found)

    def column(self, size: int, dtype: Any) -> Any:
        """The coefficients of the only column."""
        factor = self.taps[0, self.place].astype(dtype)
        if self.source is None:
            found = fnp.broadcast_to(factor, (size,))
        else:
            source = _shifted(self.source, self.low, size)
            found = source if factor == 1 else factor * source
        return found if self.rows is None else found * self.rows

    @property
    def values(self) -> list[Any]:
        """Arrays that are multiplied by zeros, where a column does not depend on a place."""
        is_full = self.taps.all() or self.place is not None
        return (
            [] if is_full else [x for x in (self.source, self.rows, self.columns) if x is not None]
        )

    def by_place(self, size: int, first: int, dtype: Any) -> Any:
        """The table, place by place of the windows, without products with zeros.

        So entries stay zero beside values that are not finite, on which they do not depend.
        """
        found = fnp.zeros((size, self.taps.shape[1]), dtype)
        for k, taps in enumerate(self.taps):
            term = replace(self, low=self.low + k, taps=taps[None])
            found += fnp.where(taps != 0, term.table(size, first, dtype), 0)
        return found

    def table(self, size: int, first: int, dtype: Any) -> Any:
        """The coefficients, a row for each element."""
        taps = self.taps.astype(dtype)
        slide = forms.Slide(size, len(taps), low=-self.low)
        if self.source is None:
            found = fnp.broadcast_to(taps, (size, taps.shape[1]))
        else:
            found = Convolution("x", "xo", "xo", (("x", slide),)).bind(self.source, taps)
        if self.rows is not None:
            found = found * fnp.reshape(self.rows, (size, 1))
        if self.columns is not None:
            places = first + np.add.outer(np.arange(size), np.arange(taps.shape[1]))
            found = found * fnp.take(self.columns, places, mode="clip")
        return found


@dataclass(frozen=True)
class Band:
    """Dependence of a vector on adjacent columns.

    Args:
        size: Number of elements.
        first: The first column of element 0.
        width: The number of columns of the matrix.
        terms: The coefficients are their sum.
    """

    size: int
    first: int
    width: int
    terms: tuple[Term, ...]

    @property
    def breadth(self) -> int:
        """The number of columns of an element."""
        return int(self.terms[0].taps.shape[1])

    @property
    def is_by_columns(self) -> bool:
        """Whether the terms have one column each."""
        return all(t.place is not None for t in self.terms)

    def part(self, start: int, size: int) -> Band:
        """The band of some elements of the vector, from one on."""
        terms = tuple(t.part(start, size) for t in self.terms)
        return replace(self, size=size, first=self.first + start, terms=terms)

    def closed(self) -> Band:
        """The same with sums that are zero before and behind the vector's elements."""
        if self.breadth == len(self.terms) == 1:
            term = self.terms[0].by_columns(self.size, self.first, self.width)
            return replace(self, terms=(term,))
        return replace(self, terms=tuple(t.closed(self.size) for t in self.terms))

    def convolved(self, taps: Any, slide: forms.Slide) -> Band:
        """The band of sums over windows of the vector, with known factors."""
        steps = slide.dilation * np.arange(len(taps))
        low = int(steps.min()) - slide.low
        terms = (t.convolved(taps, steps - steps.min(), low) for t in self.closed().terms)
        return Band(slide.windows, self.first + low, self.width, tuple(terms))

    @property
    def values(self) -> list[Any]:
        """Arrays that are multiplied by zeros."""
        return list({id(x): x for t in self.terms for x in t.values}.values())

    def table(self, dtype: Any, is_finite: bool) -> Any:
        """The coefficients, a row for each element.

        Args:
            dtype: Their dtype.
            is_finite: Whether all `values` are.
        """
        if self.is_by_columns:
            return self._columns(dtype)
        table = Term.table if is_finite else Term.by_place
        tables = (table(t, self.size, self.first, dtype) for t in self.terms)
        return functools.reduce(operator.add, tables)

    def _columns(self, dtype: Any) -> Any:
        """Columns of terms that have one column each."""
        found: dict[int | None, Any] = {}
        for t in self.terms:
            own = t.column(self.size, dtype)
            found[t.place] = found[t.place] + own if t.place in found else own
        zeros = fnp.zeros(self.size, dtype)
        return fnp.stack([found.get(place, zeros) for place in range(self.breadth)], 1)


def _shifted(x: Any, start: int, size: int) -> Any:
    """The elements of a vector from an index on, with zeros around."""
    n = x.shape[0]
    if (start, size) == (0, n):
        return x
    return Pad((-start,), (start + size - n,), (0,)).bind(x, np.zeros((), x.dtype)[()])


def _sum(a: Band, b: Band) -> Band:
    """The sum of bands of one vector."""
    first = min(a.first, b.first)
    last = max(a.first + a.breadth, b.first + b.breadth)
    found: list[Term] = []
    for x in (a, b):
        for t in x.terms:
            behind = last - x.first - x.breadth
            term = replace(t, taps=np.pad(t.taps, ((0, 0), (x.first - first, behind))))
            sums = ((i, _joined(own, term, a.size)) for i, own in enumerate(found))
            i, joined = next(((i, t) for i, t in sums if t is not None), (len(found), term))
            found[i : i + 1] = [joined]
    return replace(a, first=first, terms=tuple(found))


def _joined(a: Term, b: Term, size: int) -> Term | None:
    """The sum of two terms as one of the same array, or of the sum of both arrays."""
    if a.rows is not b.rows or a.columns is not b.columns:
        return None
    if a.source is b.source:
        low = min(a.low, b.low)
        high = max(t.low + len(t.taps) for t in (a, b))
        taps = np.zeros((high - low, a.taps.shape[1]), a.taps.dtype)
        for t in (a, b):
            taps[t.low - low : t.low - low + len(t.taps)] += t.taps
        return replace(a, low=low, taps=taps)
    if not (a.is_alone and b.is_alone and a.taps.any()):
        return None
    place = int(np.abs(a.taps).argmax())
    ratio = b.taps.flat[place] / a.taps.flat[place]
    if (b.taps != ratio * a.taps).any():
        return None
    own, other = a.closed(size).source, b.closed(size).source
    return replace(a, source=own + (other if ratio == 1 else ratio * other), low=0)


def push_band(scope: Scope, values: Sequence[Any], given: Sequence[Band | None]) -> list[Any]:
    """Bands of the results of a program that is linear in vectors with bands.

    Args:
        scope: The program, and what is known of its inputs.
        values: The inputs that have values; anything for the others.
        given: The band of each input, ``None`` for those with values.
    Raises: NotDiagonalError: If a value has none.
    """
    program = scope.program
    found: dict[Atom, Band] = {a: b for a, b in zip(program.inputs, given, strict=True) if b}
    known: dict[Atom, Any] = dict(program.constants)
    known.update((a, x) for a, x in zip(program.inputs, values, strict=True) if a not in found)
    for equation in program.equations:
        bands = [found.get(a) for a in equation.inputs]
        args = [
            a.value if isinstance(a, Literal) else known[a] if a in known else zeros_of(a.aval)
            for a in equation.inputs
        ]
        if not any(bands):
            outs = equation.primitive.bind(*args)
            listed = outs if equation.primitive.multiple_results else [outs]
            known.update(zip(equation.outputs, listed, strict=True))
            continue
        form = form_of(equation)
        if isinstance(form, forms.Call) and not equation.primitive.is_effectful:
            results = push_band(scope.callee(form.program, equation.inputs), args, bands)
        else:
            results = [_image(equation, form, scope, args, bands)]
        found.update((v, b) for v, b in zip(equation.outputs, results, strict=True) if b)
    return [found.get(a) for a in program.outputs]


def _image(
    equation: Equation, form: Any, scope: Scope, args: Sequence[Any], bands: Sequence[Band | None]
) -> Band | None:
    """The band of the only result of an equation."""
    width = next(b.width for b in bands if b)
    step = Step(equation, form, scope, args, [b is not None for b in bands], width)
    if len(step.aval.shape) != 1:
        raise NotDiagonalError
    total: Band | None = None
    for k, band in enumerate(bands):
        if band is not None and not scope.is_zero(equation, k):
            image = _through(step, form, scope, k, band)
            total = image if total is None else _sum(total, image)
    return total


def _through(step: Step, form: Any, scope: Scope, k: int, band: Band) -> Band:
    """The band of a result by one operand."""
    size = step.aval.shape[0]
    if step.primitive.is_elementwise and size == band.size:
        return _by_element(step, k, band)
    if isinstance(form, forms.Reshape):
        return band
    if isinstance(form, forms.Reindex) and form.axes == (0,) and form.steps == (1,):
        return band.part(form.starts[0], size)
    if isinstance(form, forms.Assemble) and k < len(form.pieces):
        piece = form.pieces[k]
        if piece.steps != (1,):
            raise NotDiagonalError
        inside = band.part(piece.lows[0], piece.sizes[0]).closed()
        return inside.part(-piece.starts[0], size)
    if isinstance(form, forms.Contraction) and len(form.slides) == 1 and k == 0:
        ((_, slide),) = form.slides
        taps = scope.value(step.equation.inputs[1])
        if taps is not None and taps.ndim == 1 and slide.stride == slide.base == 1:
            return band.convolved(taps, slide)
    raise NotDiagonalError


def _by_element(step: Step, k: int, band: Band) -> Band:
    """The band after an operation on elements."""

    def applied(values: Any) -> Any:
        return step.by_element(k, Diagonal((), whole((band.size,)), values))

    one = applied(1.0)
    if type(one) is float:
        return replace(band, terms=tuple(replace(t, taps=one * t.taps) for t in band.terms))
    return replace(band, terms=tuple(t.scaled(band.size, applied) for t in band.terms))


def unit_band(size: int, width: int, column: int, dtype: Any) -> Band:
    """The band of a vector whose elements are columns, from one on."""
    return Band(size, column, width, (Term(None, 0, np.ones((1, 1), dtype)),))


def band_entries(band: Band, pattern: SparsityPattern) -> Callable[[Any], Any] | None:
    """A function for the entries of a matrix in a dtype, row by row, if it fills its band.

    Args:
        band: The band.
        pattern: Where the matrix has entries.
    """
    matrix = pattern.matrix
    if not matrix.nnz or band.size * band.breadth > MOST_EMPTY * matrix.nnz:
        return None
    if not band.is_by_columns and len(band.terms) > MOST_TABLES:
        return None
    lengths = np.diff(matrix.indptr)
    row = np.repeat(np.arange(band.size), lengths)
    place = matrix.indices - row - band.first
    assert not len(place) or (place.min() >= 0 and place.max() < band.breadth)
    source = row * band.breadth + place
    full = np.flatnonzero(lengths == band.breadth)
    a, b = (int(full[0]), int(full[-1]) + 1) if len(full) else (0, 0)
    if b - a > len(full):
        a, b = 0, 0

    def data(dtype: Any) -> Any:
        are_finite = [fnp.all(fnp.isfinite(x)) for x in band.values]
        if not are_finite:
            return entries(dtype, True)
        is_finite = functools.reduce(operator.and_, are_finite)
        return lax.cond(is_finite, lambda: entries(dtype, True), lambda: entries(dtype, False))

    def entries(dtype: Any, is_finite: bool) -> Any:
        # Rows that are full are computed where they belong: those around have tables of their own.
        spans = ((0, a), (a, b), (b, band.size))
        return fnp.concatenate([part(i, j, dtype, is_finite) for i, j in spans if i < j])

    def part(start: int, stop: int, dtype: Any, is_finite: bool) -> Any:
        table = band.part(start, stop - start).table(dtype, is_finite)
        flat = fnp.reshape(table, (table.size,))
        places = source[matrix.indptr[start] : matrix.indptr[stop]] - start * band.breadth
        return flat if len(places) == table.size else fnp.take(flat, places, mode="clip")

    return data
