"""``autograd.misc.optimizers``: descent with ``grad(x, i)``, for containers of arrays.

Sources: momentum, Polyak (1964); RMSprop, Tieleman and Hinton (2012); Adam, Kingma and Ba,
arXiv:1412.6980.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.flatten_util import ravel_pytree

Gradient = Callable[[Any, int], Any]
Callback = Callable[[Any, int, Any], Any] | None
Update = Callable[[int, Any, Any], Any]
__all__ = ["adam", "rmsprop", "sgd"]


def _descend(grad: Gradient, x0: Any, callback: Callback, num_iters: int, update: Update) -> Any:
    """Iterate ``x = update(i, x, g)`` on the vector of all entries of ``x``."""
    x, unflatten = ravel_pytree(x0)
    for i in range(num_iters):
        point = unflatten(x)
        gradient = grad(point, i)
        if callback:
            callback(point, i, gradient)
        x = update(i, x, ravel_pytree(gradient)[0])
    return unflatten(x)


def sgd(
    grad: Gradient,
    x: Any,
    callback: Callback = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Gradient descent with momentum, whose velocity is a running mean of gradients.

    Args:
        grad: ``grad(x, i)``, the gradient for step ``i``.
        x: Where to start: an array or a container of arrays.
        callback: Called as ``callback(x, i, g)`` before each step.
        num_iters: Number of steps.
        step_size: Factor of the velocity.
        mass: How much of the velocity is kept.

    Returns:
        The last point, like ``x``.

    Example:
        >>> from funcgrad.interop.autograd.misc.optimizers import sgd
        >>> abs(sgd(lambda x, i: 2 * x, 1.0)) < 1e-2
        np.True_
    """
    velocity: Any = 0.0

    def update(i: int, x: Any, g: Any) -> Any:
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * g
        return x + step_size * velocity

    return _descend(grad, x, callback, num_iters, update)


def rmsprop(
    grad: Gradient,
    x: Any,
    callback: Callback = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 10**-8,
) -> Any:
    """Steps divided by the root of a running mean of squares, which starts at one.

    Args:
        grad: ``grad(x, i)``, the gradient for step ``i``.
        x: Where to start: an array or a container of arrays.
        callback: Called as ``callback(x, i, g)`` before each step.
        num_iters: Number of steps.
        step_size: Length of a step.
        gamma: How much of the mean is kept.
        eps: Added to the root.

    Returns:
        The last point, like ``x``.

    Example:
        >>> from funcgrad.interop.autograd.misc.optimizers import rmsprop
        >>> abs(rmsprop(lambda x, i: 2 * x, 1.0, num_iters=300, step_size=0.01)) < 0.1
        np.True_
    """
    mean: Any = 1.0

    def update(i: int, x: Any, g: Any) -> Any:
        nonlocal mean
        mean = gamma * mean + (1.0 - gamma) * g * g
        return x - step_size * g / (np.sqrt(mean) + eps)

    return _descend(grad, x, callback, num_iters, update)


def adam(
    grad: Gradient,
    x: Any,
    callback: Callback = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 10**-8,
) -> Any:
    """Adam: steps of running means of gradients over roots of those of squares, both unbiased.

    Args:
        grad: ``grad(x, i)``, the gradient for step ``i``.
        x: Where to start: an array or a container of arrays.
        callback: Called as ``callback(x, i, g)`` before each step.
        num_iters: Number of steps.
        step_size: Length of a step.
        b1: How much of the mean of gradients is kept.
        b2: How much of the mean of squares is kept.
        eps: Added to the root.

    Returns:
        The last point, like ``x``.

    Example:
        >>> from funcgrad.interop.autograd.misc.optimizers import adam
        >>> abs(adam(lambda x, i: 2 * x, 1.0, num_iters=300, step_size=0.1)) < 1e-3
        np.True_
    """
    first: Any = 0.0
    second: Any = 0.0

    def update(i: int, x: Any, g: Any) -> Any:
        nonlocal first, second
        first = b1 * first + (1.0 - b1) * g
        second = b2 * second + (1.0 - b2) * g * g
        mean = first / (1.0 - b1 ** (i + 1))
        square = second / (1.0 - b2 ** (i + 1))
        return x - step_size * mean / (np.sqrt(square) + eps)

    return _descend(grad, x, callback, num_iters, update)
