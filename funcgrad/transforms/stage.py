"""Staging: from a Python function to a program.

``stage : (a -> b), type of a -> Program (a -> b)``

Every primitive that is applied while the function runs becomes an equation, also those without
traced arguments, so that random and large arrays are computed when the program runs. Traced values
that the function closes over become leading inputs of the program, concrete arrays its constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of, check_size
from funcgrad.core.observers import OBSERVED, Location, describe_location, enclosed, report_end
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Literal, Program, Var
from funcgrad.core.trace import Trace, Tracer, current_trace, raise_leaked, run_under


class StageTracer(Tracer):
    """A name in a program under construction.

    Args:
        trace: The program.
        var: The name.
        source: The user's line, or a description of an input.
    """

    __slots__ = ("atom", "aval", "source")
    aval: ShapedArray
    owner: StageTrace

    def __init__(self, trace: StageTrace, var: Var, source: Location | str | None) -> None:
        self.owner = trace
        self.atom = var
        self.aval = var.aval
        self.source = source

    def origin(self) -> list[str]:
        if isinstance(self.source, str):
            return [f"  from          {self.source}"]
        return describe_location(self.source, "computed at")


class CellState:
    """State of a captured cell in a program under construction (`funcgrad.higher_order.cells`).

    Args:
        cell: The cell: a mutable variable outside of the staged function.
        given: Its content when the program starts, an input of the program.

    Attributes:
        now: Its present content.
        var: The name of that input.
        final: Its content when the program ends; ``None`` if unchanged.
    """

    __slots__ = ("cell", "final", "given", "now", "var")

    def __init__(self, cell: Any, given: StageTracer) -> None:
        self.cell = cell
        self.given: Any = given
        self.now: Any = given
        self.var = given.atom
        self.final: Atom | None = None

    @property
    def is_changed(self) -> bool:
        return self.now is not self.given

    def finish(self, trace: StageTrace) -> None:
        """Record the final content, and drop the references to tracers."""
        if self.is_changed:
            self.final = trace.atom(self.now)
        self.given = self.now = None


_FLOATS = float, np.float64, np.float32
"""Types of numbers of which only zeros are equal and not the same."""

_literal: Callable[[Any], Literal] = lru_cache(4096, typed=True)(Literal)
"""Literals of numbers that equal no others, shared: unrolled loops repeat them."""


class StageTrace(Trace):
    """Records equations.

    Args:
        parent: The trace in which the staged function was called; its values become inputs.
        what: How messages call the function that is staged, such as ``jit(step)``.

    Attributes:
        cells: Captured cells by identity; ``None`` if the caller does not support captured cells.
        takes_arrays: Whether captured arrays, also those without axes, become leading inputs among
            the traced values instead of constants.
        is_searched: Whether loops will be found in the program, so that single elements are read
            and assigned by one equation each (`funcgrad.higher_order.elements`).
    """

    __slots__ = ("captured", "cells", "equations", "inputs", "is_searched", "takes_arrays")

    def __init__(self, parent: Trace, what: str) -> None:
        super().__init__(parent, what)
        self.is_staged = True
        self.takes_arrays = False
        self.is_searched = False
        self.cells: dict[int, CellState] | None = None
        self.equations: list[Equation] = []
        self.inputs: list[Var] = []
        self.captured: dict[int, tuple[Var, Any]] = {}

    def new_input(self, aval: ShapedArray, name: str) -> StageTracer:
        check_size(name, aval.shape, aval.dtype)
        var = Var(aval)
        self.inputs.append(var)
        return StageTracer(self, var, name)

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        inputs = [
            a.atom if type(a) is StageTracer and a.owner is self else self.atom(a) for a in args
        ]
        avals = [a.aval for a in inputs]
        result = primitive.abstract_eval(*avals)
        source = OBSERVED.locate()
        if primitive.multiple_results:
            for aval in result:
                check_size(primitive.name, aval.shape, aval.dtype)
            outputs = [Var(aval) for aval in result]
            self.equations.append(Equation(primitive, inputs, outputs, source))
            return [StageTracer(self, var, source) for var in outputs]
        if not avals or (result is not avals[0] and result is not avals[-1]):
            check_size(primitive.name, result.shape, result.dtype)
        out = Var(result)
        self.equations.append(Equation(primitive, inputs, (out,), source))
        return StageTracer(self, out, source)

    def atom(self, value: Any) -> Atom:
        """The name or literal that stands for a value in the program."""
        if type(value) is StageTracer and value.owner is self:
            return value.atom
        if isinstance(value, Tracer):
            if not value.owner.is_live:
                raise_leaked(value)
        elif not isinstance(value, np.ndarray):
            is_shared = type(value) is np.int64 or (type(value) in _FLOATS and value)
            return _literal(value) if is_shared else Literal(value)
        elif value.ndim == 0 and not self.takes_arrays:
            x = value[()]  # a subclass may convert its scalars to single precision
            return Literal(x if x.dtype == value.dtype else value.view(np.ndarray)[()])
        known = self.captured.get(id(value))
        if known is None:
            known = self.captured[id(value)] = (Var(aval_of(value)), value)
        return known[0]

    def state_of(self, cell: Any, aval: ShapedArray) -> CellState:
        """Return the state of a captured cell, whose content becomes an input."""
        assert self.cells is not None
        found = self.cells.get(id(cell))
        if found is None:
            given = StageTracer(self, Var(aval), f"a reference to {aval}")
            found = self.cells[id(cell)] = CellState(cell, given)
        return found

    def end_cells(self) -> list[CellState]:
        """Return the captured cells; later ones are refused."""
        cells, self.cells = list((self.cells or {}).values()), None
        for cell in cells:
            cell.finish(self)
        return cells

    def program(
        self, outputs: Sequence[Any], name: str, cells: Sequence[CellState] = ()
    ) -> tuple[Program, list[Any]]:
        """The finished program and the values of its leading inputs, before those of cells."""
        atoms = [self.atom(x) for x in outputs]
        traced: list[tuple[Var, Any]] = []
        constants: list[tuple[Var, Any]] = []
        for var, x in self.captured.values():
            into = traced if self.takes_arrays or isinstance(x, Tracer) else constants
            into.append((var, x))
        inputs = [*(var for var, _ in traced), *(cell.var for cell in cells), *self.inputs]
        program = Program(inputs, self.equations, atoms, name, constants)
        return program, [value for _, value in traced]


def stage(
    function: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    name: str,
    what: str | None = None,
    argument_names: Sequence[str] | None = None,
) -> tuple[Program, list[Any]]:
    """Trace ``function`` of flat arguments, which returns a flat list, to a program.

    Args:
        function: Called once, with one tracer per aval.
        avals: Types of the arguments.
        name: Name of the program.
        what: How messages call the transformation; by default ``jit(name)``.
        argument_names: How messages call the arguments.
    Returns: The program, and the traced values that the function closed over, which are the
        program's leading inputs.
    """
    what = what or f"jit({name})"
    return stage_with_cells(function, avals, name, what, argument_names, allows_cells=False)[:2]


def stage_with_cells(
    function: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    name: str,
    what: str,
    argument_names: Sequence[str] | None = None,
    allows_cells: bool = True,
    is_searched: bool = False,
) -> tuple[Program, list[Any], list[CellState]]:
    """Stage a function that may read and change captured cells (see `stage`).

    A cell is a mutable variable outside of the function, such as a writable array or a reference.
    The contents of cells are inputs between the captured values and the arguments; their final
    contents are not yet outputs (`funcgrad.higher_order.cells.arranged` adds them). Cells are not
    supported where ``allows_cells`` is false. Where ``is_searched``, loops have to be found next.
    """
    trace = StageTrace(current_trace(), what)
    trace.is_searched = is_searched
    trace.cells = {} if allows_cells else None
    names = argument_names or [f"argument {i} of {name}, {a}" for i, a in enumerate(avals)]
    tracers = [trace.new_input(a, n) for a, n in zip(avals, names, strict=True)]
    with enclosed(OBSERVED.tracing, trace.what):
        outputs = list(run_under(trace, function, *tracers))
    cells = trace.end_cells()
    program, captured = trace.program(outputs, name, cells)
    del tracers, outputs
    report_end(trace)
    return program, captured, cells
