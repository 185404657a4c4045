"""Vectorisation: one more axis, in front.

``batch : (a -> b) -> ([n] a -> [n] b)``
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from funcgrad.base.dialect import dialect
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.axes import (
    MAPPED_NOW,
    DividedAxis,
    axis_scope,
    mapped_axis,
    mapped_name,
    mapping_axis,
    outside_axis,
)
from funcgrad.core.facets import Facet
from funcgrad.core.observers import report_end
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import axis_names_of
from funcgrad.core.trace import Trace, Tracer, current_trace, enter_trace, leave_trace, run_under
from funcgrad.dtypes import PYTHON_SCALARS

batch_named: Facet[Callable[..., tuple[Any, Any]] | None] = Facet("batch_named", None)
"""``batch_named(args, dims, size, axis_name)``: as `Primitive.batch`, along an axis whose name the
operation or one of its programs uses. Possibly no argument is mapped."""

keeps_shared = Facet("keeps_shared", False)
"""Whether the batch rule may return some results unmapped, equal in all lanes. Composite operations
do so, since each of their inner operations may have unmapped operands only."""


class BatchTracer(Tracer):
    """A value of the parent trace whose first axis is the mapped one."""

    __slots__ = ("aval", "value")
    aval: ShapedArray

    def __init__(self, trace: BatchTrace, value: Any) -> None:
        self.owner = trace
        self.value = value
        aval = aval_of(value)
        shape = aval.shape[1:]
        self.aval = aval.update(shape) if aval.weak_type else shaped(shape, aval.dtype)


class BatchTrace(Trace):
    """Applies batch rules, under the parent trace.

    Args:
        parent: Receives the batched operations.
        what: How messages call the transformation.
        size: Length of the mapped axis.
        axis_name: Its name, if it has one.
    """

    __slots__ = ("axis_name", "size")

    def __init__(self, parent: Trace, what: str, size: int, axis_name: Hashable = None) -> None:
        super().__init__(parent, what)
        self.size = size
        self.axis_name = axis_name

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        values: list[Any] = []
        dims: list[int | None] = []
        is_mapped = False
        for arg in args:
            if isinstance(arg, BatchTracer) and arg.owner is self:
                values.append(arg.value)
                dims.append(0)
                is_mapped = True
            else:
                values.append(arg)
                dims.append(None)
        assert self.parent is not None
        name = self.axis_name
        is_named = name is not None and name in axis_names_of(primitive)
        if not is_mapped and not is_named:
            if name is None or not _runs_functions(primitive):
                return self.parent.process(primitive, args)
            with outside_axis(name):
                return self.parent.process(primitive, args)
        token = enter_trace(current_trace())
        try:
            enter_trace(self.parent)
            out, out_dim = self.batch(primitive, values, dims, is_named)
        finally:
            leave_trace(token)
        if primitive.multiple_results:
            return [self.wrap(x, d) for x, d in zip(out, out_dim, strict=True)]
        return self.wrap(out, out_dim)

    def batch(
        self, primitive: Primitive, args: list[Any], dims: list[int | None], is_named: bool
    ) -> tuple[Any, Any]:
        """Apply the batch rule of an operation, or the one that it has for a named axis."""
        if is_named:
            return _batch_named(primitive, args, dims, self.size, self.axis_name)
        name = self.axis_name if _runs_functions(primitive) else None
        if name is None and mapped_axis() is None:
            return primitive.batch(args, dims)
        with mapping_axis(name, self.size):
            return primitive.batch(args, dims)

    def wrap(self, value: Any, dim: int | None) -> Any:
        """A tracer, or the value itself if it is not mapped."""
        return value if dim is None else BatchTracer(self, value)

    def unwrap(self, value: Any) -> tuple[Any, int | None]:
        """Value and batch dim of a result."""
        if isinstance(value, BatchTracer) and value.owner is self:
            return value.value, 0
        return value, None


def _runs_functions(primitive: Primitive) -> bool:
    """Whether rules of a primitive run functions, which may ask for the axes in scope."""
    return primitive.is_composite or keeps_shared(primitive)


_WEAK = {dtype.kind: dtype for kind, dtype in PYTHON_SCALARS.items() if kind is not bool}
"""Dtypes of Python's numbers."""


class WeakBatchTrace(BatchTrace):
    """Applies batch rules, and follows which values are weak, in dialects that have weak arrays.

    A dialect is a convention about dtypes, such as NumPy's or JAX's (`funcgrad.base.dialect`).
    A parent that stages operations knows that of the values; one that evaluates does not.
    """

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        out = super().process(primitive, args)
        if primitive.is_composite or primitive.multiple_results or type(out) is not BatchTracer:
            return out
        is_weak = primitive.abstract_eval(*map(aval_of, args)).weak_type
        return self._weak(out) if is_weak else out

    def wrap(self, value: Any, dim: int | None) -> Any:
        made = super().wrap(value, dim)
        return self._weak(made) if dim is not None and made.aval.weak_type else made

    def _weak(self, value: BatchTracer) -> BatchTracer:
        """A mapped value that is weak, whether its parent's value says so or not."""
        made = BatchTracer(self, value.value)
        shape, dtype = value.aval.shape, value.aval.dtype
        made.aval = shaped(shape, _WEAK.get(dtype.kind, dtype), True)
        return made

    def unwrap(self, value: Any) -> tuple[Any, int | None]:
        out, dim = super().unwrap(value)
        make_weak = dialect().weak
        if make_weak is None or isinstance(out, Tracer) or not aval_of(value).weak_type:
            return out, dim
        return make_weak(out), dim


def _trace_of(axis_name: Hashable, parent: Trace, what: str, size: int) -> BatchTrace:
    is_weak = not parent.is_staged and dialect().weak is not None
    if isinstance(axis_name, DividedAxis):
        return axis_name.trace(parent, what, size, is_weak)
    return (WeakBatchTrace if is_weak else BatchTrace)(parent, what, size, axis_name)


def _batch_named(
    primitive: Primitive, args: Sequence[Any], dims: Sequence[int | None], size: int, name: Hashable
) -> tuple[Any, Any]:
    """Apply the rule for a named axis, by default that for any axis, under its name."""
    rule = batch_named(primitive)
    if rule is not None:
        return rule(args, dims, size, name)
    with mapping_axis(name, size):
        return primitive.batch(args, dims)


def batch_flat(
    function: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    dims: Sequence[int | None],
    size: int,
    what: str,
    axis_name: Hashable = MAPPED_NOW,
) -> tuple[list[Any], list[int | None]]:
    """Results, and their batch dims, of a function of flat arguments.

    Args:
        function: Returns a flat list.
        args: Arguments, mapped ones with the batch axis in front.
        dims: 0 for mapped arguments, else ``None``.
        size: Length of the mapped axis.
        what: How messages call the transformation.
        axis_name: Name of the mapped axis, ``None`` for none; by default that of the axis which
            the current batch rule maps.
    """
    if axis_name is MAPPED_NOW:
        axis_name = mapped_name()
    parent = current_trace()
    trace = _trace_of(axis_name, parent, what, size)
    wrapped = [trace.wrap(a, d) for a, d in zip(args, dims, strict=True)]
    length = axis_name.size if isinstance(axis_name, DividedAxis) else size
    with axis_scope(axis_name, length):
        outputs = list(run_under(trace, function, *wrapped))
    pairs = [trace.unwrap(out) for out in outputs]
    del wrapped, outputs
    report_end(trace)
    return [v for v, _ in pairs], [d for _, d in pairs]
