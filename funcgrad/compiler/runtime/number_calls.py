"""Calls whose arguments and results are lists and tuples of numbers, from end to end.

Of a call with dozens of Python's numbers most is spent on looking at every one of them. Here a
single native function reads them from the lists, runs the program, and makes lists of the results.
It holds the interpreter's lock but for the program itself. What it reads and makes is as in
Python's and NumPy's stable binary interfaces: objects start with a count and their type, lists and
tuples hold their length and items, floats and float64 scalars their value.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from funcgrad.compiler.abi import FIRST_SLOT, NUMBER_CALL_WORDS
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.kernel_store import Code
from funcgrad.pytree import PyTreeDef

NUMBER, LIST, TUPLE = range(3)
"""Kinds of rows."""
_KINDS: Mapping[Any, int] = {None: NUMBER, list: LIST, tuple: TUPLE}

MOST_ROWS = 500
"""Larger trees are walked by Python: the containers that are open lie on the stack."""

_TUPLE_ITEMS = tuple.__basicsize__
"""Where the items of a tuple are, which has gained a field in Python 3.14."""

_SYMBOL = "fg_numbers"
_TEXT = """
; PyObject* call(PyObject* arguments, int64* block, int64* slots, double* numbers)
;   block: as NUMBER_CALL_WORDS. Returns a new reference: to the results, to the object that says
;   that the arguments are others, or to an int, what the executor returned; or NULL where memory
;   ends.
define ptr @fg_numbers(ptr %arguments, ptr %block, ptr %slots, ptr %numbers) nounwind {
entry:
READS
  %items = alloca ptr, i64 %n_items.w
  %rows = inttoptr i64 %arguments.w to ptr
  %n.rows = load i64, ptr %rows
  br label %take.head

take.head:
  %r = phi i64 [ 0, %entry ], [ %r.next, %took ]
  %more = icmp slt i64 %r, %n.rows
  br i1 %more, label %take, label %aim.start

take:
  %at = mul nsw i64 %r, 5
  %row = getelementptr inbounds i64, ptr %rows, i64 %at
ROW
  %is.root = icmp slt i64 %parent, 0
  br i1 %is.root, label %look, label %child

child:
  %parent.items.place = getelementptr inbounds ptr, ptr %items, i64 %parent
  %parent.items = load ptr, ptr %parent.items.place
  %child.place = getelementptr inbounds ptr, ptr %parent.items, i64 %index
  %child.object = load ptr, ptr %child.place
  br label %look

look:
  %object = phi ptr [ %arguments, %take ], [ %child.object, %child ]
  %type.place = getelementptr inbounds i8, ptr %object, i64 8
  %type.found = load i64, ptr %type.place
  %is.type = icmp eq i64 %type.found, %type
  br i1 %is.type, label %fits, label %missed

fits:
  %value.place = getelementptr inbounds i8, ptr %object, i64 16
  %is.number = icmp eq i64 %kind, 0
  br i1 %is.number, label %number, label %container

number:
  %number.found = load double, ptr %value.place
  %number.to = getelementptr inbounds double, ptr %numbers, i64 %value
  store double %number.found, ptr %number.to
  br label %took

container:
  %length = load i64, ptr %value.place
  %is.length = icmp eq i64 %length, %value
  br i1 %is.length, label %open, label %missed

open:
  %inline = getelementptr inbounds i8, ptr %object, i64 TUPLE_ITEMS
  %is.list = icmp eq i64 %kind, 1
  br i1 %is.list, label %of.list, label %opened

of.list:
  %apart.place = getelementptr inbounds i8, ptr %object, i64 24
  %apart = load ptr, ptr %apart.place
  br label %opened

opened:
  %own.items = phi ptr [ %inline, %open ], [ %apart, %of.list ]
  %own.place = getelementptr inbounds ptr, ptr %items, i64 %r
  store ptr %own.items, ptr %own.place
  br label %took

took:
  %r.next = add nsw i64 %r, 1
  br label %take.head

missed:
  %miss.object = inttoptr i64 %miss.w to ptr
  %keep.function = inttoptr i64 %keep.w to ptr
  call void %keep.function(ptr %miss.object)
  ret ptr %miss.object

aim.start:
  %objects = inttoptr i64 %objects.w to ptr
  %n.objects = load i64, ptr %objects
  %first.slot = getelementptr inbounds i64, ptr %slots, i64 FIRST_SLOT
  br label %aim.head

aim.head:
  %k = phi i64 [ 0, %aim.start ], [ %k.next, %aim ]
  %k.next = add nsw i64 %k, 1
  %more.objects = icmp slt i64 %k, %n.objects
  br i1 %more.objects, label %aim, label %start

aim:
  %place.at = getelementptr inbounds i64, ptr %objects, i64 %k.next
  %place = load i64, ptr %place.at
  %number.address = getelementptr inbounds double, ptr %numbers, i64 %place
  %slot = getelementptr inbounds i64, ptr %first.slot, i64 %k
  store ptr %number.address, ptr %slot
  br label %aim.head

start:
  %save.function = inttoptr i64 %save.w to ptr
  %restore.function = inttoptr i64 %restore.w to ptr
  %run.function = inttoptr i64 %run.w to ptr
  %table = inttoptr i64 %table.w to ptr
  %state = call ptr %save.function()
  %code = call i64 %run.function(ptr %slots, ptr %table, i64 0)
  call void %restore.function(ptr %state)
  %failed = icmp ne i64 %code, 0
  br i1 %failed, label %tell, label %give.start

tell:
  %int.function = inttoptr i64 %new_int.w to ptr
  %int = call ptr %int.function(i64 %code)
  ret ptr %int

give.start:
  %root.place = alloca ptr
  store ptr null, ptr %root.place
  %outs = inttoptr i64 %results.w to ptr
  %n.outs = load i64, ptr %outs
  %list.function = inttoptr i64 %new_list.w to ptr
  %tuple.function = inttoptr i64 %new_tuple.w to ptr
  %scalar.function = inttoptr i64 %new_scalar.w to ptr
  %scalar.type = inttoptr i64 %scalar.w to ptr
  br label %give.head

give.head:
  %o = phi i64 [ 0, %give.start ], [ %o.next, %gave ]
  %more.outs = icmp slt i64 %o, %n.outs
  br i1 %more.outs, label %give, label %done

give:
  %out.at = mul nsw i64 %o, 5
  %out.row = getelementptr inbounds i64, ptr %outs, i64 %out.at
OUTROW
  switch i64 %out.kind, label %give.tuple [
    i64 0, label %give.scalar
    i64 1, label %give.list
  ]

give.scalar:
  %scalar = call ptr %scalar.function(ptr %scalar.type, i64 0)
  %no.scalar = icmp eq ptr %scalar, null
  br i1 %no.scalar, label %no.memory, label %fill

fill:
  %result.from = getelementptr inbounds double, ptr %numbers, i64 %out.value
  %result.value = load double, ptr %result.from
  %result.to = getelementptr inbounds i8, ptr %scalar, i64 16
  store double %result.value, ptr %result.to
  br label %put

give.list:
  %list = call ptr %list.function(i64 %out.value)
  %no.list = icmp eq ptr %list, null
  br i1 %no.list, label %no.memory, label %open.list

open.list:
  %list.items.place = getelementptr inbounds i8, ptr %list, i64 24
  %list.items = load ptr, ptr %list.items.place
  br label %keep.items

give.tuple:
  %tuple = call ptr %tuple.function(i64 %out.value)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %no.memory, label %open.tuple

open.tuple:
  %tuple.items = getelementptr inbounds i8, ptr %tuple, i64 TUPLE_ITEMS
  br label %keep.items

keep.items:
  %new.container = phi ptr [ %list, %open.list ], [ %tuple, %open.tuple ]
  %new.items = phi ptr [ %list.items, %open.list ], [ %tuple.items, %open.tuple ]
  %new.items.place = getelementptr inbounds ptr, ptr %items, i64 %o
  store ptr %new.items, ptr %new.items.place
  br label %put

put:
  %new = phi ptr [ %scalar, %fill ], [ %new.container, %keep.items ]
  %is.out.root = icmp slt i64 %out.parent, 0
  br i1 %is.out.root, label %put.root, label %put.child

put.root:
  store ptr %new, ptr %root.place
  br label %gave

put.child:
  %out.items.place = getelementptr inbounds ptr, ptr %items, i64 %out.parent
  %out.items = load ptr, ptr %out.items.place
  %out.to = getelementptr inbounds ptr, ptr %out.items, i64 %out.index
  store ptr %new, ptr %out.to
  br label %gave

gave:
  %o.next = add nsw i64 %o, 1
  br label %give.head

done:
  %root = load ptr, ptr %root.place
  ret ptr %root

no.memory:
  %partial = load ptr, ptr %root.place
  %is.nothing = icmp eq ptr %partial, null
  br i1 %is.nothing, label %nothing, label %drop

drop:
  %release.function = inttoptr i64 %release.w to ptr
  call void %release.function(ptr %partial)
  br label %nothing

nothing:
  ret ptr null
}
"""


def _assembly() -> str:
    reads, rows = [], []
    for i, word in enumerate(NUMBER_CALL_WORDS):
        reads.append(f"  %{word}.p = getelementptr inbounds i64, ptr %block, i64 {i}")
        reads.append(f"  %{word}.w = load i64, ptr %{word}.p")
    for prefix, row in (("", "%row"), ("out.", "%out.row")):
        lines = []
        for i, field in enumerate(("parent", "index", "kind", "type", "value"), 1):
            lines.append(f"  %{prefix}{field}.p = getelementptr inbounds i64, ptr {row}, i64 {i}")
            lines.append(f"  %{prefix}{field} = load i64, ptr %{prefix}{field}.p")
        rows.append("\n".join(lines))
    text = _TEXT.replace("OUTROW", rows[1]).replace("\nROW\n", f"\n{rows[0]}\n")
    numbers = {"FIRST_SLOT": str(FIRST_SLOT), "TUPLE_ITEMS": str(_TUPLE_ITEMS)}
    for name, number in numbers.items():
        text = text.replace(name, number)
    return text.replace("READS", "\n".join(reads))


@cache
def is_usable() -> bool:
    """Whether objects are laid out as the native function expects, and one thread runs at once."""
    if sys.implementation.name != "cpython" or object.__basicsize__ != 16:
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    first, second = object(), 0.5
    words = ctypes.c_int64.from_address
    doubles = ctypes.c_double.from_address
    listed, paired, scalar = [first, second], (first, second), np.float64(0.25)
    items = (ctypes.c_int64 * 2).from_address
    return (
        words(id(listed) + 8).value == id(list)
        and words(id(listed) + 16).value == words(id(paired) + 16).value == 2
        and list(items(words(id(listed) + 24).value)) == [id(first), id(second)]
        and list(items(id(paired) + _TUPLE_ITEMS)) == [id(first), id(second)]
        and words(id(scalar) + 8).value == id(np.float64)
        and (doubles(id(second) + 16).value, doubles(id(scalar) + 16).value) == (0.5, 0.25)
    )


@cache
def _function() -> Callable[[Any, int, int, int], Any]:
    address = kernel_store.code_address(Code(_assembly(), _SYMBOL))
    pointer = ctypes.c_void_p
    # The call keeps the interpreter's lock, which the function gives up where it should.
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, pointer, pointer, pointer)
    return kind(address)


def _address_of(name: str) -> int:
    return ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0


def rows_of(tree: PyTreeDef, types: Sequence[type], places: Sequence[int]) -> list[int] | None:
    """The rows of a tree of numbers; ``None`` if there are other containers than lists and tuples.

    Args:
        tree: Its structure.
        types: Types of the leaves, in order.
        places: Places of the leaves.
    """
    words: list[int] = []
    leaves = iter(zip(types, places, strict=True))
    pending = [(tree, -1, 0)]
    n = 0
    while pending:
        each, parent, index = pending.pop()
        kind = _KINDS.get(each.kind)
        if kind is None or n == MOST_ROWS:
            return None
        if kind == NUMBER:
            number, place = next(leaves)
            words += [parent, index, kind, id(number), place]
        else:
            children = each.children()
            words += [parent, index, kind, id(each.kind), len(children)]
            pending += [(child, n, i) for i, child in reversed(list(enumerate(children)))]
        n += 1
    return [n, *words]


class NumberCall:
    """A program with the trees of its arguments and results, as one native function sees them.

    Args:
        arguments: Rows of the tuple of arguments.
        results: Rows of the results.
        objects: The places of the numbers that the program reads and writes, by its objects.
        table: Address of the table of steps.
        miss: What is returned for other arguments.
    """

    def __init__(
        self,
        arguments: Sequence[int],
        results: Sequence[int],
        objects: Sequence[int],
        table: int,
        miss: object,
    ) -> None:
        self._kept = [np.array(x, np.int64) for x in (arguments, results, [len(objects), *objects])]
        self._miss = miss
        words = {
            "arguments": self._kept[0].ctypes.data,
            "results": self._kept[1].ctypes.data,
            "objects": self._kept[2].ctypes.data,
            "n_items": max(arguments[0], results[0]),
            "table": table,
            "run": kernel_store.executor_address(),
            "save": _address_of("PyEval_SaveThread"),
            "restore": _address_of("PyEval_RestoreThread"),
            "new_list": _address_of("PyList_New"),
            "new_tuple": _address_of("PyTuple_New"),
            "new_scalar": _address_of("PyType_GenericAlloc"),
            "scalar": id(np.float64),
            "release": _address_of("Py_DecRef"),
            "new_int": _address_of("PyLong_FromLongLong"),
            "keep": _address_of("Py_IncRef"),
            "miss": id(miss),
        }
        self.block = np.array([words[name] for name in NUMBER_CALL_WORDS], np.int64)
        self.address: int = self.block.ctypes.data
        self.function = _function()
