"""Loops and branches over few elements as one kernel.

``join : jobs -> jobs``. The executor runs a loop by a table: for every kernel of the body it reads
a row, calls, and the kernel reads its words. Where the kernels have little to do, that takes most
of the time. Here the functions of the kernels are put one after the other into a function of the
loop language, with the loop around them; what the executor does between iterations is done there.

Memory is that of the loop's table: the same slots are set, turned and moved. A loop in such a loop
joins it. Left to the executor are loops with other steps than kernels in their bodies, and those
whose kernels take long enough, which share them with others and with threads.

What kernels promise of their arrays, that those of different scopes are apart, holds for each time
that a kernel runs: in another iteration it may read what it has written in this one. So each has
scopes of its own, which begin anew with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from funcgrad.compiler.loops.builder import read_word
from funcgrad.compiler.loops.language import (
    SCOPES,
    SLOTS,
    WORDS,
    Apply,
    Expression,
    Number,
    Variable,
    call,
    equal,
    rewritten,
)
from funcgrad.compiler.nest.allocate import Nested, Section
from funcgrad.compiler.nest.kernel import Kernel, KernelBuilder, word_of
from funcgrad.compiler.nest.layout import View
from funcgrad.compiler.nest.nodes import Branch, Loop, Node, precision

MOST_WORK = 1 << 13
"""Work (see `Kernel`) of an iteration from which the executor's own is not worth mentioning."""

MOST_LINES = 600
"""Lines of a joined function: LLVM takes its time for each."""

_N_SCOPES = {"load": 1, "store": 1, "load_where": 1, "turn": 2}
"""How many of the last operands of a word are scopes."""


def join(jobs: Sequence[list[Any]], is_single: Callable[[Kernel], bool]) -> None:
    """Put a kernel in the place of each loop or branch that can be one.

    Args:
        jobs: For every group of a program, what runs it, when everything has its place.
        is_single: Whether subnormal numbers are zero while a kernel runs, which all of a joined
            function has to agree on.
    """
    for row in jobs:
        for i, job in enumerate(row):
            if not isinstance(job, Nested):
                continue
            joined = _joined(job, is_single)
            if joined is not None:
                row[i] = joined
                continue
            for section in job.sections:
                join(section.jobs, is_single)


def _joined(job: Nested, is_single: Callable[[Kernel], bool]) -> Kernel | None:
    """The kernel of a loop or branch, if it can be one."""
    if not _is_joinable(job):
        return None
    kernels = [*_kernels(job)]
    if sum(kernel.text.count("\n") for kernel in kernels) > MOST_LINES:
        return None
    kernel = _Joiner(job).kernel()
    modes = {is_single(x) for x in kernels if precision(x.nodes)}
    return kernel if modes <= {is_single(kernel)} else None


def _is_joinable(job: Any) -> bool:
    """Whether all that a loop or branch runs are kernels with little to do."""
    if isinstance(job, Kernel):
        return len(job.parts) == 1
    if not isinstance(job, Nested):
        return False
    for section in job.sections:
        inner = [x for row in section.jobs for x in row]
        work = sum(x.work for x in inner if isinstance(x, Kernel))
        if work > MOST_WORK or not all(map(_is_joinable, inner)):
            return False
    return True


def _kernels(job: Nested) -> Iterator[Kernel]:
    for section in job.sections:
        for inner in (x for row in section.jobs for x in row):
            if isinstance(inner, Nested):
                yield from _kernels(inner)
            else:
                yield inner


class _Joiner:
    """Writes the function of one loop or branch."""

    def __init__(self, job: Nested) -> None:
        self.source = KernelBuilder()
        self.job = job
        self.n_inner = 0
        self.n_scopes = 0

    def kernel(self) -> Kernel:
        """The kernel that runs it."""
        self._nested(self.job)
        nodes: tuple[Node, ...] = (self.job.node,)
        return self.source.kernel(scratch=self.job.scratch, nodes=nodes)

    def _nested(self, job: Nested) -> None:
        for slot, origin, nbytes in job.sets():
            self._set(slot, self._slot(origin) + self.source.word(nbytes))
        if isinstance(job.node, Loop):
            self._loop(job, job.node)
        else:
            self._branch(job, job.node)

    # Slots, whose numbers are words: so loops of the same structure are one kernel.

    def _slot(self, number: int) -> Expression:
        return read_word(SLOTS, self.source.word(number))

    def _set(self, number: int, value: Expression) -> None:
        self.source.evaluate(call("write_word", SLOTS, self.source.word(number), value))

    def _element(self, x: View) -> Expression:
        """The first element of a value."""
        address = self._slot(x.value.slot) + self.source.word(x.first_byte)
        self.n_scopes += SCOPES
        return call("load", call(f"ptr_{word_of(x.dtype)}", address), 0, self.n_scopes)

    # Control flow.

    def _loop(self, job: Nested, node: Loop) -> None:
        name = self._name()
        if node.length is not None:
            with self.source.iterations(f"{name}t", node.length):
                self._section(job.sections[-1])
                self._go_on(job)
            return
        test, body = job.sections
        holds = self.source.assign(f"{name}h", equal(call("i64", 0), 0))
        with self.source.repeated(f"{name}t", holds):
            self._section(test)
            flag = node.bodies[0].outputs[0]
            self.source.assign(holds.name, self._element(View(flag, flag.shape, flag.strides)))
            with self.source.when(holds):
                self._section(body)
                self._go_on(job)

    def _go_on(self, job: Nested) -> None:
        """What happens between iterations."""
        name = self._name()
        for k, (now, following, spare) in enumerate(job.turns()):
            new = self.source.assign(f"{name}n{k}", self._slot(following))
            old = self.source.assign(f"{name}o{k}", self._slot(spare))
            for slot, address in ((now, new), (following, old), (spare, new)):
                self._set(slot, address)
        for slot, nbytes in job.moves():
            self._set(slot, self._slot(slot) + self.source.word(nbytes))

    def _branch(self, job: Nested, node: Any) -> None:
        assert isinstance(node, Branch)
        index = node.operands[0]
        assert isinstance(index, View)
        chosen = self.source.assign(f"{self._name()}b", self._element(index))
        with ExitStack() as stack:
            for i, section in enumerate(job.sections[:-1]):
                with self.source.when(chosen <= 0 if i == 0 else equal(chosen, i)):
                    self._section(section)
                stack.enter_context(self.source.otherwise())
            self._section(job.sections[-1])

    def _name(self) -> str:
        """What the names of variables begin with, of this function or of a kernel in it."""
        self.n_inner += 1
        return f"k{self.n_inner}_"

    # What is joined.

    def _section(self, section: Section) -> None:
        for job in (x for row in section.jobs for x in row):
            if isinstance(job, Nested):
                self._nested(job)
            else:
                self._kernel(job)

    def _kernel(self, kernel: Kernel) -> None:
        """Its statements, with names and words of their own."""
        prefix, base = self._name(), self.source.n_words
        self.source.take(kernel)
        self.n_scopes += SCOPES
        first = self.n_scopes
        scopes: set[float] = set()

        def change(x: Expression) -> Expression:
            match x:
                case Variable(name):
                    return x if x is SLOTS or x is WORDS else Variable(prefix + name)
                case Apply("read_word", (words, Number(k))) if words is WORDS:
                    return read_word(WORDS, base + int(k))
                case Apply(word, operands):
                    n = len(operands) - _N_SCOPES.get(word, 0)
                    moved = [_moved(scope, first) for scope in operands[n:]]
                    scopes.update(scope.value for scope in moved)
                    return Apply(word, (*map(change, operands[:n]), *moved))
            return x

        body = rewritten(kernel.function.body, change, lambda name: prefix + name)
        for scope in sorted(scopes):
            self.source.evaluate(call("scope", scope))
        self.source.body += body


def _moved(scope: Expression, first: int) -> Number:
    """A scope of a kernel, among those of all."""
    assert isinstance(scope, Number)
    return Number(first + int(scope.value))
