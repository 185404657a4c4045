"""Tangent programs for many seeds: chains of operations as coefficients that are computed once.

``evaluate_scaled : linear Program, values and tangents -> results``. What operations on elements
make of a tangent, and any operation of a single number, is a product with a coefficient, which
depends on residuals alone: it is computed once, however many seeds there are. Each seed takes a
product where another kind of operation, or a sum with another tangent, reads the end of a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import lowering as forms
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.program import Atom, Equation, Literal, Program, last_uses
from funcgrad.patterns.known import form_of
from funcgrad.primitives.elementwise import scale
from funcgrad.primitives.shape import reshape


class Scaled:
    """A tangent times a coefficient.

    Args:
        root: The tangent.
        coefficient: An array that does not depend on seeds, which the tangent's shape broadcasts
            to; ``None`` for ones.
    """

    def __init__(self, root: Any, coefficient: Any = None) -> None:
        self.root, self.coefficient = root, coefficient
        self.aval: ShapedArray = aval_of(root)
        self._product = root if coefficient is None else None

    def product(self) -> Any:
        """The product, computed once."""
        if self._product is None:
            root = reshape(self.root, ()) if self.aval.size == 1 else self.root
            self._product = scale.bind(root, self.coefficient)
        return self._product

    def factor(self) -> Any:
        """The coefficient as an array."""
        if self.coefficient is not None:
            return self.coefficient
        return np.broadcast_to(np.ones((), self.aval.dtype), self.aval.shape)


def evaluate_scaled(program: Program, values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Results of a program that is linear in its last inputs.

    Args:
        program: The program.
        values: Values of its first inputs, which do not depend on seeds.
        tangents: Values of its last inputs.
    """
    outs = _outputs(program, [*values, *map(Scaled, tangents)])
    return [x.product() if isinstance(x, Scaled) else x for x in outs]


def _outputs(program: Program, args: Sequence[Any]) -> list[Any]:
    """Results, of which those that depend on seeds are scaled, as the arguments are."""
    found: dict[Atom, Any] = dict(program.constants)
    found.update(zip(program.inputs, args, strict=True))

    def read(atom: Atom) -> Any:
        return atom.value if isinstance(atom, Literal) else found[atom]

    for equation, dying in zip(program.equations, last_uses(program), strict=True):
        results = _results(equation, [*map(read, equation.inputs)])
        found.update(zip(equation.outputs, results, strict=True))
        for var in dying:
            del found[var]
    return [*map(read, program.outputs)]


def _results(equation: Equation, args: Sequence[Any]) -> list[Any]:
    active = [x for x in args if isinstance(x, Scaled)]
    if not active:
        return _bound(equation, args)
    form = form_of(equation)
    if isinstance(form, forms.Call) and not equation.primitive.is_effectful:
        return _outputs(form.program, args)
    if _is_chained(equation, active):
        factors = [x.factor() if isinstance(x, Scaled) else x for x in args]
        return [Scaled(active[0].root, coefficient) for coefficient in _bound(equation, factors)]
    outs = _bound(equation, [x.product() if isinstance(x, Scaled) else x for x in args])
    return [*map(Scaled, outs)]


def _bound(equation: Equation, args: Sequence[Any]) -> list[Any]:
    found = equation.primitive.bind(*args)
    return list(found) if equation.primitive.multiple_results else [found]


def _is_chained(equation: Equation, active: Sequence[Scaled]) -> bool:
    """Whether an equation multiplies one real tangent by what does not depend on seeds."""
    primitive, (out, *more) = equation.primitive, equation.outputs
    if more or primitive.multiple_results or primitive.is_composite or primitive.is_effectful:
        return False
    root = active[0].aval
    return (
        (primitive.is_elementwise or root.size == 1)
        and root.dtype == out.aval.dtype
        and root.dtype.kind == "f"
        and all(x.root is active[0].root for x in active)
    )
