"""Symbolic factorisation of sparse matrices of one pattern, for elimination without pivoting.

The order of unknowns is SuperLU's for symmetric patterns (multiple minimum degree). Each column of
the factors has the pattern of its own entries and of the columns whose first entry below it is in
its row (the elimination tree: J. W. H. Liu, SIAM J. Matrix Anal. Appl. 11 (1990) 134).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from funcgrad.lowering import ELIMINATION_HEAD, GROUP_ROWS
from funcgrad.primitives.sparse import Pattern

ORDERING: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True},
    "drop_tol": 1.0, "fill_factor": 1.0,
}  # fmt: skip
"""Options of SuperLU: pivots on the diagonal, and next to nothing of the factors."""

MOST_FILLED = 2
"""How many times as many columns as its first row a group has at most, and a few."""


def elimination_table(pattern: Pattern, most_work: float = np.inf) -> Any:
    """The table of a pattern that has its diagonal, for `SparseFactor`.

    Args:
        pattern: The pattern.
        most_work: Multiplications beyond which there is no table, but ``None``.
    """
    n = pattern.shape[0]
    order = _order(pattern)
    place = np.argsort(order)
    rows, columns = place[pattern.rows], place[pattern.indices]
    below = _patterns(n, rows, columns, most_work)
    if below is None:
        return None
    firsts, behind, lengths = _groups(n, below)
    count = len(lengths)
    of_row = np.repeat(np.arange(count), np.diff(firsts))
    # Pairs of groups of which the first one is reduced by the second: rows behind ascend.
    targets, sources = of_row[behind], np.repeat(np.arange(count), lengths)
    is_new = np.diff(targets * count + sources, prepend=-1) != 0
    targets, sources = targets[is_new], sources[is_new]
    by_target = np.argsort(targets, kind="stable")
    targets, sources = targets[by_target], sources[by_target]
    widths = np.diff(firsts)
    pivots = _ranges(firsts[sources], widths[sources])
    own = np.concatenate([np.arange(n), behind])
    group = np.concatenate([of_row, np.repeat(np.arange(count), lengths)])
    stored = own[np.argsort(group, kind="stable")]
    by_group = np.argsort(of_row[rows], kind="stable")
    each = (
        widths + lengths,
        np.bincount(targets, minlength=count),
        np.bincount(targets, widths[sources], minlength=count).astype(np.int64),
        np.bincount(of_row[rows], minlength=count),
    )
    records = np.stack([firsts, *(np.append(0, np.cumsum(x)) for x in each)], 1)
    places = columns * GROUP_ROWS + rows - firsts[of_row[rows]]
    parts = (records.ravel(), stored, sources, pivots, places[by_group], by_group, order)
    head = len(ELIMINATION_HEAD) + np.cumsum([0, *map(len, parts[:-1])])
    return np.concatenate([[n, count], head, *parts]).astype(np.int32)


def _ranges(starts: Any, lengths: Any) -> Any:
    """The numbers of several ranges, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


def _order(pattern: Pattern) -> Any:
    """The order of unknowns."""
    places = pattern.matrix(np.ones(pattern.size))
    both = scipy.sparse.csc_array(places + places.T)
    both.data[:] = -1
    # The numbers do not matter: with these no pivot vanishes.
    diagonal = scipy.sparse.diags_array(1 - 2 * both.sum(0))
    factors = scipy.sparse.linalg.spilu(scipy.sparse.csc_array(both + diagonal), **ORDERING)
    return np.argsort(factors.perm_c)


def _patterns(n: int, rows: Any, columns: Any, most_work: float) -> list[set[int]] | None:
    """For each column of the factors the rows below its diagonal."""
    work = 0
    found: list[set[int]] = [set() for _ in range(n)]
    later, earlier = np.maximum(rows, columns), np.minimum(rows, columns)
    for i, j in zip(later.tolist(), earlier.tolist(), strict=True):
        found[j].add(i)
    for j, own in enumerate(found):
        own.discard(j)
        work += len(own) ** 2
        if work > most_work:
            return None
        if own:
            first = min(own)
            found[first] |= own
            found[first].discard(first)
    return found


def _groups(n: int, below: list[set[int]]) -> tuple[Any, Any, Any]:
    """First rows of groups, and one more; the columns behind their rows, and how many each has."""
    firsts: list[int] = []
    behind: list[int] = []
    lengths: list[int] = []
    j = 0
    while j < n:
        first, most = j, MOST_FILLED * len(below[j]) + GROUP_ROWS
        j += 1
        while j < n and j - first < GROUP_ROWS and j in below[j - 1] and len(below[j]) <= most:
            j += 1
        firsts.append(first)
        behind += sorted(below[j - 1])
        lengths.append(len(below[j - 1]))
    return np.array([*firsts, n]), np.array(behind, np.int64), np.array(lengths)
