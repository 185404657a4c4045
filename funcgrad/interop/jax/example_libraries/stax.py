"""The layers of ``jax.example_libraries.stax``: pairs of functions.

``init(key, shape of the input) -> (shape of the output, parameters)`` and ``apply(parameters,
input, rng=key) -> output``. New programs rather use `funcgrad.nn`. Images are ``NHWC``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax, nn, random
from funcgrad.errors import ArgumentError
from funcgrad.nn.initializers import glorot_normal, normal, ones, zeros
from funcgrad.nn.initializers import glorot_normal as glorot
from funcgrad.nn.initializers import normal as randn
from funcgrad.numpy import shaping

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "glorot", "glorot_normal",
    "normal", "ones", "parallel", "randn", "serial", "shape_dependent", "zeros",
]  # fmt: skip

Layer = tuple[Callable[..., Any], Callable[..., Any]]
Initializer = Callable[..., Any]


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """``x @ W + b`` along the last axis."""
    make_w, make_b = W_init or glorot_normal(), b_init or normal(1e-2)

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        k1, k2 = random.split(rng)
        w = make_w(k1, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (w, make_b(k2, (out_dim,)))

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return fnp.dot(inputs, w) + b

    return init, apply


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """A convolution and a bias; see `lax.conv_general_dilated`."""

    def convolve(x: Any, w: Any, steps: Any) -> Any:
        return lax.conv_general_dilated(x, w, steps, padding, dimension_numbers=dimension_numbers)

    shape = lax.conv_general_shape_tuple
    options = (out_chan, filter_shape, strides, padding, W_init, b_init)
    return _convolution(dimension_numbers, convolve, shape, *options)


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """A transposed convolution and a bias, with arguments as `GeneralConv`."""

    def convolve(x: Any, w: Any, steps: Any) -> Any:
        return lax.conv_transpose(x, w, steps, padding, dimension_numbers=dimension_numbers)

    shape = lax.conv_transpose_shape_tuple
    options = (out_chan, filter_shape, strides, padding, W_init, b_init)
    return _convolution(dimension_numbers, convolve, shape, *options)


def _convolution(
    numbers: Any,
    convolve: Callable[..., Any],
    shape_of: Callable[..., Any],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    W_init: Any,
    b_init: Any,
) -> Layer:
    _, kernel, out = numbers
    steps = tuple(strides) if strides else (1,) * len(filter_shape)
    make_w = W_init or glorot_normal(kernel.index("I"), kernel.index("O"))
    make_b = b_init or normal(1e-6)

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        lengths = iter(filter_shape)
        known = {"O": out_chan, "I": input_shape[numbers[0].index("C")]}
        shape = [known[c] if c in known else next(lengths) for c in kernel]
        k1, k2 = random.split(rng)
        bias = make_b(k2, tuple(out_chan if c == "C" else 1 for c in out))
        output_shape = shape_of(input_shape, shape, steps, padding, numbers)
        return output_shape, (make_w(k1, tuple(shape)), bias)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return convolve(inputs, w, steps) + b

    return init, apply


def Conv(*args: Any, **kwargs: Any) -> Layer:
    """`GeneralConv` of images ``NHWC``."""
    return GeneralConv(("NHWC", "HWIO", "NHWC"), *args, **kwargs)


def ConvTranspose(*args: Any, **kwargs: Any) -> Layer:
    """`GeneralConvTranspose` of images ``NHWC``."""
    return GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), *args, **kwargs)


def Conv1DTranspose(*args: Any, **kwargs: Any) -> Layer:
    """`GeneralConvTranspose` of lines ``NHC``."""
    return GeneralConvTranspose(("NHC", "HIO", "NHC"), *args, **kwargs)


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Initializer = zeros,
    gamma_init: Initializer = ones,
) -> Layer:
    """Inputs with mean 0 and variance 1 along ``axis``, then scaled and shifted."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        k1, k2 = random.split(rng)
        beta = beta_init(k1, shape) if center else ()
        return tuple(input_shape), (beta, gamma_init(k2, shape) if scale else ())

    def apply(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        wide = tuple(None if i in axes else slice(None) for i in range(np.ndim(x)))
        z = nn.standardize(x, axes, epsilon=epsilon)
        z = z * gamma[wide] if scale else z
        return z + beta[wide] if center else z

    return init, apply


def _same_shape(rng: Any, input_shape: Sequence[int]) -> Any:
    return tuple(input_shape), ()


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A function as a layer without parameters."""
    return _same_shape, lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh = elementwise(fnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(fnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)
Identity: Layer = (_same_shape, lambda params, inputs, **kwargs: inputs)


def _flat(rng: Any, input_shape: Sequence[int]) -> Any:
    return (input_shape[0], math.prod(input_shape[1:])), ()


Flatten: Layer = (
    _flat,
    lambda params, inputs, **kwargs: shaping.reshape(inputs, (inputs.shape[0], -1)),
)


def _pooling(name: str, combine: Any, start: float, is_mean: bool = False) -> Callable[..., Layer]:
    def pool(
        window_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: str = "VALID",
        spec: str | None = None,
    ) -> Layer:
        letters = spec or "NHWC"[: len(window_shape) + 1] + "C"
        lengths, steps = iter(window_shape), iter(strides or (1,) * len(window_shape))
        window = tuple(1 if c in "NC" else next(lengths) for c in letters)
        strides_of_all = tuple(1 if c in "NC" else next(steps) for c in letters)

        def init(rng: Any, input_shape: Sequence[int]) -> Any:
            pads = lax.padtype_to_pads(input_shape, window, strides_of_all, padding)
            shape = lax.reduce_window_shape_tuple(input_shape, window, strides_of_all, pads)
            return shape, ()

        def folded(x: Any) -> Any:
            return lax.reduce_window(x, start, combine, window, strides_of_all, padding)

        def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
            out = folded(inputs)
            return out / folded(fnp.ones_like(inputs)) if is_mean else out

        return init, apply

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"{name}: windows of images, folded."
    return pool


MaxPool = _pooling("MaxPool", lax.max, -np.inf)
SumPool = _pooling("SumPool", lax.add, 0.0)
AvgPool = _pooling("AvgPool", lax.add, 0.0, True)


def FanOut(num: int) -> Layer:
    """The input ``num`` times."""
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


FanInSum: Layer = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: reduce(operator.add, inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """Inputs one after the other along ``axis``."""

    def init(rng: Any, input_shape: Sequence[Sequence[int]]) -> Any:
        place = axis % len(input_shape[0])
        total = sum(shape[place] for shape in input_shape)
        return (*input_shape[0][:place], total, *input_shape[0][place + 1 :]), ()

    return init, lambda params, inputs, **kwargs: fnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Elements kept with probability ``rate`` and scaled, while training."""

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if mode != "train":
            return inputs
        if rng is None:
            raise ArgumentError("stax.Dropout needs a key: apply(params, inputs, rng=key).")
        is_kept = random.bernoulli(rng, rate, np.shape(inputs))
        return fnp.where(is_kept, inputs / rate, 0)

    return _same_shape, apply


def serial(*layers: Layer) -> Layer:
    """Layers one after the other."""

    def init(rng: Any, input_shape: Any) -> Any:
        params = []
        for make, _ in layers:
            rng, key = random.split(rng)
            input_shape, own = make(key, input_shape)
            params.append(own)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, function), own, key in zip(layers, params, keys, strict=True):
            inputs = function(own, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Layers beside each other: a list of inputs to a list of outputs."""

    def init(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(layers))
        rows = zip(layers, keys, input_shape, strict=True)
        shapes, params = zip(*(make(key, shape) for (make, _), key, shape in rows), strict=True)
        return list(shapes), list(params)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        rows = zip(layers, params, inputs, keys, strict=True)
        return [function(own, x, rng=key, **kwargs) for (_, function), own, x, key in rows]

    return init, apply


def _keys(rng: Any, count: int) -> Sequence[Any]:
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that is made when the shape of its input is known."""

    def init(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(np.shape(inputs))[1](params, inputs, **kwargs)

    return init, apply
