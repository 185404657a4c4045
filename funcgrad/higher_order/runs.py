"""Loops in a program: what repeated stretches of equations are from one iteration to the next.

``families : Program -> [Family]``

Equations are alike if they apply the same operation, up to the place of a window, to operands of
the same types, on the same line. Of a stretch of them that repeats (`funcgrad.passes.repeats`), an
operand of an iteration may be

- *local*: made in the same iteration;
- *chained*: made a fixed number of iterations before, or given to the first ones;
- *fixed*: the same in all iterations;
- *varied*: something else of every iteration, made before the loop.

Iterations at either end that do not fit stay outside. Inner loops whose numbers of steps differ
have one body, so that the loop around them has one operation for each.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import copy
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np

from funcgrad.base import environment
from funcgrad.base.records import dataclass
from funcgrad.core.facets import Facet
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Literal, Program, Var, all_inputs
from funcgrad.higher_order.extents import Ragged, extents_of, places_of, read_window
from funcgrad.passes.repeats import Integers, Repeats, flattened, numbered, rows_numbered

but_lengths: Facet[Hashable] = Facet("but_lengths", None)
"""The key of an operation apart from the lengths of arrays; ``None`` if that is itself."""

n_operations: Facet[int] = Facet("n_operations", 1)
"""How many equations of other programs one of a searched program stands for."""

LEAST_SAVED = 256
"""How many equations a loop must save: shorter programs compile well as they are."""

LEAST_INSIDE = 128
"""The same for a loop in the body of another one, which compilers unroll if that is worth it."""

LEAST_OF_ARRAYS = 48
"""The same for one of `MANY_STEPS` on arrays, for each operation on which compilers make a loop."""

MANY_STEPS = 8
"""From how many iterations on that is so: fewer are better fused."""

_SMALL = 16
"""Elements of arrays that count as scalars there."""

LEAST_OF_ROWS = 16
"""The same for what only reads what an earlier loop has made, element by element."""

LEAST_STEPS = 4
"""How many iterations a loop must have."""

MAX_STACKED = 1 << 20
"""Bytes that may be copied so that values which have nothing in common can be scanned."""

_WINDOW = 8
"""Length of the sequences of operations by which `may_repeat` knows loops."""

_MAX_LAG = 4
"""Over how many iterations values are handed on without a copy: that many become one step."""


@dataclass(frozen=True)
class Chain:
    """A value that iterations carry.

    Attributes:
        equation: Which equation of the body makes it.
        result: Which of its results it is.
        lag: How many iterations ago.
    """

    equation: int
    result: int
    lag: int


@dataclass(frozen=True)
class Stretch:
    """Equations that repeat.

    Attributes:
        start: The first equation.
        period: Equations of an iteration.
        steps: How many iterations.
    """

    start: int
    period: int
    steps: int

    @property
    def stop(self) -> int:
        return self.start + self.period * self.steps


@dataclass(frozen=True)
class Run(Stretch):
    """Iterations of a loop.

    Attributes:
        local: By operand of the body: the equation and result of the same iteration that it is.
        chains: By operand: the value of an earlier iteration that it is, and its initial values,
            as many as it is iterations old.
        fixed: By operand: its name.
        varied: By operand: its names in all iterations.
        finals: Results that are read behind the loop, by the chain that they end.
        stacked: Results of which many iterations' are: by equation and result, the iterations.
        saved: How many equations the loop has less than its iterations, bodies counted.
    """

    local: dict[int, tuple[int, int]]
    chains: dict[int, tuple[Chain, tuple[Var, ...]]]
    fixed: dict[int, Var]
    varied: dict[int, list[Var]]
    finals: dict[Chain, Var]
    stacked: dict[tuple[int, int], list[int]]
    saved: int

    def may_hold_loop_of(self, steps: int) -> bool:
        """Whether the body is as long as one with a loop of so many iterations."""
        size = self.saved // (self.steps - 1)
        least = LEAST_OF_ARRAYS if steps >= MANY_STEPS else LEAST_INSIDE
        return steps >= LEAST_STEPS and size - size // steps >= least


@dataclass(frozen=True)
class Family:
    """A loop, or several with one body: inner loops whose numbers of steps differ.

    Attributes:
        runs: The loops, in their order.
        ragged: Lengths of arrays, and places of windows, in the iterations of all of them.
    """

    runs: tuple[Run, ...]
    ragged: Ragged

    @property
    def saved(self) -> int:
        """How many equations the loops have less than their iterations."""
        return sum(run.saved for run in self.runs)


def may_repeat(program: Program, least: int) -> bool:
    """Whether enough operations stand in sequences of operations and lines that come again.

    It costs a fraction of a search, and no program without loops gets further: a line that is
    executed once may hold an operation many times, but not among the same neighbours.

    Args:
        program: The program.
        least: How many equations a loop must save, bodies counted.
    """
    n_windows = len(program.equations) - _WINDOW + 1
    is_short = len(program.equations) < least and _length(program) < least
    if is_short or n_windows < LEAST_STEPS - 1:
        return False
    lines, n_lines = numbered([e.source for e in program.equations], _line)[:2]
    operations = numbered([type(e.primitive) for e in program.equations], id)[0]
    kinds = (operations * n_lines + lines).astype(np.uint64)
    # A hash: the numbers of a sequence as the digits of one, which may overflow.
    digits = np.lib.stride_tricks.sliding_window_view(kinds, _WINDOW)
    sequences = digits @ np.uint64(0x9E3779B97F4A7C15) ** np.arange(_WINDOW, dtype=np.uint64)
    found, counts = np.unique(sequences, return_counts=True)
    repeated = counts >= LEAST_STEPS - 1
    if counts[repeated].sum() > least - _WINDOW:
        return True
    places = np.flatnonzero(np.isin(sequences, found[repeated]))
    return sum(_size(program.equations[i].primitive) for i in places) > least - _WINDOW


class Search:
    """The repeats of one program.

    Args:
        program: The program.
        least: How many equations a loop must save.
        least_of_arrays: The same for loops of many iterations on arrays.

    Attributes:
        is_ragged: Whether iterations may have arrays of different lengths.
    """

    def __init__(self, program: Program, least: int, least_of_arrays: int) -> None:
        self.program = program
        self.least = least
        self.least_of_arrays = least_of_arrays
        self.is_ragged = False
        self.equations = program.equations
        self._read()

    def _read(self) -> None:
        """Number the names in the order in which they are made, and read the operands."""
        program, equations = self.program, self.equations
        operands, ends_of_operands = all_inputs(equations)
        self.atoms = operands
        self.first_operand = np.array([0, *ends_of_operands], np.int64)
        results, ends = flattened(e.outputs for e in equations)
        self.vars: list[Var] = [*program.inputs, *(var for var, _ in program.constants)]
        self.constants = dict(program.constants)
        n_given = len(self.vars)
        self.vars += results
        numbers: dict[Atom, int] = dict(zip(self.vars, range(len(self.vars)), strict=True))
        self.operands = np.fromiter(map(numbers.get, operands, repeat(-1)), np.int64)
        self.first_var = n_given + ends
        made_as = np.arange(n_given, len(self.vars)) - np.repeat(
            self.first_var[:-1], np.diff(self.first_var)
        )
        self.made_as = np.concatenate([np.zeros(n_given, np.int64), made_as])
        self.families_of, _, members = numbered([e.primitive for e in equations], family_of)
        self.members: list[Primitive] = members
        """One operation of each family."""
        self.lines, n_lines, _ = numbered([e.source for e in equations], _line)
        types, _, self.types = numbered([x.aval for x in operands], lambda aval: aval)
        self.operand_types = np.where(self.operands < 0, -1 - types, types)
        self.tokens = rows_numbered(
            self.families_of * n_lines + self.lines, self.first_operand, self.operand_types
        )
        self._read_uses(n_given, [numbers[x] for x in program.outputs if type(x) is Var])

    def _read_uses(self, n_given: int, outputs: list[int]) -> None:
        """Record definitions and last uses of variables, and cumulated sizes of equations."""
        n = len(self.equations)
        sizes = np.array([*map(_size, self.members)], np.int64)[self.families_of]
        self.sizes = np.concatenate([[0], np.cumsum(sizes)])
        counts = np.diff(self.first_var)
        self.made_at = np.concatenate([np.full(n_given, -1), np.repeat(np.arange(n), counts)])
        self.last_use = np.full(len(self.vars), -1)
        users = np.repeat(np.arange(n), np.diff(self.first_operand))
        is_name = self.operands >= 0
        np.maximum.at(self.last_use, self.operands[is_name], users[is_name])
        self.last_use[outputs] = n

    def loosened(self) -> Search | None:
        """Return the search that ignores lengths of axes, if it has fewer kinds of equations."""
        families = [family_of(primitive, is_ragged=True) for primitive in self.members]
        types = [(aval.dtype, aval.ndim, aval.weak_type) for aval in self.types]
        kinds: dict[Any, int] = {}
        merged = []
        _, firsts, tokens = np.unique(self.tokens, return_index=True, return_inverse=True)
        for i in firsts.tolist():
            operands = self.operand_types[self.first_operand[i] : self.first_operand[i + 1]]
            avals = ((x < 0, types[-1 - x if x < 0 else x]) for x in operands.tolist())
            key = (families[self.families_of[i]], self.lines[i], *avals)
            merged.append(kinds.setdefault(key, len(kinds)))
        if len(kinds) == len(merged):
            return None
        found = copy(self)
        found.tokens = np.array(merged, np.int64)[tokens]
        found.is_ragged = True
        return found

    def families(self) -> list[Family]:
        repeats = Repeats(self.tokens, min(LEAST_OF_ROWS // 2, self.least))
        taken: list[Family] = []
        self.tried: set[bytes] = set()
        self.is_taken = np.zeros(len(self.equations), bool)
        for start, period, length in repeats.runs():
            pending = [(start, length)]
            while pending:
                start, length = pending.pop()
                if self.is_taken[start : start + length].any():
                    continue
                found = self._siblings(start, period, length) or self._run(start, period, length)
                if isinstance(found, str):
                    self._tell(start, period, length, found)
                    continue
                for run in found.runs:
                    repeats.take(run.start, run.stop)
                    self.is_taken[run.start : run.stop] = True
                taken.append(found)
                stop = found.runs[0].stop
                rest = start + length - stop
                if rest > period + LEAST_OF_ROWS // 2 and len(found.runs) == 1:
                    pending.append((stop, rest))
        return taken

    def _tell(self, start: int, period: int, length: int, reason: str) -> None:
        if length - period >= self.least and (environment.text("FUNCGRAD_DEBUG") or "0") != "0":
            where = self.equations[start].source
            print(
                f"funcgrad: {length // period} times {period} equations of {self.program.name} at "
                f"{where} stay unrolled: {reason}",
                file=sys.stderr,
            )

    # From a stretch of equal tokens to a loop.

    def _siblings(self, start: int, period: int, length: int) -> Family | None:
        """All loops of the iterations of a stretch, if they take different numbers of steps."""
        cut = self._narrowest(start, period, length)
        pattern = self.tokens[cut : cut + period]
        if pattern.tobytes() in self.tried:
            return None
        self.tried.add(pattern.tobytes())
        stretches = self._stretches_of(pattern)
        if len({steps for _, steps in stretches}) < 2:
            return None
        begin, steps = max(stretches, key=lambda stretch: stretch[1])
        longest = self._fitted(begin, period, steps, 0)
        if isinstance(longest, str) or longest.varied or longest.stacked:
            return None
        ahead, left = (longest.start - begin) // period, steps - longest.steps
        found = (
            self._alike(longest, begin + ahead * period, steps - left) for begin, steps in stretches
        )
        members = [run for run in found if run is not None]
        if len(members) < LEAST_STEPS or sum(run.saved for run in members) < self.least:
            return None
        family = self._measured(members)
        return None if isinstance(family, str) else family

    def _alike(self, loop: Run, start: int, steps: int) -> Run | None:
        """The loop with the body of another one that begins somewhere else, if it is one."""
        if steps < max((chain.lag for chain, _ in loop.chains.values()), default=1):
            return None
        names, made, made_as, _ = self._operands_of(start, loop.period, steps)
        firsts = start + loop.period * np.arange(steps)
        for column, (equation, result) in loop.local.items():
            is_made = (made[:, column] == firsts + equation) & (made_as[:, column] == result)
            if not is_made.all():
                return None
        chains = {}
        for column, (chain, _) in loop.chains.items():
            before, after = made[: chain.lag, column], slice(chain.lag, None)
            is_made = made[after, column] == firsts[: -chain.lag] + chain.equation
            if not (is_made & (made_as[after, column] == chain.result)).all():
                return None
            if (before >= start).any():
                return None
            chains[column] = chain, tuple(self.vars[i] for i in names[: chain.lag, column])
        fixed = list(loop.fixed)
        if (names[:, fixed] != names[0, fixed]).any() or made[0, fixed].max(initial=-1) >= start:
            return None
        read = self._read_behind(start, loop.period, steps, chains, 1)
        if isinstance(read, str) or read[0] != steps or read[2]:
            return None
        fixed_names = {column: self.vars[names[0, column]] for column in fixed}
        saved = self._saved(start, loop.period, steps)
        return Run(
            start, loop.period, steps, loop.local, chains, fixed_names, {}, read[1], {}, saved
        )

    def _stretches_of(self, pattern: Integers) -> list[tuple[int, int]]:
        """Starts of the stretches in which some tokens follow each other, and how often they do."""
        period = len(pattern)
        places = np.flatnonzero(self.tokens[: len(self.tokens) - period + 1] == pattern[0])
        for i in range(1, period):
            places = places[self.tokens[places + i] == pattern[i]]
        taken = np.cumsum(np.concatenate([[0], self.is_taken]))
        places = places[taken[places + period] == taken[places]]
        ends = np.flatnonzero(np.diff(places, append=-1) != period)
        counts = np.diff(ends, prepend=-1)
        firsts = places[ends] - (counts - 1) * period
        # The end of a pattern may be its beginning: then the longer stretch counts.
        is_used = np.zeros(len(self.tokens), bool)
        found = []
        for i in np.argsort(-counts, kind="stable"):
            first, steps = int(firsts[i]), int(counts[i])
            if not is_used[first : first + steps * period].any():
                is_used[first : first + steps * period] = True
                found.append((first, steps))
        return sorted(found)

    def _run(self, start: int, period: int, length: int) -> Family | str:
        """The loop that a stretch of repeated tokens is, or why it is none."""
        cut = self._narrowest(start, period, length)
        steps = (start + length - cut) // period
        if steps < LEAST_STEPS:
            return f"there are fewer than {LEAST_STEPS} iterations"
        least = self._least(cut, period, steps)
        found = self._fitted(cut, period, steps, least)
        if isinstance(found, str):
            # Each row may read what the one before it has made.
            rows = self._rows(Stretch(cut, period, steps), returns=True)
            wider = found if rows is None else self._fitted_rows(cut, period, steps, rows)
            return wider if isinstance(wider, str) else self._measured([wider])
        lag = max((chain.lag for chain, _ in found.chains.values()), default=1)
        rows = self._rows(found)
        wider = found
        if rows is not None:
            wider = self._fitted_rows(found.start, period, found.steps, rows)
        elif 1 < lag <= _MAX_LAG and steps >= LEAST_STEPS * lag:
            # Several iterations at a time: carried values need not change places.
            wider = self._fitted(cut, period * lag, steps // lag, least)
        return self._measured([found if isinstance(wider, str) else wider])

    def _fitted_rows(self, start: int, period: int, steps: int, rows: tuple[int, int]) -> Run | str:
        """The loop whose iterations are rows of iterations."""
        first, length = rows
        begin, n_rows = start + first * period, (steps - first) // length
        least = self._least(start, period, steps)
        return self._fitted(begin, period * length, n_rows, least)

    def _least(self, start: int, period: int, steps: int) -> int:
        """How many equations a loop must save."""
        body = self.equations[start : start + period]
        n_large = sum(any(x.aval.size > _SMALL for x in e.outputs) for e in body)
        size = self.sizes[start + period] - self.sizes[start]
        is_of_arrays = steps >= MANY_STEPS and 2 * n_large >= size
        return self.least_of_arrays if is_of_arrays else self.least

    def _measured(self, runs: Sequence[Run]) -> Family | str:
        """The loops with the lengths of their arrays, and the places of windows."""
        iterations = self.iterations(runs)
        behind = {key for run in runs for key in run.stacked}
        behind.update((x.equation, x.result) for run in runs for x in run.finals)
        known = self.constants.keys()
        tables = [c for c, names in runs[0].varied.items() if known >= set(names)]
        ragged = extents_of(iterations, runs[0].local, tables, behind, self.is_ragged)
        return ragged if isinstance(ragged, str) else Family(tuple(runs), ragged)

    def iterations(self, runs: Iterable[Run]) -> list[Sequence[Equation]]:
        """The equations of every iteration."""
        return [
            self.equations[i : i + run.period]
            for run in runs
            for i in range(run.start, run.stop, run.period)
        ]

    def _rows(self, run: Stretch, returns: bool = False) -> tuple[int, int] | None:
        """Begin of the first row, and length of the rows, if iterations are those of two loops.

        A loop whose body is another loop and nothing else is one run, whose indices jump back, but
        not to where the first row began.

        Args:
            run: The iterations.
            returns: Whether they may jump back to there, too.
        """
        jumps: Integers | None = None
        moves = returns
        seen: set[bytes] = set()
        for column in self._indices(run):
            steps = np.diff(column, axis=0).reshape(run.steps - 1, -1)
            key = steps.tobytes()
            if key in seen or (steps == steps[0]).all():
                continue
            seen.add(key)
            values, counts = np.unique(steps, axis=0, return_counts=True)
            places = np.flatnonzero((steps != values[counts.argmax()]).any(1))
            if jumps is not None and not np.array_equal(places, jumps):
                return None
            jumps = places
            moves |= bool((column[jumps[0] + 1] != column[jumps[-1] + 1]).any())
        if jumps is None or len(jumps) < LEAST_STEPS - 1:
            return None
        lengths = np.diff(jumps)
        if not moves or (lengths != lengths[0]).any() or lengths[0] < 2:
            return None
        return int(jumps[0] + 1) % int(lengths[0]), int(lengths[0])

    def places(self, j: int, run: Stretch) -> Integers:
        """Begin of the window of an equation along every axis, in all iterations."""
        return places_of(self.equations[j : run.stop : run.period])

    def _indices(self, run: Stretch) -> Iterator[Integers]:
        """The places of every window of the body, and the integers in it, in all iterations."""
        for j in range(run.start, run.start + run.period):
            if read_window(self.equations[j].primitive) is not None:
                yield self.places(j, run)
        first, end = self.first_operand[run.start], self.first_operand[run.start + run.period]
        for column, atom in enumerate(self.atoms[first:end]):
            if type(atom) is Literal and atom.aval.dtype.kind == "i":
                yield np.fromiter(map(_VALUE, self.column(column, run)), np.int64)

    def column(self, number: int, run: Stretch) -> Sequence[Atom]:
        """An operand of the body, as it is in all iterations."""
        first, end = self.first_operand[run.start], self.first_operand[run.stop]
        step = (end - first) // run.steps
        return self.atoms[first + number : end : step]

    def _narrowest(self, start: int, period: int, length: int) -> int:
        """The first equation of an iteration: where the fewest names are alive."""
        middle = start + (length // period - 1) // 2 * period
        last: dict[int, int] = {}
        a, b = self.first_operand[middle], self.first_operand[middle + period]
        users = np.repeat(
            np.arange(middle, middle + period),
            np.diff(self.first_operand[middle : middle + period + 1]),
        )
        for user, number in zip(users.tolist(), self.operands[a:b].tolist(), strict=True):
            if number >= 0 and self.made_at[number] >= start:
                last[number] = user
        # By place within the period; what reaches beyond its end goes on at its beginning.
        changes = np.zeros(2 * period, np.int64)
        for number, user in last.items():
            made = int(self.made_at[number])
            first = (made + 1 - start) % period
            changes[first] += 1
            changes[first + (user - made) % period] -= 1
        alive = np.cumsum(changes).reshape(2, period).sum(0)
        return start + int(np.argmin(alive))

    def _fitted(self, start: int, period: int, steps: int, least: int) -> Run | str:
        """The loop of iterations from ``start`` on, or of most, that saves enough equations."""
        names, made, made_as, offsets = self._operands_of(start, period, steps)
        firsts = start + period * np.arange(steps)[:, None]
        ages = firsts + offsets - made
        middle = steps // 2
        is_same = names[1:] == names[:-1]
        is_shift = (ages[1:] == ages[:-1]) & (made_as[1:] == made_as[:-1])
        is_name = names[0] >= 0
        is_fixed = is_name & is_same[middle - 1]
        is_chain = is_name & ~is_fixed & is_shift[middle - 1] & (made[middle] >= start)
        is_varied = is_name & ~is_fixed & ~is_chain
        places = offsets - ages[middle]
        lags = np.where(is_chain, -(places // period), 0)
        if lags.max(initial=0) > steps // 2:
            return "values are handed on over too many iterations"
        low_same, high_same = _around(is_same, middle)
        low_shift, high_shift = _around(is_shift, middle)
        made_in = np.where(made[middle] >= start, (made[middle] - start) // period + 1, 0)
        lows = np.where(is_fixed, np.maximum(low_same, made_in), 0)
        lows = np.where(is_chain, np.maximum(low_shift - lags, 0), lows)
        highs = np.where(is_fixed, high_same, np.where(is_chain, high_shift, steps))
        low, high = int(lows.max(initial=0)), int(highs.min(initial=steps))
        while low < high and not self._begins(made, lags, start + low * period, low):
            low += 1
        if high - low < LEAST_STEPS:
            return "operands do not change regularly from one iteration to the next"
        begin = start + low * period
        if made[low:high, is_varied].max(initial=-1) >= begin:
            return "iterations read what earlier ones have made, in no regular order"
        chained = {
            int(c): (
                Chain(int(places[c] % period), int(made_as[middle, c]), int(lags[c])),
                tuple(self.vars[i] for i in names[low : low + lags[c], c]),
            )
            for c in np.flatnonzero(lags > 0)
        }
        read = self._read_behind(begin, period, high - low, chained, LEAST_STEPS)
        if isinstance(read, str):
            return read
        steps_kept, finals, stacked = read
        high = low + steps_kept
        varied = {
            int(c): [self.vars[i] for i in names[low:high, c]] for c in np.flatnonzero(is_varied)
        }
        saved = self._saved(begin, period, steps_kept)
        reason = self._refused(varied, made[low:high], saved, least)
        if reason:
            return reason
        made_here = np.flatnonzero(is_chain & (lags == 0))
        local = {int(c): (int(places[c]), int(made_as[middle, c])) for c in made_here}
        fixed = {int(c): self.vars[names[low, c]] for c in np.flatnonzero(is_fixed)}
        return Run(begin, period, steps_kept, local, chained, fixed, varied, finals, stacked, saved)

    def _saved(self, start: int, period: int, steps: int) -> int:
        return int(self.sizes[start + period] - self.sizes[start]) * (steps - 1)

    def _operands_of(self, start: int, period: int, steps: int) -> tuple[Integers, ...]:
        """Names of operands by iteration and column, by which results of which equations.

        And, by column, the equation of the body that reads it.
        """
        a, b = int(self.first_operand[start]), int(self.first_operand[start + period])
        names = self.operands[a : a + steps * (b - a)].reshape(steps, b - a)
        made = np.where(names < 0, -1, self.made_at[names])
        made_as = np.where(names < 0, 0, self.made_as[names])
        offsets = np.repeat(
            np.arange(period), np.diff(self.first_operand[start : start + period + 1])
        )
        return names, made, made_as, offsets

    def _begins(self, made: Integers, lags: Integers, begin: int, low: int) -> bool:
        """Whether all that the first iterations take from earlier ones was made before."""
        return all(
            made[low : low + lag, lags == lag].max(initial=-1) < begin
            for lag in sorted(set(lags.tolist()))
            if lag
        )

    def _read_behind(
        self, begin: int, period: int, steps: int, chained: dict[int, tuple[Chain, Any]], least: int
    ) -> tuple[int, dict[Chain, Var], dict[tuple[int, int], list[int]]] | str:
        """How many of the iterations fit, and what is read behind them."""
        longest: dict[tuple[int, int], int] = {}
        for chain, _ in chained.values():
            key = (chain.equation, chain.result)
            longest[key] = max(longest.get(key, 1), chain.lag)
        while steps >= least:
            end = begin + steps * period
            first, stop = self.first_var[begin], self.first_var[end]
            later = first + np.flatnonzero(self.last_use[first:stop] >= end)
            groups: dict[tuple[int, int], list[tuple[int, Var]]] = {}
            for number in later.tolist():
                step, equation = divmod(int(self.made_at[number]) - begin, period)
                key = (equation, int(self.made_as[number]))
                groups.setdefault(key, []).append((step, self.vars[number]))
            finals: dict[Chain, Var] = {}
            stacked: dict[tuple[int, int], list[int]] = {}
            shortest = steps
            for key, uses in groups.items():
                reach = longest.get(key, 1)
                if all(steps - step <= reach for step, _ in uses):
                    finals.update((Chain(*key, steps - step), var) for step, var in uses)
                elif 4 * len(uses) >= steps or steps * uses[0][1].aval.nbytes <= MAX_STACKED:
                    stacked[key] = [step for step, _ in uses]
                else:
                    shortest = min(shortest, *(s + 1 for s, _ in uses if steps - s > reach))
            if shortest == steps:
                return steps, finals, stacked
            steps = shortest
        return "results of a few iterations are read behind them"

    def _refused(self, varied: dict[int, list[Var]], made: Integers, saved: int, least: int) -> str:
        """Why the loop is not worth it, or an empty string."""
        copied = 0
        for column, names in varied.items():
            places = made[:, column]
            if places[0] >= 0 and self.is_taken[places].all():
                least = min(least, LEAST_OF_ROWS)
            elif not self.constants.keys() >= set(names):
                copied += names[0].aval.nbytes * len(names)
        if copied > MAX_STACKED:
            return f"{copied} bytes of arrays that are different ones in every iteration"
        if saved < least:
            return f"they would save fewer than {least} equations"
        return ""


_VALUE = attrgetter("value")


def _line(source: Any) -> int:
    """The key of a line, whatever the blocks in which it was executed."""
    return 0 if source is None else id(source.unscoped)


def _size(primitive: Primitive) -> int:
    """How many equations an operation is."""
    if not primitive.is_composite:
        return n_operations(primitive)
    return 1 + sum(_length(x) for x in primitive.params().values() if isinstance(x, Program))


def _length(program: Program) -> int:
    return program.memo("length", lambda: sum(_size(e.primitive) for e in program.equations))


def _around(is_equal: Any, middle: int) -> tuple[Integers, Integers]:
    """The rows around ``middle`` that are like it, by column: the first, and the end."""
    n = len(is_equal)
    below, above = ~is_equal[:middle][::-1], ~is_equal[middle:]
    low = middle - np.where(below.any(0), below.argmax(0), middle)
    high = middle + 1 + np.where(above.any(0), above.argmax(0) if n > middle else 0, n - middle)
    return low, high


def family_of(primitive: Primitive, is_ragged: bool = False) -> Any:
    """The key that primitives share which differ by the place of a window alone.

    Those that hold programs share it with others that hold equal programs.

    Args:
        primitive: The operation.
        is_ragged: Whether lengths of arrays may differ as well.
    """
    window = read_window(primitive)
    if window is not None:
        return (type(primitive), *window[2 if is_ragged else 1 :])
    others = but_lengths(primitive) if is_ragged else None
    return _primitive(primitive) if others is None else (type(primitive), _contents(others))


def _contents(value: Any) -> Any:
    """A parameter, in which equal programs are equal."""
    if isinstance(value, Program):
        return value.memo("contents", lambda: _contents_of(value))
    return tuple(map(_contents, value)) if isinstance(value, tuple) else value


def _contents_of(program: Program) -> Any:
    """All that makes up a program but its names."""
    numbers: dict[Atom, int] = {}

    def named(variables: Iterable[Var]) -> Any:
        for var in variables:
            numbers[var] = len(numbers)
        return tuple(var.aval for var in variables)

    def read(atom: Atom) -> Any:
        if type(atom) is Var:
            return numbers[atom]
        value = atom.value  # type: ignore[union-attr]
        return atom.aval, type(value), np.asarray(value).tobytes()

    given = named(program.inputs)
    constants = [(a.shape, a.dtype, a.tobytes()) for _, a in program.constants]
    named([var for var, _ in program.constants])
    equations = []
    for e in program.equations:
        source = None if e.source is None else id(e.source.unscoped)
        inputs = tuple(map(read, e.inputs))
        equations.append((_primitive(e.primitive), source, inputs, named(e.outputs)))
    return (given, tuple(constants), tuple(equations), tuple(map(read, program.outputs)))


def _primitive(primitive: Primitive) -> Any:
    if not primitive.is_composite:
        return primitive
    return (type(primitive), *map(_contents, primitive.params().items()))
