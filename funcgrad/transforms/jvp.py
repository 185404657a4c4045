"""Forward mode: values paired with tangents.

``jvp : (a -> b) -> (a, T a) -> (b, T b)``
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.observers import OBSERVED, report, report_end
from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import Trace, Tracer, current_trace, enter_trace, leave_trace, run_under


class JVPTracer(Tracer):
    """A primal and its tangent, both values of the parent trace."""

    __slots__ = ("aval", "primal", "tangent")
    aval: ShapedArray

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any) -> None:
        self.owner = trace
        self.primal = primal
        self.aval = aval_of(primal)
        self.tangent = tangent

    def concrete(self) -> Any:
        return self.primal.concrete() if isinstance(self.primal, Tracer) else self.primal


class JVPTrace(Trace):
    """Applies JVP rules, under the parent trace."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        primals, tangents, is_active = [], [], False
        for arg in args:
            if type(arg) is JVPTracer and arg.owner is self:
                primals.append(arg.primal)
                tangents.append(arg.tangent)
                is_active = True
            else:
                primals.append(arg)
                tangents.append(None)
        assert self.parent is not None
        if not is_active:
            return self.parent.process(primitive, args)
        token = enter_trace(current_trace())
        try:
            enter_trace(self.parent)
            out, out_dot = primitive.jvp(primals, tangents)
        finally:
            leave_trace(token)
        if OBSERVED.computed and not primitive.is_composite:
            dots = out_dot if primitive.multiple_results else [out_dot]
            what = f"the tangent of {primitive.name}"
            report(what, [*primals, *tangents], dots, primitive)
        if primitive.multiple_results:
            return [self.pair(x, t) for x, t in zip(out, out_dot, strict=True)]
        return self.pair(out, out_dot)

    def pair(self, primal: Any, tangent: Any) -> Any:
        """A tracer, or the primal alone if the tangent is a symbolic zero."""
        return primal if tangent is None else JVPTracer(self, primal, tangent)

    def split(self, value: Any) -> tuple[Any, Any]:
        """Primal and tangent of a result."""
        if type(value) is JVPTracer and value.owner is self:
            return value.primal, value.tangent
        return value, None


def jvp_flat(
    function: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    what: str,
) -> tuple[list[Any], list[Any]]:
    """Results and tangents (``None`` where zero) of a function of flat arguments.

    Args:
        function: Returns a flat list.
        primals: The point.
        tangents: One for each primal, ``None`` where zero.
        what: How messages call the transformation.
    """
    trace = JVPTrace(current_trace(), what)
    args = [trace.pair(x, t) for x, t in zip(primals, tangents, strict=True)]
    outputs = list(run_under(trace, function, *args))
    pairs = [trace.split(out) for out in outputs]
    del args, outputs
    report_end(trace)
    return [p for p, _ in pairs], [t for _, t in pairs]
