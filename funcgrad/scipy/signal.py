"""`scipy.signal` on arrays and traced values: sums of products of arrays that slide.

All are summed directly, never by Fourier transforms: results are exact to rounding of the sums, and
integers stay exact. ``method`` is accepted without effect.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal

from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lowering import Slide
from funcgrad.namespaces import present
from funcgrad.numpy import elementwise
from funcgrad.numpy.promotion import as_value, promote, strong
from funcgrad.primitives.contraction import LETTERS
from funcgrad.primitives.convolution import Convolution
from funcgrad.primitives.shape import shape_of

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d"]

Mode = Literal["full", "valid", "same"]


def convolve(in1: Any, in2: Any, mode: Mode = "full", method: str = "auto") -> Any:
    """As `scipy.signal.convolve`: the convolution of two arrays along all of their axes.

    Args:
        in1: Array.
        in2: Array of as many axes.
        mode: ``"full"`` for all sums; ``"same"`` for those in the middle, as many as ``in1`` has
            elements; ``"valid"`` for those in which no element is missing.
        method: Accepted for SciPy's signature.

    Returns:
        The sums, in the dtype that both promote to.

    Raises:
        ShapeError: If numbers of axes differ, or in mode "valid" neither array contains the other.

    Example:
        >>> import numpy as np
        >>> from funcgrad.scipy import signal
        >>> print(signal.convolve(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5])))
        [0.  1.  2.5 4.  1.5]
    """
    return _slid("convolve", in1, in2, mode, is_turned=True)


def correlate(in1: Any, in2: Any, mode: Mode = "full", method: str = "auto") -> Any:
    """As `scipy.signal.correlate`: the correlation of two arrays along all of their axes.

    Args:
        in1: Array.
        in2: Array of as many axes, of which the conjugate is taken.
        mode: As in `convolve`.
        method: Accepted for SciPy's signature.

    Returns:
        The sums, in the dtype that both promote to.

    Example:
        >>> import numpy as np
        >>> from funcgrad.scipy import signal
        >>> print(signal.correlate(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5])))
        [0.5 2.  3.5 3.  0. ]
    """
    return _slid("correlate", in1, in2, mode, is_turned=False)


def convolve2d(
    in1: Any, in2: Any, mode: Mode = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """As `scipy.signal.convolve2d`, with zeros beyond the ends.

    Args:
        in1: Matrix.
        in2: Matrix.
        mode: As in `convolve`.
        boundary: ``"fill"``; pad ``in1`` with `numpy.pad` for others.
        fillvalue: 0.

    Returns:
        The sums, in the dtype that both promote to.
    """
    _check_matrices("convolve2d", in1, in2, boundary, fillvalue)
    return convolve(in1, in2, mode)


def correlate2d(
    in1: Any, in2: Any, mode: Mode = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """As `scipy.signal.correlate2d`, with zeros beyond the ends.

    Args:
        in1: Matrix.
        in2: Matrix, of which the conjugate is taken.
        mode: As in `convolve`.
        boundary: ``"fill"``; pad ``in1`` with `numpy.pad` for others.
        fillvalue: 0.

    Returns:
        The sums, in the dtype that both promote to.
    """
    _check_matrices("correlate2d", in1, in2, boundary, fillvalue)
    # Of an even number of sums around the middle, SciPy takes others here than in `correlate`.
    return _slid("correlate2d", in1, in2, mode, is_turned=False, is_later=True)


def _check_matrices(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> None:
    for value in (in1, in2):
        if len(shape_of(as_value(value, name))) != 2:
            raise ShapeError(f"{name} needs matrices, got {aval_of(as_value(value, name))}.")
    if boundary != "fill" or fillvalue != 0:
        raise ArgumentError(
            f"{name}: boundary must be 'fill' and fillvalue 0, got {boundary!r} and {fillvalue!r}. "
            "Pad the first matrix with numpy.pad (modes 'wrap', 'symmetric', 'constant') and use "
            "mode='valid'."
        )


def _slid(name: str, in1: Any, in2: Any, mode: str, is_turned: bool, is_later: bool = False) -> Any:
    x, y = map(strong, promote(as_value(in1, name), as_value(in2, name)))
    if len(shape_of(x)) != len(shape_of(y)):
        raise ShapeError(
            f"{name} needs arrays of equally many axes, got {aval_of(x)} and {aval_of(y)}."
        )
    if not prod(shape_of(x)) or not prod(shape_of(y)):
        raise ShapeError(f"{name} of {aval_of(x)} and {aval_of(y)}: there are no elements.")
    if not is_turned and aval_of(y).dtype.kind == "c":
        y = elementwise.conj(y)
    pairs = list(zip(shape_of(x), shape_of(y), strict=True))
    if mode == "full":
        cuts = [(0, m + n - 1) for m, n in pairs]
    elif mode == "same":
        cuts = [((n - 1 + is_later) // 2, m) for m, n in pairs]
    elif mode == "valid":
        if any(m > n for m, n in pairs) and any(m < n for m, n in pairs):
            raise ShapeError(
                f"{name}: in mode 'valid' one array must be at least as long as the other along "
                f"every axis, got {aval_of(x)} and {aval_of(y)}."
            )
        cuts = [(min(m, n) - 1, abs(m - n) + 1) for m, n in pairs]
    else:
        raise ArgumentError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}.")
    letters = LETTERS[: len(pairs)]
    slides = tuple(
        (c, Slide(length, n, 1, -1, -start))
        if is_turned
        else (c, Slide(length, n, 1, 1, n - 1 - start))
        for c, (_, n), (start, length) in zip(letters, pairs, cuts, strict=True)
    )
    return Convolution(letters, letters, letters, slides).bind(x, y)


present(__name__)
