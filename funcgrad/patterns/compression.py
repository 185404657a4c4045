"""Dense derivatives that are sparse inside: few products, and where their numbers belong.

A dense Jacobian takes a product for every unit vector. If the pattern of the derivative says that
columns (in reverse mode rows) can be computed together, one product for each colour has all numbers
that are not zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.base.forking import cached_property
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.program import Program
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.higher_order.elements import spelled_out
from funcgrad.patterns.coloring import Coloring, color_columns
from funcgrad.patterns.dependence import Found, dependence
from funcgrad.patterns.index_sets import identity
from funcgrad.patterns.known import Scope
from funcgrad.patterns.sparsity_pattern import SparsityPattern
from funcgrad.primitives.families import zeros_like_aval
from funcgrad.primitives.indexing import Gather, ScatterAdd
from funcgrad.primitives.shape import reshape
from funcgrad.transforms.linearize import LinearizeTracer, LinearMap
from funcgrad.transforms.programs import tangent_program
from funcgrad.transforms.stage import StageTrace, StageTracer

LEAST_EAGER = 1 << 17
"""Elements of a derivative from which its pattern is asked for where operations run at once, so
that it serves only once."""

FEW = 8
"""How many times as many columns a derivative has, at least, as are computed."""


class TapePattern:
    """Dependence of the outputs of a linear map on its inputs."""

    def __init__(
        self, linear: LinearMap, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
    ) -> None:
        self.linear = linear
        self.in_sizes = [a.size for a in in_avals]
        self.out_sizes = [a.size for a in out_avals]

    def by_columns(self, number: int) -> Compression | None:
        """How to push tangents of one input, if few are enough."""
        width, rows = self.in_sizes[number], sum(self.out_sizes)
        if not _is_worthwhile(rows * width):
            return None
        sizes = [n if i == number else 0 for i, n in enumerate(self.in_sizes)]
        relations = zip(self._relations(sizes), self.out_sizes, strict=True)
        return _compression(SparsityPattern((rows, width), tuple(relations)))

    def by_rows(self, number: int) -> Compression | None:
        """How to pull cotangents of one output, if few are enough."""
        rows, width = self.out_sizes[number], sum(self.in_sizes)
        if not _is_worthwhile(rows * width):
            return None
        relation = self._all_relations[number]
        return _compression(SparsityPattern((rows, width), ((relation, rows),)).T)

    @cached_property
    def _program(self) -> tuple[Program, list[Any]]:
        return tangent_program(self.linear, "tangent")

    @cached_property
    def _all_relations(self) -> list[Found]:
        return self._relations(self.in_sizes)

    def _relations(self, sizes: Sequence[int]) -> list[Found]:
        """Relation of each output to elements of the inputs, some of which have none."""
        program, residuals = self._program
        known = [_reader_of(x) for x in residuals]
        given: list[Found] = [None] * len(known)
        start = 0
        slots = [slot for slot in self.linear.inputs if slot is not None]
        counts = [n for n, slot in zip(sizes, self.linear.inputs, strict=True) if slot is not None]
        for slot, n in zip(slots, counts, strict=True):
            given.append(identity(slot.aval.shape, sum(sizes), start) if n else None)
            start += n
        scope = Scope(program, [*known, *(None for _ in slots)])
        found = iter(dependence(scope, given, sum(sizes)))
        return [None if slot is None else next(found) for slot in self.linear.outputs]


def _reader_of(residual: Any) -> Callable[[], Any] | None:
    """How to get the value of a traced number, if it is computed from constants alone."""
    while isinstance(residual, LinearizeTracer):
        residual = residual.primal
    if not isinstance(residual, Tracer):
        return lambda: residual
    if not isinstance(residual, StageTracer):
        return None
    trace, var = residual.owner, residual.atom
    assert isinstance(trace, StageTrace)

    def ask() -> Any:
        held = [(v, x) for v, x in trace.captured.values() if not isinstance(x, Tracer)]
        program = Program(trace.inputs, trace.equations, [var], "residuals", held)
        return Scope(spelled_out(program)).value(var)

    return ask


def _is_worthwhile(size: int) -> bool:
    return current_trace().is_staged or size >= LEAST_EAGER


def _compression(pattern: SparsityPattern) -> Compression | None:
    m, n = pattern.shape
    if pattern.bound * FEW > m * n:
        return None
    colors = color_columns(pattern)
    found = Compression(pattern, Coloring(pattern, colors))
    return found if found.count * FEW <= n else None


class Compression:
    """Products of a matrix, and its dense blocks by them.

    Args:
        pattern: Where the matrix has entries.
        coloring: Which of its columns are computed together.
    """

    def __init__(self, pattern: SparsityPattern, coloring: Coloring) -> None:
        self.coloring = coloring
        self.shape = pattern.shape
        self.places = pattern.places

    @property
    def count(self) -> int:
        """The number of products."""
        return self.coloring.n_columns

    def seeds(self, aval: ShapedArray) -> Any:
        """The factors of the products, of a type, with one more axis in front."""
        return self.coloring.column_seeds(aval.dtype).reshape((self.count, *aval.shape))

    def rows(self, products: Any, first: int) -> Any:
        """Rows of the matrix, from the first one on, by their products (a line for each)."""
        m, n = aval_of(products).size // self.count, self.shape[1]
        row, column, source = self._part(first, m)
        return _filled(products, source, row * n + column, (m, n))

    def columns(self, products: Any, first: int) -> Any:
        """The same rows as columns of the transpose."""
        m, n = aval_of(products).size // self.count, self.shape[1]
        row, column, source = self._part(first, m)
        return _filled(products, source, column * m + row, (n, m))

    def _part(self, first: int, m: int) -> tuple[Any, Any, Any]:
        """Rows, columns, and numbers among the products, of the entries in some rows."""
        row, column = self.places
        inside = (row >= first) & (row < first + m)
        row, column = row[inside] - first, column[inside]
        return row, column, self.coloring.column_colors[column] * m + row


def _filled(products: Any, sources: Any, places: Any, shape: tuple[int, int]) -> Any:
    """Zeros, and numbers out of products at their places."""
    aval = aval_of(products)
    zeros = zeros_like_aval(aval.update(shape=(shape[0] * shape[1],)).strong())
    data = Gather((0,), "clip").bind(reshape(products, (aval.size,)), sources)
    return reshape(ScatterAdd((0,), "clip", True).bind(zeros, data, places), shape)
