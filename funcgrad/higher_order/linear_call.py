"""A linear function with a transpose of its own.

``LinearCall : (residuals, T a) -> T b``, linear in the second part. Its forward direction and its
transpose are given as functions; custom reverse-mode rules and linear solvers are made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from funcgrad.base.forking import cached_property
from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import MAPPED_NOW, mapped_name
from funcgrad.core.primitive import BatchDim, Primitive, Value, is_linear, mapped_length
from funcgrad.core.program import Program
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.jit import scatter
from funcgrad.lowering import Call, Form
from funcgrad.primitives.shape import broadcast_to, repeat_lanes, sum_lanes
from funcgrad.transforms.batch import batch_flat
from funcgrad.transforms.jvp import jvp_flat
from funcgrad.transforms.linearize import linearize_flat
from funcgrad.transforms.programs import stage_closed

Values = Sequence[Any]
LinearRule = Callable[[Values, Values], list[Any]]
"""``(residuals, tangents or cotangents) -> flat results``; ``None`` stands for zero."""

ResidualRule = Callable[[Values, Values, Values, Values], list[Any]]
"""``(residuals, their tangents, linear arguments, results) -> tangents of the results``."""


@dataclass(frozen=True, eq=False)
class LinearCall(Primitive):
    """Apply a linear function.

    Args:
        label: What messages call it.
        forward: From residuals and linear arguments to the results.
        backward: From residuals and cotangents of the results (``None`` where zero) to cotangents
            of the linear arguments.
        n_residuals: How many of the inputs are residuals; they come first.
        in_avals: Types of all inputs.
        out_avals: Types of the results.
        n_aux: How many trailing results have no derivative.
        residual_rule: Derivative with respect to the residuals; by default that of ``forward``.
    """

    label: str
    forward: LinearRule
    backward: LinearRule
    n_residuals: int
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]
    n_aux: int = 0
    residual_rule: ResidualRule | None = None

    multiple_results = True
    keeps_shared = True

    def split(self, values: Values) -> tuple[list[Any], list[Any]]:
        """Residuals and linear arguments."""
        return list(values[: self.n_residuals]), list(values[self.n_residuals :])

    @cached_property
    def program(self) -> Program:
        """The forward direction as a program."""
        return stage_closed(lambda *xs: self.forward(*self.split(xs)), self.in_avals, self.label)

    def impl(self, *args: Any) -> Any:
        with using_trace(EVAL):
            return self.forward(*self.split(args))

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return list(self.out_avals)

    def lower(self, *avals: ShapedArray) -> Form:
        return Call(self.program)

    def jvp(self, primals: Values, tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        return self._derivative(primals, tangents, push_forward)

    def linearize(self, primals: Values, tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        return self._derivative(primals, tangents, push_linearized)

    def _derivative(
        self, primals: Values, tangents: Sequence[Value | None], push: Callable[..., Any]
    ) -> tuple[Any, Any]:
        residuals, linear = self.split(primals)
        residual_dots, dots = self.split(tangents)
        outs = self.bind(*primals)
        out_dots: list[Any] = [None] * len(outs)
        if any(t is not None for t in dots):
            dense = [
                zeros(aval_of(x)) if t is None else t for x, t in zip(linear, dots, strict=True)
            ]
            out_dots = self.bind(*residuals, *dense)
        if any(t is not None for t in residual_dots):
            if self.residual_rule is not None:
                extra = self.residual_rule(residuals, residual_dots, linear, outs)
            else:
                _, extra = push(
                    lambda *res: self.forward(res, linear), residuals, residual_dots, self.label
                )
            out_dots = add_tangents(out_dots, extra)
        n = len(outs) - self.n_aux
        return outs, [*out_dots[:n], *[None] * self.n_aux]

    def linear_parts(self, is_linear: tuple[bool, ...]) -> list[Any] | None:
        return []

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        residuals, _ = self.split(args)
        if any(is_linear(r) for r in residuals):
            raise ArgumentError(
                f"{self.label} is linear in its arguments, not in the values that it closes over, "
                "so it cannot be transposed with respect to them."
            )
        cts = self.backward(residuals, ct[: len(ct) - self.n_aux])
        return [*[None] * self.n_residuals, *cts]

    def batch(self, args: Values, dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = mapped_length(args, dims)
        residuals, linear = self.split(args)
        residual_dims, linear_dims = self.split(dims)
        # With all linear arguments mapped, so are their cotangents; this sum is then a transpose.
        linear = [to_front(x, d, size) for x, d in zip(linear, linear_dims, strict=True)]
        batched = _BatchedLinear(self, residual_dims, size)
        dense = [*residuals, *linear]
        call = LinearCall(
            self.label,
            batched.forward,
            batched.backward,
            self.n_residuals,
            tuple(aval_of(x) for x in dense),
            tuple(a.update(shape=(size, *a.shape)) for a in self.out_avals),
            self.n_aux,
            batched.residual_rule if self.residual_rule is not None else None,
        )
        return call.bind(*dense), [0] * len(self.out_avals)

    def params(self) -> dict[str, Any]:
        return {"name": self.label, "program": self.program}


class _BatchedLinear:
    """The functions of a mapped linear call."""

    def __init__(self, call: LinearCall, dims: Sequence[BatchDim], size: int) -> None:
        self.call = call
        self.dims = list(dims)
        self.size = size
        self.axis_name = mapped_name()

    def forward(self, residuals: Values, linear: Values) -> list[Any]:
        return self._map(self.call.forward, residuals, linear)

    def backward(self, residuals: Values, cts: Values) -> list[Any]:
        return self._map(self.call.backward, residuals, cts)

    def _map(self, rule: LinearRule, residuals: Values, values: Values) -> list[Any]:
        return map_to_front(
            rule, (residuals, values), (self.dims, [0] * len(values)), self.size, self.axis_name
        )

    def residual_rule(
        self, residuals: Values, dots: Values, linear: Values, outs: Values
    ) -> list[Any]:
        assert self.call.residual_rule is not None
        mapped = [0] * len(linear)
        groups = (residuals, dots, linear, outs)
        dims = (self.dims, self.dims, mapped, [0] * len(outs))
        return map_to_front(self.call.residual_rule, groups, dims, self.size, self.axis_name)


# Shared by the primitives that carry functions.


def push_forward(
    function: Callable[..., Any], primals: Values, tangents: Values, what: str
) -> tuple[list[Any], list[Any]]:
    """Results and tangents, in forward mode."""
    return jvp_flat(function, primals, tangents, what)


def push_linearized(
    function: Callable[..., Any], primals: Values, tangents: Values, what: str
) -> tuple[list[Any], list[Any]]:
    """Results and tangents, where tangents may have no values yet: results do not wait for them."""
    outs, linear = linearize_flat(function, primals, [t is not None for t in tangents], what)
    return outs, linear.push(tangents)


def add_tangents(first: Values, second: Values) -> list[Any]:
    """Sums of tangents, where ``None`` is zero."""
    return [
        b if a is None else a if b is None else a + b for a, b in zip(first, second, strict=True)
    ]


def zeros(aval: ShapedArray) -> Any:
    """Zeros of a floating type, computed under the current trace."""
    return broadcast_to(aval.dtype.type(0), aval.shape)


def to_front(value: Any, dim: BatchDim, size: int, axis_name: Hashable = MAPPED_NOW) -> Any:
    """A mapped value; one that is not mapped is repeated."""
    return value if dim is not None else repeat_lanes(value, size, axis_name)


def sum_mapped(value: Any, dim: BatchDim, size: int, axis_name: Hashable = MAPPED_NOW) -> Any:
    """The sum over the batch of a cotangent."""
    return sum_lanes(to_front(value, dim, size, axis_name), axis_name)


def map_groups(
    function: Callable[..., Sequence[Any]],
    groups: Sequence[Values],
    dims: Sequence[Sequence[BatchDim]],
    size: int,
    axis_name: Hashable = MAPPED_NOW,
) -> tuple[list[Any], list[BatchDim]]:
    """Map a function of lists, in which and in whose result ``None`` may stand for zeros."""
    flat = [x for group in groups for x in group]
    flat_dims = [d for group in dims for d in group]
    present = [x is not None for x in flat]
    absent: list[bool] = []

    def dense(*xs: Any) -> list[Any]:
        full = iter(scatter(xs, present))
        results = function(*([next(full) for _ in group] for group in groups))
        absent[:] = [r is None for r in results]
        return [r for r in results if r is not None]

    given = [x for x in flat if x is not None]
    given_dims = [d for d, here in zip(flat_dims, present, strict=True) if here]
    values, out_dims = batch_flat(dense, given, given_dims, size, "vmap", axis_name)
    pairs = iter(zip(values, out_dims, strict=True))
    found = [(None, None) if gone else next(pairs) for gone in absent]
    return [v for v, _ in found], [d for _, d in found]


def map_to_front(
    function: Callable[..., Sequence[Any]],
    groups: Sequence[Values],
    dims: Sequence[Sequence[BatchDim]],
    size: int,
    axis_name: Hashable = MAPPED_NOW,
) -> list[Any]:
    """Map every result that is not zero to the front, as `map_groups` does."""
    values, out_dims = map_groups(function, groups, dims, size, axis_name)
    return [
        None if v is None else to_front(v, d, size, axis_name)
        for v, d in zip(values, out_dims, strict=True)
    ]
