"""Plans on disk: a process that finds one there neither plans nor writes kernels.

A plan is kept as text, beside its kernels: the tables of steps, where each address is told by what
it is the address of, and the numbers of memory. It is found by the fingerprint of its program. What
only people ask for, or an error needs (nodes, the user's lines, the texts of kernels), is not kept:
the program is planned again for it.

A plan is not kept where a word may be an address of something else, as of a library's function;
where Python evaluates an operation; and where a call goes on in the background.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.base import environment
from funcgrad.base.digests import digest
from funcgrad.base.forking import cached_property
from funcgrad.compiler import fingerprints
from funcgrad.compiler.fingerprints import Fingerprint, fingerprint, text_of_array
from funcgrad.compiler.nest.allocate import Memory
from funcgrad.compiler.nest.kernel import Bits
from funcgrad.compiler.nest.layout import Value
from funcgrad.compiler.nest.nodes import Graph
from funcgrad.compiler.runtime import kernel_store, threads
from funcgrad.compiler.runtime.executable import Executable, Step, StepTable
from funcgrad.core.program import Program

MOST_BYTES = 1 << 22
"""Bytes of constants that the compiler has made, as far as they are kept with a plan."""

_LEAST_ADDRESS = 1 << 32
"""Words below are sizes, distances or numbers."""

_NUMBERS = ("n_objects", "n_slots", "arena_slot", "arena_bytes", "live_bytes")
_TABLE, _HELD, _POOL = "table ", "held ", "pool"


class _ForeignWordError(Exception):
    """A plan has a word that another process cannot know."""


class KeptPlan:
    """The plan of a program, as far as it is on disk.

    Args:
        program: The program, simplified.
        options: What else it is planned for.
        n_threads: How many threads may take part.
    """

    def __init__(self, program: Program, options: Sequence[Any], n_threads: int) -> None:
        self.program = _with_own_constants(program)
        self.n_threads = n_threads
        self._options = (*options, n_threads, environment.when_compiled())

    @cached_property
    def _fingerprint(self) -> Fingerprint | None:
        return fingerprint(self.program)

    @cached_property
    def _key(self) -> str | None:
        known = self._fingerprint
        if known is None:
            return None
        return kernel_store.plan_key(repr((known.text, self._options)))

    def read(self) -> Restored | None:
        """The plan, if it is there with all of its kernels."""
        if not kernel_store.knows_plans() or self._key is None:
            return None
        record = kernel_store.recalled(self._key)
        if record is None:
            return None
        codes = kernel_store.load_kept(record["kernels"], record["codes"])
        if codes is None:
            return None
        assert self._fingerprint is not None
        return Restored(record, codes, self._fingerprint.arrays, self)

    def write(self, executable: Executable) -> None:
        """Keep the plan of an executable, if another process can use it."""
        if executable.is_native and not executable.memory.states and self._key is not None:
            assert self._fingerprint is not None
            try:
                record = _Writer(executable, self._fingerprint.arrays).record()
            except _ForeignWordError:
                return
            kernel_store.noted(self._key, record)


def _with_own_constants(program: Program) -> Program:
    """The same program with copies of its constants, which others may write to at any time.

    Large ones are not copied for nothing: with them, no program has a fingerprint.
    """
    if sum(np.asarray(array).nbytes for _, array in program.constants) > fingerprints.MOST_BYTES:
        return program
    constants = [(var, np.array(array, order="C")) for var, array in program.constants]
    return Program(program.inputs, program.equations, program.outputs, program.name, constants)


class _Writer:
    """Describes an executable."""

    def __init__(self, executable: Executable, arrays: Sequence[np.ndarray]) -> None:
        self.executable = executable
        self.arrays = {text_of_array(array): number for number, array in enumerate(arrays)}
        self.n_given = len(arrays)
        self.made: list[Any] = []
        self.origins: dict[int, str] = kernel_store.digests_by_address()
        self.codes: dict[str, None] = {}
        self.left = MOST_BYTES

    def record(self) -> dict[str, Any]:
        graph, memory = self.executable.plan.graph, self.executable.memory
        tables = []
        for number, table in enumerate(self.executable.nested):
            tables.append([*map(self._step, table.steps)])
            self.origins[table.address] = f"{_TABLE}{number}"
        tables.append([*map(self._step, self.executable.table.steps)])
        kernels = [digest(text.encode()) for text in self.executable.plan.sources]
        return {
            "kernels": kernels,
            "codes": [code for code in self.codes if code not in kernels],
            "tables": tables,
            "memory": [int(getattr(memory, name)) for name in _NUMBERS],
            "sources": self.executable.sources,
            "constants": [
                [value.slot, self._constant(value.array)]
                for value in graph.constants
                if value.array is not None
            ],
            "arrays": self.made,
            "calls_libraries": self.executable.calls_libraries,
        }

    def _step(self, step: Step) -> list[Any]:
        held = {x.ctypes.data: f"{_HELD}{k}" for k, x in enumerate(step.held)}
        words = [self._word(word, held) for word in (step.address, *step.words)]
        flags = [step.flushes, step.computes]
        return [words, flags, [self._constant(array) for array in step.held]]

    def _word(self, word: int, held: Mapping[int, str]) -> int | str:
        if isinstance(word, Bits):
            return int(word)
        if word in held:
            return held[word]
        if threads.is_pool(word):
            return _POOL
        origin = self.origins.get(word)
        if origin is None:
            if -_LEAST_ADDRESS < word < _LEAST_ADDRESS:
                return int(word)
            raise _ForeignWordError
        if not origin.startswith(_TABLE):
            self.codes[origin] = None
        return origin

    def _constant(self, array: np.ndarray) -> int:
        """The number of an array: those of the program come first."""
        text = text_of_array(array)
        number = self.arrays.get(text)
        if number is None:
            number = self.arrays[text] = self.n_given + len(self.made)
            self.left -= array.nbytes
            kind = array.dtype.str
            if self.left < 0 or np.dtype(kind) != array.dtype or not array.flags.c_contiguous:
                raise _ForeignWordError
            self.made.append([kind, array.shape, b64encode(array.tobytes()).decode()])
        return number


class Restored:
    """A plan from disk, with addresses of this process.

    Attributes:
        graph: Arguments, constants and results, without nodes.
        memory: Where everything is.
        table: What runs.
        nested: What loops and branches run.
        calls_libraries: As of `Executable`.
    """

    def __init__(
        self,
        record: Mapping[str, Any],
        codes: Mapping[str, int],
        arrays: Sequence[np.ndarray],
        plan: KeptPlan,
    ) -> None:
        self._codes = dict(codes)
        self._arrays = [*arrays, *map(_array, record["arrays"])]
        self._n_threads = plan.n_threads
        self.memory = Memory(**dict(zip(_NUMBERS, record["memory"], strict=True)))
        self.calls_libraries: bool = record["calls_libraries"]
        tables: list[StepTable] = []
        for number, steps in enumerate(record["tables"]):
            tables.append(StepTable([*map(self._step, steps)]))
            if number < len(record["tables"]) - 1:
                tables[-1].seal((), ())
                self._codes[f"{_TABLE}{number}"] = tables[-1].address
        *self.nested, self.table = tables
        self.graph = Graph([*_values(plan.program.in_avals)])
        self.graph.outputs = [*_values(plan.program.out_avals)]
        self.graph.out_shapes = [value.shape for value in self.graph.outputs]
        for value, source in zip(self.graph.outputs, record["sources"], strict=True):
            value.home = value if source is None else self.graph.inputs[source]
        for slot, number in record["constants"]:
            array = self._arrays[number]
            value = Value(array.shape, array.dtype)
            value.slot, value.array = slot, array
            self.graph.constants.append(value)

    def _step(self, row: Sequence[Any]) -> Step:
        words, (flushes, computes), numbers = row
        held = [self._arrays[number] for number in numbers]
        address, *rest = (x if isinstance(x, int) else self._address(x, held) for x in words)
        return Step(address, rest, held, flushes, computes)

    def _address(self, origin: str, held: Sequence[np.ndarray]) -> int:
        if origin == _POOL:
            return kernel_store.pool_address(self._n_threads)
        if origin.startswith(_HELD):
            return held[int(origin.removeprefix(_HELD))].ctypes.data
        return self._codes[origin]


def _array(row: Sequence[Any]) -> np.ndarray:
    """An array that the compiler has made."""
    kind, shape, content = row
    return np.frombuffer(bytearray(b64decode(content)), kind).reshape(shape)


def _values(avals: Sequence[Any]) -> Iterator[Value]:
    return (Value(aval.shape, aval.dtype) for aval in avals)
