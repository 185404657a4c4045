"""The rules of a function whose checks have become results.

The function itself tells what is wrong. Its forward rules compute it again, with checks of their
own left out; the backward rule stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.base.annotations import Function
from funcgrad.core.avals import aval_of
from funcgrad.core.program import evaluate
from funcgrad.higher_order.checked_programs import CheckedProgram, evaluate_checked
from funcgrad.higher_order.jit import scatter
from funcgrad.observers.checks import Kinds
from funcgrad.transforms.stage import stage

Values = Sequence[Any]


class CheckedRules:
    """Functions of `funcgrad.higher_order.custom.Rules`, each with a failure behind the results."""

    def __init__(
        self, inner: CheckedProgram, kinds: Kinds, jvp: Function | None, vjp: Function | None
    ) -> None:
        self.inner = inner
        self.kinds = kinds
        self._jvp = jvp
        self._vjp = vjp

    def fun(self, *inputs: Any) -> list[Any]:
        """The function."""
        return evaluate(self.inner.program, inputs)

    def found(self, inputs: Values) -> list[Any]:
        """Failure that was found, flat."""
        return self.fun(*inputs)[self.inner.n_outputs :]

    def jvp(self, primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        """The rule for tangents."""
        assert self._jvp is not None
        n = len(primals)
        present = [t is not None for t in tangents]
        given = [*primals, *(t for t in tangents if t is not None)]
        n_outs: list[int] = []
        kept: list[bool] = []

        def rule(*xs: Any) -> list[Any]:
            assert self._jvp is not None
            outs, dots = self._jvp(xs[:n], scatter(xs[n:], present))
            n_outs.append(len(outs))
            kept.extend(t is not None for t in dots)
            return [*outs, *(t for t in dots if t is not None)]

        results = self._without_checks(rule, given)
        outs, dots = results[: n_outs[0]], scatter(results[n_outs[0] :], kept)
        found = self.found(primals)
        return [*outs, *found], [*dots, *(None for _ in found)]

    def vjp(self, primals: Values, is_active: Sequence[bool]) -> tuple[list[Any], list[Any], Any]:
        """The rule for cotangents."""
        n_outs: list[int] = []
        pulls: list[Any] = []

        def rule(*xs: Any) -> list[Any]:
            assert self._vjp is not None
            outs, residuals, pull = self._vjp(xs, is_active)
            n_outs.append(len(outs))
            pulls.append(pull)
            return [*outs, *residuals]

        results = self._without_checks(rule, primals)
        n = n_outs[0]

        def pull(residuals: Values, cts: Values) -> Any:
            return pulls[0](residuals, cts[:n])

        return [*results[:n], *self.found(primals)], results[n:], pull

    def _without_checks(self, rule: Callable[..., list[Any]], args: Values) -> list[Any]:
        avals = [aval_of(x).strong() for x in args]
        program, captured = stage(rule, avals, self.inner.program.name)
        outs, _ = evaluate_checked(program, [*captured, *args], self.kinds)
        return outs
