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

from funcgrad.base.pytree import PyTreeDef
from funcgrad.compiler.abi import FIRST_SLOT, NUMBER_CALL_WORDS
from funcgrad.compiler.native.assembly import Assembly, Code
from funcgrad.compiler.runtime import kernel_store

NUMBER, LIST, TUPLE = range(3)
"""Kinds of rows."""
_KINDS: Mapping[Any, int] = {None: NUMBER, list: LIST, tuple: TUPLE}

MOST_ROWS = 500
"""Larger trees are walked by Python: the containers that are open lie on the stack."""

_TUPLE_ITEMS = tuple.__basicsize__
"""Offset of the items of a tuple, which has gained a field in Python 3.14."""

_ROW_FIELDS = ("parent", "index", "kind", "type", "value")

# Bytes from an object to its type, its number or length, and the place of a list's items.
_TYPE, _VALUE, _LIST_ITEMS = 8, 16, 24


class _Numbers(Assembly):
    """``PyObject* call(PyObject* arguments, int64* block, int64* slots, double* numbers)``.

    ``block`` is as `abi.NUMBER_CALL_WORDS` says. Returns a new reference: to the results, to the
    object that says that the arguments are others, or to an int, what the executor returned; or
    NULL where memory ends.
    """

    def text(self) -> Code:
        arguments = "ptr %arguments, ptr %block, ptr %slots, ptr %numbers"
        with self.function("fg_numbers", arguments, "ptr"):
            self.name_words([f"{name}.w" for name in NUMBER_CALL_WORDS], "%block")
            items = self.room(f"[{MOST_ROWS} x ptr]")
            self._take(items)
            self._aim()
            self._run()
            self._give(items)
        return self.finished()

    def _address(self, word: str) -> str:
        return self.let(f"inttoptr i64 %{word}.w to ptr")

    def _row(self, rows: str, k: str) -> list[str]:
        """The fields of a row, which the number of rows stands before."""
        row = self.at(rows, (k, 8 * len(_ROW_FIELDS)))
        return [self.word(row, i) for i in range(1, 1 + len(_ROW_FIELDS))]

    def _double(self, k: str) -> str:
        return self.let(f"getelementptr inbounds double, ptr %numbers, i64 {k}")

    def _number(self, place: str) -> str:
        return self.let(f"load double, ptr {place}")

    def _take(self, items: str) -> None:
        """Read the arguments' numbers, if they are in such containers as the rows say."""
        rows = self._address("arguments")
        with self.count("0", self.word(rows)) as r:
            parent, index, kind, type_, value = self._row(rows, r)
            before = self.block
            with self.when(self.test("sge", parent, 0)):
                child = self.word(self.word(items, parent, "ptr"), index, "ptr")
                inner = self.block
            found = self.phi("ptr", {before: "%arguments", inner: child})
            is_type = self.test("eq", self.word(self.after(found, _TYPE)), type_)
            self._expect(is_type)
            of_value = self.after(found, _VALUE)
            n = f"{len(self.lines)}"
            self.fork(self.test("eq", kind, NUMBER), f"number{n}", f"container{n}")
            self.start(f"number{n}")
            self.do(f"store double {self._number(of_value)}, ptr {self._double(value)}")
            self.go(f"took{n}")
            self.start(f"container{n}")
            self._expect(self.test("eq", self.word(of_value), value))
            own, before = self.after(found, _TUPLE_ITEMS), self.block
            with self.when(self.test("eq", kind, LIST)):
                apart = self.word(self.after(found, _LIST_ITEMS), kind="ptr")
                inner = self.block
            own = self.phi("ptr", {before: own, inner: apart})
            self.put_word(own, items, r, "ptr")
            self.go(f"took{n}")
            self.start(f"took{n}")

    def _expect(self, condition: str) -> None:
        """Say that the arguments are others where something does not hold."""
        with self.when(self.lacks(condition)):
            miss = self._address("miss")
            self.do(f"call void {self._address('keep')}(ptr {miss})")
            self.leave(miss)

    def _aim(self) -> None:
        """Have the slots point to the numbers."""
        objects, first = self._address("objects"), self.entry("%slots", FIRST_SLOT)
        with self.count("0", self.word(objects)) as k:
            number = self._double(self.word(objects, self.add(k, 1)))
            self.put_word(number, first, k, "ptr")

    def _run(self) -> None:
        """Run the program, without the interpreter's lock; return what it says if it fails."""
        run, table = self._address("run"), self._address("table")
        state = self.let(f"call ptr {self._address('save')}()")
        code = self.let(f"call i64 {run}(ptr %slots, ptr {table}, i64 0)")
        self.do(f"call void {self._address('restore')}(ptr {state})")
        with self.when(self.test("ne", code, 0)):
            self.leave(self.let(f"call ptr {self._address('new_int')}(i64 {code})"))

    def _give(self, items: str) -> None:
        """Make the results, containers before what is in them, and return them."""
        root = self.room("ptr")
        self.put_word("null", root, kind="ptr")
        rows = self._address("results")
        with self.count("0", self.word(rows)) as r:
            parent, index, kind, _, value = self._row(rows, r)
            n = f"{len(self.lines)}"
            cases = f"i64 {NUMBER}, label %scalar{n} i64 {LIST}, label %list{n}"
            self.do(f"switch i64 {kind}, label %tuple{n} [ {cases} ]")
            self.start(f"scalar{n}")
            made = {}
            scalar = self._made("new_scalar", f"ptr {self._address('scalar')}, i64 0", root)
            number = self._number(self._double(value))
            self.do(f"store double {number}, ptr {self.after(scalar, _VALUE)}")
            made[self.block] = scalar
            self.go(f"put{n}")
            self.start(f"list{n}")
            new = self._made("new_list", f"i64 {value}", root)
            self.put_word(self.word(self.after(new, _LIST_ITEMS), kind="ptr"), items, r, "ptr")
            made[self.block] = new
            self.go(f"put{n}")
            self.start(f"tuple{n}")
            new = self._made("new_tuple", f"i64 {value}", root)
            self.put_word(self.after(new, _TUPLE_ITEMS), items, r, "ptr")
            made[self.block] = new
            self.go(f"put{n}")
            self.start(f"put{n}")
            new, before = self.phi("ptr", made), self.block
            with self.when(self.test("sge", parent, 0)):
                place = self.entry(self.word(items, parent, "ptr"), index)
                inner = self.block
            self.put_word(new, self.phi("ptr", {before: root, inner: place}), kind="ptr")
        self.leave(self.word(root, kind="ptr"))

    def _made(self, function: str, arguments: str, root: str) -> str:
        """A new object; where memory ends, what there is of the results is given back."""
        new = self.let(f"call ptr {self._address(function)}({arguments})")
        with self.when(self.test("eq", new, "null", "ptr")):
            partial = self.word(root, kind="ptr")
            with self.when(self.test("ne", partial, "null", "ptr")):
                self.do(f"call void {self._address('release')}(ptr {partial})")
            self.leave("null")
        return new


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
    address = kernel_store.code_address(_Numbers().text())
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
