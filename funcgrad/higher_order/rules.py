"""Rules of a function, and those of the function mapped over an axis, or equal in all its lanes.

Left out: the call that carries them (`funcgrad.higher_order.custom`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import chain
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.core.axes import Axes, DividedAxis, axes_in_scope, mapped_name
from funcgrad.core.observers import current_location, describe_location
from funcgrad.core.primitive import BatchDim
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.linear_call import Values, map_groups, map_to_front, sum_mapped, to_front

Pull = Callable[[Values, Values], list[Any]]
"""``(residuals, cotangents of the results) -> cotangents of the explicit inputs``."""


@dataclass(frozen=True)
class Rules:
    """Derivative rules of a function, as functions of flat values.

    Inputs are values that were closed over, then the explicit ones. ``None`` stands for a zero
    tangent or cotangent.

    Args:
        name: Name of the function.
        fun: From inputs to results.
        jvp: From inputs and tangents of the explicit ones to results and their tangents.
        vjp: From inputs, and flags of explicit inputs with nonzero tangents, to results, residuals,
            and the function that pulls cotangents back.
        vmap: From the length of the mapped axis, flags of mapped explicit inputs, and the inputs,
            to results that are all mapped.
        is_closed_over: For each closed-over value whether the function uses it (rather than a
            rule only), so that results may depend on it.
        refused: Closed-over values with respect to which the call cannot be differentiated, and
            how the user calls them.
        jvp_title: What messages call the jvp rule.
        bwd_title: What messages call the function that pulls cotangents back.
        missing: Message if the call is differentiated, though it has neither rule.
        missing_vmap: Message if the call is mapped, though it has no rule for it.
        is_opaque: Whether the function must see concrete values where there are any, so that the
            types of its results are not asked for before it runs.
        axes: The named axes in scope where the rules were given, which they may name.
    """

    name: str
    fun: Callable[..., list[Any]]
    jvp: Callable[[Values, Values], tuple[list[Any], list[Any]]] | None = None
    vjp: Callable[[Values, Sequence[bool]], tuple[list[Any], list[Any], Pull]] | None = None
    vmap: Callable[[int, list[bool], Values], list[Any]] | None = None
    is_closed_over: tuple[bool, ...] = ()
    refused: Mapping[int, str] = field(default_factory=dict)
    jvp_title: str = ""
    bwd_title: str = ""
    missing: str | None = None
    missing_vmap: str | None = None
    is_opaque: bool = False
    axes: Axes = field(default_factory=axes_in_scope)

    @property
    def is_special(self) -> bool:
        """Whether there is anything to be kept under differentiation."""
        given = (self.jvp, self.vjp, self.vmap, self.missing_vmap)
        return any(rule is not None for rule in given)


class MappedRules:
    """The rules of a call mapped over a leading axis of some inputs; all results are mapped."""

    def __init__(self, rules: Rules, dims: list[BatchDim], size: int) -> None:
        self.single = rules
        self.dims = dims
        self.size = size
        self.axis_name = mapped_name()
        self.n_closed = len(rules.is_closed_over)

    def rules(self) -> Rules:
        single = self.single
        if single.vmap is not None and any(d is not None for d in self.dims[: self.n_closed]):
            raise ArgumentError(
                f"{single.name} has a batching rule, but closes over a value that is mapped too, "
                "which the rule does not see. Pass that value as an argument."
            )
        return Rules(
            name=single.name,
            fun=self.fun if single.vmap is None else self.custom_fun,
            jvp=None if single.jvp is None else self.jvp,
            vjp=None if single.vjp is None else self.vjp,
            is_closed_over=single.is_closed_over,
            refused=single.refused,
            jvp_title=single.jvp_title,
            bwd_title=single.bwd_title,
            missing=single.missing,
            axes=tuple(axis for axis in single.axes if axis[0] != self.axis_name),
        )

    def fun(self, *args: Any) -> list[Any]:
        return map_to_front(
            lambda xs: self.single.fun(*xs), [args], [self.dims], self.size, self.axis_name
        )

    def custom_fun(self, *args: Any) -> list[Any]:
        assert self.single.vmap is not None
        is_mapped = [d is not None for d in self.dims[self.n_closed :]]
        return self.single.vmap(self.size, is_mapped, args)

    def jvp(self, primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        rule = self.single.jvp
        assert rule is not None
        dims = [self.dims, self.dims[self.n_closed :]]
        groups = [primals, tangents]
        results = map_to_front(_joined(rule), groups, dims, self.size, self.axis_name)
        return results[: len(results) // 2], results[len(results) // 2 :]

    def vjp(self, args: Values, is_active: Sequence[bool]) -> tuple[list[Any], list[Any], Pull]:
        rule = self.single.vjp
        assert rule is not None
        made: list[Any] = []
        run = _with_residuals(rule, is_active, made)
        values, dims = map_groups(run, [args], [self.dims], self.size, self.axis_name)
        n_outs, pull = made
        rows = zip(values[:n_outs], dims, strict=False)
        outs = [to_front(x, d, self.size, self.axis_name) for x, d in rows]
        return outs, values[n_outs:], _MappedPull(self, pull, dims[n_outs:])


class SharedRules:
    """The rules of a call that is the same in all lanes of an axis, outside of the map over it.

    Args:
        rules: Those of a lane.
        axis: Name and length of the axis.
    """

    def __init__(self, rules: Rules, axis: tuple[Hashable, int]) -> None:
        self.single = rules
        self.axis = axis
        self.line = current_location()

    def rules(self) -> Rules:
        single = self.single
        return replace(
            single,
            fun=lambda *args: self._in_a_lane(lambda xs: single.fun(*xs), args),
            jvp=None if single.jvp is None else self.jvp,
            vjp=None if single.vjp is None else self.vjp,
            axes=tuple(axis for axis in single.axes if axis != self.axis),
        )

    def _in_a_lane(self, function: Callable[..., list[Any]], *groups: Values) -> list[Any]:
        name, size = self.axis
        lanes = name.n_own if isinstance(name, DividedAxis) else size
        dims = [[None] * len(group) for group in groups]
        values, out_dims = map_groups(function, groups, dims, lanes, name)
        if any(dim is not None for dim in out_dims):
            label = name.label if isinstance(name, DividedAxis) else name
            problem = (
                f"a rule of {self.single.name} gives another result in every lane of {label!r}, "
                "but the call has the same arguments in all of them. Use psum or pmean in the "
                "rule, or let an argument depend on the lane."
            )
            raise ArgumentError("\n".join([problem, *describe_location(self.line, "at")]))
        return values

    def jvp(self, primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        rule = self.single.jvp
        assert rule is not None
        results = self._in_a_lane(_joined(rule), primals, tangents)
        return results[: len(results) // 2], results[len(results) // 2 :]

    def vjp(self, args: Values, is_active: Sequence[bool]) -> tuple[list[Any], list[Any], Pull]:
        rule = self.single.vjp
        assert rule is not None
        made: list[Any] = []
        run = _with_residuals(rule, is_active, made)
        values = self._in_a_lane(run, args)
        n_outs, pull = made
        return values[:n_outs], values[n_outs:], partial(self._in_a_lane, pull)


class _MappedPull:
    """The backward pass of every example; inputs that the examples share get the sum."""

    def __init__(self, owner: MappedRules, pull: Pull, residual_dims: list[BatchDim]) -> None:
        self.pull = pull
        self.residual_dims = residual_dims
        self.in_dims = owner.dims[owner.n_closed :]
        self.size = owner.size
        self.axis_name = owner.axis_name

    def __call__(self, residuals: Values, cts: Values) -> list[Any]:
        dims: list[list[BatchDim]] = [self.residual_dims, [0] * len(cts)]
        pulled, pulled_dims = map_groups(
            self.pull, [residuals, cts], dims, self.size, self.axis_name
        )
        return [
            None
            if ct is None
            else sum_mapped(ct, dim, self.size, self.axis_name)
            if in_dim is None
            else to_front(ct, dim, self.size, self.axis_name)
            for ct, dim, in_dim in zip(pulled, pulled_dims, self.in_dims, strict=True)
        ]


def _joined(jvp: Callable[..., tuple[list[Any], list[Any]]]) -> Callable[..., list[Any]]:
    """The jvp rule with results and their tangents, of which there are as many, in one list."""
    return lambda primals, tangents: [*chain(*jvp(primals, tangents))]


def _with_residuals(
    vjp: Callable[..., tuple[list[Any], list[Any], Pull]],
    is_active: Sequence[bool],
    made: list[Any],
) -> Callable[[Values], list[Any]]:
    """The vjp rule with results and residuals in one list; ``made``: how many results, the pull."""

    def run(xs: Values) -> list[Any]:
        outs, residuals, pull = vjp(xs, is_active)
        made[:] = [len(outs), pull]
        return [*outs, *residuals]

    return run
