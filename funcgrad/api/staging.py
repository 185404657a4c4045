"""make_jaxpr and eval_shape: functions as programs and as types, without running them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from funcgrad.api.arguments import (
    Function,
    aval_of_argument,
    check_callable,
    has_type,
    leaf_paths,
    name_of,
)
from funcgrad.base.dialect import NUMPY, dialect
from funcgrad.base.placement import check_placement
from funcgrad.base.pytree import (
    PyTreeDef,
    register_pytree_node,
    tree_flatten,
    tree_map,
    tree_unflatten,
)
from funcgrad.base.transformed import Transformed
from funcgrad.core.avals import ShapedArray
from funcgrad.core.printer import format_program
from funcgrad.core.program import Equation, Program, evaluate
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.dtypes import ExtendedDtype, check_dtype, float0
from funcgrad.errors import DtypeError
from funcgrad.higher_order.cells import Cell, arranged
from funcgrad.higher_order.reroll import reroll
from funcgrad.numpy.writable import as_arguments
from funcgrad.primitives.objects import as_values
from funcgrad.transforms.stage import stage_with_cells


class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist.

    Args:
        shape: Tuple of ints.
        dtype: Anything that NumPy accepts as a dtype, or the dtype of an array of keys.
        sharding: Accepted for JAX: there is one device, on which arrays lie undivided.
        weak_type: Whether the array promotes as a Python scalar.
    Example: fg.ShapeDtypeStruct((2, 3), np.float32)
        -> ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(
        self, shape: Sequence[int], dtype: Any, *, sharding: Any = None, weak_type: bool = False
    ) -> None:
        check_placement("ShapeDtypeStruct", sharding=sharding)
        self.weak_type = weak_type
        self.shape = tuple(int(n) for n in shape)
        self.dtype: Any = dtype if isinstance(dtype, ExtendedDtype) else np.dtype(dtype)
        if isinstance(self.dtype, np.dtype) and self.dtype != float0:
            check_dtype(self.dtype, "ShapeDtypeStruct")

    @property
    def sharding(self) -> None:
        """Nothing: where the array lies is not chosen."""
        return None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The shape and dtype of an array.

        Args: x: The array.
        Example: fg.ShapeDtypeStruct.like(np.eye(2))
            -> ShapeDtypeStruct(shape=(2, 2), dtype=float64)
        """
        return cls(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy that differs.

        Args: **changes: Arguments of the class.
        Example: fg.ShapeDtypeStruct((2, 3), np.float32).update(shape=(6,))
            -> ShapeDtypeStruct(shape=(6,), dtype=float32)
        """
        known = {name: getattr(self, name) for name in ShapeDtypeStruct.__slots__}
        return type(self)(**known | changes)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return (self.shape, self.dtype, self.weak_type) == (
            other.shape,
            other.dtype,
            other.weak_type,
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))


class _Float0:
    """Stands for a zero of dtype float0, which holds nothing: a node without leaves.

    To programs such zeros are part of the structure of arguments and results.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


register_pytree_node(
    _Float0, lambda zero: ((), zero.shape), lambda shape, _: np.zeros(shape, float0)
)


def _is_float0(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind == "V" and leaf.dtype == float0


def without_float0(tree: Any) -> Any:
    """The tree, in which float0 arrays are no leaves; unflattening brings them back."""
    leaves, treedef = tree_flatten(tree)
    if not any(map(_is_float0, leaves)):
        return tree
    return tree_unflatten(treedef, [_Float0(x.shape) if _is_float0(x) else x for x in leaves])


def with_held_types(tree: Any) -> Any:
    """The tree, in which types of arrays that hold others are such arrays, of the others' types."""
    leaves, treedef = tree_flatten(tree)
    if not any(map(_is_held_type, leaves)):
        return tree
    held = [
        x.dtype.holding(*[ShapeDtypeStruct(x.shape, x.dtype.base)] * x.dtype.n_parts)
        if _is_held_type(x)
        else x
        for x in leaves
    ]
    return tree_unflatten(treedef, held)


def _is_held_type(leaf: Any) -> bool:
    return isinstance(leaf, ShapeDtypeStruct) and isinstance(leaf.dtype, ExtendedDtype)


def argument_paths(
    args: Sequence[Any], kwargs: Mapping[str, Any], static: Collection[int]
) -> list[str]:
    """The paths of the leaves of all arguments that are not static."""
    paths = [
        path
        for i, arg in enumerate(args)
        if i not in static
        for path in leaf_paths(without_float0(arg), f"args[{i}]")
    ]
    return paths + (leaf_paths(without_float0(dict(kwargs)), "kwargs") if kwargs else [])


class ClosedJaxpr:
    """A typed program together with the traced values that it closes over.

    Attributes:
        program: The program.
        consts: Values of its leading inputs.
    Example: isinstance(fg.make_jaxpr(np.sin)(1.0), fg.ClosedJaxpr) -> True
    """

    def __init__(self, program: Program, consts: Sequence[Any]) -> None:
        self.program = program
        self.consts = list(consts)

    @property
    def eqns(self) -> tuple[Equation, ...]:
        return self.program.equations

    @property
    def in_avals(self) -> list[ShapedArray]:
        return self.program.in_avals[len(self.consts) :]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.program.out_avals

    def eval(self, *args: Any) -> list[Any]:
        """Run the program on flat arguments under the current transformation."""
        return evaluate(self.program, [*self.consts, *args])

    def pretty(self, with_source: bool = True) -> str:
        """The program as text, with the user's line of every equation."""
        return format_program(self.program, with_source)

    def __str__(self) -> str:
        return format_program(self.program)

    __repr__ = __str__


def aval_like(leaf: Any, path: str, function: str) -> ShapedArray:
    """Type of an argument, which may be a value or a `ShapeDtypeStruct`."""
    if isinstance(leaf, ShapeDtypeStruct):
        return ShapedArray(leaf.shape, leaf.dtype, leaf.weak_type)
    return aval_of_argument(leaf, path, function)


class StagedFunction:
    """The program of a function at given arguments, with its pytrees.

    Args:
        fun: The function.
        args: Positional arguments (values or `ShapeDtypeStruct`).
        kwargs: Keyword arguments.
        what: How messages call the transformation.
        paths: How messages call the leaves of the arguments, if these are not all of them.
        carries: Whether who runs the program hands over the contents of cells of outside, which
            are inputs in front of the arguments, and puts back what is left in them, which are
            the leading results.
        donated: Which leaves the function may assign to.
        rerolls: Whether loops are found now. Otherwise that is up to `reroll`.

    Attributes:
        cells: The cells that the function uses.
        changed: Those of them that it changes.
    """

    def __init__(
        self,
        fun: Function,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        what: str,
        paths: Sequence[str] | None = None,
        carries: bool = False,
        donated: Sequence[bool] = (),
        rerolls: bool = True,
    ) -> None:
        leaves, treedef = tree_flatten((tuple(args), kwargs))
        if any(_is_float0(x) or _is_held_type(x) for x in leaves):
            args, kwargs = with_held_types(without_float0((tuple(args), kwargs)))
            leaves, treedef = tree_flatten((args, kwargs))
        self.leaves, self.in_tree = as_values(leaves, treedef)
        if paths is None:
            paths = leaf_paths(args) + (leaf_paths(kwargs, "kwargs") if kwargs else [])
        self.paths = list(paths)
        self.avals = [aval_like(x, p, what) for x, p in zip(self.leaves, paths, strict=True)]
        self.out_tree: PyTreeDef = self.in_tree
        names = [
            f"argument `{p}` of {name_of(fun)}, {a}" for p, a in zip(paths, self.avals, strict=True)
        ]

        def flat(*inner: Any) -> list[Any]:
            given = as_arguments(inner, donated)
            inner_args, inner_kwargs = tree_unflatten(self.in_tree, given)
            out = fun(*inner_args, **inner_kwargs)
            found, treedef = tree_flatten(out)
            if any(map(_is_float0, found)):
                out = without_float0(out)
                found, treedef = tree_flatten(out)
            outs, self.out_tree = as_values(found, treedef)
            for i, x in enumerate(outs):
                if not has_type(x):
                    _check_result(x, leaf_paths(out, "result")[i], what)
            return outs

        program, self.captured, held = stage_with_cells(
            flat, self.avals, name_of(fun), what, names, carries, rerolls and dialect() is NUMPY
        )
        self.cells: list[Cell] = [h.cell for h in held]
        self.changed: list[Cell] = [h.cell for h in held if h.final is not None]
        self.program = arranged(program, len(self.captured), held, self.cells, self.changed)
        self.is_rerolled = False
        if rerolls:
            self.reroll()

    def reroll(self) -> None:
        """Find the loops of the program, once."""
        if not self.is_rerolled:
            self.program = reroll(self.program)
            self.is_rerolled = True

    @property
    def belongs_to_call(self) -> bool:
        """Whether it refers to what a surrounding transformation has made."""
        return bool(self.captured) or any(cell.owner is not EVAL for cell in self.cells)

    def captured_values(self) -> list[Any]:
        """Captured values, which the program takes in front of the arguments."""
        if not self.cells:
            return self.captured
        return [*self.captured, *(cell.content() for cell in self.cells)]

    def put_back(self, outs: Sequence[Any], what: str) -> Sequence[Any]:
        """The results, without what is left in cells, which they get."""
        for cell, value in zip(self.changed, outs, strict=False):
            cell.put(value, what)
        return outs[len(self.changed) :]

    @property
    def out_avals(self) -> Sequence[ShapedArray]:
        """Types of the results."""
        return self.program.out_avals[len(self.changed) :]

    def out_info(self) -> Any:
        """Types of the results, a pytree of `ShapeDtypeStruct`."""
        return structs_of(self.out_tree, self.out_avals)


def structs_of(treedef: PyTreeDef, avals: Sequence[ShapedArray]) -> Any:
    """Types of arrays as a pytree of `ShapeDtypeStruct`; weak ones only if the dialect has such."""
    is_weak = [a.weak_type and dialect().weak is not None for a in avals]
    structs = tree_unflatten(
        treedef,
        [
            ShapeDtypeStruct(a.shape, a.dtype, weak_type=weak)
            for a, weak in zip(avals, is_weak, strict=True)
        ],
    )
    # Arrays of dtype float0 stand in the result themselves, since no struct describes them.
    return tree_map(
        lambda x: x if isinstance(x, ShapeDtypeStruct) else ShapeDtypeStruct(x.shape, x.dtype),
        structs,
    )


def _check_result(leaf: Any, path: str, what: str) -> None:
    try:
        aval_of_argument(leaf, path, what)
    except DtypeError:
        kind = (
            f"an array of dtype {leaf.dtype}"
            if isinstance(leaf, np.ndarray | np.generic)
            else f"a {type(leaf).__name__}"
        )
        raise DtypeError(
            f"{what} returned {kind} as `{path}`. Return arrays, numbers, and registered pytrees "
            "of them; what Python computes from static arguments needs no transformation."
        ) from None


def make_jaxpr(
    fun: Function, static_argnums: int | Sequence[int] = (), return_shape: bool = False
) -> Function:
    """A function that returns the typed program of ``fun`` instead of running it.

    Args: return_shape: Whether to return the types of the results as well.
    Returns: A function of the same arguments (or `ShapeDtypeStruct`) that returns a `ClosedJaxpr`,
        which prints as text; with ``return_shape`` a pair with a pytree of `ShapeDtypeStruct`.
    Example: print(fg.make_jaxpr(lambda x: np.sin(x) * 2)(1.0))
        -> { lambda a:~f64[] .
               b:f64[] = sin a
               c:f64[] = mul b 2.0:f64[]
             in (c,) }
    """
    check_callable(fun, "make_jaxpr")
    static = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        dynamic = [a for i, a in enumerate(args) if i not in static]

        def of_dynamic(*inner: Any, **inner_kwargs: Any) -> Any:
            rest = iter(inner)
            full = [a if i in static else next(rest) for i, a in enumerate(args)]
            return fun(*full, **inner_kwargs)

        of_dynamic.__name__ = name_of(fun)
        paths = argument_paths(args, kwargs, static)
        staged = StagedFunction(of_dynamic, dynamic, kwargs, f"make_jaxpr({name_of(fun)})", paths)
        closed = ClosedJaxpr(staged.program, staged.captured)
        return (closed, staged.out_info()) if return_shape else closed

    return Transformed(
        run, make_jaxpr, fun, static_argnums=static_argnums, return_shape=return_shape
    )


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A block that computes at once, while a function around it is traced.

    Its results are known values there, so that Python may branch on them and use them as shapes.

    Raises: UnexpectedTracerError: If it uses a traced value of a function around, which has none
            yet.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> @fg.jit
        ... def f(x):
        ...     with fg.ensure_compile_time_eval():
        ...         n = int(fnp.sum(fnp.arange(4)))
        ...     return fnp.full(n, x)
        >>> print(f(1.5).shape)
        (6,)
    """
    with using_trace(EVAL):
        yield


def eval_shape(fun: Function, *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of the results of a function, without computing them.

    Args: *args: Arguments: arrays or `ShapeDtypeStruct`.
    Returns: A pytree like the result, of `ShapeDtypeStruct`.
    Example: fg.eval_shape(np.dot, np.ones((2, 3)), np.ones((3, 4)))
        -> ShapeDtypeStruct(shape=(2, 4), dtype=float64)
    """
    check_callable(fun, "eval_shape")
    with using_trace(EVAL):
        what = f"eval_shape({name_of(fun)})"
        return StagedFunction(fun, args, kwargs, what, carries=True).out_info()
