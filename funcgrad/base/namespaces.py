"""Names of public modules in `dir`, and advice on names that they do not have.

``dir`` is what completion shows: it lists the public names only. A name that is missing is looked
up, when it is asked for, among what funcgrad does not have on purpose, then in the other public
modules, then among similar names here.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from funcgrad.base.imports import load
from funcgrad.base.signatures import write_out

_ONE_MACHINE = "funcgrad computes on the processor it runs on, with NumPy arrays; "
_SHARDS = (
    "map over examples with vmap; jit uses all cores for large arrays, and "
    "funcgrad.distributed.spmd binds the name of an axis to many processes, each with its own part "
    "of the data."
)
_NO_DEVICES = _ONE_MACHINE + "there are no devices to choose or to list, and nothing to transfer."
_FORMATS = "funcgrad computes in float32, float64, complex64 and complex128; x.astype converts."

INSTEAD: dict[str, str] = {
    "funcgrad.live_arrays": "arrays are NumPy arrays, which Python frees; look with gc.",
    "funcgrad.pmap": _SHARDS,
    "funcgrad.profiler": "funcgrad.profile(f)(*args) shows the time of every line.",
    "funcgrad.transfer_guard": _NO_DEVICES,
    "funcgrad.numpy.bfloat16": _FORMATS,
    "funcgrad.numpy.random": (
        "random numbers come from explicit keys: funcgrad.random.normal(key, shape), with a key of "
        "funcgrad.random.key(seed)."
    ),
}
"""Advice on names that funcgrad does not have on purpose."""

_ELSEWHERE = {"funcgrad.numpy.special": "funcgrad.scipy.special"}
"""Modules by the names under which other libraries look for them in an array namespace."""

_COUNTERPARTS = (
    ("numpy.random", "funcgrad.random"),
    ("numpy", "funcgrad.numpy"),
    ("scipy.linalg", "funcgrad.scipy.linalg"),
    ("scipy.linalg", "funcgrad.numpy.linalg"),
    ("scipy.fft", "funcgrad.numpy.fft"),
    ("scipy", "funcgrad.scipy"),
)
"""Modules in which counterparts of NumPy's and SciPy's are looked for."""

_NUMPYS = {
    "funcgrad.numpy": "numpy",
    "funcgrad.numpy.linalg": "numpy.linalg",
    "funcgrad.numpy.fft": "numpy.fft",
}


_OF_MODULES = (
    {
        f"funcgrad.{name}": "funcgrad.ref"
        for name in ("Ref", "empty_ref", "free_ref", "freeze", "new_ref")
    }
    | {
        f"funcgrad.{name}": "funcgrad.sharding"
        for name in ("NamedSharding", "P", "make_mesh", "set_mesh", "shard_map", "smap")
    }
    | {
        "funcgrad.distributed.load": "funcgrad.distributed.checkpoints",
        "funcgrad.distributed.save": "funcgrad.distributed.checkpoints",
        "funcgrad.distributed.sharded": "funcgrad.distributed.optimizers",
        "funcgrad.distributed.top_k_mean": "funcgrad.distributed.optimizers",
        "funcgrad.distributed.waits": "funcgrad.distributed.waiting",
        "funcgrad.autograph": "funcgrad.api.autograph",
        "funcgrad.cfunc": "funcgrad.interop.c",
        "funcgrad.export": "funcgrad.interop.c",
        "funcgrad.lint": "funcgrad.linting",
        "funcgrad.check_derivatives": "funcgrad.linting",
        "funcgrad.profile": "funcgrad.profiling",
    }
)
"""Names of packages that are loaded when they are first asked for, and the modules they are of."""

_ASIDE = ("funcgrad.experimental", "funcgrad.interop")
"""Packages with names of others, to which nobody is sent."""

_FOR_PAGES = {
    "Any", "MEANINGS", "TYPE_CHECKING", "annotations", "host_functions", "page", "present",
    "present_results", "share",
}  # fmt: skip
"""Names that modules of names import for themselves."""

_presented: dict[str, ModuleType] = {}
_fallbacks: dict[str, str] = {}


def page(names: Mapping[str, Any], *others: str) -> list[str]:
    """The ``__all__`` of a package that is a page of names: all that it imports for its users.

    Args:
        names: The names that it has so far, ``vars()``. Modules do not count, nor what every such
            page needs for itself.
        *others: Modules that it shows, and names that are loaded when they are first asked for.
    """
    found = [n for n, x in names.items() if not (n.startswith("_") or isinstance(x, ModuleType))]
    return sorted({*found, *others} - _FOR_PAGES)


def present(package: str, fallback: str = "") -> None:
    """Let a package and its public modules show the names in their ``__all__``, and no others.

    A name in the ``__all__`` of a package that the package did not import is a module that is
    loaded when it is first asked for, and calls this function itself; or it is of such a module.

    Args:
        package: Its name; it is imported already.
        fallback: Module of another library, loaded when a name is first asked for that the package
            shows and that it has not itself.
    """
    if fallback:
        _fallbacks[package] = fallback
    for module in public_modules(sys.modules[package]):
        _present(module)
        _presented[module.__name__] = module


def counterpart(path: str) -> str | None:
    """The public function of funcgrad for one of NumPy or SciPy, or `None`.

    Names of ours that stand for their own functions do not count: those take no traced values.

    Args: path: Such as ``scipy.special.logsumexp``.
    """
    found = _same_name(path)
    return None if found is None or _is_host_function(*found) else f"{found[0].__name__}.{found[1]}"


def is_host_function(path: str) -> bool:
    """Whether a function of NumPy or SciPy has our name and takes known values only.

    Args: path: Such as ``scipy.stats.kstest``.
    """
    found = _same_name(path)
    return found is not None and _is_host_function(*found)


def _same_name(path: str) -> tuple[ModuleType, str] | None:
    """The module of funcgrad that has the name of a function of NumPy or SciPy."""
    module, _, name = path.rpartition(".")
    for theirs, ours in _COUNTERPARTS:
        if module == theirs or module.startswith(theirs + "."):
            found = _module_of(ours + module.removeprefix(theirs))
            if found is not None and name in found.__all__:
                return found, name
    return None


def _is_host_function(module: ModuleType, name: str) -> bool:
    return bool(getattr(getattr(module, name), "is_host_function", False))


def _module_of(path: str) -> ModuleType | None:
    """A public module, loaded if need be; `None` if there is none of that name."""
    if path not in _presented:
        parent, _, name = path.rpartition(".")
        package = _module_of(parent) if parent else None
        if package is None or name not in package.__all__:
            return None
        load(path)
    return _presented.get(path)


def public_modules(package: ModuleType) -> list[ModuleType]:
    """A package and all modules that can be reached by public names from there."""
    return list(dict.fromkeys([package, *_modules_in(package)]))


def _modules_in(module: ModuleType) -> Iterator[ModuleType]:
    for name in module.__all__:
        value = vars(module).get(name)
        if isinstance(value, ModuleType):
            yield value
            yield from _modules_in(value)


def _present(module: ModuleType) -> None:
    def __dir__() -> list[str]:
        return sorted(module.__all__)

    def __getattr__(name: str) -> Any:
        if name in module.__all__:
            path = f"{module.__name__}.{name}"
            home = _OF_MODULES.get(path) or _fallbacks.get(module.__name__)
            if home is None:
                return load(path)
            found = vars(module)[name] = getattr(load(home), name)
            write_out(found)
            return found
        elsewhere = _ELSEWHERE.get(f"{module.__name__}.{name}")
        if elsewhere is not None:
            return load(elsewhere)
        message = f"module {module.__name__!r} has no attribute {name!r}"
        if not name.startswith("_"):  # Protocols that others ask for: no message is read.
            hint = _hint(module, name)
            message += f": {hint}" if hint else "."
        # With its name, but without the module, for which Python would add a guess of its own.
        raise AttributeError(message, name=name)

    # Not written into the modules: type checkers would accept every name there.
    vars(module).update(__dir__=__dir__, __getattr__=__getattr__)
    for name in module.__all__:
        write_out(vars(module).get(name))


def _hint(module: ModuleType, name: str) -> str:
    """Suggest a name, or something to use instead; empty if there is nothing to say."""
    known = INSTEAD.get(f"{module.__name__}.{name}")
    if known is not None:
        return known
    elsewhere = [
        path
        for path, names in _all_names().items()
        if name in names and path != module.__name__ and not path.startswith(_ASIDE)
    ]
    if elsewhere:
        return f"it is {' or '.join(f'{path}.{name}' for path in elsewhere[:3])}."
    similar = _similar(name, module.__all__)
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    original = _NUMPYS.get(module.__name__)
    if original is not None and name in sys.modules[original].__all__:
        return (
            f"{original}.{name} has no counterpart for traced values. Call it outside of the "
            "transformed function, or, if its values need no derivative, by "
            "funcgrad.pure_callback."
        )
    return ""


def _all_names() -> dict[str, Sequence[str]]:
    """The public names of all public modules.

    Those that wait for their first use are not loaded for a message, as programs also ask for
    names that they know may be missing: their names are read from their sources.
    """
    found: dict[str, Sequence[str]] = {}
    waiting = [(path, module.__all__, vars(module)) for path, module in _presented.items()]
    while waiting:
        path, names, there = waiting.pop(0)
        found[path] = names
        for name in names:
            if name not in there and f"{path}.{name}" not in _presented:
                own, imported = _names_in_source(f"{path}.{name}")
                waiting.append((f"{path}.{name}", own, imported))
    return found


@cache
def _names_in_source(path: str) -> tuple[tuple[str, ...], dict[str, None]]:
    """The names in the ``__all__`` of a module, and what it imports or defines at once.

    A module without ``__all__`` is a table, and its names are those that it assigns.
    """
    file = Path(__file__).parents[1].joinpath(*path.split(".")[1:])
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    names: tuple[str, ...] = ()
    assigned: list[str] = []
    there: dict[str, None] = {}
    for node in ast.parse(file.read_text(encoding="utf-8") if file.exists() else "").body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List() as value):
                names += tuple(str(x.value) for x in value.elts if isinstance(x, ast.Constant))
            case ast.ImportFrom(module=str(module), names=[ast.alias(name="*")]):
                names += _names_in_source(module)[0]
                there.update(dict.fromkeys(_names_in_source(module)[0]))
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                there.update(dict.fromkeys(x.asname or x.name for x in aliases))
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                there[name] = None
            case ast.Assign(targets=targets):
                assigned += [x.id for x in targets if isinstance(x, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                there[name] = None
    there.update(dict.fromkeys(assigned))
    return names or tuple(assigned), there


def _similar(name: str, names: Iterable[str]) -> list[str]:
    """The names nearest to ``name``, up to three, if they differ by a slip of the fingers."""
    most = 1 if len(name) < 5 else 2
    rows = sorted((_slips(name.lower(), other.lower(), most), other) for other in names)
    found = [other for slips, other in rows if slips == rows[0][0] <= most]
    if not any(_slips(name, other, most) <= most for other in found):
        # Many letters in the other case: such a name hides none that is a slip away.
        found += [other for slips, other in rows if slips == 1 and other not in found]
    return found[:3]


def _slips(a: str, b: str, most: int) -> int:
    """How many letters were added, left out, replaced or swapped with their neighbour.

    The distance of optimal string alignment; counting stops beyond ``most``.
    """
    if abs(len(a) - len(b)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            best = min(last[j] + (x != y), last[j + 1] + 1, row[j] + 1)
            if i and j and x == b[j - 1] and a[i - 1] == y:
                best = min(best, before[j - 1] + 1)
            row.append(best)
        if min(row) > most:
            return most + 1
        before, last = last, row
    return last[-1]
