"""``autograd.misc.optimizers``: descent with ``grad(x, i)``, for containers of arrays.

The directions are those of `funcgrad.optim`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.base.signatures import explain
from funcgrad.flatten_util import ravel_pytree
from funcgrad.optim import GradientTransformation, ema, scale_by_adam, scale_by_rms

Gradient = Callable[[Any, int], Any]
Callback = Callable[[Any, int, Any], Any] | None
__all__ = ["adam", "rmsprop", "sgd"]

_MEANINGS = {
    "grad": "``grad(x, i)``, the gradient for step ``i``.",
    "x": "Where to start: an array or a container of arrays.",
    "callback": "Called as ``callback(x, i, g)`` before each step.",
    "num_iters": "Number of steps.",
    "step_size": "Length of a step.",
    "eps": "Added to the root.",
}


def _descend(
    grad: Gradient,
    x0: Any,
    callback: Callback,
    num_iters: int,
    step_size: float,
    direction: GradientTransformation,
) -> Any:
    """Iterate on the vector of all entries of ``x0``."""
    x, unflatten = ravel_pytree(x0)
    state = direction.init(x)
    for i in range(num_iters):
        point = unflatten(x)
        gradient = grad(point, i)
        if callback:
            callback(point, i, gradient)
        step, state = direction.update(ravel_pytree(gradient)[0], state)
        x = x - step_size * step
    return unflatten(x)


def sgd(
    grad: Gradient,
    x: Any,
    callback: Callback = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Gradient descent with momentum (Polyak, 1964): the velocity is a running mean of gradients.

    Args:
        step_size: Factor of the velocity.
        mass: How much of the velocity is kept.
    Returns: The last point, like ``x``.
    Example: abs(fg.interop.autograd.misc.optimizers.sgd(lambda x, i: 2 * x, 1.0)) < 1e-2
        -> np.True_
    """
    return _descend(grad, x, callback, num_iters, step_size, ema(mass, debias=False))


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

    Args: gamma: How much of the mean is kept.
    Returns: The last point, like ``x``.

    Example:
        >>> from funcgrad.interop.autograd.misc.optimizers import rmsprop
        >>> abs(rmsprop(lambda x, i: 2 * x, 1.0, num_iters=300, step_size=0.01)) < 0.1
        np.True_
    """
    return _descend(
        grad, x, callback, num_iters, step_size, scale_by_rms(gamma, eps, 1.0, eps_in_sqrt=False)
    )


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
        b1: How much of the mean of gradients is kept.
        b2: How much of the mean of squares is kept.
    Returns: The last point, like ``x``.

    Example:
        >>> from funcgrad.interop.autograd.misc.optimizers import adam
        >>> abs(adam(lambda x, i: 2 * x, 1.0, num_iters=300, step_size=0.1)) < 1e-3
        np.True_
    """
    return _descend(grad, x, callback, num_iters, step_size, scale_by_adam(b1, b2, eps))


explain(globals(), _MEANINGS)
