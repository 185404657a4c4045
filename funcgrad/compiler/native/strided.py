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
from functools import partial

from funcgrad.compiler.abi import STRIDED_WORDS
from funcgrad.compiler.loops.library import tiles as gemm
from funcgrad.compiler.loops.library.tiles import Shape
from funcgrad.compiler.native.assembly import Code, VectorAssembly

_FEW_ROWS = (4, 2, 1)
_MANY_ROWS = (8, 6, *_FEW_ROWS)


def inner_shape(itemsize: int, features: str) -> Shape:
    """Lanes, rows and vectors of inner loops, for a processor with these features of LLVM."""
    packed = gemm.inner_shape(itemsize, features)
    has_many = packed.rows[0] > _FEW_ROWS[0]
    return Shape(packed.lanes, _MANY_ROWS if has_many else _FEW_ROWS, 3 if has_many else 2)


def rows_at_once(rows: int, shape: Shape) -> tuple[int, ...]:
    """The rows of the inner loops through which so many rows go, each the greatest that fits."""
    most = shape.rows[0]
    found, rest = [most] * (rows >= most), rows % most
    for fewer in shape.rows[1:]:
        if rest >= fewer:
            found.append(fewer)
            rest %= fewer
    return tuple(found)


def strided_code(letter: str, shape: Shape, rows: tuple[int, ...], is_near: bool) -> Code:
    """The step for numbers of BLAS's type ``letter``: s or d.

    Args:
        letter: The type.
        shape: What its inner loops can look like.
        rows: How many rows its inner loops have: `rows_at_once`.
        is_near: Whether the rows of A are neighbours.
    """
    return _Assembly(letter, shape, rows, is_near).text()


class _Assembly(VectorAssembly):
    def __init__(self, letter: str, shape: Shape, rows: tuple[int, ...], is_near: bool) -> None:
        super().__init__(4 if letter in "sc" else 8, shape.lanes)
        self.letter = letter
        self.rows = rows
        self.vectors = shape.vectors
        self.is_near = is_near

    def text(self) -> Code:
        self._step()
        return self.finished()

    _ARGUMENTS = "ptr %table, ptr %end, ptr %a, ptr %b, ptr %c, ptr %lines, ptr %strips, i1 %adds"

    def _inner(self, rows: int, vectors: int) -> None:
        """C (+)= some terms of some rows and strips."""
        every = list(itertools.product(range(rows), range(vectors)))
        with self.function(_name(rows, vectors), self._ARGUMENTS):
            masks = [self.mask(self.word("%strips", 3 * v + 2)) for v in range(vectors)]
            from_b = [self.after("%b", self.word("%strips", 3 * v)) for v in range(vectors)]
            sources = [
                self.after("%a", r * self.size if self.is_near else self.word("%lines", 2 * r))
                for r in range(rows)
            ]
            before, names = self.block, [f"%s.{r}.{v}" for r, v in every]
            self.go("turn")
            self.start("turn")
            place = len(self.lines)
            in_a, in_b = self.word("%t", 0), self.word("%t", 1)
            panel = [self.load(self.after(b, in_b), m) for b, m in zip(from_b, masks, strict=True)]
            sums = self.multiplied((self.after(a, in_a) for a in sources), panel, names)
            self.lines[place:place] = [
                f"  %t = phi ptr [ %table, %{before} ], [ %t.next, %turn ]",
                *(
                    f"  {name} = phi {self.vector} [ zeroinitializer, %{before} ], [ {new}, %turn ]"
                    for name, new in zip(names, sums, strict=True)
                ),
            ]
            self.do("%t.next = getelementptr inbounds i8, ptr %t, i64 16")
            self.fork(self.test("ne", "%t.next", "%end", "ptr"), "turn", "out")
            self.start("out")
            targets = [self.after("%c", self.word("%lines", 2 * r + 1)) for r in range(rows)]
            to_c = [self.word("%strips", 3 * v + 1) for v in range(vectors)]
            places = [(targets[r], to_c[v]) for r, v in every]
            self.put_sums(sums, places, [masks[v] for _, v in every])

    def write_choose(self) -> None:
        """The inner loop for so many rows and vectors."""
        kinds = itertools.product(self.rows, range(1, self.vectors + 1))
        functions = {16 * r + v: (_name(r, v), partial(self._inner, r, v)) for r, v in kinds}
        with self.function("choose", f"i64 %rows, i64 %vectors, {self._ARGUMENTS}"):
            code = self.add(self.mul("%rows", 16), "%vectors")
            self.use_by_number(code, functions, self._ARGUMENTS)

    def _step(self) -> None:
        """The step: all sums of its groups of rows."""
        kind = "_".join(map(str, ("near" if self.is_near else "far", *self.rows)))
        name = f"fg_{self.letter}strided_{kind}"
        with self.function(name, "ptr %slots, ptr %args", "i64"):
            self.name_words(STRIDED_WORDS)
            a, b, c, outer, lines, blocks, table = (
                self.array(f"%slot_{x}", f"%offset_{x}")
                for x in ("a", "b", "c", "outer", "rows", "blocks", "terms")
            )
            strips = self.after("%args", str(8 * len(STRIDED_WORDS)))
            end_of_table = self.at(table, ("%terms", 16))
            with self.count("%begin", "%end") as unit:
                rest = self.let(f"sdiv i64 {unit}, %strip_groups")
                index = self.mul(self.let(f"sdiv i64 {rest}, %groups"), 3)
                own_a, own_b, own_c = (
                    self.after(base, self.word(outer, self.add(index, str(i))))
                    for i, base in enumerate((a, b, c))
                )
                group = self.let(f"srem i64 {rest}, %groups")
                first = self.mul(group, "%group_rows")
                end = self.least(self.add(first, "%group_rows"), "%rows")
                of_strips = self.let(f"srem i64 {unit}, %strip_groups")
                first_strip = self.mul(of_strips, "%group_strips")
                last_strip = self.least(self.add(first_strip, "%group_strips"), "%strips")
                with self.count("0", "%blocks") as k:
                    adds = self.test("sgt", k, "0")
                    pair = self.mul(k, 2)
                    block_a = self.after(own_a, self.word(blocks, pair))
                    block_b = self.after(own_b, self.word(blocks, self.add(pair, "1")))
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
        self.go(f"rows{n}")
        self.start(f"rows{n}")
        self.do(f"%r{n} = phi i64 [ {first}, %{before} ], [ %r.next{n}, %rows{n} ]")
        chosen = self._chosen(self.sub(end, f"%r{n}"))
        line = self.at(lines, (f"%r{n}", 16))
        first_a = self.after(a, self.mul(f"%r{n}", self.size)) if self.is_near else a
        self.use(
            "choose",
            f"i64 {chosen}, i64 {strips[0]}, ptr {table[0]}, "
            f"ptr {table[1]}, ptr {first_a}, ptr {b}, ptr {c}, ptr {line}, "
            f"ptr {strips[1]}, i1 {adds}",
        )
        self.do(f"%r.next{n} = add nsw i64 %r{n}, {chosen}")
        more = self.test("slt", f"%r.next{n}", end)
        self.fork(more, f"rows{n}", f"rows.end{n}")
        self.start(f"rows.end{n}")

    def _chosen(self, rows: str) -> str:
        """The greatest inner loop that has no more rows."""
        *others, chosen = map(str, self.rows)
        for more in reversed(others):
            fits = self.test("sge", rows, more)
            chosen = self.pick(fits, more, chosen)
        return chosen


def _name(rows: int, vectors: int) -> str:
    return f"inner{rows}x{vectors}"
