"""Derivatives of scalars by objects, in the style of micrograd: one object for every number.

An object keeps its value, the objects that it was computed of, and a closure that passes its
gradient on to them. This is the least that a reverse mode of Python numbers can be, and a peer of
the rows in which every number is one of Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable


class Value:
    """A number that remembers how it came about."""

    def __init__(self, data: float, children: tuple[Value, ...] = (), operation: str = "") -> None:
        self.data = data
        self.gradient = 0.0
        self.children = set(children)
        self.operation = operation
        self.pass_on: Callable[[], None] = lambda: None

    def __float__(self) -> float:
        return float(self.data)

    def __add__(self, other: Value | float) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        result = Value(self.data + other.data, (self, other), "+")

        def pass_on() -> None:
            self.gradient += result.gradient
            other.gradient += result.gradient

        result.pass_on = pass_on
        return result

    def __mul__(self, other: Value | float) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        result = Value(self.data * other.data, (self, other), "*")

        def pass_on() -> None:
            self.gradient += other.data * result.gradient
            other.gradient += self.data * result.gradient

        result.pass_on = pass_on
        return result

    def __pow__(self, exponent: float) -> Value:
        result = Value(self.data**exponent, (self,), f"**{exponent}")

        def pass_on() -> None:
            self.gradient += exponent * self.data ** (exponent - 1) * result.gradient

        result.pass_on = pass_on
        return result

    def __neg__(self) -> Value:
        return self * -1

    def __sub__(self, other: Value | float) -> Value:
        return self + (-other)

    __radd__ = __add__
    __rmul__ = __mul__

    def tanh(self) -> Value:
        """The hyperbolic tangent."""
        result = Value(math.tanh(self.data), (self,), "tanh")

        def pass_on() -> None:
            self.gradient += (1.0 - result.data**2) * result.gradient

        result.pass_on = pass_on
        return result

    def backward(self) -> None:
        """Add the gradient of this number to all numbers that it depends on."""
        ordered: list[Value] = []
        visited: set[Value] = set()

        def visit(value: Value) -> None:
            if value not in visited:
                visited.add(value)
                for child in value.children:
                    visit(child)
                ordered.append(value)

        visit(self)
        self.gradient = 1.0
        for value in reversed(ordered):
            value.pass_on()
