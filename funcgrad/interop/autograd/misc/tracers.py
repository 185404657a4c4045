"""``autograd.misc.tracers``: a function recorded at its first call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from funcgrad.api.compilation import jit

__all__ = ["const_graph"]


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """A function whose operations are those of its first call: here, it is compiled.

    Args:
        fun: The function; only its shapes may decide what it does.
        *args: Its first arguments, which are bound.
        **kwargs: Keyword arguments, which are bound.
    Returns: A function of the other arguments.
    """
    return jit(partial(fun, *args, **kwargs))
