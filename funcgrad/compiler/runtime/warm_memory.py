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
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from funcgrad.compiler.foreign import array_interface, pointer_of, word_at
from funcgrad.compiler.runtime import kernel_store
from funcgrad.records import dataclass

LEAST_BYTES = 1 << 18
"""Smaller arrays come from where NumPy's come from, which keeps enough at hand for them."""

MOST_BYTES = 1 << 28
"""How much memory of arrays that are gone is kept for the next ones."""

MOST_ARRAYS = 32
"""Of how many arrays at most."""

_WORDS = ["busy", "kept", "most", "clock", "context", "malloc", "calloc", "realloc", "free"]
"""Words of the table: whether somebody is at work on it; bytes that are kept, and the most; how
many arrays were freed; NumPy's own functions and their first argument. Then follow address, size
and time of every array that is kept; the address of an entry without one is 0."""

_ENTRY_WORDS = 3

_SEARCH = """
define internal ptr @NAME(ptr %table, i64 %size) nounwind noinline {
entry:
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %best = phi ptr [ null, %entry ], [ %best.next, %next ]
  %best.time = phi i64 [ 0, %entry ], [ %time.next, %next ]
  %word = mul nsw i64 %i, ENTRY_WORDS
  %at = add nsw i64 %word, ENTRIES
  %place = getelementptr inbounds i64, ptr %table, i64 %at
  %size.at = getelementptr inbounds i64, ptr %place, i64 1
  %time.at = getelementptr inbounds i64, ptr %place, i64 2
  %array = load i64, ptr %place
  %found = load i64, ptr %size.at
  %time = load i64, ptr %time.at
  %is.kept = icmp ne i64 %array, 0
  %is.free = icmp eq i64 %array, 0
  %is.equal = icmp eq i64 %found, %size
  %is.fitting = and i1 %is.kept, %is.equal
  %is.first = icmp eq ptr %best, null
  %is.later = icmp sgt i64 %time, %best.time
  %is.earlier = icmp slt i64 %time, %best.time
  %is.better = or i1 %is.first, ORDER
  %is.best = and i1 CONDITION, %is.better
  br label %next

next:
  %best.next = select i1 %is.best, ptr %place, ptr %best
  %time.next = select i1 %is.best, i64 %time, i64 %best.time
  %i.next = add nsw i64 %i, 1
  %more = icmp slt i64 %i.next, MOST_ARRAYS
  br i1 %more, label %head, label %done

done:
  ret ptr %best.next
}
"""

_FUNCTIONS = """
define internal i1 @enter(ptr %table) nounwind {
entry:
  %busy = getelementptr inbounds i64, ptr %table, i64 BUSY
  %was = atomicrmw xchg ptr %busy, i64 1 acquire
  %is.ours = icmp eq i64 %was, 0
  ret i1 %is.ours
}

define internal void @leave(ptr %table) nounwind {
entry:
  %busy = getelementptr inbounds i64, ptr %table, i64 BUSY
  store atomic i64 0, ptr %busy release, align 8
  ret void
}

define internal i64 @word(ptr %table, i64 %k) nounwind {
entry:
  %at = getelementptr inbounds i64, ptr %table, i64 %k
  %found = load i64, ptr %at
  ret i64 %found
}

define internal i64 @take(ptr %table, ptr %place) nounwind {
entry:
  %size.at = getelementptr inbounds i64, ptr %place, i64 1
  %array = load i64, ptr %place
  %size = load i64, ptr %size.at
  store i64 0, ptr %place
  %kept.at = getelementptr inbounds i64, ptr %table, i64 KEPT
  %kept = load i64, ptr %kept.at
  %less = sub nsw i64 %kept, %size
  store i64 %less, ptr %kept.at
  ret i64 %array
}

define internal i64 @own_malloc(ptr %table, i64 %size) nounwind {
entry:
  %own = call i64 @word(ptr %table, i64 MALLOC)
  %context = call i64 @word(ptr %table, i64 CONTEXT)
  %function = inttoptr i64 %own to ptr
  %found = call i64 %function(i64 %context, i64 %size)
  ret i64 %found
}

define internal void @own_free(ptr %table, i64 %array, i64 %size) nounwind {
entry:
  %own = call i64 @word(ptr %table, i64 FREE)
  %context = call i64 @word(ptr %table, i64 CONTEXT)
  %function = inttoptr i64 %own to ptr
  call void %function(i64 %context, i64 %array, i64 %size)
  ret void
}

define internal i64 @give_out(ptr %table, i64 %size) nounwind {
entry:
  %is.ours = call i1 @enter(ptr %table)
  br i1 %is.ours, label %search, label %new

search:
  %place = call ptr @latest(ptr %table, i64 %size)
  %is.none = icmp eq ptr %place, null
  br i1 %is.none, label %none, label %known

known:
  %array = call i64 @take(ptr %table, ptr %place)
  call void @leave(ptr %table)
  ret i64 %array

none:
  call void @leave(ptr %table)
  br label %new

new:
  %made = call i64 @own_malloc(ptr %table, i64 %size)
  ret i64 %made
}

define internal i64 @give_out_zeros(ptr %table, i64 %count, i64 %size) nounwind {
entry:
  %own = call i64 @word(ptr %table, i64 CALLOC)
  %context = call i64 @word(ptr %table, i64 CONTEXT)
  %function = inttoptr i64 %own to ptr
  %made = call i64 %function(i64 %context, i64 %count, i64 %size)
  ret i64 %made
}

define internal i64 @change(ptr %table, i64 %array, i64 %size) nounwind {
entry:
  %own = call i64 @word(ptr %table, i64 REALLOC)
  %context = call i64 @word(ptr %table, i64 CONTEXT)
  %function = inttoptr i64 %own to ptr
  %made = call i64 %function(i64 %context, i64 %array, i64 %size)
  ret i64 %made
}

define internal void @take_back(ptr %table, i64 %array, i64 %size) nounwind {
entry:
  %is.none = icmp eq i64 %array, 0
  %is.small = icmp slt i64 %size, LEAST_BYTES
  %most = call i64 @word(ptr %table, i64 MOST)
  %is.large = icmp sgt i64 %size, %most
  %is.odd = or i1 %is.small, %is.large
  %is.other = or i1 %is.none, %is.odd
  br i1 %is.other, label %away, label %try

try:
  %is.ours = call i1 @enter(ptr %table)
  br i1 %is.ours, label %room, label %away

room:
  %kept.at = getelementptr inbounds i64, ptr %table, i64 KEPT
  %kept = load i64, ptr %kept.at
  %together = add nsw i64 %kept, %size
  %fits = icmp sle i64 %together, %most
  %free = call ptr @unused(ptr %table, i64 0)
  %is.there = icmp ne ptr %free, null
  %is.possible = and i1 %fits, %is.there
  br i1 %is.possible, label %keep, label %drop

drop:
  %first = call ptr @earliest(ptr %table, i64 0)
  %first.size.at = getelementptr inbounds i64, ptr %first, i64 1
  %first.size = load i64, ptr %first.size.at
  %dropped = call i64 @take(ptr %table, ptr %first)
  call void @own_free(ptr %table, i64 %dropped, i64 %first.size)
  br label %room

keep:
  %clock.at = getelementptr inbounds i64, ptr %table, i64 CLOCK
  %clock = load i64, ptr %clock.at
  %later = add nsw i64 %clock, 1
  store i64 %later, ptr %clock.at
  %size.at = getelementptr inbounds i64, ptr %free, i64 1
  %time.at = getelementptr inbounds i64, ptr %free, i64 2
  store i64 %array, ptr %free
  store i64 %size, ptr %size.at
  store i64 %later, ptr %time.at
  store i64 %together, ptr %kept.at
  call void @leave(ptr %table)
  ret void

away:
  call void @own_free(ptr %table, i64 %array, i64 %size)
  ret void
}

define internal void @drop(ptr %table) nounwind {
entry:
  %is.ours = call i1 @enter(ptr %table)
  br i1 %is.ours, label %next, label %done

next:
  %place = call ptr @earliest(ptr %table, i64 0)
  %is.none = icmp eq ptr %place, null
  br i1 %is.none, label %end, label %one

one:
  %size.at = getelementptr inbounds i64, ptr %place, i64 1
  %size = load i64, ptr %size.at
  %array = call i64 @take(ptr %table, ptr %place)
  call void @own_free(ptr %table, i64 %array, i64 %size)
  br label %next

end:
  call void @leave(ptr %table)
  br label %done

done:
  ret void
}

; Writes the addresses of the four functions of a handler, and of the one that drops what is kept.
define i64 @fg_warm_memory(ptr %to) nounwind {
entry:
  %fifth = getelementptr inbounds i64, ptr %to, i64 4
  store ptr @drop, ptr %fifth
  %second = getelementptr inbounds i64, ptr %to, i64 1
  %third = getelementptr inbounds i64, ptr %to, i64 2
  %fourth = getelementptr inbounds i64, ptr %to, i64 3
  store ptr @give_out, ptr %to
  store ptr @give_out_zeros, ptr %second
  store ptr @change, ptr %third
  store ptr @take_back, ptr %fourth
  ret i64 0
}
"""

_SEARCHES = {
    "latest": ("%is.fitting", "%is.later"),
    "earliest": ("%is.kept", "%is.earlier"),
    "unused": ("%is.free", "false"),
}


@cache
def code() -> kernel_store.Code:
    """The functions."""
    text = _FUNCTIONS
    for name, (condition, order) in _SEARCHES.items():
        found = _SEARCH.replace("NAME", name).replace("CONDITION", condition)
        text += found.replace("ORDER", order)
    for name, number in {
        "ENTRY_WORDS": _ENTRY_WORDS,
        "ENTRIES": len(_WORDS),
        "MOST_ARRAYS": MOST_ARRAYS,
        "LEAST_BYTES": LEAST_BYTES,
        **{name.upper(): i for i, name in enumerate(_WORDS)},
    }.items():
        text = re.sub(rf"\b{name}\b", str(number), text)
    return kernel_store.Code(text, "fg_warm_memory")


_SET_HANDLER, _DEFAULT_HANDLER = 304, 306
"""Places in NumPy's C interface."""

_HEAD_BYTES = 128
"""What a handler begins with: its name, and a byte for the version of what follows."""

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
    table[_WORDS.index("most")] = MOST_BYTES
    first = _WORDS.index("context")
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
    return bool(is_same)


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


def kept_bytes() -> int:
    """How much memory is kept for results to come."""
    made = handler() if handler.cache_info().currsize else None
    return 0 if made is None else int(made.table[_WORDS.index("kept")])


def drop_kept() -> None:
    """Give back what is kept."""
    made = handler() if handler.cache_info().currsize else None
    if made is not None:
        made.drop()
