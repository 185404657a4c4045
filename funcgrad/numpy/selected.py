"""Elements that a traced mask selects: how many they are is not known.

``x[mask]`` of a traced mask is no array. A `Selection` stands for it: all elements of the array,
and the mask. Element by element, functions of selections by one mask are selections again; sums and
their like leave the others out; and ``x[mask] = selection`` writes into the places of the same
mask. So ``x[x > 0] = x[x > 0] ** -1.5`` and ``x[mask].mean()`` have shapes that are known. Whatever
else needs an array of them is an error, as it was before.

Where the mask does not hold, elements are 1, and their cotangents 0: what a function would do with
elements that were not selected is seen nowhere, not even in a derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from funcgrad.core.avals import Shape, aval_of
from funcgrad.core.program import Atom, Equation, Literal, Var
from funcgrad.core.trace import Tracer
from funcgrad.errors import NonConcreteBooleanIndexError
from funcgrad.numpy import elementwise, moments, reducing
from funcgrad.numpy.indexing import indexed, mask_message, traced_mask
from funcgrad.numpy.promotion import as_value, strong, to_dtype
from funcgrad.primitives.elementwise import select
from funcgrad.primitives.objects import StandsForArray, unwrapped
from funcgrad.primitives.shape import broadcast_to, reshape, shape_of
from funcgrad.transforms.batch import BatchTracer
from funcgrad.transforms.jvp import JVPTracer
from funcgrad.transforms.linearize import LinearizeTracer
from funcgrad.transforms.stage import StageTracer

Function = Callable[..., Any]

_ELEMENTWISE = {function.__name__ for function in elementwise.UFUNCS.values()} | {
    "clip", "imag", "nan_to_num", "real", "round", "where",
}  # fmt: skip
_REDUCTIONS: dict[str, Function] = {
    **{name: getattr(reducing, name) for name in ("all", "any", "prod", "sum")},
    **{name: getattr(moments, name) for name in ("mean", "std", "var")},
}


class Selection(StandsForArray):
    """The elements of an array that a traced mask selects.

    Args:
        full: All elements; those that are not selected are never seen.
        mask: The mask, of the leading axes.
    """

    __slots__ = ("full", "mask", "problem")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, full: Any, mask: Tracer) -> None:
        self.full = full
        self.mask = mask
        self.problem = mask_message(mask)

    def __jax_array__(self) -> Any:
        raise self.error()

    def error(self) -> NonConcreteBooleanIndexError:
        """Say that an array was needed; functions that need none catch it, and `answer`."""
        error = NonConcreteBooleanIndexError(self.problem)
        error.selection = self
        return error

    @property
    def dtype(self) -> np.dtype[Any]:
        return aval_of(self.full).dtype

    @property
    def ndim(self) -> int:
        return 1 + len(self._rest)

    @property
    def size(self) -> Any:
        """How many elements are selected, a traced integer."""
        return reducing.count_nonzero(self.mask) * int(np.prod(self._rest))

    @property
    def _rest(self) -> Shape:
        return shape_of(self.full)[len(self.mask.shape) :]

    def __len__(self) -> int:
        raise self.error()

    def __repr__(self) -> str:
        return f"elements of {aval_of(self.full).strong()} that a traced mask selects"

    def __getattr__(self, name: str) -> Any:
        if name in _REDUCTIONS:
            return lambda *args, **options: self.answer(_REDUCTIONS[name], (self, *args), options)
        if name in ("imag", "real"):
            return self._mapped(getattr, (self, name), {})
        if name.startswith("_"):  # Protocols that others ask for.
            raise AttributeError(name)
        raise self.error()

    def copy(self) -> Selection:
        return self

    def astype(self, dtype: Any) -> Selection:
        return Selection(to_dtype(self.full, np.dtype(dtype)), self.mask)

    # Functions.

    def answer(self, function: Function, args: Any, options: Any) -> Any:
        """The result of a function of the elements, if it needs no array of them.

        Raises: NonConcreteBooleanIndexError: If it does.
        """
        if function.__name__ in _ELEMENTWISE:
            return self._mapped(function, args, options)
        reduction = _REDUCTIONS.get(function.__name__)
        if reduction is None or args[0] is not self or len(args) > 2 or options.keys() - {"axis"}:
            raise self.error()
        axis = options.get("axis", args[1] if len(args) == 2 else None)
        if axis not in (None, 0):
            raise self.error()
        axes = None if axis is None else tuple(range(len(self.mask.shape)))
        return reduction(self.full, axis=axes, where=self.places())

    def _mapped(self, function: Function, args: Any, options: Any) -> Selection:
        """A function of elements."""
        if options:
            raise self.error()
        return Selection(strong(function(*map(self._operand, args))), self.mask)

    def _operand(self, x: Any) -> Any:
        """An operand of a function of elements as one of all of them."""
        if type(x) is Selection:
            if not is_same_value(x.mask, self.mask):
                raise x.error()
            return x.full
        if not isinstance(x, str) and len(shape_of(as_value(unwrapped(x)))) > len(self._rest):
            raise self.error()  # as many as are selected
        return x

    def places(self) -> Any:
        """The mask, in the shape of all elements."""
        axes = (*self.mask.shape, *(1,) * len(self._rest))
        return broadcast_to(reshape(self.mask, axes), shape_of(self.full))

    def written_into(self, x: Any, index: Any) -> Any:
        """A copy of an array with the elements in the places of a mask, which must be the same."""
        mask = traced_mask(index)
        if mask is None or not is_same_value(mask, self.mask) or shape_of(x) != shape_of(self.full):
            raise self.error()
        return select.bind(self.places(), to_dtype(self.full, aval_of(x).dtype), x)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or ufunc not in elementwise.UFUNCS:
            raise self.error()
        return self._mapped(ufunc, inputs, options)

    def __array_function__(self, function: Function, types: Any, args: Any, options: Any) -> Any:
        return self.answer(function, args, options)


def _refusing(self: Selection, *args: Any) -> Any:
    raise self.error()


for _name in ("__getitem__", "__setitem__", "__iter__", "__matmul__", "__rmatmul__"):
    setattr(Selection, _name, _refusing)


def _operator(name: str) -> Function:
    def apply(self: Selection, *args: Any) -> Any:
        return self._mapped(getattr(Tracer, name), (self, *args), {})

    return apply


def install_selections(operators: list[str]) -> None:
    """Give selections the operators of traced arrays."""
    for name in operators:
        setattr(Selection, name, _operator(name))


def selected(x: Any, index: Any) -> Any:
    """``x[index]`` as users write it; a `Selection` if the index is a traced mask."""
    kind = type(index)
    if kind is int or kind is slice or (kind is tuple and len(index) != 1):
        return indexed(x, index)
    mask = traced_mask(index) if isinstance(x, Tracer) else None
    if mask is None or not mask.aval.size or aval_of(x).dtype.kind not in "biufc":
        return indexed(x, index)
    if mask.shape != x.shape[: len(mask.shape)]:
        return indexed(x, index)
    x = strong(x)
    found = Selection(x, mask)
    others = broadcast_to(np.ones((), x.dtype), x.shape)
    found.full = select.bind(found.places(), x, others)
    return found


# Equal masks.


def is_same_value(a: Any, b: Any) -> bool:
    """Whether two values are one, or follow from equal values by equal operations."""
    if a is b:
        return True
    if type(a) is not type(b) or not isinstance(a, Tracer) or a.owner is not b.owner:
        return isinstance(a, np.ndarray) and type(a) is type(b) and bool(np.array_equal(a, b))
    if isinstance(a, BatchTracer):
        return is_same_value(a.value, b.value)
    if isinstance(a, JVPTracer | LinearizeTracer):
        return is_same_value(a.primal, b.primal)
    if isinstance(a, StageTracer):
        return _Names(a.owner.equations).are_equal(a.atom, b.atom)
    return False


class _Names:
    """The names of a program that is being traced.

    Args: equations: So far; they are searched from the last one on.
    """

    def __init__(self, equations: list[Equation]) -> None:
        self.rest: Iterator[Equation] = reversed(equations)
        self.makers: dict[Atom, tuple[Equation, int]] = {}
        self.known: dict[tuple[Atom, Atom], bool] = {}

    def _maker(self, var: Atom) -> tuple[Equation | None, int]:
        while var not in self.makers:
            equation = next(self.rest, None)
            if equation is None:
                return None, 0
            self.makers.update((x, (equation, i)) for i, x in enumerate(equation.outputs))
        return self.makers[var]

    def are_equal(self, a: Atom, b: Atom) -> bool:
        """Whether two names stand for equal values."""
        if a is b:
            return True
        if isinstance(a, Literal) or isinstance(b, Literal):
            return isinstance(a, Literal) and isinstance(b, Literal) and _are_bits_equal(a, b)
        found = self.known.get((a, b))
        if found is None:
            found = self.known[a, b] = self._follow(a, b)
        return found

    def _follow(self, a: Var, b: Var) -> bool:
        (first, i), (second, j) = self._maker(a), self._maker(b)
        if first is None or second is None or i != j or first.primitive != second.primitive:
            return False
        if first.primitive.is_effectful or len(first.inputs) != len(second.inputs):
            return False
        return all(map(self.are_equal, first.inputs, second.inputs))


def _are_bits_equal(a: Literal, b: Literal) -> bool:
    x, y = np.asarray(a.value), np.asarray(b.value)
    return a.aval == b.aval and x.tobytes() == y.tobytes()
