"""Modules of JAX with which libraries define primitives, read programs, and hide themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from funcgrad import numpy, random
from funcgrad.api import vectorization
from funcgrad.base.pytree import NODES
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.trace import Trace, Tracer
from funcgrad.interop.jax import (
    callbacks,
    hijax,
    jaxprs,
    placing,
    primitives,
    types,
    vmappables,
    words,
)
from funcgrad.interop.jax.arrays import Array
from funcgrad.interop.missing import Missing, named
from funcgrad.observers.source import is_own
from funcgrad.transforms.batch import BatchTracer
from funcgrad.transforms.jvp import JVPTrace, JVPTracer
from funcgrad.transforms.stage import StageTracer

# The names under which programs for JAX compare traces.
Trace.main = property(lambda trace: trace)  # type: ignore[attr-defined]
Tracer._trace = property(lambda tracer: tracer.owner)  # type: ignore[attr-defined]


class Entry(NamedTuple):
    """How a class of containers is taken apart and put together.

    Attributes:
        to_iter: From a container to its children and its other data.
        from_iter: From these data and children to a container.
    """

    to_iter: Callable[[Any], Any]
    from_iter: Callable[[Any, Any], Any]


class _Registry(Mapping[type, Entry]):
    """The classes of containers that are known."""

    def __getitem__(self, kind: type) -> Entry:
        return Entry(NODES[kind].flatten, NODES[kind].unflatten)

    def __iter__(self) -> Iterator[type]:
        return iter(NODES)

    def __len__(self) -> int:
        return len(NODES)


REGISTRY = _Registry()


def passed_on(rule: Any = None, *args: Any, **options: Any) -> Any:
    """Return a rule unchanged."""
    return rule


def ignored(*args: Any, **options: Any) -> None:
    """Take note of nothing."""


def taking(function: str) -> Callable[..., Any]:
    """A decorator whose functions are missing.

    Args: function: What they are called.
    """
    return lambda *args, **options: Missing(function)


def decorator(*args: Any, **options: Any) -> Any:
    """A decorator that changes nothing, with or without options."""
    if len(args) == 1 and callable(args[0]):
        return args[0]
    return passed_on


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """The results of a function of corresponding elements of sequences of one length."""
    return [f(*row) for row in zip(*args, strict=True)]


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The corresponding elements of sequences of one length."""
    return list(zip(*args, strict=True))


def unzipped(count: int, rows: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    """The columns of rows of so many elements, also where there is no row."""
    return tuple(zip(*rows, strict=True)) or ((),) * count


def axis_names() -> list[Any]:
    """The names of the mapped axes around, outermost first."""
    return [getattr(name, "label", name) for name, _ in axes_in_scope()]


class HiPrimitive:
    """A primitive of values that can be changed: libraries define such, and may do without.

    Args: name: What it is called.
    """

    bind = Missing("jax.experimental.hijax.HiPrimitive.bind")

    def __init__(self, name: str) -> None:
        self.name = name


_PROGRAMS: dict[str, Any] = {
    **named(
        jaxprs,
        "ClosedJaxpr DropVar Jaxpr JaxprEqn Literal Var check_jaxpr gensym jaxpr_as_fun "
        "jaxprs_in_params new_jaxpr_eqn subjaxprs",
    ),
    **named(primitives, "Primitive mapped_aval unmapped_aval"),
    "find_top_trace": words.trace_state,
    "concrete_or_error": words.concrete_or_error,
    "get_opaque_trace_state": words.trace_state,
    "no_effects": primitives.NO_EFFECTS,
    "primal_dtype_to_tangent_dtype": words.tangent_dtype,
    "unsafe_get_axis_names_DO_NOT_USE": axis_names,
    "valid_jaxtype": words.is_jax_type,
}

_CORE: dict[str, Any] = {
    **named(words, "ensure_compile_time_eval eval_context is_concrete is_constant_dim"),
    "AbstractValue": types.ShapedArray,
    "Atom": jaxprs.Var | jaxprs.Literal,
    "ShapedArray": types.Type,
    "Trace": Trace,
    "Tracer": Tracer,
    "eval_jaxpr": jaxprs.eval_jaxpr,
    "get_aval": types.type_of,
}

_ARRAYS = dict.fromkeys((np.ndarray, np.generic, Array), types.type_of)
"""Classes of arrays, with what gives their types. Libraries add theirs, whose values convert."""

_CORE["pytype_aval_mappings"] = _ARRAYS

_MOVED = {"ClosedJaxpr", "Jaxpr", "JaxprEqn", "Literal", "Var", "jaxpr_as_fun", "mapped_aval",
          "subjaxprs", "unmapped_aval"}  # fmt: skip
"""Names that JAX has in ``jax.extend.core`` only."""


def random_seed(seeds: Any, impl: Any) -> Any:
    """Random keys of seeds of any shape."""
    found = numpy.asarray(seeds)
    keys = vectorization.vmap(lambda seed: random.key(seed, impl=impl))(found.reshape(-1))
    return keys.reshape(found.shape)


_PARTIAL_EVALUATION: dict[str, Any] = {
    **named(jaxprs, "dce_jaxpr trace_to_jaxpr_dynamic"),
}

_RANDOM: dict[str, Any] = {"random_seed": random_seed, "threefry_prng_impl": "threefry2x32"}

OF_MODULES: dict[str, dict[str, Any]] = {
    "jax.core": {k: v for k, v in {**_PROGRAMS, **_CORE}.items() if k not in _MOVED},
    "jax._src.core": {
        **_PROGRAMS,
        **_CORE,
        "call_p": jaxprs.call_p,
        "trace_state_clean": words.trace_state_clean,
        "typeof": types.type_of,
    },
    "jax.experimental.custom_partitioning": {"custom_partitioning": placing.custom_partitioning},
    "jax.experimental.hijax": {
        "HiPrimitive": HiPrimitive,
        **named(hijax, "VJPHiPrimitive jvp_from_lin linearize_from_jvp vjp_from_jvp vjp_from_lin"),
        **named(primitives, "Zero instantiate_zeros is_undefined_primal"),
        "aval_method": passed_on,
        "aval_property": property,
        "control_flow_allowed_effects": SimpleNamespace(add_type=ignored),
        "register_hitype": ignored,
    },
    "jax.extend": {},
    "jax.extend.core": _PROGRAMS,
    "jax.extend.linear_util": {
        "transformation": taking("jax.extend.linear_util.transformation"),
        "transformation2": taking("jax.extend.linear_util.transformation2"),
        "transformation_with_aux": taking("jax.extend.linear_util.transformation_with_aux"),
        "transformation_with_aux2": taking("jax.extend.linear_util.transformation_with_aux2"),
        "cache": decorator,
        "wrap_init": jaxprs.wrap_init,
    },
    "jax.extend.random": _RANDOM,
    "jax._src.random.prng": _RANDOM,
    "jax._src.random.threefry2x32": _RANDOM,
    "jax.api_util": {
        **named(jaxprs, "debug_info flatten_fun"),
        "flatten_fun_nokwargs": partial(jaxprs.flatten_fun, has_keywords=False),
        "safe_map": safe_map,
        "shaped_abstractify": types.type_of,
    },
    "jax.extend.source_info_util": {
        "SourceInfo": jaxprs.SourceInfo,
        "new_source_info": jaxprs.SourceInfo,
        "register_exclusion": ignored,
        "user_context": words.block,
    },
    "jax.interpreters.ad": {
        "JVPTrace": JVPTrace,
        "JVPTracer": JVPTracer,
        **named(
            primitives,
            "UndefinedPrimal Zero add_tangents defbilinear defjvp defjvp2 deflinear deflinear2 "
            "instantiate_zeros is_undefined_primal zeros_like_aval",
        ),
        "primitive_jvps": primitives.JVPS,
        "primitive_transposes": primitives.TRANSPOSES,
    },
    "jax.interpreters.batching": {
        **named(primitives, "bdim_at_front broadcast defbroadcasting defvectorized"),
        **named(vmappables, "register_vmappable unregister_vmappable"),
        "axis_primitive_batchers": primitives.AXIS_BATCHERS,
        "fancy_primitive_batchers": primitives.FANCY_BATCHERS,
        "primitive_batchers": primitives.BATCHERS,
    },
    "jax.interpreters.mlir": {
        **named(primitives, "lower_fun register_lowering"),
        "emit_python_callback": callbacks.emit_python_callback,
    },
    "jax.interpreters.partial_eval": {
        **_PARTIAL_EVALUATION,
        "DynamicJaxprTracer": StageTracer,
        "custom_partial_eval_rules": {},
        "dce_rules": {},
        "partial_eval_jaxpr_custom_rules": {},
    },
    "jax.interpreters.xla": {
        "apply_primitive": primitives.apply_primitive,
        "canonicalize_dtype_handlers": dict.fromkeys(_ARRAYS, words.asarray),
    },
    "jax._src.ad_util": {
        "Zero": primitives.Zero,
        "instantiate": primitives.instantiate_zeros,
    },
    "jax._src.interpreters.partial_eval": _PARTIAL_EVALUATION,
    "jax._src.linear_util": {"wrap_init": jaxprs.wrap_init},
    "jax._src.dispatch": {
        "apply_primitive": primitives.apply_primitive,
        "wait_for_tokens": ignored,
    },
    "jax._src.interpreters.batching": {"BatchTracer": BatchTracer, "not_mapped": None},
    "jax._src.traceback_util": {
        "api_boundary": decorator,
        "include_frame": lambda frame: not is_own(frame.f_code),
        "register_exclusion": ignored,
    },
    "jax._src.util": {
        "cache": decorator,
        "safe_map": safe_map,
        "safe_zip": safe_zip,
        "unzip2": partial(unzipped, 2),
        "unzip3": partial(unzipped, 3),
        "weakref_lru_cache": decorator,
    },
}
"""Their names."""
