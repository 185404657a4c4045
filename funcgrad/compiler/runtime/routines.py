"""Calls of functions of NumPy and SciPy as steps of a plan, without Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from funcgrad import lowering as forms
from funcgrad.base.forking import cached_property
from funcgrad.base.records import dataclass
from funcgrad.compiler import abi, foreign
from funcgrad.compiler.loops.language import NamedFunction
from funcgrad.compiler.loops.library.elimination import Elimination
from funcgrad.compiler.loops.library.selection import Selection
from funcgrad.compiler.loops.library.small_layouts import InLanes, InRows
from funcgrad.compiler.loops.library.small_matrices import MOST_IN_LANES
from funcgrad.compiler.machine import FEW, FUNCTION, SEVERAL, THREAD_WORK
from funcgrad.compiler.nest.kernel import Site, word_of
from funcgrad.compiler.nest.layout import Value, View
from funcgrad.compiler.nest.nodes import Routine, values_read
from funcgrad.compiler.nest.split import part_ranges
from funcgrad.compiler.runtime import fourier, kernel_store
from funcgrad.compiler.runtime.executable import Step, lanes_of, scratch_words, step_of
from funcgrad.compiler.runtime.library_calls import ForeignStep, ForeignWords, fortran_word

OPERATIONS = FEW * FUNCTION
"""Work for every element of an array, as of `source.Kernel`: sorting and transforms take more."""

FEW_ELEMENTS = THREAD_WORK
"""A matrix of so many elements is factorised no faster by two threads of OpenBLAS than by one.

Measured on potrf, getrf, and syevd, single and double, up to 600 x 600; its threads cost more where
the machine is busy, and wait for work in the way of ours.
"""

FEWEST_ELEMENTS = SEVERAL**2
"""For matrices of so many elements OpenBLAS uses one thread anyway; measured up to 24 x 24."""


@dataclass(frozen=True)
class _Own:
    """A program of our own that a call is.

    Attributes:
        code: The program.
        what: What it computes.
        names: The first words of its arguments, with slots of arrays in the order of these.
        numbers: Numbers among them that are not 0.
        lane_bytes: Scratch memory of every thread.
        rest: The words behind the first ones.
        held: Arrays whose addresses are among these.
    """

    code: NamedFunction
    what: str
    names: Sequence[str]
    numbers: Mapping[str, int] = field(default_factory=dict)
    lane_bytes: int = 0
    rest: Sequence[int] = ()
    held: Sequence[np.ndarray] = ()


@dataclass
class ForeignCall:
    """One call of a routine as a job.

    Attributes:
        node: The routine.
        call: Which of its calls.
        scratch: What the routine needs memory for while it runs.
        parts: Ranges of the stack that are run, possibly at the same time.
        n_threads: How many threads may take part.
        is_on_one_thread: Whether it calls the instance of a library that has one thread.
        lanes: Scratch memory of our own code, if it needs any.
    """

    node: Routine
    call: forms.LibraryCall
    scratch: list[Value] = field(default_factory=list)
    parts: list[tuple[int, int]] = field(init=False)
    n_threads: int = field(default=0, init=False)
    is_on_one_thread: bool = field(default=False, init=False)
    lanes: Value = field(init=False)

    def __post_init__(self) -> None:
        count = self._runs
        n_calls = len(self.call.calls) if isinstance(self.call, forms.Together) else 1
        self.parts = [(0, count)] * n_calls

    @property
    def _count(self) -> int:
        """The number of elements of the stack."""
        memory, n = self.node.memory, self.node.n_stack
        arrays = [memory[i] for i in self.call.touches]
        if isinstance(self.call, forms.EliminationCall):
            return math.prod(arrays[-1].shape[:n])
        if isinstance(self.call, forms.FourierCall):
            return self.call.blocks * fourier.n_groups(self.call, arrays[0].dtype)
        if isinstance(self.call, forms.SortCall | forms.SelectCall):
            n = len(arrays[0].shape) - 1
        counts = [math.prod(x.shape[:n]) for x in arrays if len(x.shape) >= n]
        is_empty = not isinstance(self.call, forms.UfuncCall) and any(0 in x.shape for x in arrays)
        return 0 if is_empty or 0 in counts else max(counts, default=1)

    @property
    def _runs(self) -> int:
        """How often the function is called: for elements of the stack, or blocks of the one."""
        count = self._count
        return self.call.blocks if count == 1 and isinstance(self.call, forms.LapackCall) else count

    def split(self, n_threads: int) -> None:
        """Form parts for several threads, if it is large enough.

        Where a library has threads of its own, it is called on one thread; where that is not to be
        had, ours stay away: its threads wait for each other by spinning, and calls from several
        threads take many times as long as one after the other.
        """
        self.n_threads = n_threads
        self._divide()
        library = self._library
        if library and self._is_for_one_thread and foreign.has_threads(library):
            self.is_on_one_thread = foreign.distance_to_one_thread(library) != 0
            if not self.is_on_one_thread:
                self.n_threads = min(n_threads, 1)
                self._divide()
        if self._own is not None and self._own.lane_bytes:
            self.lanes = lanes_of(n_threads, len(self.parts), self._own.lane_bytes)
            self.scratch = [*self.scratch, self.lanes]

    def _divide(self) -> None:
        if isinstance(self.call, forms.Together):
            return  # every call is a part
        if isinstance(self.call, forms.SmallCall):
            work = self._count * _work_of_small(*self.call.sizes)
        else:
            read = sum(math.prod(self.node.memory[i].shape) for i in self.call.touches)
            work = OPERATIONS * read
        self.parts = part_ranges(self._runs, work, self.n_threads)

    @cached_property
    def _own(self) -> _Own | None:
        """The program that it is, if that is no library's."""
        call, arrays, name = self.call, self._arrays, self.site.equation.primitive.name
        dtype = arrays[0].dtype
        if isinstance(call, forms.SmallCall):
            lanes = kernel_store.tile_shape(np.float64).lanes
            layout = InLanes if _is_in_lanes(self._count, *call.sizes[:2], lanes) else InRows
            facts = call.name, foreign.LETTERS[dtype.char], lanes
            numbers = dict(zip("mnk", call.sizes, strict=True)) | {
                "lower": int(call.lower),
                "transposed": int(call.transposed),
                "unit": int(call.unit),
                "checked": int(call.may_fail),
            }
            what = f"{name} of small matrices: {self._count} x {list(call.sizes[:2])}"
            nbytes = layout(*facts).memory()[1]
            return _Own(layout.named(*facts), what, abi.SMALL_WORDS, numbers, nbytes)
        if isinstance(call, forms.FourierCall):
            what = f"transform: {name}, {call.blocks * call.lanes} x {call.n}"
            code, nbytes = fourier.code(call, dtype), fourier.lane_bytes(call, dtype)
            return _Own(code, what, abi.FOURIER_WORDS, {}, nbytes, *fourier.words(call, dtype))
        if isinstance(call, forms.SelectCall):
            numbers = {"n": arrays[0].shape[-1], "k": arrays[1].shape[-1]}
            what = f"select: {name}, {numbers['k']} of {numbers['n']}"
            # Flags are ordered as bytes.
            code = Selection.named("u8" if dtype.kind == "b" else word_of(dtype), dtype.itemsize)
            return _Own(code, what, abi.SELECT_WORDS, numbers)
        if isinstance(call, forms.EliminationCall):
            what = f"{name} of sparse matrices: {self._count} x {arrays[1].shape[-1]}"
            code = Elimination.named(call.name, foreign.LETTERS[arrays[-1].dtype.char])
            return _Own(code, what, abi.ELIMINATION_WORDS)
        return None

    @property
    def codes(self) -> list[NamedFunction]:
        """The code that runs the step."""
        return [ForeignStep.named() if self._own is None else self._own.code]

    @property
    def is_own(self) -> bool:
        """Whether it is arithmetic of our own code."""
        own = forms.SmallCall | forms.FourierCall | forms.EliminationCall
        return isinstance(self.call, own)

    @property
    def site(self) -> Site:
        """Site of the failure."""
        assert self.node.equation is not None  # it was made for one
        return Site(self.node.equation, 0)

    def text(self) -> str:
        """One line about it."""
        name, call = self.site.equation.primitive.name, self.call
        if self._own is not None:
            text = self._own.what
        elif isinstance(call, forms.UfuncCall):
            text = f"call: {name} by {call.module.split('.')[0]}'s {call.names[0]}"
        elif isinstance(call, forms.LapackCall):
            text = f"call: {name} by {call.name} of LAPACK"
        elif isinstance(call, forms.Together):
            text = f"call: {name} by {call.calls[0].name} of LAPACK"
        elif isinstance(call, forms.NativeCall):
            text = f"call: {name} by {call.name}"
            is_other = call.in_place and call.in_place != call.arguments
            text += " in place" if is_other and self.node.is_in_place else ""
        else:
            assert isinstance(call, forms.SortCall)
            text = f"call: {name} by numpy's {'sort' if call.order is None else 'argsort'}"
        return f"{text} in {len(self.parts)} parts" if len(self.parts) > 1 else text

    def step(self, site: int) -> Step:
        """The step, when everything has its place.

        Args: site: The number of its `site`.
        """
        address = kernel_store.code_address(self.codes[0])
        if self._own is not None:
            n_threads = (
                min(self.n_threads, abi.MOST_LANES) if self._own.lane_bytes else self.n_threads
            )
            listed = [self._own_words(self._own, site, *part) for part in self.parts]
            return step_of(address, listed, n_threads, self._own.held)
        parts = []
        for number, (begin, end) in enumerate(self.parts):
            words = self._words(number, begin, end)
            words.site = site
            parts.append(words.all())
        return step_of(address, parts, self.n_threads)

    def _words(self, number: int, begin: int, end: int) -> ForeignWords:
        """The words of a part."""
        if isinstance(self.call, forms.UfuncCall):
            return self._ufunc(self.call, begin, end)
        if isinstance(self.call, forms.Together):
            words = self._lapack(self.call.calls[number])
        elif isinstance(self.call, forms.LapackCall):
            words = self._lapack(self.call)
        elif isinstance(self.call, forms.NativeCall):
            words = self._native(self.call)
        else:
            assert isinstance(self.call, forms.SortCall)
            words = self._sort(self.call)
        words.begin, words.end = begin, end
        return words

    @property
    def _arrays(self) -> list[View]:
        return [self.node.memory[i] for i in self.call.touches]

    @property
    def _library(self) -> str:
        """The extension module through which it calls a library with threads, if it does."""
        if isinstance(self.call, forms.LapackCall | forms.Together):
            return foreign.LAPACK_MODULE
        if isinstance(self.call, forms.UfuncCall) and self.call.module.startswith("numpy.linalg"):
            return self.call.module
        return ""

    @property
    def _is_for_one_thread(self) -> bool:
        """Whether a library's threads are to stay away from it: all but large single matrices."""
        memory, n = self.node.memory, self.node.n_stack
        largest = max(math.prod(memory[i].shape[n:]) for i in self.call.touches)
        if largest <= FEWEST_ELEMENTS:
            return False
        is_shared = len(self.parts) > 1 or any(
            isinstance(call, forms.Together)
            or (isinstance(call, forms.LapackCall) and call.blocks > 1)
            for call in self.node.calls
        )
        return self.n_threads <= 1 or is_shared or largest <= FEW_ELEMENTS

    def _own_words(self, own: _Own, site: int, begin: int, end: int) -> list[int]:
        """The words of a part of a program of our own."""
        words = {"begin": begin, "end": end, "site": site, **own.numbers}
        if own.lane_bytes:
            words |= scratch_words(self.lanes)
        letters = (name[-1] for name in own.names if name.startswith("slot_"))
        for letter, x in zip(letters, self._arrays, strict=False):
            place = zip(("slot", "offset", "stride"), _place(x, self.node.n_stack), strict=True)
            words |= {f"{word}_{letter}": number for word, number in place}
        return [*abi.in_order(own.names, **dict.fromkeys(own.names, 0) | words), *own.rest]

    def _ufunc(self, call: forms.UfuncCall, begin: int, end: int) -> ForeignWords:
        arrays = [self.node.memory[i] for i in call.arrays]
        loop = foreign.ufunc_loop(call, tuple(x.dtype for x in arrays))
        assert loop is not None  # it was there when the node was made
        lengths: dict[str, int] = {}
        steps, core_steps, places = [], [], []
        for x, names in zip(arrays, loop.cores, strict=True):
            core = x.shape[len(x.shape) - len(names) :]
            lengths |= zip(names, core, strict=True)
            is_stacked = len(x.shape) > len(names) and math.prod(x.shape) > math.prod(core)
            step = math.prod(core) if is_stacked else 0
            steps.append(step * x.dtype.itemsize)
            core_steps += [s * x.dtype.itemsize for s in x.strides[len(x.strides) - len(names) :]]
            places.append(_place(x, 0, begin * step))
        function = loop.function
        if self.is_on_one_thread:
            function += foreign.distance_to_one_thread(call.module)
        words = ForeignWords(function, abi.BY_FLAG if call.may_fail else abi.NEVER)
        words.clears_flags = True
        words.places = places
        words.arguments = [(abi.PLACES, 0), *words.listed([end - begin, *lengths.values()])]
        words.arguments += [*words.listed([*steps, *core_steps]), (abi.WORD, loop.data)]
        words.end = int(end > begin)
        return words

    def _lapack(self, call: forms.LapackCall) -> ForeignWords:
        memory, n = self.node.memory, self.node.n_stack
        name = foreign.LETTERS[call.dtype.char] + call.name
        function = foreign.linear_algebra_function(name, self.is_on_one_thread)
        words = ForeignWords(function, abi.BY_INFO if call.may_fail else abi.NEVER)
        for x in call.arguments:
            if isinstance(x, forms.Ref):
                words.arguments.append((abi.PLACE, len(words.places)))
                slot, start, stride = _place(memory[x.array], n, x.offset)
                if call.blocks > 1:
                    stride = x.step * memory[x.array].dtype.itemsize
                words.places.append((slot, start, stride))
            else:
                words.arguments += words.listed([fortran_word(x)])
        return words

    def _native(self, call: forms.NativeCall) -> ForeignWords:
        words = ForeignWords(call.address, abi.BY_RESULT)
        in_place = bool(call.in_place) and self.node.is_in_place
        for x in call.in_place if in_place else call.arguments:
            if isinstance(x, forms.Ref):
                words.arguments.append((abi.PLACE, len(words.places)))
                words.places.append(_place(self.node.memory[x.array], 0, x.offset))
            else:
                words.arguments.append((abi.WORD, x))
        return words

    def _sort(self, call: forms.SortCall) -> ForeignWords:
        values = self.node.memory[call.values]
        n, length = len(values.shape) - 1, values.shape[-1]
        function = foreign.sort_function(values.dtype, call.order is not None, call.stable)
        words = ForeignWords(function, abi.BY_RESULT)
        arrays = [values] if call.order is None else [values, self.node.memory[call.order]]
        words.places = [_place(x, n) for x in arrays]
        words.arguments = [(abi.PLACE, i) for i in range(len(arrays))]
        words.arguments += [(abi.WORD, length), (abi.WORD, 0)]
        return words


def _work_of_small(m: int, n: int, k: int) -> int:
    """Work for one matrix, in units of `source.Kernel`: numbers cost more to move than to add."""
    return (m * n * (min(m, n) + 2 * k + 20) + 200) // 4


def _is_in_lanes(count: int, m: int, n: int, lanes: int) -> bool:
    """Whether so many matrices are worth vectors of their own.

    A group takes as long as two of its matrices alone if they have few rows, or four of 24 rows.
    """
    return max(m, n) <= MOST_IN_LANES and 96 * count > lanes * (24 + n)


def _place(x: View, n_stack: int, start: int = 0) -> tuple[int, int, int]:
    """Slot, offset and stride of the elements of a stack, without the first numbers of each."""
    itemsize = x.dtype.itemsize
    is_stacked = n_stack and len(x.shape) >= n_stack
    stride = math.prod(x.shape[n_stack:]) * itemsize if is_stacked else 0
    return x.value.slot, x.first_byte + start * itemsize, stride


def scratch_of(node: Routine) -> list[Value]:
    """The arrays of a routine that are neither inputs nor results."""
    kept = {*node.outs, *values_read(node)}
    return [x.value for x in node.memory.values() if x.value not in kept]
