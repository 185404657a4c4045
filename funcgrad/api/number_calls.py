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
from functools import cache, partial
from typing import Any

import numpy as np

from funcgrad.base.pytree import PyTreeDef
from funcgrad.compiler.abi import FIRST_SLOT
from funcgrad.compiler.loops.builder import SystemProgram, is_other, read_word
from funcgrad.compiler.loops.language import SLOTS, Expression, Variable, call, equal
from funcgrad.compiler.runtime import kernel_store

NUMBER_CALL_WORDS = [
    "arguments", "results", "objects", "n_items", "table", "run", "save", "restore", "new_list",
    "new_tuple", "new_scalar", "scalar", "release", "new_int", "keep", "miss",
]  # fmt: skip
"""Layout of a call. Rows of arguments and of results: their number, and for every row, a
container before what is in it, the row of the container or -1, the position in it, the kind, the
type that an argument must have, and the length, or the place of the number. Objects: their number,
and for each of them the place of its number. ``n_items`` is the larger number of rows."""

NUMBER, LIST, TUPLE = range(3)
"""Kinds of rows."""
_KINDS: Mapping[Any, int] = {None: NUMBER, list: LIST, tuple: TUPLE}

MOST_ROWS = 500
"""Larger trees are traversed by Python: the containers that are open lie on the stack."""

_TUPLE_ITEMS = tuple.__basicsize__
"""Offset of the items of a tuple, which has gained a field in Python 3.14."""

_ROW_FIELDS = ("parent", "index", "kind", "type", "value")

# Bytes from an object to its type, its number or length, and the place of a list's items.
_TYPE, _VALUE, _LIST_ITEMS = 8, 16, 24


class NumberStep(SystemProgram):
    """``PyObject* call(PyObject* arguments, int64* block, int64* slots, double* numbers)``.

    ``block`` is as `NUMBER_CALL_WORDS` says. Returns a new reference: to the results, to the
    object that says that the arguments are others, or to an int, what the executor returned; or
    NULL where memory ends. Numbers are words, too: they are only moved.
    """

    facts: Mapping[str, Any] = {
        **SystemProgram.facts_of("arguments", "block", "slots", "numbers"),
        "is_brief": False,
    }

    def write(self) -> None:
        words = self.words_of(Variable("block"), NUMBER_CALL_WORDS)
        items = self.run("room", 8 * MOST_ROWS)
        self._take(words, items)
        # The slots point to the numbers.
        with self.count(0, read_word(words["objects"], 0)) as k:
            place = read_word(words["objects"], k + 1)
            self.put_word(SLOTS, k + FIRST_SLOT, _NUMBERS + place * 8)
        self._run(words)
        self._give(words, items)

    def _row(self, rows: Expression, k: Expression) -> list[Variable]:
        """The fields of a row, which the number of rows stands before."""
        row = self.let(rows + k * (8 * len(_ROW_FIELDS)))
        return [self.word(row, i) for i in range(1, 1 + len(_ROW_FIELDS))]

    def _take(self, words: Mapping[str, Expression], items: Expression) -> None:
        """Read the arguments' numbers, if they are in such containers as the rows say."""
        rows = words["arguments"]
        with self.count(0, read_word(rows, 0)) as r:
            parent, index, kind, type_, value = self._row(rows, r)
            found = self.let(Variable("arguments"))
            with self.when(parent >= 0):
                self.change(found, read_word(read_word(items, parent), index))
            self._expect(words, equal(read_word(found + _TYPE, 0), type_))
            own = self.word(found + _VALUE)
            with self.when(equal(kind, NUMBER)):
                self.put_word(_NUMBERS, value, own)
            with self.otherwise():
                self._expect(words, equal(own, value))
                place = self.let(found + _TUPLE_ITEMS)
                with self.when(equal(kind, LIST)):
                    self.change(place, read_word(found + _LIST_ITEMS, 0))
                self.put_word(items, r, place)

    def _expect(self, words: Mapping[str, Expression], condition: Expression) -> None:
        """Say that the arguments are others where something does not hold."""
        with self.when(~condition):
            self.call(words["keep"], words["miss"])
            self.give_back(words["miss"])

    def _run(self, words: Mapping[str, Expression]) -> None:
        """Run the program, without the interpreter's lock; return what it says if it fails."""
        state = self.call(words["save"])
        code = self.call(words["run"], SLOTS, words["table"], 0)
        self.call(words["restore"], state)
        with self.when(is_other(code, 0)):
            self.give_back(self.call(words["new_int"], code))

    def _give(self, words: Mapping[str, Expression], items: Expression) -> None:
        """Make the results, containers before what is in them, and return them."""
        root, rows = self.let(0), words["results"]
        with self.count(0, read_word(rows, 0)) as r:
            parent, index, kind, _, value = self._row(rows, r)
            made = self.let(0)

            def number() -> None:
                self.change(made, call("call_address", words["new_scalar"], words["scalar"], 0))
                self._check(words, made, root)
                self.put_word(made + _VALUE, 0, read_word(_NUMBERS, value))

            def container(name: str) -> None:
                self.change(made, call("call_address", words[name], value))
                self._check(words, made, root)
                is_list = name == "new_list"
                place = read_word(made + _LIST_ITEMS, 0) if is_list else made + _TUPLE_ITEMS
                self.put_word(items, r, place)

            cases: dict[int, Callable[[], None]] = {
                NUMBER: number,
                LIST: partial(container, "new_list"),
                TUPLE: partial(container, "new_tuple"),
            }
            self.by_number(kind, cases, TUPLE)
            with self.when(parent >= 0):
                self.put_word(read_word(items, parent), index, made)
            with self.otherwise():
                self.change(root, made)
        self.give_back(root)

    def _check(self, words: Mapping[str, Expression], made: Expression, root: Expression) -> None:
        """Give back what there is of the results, where memory has ended."""
        with self.when(equal(made, 0)):
            with self.when(is_other(root, 0)):
                self.call(words["release"], root)
            self.give_back(0)


_NUMBERS = Variable("numbers")


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
    address = kernel_store.code_address(NumberStep.named())
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
