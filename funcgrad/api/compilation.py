"""jit as users call it: the call path, its cache, and the stages of compilation.

A call flattens its arguments, looks up the executable for their types and runs it. Everything
that depends on the types only is decided once.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, fields, replace
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.api import calls
from funcgrad.api.arguments import (
    Function,
    check_callable,
    check_for_nans,
    leaf_paths,
    name_of,
    parameters_of,
    positional_parameters,
)
from funcgrad.api.background import Background
from funcgrad.api.calls import CallPath, OfKind, call_path
from funcgrad.api.checkpointing import parse_bytes
from funcgrad.api.staging import (
    ClosedJaxpr,
    ShapeDtypeStruct,
    StagedFunction,
    argument_paths,
    structs_of,
    without_float0,
)
from funcgrad.base.dialect import NUMPY, dialect
from funcgrad.base.error_state import without_reports
from funcgrad.base.exact import exact_key
from funcgrad.base.forking import Lock
from funcgrad.base.imports import load
from funcgrad.base.pytree import PyTreeDef, tree_flatten, tree_leaves, tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.base.scalars import SCALAR_NUMBERS
from funcgrad.base.tables import keep, used
from funcgrad.base.transformed import BelongsToProcess, MadeOf
from funcgrad.base.tree_code import MISS
from funcgrad.compiler.pipeline import compile_program
from funcgrad.compiler.runtime import warm_memory
from funcgrad.compiler.runtime.executable import Executable
from funcgrad.core.avals import NO_MATRIX, ShapedArray
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.observers import Location, current_location, report_call
from funcgrad.core.printer import format_program
from funcgrad.core.program import Program, evaluate
from funcgrad.core.trace import EVAL, Tracer, current_trace, using_trace
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.higher_order.cells import Cell, Rows, fill_cells, passing_cells, rows_of
from funcgrad.higher_order.jit import (
    ALONG,
    LIMITED,
    STEPWISE,
    Jit,
    disable_jit,
    executable_of,
    how_jit_runs,
    is_jit_disabled,
)
from funcgrad.higher_order.remembered import remembered
from funcgrad.higher_order.reroll import is_rerolling
from funcgrad.higher_order.staging import kept_weak
from funcgrad.higher_order.unordered import unordered
from funcgrad.numpy.writable import as_results
from funcgrad.observers.captures import Captures
from funcgrad.observers.promotion import (
    DRIFT,
    NOTHING,
    PROMOTIONS,
    STANDARD,
    promotion_mode,
    watching_promotion,
)
from funcgrad.primitives.objects import flatten_values, unwrapped

if TYPE_CHECKING:  # it is loaded on first use
    from funcgrad.reports import CostAnalysis, MemoryAnalysis, Report

MAX_REASONS = 50
"""How many reasons for traces are remembered."""
_SHOWN_REASONS = 3
_REASON_LENGTH = 300


@dataclass(repr=False)
class CacheInfo:
    """Counts of the traces and compilations of a jitted function so far.

    Attributes:
        hits: Calls that found an executable for their types.
        misses: Calls that did not.
        traces: How often Python ran the function.
        kernels_compiled: Kernels that had to be compiled.
        kernels_loaded: Kernels that came from the disk.
        kernels_reused: Kernels that this process had already.
        reasons: Why each of the last traces was needed, 50 at most.
        places: The user's lines whose calls needed them; ``None`` for one that is not known.
    """

    hits: int = 0
    misses: int = 0
    traces: int = 0
    kernels_compiled: int = 0
    kernels_loaded: int = 0
    kernels_reused: int = 0
    reasons: list[str] = field(default_factory=list)
    places: list[Location | None] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """Calls with concrete arguments."""
        return self.hits + self.misses

    def add_reason(self, reason: str, place: Location | None) -> None:
        """Remember why a trace was needed, and where; forget the oldest if there are many."""
        if len(reason) > _REASON_LENGTH:
            reason = reason[: _REASON_LENGTH - 3] + "..."
        self.reasons.append(reason)
        self.places.append(place)
        del self.reasons[:-MAX_REASONS], self.places[:-MAX_REASONS]

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{f.name}={getattr(self, f.name)}" for f in fields(self) if f.type == "int"
        )
        earlier = self.traces - len(self.reasons[-_SHOWN_REASONS:])
        shown = list(map(repr, self.reasons[-_SHOWN_REASONS:]))
        if earlier > 0:
            shown.insert(0, f"... {earlier} earlier")
        return f"CacheInfo({counts}, reasons=[{', '.join(shown)}])"


class Entry:
    """Executable for one combination of argument types and static values, with its key."""

    __slots__ = (
        "around", "compilation", "executable", "out_tree", "path", "staged", "types",
        "was_evaluated",
    )  # fmt: skip

    def __init__(self, staged: StagedFunction, types: list[str], around: Captures | None) -> None:
        self.around = around
        self.staged = staged
        self.out_tree: PyTreeDef = staged.out_tree
        self.types = types
        self.executable: Executable | None = None
        self.compilation: Background[Executable] | None = None
        self.path: CallPath | None = None
        self.was_evaluated = False

    def watching_captures(self, around: Captures | None) -> Entry:
        """The same for another function of the same code, which has variables of its own."""
        found = Entry(self.staged, self.types, around)
        found.executable = self.executable
        found.compilation = self.compilation
        found.was_evaluated = self.was_evaluated
        return found


def jit(
    fun: Function | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    threads: int | None = None,
    memory: int | str | None = None,
    dtype_drift: str = "allow",
    wait: bool = True,
) -> Any:
    """Compile a function to native code, for the types of its arguments.

    Use it as ``jit(f)``, as ``@jit`` or as ``@jit(static_argnums=0)``.

    Args:
        fun: A pure function of arrays or pytrees.
        static_argnums: Positions of arguments that are hashable Python values; the function is
            traced again for every new value.
        donate_argnums: Positions of arguments whose memory the results may reuse. Such arrays
            hold arbitrary values after the call. Under a transformation, which may need them again,
            they are left alone.
        donate_argnames: The same by name.
        keep_unused: Accepted for compatibility; arguments are never dropped.
        inline: Accepted for compatibility; nested compiled functions are always inlined.
        threads: How many threads large kernels may use, in this function and in transformations
            of it; all cores by default. If another compiled function calls this one and has no
            limit of its own, it gets this limit.
        memory: Bytes that a call may need besides its arguments, as a number or as text such as
            ``"200MB"``: results and intermediate results. What does not fit is computed again where
            it is needed. Derivatives and batches of the function keep to it, each by itself; if
            another compiled function calls this one, that one's limit counts.
        dtype_drift: With ``"error"``, tracing raises an error at the first line where a floating
            value becomes wider, for example float32 combined with a float64 scalar of NumPy.
        wait: With ``False``, a call with new types does not wait for its kernels. Another thread
            compiles them; until they are ready, NumPy evaluates this and later calls, operation
            by operation. Results are the same within rounding. If the compiler raises an error,
            the next call with these types raises it; if there is none, a warning shows it.
            Transformations of the function do wait: write ``jit(grad(f), wait=False)`` instead.
    Returns: A function of the same arguments, with ``trace``, ``lower``, ``eval_shape``,
        ``cache_info`` and ``clear_cache``.

    Raises:
        ArgumentError: If a static argument is not hashable, a position does not exist,
            ``threads`` or ``memory`` is not positive, or ``dtype_drift`` is neither "allow" nor
            "error".
        MemoryBudgetError: On a call, if no plan keeps to ``memory``; the message says what one
            would need.

    Example:
        >>> f = fg.jit(lambda x: np.sin(x) ** 2 + np.cos(x) ** 2)
        >>> f(np.arange(3.0))
        array([1., 1., 1.])
    """
    options: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "threads": threads,
        "memory": memory,
        "dtype_drift": dtype_drift,
        "wait": wait,
    }
    if fun is None:
        return partial(jit, keep_unused=keep_unused, inline=inline, **options)
    return Jitted(fun, **options)


def _checked_threads(threads: Any) -> int | None:
    if threads is None:
        return None
    if not isinstance(threads, int) or threads < 1:
        raise ArgumentError(
            f"jit: threads must be a positive integer, got {threads!r}. Leave it out to use all "
            "cores that this process may use."
        )
    return threads


def _checked_drift(dtype_drift: Any) -> bool:
    """Whether widened floating values are errors."""
    if dtype_drift not in ("allow", "error"):
        raise ArgumentError(f'jit: dtype_drift must be "allow" or "error", got {dtype_drift!r}.')
    return bool(dtype_drift == "error")


_ALL: weakref.WeakSet[Jitted] = weakref.WeakSet()
"""All functions that compile themselves."""


def forget_call_paths() -> None:
    """Have the next call of every jitted function take the general way, and find a short one."""
    for function in list(_ALL):
        function.forget_paths()


def clear_caches() -> None:
    """Forget the programs and executables of all jitted functions; kernels on disk stay.

    Memory that is kept for their results is given back, too.

    Example:
        >>> f = fg.jit(lambda x: x + 1)
        >>> y = f(1.0)
        >>> fg.clear_caches()
        >>> f.cache_info().traces
        0
    """
    for function in list(_ALL):
        function.clear_cache()
    warm_memory.drop_kept()


class Jitted(MadeOf):
    """A function that compiles itself: the result of `jit`.

    Attributes:
        kind: The class of arrays that it takes as they are, and gives.
    Example: isinstance(fg.jit(np.sin), fg.stages.Wrapped) -> True
    """

    kind: type[np.ndarray] = np.ndarray
    _rerolls = True
    """Whether loops are found when the function is traced, and not only before it is compiled."""

    def __init__(
        self,
        fun: Function,
        static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Iterable[str] | None = None,
        threads: int | None = None,
        memory: int | str | None = None,
        dtype_drift: str = "allow",
        wait: bool = True,
    ) -> None:
        check_callable(fun, "jit")
        update_wrapper(self, fun, updated=())
        self.transformation = jit
        self.original = fun
        self.options = {
            "static_argnums": _kept(static_argnums),
            "static_argnames": _kept(static_argnames),
            "donate_argnums": _kept(donate_argnums),
            "donate_argnames": _kept(donate_argnames),
            "threads": threads,
            "memory": memory,
            "dtype_drift": dtype_drift,
            "wait": wait,
        }
        self._name = name_of(fun)
        self._what = f"jit({self._name})"
        options = self.options
        self._static = _Selection(
            fun, options["static_argnums"], options["static_argnames"], "static"
        )
        self._donated = _Selection(
            fun, options["donate_argnums"], options["donate_argnames"], "donate"
        )
        self._threads = _checked_threads(threads)
        self._memory = None if memory is None else parse_bytes(memory, self._what)
        self._refuses_drift = _checked_drift(dtype_drift)
        self._waits = wait
        self._cache: dict[Any, Entry] = {}
        _ALL.add(self)
        self._info = CacheInfo()
        self._paths: list[CallPath] = []
        self._paths_along: dict[Any, list[CallPath]] = {}
        self._of_contents: dict[Any, Jitted] = {}
        self._is_shared = True

    def __repr__(self) -> str:
        return f"<{self._what}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if mode := how_jit_runs():
            if mode == ALONG:
                return self._call_along(args, kwargs)
            if mode in (STEPWISE, LIMITED):
                return self._call_general(args, kwargs)
            report_call(self, args, kwargs)
            return self.original(*args, **kwargs)
        if not kwargs and current_trace() is EVAL and not PROMOTIONS.users:
            for path in self._paths:
                result = path(args)
                if result is not MISS:
                    self._info.hits += 1
                    return result
        return self._call_general(args, kwargs)

    def _call_along(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the program for the axes of processes around."""
        if not kwargs and current_trace() is EVAL and not PROMOTIONS.users:
            for path in self._paths_along.get(axes_in_scope(), ()):
                result = path(args)
                if result is not MISS:
                    self._info.hits += 1
                    return result
        return self._call_general(args, kwargs)

    def _call_general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        report_call(self, args, kwargs)
        call = _Call(self, args, kwargs)
        if call.check_values():
            return self._call_with_cells(call, args, kwargs)
        is_traced = any(isinstance(x, Tracer) for x in call.leaves)
        if is_traced or current_trace() is not EVAL or is_jit_disabled():
            entry = self._entry(call, count=False)
            call_op = Jit(entry.staged.program, self._threads, self._memory)
            outs = call_op.bind(*entry.staged.captured_values(), *call.leaves)
            outs = entry.staged.put_back(outs, self._what)
            check_for_nans(self._what, outs, args, kwargs)
            outs = as_results(kept_weak(outs, entry.staged.out_avals))
            return tree_unflatten(entry.out_tree, outs)
        entry = self._entry(call, count=True)
        if entry.staged.cells:
            return self._call_around_cells(entry, call)
        executable = entry.executable or self._compile(entry, call)
        if executable is None:
            return tree_unflatten(entry.out_tree, _interpreted(entry.staged.program, call.leaves))
        result = self._given(entry, executable(*call.arrays()))
        paths = self._paths_along.get(call.around, []) if call.around else self._paths
        if calls.ARE_ON and not kwargs and call.is_plain and entry.path not in paths:
            self._remember(entry, call, paths)
        return result

    def _given(self, entry: Entry, outs: list[Any]) -> Any:
        """The result of a program."""
        return tree_unflatten(entry.out_tree, outs)

    def _results_of_kind(self, entry: Entry) -> OfKind | None:
        """How call paths take and give arrays, if they are not ndarrays."""
        return None

    def _call_around_cells(self, entry: Entry, call: _Call) -> Any:
        """Call the program of a function that closes over cells."""
        staged = entry.staged
        leaves = [*staged.captured_values(), *call.leaves]
        executable = entry.executable or self._compile(entry, call)
        program = staged.program
        outs = executable(*leaves) if executable else _interpreted(program, leaves)
        return tree_unflatten(entry.out_tree, staged.put_back(outs, self._what))

    def _call_with_cells(self, call: _Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function of the contents of cells among the arguments."""
        leaves, treedef = tree_flatten((args, kwargs))
        static = {id(x) for x in (*call.static_args.values(), *call.static_kwargs.values())}
        rows = tuple(row for row in rows_of(leaves) if id(leaves[row[0]]) not in static)
        cells = [leaves[i] for i, _ in rows]
        found = self._of_contents.get((treedef, rows))
        if found is None:
            found = Jitted(_OfContents(self.original, rows), **self.options)
            found._info = self._info
            keep(self._of_contents, (treedef, rows), found, MAX_PROGRAMS)
        with passing_cells(cells, self._what) as contents:
            for (i, _), content in zip(rows, contents, strict=True):
                leaves[i] = content
            args, kwargs = tree_unflatten(treedef, leaves)
            out, left = found(*args, **kwargs)
        for cell, value in zip(cells, left, strict=True):
            cell.put(unwrapped(value), self._what)
        return out

    def _remember(self, entry: Entry, call: _Call, paths: list[CallPath]) -> None:
        """Make the next call with such arguments fast."""
        assert entry.executable is not None
        if entry.path is None:
            trees = call.treedef.children()[0].children()
            entry.path = call_path(
                entry.executable,
                len(call.args),
                call.static_args,
                trees,
                call.leaves,
                entry.out_tree,
                entry.around,
                self._results_of_kind(entry),
            )
        # The latest path is tried first; searching very many signatures would gain nothing.
        paths = [entry.path, *paths[: _MAX_PATHS - 1]]
        if call.around:
            keep(self._paths_along, call.around, paths, _MAX_AXES)
        else:
            self._paths = paths

    def _entry(self, call: _Call, count: bool) -> Entry:
        found = self._cache.get(call.key)
        if found is not None:
            used(self._cache, call.key, found, MAX_PROGRAMS)
            self._info.hits += count
            if found.around is not None:
                found.around.check(self._what)
            return found
        made: list[Entry] = []

        def make() -> Entry:
            around = Captures(self.original)
            with around.noticing_draws(self._what):
                staged = self._stage(call)
            around.add_constants(staged.program)
            staged.leaves = []  # what is remembered must not keep the arguments of this call alive
            made.append(Entry(staged, call.types(), None if around.is_empty else around))
            return made[0]

        entry = self._made_before(call, make)
        if not made:
            # It was traced from another function object: watch what that one closes over.
            around = Captures(self.original)
            around.add_constants(entry.staged.program)
            entry = entry.watching_captures(None if around.is_empty else around)
        self._info.misses += count
        if made:
            self._info.traces += 1
            self._info.add_reason(self._reason(call, entry), current_location())
        if not entry.staged.belongs_to_call:
            # A program that closes over values of an outer transformation belongs to this call.
            keep(self._cache, call.key, entry, MAX_PROGRAMS)
        return entry

    def _made_before(self, call: _Call, make: Callable[[], Entry]) -> Entry:
        """Entry that another `jit` of the same function has made for such a call, or a new one."""
        if not self._is_shared:
            return make()
        options = (
            self._threads,
            self._memory,
            self._refuses_drift,
            self._donated.key,
            self._static.key,
            is_rerolling(),
        )
        key = ("jit", self._what, call.key, call.donated(), options)
        return remembered([self.original], key, make, lambda entry: entry.staged)

    def _stage(self, call: _Call, carries: bool = True) -> StagedFunction:
        with self._watching():
            return call.staged(carries)

    def _watching(self) -> AbstractContextManager[None]:
        """Contexts under which tracing runs."""
        refuses = self._refuses_drift and promotion_mode().dtypes == STANDARD
        return watching_promotion(DRIFT) if refuses else nullcontext()

    def _compile(self, entry: Entry, call: _Call) -> Executable | None:
        """The executable of an entry, which is kept; ``None`` while it is made elsewhere."""
        donated = (*(False for _ in entry.staged.cells), *call.donated())
        make = _maker(entry.staged.program, donated, self._threads, self._memory)
        executable = make() if self._waits else self._made_meanwhile(entry, make)
        if executable is not None and entry.executable is None:
            entry.executable = executable
            self._info.kernels_compiled += executable.stats.compiled
            self._info.kernels_loaded += executable.stats.loaded
            self._info.kernels_reused += executable.stats.reused
        return executable

    def _made_meanwhile(self, entry: Entry, make: Callable[[], Executable]) -> Executable | None:
        with _STARTING:  # two first calls at once are to start one compilation
            if entry.compilation is None:
                entry.compilation = Background(make, f"compiling {self._what}")
            compilation = entry.compilation
        return compilation.result()

    def _reason(self, call: _Call, entry: Entry) -> str:
        if not self._cache:
            return "first call"
        if entry.staged.belongs_to_call:
            return "the function closes over values of an outer transformation"
        return difference(list(self._cache.values())[-1].types, entry.types)

    # Stages.

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for arguments of these types (values or `ShapeDtypeStruct`)."""
        call = _Call(self, args, kwargs)
        with using_trace(EVAL):
            staged = self._stage(call, carries=False)
        return Traced(staged, call.donated(), self._threads, self._memory)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower the function for arguments of these types."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the results, as `funcgrad.eval_shape`."""
        call = _Call(self, args, kwargs)
        with using_trace(EVAL):
            return self._stage(call).out_info()

    def cache_info(self) -> CacheInfo:
        """Count the traces and compilations so far, with their reasons."""
        info = self._info
        return replace(info, reasons=[*info.reasons], places=[*info.places])

    def signature(self, *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
        """Key by which a call looks its program up, and types of its arguments, for messages."""
        call = _Call(self, args, kwargs)
        return call.key, call.types()

    def forget_paths(self) -> None:
        """Have the next calls take the general way."""
        for entry in list(self._cache.values()):
            entry.path = None
        self._paths = []
        self._paths_along = {}

    def clear_cache(self) -> None:
        """Forget all programs and executables of this function."""
        self._cache.clear()
        self._paths = []
        self._paths_along = {}
        self._of_contents = {}
        self._info = CacheInfo()
        self._is_shared = False


_STARTING = Lock()


def _maker(
    program: Program, donated: tuple[bool, ...], threads: int | None, memory: int | None
) -> Callable[[], Executable]:
    """Compiler of programs under these options."""
    if any(donated):
        return partial(compile_program, program, donated, threads, memory)
    return partial(executable_of, program, threads, memory)


def _interpreted(program: Program, leaves: Sequence[Any]) -> list[Any]:
    """The results of a program by NumPy: new arrays and scalars, as an executable gives them."""
    args = [
        leaf if type(leaf) is np.ndarray else np.asarray(leaf, var.aval.dtype)[()]
        for leaf, var in zip(leaves, program.inputs, strict=True)
    ]
    with disable_jit(), without_reports() as block, block:
        outs = evaluate(program, args)
    types = [aval.dtype for aval in program.out_avals]
    arrays = [np.array(out, dtype, order="C") for out, dtype in zip(outs, types, strict=True)]
    return [x if x.ndim else x[()] for x in arrays]


MAX_PROGRAMS = 512
"""How many programs a function keeps; one more, and those go that were not used for longest."""

_MAX_PATHS = 4
_MAX_AXES = 64
_MAX_LEAVES = 1000
_INT64 = np.iinfo(np.int64)

_SCALAR_TYPES = frozenset(
    (bool, int, float, complex, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8,
     np.uint16, np.uint32, np.uint64, np.float32, np.float64, np.complex64, np.complex128,
     *SCALAR_NUMBERS)
)  # fmt: skip


class _Selection:
    """Positions and names of arguments that are chosen together."""

    def __init__(
        self,
        fun: Function,
        argnums: int | Sequence[int] | None,
        argnames: str | Iterable[str] | None,
        what: str,
    ) -> None:
        self.what = what
        nums = () if argnums is None else _listed(argnums)
        names = (
            ()
            if argnames is None
            else (argnames,)
            if isinstance(argnames, str)
            else tuple(argnames)
        )
        parameters = positional_parameters(fun)
        for num in nums:
            if not isinstance(num, int | np.integer):
                raise ArgumentError(f"jit: {what}_argnums must be ints, got {num!r}.")
            _check_position(fun, int(num), what)
        for name in names:
            if not isinstance(name, str):
                raise ArgumentError(f"jit: {what}_argnames must be strings, got {name!r}.")
            _check_name(fun, name, what)
        n = len(parameters)
        self.nums = {int(i) + n if i < 0 and n else int(i) for i in nums}
        self.names = set(names) | {parameters[i] for i in self.nums if 0 <= i < n}
        self.nums |= {parameters.index(name) for name in names if name in parameters}

    @property
    def key(self) -> Any:
        """Hashable key of the selection."""
        return frozenset(self.nums), frozenset(self.names)

    def __bool__(self) -> bool:
        return bool(self.nums or self.names)


def _kept(option: Any) -> Any:
    """An option that can be read more than once."""
    return option if option is None or isinstance(option, str | int) else tuple(_listed(option))


def _listed(argnums: Any) -> tuple[Any, ...]:
    return tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)


def _check_position(fun: Function, num: int, what: str) -> None:
    parameters = parameters_of(fun)
    if parameters is None or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return
    n = len(positional_parameters(fun))
    if not -n <= num < n:
        raise ArgumentError(
            f"jit: {what}_argnums={num} names no argument of {name_of(fun)}, which takes {n} "
            f"positional argument{'s' * (n != 1)}; positions count from 0."
        )


def _check_name(fun: Function, name: str, what: str) -> None:
    parameters = parameters_of(fun)
    if parameters is None or any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    if name not in names:
        raise ArgumentError(
            f"jit: {what}_argnames={name!r} names no argument of {name_of(fun)}, which takes "
            f"{', '.join(names) or 'none'}."
        )


class _OfContents:
    """A function of cells as one of their contents, that also returns what is left in them.

    Args:
        function: The function.
        rows: Which leaves of its arguments are cells.
    """

    def __init__(self, function: Function, rows: Rows) -> None:
        update_wrapper(self, function, updated=())
        self._function = function
        self._rows = rows

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        leaves, treedef = tree_flatten((args, kwargs))
        cells = fill_cells(leaves, self._rows)
        args, kwargs = tree_unflatten(treedef, leaves)
        out = self._function(*args, **kwargs)
        return out, [cell.content() for cell in cells]


class _Call:
    """The arguments of one call, split into static and traced ones."""

    def __init__(self, jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.jitted = jitted
        static = jitted._static
        self.static_args = {i: a for i, a in enumerate(args) if i in static.nums}
        self.args = args
        self.static_kwargs = {k: v for k, v in kwargs.items() if k in static.names}
        self.dynamic_args = [a for i, a in enumerate(args) if i not in self.static_args]
        self.dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in self.static_kwargs}
        self.leaves, self.treedef = flatten_values((tuple(self.dynamic_args), self.dynamic_kwargs))
        self.has_float0 = any(x.dtype.kind == "V" for x in self.leaves if type(x) is np.ndarray)
        if self.has_float0:
            self._take_out_float0()
        # Programs know the lengths of named axes.
        self.axes = axes_in_scope()
        self.key = (self._key(), self.axes) if self.axes else self._key()
        if (mode := promotion_mode()) != NOTHING:  # what was traced unwatched was not checked
            self.key = (self.key, mode)
        self.around: Any = self.axes
        if (rules := dialect()) is not NUMPY:
            self.key = (self.key, rules)
            self.around = (self.axes, rules)

    def _take_out_float0(self) -> None:
        """Let zeros of dtype float0 be part of the structure."""
        dynamic = without_float0((self.dynamic_args, self.dynamic_kwargs))
        self.dynamic_args, self.dynamic_kwargs = dynamic
        rest = iter(self.dynamic_args)
        self.args = tuple(
            a if i in self.static_args else next(rest) for i, a in enumerate(self.args)
        )
        self.leaves, self.treedef = flatten_values((tuple(self.dynamic_args), self.dynamic_kwargs))

    def _key(self) -> Any:
        signature: list[Any] = []
        for leaf in self.leaves:
            if type(leaf) in _SCALAR_TYPES:
                signature.append(type(leaf))
            elif hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
                signature.append(leaf.shape)
                signature.append(leaf.dtype)
                signature.append(type(leaf) is not np.ndarray and _is_weak(leaf))
            else:
                signature.append(type(leaf))
        if not self.static_args and not self.static_kwargs and not self.dynamic_kwargs:
            plain = [s for s in signature if s is not False]
            return (self.treedef.children()[0], tuple(plain))
        static = tuple((i, exact_key(a)) for i, a in sorted(self.static_args.items(), key=_first))
        named = tuple((k, exact_key(v)) for k, v in sorted(self.static_kwargs.items()))
        key = (self.treedef, tuple(signature), static, named)
        self._check_hashable()
        return key

    def _check_hashable(self) -> None:
        for where, value in [*self.static_args.items(), *self.static_kwargs.items()]:
            try:
                hash(value)
            except TypeError:
                place = f"args[{where}]" if isinstance(where, int) else f"`{where}`"
                raise ArgumentError(
                    f"static argument {place} of {self.jitted._what} must be hashable, but is a "
                    f"{type(value).__name__}: {value!r:.60}. Use a tuple instead of a list, or "
                    "pass arrays as ordinary arguments."
                ) from None

    @property
    def is_plain(self) -> bool:
        """Whether the types of the leaves say what they are: not so for other classes of arrays."""
        kind = self.jitted.kind
        return (
            len(self.leaves) <= _MAX_LEAVES
            and not self.has_float0
            and all(type(x) in (np.ndarray, kind) or type(x) in _SCALAR_TYPES for x in self.leaves)
        )

    def arrays(self) -> list[Any]:
        """The leaves, as ndarrays where they are of the class of arrays that are taken."""
        kind = self.jitted.kind
        if kind is np.ndarray:
            return self.leaves
        return [np.asarray(x) if type(x) is kind else x for x in self.leaves]

    def check_values(self) -> bool:
        """Raise for leaves that have a type but cannot be computed with.

        Returns: Whether there are cells.
        """
        has_cells = False
        for i, leaf in enumerate(self.leaves):
            if type(leaf) in (np.ndarray, self.jitted.kind):
                continue
            if type(leaf) is int and not _INT64.min <= leaf <= _INT64.max:
                raise OverflowError(
                    f"argument `{self._path(i)}` of {self.jitted._what} is an int of "
                    f"{leaf.bit_length()} bits, which int64 cannot hold. Pass a float, or "
                    "np.uint64 of it if that fits."
                )
            if isinstance(leaf, ShapeDtypeStruct):
                raise ArgumentError(
                    f"argument `{self._path(i)}` of {self.jitted._what} is a ShapeDtypeStruct, a "
                    "type without values. Pass an array, or use .trace, .lower or eval_shape."
                )
            if isinstance(leaf, np.matrix):
                raise ArgumentError(
                    f"argument `{self._path(i)}` of {self.jitted._what}: {NO_MATRIX}"
                )
            # Masked arrays come last: naming `np.ma` imports it, and other calls need not pay.
            if isinstance(leaf, np.ndarray) and isinstance(leaf, np.ma.MaskedArray):
                raise ArgumentError(
                    f"argument `{self._path(i)}` of {self.jitted._what} is a masked array, whose "
                    "mask compiled code would ignore. Pass x.filled(value), or data and mask apart."
                )
            has_cells = has_cells or isinstance(leaf, Cell)
        return has_cells

    def _path(self, i: int) -> str:
        """The path of a leaf."""
        return self._paths()[i]

    def _paths(self) -> list[str]:
        """The paths of all leaves."""
        return argument_paths(self.args, self.dynamic_kwargs, self.static_args)

    def staged(self, carries: bool) -> StagedFunction:
        """The function, traced."""
        what = self.jitted._what
        function, paths = self.function(), self._paths()
        args, kwargs, donated = self.dynamic_args, self.dynamic_kwargs, self.donated()
        rerolls = self.jitted._rerolls
        found = StagedFunction(function, args, kwargs, what, paths, carries, donated, rerolls)
        if is_rerolling():
            found.program = unordered(found.program)
        return found

    def function(self) -> Function:
        """The function of the traced arguments."""
        if not self.static_args and not self.static_kwargs:
            return self.jitted.original
        fun, static_args, static_kwargs = self.jitted.original, self.static_args, self.static_kwargs
        n = len(self.args)

        def of_dynamic(*dynamic: Any, **kwargs: Any) -> Any:
            rest = iter(dynamic)
            full = [static_args[i] if i in static_args else next(rest) for i in range(n)]
            return fun(*full, **static_kwargs, **kwargs)

        of_dynamic.__name__ = self.jitted._name
        return of_dynamic

    def types(self) -> list[str]:
        """Every argument with its path and type, for messages."""
        rows = [f"{p}: {_type_text(x)}" for p, x in zip(self._paths(), self.leaves, strict=True)]
        rows += [f"static args[{i}] = {a!r:.40}" for i, a in self.static_args.items()]
        return rows + [f"static {k} = {v!r:.40}" for k, v in self.static_kwargs.items()]

    def donated(self) -> tuple[bool, ...]:
        """For every flat argument whether its memory may be reused."""
        selection = self.jitted._donated
        if not selection:
            return (False,) * len(self.leaves)
        flags: list[bool] = []
        for i, arg in enumerate(self.args):
            if i not in self.static_args:
                flags += [i in selection.nums] * len(tree_leaves(arg))
        for key in sorted(self.dynamic_kwargs):
            flags += [key in selection.names] * len(tree_leaves(self.dynamic_kwargs[key]))
        return tuple(flags)


def _first(row: tuple[int, Any]) -> int:
    return row[0]


def _is_weak(leaf: Any) -> bool:
    """Whether an argument with a dtype promotes as a Python number."""
    return getattr(leaf.aval if isinstance(leaf, Tracer) else leaf, "weak_type", False)


def _type_text(leaf: Any) -> str:
    try:
        aval = leaf.aval if isinstance(leaf, Tracer) else None
        if aval is None and hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            aval = ShapedArray(tuple(leaf.shape), np.dtype(leaf.dtype))
        return type(leaf).__name__ if aval is None else str(aval)
    except (DtypeError, TypeError):
        return type(leaf).__name__


def difference(before: list[str], now: list[str]) -> str:
    """Describe the arguments that differ from those of the last trace."""
    if len(before) != len(now):
        return f"{len(now)} array arguments instead of {len(before)}"
    pairs = zip(before, now, strict=True)
    rows = [f"{b} -> {re.split(r': | = ', n, maxsplit=1)[-1]}" for b, n in pairs if b != n]
    return "; ".join(rows[:4]) or "another pytree structure, or scalars instead of arrays"


_PICKLE_THE_FUNCTION = (
    "Pickle the jitted function: it compiles again, mostly from the kernels on disk."
)


class Traced(BelongsToProcess):
    """A function traced for given types, the first stage: the result of ``jit(f).trace``.

    Example: isinstance(fg.jit(np.sin).trace(1.0), fg.stages.Traced) -> True
    """

    called = "a traced function"
    instead = _PICKLE_THE_FUNCTION

    def __init__(
        self,
        staged: StagedFunction,
        donated: tuple[bool, ...],
        threads: int | None,
        memory: int | None,
    ) -> None:
        self._staged = staged
        self._donated = donated
        self._limits = threads, memory

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return ClosedJaxpr(self._staged.program, self._staged.captured)

    @property
    def program(self) -> Program:
        return self._staged.program

    @property
    def out_info(self) -> Any:
        """Types of the results, a pytree of `ShapeDtypeStruct`."""
        return self._staged.out_info()

    def as_text(self) -> str:
        """The typed program, with the user's lines."""
        return format_program(self.program, with_source=True)

    def lower(self) -> Lowered:
        """Lower the program to kernels."""
        executable = compile_program(self.program, self._donated, *self._limits)
        return Lowered(self._staged, executable)


class _Kernels(BelongsToProcess):
    """A traced function with its kernels: what its last two stages tell of it."""

    instead = _PICKLE_THE_FUNCTION

    def __init__(self, staged: StagedFunction, executable: Executable) -> None:
        self._staged = staged
        self._executable = executable

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of the arguments, a pair of positional and keyword arguments."""
        return self._staged.in_tree.closed()

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the result."""
        return self._staged.out_tree.closed()

    @property
    def args_info(self) -> Any:
        """Types of the arguments, in their structure, as `ShapeDtypeStruct`."""
        return structs_of(self._staged.in_tree, self._staged.avals)

    @property
    def out_info(self) -> Any:
        """Types of the results, a pytree of `ShapeDtypeStruct`."""
        return self._staged.out_info()

    @property
    def _report(self) -> Report:
        return load("funcgrad.reports").Report(self._executable.plan)

    def as_text(self) -> str:
        """The program, the steps of its plan and the source of the kernels.

        Steps and kernels show the user's lines that they compute, what they read and write, and the
        bytes that they move.
        """
        return self._report.text(self._staged.paths)

    def cost_analysis(self) -> CostAnalysis:
        """Operations, bytes and the least time of a call.

        The first analysis of a process measures what the machine is able to do, for a tenth of a
        second.

        Returns: A dict with JAX's keys ``"flops"``, ``"transcendentals"``, ``"bytes accessed"`` and
            ``"optimal_seconds"``; its ``steps`` are those of the plan, its ``unknown`` what is not
            counted. It prints as a table.

        Example:
            >>> import numpy as np, funcgrad as fg
            >>> f = fg.jit(lambda x, y: np.exp(x @ y))
            >>> compiled = f.lower(np.ones((8, 4)), np.ones((4, 2))).compile()
            >>> compiled.cost_analysis()["flops"]
            128.0
            >>> compiled.cost_analysis()["transcendentals"]
            16.0
        """
        return self._report.cost(load("funcgrad.api.machine").measured_machine())


class Lowered(_Kernels):
    """A traced function as kernels, the second stage of compilation: the result of ``lower``.

    Example: isinstance(fg.jit(np.sin).lower(1.0), fg.stages.Lowered) -> True
    """

    called = "a lowered function"

    def compile(self, compiler_options: Any = None) -> Compiled:
        """Go on to the executable.

        Args: compiler_options: Accepted for JAX, whose options are those of XLA.
        """
        return Compiled(self._staged, self._executable)


class Compiled(_Kernels):
    """A function compiled for given types: the result of ``compile``.

    Example: isinstance(fg.jit(np.sin).lower(1.0).compile(), fg.stages.Compiled) -> True
    """

    called = "a compiled function"

    def memory_analysis(self) -> MemoryAnalysis:
        """Memory that a call needs.

        Returns: Bytes by the names that JAX has for them, such as ``peak_memory_in_bytes``, with
            the largest intermediate results and the lines that make them. It prints as a table.

        Example:
            >>> compiled = fg.jit(lambda x: np.exp(x).sum()).lower(np.ones(1000)).compile()
            >>> compiled.memory_analysis().argument_size_in_bytes
            8000
        """
        return self._report.memory_analysis()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = without_float0((args, kwargs))
        leaves, treedef = flatten_values((args, kwargs))
        if treedef != self._staged.in_tree:
            raise ArgumentError(
                f"this compiled function takes arguments of structure {self._staged.in_tree}, got "
                f"{treedef}. Static arguments were compiled in and are not passed again."
            )
        for leaf, aval, path in zip(leaves, self._staged.avals, leaf_paths(args), strict=False):
            _check_type(leaf, aval, path)
        return tree_unflatten(self._staged.out_tree, self._executable(*leaves))


def _check_type(leaf: Any, aval: ShapedArray, path: str) -> None:
    if isinstance(leaf, Tracer):
        raise ArgumentError(
            "a compiled function cannot be transformed: call the jitted function inside grad, "
            "vmap or jit, and compile the result."
        )
    array = np.asarray(leaf)
    if array.shape != aval.shape or array.dtype != aval.dtype:
        got = ShapedArray(array.shape, array.dtype)
        raise ArgumentError(
            f"this compiled function takes {aval} as `{path}`, got {got}. Call the jitted "
            "function, which compiles for new types."
        )
