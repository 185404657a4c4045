"""Arrays whose elements can be assigned inside of a transformation, and what makes them.

``y = fnp.zeros(n); y[i] = x[i]`` cannot write traced values into an ndarray, and traced values are
not changed. So while a transformation is active, the functions of `funcgrad.numpy` give a
`WritableArray`: a name for a value, traced or not, which an assignment replaces by a changed copy
(`assigned`; compiled programs write in place where nothing else reads the old value). Views are
names for a part of such an array: they read from it and write to it (`funcgrad.numpy.views`).

It is not traced, it stands for its value of the moment: whatever takes an array asks for that value
first (`settled`), and so do arguments and results of transformed functions. No rule of a
primitive and no transformation ever meets one. Outside of transformations nothing is wrapped.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from funcgrad.core.avals import Shape, ShapedArray, aval_of
from funcgrad.core.source import current_location
from funcgrad.core.trace import EVAL, Trace, Tracer, current_trace, describe_location
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.numpy.indexing import (
    IndexUpdateHelper,
    IndexUpdateRef,
    assigned,
    assigned_dtype,
    getitem,
)
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.numpy.views import (
    Indexed,
    Step,
    Strides,
    Watched,
    basic_key,
    keeps_any_order,
    row_major,
    strides_after,
    watch,
)
from funcgrad.primitives.elementwise import convert, select
from funcgrad.primitives.objects import StandsForArray, settled
from funcgrad.primitives.shape import broadcast_to, shape_of

Function = Callable[..., Any]

_ARGUMENT = (
    "it shares its elements with an array that was not made inside of {what}, and those are not "
    "changed"
)
_READ_ONLY = "NumPy's arrays of this kind are read-only, as those that were broadcast"
_PART = "it shares its elements with parts of numbers of another array"
_ORDER = (
    "whether NumPy's reshape is a view here depends on the order in which the elements lie in "
    "memory, which is not known of a computed array"
)


class WritableArray(StandsForArray):
    """A name for an array, whose value assignments replace.

    Args:
        value: Array or tracer.
        strides: How the elements would lie in memory, in elements; ``None`` if that is not known.
        refusal: Why it must not be assigned to, or ``None``.
        owner: The trace inside of which it was made; by default the current one.
        base: What it is a view of.
        step: Which view.
    """

    __slots__ = ("_base", "_owner", "_refusal", "_root", "_seen", "_step", "_strides", "_value",
                 "_version")  # fmt: skip
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        value: Any,
        strides: Strides | None,
        refusal: str | None = None,
        base: WritableArray | None = None,
        step: Step | None = None,
    ) -> None:
        self._value = value
        self._strides = strides
        self._base = base
        self._step = step
        self._version = 0
        if base is None:
            self._root = self
            self._refusal = refusal
            self._owner: Trace = current_trace()
            self._seen = 0
        else:
            self._root = root = base._root
            self._refusal = refusal or base._refusal
            self._owner = base._owner
            self._seen = root._version

    # What it stands for.

    def __jax_array__(self) -> Any:
        if self._base is None or self._seen == self._root._version:
            return self._value
        assert self._step is not None
        value = self._step.read(self._base.__jax_array__())
        if current_trace() is self._owner:
            self._value, self._seen = value, self._root._version
        return value

    @property
    def aval(self) -> ShapedArray:
        return aval_of(self._value)

    @property
    def shape(self) -> Shape:
        return shape_of(self._value)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.aval.size

    def __len__(self) -> int:
        return len(self.__jax_array__())

    def __repr__(self) -> str:
        return repr(self.__jax_array__())

    def __format__(self, spec: str) -> str:
        return format(self.__jax_array__(), spec)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self.__jax_array__()
        if isinstance(value, Tracer):
            return np.asarray(value, dtype)
        # A copy: what is written into it later must not change what was computed from this one.
        return np.array(value, dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Protocols that others ask for.
            raise AttributeError(name)
        found = getattr(self.__jax_array__(), name)
        return public(found) if callable(found) else made(found)

    # Assignment.

    def __setitem__(self, index: Any, value: Any) -> None:
        if type(value) is WritableArray and value._base is self:
            basic = basic_key(self.shape, index)
            if basic is not None and Indexed(self.shape, basic[0]).is_same(value._step):
                return  # `y[1:] += z`, whose view has been changed already
        self.check_writable("x[index] = value")
        self._assign(settled_in(index), as_value(settled_in(value)))

    def _assign(self, index: Any, value: Any) -> None:
        base, step = self._base, self._step
        if base is None:
            self._value = assigned(self._value, index, value)
            self._version += 1
            return
        if isinstance(step, Indexed):
            basic = basic_key(self.shape, index)
            both = step.then(basic[0]) if basic is not None else None
            if both is not None:
                base._assign(both.index, value)
                return
        self._replace(assigned(self.__jax_array__(), index, value))

    def _replace(self, value: Any) -> None:
        """Give all elements other values, of the same shape and dtype."""
        base, step = self._base, self._step
        if base is None:
            self._version += 1
        elif isinstance(step, Indexed):
            base._assign(step.index, value)
        else:
            assert step is not None
            base._replace(step.write(None, value))
        self._value, self._seen = value, self._root._version

    def check_writable(self, what: str) -> None:
        """Raise the error for a change that would be seen where it must not be."""
        trace = current_trace()
        if self._owner is not trace:
            made_in = self._owner.what
            raise ArgumentError(
                f"`{what}` would change {self.aval} inside {trace.what}, but the array was made "
                f"outside of it, inside {made_in}: the change would leak.{_where()}\n"
                "Assign to a copy, y = x.copy(), and return what the outside needs."
            )
        if self._refusal is not None:
            raise ArgumentError(
                f"`{what}` would change {self.aval} inside {trace.what}, but "
                f"{self._refusal.format(what=trace.what)}.{_where()}\n"
                "Assign to a copy: y = x.copy()."
            )

    def change(self, what: str, value: Any) -> WritableArray:
        """Write a result into this array, converted as by NumPy's ``casting="same_kind"``.

        Args:
            what: What is being done, for messages.
            value: Broadcasts to the shape.
        """
        self.check_writable(what)
        dtype, found = self.dtype, aval_of(value)
        if not np.can_cast(found.dtype, dtype, "same_kind"):
            raise DtypeError(
                f"`{what}` gives {found.strong()}, which does not fit into {self.aval} by the rule "
                f"'same_kind'.{_where()}\nWrite x = x + value, or convert the value."
            )
        shape = np.broadcast_shapes(found.shape, self.shape) if found.shape else self.shape
        if shape != self.shape:
            raise ShapeError(
                f"`{what}` gives {found.strong()}, which does not broadcast to {self.aval}."
                f"{_where()}"
            )
        self._replace(broadcast_to(convert(value, dtype), shape))
        return self

    # Reading.

    def __getitem__(self, index: Any) -> Any:
        basic = basic_key(self.shape, index)
        if basic is None:
            return made(getitem(self.__jax_array__(), settled_in(index)))
        step = Indexed(self.shape, basic[0])
        value = step.read(self.__jax_array__())
        if not shape_of(value) and not basic[1]:
            return value
        return self.view_by(step, value)

    def view_by(self, step: Step, value: Any) -> WritableArray:
        """The view that is a step away."""
        if self._strides is None:
            if keeps_any_order(step, shape_of(value)):
                return WritableArray(value, None, None, self, step)
            return WritableArray(value, row_major(shape_of(value)), _ORDER)
        strides = strides_after(step, self._strides, shape_of(value))
        if strides is None:
            return WritableArray(value, row_major(shape_of(value)))
        return WritableArray(value, strides, None, self, step)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    # What NumPy's arrays have that is changed in place.

    @property
    def at(self) -> WritableAt:
        return WritableAt(self.__jax_array__())

    @property
    def T(self) -> Any:
        return self.transpose()

    @property
    def flat(self) -> Any:
        return self.ravel()

    @flat.setter
    def flat(self, value: Any) -> None:
        self[...] = _public_of["resize"](value, self.shape)

    def copy(self, order: str = "C") -> WritableArray:
        return WritableArray(self.__jax_array__(), row_major(self.shape) if order == "C" else None)

    def __copy__(self) -> WritableArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> WritableArray:
        return self.copy()

    def flatten(self, order: str = "C") -> WritableArray:
        return self.ravel(order).copy()

    def fill(self, value: Any) -> None:
        self[...] = value

    def sort(self, axis: int = -1, **options: Any) -> None:
        self.change("x.sort()", settled(_public_of["sort"](self, axis, **options)))

    def partition(self, kth: Any, axis: int = -1) -> None:
        self.change("x.partition()", settled(_public_of["partition"](self, kth, axis)))

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        _public_of["put"](self, indices, values, mode)

    def resize(self, *shape: Any, **options: Any) -> NoReturn:
        raise ArgumentError(
            f"x.resize(...) changes the shape of an array in place.{_where()}\n"
            "Write x = np.resize(x, shape)."
        )

    def setflags(self, write: bool | None = None, **options: Any) -> None:
        if write is not None and not write:
            self._refusal = "it was made read-only"

    def astype(self, dtype: Any, order: str = "K", copy: bool = True, **options: Any) -> Any:
        if not copy and self.dtype == dtype:
            return self
        return made(convert(self.__jax_array__(), np.dtype(dtype)), self._is_ordered())

    @property
    def real(self) -> Any:
        if self.dtype.kind != "c":
            return self[...]
        return made(_public_of["real"](self.__jax_array__()), refusal=_PART)

    @property
    def imag(self) -> Any:
        return made(_public_of["imag"](self.__jax_array__()), refusal=_PART)

    def _is_ordered(self) -> bool:
        """Whether elements lie in row-major order, so that those of a result do."""
        return self._strides == row_major(self.shape)

    def view(self, dtype: Any = None) -> Any:
        if dtype is None or np.dtype(dtype) == self.dtype:
            return self[...]
        return made(_public_of["view"](self.__jax_array__(), dtype), refusal=_ARGUMENT)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        return _public_of["reshape"](self, shape[0] if len(shape) == 1 else shape, order)

    def transpose(self, *axes: Any) -> Any:
        return _public_of["transpose"](self, (axes[0] if len(axes) == 1 else axes) or None)


class WritableAt(IndexUpdateHelper):
    """``x.at`` inside of a transformation: what its methods give can be assigned to."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> _WritableRef:
        return _WritableRef(self.array, settled_in(index))


class _WritableRef(IndexUpdateRef):
    __slots__ = ()


def _made_by(method: Function) -> Function:
    @functools.wraps(method)
    def call(self: IndexUpdateRef, *args: Any, **options: Any) -> Any:
        return made(method(IndexUpdateRef(self.array, self.index), *args, **options), True)

    return call


for _name, _method in vars(IndexUpdateRef).items():
    if not _name.startswith("_") and inspect.isfunction(_method):
        setattr(_WritableRef, _name, _made_by(_method))


def _where() -> str:
    return "".join(f"\n{line}" for line in describe_location(current_location(), "at"))


def copied(x: Any, order: str = "C") -> Any:
    """A copy of a traced array."""
    if not shape_of(x) or current_trace() is EVAL:
        return x
    x = strong(x)
    is_known = order == "C" or len(x.shape) < 2
    return WritableArray(x, row_major(x.shape) if is_known else None)


# Wrapping and unwrapping.


def settled_in(x: Any) -> Any:
    """The value of what is writable, also inside of lists and tuples."""
    kind = type(x)
    if kind is WritableArray:
        return x.__jax_array__()
    if (kind is tuple or kind is list) and any(type(e) in _CONTAINERS for e in x):
        return kind(map(settled_in, x))
    return x


_CONTAINERS = (WritableArray, list, tuple)


def made(x: Any, is_ordered: bool = False, refusal: str | None = None) -> Any:
    """A result that can be assigned to, if it is an array and a transformation is active.

    Args:
        x: Anything; of lists and tuples the elements are taken.
        is_ordered: Whether the elements of an array lie in row-major order.
        refusal: Why it must not be assigned to.
    """
    kind = type(x)
    if kind is np.ndarray or isinstance(x, Tracer):
        ndim = len(x.shape)
        if not ndim or current_trace() is EVAL:
            return x
        x = strong(x)
        is_known = is_ordered or ndim == 1
        return WritableArray(x, row_major(x.shape) if is_known else None, refusal)
    if isinstance(x, tuple) and hasattr(x, "_make"):
        return x._make(made(e, is_ordered, refusal) for e in x)
    if kind is tuple or kind is list:
        return kind(made(e, is_ordered, refusal) for e in x)
    return x


_public_of: dict[str, Function] = {}
"""The functions that users call, by name."""


def public(function: Function, is_ordered: bool = False) -> Function:
    """A function as users call it: inside of a transformation its results are writable.

    Args:
        function: Takes and gives values.
        is_ordered: Whether its results lie in row-major order, whatever its arguments do.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is EVAL:
            return function(*args, **kwargs)
        out = kwargs.pop("out", None) if type(kwargs.get("out")) is WritableArray else None
        if kwargs:
            kwargs = {name: settled_in(x) for name, x in kwargs.items()}
        found = function(*map(settled_in, args), **kwargs)
        return made(found, is_ordered) if out is None else out.change(_named(function), found)

    return _as_public(call, function)


def _named(function: Any) -> str:
    return f"{function.__name__}(..., out=y)"


def _as_public(call: Function, function: Function) -> Function:
    return functools.update_wrapper(call, function)


def creating(function: Function) -> Function:
    """As `public`, of a function that makes a new array in row-major order, also of no axes."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is EVAL:
            return function(*args, **kwargs)
        found = function(*map(settled_in, args), **{k: settled_in(v) for k, v in kwargs.items()})
        if isinstance(found, np.ndarray | Tracer):
            return WritableArray(strong(found), row_major(found.shape))
        return found

    return _as_public(call, function)


def alike(function: Function) -> Function:
    """As `creating`, of a function whose result lies in memory as its first argument does."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is EVAL:
            return function(*args, **kwargs)
        (first, *rest) = args or kwargs.values()
        found = function(*map(settled_in, args), **{k: settled_in(v) for k, v in kwargs.items()})
        if not isinstance(found, np.ndarray | Tracer):
            return found
        if type(first) is WritableArray:
            is_ordered = first._is_ordered()
        elif type(first) is np.ndarray:
            is_ordered = first.flags.c_contiguous
        else:
            is_ordered = not isinstance(first, Tracer)
        is_known = is_ordered or len(found.shape) < 2
        return WritableArray(strong(found), row_major(found.shape) if is_known else None)

    return _as_public(call, function)


def viewing(function: Function) -> Function:
    """As `public`, of a function that moves no elements: of writable arrays it gives views.

    Of other arrays it gives what can be indexed by traced integers, but not assigned to.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is EVAL:
            return function(*args, **kwargs)
        if not args:
            name, *_ = inspect.signature(function).parameters
            args = (kwargs.pop(name),)
        first, *rest = args
        if type(first) is not WritableArray:
            found = function(*map(settled_in, args), **kwargs)
            return found if isinstance(first, Tracer) else made(found, refusal=_ARGUMENT)
        kwargs.pop("copy", None)
        found = watch(function, first.__jax_array__(), trace, *rest, **kwargs)
        return _views(first, found)

    return _as_public(call, function)


def viewing_each(function: Function) -> Function:
    """As `viewing`, of a function of several arrays, each of which it gives back."""
    one = viewing(function)

    def call(*arrays: Any) -> Any:
        return one(*arrays) if len(arrays) == 1 else tuple(map(one, arrays))

    return _as_public(call, function)


def _views(base: WritableArray, found: Any) -> Any:
    if isinstance(found, list | tuple):
        return type(found)(_views(base, x) for x in found)
    if not isinstance(found, Watched):
        return made(found)
    view = base
    for step, value in found.steps:
        view = view.view_by(step, value)
    return view if found.steps else base[...]


def sharing(function: Function) -> Function:
    """As `public`, of a function that gives its argument itself if there is nothing to do."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is EVAL:
            return function(*args, **kwargs)
        first = args[0] if args else None
        found = function(*map(settled_in, args), **{k: settled_in(v) for k, v in kwargs.items()})
        if type(first) is WritableArray and not kwargs.get("copy"):
            is_same = found is first.__jax_array__()
            return first if is_same else made(found, True)
        if isinstance(found, Tracer) and found is first:
            return found
        is_new = kwargs.get("copy") or isinstance(first, list | tuple)
        return made(found, True, None if is_new else _ARGUMENT)

    return _as_public(call, function)


def changing(function: Function) -> Function:
    """As `public`, of a function that changes its first argument unless it is told not to."""

    def call(a: Any, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is EVAL:
            return function(a, *args, **kwargs)
        if type(a) is WritableArray and kwargs.get("inplace", True):
            return put_into(function, a, *args, **kwargs)
        options = {k: settled_in(v) for k, v in kwargs.items()}
        return made(function(settled_in(a), *map(settled_in, args), **options))

    return _as_public(call, function)


def reading(function: Function) -> Function:
    """As `public`, of a function whose results NumPy does not let be written to."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is EVAL:
            return function(*args, **kwargs)
        found = function(*map(settled_in, args), **{k: settled_in(v) for k, v in kwargs.items()})
        return made(found, refusal=_READ_ONLY)

    return _as_public(call, function)


# Operators.


def binary(name: str, is_reflected: bool = False) -> Function:
    """An operator of Python's by its name in `operator`."""
    function = getattr(operator, name)

    def forward(self: WritableArray, other: Any) -> Any:
        return made(function(self.__jax_array__(), settled_in(other)))

    def reflected(self: WritableArray, other: Any) -> Any:
        return made(function(settled_in(other), self.__jax_array__()))

    return reflected if is_reflected else forward


def in_place(name: str, symbol: str) -> Function:
    """An operator that assigns, as ``+=``."""
    function = getattr(operator, name)

    def call(self: WritableArray, other: Any) -> WritableArray:
        found = function(self.__jax_array__(), settled_in(other))
        return self.change(f"x {symbol}= value", found)

    return call


def unary(name: str) -> Function:
    """An operator of one operand."""
    function = getattr(operator, name)
    return lambda self: made(function(self.__jax_array__()))


def converted(name: str) -> Function:
    """A conversion to a number of Python's."""
    return lambda self: getattr(self.__jax_array__(), name)()


# The names of `funcgrad.numpy`, as users call them.

_KINDS: dict[Callable[..., Function], tuple[str, ...]] = {
    creating: ("empty", "full", "ones", "zeros"),
    alike: ("array", "copy", "empty_like", "full_like", "ones_like", "zeros_like"),
    lambda function: public(function, is_ordered=True): (
        "arange", "eye", "fromfunction", "geomspace", "identity", "indices", "linspace", "logspace",
        "tri", "vander",
    ),
    viewing: (
        "array_split", "dsplit", "expand_dims", "flip", "fliplr", "flipud", "hsplit",
        "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "rollaxis", "rot90",
        "split", "squeeze", "swapaxes", "transpose", "unstack", "vsplit",
    ),
    viewing_each: ("atleast_1d", "atleast_2d", "atleast_3d"),
    sharing: ("asarray",),
    changing: ("fill_diagonal", "place", "put", "put_along_axis"),
    reading: ("broadcast_arrays", "broadcast_to", "diag", "diagonal"),
}  # fmt: skip
_NAMED_KINDS = {name: kind for kind, names in _KINDS.items() for name in names}


def publish(module: ModuleType) -> dict[Function, Function]:
    """Put functions as users call them in the place of those that take and give values.

    Args:
        module: The page of names.

    Returns:
        Function -> the same as users call it.
    """
    found: dict[Function, Function] = {}
    for name, function in vars(module).copy().items():
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        kind = _NAMED_KINDS.get(function.__name__, public)
        if function not in found:
            found[function] = kind(function)
            found[function].__module__ = module.__name__
        setattr(module, name, found[function])
    return found


# NumPy's protocols.


def array_ufunc(
    self: WritableArray, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
) -> Any:
    """What NumPy calls for ufuncs and their methods."""
    values = [settled_in(x) for x in inputs]
    name = f"np.{ufunc.__name__}"
    if method == "at":
        return _at(self, ufunc, *inputs)
    out = kwargs.get("out")
    targets = out if isinstance(out, tuple) else (out,)
    if not any(type(t) is WritableArray for t in targets):
        return made(getattr(ufunc, method)(*values, **kwargs))
    del kwargs["out"]
    where = settled_in(kwargs.pop("where", True))
    found = getattr(ufunc, method)(*values, **kwargs)
    results = found if isinstance(found, tuple) else (found,)
    for target, result in zip(targets, results, strict=True):
        if where is not True:
            old = target.__jax_array__()
            result = select.bind(broadcast_to(as_value(where), old.shape), result, old)
        target.change(f"{name}(..., out=y)", result)
    return out if len(targets) > 1 else targets[0]


_AT_METHODS = {
    np.add: "add", np.subtract: "subtract", np.multiply: "multiply", np.divide: "divide",
    np.minimum: "min", np.maximum: "max", np.power: "power",
}  # fmt: skip


def _at(self: WritableArray, ufunc: np.ufunc, array: Any, index: Any, *operands: Any) -> None:
    name = f"np.{ufunc.__name__}.at(x, index, value)"
    if type(array) is not WritableArray:
        raise ArgumentError(
            f"{name} would write traced values into an ndarray.{_where()}\n"
            "Make the array by funcgrad.numpy, as in y = funcgrad.numpy.array(y)."
        )
    ref = IndexUpdateRef(array.__jax_array__(), settled_in(index))
    values = map(settled_in, operands)
    method = _AT_METHODS.get(ufunc)
    array.change(name, getattr(ref, method)(*values) if method else ref.apply(ufunc))


def put_into(function: Function, array: WritableArray, *args: Any, **kwargs: Any) -> None:
    """Change an array in place by a function that gives a changed copy."""
    options = {k: settled_in(v) for k, v in kwargs.items()} | {"inplace": False}
    found = function(array.__jax_array__(), *map(settled_in, args), **options)
    array.change(f"np.{function.__name__}(x, ...)", settled(found))


def copyto(dst: WritableArray, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """As `numpy.copyto`."""
    source, mask = as_value(settled_in(src)), settled_in(where)
    if not np.can_cast(aval_of(source).dtype, dst.dtype, casting) and aval_of(source).shape:
        raise DtypeError(
            f"np.copyto: {aval_of(source)} does not fit into {dst.aval} by the rule {casting!r}."
            f"{_where()}"
        )
    source = assigned_dtype(source, dst.dtype)
    if mask is not True:
        shape = dst.shape
        mask = broadcast_to(as_value(mask), shape)
        source = select.bind(mask, broadcast_to(source, shape), dst.__jax_array__())
    dst.change("np.copyto(x, value)", source)


def putmask(a: WritableArray, mask: Any, values: Any) -> None:
    """As `numpy.putmask`."""
    values = settled(_public_of["resize"](settled_in(values), a.shape))
    copyto(a, values, "unsafe", mask)


IN_PLACE = {np.copyto: copyto, np.putmask: putmask}


def array_function(publics: Mapping[Any, Function]) -> Function:
    """What NumPy calls for its other functions.

    Args:
        publics: NumPy's function -> ours, as users call it.
    """

    def dispatch(self: WritableArray, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in IN_PLACE and type(args[0]) is WritableArray:
            return IN_PLACE[func](*args, **kwargs)
        kwargs = {k: v for k, v in kwargs.items() if k != "like"}
        found = publics.get(func)
        if found is not None:
            return found(*args, **kwargs)
        values = [settled_in(x) for x in args]
        return made(func(*values, **{k: settled_in(v) for k, v in kwargs.items()}))

    return dispatch


def install(
    functions: Mapping[str, Function], publics: Mapping[Any, Function], namespace: Any
) -> None:
    """Give writable arrays their operators, methods and NumPy's protocols.

    Args:
        functions: The functions that users call, by name.
        publics: The same by NumPy's function.
        namespace: The module of these functions.
    """
    _public_of.update(functions)
    members: dict[str, Any] = {
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function(publics),
        "__array_namespace__": lambda self, api_version=None: namespace,
    }
    symbols = {
        "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
        "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "pow": "**",
        "matmul": "@",
    }  # fmt: skip
    for name, symbol in symbols.items():
        plain = f"{name}_" if name in ("and", "or") else name
        members[f"__{name}__"] = binary(plain)
        members[f"__r{name}__"] = binary(plain, is_reflected=True)
        members[f"__i{name}__"] = in_place(plain, symbol)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        members[f"__{name}__"] = binary(name)
    for name in ("neg", "pos", "abs", "invert"):
        members[f"__{name}__"] = unary(name)
    for name in ("bool", "int", "float", "complex", "index"):
        members[f"__{name}__"] = converted(f"__{name}__")
    members["__contains__"] = lambda self, value: settled_in(value) in self.__jax_array__()
    members["__round__"] = lambda self, ndigits=None: _public_of["round"](self, ndigits or 0)
    members["__divmod__"] = lambda self, other: _public_of["divmod"](self, other)
    members["__rdivmod__"] = lambda self, other: _public_of["divmod"](other, self)
    for name in VIEWING_METHODS:
        members[name] = _method_of(_public_of[name])
    members["mT"] = property(_public_of["matrix_transpose"])
    for name in METHODS:
        members[name] = _method_of(_public_of[name])
    for name, member in members.items():
        setattr(WritableArray, name, member)


def _method_of(function: Function) -> Function:
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


VIEWING_METHODS = ("ravel", "swapaxes", "squeeze")
METHODS = (
    "all", "any", "argmax", "argmin", "argsort", "clip", "conj", "conjugate", "cumprod", "cumsum",
    "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "repeat", "round", "searchsorted",
    "std", "sum", "take", "trace", "var", "argpartition", "choose", "ptp",
)  # fmt: skip
