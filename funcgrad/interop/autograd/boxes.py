"""Traced values under autograd's names, and the values behind them."""

from __future__ import annotations

from typing import Any, NoReturn

from funcgrad.errors import ArgumentError
from funcgrad.primitives.objects import is_traced

__all__ = ["Box", "DictBox", "SequenceBox", "getval", "isbox"]


class _BoxMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return is_traced(instance)


class Box(metaclass=_BoxMeta):
    """Base class of traced values. Classes of the user's are registered as pytrees."""

    def __init__(self, *args: Any) -> None:
        raise ArgumentError("traced values are made by transformations, not by Box(...).")

    @classmethod
    def register(cls, value_type: type) -> NoReturn:
        """Refused: a class is made differentiable as a pytree.

        Args: value_type: The class.
        Raises: ArgumentError: Always.
        """
        raise ArgumentError(
            f"Box.register({value_type.__name__}): funcgrad differentiates classes as pytrees. "
            "Register it with funcgrad.tree_util.register_pytree_node or register_dataclass."
        )


class _NoInstances(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return False


class SequenceBox(metaclass=_NoInstances):
    """The class of traced lists and tuples in autograd; here they are lists and tuples."""


class DictBox(metaclass=_NoInstances):
    """The class of traced dicts in autograd; here they are dicts."""


def isbox(x: Any) -> bool:
    """Whether a value is traced.

    Args: x: Anything.
    """
    return is_traced(x)


def getval(x: Any) -> Any:
    """The value behind a traced one, for printing or branching; it has no derivative.

    Args: x: Anything; what is not traced is returned as it is.
    Raises: ConcretizationTypeError: If there is no value yet, as under `jit` and `vmap`.

    Example:
        >>> from funcgrad.interop.autograd import grad
        >>> from funcgrad.interop.autograd.tracer import getval
        >>> def f(x):
        ...     print(float(getval(x)))
        ...     return x ** 2
        >>> float(grad(f)(3.0))
        3.0
        6.0
    """
    return x._value if is_traced(x) else x
