"""Sums of products whose operands lie in memory in any regular order, such as windows that slide.

A matrix product packs its operands into panels. Windows of an array overlap: packed, they would be
many times the array. Here nothing is packed. Tables say where the rows of A, the terms of the sums
and the outer indices are, as distances in bytes; only the columns lie side by side, in B and C. An
inner loop keeps a few rows of a few vectors of sums in registers. For every term it loads the
vectors of B from where they are, and each number of A into all lanes of a vector.

Every element of the result is a sum of blocks of terms, each a chain of fused multiplications and
additions, the same whoever computes it.
"""

from __future__ import annotations

import itertools

from funcgrad.compiler.abi import STRIDED_WORDS
from funcgrad.compiler.native import gemm
from funcgrad.compiler.native.assembly import Assembly
from funcgrad.compiler.native.gemm import Shape

_FEW_ROWS = (4, 2, 1)
_MANY_ROWS = (8, 6, *_FEW_ROWS)


def inner_shape(itemsize: int, features: str) -> Shape:
    """Lanes, rows and vectors of inner loops, for a processor with these features of LLVM."""
    packed = gemm.inner_shape(itemsize, features)
    has_many = packed.rows[0] > _FEW_ROWS[0]
    return Shape(packed.lanes, _MANY_ROWS if has_many else _FEW_ROWS, 3 if has_many else 2)


def strided_symbol(letter: str) -> str:
    return f"fg_{letter}strided"


def strided_assembly(letter: str, shape: Shape) -> str:
    """The step for numbers of BLAS's type ``letter``: s or d."""
    return _Assembly(letter, shape).text()


class _Assembly(Assembly):
    def __init__(self, letter: str, shape: Shape) -> None:
        super().__init__(4 if letter in "sc" else 8, shape.lanes)
        self.letter = letter
        self.shape = shape

    def text(self) -> str:
        kinds = [
            (is_near, rows, vectors)
            for is_near in (False, True)
            for rows in self.shape.rows
            for vectors in range(1, self.shape.vectors + 1)
        ]
        for kind in kinds:
            self._inner(*kind)
        self._choose(kinds)
        self._step()
        vector, mask = self.vector, f"<{self.lanes} x i1>"
        self.lines += [
            f"declare {vector} @llvm.fmuladd.{self.suffix}({vector}, {vector}, {vector})",
            f"declare {vector} @llvm.masked.load.{self.suffix}.p0(ptr, i32, {mask}, {vector})",
            f"declare void @llvm.masked.store.{self.suffix}.p0({vector}, ptr, i32, {mask})",
            "declare i64 @llvm.smin.i64(i64, i64)",
        ]
        return "\n".join(self.lines)

    _ARGUMENTS = "ptr %table, ptr %end, ptr %a, ptr %b, ptr %c, ptr %lines, ptr %strips, i1 %adds"

    def _inner(self, is_near: bool, rows: int, vectors: int) -> None:
        """C (+)= some terms of some rows and strips."""
        every = list(itertools.product(range(rows), range(vectors)))
        with self.function(_name(is_near, rows, vectors), self._ARGUMENTS):
            masks = [self._mask(self._word("%strips", str(3 * v + 2))) for v in range(vectors)]
            from_b = [self._after("%b", self._word("%strips", str(3 * v))) for v in range(vectors)]
            sources = []
            for r in range(rows):
                distance = str(r * self.size) if is_near else self._word("%lines", str(2 * r))
                sources.append(self._after("%a", distance))
            before = self.block
            self.do("br label %turn")
            self.start("turn")
            self.do(f"%t = phi ptr [ %table, %{before} ], [ %t.next, %turn ]")
            for r, v in every:
                zero = f"[ zeroinitializer, %{before} ]"
                self.do(f"%s.{r}.{v} = phi {self.vector} {zero}, [ %n.{r}.{v}, %turn ]")
            in_a, in_b = self._word("%t", "0"), self._word("%t", "1")
            b = [self._vector(self._after(from_b[v], in_b), masks[v]) for v in range(vectors)]
            for r in range(rows):
                place = self._after(sources[r], in_a)
                number = self.let(f"load {self.scalar}, ptr {place}, align {self.size}")
                first = self.let(
                    f"insertelement {self.vector} poison, {self.scalar} {number}, i64 0"
                )
                spread = self.let(
                    f"shufflevector {self.vector} {first}, {self.vector} poison, "
                    f"<{self.lanes} x i32> zeroinitializer"
                )
                for v in range(vectors):
                    parts = (spread, b[v], f"%s.{r}.{v}")
                    operands = ", ".join(f"{self.vector} {x}" for x in parts)
                    call = f"call {self.vector} @llvm.fmuladd.{self.suffix}({operands})"
                    self.do(f"%n.{r}.{v} = {call}")
            self.do("%t.next = getelementptr inbounds i8, ptr %t, i64 16")
            self.do("%more = icmp ne ptr %t.next, %end")
            self.do("br i1 %more, label %turn, label %out")
            self.start("out")
            targets = [self._after("%c", self._word("%lines", str(2 * r + 1))) for r in range(rows)]
            to_c = [self._word("%strips", str(3 * v + 1)) for v in range(vectors)]
            self.do("br i1 %adds, label %add, label %set")
            for is_sum in (False, True):
                self.start("add" if is_sum else "set")
                for r, v in every:
                    place = self._after(targets[r], to_c[v])
                    total = f"%n.{r}.{v}"
                    if is_sum:
                        total = self.let(
                            f"fadd {self.vector} {self._vector(place, masks[v])}, {total}"
                        )
                    self._store(total, place, masks[v])
                if not is_sum:
                    self.do("ret void")

    def _after(self, base: str, distance: str) -> str:
        return self.let(f"getelementptr inbounds i8, ptr {base}, i64 {distance}")

    def _vector(self, place: str, mask: str) -> str:
        return self.let(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {place}, i32 {self.size}, "
            f"<{self.lanes} x i1> {mask}, {self.vector} zeroinitializer)"
        )

    def _store(self, value: str, place: str, mask: str) -> None:
        self.do(
            f"call void @llvm.masked.store.{self.suffix}.p0({self.vector} {value}, ptr {place}, "
            f"i32 {self.size}, <{self.lanes} x i1> {mask})"
        )

    def _word(self, table: str, index: str) -> str:
        place = self.let(f"getelementptr inbounds i64, ptr {table}, i64 {index}")
        return self.let(f"load i64, ptr {place}")

    def _choose(self, kinds: list[tuple[bool, int, int]]) -> None:
        """The inner loop for so many rows and vectors."""
        arguments = f"i64 %is_near, i64 %rows, i64 %vectors, {self._ARGUMENTS}"
        with self.function("choose", arguments):
            code = self.add(self.mul("%is_near", 256), self.mul("%rows", 16))
            cases = " ".join(
                f"i64 {256 * f + 16 * r + v}, label %case{f:d}x{r}x{v}" for f, r, v in kinds
            )
            self.do(f"switch i64 {self.add(code, '%vectors')}, label %done [ {cases} ]")
            for f, r, v in kinds:
                self.start(f"case{f:d}x{r}x{v}")
                self.do(f"call void @{_name(f, r, v)}({self._ARGUMENTS})")
                self.do("br label %done")
            self.start("done")

    def _step(self) -> None:
        """The step: all sums of its groups of rows."""
        with self.function(strided_symbol(self.letter), "ptr %slots, ptr %args", "i64"):
            for place, word in enumerate(STRIDED_WORDS):
                self.do(f"%{word}.p = getelementptr inbounds i64, ptr %args, i64 {place}")
                self.do(f"%{word} = load i64, ptr %{word}.p")
            a, b, c, outer, lines, blocks, table = (
                self._base(f"slot_{x}", f"offset_{x}")
                for x in ("a", "b", "c", "outer", "rows", "blocks", "terms")
            )
            strips = self._after("%args", str(8 * len(STRIDED_WORDS)))
            end_of_table = self.at(table, ("%terms", 16))
            with self.count("%begin", "%end") as unit:
                rest = self.let(f"sdiv i64 {unit}, %strip_groups")
                index = self.mul(self.let(f"sdiv i64 {rest}, %groups"), 3)
                own_a, own_b, own_c = (
                    self._after(base, self._word(outer, self.add(index, str(i))))
                    for i, base in enumerate((a, b, c))
                )
                group = self.let(f"srem i64 {rest}, %groups")
                first = self.mul(group, "%group_rows")
                end = self.least(self.add(first, "%group_rows"), "%rows")
                of_strips = self.let(f"srem i64 {unit}, %strip_groups")
                first_strip = self.mul(of_strips, "%group_strips")
                last_strip = self.least(self.add(first_strip, "%group_strips"), "%strips")
                with self.count("0", "%blocks") as k:
                    adds = self.let(f"icmp sgt i64 {k}, 0")
                    pair = self.mul(k, 2)
                    block_a = self._after(own_a, self._word(blocks, pair))
                    block_b = self._after(own_b, self._word(blocks, self.add(pair, "1")))
                    with self.count(first_strip, last_strip, "%panel") as s:
                        vectors = self.least(self.sub(last_strip, s), "%panel")
                        self._all_rows(
                            (first, end),
                            lines,
                            (block_a, block_b, own_c),
                            (vectors, self.at(strips, (s, 24))),
                            (table, end_of_table),
                            adds,
                        )

    def _all_rows(
        self,
        span: tuple[str, str],
        lines: str,
        places: tuple[str, str, str],
        strips: tuple[str, str],
        table: tuple[str, str],
        adds: str,
    ) -> None:
        """Rows of one panel of strips, as many at a time as inner loops have."""
        n = next(self._numbers)
        first, end = span
        a, b, c = places
        before = self.block
        self.do(f"br label %rows{n}")
        self.start(f"rows{n}")
        self.do(f"%r{n} = phi i64 [ {first}, %{before} ], [ %r.next{n}, %rows{n} ]")
        chosen = self._chosen(self.sub(end, f"%r{n}"))
        line = self.at(lines, (f"%r{n}", 16))
        near = self.mul(self.mul("%is_near", self.size), f"%r{n}")
        self.do(
            f"call void @choose(i64 %is_near, i64 {chosen}, i64 {strips[0]}, ptr {table[0]}, "
            f"ptr {table[1]}, ptr {self._after(a, near)}, ptr {b}, ptr {c}, ptr {line}, "
            f"ptr {strips[1]}, i1 {adds})"
        )
        self.do(f"%r.next{n} = add nsw i64 %r{n}, {chosen}")
        more = self.let(f"icmp slt i64 %r.next{n}, {end}")
        self.do(f"br i1 {more}, label %rows{n}, label %rows.end{n}")
        self.start(f"rows.end{n}")

    def _chosen(self, rows: str) -> str:
        """The greatest inner loop that has no more rows."""
        *others, chosen = map(str, self.shape.rows)
        for more in reversed(others):
            fits = self.let(f"icmp sge i64 {rows}, {more}")
            chosen = self.let(f"select i1 {fits}, i64 {more}, i64 {chosen}")
        return chosen

    def _base(self, slot: str, offset: str) -> str:
        place = self.at("%slots", (f"%{slot}", 8))
        base = self.let(f"load ptr, ptr {place}")
        return self._after(base, f"%{offset}")


def _name(is_near: bool, rows: int, vectors: int) -> str:
    return f"{'near' if is_near else 'far'}{rows}x{vectors}"
