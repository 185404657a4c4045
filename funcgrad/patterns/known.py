"""Known values: what a program computes from constants alone, found where it is read.

Indices of lookups, factors of contractions and the like say which elements meet. They are
constants, or computed from these, also by loops: tables of indices that each step of a loop makes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad import lowering as forms
from funcgrad.core.program import Atom, Equation, Literal, Program, Var, evaluate, makers
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.errors import MissingRuleError
from funcgrad.higher_order.remembered import calls_users
from funcgrad.passes import agreement
from funcgrad.passes.dce import dce
from funcgrad.transforms.programs import BatchedProgram, Mask, batch_program


class Scope:
    """A program that is being read, and what is known of the values in it.

    Args:
        program: The program.
        known: Values of its inputs, computed when they are asked for; ``None`` if unknown.
    """

    def __init__(
        self, program: Program, known: Sequence[Callable[[], Any] | None] | None = None
    ) -> None:
        self.program = program
        self.values: dict[Atom, Any] = dict(program.constants)
        self.inputs = dict(zip(program.inputs, known or [None] * len(program.inputs), strict=True))

    def value(self, atom: Atom) -> Any:
        """The value of an atom if it is known, else ``None``."""
        if isinstance(atom, Literal):
            return atom.value
        pending = [atom]  # no recursion: loops that stay unrolled are thousands of operations long
        while pending:
            var = pending[-1]
            needed = () if var in self.values else self._operands(var)
            unknown = [a for a in needed if type(a) is Var and a not in self.values]
            if unknown:
                pending += unknown
                continue
            pending.pop()
            if var not in self.values:
                self.values[var] = self._computed(var)
        return self.values[atom]

    def _operands(self, var: Var) -> Sequence[Atom]:
        """Operands of the operation that computes a name, all of which have to be known."""
        made = None if var in self.inputs else makers(self.program).get(var)
        if made is None or made[0].primitive.is_effectful or made[0].primitive.is_composite:
            return ()
        return made[0].inputs

    def _computed(self, var: Var) -> Any:
        if var in self.inputs:
            ask = self.inputs[var]
            return None if ask is None else ask()
        made = makers(self.program).get(var)
        if made is None:
            return None
        equation, number = made
        primitive = equation.primitive
        form = form_of(equation)
        if isinstance(form, forms.Call):
            inner = Scope(form.program, [self.lazy(a) for a in equation.inputs])
            return inner.value(form.program.outputs[number])
        if isinstance(form, forms.Branch):
            branches = self.branches(equation)
            if len(branches) > 1:
                return None
            return self.callee(branches[0], equation.inputs[1:]).value(branches[0].outputs[number])
        if primitive.is_effectful:
            return None
        if isinstance(form, forms.Loop) and number >= form.n_carry and form.length:
            return self._stacked(equation, form, number)
        if primitive.is_composite or agreement.calls_users(primitive):
            return None
        args = [self.value(a) for a in equation.inputs]
        if any(a is None for a in args):
            return None
        found = primitive.impl(*args)
        return found[number] if primitive.multiple_results else found

    def branches(self, equation: Equation) -> Sequence[Program]:
        """The programs among which an operation chooses: one if it is known which."""
        programs: Sequence[Program] = equation.primitive.branches  # type: ignore[attr-defined]
        place = self.value(equation.inputs[0])
        return programs if place is None else [programs[min(max(int(place), 0), len(programs) - 1)]]

    def _stacked(self, equation: Equation, form: forms.Loop, number: int) -> Any:
        """Values that a loop stacks, if they need nothing but known ones."""
        body: Program = equation.primitive.body  # type: ignore[attr-defined]
        n, last = form.n_consts, form.n_consts + form.n_carry
        carried = _needed_carry(body, n, last, number)
        if not carried:
            return self._mapped(equation, form, body, number)
        part, read = _part(body, [*(body.outputs[i - n] for i in carried), body.outputs[number]])
        if part.is_effectful or calls_users(part):
            return None
        is_read = [v in read or i in carried for i, v in enumerate(part.inputs)]
        args = [
            self.value(a) if on else None for a, on in zip(equation.inputs, is_read, strict=True)
        ]
        if any(a is None and on for a, on in zip(args, is_read, strict=True)):
            return None

        def step(state: Any, row: Any) -> Any:
            now, rows = dict(zip(carried, state, strict=True)), iter(row)
            values = [
                now[i] if i in now else next(rows) if i >= last and is_read[i] else args[i]
                for i in range(len(args))
            ]
            *after, found = evaluate(part, values)
            return after, found

        rows = [args[i] for i in range(last, len(args)) if is_read[i]]
        with using_trace(EVAL):
            init = [args[i] for i in carried]
            return np.asarray(lax.scan(step, init, rows, form.length, form.reverse)[1])

    def _mapped(self, equation: Equation, form: forms.Loop, body: Program, number: int) -> Any:
        """Values that a loop stacks, by all of its steps side by side."""
        n, last = form.n_consts, form.n_consts + form.n_carry
        part, _ = _part(body, [body.outputs[number]])
        batched = side_by_side(part, tuple(i >= last for i in range(len(part.inputs))), form.length)
        if batched is None:
            return None
        known = [None if n <= i < last else self.lazy(a) for i, a in enumerate(equation.inputs)]
        found = Scope(batched.program, known).value(batched.program.outputs[0])
        if found is None or batched.is_mapped_out[0]:
            return found
        return np.broadcast_to(found, (form.length, *np.shape(found)))

    def is_zero(self, equation: Equation, number: int) -> bool:
        """Whether a linear operation on elements multiplies an operand by known zeros."""
        zeros = self.zeros(equation, number)
        return zeros is not None and bool(zeros.all())

    def zeros(self, equation: Equation, number: int, others: Collection[int] = ()) -> Any:
        """Flags of the elements at which an operation multiplies an operand by known zeros.

        Args:
            equation: The operation.
            number: Which operand.
            others: Operands that are not known, in which it may be linear as well.
        Returns: Flags that broadcast to the result, ``None`` if factors are not known, or the
            operation is not linear in these operands.
        """
        primitive, atoms = equation.primitive, equation.inputs
        if not primitive.is_elementwise or primitive.multiple_results or len(atoms) < 2:
            return None
        linear = [number, *(i for i in others if i != number)]
        values = [None if i in linear else self.value(a) for i, a in enumerate(atoms)]
        if any(v is None and i not in linear for i, v in enumerate(values)):
            return None

        def at(*numbers: int) -> Any:
            for i, x in zip(linear, numbers, strict=True):
                values[i] = atoms[i].aval.dtype.type(x)
            return np.asarray(primitive.impl(*values))

        units = np.eye(len(linear), dtype=int).tolist()
        scales = [2 << k for k in range(len(linear))]
        with np.errstate(all="ignore"):
            factors = at(*units[0])
            if factors.all():
                return factors == 0
            total = sum(scale * at(*unit) for scale, unit in zip(scales, units, strict=True))
            is_linear = not at(*[0] * len(linear)).any() and np.array_equal(at(*scales), total)
        return factors == 0 if is_linear else None

    def lazy(self, atom: Atom) -> Callable[[], Any]:
        """The value of an atom, computed when it is called for."""
        return lambda: self.value(atom)

    def callee(self, program: Program, args: Sequence[Atom | None]) -> Scope:
        """A program that is called with atoms of this one, ``None`` for unknown values."""
        return Scope(program, [None if a is None else self.lazy(a) for a in args])


def side_by_side(body: Program, is_mapped: Mask, length: int) -> BatchedProgram | None:
    """All steps of a loop as one program, ``None`` if its body cannot be mapped."""
    if body.is_effectful or calls_users(body):
        return None
    try:
        return batch_program(body, is_mapped, length)
    except MissingRuleError:  # a primitive of the user's has no rule for batches
        return None


def _part(body: Program, outputs: Sequence[Atom]) -> tuple[Program, set[Atom]]:
    """The program of some results, and what it reads."""
    part = dce(Program(body.inputs, body.equations, outputs, body.name, body.constants))
    return part, {a for e in part.equations for a in e.inputs} | {*outputs}


def _needed_carry(body: Program, first: int, last: int, number: int) -> list[int]:
    """The inputs of the body of a loop that are carried and that a result of it needs."""
    found: set[int] = set()
    while True:
        outputs = [body.outputs[number], *(body.outputs[i - first] for i in found)]
        read = _part(body, outputs)[1]
        more = {i for i in range(first, last) if body.inputs[i] in read}
        if more <= found:
            return sorted(found)
        found |= more


def known_places(index: Any, mode: str, n: int) -> Any:
    """The places along an axis of length `n` that indices mean; -1 for none."""
    if index.dtype == np.uint64:  # the only indices that 64 bits with a sign do not hold
        size = np.uint64(n)
        index = index % size if mode == "wrap" else np.minimum(index, size)
    index = index.astype(np.int64)
    if mode in ("clip", "wrap"):
        return np.clip(index, 0, n - 1) if mode == "clip" else index % n
    place = np.where(index < 0, index + n, index)
    return np.where((place >= 0) & (place < n), place, -1)


def form_of(equation: Equation) -> Any:
    """The form of an equation, that of anything if it has none."""
    try:
        return equation.primitive.lower(*(a.aval for a in equation.inputs))
    except MissingRuleError:
        return forms.Extern()
