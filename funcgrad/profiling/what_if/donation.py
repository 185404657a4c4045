"""Results that take the memory of arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from funcgrad.api.compilation import jit
from funcgrad.base.pytree import tree_flatten
from funcgrad.core.avals import aval_of
from funcgrad.profiling.what_if.trial import Subject, Trial, compared, trial

_LEAST = 1 << 12
"""Bytes of an argument that is worth donating."""


@trial("donated arguments")
def donation(subject: Subject) -> Iterator[Trial]:
    """A compiled function with the arguments donated that results can replace.

    Each call is given a copy, in both ways: the arguments are needed again.
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

    def copying(run: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: run(*(_copied(x) if k in chosen else x for k, x in enumerate(subject.args)))

    before, after = compared(copying(f), copying(donating))
    what = f"donate_argnums={tuple(chosen)}"
    yield Trial("donated arguments", what, None, before, after, "with a copy of them each time")


def _copied(tree: Any) -> Any:
    leaves, structure = tree_flatten(tree)
    return structure.unflatten([np.array(x) for x in leaves])
