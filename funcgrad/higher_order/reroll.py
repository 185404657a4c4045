"""Re-rolling: loops that Python has unrolled become scans again.

``reroll : Program -> Program``

A loop that runs while a function is traced leaves the equations of its body once per iteration.
Here such runs (`funcgrad.higher_order.runs`) become one `Scan` each. An operand of the body is

- made in the same iteration: a value of the body;
- made a fixed number of iterations before: a carried value;
- the same in all iterations: a constant of the scan;
- a scalar that is written into the program, or the place of a window: a function of the counter if
  it grows by equal steps, else an element of a table;
- something else of every iteration: an element of an array that is scanned.

Results that are read behind the loop are the last carried values, or outputs that are stacked. The
body is re-rolled in turn, so nested loops are found from the outside inwards. Operations stay what
they were, in the same order, so that results keep their bits. All of this happens before a program
is differentiated, batched or compiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from funcgrad.base import environment
from funcgrad.base.dialect import NUMPY, dialect
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.facets import Facet
from funcgrad.core.program import Atom, Equation, Literal, Program, Var, evaluate
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.dtypes import INT64
from funcgrad.higher_order import loop_body, runs, turns
from funcgrad.higher_order.bounded import Places
from funcgrad.higher_order.cells import arranged
from funcgrad.higher_order.elements import spelled_out
from funcgrad.higher_order.extents import Extent, Extents, Handling, read_window
from funcgrad.higher_order.scan import Scan
from funcgrad.higher_order.unordered import unordered
from funcgrad.higher_order.widening import widened
from funcgrad.lowering import Reshape as ReshapeForm
from funcgrad.lowering import form_of
from funcgrad.observers.source import stands_for
from funcgrad.passes.repeats import Integers
from funcgrad.primitives.elementwise import Convert
from funcgrad.primitives.families import zeros_like_aval
from funcgrad.transforms.programs import stage_closed
from funcgrad.transforms.stage import stage_with_cells

_ROUNDS = 4
"""How often a program is searched: loops around loops that were found become visible."""

of_rows: Facet[Callable[[Any], Any] | None] = Facet("of_rows", None)
"""``of_rows(rows)``: the result for all rows of an array as the arguments, among which it may take
their place."""

_COUNTER = ("counter",)
"""Stands for the carried value that counts iterations."""

_TRACED = object()
"""Stands for a result that a program computes."""

_reroll: ContextVar[bool] = ContextVar(
    "funcgrad_reroll", default=(environment.text("FUNCGRAD_REROLL") or "1") != "0"
)

is_rerolling = _reroll.get
"""Whether loops of functions that are traced now are found."""


@contextmanager
def reroll_loops(enable: bool = True) -> Iterator[None]:
    """Find, within a block, the loops of functions that are traced, or leave them unrolled.

    A Python loop leaves the operations of every iteration in the program. From some hundred
    operations on they become one `lax.scan` again, wherever iterations differ by indices, scalars
    and by the values that they carry. Results keep their bits.

    Where they are found, loops whose steps do not wait for each other, also those that are written
    as `lax.map` or `lax.fori_loop`, become operations on arrays when they are compiled.

    A compiled function keeps the program that it has for the types of its arguments.

    The environment variable ``FUNCGRAD_REROLL=0`` leaves them unrolled in a whole process.

    Args:
        enable: Whether to find them; the default outside of blocks.

    Example:
        >>> def f(x):
        ...     for _ in range(1000):
        ...         x = np.sin(x)
        ...     return x
        >>> len(fg.make_jaxpr(f)(1.0).eqns) < 5
        True
        >>> with fg.reroll_loops(False):
        ...     len(fg.make_jaxpr(f)(1.0).eqns)
        1000
    """
    token = _reroll.set(enable)
    try:
        yield
    finally:
        _reroll.reset(token)


def reroll(
    program: Program, least: int = runs.LEAST_SAVED, least_of_arrays: int = runs.LEAST_SAVED
) -> Program:
    """The program with its repeats as scans; the same object if there are none.

    Args:
        program: As traced.
        least: How many equations a loop must save.
        least_of_arrays: The same for loops of many iterations on arrays, no more.
    """
    least_of_arrays = min(least, least_of_arrays)
    if not is_rerolling() or not runs.may_repeat(program, least_of_arrays):
        return spelled_out(program)
    bodies: dict[Any, Program] = {}
    for _ in range(_ROUNDS):
        search, families = _best_search(runs.Search(program, least, least_of_arrays))
        if not families:
            break
        shorter = _Rewriting(search, families, bodies).program()
        if len(shorter.equations) >= len(program.equations):
            break
        program = shorter
    return spelled_out(program)


def _best_search(search: runs.Search) -> tuple[runs.Search, list[runs.Family]]:
    """A search and what it finds, or that for loops of any lengths, if one of these is longer.

    Inside of a loop whose lengths differ, there may be loops of equal ones, which are found later.
    """
    families = search.families()
    ragged = search.loosened()
    if ragged is None:
        return search, families
    found = ragged.families()
    if max((f.saved for f in found), default=0) > max((f.saved for f in families), default=0):
        return ragged, found
    return search, families


def rerolled(
    function: Callable[..., Sequence[Any]], args: Sequence[Any], what: str
) -> Callable[..., Sequence[Any]]:
    """The function that is to be differentiated, as its program where that is staged anyway.

    So its loops are differentiated as scans. Elsewhere it is the same object.

    Args:
        function: Returns a flat list.
        args: Its arguments.
        what: How messages call the transformation.
    """
    if not current_trace().is_staged or not is_rerolling():
        return function

    def run(*values: Any) -> Sequence[Any]:
        others: list[Any] = []

        def traced(*inner: Any) -> list[Any]:
            results = function(*inner)
            others.extend(_TRACED if isinstance(x, Tracer) else x for x in results)
            return [x for x in results if isinstance(x, Tracer)]

        program, captured, held = stage_with_cells(
            traced, list(map(aval_of, args)), what, what, is_searched=dialect() is NUMPY
        )
        cells = [h.cell for h in held]
        changed = [h.cell for h in held if h.final is not None]
        rolled = unordered(reroll(arranged(program, len(captured), held, cells, changed)))
        contents = [cell.content() for cell in cells]
        found = evaluate(rolled, [*captured, *contents, *values])
        for cell, value in zip(changed, found, strict=False):
            cell.put(value, what)
        rest = iter(found[len(changed) :])
        return [next(rest) if x is _TRACED else x for x in others]

    return run


class _Rewriting:
    """The equations of a program, with scans in the place of runs.

    Args:
        search: The program.
        families: Their loops.
        bodies: Bodies of scans by what they depend on: equal loops share them, so that the next
            search finds repeats of loops.
    """

    def __init__(
        self, search: runs.Search, families: Sequence[runs.Family], bodies: dict[Any, Program]
    ) -> None:
        self.search = search
        self.families = families
        self.bodies = bodies
        self.equations: list[Equation] = []
        self.constants = list(search.program.constants)
        self.tables: dict[Any, Var] = {}
        self.names: dict[Atom, turns.Resolved] = {}

    def program(self) -> Program:
        old = self.search.program
        place = 0
        rolling = [_Rolling(self, family) for family in self.families]
        loops = [(run.start, run.stop, r, i) for r in rolling for i, run in enumerate(r.runs)]
        for start, stop, of_family, number in sorted(loops, key=lambda loop: loop[0]):
            self._copy(place, start)
            of_family.emit(number)
            place = stop
        self._copy(place, len(old.equations))
        outputs = [self._result(x) for x in old.outputs]
        used = {x for e in self.equations for x in e.inputs} | set(outputs)
        constants = [(var, array) for var, array in self.constants if var in used]
        return Program(old.inputs, self.equations, outputs, old.name, constants)

    def _copy(self, start: int, stop: int) -> None:
        """Append equations as they are, or elements of stacks in turn as one."""
        for equation in self.search.equations[start:stop]:
            if self.names.keys().isdisjoint(equation.inputs):
                self.equations.append(equation)
            elif not self._joins(equation):
                inputs = [self.atom(x) for x in equation.inputs]
                self.equations.append(
                    Equation(equation.primitive, inputs, equation.outputs, equation.source)
                )

    def _joins(self, equation: Equation) -> bool:
        """Append an equation of elements of stacks in turn as one of the rows of arrays."""
        join = of_rows(equation.primitive)
        parts = [] if join is None else turns.parts_of([self.resolved(x) for x in equation.inputs])
        if join is None or len(parts) == len(equation.inputs):
            return False
        inputs: dict[Any, None] = {}
        for part in parts:
            inputs.update(dict.fromkeys(turns.stacks_of(part)))

        @stands_for("equation")
        def joined(*values: Any, equation: Equation = equation) -> list[Any]:
            read = dict(zip(inputs, values, strict=True)).__getitem__
            found = [
                join(part.rows(read))
                if isinstance(part, turns.Turns)
                else turns.value_of(part, read)
                for part in parts
            ]
            return found if len(found) == 1 else [equation.primitive.bind(*found)]

        self.names.update(zip(equation.outputs, self.record(joined, list(inputs)), strict=True))
        return True

    def resolved(self, atom: Atom) -> turns.Resolved:
        """New name of a variable of the old program."""
        return self.names.get(atom, atom)

    def atom(self, atom: Atom) -> Atom:
        """The same as a name: an element is read where the first equation needs it."""
        found = self.resolved(atom)
        if type(found) is not turns.Element:
            return found  # type: ignore[return-value]
        (made,) = self.record(lambda x: [turns.element_of(x, found.index)], [found.stack])
        self.names[atom] = made
        return made

    def _result(self, atom: Atom) -> Atom:
        """A result of the program, which is weak if it was: scans give strong values.

        Inside of a program weakness has no meaning.
        """
        found = self.atom(atom)
        if atom.aval.weak_type and not found.aval.weak_type:
            weakly = Convert(atom.aval.dtype, weak=True)
            (found,) = self.record(lambda x: [weakly.bind(x)], [found])
        return found

    def constant(self, values: np.ndarray) -> Var:
        """The name of an array of constants: equal ones have one."""
        key = (values.shape, values.dtype, values.tobytes())
        if key not in self.tables:
            self.tables[key] = Var(shaped(values.shape, values.dtype))
            self.constants.append((self.tables[key], values))
        return self.tables[key]

    def record(self, function: Callable[..., Sequence[Any]], inputs: Sequence[Atom]) -> list[Atom]:
        """Append the equations of a function of the values of some names; its results."""
        part = stage_closed(function, [x.aval.strong() for x in inputs], "loop")
        names: dict[Atom, Atom] = dict(zip(part.inputs, inputs, strict=True))
        for equation in part.equations:
            operands = [names.get(x, x) for x in equation.inputs]
            self.equations.append(
                Equation(equation.primitive, operands, equation.outputs, equation.source)
            )
        self.constants += part.constants
        return [names.get(x, x) for x in part.outputs]


def _is_reshape_to(equation: Equation, shape: Sequence[int]) -> bool:
    return equation.outputs[0].aval.shape == shape and type(form_of(equation)) is ReshapeForm


def _filled(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Rows of a table, those that are shorter filled up with zeros."""
    shape = tuple(map(max, zip(*(row.shape for row in rows), strict=True)))
    table = np.zeros((len(rows), *shape), rows[0].dtype)
    for filled, row in zip(table, rows, strict=True):
        filled[tuple(map(slice, row.shape))] = row
    return table


class _Rolling:
    """Loops with one body as scans.

    Operands of the body have one name for each of the loops. A single loop scans arrays; of
    several, each counts its iterations, which are all that tells their bodies apart.

    Args:
        rewriting: The program that they become a part of.
        family: The loops.
    """

    def __init__(self, rewriting: _Rewriting, family: runs.Family) -> None:
        self.rewriting = rewriting
        self.runs = family.runs
        self.run = self.runs[0]
        self.is_single = len(self.runs) == 1
        self.iterations = rewriting.search.iterations(self.runs)
        self.first_iterations = np.cumsum([0, *(run.steps for run in self.runs[:-1])])
        self.ragged = family.ragged
        self.body = [self.iterations[i][j] for j, i in enumerate(self.ragged.longest)]
        self.consts: dict[Any, loop_body.Argument] = {}
        self.carry: dict[Any, loop_body.Argument] = {}
        self.scanned: dict[Any, loop_body.Argument] = {}
        self.avals: dict[loop_body.Argument, ShapedArray] = {}
        self.operands: list[list[loop_body.Operand]] = []
        self.steps: list[loop_body.Window | loop_body.Step | loop_body.Counted | None] = []
        self.arrays: list[Callable[[Callable[[Atom], Any]], Any]] = []
        self.sources: dict[Atom, None] = {}
        """Names that the arrays which are scanned are made of."""

    # Arguments of the body.

    def _argument(
        self, kind: str, table: dict[Any, loop_body.Argument], key: Any, aval: ShapedArray
    ) -> loop_body.Argument:
        found = table.get(key)
        if found is None:
            found = table[key] = loop_body.Argument(kind, len(table))
            self.avals[found] = aval.strong()
        return found

    def _const(self, atoms: Sequence[Atom]) -> loop_body.Argument:
        if self.is_single:
            atoms = [self.rewriting.atom(atom) for atom in atoms]
        return self._argument("const", self.consts, tuple(atoms), atoms[0].aval)

    def _carried(
        self, chain: runs.Chain, given: Sequence[Sequence[Var]] | None
    ) -> loop_body.Argument:
        """The value of some iterations ago, and those between it and now."""
        aval = self.body[chain.equation].outputs[chain.result].aval
        for lag in range(1, chain.lag + 1):
            first = None if given is None else tuple(x[chain.lag - lag :] for x in given)
            key = (chain.equation, chain.result, lag, first)
            found = self._argument("carry", self.carry, key, aval)
        return found

    def _scanned(
        self, key: Any, aval: ShapedArray, make: Callable[[Callable[[Atom], Any]], Any]
    ) -> loop_body.Argument:
        if key not in self.scanned:
            self.arrays.append(make)
        return self._argument("scanned", self.scanned, key, aval)

    def _counter(self) -> loop_body.Argument:
        if not self.is_single:
            return self._argument("carry", self.carry, _COUNTER, shaped((), INT64))
        steps = np.arange(self.run.steps)
        return self._scanned("counter", shaped((), INT64), lambda read: steps)

    def _table(self, values: np.ndarray) -> loop_body.Entry:
        """A scalar of every iteration, which is looked up."""
        table = self._const([self.rewriting.constant(values)] * len(self.runs))
        place = self._counter()
        if self.is_single:
            return loop_body.Entry(table, place)
        return loop_body.Entry(
            table, loop_body.Growing(place, self._numbers_of_loops(self.first_iterations), 1)
        )

    def _scanned_windows(
        self, source: Atom, windows: loop_body.ScannedWindows
    ) -> loop_body.Argument:
        self.sources[source] = None
        sizes = [m for i, m in enumerate(windows.sizes) if i != windows.axis]
        return self._scanned(
            (source, windows),
            shaped(tuple(sizes), source.aval.dtype),
            lambda read: windows.rows(read(source), self.run.steps),
        )

    # Operands of the body.

    def _read(self) -> None:
        """Find the operands of every equation of the body, and the windows that move."""
        columns = np.cumsum([0, *(len(e.inputs) for e in self.body)]).tolist()
        windows = [
            (self.run.fixed.get(column), window[1], self.ragged.places[j])
            for j, (column, equation) in enumerate(zip(columns, self.body, strict=False))
            if (window := read_window(equation.primitive)) is not None
        ]
        lines = (e.source for e in self.body if read_window(e.primitive) is not None)
        self.reads = Counter(zip((source for source, *_ in windows), lines, strict=True))
        uses = Counter(self.run.fixed.values())
        self.rows = loop_body.shared_rows(windows, uses) if self.is_single else {}
        for j, (column, equation) in enumerate(zip(columns, self.body, strict=False)):
            step = self._window(j, equation, column) or self._step(j, equation)
            operands: list[loop_body.Operand] = []
            for k, atom in enumerate(equation.inputs):
                if type(step) is not loop_body.Window or step.scanned is None:
                    operands.append(self._operand(column + k, atom))
            self.operands.append(operands)
            self.steps.append(step)

    def _operand(self, column: int, atom: Atom) -> loop_body.Operand:
        run = self.run
        if column in run.local:
            return loop_body.Local(*run.local[column])
        if column in run.chains:
            given = [run.chains[column][1] for run in self.runs]
            return self._carried(run.chains[column][0], given)
        if column in run.fixed:
            return self._const([run.fixed[column] for run in self.runs])
        if column in run.varied:
            return self._element(run.varied[column])
        search = self.rewriting.search
        return self._scalar(atom, [x for run in self.runs for x in search.column(column, run)])

    def _scalar(self, atom: Atom, literals: Sequence[Any]) -> loop_body.Operand:
        """A scalar that is written into the program."""
        values = np.array([literal.value for literal in literals], atom.aval.dtype)
        bits = values.view(np.uint8).reshape(len(values), -1)
        if (bits == bits[0]).all():
            return loop_body.Constant(type(literals[0].value), bits[0].tobytes(), literals[0].value)
        number = self._number(values) if values.dtype == INT64 else None
        return self._table(values) if number is None else number

    def _number(self, values: Integers) -> loop_body.Growing | loop_body.Argument | None:
        """Numbers that grow by equal steps within each of the loops."""
        steps = np.diff(values)
        is_within = np.ones(len(steps), bool)
        is_within[self.first_iterations[1:] - 1] = False
        step = int(steps[is_within][0])
        if (steps[is_within] != step).any():
            return None
        first = self._numbers_of_loops(values[self.first_iterations])
        if step:
            return loop_body.Growing(self._counter(), first, step)
        return first if isinstance(first, loop_body.Argument) else None

    def _numbers_of_loops(self, values: Integers) -> loop_body.Argument | int:
        """Integers, one for each loop, as a constant or a loop-invariant argument."""
        if (values == values[0]).all():
            return int(values[0])
        key = tuple(values.tolist())
        return self._argument("const", self.consts, key, shaped((), INT64))

    def _element(self, names: Sequence[Var]) -> loop_body.Operand:
        """Stack the values that differ from iteration to iteration, before the loop."""
        aval = names[0].aval
        parts = turns.parts_of([self.rewriting.resolved(name) for name in names])
        first = parts[0]
        if len(parts) == 1 and type(first) is turns.Turns and len(first.parts) == 1:
            return self._scanned_windows(*first.parts[0])
        constants = self.rewriting.search.constants
        if all(name in constants for name in names):
            rows = _filled([constants[name] for name in names])
            row = shaped(rows.shape[1:], aval.dtype)
            return self._scanned(("constants", *names), row, lambda read: rows)
        self.sources.update(dict.fromkeys(x for part in parts for x in turns.stacks_of(part)))
        return self._scanned(("names", *parts), aval, lambda read: turns.rows_of(parts, read))

    def _window(self, j: int, equation: Equation, column: int) -> loop_body.Window | None:
        """How a window is read whose places differ."""
        window = read_window(equation.primitive)
        if window is None:
            return None
        places = self.ragged.places[j]
        moving = np.flatnonzero((places != places[0]).any(0)).tolist()
        if not moving:
            return None
        _, sizes, strides = window
        shape = equation.outputs[0].aval.shape
        first = tuple(places[0].tolist())
        fixed = self.run.fixed.get(column)
        row = None if fixed is None else self.rows.get(fixed)
        is_scanned = self.is_single and len(moving) == 1 and sizes[moving[0]] == 1 and row is None
        n_reads = self.reads[fixed, equation.source]
        if is_scanned and fixed is not None and not self.run.may_hold_loop_of(n_reads):
            steps = np.diff(places[:, moving[0]])
            if (steps == steps[0]).all():
                windows = loop_body.ScannedWindows(first, sizes, strides, moving[0], int(steps[0]))
                source = self.rewriting.atom(fixed)
                scanned = self._scanned_windows(source, windows)
                return loop_body.Window(sizes, strides, shape, (), scanned)
        starts = [
            self._numbers(numbers) if i in moving else first[i]
            for i, numbers in enumerate(places.T)
        ]
        if row is None or fixed is None:
            return loop_body.Window(sizes, strides, shape, tuple(starts))
        starts[row.axis] = 0
        scanned = self._scanned_windows(self.rewriting.atom(fixed), row)
        return loop_body.Window(sizes, strides, shape, tuple(starts), scanned, row.axis)

    def _numbers(self, values: Sequence[int] | Integers) -> loop_body.Operand | int:
        """Integers, one for each iteration, as a constant, a formula of the counter or a table."""
        numbers = np.asarray(values, np.int64)
        if (numbers == numbers[0]).all():
            return int(numbers[0])
        return self._number(numbers) or self._table(numbers)

    def _step(self, j: int, equation: Equation) -> loop_body.Step | loop_body.Counted | None:
        """How an operation is applied whose lengths iterations differ in."""
        if j in self.ragged.counts:
            return loop_body.Counted(self._numbers(self.ragged.counts[j]))
        handling = self.ragged.handling.get(j)
        if handling is None or handling.kind == "window":
            return None
        if handling.kind == "fold":
            return self._fold(handling)
        shifts = tuple(map(self._shifts, handling.operands, handling.aligned))
        if handling.kind == "plain":
            return loop_body.Step(shifts) if any(x is not None for s in shifts for x in s) else None
        extents = handling.aligned[1]
        starts = tuple(
            None if x is None else equation.inputs[2 + axis].value  # type: ignore[union-attr]
            for axis, x in enumerate(extents)
        )
        return loop_body.UpdateOfPart(shifts, starts, tuple(map(self._bounds, extents)))

    def _shifts(self, own: Extents, aligned: Extents) -> tuple[loop_body.Operand | int | None, ...]:
        return tuple(
            None
            if a is None or b is None or a.begins is None or a.begins == b.begins
            else self._numbers([x - y for x, y in zip(a.begins, b.bounds[0], strict=True)])
            for a, b in zip(own, aligned, strict=True)
        )

    def _bounds(self, extent: Extent | None) -> loop_body.Bounds | None:
        if extent is None:
            return None
        begins, ends = extent.bounds
        return self._numbers(begins), self._numbers(ends)

    def _fold(self, handling: Handling) -> loop_body.FoldOfParts:
        parts = dict.fromkeys(
            x
            for extents in (*handling.operands, *handling.aligned, handling.result)
            for x in extents
            if x is not None
        )
        numbers = {x: i for i, x in enumerate(parts)}

        def places(extents: Extents) -> Places:
            return tuple(None if x is None else numbers[x] for x in extents)

        bounds = [b for b in map(self._bounds, parts) if b is not None]
        return loop_body.FoldOfParts(
            (),
            tuple(bounds),
            tuple(map(places, handling.operands)),
            tuple(map(places, handling.aligned)),
            places(handling.result),
            tuple(x.side for x in parts),
        )

    # The scan.

    def _prepare(self) -> None:
        """Read the body, and make it a program, when the first of the loops is appended."""
        self._read()
        self.finals = {x: self._final(x) for x in {x: None for r in self.runs for x in r.finals}}
        self.program = self._program()

    def emit(self, number: int) -> None:
        """Append the scan of one of the loops, and rename its results."""
        if number == 0:
            self._prepare()
        run, rewriting = self.runs[number], self.rewriting
        inits = [self._init(key, number) for key in self.carry]
        named = [key[number] for key in self.consts]
        consts = [Literal(np.int64(x)) if type(x) is int else rewriting.atom(x) for x in named]
        given = [init for init in inits if init is not None]
        inputs = list(dict.fromkeys((*consts, *given, *self.sources)))
        avals = [self.avals[x] for x in self.carry.values()]
        scan = Scan(self.program, len(consts), len(inits), run.steps, False)

        @stands_for("equation")
        def rolled(*values: Any, equation: Equation = self.body[0]) -> list[Any]:
            read = dict(zip(inputs, values, strict=True)).__getitem__
            carry = [
                zeros_like_aval(aval) if init is None else read(init)
                for init, aval in zip(inits, avals, strict=True)
            ]
            arrays = [make(read) for make in self.arrays]
            return scan.bind(*map(read, consts), *carry, *arrays)

        results = rewriting.record(rolled, inputs)
        for chain, var in run.finals.items():
            rewriting.names[var] = results[self.finals[chain].number]
        for (j, i), stack in zip(run.stacked, results[len(inits) :], strict=True):
            assert isinstance(stack, Var)
            for step in run.stacked[j, i]:
                rewriting.names[self.iterations[step][j].outputs[i]] = turns.Element(stack, step)

    def _init(self, key: Any, number: int) -> Atom | None:
        """Initial value of a carried value in one of the loops; ``None`` if nobody reads it."""
        if key is _COUNTER:
            return Literal(np.int64(0))
        return None if key[3] is None else self.rewriting.atom(key[3][number][0])

    def _final(self, chain: runs.Chain) -> loop_body.Argument:
        """Return the carried value whose content after the loop is a result."""
        wanted = (chain.equation, chain.result, chain.lag)
        found = next((x for key, x in self.carry.items() if key[:3] == wanted), None)
        return self._carried(chain, None) if found is None else found

    def _program(self) -> Program:
        """The body, or that of an equal loop."""
        tables = (self.consts, self.carry, self.scanned)
        arguments = [x for table in tables for x in table.values()]
        outputs: list[loop_body.Operand] = [self._next(key) for key in self.carry]
        outputs += [loop_body.Local(*key) for key in self.run.stacked]
        avals = [self.avals[x] for x in arguments]
        operations = [
            (
                runs.family_of(e.primitive) if type(s) is loop_body.Window else e.primitive,
                s,
                tuple(x),
                e.source,
            )
            for e, s, x in zip(self.body, self.steps, self.operands, strict=True)
        ]
        key = (tuple(operations), tuple(arguments), tuple(avals), tuple(outputs))
        found = self.rewriting.bodies.get(key)
        if found is None:
            body = stage_closed(lambda *xs: self._evaluate(arguments, outputs, xs), avals, "loop")
            body = widened(body)
            least = min(runs.LEAST_INSIDE, self.rewriting.search.least)
            found = self.rewriting.bodies[key] = reroll(body, least, runs.LEAST_OF_ARRAYS)
        return found

    def _next(self, key: Any) -> loop_body.Operand:
        """A carried value of the next iteration."""
        if key is _COUNTER:
            return loop_body.Growing(self.carry[key], 1, 1)
        equation, result, lag, first = key
        if lag == 1:
            return loop_body.Local(equation, result)
        return self.carry[equation, result, lag - 1, first and tuple(x[1:] for x in first)]

    @stands_for("equation")
    def _evaluate(
        self,
        arguments: Sequence[loop_body.Argument],
        outputs: Sequence[loop_body.Operand],
        values: Sequence[Any],
    ) -> list[Any]:
        """One iteration."""
        given = dict(zip(arguments, values, strict=True))
        made: list[Any] = []

        def find(operand: Any) -> Any:
            match operand:
                case loop_body.Argument():
                    return given[operand]
                case loop_body.Local():
                    return made[operand.equation][operand.result]
                case loop_body.Constant():
                    return operand.literal
                case loop_body.Growing() | loop_body.Entry():
                    return operand.evaluate(find)
            return np.int64(operand)

        rows: dict[int, Any] = {}
        """Elements that are scanned, by the windows that they are."""
        for equation, step, operands in zip(self.body, self.steps, self.operands, strict=True):
            args = list(map(find, operands))
            primitive = equation.primitive
            row = rows.get(id(args[0])) if args else None
            if row is not None and _is_reshape_to(equation, row.shape):
                result = row  # residuals of it are those of the array
            elif step is None:
                result = primitive.bind(*args)
            else:
                result = step.evaluate(primitive, args, find)
            if type(step) is loop_body.Window and step.scanned is not None and not step.starts:
                rows[id(result)] = find(step.scanned)
            made.append(result if primitive.multiple_results else [result])
        return list(map(find, outputs))
