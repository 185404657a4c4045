"""What libraries on top of JAX define when they are imported: primitives, and rules for them.

Defining is harmless and gives nothing; binding such a primitive is an error. The operations of
funcgrad are others, and so are their rules (docs/adding_a_primitive.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.interop.jax import words
from funcgrad.interop.missing import Missing


class Primitive:
    """An operation of a library, which cannot be applied.

    Args:
        name: Its name.
    """

    multiple_results = False
    call_primitive = False
    map_primitive = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("def_"):
            return passed_on
        raise AttributeError(name)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Refuse.

        Raises:
            MissingNameError: Always.
        """
        return Missing(f"jax.extend.core.Primitive({self.name!r}).bind")()

    def __repr__(self) -> str:
        return self.name


def passed_on(rule: Any = None, *args: Any, **options: Any) -> Any:
    """A rule, as it was given."""
    return rule


def ignored(*args: Any, **options: Any) -> None:
    """Take note of nothing."""


def taking(function: str) -> Callable[..., Any]:
    """A decorator whose functions are missing.

    Args:
        function: What they are called.
    """
    return lambda *args, **options: Missing(function)


def decorator(*args: Any, **options: Any) -> Any:
    """A decorator that changes nothing, with or without options."""
    if len(args) == 1 and callable(args[0]) and not options:
        return args[0]
    return passed_on


OF_MODULES: dict[str, dict[str, Any]] = {
    "jax.extend": {},
    "jax.extend.core": {"Primitive": Primitive, "get_opaque_trace_state": words.trace_state},
    "jax.extend.linear_util": {
        "transformation": taking("jax.extend.linear_util.transformation"),
        "transformation2": taking("jax.extend.linear_util.transformation2"),
        "transformation_with_aux": taking("jax.extend.linear_util.transformation_with_aux"),
        "transformation_with_aux2": taking("jax.extend.linear_util.transformation_with_aux2"),
        "cache": decorator,
    },
    "jax.extend.source_info_util": {"register_exclusion": ignored},
    "jax.interpreters.ad": {
        "defjvp": ignored,
        "defjvp2": ignored,
        "deflinear": ignored,
        "deflinear2": ignored,
        "primitive_jvps": {},
        "primitive_transposes": {},
        "primitive_linearizations": {},
    },
    "jax.interpreters.batching": {
        "axis_primitive_batchers": {},
        "defvectorized": ignored,
        "fancy_primitive_batchers": {},
        "primitive_batchers": {},
    },
    "jax.interpreters.mlir": {"lower_fun": ignored, "register_lowering": ignored},
    "jax.interpreters.partial_eval": {
        "custom_partial_eval_rules": {},
        "dce_rules": {},
        "partial_eval_jaxpr_custom_rules": {},
    },
    "jax.interpreters.xla": {"register_translation": ignored},
    "jax._src.dispatch": {"wait_for_tokens": ignored},
    "jax._src.traceback_util": {"api_boundary": decorator, "register_exclusion": ignored},
    "jax._src.util": {"cache": decorator, "weakref_lru_cache": decorator},
}
"""Modules with names for such definitions."""
