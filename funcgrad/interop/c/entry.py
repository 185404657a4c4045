"""Entries of compiled functions: code in C's conventions that finds a plan and runs it.

An entry puts the addresses of arrays into slots of its own, which are a copy of a plan's, and
calls the executor. It needs nothing of Python, and no lock: threads share plans, which do not
change.
The plans of a function are a list, one for each combination of sizes that has been met. Where there
is none, the entry calls ``int32 miss(int64* sizes)``, which adds it in front.

The entry knows one word: the address of two, that of the first plan and of ``miss``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from funcgrad.base.pytree import tree_leaves
from funcgrad.compiler.abi import FIRST_SLOT, OWN_SLOT, REFUSED
from funcgrad.compiler.native.assembly import Assembly, Code
from funcgrad.compiler.runtime.kernel_store import WORD
from funcgrad.interop.c.signature import ArrayType, Signature

PLAN_WORDS = ["next", "n_words", "arena_slot", "arena_bytes", "table", "run", "first_message"]
"""Meaning of the first words of a plan; then follow its sizes, and the slots as they begin."""

NO_MEMORY, FAILED, FIRST_MESSAGE = 1, 2, 3
"""Status codes: no scratch memory was to be had; a step has failed; the first of those that are
explained by the function itself. 0 is success."""

_ON_STACK = 4096
"""Bytes of scratch memory up to which an entry takes it from the stack."""


class Entry(Assembly):
    """Writes entries of a signature."""

    is_brief = True

    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self.signature = signature
        self.lines += [f"@home = internal constant i64 {WORD}", ""]

    def status(self) -> Code:
        """The function with a status, of which `Signature.declaration` is the prototype."""
        sizes = [f"i64 %size{k}" for k in range(len(self.signature.names))]
        given = [f"{_kind(tree)} %a{k}" for k, tree in enumerate(self.signature.arguments)]
        results = [f"ptr %r{k}" for k in range(len(self.signature.results))]
        with self._entry([*sizes, *given, *results, "ptr %scratch"], "i32"):
            places = [f"%size{k}" for k in range(len(sizes))]
            addresses = self._given()
            for k, tree in enumerate(self.signature.results):
                addresses += self._parts(tree, f"%r{k}")
            self.leave(self._served(addresses, places, "%scratch"))
        return self.finished()

    def by_addresses(self) -> Code:
        """``int32 (int64 *sizes, void **arrays)``."""
        with self._entry(["ptr %sizes", "ptr %arrays"], "i32"):
            given = "ptr %sizes, ptr %arrays, ptr null"
            self.leave(self.let(f"call i32 @serve({given})"))
        return self.finished()

    def value(self, has_data: bool) -> Code:
        """The function whose value is the result, or with a vector as last argument.

        Args:
            has_data: Whether its last argument is an untyped pointer.
        """
        (result,) = self.signature.outs
        kinds = [f"{_kind(t)} %a{k}" for k, t in enumerate(self.signature.leaves)]
        if not result.is_value:
            with self._entry([*kinds, "ptr %out"]):
                status = self._served([*self._given(), "%out"])
                with self.when(self.test("ne", status, 0, "i32")):
                    self._fill("%out", result)
            return self.finished()
        assert not has_data or self.signature.leaves[-1].sizes
        kind = _kind(result)
        with self._entry(kinds, kind):
            out = self.room(kind)
            status = self._served([*self._given(), out])
            with self.when(self.test("ne", status, 0, "i32")):
                self._fill(out, result)
            self.leave(self.let(f"load {kind}, ptr {out}"))
        return self.finished()

    def quad(self, has_data: bool) -> Code:
        """``double (int n, double *x)``, of whose vector all arguments are parts.

        Args:
            has_data: Whether the last one is what the data point to.
        """
        data = ["ptr %data"] if has_data else []
        with self._entry(["i32 %count", "ptr %x", *data], "double"):
            out = self.room("double")
            leaves = self.signature.leaves
            addresses = self._consecutive("%x", leaves[:-1] if has_data else leaves)
            status = self._served([*addresses, *(["%data"] if has_data else []), out])
            with self.when(self.test("ne", status, 0, "i32")):
                self._fill(out, self.signature.outs[0])
            self.leave(self.let(f"load double, ptr {out}"))
        return self.finished()

    def filter(self, has_data: bool) -> Code:
        """``int (double *x, intptr_t n, double *result, void *data)``."""
        with self._entry(["ptr %x", "i64 %n", "ptr %out", "ptr %data"], "i32"):
            places = self._lengths({"%n": self.signature.leaves[0]})
            data = ["%data"] if has_data else []
            status = self._served(["%x", *data, "%out"], places)
            self._leave_if(status)
        return self.finished()

    def filter1d(self, has_data: bool) -> Code:
        """``int (double *x, intptr_t n, double *result, intptr_t m, void *data)``."""
        (out,), x = self.signature.outs, self.signature.leaves[0]
        arguments = ["ptr %x", "i64 %n", "ptr %out", "i64 %m", "ptr %data"]
        with self._entry(arguments, "i32"):
            places = self._lengths({"%n": x, "%m": out})
            data = ["%data"] if has_data else []
            self._leave_if(self._served(["%x", *data, "%out"], places))
        return self.finished()

    def transform(self, has_data: bool) -> Code:
        """``int (intptr_t *place, double *from, int rank, int from_rank, void *data)``."""
        arguments = ["ptr %x", "ptr %out", "i32 %n32", "i32 %m32", "ptr %data"]
        (out,), x = self.signature.outs, self.signature.leaves[0]
        with self._entry(arguments, "i32"):
            n, m = (self.let(f"sext i32 %{name}32 to i64") for name in "nm")
            places = self._lengths({n: x, m: out})
            data = ["%data"] if has_data else []
            self._leave_if(self._served(["%x", *data, "%out"], places))
        return self.finished()

    def density(self) -> Code:
        """``int (size_t n, double *x, double *gradient, double *value, void *data)``."""
        arguments = ["i64 %n", "ptr %x", "ptr %gradient", "ptr %value", "ptr %data"]
        with self._entry(arguments, "i32"):
            (size,) = self.signature.leaves[0].sizes
            with self.when(self.test("ne", "%n", size)):
                self.leave(str(FAILED))
            self.leave(self._served(["%x", "%value", "%gradient"]))
        return self.finished()

    # Parts of entries.

    @contextmanager
    def _entry(self, arguments: Sequence[str], returns: str = "void") -> Iterator[None]:
        with self.function("fg_entry", ", ".join(arguments), returns):
            yield
        self._serve()

    def _given(self) -> list[str]:
        """Addresses of all arrays of the arguments."""
        return [
            address
            for k, tree in enumerate(self.signature.arguments)
            for address in self._parts(tree, f"%a{k}")
        ]

    def _parts(self, tree: Any, name: str) -> list[str]:
        """The addresses of the leaves of a tree, of which an argument is given."""
        if not isinstance(tree, ArrayType):
            return [self.word(name, k, "ptr") for k in range(len(tree_leaves(tree)))]
        if not tree.is_value or name.startswith("%r"):
            return [name]
        kind = _kind(tree)
        room = self.room(kind)
        self.do(f"store {kind} {name}, ptr {room}")
        return [room]

    def _consecutive(self, base: str, leaves: Sequence[ArrayType]) -> list[str]:
        """Addresses of arrays that lie one after the other."""
        found, place = [], 0
        for leaf in leaves:
            found.append(self.after(base, place))
            place += leaf.dtype.itemsize * int(np.prod(leaf.shape({}), dtype=np.int64))
        return found

    def _lengths(self, found: dict[str, ArrayType]) -> list[str]:
        """The sizes of vectors that are given: those that have names; others must agree."""
        places: dict[str, str] = {}
        for length, leaf in found.items():
            (size,) = leaf.sizes
            expected = places.get(size) if not size.isdigit() else size
            if expected is None:
                places[size] = length
                continue
            with self.when(self.test("ne", length, expected)):
                self.leave("0")
        return [places[name] for name in self.signature.names]

    def _leave_if(self, status: str) -> None:
        """Return 1 for success, as callbacks of `scipy.ndimage` do, else 0."""
        self.leave(self.let(f"zext i1 {self.test('eq', status, 0, 'i32')} to i32"))

    def _fill(self, place: str, result: ArrayType) -> None:
        """Write NaN into a result."""
        kind = "float" if result.dtype == np.float32 else "double"
        total = int(np.prod(result.shape({}), dtype=np.int64))
        with self.count("0", str(total)) as k:
            self.do(
                f"store {kind} 0x7FF8000000000000, ptr {self.at(place, (k, result.dtype.itemsize))}"
            )

    def _served(
        self, addresses: Sequence[str], sizes: Sequence[str] = (), scratch: str = "null"
    ) -> str:
        """Run the plan; the status."""
        objects = self.room(f"[{max(len(addresses), 1)} x ptr]")
        known = self.room(f"[{max(len(sizes), 1)} x i64]")
        for k, address in enumerate(addresses):
            self.put_word(address, objects, k, "ptr")
        for k, size in enumerate(sizes):
            self.put_word(size, known, k)
        given = f"ptr {known}, ptr {objects}, ptr {scratch}"
        return self.let(f"call i32 @serve({given})")

    def _serve(self) -> None:
        """Find the plan for some sizes, and run it on arrays."""
        n_sizes = len(self.signature.names)
        n_objects = len(self.signature.leaves) + len(self.signature.outs)
        head = len(PLAN_WORDS)
        with self.function("serve", "ptr %sizes, ptr %objects, ptr %scratch", "i32"):
            plan = self._found(n_sizes)
            word = {name: self.word(plan, k) for k, name in enumerate(PLAN_WORDS)}
            slots = self.let(f"alloca i64, i64 {word['n_words']}, align 16")
            self.invoke(
                "void", "llvm.memcpy.p0.p0.i64", ("ptr", slots),
                ("ptr", self.entry(plan, head + n_sizes)), ("i64", self.mul(word["n_words"], 8)),
                ("i1", "false"),
            )  # fmt: skip
            self.put_word(slots, slots, OWN_SLOT, "ptr")
            for k in range(n_objects):
                self.put_word(self.word("%objects", k), slots, FIRST_SLOT + k)
            arena, owned = self._arena(word["arena_bytes"])
            start = self.add(self.let(f"ptrtoint ptr {arena} to i64"), 63)
            self.put_word(self.let(f"and i64 {start}, -64"), slots, word["arena_slot"])
            run, table = (self.let(f"inttoptr i64 {word[x]} to ptr") for x in ("run", "table"))
            code = self.let(f"call i64 {run}(ptr {slots}, ptr {table}, i64 0)")
            self.invoke("void", "free", ("ptr", owned))
            with self.when(self.test("eq", code, 0)):
                self.leave("0")
            is_refused = self.test("eq", self.word(slots), REFUSED)
            site = self.add(self.word(slots, 1), word["first_message"])
            self.leave(self.let(f"trunc i64 {self.pick(is_refused, site, FAILED)} to i32"))

    def _found(self, n_sizes: int) -> str:
        """The plan for the sizes."""
        home = self.let("load volatile ptr, ptr @home")
        miss = self.entry(home, 1)
        self.go("search")
        self.start("search")
        first = self.let(f"load atomic ptr, ptr {home} acquire, align 8")
        self.go("look")
        self.start("look")
        self.do(f"%plan = phi ptr [ {first}, %search ], [ %following, %other ]")
        self.fork(self.test("eq", "%plan", "null", "ptr"), "missing", "compare")
        self.start("missing")
        status = self.let(f"call i32 {self.word(miss, 0, 'ptr')}(ptr %sizes)")
        self.fork(self.test("eq", status, 0, "i32"), "search", "unknown")
        self.start("unknown")
        self.leave(status)
        self.start("compare")
        tests = [
            self.test("eq", self.word("%plan", len(PLAN_WORDS) + k), self.word("%sizes", k))
            for k in range(n_sizes)
        ]
        self.fork(self.every(*tests) if tests else "true", "found", "other")
        self.start("other")
        self.do("%following = load ptr, ptr %plan")
        self.go("look")
        self.start("found")
        return "%plan"

    def _arena(self, nbytes: str) -> tuple[str, str]:
        """Scratch memory: the caller's, or else of the stack or the heap; what is to be freed."""
        room = self.add(nbytes, 64)
        self.fork(self.test("ne", "%scratch", "null", "ptr"), "arena", "own")
        self.start("own")
        self.fork(self.test("sle", nbytes, _ON_STACK), "stack", "heap")
        self.start("stack")
        near = self.let(f"alloca i8, i64 {room}, align 16")
        self.go("arena")
        self.start("heap")
        far = self.invoke("ptr", "malloc", ("i64", room))
        self.fork(self.test("eq", far, "null", "ptr"), "exhausted", "arena")
        self.start("exhausted")
        self.leave(str(NO_MEMORY))
        self.start("arena")
        return (
            self.phi("ptr", {"found": "%scratch", "stack": near, "heap": far}),
            self.phi("ptr", {"found": "null", "stack": "null", "heap": far}),
        )


def _kind(tree: Any) -> str:
    """The LLVM type of an argument."""
    if not isinstance(tree, ArrayType) or not tree.is_value:
        return "ptr"
    if tree.dtype.kind == "f":
        return "float" if tree.dtype == np.float32 else "double"
    return f"i{8 * tree.dtype.itemsize}"
