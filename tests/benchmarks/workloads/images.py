"""Convolutions and windows: by products of copied windows, and by `lax` where it has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, GRADIENT, Problem, workload

CONVOLUTION = "lax.conv_general_dilated"
WINDOW = "lax.reduce_window"
FIRST, LAST = "first", "last"
LAYOUTS = {FIRST: ("NCHW", "OIHW", "NCHW"), LAST: ("NHWC", "HWIO", "NHWC")}
WINDOWS = {FIRST: (1, 1, 2, 2), LAST: (1, 2, 2, 1)}


def images(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Random images, and kernels that keep their magnitude."""
    rng = np.random.default_rng(0)
    return tuple(
        rng.normal(size=s) / (np.sqrt(np.prod(s[1:])) if i else 1) for i, s in enumerate(shapes)
    )


def np_convolve(x: Any, w: Any, padding: int = 0) -> Any:
    """NumPy's sliding windows times the kernel; NCHW, OIHW."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.tensordot(windows, w, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def convolve(xp: Any, x: Any, w: Any, padding: int = 0, channels: str = FIRST) -> Any:
    """The convolution of `lax`."""
    pads = [(padding, padding)] * 2
    return xp.lax.conv_general_dilated(x, w, (1, 1), pads, dimension_numbers=LAYOUTS[channels])


@workload(small=(2, 3, 6, 4, 3), normal=(16, 16, 32, 32, 3), large=(64, 32, 64, 64, 3), rows=BOTH)
def im2col(count: int, inputs: int, pixels: int, outputs: int, k: int) -> Problem:
    """Convolution by copied windows: {count} x {inputs} x {pixels}^2, {outputs} kernels {k}^2."""
    n = pixels - k + 1

    def program(xp: Any) -> Callable[..., Any]:
        def run(x: Any, w: Any) -> Any:
            windows = [x[:, :, i : i + n, j : j + n] for i in range(k) for j in range(k)]
            columns = xp.numpy.stack(windows, axis=2).reshape(count, inputs * k * k, n * n)
            return (w.reshape(outputs, inputs * k * k) @ columns).reshape(count, outputs, n, n)

        return run

    return Problem(
        images((count, inputs, pixels, pixels), (outputs, inputs, k, k)),
        program,
        np_convolve,
        argnums=(0, 1),
        torch=lambda torch: lambda x, w: torch.nn.functional.conv2d(x, w),
        tolerance=10.0,
    )


@workload(
    small=(2, 3, 6, 4, 3),
    normal=(16, 16, 32, 32, 3),
    large=(64, 32, 64, 64, 3),
    rows=BOTH,
    needs=(CONVOLUTION,),
)
def convolution(count: int, inputs: int, pixels: int, outputs: int, k: int) -> Problem:
    """Convolution: {count} x {inputs} x {pixels}^2, {outputs} kernels {k}^2, same size."""

    def torch_program(torch: Any) -> Callable[..., Any]:
        return lambda x, w: torch.nn.functional.conv2d(x, w, padding=k // 2)

    return Problem(
        images((count, inputs, pixels, pixels), (outputs, inputs, k, k)),
        lambda xp: lambda x, w: convolve(xp, x, w, k // 2),
        lambda x, w: np_convolve(x, w, k // 2),
        argnums=(0, 1),
        torch=torch_program,
        tolerance=10.0,
    )


@workload(small=(2, 3, 8), normal=(32, 32, 64), large=(128, 64, 64), rows=BOTH, needs=(WINDOW,))
def max_pooling(count: int, channels: int, pixels: int) -> Problem:
    """Largest of windows 2 x 2: {count} images of {channels} x {pixels}^2."""
    return Problem(
        images((count, channels, pixels, pixels)),
        lambda xp: lambda x: max_pool(xp, x),
        np_max_pool,
        complex_step=True,  # a real one would change which element is the largest
        torch=lambda torch: lambda x: torch.nn.functional.max_pool2d(x, 2),
    )


def max_pool(xp: Any, x: Any, channels: str = FIRST) -> Any:
    window = WINDOWS[channels]
    return xp.lax.reduce_window(x, -xp.numpy.inf, xp.lax.max, window, window, "VALID")


def np_max_pool(x: Any) -> Any:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


@workload(
    small=(2, FIRST),
    normal=(64, FIRST),
    large=(512, FIRST),
    rows=GRADIENT,
    needs=(CONVOLUTION, WINDOW),
)
@workload(
    small=(2, LAST),
    normal=(64, LAST),
    large=(512, LAST),
    rows=GRADIENT,
    name="lenet-channels-last",
    needs=(CONVOLUTION, WINDOW),
)
def lenet(count: int, channels: str) -> Problem:
    """LeNet-5 with ReLU: {count} images of 28^2, channels {channels}, cross-entropy."""
    is_first = channels == FIRST
    rng = np.random.default_rng(0)
    shapes = {
        "conv1": (6, 1, 5, 5),
        "conv2": (16, 6, 5, 5),
        "w1": (400, 120),
        "w2": (120, 84),
        "w3": (84, 10),
    }
    parameters = {
        name: rng.normal(size=shape)
        * np.sqrt(2.0 / (np.prod(shape[1:]) if len(shape) > 2 else shape[0]))
        for name, shape in shapes.items()
    }
    biases = {"conv1": (6, 1, 1), "conv2": (16, 1, 1), "w1": (120,), "w2": (84,), "w3": (10,)}
    parameters |= {f"{name}_bias": 0.1 * rng.normal(size=s) for name, s in biases.items()}
    x = rng.uniform(size=(count, 1, 28, 28))
    labels = rng.integers(0, 10, count).astype(np.int32)
    if not is_first:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        for name in ("conv1", "conv2"):
            parameters[name] = np.ascontiguousarray(parameters[name].transpose(2, 3, 1, 0))
            parameters[f"{name}_bias"] = parameters[f"{name}_bias"].ravel()

    def network(conv: Any, relu: Any, pool: Any) -> Callable[..., Any]:
        def run(p: Any, x: Any) -> Any:
            x = pool(relu(conv(x, p["conv1"], 2) + p["conv1_bias"]))
            x = pool(relu(conv(x, p["conv2"], 0) + p["conv2_bias"]))
            x = x.reshape(count, 400)
            x = relu(x @ p["w1"] + p["w1_bias"])
            x = relu(x @ p["w2"] + p["w2_bias"])
            return x @ p["w3"] + p["w3_bias"]

        return run

    def program(xp: Any) -> Callable[..., Any]:
        forward = network(
            lambda x, w, pad: convolve(xp, x, w, pad, channels),
            xp.nn.relu,
            lambda x: max_pool(xp, x, channels),
        )

        def loss(p: Any, x: Any, labels: Any) -> Any:
            logs = xp.nn.log_softmax(forward(p, x))
            return -xp.numpy.mean(xp.numpy.sum(xp.nn.one_hot(labels, 10, dtype=x.dtype) * logs, -1))

        return loss

    def moved(f: Callable[..., Any], permute: Callable[..., Any]) -> Callable[..., Any]:
        """A function of images with channels first, of images as they are."""
        if is_first:
            return f

        def run(x: Any, *rest: Any) -> Any:
            rest = tuple(permute(w, (3, 2, 0, 1)) if i == 0 else w for i, w in enumerate(rest))
            return permute(f(permute(x, (0, 3, 1, 2)), *rest), (0, 2, 3, 1))

        return run

    def reference(p: Any, x: Any, labels: Any) -> Any:
        conv, pool = (moved(f, np.transpose) for f in (np_convolve, np_max_pool))
        logits = network(conv, lambda x: np.maximum(x, 0), pool)(p, x)
        logits = logits - logits.max(axis=1, keepdims=True)
        logs = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
        return -np.mean(logs[np.arange(count), labels])

    def torch_program(torch: Any) -> Callable[..., Any]:
        """Permuted tensors are PyTorch's images with channels last in memory."""
        functional = torch.nn.functional
        forward = network(
            moved(lambda x, w, pad: functional.conv2d(x, w, padding=pad), torch.permute),
            torch.relu,
            moved(lambda x: functional.max_pool2d(x, 2), torch.permute),
        )
        return lambda p, x, labels: functional.cross_entropy(forward(p, x), labels)

    return Problem(
        (parameters, x, labels),
        program,
        reference,
        torch=torch_program,
        tolerance=10.0,
    )
