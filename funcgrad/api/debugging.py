"""Looking into programs while they run: printing, calls of Python, and the first NaN.

Everything here works in compiled code, in loops and under every transformation.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.api.staging import with_held_types
from funcgrad.base.annotations import Function
from funcgrad.base.pytree import keystr, tree_flatten_with_path, tree_unflatten
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import check_dtype
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.higher_order.callback import (
    VMAP_METHODS,
    DebugCallback,
    FlatFunction,
    IoCallback,
    PureCallback,
)
from funcgrad.higher_order.jit import watching_stepwise
from funcgrad.higher_order.staging import place
from funcgrad.observers.leaks import checking_leaks
from funcgrad.observers.notices import debug_python_loops
from funcgrad.primitives.objects import flatten_extra, flatten_held, flatten_values

_FORMATTED = re.compile(r"Traced<.*> in ")
_NUMBERS = bool | int | float | complex | np.generic


def debug_callback(callback: Function, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Call a Python function with values, for its effect.

    It runs whenever the surrounding code runs: in compiled code, in every step of a loop, once per
    example under `vmap`, in the forward pass under `grad`. What it returns is ignored.

    Args: callback: Gets arrays, read from traced arguments, and everything else as it is.

    Example:
        >>> seen = []
        >>> @fg.jit
        ... def f(x):
        ...     fg.debug.callback(seen.append, x)
        ...     return 2 * x
        >>> y = f(1.5)
        >>> seen == [1.5]
        True
    """
    check_callable(callback, "debug.callback")
    leaves, treedef = flatten_extra((args, kwargs))
    is_value = [isinstance(x, Tracer | np.ndarray | _NUMBERS) for x in leaves]
    fixed = [None if v else x for x, v in zip(leaves, is_value, strict=True)]

    def flat(*values: Any) -> list[Any]:
        rest = iter(values)
        full = [next(rest) if v else x for x, v in zip(fixed, is_value, strict=True)]
        inner_args, inner_kwargs = tree_unflatten(treedef, full)
        callback(*inner_args, **inner_kwargs)
        return []

    label = f"debug.callback({name_of(callback)})"
    operands = [x for x, v in zip(leaves, is_value, strict=True) if v]
    DebugCallback(flat, label, ()).bind(*operands)


def debug_print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print values of traced arrays: ``debug.print("loss {l:.3f} at {}", step, l=loss)``.

    Args: fmt: Format string, as of `str.format`. It is no f-string, which would be formatted while
            the function is traced, when there are no values.
    Raises: ArgumentError: If the format string and the arguments do not fit together.

    Example:
        >>> @fg.jit
        ... def f(x):
        ...     fg.debug.print("x = {}", x)
        ...     return x
        >>> y = f(np.arange(3))
        x = [0 1 2]
    """
    check_format(fmt, args, kwargs)

    def write(*args: Any, **kwargs: Any) -> None:
        print(fmt.format(*args, **kwargs))

    debug_callback(write, *args, ordered=ordered, **kwargs)


class _FieldNames(string.Formatter):
    """Collects what a format string asks for."""

    def __init__(self) -> None:
        self.used: set[int | str] = set()

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        self.used.add(key)
        return super().get_value(key, args, kwargs)

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        first = field_name.replace("[", ".").split(".")[0]
        self.get_value(int(first) if first.isdigit() else first, args, kwargs)
        return "", first

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        return value


def check_format(fmt: str, args: Any, kwargs: Any) -> None:
    """Raise unless a format string and the values for it fit together."""
    if not isinstance(fmt, str):
        raise ArgumentError(
            f"debug.print: the first argument must be a format string, got a {type(fmt).__name__}."
            f'{place()} Write debug.print("{{}}", x).'
        )
    if _FORMATTED.search(fmt):
        raise ArgumentError(
            f"debug.print: {fmt!r} holds a traced value that an f-string, or str(), has formatted "
            f"before there were values.{place()} Leave the values out of the text and pass them "
            'behind it: debug.print("x = {}", x).'
        )
    names = _FieldNames()
    try:
        names.vformat(fmt, args, kwargs)
    except (IndexError, KeyError) as error:
        raise ArgumentError(
            f"debug.print: {fmt!r} asks for an argument that was not given: {error}.{place()}"
            " Pass the values behind the format string, by position or by name."
        ) from None
    except ValueError as error:
        raise ArgumentError(
            f"debug.print: {fmt!r} is not a format string: {error}.{place()} Double the braces "
            "that are to be printed."
        ) from None
    unused = [repr(k) for k in (*range(len(args)), *kwargs) if k not in names.used]
    if unused:
        raise ArgumentError(
            f"debug.print: {fmt!r} has no place for argument {', '.join(unused)}.{place()} Write "
            "{} for every value; an f-string has formatted them before there were values."
        )


def pure_callback(
    callback: Function,
    result_shape_dtypes: Any,
    *args: Any,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function that has no effects, from compiled code too.

    It may run more or less often than written. It has no derivative: give the enclosing function
    one with `custom_jvp` or `custom_vjp`.

    Args:
        result_shape_dtypes: Types of its results: a pytree of objects with ``shape`` and ``dtype``,
            such as `ShapeDtypeStruct` or arrays.
        *args: Pytrees of arrays.
        vmap_method: How it is mapped: ``"sequential"`` calls it once per example;
            ``"expand_dims"`` calls it once, with a further leading axis on all arguments, of length
            1 where they are not mapped; ``"broadcast_all"`` with that axis at full length;
            ``"legacy_vectorized"`` with the axis on mapped arguments only.
    Returns: A pytree of arrays of the promised types.

    Raises:
        ShapeError: When it runs, if a result has another shape than promised.
        DtypeError: When it runs, if a result has another dtype than promised.
        TreeError: When it runs, if results have another structure than promised.

    Example:
        >>> def f(x):
        ...     return fg.pure_callback(np.sort, fg.ShapeDtypeStruct(x.shape, x.dtype), x)
        >>> fg.jit(f)(np.array([2.0, 1.0]))
        array([1., 2.])
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ArgumentError(
            f"pure_callback: vmap_method must be one of {', '.join(VMAP_METHODS)}, got "
            f"{vmap_method!r}.{place()}"
        )
    call = _Call(callback, result_shape_dtypes, args, kwargs, "pure_callback")
    bound = PureCallback(call.flat, call.label, call.avals, vmap_method).bind(*call.operands)
    return tree_unflatten(call.out_tree, bound)


def io_callback(
    callback: Function, result_shape_dtypes: Any, *args: Any, ordered: bool = False, **kwargs: Any
) -> Any:
    """Call a Python function that may have effects and results, once per evaluation.

    Calls happen in program order; under `vmap` once per example, in order.

    Args:
        result_shape_dtypes: Types of its results, as for `pure_callback`; ``None`` for none.
        *args: Pytrees of arrays.
    Returns: A pytree of arrays of the promised types.

    Raises:
        ShapeError: When it runs, if a result has another shape than promised.
        DtypeError: When it runs, if a result has another dtype than promised.
        TreeError: When it runs, if results have another structure than promised.

    Example:
        >>> source = iter([3.0, 4.0])
        >>> read = lambda: next(source)
        >>> f = fg.jit(lambda x: x + fg.io_callback(read, fg.ShapeDtypeStruct((), np.float64)))
        >>> print(f(1.0), f(1.0))
        4.0 5.0
    """
    call = _Call(callback, result_shape_dtypes, args, kwargs, "io_callback")
    bound = IoCallback(call.flat, call.label, call.avals).bind(*call.operands)
    return tree_unflatten(call.out_tree, bound)


class _Call:
    """A callback of pytrees as one of flat values, with the types that it promises."""

    def __init__(
        self, callback: Function, promised: Any, args: Any, kwargs: Any, what: str
    ) -> None:
        check_callable(callback, what)
        self.label = f"{what}({name_of(callback)}){place().rstrip()}"
        types, self.out_tree = flatten_held(with_held_types(promised))
        self.avals = tuple(_promised(x, what) for x in types)
        rows, _ = tree_flatten_with_path((args, kwargs))
        self.operands, in_tree = flatten_values((args, kwargs))
        for (path, _), x in zip(rows, self.operands, strict=True):
            if not isinstance(x, Tracer | np.ndarray | _NUMBERS):
                raise ArgumentError(
                    f"{self.label}\nargument {keystr(path)} is a {type(x).__name__}, which is no "
                    "array. Bind other values with functools.partial."
                )
        self.flat: FlatFunction = self._flat(callback, in_tree)

    def _flat(self, callback: Function, in_tree: Any) -> FlatFunction:
        def flat(*values: Any) -> Sequence[Any]:
            args, kwargs = tree_unflatten(in_tree, values)
            leaves, tree = flatten_held(callback(*args, **kwargs))
            if tree != self.out_tree:
                raise TreeError(
                    f"{self.label}\n  expected      {self.out_tree}\n  got           {tree}\n"
                    "The callback must return the structure of result_shape_dtypes."
                )
            return [x if isinstance(x, _NUMBERS) else np.asarray(x) for x in leaves]

        return flat


def _promised(leaf: Any, what: str) -> ShapedArray:
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return ShapedArray(tuple(leaf.shape), check_dtype(np.dtype(leaf.dtype), what))
    if isinstance(leaf, _NUMBERS):
        return aval_of(leaf).strong()
    raise ArgumentError(
        f"{what}: result_shape_dtypes must hold objects with shape and dtype, got a "
        f"{type(leaf).__name__}.{place()} Use funcgrad.ShapeDtypeStruct(shape, dtype)."
    )


@contextmanager
def debug_nans(enable: bool = True) -> Iterator[None]:
    """Raise an error at the operation that produces the first NaN, within a block.

    Compiled functions then run one operation after the other, also in loops and derivatives. So the
    error names your line, the operation, its operands and the step of the loop. A NaN in an
    argument or a constant is no error if the function replaces it; if it reaches the results, the
    error names the argument and the line that has read it. Plain NumPy on concrete arrays, outside
    of any transformation, is not checked.

    The environment variable ``FUNCGRAD_DEBUG_NANS=1`` does the same for a whole process.

    Args: enable: Whether to look for NaNs.
    Raises: NonFiniteError: In the block; a `FloatingPointError`.

    Example:
        >>> f = fg.jit(lambda x: np.log(x) + 1)
        >>> with fg.debug_nans():
        ...     try:
        ...         y = f(-1.0)
        ...     except FloatingPointError as error:
        ...         print(str(error).splitlines()[0])
        log gave the first nan.
    """
    with watching_stepwise("nan", enable):
        yield


@contextmanager
def debug_infs(enable: bool = True) -> Iterator[None]:
    """Raise an error where an operation makes an infinity.

    As `debug_nans`, for infinities; both may be on.

    The environment variable ``FUNCGRAD_DEBUG_INFS=1`` does the same for a whole process.

    Args: enable: Whether to look for infinities.
    Raises: NonFiniteError: In the block; a `FloatingPointError`.

    Example:
        >>> f = fg.jit(lambda x: 1 / x)
        >>> with fg.debug_infs():
        ...     try:
        ...         y = f(0.0)
        ...     except FloatingPointError as error:
        ...         print(str(error).splitlines()[0])
        div gave the first inf.
    """
    with watching_stepwise("inf", enable):
        yield


__all__ = [
    "checking_leaks", "debug_callback", "debug_infs", "debug_nans", "debug_print",
    "debug_python_loops", "io_callback", "pure_callback",
]  # fmt: skip
