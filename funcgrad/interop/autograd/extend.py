"""``autograd.extend``: functions with rules of the user's, which see concrete arrays.

A `primitive` is called with concrete values where evaluation is eager, whatever transformation
follows them, so it may be anything: SciPy, C, assignments to elements. `jit`, `scan` and the other
transformations that stage record what it does to traced values instead, so there it must be
written for them. Under `vmap` it is called once per example.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import update_wrapper
from itertools import count
from types import BuiltinFunctionType, CellType, FunctionType, MethodType
from typing import Any
from weakref import WeakSet

import numpy as np

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.api.custom import custom_vjp
from funcgrad.api.differentiation import jvp, vjp
from funcgrad.api.rule_results import Fit, SymbolicZero
from funcgrad.base.pytree import tree_leaves, tree_map, tree_structure
from funcgrad.core.avals import aval_of
from funcgrad.core.observers import OBSERVED
from funcgrad.core.trace import EVAL, current_trace, using_trace
from funcgrad.errors import ArgumentError, FuncgradWarning, MissingRuleError
from funcgrad.higher_order.closures import tracers_in
from funcgrad.higher_order.linear_call import LinearCall
from funcgrad.interop.autograd.boxes import Box, getval, isbox
from funcgrad.interop.autograd.vector_spaces import VSpace, vspace
from funcgrad.numpy.joining import stack
from funcgrad.numpy.writable import unwrapped_in
from funcgrad.primitives.objects import is_traced
from funcgrad.transforms.batch import BatchTracer
from funcgrad.transforms.linearize import LinearizeTrace, LinearizeTracer, TangentTracer

Function = Callable[..., Any]
__all__ = [
    "Box", "VSpace", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp",
    "defvjp_argnum", "defvjp_argnums", "notrace_primitive", "primitive", "register_notrace",
    "vspace",
]  # fmt: skip


def _is_traced(argument: Any) -> bool:
    if isinstance(argument, dict | list | tuple):
        return any(map(is_traced, tree_leaves(argument)))
    return is_traced(argument)


class Primitive:
    """A function whose derivatives are given by rules. Made by `primitive`."""

    def __init__(self, fun: Function) -> None:
        check_callable(fun, "primitive")
        update_wrapper(self, fun, updated=())
        self.fun = fun
        self.vjps: Function | None = None
        self.makers: Sequence[Function | None] | None = None  # what the user gave to make these
        self.jvps: Function | None = None
        self.by_argument: dict[int, Function | None] = {}

    def __repr__(self) -> str:
        return f"<primitive {name_of(self.fun)}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def defvjp(self, vjpmaker: Function, argnum: int = 0) -> None:
        """Give the rule of one argument, in autograd's form of before version 1.2.

        Args:
            vjpmaker: ``vjpmaker(g, ans, vs, gvs, *args, **kwargs)``: the cotangent of the argument,
                from that of the result, the result, and the spaces of both cotangents.
            argnum: Position of the argument.
        """

        def staged(ans: Any, *args: Any, **kwargs: Any) -> Function:
            return lambda g: vjpmaker(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)

        self.defgrad(staged, argnum)

    def defvjp_is_zero(self, argnums: Sequence[int] = (0,)) -> None:
        """Say that derivatives are zero, in autograd's form of before version 1.2.

        Args: argnums: Positions of the arguments.
        """
        for argnum in argnums:
            self.defgrad(None, argnum)

    def defgrad(self, gradmaker: Function | None, argnum: int = 0) -> None:
        """Give the rule of one argument, in autograd's oldest form.

        Args:
            gradmaker: ``gradmaker(ans, *args, **kwargs)`` returns the function from the cotangent
                of the result to that of the argument; None for a derivative of zero.
            argnum: Position of the argument.
        """
        self.by_argument[argnum] = gradmaker
        defvjp(self, *self.by_argument.values(), argnums=tuple(self.by_argument))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = tuple(map(unwrapped_in, args))
        places = [i for i, argument in enumerate(args) if _is_traced(argument)]
        if not places:
            return self.fun(*args, **kwargs)
        found = self._linearized(args, kwargs, places)
        if found is not None:
            return found
        call = _Call(self, args, kwargs, places)
        return call.function()(*(args[i] for i in places))

    def _linearized(self, args: tuple[Any, ...], kwargs: dict[str, Any], places: list[int]) -> Any:
        """The result in a derivative that is evaluated at once; ``None`` if that is another case.

        There is nothing but numbers then, of which the rule makes one operation of the tape.
        """
        trace, makers = current_trace(), self.makers
        if makers is None or type(trace) is not LinearizeTrace or trace.parent is not EVAL:
            return None
        tracers = [args[i] for i in places]
        is_plain = all(type(x) is LinearizeTracer and x.owner is trace for x in tracers)
        if not is_plain or OBSERVED.computed or not _hold_numbers((self.fun, *makers)):
            return None
        values = list(args)
        for place, x in zip(places, tracers, strict=True):
            values[place] = x.primal
        with using_trace(EVAL):
            ans = self.fun(*values, **kwargs)
            is_array = isinstance(ans, np.ndarray | np.generic)
            if not is_array or ans.dtype.kind not in "fc":
                self.makers = None  # it gives something else: from now on the general way
                return None
            assert self.vjps is not None
            pull = self.vjps(tuple(places), ans, tuple(values), kwargs)
        rule = _Recorded(self, values, kwargs, places, pull, ans)
        in_avals = tuple(x.aval for x in tracers)
        operation = LinearCall(
            f"tangent_{name_of(self.fun)}", rule.forward, rule.backward, 0, in_avals, rule.out_avals
        )
        tape = trace.tape
        (dot,) = tape.process(operation, tuple(TangentTracer(tape, x.slot) for x in tracers))
        return trace.pair(ans if ans.ndim else ans[()], dot)


_NUMBERS = (
    int, float, complex, str, np.ndarray, np.generic, np.ufunc, type(None), BuiltinFunctionType,
)  # fmt: skip


def _content_of(cell: CellType) -> Any:
    """The value of a variable; the cell if there is none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def _hold_numbers(functions: Iterable[Any]) -> bool:
    """Whether functions close over nothing but numbers and such functions: no traced values."""
    pending, seen = list(functions), set()
    while pending:
        function = pending.pop()
        if isinstance(function, Primitive):
            if function.makers is None:
                return False
            found = [function.fun, *function.makers]
        else:
            found = list(map(_content_of, getattr(function, "__closure__", None) or ()))
        for x in found:
            if isinstance(x, FunctionType | Primitive):
                if id(x) not in seen:
                    seen.add(id(x))
                    pending.append(x)
            elif not isinstance(x, _NUMBERS):
                return False
    return True


class _Recorded:
    """One call at known numbers, as a linear function of tangents."""

    def __init__(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        kwargs: dict[str, Any],
        places: list[int],
        pull: Function,
        ans: Any,
    ) -> None:
        self.call = _Call(primitive, values, kwargs, places)
        self.values = [values[i] for i in places]
        self.pull = _Pull(pull, places, places)
        self.out_avals = (aval_of(ans),)
        self.fit = Fit(f"the backward rule of {name_of(primitive.fun)}", "cotangent")

    def forward(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        return [jvp(self.call.function(), tuple(self.values), tuple(tangents))[1]]

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        rows = zip(self.pull(cts[0]), self.values, self.call.places, strict=True)
        return [
            self.fit.leaves(ct, _LEAF, [aval_of(x)], f"args[{place}]")[0] for ct, x, place in rows
        ]


_LEAF = tree_structure(0.0)


WITH_RULES: WeakSet[Primitive] = WeakSet()
"""The primitives that were given rules."""


class _Call:
    """One call with traced arguments, as a function of those alone."""

    def __init__(
        self, primitive: Primitive, args: Sequence[Any], kwargs: dict[str, Any], places: list[int]
    ) -> None:
        self.primitive = primitive
        # Without the traced values, which rules would find in here.
        self.rest = [None if i in places else a for i, a in enumerate(args)]
        self.kwargs = kwargs
        self.places = places

    def fill(self, values: Sequence[Any]) -> tuple[Any, ...]:
        args = list(self.rest)
        for i, value in zip(self.places, values, strict=True):
            args[i] = value
        return tuple(args)

    def function(self) -> Function:
        primitive = self.primitive

        def apply(*values: Any) -> Any:
            return primitive.fun(*self.fill(values), **self.kwargs)

        apply.__name__ = name_of(primitive.fun)
        function = custom_vjp(apply)
        function.rules.missing = (
            f"{name_of(primitive.fun)} is a primitive whose derivative with respect to "
            f"{self.named(self.places)} is not defined: give it one with defvjp or defjvp."
        )
        if primitive.vjps is not None:
            function.defvjp(self.forward, self.backward, symbolic_zeros=True)
        if primitive.jvps is not None:
            function.defjvp(self.push, symbolic_zeros=True)
        function.def_vmap(self.one_by_one)
        function.rules.is_opaque = True
        return function

    def named(self, places: Sequence[int]) -> str:
        return f"argument{'s' * (len(places) > 1)} {', '.join(map(str, places))}"

    def one_by_one(self, axis_size: int, in_batched: Any, *values: Any) -> Any:
        def apply(*values: Any) -> Any:
            return self.primitive(*self.fill(values), **self.kwargs)

        return _one_by_one(apply, axis_size, in_batched, values)

    def forward(self, *actives: Any) -> Any:
        assert self.primitive.vjps is not None
        values = [tree_map(lambda x: x.value, active) for active in actives]
        chosen = tuple(
            place
            for place, active in zip(self.places, actives, strict=True)
            if any(x.perturbed for x in tree_leaves(active))
        )
        args = self.fill(values)
        ans = self.primitive(*args, **self.kwargs)
        pull = self.primitive.vjps(chosen, ans, args, self.kwargs)
        return ans, _Pull(pull, chosen, self.places)

    def backward(self, pull: _Pull, ct: Any) -> Any:
        return pull(tree_map(_instantiate, ct))

    def push(self, primals: Any, tangents: Any) -> Any:
        assert self.primitive.jvps is not None
        args = self.fill(primals)
        ans = self.primitive(*args, **self.kwargs)
        pairs = [
            (place, tree_map(_instantiate, t))
            for place, t in zip(self.places, tangents, strict=True)
            if not all(isinstance(x, SymbolicZero) for x in tree_leaves(t))
        ]
        chosen = tuple(place for place, _ in pairs)
        return ans, self.primitive.jvps(chosen, [g for _, g in pairs], ans, args, self.kwargs)


class _Pull:
    """The function that a rule made, with a cotangent for every traced argument."""

    def __init__(self, pull: Function, chosen: Sequence[int], places: Sequence[int]) -> None:
        self.pull = pull
        self.chosen = chosen
        self.places = places

    def __call__(self, ct: Any) -> tuple[Any, ...]:
        # Under `jacobian` the rule sees one cotangent after the other, unless it has kept what is
        # mapped itself, as under a `vmap` of the derivative.
        one_by_one = _is_mapped(tree_leaves(ct)) and not _is_mapped(tracers_in(self.pull))
        cts = transparent(self.apply)(ct) if one_by_one else self.apply(ct)
        found = dict(zip(self.chosen, cts, strict=True))
        return tuple(found.get(place) for place in self.places)

    def apply(self, ct: Any) -> list[Any]:
        return list(self.pull(ct))


def transparent(fun: Function) -> Primitive:
    """A primitive whose derivatives are those of the function, found when they are asked for.

    Args: fun: The function.
    """
    wrapped = Primitive(fun)

    def chosen(argnums: Any, args: Any, kwargs: Any) -> tuple[Function, tuple[Any, ...]]:
        def of_chosen(*xs: Any) -> Any:
            given = list(args)
            for i, x in zip(argnums, xs, strict=True):
                given[i] = x
            return fun(*given, **kwargs)

        return of_chosen, tuple(args[i] for i in argnums)

    def vjps(argnums: Any, ans: Any, args: Any, kwargs: Any) -> Function:
        function, values = chosen(argnums, args, kwargs)
        return lambda g: vjp(function, *values)[1](g)

    def jvps(argnums: Any, gs: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        function, values = chosen(argnums, args, kwargs)
        return jvp(function, values, tuple(gs))[1]

    wrapped.vjps, wrapped.jvps = vjps, jvps
    return wrapped


def _is_mapped(values: Sequence[Any]) -> bool:
    return any(isinstance(x, BatchTracer) for x in values)


def _instantiate(x: Any) -> Any:
    return np.zeros(x.shape, x.dtype) if isinstance(x, SymbolicZero) else x


def _one_by_one(
    function: Function, axis_size: int, in_batched: Any, values: Sequence[Any]
) -> tuple[Any, Any]:
    """A batching rule that calls a function of concrete values for each example."""
    if not axis_size:
        raise ArgumentError(
            f"vmap of the primitive {name_of(function)} needs at least one example: it is called "
            "for each of them, and nothing else tells the type of its result."
        )
    outs = [
        function(
            *(
                tree_map(lambda x, mapped, i=i: x[i] if mapped else x, value, flags)
                for value, flags in zip(values, in_batched, strict=True)
            )
        )
        for i in range(axis_size)
    ]
    stacked = tree_map(lambda *xs: stack(xs), *outs)
    return stacked, tree_map(lambda _: True, stacked)


def primitive(f_raw: Function) -> Primitive:
    """Make a function with rules of its own, which is called with concrete values.

    Args: f_raw: Any function of arrays and other arguments. Arguments that are differentiated are
            passed by position.
    Returns: The function; `defvjp` and `defjvp` give its derivatives.

    Example:
        >>> @fg.interop.autograd.extend.primitive
        ... def double(x):
        ...     y = np.empty_like(x)
        ...     y[...] = 2 * x
        ...     return y
        >>> fg.interop.autograd.extend.defvjp(double, lambda ans, x: lambda g: 2 * g)
        >>> fg.interop.autograd.grad(lambda x: np.sum(double(x)))(np.ones(2))
        array([2., 2.])
    """
    return Primitive(f_raw)


def notrace_primitive(f_raw: Function) -> Function:
    """A function that is called with the values behind traced ones, and has no derivative.

    Args: f_raw: The function.
    Returns: A function of the same arguments.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*map(getval, args), **kwargs)

    update_wrapper(call, f_raw, updated=())
    return call


def register_notrace(trace_type: Any, primitive_fun: Primitive) -> None:
    """Give a function derivatives that are zero.

    Args:
        trace_type: Not used: both modes get them.
        primitive_fun: The function.
    """
    defvjp_argnums(
        primitive_fun,
        lambda argnums, ans, args, kwargs: lambda g: [vspace(args[i]).zeros() for i in argnums],
    )
    defjvp_argnums(primitive_fun, lambda argnums, gs, ans, args, kwargs: vspace(ans).zeros())


def _takes_rules(fun: Any, what: str, level: int = 3) -> bool:
    """Whether a function is a primitive; others keep the derivatives that they have, as there."""
    if isinstance(fun, Primitive):
        return True
    name = f"{type(fun).__name__} {name_of(fun)}"
    text = f"{what}: {name} is no primitive, so these rules have no effect: it keeps the "
    text += "derivatives that it has. Wrap it in primitive(...) to give it others."
    warnings.warn(text, FuncgradWarning, stacklevel=level)
    return False


def _rule(table: dict[int, Any], argnum: int, fun: Primitive, mode: str) -> Any:
    if argnum not in table:
        raise MissingRuleError(
            f"{mode} of {name_of(fun.fun)} wrt argnum {argnum} not defined. If the argument needs "
            "no derivative, give None for it."
        )
    return table[argnum]


def _table(rules: Sequence[Any], argnums: Any) -> dict[int, Any]:
    numbers = count() if argnums is None else argnums
    return dict(zip(numbers, rules, strict=False))


def defvjp_argnums(fun: Primitive, vjpmaker: Function) -> None:
    """Give a primitive its reverse-mode rule for several arguments at once.

    Args:
        fun: The primitive.
        vjpmaker: ``vjpmaker(argnums, ans, args, kwargs)`` returns the function from the cotangent
            of the result to those of the arguments ``argnums``.
    """
    if _takes_rules(fun, "defvjp_argnums"):
        _give_vjps(fun, vjpmaker, (vjpmaker,))


def _give_vjps(fun: Primitive, vjpmaker: Function, given: Sequence[Function | None]) -> None:
    """Give a primitive a rule that was made of what the user has given."""
    fun.vjps, fun.makers = vjpmaker, given
    WITH_RULES.add(fun)


def defvjp_argnum(fun: Primitive, vjpmaker: Function) -> None:
    """Give a primitive its reverse-mode rule by the number of the argument.

    Args:
        fun: The primitive.
        vjpmaker: ``vjpmaker(argnum, ans, args, kwargs)`` returns the function from the cotangent of
            the result to that of the argument.
    """
    if _takes_rules(fun, "defvjp_argnum"):
        _give_vjps(fun, _each(vjpmaker), (vjpmaker,))


def _each(vjpmaker: Function) -> Function:
    """The rule of several arguments, by that of one."""

    def of_many(argnums: Any, ans: Any, args: Any, kwargs: Any) -> Function:
        pulls = [vjpmaker(argnum, ans, args, kwargs) for argnum in argnums]
        return lambda g: [pull(g) for pull in pulls]

    return of_many


def defvjp(fun: Primitive, *vjpmakers: Function | None, argnums: Any = None) -> None:
    """Give a primitive its reverse-mode rules, one per argument.

    Args:
        fun: The primitive.
        *vjpmakers: ``vjpmaker(ans, *args, **kwargs)`` returns the function from the cotangent of
            the result to that of the argument; ``None`` for a derivative of zero.
        argnums: Positions of the arguments that they belong to; by default the first ones.
    """
    for maker in vjpmakers:
        if maker is not None and not callable(maker):
            raise ArgumentError(f"defvjp({name_of(fun)}): bad VJP {maker!r}: give a function.")
    table = _table(vjpmakers, argnums)

    def of_one(argnum: int, ans: Any, args: Any, kwargs: Any) -> Function:
        maker = _rule(table, argnum, fun, "VJP")
        if maker is None:
            return lambda g: vspace(args[argnum]).zeros()
        return maker(ans, *args, **kwargs)

    if _takes_rules(fun, "defvjp"):
        _give_vjps(fun, _each(of_one), vjpmakers)


def defjvp_argnums(fun: Primitive, jvpmaker: Function) -> None:
    """Give a primitive its forward-mode rule for several arguments at once.

    Args:
        fun: The primitive.
        jvpmaker: ``jvpmaker(argnums, gs, ans, args, kwargs)``: the tangent of the result for
            tangents ``gs`` of the arguments ``argnums``.
    """
    if _takes_rules(fun, "defjvp_argnums", 4):
        fun.jvps = jvpmaker
        WITH_RULES.add(fun)


def defjvp_argnum(fun: Primitive, jvpmaker: Function) -> None:
    """Give a primitive its forward-mode rule by the number of the argument.

    Args:
        fun: The primitive.
        jvpmaker: ``jvpmaker(argnum, g, ans, args, kwargs)``: the tangent of the result.
    """

    def of_many(argnums: Any, gs: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        parts = [jvpmaker(n, g, ans, args, kwargs) for n, g in zip(argnums, gs, strict=True)]
        return tree_map(lambda *xs: sum(xs[1:], start=xs[0]), *parts)

    defjvp_argnums(fun, of_many)


def defjvp(fun: Primitive, *jvpfuns: Any, argnums: Any = None) -> None:
    """Give a primitive its forward-mode rules, one per argument.

    Args:
        fun: The primitive.
        *jvpfuns: ``jvpfun(g, ans, *args, **kwargs)``: the tangent of the result; ``"same"`` if the
            function is linear in the argument; ``None`` for a derivative of zero.
        argnums: Positions of the arguments that they belong to; by default the first ones.
    """
    for rule in jvpfuns:
        if rule is not None and rule != "same" and not callable(rule):
            raise ArgumentError(f"defjvp({name_of(fun)}): bad JVP {rule!r}: give a function.")
    table = _table(jvpfuns, argnums)

    def of_one(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        rule = _rule(table, argnum, fun, "JVP")
        if rule is None:
            return vspace(ans).zeros()
        if rule == "same":
            return fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs)
        return rule(g, ans, *args, **kwargs)

    defjvp_argnum(fun, of_one)


def def_linear(fun: Primitive) -> None:
    """Say that a primitive is linear in each of its arguments.

    Args: fun: The primitive.
    """

    def of_one(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        return fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs)

    defjvp_argnum(fun, of_one)


__all__ += ["Primitive", "isbox"]
