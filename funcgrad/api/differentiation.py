"""grad, value_and_grad, vjp, jvp, linearize and linear_transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.api.arguments import (
    Function,
    Owner,
    aval_of_argument,
    check_callable,
    check_for_nans,
    leaf_paths,
    name_of,
    normalize_argnums,
    zeros_for,
    zeros_like,
)
from funcgrad.api.linear_functions import (
    JvpFunction,
    Signature,
    VjpFunction,
    check_cotangents,
    check_tangents,
)
from funcgrad.base import pytree
from funcgrad.base.annotations import Values
from funcgrad.base.error_state import without_warnings
from funcgrad.base.transformed import HoldsProgram, Wrapper
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.observers import OBSERVED
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.higher_order.cells import Rows, fill_cells, passing_cells, rows_of
from funcgrad.higher_order.linearity import nonlinear_entry
from funcgrad.higher_order.pullback import pulled
from funcgrad.higher_order.reroll import rerolled
from funcgrad.higher_order.staging import put_back
from funcgrad.numpy.writable import as_arguments
from funcgrad.primitives import objects
from funcgrad.primitives.elementwise import stop_gradient as stop_gradient_p
from funcgrad.scalar_tape import linearize_once
from funcgrad.transforms.jvp import jvp_flat
from funcgrad.transforms.linearize import LinearMap, linearize_flat, record_linear


def grad(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Function:
    """The gradient of a scalar-valued function.

    Args: fun: Maps arrays, or pytrees of them, to a scalar; with ``has_aux`` to a pair of a scalar
            and anything. Plain NumPy and SciPy functions work.
    Returns: A function of the same arguments that returns the gradient: of the structure, shapes
        and dtypes of the argument (a tuple of them if ``argnums`` is a sequence), with ``has_aux``
        paired with the extra results.

    Raises:
        DtypeError: If an argument to differentiate is not floating, or the result is not.
        ShapeError: If the result is not a scalar.

    Example:
        >>> float(fg.grad(np.tanh)(0.0))
        1.0
        >>> fg.grad(lambda w: np.sum(w * w))(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    check_callable(fun, "grad")
    return _Gradient(grad, fun, argnums, has_aux, holomorphic, allow_int)


def value_and_grad(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Function:
    """The value and the gradient of a scalar-valued function, in one evaluation.

    Args: fun: A function whose result is a real scalar, or ``(scalar, extra)`` with ``has_aux``.
    Returns: A function that returns ``(value, gradient)``; with ``has_aux``
        ``((value, extra), gradient)``.

    Raises:
        DtypeError: If an argument to differentiate is not floating, or the result is not.
        ShapeError: If the result is not a scalar.

    Example:
        >>> value, slope = fg.value_and_grad(lambda x: x ** 3)(2.0)
        >>> float(value), float(slope)
        (8.0, 12.0)
    """
    check_callable(fun, "value_and_grad")
    return _Gradient(value_and_grad, fun, argnums, has_aux, holomorphic, allow_int)


_DOUBLES = frozenset((float, np.float64))
_FLOAT = frozenset((float,))
_ONE = np.float64(1.0)
_FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))
_LEAF = pytree.tree_structure(0.0)


class Differential:
    """Value and gradient of a function at arguments, without a function that is named like it.

    Args:
        fun: The function.
        what: How messages call the transformation.

    The others are parameters of `value_and_grad`.
    """

    __slots__ = ("_call", "_treedef")

    def __init__(
        self,
        fun: Function,
        what: str,
        argnums: int | Sequence[int] = 0,
        has_aux: bool = False,
        holomorphic: bool = False,
        allow_int: bool = False,
    ) -> None:
        self._call = fun, argnums, has_aux, holomorphic, allow_int, what
        self._treedef: pytree.PyTreeDef | None = None  # that of the last call

    def at(self, args: Values, kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
        """The value, the extra results (``None`` if there are none), and the gradient."""
        fun, argnums, has_aux, holomorphic, allow_int, what = self._call
        chosen = (0,) if argnums == 0 and args else normalize_argnums(argnums, len(args), what)
        dynamic = args[chosen[0]] if isinstance(argnums, int) else tuple(args[i] for i in chosen)
        is_one = type(dynamic) in _DOUBLES or (
            type(dynamic) is np.ndarray and dynamic.dtype in _FLOATS
        )
        if is_one:
            leaves, treedef = [dynamic], _LEAF
        else:
            leaves, treedef = objects.flatten_values(dynamic, self._treedef)
            self._treedef = treedef
        is_numeric = _DOUBLES.issuperset(map(type, leaves))
        is_active = (
            [True] * len(leaves)
            if not holomorphic and (is_one or is_numeric)
            else [
                (
                    is_differentiable(x, holomorphic, allow_int, True)
                    or refuse_input(args, chosen, what, i, x)
                )
                is True
                for i, x in enumerate(leaves)
            ]
        )
        aux_tree: list[pytree.PyTreeDef] = []

        def flat(*leaves_: Any) -> list[Any]:
            # Numbers need no writable wrappers: nobody assigns to their elements.
            given = leaves_ if is_numeric else as_arguments(leaves_)
            inner = given[0] if is_one else pytree.tree_unflatten(treedef, given)
            if isinstance(argnums, int):
                full = (*args[: chosen[0]], inner, *args[chosen[0] + 1 :])
            else:
                replaced = dict(zip(chosen, inner, strict=True))
                full = tuple(replaced.get(i, a) for i, a in enumerate(args))
            out = fun(*full, **kwargs)
            return [objects.unwrapped(out)] if not has_aux else split_aux(out, aux_tree, what)

        with without_warnings() as block, block:
            of_numbers = not (axes_in_scope() or _DOUBLES.isdisjoint(map(type, leaves)))
            split = linearize_once if of_numbers else linearize_flat
            fun_flat = rerolled(flat, leaves, what) if current_trace().is_staged else flat
            outs, linear = split(fun_flat, leaves, is_active, what)
            value = outs[0]
            one = _check_scalar(value, holomorphic, what)
            cts = pulled(linear, [one] + [None] * (len(outs) - 1))
        if _FLOAT.issuperset(map(type, cts)):
            gradient = list(map(np.float64, cts))
        else:
            own = Owner((*leaves, value))
            gradient = [
                zeros_like(x) if ct is None else own(_typed_like(ct, x))
                for ct, x in zip(cts, leaves, strict=True)
            ]
        value = _plain_scalar(value)
        if OBSERVED.computed:
            check_for_nans(what, [value, *gradient], args, kwargs)
        found = gradient[0] if is_one else pytree.tree_unflatten(treedef, gradient)
        extra = pytree.tree_unflatten(aux_tree[0], outs[1:]) if has_aux else None
        return value, extra, found


class _Gradient(Wrapper):
    """A function that computes the gradient of another one, and its value if it is asked for.

    Args: transformation: `grad` or `value_and_grad`, whose other parameters these are.
    """

    def __init__(
        self,
        transformation: Function,
        fun: Function,
        argnums: int | Sequence[int],
        has_aux: bool,
        holomorphic: bool,
        allow_int: bool,
    ) -> None:
        super().__init__(
            transformation,
            fun,
            argnums=argnums,
            has_aux=has_aux,
            holomorphic=holomorphic,
            allow_int=allow_int,
        )
        what = f"{transformation.__name__}({name_of(fun)})"
        self._differential = Differential(fun, what, argnums, has_aux, holomorphic, allow_int)
        self._has_aux = has_aux

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        value, extra, found = self._differential.at(args, kwargs)
        if self.transformation is grad:
            return (found, extra) if self._has_aux else found
        return ((value, extra) if self._has_aux else value), found


def split_aux(out: Any, aux_tree: list[pytree.PyTreeDef], what: str) -> list[Any]:
    """The value and the leaves of the extra results, whose structure goes to ``aux_tree``."""
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise ArgumentError(
            f"{what} was made with has_aux=True, so the function must return a pair "
            f"(value, extra), but it returned {_describe(out)}."
        )
    leaves, treedef = objects.flatten_extra(out[1])
    aux_tree.append(treedef)
    return [objects.unwrapped(out[0]), *leaves]


def _typed_like(ct: Any, x: Any) -> Any:
    """The cotangent as a NumPy value of its input's dtype."""
    if type(ct) is np.ndarray or isinstance(ct, Tracer | np.ndarray | np.generic):
        return ct
    return aval_of(x).dtype.type(ct)


def _plain_scalar(value: Any) -> Any:
    """NumPy's scalar for a 0-d array, as ufuncs return."""
    return value[()] if type(value) is np.ndarray and value.ndim == 0 else value


def is_differentiable(x: Any, holomorphic: bool, allow_int: bool, is_reverse: bool) -> Any:
    if type(x) is float:
        return not holomorphic
    try:
        kind = aval_of(x).dtype.kind
    except DtypeError:
        return False
    if kind == ("c" if holomorphic else "f") or (kind == "c" and is_reverse):
        return True
    return "exact" if allow_int and kind in "biu" else False


def refuse_input(args: Values, chosen: Sequence[int], what: str, number: int, bad: Any) -> bool:
    path = [path for i in chosen for path in leaf_paths(args[i], f"args[{i}]")][number]
    given = [leaf for i in chosen for leaf in pytree.tree_leaves(args[i])][number]
    if isinstance(given, objects.HoldsArray):
        raise DtypeError(
            f"{what} cannot differentiate argument `{path}`, {given.aval_text}: random keys have "
            "no derivative. Choose other arguments with argnums, or set allow_int=True for a "
            "float0 gradient."
        )
    aval = aval_of_argument(bad, path, what)
    if aval.dtype.kind == "c":
        raise DtypeError(
            f"{what} cannot differentiate argument `{path}`, {aval}: forward mode has no one "
            "derivative of a function of complex numbers that is not holomorphic. Pass real and "
            "imaginary parts, use jacrev if the results are real, or set holomorphic=True."
        )
    if aval.dtype.kind == "f":
        raise DtypeError(
            f"{what} with holomorphic=True needs complex arguments; `{path}` is {aval}."
        )
    raise DtypeError(
        f"{what} cannot differentiate argument `{path}`, {aval}: integers and bools have no "
        "derivative. Pass a float (3.0 instead of 3, or x.astype(np.float64)), choose other "
        "arguments with argnums, or set allow_int=True for a float0 gradient."
    )


def _describe(out: Any) -> str:
    leaves, treedef = pytree.tree_flatten(out)
    if len(leaves) == 1 and leaves[0] is out:
        try:
            return str(aval_of(out))
        except DtypeError:
            return f"a {type(out).__name__}"
    return f"a pytree with structure {treedef}"


def _check_scalar(value: Any, holomorphic: bool, what: str) -> Any:
    """The cotangent 1 of a scalar result."""
    if type(value) is float or (type(value) is np.float64 and not holomorphic):
        return _ONE
    try:
        aval = None if isinstance(value, list | tuple | dict) else aval_of(value)
    except DtypeError:
        aval = None
    if aval is None:
        raise ShapeError(
            f"{what} needs a function that returns one scalar, but it returned "
            f"{_describe(value)}. "
            + ("Is a return missing?" if value is None else "To return more, use has_aux=True.")
        )
    if aval.shape:
        raise ShapeError(
            f"{what} needs a function that returns a scalar, but it returned {aval}. Reduce it "
            "first (np.sum, np.mean), or use jacrev or jacfwd for all derivatives, or vjp for a "
            "product with a cotangent."
        )
    if aval.dtype.kind not in ("c" if holomorphic else "f"):
        advice = "set holomorphic=True or take a real part" if aval.dtype.kind == "c" else "floats"
        raise DtypeError(
            f"{what} needs a function that returns a real floating-point scalar, but it returned "
            f"{aval}; "
            + (f"{advice}." if aval.dtype.kind == "c" else "convert it, or compute in floats.")
        )
    return aval.dtype.type(1)


def stop_gradient(x: Any) -> Any:
    """``x`` with derivative zero.

    Returns: The same values.
    Example: float(fg.grad(lambda x: x * fg.stop_gradient(x))(3.0)) -> 3.0
    """
    return objects.map_values(stop_gradient_p.bind, x)


def vjp(fun: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Value of a function, and the function that pulls cotangents back through it.

    Args: *primals: The point. References among them (`new_ref`) are changed as ``fun`` changes
            them.
    Returns: ``(value, vjp_fun)``, with ``has_aux`` also ``extra``. ``vjp_fun(cotangent)`` takes a
        pytree like the value and returns a tuple with a cotangent for every primal; it may be
        called several times. It is a pytree of what it keeps, so `jit` can return it. Integer
        primals have ``float0`` cotangents. ``vjp_fun.with_refs(*refs)(cotangent)`` adds cotangents
        to references, or leaves some out; gradients of references are only had so.

    Raises:
        TreeError: If ``vjp_fun`` gets a cotangent of another structure.
        ShapeError: If ``vjp_fun`` gets a cotangent of another shape or dtype.

    Example:
        >>> y, pull = fg.vjp(np.sin, 0.0)
        >>> float(pull(np.float64(2.0))[0])
        2.0
    """
    return _linearized("vjp", VjpFunction, fun, primals, has_aux)


def _linearized(
    name: str,
    kind: type[VjpFunction | JvpFunction],
    fun: Function,
    primals: tuple[Any, ...],
    has_aux: bool,
) -> Any:
    """The results of a function, its derivative at a point in one direction, and extra results."""
    check_callable(fun, name)
    what = f"{name}({name_of(fun)})"
    leaves, treedef = objects.flatten_values(primals)
    rows = rows_of(leaves) if kind is VjpFunction else ()
    cells = [leaves[i] for i, _ in rows]
    with passing_cells(cells, what) as contents:
        for (i, _), content in zip(rows, contents, strict=True):
            leaves[i] = content
        avals = _avals(leaves, primals, what)
        flat = FlatFunction(fun, treedef, has_aux, what, rows)
        with without_warnings() as block, block:
            is_active = [a.dtype.kind in "fc" for a in avals]
            results, linear = linearize_flat(rerolled(flat, leaves, what), leaves, is_active, what)
    outs, aux = flat.split(put_back(cells, results, what))
    derivative = kind(*_signed(flat, outs, avals, linear, what), leaves)
    check_for_nans(what, outs, primals)
    return (pytree.tree_unflatten(flat.out_tree, outs), derivative, *aux)


def _signed(
    flat: FlatFunction, outs: Values, avals: Sequence[ShapedArray], linear: LinearMap, what: str
) -> tuple[Signature, LinearMap]:
    """The types of a function, and its derivative without that of extra results."""
    out_avals = tuple(aval_of(x) for x in outs)
    refs = tuple(i for i, _ in flat.rows)
    signature = Signature(what, flat.treedef, tuple(avals), flat.out_tree, out_avals, refs)
    n = len(refs) + len(outs)
    outputs, point = linear.outputs[:n], linear.point
    if point is not None:
        point = point._replace(outputs=point.outputs[:n])
    return signature, LinearMap(linear.inputs, linear.entries, linear.length, outputs, point)


def _avals(leaves: Values, tree: Any, what: str) -> list[ShapedArray]:
    """Types of arguments; an unsupported one is named by its path."""
    try:
        return [aval_of(x) for x in leaves]
    except DtypeError:
        paths = leaf_paths(tree)
        return [aval_of_argument(x, p, what) for x, p in zip(leaves, paths, strict=True)]


class FlatFunction:
    """A function of flat arguments that returns flat results, extra results last.

    Args:
        fun: The user's function.
        treedef: Structure of its arguments.
        has_aux: Whether it returns a pair of a value and extra results.
        what: How messages call the transformation.
        rows: The references among the arguments, which are called with their contents; what they
            hold at the end are the leading results.
    """

    def __init__(
        self, fun: Function, treedef: pytree.PyTreeDef, has_aux: bool, what: str, rows: Rows = ()
    ) -> None:
        self.rows = rows
        self.fun = fun
        self.treedef = treedef
        self.has_aux = has_aux
        self.what = what
        self.out_tree: pytree.PyTreeDef = treedef
        self.aux_tree: list[pytree.PyTreeDef] = []

    def __call__(self, *leaves: Any) -> list[Any]:
        given = list(as_arguments(leaves))
        cells = fill_cells(given, self.rows)
        out = self.fun(*pytree.tree_unflatten(self.treedef, given))
        extra: list[Any] = []
        if self.has_aux:
            out, *extra = split_aux(out, self.aux_tree, self.what)
        outs, self.out_tree = objects.flatten_values(out)
        return [*(cell.content() for cell in cells), *outs, *extra]

    def split(self, flat: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]]:
        """The results, and a tuple that holds the extra results if there are any."""
        n = self.out_tree.num_leaves
        if not self.has_aux:
            return list(flat), ()
        return list(flat[:n]), (pytree.tree_unflatten(self.aux_tree[0], flat[n:]),)


def jvp(
    fun: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Value and directional derivative of a function, in forward mode.

    Args:
        primals: Tuple or list of arguments.
        tangents: The direction: one tangent for every primal, of the same structure, shapes and
            dtypes (``float0`` for integers).
    Returns: ``(value, tangent)``, with ``has_aux`` also ``extra``.

    Raises:
        TreeError: If structures differ.
        ShapeError: If a tangent's shape or dtype differs from its primal's.

    Example:
        >>> value, slope = fg.jvp(np.sin, (0.0,), (1.0,))
        >>> float(slope)
        1.0
    """
    check_callable(fun, "jvp")
    what = f"jvp({name_of(fun)})"
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise ArgumentError(
            f"{what}: primals and tangents must be tuples or lists of arguments, got "
            f"{type(primals).__name__} and {type(tangents).__name__}. Write jvp(f, (x,), (t,))."
        )
    leaves, treedef = objects.flatten_values(tuple(primals))
    avals = _avals(leaves, tuple(primals), what)
    dots = check_tangents(treedef, avals, tuple(tangents), what)
    flat = FlatFunction(fun, treedef, has_aux, what)
    with without_warnings() as block, block:
        results, out_dots = jvp_flat(flat, leaves, dots, what)
    outs, aux = flat.split(results)
    own = Owner([*leaves, *dots, *outs])
    filled = [
        zeros_like(x) if t is None else own(t)
        for x, t in zip(outs, out_dots[: len(outs)], strict=True)
    ]
    check_for_nans(what, [*outs, *filled], (*primals, *tangents))
    tree = flat.out_tree
    return (pytree.tree_unflatten(tree, outs), pytree.tree_unflatten(tree, filled), *aux)


def linearize(fun: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Value of a function, and its derivative at a point as a linear function.

    Args: *primals: The point.
    Returns: ``(value, f_jvp)``, with ``has_aux`` also ``extra``. ``f_jvp(*tangents)`` returns the
        tangent of the value; the function itself is not evaluated again. It is a pytree, as the
        function that `vjp` returns.

    Example:
        >>> value, f_jvp = fg.linearize(lambda x: x ** 2, 3.0)
        >>> float(f_jvp(1.0)), float(f_jvp(2.0))
        (6.0, 12.0)
    """
    return _linearized("linearize", JvpFunction, fun, primals, has_aux)


def linear_transpose(fun: Function, *primals: Any) -> Function:
    """The transpose of a function that is linear in its arguments.

    Args:
        fun: A linear function of arrays or pytrees.
        *primals: Arrays, or anything with ``shape`` and ``dtype``, of the types of the arguments;
            their values do not matter.
    Returns: A function from a cotangent of the result to a tuple of cotangents of the arguments.

    Raises:
        DtypeError: If an argument is not floating or complex.
        ArgumentError: If a result does not depend linearly on the arguments.

    Example:
        >>> transposed = fg.linear_transpose(lambda x: np.sum(x), np.ones(3))
        >>> transposed(2.0)[0]
        array([2., 2., 2.])
    """
    check_callable(fun, "linear_transpose")
    what = f"linear_transpose({name_of(fun)})"
    leaves, treedef = pytree.tree_flatten(primals)
    avals = [_aval_like(x) for x in leaves]
    for aval, path in zip(avals, leaf_paths(primals), strict=True):
        if aval.dtype.kind not in "fc":
            raise DtypeError(f"{what} needs floating-point arguments; `{path}` is {aval}.")
    flat = FlatFunction(fun, treedef, False, what)
    mask = [True] * len(leaves)
    known, linear = record_linear(flat, leaves, mask, avals, what, separates=True)
    culprit = nonlinear_entry(linear.entries, may_shift=True)
    if culprit is not None:
        raise ArgumentError(
            f"{what} needs a function that is linear in its arguments, and this one applies "
            f"{culprit.primitive.name} to them. For other functions use vjp."
        )
    out_avals = [
        slot.aval if slot is not None else aval_of(k)
        for slot, k in zip(linear.outputs, known, strict=True)
    ]

    def transposed(cotangent: Any) -> tuple[Any, ...]:
        cts = check_cotangents(cotangent, flat.out_tree, out_avals, what)
        own = Owner(cts)
        pulled = [
            zeros_for(a) if ct is None else own(ct)
            for ct, a in zip(linear.pull(cts), avals, strict=True)
        ]
        return pytree.tree_unflatten(treedef, pulled)

    return HoldsProgram(transposed)


def _aval_like(x: Any) -> ShapedArray:
    """Type of an array or of anything with a shape and a dtype."""
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, np.ndarray | np.generic):
        return ShapedArray(tuple(x.shape), np.dtype(x.dtype))
    return aval_of(x).strong()
