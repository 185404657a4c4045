"""Plans: what a compiled program does at run time.

A plan is a table of native steps, run by one shared executor; some of them call Python
(`python_calls`). The tables of steps are immutable and shared by all threads; a call takes a
*frame* (the slots and the arena) from a stock, so that calls from several threads do not meet.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from funcgrad.base import stacks
from funcgrad.base.error_state import without_reports
from funcgrad.base.forking import Lock, cached_property
from funcgrad.base.records import dataclass
from funcgrad.compiler import abi
from funcgrad.compiler.nest.allocate import Memory
from funcgrad.compiler.nest.layout import Value, View
from funcgrad.compiler.nest.nodes import Graph, Site
from funcgrad.compiler.nest.places import NOWHERE
from funcgrad.compiler.runtime import in_flight, kernel_store, warm_memory
from funcgrad.core.facets import Facet
from funcgrad.core.primitive import Primitive
from funcgrad.errors import CompilerError, ShapeError
from funcgrad.observers.limits import NEVER, current_limits

refusal: Facet[Callable[..., Exception] | None] = Facet("refusal", None)
"""``refusal(operand, value, position, *avals)``: the error of a kernel that met an index out of
bounds, or a negative count.

Args:
    operand: Which of the index arrays of the form, or of its arguments, counted from 0.
    value: The index; a negative number for a count.
    position: Its row-major number in the array; -1 where that is not known.
    avals: Types of the arguments of the operation.
"""

_BEHAVED = 0x101
"""NumPy's flags of arrays that are contiguous and aligned."""

_WRITEABLE = 0x400


@dataclass
class KernelStats:
    """Origins of the kernels of an executable."""

    compiled: int = 0
    loaded: int = 0
    reused: int = 0


@dataclass
class Step:
    """One native step.

    Attributes:
        address: Of its code.
        words: Its arguments.
        held: Arrays and objects whose addresses are among the words: they live as long as the step.
        flushes: Whether subnormal numbers are flushed to zero while it runs.
        computes: Whether it only computes: it calls neither tables nor libraries nor Python.
    """

    address: int
    words: list[int]
    held: Sequence[Any] = ()
    flushes: bool = False
    computes: bool = False


def step_of(
    kernel: int, parts: Sequence[list[int]], n_threads: int, held: Sequence[np.ndarray] = ()
) -> Step:
    """The step whose parts, if there are several, run on up to so many threads.

    Args:
        kernel: The address of its code.
        parts: The argument words of every part, equally many.
        n_threads: How many threads may take part.
        held: As of `Step`.
    """
    if len(parts) == 1:
        return Step(kernel, parts[0], held)
    head = abi.in_order(
        abi.PARALLEL_WORDS,
        pool=kernel_store.pool_address(n_threads),
        count=len(parts),
        kernel=kernel,
        part_words=len(parts[0]),
        threads=n_threads,
    )
    return Step(
        kernel_store.parallel_address(), [*head, *(word for part in parts for word in part)], held
    )


def lanes_of(n_threads: int, n_parts: int, nbytes: int) -> Value:
    """Scratch memory for the threads that take part in a step: `abi.SCRATCH_WORDS`.

    Args:
        n_threads: How many may.
        n_parts: How many parts the step has.
        nbytes: What a thread needs.
    """
    count = min(n_threads, abi.MOST_LANES) if n_parts > 1 else 1
    return Value((count, -(-nbytes // 64) * 64), np.dtype(np.uint8))


def scratch_words(lanes: Value) -> dict[str, int]:
    """The words of `lanes_of`, when it has its place."""
    return {"scratch": lanes.slot, "scratch_offset": lanes.offset, "lane": lanes.shape[1]}


@dataclass
class StepTable:
    """Table of native steps, which run without Python in between."""

    steps: list[Step] = field(default_factory=list)
    words: Any = None
    address: int = 0
    describe: Callable[[int], str] = lambda step: ""
    """Tells what a step computes, and where."""

    def seal(self, guards: Sequence[Value], written: Sequence[Value]) -> None:
        """Lay out the table of the executor.

        Args:
            guards: The first objects of a call, whose types are checked.
            written: Those of them that results replace.
        """
        n = len(self.steps)
        replaced = set(written)
        offset = 4 + 3 * n
        total = offset + sum(len(step.words) for step in self.steps)
        is_plain = all(step.computes and not step.flushes for step in self.steps)
        words = [n, len(guards), total, int(is_plain)]
        for step in self.steps:
            words += [step.address, offset, int(step.flushes)]
            offset += len(step.words)
        for step in self.steps:
            words += step.words
        for value in guards:
            flags = _BEHAVED | (_WRITEABLE if value in replaced else 0)
            dtype = np.dtype(value.dtype.char)
            words += [id(np.ndarray), id(dtype), flags, len(value.shape), *value.shape]
        # Addresses may have the highest bit set.
        self.words = np.array([w & (1 << 64) - 1 for w in words], np.uint64)
        self.address = self.words.ctypes.data


@dataclass(frozen=True)
class Numbers:
    """Arguments and results of a call that are float64 without axes: frames have places for them.

    A call path that is given scalars instead of arrays puts them there, all at once, and reads
    results there, so that no array is made for any of them.

    Args:
        places: The number of the place of an object, in the order of places: inputs first, of
            them those that results replace last, and then new results.
        n_inputs: How many places are of inputs.
        first_result: The first place that a result may be in.
    """

    places: dict[int, int]
    n_inputs: int
    first_result: int

    @staticmethod
    def of(executable: Executable) -> Numbers:
        """Numbers among the arguments and results of an executable."""
        n = len(executable.in_types)
        replaced = set(executable.sources)
        inputs = [i for i, each in enumerate(executable.in_types) if _is_number(*each)]
        inputs.sort(key=lambda i: i in replaced)
        pairs = zip(executable.out_types, executable.sources, strict=True)
        fresh = [each for each, source in pairs if source is None]
        outputs = [n + k for k, each in enumerate(fresh) if _is_number(*each)]
        kept = sum(i not in replaced for i in inputs)
        places = {number: place for place, number in enumerate((*inputs, *outputs))}
        return Numbers(places, len(inputs), kept)


def _is_number(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    return shape == () and dtype == np.float64


def aligned_arena(memory: Memory) -> tuple[np.ndarray, int]:
    """Memory for the temporaries of a call, and its address: a multiple of 64."""
    raw = np.empty(memory.arena_bytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + memory.arena_bytes], raw.ctypes.data + start


Constant = tuple[int, np.ndarray]
"""A slot, and the array whose address it holds."""

# Where the memory of calls comes from; tests put other memory in their place.
arena_of: Callable[[Memory], tuple[np.ndarray, int]] = aligned_arena
new_array: Callable[..., np.ndarray] = np.empty
"""Arrays for results, and for arguments in the form that kernels read."""


def maker_of(shape: tuple[int, ...], dtype: Any) -> Callable[..., np.ndarray]:
    """Maker of arrays of a type: `new_array`, or where they are large, one with warm memory."""
    return (warm_memory.is_large(shape, dtype) and warm_memory.maker()) or new_array


class Frame:
    """Memory of one call.

    Attributes:
        slots: The words that steps read: addresses.
        address: Of the slots.
        arena: Memory of temporaries.
        pack: Writes the objects of a call into slots.
        ids: Of the places of numbers, by the number of the object; 0 for others.
        numbers: What is in these places.
        numbers_address: Of these places.
        pack_numbers: Writes those of inputs.
        results: The places that results may be in.
    """

    __slots__ = (
        "address", "arena", "ids", "numbers", "numbers_address", "pack", "pack_numbers", "places",
        "results", "slots",
    )  # fmt: skip

    def __init__(self, memory: Memory, constants: Sequence[Constant], numbers: Numbers) -> None:
        self.numbers: Any = np.zeros(len(numbers.places))
        self.results = self.numbers[numbers.first_result :]
        self.pack_numbers = struct.Struct(f"={numbers.n_inputs}d").pack_into
        ids = [0] * memory.n_objects
        self.places = [self.numbers[k : k + 1].reshape(()) for k in range(len(numbers.places))]
        for place, i in zip(self.places, numbers.places, strict=True):
            ids[i] = id(place)
        self.ids = tuple(ids)
        self.numbers_address: int = self.numbers.ctypes.data
        self.pack = struct.Struct(f"={memory.n_objects}q").pack_into
        self.slots: Any = np.zeros(memory.n_slots, np.int64)
        self.address = self.slots.ctypes.data
        self.arena, self.slots[memory.arena_slot] = arena_of(memory)
        self.slots[abi.CONTROL_SLOT] = kernel_store.control_words().ctypes.data
        self.slots[abi.DEADLINE_SLOT] = NEVER
        self.slots[abi.OWN_SLOT] = self.address
        for slot, background in memory.states:
            self.slots[slot] = background.nothing
        for slot, array in constants:
            self.slots[slot] = array.ctypes.data


class _LargeFrames(list[Frame]):
    """Memory of calls that have ended, of an executable that needs much of it.

    All executables together keep `MAX_IDLE_BYTES`, and one of them, the last that ran, whatever it
    needs: an executable lives as long as its program, which may be remembered and never run again.
    """

    def __init__(self, arena_bytes: int) -> None:
        self.arena_bytes = arena_bytes

    def append(self, frame: Frame) -> None:
        super().append(frame)
        if not _idle or _idle[-1]() is not self:
            self._come_last()

    def _come_last(self) -> None:
        with _idle_lock:
            kept = [ref for ref in _idle if (found := ref()) is not None and found is not self]
            kept.append(weakref.ref(self))
            left = MAX_IDLE_BYTES - len(self) * self.arena_bytes
            for ref in kept[-2::-1]:
                frames = ref()
                if frames is not None:
                    left -= len(frames) * frames.arena_bytes
                    if left < 0:
                        frames.clear()
            _idle[:] = kept


def idle_bytes() -> int:
    """How much memory executables keep for further calls."""
    kept = [ref() for ref in _idle]
    return sum(len(frames) * frames.arena_bytes for frames in kept if frames is not None)


_LARGE_ARENA = 1 << 20
MAX_IDLE_BYTES = 1 << 29
"""How much memory executables keep for further calls, besides the last that ran."""
_idle: list[weakref.ref[_LargeFrames]] = []
"""Executables with large idle frames, in the order in which they ran last."""
_idle_lock = Lock()


def _run_with_room(run: Callable[[int, int, int], int], *words: int) -> int:
    """Run a program that calls libraries, which take more of a stack than kernels may."""
    return run(*words) if stacks.has_room() else stacks.with_room(partial(run, *words))


observers: list[Callable[[Executable], None]] = []
"""Functions that are told of the calls of executables, but for those that call paths make."""


class Executable:
    """A compiled program.

    Calling it takes the flat arguments, arrays or scalars of the types of the program's inputs,
    and returns the flat results: new arrays, and NumPy scalars for results without axes.

    Args:
        graph: The nodes.
        memory: Where everything is.
        table: What runs.
        plan: Gives what the compiler knew of it, when somebody asks: a `compiler.plans.Plan`.
        stats: Where its kernels came from.
        nested: What loops and branches run.
        calls_libraries: Whether it calls functions of LAPACK or NumPy.
        evaluated: Operations that Python evaluates.

    Attributes:
        memory: Where everything is.
        timed: The same steps with clocks, which a call may be running.
        is_native: Whether calls run without Python.
        is_quiet: Whether NumPy, asked by the library, evaluates operations: it reports nothing, as
            kernels report nothing.
        n_objects: Inputs and outputs.
    """

    def __init__(
        self,
        graph: Graph,
        memory: Memory,
        table: StepTable,
        plan: Callable[[], Any],
        stats: KernelStats,
        nested: Sequence[StepTable] = (),
        calls_libraries: bool = False,
        evaluated: Sequence[Primitive] = (),
    ) -> None:
        self.nested = tuple(nested)  # their tables are read while it runs
        self.timed: Any = None
        self.stats = stats
        self.calls_libraries = calls_libraries
        self._plan = plan
        self.memory = memory
        self.table = table
        self.is_native = not evaluated
        self.is_quiet = not all(primitive.is_callback for primitive in evaluated)
        self._constants = [(v.slot, v.array) for v in graph.constants if v.array is not None]
        self.in_types = [(v.shape, np.dtype(v.dtype.char)) for v in graph.inputs]
        shapes = graph.out_shapes
        self.out_types = [(s, v.dtype) for s, v in zip(shapes, graph.outputs, strict=True)]
        self.n_objects = memory.n_objects
        # Where results come from: the index of a donated argument, or None for a new array.
        place = {value: i for i, value in enumerate(graph.inputs)}
        self.sources = [None if v.home is v else place[v.home] for v in graph.outputs]
        pairs = zip(self.out_types, self.sources, strict=True)
        self._fresh = [(maker_of(*kind), *kind) for kind, source in pairs if source is None]
        is_large = memory.arena_bytes > _LARGE_ARENA
        self.frames: list[Frame] = _LargeFrames(memory.arena_bytes) if is_large else []
        self.new_bytes = memory.arena_bytes + sum(
            value.nbytes
            for value, source in zip(graph.outputs, self.sources, strict=True)
            if source is None
        )
        self.run = kernel_store.executor()
        if calls_libraries:
            self.run = partial(_run_with_room, self.run)
        self.numbers = Numbers.of(self)

    @cached_property
    def plan(self) -> Any:
        """All that the compiler knew of it: a `compiler.plans.Plan`."""
        return self._plan()

    @property
    def is_one_step(self) -> bool:
        """Whether a call is one call of the executor, whatever comes of it."""
        return self.is_native and not self.memory.states

    @property
    def table_address(self) -> int:
        """Address of the first table, for the executor."""
        return self.table.address

    def take_frame(self) -> Frame:
        """Memory for one call; `frames` takes it back."""
        try:
            return self.frames.pop()
        except IndexError:
            return Frame(self.memory, self._constants, self.numbers)

    def __call__(self, *args: Any) -> list[Any]:
        for tell in observers:
            tell(self)
        limits = current_limits()
        if limits is not None:
            program = self.plan.program
            limits.check_memory(self.new_bytes, program.name, self.plan.largest())
            limits.check_time(program.described)
        arrays = list(args)
        fresh = [make(shape, dtype) for make, shape, dtype in self._fresh]
        frame = self.take_frame()
        if limits is not None:
            frame.slots[abi.DEADLINE_SLOT] = limits.deadline
            frame.slots[abi.NEXT_SLOT] = 0
        try:
            if self.is_quiet:
                with without_reports() as block, block:
                    self._call(frame, arrays, fresh)
            else:
                self._call(frame, arrays, fresh)
        except BaseException:
            # The frame goes: who knows in what state a second signal leaves it.
            if in_flight.is_at_work(frame.slots, self.memory.states):
                memory = frame, arrays, fresh
                in_flight.keep(frame.slots, self.memory.states, memory)
            raise
        frame.slots[abi.DEADLINE_SLOT] = NEVER
        self.frames.append(frame)
        rest = iter(fresh)
        results = [next(rest) if i is None else arrays[i] for i in self.sources]
        return [x[()] if x.ndim == 0 else x for x in results]

    def _call(self, frame: Frame, arrays: list[Any], fresh: list[Any]) -> None:
        """Run the program; arguments that kernels cannot read are replaced."""
        code = self._start(frame, arrays, fresh)
        while code:
            # Nothing has run yet: an argument needs another form; most likely others do, too.
            if code < 0:
                first = -1 - code
                for i, x in enumerate(arrays[first:], first):
                    if i == first or type(x) is not np.ndarray or not x.flags.c_contiguous:
                        arrays[i] = self._converted(i, x)
            else:
                for i in {i for i in self.sources if i is not None}:
                    arrays[i] = self._converted(i, arrays[i])
            code = self._start(frame, arrays, fresh)

    def _start(self, frame: Frame, arrays: list[Any], fresh: list[Any]) -> int:
        """Run the steps; not 0 if arguments have to be converted before.

        Negative for the argument that does not have the type that kernels read, positive if the
        memory of a donated argument is not its own.
        """
        frame.pack(frame.slots, 8 * abi.FIRST_SLOT, *map(id, arrays), *map(id, fresh))
        code = self.run(frame.address, self.table_address, self.n_objects)
        error = self.explain(code, frame) if code else None
        if error is not None:
            raise error
        return code

    def explain(self, code: int, frame: Frame) -> BaseException | None:
        """Why the steps of a call have failed; nothing where arguments need another form.

        Args:
            code: What the executor returned, not 0.
            frame: The memory of the call, not yet given back.
        """
        if code < 0 or frame.slots[0] == abi.OVERLAP:
            return None
        if frame.slots[abi.STOP_SLOT]:
            return self._stopped(code - 1, frame)
        reason, number, value, position = (int(word) for word in frame.slots[: abi.ERROR_WORDS])
        if reason == abi.RAISED:
            return self._raised(frame)
        if reason != abi.REFUSED:
            return CompilerError(f"step {code - 1} of a compiled program failed.")
        site = self.plan.sites[number]
        equation = site.equation
        operand = site.operand
        if position == NOWHERE:
            operand, value, position = self._first_refused(site, value, frame)
        avals = (atom.aval for atom in equation.inputs)
        rule = refusal(equation.primitive)
        if rule is None:
            raise equation.primitive.missing("refused indices")
        error = rule(operand, value, position, *avals)
        if equation.source is None:
            return error
        return type(error)(f"{error}\n  at            {equation.source}")

    def _first_refused(self, site: Site, value: int, frame: Frame) -> tuple[int, int, int]:
        """The number of an index array, an index in it that is out of bounds, and its position.

        The ones that NumPy meets first, as far as index arrays are arguments; else what the kernel
        has found.
        """
        sites = {x.operand: x for x in self.plan.sites if x.equation is site.equation}
        for operand, other in sorted(sites.items()):
            array = self._argument(other, frame)
            if array is not None:
                wrong = np.flatnonzero((array < -other.length) | (array >= other.length))
                if wrong.size:
                    return operand, int(array.flat[wrong[0]]), int(wrong[0])
        return site.operand, value, NOWHERE

    def _argument(self, site: Site, frame: Frame) -> np.ndarray | None:
        """The index array of a site, if it is an argument as it was passed."""
        index = site.index
        if not isinstance(index, View) or index.value not in self.plan.graph.inputs:
            return None
        if not index.value.nbytes or any(source is not None for source in self.sources):
            return None  # donated memory may have been written to
        nbytes = index.value.nbytes
        first = int(frame.slots[index.value.slot]) + index.value.offset
        memory = np.frombuffer(
            memoryview((ctypes.c_char * nbytes).from_address(first)), index.dtype
        )
        strides = tuple(s * index.dtype.itemsize for s in index.strides)
        return np.lib.stride_tricks.as_strided(memory[index.offset :], index.shape, strides)

    @staticmethod
    def _raised(frame: Frame) -> BaseException:
        """Exception that Python has raised in a call."""
        return kernel_store.raised(frame.slots[abi.RAISED_SLOT : abi.RAISED_SLOT + 3])

    def _stopped(self, step: int, frame: Frame) -> BaseException:
        """Why a call has stopped before its end; the frame is as before the call again."""
        reason = int(frame.slots[abi.STOP_SLOT])
        frame.slots[abi.STOP_SLOT] = frame.slots[abi.NEXT_SLOT] = 0
        what = self.plan.program.name + self.table.describe(step)
        error: BaseException
        if reason == abi.TIMED_OUT:
            limits = current_limits()
            assert limits is not None  # there would be no deadline
            error = limits.late(what)
        else:
            assert reason == abi.INTERRUPTED
            error = self._raised(frame)
            error.add_note(f"while a compiled program ran: {what}")
        if any(source is not None for source in self.sources):
            error.add_note("Its donated arguments may have been written to: their values are lost.")
        return error

    def _converted(self, i: int, value: Any) -> np.ndarray:
        """An argument as the contiguous array of the right type that kernels read."""
        shape, dtype = self.in_types[i]
        array = np.asarray(value, dtype)
        if array.shape != shape:
            raise ShapeError(
                f"argument {i} of a compiled program must have shape {shape}, got {array.shape}."
            )
        converted = maker_of(shape, dtype)(shape, dtype)
        converted[...] = array
        return converted
