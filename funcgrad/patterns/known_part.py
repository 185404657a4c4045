"""Linear programs as sums of two: what follows from known values alone, and the rest.

A quadratic energy with a nonlinear term for each unknown has a Hessian that is a constant matrix
and a diagonal. Of what a tangent becomes on its way through the program, one summand has met known
values only, and its matrix is a constant; the other one has met some value that depends on the
arguments, and its matrix often has far fewer entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.core.program import Atom, Equation, Literal, Program
from funcgrad.passes.dce import dce
from funcgrad.primitives.elementwise import add
from funcgrad.transforms.jvp import jvp_flat
from funcgrad.transforms.programs import LinearizedProgram, stage_closed

Summands = tuple[Any, Any]
"""Summands of a tangent: that of known values, and the rest; ``None`` where zero."""


def known_and_rest(
    linearized: LinearizedProgram, is_known: Sequence[bool]
) -> tuple[LinearizedProgram, LinearizedProgram] | None:
    """A derivative as the sum of a constant one and another one, ``None`` if it is none.

    Args:
        linearized: The derivative.
        is_known: Which of its residuals do not depend on the arguments.
    """
    tangent, n = linearized.tangent, len(is_known)
    sums = _SummedTangents(tangent, is_known)
    met = [sums.met.get(out, (False, True)) for out in tangent.outputs]
    if not any(known for known, _ in met) or not any(rest for _, rest in met):
        return None
    staged = stage_closed(sums.summands, tangent.in_avals, tangent.name)
    if not all(map(any, sums.is_there)):
        return None
    found = iter(staged.outputs)
    each = [[next(found) for on in side if on] for side in sums.is_there]
    masks = []
    for side in sums.is_there:
        there = iter(side)
        masks.append(tuple(on and next(there) for on in linearized.is_active_out))
    kept = [i for i in range(n) if is_known[i]]
    residuals = [staged.inputs[i] for i in kept]
    parts = (
        ([*residuals, *staged.inputs[n:]], tuple(linearized.residuals[i] for i in kept)),
        (list(staged.inputs), linearized.residuals),
    )
    known, rest = (
        replace(
            linearized,
            tangent=dce(Program(inputs, staged.equations, outs, staged.name, staged.constants)),
            residuals=sources,
            is_active_out=mask,
        )
        for (inputs, sources), outs, mask in zip(parts, each, masks, strict=True)
    )
    return known, rest


class _SummedTangents:
    """A linear program whose tangents are sums.

    Args:
        program: Residuals and tangents to tangents.
        is_known: Which residuals are known.

    Attributes:
        met: By name of a tangent: which of its summands there may be.
        knows: The names of known values.
        is_there: For both summands, which results have them.
    """

    def __init__(self, program: Program, is_known: Sequence[bool]) -> None:
        self.program = program
        self.n_residuals = len(is_known)
        self.knows: set[Atom] = {var for var, _ in program.constants}
        self.knows.update(v for v, on in zip(program.inputs, is_known, strict=False) if on)
        self.met: dict[Atom, tuple[bool, bool]] = dict.fromkeys(
            program.inputs[self.n_residuals :], (True, False)
        )
        for equation in program.equations:
            active = [self.met[a] for a in equation.inputs if a in self.met]
            if active:
                known, rest = (any(side) for side in zip(*active, strict=True))
                met = (known, rest) if self._is_known(equation) else (False, True)
                self.met.update(dict.fromkeys(equation.outputs, met))
            elif self._is_known(equation):
                self.knows.update(equation.outputs)

    def _is_known(self, equation: Equation) -> bool:
        """Whether all operands but tangents are known."""
        return not equation.primitive.is_effectful and all(
            isinstance(a, Literal) or a in self.knows or a in self.met for a in equation.inputs
        )

    def summands(self, *values: Any) -> list[Any]:
        """The summands of all results: those of known values first."""
        program = self.program
        found: dict[Atom, Any] = dict(program.constants)
        found.update(zip(program.inputs, values, strict=True))
        for var in program.inputs[self.n_residuals :]:
            found[var] = (found[var], None)

        def read(atom: Atom) -> Any:
            return atom.value if isinstance(atom, Literal) else found[atom]

        for equation in program.equations:
            args = [*map(read, equation.inputs)]
            is_active = [a in self.met for a in equation.inputs]
            if not any(is_active):
                outs = _listed(equation, equation.primitive.bind(*args))
            else:
                outs = self._results(equation, args, is_active)
            found.update(zip(equation.outputs, outs, strict=True))
        pairs = (found[out] if out in self.met else (None, read(out)) for out in program.outputs)
        sides = list(zip(*pairs, strict=True))
        self.is_there = [[x is not None for x in side] for side in sides]
        return [x for side in sides for x in side if x is not None]

    def _results(
        self, equation: Equation, args: Sequence[Any], is_active: Sequence[bool]
    ) -> list[Summands]:
        if not self._is_known(equation):
            args = [_sum(*x) if on else x for x, on in zip(args, is_active, strict=True)]
            outs = _listed(equation, equation.primitive.bind(*args))
            return [(None, out) for out in outs]
        sides = (_applied(equation, args, is_active, side) for side in (0, 1))
        return list(zip(*sides, strict=True))


def _sum(known: Any, rest: Any) -> Any:
    if known is None or rest is None:
        return rest if known is None else known
    return add.bind(known, rest)


def _applied(
    equation: Equation, args: Sequence[Any], is_active: Sequence[bool], side: int
) -> list[Any]:
    """Results of an equation for one of the summands of its operands, ``None`` where zero.

    An operand that has none is zero: as a tangent it is not even computed with.
    """
    primitive = equation.primitive
    parts = [x[side] if on else None for x, on in zip(args, is_active, strict=True)]
    given = [part for part, on in zip(parts, is_active, strict=True) if on]
    if all(part is None for part in given):
        return [None] * len(equation.outputs)
    if all(part is not None for part in given):
        operands = [p if on else x for x, p, on in zip(args, parts, is_active, strict=True)]
        return _listed(equation, primitive.bind(*operands))
    primals = [
        np.broadcast_to(np.zeros((), a.aval.dtype), a.aval.shape) if on else x
        for x, a, on in zip(args, equation.inputs, is_active, strict=True)
    ]
    return jvp_flat(
        lambda *xs: _listed(equation, primitive.bind(*xs)), primals, parts, "sparse derivative"
    )[1]


def _listed(equation: Equation, outs: Any) -> list[Any]:
    return list(outs) if equation.primitive.multiple_results else [outs]
