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

from collections.abc import Sequence
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.core.avals import ShapedArray
from funcgrad.core.program import Program
from funcgrad.patterns.greedy import FEW_STEPS, compiled
from funcgrad.transforms.programs import stage_closed


def acyclic_colors(matrix: Any, order: Any) -> Any:
    """Colours of the vertices of a symmetric pattern, greedily in an order."""
    if matrix.nnz > FEW_STEPS:
        numbers = np.minimum(np.arange(matrix.nnz), np.argsort(matrix.indices, kind="stable"))
        return compiled(acyclic_program, order, matrix.indptr, matrix.indices, numbers)[0] - 1
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


def acyclic_program(avals: Sequence[ShapedArray]) -> Program:
    """A program that maps an order of vertices, and a graph, to acyclic colours from 1 on.

    Args: avals: Types of the order, of the first edges of all vertices, of the other ends, and of
            the number of each edge, which it has in both directions.
    """
    return stage_closed(lambda *args: [_acyclic(*args)], avals, "acyclic_coloring")


def _acyclic(order: Any, starts: Any, neighbours: Any, numbers: Any) -> Any:
    """Find an acyclic colouring (see `acyclic_colors`)."""
    n, m = order.shape[0], neighbours.shape[0]

    def color_next(k: Any, state: Any) -> Any:
        colors, trees, memory = state
        v = order[k]
        color, trees, memory = _least_acyclic(k, v, starts, neighbours, numbers, state)
        trees, memory = _grown(v, color, starts, neighbours, numbers, (colors, trees, memory))
        return fnp.at(colors)[v].set(color), trees, memory

    # For each tree, by its root, the last edge that it was met by; for each colour the last vertex
    # that it is taken for, and the last edge to it. One more of each for what is nowhere.
    memory = fnp.full(m + 1, -1), fnp.full(n + 2, -1), fnp.full(n + 2, -1)
    return lax.fori_loop(0, n, color_next, (fnp.zeros(n, np.int64), fnp.arange(m), memory))[0]


def _root(trees: Any, edge: Any) -> tuple[Any, Any]:
    """The root of the tree that an edge is in; paths to it become shorter."""

    def go_up(state: Any) -> Any:
        trees, edge = state
        beyond = trees[trees[edge]]
        return fnp.at(trees)[edge].set(beyond), beyond

    return lax.while_loop(lambda state: state[0][state[1]] != state[1], go_up, (trees, edge))


def _least_acyclic(
    k: Any, v: Any, starts: Any, neighbours: Any, numbers: Any, state: Any
) -> tuple[Any, Any, Any]:
    """The least colour of the vertex whose turn it is that closes no cycle."""
    colors, trees, (met, taken, last) = state
    begin, end, nowhere = starts[v], starts[v + 1], neighbours.shape[0]

    def read(edge: Any, state: Any) -> Any:
        w = neighbours[edge]
        trees, met, taken = state
        taken = fnp.at(taken)[colors[w]].set(k)

        def look(beyond: Any, state: Any) -> Any:
            trees, met, taken = state
            x = neighbours[beyond]
            is_there = (x != v) & (x != w) & (colors[x] > 0)
            trees, tree = _root(trees, numbers[beyond])
            before = met[tree]
            # By another neighbour: with the colour of x the vertex v would close a cycle.
            is_again = is_there & (before >= begin) & (before < end) & (before != edge)
            taken = fnp.at(taken)[fnp.where(is_again, colors[x], 0)].set(k)
            return trees, fnp.at(met)[fnp.where(is_there, tree, nowhere)].set(edge), taken

        is_near = (w != v) & (colors[w] > 0)
        stop = fnp.where(is_near, starts[w + 1], starts[w])
        return lax.fori_loop(starts[w], stop, look, (trees, met, taken))

    trees, met, taken = lax.fori_loop(begin, end, read, (trees, met, taken))
    color = lax.while_loop(lambda c: taken[c] == k, lambda c: c + 1, np.int64(1))
    return color, trees, (met, taken, last)


def _grown(
    v: Any, color: Any, starts: Any, neighbours: Any, numbers: Any, state: Any
) -> tuple[Any, Any]:
    """The trees with the edges of a vertex that has got its colour."""
    colors, trees, (met, taken, last) = state
    begin, end, final = starts[v], starts[v + 1], neighbours.shape[0] - 1

    def join(edge: Any, state: Any) -> Any:
        trees, last = state
        w = neighbours[edge]
        is_near = (w != v) & (colors[w] > 0)
        stop = fnp.where(is_near, starts[w + 1], starts[w])
        # In one tree with it: an edge of v to a vertex of this colour, and one of w to one of v's.
        beside = last[colors[w]]
        is_beside = is_near & (beside >= begin) & (beside < end)
        beyond = lax.while_loop(
            lambda e: (e < stop) & (colors[neighbours[fnp.minimum(e, final)]] != color),
            lambda e: e + 1,
            starts[w],
        )
        others = fnp.where(is_beside, beside, edge), fnp.where(beyond < stop, beyond, edge)
        trees, own = _root(trees, numbers[edge])
        trees, first = _root(trees, numbers[others[0]])
        trees, second = _root(trees, numbers[others[1]])
        trees = fnp.at(fnp.at(trees)[own].set(second))[first].set(second)
        return trees, fnp.at(last)[fnp.where(is_near, colors[w], 0)].set(edge)

    trees, last = lax.fori_loop(begin, end, join, (trees, last))
    return trees, (met, taken, last)


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
    counts = np.bincount(sums, minlength=count)
    if len(sums) > FEW_STEPS:
        entries, number = compiled(peeling_program, sums, mirrored, counts)
        return entries[:number]
    left = counts.tolist()
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


def peeling_program(avals: Sequence[ShapedArray]) -> Program:
    """A program that finds entries one after the other, each the last that is left of a sum.

    Args: avals: Types of the sums that entries are in, of the numbers of their mirror images, and
            of how many entries sums have.
    """
    return stage_closed(lambda *args: [*_peel(*args)], avals, "substitution")


def _peel(sums: Any, mirrored: Any, counts: Any) -> tuple[Any, Any]:
    """Entries, each the last that is left of a sum, and how many of them there are."""
    n, m = counts.shape[0], sums.shape[0]
    entries = fnp.arange(m)
    # The numbers of all entries that are left of a sum, as another sum.
    left = fnp.at(fnp.zeros(n, np.int64))[sums].add(entries)

    def follow(which: Any, state: Any) -> Any:
        """Take off the last entry of a sum, then the one that this makes the last of another."""

        def take(state: Any) -> Any:
            which, counts, left, found, count = state
            entry = left[which]
            beyond = sums[mirrored[entry]]
            left = fnp.at(left)[beyond].add(-mirrored[entry])
            counts = fnp.at(fnp.at(counts)[which].set(0))[beyond].add(-1)
            return beyond, counts, left, fnp.at(found)[count].set(entry), count + 1

        return lax.while_loop(lambda s: s[1][s[0]] == 1, take, (which, *state))[1:]

    state = (counts, left, fnp.zeros(m, np.int64), np.int64(0))
    _, _, found, count = lax.fori_loop(0, n, follow, state)
    return found, count
