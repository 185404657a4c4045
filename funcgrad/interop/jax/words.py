"""Functions of the package ``jax`` that funcgrad says otherwise, or not at all."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad import dtypes, lax, numpy, random, ref, sharding
from funcgrad.api import differentiation, settings, staging, vectorization
from funcgrad.base import imports
from funcgrad.base.pytree import broadcast_prefix, tree_leaves, tree_map
from funcgrad.base.records import dataclass
from funcgrad.checkpoint_policies import save_only_these_names
from funcgrad.core.axes import tracked_axes
from funcgrad.core.trace import EVAL, Trace, Tracer, current_trace, using_trace
from funcgrad.distributed.processes import world
from funcgrad.dtypes import UINT64, float0, weak_representative
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.mesh_lanes import declaring_kinds, lane_type
from funcgrad.interop.jax.arrays import Adopted, Array, adopt, weak_array, weak_number, weakly
from funcgrad.interop.jax.devices import DEVICES
from funcgrad.interop.jax.jitting import AdoptedJit, JittedOfArrays
from funcgrad.interop.jax.places import place_of
from funcgrad.interop.jax.placing import keeping_places, placing_gradients, placing_lanes
from funcgrad.interop.jax.random_keys import check_fits, filled
from funcgrad.interop.jax.vmappables import mapping_by_rules
from funcgrad.interop.jax.widths import (
    SWITCH,
    Struct,
    canonical,
    computed,
    generator_name,
    given_halves,
    giving_halves,
    in_few_bits,
    is_partitionable,
    is_x64,
    ml_dtypes,
    narrow,
    narrow_weak,
)
from funcgrad.primitives.objects import HoldsArray
from funcgrad.random.key_arrays import KeyDtype


class Ref(ref.Ref):
    """A reference of which arrays of the package ``jax`` are read.

    Attributes:
        sharding: Where the array lies, if that is known.
    """

    __slots__ = ("sharding",)
    sharding: Any

    def __getitem__(self, index: Any) -> Any:
        return adopt(super().__getitem__(index))


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> ref.Ref:
    """A reference to a new array."""
    made = ref.new_ref(init_val, memory_space=memory_space, kind=kind)
    if isinstance(made, ref.KeyRef):
        return made
    of_arrays = Ref(made.content() if is_x64() else narrow(made.content()))
    of_arrays.sharding = place_of(init_val)
    return of_arrays


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to an array of zeros."""
    return Ref(ref.empty_ref(ty, memory_space).content())


def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: Any = (),
    axis_size: int | None = None,
    donate_argnums: Any = (),
    **options: Any,
) -> Any:
    """`jit` of `vmap`: processes, or one processor, compute what would be divided among devices.

    Args:
        fun: The function.
        axis_name: A name for the mapped axis.
        in_axes: As in `vmap`.
        out_axes: As in `vmap`.
        static_broadcasted_argnums: Positions of arguments that are no arrays.
        axis_size: As in `vmap`.
        donate_argnums: As in `jit`.
        **options: About devices; they are ignored.
    """
    given = static_broadcasted_argnums
    static = {given} if isinstance(given, int) else set(given or ())

    def mapped(*args: Any, **kwargs: Any) -> Any:
        places = [i for i in range(len(args)) if i not in static]

        def of_arrays(*arrays: Any, **kwargs: Any) -> Any:
            full = list(args)
            for i, array in zip(places, arrays, strict=True):
                full[i] = array
            return fun(*full, **kwargs)

        axes = tuple(in_axes[i] for i in places) if isinstance(in_axes, tuple) else in_axes
        arrays = [args[i] for i in places]
        if world() is not None:
            return _over_ranks(of_arrays, axes, out_axes, axis_name, axis_size)(*arrays, **kwargs)
        over = vectorization.vmap(of_arrays, axes, out_axes, axis_name, axis_size)
        return over(*arrays, **kwargs)

    functools.update_wrapper(mapped, fun)
    return jit(mapped, static_argnums=tuple(static), donate_argnums=donate_argnums)


def _over_ranks(
    f: Callable[..., Any], in_axes: Any, out_axes: Any, name: Any, size: int | None
) -> Callable[..., Any]:
    """`vmap` along an axis of a mesh, whose lanes the processes share out."""
    label = "lanes" if name is None else name

    def is_none(x: Any) -> bool:
        return x is None

    def specs(axes: Any) -> Any:
        def spec(axis: int | None) -> sharding.PartitionSpec:
            return sharding.P() if axis is None else sharding.P(*[None] * axis, label)

        return tree_map(spec, axes, is_leaf=is_none)

    def run(*arrays: Any, **kwargs: Any) -> Any:
        axes = broadcast_prefix(in_axes, arrays, is_leaf=is_none)
        lengths = [
            np.shape(x)[axis]
            for x, axis in zip(tree_leaves(arrays), axes, strict=True)
            if axis is not None
        ]
        mesh = sharding.make_mesh(((lengths or [size])[0],), (label,))
        lane = vectorization.vmap(functools.partial(f, **kwargs), in_axes, out_axes, axis_size=1)
        return sharding.shard_map(
            lane, mesh=mesh, in_specs=specs(in_axes), out_specs=specs(out_axes), check_vma=False
        )(*arrays)

    return run


def _of_traced(transformation: Callable[..., Any]) -> Callable[..., Any]:
    """A transformation of a function whose arguments have the bits that there are."""

    @functools.wraps(transformation)
    def transform(fun: Callable[..., Any], *args: Any, **options: Any) -> Callable[..., Any]:
        return adopt(transformation(in_few_bits(fun), *args, **options))

    return transform


vmap = mapping_by_rules(placing_lanes(_of_traced(vectorization.vmap)))


def _reducing_nothing(transformation: Callable[..., Any]) -> Callable[..., Any]:
    """A transformation that also takes JAX's ``reduce_axes``, as long as it names none."""

    @functools.wraps(transformation)
    def transform(*args: Any, reduce_axes: Sequence[Any] = (), **options: Any) -> Any:
        if reduce_axes:
            raise NotImplementedError("reduce_axes names axes, which JAX does not take any more.")
        return transformation(*args, **options)

    return transform


grad = _reducing_nothing(placing_gradients(_of_traced(differentiation.grad)))
value_and_grad = _reducing_nothing(placing_gradients(_of_traced(differentiation.value_and_grad)))


def block_until_ready(x: Any) -> Any:
    """The results of a call: they are ready when it returns."""
    return x


def _at_arrays(transformation: Callable[..., Any]) -> Callable[..., Any]:
    """A transformation at primals and tangents, of which Python's floats are arrays."""
    transform = Adopted(transformation)

    @functools.wraps(transformation)
    def compute(fun: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return transform(fun, *_as_arrays(args), **options)

    return compute


def _as_arrays(args: Any) -> Any:
    at = tree_map(_array_of_float, args)
    return at if is_x64() else tree_map(narrow_weak, at)


def _array_of_float(leaf: Any) -> Any:
    return weak_array(leaf) if type(leaf) in (float, complex) else leaf


_jvp = _at_arrays(differentiation.jvp)


@functools.wraps(differentiation.jvp)
def jvp(fun: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """`funcgrad.jvp`; Python's numbers that the function returns stay such in the result."""
    at = _as_arrays(args)
    pairs = zip(tree_leaves(at), tree_leaves(args), strict=True)
    numbers = {id(x): leaf for x, leaf in pairs if type(leaf) in (float, complex)}
    out, tangents, *extra = _jvp(fun, *at, **options)
    if not numbers:
        return out, tangents, *extra

    def number(x: Any) -> Any:
        return numbers.get(id(x), x)

    # The tangent of another result may be the same one, as that of a sum is; it is an array.
    tangents = tree_map(lambda x, t: number(t) if id(x) in numbers else t, out, tangents)
    return tree_map(number, out), tangents, *(tree_map(number, x) for x in extra)


vjp = _reducing_nothing(_at_arrays(differentiation.vjp))
_linearize = _at_arrays(differentiation.linearize)


@functools.wraps(differentiation.linearize)
def linearize(fun: Callable[..., Any], *primals: Any, **options: Any) -> Any:
    """`funcgrad.linearize`; tangents are of the kinds of primals along axes of a mesh."""
    out, *rest, push = _linearize(fun, *primals, **options)
    if not tracked_axes():
        return out, *rest, push

    @functools.wraps(fun)
    def checked(*tangents: Any) -> Any:
        pairs = zip(tree_leaves(primals), tree_leaves(tangents), strict=True)
        for axis in {
            axis for x, t in pairs for axis in lane_type(t).varying - lane_type(x).varying
        }:
            raise ArgumentError(
                f"linearize: a tangent differs along axis {axis!r} of the mesh, its primal is "
                "equal in all lanes. This might be fixed by applying `jax.lax.pcast(..., "
                f"({axis!r},), to='varying')` to the primal value passed to linearize."
            )
        return push(*tangents)

    return out, *rest, checked


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    device: Any = None,
    backend: Any = None,
    compiler_options: Any = None,
    keep_unused: bool = False,
    inline: bool = False,
    **options: Any,
) -> Any:
    """`funcgrad.jit`, on the one device.

    Args:
        fun: The function; without one, a decorator is returned.
        in_shardings: Where arguments lie; ignored.
        out_shardings: Where results say that they lie.
        device: Ignored.
        backend: Ignored.
        compiler_options: Of XLA; ignored.
        keep_unused: Ignored.
        inline: Ignored.
        **options: As in `funcgrad.jit`.
    """
    if fun is None:
        return lambda fun: jit(fun, out_shardings=out_shardings, **options)
    run = giving_halves(in_few_bits(keeping_places(fun, out_shardings)))
    return AdoptedJit(JittedOfArrays(run, **options))


class Config(settings.Config):
    """The flags, with JAX's x64 switch and its choice of a generator; see `widths`."""

    def update(self, name: str, value: Any) -> None:
        """Give a flag a value, from now on; of ``"jax_enable_x64"``, in all threads.

        Args:
            name: Its name.
            value: Its value.
        """
        if name == _X64:
            SWITCH.is_on = bool(value)
            return
        if name == _GENERATOR:
            SWITCH.generator = random.key_dtype(value).generator.name
            return
        if name == _PLACES:
            SWITCH.checks_places = bool(value)
            return
        if name == _PARTITIONABLE:
            SWITCH.is_partitionable = bool(value)
            return
        if name == "jax_num_cpu_devices":
            DEVICES.ask_for(value)
        super().update(name, value)

    def read(self, name: str) -> Any:
        """The value of a flag."""
        return self.values[name] if name in _SWITCHES else super().read(name)

    @property
    def values(self) -> dict[str, Any]:
        """All flags and their values."""
        of_package = (is_x64(), generator_name(), SWITCH.checks_places, is_partitionable())
        return {**super().values, **dict(zip(_SWITCHES, of_package, strict=True))}

    @property
    def x64_enabled(self) -> bool:
        """Whether there are 64 bits."""
        return is_x64()


_X64 = "jax_enable_x64"
_GENERATOR = "jax_default_prng_impl"
_PLACES = "jax_check_static_indices"
_PARTITIONABLE = "jax_threefry_partitionable"
_SWITCHES = (_X64, _GENERATOR, _PLACES, _PARTITIONABLE)
config = Config()


def _in_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns a dtype, or a pair with one, in the bits that there are.

    Of random keys it is that of keys.
    """

    @functools.wraps(function)
    def compute(*args: Any, **options: Any) -> Any:
        named = {id(d): d for d in (getattr(x, "dtype", x) for x in args)}
        if len(named) == 1 and isinstance(found := next(iter(named.values())), KeyDtype):
            return found
        found = function(*_deciding(args), **options)
        return tuple(map(canonical, found)) if type(found) is tuple else canonical(found)

    return compute


def _deciding(args: Sequence[Any]) -> list[Any]:
    """Arrays and dtypes that decide about a dtype: beside floats, integers do not.

    Weak arrays are Python's numbers.
    """
    known = [_representative(x) if getattr(x, "weak_type", False) is True else x for x in args]
    kinds = [_kind_of_dtype(getattr(x, "dtype", x)) for x in known]
    if not any(kind in ("f", "c") for kind in kinds):
        return known
    return [x for x, kind in zip(known, kinds, strict=True) if kind not in ("b", "i", "u")]


def _representative(x: Any) -> Any:
    """The number of Python's that promotes as a weak array, also of dtypes that NumPy lacks."""
    if x.dtype.kind == "u":
        return UINT64
    return 0.0 if x.dtype.kind == "V" else weak_representative(x.dtype)


def _kind_of_dtype(dtype: Any) -> str:
    """The kind of numbers of what names a dtype; empty for anything else."""
    is_name = isinstance(dtype, np.dtype | type | str)
    return np.dtype(dtype).kind if is_name else ""


canonicalize_dtype = _in_bits(dtypes.canonicalize_dtype)
dtypes_result_type = _in_bits(dtypes.result_type)
result_type = _in_bits(numpy.result_type)


def promote_types(a: Any, b: Any) -> np.dtype[Any]:
    """The dtype to which two promote."""
    return result_type(np.dtype(a), np.dtype(b))


def isscalar(element: Any) -> bool:
    """Whether it is a number or an array without axes."""
    is_array = isinstance(element, np.ndarray | Tracer)
    return element.ndim == 0 if is_array else bool(np.isscalar(element))


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes arrays: weak ones of Python numbers, and such as a type says."""
    make = Adopted(function, stores=True)

    @functools.wraps(function)
    def compute(x: Any, *args: Any, **options: Any) -> Any:
        if type(x) is int and not args and options.get("dtype") is None:
            check_fits(x)
        if type(x) in (list, tuple) and not args and options.get("dtype") is None:
            options["dtype"] = _dtype_beside_numbers(x)
        made = make(_array_of_type(x), *args, **options)
        is_number = type(x) in (int, float, complex) or getattr(x, "weak_type", False)
        if not is_number or args or options.get("dtype") is not None:
            return made
        return weak_number(made) if isinstance(made, Tracer) else weakly(made)

    return compute


def _dtype_beside_numbers(parts: Sequence[Any]) -> np.dtype[Any] | None:
    """The dtype of a list of Python's numbers and others, which say what it is."""
    kinds = {type(x) in (bool, int, float, complex) for x in parts}
    is_mixed = kinds == {True, False} and all(
        type(x) in (int, float, complex) or isinstance(x, np.generic | Array) for x in parts
    )
    return result_type(*parts) if is_mixed else None


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`funcgrad.eval_shape` in the bits that there are, also of functions that return types."""

    def with_arrays(*args: Any, **kwargs: Any) -> Any:
        return tree_map(_array_of_type, fun(*args, **kwargs))

    traced = giving_halves(in_few_bits(with_arrays))
    args, kwargs = given_halves((args, kwargs))
    found = Adopted(staging.eval_shape)(traced, *args, **kwargs)
    return tree_map(_struct, found)


def _struct(x: Any) -> Any:
    """A type in the bits that there are, of the class that programs know."""
    if type(x) is not staging.ShapeDtypeStruct:
        return x
    return Struct(x.shape, canonical(x.dtype), weak_type=x.weak_type)


def _array_of_type(leaf: Any) -> Any:
    is_type = isinstance(leaf, staging.ShapeDtypeStruct)
    return numpy.empty(leaf.shape, computed(leaf).dtype) if is_type else leaf


array = _making(numpy.array)
_asarray = _making(numpy.asarray)


def asarray(a: Any, dtype: Any = None, *args: Any, copy: bool | None = None, **options: Any) -> Any:
    """`numpy.asarray`; an array of the package is its own."""
    if type(a) is Array and not copy and (dtype is None or np.dtype(dtype) == a.dtype):
        return a
    if dtype is not None:
        options["dtype"] = dtype
    # Without a copy is a wish: lists have to be copied.
    return _asarray(a, *args, copy=copy or None, **options)


def load(file: Any, *args: Any, **options: Any) -> Any:
    """`numpy.load`; arrays of a bfloat16 that NumPy does not know are such again."""
    found = np.load(file, *args, **options)
    is_void = isinstance(found, np.ndarray) and found.dtype.str == "|V2" and ml_dtypes is not None
    return adopt(found.view(ml_dtypes.bfloat16) if is_void else found)


empty_like = filled(_making(numpy.empty_like))
full_like = filled(_making(numpy.full_like))
ones_like = filled(_making(numpy.ones_like))
zeros_like = filled(_making(numpy.zeros_like))
empty = filled(Adopted(numpy.empty, stores=True))
full = filled(Adopted(numpy.full, stores=True, keeps_weak=True))
ones = filled(Adopted(numpy.ones, stores=True))
zeros = filled(Adopted(numpy.zeros, stores=True))


@Adopted
def top_k(operand: Any, k: int, *, axis: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """`lax.top_k`; the indices are int32, whatever bits there are, and the order is stable."""
    if np.shape(operand)[axis] > np.iinfo(np.int32).max:
        raise ShapeError("top_k returns int32 indices, which are too few for this axis.")
    values, indices = lax.top_k(operand, k, axis)
    return values, indices.astype(np.int32)


@Adopted
def stop_gradient(x: Any) -> Any:
    """`lax.stop_gradient` of arrays only."""
    for leaf in tree_leaves(x):
        if not is_jax_type(leaf) and not hasattr(leaf, "__jax_array__"):
            raise TypeError(f"stop_gradient needs arrays, got a {type(leaf).__name__}.")
    return lax.stop_gradient(x)


def cond(pred: Any, *args: Any, **options: Any) -> Any:
    """`lax.cond`, also as ``cond(pred, true_operand, true_fun, false_operand, false_fun)``."""
    if len(args) == 4 and callable(args[1]) and callable(args[3]) and not callable(args[0]):
        x, true_fun, y, false_fun = args
        branches = (lambda x, y: true_fun(x)), (lambda x, y: false_fun(y))
        return _cond(pred, *branches, x, y)
    return _cond(pred, *args, **options)


def _declaring(function: Callable[..., Any]) -> Callable[..., Any]:
    """Control flow whose values are of one kind along axes of a mesh, as JAX demands."""

    @functools.wraps(function)
    def compute(*args: Any, **options: Any) -> Any:
        with declaring_kinds():
            return function(*args, **options)

    return compute


_cond = _declaring(Adopted(lax.cond))
scan = _declaring(Adopted(lax.scan, stores=True, keeps_weak=True))
while_loop = _declaring(Adopted(lax.while_loop, stores=True, keeps_weak=True))
_fori_loop = Adopted(lax.fori_loop, stores=True, keeps_weak=True)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any, **o: Any) -> Any:
    """`lax.fori_loop`, whose bounds may be floats: known ones are cut off, traced ones counted."""
    bounds = (lower, upper)
    if all(np.dtype(getattr(bound, "dtype", type(bound))).kind != "f" for bound in bounds):
        return _fori_loop(*bounds, body_fun, init_val, **o)
    if not any(isinstance(bound, Tracer) for bound in bounds):
        return _fori_loop(int(lower), int(upper), body_fun, init_val, **o)
    state = (lower, init_val)
    return while_loop(lambda s: s[0] < upper, lambda s: (s[0] + 1, body_fun(*s)), state)[1]


class block(contextlib.ContextDecorator):
    """A block about devices or XLA, in which nothing is different; also a decorator."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def start_trace(log_dir: Any, *args: Any, **options: Any) -> None:
    """`jax.profiler.start_trace`, which says that there is no profile of XLA.

    Args:
        log_dir: Where it would be written.
        *args: Further arguments of JAX's function.
        **options: Likewise.
    """
    _say_nothing_is_written(log_dir)


def profiler_trace(log_dir: Any, *args: Any, **options: Any) -> block:
    """`jax.profiler.trace`: a block, for which this is said, too. The arguments are the same."""
    _say_nothing_is_written(log_dir)
    return block()


def _say_nothing_is_written(log_dir: Any) -> None:
    warnings.warn(
        f"jax.profiler: nothing is written to {str(log_dir)!r}, as this program runs on funcgrad. "
        "funcgrad.profile(f)(*args) returns the time of every line of f.",
        stacklevel=3,
    )


class _KnownTrace(Trace):
    """Computes at once what depends on known values only; passes everything else on."""

    __slots__ = ()

    def process(self, primitive: Any, args: tuple[Any, ...]) -> Any:
        is_known = not any(isinstance(x, Tracer) for x in args)
        parent = EVAL if is_known else self.parent
        assert parent is not None
        return parent.process(primitive, args)


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A block that computes known values at once; traced ones are traced as before."""
    outer = current_trace()
    with using_trace(outer if outer is EVAL else _KnownTrace(outer, outer.what)):
        yield


@contextlib.contextmanager
def eval_context() -> Iterator[None]:
    """A block in which nothing is traced."""
    with using_trace(EVAL):
        yield


def is_concrete(x: Any) -> bool:
    """Whether a value is known."""
    return not isinstance(x, Tracer)


def is_jax_type(x: Any) -> bool:
    """Whether a value is an array, a number, or traced."""
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind in "biufcV"
    return isinstance(x, Tracer | HoldsArray | int | float | complex)


def trace_state_clean() -> bool:
    """Whether no transformation is at work."""
    return current_trace() is EVAL


def trace_state(convention: str = "") -> Any:
    """Identity of the transformation at work, to be compared."""
    return current_trace()


def concrete_or_error(kind: Any, value: Any, context: str = "") -> Any:
    """A known value as one of a kind."""
    return value if kind is None else kind(value)


def tangent_dtype(dtype: Any) -> Any:
    """The dtype of tangents of arrays of a dtype."""
    return dtype if np.dtype(dtype).kind in "fc" else float0


def ds(start: Any, size: int | None = None, stride: int = 1) -> Any:
    """An index of ``size`` elements from a place, which may be traced; of the first ``start``."""
    start, count = (0, start) if size is None else (start, size)
    if isinstance(start, Tracer | np.ndarray):
        return start + stride * np.arange(count, dtype=np.int32)
    return slice(start, start + stride * count, stride)


@dataclass
class Slice:
    """Elements of an axis from a place on, which may be traced, in the words of ``pallas``.

    Args:
        start: The first place.
        size: How many elements there are.
        stride: The distance of two of them.
    """

    start: Any
    size: int
    stride: int = 1

    def __jax_array__(self) -> Any:
        return self.start + self.stride * np.arange(self.size, dtype=np.int32)


def dslice(start: Any, size: int | None = None, stride: int | None = None) -> slice | Slice:
    """Object of these numbers, as an index that of `ds`; all of an axis for None."""
    if start is None:
        return slice(None)
    start, size = (0, start) if size is None else (start, size)
    return Slice(start, size, 1 if stride is None else stride)


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Callable[..., Any]:
    """The policy that saves values of both lists of names: all memory is that of the host."""
    return save_only_these_names(*names_which_can_be_saved, *names_which_can_be_offloaded)


def is_constant_dim(d: Any) -> bool:
    """Whether the length of an axis is a number, as all are here."""
    return hasattr(d, "__index__")


_MODES = {"constant": "grid-constant", "wrap": "grid-wrap"}
"""SciPy's names of what stands beyond the ends in JAX, where it goes on by whole elements."""


def map_coordinates(
    input: Any, coordinates: Any, order: int, mode: str = "constant", cval: Any = 0.0
) -> Any:
    """Values between the elements of an array, beyond its ends as in JAX.

    Args:
        input: Array.
        coordinates: Places, one array of coordinates for each axis.
        order: 0 for the nearest element, 1 for linear interpolation.
        mode: What stands beyond the ends.
        cval: What stands there in mode "constant".
    """
    mode = _MODES.get(mode, mode)
    compute = Adopted(imports.load("funcgrad.scipy.ndimage").map_coordinates)
    return compute(input, coordinates, order=order, mode=mode, cval=cval)
