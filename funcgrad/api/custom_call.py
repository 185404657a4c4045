"""One call of a function that has rules, as the flat functions that `CustomCall` needs.

Arguments of ``nondiff_argnums`` are bound, pytrees are taken apart, and the traced values that the
function and its rules close over become inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from funcgrad.api.arguments import Function, aval_of_argument, has_type, leaf_paths
from funcgrad.api.rule_results import (
    VALUE_TYPES,
    Fit,
    ResultType,
    check_pair,
    describe,
    symbolic_zero,
    title_of,
    zero_tangent,
)
from funcgrad.base.dialect import default_dtype, dialect
from funcgrad.base.pytree import tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.base.scalars import plain_number, scalar_number
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TreeError
from funcgrad.higher_order.cells import Cell
from funcgrad.higher_order.closures import Captured, run_lifted, tracers_in
from funcgrad.higher_order.custom import bind_rules
from funcgrad.higher_order.linear_call import Values, to_front
from funcgrad.higher_order.rules import Pull, Rules
from funcgrad.higher_order.staging import kept_weak
from funcgrad.numpy.writable import as_arguments
from funcgrad.observers.leaks import KeepsTracers, excuse
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.objects import flatten_extra, flatten_values


def _in_bits_of_dialect(leaf: Any) -> Any:
    """An argument whose cotangent has the bits of the dialect, also a float of Python's."""
    if not isinstance(leaf, VALUE_TYPES):
        return leaf
    aval = aval_of(leaf)
    dtype = default_dtype(aval.dtype)
    return leaf if dtype == aval.dtype or aval.dtype.kind not in "fc" else convert(leaf, dtype)


@dataclass
class UserRules:
    """A function and its rules, as the user gave them."""

    name: str
    fun: Function
    nondiff_argnums: tuple[int, ...] = ()
    jvp: Function | None = None
    fwd: Function | None = None
    bwd: Function | None = None
    vmap: Function | None = None
    jvp_takes_zeros: bool = False
    vjp_takes_zeros: bool = False
    missing: str | None = None
    missing_vmap: str | None = None
    is_opaque: bool = False

    def functions(self) -> list[Function]:
        """The rules that were given."""
        rules = (self.jvp, self.fwd, self.bwd, self.vmap)
        return [rule for rule in rules if rule is not None]

    def title(self, kind: str, rule: Function | None) -> str:
        """How messages call a rule."""
        return title_of(kind, self.name, rule)


@dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument of a forward rule made with ``symbolic_zeros=True``.

    Attributes:
        value: The argument.
        perturbed: Whether its cotangent is asked for.

    Example: fg.custom_derivatives.CustomVJPPrimal(2.0, True).value -> 2.0
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The arguments of a forward rule made with ``symbolic_zeros=True``, as of any other rule.

    Args: tree: Pytree with a `CustomVJPPrimal` for every array.
    Returns: The pytree with their values.

    Example:
        >>> from funcgrad.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
        >>> custom_vjp_primal_tree_values((CustomVJPPrimal(2.0, True), CustomVJPPrimal(1, False)))
        (2.0, 1)
    """
    return tree_map(lambda x: x.value if isinstance(x, CustomVJPPrimal) else x, tree)


class Call(KeepsTracers):
    """One call under a transformation.

    It becomes a part of programs, so it keeps the structure and the types of the arguments, and of
    their values only those that are bound.
    """

    def __init__(self, user: UserRules, args: tuple[Any, ...]) -> None:
        self.user = user
        self.name = user.name
        nondiff = user.nondiff_argnums
        if nondiff and nondiff[-1] >= len(args):
            raise ArgumentError(
                f"{self.name} was called with {len(args)} argument{'s' * (len(args) != 1)}, but "
                f"nondiff_argnums names argument {nondiff[-1]}."
            )
        self.static = [args[i] for i in nondiff]
        self.places = [i for i in range(len(args)) if i not in nondiff]
        self.n_args = len(args)
        dynamic = tuple(args[i] for i in self.places)
        leaves, self.in_tree = flatten_values(dynamic)
        leaves = list(map(_in_bits_of_dialect, leaves)) if dialect().dtypes else leaves
        # Rules get references as they are, as if they closed over them.
        accepts = user.fwd is not None
        self.cells = {i: x for i, x in enumerate(leaves) if accepts and isinstance(x, Cell)}
        self.trees = self.in_tree.children()
        self.avals = [
            x.inside if i in self.cells else self._aval(x, i, dynamic) for i, x in enumerate(leaves)
        ]
        self.leaves = [x for i, x in enumerate(leaves) if i not in self.cells]
        self.captured: Captured = tracers_in(user.fun, self.static, user.functions())
        used = tracers_in(user.fun, self.static) if self.captured else ()
        excuse(self)
        self.is_closed_over = tuple(any(tracer is u for u in used) for tracer in self.captured)
        self.result = ResultType(self.name)

    def _aval(self, leaf: Any, i: int, dynamic: Sequence[Any]) -> ShapedArray:
        """Type of a leaf of the arguments."""
        if has_type(leaf):
            return aval_of(leaf)
        rows = zip(self.places, dynamic, strict=True)
        paths = [path for place, arg in rows for path in leaf_paths(arg, f"args[{place}]")]
        return _argument_aval(leaf, paths[i], self.name)

    def run(self) -> Any:
        user = self.user
        rules = Rules(
            name=self.name,
            fun=self._fun,
            jvp=None if user.jvp is None else self._jvp,
            vjp=None if user.fwd is None else self._vjp,
            vmap=None if user.vmap is None else self._vmap,
            is_closed_over=self.is_closed_over,
            refused=self._refused(),
            jvp_title=user.title("jvp", user.jvp),
            bwd_title=user.title("backward", user.bwd),
            missing=user.missing if user.jvp is None and user.fwd is None else None,
            missing_vmap=user.missing_vmap if user.vmap is None else None,
            is_opaque=user.is_opaque,
        )
        inputs = [*self.captured, *self.leaves]
        self.leaves = []
        outs = bind_rules(rules, inputs)
        assert self.result.tree is not None
        return tree_unflatten(self.result.tree, kept_weak(outs, self.result.avals or ()))

    def _refused(self) -> dict[int, str]:
        """Positions among the captured values of those that are arguments without derivative."""
        position = {id(tracer): i for i, tracer in enumerate(self.captured)}
        return {
            position[id(leaf)]: f"args[{place}]"
            for place, arg in zip(self.user.nondiff_argnums, self.static, strict=True)
            for leaf in tree_leaves(arg)
            if isinstance(leaf, Tracer) and id(leaf) in position
        }

    def split(self, inputs: Values) -> tuple[Values, Values]:
        """Captured values, and leaves of the arguments."""
        n = len(self.captured)
        return inputs[:n], inputs[n:]

    def _full(self, leaves: Values) -> list[Any]:
        """All arguments of the function."""
        full: list[Any] = [None] * self.n_args
        for place, arg in zip(self.user.nondiff_argnums, self.static, strict=True):
            full[place] = arg
        dynamic = self._dynamic(leaves)
        for place, arg in zip(self.places, dynamic, strict=True):
            full[place] = arg
        return full

    def _dynamic(self, leaves: Values) -> Any:
        """The arguments that are not bound, as rules are given them."""
        return self._tree(map(_for_rule, leaves), self.cells)

    def _tree(self, leaves: Iterable[Any], of_cells: Mapping[int, Any]) -> Any:
        """The structure of the arguments that are not bound, around leaves.

        Args:
            leaves: Those of arrays.
            of_cells: Those of references, by place.
        """
        rest = iter(leaves)
        n = self.in_tree.num_leaves
        return tree_unflatten(
            self.in_tree, [of_cells[i] if i in of_cells else next(rest) for i in range(n)]
        )

    def _fun(self, *inputs: Any) -> list[Any]:
        values, leaves = self.split(inputs)
        fun = self.user.fun
        return run_lifted(
            self.captured,
            values,
            lambda: self.result.flatten(fun(*self._full(as_arguments(leaves))), self.name),
        )

    # Forward mode.

    def _jvp(self, inputs: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        values, leaves = self.split(inputs)
        results = lift_optional(
            self.captured, values, lambda: list(chain(*self._apply_jvp(leaves, tangents)))
        )
        n = len(results) // 2
        return results[:n], results[n:]

    def _apply_jvp(self, leaves: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        rule = self.user.jvp
        assert rule is not None
        what = self.user.title("jvp", rule)
        make_zero = symbolic_zero if self.user.jvp_takes_zeros else zero_tangent
        dense = [
            make_zero(aval_of(x)) if t is None else t for x, t in zip(leaves, tangents, strict=True)
        ]
        primals = self._dynamic(leaves)
        nothing = dict.fromkeys(self.cells)
        result = rule(*self.static, primals, self._tree(dense, nothing))
        value, tangent = check_pair(result, what, "tangent")
        outs = self.result.flatten(value, what)
        avals = [aval_of(x) for x in outs]
        fit = Fit(what, "tangent")
        return outs, fit.leaves(tangent, tree_structure(value), avals, "result")

    # Reverse mode.

    def _vjp(self, inputs: Values, is_active: Sequence[bool]) -> tuple[list[Any], list[Any], Pull]:
        values, leaves = self.split(inputs)
        user = self.user
        fwd = user.fwd
        assert fwd is not None
        what = user.title("forward", fwd)
        made: list[Any] = []
        if user.vjp_takes_zeros:
            values_given = [
                x for x in tree_leaves(self._dynamic(leaves)) if not isinstance(x, Cell)
            ]
            leaves = [
                CustomVJPPrimal(x, bool(active) and aval_of(x).dtype.kind in "fc")
                for x, active in zip(values_given, is_active, strict=True)
            ]

        def run() -> list[Any]:
            value, tree = check_pair(fwd(*self._full(leaves)), what, "residuals")
            outs = self.result.flatten(value, what)
            residuals = _Residuals(tree)
            made[:] = [len(outs), residuals, [aval_of(x) for x in outs]]
            return [*outs, *residuals.take_values()]

        results = run_lifted(self.captured, values, run)
        n_outs, residuals, out_avals = made
        pull = _BackwardPass(self, residuals, out_avals)
        return results[:n_outs], [*values, *results[n_outs:]], pull

    # Batching.

    def _vmap(self, size: int, is_mapped: list[bool], inputs: Values) -> list[Any]:
        values, leaves = self.split(inputs)
        rule = self.user.vmap
        assert rule is not None
        what = self.user.title("batching", rule)

        def run() -> list[Any]:
            flags = list(self._tree(is_mapped, dict.fromkeys(self.cells, False)))
            result = rule(size, flags, *self._dynamic(leaves))
            value, out_batched = check_pair(result, what, "out_batched")
            outs = self.result.flatten_mapped(value, what)
            batched, tree = tree_flatten(out_batched)
            assert self.result.tree is not None
            if tree != self.result.tree.closed():
                raise TreeError(
                    f"{what}: out_batched must have the structure of the value.\n"
                    f"  expected      {self.result.tree.closed()}\n  got           {tree}"
                )
            expected = [a.strong() for a in self.result.avals or ()] or [
                _lane(aval_of(x), flag) for x, flag in zip(outs, batched, strict=True)
            ]
            rows = zip(outs, batched, expected, leaf_paths(value, "result"), strict=True)
            return [self._mapped(*row, size, what) for row in rows]

        return run_lifted(self.captured, values, run)

    def _mapped(
        self, value: Any, is_mapped: bool, expected: ShapedArray, path: str, size: int, what: str
    ) -> Any:
        if is_mapped and aval_of(value).shape[:1] != (size,):
            raise TreeError(
                f"{what}: `{path}` is {aval_of(value).strong()}, but out_batched says that it has "
                f"the mapped axis of length {size} in front."
            )
        aval = aval_of(value)
        if aval.weak_type and np.can_cast(aval.dtype, expected.dtype, "same_kind"):
            value = convert(value, expected.dtype)
            aval = aval_of(value)
        lane = _lane(aval, is_mapped)
        if lane != expected:
            raise ShapeError(
                f"{what} must return what {self.name} returns for every example, but `{path}` has "
                f"another type.\n  expected      {expected}\n  got           {lane}"
            )
        return to_front(value, 0 if is_mapped else None, size)


class _Residuals(KeepsTracers):
    """Residuals that ``fwd`` hands to ``bwd``: values, and functions that close over values."""

    def __init__(self, tree: Any) -> None:
        leaves, self.treedef = flatten_extra(tree)
        # A bool of Python's is a choice of the forward rule, which the backward rule may ask.
        self.is_value = [isinstance(x, VALUE_TYPES) and type(x) is not bool for x in leaves]
        pairs = list(zip(leaves, self.is_value, strict=True))
        self.captured: Captured = tracers_in([x for x, value in pairs if not value])
        excuse(self)
        self._values = [*(plain_number(x) for x, value in pairs if value), *self.captured]
        self.avals = [aval_of(x) for x in self._values[: sum(self.is_value)]]
        self.opaque = [None if value else x for x, value in pairs]

    def take_values(self) -> list[Any]:
        """The values, once: what stays may outlive them."""
        values, self._values = self._values, []
        return values

    def tree(self, values: Values) -> Any:
        """The pytree with other values."""
        rest = iter(kept_weak(values, self.avals))
        pairs = zip(self.opaque, self.is_value, strict=True)
        leaves = [_for_rule(next(rest)) if value else x for x, value in pairs]
        return tree_unflatten(self.treedef, leaves)


class _BackwardPass:
    """The backward rule of one call, as a function of flat residuals and cotangents."""

    def __init__(self, call: Call, residuals: _Residuals, out_avals: Sequence[ShapedArray]) -> None:
        self.call = call
        self.residuals = residuals
        self.out_avals = out_avals
        self.what = call.user.title("backward", call.user.bwd)

    def __call__(self, values: Values, cts: Values) -> list[Any]:
        outer, inner = self.call.split(values)
        n = len(inner) - len(self.residuals.captured)
        captured = self.call.captured.joined(self.residuals.captured)
        stand_ins = [*outer, *inner[n:]]
        return lift_optional(captured, stand_ins, lambda: self._apply(inner[:n], cts))

    def _apply(self, values: Values, cts: Values) -> list[Any]:
        call = self.call
        bwd = call.user.bwd
        assert bwd is not None
        for cell in call.cells.values():
            if not cell.owner.is_live:
                raise cell.misuse(
                    f"{self.what} gets a reference to {cell.inside} of {cell.owner.what}, which "
                    "has returned when derivatives are taken of it from outside.",
                    "Take them inside: jit(grad(f)) instead of grad(jit(f)).",
                )
        assert call.result.tree is not None
        make_zero = symbolic_zero if call.user.vjp_takes_zeros else zero_tangent
        dense = [
            make_zero(a) if ct is None else _for_rule(ct)
            for ct, a in zip(cts, self.out_avals, strict=True)
        ]
        ct_tree = tree_unflatten(call.result.tree, dense)
        return self._leaves(bwd(*call.static, self.residuals.tree(values), ct_tree))

    def _leaves(self, result: Any) -> list[Any]:
        """Leaves of the cotangents of the differentiable arguments."""
        call = self.call
        n = len(call.trees)
        if not isinstance(result, tuple | list) or len(result) != n:
            is_sequence = isinstance(result, tuple | list)
            got = f"{len(result)} of them" if is_sequence else describe(result)
            raise TreeError(
                f"{self.what} must return a tuple of {n} cotangent{'s' * (n != 1)}, one for every "
                f"differentiable argument, but it returned {got}."
            )
        fit = Fit(self.what, "cotangent")
        avals = iter(call.avals)
        pulled: list[Any] = []
        for place, tree, ct in zip(call.places, call.trees, result, strict=True):
            expected = [next(avals) for _ in range(tree.num_leaves)]
            pulled += fit.leaves(ct, tree, expected, f"args[{place}]")
        for i, cell in call.cells.items():
            if pulled[i] is not None:
                raise cell.misuse(
                    f"{self.what} returned a cotangent for a reference to {cell.inside}.",
                    "Return None in its place, and write what is to be kept: ref[...] = value.",
                )
        return [ct for i, ct in enumerate(pulled) if i not in call.cells]


def _for_rule(x: Any) -> Any:
    """A value as rules of users are given it: an array of the library that they are written for."""
    array = dialect().array
    return scalar_number(x) if array is None else array(scalar_number(x))


def lift_optional(captured: Captured, values: Values, function: Any) -> list[Any]:
    """Run a function as `run_lifted` does; its results may be ``None``."""
    is_zero: list[bool] = []

    def run() -> list[Any]:
        results = function()
        is_zero[:] = [x is None for x in results]
        return [x for x in results if x is not None]

    rest = iter(run_lifted(captured, values, run))
    return [None if gone else next(rest) for gone in is_zero]


def _lane(aval: ShapedArray, is_mapped: bool) -> ShapedArray:
    """The type of one example."""
    return (aval.update(shape=aval.shape[1:]) if is_mapped else aval).strong()


def _argument_aval(leaf: Any, path: str, name: str) -> ShapedArray:
    try:
        return aval_of_argument(leaf, path, name)
    except DtypeError as error:
        raise DtypeError(
            f"{error} Or name it in nondiff_argnums, so that the rules get it as it is."
        ) from None
