"""Dead and saturated units: the values that activation functions get.

They are found in the recorded operations of a function: rectifiers (``relu``, ``maximum(x, 0)``)
and sigmoids (``sigmoid``, ``tanh``, ``erf``), also where others are made of them (``silu``).
Those in the bodies of loops are not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from funcgrad.api.arguments import check_callable
from funcgrad.api.differentiation import jvp
from funcgrad.base.records import dataclass
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Equation, Literal
from funcgrad.diagnostics.record import Record, record
from funcgrad.diagnostics.tables import short, table
from funcgrad.primitives import elementwise, special

# Steepest slopes of the functions that are flat far from 0 on both sides.
_STEEPEST: dict[Primitive, float] = {
    elementwise.logistic: 0.25,
    elementwise.tanh: 1.0,
    special.erf: 2 / np.sqrt(np.pi),
}
_FLAT = 0.05
"""A value is saturated where the slope is below this share of the steepest one."""
_BINS = 50


@dataclass(frozen=True)
class Activation:
    """One application of an activation function.

    Attributes:
        name: Which function.
        line: The user's line.
        shape: Of its values. The last axis is that of units; in arrays of four axes or more, such
            as images, it may be the second one, if more of its units are dead.
        mean: Mean of its values.
        std: Their standard deviation.
        saturated: Share of values where a sigmoid is nearly flat: its slope is below a twentieth
            of the steepest one (``tanh`` beyond 0.975, ``sigmoid`` beyond 0.987). 0 for others.
        dead: Numbers of the units of a rectifier that are off for every example.
        units: How many units there are.
        counts: Histogram of the finite values.
        edges: Edges of its bins.
    """

    name: str
    line: str
    shape: tuple[int, ...]
    mean: float
    std: float
    saturated: float
    dead: tuple[int, ...]
    units: int
    counts: np.ndarray
    edges: np.ndarray

    @property
    def dead_share(self) -> float:
        """Share of the units that are dead."""
        return len(self.dead) / self.units if self.units else 0.0


@dataclass(frozen=True)
class ActivationReport:
    """The result of `activation_report`; prints as a table.

    Attributes:
        rows: One `Activation` per application, in order of execution.
    """

    rows: tuple[Activation, ...]

    def __str__(self) -> str:
        rows = [
            [
                row.name,
                str(row.shape),
                short(row.mean),
                short(row.std),
                f"{row.saturated:.1%}",
                f"{len(row.dead)} of {row.units}",
                row.line,
            ]
            for row in self.rows
        ]
        return table(["function", "shape", "mean", "std", "saturated", "dead units", "line"], rows)


def activation_report(f: Callable[..., Any], *args: Any, **kwargs: Any) -> ActivationReport:
    """Dead units and saturated values of the activation functions that ``f`` applies.

    Args:
        f: A model or a loss.
        *args: Its arguments: pytrees of arrays.
        **kwargs: Likewise.
    Returns: An `ActivationReport`.

    Example:
        >>> report = fg.diagnostics.activation_report(np.tanh, np.array([[0.1, 5.0], [0.2, -4.0]]))
        >>> report.rows[0].saturated
        0.5
    """
    check_callable(f, "activation_report")
    recorded = record(f, args, kwargs, "activation_report")
    return ActivationReport(tuple(activation for _, activation in activations_of(recorded)))


def activations_of(recorded: Record) -> Iterator[tuple[Equation, Activation]]:
    """The activation functions among recorded operations, with what they did."""
    for equation in recorded.equations:
        if equation.primitive in _STEEPEST or _is_rectifier(equation):
            yield equation, _activation(recorded, equation)


def _is_rectifier(equation: Equation) -> bool:
    if equation.primitive is elementwise.maximum:
        literals = [a.value for a in equation.inputs if isinstance(a, Literal)]
        return len(literals) == 1 and not literals[0] and bool(equation.outputs[0].aval.shape)
    return equation.primitive is elementwise.relu


def _activation(recorded: Record, equation: Equation) -> Activation:
    operands = [recorded.value(a) for a in equation.inputs]
    is_moved = [not isinstance(a, Literal) for a in equation.inputs]
    tangents = [
        (np.ones_like if moved else np.zeros_like)(x)
        for x, moved in zip(operands, is_moved, strict=True)
    ]
    with np.errstate(all="ignore"):
        values, slopes = jvp(equation.primitive.bind, tuple(operands), tuple(tangents))
    values, slopes = np.atleast_1d(values), np.atleast_1d(slopes)
    steepest = _STEEPEST.get(equation.primitive)
    is_flat = np.abs(slopes) < _FLAT * steepest if steepest else np.zeros(slopes.shape, bool)
    is_off = np.zeros(slopes.shape[-1], bool) if steepest else _off_units(slopes)
    dead = tuple(int(i) for i in np.flatnonzero(is_off))
    finite = values[np.isfinite(values)]
    counts, edges = np.histogram(finite, bins=_BINS)
    return Activation(
        equation.primitive.name,
        "" if equation.source is None else str(equation.source),
        values.shape,
        float(finite.mean()) if finite.size else float("nan"),
        float(finite.std()) if finite.size else float("nan"),
        float(is_flat.mean()) if is_flat.size else 0.0,
        dead,
        len(is_off),
        counts,
        edges,
    )


def _off_units(slopes: np.ndarray) -> np.ndarray:
    """Units with slope 0 for all examples, along the axis where more have it."""
    is_zero = slopes == 0
    axes = [-1, 1] if slopes.ndim >= 4 else [-1]
    found = [
        np.moveaxis(is_zero, axis, -1).reshape(-1, slopes.shape[axis]).all(axis=0) for axis in axes
    ]
    return max(found, key=lambda is_off: float(is_off.mean()) if is_off.size else 0.0)
