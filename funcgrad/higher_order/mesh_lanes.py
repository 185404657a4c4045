"""Lanes of a mesh: axes that are shared out among processes, and kinds of values along them.

The data of a value says along which axes it is mapped. What it does not say are kinds
(`primitives/collectives.py`): terms of a sum that is left for later, and copies whose cotangents
are such terms, are mapped like anything that differs. They are followed, and checked:

* an operation leaves a sum for later if it is linear in the arguments that do, and the others are
  equal in all lanes; any other is an error;
* what is made of copies and of what all lanes share are copies;
* collectives say themselves what they make (`lane_kind`);
* operations that hold programs do what these do.

``kinds : (primitive, kinds of arguments) -> kinds of results``, along one axis.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from funcgrad.base.annotations import Values
from funcgrad.base.ranks import Ranks
from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import DividedAxis, mapping_axis
from funcgrad.core.primitive import MUTABLE_TYPES, Primitive, Value
from funcgrad.core.program import Equation, Program, Var, axis_names, axis_names_of
from funcgrad.core.trace import Trace, Tracer, function_trace
from funcgrad.errors import ArgumentError, MissingRuleError
from funcgrad.higher_order.linearity import is_linear_in
from funcgrad.higher_order.staging import place
from funcgrad.passes.flow import Flow, calls_users
from funcgrad.primitives.collectives import (
    INVARYING,
    REDUCED,
    UNREDUCED,
    VARYING,
    Axis,
    PSum,
    PVary,
    RankCopy,
    Unvary,
)
from funcgrad.primitives.shape import shape_of
from funcgrad.transforms.batch import BatchTrace, BatchTracer, WeakBatchTrace, keeps_shared

_declares: ContextVar[bool] = ContextVar("funcgrad_declares_kinds", default=False)
_mixes: ContextVar[bool] = ContextVar("funcgrad_mixes_kinds", default=True)
may_mix_kinds = _mixes.get
"""Whether operations may take values that differ and such as lanes share (`mixing_kinds`)."""


@contextmanager
def declaring_kinds() -> Iterator[None]:
    """A block in which loops carry values of one kind, and branches give such.

    Otherwise what all lanes share becomes varying where it has to.
    """
    token = _declares.set(True)
    try:
        yield
    finally:
        _declares.reset(token)


@contextmanager
def mixing_kinds(is_on: bool) -> Iterator[None]:
    """A block in which operations may take values that differ and such as lanes share.

    Args: is_on: Whether they may; if not, `lax.pcast` has to make copies.
    """
    token = _mixes.set(is_on)
    try:
        yield
    finally:
        _mixes.reset(token)


class KindTracer(BatchTracer):
    """A mapped value whose lanes are terms of a sum, or copies with such cotangents.

    Args:
        trace: That of the axis.
        value: The lanes of this process, in front.
        aval: Type of one of them.
        kind: Its kind along the axis.
    """

    __slots__ = ("kind",)

    def __init__(self, trace: DividedTrace, value: Any, aval: ShapedArray, kind: str) -> None:
        self.owner = trace
        self.value = value
        self.aval = aval
        self.kind = kind


class DividedTrace(BatchTrace):
    """Applies batch rules to the lanes that this process has of an axis of a mesh.

    What all lanes share is equal in all processes. An operation that reads it together with mapped
    values reads it once in every process, which its transpose has to know.

    Attributes:
        follows: Whether kinds of values are followed: those of a function of the user's are. Within
            rules of operations that hold programs, only the data counts.
    """

    __slots__ = ("_copies", "_is_named", "follows")
    axis_name: DividedAxis

    def __init__(self, parent: Trace, what: str, size: int, axis_name: Hashable = None) -> None:
        super().__init__(parent, what, size, axis_name)
        self._copies: dict[int, tuple[Any, Any]] = {}
        self._is_named = False
        self.follows = False

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        if not self.follows:
            return super().process(primitive, args)
        if not may_mix_kinds():
            _check_mixture(self.axis_name, primitive, list(map(self.kind_of, args)), args)
        self._is_named = primitive.is_composite and _declares.get()
        out = super().process(primitive, args)
        if not self._is_named and not any(type(x) is KindTracer and x.owner is self for x in args):
            return out
        outs = out if primitive.multiple_results else [out]
        kinds = kinds_along(self.axis_name, primitive, args, list(map(self.kind_of, args)), outs)
        made = [self.of_kind(x, kind) for x, kind in zip(outs, kinds, strict=True)]
        return made if primitive.multiple_results else made[0]

    def kind_of(self, x: Any) -> str:
        """The kind of a value along the axis."""
        if not isinstance(x, BatchTracer) or x.owner is not self:
            return INVARYING
        return x.kind if type(x) is KindTracer else VARYING

    def of_kind(self, x: Any, kind: str) -> Any:
        """Mark a mapped value as unreduced or reduced; values that are not mapped need no mark."""
        if self.kind_of(x) == INVARYING or kind not in (UNREDUCED, REDUCED):
            return x
        return KindTracer(self, x.value, x.aval, kind)

    def batch(
        self, primitive: Primitive, args: list[Any], dims: list[int | None], is_named: bool
    ) -> tuple[Any, Any]:
        if is_named:
            self._is_named = True
            return super().batch(primitive, args, dims, is_named)
        is_divided = self.axis_name.is_divided
        if is_divided and not (primitive.is_composite or keeps_shared(primitive)):
            args = [
                self._own_copy(x) if d is None and isinstance(x, Tracer) else x
                for x, d in zip(args, dims, strict=True)
            ]
        # Rules of operations that hold programs ask which axis they map.
        with mapping_axis(self.axis_name, self.size):
            return primitive.batch(args, dims)

    def _own_copy(self, x: Tracer) -> Any:
        """The copy of a value of all that this process reads, one for all readers.

        So their cotangents are summed in one message.
        """
        known = self._copies.get(id(x))
        if known is None:
            known = self._copies[id(x)] = x, self.axis_name.varied(x)
        return known[1]


class WeakDividedTrace(DividedTrace, WeakBatchTrace):
    """Applies batch rules to this process's lanes, and follows which values are weak."""

    __slots__ = ()


@dataclass(frozen=True)
class MeshAxis(DividedAxis):
    """An axis of a mesh, whose lanes are shared out among processes in equal parts.

    Attributes:
        label: What users call it.
        size: The number of lanes.
        ranks: The processes along it; `None` if this process has all lanes.
        is_tracked: Whether what is equal in all lanes counts once in derivatives.
    """

    label: Hashable
    size: int
    ranks: Ranks | None
    is_tracked: bool

    @property
    def is_divided(self) -> bool:  # type: ignore[override]
        return self.ranks is not None

    @property
    def n_own(self) -> int:  # type: ignore[override]
        """The number of lanes of this process."""
        return self.size if self.ranks is None else self.size // self.ranks.size

    @property
    def processes(self) -> Axis:
        """The axis of the processes."""
        assert self.ranks is not None
        return self.ranks, self.ranks.size

    @property
    def whole(self) -> Axis:
        """The axis and its length."""
        return self, self.size

    def trace(self, parent: Any, what: str, size: int, is_weak: bool) -> DividedTrace:
        return (WeakDividedTrace if is_weak else DividedTrace)(parent, what, size, self)

    def varied(self, x: Value) -> Value:
        return RankCopy((self.processes,)).bind(x)

    def total(self, x: Value) -> Value:
        return PSum((self.processes,), True).bind(x)

    def restored(self, ct: Value, primal: Value) -> Value:
        return Unvary((self.whole,)).bind(ct, primal)

    def varied_like(self, ct: Value, out: Value) -> Value:
        return PVary((self.whole,), has_like=True).bind(ct, out)

    def __repr__(self) -> str:
        return repr(self.label)


class LaneType(NamedTuple):
    """Axes of a mesh by the kind of a value along them; along others it is equal in all lanes.

    Attributes:
        varying: It differs.
        unreduced: Its lanes are terms of a sum that is left for later.
        reduced: Its lanes are copies, whose cotangents are such terms.
    """

    varying: frozenset[Hashable] = frozenset()
    unreduced: frozenset[Hashable] = frozenset()
    reduced: frozenset[Hashable] = frozenset()


def lane_type(x: Any) -> LaneType:
    """The kinds of a traced value along the axes of the meshes around."""
    if type(x) in MUTABLE_TYPES:
        x = x.__jax_array__()
    names: dict[str, list[Hashable]] = {INVARYING: [], VARYING: [], UNREDUCED: [], REDUCED: []}
    while isinstance(x, Tracer):
        if isinstance(x.owner, DividedTrace):
            names[x.owner.kind_of(x)].append(x.owner.axis_name.label)
        x = getattr(x, "value", getattr(x, "primal", None))
    return LaneType(*(frozenset(names[kind]) for kind in (VARYING, UNREDUCED, REDUCED)))


def kinds_along(
    axis: DividedAxis, primitive: Primitive, args: Values, kinds: Sequence[str], outs: Values
) -> list[str]:
    """Kinds of the results of an operation.

    Args:
        axis: The axis.
        primitive: The operation.
        args: Its arguments.
        kinds: Their kinds.
        outs: Its results, of which only the types count.

    Raises:
        ArgumentError: If a value is taken for one of a kind that it cannot be, or added to terms of
            a sum though it is none.
        MissingRuleError: If the operation is not linear in terms of a sum.
    """
    if not axis.is_tracked:
        return [VARYING] * len(outs)
    inputs, outputs = ([Var(aval_of(x)) for x in xs] for xs in (args, outs))
    is_users = function_trace.get() is not None
    return _Kinds(axis, is_users).results(Equation(primitive, inputs, outputs), list(kinds))


def _check_mixture(
    axis: DividedAxis, primitive: Primitive, kinds: Sequence[str], args: Values
) -> None:
    """Refuse an operation of varying and invariant operands where the axis tracks them."""
    shared = [x for x, kind in zip(args, kinds, strict=True) if kind == INVARYING]
    is_own = primitive.is_composite or axis_names_of(primitive) or not axis.is_tracked
    if (
        VARYING in kinds
        and any(isinstance(x, Tracer) or shape_of(x) for x in shared)
        and not is_own
    ):
        raise ArgumentError(
            f"{primitive.name} requires varying manual axes to match: one argument differs along "
            f"axis {axis!r} of the mesh, another is equal in all lanes.{place()}Make copies of it: "
            f"lax.pcast(value, {axis!r}, to='varying')."
        )


class _Kinds(Flow[str]):
    """Follows kinds along an axis through programs.

    Args:
        axis: The axis.
        is_users: Whether the operation is one of the user's function. In derivatives, and in what
            is traced already, cotangents of copies that met values of the lanes are terms of a sum.
    """

    def __init__(self, axis: DividedAxis, is_users: bool) -> None:
        super().__init__(INVARYING, INVARYING)
        self.axis = axis
        self.is_users = is_users
        self.depth = 0

    def run(self, program: Program, given: Sequence[str]) -> list[str]:
        self.depth += 1
        found = super().run(program, given)
        self.depth -= 1
        return found

    def carried(self, equation: Equation, before: Sequence[str], after: Sequence[str]) -> None:
        if self.depth or not _declares.get():
            return
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            if a == INVARYING != b:
                raise ArgumentError(
                    f"{equation.primitive.name}: what the loop carries as number {i} is {a} along "
                    f"axis {self.axis!r} of the mesh before it, and {b} after a step."
                    f"{_place_of(equation)}This might be fixed by applying "
                    f"`jax.lax.pcast(..., ({self.axis!r},), to='{b}')` to the initial value."
                )

    def alternatives(self, equation: Equation, rows: Sequence[Sequence[str]]) -> None:
        if self.depth or not _declares.get():
            return
        for i, kinds in enumerate(zip(*rows, strict=True)):
            if INVARYING in kinds and len(set(kinds)) > 1:
                branch = kinds.index(INVARYING)
                other = next(kind for kind in kinds if kind != INVARYING)
                raise ArgumentError(
                    f"{equation.primitive.name}: result {i} of branch {branch} is {INVARYING} "
                    f"along axis {self.axis!r} of the mesh, and that of another is {other}."
                    f"{_place_of(equation)}This might be fixed by applying "
                    f"`jax.lax.pcast(..., ({self.axis!r},), to='{other}')` to the output of that "
                    "branch."
                )

    def meet(self, facts: Sequence[str]) -> str:
        return next((k for k in (UNREDUCED, VARYING, REDUCED) if k in facts), INVARYING)

    def operation(self, equation: Equation, facts: Sequence[str]) -> list[str]:
        primitive = equation.primitive
        n = len(equation.outputs)
        if self.axis in axis_names(primitive):
            kind = primitive.lane_kind(facts)  # type: ignore[attr-defined]
            if kind is None:
                raise self._of_wrong_kind(equation, facts)
            return [kind] * n
        if UNREDUCED not in facts:
            return [self.meet(facts)] * n
        is_sum = self._is_linear(equation, [True] * len(facts))
        if is_sum and (INVARYING in facts or REDUCED in facts):
            raise self._of_mixed_sum(equation)
        if not is_sum and not self._is_linear(equation, [kind == UNREDUCED for kind in facts]):
            raise self._of_nonlinear(equation)
        if self.is_users and not self.depth and VARYING in facts:
            raise self._of_undeclared(equation, is_sum)
        return [UNREDUCED] * n

    def _is_linear(self, equation: Equation, mask: Sequence[bool]) -> bool:
        primitive = equation.primitive
        holds_programs = axis_names_of(primitive) and not axis_names(primitive)
        if calls_users(primitive) or primitive.is_composite or holds_programs:
            return False
        return is_linear_in(primitive, tuple(mask), [atom.aval for atom in equation.inputs])

    def _of_wrong_kind(self, equation: Equation, facts: Sequence[str]) -> ArgumentError:
        to = getattr(equation.primitive, "to", "")
        name, asked = ("pcast", to) if to else (equation.primitive.name, "varying")
        return ArgumentError(
            f"{name}: a value that is {facts[0]} along axis {self.axis!r} of "
            f"the mesh cannot be taken for {asked}.{_place_of(equation)}{_CASTS}"
        )

    def _of_mixed_sum(self, equation: Equation) -> ArgumentError:
        return ArgumentError(
            f"{equation.primitive.name}: one argument is a sum over axis {self.axis!r} of the mesh "
            f"that is left for later, another is equal in all lanes and would be added in each."
            f"{_place_of(equation)}Sum first: lax.psum(value, {self.axis!r})."
        )

    def _of_undeclared(self, equation: Equation, is_sum: bool) -> ArgumentError:
        cure = (
            f"If the first one is a term of that sum, say so: lax.pcast(value, {self.axis!r}, "
            "to='unreduced'). Otherwise sum"
            if is_sum
            else "Sum"
        )
        return ArgumentError(
            f"{equation.primitive.name}: one argument differs along axis {self.axis!r} of the "
            f"mesh, another is a sum over it that is left for later.{_place_of(equation)}{cure} "
            f"first: lax.psum(value, {self.axis!r})."
        )

    def _of_nonlinear(self, equation: Equation) -> MissingRuleError:
        name = equation.primitive.name
        return MissingRuleError(
            f"{name}: there is no unreduced rule for {name}: an argument is a sum over axis "
            f"{self.axis!r} of the mesh that is left for later, which only linear operations "
            f"take.{_place_of(equation)}Sum first: lax.psum(value, {self.axis!r}), or "
            "lax.psum_scatter."
        )


_CASTS = (
    "lax.pcast takes invarying values for varying or reduced ones, reduced for varying, varying "
    "for unreduced; lax.psum and psum_scatter form sums that were left for later."
)


def _place_of(equation: Equation) -> str:
    return place() if equation.source is None else f"\n  at            {equation.source}\n"
