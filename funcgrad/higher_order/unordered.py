"""Loops whose steps do not wait for each other, as operations on the arrays of all steps.

``unordered : Program -> Program``

A loop that writes into an array carries the array. Where no step reads what an earlier one has
written, all of them read the array that was there before, and what they write is put into it
behind the loop at once. Which elements a step reads and writes follows from its windows, whose
places are known numbers: constants, counters, and what is computed of these.

A loop that carries nothing then is its body, applied to all steps together, if that takes little
memory. Sums have another order than in the loop. So this happens where a program is differentiated
or compiled, and not where it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.core.avals import aval_of
from funcgrad.core.axes import axis_scope
from funcgrad.core.facets import Facet
from funcgrad.core.program import Atom, Equation, Literal, Program, Var, axis_names, evaluate
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.dtypes import INT64
from funcgrad.errors import MissingRuleError
from funcgrad.higher_order.hoisting import hoist, invariant_vars, whole_product
from funcgrad.higher_order.loop_body import ScannedWindows
from funcgrad.higher_order.scan import Scan, bind_scan, cut
from funcgrad.lowering import Form, Pointwise, Reindex, Replace, Window, form_of
from funcgrad.lowering import Reshape as ReshapeForm
from funcgrad.observers.source import stands_for
from funcgrad.passes.common import subprograms
from funcgrad.passes.repeats import Integers
from funcgrad.primitives import shape as s
from funcgrad.primitives.elementwise import Convert
from funcgrad.primitives.indexing import DynamicUpdateSlice
from funcgrad.transforms.programs import batch_program, stage_closed

MEMORY_FACTOR = 4
"""Results of all steps together may take so many times the memory of operands and outputs."""

LEAST_MEMORY = 1 << 20
"""Bytes that it may take anyway."""

MOST_STEPS = 1 << 16
"""Longer loops stay as they are: what is known of their steps takes memory and time of its own."""

_NUMBERS = 16
"""Integers of a step that are computed to find its windows."""

_FAR = 1 << 40
"""A place that no array has."""

folded_parts: Facet[tuple[tuple[int | None, ...], ...]] = Facet("folded_parts", ())
"""By operand that an operation reads in part, the number of the part along every axis. The operands
behind these are the bounds, two for each part."""

_Known = Mapping[Var, Any]
"""Arrays that are known while a program is rewritten."""


def unordered(program: Program) -> Program:
    """The program without loops whose steps do not wait; the same object if it has none."""

    def changed() -> Program | None:
        found = _rewritten(program, {})
        return None if found is program else found  # which would refer to itself

    return program.memo("unordered", changed) or program


def _rewritten(program: Program, known: _Known) -> Program:
    if not any(type(e.primitive) is Scan for e in program.equations):
        return program
    known = {**known, **dict(program.constants)}
    loops: dict[Equation, _Loop] = {}
    for equation in program.equations:
        if type(equation.primitive) is Scan:
            loop = _Loop(equation.primitive, [_value(x, known) for x in equation.inputs])
            if loop.is_changed:
                loops[equation] = loop
    if not loops:
        return program

    @stands_for("equation")
    def run(*args: Any) -> list[Any]:
        values: dict[Atom, Any] = dict(zip(program.inputs, args, strict=True))
        values.update(program.constants)
        for equation in program.equations:
            given = [x.value if isinstance(x, Literal) else values[x] for x in equation.inputs]
            if equation in loops:
                results = loops[equation].results(given)
            else:
                results = equation.primitive.bind(*given)
                results = results if equation.primitive.multiple_results else [results]
            values.update(zip(equation.outputs, results, strict=True))
        return [
            x.value if isinstance(x, Literal) else _as_weak(values[x], x) for x in program.outputs
        ]

    return stage_closed(run, program.in_avals, program.name)


def _as_weak(x: Any, atom: Atom) -> Any:
    """A result that is as weak as it was."""
    weak = atom.aval.weak_type
    return x if aval_of(x).weak_type == weak else Convert(atom.aval.dtype, weak=weak).bind(x)


def _value(atom: Atom, known: _Known) -> Any:
    """The value of an atom, if it is known; else ``None``."""
    return atom.value if isinstance(atom, Literal) else known.get(atom)


@dataclass(frozen=True)
class _Range:
    """Elements along an axis that the steps of a loop touch.

    Attributes:
        lows: The first one, by step.
        highs: The one behind the last one.
    """

    lows: Integers
    highs: Integers

    def meets(self, other: _Range) -> Any:
        """Flags of the steps in which the ranges have elements in common."""
        return np.maximum(self.lows, other.lows) < np.minimum(self.highs, other.highs)

    def along(self, start: Integers | int, step: int = 1) -> _Range:
        """The range of ``start + step * i`` for its elements ``i``; it is empty if this one is."""
        first, last = self.lows, self.highs - 1
        if step < 0:
            first, last = last, first
        return _Range(start + step * first, start + step * last + 1)


def _around(ranges: Sequence[_Range]) -> _Range:
    """The range from the first to the last element of some, of which several may be empty."""
    lows = [np.where(x.lows < x.highs, x.lows, _FAR) for x in ranges]
    highs = [np.where(x.lows < x.highs, x.highs, -_FAR) for x in ranges]
    return _Range(np.minimum.reduce(lows), np.maximum.reduce(highs))


@dataclass(frozen=True)
class _Written:
    """Windows of a carried array that steps write, side by side along an axis.

    Attributes:
        equation: What writes it.
        axis: The axis.
        first: Where the first window begins along it.
        step: Where the next one begins, from there: the length of a window, or minus that.
        starts: Where they begin along all axes: a number, or the place of a constant of the loop.
    """

    equation: Equation
    axis: int
    first: int
    step: int
    starts: tuple[Any, ...]

    def put(self, x: Any, stack: Any, consts: Sequence[Any]) -> Any:
        """The array with the windows of all steps.

        Args:
            x: The array before the loop.
            stack: The windows, one behind the other.
            consts: The constants of the loop.
        """
        stack = s.Reverse((0,)).bind(stack) if self.step < 0 else stack
        length, *sizes = s.shape_of(stack)
        low = min(self.first, self.first + (length - 1) * self.step)
        sizes[self.axis] *= length
        window = s.reshape(s.moveaxis_from_front(stack, self.axis), tuple(sizes))
        starts = [consts[x.place] if isinstance(x, _Constant) else np.int64(x) for x in self.starts]
        starts[self.axis] = np.int64(low)
        return DynamicUpdateSlice().bind(x, window, *starts)


@dataclass(frozen=True)
class _Constant:
    """A number that is a constant of a loop.

    Attributes:
        place: Which of them.
    """

    place: int


class _Loop:
    """A loop, and what it becomes.

    Args:
        scan: The loop.
        args: Its arguments, if they are known; else ``None``.
    """

    def __init__(self, scan: Scan, args: Sequence[Any]) -> None:
        consts, carry, xs = scan.split(args)
        given = zip(scan.body.inputs, consts, strict=False)
        rewritten = _rewritten(scan.body, {v: x for v, x in given if x is not None})
        self.prelude, body = hoist(rewritten, scan.n_consts)
        extra = 0 if self.prelude is None else len(self.prelude.outputs)
        self.scan = replace(scan, body=body, n_consts=scan.n_consts + extra)
        self.body, self.length = body, scan.length
        self.fixed, self.carry, self.xs = self.scan.split(body.inputs)
        self.made = {v: e for e in body.equations for v in e.outputs}
        self.moved: dict[int, _Written | None] = {}
        """By number of a carried value: the windows that are written behind the loop, or none."""
        self.counted: dict[int, tuple[int, int]] = {}
        """By number of a carried value that counts: where it begins, and by how much it grows."""
        self.rows: dict[tuple[Var, ScannedWindows], Var] = {}
        self.kept = list(range(scan.n_carry))
        self.inner, self.is_map = body, False
        is_plain = not (scan.reverse or scan.shows_progress or scan.is_effectful)
        if is_plain and 1 < scan.length <= MOST_STEPS:
            self.numbers = self._numbers([*consts, *[None] * extra], carry, xs)
            self._find()
        self.is_changed = bool(self.is_map or self.moved or self.rows or rewritten is not scan.body)

    def _find(self) -> None:
        """Find what need not be carried."""
        for k, var in enumerate(self.carry):
            result = self.body.outputs[k]
            written = None if k in self.counted or result is var else self._written(var, result)
            if result is var or written is not None:
                self.moved[k] = written
        self.kept = [k for k in self.kept if k not in self.moved | self.counted.keys()]
        self.inner = self._inner()
        n_fixed = len(self.fixed) + len(self.moved)
        self.is_map = not self.kept and _can_be_batched(self.inner, n_fixed, self.length)

    # Numbers that are known.

    def _count(self, carry: Sequence[Any]) -> None:
        """Find carried integers that grow by the same number in each step."""
        for k, (var, first) in enumerate(zip(self.carry, carry, strict=True)):
            equation = self.made.get(self.body.outputs[k])  # type: ignore[arg-type]
            if equation is None or first is None or np.shape(first) or var.aval.dtype != INT64:
                continue
            steps = [x.value for x in equation.inputs if isinstance(x, Literal)]
            is_sum = _form(equation) == Pointwise("{0} + {1}")
            if is_sum and var in equation.inputs and len(steps) == 1:
                self.counted[k] = int(first), int(steps[0])

    def _numbers(
        self, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any]
    ) -> dict[Atom, Integers]:
        """Integers that are known, by step."""
        self._count(carry)
        fixed = dict(zip(self.fixed, consts, strict=True)) | dict(self.body.constants)
        moving = dict(zip(self.xs, xs, strict=True))
        for k, (first, step) in self.counted.items():
            moving[self.carry[k]] = first + step * np.arange(self.length)
        given = {v: x for v, x in {**fixed, **moving}.items() if _is_integer(x)}
        seen, equations, found = set(given), [], []
        for equation in self.body.equations:
            variables = [x for x in equation.inputs if type(x) is Var]
            aval = equation.outputs[0].aval if len(equation.outputs) == 1 else None
            is_small = aval is not None and aval.dtype.kind in "bi" and aval.size <= _NUMBERS
            if is_small and seen.issuperset(variables) and not equation.primitive.is_effectful:
                equations.append(equation)
                seen.update(equation.outputs)
                found.append(equation.outputs[0])
        program = Program(list(given), equations, found, "numbers")
        mask = tuple(v in moving for v in given)
        with axis_scope(None, self.length), using_trace(EVAL):
            batched = batch_program(program, mask, self.length)
            values = evaluate(batched.program, list(given.values()))
        return {
            v: np.broadcast_to(np.asarray(x, np.int64), (self.length,))
            for v, x in zip([*given, *found], [*given.values(), *values], strict=True)
            if not v.aval.shape
        }

    def _number(self, atom: Atom) -> Integers | None:
        """An integer by step, if it is known."""
        if isinstance(atom, Literal):
            return np.full(self.length, atom.value, np.int64)
        return self.numbers.get(atom)

    def _ranges(
        self, shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Atom]
    ) -> list[_Range]:
        """By axis, the elements that windows have of an array."""
        found = []
        for n, m, atom in zip(shape, sizes, starts, strict=True):
            start = self._number(atom)
            if start is None:
                found.append(self._all(n))
            else:
                lows = np.clip(start, 0, n - m)
                found.append(_Range(lows, lows + m))
        return found

    def _all(self, n: int) -> _Range:
        return _Range(np.zeros(self.length, np.int64), np.full(self.length, n, np.int64))

    # Windows.

    def _written(self, var: Var, result: Atom) -> _Written | None:
        """The windows of a carried array that steps write, if none reads those of earlier ones."""
        equation = self.made.get(result)  # type: ignore[arg-type]
        outputs = self.body.outputs
        if equation is None or not isinstance(_form(equation), Replace):
            return None
        if equation.inputs[0] is not var or var in outputs or outputs.count(result) > 1:
            return None
        shape, sizes = var.aval.shape, equation.inputs[1].aval.shape
        found = self._places(equation)
        if found is None or 0 in sizes:
            return None
        starts, axis, numbers = found
        size, step = sizes[axis], int(numbers[1] - numbers[0])
        is_regular = abs(step) == size and (np.diff(numbers) == step).all()
        if not is_regular or numbers.min() < 0 or numbers.max() + size > shape[axis]:
            return None
        windows = self._ranges(shape, sizes, equation.inputs[2:])
        first = int(numbers[0])
        for array, last in (var, numbers - step), (equation.outputs[0], numbers):
            # Elements that have been written when the array is read.
            begin, end = (first + 0 * last, last) if step > 0 else (last, first + 0 * last)
            windows[axis] = _Range(begin, end + size)
            for reader in self._uses(array):
                if reader is equation and equation.inputs.count(var) == 1:
                    continue
                pairs = zip(self._used_by(array, reader), windows, strict=True)
                if np.logical_and.reduce([a.meets(b) for a, b in pairs]).any():
                    return None
        return _Written(equation, axis, first, step, starts)

    def _places(self, equation: Equation) -> tuple[tuple[Any, ...], int, Integers] | None:
        """The places that are written, their moving axis, and where they are along it by step."""
        starts: list[Any] = []
        moving = None
        for axis, atom in enumerate(equation.inputs[2:]):
            numbers = self._number(atom)
            if numbers is not None and (numbers == numbers[0]).all():
                starts.append(int(numbers[0]))
            elif numbers is None and atom in self.fixed:
                starts.append(_Constant(self.fixed.index(atom)))
            elif numbers is not None and moving is None:
                moving = axis, numbers
                starts.append(0)
            else:
                return None
        return None if moving is None else (tuple(starts), *moving)

    def _uses(self, atom: Atom) -> list[Equation]:
        """The equations that read a value."""
        return [e for e in self.body.equations if atom in e.inputs]

    def _used(self, var: Var) -> list[_Range]:
        """The part of an array that its readers need."""
        parts = [self._used_by(var, reader) for reader in self._uses(var)]
        if not parts or var in self.body.outputs:
            return list(map(self._all, var.aval.shape))
        return [_around(of_axis) for of_axis in zip(*parts, strict=True)]

    def _used_by(self, var: Var, reader: Equation) -> list[_Range]:
        """The part of an array that an operation needs: of folds of parts, these parts."""
        found, parts = list(map(self._all, var.aval.shape)), folded_parts(reader.primitive)
        if reader.inputs.count(var) > 1 or len(reader.outputs) > 1:
            return found
        if parts:
            place = reader.inputs.index(var)
            for axis, part in enumerate(parts[place] if place < len(parts) else ()):
                if part is not None:
                    bounds = reader.inputs[len(parts) + 2 * part :][:2]
                    low, high = map(self._number, bounds)
                    found[axis] = found[axis] if low is None or high is None else _Range(low, high)
            return found
        form, (out,) = _form(reader), reader.outputs
        if isinstance(form, Window) and reader.inputs[0] is var:
            starts = reader.inputs[1:]
            windows = self._ranges(var.aval.shape, form.sizes, starts)
            for axis, inner in enumerate(self._used(out)):
                if self._number(starts[axis]) is not None:
                    found[axis] = inner.along(windows[axis].lows)
        elif isinstance(form, Reindex):
            for i, step, inner in zip(form.axes, form.steps, self._used(out), strict=True):
                if i is not None and form.axes.count(i) == 1:
                    found[i] = inner.along(form.starts[i], step)
        elif isinstance(form, ReshapeForm):
            ours, theirs = (_long_axes(v.aval.shape) for v in (var, out))
            if [*ours.values()] == [*theirs.values()]:
                used = self._used(out)
                for i, j in zip(ours, theirs, strict=True):
                    found[i] = used[j]
        return found

    # Rewriting.

    def _inner(self) -> Program:
        """The body without what is written behind the loop, which is a result of every step."""
        fixed = [*self.fixed, *(self.carry[k] for k in self.moved)]
        written = {w.equation: w.equation.inputs[1] for w in self.moved.values() if w is not None}
        before: dict[Atom, Atom] = {e.outputs[0]: e.inputs[0] for e in written}
        equations: list[Equation] = []
        for equation in self.body.equations:
            if equation not in written:
                operands = [before.get(x, x) for x in equation.inputs]
                equation = Equation(equation.primitive, operands, equation.outputs, equation.source)
                equations += self._read_in_turn(equation, fixed)
        outputs = [self.body.outputs[k] for k in self.kept]
        outputs += [*self.body.outputs[len(self.carry) :], *written.values()]
        inputs = [*fixed, *(self.carry[k] for k in self.kept), *self.xs]
        inputs += [*(self.carry[k] for k in self.counted), *self.rows.values()]
        return Program(inputs, equations, outputs, self.body.name, self.body.constants)

    def _read_in_turn(self, equation: Equation, fixed: Sequence[Var]) -> list[Equation]:
        """The equation, which reads an element of rows if it reads one row after the other."""
        source = equation.inputs[0] if equation.inputs else None
        form = _form(equation) if source in fixed else None
        if not isinstance(form, Window):
            return [equation]
        assert isinstance(source, Var)
        shape, starts = source.aval.shape, list(equation.inputs[1:])
        numbers = [self._number(x) for x in starts]
        moving = [i for i, x in enumerate(numbers) if x is None or (x != x[0]).any()]
        moving = [i for i in moving if starts[i] not in fixed]
        places = numbers[moving[0]] if len(moving) == 1 else None
        if places is None or form.sizes[moving[0]] != 1:
            return [equation]
        (axis,) = moving
        step = int(places[1] - places[0])
        if not step or (np.diff(places) != step).any():
            return [equation]
        if places.min() < 0 or places.max() >= shape[axis]:
            return [equation]
        first = tuple(int(places[0]) if i == axis else 0 for i in range(len(shape)))
        sizes = tuple(1 if i == axis else n for i, n in enumerate(shape))
        windows = ScannedWindows(first, sizes, (1,) * len(shape), axis, step)
        row = self.rows.get((source, windows))
        if row is None:
            aval = source.aval.strong().update(shape=(*shape[:axis], *shape[axis + 1 :]))
            row = self.rows[source, windows] = Var(aval)
        wide = Var(row.aval.update(shape=sizes))
        starts[axis] = Literal(np.int64(0))
        return [
            Equation(s.Reshape(sizes), [row], (wide,), equation.source),
            Equation(equation.primitive, [wide, *starts], equation.outputs, equation.source),
        ]

    def results(self, args: Sequence[Any]) -> list[Any]:
        """The results of the loop."""
        scan, length = self.scan, self.length
        n = scan.n_consts if self.prelude is None else len(self.prelude.inputs)
        consts, carry, xs = cut(args, n, scan.n_carry)
        consts += [] if self.prelude is None else evaluate(self.prelude, consts)
        arrays = dict(zip([*self.fixed, *self.carry], [*consts, *carry], strict=True))
        fixed = [*consts, *(carry[k] for k in self.moved)]
        kept = [carry[k] for k in self.kept]
        xs += [first + step * np.arange(length) for first, step in self.counted.values()]
        xs += [windows.rows(arrays[source], length) for source, windows in self.rows]
        if self.is_map:
            found = _batched(self.inner, fixed, xs, length)
        else:
            given = fixed, kept, xs, length, scan.reverse, scan.progress
            found = bind_scan(self.inner, *given)
        left, ys, stacks = cut(found, len(kept), len(self.body.outputs) - scan.n_carry)
        rest, windows = iter(left), iter(stacks)
        ends = []
        for k, x in enumerate(carry):
            if k in self.counted:
                first, step = self.counted[k]
                ends.append(np.int64(first + step * length))
            elif k in self.moved:
                written = self.moved[k]
                ends.append(x if written is None else written.put(x, next(windows), consts))
            else:
                ends.append(next(rest))
        return [*ends, *ys]


def _long_axes(shape: Sequence[int]) -> dict[int, int]:
    """Axes of other lengths than 1, with these."""
    return {i: n for i, n in enumerate(shape) if n != 1}


def _form(equation: Equation) -> Form | None:
    """The form of an operation; ``None`` if only Python evaluates it."""
    try:
        return form_of(equation)
    except MissingRuleError:
        return None


def _is_integer(x: Any) -> bool:
    return x is not None and np.asarray(x).dtype.kind == "i"


def _can_be_batched(body: Program, n_fixed: int, length: int) -> bool:
    """Whether a body may be applied to all steps together, which share some of its inputs."""
    shared = invariant_vars(body, n_fixed) | set(body.inputs[:n_fixed])
    for equation in body.equations:
        primitive = equation.primitive
        if shared.issuperset(equation.outputs):
            continue
        if primitive.is_effectful or axis_names(primitive) or subprograms(primitive):
            return False
        if parts := folded_parts(primitive):
            # Parts of other lengths in every step are sums of other terms.
            moving = [] if whole_product(primitive) else [*equation.inputs[len(parts) :]]
        elif isinstance(form := _form(equation), Window):
            # Windows of other places in every step would be copied.
            sizes = zip(equation.inputs[1:], form.sizes, strict=True)
            moving = [x for x, size in sizes if size > 1]
        else:
            continue
        if any(type(x) is Var and x not in shared for x in moving):
            return False
    made = sum(_nbytes(v) for e in body.equations for v in e.outputs if v not in shared)
    given = sum(map(_nbytes, body.inputs))
    outputs = sum(map(_nbytes, dict.fromkeys(body.outputs)))
    return made * length <= max(LEAST_MEMORY, MEMORY_FACTOR * (given + outputs * length))


def _nbytes(atom: Atom) -> int:
    return math.prod(atom.aval.shape) * atom.aval.dtype.itemsize


def _batched(body: Program, fixed: Sequence[Any], xs: Sequence[Any], length: int) -> list[Any]:
    """The results of all steps, of which each gets an element of every array."""
    mask = (*(False for _ in fixed), *(True for _ in xs))
    with axis_scope(None, length):  # the steps are not the axis that a batch rule maps
        batched = batch_program(body, mask, length)
        found = evaluate(batched.program, [*fixed, *xs])
    return [
        x if on else s.broadcast_to(x, (length, *s.shape_of(x)))
        for x, on in zip(found, batched.is_mapped_out, strict=True)
    ]


__all__ = ["unordered"]
