"""custom_jvp, custom_vjp, custom_vmap, custom_gradient, closure_convert: rules by the user.

One class serves all three decorators, so that a function may have any combination of rules. A call
outside of all transformations runs the function; a call inside of one is a `Call`.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np

from funcgrad.api.arguments import Function, call_untraced, check_callable, name_of
from funcgrad.api.custom_call import Call, UserRules
from funcgrad.api.rule_results import describe, is_zero_tree, place_of
from funcgrad.api.staging import StagedFunction
from funcgrad.base import pytree
from funcgrad.base.forking import cached_property
from funcgrad.base.signatures import signature_of
from funcgrad.base.transformed import HoldsProgram, Travels
from funcgrad.core.program import evaluate
from funcgrad.core.trace import EVAL, current_trace
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.higher_order.closures import HoldsFunctions
from funcgrad.lax import map as lax_map
from funcgrad.primitives.objects import flatten_values


class CustomFunction(HoldsFunctions, Travels):
    """A function and its rules; the base of the decorators."""

    kind = ""
    _made_by: Any = None
    derivative_call: str | None = None
    """How to give the derivative that the decorator cannot do without."""

    def __init__(
        self,
        fun: Function,
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        check_callable(fun, self.kind)
        update_wrapper(self, fun, updated=())
        self.name = name_of(fun)
        positions = _positions(fun, nondiff_argnums, nondiff_argnames, self._what)
        self.rules = UserRules(self.name, fun, positions)
        if self.derivative_call is not None:
            self.rules.missing = _missing(self, "differentiation", self.derivative_call)

    def made_of(self, protocol: int) -> tuple[Any, ...]:
        found: Any = self._made_by or object.__reduce_ex__(self, protocol)
        return found

    @property
    def _what(self) -> str:
        return f"{self.kind}({self.name})"

    def __repr__(self) -> str:
        return f"<{self._what}>"

    def _check_rule(self, rule: Any, method: str) -> None:
        if not callable(rule):
            raise ArgumentError(
                f"{self.name}.{method} needs a function, got {type(rule).__name__}."
            )

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def defjvp(self, jvp: Function, symbolic_zeros: bool = False) -> Function:
        """Give the function its forward-mode rule.

        Args:
            jvp: ``jvp(primals, tangents) -> (value, tangent)``: two tuples with an entry for every
                argument. Arguments of ``nondiff_argnums`` come in front, one by one. The tangent
                must be linear in the tangents. Integer arguments have ``float0`` tangents.
            symbolic_zeros: Whether zero tangents arrive as `SymbolicZero` instead of zeros.
        Returns: ``jvp``, so that this is a decorator.
        """
        self._check_rule(jvp, "defjvp")
        self.rules.jvp = jvp
        self.rules.jvp_takes_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Give the forward-mode rule argument by argument.

        Args: *jvps: For every argument ``jvp(tangent, value, *primals) -> tangent of the value``,
                or ``None`` where the derivative is zero.
        """
        if self.rules.nondiff_argnums:
            raise ArgumentError(
                f"{self.name}.defjvps does not know nondiff_argnums: use {self.name}.defjvp."
            )
        for rule in jvps:
            if rule is not None:
                self._check_rule(rule, "defjvps")

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
                if rule is not None and not is_zero_tree(t)
            ]
            if not dots:
                return value, None
            columns = zip(*(pytree.tree_leaves(dot) for dot in dots), strict=True)
            total = [sum(column[1:], start=column[0]) for column in columns]
            return value, pytree.tree_unflatten(pytree.tree_structure(dots[0]), total)

        jvp.__name__ = "defjvps"
        self.rules.jvp = jvp
        self.rules.jvp_takes_zeros = True

    def defvjp(
        self,
        fwd: Function,
        bwd: Function,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Give the function its reverse-mode rule.

        Args:
            fwd: Takes the arguments of the function; returns ``(value, residuals)``. Residuals are
                any pytree, also with functions such as the second result of `vjp`.
            bwd: ``bwd(residuals, ct)``, after the arguments of ``nondiff_argnums``: returns a tuple
                with a cotangent for every other argument. ``None`` stands for zeros, for an
                argument or a subtree of it.
            symbolic_zeros: Whether ``fwd`` gets its differentiable arguments with `value` and
                `perturbed` attributes in place of every leaf, and ``bwd`` gets `SymbolicZero`
                instead of zeros.
            optimize_remat: Accepted for compatibility; results that nothing reads are never
                computed in compiled programs.
        """
        self._check_rule(fwd, "defvjp")
        self._check_rule(bwd, "defvjp")
        self.rules.fwd = fwd
        self.rules.bwd = bwd
        self.rules.vjp_takes_zeros = symbolic_zeros

    def def_vmap(self, vmap_rule: Function) -> Function:
        """Give the function its batching rule.

        Args:
            vmap_rule: ``rule(axis_size, in_batched, *args) -> (value, out_batched)``. Arguments
                have the mapped axis in front where ``in_batched``, a list of pytrees of bools like
                the arguments, says so; ``out_batched`` says the same of the value.
        Returns: ``vmap_rule``, so that this is a decorator.
        """
        self._check_rule(vmap_rule, "def_vmap")
        self.rules.vmap = vmap_rule
        return vmap_rule

    def functions(self) -> list[Any]:
        return [self.rules.fun, *self.rules.functions()]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is EVAL:
            return call_untraced(self.rules.fun, args, kwargs, self.rules.nondiff_argnums)
        return Call(self.rules, self._resolve(args, kwargs)).run()

    @cached_property
    def _signature(self) -> inspect.Signature | None:
        return _signature_of(self.rules.fun)

    def _resolve(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in."""
        if self._signature is None:
            if kwargs:
                raise ArgumentError(
                    f"{self.name} was called with keyword arguments, but has no signature that "
                    "says where they belong: pass them by position."
                )
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self.name}{self._signature}: {error}.") from None
        if bound.kwargs:
            names = ", ".join(bound.kwargs)
            raise ArgumentError(
                f"{self.name} has keyword-only arguments ({names}), for which rules have no place: "
                "make them positional, or bind them with functools.partial first."
            )
        bound.apply_defaults()
        return bound.args


def _signature_of(fun: Function) -> inspect.Signature | None:
    """The signature, where it says which arguments a call has."""
    if isinstance(inspect.unwrap(fun), np.ufunc):  # With `out`, which is an argument of none.
        return None
    try:
        return signature_of(fun)
    except ValueError:  # Some builtin functions have none.
        return None


class custom_jvp(CustomFunction):
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
    derivative_call = "defjvp(rule)"


class custom_vjp(CustomFunction):
    """A function with a derivative of its own, in reverse mode.

    Forward mode uses the rule given with `defjvp`, if there is one; otherwise the tangent is the
    transpose of ``bwd``, which must be linear in the cotangent for that. The rules themselves are
    differentiated for higher orders, and survive `jit` and `vmap`.

    Args:
        fun: Function of arrays or pytrees. Keyword arguments are resolved to positions.
        nondiff_argnums: Positions of arguments that are passed to the rules as they are.
        nondiff_argnames: The same by name.

    Example:
        >>> @fg.custom_vjp
        ... def clipped_gradient(x):
        ...     return x
        >>> clipped_gradient.defvjp(lambda x: (x, None), lambda res, ct: (np.clip(ct, -1, 1),))
        >>> float(fg.grad(lambda x: 5 * clipped_gradient(x))(3.0))
        1.0
    """

    kind = "custom_vjp"
    derivative_call = "defvjp(fwd, bwd)"


class custom_vmap(CustomFunction):
    """A function with a batching rule of its own.

    Without rules for differentiation, derivatives are those of the function, and those of its
    batching rule where they are mapped: in ``vmap(grad(f))`` and in ``jacfwd(f)`` too. The backward
    pass evaluates the function once more.

    Args: fun: Function of arrays or pytrees. Keyword arguments are resolved to positions.

    Example:
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
        self.rules.missing_vmap = _missing(self, "batching", "def_vmap(rule)")


def sequential_vmap(f: Function) -> custom_vmap:
    """A function that is mapped one example after the other, in a loop.

    Returns: A function of the same arguments; `vmap` of it is `lax.map` of it.

    Example:
        >>> @fg.custom_batching.sequential_vmap
        ... def f(x):
        ...     fg.debug.print("{}", x)
        ...     return x + 1
        >>> y = fg.vmap(f)(np.arange(2.0))
        0.0
        1.0
    """
    function = custom_vmap(f)

    def rule(axis_size: int, in_batched: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        leaves, tree = pytree.tree_flatten(args)
        flags = pytree.tree_leaves(in_batched)
        mapped = [x for x, is_mapped in zip(leaves, flags, strict=True) if is_mapped]

        def of_one(values: Sequence[Any]) -> Any:
            rest = iter(values)
            full = [next(rest) if b else x for x, b in zip(leaves, flags, strict=True)]
            return f(*pytree.tree_unflatten(tree, full))

        out = lax_map(of_one, mapped)
        return out, pytree.tree_map(lambda _: True, out)

    function.def_vmap(rule)
    return function


def _missing(function: CustomFunction, what: str, call: str) -> str:
    """The message for a rule that was never given."""
    return f"{function.name} ({place_of(function)}) has no {what} rule: call {function.name}.{call}"


def _positions(
    fun: Function, argnums: int | Sequence[int], argnames: str | Sequence[str], what: str
) -> tuple[int, ...]:
    """Positions of arguments without derivatives, checked against the signature."""
    numbers = (argnums,) if isinstance(argnums, int | np.integer) else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    for number in numbers:
        if not isinstance(number, int | np.integer) or isinstance(number, bool):
            raise ArgumentError(f"{what}: nondiff_argnums must hold ints, got {number!r}.")
    signature = _signature_of(fun)
    if signature is None:
        return tuple(sorted(int(n) for n in numbers))
    parameters = list(signature.parameters.values())
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


def custom_gradient(fun: Function) -> Function:
    """A function that returns its own backward pass.

    Args:
        fun: Returns a pair: the value, and a function from its cotangent to the cotangent of the
            argument, or to a tuple with one for every argument. That function may close over
            anything that ``fun`` computed.
    Returns: A function that returns the value alone, with the given derivative.

    Example:
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
                f"cotangent to those of the arguments), but it returned {describe(result)}."
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
    function._made_by = (custom_gradient, (fun,))
    return function


class _Count:
    """A number that is no array."""

    def __init__(self, n: int) -> None:
        self.n = n


def closure_convert(fun: Function, *example_args: Any) -> tuple[Function, list[Any]]:
    """Make the traced values that a function closes over its arguments.

    Args: *example_args: Arguments, of the types that it will be called with.
    Returns: A function that takes the values after its other arguments, and the list of them.

    Example:
        >>> def outer(a):
        ...     g, values = fg.closure_convert(lambda x: np.sin(a) * x, 1.0)
        ...     return g(2.0, *values)
        >>> float(fg.grad(outer)(0.0))
        2.0
    """
    check_callable(fun, "closure_convert")
    staged = StagedFunction(fun, example_args, {}, f"closure_convert({name_of(fun)})")

    # `converted` must not refer to `staged`: custom rules would find the traced examples in it.
    program, in_tree, out_tree = staged.program, staged.in_tree, staged.out_tree
    n_values = len(staged.captured)

    def converted(*args: Any) -> Any:
        n = len(args) - n_values
        values = [x for value in args[n:] for x in pytree.all_held_in(value)]
        leaves, tree = flatten_values((args[:n], {}))
        if tree != in_tree:
            raise TreeError(
                f"closure_convert({name_of(fun)}): the arguments must have the structure of the "
                f"examples.\n  expected      {in_tree}\n  got           {tree}"
            )
        return pytree.tree_unflatten(out_tree, evaluate(program, [*values, *leaves]))

    return HoldsProgram(converted), list(staged.captured)
