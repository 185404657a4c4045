"""Functions made by ``numba.njit``, traced through the Python functions that they were made of.

In such a Python function, NumPy and `math` are seen through namespaces of ours, and so are other
compiled functions. Nothing of Numba's is changed.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from funcgrad import numpy as fnp
from funcgrad.api import branching
from funcgrad.api.branching import BUILTINS
from funcgrad.api.rewriting import is_rewritable, rewritten
from funcgrad.errors import ArgumentError
from funcgrad.scipy import special

Function = Callable[..., Any]


class _Seen:
    """A module as traced code sees it: some names are ours, the others its own."""

    def __init__(self, original: ModuleType, ours: dict[str, Any]) -> None:
        self.original = original
        self.ours = ours

    def __getattr__(self, name: str) -> Any:
        return self.ours[name] if name in self.ours else getattr(self.original, name)


def _names_of(module: Any) -> dict[str, Any]:
    return {n: v for n in module.__all__ if not isinstance(v := getattr(module, n), ModuleType)}


_MATH = {
    name: getattr(fnp, {"acos": "arccos", "asin": "arcsin", "atan": "arctan", "acosh": "arccosh",
                        "asinh": "arcsinh", "atanh": "arctanh", "atan2": "arctan2", "pow": "power",
                        "fabs": "abs", "dist": "hypot"}.get(name, name))
    for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign",
        "cos", "cosh", "degrees", "exp", "exp2", "expm1", "fabs", "floor", "fmod", "hypot",
        "isfinite", "isinf", "isnan", "log10", "log1p", "log2", "pow", "radians", "sin", "sinh",
        "sqrt", "tan", "tanh", "trunc",
    )
} | {
    "erf": special.erf,
    "erfc": special.erfc,
    "gamma": special.gamma,
    "lgamma": special.gammaln,
}  # fmt: skip


def _log(x: Any, base: Any = None) -> Any:
    return fnp.log(x) if base is None else fnp.log(x) / fnp.log(base)


_seen: dict[str, Any] = {
    "numpy.linalg": _Seen(np.linalg, _names_of(fnp.linalg)),
    "numpy.fft": _Seen(np.fft, _names_of(fnp.fft)),
    "math": _Seen(math, _MATH | {"log": _log}),
}
_seen["numpy"] = _Seen(
    np, _names_of(fnp) | {"linalg": _seen["numpy.linalg"], "fft": _seen["numpy.fft"]}
)
_functions = {
    getattr(seen.original, name): value
    for seen in _seen.values()
    for name, value in seen.ours.items()
    if callable(value) and name in dir(seen.original)
}
"""Functions of NumPy and `math` that were imported by name, and ours."""


def _dispatcher_class() -> Any:
    loaded = sys.modules.get("numba.core.dispatcher")
    return None if loaded is None else loaded.Dispatcher


def _is_dispatcher(value: Any) -> bool:
    kind = _dispatcher_class()
    return kind is not None and isinstance(value, kind)


def _elementwise(value: Any) -> Any:
    """The dispatcher of a function made by ``numba.vectorize``, or None."""
    loaded = sys.modules.get("numba.np.ufunc.dufunc")
    if loaded is None or not isinstance(value, loaded.DUFunc):
        return None
    return value._dispatcher


_made: WeakKeyDictionary[Any, Function] = WeakKeyDictionary()


def traceable(function: Function) -> Function:
    """The Python function that a function of Numba's was made of, for traced values.

    Args: function: Made by ``numba.njit`` or ``numba.jit``; or by ``numba.vectorize`` or
            ``numba.guvectorize``: then the result maps it over broadcast arguments, and returns
            what it writes.

    Returns:
        A function of the same arguments. NumPy and `math` are funcgrad's in it, and compiled
        functions that it calls are traced likewise. If its source is at hand, branches and loops
        may depend on traced values, as by `funcgrad.autograph`, and loops that hold such branches
        are traced once. Other loops of known length are unrolled, and found again where their steps
        are alike.
    Raises: ArgumentError: If Numba did not make the function.

    Example:
        >>> import numba, numpy as np, funcgrad as fg
        >>> @numba.njit("float64(float64)")
        ... def f(x):
        ...     return x * np.sin(x)
        >>> float(fg.grad(fg.interop.numba.traceable(f))(0.0))
        0.0
    """
    dispatcher, builder = _elementwise(function), _generalised(function)
    if dispatcher is None and builder is None and not _is_dispatcher(function):
        raise ArgumentError(
            "traceable needs a function made by numba.njit, numba.vectorize or numba.guvectorize, "
            f"got {type(function).__name__}."
        )
    found = _made.get(function)
    if found is not None:
        return found
    if dispatcher is not None:
        found = _made[function] = fnp.vectorize(_traced(function, dispatcher.py_func))
    elif builder is not None:
        found = _made[function] = _of_cores(function, builder)
    else:
        found = _traced(function, function.py_func)  # type: ignore[attr-defined]
    return found


def _generalised(value: Any) -> Any:
    """The builder of a function made by ``numba.guvectorize``, or None."""
    loaded = sys.modules.get("numba.np.ufunc.gufunc")
    if loaded is None or not isinstance(value, loaded.GUFunc):
        return None
    return value.gufunc_builder


def _of_cores(function: Any, builder: Any) -> Function:
    """A function that writes its results into arguments, as one that returns them.

    Arguments and results of no core dimensions are numbers, or arrays of length 1 where the
    declared types are arrays; so are all results.
    """
    write = _traced(function, builder.py_func)
    declared = builder._sigs[0] if builder._sigs else ()
    declared = getattr(declared, "args", declared)  # a signature of Numba's or a tuple
    n_in = len(builder.sin)
    is_array = [getattr(t, "ndim", 0) > 0 for t in declared][:n_in] or [False] * n_in
    letters = function.types[0].split("->")[1] if function.types else ""

    def of_core(*args: Any) -> Any:
        sizes: dict[str, int] = {}
        given = []
        for x, core, is_wrapped in zip(args, builder.sin, is_array, strict=True):
            sizes.update(zip(core, x.shape, strict=True))
            given.append(fnp.reshape(x, 1) if is_wrapped and not core else x)
        dtypes = list(letters) or [np.result_type(*(x.dtype for x in args))] * len(builder.sout)
        results = [
            fnp.zeros([sizes[name] for name in core] or 1, dtype)
            for core, dtype in zip(builder.sout, dtypes, strict=True)
        ]
        write(*given, *results)
        found = [y if core else y[0] for y, core in zip(results, builder.sout, strict=True)]
        return found[0] if len(found) == 1 else tuple(found)

    return fnp.vectorize(of_core, signature=function.signature)


def _traced(function: Function, original: FunctionType) -> Function:
    """A copy of a Python function that sees our names."""
    names: dict[str, Any] = {"__builtins__": builtins, "__name__": original.__module__}
    cells = tuple(CellType() for _ in original.__closure__ or ())
    made = FunctionType(
        original.__code__, names, original.__name__, original.__defaults__, cells or None
    )
    made.__kwdefaults__ = original.__kwdefaults__
    if is_rewritable(original):
        made = rewritten(made, branching)
    made.__doc__ = original.__doc__
    _made[function] = made  # before the names, among which it may be itself
    for name in set(_global_names(original.__code__)):
        if name in original.__globals__:
            names[name] = _replaced(original.__globals__[name])
        elif name in BUILTINS:
            names[name] = BUILTINS[name]
    for cell, theirs in zip(cells, original.__closure__ or (), strict=True):
        cell.cell_contents = _replaced(theirs.cell_contents)
    return made


def _global_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def _replaced(value: Any) -> Any:
    """Replacement for a global of a compiled function."""
    if isinstance(value, ModuleType):
        if value.__name__ == "numba":
            return _Seen(value, _NUMBAS)
        return _seen.get(value.__name__, value)
    if _is_dispatcher(value) or _elementwise(value) or _generalised(value):
        return traceable(value)
    if getattr(value, "__module__", "").startswith("numba"):
        return _NUMBAS.get(value.__name__, value)
    return _functions.get(value, value) if callable(value) and _is_hashable(value) else value


def _same(value: Any) -> Any:
    return value


_NUMBAS = {"prange": BUILTINS["range"], "literal_unroll": _same}
"""Functions of Numba's that compiled functions call, and ours."""


def _is_hashable(value: Any) -> bool:
    return type(value).__hash__ is not None
