"""Exchange with neighbours inside of computations: edges of parts, and stages of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import index
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.base.pytree import tree_leaves, tree_map
from funcgrad.distributed.flat_shards import AxisOfShards
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.staging import located

MODES = ("constant", "edge", "wrap")


def halo(
    x: Any,
    width: int | Sequence[int] = 1,
    axis: int | Sequence[int] = 0,
    axis_name: Hashable | Sequence[Hashable] = None,
    *,
    mode: str = "constant",
) -> Any:
    """A part of an array with the neighbouring elements of the parts beside it.

    The array is divided along some of its axes, each along an axis of processes. A stencil of a
    part with its halo gives what the stencil of the whole array gives for the part. It takes two
    messages for each axis, also for corners; derivatives send cotangents back.

    Args:
        x: The part of this process; at least ``width`` elements long.
        width: The number of elements at each end, or one for each axis.
        axis: The axis that is divided, or a sequence of axes.
        axis_name: The axis of processes along which it is, or a sequence; by default the innermost
            one around the call.
        mode: The elements beyond the ends of the whole array, as of `numpy.pad`: "constant" for
            zeros, "edge" for the last element, "wrap" for those of the other end.
    Returns: An array that is longer by ``2 * width`` along each of the axes.

    Raises:
        ArgumentError: If the mode is another one, a width is negative, or there are not as many
            names as axes.
        ShapeError: If the part is shorter than the halo.

    Example:
        >>> def second_difference(x):
        ...     wide = fg.distributed.halo(x, axis_name="i")
        ...     return wide[2:] - 2 * wide[1:-1] + wide[:-2]
        >>> fg.vmap(second_difference, axis_name="i")(np.array([[0.0, 1.0], [4.0, 9.0]]))
        array([[  1.,   2.],
               [  2., -14.]])
    """
    if mode not in MODES:
        raise located(ArgumentError, f"halo: mode must be one of {MODES}, got {mode!r}.")
    axes = [axis] if isinstance(axis, int) else list(axis)
    names = list(axis_name) if isinstance(axis_name, list | tuple) else [axis_name] * len(axes)
    widths = [width] * len(axes) if isinstance(width, int) else list(width)
    if not len(axes) == len(names) == len(widths) or len(set(names)) < len(names):
        raise located(
            ArgumentError,
            f"halo: {len(axes)} axes need as many names and widths, got {names}, {widths}.",
        )
    if min(widths, default=0) < 0:
        raise located(ArgumentError, f"halo: widths must not be negative, got {widths}.")
    for k, name, n in zip(axes, names, widths, strict=True):
        x = _with_halo(x, k % x.ndim, name, index(n), mode)
    return x


def _with_halo(x: Any, k: int, name: Hashable, width: int, mode: str) -> Any:
    axis = AxisOfShards(name, 0, "halo")
    if x.shape[k] < width:
        raise located(
            ShapeError, f"halo: axis {k} of a part of shape {x.shape} is shorter than {width}."
        )

    def rows(start: int, stop: int) -> Any:
        return lax.slice_in_dim(x, start, stop, axis=k)

    n, length = axis.size, x.shape[k]
    ring = range(n) if mode == "wrap" else range(n - 1)
    low = lax.ppermute(rows(length - width, length), axis.name, [(i, (i + 1) % n) for i in ring])
    high = lax.ppermute(rows(0, width), axis.name, [((i + 1) % n, i) for i in ring])
    if mode == "edge":
        place = lax.axis_index(axis.name)
        low = fnp.where(place == 0, fnp.repeat(rows(0, 1), width, k), low)
        high = fnp.where(place == n - 1, fnp.repeat(rows(length - 1, length), width, k), high)
    return fnp.concatenate([low, x, high], axis=k)


def pipeline(
    stage: Callable[[Any, Any], Any], params: Any, batches: Any, axis_name: Hashable = None
) -> Any:
    """Apply a stage for each process, one after the other, while the next batches follow.

    Each process has the parameters of its stage. While it computes a batch, the one before it
    computes the next one: of ``m`` batches and ``n`` processes, each waits for ``n - 1`` of
    ``m + n - 1`` steps at the beginning and at the end (GPipe: Y. Huang and others, 2019). The
    backward pass runs in the other direction. In `checkpoint`, a stage keeps its inputs alone.

    Args:
        stage: A pure function of parameters and a batch, whose result is like the batch. It has no
            collectives along this axis.
        params: The parameters of the stage of this process.
        batches: A pytree of arrays, of which the first axis counts the batches. Those of the first
            process count.
        axis_name: The axis of processes; by default the innermost one around the call.

    Returns:
        A pytree like ``batches``: in the last process the results of the last stage, and zeros in
        the others.
    Raises: ShapeError: If the result of a stage is not like its argument.

    Example:
        >>> def run(w):
        ...     return fg.distributed.pipeline(lambda w, x: w * x, w, np.arange(3.0), "stage")
        >>> fg.vmap(run, axis_name="stage")(np.array([2.0, 5.0]))
        array([[ 0.,  0.,  0.],
               [ 0., 10., 20.]])
    """
    axis = AxisOfShards(axis_name, 0, "pipeline")
    place, n = lax.axis_index(axis.name), axis.size
    count = tree_leaves(batches)[0].shape[0]
    onward = [(i, i + 1) for i in range(n - 1)]

    def skip(params: Any, x: Any) -> Any:
        return tree_map(fnp.zeros_like, x)

    def run(params: Any, x: Any) -> Any:
        y = stage(params, x)
        for a, b in zip(tree_leaves(x), tree_leaves(y), strict=True):
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                raise located(
                    ShapeError,
                    f"pipeline: a stage makes {b.dtype}{list(b.shape)} of "
                    f"{a.dtype}{list(a.shape)}.",
                    "What a stage gives is what the next one takes.",
                )
        return y

    def step(arrived: Any, t: Any) -> tuple[Any, Any]:
        first = tree_map(lambda x: lax.dynamic_index_in_dim(x, t, 0, keepdims=False), batches)
        x = tree_map(lambda a, b: fnp.where(place == 0, a, b), first, arrived)
        is_own = (t >= place) & (t - place < count)
        y = lax.cond(is_own, run, skip, params, x)
        return lax.ppermute(y, axis.name, onward), y

    start = tree_map(lambda x: fnp.zeros_like(x[0]), batches)
    _, results = lax.scan(step, start, np.arange(count + n - 1, dtype=np.int32))
    is_last = place == n - 1
    return tree_map(lambda y: fnp.where(is_last, y[n - 1 :], y.dtype.type(0)), results)
