"""Steps that call functions of libraries: of NumPy and SciPy, BLAS and LAPACK."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial

from funcgrad.compiler import abi
from funcgrad.compiler.foreign import flag_words
from funcgrad.compiler.loops.builder import SystemProgram, is_other, read_word
from funcgrad.compiler.loops.language import SLOTS, WORDS, Expression, Variable, call

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


class ForeignStep(SystemProgram):
    """The step that calls a function of NumPy or SciPy: `abi.FOREIGN_WORDS`.

    It calls the function for every element of a stack, until a call fails, with as many arguments
    as there may be: callers take them away, and functions look at their own.
    """

    def write(self) -> None:
        words = self.given(abi.FOREIGN_WORDS)
        places, values = (self.run("room", 8 * n) for n in (abi.MOST_PLACES, abi.MOST_ARGUMENTS))
        of_places = self.let(WORDS + 8 * len(words))
        of_arguments = self.let(of_places + words["n_places"] * 24)
        with self.count(words["begin"], words["end"]) as i:
            with self.count(0, words["n_places"]) as p:
                row = self.let(of_places + p * 24)
                base, offset, stride = (read_word(row, k) for k in range(3))
                self.put_word(places, p, read_word(SLOTS, base) + offset + i * stride)
            with self.count(0, words["n_arguments"]) as a:
                self.put_word(values, a, self._argument(of_arguments + a * 16, places))
            # The loops of ufuncs look at flags that their own operations did not raise.
            with self.when(is_other(words["clear"], 0)):
                self.call(words["clear"], words["every"])
            given = (read_word(values, k) for k in range(abi.MOST_ARGUMENTS))
            result = self._number(self.call(words["function"], *given))
            self._judge(words, result, read_word(places, words["n_places"] - 1))
            with self.when(is_other(result, 0)):
                for slot, number in enumerate((words["site"], result, i), 1):
                    self.put_word(SLOTS, slot, number)
                self.give_back(abi.REFUSED)

    def _number(self, word: Expression) -> Variable:
        """The integer of 32 bits that a function of C returns."""
        return self.let(call("i64", call("i32", word)))

    def _argument(self, row: Expression, places: Expression) -> Variable:
        """An argument: a word, a place, where all places are, or where a word is."""
        kind, value = self.word(row, 0), self.word(row, 1)
        cases = {
            abi.PLACE: read_word(places, value),
            abi.PLACE_OF_WORD: WORDS + value * 8,
            abi.PLACES: places,
            abi.WORD: value,
        }
        self.by_number(
            kind, {k: partial(self.change, value, x) for k, x in cases.items()}, abi.WORD
        )
        return value

    def _judge(self, words: Mapping[str, Expression], result: Variable, last: Expression) -> None:
        """Set the result to an error code if the call failed, by the check of the step."""
        flag = call("call_address", words["test"], words["invalid"])
        info = call("load", call("ptr_i32", last), 0, 0)
        cases = {
            abi.BY_FLAG: lambda: self.change(result, self._number(flag)),
            abi.BY_INFO: lambda: self.change(result, self._number(info)),
            abi.NEVER: lambda: self.change(result, 0),
            abi.BY_RESULT: lambda: None,
        }
        self.by_number(words["check"], cases, abi.BY_RESULT)
