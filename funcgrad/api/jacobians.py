"""jacfwd, jacrev and hessian: derivatives in all directions, as dense arrays or sparse matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.api.arguments import (
    Function,
    check_callable,
    check_for_nans,
    name_of,
    normalize_argnums,
    zeros_like,
)
from funcgrad.api.differentiation import FlatFunction, is_differentiable, refuse_input
from funcgrad.base.error_state import without_warnings
from funcgrad.base.forking import cached_property
from funcgrad.base.imports import load
from funcgrad.base.pytree import tree_leaves, tree_unflatten, tuple_of
from funcgrad.base.transformed import Transformed
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.errors import DtypeError
from funcgrad.higher_order.reroll import rerolled
from funcgrad.higher_order.staging import type_texts
from funcgrad.primitives.families import zeros_like_aval
from funcgrad.primitives.objects import flatten_values
from funcgrad.primitives.shape import Transpose, reshape
from funcgrad.transforms.batch import batch_flat
from funcgrad.transforms.linearize import linearize_flat

LEAST = 1024
"""Elements of a derivative from which it is asked what they depend on."""


def jacfwd(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    sparse: Any = False,
) -> Function:
    """The Jacobian by forward mode: right when there are fewer inputs than outputs.

    Args: sparse: ``True`` for a sparse matrix, whose pattern is found from the program, and of
            which columns that share no row are computed together. Or a pattern that is known: a
            `funcgrad.sparsity.SparsityPattern` or `Coloring`; or a matrix with entries wherever
            there may be some, which is compared with the derivative in a random direction.
    Returns: A function of the same arguments. Its result has the structure of ``fun``'s result,
        where every leaf is replaced by a tree like the argument, with arrays of shape ``output
        shape + input shape``; with ``sparse`` matrices of shape (output size, input size): SciPy's,
        or `funcgrad.scipy.sparse.SparseArray` in a transformation.

    Raises:
        ArgumentError: If a pattern that was given misses an entry.
        ShapeError: If it has another shape than the derivative.
    Example: fg.jacfwd(lambda x: np.array([1.0, 2.0]) * x)(3.0) -> array([1., 2.])
    """
    check_callable(fun, "jacfwd")
    options = {"argnums": argnums, "has_aux": has_aux, "holomorphic": holomorphic}
    if sparse is not False:
        return _sparse(jacfwd, fun, sparse, options)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        point = _JacobianPoint(fun, args, kwargs, argnums, has_aux, holomorphic, "jacfwd")
        columns = [point.push_basis(i) for i in range(len(point.leaves))]
        rows = [
            point.tree_like_argument([column[j] for column in columns])
            for j in range(len(point.outs))
        ]
        return point.result(rows)

    return Transformed(run, jacfwd, fun, **options)


def jacrev(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    sparse: Any = False,
) -> Function:
    """The Jacobian by reverse mode: right when there are fewer outputs than inputs.

    Args:
        fun: Maps arrays, or pytrees of them, to arrays; with ``has_aux`` to a pair of that and
            anything.
        sparse: As of `jacfwd`, computed by columns, by rows, or by columns and a few dense rows,
            whatever takes the fewest products.
    Returns: A function of the same arguments that returns the Jacobian: axes of the result, then
        axes of the argument, as `jacfwd`.
    Example: fg.jacrev(lambda x: x ** 2)(np.array([1.0, 2.0]))
        -> array([[2., 0.],
                  [0., 4.]])
    """
    check_callable(fun, "jacrev")
    options = {"argnums": argnums, "has_aux": has_aux, "holomorphic": holomorphic}
    if sparse is not False:
        return _sparse(jacrev, fun, sparse, options)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        point = _JacobianPoint(
            fun, args, kwargs, argnums, has_aux, holomorphic, "jacrev", allow_int
        )
        rows = [point.tree_like_argument(point.pull_basis(j)) for j in range(len(point.outs))]
        return point.result(rows)

    return Transformed(run, jacrev, fun, **options, allow_int=allow_int)


def hessian(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    sparse: Any = False,
) -> Function:
    """The matrix of second derivatives, by forward mode over reverse mode.

    Args:
        fun: Maps arrays, or pytrees of them, to a scalar; with ``has_aux`` to a pair of that and
            anything.
        sparse: As of `jacfwd`, of which columns are computed together if symmetry tells them
            apart.
    Returns: A function of the same arguments that returns the second derivatives: axes of the
        result, then twice those of the argument.
    Example: fg.hessian(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]))
        -> array([[ 6.,  0.],
                  [ 0., 12.]])
    """
    check_callable(fun, "hessian")
    if sparse is not False:
        options = {"argnums": argnums, "has_aux": has_aux, "holomorphic": holomorphic}
        return _sparse(hessian, fun, sparse, options)
    inner = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic)


def _sparse(
    transformation: Callable[..., Any], fun: Function, sparse: Any, options: dict[str, Any]
) -> Function:
    """The function that computes a sparse derivative."""
    name = transformation.__name__
    # Whoever asks for sparse matrices loads the parts of SciPy that they need.
    module = load("funcgrad.api.sparse_derivatives")
    run = module.sparse_derivative(name, fun, sparse=sparse, **options)
    return Transformed(run, transformation, fun, **options, sparse=sparse)


class _JacobianPoint:
    """A function linearised at a point, to be probed with unit vectors."""

    def __init__(
        self,
        fun: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: int | Sequence[int],
        has_aux: bool,
        holomorphic: bool,
        transformation: str,
        allow_int: bool = False,
    ) -> None:
        self.what = what = f"{transformation}({name_of(fun)})"
        chosen = normalize_argnums(argnums, len(args), what)
        dynamic = args[chosen[0]] if isinstance(argnums, int) else tuple(args[i] for i in chosen)
        self.leaves, self.in_tree = flatten_values(dynamic)
        self.holomorphic = holomorphic
        is_reverse = transformation == "jacrev"
        active = [
            is_differentiable(x, holomorphic, allow_int, is_reverse)
            or refuse_input(args, chosen, what, i, x)
            for i, x in enumerate(self.leaves)
        ]

        def of_chosen(inner: Any) -> Any:
            parts = (inner,) if isinstance(argnums, int) else inner
            replaced = dict(zip(chosen, parts, strict=True))
            return fun(*(replaced.get(i, a) for i, a in enumerate(args)), **kwargs)

        self.flat = FlatFunction(of_chosen, tuple_of([self.in_tree]), has_aux, what)
        with without_warnings() as block, block:
            results, self.linear = linearize_flat(
                rerolled(self.flat, self.leaves, what),
                self.leaves,
                [a is True for a in active],
                what,
            )
        self.outs, self.aux = self.flat.split(results)

    def tree_like_argument(self, blocks: Sequence[Any]) -> Any:
        return tree_unflatten(self.in_tree, blocks)

    def result(self, rows: Sequence[Any]) -> Any:
        check_for_nans(self.what, tree_leaves(rows), tree_unflatten(self.in_tree, self.leaves))
        jacobian = tree_unflatten(self.flat.out_tree, rows)
        return (jacobian, *self.aux) if self.aux else jacobian

    @cached_property
    def patterns(self) -> Any:
        """Sparsity patterns of the results, if they are worth to be looked for."""
        avals = [[aval_of(x).strong() for x in xs] for xs in (self.leaves, self.outs)]
        sizes = [sum(a.size for a in each) for each in avals]
        if sizes[0] * sizes[1] < LEAST:
            return None
        # Its index sets are loaded by derivatives that are large enough.
        module = load("funcgrad.patterns.compression")
        return module.TapePattern(self.linear, *avals)

    def push_basis(self, i: int) -> list[Any]:
        """Blocks d out_j / d in_i for all j: tangents of all unit vectors of input i at once.

        If columns are found that can be computed together, these are tangents of their sums.
        """
        in_avals = [aval_of(x).strong() for x in self.leaves]
        few = self.patterns and self.patterns.by_columns(i)
        basis = few.seeds(in_avals[i]) if few else _basis(in_avals[i])

        def push(unit: Any) -> list[Any]:
            dots = [unit if k == i else zeros_like_aval(a) for k, a in enumerate(in_avals)]
            return self.linear.push(dots)[: len(self.outs)]

        pushed = self._probe(push, basis)
        blocks = []
        end = 0
        for out, (t, dim) in zip(self.outs, pushed, strict=True):
            block_shape = (*aval_of(out).shape, *in_avals[i].shape)
            first, end = end, end + aval_of(out).size
            if t is None or dim is None:
                blocks.append(zeros_like(out, block_shape))
            elif few:
                blocks.append(reshape(few.rows(t, first), block_shape))
            else:
                ndim = len(t.shape)
                last = Transpose((*range(1, ndim), 0)).bind(t)
                blocks.append(_own_array(reshape(last, block_shape)))
        return blocks

    def pull_basis(self, j: int) -> list[Any]:
        """Blocks d out_j / d in_i for all i: cotangents of all unit vectors of output j."""
        out = aval_of(self.outs[j]).strong()
        if out.dtype.kind not in "fc":
            got = type_texts(self.flat.out_tree, list(map(aval_of, self.outs)))[j]
            raise DtypeError(f"{self.what} needs floating-point results, got {got}.")
        if out.dtype.kind == "c" and not self.holomorphic:
            raise DtypeError(
                f"{self.what} needs real results, got {out}. Return real and imaginary parts, use "
                "jacfwd if the arguments are real, or set holomorphic=True if the function is "
                "holomorphic."
            )

        def pull(unit: Any) -> list[Any]:
            n = len(self.linear.outputs)
            return self.linear.pull([unit if k == j else None for k in range(n)])

        few = self.patterns and self.patterns.by_rows(j)
        pulled = self._probe(pull, few.seeds(out) if few else _basis(out))
        blocks = []
        end = 0
        for leaf, (ct, dim) in zip(self.leaves, pulled, strict=True):
            block_shape = (*out.shape, *aval_of(leaf).shape)
            first, end = end, end + aval_of(leaf).size
            if ct is None or dim is None:
                blocks.append(zeros_like(leaf, block_shape))
            elif few:
                blocks.append(reshape(few.columns(ct, first), block_shape))
            else:
                blocks.append(_own_array(reshape(ct, block_shape)))
        return blocks

    def _probe(self, function: Function, basis: Any) -> list[tuple[Any, int | None]]:
        absent: list[bool] = []

        def dense(unit: Any) -> list[Any]:
            results = function(unit)
            absent.extend(r is None for r in results)
            return [np.float64(0) if r is None else r for r in results]

        with without_warnings() as block, block:
            values, dims = batch_flat(dense, [basis], [0], basis.shape[0], self.what, None)
        return [(None if gone else v, d) for v, d, gone in zip(values, dims, absent, strict=True)]


def _basis(aval: ShapedArray) -> Any:
    """All unit vectors of a space, stacked in front."""
    return np.eye(aval.size, dtype=aval.dtype).reshape((aval.size, *aval.shape))


def _own_array(x: Any) -> Any:
    """A C-contiguous array of its own, if concrete."""
    return np.ascontiguousarray(x) if isinstance(x, np.ndarray) and x.ndim else x
