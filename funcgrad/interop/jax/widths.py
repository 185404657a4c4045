"""JAX's x64 switch, its choice of a generator of random bits, and floats of 16 bits.

The switch is off at first: no array of a program has more than 32 bits. What a program hands over,
and what it gets, is narrowed: arrays by `adopt`, traced values by a conversion, and dtypes that
nobody asked for, by the dialect. Within the library numbers may have 64 bits, as indices and the
words of random keys have. The switch belongs to the process, and a block to its thread and context.

Floats of 16 bits are stored: functions compute in float32, and what they give is stored as their
arguments are. Traced values have float32; those that a compiled function converts to 16 bits, or
takes so, and what it computes of them and of numbers alone, are stored so if it gives them.
"""

from __future__ import annotations

import copy
import functools
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any

import numpy as np

from funcgrad.api.arguments import name_of
from funcgrad.api.staging import ShapeDtypeStruct
from funcgrad.base.dialect import NARROWER, NUMPY, Dialect
from funcgrad.base.imports import load
from funcgrad.base.pytree import (
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from funcgrad.core.facets import Facet
from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.dtypes import INT64
from funcgrad.primitives.elementwise import Convert
from funcgrad.transforms.stage import StageTrace, StageTracer

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
    """A value in a dtype that is computed in; what it was stored in is known where it is traced."""
    around = _halves.get()
    if around is not None and current_trace() is around.trace:
        x = around.opened(x)
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

    Args: values: The arguments.
    """
    held: set[Any] = set()
    for x in (part for v in values for part in (v if isinstance(v, tuple | list) else (v,))):
        dtype = getattr(x, "dtype", None)
        if isinstance(x, np.dtype | type | str):
            asked = _DTYPES.get(dtype if isinstance(dtype, np.dtype) else x)
            if asked is not None or isinstance(x, np.dtype | type):
                return asked
        elif isinstance(x, np.ndarray | np.generic | Tracer) and not _is_weak(x):
            held.add(None if dtype is None or dtype.kind in "biu" else half_of(x) or dtype)
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
        is_other = value.aval.dtype.kind == "f" and half_of(value) != dtype
        return _noted(value, dtype) if is_other else value
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
        is_partitionable: Whether random numbers do not depend on how many are drawn.
        checks_places: Whether known indices out of bounds raise.
    """

    __slots__ = ("checks_places", "generator", "is_on", "is_partitionable")

    def __init__(self) -> None:
        self.is_on = False
        self.checks_places = False
        self.generator = NUMPY.generator
        self.is_partitionable = True


SWITCH = _Switch()
_chosen: ContextVar[bool | None] = ContextVar("funcgrad_jax_x64", default=None)
_generator: ContextVar[str | None] = ContextVar("funcgrad_jax_generator", default=None)
_partitionable: ContextVar[bool | None] = ContextVar("funcgrad_jax_partitionable", default=None)


def is_x64() -> bool:
    """Whether there are 64 bits, in this thread and context."""
    chosen = _chosen.get()
    return SWITCH.is_on if chosen is None else chosen


def rules() -> Dialect:
    """The rules that functions of the package follow."""
    dialect = JAX_64 if is_x64() else JAX_32
    generator = generator_name()
    is_usual = generator == dialect.generator and not SWITCH.checks_places
    if is_usual and is_partitionable():
        return dialect
    return _chosen_rules(dialect, generator, SWITCH.checks_places, is_partitionable())


def generator_name() -> str:
    """The generator of random bits, in this thread and context."""
    return _generator.get() or SWITCH.generator


def is_partitionable() -> bool:
    """Whether random numbers do not depend on how many are drawn, in this thread and context."""
    chosen = _partitionable.get()
    return SWITCH.is_partitionable if chosen is None else chosen


@functools.cache
def _chosen_rules(
    dialect: Dialect, generator: str, checks_places: bool, partitionable: bool
) -> Dialect:
    """The same rules with what is chosen otherwise."""
    made = copy.copy(dialect)
    made.generator, made.checks_places = generator, checks_places
    made.is_partitionable = partitionable
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
        shape: Tuple of ints, or of what a library has in place of such.
        dtype: Anything that names a dtype.
        **options: Those of `funcgrad.ShapeDtypeStruct`.
    """

    __slots__ = ()

    def __init__(self, shape: Sequence[Any], dtype: Any, **options: Any) -> None:
        half = stored((dtype,))
        super().__init__((), dtype if half is None else FLOAT32, **options)
        self.shape = tuple(int(n) if hasattr(n, "__index__") else n for n in shape)
        if half is not None:
            self.dtype = half


def _built(dtype: np.dtype[Any], parts: Sequence[Any]) -> Any:
    (x,) = parts
    if isinstance(x, Tracer):
        return _noted(x, dtype)
    return Struct(x.shape, dtype) if isinstance(x, ShapeDtypeStruct) else stored_as(x, dtype)


register_pytree_node(Half, lambda x: ((x.value,), x.dtype), _built)


class Given(Half):
    """An argument of a compiled function that is stored in 16 bits: a node of a tree."""

    __slots__ = ()


register_pytree_node(Given, lambda x: ((x.value,), x.dtype), lambda dtype, x: Given(x[0], dtype))


def given_halves(arguments: Any) -> Any:
    """Arguments of a function that is compiled, with a `Given` for each of 16 bits."""
    if all(half_of(x) is None for x in tree_leaves(arguments)):
        return arguments
    return tree_map(
        lambda x: x if (half := half_of(x)) is None else Given(_converted(x, HALVES), half),
        arguments,
    )


def half_of(x: Any) -> np.dtype[Any] | None:
    """The dtype of 16 bits in which an array, a traced one or a type is stored, if it is."""
    if isinstance(x, StageTracer):
        around = _halves.get()
        dtype = around.half_of(x) if around is not None and around.known else None
    else:
        dtype = x.dtype if isinstance(x, np.ndarray | Struct) else None
    return dtype if dtype in HALVES else None


def gradients_stored(gradients: Any, primals: Any) -> Any:
    """Gradients, of which those of arrays that are stored in 16 bits are so, too."""
    halves, around = list(map(half_of, tree_leaves(primals))), _halves.get()
    if not any(halves) and (around is None or not around.known):
        return gradients
    leaves, treedef = tree_flatten(gradients)
    made = [
        stored_as(g, h) if h is not None else _noted(g, g.dtype) if isinstance(g, Tracer) else g
        for g, h in zip(leaves, halves, strict=True)
    ]
    return tree_unflatten(treedef, made)


def _is_given(x: Any) -> bool:
    return type(x) is Given


_NUMBER = object()
"""Mark of an array that was a weak number: it takes the kind of the array beside it."""


class _Conversions:
    """Conversions to 16 bits in a program under construction.

    Attributes:
        known: The dtypes of 16 bits by names in the program; ``None`` for another dtype.
        done: How many equations were looked at.
    """

    def __init__(self, trace: StageTrace) -> None:
        self.trace = trace
        self.known: dict[Atom, Any] = {}
        self.done = 0

    def converted(self, x: Any, dtype: np.dtype[Any] | None) -> Any:
        """An array that nothing else is, of a dtype of 16 bits, or of none."""
        equations = self.trace.equations
        start = len(equations)
        x = Convert(x.dtype).bind(x)
        self.known.update((e.outputs[0], dtype) for e in equations[start:])
        if isinstance(x, StageTracer):  # of a program within the one under construction
            self.known[x.atom] = dtype
        return x

    def opened(self, x: Any) -> Any:
        """An argument or a constant, of which it is known if it is stored in 16 bits."""
        if isinstance(x, np.ndarray) and x.dtype in HALVES:
            x = Given(_converted(x, HALVES), x.dtype)
        return self.converted(x.value, x.dtype) if _is_given(x) else x

    def half_of(self, x: StageTracer) -> Any:
        """Dtype of a traced array, as far as it is known: 16 bits of what is computed of such."""
        equations = self.trace.equations
        self._follow(equations[self.done :], self.known)
        self.done = len(equations)
        return self.known.get(x.atom)

    def _follow(self, equations: Iterable[Equation], known: MutableMapping[Atom, Any]) -> None:
        """Find the dtypes of what equations give, one after another."""
        for equation in equations:
            outputs = equation.outputs
            if not outputs or outputs[0] in known:
                continue
            primitive, inputs = equation.primitive, equation.inputs
            if isinstance(primitive, Convert) and inputs[0].aval.weak_type:
                known[outputs[0]] = _NUMBER
                continue
            programs = _programs_of(equation)
            if programs:
                found = self._through(programs, equation, known)
            else:
                floats = [x for x in inputs if x.aval.dtype.kind == "f"]
                kinds = {_kind_of(x, known) for x in floats} - {_NUMBER}
                found = list(kinds) * len(outputs) if len(kinds) == 1 else []
            pairs = [(y, k) for y, k in zip(outputs, found, strict=False) if k is not None]
            known.update((y, kind) for y, kind in pairs if y.aval.dtype == FLOAT32)

    def _through(
        self, programs: Sequence[Program], equation: Equation, known: Mapping[Atom, Any]
    ) -> list[Any]:
        """Dtypes of what programs within an equation give: loops carry what they are given."""
        given = [_kind_of(x, known) for x in equation.inputs]
        places = carried(equation.primitive)
        kept = [] if places is None else given[places]
        found = []
        for program in programs:
            last = given[len(given) - len(program.inputs) :]  # after what conditions take
            of_inputs: dict[Atom, Any] = dict(zip(program.inputs, last, strict=True))
            inner = ChainMap(of_inputs, self.known)
            self._follow(program.equations, inner)
            found.append([_kind_of(y, inner) for y in program.outputs])
        sets = [HALVES.keys() & kinds for kinds in zip(*found, strict=True)]  # branches agree
        agreed = [kinds.pop() if len(kinds) == 1 else None for kinds in sets]
        return [
            *(a if k is _NUMBER else k for a, k in zip(agreed, kept, strict=False)),
            *agreed[len(kept) :],
        ]


def _kind_of(x: Atom, known: Mapping[Atom, Any]) -> Any:
    """The dtype of 16 bits of a name, `None` for another one, or the mark of a number."""
    if isinstance(x, Var):
        return _NUMBER if x.aval.weak_type else known.get(x)
    return None if isinstance(x.value, np.ndarray) and not x.aval.weak_type else _NUMBER


def _programs_of(equation: Equation) -> list[Program]:
    """The programs of an operation that give its results of the last of its arguments."""
    values = equation.primitive.params().values()
    parts = [part for v in values for part in (v if isinstance(v, tuple) else (v,))]
    return [
        part
        for part in parts
        if isinstance(part, Program)
        and len(part.outputs) == len(equation.outputs)
        and len(part.inputs) <= len(equation.inputs)
    ]


carried: Facet[slice | None] = Facet("carried", None)
"""The arguments that a loop carries: its first results are their last values."""

_halves: ContextVar[_Conversions | None] = ContextVar("funcgrad_jax_halves", default=None)
"""Conversions of the function around, while it is traced."""


def _noted(x: Any, dtype: np.dtype[Any]) -> Any:
    """Note which dtype a traced array was converted to; an array that nothing else is."""
    around = _halves.get()
    is_half = dtype in HALVES
    if around is None or not (is_half or (around.known and dtype == x.dtype)):
        return x
    return around.converted(x, dtype if is_half else None)


JAX_32.converted = JAX_64.converted = _noted


def giving_halves(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function to be traced, with a `Half` for each result of 16 bits.

    Such are arrays that it takes so or converts, and what is computed of them and of numbers alone.
    """

    def traced(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if not isinstance(trace, StageTrace):  # it is not compiled
            args, kwargs = tree_map(
                lambda x: stored_as(x.value, x.dtype) if _is_given(x) else x,
                (args, kwargs),
                is_leaf=_is_given,
            )
            return fun(*args, **kwargs)
        conversions = _Conversions(trace)
        token = _halves.set(conversions)
        try:
            args, kwargs = tree_map(conversions.opened, (args, kwargs), is_leaf=_is_given)
            found = fun(*args, **kwargs)
        finally:
            _halves.reset(token)
        # A tree is not built again without need: some nodes say then where arrays lie.
        if not conversions.known and not any(map(half_of, tree_leaves(found))):
            return found

        def marked(x: Any) -> Any:
            x = conversions.opened(x)
            half = conversions.half_of(x) if isinstance(x, StageTracer) else None
            return Half(x, half) if half in HALVES else x

        return tree_map(marked, found)

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

    Args: new_val: Whether with.
    """
    token = _chosen.set(bool(new_val))
    try:
        yield
    finally:
        _chosen.reset(token)


@contextmanager
def default_prng_impl(new_val: str) -> Iterator[None]:
    """A block in which keys belong to another generator of random bits.

    Args: new_val: Its name.
    """
    token = _generator.set(new_val)
    try:
        yield
    finally:
        _generator.reset(token)


@contextmanager
def threefry_partitionable(new_val: bool = True) -> Iterator[None]:
    """A block in which random numbers do not depend on how many are drawn, or do.

    Args: new_val: Whether they do not.
    """
    token = _partitionable.set(bool(new_val))
    try:
        yield
    finally:
        _partitionable.reset(token)


@contextmanager
def disable_x64() -> Iterator[None]:
    """A block without 64 bits."""
    with enable_x64(False):
        yield


def canonical(dtype: Any) -> Any:
    """A dtype, in the bits that there are."""
    return dtype if is_x64() else NARROWER.get(dtype, dtype)
