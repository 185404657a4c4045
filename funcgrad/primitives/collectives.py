"""Operations along named axes: what lanes of a mapped function tell each other.

Inside ``vmap(f, axis_name="i")`` the function sees one lane; a collective on ``"i"`` combines the
values of all lanes. The primitives say what the result is for every lane; how the axis is realised
is the business of the interpreter that realises it. `vmap` asks for `batch_named`, and the axis is
the leading one of an array. Where it is one of processes (`Ranks`), evaluation and compilation ask
for `steps`: one message, and what brings axes into order. Collectives keep the length of the axis,
so that a program with them has its types wherever it is looked at.

As functions of the values of all lanes they are linear, except the extremes: the sum over lanes is
its own transpose, gathering and scattering are each other's. This counts a result that is equal in
all lanes once for every lane. Along the axes of a mesh it counts once (`is_invariant`): the
transpose of a sum is then a copy for every lane, that of a copy a sum, as of Manual axes in JAX.

There, a value is of one of four kinds along each axis. What lanes share is *invarying*, what
differs *varying*. Lanes of an *unreduced* value are terms of a sum that is left for later, those of
a *reduced* one are copies whose cotangents are such terms: each kind is the other's cotangent. To
take a value for one of another kind is `PVary`; `lane_kind` says what an operation makes of kinds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from funcgrad.base.ranks import Ranks, ranks_in
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.axes import DividedAxis, unbound_axis
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.errors import ShapeError
from funcgrad.lowering import Form
from funcgrad.primitives import shape as s
from funcgrad.primitives.elementwise import add, convert, div, equal, mul
from funcgrad.primitives.families import Recipe, linear_jvp, shape_of
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.ranks import (
    RankExchange,
    RankGather,
    RankHalf,
    RankIndex,
    RankPart,
    RankPass,
    RankTotal,
)
from funcgrad.primitives.reductions import ReduceMax, ReduceMin

Axis = tuple[Hashable, int]
"""Name and length of a mapped axis."""

INVARYING, VARYING, UNREDUCED, REDUCED = "invarying", "varying", "unreduced", "reduced"
DUAL = {UNREDUCED: REDUCED, REDUCED: UNREDUCED, VARYING: VARYING, INVARYING: INVARYING}
"""The kind of a cotangent along an axis, by that of its primal."""


class Evaluation:
    """Applies the steps of a collective to arrays, as `Recipe` does to names."""

    def __call__(self, primitive: Primitive, *args: Any) -> Any:
        return primitive.impl(*args)


Steps = Evaluation | Recipe


class Collective(Primitive):
    """Base of the operations along named axes: they have values only where lanes exist."""

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        """Names of the axes."""
        raise NotImplementedError

    def lane_kind(self, kinds: Sequence[str]) -> str | None:
        """The kind of the result along an axis of the operation, for kinds of the arguments.

        Returns: The kind; `None` if arguments may not be of these kinds.
        """
        raise NotImplementedError

    @property
    def is_effectful(self) -> bool:  # type: ignore[override]
        return bool(ranks_in(self.axis_names))

    def impl(self, *args: Any) -> Any:
        self._check_ranks()
        return self.steps(Evaluation(), *map(np.asarray, args))[()]

    def lower(self, *avals: ShapedArray) -> Form:
        self._check_ranks()
        recipe = Recipe(*avals)
        return recipe.form(self.steps(recipe, *recipe.inputs))

    def _check_ranks(self) -> None:
        unbound = [name for name in self.axis_names if not isinstance(name, Ranks)]
        if unbound:
            raise unbound_axis(unbound, self.name)

    def steps(self, apply: Steps, *args: Any) -> Any:
        """The result where lanes are processes.

        Args:
            apply: Called with a primitive and its arguments.
            args: Those of the operation in this process.
        """
        raise NotImplementedError


def _ranks_of(axis_name: Hashable) -> Ranks | None:
    return axis_name.ranks if isinstance(axis_name, DividedAxis) else None


# Reductions over lanes.


class _AllReduce(Collective):
    """The same combination of the values of all lanes, for every lane.

    Attributes:
        axes: Names and lengths of the axes that are combined.
        is_invariant: Whether the result counts once, and not once for every lane.
    """

    axes: tuple[Axis, ...]
    is_invariant: bool = False

    agrees = True

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        return tuple(name for name, _ in self.axes)

    def lane_kind(self, kinds: Sequence[str]) -> str | None:
        return None if UNREDUCED in kinds else INVARYING

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x.strong()

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), 0

    def batch_named(
        self, args: Sequence[Value], dims: Sequence[BatchDim], size: int, axis_name: Hashable
    ) -> tuple[Any, Any]:
        combined = self.combine(args[0], dims[0], dict(self.axes)[axis_name])
        if dims[0] is not None and _ranks_of(axis_name) is not None:
            across = (axis_name.processes,)  # type: ignore[attr-defined]
            combined = replace(self, axes=across, is_invariant=True).bind(combined)
        rest = self.without(axis_name)
        return (replace(self, axes=rest).bind(combined) if rest else combined), None

    def without(self, axis_name: Hashable) -> tuple[Axis, ...]:
        """The other axes."""
        return tuple(axis for axis in self.axes if axis[0] != axis_name)

    def combine(self, x: Value, dim: BatchDim, size: int) -> Value:
        """The combination of one mapped axis, which is in front unless all lanes are equal."""
        raise NotImplementedError

    def steps(self, apply: Steps, *args: Any) -> Any:
        (x,) = args
        for name, size in self.axes:
            assert isinstance(name, Ranks)
            if size > 1:
                x = self.step(apply, name, x)
        return x

    def step(self, apply: Steps, ranks: Ranks, x: Any) -> Any:
        """The combination along one axis of processes."""
        raise NotImplementedError


class PSum(_AllReduce):
    """Sum over lanes."""

    name = "psum"
    jvp = linear_jvp

    def lane_kind(self, kinds: Sequence[str]) -> str | None:
        return INVARYING

    def combine(self, x: Value, dim: BatchDim, size: int) -> Value:
        return times(x, size) if dim is None else s.ReduceSum((0,)).bind(x)

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        if not self.is_invariant:
            return (self.bind(ct),)
        if ranks_in(self.axis_names):
            return (RankCopy(self.axes).bind(ct),)
        return (PVary(self.axes).bind(Unvary(self.axes).bind(ct)),)

    def step(self, apply: Steps, ranks: Ranks, x: Any) -> Any:
        if not ranks.deterministic:
            return apply(RankTotal(ranks), x)
        return pairwise_total(apply, apply(RankGather(ranks), x), ranks.size)


class _AllExtreme(_AllReduce):
    """The largest or smallest of the values of all lanes; ties share the derivative equally."""

    fold: ClassVar[Primitive]

    def combine(self, x: Value, dim: BatchDim, size: int) -> Value:
        return x if dim is None else self.fold.bind(x)

    def step(self, apply: Steps, ranks: Ranks, x: Any) -> Any:
        # MPI's own extremes may lose nan.
        return apply(self.fold, apply(RankGather(ranks), x))

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,) = primals
        out = self.bind(x)
        dtype = aval_of(x).dtype
        chosen = convert(equal.bind(x, out), dtype)
        total = PSum(self.axes, self.is_invariant)
        share = div.bind(mul.bind(chosen, tangents[0]), total.bind(chosen))
        return out, total.bind(share)


class PMax(_AllExtreme):
    """Maximum over lanes."""

    name = "pmax"
    fold = ReduceMax((0,))


class PMin(_AllExtreme):
    """Minimum over lanes."""

    name = "pmin"
    fold = ReduceMin((0,))


_SOURCES = {
    VARYING: (INVARYING, REDUCED, VARYING),
    UNREDUCED: (VARYING,),
    REDUCED: (INVARYING,),
}
"""For the kind that a value is taken for, the kinds that it may have."""


class PVary(_AllReduce):
    """A copy of a value for every lane of axes of a mesh.

    ``bind(x)``, or ``bind(x, like)``: then along the axes along which ``like`` differs. Derivatives
    have the primal as one more operand: what differs already is no copy.

    Attributes:
        has_like: Whether there is ``like``.
        to: The kind of the result, if it is asked for; otherwise terms of a sum stay such.
    """

    has_like: bool = False
    to: str = ""

    name = "pvary"
    keeps_shared = True
    agrees = False
    is_effectful = False

    def abstract_eval(self, x: ShapedArray, *others: ShapedArray) -> ShapedArray:
        return x.strong()

    def lane_kind(self, kinds: Sequence[str]) -> str | None:
        kind, *others = kinds
        if self.has_like:
            return DUAL[others[0]]
        kind = others[0] if others else kind
        if not self.to:
            return UNREDUCED if kind == UNREDUCED else VARYING
        return self.to if kind in _SOURCES[self.to] else None

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        out, dot = self.bind(*primals), tangents[0]
        known = primals[1:] if len(primals) > 1 + self.has_like else (*primals[1:], primals[0])
        return out, None if dot is None else self.bind(dot, *known)

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        primal = args[1 + self.has_like :]
        back = Unvary(self.axes).bind(ct, *primal) if primal else PSum(self.axes, True).bind(ct)
        return back, *(None for _ in args[1:])

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), dims[0]

    def batch_named(
        self, args: Sequence[Value], dims: Sequence[BatchDim], size: int, axis_name: Hashable
    ) -> tuple[Any, Any]:
        x, *others = args
        dim = dims[0]
        if dim is None and not (self.has_like and dims[1] is None):
            x, dim = s.repeat_lanes(x, size, axis_name), 0
        rest = self.without(axis_name)
        return (replace(self, axes=rest).bind(x, *others) if rest else x), dim


class Unvary(_AllReduce):
    """The sum of a cotangent over axes of a mesh along which it differs and its primal does not.

    ``bind(ct)`` is of a primal that is equal in all lanes. Cotangents are summed where it matters
    and not at each operation that reads such a primal: what lies between is linear.
    """

    keeps_shared = True
    is_effectful = False

    def lane_kind(self, kinds: Sequence[str]) -> str | None:
        return DUAL[kinds[1]] if len(kinds) > 1 else INVARYING

    def abstract_eval(self, x: ShapedArray, *primal: ShapedArray) -> ShapedArray:
        return x.strong()

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        out, dot = self.bind(*primals), tangents[0]
        return out, None if dot is None else self.bind(dot, *primals[1:])

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        return self.bind(ct, *args[1:]), *(None for _ in args[1:])

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), dims[0]

    def batch_named(
        self, args: Sequence[Value], dims: Sequence[BatchDim], size: int, axis_name: Hashable
    ) -> tuple[Any, Any]:
        ct, *primal = args
        dim = dims[0]
        if dim is not None and all(d is None for d in dims[1:]):
            ct, dim = s.sum_lanes(ct, axis_name), None
        rest = self.without(axis_name)
        return (replace(self, axes=rest).bind(ct, *primal) if rest else ct), dim


class RankCopy(_AllReduce):
    """A value that is equal in all processes, as one that each reads for itself."""

    agrees = False
    is_effectful = False
    jvp = linear_jvp

    def steps(self, apply: Steps, *args: Any) -> Any:
        return args[0]

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (PSum(self.axes, True).bind(ct),)


class RankEqual(_AllReduce):
    """A value that is equal in all processes, as those are told that ask."""

    is_effectful = False
    jvp = linear_jvp

    def steps(self, apply: Steps, *args: Any) -> Any:
        return args[0]

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (self.bind(ct),)


def times(x: Value, size: int) -> Value:
    """The sum of ``size`` equal values."""
    return mul.bind(x, aval_of(x).dtype.type(size))


# Exchanges between lanes. Each is along one axis.


class _Exchange(Collective):
    """Base of the operations along one axis.

    Attributes:
        axis_name: Name of the mapped axis.
        axis_size: Its length.
    """

    axis_name: Hashable
    axis_size: int

    jvp = linear_jvp
    agrees = False
    is_invariant = False

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        return (self.axis_name,)

    def lane_kind(self, kinds: Sequence[str]) -> str | None:
        return None if UNREDUCED in kinds else VARYING

    @property
    def ranks(self) -> Ranks:
        """The processes, if the axis is one of processes."""
        assert isinstance(self.axis_name, Ranks)
        return self.axis_name

    def batch_named(
        self, args: Sequence[Value], dims: Sequence[BatchDim], size: int, axis_name: Hashable
    ) -> tuple[Any, Any]:
        (x,) = args
        lanes = x if dims[0] is not None else s.repeat_lanes(x, size, axis_name)
        if not isinstance(axis_name, DividedAxis) or self.is_invariant:
            return self.exchange(lanes)
        if axis_name.ranks is not None:
            return self.exchange_across(axis_name.ranks, lanes), 0
        out, dim = self.exchange(lanes)
        return (out if dim is not None else s.broadcast_to(out, (size, *shape_of(out)))), 0

    def exchange(self, x: Value) -> tuple[Any, Any]:
        """Result and its batch dim for the values of all lanes, stacked in front."""
        raise NotImplementedError

    def exchange_across(self, ranks: Ranks, x: Value) -> Value:
        """The result for the lanes of this process, where several processes have lanes.

        By default each gets those of all, and keeps its own of the result.
        """
        out, _ = self.exchange(AllGather(ranks, ranks.size, 0, True, is_invariant=True).bind(x))
        return OwnPart(ranks, ranks.size, 0).bind(out)


class AxisIndex(_Exchange):
    """The number of the lane, an int32."""

    def abstract_eval(self) -> ShapedArray:
        return shaped((), np.dtype(np.int32))

    def batch_named(
        self, args: Sequence[Value], dims: Sequence[BatchDim], size: int, axis_name: Hashable
    ) -> tuple[Any, Any]:
        lanes = np.arange(size, dtype=np.int32)
        ranks = _ranks_of(axis_name)
        if ranks is None:
            return lanes, 0
        first = mul.bind(AxisIndex(ranks, ranks.size).bind(), np.int32(size))
        return add.bind(lanes, first), 0

    @property
    def is_effectful(self) -> bool:  # type: ignore[override]
        return False

    def steps(self, apply: Steps, *args: Any) -> Any:
        return apply(RankIndex(self.ranks))


class AllGather(_Exchange):
    """The values of all lanes, stacked along a new axis, or joined along an old one if tiled."""

    axis: int
    tiled: bool
    is_invariant: bool = False
    is_reduced: bool = False

    agrees = True
    happens_again = True

    def lane_kind(self, kinds: Sequence[str]) -> str | None:
        if UNREDUCED in kinds:
            return None
        return INVARYING if self.is_invariant else REDUCED if self.is_reduced else VARYING

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        shape = list(x.shape)
        if self.tiled:
            shape[self.axis] *= self.axis_size
        else:
            shape.insert(self.axis, self.axis_size)
        return x.strong().update(shape=tuple(shape))

    def exchange(self, x: Value) -> tuple[Any, Any]:
        ranks = _ranks_of(self.axis_name)
        if ranks is not None and self.is_invariant:
            x = AllGather(ranks, ranks.size, 0, True, is_invariant=True).bind(x)
        gathered = s.moveaxis_from_front(x, self.axis)
        return (joined(gathered, self.axis) if self.tiled else gathered), None

    def exchange_across(self, ranks: Ranks, x: Value) -> Value:
        out, _ = self.exchange(AllGather(ranks, ranks.size, 0, True).bind(x))
        return s.broadcast_to(out, (shape_of(x)[0], *shape_of(out)))

    def steps(self, apply: Steps, *args: Any) -> Any:
        (x,) = args
        gathered = apply(RankGather(self.ranks), x)
        gathered = _moved(apply, gathered, 0, self.axis)
        return _joined(apply, gathered, self.axis) if self.tiled else gathered

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        if self.is_invariant:
            if not ranks_in(self.axis_names):
                ct = Unvary(((self.axis_name, self.axis_size),)).bind(ct)
            own = OwnPart(self.axis_name, self.axis_size, self.axis).bind(ct)
            return (own if self.tiled else s.reshape(own, shape_of(x)),)
        return (ReduceScatter(self.axis_name, self.axis_size, self.axis, self.tiled).bind(ct),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return replace(self, axis=self.axis + 1).bind(*args), 0


class OwnPart(_Exchange):
    """The part of an array, which all lanes or processes have, that belongs to this one.

    It is the transpose of gathering into an array that counts once.
    """

    axis: int

    is_effectful = False

    def batch_named(
        self, args: Sequence[Value], dims: Sequence[BatchDim], size: int, axis_name: Hashable
    ) -> tuple[Any, Any]:
        (x,) = args
        assert dims[0] is None, "the array is equal in all lanes"
        parts = s.moveaxis_to_front(parted(x, self.axis, self.axis_size), self.axis)
        ranks = _ranks_of(axis_name)
        return (parts if ranks is None else OwnPart(ranks, ranks.size, 0).bind(parts)), 0

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        shape = list(x.shape)
        shape[self.axis] //= self.axis_size
        return x.strong().update(shape=tuple(shape))

    def steps(self, apply: Steps, *args: Any) -> Any:
        (x,) = args
        low, high = [0] * aval_of(x).ndim, list(aval_of(x).shape)
        length = high[self.axis] // self.axis_size
        low[self.axis] = self.ranks.index * length
        high[self.axis] = low[self.axis] + length
        return apply(s.Slice(tuple(low), tuple(high), (1,) * len(low)), x)

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (AllGather(self.axis_name, self.axis_size, self.axis, True, True).bind(ct),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return replace(self, axis=self.axis + 1).bind(*args), 0


class ReduceScatter(_Exchange):
    """The sum over lanes, of which lane ``i`` gets element, or if tiled part, ``i`` of an axis."""

    axis: int
    tiled: bool

    name = "psum_scatter"

    def lane_kind(self, kinds: Sequence[str]) -> str | None:
        return VARYING

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        shape = list(x.shape)
        _check_parts(self.name, x, self.axis, self.axis_size, self.tiled)
        if self.tiled:
            shape[self.axis] //= self.axis_size
        else:
            del shape[self.axis]
        return x.strong().update(shape=tuple(shape))

    def exchange(self, x: Value) -> tuple[Any, Any]:
        total = s.ReduceSum((0,)).bind(x)
        if self.tiled:
            total = parted(total, self.axis, self.axis_size)
        return s.moveaxis_to_front(total, self.axis), 0

    def exchange_across(self, ranks: Ranks, x: Value) -> Value:
        parts = self.exchange(x)[0]
        return ReduceScatter(ranks, ranks.size, 0, True).bind(parts)

    def steps(self, apply: Steps, *args: Any) -> Any:
        (x,) = args
        if self.tiled:
            x = _parted(apply, x, self.axis, self.axis_size)
        x = _moved(apply, x, self.axis, 0)
        if self.axis_size == 1:
            return apply(s.Reshape(aval_of(x).shape[1:]), x)
        if self.ranks.deterministic:
            return pairwise_total(apply, apply(RankExchange(self.ranks), x), self.axis_size)
        if not self.ranks.halving:
            return apply(RankPart(self.ranks), x)
        for distance in self.ranks.halving:
            x = apply(RankHalf(self.ranks, distance=distance), x)
        return apply(s.Reshape(aval_of(x).shape[1:]), x)

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (AllGather(self.axis_name, self.axis_size, self.axis, self.tiled).bind(ct),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return replace(self, axis=self.axis + 1).bind(*args), 0


class PPermute(_Exchange):
    """The value of another lane; zero for lanes that nobody sends to.

    Attributes:
        pairs: Sources and destinations; no lane twice among either.
    """

    pairs: tuple[tuple[int, int], ...]

    name = "ppermute"

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x.strong()

    def exchange(self, x: Value) -> tuple[Any, Any]:
        # A lane that nobody sends to reads behind the last one.
        sources = np.full(self.axis_size, self.axis_size)
        for source, destination in self.pairs:
            sources[destination] = source
        zero = aval_of(x).dtype.type(0)
        return Gather((0,), "fill", zero).bind(x, sources), 0

    def exchange_across(self, ranks: Ranks, x: Value) -> Value:
        if ranks.size == self.axis_size:  # one lane each
            return PPermute(ranks, ranks.size, self.pairs).bind(x)
        return super().exchange_across(ranks, x)

    def steps(self, apply: Steps, *args: Any) -> Any:
        (x,) = args
        passing = RankPass(self.ranks, self.pairs)
        if self.axis_size > 1:
            passed = apply(passing, x)
        elif self.pairs:
            return x
        if passing.source is not None:
            return passed
        aval = aval_of(x)
        return apply(s.BroadcastTo(aval.shape), aval.dtype.type(0))

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        back = tuple((destination, source) for source, destination in self.pairs)
        return (replace(self, pairs=back).bind(ct),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), 0


class AllToAll(_Exchange):
    """Part ``i`` of an axis goes to lane ``i``; what arrives is put together along another."""

    split_axis: int
    concat_axis: int
    tiled: bool

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        _check_parts(self.name, x, self.split_axis, self.axis_size, self.tiled)
        shape = list(x.shape)
        if self.tiled:
            shape[self.split_axis] //= self.axis_size
            shape[self.concat_axis] *= self.axis_size
        else:
            del shape[self.split_axis]
            shape.insert(self.concat_axis, self.axis_size)
        return x.strong().update(shape=tuple(shape))

    def exchange(self, x: Value) -> tuple[Any, Any]:
        if self.tiled:
            x = parted(x, self.split_axis + 1, self.axis_size)
        # Axis 0 is the sender, the split axis the receiver.
        x = s.moveaxis_to_front(x, self.split_axis + 1)
        rest = list(range(2, len(shape_of(x))))
        rest.insert(self.concat_axis, 1)
        x = s.Transpose((0, *rest)).bind(x)
        return (joined(x, self.concat_axis + 1) if self.tiled else x), 0

    def exchange_across(self, ranks: Ranks, x: Value) -> Value:
        if ranks.size == self.axis_size:  # one lane each
            split, concat = self.split_axis + 1, self.concat_axis + 1
            return AllToAll(ranks, ranks.size, split, concat, self.tiled).bind(x)
        return super().exchange_across(ranks, x)

    def steps(self, apply: Steps, *args: Any) -> Any:
        (x,) = args
        if self.tiled:
            x = _parted(apply, x, self.split_axis, self.axis_size)
        x = apply(RankExchange(self.ranks), _moved(apply, x, self.split_axis, 0))
        x = _moved(apply, x, 0, self.concat_axis)
        return _joined(apply, x, self.concat_axis) if self.tiled else x

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        back = replace(self, split_axis=self.concat_axis, concat_axis=self.split_axis)
        return (back.bind(ct),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        shifted = replace(self, split_axis=self.split_axis + 1, concat_axis=self.concat_axis + 1)
        return shifted.bind(*args), 0


def pairwise_total(apply: Steps, x: Any, size: int) -> Any:
    """The sum of the elements along the first axis: neighbours, then neighbouring sums, and so on.

    A power of two of equal parts, summed alike in parts, gives the same bits however it is shared.
    """
    shape = shape_of(aval_of(x))[1:]
    parts = []
    for i in range(size):
        low, high = (i, *(0 for _ in shape)), (i + 1, *shape)
        part = apply(s.Slice(low, high, (1,) * len(low)), x)
        parts.append(apply(s.Reshape(shape), part))
    while len(parts) > 1:
        pairs = [apply(add, a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def _moved(apply: Steps, x: Any, start: int, end: int) -> Any:
    """Move one axis to another position."""
    order = list(range(aval_of(x).ndim))
    order.insert(end, order.pop(start))
    return x if order == sorted(order) else apply(s.Transpose(tuple(order)), x)


def _joined(apply: Steps, x: Any, axis: int) -> Any:
    shape = aval_of(x).shape
    joint = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    return apply(s.Reshape(joint), x)


def _parted(apply: Steps, x: Any, axis: int, n: int) -> Any:
    shape = aval_of(x).shape
    return apply(s.Reshape((*shape[:axis], n, shape[axis] // n, *shape[axis + 1 :])), x)


def joined(x: Value, axis: int) -> Value:
    """An axis and the one behind it as one."""
    shape = shape_of(x)
    return s.reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def parted(x: Value, axis: int, n: int) -> Value:
    """Split an axis into two, of which the first has length ``n``."""
    shape = shape_of(x)
    return s.reshape(x, (*shape[:axis], n, shape[axis] // n, *shape[axis + 1 :]))


def _check_parts(name: str, x: ShapedArray, axis: int, size: int, tiled: bool) -> None:
    length = x.shape[axis]
    if length % size if tiled else length != size:
        wanted = f"a multiple of {size}" if tiled else str(size)
        raise ShapeError(
            f"{name}: axis {axis} of {x} must have length {wanted}, that of the mapped axis: one "
            f"part for every lane.{'' if tiled else ' With tiled=True parts may be longer.'}"
        )
