"""Acyclic colourings of symmetric patterns, whose entries follow from each other.

Any two colours induce a forest: no cycle of vertices has two colours only. Products with the
colours then have, in each tree, the entries of the edges of a vertex as a sum. That of a leaf is
alone; taken off the sum of the vertex beyond, it leaves a smaller tree. Fewer colours are needed
than where one of each pair of mirrored entries has to be alone, and errors of rounding add up along
the trees.

Source: A. H. Gebremedhin, A. Tarafdar, F. Manne, A. Pothen, "New acyclic and star coloring
algorithms with application to computing Hessians", SIAM J. Sci. Comput. 29 (2007) 1042, algorithms
3.1 and 4.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax


def acyclic_colors(matrix: Any, order: Any) -> Any:
    """Colours of the vertices of a symmetric pattern, greedily in an order."""
    starts, neighbours = matrix.indptr.tolist(), matrix.indices.tolist()
    n = len(order)
    colors = [-1] * n
    # For each vertex and each colour of its neighbours: the tree that joins them, by one of its
    # members, which is followed until it is its own.
    trees: list[dict[int, int]] = [{} for _ in range(n)]
    joined: list[int] = []

    def root(tree: int) -> int:
        while joined[tree] != tree:
            joined[tree] = tree = joined[joined[tree]]
        return tree

    def tree_of(v: int, color: int) -> int:
        found = trees[v].get(color)
        if found is None:
            found = trees[v][color] = len(joined)
            joined.append(found)
        return root(found)

    for v in order.tolist():
        own = [w for w in neighbours[starts[v] : starts[v + 1]] if w != v and colors[w] >= 0]
        taken = {colors[w] for w in own}
        met: set[int] = set()
        for w in own:
            for color, tree in trees[w].items():
                found = root(tree)
                if found in met:  # by another neighbour: with this colour v would close a cycle
                    taken.add(color)
                met.add(found)
        color = 0
        while color in taken:
            color += 1
        colors[v] = color
        for w in own:
            joined[tree_of(v, colors[w])] = tree_of(w, color)
    return np.array(colors, np.int64)


class Substitution:
    """The order in which entries follow from products.

    Args:
        matrix: A symmetric pattern, by sorted rows.
        colors: Of its columns.
        n_colors: How many there are.

    Attributes:
        sources: For each entry the number of the product that it follows from.
        is_complete: Whether each entry does, as it does if the colouring is acyclic.
    """

    def __init__(self, matrix: Any, colors: Any, n_colors: int) -> None:
        n = matrix.shape[0]
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
        columns = matrix.indices.astype(np.int64)
        self.sources = colors[columns] * n + rows
        beside = np.flatnonzero(rows != columns)
        mirrored = np.lexsort((rows[beside], columns[beside]))
        # The sum of a vertex and a colour has these entries.
        keys, sums = np.unique(self.sources[beside], return_inverse=True)
        chosen = _peeled(sums, mirrored, len(keys))
        self.n_sums = len(keys)
        self.is_complete = 2 * len(chosen) == len(beside) and bool(
            (colors[rows[beside]] != colors[columns[beside]]).all()
        )
        self.sums, self.beyond = sums[chosen], sums[mirrored[chosen]]
        self.taken = keys[self.sums]
        # Numbers of the entries among products, followed by what was found.
        self.numbers = self.sources.copy()
        size = n_colors * n
        for places in (beside[chosen], beside[mirrored[chosen]]):
            self.numbers[places] = size + np.arange(len(chosen))
            self.sources[places] = self.taken

    def entries(self, products: Any) -> Any:
        """The entries of a matrix with these products, in the order of rows."""

        def remove(sums: Any, step: Any) -> tuple[Any, Any]:
            product, own, beyond = step
            found = product - sums[own]
            return fnp.at(sums)[beyond].add(found, mode="clip"), found

        zeros = fnp.zeros(self.n_sums, products.dtype)
        taken = fnp.take(products, self.taken, mode="clip")
        found = lax.scan(remove, zeros, (taken, self.sums, self.beyond))[1]
        return fnp.take(fnp.concatenate([products, found]), self.numbers, mode="clip")


def _peeled(sums: Any, mirrored: Any, count: int) -> Any:
    """Entries one after the other, each the last that is left of a sum.

    Args:
        sums: For each entry the sum that it is in.
        mirrored: For each entry its mirror image.
        count: The number of sums.
    """
    left = np.bincount(sums, minlength=count).tolist()
    others = [0] * count  # the numbers of all entries that are left, by exclusive or
    in_sum, images = sums.tolist(), mirrored.tolist()
    for entry, which in enumerate(in_sum):
        others[which] ^= entry
    ready = [which for which in range(count) if left[which] == 1]
    found = []
    while ready:
        which = ready.pop()
        if left[which] != 1:
            continue
        entry = others[which]
        found.append(entry)
        image = images[entry]
        beyond = in_sum[image]
        left[which], left[beyond] = 0, left[beyond] - 1
        others[beyond] ^= image
        if left[beyond] == 1:
            ready.append(beyond)
    return np.array(found, np.int64)
