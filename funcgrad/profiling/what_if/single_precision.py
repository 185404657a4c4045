"""Arguments in single precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from funcgrad.base.pytree import tree_flatten
from funcgrad.profiling.what_if.trial import Subject, Trial, compared, trial

_NARROW = {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}


@trial("float32")
def single_precision(subject: Subject) -> Iterator[Trial]:
    """Arguments in float32, with the largest relative difference of the results."""
    leaves = [
        x.astype(_NARROW[x.dtype]) if isinstance(x, np.ndarray) and x.dtype in _NARROW else x
        for x in subject.leaves
    ]
    if all(new is old for new, old in zip(leaves, subject.leaves, strict=True)):
        return
    narrow = subject.with_leaves(leaves)
    before, after = compared(subject.call, narrow)
    pairs = zip(tree_flatten(subject.call())[0], tree_flatten(narrow())[0], strict=True)
    error = max((_difference(a, b) for a, b in pairs), default=0.0)
    note = f"results differ by {error:.1g} of the largest"
    yield Trial("float32", "arguments in float32", None, before, after, note)


def _difference(a: object, b: object) -> float:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "fc" or not a.size:
        return 0.0
    largest = float(np.max(np.abs(a)))
    return float(np.max(np.abs(a - b))) / largest if largest else 0.0
