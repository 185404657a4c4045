"""JAX's x64 switch, its choice of a generator of random bits, and floats of 16 bits.

The switch is off at first: no array of a program has more than 32 bits. What a program hands over,
and what it gets, is narrowed: arrays by `adopt`, traced values by a conversion, and dtypes that
nobody asked for, by the dialect. Within the library numbers may have 64 bits, as indices and the
words of random keys have. The switch belongs to the process, and a block to its thread and context.

Floats of 16 bits are stored: functions compute in float32, and what they give is stored as their
arguments are. Traced values have float32; those that a compiled function converts to 16 bits and
gives are stored so.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any

import numpy as np

from funcgrad.api.arguments import name_of
from funcgrad.api.staging import ShapeDtypeStruct
from funcgrad.base.dialect import NARROWER, NUMPY, Dialect
from funcgrad.base.imports import load
from funcgrad.base.pytree import register_pytree_node, tree_map
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import INT64
from funcgrad.primitives.elementwise import Convert

ml_dtypes: Any = load("ml_dtypes") if find_spec("ml_dtypes") else None

FLOAT32 = np.dtype(np.float32)
HALVES = {
    np.dtype(kind): FLOAT32
    for kind in (np.float16, getattr(ml_dtypes, "bfloat16", None))
    if kind is not None
}
"""Dtypes that are stored, and the one that is computed in."""


def narrow(x: Any) -> Any:
    """A value with at most 32 bits: an array, a traced value, a type, or a tuple of them.

    Numbers of Python's are weak, and stay what they are.
    """
    return _converted(x, NARROWER)


def computed(x: Any) -> Any:
    """A value in a dtype that is computed in."""
    return _converted(x, rules().dtypes)


def computed_dtype(x: Any) -> Any:
    """The dtype that is computed in, of one that is named; anything else as it is."""
    if not isinstance(x, np.dtype | type | str):
        return x
    dtype = getattr(x, "dtype", None)
    return FLOAT32 if (dtype if isinstance(dtype, np.dtype) else x) in _DTYPES else x


def _converted(x: Any, dtypes: Mapping[Any, np.dtype[Any]]) -> Any:
    if type(x) is tuple:
        return tuple(_converted(part, dtypes) for part in x)
    dtype = getattr(x, "dtype", None)
    if not isinstance(dtype, np.dtype) or (dtype := dtypes.get(dtype)) is None:
        return x
    if isinstance(x, Tracer):
        return x if x.aval.weak_type else Convert(dtype).bind(x)
    if isinstance(x, np.ndarray | np.generic):
        with np.errstate(over="ignore"):
            return np.asarray(x).astype(dtype)[()] if isinstance(x, np.generic) else _as(x, dtype)
    if isinstance(x, ShapeDtypeStruct):
        return ShapeDtypeStruct(x.shape, dtype, weak_type=x.weak_type)
    return x


def _as(x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    made = np.asarray(x).astype(dtype).view(type(x))
    if getattr(x, "weak_type", False):
        made.weak_type = True  # type: ignore[attr-defined]
    return made


def narrow_weak(x: Any) -> Any:
    """Narrow as `narrow` does, also traced floats that are weak: programs ask for their eps.

    Weak values have 64 bits everywhere in the library, so these are no longer weak. Integers stay
    so: they are what is added to floats, where promotion is strict.
    """
    if isinstance(x, Tracer) and x.aval.weak_type:
        if x.aval.dtype.kind in "fc":
            return Convert(NARROWER.get(x.aval.dtype, x.aval.dtype)).bind(x)
        return x if x.aval.dtype in NARROWER else Convert(INT64, weak=True).bind(x)
    return narrow(x)


def stored(values: Iterable[Any]) -> np.dtype[Any] | None:
    """The dtype of 16 bits in which a function stores what it computes of its arguments.

    It is the dtype that they name; or else that of all floating arrays and NumPy's numbers among
    them, but for weak ones.

    Args:
        values: The arguments.
    """
    held: set[Any] = set()
    for x in (part for v in values for part in (v if isinstance(v, tuple | list) else (v,))):
        dtype = getattr(x, "dtype", None)
        if isinstance(x, np.dtype | type | str):
            asked = _DTYPES.get(dtype if isinstance(dtype, np.dtype) else x)
            if asked is not None or isinstance(x, np.dtype | type):
                return asked
        elif isinstance(x, np.ndarray | np.generic | Tracer) and not _is_weak(x):
            held.add(None if dtype is None or dtype.kind in "biu" else dtype)
    held.discard(None)
    return held.pop() if len(held) == 1 and held <= HALVES.keys() else None


def _is_weak(x: Any) -> bool:
    return bool(x.aval.weak_type if isinstance(x, Tracer) else getattr(x, "weak_type", False))


_DTYPES: dict[Any, np.dtype[Any]] = {
    name: dtype for dtype in HALVES for name in (dtype, dtype.type, dtype.name)
}


def stored_as(value: Any, dtype: np.dtype[Any]) -> Any:
    """Results with floats of 16 bits for others."""
    if isinstance(value, tuple | list):
        parts = [stored_as(x, dtype) for x in value]
        return type(value)._make(parts) if hasattr(value, "_make") else type(value)(parts)
    if isinstance(value, Tracer):
        return _noted(value, dtype) if value.aval.dtype.kind == "f" else value
    is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return np.ndarray.astype(value, dtype) if is_array else value


JAX_64 = Dialect("jax", HALVES, computed)
JAX_32 = Dialect("jax", HALVES | NARROWER, computed)


JAX_32.places = JAX_64.places = np.dtype(np.int32)


class _Switch:
    """The switches of the process.

    Attributes:
        is_on: Whether there are 64 bits.
        generator: The generator of random bits.
        checks_places: Whether known indices out of bounds raise.
    """

    __slots__ = ("checks_places", "generator", "is_on")

    def __init__(self) -> None:
        self.is_on = False
        self.checks_places = False
        self.generator = NUMPY.generator


SWITCH = _Switch()
_chosen: ContextVar[bool | None] = ContextVar("funcgrad_jax_x64", default=None)
_generator: ContextVar[str | None] = ContextVar("funcgrad_jax_generator", default=None)


def is_x64() -> bool:
    """Whether there are 64 bits, in this thread and context."""
    chosen = _chosen.get()
    return SWITCH.is_on if chosen is None else chosen


def rules() -> Dialect:
    """The rules that functions of the package follow."""
    dialect = JAX_64 if is_x64() else JAX_32
    generator = generator_name()
    if generator == dialect.generator and not SWITCH.checks_places:
        return dialect
    return _chosen_rules(dialect, generator, SWITCH.checks_places)


def generator_name() -> str:
    """The generator of random bits, in this thread and context."""
    return _generator.get() or SWITCH.generator


@functools.cache
def _chosen_rules(dialect: Dialect, generator: str, checks_places: bool) -> Dialect:
    """The same rules with what is chosen otherwise."""
    made = copy.copy(dialect)
    made.generator, made.checks_places = generator, checks_places
    return made


class Half:
    """A result that is stored in 16 bits: a node of a tree, which makes it so when it is built.

    Args:
        value: The array.
        dtype: That it is stored in.
    """

    __slots__ = ("dtype", "value")

    def __init__(self, value: Any, dtype: np.dtype[Any]) -> None:
        self.value = value
        self.dtype = dtype


class _OfStructs(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, ShapeDtypeStruct)


class Struct(ShapeDtypeStruct, metaclass=_OfStructs):
    """`funcgrad.ShapeDtypeStruct`, also of arrays that are stored in 16 bits.

    Args:
        shape: Tuple of ints.
        dtype: Anything that names a dtype.
        **options: Those of `funcgrad.ShapeDtypeStruct`.
    """

    __slots__ = ()

    def __init__(self, shape: Sequence[int], dtype: Any, **options: Any) -> None:
        half = stored((dtype,))
        super().__init__(shape, dtype if half is None else FLOAT32, **options)
        if half is not None:
            self.dtype = half


def _built(dtype: np.dtype[Any], parts: Sequence[Any]) -> Any:
    (x,) = parts
    if isinstance(x, Tracer):
        return _noted(x, dtype)
    return Struct(x.shape, dtype) if isinstance(x, ShapeDtypeStruct) else stored_as(x, dtype)


register_pytree_node(Half, lambda x: ((x.value,), x.dtype), _built)

_halves: ContextVar[list[tuple[Any, np.dtype[Any]]] | None] = ContextVar(
    "funcgrad_jax_halves", default=None
)
"""Traced arrays of the function around that were converted to 16 bits, and their dtypes."""


def _noted(x: Any, dtype: np.dtype[Any]) -> Any:
    """Note that a traced array is of 16 bits, if it is; an array that nothing else is."""
    noted = _halves.get()
    if noted is None or dtype not in HALVES:
        return x
    noted.append((x := Convert(x.dtype).bind(x), dtype))
    return x


JAX_32.converted = JAX_64.converted = _noted


def giving_halves(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function to be traced, with a `Half` for each result that it has converted to 16 bits."""

    def traced(*args: Any, **kwargs: Any) -> Any:
        token = _halves.set([])
        try:
            found, noted = fun(*args, **kwargs), _halves.get() or []
        finally:
            _halves.reset(token)
        halves = {id(x): dtype for x, dtype in noted}
        if not halves:
            return found
        return tree_map(lambda x: Half(x, halves[id(x)]) if id(x) in halves else x, found)

    functools.update_wrapper(traced, fun)
    return traced


def in_few_bits(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose traced arguments have the bits that there are, also Python's numbers."""

    def traced(*args: Any, **kwargs: Any) -> Any:
        if not is_x64():
            args, kwargs = tree_map(narrow_weak, (args, kwargs))
        return fun(*args, **kwargs)

    functools.update_wrapper(traced, fun, ("__module__", "__doc__"))
    traced.__name__ = name_of(fun)
    qualified = getattr(fun, "__qualname__", None)
    traced.__qualname__ = qualified if isinstance(qualified, str) else traced.__name__
    return traced


@contextmanager
def enable_x64(new_val: bool = True) -> Iterator[None]:
    """A block with 64 bits, or without.

    Args:
        new_val: Whether with.
    """
    token = _chosen.set(bool(new_val))
    try:
        yield
    finally:
        _chosen.reset(token)


@contextmanager
def default_prng_impl(new_val: str) -> Iterator[None]:
    """A block in which keys belong to another generator of random bits.

    Args:
        new_val: Its name.
    """
    token = _generator.set(new_val)
    try:
        yield
    finally:
        _generator.reset(token)


@contextmanager
def disable_x64() -> Iterator[None]:
    """A block without 64 bits."""
    with enable_x64(False):
        yield


def canonical(dtype: Any) -> Any:
    """A dtype, in the bits that there are."""
    return dtype if is_x64() else NARROWER.get(dtype, dtype)
