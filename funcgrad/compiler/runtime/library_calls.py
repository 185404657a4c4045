"""Steps that call functions of libraries: of NumPy and SciPy, and the matrix product of BLAS."""

from __future__ import annotations

from functools import cache

from funcgrad.compiler import abi
from funcgrad.compiler.native.assembly import Assembly, Code


@cache
def foreign_code() -> Code:
    """The step that calls a function of NumPy or SciPy: `abi.FOREIGN_WORDS`."""
    writer = _Foreign()
    writer.step()
    return writer.finished()


class _Foreign(Assembly):
    is_brief = True

    def step(self) -> None:
        """Call the function for every element of a stack, until a call fails."""
        with self.function("fg_foreign", "ptr %slots, ptr %args", "i64"):
            places = self.room(f"[{abi.MOST_PLACES} x i64]")
            values = self.room(f"[{abi.MOST_ARGUMENTS} x i64]")
            self.name_words(abi.FOREIGN_WORDS)
            of_places = self.entry("%args", len(abi.FOREIGN_WORDS))
            of_arguments = self.at(of_places, ("%n_places", 24))
            with self.count("%begin", "%end") as i:
                with self.count("0", "%n_places") as p:
                    row = self.at(of_places, (p, 24))
                    base, offset, stride = (self.word(row, k) for k in range(3))
                    first = self.let(f"add i64 {self.word('%slots', base)}, {offset}")
                    address = self.let(f"add i64 {first}, {self.let(f'mul i64 {i}, {stride}')}")
                    self.put_word(address, places, p)
                with self.count("0", "%n_arguments") as a:
                    self.put_word(self._argument(self.at(of_arguments, (a, 16)), places), values, a)
                self._clear_flags()
                failure = self._failure(self._result(values), places)
                with self.when(self.test("ne", failure, 0, "i32")):
                    wide = self.let(f"sext i32 {failure} to i64")
                    for slot, number in enumerate(("%site", wide, i), 1):
                        self.put_word(number, "%slots", slot)
                    self.leave(str(abi.REFUSED))

    def _argument(self, row: str, places: str) -> str:
        """An argument: a word, a place, where all places are, or where a word is."""
        kind, word = self.word(row), self.word(row, 1)
        n = next(self._numbers)
        cases = {abi.PLACE: "place", abi.PLACE_OF_WORD: "word", abi.PLACES: "places"}
        before = self.block
        rows = " ".join(f"i64 {k}, label %{name}{n}" for k, name in cases.items())
        self.do(f"switch i64 {kind}, label %found{n} [ {rows} ]")
        values = {before: word}
        for name in cases.values():
            self.start(f"{name}{n}")
            if name == "place":
                value = self.word(places, word)
            else:
                value = places if name == "places" else self.entry("%args", word)
                value = self.let(f"ptrtoint ptr {value} to i64")
            values[f"{name}{n}"] = value
            self.go(f"found{n}")
        self.start(f"found{n}")
        return self.phi("i64", values)

    def _clear_flags(self) -> None:
        # The loops of ufuncs look at flags that their own operations did not raise.
        with self.when(self.test("ne", "%clear", 0)):
            self._flags("clear", "every")

    def _flags(self, function: str, bits: str) -> str:
        address = self.let(f"inttoptr i64 %{function} to ptr")
        return self.let(f"call i32 {address}(i32 {self.let(f'trunc i64 %{bits} to i32')})")

    def _result(self, values: str) -> str:
        """Call the function with its arguments, however many there are."""
        counts = range(abi.LEAST_ARGUMENTS, abi.MOST_ARGUMENTS + 1)
        function = self.let("inttoptr i64 %function to ptr")
        cases = " ".join(f"i64 {n}, label %call{n}" for n in counts)
        before, results = self.block, {}
        self.do(f"switch i64 %n_arguments, label %called [ {cases} ]")
        for n in counts:
            self.start(f"call{n}")
            given = ", ".join(f"i64 {self.word(values, k)}" for k in range(n))
            results[f"call{n}"] = self.let(f"call i32 {function}({given})")
            self.go("called")
        self.start("called")
        return self.phi("i32", {before: "0", **results})

    def _failure(self, result: str, places: str) -> str:
        """A number other than 0 where the call has failed, in the way that the step asks."""
        before = self.block
        cases = {abi.BY_FLAG: "by.flag", abi.BY_INFO: "by.info", abi.BY_RESULT: "decide"}
        rows = " ".join(f"i64 {k}, label %{name}" for k, name in cases.items())
        self.do(f"switch i64 %check, label %unchecked [ {rows} ]")
        self.start("by.flag")
        flag = self._flags("test", "invalid")
        self.go("decide")
        self.start("by.info")
        info = self.let(f"load i32, ptr {self.word(places, self.sub('%n_places', 1), 'ptr')}")
        self.go("decide")
        self.start("unchecked")
        self.go("decide")
        self.start("decide")
        return self.phi("i32", {before: result, "by.flag": flag, "by.info": info, "unchecked": "0"})


@cache
def gemm_code(letter: str, is_blis: bool) -> Code:
    """The batched matrix product for BLAS's type ``letter``: s, d, c or z.

    BLAS counts columns, so that it computes the transposed product: B comes first. BLIS takes the
    distances of rows and of columns, and knows by flags what is transposed.

    Args:
        letter: The type.
        is_blis: Whether the function is called by BLIS's typed API instead of BLAS's.
    """
    writer = Assembly()
    real = "float" if letter in "sc" else "double"
    with writer.function(f"fg_{letter}gemm", "ptr noalias %slots, ptr noalias %args", "i64"):
        writer.name_words(abi.GEMM_WORDS)

        def kept(value: str, kind: str = "i32") -> str:
            """Place of a value."""
            place = writer.room(kind)
            writer.do(f"store {kind} {value}, ptr {place}")
            return place

        m, n, k = (writer.let(f"trunc i64 %{x} to i32") for x in "mnk")
        turned = {x: writer.test("ne", f"%trans_{x}", 0) for x in "ab"}
        columns = {
            "a": writer.pick(turned["a"], m, k, "i32"),
            "b": writer.pick(turned["b"], k, n, "i32"),
            "c": n,
        }
        lines = {}
        for x, least in columns.items():
            # A matrix of one row may come with any row distance, but BLAS checks it.
            line = writer.let(f"trunc i64 %ld{x} to i32")
            for other in (least, "1"):
                line = writer.invoke("i32", "llvm.smax.i32", ("i32", line), ("i32", other))
            lines[x] = line
        alpha = kept(f"[{real} 1.0, {real} 0.0]", f"[2 x {real}]")
        beta = kept("zeroinitializer", f"[2 x {real}]")
        bases = {x: writer.word("%slots", f"%slot_{x}", "ptr") for x in "abc"}
        if is_blis:
            flags = {x: writer.pick(turned[x], 8, 0, "i32") for x in "ab"}
            wide = {x: writer.let(f"sext i32 {line} to i64") for x, line in lines.items()}
        else:
            letters = [kept(writer.pick(turned[x], 84, 78, "i8"), "i8") for x in "ba"]  # T or N
            sizes = [kept(x) for x in (n, m, k)]
            kept_lines = {x: kept(line) for x, line in lines.items()}
        gemm = writer.let("inttoptr i64 %function to ptr")
        is_some = writer.every(
            writer.test("sgt", "%m", 0),
            writer.test("sgt", "%n", 0),
            writer.test("slt", "%begin", "%end"),
        )
        with writer.when(is_some), writer.turns("%begin", "%end") as (i, _, _):
            at = {
                x: writer.after(bases[x], writer.add(writer.mul(i, f"%stride_{x}"), f"%offset_{x}"))
                for x in "abc"
            }
            if is_blis:
                a, b, c = (f"ptr {at[x]}, i64 {wide[x]}, i64 1" for x in "abc")
                writer.do(
                    f"call void {gemm}(i32 {flags['a']}, i32 {flags['b']}, i64 %m, i64 %n, "
                    f"i64 %k, ptr {alpha}, {a}, {b}, ptr {beta}, {c})"
                )
            else:
                given = [*letters, *sizes, alpha, at["b"], kept_lines["b"], at["a"]]
                given += [kept_lines["a"], beta, at["c"], kept_lines["c"]]
                writer.do(f"call void {gemm}({', '.join(f'ptr {x}' for x in given)})")
    return writer.finished()
