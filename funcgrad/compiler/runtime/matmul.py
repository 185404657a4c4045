"""Products of matrices as steps of a plan.

A product is cut into tiles (`loops.library.tiles`) that the threads of this process share. Where a
library was chosen (`runtime.blas`), it is a call of that.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import field
from typing import TypeVar

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler import abi, machine
from funcgrad.compiler.abi import MOST_LANES, TILE_TABLES, TILE_WORDS, in_order
from funcgrad.compiler.loops.language import Expression, NamedFunction
from funcgrad.compiler.loops.library.elements import LETTERS, PAIRS
from funcgrad.compiler.loops.library.panels import BlockCopy, Copies, MirrorCopy, PanelCopy
from funcgrad.compiler.loops.library.tiles import (
    DEPTH,
    NEAR_BYTES,
    Shape,
    TileLines,
    TileRows,
    Tiles,
)
from funcgrad.compiler.nest.layout import Value, View, whole
from funcgrad.compiler.nest.nodes import Product, Tables
from funcgrad.compiler.nest.split import part_count, threads_of_product
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.blas import Library, chosen
from funcgrad.compiler.runtime.executable import Step, lanes_of, scratch_words, step_of
from funcgrad.compiler.runtime.library_calls import ForeignStep, ForeignWords, fortran_word
from funcgrad.dtypes import short_name

FEW_COLUMNS = machine.SEVERAL * machine.VECTOR_BYTES // machine.WORD_BYTES
"""Columns of the tiles of few rows, at least: memory is read along rows of B."""

BLOCK_BYTES = machine.CACHES[1][0] // 2
"""Size of a block of rows of A: it stays in the second cache while panels of B pass."""

COPY_BYTES = 2 * BLOCK_BYTES
"""Size of the copies of panels of a tile, at most."""

MOST_BLOCKS = machine.FEW
"""Blocks of rows of a tile, for all of which panels of B are copied once, at most."""

SMALL_TILE = 2 * machine.VECTOR_BYTES // machine.WORD_BYTES
"""Rows, and columns, below which tiles are not divided any further."""

TILES_PER_THREAD = machine.PARTS_PER_THREAD // 2
"""Tiles of a thread, at least: each copies what it reads of the operands."""

MOST_PLAIN = 4 * machine.SEVERAL
"""Rows of A up to which copies of panels of B would take longer than they save."""

WAY_BYTES = machine.CACHES[0][0] // machine.SHORT_AXIS
"""Bytes of a way of the nearest cache, which has about eight: lines that lie so far apart share a
set of it."""

LEAST_SYMMETRIC = machine.FEW * SMALL_TILE
"""Rows of the smallest symmetric result of which a half is copied."""


Number = TypeVar("Number", int, Expression)


def is_read_in_place(rows: Number, nbytes: Number) -> Number | bool:
    """Whether rows of B are read where they are, by so many rows of A, or as B is so small."""
    return (rows <= MOST_PLAIN) | (nbytes <= machine.CACHES[0][0])


def stay_near(count: int, step: int) -> bool:
    """Whether so many lines, a step of bytes apart, have room in half of the nearest cache.

    Those of matrices with 512 columns share a few of its sets.
    """
    return 2 * count <= machine.CACHES[0][0] // math.gcd(step, WAY_BYTES)


@dataclass
class Multiplication:
    """A product as a job.

    Attributes:
        node: The product.
        scratch: What it needs memory for while it runs.
        inner: The rows and the vectors of its inner loops.
        tile: Rows and strips of a tile.
        block: Rows of it that are computed panel by panel.
        panel: Strips of a panel.
        parts: Ranges of its tiles, which may run at the same time.
        library: What computes it instead of tiles.
    """

    node: Product
    scratch: list[Value] = field(default_factory=list)
    inner: tuple[int, tuple[int, ...]] = (0, ())
    tile: tuple[int, int] = (0, 0)
    block: int = 0
    panel: int = 0
    parts: list[tuple[int, int]] = field(default_factory=list)
    library: Library | None = None

    def __post_init__(self) -> None:
        if self.node.tables is None and self.node.out.dtype.kind in "fc":
            self.library = chosen()

    def split(self, n_threads: int) -> None:
        """Form tiles, and parts for several threads if it is large enough.

        Args: n_threads: How many threads may take part.
        """
        if self.library is not None:
            return
        outer, rows, strips, terms = self._counts
        work = self._work(outer * rows * strips * self._shape.lanes * self._unit * terms)
        n_threads = threads_of_product(work, n_threads)
        is_mirrored, most = self._is_symmetric, self._shape.rows
        at_once, widths, self.panel = self._shape.fitted(most if is_mirrored else rows, strips)
        self.inner = at_once, widths
        if is_mirrored:
            grain = math.lcm(most, self._shape.lanes * self.panel)
            size = _square_tile(outer, rows, self._most_rows, grain, n_threads)
            self.tile = size, size // self._shape.lanes
        else:
            unit = 1 if self._is_by_lines else self.panel
            self.tile = self._tile((at_once, unit), n_threads)
        self.block = _even(self.tile[0], self._most_rows, at_once)
        n_tiles = outer * math.prod(self._grid)
        count = part_count(n_tiles, work, n_threads)
        bounds = [n_tiles * i // count for i in range(count + 1)]
        self.parts = list(itertools.pairwise(bounds))
        if self._copies is not Copies.NONE:
            numbers = self.tile[1] * self._shape.lanes
            if self._has_block:  # it is behind the panels
                numbers += -(-self.block // at_once) * at_once
            nbytes = min(terms * self._unit, DEPTH) * numbers * self._itemsize
            self.scratch = [lanes_of(n_threads, count, nbytes)]

    @property
    def _shape(self) -> Shape:
        return kernel_store.tile_shape(self.node.out.dtype)

    @property
    def _unit(self) -> int:
        """Real numbers of an element."""
        return 2 if self.node.out.dtype.kind == "c" else 1

    @property
    def _itemsize(self) -> int:
        """Bytes of a real number."""
        return self.node.out.dtype.itemsize // self._unit

    @property
    def _counts(self) -> tuple[int, int, int, int]:
        """Numbers of outer indices, rows, strips and terms."""
        batch, m, n, k = self.node.sizes
        if self.node.tables is not None:
            return batch, m, len(self._strips(self.node.tables)), k
        return batch, m, -(-n * self._unit // self._shape.lanes), k

    def _work(self, n_products: int) -> int:
        """So many multiplications, or those in whose time the operands are read, if that is longer.

        Of few rows each number of B is a factor of few products.
        """
        if self.node.tables is not None:
            return n_products
        batch, m, n, k = self.node.sizes
        return max(n_products, machine.PRODUCT * batch * k * (m + n))

    def _strips(self, tables: Tables) -> list[tuple[int, int, int]]:
        """The table of the strips."""
        lanes, columns = self._shape.lanes, tables.columns
        nbytes = self.node.out.dtype.itemsize
        return [
            (b + j * nbytes, c + j * nbytes, min(columns - j, lanes))
            for b, c in tables.lines.tolist()
            for j in range(0, columns, lanes)
        ]

    @property
    def _copies(self) -> Copies:
        """How panels of B are copied."""
        if self.node.tables is not None:
            return Copies.NONE
        if self._unit > 1:
            return Copies.ROWS
        if self.node.layouts[1].is_transposed:
            return Copies.COLUMNS
        _, m, n, k = self.node.sizes
        if not is_read_in_place(m, n * k * self._itemsize):
            return Copies.ROWS
        row = self.node.layouts[1].row_stride * self._itemsize
        is_read_again = m > machine.SEVERAL and n * k * self._itemsize > machine.CACHES[0][0]
        return Copies.ROWS if is_read_again and not stay_near(min(k, DEPTH), row) else Copies.NONE

    @property
    def _has_block(self) -> bool:
        """Whether blocks of A are copied, too: in the order in which inner loops read them."""
        return self._copies is not Copies.NONE and self._is_near

    @property
    def _is_by_lines(self) -> bool:
        """Whether a few rows of A read B, which comes from memory, along its rows (`TileLines`)."""
        if self.node.tables is not None or self._unit > 1 or self._is_symmetric:
            return False
        _, m, n, k = self.node.sizes
        is_far = n * k * self._itemsize > machine.FEW * machine.CACHES[1][0]
        return is_far and m <= self.inner[0] and self._copies is Copies.NONE

    @property
    def _is_near(self) -> bool:
        """Whether rows of a matrix A are neighbours."""
        is_matrix = self.node.tables is None and self._unit == 1
        return is_matrix and self.node.layouts[0].is_transposed

    @property
    def _is_symmetric(self) -> bool:
        """Whether a matrix is multiplied with its own transpose: half of the tiles are enough."""
        if self.node.tables is not None:
            return False
        a, b = self.node.operands
        first, second = self.node.layouts
        _, m, n, k = self.node.sizes
        return (
            self.node.out.dtype.kind != "c"
            and m == n >= LEAST_SYMMETRIC
            and k > 1
            and isinstance(a, View)
            and isinstance(b, View)
            and (a.value, a.offset) == (b.value, b.offset)
            and first.is_transposed != second.is_transposed
            and (first.row_stride, first.batch_stride) == (second.row_stride, second.batch_stride)
        )

    @property
    def _most_rows(self) -> int:
        """Rows of A of which a block of terms stays in the second cache, also beside its copy."""
        tables = self.node.tables
        depth = min(self.node.sizes[-1], DEPTH) if tables is None else len(tables.distances[-1])
        nbytes = BLOCK_BYTES // 2 if self._is_near else BLOCK_BYTES
        return max(nbytes // max(depth * self.node.out.dtype.itemsize, 1), self._shape.rows)

    def _tile(self, grain: tuple[int, int], n_threads: int) -> tuple[int, int]:
        """Rows and strips of tiles: some tiles for every thread, yet few copies of B.

        Args:
            grain: What rows and strips are multiples of.
            n_threads: How many threads may take part.
        """
        outer, m, n, _ = self._counts
        rows, strips, lanes = max(min(m, self._most_rows), 1), max(n, 1), self._shape.lanes
        if self._is_by_lines:
            strips = min(strips, max(NEAR_BYTES // (grain[0] * lanes * self._itemsize), 1))
        if self._copies is not Copies.NONE:
            rows = max(min(m, MOST_BLOCKS * self._most_rows), 1)
            nbytes = min(self.node.sizes[-1] * self._unit, DEPTH) * lanes * self._itemsize
            strips = min(strips, max(COPY_BYTES // max(nbytes, 1), 1))
        least = max(SMALL_TILE, grain[1] * lanes)
        if m <= grain[0] and self._copies is Copies.NONE:
            least = FEW_COLUMNS  # memory is read along rows of B
        while (
            n_threads > 1 and outer * -(-m // rows) * -(-n // strips) < TILES_PER_THREAD * n_threads
        ):
            if max(rows, strips * lanes) <= least:
                break
            if strips * lanes >= rows:
                strips = -(-strips // 2)
            else:
                rows = -(-rows // 2)
        return _even(m, rows, grain[0]), _even(n, strips, grain[1])

    @property
    def _grid(self) -> tuple[int, int]:
        """How many tiles are below each other, and side by side."""
        _, rows, strips, _ = self._counts
        return max(-(-rows // self.tile[0]), 1), max(-(-strips // self.tile[1]), 1)

    @property
    def codes(self) -> list[NamedFunction]:
        """Codes of the step: tiles of our own, or a call of BLAS."""
        if self.library is not None:
            return [ForeignStep.named()]
        return [*self._inner_codes.values(), *self._parts.values(), self._driver]

    @property
    def _driver(self) -> NamedFunction:
        return Tiles.named(*self._type, self.node.tables is not None)

    @property
    def _type(self) -> tuple[str, int]:
        letter = PAIRS if self.node.is_of_pairs else LETTERS[self.node.out.dtype.str[1:]]
        return letter, self._shape.lanes

    @property
    def _inner_codes(self) -> dict[int, NamedFunction]:
        """Inner loops by their vectors, those alone that panels of this product have."""
        rows, widths = self.inner
        *_, strips, _ = self._counts
        found, rests = set(), {min(self.tile[1], strips), strips % self.tile[1]}
        if self._is_by_lines:
            return {}
        for left in rests:
            while left:
                width = next(w for w in widths if w <= min(left, self.panel))
                found.add(width)
                left -= width
        is_tabled = self.node.tables is not None
        order = sorted(found, reverse=True)
        return {w: TileRows.named(*self._type, (rows, w), is_tabled) for w in order}

    @property
    def _parts(self) -> dict[str, NamedFunction]:
        """Other parts of the step, by the words that are their addresses."""
        found, copies = {}, self._copies
        if copies is not Copies.NONE:
            found["panel_code"] = PanelCopy.named(*self._type, copies)
        if self._has_block:
            found["block_code"] = BlockCopy.named(*self._type, self.inner[0])
        if self._is_by_lines:
            found["lines_code"] = TileLines.named(*self._type, self.inner[0])
        if self._is_symmetric:
            found["mirror_code"] = MirrorCopy.named(*self._type)
        return found

    def step(self, n_threads: int) -> Step:
        """The step, when everything has its place."""
        address = kernel_store.code_address(self.codes[-1])
        if self.library is not None:
            return Step(address, _library_words(self.node, self.library))
        words = dict.fromkeys(TILE_WORDS, 0) | self._words()
        held: list[np.ndarray] = []
        tables = self.node.tables
        if tables is not None:
            held = [*tables.distances, np.array(self._strips(tables), np.int64)]
            words |= {f"table_{x}": y.ctypes.data for x, y in zip(TILE_TABLES, held, strict=True)}
        parts = [
            in_order(TILE_WORDS, **words | {"begin": begin, "end": end})
            for begin, end in self.parts
        ]
        return step_of(address, parts, min(n_threads, MOST_LANES), held)

    def alone(self) -> tuple[Step, NamedFunction]:
        """The step of a product by tables, and a program for it that calls nothing."""
        step = self.step(1)
        words = [
            0 if name.startswith("code_") else word
            for name, word in zip(TILE_WORDS, step.words, strict=True)
        ]
        within = self.inner[0], tuple(self._inner_codes)
        return Step(0, words, step.held), Tiles.named(*self._type, True, within)

    def _words(self) -> dict[str, int]:
        """The words of all parts but for tables."""
        node, dtype = self.node, self.node.out.dtype
        _, rows, strips, terms = self._counts
        words = {
            "rows": rows, "strips": strips, "terms": terms,
            "tile_rows": self.tile[0], "block_rows": self.block, "tile_strips": self.tile[1],
            "panel": self.panel,
            "groups": self._grid[0], "strip_groups": self._grid[1],
            "inner_rows": self.inner[0],
        }  # fmt: skip
        words |= {name: kernel_store.code_address(code) for name, code in self._parts.items()}
        for k, (vectors, code) in enumerate(self._inner_codes.items()):
            words |= {f"vectors_{k}": vectors, f"code_{k}": kernel_store.code_address(code)}
        for name, x in zip("abc", (*node.operands, whole(node.out)), strict=True):
            assert isinstance(x, View)
            words |= {f"slot_{name}": x.value.slot, f"offset_{name}": x.first_byte}
        for scratch in self.scratch:
            words |= scratch_words(scratch)
        if node.tables is not None:
            blocks, terms = map(len, node.tables.distances[-2:])
            return words | {"terms": terms, "blocks": blocks}
        _, m, n, _ = node.sizes
        distances = {"stride_c": m * n, "row_c": n}
        for name, layout in zip("ab", node.layouts, strict=True):
            distances[f"stride_{name}"] = layout.batch_stride
            steps = (1, layout.row_stride) if layout.is_transposed else (layout.row_stride, 1)
            across, along = ("row_a", "term_a") if name == "a" else ("term_b", "column_b")
            distances |= {across: steps[0], along: steps[1]}
        words |= {name: step * dtype.itemsize for name, step in distances.items()}
        blocks = max(-(-terms * self._unit // DEPTH), 1)
        return words | {"columns": n * self._unit, "blocks": blocks}

    @property
    def what(self) -> str:
        """The name of its kind."""
        return "matrix product" if self.node.tables is None else "strided product"

    def text(self) -> str:
        """One line about it."""
        parts = f" in {len(self.parts)} parts" if len(self.parts) > 1 else ""
        by = f" by {self.library.name}" if self.library is not None else ""
        dtype = short_name(self.node.out.dtype) + " of pairs" * self.node.is_of_pairs
        batch, m, n, k = self.node.sizes
        return f"{self.what} {dtype}: {batch} x [{m},{k}] @ [{k},{n}]{parts}{by}"


def _square_tile(batch: int, n: int, widest: int, grain: int, n_threads: int) -> int:
    """Rows of the tiles of a symmetric result, of which about a half is computed."""
    strips = -(-n // widest)
    goal = TILES_PER_THREAD * n_threads if n_threads > 1 else 3
    while batch * _triangle(strips) < goal and n > 2 * SMALL_TILE * strips:
        strips += 1
    return -(-n // strips // grain) * grain


def _triangle(n: int) -> int:
    """How many tiles are on the diagonal and below it."""
    return n * (n + 1) // 2


def _even(length: int, part: int, unit: int) -> int:
    """Parts of a length, about as long as given, equal up to a unit."""
    count = -(-length // part)
    return max(length, 1) if count < 2 else -(-length // count // unit) * unit


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
    are_transposed = layout_a.is_transposed, layout_b.is_transposed
    from_a = matrix(
        a, max(layout_a.row_stride, m if are_transposed[0] else k), layout_a.batch_stride
    )
    from_b = matrix(
        b, max(layout_b.row_stride, k if are_transposed[1] else n), layout_b.batch_stride
    )
    to_c = matrix(whole(node.out), n, m * n)
    head: list[str | int] = [*("NT"[x] for x in are_transposed[::-1]), n, m, k]
    parts = *map(given, head), one, from_b, from_a, zero, to_c
    words.arguments = [x for part in parts for x in part]
    return words.all()
