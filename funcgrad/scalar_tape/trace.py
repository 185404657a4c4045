"""Reverse mode of functions of numbers: of Python's floats and of float64 scalars.

``pull : (float^n -> float) -> float^n -> (float, float -> float^n)``

A function of numbers is many operations, each of next to no work, so that what an operation costs
is what is remembered of it. `NumberTrace` interprets as `LinearizeTrace` does, but an operation
that has a rule for numbers (`at_numbers`) leaves neither tangents nor entries of a tape:
its result is a `NumberTracer`, which holds the value, the operands and the partial derivatives, and
adds up its cotangent itself. `operators` writes the operators of such tracers
out, formulas and all. What has no rule, or one that does not apply to these numbers, goes the way
of arrays, over the tape.

Tracers are neither made nor freed: a trace that has ended waits for the next function with all of
its tracers, unless somebody still holds one. That one is left to whom holds it, as a tracer of a
trace that has ended.

Left out: what is to be watched for, by `debug_nans` or for leaks, and whatever is not evaluated at
once. `linearize` treats it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, repeat, starmap
from operator import length_hint
from typing import Any

import numpy as np

from funcgrad.base import environment
from funcgrad.base.annotations import FlatFunction, Values
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.observers import OBSERVED, report_failure
from funcgrad.core.primitive import Linear, Primitive
from funcgrad.core.trace import (
    EVAL,
    Trace,
    Tracer,
    current_trace,
    enter_trace,
    function_trace,
    leave_trace,
)
from funcgrad.scalar_tape.rules import at_numbers, keeps_weak
from funcgrad.transforms.linearize import (
    LinearizeTrace,
    LinearizeTracer,
    LinearMap,
    accumulate,
    linearize_flat,
    pull_entry,
)

IS_ON = environment.is_on("FUNCGRAD_SCALAR_TAPE")
"""Whether functions of scalars are differentiated here."""

MAX_KEPT = 1 << 14
"""How many tracers a trace keeps for the next function."""

NOTHING = -0.0
"""A cotangent to which nothing has been added: adding it changes no number, not even a zero.

It is told from other zeros by identity: every sum is an object of its own.
"""

_DOUBLES = frozenset((float, np.float64))


class NumberTracer(Tracer):
    """A number, how it came about, and its cotangent.

    Attributes:
        number: The value, finite unless it came from an array.
        first: An operand that is traced; ``None`` for an argument of the function.
        first_slope: The partial derivative by it.
        second: Another one, or ``None``.
        second_slope: Likewise.
        is_strong: Without a second operand: whether the result is a float64 even if the operand is
            as weak as Python's floats.
        cotangent: What has been added up while pulling.
    """

    __slots__ = (
        "cotangent", "first", "first_slope", "is_strong", "number", "second", "second_slope",
    )  # fmt: skip
    owner: NumberTrace
    cotangent: float
    first: NumberTracer | None
    first_slope: float
    is_strong: bool
    number: float
    second: NumberTracer | None
    second_slope: float

    def __init__(self, trace: NumberTrace) -> None:
        self.owner = trace
        self.cotangent = NOTHING
        self.first = self.second = None

    @property
    def primal(self) -> Any:
        return self.number if self.owner.is_weak(self) else np.float64(self.number)

    @property
    def aval(self) -> ShapedArray:
        return aval_of(self.primal)

    def concrete(self) -> Any:
        return self.primal


class _EndedTrace(Trace):
    """The owner of tracers that somebody holds after the end."""

    __slots__ = ()

    def __init__(self, what: str) -> None:
        super().__init__(EVAL, what)
        self.is_live = False

    def is_weak(self, tracer: NumberTracer) -> bool:
        return False


Link = tuple[NumberTracer, Linear]
"""A number and the placeholder at which it goes into, or comes from, the way of arrays."""


class NumberTrace(LinearizeTrace):
    """Evaluates, and lets numbers remember what they came from.

    Attributes:
        tracers: All that were ever made, in the order in which they are taken.
        source: Gives the next one.
    """

    __slots__ = ("_crossings", "_is_weak", "_rest", "has_weak", "source", "tracers")

    def __init__(self) -> None:
        super().__init__(EVAL, "")
        self.tracers: list[NumberTracer] = []
        self._crossings: list[tuple[int, int | None, list[Link]]] = []

    def begin(self, what: str) -> None:
        """Take tracers from the first on."""
        self.what = self.tape.what = what
        self.is_live = self.tape.is_live = True
        self.has_weak = False
        self._is_weak: dict[int, bool] = {}
        self._rest: Iterator[NumberTracer] = iter(self.tracers)
        self.source = chain(self._rest, starmap(self._make, repeat(())))

    def _make(self) -> NumberTracer:
        tracer = NumberTracer(self)
        self.tracers.append(tracer)
        return tracer

    def arguments(self, primals: Values, is_active: Sequence[bool]) -> list[NumberTracer] | None:
        """Tracers for all arguments of the function, if all are finite numbers."""
        kinds = set(map(type, primals))
        if not (_DOUBLES.issuperset(kinds) and all(is_active)):
            return None
        numbers = list(map(float, primals))
        if not all(map(math.isfinite, numbers)):
            return None
        self.has_weak = float in kinds
        taken = list(islice(self.source, len(numbers)))
        if len(kinds) == 1:
            is_strong = not self.has_weak
            for tracer, number in zip(taken, numbers, strict=True):
                tracer.number = number
                tracer.is_strong = is_strong
        else:
            for tracer, number, x in zip(taken, numbers, primals, strict=True):
                tracer.number = number
                tracer.is_strong = type(x) is not float
        return taken

    @property
    def count(self) -> int:
        """How many tracers have been taken."""
        return len(self.tracers) - length_hint(self._rest)

    def argument(self, x: Any) -> NumberTracer:
        """A tracer for an argument of the function."""
        tracer = next(self.source)
        tracer.number = float(x)
        tracer.is_strong = is_strong = type(x) is not float
        self.has_weak = self.has_weak or not is_strong
        return tracer

    def is_weak(self, tracer: NumberTracer) -> bool:
        """Whether the value is one of Python's floats; else it is a float64."""
        if not self.has_weak:
            return False
        known = self._is_weak
        # Operands come before results, so one pass decides; it goes on where the last one ended.
        for each in self.tracers[len(known) : self.count]:
            first, second = each.first, each.second
            if second is not None:
                known[id(each)] = known[id(first)] and known[id(second)]
            else:
                known[id(each)] = not each.is_strong and (first is None or known[id(first)])
        return known[id(tracer)]

    numbers = frozenset((*_DOUBLES, NumberTracer))

    def process_numbers(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        rule = at_numbers(primitive)
        if rule is not None and len(args) < 3:
            found = self._apply_to_numbers(primitive, rule, args)
            if found is not None:
                return found
        links: dict[int, Link] = {}
        tracers: list[Any] = []
        for arg in args:
            if type(arg) is NumberTracer and arg.owner is self:
                arg = self._as_array(arg, links)
            tracers.append(arg)
        if links:
            self._crossings.append((self.count, len(self.tape.entries), [*links.values()]))
        return self.process(primitive, tuple(tracers), is_crossing=True)

    def _as_array(self, tracer: NumberTracer, links: dict[int, Link]) -> LinearizeTracer:
        """A number on the way of arrays, the same each time for one operation."""
        link = links.get(id(tracer))
        if link is None:
            link = links[id(tracer)] = tracer, self.tape.new_slot(tracer.aval)
        return LinearizeTracer(self, tracer.primal, link[1])

    def _as_number(self, tracer: LinearizeTracer) -> NumberTracer:
        """A result of the way of arrays that is a number."""
        position = self.count
        number = self.argument(tracer.primal)
        self._crossings.append((position, None, [(number, tracer.slot)]))
        return number

    def _apply_to_numbers(
        self, primitive: Primitive, rule: Callable[..., Any], args: tuple[Any, ...]
    ) -> NumberTracer | None:
        numbers: list[float] = []
        active: list[Any] = []
        is_strong = not keeps_weak(primitive)
        for arg in args:
            kind = type(arg)
            if kind is NumberTracer and arg.owner is self:
                numbers.append(arg.number)
                active.append(arg)
                continue
            is_ours = kind is LinearizeTracer and arg.owner is self
            value = arg.primal if is_ours else arg
            if type(value) not in _DOUBLES:
                return None
            numbers.append(float(value))
            active.append(arg if is_ours else None)
            is_strong = is_strong or (not is_ours and kind is not float)
        given = [i for i, arg in enumerate(active) if arg is not None]
        if not given or (len(given) == 2 and is_strong):
            return None
        found = rule(*numbers)
        if found is None:
            return None
        operands = [
            active[i] if type(active[i]) is NumberTracer else self._as_number(active[i])
            for i in given
        ]
        out = next(self.source)
        out.number = float(found[0])
        out.first = operands[0]
        out.first_slope = found[1 + given[0]]
        out.is_strong = is_strong
        if len(given) == 2:
            out.second = operands[1]
            out.second_slope = found[2]
        return out

    def forget(self, n_arguments: int) -> None:
        """Let the arguments of the function be without cotangents, as all others are."""
        for tracer in self.tracers[:n_arguments]:
            tracer.cotangent = NOTHING

    def split(self, value: Any) -> tuple[Any, Any]:
        if type(value) is NumberTracer and value.owner is self:
            return value.primal, value
        return super().split(value)

    def pull(self, outputs: Sequence[Any], cts: Values, n_arguments: int) -> list[Any]:
        """Let cotangents of results become those of all tracers and tape positions.

        Args:
            outputs: The tracers or placeholders of the results, or ``None``.
            cts: Their cotangents, or ``None``.
            n_arguments: How many of the tracers are arguments of the function.
        Returns: Cotangents by tape position.
        """
        pending: list[Any] = [None] * self.tape.length
        for output, ct in zip(outputs, cts, strict=True):
            if ct is None or output is None:
                continue
            if type(output) is NumberTracer:
                output.cotangent += float(ct)
            else:
                accumulate(pending, output.index, ct)
        tracers, end = self.tracers, self.count
        entries, n_entries = self.tape.entries, len(self.tape.entries)
        for position, first_entry, links in reversed(self._crossings):
            if first_entry is None:
                ((number, slot),) = links
                _pull_numbers(tracers[position + 1 : end])
                if number.cotangent is not NOTHING:
                    accumulate(pending, slot.index, number.cotangent)
                    number.cotangent = NOTHING
            else:
                _pull_numbers(tracers[position:end])
                # Cotangents are added up one after the other, as if there were one tape.
                for number, slot in links:
                    if number.cotangent is not NOTHING:
                        accumulate(pending, slot.index, number.cotangent)
                for entry in reversed(entries[first_entry:n_entries]):
                    pull_entry(entry, pending)
                n_entries = first_entry
                for number, slot in links:
                    if pending[slot.index] is not None:
                        number.cotangent = float(pending[slot.index])
            end = position
        _pull_numbers(tracers[n_arguments:end])
        for entry in reversed(entries[:n_entries]):
            pull_entry(entry, pending)
        return pending


def _pull_numbers(tracers: Sequence[NumberTracer]) -> None:
    """Pass the cotangents of operations on to the operands, and forget the operations."""
    nothing = NOTHING
    for tracer in reversed(tracers):
        ct = tracer.cotangent
        first = tracer.first
        second = tracer.second
        if ct:
            if second is not None:
                second.cotangent += ct * tracer.second_slope
                tracer.second = None
            first.cotangent += ct * tracer.first_slope  # type: ignore[union-attr]
            tracer.first = None
            tracer.cotangent = nothing
            continue
        # A cotangent of zero stays what it is, as in all rules.
        if ct is not nothing:
            if second is not None:
                second.cotangent += ct
            first.cotangent += ct  # type: ignore[union-attr]
            tracer.cotangent = nothing
        tracer.first = tracer.second = None


# Preparations before the first function of numbers.

_preparations: list[Callable[[], None]] = []


def prepare_by(prepare: Callable[[], None]) -> None:
    """Have something done before the first trace of numbers."""
    _preparations.append(prepare)


# Ended traces, for the next functions.

_MAY_KEEP = hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether it is known of an object that nobody else holds it."""
_ended: list[NumberTrace] = []
_MOST_ENDED = 32
"""More functions are not differentiated at once, mostly."""


def _references(objects: list[Any], count: int) -> Iterator[int]:
    """How many references there are to each of the first so many objects."""
    return map(sys.getrefcount, islice(objects, count))


_ALONE = next(_references([object()], 1)) if _MAY_KEEP else 0


def _begun(what: str) -> NumberTrace:
    try:
        trace = _ended.pop()
    except IndexError:
        while _preparations:
            _preparations.pop()()
        trace = NumberTrace()
    trace.begin(what)
    return trace


def _keep(trace: NumberTrace) -> None:
    """Let a trace whose cotangents were pulled wait for the next function."""
    if not _MAY_KEEP:
        return
    count, tracers = trace.count, trace.tracers
    del trace._rest, trace.source
    del tracers[MAX_KEPT:]
    if trace.tape.length:
        # Somebody may hold a tracer of an array.
        del tracers[count:]
        ended, trace = trace, NumberTrace()
        trace.tracers, ended.tracers = tracers, []
        for tracer in tracers:
            tracer.owner = trace
        trace.what = ended.what
        ended._crossings.clear()
    # Nobody knows the tracers that were not taken this time.
    if max(_references(tracers, count), default=0) > _ALONE:
        ended_trace: Any = _EndedTrace(trace.what)
        for k, n in enumerate(list(_references(tracers, count))):
            if n > _ALONE:
                tracers[k].owner = ended_trace
                tracers[k] = NumberTracer(trace)
    if len(_ended) < _MOST_ENDED:
        _ended.append(trace)


class NumberMap:
    """The derivative of a function of numbers, which is pulled once.

    Args:
        trace: Where the function was interpreted.
        inputs: The tracers of numbers, placeholders of other arguments, ``None`` for those without
            tangents.
        outputs: Likewise, of the results.
        n_arguments: How many of the inputs are numbers.
    """

    __slots__ = ("_inputs", "_n_arguments", "_outputs", "_trace")

    def __init__(
        self, trace: NumberTrace, inputs: list[Any], outputs: list[Any], n_arguments: int
    ) -> None:
        self._trace = trace
        self._inputs = inputs
        self._outputs = outputs
        self._n_arguments = n_arguments

    def pull(self, cts: Values) -> list[Any]:
        """Cotangents of the inputs for cotangents of the outputs (``None`` for zeros)."""
        trace, inputs, nothing = self._trace, self._inputs, NOTHING
        pending = trace.pull(self._outputs, cts, self._n_arguments)
        found: list[Any]
        if self._n_arguments == len(inputs):
            found = [x.cotangent for x in inputs]
            found = [None if ct is nothing else ct for ct in found]
        else:
            found = [
                None
                if x is None or (type(x) is NumberTracer and x.cotangent is nothing)
                else x.cotangent
                if type(x) is NumberTracer
                else pending[x.index]
                for x in inputs
            ]
        trace.forget(self._n_arguments)
        self._inputs, self._outputs = [], []
        del inputs
        _keep(trace)
        return found


def linearize_once(
    function: FlatFunction, primals: Values, is_active: Sequence[bool], what: str
) -> tuple[list[Any], LinearMap | NumberMap]:
    """Linearize a function as `linearize_flat` does, to pull the linear map at once, and only once.

    Args:
        function: Returns a flat list.
        primals: The point.
        is_active: Which arguments have tangents.
        what: How messages call the transformation.
    """
    if current_trace() is not EVAL or not IS_ON or OBSERVED.computed or OBSERVED.ended:
        return linearize_flat(function, primals, is_active, what)
    trace = _begun(what)
    inputs: list[Any]
    args: list[Any]
    numbers = trace.arguments(primals, is_active)
    if numbers is None:
        inputs, args = [], []
        for x, active in zip(primals, is_active, strict=True):
            if not active:
                inputs.append(None)
                args.append(x)
            elif type(x) in _DOUBLES and math.isfinite(x):
                inputs.append(trace.argument(x))
                args.append(inputs[-1])
            else:
                slot = trace.tape.new_slot(aval_of(x))
                inputs.append(slot)
                args.append(LinearizeTracer(trace, x, slot))
    else:
        inputs = args = numbers
    n_arguments = trace.count
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
        trace.is_live = trace.tape.is_live = False
    pairs = [trace.split(result) for result in results]
    outputs = [slot for _, slot in pairs]
    return [p for p, _ in pairs], NumberMap(trace, inputs, outputs, n_arguments)
