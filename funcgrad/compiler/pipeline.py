"""The compiler: ``Program -> Executable``.

`passes` rewrite the program; `lower.build` leaves only what computes; `fuse` forms groups;
`codegen` writes one kernel per group; `allocate` gives everything a place; `join` makes one kernel
of all that a small loop runs; `kernel_store` turns sources into native code.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad.base import environment, stacks
from funcgrad.compiler import abi, machine
from funcgrad.compiler.kept_plans import KeptPlan
from funcgrad.compiler.loops.language import NamedFunction
from funcgrad.compiler.nest.allocate import Memory, Nested, Section, place
from funcgrad.compiler.nest.arrange import arrange, is_on
from funcgrad.compiler.nest.codegen import generate, generate_copy
from funcgrad.compiler.nest.cost import cycles_of
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.gather_scatter import GENERATORS, begun, is_there
from funcgrad.compiler.nest.join import join, join_program
from funcgrad.compiler.nest.kernel import Kernel, Place, Site
from funcgrad.compiler.nest.layout import Value, View, whole
from funcgrad.compiler.nest.lower import build, simplified
from funcgrad.compiler.nest.nodes import (
    Branch,
    External,
    Graph,
    Limit,
    Loop,
    Nest,
    Node,
    Point,
    Product,
    Put,
    Routine,
    Scan,
    all_nodes,
    precision,
    values_read,
)
from funcgrad.compiler.plans import Job, Plan, nodes_of, source_lines
from funcgrad.compiler.runtime import kernel_store, warm_memory
from funcgrad.compiler.runtime.executable import Executable, KernelStats, Step, StepTable, step_of
from funcgrad.compiler.runtime.executor import BranchOfTables, Disjoint, LoopOfTables
from funcgrad.compiler.runtime.matmul import Multiplication
from funcgrad.compiler.runtime.python_calls import PythonCall
from funcgrad.compiler.runtime.routines import ForeignCall, scratch_of
from funcgrad.compiler.runtime.threads import (
    MOST_THREADS,
    Parallel,
    Worker,
    default_threads,
    is_available,
)
from funcgrad.core.facets import Facet
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Program
from funcgrad.errors import MemoryBudgetError
from funcgrad.intrinsics import expression
from funcgrad.lowering import LibraryCall, Together
from funcgrad.observers.limits import format_bytes
from funcgrad.observers.notices import warn_of_length, warn_of_python_loop
from funcgrad.passes.agreement import check_agreement


def compile_program(
    program: Program,
    donated: Sequence[bool] = (),
    threads: int | None = None,
    memory: int | None = None,
    is_joined: bool = False,
    is_general: bool = False,
) -> Executable:
    """Compile a program.

    Args:
        program: The program.
        donated: For every input whether its memory may be used for results.
        threads: How many threads large kernels may use; ``None`` for the least limit of the calls
            in the program, or else all cores.
        memory: Bytes that a call may need besides its arguments; ``None`` for no limit.
        is_joined: Whether one kernel is to run all of a program of few elements: for calls that
            need no Python, in which steps take time.
        is_general: Whether the plan is to stand for other sizes, too.
    Returns: A callable of the flat inputs.
    Raises: MemoryBudgetError: The limit is too small.
    """

    def run() -> Executable:
        with kernel_store.counting() as counts:
            flags = is_joined, is_general
            return _compiled(program, donated, threads, memory, flags, counts)

    return stacks.with_room(run)


def _compiled(
    program: Program,
    donated: Sequence[bool],
    threads: int | None,
    limit: int | None,
    flags: tuple[bool, bool],
    counts: kernel_store.Stats,
) -> Executable:
    lowered = simplified(program)
    check_agreement(lowered)
    warn_of_length(program.name, [equation.source for equation in lowered.equations])
    n_threads = _n_threads(thread_limit(program) if threads is None else threads)
    options = tuple(donated), limit, flags
    is_kept = not any(flags) and environment.is_on("FUNCGRAD_REUSE_PLANS")
    kept = KeptPlan(lowered, options, n_threads) if is_kept else None
    executable = None if kept is None else _restored(kept, options, counts)
    if executable is None:
        planned = lowered if kept is None else kept.program
        executable = _planned_anew(program, planned, options, n_threads, counts)
        if kept is not None:
            kept.write(executable)
    for tell in observers:
        tell(program, executable)
    return executable


_Options = tuple[tuple[bool, ...], int | None, tuple[bool, bool]]
"""Donated inputs; the limit of memory; whether the plan is joined, and general."""


def _restored(kept: KeptPlan, options: _Options, counts: kernel_store.Stats) -> Executable | None:
    """The executable of a plan that is on disk."""
    found = kept.read()
    if found is None:
        return None
    program, n_threads = kept.program, kept.n_threads

    def plan() -> Plan:
        unused = kernel_store.Stats()
        return stacks.with_room(
            lambda: _planned_anew(program, program, options, n_threads, unused).plan
        )

    written = [value.home for value in found.graph.outputs if value.home is not value]
    found.table.describe = lambda step: _described(executable.plan.jobs, int(bool(written)), step)
    found.table.seal(found.graph.inputs, written)
    stats = KernelStats(counts.compiled, counts.loaded_from_disk, counts.memory_hits)
    executable = Executable(
        found.graph, found.memory, found.table, plan, stats, found.nested, found.calls_libraries
    )
    return executable


def _planned_anew(
    program: Program,
    lowered: Program,
    options: _Options,
    n_threads: int,
    counts: kernel_store.Stats,
) -> Executable:
    """The executable of a program, planned and compiled."""
    donated, limit, (is_joined, is_general) = options
    graph, jobs, memory = _plan(lowered, donated, n_threads, limit, is_general)
    if is_on("join"):
        join(jobs, _is_single, n_threads)
        if is_joined:
            join_program(jobs, graph, memory)
    functions = {job.text: job.function for job, _ in _every(jobs) if isinstance(job, Kernel)}
    codes = list(dict.fromkeys(_codes(jobs)))
    if any(warm_memory.is_large(v.shape, v.dtype) for v in graph.outputs if v.home is v):
        codes.append(warm_memory.WarmMemory.named())
    addresses = kernel_store.compile_kernels([*functions.values()], codes)
    sources = [*functions]
    stepper = _Stepper(addresses, n_threads)
    table = StepTable([stepper.step(job) for row in jobs for job in row])
    written = [value.home for value in graph.outputs if value.home is not value]
    if written:
        table.steps.insert(0, _disjoint_step(graph, written))
    table.describe = partial(_described, jobs, int(bool(written)))
    table.seal(graph.inputs, written)
    _warn_of_python_loops(program, jobs)
    stats = KernelStats(counts.compiled, counts.loaded_from_disk, counts.memory_hits)
    size = kernel_store.code_size(sources)
    plan = Plan(lowered, graph, jobs, sources, memory, size, stepper.sites)
    return Executable(
        graph,
        memory,
        table,
        lambda: plan,
        stats,
        stepper.step_tables,
        any(isinstance(job, ForeignCall) and not job.is_own for job, _ in _every(jobs)),
        [job.node.primitive for job, _ in _every(jobs) if isinstance(job, PythonCall)],
    )


observers: list[Callable[[Program, Executable], None]] = []
"""Functions that are told of every executable that is made, and of its program."""

ATTEMPTS = 4
"""How often a program is planned anew, since holes between values took what was left."""

_Planned = tuple[Graph, list[list[Job]], Memory]


def _plan(
    program: Program,
    donated: Sequence[bool],
    n_threads: int,
    limit: int | None,
    is_general: bool,
) -> _Planned:
    """A plan that keeps to a limit: at first without anything done twice."""
    planned = partial(_planned, program, donated, n_threads, is_general)
    plan = planned(None)
    if limit is None or _needed(plan) <= limit:
        return plan
    best = plan = planned(Limit())
    scratch = tuple(
        sum(value.nbytes for job in row for value in getattr(job, "scratch", ())) for row in plan[1]
    )
    results = _needed(plan) - plan[2].arena_bytes
    aim = limit - results
    for _ in range(ATTEMPTS):
        if _needed(best) <= limit or aim <= 0:
            break
        plan = planned(Limit(aim, scratch))
        best = min(best, plan, key=_needed)
        # Holes between values are known only now, and less may leave fewer of them.
        aim -= max(plan[2].arena_bytes - aim, aim // machine.SEVERAL)
    if _needed(best) > limit:
        raise _too_small(program, best, limit)
    return best


def _needed(plan: _Planned) -> int:
    """Bytes of results and of what is between, besides the arguments."""
    graph, _, memory = plan
    return memory.arena_bytes + sum(v.nbytes for v in graph.outputs if v.home is v)


def _too_small(program: Program, plan: _Planned, limit: int) -> MemoryBudgetError:
    graph, jobs, memory = plan
    largest = Plan(program, graph, jobs, (), memory, 0).largest()
    return MemoryBudgetError(
        f"{program.described()}\nneeds {format_bytes(_needed(plan))} besides its arguments at "
        f"least, more than memory={format_bytes(limit)}. Its largest array is {largest}\n"
        "Give it more, donate arguments, compute in smaller pieces (lax.map with batch_size), or "
        "put parts of loops into checkpoint."
    )


def _planned(
    program: Program,
    donated: Sequence[bool],
    n_threads: int,
    is_general: bool,
    limit: Limit | None,
) -> _Planned:
    graph = build(program, is_general)
    graph.limit = limit
    groups = arrange(graph, donated=donated)
    _drop_unread(graph)
    jobs = [list(_jobs(group)) for group in groups]
    for job, _ in _every(jobs):
        if isinstance(job, Kernel | ForeignCall | Multiplication):
            job.split(n_threads)
    _go_on(jobs)
    return graph, jobs, place(graph, groups, jobs)


def _drop_unread(graph: Graph) -> None:
    """Let go of constants that nothing reads any more: an empty array stands for each of them.

    Such are indices that count evenly, which have become strides.
    """
    read = {value for node in all_nodes(graph) for value in values_read(node)}
    for value in graph.constants:
        if value not in read:
            value.array = np.empty(0, value.dtype)


def _described(jobs: Sequence[Sequence[Job]], offset: int, step: int) -> str:
    """The user's lines of a step of a table.

    Args:
        jobs: What its steps run.
        offset: How many steps come before them.
        step: The number of the step.
    """
    made = [job for row in jobs for job in row]
    lines = source_lines(nodes_of(made[step - offset])) if step >= offset else iter(())
    return "".join(f"\n  at            {line}" for line in itertools.islice(lines, 3))


def _jobs(group: Group, is_inner: bool = False) -> Iterator[Job]:
    """Jobs of a group, maybe of a loop; every kernel with the nodes that it computes."""
    for job in _arranged(group, is_inner):
        if isinstance(job, Kernel):
            if not job.nodes:
                job.nodes = group.nodes
            for node in job.nodes:
                node.equation = node.equation or group.nodes[0].equation
        yield job


def _arranged(group: Group, is_inner: bool) -> Iterator[Job]:
    node = group.nodes[0]
    if group.is_fusable or group.nest is not None or isinstance(node, Scan):
        for put in group.nodes:
            if isinstance(put, Put):
                yield from begun(put)
        if not all(map(_is_there, group.nodes)):
            yield generate(group, kernel_store.vectors_held(), is_inner)
    elif isinstance(node, Nest):
        yield from _nest_jobs(node)
    elif type(node) in GENERATORS:
        yield from GENERATORS[type(node)](node)
    elif isinstance(node, Product):
        yield Multiplication(node)
    elif isinstance(node, Routine):
        yield from _routine_jobs(node)
    else:
        assert isinstance(node, External)
        yield PythonCall(node)


def _is_there(node: Node) -> bool:
    """Whether a node leaves an array as it is, in the same memory."""
    if type(node) is not Point or not expression(node.expr).is_copy or node.out.part is not None:
        return False
    return node.out.is_stored and is_there(node.operands[0], whole(node.out))


def _routine_jobs(node: Routine) -> Iterator[Job]:
    for i, start in node.starts:
        if not is_there(start, node.memory[i]):
            yield generate_copy(start, node.memory[i])
    calls: list[LibraryCall] = []
    for call in node.calls:
        # Without a pool nothing runs steps in parts.
        calls += call.calls if isinstance(call, Together) and not is_available() else [call]
    for k, call in enumerate(calls):
        yield ForeignCall(node, call, scratch_of(node) if k == 0 else [])


def _nest_jobs(node: Nest) -> Iterator[Job]:
    carries = node.carries if isinstance(node, Loop) else ()
    given = frozenset([k.inner for k in node.links if k.inner.maker is None])
    given |= {carry.now for carry in carries}
    sections = []
    for body in node.bodies:
        around = node if isinstance(node, Branch) or body is node.bodies[-1] else None
        groups = arrange(body, around=around, outer=given)
        jobs = [list(_jobs(group, is_inner=True)) for group in groups]
        sections.append(Section(body, groups, jobs))
    for carry in carries:
        if carry.is_in_place:
            assert carry.final is not None
            if not is_there(carry.start, whole(carry.final)):
                yield generate_copy(carry.start, whole(carry.final))
    yield Nested(node, sections)
    if isinstance(node, Loop) and node.length is None:
        # Nobody knew which iteration would be the last one.
        for carry in carries:
            assert carry.final is not None
            if not carry.is_in_place:
                yield generate_copy(whole(carry.now), whole(carry.final))


LONG_CYCLES = machine.THREAD_WORK // machine.FEW
"""Cycles of a job after which what goes on in the background is looked after."""


def _go_on(jobs: Sequence[list[Job]]) -> None:
    """After long jobs, let what has begun go on; the library does nothing while nobody calls it."""
    begun: dict[Node, ForeignCall] = {}
    for row in jobs:
        for job in list(row):
            if isinstance(job, Nested):
                for section in job.sections:
                    _go_on(section.jobs)
            node = nodes_of(job)[0]
            if isinstance(node, Routine) and node.background is not None:
                begun[node] = ForeignCall(node, node.background.ask)
            elif isinstance(node, Routine) and node.begun_by is not None:
                del begun[node.begun_by]
            elif begun and (isinstance(job, Nested) or cycles_of(nodes_of(job)) >= LONG_CYCLES):
                row.append(next(iter(begun.values())))


def _every(jobs: Sequence[Sequence[Job]], is_repeated: bool = False) -> Iterator[tuple[Job, bool]]:
    """All jobs, those of inner graphs too, and whether they stand in a loop."""
    for job in (job for row in jobs for job in row):
        yield job, is_repeated
        if isinstance(job, Nested):
            for section in job.sections:
                yield from _every(section.jobs, is_repeated or isinstance(job.node, Loop))


def _codes(jobs: Sequence[Sequence[Job]]) -> Iterator[NamedFunction]:
    """The code that is written down and that the jobs run, inner ones too."""
    yield kernel_store.executor_code()
    for job, _ in _every(jobs):
        if isinstance(job, Nested):
            is_loop = isinstance(job.node, Loop)
            yield (LoopOfTables if is_loop else BranchOfTables).named()
            continue
        if not isinstance(job, Kernel):
            yield from job.codes
        if len(job.parts) > 1:
            yield from (Parallel.named(), Worker.named())


class _Stepper:
    """Makes steps of jobs, when everything has its place.

    Attributes:
        step_tables: The tables of inner graphs, which must live as long as the program.
        sites: What kernels may refuse, by the numbers that they know.
    """

    def __init__(self, addresses: dict[str, int], n_threads: int) -> None:
        self.addresses = addresses
        self.n_threads = n_threads
        self.flushes = not environment.is_on("FUNCGRAD_KEEP_SUBNORMALS")
        self.step_tables: list[StepTable] = []
        self.sites: list[Site] = []

    def step(self, job: Job) -> Step:
        if isinstance(job, Nested):
            node = job.node
            return self._loop_step(job, node) if isinstance(node, Loop) else self._branch_step(job)
        if isinstance(job, Kernel):
            step = self._kernel_step(job)
        elif isinstance(job, ForeignCall):
            step = job.step(self._site(job.site))
        elif isinstance(job, PythonCall):
            return job.step()
        else:
            step = job.step(self.n_threads)
        step.flushes = self.flushes and _is_single(job)
        step.computes = len(job.parts) == 1 and not isinstance(job, ForeignCall)
        return step

    def _kernel_step(self, job: Kernel) -> Step:
        address = self.addresses[job.text]
        sites = {word: self._site(word) for word in job.words if isinstance(word, Site)}
        parts = [_part_words(job, i, sites) for i in range(len(job.parts))]
        return step_of(address, parts, self.n_threads)

    def _site(self, site: Site) -> int:
        self.sites.append(site)
        return len(self.sites) - 1

    def _table(self, section: Section) -> int:
        """Address of the table of an inner graph."""
        table = StepTable([self.step(job) for row in section.jobs for job in row])
        table.seal((), ())
        self.step_tables.append(table)
        return table.address

    def _loop_step(self, job: Nested, node: Loop) -> Step:
        tables = [self._table(section) for section in job.sections]
        sets, turns, moves = job.sets(), job.turns(), job.moves()
        test = node.bodies[0].outputs[0] if node.length is None else None
        head = abi.in_order(
            abi.LOOP_WORDS,
            length=_ENDLESS if node.length is None else node.length,
            executor=kernel_store.executor_address(),
            condition=tables[0] if test is not None else 0,
            condition_slot=test.slot if test is not None else 0,
            condition_offset=test.offset if test is not None else 0,
            body=tables[-1],
            n_sets=len(sets),
            n_turns=len(turns),
            n_moves=len(moves),
        )
        rest = [word for row in (*sets, *turns, *moves) for word in row]
        return Step(kernel_store.code_address(LoopOfTables.named()), head + rest)

    def _branch_step(self, job: Nested) -> Step:
        tables = [self._table(section) for section in job.sections]
        sets = job.sets()
        index = job.node.operands[0]
        assert isinstance(index, View)
        head = abi.in_order(
            abi.BRANCH_WORDS,
            executor=kernel_store.executor_address(),
            index_slot=index.value.slot,
            index_offset=index.first_byte,
            n_branches=len(tables),
            n_sets=len(sets),
        )
        return Step(
            kernel_store.code_address(BranchOfTables.named()),
            [*head, *(w for row in sets for w in row), *tables],
        )


limit_of_operation: Facet[int | None] = Facet("thread_limit", None)
"""The most threads that evaluation may use; ``None`` for no limit of its own."""


def thread_limit(value: Any) -> int | None:
    """Return the least limit of a program, or of a primitive and the programs that it holds."""
    if isinstance(value, Program):
        program = value
        return program.memo(
            "thread limit", lambda: _least(thread_limit(e.primitive) for e in program.equations)
        )
    if isinstance(value, tuple):
        return _least(map(thread_limit, value))
    if isinstance(value, Primitive):
        return _least((limit_of_operation(value), *map(thread_limit, value.params().values())))
    return None


def _least(limits: Iterable[int | None]) -> int | None:
    return min((n for n in limits if n is not None), default=None)


def _n_threads(threads: int | None) -> int:
    """How many threads may take part; 0 where there is no pool to run parts."""
    if not is_available():
        return 0
    return min(default_threads() if threads is None else threads, MOST_THREADS)


def _part_words(job: Kernel, part: int, sites: Mapping[Site, int]) -> list[int]:
    """The arguments of one part of a kernel: its range, and its share of scratch memory."""
    words = list(job.parts[part])
    for word in job.words:
        if isinstance(word, Place):
            value = word.value
            share = part * value.nbytes // len(job.parts) if value in job.scratch else 0
            words += [value.slot, value.offset + word.offset + share]
        else:
            words.append(sites[word] if isinstance(word, Site) else word)
    return words


_ENDLESS = (1 << 63) - 1


def _is_single(job: Kernel | Multiplication | ForeignCall) -> bool:
    """Whether subnormal numbers are zero while a job runs: where it computes in single precision.

    A product of small float32 gradients is soon subnormal, and arithmetic with such numbers takes
    up to a hundred times longer. Double precision is asked for by those who need every digit; and
    libraries are called as they would be called by others.
    """
    return (not isinstance(job, ForeignCall) or job.is_own) and precision(nodes_of(job)) == "single"


def _disjoint_step(graph: Graph, written: Sequence[Value]) -> Step:
    """The check, before anything is written, that donated inputs overlap with no other input."""
    others = [value for value in graph.inputs if value not in written]
    words = [0, 1, len(graph.inputs), len(written)]
    for value in (*written, *others):
        words += [value.slot, value.nbytes]
    return Step(kernel_store.code_address(Disjoint.named()), words)


def _warn_of_python_loops(program: Program, jobs: Sequence[Sequence[Job]]) -> None:
    """Name what Python evaluates in every iteration of a loop."""
    for job, is_repeated in _every(jobs):
        if isinstance(job, PythonCall) and is_repeated:
            primitive = job.node.primitive
            source = job.node.source
            warn_of_python_loop(program.name, primitive.name, source, primitive.is_callback)
