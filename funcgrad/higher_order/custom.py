"""The call of a function with rules of its own.

The rules stay Python functions of flat values until a transformation needs one: evaluated eagerly,
they see concrete arrays. Staging records the call as one equation, whose program is that of the
function; whoever differentiates or maps that program later meets the equation and its rules again.

Forward mode uses the jvp rule, reverse mode the vjp rule. If only one of them exists the other mode
follows from it by transposition. A function that has a batching rule only is differentiated by
calls that are mapped by the derivative of that rule. Values that the function closes over are
inputs about which the rules say nothing: derivatives with respect to them are those of the function
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from funcgrad.base.forking import cached_property
from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.primitive import BatchDim, Linear, Primitive, Value, mapped_length
from funcgrad.core.program import Program, evaluate
from funcgrad.core.trace import EVAL, Trace, Tracer, current_trace, using_trace
from funcgrad.errors import ArgumentError, MissingRuleError
from funcgrad.higher_order.checked_programs import check_program
from funcgrad.higher_order.checked_rules import CheckedRules
from funcgrad.higher_order.checks import Failure, nan_faults
from funcgrad.higher_order.jit import STEPWISE, how_jit_runs, scatter
from funcgrad.higher_order.linear_call import (
    LinearCall,
    Values,
    add_tangents,
    push_forward,
    push_linearized,
    to_front,
    zeros,
)
from funcgrad.higher_order.linearity import is_zero, nonlinear_entry, nonlinear_equation, parted
from funcgrad.higher_order.rules import MappedRules, Pull, Rules, SharedRules
from funcgrad.lowering import Call, Form
from funcgrad.observers.checks import EXPLICIT, NAN, Fault, Kinds
from funcgrad.transforms.linearize import (
    TangentTrace,
    TangentTracer,
    TapeEntry,
    linearize_flat,
    record_linear,
)
from funcgrad.transforms.programs import separate_program, stage_closed


def bind_rules(rules: Rules, inputs: Values) -> list[Any]:
    """Results of a function that has rules, under the current trace."""
    return CustomCall(rules, tuple(aval_of(x) for x in inputs)).bind(*inputs)


@dataclass(frozen=True, eq=False)
class CustomCall(Primitive):
    """Apply a function that has rules."""

    rules: Rules
    in_avals: tuple[ShapedArray, ...]

    multiple_results = True
    makes_no_nans = True
    calls_users = True
    keeps_shared = True

    @cached_property
    def program(self) -> Program:
        """The function as a program."""
        return stage_closed(self.rules.fun, self.in_avals, self.rules.name)

    def impl(self, *args: Any) -> Any:
        with using_trace(EVAL):
            call = self._outside_of_axes()
            if how_jit_runs() == STEPWISE and not self.rules.is_opaque:
                return evaluate(call.program, args)  # whose operations can be watched
            return call.rules.fun(*args)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return self.out_avals

    def lower(self, *avals: ShapedArray) -> Form:
        return Call(self.program)

    def params(self) -> dict[str, Any]:
        return {"name": self.rules.name, "program": self.program}

    def jvp(self, primals: Values, tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        rules = self.rules
        call = self._outside_of_axes()
        if not rules.jvp and not rules.vjp:
            apply = call._push_mappable
        else:
            apply = call._apply_jvp if rules.jvp else call._derive_jvp
        return call._differentiate(primals, tangents, push_forward, apply)

    def linearize(self, primals: Values, tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        rules = self.rules
        call = self._outside_of_axes()
        if not rules.jvp and not rules.vjp:
            apply = call._split_mappable
        else:
            apply = call._split_vjp if rules.vjp else call._record_jvp
        return call._differentiate(primals, tangents, push_linearized, apply)

    def _outside_of_axes(self) -> CustomCall:
        """The call with rules that may name axes which were in scope at the call, and are not now.

        It is the same in all lanes of these axes, or it would have been mapped.
        """
        scope = axes_in_scope()
        rules = self.rules
        for axis in [axis for axis in reversed(rules.axes) if axis not in scope]:
            rules = SharedRules(rules, axis).rules()
        return self if rules is self.rules else CustomCall(rules, self.in_avals)

    def _differentiate(
        self,
        primals: Values,
        tangents: Sequence[Value | None],
        push: Callable[..., Any],
        apply: Callable[[Values, Values], tuple[list[Any], list[Any]]],
    ) -> tuple[Any, Any]:
        """Rules for the explicit inputs, the function itself for what it closes over."""
        rules = self.rules
        n = len(rules.is_closed_over)
        explicit = list(tangents[n:])
        if any(t is not None for t in explicit) and rules.missing is not None:
            raise MissingRuleError(rules.missing)
        self._check_refused(tangents)
        if all(t is None for t in explicit) or not rules.is_special:
            outs, dots = push(rules.fun, primals, tangents, rules.name)
            return outs, dots
        outs, dots = apply(primals, explicit)
        closed = [
            t if used else None for t, used in zip(tangents[:n], rules.is_closed_over, strict=True)
        ]
        if any(t is not None for t in closed):
            _, extra = push(rules.fun, primals, [*closed, *[None] * len(explicit)], rules.name)
            dots = add_tangents(dots, extra)
        return outs, dots

    def _check_refused(self, tangents: Sequence[Value | None]) -> None:
        for i, path in self.rules.refused.items():
            if tangents[i] is not None:
                raise ArgumentError(
                    f"{self.rules.name} is differentiated with respect to `{path}`, which is named "
                    "in nondiff_argnums. Remove it from there and let the rules treat it (a "
                    "backward rule may return None for it), or wrap it in funcgrad.stop_gradient."
                )

    # Forward mode.

    def _apply_jvp(self, primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        assert self.rules.jvp is not None
        return self.rules.jvp(primals, tangents)

    def _derive_jvp(self, primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        """The tangent as the transpose of the backward pass, which is linear."""
        assert self.rules.vjp is not None
        outs, residuals, pull = self.rules.vjp(primals, [t is not None for t in tangents])
        avals = [aval_of(x).strong() for x in outs]
        return outs, transpose_pull(self.rules, pull, residuals, avals, tangents)

    # Reverse mode.

    def _split_vjp(self, primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        """Results, and one linear operation on the tangents whose transpose is the vjp rule."""
        rules = self.rules
        assert rules.vjp is not None
        is_active = [t is not None for t in tangents]
        outs, residuals, pull = rules.vjp(primals, is_active)
        avals = [aval_of(x).strong() for x in outs]
        inexact = [i for i, a in enumerate(avals) if a.dtype.kind in "fc"]
        if not inexact:
            return outs, [None] * len(outs)
        # The primals are only kept where the derivative itself will ask for them.
        kept = list(primals) if rules.jvp is not None else []
        pair = _VjpPair(rules, pull, len(kept), avals, is_active)
        linear = [t for t in tangents if t is not None]
        inputs = [*kept, *residuals, *linear]
        call = LinearCall(
            f"tangent_{rules.name}",
            pair.forward,
            pair.backward,
            len(kept) + len(residuals),
            tuple(aval_of(x) for x in inputs),
            tuple(avals[i] for i in inexact),
        )
        dots: list[Any] = [None] * len(outs)
        for i, dot in zip(inexact, call.bind(*inputs), strict=True):
            dots[i] = dot
        return outs, dots

    def _record_jvp(self, primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        """The jvp rule on tangents without values, which must turn out to be linear in them."""
        assert self.rules.jvp is not None
        tape = current_trace()
        assert isinstance(tape, TangentTrace)
        start = len(tape.entries)
        tape.separates, before = True, tape.separates
        try:
            outs, dots = self.rules.jvp(primals, tangents)
        finally:
            tape.separates = before
        entries = tape.entries[start:]
        culprit = nonlinear_entry(entries)
        if culprit is not None:
            raise nonlinear_error(self.rules.jvp_title, "tangents", culprit)
        if any(_is_recorded(x, tape) for x in outs):
            raise ArgumentError(
                f"{self.rules.jvp_title} returned a value that depends on the tangents. Compute it "
                "from the primals only; what is computed from tangents is the tangent."
            )
        return outs, [self._checked_dot(t, tape) for t in dots]

    def _checked_dot(self, dot: Any, tape: TangentTrace) -> Any:
        """A recorded tangent; one that does not depend on tangents must be zero."""
        if dot is None or _is_recorded(dot, tape):
            return dot
        if not isinstance(dot, Tracer) and not is_zero(dot):
            raise nonlinear_error(self.rules.jvp_title, "tangents", None)
        return None

    # Functions that have a batching rule and no derivative rules.

    def _push_mappable(self, primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        mappable = _Mappable(self.rules, [t is not None for t in tangents])
        nonzero = [t for t in tangents if t is not None]
        results = mappable.call(mappable.pushed(), primals, nonzero)
        n_outs = len(self.program.outputs)
        return results[:n_outs], scatter(results[n_outs:], self._is_inexact())

    def _split_mappable(self, primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        mappable = _Mappable(self.rules, [t is not None for t in tangents])
        outs = self.bind(*primals)
        is_inexact = self._is_inexact()
        n_outs = len(outs)

        def forward(residuals: Values, dots: Values) -> list[Any]:
            return mappable.call(mappable.pushed(), residuals, dots)[n_outs:]

        def backward(residuals: Values, cts: Values) -> list[Any]:
            dense = [zeros(a) if ct is None else ct for ct, a in zip(cts, avals, strict=True)]
            return mappable.call(mappable.pulled(is_inexact), residuals, dense)

        avals = tuple(a for a, on in zip(self.out_avals, is_inexact, strict=True) if on)
        inputs = [*primals, *(t for t in tangents if t is not None)]
        call = LinearCall(
            f"tangent_{self.rules.name}",
            forward,
            backward,
            len(primals),
            tuple(aval_of(x) for x in inputs),
            avals,
        )
        return outs, scatter(call.bind(*inputs) if avals else [], is_inexact)

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [a.strong() for a in self.program.out_avals]

    def _is_inexact(self) -> list[bool]:
        return [a.dtype.kind in "fc" for a in self.out_avals]

    def separate(self, args: Values, is_linear: Sequence[bool]) -> list[Any] | None:
        """A function that is linear is its derivative at zero."""
        mask = tuple(is_linear)
        if nonlinear_equation(self.program, mask) is not None:
            return None
        is_active = separate_program(self.program, mask).is_active_out
        if all(is_active):
            # Nothing to tell apart. A rule may apply the function to tangents, without end.
            return None
        outs, dots = self.linearize(*parted(args, mask))
        return [
            x if not on else zeros(aval_of(x)) if t is None else t
            for x, t, on in zip(outs, dots, is_active, strict=True)
        ]

    def linear_parts(self, is_linear: tuple[bool, ...]) -> list[Any]:
        return [(self.program, is_linear)]

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        """Transpose a call within a linear function, by the rule of the function itself."""
        mask = [type(a) is Linear for a in args]
        _, linear = record_linear(
            self.rules.fun, args, mask, self.in_avals, self.rules.name, separates=True
        )
        return linear.pull(ct)

    def checked(self, args: Values, kinds: Kinds) -> tuple[Any, Sequence[Failure | Fault]]:
        rules = self.rules
        if rules.vmap is not None or rules.missing_vmap is not None:
            if not check_program(self.program, frozenset({EXPLICIT})).sites:
                outs = self.bind(*args)
                return outs, nan_faults(rules.name, outs) if NAN in kinds else ()
            raise MissingRuleError(
                f"{rules.name} has a rule for vmap, or says that it has none, which does not tell "
                "what checks in the function find: check what it is called with, or its result."
            )
        inner = check_program(self.program, kinds)
        if not inner.sites:
            return self.bind(*args), ()
        by = CheckedRules(inner, kinds, rules.jvp, rules.vjp)
        checked = replace(rules, fun=by.fun, jvp=rules.jvp and by.jvp, vjp=rules.vjp and by.vjp)
        results = CustomCall(checked, self.in_avals).bind(*args)
        return results[: inner.n_outputs], [inner.failure(results)]

    def batch(self, args: Values, dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        if self.rules.missing_vmap is not None:
            raise MissingRuleError(self.rules.missing_vmap)
        if self.rules.vmap is not None and not self.rules.is_opaque:
            _ = self.program  # The types of the function's results, to which the rule must keep.
        size = mapped_length(args, dims)
        mapped = MappedRules(self.rules, list(dims), size)
        outs = bind_rules(mapped.rules(), args)
        return outs, [0] * len(outs)


@dataclass(eq=False)
class _VjpPair:
    """Both directions of the linear operation that a vjp rule defines."""

    rules: Rules
    pull: Pull
    n_primals: int
    out_avals: Sequence[ShapedArray]
    is_active: Sequence[bool]

    def __post_init__(self) -> None:
        self.is_inexact = [a.dtype.kind in "fc" for a in self.out_avals]

    def forward(self, residuals: Values, tangents: Values) -> list[Any]:
        full = scatter(tangents, self.is_active)
        primals, rest = residuals[: self.n_primals], residuals[self.n_primals :]
        if self.rules.jvp is not None:
            _, dots = self.rules.jvp(primals, full)
        else:
            dots = transpose_pull(self.rules, self.pull, rest, self.out_avals, full)
        return [
            zeros(a) if t is None else t
            for t, a, keep in zip(dots, self.out_avals, self.is_inexact, strict=True)
            if keep
        ]

    def backward(self, residuals: Values, cts: Values) -> list[Any]:
        pulled = self.pull(residuals[self.n_primals :], scatter(cts, self.is_inexact))
        return [ct for ct, active in zip(pulled, self.is_active, strict=True) if active]


class _Mappable:
    """Derivatives of a function that has a batching rule only, with the derivatives of that rule.

    Each is a function of what is closed over, the other inputs, and tangents or cotangents.

    Args:
        rules: Of the function.
        is_active: Which inputs that are not closed over have tangents.
    """

    def __init__(self, rules: Rules, is_active: Sequence[bool]) -> None:
        self.single = rules
        self.is_active = list(is_active)
        self.n_closed = len(rules.is_closed_over)
        self.n_inputs = self.n_closed + len(self.is_active)

    def call(self, rules: Rules, primals: Values, others: Values) -> list[Any]:
        return bind_rules(rules, [*primals, *others])

    def _rules(self, what: str, fun: Callable[..., list[Any]], vmap: Any) -> Rules:
        single = self.single
        return Rules(
            name=f"{what}_{single.name}",
            fun=fun,
            vmap=None if single.vmap is None else vmap,
            is_closed_over=single.is_closed_over,
            missing_vmap=single.missing_vmap,
            axes=single.axes,
        )

    def _mask(self) -> list[bool]:
        return [False] * self.n_closed + self.is_active

    def _rule(self, size: int, is_mapped: list[bool]) -> Callable[..., list[Any]]:
        """The batching rule of the function for inputs mapped in this way."""
        rule = self.single.vmap
        assert rule is not None
        return lambda *xs: rule(size, is_mapped, xs)

    def pushed(self) -> Rules:
        """From tangents to results and the tangents of those that have any."""
        return self._rules("jvp", lambda *xs: self._push(self.single.fun, xs), self._push_mapped)

    def _push(self, fun: Callable[..., list[Any]], inputs: Values) -> list[Any]:
        primals, given = inputs[: self.n_inputs], inputs[self.n_inputs :]
        outs, dots = push_forward(fun, primals, scatter(given, self._mask()), self.single.name)
        return [*outs, *_dense(dots, outs)]

    def _push_mapped(self, size: int, is_mapped: list[bool], inputs: Values) -> list[Any]:
        n = len(self.is_active)
        of_dots = scatter(is_mapped[n:], self.is_active)
        joined = [p or bool(t) for p, t in zip(is_mapped[:n], of_dots, strict=True)]
        wanted = [*joined, *(m for m, on in zip(joined, self.is_active, strict=True) if on)]
        return self._push(self._rule(size, joined), self._fronted(inputs, is_mapped, wanted, size))

    def pulled(self, is_inexact: Sequence[bool]) -> Rules:
        """From cotangents of results, where these have any, to those of the active inputs."""

        def fun(*inputs: Any) -> list[Any]:
            return self._pull(self.single.fun, inputs, is_inexact)

        def vmap(size: int, is_mapped: list[bool], inputs: Values) -> list[Any]:
            # Every lane has cotangents of its own, also of inputs that all share.
            n = len(self.is_active)
            joined = [m or on for m, on in zip(is_mapped, self.is_active, strict=False)]
            wanted = [*joined, *[True] * (len(is_mapped) - n)]
            fronted = self._fronted(inputs, is_mapped, wanted, size)
            return self._pull(self._rule(size, joined), fronted, is_inexact)

        return self._rules("vjp", fun, vmap)

    def _pull(
        self, fun: Callable[..., list[Any]], inputs: Values, is_inexact: Sequence[bool]
    ) -> list[Any]:
        primals, cts = inputs[: self.n_inputs], inputs[self.n_inputs :]
        _, linear = linearize_flat(fun, primals, self._mask(), self.single.name)
        pulled = linear.pull(scatter(cts, is_inexact))
        pairs = zip(pulled, primals, self._mask(), strict=True)
        return [zeros(aval_of(x)) if ct is None else ct for ct, x, on in pairs if on]

    def _fronted(
        self, inputs: Values, is_mapped: Sequence[bool], wanted: Sequence[bool], size: int
    ) -> list[Any]:
        """Inputs with the mapped axis in front of all that are wanted so."""
        rows = zip(inputs[self.n_closed :], is_mapped, wanted, strict=True)
        explicit = [to_front(x, None, size) if want and not has else x for x, has, want in rows]
        return [*inputs[: self.n_closed], *explicit]


def _dense(dots: Sequence[Any], values: Values) -> list[Any]:
    """Tangents of floating values, zeros included."""
    pairs = [(t, aval_of(x)) for t, x in zip(dots, values, strict=True)]
    return [zeros(a) if t is None else t for t, a in pairs if a.dtype.kind in "fc"]


# Linearity.


def transpose_pull(
    rules: Rules, pull: Pull, residuals: Values, out_avals: Sequence[ShapedArray], tangents: Values
) -> list[Any]:
    """Tangents of the results, from the backward pass that maps their cotangents."""
    present: list[bool] = []

    def run(*cts: Any) -> list[Any]:
        pulled = pull(residuals, cts)
        present[:] = [ct is not None for ct in pulled]
        return [ct for ct in pulled if ct is not None]

    mask = [a.dtype.kind in "fc" for a in out_avals]
    known, linear = record_linear(
        run, [None] * len(mask), mask, out_avals, f"transpose({rules.name})", separates=True
    )
    culprit = nonlinear_entry(linear.entries)
    is_constant = any(k is not None and not isinstance(k, Tracer) and not is_zero(k) for k in known)
    if culprit is not None or is_constant:
        raise nonlinear_error(rules.bwd_title, "cotangents", culprit)
    return linear.pull([t for t, here in zip(tangents, present, strict=True) if here])


def nonlinear_error(what: str, values: str, entry: TapeEntry | None) -> ArgumentError:
    """The error for a rule that is not linear in its tangents or cotangents."""
    how = "it returns a constant" if entry is None else f"it applies {entry.primitive.name} to them"
    return ArgumentError(
        f"{what} is not linear in the {values} ({how}), so it has no transpose. A rule may compute "
        f"anything from the primals, but must only add up the {values} and multiply them by what "
        "does not depend on them."
    )


def _is_recorded(value: Any, tape: Trace) -> bool:
    return type(value) is TangentTracer and value.owner is tape
