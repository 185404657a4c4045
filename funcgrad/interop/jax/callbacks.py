"""Callbacks whose errors are those of JAX's runtime, if compiled programs have called them."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

from funcgrad import debug
from funcgrad.api import debugging
from funcgrad.base.pytree import tree_map
from funcgrad.core.trace import EVAL, current_trace
from funcgrad.interop.jax.arrays import Adopted, weak_number


class JaxRuntimeError(RuntimeError):
    """A compiled program has failed: here a callback of it, whose error is the cause."""


def reporting(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A callback whose errors are those of the runtime, if it is traced now.

    Args:
        callback: A function of a program.
    """
    if current_trace() is EVAL:
        return callback

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return callback(*args, **kwargs)
        except JaxRuntimeError:
            raise
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            raise JaxRuntimeError(
                f"INTERNAL: CpuCallback error calling callback: {text}"
            ) from error

    functools.update_wrapper(call, callback)
    return call


def _taking(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a callback and more."""

    @functools.wraps(function)
    def bind(callback: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return function(reporting(callback), *args, **options)

    return Adopted(bind)


def _weak_as_asked(callback: Callable[..., Any], like: Any, *args: Any, **options: Any) -> Any:
    """Results that are weak where the types say so."""
    found = debugging.pure_callback(callback, like, *args, **options)
    return tree_map(
        lambda x, kind: weak_number(x) if getattr(kind, "weak_type", False) else x, found, like
    )


pure_callback = _taking(_weak_as_asked)
io_callback = _taking(debugging.io_callback)
debug_callback = _taking(debug.callback)
