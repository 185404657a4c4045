"""Watching for the first operation that makes a value of one dtype one of another.

Promotion is silent by default, as NumPy's is. While a block watches, an operation whose operands
have different dtypes raises instead: any such operation ("strict"), or one that makes a floating
value wider ("drift"). Python's numbers have no dtype of their own and never count, unless they
change the dtype of what they meet. A block may also refuse that operands with different numbers of
axes broadcast: what users write, not what functions of the library do inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from funcgrad.base.dialect import default_dtype
from funcgrad.base.forking import Lock
from funcgrad.core.avals import ShapedArray
from funcgrad.core.observers import describe_location
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import is_inexact, real_dtype, short_name
from funcgrad.errors import DtypePromotionError, ShapeError
from funcgrad.observers.source import current_location, is_called_through, is_called_within

STANDARD, DRIFT, STRICT = "standard", "drift", "strict"


class Refused(NamedTuple):
    """Promotions that are refused.

    Args:
        dtypes: `STANDARD` for nothing, `DRIFT` or `STRICT`.
        ranks: Whether operands must not differ in the number of axes, unless they have none.
    """

    dtypes: str = STANDARD
    ranks: bool = False


NOTHING = Refused()
_mode: ContextVar[Refused] = ContextVar("funcgrad_promotion", default=NOTHING)

promotion_mode = _mode.get
"""Promotions that this thread and context refuses."""


class _Watch:
    """How many blocks watch, in any thread: nothing is looked up while none does."""

    __slots__ = ("users",)

    def __init__(self) -> None:
        self.users = 0


PROMOTIONS = _Watch()
_lock = Lock()


@contextmanager
def watching_promotion(mode: str | None = None, ranks: bool | None = None) -> Iterator[None]:
    """Refuse what ``mode`` says, or different ranks, within a block; ``None`` as before."""
    outer = _mode.get()
    token = _mode.set(
        Refused(outer.dtypes if mode is None else mode, outer.ranks if ranks is None else ranks)
    )
    with _lock:
        PROMOTIONS.users += 1
    try:
        yield
    finally:
        with _lock:
            PROMOTIONS.users -= 1
        _mode.reset(token)


def refuse_promotion(
    values: Sequence[Any], avals: Sequence[ShapedArray], dtype: np.dtype[Any], is_compared: bool
) -> None:
    """Raise if operands may not be converted to ``dtype`` in this context.

    Args:
        values: The operands.
        avals: Their types.
        dtype: What they promote to.
        is_compared: Whether they are only compared, so that no value drifts.
    Raises: DtypePromotionError: With the user's line, and the line that the wider operand came
            from.
    """
    mode = promotion_mode().dtypes
    if mode == STANDARD or (mode == DRIFT and is_compared):
        return
    wanted = default_dtype(dtype)
    for aval in avals:
        if not aval.weak_type and _is_refused(default_dtype(aval.dtype), wanted, mode):
            if mode == STRICT and is_called_within(_COMPOSED):
                return  # what the library does for the user, who cannot write it otherwise
            raise DtypePromotionError(_message(values, avals, aval, dtype, mode))


_WAYS_IN = (
    *("core", "interop", "observers", "scalar_tape", "<numbers>"),
    *(f"numpy/{name}" for name in ("promotion", "elementwise", "dispatch", "assigning")),
)
"""Files of funcgrad between a user's line and an elementwise operation."""
_COMPOSED = (
    *("experimental", "image", "nn", "optim", "random", "scipy"),
    *(f"numpy/{name}" for name in ("binning", "fft", "linalg", "neighbouring", "polynomials")),
)
"""Files of functions that are made of others, with dtypes of their own."""


def refuse_ranks(avals: Sequence[ShapedArray]) -> None:
    """Raise if operands with different numbers of axes may not meet in this context.

    Raises: ShapeError: With the user's line. What the library does for the user is not meant.
    """
    if not promotion_mode().ranks or len({a.ndim for a in avals if a.ndim}) < 2:
        return
    if is_called_through(_WAYS_IN):
        types = " and ".join(map(str, avals))
        lines = [
            f'{types} differ in the number of axes, which numpy_rank_promotion("raise") refuses.',
            *describe_location(current_location(), "at"),
            "Insert the axes that are missing, such as x[None, :] or np.expand_dims(x, 0).",
        ]
        raise ShapeError("\n".join(lines))


def _is_refused(own: np.dtype[Any], dtype: np.dtype[Any], mode: str) -> bool:
    if mode == STRICT:
        return own != dtype
    return is_inexact(own) and real_dtype(own).itemsize < real_dtype(dtype).itemsize


def _message(
    values: Sequence[Any],
    avals: Sequence[ShapedArray],
    narrow: ShapedArray,
    dtype: np.dtype[Any],
    mode: str,
) -> str:
    asked = 'numpy_dtype_promotion("strict")' if mode == STRICT else 'jit(dtype_drift="error")'
    i = next(
        (i for i, a in enumerate(avals) if not a.weak_type and a.dtype == dtype),
        next(i for i, a in enumerate(avals) if a.dtype != narrow.dtype),
    )
    other = values[i]
    lines = [
        f"{narrow} becomes {short_name(dtype)} beside {_described(other, avals[i])}, which "
        f"{asked} refuses.",
        *describe_location(current_location(), "at"),
        *(other.origin() if isinstance(other, Tracer) else []),
        _advice(other, avals[i], narrow, dtype),
    ]
    return "\n".join(lines)


def _described(value: Any, aval: ShapedArray) -> str:
    if isinstance(value, np.generic):
        return f"{aval}, a scalar of NumPy"
    return f"a Python {type(value).__name__}" if aval.weak_type else f"{aval}"


def _advice(other: Any, other_aval: ShapedArray, narrow: ShapedArray, dtype: np.dtype[Any]) -> str:
    if other_aval.weak_type:
        return f"Say that it is meant: .astype(np.{dtype})."
    advice = f"Convert one of them, .astype(np.{narrow.dtype}) or .astype(np.{dtype})"
    if isinstance(other, np.generic):
        advice += (
            "; or make the scalar a Python number, which has no dtype: float(np.sqrt(n)), or "
            "math.sqrt(n)"
        )
    return advice + "."
