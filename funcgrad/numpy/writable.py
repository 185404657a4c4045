"""Arrays whose elements can be assigned inside of a transformation, and what makes them.

``y = fnp.zeros(n); y[i] = x[i]`` cannot write traced values into an ndarray, and traced values are
not changed. So a transformed function computes with names: its arguments, and what operators,
NumPy's functions and those of `funcgrad.numpy` make of them, are each a `WritableArray`, a name for
a value, traced or not, which an assignment replaces by a changed copy (`assigned`; compiled
programs write in place where nothing else reads the old value). Views are names for a part of such
an array: they read from it and write to it (`funcgrad.numpy.views`). What a view is a part of, and
whether it is a copy, is found when something is written, so that programs that write nothing pay
for no strides.

It is not traced, it stands for its value of the moment: whatever takes an array asks for that value
first (`unwrapped`), and so do arguments and results of transformed functions. No rule of a
primitive and no transformation ever meets one. Outside of transformations nothing is wrapped.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Literal, NoReturn

import numpy as np

from funcgrad.base.dialect import NUMPY, dialect
from funcgrad.core.avals import Shape, ShapedArray, aval_of
from funcgrad.core.trace import EVAL, Trace, Tracer, current_trace
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.numpy import views
from funcgrad.numpy.boxes import known_box, known_key
from funcgrad.numpy.indexing import IndexUpdateHelper, IndexUpdateRef, assigned, indexed
from funcgrad.numpy.promotion import as_value, check_casting, strong
from funcgrad.numpy.selected import Selection, selected
from funcgrad.observers.source import place
from funcgrad.primitives.elementwise import convert, select
from funcgrad.primitives.objects import StandsForArray, array_for_numpy, unwrapped
from funcgrad.primitives.shape import broadcast_to, shape_of
from funcgrad.transforms.stage import StageTracer

Function = Callable[..., Any]

_STAMPS = count(1)
"""Versions of contents; no two writes get the same."""

ROW_MAJOR: Literal["row-major"] = "row-major"
Layout = views.Strides | Literal["row-major"] | None

FUNCTIONS: dict[str, Function] = {}
"""The functions of `funcgrad.numpy` as users call them, which the methods are; see `install`."""

ARGUMENT = (
    "it shares its elements with an array that was not made inside of {what}, and those are not "
    "changed"
)
GIVEN = "it is an argument, or a part of one, and arrays of the caller are not changed"
_OF_ARGUMENTS = "x = x.at[index].set(value), and x = x.at[index].add(value) for `x[index] += value`"
READ_ONLY = "NumPy's arrays of this kind are read-only, as those that were broadcast"
_PART = "it shares its elements with parts of numbers of another array"
_ORDER = (
    "whether NumPy's reshape is a view here depends on the order in which the elements lie in "
    "memory, which is not known of a computed array"
)


class WritableArray(StandsForArray):
    """A name for an array, whose value assignments replace.

    Args:
        value: Array or tracer.
        strides: How the elements would lie in memory, in elements; `ROW_MAJOR` for those of a new
            array, ``None`` if that is not known.
        refusal: Why it must not be assigned to, or ``None``.
    """

    __slots__ = ("_base", "_content", "_owner", "_refusal", "_seen", "_step", "_strides",
                 "_version")  # fmt: skip
    __hash__ = None  # type: ignore[assignment]

    _seen: int
    _step: Any

    def __init__(self, value: Any, strides: Layout, refusal: str | None = None) -> None:
        self._content = value
        self._strides = strides
        self._refusal = refusal
        self._owner: Trace = current_trace()
        self._version = 0
        self._base: WritableArray | None = None

    # Value of the array.

    def __jax_array__(self) -> Any:
        end = self
        while end._base is not None:
            end = end._base
        if self is end or self._seen == end._version:
            return self._content
        base = self.resolved()._base
        if base is None:
            return self._content
        value, root = self._step.read(base.__jax_array__()), self.root
        if current_trace() is root._owner:
            self._content, self._seen = value, root._version
        return value

    @property
    def root(self) -> WritableArray:
        """The array that it is a view of, or itself."""
        found = self.resolved()
        while found._base is not None:
            found = found._base
        return found

    @property
    def is_written(self) -> bool:
        """Whether elements have been assigned."""
        return self.root._version > 0

    @property
    def is_given(self) -> bool:
        """Whether it is an argument, or a part of one."""
        return self.root._refusal is GIVEN

    # Views.

    def view_by(self, way: views.Way, value: Any) -> WritableArray:
        """The view that is a way away, or the copy if NumPy makes one: that is seen later.

        Args:
            way: An index, or a function of shapes and its other arguments.
            value: Elements of the view.
        """
        view = WritableArray(value, None)
        view._base = base = self
        view._step = way
        while base._base is not None:
            base = base._base
        view._seen = base._version
        return view

    def resolved(self) -> WritableArray:
        """Return this array with its base and the step that makes it a view of that resolved."""
        base = self._base
        if base is None or type(self._step) is not tuple:
            return self
        base = base.resolved()
        layout, refusal, is_copy = base._strides, base._refusal, False
        steps = views.steps_of(base.aval, self._step) or [
            (views.Indexed.whole(base.shape), base.shape)
        ]
        for step, shape in steps:
            if layout is None:
                if not views.keeps_any_order(step, shape):
                    layout, refusal, is_copy = ROW_MAJOR, _ORDER, True
                continue
            own = views.row_major(step.shape) if isinstance(layout, str) else layout
            layout = views.strides_after(step, own, shape)
            if layout is None:
                layout, refusal, is_copy = ROW_MAJOR, None, True
        self._strides, self._refusal = layout, refusal
        if is_copy:
            self._base = None
            return self
        for step, shape in steps[:-1]:
            base = base._between(step, shape)
        self._base, self._step = base, steps[-1][0]
        return self

    def _between(self, step: views.Step, shape: Shape) -> WritableArray:
        """A view on the way to another one, which is read when its elements are needed."""
        view = self.view_by(step, np.broadcast_to(self.dtype.type(0), shape))
        view._refusal, view._seen = self._refusal, -1
        return view

    @property
    def aval(self) -> ShapedArray:
        return aval_of(self._content)

    @property
    def shape(self) -> Shape:
        return shape_of(self._content)

    @shape.setter
    def shape(self, shape: Any) -> NoReturn:
        raise ArgumentError(
            f"`x.shape = {shape}` changes the shape of an array in place.{place()}\n"
            "Write x = x.reshape(shape)."
        )

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
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        return repr(self.__jax_array__())

    def __format__(self, spec: str) -> str:
        return format(self.__jax_array__(), spec)

    __array__ = array_for_numpy

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Protocols that others ask for.
            raise AttributeError(name)
        value = self.__jax_array__()
        found = getattr(value, name)
        return _delegated(found, value, self) if callable(found) else made(found)

    @property
    def _value(self) -> Any:
        """The value behind all transformations, as programs for autograd print it."""
        value = self.__jax_array__()
        return value._value if isinstance(value, Tracer) else value

    @property
    def _numba_type_(self) -> Any:
        """The question of compiled functions of Numba, which cannot take traced values."""
        value = self.__jax_array__()
        if isinstance(value, Tracer):
            return value._numba_type_
        raise AttributeError("_numba_type_")

    # Assignment.

    def __setitem__(self, index: Any, value: Any) -> None:
        content = self._content
        is_recorded = type(content) is type(value) is StageTracer and self._owner is content.owner
        if is_recorded and self._base is None and self._refusal is None:
            key = known_key(index)
            box = None if key is None else known_box(content.aval.shape, key)
            found = None if box is None else box.record_overwritten(content, value)
            if found is not None:
                self._content, self._version = found, next(_STAMPS)
                return
        self.check_writable("x[index] = value")
        if type(value) is WritableArray and value.resolved()._base is self:
            basic = views.basic_key(self.shape, index)
            if basic is not None and views.Indexed(self.shape, basic[0]).is_same(value._step):
                return  # `y[1:] += z`, whose view has been changed already
        if type(value) is Selection:
            self.replace(value.written_into(self.__jax_array__(), unwrapped_in(index)))
            return
        self._assign(unwrapped_in(index), as_value(unwrapped_in(value)))

    def _assign(self, index: Any, value: Any) -> None:
        base = self.resolved()._base
        if base is None:
            self._content = assigned(self._content, index, value)
            self._version = next(_STAMPS)
            return
        basic = views.basic_key(self.shape, index)
        both = self._step.then(basic[0]) if basic is not None else None
        if both is not None:
            base._assign(both.index, value)
            return
        self.replace(assigned(self.__jax_array__(), index, value))

    def replace(self, value: Any) -> None:
        """Give all elements other values, of the same shape and dtype."""
        base = self.resolved()._base
        if base is None:
            self._content, self._version = value, next(_STAMPS)
            return
        if isinstance(self._step, views.Indexed):
            base._assign(self._step.index, value)
        else:
            base.replace(self._step.write(None, value))
        self._content, self._seen = value, self.root._version

    def check_writable(self, what: str, allows_given: bool = False, rewrite: str = "") -> None:
        """Raise the error for a change that would be seen where it must not be.

        Args:
            what: The change, for messages.
            allows_given: Whether arguments may be changed, which is not seen outside.
            rewrite: A statement that has the same effect on an argument.
        """
        trace, owner = current_trace(), self.root._owner
        if owner is not trace:
            made_in = owner.what
            raise ArgumentError(
                f"`{what}` would change {self.aval} inside {trace.what}, but the array was made "
                f"outside of it, inside {made_in}: the change would leak.{place()}\n"
                "Assign to a copy, y = x.copy(), and return what the outside needs."
            )
        if self._refusal is not None and not (allows_given and self.is_given):
            is_traced = isinstance(self._content, Tracer)
            raise ArgumentError(
                f"`{what}` would change {'a traced ' * is_traced}{self.aval} inside {trace.what}, "
                f"but {self._refusal.format(what=trace.what)}.{place()}\n"
                + (_advice(rewrite) if self.is_given else "Assign to a copy: y = x.copy().")
            )

    def change(self, what: str, value: Any, allows_given: bool = False) -> WritableArray:
        """Write a result into this array, converted as by NumPy's ``casting="same_kind"``.

        Args:
            what: What is being done, for messages.
            value: Broadcasts to the shape.
            allows_given: Whether arguments may be changed, which is not seen outside.
        """
        self.check_writable(what, allows_given)
        dtype, found = self.dtype, aval_of(value)
        if not np.can_cast(found.dtype, dtype, "same_kind"):
            raise DtypeError(
                f"`{what}` gives {found.strong()}, which does not fit into {self.aval} by the rule "
                f"'same_kind'.{place()}\nWrite x = x + value, or convert the value."
            )
        shape = np.broadcast_shapes(found.shape, self.shape) if found.shape else self.shape
        if shape != self.shape:
            raise ShapeError(
                f"`{what}` gives {found.strong()}, which does not broadcast to {self.aval}."
                f"{place()}"
            )
        self.replace(broadcast_to(convert(value, dtype), shape))
        return self

    # Reading.

    def __getitem__(self, index: Any) -> Any:
        value = self._content if self._base is None else self.__jax_array__()
        key = known_key(index)
        if key is not None:
            box = known_box(shape_of(value), key)
            found = indexed(value, index) if box is None else box.read(strong(value))
            has_ellipsis = Ellipsis in key
            way: views.Way = (None, index)
        else:
            basic = views.basic_key(self.shape, index)
            if basic is None:
                return made(selected(value, unwrapped_in(index)))
            entries, has_ellipsis = basic
            way = views.Indexed(self.shape, entries)
            found = way.read(value)
        if not shape_of(found) and not has_ellipsis:
            return found[()] if isinstance(found, np.ndarray) else found
        return self.view_by(way, found)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    # In-place methods and attributes of NumPy's arrays.

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
        self[...] = FUNCTIONS["resize"](value, self.shape)

    def copy(self, order: str = "C") -> WritableArray:
        return WritableArray(self.__jax_array__(), ROW_MAJOR if order == "C" else None)

    def __copy__(self) -> WritableArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> WritableArray:
        return self.copy()

    def flatten(self, order: str = "C") -> WritableArray:
        return self.ravel(order).copy()

    def fill(self, value: Any) -> None:
        self.check_writable("x.fill(...)", rewrite="x = np.full_like(x, value)")
        self[...] = value

    def sort(self, axis: int = -1, **options: Any) -> None:
        self.check_writable("x.sort(...)", rewrite="x = np.sort(x)")
        self.replace(unwrapped(FUNCTIONS["sort"](self, axis, **options)))

    def partition(self, kth: Any, axis: int = -1) -> None:
        self.check_writable("x.partition(...)", rewrite="x = np.partition(x, kth)")
        self.replace(unwrapped(FUNCTIONS["partition"](self, kth, axis)))

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        FUNCTIONS["put"](self, indices, values, mode)

    def resize(self, *shape: Any, **options: Any) -> NoReturn:
        raise ArgumentError(
            f"x.resize(...) changes the shape of an array in place.{place()}\n"
            "Write x = np.resize(x, shape)."
        )

    def setflags(self, write: bool | None = None, **options: Any) -> None:
        if write is not None and not write:
            self._refusal = "it was made read-only"

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        check_casting(self.aval, np.dtype(dtype), casting)
        if not copy and self.dtype == dtype:
            return self
        return made(convert(self.__jax_array__(), np.dtype(dtype)), self._is_ordered())

    @property
    def real(self) -> Any:
        if self.dtype.kind != "c":
            return self[...]
        return made(FUNCTIONS["real"](self.__jax_array__()), refusal=_PART)

    @property
    def imag(self) -> Any:
        return made(FUNCTIONS["imag"](self.__jax_array__()), refusal=_PART)

    def _is_ordered(self) -> bool:
        """Whether elements lie in row-major order, so that those of a result do."""
        layout = self.resolved()._strides
        return layout is not None and (
            layout == ROW_MAJOR or views.is_row_major(self.shape, layout)
        )

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        if type is None and (dtype is None or np.dtype(dtype) == self.dtype):
            return self[...]
        given = (dtype,) if type is None else (dtype, type)
        return made(self.__jax_array__().view(*given), refusal=ARGUMENT)

    def reshape(self, *shape: Any, order: str = "C", **options: Any) -> Any:
        return FUNCTIONS["reshape"](self, shape[0] if len(shape) == 1 else shape, order, **options)

    def transpose(self, *axes: Any) -> Any:
        return FUNCTIONS["transpose"](self, (axes[0] if len(axes) == 1 else axes) if axes else None)


class WritableAt(IndexUpdateHelper):
    """``x.at`` inside of a transformation: what its methods give can be assigned to."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> _WritableRef:
        return _WritableRef(self.array, unwrapped_in(index))


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


@contextmanager
def in_current_trace(
    roots: Sequence[WritableArray], contents: Sequence[Any]
) -> Iterator[Callable[[], list[WritableArray]]]:
    """Arrays belong to the current trace within a block, and are what they were behind it.

    Args:
        roots: Arrays that are no views.
        contents: Their values in the block, as many as there are; the others keep theirs.
    Returns: What gives those that have been changed in the block.
    """
    trace = current_trace()
    before = [(root._content, root._owner) for root in roots]
    for root in roots:
        root._owner = trace
        root._version = next(_STAMPS)
    for root, content in zip(roots, contents, strict=False):
        root._content = unwrapped(content)
    versions = [root._version for root in roots]
    try:
        yield lambda: [
            root for root, version in zip(roots, versions, strict=True) if root._version != version
        ]
    finally:
        for root, (value, owner) in zip(roots, before, strict=True):
            root._content, root._owner = value, owner
            root._version = next(_STAMPS)


def _advice(rewrite: str) -> str:
    return f"Assign to a copy, x = x.copy(), or write {rewrite or _OF_ARGUMENTS}."


def copied(x: Any, order: str = "C") -> Any:
    """A copy of a traced array."""
    if not shape_of(x) or current_trace() is EVAL:
        return x
    x = strong(x)
    is_known = order == "C" or len(x.shape) < 2
    return WritableArray(x, ROW_MAJOR if is_known else None)


# Wrapping and unwrapping.


def unwrapped_in(x: Any) -> Any:
    """The value of what is writable, also inside of lists and tuples."""
    kind = type(x)
    if kind is WritableArray:
        return x._content if x._base is None else x.__jax_array__()
    if (kind is tuple or kind is list) and any(type(e) in CONTAINERS for e in x):
        return kind(map(unwrapped_in, x))
    return x


CONTAINERS = (WritableArray, list, tuple)


def made(x: Any, is_ordered: bool = False, refusal: str | None = None) -> Any:
    """A result that can be assigned to, if it is an array and a transformation is active.

    Args:
        x: Anything; of lists and tuples the elements are taken.
        is_ordered: Whether the elements of an array lie in row-major order.
        refusal: Why it must not be assigned to.
    """
    if type(x) is np.ndarray:
        shape = x.shape
    elif isinstance(x, Tracer):
        aval = x.aval
        shape = aval.shape
        if not shape:
            return x  # a number, as NumPy's functions give
        if aval.weak_type:
            x = strong(x)
    else:
        return _made_inside(x, is_ordered, refusal)
    if current_trace() is EVAL:
        return x
    is_known = is_ordered or len(shape) < 2
    return WritableArray(x, ROW_MAJOR if is_known else None, refusal)


def as_arguments(leaves: Sequence[Any], is_own: Sequence[bool] = ()) -> Sequence[Any]:
    """Arguments as a function gets them: names, which are bound anew by in-place operators.

    Args:
        leaves: Arguments of a function of the user's, of which traced arrays are wrapped.
        is_own: Which of them it may change, since the caller has given them away.
    """
    if dialect() is not NUMPY:
        return leaves
    found = list(leaves)
    for i, x in enumerate(leaves):
        if isinstance(x, Tracer) and (rank := len(x.aval.shape)):
            value = strong(x) if x.aval.weak_type else x
            refusal = None if i < len(is_own) and is_own[i] else GIVEN
            found[i] = WritableArray(value, ROW_MAJOR if rank == 1 else None, refusal)
    return found


def as_results(leaves: Sequence[Any]) -> Sequence[Any]:
    """Results of a function that was traced, as a function of the user's gets them: see `made`."""
    return leaves if dialect() is not NUMPY else [made(x) for x in leaves]


def _made_inside(x: Any, is_ordered: bool, refusal: str | None) -> Any:
    kind = type(x)
    if isinstance(x, tuple) and hasattr(x, "_make"):
        return x._make(made(e, is_ordered, refusal) for e in x)
    if kind is tuple or kind is list:
        return kind(made(e, is_ordered, refusal) for e in x)
    return x


def _delegated(method: Function, value: Any, own: WritableArray) -> Function:
    """A method of the value that this file does not treat; the value itself keeps its name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        options = {name: unwrapped_in(x) for name, x in kwargs.items()}
        result = method(*map(unwrapped_in, args), **options)
        return own if result is value else made(result)

    return call


def put_result(name: str, target: Any, result: Any, mask: Any) -> Any:
    """Write a result where a mask says so; returns the array."""
    result, mask = unwrapped_in(result), unwrapped_in(mask)
    if target is None:
        return result
    if type(target) is WritableArray:
        if mask is not True:
            old = target.__jax_array__()
            result = select.bind(broadcast_to(as_value(mask), old.shape), result, old)
        return target.change(name, result)
    if not isinstance(target, np.ndarray):
        raise ArgumentError(
            f"{name} would write into an immutable array.{place()}\n"
            "Leave `out` away and bind the result, or write into a copy: y = y.copy()."
        )
    if isinstance(result, Tracer) or isinstance(mask, Tracer):
        raise ArgumentError(
            f"{name} would write traced values into an ndarray.{place()}\n"
            "Make the array by funcgrad.numpy, as in y = funcgrad.numpy.array(y)."
        )
    np.copyto(target, result, where=mask)
    return target
