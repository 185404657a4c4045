"""Blocks in which nothing is promoted silently, neither dtypes nor numbers of axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from funcgrad.errors import ArgumentError
from funcgrad.observers.promotion import STANDARD, STRICT, watching_promotion


@contextmanager
def numpy_dtype_promotion(mode: str) -> Iterator[None]:
    """A block in which operands of different dtypes are an error, or are promoted again.

    Concerns what transformations trace, and the functions of `funcgrad.numpy`. What NumPy itself
    computes of its own arrays is not seen. Functions compiled by `jit` are traced anew for the
    block. Python's numbers take the dtype of what they meet, so they are no error as long as they
    do not change it.

    Args: mode: ``"strict"`` or ``"standard"``.

    Raises:
        ArgumentError: If the mode is another.
        DtypePromotionError: Inside of a strict block, at the first line that promotes.

    Example:
        >>> scale = fg.jit(lambda x: x * np.sqrt(2 / x.size))
        >>> with fg.numpy_dtype_promotion("strict"):
        ...     scale(np.ones(3, np.float32))
        Traceback (most recent call last):
        ...
        funcgrad.errors.DtypePromotionError: f32[3] becomes f64 beside f64[], a scalar of NumPy...
    """
    if mode not in (STANDARD, STRICT):
        raise ArgumentError(
            f'numpy_dtype_promotion takes "strict" or "standard", got {mode!r}. For floating '
            'values that become wider there is jit(dtype_drift="error").'
        )
    with watching_promotion(mode):
        yield


@contextmanager
def numpy_rank_promotion(new_val: str = "allow") -> Iterator[None]:
    """A block in which operands of different numbers of axes are an error, or broadcast again.

    Concerns operators and elementwise functions that the user's code applies to traced values, and
    those of `funcgrad.numpy`. What NumPy itself computes of its own arrays is not seen. Operands
    without axes always broadcast. Functions compiled by `jit` are traced anew for the block.

    Args: new_val: ``"raise"`` or ``"allow"``.

    Raises:
        ArgumentError: If it is another.
        ShapeError: Inside of a block that raises, at the first line with such operands.

    Example:
        >>> with fg.numpy_rank_promotion("raise"):
        ...     fg.jit(lambda x, y: x + y)(np.ones((1, 2)), np.ones(2))
        Traceback (most recent call last):
        ...
        funcgrad.errors.ShapeError: f64[1,2] and f64[2] differ in the number of axes, which...
    """
    if new_val not in ("allow", "raise"):
        raise ArgumentError(
            f'numpy_rank_promotion takes "raise" or "allow", got {new_val!r}: there is no warning.'
        )
    with watching_promotion(ranks=new_val == "raise"):
        yield
