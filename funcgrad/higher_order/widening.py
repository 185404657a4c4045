"""Folds of parts of arrays that are windows themselves, read from the arrays around the windows.

``widened : Program -> Program``

A loop whose iterations read ``a[i, :i]`` has windows as long as the longest of them, which end
before their arrays do, and each iteration folds a part of a window. The same part of the whole
array is the same fold. Its derivative then is an array of the whole length, and nothing is filled
up with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcgrad.base.records import dataclass
from funcgrad.core.program import Atom, Equation, Literal, Program, Var
from funcgrad.higher_order.bounded import Bounded
from funcgrad.lowering import Reindex, Window, form_of
from funcgrad.lowering import Reshape as ReshapeForm
from funcgrad.passes.dce import dce
from funcgrad.primitives.shape import Reshape


@dataclass(frozen=True)
class _Beginning:
    """An array that is the beginning of another one along some axes, with axes of length 1 besides.

    Attributes:
        source: The other array.
        sizes: Its lengths, but for those of 1, along the axes of the array.
    """

    source: Var
    sizes: tuple[int, ...]


def widened(program: Program) -> Program:
    """The program with folds of parts of whole arrays where operands begin as these do.

    Args: program: The body of a loop.
    """
    if not any(isinstance(e.primitive, Bounded) for e in program.equations):
        return program
    made = {var: e for e in program.equations for var in e.outputs}
    equations: list[Equation] = []
    for equation in program.equations:
        fold = equation.primitive
        equations += _wider(fold, equation, made) if isinstance(fold, Bounded) else [equation]
    found = Program(program.inputs, equations, program.outputs, program.name, program.constants)
    return dce(found)


def _wider(fold: Bounded, equation: Equation, made: dict[Var, Equation]) -> list[Equation]:
    """The equations of a fold of whole arrays in the place of one of their beginnings."""
    if fold.parts != fold.aligned or any(p is not None for p in fold.out):
        return [equation]
    if not fold.sides or any(side != "low" for side in fold.sides):
        return [equation]
    added: list[Equation] = []
    operands: list[Atom] = []
    lengths: dict[int, set[int]] = {}
    for atom, parts in zip(equation.inputs, fold.parts, strict=False):
        if type(atom) is not Var:
            return [equation]
        found = _beginning(atom, made)
        sizes = zip(atom.aval.shape, found.sizes, parts, strict=True)
        shape = tuple(n if p is None else m for n, m, p in sizes)
        for n, p in zip(shape, parts, strict=True):
            if p is not None:
                lengths.setdefault(p, set()).add(n)
        if shape == atom.aval.shape:
            operands.append(atom)
            continue
        if shape != found.sizes:
            return [equation]
        if shape == found.source.aval.shape:
            operands.append(found.source)
            continue
        var = Var(atom.aval.update(shape=shape))
        added.append(Equation(Reshape(shape), [found.source], (var,), equation.source))
        operands.append(var)
    if any(len(found) > 1 for found in lengths.values()):
        return [equation]
    rest = equation.inputs[len(fold.parts) :]
    whole = Equation(fold, [*operands, *rest], equation.outputs, equation.source)
    return [*added, whole]


def _beginning(var: Var, made: dict[Var, Equation]) -> _Beginning:
    """The array farthest back of which a name is the beginning."""
    source = var
    while (equation := made.get(source)) is not None and equation.inputs:
        x = equation.inputs[0]
        if type(x) is not Var or not _keeps_beginning(equation, x.aval.shape):
            break
        source = x
    return _Beginning(source, _lengths(source.aval.shape, var.aval.shape))


def _keeps_beginning(equation: Equation, shape: Sequence[int]) -> bool:
    """Whether an operation returns the first elements of its array, along axes of its own."""
    form, out = form_of(equation), equation.outputs[0].aval.shape
    if isinstance(form, ReshapeForm):
        return _long(shape) == _long(out)
    if any(m == 1 < n for n, m in zip(shape, out, strict=False)):
        return False
    if isinstance(form, Reindex):
        is_in_order = form.axes == tuple(range(len(shape))) and set(form.steps) <= {1}
        return is_in_order and not any(form.starts)
    if not isinstance(form, Window):
        return False
    starts = equation.inputs[1:]
    return all(
        n == m or (type(x) is Literal and x.value == 0)
        for x, n, m in zip(starts, shape, out, strict=True)
    )


def _long(shape: Sequence[int]) -> list[int]:
    return [n for n in shape if n != 1]


def _lengths(source: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Lengths of a source along the axes of an array that is its beginning."""
    rest = iter(_long(source))
    return tuple(n if n == 1 else next(rest) for n in shape)
