"""Functions of the package ``jax`` that funcgrad says otherwise, or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import lax, ref
from funcgrad.api import compilation
from funcgrad.api.vectorization import vmap
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.interop.jax import devices
from funcgrad.interop.jax.arrays import Adopted, adopt
from funcgrad.interop.missing import Missing


class _Type(ShapedArray):
    """A type with where its arrays lie."""

    @property
    def sharding(self) -> devices.NamedSharding:
        """Undivided on the processor."""
        return devices.NamedSharding(_NO_MESH, devices.PartitionSpec())

    @property
    def vma(self) -> frozenset[str]:
        """Axes of devices along which values differ: none."""
        return frozenset()


class _NoMesh:
    """The mesh of programs that have none."""

    platform = "cpu"
    empty = True
    axis_names: tuple[str, ...] = ()

    @property
    def shape(self) -> dict[str, int]:
        """No axes."""
        return {}


_NO_MESH = _NoMesh()


class Ref(ref.Ref):
    """A reference of which arrays of the package ``jax`` are read."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        return adopt(super().__getitem__(index))


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> ref.Ref:
    """A reference to a new array."""
    made = ref.new_ref(init_val, memory_space=memory_space, kind=kind)
    return made if isinstance(made, ref.KeyRef) else Ref(made.content())


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to an array of zeros."""
    return Ref(ref.empty_ref(ty, memory_space).content())


def typeof(x: Any) -> ShapedArray:
    """Shape and dtype of an array or a number."""
    aval = aval_of(x)
    return _Type(aval.shape, aval.dtype, aval.weak_type)


def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: Any = (),
    **options: Any,
) -> Callable[..., Any]:
    """`vmap`: the one device computes what would be divided among many.

    Args:
        fun: The function.
        axis_name: A name for the mapped axis.
        in_axes: As in `vmap`.
        out_axes: As in `vmap`.
        static_broadcasted_argnums: Must be empty.
        **options: About devices; they are ignored.
    """
    if static_broadcasted_argnums not in ((), None):
        Missing("jax.pmap(static_broadcasted_argnums=...)")()
    mapped: Callable[..., Any] = adopt(vmap(fun, in_axes, out_axes, axis_name=axis_name))
    return mapped


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    device: Any = None,
    backend: Any = None,
    compiler_options: Any = None,
    **options: Any,
) -> Any:
    """`funcgrad.jit`, on the one device.

    Args:
        fun: The function; without one, a decorator is returned.
        in_shardings: Where arguments lie; ignored.
        out_shardings: Where results lie; ignored.
        device: Ignored.
        backend: Ignored.
        compiler_options: Of XLA; ignored.
        **options: As in `funcgrad.jit`.
    """
    if fun is None:
        return lambda fun: jit(fun, **options)
    return adopt(compilation.jit(fun, **options))


def isscalar(element: Any) -> bool:
    """Whether it is a number or an array without axes."""
    is_array = isinstance(element, np.ndarray | Tracer)
    return element.ndim == 0 if is_array else bool(np.isscalar(element))


def cond(pred: Any, *args: Any, **options: Any) -> Any:
    """`lax.cond`, also as ``cond(pred, true_operand, true_fun, false_operand, false_fun)``."""
    if len(args) == 4 and callable(args[1]) and callable(args[3]) and not callable(args[0]):
        x, true_fun, y, false_fun = args
        branches = (lambda x, y: true_fun(x)), (lambda x, y: false_fun(y))
        return _cond(pred, *branches, x, y)
    return _cond(pred, *args, **options)


_cond = Adopted(lax.cond)


def block(*args: Any, **kwargs: Any) -> contextlib.AbstractContextManager[None]:
    """A block about devices or XLA, in which nothing is different."""
    return contextlib.nullcontext()


def trace_state_clean() -> bool:
    """Whether no transformation is at work."""
    return current_trace() is EVAL


def trace_state(convention: str = "") -> Any:
    """What is equal as long as the same transformation is at work."""
    return current_trace()


def concrete_or_error(kind: Any, value: Any, context: str = "") -> Any:
    """A known value as one of a kind."""
    return value if kind is None else kind(value)
