"""Stand-ins for arrays: arrays of objects, and objects that convert.

``np.array([x, y])`` cannot be redirected: NumPy asks every traced value for an ndarray. All that a
traced value can give is an ndarray of objects, one for every number (`objects_of`): of a number
itself, of an array an `Element` for each place. NumPy moves such objects, and computes with them
one by one, through their operators. Wherever funcgrad meets an array of objects, as operand,
argument or result, it becomes the traced array of its numbers again (`unwrapped`): the arrays from
which they came are joined, and one look-up puts the numbers in order, if they are not.

Objects with ``__jax_array__`` or ``__array__`` are unwrapped by calling it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.base.dialect import NUMPY, dialect
from funcgrad.base.pytree import PyTreeDef, opened, tree_flatten
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import MUTABLE_TYPES, Value
from funcgrad.core.trace import Trace, Tracer, current_trace
from funcgrad.dtypes import PYTHON_SCALARS, check_dtype
from funcgrad.errors import DtypeError, TracerArrayConversionError
from funcgrad.observers.messages import message, notes_of
from funcgrad.observers.source import (
    is_called_by_scipy,
    is_called_by_sparse_product,
    is_called_by_subscript,
    requesting_function,
)
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.shape import Concatenate, Slice, reshape

MAX_NUMBERS = 2**20
"""How many objects a traced array is given out as at most."""
MAX_TAKEN = 2**10
"""How often single numbers of a traced array may be computed with: each is an operation."""

_NUMBERS = (*PYTHON_SCALARS, np.generic)
WRAPPED_DTYPES = "OeE"
"""Arrays that `unwrapped` looks at: of objects, and of floats of 16 bits (NumPy's and bfloat16)."""

_READY: set[type] = {*PYTHON_SCALARS, type(None), str, bytes}
"""Types whose values are unwrapped, or stand for no array; NumPy's scalars and tracers join."""


class Source:
    """A traced array that was given out as objects."""

    __slots__ = ("array", "cuts", "taken", "trace")

    def __init__(self, array: Tracer) -> None:
        self.array = array
        self.taken = 0
        self.trace: Trace | None = None
        self.cuts: dict[int, Value] = {}  # numbers that were cut out under `trace`

    @property
    def is_exhausted(self) -> bool:
        """Whether too much was computed with single numbers, now that one more is taken."""
        self.taken += 1
        return self.taken > MAX_TAKEN

    def number(self, place: int) -> Value:
        """One number, by its row-major place."""
        trace = current_trace()
        if trace is not self.trace:
            self.trace, self.cuts = trace, {}
        found = self.cuts.get(place)
        if found is None:
            starts = tuple(map(int, np.unravel_index(place, self.array.shape)))
            limits = tuple(i + 1 for i in starts)
            cut = Slice(starts, limits, (1,) * len(starts)).bind(self.array)
            found = self.cuts[place] = reshape(cut, ())
        return found


class StandsForArray:
    """Base of what stands for an array without being one."""

    __slots__ = ()
    __array_priority__ = Tracer.__array_priority__
    __pandas_priority__ = 5000  # as pandas asks for a number above its own


class HoldsArray(StandsForArray):
    """Base of arrays that hold no numbers, but an array of them: a leaf to users, as any array.

    Transformations see the array that it holds (`funcgrad.base.pytree.opened`).
    """

    __slots__ = ()
    dtype: Any

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def aval_text(self) -> str:
        """The type as messages show it, such as ``key<fry>[3]``."""
        return str(ShapedArray(self.shape, self.dtype))

    def astype(self, dtype: Any, **options: Any) -> Any:
        """Return the same array, as its elements can have no other dtype.

        Raises: TypeError: If another one is asked for.
        """
        raise NotImplementedError


class Element(StandsForArray):
    """One number of a traced array, cut out when something is computed with it.

    `funcgrad.numpy.dispatch` gives it the operators of a traced number.
    """

    __slots__ = ("place", "source")

    def __init__(self, source: Source, place: int) -> None:
        self.source = source
        self.place = place

    def __jax_array__(self) -> Value:
        return self.source.number(self.place)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Protocols that others ask for.
            raise AttributeError(name)
        return getattr(self.__jax_array__(), name)

    def __repr__(self) -> str:
        return f"{self.source.array!r} at {self.place}"


class Refused(StandsForArray):
    """Result of computing with too many single numbers: an error, raised once it is met.

    NumPy's loops over objects do not expect errors, so that operators must not raise.
    """

    __slots__ = ("source",)

    def __init__(self, source: Source) -> None:
        self.source = source

    def error(self) -> TracerArrayConversionError:
        return TracerArrayConversionError(
            message(
                self.source.array,
                f"NumPy computed more than {MAX_TAKEN} times with a single number of",
                "An ndarray that was made of traced arrays, by np.array([x, y]) or X.dot(x), holds "
                "them number by number. Write np.stack([x, y]), and X @ x for X.dot(x), which "
                "compute with whole arrays.",
            )
        )


def array_for_numpy(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """Array of objects for NumPy, which asks a traced value, or a name of one, for an ndarray.

    Of a known array it is a copy. Where NumPy's own would share its elements with the array, as
    that of ``np.asarray(x)`` does, it is read-only: what was written into it would not be seen.

    Raises: TracerArrayConversionError: If numbers are needed: for a dtype, an index, SciPy; and by
            the rules of JAX, by which programs learn so that a value is traced.
    """
    if not isinstance(self, Tracer):
        self = self.__jax_array__()
        if not isinstance(self, Tracer):
            notes_of(current_trace()).gave_part = True
            is_converted = dtype is not None and self.dtype != dtype
            return _as_given(np.array(self, dtype), copy or is_converted)
    if is_called_by_sparse_product():  # An object, by which SciPy leaves the product to us.
        out = np.empty((), object)
        out[()] = self
        return out
    needs_numbers = dtype is not None and np.dtype(dtype).char != "O"
    if (
        needs_numbers
        or dialect() is not NUMPY
        or self.size > MAX_NUMBERS
        or not self.owner.is_live
        or is_called_by_subscript()
        or is_called_by_scipy()
    ):
        self.refuse("array")
    if requesting_function() == "as_strided":  # It reads addresses, by strides that are not ours.
        raise TracerArrayConversionError(
            message(
                self,
                "np.lib.stride_tricks.as_strided needs the memory of an array, but this is",
                "Write np.lib.stride_tricks.sliding_window_view(x, length), reshape, or an index: "
                "x[np.arange(rows)[:, None] * step + np.arange(length)].",
            )
        )
    notes = notes_of(self.owner)
    notes.gave_objects = notes.gave_part = True
    return _as_given(objects_of(self), copy)


def _as_given(array: np.ndarray, copy: bool | None) -> np.ndarray:
    """A new array for NumPy, which is written to only if it is to be a copy."""
    array.flags.writeable = bool(copy)
    return array


def objects_of(array: Tracer) -> np.ndarray:
    """An ndarray of objects that stand for the numbers of a traced array."""
    out = np.empty(array.shape, object)
    if not array.shape:
        out[()] = array
        return out
    source, flat = Source(array), out.reshape(-1)
    for place in range(flat.size):
        flat[place] = Element(source, place)
    return out


def is_traced(x: Any) -> bool:
    """Whether something is a traced value, or a name of one."""
    return isinstance(x.__jax_array__() if type(x) in MUTABLE_TYPES else x, Tracer)


def never_unwrap(kind: type) -> None:
    """Let values of a type, which stand for no array, pass `unwrapped` without being asked."""
    _READY.add(kind)


def unwrapped(x: Any) -> Any:
    """``x``, or the value of what stands for an array."""
    kind = type(x)
    if kind in _READY:
        return x
    if isinstance(x, np.ndarray):
        return x if x.dtype.char not in WRAPPED_DTYPES else _unwrapped_array(x)
    if isinstance(x, Tracer | np.generic):
        _READY.add(kind)
        return x
    if isinstance(x, type):
        return x
    if kind is Refused:
        raise x.error()
    if hasattr(x, "__jax_array__"):
        return unwrapped(x.__jax_array__())
    return unwrapped(np.asarray(x)) if hasattr(x, "__array__") else x


def _unwrapped_array(x: np.ndarray) -> Any:
    """An array of objects that stand for one; floats of 16 bits, as the dialect computes them."""
    if x.dtype.char == "O":
        return _joined(x) if _holds_numbers(x) else x
    narrow = dialect().narrow
    return x if narrow is None else narrow(x)


def flatten_values(tree: Any, like: PyTreeDef | None = None) -> tuple[list[Any], PyTreeDef]:
    """Leaves and structure of a pytree of arrays; leaves that stand for arrays are unwrapped.

    Args:
        tree: The pytree.
        like: A structure that it probably has.
    """
    alike = None if like is None else like.flatten_alike(tree)
    return as_values(*(tree_flatten(tree) if alike is None or like is None else (alike, like)))


def as_values(leaves: list[Any], treedef: PyTreeDef) -> tuple[list[Any], PyTreeDef]:
    """Leaves of a pytree and its structure as `flatten_values` gives them."""
    if (narrow := dialect().narrow) is not None:
        leaves = [narrow(x) for x in leaves]
    if not _READY.issuperset(map(type, leaves)):
        leaves, treedef = opened(leaves, treedef)
        leaves = [unwrapped(x) for x in leaves]
    return leaves, treedef


def flatten_held(tree: Any) -> tuple[list[Any], PyTreeDef]:
    """Flatten as `flatten_values`; leaves that stand for arrays stay as they are."""
    return opened(*tree_flatten(tree))


def flatten_numbers(tree: Any) -> tuple[list[Any], PyTreeDef]:
    """Flatten as `flatten_values`, where arrays must hold numbers: others refuse, as keys do."""
    leaves, treedef = tree_flatten(tree)
    return list(map(unwrapped, leaves)), treedef


def map_numbers(function: Callable[[Any], Any], tree: Any) -> Any:
    """Map as `map_values`, where arrays must hold numbers."""
    leaves, treedef = flatten_numbers(tree)
    return treedef.unflatten([function(x) for x in leaves])


def map_values(function: Callable[[Any], Any], tree: Any) -> Any:
    """Apply a function to the leaves of a pytree of arrays."""
    leaves, treedef = flatten_values(tree)
    return treedef.unflatten([function(x) for x in leaves])


def flatten_extra(tree: Any) -> tuple[list[Any], PyTreeDef]:
    """Flatten a pytree of anything, as `flatten_values`: only traced values are unwrapped."""
    leaves, treedef = flatten_held(tree)
    return [unwrapped(x) if _holds_traced(x) else x for x in leaves], treedef


def _holds_traced(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return x.dtype.char == "O" and any(isinstance(e, StandsForArray | Tracer) for e in x.flat)
    return isinstance(x, StandsForArray)


def _holds_numbers(objects: np.ndarray) -> bool:
    """Whether objects stand for an array: if one of them is traced, or all are numbers."""
    return _holds_traced(objects) or all(map(_is_number, objects.flat))


def _is_number(x: Any) -> bool:
    return isinstance(x, _NUMBERS) or hasattr(x, "__jax_array__")


def _joined(objects: np.ndarray) -> Value:
    """The array of the numbers in an array of objects.

    Python's numbers count as in ``np.array([...])``: ints are int64, floats float64.
    """
    if not objects.size:
        return np.empty(objects.shape)
    pool = _Pool()
    places = [pool.place_of(x) for x in objects.ravel().tolist()]
    found = pool.joined()
    if places != list(range(pool.length)):
        found = Gather((0,)).bind(found, np.array(places))
    return reshape(found, objects.shape)


class _Pool:
    """Traced arrays and numbers, to be laid one behind the other, each of them once."""

    def __init__(self) -> None:
        self.parts: list[Any] = []  # traced values, and lists of numbers between them
        self.starts: dict[int, int] = {}
        self.length = 0

    def place_of(self, x: Any) -> int:
        """Index of a number."""
        if type(x) is Element:
            return self.start_of(x.source.array) + x.place
        x = unwrapped(x)
        if isinstance(x, Tracer) and not x.shape:
            return self.start_of(x)
        if not isinstance(x, _NUMBERS):
            what = str(aval_of(x)) if isinstance(x, Tracer) else f"a {type(x).__name__}"
            raise DtypeError(
                f"an array of objects can stand for an array if it holds numbers, traced or not; "
                f"this one holds {what}. Build arrays of numbers with np.array and a numeric "
                "dtype, arrays of traced arrays with np.stack."
            )
        if not self.parts or type(self.parts[-1]) is not list:
            self.parts.append([])
        self.parts[-1].append(x)
        self.length += 1
        return self.length - 1

    def start_of(self, x: Tracer) -> int:
        """Index of the first element of a traced array."""
        start = self.starts.get(id(x))
        if start is None:
            self.parts.append(x)
            start = self.starts[id(x)] = self.length
            self.length += x.size
        return start

    def joined(self) -> Value:
        """All parts as one line."""
        parts = [np.asarray(part) if type(part) is list else part for part in self.parts]
        dtype = np.result_type(*[check_dtype(part.dtype) for part in parts])
        lines = [reshape(convert(part, dtype), (part.size,)) for part in parts]
        return lines[0] if len(lines) == 1 else Concatenate(0).bind(*lines)
