"""Scalar replacement: the numbers of a joined loop that live in variables instead of memory.

``Registers : loop -> variables``. Kernels of a joined function hand numbers to each other, and
to the next iteration, through the memory that the executor's tables would give them. A variable is
enough where all that reads or writes a number is in the function: LLVM keeps it in a register of
the processor, and sees that a loop carries it. The name is that of Callahan, Carr and Kennedy
(1990); no addresses need to be compared here, because memory has the names of values.

A number has one variable in all graphs that are linked to it. What is carried has two, for now and
for the next iteration. If one of them has to stay in memory, all do. Left in memory are elements of
arrays, and numbers of which a kernel asks more than to load or store them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from funcgrad.compiler.loops.language import (
    Apply,
    Assign,
    Body,
    Expression,
    Number,
    Variable,
    every,
)
from funcgrad.compiler.loops.unroll import number_of
from funcgrad.compiler.machine import SEVERAL, SMALL
from funcgrad.compiler.nest.allocate import Nested
from funcgrad.compiler.nest.kernel import Kernel, word_of
from funcgrad.compiler.nest.layout import Value
from funcgrad.compiler.nest.nodes import Carry, Link, Loop, Nest


class Registers:
    """The variables of a loop or branch and of those inside of it.

    Args:
        job: The loop or branch.
        bodies: The statements of kernels.
        is_run: Whether it is a run of kernels instead. All their numbers are in memory as well.

    Attributes:
        before: Numbers from around the loop that have variables, which it finds in memory.
    """

    def __init__(self, job: Nested, bodies: Mapping[int, Body], is_run: bool = False) -> None:
        self._bodies = bodies
        self._is_run = is_run
        self._memory = _Classes()
        self._kin = _Classes()
        self._excluded: set[Value] = set()
        self._kept: set[Value] = set()
        self._known: dict[Value, None] = {}
        self._made: set[Value] = set()
        self._changing: set[Value] = set()
        self._nested(job)
        # Of arrays that stay as they are, what nobody reads costs nothing.
        changing = {*map(self._memory.leader, self._changing)}
        self._excluded.update(
            value
            for value in self._known
            if not is_small(value, SEVERAL if self._memory.leader(value) in changing else SMALL)
        )
        self._made -= {
            c.final.home for c in carries_of(job) if c.final is not None and c.is_in_place
        }
        self._kept.update(out.home for out in job.node.outs)
        self._kept = {*map(self._memory.leader, self._kept)}
        excluded = {*map(self._kin.leader, self._excluded)}
        self._names: dict[Value, list[Variable]] = {}
        for value in self._known:
            leader = self._memory.leader(value)
            if self._kin.leader(value) not in excluded and leader not in self._names:
                name = f"r{len(self._names)}"
                names = [f"{name}_{i}" for i in range(math.prod(value.shape))]
                self._names[leader] = [*map(Variable, [name] if len(names) == 1 else names)]
        # A run of kernels loads all that it finds in memory, whoever has put it there.
        made = set() if is_run else self._made
        self.before = [v for v in self._known if self.of(v) is not None and v not in made]

    def of(self, value: Value) -> list[Variable] | None:
        """The variables of the elements of an array, if it has any."""
        return self._names.get(self._memory.leader(value.home))

    def is_kept(self, value: Value) -> bool:
        """Whether a number is stored to memory as well, for what reads it after the loop."""
        return self._is_run or self._memory.leader(value.home) in self._kept

    # Constraints on the memory of scalars.

    def _nested(self, job: Nested) -> None:
        node = job.node
        for link in node.links:
            self._link(link)
        for carry in carries_of(job):
            self._carry(carry)
        self._made.update(out.home for out in node.outs)
        for section in job.sections:
            for group in section.groups:
                outs = [out.home for inner in group.nodes for out in inner.outs]
                self._made.update(outs)
                self._changing.update(outs)
            for each in (x for row in section.jobs for x in row):
                if isinstance(each, Nested):
                    self._nested(each)
                else:
                    self._kernel(each)

    def _link(self, link: Link) -> None:
        inner, outer = link.inner.home, link.outer.home
        self._made.add(inner)
        self._known.update({inner: None, outer: None})
        if is_same(link):
            self._memory.unite(inner, outer)
            self._kin.unite(inner, outer)
            return
        self._excluded.add(outer)
        if link.inner.maker is not None:
            self._kept.add(inner)

    def _carry(self, carry: Carry) -> None:
        now, following = carry.now.home, carry.next.home
        self._changing.update((now, following))
        self._made.add(now)
        self._known.update({now: None, following: None})
        self._kin.unite(now, following)
        final = carry.final
        if final is not None:
            self._known[final.home] = None
            self._kin.unite(now, final.home)
        if carry.is_in_place:
            assert final is not None
            self._memory.unite(now, final.home)
            return
        initial, outer = carry.initial, carry.initial.outer.home
        if is_all(initial):
            self._known[outer] = None
            self._kin.unite(now, outer)
        elif initial.offset + math.prod(now.shape) > math.prod(outer.shape):
            self._excluded.add(outer)  # it may lie in another row of the matrix that this is one of

    def _kernel(self, kernel: Kernel) -> None:
        """Read off how a kernel uses its pointers; scratch memory is its own."""
        self._excluded.update(kernel.scratch)
        if kernel.joined:  # it knows the memory of values without their names
            for node in kernel.nodes:
                links = node.links if isinstance(node, Nest) else ()
                self._excluded.update(out.home for out in node.outs)
                self._excluded.update(link.outer.home for link in links)
        places = kernel.places
        pointers: dict[str, tuple[Value, int]] = {}
        for statement in every(self._bodies[id(kernel)]):
            match statement:
                case Assign(name, Apply(word, (address,))) if (k := word_read(address)) in places:
                    place = places.pop(k)
                    home = place.value.home
                    self._known[home] = None
                    if is_small(home) and word == f"ptr_{word_of(home.dtype)}":
                        pointers[name] = home, place.offset // home.dtype.itemsize
                    else:
                        self._excluded.add(home)
                    continue
                case Assign(name, Apply("offset", (Variable(of), n))) if of in pointers:
                    home, first = pointers[of]
                    nbytes = number_of(n)
                    if nbytes is not None:
                        pointers[name] = home, first + nbytes // home.dtype.itemsize
                        continue
            for x in statement.parts()[1]:
                self._use(x, pointers)
        self._excluded.update(place.value.home for place in places.values())

    def _use(self, x: Expression, pointers: Mapping[str, tuple[Value, int]]) -> None:
        """Leave in memory of what more is asked than to load or store elements at known places."""
        match x:
            case Variable(name) if name in pointers:
                self._excluded.add(pointers[name][0])
            case Apply("load" | "store", (Variable(name), i, *others)) if name in pointers:
                home, first = pointers[name]
                number = number_of(i)
                if number is None or not 0 <= first + number < math.prod(home.shape):
                    self._excluded.add(home)
                for y in others:
                    self._use(y, pointers)
            case Apply(_, operands):
                for y in operands:
                    self._use(y, pointers)


def carries_of(job: Nested) -> tuple[Carry, ...]:
    """Values that a loop carries."""
    return job.node.carries if isinstance(job.node, Loop) else ()


def is_number(value: Value) -> bool:
    """Whether a value is one element."""
    return math.prod(value.shape) == 1


def is_small(value: Value, most: int = SMALL) -> bool:
    """Whether a value has so few elements that each may have a variable."""
    return 1 <= math.prod(value.shape) <= most


def is_all(link: Link) -> bool:
    """Whether a link leads to all of a small array."""
    sizes = {math.prod(value.shape) for value in (link.inner, link.outer)}
    return is_small(link.inner) and len(sizes) == 1 and not link.offset


def is_same(link: Link) -> bool:
    """Whether an inner array is an outer one, in all iterations."""
    return is_all(link) and not link.step


def word_read(address: Expression) -> int:
    """The number of the word that holds the slot of an address (`KernelBuilder.pointer`), or -1."""
    if isinstance(address, Apply) and len(address.operands) == 2:
        slot = address.operands[0]
        if isinstance(slot, Apply) and slot.word == "read_word":
            word = slot.operands[1]
            if isinstance(word, Apply) and word.word == "read_word":
                k = word.operands[1]
                return int(k.value) if isinstance(k, Number) else -1
    return -1


class _Classes:
    """Classes of values, united two at a time (a union-find structure)."""

    def __init__(self) -> None:
        self._parents: dict[Value, Value] = {}

    def leader(self, value: Value) -> Value:
        """The member that stands for its class."""
        while value in self._parents:
            value = self._parents[value]
        return value

    def unite(self, a: Value, b: Value) -> None:
        """Make the classes of two values one."""
        a, b = self.leader(a), self.leader(b)
        if a is not b:
            self._parents[a] = b
