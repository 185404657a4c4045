"""Rows of tables of special functions: parameters, and several results.

A row is a ufunc of `scipy.special`, the names of its arguments, and a partial derivative for each
of them, or ``None`` for an argument in which none is known. Native code calls the loops of the
ufuncs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import BatchDim, Value
from funcgrad.dtypes import is_complex
from funcgrad.lowering import Form
from funcgrad.primitives import families
from funcgrad.primitives.elementwise import (
    Convert,
    Derivative,
    Smooth,
    add,
    coefficient,
    convert,
    neg,
    scale,
    sign,
)
from funcgrad.primitives.expressions import Formula, evaluate, evaluated, function, record
from funcgrad.primitives.shape import broadcast_to

MODULE = "scipy.special._ufuncs"
"""SciPy's module of ufuncs, also of those that only its own functions call."""


class Special(Smooth):
    """A function of `scipy.special`, whose first arguments may be parameters.

    Args:
        name: Its name, and that of the ufunc unless ``ufunc`` is given.
        arguments: Names of the arguments, separated by blanks.
        partials: The derivative in every argument, or ``None`` where there is none.
        orders: How many leading arguments are real where the others are complex.
        integers: How many leading arguments stay integers where they are.
        whole: How many leading arguments are always integers.
        is_single: Whether SciPy has loops of integers with single precision.
        is_double: Whether it is evaluated in double precision only.
        ufunc: The name of SciPy's ufunc.
        damping: ``w`` for a factor ``exp(-|real(w)|)`` of complex functions, which is not analytic;
            called with the last argument, gives the derivative of ``real(w)`` along a tangent and
            ``real(w)`` itself. The last partial derivative is then that of the rest.
        **options: Those of `Elementwise`.
    """

    def __init__(
        self,
        name: str,
        arguments: str,
        *partials: Derivative | None,
        orders: int = 0,
        integers: int = 0,
        whole: int = 0,
        is_single: bool = False,
        is_double: bool = False,
        ufunc: str = "",
        code: str = "",
        damping: Callable[[Value, Value], tuple[Value, Value]] | None = None,
        **options: Any,
    ) -> None:
        self.arguments = tuple(arguments.split())
        self.orders = max(orders, integers, whole)
        self.integers = max(integers, whole)
        self.whole = whole
        self.is_single = is_single
        self.is_double = is_double
        self.damping = damping
        given = [
            families.undefined(name, argument) if partial is None else partial
            for argument, partial in zip(self.arguments, partials, strict=True)
        ]
        options = {"kinds": "f", "code_kinds": "f" if code else "", **options}
        options.setdefault("mixed", self.orders > 0)
        text = f"{name}({', '.join(f'{{{i}}}' for i in range(len(given)))})"
        function = families.UfuncFunction(MODULE, ufunc or name, casts=self.orders > 0)
        super().__init__(name, function, given, code or text, **options)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        out, dot = super().jvp(primals, tangents)
        x, t = primals[-1], tangents[-1]
        if self.damping is None or t is None or not is_complex(aval_of(out).dtype):
            return out, dot
        rate, height = self.damping(x, t)
        sided = coefficient(lambda: convert(neg.bind(sign.bind(height)), aval_of(out).dtype) * out)
        return out, add.bind(dot, scale.bind(convert(rate, aval_of(out).dtype), sided))

    def impl(self, *args: Any) -> Any:
        if not self.is_double:
            return super().impl(*args)
        out = self.function(*(np.asarray(x, np.float64) for x in args))
        return out.astype(aval_of(args[-1]).dtype, copy=False)

    def lower(self, *avals: ShapedArray) -> Any:
        is_counted = self.integers and avals[0].dtype.kind in "iu"
        if is_counted and (self.is_single or avals[-1].dtype.char in "dD"):
            return families.ufunc_form(self.function, avals, kinds="iufc")
        if is_counted or (self.is_double and avals[-1].dtype.char not in "dD"):
            return doubled_form(self, avals)
        return super().lower(*avals)


class Counted(Special):
    """A function whose second argument counts: it is converted to an integer first."""

    def __init__(self, name: str, arguments: str, *partials: Derivative | None) -> None:
        super().__init__(name, arguments, *partials, mixed=True)
        self.function = families.UfuncFunction(MODULE, name, casts=True)

    def impl(self, *args: Any) -> Any:
        k, n, p = args
        return self.function(k, np.asarray(n).astype(np.int64), p)

    def lower(self, *avals: ShapedArray) -> Any:
        if avals[1].dtype.kind == "i":
            return families.ufunc_form(self.function, avals, kinds="iufc")
        recipe = families.Recipe(*avals)
        k, n, p = recipe.inputs
        double = Convert(_DOUBLE["f"])
        count = recipe(Convert(np.dtype(np.int64)), n)
        out = recipe(self, recipe(double, k), count, recipe(double, p))
        return recipe.form(recipe(Convert(avals[-1].dtype), out))


def doubled_form(primitive: families.Elementwise, avals: Sequence[ShapedArray]) -> Form:
    """The form of what is evaluated in double precision, of arguments in single precision."""
    recipe = families.Recipe(*avals)
    wide = [
        x if a.dtype.kind in "iu" else recipe(Convert(_DOUBLE[a.dtype.kind]), x)
        for a, x in zip(avals, recipe.inputs, strict=True)
    ]
    found = recipe(primitive, *wide)
    outs = found if primitive.multiple_results else [found]
    return recipe.form(*(recipe(Convert(avals[-1].dtype), out) for out in outs))


_DOUBLE = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


class SpecialParts(families.Elementwise):
    """A function of `scipy.special` with several results.

    Args:
        name: Its name, and that of the ufunc.
        arguments: Names of the arguments, separated by blanks.
        results: Names of the results, separated by blanks.
        slopes: Called with the arguments and the list of results; gives for every argument the
            derivatives of all results, or ``None`` where there are none.
        is_double: Whether it is evaluated in double precision only.
        **options: Those of `Elementwise`.
    """

    multiple_results = True
    orders = integers = whole = 0

    def __init__(
        self,
        name: str,
        arguments: str,
        results: str,
        slopes: Callable[..., Sequence[Callable[[], Sequence[Value]] | None]],
        is_double: bool = False,
        **options: Any,
    ) -> None:
        self.is_double = is_double
        self.arguments = tuple(arguments.split())
        self.results = tuple(results.split())
        self.slopes = slopes
        options = {"kinds": "f", "code_kinds": "", **options}
        super().__init__(name, families.UfuncFunction(MODULE, name), f"{name}(...)", **options)

    def impl(self, *args: Any) -> list[Any]:
        if not self.is_double:
            return list(self.function(*args))
        outs = self.function(*(np.asarray(x, np.float64) for x in args))
        return [out.astype(aval_of(args[-1]).dtype, copy=False) for out in outs]

    def abstract_eval(self, *avals: ShapedArray) -> Any:
        return [super().abstract_eval(*avals)] * len(self.results)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        outs = self.bind(*primals)
        totals: list[Value | None] = [None] * len(outs)
        rows = self.slopes(*primals, outs)
        for argument, row, t in zip(self.arguments, rows, tangents, strict=True):
            if t is None:
                continue
            if row is None:
                families.undefined(self.name, argument)()
                continue
            for i, slope in enumerate(coefficients(row)):
                term = scale.bind(t, slope)
                before = totals[i]
                totals[i] = term if before is None else add.bind(before, term)
        return outs, [
            broadcast_to(t, families.shape_of(out)) for t, out in zip(totals, outs, strict=True)
        ]

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        outs = self.bind(*families.align_ranks(args, dims))
        return outs, [0] * len(outs)

    def lower(self, *avals: ShapedArray) -> Any:
        dtype = avals[-1].dtype
        if not self.is_double or dtype == _DOUBLE["f"]:
            return families.ufunc_form(self.function, avals, len(self.results))
        return doubled_form(self, avals)


def coefficients(row: Callable[[], Sequence[Value]]) -> Sequence[Value]:
    """The coefficients of a tangent; NumPy does not warn of them."""
    with np.errstate(all="ignore"):
        return row()


class Improved(Special):
    """A function of which SciPy's values of real numbers are not used everywhere.

    Args:
        name: Its name.
        arguments: Names of the arguments, separated by blanks.
        formula: Called with SciPy's own function and real arguments in double precision, which
            are `Expression`; gives the values.
        *partials: As in `Special`.
        **options: Those of `Special`.
    """

    def __init__(
        self,
        name: str,
        arguments: str,
        formula: Formula,
        *partials: Derivative | None,
        **options: Any,
    ) -> None:
        super().__init__(name, arguments, *partials, **options)
        nowhere = [None] * len(self.arguments)
        scipys = function(Special(f"{name}_of_scipy", arguments, *nowhere, ufunc=name))
        self.formula = functools.partial(formula, scipys)

    def impl(self, *args: Any) -> Any:
        if any(is_complex(aval_of(x).dtype) for x in args):
            return super().impl(*args)
        return evaluate(self.formula, *args)

    def lower(self, *avals: ShapedArray) -> Any:
        if any(is_complex(a.dtype) for a in avals):
            return super().lower(*avals)
        return record(self.formula, *avals)


class Written(Smooth):
    """A function that is written as a formula.

    Args:
        name: Its name.
        formula: Called with arguments in double precision, which are `Expression`.
        *partials: The derivative in every argument.
        kinds: Kinds of dtypes that it is defined for.
    """

    def __init__(
        self, name: str, formula: Formula, *partials: Derivative, kinds: str = "f"
    ) -> None:
        self.formula = formula
        compute = functools.partial(evaluate, formula)
        super().__init__(name, compute, partials, name, kinds=kinds, code_kinds="")

    def lower(self, *avals: ShapedArray) -> Any:
        return record(self.formula, *avals)


class Composed(Smooth):
    """An operation that is made of others, with partial derivatives of its own.

    Args:
        name: Its name.
        arguments: Names of the arguments, separated by blanks.
        parts: Called with a function that evaluates primitives, and the arguments.
        partials: The derivative in every argument, or ``None`` where there is none.
    """

    orders = integers = whole = 0

    def __init__(
        self, name: str, arguments: str, parts: Callable[..., Any], *partials: Derivative | None
    ) -> None:
        self.arguments = tuple(arguments.split())

        def evaluate(*args: Any) -> Any:
            with np.errstate(all="ignore"):
                return parts(evaluated, *args)

        given = [
            families.undefined(name, argument) if partial is None else partial
            for argument, partial in zip(self.arguments, partials, strict=True)
        ]
        super().__init__(name, evaluate, given, name, kinds="f", code_kinds="", parts=parts)


def table(*rows: families.Elementwise) -> dict[str, families.Elementwise]:
    """Primitives by their names."""
    return {row.name: row for row in rows}
