"""Families of primitives and the rules that they derive, so that no rule is written twice.

* linear operations: the tangent goes through the operation itself;
* elementwise operations: shape, batching and the forward derivative;
* operations that are constant almost everywhere: their derivative is zero;
* operations on the trailing axes of stacked inputs: batching by more stacking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from funcgrad import lowering as forms
from funcgrad.base.imports import load
from funcgrad.core.avals import Shape, ShapedArray, aval_of, check_size, shaped
from funcgrad.core.primitive import BatchDim, Linear, Primitive, Value, with_differential
from funcgrad.core.program import Atom, Equation, Literal, Program, Var, evaluate
from funcgrad.dtypes import PYTHON_SCALARS, complex_dtype, real_dtype
from funcgrad.errors import DtypeError, MissingRuleError, ShapeError
from funcgrad.scalar_tape.rules import number_code, rule_of

PYTHON_NUMBERS = frozenset(PYTHON_SCALARS)


FEW = 256
"""Elements that are written faster than `numpy.broadcast_to` makes a view of one."""


def zeros_like_aval(aval: ShapedArray) -> Any:
    """A concrete array of zeros (of many, a view of one zero, so it costs no memory)."""
    if aval.size <= FEW:
        return np.zeros(aval.shape, aval.dtype)
    return np.broadcast_to(np.zeros((), aval.dtype), aval.shape)


def instantiate(tangent: Value | None, primal: Value) -> Value:
    """The tangent, with a symbolic zero made an array like ``primal``."""
    return zeros_like_aval(aval_of(primal)) if tangent is None else tangent


def shape_of(value: Value) -> Shape:
    """Shape of a value of any kind."""
    shape: Shape | None = getattr(value, "shape", None)
    return np.shape(value) if shape is None else shape


def places_in(stack: Shape) -> Iterable[tuple[Any, ...]]:
    """Indices of the members of a stack, which are one if it has no axes."""
    return np.ndindex(stack) if stack else ((),)


def _linear_differential(
    self: Primitive, primals: Sequence[Value], slots: Sequence[Linear | None]
) -> tuple[Any, Any, Any] | None:
    if self.multiple_results:
        return None
    operands = [
        zeros_like_aval(aval_of(x)) if slot is None else slot
        for slot, x in zip(slots, primals, strict=True)
    ]
    return self.impl(*primals), self, operands


@with_differential(_linear_differential)
def linear_jvp(
    self: Primitive, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Any, Any]:
    """JVP rule of an operation that is linear in all of its arguments jointly.

    Args:
        self: The operation.
        primals: Its arguments.
        tangents: One for each, ``None`` where zero.

    Example:
        >>> type(
        ...     "Twice",
        ...     (fg.extend.Primitive,),
        ...     {"impl": lambda self, x: 2 * x, "jvp": fg.extend.linear_jvp},
        ... )().jvp([3.0], [1.0])
        (6.0, 2.0)
    """
    dense = [instantiate(t, x) for t, x in zip(tangents, primals, strict=True)]
    return self.bind(*primals), self.bind(*dense)


def at_numbers_by_code(self: Primitive, *numbers: float) -> tuple[Any, ...] | None:
    """The rule for numbers, where it is given as text."""
    code = number_code(self)
    assert code is not None
    return rule_of(code)(*numbers)


def _zero_differential(
    self: Primitive, primals: Sequence[Value], slots: Sequence[Linear | None]
) -> tuple[Any, Any, Any] | None:
    return None if self.multiple_results else (self.impl(*primals), None, None)


@with_differential(_zero_differential)
def zero_jvp(
    self: Primitive, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Any, Any]:
    """JVP rule of an operation that is constant almost everywhere.

    Args:
        self: The operation.
        primals: Its arguments.
        tangents: One for each, ``None`` where zero.

    Example:
        >>> type(
        ...     "Step",
        ...     (fg.extend.Primitive,),
        ...     {"impl": lambda self, x: x // 1, "jvp": fg.extend.zero_jvp},
        ... )().jvp([3.5], [1.0])
        (3.0, None)
    """
    out = self.bind(*primals)
    return out, [None] * len(out) if self.multiple_results else None


def undefined(name: str, argument: str) -> Callable[..., Any]:
    """A partial derivative that is declared not to exist."""

    def partial(*args: Any) -> Any:
        raise MissingRuleError(
            f"{name} has no derivative with respect to its argument {argument}. Wrap that argument "
            "in funcgrad.stop_gradient, or give the enclosing function its own rule with "
            "funcgrad.custom_jvp."
        )

    return partial


def extern_lower(self: Primitive, *avals: ShapedArray) -> forms.Extern:
    """Lowering of an operation whose compiled form is its NumPy evaluation.

    Args:
        self: The operation.
        *avals: Types of its arguments.
    Example: fg.extend.by_callback(fg.extend.Primitive()) -> Extern()
    """
    return forms.Extern()


class Recipe:
    """A program that is written by hand: what an operation is made of when it is compiled.

    Calling it with a primitive and arguments (names, and NumPy scalars and arrays) appends an
    equation and gives the names of its results.

    Args: avals: Types of the arguments of the operation.
    """

    def __init__(self, *avals: ShapedArray) -> None:
        self.inputs = [Var(aval) for aval in avals]
        self.equations: list[Equation] = []
        self.constants: list[tuple[Var, Any]] = []

    def __call__(self, primitive: Primitive, *args: Any) -> Any:
        atoms = [self._atom(x) for x in args]
        found = primitive.abstract_eval(*(atom.aval for atom in atoms))
        outs = [Var(aval) for aval in (found if primitive.multiple_results else [found])]
        self.equations.append(Equation(primitive, atoms, outs))
        return outs if primitive.multiple_results else outs[0]

    def _atom(self, x: Any) -> Atom:
        if isinstance(x, Var):
            return x
        if not np.ndim(x):
            return Literal(x)
        var = Var(aval_of(x))
        self.constants.append((var, x))
        return var

    def form(self, *outputs: Any) -> forms.Call:
        """The form of an operation with these results."""
        return forms.Call(Program(self.inputs, self.equations, outputs, "recipe", self.constants))


class _Either(Primitive):
    """One of two programs: ``bind(index, *arguments)``."""

    branches: tuple[Program, Program]

    multiple_results = True
    is_composite = True

    def impl(self, index: Any, *args: Any) -> Any:
        return evaluate(self.branches[int(index)], args)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return self.branches[0].out_avals

    def lower(self, *avals: ShapedArray) -> forms.Form:
        return forms.Branch()


class _Repeated(Primitive):
    """A program applied to its own results: ``bind(*state)``."""

    condition: Program
    body: Program

    multiple_results = True
    is_composite = True

    def impl(self, *state: Any) -> Any:
        while evaluate(self.condition, state)[0]:
            state = tuple(evaluate(self.body, state))
        return list(state)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return list(avals)

    def lower(self, *avals: ShapedArray) -> forms.Form:
        return forms.While(0, 0, has_flags=True)


def repetition(condition: Program, body: Program) -> Primitive:
    """Loop in a `Recipe`: apply one program to its results while another one says so.

    The last of these are the flags of `lowering.While`. It is a part of one operation, so that it
    has no derivative of its own.
    """
    return _Repeated(condition, body)


def either(first: Program, second: Program) -> Primitive:
    """Branch in a `Recipe`: decide, when it runs, which of two programs the arguments go to.

    The first argument is 0 or 1, the others are those of the programs. It is a part of one
    operation, so that it has no derivative of its own.
    """
    return _Either((first, second))


class UfuncFunction:
    """The evaluation of an elementwise operation by a ufunc of a library.

    Args:
        module: Where the ufunc is.
        ufunc: Its name there.
        leading: Scalars that come before the arguments.
        casts: Whether the result is converted to the dtype of the last argument.
    """

    def __init__(
        self, module: str, ufunc: str, leading: Sequence[int] = (), casts: bool = False
    ) -> None:
        self.module = module
        self.ufunc = ufunc
        self.leading = tuple(leading)
        self.casts = casts
        self._function: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._function is None:
            self._function = getattr(load(self.module), self.ufunc)
        out = self._function(*self.leading, *args)
        if self.casts:
            return np.asarray(out).astype(aval_of(args[-1]).dtype, copy=False)[()]
        return out


def ufunc_form(
    function: Any, avals: Sequence[ShapedArray], results: int = 1, kinds: str = "fc"
) -> forms.Form:
    """The form of an elementwise operation of floating or complex numbers, evaluated by a ufunc.

    Loops of other dtypes may raise exceptions, for which they need Python; ``kinds`` are those of
    dtypes of which it is known that theirs do not.
    """
    if type(function) is np.ufunc:
        function = UfuncFunction("numpy", function.__name__)
    if not isinstance(function, UfuncFunction) or any(a.dtype.kind not in kinds for a in avals):
        return forms.Extern()
    shape = np.broadcast_shapes(*(a.shape for a in avals))
    n, k = len(avals), len(avals) + len(function.leading)
    arrays = [forms.Array(shape, a.dtype) for a in avals]
    arrays += [forms.Array((), avals[-1].dtype, value=x) for x in function.leading]
    outs = tuple(range(k, k + results))
    call = forms.UfuncCall(function.module, (function.ufunc,), (*range(n, k), *range(n), *outs))
    return forms.Routine((*arrays, *(forms.Array(shape) for _ in outs)), outs, (call,), len(shape))


def stacked_batch(
    self: Primitive, args: Sequence[Value], dims: Sequence[BatchDim]
) -> tuple[Any, Any]:
    """Batch rule of an operation that already maps over leading axes of all of its arguments.

    Args:
        self: The operation.
        args: Its arguments.
        dims: 0 for those with the mapped axis in front, ``None`` for the others.

    Example:
        >>> type(
        ...     "Last",
        ...     (fg.extend.Primitive,),
        ...     {"impl": lambda self, x: x[..., -1], "batch": fg.extend.stacked_batch},
        ... )().batch([np.eye(2)], [0])
        (array([0., 1.]), 0)
    """
    size = next(shape_of(a)[0] for a, d in zip(args, dims, strict=True) if d is not None)
    dense = [
        a if d is not None else np.broadcast_to(a, (size, *shape_of(a)))
        for a, d in zip(args, dims, strict=True)
    ]
    out = self.bind(*dense)
    return out, [0] * len(out) if self.multiple_results else 0


def broadcast_shapes(name: str, avals: Sequence[ShapedArray]) -> Shape:
    """NumPy's broadcast shape, or a `ShapeError` that names the operation and the types."""
    first = avals[0].shape
    if all(a.shape == first for a in avals):
        return first
    try:
        return np.broadcast_shapes(*(a.shape for a in avals))
    except ValueError:
        rows = zip_longest(*(a.shape[::-1] for a in avals), fillvalue=1)
        axes = [{n for n in row if n != 1} for row in rows][::-1]
        if all(len(sizes) <= 1 for sizes in axes):  # NumPy refuses what is too large, too
            check_size(name, tuple(max(sizes, default=1) for sizes in axes), avals[0].dtype)
        types = " and ".join(map(str, avals))
        raise ShapeError(
            f"{name}: the shapes of {types} do not broadcast together. Axes are aligned from the "
            "right; each pair must be equal or contain a 1. Reshape one of them, for example with "
            "x[:, None]."
        ) from None


def align_ranks(args: Sequence[Value], dims: Sequence[BatchDim]) -> list[Value]:
    """Insert axes behind the batch axis of mapped arguments, so that broadcasting is right."""
    ranks = [len(shape_of(a)) - (d is not None) for a, d in zip(args, dims, strict=True)]
    rank = max(ranks)
    aligned = []
    for arg, dim, own in zip(args, dims, ranks, strict=True):
        if dim is not None and own < rank:
            size, *rest = shape_of(arg)
            arg = arg.reshape((size, *(1,) * (rank - own), *rest))
        aligned.append(arg)
    return aligned


class Elementwise(Primitive):
    """An operation on corresponding elements, with NumPy's broadcasting.

    Args:
        name: Its name in programs.
        function: The NumPy evaluation.
        code: Scalar expression of the kernel.
        code_kinds: Kinds of dtypes (``np.dtype.kind``) for which the expression is valid; others
            are evaluated by NumPy.
        kinds: Kinds of dtypes for which the operation is defined.
        result: ``"same"`` dtype as the arguments, ``"bool"``, ``"real"`` or ``"complex"``.
        keeps_weak: Whether the result of weak arguments is weak (Python's own operators).
        mixed: Whether the arguments may differ in dtype (then the last one decides).
        parts: What it is made of where the expression is not valid and the evaluation is no ufunc:
            called with a `Recipe` and the names of the arguments.
        parts_kinds: Kinds of dtypes for which that is so; others are evaluated by NumPy.
    Example: fg.extend.Elementwise("twice", lambda x: 2 * x, "2 * {0}").bind(3.0) -> 6.0
    """

    is_elementwise = True

    def __init__(
        self,
        name: str,
        function: Any,
        code: str,
        code_kinds: str = "f",
        kinds: str = "fc",
        result: str = "same",
        keeps_weak: bool = False,
        mixed: bool = False,
        parts: Callable[..., Any] | None = None,
        parts_kinds: str = "biufc",
    ) -> None:
        self.name = name
        self.function = function
        self.code = code
        self.code_kinds = code_kinds
        self.kinds = kinds
        self.result = result
        self.keeps_weak = keeps_weak
        self.mixed = mixed
        self.parts = parts
        self.parts_kinds = parts_kinds
        if not keeps_weak and type(self).impl is Elementwise.impl:
            vars(self)["impl"] = function  # a call less for each evaluation

    def __repr__(self) -> str:
        return self.name

    def impl(self, *args: Any) -> Any:
        out = self.function(*args)
        if type(args[0]) in PYTHON_NUMBERS and self._is_weak(args):
            return out.item()
        return out

    def _is_weak(self, args: Sequence[Any]) -> bool:
        return self.keeps_weak and all(type(a) in PYTHON_NUMBERS for a in args)

    def abstract_eval(self, *avals: ShapedArray) -> ShapedArray:
        first = avals[0]
        # Interned avals make the common case an identity check.
        keeps_type = self.result == "same" and (self.keeps_weak or not first.weak_type)
        if keeps_type and len(avals) <= 2 and first.dtype.kind in self.kinds:
            last = avals[-1]
            if last is first:
                return first
            if last.dtype is first.dtype and not (first.weak_type or last.weak_type):
                if not last.shape or last.shape == first.shape:
                    return first
                if not first.shape:
                    return last
        shape = broadcast_shapes(self.name, avals)
        dtype = self._check_dtypes(avals)
        weak = self.keeps_weak and all(a.weak_type for a in avals)
        if self.result == "bool":
            return shaped(shape, np.dtype(np.bool_))
        if self.result == "real":
            dtype = real_dtype(dtype)
        elif self.result == "complex":
            dtype = complex_dtype(dtype)
        return shaped(shape, dtype, weak)

    def _check_dtypes(self, avals: Sequence[ShapedArray]) -> np.dtype[Any]:
        dtype = avals[-1].dtype
        if not self.mixed and any(a.dtype != dtype for a in avals):
            types = ", ".join(map(str, avals))
            raise DtypeError(
                f"{self.name} needs arguments of one dtype, got {types}. The functions of "
                "funcgrad.numpy promote dtypes; those of funcgrad.lax do not: use .astype()."
            )
        if dtype.kind not in self.kinds:
            raise DtypeError(
                f"{self.name} is not defined for {avals[-1]}: it needs a dtype of kind "
                f"{', '.join(_KINDS[k] for k in self.kinds)}. Convert with .astype()."
            )
        return dtype

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*align_ranks(args, dims)), 0

    def lower(self, *avals: ShapedArray) -> Any:
        from_kernel = all(a.dtype.kind in self.code_kinds for a in avals)
        if from_kernel:
            return forms.Pointwise(self.code)
        if self.parts is None or avals[-1].dtype.kind not in self.parts_kinds:
            return ufunc_form(self.function, avals)
        recipe = Recipe(*avals)
        return recipe.form(self.parts(recipe, *recipe.inputs))

    def params(self) -> dict[str, Any]:
        return {}


_KINDS = {"b": "bool", "i": "int", "u": "unsigned int", "f": "float", "c": "complex"}
