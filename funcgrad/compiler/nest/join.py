"""Loops, branches and programs over few elements as one kernel.

``join : jobs -> jobs``. The executor runs a loop by a table: for every kernel of the body it reads
a row, calls, and the kernel reads its words. Where the kernels have little to do, that takes most
of the time. Here the functions of the kernels are put one after the other into a function of the
loop language, with the loop around them; what the executor does between iterations is done there.

Memory is that of the loop's table, but what the table keeps in slots are variables here: the
addresses of arrays, which are set, swapped and moved, and the numbers that kernels hand to each
other (`registers`). A loop in such a loop joins it. Left to the executor are loops with other steps
than kernels in their bodies, and those whose kernels take long enough, which share them with others
and with threads.

A joined function is specialised on words that are 0 or 1, most of them ranges of one iteration: so
LLVM sees which of its loops are none. It is, too, on integers of the program, so that multiples and
remainders of counters take no multiplications and divisions, for which each iteration would wait.

What kernels promise of their arrays, that those of different scopes are apart, holds for each time
that a kernel runs: in another iteration it may read what it has written in this one. So each has
scopes of its own, which begin anew with it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from funcgrad.compiler.loops.builder import read_word
from funcgrad.compiler.loops.language import (
    LANES,
    SCOPES,
    SLOTS,
    WORDS,
    Apply,
    Assign,
    Body,
    Evaluate,
    Expression,
    Number,
    Statement,
    Variable,
    call,
    equal,
    every,
    expressions,
    rewritten,
    without_unused,
)
from funcgrad.compiler.loops.unroll import number_of, unroll
from funcgrad.compiler.machine import FEW, JOINED_WORK, LOOP_OPERATIONS, SEVERAL, SMALL
from funcgrad.compiler.nest.allocate import Memory, Nested, Section
from funcgrad.compiler.nest.arrange import is_on
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.kernel import (
    SHORT_LOOP,
    Bits,
    Kernel,
    KernelBuilder,
    Length,
    Place,
    Whole,
    word_of,
)
from funcgrad.compiler.nest.lanes import lanes_of
from funcgrad.compiler.nest.layout import Value, View
from funcgrad.compiler.nest.nodes import (
    Branch,
    Graph,
    Link,
    Loop,
    Nest,
    Node,
    Site,
    is_move,
    precision,
)
from funcgrad.compiler.nest.registers import Registers, carries_of, is_same, word_read
from funcgrad.intrinsics import CASTS, INTRINSICS

MOST_LINES = 2 * LOOP_OPERATIONS
"""Lines of a joined function: LLVM takes its time for each."""

_COUNTER = "t"
"""The variable that counts iterations of all blocks of lanes that stop one by one."""

_N_SCOPES = {
    **dict.fromkeys(
        ("load", "load_apart", "load_each", "load_run", "load_where", "store", "store_each"), 1
    ),
    "turn": 2,
}
"""The number of the last operands of a word that are scopes."""


def join(jobs: Sequence[list[Any]], is_single: Callable[[Kernel], bool], n_threads: int) -> None:
    """Put a kernel in the place of each loop or branch that can be one.

    Args:
        jobs: For every group of a program, what runs it, when everything has its place.
        is_single: Whether subnormal numbers are zero while a kernel runs, which all of a joined
            function has to agree on.
        n_threads: How many threads may share the lanes of a loop.
    """
    for row in jobs:
        for i, job in enumerate(row):
            if not isinstance(job, Nested):
                continue
            joined = _joined(job, is_single, n_threads)
            if joined is not None:
                row[i] = joined
                continue
            for section in job.sections:
                join(section.jobs, is_single, n_threads)


def _joined(job: Nested, is_single: Callable[[Kernel], bool], n_threads: int) -> Kernel | None:
    """The kernel of a loop or branch, if it can be one."""
    kernels = [*_kernels(job)]
    if not all(isinstance(kernel, Kernel) for kernel in kernels):
        return None
    bodies = {id(kernel): kernel.function.body for kernel in kernels}
    if is_on("unroll"):
        bodies = {id(kernel): _specialized(kernel) for kernel in kernels}
    if sum(1 for body in bodies.values() for _ in every(body)) > MOST_LINES:
        return None
    registers = Registers(job, bodies)
    lanes = lanes_of(job, registers) if is_on("interchange") else (0, 0)
    if not any(lanes) and not _is_brief(job):
        return None
    kernel = _Joiner(job, registers, bodies, *lanes).kernel()
    kernel.split(n_threads)
    # Of lanes all counts as double if any of it does, and so do a few numbers among others. To
    # numbers that are only moved it is the same whether subnormal ones are zero.
    computing = [x for x in kernels if precision(node for node in x.nodes if not is_move(node))]
    changed = [x for x in computing if is_single(x) != is_single(kernel)]
    return kernel if any(lanes) or all(x.work <= SMALL for x in changed) else None


def _is_brief(job: Nested) -> bool:
    """Whether no iteration of a loop, and of those inside of it, has much to do."""
    for section in job.sections:
        inner = [x for row in section.jobs for x in row]
        kernels = [x for x in inner if isinstance(x, Kernel)]
        if sum(x.work for x in kernels) > JOINED_WORK or any(len(x.parts) > 1 for x in kernels):
            return False
        if not all(_is_brief(x) for x in inner if isinstance(x, Nested)):
            return False
    return True


def join_program(jobs: Sequence[list[Any]], graph: Graph, memory: Memory) -> None:
    """Put one kernel in the place of each run of kernels of few elements in a program.

    Each is computed as it was: what the executor does between them is left out, and numbers that
    one hands to the next are variables, too. All words are numbers that are written down, lengths
    included: such a kernel serves one program. Bits are the same but for sums in loops of single
    numbers, whose order is LLVM's.

    Args:
        jobs: For every group of the program, what runs it, when everything has its place.
        graph: The nodes.
        memory: Where everything is.
    """

    def is_few(place: tuple[list[Any], int]) -> bool:
        job = place[0][place[1]]
        return isinstance(job, Kernel) and len(job.parts) == 1 and job.work <= JOINED_WORK

    places = [(row, k) for row in jobs for k in range(len(row))]
    for is_run, run in itertools.groupby(places, is_few):
        found = [*run]
        joined = _joined_run([row[k] for row, k in found], graph, memory) if is_run else None
        if joined is not None:
            for row, k in found:
                row[k] = None
            row, k = found[0]
            row[k] = joined
    for row in jobs:
        row[:] = [job for job in row if job is not None]


def _joined_run(kernels: list[Kernel], graph: Graph, memory: Memory) -> Kernel | None:
    """The kernel of a run of kernels, if it can be one."""
    bodies = {id(kernel): kernel.function.body for kernel in kernels}
    modes = {precision(kernel.nodes) for kernel in kernels} - {""}
    n_lines = sum(1 for body in bodies.values() for _ in every(body))
    if len(kernels) < 2 or len(modes) > 1 or n_lines > MOST_LINES:
        return None
    nodes = [node for kernel in kernels for node in kernel.nodes]
    section = Section(graph, [Group(0, node) for node in nodes], [kernels])
    job = Nested(Nest((), (), (graph,), ()), [section], arena_slots=[memory.arena_slot])
    registers = Registers(job, bodies, is_run=True)
    made = _Joiner(job, registers, bodies, is_fixed=True).kernel()
    made.nodes = nodes
    return made


def _kernels(job: Nested) -> Iterator[Any]:
    """Iterate over the kernels of a loop or branch, and of those inside of it."""
    for section in job.sections:
        for inner in (x for row in section.jobs for x in row):
            if isinstance(inner, Nested):
                yield from _kernels(inner)
            else:
                yield inner


def _specialized(kernel: Kernel) -> Body:
    """The statements of a kernel; those of a few elements with its sizes, and without loops.

    Longer ranges stay words: blocks of lanes have others. Left as it is, too, is what has memory of
    its own. On single numbers, libm may be sooner than formulas.
    """
    body = kernel.function.body
    if kernel.work > SMALL or kernel.length > SEVERAL or kernel.scratch:
        return body
    words = {
        number: call("i64", word)
        for number, word in ((0, 0), (1, kernel.length), *kernel.numbered())
        if isinstance(word, int) and not isinstance(word, Bits) and 0 <= word <= SMALL
    }
    count = max(math.prod(node.space) for node in kernel.nodes)
    has_lanes = any(isinstance(x, Apply) and x.word in LANES for x in expressions(body))
    is_of_numbers = count <= SEVERAL and not has_lanes
    sooner = (("always", "few") if count <= FEW else ("always",)) if is_of_numbers else ()

    def change(x: Apply) -> Expression:
        if x.word == "read_word":
            table, k = x.operands
            return words.get(int(k.value), x) if table is WORDS and isinstance(k, Number) else x
        intrinsic = INTRINSICS.get(x.word)
        if intrinsic is None or intrinsic.libm not in sooner:
            return x
        return Apply(f"libm_{x.word}", x.operands)

    return unroll(body, SEVERAL, change)


class _Joiner:
    """Writes the function of one loop or branch."""

    def __init__(
        self,
        job: Nested,
        registers: Registers,
        bodies: Mapping[int, Body],
        lanes: int = 0,
        length: int = 0,
        is_fixed: bool = False,
    ) -> None:
        self.source = KernelBuilder()
        self.is_fixed = is_fixed
        self.job = job
        self.registers = registers
        self.bodies = bodies
        self.lanes = lanes
        self.block_length = length
        self.block: tuple[Expression, Expression] | None = None
        self.slots: dict[int, Variable] = {}
        self.set_inside: set[int] = set()
        self.arenas: set[int] = set()
        self.distances: dict[tuple[Value, int], Expression] = {}
        self.lengths: dict[Length, Assign] = {}
        self.n_inner = 0
        self.n_scopes = 0

    def kernel(self) -> Kernel:
        """The kernel that runs it."""
        if self.lanes:
            self.source.assign(_COUNTER, call("i64", 0))
            with self.source.blocks("q", *self.source.span(), self.block_length) as self.block:
                self._everything()
        else:
            self._everything()
        if isinstance(self.job.node, Loop) and self.job.node.length is None:
            self._leave_carried()
        # Slots around the loop are read once.
        first = [
            Assign(variable.name, read_word(SLOTS, self._read(slot)))
            for slot, variable in self.slots.items()
            if slot not in self.set_inside
        ]
        body = [*self.lengths.values(), *first, *self.source.body]
        self.source.body = without_unused(body, _DROPPED.__contains__)
        nodes: tuple[Node, ...] = (self.job.node,)
        if not self.lanes:
            return self.source.kernel(scratch=self.job.scratch, nodes=nodes)
        # Lanes have memory of their own in all arrays, so that parts need none.
        assert isinstance(self.job.node, Loop)
        work = (self.job.node.length or SEVERAL) * sum(kernel.work for kernel in _kernels(self.job))
        return self.source.kernel(self.lanes, nodes=nodes, is_parallel=True, work=work)

    def _everything(self) -> None:
        for value in self.registers.before:
            self._load(value, value.slot, value.offset)
        self._nested(self.job)

    def _nested(self, job: Nested) -> None:
        self.arenas.update(job.arena_slots)
        if not isinstance(job.node, Loop | Branch):
            self._section(job.sections[0])
            return
        for slot, origin, nbytes in job.sets():
            self._set(slot, self._address(origin, nbytes))
        for link in job.node.links:
            if link.inner.maker is None and not link.step and not is_same(link):
                self._load(link.inner, link.inner.slot)
        if isinstance(job.node, Loop):
            self._loop(job, job.node)
        else:
            self._branch(job, job.node)

    # Slots, which are variables, by their first use: so loops of the same structure are one kernel.

    def _slot(self, number: int) -> Variable:
        return self.slots.setdefault(number, Variable(f"s{len(self.slots)}"))

    def _set(self, number: int, value: Expression) -> None:
        self.set_inside.add(number)
        self.source.assign(self._slot(number).name, value)

    def _address(self, slot: int, nbytes: int, value: Value | None = None) -> Expression:
        """An address so many bytes from that in a slot; one of a value has the same words anew.

        Where values lie in arenas depends on their sizes, so distances in these are words even if
        they are 0, and no two values share one.
        """
        start = self._slot(slot)
        if not nbytes and slot in self.set_inside and slot not in self.arenas:
            return start
        if value is None:
            return start + self._read(nbytes)
        key = value.home, nbytes - value.offset
        if key not in self.distances:
            self.distances[key] = self._read(nbytes)
        return start + self.distances[key]

    def _scope(self) -> int:
        """Alias scope of its own, without promises."""
        self.n_scopes += SCOPES
        return self.n_scopes

    # Numbers, in variables or in memory.

    def _number(self, x: View) -> Expression:
        """The first element of a value."""
        variables = self.registers.of(x.value)
        if variables is not None:
            return variables[x.offset]
        pointer = call(f"ptr_{word_of(x.dtype)}", self._address(x.value.slot, x.first_byte))
        return call("load", pointer, 0, self._scope())

    def _load(self, value: Value, slot: int, nbytes: int = 0) -> None:
        """Give the variables of a value, if it has any, what stands in memory."""
        variables = self.registers.of(value)
        if variables is not None:
            self._fill(variables, value, self._address(slot, nbytes))

    def _fill(self, variables: Sequence[Variable], value: Value, address: Expression) -> None:
        pointer, scope = call(f"ptr_{word_of(value.dtype)}", address), self._scope()
        for i, variable in enumerate(variables):
            self.source.assign(variable.name, call("load", pointer, i, scope))

    def _copy(self, to: Sequence[Variable], values: Sequence[Expression]) -> None:
        for variable, value in zip(to, values, strict=True):
            self.source.assign(variable.name, value)

    def _store(self, value: Value, address: Expression) -> None:
        pointer, scope = call(f"ptr_{word_of(value.dtype)}", address), self._scope()
        for i, variable in enumerate(self.registers.of(value) or ()):
            self.source.store(pointer, i, variable, scope)

    # Control flow.

    def _loop(self, job: Nested, node: Loop) -> None:
        name = self._name()
        for carry in carries_of(job):
            now = self.registers.of(carry.now)
            if now is not None and not carry.is_in_place:
                outer, offset = carry.initial.outer, carry.initial.offset
                same = self.registers.of(outer)
                if same is None:
                    first = View(outer, carry.now.shape, carry.now.strides, offset).first_byte
                    self._fill(now, carry.now, self._address(outer.slot, first))
                else:
                    self._copy(now, same[offset : offset + len(now)])
        if node.length is not None:
            # Iterations that wait for numbers of the one before are no vectors.
            is_serial = any(
                self.registers.of(carry.now) is not None and carry.now.dtype.kind in "fc"
                for carry in carries_of(job)
            )
            scanned = [x for x in node.links if x.inner.maker is None and x.step]
            counted = {x: _counted(x, node.length) for x in scanned if self.registers.of(x.inner)}
            is_short = any(x is not None for x in counted.values())
            with self.source.iterations(f"{name}t", node.length, is_serial, is_short) as index:
                for link in scanned:
                    least, variables = counted.get(link), self.registers.of(link.inner)
                    if least is None or variables is None:
                        self._load(link.inner, link.inner.slot)
                        continue
                    # LLVM sees which elements of other iterations a number that counts leads to.
                    number = call(word_of(link.inner.dtype), self._word(least) + index)
                    self.source.assign(variables[0].name, number)
                self._section(job.sections[-1])
                self._go_on(job)
            for carry in carries_of(job):
                self._end(carry.now, carry.final)
            return
        test, body = job.sections
        if self.block is not None:
            self._flagged(node, name, body)
            return
        holds = self.source.assign(f"{name}h", equal(call("i64", 0), 0))
        with self.source.repeated(f"{name}t", holds):
            self._section(test)
            flag = node.bodies[0].outputs[0]
            self.source.assign(holds.name, self._number(View(flag, flag.shape, flag.strides)))
            with self.source.when(holds):
                self._section(body)
                self._go_on(job)

    def _flagged(self, node: Loop, name: str, body: Section) -> None:
        """Iterations of a block of lanes, until the flag of none is set."""
        assert self.block is not None
        flags, scope = node.carries[-1].now.home, self._scope()
        first, end = self.block
        address = self._address(flags.slot, flags.offset) + first
        pointer = self.source.assign(f"{name}p", call("ptr_u8", address))
        holds = self.source.assign(f"{name}h", equal(call("i64", 0), 0))
        with self.source.repeated_on(_COUNTER, holds):
            with self.source.when(equal(end - first, self.block_length)):
                found = call("load", pointer, call("lanes", 0, self.block_length), scope)
                some = self.source.assign(f"{name}o", call("across_bitwise_or", found))
                self.source.assign(holds.name, call("not_equal", some, 0))
            with self.source.otherwise():
                self.source.assign(holds.name, equal(call("i64", 0), 1))
                with self.source.loop(f"{name}f", 0, end - first) as lane:
                    flag = call("not_equal", call("load", pointer, lane, scope), 0)
                    self.source.assign(holds.name, holds | flag)
            with self.source.when(holds):
                self._section(body)

    def _go_on(self, job: Nested) -> None:
        """Set, swap and move addresses between iterations."""
        name = self._name()
        swapped = [c for c in carries_of(job) if not c.is_in_place]
        rows = zip(swapped, job.turns(), strict=True)
        for k, (carry, (now, following, spare)) in enumerate(rows):
            old_ones, new_ones = self.registers.of(carry.now), self.registers.of(carry.next)
            if old_ones is not None and new_ones is not None:
                self._copy(old_ones, new_ones)
                continue
            new = self.source.assign(f"{name}n{k}", self._slot(following))
            old = self.source.assign(f"{name}o{k}", self._slot(spare))
            for slot, address in ((now, new), (following, old), (spare, new)):
                self._set(slot, address)
        for slot, nbytes in job.moves():
            self._set(slot, self._slot(slot) + self._read(nbytes))

    def _end(self, now: Value, final: Value | None) -> None:
        """Carried values after a loop whose length is known."""
        last = self.registers.of(now)
        variables = None if final is None else self.registers.of(final)
        if final is None or last is None or variables is last:
            return
        assert variables is not None  # they are kin
        self._copy(variables, last)
        if self.registers.is_kept(final):
            self._store(final, self._address(final.slot, final.offset))

    def _leave_carried(self) -> None:
        """Put what a loop has carried, of unknown length, where the next step looks for it."""
        swapped = [c for c in carries_of(self.job) if not c.is_in_place]
        for carry, (spare, *_) in zip(swapped, self.job.spares, strict=True):
            place = carry.now.slot
            address: Expression = self._slot(place)
            if self.registers.of(carry.now) is not None:
                address = self._address(spare.slot, spare.offset)
                self._store(carry.now, address)
            self.source.evaluate(call("write_word", SLOTS, self._read(place), address))

    def _branch(self, job: Nested, node: Any) -> None:
        assert isinstance(node, Branch)
        index = node.operands[0]
        assert isinstance(index, View)
        chosen = self.source.assign(f"{self._name()}b", self._number(index))
        with ExitStack() as stack:
            for i, section in enumerate(job.sections[:-1]):
                with self.source.when(chosen <= 0 if i == 0 else equal(chosen, i)):
                    self._section(section)
                stack.enter_context(self.source.otherwise())
            self._section(job.sections[-1])

    def _name(self) -> str:
        """A prefix for names of variables, of this function or of a kernel in it."""
        self.n_inner += 1
        return f"k{self.n_inner}_"

    # The kinds of steps that are joined.

    def _section(self, section: Section) -> None:
        for inner in (x for row in section.jobs for x in row):
            if isinstance(inner, Nested):
                self._nested(inner)
            else:
                self._kernel(inner)

    def _words(self, kernel: Kernel) -> Mapping[int, Expression | Place]:
        """The words of a kernel of one part, by their numbers; places count two."""
        span: list[int | Site | Expression] = [0, kernel.length]
        if self.block is not None and kernel.length > 1:
            each = kernel.length // self.lanes
            span = [x if each == 1 else x * each for x in self.block]
        found: dict[int, Expression | Place] = dict(enumerate(map(self._word, span)))
        for number, word in kernel.numbered():
            if isinstance(word, Place):
                found[number] = word
                found[number + 1] = self._word(word.value.offset + word.offset)
            else:
                found[number] = self._word(word)
        return found

    def _word(self, word: int | Site | Expression) -> Expression:
        if isinstance(word, Expression):
            return word
        if isinstance(word, int) and (word in (0, 1) or isinstance(word, Whole)):
            return call("i64", word)
        if isinstance(word, Length):
            if word not in self.lengths:
                name = f"n{len(self.lengths)}"
                self.lengths[word] = Assign(name, self._read(word))
            return Variable(self.lengths[word].name)
        return self._read(word)

    def _read(self, word: int | Site) -> Expression:
        """A word that is read from memory, or one that is written down."""
        if self.is_fixed and isinstance(word, int):
            return call("i64", int(word))
        return self.source.word(word)

    def _kernel(self, kernel: Kernel) -> None:
        """Its statements, with names and words of their own."""
        prefix, words = self._name(), self._words(kernel)
        self.source.joined[prefix] = kernel
        self.n_scopes += SCOPES
        first = self.n_scopes
        scopes: set[float] = set()
        # Pointers to arrays whose elements have variables, and the element that each points to.
        pointers: dict[str, tuple[Value, int]] = {}

        def place_of(address: Expression) -> Place | None:
            place = words.get(word_read(address))
            return place if isinstance(place, Place) else None

        def element(name: str, i: Expression) -> Variable:
            value, first = pointers[name]
            variables, number = self.registers.of(value), number_of(i)
            assert variables is not None
            assert number is not None
            return variables[first + number]

        names: dict[str, Expression] = {SLOTS.name: SLOTS, WORDS.name: WORDS}

        def change(x: Expression) -> Expression:
            if isinstance(x, Variable):
                if x.name not in names:
                    names[x.name] = Variable(prefix + x.name)
                return names[x.name]
            if not isinstance(x, Apply):
                return x
            word, operands = x.word, x.operands
            match operands:
                case (Variable(), Number(k)) if word == "read_word" and operands[0] is WORDS:
                    found = words[int(k)]
                    assert isinstance(found, Expression)
                    return found
                case (Variable(name), i, _) if word == "load" and name in pointers:
                    return element(name, i)
            if (place := place_of(x)) is not None:
                value = place.value
                return self._address(value.slot, value.offset + place.offset, value)
            n = len(operands) - _N_SCOPES.get(word, 0)
            moved = [_moved(scope, first) for scope in operands[n:]]
            scopes.update([scope.value for scope in moved])
            return Apply(word, (*map(change, operands[:n]), *moved))

        def replace(statement: Statement) -> Iterable[Statement] | None:
            match statement:
                case Assign(name, Apply(_, (address,))) if (place := place_of(address)) is not None:
                    if self.registers.of(place.value) is not None:
                        pointers[name] = place.value, place.offset // place.value.dtype.itemsize
                        return ()
                case Assign(name, Apply("offset", (Variable(of), n))) if of in pointers:
                    nbytes, (value, start) = number_of(n), pointers[of]
                    assert nbytes is not None
                    pointers[name] = value, start + nbytes // value.dtype.itemsize
                    return ()
                case Evaluate(Apply("store", (Variable(name), i, x, _))) if name in pointers:
                    return self._stored(*pointers[name], element(name, i), i, change(x))
            return None

        body = rewritten(self.bodies[id(kernel)], change, lambda name: prefix + name, replace)
        if kernel.joined:  # it has as many as all kernels in it
            self.n_scopes = max(self.n_scopes, int(max(scopes, default=0)) // SCOPES * SCOPES)
        for scope in sorted(scopes):
            self.source.evaluate(call("scope", scope))
        self.source.body += body

    def _stored(
        self, value: Value, first: int, variable: Variable, i: Expression, x: Expression
    ) -> Iterator[Statement]:
        """Statements that store an element which has a variable."""
        cast = word_of(value.dtype)
        yield Assign(variable.name, call(cast, x))
        if self.registers.is_kept(value):
            pointer = call(f"ptr_{cast}", self._address(value.slot, value.offset, value))
            place = first + (number_of(i) or 0)
            yield Evaluate(call("store", pointer, place, variable, self._scope()))


_DROPPED = frozenset({"add", "read_word", "i64", "load", *(f"ptr_{word}" for word in CASTS)})
"""The words of what nobody needs where numbers have variables: addresses, and loads of others."""


def _counted(link: Link, length: int) -> int | None:
    """The first of the integers that a loop reads in turn, if each is one more than the last."""
    numbers = link.outer.array
    if numbers is None or numbers.dtype.kind not in "iu" or math.prod(link.inner.shape) != 1:
        return None
    found = numbers.reshape(-1)[link.offset :: link.step][:length]
    is_counting = 1 < length < SHORT_LOOP and bool((np.diff(found) == 1).all())
    return int(found[0]) if is_counting else None


def _moved(scope: Expression, first: int) -> Number:
    """A scope of a kernel, among those of all."""
    assert isinstance(scope, Number)
    return Number(first + int(scope.value))
