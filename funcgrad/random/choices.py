"""Random choices: permutations, samples with and without replacement, categories."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from funcgrad import lax
from funcgrad.base.dialect import default_dtype
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.lax.operands import Array, ArrayLike, canonical_axis
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.ordering import SearchSorted
from funcgrad.primitives.shape import Transpose, broadcast_to
from funcgrad.random.distributions import gumbel
from funcgrad.random.key_arrays import KeyArray
from funcgrad.random.keys import canonical_shape, parts_of, refuse_sharding
from funcgrad.random.parameters import array_of
from funcgrad.random.uniform import bits, randint, uniform

_INT64 = np.dtype(np.int64)


def permutation(
    key: ArrayLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: None = None,
) -> Array:
    """The numbers below ``x``, or the slices of ``x``, in random order.

    Args:
        x: An int, which stands for ``arange(x)``, or an array.
        axis: The axis along which slices are permuted.
        independent: Whether every line along the axis gets an order of its own.
    Returns: An array like ``x``.
    Example: print(fg.random.permutation(fg.random.key(0), 5)) -> [0 1 4 3 2]
    """
    refuse_sharding("permutation", out_sharding)
    if type(x) is KeyArray:
        return x.each(lambda part: permutation(key, part, axis, independent))
    array = array_of("permutation", x)
    ndim = len(shape_of(array))
    if not ndim:
        canonical_axis("permutation", axis, 1)
        return _shuffle(key, lax.iota(_INT64, _count("permutation", x)), 0)
    place = canonical_axis("permutation", axis, ndim)
    if independent or ndim == 1:
        return _shuffle(key, array, place)
    order = _shuffle(key, lax.iota(_INT64, shape_of(array)[place]), 0)
    return _take(array, order, place)


def _count(name: str, x: ArrayLike) -> int:
    if aval_of(x).dtype.kind not in "iu":
        raise DtypeError(f"random.{name} needs an integer or an array with axes, got {aval_of(x)}.")
    return int(x)


def _shuffle(key: ArrayLike, x: Array, axis: int) -> Array:
    """``x`` sorted by random keys, often enough that ties of keys do not matter."""
    size = math.prod(shape_of(x))
    rounds = math.ceil(3 * math.log(max(1, size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, subkey = parts_of(key)
        _, x = lax.sort_key_val(bits(subkey, shape_of(x), np.uint32), x, axis)
    return x


def _take(x: Array, index: Array, axis: int) -> Array:
    """``x`` at ``index`` along one axis; the axes of ``index`` take its place."""
    ndim, count = len(shape_of(x)), len(shape_of(index))
    out = Gather((axis,)).bind(x, index)
    if not axis:
        return out
    order = (*range(count, count + axis), *range(count), *range(count + axis, ndim - 1 + count))
    return Transpose(order).bind(out)


def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: int | Sequence[int] = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of an array, or numbers below an int.

    Args:
        a: An int, which stands for ``arange(a)``, or an array.
        replace: Whether an element may be chosen again.
        p: Probabilities (they need not sum to 1), one per element; by default equal ones.
        axis: The axis along which slices of ``a`` are chosen.
        mode: As in `gumbel`, for choices without replacement and with ``p``.
    Returns: An array of ``shape``, which replaces the axis of ``a``.
    Raises: ArgumentError: If more elements are wanted than there are.

    Example:
        >>> key = fg.random.key(0)
        >>> print(fg.random.choice(key, 10, (4,), replace=False))
        [0 1 8 5]
    """
    if type(a) is KeyArray:
        return a.each(lambda part: choice(key, part, shape, replace, p, axis, mode))
    array = array_of("choice", a)
    own, lengths = shape_of(array), canonical_shape("choice", shape)
    place = canonical_axis("choice", axis, len(own)) if own else 0
    population = own[place] if own else _count("choice", a)
    draws = math.prod(lengths)
    if not draws:
        return lax.full((*own[:place], *lengths, *own[place + 1 :]), 0, aval_of(array).dtype)
    if population <= 0:
        raise ArgumentError("random.choice: there is nothing to choose from.")
    if not replace and draws > population:
        raise ArgumentError(
            f"random.choice: {draws} elements cannot be chosen from {population} without "
            "replacement. Pass replace=True, or a smaller shape."
        )
    if p is None and not replace:
        shuffled = permutation(key, array if own else population, place)
        chosen = lax.slice_in_dim(shuffled, 0, draws, axis=place)
        return lax.reshape(chosen, (*own[:place], *lengths, *own[place + 1 :]))
    index = _places(key, population, lengths, replace, p, mode)
    return _take(array, index, place) if own else index


def _places(
    key: ArrayLike,
    population: int,
    shape: tuple[int, ...],
    replace: bool,
    p: ArrayLike | None,
    mode: str | None,
) -> Array:
    """Indices of the chosen elements."""
    if p is None:
        return randint(key, shape, 0, population)
    weights = array_of("choice", p)
    if aval_of(weights).dtype.kind in "biu":
        weights = convert(weights, default_dtype(np.dtype(np.float64)))
    if shape_of(weights) != (population,):
        raise ShapeError(
            f"random.choice: p must have one probability for each of {population} elements, got "
            f"{aval_of(weights)}."
        )
    if replace:
        total = lax.cumsum(weights)
        u = uniform(key, shape, aval_of(weights).dtype)
        last = broadcast_to(lax.index_in_dim(total, -1, keepdims=False), shape)
        return SearchSorted().bind(total, lax.mul(last, lax.sub(1.0, u)))
    scores = lax.add(gumbel(key, (population,), aval_of(weights).dtype, mode), lax.log(weights))
    return lax.reshape(lax.top_k(scores, math.prod(shape))[1], shape)


def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: int | Sequence[int] | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Random categories with the probabilities ``softmax(logits)``.

    Args:
        logits: Unnormalised logarithms of the probabilities, floating.
        axis: The axis of the categories.
        shape: Shape of the result: that of the other axes, possibly with axes before them; by
            default one draw for each.
        replace: Whether a category may be drawn again within the axes before.
    Returns: Indices along the axis, int64.

    Example:
        >>> logits = np.log(np.array([0.1, 0.0001, 0.9]))
        >>> drawn = fg.random.categorical(fg.random.key(0), logits, shape=(1000,))
        >>> print(np.bincount(drawn).argmax())
        2
    """
    refuse_sharding("categorical", out_sharding)
    scores = array_of("categorical", logits)
    aval = aval_of(scores)
    if aval.dtype.kind != "f":
        raise DtypeError(f"random.categorical needs floating logits, got {aval}.")
    place = canonical_axis("categorical", axis, aval.ndim)
    batch = tuple(n for i, n in enumerate(aval.shape) if i != place)
    lengths = batch if shape is None else canonical_shape("categorical", shape)
    lead = len(lengths) - len(batch)
    if lead < 0 or lax.broadcast_shapes(lengths, batch) != lengths:
        raise ShapeError(
            f"random.categorical: shape {lengths} must end in the axes {batch} of the logits."
        )
    if replace:
        return _with_replacement(key, scores, place, lengths, lead, mode)
    return _without_replacement(key, scores, place, lengths[:lead], batch, mode)


def _with_replacement(
    key: ArrayLike, logits: Array, axis: int, shape: tuple[int, ...], lead: int, mode: str | None
) -> Array:
    inner = list(shape[lead:])
    inner.insert(axis, shape_of(logits)[axis])
    full = (*shape[:lead], *inner)
    noise = gumbel(key, full, aval_of(logits).dtype, mode)
    return lax.argmax(lax.add(noise, broadcast_to(logits, full)), axis + lead)


def _without_replacement(
    key: ArrayLike,
    logits: Array,
    axis: int,
    prefix: tuple[int, ...],
    batch: tuple[int, ...],
    mode: str | None,
) -> Array:
    draws = math.prod(prefix)
    if draws > shape_of(logits)[axis]:
        raise ArgumentError(
            f"random.categorical: {draws} of {shape_of(logits)[axis]} categories cannot be drawn "
            "without replacement."
        )
    scores = lax.add(gumbel(key, shape_of(logits), aval_of(logits).dtype, mode), logits)
    _, places = lax.top_k(scores, draws, axis)
    order = (axis, *(i for i in range(len(batch) + 1) if i != axis))
    return lax.reshape(lax.transpose(places, order), (*prefix, *batch))
