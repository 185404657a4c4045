"""Sliding products and covariances."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import is_complex
from funcgrad.lowering import Slide
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.contracting import dot
from funcgrad.numpy.diagonals import diagonal
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.moments import average, mean
from funcgrad.numpy.promotion import as_value, checked_dtype, promote, strong, to_dtype
from funcgrad.numpy.rearranging import flip
from funcgrad.numpy.reducing import sum
from funcgrad.numpy.selecting import clip
from funcgrad.numpy.shaping import atleast_1d, constant_pad, expand_dims, reshape
from funcgrad.numpy.taking import part
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.convolution import Convolution
from funcgrad.primitives.shape import shape_of

__all__ = ["convolve", "corrcoef", "correlate", "cov"]


def convolve(
    a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """Discrete convolution of two vectors, as `numpy.convolve`.

    Args:
        a: Line of numbers.
        mode: ``"full"``, ``"same"`` or ``"valid"``.
    Example: fg.numpy.convolve(np.array([1.0, 2.0]), np.array([3.0, 4.0])) -> array([ 3., 10.,  8.])
    """
    x, y = _lines("convolve", a, v, preferred_element_type)
    m, n = shape_of(x)[0], shape_of(y)[0]
    if not m or not n:
        raise ValueError(("a" if not m else "v") + " cannot be empty")
    if n > m:
        x, y, m, n = y, x, n, m
    if m * n <= _FEW_PRODUCTS:
        full = _skewed_sum(p.mul.bind(reshape(y, (n, 1)), reshape(x, (1, m))))
    else:
        slides = (("x", Slide(m + n - 1, n, 1, -1)),)
        full = Convolution("x", "x", "x", slides).bind(x, y)
    return _of_mode(full, m, n, mode, (n - 1) // 2)


_FEW_PRODUCTS = 1 << 14
"""Up to this number all products are made at once: kernels can do that, also inside of loops."""


def _skewed_sum(products: Any) -> Any:
    """Sums over the antidiagonals of a matrix: reshaping rows of one more shifts each by one."""
    n, m = shape_of(products)
    wide = constant_pad(products, [(0, 0), (0, n)])
    skewed = part(reshape(wide, (n * (m + n),)), 0, 0, n * (m + n - 1))
    return s.ReduceSum((0,)).bind(reshape(skewed, (n, m + n - 1)))


def _of_mode(full: Any, m: int, n: int, mode: str, start: int) -> Any:
    """The part of a full convolution that a mode names; ``m >= n``."""
    if mode == "full":
        return full
    if mode == "same":
        return part(full, 0, start, start + m)
    if mode == "valid":
        return part(full, 0, n - 1, m)
    raise ValueError(f"mode must be 'full', 'same' or 'valid', got {mode!r}.")


def _lines(name: str, a: Any, v: Any, dtype: Any) -> list[Any]:
    """Two operands of one dtype with at least one axis."""
    values = promote(*[atleast_1d(as_value(q, name)) for q in (a, v)])
    if dtype is None:
        return [strong(x) for x in values]
    return [to_dtype(x, checked_dtype(dtype, name)) for x in values]


def correlate(
    a: Any,
    v: Any,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Cross-correlation of two vectors.

    As `numpy.correlate`, with the options of `convolve`.

    Example: fg.numpy.correlate(np.array([1.0, 2.0]), np.array([3.0, 4.0])) -> array([11.])
    """
    x, y = _lines("correlate", a, v, preferred_element_type)
    m, n = shape_of(x)[0], shape_of(y)[0]
    y = flip(y, 0)
    full = convolve(x, e.conj(y) if is_complex(aval_of(y).dtype) else y, "full")
    if m >= n:
        return _of_mode(full, m, n, mode, (n - 1) // 2)
    return _of_mode(full, n, m, mode, m // 2)


def _weights_of(fweights: Any, aweights: Any) -> Any:
    given = [as_value(w, "cov") for w in (fweights, aweights) if w is not None]
    if not given:
        return None
    return given[0] if len(given) == 1 else e.multiply(*given)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """Covariance matrix of variables, as `numpy.cov`.

    Args:
        bias: Whether to divide by the number of observations instead of one less.
        fweights: How often each observation counts, as integers.
        aweights: How much each observation counts, in any unit.
    Example: fg.numpy.cov(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 4.0]]))
        -> array([[1.        , 1.        ],
                  [1.        , 2.33333333]])
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"cov: ddof must be an integer, got {ddof}.")
    m = as_value(m, "cov")
    x = _variables(m, not rowvar and len(shape_of(m)) == 2, dtype)
    if not shape_of(x)[0]:
        return np.zeros((0, 0))
    if y is not None:
        y = as_value(y, "cov")
        # As in NumPy, a single row of the second argument is one variable in any case.
        is_table = len(shape_of(y)) == 2 and shape_of(y)[0] != 1
        x = concatenate([x, _variables(y, not rowvar and is_table, dtype)], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    w = _weights_of(fweights, aweights)
    if w is None:
        center, size = mean(x, 1), shape_of(x)[1] - ddof
        weighted = x = e.subtract(x, reshape(center, (-1, 1)))
    else:
        center, total = average(x, 1, w, True)
        total = getitem(total, 0)
        size = total
        if ddof and aweights is None:
            size = e.subtract(total, ddof)
        elif ddof:
            size = e.subtract(
                total, e.divide(e.multiply(ddof, sum(e.multiply(w, aweights))), total)
            )
        x = e.subtract(x, reshape(center, (-1, 1)))
        weighted = e.multiply(x, w)
    # With as many degrees of freedom as observations, or more, nothing is left.
    out = e.divide(dot(x, e.conj(weighted).T), e.maximum(size, 0))
    n = shape_of(out)[0]
    return reshape(out, ()) if n == 1 else out


def _variables(x: Any, is_transposed: bool, dtype: Any) -> Any:
    """Observations as a floating matrix with a row per variable."""
    if len(shape_of(x)) > 2:
        raise ValueError("m has more than 2 dimensions")
    if len(shape_of(x)) < 2:
        x = reshape(strong(x), (1, aval_of(x).size))
    elif is_transposed:
        x = s.Transpose((1, 0)).bind(x)
    wanted = np.result_type(aval_of(x).dtype, np.float64) if dtype is None else dtype
    return p.convert(strong(x), checked_dtype(wanted, "cov"))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Correlation coefficients of variables, as `numpy.corrcoef`.

    Example: fg.numpy.corrcoef(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 4.0]]))
        -> array([[1.        , 0.65465367],
                  [0.65465367, 1.        ]])
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not shape_of(c):
        return e.divide(c, c)
    deviation = e.sqrt(e.absolute(diagonal(c)))
    out = e.divide(e.divide(c, expand_dims(deviation, 1)), expand_dims(deviation, 0))
    if is_complex(aval_of(out).dtype):
        height = e.multiply(clip(p.imag.bind(out), -1, 1), 1j)
        return e.add(clip(p.real.bind(out), -1, 1), height)
    return clip(out, -1, 1)
