"""References to arrays: what JAX calls ``Ref``, made by `new_ref`.

``ref[i]`` reads and ``ref[i] = value`` writes, outside of transformations an ndarray of its own,
inside of them the value of the moment; who carries it where is told in
`funcgrad.higher_order.cells`. There are no views: what is read stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from funcgrad.base.namespaces import present
from funcgrad.base.placement import check_placement
from funcgrad.core.avals import Shape, aval_of
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.cells import Cell
from funcgrad.numpy.indexing import IndexUpdateRef, assigned, assigned_dtype, indexed
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.numpy.writable import made, unwrapped_in
from funcgrad.observers.source import current_location
from funcgrad.primitives.objects import never_unwrap, unwrapped
from funcgrad.random.key_arrays import KEY, KeyArray

__all__ = [
    "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap",
]  # fmt: skip


class Ref(Cell):
    """A reference to an array that changes; made by `new_ref`.

    ``ref[index]`` is a copy of a part, ``ref[index] = value`` and ``ref[index] += value`` change
    it, with NumPy's indices. `get`, `set`, `swap` and `addupdate` are the same as functions.

    Args: value: The array.

    Example:
        >>> ref = fg.new_ref([1.0, 2.0, 3.0])
        >>> ref[0] += 10.0
        >>> ref[1:] = 0.0
        >>> ref
        Ref([11.,  0.,  0.])
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        never_unwrap(cls)

    @property
    def shape(self) -> Shape:
        """Shape of the array."""
        return self.inside.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the array."""
        return self.inside.dtype

    @property
    def ndim(self) -> int:
        """Number of its axes."""
        return len(self.inside.shape)

    @property
    def size(self) -> int:
        """Number of its elements."""
        return self.inside.size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: this reference holds an array of no axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if self._refusal is None and self.owner is EVAL and current_trace() is EVAL:
            return f"Ref{repr(self._value).removeprefix('array')}"
        return f"Ref<{self.inside}> of {self.owner.what}"

    def __reduce__(self) -> Any:
        return type(self), (self[...],)

    # Reading and writing.

    def __getitem__(self, index: Any) -> Any:
        if self.home() is current_trace() is EVAL:
            found = self._value[unwrapped_in(index)]
            return found.copy() if isinstance(found, np.ndarray) else found
        return made(strong(indexed(self.content(), unwrapped_in(index))), True)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._write(index, value, "ref[index] = value")

    def addupdate(self, x: Any, idx: Any = ...) -> None:
        """Add to elements; those that an index names twice get both.

        Args:
            x: What is added.
            idx: Any index of NumPy's.
        """
        changed = IndexUpdateRef(self.content(), unwrapped_in(idx)).add(unwrapped_in(x))
        self.put(self._fitted(changed), "ref.addupdate(value)")

    def _write(self, index: Any, value: Any, what: str) -> None:
        value, index = as_value(unwrapped_in(value), what), unwrapped_in(index)
        if self.home() is current_trace() is EVAL and not isinstance(value, Tracer):
            value = assigned_dtype(value, self.inside.dtype)
            if self.is_shared:
                self._value, self.is_shared = np.array(self._value), False
            self._value[index] = value
            return
        self.put(self._fitted(assigned(self.content(), index, value)), what)

    def _fitted(self, value: Any) -> Any:
        """A result as an array or a tracer of the type that is held."""
        return strong(value) if isinstance(value, Tracer) else np.asarray(value, self.inside.dtype)

    def shown(self, content: Any) -> Any:
        """The content, or a part of it, as users know it."""
        return content

    def unsafe_buffer_pointer(self) -> int:
        """Address of the array that is held at this moment, outside of transformations."""
        content = self.content()
        if isinstance(content, Tracer):
            raise self.misuse(
                f"a reference to {self.inside} has no address inside of {self.owner.what}."
            )
        return content.ctypes.data

    # Conversions to arrays.

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self.refuse_as_array()

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse_as_array()

    def __array_function__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse_as_array()


never_unwrap(Ref)


class KeyRef(Ref):
    """A reference to an array of random keys, which holds their integers."""

    __slots__ = ()

    @property
    def dtype(self) -> Any:
        """Dtype of keys."""
        return KEY

    def __repr__(self) -> str:
        return f"Ref{repr(self[...]).removeprefix('Array')}"

    def __reduce__(self) -> Any:
        return KeyRef, (self[...].base,)

    def __getitem__(self, index: Any) -> KeyArray:
        return self.shown(super().__getitem__(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        what = "ref[index] = value"
        if not isinstance(value, KeyArray):
            raise self.shown(self.content()).mixed(what)
        self._write(index, value.base, what)

    def addupdate(self, x: Any, idx: Any = ...) -> None:
        """An error: keys are not added."""
        raise self.shown(self.content()).refusal("ref.addupdate")

    def shown(self, content: Any) -> KeyArray:
        return KeyArray(unwrapped(content))


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to a new array that may be changed, also by functions that are transformed.

    A function that makes a reference, changes it and returns what is in it is pure, and works
    under every transformation. One that changes a reference of outside, an argument or one that it
    closes over, changes it for its caller: under `jit`, in loops and branches.

    Args:
        init_val: The first content, copied: an array, a number, or an array of random keys.
        memory_space: Accepted for JAX's signature; ``None``.
        kind: ``None``, or ``"no_grad_no_remat"``, which is of no effect.
    Returns: The reference.
    Raises: DtypeError: If the content is no array.

    Example:
        >>> def harmonic(x, n):
        ...     total = fg.new_ref(0.0)
        ...     def body(i, _):
        ...         total[...] += x / (i + 1)
        ...     fg.lax.fori_loop(0, n, body, None)
        ...     return total[...]
        >>> print(harmonic(1.0, 2), fg.grad(harmonic)(1.0, 2))
        1.5 1.5
    """
    check_placement("new_ref", memory_space=memory_space)
    if kind not in (None, "no_grad_no_remat"):
        raise ArgumentError(f"new_ref: kind must be None or 'no_grad_no_remat', got {kind!r}.")
    if isinstance(init_val, KeyArray):
        if init_val.dtype is not KEY:
            raise ArgumentError(f"new_ref: references hold keys of {KEY}, got {init_val.dtype}.")
        return _made(KeyRef, init_val.base)
    return _made(Ref, init_val)


def _made(kind: type[Ref], init_val: Any) -> Ref:
    if isinstance(init_val, Cell):
        raise ArgumentError("new_ref: references to references are not made. Read it: ref[...].")
    value = as_value(unwrapped_in(init_val), "new_ref")
    if isinstance(value, Tracer):
        return kind(strong(value))
    ref = kind(np.array(value, aval_of(value).dtype))
    ref.is_shared = False
    return ref


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to an array whose elements do not matter; here they are zeros.

    Args:
        ty: What has a shape and a dtype, such as `ShapeDtypeStruct`.
        memory_space: Accepted for JAX's signature; ``None``.
    Example: fg.empty_ref(fg.ShapeDtypeStruct((2,), float)).shape -> (2,)
    """
    return new_ref(np.zeros(ty.shape, ty.dtype), memory_space=memory_space)


def freeze(ref: Ref) -> Any:
    """The array in a reference, which is not used any more.

    Args: ref: The reference, where it was made.
    Returns: The array.
    Raises: ArgumentError: If the reference was made outside of the function that runs.

    Example:
        >>> ref = fg.new_ref([1.0, 2.0])
        >>> ref[0] = 5.0
        >>> fg.freeze(ref)
        array([5., 2.])
    """
    _check(ref, "freeze")
    is_shared = ref.is_shared
    value = ref.end(_ended("was frozen"))
    if current_trace() is EVAL:
        return ref.shown(value.copy() if is_shared else value)
    return ref.shown(made(value, True))


def free_ref(ref: Ref) -> None:
    """Give a reference back, which is not used any more.

    Args: ref: The reference, where it was made.

    Example:
        >>> ref = fg.new_ref(0.0)
        >>> fg.free_ref(ref)
    """
    _check(ref, "free_ref")
    ref.end(_ended("was freed"))


def _ended(how: str) -> str:
    location = current_location()
    where = f" at {location}" if location is not None else ""
    return f"{how}{where}, and is used again. Read it before, or keep what freeze returns."


def get(ref: Ref, idx: Any = None) -> Any:
    """``ref[idx]``, by default all of it.

    Args:
        ref: The reference.
        idx: Any index of NumPy's.
    Example: print(fg.ref.get(fg.new_ref([1.0, 2.0]), 1)) -> 2.0
    """
    _check(ref, "get")
    return ref[... if idx is None else idx]


def set(ref: Ref, idx: Any, value: Any) -> None:
    """``ref[idx] = value``.

    Args:
        ref: The reference.
        idx: Any index of NumPy's; ``None`` for all.
        value: Broadcasts to ``ref[idx]``.

    Example:
        >>> ref = fg.new_ref([1.0, 2.0])
        >>> fg.ref.set(ref, 1, 7.0)
        >>> ref
        Ref([1., 7.])
    """
    _check(ref, "set")
    ref[... if idx is None else idx] = value


def swap(ref: Ref, idx: Any, value: Any) -> Any:
    """Write, and return what was there before.

    Args:
        ref: The reference.
        idx: Any index of NumPy's; ``None`` for all.
        value: Broadcasts to ``ref[idx]``.

    Example:
        >>> ref = fg.new_ref([1.0, 2.0])
        >>> print(fg.ref.swap(ref, 1, 7.0), ref)
        2.0 Ref([1., 7.])
    """
    _check(ref, "swap")
    index = ... if idx is None else idx
    before = ref[index]
    ref[index] = value
    return before


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Add to elements; those that an index names twice get both, unlike by ``ref[idx] += x``.

    Args:
        ref: The reference.
        idx: Any index of NumPy's; ``None`` for all.
        x: What is added.

    Example:
        >>> ref = fg.new_ref([0.0, 0.0])
        >>> fg.ref.addupdate(ref, [1, 1], 1.0)
        >>> ref
        Ref([0., 2.])
    """
    _check(ref, "addupdate")
    ref.addupdate(x, ... if idx is None else idx)


def _check(ref: Any, function: str) -> None:
    if not isinstance(ref, Ref):
        raise ArgumentError(
            f"{function} needs a reference, as new_ref makes them, got a {type(ref).__name__}."
        )


present(__name__)
