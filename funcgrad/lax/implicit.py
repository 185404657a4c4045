"""Solutions of equations, differentiated through the equation and not through the solver.

``custom_root``: where ``f(x, a) = 0``, the implicit function theorem gives
``x_dot = -(df/dx)^-1 (df/da) a_dot``. ``custom_linear_solve``: where ``A x = b``,
``A x_dot = b_dot - A_dot x``, and the transpose of the solution is that of the transposed system.
What the equation depends on is what its function closes over. Solvers are the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.base.dialect import default_dtype
from funcgrad.base.pytree import PyTreeDef, tree_map, tree_structure, tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.base.scalars import plain_number, scalar_number
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.trace import EVAL, current_trace
from funcgrad.errors import ArgumentError, DtypeError, MissingRuleError, ShapeError, TreeError
from funcgrad.higher_order.closures import Captured, run_lifted, tracers_in
from funcgrad.higher_order.custom import bind_rules
from funcgrad.higher_order.linear_call import LinearCall, Values, push_linearized, zeros
from funcgrad.higher_order.rules import Rules
from funcgrad.higher_order.staging import check_leaf, leaves_with_paths, place
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.objects import flatten_extra, flatten_values
from funcgrad.transforms.linearize import linearize_flat, record_linear
from funcgrad.transforms.programs import stage_closed

Tree = Any
Function = Callable[[Tree], Tree]
Solver = Callable[[Function, Tree], Any]
FlatFunction = Callable[[Sequence[Any]], list[Any]]


def custom_root(
    f: Function, initial_guess: Tree, solve: Solver, tangent_solve: Solver, has_aux: bool = False
) -> Any:
    """A root of a function, with derivatives by the implicit function theorem.

    Derivatives are taken with respect to what ``f`` closes over; they do not depend on the initial
    guess, nor on how the root was found.

    Args:
        f: Function whose root is sought; its result has the structure and types of its argument.
        initial_guess: Where the search begins, a pytree of floating arrays.
        solve: ``solve(f, initial_guess)`` returns a root. It need not be differentiable.
        tangent_solve: ``tangent_solve(g, y)`` returns ``x`` with ``g(x) = y`` for a linear ``g``,
            and is linear in ``y``: such as ``lambda g, y: y / g(1.0)`` for scalars.
        has_aux: Whether ``solve`` returns a pair of the root and anything else.
    Returns: What ``solve`` returns.

    Raises:
        TreeError: If the root or the value of ``f`` does not have the structure of the guess.
        ShapeError: If their types differ.

    Example:
        >>> def square_root(a):
        ...     def newton(f, x):
        ...         step = lambda _, x: x - f(x) / fg.grad(f)(x)
        ...         return fg.lax.fori_loop(0, 10, step, x)
        ...     divide = lambda g, y: y / g(1.0)
        ...     return fg.lax.custom_root(lambda x: x * x - a, 1.0, newton, divide)
        >>> round(float(square_root(4.0)), 6), round(float(fg.grad(square_root)(4.0)), 6)
        (2.0, 0.25)
    """
    unknown = _Unknown(initial_guess, f"custom_root({_name(f)})", "initial_guess", has_aux)
    if current_trace() is EVAL:
        return unknown.evaluate(solve, unknown.flat(f, "f"))
    return _Root(unknown, f, solve, tangent_solve).run()


def custom_linear_solve(
    matvec: Function,
    b: Tree,
    solve: Solver,
    transpose_solve: Solver | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The solution of a linear system without a matrix, with derivatives of the solution.

    Derivatives are taken with respect to ``b`` and to what ``matvec`` closes over.

    Args:
        matvec: Linear function ``A``; its result has the structure and types of its argument.
        b: Right-hand side, a pytree of floating arrays.
        solve: ``solve(matvec, b)`` returns ``x`` with ``matvec(x) = b``. It need not be
            differentiable.
        transpose_solve: The same for the transposed system: ``transpose_solve(vecmat, ct)``. It is
            needed in reverse mode.
        symmetric: Whether ``matvec`` is its own transpose, so that ``solve`` serves for both.
        has_aux: Whether the solvers return a pair of the solution and anything else.
    Returns: What ``solve`` returns.

    Raises:
        TreeError: If the solution or ``matvec(x)`` does not have the structure of ``b``.
        ShapeError: If their types differ.
        MissingRuleError: In reverse mode, without ``transpose_solve``.

    Example:
        >>> def solution(d, b):
        ...     divide = lambda matvec, b: b / matvec(np.ones_like(b))
        ...     return fg.lax.custom_linear_solve(lambda x: d * x, b, divide, symmetric=True)
        >>> d, b = np.array([2.0, 4.0]), np.array([1.0, 1.0])
        >>> solution(d, b)
        array([0.5 , 0.25])
        >>> fg.grad(lambda d: solution(d, b).sum())(d)
        array([-0.25  , -0.0625])
    """
    what = f"custom_linear_solve({_name(matvec)})"
    unknown = _Unknown(b, what, "b", has_aux)
    apply = unknown.flat(matvec, "matvec")
    if current_trace() is EVAL:
        return unknown.evaluate(solve, apply)
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    captured = tracers_in(matvec, solve, transpose_solve)
    # Also if it is symmetric: its derivative with respect to what it closes over need not be.
    transpose = unknown.transpose_of(apply)
    pairs = ((apply, solve), (transpose, transpose_solve))
    return _LinearSystem(unknown, captured, pairs).run(has_aux)


def _strong(aval: ShapedArray) -> ShapedArray:
    """The type of a value, of which Python's numbers have the dtype of the dialect."""
    return shaped(aval.shape, default_dtype(aval.dtype))


class _Unknown:
    """The structure and types that the unknown of an equation has.

    Args:
        example: A pytree of that structure.
        what: How messages call the equation.
        root: How messages call the example.
        has_aux: Whether solvers return anything else.
    """

    def __init__(self, example: Tree, what: str, root: str, has_aux: bool) -> None:
        self.what = what
        self.root = root
        self.has_aux = has_aux
        self.leaves, self.paths, self.tree = leaves_with_paths(example, root)
        self.avals: list[ShapedArray] = []
        self.aux_tree: PyTreeDef = tree_structure(None)
        for i, (leaf, path) in enumerate(zip(self.leaves, self.paths, strict=True)):
            aval = check_leaf(leaf, path, what)
            if aval.dtype.kind not in "fc":
                raise DtypeError(
                    f"{what}: `{path}` is {aval.strong()}, but unknowns must be floating: convert "
                    f"it with .astype(float).{place()}"
                )
            self.avals.append(_strong(aval))
            self.leaves[i] = convert(leaf, _strong(aval).dtype)

    def __call__(self, out: Any, who: str) -> list[Any]:
        """Leaves of a value that must be like the unknown."""
        leaves, tree = flatten_values(out)
        if tree != self.tree:
            raise TreeError(
                f"{self.what}: {who} must return the structure of {self.root}.{place()}"
                f"  expected      {self.tree}\n  got           {tree}"
            )
        for x, aval, path in zip(leaves, self.avals, self.paths, strict=True):
            got = check_leaf(x, path, f"{self.what}: {who}")
            if _strong(got) != aval:
                raise ShapeError(
                    f"{self.what}: {who} must return the types of {self.root}.{place()}"
                    f"  expected      {aval} like `{path}`\n  got           {got.strong()}"
                )
        return leaves

    def flat(self, function: Function, who: str) -> FlatFunction:
        """A function of pytrees as a function of leaves."""
        return lambda xs: self(function(tree_unflatten(self.tree, xs)), who)

    def solved(self, solve: Solver, apply: FlatFunction, start: Values, who: str) -> list[Any]:
        """Leaves of what a solver returns: the solution, and what else there is."""
        was_called = False

        def function(x: Tree) -> Tree:
            nonlocal was_called
            was_called = True
            return tree_unflatten(self.tree, apply(self(x, "the argument of a linear function")))

        guess = tree_unflatten(self.tree, [scalar_number(x) for x in start])
        out, aux = tree_map(plain_number, solve(function, guess)), None
        if self.has_aux:
            if not isinstance(out, tuple | list) or len(out) != 2:
                raise ArgumentError(
                    f"{self.what}: with has_aux=True, {who} must return a pair (solution, aux), "
                    f"but it returned a {type(out).__name__}.{place()}"
                )
            out, aux = out
        extra, self.aux_tree = flatten_extra(aux)
        solution = self(out, who)
        if not was_called:
            # A solver that did not look at the equation has not shown that its types are right.
            apply(solution)
        return [*solution, *extra]

    def evaluate(self, solve: Solver, apply: FlatFunction) -> Any:
        """Run the solver outside of all transformations."""
        return self.result(self.solved(solve, apply, self.leaves, "solve"))

    def transpose_of(self, apply: FlatFunction) -> FlatFunction:
        """The transpose of a linear function of leaves."""

        def transposed(cts: Sequence[Any]) -> list[Any]:
            mask = [True] * len(self.avals)
            blank = [None] * len(self.avals)
            _, linear = record_linear(
                lambda *xs: apply(xs), blank, mask, self.avals, self.what, separates=True
            )
            return self.dense(linear.pull(cts))

        return transposed

    def dense(self, values: Values) -> list[Any]:
        """Replace symbolic zeros by arrays of zeros."""
        return [zeros(a) if x is None else x for x, a in zip(values, self.avals, strict=True)]

    def result(self, outs: Values) -> Any:
        """Result of the solver, with other leaves."""
        n = len(self.avals)
        solution = tree_unflatten(self.tree, outs[:n])
        return (solution, tree_unflatten(self.aux_tree, outs[n:])) if self.has_aux else solution


class _Root:
    """A root under a transformation."""

    def __init__(
        self, unknown: _Unknown, f: Function, solve: Solver, tangent_solve: Solver
    ) -> None:
        self.unknown = unknown
        self.f = unknown.flat(f, "f")
        self.solve = solve
        self.tangent_solve = tangent_solve
        self.captured = tracers_in(f, solve, tangent_solve)
        title = f"tangent_solve of {unknown.what}"
        self.rules = Rules(unknown.what, fun=self._fun, jvp=self._jvp, jvp_title=title)

    def run(self) -> Any:
        return self.unknown.result(bind_rules(self.rules, [*self.captured, *self.unknown.leaves]))

    def _lift(self, values: Values, function: Callable[[], list[Any]]) -> list[Any]:
        return run_lifted(self.captured, values, function)

    def _fun(self, *inputs: Any) -> list[Any]:
        n = len(self.captured)
        start = inputs[n:]
        return self._lift(
            inputs[:n], lambda: self.unknown.solved(self.solve, self.f, start, "solve")
        )

    def _jvp(self, inputs: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        unknown = self.unknown
        n = len(self.captured)
        values = inputs[:n]
        outs = bind_rules(self.rules, inputs)
        k = len(unknown.avals)
        root = outs[:k]
        no_tangents: list[Any] = [None] * len(outs)
        if all(t is None for t in tangents[:n]):
            return outs, no_tangents
        _, shift = push_linearized(
            lambda *xs: self._lift(xs, lambda: self.f(root)), values, tangents[:n], unknown.what
        )
        if all(t is None for t in shift):
            return outs, no_tangents
        _, slope = linearize_flat(
            lambda *xs: self._lift(values, lambda: self.f(xs)), root, [True] * k, unknown.what
        )
        right = [-t for t in unknown.dense(shift)]
        dots = self._lift(values, lambda: self._tangent(slope.push, right))
        return outs, [*dots, *[None] * (len(outs) - k)]

    def _tangent(self, push: FlatFunction, right: Values) -> list[Any]:
        unknown = self.unknown
        tree = unknown.tree

        def slope(x: Tree) -> Tree:
            return tree_unflatten(
                tree, unknown.dense(push(unknown(x, "the argument of a linear function")))
            )

        return unknown(self.tangent_solve(slope, tree_unflatten(tree, right)), "tangent_solve")


@dataclass(eq=False)
class _LinearSystem:
    """A linear system under a transformation, solvable in both directions.

    Args:
        unknown: What the solution looks like.
        captured: Values that the functions close over.
        directions: The linear function and its solver, then those of the transpose.
    """

    unknown: _Unknown
    captured: Captured
    directions: Sequence[tuple[FlatFunction, Solver | None]]

    def __post_init__(self) -> None:
        self.apply, self.solve = self.directions[0]

    def run(self, has_aux: bool) -> Any:
        inputs = [*self.captured, *self.unknown.leaves]
        avals = self.unknown.avals
        if has_aux:
            every = [*(aval_of(x).strong() for x in self.captured), *avals]
            n = len(self.captured)
            program = stage_closed(
                lambda *xs: self.forward(xs[:n], xs[n:]), every, self.unknown.what
            )
            avals = [a.strong() for a in program.out_avals]
        return self.unknown.result(self._bind(inputs, avals))

    def _bind(self, inputs: Values, out_avals: Sequence[ShapedArray]) -> list[Any]:
        call = LinearCall(
            self.unknown.what,
            self.forward,
            self.backward,
            len(self.captured),
            tuple(aval_of(x) for x in inputs),
            tuple(out_avals),
            len(out_avals) - len(self.unknown.avals),
            self.residual_rule,
        )
        return call.bind(*inputs)

    def forward(self, residuals: Values, right: Values) -> list[Any]:
        unknown = self.unknown
        solve = self.solve
        if solve is None:
            raise MissingRuleError(
                f"{unknown.what} is differentiated in reverse mode, which needs the solution of "
                "the transposed system: pass transpose_solve, or symmetric=True if the system is "
                "its own transpose."
            )
        return run_lifted(
            self.captured, residuals, lambda: unknown.solved(solve, self.apply, right, "solve")
        )

    def backward(self, residuals: Values, cts: Values) -> list[Any]:
        """Solve the transposed system, without the auxiliary output of the solver."""
        other = _Transposed(self.unknown, self.captured, self.directions[::-1])
        if other.solve is None:
            return other.forward(residuals, cts)
        return other._bind([*residuals, *self.unknown.dense(cts)], self.unknown.avals)

    def residual_rule(
        self, residuals: Values, dots: Values, right: Values, outs: Values
    ) -> list[Any]:
        """``x_dot = -A^-1 A_dot x``."""
        unknown = self.unknown
        k = len(unknown.avals)
        solution = outs[:k]
        _, shift = push_linearized(
            lambda *xs: run_lifted(self.captured, xs, lambda: self.apply(solution)),
            residuals,
            dots,
            unknown.what,
        )
        none: list[Any] = [None] * len(outs)
        if all(t is None for t in shift):
            return none
        moved = [-t for t in unknown.dense(shift)]
        avals = [*unknown.avals, *(aval_of(x).strong() for x in outs[k:])]
        return [*self._bind([*residuals, *moved], avals)[:k], *none[k:]]


class _Transposed(_LinearSystem):
    """The transposed system, of whose solver only the solution is kept."""

    def forward(self, residuals: Values, right: Values) -> list[Any]:
        return super().forward(residuals, right)[: len(self.unknown.avals)]

    def backward(self, residuals: Values, cts: Values) -> list[Any]:
        other = _Transposed(self.unknown, self.captured, self.directions[::-1])
        return other._bind([*residuals, *self.unknown.dense(cts)], self.unknown.avals)


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
