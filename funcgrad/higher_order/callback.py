"""Calls of Python from within programs.

Three kinds: a debug callback sees values and returns nothing, a pure callback is a function like
any other whose text is unknown, an io callback has effects and results. Those with effects happen
once per evaluation, in the order in which the program was written.

Callbacks run on copies of their operands: compiled programs use memory again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from funcgrad.base.error_state import of_caller
from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import DividedAxis, mapped_name
from funcgrad.core.primitive import BatchDim, Primitive, Value, mapped_length
from funcgrad.core.trace import EVAL, current_trace, enter_trace, leave_trace
from funcgrad.errors import DtypeError, MissingRuleError, ShapeError
from funcgrad.observers.checks import REPEATED, Kinds
from funcgrad.primitives.families import extern_lower
from funcgrad.primitives.shape import broadcast_to, reshape, shape_of

FlatFunction = Callable[..., Sequence[Any]]
"""From arrays to a flat list of results."""

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
                "legacy_vectorized")  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Callback(Primitive):
    """Call a function with arrays.

    Attributes:
        function: What to call.
        label: What messages call it, and the user's line.
        out_avals: Types of its results.
    """

    is_callback: ClassVar[bool] = True

    function: FlatFunction
    label: str
    out_avals: tuple[ShapedArray, ...]

    multiple_results = True
    calls_users = True
    lower = extern_lower

    @property
    def callees(self) -> tuple[Any, ...]:
        return (self.function,)

    def impl(self, *args: Any) -> Any:
        token = enter_trace(current_trace())
        try:
            enter_trace(EVAL)
            with of_caller():
                results = self.function(*map(_copied, args))
        finally:
            leave_trace(token)
        return checked(results, self.out_avals, self.label)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return list(self.out_avals)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.batch_by_lane(args, dims)

    def batch_by_lane(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        """One call for every lane, in order."""
        size = mapped_length(args, dims)
        by_lane = _ByLane(self, tuple(dims), size)
        return self.stacked(by_lane, size).bind(*args), [0] * len(self.out_avals)

    def stacked(self, function: FlatFunction, size: int) -> _Callback:
        """The callback of another function, whose results have a lane axis."""
        avals = tuple(a.update(shape=(size, *a.shape)) for a in self.out_avals)
        return replace(self, function=function, out_avals=avals)

    def params(self) -> dict[str, Any]:
        return {"function": self.label.partition("\n")[0]}


@dataclass(frozen=True, eq=False)
class DebugCallback(_Callback):
    """Show values to a function that returns nothing. It has no derivative and needs none."""

    is_effectful: ClassVar[bool] = True

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Any]]:
        return [] if REPEATED in kinds else self.bind(*args), ()

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        return self.bind(*primals), []


@dataclass(frozen=True, eq=False)
class IoCallback(_Callback):
    """Call a function that may have effects."""

    is_effectful: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class PureCallback(_Callback):
    """Call a function without effects; how often it runs is nobody's promise.

    Attributes:
        vmap_method: How it is mapped: one of `VMAP_METHODS`, or ``None`` if it cannot be.
    """

    vmap_method: str | None = None

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        method = self.vmap_method
        if method is None and isinstance(mapped_name(), DividedAxis):
            method = "sequential"  # each lane of a mesh is a program of its own
        if method is None:
            raise MissingRuleError(
                f"{self.label}\nvmap does not know how to call it for many examples. Pass "
                'vmap_method="sequential" for one call per example, or "expand_dims" or '
                '"broadcast_all" if it accepts arrays with a further leading axis.'
            )
        if method.startswith("sequential"):
            return self.batch_by_lane(args, dims)
        size = mapped_length(args, dims)
        lengths = {"expand_dims": 1, "broadcast_all": size}
        if method in lengths:
            n = lengths[method]
            args = [
                x if d is not None else _with_leading(x, n) for x, d in zip(args, dims, strict=True)
            ]
        return self.stacked(self.function, size).bind(*args), [0] * len(self.out_avals)


class _ByLane:
    """A function of all lanes that calls another one for each."""

    def __init__(self, single: _Callback, dims: tuple[BatchDim, ...], size: int) -> None:
        self.__wrapped__ = single.function
        self.single = single
        self.dims = dims
        self.size = size

    def __call__(self, *args: Any) -> list[Any]:
        single = self.single
        rows = []
        for i in range(self.size):
            lane = [x if d is None else x[i] for x, d in zip(args, self.dims, strict=True)]
            with of_caller():
                results = single.function(*lane)
            rows.append(checked(results, single.out_avals, single.label))
        return [
            np.stack([row[k] for row in rows]) if rows else np.empty((0, *a.shape), a.dtype)
            for k, a in enumerate(single.out_avals)
        ]


def _copied(value: Any) -> Any:
    """An operand that nobody else writes to; a scalar of NumPy if it has no axes."""
    return np.array(value)[()]


def _with_leading(x: Value, n: int) -> Value:
    return broadcast_to(reshape(x, (1, *shape_of(x))), (n, *shape_of(x)))


def checked(results: Sequence[Any], avals: Sequence[ShapedArray], label: str) -> list[Any]:
    """The results as arrays of the promised types.

    Raises:
        ShapeError: If a shape is not the promised one.
        DtypeError: If a dtype is not. Python's scalars take the promised one.
    """
    arrays = []
    for i, (result, aval) in enumerate(zip(results, avals, strict=True)):
        if type(result) is np.ndarray and (result.shape, result.dtype) == (aval.shape, aval.dtype):
            arrays.append(result[()])
            continue
        own = aval_of(result)
        if own.shape != aval.shape:
            raise ShapeError(_unexpected(i, own, aval, label))
        if own.dtype != aval.dtype and not own.weak_type:
            raise DtypeError(_unexpected(i, own, aval, label))
        arrays.append(np.asarray(result, aval.dtype)[()])
    return arrays


def _unexpected(i: int, own: ShapedArray, aval: ShapedArray, label: str) -> str:
    return (
        f"{label}\n  result {i}\n  expected      {aval.strong()}\n  got           {own.strong()}\n"
        "Correct result_shape_dtypes, or convert what the callback returns."
    )
