"""The executor, which runs tables of steps, and the steps that run tables: loops and branches.

They are programs of the loop language, compiled once per machine and kept in the disk cache like
any kernel. The layouts of the tables are part of the kernel ABI (`docs/compiler.md`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from funcgrad.compiler import abi
from funcgrad.compiler.loops.builder import SystemProgram, is_other, read_word
from funcgrad.compiler.loops.language import (
    SLOTS,
    WORDS,
    Expression,
    NamedFunction,
    Variable,
    call,
    equal,
)

_COARSE = 6
"""Linux's clock that costs least, and the usual one of other systems that have such functions."""

_SECOND = 1_000_000_000


def executor_code(offsets: Mapping[str, int]) -> NamedFunction:
    """The executor, for a machine on which array objects have their fields at these offsets."""
    return _Executor.named(*offsets.items())


class _Look(SystemProgram):
    """The error code to stop with, or 0: ``int64`` of ``int64* slots``.

    Of the threads that run a program only its own looks at the clock, and only the main thread
    asks Python whether a signal has come, as Python itself does.
    """

    facts = SystemProgram.facts_of("slots")

    def write(self) -> None:
        place = self.let(SLOTS + 8 * abi.STOP_SLOT)
        self.stop_if_failed(self.run("load_shared", place))
        if sys.platform == "win32":
            return
        owner, own = self.word(SLOTS, abi.OWNER_SLOT), self.run("pthread_self")
        with self.when(is_other(owner, 0) & is_other(owner, own)):
            self.give_back(0)
        time = self.run("room", 16)
        self.do("clock_gettime", _COARSE, time)
        now = self.let(read_word(time, 0) * _SECOND + read_word(time, 1))
        with self.when(now < read_word(SLOTS, abi.NEXT_SLOT)):
            self.give_back(0)
        deadline = self.word(SLOTS, abi.DEADLINE_SLOT)
        self.put_word(SLOTS, abi.NEXT_SLOT, call("minimum", deadline, now + abi.LOOKS_EVERY))
        control = self.word(SLOTS, abi.CONTROL_SLOT)
        words = {name: read_word(control, k) for k, name in enumerate(abi.CONTROL_WORDS)}
        with self.when(equal(words["main"], own)):
            self._ask_python(words, place)
        with self.when(now >= deadline):
            self._stop(place, abi.TIMED_OUT)

    def _ask_python(self, words: Mapping[str, Expression], stop: Expression) -> None:
        """Stop where a signal's handler has raised, and keep what it has raised.

        It runs with the control word of whoever has called, as it would anywhere else.
        """
        own = self.run("read_control")
        self.do("write_control", read_word(SLOTS, abi.MODE_SLOT))
        state = self.call(words["ensure"])
        is_raised = self.let(is_other(call("i32", self.call(words["check"])), 0))
        with self.when(is_raised):
            self.call(words["fetch"], *(SLOTS + 8 * (abi.RAISED_SLOT + k) for k in range(3)))
        self.call(words["release"], state)
        self.put_word(SLOTS, abi.MODE_SLOT, call("read_control"))
        self.do("write_control", own)
        with self.when(is_raised):
            self._stop(stop, abi.INTERRUPTED)

    def _stop(self, place: Expression, reason: int) -> None:
        self.do("store_shared", place, reason)
        self.give_back(reason)


class _Executor(SystemProgram):
    """Run a table: ``int64`` of ``int64* slots``, ``int64* table``, ``int64 n_objects``.

    The number of objects is -1 where a step of another table runs this one.

    ``slots[FIRST_SLOT + k], k < n_objects``: address of a Python object, replaced by that of its
    data. The table: number of steps; number of guarded objects; word offset of the guards; whether
    all steps compute only, with the caller's control word; for each step (kernel address, word
    offset of its arguments, whether subnormal numbers are zero while it runs, on processors that
    can); arguments; guards.

    A step that is not such runs with the caller's control word: so do those that run tables. Where
    all steps only compute and no Python has called, it is neither read nor written: each of these
    waits for all arithmetic that has begun.

    Returns 0; 1 + the index of the step that failed, with its error code in ``slots[0]``; or,
    before anything has run, -1 - the index of the first object that does not agree.
    """

    facts = SystemProgram.facts_of("slots", "table", "n_objects", look=_Look.named())

    def __init__(self, *offsets: tuple[str, int]) -> None:
        super().__init__()
        self.offsets = dict(offsets)

    def write(self) -> None:
        table, n_objects = Variable("table"), Variable("n_objects")
        objects = self.let(SLOTS + 8 * abi.FIRST_SLOT)
        with self.when(n_objects > 0):
            self._check_objects(objects, self.word(table, 1), table + self.word(table, 2) * 8)
            with self.count(0, n_objects) as k:
                self.put_word(objects, k, self._field(read_word(objects, k), "DATA"))
        self.put_word(SLOTS, abi.LOOK_SLOT, Variable("look"))
        keeps = self.let(is_other(n_objects, 0) | equal(self.word(table, 3), 0))
        # Before a step that runs a table others have raised flags, which are not the caller's.
        with self.when(keeps & (n_objects >= 0)):
            self.put_word(SLOTS, abi.MODE_SLOT, call("read_control"))
        mode = self.let(0)
        with self.count(0, read_word(table, 0)) as i:
            row = self.let(table + (i * 24 + 32))
            self._set_mode(mode, self.word(row, 2))
            code = self.call(read_word(row, 0), SLOTS, table + read_word(row, 1) * 8)
            with self.when(is_other(code, 0)):
                self.put_word(SLOTS, 0, code)
                self._leave_mode(keeps)
                self.give_back(i + 1)
        self._leave_mode(keeps)

    def _set_mode(self, mode: Variable, wanted: Expression) -> None:
        with self.when(is_other(mode, wanted)):
            callers = self.word(SLOTS, abi.MODE_SLOT)
            flushes = is_other(wanted, 0)
            self.do("write_control", call("select", flushes, call("flushing", callers), callers))
            self.change(mode, wanted)

    def _leave_mode(self, keeps: Variable) -> None:
        """Give the caller its control word back, which a handler of a signal may have changed."""
        with self.when(keeps):
            self.do("write_control", read_word(SLOTS, abi.MODE_SLOT))

    def _check_objects(self, objects: Expression, guarded: Expression, guards: Expression) -> None:
        """Return where an object does not agree with its guard.

        A guard: address of the type, address of the dtype, flags that must be set, number of axes,
        lengths. The first objects must be arrays that agree with them; others are not checked.
        """
        guard = self.let(guards)
        with self.count(0, guarded) as g:
            array = self.word(objects, g)
            self._expect(equal(self._field(array, "CLASS"), read_word(guard, 0)), g)
            flags = self.word(guard, 2)
            rank = self.let(call("i64", self._field(array, "NDIM", "i32")))
            agrees = equal(self._field(array, "DTYPE"), read_word(guard, 1))
            agrees = agrees & equal(self._field(array, "FLAGS", "i32") & flags, flags)
            self._expect(agrees & equal(rank, read_word(guard, 3)), g)
            lengths, expected = self.let(self._field(array, "SHAPE")), self.let(guard + 32)
            with self.count(0, rank) as axis:
                self._expect(equal(read_word(lengths, axis), read_word(expected, axis)), g)
            self.change(guard, expected + rank * 8)

    def _expect(self, condition: Expression, number: Expression) -> None:
        """Refuse the object of a number where a condition does not hold."""
        with self.when(~condition):
            self.give_back(-1 - number)

    def _field(self, array: Expression, name: str, kind: str = "i64") -> Expression:
        """A field of an array object."""
        return call("load", call(f"ptr_{kind}", array + self.offsets[name]), 0, 0)


class Disjoint(SystemProgram):
    """The step that looks whether donated arrays overlap with no other array.

    Its words: begin, end, number of arrays, number of donated ones; (slot, bytes) of each, the
    donated ones first.
    """

    def write(self) -> None:
        n_arrays, n_donated = self.word(WORDS, 2), self.word(WORDS, 3)
        with self.count(0, n_donated) as i:
            start, end = self._span(i)
            with self.count(i + 1, n_arrays) as j:
                other, other_end = self._span(j)
                with self.when((other < end) & (start < other_end)):
                    self.give_back(abi.OVERLAP)

    def _span(self, k: Expression) -> tuple[Variable, Variable]:
        entry = self.let(WORDS + (k * 16 + 32))
        start = self.word(SLOTS, read_word(entry, 0))
        return start, self.let(start + read_word(entry, 1))


class _Control(SystemProgram):
    """Base of loops and branches."""

    def sets(self, words: Mapping[str, Expression]) -> Variable:
        """Aim some slots at parts of what others point to; returns what follows the sets."""
        sets = self.let(WORDS + 8 * len(words))
        with self.count(0, words["n_sets"]) as k:
            row = self.let(sets + k * 24)
            address = read_word(SLOTS, read_word(row, 1)) + read_word(row, 2)
            self.put_word(SLOTS, read_word(row, 0), address)
        return self.let(sets + words["n_sets"] * 24)

    def run_table(self, words: Mapping[str, Expression], table: Expression) -> None:
        """Run a table; where a step fails, so does this."""
        code = self.call(words["executor"], SLOTS, table, -1)
        with self.when(is_other(code, 0)):
            self.give_back(read_word(SLOTS, 0))

    def value(self, words: Mapping[str, Expression], name: str, kind: str) -> Expression:
        """A number in an array."""
        address = read_word(SLOTS, words[f"{name}_slot"]) + words[f"{name}_offset"]
        return call("load", call(f"ptr_{kind}", address), 0, 0)


class LoopOfTables(_Control):
    """The step that runs a table again and again: `abi.LOOP_WORDS`."""

    def write(self) -> None:
        words = self.given(abi.LOOP_WORDS)
        turns = self.sets(words)
        moves = self.let(turns + words["n_turns"] * 24)
        with self.count(0, words["length"]) as i:
            with self.when(equal(i & 7, 7)):
                self.stop_if_failed(self.call(read_word(SLOTS, abi.LOOK_SLOT), SLOTS))
            with self.when(is_other(words["condition"], 0)):
                self.run_table(words, words["condition"])
                with self.when(equal(self.value(words, "condition", "u8"), 0)):
                    self.give_back(0)
            self.run_table(words, words["body"])
            with self.count(0, words["n_turns"]) as t:
                row = self.let(turns + t * 24)
                now, following, spare = (self.word(row, k) for k in range(3))
                new, old = self.word(SLOTS, following), self.word(SLOTS, spare)
                for value, place in ((new, now), (old, following), (new, spare)):
                    self.put_word(SLOTS, place, value)
            with self.count(0, words["n_moves"]) as m:
                row = self.let(moves + m * 16)
                slot = self.word(row)
                self.put_word(SLOTS, slot, read_word(SLOTS, slot) + read_word(row, 1))


class BranchOfTables(_Control):
    """The step that runs one of several tables: `abi.BRANCH_WORDS`."""

    def write(self) -> None:
        words = self.given(abi.BRANCH_WORDS)
        tables = self.sets(words)
        index = call("minimum", self.value(words, "index", "i64"), words["n_branches"] - 1)
        self.run_table(words, read_word(tables, call("maximum", index, 0)))
