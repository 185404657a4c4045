"""Steps that call functions of libraries: of NumPy and SciPy, BLAS and LAPACK."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache

from funcgrad.compiler import abi
from funcgrad.compiler.foreign import flag_words
from funcgrad.compiler.native.assembly import Assembly, Code

Argument = tuple[int, int]
"""Kind and value: `abi.WORD` and those after it."""


class ForeignWords:
    """The argument words of such a step.

    Args:
        function: The address of the function.
        check: What makes a call a failure: `abi.NEVER` or one of those after it.
    """

    def __init__(self, function: int, check: int) -> None:
        self.function = function
        self.check = check
        self.site = 0
        self.clears_flags = False
        self.begin = 0
        self.end = 1
        self.places: list[tuple[int, int, int]] = []
        self.arguments: list[Argument] = []
        self.rest: list[int] = []

    def listed(self, words: Sequence[int]) -> list[Argument]:
        """The argument that points to some words."""
        self.rest += words
        return [(abi.PLACE_OF_WORD, len(self.rest) - len(words))]

    def all(self) -> list[int]:
        assert abi.LEAST_ARGUMENTS <= len(self.arguments) <= abi.MOST_ARGUMENTS
        assert len(self.places) <= abi.MOST_PLACES
        clear, test, every, invalid = flag_words()
        head = abi.in_order(
            abi.FOREIGN_WORDS,
            begin=self.begin,
            end=self.end,
            function=self.function,
            check=self.check,
            site=self.site,
            clear=clear if self.clears_flags else 0,
            test=test,
            every=every,
            invalid=invalid,
            n_places=len(self.places),
            n_arguments=len(self.arguments),
        )
        start = len(head) + 3 * len(self.places) + 2 * len(self.arguments)
        for place in self.places:
            head += place
        for kind, value in self.arguments:
            head += [kind, value + start if kind == abi.PLACE_OF_WORD else value]
        return head + self.rest


def fortran_word(x: str | int) -> int:
    """A word in which Fortran finds a character, or an integer of 32 bits."""
    number = ord(x) if isinstance(x, str) else x
    size = 1 if isinstance(x, str) else 4
    return number if sys.byteorder == "little" else number << 8 * (8 - size)


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
