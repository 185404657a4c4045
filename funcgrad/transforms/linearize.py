"""Linearisation and reverse mode.

``linearize : (a -> b) -> a -> (b, T a -o T b)``

Two traces work together. `LinearizeTrace` interprets the user's function: it computes primal
results at once, under the parent trace, and runs the JVP rule of every primitive that has an
active argument with *tangents that have no values*. The operations that a rule applies to such
tangents are seen by `TangentTrace`, which records them on a tape together with the residuals they
need; operations on primals alone go to the parent. So there is one pass, one rule, and no program
is built when everything is concrete.

A tape is a linear function. Pushing tangents forward through it gives the derivative; pulling
cotangents backwards through it, with the transpose rules, gives the gradient:
``transpose : (T a -o T b) -> (CT b -o CT a)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from funcgrad.core.avals import INTERNED, ShapedArray, aval_of
from funcgrad.core.axes import DividedAxis, axes_in_scope, tracked_axes
from funcgrad.core.facets import Facet
from funcgrad.core.observers import (
    OBSERVED,
    Location,
    current_location,
    report,
    report_end,
    report_failure,
)
from funcgrad.core.primitive import Linear, Primitive
from funcgrad.core.trace import (
    EVAL,
    Trace,
    Tracer,
    current_trace,
    enter_trace,
    function_trace,
    leave_trace,
    run_under,
)

linearize: Facet[Callable[..., tuple[Any, Any]] | None] = Facet("linearize", None)
"""``linearize(primals, tangents)``: as `Primitive.jvp`, where tangents are placeholders.

Primitives that hold programs have it: it splits the program into one that computes the primal
results at once, and a linear one, which becomes a single entry of the tape.
"""

separate: Facet[Callable[..., list[Any] | None] | None] = Facet("separate", None)
"""``separate(args, is_linear)``: partial evaluation, where some arguments are placeholders.

Primitives that hold programs have it: results that do not depend on placeholders are computed, the
others become one entry of the tape. It returns ``None`` if all results depend on placeholders: the
operation itself is then the entry.
"""


_new: Any = object.__new__


class TangentTracer(Tracer):
    """A tangent without a value: its slot on a tape, a placeholder."""

    __slots__ = ("slot",)

    def __init__(self, trace: Trace, slot: Linear) -> None:
        self.owner = trace
        self.slot = slot

    @property
    def aval(self) -> ShapedArray:
        return self.slot.aval


class TapeEntry:
    """One linear operation: ``outputs = primitive inputs``; residual inputs are values.

    Args:
        primitive: The operation.
        inputs: Its arguments: placeholders and residuals.
        first: Tape position of the first result. Placeholders refer to the entries that compute
            them, not vice versa: reference counting frees a tape with its last reader.
        source: The user's line.
    """

    __slots__ = ("count", "first", "inputs", "primitive", "source")

    def __init__(
        self, primitive: Primitive, inputs: list[Any], first: int, source: Location | None = None
    ) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.first = first
        self.count = 1
        self.source = source

    @property
    def outputs(self) -> range:
        """Tape positions of the results."""
        return range(self.first, self.first + self.count)

    def out_avals(self) -> list[ShapedArray]:
        """Types of the outputs."""
        avals = [x.aval if type(x) is Linear else aval_of(x) for x in self.inputs]
        result = self.primitive.abstract_eval(*avals)
        return result if self.primitive.multiple_results else [result]


class TangentTrace(Trace):
    """Records what is applied to tangents; passes everything else on.

    Attributes:
        separates: Whether operations that hold programs are evaluated partially (`separate`): a
            user's function, unlike a rule, may pass tangents and values to the same one.
    """

    __slots__ = ("entries", "keeps_sources", "length", "separates")

    def __init__(self, parent: Trace, what: str) -> None:
        super().__init__(parent, what)
        self.entries: list[TapeEntry] = []
        self.length = 0
        self.separates = False
        # Taking a location costs more than an entry, so it is only done where it will be seen.
        self.keeps_sources = bool(OBSERVED.computed) or parent.is_staged

    def new_slot(self, aval: ShapedArray) -> Linear:
        slot: Linear = _new(Linear)  # without a call, as most objects here
        slot._aval, slot.index = aval, self.length
        self.length += 1
        return slot

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        inputs, is_linear = [], False
        for arg in args:
            if type(arg) is TangentTracer and arg.owner is self:
                inputs.append(arg.slot)
                is_linear = True
            else:
                inputs.append(arg)
        if not is_linear:
            return self.parent.process(primitive, args)  # type: ignore[union-attr]
        source = current_location() if self.keeps_sources else None
        entry = TapeEntry(primitive, inputs, self.length, source)
        if not primitive.multiple_results:
            self.entries.append(entry)
            slot = Linear(entry, self.length)
            self.length += 1
            return TangentTracer(self, slot)
        if self.separates:
            separated = self._separated(primitive, args)
            if separated is not None:
                return separated
        self.entries.append(entry)
        avals = entry.out_avals()
        entry.count = len(avals)
        return [TangentTracer(self, self.new_slot(aval)) for aval in avals]

    def _separated(self, primitive: Primitive, args: tuple[Any, ...]) -> list[Any] | None:
        rule = separate(primitive)
        if rule is None:
            return None
        is_linear = [type(x) is TangentTracer and x.owner is self for x in args]
        token, outer = enter_trace(current_trace()), function_trace.set(None)
        self.separates = False  # all that the rule applies to placeholders is linear
        try:
            enter_trace(self)
            return rule(args, is_linear)
        finally:
            self.separates = True
            function_trace.reset(outer)
            leave_trace(token)


class LinearizeTracer(Tracer):
    """A primal value of the parent trace and the placeholder of its tangent on the tape.

    Args:
        trace: The interpreter that made it.
        primal: The value.
        slot: The placeholder, with the tape position.
        aval: The type of the value, if it is known.
    """

    __slots__ = ("aval", "primal", "slot")
    owner: LinearizeTrace
    aval: ShapedArray

    def __init__(
        self, trace: LinearizeTrace, primal: Any, slot: Linear, aval: ShapedArray | None = None
    ) -> None:
        self.owner = trace
        self.primal = primal
        self.aval = aval_of(primal) if aval is None else aval
        self.slot = slot

    def concrete(self) -> Any:
        return self.primal.concrete() if isinstance(self.primal, Tracer) else self.primal


class LinearizeTrace(Trace):
    """Computes primals under the parent and records tangents on a tape.

    A subclass interprets operations of numbers in its own way (`funcgrad.scalar_tape`).

    Args:
        parent: The trace that computes the primals.
        what: How messages call the transformation.
    """

    __slots__ = ("tape",)
    numbers: ClassVar[frozenset[type]] = frozenset()
    """Types of scalar primals and tracers, whose operations a subclass interprets in
    `process_numbers`. Operations that combine them with arrays it passes back to `process`, with
    ``is_crossing``."""

    def __init__(self, parent: Trace, what: str) -> None:
        super().__init__(parent, what)
        self.tape = TangentTrace(parent, what)

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], is_crossing: bool = False
    ) -> Any:
        numbers = self.numbers
        primals: list[Any] = []
        slots: list[Linear | None] = []
        is_active, has_values = False, self.parent is EVAL
        for arg in args:
            if type(arg) is LinearizeTracer and arg.owner is self:
                primal = arg.primal
                if type(primal) in numbers and not is_crossing:
                    return self.process_numbers(primitive, args)
                primals.append(primal)
                slots.append(arg.slot)
                is_active = True
                continue
            if isinstance(arg, Tracer):
                if type(arg) in numbers and arg.owner is self:
                    return self.process_numbers(primitive, args)
                has_values = False
            primals.append(arg)
            slots.append(None)
        if not is_active:
            return self.parent.process(primitive, args)  # type: ignore[union-attr]
        if has_values and not OBSERVED.computed:
            rule = getattr(primitive.jvp, "differential", None)
            found = None
            if rule is not None:
                token = enter_trace(current_trace())
                try:
                    enter_trace(EVAL)
                    found = rule(primitive, primals, slots)
                finally:
                    leave_trace(token)
            if found is not None:
                out, operation, operands = found
                if operation is None:
                    return out if operands is None else LinearizeTracer(self, out, operands)
                # An eager gradient spends its time here, so three objects are made without calls.
                is_array = type(out) is np.ndarray
                aval = INTERNED.get((out.shape, out.dtype)) if is_array else None
                if aval is None:
                    aval = aval_of(out)
                tape = self.tape
                entry = _new(TapeEntry)
                entry.primitive, entry.inputs, entry.source = operation, operands, None
                entry.first, entry.count = tape.length, 1
                tape.entries.append(entry)
                slot = _new(Linear)
                slot._aval, slot.index = aval, tape.length
                tape.length += 1
                tracer = _new(LinearizeTracer)
                tracer.owner, tracer.primal, tracer.aval, tracer.slot = self, out, aval, slot
                return tracer
        return self._interpret(primitive, primals, slots)

    def process_numbers(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        """Interpret an operation some of whose arguments are numbers."""
        raise NotImplementedError

    def _interpret(
        self, primitive: Primitive, primals: list[Any], slots: list[Linear | None]
    ) -> Any:
        """Apply the JVP rule to tangents that have no values."""
        tangents = [None if slot is None else TangentTracer(self.tape, slot) for slot in slots]
        n_entries = len(self.tape.entries)
        token = enter_trace(current_trace())
        try:
            enter_trace(self.tape)
            # Read the facet without calling it: eager gradients do so for every operation.
            rule = getattr(primitive, linearize.name, None) or primitive.jvp
            out, out_dot = rule(primals, tangents)
        finally:
            leave_trace(token)
        if OBSERVED.computed and not primitive.is_composite:
            residuals = [x for e in self.tape.entries[n_entries:] for x in e.inputs]
            what = f"the derivative of {primitive.name}"
            report(what, [*primals, *slots], residuals, primitive)
        if primitive.multiple_results:
            return [self.pair(x, t) for x, t in zip(out, out_dot, strict=True)]
        if type(out_dot) is TangentTracer:
            return LinearizeTracer(self, out, out_dot.slot)
        return out

    def pair(self, primal: Any, tangent: Any) -> Any:
        """A tracer, or the primal alone if its tangent does not depend on any input."""
        if type(tangent) is TangentTracer:
            return LinearizeTracer(self, primal, tangent.slot)
        return primal

    def split(self, value: Any) -> tuple[Any, Linear | None]:
        """Primal of a result and the placeholder of its tangent, ``None`` for zero."""
        if type(value) is LinearizeTracer and value.owner is self:
            return value.primal, value.slot
        return value, None


class Point(NamedTuple):
    """Point at which a linear map is the derivative of a function of lanes of a mesh.

    Args:
        inputs: The inputs.
        outputs: The outputs.
        axes: The axes of the mesh.
    """

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    axes: Sequence[DividedAxis]


class LinearMap:
    """A recorded linear function, from tangents of inputs to tangents of outputs.

    Args:
        inputs: Placeholders of the inputs; ``None`` for inputs without tangents.
        entries: The tape.
        length: Number of positions on it.
        outputs: Placeholders of the outputs; ``None`` where the tangent is zero.
        point: The inputs and the outputs at which it is the derivative, and the axes of a mesh
            along which cotangents are equal in as many lanes as these.
    """

    __slots__ = ("entries", "inputs", "length", "outputs", "point")

    def __init__(
        self,
        inputs: Sequence[Linear | None],
        entries: Sequence[TapeEntry],
        length: int,
        outputs: Sequence[Linear | None],
        point: Point | None = None,
    ) -> None:
        self.inputs = inputs
        self.point = point
        self.entries = entries
        self.length = length
        self.outputs = outputs

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of the outputs for tangents of the inputs (``None`` for zeros)."""
        values: list[Any] = [None] * self.length
        for slot, tangent in zip(self.inputs, tangents, strict=True):
            if slot is not None:
                values[slot.index] = tangent
        for entry in self.entries:
            args = [_read(x, values) for x in entry.inputs]
            result = entry.primitive.bind(*args)
            if entry.primitive.multiple_results:
                for index, value in zip(entry.outputs, result, strict=True):
                    values[index] = value
            else:
                values[entry.first] = result
        return [None if slot is None else values[slot.index] for slot in self.outputs]

    def pull(self, cts: Sequence[Any]) -> list[Any]:
        """Cotangents of the inputs for cotangents of the outputs (``None`` for zeros)."""
        point = self.point
        if point is not None:
            cts = _by_lanes(
                lambda axis, ct, x: axis.varied_like(ct, x), point.axes, cts, point.outputs
            )
        pending: list[Any] = [None] * self.length
        for slot, ct in zip(self.outputs, cts, strict=True):
            if slot is not None and ct is not None:
                accumulate(pending, slot.index, ct)
        token = function_trace.set(None)
        try:
            for entry in reversed(self.entries):
                pull_entry(entry, pending)
        finally:
            function_trace.reset(token)
        found = [None if slot is None else pending[slot.index] for slot in self.inputs]
        if point is None:
            return found
        return _by_lanes(lambda axis, ct, x: axis.restored(ct, x), point.axes, found, point.inputs)


def _by_lanes(
    rule: Callable[..., Any], axes: Sequence[DividedAxis], cts: Sequence[Any], values: Sequence[Any]
) -> list[Any]:
    """Cotangents that vary along the axes where the values do, by a rule for one axis."""
    found = list(cts)
    for axis in axes:
        pairs = zip(found, values, strict=True)
        found = [None if ct is None else rule(axis, ct, x) for ct, x in pairs]
    return found


def _read(argument: Any, values: list[Any]) -> Any:
    if type(argument) is not Linear:
        return argument
    value = values[argument.index]
    assert value is not None, "inputs of a linear map with zero tangents must be instantiated"
    return value


def accumulate(pending: list[Any], index: int, ct: Any) -> None:
    """Add a cotangent to the sum at a tape position."""
    known = pending[index]
    pending[index] = ct if known is None else known + ct


def pull_entry(entry: TapeEntry, pending: list[Any]) -> None:
    """Pass the cotangents of the outputs of an operation on to its inputs."""
    primitive = entry.primitive
    if primitive.multiple_results:
        ct: Any = [pending[index] for index in entry.outputs]
        if all(c is None for c in ct):
            return
        for index in entry.outputs:
            pending[index] = None
        ct = [np.float64(c) if type(c) is float else c for c in ct]
    else:
        ct = pending[entry.first]
        if ct is None:
            return
        pending[entry.first] = None
        if type(ct) is float:  # from the scalar interpreter; rules expect NumPy scalars
            ct = np.float64(ct)
    arg_cts = primitive.transpose(ct, *entry.inputs)
    if OBSERVED.computed and not primitive.is_composite:
        given = ct if primitive.multiple_results else [ct]
        what = f"the transpose of {primitive.name}"
        report(what, [*given, *entry.inputs], arg_cts, primitive)
    for argument, arg_ct in zip(entry.inputs, arg_cts, strict=True):
        if arg_ct is not None and type(argument) is Linear:
            known = pending[argument.index]
            total = pending[argument.index] = arg_ct if known is None else known + arg_ct
            if OBSERVED.computed and known is not None:
                report("the sum of cotangents", [known, arg_ct], [total], None)


def linearize_flat(
    function: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    is_active: Sequence[bool],
    what: str,
) -> tuple[list[Any], LinearMap]:
    """Results of a function of flat arguments, and its derivative as a linear map.

    Args:
        function: Returns a flat list.
        primals: The point.
        is_active: Which arguments have tangents.
        what: How messages call the transformation.
    """
    trace = LinearizeTrace(current_trace(), what)
    tape = trace.tape
    args: list[Any] = list(primals)
    inputs: list[Linear | None] = [None] * len(args)
    for i, (primal, active) in enumerate(zip(primals, is_active, strict=True)):
        if active:
            is_array = type(primal) is np.ndarray
            aval = INTERNED.get((primal.shape, primal.dtype)) if is_array else None
            if aval is None:
                aval = aval_of(primal)
            inputs[i] = slot = tape.new_slot(aval)
            args[i] = LinearizeTracer(trace, primal, slot, aval)
    # This repeats `run_under`, since the tape has to end together with the trace.
    token, outer = enter_trace(current_trace()), function_trace.set(function_trace.get())
    try:
        enter_trace(trace)
        function_trace.set(trace)
        results = list(function(*args))
    except Exception as error:
        report_failure(error, trace)
        raise
    finally:
        function_trace.reset(outer)
        leave_trace(token)
        trace.is_live = tape.is_live = False
    pairs = [trace.split(result) for result in results]
    outs, outputs = [p for p, _ in pairs], [slot for _, slot in pairs]
    # Take the tape from the trace: leaked tracers refer to it, and would keep all residuals.
    entries, tape.entries = tape.entries, []
    del args, results
    report_end(trace, tape)
    axes = tracked_axes() if axes_in_scope() else None
    point = Point(primals, outs, axes) if axes else None
    return outs, LinearMap(inputs, entries, tape.length, outputs, point)


def record_linear(
    function: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    is_linear: Sequence[bool],
    avals: Sequence[ShapedArray],
    what: str,
    separates: bool = False,
) -> tuple[list[Any], LinearMap]:
    """Record a function that is linear in some of its arguments.

    Args:
        function: Returns a flat list.
        args: Values of the other arguments; ignored where ``is_linear``.
        is_linear: Which arguments it is linear in.
        avals: Types of all arguments.
        what: How messages call the transformation.
        separates: Whether the function is the user's (see `TangentTrace`).
    Returns: Results that do not depend on the linear arguments (``None`` for those that do), and
        the linear map to those that do.
    """
    tape = TangentTrace(current_trace(), what)
    tape.separates = separates
    inputs: list[Linear | None] = []
    full: list[Any] = []
    for arg, linear, aval in zip(args, is_linear, avals, strict=True):
        slot = tape.new_slot(aval) if linear else None
        inputs.append(slot)
        full.append(arg if slot is None else TangentTracer(tape, slot))
    results = list(run_under(tape, function, *full))
    slots = [r.slot if type(r) is TangentTracer and r.owner is tape else None for r in results]
    known = [r if s is None else None for r, s in zip(results, slots, strict=True)]
    del full, results
    report_end(tape)
    return known, LinearMap(inputs, tape.entries, tape.length, slots)
