"""Optimisers: chains of the neighbouring transformations under the names that they are known by.

Each takes a learning rate, a number or a schedule, and returns a transformation whose updates are
added to the parameters. Names, arguments, defaults and the order of the links are optax's. A known
learning rate that is zero, negative, infinite or NaN is refused: see `scale_by_learning_rate`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.optim import scaling
from funcgrad.optim.transformation import (
    GradientTransformationExtraArgs,
    Params,
    Scalar,
    ScalarOrSchedule,
    chain,
    identity,
)

__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "lamb", "lion", "nadam", "nadamw", "radam",
    "rmsprop", "sgd", "sign_sgd", "yogi",
]  # fmt: skip

Mask = Any | Callable[[Params], Any] | None


def sgd(
    learning_rate: ScalarOrSchedule,
    momentum: Scalar | None = None,
    nesterov: bool = False,
    accumulator_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Gradient descent, with momentum if wanted.

    Args: nesterov: Whether momentum looks one step ahead (Sutskever et al., 2013).

    Example:
        >>> opt = fg.optim.sgd(0.1, momentum=0.9)
        >>> state = opt.init(1.0)
        >>> for _ in range(2):
        ...     updates, state = opt.update(1.0, state)
        ...     print(round(float(updates), 3))
        -0.1
        -0.19
    """
    first = identity() if momentum is None else scaling.trace(momentum, nesterov, accumulator_dtype)
    return chain(first, scaling.scale_by_learning_rate(learning_rate))


def sign_sgd(learning_rate: ScalarOrSchedule) -> GradientTransformationExtraArgs:
    """Steps of the same size for every element, against the sign of its gradient.

    Example:
        >>> o, p = fg.optim.sign_sgd(0.1), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([-0.1,  0.1])
    """
    return chain(scaling.scale_by_sign(), scaling.scale_by_learning_rate(learning_rate))


def rmsprop(
    learning_rate: ScalarOrSchedule,
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: Scalar | None = None,
    nesterov: bool = False,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """Gradients divided by the root of the running mean of their squares (Tieleman, Hinton, 2012).

    PyTorch's is ``rmsprop(lr, decay=0.99, eps_in_sqrt=False)``; its momentum is applied before the
    learning rate, which is the same as long as that does not change.

    Args:
        eps: Added under the root, or to it.
        centered: Whether the square of the running mean of the gradient is subtracted (Graves,
            2013).

    Example:
        >>> opt = fg.optim.rmsprop(0.1)
        >>> updates, _ = opt.update(5.0, opt.init(1.0))
        >>> print(round(float(updates), 4))
        -0.3162
    """
    by_roots = scaling.scale_by_stddev if centered else scaling.scale_by_rms
    return chain(
        by_roots(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        scaling.scale_by_learning_rate(learning_rate),
        identity() if momentum is None else scaling.trace(momentum, nesterov),
    )


def adam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Running mean of the gradient over the root of that of its square (Kingma and Ba, 2015).

    Example:
        >>> opt = fg.optim.adam(0.1)
        >>> updates, _ = opt.update({"w": 5.0}, opt.init({"w": 1.0}))
        >>> print(round(float(updates["w"]), 4))
        -0.1
    """
    return chain(
        scaling.scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scaling.scale_by_learning_rate(learning_rate),
    )


def nadam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """`adam` with ``nesterov=True`` (Dozat, 2016).

    PyTorch's has a factor that warms the momentum up, which this one has not.

    Example: (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.nadam(0.1), np.array([1.0, -2.0]))
        -> array([-0.14736842,  0.14736842])
    """
    return adam(learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)


def adamw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: Any = None,
    weight_decay: Scalar = 1e-4,
    mask: Mask = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """`adam` with decoupled weight decay (Loshchilov and Hutter, 2019).

    The decay is multiplied by the learning rate, as in PyTorch, whose default is 1e-2.

    Example:
        >>> params = {"w": np.ones(2), "b": np.ones(2)}
        >>> opt = fg.optim.adamw(0.1, weight_decay=0.5, mask={"w": True, "b": False})
        >>> updates, _ = opt.update({"w": np.zeros(2), "b": np.zeros(2)}, opt.init(params), params)
        >>> print(updates["w"], np.abs(updates["b"]))
        [-0.05 -0.05] [0. 0.]
    """
    return chain(
        scaling.scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scaling.add_decayed_weights(weight_decay, mask),
        scaling.scale_by_learning_rate(learning_rate),
    )


def nadamw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: Any = None,
    weight_decay: Scalar = 1e-4,
    mask: Mask = None,
    *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """`adamw` with ``nesterov=True``, with its arguments.

    Args: nesterov: Whether the update looks one step ahead; always, by default.

    Example:
        >>> (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.nadamw(0.1), np.array([1.0, -2.0]))
        array([-0.14737842,  0.14738842])
    """
    return adamw(
        learning_rate, b1, b2, eps, eps_root, mu_dtype, weight_decay, mask, nesterov=nesterov
    )


def adamax(
    learning_rate: ScalarOrSchedule, b1: Scalar = 0.9, b2: Scalar = 0.999, eps: Scalar = 1e-8
) -> GradientTransformationExtraArgs:
    """`adam` with the largest recent magnitude in place of the root (Kingma and Ba, 2015).

    Args:
        b2: Decay of the largest magnitude.
        eps: Added to the magnitude.

    Example:
        >>> (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.adamax(0.1), np.array([1.0, -2.0]))
        array([-0.1,  0.1])
    """
    return chain(
        scaling.scale_by_adamax(b1, b2, eps), scaling.scale_by_learning_rate(learning_rate)
    )


def yogi(
    learning_rate: ScalarOrSchedule, b1: Scalar = 0.9, b2: Scalar = 0.999, eps: Scalar = 1e-3
) -> GradientTransformationExtraArgs:
    """`adam` whose second moment moves by steps that its own size does not bound.

    See `scale_by_yogi` (Zaheer et al., 2018).

    Args: b2: How slowly the second moment moves.
    Example: (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.yogi(0.1), np.array([1.0, -2.0]))
        -> array([-0.09985114,  0.09993709])
    """
    return chain(scaling.scale_by_yogi(b1, b2, eps), scaling.scale_by_learning_rate(learning_rate))


def radam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    threshold: Scalar = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """`adam` with a warm-up of its own: see `scale_by_radam` (Liu et al., 2020).

    Args: threshold: From how many gradients on there is a division by the root.
    Example: (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.radam(0.1), np.array([1.0, -2.0]))
        -> array([-0.1,  0.2])
    """
    return chain(
        scaling.scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
        scaling.scale_by_learning_rate(learning_rate),
    )


def adagrad(
    learning_rate: ScalarOrSchedule, initial_accumulator_value: Scalar = 0.1, eps: Scalar = 1e-7
) -> GradientTransformationExtraArgs:
    """Gradients divided by the root of the sum of all their squares (Duchi et al., 2011).

    PyTorch starts the sum at 0 and adds its ``eps`` to the root.

    Args: eps: Added under the root.

    Example:
        >>> o, p = fg.optim.adagrad(0.1), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([-0.09534625,  0.09877296])
    """
    return chain(
        scaling.scale_by_rss(initial_accumulator_value, eps),
        scaling.scale_by_learning_rate(learning_rate),
    )


def adadelta(
    learning_rate: ScalarOrSchedule | None = None,
    rho: Scalar = 0.9,
    eps: Scalar = 1e-6,
    weight_decay: Scalar = 0.0,
    weight_decay_mask: Mask = None,
) -> GradientTransformationExtraArgs:
    """Steps of the size of recent steps: see `scale_by_adadelta` (Zeiler, 2012).

    Args:
        learning_rate: A positive number, possibly traced, or a schedule; by default 1.
        rho: Decay of the means.
        eps: Added under the roots.
        weight_decay: Share of the parameters that is added to the gradient.
        weight_decay_mask: Which parameters decay: see `add_decayed_weights`.

    Example:
        >>> o, p = fg.optim.adadelta(0.1), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([-0.00031623,  0.00031623])
    """
    return chain(
        scaling.add_decayed_weights(weight_decay, weight_decay_mask),
        scaling.scale_by_adadelta(rho, eps),
        scaling.scale_by_learning_rate(1.0 if learning_rate is None else learning_rate),
    )


def lion(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.99,
    mu_dtype: Any = None,
    weight_decay: Scalar = 1e-3,
    mask: Mask = None,
) -> GradientTransformationExtraArgs:
    """Steps by the sign of a running mean: see `scale_by_lion` (Chen et al., 2023).

    Args:
        learning_rate: A positive number, possibly traced, or a schedule: smaller than that of Adam.
        b1: Share of the mean in the direction.
        b2: Decay of the mean.
    Example: (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.lion(0.1), np.array([1.0, -2.0]))
        -> array([-0.1001,  0.1002])
    """
    return chain(
        scaling.scale_by_lion(b1, b2, mu_dtype),
        scaling.add_decayed_weights(weight_decay, mask),
        scaling.scale_by_learning_rate(learning_rate),
    )


def lamb(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-6,
    eps_root: Scalar = 0.0,
    weight_decay: Scalar = 0.0,
    mask: Mask = None,
) -> GradientTransformationExtraArgs:
    """`adamw` with steps in proportion to the norm of each array (You et al., 2020).

    Args: weight_decay: Share of the parameters that is added to the direction.
    Example: (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.lamb(0.1), np.array([1.0, -2.0]))
        -> array([-0.15811384,  0.15811392])
    """
    return chain(
        scaling.scale_by_adam(b1, b2, eps, eps_root),
        scaling.add_decayed_weights(weight_decay, mask),
        scaling.scale_by_trust_ratio(),
        scaling.scale_by_learning_rate(learning_rate),
    )
