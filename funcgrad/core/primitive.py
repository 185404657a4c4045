"""The protocol of a primitive operation: one class, all of its rules.

A primitive is a frozen dataclass whose fields are its static parameters. Its methods are its
rules; families derive most of them. This file fixes the protocol and knows no primitive.

Conventions, everywhere in funcgrad:

* A *symbolic zero* tangent or cotangent is ``None``; it is never a traced or allocated array.
* In `transpose`, an argument in which the operation is linear arrives as a `Linear`, which knows
  its aval and has no value; the other arguments are residuals and arrive as values.
* In `batch`, mapped arguments carry their batch axis in front (dim 0); others have dim ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Protocol, TypeVar, dataclass_transform

from funcgrad.base.records import make_record
from funcgrad.base.signatures import annotations_of
from funcgrad.core.avals import ShapedArray
from funcgrad.core.axes import mapped_axis
from funcgrad.core.observers import OBSERVED, Location, current_location, describe_location
from funcgrad.core.trace import EVAL, Tracer, current_trace, raise_leaked
from funcgrad.errors import MissingRuleError

Value = Any
"""A concrete array or scalar, or a tracer."""

BatchDim = int | None

T = TypeVar("T")

MUTABLE_TYPES: set[type] = set()
"""Types of arrays whose contents may change, such as writable arrays and references.

`bind` replaces them by their present contents (``__jax_array__``): traces see values only.
"""


class LinearOperation(Protocol):
    """Linear operation that computes a placeholder from placeholders and values."""

    @property
    def inputs(self) -> Sequence[Any]:
        """Its arguments: placeholders and values."""

    def out_avals(self) -> list[ShapedArray]:
        """Type of its one result, when those of the inputs are known."""


class Linear:
    """Placeholder of a tangent: an argument in which an operation is linear, without a value.

    Args:
        aval: Its abstract value, or the operation that computes it: then the abstract value is
            computed at its first use (most backward passes never use it).
        index: Position on the tape: the slot that holds its tangent, or its cotangent.
    Example: fg.extend.Linear(fg.extend.ShapedArray((3,), np.dtype(np.float64))).shape -> (3,)
    """

    __slots__ = ("_aval", "index")

    def __init__(self, aval: ShapedArray | LinearOperation, index: int = -1) -> None:
        self._aval = aval
        self.index = index

    @property
    def aval(self) -> ShapedArray:
        aval = self._aval
        return aval if isinstance(aval, ShapedArray) else self._find_aval()

    def _find_aval(self) -> ShapedArray:
        """Compute the abstract value, after those of the placeholders that it depends on.

        Iteratively, since the chain of dependences may be as long as the tape.
        """
        pending = [self]
        while pending:
            made_by = pending[-1]._aval
            if isinstance(made_by, ShapedArray):
                pending.pop()
                continue
            unknown = [
                x
                for x in made_by.inputs
                if type(x) is Linear and not isinstance(x._aval, ShapedArray)
            ]
            if unknown:
                pending += unknown
            else:
                pending.pop()._aval = made_by.out_avals()[0]
        return self.aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


def is_linear(argument: Any) -> bool:
    """Whether an argument of a transpose rule is linear, that is, has no value.

    Args: argument: One of those that the rule gets.
    Example: fg.extend.is_linear(fg.extend.Linear(fg.extend.ShapedArray((), np.dtype(np.float64))))
        -> True
    """
    return type(argument) is Linear


Differential = Callable[..., tuple[Any, Any, Any] | None]
"""``differential(primitive, primals, slots)``: the result at concrete primals, and its derivative.

``slots`` are placeholders of tangents, ``None`` where zero. The derivative is one linear operation
and its operands, placeholders and values; or ``None`` and the placeholder of the only tangent that
goes through unchanged, or ``None`` for zero. ``None`` altogether: the JVP rule has to be applied.
"""


def with_differential(short: Differential) -> Callable[[T], T]:
    """Give a JVP rule a short form, which eager reverse mode takes instead.

    A subclass that overrides the rule so overrides both.
    """

    def attach(rule: T) -> T:
        vars(rule)["differential"] = short
        return rule

    return attach


def mapped_length(args: Sequence[Any], dims: Sequence[BatchDim]) -> int:
    """Length of the axis that a batch rule maps."""
    for arg, dim in zip(args, dims, strict=True):
        if dim is not None:
            return arg.shape[0]
    axis = mapped_axis()
    assert axis is not None, "something is mapped"
    return axis[1]


@dataclass_transform(frozen_default=True)
class Primitive:
    """Base class of all primitives.

    Subclasses are frozen dataclasses (those of this library are made so here), so that primitives
    with equal parameters are equal. Calling one binds it to arguments under the current trace.

    Example: issubclass(fg.extend.Composite, fg.extend.Primitive) -> True
    """

    name: str = ""
    multiple_results: ClassVar[bool] = False
    """Whether the operation returns a list of arrays instead of one array."""
    is_effectful: ClassVar[bool] = False
    """Whether equations must be kept, in order, even when nothing uses their results."""
    is_callback: ClassVar[bool] = False
    """Whether evaluation is a callback: a Python function that the user asked to be called."""
    is_composite: ClassVar[bool] = False
    """Whether evaluation consists in evaluating the operations of programs."""
    is_elementwise: ClassVar[bool] = False
    """Whether an element of the result depends on the corresponding elements of the operands."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__ and "name" not in annotations_of(cls):
            cls.name = _snake_case(cls.__name__)
        if is_own_module(cls.__module__):
            make_record(cls)

    def bind(self, *args: Value) -> Any:
        """Apply the operation under the current trace."""
        trace = current_trace()
        if trace is not EVAL or OBSERVED.computed:
            for arg in args:
                if type(arg) in MUTABLE_TYPES:
                    args = tuple(x.__jax_array__() if type(x) in MUTABLE_TYPES else x for x in args)
                    break
            return trace.process(self, args)
        for arg in args:
            if isinstance(arg, Tracer):
                raise_leaked(arg)
        return self.impl(*args)

    __call__ = bind

    # The six rules. A subclass defines, inherits or declares impossible each of them; it may write
    # ``impl(self, x, y)`` where ``*args`` stands here. Optional attributes are `Facet`s, declared
    # in the modules that read them.

    def impl(self, *args: Any, **_: Any) -> Any:
        """Evaluate with NumPy: the specification of the operation."""
        raise self.missing("evaluation")

    def abstract_eval(self, *avals: Any, **_: Any) -> Any:
        """Shape and dtype of the result (a list of avals if `multiple_results`)."""
        raise self.missing("abstract evaluation")

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """Result and tangent. Never called when all tangents are symbolic zeros.

        A rule may have a short form for primals that have values: see `with_differential`.
        """
        raise self.missing("differentiation")

    def transpose(self, *ct_and_args: Any, **_: Any) -> Sequence[Value | None]:
        """``transpose(ct, *args)``: cotangents of the arguments, ``None`` for residuals."""
        if not is_own_module(type(self).__module__):
            raise self.missing("transposition")
        raise MissingRuleError(
            f"{self.name} cannot be transposed, because it is not linear in this argument. "
            "linear_transpose needs a function that is linear in its arguments (use vjp for "
            "others), and rules of derivatives must be linear in the tangents."
        )

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        """Result and its batch dim (lists of them if `multiple_results`) for mapped arguments."""
        raise self.missing("batching")

    def lower(self, *avals: Any, **_: Any) -> Any:
        """Describe the computation of a kernel as data: a form of `funcgrad.lowering`."""
        raise self.missing("compilation")

    def missing(self, what: str, location: Location | None = None) -> MissingRuleError:
        """The error that says that a rule is declared not to exist.

        Args:
            what: The purpose of the rule, such as those of `RULES`.
            location: The user's line, by default that which is running.
        """
        kind = type(self)
        text = f"{self.name} has no rule for {what}."
        if is_own_module(kind.__module__) or what not in RULES:
            return MissingRuleError(
                f"{text} If this value does not need one, wrap the argument in "
                "funcgrad.stop_gradient, or give the enclosing function its own rule with "
                "funcgrad.custom_jvp."
            )
        lines = [text, *describe_location(location or current_location(), "at")]
        lines.append(
            f"Write a method of {kind.__module__}.{kind.__qualname__}:\n    def {RULES[what]}"
        )
        return MissingRuleError("\n".join(lines))

    def params(self) -> dict[str, Any]:
        """The static parameters, for printing."""
        declared: Any = self
        names = [f.name for f in fields(declared)] if is_dataclass(declared) else []
        return {name: getattr(self, name) for name in names if name != "name"}


RULES = {
    "evaluation": "impl(self, *args): ...  # the result, with NumPy",
    "abstract evaluation": "abstract_eval(self, *avals): ...  # the type of the result",
    "differentiation": "jvp(self, primals, tangents): ...  # the result and its tangent",
    "transposition": "transpose(self, ct, *args): ...  # a cotangent for each argument, or None",
    "batching": "batch(self, args, dims): ...  # the result and 0, its mapped axis",
    "compilation": (
        "lower(self, *avals): ...  # a form\n"
        "or `lower = funcgrad.extend.by_callback`, so that compiled programs call `impl`."
    ),
}
"""The purpose of each rule, and how a user writes it."""


def is_own_module(name: str) -> bool:
    """Whether a module of that name is one of this library's."""
    return name.partition(".")[0] == __name__.partition(".")[0]


def _snake_case(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(name))
