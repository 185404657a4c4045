"""Strided products as steps of a plan.

Threads share outer indices, and groups of rows where there are few of these.
"""

from __future__ import annotations

import itertools
from dataclasses import field

from funcgrad.base.records import dataclass
from funcgrad.compiler.abi import STRIDED_WORDS, in_order
from funcgrad.compiler.foreign import LETTERS
from funcgrad.compiler.loops.language import NamedFunction
from funcgrad.compiler.loops.library.strided import Strided
from funcgrad.compiler.loops.library.tiles import rows_at_once
from funcgrad.compiler.nest.layout import Value, View, whole
from funcgrad.compiler.nest.nodes import StridedProduct
from funcgrad.compiler.nest.split import MOST_RANGES, part_count, threads_of_product
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.executable import Step, step_of
from funcgrad.dtypes import short_name


@dataclass
class StridedMultiplication:
    """A strided product as a job.

    Attributes:
        node: The product.
        group_rows: Rows of a group.
        groups: Groups of rows of every outer index.
        group_strips: Strips of a group.
        strip_groups: Groups of strips of every group of rows.
        parts: Ranges of groups, which may run at the same time.
        scratch: It needs no memory.
    """

    node: StridedProduct
    group_rows: int = 0
    groups: int = 1
    group_strips: int = 0
    strip_groups: int = 1
    parts: list[tuple[int, int]] = field(default_factory=list)
    scratch: list[Value] = field(default_factory=list)

    @property
    def _strips(self) -> list[tuple[int, int, int]]:
        """Words of the strips: ``(b, c, columns)`` of every one."""
        node = self.node
        lanes = kernel_store.strided_shape(node.out.dtype).lanes
        nbytes = node.out.dtype.itemsize
        return [
            (b + j * nbytes, c + j * nbytes, min(node.columns - j, lanes))
            for b, c in node.lines.tolist()
            for j in range(0, node.columns, lanes)
        ]

    def split(self, n_threads: int) -> None:
        """Form groups, and parts for several threads if it is large enough.

        Args:
            n_threads: How many threads may take part.
        """
        outer, rows, terms = self.node.counts
        shape = kernel_store.strided_shape(self.node.out.dtype)
        strips = len(self._strips)
        work = outer * rows * strips * shape.lanes * terms
        n_threads = threads_of_product(work, n_threads)
        count = part_count(MOST_RANGES, work, n_threads)
        self.group_rows, self.groups = _groups(rows, shape.rows[0], -(-count // outer))
        wanted = -(-count // (outer * self.groups))
        self.group_strips, self.strip_groups = _groups(strips, shape.vectors, wanted)
        units = outer * self.groups * self.strip_groups
        bounds = [units * i // count for i in range(count + 1)]
        self.parts = [(a, b) for a, b in itertools.pairwise(bounds) if a < b]

    @property
    def codes(self) -> list[NamedFunction]:
        """Codes of the step."""
        node, dtype = self.node, self.node.out.dtype
        shape = kernel_store.strided_shape(dtype)
        rows = rows_at_once(shape.rows, node.counts[1])
        return [Strided.named(LETTERS[dtype.char], shape, rows, node.is_near)]

    def step(self, n_threads: int) -> Step:
        """The step, when everything has its place."""
        address = kernel_store.code_address(self.codes[0])
        parts = [self._words(*part) for part in self.parts]
        return step_of(address, parts, n_threads)

    def _words(self, begin: int, end: int) -> list[int]:
        node = self.node
        strips = self._strips
        most = kernel_store.strided_shape(node.out.dtype).vectors
        panels = -(-self.group_strips // most)
        arrays: dict[str, int] = {}
        names = ("a", "b", "outer", "rows", "blocks", "terms", "c")
        for name, x in zip(names, (*node.operands, whole(node.out)), strict=True):
            assert isinstance(x, View)
            arrays |= {f"slot_{name}": x.value.slot, f"offset_{name}": x.first_byte}
        words = in_order(
            STRIDED_WORDS,
            begin=begin,
            end=end,
            groups=self.groups,
            group_rows=self.group_rows,
            rows=node.operands[3].shape[0],
            strip_groups=self.strip_groups,
            group_strips=self.group_strips,
            strips=len(strips),
            panel=-(-self.group_strips // panels),
            blocks=node.operands[4].shape[0],
            terms=node.operands[5].shape[0],
            **arrays,
        )
        return words + [word for row in strips for word in row]

    def text(self) -> str:
        """One line about it."""
        outer, rows, terms = self.node.counts
        parts = f" in {len(self.parts)} parts" if len(self.parts) > 1 else ""
        columns = self.node.columns * len(self.node.lines)
        sizes = f"{outer} x [{rows},{terms}] @ [{terms},{columns}]"
        return f"strided product {short_name(self.node.out.dtype)}: {sizes}{parts}"


def _groups(length: int, unit: int, wanted: int) -> tuple[int, int]:
    """Length and number of about as many groups as wanted, of whole units."""
    count = min(wanted, -(-length // unit))
    group = length if count < 2 else -(-length // count // unit) * unit
    return group, -(-length // group)
