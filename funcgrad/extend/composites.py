"""Primitives that are functions of other primitives, and how a primitive is compiled.

``Composite : (a -> b) -> Primitive (a -> b)``: every rule that a subclass does not give is derived
from the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeVar, dataclass_transform

from funcgrad.base.records import dataclass
from funcgrad.base.tables import keep, used
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import (
    BatchDim,
    Primitive,
    Value,
    is_linear,
    is_own_module,
    mapped_length,
)
from funcgrad.core.program import Program
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.errors import ArgumentError
from funcgrad.lowering import Call, Form
from funcgrad.primitives.objects import unwrapped
from funcgrad.transforms.batch import batch_flat
from funcgrad.transforms.jvp import jvp_flat
from funcgrad.transforms.linearize import record_linear
from funcgrad.transforms.programs import stage_closed

P = TypeVar("P", bound=Primitive)


@dataclass_transform(frozen_default=True)
def primitive(cls: type[P]) -> type[P]:
    """Make a subclass of `Primitive` a frozen dataclass of its static parameters.

    Args:
        cls: Its annotated attributes are the static parameters, which must be hashable; its methods
            are its rules.
    Returns: The class. Calling an instance applies the operation.
    Raises: ArgumentError: If it is no subclass of `Primitive`.

    Example:
        >>> @fg.extend.primitive
        ... class Shift(fg.extend.Primitive):
        ...     by: int
        ...     def impl(self, x):
        ...         return np.roll(x, self.by)
        ...     def abstract_eval(self, x):
        ...         return x
        ...     jvp = fg.extend.linear_jvp
        ...     def transpose(self, ct, x):
        ...         return [Shift(-self.by)(ct)]
        ...     lower = fg.extend.by_callback
        >>> Shift(1)(np.arange(3.0))
        array([2., 0., 1.])
        >>> fg.jit(fg.grad(lambda x: Shift(1)(x)[0]))(np.arange(3.0))
        array([0., 0., 1.])
    """
    if not isinstance(cls, type) or not issubclass(cls, Primitive):
        raise ArgumentError(
            f"extend.primitive needs a subclass of funcgrad.extend.Primitive, got {cls!r}. Write "
            "@extend.primitive above `class Name(extend.Primitive):`."
        )
    for name in ("jvp", "transpose", "batch"):
        rule = vars(cls).get(name)
        # Rules of this library give values.
        if isinstance(rule, FunctionType) and not is_own_module(rule.__module__):
            setattr(cls, name, _giving_values(rule))
    if "bind" not in vars(cls):
        for name in ("bind", "__call__"):
            setattr(cls, name, _bind)
    return dataclass(frozen=True)(cls)


def _bind(self: Primitive, *args: Any) -> Any:
    """Apply an operation of the user's to values, which writable arrays stand for."""
    return Primitive.bind(self, *map(unwrapped, args))


def _giving_values(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule, with values in place of the writable arrays that `funcgrad.numpy` makes."""

    @functools.wraps(rule)
    def call(*args: Any) -> Any:
        return _values(rule(*args))

    return call


def _values(found: Any) -> Any:
    if isinstance(found, list | tuple):
        return type(found)(map(_values, found))
    return unwrapped(found)


def by_function(function: Callable[..., Any]) -> Callable[..., Form]:
    """A rule `lower` that compiles a function of other primitives in place of the operation.

    Args:
        function: ``function(self, *args)``, from arrays to the result of the operation (a list if
            it has several). It is traced once for each combination of types.
    Returns: The rule.

    Example:
        >>> @fg.extend.primitive
        ... class Cube(fg.extend.Primitive):
        ...     def impl(self, x):
        ...         return np.power(x, 3)
        ...     def abstract_eval(self, x):
        ...         return x
        ...     lower = fg.extend.by_function(lambda self, x: x * x * x)
        >>> fg.jit(Cube())(np.array([2.0, -1.0]))
        array([ 8., -1.])
    """

    def lower(self: Primitive, *avals: ShapedArray) -> Form:
        return Call(_staged(self, function, avals))

    return lower


class Composite(Primitive):
    """An operation that is a function of others: `decompose`.

    Every rule that a subclass does not give is derived: evaluation and compilation run the
    function, and derivatives, transposes and batches are its own. A subclass gives those for which
    it knows something better, such as a derivative that is more accurate.

    Example:
        >>> @fg.extend.primitive
        ... class Softplus(fg.extend.Composite):
        ...     def decompose(self, x):
        ...         return np.log1p(np.exp(x))
        ...     def jvp(self, primals, tangents):
        ...         (x,), (t,) = primals, tangents
        ...         return self(x), t / (1 + np.exp(-x))
        >>> fg.jit(fg.vmap(fg.grad(Softplus())))(np.array([0.0, 800.0]))
        array([0.5, 1. ])
    """

    keeps_shared = True
    # Of classes of users that are no data classes, objects are equal to themselves alone.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def decompose(self, *args: Any) -> Any:
        """The result as a function of the arguments, written with other operations.

        Args: args: Arrays or traced values.
        Returns: An array, or a list of them if `multiple_results`.
        """
        raise self.missing("decomposition")

    def _flat(self, *args: Any) -> list[Any]:
        out = self.decompose(*args)
        return list(out) if self.multiple_results else [out]

    def _results(self, outs: Sequence[Any]) -> Any:
        return list(outs) if self.multiple_results else outs[0]

    def impl(self, *args: Any, **_: Any) -> Any:
        with using_trace(EVAL):
            return self._results(self._flat(*args))

    def abstract_eval(self, *avals: ShapedArray, **_: Any) -> Any:
        program = _staged(self, type(self).decompose, avals)
        return self._results([a.strong() for a in program.out_avals])

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        outs, dots = jvp_flat(self._flat, primals, tangents, self.name)
        return self._results(outs), self._results(dots)

    def transpose(self, ct: Any, *args: Any, **_: Any) -> Sequence[Value | None]:
        avals = [aval_of(x) for x in args]
        mask = [is_linear(x) for x in args]
        linear = record_linear(self._flat, args, mask, avals, self.name, separates=True)[1]
        return linear.pull(list(ct) if self.multiple_results else [ct])

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = mapped_length(args, dims)
        outs, out_dims = batch_flat(self._flat, args, dims, size, self.name)
        return self._results(outs), self._results(out_dims)

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        return Call(_staged(self, type(self).decompose, avals))


_MOST_PROGRAMS = 512
_programs: dict[Any, Program] = {}
"""By primitive, function and types; the same call is traced once."""


def _staged(primitive: Primitive, function: Callable[..., Any], avals: Sequence[Any]) -> Program:
    """A function of a primitive and its arguments as a program."""
    key = (primitive, function, tuple(avals))
    program = _programs.get(key)
    if program is not None:
        used(_programs, key, program, _MOST_PROGRAMS)
        return program

    def run(*args: Any) -> list[Any]:
        out = function(primitive, *args)
        return list(out) if primitive.multiple_results else [out]

    program = stage_closed(run, avals, primitive.name)
    keep(_programs, key, program, _MOST_PROGRAMS)
    return program
