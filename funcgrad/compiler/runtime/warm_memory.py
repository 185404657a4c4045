"""Memory of large results: what was freed last is given out again, without page faults.

The system takes the memory of a large array back when it is freed, and gives it out page by page
when it is touched again, which takes longer than most programs take to write it. So large results
are made with a memory handler of NumPy's (NEP 49): they are arrays like any other, own their
memory, and give it back to the handler when they die, whoever holds them last. The handler keeps
some of it, up to `MOST_BYTES`, the oldest goes first, and gives out what has the size asked for.

NumPy calls a handler wherever arrays are freed, so its functions are native code. They wait for
nobody: who finds the table in use, as it may be for ever in the child of a fork, calls NumPy's own
functions, from which all of the memory comes.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from funcgrad.base import environment
from funcgrad.base.records import dataclass
from funcgrad.compiler.foreign import array_interface, pointer_of, word_at
from funcgrad.compiler.native.assembly import Assembly, Code
from funcgrad.compiler.runtime import kernel_store
from funcgrad.errors import ArgumentError

LEAST_BYTES = 1 << 18
"""Smaller arrays come from where NumPy's come from, which keeps enough at hand for them."""

MOST_BYTES = 1 << 28
"""How much memory of arrays that are gone is kept for the next ones by default."""

MOST_ARRAYS = 32
"""Most arrays that are kept."""

_WORDS = ["busy", "kept", "most", "clock", "context", "malloc", "calloc", "realloc", "free"]
"""Words of the table: whether somebody is at work on it; bytes that are kept, and the most; how
many arrays were freed; NumPy's own functions and their first argument. Then follow address, size
and time of every array that is kept; the address of an entry without one is 0."""

_ENTRY_WORDS = 3

_WORD = {name: k for k, name in enumerate(_WORDS)}


@cache
def code() -> Code:
    """The functions."""
    return _Functions().text()


class _Functions(Assembly):
    is_brief = True

    def text(self) -> Code:
        self._search("latest")
        self._search("earliest")
        self._search("unused")
        self._give_out()
        for name, own, kinds in (
            ("give_out_zeros", "calloc", "i64 %count, i64 %size"),
            ("change", "realloc", "i64 %array, i64 %size"),
        ):
            with self.function(name, f"ptr %table, {kinds}", "i64"):
                self.leave(self._own(own, kinds))
        self._take_back()
        self._drop()
        # Writes the addresses of a handler's functions, and of the one that drops what is kept.
        with self.function("fg_warm_memory", "ptr %to", "i64"):
            functions = ("give_out", "give_out_zeros", "change", "take_back", "drop")
            for k, name in enumerate(functions):
                self.put_word(f"@{name}", "%to", k, "ptr")
        return self.finished()

    def _search(self, which: str) -> None:
        """An entry of the table: unused, or the earliest, or the latest of a size."""
        with self.function(which, "ptr %table, i64 %size", "ptr"):
            entries = self.entry("%table", len(_WORDS))
            nothing = ("ptr", "null"), ("i64", "0")
            with self.turns("0", str(MOST_ARRAYS), *nothing) as (i, (best, latest), new):
                entry = self.at(entries, (i, 8 * _ENTRY_WORDS))
                array, size, time = (self.word(entry, k) for k in range(_ENTRY_WORDS))
                is_first = self.test("eq", best, "null", "ptr")
                if which == "unused":
                    is_best = self.every(self.test("eq", array, 0), is_first)
                else:
                    relation = "sgt" if which == "latest" else "slt"
                    is_better = self.let(f"or i1 {is_first}, {self.test(relation, time, latest)}")
                    is_best = self.every(self.test("ne", array, 0), is_better)
                    if which == "latest":
                        is_best = self.every(is_best, self.test("eq", size, "%size"))
                new.append(self.pick(is_best, entry, best, "ptr"))
                new.append(self.pick(is_best, time, latest))
            self.leave(new[0])

    def _word_of(self, name: str) -> str:
        return self.word("%table", _WORD[name])

    def _own(self, name: str, arguments: str) -> str:
        """Result of NumPy's own function."""
        function = self.let(f"inttoptr i64 {self._word_of(name)} to ptr")
        given = f"{function}(i64 {self._word_of('context')}, {arguments})"
        if name == "free":
            self.do(f"call void {given}")
            return ""
        return self.let(f"call i64 {given}")

    def _enter(self) -> str:
        """Whether nobody else is at work on the table, where we are from now on."""
        busy = self.entry("%table", _WORD["busy"])
        return self.test("eq", self.let(f"atomicrmw xchg ptr {busy}, i64 1 acquire"), 0)

    def _go_away(self) -> None:
        busy = self.entry("%table", _WORD["busy"])
        self.do(f"store atomic i64 0, ptr {busy} release, align 8")

    def _taken(self, entry: str) -> tuple[str, str]:
        """Address and size of an array that is no longer kept."""
        array, size = self.word(entry), self.word(entry, 1)
        self.put_word("0", entry)
        self.put_word(self.sub(self._word_of("kept"), size), "%table", _WORD["kept"])
        return array, size

    def _found(self, which: str, size: str = "0") -> tuple[str, str]:
        """An entry, and whether there is one."""
        entry = self.let(f"call ptr @{which}(ptr %table, i64 {size})")
        return entry, self.test("ne", entry, "null", "ptr")

    def _free(self, entry: str) -> None:
        array, size = self._taken(entry)
        self._own("free", f"i64 {array}, i64 {size}")

    def _give_out(self) -> None:
        with self.function("give_out", "ptr %table, i64 %size", "i64"):
            with self.when(self._enter()):
                entry, is_there = self._found("latest", "%size")
                with self.when(is_there):
                    array, _ = self._taken(entry)
                    self._go_away()
                    self.leave(array)
                self._go_away()
            self.leave(self._own("malloc", "i64 %size"))

    def _take_back(self) -> None:
        with self.function("take_back", "ptr %table, i64 %array, i64 %size"):
            most = self._word_of("most")
            is_kept = self.every(
                self.test("ne", "%array", 0),
                self.test("sge", "%size", LEAST_BYTES),
                self.test("sle", "%size", most),
            )
            with self.when(is_kept), self.when(self._enter()):
                self.go("room")
                self.start("room")
                together = self.add(self._word_of("kept"), "%size")
                entry, is_there = self._found("unused")
                self.fork(self.every(self.test("sle", together, most), is_there), "keep", "drop")
                self.start("drop")
                self._free(self._found("earliest")[0])
                self.go("room")
                self.start("keep")
                clock = self.add(self._word_of("clock"), 1)
                self.put_word(clock, "%table", _WORD["clock"])
                for k, value in enumerate(("%array", "%size", clock)):
                    self.put_word(value, entry, k)
                self.put_word(together, "%table", _WORD["kept"])
                self._go_away()
                self.leave()
            self._own("free", "i64 %array, i64 %size")

    def _drop(self) -> None:
        """Give back all that is kept."""
        with self.function("drop", "ptr %table"), self.when(self._enter()):
            self.go("next")
            self.start("next")
            entry, is_there = self._found("earliest")
            self.fork(is_there, "one", "end")
            self.start("one")
            self._free(entry)
            self.go("next")
            self.start("end")
            self._go_away()


_SET_HANDLER, _DEFAULT_HANDLER = 304, 306
"""Places in NumPy's C interface."""

_HEAD_BYTES = 128
"""Bytes at the begin of a handler: its name, and a byte for the version of what follows."""

_VERSION = 1
_NAME = b"funcgrad"


@dataclass(frozen=True)
class Handler:
    """Our memory handler.

    Attributes:
        capsule: What NumPy calls it.
        exchange: Makes a handler the one of this context; returns the one before.
        table: What it keeps.
    drop: Gives that back.
    """

    capsule: Any
    exchange: Callable[[Any], Any]
    table: Any
    drop: Callable[[], Any]


@cache
def handler() -> Handler | None:
    """The handler, made when the first large result is; nothing where NumPy has no place for it."""
    interface = array_interface()
    if not interface:
        return None
    own = pointer_of(_object_at(word_at(word_at(interface + 8 * _DEFAULT_HANDLER))))
    head = ctypes.string_at(own, _HEAD_BYTES)
    if head[-1] != _VERSION:
        return None
    table = np.zeros(len(_WORDS) + _ENTRY_WORDS * MOST_ARRAYS, np.int64)
    table[_WORD["most"]] = most_bytes()
    first = _WORD["context"]
    table[first : len(_WORDS)] = [
        word_at(own + _HEAD_BYTES + 8 * k) for k in range(len(_WORDS) - first)
    ]
    found = np.zeros(5, np.int64)
    fill = kernel_store.code_address(code())
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(fill)(found.ctypes.data)
    *functions, drop = found.tolist()
    words = np.array([table.ctypes.data, *functions], np.int64)
    label = np.frombuffer(_NAME.ljust(_HEAD_BYTES - 1, b"\0") + bytes([_VERSION]), np.uint8)
    described = np.concatenate([label, words.view(np.uint8)])
    for array in (table, described):  # results may outlive this module, and die by them
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
    set_handler = word_at(interface + 8 * _SET_HANDLER)
    made = Handler(
        _NEW_CAPSULE(described.ctypes.data, _CAPSULE, None),
        ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(set_handler),
        table,
        partial(ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(drop), table.ctypes.data),
    )
    return made if _is_working(made) else None


def _object_at(address: int) -> Any:
    return ctypes.cast(address, ctypes.py_object).value


_NEW_CAPSULE: Any = ctypes.pythonapi.PyCapsule_New
_NEW_CAPSULE.restype = ctypes.py_object
_NEW_CAPSULE.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_CAPSULE = b"mem_handler"
"""The name of capsules with handlers; the text of ours must live as long as they."""


def _is_working(made: Handler) -> bool:
    """Whether what was freed is given out again."""
    make = partial(_made_by, made)
    x = make((LEAST_BYTES,), np.uint8)
    address = x.ctypes.data
    del x
    is_same = make((LEAST_BYTES,), np.uint8).ctypes.data == address
    made.drop()
    return bool(is_same) or not made.table[_WORD["most"]]


def _made_by(made: Handler, shape: Any, dtype: Any) -> np.ndarray:
    before = made.exchange(made.capsule)
    try:
        return np.empty(shape, dtype)
    finally:
        made.exchange(before)


def is_large(shape: Sequence[int], dtype: Any) -> bool:
    """Whether arrays of a type are made here."""
    return math.prod(shape) * np.dtype(dtype).itemsize >= LEAST_BYTES


@cache
def maker() -> Callable[[Any, Any], np.ndarray] | None:
    """The like of `numpy.empty` for large arrays; nothing where there is no handler."""
    made = handler()
    return None if made is None else partial(_made_by, made)


def most_bytes() -> int:
    """How much memory is kept at most: ``FUNCGRAD_KEEP_MEMORY``, such as ``64M``."""
    return environment.n_bytes("FUNCGRAD_KEEP_MEMORY", MOST_BYTES, ArgumentError)


def kept_bytes() -> int:
    """How much memory is kept for results to come."""
    made = handler() if handler.cache_info().currsize else None
    return 0 if made is None else int(made.table[_WORD["kept"]])


def drop_kept() -> None:
    """Give back what is kept."""
    made = handler() if handler.cache_info().currsize else None
    if made is not None:
        made.drop()
