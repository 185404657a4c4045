"""JAX's x64 switch: off, as it is at first, no array of a program has more than 32 bits.

What a program hands over, and what it gets, is narrowed: arrays by `adopt`, traced values by a
conversion, and dtypes that nobody asked for, by the dialect. Within the library numbers may have
64 bits, as indices and the words of random keys have. The switch belongs to the process, and a
block belongs to its thread and context.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from funcgrad.api.arguments import name_of
from funcgrad.api.staging import ShapeDtypeStruct
from funcgrad.base.dialect import JAX, NARROWER, Dialect
from funcgrad.base.pytree import tree_map
from funcgrad.core.trace import Tracer
from funcgrad.primitives.elementwise import Convert


def narrow(x: Any) -> Any:
    """A value with at most 32 bits: an array, a traced value, a type, or a tuple of them.

    Numbers of Python's are weak, and stay what they are.
    """
    if type(x) is tuple:
        return tuple(map(narrow, x))
    dtype = NARROWER.get(getattr(x, "dtype", None))  # type: ignore[arg-type]
    if dtype is None:
        return x
    if isinstance(x, Tracer):
        return x if x.aval.weak_type else Convert(dtype).bind(x)
    if isinstance(x, np.ndarray | np.generic):
        with np.errstate(over="ignore"):
            return np.asarray(x).astype(dtype)[()] if isinstance(x, np.generic) else _as(x, dtype)
    if type(x) is ShapeDtypeStruct:
        return ShapeDtypeStruct(x.shape, dtype, weak_type=x.weak_type)
    return x


def _as(x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    made = np.asarray(x).astype(dtype).view(type(x))
    if getattr(x, "weak_type", False):
        made.weak_type = True  # type: ignore[attr-defined]
    return made


def narrow_weak(x: Any) -> Any:
    """As `narrow`, also of traced floats that are weak: programs ask for their dtype, and its eps.

    Weak values have 64 bits everywhere in the library, so these are no longer weak. Integers stay
    so: they are what is added to floats, where promotion is strict.
    """
    if isinstance(x, Tracer) and x.aval.weak_type and x.aval.dtype.kind in "fc":
        return Convert(NARROWER.get(x.aval.dtype, x.aval.dtype)).bind(x)
    return narrow(x)


JAX_32 = Dialect("jax", narrow)


class _Switch:
    """The switch of the process.

    Attributes:
        is_on: Whether there are 64 bits.
    """

    __slots__ = ("is_on",)

    def __init__(self) -> None:
        self.is_on = False


SWITCH = _Switch()
_chosen: ContextVar[bool | None] = ContextVar("funcgrad_jax_x64", default=None)


def is_x64() -> bool:
    """Whether there are 64 bits, in this thread and context."""
    chosen = _chosen.get()
    return SWITCH.is_on if chosen is None else chosen


def rules() -> Dialect:
    """The rules that functions of the package follow."""
    return JAX if is_x64() else JAX_32


def in_few_bits(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose traced arguments have the bits that there are, also Python's numbers."""

    def traced(*args: Any, **kwargs: Any) -> Any:
        if not is_x64():
            args, kwargs = tree_map(narrow_weak, (args, kwargs))
        return fun(*args, **kwargs)

    functools.update_wrapper(traced, fun)
    traced.__name__ = name_of(fun)
    return traced


@contextmanager
def enable_x64(new_val: bool = True) -> Iterator[None]:
    """A block with 64 bits, or without.

    Args:
        new_val: Whether with.
    """
    token = _chosen.set(bool(new_val))
    try:
        yield
    finally:
        _chosen.reset(token)


@contextmanager
def disable_x64() -> Iterator[None]:
    """A block without 64 bits."""
    with enable_x64(False):
        yield


def canonical(dtype: Any) -> Any:
    """A dtype, in the bits that there are."""
    return dtype if is_x64() else NARROWER.get(dtype, dtype)
