"""``autograd.builtins``: containers are Python's own, and traced arrays count as arrays.

Containers are pytrees, so that the functions that make and index them under a trace are plain.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from funcgrad.interop.autograd.boxes import DictBox, SequenceBox
from funcgrad.primitives.objects import is_traced

__all__ = [
    "DictBox", "SequenceBox", "container_take", "dict", "dict_", "isinstance", "isinstance_",
    "list", "list_", "make_sequence", "sequence_extend_left", "sequence_extend_right", "tuple",
    "tuple_", "type", "type_",
]  # fmt: skip

tuple = tuple_ = builtins.tuple
list = list_ = builtins.list
dict = dict_ = builtins.dict
isinstance_ = builtins.isinstance
type_ = builtins.type


def container_take(A: Any, idx: Any) -> Any:
    """The entry of a container.

    Args:
        A: The container.
        idx: A key, a position or a slice.
    """
    return A[idx]


def make_sequence(seq_type: type_, *args: Any) -> Any:
    """A list or a tuple.

    Args:
        seq_type: Its class.
        *args: Its entries.
    """
    return seq_type(args)


def sequence_extend_right(seq: Any, *elts: Any) -> Any:
    """A list or a tuple with entries after its own.

    Args:
        seq: The list or tuple.
        *elts: The entries.
    """
    return seq + builtins.type(seq)(elts)


def sequence_extend_left(seq: Any, *elts: Any) -> Any:
    """A list or a tuple with entries before its own.

    Args:
        seq: The list or tuple.
        *elts: The entries.
    """
    return builtins.type(seq)(elts) + seq


def type(x: Any) -> Any:
    """The class of a value; that of the value behind a traced one.

    Args: x: Anything.

    Example:
        >>> def f(x):
        ...     print(fg.interop.autograd.builtins.type(x).__name__)
        ...     return x ** 2
        >>> float(fg.interop.autograd.grad(f)(3.0))
        float64
        6.0
    """
    if not is_traced(x):
        return builtins.type(x)
    return np.ndarray if x.ndim else x.dtype.type


def isinstance(x: Any, A: Any) -> bool:
    """``isinstance`` of a value, or of the value behind a traced one.

    Args:
        x: Anything.
        A: A class, or a tuple of classes.

    Example:
        >>> fg.interop.autograd.builtins.isinstance(np.ones(2), np.ndarray)
        True
    """
    return builtins.isinstance(x, A) or issubclass(type(x), A)
