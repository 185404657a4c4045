"""A function at a point, as rules see it: its operations in a line, and every operation as it runs.

Some rules read the *record*: the operations in order with all intermediate values, in which loops
and branches are single operations. Others watch *steps*: every operation that is evaluated or
differentiated, in loops, branches, checkpoints and rules of the user's, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from funcgrad import lowering
from funcgrad.api.differentiation import vjp
from funcgrad.base.forking import cached_property
from funcgrad.base.pytree import tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.core.avals import aval_of
from funcgrad.core.observers import Observer, attach, detach
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Equation, Var
from funcgrad.core.trace import Tracer
from funcgrad.diagnostics.record import Record, record
from funcgrad.errors import MissingRuleError
from funcgrad.higher_order.jit import stepwise
from funcgrad.linting.sides import direction, distance, jumps, moved
from funcgrad.observers.source import FORWARD, SourceLocation, current_location
from funcgrad.primitives.objects import flatten_held

FARTHEST = 2.0**-8
"""The longest step beside a point, in units of the numbers: farther away are kinks of others."""

LOOPS = frozenset({"scan", "fori_loop", "while_loop", "map"})
"""Functions whose body is traced once for all its rounds, as observers call them."""


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
        if not self.active or any(aval_of(x).dtype.kind == "c" for x in self.active):
            return False
        directions = [direction(x, i) for i, x in enumerate(self.active)]
        # An intermediate result may move less than its rounding, so steps get longer.
        longest = max(map(distance, self.active))
        scales = [scale for scale in (1, 1 << 3, 1 << 8, 1 << 16) if scale * longest < FARTHEST]
        return any(self._jumps_at(scale, directions) for scale in scales)

    def _jumps_at(self, scale: int, directions: Sequence[Any]) -> bool:
        sides = []
        for times in (scale, -scale, 16 * scale, -16 * scale):
            rows = zip(self.active, directions, strict=True)
            sides.append(self._gradient([moved(x, d, times) for x, d in rows]))
        return any(map(jumps, *sides))

    def _gradient(self, values: Sequence[Any]) -> list[Any]:
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
        elif operation == f"the derivative of {primitive.name}":
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
