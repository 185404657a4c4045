"""Checkpointing: derivatives that compute residuals again instead of keeping them.

``checkpoint : (a -> b) -> (a -> b)``, the same function with another derivative. Linearisation
keeps the arguments, and the residuals that a policy saves; the tangents are one linear operation
that computes the other residuals before it uses them. Its transpose does the same, so that they are
computed when the backward pass arrives. All that comes out are checkpoints again: the construction
is closed under differentiation, batching and transposition.

Left out: memory budgets (`higher_order.budget`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray
from funcgrad.core.facets import Facet
from funcgrad.core.primitive import BatchDim, Primitive, Value, is_linear
from funcgrad.core.program import Atom, Equation, Program, Var, evaluate, makers
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.higher_order.jit import Jit, ProgramCall, run_program, scatter
from funcgrad.higher_order.linearity import parted, together
from funcgrad.higher_order.policies import Policy, everything_saveable, nothing_saveable
from funcgrad.lowering import Barrier as BarrierForm
from funcgrad.lowering import Form, Reindex, Reshape, form_of
from funcgrad.observers.source import REMAT
from funcgrad.passes.dce import dce
from funcgrad.primitives.families import linear_jvp
from funcgrad.transforms import programs

Mask = tuple[bool, ...]
Names = dict[Var, Atom]

happens_again = Facet("happens_again", False)
"""Whether an effect may happen again for the derivative: an exchange between processes that gives
more than it is given, so that keeping the result costs more memory than keeping the operand."""


class CheckpointName(Primitive):
    """The argument, under a name that policies know."""

    value_name: str

    jvp = linear_jvp
    makes_no_nans = True

    def impl(self, x: Any) -> Any:
        return x

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x.strong()

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (ct,)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), 0

    def lower(self, x: ShapedArray) -> Form:
        return Reindex(tuple(range(x.ndim)), (0,) * x.ndim, (1,) * x.ndim)


@dataclass(frozen=True, eq=False)
class Barrier(Primitive):
    """The arguments; no two of its equations are equal, and nothing behind it runs before it."""

    multiple_results = True
    makes_no_nans = True
    keeps_shared = True

    def impl(self, *args: Any) -> Any:
        return list(args)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return list(avals)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        return self.bind(*primals), list(tangents)

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        return [c if is_linear(a) else None for c, a in zip(ct, args, strict=True)]

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), list(dims)

    def lower(self, *avals: ShapedArray) -> Form:
        return BarrierForm()


class Checkpoint(ProgramCall):
    """Run ``program``, of whose intermediate results only some are kept for the derivative.

    Attributes:
        program: The program.
        policy: Which residuals are saved.
        prevent_cse: Whether compiled code must not use results of the forward pass for what is
            to be computed again.
        is_compiled: Whether the program runs compiled, because parts of it did in the user's
            function.
    """

    policy: Policy = nothing_saveable
    prevent_cse: bool = True
    is_compiled: bool = False

    def impl(self, *args: Any) -> Any:
        if self.is_compiled:
            return run_program(self.program, args)
        with using_trace(EVAL):
            return evaluate(self.program, args)

    def params(self) -> dict[str, Any]:
        return {
            "name": self.program.name,
            "policy": self.policy,
            "prevent_cse": self.prevent_cse,
            "program": self.program,
        }

    def linearize(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Any, Any]:
        return self._apply(programs.linearize_program, primals, tangents)

    def separate(self, args: Sequence[Value], is_linear: Sequence[bool]) -> list[Value]:
        return together(*self._apply(programs.separate_program, *parted(args, is_linear)))

    def _apply(
        self, by: HowToSplit, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Any, Any]:
        is_active = tuple(t is not None for t in tangents)
        split = split_program(self.program, is_active, self.policy, by)
        call = replace(self, is_compiled=self.is_compiled or split.is_compiled)
        forward = self if not split.saved else call.of(split.forward)
        results = forward.bind(*primals)
        outs, saved = results[: split.n_outputs], results[split.n_outputs :]
        if not any(split.is_active_out):
            return outs, [None] * len(outs)
        kept = [primals[i] for i in split.inputs]
        nonzero = [t for t in tangents if t is not None]
        dots = call.of(split.tangent).bind(*kept, *saved, *nonzero)
        return outs, scatter(dots, split.is_active_out)

    def transposed(self, linear: Mask, is_active_ct: Mask) -> tuple[Program, Mask]:
        program, is_active_in = super().transposed(linear, is_active_ct)
        n_known = len(linear) - sum(linear)
        if not n_known:
            return program, is_active_in
        key = ("arranged", n_known, self.prevent_cse)
        backward = _Backward(program, n_known)
        return program.memo(key, lambda: backward.arranged(self.prevent_cse)), is_active_in


class _Backward:
    """A backward pass that computes residuals again, arranged so that little is kept at a time.

    Two barriers are set: the first separates it from the forward pass, the second what has to be
    computed in advance from the rest.

    Args:
        program: Its equations.
        n_known: How many of its inputs are not cotangents; they come first.
    """

    def __init__(self, program: Program, n_known: int) -> None:
        self.program = program
        self.n_known = n_known
        self.index = {e: i for i, e in enumerate(program.equations)}

    def arranged(self, with_barriers: bool) -> Program:
        early, late = self._divide()
        equations = [*early, *late]
        inputs = list(self.program.inputs)
        if with_barriers:
            later = {a for e in late for a in e.inputs} | set(self.program.outputs)
            crossing = [v for e in early for v in e.outputs if v in later]
            names = {v: Var(v.aval) for v in crossing}
            second = [Equation(Barrier(), crossing, list(names.values()))] if crossing else []
            outputs = [read(a, dict(names)) for a in self.program.outputs]
            known = [Var(v.aval.strong()) for v in inputs[: self.n_known]]
            first = Equation(Barrier(), known, inputs[: self.n_known])
            inputs[: self.n_known] = known
            equations = [first, *early, *second, *rename(late, dict(names))]
        else:
            outputs = list(self.program.outputs)
        p = self.program
        return Program(inputs, equations, outputs, p.name, p.constants)

    def _divide(self) -> tuple[list[Equation], list[Equation]]:
        """Equations to be run in advance, and the others, each as late as memory gains from it.

        Waiting spares the memory of the results and costs that of operands which nothing else
        would keep.
        """
        pulled = self._pulled()
        free = {*self.program.inputs, *(v for v, _ in self.program.constants)}
        position: dict[Equation, int] = {}
        readers: dict[Var, int] = {}
        early: list[Equation] = []
        needed_early: set[Atom] = set(self.program.outputs)
        for e in reversed(self.program.equations):
            operands = {a for a in e.inputs if type(a) is Var}
            waits = e in pulled
            if not waits and needed_early.isdisjoint(e.outputs):
                fresh = [v for v in operands if v not in free and v not in readers]
                waits = _size(fresh) <= _size(e.outputs)
            if not waits:
                early.append(e)
                needed_early |= operands
                continue
            own = self.index[e]
            position[e] = own if e in pulled else min(readers.get(v, own) for v in e.outputs)
            for v in operands:
                readers[v] = min(readers.get(v, position[e]), position[e])
        # Do not delay equations that the first step of the backward pass reads.
        first = min((position[e] for e in position if e not in pulled), default=-1)
        early += [e for e in position if e not in pulled and position[e] == first]
        late = [e for e in position if e in pulled or position[e] != first]
        late.sort(key=lambda e: (position[e], self.index[e]))
        return sorted(early, key=self.index.__getitem__), late

    def _pulled(self) -> set[Equation]:
        """Equations that depend on cotangents."""
        names = set(self.program.inputs[self.n_known :])
        found = set()
        for e in self.program.equations:
            if e.primitive.is_effectful or not names.isdisjoint(e.inputs):
                found.add(e)
                names.update(e.outputs)
        return found


def _size(names: Iterable[Var]) -> int:
    return sum(v.aval.nbytes for v in names)


@dataclass(frozen=True)
class SplitProgram:
    """A program split for linearisation with a policy.

    Attributes:
        forward: From the inputs to the results and the saved residuals.
        tangent: From the inputs that it needs, the saved residuals and nonzero tangents to the
            nonzero tangents of the results. It begins with what is computed again.
        inputs: Which inputs it needs.
        saved: Equations of the saved residuals, in order, and which of their results.
        n_recomputed: How many equations are computed again.
        n_residuals: How many residuals the derivative has.
        is_active_out: Which results have nonzero tangents.
        n_outputs: How many outputs of ``forward`` are results.
        is_compiled: Whether there were compiled calls, which have been replaced by their equations.
    """

    forward: Program
    tangent: Program
    inputs: tuple[int, ...]
    saved: tuple[tuple[Equation, int], ...]
    n_recomputed: int
    n_residuals: int
    is_active_out: Mask
    n_outputs: int
    is_compiled: bool

    @property
    def linearized(self) -> programs.LinearizedProgram:
        """The same as a split whose tangent program computes residuals of others."""
        kept = [("in", i) for i in self.inputs]
        kept += [("out", self.n_outputs + i) for i in range(len(self.saved))]
        return programs.LinearizedProgram(
            self.forward, self.tangent, tuple(kept), self.is_active_out, self.n_outputs
        )


def effect_of(call: Checkpoint, is_active: Mask) -> str | None:
    """Why a checkpoint computes nothing again, or ``None`` if it does."""
    split = split_program(call.program, is_active, call.policy)
    if split.n_recomputed:
        return None
    if not split.n_residuals:
        return "the derivative needs no residuals."
    if not split.saved:
        return "the derivative needs nothing but the arguments."
    return "its policy saves all residuals."


def _again(equations: Iterable[Equation]) -> Iterator[Equation]:
    """Equations whose lines say that they are computed again."""
    for e in equations:
        source = None if e.source is None else e.source.in_phase(REMAT)
        yield Equation(e.primitive, e.inputs, e.outputs, source)


HowToSplit = Callable[[Program, Mask], programs.LinearizedProgram]


def split_program(
    program: Program, is_active: Mask, policy: Policy, by: HowToSplit = programs.linearize_program
) -> SplitProgram:
    """Split a program into what is run now and a linear program that computes residuals again.

    Args:
        program: The program.
        is_active: Which inputs have nonzero tangents.
        policy: Which residuals are saved.
        by: What splits it into values and tangents.
    """
    key = ("checkpoint", is_active, policy, by)
    return program.memo(key, lambda: _Splitter(by(program, is_active), policy).split())


class _Splitter:
    def __init__(self, linear: programs.LinearizedProgram, policy: Policy) -> None:
        self.policy = policy
        self.linear = linear
        self.forward = self.linear.forward
        self.is_compiled = False
        if policy not in (everything_saveable, nothing_saveable):
            flat = without_jit(self.forward)
            self.is_compiled = flat is not self.forward
            self.forward = flat
        self.makers = makers(self.forward)
        self.stand_ins: Names = {}
        self.excluded: set[Var] = set()
        for equation in self.forward.equations:
            self._note_name(equation)

    def _note_name(self, equation: Equation) -> None:
        """A name is that of the value, not of the operation that gives it: both are one array."""
        name = equation.primitive.params().get("value_name")
        if name is None or type(equation.inputs[0]) is not Var:
            return
        if self._is_saveable(equation):
            self.stand_ins[equation.inputs[0]] = equation.outputs[0]
        elif getattr(self.policy, "excludes", _never)(name):
            self._exclude(equation.inputs[0])

    def _exclude(self, var: Atom) -> None:
        """Save neither a value nor what it is a view of, which is as large or larger."""
        while type(var) is Var:
            self.excluded.add(var)
            equation, _ = self.makers.get(var, (None, 0))
            if equation is None or not isinstance(form_of(equation), Reindex | Reshape):
                return
            var = equation.inputs[0]

    def _is_saveable(self, equation: Equation) -> bool:
        primitive, params = equation.primitive, equation.primitive.params()
        is_call = "program" in params or isinstance(primitive, Jit)
        if primitive.is_effectful and not is_call and not happens_again(primitive):
            return True  # what happens outside of the program happens once
        return self.policy(primitive, *(a.aval for a in equation.inputs), **params)

    def split(self) -> SplitProgram:
        linear, forward = self.linear, self.forward
        n = linear.n_outputs
        residuals = [
            self._stand_in(forward.inputs[i] if kind == "in" else forward.outputs[i])
            for kind, i in linear.residuals
        ]
        saved, again, used = self._choose(residuals)
        inputs = tuple(i for i, v in enumerate(forward.inputs) if v in used)
        names: Names = dict(zip(linear.tangent.inputs, residuals, strict=False))
        tangent = Program(
            [
                *(forward.inputs[i] for i in inputs),
                *saved,
                *linear.tangent.inputs[len(residuals) :],
            ],
            [*_again(rename(again, self.stand_ins)), *rename(linear.tangent.equations, names)],
            [read(a, names) for a in linear.tangent.outputs],
            linear.tangent.name,
            [*((v, x) for v, x in forward.constants if v in used), *linear.tangent.constants],
        )
        primal = Program(
            forward.inputs,
            forward.equations,
            [*forward.outputs[:n], *saved],
            forward.name,
            forward.constants,
        )
        return SplitProgram(
            dce(primal),
            tangent,
            inputs,
            tuple(self.makers[v] for v in saved),
            len(again),
            len(residuals),
            linear.is_active_out,
            n,
            self.is_compiled,
        )

    def _stand_in(self, atom: Atom) -> Atom:
        return read(atom, self.stand_ins)

    def _choose(self, residuals: Sequence[Atom]) -> tuple[list[Var], list[Equation], set[Var]]:
        """Residuals to save, equations to run again, and all that is read."""
        saved: dict[Var, None] = {}
        again: set[Equation] = set()
        pending = [a for a in residuals if type(a) is Var]
        seen: set[Var] = set()
        while pending:
            var = pending.pop()
            if var in seen:
                continue
            seen.add(var)
            if var not in self.makers:
                continue
            equation, _ = self.makers[var]
            if var not in self.excluded and self._is_saveable(equation):
                saved[var] = None
            elif equation not in again:
                again.add(equation)
                pending += [a for a in map(self._stand_in, equation.inputs) if type(a) is Var]
        order = [v for e in self.forward.equations for v in e.outputs if v in saved]
        return order, [e for e in self.forward.equations if e in again], seen


def _never(name: str) -> bool:
    return False


def read(atom: Atom, names: Names) -> Atom:
    return names.get(atom, atom) if type(atom) is Var else atom


def rename(equations: Iterable[Equation], names: Names) -> list[Equation]:
    """The equations with other names of their inputs."""
    return [
        Equation(e.primitive, [read(a, names) for a in e.inputs], e.outputs, e.source)
        for e in equations
    ]


def without_jit(program: Program) -> Program:
    """The program with the equations of compiled calls in place of the calls."""
    if not any(isinstance(e.primitive, Jit) for e in program.equations):
        return program
    equations: list[Equation] = []
    constants = list(program.constants)
    names: Names = {}
    _unpack(program, names, equations, constants)
    outputs = [read(a, names) for a in program.outputs]
    return Program(program.inputs, equations, outputs, program.name, constants)


def _unpack(
    program: Program, names: Names, equations: list[Equation], constants: list[tuple[Var, Any]]
) -> None:
    """Append equations; ``names`` maps the program's names to those of the result."""
    for equation in program.equations:
        inputs = [read(a, names) for a in equation.inputs]
        if not isinstance(equation.primitive, Jit):
            # A program that is called twice needs two names for each of its results.
            outputs = [Var(v.aval) for v in equation.outputs]
            names.update(zip(equation.outputs, outputs, strict=True))
            equations.append(Equation(equation.primitive, inputs, outputs, equation.source))
            continue
        inner = equation.primitive.program
        inner_names: Names = dict(zip(inner.inputs, inputs, strict=True))
        for var, array in inner.constants:
            inner_names[var] = constant = Var(var.aval)
            constants.append((constant, array))
        _unpack(inner, inner_names, equations, constants)
        results = [read(a, inner_names) for a in inner.outputs]
        names.update(zip(equation.outputs, results, strict=True))
