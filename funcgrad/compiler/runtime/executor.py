"""The executor, which runs tables of steps, and the steps that run tables: loops and branches.

They are LLVM assembly, compiled once per machine and kept in the disk cache like any kernel. The
layouts of the tables are part of the kernel ABI (`docs/compiler.md`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache

from funcgrad.compiler import abi
from funcgrad.compiler.native.assembly import Assembly, Code
from funcgrad.compiler.native.control_word import ControlWords

STEP = "ptr noalias %slots, ptr noalias %args"
"""The arguments of a kernel."""

_COARSE = 6
"""Linux's clock that costs least, and the usual one of other systems that have such functions."""

_SECOND = 1_000_000_000


def executor_code(offsets: Mapping[str, int]) -> Code:
    """The executor, for a machine on which array objects have their fields at these offsets."""
    writer = _Executor(offsets)
    writer.run()
    writer.look()
    return writer.finished()


class _Executor(ControlWords):
    is_brief = True

    def __init__(self, offsets: Mapping[str, int]) -> None:
        super().__init__()
        self.offsets = offsets

    def run(self) -> None:
        """Run a table: ``int64`` of ``int64* slots``, ``int64* table``, ``int64 n_objects``.

        The number of objects is -1 where a step of another table runs this one.

        ``slots[FIRST_SLOT + k], k < n_objects``: address of a Python object, replaced by that of
        its data. The table: number of steps; number of guarded objects; word offset of the guards;
        for each step (kernel address, word offset of its arguments, whether subnormal numbers are
        zero while it runs, on processors that can); arguments; guards.

        A step that is not such runs with the caller's control word: so do those that run tables.

        Returns 0; 1 + the index of the step that failed, with its error code in ``slots[0]``; or,
        before anything has run, -1 - the index of the first object that does not agree.
        """
        arguments = "ptr %slots, ptr %table, i64 %n_objects"
        with self.function("fg_run", arguments, "i64"):
            objects = self.entry("%slots", abi.FIRST_SLOT)
            with self.when(self.test("sgt", "%n_objects", 0)):
                guarded = self.word("%table", 1)
                guards = self.entry("%table", self.word("%table", 2))
                with self.when(self.test("sgt", guarded, 0)):
                    self._check_objects(objects, guarded, guards)
                with self.turns("0", "%n_objects") as (k, _, _):
                    slot = self.entry(objects, k)
                    self.put_word(self._field(self.word(slot, kind="ptr"), "DATA"), slot)
            steps, rows = self.word("%table"), self.entry("%table", 3)
            self.put_word("@fg_look", "%slots", abi.LOOK_SLOT, "ptr")
            # Before a step that runs a table others have raised flags, which are not the caller's.
            with self.when(self.test("sge", "%n_objects", 0)):
                self.put_word(self.control(), "%slots", abi.MODE_SLOT)
            with (
                self.when(self.test("sgt", steps, 0)),
                self.turns("0", steps, ("i64", "0")) as (i, (mode,), following),
            ):
                row = self.at(rows, (i, 24))
                kernel = self.word(row, kind="ptr")
                args = self.entry("%table", self.word(row, 1))
                wanted = self.word(row, 2)
                with self.when(self.test("ne", mode, wanted)):
                    callers = self.word("%slots", abi.MODE_SLOT)
                    flushes = self.test("ne", wanted, 0)
                    self.set_control(self.pick(flushes, self.flushing(callers), callers))
                code = self.let(f"call i64 {kernel}(ptr %slots, ptr {args})")
                with self.when(self.test("ne", code, 0)):
                    self.put_word(code, "%slots")
                    self._leave_mode()
                    self.leave(self.add(i, 1))
                following.append(wanted)
            self._leave_mode()

    def _leave_mode(self) -> None:
        """Give the caller its control word back, which a handler of a signal may have changed."""
        self.set_control(self.word("%slots", abi.MODE_SLOT))

    def _check_objects(self, objects: str, guarded: str, guards: str) -> None:
        """Return where an object does not agree with its guard.

        A guard: address of the type, address of the dtype, flags that must be set, number of axes,
        lengths. The first objects must be arrays that agree with them; others are not checked.
        """
        with self.turns("0", guarded, ("ptr", guards)) as (g, (guard,), after):
            array = self.word(objects, g, "ptr")
            self._expect(self.test("eq", self._field(array, "CLASS"), self.word(guard)), g)
            dtype = self.test("eq", self._field(array, "DTYPE"), self.word(guard, 1))
            flags = self.let(f"trunc i64 {self.word(guard, 2)} to i32")
            relevant = self.let(f"and i32 {self._field(array, 'FLAGS', 'i32')}, {flags}")
            behaved = self.test("eq", relevant, flags, "i32")
            rank = self.let(f"sext i32 {self._field(array, 'NDIM', 'i32')} to i64")
            same_rank = self.test("eq", rank, self.word(guard, 3))
            self._expect(self.every(dtype, behaved, same_rank), g)
            lengths, expected = self._field(array, "SHAPE", "ptr"), self.entry(guard, 4)
            with self.count("0", rank) as axis:
                found = self.word(lengths, axis)
                self._expect(self.test("eq", found, self.word(expected, axis)), g)
            after.append(self.entry(expected, rank))

    def _expect(self, condition: str, number: str) -> None:
        """Refuse the object of a number where a condition does not hold."""
        with self.when(self.lacks(condition)):
            self.leave(self.let(f"xor i64 {number}, -1"))

    def _field(self, array: str, name: str, kind: str = "i64") -> str:
        """A field of an array object."""
        return self.let(f"load {kind}, ptr {self.after(array, self.offsets[name])}")

    def look(self) -> None:
        """The error code to stop with, or 0: ``int64`` of ``int64* slots``.

        Of the threads that run a program only its own looks at the clock, and only the main thread
        asks Python whether a signal has come, as Python itself does.
        """
        with self.function("fg_look", "ptr %slots", "i64"):
            place = self.entry("%slots", abi.STOP_SLOT)
            stop = self.let(f"load atomic i64, ptr {place} monotonic, align 8")
            with self.when(self.test("ne", stop, 0)):
                self.leave(stop)
            if sys.platform == "win32":
                return
            owner, own = self.word("%slots", abi.OWNER_SLOT), self.invoke("i64", "pthread_self")
            is_shared, is_other = self.test("ne", owner, 0), self.test("ne", owner, own)
            with self.when(self.every(is_shared, is_other)):
                self.leave("0")
            now = self._now()
            with self.when(self.test("slt", now, self.word("%slots", abi.NEXT_SLOT))):
                self.leave("0")
            deadline, later = self.word("%slots", abi.DEADLINE_SLOT), self.add(now, abi.LOOKS_EVERY)
            following = self.pick(self.test("slt", deadline, later), deadline, later)
            self.put_word(following, "%slots", abi.NEXT_SLOT)
            control = self.word("%slots", abi.CONTROL_SLOT, "ptr")
            words = {name: k for k, name in enumerate(abi.CONTROL_WORDS)}
            with self.when(self.test("eq", self.word(control, words["main"]), own)):
                self._ask_python(control, words, place)
            with self.when(self.test("sge", now, deadline)):
                self._stop(place, abi.TIMED_OUT)

    def _now(self) -> str:
        """The time in nanoseconds."""
        time = self.room("{ i64, i64 }")
        self.invoke("i32", "clock_gettime", ("i32", _COARSE), ("ptr", time))
        return self.add(self.mul(self.word(time), _SECOND), self.word(time, 1))

    def _ask_python(self, control: str, words: Mapping[str, int], stop: str) -> None:
        """Stop where a signal's handler has raised, and keep what it has raised.

        It runs with the control word of whoever has called, as it would anywhere else.
        """
        ensure, release, check, fetch = (
            self.word(control, words[name], "ptr")
            for name in ("ensure", "release", "check", "fetch")
        )
        own = self.control()
        self.set_control(self.word("%slots", abi.MODE_SLOT))
        state = self.let(f"call i32 {ensure}()")
        is_raised = self.test("ne", self.let(f"call i32 {check}()"), 0, "i32")
        with self.when(is_raised):
            places = [self.entry("%slots", abi.RAISED_SLOT + k) for k in range(3)]
            self.do(f"call void {fetch}({', '.join(f'ptr {place}' for place in places)})")
        self.do(f"call void {release}(i32 {state})")
        self.put_word(self.control(), "%slots", abi.MODE_SLOT)
        self.set_control(own)
        with self.when(is_raised):
            self._stop(stop, abi.INTERRUPTED)

    def _stop(self, place: str, reason: int) -> None:
        self.do(f"store atomic i64 {reason}, ptr {place} monotonic, align 8")
        self.leave(str(reason))


@cache
def disjoint_code() -> Code:
    """The step that looks whether donated arrays overlap with no other array.

    Its words: begin, end, number of arrays, number of donated ones; (slot, bytes) of each, the
    donated ones first.
    """
    writer = Assembly()

    def span(k: str) -> tuple[str, str]:
        entry = writer.at("%args", (k, 16))
        start = writer.word("%slots", writer.word(entry, 4))
        return start, writer.let(f"add i64 {start}, {writer.word(entry, 5)}")

    with writer.function("fg_disjoint", STEP, "i64"):
        n_arrays, n_donated = writer.word("%args", 2), writer.word("%args", 3)
        with writer.count("0", n_donated) as i:
            start, end = span(i)
            with writer.count(writer.add(i, 1), n_arrays) as j:
                other, other_end = span(j)
                begins, ends = writer.test("ult", other, end), writer.test("ult", start, other_end)
                with writer.when(writer.every(begins, ends)):
                    writer.leave(str(abi.OVERLAP))
    return writer.finished()


class _Control(Assembly):
    """Base of loops and branches."""

    is_brief = True

    def sets(self, sets: str) -> str:
        """Aim some slots at parts of what others point to; returns what follows the sets."""
        with self.count("0", "%n_sets") as k:
            row = self.at(sets, (k, 24))
            address = self.word("%slots", self.word(row, 1))
            address = self.let(f"add i64 {address}, {self.word(row, 2)}")
            self.put_word(address, "%slots", self.word(row))
        return self.at(sets, ("%n_sets", 24))

    def run(self, table: str) -> None:
        """Run a table; where a step fails, so does this."""
        run = self.let("inttoptr i64 %executor to ptr")
        code = self.let(f"call i64 {run}(ptr %slots, ptr {table}, i64 -1)")
        with self.when(self.test("ne", code, 0)):
            self.leave(self.word("%slots"))

    def value(self, slot: str, offset: str, kind: str) -> str:
        return self.let(f"load {kind}, ptr {self.array(slot, offset)}")


@cache
def loop_code() -> Code:
    """The step that runs a table again and again: `abi.LOOP_WORDS`."""
    writer = _Control()
    with writer.function("fg_loop", "ptr %slots, ptr %args", "i64"):
        writer.name_words(abi.LOOP_WORDS)
        turns = writer.sets(writer.entry("%args", len(abi.LOOP_WORDS)))
        moves = writer.at(turns, ("%n_turns", 24))
        tables = [writer.let(f"inttoptr i64 %{x} to ptr") for x in ("body", "condition")]
        has_condition = writer.test("ne", "%condition", 0)
        with writer.count("0", "%length") as i:
            eighth = writer.let(f"and i64 {i}, 7")
            with writer.when(writer.test("eq", eighth, 7)):
                look = writer.word("%slots", abi.LOOK_SLOT, "ptr")
                stop = writer.let(f"call i64 {look}(ptr %slots)")
                with writer.when(writer.test("ne", stop, 0)):
                    writer.leave(stop)
            with writer.when(has_condition):
                writer.run(tables[1])
                flag = writer.value("%condition_slot", "%condition_offset", "i8")
                with writer.when(writer.test("eq", flag, 0, "i8")):
                    writer.leave("0")
            writer.run(tables[0])
            with writer.count("0", "%n_turns") as t:
                row = writer.at(turns, (t, 24))
                now, following, spare = (
                    writer.entry("%slots", writer.word(row, k)) for k in range(3)
                )
                new, old = writer.word(following), writer.word(spare)
                for value, place in ((new, now), (old, following), (new, spare)):
                    writer.put_word(value, place)
            with writer.count("0", "%n_moves") as m:
                row = writer.at(moves, (m, 16))
                slot = writer.entry("%slots", writer.word(row))
                moved = writer.let(f"add i64 {writer.word(slot)}, {writer.word(row, 1)}")
                writer.put_word(moved, slot)
    return writer.finished()


@cache
def branch_code() -> Code:
    """The step that runs one of several tables: `abi.BRANCH_WORDS`."""
    writer = _Control()
    with writer.function("fg_branch", "ptr %slots, ptr %args", "i64"):
        writer.name_words(abi.BRANCH_WORDS)
        tables = writer.sets(writer.entry("%args", len(abi.BRANCH_WORDS)))
        index, last = (
            writer.value("%index_slot", "%index_offset", "i64"),
            writer.sub("%n_branches", 1),
        )
        index = writer.pick(writer.test("slt", index, 0), 0, index)
        index = writer.pick(writer.test("sgt", index, last), last, index)
        writer.run(writer.word(tables, index, "ptr"))
    return writer.finished()
