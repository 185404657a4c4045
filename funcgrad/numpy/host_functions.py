"""NumPy's and SciPy's own functions under our names: neither differentiated nor compiled.

Designs of filters, tables, labels of regions, files, text, dates: a program that is ported needs
one import only. They refuse traced values. The module is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.base.imports import load
from funcgrad.base.pytree import tree_leaves
from funcgrad.core.trace import Tracer
from funcgrad.errors import ConcretizationTypeError
from funcgrad.observers.source import place
from funcgrad.primitives.objects import is_traced

__all__ = ["host_function", "host_functions"]


def host_function(module: str, name: str) -> Callable[..., Any]:
    """A function of NumPy or SciPy that takes known values only.

    Args:
        module: One of theirs, such as ``"scipy.signal"``.
        name: The function's name there, such as ``"butter"`` or ``"alpha.pdf"``. Where the
            installed version is too old to have it, calling it says so.
    Raises: ConcretizationTypeError: When it is called with a traced value.
    """
    path = f"{module}.{name}"

    def call(*args: Any, **kwargs: Any) -> Any:
        for leaf in tree_leaves((args, kwargs)):
            if is_traced(leaf):
                _refuse(path, leaf)
        original: Any = load(module)
        for part in name.split("."):
            original = getattr(original, part, None)
        if original is None:
            raise NotImplementedError(f"{path}: the {_library(path)} that is installed lacks it.")
        return original(*args, **kwargs)

    call.is_host_function = True  # type: ignore[attr-defined]  # as messages have to know
    call.__name__ = call.__qualname__ = name
    call.__module__ = f"funcgrad.{module}"
    call.__doc__ = (
        f"`{path}` itself, for known values only.\n\n"
        f"``help({path})`` describes its arguments and results."
    )
    return call


def host_functions(module: str, names: str) -> dict[str, Callable[..., Any]]:
    """Functions of one module of NumPy or SciPy that take known values only, by their names.

    Args:
        module: One of theirs, such as ``"scipy.signal"``.
        names: Names of functions there, separated by blanks.
    """
    return {name: host_function(module, name) for name in names.split()}


def _library(path: str) -> str:
    return {"numpy": "NumPy", "scipy": "SciPy"}[path.split(".")[0]]


def _refuse(path: str, value: Tracer) -> None:
    raise ConcretizationTypeError(
        f"{path} is {_library(path)}'s own function and needs known values, but got a traced "
        f"{value.aval} inside {value.owner.what}.{place()}\n"
        "Call it before, outside of the transformed function; or, where its result needs no "
        "derivative, by funcgrad.pure_callback."
    )
