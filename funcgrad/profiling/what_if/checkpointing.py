"""Residuals that are computed again instead of kept."""

from __future__ import annotations

from collections.abc import Iterator

from funcgrad.api.checkpointing import checkpoint
from funcgrad.api.differentiation import grad, value_and_grad
from funcgrad.base.transformed import MadeOf
from funcgrad.observers.limits import format_bytes
from funcgrad.profiling.what_if.trial import Subject, Trial, compared, trial


@trial("checkpoint")
def checkpointing(subject: Subject) -> Iterator[Trial]:
    """A gradient of the function in a checkpoint, with the memory of both if they compile."""
    if not any(f.transformation in (grad, value_and_grad) for f in _layers(subject.f)):
        return
    other = subject.remade(checkpoint)
    before, after = compared(subject.call, subject.calling(other))
    sizes = [_memory(f, subject) for f in (subject.f, other)]
    note = f"memory {format_bytes(sizes[0])} -> {format_bytes(sizes[1])}" if all(sizes) else ""
    yield Trial("checkpoint", "the function in a checkpoint", None, before, after, note)


def _layers(f: object) -> Iterator[MadeOf]:
    while isinstance(f, MadeOf):
        yield f
        f = f.original


def _memory(f: object, subject: Subject) -> int:
    """Bytes of intermediate results of a compiled function."""
    lower = getattr(f, "lower", None)
    if lower is None:
        return 0
    analysis = lower(*subject.args, **subject.kwargs).compile().memory_analysis()
    return analysis.temp_size_in_bytes
