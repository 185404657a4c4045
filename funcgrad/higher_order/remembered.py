"""Memoised traces: a program is reused as long as its function depends on the same things.

Loops, branches, checkpoints and `jit` trace a function that they may be given again: the same one,
or, for a ``lambda`` in a function that is called again, one of the same code. Its trace may be used
again if all that it can read, besides its arguments, is the same: what it closes over, its
defaults, the global names in its code, and the same of the functions among these. What is found
there is compared by value where it can be changed in place. Where anything is found that cannot be
judged (an object of the user's, a file, a random state, a traced value), nothing is remembered.

Equations of a library's function, as of ``cond(p, np.linalg.inv, np.linalg.pinv, x)``, are of the
line that calls it. Such a trace is used again for this line alone.

A program that calls functions of the user's later, callbacks or derivative rules, refers to the
variables, lists and functions that it was traced with; it is used again for these alone.
"""

from __future__ import annotations

import builtins
import dis
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Protocol, TypeVar

import numpy as np

from funcgrad.base import environment
from funcgrad.base.dialect import dialect
from funcgrad.base.digests import digest
from funcgrad.base.exact import exact_key
from funcgrad.base.forking import Lock
from funcgrad.base.index_rule import INDEX_RULE
from funcgrad.base.pytree import PyTreeDef, all_held_in
from funcgrad.base.transformed import MadeOf
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Program
from funcgrad.higher_order.closures import HoldsFunctions
from funcgrad.higher_order.jit import is_jit_disabled
from funcgrad.observers.promotion import promotion_mode
from funcgrad.observers.source import current_location, is_users
from funcgrad.passes import agreement
from funcgrad.passes.common import subprograms
from funcgrad.primitives.objects import HoldsArray

T = TypeVar("T")

IS_ON = environment.is_on("FUNCGRAD_REUSE_TRACES")
"""Whether traces are used again."""

_MAX_REMEMBERED = 512
_MAX_VISITED = 500
_MAX_BYTES = 1 << 18
_LIBRARIES = frozenset({"numpy", "scipy", "funcgrad"})
_PURE_MODULES = _LIBRARIES | {"math", "cmath", "operator", "functools", "itertools", "typing"}
# Parts of libraries, and names in them, that read or change a state.
_STATEFUL = ("numpy.random", "scipy.stats", "scipy.io")
_STATEFUL_NAMES = frozenset(
    {"DataSource", "fromfile", "fromregex", "genfromtxt", "get_printoptions", "getbufsize",
     "geterr", "geterrcall", "io", "load", "loadtxt", "memmap", "random", "save", "savetxt",
     "savez", "savez_compressed", "set_printoptions", "setbufsize", "seterr", "seterrcall", "stats",
     "tofile",
     "attrgetter", "methodcaller"}  # what they read is named by strings
)  # fmt: skip
# Effects and results of these builtins do not follow from the code.
_IMPURE_BUILTINS = frozenset(
    {"breakpoint", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals", "hasattr",
     "id", "input", "locals", "memoryview", "next", "open", "print", "setattr", "super", "vars",
     "__import__"}
)  # fmt: skip
_IMPURE_OPCODES = frozenset(
    dis.opmap[name] for name in ("IMPORT_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
)
_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, type(...))
_DISPATCHER = type(np.sum)


class _Unknown(Exception):
    """Something that cannot be judged."""


class _Traversal:
    """Describes everything that functions can read.

    Attributes:
        kept: What is compared by identity, and must live as long as the description.
    """

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.places: dict[int, int] = {}
        self.names: set[str] = set()
        self.modules: list[ModuleType] = []
        self.meets_libraries = False

    def all_of(self, functions: Sequence[Any]) -> Hashable:
        """A description of functions, and of what any name in them means in any of the modules.

        A module may reach a function in a variable, in a list or as an argument.
        """
        found: list[Hashable] = [self.visit(function) for function in functions]
        seen: set[tuple[int, str]] = set()
        while new := [
            (i, name)
            for i, module in enumerate(self.modules)
            for name in sorted(self.names & module.__dict__.keys())
            if (i, name) not in seen
        ]:
            seen.update(new)
            found += [(i, name, self.visit(self.modules[i].__dict__[name])) for i, name in new]
        if self.meets_libraries and not self.names.isdisjoint(_STATEFUL_NAMES):
            raise _Unknown
        return tuple(found)

    def visit(self, value: Any) -> Hashable:
        """A description of a value."""
        kind = type(value)
        if kind in _CONSTANTS or isinstance(value, np.generic):
            return exact_key(value)
        if isinstance(value, np.dtype | np.ufunc | _DISPATCHER):
            return value
        if id(value) in self.places:
            return _Traversal, self.places[id(value)]
        if len(self.places) >= _MAX_VISITED:
            raise _Unknown
        self.places[id(value)] = len(self.places)
        self.kept.append(value)
        return kind, self._describe(value)

    def _describe(self, value: Any) -> Hashable:
        kind = type(value)
        if kind is np.ndarray:
            return self._array(value)
        if kind in (list, tuple):
            return tuple([self.visit(x) for x in value])
        if kind is dict:
            return tuple([(self.visit(k), self.visit(x)) for k, x in value.items()])
        if kind is slice:
            return self.visit((value.start, value.stop, value.step))
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, partial):
            return self.visit((value.func, value.args, value.keywords))
        if isinstance(value, MadeOf):
            return value.transformation, self.visit(value.options), self.visit(value.original)
        if isinstance(value, HoldsArray):
            return value.dtype, tuple([self._held(x) for x in all_held_in(value)])
        if isinstance(value, HoldsFunctions):
            return tuple([self.visit(function) for function in value.functions()])
        if isinstance(value, Primitive | CodeType | PyTreeDef) or _is_own_data(value):
            return exact_key(value)
        if isinstance(value, type | BuiltinFunctionType) and _is_pure(value):
            return id(value)
        raise _Unknown

    def _array(self, array: np.ndarray) -> Hashable:
        if array.dtype.hasobject or array.nbytes > _MAX_BYTES:
            raise _Unknown
        # Programs refer to the array itself, so that an equal one is not the same.
        return id(array), array.shape, array.dtype, digest(array.tobytes())

    def _held(self, array: Any) -> Hashable:
        """Key of a value that cannot be changed."""
        if type(array) is not np.ndarray or array.nbytes > _MAX_BYTES:
            raise _Unknown
        return array.shape, array.dtype, array.tobytes()

    def _function(self, function: FunctionType) -> Hashable:
        code = function.__code__
        inside = [self._cell(cell) for cell in function.__closure__ or ()]
        inside += [self.visit(x) for x in function.__defaults__ or ()]
        inside += [self.visit(x) for x in (function.__kwdefaults__ or {}).items()]
        # Not `__module__`, which `functools.wraps` copies.
        home = str(function.__globals__.get("__name__", ""))
        if _root(home) in _LIBRARIES:
            if home.startswith(_STATEFUL) or function.__name__ in _STATEFUL_NAMES:
                raise _Unknown
            return code, tuple(inside)
        names, is_impure = _names_of(code)
        if is_impure:
            raise _Unknown
        inside += [self.visit(x) for x in function.__dict__.items()]
        self.names |= names
        space = function.__globals__
        for name in sorted(names):
            if name in space:
                inside.append((name, self.visit(space[name])))
            elif name in _IMPURE_BUILTINS and hasattr(builtins, name):
                raise _Unknown
        return code, id(space), tuple(inside)

    def _cell(self, cell: Any) -> Hashable:
        try:
            return self.visit(cell.cell_contents)
        except ValueError:  # The name has not been assigned yet.
            raise _Unknown from None

    def _module(self, module: ModuleType) -> Hashable:
        name = module.__name__
        root = _root(name)
        if name.startswith(_STATEFUL):
            raise _Unknown
        if root in _PURE_MODULES:
            self.meets_libraries |= root in ("numpy", "scipy", "operator")
        elif root in sys.stdlib_module_names or _makes_attributes(module):
            raise _Unknown
        else:
            self.modules.append(module)
        return name


def _makes_attributes(module: ModuleType) -> bool:
    """Whether what a name means in a module may come from a function."""
    return type(module) is not ModuleType or "__getattr__" in module.__dict__


def _is_own_data(value: Any) -> bool:
    """Whether a value is of this package and cannot be changed."""
    params = getattr(type(value), "__dataclass_params__", None)
    return params is not None and params.frozen and _root(type(value).__module__) == "funcgrad"


def _root(name: str | None) -> str:
    return (name or "").partition(".")[0]


def _is_pure(value: Any) -> bool:
    """Whether a class, or a function written in C, reads nothing that changes."""
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):
        return False
    module = value.__module__ or ""
    if isinstance(value, type) and module == "builtins":
        return True
    if value.__name__ in _STATEFUL_NAMES:
        return False
    is_known = _root(module) in _PURE_MODULES and not module.startswith(_STATEFUL)
    return is_known or (module == "builtins" and value.__name__ not in _IMPURE_BUILTINS)


@lru_cache(4096)
def _names_of(code: CodeType) -> tuple[frozenset[str], bool]:
    """Names of globals and attributes in a code, and whether it does what cannot be judged."""
    names = set(code.co_names)
    is_impure = not _IMPURE_OPCODES.isdisjoint(code.co_code[::2])
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner, is_inner_impure = _names_of(constant)
            names |= inner
            is_impure |= is_inner_impure
    return frozenset(names), is_impure


def _dependencies(functions: Sequence[Any]) -> tuple[Hashable, list[Any]] | None:
    """All that functions depend on, and what must be kept while this is compared."""
    traversal = _Traversal()
    try:
        key = traversal.all_of(functions)
        hash(key)
    except (_Unknown, TypeError):
        return None
    return key, traversal.kept


class Traced(Protocol):
    """A function that was traced."""

    @property
    def program(self) -> Program:
        """Its program."""

    @property
    def captured(self) -> Sequence[Any]:
        """The values of surrounding transformations that it closes over."""

    @property
    def cells(self) -> Sequence[Any]:
        """The cells of outside that it uses."""


_remembered: OrderedDict[Hashable, tuple[Any, list[Any], bool]] = OrderedDict()
"""Memoised results with the objects that keys describe; True: for the very same functions only."""
_lock = Lock()


def remembered(
    functions: Iterable[Any], what: Hashable, make: Callable[[], T], traced: Callable[[T], Traced]
) -> T:
    """Result of ``make``, now or from when the functions depended on the same things.

    Args:
        functions: Those that ``make`` calls.
        what: What else decides the result.
        make: Makes it.
        traced: The part of a result that was traced.
    """
    given = list(functions)
    before = _dependencies(given) if IS_ON else None
    if before is None:
        return make()
    description, kept = before
    settings = (promotion_mode(), dialect(), INDEX_RULE.clamps, is_jit_disabled())
    line = None if all(map(_has_own_lines, filter(callable, given))) else current_location()
    key = (what, description, axes_in_scope(), settings, environment.when_compiled(), line)
    with _lock:
        found = _remembered.get(key)
        if found is not None and (not found[2] or _are_same(found[1], kept)):
            _remembered.move_to_end(key)
            return found[0]
    made = make()
    after = _dependencies(given)
    # Not what a function made that changes what it depends on, by counting its calls for example,
    # nor what belongs to a surrounding transformation, or to cells.
    found_now = traced(made)
    is_alone = not found_now.captured and not found_now.cells
    if after is None or after[0] != description or not is_alone:
        return made
    program = found_now.program
    if _constant_bytes(program) <= _MAX_BYTES:
        with _lock:
            _remembered[key] = (made, kept, calls_users(program))
            while len(_remembered) > _MAX_REMEMBERED:
                _remembered.popitem(last=False)
    return made


def _has_own_lines(function: Any) -> bool:
    """Whether what a function does happens in lines of its own, for it is the user's."""
    while not isinstance(function, FunctionType):
        inner = function.func if isinstance(function, partial) else function
        inner = inner.original if isinstance(inner, MadeOf) else inner
        if inner is function:
            return False
        function = inner
    return is_users(function.__code__)


def _are_same(kept: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether two traversals have met the same objects; tuples are made on the way."""
    return all(a is b or type(a) is tuple for a, b in zip(kept, others, strict=True))


def calls_users(program: Program) -> bool:
    """Whether a program calls functions of the user's, at any depth."""
    return program.memo(
        "calls users",
        lambda: any(
            agreement.calls_users(e.primitive) or any(map(calls_users, subprograms(e.primitive)))
            for e in program.equations
        ),
    )


def _constant_bytes(program: Program) -> int:
    """Size of the arrays that a program holds."""

    def count() -> int:
        inner = [p for e in program.equations for p in subprograms(e.primitive)]
        return sum(x.nbytes for _, x in program.constants) + sum(map(_constant_bytes, inner))

    return program.memo("constant bytes", count)


def forget_all() -> None:
    """Make everything anew from now on."""
    with _lock:
        _remembered.clear()
