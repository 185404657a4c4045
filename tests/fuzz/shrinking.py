"""Makes a program that fails smaller, as long as it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.language import PLAIN, Argument, Program, Step

Fails = Callable[[Program], bool]


def shrunk(program: Program, fails: Fails, seconds: float = 60.0) -> Program:
    """The smallest program found that fails.

    Args:
        program: One that fails.
        fails: Whether another one does, too.
        seconds: When to be content.
    """
    end = time.monotonic() + seconds
    while True:
        for candidate in _smaller(program):
            if time.monotonic() > end:
                return program
            candidate = without_unused(candidate)
            if _size(candidate) < _size(program) and _runs(candidate) and fails(candidate):
                program = candidate
                break
        else:
            return program


def _size(program: Program) -> tuple[int, ...]:
    steps = list(program.every())
    return (
        sum(1 + len(s.blocks) for s in steps),
        len(program.outputs),
        len(program.args),
        sum(a.value.size + a.other.size for a in program.args.values()),
        sum(a.layout != "plain" for a in program.args.values()),
        sum(len(line) for line in program.lines),
        sum(len(a.text) for a in program.args.values()),
    )


def _runs(program: Program) -> bool:
    try:
        with np.errstate(all="ignore"):
            program.reference(*[a.laid_out() for a in program.args.values()])
    except Exception:
        return False
    return True


def without_unused(program: Program) -> Program:
    """Only what leads to results; at least one argument stays."""
    needed = set(program.outputs)
    kept: list[Step] = []
    for step in reversed(program.steps):
        if step.out in needed:
            kept.append(step)
            needed |= step.reads
    args = {i: a for i, a in program.args.items() if i in needed}
    args = args or dict(list(program.args.items())[:1])
    return replace(program, args=args, steps=tuple(reversed(kept)))


def _values(program: Program, lane: int) -> dict[int, Any]:
    """What the variables of a program hold."""
    scope: dict[str, Any] = {"np": np, "m": PLAIN}
    scope |= {f"v{i}": a.laid_out(lane) for i, a in program.args.items()}
    with np.errstate(all="ignore"):
        for step in program.steps:
            exec("\n".join(step.lines()), scope)
    numbers = [*program.args, *(step.out for step in program.steps)]
    return {i: np.asarray(scope[f"v{i}"]) for i in numbers}


def _smaller(program: Program) -> Iterator[Program]:
    for k in range(len(program.outputs)):
        if len(program.outputs) > 1:
            yield replace(program, outputs=(program.outputs[k],))
    for k in range(len(program.outputs)):
        rest = (*program.outputs[:k], *program.outputs[k + 1 :])
        if rest:
            yield replace(program, outputs=rest)
    yield from _with_other_results(program)
    yield from _with_arguments_for_steps(program)
    yield from _with_smaller_blocks(program)
    yield from _with_simpler_arguments(program)


def _with_other_results(program: Program) -> Iterator[Program]:
    """A result on the way instead of the last one."""
    if len(program.outputs) == 1:
        for step in program.steps:
            if step.out != program.outputs[0]:
                yield replace(program, outputs=(step.out,))


def _with_arguments_for_steps(program: Program) -> Iterator[Program]:
    """What a step gives is given by the caller."""
    try:
        lanes = [_values(program, lane) for lane in (0, 1)]
    except Exception:
        return
    for k, step in reversed(list(enumerate(program.steps))):
        value, other = (lane[step.out] for lane in lanes)
        steps = (*program.steps[:k], *program.steps[k + 1 :])
        twin = next(
            (
                i
                for i, v in lanes[0].items()
                if i < step.out and v.shape == value.shape and v.dtype == value.dtype
            ),
            None,
        )
        if twin is not None:
            yield _renamed(replace(program, steps=steps), step.out, twin)
        args = {**program.args, step.out: Argument(value, other)}
        yield replace(program, args=dict(sorted(args.items())), steps=steps)


def _renamed(program: Program, old: int, new: int) -> Program:
    def number(i: int) -> int:
        return new if i == old else i

    def step(s: Step) -> Step:
        blocks = tuple(
            replace(b, steps=tuple(step(x) for x in b.steps), reads=tuple(map(number, b.reads)))
            for b in s.blocks
        )
        return replace(s, operands=tuple(map(number, s.operands)), blocks=blocks)

    return replace(
        program,
        steps=tuple(step(s) for s in program.steps),
        outputs=tuple(map(number, program.outputs)),
    )


def _with_smaller_blocks(program: Program) -> Iterator[Program]:
    for k, step in enumerate(program.steps):
        for smaller in _smaller_step(step):
            yield replace(program, steps=(*program.steps[:k], smaller, *program.steps[k + 1 :]))


def _smaller_step(step: Step) -> Iterator[Step]:
    """Without one of the steps inside, whose result some other variable replaces."""
    for b, block in enumerate(step.blocks):
        for i, inner in reversed(list(enumerate(block.steps))):
            rest = (*block.steps[:i], *block.steps[i + 1 :])
            others = [*inner.operands, *block.params, *step.operands]
            for other in dict.fromkeys(others):
                holder = replace(step, blocks=(replace(block, steps=rest),))
                fake = Program({}, (holder,), ())
                (changed,) = _renamed(fake, inner.out, other).steps
                yield replace(
                    step, blocks=(*step.blocks[:b], *changed.blocks, *step.blocks[b + 1 :])
                )
            for smaller in _smaller_step(inner):
                found = replace(block, steps=(*block.steps[:i], smaller, *block.steps[i + 1 :]))
                yield replace(step, blocks=(*step.blocks[:b], found, *step.blocks[b + 1 :]))
        for read in range(len(block.reads)):
            for other in block.params:
                if other < block.reads[read]:
                    reads = (*block.reads[:read], other, *block.reads[read + 1 :])
                    found = replace(block, reads=reads)
                    yield replace(step, blocks=(*step.blocks[:b], found, *step.blocks[b + 1 :]))


def _with_simpler_arguments(program: Program) -> Iterator[Program]:
    for i, given in program.args.items():
        for simpler in _simpler(given):
            yield replace(program, args={**program.args, i: simpler})


def _simpler(given: Argument) -> Iterator[Argument]:
    if given.layout != "plain":
        yield Argument(given.value, given.other)
    for axis, n in enumerate(given.value.shape):
        if n > 1:
            for part in (slice(1), slice(n // 2), slice(n - 1)):
                at = (slice(None),) * axis + (part,)
                yield replace(given, value=given.value[at], other=given.other[at])
    if not np.array_equal(given.value, given.other, equal_nan=True):
        yield replace(given, other=given.value)
    if given.value.dtype.kind in "fc":
        simple = [np.ones_like(given.value)]
        with np.errstate(all="ignore"):
            simple += [np.round(given.value), np.round(given.value * 4) / 4]
        for value in simple:
            if len(repr(value.tolist())) < len(repr(given.value.tolist())):
                yield Argument(value, value, given.layout)
    elif given.value.any():
        yield Argument(np.zeros_like(given.value), np.zeros_like(given.value), given.layout)
