"""Taylor mode: values with the coefficients of their Taylor series.

``taylor : (a -> b) -> coefficients of a -> coefficients of b``

For ``x(t) = sum x_k t^k``, ``y = f(x)`` has ``y' = f'(x) x'``: coefficient ``k`` of ``y`` is
coefficient ``k - 1`` of the tangent that the JVP rule of ``f`` gives for ``x'``, divided by ``k``.
Rules are run once per operation, on series whose coefficients are computed when they are asked
for. What a rule applies to the same values is the same series, which closes the differential
equations: the rule of `sin` applies `cos` to ``x``, whose rule applies `sin` to ``x``. So a
recurrence of quadratic cost is derived for every operation whose rules lead back to it, and one of
cubic cost for chains of others, such as `digamma` and its derivatives.

Two classes are simpler:

* affine operations, whose tangent does not depend on the values that change, as their rules show:
  the coefficients go through the operations of the tangent one by one;
* bilinear ones, which say so: sums of products of coefficients (Cauchy).

Quotients have a recurrence of their own, and operations that hold programs pass series on to these
(`funcgrad.higher_order.series`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.facets import Facet
from funcgrad.core.observers import report_end
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Program, evaluate
from funcgrad.core.trace import (
    Trace,
    Tracer,
    current_trace,
    enter_trace,
    function_trace,
    leave_trace,
    run_under,
)
from funcgrad.transforms.programs import stage_closed

Term = Callable[[int], Any]

taylor: Facet[Callable[..., Any] | None] = Facet("taylor", None)
"""``taylor(args, order)``: series of the results of an operation that holds programs.

Arguments and results are lists of coefficients from order 0, ``None`` for zeros; what has no
series is a list of one.
"""

taylor_term: Facet[Callable[..., Any] | None] = Facet("taylor_term", None)
"""``taylor_term(k, out, args)``: the coefficient of a power in the series of the result.

A recurrence, where ``out(j)`` for ``j < k`` and ``arg(j)`` give coefficients, ``None`` for zeros.
Without one it is derived from the JVP rule.
"""

is_bilinear = Facet("is_bilinear", False)
"""Whether an operation is linear in each of two arguments, and zero where either is zero."""


class TaylorTracer(Tracer):
    """A series: coefficients that are values of the parent trace, ``None`` where zero."""

    __slots__ = ("_aval", "index", "known", "maker")

    def __init__(self, trace: TaylorTrace, aval: ShapedArray, maker: Any, index: int = 0) -> None:
        self.owner = trace
        self._aval = aval
        self.maker = maker
        self.index = index
        self.known: list[Any] = []

    @property
    def aval(self) -> ShapedArray:
        return self._aval

    def concrete(self) -> Any:
        value = self.term(0)
        return value.concrete() if isinstance(value, Tracer) else value

    def term(self, k: int) -> Any:
        """The coefficient of a power."""
        while len(self.known) <= k:
            self.maker.extend(k)
        return self.known[k]

    def dense(self, k: int) -> Any:
        """The coefficient, with zeros made an array."""
        return _dense(self.term(k), self._aval)


def _dense(value: Any, aval: ShapedArray) -> Any:
    return np.broadcast_to(np.zeros((), aval.dtype), aval.shape)[()] if value is None else value


class _Given:
    """A series that is given: zero beyond its coefficients."""

    def __init__(self, trace: TaylorTrace, terms: Sequence[Any], aval: ShapedArray) -> None:
        self.out = TaylorTracer(trace, aval, self)
        self.out.known.extend(terms)

    def extend(self, k: int) -> None:
        self.out.known.append(None)


class _Slope:
    """The derivative of a series."""

    def __init__(self, of: TaylorTracer) -> None:
        self.of = of
        self.out = TaylorTracer(of.owner, of.aval.strong(), self)  # type: ignore[arg-type]

    def extend(self, k: int) -> None:
        n = len(self.out.known) + 1
        term = self.of.term(n)
        self.out.known.append(term if term is None or n == 1 else below(self.of, lambda: n * term))


class _Application:
    """An operation on series.

    Args:
        trace: Interprets it.
        primitive: The operation.
        args: Its arguments, some of them series.
        avals: Types of its results.
    """

    def __init__(
        self,
        trace: TaylorTrace,
        primitive: Primitive,
        args: tuple[Any, ...],
        avals: Sequence[ShapedArray],
    ) -> None:
        self.trace = trace
        self.primitive = primitive
        self.args = args
        self.active = [i for i, a in enumerate(args) if trace.is_series(a)]
        self.outs = [TaylorTracer(trace, aval, self, i) for i, aval in enumerate(avals)]
        self.rule: Callable[[int], list[Any]] | None = None

    def extend(self, k: int) -> None:
        """Compute the next coefficients of all results; of programs all up to ``k``."""
        n = len(self.outs[0].known)
        if taylor(self.primitive) is not None:
            self._extend_all(k)
            return
        if n == 0:
            found = self._bind([a.dense(0) if self.trace.is_series(a) else a for a in self.args])
        else:
            if self.rule is None:
                self.rule = self._find_rule()
            rule = self.rule
            found = below(self.outs[0], lambda: rule(n))
        for out, term in zip(self.outs, found, strict=True):
            if len(out.known) == n:
                out.known.append(term)

    def _extend_all(self, k: int) -> None:
        rule = taylor(self.primitive)
        assert rule is not None
        args = [
            [a.term(j) for j in range(k + 1)] if self.trace.is_series(a) else [a] for a in self.args
        ]
        found = below(self.outs[0], lambda: rule(args, k))
        for out, terms in zip(self.outs, found, strict=True):
            out.known[:] = [*terms, *(None for _ in range(k + 1 - len(terms)))]

    def _bind(self, values: Sequence[Any]) -> list[Any]:
        out = below(self.outs[0], lambda: self.primitive.bind(*values))
        return list(out) if self.primitive.multiple_results else [out]

    def _find_rule(self) -> Callable[[int], list[Any]]:
        """How coefficients beyond the first are computed."""
        term = taylor_term(self.primitive)
        if term is not None:
            return self._by_recurrence(term)
        probe = _Probe(self, self.active)
        if probe.is_affine:
            return probe.affine_term
        if is_bilinear(self.primitive) and len(self.active) == 2:
            parts = [_Probe(self, [i]) for i in self.active]
            return lambda k: _bilinear_term(parts, k)
        return self._by_differential_equation()

    def _by_recurrence(self, term: Callable[..., Any]) -> Callable[[int], list[Any]]:
        def of_constant(value: Any) -> Term:
            return lambda k: None if k else value

        args = [a.term if self.trace.is_series(a) else of_constant(a) for a in self.args]
        return lambda k: [term(k, self.outs[0].term, args)]

    def _by_differential_equation(self) -> Callable[[int], list[Any]]:
        slopes = [self.trace.slope(a) if self.trace.is_series(a) else None for a in self.args]
        dots = self.trace.derive(self.primitive, self.args, slopes)

        def terms(k: int) -> list[Any]:
            found = [d.term(k - 1) if self.trace.is_series(d) else None for d in dots]
            return [None if t is None else t if k == 1 else t / k for t in found]

        return terms


class _Probe:
    """The tangent of an operation along some of its arguments, as operations on placeholders.

    Args:
        application: The operation.
        active: Positions of the arguments that change.
    """

    def __init__(self, application: _Application, active: Sequence[int]) -> None:
        trace = application.trace
        self.args = application.args
        self.active = active
        self.values: dict[int, TaylorTracer] = {}
        self.tangents: dict[int, TaylorTracer] = {}
        values, tangents = list(self.args), [None] * len(self.args)
        for i in application.active:
            # The result's operations are asked for types only.
            values[i] = self.values[i] = _Given(
                trace, [self.args[i].term(0)], self.args[i].aval
            ).out
        for i in active:
            aval = self.args[i].aval.strong()
            tangents[i] = self.tangents[i] = _Given(trace, [], aval).out  # type: ignore[call-overload]
        self.dots = trace.derive(application.primitive, values, tangents)
        moving = {id(self.values[i]) for i in active}
        self.is_affine = not any(self._reads(d, moving) for d in self.dots)

    def _reads(self, value: Any, moving: set[int]) -> bool:
        """Whether a value is computed from one of the placeholders."""
        waiting, seen = [value], set()
        while waiting:
            x = waiting.pop()
            if id(x) in moving:
                return True
            if isinstance(x, TaylorTracer) and id(x) not in seen:
                seen.add(id(x))
                waiting.extend(getattr(x.maker, "args", ()))
        return False

    def affine_term(self, k: int) -> list[Any]:
        """Coefficients of the results if nothing else changes."""
        return self.tangent(
            {i: self.args[i].term(k) for i in self.active}, dict.fromkeys(self.values, 0)
        )

    def tangent(self, changes: dict[int, Any], orders: dict[int, int]) -> list[Any]:
        """Tangents of the results.

        Args:
            changes: Tangents of the arguments that change.
            orders: Which coefficients stand for the values of all that are series.
        """
        if all(change is None for change in changes.values()):
            return [None] * len(self.dots)
        known: dict[int, Any] = {}
        for i, placeholder in self.tangents.items():
            known[id(placeholder)] = _dense(changes[i], placeholder.aval)
        for i, placeholder in self.values.items():
            known[id(placeholder)] = self.args[i].dense(orders[i])
        return [_run(d, known) for d in self.dots]


def _run(value: Any, known: dict[int, Any]) -> Any:
    """Evaluate what was computed of placeholders, for their values."""
    if not isinstance(value, TaylorTracer):
        return value
    found = known.get(id(value))
    if found is None:
        maker = value.maker
        out = maker.primitive.bind(*(_run(a, known) for a in maker.args))
        outs = out if maker.primitive.multiple_results else [out]
        for tracer, result in zip(maker.outs, outs, strict=True):
            known[id(tracer)] = result
        found = known[id(value)]
    return found


def _bilinear_term(parts: Sequence[_Probe], k: int) -> list[Any]:
    """The sum of all products of coefficients whose orders add up to ``k``."""
    (i,), (j,) = parts[0].active, parts[1].active
    x, y = parts[0].args[i], parts[0].args[j]
    total = parts[1].tangent({j: y.term(k)}, {i: 0, j: 0})
    for n in range(1, k + 1):
        if y.term(k - n) is not None:
            more = parts[0].tangent({i: x.term(n)}, {i: 0, j: k - n})
            total = [_sum(a, b) for a, b in zip(total, more, strict=True)]
    return total


def _sum(x: Any, y: Any) -> Any:
    return y if x is None else x if y is None else x + y


def below(series: TaylorTracer, compute: Callable[[], Any]) -> Any:
    """Compute with coefficients, which are values of the parent trace."""
    parent = series.owner.parent
    assert parent is not None
    token = enter_trace(current_trace())
    try:
        enter_trace(parent)
        return compute()
    finally:
        leave_trace(token)


class TaylorTrace(Trace):
    """Computes series, up to an order, where the function applies an operation.

    Args:
        parent: Computes with coefficients.
        what: How messages call the transformation.
        order: The highest power.
    """

    __slots__ = ("applied", "depth", "order", "slopes")

    def __init__(self, parent: Trace | None, what: str, order: int) -> None:
        super().__init__(parent, what)
        self.order = order
        self.depth = 0
        # By the identity of arguments, which applications keep.
        self.applied: dict[Any, _Application] = {}
        self.slopes: dict[int, tuple[TaylorTracer, TaylorTracer]] = {}

    def is_series(self, value: Any) -> bool:
        """Whether a value is a series of this trace."""
        return type(value) is TaylorTracer and value.owner is self

    def given(self, terms: Sequence[Any]) -> Any:
        """A series with these coefficients, or the value if there are no others."""
        if all(t is None for t in terms[1:]):
            return terms[0]
        return _Given(self, terms, aval_of(terms[0])).out

    def slope(self, series: TaylorTracer) -> TaylorTracer:
        """The derivative of a series, which is one object, so that rules find what they applied."""
        if id(series) not in self.slopes:
            self.slopes[id(series)] = (series, _Slope(series).out)
        return self.slopes[id(series)][1]

    def derive(
        self, primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> list[Any]:
        """The tangents that the rule of an operation gives, on series that wait to be asked."""
        token, outer = enter_trace(current_trace()), function_trace.set(None)
        self.depth += 1
        try:
            enter_trace(self)
            _, dots = primitive.jvp(list(primals), list(tangents))
        finally:
            self.depth -= 1
            function_trace.reset(outer)
            leave_trace(token)
        return list(dots) if primitive.multiple_results else [dots]

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        assert self.parent is not None
        if not any(map(self.is_series, args)):
            return self.parent.process(primitive, args)
        key = (primitive, *map(id, args))
        application = self.applied.get(key)
        if application is None:
            application = self._apply(primitive, args)
            self.applied[key] = application
        if not self.depth:
            for out in application.outs:
                out.term(self.order)
        outs = [self._result(out) for out in application.outs]
        return outs if primitive.multiple_results else outs[0]

    def _apply(self, primitive: Primitive, args: tuple[Any, ...]) -> _Application:
        found = primitive.abstract_eval(*(aval_of(a) for a in args))
        return _Application(self, primitive, args, found if primitive.multiple_results else [found])

    def _result(self, out: TaylorTracer) -> Any:
        """Series of a result; of piecewise constant ones the value alone."""
        if out.aval.dtype.kind not in "fc":
            return out.term(0)
        is_constant = not self.depth and all(t is None for t in out.known[1:])
        return out.known[0] if is_constant else out

    def terms(self, value: Any) -> list[Any]:
        """Coefficients of a result."""
        if self.is_series(value):
            return [value.term(k) for k in range(self.order + 1)]
        return [value, *[None] * self.order]


def taylor_flat(
    function: Callable[..., Sequence[Any]], args: Sequence[Sequence[Any]], order: int, what: str
) -> list[list[Any]]:
    """Coefficients (``None`` where zero) of the results of a function of flat arguments.

    Args:
        function: Returns a flat list.
        args: Coefficients of every argument, from order 0; ``None`` where zero.
        order: The highest power.
        what: How messages call the transformation.
    """
    trace = TaylorTrace(current_trace(), what, order)
    series = [trace.given(terms) for terms in args]
    outputs = list(run_under(trace, function, *series))
    found = [trace.terms(out) for out in outputs]
    trace.applied.clear()
    trace.slopes.clear()
    del series, outputs
    report_end(trace)
    return found


def taylor_program(program: Program, is_active: tuple[bool, ...], order: int) -> Program:
    """The program of coefficients: of inputs, then of floating results, each with all its terms.

    Args:
        program: The program.
        is_active: Which inputs are series, with ``order + 1`` coefficients each.
        order: The highest power.
    """

    def make() -> Program:
        def run(*flat: Any) -> list[Any]:
            rest = iter(flat)
            args = [[next(rest) for _ in range(order + 1 if active else 1)] for active in is_active]
            found = taylor_flat(
                lambda *xs: evaluate(program, xs), args, order, f"jet({program.name})"
            )
            return [
                _dense(t, aval.strong()) if k else t
                for terms, aval in zip(found, program.out_avals, strict=True)
                for k, t in enumerate(terms[: n_terms(aval, order)])
            ]

        avals = [
            aval.strong() if k else aval
            for aval, active in zip(program.in_avals, is_active, strict=True)
            for k in range(order + 1 if active else 1)
        ]
        return stage_closed(run, avals, f"jet_{program.name}")

    return program.memo(("taylor", is_active, order), make)


def n_terms(aval: ShapedArray, order: int) -> int:
    """How many coefficients a result has."""
    return order + 1 if aval.dtype.kind in "fc" else 1


def all_terms(terms: Sequence[Any], order: int, is_active: bool = True) -> list[Any]:
    """Coefficients as arguments of a program of coefficients."""
    if not is_active:
        return [terms[0]]
    aval = aval_of(terms[0]).strong()
    rest = [*terms[1:], *[None] * (order + 1 - len(terms))]
    return [terms[0], *(_dense(t, aval) for t in rest)]


def by_result(flat: Sequence[Any], avals: Sequence[ShapedArray], order: int) -> list[list[Any]]:
    """Results of a program of coefficients, as a list for each result of the program."""
    rest = iter(flat)
    return [[next(rest) for _ in range(n_terms(aval, order))] for aval in avals]
