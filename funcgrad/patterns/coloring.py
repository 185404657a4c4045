"""Colourings: which columns, or rows, of a sparse matrix are computed together.

Columns that share no row may be computed as one, for a seed that is their sum: a product with it
has each of their entries alone in its row. So colouring the graph in which columns are joined if
they share a row says how few products are needed; greedy colouring, in a good order, comes close.
A symmetric matrix needs less: of each pair of mirrored entries one has to be alone (a *star
colouring*), or only follow from others (an *acyclic colouring*). A matrix with a few dense rows
has these computed as rows (*both*).

Where the pattern is of diagonals, columns get the remainders of their numbers modulo the least
number that divides no distance of two columns in one row: no list of entries is needed.

Sources: A. H. Gebremedhin, F. Manne, A. Pothen, "What color is your Jacobian? Graph coloring for
computing derivatives", SIAM Review 47 (2005) 629; A. H. Gebremedhin, A. Tarafdar, F. Manne,
A. Pothen, "New acyclic and star coloring algorithms with application to computing Hessians", SIAM
J. Sci. Comput. 29 (2007) 1042.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from funcgrad.base.forking import cached_property
from funcgrad.base.imports import load
from funcgrad.base.pytree import register_pytree_node
from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError
from funcgrad.patterns.greedy import FEW_STEPS, compiled, greedy_program, star_program
from funcgrad.patterns.interleave import in_order
from funcgrad.patterns.sparsity_pattern import SparsityPattern
from funcgrad.patterns.substitution import Substitution, acyclic_colors

ORDERS = ("natural", "largest_first", "smallest_last", "incidence_degree")
KINDS = ("columns", "rows", "both", "symmetric", "acyclic")

FEW = 1 << 20
"""Edges up to which Python colours a graph, in less time than compiling takes."""

FEW_STARS = 1 << 19
"""Entries of diagonals up to which stars are looked for."""

FEW_VERTICES = 512
"""Columns up to which stars are looked for in dense matrices, too."""

FEW_COLUMNS = 2048
"""Columns up to which a nearly complete graph is formed."""

MOST_EDGES = 1 << 27
"""Edges of a graph that is formed."""

MOST_COLORS = 4
"""A row with one of so many columns makes the graph of many columns too large."""

MOST_SHIFTS = 4
"""How many times as many remainders as necessary may be tried before a graph is coloured."""


@dataclass(eq=False)
class Coloring:
    """Colouring: the columns and rows of a matrix that are computed together.

    Args:
        pattern: Where the matrix has entries.
        column_colors: For each column its colour, from 0 on, -1 for none; ``None`` if no columns
            are computed.
        row_colors: The same of rows.
        is_symmetric: Whether an entry may be taken from its mirror image.
        is_acyclic: Whether entries of a symmetric matrix may follow from each other.
    Raises: ArgumentError: If an entry cannot be told from others.

    Example:
        >>> pattern = fg.sparsity.SparsityPattern.of(np.eye(4) + np.eye(4, k=1))
        >>> colors = fg.sparsity.coloring(pattern)
        >>> colors
        <Coloring of 4x4 with 7 entries: 2 columns>
        >>> print(colors.column_colors)
        [0 1 0 1]
    """

    pattern: SparsityPattern
    column_colors: Any = None
    row_colors: Any = None
    is_symmetric: bool = False
    is_acyclic: bool = False

    def __post_init__(self) -> None:
        self.n_columns, self.n_rows = (_count(c) for c in (self.column_colors, self.row_colors))

    def __repr__(self) -> str:
        m, n = self.pattern.shape
        parts = [
            f"{count} {what}{'s' if count != 1 else ''}"
            for count, what in ((self.n_columns, "column"), (self.n_rows, "row"))
            if count
        ]
        size = f"{m}x{n} with {self.pattern.nnz} entries"
        return f"<Coloring of {size}: {' and '.join(parts) or 'nothing'}>"

    @property
    def n_colors(self) -> int:
        """The number of products that are needed."""
        return self.n_columns + self.n_rows

    def column_seeds(self, dtype: Any = np.float64) -> Any:
        """A matrix with a row for each colour of columns: one at these columns."""
        return _seeds(self.column_colors, self.n_columns, self.pattern.shape[1], dtype)

    def row_seeds(self, dtype: Any = np.float64) -> Any:
        """A matrix with a row for each colour of rows: one at these rows."""
        return _seeds(self.row_colors, self.n_rows, self.pattern.shape[0], dtype)

    @cached_property
    def sources(self) -> Any:
        """For each entry its number among the products: of columns, then of rows, flattened.

        In an acyclic colouring it follows from that product. Finding them verifies the colouring.
        """
        if self.is_acyclic:
            return self.substitution.sources
        matrix = self.pattern.matrix
        m, n = matrix.shape
        rows = np.repeat(np.arange(m), np.diff(matrix.indptr))
        columns = matrix.indices.astype(np.int64)
        found = np.full(len(columns), -1, np.int64)
        if self.row_colors is not None:
            keys = self.row_colors.astype(np.int64)[rows] * n + columns
            alone = _is_alone(keys, self.row_colors[rows] >= 0)
            found[alone] = self.n_columns * m + keys[alone]
        if self.column_colors is not None:
            keys = self.column_colors.astype(np.int64)[columns] * m + rows
            is_colored = self.column_colors >= 0
            alone = is_colored[columns]
            if np.count_nonzero(is_colored) > self.n_columns:
                alone = _is_alone(keys, alone)
            found[alone] = keys[alone]
            if self.is_symmetric and not alone.all():
                mirrored = self.column_colors.astype(np.int64)[rows] * m + columns
                # Both entries of a pair are in the pattern, so its mirror image has a place in it.
                known = keys[alone]
                rest = np.flatnonzero(~alone)
                is_known = np.isin(mirrored[rest], known)
                found[rest[is_known]] = mirrored[rest[is_known]]
        wrong = np.flatnonzero(found < 0)
        if len(wrong):
            i = wrong[0]
            raise ArgumentError(
                f"this is no colouring of {self.pattern}: the entry in row {rows[i]} and column "
                f"{columns[i]} cannot be told from others of its colour, nor can "
                f"{len(wrong) - 1} more. Columns (rows) of one colour must not share a row (column)"
                + (", or of mirrored entries one must be alone." if self.is_symmetric else ".")
            )
        return found

    @cached_property
    def substitution(self) -> Substitution:
        """The order in which entries of an acyclic colouring follow from products."""
        found = Substitution(self.pattern.matrix, self.column_colors, self.n_columns)
        if not found.is_complete:
            raise ArgumentError(
                f"this is no acyclic colouring of {self.pattern}: there is a cycle of entries in "
                "one or two colours, of which none can be told from others."
            )
        return found

    def entries(self, products: Any) -> Any:
        """The entries of a matrix, in the order of rows, from its products, flattened."""
        if self.is_acyclic:
            return self.substitution.entries(products)
        return in_order([products], [products.size], self.sources, products.dtype)


# A constant of whatever holds it, such as results of solvers.
register_pytree_node(Coloring, lambda c: ([], c), lambda c, _: c)


def _count(colors: Any) -> int:
    return 0 if colors is None else int(np.max(colors, initial=-1)) + 1


def _seeds(colors: Any, count: int, n: int, dtype: Any) -> Any:
    seeds = np.zeros((count, n), dtype)
    if count:
        here = np.flatnonzero(colors >= 0)
        seeds[colors[here], here] = 1
    return seeds


def _is_alone(keys: Any, counts: Any) -> Any:
    """Mask of keys that occur once among those that count."""
    known = keys if counts.all() else keys[counts]
    span = int(known.max(initial=-1)) + 1
    if span <= 8 * len(keys) + 1024:
        often = np.bincount(known, minlength=1)
        return counts & (often[keys if known is keys else np.where(counts, keys, 0)] == 1)
    _, inverse, often = np.unique(known, return_inverse=True, return_counts=True)
    found = counts.copy()
    found[counts] = often[inverse] == 1
    return found


def coloring(pattern: Any, kind: str = "columns", order: str | None = None) -> Coloring:
    """Colour a pattern.

    Args:
        pattern: A `SparsityPattern`, or a matrix, as of `SparsityPattern.of`.
        kind: ``"columns"``, ``"rows"``, ``"both"`` (what is least: columns, rows, or columns and a
            few dense rows), ``"symmetric"``, or ``"acyclic"``: for symmetric matrices, with fewer
            colours and larger errors of rounding, since entries are differences of others.
        order: In which order columns are coloured: ``"natural"``, ``"largest_first"``,
            ``"smallest_last"`` or ``"incidence_degree"``. By default the best of several is taken.
    Returns: A `Coloring`, which is verified when its entries are first asked for.
    Raises: ArgumentError: If there is no such kind or order, or a symmetric pattern is none.

    Example:
        >>> arrow = np.eye(6)
        >>> arrow[0], arrow[:, 0] = 1, 1
        >>> for kind in ("columns", "both", "symmetric"):
        ...     print(fg.sparsity.coloring(arrow, kind))
        <Coloring of 6x6 with 16 entries: 6 columns>
        <Coloring of 6x6 with 16 entries: 2 columns and 1 row>
        <Coloring of 6x6 with 16 entries: 2 columns>
    """
    found = SparsityPattern.of(pattern)
    if kind not in KINDS:
        raise ArgumentError(f"coloring: `kind` must be one of {', '.join(KINDS)}, got {kind!r}.")
    if order is not None and order not in ORDERS:
        raise ArgumentError(f"coloring: `order` must be one of {', '.join(ORDERS)}, got {order!r}.")
    if not found.bound:
        return Coloring(found, np.full(found.shape[1], -1))
    if kind == "columns":
        return Coloring(found, color_columns(found, order))
    if kind == "rows":
        return Coloring(found, None, color_columns(found.T, order))
    if kind == "symmetric":
        return _symmetric(found, order)
    if kind == "acyclic":
        return _acyclic(found, order)
    return _both(found, order)


def color_columns(pattern: SparsityPattern, order: str | None = None) -> Any:
    """For each column its colour: columns of one colour share no row."""
    counted = np.arange(pattern.shape[1])
    period = _period(pattern) if order is None else None
    remainders = counted if period is None else counted % period
    if period is not None and pattern.bound > FEW:
        return remainders
    # The longest row needs as many colours as it has entries.
    longest = int(np.diff(pattern.matrix.indptr).max(initial=0))
    if period == longest:
        return remainders
    graph = _column_graph(pattern.matrix)
    if graph is None:  # nearly every column is joined with nearly every other one
        return remainders
    found = _best(graph, order, longest)
    return found if period is None or _count(found) < period else remainders


def _period(pattern: SparsityPattern) -> int | None:
    """The least number that divides no distance of two columns in one row, if it is small."""
    offsets = pattern.offsets()
    if offsets is None:
        return None
    if not offsets:
        return 1
    array = np.array(offsets)
    # Columns at the distances 0, d, d', ... of one of them are all joined with it.
    for period in range(2, MOST_SHIFTS * (2 * len(offsets) + 1) + 1):
        if (array % period != 0).all():
            return period
    return None


def _column_graph(matrix: Any) -> Any:
    """Graph of the columns that share a row; ``None`` if these are too many."""
    matrix = _different_rows(matrix)
    lengths = np.diff(matrix.indptr).astype(np.int64)
    is_full = len(lengths) and lengths.max() * MOST_COLORS > matrix.shape[1] > FEW_COLUMNS
    if is_full or int((lengths**2).sum()) > MOST_EDGES:
        return None
    # Compressed columns of a symmetric matrix are its rows.
    return (matrix.T @ matrix).tocsc().T


def _different_rows(matrix: Any) -> Any:
    """Matrix with one of each set of equal rows, which join the same columns, if they are long."""
    lengths = np.diff(matrix.indptr).astype(np.int64)
    if int((lengths**2).sum()) <= FEW:
        return matrix
    # Sums of random numbers, one for each column, tell rows apart.
    numbers = np.random.default_rng(0).integers(1 << 63, size=matrix.shape[1], dtype=np.uint64)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(numbers[matrix.indices])])
    keys = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
    _, firsts = np.unique(keys, return_index=True)
    return matrix if len(firsts) == len(keys) else matrix[firsts]


def _of_blocks(graph: Any) -> Any:
    """Colours of a graph whose parts have all edges; ``None`` if there are others.

    Such a part takes as many colours as it has vertices, in every order.
    """
    n = graph.shape[0]
    degrees = np.diff(graph.indptr) + ~graph.diagonal()  # with the vertex itself
    each, often = np.unique(degrees, return_counts=True)
    if (often % each).any():
        return None
    if each[-1] == n:
        return np.arange(n)
    labels = load("scipy.sparse.csgraph").connected_components(graph, directed=False)[1]
    sizes = np.bincount(labels)
    if (degrees < sizes[labels]).any():
        return None
    order = np.argsort(labels, kind="stable")
    colors = np.empty(n, np.int64)
    colors[order] = np.arange(n) - (np.cumsum(sizes) - sizes)[labels[order]]
    return colors


def _best(graph: Any, order: str | None, least: int) -> Any:
    """Colours of a graph in an order, or in the best one of several.

    Args:
        graph: The graph.
        order: The order.
        least: Colours that it needs at least: no order is tried behind one that has so few.
    """
    if graph.nnz > FEW and (found := _of_blocks(graph)) is not None:
        return found
    names = (order,) if order is not None else ("natural", "largest_first")
    if order is None and graph.nnz <= FEW:
        names = (*names, "smallest_last")
    return _first_best((_greedy(graph, _ordered(graph, name)) for name in names), least)


def _first_best(found: Iterable[Any], least: int) -> Any:
    """The colours that are fewest; the first ones that are so few as there have to be."""
    best = None
    for colors in found:
        if best is None or _count(colors) < _count(best):
            best = colors
        if _count(best) <= least:
            break
    return best


def _greedy(graph: Any, order: Any) -> Any:
    """Each vertex, in an order, gets the least colour that no neighbour has."""
    if graph.nnz > FEW:
        return compiled(greedy_program, order, graph.indptr, graph.indices)[0] - 1
    starts, neighbours = graph.indptr.tolist(), graph.indices.tolist()
    colors = [-1] * len(order)
    for v in order.tolist():
        taken = {colors[w] for w in neighbours[starts[v] : starts[v + 1]]}
        color = 0
        while color in taken:
            color += 1
        colors[v] = color
    return np.array(colors, np.int64)


def _ordered(graph: Any, name: str) -> Any:
    degrees = np.diff(graph.indptr)
    if name == "natural":
        return np.arange(len(degrees))
    if name == "largest_first":
        return np.argsort(-degrees, kind="stable")
    if name == "smallest_first":
        return np.argsort(degrees, kind="stable")
    if name == "smallest_last":
        return np.array(_peeled(graph, degrees.tolist(), -1)[::-1], np.int64)
    return np.array(_peeled(graph, [0] * len(degrees), 1), np.int64)


def _peeled(graph: Any, keys: list[int], change: int) -> list[int]:
    """Vertices one after the other, the next with the least key, or the greatest one.

    Args:
        graph: The graph.
        keys: For each vertex its number of neighbours that are left, or that are gone.
        change: What becomes of the key when a neighbour goes: -1 (the least key is next: of the
            fewest that are left) or 1 (the greatest one: of the most that are gone).
    """
    graph.sort_indices()  # of equal keys the same vertex is next, however the graph was formed
    starts, neighbours = graph.indptr.tolist(), graph.indices.tolist()
    buckets: list[list[int]] = [[] for _ in range(max(keys, default=0) + len(keys) + 1)]
    for v in reversed(range(len(keys))):
        buckets[keys[v]].append(v)
    is_gone = [False] * len(keys)
    found: list[int] = []
    level = 0
    while len(found) < len(keys):
        while not buckets[level]:
            level -= change
        v = buckets[level].pop()
        if is_gone[v] or keys[v] != level:
            continue
        is_gone[v] = True
        found.append(v)
        for w in neighbours[starts[v] : starts[v + 1]]:
            if not is_gone[w] and w != v:
                keys[w] += change
                buckets[keys[w]].append(w)
        level = max(level - 1, 0) if change < 0 else level + 1
    return found


def _both(pattern: SparsityPattern, order: str | None) -> Coloring:
    """Columns, rows, or columns without the rows that have the most entries, which are rows."""
    found = [Coloring(pattern, color_columns(pattern, order))]
    matrix = pattern.matrix
    # A row colouring needs as many colours as the longest column has entries.
    if np.bincount(matrix.indices, minlength=1).max() < found[0].n_colors:
        found.append(Coloring(pattern, None, color_columns(pattern.T, order)))
    lengths = np.diff(matrix.indptr)
    # A column colouring needs as many colours as the longest row that is left has entries.
    steps = np.unique(lengths)[::-1]
    for longest in steps[1:9]:
        is_row = lengths > longest
        if longest + is_row.sum() >= min(c.n_colors for c in found) or not is_row.any():
            continue
        parts = [_only(matrix, is_row), _only(matrix, ~is_row)]
        row_colors = color_columns(SparsityPattern.of(parts[0].T), order)
        row_colors = np.where(is_row, row_colors, -1)
        column_colors = color_columns(SparsityPattern.of(parts[1]), order)
        found.append(Coloring(pattern, column_colors, row_colors))
    return min(found, key=lambda c: c.n_colors)


def _only(matrix: Any, is_kept: Any) -> Any:
    """A matrix without the entries of some rows."""
    found = matrix.multiply(is_kept[:, None]).tocsr()
    found.eliminate_zeros()
    return found


def _mirrored(pattern: SparsityPattern) -> Any:
    """The matrix of a symmetric pattern."""
    matrix = pattern.matrix
    m, n = matrix.shape
    if m != n or (matrix.nnz < m * n and (matrix != matrix.T).nnz):
        raise ArgumentError(
            f"coloring: {pattern} is not symmetric. Use kind='columns', or pattern | pattern.T."
        )
    return matrix


def _acyclic(pattern: SparsityPattern, order: str | None) -> Coloring:
    matrix = _mirrored(pattern)
    names = ORDERS if matrix.nnz <= FEW_STEPS else ORDERS[:2]
    each = (
        acyclic_colors(matrix, _ordered(matrix, name)) for name in ((order,) if order else names)
    )
    colors = _first_best(each, min(_least_star(matrix), 2))
    return Coloring(pattern, colors, None, is_symmetric=True, is_acyclic=True)


def _symmetric(pattern: SparsityPattern, order: str | None) -> Coloring:
    matrix = _mirrored(pattern)
    n = matrix.shape[0]
    if n > FEW_VERTICES and matrix.nnz * 10 > n * n * 9:  # hardly two of them go together
        is_there = np.diff(matrix.indptr) > 0
        each = np.where(is_there, np.cumsum(is_there) - 1, -1)
        return Coloring(pattern, each, None, is_symmetric=True)
    if matrix.nnz > FEW_STEPS and (blocks := _of_blocks(matrix)) is not None:
        return Coloring(pattern, blocks, None, is_symmetric=True)
    period = _period(pattern) if order is None else None
    names = (order,) if order is not None else ("natural", "largest_first")
    found: list[Any] = [] if period is None else [np.arange(n) % period]
    if not found or (not _is_band(pattern, period) and matrix.nnz <= FEW_STARS):
        stars = (_star(matrix, _ordered(matrix, name)) for name in names)
        best = _first_best(stars, _least_star(matrix))
        found.append(best)
        if order is None and _count(best) > 2 * np.median(np.diff(matrix.indptr)):
            # A few long rows, as of what all others depend on: each should have its own colour.
            found.append(_star(matrix, _ordered(matrix, "smallest_first")))
    return Coloring(pattern, min(found, key=_count), None, is_symmetric=True)


def _is_band(pattern: SparsityPattern, period: int | None) -> bool:
    """Whether a matrix has all diagonals up to one, for which stars save nothing.

    With ``w`` diagonals on each side and ``4 w`` rows or more, ``2 w`` colours have no stars. Let
    ``i`` and ``j`` be two vertices of one colour, the closest pair that there is: ``d = j - i`` is
    more than ``w``, and at most ``2 w``. A vertex between them that is joined with both, of which
    there are ``2 w - d + 1``, has its colour alone from ``i - w`` to ``j + w``, since another one
    would end a path through ``i`` and ``j``. The ``d`` vertices up to ``j + w``, or those from
    ``i - w`` on (one of both is inside), have none of these colours, and different ones, for they
    are closer: together ``2 w + 1``.
    """
    lines, n = pattern.lines, pattern.shape[0]
    if lines is None or period is None or period % 2 == 0:
        return False
    width = period // 2
    if n < 4 * width:
        return False
    whole = [(max(0, -k), n - max(0, k), k) for k in range(-width, width + 1)]
    # Lines that leave rows out are as long as whole ones, but have fewer entries.
    is_whole = pattern.nnz == sum(last - first for first, last, _ in whole)
    return is_whole and sorted(lines, key=lambda line: line[2]) == whole


def _least_star(matrix: Any) -> int:
    """A number of colours that a star colouring needs at least."""
    entries = matrix.tocoo()
    is_edge = entries.row != entries.col
    ends = entries.row[is_edge], entries.col[is_edge]
    degrees = np.bincount(ends[0], minlength=matrix.shape[0])
    # An edge between two more is the middle of a path of four vertices, or a side of a triangle.
    is_inside = (degrees[ends[0]] > 1) & (degrees[ends[1]] > 1)
    return 3 if is_inside.any() else 2 if len(ends[0]) else 1


def _star(matrix: Any, order: Any) -> Any:
    """Neighbours differ in colour, and paths of four vertices have three colours or more.

    Sets of colours are the bits of numbers: for each vertex those of its neighbours, those that
    several of these have, and those that ``v`` must not get in a path ``v - w - x - y`` from the
    vertex ``w`` on, whose end has the colour of ``w``.
    """
    if matrix.nnz > FEW_STEPS:
        (bits,) = compiled(star_program, order, matrix.indptr, matrix.indices)
        if bits.all():  # otherwise there are more colours than the integers of programs have bits
            return np.frexp(bits.astype(float))[1].astype(np.int64) - 1
    starts, neighbours = matrix.indptr.tolist(), matrix.indices.tolist()
    n = len(order)
    colors = [-1] * n
    near, twice, behind = [0] * n, [0] * n, [0] * n
    first: list[dict[int, int]] = [{} for _ in range(n)]  # of each colour one neighbour
    for v in order.tolist():
        own = [w for w in neighbours[starts[v] : starts[v + 1]] if w != v]
        taken = near[v]
        for w in own:
            if colors[w] >= 0:
                # With u of the colour of w, u - v - w - x is a path as well.
                taken |= near[w] if twice[v] >> colors[w] & 1 else behind[w]
        bit = ~taken & (taken + 1)
        color = colors[v] = bit.bit_length() - 1
        for w in own:
            if not near[w] & bit:
                near[w] |= bit
                first[w][color] = v
            else:
                twice[w] |= bit
                if colors[w] >= 0:
                    behind[v] |= 1 << colors[w]
                    behind[first[w][color]] |= 1 << colors[w]
            if colors[w] >= 0 and twice[v] >> colors[w] & 1:
                behind[w] |= bit
    return np.array(colors, np.int64)
