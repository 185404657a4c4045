"""Programs that show `shard_map` as one operation, with the program of a lane in it.

What runs is the program of whole arrays, as everywhere: derivatives, batching and compilation are
those of a call of it. Beside it stands what a lane does, recorded while the function is traced:
which operations it applies to its parts, and where what all lanes share becomes one copy for each.
Copies are explicit there, so that what a lane does in the derivative is the derivative of what it
does: the transpose of a copy is a sum, that of a sum a copy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from funcgrad import sharding
from funcgrad.api.arguments import name_of
from funcgrad.base.pytree import broadcast_prefix, tree_unflatten
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.observers import OBSERVED
from funcgrad.core.primitive import BatchDim, Primitive, Value, is_linear, mapped_length
from funcgrad.core.program import (
    Atom,
    Equation,
    Literal,
    Program,
    Var,
    axis_names,
    axis_names_of,
    evaluate,
)
from funcgrad.core.trace import EVAL, Trace, Tracer, current_trace, run_under, using_trace
from funcgrad.distributed.meshes import TermsSpec, names_in
from funcgrad.higher_order.jit import Jit, ProgramCall, scatter
from funcgrad.higher_order.mesh_lanes import LaneType, MeshAxis, lane_type
from funcgrad.interop.jax.places import is_spec
from funcgrad.numpy.writable import as_arguments
from funcgrad.passes.dce import without_dead
from funcgrad.primitives.collectives import REDUCED, AllGather, PSum, PVary, ReduceScatter
from funcgrad.primitives.families import linear_jvp
from funcgrad.primitives.objects import flatten_values
from funcgrad.transforms.batch import keeps_shared
from funcgrad.transforms.programs import batch_program, linearize_program, transpose_program
from funcgrad.transforms.stage import stage

Mask = tuple[bool, ...]
Specs = tuple[sharding.PartitionSpec, ...]


class LaneCopy(PVary):
    """A copy for every lane, in the program of one."""

    name = "pvary"
    jvp = linear_jvp

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        of_terms = self.to == REDUCED
        return ((LaneTotal if of_terms else LaneSum)(self.axes, True).bind(ct),)


class LaneSum(PSum):
    """A sum over lanes, in the program of one."""

    name = "psum_invariant"

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (LaneCopy(self.axes).bind(ct),)


class LaneTotal(PSum):
    """A sum over lanes that was left for later, in the program of one."""

    name = "unreduced_psum"

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (LaneCopy(self.axes, to=REDUCED).bind(ct),)


class LaneGather(AllGather):
    """The values of all lanes as copies whose cotangents are terms, in the program of one."""

    name = "all_gather_reduced"

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (LaneScatter(self.axis_name, self.axis_size, self.axis, self.tiled).bind(ct),)


class LaneScatter(ReduceScatter):
    """The part of this lane of a sum that was left for later, in the program of one."""

    name = "unreduced_reduce_scatter"

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        gather = LaneGather(self.axis_name, self.axis_size, self.axis, self.tiled, is_reduced=True)
        return (gather.bind(ct),)


def _in_lane(primitive: Primitive, kinds: Sequence[LaneType]) -> Primitive:
    """An operation as the program of a lane has it, of operands of known kinds."""
    if type(primitive) is PVary:
        return LaneCopy(primitive.axes, primitive.is_invariant, primitive.has_like, primitive.to)
    if type(primitive) is PSum and primitive.is_invariant:
        return (LaneTotal if kinds[0].unreduced else LaneSum)(primitive.axes, True)
    if type(primitive) is AllGather and primitive.is_reduced:
        return LaneGather(
            primitive.axis_name, primitive.axis_size, primitive.axis, primitive.tiled,
            is_reduced=True,
        )  # fmt: skip
    return primitive


class LaneTracer(Tracer):
    """A value of the lanes, and its name in the program of one of them."""

    __slots__ = ("atom", "aval", "value")
    aval: ShapedArray
    atom: Any

    def __init__(self, trace: LaneTrace, value: Any, atom: Atom) -> None:
        self.owner = trace
        self.value = value
        self.atom = atom
        self.aval = aval_of(value)


class LaneTrace(Trace):
    """Applies operations under the parent trace, which maps lanes, and records them.

    Attributes:
        equations: What a lane does.
        captured: Names of values of outside, with these, by identity.
    """

    __slots__ = ("captured", "copies", "equations")

    def __init__(self, parent: Trace, what: str) -> None:
        super().__init__(parent, what)
        self.equations: list[Equation] = []
        self.captured: dict[int, tuple[Var, Any]] = {}
        self.copies: dict[tuple[Any, Any], Var] = {}

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        assert self.parent is not None
        values = tuple(map(self.value, args))
        out = self.parent.process(primitive, values)
        outs = out if primitive.multiple_results else [out]
        if isinstance(primitive, PVary) and lane_type(outs[0]) == lane_type(values[0]):
            return args[0]
        atoms = list(map(self.atom, args))
        meets = frozenset(axis_names(primitive))
        has_programs = primitive.is_composite or axis_names_of(primitive) - meets
        if not (has_programs or keeps_shared(primitive)):
            atoms = self._copied(atoms, values, {getattr(axis, "label", axis) for axis in meets})
        names = [Var(aval_of(x)) for x in outs]
        shown = _in_lane(primitive, list(map(lane_type, values)))
        self.equations.append(Equation(shown, atoms, names, OBSERVED.locate()))
        made = [LaneTracer(self, x, name) for x, name in zip(outs, names, strict=True)]
        return made if primitive.multiple_results else made[0]

    def _copied(
        self, atoms: list[Atom], values: Sequence[Any], meets: Collection[Hashable]
    ) -> list[Atom]:
        """Names of operands that differ along the same axes: copies for each lane are recorded."""
        kinds = list(map(lane_type, values))
        union = frozenset(meets).union(*(kind.varying for kind in kinds))
        return [
            self.copied(atom, union.difference(*kind))
            for atom, kind in zip(atoms, kinds, strict=True)
        ]

    def copied(self, atom: Atom, names: Collection[Hashable]) -> Atom:
        """The name of a copy for every lane of axes, which is recorded once."""
        axes = tuple(
            axis
            for axis in axes_in_scope()
            if isinstance(axis[0], MeshAxis) and axis[0].is_tracked and axis[0].label in names
        )
        found = self.copies.get((atom, axes), None if axes else atom)
        if found is None:
            found = self.copies[atom, axes] = Var(atom.aval)
            self.equations.append(Equation(LaneCopy(axes), [atom], [found], OBSERVED.locate()))
        return found

    def value(self, x: Any) -> Any:
        """The value of the parent trace."""
        return x.value if type(x) is LaneTracer and x.owner is self else x

    def atom(self, x: Any) -> Atom:
        """The name of a value."""
        if type(x) is LaneTracer and x.owner is self:
            return x.atom
        if not isinstance(x, Tracer) and np.ndim(x) == 0:
            return Literal(np.asarray(x)[()] if isinstance(x, np.ndarray) else x)
        return self.captured.setdefault(id(x), (Var(aval_of(x)), x))[0]


class _Recording:
    """A function of the shards of one lane that records its last call as a program.

    Args:
        f: The function.
        out_specs: How its results are divided; along these axes there are copies of what is equal.
    """

    def __init__(self, f: Callable[..., Any], out_specs: Any) -> None:
        functools.update_wrapper(self, f)
        self.f = f
        self.out_specs = out_specs
        self.inputs: list[Var] = []
        self.outputs: list[Atom] = []

    def __call__(self, *args: Any) -> Any:
        trace = self.trace = LaneTrace(current_trace(), current_trace().what)
        leaves, treedef = flatten_values(args)
        inner = [LaneTracer(trace, x, Var(x.aval)) if isinstance(x, Tracer) else x for x in leaves]
        self.inputs = [x.atom for x in inner if type(x) is LaneTracer]
        given = as_arguments(inner)

        def run(*values: Any) -> Any:
            return flatten_values(self.f(*tree_unflatten(treedef, list(values))))

        outs, tree = run_under(trace, run, *given)
        values = list(map(trace.value, outs))
        specs = _specs_of(self.out_specs, tree_unflatten(tree, outs))
        self.outputs = [
            trace.copied(trace.atom(x), set(names_in(spec)).difference(*lane_type(value)))
            for x, spec, value in zip(outs, specs, values, strict=True)
        ]
        return tree_unflatten(tree, values)

    def program(self, captured: Sequence[Any], name: str) -> Program:
        """The program of a lane, with captured values as leading inputs."""
        known = {id(x): var for var, x in self.trace.captured.values()}
        leading = [known.get(id(x)) or Var(aval_of(x)) for x in captured]
        taken = set(map(id, captured))
        constants = [(var, x) for var, x in self.trace.captured.values() if id(x) not in taken]
        return Program(
            [*leading, *self.inputs], self.trace.equations, self.outputs, name, constants
        )


_OF_NOTHING = Program([], [], [], "lane")


class ShardMap(Jit):
    """A call of a function of whole arrays, with what a lane of the mesh does.

    Attributes:
        lanes: The program of a lane.
        in_specs: How the arguments are divided.
        out_specs: How the results are.
        options: The mesh, the axes that are mapped, and whether equal values are followed.
        residuals: How many of the leading inputs of the program, and of that of a lane, are
            residuals of a forward pass. These are others in the two; what follows is the same.
    """

    lanes: Program = _OF_NOTHING
    in_specs: Specs = ()
    out_specs: Specs = ()
    options: tuple[tuple[str, Any], ...] = ()
    residuals: tuple[int, int] = (0, 0)

    name = "shard_map"

    def impl(self, *args: Any) -> Any:
        """Evaluate the program; to compile it is the business of a `jit` around it."""
        with using_trace(EVAL):
            return evaluate(self.program, args)

    def of(self, program: Program) -> Jit:
        return Jit(program, self.threads, self.memory)

    def linearize(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Any, Any]:
        """Split both programs; only that of whole arrays has residuals that are computed."""
        flags = tuple(t is not None for t in tangents)
        in_lane = self._in_lane(flags)
        whole = linearize_program(self.program, flags)
        lanes = None if in_lane is None else linearize_program(self.lanes, in_lane)
        if lanes is None or lanes.is_active_out != whole.is_active_out:
            return super().linearize(primals, tangents)
        n, kept = whole.n_outputs, len(whole.residuals)
        results = replace(
            self,
            program=whole.forward,
            lanes=lanes.forward,
            out_specs=(*self.out_specs, *_OF_RESIDUALS * (len(whole.forward.outputs) - n)),
        ).bind(*primals)
        if not any(whole.is_active_out):
            return results[:n], [None] * n
        tangent = replace(
            self,
            program=whole.tangent,
            lanes=lanes.tangent,
            in_specs=(*_OF_RESIDUALS * kept, *compress(self.in_specs, flags)),
            out_specs=tuple(compress(self.out_specs, whole.is_active_out)),
            residuals=(kept, len(lanes.residuals)),
        )
        residuals = [primals[i] if kind == "in" else results[i] for kind, i in whole.residuals]
        dots = tangent.bind(*residuals, *(t for t in tangents if t is not None))
        return results[:n], scatter(dots, whole.is_active_out)

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        """Transpose both programs."""
        flags = tuple(is_linear(a) for a in args)
        active = tuple(c is not None for c in ct)
        in_lane = self._in_lane(flags)
        whole = transpose_program(self.program, flags, active)
        lanes = None if in_lane is None else transpose_program(self.lanes, in_lane, active)
        of_whole, of_lane = self.residuals
        if lanes is None or lanes.is_active_in[of_lane:] != whole.is_active_in[of_whole:]:
            return super().transpose(ct, *args)
        is_known = [not on for on in flags]
        results = replace(
            self,
            program=whole.program,
            lanes=lanes.program,
            in_specs=(
                *compress(self.in_specs, is_known),
                *map(_dual, compress(self.out_specs, active)),
            ),
            out_specs=tuple(map(_dual, compress(self.in_specs, whole.is_active_in))),
        ).bind(*compress(args, is_known), *(c for c in ct if c is not None))
        return scatter(results, whole.is_active_in)

    def _in_lane(self, flags: Mask) -> Mask | None:
        """Flags of the arguments as the program of a lane has them; `None` if it has not."""
        of_whole, of_lane = self.residuals
        is_tracked = dict(self.options)["check_vma"]
        if any(flags[:of_whole]) or not is_tracked or not self._has_same_outputs:
            return None
        return (*[False] * of_lane, *flags[of_whole:])

    @property
    def _has_same_outputs(self) -> bool:
        """Whether no results are residuals."""
        return len(self.lanes.outputs) == len(self.program.outputs) == len(self.out_specs)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        """Batch both programs; `vmap` may say by which axes of the mesh it divides lanes."""
        if any(self.residuals) or not self._has_same_outputs:
            return super().batch(args, dims)
        mesh = dict(self.options)["mesh"]
        of_trace = [n for trace, n in spmd_names.get() if trace.parent is current_trace()]
        names = tuple(name for row in of_trace for name in row if name in mesh.shape)
        is_mapped = tuple(d is not None for d in dims)
        size = mapped_length(args, dims)
        whole = batch_program(self.program, is_mapped, size)
        for name in names:
            size //= mesh.shape[name]
        entry = names[0] if len(names) == 1 else names or None
        lanes = batch_program(self.lanes, is_mapped, size)

        def wider(specs: Specs, flags: Mask) -> Specs:
            pairs = zip(specs, flags, strict=True)
            return tuple(sharding.P(entry, *(s or ())) if on else s for s, on in pairs)

        batched = replace(
            self,
            program=whole.program,
            lanes=lanes.program,
            in_specs=wider(self.in_specs, is_mapped),
            out_specs=wider(self.out_specs, whole.is_mapped_out),
        )
        return batched.bind(*args), [0 if on else None for on in whole.is_mapped_out]

    def pruned(self, used: Mask) -> tuple[ProgramCall, Mask, Mask]:
        if any(self.residuals) or not self._has_same_outputs:
            return super().pruned(used)
        lanes, needed = without_dead(self.lanes, used)
        whole, needed_by_whole = without_dead(self.program, used)
        if needed != needed_by_whole:  # arguments that only some lanes read
            return super().pruned(used)
        made = replace(
            self,
            program=whole,
            lanes=lanes,
            in_specs=tuple(compress(self.in_specs, needed)),
            out_specs=tuple(compress(self.out_specs, used)),
        )
        return made, needed, used

    def params(self) -> dict[str, Any]:
        specs = {"in_specs": self.in_specs, "out_specs": self.out_specs}
        return {"jaxpr": self.lanes, **specs, **dict(self.options)}


_OF_RESIDUALS = (sharding.P(),)


def _dual(spec: Any) -> sharding.PartitionSpec:
    """The spec of cotangents."""
    return sharding.P() if spec is None else spec.dual


spmd_names: ContextVar[tuple[tuple[Trace, tuple[Hashable, ...]], ...]]
spmd_names = ContextVar("spmd_names", default=())
"""Traces of `vmap` around, and axes of a mesh along which they divide what they map."""


def as_operation(f: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """`sharding.shard_map` as one operation of a program that is traced.

    Args:
        f: The function of parts.
        options: As of `sharding.shard_map`.
    """

    def run(*args: Any) -> Any:
        recording = _Recording(f, options["out_specs"])
        compute = sharding.shard_map(recording, **options)
        leaves, treedef = flatten_values(args)
        is_array = [isinstance(x, Tracer | np.ndarray) for x in leaves]  # others are not traced
        trees: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            rest = iter(values)
            full = [next(rest) if on else x for x, on in zip(leaves, is_array, strict=True)]
            outs, tree = flatten_values(compute(*tree_unflatten(treedef, full)))
            trees.append(tree)
            return outs

        name = name_of(f)
        arrays = list(compress(leaves, is_array))
        program, captured = stage(flat, list(map(aval_of, arrays)), name)
        mesh = options.get("mesh") or sharding.get_abstract_mesh()
        manual = frozenset(options.get("axis_names") or mesh.axis_names)
        shown = {"mesh": mesh, "check_vma": options.get("check_vma", True), "manual_axes": manual}
        out = tree_unflatten(trees[0], list(program.outputs))
        operation = ShardMap(
            program,
            lanes=recording.program(captured, name),
            in_specs=(
                *[sharding.P()] * len(captured),
                *compress(_specs_of(options["in_specs"], args), is_array),
            ),
            out_specs=tuple(_specs_of(options["out_specs"], out)),
            options=tuple(shown.items()),
        )
        return tree_unflatten(trees[0], operation.bind(*captured, *arrays))

    return run


def _specs_of(specs: Any, tree: Any) -> list[Any]:
    """The spec of each leaf as it was given: what is said of terms is of their sum."""
    return [
        s.total if isinstance(s, TermsSpec) else s
        for s in broadcast_prefix(specs, tree, is_leaf=is_spec)
    ]
