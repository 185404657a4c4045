"""Sums of exponentials that neither overflow nor vanish: logsumexp, softmax and its logarithm.

All subtract the maximum, which has no influence on the result and hence no derivative, and are
made of few primitives, so that a compiler can keep a row in registers. Signatures are those of
`scipy.special`; `funcgrad.nn` has JAX's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import is_complex
from funcgrad.numpy.elementwise import truth
from funcgrad.numpy.promotion import as_value, normalize_axes, promote_inexact
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.reductions import ReduceMax
from funcgrad.primitives.shape import ReduceSum, broadcast_to, drop_axes, reshape, shape_of

Axis = int | tuple[int, ...] | None


def floating(name: str, *args: Any) -> list[Any]:
    """The arguments as values of one floating or complex dtype, none of them weak."""
    return promote_inexact(*[as_value(a, name) for a in args])


def kept(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """A fold of an array of ``shape``, with the folded axes put back as length 1."""
    return reshape(x, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def fold_max(x: Any, axes: tuple[int, ...]) -> Any:
    """Maximum over ``axes``, which are kept, without derivative."""
    return p.stop_gradient.bind(kept(ReduceMax(axes).bind(x), shape_of(x), axes))


def fold_sum(x: Any, axes: tuple[int, ...]) -> Any:
    """Sum over ``axes``, which are kept."""
    return kept(ReduceSum(axes).bind(x), shape_of(x), axes)


def finite_or_zero(x: Any) -> Any:
    """``x`` with 0 where it is infinite or nan."""
    return p.select.bind(p.isfinite.bind(x), x, p.zero_of(x))


def masked(x: Any, where: Any, fill: float) -> Any:
    """``x``, with ``fill`` where ``where`` does not hold; all of it if ``where`` is ``None``."""
    if where is None:
        return x
    return p.select.bind(truth(as_value(where)), x, aval_of(x).dtype.type(fill))


def logsumexp(
    a: Any,
    axis: Axis = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """Logarithm of the sum of exponentials, ``log(sum(b * exp(a)))``.

    Args:
        a: Array of real or complex numbers.
        axis: The axis or axes that are summed over, by default all.
        b: Factors that broadcast with ``a``, of any sign.
        return_sign: Whether the sum may be negative, and its sign is returned too.
        where: Bool array that broadcasts with ``a``: which elements are summed, by default all.

    Returns:
        The logarithm; with ``return_sign`` that of the absolute value, and the sign (for complex
        sums the phase factor). A negative real sum without ``return_sign`` gives nan, an empty
        one ``-inf``.
    Example: print(fg.scipy.special.logsumexp(np.array([1000.0, 1000.0])) - np.log(2.0)) -> 1000.0
    """
    return log_sum("logsumexp", a, axis, b, keepdims, return_sign, where)


def log_sum(
    name: str, a: Any, axis: Axis, b: Any, keepdims: bool, return_sign: bool, where: Any
) -> Any:
    """`logsumexp` over the elements where ``where`` holds."""
    x, factors = (*floating(name, a), None) if b is None else floating(name, a, b)
    x = masked(x, where, -np.inf)
    if factors is not None or where is not None:
        operands = [v for v in (x, factors, where) if v is not None]
        x = broadcast_to(x, np.broadcast_shapes(*map(shape_of, operands)))
    axes = normalize_axes(axis, len(shape_of(x)), name)
    shift = _shift(x, factors, axes)
    e = _exponentials(p.sub.bind(x, shift), factors)
    if not keepdims:
        shift = reshape(shift, drop_axes(shape_of(x), axes))
    total = fold_sum(e, axes) if keepdims else ReduceSum(axes).bind(e)
    # The logarithm of an empty or vanishing sum is -inf, and no accident.
    with np.errstate(divide="ignore", invalid="ignore"):
        if factors is None and not is_complex(aval_of(total).dtype):
            return _logarithm_or_constant(total, shift, return_sign)
        return _logarithm(total, shift, return_sign)


def _shift(x: Any, factors: Any, axes: tuple[int, ...]) -> Any:
    """The largest exponent that has a factor, or 0 where that is not finite."""
    exponent = p.real.bind(x) if is_complex(aval_of(x).dtype) else x
    if factors is not None:
        exponent = masked(exponent, factors, -np.inf)
    if 0 in (shape_of(x)[i] for i in axes):
        shape = tuple(1 if i in axes else n for i, n in enumerate(shape_of(x)))
        return np.zeros(shape, aval_of(x).dtype)
    return p.convert(finite_or_zero(fold_max(exponent, axes)), aval_of(x).dtype)


def _exponentials(d: Any, factors: Any) -> Any:
    if factors is None:
        return p.exp.bind(d)
    # Where the factor is 0 the exponent may be anything. It must stay finite there, but not be
    # cut off: the derivative in the factor is its exponential.
    dtype = aval_of(d).dtype
    if not is_complex(dtype):
        limit = dtype.type(np.log(np.finfo(dtype).max) / 2)
        is_free = p.bitwise_and.bind(
            p.equal.bind(factors, p.zero_of(factors)), p.bitwise_not.bind(p.less.bind(d, limit))
        )
        d = p.select.bind(is_free, limit, d)
    return p.mul.bind(factors, p.exp.bind(d))


def _logarithm(total: Any, shift: Any, return_sign: bool) -> Any:
    if not return_sign:
        return p.add.bind(p.log.bind(total), shift)
    size = p.absolute.bind(total)
    shift = p.real.bind(shift) if is_complex(aval_of(shift).dtype) else shift
    return p.add.bind(p.log.bind(size), shift), p.sign.bind(total)


def _logarithm_or_constant(total: Any, shift: Any, return_sign: bool) -> Any:
    """The same for a sum that vanishes only where all exponents are -inf: its derivative is 0."""
    is_zero = p.equal.bind(total, p.zero_of(total))
    apart = p.select.bind(is_zero, p.ones_like(total), total)
    out = _logarithm(apart, shift, return_sign)
    size = out[0] if return_sign else out
    size = p.select.bind(is_zero, aval_of(size).dtype.type(-np.inf), size)
    return (size, p.sign.bind(total)) if return_sign else size


def softmax(x: Any, axis: Axis = None) -> Any:
    """``exp(x) / sum(exp(x))``: positive numbers of sum 1.

    Args:
        x: Array of real numbers.
        axis: The axis or axes along which the sum is 1, by default all.
    Returns: An array of the shape of ``x``.
    Example: print(fg.scipy.special.softmax(np.array([0.0, 0.0]))) -> [0.5 0.5]
    """
    return normalized("softmax", x, axis, None)


def normalized(name: str, x: Any, axis: Axis, where: Any) -> Any:
    """`softmax` over the elements where ``where`` holds, and 0 elsewhere."""
    x, axes = _rows(name, x, axis, where)
    if not _has_elements(x, axes):
        return x
    m = fold_max(x, axes)
    e = p.exp.bind(p.sub.bind(x, m if where is None else finite_or_zero(m)))
    total = fold_sum(e, axes)
    if where is not None:
        # Nothing is selected: 0 / 1.
        total = p.select.bind(p.equal.bind(total, p.zero_of(total)), p.ones_like(total), total)
    return p.div.bind(e, total)


def log_softmax(x: Any, axis: Axis = None) -> Any:
    """``x - log(sum(exp(x)))``: the logarithm of `softmax`, accurate where that is small.

    Args:
        x: Array of real numbers.
        axis: The axis or axes along which the sum is taken, by default all.
    Returns: An array of the shape of ``x``.
    Example: print(fg.scipy.special.log_softmax(np.array([0.0, 1000.0]))) -> [-1000.     0.]
    """
    return log_normalized("log_softmax", x, axis, None)


def log_normalized(name: str, x: Any, axis: Axis, where: Any) -> Any:
    """`log_softmax` over the elements where ``where`` holds, and ``-inf`` elsewhere."""
    x, axes = _rows(name, x, axis, where)
    if not _has_elements(x, axes):
        return x
    m = fold_max(x, axes)
    s = p.sub.bind(x, m if where is None else finite_or_zero(m))
    total = fold_sum(p.exp.bind(s), axes)
    if where is not None:
        total = p.select.bind(p.equal.bind(total, p.zero_of(total)), p.ones_like(total), total)
    return p.sub.bind(s, p.log.bind(total))


def _rows(name: str, x: Any, axis: Axis, where: Any) -> tuple[Any, tuple[int, ...]]:
    (x,) = floating(name, x)
    if where is not None:
        x = masked(
            broadcast_to(x, np.broadcast_shapes(shape_of(x), shape_of(where))), where, -np.inf
        )
    return x, normalize_axes(axis, len(shape_of(x)), name)


def _has_elements(x: Any, axes: tuple[int, ...]) -> bool:
    return all(shape_of(x)[i] for i in axes)
