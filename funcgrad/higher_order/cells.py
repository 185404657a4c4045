"""Cells: what holds a value that changes, seen from inside of transformations.

A cell belongs to the trace inside of which it was made, and holds a value of that trace or of one
around it. Traces that compute at once need nothing more: who writes replaces the value, and rules
never meet a cell. A function that is traced to a program sees a cell of outside as one more input,
and what it leaves there as one more result (`StageTrace.state_of`). Loops, branches and compiled
calls hand the content over and put back what comes out, under the trace in which they were called,
which may be one that is staged itself. So programs are as pure as ever, and neither their
transformations nor the compiler know of cells.

``f with cells : a -> b   becomes   (contents, a) -> (contents, b)``
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.observers import Location, current_location, describe_location
from funcgrad.core.program import Program, Var
from funcgrad.core.trace import Trace, Tracer, current_trace
from funcgrad.errors import ArgumentError, UnexpectedTracerError
from funcgrad.primitives.objects import unwrapped
from funcgrad.transforms.stage import CellState, StageTrace


class Cell:
    """Mutable holder of an array, which may be replaced by another one of the same type.

    Args: value: Array or tracer of the current trace.

    Attributes:
        inside: Type of the array.
        owner: The trace inside of which the cell was made.
    """

    __slots__ = ("_made_at", "_refusal", "_value", "inside", "is_shared", "owner")

    def __init__(self, value: Any) -> None:
        self.inside = aval_of(value).strong()
        self.owner: Trace = current_trace()
        self._value = value
        self.is_shared = True
        """Whether others may refer to the array, so that it must not be written into."""
        self._refusal: str | None = None
        self._made_at = current_location()

    @property
    def aval(self) -> ShapedArray:
        """Attribute that functions of arrays ask for."""
        self.refuse_as_array()

    def refuse_as_array(self, what: str = "") -> NoReturn:
        """Raise the error for a place where an array is needed."""
        raise self.misuse(
            f"{what}{what and ': '}a reference to {self.inside} is no array, and one is needed "
            "here.",
            "Read it: ref[...]. References themselves may be closed over, and passed to jit, vmap, "
            "checkpoint, cond, switch, to scan as xs, and to grad where it does not differentiate; "
            "loops do not carry them, only vjp takes derivatives by them, and nothing that is "
            "transformed returns them: return ref[...].",
        )

    def misuse(self, problem: str, *lines: str) -> ArgumentError:
        """An error that says what was done to the cell, where, and where it was made."""
        return ArgumentError(_text(problem, self._made_at, *lines))

    def home(self) -> Trace:
        """The trace that keeps the content now: the owner, or a program that is being traced."""
        refusal = self._refusal or _passed.get().get(id(self))
        if refusal is not None:
            raise self.misuse(f"a reference to {self.inside} {refusal}")
        trace, owner = current_trace(), self.owner
        if not owner.is_live:
            self._refuse_escaped(f"{owner.what}, which made it, has returned")
        while trace is not owner:
            if isinstance(trace, StageTrace):
                if trace.cells is None:
                    self._refuse_uncarried(trace)
                return trace
            if trace.parent is None:
                self._refuse_escaped(f"{owner.what}, which made it, is not around this")
            trace = trace.parent
        return trace

    def content(self) -> Any:
        """The array in it; who takes it must not write into it."""
        home = self.home()
        if home is not self.owner:
            assert isinstance(home, StageTrace)
            return home.state_of(self, self.inside).now
        self.is_shared = True
        return self._value

    def put(self, value: Any, what: str) -> None:
        """Replace the array.

        Args:
            value: An array, or a tracer, of the same type.
            what: What does it, for messages.
        """
        home = self.home()
        if isinstance(value, Tracer):
            self._check_owner(value, home, what)
        else:
            value = np.asarray(value, self.inside.dtype)
        if home is not self.owner:
            assert isinstance(home, StageTrace)
            home.state_of(self, self.inside).now = value
            return
        self._value, self.is_shared = value, True

    def end(self, refusal: str) -> Any:
        """Return the array, and close the cell.

        Args: refusal: What messages say from now on.
        """
        home = self.home()
        if home is not self.owner:
            raise self.misuse(
                f"a reference to {self.inside} was made outside of {home.what}, inside "
                f"{self.owner.what}, and cannot end inside.",
                "Freeze it where it was made; inside, read it: ref[...].",
            )
        value, self._value = self._value, None
        self._refusal = refusal
        return value

    def _check_owner(self, value: Tracer, home: Trace, what: str) -> None:
        """Raise for a value that ends before the cell does."""
        trace: Trace | None = home
        while trace is not None and trace is not value.owner:
            trace = trace.parent
        if trace is None:
            inner = value.owner.what
            mapped = inner.startswith("vmap(")
            raise UnexpectedTracerError(
                _text(
                    f"`{what}` would put a traced {value.aval} of {inner} into a reference of "
                    f"outside of it, made inside {self.owner.what}: the value would leak.",
                    self._made_at,
                    "The values differ from lane to lane, and the reference holds one: pass it as "
                    "an argument with an axis for the lanes, vmap(f)(x, ref), or return the value."
                    if mapped
                    else "Make the reference inside, return the value (grad passes extra results "
                    "through has_aux), or write stop_gradient of a value that is known outside.",
                )
            )

    def _refuse_escaped(self, why: str) -> NoReturn:
        raise UnexpectedTracerError(
            _text(
                f"a reference to {self.inside} has escaped: it was used, but {why}.",
                self._made_at,
                "References end with the function inside of which they were made: return ref[...].",
            )
        )

    def _refuse_uncarried(self, trace: StageTrace) -> NoReturn:
        raise self.misuse(
            f"a reference to {self.inside}, made inside {self.owner.what}, is used inside "
            f"{trace.what}, which knows no references of outside.",
            "Pass its value, ref[...], as an argument, and return what is to be written.",
        )


def _text(problem: str, made_at: Location | None, *lines: str) -> str:
    """A message: what is wrong, the user's line, where the cell was made, and what to do."""
    where = describe_location(current_location(), "at") + describe_location(made_at, "made at")
    return "\n".join([problem, *where, *lines])


_passed: ContextVar[Mapping[int, str]] = ContextVar(
    "funcgrad_passed_cells", default=MappingProxyType({})
)
"""Cells that are arguments of calls around, by identity, and what is said if they are used."""


@contextmanager
def passing_cells(cells: Sequence[Cell], what: str) -> Iterator[list[Any]]:
    """The contents of cells that are arguments of a call, during which nothing else uses them."""
    contents = [cell.content() for cell in cells]
    passed: dict[int, str] = {}
    for cell in cells:
        if id(cell) in passed:
            raise cell.misuse(
                f"{what} got the same reference to {cell.inside} twice.",
                "Pass it once: changes of one argument would not be seen in the other.",
            )
        passed[id(cell)] = (
            f"is an argument of {what}, and is used otherwise while that runs: the function also "
            "closes over it. Use the argument."
        )
    token = _passed.set({**_passed.get(), **passed})
    try:
        yield contents
    finally:
        _passed.reset(token)


Rows = Sequence[tuple[int, type[Cell]]]
"""Positions of the cells among flat arguments, and their classes."""


def rows_of(leaves: Sequence[Any]) -> Rows:
    """The cells among flat arguments."""
    return [(i, type(x)) for i, x in enumerate(leaves) if isinstance(x, Cell)]


def fill_cells(leaves: list[Any], rows: Rows) -> list[Cell]:
    """Put new cells around the values in the places of cells; these are returned."""
    made = []
    for i, kind in rows:
        leaves[i] = kind(unwrapped(leaves[i]))
        made.append(leaves[i])
    return made


def arranged(
    program: Program,
    n_captured: int,
    held: Sequence[CellState],
    given: Sequence[Cell],
    left: Sequence[Cell],
) -> Program:
    """A program with contents of cells as inputs after the captured ones, and as leading outputs.

    Args:
        program: Its inputs are captured values, the contents of all cells it met, and arguments.
        n_captured: Number of captured values.
        held: The cells that it met.
        given: Cells whose contents are to be inputs, in this order.
        left: Cells whose final contents are to be outputs, in this order; all are in ``given``.
    """
    if not held and not given:
        return program
    known = {id(h.cell): h for h in held}
    inputs = [known[id(c)].var if id(c) in known else Var(c.inside) for c in given]
    names = {id(c): var for c, var in zip(given, inputs, strict=True)}
    finals = [known[id(c)].final or names[id(c)] if id(c) in known else names[id(c)] for c in left]
    captured = program.inputs[:n_captured]
    arguments = program.inputs[n_captured + len(held) :]
    return Program(
        [*captured, *inputs, *arguments],
        program.equations,
        [*finals, *program.outputs],
        program.name,
        program.constants,
    )
