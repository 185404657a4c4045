"""The functions that `vjp` and `linearize` return.

Both are pytrees, whose leaves are what they keep of the point: so compiled functions can return
them and take them, and `vmap` can map them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import compress
from typing import Any, NoReturn

import numpy as np

from funcgrad.api.arguments import (
    Owner,
    check_for_nans,
    leaf_paths,
    same_type,
    zeros_for,
    zeros_like,
)
from funcgrad.api.residuals import Skeleton, split
from funcgrad.base.dialect import NUMPY, default_dtype, dialect
from funcgrad.base.error_state import without_warnings
from funcgrad.base.forking import cached_property
from funcgrad.base.pytree import PyTreeDef, register_pytree_node, tree_flatten, tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.base.transformed import BelongsToProcess
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.facets import Facet
from funcgrad.core.primitive import Linear, Primitive
from funcgrad.dtypes import float0
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TreeError
from funcgrad.higher_order.cells import Cell
from funcgrad.higher_order.pullback import pulled
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.objects import flatten_values, unwrapped
from funcgrad.transforms.linearize import LinearMap, TapeEntry

in_tangents: Facet[Callable[..., tuple[Primitive, list[bool]]] | None] = Facet("in_tangents", None)
"""``in_tangents(is_wanted)``: an operation of some of its tangents, the others zero, and flags of
the arguments that it has. For operations with one result that can leave out what others need."""


@dataclass(frozen=True)
class Signature:
    """Structures and types of the arguments and results of a function at a point.

    Args:
        what: How messages call the function.
        in_tree: Structure of its arguments.
        in_avals: Types of their leaves; of a reference that of its content.
        out_tree: Structure of its result.
        out_avals: Types of the leaves of the result.
        refs: Places of references among the leaves. Their final contents are leading results.
    """

    what: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    refs: tuple[int, ...] = ()


@dataclass(frozen=True)
class GradValue:
    """An argument whose cotangent `VjpFunction.with_refs` returns: the default."""


@dataclass(frozen=True)
class DontWant:
    """An argument whose cotangent `VjpFunction.with_refs` does not compute."""


@dataclass(frozen=True)
class GradRef:
    """In place of a cotangent that was added to a reference."""


@dataclass(frozen=True)
class DidntWant:
    """In place of a cotangent that was not computed."""


class LinearFunction(BelongsToProcess):
    """A derivative at a point.

    Args:
        signature: Of the function that it is the derivative of.
        linear: From tangents of all arguments to those of all results.
        kept: Values that results must not share memory with.
    """

    called = "a derivative at a point"
    instead = "Pickle the function and the point."

    def __init__(self, signature: Signature, linear: LinearMap, kept: Sequence[Any]) -> None:
        self.signature = signature
        self.linear = linear
        self.kept = kept

    @cached_property
    def parts(self) -> tuple[list[Any], Skeleton]:
        """The residuals, and the linear map without them."""
        return split(self.linear)

    def zero(self, aval: ShapedArray, i: int, of: str) -> Any:
        """A zero for a value of the point, "inputs" or "outputs", whose type is known."""
        point = self.linear.point
        return zeros_for(aval) if point is None else zeros_like(getattr(point, of)[i])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.signature.what}>"


class VjpFunction(LinearFunction):
    """From a cotangent of the result to a tuple with one for every argument."""

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        s = self.signature
        return self._pull(cotangent, [GradValue()] * len(s.in_avals), self.linear)

    def with_refs(self, *wanted: Any) -> Callable[[Any], tuple[Any, ...]]:
        """The same function, where cotangents of some arguments are added to references.

        A reference that the function was given has its gradient in a reference: before a call that
        holds the cotangent of the final content, usually zeros, afterwards that of the first one.

        Args: *wanted: For every argument a pytree like it, with leaves that say what becomes of the
                cotangent: a reference (`new_ref`) of its shape, to which it is added,
                ``fg.ad.GradValue()`` to return it, or ``fg.ad.DontWant()``, which spares what only
                this cotangent needs.
        Returns: A function of the cotangent of the value that returns a tuple with an entry for
            every argument, ``fg.ad.GradRef()`` and ``fg.ad.DidntWant()`` in the places of the
            others.

        Raises:
            TreeError: If the structure is not that of the arguments.
            ArgumentError: If a reference does not fit, or the gradient of one is to be returned.

        Example:
            >>> import numpy as np, funcgrad as fg
            >>> total = fg.new_ref(np.zeros(2))
            >>> for x in (1.0, 3.0):
            ...     _, pull = fg.vjp(lambda w, x: w * x, np.ones(2), x)
            ...     found = pull.with_refs(total, fg.ad.DontWant())(np.ones(2))
            >>> total
            Ref([4., 4.])
            >>> found
            (GradRef(), DidntWant())
        """
        s = self.signature
        entries, tree = tree_flatten(wanted)
        if tree != s.in_tree:
            raise TreeError(
                f"with_refs of {s.what} needs an entry for every argument.\n"
                f"  expected      {s.in_tree}\n  got           {tree}"
            )
        paths = leaf_paths(wanted, "wanted")
        for i, row in enumerate(zip(entries, s.in_avals, paths, strict=True)):
            self._check_entry(*row, i in s.refs)
        bound = [id(entry) for entry in entries]
        for entry in (entries[i] for i in s.refs):
            # It holds the cotangent of one final content: no sum with others.
            if isinstance(entry, Cell) and bound.count(id(entry)) > 1:
                raise entry.misuse(
                    f"with_refs of {s.what}: a reference to {entry.inside} stands for the gradient "
                    "of a reference, and of another argument.",
                    "Make one for each.",
                )
        is_wanted = [not isinstance(entry, DontWant) for entry in entries]
        linear = self.linear if all(is_wanted) else _in_some_inputs(self.linear, is_wanted)
        return lambda cotangent: self._pull(cotangent, entries, linear)

    def _check_entry(self, entry: Any, aval: ShapedArray, path: str, is_ref: bool) -> None:
        what = f"with_refs of {self.signature.what}: `{path}`"
        if isinstance(entry, Cell):
            if aval.dtype.kind not in "fc" or not same_type(entry.inside, aval):
                raise entry.misuse(
                    f"{what}: the cotangent of {aval.strong()} cannot be added to a reference to "
                    f"{entry.inside}."
                )
        elif not isinstance(entry, GradValue | DontWant):
            raise ArgumentError(
                f"{what} must be a reference, GradValue() or DontWant(), got a "
                f"{type(entry).__name__}."
            )
        elif is_ref and isinstance(entry, GradValue) and aval.dtype.kind in "fc":
            self._refuse_value(what)

    def _refuse_value(self, what: str) -> NoReturn:
        raise ArgumentError(
            f"{what}: an argument is a reference, whose gradient must be accumulated into a "
            "reference. Make one, grad = fg.new_ref(np.zeros(shape)), and bind it with "
            "vjp_fun.with_refs(grad); fg.ad.DontWant() stands for arguments whose gradient is not "
            "needed."
        )

    def _pull(self, cotangent: Any, entries: Sequence[Any], linear: LinearMap) -> tuple[Any, ...]:
        s = self.signature
        finals: list[Any] = []
        for i in s.refs:
            entry, aval = entries[i], s.in_avals[i]
            if isinstance(entry, GradValue) and aval.dtype.kind in "fc":
                self._refuse_value(s.what)
            finals.append(entry.content() if isinstance(entry, Cell) else None)
        cts = check_cotangents(cotangent, s.out_tree, s.out_avals, s.what)
        with without_warnings() as block, block:
            found = pulled(linear, [*finals, *cts])
        own = Owner([*self.kept, *cts])
        filled: list[Any] = []
        for i, (ct, aval, entry) in enumerate(zip(found, s.in_avals, entries, strict=True)):
            if isinstance(entry, DontWant):
                filled.append(DidntWant())
            elif isinstance(entry, GradValue):
                filled.append(self.zero(aval, i, "inputs") if ct is None else own(ct))
            else:
                self._accumulate(entry, ct, i in s.refs)
                filled.append(GradRef())
        values = [x for x in filled if not isinstance(x, GradRef | DidntWant)]
        check_for_nans(s.what, values, (list(self.kept), cotangent))
        return tree_unflatten(s.in_tree, filled)

    def _accumulate(self, ref: Cell, ct: Any, is_of_ref: bool) -> None:
        """Add a cotangent to what a reference holds; that of a reference has it in it already."""
        if is_of_ref:
            ref.put(np.zeros(ref.inside.shape) if ct is None else ct, "with_refs")
        elif ct is not None:
            ref.put(ref.content() + ct, "with_refs")


def _in_some_inputs(linear: LinearMap, is_wanted: Sequence[bool]) -> LinearMap:
    """A linear map of some of its inputs, the others zero, without what only these need."""
    inputs = [x if wanted else None for x, wanted in zip(linear.inputs, is_wanted, strict=True)]
    reached = {slot.index for slot in inputs if slot is not None}
    entries = []
    for entry in linear.entries:
        is_reached = [type(x) is Linear and x.index in reached for x in entry.inputs]
        if any(is_reached):
            rule = in_tangents(entry.primitive)
            if rule is not None:
                primitive, taken = rule(is_reached)
                operands = list(compress(entry.inputs, taken))
                entry = TapeEntry(primitive, operands, entry.first, entry.source)
            entries.append(entry)
            reached.update(entry.outputs)
    outputs = [x if x is not None and x.index in reached else None for x in linear.outputs]
    return LinearMap(inputs, entries, linear.length, outputs, linear.point)


class JvpFunction(LinearFunction):
    """From tangents of the arguments to that of the result."""

    def __call__(self, *tangents: Any) -> Any:
        s = self.signature
        what = f"the linear map of {s.what}"
        dots = check_tangents(s.in_tree, s.in_avals, tangents, what)
        with without_warnings() as block, block:
            pushed = self.linear.push(dots)
        own = Owner([*self.kept, *dots])
        filled = [
            self.zero(a, i, "outputs") if t is None else own(t)
            for i, (t, a) in enumerate(zip(pushed, s.out_avals, strict=True))
        ]
        check_for_nans(s.what, filled, (*self.kept, *tangents))
        return tree_unflatten(s.out_tree, filled)


def _flatten(function: LinearFunction) -> tuple[list[Any], tuple[Signature, Skeleton]]:
    residuals, skeleton = function.parts
    return residuals, (function.signature, skeleton)


def _register(kind: type[LinearFunction]) -> None:
    def unflatten(meta: tuple[Signature, Skeleton], residuals: Sequence[Any]) -> LinearFunction:
        signature, skeleton = meta
        residuals = list(map(unwrapped, residuals))
        function = kind(signature, skeleton.fill(residuals), residuals)
        # Not found again, for the residuals may be anything now.
        function.parts = residuals, skeleton
        return function

    register_pytree_node(kind, _flatten, unflatten, is_transient=True)


_register(VjpFunction)
_register(JvpFunction)
register_pytree_node(GradRef, lambda _: ((), None), lambda _meta, _leaves: GradRef())
register_pytree_node(DidntWant, lambda _: ((), None), lambda _meta, _leaves: DidntWant())


def _rows(
    name: str, given: Any, treedef: PyTreeDef, avals: Sequence[ShapedArray], what: str, like: str
) -> Iterable[tuple[Any, ShapedArray, Callable[[], str]]]:
    """Leaves of directions that must have a structure, with their types and how to name them."""
    leaves, structure = flatten_values(given)
    if structure != treedef and structure != treedef.closed():
        raise TreeError(
            f"the {name} for {what} must have the structure of {like}.\n"
            f"  expected      {treedef.closed()}\n  got           {structure.closed()}"
        )
    paths = [partial(_path, given, name, i) for i in range(len(leaves))]
    return zip(leaves, avals, paths, strict=True)


def _path(tree: Any, name: str, i: int) -> str:
    return leaf_paths(tree, name)[i]


def check_cotangents(
    cotangent: Any, treedef: PyTreeDef, avals: Sequence[ShapedArray], what: str
) -> list[Any]:
    """Leaves of a cotangent of the structure and types of a result, ``None`` where zero."""
    rows = _rows("cotangent", cotangent, treedef, avals, what, "the function's result")
    return [_check_ct(*row, what) for row in rows]


def _check_ct(ct: Any, aval: ShapedArray, path: Callable[[], str], what: str) -> Any:
    if aval.dtype.kind not in "fc":
        return None
    if isinstance(ct, np.ndarray) and ct.dtype == float0:
        return None
    if type(ct) in (int, float, complex) and not aval.shape:
        return aval.dtype.type(ct)
    got = aval_of(ct)
    if _is_exact(got, aval) or _is_narrowed(got, aval):
        return convert(ct, aval.dtype)
    if not same_type(got, aval):
        raise ShapeError(
            f"the cotangent `{path()}` for {what} must have the type of the function's result, "
            f"{aval.strong()}, but is {got.strong()}."
        )
    return ct


def _is_exact(got: ShapedArray, aval: ShapedArray) -> bool:
    """Whether a direction is of integers or bools: SciPy tries linear operators with ``int8``.

    Unlike another floating dtype they do not tell of a precision that got lost. JAX refuses them.
    """
    return got.dtype.kind in "biu" and got.shape == aval.shape and dialect() is NUMPY


def _is_narrowed(got: ShapedArray, aval: ShapedArray) -> bool:
    """Whether a direction has the bits in which the dialect has handed a result over."""
    wanted = default_dtype(aval.dtype)
    return got.shape == aval.shape and got.dtype == wanted != aval.dtype


def check_tangents(
    treedef: PyTreeDef, avals: Sequence[ShapedArray], tangents: Any, what: str
) -> list[Any]:
    """Leaves of tangents of the structure and types of their primals, ``None`` for float0."""
    rows = _rows("tangents", tangents, treedef, avals, what, "the primals")
    return [_check_tangent(*row, what) for row in rows]


def _check_tangent(tangent: Any, aval: ShapedArray, path: Callable[[], str], what: str) -> Any:
    if isinstance(tangent, np.ndarray) and tangent.dtype == float0:
        if aval.dtype.kind in "fc":
            raise DtypeError(f"{what}: the tangent `{path()}` is float0, its primal is {aval}.")
        return None
    if type(tangent) in (int, float, complex) and not aval.shape and aval.dtype.kind in "fc":
        return aval.dtype.type(tangent)
    got = aval_of(tangent)
    if aval.dtype.kind not in "fc":
        raise DtypeError(
            f"{what}: the primal of `{path()}` is {aval}, which has no derivative, so its tangent "
            f"must be np.zeros({aval.shape}, funcgrad.float0), but is {got}. Close over it instead."
        )
    if _is_exact(got, aval):
        return convert(tangent, aval.dtype)
    if not same_type(got, aval):
        raise ShapeError(
            f"{what}: the tangent `{path()}` must have the type of its primal, {aval.strong()}, "
            f"but is {got.strong()}."
        )
    return tangent
