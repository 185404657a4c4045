"""SciPy's own functions under our names: those that make constants of Python's numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError
from funcgrad.pytree import tree_leaves


def passed(module: ModuleType, name: str) -> Callable[..., Any]:
    """A function of SciPy that refuses traced arguments by name.

    Args:
        module: Where it is.
        name: Its name there. Older versions of SciPy may not have it.
    """
    function = getattr(module, name, None)
    if function is None:
        return _absent(module, name)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Tracer) for x in tree_leaves((args, kwargs))):
            raise ArgumentError(
                f"{name} is SciPy's own function here, which takes concrete values only, and got a "
                "traced one. Call it outside of the transformed function, or, if its values need "
                "no derivative, by funcgrad.pure_callback."
            )
        return function(*args, **kwargs)

    return call


def _absent(module: ModuleType, name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise ArgumentError(f"{module.__name__}.{name} is not in the installed version of SciPy.")

    call.__name__ = call.__qualname__ = name
    return call
