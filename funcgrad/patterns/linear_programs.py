"""Derivatives of programs, their patterns, and how they are evaluated for many seeds at once.

A program is linearised once: `Derivative` holds its evaluation and its tangent program, from which
both the pattern and the products with seeds come. So what is found empty is what is never computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.base.forking import cached_property
from funcgrad.core.program import Equation, Literal, Program, evaluate
from funcgrad.core.trace import EVAL, Tracer, current_trace, using_trace
from funcgrad.lowering import Contraction
from funcgrad.passes.cse import cse
from funcgrad.passes.dce import dce
from funcgrad.patterns.bands import Band, push_band, unit_band
from funcgrad.patterns.coefficients import evaluate_scaled
from funcgrad.patterns.dependence import Found, dependence
from funcgrad.patterns.diagonals import (
    Diagonals,
    HiddenError,
    NotDiagonalError,
    entries,
    push,
    unit_diagonal,
    zeros_of,
)
from funcgrad.patterns.index_sets import identity
from funcgrad.patterns.known import Scope, form_of
from funcgrad.patterns.known_part import known_and_rest
from funcgrad.patterns.shared_windows import with_shared_windows
from funcgrad.patterns.slices import with_slices
from funcgrad.transforms.batch import batch_flat
from funcgrad.transforms.programs import LinearizedProgram, linearize_program, transpose_program

MOST_HUBS = 8
"""Columns that are taken out of sums, each with operations of its own."""

AT_ONCE = 1 << 20
"""Elements of the largest value, for all seeds together, of derivatives that NumPy evaluates."""


class Derivative:
    """The derivative of a program.

    Args:
        program: The program.
        is_active: Which inputs it is differentiated with respect to.

    Attributes:
        hubs: Columns where dense rows of a Hessian meet, once `diagonals` has found that they do:
            asked again, it takes them out of sums.
    """

    hubs: tuple[int, ...] = ()

    def __init__(self, program: Program, is_active: Sequence[bool]) -> None:
        program = with_shared_windows(cse(with_slices(program)))
        self.is_active = tuple(is_active)
        self.linearized = linearize_program(program, self.is_active)
        self.program = program
        sizes = [a.size for a, on in zip(program.in_avals, is_active, strict=True) if on]
        self.in_ends = [int(n) for n in np.cumsum([0, *sizes])]
        self.out_ends = [int(n) for n in np.cumsum([0, *(a.size for a in program.out_avals)])]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of elements of the results, and of the inputs."""
        return self.out_ends[-1], self.in_ends[-1]

    @cached_property
    def _known(self) -> list[Callable[[], Any]]:
        """For each residual how to get its value, or `None` if it depends on inputs."""
        forward = self.linearized.forward
        scope = Scope(forward)
        return [
            scope.lazy(forward.inputs[i] if kind == "in" else forward.outputs[i])
            for kind, i in self.linearized.residuals
        ]

    @cached_property
    def summands(self) -> tuple[Derivative, Derivative] | None:
        """A constant derivative and another one whose sum this one is, if there are such."""
        found = known_and_rest(self.linearized, [ask() is not None for ask in self._known])
        return None if found is None else (self._with(found[0]), self._with(found[1]))

    def _with(self, linearized: LinearizedProgram) -> Derivative:
        """Another derivative between the same inputs and results."""
        found = Derivative.__new__(Derivative)
        found.program, found.is_active = self.program, self.is_active
        found.in_ends, found.out_ends = self.in_ends, self.out_ends
        found.linearized = linearized
        return found

    @property
    def constants(self) -> list[Any] | None:
        """The residuals, if none depends on inputs: the derivative is a constant.

        ``None`` where one does, or where the program has effects, for which it has to run.
        """
        if self.linearized.forward.is_effectful:
            return None
        found = []
        for ask in self._known:
            found.append(ask())
            if found[-1] is None:
                return None
        return found

    @cached_property
    def relations(self) -> list[Found]:
        """For each result what it depends on: elements of the active inputs, in order."""
        tangent, known = self.linearized.tangent, self._known
        width = self.in_ends[-1]
        n = len(known)
        given = [
            identity(a.shape, width, start) if a.dtype.kind in "fc" else None
            for a, start in zip(tangent.in_avals[n:], self.in_ends, strict=False)
        ]
        inner = Scope(tangent, [*known, *(None for _ in given)])
        found = iter(dependence(inner, [*(None for _ in known), *given], width))
        return [next(found) if on else None for on in self.linearized.is_active_out]

    def results(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The results, and the residuals of the tangent program."""
        outs = evaluate(self.linearized.forward, args)
        found = [args[i] if kind == "in" else outs[i] for kind, i in self.linearized.residuals]
        return outs[: self.linearized.n_outputs], found

    def diagonals(self, residuals: Sequence[Any], is_symmetric: bool) -> Any:
        """Pattern, and a function for the entries, by diagonals; ``None`` if these are none.

        Args:
            residuals: The residuals.
            is_symmetric: Whether the matrix is a Hessian.
        """
        avals = self.linearized.tangent.in_avals[len(residuals) :]
        if any(a.dtype.kind != "f" for a in avals):
            return None
        try:
            return self._by_diagonals(residuals, self.hubs if is_symmetric else None)
        except HiddenError as error:
            self.hubs = error.columns[:MOST_HUBS]
        except NotDiagonalError:
            pass
        return None

    def _by_diagonals(self, residuals: Sequence[Any], hubs: tuple[int, ...] | None) -> Any:
        """Pattern and entries, where the elements of some columns are taken out of sums."""
        tangent, width = self.linearized.tangent, self.in_ends[-1]
        avals = tangent.in_avals[len(residuals) :]
        scope = Scope(tangent, [*self._known, *(None for _ in avals)])
        units = [unit_diagonal(a, width, i) for a, i in zip(avals, self.in_ends, strict=False)]
        given: list[Diagonals] = [*([] for _ in residuals), *units]
        found = iter(push(scope, [*residuals, *map(zeros_of, avals)], given, width, hubs))
        each = [next(found) if on else [] for on in self.linearized.is_active_out]
        return entries(each, self.program.out_avals, width, hubs is not None)

    def band(self, residuals: Sequence[Any]) -> Band | None:
        """The band of the only result, a vector, on the only input, a vector, if it has one."""
        tangent, width = self.linearized.tangent, self.in_ends[-1]
        avals = [*tangent.in_avals[len(residuals) :], *self.program.out_avals]
        if len(avals) != 2 or any(a.ndim != 1 or a.dtype.kind != "f" for a in avals):
            return None
        scope = Scope(tangent, [*self._known, None])
        unit = unit_band(width, width, 0, avals[0].dtype)
        try:
            found = push_band(scope, [*residuals, None], [*(None for _ in residuals), unit])
        except NotDiagonalError:
            return None
        return found[0] if found else None

    def push(self, residuals: Sequence[Any], seeds: Any) -> list[Any]:
        """Tangents of the active results, for each row of a matrix of tangents of all inputs.

        What a program that is traced would contract from known tangents alone is known, too.
        """
        tangent = self.linearized.tangent
        avals = tangent.in_avals[len(residuals) :]
        first, rest = None, tangent
        if current_trace().is_staged and not isinstance(seeds, Tracer):
            first, rest = self._parts

        def one(seed: Any, *found: Any) -> list[Any]:
            return evaluate_scaled(rest, residuals, [*split(seed, self.in_ends, avals), *found])

        if first is None:
            return _in_turn(one, seeds, rest)
        known = [x for x in (ask() for ask in self._known) if x is not None]
        with using_trace(EVAL):
            found = mapped(
                lambda seed: evaluate(first, [*known, *split(seed, self.in_ends, avals)]), seeds
            )
        return mapped(one, seeds, *found)

    @cached_property
    def _parts(self) -> tuple[Program | None, Program]:
        return _split(self.linearized.tangent, [ask() is not None for ask in self._known])

    def pull(self, residuals: Sequence[Any], seeds: Any) -> list[Any | None]:
        """Cotangents of the active inputs, for each row of a matrix of cotangents of all results.

        ``None`` for those that are zero.
        """
        tangent, n = self.linearized.tangent, len(residuals)
        is_linear = tuple(i >= n for i in range(len(tangent.inputs)))
        is_active = (True,) * len(tangent.outputs)
        transposed = transpose_program(tangent, is_linear, is_active)
        on = self.linearized.is_active_out
        all_avals = self.program.out_avals

        def one(seed: Any) -> list[Any]:
            each = zip(split(seed, self.out_ends, all_avals), on, strict=True)
            cts = [part for part, active in each if active]
            return evaluate_scaled(transposed.program, residuals, cts)

        found = iter(_in_turn(one, seeds, transposed.program))
        return [next(found) if active else None for active in transposed.is_active_in[n:]]


def split(seed: Any, ends: Sequence[int], avals: Sequence[Any]) -> list[Any]:
    """A vector as arrays that follow each other in it."""
    return [
        seed[a:b].astype(aval.dtype).reshape(aval.shape)
        for a, b, aval in zip(ends, ends[1:], avals, strict=False)
    ]


def _split(tangent: Program, is_known: Sequence[bool]) -> tuple[Program | None, Program]:
    """The contractions of tangents and known residuals alone, and a program of these as well.

    Other operations on tangents are fused where their results are needed, and take no pass of
    their own.
    """
    n = len(is_known)
    kept = [v for v, on in zip(tangent.inputs, is_known, strict=False) if on]
    kept += tangent.inputs[n:]
    known: set[Any] = {*kept, *(v for v, _ in tangent.constants)}
    made: list[Equation] = []
    for equation in tangent.equations:
        if equation.primitive.is_effectful:
            continue
        if all(isinstance(a, Literal) or a in known for a in equation.inputs):
            known.update(equation.outputs)
            made.append(equation)
    folded = [e for e in made if isinstance(form_of(e), Contraction)]
    if not folded:
        return None, tangent
    found = [v for e in folded for v in e.outputs]
    first = Program(kept, made, found, tangent.name, tangent.constants)
    rest = [e for e in tangent.equations if e not in folded]
    inputs = [*tangent.inputs, *found]
    second = Program(inputs, rest, tangent.outputs, tangent.name, tangent.constants)
    return dce(first), dce(second)


def _in_turn(one: Callable[..., list[Any]], seeds: Any, program: Program) -> list[Any]:
    """Results for all rows of a matrix, of a program that is evaluated: some of them at a time."""
    largest = max((v.aval.size for e in program.equations for v in e.outputs), default=1)
    step = max(AT_ONCE // max(largest, 1), 1)
    if current_trace() is not EVAL or isinstance(seeds, Tracer) or len(seeds) <= step:
        return mapped(one, seeds)
    parts = [mapped(one, seeds[i : i + step]) for i in range(0, len(seeds), step)]
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def mapped(one: Callable[..., list[Any]], seeds: Any, *more: Any) -> list[Any]:
    """Results for all rows of a matrix, and of others of as many."""
    rows, n = [seeds, *more], seeds.shape[0]
    outs, dims = batch_flat(one, rows, [0] * len(rows), n, "sparse derivatives", None)
    return [
        x if d is not None else np.broadcast_to(x, (seeds.shape[0], *x.shape))
        for x, d in zip(outs, dims, strict=True)
    ]
