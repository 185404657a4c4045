"""Cost of programs: work and memory, estimated from forms and types.

Memory is that of `core.program.evaluate`, which drops every value after its last reader: views take
none, and programs held by an equation take theirs on top of what is live around it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from funcgrad import lowering
from funcgrad.core.program import Atom, Equation, Program, Var, last_uses
from funcgrad.intrinsics import expression

# One unit of work is an arithmetic operation on one element, which is bound by memory. Those on
# registers, of which functions such as exp consist, take a part of it; the multiplications of a
# matrix product are yet sooner.
_ON_REGISTERS = 1 / 3
_MULTIPLICATION = 1 / 16


def work_of(equation: Equation) -> float:
    """Work of an equation, in arithmetic operations on elements."""
    form = lowering.form_of(equation)
    if isinstance(form, lowering.Reindex | lowering.Reshape | lowering.Constant | lowering.Barrier):
        return 0.0
    if isinstance(form, lowering.Call):
        return work_of_program(form.program)
    if isinstance(form, lowering.Loop):
        return form.length * work_of_program(_attribute(equation, "body"))
    if isinstance(form, lowering.Contraction):
        lengths: dict[str, int] = {}
        for labels, atom in zip((form.lhs, form.rhs), equation.inputs, strict=True):
            lengths.update(zip(labels, atom.aval.shape, strict=True))
        return math.prod(lengths.values()) * _MULTIPLICATION
    size = max(a.aval.size for a in (*equation.inputs, *equation.outputs))
    if isinstance(form, lowering.Pointwise):
        return size * max(expression(form.expr).cost * _ON_REGISTERS, 1.0)
    return float(size)


def work_of_program(program: Program) -> float:
    """Work of all equations."""
    return program.memo("work", lambda: sum(map(work_of, program.equations)))


def has_loops(program: Program) -> bool:
    """Whether a program has loops, or calls programs that do."""

    def found() -> bool:
        forms = map(lowering.form_of, program.equations)
        return any(
            isinstance(form, lowering.Loop | lowering.While)
            or (isinstance(form, lowering.Call) and has_loops(form.program))
            for form in forms
        )

    return program.memo("has_loops", found)


def density_of(equation: Equation) -> float:
    """Work per byte of the results: what saving them is worth."""
    nbytes = sum(v.aval.nbytes for v in equation.outputs)
    return work_of(equation) / nbytes if nbytes else 0.0


def peak_of_program(program: Program) -> int:
    """The most bytes that evaluation takes at a time beyond the inputs."""
    return _storage(program).highest


def bytes_of_outputs(program: Program) -> int:
    """Bytes that the results take, when everything else is gone."""
    return _storage(program).live


def _attribute(equation: Equation, name: str) -> Program:
    return getattr(equation.primitive, name)


def _storage(program: Program) -> _Storage:
    return program.memo("storage", lambda: _Storage(program))


class _Storage:
    """Follows which memory is in use while a program is evaluated.

    Attributes:
        owner: For every name that is in use, the one whose memory it shares: itself, or what it is
            a view of.
        live: Bytes in use that are not the inputs', in the end those of the results.
        highest: The most there were.
    """

    def __init__(self, program: Program) -> None:
        given = dict.fromkeys([*program.inputs, *(var for var, _ in program.constants)])
        self.owner: dict[Var, Var] = {var: var for var in given}
        self.users = dict.fromkeys(given, 1)
        self.live = self.highest = 0
        for equation, dying in zip(program.equations, last_uses(program), strict=True):
            self.highest = max(self.highest, self.live + _peak_inside(equation))
            self._make(equation)
            self.highest = max(self.highest, self.live)
            for var in dying:
                self._drop(var, given)

    def _make(self, equation: Equation) -> None:
        for var, own in zip(equation.outputs, self._owners(equation), strict=True):
            self.owner[var] = own
            self.users[own] = self.users.get(own, 0) + 1
            if self.users[own] == 1:
                self.live += own.aval.nbytes

    def _owners(self, equation: Equation) -> Sequence[Var]:
        """Owners of the memory of the results."""
        form, outputs = lowering.form_of(equation), equation.outputs
        if isinstance(form, lowering.Reindex | lowering.Reshape | lowering.Barrier):
            operands = zip(equation.inputs, outputs, strict=False)
            return [self._owner(a, var) for a, var in operands]
        if not isinstance(form, lowering.Call):
            return outputs
        inner = form.program
        storage = _storage(inner)
        names: dict[Atom, Var] = {
            v: self._owner(a, v) for v, a in zip(inner.inputs, equation.inputs, strict=True)
        }
        owners = [storage.owner[a] if type(a) is Var else a for a in inner.outputs]
        return [names.setdefault(own, v) for own, v in zip(owners, outputs, strict=True)]

    def _owner(self, atom: Atom, default: Var) -> Var:
        return self.owner[atom] if type(atom) is Var else default

    def _drop(self, var: Var, given: Container[Var]) -> None:
        own = self.owner.pop(var)
        self.users[own] -= 1
        if not self.users[own] and own not in given:
            self.live -= own.aval.nbytes


def _peak_inside(equation: Equation) -> int:
    form = lowering.form_of(equation)
    if isinstance(form, lowering.Call):
        return peak_of_program(form.program)
    if isinstance(form, lowering.Loop):
        stacked = sum(v.aval.nbytes for v in equation.outputs)
        return stacked + peak_of_program(_attribute(equation, "body"))
    return 0


__all__ = [
    "bytes_of_outputs", "density_of", "peak_of_program", "work_of", "work_of_program",
]  # fmt: skip
