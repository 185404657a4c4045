"""The modules of the package ``jax`` and where their names come from.

A name is looked for among what is written here, then in the modules of funcgrad that are named
here, in order. Functions from there return arrays of the kind of `arrays.Array`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from funcgrad import errors, numpy, sharding
from funcgrad.api.devices import process_count, process_index
from funcgrad.base.imports import load
from funcgrad.base.placement import Device
from funcgrad.base.records import dataclass
from funcgrad.base.signatures import signature_of
from funcgrad.dtypes import complex_dtype, inexact_dtype
from funcgrad.higher_order.mesh_lanes import mixing_kinds
from funcgrad.interop.jax import (
    arrays,
    assembling,
    callbacks,
    comparing,
    conventions,
    custom,
    devices,
    fourier,
    jaxprs,
    placing,
    random_keys,
    registering,
    scalars,
    sparse_arrays,
    types,
    widths,
    words,
)
from funcgrad.interop.missing import named, recorded_names
from funcgrad.observers.leaks import checking_leaks

VERSION = "0.10.0"
"""Version of JAX that the stand-in answers for."""


@dataclass(frozen=True)
class Source:
    """Source of the names of a module.

    Args:
        own: Names with their values.
        modules: Modules of funcgrad, by name, which are loaded when a name is asked for.
        adopts: Whether results of functions of these become arrays of the package ``jax``.
        keeps_weak: Whether functions of these give weak arrays for weak ones.
        are_functions: Whether they are functions of Python, as in JAX where nothing is compiled.
    """

    own: dict[str, Any]
    modules: tuple[str, ...] = ()
    adopts: bool = True
    keeps_weak: bool = False
    are_functions: bool = False

    def find(self, name: str) -> Any:
        """The value of a name.

        Raises: LookupError: If there is none.
        """
        found = self._found(name)
        return arrays.as_function(found) if self.are_functions else found

    def _found(self, name: str) -> Any:
        if name in self.own:
            return self.own[name]
        for path in self.modules:
            value = member(path, name)
            if value is not _NOTHING:
                keeps_weak = self.keeps_weak and name not in _STRONG
                return wrapped(value, keeps_weak) if self.adopts else value
        raise LookupError(name)

    def names(self) -> list[str]:
        """All names that can be listed without loading others."""
        listed = [n for path in self.modules for n in getattr(loaded(path), "__all__", ())]
        return sorted({*self.own, *listed})


_NOTHING = object()


def loaded(path: str) -> ModuleType | None:
    """A module of funcgrad, if there is one of that name."""
    try:
        return load(path)
    except ModuleNotFoundError:
        return None


def member(path: str, name: str) -> Any:
    """A public name of a module of funcgrad."""
    module = loaded(path)
    if module is None or name not in module.__all__:
        return _NOTHING
    value = getattr(module, name)
    return _NOTHING if isinstance(value, ModuleType) else value


_STRONG = frozenset(
    (
        "arange", "axis_size", "broadcasted_iota", "empty", "eye", "fromfunction", "geomspace",
        "identity", "indices", "iota", "linspace", "logspace", "ndim", "ones", "size", "tri",
        "zeros",
    )
)  # fmt: skip
"""Functions of numbers whose results are strong, or no arrays."""


def wrapped(value: Any, keeps_weak: bool = False) -> Any:
    """A function whose results are adopted; everything else as it is."""
    if isinstance(value, type) or not callable(value):
        return arrays.adopt(value) if isinstance(value, np.ndarray) else value
    if not arrays.is_function(value):
        return value
    folds = folds_axes(value)
    return arrays.Adopted(value, folds, True, keeps_weak and not folds)


def folds_axes(function: Callable[..., Any]) -> bool:
    """Whether a function takes axes as its second argument."""
    try:
        names = list(signature_of(function).parameters)
    except (TypeError, ValueError):
        return False
    return names[1:2] == ["axis"]


_ERRORS = {
    **{name: getattr(errors, name) for name in dir(errors) if name.endswith("Error")},
    "JaxRuntimeError": arrays.JaxRuntimeError,
}
_SHARDINGS = {
    **named(
        devices,
        "AbstractMesh Mesh NamedSharding Sharding SingleDeviceSharding make_single_device_sharding",
    ),
    **named(placing, "auto_axes explicit_axes reshard"),
    **named(sharding, "AxisType PartitionSpec get_abstract_mesh set_mesh"),
    "use_abstract_mesh": sharding.set_mesh,
}

_REFERENCES = named(words, "Ref empty_ref new_ref")

_BLOCKS = (
    "allow_f16_reductions", "array_garbage_collection_guard", "debug_key_reuse",
    "enable_checks", "enable_custom_prng", "explain_cache_misses",
    "legacy_prng_key", "no_execution", "remove_size_one_mesh_axis_from_type",
    "softmax_custom_jvp", "thread_guard", "transfer_guard",
    "transfer_guard_device_to_device", "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
)  # fmt: skip
"""Blocks about devices, XLA and its messages."""

_JAX = {
    **named(assembling, "make_array_from_callback make_array_from_single_device_arrays"),
    **named(custom, "custom_jvp custom_vjp"),
    **named(devices, "NamedSharding device_count devices local_devices make_mesh"),
    **named(jaxprs, "closure_convert make_jaxpr"),
    **named(placing, "device_get device_put live_arrays reshard shard_map smap"),
    **named(widths, "default_prng_impl enable_x64 threefry_partitionable"),
    **named(
        words,
        "block_until_ready config ds ensure_compile_time_eval eval_shape grad jit jvp linearize "
        "pmap value_and_grad vjp vmap",
    ),
    **_REFERENCES,
    **dict.fromkeys(_BLOCKS, words.block),
    "auto_pcast": mixing_kinds,
    "Array": arrays.Array,
    "Device": Device,
    "P": sharding.PartitionSpec,
    "__version__": VERSION,
    "__version_info__": tuple(map(int, VERSION.split("."))),
    "check_tracer_leaks": checking_leaks,
    "effects_barrier": registering.ignored,
    "ShapeDtypeStruct": widths.Struct,
    "host_count": process_count,
    "host_id": process_index,
    "local_device_count": devices.device_count,
    "pure_callback": callbacks.pure_callback,
    "set_mesh": sharding.set_mesh,
    "typeof": types.type_of,
}

_CHECKS = named(comparing, "check_grads check_jvp check_vjp")

_DTYPES = {
    **named(scalars, "finfo iinfo issubdtype"),
    **{name: kind for name, kind in scalars.SCALAR_KINDS.items() if name == "bfloat16"},
    "canonicalize_dtype": words.canonicalize_dtype,
    "result_type": words.dtypes_result_type,
}

_NUMPY: dict[str, Any] = {
    **scalars.SCALAR_KINDS,
    **named(
        np,
        "character complexfloating dtype e euler_gamma flexible floating generic get_printoptions "
        "inexact inf integer nan newaxis number object_ pi printoptions save savez "
        "set_printoptions signedinteger unsignedinteger",
    ),
    **named(
        conventions,
        "bincount choose convolve correlate cumulative_prod cumulative_sum hypot isclose ix_ pad "
        "ravel_multi_index reshape take take_along_axis tensordot unravel_index",
    ),
    **named(
        words,
        "array asarray empty empty_like full full_like ones ones_like zeros zeros_like isscalar "
        "promote_types result_type load",
    ),
    **named(
        scalars,
        "iscomplexobj isrealobj issubdtype finfo iinfo",
    ),
    "ndarray": arrays.Array,
}  # fmt: skip

NAMES = recorded_names(__file__)
"""Public names of JAX's modules."""

_HERE = "funcgrad.interop.jax"

SOURCES: dict[str, Source] = {
    "jax": Source(_JAX, ("funcgrad",)),
    "jax.ad": Source({}, ("funcgrad.ad",)),
    "jax.ad_checkpoint": Source({}, ("funcgrad.ad_checkpoint", "funcgrad")),
    "jax.ad_checkpoint.checkpoint_policies": Source({}, ("funcgrad.checkpoint_policies",), False),
    "jax.checkpoint_policies": Source(
        {"save_and_offload_only_these_names": words.save_and_offload_only_these_names},
        ("funcgrad.checkpoint_policies",),
        False,
    ),
    "jax.config": Source({"config": words.config}),
    "jax.custom_batching": Source(
        {"custom_vmap": custom.custom_vmap}, ("funcgrad.custom_batching",)
    ),
    "jax.custom_derivatives": Source(
        {name: _JAX[name] for name in ("closure_convert", "custom_jvp", "custom_vjp")},
        ("funcgrad.custom_derivatives", "funcgrad"),
    ),
    "jax.debug": Source(
        {
            "breakpoint": breakpoint, "callback": callbacks.debug_callback,
            "print": callbacks.debug_print,
        },
        ("funcgrad.debug",),
        False,
    ),
    "jax._src.dtypes": Source(
        {**_DTYPES, "to_complex_dtype": complex_dtype, "to_inexact_dtype": inexact_dtype},
        ("funcgrad.dtypes",),
        False,
    ),
    "jax.dtypes": Source(_DTYPES, ("funcgrad.dtypes",), False),
    "jax.dlpack": Source({"from_dlpack": arrays.Adopted(numpy.from_dlpack)}),
    "jax.errors": Source(_ERRORS),
    "jax.example_libraries": Source({}),
    **{
        f"jax.example_libraries.{name}": Source({}, (f"{_HERE}.example_libraries.{name}",))
        for name in ("optimizers", "stax")
    },
    "jax.experimental": Source(
        {**named(widths, "disable_x64 enable_x64"), "io_callback": callbacks.io_callback},
        ("funcgrad",),
    ),
    "jax.experimental.checkify": Source({}, ("funcgrad.checkify",)),
    "jax.experimental.jet": Source({"fact": math.factorial}, ("funcgrad.experimental.jet",)),
    "jax.experimental.mesh_utils": Source(
        {"create_device_mesh": devices.create_device_mesh}
    ),
    "jax.experimental.ode": Source({}, ("funcgrad.experimental.ode",)),
    "jax.experimental.pallas": Source(
        {"Slice": words.Slice, "ds": words.dslice, "dslice": words.dslice}
    ),
    "jax.experimental.pjit": Source({"pjit": words.jit}),
    "jax.experimental.rnn": Source({}, (f"{_HERE}.rnn",)),
    "jax.experimental.shard_map": Source({"shard_map": placing.experimental_shard_map}),
    "jax.experimental.sparse": Source(
        {**sparse_arrays.OF_BCOO, "sparsify": sparse_arrays.sparsify}
    ),
    "jax.experimental.sparse.bcoo": Source(sparse_arrays.OF_BCOO),
    "jax.experimental.sparse.linalg": Source({}, (f"{_HERE}.lobpcg",)),
    "jax.flatten_util": Source({}, ("funcgrad.flatten_util",)),
    "jax.extend.backend": Source(devices.BACKENDS),
    "jax.image": Source({}, ("funcgrad.image",)),
    "jax.interpreters": Source({}),
    **{path: Source(own) for path, own in registering.OF_MODULES.items()},
    "jax.lax": Source(
        {
            **named(words, "cond fori_loop scan stop_gradient top_k while_loop"),
            **named(placing, "pcast pvary with_sharding_constraint"),
            "associative_scan": conventions.associative_scan,
            "map": conventions.map_rows,
        },
        ("funcgrad.lax",),
        keeps_weak=True,
    ),
    "jax.lax.linalg": Source({}, ("funcgrad.lax.linalg",)),
    "jax.lib": Source({"__version__": VERSION}),
    "jax.monitoring": Source(dict.fromkeys(NAMES["jax.monitoring"].split(), registering.ignored)),
    "jax.nn": Source({}, ("funcgrad.nn",), keeps_weak=True),
    "jax.nn.initializers": Source({}, ("funcgrad.nn.initializers",)),
    "jax.numpy": Source(_NUMPY, ("funcgrad.numpy",), keeps_weak=True),
    "jax.numpy.fft": Source(fourier.FUNCTIONS, ("funcgrad.numpy.fft",)),
    "jax.numpy.linalg": Source({}, ("funcgrad.numpy.linalg",)),
    "jax.ops": Source({}, ("funcgrad.ops",)),
    "jax.profiler": Source(
        {
            "StepTraceAnnotation": words.block,
            "TraceAnnotation": words.block,
            "annotate_function": registering.decorator,
            "start_trace": words.start_trace,
            "stop_trace": lambda: None,
            "trace": words.profiler_trace,
        }
    ),
    "jax.random": Source(
        named(random_keys, "PRNGKey choice key randint"),
        ("funcgrad.random",),
        are_functions=True,
    ),
    "jax.ref": Source(_REFERENCES, ("funcgrad.ref",)),
    "jax.scipy": Source({}),
    **{
        f"jax.scipy.{name}": Source({}, (f"funcgrad.scipy.{name}",))
        for name in (
            "cluster", "cluster.vq", "fft", "integrate", "interpolate",
            "signal", "sparse", "spatial", "spatial.transform", "stats",
        )
    },
    "jax.scipy.special": Source(
        {"sici": conventions.sici}, ("funcgrad.scipy.special",), keeps_weak=False
    ),
    "jax.scipy.linalg": Source(conventions.LINALG, ("funcgrad.scipy.linalg",)),
    "jax.scipy.optimize": Source(conventions.OPTIMIZERS),
    "jax.scipy.sparse.linalg": Source(conventions.SOLVERS, ("funcgrad.scipy.sparse.linalg",)),
    "jax.scipy.ndimage": Source({"map_coordinates": words.map_coordinates}),
    "jax.sharding": Source(_SHARDINGS),
    "jax.stages": Source({}, ("funcgrad.stages",), False),
    "jax._src.tree_util": Source(
        {"_registry": registering.REGISTRY}, ("funcgrad.tree_util",), False
    ),
    "jax._src.xla_bridge": Source({"_backends": {}}),
    "jax._src.public_test_util": Source(
        {**_CHECKS, **named(comparing, "check_close tolerance")},
        ("funcgrad.test_util",),
        False,
    ),
    "jax.test_util": Source(_CHECKS, ("funcgrad.test_util",), False),
    "jax.tree": Source({}, ("funcgrad.tree",), False),
    "jax.tree_util": Source({}, ("funcgrad.tree_util",), False),
    "jax.typing": Source({}, ("funcgrad.typing",), False),
    "jax.version": Source({"__version__": VERSION, "__version_info__": _JAX["__version_info__"]}),
    "jaxlib": Source({"__version__": VERSION}),
    "jaxlib.version": Source({"__version__": VERSION}),
}  # fmt: skip

DISTRIBUTIONS = "jax.scipy.stats."
"""Package of distributions, each a module such as ``jax.scipy.stats.norm``."""


def distribution(path: str) -> Callable[[str], Any] | None:
    """How to look up functions of a distribution that is a module in JAX and an object here.

    Args: path: Such as ``jax.scipy.stats.norm``.
    """
    if not path.startswith(DISTRIBUTIONS):
        return None
    found = member("funcgrad.scipy.stats", path.removeprefix(DISTRIBUTIONS))
    return None if found is _NOTHING else lambda name: wrapped(getattr(found, name))
