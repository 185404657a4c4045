"""A function at a point, as rules see it: its operations in a line, and every operation as it runs.

Some rules read the *record*: the operations in order with all intermediate values, in which loops
and branches are single operations. Others watch *steps*: every operation that is evaluated or
differentiated, in loops, branches, checkpoints and rules of the user's, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any

import numpy as np

from funcgrad import lowering
from funcgrad.api.differentiation import jvp, vjp
from funcgrad.base.forking import cached_property
from funcgrad.base.pytree import tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.base.transformed import MadeOf
from funcgrad.core.avals import aval_of
from funcgrad.core.observers import Observer, attach, detach
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Equation, Var
from funcgrad.core.trace import Tracer
from funcgrad.diagnostics.record import Record, record
from funcgrad.errors import ArgumentError, MissingRuleError
from funcgrad.higher_order.jit import stepwise
from funcgrad.higher_order.lanes import subprograms
from funcgrad.linting.sides import direction, distance, jumps, moved
from funcgrad.observers.source import FORWARD, SourceLocation, current_location
from funcgrad.primitives.objects import flatten_held

FARTHEST = 2.0**-8
"""The longest step beside a point, in units of the numbers: farther away are kinks of others."""

_DOUBLE = 1e-15
"""The precision from which on a sum of results keeps the jump of one."""

LOOPS = frozenset({"scan", "fori_loop", "while_loop", "map"})
"""Functions whose body is traced once for all its rounds, as observers call them."""


Derivative = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


@dataclass(frozen=True)
class Step:
    """An operation that was evaluated, or differentiated.

    Attributes:
        primitive: The operation.
        operands: Its arguments.
        results: Its results; none where it was differentiated.
        location: The user's line, if it is known.
        loop: The loop whose body is being traced, if the operation is evaluated once for all its
            rounds.
    """

    primitive: Primitive
    operands: tuple[Any, ...]
    results: tuple[Any, ...]
    location: SourceLocation | None
    loop: str | None = None


class Subject:
    """A function with arguments.

    Args:
        f: The function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.

    Attributes:
        record: Its operations in a line.
        active: The floating ones of its arguments.
    """

    def __init__(self, f: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.record: Record = record(f, args, kwargs, "lint")
        self.leaves, self.tree = flatten_held((args, kwargs))
        self.active = [x for x in self.leaves if aval_of(x).dtype.kind in "fc"]

    @cached_property
    def code(self) -> CodeType | None:
        """The code of the user's function, below transformations."""
        f: Any = self.f
        while isinstance(f, MadeOf):
            f = f.original
        return getattr(f, "__code__", None)

    def evaluations(self, look: Callable[[Step], None]) -> None:
        """Run the function step by step, and show every operation that is evaluated."""
        with _watched(_Evaluations(look)):
            record(self.f, self.args, self.kwargs, "lint")

    def derivatives(self, look: Callable[[Step], None]) -> None:
        """Differentiate the function step by step, and show every operation that has a derivative.

        All floating results are differentiated with respect to all floating arguments.
        """
        if self.active:
            with _watched(_Derivatives(look)):
                vjp(self.floating, *self.active)

    def floating(self, *values: Any) -> list[Any]:
        """The floating results, of values in the place of the floating arguments."""
        given, rest = [], iter(values)
        for x in self.leaves:
            given.append(next(rest) if aval_of(x).dtype.kind in "fc" else x)
        args, kwargs = tree_unflatten(self.tree, given)
        results = flatten_held(self.f(*args, **kwargs))[0]
        return [x for x in results if aval_of(x).dtype.kind in "fc"]

    @cached_property
    def has_jump(self) -> bool:
        """Whether the derivative differs on both sides of the arguments, however near they are."""
        return any(any(map(jumps, *sides)) for _, *sides in self._surroundings())

    @cached_property
    def has_break(self) -> bool:
        """Whether the derivative is not finite at the arguments, or not what it is beside them."""
        for here, near, back, far, last in self._surroundings():
            if not _are_finite(here):
                return True
            rows = ((near, back, far, last), (here, near, near, far), (here, back, back, last))
            if any(any(map(jumps, *row)) for row in rows):
                return True
        return False

    def _surroundings(self) -> Iterator[list[list[Any]]]:
        """The derivative at the arguments, on two sides of them, and there 16 times farther away.

        The derivative along a direction is of each result by itself. The gradient is of each
        argument by itself, so that no jump is lost in a sum, as it may be in single precision.
        """
        if not self.active:
            return
        is_single = any(np.finfo(aval_of(x).dtype).eps > _DOUBLE for x in self.active)
        with stepwise(False):  # loops run compiled, many times
            for derivative in (self._tangents, self._gradient):
                try:
                    yield from self._beside(derivative)
                except (MissingRuleError, ArgumentError):  # a rule that goes one way only
                    continue
                if not is_single:
                    return

    def _beside(self, derivative: Derivative) -> Iterator[list[list[Any]]]:
        generic = [direction(x, i) for i, x in enumerate(self.active)]
        # Arguments may be at an end of what the function takes, which mostly is 0.
        inside = [np.where(x == 0, 0, d) for x, d in zip(self.active, generic, strict=True)]
        # An intermediate result may move less than its rounding, so steps get longer.
        longest = max(map(distance, self.active))
        scales = [scale for scale in (1, 1 << 3, 1 << 8, 1 << 16) if scale * longest < FARTHEST]
        for directions in (generic, inside):
            here = derivative(self.active, directions)
            are_finite = True
            for scale in scales:
                places = (scale, -scale, 16 * scale, -16 * scale)
                try:
                    sides = [self._at(derivative, directions, times) for times in places]
                except np.linalg.LinAlgError:  # there is no value so far from the arguments
                    break
                are_finite &= all(map(_are_finite, sides))
                yield [here, *sides]
            if are_finite:
                return

    def _at(self, derivative: Derivative, directions: Sequence[Any], times: int) -> list[Any]:
        rows = zip(self.active, directions, strict=True)
        return derivative([moved(x, d, times) for x, d in rows], directions)

    def _tangents(self, values: Sequence[Any], directions: Sequence[Any]) -> list[Any]:
        """The derivatives of the floating results along directions."""
        _, dots = jvp(self.floating, tuple(values), tuple(directions))
        return list(dots)

    def _gradient(self, values: Sequence[Any], directions: Sequence[Any]) -> list[Any]:
        """The derivative of a sum of the floating results with fixed weights."""
        results, pull = vjp(self.floating, *values)
        weights = np.random.default_rng(0)
        return list(pull([weights.uniform(1, 2, np.shape(x)).astype(x.dtype) for x in results]))

    def reached(self) -> set[Var]:
        """Names in the record that a result depends on."""
        found = {atom for atom in self.record.outputs if isinstance(atom, Var)}
        for equation in reversed(self.record.equations):
            if equation.primitive.is_effectful or not found.isdisjoint(equation.outputs):
                found.update(atom for atom in equation.inputs if isinstance(atom, Var))
        return found


def is_within(inner: CodeType, outer: CodeType | None) -> bool:
    """Whether code is that of a function, or of one that is defined in it."""
    if outer is None or inner is outer:
        return inner is outer
    return any(isinstance(x, CodeType) and is_within(inner, x) for x in outer.co_consts)


def _are_finite(values: Sequence[Any]) -> bool:
    return all(np.isfinite(x).all() for x in values)


def sources_within(equation: Equation) -> Iterator[SourceLocation]:
    """The lines of the body of a loop, or of branches."""
    for program in subprograms(equation.primitive):
        for inner in program.equations:
            if inner.source is not None:
                yield inner.source
            yield from sources_within(inner)


def form_of(equation: Equation) -> Any:
    """The form of an operation; ``None`` if it cannot be compiled."""
    try:
        return lowering.form_of(equation)
    except MissingRuleError:
        return None


class _Evaluations(Observer):
    def __init__(self, look: Callable[[Step], None]) -> None:
        self.look = look
        self.is_looking = False
        self.rounds: list[str] = []

    def evaluating(self, operation: str) -> Any:
        return np.errstate(all="ignore")

    @contextmanager
    def tracing(self, what: str) -> Iterator[None]:
        self.rounds.append(what)
        try:
            yield
        finally:
            self.rounds.pop()

    def computed(
        self, operation: str, operands: Sequence[Any], results: Sequence[Any], primitive: Any
    ) -> None:
        if primitive is not None and operation == primitive.name:
            self.show(primitive, operands, results)

    def show(self, primitive: Any, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Let a rule look, which may evaluate operations itself."""
        if self.is_looking:
            return
        self.is_looking = True
        try:
            with np.errstate(all="ignore"):
                loop = next((w for w in self.rounds if w.partition("(")[0] in LOOPS), None)
                place = _line()
                self.look(Step(primitive, tuple(operands), tuple(results), place, loop))
        finally:
            self.is_looking = False


def _line() -> SourceLocation | None:
    """The user's line, in whatever phase."""
    place = current_location()
    return None if place is None else place.in_phase(FORWARD)


class _Derivatives(_Evaluations):
    """Shows what is differentiated.

    Bodies of loops are differentiated without values, and evaluated later: there an operation is
    shown that was differentiated at the same line.
    """

    def __init__(self, look: Callable[[Step], None]) -> None:
        super().__init__(look)
        self.inner: set[Any] = set()

    def computed(
        self, operation: str, operands: Sequence[Any], results: Sequence[Any], primitive: Any
    ) -> None:
        if primitive is None or self.is_looking:
            return
        place = (primitive, _line())
        if operation == primitive.name:
            if place in self.inner:
                self.show(primitive, operands, ())
        elif operation in (
            f"the derivative of {primitive.name}",
            f"the tangent of {primitive.name}",
        ):
            if operation.startswith("the tangent"):  # its operands are followed by their tangents
                operands = operands[: len(operands) // 2]
            if any(isinstance(x, Tracer) for x in operands):
                self.inner.add(place)
            else:
                self.show(primitive, operands, ())


@contextmanager
def _watched(observer: Observer) -> Iterator[None]:
    attach(observer)
    try:
        with stepwise(), np.errstate(all="ignore"):
            yield
    finally:
        detach(observer)
