"""Arguments and results of the public transformations: naming, checking, ownership.

Nothing here transforms anything. Names of arguments in messages are paths such as
``args[1]['w']``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.base.pytree import all_held_in, keystr, tree_flatten_with_path, tree_leaves, tree_map
from funcgrad.base.scalars import plain_number, scalar_number
from funcgrad.base.signatures import signature_of
from funcgrad.core.avals import Shape, ShapedArray, aval_of
from funcgrad.core.axes import tracked_axes
from funcgrad.core.observers import OBSERVED
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.dtypes import check_dtype, float0
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.higher_order.cells import Cell
from funcgrad.observers.nonfinite import check_results, describe, holds_nan


def name_of(function: Any) -> str:
    """Name of a function in messages and programs."""
    name = getattr(function, "__name__", None)
    if name is None and hasattr(function, "func"):
        return name_of(function.func)
    return name or type(function).__name__


def check_callable(function: Any, transformation: str) -> None:
    """Raise unless ``function`` can be transformed."""
    if not callable(function):
        raise ArgumentError(
            f"{transformation} needs a function as its first argument, got "
            f"{type(function).__name__}. Write {transformation}(f)(x), not {transformation}(f(x))."
        )
    if inspect.isgeneratorfunction(function):
        raise ArgumentError(
            f"{transformation} cannot transform the generator function {name_of(function)}: return "
            "a list or an array instead of yielding."
        )


def leaf_paths(tree: Any, prefix: str = "args") -> list[str]:
    """The path of every array in a tree, such as ``args[0]['w']``."""
    rows = tree_flatten_with_path(tree)[0]
    return [prefix + keystr(path) for path, x in rows for _ in all_held_in(x)]


def has_type(leaf: Any) -> bool:
    """Whether a leaf is an array or a number, so that no message needs its path."""
    try:
        aval_of(leaf)
    except DtypeError:
        return False
    return not isinstance(leaf, Cell)


def aval_of_argument(leaf: Any, path: str, function: str) -> ShapedArray:
    """Type of an argument; a `DtypeError` names the argument if it has none."""
    if isinstance(leaf, Tracer):
        return leaf.aval
    if isinstance(leaf, Cell):
        leaf.refuse_as_array(f"{function}: `{path}`")
    try:
        return aval_of(leaf)
    except DtypeError:
        array = np.asarray(leaf)
        raise DtypeError(_bad_argument(leaf, array.dtype, path, function)) from None


def _bad_argument(leaf: Any, dtype: np.dtype[Any], path: str, function: str) -> str:
    what = f"argument `{path}` of {function}"
    if isinstance(leaf, np.ndarray | np.generic):
        try:
            check_dtype(dtype, what)
        except DtypeError as error:
            return str(error)
    return (
        f"{what} is a {type(leaf).__name__}, which is neither an array nor a number nor a "
        f"registered pytree. {_way_out(leaf, path, function)}"
    )


def _way_out(leaf: Any, path: str, function: str) -> str:
    """Advice for an argument that is no array."""
    register = (
        "register its class with funcgrad.tree_util.register_dataclass or "
        "register_pytree_node_class, so that the arrays in it are traced"
    )
    if function.startswith("vmap("):
        return f"Pass it along with in_axes=None, or {register}."
    is_jit = function.startswith("jit(")
    may_be_static = function.startswith(("checkpoint(", "make_jaxpr(")) and path.startswith("args")
    if not is_jit and not may_be_static:
        return f"Close over it, or {register}."
    whole = re.fullmatch(r"args\[(\d+)\]|kwargs\['(\w+)'\]", path)
    static = "it static"
    if whole is not None and whole[1] is not None:
        static = f"it static, static_argnums={whole[1]}"
    elif whole is not None:
        static = f"it static, static_argnames={whole[2]!r}"
    elif path.startswith("args["):
        static = f"`{path.partition(']')[0]}]` static, static_argnums={path[5:].partition(']')[0]}"
    if isinstance(leaf, str | bytes | type | np.ufunc) or inspect.isroutine(leaf):
        return f"Make {static}."
    if not is_jit:
        return f"If it has data, {register}; or make {static}."
    return (
        f"If it has data, {register}. If it never changes, make {static}: it is compared by its "
        "`==` and hash, and what the function reads of it is read once. (The first argument of a "
        "method is its instance.)"
    )


def call_untraced(
    function: Function, args: Sequence[Any], kwargs: dict[str, Any], kept: Sequence[int] = ()
) -> Any:
    """Call a function with concrete arguments, whose numbers get the attributes of arrays.

    Args:
        function: A user's function, which may expect traced values.
        args: Its arguments.
        kwargs: Its keyword arguments.
        kept: Positions of arguments that are handed over as they are.
    """
    given = [a if i in kept else tree_map(scalar_number, a) for i, a in enumerate(args)]
    return tree_map(plain_number, function(*given, **tree_map(scalar_number, kwargs)))


def parameters_of(fun: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters of a function, or `None` if it does not tell."""
    try:
        return list(signature_of(fun).parameters.values())
    except (TypeError, ValueError):
        return None


def positional_parameters(fun: Callable[..., Any]) -> list[str]:
    """Names of the parameters that may be given by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters_of(fun) or [] if p.kind in kinds]


def normalize_argnums(argnums: int | Sequence[int], n_args: int, function: str) -> tuple[int, ...]:
    """Positions as non-negative ints, checked against the number of positional arguments."""
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for position in positions:
        if not isinstance(position, int | np.integer):
            raise ArgumentError(f"argnums must be an int or a sequence of ints, got {argnums!r}.")
        if not -n_args <= position < n_args:
            raise ArgumentError(
                f"argnums={argnums!r} names positional argument {position}, but {function} was "
                f"called with {n_args} positional argument{'s' * (n_args != 1)}. Arguments to "
                "differentiate must be passed by position."
            )
    normalized = tuple(int(p) % n_args for p in positions)
    if len(set(normalized)) != len(normalized):
        raise ArgumentError(f"argnums={argnums!r} names an argument twice.")
    return normalized


def check_for_nans(what: str, results: Sequence[Any], args: Any, kwargs: Any = None) -> None:
    """Raise if flat results contain a NaN that came in, within a block of `debug_nans`."""

    def holders() -> list[str]:
        leaves, paths = tree_leaves(args), leaf_paths(args)
        if kwargs:
            leaves, paths = leaves + tree_leaves(kwargs), paths + leaf_paths(kwargs, "kwargs")
        rows = zip(leaves, paths, strict=True)
        return [f"  argument      `{path}`, {describe(x)}" for x, path in rows if holds_nan(x)]

    if OBSERVED.computed and current_trace() is EVAL:
        check_results(what, results, holders)


def zeros_for(aval: ShapedArray, shape: Shape | None = None) -> Any:
    """A fresh zero of the tangent type: `float0` for exact dtypes."""
    dtype = aval.dtype if aval.dtype.kind in "fc" else float0
    zeros = np.zeros(aval.shape if shape is None else shape, dtype)
    return zeros if zeros.shape or dtype == float0 else zeros[()]


def zeros_like(x: Any, shape: Shape | None = None) -> Any:
    """A fresh zero of the tangent type of a value, which varies along axes of a mesh as it does.

    Args:
        x: The value.
        shape: Another shape.
    """
    zeros = zeros_for(aval_of(x), shape)
    for axis in tracked_axes() if zeros.dtype != float0 else ():
        zeros = axis.varied_like(zeros, x)
    return zeros


class Owner:
    """Makes results of a derivative independent arrays: writable, sharing memory with nothing.

    Rules return views and may return one array twice; NumPy users write into their arrays.

    Args: inputs: Values whose memory must not be shared.
    """

    def __init__(self, inputs: Sequence[Any] = ()) -> None:
        self._seen = {id(x) for x in inputs}

    def __call__(self, value: Any) -> Any:
        if type(value) is not np.ndarray:
            return value
        if value.base is not None or id(value) in self._seen or not value.flags.writeable:
            value = value.copy()
        self._seen.add(id(value))
        return value


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Whether shapes and dtypes agree."""
    return a.shape == b.shape and a.dtype == b.dtype


Function = Callable[..., Any]
