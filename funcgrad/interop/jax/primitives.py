"""JAX's open primitives: an object with a name, and tables of rules that anybody may add to.

`Applied` is such a primitive with its parameters, a primitive of `funcgrad.extend` whose rules are
looked up in the tables when a transformation asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import extend
from funcgrad.base.dialect import enter_dialect, leave_dialect
from funcgrad.base.pytree import held_in, register_pytree_node
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import mapped_name
from funcgrad.core.observers import describe_location
from funcgrad.core.primitive import mapped_length
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.dtypes import PYTHON_SCALARS, UINT64, float0
from funcgrad.errors import MissingRuleError
from funcgrad.interop.jax.arrays import Array, adopt, plain, weak_array, weakly
from funcgrad.interop.jax.types import Type, named_dtype, type_of, typed
from funcgrad.interop.jax.widths import is_x64, rules
from funcgrad.interop.missing import MissingNameError
from funcgrad.lowering import Extern, Form
from funcgrad.numpy import broadcast_to, moveaxis, zeros
from funcgrad.observers.source import SourceLocation, current_location
from funcgrad.random.key_arrays import KEY, KeyArray

Rule = Callable[..., Any]


class Zero:
    """A tangent or cotangent that is zero, without an array.

    Args: aval: Its type.
    """

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    @classmethod
    def from_primal_value(cls, value: Any) -> Zero:
        """The zero tangent of a value."""
        return cls(type_of(value).to_tangent_aval())

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that it stands for."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """Dtype of the array that it stands for."""
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """An argument of a transpose rule in which the operation is linear.

    Args: aval: Its type.
    """

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


register_pytree_node(Zero, lambda z: ((), z.aval), lambda aval, _: Zero(aval))
register_pytree_node(UndefinedPrimal, lambda u: ((), u.aval), lambda aval, _: UndefinedPrimal(aval))


def is_undefined_primal(value: Any) -> bool:
    """Whether an argument of a transpose rule has no value."""
    return type(value) is UndefinedPrimal


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent, an array also if it is zero."""
    return zeros_like_aval(tangent.aval) if type(tangent) is Zero else tangent


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else x + y


def zeros_like_aval(aval: Any) -> Any:
    """An array of zeros of a type."""
    make = np.zeros if aval.dtype == float0 else zeros
    return adopt(make(aval.shape, aval.dtype))


NO_EFFECTS: frozenset[Any] = frozenset()
"""Effects of an operation that has none."""

JVPS: dict[Primitive, Rule] = {}
TRANSPOSES: dict[Primitive, Rule] = {}
LOWERINGS: dict[Primitive, Rule] = {}
BATCHERS: dict[Primitive, Rule] = {}
"""Called with arguments and their mapped axes."""
AXIS_BATCHERS: dict[Primitive, Rule] = {}
"""Called with the length and the name of the axis, and None, in front of these."""
FANCY_BATCHERS: dict[Primitive, Rule] = {}
"""Called with what is known of the axis in front of these."""

_WHERE = {
    "evaluation": "{0}.def_impl(rule)",
    "abstract evaluation": "{0}.def_abstract_eval(rule)",
    "differentiation": "jax.interpreters.ad.primitive_jvps[{0}] = rule",
    "transposition": "jax.interpreters.ad.primitive_transposes[{0}] = rule",
    "batching": "jax.interpreters.batching.primitive_batchers[{0}] = rule",
    "compilation": "jax.interpreters.mlir.register_lowering({0}, mlir.lower_fun(function))",
}


class Primitive:
    """An operation that a library defines for JAX.

    Args: name: Its name.
    """

    multiple_results = False
    call_primitive = False
    map_primitive = False
    is_effectful = False

    def __init__(self, name: str) -> None:
        self.name = name

    def def_impl(self, impl: Rule) -> Rule:
        """Give the evaluation: from arguments and parameters to the results."""
        self.impl = impl  # type: ignore[method-assign]
        return impl

    def def_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Give the types of the results, from those of arguments, and parameters."""
        self.abstract_eval = lambda *avals, **params: (  # type: ignore[method-assign]
            abstract_eval(*avals, **params),
            NO_EFFECTS,
        )
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Give the types of the results, and the effects."""
        self.abstract_eval = abstract_eval  # type: ignore[method-assign]
        self.is_effectful = True
        return abstract_eval

    def gives(self, name: str) -> bool:
        """Whether a rule was given, as an attribute or by a class that derives from this one."""
        return getattr(getattr(self, name), "__func__", None) is not getattr(Primitive, name)

    def applied(self, params: dict[str, Any]) -> extend.Primitive:
        """The operation with its parameters."""
        return Applied(self, params)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the operation under the current transformation."""
        applied = self.applied(params)
        made = outside(applied.bind(*map(inside, args)))
        if any(type(x) is Array and x.weak_type for x in args) and self.gives("abstract_eval"):
            types = applied.abstract_eval(*map(_type_of, args))
            parts = zip(made, types, strict=True) if self.multiple_results else [(made, types)]
            for x, aval in parts:  # those of traced values say it themselves
                if aval.weak_type:
                    weakly(x)
        return made

    def impl(self, *args: Any, **params: Any) -> Any:
        """Evaluate by the lowering, where no other rule was given."""
        return apply_primitive(self, *args, **params)

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Any]:
        """Types of the results, and the effects.

        Raises: MissingRuleError: If no rule was given.
        """
        raise self.applied(params).missing("abstract evaluation")

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters with which `bind` makes the operation again."""
        return params

    def __repr__(self) -> str:
        return self.name


class Applied(extend.Primitive):
    """A primitive of a library with its parameters, which may be anything.

    Args:
        operation: The primitive.
        parameters: By name. Those that cannot be hashed are equal only to themselves.
    """

    is_callback = True

    def __init__(self, operation: Primitive, parameters: dict[str, Any]) -> None:
        self.operation = operation
        self.parameters = parameters
        self.name = operation.name

    @property
    def multiple_results(self) -> bool:  # type: ignore[override]
        return self.operation.multiple_results

    @property
    def is_effectful(self) -> bool:  # type: ignore[override]
        return self.operation.is_effectful

    def params(self) -> dict[str, Any]:
        return self.parameters

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Applied)
            and self.operation is other.operation
            and self.parameters.keys() == other.parameters.keys()
            and all(map(_is_same, self.parameters.values(), other.parameters.values()))
        )

    def __hash__(self) -> int:
        return hash((id(self.operation), *map(_hash_of, self.parameters.values())))

    def missing(self, what: str, location: SourceLocation | None = None) -> MissingRuleError:
        """The error that says where a rule is given."""
        lines = [f"{self.name} has no rule for {what}."]
        lines += describe_location(location or current_location(), "at")
        lines.append(f"Give it one: {_WHERE[what].format(self.name)}.")
        return MissingRuleError("\n".join(lines))

    def _rule(self, rules: dict[Primitive, Rule], what: str) -> Rule:
        rule = rules.get(self.operation)
        if rule is None:
            raise self.missing(what)
        return rule

    def _call(self, rule: Rule, *args: Any) -> Any:
        """Call a rule, which traces by JAX's rules."""
        token = enter_dialect(rules())
        try:
            return rule(*args, **self.parameters)
        finally:
            leave_dialect(token)

    def impl(self, *args: Any, **_: Any) -> Any:
        with using_trace(EVAL):
            return _values(self._call(self.operation.impl, *map(outside, args)))

    def abstract_eval(self, *avals: Any, **_: Any) -> Any:
        found, _effects = self._call(self.operation.abstract_eval, *map(typed, avals))
        return [_aval(a) for a in found] if self.multiple_results else _aval(found)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        rule = self._rule(JVPS, "differentiation")
        given = [
            Zero.from_primal_value(x) if t is None else outside(t)
            for x, t in zip(primals, tangents, strict=True)
        ]
        out, dots = self._call(rule, tuple(map(outside, primals)), tuple(given))
        out = _values(out)
        return out, [_tangent(t) for t in dots] if self.multiple_results else _tangent(dots)

    def transpose(self, ct: Any, *args: Any, **_: Any) -> Sequence[Any]:
        rule = self._rule(TRANSPOSES, "transposition")
        values = [
            UndefinedPrimal(typed(x.aval)) if extend.is_linear(x) else outside(x) for x in args
        ]
        if self.multiple_results:
            avals = self.abstract_eval(*(_type_of(x) for x in args))
            cts = [
                Zero(typed(a)) if c is None else outside(c) for c, a in zip(ct, avals, strict=True)
            ]
            found = self._call(rule, cts, *values)
        else:
            found = self._call(rule, outside(ct), *values)
        if found is Zero or found is None:
            return [None] * len(args)
        return [
            _tangent(c) if extend.is_linear(x) else None for c, x in zip(found, args, strict=True)
        ]

    def batch(self, args: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, Any]:
        given = tuple(map(outside, args)), tuple(dims)
        if self.operation in AXIS_BATCHERS:
            rule = AXIS_BATCHERS[self.operation]
            out, out_dims = self._call(rule, mapped_length(args, dims), mapped_name(), None, *given)
        elif self.operation in FANCY_BATCHERS:
            axis = AxisData(mapped_name(), mapped_length(args, dims))
            out, out_dims = self._call(FANCY_BATCHERS[self.operation], axis, *given)
        else:
            out, out_dims = self._call(self._rule(BATCHERS, "batching"), *given)
        if not self.multiple_results:
            return _to_front(out, out_dims), None if out_dims is None else 0
        pairs = list(zip(out, out_dims, strict=True))
        return [_to_front(x, d) for x, d in pairs], [None if d is None else 0 for _, d in pairs]

    def lower(self, *avals: Any, **_: Any) -> Form:
        rule = self._rule(LOWERINGS, "compilation")
        if _function_of(rule) is not None:
            return _LOWER(self, *avals)
        try:
            return _LOWER(self, *avals)  # a rule may emit nothing but callbacks
        except (MissingNameError, AttributeError):  # names of MLIR, and attributes of its values
            if self.operation.gives("impl"):  # what is written for MLIR computes the same
                return Extern()
            raise self.missing("compilation") from None


def _run_lowered(self: Applied, *args: Any) -> Any:
    rule = LOWERINGS[self.operation]
    function, values = _function_of(rule), map(outside, args)
    if function is not None:
        return _values(self._call(function, *values))
    emitted = self._call(rule, LoweringContext(self, args), *values)
    found = [x for part in emitted for x in (part if isinstance(part, list | tuple) else (part,))]
    return _values(found) if self.multiple_results else inside(found[0])


class LoweringContext:
    """Context of a lowering that emits code: types of arguments and results.

    Args:
        applied: The operation.
        args: Its arguments.
    """

    def __init__(self, applied: Applied, args: Sequence[Any]) -> None:
        found = applied.abstract_eval(*map(aval_of, args))
        self.primitive = applied.operation
        self.avals_in = [typed(aval_of(x)) for x in args]
        self.avals_out = list(map(typed, found if applied.multiple_results else [found]))
        self.module_context = self

    def add_keepalive(self, value: Any) -> None:
        """Nothing: a program keeps the functions that it calls."""


_LOWER = extend.by_function(_run_lowered)


class AxisData:
    """The mapped axis, for batching rules.

    Args:
        name: Its name, if it has one.
        size: Its length.
    """

    spmd_name = None
    explicit_mesh_axis = None

    def __init__(self, name: Any, size: int) -> None:
        self.name = name
        self.size = size


class LoweredFunction:
    """Lowering by a function of other operations: the result of `mlir.lower_fun`."""

    def __init__(self, fun: Rule) -> None:
        self.fun = fun


def lower_fun(fun: Rule, multiple_results: bool = True) -> LoweredFunction:
    """A lowering that compiles a function of other operations."""
    return LoweredFunction(fun)


def register_lowering(prim: Primitive, rule: Any, platform: str | None = None, **_: Any) -> Any:
    """Give a primitive its lowering; those for other platforms than the CPU are not used."""
    if platform in (None, "cpu"):
        LOWERINGS[prim] = rule
    return rule


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Evaluate by the lowering."""
    function = _function_of(LOWERINGS.get(prim))
    if function is None:
        raise prim.applied(params).missing("evaluation")
    return function(*args, **params)


def _function_of(rule: Any) -> Rule | None:
    return rule.fun if isinstance(rule, LoweredFunction) else None


def inside(x: Any) -> Any:
    """A value of users as programs and rules have it: keys are integers there."""
    return plain(held_in(x))


def outside(x: Any) -> Any:
    """A value of a program, or several, as users get it, Python's numbers as arrays.

    Keys are told by their 64 bits, which nothing else has without the x64 switch.
    """
    if type(x) in (list, tuple):
        return list(map(outside, x))
    if not is_x64() and getattr(x, "dtype", None) == UINT64:
        return KeyArray(x)
    return weak_array(x) if type(x) in PYTHON_SCALARS else adopt(x)


def _type_of(value: Any) -> ShapedArray:
    """The type of a value, or of an argument without one."""
    return value.aval if extend.is_linear(value) else type_of(value)


def _aval(aval: Any) -> ShapedArray:
    """A type of ours; those of JAX may have anything that names a dtype."""
    dtype = named_dtype(aval.dtype)
    dtype = UINT64 if dtype == KEY else dtype
    return ShapedArray(tuple(aval.shape), dtype, getattr(aval, "weak_type", False))


def _values(out: Any) -> Any:
    return [inside(x) for x in out] if isinstance(out, tuple | list) else inside(out)


def _tangent(t: Any) -> Any:
    if t is None or type(t) is Zero or t is Zero:
        return None
    return None if getattr(t, "dtype", None) == float0 else plain(t)


def _to_front(value: Any, dim: int | None) -> Any:
    return inside(value if not dim else moveaxis(value, dim, 0))


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except Exception:  # whatever the hash of an object of the user's raises
        return False
    return True


def _hash_of(value: Any) -> int:
    return hash(value) if _is_hashable(value) else id(value)


def _is_same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and _is_hashable(a) and (a == b) is True)


# Registration of rules in the tables.


def deflinear(prim: Primitive, transpose_rule: Rule) -> None:
    """Say that an operation is linear, with ``transpose_rule(ct, **params)``."""
    deflinear2(prim, lambda ct, *args, **params: transpose_rule(ct, **params))


def deflinear2(prim: Primitive, transpose_rule: Rule) -> None:
    """Say that an operation is linear, with ``transpose_rule(ct, *args, **params)``."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = prim.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, Zero.from_primal_value(out)
        return out, prim.bind(*map(instantiate_zeros, tangents), **params)

    JVPS[prim] = jvp
    TRANSPOSES[prim] = transpose_rule


def defjvp(prim: Primitive, *jvprules: Rule | None) -> None:
    """Give ``rule(tangent, *primals, **params)`` for each argument, ``None`` for zero."""
    rules = [r and (lambda t, out, *xs, _r=r, **params: _r(t, *xs, **params)) for r in jvprules]
    defjvp2(prim, *rules)


def defjvp2(prim: Primitive, *jvprules: Rule | None) -> None:
    """Give ``rule(tangent, result, *primals, **params)`` for each argument, ``None`` for zero."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = prim.bind(*primals, **params)
        parts = [
            rule(t, out, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=True)
            if rule is not None and type(t) is not Zero
        ]
        return out, sum(parts[1:], parts[0]) if parts else Zero.from_primal_value(out)

    JVPS[prim] = jvp


def defbilinear(prim: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Say that an operation is linear in each of two arguments, with both transposes."""
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        if is_undefined_primal(x):
            return [lhs_rule(ct, x, y, **params), None]
        return [None, rhs_rule(ct, x, y, **params)]

    TRANSPOSES[prim] = transpose


def defvectorized(prim: Primitive) -> None:
    """Say that an operation maps over leading axes by itself."""

    def batch(args: Any, dims: Any, **params: Any) -> Any:
        out = prim.bind(*args, **params)
        return out, [dims[0]] * len(out) if prim.multiple_results else dims[0]

    BATCHERS[prim] = batch


def defbroadcasting(prim: Primitive) -> None:
    """Say that an operation broadcasts as NumPy does."""

    def batch(args: Any, dims: Any, **params: Any) -> Any:
        rank = max(np.ndim(x) - (d is not None) for x, d in zip(args, dims, strict=True))
        moved = [
            x if d is None else _with_rank(moveaxis(x, d, 0), rank)
            for x, d in zip(args, dims, strict=True)
        ]
        return prim.bind(*moved, **params), 0

    BATCHERS[prim] = batch


def _with_rank(x: Any, rank: int) -> Any:
    size, *rest = x.shape
    return x.reshape((size, *(1,) * (rank - len(rest)), *rest))


def broadcast(x: Any, size: int, axis: int) -> Any:
    """A value with one more axis of a length, along which it is repeated."""
    return adopt(moveaxis(broadcast_to(x, (size, *np.shape(x))), 0, axis))


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """A value with its mapped axis in front."""
    return broadcast(x, size, 0) if bdim is None else adopt(moveaxis(x, bdim, 0))


def mapped_aval(size: int, axis: int | None, aval: Any) -> Type:
    """The type of one example."""
    if axis is None:
        return typed(aval)
    shape = aval.shape[:axis] + aval.shape[axis + 1 :]
    return Type(shape, aval.dtype, aval.weak_type)


def unmapped_aval(size: int, axis: int | None, aval: Any, *more: Any) -> Type:
    """The type of many examples."""
    if axis is None:
        return typed(aval)
    shape = (*aval.shape[:axis], size, *aval.shape[axis:])
    return Type(shape, aval.dtype, aval.weak_type)
