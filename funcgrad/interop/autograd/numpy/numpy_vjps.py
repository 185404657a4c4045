"""``autograd.numpy.numpy_vjps``: what authors of rules take from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["unbroadcast", "unbroadcast_f"]


def unbroadcast(x: Any, target_meta: Any, broadcast_idx: int = 0) -> Any:
    """Sum a cotangent over the axes that broadcasting has made.

    Args:
        x: The cotangent of the broadcast array.
        target_meta: Shape of the array before, or a tuple that starts with the shape, as
            autograd's ``metadata`` gives it.
        broadcast_idx: Position of axes that were added.
    Returns: The cotangent, of the shape before.
    """
    shape = target_meta[0] if target_meta and isinstance(target_meta[0], tuple) else target_meta
    extra = np.ndim(x) - len(shape)
    if extra > 0:
        start = broadcast_idx if broadcast_idx >= 0 else np.ndim(x) - extra
        x = np.sum(x, axis=tuple(range(start, start + extra)))
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and np.shape(x)[i] != 1)
    return np.sum(x, axis=stretched, keepdims=True) if stretched else x


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A rule whose result is summed to the shape of ``target``.

    Args:
        target: The argument that broadcast.
        f: From the cotangent of the result to one of the shape of the result.
    Returns: From the cotangent of the result to that of ``target``.
    """
    shape = np.shape(target)
    return lambda g: unbroadcast(f(g), shape)
