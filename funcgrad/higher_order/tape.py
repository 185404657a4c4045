"""Running a loop backwards whose number of steps nobody knew.

A pull runs the loop again in chunks of steps, each a `Scan` whose residuals are kept: a tape that
grows. With a limit on the number of checkpoints only the states at the starts of some chunks are
kept, at distances that double whenever there are too many, and the others are computed again from
them, stretch by stretch in the same way (Griewank and Walther, Evaluating Derivatives, 2008,
chapter 12).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, Protocol

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.program import Program, evaluate
from funcgrad.errors import NonFiniteError
from funcgrad.higher_order.jit import scatter
from funcgrad.higher_order.lanes import needs_its_values
from funcgrad.higher_order.progress import backward, progress_bar
from funcgrad.higher_order.scan import Scan, cut
from funcgrad.observers.nonfinite import add_step, watched_kinds
from funcgrad.primitives.elementwise import bitwise_and
from funcgrad.primitives.families import instantiate
from funcgrad.transforms.linearize import LinearMap, linearize_flat
from funcgrad.transforms.programs import stage_closed

Mask = tuple[bool, ...]

FIRST_CHUNK = 16
LAST_CHUNK = 1024
CHUNK_BYTES = 1 << 22
"""Steps per chunk of a tape: from the first, doubling, to the last; and, where memory is limited,
bytes of the states of one chunk."""


class RecordedLoop(Protocol):
    """A `while_loop` as its tape records it."""

    @property
    def condition(self) -> Program: ...
    @property
    def body(self) -> Program: ...
    @property
    def n_cond(self) -> int: ...
    @property
    def checkpoint_every(self) -> int | None: ...
    @property
    def max_checkpoints(self) -> int | None: ...
    @property
    def progress(self) -> str | None: ...
    def split(self, args: Sequence[Any], /) -> tuple[list[Any], list[Any], list[Any]]: ...
    def advance_if(
        self, is_active: Any, consts: Sequence[Any], carry: Sequence[Any], /
    ) -> list[Any]: ...
    def advance_and_choose(
        self, is_active: Any, consts: Sequence[Any], carry: Sequence[Any], /
    ) -> list[Any]: ...


class Tape:
    """The states of a loop, recorded so that it can be run backwards once.

    Args:
        loop: The loop.
        active: Which of its arguments have tangents.
        primals: Its arguments.
    """

    def __init__(self, loop: RecordedLoop, active: Mask, primals: Sequence[Any]) -> None:
        self.loop = loop
        cond_consts, body_consts, carry = loop.split(primals)
        self.consts = [*cond_consts, *body_consts]
        _, const_active, carry_active = loop.split(active)
        self.is_active = [*(False for _ in cond_consts), *const_active, *carry_active, False]
        self.n_carry = len(carry)
        self.carry_active = carry_active
        self.state = [*carry, self._holds(cond_consts, carry)]
        self.n_chunks = 0

    def _holds(self, consts: Sequence[Any], carry: Sequence[Any]) -> Any:
        return np.bool_(evaluate(self.loop.condition, [*consts, *carry])[0])

    def _chunk(self, length: int) -> Scan:
        """Some steps of the loop; those after its end change nothing."""
        return self.loop.body.memo(("chunk", length, self.loop), lambda: self._make_chunk(length))

    def _make_chunk(self, length: int) -> Scan:
        loop = self.loop
        n_cond, n_consts = loop.n_cond, len(self.consts)
        advance = loop.advance_if if needs_its_values(loop.body) else loop.advance_and_choose

        def step(*args: Any) -> list[Any]:
            consts, state = cut(args, n_consts)
            *carry, is_active = state
            carry = advance(is_active, consts[n_cond:], carry)
            holds = evaluate(loop.condition, [*consts[:n_cond], *carry])[0]
            return [*carry, bitwise_and.bind(is_active, holds)]

        avals = [aval_of(x).strong() for x in (*self.consts, *self.state)]
        body = stage_closed(step, avals, loop.body.name)
        return Scan(body, n_consts, self.n_carry + 1, length, False)

    def pull(self, cts: Sequence[Any]) -> list[Any]:
        """Cotangents of the active arguments."""
        limit = self.loop.max_checkpoints
        recorded = self._record() if limit is None else self._record_sparsely(limit)
        if self.loop.progress is None:
            return self._pull(recorded, cts)
        with closing(_shown(self, recorded, self.loop.progress)) as shown:
            return self._pull(shown, cts)

    def _pull(self, chunks: Iterable[LinearMap], cts: Sequence[Any]) -> list[Any]:
        n_consts = len(self.consts)
        sums: list[Any] = [None] * n_consts
        carried = scatter(cts, self.carry_active)
        for later, linear in enumerate(chunks):
            try:
                found = linear.pull([*carried, None])
            except NonFiniteError as error:
                add_step(error, self.n_chunks - 1 - later, self.loop.body.name)
                raise
            carried = found[n_consts:-1]
            sums = [
                s if c is None else c if s is None else s + c
                for s, c in zip(sums, found[:n_consts], strict=True)
            ]
        given = [*sums, *carried]
        values = [*self.consts, *self.state[:-1]]
        return [
            instantiate(c, x) for c, x, on in zip(given, values, self.is_active, strict=False) if on
        ]

    def _linearize(self, state: Sequence[Any], length: int) -> tuple[list[Any], LinearMap]:
        chunk = self._chunk(length)
        return linearize_flat(
            lambda *xs: chunk.bind(*xs), [*self.consts, *state], self.is_active, "while_loop"
        )

    def _chunk_length(self, default: int) -> int:
        """Steps per chunk; one at a time where every operation is watched."""
        return 1 if watched_kinds() else self.loop.checkpoint_every or default

    def _record(self) -> list[LinearMap]:
        """All chunks, the last one first."""
        chunks = []
        length = self._chunk_length(FIRST_CHUNK)
        while self.state[-1]:
            try:
                self.state, linear = self._linearize(self.state, length)
            except NonFiniteError as error:
                add_step(error, self.n_chunks, self.loop.body.name)
                raise
            chunks.append(linear)
            self.n_chunks += 1
            if self.loop.checkpoint_every is None and length > 1:
                length = min(2 * length, LAST_CHUNK)
        return chunks[::-1]

    def _record_sparsely(self, limit: int) -> Any:
        """Record one chunk after the other, from at most ``limit`` states; see `_record`."""
        nbytes = sum(np.asarray(x).nbytes for x in self.state)
        length = self._chunk_length(min(max(CHUNK_BYTES // nbytes, 1), LAST_CHUNK))
        chunk = self._chunk(length)
        kept: list[list[Any]] = []
        stride, count = 1, 0
        while self.state[-1]:
            if count % stride == 0:
                kept.append(self.state)
                if len(kept) > max(limit, 1):
                    kept = kept[::2]
                    stride *= 2
            self.state = chunk.bind(*self.consts, *self.state)
            count += 1
        self.n_chunks = count
        while kept:
            start = (len(kept) - 1) * stride
            yield from self._backwards(chunk, kept.pop(), min(stride, count - start), limit)

    def _backwards(self, chunk: Scan, state: list[Any], count: int, limit: int) -> Any:
        """The chunks of a stretch, the last one first, with at most ``limit`` states at a time."""
        if count == 1:
            yield self._linearize(state, chunk.length)[1]
            return
        stride = -(-count // max(limit, 2))
        states = [state]
        for i in range(1, (count - 1) // stride * stride + 1):
            state = chunk.bind(*self.consts, *state)
            if i % stride == 0:
                states.append(state)
        while states:
            start = (len(states) - 1) * stride
            yield from self._backwards(chunk, states.pop(), min(stride, count - start), limit)


def _shown(tape: Tape, chunks: Iterable[LinearMap], label: str) -> Generator[LinearMap, None, None]:
    """The chunks, the last one first, with a bar that shows how many are left."""
    bar = None
    try:
        for linear in chunks:
            if bar is None:  # now they have been counted
                bar = progress_bar(backward(label), tape.n_chunks, "part")
            yield linear
            bar.update()
    finally:
        if bar is not None:
            bar.close()
