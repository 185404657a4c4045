"""Captured variables of a function, and random numbers that it draws while it is traced.

Tracing bakes both in: what was read while the function was traced is a constant of its program.
`Captures` remembers the numbers and arrays that the function, and the user's functions that it
calls, find by name, and the arrays that its program closes over; it tells what has changed since,
and whether random numbers were drawn. Large arrays are compared on a sample.

What is reached otherwise (attributes of objects, elements of lists, files, the clock) is not seen.

Collecting names is quick, for every function that is compiled is asked; lines are looked up when
there is something to say.
"""

from __future__ import annotations

import ctypes
import dis
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from funcgrad.base.pytree import held_in
from funcgrad.base.tables import keep
from funcgrad.core.avals import ShapedArray
from funcgrad.core.facets import Facet
from funcgrad.core.program import Program
from funcgrad.errors import ImpureFunctionWarning
from funcgrad.observers.notices import warn_at
from funcgrad.observers.source import SourceLocation, current_location, is_users

callees: Facet[tuple[Any, ...]] = Facet("callees", ())
"""Functions of the user's that the evaluation of an operation calls, and tracing does not."""

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_SAMPLE = 4096
"""Elements of an array that are compared."""

_MAX_FUNCTIONS = 100
_LONGEST_PAUSE = 4096
_MERSENNE_BYTES = 625 * 4
_MISSING = object()
_OF_TYPES = frozenset({"dtype", "itemsize", "nbytes", "ndim", "shape", "size"})
_WRITTEN = "has been written to since it was traced; compiled code uses what was there"
_PASS_IT = (
    "What a traced function reads around it is a constant of the compiled function. Pass it as an "
    "argument, or forget what was compiled after a change: f.clear_cache()."
)
_PASS_KEY = (
    "They are constants of the compiled function: every call uses the same numbers. Draw them "
    "with funcgrad.random, from a key that is an argument, or outside of the function."
)


class Captures:
    """Variables, arrays and generators that a function captures.

    Attributes:
        left: How many calls go by before `check` is due.
    """

    __slots__ = (
        "_arrays", "_function", "_functions", "_generators", "_pause", "_reported", "_variables",
        "left",
    )  # fmt: skip

    def __init__(self, function: Any) -> None:
        self.left = 0
        self._pause = 0
        self._reported: set[str] = set()
        self._function = function
        self._functions = list(_users_functions(function))
        self._variables: list[_Variable] = []
        self._generators: list[_Variable] = []
        self._arrays: list[_Array] = []
        for each in self._functions:
            for variable in _variables_of(each):
                value = variable.now()
                if isinstance(value, _NUMBERS):
                    self._variables.append(variable)
                elif isinstance(value, np.ndarray):
                    self._variables.append(variable)
                    self._arrays.append(_Array(value, variable))
                elif _is_generator(value):
                    self._generators.append(variable)

    def add_constants(self, program: Program) -> None:
        """Watch the arrays that a program closes over and that others hold, too.

        What is read by functions that the program calls whenever it runs is no constant.
        """
        later = {
            code
            for each in _programs_in(program)
            for equation in each.equations
            for callee in callees(equation.primitive)
            for function in _users_functions(callee, is_deep=False)
            for code in codes_of(function.__code__)
        }
        if later:
            self._leave_out(frozenset(later))
        known = {id(array.now()) for array in self._arrays}
        for each in _programs_in(program):
            shared: dict[Any, Any] = {}
            for var, value, count in _counted(each.constants):
                is_shared = value.base is not None or count > _HELD_ONCE
                if is_shared and known.isdisjoint((id(value), id(value.base))):
                    known.add(id(value))
                    shared[var] = value
            for equation in each.equations if shared else ():
                for atom in shared.keys() & equation.inputs:
                    self._arrays.append(_Array(shared.pop(atom), equation.source))

    def _leave_out(self, codes: frozenset[CodeType]) -> None:
        """Do not watch what is read in these alone."""
        functions = _users_functions(self._function, codes)
        read = {v.key for each in functions for v in _variables_of(each, codes)}
        self._variables = [v for v in self._variables if v.key in read]
        self._arrays = [a for a in self._arrays if a.key is None or a.key in read]
        for variable in self._variables:
            variable.left_out = codes

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that could change."""
        return not self._variables and not self._arrays

    def check(self, what: str) -> None:
        """Warn, once, of everything that has changed, if that is due.

        Args: what: How messages call the compiled function, such as ``jit(f)``.
        """
        if self.left > 0:
            self.left -= 1
            return
        self._pause = min(2 * self._pause + 1, _LONGEST_PAUSE)
        self.left = self._pause
        for variable in self._variables:
            if variable.has_changed():
                self._warn(what, variable.kind_and_name, variable.change(), variable.line())
        for array in self._arrays:
            if array.has_changed():
                self._warn(what, array.name, _WRITTEN, array.line())

    def _warn(self, what: str, name: str, change: str, line: SourceLocation | None) -> None:
        if line is None or name in self._reported:
            return
        self._reported.add(name)
        text = f"{what}: {name} {change}.\n  read at       {line}\n{_PASS_IT}"
        warn_at(line, ImpureFunctionWarning(text))

    @contextmanager
    def noticing_draws(self, what: str) -> Iterator[None]:
        """Warn if random numbers are drawn from NumPy's or Python's own state within a block."""
        before = [_state_of(v.now()) for v in self._generators]
        with _noticing_draws(what, self._functions):
            yield
        for variable, state in zip(self._generators, before, strict=True):
            if _state_of(variable.now()) != state:
                _warn_of_draws(what, f"the generator `{variable.name}`", variable.line())


class _Variable:
    """A variable that a function reads.

    Args:
        name: Its name.
        holder: What holds it: the globals, or a cell.
        code: The code that reads it.
    """

    __slots__ = ("code", "holder", "left_out", "name", "sample", "value")

    def __init__(self, name: str, holder: dict[str, Any] | CellType, code: CodeType) -> None:
        self.name = name
        self.holder = holder
        self.code = code
        self.left_out: frozenset[CodeType] = frozenset()
        value = self.now()
        self.value = weakref.ref(value) if isinstance(value, np.ndarray) else value
        self.sample = 0

    @property
    def key(self) -> tuple[int, str]:
        return id(self.holder), self.name

    def now(self) -> Any:
        if isinstance(self.holder, dict):
            return held_in(self.holder.get(self.name, _MISSING))
        return held_in(content_of(self.holder))

    @property
    def kind_and_name(self) -> str:
        kind = "the global variable" if isinstance(self.holder, dict) else "the variable"
        return f"{kind} `{self.name}`"

    def has_changed(self) -> bool:
        now = self.now()
        if isinstance(self.value, weakref.ref):
            if now is self.value():
                return False
            return not isinstance(now, np.ndarray) or _sample(now) != self.sample
        value = self.value
        if type(now) is not type(value):
            return True
        return bool(now != value and (now == now or value == value))

    def change(self) -> str:
        if isinstance(self.value, weakref.ref):
            return "is another array than when it was traced"
        now = self.now()
        new = repr(now) if isinstance(now, _NUMBERS) else f"a {type(now).__name__}"
        return f"was {self.value!r} when it was traced, and is {new} now"

    def line(self) -> SourceLocation | None:
        """Find the line that reads it; none if it is assigned there, or only its type is read."""
        wanted = "GLOBAL" if isinstance(self.holder, dict) else "DEREF"
        is_array = isinstance(self.value, weakref.ref)
        found = None
        for code in codes_of(self.code, self.left_out):
            instructions = list(dis.get_instructions(code))
            for i, instruction in enumerate(instructions):
                operation, _, kind = instruction.opname.partition("_")
                if instruction.argval != self.name or wanted not in kind:
                    continue
                if operation == "STORE":
                    return None
                positions = instruction.positions
                if is_array and _is_type_asked(instructions, i):
                    continue
                if operation == "LOAD" and found is None and positions and positions.lineno:
                    found = SourceLocation(code, positions.lineno)
        return found


class _Array:
    """An array whose elements may change.

    Args:
        array: The array.
        reader: The variable that it was found in, or the line of the first operation that reads it.
    """

    __slots__ = ("_reader", "_sample", "now")

    def __init__(self, array: np.ndarray, reader: _Variable | SourceLocation | None) -> None:
        self.now: Callable[[], np.ndarray | None] = weakref.ref(array)
        self._reader = reader
        self._sample = _sample(array)
        if isinstance(reader, _Variable):
            reader.sample = self._sample

    @property
    def key(self) -> tuple[int, str] | None:
        """Key of the variable that it was found in, if one is left."""
        return self._reader.key if isinstance(self._reader, _Variable) else None

    @property
    def name(self) -> str:
        array = self.now()
        kind = "" if array is None else f"({ShapedArray(array.shape, array.dtype)}) "
        if isinstance(self._reader, _Variable):
            return f"the array `{self._reader.name}` {kind}".rstrip()
        return f"an array {kind}that the function closes over"

    def has_changed(self) -> bool:
        array = self.now()
        return array is not None and _sample(array) != self._sample

    def line(self) -> SourceLocation | None:
        return self._reader.line() if isinstance(self._reader, _Variable) else self._reader


def _sample(array: np.ndarray) -> int:
    """A number that stands for the type and the elements of a sample."""
    step = max(1, array.size // _SAMPLE)
    return hash((array.shape, array.dtype, array.flat[::step].tobytes()))


def _is_type_asked(instructions: Sequence[dis.Instruction], i: int) -> bool:
    """Whether the array that an instruction loads is asked for its type only."""
    after = instructions[i + 1 : i + 2]
    if any(a.opname == "LOAD_ATTR" and a.argval in _OF_TYPES for a in after):
        return True
    is_called = any("CALL" in a.opname for a in instructions[i + 1 : i + 3])
    return is_called and any(b.argval == "len" for b in instructions[max(0, i - 2) : i])


def _counted(constants: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any, int]]:
    """Constants, with the number of references to them at this place."""
    for var, value in constants:
        yield var, value, sys.getrefcount(value)


_HELD_ONCE = max(count for *_, count in _counted(((None, object()),)))
"""How many are counted where only a program holds a constant; Python counts some less."""


def _programs_in(value: Any) -> Iterator[Program]:
    """A program and those that its operations hold."""
    if isinstance(value, tuple):
        for each in value:
            yield from _programs_in(each)
    elif isinstance(value, Program):
        yield value
        for equation in value.equations:
            if equation.primitive.is_composite:
                yield from _programs_in(tuple(equation.primitive.params().values()))


# Functions and the names in them.


def _users_functions(
    function: Any, left_out: frozenset[CodeType] = frozenset(), is_deep: bool = True
) -> Iterator[FunctionType]:
    """The user's functions behind a callable: itself, and those that it finds by name.

    Args:
        function: The callable.
        left_out: Codes that are passed over.
        is_deep: Whether names are looked up.
    """
    waiting, seen = [function], set[int]()
    while waiting and len(seen) < _MAX_FUNCTIONS:
        function = underlying(waiting.pop(0))
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        if function.__code__ in left_out:
            continue
        if is_users(function.__code__):
            yield function
            if is_deep:
                waiting += (v.now() for v in _variables_of(function, left_out))
        else:  # a transformation's, that has the user's function in a cell
            waiting += map(content_of, function.__closure__ or ())


def underlying(function: Any) -> FunctionType | None:
    """The Python function that a partial application, a method or a wrapper runs."""
    while not isinstance(function, FunctionType) or "__wrapped__" in vars(function):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        else:
            # A module that finds its names when they are asked for would find all of them.
            is_module = isinstance(function, ModuleType)
            wrapped = None if is_module else getattr(function, "__dict__", {}).get("__wrapped__")
            if wrapped is None:
                return None
            function = wrapped
    return function


def _variables_of(
    function: FunctionType, left_out: frozenset[CodeType] = frozenset()
) -> Iterator[_Variable]:
    code = function.__code__
    names = {name for each in codes_of(code, left_out) for name in each.co_names}
    for name in names:
        if name in function.__globals__:
            yield _Variable(name, function.__globals__, code)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield _Variable(name, cell, code)


def codes_of(code: CodeType, left_out: frozenset[CodeType] = frozenset()) -> Iterator[CodeType]:
    """A code object and those of the functions inside, but for some."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant not in left_out:
            yield from codes_of(constant, left_out)


def _names_read(code: CodeType) -> Iterator[tuple[CodeType, str, int]]:
    for each in codes_of(code):
        for instruction in dis.get_instructions(each):
            positions = instruction.positions
            if instruction.opname.startswith("LOAD") and positions and positions.lineno:
                yield each, str(instruction.argval), positions.lineno


def content_of(cell: CellType) -> Any:
    """Content of a cell of a closure, if it was assigned."""
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING


# Random numbers.


def _is_generator(value: Any) -> bool:
    """Whether it is a source of random numbers: NumPy's, or Python's module or class."""
    if isinstance(value, ModuleType):
        return value.__name__ == "random"
    module = type(value).__module__
    has_state = hasattr(value, "bit_generator") or hasattr(value, "get_state")
    return module == "random" or (module.startswith("numpy.random") and has_state)


def _state_of(generator: Any) -> Any:
    if hasattr(generator, "bit_generator"):
        return str(generator.bit_generator.state)
    if hasattr(generator, "get_state"):
        return str(generator.get_state(legacy=False))
    return generator.getstate()


def _global_state(has_kept_numbers: bool) -> tuple[bytes, Any] | None:
    """The state of `numpy.random`, or `None` while nothing was drawn from it."""
    if "numpy.random" not in sys.modules:
        return None
    bits = np.random.get_bit_generator()  # type: ignore[attr-defined]
    if type(bits).__name__ != "MT19937":
        return str(bits.state).encode(), ()
    kept = tuple(np.random.get_state())[3:] if has_kept_numbers else ()
    # Reading the documented address costs a hundredth of reading the state.
    return ctypes.string_at(bits.ctypes.state_address, _MERSENNE_BYTES), kept


def _is_fresh(state: bytes) -> bool:
    """Whether a generator was seeded and not used: the first number mixes its 624 words.

    It stands behind them after a seed, and at the last one where NumPy has drawn the seed itself.
    """
    place = int.from_bytes(state[-4:], sys.byteorder)
    return len(state) == _MERSENNE_BYTES and place in (623, 624)


def _may_others_draw() -> bool:
    """Whether there are threads that are neither Python's main one nor funcgrad's."""
    return any(
        thread is not threading.current_thread()
        and not type(thread).__module__.startswith("func")
        and not thread.name.startswith("funcgrad")
        for thread in threading.enumerate()
    )


def noticing_draws(what: str, function: Any) -> AbstractContextManager[None]:
    """Warn if `numpy.random` is drawn from within a block, in which a function is traced."""
    return _noticing_draws(what, list(_users_functions(function)))


@contextmanager
def _noticing_draws(what: str, functions: Sequence[FunctionType]) -> Iterator[None]:
    # Every second normal number is one that was kept, and takes nothing from the bits: where
    # functions look as if they draw, all of the state is asked for.
    is_suspected = any("random" in c.co_names for f in functions for c in codes_of(f.__code__))
    before, reported = _global_state(is_suspected), _last_reported()
    yield
    after = _global_state(is_suspected)
    if after == before or after is None or _last_reported() is not reported:
        return
    if before is None and _is_fresh(after[0]):
        return
    line = _line_that_draws(functions)
    if line is None and _may_others_draw():
        return
    _warn_of_draws(what, "numpy.random", line or current_location())


def _line_that_draws(functions: Sequence[FunctionType]) -> SourceLocation | None:
    """The first line that names what draws; nothing if it is reached otherwise."""
    for function in functions:
        for code, name, line in _names_read(function.__code__):
            value = function.__globals__.get(name)
            owner = getattr(value, "__self__", None)
            is_random = getattr(value, "__name__", "") == "numpy.random"
            if name == "random" or is_random or type(owner).__name__ == "RandomState":
                return SourceLocation(code, line)
    return None


_reported_draws: dict[tuple[str, SourceLocation | None], None] = {}
"""Functions and lines that were warned of: once, and not again by an outer function."""
_MAX_REPORTED = 1024


def _last_reported() -> object:
    return next(reversed(_reported_draws), None)


def _warn_of_draws(what: str, source: str, line: SourceLocation | None) -> None:
    if (what, line) in _reported_draws:
        return
    keep(_reported_draws, (what, line), None, _MAX_REPORTED)
    where = "" if line is None else f"\n  at            {line}"
    text = f"{what} has drawn random numbers from {source} while it was traced.{where}\n{_PASS_KEY}"
    warn_at(line, ImpureFunctionWarning(text))
