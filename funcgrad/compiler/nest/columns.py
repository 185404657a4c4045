"""Folds of columns: over the outer axes, one result for each place in the row.

They are in registers, a lane for each column, if a row is a vector; else each row is folded into
memory. Sums of float32 are of float64; those of float64 are formed in blocks of rows, which are
then added up, so that rounding errors are those of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from funcgrad.compiler import machine
from funcgrad.compiler.loops.language import Expression, Number, Variable, applied, call
from funcgrad.compiler.nest.accumulate import is_accurate
from funcgrad.compiler.nest.iteration import Access, Vectors
from funcgrad.compiler.nest.kernel import neutral
from funcgrad.compiler.nest.nodes import Fold
from funcgrad.compiler.nest.plan import Plan, width

Place = Access | str
"""The place of results so far: memory, or a variable of lanes."""


class Columns:
    """The folds of columns of a kernel.

    Attributes:
        folds: The folds.
        blocks: Those that are formed in blocks of rows.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.source, self.space = plan.source, plan.space
        self.folds = [x for x in plan.nodes if isinstance(x, Fold) and plan.kind(x) == "column"]
        self.blocks = [x for x in self.folds if is_accurate(x) and x.out.dtype.itemsize == 8]
        self.rows: dict[Fold, Place] = {x: plan.sums[x] for x in self.folds}  # of a block
        self.totals: dict[Fold, Place] = {x: plan.outs[x] for x in self.folds}
        if plan.row_vectors is not None:
            self.rows = {x: f"a{plan.nodes.index(x)}" for x in self.folds}
            self.totals = {x: f"{self.rows[x]}s" for x in self.blocks}

    def start(self) -> None:
        """Statements before all rows."""
        for fold in self.folds:
            with self._over_row(fold):
                self._set(self.rows[fold], self._zero(fold))
                if fold in self.blocks:
                    self._set(self.totals[fold], self._zero(fold))

    def step(self, fold: Fold, value: Expression) -> None:
        """Fold in an element of a row, or all of one."""
        value = call("f64", value) if self._is_wider(fold) else value
        place = self.rows[fold]
        self._set(place, applied(fold.form.step, [self._get(place), value]))

    def end_block(self) -> None:
        """Statements behind a block of rows."""
        for fold in self.blocks:
            with self._over_row(fold):
                total = self._get(self.totals[fold]) + self._get(self.rows[fold])
                self._set(self.totals[fold], total)
                self._set(self.rows[fold], self._zero(fold))

    def end(self) -> None:
        """Statements behind all rows: results go where they belong, as they are to be."""
        if self.plan.row_vectors is not None:
            lanes = call("first_lanes", 0, self.plan.row[0].end, self.plan.row_vectors.wide)
            suffix = self.space.lanes(lanes)
        for fold in self.folds:
            if self.plan.row_vectors is not None:
                place = self.totals[fold] if fold in self.blocks else self.rows[fold]
                with self.space.in_lanes(suffix):
                    self.space.store(self.plan.outs[fold], self._narrowed(fold, self._get(place)))
            elif self._is_wider(fold):
                with self._over_row(fold):
                    value = self._narrowed(fold, self._get(self.rows[fold]))
                    self.space.store(self.plan.outs[fold], value)

    def _is_wider(self, fold: Fold) -> bool:
        return is_accurate(fold) and fold not in self.blocks

    def _zero(self, fold: Fold) -> Expression:
        zero: Expression = Number(0.0)
        if not self._is_wider(fold):
            zero = self.source.literal(neutral(fold.form.init, fold.out.dtype))
        vectors = self.plan.row_vectors
        return zero if vectors is None else call("splat", zero, vectors.wide)

    def _narrowed(self, fold: Fold, value: Expression) -> Expression:
        return call("f32", value) if self._is_wider(fold) else value

    def _get(self, place: Place) -> Expression:
        return Variable(place) if isinstance(place, str) else self.space.load(place)

    def _set(self, place: Place, value: Expression) -> None:
        if isinstance(place, str):
            self.source.assign(place, value)
        else:
            self.space.store(place, value)

    @contextmanager
    def _over_row(self, fold: Fold) -> Iterator[None]:
        """Statements for every column; in registers they are for all of them."""
        if self.plan.row_vectors is not None:
            yield
            return
        loop = self.plan.row[-1]
        steps = {loop.steps[access] for access in (self.plan.outs[fold], self.plan.sums[fold])}
        vectors = None
        if steps == {1}:
            count = machine.VECTORS * machine.VECTOR_BYTES // width([fold.out.dtype])
            vectors = Vectors(count, count)
        span, outer = (loop.begin, loop.end), self.plan.row[:-1]
        with self.space.inside(outer), self.space.elements(span, vectors):
            yield
