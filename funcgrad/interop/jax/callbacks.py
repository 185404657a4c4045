"""Callbacks whose errors are those of JAX's runtime, if compiled programs have called them."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import debug
from funcgrad.api import debugging
from funcgrad.api.staging import ShapeDtypeStruct
from funcgrad.base.pytree import tree_map
from funcgrad.core.trace import EVAL, current_trace
from funcgrad.interop.jax.arrays import Adopted, JaxRuntimeError, adopt, weak_number
from funcgrad.interop.jax.widths import canonical


def reporting(callback: Callable[..., Any], is_compiled: bool) -> Callable[..., Any]:
    """A callback that is given arrays of the package, and whose errors are those of the runtime.

    Args:
        callback: A function of a program.
        is_compiled: Whether a compiled program calls it.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return callback(*tree_map(adopt, args), **tree_map(adopt, kwargs))
        except JaxRuntimeError:
            raise
        except Exception as error:
            if not is_compiled:
                raise
            text = "".join(traceback.format_exception(error))
            raise JaxRuntimeError(
                f"INTERNAL: CpuCallback error calling callback: {text}"
            ) from error

    functools.update_wrapper(call, callback)
    return call


def _taking(function: Callable[..., Any], compiles: bool = True) -> Callable[..., Any]:
    """A function of a callback and more; JAX compiles most of them also where nothing is traced."""

    @functools.wraps(function)
    def bind(callback: Callable[..., Any], *args: Any, **options: Any) -> Any:
        is_compiled = compiles or current_trace() is not EVAL
        return function(reporting(callback, is_compiled), *args, **options)

    return Adopted(bind)


def _weak_as_asked(callback: Callable[..., Any], like: Any, *args: Any, **options: Any) -> Any:
    """Results that are weak where the types say so."""
    asked = tree_map(lambda x: ShapeDtypeStruct(x.shape, canonical(x.dtype)), like)
    found = debugging.pure_callback(callback, asked, *args, **options)
    return tree_map(
        lambda x, kind: weak_number(x) if getattr(kind, "weak_type", False) else x, found, like
    )


pure_callback = _taking(_weak_as_asked)


def emit_python_callback(
    ctx: Any,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Any,
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    **options: Any,
) -> tuple[list[Any], Any, None]:
    """Call Python from the lowering of a primitive.

    Args:
        ctx: The context that the lowering is given.
        callback: The function, from arrays to a sequence of arrays.
        token: Of an order of effects; given back.
        operands: The arguments.
        operand_avals: Their types.
        result_avals: Types of the results.
        has_side_effect: Whether it is called also if nothing reads its results.
        **options: Of devices; ignored.
    Returns: The results, the token, and nothing that has to be kept.
    """
    types = [ShapeDtypeStruct(a.shape, a.dtype) for a in result_avals]
    call = io_callback if has_side_effect else pure_callback
    return call(lambda *args: list(callback(*args)), types, *operands), token, None


io_callback = _taking(debugging.io_callback)
debug_callback = _taking(debug.callback, compiles=False)


def debug_print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """`funcgrad.debug.print` of arrays of the package."""
    debugging.check_format(fmt, args, kwargs)

    def write(*args: Any, **kwargs: Any) -> None:
        print(fmt.format(*args, **kwargs))

    debug_callback(write, *args, ordered=ordered, **kwargs)
