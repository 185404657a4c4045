"""What programs for accelerators say, and what it means on a CPU: exact results, one platform."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError
from funcgrad.lax.elementwise import neg
from funcgrad.lax.operands import Array, ArrayLike
from funcgrad.lax.reductions import top_k
from funcgrad.pytree import tree_map


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The ``k`` greatest elements along an axis and their places: exactly, as `top_k`.

    Args:
        operand: Real array.
        k: How many.
        reduction_dimension: The axis.
        recall_target: Accepted for JAX's signature: all are found.
        reduction_input_size_override: Accepted for JAX's signature.
        aggregate_to_topk: Accepted for JAX's signature.

    Returns:
        The elements, in descending order, and their places.

    Example:
        >>> import numpy as np
        >>> from funcgrad import lax
        >>> print(*lax.approx_max_k(np.array([1.0, 5.0, 3.0]), 2))
        [5. 3.] [1 2]
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

    Args:
        operand: Floating array.
        k: How many.
        reduction_dimension: The axis.
        recall_target: Accepted for JAX's signature: all are found.
        reduction_input_size_override: Accepted for JAX's signature.
        aggregate_to_topk: Accepted for JAX's signature.

    Returns:
        The elements, in ascending order, and their places.

    Example:
        >>> import numpy as np
        >>> from funcgrad import lax
        >>> print(*lax.approx_min_k(np.array([1.0, 5.0, 3.0]), 2))
        [1. 3.] [0 2]
    """
    values, places = top_k(neg(operand), k, reduction_dimension)
    return neg(values), places


def optimization_barrier(operand: Any, /) -> Any:
    """The operand, unchanged: nothing is computed twice here that would have to be kept apart.

    Args:
        operand: Pytree of arrays.
    """
    return tree_map(lambda x: x, operand)


def create_token(_: Any = None) -> Array:
    """A token, which orders effects in JAX; here they happen in the order of the program.

    Args:
        _: Ignored.

    Returns:
        An empty array.
    """
    return np.zeros(0, np.bool_)


def after_all(*operands: Array) -> Array:
    """A token that stands for several.

    Args:
        *operands: Tokens, as `create_token` makes them.

    Returns:
        A token.
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

    Raises:
        ArgumentError: If there is neither a function for the CPU nor a default.

    Example:
        >>> from funcgrad import lax
        >>> print(lax.platform_dependent(3.0, cpu=lambda x: x + 1, cuda=lambda x: x - 1))
        4.0
    """
    chosen = per_platform.get("cpu", default)
    if chosen is None:
        named = ", ".join(sorted(per_platform)) or "no platform"
        raise ArgumentError(
            f"lax.platform_dependent needs `cpu=` or `default=`, got functions for {named}."
        )
    return chosen(*args)


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function that compilers may know by a name; here it is what computes it.

    Args:
        decomposition: The function. Its keyword arguments are known, not traced.
        name: A name for the operation.
        version: A number for what the name means.

    Returns:
        A function of the same arguments.

    Raises:
        ArgumentError: When it is called with a traced keyword argument.

    Example:
        >>> import numpy as np
        >>> from funcgrad import lax
        >>> tangent = lax.composite(lambda x: np.sin(x) / np.cos(x), "my.tangent")
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
