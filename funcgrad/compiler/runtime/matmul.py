"""Products of matrices as steps of a plan.

A product is cut into tiles (`loops.library.tiles`) that the threads of this process share. Where a
library was chosen (`runtime.blas`), it is a call of that.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import field

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler import abi, machine
from funcgrad.compiler.abi import MOST_LANES, TILE_WORDS, in_order
from funcgrad.compiler.foreign import LETTERS
from funcgrad.compiler.loops.language import NamedFunction
from funcgrad.compiler.loops.library.tiles import DEPTH, FEW_ROWS, Kind, Tiles, rows_at_once
from funcgrad.compiler.nest.layout import Value, View, whole
from funcgrad.compiler.nest.nodes import Product
from funcgrad.compiler.nest.split import part_count, threads_of_product
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.blas import Library, chosen
from funcgrad.compiler.runtime.executable import Step, lanes_of, scratch_words, step_of
from funcgrad.compiler.runtime.library_calls import ForeignStep, ForeignWords, fortran_word
from funcgrad.dtypes import short_name

FEW_COLUMNS = machine.SEVERAL * machine.VECTOR_BYTES // machine.WORD_BYTES
"""Columns of the tiles of few rows, at least: memory is read along rows of B."""

TILE_BYTES = machine.CACHES[1][0] // 2
"""Size of a block of B: it stays in the second cache."""

SMALL_TILE = 2 * machine.VECTOR_BYTES // machine.WORD_BYTES
"""Rows, and columns, below which tiles are not divided any further."""

TILES_PER_THREAD = machine.PARTS_PER_THREAD // 2
"""Tiles of a thread, at least: each copies what it reads of the operands."""

LEAST_SYMMETRIC = machine.FEW * SMALL_TILE
"""Rows of the smallest symmetric result of which a half is copied."""


@dataclass
class Multiplication:
    """A product of matrices as a job.

    Attributes:
        node: The product.
        scratch: What it needs memory for while it runs.
        tile: Rows and columns of a tile.
        parts: Ranges of its tiles, which may run at the same time.
        library: What computes it instead of tiles.
    """

    node: Product
    scratch: list[Value] = field(default_factory=list)
    tile: tuple[int, int] = (0, 0)
    parts: list[tuple[int, int]] = field(default_factory=list)
    library: Library | None = field(default_factory=chosen)

    def split(self, n_threads: int) -> None:
        """Form tiles, and parts for several threads if it is large enough.

        Args:
            n_threads: How many threads may take part.
        """
        if self.library is not None:
            return
        dtype = self.node.out.dtype
        shape = kernel_store.tile_shape(dtype)
        unit = 2 if dtype.kind == "c" else 1  # real numbers of an element
        batch, m, n, k = self.node.sizes
        work = batch * _ceil(m, shape.rows[-1]) * _ceil(unit * n, shape.lanes) * unit * k
        n_threads = threads_of_product(work, n_threads)
        widest = TILE_BYTES // (DEPTH * dtype.itemsize // unit)
        grain = shape.rows[0], shape.width // unit
        if self._is_few:  # there are no copies that would have to stay in a cache
            grain, widest = (grain[0], FEW_COLUMNS), _ceil(max(n, 1), FEW_COLUMNS)
        if self._is_symmetric:
            self.tile = _square_tile(batch, m, min(widest, DEPTH), math.lcm(*grain), n_threads)
        else:
            self.tile = _tile(batch, (m, n), widest // unit, grain, n_threads)
        n_tiles = batch * math.prod(self._grid)
        count = part_count(n_tiles, work, n_threads)
        bounds = [n_tiles * i // count for i in range(count + 1)]
        self.parts = list(itertools.pairwise(bounds))
        panel = 0 if self._is_few else min(unit * k, DEPTH)
        block = panel * _ceil(unit * self.tile[1], shape.lanes) * dtype.itemsize // unit
        self.scratch = [lanes_of(n_threads, count, block)]

    @property
    def _is_few(self) -> bool:
        """Whether rows of the second matrix are added up where they are."""
        is_plain = not self.node.layouts[1].is_transposed
        _, m, _, k = self.node.sizes
        return m <= FEW_ROWS and k > 0 and is_plain and self.node.out.dtype.kind == "f"

    @property
    def _few(self) -> tuple[int, ...]:
        """How many rows are taken at once, where they are few."""
        if not self._is_few:
            return ()
        return rows_at_once(kernel_store.tile_shape(self.node.out.dtype).few, self.node.sizes[1])

    @property
    def _is_symmetric(self) -> bool:
        """Whether a matrix is multiplied with its own transpose: half of the tiles are enough."""
        a, b = self.node.operands
        first, second = self.node.layouts
        _, m, n, k = self.node.sizes
        return (
            self.node.out.dtype.kind == "f"
            and m == n >= LEAST_SYMMETRIC
            and k > 1
            and isinstance(a, View)
            and isinstance(b, View)
            and (a.value, a.offset) == (b.value, b.offset)
            and first.is_transposed != second.is_transposed
            and (first.row_stride, first.batch_stride) == (second.row_stride, second.batch_stride)
        )

    @property
    def _kind(self) -> Kind:
        if self._is_few:
            return Kind.FEW
        return Kind.MIRRORED if self._is_symmetric else Kind.TILES

    @property
    def _grid(self) -> tuple[int, int]:
        """How many tiles are below each other, and side by side."""
        _, m, n, _ = self.node.sizes
        return -(-m // self.tile[0]), -(-n // self.tile[1])

    @property
    def codes(self) -> list[NamedFunction]:
        """Codes of the step: tiles of our own, or a call of BLAS."""
        dtype = self.node.out.dtype
        if self.library is not None:
            return [ForeignStep.named()]
        letter, shape = LETTERS[dtype.char], kernel_store.tile_shape(dtype)
        return [Tiles.named(letter, shape, self._kind, self._few)]

    def step(self, n_threads: int) -> Step:
        """The step, when everything has its place."""
        address = kernel_store.code_address(self.codes[0])
        if self.library is not None:
            return Step(address, _library_words(self.node, self.library))
        parts = [self._words(*part) for part in self.parts]
        return step_of(address, parts, min(n_threads, MOST_LANES))

    def _words(self, begin: int, end: int) -> list[int]:
        _, m, n, k = self.node.sizes
        (a, b), (layout_a, layout_b) = self.node.operands, self.node.layouts
        assert isinstance(a, View)
        assert isinstance(b, View)
        out = self.node.out
        (scratch,) = self.scratch
        itemsize = out.dtype.itemsize
        return in_order(
            TILE_WORDS,
            begin=begin,
            end=end,
            m=m,
            n=n,
            k=k,
            tile_m=self.tile[0],
            tile_n=self.tile[1],
            rows=self._grid[0],
            columns=self._grid[1],
            line_a=layout_a.row_stride * itemsize,
            line_b=layout_b.row_stride * itemsize,
            trans_a=int(layout_a.is_transposed),
            trans_b=int(layout_b.is_transposed),
            **scratch_words(scratch),
            **_matrix_words("a", a, layout_a.batch_stride),
            **_matrix_words("b", b, layout_b.batch_stride),
            **_matrix_words("c", whole(out), m * n),
        )

    def text(self) -> str:
        """One line about it."""
        batch, m, n, k = self.node.sizes
        parts = f" in {len(self.parts)} parts" if len(self.parts) > 1 else ""
        dtype = short_name(self.node.out.dtype)
        by = f" by {self.library.name}" if self.library is not None else ""
        return f"matrix product {dtype}: {batch} x [{m},{k}] @ [{k},{n}]{parts}{by}"


def _ceil(number: int, unit: int) -> int:
    """The next multiple of a unit."""
    return -(-number // unit) * unit


def _tile(
    batch: int, sizes: tuple[int, int], widest: int, grain: tuple[int, int], n_threads: int
) -> tuple[int, int]:
    """Rows and columns of tiles: few copies of A and B, yet some tiles for every thread.

    Args:
        batch: Number of matrices.
        sizes: Rows and columns of each.
        widest: The greatest number of columns of a tile.
        grain: What rows and columns should be multiples of.
        n_threads: How many threads may take part.
    """
    m, n = sizes
    rows, columns = max(m, 1), max(min(n, widest // grain[1] * grain[1]), 1)
    if n_threads > 1:
        rows = min(rows, DEPTH)
        goal = TILES_PER_THREAD * n_threads
        least = max(SMALL_TILE, grain[1])
        while batch * -(-m // rows) * -(-n // columns) < goal and max(rows, columns) > least:
            if columns >= rows:
                columns = -(-columns // 2)
            else:
                rows = -(-rows // 2)
    return _even(m, rows, grain[0]), _even(n, columns, grain[1])


def _square_tile(batch: int, n: int, widest: int, grain: int, n_threads: int) -> tuple[int, int]:
    """Rows and columns of the tiles of a symmetric result, of which about a half is computed."""
    strips = -(-n // widest)
    goal = TILES_PER_THREAD * n_threads if n_threads > 1 else 3
    while batch * _triangle(strips) < goal and n > 2 * SMALL_TILE * strips:
        strips += 1
    size = _even(n, -(-n // strips), grain)
    return size, size


def _triangle(n: int) -> int:
    """How many tiles are on the diagonal and below it."""
    return n * (n + 1) // 2


def _even(length: int, part: int, unit: int) -> int:
    """Parts of a length, about as long as given, equal up to a unit."""
    count = -(-length // part)
    return max(length, 1) if count < 2 else _ceil(-(-length // count), unit)


def _library_words(node: Product, library: Library) -> list[int]:
    """The words of the calls of a library.

    BLAS counts columns, so that it computes the transposed product: B comes first.
    """
    batch, m, n, k = node.sizes
    (a, b), (layout_a, layout_b), dtype = node.operands, node.layouts, node.out.dtype
    assert isinstance(a, View)
    assert isinstance(b, View)
    words = ForeignWords(library.gemm(dtype), abi.NEVER)
    words.end = batch

    def given(x: str | int) -> list[tuple[int, int]]:
        return words.listed([fortran_word(x)])

    def matrix(x: View, line: int, stride: int) -> list[tuple[int, int]]:
        place = abi.PLACE, len(words.places)
        words.places.append((x.value.slot, x.first_byte, stride * dtype.itemsize))
        # A matrix of one row may come with any row distance, but BLAS checks it.
        return [place, *given(max(line, 1))]

    numbers = (np.array([x, 0, 0, 0], dtype).view(np.int64)[:2].tolist() for x in (1, 0))
    one, zero = map(words.listed, numbers)
    turned = layout_a.is_transposed, layout_b.is_transposed
    from_a = matrix(a, max(layout_a.row_stride, m if turned[0] else k), layout_a.batch_stride)
    from_b = matrix(b, max(layout_b.row_stride, k if turned[1] else n), layout_b.batch_stride)
    to_c = matrix(whole(node.out), n, m * n)
    head: list[str | int] = [*("NT"[x] for x in turned[::-1]), n, m, k]
    parts = *map(given, head), one, from_b, from_a, zero, to_c
    words.arguments = [x for part in parts for x in part]
    return words.all()


def _matrix_words(name: str, x: View, stride: int) -> dict[str, int]:
    return {
        f"slot_{name}": x.value.slot,
        f"offset_{name}": x.first_byte,
        f"stride_{name}": stride * x.dtype.itemsize,
    }
