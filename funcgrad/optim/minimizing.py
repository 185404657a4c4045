"""The minimisers of SciPy, for functions of pytrees, with exact derivatives.

SciPy's functions take vectors of float64; here trees become such vectors and back, and the methods
get the gradients, Hessians or products with them that they ask for. Nothing else is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.api.compilation import jit as compiled
from funcgrad.api.differentiation import grad, jvp, value_and_grad
from funcgrad.api.jacobians import hessian, jacfwd, jacrev
from funcgrad.api.sparse_derivatives import colors_of, hessian_sparsity, jacobian_sparsity
from funcgrad.api.staging import eval_shape
from funcgrad.base.imports import load
from funcgrad.base.pytree import keystr, tree_flatten, tree_flatten_with_path
from funcgrad.base.signatures import signature_of
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.flatten_util import ravel_pytree
from funcgrad.optim.interior_point import NonlinearProgram, minimize_by_ipopt
from funcgrad.patterns.arrays import SparseArray
from funcgrad.patterns.coloring import Coloring, coloring
from funcgrad.primitives.objects import flatten_held

Vector = np.ndarray
Unravel = Callable[[Any], Any]

WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
WITH_HESSIAN = ("dogleg", "trust-exact")
SPARSE = "trust-constr"
INTERIOR_POINT = "ipopt"
WITH_PRODUCT = ("newton-cg", "trust-ncg", "trust-krylov", SPARSE)


@cache
def _scipy() -> Any:
    """SciPy's module, loaded on first use."""
    return load("scipy.optimize")


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    method: str | Callable[..., Any] | None = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
    *,
    jit: bool = True,
) -> Any:
    """Minimise a function of a pytree with `scipy.optimize.minimize`, by exact derivatives.

    Args:
        fun: ``fun(x, *args)`` gives a real scalar.
        x0: Where to begin: a pytree of real arrays and numbers.
        args: Further arguments. Arrays among them are arguments of the compiled function, all else
            is constant.
        method: A name that SciPy knows. ``None`` is SciPy's choice: BFGS, L-BFGS-B if there are
            bounds, SLSQP if there are constraints. Methods that work with the Hessian get it, or
            its products with vectors where these are enough. ``"trust-constr"`` gets sparse
            matrices where derivatives in 256 unknowns or more are found to be sparse. ``"ipopt"``
            is IPOPT, where the package cyipopt is installed, with exact sparse derivatives of any
            size; options have its names.
        bounds: If ``x0`` is an array, what SciPy takes. Otherwise a tree like ``x0`` that has in
            place of each leaf a pair ``(low, high)`` of what broadcasts to the leaf, with ``None``
            for no bound.
        constraints: What SciPy takes: dicts, or objects such as ``NonlinearConstraint``, or several
            of them. Their functions are called with the tree; where no Jacobian is given they get
            the exact one, and ``NonlinearConstraint`` the exact Hessian.
        tol: The tolerance for the end; what it means is up to the method.
        options: Of the method.
        callback: Called after each iteration, with the tree; or, if its only parameter has the name
            ``intermediate_result``, with SciPy's result so far, whose ``x`` is the tree.
        jit: Whether the function and its derivatives are compiled.
    Returns: SciPy's ``OptimizeResult``. Its ``x`` is a tree like ``x0``, with the same dtypes; what
        else it holds are vectors and matrices in the order of `funcgrad.flatten_util.ravel_pytree`.
        Where the Hessian is sparse, ``sparsity``, a `funcgrad.sparsity.Coloring`, tells its
        pattern.

    Raises:
        ArgumentError: If ``x0`` has no elements, or ``bounds`` does not fit.
        DtypeError: If a leaf of ``x0`` is complex or no number.

    Example:
        >>> def rosenbrock(p):
        ...     return (1 - p["x"]) ** 2 + 100 * (p["y"] - p["x"] ** 2) ** 2
        >>> result = fg.optim.minimize(rosenbrock, {"x": -1.2, "y": 1.0}, method="trust-exact")
        >>> result.success, {name: round(float(v), 6) for name, v in result.x.items()}
        (True, {'x': 1.0, 'y': 1.0})
    """
    start = _floating(x0)
    flat, unravel = ravel_pytree(start)
    if not flat.size:
        raise ArgumentError("optim.minimize: x0 has no elements.")
    functions = _Functions(unravel, flat.dtype, jit)
    if isinstance(method, str) and method.lower() == INTERIOR_POINT:
        vector = np.asarray(flat, np.float64)
        found = minimize_by_ipopt(
            functions.program(fun, args, _listed(constraints), flat), vector,
            _limits(_flat_bounds(bounds, start), len(vector)), tol, options,
            None if callback is None else functions.callback(callback),
        )  # fmt: skip
        return functions.with_tree(found)
    derivatives = functions.derivatives(fun, args, method, flat)
    result = _scipy().minimize(
        x0=np.asarray(flat, np.float64),
        method=method,
        bounds=_flat_bounds(bounds, start),
        constraints=[functions.constraint(c, method, flat) for c in _listed(constraints)],
        tol=tol,
        options=None if options is None else dict(options),
        callback=None if callback is None else functions.callback(callback),
        **derivatives,
    )
    if functions.sparsity is not None:
        result.sparsity = functions.sparsity
    return functions.with_tree(result)


class _Functions:
    """Functions of trees as functions of vectors of float64, with their derivatives."""

    def __init__(self, unravel: Unravel, dtype: np.dtype[Any], is_jitted: bool) -> None:
        self._unravel = unravel
        self._dtype = dtype
        self._is_jitted = is_jitted
        self.sparsity: Coloring | None = None

    def tree(self, vector: Vector) -> Any:
        return self._unravel(np.asarray(vector, self._dtype))

    def of(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        convert: Callable[[Any], Any],
        transform: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda f: f,
    ) -> Callable[..., Any]:
        """``transform`` of the function of a vector, called with vectors of float64.

        Arrays among ``args`` are arguments of what is compiled: as constants they would be compared
        with what they were, again and again.
        """
        leaves, treedef = flatten_held(tuple(args))
        arrays = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)}

        def of_vectors(arrays: dict[int, Any], *vectors: Any) -> Any:
            given = treedef.unflatten([arrays.get(i, leaf) for i, leaf in enumerate(leaves)])

            def of_one(vector: Any) -> Any:
                return function(self._unravel(vector), *given)

            return transform(of_one)(*vectors)

        call = compiled(of_vectors) if self._is_jitted else of_vectors

        def of_float64(*vectors: Vector) -> Any:
            return convert(call(arrays, *(np.asarray(v, self._dtype) for v in vectors)))

        return of_float64

    def derivatives(
        self, fun: Callable[..., Any], args: Sequence[Any], method: Any, start: Any
    ) -> dict[str, Any]:
        """Derivatives that the method asks for: gradient, Hessian or products with it."""
        name = method.lower() if isinstance(method, str) else ""
        if name in WITHOUT_GRADIENT:
            return {"fun": self.of(fun, args, float)}
        found: dict[str, Any] = {"fun": self.of(fun, args, _as_floats, value_and_grad), "jac": True}
        if name in WITH_HESSIAN:
            found["hess"] = self.of(fun, args, _as_array, hessian)
        elif name == SPARSE and (colors := self.colors(fun, args, start)):
            self.sparsity = colors
            found["hess"] = self.of(fun, args, _as_matrix, partial(hessian, sparse=colors))
        elif name in WITH_PRODUCT or callable(method):
            found["hessp"] = self.of(fun, args, _as_array, _hessian_product)
        return found

    def colors(self, fun: Callable[..., Any], args: Sequence[Any], start: Any) -> Coloring | None:
        """Colours of the Hessian of a function, if it is sparse."""
        gradient = grad(lambda vector: fun(self._unravel(vector), *args))
        return colors_of(gradient, start, kinds=["symmetric"])

    def constraint(self, constraint: Any, method: Any, start: Any) -> Any:
        """A constraint on a tree as one on a vector."""
        wants_hessian = isinstance(method, str) and method.lower() == SPARSE
        if isinstance(constraint, Mapping):
            args = tuple(constraint.get("args", ()))
            fun, jac = self._with_jacobian(
                constraint["fun"], args, constraint.get("jac"), start if wants_hessian else None
            )
            if not wants_hessian:
                return {"type": constraint["type"], "fun": fun, "jac": jac}
            low, high = 0.0, 0.0 if constraint["type"] == "eq" else np.inf
            hess = self._weighted_hessian(constraint["fun"], args, start)
            return _scipy().NonlinearConstraint(fun, low, high, jac=jac, hess=hess)
        if not isinstance(constraint, _scipy().NonlinearConstraint):
            return constraint
        asked = start if wants_hessian else None
        fun, jac = self._with_jacobian(constraint.fun, (), constraint.jac, asked)
        more: dict[str, Any] = {}
        if wants_hessian:
            given = constraint.hess
            exact = self._weighted_hessian(constraint.fun, (), start)
            more["hess"] = (lambda v, w: given(self.tree(v), w)) if callable(given) else exact
            more["keep_feasible"] = constraint.keep_feasible
        low, high = constraint.lb, constraint.ub
        return _scipy().NonlinearConstraint(fun, low, high, jac=jac, **more)

    def _with_jacobian(
        self, fun: Callable[..., Any], args: tuple[Any, ...], jac: Any, start: Any
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The function of a constraint and its Jacobian: what is given, or the exact one.

        With a start, the pattern of the Jacobian is found there, and a sparse one is used.
        """
        values = self.of(fun, args, _as_array, _raveled)
        if callable(jac):
            return values, lambda vector: jac(self.tree(vector), *args)
        if start is not None:
            components = _raveled(lambda vector: fun(self._unravel(vector), *args))
            colors = colors_of(components, start)
            if colors is not None:
                return values, self.of(fun, args, _as_matrix, partial(_jacobian, sparse=colors))
        return values, self.of(fun, args, _as_array, _jacobian)

    def _weighted_hessian(
        self, fun: Callable[..., Any], args: tuple[Any, ...], start: Any
    ) -> Callable[..., Any]:
        """The Hessian of the sum of components, each multiplied by a weight."""
        components = _raveled(lambda vector: fun(self._unravel(vector), *args))

        def slope(vector: Any, weights: Any) -> Any:
            return grad(lambda v: fnp.sum(weights * components(v)))(vector)

        weights = eval_shape(components, start)
        colors = colors_of(slope, start, weights, kinds=["symmetric"])
        if colors is None:
            return self.of(fun, args, _as_array, _weighted_hessian)
        return self.of(fun, args, _as_matrix, partial(_weighted_hessian, sparse=colors))

    def program(
        self, fun: Callable[..., Any], args: Sequence[Any], constraints: Sequence[Any], start: Any
    ) -> NonlinearProgram:
        """A function of a tree, and all constraints, with sparse derivatives."""
        limited = [self._limited(c) for c in constraints]

        def components(tree: Any) -> Any:
            found = [ravel_pytree(f(tree))[0] for f, _, _ in limited]
            return fnp.concatenate(found) if found else fnp.zeros(0, start.dtype)

        def together(tree: Any, *args: Any) -> Any:
            return fnp.concatenate([fnp.reshape(fun(tree, *args), (1,)), components(tree)])

        def of_vector(vector: Any) -> Any:
            return components(self._unravel(vector))

        def weighted(vector: Any, weights: Any) -> Any:
            return fnp.sum(weights * together(self._unravel(vector), *args))

        counts = [eval_shape(lambda v, f=f: _raveled(f)(self._unravel(v)), start).size
                  for f, _, _ in limited]  # fmt: skip
        weights = np.ones(1 + sum(counts), self._dtype)
        jacobian = coloring(jacobian_sparsity(of_vector)(start), "both")
        curvature = coloring(hessian_sparsity(weighted)(start, weights), "symmetric")
        pairs = list(zip(limited, counts, strict=True))
        low = np.concatenate([np.zeros(0), *(np.broadcast_to(low, n) for (_, low, _), n in pairs)])
        high = np.concatenate([np.zeros(0), *(np.broadcast_to(up, n) for (_, _, up), n in pairs)])
        return NonlinearProgram(
            self.of(fun, args, float),
            self.of(fun, args, _as_array, grad),
            self.of(components, (), _as_array),
            self.of(components, (), _as_matrix, partial(jacrev, sparse=jacobian)),
            self.of(together, args, _as_matrix, partial(_weighted_hessian, sparse=curvature)),
            jacobian, curvature, low, high,
        )  # fmt: skip

    def _limited(self, constraint: Any) -> tuple[Callable[[Any], Any], Any, Any]:
        """A constraint as a function of the tree with its least and greatest values."""
        if isinstance(constraint, Mapping):
            fun, args = constraint["fun"], tuple(constraint.get("args", ()))
            return lambda tree: fun(tree, *args), 0.0, 0.0 if constraint["type"] == "eq" else np.inf
        if isinstance(constraint, _scipy().LinearConstraint):
            matrix = constraint.A
            return lambda tree: matrix @ ravel_pytree(tree)[0], constraint.lb, constraint.ub
        return constraint.fun, constraint.lb, constraint.ub

    def callback(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """SciPy looks at the names of the parameters, too."""
        if list(signature_of(callback).parameters) != ["intermediate_result"]:
            return lambda x, *rest: callback(self.tree(x), *rest)

        def of_result(intermediate_result: Any) -> Any:
            return callback(self.with_tree(intermediate_result.copy()))

        return of_result

    def with_tree(self, result: Any) -> Any:
        """A result with a tree in place of the vector."""
        result = _scipy().OptimizeResult(result)
        result.x = self.tree(result.x)
        return result


def _hessian_product(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The derivative of the gradient along a direction."""

    def product(vector: Any, direction: Any) -> Any:
        return jvp(lambda v: value_and_grad(function)(v)[1], (vector,), (direction,))[1]

    return product


def _raveled(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda vector: ravel_pytree(function(vector))[0]


def _jacobian(function: Callable[[Any], Any], sparse: Any = False) -> Callable[[Any], Any]:
    return (jacrev if sparse is False else jacfwd)(_raveled(function), sparse=sparse)


def _weighted_hessian(
    function: Callable[[Any], Any], sparse: Any = False
) -> Callable[[Any, Any], Any]:
    components = _raveled(function)

    def weighted(vector: Any, weights: Any) -> Any:
        return hessian(lambda v: fnp.sum(weights * components(v)), sparse=sparse)(vector)

    return weighted


def _as_floats(pair: tuple[Any, Any]) -> tuple[float, Vector]:
    value, gradient = pair
    return float(value), np.asarray(gradient, np.float64)


def _as_array(value: Any) -> Vector:
    return np.asarray(value, np.float64)


def _as_matrix(value: Any) -> Any:
    """SciPy's sparse matrix."""
    return (value.to_scipy() if isinstance(value, SparseArray) else value).astype(np.float64)


def _floating(x0: Any) -> Any:
    """The tree with integers made float64.

    Raises: DtypeError: If a leaf is complex or no number.
    """
    pairs, treedef = tree_flatten_with_path(x0)
    leaves = []
    for path, leaf in pairs:
        array = np.asarray(leaf)
        if array.dtype.kind not in "fiub":
            raise DtypeError(
                f"optim.minimize: x0{keystr(path)} has dtype {array.dtype}, but only real numbers "
                "can be minimised over. Give real and imaginary parts as separate leaves."
            )
        leaves.append(array if array.dtype.kind == "f" else array.astype(np.float64))
    return treedef.unflatten(leaves)


def _listed(constraints: Any) -> Sequence[Any]:
    return constraints if isinstance(constraints, list | tuple) else [constraints]


def _flat_bounds(bounds: Any, start: Any) -> Any:
    """Bounds of a tree as pairs of arrays, in the order of the vector."""
    if bounds is None or isinstance(start, np.ndarray):
        return bounds
    leaves, treedef = tree_flatten(start)
    lows, highs = [], []
    for leaf, pair in zip(leaves, treedef.flatten_up_to(bounds), strict=True):
        low, high = _pair(pair)
        lows.append(np.broadcast_to(-np.inf if low is None else low, leaf.shape).ravel())
        highs.append(np.broadcast_to(np.inf if high is None else high, leaf.shape).ravel())
    return _scipy().Bounds(np.concatenate(lows), np.concatenate(highs))


def _limits(bounds: Any, n: int) -> tuple[Vector, Vector]:
    """Lower and upper bounds of a vector, from any form that SciPy takes."""
    if bounds is None:
        pairs: Any = (-np.inf, np.inf)
    elif hasattr(bounds, "lb"):
        pairs = (bounds.lb, bounds.ub)
    else:
        ends = [(-np.inf if a is None else a, np.inf if b is None else b) for a, b in bounds]
        pairs = np.array(ends).T
    low, high = (np.array(np.broadcast_to(np.asarray(x, np.float64), n)) for x in pairs)
    return low, high


def _pair(bound: Any) -> tuple[Any, Any]:
    if bound is None:
        return None, None
    if not isinstance(bound, tuple | list) or len(bound) != 2:
        raise ArgumentError(
            "optim.minimize: bounds has a pair (low, high), or None, in place of each leaf of x0, "
            f"got {bound!r}."
        )
    return bound[0], bound[1]
