"""Jacobians and Hessians of known pattern: found, coloured, compressed, and compiled.

``f : R^n -> R^m``. Its program is linearised once. The pattern follows from the tangent program, a
colouring from the pattern, and one product with a seed for each colour has all entries: they are
taken from where the colouring says that they stand alone.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.api.arguments import Function, check_callable, name_of, normalize_argnums
from funcgrad.api.compilation import Entry, Jitted
from funcgrad.api.differentiation import grad, is_differentiable, refuse_input, split_aux
from funcgrad.api.staging import ShapeDtypeStruct, StagedFunction
from funcgrad.base.digests import digest
from funcgrad.base.pytree import PyTreeDef, tree_flatten, tree_leaves, tree_map, tree_unflatten
from funcgrad.compiler.runtime.executable import Executable
from funcgrad.core.program import Program, evaluate
from funcgrad.core.trace import EVAL, current_trace, using_trace
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.passes.cost import has_loops, work_of_program
from funcgrad.patterns.arrays import SparseArray
from funcgrad.patterns.bands import band_entries
from funcgrad.patterns.coloring import Coloring, coloring
from funcgrad.patterns.linear_programs import Derivative
from funcgrad.patterns.sparsity_pattern import SparsityPattern
from funcgrad.primitives.indexing import ScatterAdd
from funcgrad.primitives.objects import flatten_values, is_traced
from funcgrad.primitives.sparse import Pattern, SparseProduct

KINDS = {"jacfwd": "columns", "jacrev": "both", "hessian": "symmetric"}
"""Dimension that each transformation colours."""

SPARSE = 16
"""For solvers a matrix is sparse if it has fewer than one of so many entries."""

MOST_WORK = 1 << 20
"""Operations on elements, for each equation, up to which NumPy evaluates the first call of a
derivative: compiling an equation takes about a millisecond."""

_COLORINGS: WeakValueDictionary[Any, Coloring] = WeakValueDictionary()
"""Colourings that results of solvers have, by what they are of: the next solution takes them again,
and what follows from their patterns."""

TOLERANCE = 1e-6
"""How much a product with a given pattern may differ from the derivative, of float64 numbers."""


class _Point:
    """A function of given types, with the derivative of its program.

    Args:
        fun: The function; of a Hessian its gradient.
        args: Arguments, values or types.
        kwargs: Named arguments.
        argnums: The arguments to differentiate.
        has_aux: Whether it returns extra results.
        what: How messages call the transformation.
        holomorphic: Whether it is of complex numbers.
    """

    def __init__(
        self,
        fun: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: int | Sequence[int],
        has_aux: bool,
        what: str,
        holomorphic: bool = False,
    ) -> None:
        chosen = normalize_argnums(argnums, len(args), what)
        self.what = what
        self.holomorphic = holomorphic
        self.aux_tree: list[PyTreeDef] = []
        trees: list[PyTreeDef] = []

        def flat(*args_: Any, **kwargs_: Any) -> list[Any]:
            out = fun(*(args_[i] for i in where), **kwargs_)
            extra: list[Any] = []
            if has_aux:
                out, *extra = split_aux(out, self.aux_tree, what)
            outs, tree = flatten_values(out)
            trees.append(tree)
            return [*outs, *extra]

        flat.__name__ = name_of(fun)
        # Columns are in the order of `argnums`, as the rows of a Hessian.
        order = list(range(len(args)))
        for place, i in zip(sorted(chosen), chosen, strict=True):
            order[place] = i
        where = np.argsort(order).tolist()
        ordered = tuple(args[i] for i in order)
        self.staged = staged = StagedFunction(flat, ordered, kwargs, what)
        self.out_tree = trees[-1]
        self.in_tree = tree_flatten(
            args[chosen[0]] if isinstance(argnums, int) else tuple(args[i] for i in chosen)
        )[1]
        is_active = [False] * len(staged.captured)
        for i, arg in enumerate(ordered):
            is_active += [i in chosen] * len(tree_leaves(arg))
        is_active += [False] * (len(staged.avals) + len(staged.captured) - len(is_active))
        program = staged.program
        self.in_avals = [a for a, on in zip(program.in_avals, is_active, strict=True) if on]
        for number, aval in enumerate(self.in_avals):
            value = np.empty((), aval.dtype)
            if not is_differentiable(value, holomorphic, False, False):
                refuse_input(args, chosen, what, number, value)
        n = self.out_tree.num_leaves
        self.out_avals = program.out_avals[:n]
        short = Program(
            program.inputs, program.equations, program.outputs[:n], program.name, program.constants
        )
        self.derivative = Derivative(short, is_active)
        self.dtype = np.result_type(*(a.dtype for a in self.in_avals)) if self.in_avals else float

    @property
    def shape(self) -> tuple[int, int]:
        return self.derivative.shape

    def pattern(self, is_symmetric: bool = False) -> SparsityPattern:
        """Sparsity pattern of the derivative."""
        sizes = [a.size for a in self.out_avals]
        rows = zip(self.derivative.relations, sizes, strict=True)
        return SparsityPattern(self.shape, tuple(rows), None, is_symmetric)

    def aux(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The extra results, in a tuple if there are any."""
        if not self.aux_tree:
            return ()
        outs = evaluate(self.staged.program, args)
        return (tree_unflatten(self.aux_tree[0], outs[len(self.out_avals) :]),)

    def data(self, colors: Coloring, args: Sequence[Any]) -> tuple[Any, list[Any]]:
        """All entries in the order of rows, and the residuals.

        Those of a linear function are computed now, and are constants of what is traced.
        """
        constants = self.derivative.constants
        if constants is None:
            _, residuals = self.derivative.results(args)
            return self._entries(colors, residuals), residuals
        with using_trace(EVAL):
            return np.asarray(self._entries(colors, constants)), constants

    def diagonals(self, args: Sequence[Any], is_symmetric: bool) -> Any:
        """Pattern and entries, by diagonals or a band; ``None`` if the derivative is neither."""
        constants = self.derivative.constants
        with using_trace(current_trace() if constants is None else EVAL):
            residuals = self.derivative.results(args)[1] if constants is None else constants
            found = self.derivative.diagonals(residuals, is_symmetric)
            if found is not None:
                return found[0], found[1](self.dtype)
            band = self.derivative.band(residuals)
            if band is None:
                return None
            pattern = self.pattern(is_symmetric)
            data = band_entries(band, pattern)
            return None if data is None else (pattern, data(self.dtype))

    def sum(self, args: Sequence[Any], is_symmetric: bool) -> Any:
        """Pattern and entries, as constants and less than half as many others; or ``None``.

        Neither summand of a symmetric matrix need be symmetric.
        """
        if self.derivative.summands is None:
            return None
        known, rest = map(self._with, self.derivative.summands)
        if known.derivative.constants is None:  # the program has effects
            return None
        found = rest.diagonals(args, is_symmetric=False)
        pattern = rest.pattern() if found is None else found[0]
        whole = self.pattern(is_symmetric)
        if 2 * pattern.nnz > whole.nnz:
            return None
        data = found[1] if found else rest.data(coloring(pattern, "both"), args)[0]
        colors = coloring(known.pattern(), "both")
        constant = np.zeros(whole.nnz, self.dtype)
        places, is_there = _places_among(colors.pattern, whole)
        constant[places] = known.data(colors, args)[0][is_there]
        places, is_there = _places_among(pattern, whole)
        if not is_there.all():
            data = fnp.take(data, np.flatnonzero(is_there))
        return whole, ScatterAdd((0,), "clip", True).bind(constant, data, places)

    def _with(self, derivative: Derivative) -> _Point:
        """The same with another derivative."""
        found = copy(self)
        found.derivative = derivative
        return found

    def _entries(self, colors: Coloring, residuals: Sequence[Any]) -> Any:
        derivative = self.derivative
        found = []
        if colors.n_columns:
            found.append(self._pushed(residuals, colors.column_seeds(self.dtype)))
        if colors.n_rows:
            pulled = derivative.pull(residuals, colors.row_seeds(self.dtype))
            found.append(_joined(pulled, self.in_avals, colors.n_rows, self.dtype))
        if not found:
            return fnp.zeros(colors.pattern.nnz, self.dtype)
        products = fnp.concatenate([fnp.reshape(x, (x.size,)) for x in found])
        return colors.entries(products)

    def _pushed(self, residuals: Sequence[Any], seeds: Any) -> Any:
        """Products of the derivative with seeds, a row for each."""
        pushed = iter(self.derivative.push(residuals, seeds))
        on = self.derivative.linearized.is_active_out
        each = [next(pushed) if active else None for active in on]
        return _joined(each, self.out_avals, len(seeds), self.dtype)

    def probed(self, colors: Coloring, data: Any, residuals: Sequence[Any]) -> tuple[Any, Any]:
        """The derivative in a random direction, and what entries say it is."""
        direction = np.random.default_rng(0).uniform(0.5, 1.5, self.shape[1]).astype(self.dtype)
        (found,) = self._pushed(residuals, direction[None])
        return found, SparseProduct(colors.pattern.pattern).bind(data, direction)

    def blocks(self, pattern: SparsityPattern, data: Any) -> Any:
        """The entries as matrices, one for each result and each argument."""
        derivative = self.derivative
        columns = list(zip(derivative.in_ends, derivative.in_ends[1:], strict=False))
        rows = [
            tree_unflatten(self.in_tree, [_block(pattern, data, out, own) for own in columns])
            for out in zip(derivative.out_ends, derivative.out_ends[1:], strict=False)
        ]
        return tree_unflatten(self.out_tree, rows)


def _joined(each: Sequence[Any], avals: Sequence[Any], count: int, dtype: Any) -> Any:
    """Arrays with a leading axis as a matrix, with zeros for those that are zero."""
    flat = [
        fnp.zeros((count, a.size), dtype) if x is None else fnp.reshape(x, (count, a.size))
        for x, a in zip(each, avals, strict=True)
    ]
    return flat[0] if len(flat) == 1 else fnp.concatenate(flat, 1)


def _places_among(pattern: SparsityPattern, whole: SparsityPattern) -> tuple[Any, Any]:
    """Places of entries among those of another pattern, and which of them are there.

    Of a pattern that is known to be symmetric, some entries of its parts are zero in sum.
    """
    own, others = (p.pattern.rows * p.shape[1] + p.pattern.indices for p in (pattern, whole))
    places = np.searchsorted(others, own)
    is_there = np.append(others, -1)[places] == own
    return places[is_there], is_there


def _block(
    pattern: SparsityPattern, data: Any, rows: tuple[int, int], columns: tuple[int, int]
) -> SparseArray:
    whole = pattern.pattern
    if rows == (0, whole.shape[0]) and columns == (0, whole.shape[1]):
        return SparseArray(data, whole)
    is_inside = (whole.indices >= columns[0]) & (whole.indices < columns[1])
    is_inside &= (whole.rows >= rows[0]) & (whole.rows < rows[1])
    (chosen,) = np.nonzero(is_inside)
    lengths = np.bincount(whole.rows[chosen] - rows[0], minlength=rows[1] - rows[0])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    shape = (rows[1] - rows[0], columns[1] - columns[0])
    part = Pattern(indptr, whole.indices[chosen] - columns[0], shape)
    return SparseArray(fnp.take(data, chosen), part)


class _FromSecondCall(Jitted):
    """A function that is compiled when it is called again: NumPy evaluates the first call.

    A single derivative takes less time so, if arrays are not large and there are no loops but those
    that operations for many diagonals are when they are compiled.
    """

    _rerolls = False

    def _entry(self, call: Any, count: bool) -> Entry:
        entry = super()._entry(call, count)
        if not count:  # a part of another program
            entry.staged.reroll()
        return entry

    def _compile(self, entry: Entry, call: Any) -> Executable | None:
        program = entry.staged.program
        is_long = work_of_program(program) > MOST_WORK * len(program.equations)
        if entry.was_evaluated or is_long or has_loops(program):
            entry.staged.reroll()
            return super()._compile(entry, call)
        entry.was_evaluated = True
        return None


def sparse_derivative(
    transformation: str,
    fun: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    sparse: Any,
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Compute `jacfwd`, `jacrev` or `hessian` with ``sparse``.

    Args:
        transformation: Its name.
        fun: The function.
        argnums: The arguments to differentiate.
        has_aux: Whether the function returns extra results.
        holomorphic: Whether the function is of complex numbers.
        sparse: ``True``, or a pattern, or a colouring.
    """
    what = f"{transformation}({name_of(fun)})"
    given = sparse
    if not isinstance(sparse, bool | SparsityPattern | Coloring):
        given = _given(what, sparse, transformation == "hessian")
    known = given.pattern if isinstance(given, Coloring) else given
    is_checked = isinstance(known, SparsityPattern) and not known.is_of_program
    inner = grad(fun, argnums, has_aux, holomorphic) if transformation == "hessian" else fun
    kind = KINDS[transformation]

    def entries(*args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        point = _Point(inner, args, kwargs, argnums, has_aux, what, holomorphic)
        values = [*point.staged.captured_values(), *point.staged.leaves]
        if given is True:
            is_symmetric = kind == "symmetric"
            found = point.diagonals(values, is_symmetric) or point.sum(values, is_symmetric)
            if found is None and point.derivative.hubs:
                found = point.diagonals(values, is_symmetric)
            if found is not None:
                pattern, data = found
                return point.blocks(_with_floats(pattern, point), data), point.aux(values), None
        found = _with_floats(point.pattern(kind == "symmetric") if given is True else given, point)
        colors = found if isinstance(found, Coloring) else coloring(found, kind)
        data, residuals = point.data(colors, values)
        probe = point.probed(colors, data, residuals) if is_checked else None
        return point.blocks(colors.pattern, data), point.aux(values), probe

    entries.__name__ = what
    compiled = _FromSecondCall(entries)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        matrices, aux, probe = compiled(*args, **kwargs)
        if type(matrices) is SparseArray and not aux and probe is None:
            return _eager(matrices)  # nearly always, and small matrices take microseconds
        if probe is not None and not is_traced(probe[0]):
            find = lambda: _Point(  # noqa: E731
                inner, args, kwargs, argnums, has_aux, what, holomorphic
            ).pattern()
            _check_probe(what, known, find, *probe)
        result = tree_map(_eager, matrices, is_leaf=lambda x: isinstance(x, SparseArray))
        return (result, *aux) if aux else result

    return run


def _given(what: str, sparse: Any, is_symmetric: bool) -> SparsityPattern:
    """The pattern that a user gives, as a matrix."""
    if sparse is None or np.ndim(sparse) != 2:
        raise ArgumentError(
            f"{what}: `sparse` is True, False, a Coloring, or a pattern: a SparsityPattern or a "
            "matrix with rows for the elements of the result and columns for those of the "
            f"argument, both in row-major order. It is {reprlib.repr(sparse)}."
        )
    given = SparsityPattern.of(sparse)
    if is_symmetric and given.shape[0] == given.shape[1] and (given.matrix != given.matrix.T).nnz:
        raise ArgumentError(
            f"{what}: the pattern given as `sparse` is not symmetric, as a Hessian is. "
            "Pass `pattern + pattern.T`, or let it be found: sparse=True."
        )
    return given


def _eager(matrix: SparseArray) -> Any:
    """SciPy's matrix, if entries are known."""
    data = matrix.data
    if type(data) is np.ndarray:
        return matrix.pattern.matrix(data)
    return matrix if is_traced(data) else matrix.to_scipy()


def _with_floats(given: Any, point: _Point) -> Any:
    """A pattern or a colouring, after its shape and the dtypes of results have been looked at."""
    pattern = given.pattern if isinstance(given, Coloring) else given
    if pattern.shape != point.shape:
        m, n = point.shape
        raise ShapeError(
            f"{point.what}: the pattern given as `sparse` has the shape {pattern.shape}, but the "
            f"derivative has {m} rows (elements of the result) and {n} columns (elements of the "
            "argument)."
        )
    needed, remedy = "real floating-point", "Return real and imaginary parts, or convert integers."
    if point.holomorphic:
        needed, remedy = "complex", "Leave out `holomorphic`."
    wrong = [a for a in point.out_avals if a.dtype.kind != ("c" if point.holomorphic else "f")]
    if wrong:
        raise DtypeError(
            f"{point.what} with `sparse` needs {needed} results, got {wrong[0]}. {remedy}"
        )
    return given


def _check_probe(
    what: str,
    given: SparsityPattern,
    find: Callable[[], SparsityPattern],
    exact: Any,
    from_entries: Any,
) -> None:
    """An error if a pattern given by the user misses an entry that is not zero."""
    error = np.abs(np.asarray(exact) - np.asarray(from_entries))
    scale = float(np.max(np.abs(exact), initial=0.0))
    tolerance = TOLERANCE if error.dtype == np.float64 else TOLERANCE**0.5
    (wrong,) = np.nonzero(error > tolerance * scale)
    if not len(wrong):
        return
    row = int(wrong[0])
    own = set(given.matrix[[row]].indices.tolist())
    missing = sorted(set(find().matrix[[row]].indices.tolist()) - own)
    columns = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
    others = f", and {len(wrong) - 1} more rows are wrong" if len(wrong) > 1 else ""
    raise ArgumentError(
        f"{what}: the pattern given as `sparse` misses an entry. In row {row} a random direction "
        f"has the derivative {exact[row]:.6g}, by the entries of the pattern it would be "
        f"{from_entries[row]:.6g}{others}. Row {row} may also depend on column(s) {columns}."
        " Add them, or let the pattern be found: sparse=True."
    )


def jacobian_sparsity(fun: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The sparsity pattern of a Jacobian, from the program of the function.

    Only the types of the arguments count, so that it holds for all values: where a branch or an
    index depends on values, the pattern has room for all of them. Millions of unknowns take
    milliseconds where indices are affine: slices, pads, windows, broadcasts, reductions.

    Returns: A function of the same arguments, or of `funcgrad.ShapeDtypeStruct` in their place,
        that returns a `SparsityPattern`. Rows are the elements of the result, columns those of the
        arguments, in the order of ``argnums``, leaf by leaf in row-major order.

    Raises:
        ArgumentError: If ``fun`` is no function.
        ConcretizationError: If the program depends on values.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> from funcgrad.sparsity import jacobian_sparsity
        >>> print(jacobian_sparsity(lambda x: x[1:] * x[:-1])(np.ones(3)).toarray().astype(int))
        [[1 1 0]
         [0 1 1]]
    """
    check_callable(fun, "jacobian_sparsity")
    what = f"jacobian_sparsity({name_of(fun)})"

    def pattern(*args: Any, **kwargs: Any) -> SparsityPattern:
        return _Point(fun, args, kwargs, argnums, False, what).pattern()

    return pattern


def hessian_sparsity(fun: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The sparsity pattern of a Hessian: which pairs of elements interact nonlinearly.

    It is the pattern of the Jacobian of the gradient, of whose entries those remain that have a
    mirror image.

    Args: fun: Maps arrays, or pytrees of them, to a scalar.
    Returns: As of `jacobian_sparsity`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> from funcgrad.sparsity import hessian_sparsity
        >>> pattern = hessian_sparsity(lambda x: np.sum(x[:-1] * x[1:]) + 3 * x[0])(np.ones(3))
        >>> print(pattern.toarray().astype(int))
        [[0 1 0]
         [1 0 1]
         [0 1 0]]
    """
    check_callable(fun, "hessian_sparsity")
    what = f"hessian_sparsity({name_of(fun)})"

    def pattern(*args: Any, **kwargs: Any) -> SparsityPattern:
        return _Point(grad(fun, argnums), args, kwargs, argnums, False, what).pattern(True)

    return pattern


def colors_of(
    f: Function, x: Any, *rest: Any, least: int = 256, kinds: Sequence[str] = ("columns",)
) -> Coloring | None:
    """A colouring of the derivative of ``f``, if it is sparse: solvers of large systems ask.

    Args:
        f: The function; of a Hessian its gradient.
        x: Its first argument, in which it is differentiated, or what has its shape and dtype.
        rest: Its other arguments, likewise.
        least: Unknowns from which the pattern is asked for.
        kinds: What is coloured, as in `coloring`: the first of these that takes few colours.
    """
    if x.size < least or x.dtype.kind != "f":
        return None
    types = [ShapeDtypeStruct(a.shape, a.dtype) for a in (x, *rest)]
    pattern = _Point(f, tuple(types), {}, 0, False, f"the Jacobian of {name_of(f)}").pattern(
        "symmetric" in kinds
    )
    m, n = pattern.shape
    if pattern.bound * SPARSE > m * n:
        return None
    places = pattern.pattern
    known = digest(places.indptr.tobytes() + places.indices.tobytes())
    for kind in kinds:
        colors = _COLORINGS.get((kind, pattern.shape, known))
        if colors is None:
            colors = _COLORINGS[kind, pattern.shape, known] = coloring(pattern, kind)
        if colors.n_colors * SPARSE <= n:
            return colors
    return None
