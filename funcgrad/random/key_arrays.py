"""Arrays of random keys: values with a shape, whose elements are keys.

A key is two words of 32 bits. An array of keys holds one integer of 64 bits for each (the high word
first), in an array of the same shape; so axes mean the same for both, and whatever moves elements
moves keys. Keys of some generators are of four words, and held in two such arrays. To users it is
one value with a dtype such as ``key<fry>``, and a leaf of pytrees; where a transformation begins it
is a container of its integers (`funcgrad.base.pytree.opened`), so that no primitive, no rule and no
kernel knows of keys.

What moves, joins, chooses or compares elements takes keys: the functions of `_OPERANDS`. They are
found when a function asks for numbers (`KeyArrayError`), so that no other call pays for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from funcgrad import lax
from funcgrad.base.pytree import register_holder
from funcgrad.base.signatures import signature_of
from funcgrad.core.avals import Shape, ShapedArray, aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import PYTHON_SCALARS, ExtendedDtype, prng_key
from funcgrad.errors import KeyArrayError, OutOfBoundsError
from funcgrad.higher_order.staging import located
from funcgrad.numpy import value_functions
from funcgrad.numpy.elementwise import equal, not_equal
from funcgrad.numpy.indexing import IndexUpdateRef, indexed
from funcgrad.numpy.writable import unwrapped_in
from funcgrad.primitives.objects import HoldsArray, StandsForArray, unwrapped
from funcgrad.primitives.random import UINT32, UINT64
from funcgrad.primitives.shape import shape_of
from funcgrad.random.generators import GENERATORS, THREEFRY, Generator

Function = Callable[..., Any]

_WORD = 0xFFFFFFFF
_NUMBERS = (np.ndarray, np.generic, Tracer, StandsForArray, *PYTHON_SCALARS)
_INSTEAD = (
    "New keys come from random.split and random.fold_in; random.key_data(keys) gives their words, "
    "an array of uint32."
)

_FIRST = (0,)
_BOTH = (0, 1)
_OPERANDS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            "array", "array_split", "asanyarray", "asarray", "ascontiguousarray", "atleast_1d",
            "atleast_2d", "atleast_3d", "block", "broadcast_arrays", "broadcast_to", "column_stack",
            "concatenate", "copy", "delete", "diag", "diagonal", "dsplit", "dstack", "empty_like",
            "expand_dims", "flip", "fliplr", "flipud", "hsplit", "hstack", "matrix_transpose",
            "moveaxis", "nan_to_num", "permute_dims", "ravel", "repeat", "reshape", "roll",
            "rollaxis", "rot90", "split", "squeeze", "stack", "swapaxes", "take", "take_along_axis",
            "tile", "transpose", "tril", "triu", "unstack", "vsplit", "vstack", "zeros_like",
            # of funcgrad.lax
            "broadcast", "broadcast_in_dim", "collapse", "dynamic_index_in_dim", "dynamic_slice",
            "dynamic_slice_in_dim", "gather", "index_in_dim", "index_take", "rev", "slice",
            "slice_in_dim",
        ),
        _FIRST,
    ),
    **dict.fromkeys(("append", "full_like"), _BOTH),
    **dict.fromkeys(("choose", "compress", "extract", "full"), (1,)),
    **dict.fromkeys(("insert",), (0, 2)),
    **dict.fromkeys(("select", "where"), (1, 2)),
    **dict.fromkeys(
        ("dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim"),
        _BOTH,
    ),
    "select_n": (1,),
}  # fmt: skip
"""Functions that take keys: the places of the parameters that are keys."""

_COMPARED = ("array_equal", "array_equiv", "eq", "equal", "isin", "ne", "not_equal")
_ANSWERS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_COMPARED, _BOTH),
    **dict.fromkeys(
        (
            "iscomplexobj", "isfinite", "isinf", "isnan", "isrealobj", "isscalar", "ndim", "shape",
            "size",
        ),
        _FIRST,
    ),
}  # fmt: skip
"""Likewise functions whose results are no keys."""


class KeyDtype(ExtendedDtype):
    """The dtype of keys of one generator.

    Args: generator: The generator.
    """

    __slots__ = ("generator", "itemsize", "n_parts", "name")
    type = prng_key
    base = UINT64

    def __init__(self, generator: Generator) -> None:
        self.generator = generator
        self.name = f"key<{generator.tag}>"
        self.itemsize = 4 * generator.width
        self.n_parts = generator.n_parts

    def holding(self, *arrays: Any) -> KeyArray:
        if len(arrays) != self.n_parts:
            raise located(KeyArrayError, f"keys of dtype {self} are not mapped here.", _INSTEAD)
        return KeyArray(arrays[0], self, arrays[1:])

    def __reduce__(self) -> Any:
        return key_dtype_of, (self.generator.name,)


_DTYPES = {name: KeyDtype(generator) for name, generator in GENERATORS.items()}
_DTYPES_BY_NAME = {dtype.name: dtype for dtype in _DTYPES.values()}
KEY = _DTYPES[THREEFRY.name]


def key_dtype_of(name: str) -> KeyDtype:
    """The dtype of keys of a generator.

    Args: name: Of the generator.
    """
    return _DTYPES[name]


class KeyArray(HoldsArray):
    """Random keys with a shape. They are not changed, and no numbers: nothing is computed of them.

    Args:
        base: The keys as integers of 64 bits: the first two words of each.
        dtype: Their dtype.
        rest: Arrays of the words that follow, two in each.
    """

    __slots__ = ("_base", "_rest", "dtype")
    __hash__: ClassVar[None]  # type: ignore[assignment]
    weak_type = False

    def __init__(self, base: Any, dtype: KeyDtype = KEY, rest: Sequence[Any] = ()) -> None:
        self._base = base
        self._rest = tuple(rest)
        self.dtype = dtype

    @property
    def base(self) -> Any:
        """The keys as integers of 64 bits: an array, a number or a traced value."""
        return self._base

    @property
    def parts(self) -> tuple[Any, ...]:
        """All integers of 64 bits that the keys are held as."""
        return self._base, *self._rest

    def each(self, function: Function) -> KeyArray:
        """Keys that are held as what a function gives for integers of 64 bits.

        Args: function: It moves elements.
        """
        return self.dtype.holding(*map(function, self.parts))

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def shape(self) -> Shape:
        return shape_of(self._base)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return ShapedArray(self.shape, UINT64).size

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __repr__(self) -> str:
        if isinstance(self._base, Tracer):
            return f"Traced<{self.aval_text}> in {self._base.owner.what}"
        if not isinstance(self._base, np.ndarray | np.generic):  # the type of one
            return f"KeyArray({self.aval_text})"
        return f"Array({self.shape}, dtype={self.dtype}) overlaying:\n{self.words}"

    @property
    def words(self) -> Any:
        """The words of the keys, along a new last axis."""
        width = self.dtype.generator.width
        return words_of_parts(self.parts, width)

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyArray, (self._base, self.dtype, self._rest)

    def __copy__(self) -> KeyArray:
        return self

    def __deepcopy__(self, memo: Any) -> KeyArray:
        return self

    # Elements.

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: this key array has no axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[KeyArray]:
        if not self.shape:
            raise TypeError(
                "iteration over a 0-d key array: a key has no elements. random.split(key) gives "
                "two keys, random.key_data(key) its two words."
            )
        return (self[i] for i in range(self.shape[0]))

    def __getitem__(self, index: Any) -> KeyArray:
        if not self.shape and isinstance(index, int | slice):
            raise IndexError(
                f"too many indices: a key, {self.aval_text}, has no axes. random.key_data(key) "
                "gives its words, and random.PRNGKey(seed) makes keys that are arrays of words."
            )
        place = unwrapped_in(index)
        try:
            return self.each(lambda part: indexed(_array(part), place))
        except OutOfBoundsError as error:
            shown = str(aval_of(_array(self._base)))
            error.args = (str(error).replace(shown, self.aval_text, 1),)
            raise

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError("keys are not changed in place: write keys = keys.at[index].set(key).")

    @property
    def at(self) -> _Places:
        """``keys.at[index].set(key)`` and ``keys.at[index].get()``."""
        return _Places(self)

    # Shape.

    @property
    def T(self) -> KeyArray:
        return self.transpose()

    @property
    def mT(self) -> KeyArray:
        return self._by("matrix_transpose")

    def reshape(self, *shape: Any, order: str = "C") -> KeyArray:
        return self._by("reshape", shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> KeyArray:
        return self._by("transpose", (axes[0] if len(axes) == 1 else axes) or None)

    def ravel(self, order: str = "C") -> KeyArray:
        return self._by("ravel", order=order)

    def flatten(self, order: str = "C") -> KeyArray:
        return self._by("ravel", order=order)

    def squeeze(self, axis: Any = None) -> KeyArray:
        return self._by("squeeze", axis)

    def swapaxes(self, axis1: int, axis2: int) -> KeyArray:
        return self._by("swapaxes", axis1, axis2)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> KeyArray:
        return self._by("diagonal", offset, axis1, axis2)

    def repeat(self, repeats: Any, axis: int | None = None, **options: Any) -> KeyArray:
        return self._by("repeat", repeats, axis, **options)

    def take(self, indices: Any, axis: int | None = None, **options: Any) -> KeyArray:
        return self._by("take", indices, axis, **options)

    def copy(self, order: str = "C") -> KeyArray:
        return self._by("copy", order)

    def _by(self, name: str, *args: Any, **kwargs: Any) -> KeyArray:
        return self.answer(value_functions[name], (self, *args), kwargs)

    def astype(self, dtype: Any, **options: Any) -> KeyArray:
        if dtype is self.dtype:
            return self
        raise self.refusal("astype")

    def block_until_ready(self) -> KeyArray:
        """The keys: they are there."""
        return self

    def copy_to_host_async(self) -> None:
        """Nothing: the keys are on the host."""

    def is_deleted(self) -> bool:
        """Whether the memory was given away, which never happens."""
        return False

    # Comparison.

    def __eq__(self, other: Any) -> Any:
        return self._compared(equal, other)

    def __ne__(self, other: Any) -> Any:
        return self._compared(not_equal, other)

    def _compared(self, comparison: Function, other: Any) -> Any:
        if isinstance(other, KeyArray) and other.dtype is self.dtype:
            found = list(map(comparison, self.parts, other.parts))
            return _together(comparison.__name__, found)
        if isinstance(other, KeyArray):
            raise self.mixed("a comparison")
        if isinstance(other, _NUMBERS):
            raise self.mixed("a comparison")
        return NotImplemented

    # Conversions to numbers.

    def refusal(self, what: str) -> KeyArrayError:
        """The error for what is not defined of keys."""
        return self._error(f"{what} needs numbers, but got random keys, {self.aval_text}.")

    def mixed(self, what: str) -> KeyArrayError:
        """The error for what takes keys, but no other values beside them."""
        return self._error(f"{what}: random keys, {self.aval_text}, met values that are no keys.")

    def _error(self, problem: str) -> KeyArrayError:
        return located(lambda text: KeyArrayError(text, self), problem, _INSTEAD)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise self._error(f"an ndarray holds numbers, but these are random keys, {self.aval_text}.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            raise self.refusal(f"numpy.{ufunc.__name__}.{method}")
        return self.answer(ufunc, inputs, kwargs)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return self.answer(function, args, kwargs)

    def __bool__(self) -> NoReturn:
        raise self.refusal("bool()")

    def answer(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Result of a function for arguments among which there are keys.

        Args:
            function: It was called, and asked for numbers; one of NumPy's stands for ours.
            args: Its arguments.
            kwargs: Its keyword arguments.
        Raises: KeyArrayError: If it is not defined of keys.
        """
        name = function.__name__
        places = _OPERANDS.get(name) or _ANSWERS.get(name)
        if places is None:
            raise self.refusal(name) from None
        if not getattr(function, "__module__", "").startswith("funcgrad"):
            function = value_functions[name]
        bound = signature_of(function).bind(*args, **kwargs)
        given = dict(bound.arguments)
        parameters = list(enumerate(signature_of(function).parameters))
        if given.get("dtype") not in (None, self.dtype):
            raise self.refusal(f"{name} with dtype={given['dtype']}") from None
        parts = []
        for i in range(self.dtype.n_parts):
            for place, parameter in parameters:
                if parameter in given:
                    x = given[parameter]
                    found = self._integers(x, name, i) if place in places else _other(x)
                    bound.arguments[parameter] = found
            parts.append(function(*bound.args, **bound.kwargs))
        return _as_keys(self.dtype, parts) if name in _OPERANDS else _together(name, parts)

    def _integers(self, given: Any, name: str, part: int) -> Any:
        """The integers of keys, also inside of lists and tuples."""
        if isinstance(given, list | tuple):
            return type(given)(self._integers(x, name, part) for x in given)
        if isinstance(given, KeyArray) and given.dtype is self.dtype:
            return given.parts[part]
        raise self.mixed(name) from None


def _other(given: Any) -> Any:
    """Argument for a parameter that is no keys."""
    return UINT64 if isinstance(given, KeyDtype) else unwrapped_in(given)


def _as_keys(dtype: KeyDtype, parts: Sequence[Any]) -> Any:
    """Results that are integers of 64 bits as keys."""
    if isinstance(parts[0], list | tuple):
        return type(parts[0])(_as_keys(dtype, row) for row in zip(*parts, strict=True))
    return _holding(dtype.name, parts)


_DIFFER = ("ne", "not_equal")


def _together(name: str, answers: Sequence[Any]) -> Any:
    """The answer for keys of those for their integers."""
    found, *others = answers
    if others and name == "isin":
        raise located(KeyArrayError, "isin is not defined of keys of four words.", _INSTEAD)
    join = np.logical_or if name in _DIFFER else np.logical_and
    for other in others if name in _COMPARED else ():
        found = join(found, other)
    return found


def _array(base: Any) -> Any:
    return np.asarray(base) if isinstance(base, np.generic) else base


_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SIGNS = {"neg": "-", "pos": "+", "invert": "~", "abs": "abs()"}


def _refusing(symbol: str) -> Function:
    def refuse(self: KeyArray, *others: Any) -> NoReturn:
        raise self.refusal(f"`{symbol}`")

    return refuse


for _name, _symbol in (_OPERATORS | _COMPARISONS | _SIGNS).items():
    setattr(KeyArray, f"__{_name}__", _refusing(_symbol))
for _name, _symbol in _OPERATORS.items():
    setattr(KeyArray, f"__r{_name}__", _refusing(_symbol))
KeyArray.__hash__ = None


class _Places:
    """``keys.at``."""

    __slots__ = ("_index", "_keys")

    def __init__(self, keys: KeyArray, index: Any = None) -> None:
        self._keys = keys
        self._index = index

    def __getitem__(self, index: Any) -> _Places:
        return _Places(self._keys, unwrapped_in(index))

    def _ref(self, part: Any) -> IndexUpdateRef:
        return IndexUpdateRef(_array(part), self._index)

    def get(self, **options: Any) -> KeyArray:
        """The keys at the index."""
        return self._keys.each(lambda part: self._ref(part).get(**options))

    def set(self, values: Any, **options: Any) -> KeyArray:
        """All keys, with others at the index."""
        if not isinstance(values, KeyArray) or values.dtype is not self._keys.dtype:
            raise self._keys.mixed("at[...].set")
        pairs = zip(self._keys.parts, values.parts, strict=True)
        return self._keys.dtype.holding(*[self._ref(x).set(y, **options) for x, y in pairs])

    def __getattr__(self, name: str) -> Any:
        if name in ("add", "apply", "divide", "max", "min", "mul", "multiply", "power", "subtract"):
            raise self._keys.refusal(f"at[...].{name}")
        raise AttributeError(name)


def words_of_parts(parts: Sequence[Any], width: int) -> Any:
    """Keys as words, along a new last axis.

    Args:
        parts: The integers of 64 bits that they are held as.
        width: Words of a key.
    """
    found = [words_of_keys(part) for part in parts]
    if len(found) > 1:
        return lax.concatenate(found, found[0].ndim - 1)
    return found[0][..., -width:]


def words_of_keys(base: Any) -> Any:
    """Integers of 64 bits as two words each, along a new last axis.

    Args: base: The integers.
    """
    if isinstance(base, np.ndarray | np.generic):
        known: np.ndarray = np.asarray(base)
        return np.stack([known >> UINT64.type(32), known & UINT64.type(_WORD)], -1).astype(UINT32)
    high = lax.convert_element_type(lax.shift_right_logical(base, 32), UINT32)
    return lax.stack([high, lax.convert_element_type(base, UINT32)], axis=-1)


def _held(keys: KeyArray) -> tuple[tuple[Any, ...], str]:
    # A number would have another signature than an array, and programs a trace for each.
    return tuple([x if type(x) is np.ndarray else _array(unwrapped(x)) for x in keys.parts]), (
        keys.dtype.name
    )


def _holding(name: str, parts: Sequence[Any]) -> Any:
    is_keys = all(
        not isinstance(x, KeyArray) and getattr(x, "dtype", None) == UINT64 for x in parts
    )
    return _DTYPES_BY_NAME[name].holding(*map(unwrapped, parts)) if is_keys else parts[0]


register_holder(KeyArray, _held, _holding)
