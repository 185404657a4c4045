"""JAX's names about arrays and devices, in a library whose arrays are NumPy's.

Results are ready when a call returns, and there is one device; so these functions do little. They
exist so that programs written for JAX run after their imports were changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.base.transformed import Transformed
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError
from funcgrad.observers.source import in_scope
from funcgrad.primitives.objects import HoldsArray, StandsForArray, is_traced, map_values


class _ArrayType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, np.ndarray | np.generic | Tracer | StandsForArray)


# To type checkers a value has every operator, method and attribute.
_Anything: Any = Any if TYPE_CHECKING else object


class Array(_Anything, metaclass=_ArrayType):
    """Common type of arrays and traced values, for annotations and ``isinstance``.

    Raises: TypeError: If it is called: arrays are made by NumPy or `funcgrad.numpy`.
    Example: isinstance(np.ones(3), fg.Array), isinstance([1.0], fg.Array) -> (True, False)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Array:
        raise TypeError("funcgrad.Array is for annotations; make arrays with numpy.array.")


def block_until_ready(x: Any) -> Any:
    """The argument: results are ready when a call returns.

    Returns: The same pytree.
    Example: print(fg.block_until_ready(fg.jit(lambda x: x + 1)(1.0))) -> 2.0
    """
    return x


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: bool = False, may_alias: Any = None
) -> Any:
    """The leaves of a pytree as arrays.

    Args:
        device: ``None``, or the CPU.
        src: Likewise.
        donate: Of no effect.
        may_alias: Of no effect.
    Returns: The pytree with an array for every leaf; arrays stay the same objects.

    Raises:
        ArgumentError: If another device is given.
        DtypeError: If a leaf is neither an array nor a number.
    Example: fg.device_put([1.0, 2]) -> [array(1.), array(2)]
    """
    check_placement("device_put", device=device, src=src)
    return map_values(_as_array, x)


def device_get(x: Any) -> Any:
    """The leaves of a pytree as arrays; see `device_put`.

    Returns: The pytree with an array for every leaf.
    Example: fg.device_get({"a": 1.0}) -> {'a': array(1.)}
    """
    return device_put(x)


def _as_array(leaf: Any) -> Any:
    return leaf if is_traced(leaf) else np.asarray(leaf, aval_of(leaf).dtype)


def effects_barrier() -> None:
    """Wait until effects have happened: they have when a call returns.

    Example:
        >>> y = fg.jit(lambda x: fg.debug.print("{}", x))(1.0)
        1.0
        >>> fg.effects_barrier()
    """


def typeof(x: Any) -> ShapedArray:
    """Abstract value of a value: its shape, its dtype, and whether it is weak.

    Args: x: An array, a number or a traced value.

    Returns:
        Its type, with the attributes ``shape``, ``dtype``, ``weak_type``, ``ndim`` and ``size``.
    Raises: DtypeError: If it is nothing of these.
    Example: print(fg.typeof(np.ones((2, 3), np.float32)), fg.typeof(1.0)) -> f32[2,3] ~f64[]
    """
    return ShapedArray(x.shape, x.dtype) if isinstance(x, HoldsArray) else aval_of(x)


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """A block with a name, by which `funcgrad.diagnostics.draw` groups operations.

    Blocks nest. A function can be decorated with it.

    Args: name: The name.
    Raises: ArgumentError: If the name is not a text.

    Example:
        >>> def f(x):
        ...     with fg.named_scope("layer"):
        ...         return np.tanh(2 * x)
        >>> [equation.source.scope for equation in fg.make_jaxpr(f)(1.0).eqns]
        [('layer',), ('layer',)]
    """
    if not isinstance(name, str):
        raise ArgumentError(f"named_scope needs a text as name, got a {type(name).__name__}.")
    with in_scope(name):
        yield


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """A function whose operations have its name: `named_scope` around every call.

    Args:
        fun: The function.
        name: Another name.

    Example:
        >>> layer = fg.named_call(np.tanh, name="layer")
        >>> [equation.source.scope for equation in fg.make_jaxpr(layer)(1.0).eqns]
        [('layer',)]
    """
    label = getattr(fun, "__name__", type(fun).__name__) if name is None else name

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with named_scope(label):
            return fun(*args, **kwargs)

    return Transformed(run, named_call, fun, name=name)
