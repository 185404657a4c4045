"""Steps of solvers whose Jacobians are sparse: patterns, sparse factors, Levenberg and Marquardt.

Large systems are asked for the pattern of their Jacobian. If it is sparse, Newton's steps solve
with SciPy's sparse factors (SuperLU) what they would solve densely, and those of least squares with
factors in a band, by conjugate gradients, or by elimination.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.compilation import jit
from funcgrad.api.jacobians import jacfwd
from funcgrad.api.sparse_derivatives import colors_of
from funcgrad.api.staging import ShapeDtypeStruct
from funcgrad.api.vectorization import vmap
from funcgrad.base.forking import cached_property
from funcgrad.errors import ArgumentError
from funcgrad.patterns.coloring import Coloring, coloring
from funcgrad.primitives.sparse import Pattern
from funcgrad.scipy.results import Result
from funcgrad.scipy.sparse.bands import WIDEST, Band
from funcgrad.scipy.sparse.factors import Eliminated, OrderedFactors
from funcgrad.scipy.sparse.linalg import spsolve

Function = Callable[..., Any]

MOST_PAIRS = 64
"""Products of entries of ``J`` in all entries of ``J^T J``, for each entry of ``J``, up to which
that is formed."""

FEW_PRODUCTS, MOST_PRODUCTS = 100, 1000
"""Products with ``J`` and its transpose for one step: before factors are tried, and where these
would be filled."""


def solve_linear(g: Function, right: Any) -> Any:
    """The solution of a linear system that is given by its product, of the shape of ``right``."""
    n = right.size
    like = ShapeDtypeStruct(right.shape, right.dtype)
    colors = colors_of(g, like)
    if colors is not None:
        matrix = jacfwd(g, sparse=colors)(fnp.zeros(right.shape, right.dtype))
        return fnp.reshape(spsolve(matrix, fnp.reshape(right, (n,))), right.shape)
    units = np.eye(n, dtype=np.dtype(right.dtype)).reshape((n, *right.shape))
    columns = fnp.reshape(vmap(g)(units), (n, n))
    return fnp.reshape(fnp.linalg.solve(columns.T, fnp.reshape(right, (n,))), right.shape)


def newton_move(f: Function, x: Any, value: Any, colors: Coloring | None) -> Any:
    """The step of Newton's method, of the shape of ``x``."""
    n = x.size
    right = -fnp.reshape(value, (n,))
    if colors is None:
        return fnp.reshape(fnp.linalg.solve(fnp.reshape(jacfwd(f)(x), (n, n)), right), x.shape)
    return fnp.reshape(spsolve(jacfwd(f, sparse=colors)(x), right), x.shape)


class SparseJacobian:
    """The Jacobian of a function of known values, compiled.

    Args:
        f: The function of a vector.
        sparse: What `jacfwd` takes: colours, or a pattern that the user gives.
    """

    def __init__(self, f: Function, sparse: Any) -> None:
        self.colors = sparse if isinstance(sparse, Coloring) else coloring(sparse)
        self.f = jit(f)
        self._slopes = jacfwd(f, sparse=sparse)

    def value(self, x: Any) -> Any:
        return np.asarray(self.f(x))

    def __call__(self, x: Any) -> Any:
        return self._slopes(x)


def newton(jacobian: SparseJacobian, start: Any, tol: Any, limit: int) -> Result:
    """Newton's method with sparse factors, with steps halved until the residual falls.

    Args:
        jacobian: Of the system.
        start: Where to begin.
        tol: Of the relative size of steps.
        limit: The most steps.
    """
    x, value, calls = np.asarray(start), jacobian.value(start), 1
    factors = OrderedFactors(jacobian.colors.pattern.pattern)
    status, message = 2, f"no convergence in {limit} steps of Newton's method"
    steps = 0
    while status == 2 and steps < limit:
        norm = _norm(value)
        if norm == 0:
            break
        if not np.isfinite(norm):
            return _root(jacobian, x, value, 3, "the residual is not finite", steps, calls)
        steps += 1
        try:
            move = factors(jacobian(x).data)(-value.ravel(), "N")
        except RuntimeError as error:  # the factor is exactly singular
            return _root(jacobian, x, value, 3, f"the Jacobian is singular: {error}", steps, calls)
        part, new = 1.0, jacobian.value(x + move.reshape(x.shape))
        calls += 1
        while not _norm(new) < (1 - 1e-4 * part) * norm and part > 1e-4:
            part /= 2
            new = jacobian.value(x + part * move.reshape(x.shape))
            calls += 1
        x, value = x + part * move.reshape(x.shape), new
        if part * _norm(move) <= tol * max(_norm(x), 1e-300):
            status = 1
    if status == 2 and not value.any():
        status = 1
    if status == 1:
        message = "Newton's method with sparse factors has converged"
    return _root(jacobian, x, value, status, message, steps, calls)


def _root(
    jacobian: SparseJacobian, x: Any, value: Any, status: int, message: str, steps: int, calls: int
) -> Result:
    return Result(
        x=x, fun=value, success=status == 1, status=status, message=message, nit=steps, nfev=calls,
        sparsity=jacobian.colors, method="newton",
    )  # fmt: skip


def levenberg_marquardt(
    jacobian: SparseJacobian, start: Any, ftol: Any, xtol: Any, gtol: Any, max_nfev: int | None
) -> Result:
    """A minimum of a sum of squares, by normal equations with sparse factors.

    Steps solve ``(J^T J + damping diag(J^T J)) move = -J^T value``. The damping follows from how
    well the last step was foretold.

    Source: K. Madsen, H. B. Nielsen, O. Tingleff, "Methods for non-linear least squares problems",
    Technical University of Denmark, 2004, algorithm 3.16.

    Args:
        jacobian: Of the residuals.
        start: Where to begin.
        ftol: Of the relative change of the sum.
        xtol: Of the relative size of steps.
        gtol: Of the largest element of the gradient.
        max_nfev: The most evaluations; by default 100 for each unknown, at most 1,000.
    Raises: ArgumentError: If residuals are not finite at the first point.
    """
    tolerances = [0.0 if t is None else t for t in (ftol, xtol, gtol)]
    limit = min(100 * start.size, 1000) if max_nfev is None else max_nfev
    x, value = np.array(start), jacobian.value(start)
    if not np.isfinite(value).all():
        raise ArgumentError("least_squares: residuals are not finite at the first point.")
    matrix, cost, calls, slopes = jacobian(x), _half_square(value), 1, 1
    pattern = jacobian.colors.pattern.pattern
    system = pattern.memo("normal equations", lambda: _NormalEquations(pattern))
    gradient = matrix.T @ value
    damping, growth, status = 1e-4, 2.0, 0
    while calls < limit:
        if np.max(abs(gradient), initial=0.0) <= tolerances[2]:
            status = 1
            break
        scale = matrix.T.power(2).sum(1)
        weights = damping * np.where(scale > 0, scale, 1.0)
        move = system.solve(matrix, weights, -gradient)
        new = jacobian.value(x + move)
        calls += 1
        new_cost, foretold = _half_square(new), _inner(move, weights * move - gradient) / 2
        gain = (cost - new_cost) / foretold if foretold > 0 else -1.0
        is_small = _norm(move) <= tolerances[1] * (_norm(x) + tolerances[1])
        if gain > 0 and np.isfinite(new_cost):
            is_flat = cost - new_cost <= tolerances[0] * cost
            x, value, cost = x + move, new, new_cost
            matrix, slopes = jacobian(x), slopes + 1
            gradient = matrix.T @ value
            damping, growth = max(damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 1e-15), 2.0
            status = 4 if is_flat and is_small else 2 if is_flat else 3 if is_small else 0
        else:
            damping, growth = damping * growth, growth * 2
            status = 3 if is_small else 0
        if status:
            break
    return Result(
        x=x, cost=cost, fun=value, jac=matrix, grad=gradient, nfev=calls, njev=slopes,
        optimality=float(np.max(abs(gradient), initial=0.0)), active_mask=np.zeros(x.size, int),
        status=status, message=_MESSAGES[status], success=status > 0, sparsity=jacobian.colors,
    )  # fmt: skip


_MESSAGES = {
    0: "The maximum number of function evaluations is exceeded.",
    1: "`gtol` termination condition is satisfied.",
    2: "`ftol` termination condition is satisfied.",
    3: "`xtol` termination condition is satisfied.",
    4: "Both `ftol` and `xtol` termination conditions are satisfied.",
}


class Squares:
    """How the entries of ``J^T J`` follow from those of ``J``.

    Args: pattern: Where ``J`` has entries.
    """

    def __init__(self, pattern: Pattern) -> None:
        n = pattern.shape[1]
        lengths = np.diff(pattern.indptr)
        # Pairs of entries of one row: their products add up to the entries of J^T J.
        counts = lengths[pattern.rows]
        self.first = np.repeat(np.arange(pattern.size), counts)
        number = np.arange(len(self.first)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.second = pattern.indptr[pattern.rows[self.first]] + number
        columns = pattern.indices
        keys = columns[self.first] * n + columns[self.second]
        diagonal = np.arange(n) * (n + 1)
        places = np.sort(np.concatenate([keys, diagonal]))
        places = places[np.diff(places, prepend=-1) != 0]
        self.sums, self.diagonal = np.searchsorted(places, keys), np.searchsorted(places, diagonal)
        indptr = np.searchsorted(places, np.arange(n + 1) * n)
        self.pattern = Pattern(indptr, places % n, (n, n))

    def known(self, data: Any, weights: Any) -> Any:
        """The entries, with weights added on the diagonal, of known ones of ``J``."""
        products = data[self.first] * data[self.second]
        found = np.bincount(self.sums, products, self.pattern.size).astype(data.dtype)
        found[self.diagonal] += weights
        return found


class _NormalEquations:
    """How ``J^T J`` plus a diagonal is inverted; what follows from the pattern is found once.

    Ordered by Cuthill and McKee, matrices of chains and strips have a narrow band, which LAPACK
    factors. In others conjugate gradients are tried. If they take too long, matrices are factored
    from there on, unless factors would be filled.

    Args: pattern: Where ``J`` has entries.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.width, self.limit = pattern.shape[1], FEW_PRODUCTS
        self.factors: Eliminated | None = None
        lengths = np.diff(pattern.indptr)
        if lengths @ lengths > MOST_PAIRS * pattern.size:
            self.limit = MOST_PRODUCTS
            return
        places = pattern.matrix(np.ones(pattern.size, np.float32))
        normal = scipy.sparse.csr_array(places.T @ places)
        self.pattern = pattern
        self.order = scipy.sparse.csgraph.reverse_cuthill_mckee(normal, symmetric_mode=True)
        self.place = np.argsort(self.order)
        rows = np.repeat(self.place, np.diff(normal.indptr))
        self.width = int(np.max(rows - self.place[normal.indices], initial=0))

    @cached_property
    def squares(self) -> Squares:
        """How the matrix is formed."""
        return Squares(self.pattern)

    @cached_property
    def places(self) -> tuple[Any, Any, Any]:
        """The entries in the lower half of the band: numbers, how far below, and columns."""
        own = self.squares.pattern
        columns = self.place[own.indices]
        ahead = self.place[own.rows] - columns
        (lower,) = np.nonzero(ahead >= 0)
        return lower, ahead[lower], columns[lower]

    def solve(self, matrix: Any, weights: Any, right: Any) -> Any:
        """The solution of the system with these weights on the diagonal.

        It is nan if the matrix is not positive definite as rounded: more damping is needed.
        """
        try:
            return self._solve(matrix, weights, right)
        except (RuntimeError, np.linalg.LinAlgError):
            if not np.isfinite(matrix.data).all():
                raise
            return np.full_like(right, np.nan)

    def _solve(self, matrix: Any, weights: Any, right: Any) -> Any:
        if self.width <= WIDEST:
            return self._by_band(self.squares.known(matrix.data, weights), right)
        if self.factors is None:
            found, is_good = conjugate_gradients(matrix, weights, right, self.limit)
            if is_good or self.limit == MOST_PRODUCTS:
                return found
            self.factors = Eliminated.of(self.squares.pattern)
            if self.factors is None:
                self.limit = MOST_PRODUCTS
                return conjugate_gradients(matrix, weights, right, self.limit)[0]
        return self.factors.solve(self.squares.known(matrix.data, weights), right)

    def _by_band(self, entries: Any, right: Any) -> Any:
        band = np.zeros((self.width + 1, len(right)), entries.dtype)
        lower, ahead, columns = self.places
        band[ahead, columns] = entries[lower]
        found = scipy.linalg.solveh_banded(
            band, right[self.order], lower=True, check_finite=False, overwrite_ab=True
        )
        return found[self.place]


def conjugate_gradients(matrix: Any, weights: Any, right: Any, limit: int) -> tuple[Any, bool]:
    """An approximate solution of ``(J^T J + diag(weights)) x = right``, and whether it is good.

    What is found in any number of steps makes the quadratic model smaller, and the model's decrease
    has the form that it has for the solution.

    Args:
        matrix: ``J``.
        weights: Positive.
        right: The right-hand side.
        limit: The most products with the matrix.
    """
    transposed = matrix.T
    tolerance = float(np.finfo(right.dtype).eps)  # of the square, in the preconditioner's norm
    inverse = 1 / (transposed.power(2).sum(1) + weights)
    x, rest = np.zeros_like(right), right.copy()
    direction = inverse * rest
    size = goal = _inner(rest, direction)
    for _ in range(limit):
        image = transposed @ (matrix @ direction) + weights * direction
        length = size / _inner(direction, image)
        x += length * direction
        rest -= length * image
        step = inverse * rest
        old, size = size, _inner(rest, step)
        if not size > tolerance * goal:
            break
        direction = step + size / old * direction
    return x, bool(size <= tolerance * goal)


class TracedNormalEquations:
    """The normal equations of entries that are traced.

    They are solved in a band, or by elimination, where factors are not filled; others by conjugate
    gradients in a loop.

    Args: pattern: Where ``J`` has entries.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.jacobian = pattern
        self.factors: Callable[[Any, Any], Any] | None = None
        lengths = np.diff(pattern.indptr)
        if lengths @ lengths > MOST_PAIRS * pattern.size:
            return
        self.squares = Squares(pattern)
        square = self.squares.pattern
        band = Band(square)
        if band.is_narrow:
            self.factors = lambda entries, right: band.solve(band.factors(0.0, entries), right)
        elif (eliminated := Eliminated.of(square)) is not None:
            self.factors = eliminated.solve

    def solve(self, data: Any, damping: Any, right: Any) -> Any:
        """The step from entries of ``J``."""
        if self.factors is None:
            return self._by_gradients(data, damping, right)
        squares = self.squares
        first = fnp.take(data, squares.first, mode="clip")
        products = first * fnp.take(data, squares.second, mode="clip")
        zeros = fnp.zeros(squares.pattern.size, data.dtype)
        entries = fnp.at(zeros)[squares.sums].add(products)
        weights = _weights(damping, fnp.take(entries, squares.diagonal, mode="clip"))
        return self.factors(fnp.at(entries)[squares.diagonal].add(weights), right)

    def _by_gradients(self, data: Any, damping: Any, right: Any) -> Any:
        """The step by conjugate gradients, in a loop: see `conjugate_gradients`."""
        rows, columns = self.jacobian.rows, self.jacobian.indices
        n_rows, n = self.jacobian.shape

        def transposed(values: Any) -> Any:
            return fnp.at(fnp.zeros(n, data.dtype))[columns].add(values)

        scale = transposed(data**2)
        weights = _weights(damping, scale)
        inverse = 1 / (scale + weights)

        def goes_on(state: Any) -> Any:
            count, _, _, _, size = state
            return (count < MOST_PRODUCTS) & (size > tolerance * goal)

        def step(state: Any) -> Any:
            count, x, rest, direction, size = state
            products = data * fnp.take(direction, columns, mode="clip")
            image = fnp.at(fnp.zeros(n_rows, data.dtype))[rows].add(products)
            image = transposed(data * fnp.take(image, rows, mode="clip")) + weights * direction
            length = size / fnp.sum(direction * image)
            x, rest = x + length * direction, rest - length * image
            moved = inverse * rest
            new = fnp.sum(rest * moved)
            return count + 1, x, rest, moved + new / size * direction, new

        tolerance = float(np.finfo(data.dtype).eps)  # as in `conjugate_gradients`
        direction = inverse * right
        goal = fnp.sum(right * direction)
        start = np.int64(0), fnp.zeros_like(right), right, direction, goal
        return lax.while_loop(goes_on, step, start)[1]


def _weights(damping: Any, scale: Any) -> Any:
    """Marquardt's weights on the diagonal, which has a scale."""
    return damping * fnp.where(scale > 0, scale, 1.0)


def _half_square(x: Any) -> float:
    return _inner(x, x) / 2


def _norm(x: Any) -> float:
    return _inner(x, x) ** 0.5


def _inner(x: Any, y: Any) -> float:
    """An inner product without the threads of BLAS, whose start takes longer than the product."""
    return float(np.sum(x * y))
