"""custom_jvp, custom_vjp, custom_vmap, custom_gradient, closure_convert: rules by the user.

One class serves all three decorators, so that a function may have any combination of rules. A call
outside of all transformations runs the function. A call inside of one becomes a `CustomCall` of
flat functions, which are made, and whose results are checked, here.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cached_property, update_wrapper
from types import MethodType
from typing import Any

import numpy as np

from funcgrad.api.arguments import (
    Function,
    aval_of_argument,
    check_callable,
    leaf_paths,
    name_of,
    same_type,
)
from funcgrad.api.staging import StagedFunction
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.program import evaluate
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.dtypes import float0
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TreeError
from funcgrad.higher_order.closures import HoldsFunctions, run_lifted, tracers_in
from funcgrad.higher_order.custom import CustomCall, Pull, Rules
from funcgrad.higher_order.linear_call import Values, to_front, zeros
from funcgrad.primitives.elementwise import convert
from funcgrad.pytree import PyTreeDef, tree_flatten, tree_leaves, tree_structure, tree_unflatten


class SymbolicZero:
    """A tangent that is known to be zero, for rules made with ``symbolic_zeros=True``.

    Args:
        shape: Shape of the tangent.
        dtype: Its dtype; ``float0`` for integers and bools.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)

    def __repr__(self) -> str:
        return f"SymbolicZero(shape={self.shape}, dtype={self.dtype})"


class _CustomFunction(HoldsFunctions):
    """A function and its rules; the base of the decorators."""

    kind = ""
    missing_hint = ""

    def __init__(
        self,
        fun: Function,
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        check_callable(fun, self.kind)
        update_wrapper(self, fun, updated=())
        self.fun = fun
        self.name = name_of(fun)
        self.nondiff_argnums = _positions(fun, nondiff_argnums, nondiff_argnames, self._what)
        self.symbolic_zeros = False
        self.jvp_rule: Function | None = None
        self.fwd: Function | None = None
        self.bwd: Function | None = None
        self.vmap_rule: Function | None = None

    @property
    def _what(self) -> str:
        return f"{self.kind}({self.name})"

    def __repr__(self) -> str:
        return f"<{self._what}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def defjvp(self, jvp: Function, symbolic_zeros: bool = False) -> Function:
        """Give the function its forward-mode rule.

        Args:
            jvp: ``jvp(primals, tangents) -> (value, tangent)``: two tuples with an entry for every
                argument. Arguments of ``nondiff_argnums`` come in front, one by one. The tangent
                must be linear in the tangents. Integer arguments have ``float0`` tangents.
            symbolic_zeros: Whether zero tangents arrive as `SymbolicZero` instead of zeros.

        Returns:
            ``jvp``, so that this is a decorator.
        """
        check_callable(jvp, f"{self.name}.defjvp")
        self.jvp_rule = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Give the forward-mode rule argument by argument.

        Args:
            *jvps: For every argument ``jvp(tangent, value, *primals) -> tangent of the value``, or
                ``None`` where the derivative is zero.
        """
        if self.nondiff_argnums:
            raise ArgumentError(
                f"{self.name}.defjvps does not know nondiff_argnums: use {self.name}.defjvp."
            )
        for rule in jvps:
            if rule is not None:
                check_callable(rule, f"{self.name}.defjvps")

        def jvp(primals: Any, tangents: Any) -> Any:
            if len(jvps) != len(primals):
                raise ArgumentError(
                    f"{self.name}.defjvps was given {len(jvps)} rules, but {self.name} has "
                    f"{len(primals)} arguments: give None for those without derivative."
                )
            value = self(*primals)
            dots = [
                rule(t, value, *primals)
                for rule, t in zip(jvps, tangents, strict=True)
                if rule is not None and not _is_zero_tree(t)
            ]
            if not dots:
                return value, None
            columns = zip(*(tree_leaves(dot) for dot in dots), strict=True)
            total = [sum(column[1:], start=column[0]) for column in columns]
            return value, tree_unflatten(tree_structure(dots[0]), total)

        self.jvp_rule = jvp
        self.symbolic_zeros = True

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Give the function its reverse-mode rule.

        Args:
            fwd: Takes the arguments of the function; returns ``(value, residuals)``. Residuals are
                any pytree, also with functions such as the second result of `vjp`.
            bwd: ``bwd(residuals, ct)``, after the arguments of ``nondiff_argnums``: returns a tuple
                with a cotangent for every other argument. ``None`` stands for zeros, for an
                argument or a subtree of it.
        """
        check_callable(fwd, f"{self.name}.defvjp")
        check_callable(bwd, f"{self.name}.defvjp")
        self.fwd = fwd
        self.bwd = bwd

    def def_vmap(self, vmap_rule: Function) -> Function:
        """Give the function its batching rule.

        Args:
            vmap_rule: ``rule(axis_size, in_batched, *args) -> (value, out_batched)``. Arguments
                have the mapped axis in front where ``in_batched``, a list of pytrees of bools like
                the arguments, says so; ``out_batched`` says the same of the value.

        Returns:
            ``vmap_rule``, so that this is a decorator.
        """
        check_callable(vmap_rule, f"{self.name}.def_vmap")
        self.vmap_rule = vmap_rule
        return vmap_rule

    def functions(self) -> list[Any]:
        return [self.fun, *self.rules()]

    def rules(self) -> list[Function]:
        """The rules that were given."""
        rules = (self.jvp_rule, self.fwd, self.bwd, self.vmap_rule)
        return [rule for rule in rules if rule is not None]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is EVAL:
            return self.fun(*args, **kwargs)
        return _Call(self, self._resolve(args, kwargs)).run()

    @cached_property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.fun)
        except ValueError:  # Some builtin functions have none.
            return None

    def _resolve(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in."""
        if self._signature is None:
            if kwargs:
                raise ArgumentError(
                    f"{self.name} was called with keyword arguments, but has no signature that "
                    "says where they belong: pass them by position."
                )
            return args
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            names = ", ".join(bound.kwargs)
            raise ArgumentError(
                f"{self.name} has keyword-only arguments ({names}), for which rules have no place: "
                "make them positional, or bind them with functools.partial first."
            )
        return bound.args

    def _missing(self) -> str | None:
        has_rule = self.jvp_rule is not None or self.fwd is not None
        if has_rule or not self.missing_hint:
            return None
        return f"{self.name} has no differentiation rule: call {self.name}.{self.missing_hint}"


class custom_jvp(_CustomFunction):
    """A function with a derivative of its own, in forward mode.

    Reverse mode follows by transposition, so the rule must be linear in the tangents. The rule
    itself is differentiated for higher orders. Rules survive `jit` and `vmap`. The same object
    takes a reverse-mode rule (`defvjp`) and a batching rule (`def_vmap`), which then have priority.

    Values of outer transformations that the function closes over are found and followed: with
    respect to them the function is differentiated as if it had no rule.

    Args:
        fun: Function of arrays or pytrees. Keyword arguments are resolved to positions.
        nondiff_argnums: Positions of arguments that are passed to the rules as they are, such as
            functions, strings and sizes. They need not be hashable.
        nondiff_argnames: The same by name.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> @fg.custom_jvp
        ... def log1pexp(x):
        ...     return np.log1p(np.exp(x))
        >>> @log1pexp.defjvp
        ... def rule(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return log1pexp(x), t * (1 - 1 / (1 + np.exp(x)))
        >>> float(fg.grad(log1pexp)(0.0))
        0.5
    """

    kind = "custom_jvp"
    missing_hint = "defjvp(rule)"


class custom_vjp(_CustomFunction):
    """A function with a derivative of its own, in reverse mode.

    Forward mode uses the rule given with `defjvp`, if there is one; otherwise the tangent is the
    transpose of ``bwd``, which must be linear in the cotangent for that. The rules themselves are
    differentiated for higher orders, and survive `jit` and `vmap`.

    Args:
        fun: Function of arrays or pytrees. Keyword arguments are resolved to positions.
        nondiff_argnums: Positions of arguments that are passed to the rules as they are.
        nondiff_argnames: The same by name.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> @fg.custom_vjp
        ... def clipped_gradient(x):
        ...     return x
        >>> clipped_gradient.defvjp(lambda x: (x, None), lambda res, ct: (np.clip(ct, -1, 1),))
        >>> float(fg.grad(lambda x: 5 * clipped_gradient(x))(3.0))
        1.0
    """

    kind = "custom_vjp"
    missing_hint = "defvjp(fwd, bwd)"


class custom_vmap(_CustomFunction):
    """A function with a batching rule of its own.

    Without rules for differentiation, derivatives are those of the function, and under `vmap` those
    of its batching rule.

    Args:
        fun: Function of arrays or pytrees. Keyword arguments are resolved to positions.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> @fg.custom_vmap
        ... def sine(x):
        ...     return np.sin(x)
        >>> @sine.def_vmap
        ... def rule(axis_size, in_batched, x):
        ...     return np.sin(x), in_batched[0]
        >>> fg.vmap(sine)(np.zeros(3))
        array([0., 0., 0.])
    """

    kind = "custom_vmap"

    def __init__(self, fun: Function) -> None:
        super().__init__(fun)


def _positions(
    fun: Function, argnums: int | Sequence[int], argnames: str | Sequence[str], what: str
) -> tuple[int, ...]:
    """Positions of arguments without derivatives, checked against the signature."""
    numbers = (argnums,) if isinstance(argnums, int | np.integer) else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    for number in numbers:
        if not isinstance(number, int | np.integer) or isinstance(number, bool):
            raise ArgumentError(f"{what}: nondiff_argnums must hold ints, got {number!r}.")
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except ValueError:
        return tuple(sorted(int(n) for n in numbers))
    known = [p.name for p in parameters]
    unknown = [n for n in names if n not in known]
    if unknown:
        raise ArgumentError(
            f"{what}: nondiff_argnames={argnames!r} names {unknown[0]!r}, but the arguments are "
            f"{', '.join(known)}."
        )
    n_args = len(known)
    has_star = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for number in numbers:
        if not (-n_args <= number and (number < n_args or has_star)):
            raise ArgumentError(
                f"{what}: nondiff_argnums={argnums!r} names positional argument {number}, but the "
                f"function has {n_args} argument{'s' * (n_args != 1)}."
            )
    found = {int(n) + n_args * (n < 0) for n in numbers} | {known.index(n) for n in names}
    return tuple(sorted(found))


class _Call:
    """One call under a transformation: the flat functions that the primitive needs."""

    def __init__(self, function: _CustomFunction, args: tuple[Any, ...]) -> None:
        self.function = function
        self.name = function.name
        self.args = args
        nondiff = function.nondiff_argnums
        if nondiff and nondiff[-1] >= len(args):
            raise ArgumentError(
                f"{self.name} was called with {len(args)} arguments, but nondiff_argnums names "
                f"argument {nondiff[-1]}."
            )
        self.static = [args[i] for i in nondiff]
        self.places = [i for i in range(len(args)) if i not in nondiff]
        self.dynamic = tuple(args[i] for i in self.places)
        self.leaves, self.in_tree = tree_flatten(self.dynamic)
        self.avals = [
            _argument_aval(x, path, self.name)
            for x, path in zip(self.leaves, self._paths(self.dynamic), strict=True)
        ]
        used = tracers_in(function.fun, self.static)
        self.captured = tracers_in(function.fun, self.static, function.rules())
        self.is_closed_over = tuple(any(tracer is u for u in used) for tracer in self.captured)
        self.out_tree: PyTreeDef | None = None

    def _paths(self, trees: Sequence[Any], prefix: str = "args") -> list[str]:
        """Paths of the leaves of the differentiable arguments, by their positions in the call."""
        return [
            path
            for place, tree in zip(self.places, trees, strict=True)
            for path in leaf_paths(tree, f"{prefix}[{place}]")
        ]

    def run(self) -> Any:
        function = self.function
        rules = Rules(
            name=self.name,
            fun=self._fun,
            jvp=None if function.jvp_rule is None else self._jvp,
            vjp=None if function.fwd is None else self._vjp,
            vmap=None if function.vmap_rule is None else self._vmap,
            is_closed_over=self.is_closed_over,
            missing=function._missing(),
            missing_vmap=self._missing_vmap(),
        )
        inputs = [*self.captured, *self.leaves]
        outs = CustomCall(rules, tuple(aval_of(x) for x in inputs)).bind(*inputs)
        assert self.out_tree is not None
        return tree_unflatten(self.out_tree, outs)

    def _missing_vmap(self) -> str | None:
        if self.function.vmap_rule is not None or not isinstance(self.function, custom_vmap):
            return None
        return f"{self.name} has no batching rule: call {self.name}.def_vmap(rule)"

    def _split(self, inputs: Values) -> tuple[Values, Values]:
        n = len(self.captured)
        return inputs[:n], inputs[n:]

    def _full(self, leaves: Values) -> list[Any]:
        """All arguments of the function."""
        full = list(self.args)
        dynamic = tree_unflatten(self.in_tree, leaves)
        for place, arg in zip(self.places, dynamic, strict=True):
            full[place] = arg
        return full

    def _results(self, out: Any, what: str) -> list[Any]:
        """Leaves of a result, which has the structure of all results of this call."""
        outs, tree = tree_flatten(out)
        if self.out_tree is not None and tree != self.out_tree:
            raise TreeError(
                f"{what} must return a value with the structure of {self.name}'s.\n"
                f"  expected      {self.out_tree}\n  got           {tree}"
            )
        self.out_tree = tree
        for x, path in zip(outs, leaf_paths(out, "result"), strict=True):
            aval_of_argument(x, path, f"the result of {what}")
        return outs

    def _fun(self, *inputs: Any) -> list[Any]:
        values, leaves = self._split(inputs)
        fun = self.function.fun
        return run_lifted(
            self.captured, values, lambda: self._results(fun(*self._full(leaves)), self.name)
        )

    # Forward mode.

    def _jvp(self, inputs: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        values, leaves = self._split(inputs)
        is_zero: list[bool] = []

        def run() -> list[Any]:
            outs, dots = self._apply_jvp(leaves, tangents)
            is_zero[:] = [t is None for t in dots]
            return [*outs, *(t for t in dots if t is not None)]

        results = run_lifted(self.captured, values, run)
        n = len(is_zero)
        rest = iter(results[n:])
        return results[:n], [None if gone else next(rest) for gone in is_zero]

    def _apply_jvp(self, leaves: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        what = f"the jvp rule of {self.name}"
        rule = self.function.jvp_rule
        assert rule is not None
        make_zero = _symbolic_zero if self.function.symbolic_zeros else _zero_tangent
        dense = [
            make_zero(aval_of(x)) if t is None else t for x, t in zip(leaves, tangents, strict=True)
        ]
        primals = tree_unflatten(self.in_tree, leaves)
        result = rule(*self.static, primals, tree_unflatten(self.in_tree, dense))
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise ArgumentError(
                f"{what} must return a pair (value, tangent), but it returned {_describe(result)}."
            )
        outs = self._results(result[0], what)
        paths = leaf_paths(result[0], "tangent")
        expected = [aval_of(x) for x in outs]
        return outs, _fit(result[1], tree_structure(result[0]), expected, paths, what, "tangent")

    # Reverse mode.

    def _vjp(self, *inputs: Any) -> tuple[list[Any], list[Any], Pull]:
        values, leaves = self._split(inputs)
        what = f"the forward rule of {self.name}"
        fwd = self.function.fwd
        assert fwd is not None
        made: list[Any] = []

        def run() -> list[Any]:
            result = fwd(*self._full(leaves))
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise ArgumentError(
                    f"{what} must return a pair (value, residuals), but it returned "
                    f"{_describe(result)}."
                )
            outs = self._results(result[0], what)
            residuals = _Residuals(result[1])
            made[:] = [len(outs), residuals, [aval_of(x) for x in outs]]
            return [*outs, *residuals.values]

        results = run_lifted(self.captured, values, run)
        n_outs, residuals, out_avals = made
        pull = _BackwardPass(self, residuals, out_avals)
        return results[:n_outs], [*values, *results[n_outs:]], pull

    # Batching.

    def _vmap(self, size: int, is_mapped: list[bool], inputs: Values) -> list[Any]:
        values, leaves = self._split(inputs)
        what = f"the batching rule of {self.name}"
        rule = self.function.vmap_rule
        assert rule is not None

        def run() -> list[Any]:
            flags = list(tree_unflatten(self.in_tree, is_mapped))
            result = rule(size, flags, *tree_unflatten(self.in_tree, leaves))
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise ArgumentError(
                    f"{what} must return a pair (value, out_batched), but it returned "
                    f"{_describe(result)}."
                )
            outs = self._results(result[0], what)
            batched, tree = tree_flatten(result[1])
            if tree != self.out_tree:
                raise TreeError(
                    f"{what}: out_batched must have the structure of the value.\n"
                    f"  expected      {self.out_tree}\n  got           {tree}"
                )
            return [
                to_front(x, 0 if mapped else None, size)
                for x, mapped in zip(outs, batched, strict=True)
            ]

        return run_lifted(self.captured, values, run)


class _Residuals:
    """What ``fwd`` hands to ``bwd``: values, and functions that close over values.

    Args:
        tree: Any pytree.
    """

    def __init__(self, tree: Any) -> None:
        self.leaves, self.treedef = tree_flatten(tree)
        self.is_value = [isinstance(x, _VALUE_TYPES) for x in self.leaves]
        opaque = [x for x, value in zip(self.leaves, self.is_value, strict=True) if not value]
        self.captured = tracers_in(opaque)
        self.values = [x for x, value in zip(self.leaves, self.is_value, strict=True) if value]
        self.values += self.captured
        self.leaves = [
            None if value else x for x, value in zip(self.leaves, self.is_value, strict=True)
        ]

    def tree(self, values: Values) -> Any:
        """The pytree with other values."""
        rest = iter(values)
        leaves = [
            next(rest) if value else x for x, value in zip(self.leaves, self.is_value, strict=True)
        ]
        return tree_unflatten(self.treedef, leaves)


_VALUE_TYPES = (Tracer, np.ndarray, np.generic, bool, int, float, complex)


class _BackwardPass:
    """The backward rule of one call, as a function of flat residuals and cotangents."""

    def __init__(
        self, call: _Call, residuals: _Residuals, out_avals: Sequence[ShapedArray]
    ) -> None:
        self.call = call
        self.residuals = residuals
        self.out_avals = out_avals
        assert call.out_tree is not None
        self.out_tree = call.out_tree

    def __call__(self, values: Values, cts: Values) -> list[Any]:
        call = self.call
        outer, inner = call._split(values)
        is_zero: list[bool] = []
        n = len(inner) - len(self.residuals.captured)

        def run() -> list[Any]:
            pulled = self._apply(inner[:n], cts)
            is_zero[:] = [ct is None for ct in pulled]
            return [ct for ct in pulled if ct is not None]

        captured = [*call.captured, *self.residuals.captured]
        rest = iter(run_lifted(captured, [*outer, *inner[n:]], run))
        return [None if gone else next(rest) for gone in is_zero]

    def _apply(self, values: Values, cts: Values) -> list[Any]:
        call = self.call
        bwd = call.function.bwd
        assert bwd is not None
        dense = [
            _zero_tangent(a) if ct is None else ct
            for ct, a in zip(cts, self.out_avals, strict=True)
        ]
        ct_tree = tree_unflatten(self.out_tree, dense)
        result = bwd(*call.static, self.residuals.tree(values), ct_tree)
        what = f"the backward rule of {call.name}"
        n = len(call.dynamic)
        if not isinstance(result, tuple | list) or len(result) != n:
            got = (
                f"{len(result)} of them" if isinstance(result, tuple | list) else _describe(result)
            )
            raise TreeError(
                f"{what} must return a tuple of {n} cotangent{'s' * (n != 1)}, one for every "
                f"differentiable argument, but it returned {got}."
            )
        pulled: list[Any] = []
        parts = zip(call.places, call.dynamic, result, strict=True)
        avals = iter(call.avals)
        for place, arg, ct in parts:
            tree = tree_structure(arg)
            expected = [next(avals) for _ in range(tree.num_leaves)]
            paths = leaf_paths(arg, f"args[{place}]")
            pulled += _fit(ct, tree, expected, paths, what, "cotangent", f"args[{place}]")
        return pulled


def _argument_aval(leaf: Any, path: str, name: str) -> ShapedArray:
    try:
        return aval_of_argument(leaf, path, name)
    except DtypeError as error:
        raise DtypeError(
            f"{error} Or name it in nondiff_argnums, so that the rules get it as it is."
        ) from None


def _fit(
    tree: Any,
    treedef: PyTreeDef,
    expected: Sequence[ShapedArray],
    paths: Sequence[str],
    what: str,
    kind: str,
    place: str = "",
) -> list[Any]:
    """Leaves of a tangent or cotangent that a rule returned, ``None`` where zero."""
    leaves: list[Any] = []
    if not _collect(tree, treedef, leaves):
        where = f" for `{place}`" if place else ""
        raise TreeError(
            f"{what} returned a {kind}{where} of the wrong structure (None may stand for zeros).\n"
            f"  expected      {treedef}\n  got           {tree_structure(tree)}"
        )
    return [
        _fit_leaf(x, aval, path, what, kind)
        for x, aval, path in zip(leaves, expected, paths, strict=True)
    ]


def _collect(tree: Any, treedef: PyTreeDef, leaves: list[Any]) -> bool:
    """Append the leaves of a tree; ``None`` stands for any subtree. False if it does not fit."""
    if tree is None:
        leaves.extend([None] * treedef.num_leaves)
        return True
    if treedef.is_leaf:
        leaves.append(tree)
        return not isinstance(tree, tuple | list | dict)
    if type(tree) is not treedef.kind:
        return False
    parts, meta = treedef.flatten_root(tree)
    children = treedef.children()
    if meta != treedef.meta or len(parts) != len(children):
        return False
    return all(_collect(p, c, leaves) for p, c in zip(parts, children, strict=True))


def _fit_leaf(value: Any, aval: ShapedArray, path: str, what: str, kind: str) -> Any:
    if value is None or isinstance(value, SymbolicZero):
        return None
    got: Any = None
    is_float0 = isinstance(value, np.ndarray) and value.dtype == float0
    if aval.dtype.kind not in "fc":
        if is_float0 and value.shape == aval.shape:
            return None
        raise DtypeError(
            f"{what} returned a {kind} for `{path}` that is not zero in kind: {aval} has no "
            f"derivative.\n  expected      None or float0[{','.join(map(str, aval.shape))}]\n"
            f"  got           {_describe(value)}"
        )
    if not is_float0:
        got = aval_of_argument(value, path, what)
        if same_type(got, aval):
            return value
        if got.weak_type and got.shape == aval.shape and got.dtype.kind in "iuf" + aval.dtype.kind:
            return convert(value, aval.dtype)
    raise ShapeError(
        f"{what} returned a {kind} of the wrong type for `{path}`.\n"
        f"  expected      {aval.strong()}\n  got           {_describe(value)}"
    )


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype == float0:
        return f"float0[{','.join(map(str, value.shape))}]"
    if isinstance(value, _VALUE_TYPES):
        return str(aval_of(value).strong())
    if isinstance(value, tuple | list | dict):
        return f"a pytree with structure {tree_structure(value)}"
    return f"a {type(value).__name__}"


def _zero_tangent(aval: ShapedArray) -> Any:
    return zeros(aval) if aval.dtype.kind in "fc" else np.zeros(aval.shape, float0)


def _symbolic_zero(aval: ShapedArray) -> SymbolicZero:
    return SymbolicZero(aval.shape, aval.dtype if aval.dtype.kind in "fc" else float0)


def _is_zero_tree(tree: Any) -> bool:
    return all(isinstance(x, SymbolicZero) for x in tree_leaves(tree))


def custom_gradient(fun: Function) -> Function:
    """A function that returns its own backward pass.

    Args:
        fun: Returns a pair: the value, and a function from its cotangent to the cotangent of the
            argument, or to a tuple with one for every argument. That function may close over
            anything that ``fun`` computed.

    Returns:
        A function that returns the value alone, with the given derivative.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> @fg.custom_gradient
        ... def square(x):
        ...     return x ** 2, lambda ct: 2 * ct * np.clip(x, -1, 1)
        >>> float(square(3.0)), float(fg.grad(square)(3.0))
        (9.0, 2.0)
    """
    check_callable(fun, "custom_gradient")

    def value(*args: Any, **kwargs: Any) -> Any:
        return _pair(fun(*args, **kwargs))[0]

    def _pair(result: Any) -> Any:
        if not isinstance(result, tuple | list) or len(result) != 2 or not callable(result[1]):
            raise ArgumentError(
                f"custom_gradient: {name_of(fun)} must return a pair (value, function from its "
                f"cotangent to those of the arguments), but it returned {_describe(result)}."
            )
        return result

    def fwd(*args: Any) -> Any:
        out, pull = _pair(fun(*args))
        return out, (pull, _Count(len(args)))

    def bwd(residuals: Any, ct: Any) -> Any:
        pull, count = residuals
        cts = pull(ct)
        return cts if isinstance(cts, tuple) and (count.n > 1 or len(cts) == 1) else (cts,)

    update_wrapper(value, fun, updated=())
    function = custom_vjp(value)
    function.defvjp(fwd, bwd)
    return function


class _Count:
    """A number that is no array."""

    def __init__(self, n: int) -> None:
        self.n = n


def closure_convert(fun: Function, *example_args: Any) -> tuple[Function, list[Any]]:
    """Make the traced values that a function closes over its arguments.

    Args:
        fun: Function of arrays or pytrees.
        *example_args: Arguments, of the types that it will be called with.

    Returns:
        A function that takes the values after its other arguments, and the list of them.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> def outer(a):
        ...     g, values = fg.closure_convert(lambda x: np.sin(a) * x, 1.0)
        ...     return g(2.0, *values)
        >>> float(fg.grad(outer)(0.0))
        2.0
    """
    check_callable(fun, "closure_convert")
    staged = StagedFunction(fun, example_args, {}, f"closure_convert({name_of(fun)})")

    def converted(*args: Any) -> Any:
        n = len(args) - len(staged.captured)
        leaves, tree = tree_flatten((args[:n], {}))
        if tree != staged.in_tree:
            raise TreeError(
                f"closure_convert({name_of(fun)}): the arguments must have the structure of the "
                f"examples.\n  expected      {staged.in_tree}\n  got           {tree}"
            )
        outs = evaluate(staged.program, [*args[n:], *leaves])
        return tree_unflatten(staged.out_tree, outs)

    return converted, list(staged.captured)
