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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np

from funcgrad.base import environment
from funcgrad.base.records import dataclass
from funcgrad.compiler.foreign import array_interface, pointer_of, word_at
from funcgrad.compiler.loops.builder import SystemProgram, is_other, read_word
from funcgrad.compiler.loops.language import Expression, NamedFunction, Variable, call, equal
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


class _Table(SystemProgram):
    """Base of the functions of a handler, of the table, which are called as NumPy calls them."""

    table = Variable("table")

    def of(self, name: str) -> Expression:
        """A word of the table."""
        return read_word(self.table, _WORD[name])

    def own(self, name: str, *operands: Expression) -> Variable:
        """Result of NumPy's own function."""
        return self.call(self.of(name), self.of("context"), *operands)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Statements that run if nobody else is at work on the table."""
        busy = self.table + 8 * _WORD["busy"]
        with self.when(call("replace_shared", busy, 0, 1)):
            yield
            self.do("store_shared", busy, 0)

    def search(self, is_better: Callable[[Mapping[str, Expression]], Expression]) -> Variable:
        """The entry that is better than all others; 0 where there is none.

        Args: is_better: Whether one with some words is better than one that was freed at some time.
        """
        best, latest = self.let(0), self.let(0)
        with self.count(0, MOST_ARRAYS) as i:
            entry = self.let(self.table + (i * (8 * _ENTRY_WORDS) + 8 * len(_WORDS)))
            array, size, time = (self.word(entry, k) for k in range(_ENTRY_WORDS))
            words = {"array": array, "size": size, "time": time, "best": best, "latest": latest}
            with self.when(is_better(words)):
                self.change(best, entry)
                self.change(latest, time)
        return best

    def taken(self, entry: Expression) -> tuple[Variable, Variable]:
        """Address and size of an array that is no longer kept."""
        array, size = self.word(entry), self.word(entry, 1)
        self.put_word(entry, 0, 0)
        self.put_word(self.table, _WORD["kept"], self.of("kept") - size)
        return array, size

    def earliest(self) -> Variable:
        """The entry of the array that was freed before all others."""
        return self.search(
            lambda x: is_other(x["array"], 0) & (equal(x["best"], 0) | (x["time"] < x["latest"]))
        )

    def free(self, entry: Expression) -> None:
        """Return the memory of an entry to its allocator."""
        self.own("free", *self.taken(entry))


class _GiveOut(_Table):
    facts = SystemProgram.facts_of("table", "size")

    def write(self) -> None:
        size, found = Variable("size"), self.let(0)
        with self.alone():
            entry = self.search(
                lambda x: (
                    is_other(x["array"], 0)
                    & equal(x["size"], size)
                    & (equal(x["best"], 0) | (x["time"] > x["latest"]))
                )
            )
            with self.when(is_other(entry, 0)):
                self.change(found, self.taken(entry)[0])
        with self.when(equal(found, 0)):
            self.change(found, self.own("malloc", size))
        self.give_back(found)


class _Own(_Table):
    """A function of NumPy's own handler."""

    facts = SystemProgram.facts_of("table", "first", "second")

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def write(self) -> None:
        self.give_back(self.own(self.name, Variable("first"), Variable("second")))


class _TakeBack(_Table):
    facts = SystemProgram.facts_of("table", "array", "size")

    def write(self) -> None:
        array, size, most = Variable("array"), Variable("size"), self.let(self.of("most"))
        left = self.let(array)
        is_kept = is_other(array, 0) & (size >= LEAST_BYTES) & (size <= most)
        with self.when(is_kept), self.alone():
            with self.repeat(self.of("kept") + size > most):
                self.free(self.earliest())
            unused = self.search(lambda x: equal(x["array"], 0) & equal(x["best"], 0))
            with self.when(equal(unused, 0)):
                self.change(unused, self.earliest())
                self.free(unused)
            clock = self.let(self.of("clock") + 1)
            self.put_word(self.table, _WORD["clock"], clock)
            for k, value in enumerate((array, size, clock)):
                self.put_word(unused, k, value)
            self.put_word(self.table, _WORD["kept"], self.of("kept") + size)
            self.change(left, 0)
        with self.when(is_other(left, 0)):
            self.own("free", left, size)


class _Drop(_Table):
    """Give back all that is kept."""

    facts = SystemProgram.facts_of("table")

    def write(self) -> None:
        with self.alone(), self.repeat(self.of("kept") > 0):
            self.free(self.earliest())


_FUNCTIONS: Mapping[str, NamedFunction] = {
    "give_out": _GiveOut.named(),
    "give_out_zeros": _Own.named("calloc"),
    "change": _Own.named("realloc"),
    "take_back": _TakeBack.named(),
    "drop": _Drop.named(),
}


class WarmMemory(SystemProgram):
    """Write the addresses of a handler's functions, and of the one that drops what is kept."""

    facts = SystemProgram.facts_of("to", **_FUNCTIONS)

    def write(self) -> None:
        for k, name in enumerate(_FUNCTIONS):
            self.put_word(Variable("to"), k, Variable(name))


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
    default = word_at(word_at(interface + 8 * _DEFAULT_HANDLER))
    own = pointer_of(ctypes.cast(default, ctypes.py_object).value)
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
    fill = kernel_store.code_address(WarmMemory.named())
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
