"""Products of sparse matrices with vectors and dense matrices.

Where entries stand is constant (a `Pattern`), what they are is constant too (`MatrixProduct`) or an
argument (`SparseProduct`, with `SampledProduct` for the derivative with respect to it). The three
are closed under differentiation, transposition and batching.

Evaluated by SciPy; compiled, matrices of few diagonals become sums of shifted products, those of
rows of similar lengths are padded to one length, other small ones add entry by entry, and other
large ones are left to SciPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np

from funcgrad.base.forking import cached_property
from funcgrad.base.imports import load
from funcgrad.core.avals import Shape, ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value, is_linear
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import Extern, Form
from funcgrad.primitives import shape as s
from funcgrad.primitives.contraction import bilinear_jvp
from funcgrad.primitives.elementwise import add, mul
from funcgrad.primitives.families import Recipe, linear_jvp, shape_of
from funcgrad.primitives.indexing import Gather, ScatterAdd

T = TypeVar("T")

MAX_DIAGONALS = 24
LEAST_FILLED = 0.8
"""A matrix of diagonals has few of them, with entries nearly everywhere."""
MOST_PADDED = 1.5
"""How many entries padded rows may have for each that there is."""
SMALL = 1 << 14
"""Entries up to which adding one by one is better than calling SciPy."""


def scipy_sparse() -> Any:
    """SciPy's sparse matrices, loaded for the first of them: it takes as long as all of ours."""
    return load("scipy.sparse")


_OWNING = ("asformat", "eliminate_zeros", "resize", "sort_indices", "sum_duplicates", "transpose")
"""Methods of matrices that write to the arrays of places, or return them."""


@cache
def _matrix_class() -> Any:
    """SciPy's class of matrices, for those that share the arrays of their places.

    They are read-only, and copied by the first method that needs arrays of its own: copying them
    for each matrix takes as long as computing its entries.
    """
    plain = scipy_sparse().csr_array

    def own(self: Any) -> None:
        if not self.indices.flags.writeable:
            self.indices, self.indptr = self.indices.copy(), self.indptr.copy()

    def owning(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            own(self)
            return method(self, *args, **kwargs)

        return call

    def reduced(self: Any) -> Any:
        own(self)
        return plain, ((self.data, self.indices, self.indptr), self.shape)

    methods: dict[str, Any] = {name: owning(getattr(plain, name)) for name in _OWNING}
    methods |= {"__module__": plain.__module__, "__reduce__": reduced}
    return type(plain.__name__, (plain,), methods)


class Pattern:
    """Sparsity pattern of a matrix, in the order of rows.

    Args:
        indptr: For each row its first entry, and the number of all.
        indices: For each entry its column.
        shape: Of the matrix.
    """

    def __init__(self, indptr: Any, indices: Any, shape: tuple[int, int]) -> None:
        self.indptr = np.asarray(indptr, np.int64)
        self.indices = np.asarray(indices, np.int64)
        self.shape = shape
        self._memo: dict[str, Any] = {}

    def memo(self, key: str, make: Callable[[], T]) -> T:
        """A value that follows from the pattern, computed once and kept with it."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]

    def __repr__(self) -> str:
        return f"{self.shape[0]}x{self.shape[1]} with {self.size} entries"

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self.indices)

    @cached_property
    def rows(self) -> Any:
        """For each entry its row."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    @cached_property
    def transposed(self) -> tuple[Pattern, Any]:
        """The pattern of the transpose, and for each of its entries the number of ours."""
        order = np.argsort(self.indices, kind="stable")
        counts = np.bincount(self.indices, minlength=self.shape[1])
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return Pattern(indptr, self.rows[order], self.shape[::-1]), order

    def matrix(self, data: Any) -> Any:
        """SciPy's matrix of these entries."""
        places = self._places
        found = object.__new__(_matrix_class())  # as `copy`, in a third of its time
        found.__dict__.update(places.__dict__)
        found.data = data
        return found

    @cached_property
    def _places(self) -> Any:
        """SciPy's matrix of nothing but the places: its constructor takes long to look at them.

        Their dtype is the one that SciPy's own matrices of this size have.
        """
        is_small = max(*self.shape, self.size) <= np.iinfo(np.int32).max
        places = (a.astype(np.int32 if is_small else np.int64) for a in (self.indices, self.indptr))
        found = scipy_sparse().csr_array((np.ones(self.size, np.bool_), *places), self.shape)
        assert found.has_canonical_format  # which it then knows, as all its copies do
        found.indices.flags.writeable = found.indptr.flags.writeable = False
        return found

    @cached_property
    def padded(self) -> tuple[Any, Any] | None:
        """Numbers and columns of the entries of rows of one length, beyond all where there is none.

        ``None`` if rows differ too much in length.
        """
        lengths = np.diff(self.indptr)
        longest = int(lengths.max(initial=0))
        if longest * len(lengths) > MOST_PADDED * self.size + 64:
            return None
        numbers = self.indptr[:-1, None] + np.arange(longest)
        is_there = np.arange(longest) < lengths[:, None]
        numbers = np.where(is_there, numbers, self.size)
        columns = np.append(self.indices, self.shape[1])[numbers]
        return numbers, columns

    def repeated(self, count: int) -> Pattern:
        """The pattern of a matrix of so many blocks of this one along its diagonal."""
        m, n = self.shape
        starts = np.arange(count)[:, None]
        indptr = np.append((self.indptr[:-1] + starts * self.size).ravel(), count * self.size)
        return Pattern(indptr, (self.indices + starts * n).ravel(), (count * m, count * n))


class Constants:
    """A constant sparse matrix, in the layouts that its products have when they are compiled."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape: tuple[int, int] = matrix.shape
        self.dtype = np.dtype(matrix.dtype)

    def __repr__(self) -> str:
        return f"{self.shape[0]}x{self.shape[1]} with {self.matrix.nnz} entries"

    @cached_property
    def rows(self) -> Any:
        """Compressed rows, each place once."""
        rows = self.matrix.tocsr(copy=True)
        rows.sum_duplicates()
        return rows

    @cached_property
    def pattern(self) -> Pattern:
        return Pattern(self.rows.indptr, self.rows.indices, self.shape)

    @cached_property
    def diagonals(self) -> list[tuple[int, Any]] | None:
        """Offsets and entries of the diagonals, ``None`` if there are too many."""
        m, n = self.shape
        pattern = self.pattern
        counts = np.bincount(pattern.indices - pattern.rows + m, minlength=m + n)
        offsets = np.flatnonzero(counts) - m
        if not 0 < len(offsets) <= MAX_DIAGONALS:
            return None
        found = [(int(o), self.rows.diagonal(int(o))) for o in offsets]
        if pattern.size < LEAST_FILLED * sum(len(d) for _, d in found):
            return None
        return found

    def laid_out(self, is_transposed: bool) -> tuple[Pattern, Any]:
        """A pattern, and the entries in its order."""
        if not is_transposed:
            return self.pattern, self.rows.data
        pattern, order = self.pattern.transposed
        return pattern, self.rows.data[order]

    @cached_property
    def _padded(self) -> dict[bool, Any]:
        return {}

    def padded(self, is_transposed: bool) -> tuple[Any, Any] | None:
        """Entries and columns of rows of one length."""
        if is_transposed not in self._padded:
            pattern, data = self.laid_out(is_transposed)
            layout = pattern.padded
            zero = np.zeros(1, self.dtype)
            self._padded[is_transposed] = layout and (
                np.concatenate([data, zero])[layout[0]],
                layout[1],
            )
        return self._padded[is_transposed]


def _columns(x: ShapedArray) -> Shape:
    return x.shape[1:]


def _check_operand(name: str, x: ShapedArray, n: int, dtype: np.dtype[Any]) -> None:
    if x.ndim not in (1, 2) or x.shape[0] != n:
        raise ShapeError(f"{name}: a matrix of {n} columns cannot multiply {x}.")
    if x.dtype != dtype:
        raise DtypeError(f"{name} needs arguments of one dtype, got {x} and {dtype} entries.")


def _as_columns(bind: Any, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
    """A product with a mapped last argument, as one with more columns."""
    *rest, x = args
    size, n, *k = shape_of(x)
    order = (1, 0, *range(2, 2 + len(k)))
    flat = s.reshape(s.Transpose(order).bind(x), (n, size * int(np.prod(k, dtype=np.int64))))
    out = bind(*rest, flat)
    m = shape_of(out)[0]
    return s.Transpose(order).bind(s.reshape(out, (m, size, *k))), 0


class MatrixProduct(Primitive):
    """``A @ x``, or ``A.T @ x``, with a constant sparse matrix and a vector or a matrix."""

    matrix: Constants
    is_transposed: bool = False

    jvp = linear_jvp

    @property
    def _shape(self) -> tuple[int, int]:
        m, n = self.matrix.shape
        return (n, m) if self.is_transposed else (m, n)

    def impl(self, x: Any) -> Any:
        a = self.matrix.matrix
        return np.asarray((a.T if self.is_transposed else a) @ np.asarray(x))

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        m, n = self._shape
        _check_operand(self.name, x, n, self.matrix.dtype)
        return shaped((m, *_columns(x)), x.dtype)

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (MatrixProduct(self.matrix, not self.is_transposed).bind(ct),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return _as_columns(self.bind, args, dims)

    def lower(self, x: ShapedArray) -> Form:
        if not self.matrix.matrix.nnz or not x.size:
            return Extern()
        diagonals = self.matrix.diagonals
        if diagonals is not None:
            return self._by_diagonals(x, diagonals)
        padded = self.matrix.padded(self.is_transposed)
        recipe = Recipe(x)
        if padded is not None:
            return _rows_form(recipe, x, recipe.inputs[0], *padded)
        pattern, data = self.matrix.laid_out(self.is_transposed)
        if pattern.size > SMALL:
            return Extern()
        return _scatter_form(recipe, x, recipe.inputs[0], data, pattern)

    def _by_diagonals(self, x: ShapedArray, diagonals: Sequence[tuple[int, Any]]) -> Form:
        recipe = Recipe(x)
        m = self._shape[0]
        n_more = len(_columns(x))
        none = (0,) * n_more
        total = None
        for offset, entries in diagonals:
            length = len(entries)
            row, column = max(0, -offset), max(0, offset)
            first, place = (row, column) if self.is_transposed else (column, row)
            limits = (first + length, *_columns(x))
            part = recipe(s.Slice((first, *none), limits, (1, *(1,) * n_more)), recipe.inputs[0])
            part = recipe(mul, entries.reshape((length, *(1,) * n_more)), part)
            rest = m - place - length
            pad = s.Pad((place, *none), (rest, *none), (0, *none))
            part = recipe(pad, part, x.dtype.type(0))
            total = part if total is None else recipe(add, total, part)
        return recipe.form(total)

    def params(self) -> dict[str, Any]:
        return {"matrix": self.matrix, "is_transposed": self.is_transposed}


def _rows_form(recipe: Recipe, x: ShapedArray, source: Any, entries: Any, columns: Any) -> Form:
    """Sums over rows of one length; ``entries`` is an array or the name of one."""
    taken = recipe(Gather((0,), "fill", 0), source, columns)
    if x.ndim == 2:
        shape = (*columns.shape, 1)
        entries = (
            entries.reshape(shape)
            if isinstance(entries, np.ndarray)
            else recipe(s.Reshape(shape), entries)
        )
    return recipe.form(recipe(s.ReduceSum((1,)), recipe(mul, entries, taken)))


def _scatter_form(
    recipe: Recipe, x: ShapedArray, source: Any, entries: Any, pattern: Pattern
) -> Form:
    """Entry by entry."""
    taken = recipe(Gather((0,)), source, pattern.indices)
    if x.ndim == 2:
        shape = (pattern.size, 1)
        entries = (
            entries.reshape(shape)
            if isinstance(entries, np.ndarray)
            else recipe(s.Reshape(shape), entries)
        )
    products = recipe(mul, entries, taken)
    zeros = recipe(s.BroadcastTo((pattern.shape[0], *_columns(x))), x.dtype.type(0))
    return recipe.form(recipe(ScatterAdd((0,)), zeros, products, pattern.rows))


class SparseProduct(Primitive):
    """``A @ x``, or ``A.T @ x``, of entries and a vector or a matrix.

    Args:
        pattern: Where the entries stand.
        is_transposed: Whether the matrix is transposed.
    """

    pattern: Pattern
    is_transposed: bool = False

    jvp = bilinear_jvp
    is_bilinear = True

    @property
    def _shape(self) -> tuple[int, int]:
        m, n = self.pattern.shape
        return (n, m) if self.is_transposed else (m, n)

    def impl(self, data: Any, x: Any) -> Any:
        a = self.pattern.matrix(np.asarray(data))
        return np.asarray((a.T if self.is_transposed else a) @ np.asarray(x))

    def abstract_eval(self, data: ShapedArray, x: ShapedArray) -> ShapedArray:
        m, n = self._shape
        if data.shape != (self.pattern.size,):
            raise ShapeError(f"{self.name}: {self.pattern} cannot have the entries {data}.")
        _check_operand(self.name, x, n, data.dtype)
        return shaped((m, *_columns(x)), x.dtype)

    def transpose(self, ct: Any, data: Any, x: Any) -> Sequence[Any]:
        if is_linear(data):
            pair = (x, ct) if self.is_transposed else (ct, x)
            return SampledProduct(self.pattern).bind(*pair), None
        return None, SparseProduct(self.pattern, not self.is_transposed).bind(data, ct)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        if dims[0] is None:
            return _as_columns(self.bind, args, dims)
        return _in_blocks(self, args, dims)

    def blocks(self, count: int) -> SparseProduct:
        """The same for so many matrices."""
        return SparseProduct(self.pattern.repeated(count), self.is_transposed)

    def lower(self, data: ShapedArray, x: ShapedArray) -> Form:
        pattern, order = self.pattern, None
        if not pattern.size or not x.size:
            return Extern()
        if self.is_transposed:
            pattern, order = pattern.transposed
        recipe = Recipe(data, x)
        entries, source = recipe.inputs
        padded = pattern.padded
        if padded is not None:
            numbers, columns = padded
            if order is not None:
                numbers = np.append(order, pattern.size)[numbers]
            taken = recipe(Gather((0,), "fill", 0), entries, numbers)
            return _rows_form(recipe, x, source, taken, columns)
        if pattern.size > SMALL:
            return Extern()
        if order is not None:
            entries = recipe(Gather((0,)), entries, order)
        return _scatter_form(recipe, x, source, entries, pattern)

    def params(self) -> dict[str, Any]:
        return {"pattern": self.pattern, "is_transposed": self.is_transposed}


class SampledProduct(Primitive):
    """The entries of ``a @ b.T`` at the places of a pattern; vectors count as columns."""

    pattern: Pattern

    jvp = bilinear_jvp
    is_bilinear = True

    def impl(self, a: Any, b: Any) -> Any:
        products = np.asarray(a)[self.pattern.rows] * np.asarray(b)[self.pattern.indices]
        return products.sum(1) if products.ndim == 2 else products

    def abstract_eval(self, a: ShapedArray, b: ShapedArray) -> ShapedArray:
        m, n = self.pattern.shape
        _check_operand(self.name, a, m, b.dtype)
        _check_operand(self.name, b, n, a.dtype)
        if _columns(a) != _columns(b):
            raise ShapeError(f"{self.name}: {a} and {b} have different columns.")
        return shaped((self.pattern.size,), a.dtype)

    def transpose(self, ct: Any, a: Any, b: Any) -> Sequence[Any]:
        if is_linear(a):
            return SparseProduct(self.pattern).bind(ct, b), None
        return None, SparseProduct(self.pattern, True).bind(ct, a)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return _in_blocks(self, args, dims)

    def blocks(self, count: int) -> SampledProduct:
        """The same for so many pairs."""
        return SampledProduct(self.pattern.repeated(count))

    def lower(self, a: ShapedArray, b: ShapedArray) -> Form:
        if not self.pattern.size:
            return Extern()
        recipe = Recipe(a, b)
        left = recipe(Gather((0,)), recipe.inputs[0], self.pattern.rows)
        right = recipe(Gather((0,)), recipe.inputs[1], self.pattern.indices)
        products = recipe(mul, left, right)
        return recipe.form(products if a.ndim == 1 else recipe(s.ReduceSum((1,)), products))

    def params(self) -> dict[str, Any]:
        return {"pattern": self.pattern}


def _in_blocks(
    self: SparseProduct | SampledProduct, args: Sequence[Value], dims: Sequence[BatchDim]
) -> tuple[Any, Any]:
    """Mapped products as one with a matrix of blocks."""
    size = next(shape_of(a)[0] for a, d in zip(args, dims, strict=True) if d is not None)
    flat = []
    for a, d in zip(args, dims, strict=True):
        full = a if d is not None else s.BroadcastTo((size, *shape_of(a))).bind(a)
        n, *k = shape_of(full)[1:]
        flat.append(s.reshape(full, (size * n, *k)))
    out = self.blocks(size).bind(*flat)
    n, *k = shape_of(out)
    return s.reshape(out, (size, n // size, *k)), 0
