"""Optimisers whose states are divided among processes.

What data-parallel processes hold in common need not stand on each of them: the states of the
optimiser, the sums of gradients, and the parameters themselves can be divided, which S. Rajbhandari
and others call the three stages of ZeRO (2020). One wrapper does the first two, and all three for
parameters that are divided.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import ceil
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.base.pytree import tree_flatten, tree_map, tree_unflatten
from funcgrad.distributed.flat_shards import (
    LEAST,
    AxisOfShards,
    FlatShard,
    flatten_shards,
    is_shard,
    map_shards,
    on_shards,
    unshard,
)
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.staging import located
from funcgrad.ops import segment_sum
from funcgrad.optim.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    with_extra_args_support,
    zeros_like,
)

REDUCTIONS = ("mean", "sum", None)


def sharded(
    optimizer: GradientTransformation,
    axis_name: Hashable = None,
    *,
    reduce: str | None = "mean",
    message_dtype: str | None = None,
    least: int = LEAST,
) -> GradientTransformationExtraArgs:
    """An optimiser that keeps in each process a part of its state.

    Each process gives the gradients of its own examples. They are summed so that it gets its own
    part of each sum (a reduce-scatter), updates that part, and gathers the updates of the others.
    The results are those of the optimiser with the mean of all gradients. If parameters and
    gradients are shards, as of `flat_shard`, so are the updates, and nothing is gathered.

    Args:
        optimizer: Any optimiser, of `funcgrad.optim` or of optax. It sees whole arrays: norms are
            those of all elements. Operations that need all elements of an array otherwise, such as
            means over one of several axes, gather it for the time of the operation.
        axis_name: As of `flat_shard`.
        reduce: What the processes do with their gradients: "mean" or "sum"; `None` if they are
            equal in all processes, or parts of gradients that are.
        message_dtype: "bfloat16" sends gradients in single precision with half of their bits, and
            adds what arrives in single precision; by default they are sent as they are.
        least: Arrays of fewer elements stay whole.
    Returns: A transformation whose state has a `FlatShard` for each array that is large enough.
    Raises: ArgumentError: If ``reduce`` or ``message_dtype`` is something else.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> params = {"w": np.ones((64, 64))}
        >>> with fg.distributed.spmd(axis_name="data"):
        ...     optimizer = fg.distributed.sharded(fg.optim.adam(0.1))
        ...     state = optimizer.init(params)
        ...     updates, state = optimizer.update({"w": np.ones((64, 64))}, state, params)
        ...     updates["w"].shape, state[0].mu["w"].part.shape
        ((64, 64), (4096,))
    """
    if reduce not in REDUCTIONS:
        raise located(
            ArgumentError, f"sharded: reduce must be one of {REDUCTIONS}, got {reduce!r}."
        )
    if message_dtype not in (None, "bfloat16"):
        raise located(
            ArgumentError,
            f"sharded: message_dtype must be None or 'bfloat16', got {message_dtype!r}.",
        )
    inner = with_extra_args_support(optimizer)

    def axis_of(what: str) -> AxisOfShards:
        return AxisOfShards(axis_name, least, what)

    def init(params: Any) -> Any:
        axis = axis_of("sharded.init")
        return on_shards(inner.init, axis, "sharded.init")(_of_all(params, axis))

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
        axis = axis_of("sharded.update")

        def step(updates: Any, state: Any, params: Any) -> tuple[Any, Any]:
            return inner.update(updates, state, params, **extra_args)

        given = flatten_shards(updates)[0]
        reduced = map_shards(lambda g: _reduced(g, axis, reduce, message_dtype), updates)
        own = None if params is None else _of_all(params, axis)
        new, state = on_shards(step, axis, "sharded.update")(reduced, state, own)
        found, treedef = flatten_shards(new)
        pairs = zip(given, found, strict=True)
        new = [x if is_shard(g) else unshard(x, axis.name) for g, x in pairs]
        return tree_unflatten(treedef, new), state

    return GradientTransformationExtraArgs(init, update)


def _of_all(tree: Any, axis: AxisOfShards) -> Any:
    """The shards of arrays that all processes have."""
    return map_shards(lambda x: x if is_shard(x) else axis.shard(x), tree)


def _reduced(
    gradient: Any, axis: AxisOfShards, reduce: str | None, message_dtype: str | None
) -> Any:
    """This rank's shard of the gradient that is reduced over all processes."""
    # Divided at last, where it is a part, and the optimiser reads it next.
    share = axis.size if reduce == "mean" else None
    if is_shard(gradient):
        return FlatShard(_divided(gradient.part, share), gradient.shape)
    if reduce is None:
        return axis.shard(gradient)
    if not axis.divides(gradient.shape):
        return _divided(lax.psum(gradient, axis.name), share)
    is_short = message_dtype is not None and gradient.dtype == np.float32
    total = _part_of_short_sum(gradient, axis) if is_short else axis.part_of_sum(gradient)
    return FlatShard(_divided(total, share), gradient.shape)


def _divided(x: Any, n: int | None) -> Any:
    return x if n is None else x / n


def _part_of_short_sum(x: Any, axis: AxisOfShards) -> Any:
    """The own part of the sum of arrays that are sent as bfloat16, the first half of a float32."""
    bits = lax.bitcast_convert_type(axis.padded(x).reshape(axis.size, -1), np.uint32)
    half = np.uint32(16)
    # To the nearest, and to even ones in the middle. What is added to NaN could make it infinite.
    odd = (bits >> half) & np.uint32(1)
    rounded = fnp.where(_is_nan(bits), bits, bits + (odd + np.uint32(0x7FFF)))
    sent = (rounded >> half).astype(np.uint16)
    arrived = lax.all_to_all(sent, axis.name, 0, 0, tiled=True).astype(np.uint32) << half
    return fnp.sum(lax.bitcast_convert_type(arrived, np.float32), axis=0)


def _is_nan(bits: Any) -> Any:
    """Whether the bits of a float32 are those of NaN."""
    return (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)


class TopKState(NamedTuple):
    """Parts of gradients that have not been sent yet.

    Attributes:
        errors: A `FlatShard` for each array: of an array with one more axis, of the processes.
    """

    errors: Any


def top_k_mean(fraction: float, axis_name: Hashable = None) -> GradientTransformation:
    """Mean over processes of the few elements of gradients that are largest in each.

    What a process does not send is added to its next gradient (error feedback), so nothing is lost:
    S. U. Stich, J.-B. Cordonnier and M. Jaggi, *Sparsified SGD with memory* (2018). It stands in
    front of optimisers: ``optim.chain(top_k_mean(0.01), optim.sgd(0.1))``.

    Args:
        fraction: The part of the elements of an array that a process sends, above 0 and at most 1;
            at least one element.
        axis_name: As of `flat_shard`.

    Returns:
        A transformation of gradients of own examples into means that are equal in all processes.
    Raises: ArgumentError: If the fraction is out of range.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> with fg.distributed.spmd(axis_name="data"):
        ...     tx = fg.distributed.top_k_mean(0.5)
        ...     state = tx.init(np.zeros(2))
        ...     first, state = tx.update(np.array([1.0, 3.0]), state)
        ...     second, state = tx.update(np.array([1.0, 1.0]), state)
        ...     first, second
        (array([0., 3.]), array([2., 0.]))
    """
    if not 0 < fraction <= 1:
        raise located(
            ArgumentError, f"top_k_mean: fraction must be above 0 and at most 1, got {fraction}."
        )

    def init(params: Any) -> TopKState:
        axis = AxisOfShards(axis_name, 0, "top_k_mean.init")
        return TopKState(
            tree_map(lambda p: FlatShard(zeros_like(p).reshape(-1), (axis.size, *p.shape)), params)
        )

    def update(updates: Any, state: TopKState, params: Any = None) -> tuple[Any, TopKState]:
        axis = AxisOfShards(axis_name, 0, "top_k_mean.update")
        leaves, treedef = tree_flatten(updates)
        errors = flatten_shards(state.errors)[0]
        pairs = [_sent(g, e, fraction, axis) for g, e in zip(leaves, errors, strict=True)]
        means, errors = [m for m, _ in pairs], [e for _, e in pairs]
        return tree_unflatten(treedef, means), TopKState(tree_unflatten(treedef, errors))

    return GradientTransformation(init, update)


def _sent(
    gradient: Any, error: FlatShard, fraction: float, axis: AxisOfShards
) -> tuple[Any, FlatShard]:
    """The mean of what all processes send of a gradient, and what this one keeps."""
    flat = gradient.reshape(-1) + error.part
    n = flat.shape[0]
    _, places = lax.top_k(fnp.abs(flat), max(1, ceil(fraction * n)))
    all_places = lax.all_gather(places, axis.name, tiled=True)
    own = flat[places]
    sent = segment_sum(own, places, n)
    values = lax.all_gather(own, axis.name, tiled=True)
    mean = segment_sum(values / axis.size, all_places, n)
    return mean.reshape(gradient.shape), FlatShard(flat - sent, error.shape)
