"""Names of precisions and algorithms: what programs for accelerators choose among.

Products and functions have the full precision of their dtype here, whatever is asked for.
"""

from __future__ import annotations

import enum
from typing import Any

from funcgrad.base.records import dataclass

__all__ = [
    "AccuracyMode", "DotAlgorithm", "DotAlgorithmPreset", "Precision", "PrecisionLike", "Tolerance",
]  # fmt: skip


class Precision(enum.Enum):
    """Names of precisions: all mean the full precision of the dtype here."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class DotAlgorithm:
    """How an accelerator would form products and sums; here they have the dtype of the operands.

    Attributes:
        lhs_precision_type: Dtype to which the first operand would be rounded.
        rhs_precision_type: Dtype to which the second operand would be rounded.
        accumulation_type: Dtype of the sums.
        lhs_component_count: Into how many parts the first operand would be split.
        rhs_component_count: Into how many parts the second operand would be split.
        num_primitive_operations: How many products of parts would be added.
        allow_imprecise_accumulation: Whether sums might be rounded more.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Names of algorithms of products: all mean the full precision of the dtype here."""

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __str__(self) -> str:
        return self.name


class AccuracyMode(enum.Enum):
    """Names of accuracies of functions: all mean that of the one implementation."""

    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True)
class Tolerance:
    """An error that a function may have; the one implementation has its own, which is small.

    Attributes:
        atol: Absolute error.
        rtol: Relative error.
        ulps: Error in units of the last place.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


PrecisionLike = (
    None
    | str
    | Precision
    | DotAlgorithm
    | DotAlgorithmPreset
    | tuple[str, str]
    | tuple[Precision, Precision]
)
"""Values that ``precision=`` takes; it changes nothing."""

AccuracyLike = None | AccuracyMode | Tolerance
"""Values that ``accuracy=`` takes; it changes nothing."""
