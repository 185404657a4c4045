"""Programs as JAX's users read, evaluate and build them: ``Jaxpr``, its equations and names.

An equation shows its primitive as an object with a name and its parameters as a dict, whatever the
primitive is; both together make the operation again. A `Jaxpr` is a program whose leading inputs
are its constants.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad import extend, lax
from funcgrad.api import custom, staging
from funcgrad.base.pytree import tree_flatten, tree_map, tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.printer import Names, format_program
from funcgrad.core.program import Atom, Equation, Program, Var, evaluate
from funcgrad.core.program import Literal as Scalar
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.core.typecheck import check_program
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.custom import CustomCall
from funcgrad.higher_order.jit import Jit
from funcgrad.higher_order.scan import Scan
from funcgrad.higher_order.switch import Switch
from funcgrad.higher_order.while_loop import While
from funcgrad.interop.jax.arrays import SHOWN_AS, adopt, plain, weak_kind, weakly
from funcgrad.interop.jax.lane_programs import ShardMap
from funcgrad.interop.jax.primitives import Applied, Primitive, inside, outside
from funcgrad.interop.jax.types import typed
from funcgrad.interop.jax.widths import in_few_bits, is_x64, narrow_weak
from funcgrad.interop.missing import Missing
from funcgrad.observers.source import SourceLocation
from funcgrad.passes.dce import without_dead
from funcgrad.primitives.collectives import Collective, PSum
from funcgrad.primitives.elementwise import Convert
from funcgrad.primitives.shape import Reshape
from funcgrad.transforms.stage import StageTrace

_NAMES = {
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "arg_max": "argmax", "arg_min": "argmin",
    "bitcast": "bitcast_convert_type", "bitwise_and": "and", "bitwise_not": "not",
    "bitwise_or": "or", "bitwise_xor": "xor", "broadcast_to": "broadcast_in_dim",
    "contract": "dot_general", "convert": "convert_element_type",
    "convolution": "conv_general_dilated", "equal": "eq", "erfinv": "erf_inv", "greater": "gt",
    "greater_equal": "ge", "i0e": "bessel_i0e", "i1e": "bessel_i1e", "integer_power": "integer_pow",
    "isfinite": "is_finite", "left_shift": "shift_left", "less": "lt", "less_equal": "le",
    "maximum": "max", "minimum": "min", "not_equal": "ne", "power": "pow",
    "reduce_all": "reduce_and", "reduce_any": "reduce_or", "reverse": "rev",
    "scatter_set": "scatter", "select": "select_n", "switch": "cond",
}  # fmt: skip
"""Primitives by the names that JAX gives them, where these differ."""

_FUNCTIONS = {"and": "bitwise_and", "not": "bitwise_not", "or": "bitwise_or", "xor": "bitwise_xor"}
"""Functions of `funcgrad.lax` that are not called as JAX's primitives are."""

_OPERANDS: dict[str, Callable[..., Sequence[Any]]] = {
    "concatenate": lambda *arrays: [arrays],
    "dynamic_slice": lambda x, *starts: [x, starts],
    "dynamic_update_slice": lambda x, update, *starts: [x, update, starts],
}
"""Arguments of these functions, from the operands of the primitives."""

_PARAMETERS = {
    "concatenate": {"axis": "dimension"},
    "convert": {"dtype": "new_dtype", "weak": "weak_type"},
    "dynamic_slice": {"sizes": "slice_sizes"},
    "integer_power": {"exponent": "y"},
    "iota": {"axis": "dimension"},
    "reshape": {"shape": "new_sizes"},
    "reverse": {"axes": "dimensions"},
    "slice": {"starts": "start_indices", "limits": "limit_indices"},
    "sort": {"axis": "dimension"},
    "scan": {"body": "jaxpr", "n_consts": "num_consts", "n_carry": "num_carry"},
    "while": {
        "condition": "cond_jaxpr", "body": "body_jaxpr", "n_cond": "cond_nconsts",
        "n_body": "body_nconsts",
    },
}  # fmt: skip
"""Parameters by the names that JAX gives them, where these differ."""

Axes = tuple[int, ...]


def _dimension_numbers(lhs: str, rhs: str, out: str) -> tuple[tuple[Axes, Axes], ...] | None:
    """Contracted and batched axes of both operands, unless the results are in another order."""
    batched = [c for c in lhs if c in rhs and c in out]
    contracted = [c for c in lhs if c in rhs and c not in out]
    in_order = [*batched, *(c for c in lhs if c not in rhs), *(c for c in rhs if c not in lhs)]
    if in_order != list(out):
        return None
    return tuple(
        (tuple(map(lhs.index, letters)), tuple(map(rhs.index, letters)))
        for letters in (contracted, batched)
    )


_DERIVED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "contract": (
        "dimension_numbers",
        lambda p: _dimension_numbers(p.lhs, p.rhs, p.out),
    ),
    "pad": (
        "padding_config",
        lambda p: tuple(zip(p.lows, p.highs, p.interiors, strict=True)),
    ),
}
"""Parameters that JAX has, and that follow from those there are; None where they do not."""


_WHOLE: dict[str, type[extend.Primitive]] = {
    "cond": Switch,
    "jit": Jit,
    "scan": Scan,
    "while": While,
}
"""Operations that their parameters say all of, by the names that JAX gives them."""


class Native(Primitive):
    """An operation of funcgrad, by the name that JAX gives it.

    Args:
        name: Its name. Two of one name are equal, so that tables of rules find them.
        instance: The operation with its parameters, if it comes from an equation.
    """

    def __init__(self, name: str, instance: extend.Primitive | None = None) -> None:
        super().__init__(name)
        self.instance = instance
        self.multiple_results = name in _WHOLE or getattr(instance, "multiple_results", False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Native) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def applied(self, params: dict[str, Any]) -> extend.Primitive:
        if self.instance is None and self.name in _WHOLE:
            return _made_of(_WHOLE[self.name], params)
        if self.instance is None:
            raise ArgumentError(
                f"{self.name}_p has no parameters here: call jax.lax.{self.name}, or take the "
                "primitive of an equation."
            )
        return _with_params(self.instance, params)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        if "call_jaxpr" not in params:
            return params
        others = {name: value for name, value in params.items() if name != "call_jaxpr"}
        return {**others, "subfuns": (Called(params["call_jaxpr"]),)}

    def bind(self, *args: Any, subfuns: Sequence[Any] = (), **params: Any) -> Any:
        if subfuns:
            (function,) = subfuns
            if not isinstance(function, Called):
                return function.call_wrapped(*args)
            params = {**params, "call_jaxpr": function.jaxpr}
        if self.instance is not None or self.name in _WHOLE:
            return super().bind(*_agreeing(args), **params)
        function = getattr(lax, _FUNCTIONS.get(self.name, self.name), None)
        if function is None:
            return Missing(f"jax.lax.{self.name}_p")()
        given = _OPERANDS[self.name](*args) if self.name in _OPERANDS else args
        return adopt(function(*map(plain, given), **params))


native: Callable[[str], Native] = functools.cache(Native)
"""The operation of a name, one object: programs ask by ``is`` what an equation does."""


def _agreeing(args: Sequence[Any]) -> Sequence[Any]:
    """Arguments of which weak integers have the bits of the others."""
    avals = list(map(aval_of, args))
    strong = {a.dtype for a in avals if a.dtype.kind == "i" and not a.weak_type}
    if len(strong) != 1:
        return args
    (dtype,) = strong

    def agreeing(x: Any, aval: ShapedArray) -> Any:
        if not aval.weak_type or aval.dtype.kind != "i":
            return x
        return Convert(dtype).bind(x) if isinstance(x, Tracer) else np.asarray(x, dtype)[()]

    return list(map(agreeing, args, avals))


def _primitive_of(equation: Equation) -> Primitive:
    primitive = equation.primitive
    if isinstance(primitive, Applied):
        return primitive.operation
    name = primitive.name
    if isinstance(primitive, CustomCall):
        name = "custom_jvp_call" if primitive.rules.jvp else "custom_vjp_call"
    elif type(primitive) is PSum and primitive.is_invariant:
        name = "psum_invariant"
    elif isinstance(primitive, Reshape):
        name = _name_of_reshape(equation.inputs[0].aval.shape, primitive.shape)
    name = _NAMES.get(name, name)
    is_limited = isinstance(primitive, Jit) and primitive != Jit(primitive.program)
    is_whole = type(primitive) is _WHOLE.get(name) and not is_limited
    return native(name) if is_whole else Native(name, primitive)


def _name_of_reshape(before: tuple[int, ...], after: tuple[int, ...]) -> str:
    """The name of a reshape: new axes are a broadcast in JAX, and axes that go a squeeze."""
    is_about_ones = [n for n in before if n != 1] == [n for n in after if n != 1]
    if not is_about_ones or len(before) == len(after):
        return "reshape"
    return "broadcast_in_dim" if len(after) > len(before) else "squeeze"


def _params_of(primitive: extend.Primitive) -> dict[str, Any]:
    """The parameters, by JAX's names where they hold programs."""
    if isinstance(primitive, Applied):
        return dict(primitive.parameters)
    if isinstance(primitive, CustomCall):
        return {"call_jaxpr": closed(primitive.program)}
    if isinstance(primitive, ShardMap):
        return {**primitive.params(), "jaxpr": closed(primitive.lanes).jaxpr}
    if isinstance(primitive, Collective) and hasattr(primitive, "axes"):
        return {"axes": tuple(getattr(n, "label", n) for n in primitive.axis_names)}
    if isinstance(primitive, Jit):
        return {"name": primitive.program.name, "jaxpr": closed(primitive.program)}
    if not hasattr(primitive, "__dataclass_fields__"):
        return {}
    declared: Any = primitive
    names = _PARAMETERS.get(primitive.name, {})
    fields = [f.name for f in dataclasses.fields(declared)]
    shown = {names.get(name, name): _shown(getattr(primitive, name)) for name in fields}
    name, derive = _DERIVED.get(primitive.name, ("", lambda _: None))
    derived = derive(primitive)
    return shown if derived is None else {**shown, name: derived}


def _words_of(equation: Equation) -> tuple[str, dict[str, Any]]:
    """The name of an operation, and its parameters by the names that they are asked for by."""

    def opened(value: Any) -> Any:
        if isinstance(value, tuple) and value and isinstance(value[0], ClosedJaxpr | Jaxpr):
            return tuple(map(opened, value))
        is_program = isinstance(value, ClosedJaxpr | Jaxpr)
        return _program_in(value) if is_program else value if callable(value) else repr(value)

    params = _params_of(equation.primitive).items()
    return str(_primitive_of(equation)), {name: opened(value) for name, value in params}


def _program_in(shown: ClosedJaxpr | Jaxpr) -> Program:
    return shown.closed_program() if isinstance(shown, ClosedJaxpr) else shown.program


def _shown(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_shown, value))
    return closed(value) if isinstance(value, Program) else value


def _hidden(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_hidden, value))
    return value.closed_program() if isinstance(value, ClosedJaxpr) else value


def _with_params(primitive: extend.Primitive, params: dict[str, Any]) -> extend.Primitive:
    """An operation with other parameters, those that `_params_of` shows."""
    now = {name: _hidden(value) for name, value in _params_of(primitive).items()}
    given = {name: _hidden(value) for name, value in params.items()}
    changed = {k: v for k, v in given.items() if v is not now.get(k) and v != now.get(k)}
    if not changed:
        return primitive
    if isinstance(primitive, CustomCall | Jit):
        return Jit(given["jaxpr" if "jaxpr" in given else "call_jaxpr"])
    fields: Any = primitive
    names = {shown: name for name, shown in _PARAMETERS.get(primitive.name, {}).items()}
    changed = {names.get(name, name): value for name, value in changed.items()}
    return dataclasses.replace(fields, **changed)


def _made_of(kind: type[extend.Primitive], params: dict[str, Any]) -> extend.Primitive:
    """Make an operation from the parameters that `_params_of` shows."""
    if kind is Jit:
        return Jit(_hidden(params["jaxpr"]))
    names = {shown: name for name, shown in _PARAMETERS.get(kind.name, {}).items()}
    return kind(**{names.get(name, name): _hidden(value) for name, value in params.items()})


class Literal(Scalar):
    """A scalar constant; every scalar constant of a program is an instance."""

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.aval = typed(self.aval)

    @property
    def val(self) -> Any:
        """The scalar."""
        return self.value

    def __hash__(self) -> int:
        return id(self)


class DropVar(Var):
    """A name that nothing reads."""

    __slots__ = ()


def _atom(atom: Atom) -> Atom:
    return Literal(atom.value) if type(atom) is Scalar else atom


@dataclass(frozen=True)
class SourceInfo:
    """Origin of an equation.

    Args: location: The user's line.
    """

    location: SourceLocation | None = None
    traceback = None

    @property
    def name_stack(self) -> str:
        """Names of the blocks in which the line was executed."""
        return "/".join(self.location.scope) if self.location else ""


class JaxprEqn:
    """An equation: ``outvars = primitive[params] invars``.

    Args:
        primitive: The operation.
        invars: Names and scalars.
        outvars: Names.
        params: The parameters of the operation.
        effects: What it does besides; kept.
        source_info: Where it comes from.
    """

    ctx = None

    def __init__(
        self,
        invars: Sequence[Any],
        outvars: Sequence[Any],
        primitive: Primitive,
        params: dict[str, Any],
        effects: Iterable[Any] = (),
        source_info: SourceInfo | None = None,
    ) -> None:
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.primitive = primitive
        self.params = params
        self.effects = frozenset(effects)
        self.source_info = source_info or SourceInfo()

    @classmethod
    def of(cls, equation: Equation) -> JaxprEqn:
        """An equation of a program."""
        primitive = equation.primitive
        invars, effects = map(_atom, equation.inputs), ["effect"] * primitive.is_effectful
        shown = _primitive_of(equation), _params_of(primitive)
        return cls(list(invars), equation.outputs, *shown, effects, SourceInfo(equation.source))

    @property
    def equation(self) -> Equation:
        """The equation of a program."""
        applied = self.primitive.applied(self.params)
        return Equation(applied, self.invars, self.outvars, self.source_info.location)

    def replace(self, **changes: Any) -> JaxprEqn:
        """A copy with other attributes."""
        names = ("invars", "outvars", "primitive", "params", "effects", "source_info")
        return JaxprEqn(**{**{name: getattr(self, name) for name in names}, **changes})

    def __repr__(self) -> str:
        return f"{self.outvars} = {self.primitive}{self.params} {self.invars}"


def gensym(suffix: str = "") -> Callable[[ShapedArray], Var]:
    """A maker of names, each another one."""
    return Var


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Any],
    primitive: Primitive,
    params: dict[str, Any],
    effects: Iterable[Any] = (),
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation."""
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info)


class Jaxpr:
    """A program whose constants are inputs.

    Args:
        constvars: The names of its constants.
        invars: The names of its inputs.
        outvars: Names and scalars.
        eqns: The equations, in order.
        effects: What it does besides; kept.
        debug_info: Kept.
        is_high: Ignored.
    """

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Any],
        eqns: Sequence[JaxprEqn],
        effects: Iterable[Any] = frozenset(),
        debug_info: Any = None,
        is_high: bool = False,
    ) -> None:
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.effects = frozenset(effects)
        self.debug_info = debug_info
        self._eqns: list[JaxprEqn] | None = list(eqns)
        self._program: Program | None = None

    @classmethod
    def of(cls, program: Program, n_consts: int) -> Jaxpr:
        """A program, whose leading inputs and whose arrays are constants."""
        arrays = [var for var, _ in program.constants]
        constvars = [*program.inputs[:n_consts], *arrays]
        invars = program.inputs[n_consts:]
        effects = ["effect"] * program.is_effectful
        made = cls(constvars, invars, list(map(_atom, program.outputs)), (), effects)
        made._eqns = None  # made when they are asked for
        inputs = [*constvars, *invars]
        for var in (*inputs, *(v for eqn in program.equations for v in eqn.outputs)):
            var.aval = typed(var.aval)
        made._program = Program(inputs, program.equations, program.outputs, program.name)
        return made

    @property
    def eqns(self) -> list[JaxprEqn]:
        """The equations, in order."""
        if self._eqns is None:
            self._eqns = list(map(JaxprEqn.of, self.program.equations))
        return self._eqns

    @property
    def program(self) -> Program:
        """The program, with the constants as its leading inputs."""
        if self._program is None:
            inputs = [*self.constvars, *self.invars]
            equations = [eqn.equation for eqn in self.eqns]
            self._program = Program(inputs, equations, self.outvars, "jaxpr")
        return self._program

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the inputs."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the results."""
        return [v.aval for v in self.outvars]

    def replace(self, **changes: Any) -> Jaxpr:
        """A copy with other attributes."""
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        return Jaxpr(**{**{name: getattr(self, name) for name in names}, **changes})

    def __str__(self) -> str:
        return format_program(self.program, names=Names(_words_of))

    __repr__ = __str__


class ClosedJaxpr(staging.ClosedJaxpr):
    """A `Jaxpr` with values for its constants.

    Args:
        jaxpr: The program.
        consts: The values of its constants.
        origin: The program that it shows, if that has all constants inside.
    """

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any], origin: Program | None = None) -> None:
        super().__init__(jaxpr.program, consts)
        self.jaxpr = jaxpr
        self._origin = origin

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__

    @property
    def eqns(self) -> list[JaxprEqn]:  # type: ignore[override]
        return self.jaxpr.eqns

    @property
    def constvars(self) -> list[Var]:
        """The names of its constants."""
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        """The names of its inputs."""
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Any]:
        """Names and scalars that are its results."""
        return self.jaxpr.outvars

    @property
    def literals(self) -> list[Any]:
        """The values of its constants."""
        return self.consts

    @property
    def effects(self) -> frozenset[Any]:
        """Side effects of the program."""
        return self.jaxpr.effects

    def closed_program(self) -> Program:
        """The program, with its constants inside."""
        if self._origin is not None:
            return self._origin
        program = self.program
        n = len(self.consts)
        constants = tuple(zip(program.inputs[:n], map(inside, self.consts), strict=True))
        return Program(
            program.inputs[n:], program.equations, program.outputs, program.name, constants
        )

    def replace(self, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> Any:
        """A copy with another program or other constants."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )


def closed(program: Program, consts: Sequence[Any] = ()) -> ClosedJaxpr:
    """A program with the values of its leading inputs."""
    arrays = [array for _, array in program.constants]
    jaxpr: Jaxpr = program.memo(("jaxpr", len(consts)), lambda: Jaxpr.of(program, len(consts)))
    origin = None if consts else program
    return ClosedJaxpr(jaxpr, list(map(outside, [*consts, *arrays])), origin)


SHOWN_AS[staging.ClosedJaxpr] = lambda found: closed(found.program, found.consts)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, **options: Any) -> list[Any]:
    """Run a program on flat arguments, under the current transformation."""
    program = jaxpr.program
    given = [*consts, *args]
    values = map(_as_traced, program.inputs, map(inside, given))
    outs = list(map(outside, evaluate(program, list(values))))
    pairs = zip(program.inputs, given, strict=True)
    if all(weak_kind([x]) for var, x in pairs if var.aval.weak_type):
        for out, atom in zip(outs, program.outputs, strict=True):
            if atom.aval.weak_type:
                weakly(out)
    return outs


def _as_traced(var: Var, x: Any) -> Any:
    """A value for an input; one that was traced as a Python number has 64 bits there."""
    aval = var.aval
    if not aval.weak_type or aval_of(x).dtype == aval.dtype:
        return x
    return Convert(aval.dtype, weak=True).bind(x)


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A program as a function of flat arguments."""
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Any, list[Any]]:
    """`funcgrad.closure_convert`; keys that the function closes over stay keys.

    Args:
        fun: As there.
        *example_args: As there.
    """
    examples = example_args if is_x64() else tree_map(narrow_weak, example_args)
    converted, values = custom.closure_convert(in_few_bits(fun), *examples)
    return adopt(converted), list(map(outside, values))


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs among the parameters of an equation."""
    for value in params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, Jaxpr):
                yield part
            elif isinstance(part, ClosedJaxpr):
                yield part.jaxpr


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs that the equations of a program hold."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def _taking_arrays(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function to be staged, of which all arrays that it closes over are constants, in order.

    Constants of two programs are exchanged: those of one may be traced, and known in the other.
    """
    function = in_few_bits(fun)

    @functools.wraps(function)
    def staged(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        assert isinstance(trace, StageTrace)
        trace.takes_arrays = True
        return function(*args, **kwargs)

    return staged


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: Any = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    **options: Any,
) -> Callable[..., Any]:
    """`funcgrad.make_jaxpr`, with a program that can be read and evaluated.

    Args:
        fun: The function.
        static_argnums: As in `funcgrad.make_jaxpr`.
        axis_env: Names and lengths of axes that the function may use.
        return_shape: Whether to return a pair of the program and the types of the results.
        **options: As in `funcgrad.make_jaxpr`.
    """
    if axis_env:
        raise ArgumentError(
            "make_jaxpr(axis_env=...) is not there: use vmap(axis_name=...) inside of the function."
        )
    make = staging.make_jaxpr(_taking_arrays(fun), static_argnums, return_shape=True, **options)

    def made(*args: Any, **kwargs: Any) -> Any:
        found, shapes = make(*args, **kwargs)
        jaxpr = closed(found.program, found.consts)
        return (jaxpr, shapes) if return_shape else jaxpr

    return adopt(made)


def dce_jaxpr(
    jaxpr: Any, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Dead code elimination: the program for some of the results.

    Args:
        jaxpr: The program.
        used_outputs: Which results are wanted.
        instantiate: Whether inputs are kept, or which.
    Returns: The program, and flags of the inputs that it has.
    """
    opened: Jaxpr = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    program, kept = without_dead(opened.program, used_outputs)
    n = len(opened.constvars)
    wanted = [instantiate] * len(kept) if isinstance(instantiate, bool) else [False] * n
    wanted += [] if isinstance(instantiate, bool) else list(instantiate)
    flags = [on or asked for on, asked in zip(kept, wanted, strict=True)]
    constvars = list(itertools.compress(opened.constvars, flags))
    invars = list(itertools.compress(opened.invars, flags[n:]))
    inputs = [*constvars, *invars]
    found = Program(inputs, program.equations, program.outputs, program.name, program.constants)
    return Jaxpr.of(found, len(constvars)), flags[n:]


def check_jaxpr(jaxpr: Any) -> None:
    """Check the types of a program, or raise an error."""
    check_program(jaxpr.program)


class WrappedFun:
    """A function of flat arguments, as libraries hand it to transformations of JAX.

    Args: f: The function.
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        return self.f(*args, **kwargs)


class Called(WrappedFun):
    """The function of a program that an equation calls.

    Args: jaxpr: The program.
    """

    def __init__(self, jaxpr: ClosedJaxpr) -> None:
        super().__init__(jaxpr_as_fun(jaxpr))
        self.jaxpr = jaxpr


def wrap_init(f: Callable[..., Any], params: Any = None, *, debug_info: Any = None) -> WrappedFun:
    """A function to be transformed; what is told about it is not used."""
    return WrappedFun(functools.partial(f, **(params or {})))


def flatten_fun(
    fun: WrappedFun, in_tree: Any, *, has_keywords: bool = True
) -> tuple[WrappedFun, Callable[[], Any]]:
    """A function of the leaves of its arguments, which returns those of its result.

    Args:
        fun: The function.
        in_tree: Structure of its arguments, with those by name where it has keywords.
        has_keywords: Whether it has.
    Returns: The function of leaves, and one that gives the structure of the last result.
    """
    structures: list[Any] = []

    def compute(*leaves: Any) -> list[Any]:
        given = tree_unflatten(in_tree, leaves)
        args, kwargs = given if has_keywords else (given, {})
        flat, structure = tree_flatten(fun.call_wrapped(*args, **kwargs))
        structures.append(structure)
        return flat

    return WrappedFun(compute), lambda: structures[-1]


def debug_info(traced_for: str, fun: Any, args: Any, kwargs: Any, **options: Any) -> None:
    """Nothing: messages know the user's line without being told."""


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[ShapedArray], **options: Any
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """A program, the types of its results, and the values of its constants.

    Args:
        fun: A function of flat arguments, which returns a flat list.
        in_avals: Types of the arguments.
        **options: Of no effect.
    """
    types = [staging.ShapeDtypeStruct(a.shape, a.dtype) for a in in_avals]
    found = make_jaxpr(fun.call_wrapped)(*types)
    return found.jaxpr, found.jaxpr.out_avals, found.consts


class CallPrimitive(Primitive):
    """The call of a program, which is evaluated where it is bound."""

    multiple_results = True
    call_primitive = True

    def bind(
        self, *args: Any, call_jaxpr: Any = None, subfuns: Sequence[Any] = (), **params: Any
    ) -> Any:
        """Results of the program, whose constants are the leading arguments, or of a function."""
        if subfuns:
            return subfuns[0].call_wrapped(*args)
        return eval_jaxpr(call_jaxpr, (), *args)


call_p = CallPrimitive("core_call")
