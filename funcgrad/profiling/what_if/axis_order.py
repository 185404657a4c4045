"""Arguments with their axes in another order in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from funcgrad.api.arguments import leaf_paths
from funcgrad.api.compilation import jit
from funcgrad.base.pytree import tree_unflatten
from funcgrad.profiling.what_if.trial import Subject, Trial, compared, trial

_LEAST = 1 << 12
"""Elements of an array whose order may matter."""
_MOST = 4
"""Arrays that are tried, the largest ones."""


@trial("axis order")
def axis_order(subject: Subject) -> Iterator[Trial]:
    """Each large argument with its last axis first, of a compiled function."""
    f: Any = subject.f
    if getattr(f, "transformation", None) is not jit:
        return
    paths = leaf_paths(subject.args, "args") + leaf_paths(subject.kwargs, "kwargs")
    large = [
        k
        for k, x in enumerate(subject.leaves)
        if isinstance(x, np.ndarray) and x.ndim > 1 and x.size >= _LEAST and x.dtype.kind in "fc"
    ]
    large.sort(key=lambda k: -subject.leaves[k].size)
    inner = f.original
    for k in large[:_MOST]:

        def transposed(*leaves: Any, k: int = k) -> Any:
            given = [np.moveaxis(x, 0, -1) if i == k else x for i, x in enumerate(leaves)]
            args, kwargs = tree_unflatten(subject.tree, given)
            return inner(*args, **kwargs)

        leaves = list(subject.leaves)
        leaves[k] = np.ascontiguousarray(np.moveaxis(leaves[k], -1, 0))
        other = jit(transposed, threads=f.options["threads"])
        before, after = compared(subject.call, lambda run=other, xs=leaves: run(*xs))  # type: ignore[misc]
        what = f"the last axis of {paths[k]} first in memory"
        yield Trial("axis order", what, None, before, after)
