"""NumPy's protocols, operators and methods of writable arrays.

As `funcgrad.numpy.dispatch` for traced arrays; `install` is called once, by `funcgrad.numpy`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from funcgrad.base.index_rule import INDEX_RULE
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import MUTABLE_TYPES
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.dtypes import PYTHON_SCALARS
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.higher_order.staging import Staged
from funcgrad.numpy.dispatch import ABSORBING, ARRAYS, MAX_EXPONENT, OPERATIONS, beside
from funcgrad.numpy.elementwise import DIRECT
from funcgrad.numpy.indexing import IndexUpdateRef, assigned_dtype
from funcgrad.numpy.promotion import as_value
from funcgrad.numpy.ufuncs import at as one_by_one
from funcgrad.numpy.writable import (
    CONTAINERS,
    FUNCTIONS,
    ROW_MAJOR,
    Layout,
    WritableArray,
    as_arguments,
    made,
    put_result,
    unwrapped_in,
)
from funcgrad.observers.promotion import PROMOTIONS
from funcgrad.observers.source import place
from funcgrad.primitives.elementwise import power_of, select
from funcgrad.primitives.objects import unwrapped
from funcgrad.primitives.shape import broadcast_to

Function = Callable[..., Any]


# Operators.


def binary(
    name: str, primitive: Any = None, kinds: str = "", is_reflected: bool = False
) -> Function:
    """An operator of Python's, with a short path to its primitive.

    Args:
        name: What it is called in `operator`.
        primitive: What it is, for two values of one dtype.
        kinds: Kinds of dtypes that ``primitive`` takes unconverted.
        is_reflected: Whether the array stands on the right.
    """
    function = getattr(operator, name)

    def call(self: WritableArray, other: Any) -> Any:
        x = self._content if self._base is None else self.__jax_array__()
        kind = type(other)
        if kind is WritableArray:
            y = other._content if other._base is None else other.__jax_array__()
        else:
            y = unwrapped_in(other) if kind in CONTAINERS else other
        z = None
        if kinds and isinstance(x, Tracer):
            aval = x.aval
            dtype = aval.dtype
            absorbing = ABSORBING.get(kind)
            # As `beside`, without a call, where nothing is weak.
            if aval.weak_type or dtype.kind not in kinds:
                z = beside(x, y, kinds)
            elif absorbing is not None:
                z = dtype.type(y) if dtype.kind in absorbing else None
            elif isinstance(y, ARRAYS) and not PROMOTIONS.users:
                z = y if (y.aval if isinstance(y, Tracer) else y).dtype is dtype else None
        if z is not None:
            found = current_trace().process(primitive, (z, x) if is_reflected else (x, z))
        else:
            found = function(y, x) if is_reflected else function(x, y)
        if not isinstance(found, Tracer):
            return made(found, _order(self, other) is not None)
        rank = len(found.aval.shape)
        if rank == 1:
            return WritableArray(found, ROW_MAJOR)
        return WritableArray(found, _order(self, other)) if rank else found

    return call


_general_power = binary("pow")


def _power(self: WritableArray, other: Any) -> Any:
    """``x ** n``, with a short path for a known integer."""
    x = self._content if self._base is None else self.__jax_array__()
    is_known = type(other) is int and abs(other) < MAX_EXPONENT
    if not is_known or not isinstance(x, Tracer) or x.aval.dtype.kind not in "fc":
        return _general_power(self, other)
    found = current_trace().process(power_of(other), (x,))
    is_ordered = self._strides == ROW_MAJOR or len(x.aval.shape) == 1
    return WritableArray(found, ROW_MAJOR if is_ordered else None) if x.aval.shape else found


def _order(x: WritableArray, y: Any) -> Layout:
    """The layout of a result of both: row-major if both are."""
    if x._strides != ROW_MAJOR:
        return None
    if type(y) is WritableArray:
        return ROW_MAJOR if y._strides == ROW_MAJOR else None
    is_number = type(y) in PYTHON_SCALARS or (isinstance(y, ARRAYS) and not y.shape)
    return ROW_MAJOR if is_number else None


def in_place(name: str, symbol: str) -> Function:
    """An operator that assigns, as ``+=``."""
    function = getattr(operator, name)

    def call(self: WritableArray, other: Any) -> WritableArray:
        found = function(self.__jax_array__(), unwrapped_in(other))
        return self.change(f"x {symbol}= value", found, allows_given=True)

    return call


def unary(name: str) -> Function:
    """An operator of one operand."""
    function = getattr(operator, name)

    def call(self: WritableArray) -> Any:
        found = function(self._content if self._base is None else self.__jax_array__())
        if isinstance(found, Tracer) and found.aval.shape:
            return WritableArray(found, ROW_MAJOR if self._strides == ROW_MAJOR else None)
        return made(found, self._strides == ROW_MAJOR)

    return call


def converted(name: str) -> Function:
    """Method that converts to a Python number."""
    return lambda self: getattr(self.__jax_array__(), name)()


# NumPy's protocols.


def array_ufunc(
    self: WritableArray, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
) -> Any:
    """Implement ``__array_ufunc__``: ufuncs and their methods."""
    if method == "__call__" and len(inputs) == 1 and not kwargs:
        primitive = DIRECT.get(ufunc)
        value = self._content if self._base is None else self.__jax_array__()
        if primitive is not None and isinstance(value, Tracer):
            aval = value.aval
            kind = aval.dtype.kind
            if kind in "fc" and kind in primitive.kinds:
                found = current_trace().process(primitive, (value,))
                rank = len(aval.shape)
                return WritableArray(found, ROW_MAJOR if rank == 1 else None) if rank else found
    if method == "at":
        return _at(self, ufunc, *inputs)
    values = [unwrapped_in(x) for x in inputs]
    name = f"np.{ufunc.__name__}"
    out = kwargs.get("out")
    targets = out if isinstance(out, tuple) else (out,)
    if not any(type(t) is WritableArray for t in targets):
        return made(getattr(ufunc, method)(*values, **kwargs))
    del kwargs["out"]
    where = kwargs.pop("where", True)
    found = getattr(ufunc, method)(*values, **kwargs)
    results = found if isinstance(found, tuple) else (found,)
    for target, result in zip(targets, results, strict=True):
        put_result(f"{name}(..., out=y)", target, result, where)
    return out if len(targets) > 1 else targets[0]


_AT_METHODS = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide",
    "minimum": "min", "maximum": "max", "power": "power",
}  # fmt: skip


def _at(self: WritableArray, ufunc: np.ufunc, array: Any, index: Any, *operands: Any) -> None:
    name = f"np.{ufunc.__name__}.at(x, index, value)"
    if type(array) is not WritableArray:
        raise ArgumentError(
            f"{name} would write traced values into an ndarray.{place()}\n"
            "Make the array by funcgrad.numpy, as in y = funcgrad.numpy.array(y)."
        )
    array.change(name, _combined(name, ufunc, array, index, *operands))


def _combined(name: str, ufunc: np.ufunc, array: Any, index: Any, *operands: Any) -> Any:
    """A copy of an array, whose elements at an index are combined with values."""
    method = "apply" if not operands else _AT_METHODS.get(ufunc.__name__)
    x = as_value(unwrapped_in(array), name)
    if method is None:
        return one_by_one(ufunc, x, unwrapped_in(index), *map(unwrapped_in, operands))
    ref = IndexUpdateRef(x, unwrapped_in(index))
    return getattr(ref, method)(*map(unwrapped_in, operands or (ufunc,)), mode=INDEX_RULE.mode)


def _at_of(ufunc: np.ufunc) -> Function:
    """The method ``at`` of a ufunc, which changes its argument or returns a changed copy."""
    name = f"np.{ufunc.__name__}.at(x, index, value)"

    def at(a: Any, indices: Any, b: Any = None, *, inplace: bool = True) -> Any:
        operands = () if b is None else (b,)
        if not inplace:
            return made(_combined(name, ufunc, a, indices, *operands), True)
        return ufunc.at(a, indices, *operands)

    at.__qualname__ = f"{ufunc.__name__}.at"
    at.__doc__ = (
        f"As ``numpy.{ufunc.__name__}.at``; with ``inplace=False`` it returns a changed copy."
    )
    return at


def copyto(dst: WritableArray, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Copy values into an array, as `numpy.copyto`."""
    source, mask = as_value(unwrapped_in(src)), unwrapped_in(where)
    if not np.can_cast(aval_of(source).dtype, dst.dtype, casting) and aval_of(source).shape:
        raise DtypeError(
            f"np.copyto: {aval_of(source)} does not fit into {dst.aval} by the rule {casting!r}."
            f"{place()}"
        )
    source = assigned_dtype(source, dst.dtype)
    if mask is not True:
        shape = dst.shape
        mask = broadcast_to(as_value(mask), shape)
        source = select.bind(mask, broadcast_to(source, shape), dst.__jax_array__())
    dst.change("np.copyto(x, value)", source)


def putmask(a: WritableArray, mask: Any, values: Any) -> None:
    """Change elements of an array where a mask holds, as `numpy.putmask`."""
    values = unwrapped(FUNCTIONS["resize"](unwrapped_in(values), a.shape))
    copyto(a, values, "unsafe", mask)


IN_PLACE: dict[Any, Function] = {np.copyto: copyto, np.putmask: putmask}


def array_function(publics: Mapping[Any, Function]) -> Function:
    """Implement ``__array_function__``: NumPy's other functions.

    Args: publics: NumPy's function -> ours, as users call it.
    """

    def dispatch(self: WritableArray, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in IN_PLACE and type(args[0]) is WritableArray:
            return IN_PLACE[func](*args, **kwargs)
        if kwargs:
            kwargs = {k: v for k, v in kwargs.items() if k != "like"}
        if func in publics:
            return publics[func](*args, **kwargs)
        values = [unwrapped_in(x) for x in args]
        return made(func(*values, **{k: unwrapped_in(v) for k, v in kwargs.items()}))

    return dispatch


def install(
    functions: Mapping[str, Function], publics: Mapping[Any, Function], namespace: Any
) -> None:
    """Give writable arrays their operators, methods and NumPy's protocols.

    Args:
        functions: The functions that users call, by name.
        publics: The same by NumPy's function.
        namespace: The module of these functions.
    """
    FUNCTIONS.update(functions)
    MUTABLE_TYPES.add(WritableArray)
    Staged.given = staticmethod(as_arguments)
    for known, function in publics.items():
        if isinstance(known, np.ufunc) and (known.nout, known.signature) == (1, None):
            function.at = _at_of(known)  # type: ignore[attr-defined]
    members: dict[str, Any] = {
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function(publics),
        "__array_namespace__": lambda self, api_version=None: namespace,
    }
    symbols = {
        "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
        "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "pow": "**",
        "matmul": "@",
    }  # fmt: skip
    for name, symbol in symbols.items():
        plain = f"{name}_" if name in ("and", "or") else name
        primitive, _, kinds = OPERATIONS.get(name, (None, None, ""))
        members[f"__{name}__"] = binary(plain, primitive, kinds)
        members[f"__r{name}__"] = binary(plain, primitive, kinds, is_reflected=True)
        members[f"__i{name}__"] = in_place(plain, symbol)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        primitive, _, kinds = OPERATIONS[name]
        members[f"__{name}__"] = binary(name, primitive, kinds)
    members["__pow__"] = _power
    for name in ("neg", "pos", "abs", "invert"):
        members[f"__{name}__"] = unary(name)
    for name in ("bool", "int", "float", "complex", "index"):
        members[f"__{name}__"] = converted(f"__{name}__")
    members["__contains__"] = lambda self, value: unwrapped_in(value) in self.__jax_array__()
    members["__round__"] = lambda self, ndigits=None: FUNCTIONS["round"](self, ndigits or 0)
    members["__divmod__"] = lambda self, other: FUNCTIONS["divmod"](self, other)
    members["__rdivmod__"] = lambda self, other: FUNCTIONS["divmod"](other, self)
    for name in VIEWING_METHODS:
        members[name] = _method_of(FUNCTIONS[name])
    members["mT"] = property(FUNCTIONS["matrix_transpose"])
    for name in METHODS:
        members[name] = _method_of(FUNCTIONS[name])
    for name, member in members.items():
        setattr(WritableArray, name, member)


def _method_of(function: Function) -> Function:
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


VIEWING_METHODS = ("ravel", "swapaxes", "squeeze")
METHODS = (
    "all", "any", "argmax", "argmin", "argsort", "clip", "conj", "conjugate", "cumprod", "cumsum",
    "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "repeat", "round", "searchsorted",
    "std", "sum", "take", "trace", "var", "argpartition", "choose", "ptp",
)  # fmt: skip
