"""Results that take the memory of arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.api.compilation import jit
from funcgrad.base.pytree import tree_flatten
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.profiling.what_if.trial import Subject, Trial, compared, trial

_LEAST = 1 << 12
"""Bytes of an argument that is worth donating."""


@trial("donated arguments")
def donation(subject: Subject) -> Iterator[Trial]:
    """Donate the arguments of a compiled function whose buffers results can take.

    In both ways each call is given what the last one returned, as in a loop of updates.
    """
    f: Any = subject.f
    if getattr(f, "transformation", None) is not jit:
        return
    options = f.options
    if options["donate_argnums"] or options["donate_argnames"] or subject.kwargs:
        return
    results = Counter(aval_of(x).strong() for x in tree_flatten(subject.call())[0])
    chosen = []
    for k, arg in enumerate(subject.args):
        kinds = Counter(aval_of(x).strong() for x in tree_flatten(arg)[0])
        nbytes = sum(kind.nbytes * n for kind, n in kinds.items())
        if nbytes >= _LEAST and kinds <= results:
            results -= kinds
            chosen.append(k)
    static = options["static_argnums"]
    if not chosen or static is not None:
        return
    donating = jit(f.original, **{**options, "donate_argnums": tuple(chosen)})

    before, after = compared(_chained(f, subject, chosen), _chained(donating, subject, chosen))
    what = f"donate_argnums={tuple(chosen)}"
    note = "in a loop in which results become these arguments"
    yield Trial("donated arguments", what, None, before, after, note)


def _chained(
    run: Callable[..., Any], subject: Subject, chosen: Sequence[int]
) -> Callable[[], None]:
    """Call a function with some of its last results in the place of arguments."""
    args = list(subject.args)
    parts = {k: tree_flatten(args[k]) for k in chosen}
    for k, (leaves, structure) in parts.items():
        args[k] = structure.unflatten([np.array(x) for x in leaves])

    def call() -> None:
        results = tree_flatten(run(*args))[0]
        for k, (leaves, structure) in parts.items():
            args[k] = structure.unflatten([_taken(results, aval_of(x).strong()) for x in leaves])

    return call


def _taken(results: list[Any], aval: ShapedArray) -> Any:
    """The first result of a type, which is removed."""
    return results.pop(next(i for i, x in enumerate(results) if aval_of(x).strong() == aval))
