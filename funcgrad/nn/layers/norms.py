"""Layers that normalise, with learned scale and bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.errors import ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.lax.collectives import AxisName
from funcgrad.nn import initializers, norms
from funcgrad.nn.initializers import Initializer
from funcgrad.nn.layers.base import Array, Layer, Tree, entries, typed
from funcgrad.nn.norms import Bessel
from funcgrad.numpy.promotion import normalize_axis


def layer_norm(
    *, epsilon: float = 1e-5, scale: bool = True, bias: bool = True, dtype: Any = np.float32
) -> Layer:
    """Every row of mean 0 and variance 1, then scaled and shifted: `nn.layer_norm`.

    Returns: A layer from (..., features) to (..., features), with parameters ``scale`` and ``bias``
        (features,).

    Example:
        >>> layer, x = fg.nn.layers.layer_norm(epsilon=0.0), np.array([[1.0, 3.0]])
        >>> params, state = layer.init(fg.random.key(0), x)
        >>> print(layer.apply(params, state, x)[0])
        [[-1.  1.]]
    """
    name = "layers.layer_norm()"

    def init(key: Array, x: Any) -> tuple[Tree, Tree]:
        return _scale_and_bias(key, _features(name, x, -1), scale, bias, dtype), ()

    def apply(
        params: Tree, state: Tree, x: Array, *, key: Array = None, train: bool = False
    ) -> tuple[Array, Tree]:
        factor, offset = _given(name, params, scale, bias)
        return norms.layer_norm_of(name, x, factor, offset, -1, epsilon), state

    return Layer(init, apply)


def rms_norm(*, epsilon: float = 1e-5, scale: bool = True, dtype: Any = np.float32) -> Layer:
    """Every row of mean square 1, then scaled: `nn.rms_norm`.

    Returns: A layer from (..., features) to (..., features), with the parameter ``scale``
        (features,).

    Example:
        >>> (lambda layer, x: layer.apply(*layer.init(fg.random.key(0), x), x)[0])(
        ...     fg.nn.layers.rms_norm(), np.array([[3.0, 4.0]])
        ... )
        array([[0.8485278, 1.1313704]])
    """
    name = "layers.rms_norm()"

    def init(key: Array, x: Any) -> tuple[Tree, Tree]:
        return _scale_and_bias(key, _features(name, x, -1), scale, False, dtype), ()

    def apply(
        params: Tree, state: Tree, x: Array, *, key: Array = None, train: bool = False
    ) -> tuple[Array, Tree]:
        factor, _ = _given(name, params, scale, False)
        return norms.rms_norm_of(name, x, factor, -1, epsilon), state

    return Layer(init, apply)


def group_norm(
    groups: int,
    *,
    epsilon: float = 1e-5,
    scale: bool = True,
    bias: bool = True,
    dtype: Any = np.float32,
) -> Layer:
    """Every example normalised by groups of its features: `nn.group_norm`.

    Args: groups: Into how many groups the features are divided.
    Returns: A layer from (batch, ..., features) to (batch, ..., features), with parameters
        ``scale`` and ``bias`` (features,).

    Example:
        >>> (lambda layer, x: layer.apply(*layer.init(fg.random.key(0), x), x)[0])(
        ...     fg.nn.layers.group_norm(2), np.array([[1.0, 3.0, 0.0, 8.0]])
        ... )
        array([[-0.999995  ,  0.999995  , -0.99999969,  0.99999969]])
    """
    name = f"layers.group_norm({groups})"

    def init(key: Array, x: Any) -> tuple[Tree, Tree]:
        return _scale_and_bias(key, _features(name, x, -1), scale, bias, dtype), ()

    def apply(
        params: Tree, state: Tree, x: Array, *, key: Array = None, train: bool = False
    ) -> tuple[Array, Tree]:
        factor, offset = _given(name, params, scale, bias)
        return norms.group_norm_of(name, x, groups, factor, offset, epsilon), state

    return Layer(init, apply)


def batch_norm(
    *,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    bessel: Bessel = "running",
    axis: int = -1,
    axis_name: AxisName | None = None,
    scale: bool = True,
    bias: bool = True,
    dtype: Any = np.float32,
) -> Layer:
    """Every feature normalised over the batch: `nn.batch_norm`.

    In training statistics are those of the batch, and the state that is returned has moved towards
    them; otherwise they are those of the state.

    Args:
        bessel: Which variances are divided by ``n - 1`` instead of ``n``: ``"running"`` that of
            the running statistics (as in PyTorch), ``"never"`` none (as in flax), ``"always"``
            also that which normalises.
        axis_name: Name of an axis of a surrounding `vmap`, or of processes, or a tuple of names,
            whose examples are parts of one batch: in training they share its statistics.
    Returns: A layer from (batch, ..., features) to (batch, ..., features), with parameters
        ``scale`` and ``bias``, and a state of ``mean`` and ``variance`` (features,).

    Example:
        >>> layer, x = fg.nn.layers.batch_norm(), np.array([[1.0], [3.0]])
        >>> params, state = layer.init(fg.random.key(0), x)
        >>> y, state = layer.apply(params, state, x, train=True)
        >>> print(y.ravel().round(3), state["mean"], state["variance"])
        [-1.  1.] [0.2] [1.1]
    """
    name = "layers.batch_norm()"
    norms.checked_bessel(name, bessel)

    def init(key: Array, x: Any) -> tuple[Tree, Tree]:
        features = _features(name, x, axis)
        state = {
            "mean": initializers.zeros(key, (features,), dtype),
            "variance": initializers.ones(key, (features,), dtype),
        }
        return _scale_and_bias(key, features, scale, bias, dtype), state

    def apply(
        params: Tree, state: Tree, x: Array, *, key: Array = None, train: bool = False
    ) -> tuple[Array, Tree]:
        factor, offset = _given(name, params, scale, bias)
        mean, variance = entries(name, "state", state, "mean", "variance")
        y, (mean, variance) = norms.batch_norm_of(
            name,
            x,
            (mean, variance),
            factor,
            offset,
            train,
            momentum,
            epsilon,
            bessel,
            axis,
            axis_name,
        )
        return y, {"mean": mean, "variance": variance}

    return Layer(init, apply)


def _given(
    name: str, params: Tree, has_scale: bool, has_bias: bool
) -> tuple[Array | None, Array | None]:
    """Scale and bias, if there are."""
    wanted = {"scale": has_scale, "bias": has_bias}
    found = iter(entries(name, "params", params, *[key for key in wanted if wanted[key]]))
    factor, offset = (next(found) if has else None for has in wanted.values())
    return factor, offset


def _features(name: str, x: Any, axis: int) -> int:
    struct = typed(name, x)
    if not struct.ndim:
        raise located(ShapeError, f"{name} needs an input with an axis of features, got {struct}.")
    return struct.shape[normalize_axis(axis, struct.ndim, name)]


_WHOLE: dict[str, Initializer] = {"scale": initializers.ones, "bias": initializers.zeros}


def _scale_and_bias(
    key: Array, features: int, has_scale: bool, has_bias: bool, dtype: Any
) -> dict[str, Array]:
    wanted = {"scale": has_scale, "bias": has_bias}
    return {name: init(key, (features,), dtype) for name, init in _WHOLE.items() if wanted[name]}
