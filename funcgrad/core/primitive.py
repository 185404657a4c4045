"""The protocol of a primitive operation: one class, all of its rules.

A primitive is a frozen dataclass whose fields are its static parameters. Its methods are its
rules; families of primitives derive most of them. This file fixes the protocol and knows no
primitive.

Conventions, everywhere in funcgrad:

* A *symbolic zero* tangent or cotangent is ``None``; it is never a traced or allocated array.
* In `transpose`, an argument in which the operation is linear arrives as a `Linear`, which knows
  its aval and has no value; the other arguments are residuals and arrive as values.
* In `batch`, mapped arguments carry their batch axis in front (dim 0); others have dim ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Protocol

from funcgrad.base.signatures import annotated_names
from funcgrad.core.avals import ShapedArray
from funcgrad.core.axes import mapped_axis, mapping_axis
from funcgrad.core.number_code import NumberCode
from funcgrad.core.observers import Location, current_location, describe_location
from funcgrad.core.trace import current_trace
from funcgrad.errors import MissingRuleError

Value = Any
"""A concrete array or scalar, or a tracer."""

BatchDim = int | None


class LinearOperation(Protocol):
    """What a placeholder is computed by: an operation on placeholders and values."""

    @property
    def inputs(self) -> Sequence[Any]:
        """Its arguments: placeholders and values."""

    def out_aval(self) -> ShapedArray:
        """Type of its one result, when those of the inputs are known."""


class Linear:
    """Placeholder of an argument that an equation is linear in.

    Args:
        aval: Its abstract value, or the operation that it is the result of: then the type is found
            when it is first asked for (most backward passes never ask).
        index: Position of the value on its tape.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.extend.Linear(fg.extend.ShapedArray((3,), np.dtype(np.float64))).shape
        (3,)
    """

    __slots__ = ("_aval", "index")

    def __init__(self, aval: ShapedArray | LinearOperation, index: int = -1) -> None:
        self._aval = aval
        self.index = index

    @property
    def aval(self) -> ShapedArray:
        aval = self._aval
        return aval if type(aval) is ShapedArray else self._find_aval()

    def _find_aval(self) -> ShapedArray:
        """Find the type, after those of all placeholders that it follows from.

        There may be as many of them as the program is long, so they wait on a list of our own.
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
                pending.pop()._aval = made_by.out_aval()
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

    Args:
        argument: One of those that the rule gets.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.extend.is_linear(fg.extend.Linear(fg.extend.ShapedArray((), np.dtype(np.float64))))
        True
    """
    return type(argument) is Linear


def mapped_length(args: Sequence[Any], dims: Sequence[BatchDim]) -> int:
    """Length of the axis that a batch rule maps."""
    for arg, dim in zip(args, dims, strict=True):
        if dim is not None:
            size: int = arg.shape[0]
            return size
    axis = mapped_axis()
    assert axis is not None, "something is mapped"
    return axis[1]


class Primitive:
    """Base class of all primitives.

    Subclasses are frozen dataclasses, so that two primitives with equal parameters are equal.
    Calling a primitive binds it to its arguments under the current trace.

    Example:
        >>> import funcgrad as fg
        >>> issubclass(fg.extend.Composite, fg.extend.Primitive)
        True
    """

    name: str = ""
    multiple_results: ClassVar[bool] = False
    """Whether the operation returns a list of arrays instead of one array."""
    is_effectful: ClassVar[bool] = False
    """Whether equations must be kept, in order, even when nothing uses their results."""
    is_composite: ClassVar[bool] = False
    """Whether evaluation consists in evaluating the operations of programs."""
    is_elementwise: ClassVar[bool] = False
    """Whether an element of the result depends on the corresponding elements of the operands."""
    is_bilinear: ClassVar[bool] = False
    """Whether it is linear in each of two arguments, and zero where either is zero."""
    taylor_term: ClassVar[Callable[..., Any] | None] = None
    """The coefficient of a power in the Taylor series of the result, by a recurrence.

    ``taylor_term(k, out, args)``, where ``out(j)`` for ``j < k`` and ``arg(j)`` give coefficients,
    ``None`` for zeros. Without one it is derived from the JVP rule: see `transforms.taylor`.
    """
    taylor: ClassVar[Callable[..., Any] | None] = None
    """``taylor(args, order)``: series of the results of an operation that holds programs.

    Arguments and results are lists of coefficients from order 0, ``None`` for zeros; what has no
    series is a list of one.
    """
    calls_users: ClassVar[bool] = False
    """Whether it holds functions of the user's, which run later than they are traced."""
    may_run_forever: ClassVar[bool] = False
    """Whether it may not end on values that it was not meant for."""

    @property
    def may_refuse(self) -> bool:
        """Whether it raises for some integers among its arguments."""
        return False

    shows_progress: ClassVar[bool] = False
    """Whether it is a loop that Python runs in parts, to show how far it is."""
    agrees: ClassVar[bool | None] = None
    """What is known of the results in the processes along its axes: that they are equal (True),
    that they differ (False), or that they are equal where all arguments are (``None``)."""
    message_group: int = 0
    """The number of the group of messages that are sent as one, from 1; 0 if it is none of such."""
    at_numbers: ClassVar[Callable[..., tuple[Any, ...] | None] | None] = None
    """A short form of evaluation and JVP rule at Python's floats and float64 scalars.

    A method of one or two numbers that returns the result and a partial derivative for each of
    them: finite floats, a factor of the tangent each. ``None`` where it does not apply.
    """
    keeps_weak: bool = False
    """Whether the result of weak arguments is weak, as that of Python's own operators."""
    makes_no_nans: ClassVar[bool] = False
    """Whether a nan in the results was in the arguments, or is made by an operation inside."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__ and "name" not in annotated_names(cls):
            cls.name = _snake_case(cls.__name__)

    def bind(self, *args: Value) -> Any:
        """Apply the operation under the current trace."""
        return current_trace().process(self, args)

    __call__ = bind

    @property
    def callees(self) -> tuple[Any, ...]:
        """Functions of the user's that evaluation calls, and tracing does not."""
        return ()

    def as_message(self, group: int = 0, in_background: bool = False) -> Primitive | None:
        """The same operation, which only tells other processes of an array, told otherwise.

        Args:
            group: As of `message_group`: what arrays side by side give is side by side what each
                gives.
            in_background: Whether it only begins, and goes on while other things are computed.

        Returns:
            ``None`` if it does anything else, or cannot be told otherwise.
        """
        return None

    # The rules. A subclass gives, derives or declares impossible each of them. Those that take one
    # parameter per argument of the operation leave its number open here.

    def impl(self, *args: Any, **_: Any) -> Any:
        """Evaluate with NumPy: the specification of the operation."""
        raise self.missing("evaluation")

    def impl_inside_plan(self, *args: Any) -> Any:
        """Evaluate as a step of Python in a compiled program."""
        return self.impl(*args)

    def abstract_eval(self, *avals: Any, **_: Any) -> Any:
        """Shape and dtype of the result (a list of avals if `multiple_results`)."""
        raise self.missing("abstract evaluation")

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """Result and tangent. Never called when all tangents are symbolic zeros."""
        raise self.missing("differentiation")

    def linearize(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Any, Any]:
        """As `jvp`, where the tangents are only being recorded and have no values yet.

        Primitives that hold programs override it, so that primal results are computed first and
        the tangents become an equation of their own.
        """
        return self.jvp(primals, tangents)

    def separate(self, args: Sequence[Value], is_linear: Sequence[bool]) -> list[Value] | None:
        """Results, where some arguments have no values yet and are passed on linearly.

        Primitives that hold programs override it, so that results which do not depend on such
        arguments get their values, and the others become an equation of their own. ``None`` where
        there is nothing to be told apart: the operation then becomes one equation as it is.
        """
        return None

    def checked(self, args: Sequence[Value], kinds: frozenset[str]) -> tuple[Any, Sequence[Any]]:
        """Evaluate, and look for what can be wrong (`funcgrad.core.checks`), but nans in results.

        Primitives that look for something of their own override it, and so do those that hold
        programs in which something may be looked for.

        Args:
            args: The arguments.
            kinds: What is looked for.

        Returns:
            The results, and what may be wrong: each a `Fault`, or a failure of a program inside.
        """
        return self.bind(*args), ()

    def linear_parts(
        self, is_linear: tuple[bool, ...]
    ) -> list[tuple[Any, tuple[bool, ...]]] | None:
        """Programs, and which of their inputs they have to be linear in for the operation to be.

        ``None`` where the operation holds no programs, or is not linear whatever these are.
        """
        return None

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

    @property
    def thread_limit(self) -> int | None:
        """The most threads that evaluation may use; ``None`` for no limit of its own."""
        return None

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        """Names of the mapped axes along which the operation itself works."""
        return ()

    def batch_named(
        self, args: Sequence[Value], dims: Sequence[BatchDim], size: int, axis_name: Hashable
    ) -> tuple[Any, Any]:
        """As `batch`, along an axis whose name the operation or one of its programs uses.

        There need not be a mapped argument. Programs are mapped under the name.
        """
        with mapping_axis(axis_name, size):
            return self.batch(args, dims)

    def lower(self, *avals: Any, **_: Any) -> Any:
        """What a kernel computes, as data: a form of `funcgrad.lowering`."""
        raise self.missing("compilation")

    def refusal(self, operand: int, value: int, position: int, *avals: Any, **_: Any) -> Exception:
        """The error of a kernel that met an index out of bounds, or a negative count.

        Args:
            operand: Which of the index arrays of the form, or of its arguments, counted from 0.
            value: The index; a negative number for a count.
            position: Its row-major number in the array; -1 where that is not known.
            avals: Types of the arguments of the operation.
        """
        raise self.missing("refused indices")

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

    @property
    def number_code(self) -> NumberCode | None:
        """The rule for numbers as text, if operators are to be written of it."""
        return None

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
