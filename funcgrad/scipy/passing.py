"""SciPy's own functions of concrete values: constants of a program, such as nodes and zeros."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from funcgrad.errors import ArgumentError
from funcgrad.numpy.promotion import holds_tracer


def passed_on(module: str, name: str) -> Callable[..., Any]:
    """SciPy's function, which makes constants and refuses traced values.

    Args:
        module: Of SciPy, such as ``scipy.special``; it is imported when the function is called.
        name: The name of the function there.
    """

    def function(*args: Any, **kwargs: Any) -> Any:
        if holds_tracer([*args, *kwargs.values()]):
            raise ArgumentError(
                f"{module}.{name} makes constants from numbers and is not traced, but was given a "
                "traced value. Call it outside of the transformed function, or give it concrete "
                "numbers."
            )
        return getattr(importlib.import_module(module), name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = f"funcgrad.{module}"
    function.__doc__ = f"`{module}.{name}`: SciPy's own, of numbers that are not traced."
    return function
