"""NumPy's protocols, operators and methods of traced arrays.

`install` is called once, by `funcgrad.numpy`, with the table of all functions there. Afterwards
``np.tanh(x)``, ``np.sum(x)``, ``x + 1`` and ``x.sum()`` all run the functions of that table.
Hardly anything is computed here. Operators and ufuncs of one argument have a short path to their
primitive, because they are what an eager gradient spends its time on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, wraps
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from funcgrad import scalar_tape
from funcgrad.base.dialect import NARROWER, NUMPY, dialect
from funcgrad.base.imports import load
from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import Tracer, current_trace, function_trace
from funcgrad.errors import ArgumentError, ConcretizationTypeError, DtypeError, MissingRuleError
from funcgrad.numpy import creating, elementwise, promotion, rearranging, shaping, ufuncs
from funcgrad.numpy.elementwise import DIRECT, TAKES_WEAK, UFUNCS, of_scipy, to_loop
from funcgrad.numpy.indexing import at, getitem
from funcgrad.numpy.public_functions import public
from funcgrad.numpy.reducing import refuse_out, summand
from funcgrad.numpy.selected import install_selections, selected
from funcgrad.numpy.writable import WritableArray, copied, made
from funcgrad.observers.promotion import PROMOTIONS
from funcgrad.observers.source import place
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.cumulative import Cumlogsumexp, Cummax, Cummin
from funcgrad.primitives.families import Elementwise
from funcgrad.primitives.objects import Element, Refused, array_for_numpy, unwrapped
from funcgrad.primitives.special_tables import primitive_of

Function = Callable[..., Any]

ARRAYS = (Tracer, np.ndarray, np.generic)
_OPERANDS = (*ARRAYS, Element, bool, int, float, complex, list, tuple)
_DISPATCHING = (*ARRAYS, Element)

# Kinds of dtypes that absorb a Python scalar of each type without changing, and Python's types.
ABSORBING = {float: "fc", int: "iufc", complex: "c"}
_PYTHON = {"i": int, "f": float, "c": complex}

_functions: dict[Any, Function] = {}
"""NumPy's function or ufunc -> ours. Filled by `install`; SciPy's ufuncs join on first use."""

# Operators.


def beside(x: Tracer, other: Any, kinds: str) -> Any:
    """The other operand as the primitive of an operator takes it, or ``None``.

    Args:
        x: One operand.
        other: The other one, or what is no operand.
        kinds: Kinds of dtypes that the primitive takes unconverted.
    """
    aval = x.aval
    dtype = aval.dtype
    if dtype.kind not in kinds:
        return None
    absorbing = ABSORBING.get(type(other))
    if absorbing is not None:
        if dtype.kind not in absorbing:
            return None
        # The result of a weak 64-bit value and a Python scalar is weak.
        is_weak = aval.weak_type and dtype in NARROWER
        return _PYTHON[dtype.kind](other) if is_weak else dtype.type(other)
    if isinstance(other, Tracer):
        other_dtype = other.aval.dtype
    elif isinstance(other, ARRAYS):
        other_dtype = other.dtype
    else:
        return None
    return other if other_dtype is dtype and not PROMOTIONS.users else None


def _binary(
    primitive: Primitive, function: Function, kinds: str, is_reflected: bool = False
) -> Function:
    """An operator.

    Args:
        primitive: What it is, for two values of one dtype.
        function: What it is otherwise: with conversion and promotion.
        kinds: Kinds of dtypes that ``primitive`` takes unconverted.
        is_reflected: Whether the traced value stands on the right.
    """

    def call(self: Tracer, other: Any) -> Any:
        y = beside(self, other, kinds)
        if y is not None:
            found = current_trace().process(primitive, (y, self) if is_reflected else (self, y))
        elif not _is_operand(other):
            return NotImplemented
        else:
            found = function(other, self) if is_reflected else function(self, other)
        return _new_array(found, other) if type(other) is np.ndarray and not self.shape else found

    return call


def _new_array(found: Any, other: np.ndarray) -> Any:
    """Make a name of what a traced number and an array of NumPy give, as of all new arrays."""
    if not other.shape or dialect() is not NUMPY or function_trace.get() is not current_trace():
        return found
    return made(found, other.flags.c_contiguous)


def _is_operand(x: Any) -> bool:
    """Whether an operator computes with it. Writable arrays do so themselves."""
    if isinstance(x, _OPERANDS):
        return True
    is_array = hasattr(x, "__array__") or hasattr(x, "__jax_array__")
    return is_array and type(x) is not WritableArray


_ARITHMETIC: dict[str, tuple[Elementwise, Function, str]] = {
    "add": (p.add, elementwise.add, "biufc"),
    "sub": (p.sub, elementwise.subtract, "iufc"),
    "mul": (p.mul, elementwise.multiply, "biufc"),
    "truediv": (p.div, elementwise.true_divide, "fc"),
    "floordiv": (p.floor_divide, elementwise.floor_divide, "iuf"),
    "mod": (p.remainder, elementwise.remainder, "iuf"),
    "and": (p.bitwise_and, elementwise.bitwise_and, "biu"),
    "or": (p.bitwise_or, elementwise.bitwise_or, "biu"),
    "xor": (p.bitwise_xor, elementwise.bitwise_xor, "biu"),
    "lshift": (p.left_shift, elementwise.left_shift, ""),
    "rshift": (p.right_shift, elementwise.right_shift, ""),
    "pow": (p.power, elementwise.power, "fc"),
}
_COMPARISONS: dict[str, tuple[Elementwise, Function, str]] = {
    "eq": (p.equal, elementwise.equal, "fc"),
    "ne": (p.not_equal, elementwise.not_equal, "fc"),
    "lt": (p.less, elementwise.less, "f"),
    "le": (p.less_equal, elementwise.less_equal, "f"),
    "gt": (p.greater, elementwise.greater, "f"),
    "ge": (p.greater_equal, elementwise.greater_equal, "f"),
}
OPERATIONS = _ARITHMETIC | _COMPARISONS
"""Operators: primitive, function with conversions, and kinds of dtypes that the primitive takes."""
_PAIRS = {
    name: (_binary(*row), _binary(*row, is_reflected=True)) for name, row in OPERATIONS.items()
}
_operators = {row[0].function: _PAIRS[name] for name, row in OPERATIONS.items()}
"""Ufuncs of two arguments that are operators: the operator and its reflection."""

_general_power = _PAIRS["pow"][0]
MAX_EXPONENT = 2**31


def _pow(self: Tracer, other: Any) -> Any:
    """A known integral exponent of a floating base stands for exact products."""
    kind = type(other)
    is_integral = kind is int or (kind is float and other.is_integer())
    if is_integral and -MAX_EXPONENT < other < MAX_EXPONENT and self.aval.dtype.kind in "fc":
        return current_trace().process(p.power_of(int(other)), (self,))
    return _general_power(self, other)


_operators[np.power] = (_pow, _PAIRS["pow"][1])


def _pow_operator(self: Tracer, other: Any) -> Any:
    """Raise to a power as NumPy's operator, which takes roots for 1/2, unlike `numpy.power`."""
    if type(other) is float and other == 0.5 and self.aval.dtype.kind in "fc":
        return current_trace().process(p.sqrt, (self,))
    return _pow(self, other)


def divmod(x1: Any, x2: Any) -> tuple[Any, Any]:
    """``(x1 // x2, x1 % x2)``, as `numpy.divmod`.

    Example: fg.numpy.divmod(7.0, 3.0) -> (2.0, 1.0)
    """
    return elementwise.floor_divide(x1, x2), elementwise.remainder(x1, x2)


def modf(x: Any, /, out: None = None) -> tuple[Any, Any]:
    """Fractional and integral part, both with the sign of ``x``, as `numpy.modf`.

    Example: fg.numpy.modf(2.5) -> (np.float64(0.5), np.float64(2.0))
    """
    refuse_out(out, "modf")
    (x,) = elementwise.promote_inexact(promotion.as_value(x, "modf"))
    finite = p.select.bind(p.isinf.bind(x), p.zero_of(x), x)
    rest = p.sub.bind(finite, p.trunc.bind(finite))
    return p.copysign.bind(rest, x), p.trunc.bind(x)


def _neg(self: Tracer) -> Any:
    if self.aval.dtype.kind in "iufc":
        return current_trace().process(p.neg, (self,))
    return elementwise.negative(self)


def _round(self: Tracer, ndigits: int | None = None) -> Any:
    if ndigits is None and self.ndim == 0:
        return elementwise.rint(self).astype(np.int64)
    return _functions[np.round](self, ndigits or 0)


def _contains(self: Tracer, value: Any) -> bool:
    return bool(_functions[np.any](elementwise.equal(self, value)))


def _iterate(self: Tracer) -> Iterator[Any]:
    if not self.ndim:
        raise ArgumentError(
            f"iteration over a traced {self.aval} inside {self.owner.what}, which has no axes."
            f"{place()}"
        )
    return (getitem(self, i) for i in range(self.shape[0]))


def _matmul(self: Tracer, other: Any) -> Any:
    if _is_operand(other):
        return _functions[np.matmul](self, other)
    return _sparse().product_from_left(self, other) if _is_sparse(other) else NotImplemented


def _reflected_matmul(self: Tracer, other: Any) -> Any:
    if _is_operand(other):
        return _functions[np.matmul](other, self)
    return _sparse().product(other, self) if _is_sparse(other) else NotImplemented


def _is_sparse(x: Any) -> bool:
    """Whether it is a matrix of SciPy's, which nobody imports to find out."""
    return any(kind.__module__.startswith("scipy.sparse") for kind in type(x).__mro__)


@cache
def _sparse() -> Any:
    """The module of products of sparse matrices, loaded on first use."""
    return load("funcgrad.numpy.sparse_products")


def _setitem(self: Tracer, index: Any, value: Any) -> NoReturn:
    raise ArgumentError(
        f"`x[index] = value` would change a traced {self.aval} inside {self.owner.what}, and "
        f"traced arrays are immutable.{place()}\n"
        "Write x = x.at[index].set(value), and x = x.at[index].add(value) for `x[index] += value`. "
        "Arrays that funcgrad.numpy makes here can be assigned to, as the copy x = x.copy()."
    )


_SPECIAL: dict[str, Any] = {
    "__pow__": _pow_operator,
    "__matmul__": _matmul,
    "__rmatmul__": _reflected_matmul,
    "__divmod__": lambda self, other: divmod(self, other),
    "__rdivmod__": lambda self, other: divmod(other, self),
    "__neg__": _neg,
    "__pos__": lambda self: elementwise.positive(self),
    "__abs__": lambda self: elementwise.absolute(self),
    "__invert__": lambda self: elementwise.invert(self),
    "__round__": _round,
    "__getitem__": selected,
    "__setitem__": _setitem,
    "__iter__": _iterate,
    "__contains__": _contains,
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self,
}


# NumPy's protocols.


def _array_ufunc(self: Tracer, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Implement ``__array_ufunc__``: ufuncs and their methods, of traced arguments."""
    if method != "__call__":
        return _ufunc_method(ufunc, method, inputs, _checked_kwargs(ufunc, kwargs))
    if kwargs:
        inputs, kwargs = _in_loop(
            ufunc, inputs, _call_kwargs(ufunc, _checked_kwargs(ufunc, kwargs))
        )
    elif len(inputs) == 1:
        primitive = DIRECT.get(ufunc)
        if primitive is not None:
            aval = self.aval
            kind = aval.dtype.kind
            is_plain = not aval.weak_type or primitive in TAKES_WEAK
            if is_plain and kind in "fc" and kind in primitive.kinds:
                return current_trace().process(primitive, inputs)
    else:
        pair = _operators.get(ufunc)
        if pair is not None:
            x, y = inputs
            out = pair[0](x, y) if isinstance(x, Tracer) else pair[1](y, x)
            if out is not NotImplemented:
                return out
    if any(type(x) is WritableArray for x in inputs):
        return NotImplemented
    function = _functions.get(ufunc) or _find_ufunc(ufunc)
    found = function(*inputs, **kwargs)
    if self.shape:
        return found
    given = next((x for x in inputs if type(x) is np.ndarray), None)
    return found if given is None else _new_array(found, given)


def _find_ufunc(ufunc: np.ufunc) -> Function:
    """The function for a ufunc of SciPy, or an error that names the ufunc."""
    primitive = None if ufunc is getattr(np, ufunc.__name__, None) else primitive_of(ufunc.__name__)
    if primitive is None:
        raise _missing(f"the ufunc {ufunc.__name__}")
    function = _functions[ufunc] = of_scipy(primitive)
    return function


def _missing(what: str) -> MissingRuleError:
    return MissingRuleError(
        f"{what} has no rule for traced arrays.{place()}\n"
        "Write it with the functions of funcgrad.numpy, funcgrad.scipy or funcgrad.lax, or, if its "
        "values need no derivative here, call it outside of the transformed function."
    )


def _immutable(name: str) -> ArgumentError:
    return ArgumentError(
        f"{name}(..., out=y) would write into an array, but traced values cannot be written into "
        f"an ndarray, and traced arrays are immutable.{place()}\n"
        f"Leave `out` away and bind the result: y = np.{name}(...); for `y += x` write y = y + x."
    )


def _is_given(out: Any) -> bool:
    return any(o is not None for o in out) if isinstance(out, tuple) else out is not None


_LAYOUT = ("order", "subok")
"""Keywords for how NumPy stores a result: there are no orders and subclasses here."""
_LOOP = ("dtype", "casting", "signature")
"""Keywords for the dtypes in which a ufunc is evaluated, and for the loss of conversions."""


def _checked_kwargs(ufunc: np.ufunc, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that may change a result; ``out`` is refused."""
    if _is_given(kwargs.get("out")):
        raise _immutable(ufunc.__name__)
    return {k: v for k, v in kwargs.items() if k not in _LAYOUT and k != "out"}


def _in_loop(
    ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Operands in the dtypes that options ask for, and the other options."""
    options = {name: kwargs.pop(name) for name in _LOOP if name in kwargs}
    if options:
        values = [promotion.as_value(x, ufunc.__name__) for x in inputs]
        inputs = tuple(to_loop(ufunc, values, **options))
    return inputs, kwargs


def _call_kwargs(ufunc: np.ufunc, kwargs: dict[str, Any]) -> dict[str, Any]:
    if kwargs.pop("where", True) is not True:
        raise ArgumentError(
            f"np.{ufunc.__name__}(..., where=mask) leaves elements of its `out` as they were, and "
            f"traced arrays have no `out`. Write np.where(mask, np.{ufunc.__name__}(...), other)."
        )
    return {k: v for k, v in kwargs.items() if v is not None}


_REDUCTIONS: dict[Any, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
_ACCUMULATIONS: dict[Any, Any] = {
    np.add: lambda x, axis: _functions[np.cumsum](x, axis=axis),
    np.multiply: lambda x, axis: _functions[np.cumprod](x, axis=axis),
    np.maximum: lambda x, axis: Cummax(axis % x.ndim).bind(x),
    np.minimum: lambda x, axis: Cummin(axis % x.ndim).bind(x),
    np.logaddexp: lambda x, axis: Cumlogsumexp(axis % x.ndim).bind(*promotion.promote_inexact(x)),
}


def _ufunc_method(ufunc: np.ufunc, method: str, inputs: Any, kwargs: dict[str, Any]) -> Any:
    name = f"np.{ufunc.__name__}.{method}"
    if method == "at":
        raise ArgumentError(
            f"{name}(x, index, value) writes into x, and traced arrays are immutable. Write "
            "x = x.at[index].add(value), or one of .multiply, .min, .max, .set."
        )
    if (ufunc.nin, ufunc.nout) != (2, 1) or method not in _METHODS_OF_UFUNCS:
        raise _missing(name)
    if kwargs.get("dtype") is None:
        kwargs.pop("dtype", None)
    if method == "reduce" and ufunc in _REDUCTIONS and not _is_special(ufunc, kwargs):
        return _reduce(ufunc, *inputs, **kwargs)
    if method == "accumulate" and ufunc in _ACCUMULATIONS:
        return _accumulate(ufunc, *inputs, **kwargs)
    function = _functions.get(ufunc) or _find_ufunc(ufunc)
    if method == "outer":
        inputs, kwargs = _in_loop(ufunc, inputs, kwargs)
        return ufuncs.outer(function, *inputs, **kwargs)
    if kwargs.get("dtype") is not None:
        target = promotion.checked_dtype(kwargs["dtype"], name)
        ufunc.resolve_dtypes((target, target, None), signature=(None, None, target))
    is_associative = ufunc in ufuncs.ASSOCIATIVE
    if method in ("reduce", "reduceat") and ufunc in (np.add, np.multiply):
        inputs = (summand(inputs[0], None, name), *inputs[1:])
    if method == "reduce":
        return ufuncs.reduce(function, is_associative, ufunc.identity, *inputs, **kwargs)
    return getattr(ufuncs, method)(function, is_associative, *inputs, **kwargs)


_FACTS_OF_UFUNCS = ("nin", "nout", "nargs", "identity")
_METHODS_OF_UFUNCS = ("reduce", "accumulate", "reduceat", "outer")


def _is_special(ufunc: np.ufunc, kwargs: Mapping[str, Any]) -> bool:
    """Whether NumPy's function of a reduction does not take what its ufunc takes."""
    is_logical = isinstance(ufunc.identity, bool)
    has_start = "initial" in kwargs and (kwargs["initial"] is None or is_logical)
    return has_start or (is_logical and "dtype" in kwargs)


def _reduce(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, **kwargs: Any) -> Any:
    given = {k: v for k, v in kwargs.items() if not (k == "where" and v is True)}
    if dtype is not None:
        array = shaping.astype(array, dtype)
    if type(axis) is int and axis in (0, -1) and not np.ndim(array):
        axis = None  # scalars have a last axis here, as in NumPy
    return _functions[_REDUCTIONS[ufunc]](array, axis=axis, **given)


def _accumulate(ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None) -> Any:
    array = promotion.strong(array) if dtype is None else shaping.astype(array, dtype)
    axis = promotion.normalize_axis(axis, np.ndim(array), ufunc.__name__)
    return _ACCUMULATIONS[ufunc](array, axis)


def _method_of(ufunc: np.ufunc, method: str) -> Function:
    """The method of a ufunc, for arrays and traced values."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return _ufunc_method(ufunc, method, args, kwargs)

    call.__name__ = method
    call.__qualname__ = f"{ufunc.__name__}.{method}"
    call.__doc__ = f"``numpy.{ufunc.__name__}.{method}``, of arrays and traced values."
    return call


def _array_function(
    self: Tracer, func: Any, types: Sequence[type], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Implement ``__array_function__``: NumPy's other functions of traced arguments."""
    if not all(issubclass(t, _DISPATCHING) for t in types):
        return NotImplemented
    function = _functions.get(func)
    if function is None:
        module = getattr(func, "__module__", "numpy").replace("numpy", "np", 1)
        raise _missing(f"{module}.{func.__name__}")
    if "out" in kwargs:
        kwargs = dict(kwargs)
        if _is_given(kwargs.pop("out")):
            raise _immutable(func.__name__)
    return function(*args, **{k: v for k, v in kwargs.items() if k != "like"})


# Methods and properties.


def _axes_or_shape(arguments: tuple[Any, ...]) -> Any:
    """The sequence that was given, as one argument or as several."""
    return arguments[0] if len(arguments) == 1 else arguments


def _reshape(self: Tracer, *shape: Any, order: str = "C", **options: Any) -> Any:
    return shaping.reshape(self, _axes_or_shape(shape), order, **options)


def _transpose(self: Tracer, *axes: Any) -> Any:
    return shaping.transpose(self, _axes_or_shape(axes) if axes else None)


def _astype(
    self: Tracer,
    dtype: Any,
    order: Any = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Any:
    target = promotion.checked_dtype(dtype, "astype")
    promotion.check_casting(self.aval, target, casting)
    return shaping.astype(self, dtype)


def _byteswap(self: Tracer, inplace: bool = False) -> Any:
    if inplace:
        return _in_place("byteswap", "x = x.byteswap()")(self)
    dtype = self.dtype
    if dtype.itemsize == 1:
        return self
    if dtype.kind == "c":
        raise DtypeError(f"x.byteswap(): complex numbers have two parts, got {self.aval}.")
    ends = rearranging.flip(rearranging.view(shaping.expand_dims(self, -1), np.uint8), -1)
    return shaping.squeeze(rearranging.view(ends, dtype), -1)


def _exact(self: Tracer, method: str) -> Any:
    """The values of integers and bools, if known; those of others would lose their derivative."""
    known = None if self.dtype.kind in "fc" else self._known(method)
    return self.refuse(f"x.{method}()") if known is None else np.asarray(known)


def _innermost(self: Tracer) -> Any:
    """Return the value behind all transformations, as programs for autograd print it.

    Raises: ConcretizationTypeError: If there is no value yet, as under `jit` and `vmap`.
    """
    value = self.concrete()
    if value is None:
        raise ConcretizationTypeError(
            f"getval needs a value, but this is {self!r}, which has none yet. Print with "
            "funcgrad.debug.print, branch with numpy.where or funcgrad.lax.cond."
        )
    return _innermost(value) if isinstance(value, Tracer) else value


def _item(self: Tracer, *index: int) -> Any:
    return _exact(self, "item").item(*index)


def _tolist(self: Tracer) -> Any:
    return _exact(self, "tolist").tolist()


def _tobytes(self: Tracer, order: Any = "C") -> bytes:
    return _exact(self, "tobytes").tobytes(order)


def _imag(self: Tracer) -> Any:
    return p.imag.bind(self) if self.dtype.kind == "c" else creating.zeros_like(self)


def _in_place(name: str, rewrite: str) -> Function:
    def refuse(self: Tracer, *args: Any, **kwargs: Any) -> NoReturn:
        raise ArgumentError(
            f"x.{name}(...) changes an array in place, and traced arrays are immutable.{place()}\n"
            f"Write {rewrite}."
        )

    return refuse


def _copy(self: Tracer, order: str | None = "C") -> Any:
    return self if dialect() is not NUMPY else copied(self, order or "C")


_refuse_sort = _in_place("sort", "x = np.sort(x)")


def _sort(self: Tracer, *args: Any, **kwargs: Any) -> Any:
    if dialect() is not NUMPY:
        return _functions[np.sort](self, *args, **kwargs)
    return _refuse_sort(self)


def _to_device(self: Tracer, device: Any, /, *, stream: None = None) -> Tracer:
    if device != "cpu":
        raise ValueError(f"x.to_device: there is one device, 'cpu', got {device!r}.")
    return self


_IN_PLACE = {
    "partition": "x = np.partition(x, kth)",
    "fill": "x = np.full_like(x, value)",
    "put": "x = x.at[index].set(value)",
    "resize": "x = np.resize(x, shape)",
}
_METHODS: dict[str, Any] = {
    "__array__": array_for_numpy,
    "__array_ufunc__": _array_ufunc,
    "__array_function__": _array_function,
    "reshape": _reshape,
    "transpose": _transpose,
    "astype": _astype,
    "item": _item,
    "tobytes": _tobytes,
    "tolist": _tolist,
    "byteswap": _byteswap,
    "compress": lambda self, condition, axis=None, out=None, **options: _functions[np.compress](
        condition, self, axis, out, **options
    ),
    "copy": _copy,
    "device": "cpu",
    "flat": property(shaping.ravel),
    "to_device": _to_device,
    "view": rearranging.view,
    "flatten": shaping.ravel,
    "T": property(shaping.transpose),
    "mT": property(shaping.matrix_transpose),
    "real": property(lambda self: p.real.bind(self) if self.dtype.kind == "c" else self),
    "imag": property(_imag),
    "at": property(at),
    "weak_type": property(lambda self: self.aval.weak_type),
    "sort": _sort,
    **{name: _in_place(name, rewrite) for name, rewrite in _IN_PLACE.items()},
}
_SAME_AS_FUNCTION = (
    "all", "any", "argmax", "argmin", "argsort", "clip", "conj", "conjugate", "cumprod", "cumsum",
    "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "round",
    "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var", "argpartition",
    "choose", "ptp",
)  # fmt: skip
"""Methods that are NumPy's function of the same name with the array as first argument."""

_THAT_WIDEN = (
    "argmax", "argmin", "argsort", "astype", "cumprod", "cumsum", "mean", "nonzero", "prod",
    "searchsorted", "std", "sum", "trace", "var",
)  # fmt: skip
"""Methods whose results may have more bits than the array."""


def _in_bits_of_dialect(method: Function) -> Function:
    """A method whose result has at most the bits of the dialect."""

    @wraps(method)
    def compute(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        out = method(self, *args, **kwargs)
        narrow = dialect().narrow
        return out if narrow is None else narrow(out)

    return compute


_METHODS_OF_OBJECTS = (
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt", "cos", "cosh",
    "deg2rad", "degrees", "exp", "exp2", "expm1", "fabs", "fmod", "hypot", "log", "log10", "log1p",
    "log2", "rad2deg", "radians", "rint", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
"""Ufuncs that NumPy evaluates on arrays of objects by the method of that name of every element."""


# Numbers of traced arrays in arrays of objects.

_SEQUENCES = ("__getitem__", "__setitem__", "__iter__", "__contains__", "__copy__", "__deepcopy__")
"""Operators of arrays that NumPy would take for those of a sequence, and of containers."""
_CONVERSIONS = ("__bool__", "__int__", "__float__", "__complex__", "__index__")


def _of_element(name: str) -> Function:
    """An operator of a traced number for an element of an array of objects."""

    def forward(self: Element, *args: Any) -> Any:
        if self.source.is_exhausted:
            return Refused(self.source)
        return getattr(self.__jax_array__(), name)(*args)

    return forward


def _converted_element(name: str) -> Function:
    return lambda self: getattr(self.__jax_array__(), name)()


def _refuse(self: Refused) -> NoReturn:
    raise self.error()


def _ufunc_of_element(
    self: Element, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
) -> Any:
    return getattr(ufunc, method)(*[unwrapped(x) for x in inputs], **kwargs)


def _install_elements(operators: Iterable[str]) -> None:
    for name in operators:
        setattr(Element, name, _of_element(name))
        setattr(Refused, name, lambda self, *args: self)
    for name in _CONVERSIONS:
        setattr(Element, name, _converted_element(name))
        setattr(Refused, name, _refuse)
    Element.__array_ufunc__ = _ufunc_of_element  # type: ignore[attr-defined]
    Element.__array_function__ = _array_function  # type: ignore[attr-defined]


def is_function(x: Any) -> bool:
    """Whether a member of a module is a function, not a type."""
    return callable(x) and not isinstance(x, type)


_MAKING = (np.zeros_like, np.ones_like, np.full_like, np.empty_like, np.copy)
"""NumPy's functions that make an array from a traced one, which can be assigned to."""


def install(
    functions: Mapping[Any, Function], publics: Mapping[Any, Function], namespace: ModuleType
) -> None:
    """Give traced arrays their operators, methods and NumPy's protocols.

    Args:
        functions: NumPy's function -> ours.
        publics: NumPy's function -> ours, as users call it.
        namespace: The module that `numpy`'s array API finds on traced arrays.
    """
    _functions.update(UFUNCS)
    _functions.update(functions)
    _functions.update({known: publics[known] for known in _MAKING})
    for known, function in _functions.items():
        if isinstance(known, np.ufunc) and known in publics:
            for fact in _FACTS_OF_UFUNCS:
                setattr(publics[known], fact, getattr(known, fact))
        if isinstance(known, np.ufunc) and (known.nin, known.nout, known.signature) == (2, 1, None):
            for method in _METHODS_OF_UFUNCS:
                of_values = _method_of(known, method)
                setattr(function, method, of_values)
                if known in publics:
                    setattr(publics[known], method, public(of_values))
    for name in (*_ARITHMETIC, *_COMPARISONS):
        setattr(Tracer, f"__{name}__", _PAIRS[name][0])
    for name in _ARITHMETIC:
        setattr(Tracer, f"__r{name}__", _PAIRS[name][1])
    scalar_tape.install(
        {ufunc: primitive for ufunc, primitive in DIRECT.items() if "f" in primitive.kinds},
        {name: (_ARITHMETIC[name][0], *_PAIRS[name]) for name in _ARITHMETIC},
        p.IntegerPower(2),
    )
    same = (*_SAME_AS_FUNCTION, *_METHODS_OF_OBJECTS)
    by_name = {name: _functions[getattr(np, name)] for name in same}
    for name, member in (_SPECIAL | by_name | _METHODS).items():
        if isinstance(member, property):
            member = property(member.fget)  # its docstring is written out by now
        setattr(Tracer, name, _in_bits_of_dialect(member) if name in _THAT_WIDEN else member)
    binary = (*_ARITHMETIC, *_COMPARISONS, *(f"r{name}" for name in _ARITHMETIC))
    operators = [*(f"__{name}__" for name in binary), *(n for n in _SPECIAL if n not in _SEQUENCES)]
    _install_elements(operators)
    install_selections([name for name in operators if "matmul" not in name])
    # Attributes that programs for autograd ask for, and pandas, which defers to higher priorities.
    Tracer.__pandas_priority__ = 5000  # type: ignore[attr-defined]
    Tracer._value = property(_innermost)  # type: ignore[attr-defined]
    Tracer.__array_namespace__ = lambda self, api_version=None: namespace  # type: ignore[attr-defined]
