"""Attention: means of values, weighted by how well their keys match a query."""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.nn.regularization import dropout, drops
from funcgrad.numpy.contracting import einsum
from funcgrad.numpy.promotion import as_value
from funcgrad.numpy.shaping import transpose
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import reshape, shape_of
from funcgrad.scipy.exponentials import floating, log_sum, normalized

Array = Any
ArrayLike = Any


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla"] | None = None,
    return_residual: bool = False,
    dropout_rate: ArrayLike = 0.0,
    dropout_key: ArrayLike | None = None,
) -> Any:
    """``softmax(scale * query @ key.T + bias) @ value`` for every head, with JAX's signature.

    Two arguments more, at the end, drop weights in training.

    In shapes, B is the batch, T and S the lengths of queries and of keys, N and K their numbers of
    heads, H the length of a head. There may be fewer heads of keys than of queries: ``N / K``
    neighbouring heads of queries share one (grouped and multi-query attention).

    Args:
        query: Array (B, T, N, H), or (T, N, H).
        key: Array (B, S, K, H), or (S, K, H).
        value: Array of the shape of ``key``.
        bias: Added to the scaled products; it broadcasts to (B, N, T, S), or (N, T, S).
        mask: Bools that broadcast likewise: which keys a query may see.
        scale: Factor of the products, by default ``1 / sqrt(H)``.
        is_causal: Whether a query sees no keys after its own place.
        query_seq_lengths: Integers (B,): results of queries from this place on are 0.
        key_value_seq_lengths: Integers (B,): keys from this place on are not seen.
        local_window_size: How many places a query sees to the left and to the right of its own;
            one number for both.
        implementation: Accepted for JAX's signature: there is one.
        return_residual: Whether the logarithms of the sums of exponentials are returned too.
        dropout_rate: Probability with which a weight, of one query for one key in one head, is
            dropped; the others are divided by its complement, so that a query's sum to 1 only in
            the mean. The key is needed, and without one nothing may be dropped.
        dropout_key: A random key; the same key drops the same weights.
    Returns: An array of the shape of ``query``; with ``return_residual`` a pair with one of shape
        (B, T, N). A query that may see no key at all gets 0, where JAX gives it the mean of all
        values.

    Raises:
        ArgumentError: If the implementation is another one, or weights are dropped without a key.
        DtypeError: If the mask is not one of bools.
        ShapeError: If shapes do not match.

    Source:
        Vaswani and others, arXiv:1706.03762; Ainslie and others, arXiv:2305.13245.

    Example:
        >>> x = np.arange(3.0).reshape(3, 1, 1)
        >>> print(fg.nn.dot_product_attention(x, np.zeros((3, 1, 1)), x, is_causal=True).ravel())
        [0.  0.5 1. ]
    """
    name = "nn.dot_product_attention"
    if implementation not in (None, "xla"):
        raise located(
            ArgumentError, f"{name}: implementation must be None or 'xla', got {implementation!r}."
        )
    operands = [query, key, value, *([] if bias is None else [bias])]
    q, k, v, *added = floating(name, *operands)
    is_single = len(shape_of(q)) == 3
    if is_single:
        q, k, v = (reshape(x, (1, *shape_of(x))) if len(shape_of(x)) == 3 else x for x in (q, k, v))
    _check_operands(name, q, k, v)
    (b, t, n, h), (_, s, heads, _) = shape_of(q), shape_of(k)
    scores = (b, n, t, s)
    # Heads of queries that share one of keys: "ngts", so that (n g) is an axis of its own.
    grouped = reshape(q, (b, t, heads, n // heads, h)) if heads != n else q
    labels = ("btngh", "ngts") if heads != n else ("btnh", "nts")
    logits = reshape(einsum(f"{labels[0]},bsnh->b{labels[1]}", grouped, k), scores)
    factor = 1 / math.sqrt(h) if scale is None else p.convert(as_value(scale), aval_of(q).dtype)
    logits = logits * factor
    if added:
        logits = logits + _broadcast(name, "bias", added[0], scores)
    seen = _seen(
        name, scores, mask, is_causal, (query_seq_lengths, key_value_seq_lengths), local_window_size
    )
    weights = normalized(name, logits, -1, seen)
    if drops(name, dropout_rate, dropout_key, "dropout_key=key"):
        weights = dropout(dropout_key, weights, dropout_rate)
    split = reshape(weights, (b, heads, n // heads, t, s)) if heads != n else weights
    out = reshape(einsum(f"b{labels[1]},bsnh->{labels[0]}", split, v), (b, t, n, shape_of(v)[-1]))
    out = reshape(out, shape_of(out)[1:]) if is_single else out
    if not return_residual:
        return out
    total = transpose(log_sum(name, logits, -1, None, False, False, seen), (0, 2, 1))
    return out, reshape(total, shape_of(total)[1:]) if is_single else total


def _check_operands(name: str, q: Array, k: Array, v: Array) -> None:
    shapes = [shape_of(x) for x in (q, k, v)]
    fits = all(len(shape) == 4 for shape in shapes) and shapes[1] == shapes[2]
    if fits:
        (b, _, n, h), (other_b, _, heads, other_h), _ = shapes
        fits = b == other_b and h == other_h and heads > 0 and n % heads == 0
    if not fits:
        raise located(
            ShapeError,
            f"{name}: query must have axes (batch, length, heads, features), key and value one "
            "shape with the same batch and features and a number of heads that divides that "
            f"of the query, got {aval_of(q)}, {aval_of(k)} and {aval_of(v)}.",
        )


def _broadcast(name: str, what: str, x: Array, scores: tuple[int, ...]) -> Array:
    """A bias or a mask with the axes of the scores; lengths of 1 stay."""
    shape = shape_of(x)
    lifted = (*(1,) * (4 - len(shape)), *shape)
    if len(lifted) != 4 or any(m not in (1, n) for m, n in zip(lifted, scores, strict=True)):
        raise located(
            ShapeError,
            f"{name}: the {what} must broadcast to the scores (batch, heads, queries, keys) "
            f"of shape {scores}, got {aval_of(x)}.",
        )
    return reshape(x, lifted)


def _seen(
    name: str,
    scores: tuple[int, ...],
    mask: ArrayLike | None,
    is_causal: bool,
    lengths: tuple[ArrayLike | None, ArrayLike | None],
    window: int | tuple[int, int] | None,
) -> Array | None:
    """Mask of the keys that a query attends to, or `None` for all."""
    t, s = scores[2:]
    rows, columns = np.arange(t)[:, None], np.arange(s)[None, :]
    parts: list[Array] = []
    if mask is not None:
        given = as_value(mask, name)
        if aval_of(given).dtype.kind != "b":
            raise located(
                DtypeError,
                f"{name}: the mask must be bools, True where a key is seen, got "
                f"{aval_of(given)}. Numbers that are added to the scores are a bias.",
            )
        parts.append(_broadcast(name, "mask", given, scores))
    places = np.ones((t, s), bool)
    if is_causal:
        places = places & (columns <= rows)
    if window is not None:
        left, right = (window, window) if isinstance(window, int | np.integer) else window
        places = places & (columns >= rows - left) & (columns <= rows + right)
    if is_causal or window is not None:
        parts.append(places[None, None])
    ends = zip(
        ("query_seq_lengths", "key_value_seq_lengths"), lengths, (rows, columns), strict=True
    )
    for what, number, index in ends:
        if number is not None:
            column = reshape(as_value(number, name), (-1, 1, 1, 1))
            limits = p.convert(_broadcast(name, what, column, scores), index.dtype)
            parts.append(p.less.bind(index[None, None], limits))
    return functools.reduce(p.bitwise_and.bind, parts) if parts else None


__all__ = ["dot_product_attention"]
