"""Operators of traced numbers, and functions of them, written out of the rules of primitives.

They look at what trace is current and whose the operands are, compute with Python's floats, and
write down in a tracer what is needed to pull a cotangent. Everything else is left to the operators
of all traced values. They are written when the first function of numbers is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.scalar_tape.rules import (
    NumberCode,
    at_numbers,
    guarded,
    keeps_weak,
    number_code,
    written,
)
from funcgrad.scalar_tape.trace import NumberTracer, prepare_by

Function = Callable[..., Any]

_NAMES = {"Number": NumberTracer, "current": current_trace, "float64": np.float64}


def _indented(depth: int, lines: Sequence[str]) -> list[str]:
    return ["    " * depth + line for line in lines]


def _remembered(*rest: str) -> list[str]:
    """Lines that give the result of a rule, with what is needed to pull its cotangent."""
    return ["made = next(trace.source)", "made.number = out", *rest, "return made"]


def _binary(code: NumberCode, name: str, general: Function, is_reflected: bool) -> Function:
    """An operator of a traced number and another number, traced or not."""
    mine, other = ("y", "x") if is_reflected else ("x", "y")

    def with_traced(slopes: Sequence[str]) -> list[str]:
        return _remembered(
            "made.first = self",
            f"made.first_slope = {slopes[0]}",
            "made.second = other",
            f"made.second_slope = {slopes[1]}",
        )

    def with_constant(slopes: Sequence[str]) -> list[str]:
        return _remembered(
            "made.first = self",
            f"made.first_slope = {slopes[is_reflected]}",
            "made.is_strong = kind is float64",
        )

    lines = [
        f"def {name}(self, other):",
        "    trace = current()",
        "    if self.owner is trace:",
        "        kind = type(other)",
    ]
    if not is_reflected:  # of two traced numbers the left one is asked
        lines += [
            "        if kind is Number:",
            "            if other.owner is trace:",
            "                x = self.number",
            "                y = other.number",
            *_indented(4, code.statements(with_traced)),
        ]
    is_constant = "kind is float or kind is float64 or kind is int"
    lines += [
        f"        {'if' if is_reflected else 'elif'} {is_constant}:",
        f"            {mine} = self.number",
        f"            {other} = other if kind is float else float(other)",
        *_indented(3, code.statements(with_constant)),
        "    return general(self, other)",
    ]
    return written(lines, {**_NAMES, **code.names, "general": general}, name)


def _unary(code: NumberCode, name: str, general: Function, keeps_weak: bool) -> Function:
    """A function of a traced number."""

    def then(slopes: Sequence[str]) -> list[str]:
        return _remembered(
            "made.first = self",
            f"made.first_slope = {slopes[0]}",
            f"made.is_strong = {not keeps_weak}",
        )

    lines = [
        f"def {name}(self):",
        "    trace = current()",
        "    if self.owner is trace:",
        "        x = self.number",
        *_indented(2, guarded(code.statements(then))),
        "    return general(self)",
    ]
    return written(lines, {**_NAMES, **code.names, "general": general}, name)


def _general(ufunc: np.ufunc) -> Function:
    """The function of any traced value."""
    tracer: Any = Tracer
    return lambda self: tracer.__array_ufunc__(self, ufunc, "__call__", self)


def _processed(primitive: Primitive) -> Function:
    """A function of a traced number whose rule is no text."""
    return lambda self: current_trace().process(primitive, (self,))


class _Functions(dict[np.ufunc, Function | None]):
    """Ufunc of one argument -> the same of a traced number; ``None`` if there is no rule."""

    def __missing__(self, ufunc: np.ufunc) -> Function | None:
        found, primitive = None, _PRIMITIVES.get(ufunc)
        if primitive is None:
            return None  # nor is it remembered: users make ufuncs, too
        if at_numbers(primitive) is not None:
            code = number_code(primitive)
            if code is None:
                found = _processed(primitive)
            else:
                general = _general(ufunc)
                found = _unary(code, ufunc.__name__, general, keeps_weak(primitive))
        self[ufunc] = found
        return found


_PRIMITIVES: dict[Any, Primitive] = {}
FUNCTIONS = _Functions()
"""Functions of a traced number that stand for `numpy`'s, which need not ask for its type."""
_pairs: dict[Any, tuple[Function, Function]] = {}


def _array_ufunc(general: Function) -> Function:
    """`__array_ufunc__` of a traced number."""

    def call(self: NumberTracer, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            if len(inputs) == 1:
                function = FUNCTIONS[ufunc]
                if function is not None:
                    return function(self)
            elif (pair := _pairs.get(ufunc)) is not None:
                x, y = inputs
                out = pair[0](x, y) if type(x) is NumberTracer else pair[1](y, x)
                if out is not NotImplemented:
                    return out
        return general(self, ufunc, method, *inputs, **kwargs)

    return call


def _power(general: Function, of_two: Primitive) -> Function:
    square = _unary(_code_of(of_two), "square", lambda self: general(self, 2), True)

    def power(self: NumberTracer, other: Any) -> Any:
        kind = type(other)
        if (kind is int or kind is float) and other == 2:
            return square(self)
        return general(self, other)

    return power


def _code_of(primitive: Primitive) -> NumberCode:
    code = number_code(primitive)
    assert code is not None
    return code


def install(
    functions: Mapping[Any, Primitive],
    operators: Mapping[str, tuple[Primitive, Function, Function]],
    of_two: Primitive,
) -> None:
    """Say what operators of traced numbers are to be written of.

    Args:
        functions: Ufuncs of one argument and their primitives.
        operators: Name of an operator -> the primitive, the operator of all traced values, and its
            reflection.
        of_two: The square.
    """
    _PRIMITIVES.update(functions)

    def write() -> None:
        for name, (primitive, forward, reflected) in operators.items():
            code = number_code(primitive)
            if code is not None:
                pair = (
                    _binary(code, name, forward, is_reflected=False),
                    _binary(code, name, reflected, is_reflected=True),
                )
                setattr(NumberTracer, f"__{name}__", pair[0])
                setattr(NumberTracer, f"__r{name}__", pair[1])
                _pairs[primitive.function] = pair  # type: ignore[attr-defined]
        tracer: Any = NumberTracer
        tracer.__neg__ = FUNCTIONS[np.negative]
        tracer.__pow__ = _power(tracer.__pow__, of_two)
        tracer.__array_ufunc__ = _array_ufunc(tracer.__array_ufunc__)

    prepare_by(write)
