"""Transformations of programs into programs, each memoised on the program it transforms.

Without memoisation, nested `jit` under differentiation would be traced again at every level, which
is quadratic in the depth. Each runs an interpreter of this package under a `StageTrace`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.base.dialect import dialect
from funcgrad.base.records import dataclass
from funcgrad.core.avals import aval_of
from funcgrad.core.axes import divided_axis
from funcgrad.core.facets import Facet
from funcgrad.core.primitive import Linear
from funcgrad.core.program import Atom, Equation, Literal, Program, Var, evaluate
from funcgrad.core.trace import EVAL, Tracer, using_trace
from funcgrad.errors import UnexpectedTracerError
from funcgrad.transforms.batch import batch_flat
from funcgrad.transforms.jvp import jvp_flat
from funcgrad.transforms.linearize import LinearMap, TapeEntry, linearize_flat, record_linear
from funcgrad.transforms.stage import StageTrace, StageTracer, stage

Mask = tuple[bool, ...]

decomposed: Facet[Callable[..., Sequence[Any]] | None] = Facet("decomposed", None)
"""Programs have the operations of this function, instead of one that only tapes know."""


@dataclass(frozen=True)
class JvpProgram:
    """``program`` maps primals and the nonzero tangents to results and their nonzero tangents."""

    program: Program
    is_active_out: Mask


def jvp_program(program: Program, is_active: Mask) -> JvpProgram:
    """The JVP of a program, for tangents that are nonzero where ``is_active``."""
    return program.memo(("jvp", is_active), lambda: _jvp_program(program, is_active))


def _jvp_program(program: Program, is_active: Mask) -> JvpProgram:
    avals = program.in_avals
    active_out: list[bool] = []

    def run(*args: Any) -> list[Any]:
        primals, rest = args[: len(avals)], iter(args[len(avals) :])
        tangents = [next(rest) if active else None for active in is_active]
        outs, out_dots = jvp_flat(
            lambda *xs: evaluate(program, xs), primals, tangents, f"jvp({program.name})"
        )
        active_out.extend(t is not None for t in out_dots)
        return [*outs, *(t for t in out_dots if t is not None)]

    tangent_avals = [a.strong() for a, active in zip(avals, is_active, strict=True) if active]
    staged = stage_closed(run, [*avals, *tangent_avals], f"jvp_{program.name}")
    return JvpProgram(staged, tuple(active_out))


@dataclass(frozen=True)
class LinearizedProgram:
    """A program split into its evaluation and its derivative.

    Args:
        forward: Maps the inputs to the results followed by computed residuals.
        tangent: Maps residuals and nonzero tangents to the nonzero tangents of the results.
        residuals: Source of each residual: ``("in", i)`` is input ``i``, ``("out", i)`` is output
            ``i`` of ``forward``. Nothing is stored twice.
        is_active_out: Which results have nonzero tangents.
        n_outputs: How many outputs of ``forward`` are results.
    """

    forward: Program
    tangent: Program
    residuals: tuple[tuple[str, int], ...]
    is_active_out: Mask
    n_outputs: int


def linearize_program(program: Program, is_active: Mask) -> LinearizedProgram:
    """Split a program into forward and tangent programs with the residuals between them."""
    key = ("linearize", is_active)
    return program.memo(key, lambda: _split_program(program, is_active, linearize_flat))


def separate_program(program: Program, is_linear: Mask) -> LinearizedProgram:
    """Partial evaluation: split a program into a known part and one linear in some inputs.

    Args:
        program: Linear in the inputs where ``is_linear``, as far as it depends on them. If it is
            not, some equation of ``tangent`` is not linear either.
        is_linear: Which inputs have no values.
    Returns: As of `linearize_program`: results that depend on those inputs are zeros in
        ``forward``, and ``tangent`` computes them.
    """
    key = ("separate", is_linear)
    return program.memo(key, lambda: _split_program(program, is_linear, _separate_flat))


def _separate_flat(
    function: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    is_linear: Sequence[bool],
    what: str,
) -> tuple[list[Any], LinearMap]:
    avals = [aval_of(x) for x in args]
    known, linear = record_linear(function, args, is_linear, avals, what, separates=True)
    outs = [
        x if slot is None else np.broadcast_to(np.zeros((), slot.dtype), slot.shape)
        for x, slot in zip(known, linear.outputs, strict=True)
    ]
    return outs, linear


def _split_program(
    program: Program, is_active: Mask, split: Callable[..., tuple[list[Any], LinearMap]]
) -> LinearizedProgram:
    name = program.name
    with using_trace(EVAL):
        trace = StageTrace(EVAL, f"linearize({name})")
        inputs = [
            trace.new_input(a, f"argument {i} of {name}") for i, a in enumerate(program.in_avals)
        ]
        replay = Replay(trace, program)
        with using_trace(trace):
            outs, linear = split(replay, inputs, is_active, f"grad({name})")
        tangent, values = tangent_program(linear, f"tangent_{name}")
        sources, extra = _classify_residuals(trace, inputs, outs, values)
        forward, captured = trace.program([*outs, *extra], f"forward_{name}")
    assert not captured, "programs are closed"
    active_out = tuple(slot is not None for slot in linear.outputs)
    return LinearizedProgram(forward, tangent, sources, active_out, len(outs))


class Replay:
    """Evaluates a program while another is staged, and copies the user's lines to its equations."""

    def __init__(self, trace: StageTrace, program: Program) -> None:
        self.trace = trace
        self.program = program
        self.length = 0

    def __call__(self, *args: Any) -> list[Any]:
        return evaluate(self.program, args, self._carry_source)

    def _carry_source(self, equation: Equation) -> None:
        for made in self.trace.equations[self.length :]:
            made.source = equation.source
        self.length = len(self.trace.equations)


def _classify_residuals(
    trace: StageTrace, inputs: Sequence[Any], outs: Sequence[Any], values: Sequence[Any]
) -> tuple[tuple[tuple[str, int], ...], list[Any]]:
    """Sources of residuals, and those residuals that have to be appended to the outputs."""
    where: dict[Atom, tuple[str, int]] = {}
    for i, out in enumerate(outs):
        where[trace.atom(out)] = ("out", i)
    for i, tracer in enumerate(inputs):
        where[tracer.atom] = ("in", i)
    extra: list[Any] = []
    sources = []
    for value in values:
        atom = trace.atom(value)
        if atom not in where:
            where[atom] = ("out", len(outs) + len(extra))
            extra.append(value)
        sources.append(where[atom])
    return tuple(sources), extra


def live_entries(linear: LinearMap) -> list[TapeEntry]:
    """The entries that the outputs depend on (dead code elimination)."""
    needed = {slot.index for slot in linear.outputs if slot is not None}
    live = []
    for entry in reversed(linear.entries):
        if not needed.isdisjoint(entry.outputs):
            live.append(entry)
            needed.update(x.index for x in entry.inputs if type(x) is Linear)
    return live[::-1]


def tangent_program(linear: LinearMap, name: str) -> tuple[Program, list[Any]]:
    """A linear map as a program of residuals and tangents, and the traced residuals."""
    names: dict[int, Atom] = {}
    residuals: dict[Any, Var] = {}
    constants: dict[int, tuple[Var, Any]] = {}
    values: list[Any] = []
    tangent_inputs = []
    for slot in linear.inputs:
        if slot is not None:
            tangent_inputs.append(Var(slot.aval.strong()))
            names[slot.index] = tangent_inputs[-1]

    def atom(x: Any) -> Atom:
        if type(x) is Linear:
            return names[x.index]
        if isinstance(x, Tracer):
            key = x.atom if isinstance(x, StageTracer) else id(x)
            if key not in residuals:
                residuals[key] = Var(x.aval.strong())
                values.append(x)
            return residuals[key]
        if isinstance(x, np.ndarray) and x.ndim:
            return constants.setdefault(id(x), (Var(aval_of(x)), x))[0]
        return Literal(x[()] if isinstance(x, np.ndarray) else x)

    equations: list[Equation] = []
    for entry in live_entries(linear):
        inputs = [atom(x) for x in entry.inputs]
        function = decomposed(entry.primitive)
        if function is not None:
            inner = stage_closed(function, [a.aval for a in inputs], name)
            here: dict[Atom, Atom] = dict(zip(inner.inputs, inputs, strict=True))
            for e in inner.equations:
                own = [here.get(a, a) for a in e.inputs]
                equations.append(Equation(e.primitive, own, e.outputs, entry.source))
            constants.update((id(var), (var, x)) for var, x in inner.constants)
            found = [here.get(a, a) for a in inner.outputs]
            names.update(zip(entry.outputs, found, strict=True))
            continue
        result = entry.primitive.abstract_eval(*[a.aval for a in inputs])
        avals = result if entry.primitive.multiple_results else [result]
        outputs = [Var(aval) for aval in avals]
        names.update(zip(entry.outputs, outputs, strict=True))
        equations.append(Equation(entry.primitive, inputs, outputs, entry.source))
    outs = [names[slot.index] for slot in linear.outputs if slot is not None]
    all_inputs = [*residuals.values(), *tangent_inputs]
    return Program(all_inputs, equations, outs, name, tuple(constants.values())), values


@dataclass(frozen=True)
class TransposedProgram:
    """``program`` maps non-linear inputs and nonzero cotangents to nonzero input cotangents."""

    program: Program
    is_active_in: Mask


def transpose_program(program: Program, is_linear: Mask, is_active_ct: Mask) -> TransposedProgram:
    """The transpose of a program in its linear inputs.

    Args:
        program: Linear in the inputs where ``is_linear``.
        is_linear: Which inputs it is linear in.
        is_active_ct: Which outputs have nonzero cotangents.
    """
    key = ("transpose", is_linear, is_active_ct)
    return program.memo(key, lambda: _transpose_program(program, is_linear, is_active_ct))


def _transpose_program(program: Program, is_linear: Mask, is_active_ct: Mask) -> TransposedProgram:
    known_avals = [a for a, lin in zip(program.in_avals, is_linear, strict=True) if not lin]
    ct_avals = [
        a.strong() for a, active in zip(program.out_avals, is_active_ct, strict=True) if active
    ]
    active_in: list[bool] = []

    def run(*args: Any) -> list[Any]:
        rest = iter(args)
        full = [None if lin else next(rest) for lin in is_linear]
        cts = [next(rest) if active else None for active in is_active_ct]
        _, linear = record_linear(
            lambda *xs: evaluate(program, xs),
            full,
            is_linear,
            program.in_avals,
            f"transpose({program.name})",
        )
        in_cts = linear.pull(cts)
        active_in.extend(ct is not None for ct in in_cts)
        return [ct for ct in in_cts if ct is not None]

    staged = stage_closed(run, [*known_avals, *ct_avals], f"transpose_{program.name}")
    return TransposedProgram(staged, tuple(active_in))


@dataclass(frozen=True)
class BatchedProgram:
    """``program`` works on mapped inputs, batch axis in front; outputs likewise."""

    program: Program
    is_mapped_out: Mask


def batch_program(program: Program, is_mapped: Mask, size: int) -> BatchedProgram:
    """The program mapped over a new leading axis of length ``size`` of some inputs."""
    keeps_weak = dialect().weak is not None  # else only numbers are weak, which have no axes
    key = ("batch", is_mapped, size, divided_axis(), keeps_weak)
    return program.memo(key, lambda: _batch_program(program, is_mapped, size, keeps_weak))


def _batch_program(
    program: Program, is_mapped: Mask, size: int, keeps_weak: bool
) -> BatchedProgram:
    kinds = program.in_avals if keeps_weak else [a.strong() for a in program.in_avals]
    avals = [
        kind.update(shape=(size, *a.shape)) if mapped else a
        for a, kind, mapped in zip(program.in_avals, kinds, is_mapped, strict=True)
    ]
    dims = [0 if mapped else None for mapped in is_mapped]
    mapped_out: list[bool] = []

    def run(*args: Any) -> list[Any]:
        outs, out_dims = batch_flat(
            lambda *xs: evaluate(program, xs), args, dims, size, f"vmap({program.name})"
        )
        mapped_out.extend(d is not None for d in out_dims)
        return outs

    staged = stage_closed(run, avals, f"vmap_{program.name}")
    return BatchedProgram(staged, tuple(mapped_out))


def stage_closed(function: Any, avals: Sequence[Any], name: str) -> Program:
    """Stage a function of flat arguments that closes over no traced value.

    Raises: UnexpectedTracerError: If it does, which only functions of the user can.
    """
    with using_trace(EVAL):
        program, captured = stage(function, avals, name)
    if captured:
        raise UnexpectedTracerError(
            f"{name} uses a traced {aval_of(captured[0])} of {captured[0].owner.what} that is "
            "neither an argument nor in the closure of the function or of its rules: it was found "
            "through a global variable. Pass it as an argument."
        )
    return program
