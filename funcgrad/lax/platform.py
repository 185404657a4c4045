"""Platform-dependent code, as programs for accelerators have it: on a CPU, results are exact."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from funcgrad.base.pytree import tree_leaves, tree_map
from funcgrad.core.avals import aval_of, shaped
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.higher_order.callback import DebugCallback, IoCallback
from funcgrad.lax.elementwise import neg
from funcgrad.lax.operands import Array, ArrayLike
from funcgrad.lax.reductions import top_k
from funcgrad.primitives.shape import Reshape

__all__ = [
    "after_all", "approx_max_k", "approx_min_k", "composite", "create_token", "dce_sink",
    "optimization_barrier", "platform_dependent", "rng_uniform", "stage",
    "with_sharding_constraint",
]  # fmt: skip


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The ``k`` greatest elements along an axis and their places: exactly, as `top_k`.

    Args: operand: Real array.
    Returns: The elements, in descending order, and their places.
    Example: print(*fg.lax.approx_max_k(np.array([1.0, 5.0, 3.0]), 2)) -> [5. 3.] [1 2]
    """
    return top_k(operand, k, reduction_dimension)


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The ``k`` least elements along an axis and their places, exactly.

    Args: operand: Floating array.
    Returns: The elements, in ascending order, and their places.
    Example: print(*fg.lax.approx_min_k(np.array([1.0, 5.0, 3.0]), 2)) -> [1. 3.] [0 2]
    """
    values, places = top_k(neg(operand), k, reduction_dimension)
    return neg(values), places


def optimization_barrier(operand: Any, /) -> Any:
    """The operand, unchanged: nothing is computed twice here that would have to be kept apart.

    Args: operand: Pytree of arrays.
    Example: fg.lax.optimization_barrier(2.0) -> 2.0
    """
    return tree_map(lambda x: x, operand)


def stage(x: ArrayLike, /) -> Array:
    """A number or an array as a value of the transformation around, if one is traced.

    Traced integers are indices of it, and what is computed from it becomes part of the program.

    Args: x: Number or array.
    Returns: A traced value inside of a function that is traced to a program, else an array.
    Example: print(fg.lax.stage(3.0) + 1) -> 4.0
    """
    if isinstance(x, Tracer):
        return x
    array = np.array(x)
    if not current_trace().is_staged:
        return array[()]
    return Reshape(array.shape).bind(array)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Have values computed, though nothing uses them.

    Args:
        val: Pytree of arrays.
        prevent_mlir_dce: Accepted for JAX's signature: compiled programs compute them in any case.

    Example:
        >>> fg.lax.dce_sink(3.0)
    """
    for x in tree_leaves(val):
        DebugCallback(_take_nothing, "lax.dce_sink", ()).bind(x)


def _take_nothing(*args: Any) -> list[Any]:
    return []


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Numbers between two, from NumPy's generator, which keeps a state: new ones in every call.

    Functions of `funcgrad.random` have none, and are what programs should use.

    Args:
        a: The least number, a scalar.
        b: What they are less than, a scalar of the same dtype.
    Raises: DtypeError: If the dtypes differ, or are neither of integers nor real.

    Example:
        >>> np.random.seed(0)
        >>> fg.lax.rng_uniform(0, 10, (3,)).tolist()
        [5, 0, 3]
    """
    first, second = aval_of(a).strong(), aval_of(b).strong()
    if first.dtype != second.dtype or first.dtype.kind not in "iuf":
        raise DtypeError(
            f"lax.rng_uniform: both ends must be real and have one dtype, got {first} and {second}."
        )
    out = shaped(tuple(map(index, shape)), first.dtype)

    def draw(low: Any, high: Any) -> list[Any]:
        made = (np.random.uniform if out.dtype.kind == "f" else np.random.randint)(
            low, high, out.shape
        )
        return [np.asarray(made, out.dtype)]

    return IoCallback(draw, "lax.rng_uniform", (out,)).bind(a, b)[0]


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The values, unchanged: there is one device, which has them all.

    Args: shardings: Accepted for JAX's signature.
    Example: fg.lax.with_sharding_constraint(2.0, None) -> 2.0
    """
    return optimization_barrier(x)


def create_token(_: Any = None) -> Array:
    """A token, which orders effects in JAX; here they happen in the order of the program.

    Args: _: Ignored.
    Returns: An empty array.
    Example: fg.lax.create_token().shape -> (0,)
    """
    return np.zeros(0, np.bool_)


def after_all(*operands: Array) -> Array:
    """A token that stands for several.

    Args: *operands: Tokens, as `create_token` makes them.
    Returns: A token.
    Example: fg.lax.after_all(fg.lax.create_token(), fg.lax.create_token()).shape -> (0,)
    """
    return create_token()


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """The result of the function for the CPU, or of ``default``.

    Args:
        *args: Arguments of the function.
        default: Called if there is none for the CPU.
        **per_platform: A function for each platform, by its name.
    Raises: NotImplementedError: If there is neither a function for the CPU nor a default.
    Example: print(fg.lax.platform_dependent(3.0, cpu=lambda x: x + 1, cuda=lambda x: x - 1)) -> 4.0
    """
    chosen = per_platform.get("cpu", default)
    if chosen is None:
        named = ", ".join(sorted(per_platform)) or "no platform"
        raise NotImplementedError(
            f"lax.platform_dependent needs `cpu=` or `default=`, got functions for {named}."
        )
    return chosen(*args)


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function that compilers may know by a name; here it is what computes it.

    Args:
        decomposition: The function. Its keyword arguments are known, not traced.
        name: A name for the operation.
        version: A number for what the name means.
    Returns: A function of the same arguments.
    Raises: ArgumentError: When it is called with a traced keyword argument.

    Example:
        >>> tangent = fg.lax.composite(lambda x: np.sin(x) / np.cos(x), "my.tangent")
        >>> print(tangent(0.0))
        0.0
    """

    @functools.wraps(decomposition)
    def apply(*args: Any, **attributes: Any) -> Any:
        for key, value in attributes.items():
            if isinstance(value, Tracer):
                raise ArgumentError(
                    f"lax.composite({name!r}): the keyword argument {key} is a traced value; give "
                    "it as a positional argument."
                )
        return decomposition(*args, **attributes)

    return apply
