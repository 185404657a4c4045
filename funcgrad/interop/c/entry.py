"""Entries of compiled functions: code in C's conventions that finds a plan and runs it.

An entry puts the addresses of arrays into slots of its own, which are a copy of a plan's, and
calls the executor. It needs nothing of Python, and no lock: threads share plans, which do not
change.
The plans of a function are a list, one for each combination of sizes that has been met. Where there
is none, the entry calls ``int32 miss(int64* sizes)``, which adds it in front.

The entry knows one word: the address of two, that of the first plan and of ``miss``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.base.pytree import tree_leaves
from funcgrad.compiler.abi import FIRST_SLOT, OWN_SLOT, REFUSED
from funcgrad.compiler.loops.builder import SystemProgram, is_other, read_word
from funcgrad.compiler.loops.language import (
    Expression,
    Function,
    NamedFunction,
    Variable,
    all_of,
    call,
    equal,
    of,
)
from funcgrad.interop.c.signature import ArrayType, Signature

PLAN_WORDS = ["next", "n_words", "arena_slot", "arena_bytes", "table", "run", "first_message"]
"""Meaning of the first words of a plan; then follow its sizes, and the slots as they begin."""

NO_MEMORY, FAILED, FIRST_MESSAGE = 1, 2, 3
"""Status codes: no scratch memory was to be had; a step has failed; the first of those that are
explained by the function itself. 0 is success."""

_ON_STACK = 8192
"""Bytes of slots and scratch memory up to which an entry takes them from the stack."""


class _Serve(SystemProgram):
    """Find the plan for some sizes, and run it on arrays: the status.

    Args:
        n_sizes: How many sizes there are.
        n_objects: How many arrays.
    """

    facts = SystemProgram.facts_of("sizes", "objects", "scratch")

    def __init__(self, n_sizes: int, n_objects: int) -> None:
        super().__init__()
        self.n_sizes = n_sizes
        self.n_objects = n_objects

    def write(self) -> None:
        objects, scratch = Variable("objects"), Variable("scratch")
        plan = self._found(Variable("sizes"))
        words = self.words_of(plan, PLAN_WORDS)
        nbytes = self.let(words["n_words"] * 8)
        is_given = self.let(is_other(scratch, 0))
        room = self.let(nbytes + 64 + call("select", is_given, 0, words["arena_bytes"]))
        slots, owned = self.run("room", _ON_STACK), self.let(0)
        with self.when(room > _ON_STACK):
            self.change(owned, call("malloc", room))
            with self.when(equal(owned, 0)):
                self.give_back(NO_MEMORY)
            self.change(slots, owned)
        first = self.let(plan + 8 * (len(PLAN_WORDS) + self.n_sizes))
        with self.count(0, words["n_words"]) as k:
            self.put_word(slots, k, read_word(first, k))
        self.put_word(slots, OWN_SLOT, slots)
        for j in range(self.n_objects):
            self.put_word(slots, FIRST_SLOT + j, read_word(objects, j))
        arena = call("select", is_given, scratch, slots + nbytes)
        self.put_word(slots, words["arena_slot"], (arena + 63) & -64)
        code = self.call(words["run"], slots, words["table"], 0)
        reason, site = self.word(slots, 0), self.word(slots, 1)
        self.do("free", owned)
        with self.when(equal(code, 0)):
            self.give_back(0)
        message = site + words["first_message"]
        self.give_back(call("select", equal(reason, REFUSED), message, FAILED))

    def _found(self, sizes: Expression) -> Variable:
        """The plan for the sizes."""
        home = self.run("own_word")
        plan = self.run("load_shared", home)
        tests = [
            equal(read_word(plan, len(PLAN_WORDS) + k), read_word(sizes, k))
            for k in range(self.n_sizes)
        ]
        with self.repeat(of(True)):
            with self.when(equal(plan, 0)):
                status = call("i32", self.call(read_word(home, 1), sizes))
                self.stop_if_failed(self.let(call("i64", status)))
                self.change(plan, call("load_shared", home))
            with self.otherwise():
                with self.when(all_of(tests) if tests else of(True)):
                    self.leave()
                self.change(plan, read_word(plan, 0))
        return plan


class Entry(SystemProgram):
    """Writes an entry of a signature."""

    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self.signature = signature

    def status(self) -> NamedFunction:
        """The function with a status, of which `Signature.declaration` is the prototype."""
        signature = self.signature
        sizes = [f"size{k}" for k in range(len(signature.names))]
        results = [f"r{k}" for k in range(len(signature.results))]
        kinds = {f"a{k}": _kind(tree) for k, tree in enumerate(signature.arguments)}
        kinds = dict.fromkeys(sizes, "i64") | kinds | dict.fromkeys([*results, "scratch"], "i64")
        addresses = self._given(signature.arguments)
        for name, tree in zip(results, signature.results, strict=True):
            addresses += self._parts(tree, Variable(name), is_result=True)
        places = [Variable(name) for name in sizes]
        self.give_back(self._served(addresses, places, Variable("scratch")))
        return self._made(kinds)

    def by_addresses(self) -> NamedFunction:
        """``int32 (int64 *sizes, void **arrays)``."""
        given = Variable("sizes"), Variable("arrays")
        self.give_back(self.call(Variable("serve"), *given, 0))
        return self._made(dict.fromkeys(("sizes", "arrays"), "i64"))

    def value(self, has_data: bool) -> NamedFunction:
        """The function whose value is the result, or with a vector as last argument.

        Args: has_data: Whether its last argument is an untyped pointer.
        """
        (result,), leaves = self.signature.outs, self.signature.leaves
        assert not has_data or leaves[-1].sizes
        kinds = {f"a{k}": _kind(t) for k, t in enumerate(leaves)}
        if result.is_value:
            return self._returning(self._given(leaves), kinds)
        out = Variable("out")
        self._fill_unless_served([*self._given(leaves), out], out)
        return self._made({**kinds, "out": "i64"})

    def quad(self, has_data: bool) -> NamedFunction:
        """``double (int n, double *x)``, of whose vector all arguments are parts.

        Args: has_data: Whether the last one is what the data point to.
        """
        data = ["data"] if has_data else []
        leaves = self.signature.leaves
        addresses = self._consecutive(Variable("x"), leaves[:-1] if has_data else leaves)
        kinds = {"count": "i32"} | dict.fromkeys(["x", *data], "i64")
        return self._returning([*addresses, *map(Variable, data)], kinds)

    def filter(self, has_data: bool) -> NamedFunction:
        """``int (double *x, intptr_t n, double *result, void *data)``."""
        places = self._lengths((Variable("n"), self.signature.leaves[0]))
        return self._callback(["x", "n", "out", "data"], has_data, places)

    def filter1d(self, has_data: bool) -> NamedFunction:
        """``int (double *x, intptr_t n, double *result, intptr_t m, void *data)``."""
        return self._callback(["x", "n", "out", "m", "data"], has_data, self._both_lengths())

    def transform(self, has_data: bool) -> NamedFunction:
        """``int (intptr_t *place, double *from, int rank, int from_rank, void *data)``."""
        names = ["x", "out", "n", "m", "data"]
        return self._callback(names, has_data, self._both_lengths(), n="i32", m="i32")

    def density(self) -> NamedFunction:
        """``int (size_t n, double *x, double *gradient, double *value, void *data)``."""
        (size,) = self.signature.leaves[0].sizes
        with self.when(is_other(Variable("n"), int(size))):
            self.give_back(FAILED)
        self.give_back(self._served([Variable(name) for name in ("x", "value", "gradient")]))
        return self._made(dict.fromkeys(("n", "x", "gradient", "value", "data"), "i64"))

    # Parts of entries.

    def _made(self, parameters: Mapping[str, str], result: str = "i32") -> NamedFunction:
        """Named function with this body; equal texts are one function."""
        n_objects = len(self.signature.leaves) + len(self.signature.outs)
        serve = _Serve.named(len(self.signature.names), n_objects)
        return NamedFunction(
            f"{parameters} {result}, {serve.name}\n{Function(self.body).text}",
            lambda: self.body,
            parameters=parameters,
            result=result,
            is_brief=True,
            inner={"serve": serve},
        )

    def _returning(
        self, addresses: Sequence[Expression], kinds: Mapping[str, str]
    ) -> NamedFunction:
        """An entry that returns its result."""
        kind = _kind(self.signature.outs[0])
        out = self.run("room", 8)
        self._fill_unless_served([*addresses, out], out)
        self.give_back(call("load", call(f"ptr_{kind}", out), 0, 0))
        return self._made(kinds, kind)

    def _callback(
        self, names: Sequence[str], has_data: bool, sizes: list[Expression], **kinds: str
    ) -> NamedFunction:
        """An entry that returns 1 for success, as callbacks of `scipy.ndimage` do, else 0."""
        given = ["x", *(["data"] if has_data else []), "out"]
        self.give_back(equal(self._served([Variable(x) for x in given], sizes), 0))
        return self._made(dict.fromkeys(names, "i64") | kinds)

    def _given(self, trees: Sequence[Any]) -> list[Expression]:
        """Addresses of all arrays of the arguments."""
        return [
            address
            for k, tree in enumerate(trees)
            for address in self._parts(tree, Variable(f"a{k}"))
        ]

    def _parts(self, tree: Any, given: Expression, is_result: bool = False) -> list[Expression]:
        """The addresses of the leaves of a tree, of which an argument is given."""
        if not isinstance(tree, ArrayType):
            return [self.word(given, k) for k in range(len(tree_leaves(tree)))]
        if not tree.is_value or is_result:
            return [given]
        room = self.run("room", 8)
        self.store(call(f"ptr_{_kind(tree)}", room), 0, given, 0)
        return [room]

    def _consecutive(self, base: Expression, leaves: Sequence[ArrayType]) -> list[Expression]:
        """Addresses of arrays that lie one after the other."""
        found: list[Expression] = []
        place = 0
        for leaf in leaves:
            found.append(base + place)
            place += leaf.dtype.itemsize * int(np.prod(leaf.shape({}), dtype=np.int64))
        return found

    def _both_lengths(self) -> list[Expression]:
        """The sizes of the argument and the result, vectors of `n` and `m` elements."""
        n, m = (call("i64", Variable(name)) for name in "nm")
        return self._lengths((n, self.signature.leaves[0]), (m, self.signature.outs[0]))

    def _lengths(self, *found: tuple[Expression, ArrayType]) -> list[Expression]:
        """The sizes of vectors that are given: those that have names; others must agree."""
        places: dict[str, Expression] = {}
        for length, leaf in found:
            (size,) = leaf.sizes
            expected = places.get(size) if not size.isdigit() else of(int(size))
            if expected is None:
                places[size] = length
                continue
            with self.when(is_other(length, expected)):
                self.give_back(0)
        return [places[name] for name in self.signature.names]

    def _fill_unless_served(self, addresses: Sequence[Expression], out: Expression) -> None:
        """Run the plan; write NaN into the result if that fails."""
        (result,) = self.signature.outs
        with self.when(is_other(self._served(addresses), 0)):
            total = int(np.prod(result.shape({}), dtype=np.int64))
            kind = "f32" if result.dtype == np.float32 else "f64"
            with self.count(0, total) as k:
                self.store(call(f"ptr_{kind}", out), k, float("nan"), 0)

    def _served(
        self,
        addresses: Sequence[Expression],
        sizes: Sequence[Expression] = (),
        scratch: Expression | int = 0,
    ) -> Expression:
        """Run the plan; the status."""
        tables = []
        for words in (sizes, addresses):
            table = self.run("room", 8 * max(len(words), 1))
            for k, word in enumerate(words):
                self.put_word(table, k, word)
            tables.append(table)
        return self.call(Variable("serve"), *tables, scratch)


def _kind(tree: Any) -> str:
    """The type of an argument: pointers are integers."""
    if not isinstance(tree, ArrayType) or not tree.is_value:
        return "i64"
    kind = "f" if tree.dtype.kind == "f" else "i"
    return f"{kind}{8 * tree.dtype.itemsize}"
