"""Arrays for JAX programs: a kind of ndarray with the attributes of ``jax.Array``.

Everything that a function of the package ``jax`` returns is of this kind. It is an ndarray in all
respects, with ``.at``, with indices that may be traced, and with ``x += y`` that makes a new array.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType, MethodDescriptorType, MethodType, WrapperDescriptorType
from typing import Any, cast

import numpy as np

from funcgrad import numpy
from funcgrad.api.compilation import Compiled, Lowered, Traced
from funcgrad.api.linear_functions import LinearFunction
from funcgrad.base.dialect import enter_dialect, leave_dialect
from funcgrad.base.error_state import without_warnings
from funcgrad.base.placement import CPU, Device, check_placement
from funcgrad.base.pytree import is_tree_node, register_pytree_node, tree_map
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.dtypes import INT64, UINT64, check_dtype
from funcgrad.errors import ShapeError
from funcgrad.interop.jax.devices import NamedSharding, Sharding, SingleDeviceSharding
from funcgrad.interop.jax.places import Labels, note, resolved
from funcgrad.interop.jax.shards import Shard, shards_of
from funcgrad.interop.jax.widths import (
    HALVES,
    JAX_32,
    JAX_64,
    computed,
    computed_dtype,
    is_x64,
    narrow,
    rules,
    stored,
    stored_as,
)
from funcgrad.numpy import at
from funcgrad.numpy.promotion import noted_dtype
from funcgrad.observers.promotion import PROMOTIONS
from funcgrad.primitives import objects
from funcgrad.primitives.elementwise import Convert
from funcgrad.primitives.objects import HoldsArray, StandsForArray, unwrapped


@functools.cache
def _of_any(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that is taken from the class: traced values have their own of that name."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, Tracer):
            return getattr(self, method.__name__)(*args, **kwargs)
        return method(self, *args, **kwargs)

    return call


_METHODS = (FunctionType, MethodDescriptorType, WrapperDescriptorType)


class _Kind(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("jax.Array is no function: arrays are made by jax.numpy.array and others.")

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, Tracer | HoldsArray)


def _of_class(cls: _Kind, name: str) -> Any:
    found = type.__getattribute__(cls, name)
    if name.startswith("__array_") or not isinstance(found, _METHODS):  # NumPy's own protocols
        return found
    return _of_any(found)


_Kind.__getattribute__ = _of_class  # type: ignore[assignment, method-assign]


class Array(np.ndarray, metaclass=_Kind):
    """An ndarray with the attributes of ``jax.Array``; traced values count as instances.

    Attributes:
        weak_type: Whether it promotes as the Python number that it was made of.
        sharding: Where a program has put it.
        committed: Whether a program has put it there.
        terms: Of a sum over lanes of a mesh, those of the lanes, stacked; `None` if it is none, or
            the first lane has all of it.
    """

    weak_type = False
    terms: Any = None
    sharding: Sharding = SingleDeviceSharding(CPU)
    committed = False

    @property
    def at(self) -> Any:
        """Functional updates: ``x.at[i].set(v)``."""
        return Places(at(computed(self)), self.dtype if self.dtype in HALVES else None)

    def __getitem__(self, index: Any) -> Any:
        if type(index) is list or is_traced(index):
            return self.at[index].get()
        try:
            found = adopt(np.ndarray.__getitem__(self, index))
        except IndexError:  # places outside are clamped, by default; all else raises again
            return self.at[index].get()
        # Arrays of JAX lie in order: these may be passed to compiled functions again and again.
        found = found if found.flags.c_contiguous else found.copy()
        return weakly(found) if self.weak_type else found

    def __iter__(self) -> Iterator[Any]:  # that of ndarrays goes on to the first IndexError
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(np.asarray(self))))

    def __repr__(self) -> str:
        words = f"dtype={self.dtype.name}{', weak_type=True' * self.weak_type})"
        if self.size:
            text = np.array2string(np.asarray(self), separator=", ", prefix="Array(", suffix=",")
        else:
            text = f"[], shape={self.shape}"
        length = len(text) - text.rfind("\n") + 6 * ("\n" not in text) + len(words) + 1
        is_long = length > np.get_printoptions()["linewidth"]
        return f"Array({text},{' ' * (6 if is_long else 1)}{words}"  # JAX has no new line there

    def __str__(self) -> str:
        # NumPy looks at the digits of numbers one by one, which are arrays here.
        return np.ndarray.__str__(np.asarray(self))

    def __round__(self, ndigits: int | None = None) -> Array:
        return adopt(np.round(self, ndigits or 0))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        # NumPy's functions are written with methods of ndarrays, of which `sort` is another here.
        return func(*plain(args), **plain(kwargs))

    def sort(self, axis: int | None = -1, **options: Any) -> Array:  # type: ignore[override]
        """A sorted copy."""
        return adopt(numpy.sort(np.asarray(self), axis, **options))

    def to_device(self, device: Any, *, stream: Any = None) -> Array:
        """The array, on another device."""
        return placed_on(self, device, "x.to_device")

    def block_until_ready(self) -> Array:
        """The array: results are ready when a call returns."""
        return self

    def unsafe_buffer_pointer(self) -> int:
        """The address of its memory."""
        return self.ctypes.data

    def copy_to_host_async(self) -> None:
        """Nothing: the array is on the host."""

    def devices(self) -> set[Device]:
        """Names of the processor where it lies."""
        return self.sharding.device_set

    @property
    def aval(self) -> ShapedArray:
        """Its shape and dtype."""
        dtype = check_dtype(self.dtype)
        return shaped(self.shape, dtype, self.weak_type)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts of all lanes of the mesh, of which this process has all."""
        return shards_of(self, adopt)

    @property
    def global_shards(self) -> list[Shard]:
        """The parts of all lanes of the mesh."""
        return shards_of(self, adopt)

    def addressable_data(self, index: int) -> Any:
        """The part of a lane of the mesh."""
        return shards_of(self, adopt)[index].data

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process has all of it, which is always the case."""
        return True

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device has all of it."""
        return self.sharding.is_fully_replicated

    def is_deleted(self) -> bool:
        """Whether the memory was given away: to a result of a call that it was donated to."""
        return False

    def delete(self) -> None:
        """Give the memory away: from here on only the shape and the dtype can be asked for."""
        self.__class__ = DeletedArray


_PROPERTIES = ("T", "dtype", "imag", "itemsize", "mT", "nbytes", "ndim", "real", "shape", "size")
"""Attributes that are properties of ``jax.Array``, as programs that read the class expect."""

for _name in _PROPERTIES:
    _of_ndarray = getattr(np.ndarray, _name)
    setattr(Array, _name, property(_of_ndarray.__get__, _of_ndarray.__set__))


class DeletedArray(Array):
    """An array whose memory was given away; nothing can be computed of it."""

    def is_deleted(self) -> bool:
        return True

    def delete(self) -> None:
        pass

    def refuse(self, *args: Any, **options: Any) -> Any:
        """Say that there are no values any more.

        Raises: RuntimeError: Always, as in JAX.
        """
        raise RuntimeError(
            f"Array has been deleted with shape={self.dtype.name}[{','.join(map(str, self.shape))}]"
            ". It was donated to a call, whose result has its memory; leave it out of "
            "donate_argnums, or use the result."
        )

    def __repr__(self) -> str:
        return f"DeletedArray(shape={self.shape}, dtype={self.dtype.name})"


for _name in (
    *("__array_function__", "__array_ufunc__", "__bool__", "__complex__", "__float__"),
    *("__format__", "__getitem__", "__index__", "__int__", "__iter__", "item", "tolist"),
):
    setattr(DeletedArray, _name, DeletedArray.refuse)


def placed_on(x: Any, place: Any, name: str) -> Any:
    """An array that says where a program has put it; the same array if it is there.

    Args:
        x: The array; others stay as they are.
        place: A device, a sharding, or what else says that it is the processor.
        name: The public function.
    Raises: ArgumentError: If the place is not the processor.
    """
    check_placement(name, device=place)
    if type(x) is not Array or place is None or isinstance(place, str):
        return x
    there = place if isinstance(place, Sharding) else SingleDeviceSharding(place)
    if x.sharding == there:
        return x
    Labels.are_there = Labels.are_there or isinstance(there, NamedSharding)
    made = x.view(Array)
    made.weak_type, made.sharding, made.committed = x.weak_type, there, True
    return made


def weakly(x: Any) -> Any:
    """An array that promotes as a Python number."""
    if type(x) is Array:
        x.weak_type = True
    return x


def weak_kind(values: Iterable[Any]) -> str:
    """The kind of numbers of a result that is weak as its operands are; empty if it is not.

    Bools say nothing: they choose, or are counted. Where there are 64 bits, weak operands of a
    higher kind than the others decide.

    Args: values: The operands, among other arguments.
    """
    found, lower = "", ""
    for x in values:
        kind = type(x)
        if (kind is Array or isinstance(x, Tracer)) and x.weak_type:
            found = max(found, x.dtype.kind, key=_KINDS.index)
        elif kind in _KIND_OF_NUMBERS:
            found = max(found, _KIND_OF_NUMBERS[kind], key=_KINDS.index)
        elif kind is tuple or kind is list:
            inner = weak_kind(x)
            if not inner and x:
                return ""
            found = max(found, inner, key=_KINDS.index)
        elif isinstance(x, type | np.dtype) or callable(x):
            return ""  # a dtype that is asked for, or control flow, which has rules of its own
        else:
            dtype = getattr(x, "dtype", None)
            kind_of_strong = getattr(dtype, "kind", "b")
            if kind_of_strong != "b":
                if kind_of_strong not in _KINDS or not is_x64():
                    return ""
                lower = max(lower, kind_of_strong, key=_KINDS.index)
    return found if not lower or lower in _BELOW.get(found, "") else ""


_KIND_OF_NUMBERS = {int: "i", float: "f", complex: "c"}
_KINDS = ("", "u", "i", "f", "c")


_BELOW = {"i": "b", "f": "biu", "c": "biu"}
"""The kinds of strong numbers that count as nothing beside those of weak ones."""


def weakly_of(made: Any, values: Iterable[Any]) -> Any:
    """A result of a function of arrays, weak where the operands are."""
    kind = weak_kind(values)
    if not kind:
        return made
    if type(made) in _KIND_OF_NUMBERS:
        return weak_array(made)
    parts = made if type(made) in (tuple, list) else (made,)
    if any(isinstance(part, Tracer) for part in parts):
        if kind != "i" and (
            not is_x64() or any(isinstance(x, Tracer) and x.weak_type for x in values)
        ):
            return made  # its dtype is asked for
        parts = [
            weak_number(x) if isinstance(x, Tracer) and x.aval.dtype.kind == kind else x
            for x in parts
        ]
        return type(made)(parts) if type(made) in (tuple, list) else parts[0]
    for part in parts:
        if type(part) is Array and part.dtype.kind in _KINDS[_KINDS.index(kind) :]:
            weakly(part)
    return made


def weak_number(x: Any) -> Any:
    """A number as a weak one; a traced integer has 64 bits then, a float keeps those it has."""
    if not isinstance(x, Tracer):
        return weak_array(x)
    if x.aval.weak_type or x.aval.dtype.kind == "b":
        return x
    return Convert(INT64 if x.aval.dtype.kind == "i" else x.aval.dtype, weak=True).bind(x)


def weak_array(x: Any) -> Any:
    """A number or an array as a weak array."""
    return weakly(adopt(np.asarray(x)))


JAX_32.weak = JAX_64.weak = weak_array


_FUNCTIONS = {
    "add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "truediv": numpy.true_divide,
    "floordiv": numpy.floor_divide, "mod": numpy.mod, "pow": numpy.power, "matmul": numpy.matmul,
    "and": numpy.bitwise_and, "or": numpy.bitwise_or, "xor": numpy.bitwise_xor,
}  # fmt: skip


def _operator(name: str, is_reflected: bool) -> Callable[[Any, Any], Any]:
    """An operator: of arrays and numbers only, with the dtypes of weak arrays and of 16 bits."""
    of_ndarrays = getattr(np.ndarray, f"__{'r' * is_reflected}{name}__")
    function = _FUNCTIONS[name]

    @functools.wraps(of_ndarrays)
    def compute(self: Any, other: Any) -> Any:
        if not isinstance(other, _OPERANDS) and not _stands_for_array(other):
            return NotImplemented
        is_half = self.dtype in HALVES or getattr(other, "dtype", None) in HALVES
        if is_half or (PROMOTIONS.users and name == "matmul"):  # which broadcasts by other rules
            operands = (other, self) if is_reflected else (self, other)
            return Adopted(function, stores=True)(*operands)
        if PROMOTIONS.users and type(other) is not np.ndarray:  # whose ufuncs give such as `self`
            _refuse_promotion((self, other))
        if is_x64() and (name == "truediv" or _kind_of(other) != self.dtype.kind):
            # Integers beside floats say nothing, and quotients of narrow ones are narrow.
            return _FOLLOWING[function](*((other, self) if is_reflected else (self, other)))
        with without_warnings() as block, block:
            if self.weak_type or getattr(other, "weak_type", False):
                made = adopt(function(other, self) if is_reflected else function(self, other))
                return weakly_of(made, (self, other))
            try:
                return adopt(of_ndarrays(self, other))
            except ValueError as error:  # shapes that do not fit: a TypeError in JAX
                raise ShapeError(str(error)) from None

    return compute


def _refuse_promotion(operands: tuple[Any, Any]) -> None:
    """Raise if the context does not allow that these are promoted, or broadcast."""
    token = enter_dialect(rules())
    try:
        noted_dtype(operands, [aval_of(unwrapped(x)) for x in operands])
    finally:
        leave_dialect(token)


def _kind_of(x: Any) -> str:
    """The kind of numbers of an operand; empty if it is none of NumPy's."""
    return str(getattr(getattr(x, "dtype", None), "kind", _KIND_OF_NUMBERS.get(type(x), "")))


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    """A comparison with arrays and numbers; Python knows the answer for others, such as None."""
    of_ndarrays = getattr(np.ndarray, name)

    @functools.wraps(of_ndarrays)
    def compute(self: Any, other: Any) -> Any:
        if not isinstance(other, _OPERANDS) and not _stands_for_array(other):
            return NotImplemented
        return adopt(of_ndarrays(self, other))

    return compute


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Array, _name, _comparison(_name))


def _unary_operator(name: str) -> Callable[[Any], Any]:
    of_ndarrays = getattr(np.ndarray, name)

    @functools.wraps(of_ndarrays)
    def compute(self: Any) -> Any:
        made = adopt(of_ndarrays(self))
        return weakly(made) if self.weak_type else made

    return compute


for _name in ("__neg__", "__pos__", "__abs__", "__invert__"):
    setattr(Array, _name, _unary_operator(_name))


def _stands_for_array(x: Any) -> bool:
    return hasattr(x, "__array__") or hasattr(x, "__jax_array__")


_OPERANDS = (np.ndarray, np.generic, int, float, complex)
for _name in _FUNCTIONS:
    for _is_reflected in (False, True):
        _made = _operator(_name, _is_reflected)
        setattr(Array, _made.__name__, _made)


def _anew(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``x += y`` as ``x = x + y``: others that hold ``x`` keep what they have."""

    def compute(self: Any, other: Any) -> Any:
        return operation(self, other)

    return compute


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(Array, f"__i{_name}__", _anew(getattr(operator, _name)))
for _name in ("and", "or", "xor"):
    setattr(Array, f"__i{_name}__", _anew(getattr(operator, f"__{_name}__")))


_OF_JAX = frozenset(
    {
        "correction", "descending", "fill_value", "indices_are_sorted", "method", "mode",
        "out_sharding", "precision", "preferred_element_type", "promote_integers", "size",
        "stable", "total_repeat_length", "unique_indices",
    }
)  # fmt: skip
"""Keywords of methods that those of ndarrays do not have, or with other values."""


_OF_ARRAYS: dict[str, Callable[..., Any]] = {
    "compress": lambda x, condition, *args, **options: numpy.compress(
        condition, x, *args, **options
    )
}
"""Methods whose array is not the first argument of the function of their name."""


def _method(name: str) -> Callable[..., Any]:
    """A method that takes traced values, too, and JAX's keywords; None is not given."""
    of_ndarrays, ours = getattr(np.ndarray, name, None), _OF_ARRAYS.get(name, getattr(numpy, name))

    def compute(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = {k: v for k, v in kwargs.items() if v is not None}
        if self.dtype in HALVES:
            return Adopted(ours, stores=True)(self, *args, **given)
        is_ours = not _OF_JAX.isdisjoint(given) or is_traced((*args, *given.values()))
        if is_ours or of_ndarrays is None:
            return adopt(ours(np.asarray(self), *args, **given))
        return adopt(of_ndarrays(self, *args, **given))

    return compute if of_ndarrays is None else functools.wraps(of_ndarrays)(compute)


def _fold(name: str) -> Callable[..., Any]:
    """A method whose first argument are axes, in a list, too."""
    method = _method(name)

    @functools.wraps(method)
    def compute(self: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        return method(self, tuple(axis) if type(axis) is list else axis, *args, **kwargs)

    return compute


for _name in ("all", "any", "max", "mean", "min", "prod", "ptp", "std", "sum", "var"):
    setattr(Array, _name, _fold(_name))
for _name in (
    "argmax", "argmin", "argsort", "choose", "clip", "compress", "cumprod", "cumsum", "dot",
    "nonzero", "repeat", "searchsorted", "take", "trace",
):  # fmt: skip
    setattr(Array, _name, _method(_name))


def _placed(name: str) -> Callable[..., Any]:
    """A method that may be told where its result lies."""
    of_ndarrays = getattr(np.ndarray, name)

    @functools.wraps(of_ndarrays)
    def compute(self: Any, *args: Any, **kwargs: Any) -> Any:
        places = {word: kwargs.pop(word) for word in ("device", "out_sharding") if word in kwargs}
        check_placement(f"x.{name}", **places)
        if name == "reshape" and not args:  # no lengths at all
            args = ((),)
        return adopt(of_ndarrays(self, *args, **kwargs))

    return compute


for _name in ("astype", "flatten", "ravel", "reshape"):
    setattr(Array, _name, _placed(_name))


def plain(x: Any) -> Any:
    """The same with ndarrays for arrays of this kind, also inside of lists, tuples and dicts."""
    if type(x) is Array:
        return np.asarray(x)
    if type(x) is list or type(x) is tuple:
        return type(x)(map(plain, x))
    return {k: plain(v) for k, v in x.items()} if type(x) is dict else x


class Places:
    """``x.at`` and ``x.at[i]``, whose methods give arrays of this kind.

    Args:
        original: That of the array in a dtype that is computed in.
        half: The dtype of 16 bits that results have, if they have one.
    """

    def __init__(self, original: Any, half: np.dtype[Any] | None = None) -> None:
        self._original = original
        self._half = half

    def __getitem__(self, index: Any) -> Places:
        return Places(self._original[index], self._half)

    def __getattr__(self, name: str) -> Any:
        if name == "_original":  # while it is copied or unpickled
            raise AttributeError(name)
        method, half = Adopted(getattr(self._original, name)), self._half
        if half is None:
            return method
        return lambda *args, **kwargs: stored_as(method(*args, **kwargs), half)


def is_traced(index: Any) -> bool:
    """Whether an index holds traced values."""
    if isinstance(index, tuple | list):
        return any(map(is_traced, index))
    if isinstance(index, slice):
        return any(is_traced(i) for i in (index.start, index.stop, index.step))
    return objects.is_traced(index)


def adopt(value: Any) -> Any:
    """The same with arrays of this kind for ndarrays, and functions that return such."""
    if isinstance(value, Tracer) or type(value) is Array:
        return value if is_x64() else narrow(value)
    if type(value) is np.ndarray:
        return (value if is_x64() else narrow(value)).view(Array)
    if isinstance(value, np.generic):
        return adopt(np.asarray(value))
    if isinstance(value, HoldsArray):
        return value
    if isinstance(value, StandsForArray):
        # Arrays of JAX do not change by assignments elsewhere: `y = x; y += 1`.
        return adopt(unwrapped(value))
    if type(value) is tuple:
        return tuple(map(adopt, value))
    if type(value) is list:
        return list(map(adopt, value))
    if isinstance(value, LinearFunction):
        return AdoptedLinear(cast("Callable[..., Any]", value))
    if value is not None and is_tree_node(type(value)):
        return tree_map(adopt, value)
    if isinstance(value, Traced | Lowered | Compiled):
        return AdoptedStage(cast("Callable[..., Any]", value))
    shown = SHOWN_AS.get(type(value))
    if shown is not None:
        return shown(value)
    return Adopted(value) if is_function(value) else value


SHOWN_AS: dict[type, Callable[[Any], Any]] = {}
"""Objects of the package by the classes of what they stand for."""


def array_for_rule(value: Any) -> Any:
    """Return an array of this kind for NumPy's arrays and scalars, as users' rules get them."""
    if not (type(value) is np.ndarray or isinstance(value, np.generic)):
        return value
    is_key = value.dtype == UINT64 and not is_x64()  # nothing else has 64 bits then
    return adopt(value) if value.dtype.kind in "biufc" and not is_key else value


JAX_32.array = JAX_64.array = array_for_rule


def is_function(value: Any) -> bool:
    """Whether it is a function, or an object of funcgrad that is called like one."""
    if isinstance(value, type | Adopted | AbstractContextManager) or not callable(value):
        return False
    is_plain = isinstance(value, FunctionType | MethodType | functools.partial)
    return is_plain or type(value).__module__.startswith("funcgrad")


def _computed(x: Any) -> Any:
    """An argument of a function, an array or a sequence of arrays, in a dtype that it takes."""
    if type(x) is DeletedArray:
        x.refuse()
    if type(x) is dict:
        return {k: _computed(v) for k, v in x.items()}
    return type(x)(map(computed, x)) if type(x) in (tuple, list) else computed(x)


_SEQUENCES = (list, range)


def _blocks_for(args: Iterable[Any]) -> Callable[[], Any]:
    """Maker of a block without NumPy's warnings: one as it is where NumPy evaluates nothing."""
    is_recorded = current_trace().is_staged and all(
        isinstance(x, Tracer) or type(x) in _KIND_OF_NUMBERS for x in args
    )
    return _as_it_is if is_recorded else without_warnings


def _as_it_is() -> Any:
    """A block that changes nothing, to be entered twice."""
    return nullcontext(nullcontext())


class Adopted:
    """A function whose results are adopted, and which traces by the rules of JAX.

    Args:
        original: The function.
        folds_axes: Whether its second argument are axes, of which JAX takes a list or range, too.
        stores: Whether it gives floats of 16 bits for such.
        keeps_weak: Whether it gives weak arrays for weak ones and Python's numbers.
    """

    def __init__(
        self,
        original: Callable[..., Any],
        folds_axes: bool = False,
        stores: bool = False,
        keeps_weak: bool = False,
    ) -> None:
        functools.update_wrapper(self, original, updated=())
        self._original = original
        self._folds_axes = folds_axes
        self._stores = stores
        self._keeps_weak = keeps_weak

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._folds_axes:
            if len(args) > 1 and type(args[1]) in _SEQUENCES:
                args = (args[0], tuple(args[1]), *args[2:])
            elif type(kwargs.get("axis")) in _SEQUENCES:
                kwargs["axis"] = tuple(kwargs["axis"])
        token = enter_dialect(rules())
        try:
            half = stored((*args, *kwargs.values())) if self._stores else None
            if half is not None:
                args = tuple(map(computed_dtype, args))
                kwargs = {k: computed_dtype(v) for k, v in kwargs.items()}
            args = tuple(map(_computed, args))
            kwargs = {k: _computed(v) for k, v in kwargs.items()}
            with _blocks_for((*args, *kwargs.values()))() as block, block:
                made = adopt(self._original(*args, **kwargs))
            if self._keeps_weak:
                made = weakly_of(made, (*args, *kwargs.values()))
            made = made if half is None else stored_as(made, half)
            place = kwargs.get("out_sharding")
            return made if place is None else _lying(made, place, self._original.__name__)
        finally:
            leave_dialect(token)

    def __getattr__(self, name: str) -> Any:
        if name == "_original":  # while it is copied or unpickled
            raise AttributeError(name)
        if name == "nargs":  # of a ufunc, which has no ``out`` in JAX
            return self.nin
        try:
            value = getattr(self._original, name)
        except AttributeError:  # of the user's function, as `functools.wraps` copies them
            value = getattr(inspect.unwrap(self._original), name)
        # Methods that trace, as `lower` does.
        is_own = isinstance(value, MethodType) and value.__self__ is self._original
        return Adopted(value) if is_own and not name.startswith("_") else value

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __eq__(self, other: object) -> bool:
        return bool(self._original == getattr(other, "_original", other))

    def __hash__(self) -> int:
        return hash(self._original)

    def __repr__(self) -> str:
        return repr(self._original)


def as_function(value: Any) -> Any:
    """An adopted function as one of Python's, which programs tell from other objects."""
    if type(value) is not Adopted:
        return value

    @functools.wraps(value)
    def call(*args: Any, **kwargs: Any) -> Any:
        return value(*args, **kwargs)

    return call


_FOLLOWING = {function: Adopted(function, keeps_weak=True) for function in _FUNCTIONS.values()}
"""Functions of operators by the rules of JAX for dtypes."""


def _lying(x: Any, place: Any, name: str) -> Any:
    """A result that says where it lies."""
    place = resolved(place, name)
    if isinstance(x, Tracer):
        note(x, place)
        return x
    return placed_on(x, place, name)


class JaxRuntimeError(RuntimeError):
    """A compiled program has failed, such as a callback of it, or could not be made."""


class AdoptedStage(Adopted):
    """A stage of compilation, whose methods follow the rules of JAX; an instance of its class."""

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> Any:
        """The compiled program; options of XLA change nothing.

        Args: compiler_options: By name, all of which begin with ``xla_``.
        Raises: JaxRuntimeError: If XLA has no option of a name.
        """
        for name in compiler_options or ():
            if not name.startswith("xla_"):
                raise JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: {name!r}")
        return self.__getattr__("compile")()

    @property
    def jaxpr(self) -> Any:
        """The program, as the package shows programs."""
        return adopt(self.__getattr__("jaxpr"))

    @property
    def __class__(self) -> type:
        return type(self._original)

    @__class__.setter
    def __class__(self, kind: type) -> None:
        raise TypeError("a stage of compilation keeps its class")


class AdoptedLinear(Adopted):
    """Linear function from `vjp` or `linearize`, and a pytree of the values that it keeps."""


register_pytree_node(
    AdoptedLinear, lambda f: ((f._original,), None), lambda _, kept: AdoptedLinear(kept[0])
)
