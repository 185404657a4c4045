"""``autograd.misc.flatten``: nested containers of arrays as one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.flatten_util import ravel_pytree

__all__ = ["flatten", "flatten_func"]


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """One vector of all arrays in a container, and the function back.

    Args: value: An array, a number or a nested container of them.
    Returns: The vector, dicts in the order of their keys, and ``unflatten``.

    Example:
        >>> from funcgrad.interop.autograd.misc.flatten import flatten
        >>> vector, unflatten = flatten({"b": [1.0, 2.0], "a": 3.0})
        >>> vector
        array([3., 1., 2.])
        >>> float(unflatten(vector)["b"][1])
        2.0
    """
    return ravel_pytree(value)


def flatten_func(func: Callable[..., Any], example: Any) -> Any:
    """A function of a container, as a function of vectors.

    Args:
        func: ``func(x, *args)``, whose value is a container too.
        example: An ``x``.
    Returns: The function of the vector, ``unflatten``, and the vector of the example.
    """
    vector, unflatten = flatten(example)

    def of_vector(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vector, unflatten, vector
