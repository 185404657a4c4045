"""The functions of `funcgrad.numpy` as users call them.

The functions behind them take and give values: arrays and tracers. Inside of a transformation what
users get can be indexed by traced integers and, mostly, assigned to: every function is of one kind
of the table below, which says how its results share elements with its arguments, as NumPy's do.
Outside of transformations a call costs one question more. Where a function asks arrays of random
keys for numbers, the keys say what it gives for them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from funcgrad.base.namespaces import present
from funcgrad.base.signatures import signature_of, write_out
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.dtypes import float0
from funcgrad.errors import KeyArrayError, NonConcreteBooleanIndexError
from funcgrad.numpy.elementwise import DIRECT, UFUNCS
from funcgrad.numpy.promotion import strong
from funcgrad.numpy.writable import (
    ARGUMENT,
    CONTAINERS,
    READ_ONLY,
    ROW_MAJOR,
    WritableArray,
    WritableAt,
    copied,
    made,
    put_result,
    unwrapped_in,
)
from funcgrad.primitives.objects import unwrapped
from funcgrad.scalar_tape import FUNCTIONS, NumberTracer

Function = Callable[..., Any]

_UFUNC_OF = {function: ufunc for ufunc, function in UFUNCS.items() if ufunc.nin == 1}
_OPERANDS = {function: ufunc.nin for ufunc, function in UFUNCS.items() if ufunc.nout == 1}
_TARGETS = (np.ndarray, WritableArray, tuple)


def public(function: Function, is_ordered: bool = False) -> Function:
    """A function as users call it: inside of a transformation its results are writable.

    Args:
        function: Takes and gives values.
        is_ordered: Whether its results lie in row-major order, whatever its arguments do.
    """
    most = _OPERANDS.get(function, sys.maxsize)

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > most or kwargs.get("out") is not None:
            return _written(function.__name__, call, args, kwargs, most)
        try:
            if current_trace() is EVAL:
                return function(*args, **kwargs)
            values = [
                x._content
                if type(x) is WritableArray and x._base is None
                else (unwrapped_in(x) if type(x) in CONTAINERS else x)
                for x in args
            ]
            if not kwargs:
                return made(function(*values), is_ordered)
            found = function(*values, **{name: unwrapped_in(x) for name, x in kwargs.items()})
            return made(found, is_ordered)
        except KeyArrayError as error:
            return error.keys.answer(function, args, kwargs)
        except NonConcreteBooleanIndexError as error:
            if error.selection is None:
                raise
            return error.selection.answer(function, args, kwargs)

    ufunc = _UFUNC_OF.get(function)
    return _as_public(call if ufunc is None else _of_one(call, function, ufunc), function)


def _of_one(general: Function, function: Function, ufunc: np.ufunc) -> Function:
    """A function of one argument with short paths for traced numbers and arrays."""
    of_number: Function | None = None
    primitive = DIRECT.get(ufunc)

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal of_number
        trace = current_trace()
        if trace is EVAL and not kwargs and len(args) == 1:
            try:
                return function(*args)
            except KeyArrayError as error:
                return error.keys.answer(function, args, kwargs)
        if kwargs or len(args) != 1:
            return general(*args, **kwargs)
        (x,) = args
        if type(x) is NumberTracer:
            if of_number is None:
                of_number = FUNCTIONS[ufunc] or general
            return of_number(x)
        if type(x) is WritableArray and x._base is None:
            x = x._content
        if primitive is None or not isinstance(x, Tracer):
            return general(*args)
        aval = x.aval
        kind = aval.dtype.kind
        if aval.weak_type or kind not in "fc" or kind not in primitive.kinds:
            return general(*args)
        out = trace.process(primitive, (x,))
        rank = len(aval.shape)
        return WritableArray(out, ROW_MAJOR if rank < 2 else None) if rank else out

    return call


def _written(
    name: str, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], most: int
) -> Any:
    """Write results of a function into arrays, which ``out`` or a further argument names."""
    if len(args) > most:
        args, (out, *others) = args[:most], args[most:]
        if others or "out" in kwargs or type(out) not in _TARGETS:
            raise TypeError(
                f"{name} takes {most} arrays, and one more for the result: got "
                f"{most + 1 + len(others)} arguments."
            )
    else:
        out = kwargs.pop("out")
    # Other functions leave out what ``where`` does not select.
    mask = kwargs.pop("where", True) if most < sys.maxsize else True
    found = function(*args, **kwargs)
    targets = out if isinstance(out, tuple) else (out,)
    results = found if isinstance(found, tuple) else (found,)
    if len(targets) != len(results):
        raise TypeError(f"{name} has {len(results)} results: got {len(targets)} arrays for them.")
    pairs = zip(targets, results, strict=True)
    done = [put_result(f"{name}(..., out=y)", y, result, mask) for y, result in pairs]
    return tuple(done) if isinstance(found, tuple) else done[0]


def _as_public(call: Function, function: Function) -> Function:
    return functools.update_wrapper(call, function)


def _kind(result: Function) -> Callable[[Function], Function]:
    """Make a wrapper of functions from what their results become inside of a transformation.

    Args: result: ``(found, args, kwargs) -> result``, where ``found`` was computed from values.
    """

    def wrap(function: Function) -> Function:
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                if current_trace() is EVAL:
                    return function(*args, **kwargs)
                options = {k: unwrapped_in(v) for k, v in kwargs.items()}
                return result(function(*map(unwrapped_in, args), **options), args, kwargs)
            except KeyArrayError as error:
                return error.keys.answer(function, args, kwargs)

        return _as_public(call, function)

    return wrap


@_kind
def creating(found: Any, *_: Any) -> Any:
    """Functions that make a new array in row-major order, also of no axes."""
    if isinstance(found, np.ndarray | Tracer) and found.dtype != float0:
        return WritableArray(strong(found), ROW_MAJOR)
    return found


@_kind
def alike(found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Functions whose result lies in memory as their first argument does."""
    if not isinstance(found, np.ndarray | Tracer):
        return found
    first = next(iter(args or kwargs.values()))
    if type(first) is WritableArray:
        is_ordered = first._is_ordered()
    elif type(first) is np.ndarray:
        is_ordered = first.flags.c_contiguous
    else:
        is_ordered = not isinstance(first, Tracer)
    is_known = is_ordered or len(found.shape) < 2
    return WritableArray(strong(found), ROW_MAJOR if is_known else None)


@_kind
def reading(found: Any, *_: Any) -> Any:
    """Functions whose results NumPy makes read-only."""
    return made(found, refusal=READ_ONLY)


def viewing(function: Function) -> Function:
    """Wrap a function that moves no elements: of writable arrays it returns views.

    Of other arrays it gives what can be indexed by traced integers, but not assigned to.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if current_trace() is EVAL:
                return function(*args, **kwargs)
            if not args:
                name, *_ = signature_of(function).parameters
                args = (kwargs.pop(name),)
            first, *rest = args
            if type(first) is not WritableArray:
                found = function(*map(unwrapped_in, args), **kwargs)
                return found if isinstance(first, Tracer) else made(found, refusal=ARGUMENT)
            is_copied = kwargs.pop("copy", False)
            found = _views(first, function, rest, kwargs)
            return found.copy() if is_copied else found
        except KeyArrayError as error:
            return error.keys.answer(function, args, kwargs)

    return _as_public(call, function)


def raveling(function: Function) -> Function:
    """Wrap a function that returns a view, or a copy where elements do not lie in order."""
    view = viewing(function)

    def call(a: Any, *args: Any, **kwargs: Any) -> Any:
        found = view(a, *args, **kwargs)
        if type(a) is not WritableArray or a.resolved()._strides is None or a._is_ordered():
            return found
        return found.copy()

    return _as_public(call, function)


def viewing_each(function: Function) -> Function:
    """Wrap a function that returns views of several arrays."""
    one = viewing(function)

    def call(*arrays: Any) -> Any:
        return one(*arrays) if len(arrays) == 1 else tuple(map(one, arrays))

    return _as_public(call, function)


def _views(base: WritableArray, function: Function, args: list[Any], options: Any) -> Any:
    """Views of an array by a function of shapes."""
    found = function(base.__jax_array__(), *args, **options)
    given = [x.copy() if type(x) in (list, np.ndarray) else x for x in args]
    if isinstance(found, list | tuple):
        ways = ((function, given, options, i) for i in range(len(found)))
        return type(found)(map(base.view_by, ways, found))
    return base.view_by((function, given, options, None), found)


_NEW = (list, tuple, np.generic, int, float, complex)
"""Types of which NumPy makes arrays that share no elements with them."""


@_kind
def sharing(found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Functions that return their argument itself if there is nothing to do."""
    first = args[0] if args else None
    if type(first) is WritableArray and not kwargs.get("copy"):
        return first if found is first.__jax_array__() else made(found, True)
    if isinstance(found, Tracer) and found is first:
        return copied(found) if kwargs.get("copy") else found
    is_new = kwargs.get("copy") or isinstance(first, _NEW)
    return made(found, True, None if is_new else ARGUMENT)


def put_into(function: Function, array: WritableArray, *args: Any, **kwargs: Any) -> None:
    """Change an array in place by a function that gives a changed copy."""
    name = function.__name__
    rewrite = f"x = funcgrad.numpy.{name}(x, ..., inplace=False)"
    array.check_writable(f"np.{name}(x, ...)", rewrite=rewrite)
    options = {k: unwrapped_in(v) for k, v in kwargs.items()} | {"inplace": False}
    found = function(array.__jax_array__(), *map(unwrapped_in, args), **options)
    array.change(f"np.{name}(x, ...)", unwrapped(found))


def contiguous(function: Function) -> Function:
    """Wrap a function that copies its argument unless the elements lie in order."""
    share = sharing(function)

    def call(a: Any, *args: Any, **kwargs: Any) -> Any:
        found = share(a, *args, **kwargs)
        if type(a) is not WritableArray or found is not a or a._is_ordered():
            return found
        return found.copy()

    return _as_public(call, function)


def changing(function: Function) -> Function:
    """Wrap a function that changes its first argument unless it is told not to."""

    def call(a: Any, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is EVAL:
            return function(a, *args, **kwargs)
        if type(a) is WritableArray and kwargs.get("inplace", True):
            return put_into(function, a, *args, **kwargs)
        options = {k: unwrapped_in(v) for k, v in kwargs.items()}
        return made(function(unwrapped_in(a), *map(unwrapped_in, args), **options))

    return _as_public(call, function)


def reading_parts(function: Function) -> Function:
    """Wrap a function that gives an attribute of its argument, which may share elements."""
    of_others = public(function)

    def call(val: Any) -> Any:
        return getattr(val, function.__name__) if type(val) is WritableArray else of_others(val)

    return _as_public(call, function)


def replacing(function: Function) -> Function:
    """Wrap a function that changes its first argument if it is not to copy it."""
    copying = public(function)

    def call(x: Any, copy: bool = True, *args: Any, **kwargs: Any) -> Any:
        found = copying(x, copy, *args, **kwargs)
        if not copy and type(x) is WritableArray:
            return x.change(f"np.{function.__name__}(x, copy=False)", unwrapped_in(found))
        if not copy and type(x) is np.ndarray and current_trace() is EVAL:
            np.copyto(x, found)
            return x
        return found

    return _as_public(call, function)


def updating(function: Function) -> Function:
    """Wrap ``at``."""

    def call(x: Any) -> Any:
        if current_trace() is EVAL:
            return function(x)
        return WritableAt(function(unwrapped_in(x)).array)

    return _as_public(call, function)


_KINDS: dict[Callable[..., Function], tuple[str, ...]] = {
    creating: ("empty", "full", "ones", "zeros"),
    alike: ("array", "copy", "empty_like", "full_like", "ones_like", "zeros_like"),
    lambda function: public(function, is_ordered=True): (
        "arange", "eye", "fromfunction", "geomspace", "identity", "indices", "linspace", "logspace",
        "outer", "tri", "vander",
    ),
    viewing: (
        "array_split", "dsplit", "expand_dims", "flip", "fliplr", "flipud", "hsplit",
        "matrix_transpose", "moveaxis", "permute_dims", "reshape", "rollaxis", "rot90",
        "split", "squeeze", "swapaxes", "transpose", "unstack", "vsplit",
    ),
    raveling: ("ravel",),
    viewing_each: ("atleast_1d", "atleast_2d", "atleast_3d"),
    sharing: ("asanyarray", "asarray"),
    contiguous: ("ascontiguousarray",),
    changing: ("fill_diagonal", "place", "put", "put_along_axis"),
    updating: ("at",),
    reading_parts: ("imag", "real"),
    replacing: ("nan_to_num",),
    reading: ("broadcast_arrays", "broadcast_to", "diag", "diagonal"),
}  # fmt: skip
_NAMED_KINDS = {name: kind for kind, names in _KINDS.items() for name in names}


def wrap_module(module: ModuleType) -> tuple[dict[Function, Function], dict[str, Function]]:
    """Put functions as users call them in the place of those that take and give values.

    Returns: Function -> the same as users call it; name -> the function of values.
    """
    found: dict[Function, Function] = {}
    originals: dict[str, Function] = {}
    for name, function in vars(module).copy().items():
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        kind = _NAMED_KINDS.get(function.__name__, public)
        if function not in found:
            write_out(function)
            found[function] = kind(function)
            # Functions are pickled by the name of their module.
            found[function].__module__ = module.__name__
            if not function.__module__.startswith("funcgrad."):
                own, original = found[function], f"numpy.{function.__name__}"
                own.__doc__ = f"As `{original}`.\n\n``help({original})`` describes its arguments."
        setattr(module, name, found[function])
        originals[name] = function
    return found, originals


def present_results(package: str, fallback: str = "") -> None:
    """Present a package; inside of transformations, users can assign to its functions' results.

    Outside a call costs one question more. Functions that return an argument give it itself.

    Args:
        package: Its name; it is imported already.
        fallback: As of `present`.
    """
    module = sys.modules[package]
    for name in module.__all__:
        function = vars(module).get(name)
        if inspect.isfunction(function) and function.__module__.startswith("funcgrad."):
            write_out(function)
            vars(module)[name] = _with_results(function, package)
    present(package, fallback)


def _with_results(function: Function, package: str) -> Function:
    """A function of values with results that can be assigned to, under the name of its package."""
    if getattr(function, "is_host_function", False):
        return function
    known: Function | None = vars(function).get("public")  # by another package, too
    if known is not None:
        return known

    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if current_trace() is EVAL:
            return found
        same = [x for x in (*args, *kwargs.values()) if unwrapped_in(x) is found]
        return same[0] if same else made(found)

    wrapper = _as_public(call, function)
    wrapper.__module__ = package
    for each in (function, wrapper):
        vars(each)["public"] = wrapper
    return wrapper
