"""What was made of a function is made once, as long as the function depends on the same things.

Loops, branches, checkpoints and `jit` trace a function that they may be given again: the same one,
or, for a ``lambda`` in a function that is called again, one of the same code. Its trace may be used
again if all that it can read, besides its arguments, is the same: what it closes over, its
defaults, the global names in its code, and the same of the functions among these. What is found
there is compared by value where it can be changed in place. Where anything is found that cannot be
judged (an object of the user's, a file, a random state, a traced value), nothing is remembered.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from funcgrad.core.axes import axes_in_scope
from funcgrad.core.drift import promotion_mode
from funcgrad.core.primitive import Primitive
from funcgrad.core.transformed import MadeOf
from funcgrad.higher_order.closures import HoldsFunctions
from funcgrad.higher_order.jit import is_jit_disabled
from funcgrad.pytree import PyTreeDef

T = TypeVar("T")

_MAX_REMEMBERED = 512
_MAX_VISITED = 500
_MAX_BYTES = 1 << 18
_LIBRARIES = frozenset({"numpy", "scipy", "funcgrad"})
_PURE_MODULES = _LIBRARIES | {"math", "cmath", "operator", "functools", "itertools", "typing"}
# Parts of libraries whose functions read or change a state.
_STATEFUL = ("numpy.random", "scipy.stats", "scipy.io")
_STATEFUL_NAMES = frozenset({"random", "stats", "io", "memmap", "load", "fromfile"})
# What these give, or do, is not in the code.
_IMPURE_BUILTINS = frozenset(
    {"breakpoint", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals", "hasattr",
     "id", "input", "locals", "memoryview", "next", "open", "print", "setattr", "super", "vars",
     "__import__"}
)  # fmt: skip
_IMPURE_OPCODES = frozenset(
    dis.opmap[name] for name in ("IMPORT_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
)
_CONSTANTS = (type(None), bool, int, str, bytes, type(...))
_DISPATCHER = type(np.sum)


class _Unknown(Exception):
    """Something that cannot be judged."""


class _Walk:
    """Describes everything that functions can read.

    Attributes:
        kept: What is compared by identity, and must live as long as the description.
    """

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.places: dict[int, int] = {}

    def visit(self, value: Any, names: frozenset[str] = frozenset()) -> Hashable:
        """A description of a value, of a module that of what ``names`` mean in it."""
        kind = type(value)
        if kind in _CONSTANTS:
            return kind, value
        if kind is float or kind is complex:
            return kind, repr(value)
        if isinstance(value, np.generic):
            return kind, value.tobytes()
        if isinstance(value, np.dtype | np.ufunc | _DISPATCHER):
            return value
        if id(value) in self.places:
            return _Walk, self.places[id(value)]
        if len(self.places) >= _MAX_VISITED:
            raise _Unknown
        self.places[id(value)] = len(self.places)
        self.kept.append(value)
        return kind, self._describe(value, names)

    def _describe(self, value: Any, names: frozenset[str]) -> Hashable:
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
            return self._module(value, names)
        if isinstance(value, partial):
            return self.visit((value.func, value.args, value.keywords))
        if isinstance(value, MadeOf):
            return value.transformation, self.visit(value.options), self.visit(value.original)
        if isinstance(value, HoldsFunctions):
            return tuple([self.visit(function) for function in value.functions()])
        if isinstance(value, Primitive | CodeType | PyTreeDef) or _is_own_data(value):
            return value
        if isinstance(value, type | BuiltinFunctionType) and _is_pure(value):
            return id(value)
        raise _Unknown

    def _array(self, array: np.ndarray) -> Hashable:
        if array.dtype.hasobject or array.nbytes > _MAX_BYTES:
            raise _Unknown
        # Programs refer to the array itself, so that an equal one is not the same.
        digest = hashlib.blake2b(array.tobytes(), digest_size=16).digest()
        return id(array), array.shape, array.dtype, digest

    def _function(self, function: FunctionType) -> Hashable:
        code = function.__code__
        inside = [self._cell(cell) for cell in function.__closure__ or ()]
        inside += [self.visit(x) for x in function.__defaults__ or ()]
        inside += [self.visit(x) for x in (function.__kwdefaults__ or {}).items()]
        if _root(function.__module__) in _LIBRARIES:
            if function.__module__.startswith(_STATEFUL):
                raise _Unknown
            return code, tuple(inside)
        names, is_impure = _names_of(code)
        if is_impure:
            raise _Unknown
        inside += [self.visit(x) for x in function.__dict__.items()]
        space = function.__globals__
        for name in sorted(names):
            if name in space:
                found = space[name]
                if (
                    isinstance(found, ModuleType)
                    and names & _STATEFUL_NAMES
                    and _root(found.__name__) in ("numpy", "scipy")
                ):
                    raise _Unknown
                inside.append((name, self.visit(found, names)))
            elif name in _IMPURE_BUILTINS and hasattr(builtins, name):
                raise _Unknown
        return code, id(space), tuple(inside)

    def _cell(self, cell: Any) -> Hashable:
        try:
            return self.visit(cell.cell_contents)
        except ValueError:  # The name has not been assigned yet.
            raise _Unknown from None

    def _module(self, module: ModuleType, names: frozenset[str]) -> Hashable:
        name = module.__name__
        if _root(name) in _PURE_MODULES and not name.startswith(_STATEFUL):
            return name
        if _root(name) in sys.stdlib_module_names:
            raise _Unknown
        known = [n for n in sorted(names) if n in module.__dict__]
        return name, tuple([(n, self.visit(module.__dict__[n], names)) for n in known])


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
    is_known = _root(module) in _PURE_MODULES and not module.startswith(_STATEFUL)
    return is_known or (module == "builtins" and value.__name__ not in _IMPURE_BUILTINS)


@cache
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
    walk = _Walk()
    try:
        key = tuple([walk.visit(function) for function in functions])
        hash(key)
    except (_Unknown, TypeError):
        return None
    return key, walk.kept


_remembered: OrderedDict[Hashable, tuple[Any, list[Any]]] = OrderedDict()
_lock = threading.Lock()


def remembered(
    functions: Iterable[Any],
    what: Hashable,
    make: Callable[[], T],
    is_closed: Callable[[T], bool],
) -> T:
    """What ``make`` gives, or gave when the functions depended on the same things.

    Args:
        functions: Those that ``make`` calls.
        what: What else decides the result.
        make: Makes it.
        is_closed: Whether a result belongs to no surrounding transformation.
    """
    given = list(functions)
    before = _dependencies(given)
    if before is None:
        return make()
    key = (what, before[0], axes_in_scope(), promotion_mode(), is_jit_disabled())
    with _lock:
        found = _remembered.get(key)
        if found is not None:
            _remembered.move_to_end(key)
            result: T = found[0]
            return result
    made = make()
    after = _dependencies(given)
    # Not what a function made that changes what it depends on, by counting its calls for example.
    if after is not None and after[0] == before[0] and is_closed(made):
        with _lock:
            _remembered[key] = (made, before[1])
            while len(_remembered) > _MAX_REMEMBERED:
                _remembered.popitem(last=False)
    return made


def forget_all() -> None:
    """Make everything anew from now on."""
    with _lock:
        _remembered.clear()
