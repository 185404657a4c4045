"""Losses, with the names and signatures of optax's: one number for every example.

None of them averages or sums over examples: that is the caller's ``.mean()`` or ``.sum()``, which
says what the rate of learning refers to. Elementwise losses return the shape of the predictions,
losses of distributions that shape without the axis of the classes. Targets broadcast to the
predictions, never the other way: predictions of shape ``(n, 1)`` with targets of shape ``(n,)``
are refused, as their ``(n, n)`` differences are nobody's intention.

All are exact where logits are large (1e4 and beyond), and so are their derivatives. A class or an
event whose logit is ``-inf`` is one that cannot happen: it costs nothing where its probability in
the targets is 0, and infinitely much elsewhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.errors import ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.nn.classes import checked_integers, within
from funcgrad.numpy.promotion import normalize_axes, normalize_axis
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives import special
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.scipy.exponentials import Axis, floating, fold_max, fold_sum, log_normalized, masked

Array = Any
ArrayLike = Any


def _pair(name: str, predictions: ArrayLike, targets: ArrayLike, what: str) -> list[Array]:
    """Predictions and targets of one dtype, the targets in the shape of the predictions."""
    x, y = floating(f"losses.{name}", predictions, targets)
    shape, own = s.shape_of(x), s.shape_of(y)
    fits = len(own) <= len(shape) and all(
        n in (1, m) for n, m in zip(reversed(own), reversed(shape), strict=False)
    )
    if not fits:
        raise located(
            ShapeError,
            f"losses.{name}: {what} {aval_of(y)} do not broadcast to the shape of the "
            f"predictions {aval_of(x)}. Reshape one to the shape of the other.",
        )
    return [x, s.broadcast_to(y, shape)]


def _errors(name: str, predictions: ArrayLike, targets: ArrayLike | None) -> Array:
    if targets is None:
        return floating(f"losses.{name}", predictions)[0]
    x, y = _pair(name, predictions, targets, "targets")
    return p.sub.bind(x, y)


def squared_error(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    """``(predictions - targets)**2``; its mean is the mean squared error.

    Returns: One loss for every element of ``predictions``.
    Raises: ShapeError: If the targets do not broadcast to the predictions.
    Example: print(fg.nn.losses.squared_error(np.array([1.0, 3.0]), np.array([1.0, 1.0])).mean())
        -> 2.0
    """
    error = _errors("squared_error", predictions, targets)
    return error * error


def l2_loss(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    """Half of `squared_error`, so that the derivative is the error itself.

    Returns: One loss for every element of ``predictions``.
    Raises: ShapeError: If the targets do not broadcast to the predictions.
    Example: fg.nn.losses.l2_loss(np.array([0.5, 2.0]), np.array([1.0, 1.0]))
        -> array([0.125, 0.5  ])
    """
    error = _errors("l2_loss", predictions, targets)
    return 0.5 * (error * error)


def absolute_error(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    """``|predictions - targets|``; its mean is the mean absolute error, or L1 loss.

    Returns: One loss for every element of ``predictions``. The derivative at 0 is 0.
    Raises: ShapeError: If the targets do not broadcast to the predictions.
    Example: fg.nn.losses.absolute_error(np.array([0.5, 2.0]), np.array([1.0, 1.0]))
        -> array([0.5, 1. ])
    """
    return p.absolute.bind(_errors("absolute_error", predictions, targets))


def huber_loss(
    predictions: ArrayLike, targets: ArrayLike | None = None, delta: float = 1.0
) -> Array:
    """`l2_loss` up to ``delta``, and from there on its tangent: outliers pull with that force only.

    Args: delta: Positive error beyond which the loss is linear.
    Returns: One loss for every element of ``predictions``.
    Raises: ShapeError: If the targets do not broadcast to the predictions.

    Source:
        Huber, Robust estimation of a location parameter, Ann. Math. Statist. 35 (1964).
    Example: print(fg.nn.losses.huber_loss(np.array([0.5, -3.0]))) -> [0.125 2.5  ]
    """
    distance = p.absolute.bind(_errors("huber_loss", predictions, targets))
    near = p.minimum.bind(distance, aval_of(distance).dtype.type(delta))
    # Its derivative is `near`: where the minimum is delta, that of the first two terms vanishes.
    return 0.5 * (near * near) + delta * (distance - near)


def log_cosh(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    """``log(cosh(predictions - targets))``: a smooth `huber_loss`.

    Returns: One loss for every element of ``predictions``.
    Raises: ShapeError: If the targets do not broadcast to the predictions.
    Example: fg.nn.losses.log_cosh(np.array([0.5, 2.0]), np.array([1.0, 1.0]))
        -> array([0.12011451, 0.43378083])
    """
    error = _errors("log_cosh", predictions, targets)
    # log(exp(e) + exp(-e)) - log 2, by softplus of -2e: finite for every e.
    return error - special.log_expit.bind(2.0 * error) - math.log(2)


def cosine_similarity(
    predictions: ArrayLike, targets: ArrayLike, epsilon: float = 1e-8, axis: int = -1
) -> Array:
    """Cosine of the angle between vectors: 1 for one direction, -1 for opposite ones.

    Args:
        predictions: Array of vectors.
        targets: Array of vectors that broadcasts to the shape of the predictions.
        epsilon: Lengths below it count as this one; a vector of zeros has similarity 0 to all.
    Returns: One number for every pair of vectors.
    Raises: ShapeError: If the targets do not broadcast to the predictions.

    Example:
        >>> x, y = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([3.0, 0.0])
        >>> print(fg.nn.losses.cosine_similarity(x, y))
        [1. 1.]
    """
    return _cosine("cosine_similarity", predictions, targets, epsilon, axis)


def cosine_distance(
    predictions: ArrayLike, targets: ArrayLike, epsilon: float = 1e-8, axis: int = -1
) -> Array:
    """``1 - cosine_similarity(...)``: 0 for vectors of one direction.

    Args:
        predictions: Array of vectors.
        targets: Array of vectors that broadcasts to the shape of the predictions.
        epsilon: Lengths below it count as this one.
    Returns: One loss for every pair of vectors.
    Raises: ShapeError: If the targets do not broadcast to the predictions.
    Example: fg.nn.losses.cosine_distance(np.array([0.5, 2.0]), np.array([1.0, 1.0]))
        -> np.float64(0.1425070742874559)
    """
    return 1.0 - _cosine("cosine_distance", predictions, targets, epsilon, axis)


def _cosine(
    name: str, predictions: ArrayLike, targets: ArrayLike, epsilon: float, axis: int
) -> Array:
    x, y = _pair(name, predictions, targets, "targets")
    fold = s.ReduceSum((normalize_axis(axis, len(s.shape_of(x)), f"losses.{name}"),))
    least = aval_of(x).dtype.type(epsilon * epsilon)

    def length(v: Array) -> Array:
        return p.sqrt.bind(p.maximum.bind(fold.bind(v * v), least))

    return fold.bind(x * y) / (length(x) * length(y))


def hinge_loss(predictor_outputs: ArrayLike, targets: ArrayLike) -> Array:
    """``max(0, 1 - targets * predictor_outputs)`` of two classes, as in support vector machines.

    Args:
        predictor_outputs: Array of scores.
        targets: Array of 1 and -1 that broadcasts to the shape of the scores.
    Returns: One loss for every score; the derivative at the kink is 0.
    Raises: ShapeError: If the targets do not broadcast to the scores.
    Example: print(fg.nn.losses.hinge_loss(np.array([3.0, 0.5, 0.5]), np.array([1, 1, -1])))
        -> [0.  0.5 1.5]
    """
    x, y = _pair("hinge_loss", predictor_outputs, targets, "targets")
    return p.relu.bind(1.0 - x * y)


def sigmoid_binary_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Array:
    """Cross-entropy of events that happen with probability ``sigmoid(logits)``, each by itself.

    ``-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))``.

    Args: labels: Probabilities, such as 0 and 1 or bools, that broadcast to the shape of the
            logits.
    Returns: One loss for every logit: for several labels per example, sum or average over them.
    Raises: ShapeError: If the labels do not broadcast to the logits.

    Example:
        >>> print(fg.nn.losses.sigmoid_binary_cross_entropy(np.array([1e4, 1e4]), np.array([1, 0])))
        [    0. 10000.]
    """
    x, y = _pair("sigmoid_binary_cross_entropy", logits, labels, "labels")
    happens, fails = special.log_expit.bind(x), special.log_expit.bind(-x)
    return -_weighted(y, happens) - _weighted(1.0 - y, fails)


def _weighted(weights: Array, logarithms: Array) -> Array:
    """``weights * logarithms``, with 0 for nothing of what is impossible: ``0 * -inf``."""
    is_nothing = p.bitwise_and.bind(
        p.equal.bind(weights, p.zero_of(weights)),
        p.equal.bind(logarithms, aval_of(logarithms).dtype.type(-np.inf)),
    )
    finite = p.select.bind(is_nothing, p.zero_of(logarithms), logarithms)
    return p.mul.bind(weights, finite)


def softmax_cross_entropy(
    logits: ArrayLike, labels: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None
) -> Array:
    """Cross-entropy of classes with probabilities ``softmax(logits)``, for given probabilities.

    ``-sum(labels * log_softmax(logits))``.

    Args: labels: Probabilities that broadcast to the shape of the logits: rows of `nn.one_hot`,
            those of another model, or `smooth_labels`.
    Returns: One loss for every example: the shape of the logits without ``axis``.
    Raises: ShapeError: If the labels do not broadcast to the logits.

    Example:
        >>> logits, labels = np.array([1e4, -1e4]), np.array([[1.0, 0.0], [0.75, 0.25]])
        >>> print([float(fg.nn.losses.softmax_cross_entropy(logits, row)) for row in labels])
        [0.0, 5000.0]
    """
    name = "softmax_cross_entropy"
    x, y = _pair(name, logits, labels, "labels")
    axes = normalize_axes(axis, len(s.shape_of(x)), f"losses.{name}")
    terms = _weighted(y, log_normalized(name, x, axes, where))
    return s.ReduceSum(axes).bind(-masked(terms, where, 0.0))


def softmax_cross_entropy_with_integer_labels(
    logits: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None
) -> Array:
    """Cross-entropy of classes with probabilities ``softmax(logits)``, for given classes.

    ``-log_softmax(logits)[labels]``, without the other logarithms.

    Args:
        labels: Integers, the classes: the shape of the logits without ``axis``.
        where: Bools that broadcast with ``logits``: which classes take part. The class of a label
            must be among them.
    Returns: One loss for every label; nan for a traced label without a class.

    Raises:
        DtypeError: If the labels are not integers.
        OutOfBoundsError: If a known label has no class: negative ones are no classes either.
        ShapeError: If the labels do not have the shape of the logits without ``axis``.

    Example:
        >>> logits, labels = np.array([[0.0, 0.0], [1e4, -1e4]]), np.array([1, 0])
        >>> print(fg.nn.losses.softmax_cross_entropy_with_integer_labels(logits, labels).round(3))
        [0.693 0.   ]
    """
    name = "losses.softmax_cross_entropy_with_integer_labels"
    (x,) = floating(name, logits)
    index = checked_integers(
        name, "labels", labels, "Probabilities of classes go to losses.softmax_cross_entropy."
    )
    place = normalize_axis(axis, len(s.shape_of(x)), name)
    _check_classes(name, x, index, place)
    x = masked(x, where, -np.inf)
    # The largest logit is subtracted from both terms: nothing is lost where logits are large.
    largest = fold_max(x, (place,))
    total = fold_sum(p.exp.bind(p.sub.bind(x, largest)), (place,))
    known = within(name, "classes", index, s.shape_of(x)[place])
    column = s.reshape(known, (*s.shape_of(index)[:place], 1, *s.shape_of(index)[place:]))
    chosen = take_along_axis(x, column, place, "fill", np.nan)
    loss = p.sub.bind(p.log.bind(total), p.sub.bind(chosen, largest))
    return s.reshape(loss, s.shape_of(index))


def _check_classes(name: str, x: Array, labels: Array, axis: int) -> None:
    expected = s.drop_axes(s.shape_of(x), (axis,))
    if s.shape_of(labels) != expected:
        raise located(
            ShapeError,
            f"{name}: labels must have the shape {expected} of the logits {aval_of(x)} without "
            f"axis {axis}, got {aval_of(labels)}.",
        )
    if not s.shape_of(x)[axis]:
        raise located(ShapeError, f"{name}: axis {axis} of the logits {aval_of(x)} has no classes.")


def smooth_labels(labels: ArrayLike, alpha: ArrayLike) -> Array:
    """``(1 - alpha) * labels + alpha / classes``: a share of every label for all classes alike.

    Args:
        labels: Probabilities of classes along the last axis, such as rows of `nn.one_hot`.
        alpha: The share, between 0 and 1.
    Returns: Probabilities of the same shape, for `softmax_cross_entropy`.

    Source:
        Müller and others, When does label smoothing help?, arXiv:1906.02629.
    Example: print(fg.nn.losses.smooth_labels(np.array([0.0, 1.0]), 0.1)) -> [0.05 0.95]
    """
    x, alpha = floating("losses.smooth_labels", labels, alpha)
    if not s.shape_of(x):
        raise located(ShapeError, "losses.smooth_labels: labels need an axis of classes.")
    return (1.0 - alpha) * x + alpha / s.shape_of(x)[-1]


def kl_divergence(
    log_predictions: ArrayLike, targets: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None
) -> Array:
    """Kullback-Leibler divergence of predicted from true probabilities.

    ``sum(targets * (log(targets) - log_predictions))``: how many nats an observation that follows
    the targets tells against the predictions.

    Args: targets: Probabilities that broadcast to the shape of the predictions.

    Returns:
        One loss for every example: the shape of the predictions without ``axis``. A target of 0
        adds 0; where something possible was called impossible it is infinite.
    Raises: ShapeError: If the targets do not broadcast to the predictions.
    Example: print(fg.nn.losses.kl_divergence(np.log([0.5, 0.5]), np.array([0.0, 1.0])).round(4))
        -> 0.6931
    """
    name = "kl_divergence"
    x, y = _pair(name, log_predictions, targets, "targets")
    terms = p.sub.bind(special.xlogy.bind(y, y), _weighted(y, x))
    return _summed(name, terms, axis, where)


def kl_divergence_with_log_targets(
    log_predictions: ArrayLike,
    log_targets: ArrayLike,
    axis: Axis = -1,
    where: ArrayLike | None = None,
) -> Array:
    """`kl_divergence` of logarithms: accurate where the targets are very small.

    Args: log_targets: Logarithms of the true probabilities; they broadcast to the predictions.
    Returns: One loss for every example: the shape of the predictions without ``axis``.
    Raises: ShapeError: If the targets do not broadcast to the predictions.
    Example: fg.nn.losses.kl_divergence_with_log_targets(np.log([0.5, 0.5]), np.log([0.25, 0.75]))
        -> np.float64(0.1308120359411369)
    """
    name = "kl_divergence_with_log_targets"
    x, y = _pair(name, log_predictions, log_targets, "targets")
    weights = p.exp.bind(y)
    terms = p.sub.bind(_weighted(weights, y), _weighted(weights, x))
    return _summed(name, terms, axis, where)


def _summed(name: str, terms: Array, axis: Axis, where: ArrayLike | None) -> Array:
    axes = normalize_axes(axis, len(s.shape_of(terms)), f"losses.{name}")
    return s.ReduceSum(axes).bind(masked(terms, where, 0.0))


__all__ = [
    "absolute_error", "cosine_distance", "cosine_similarity", "hinge_loss", "huber_loss",
    "kl_divergence", "kl_divergence_with_log_targets", "l2_loss", "log_cosh",
    "sigmoid_binary_cross_entropy", "smooth_labels", "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels", "squared_error",
]  # fmt: skip
