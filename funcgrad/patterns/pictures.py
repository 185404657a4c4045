"""Pictures of patterns, by matplotlib, which is loaded when the first one is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.base.imports import load
from funcgrad.patterns.coloring import Coloring
from funcgrad.patterns.sparsity_pattern import SparsityPattern


def spy(pattern: Any, title: str | None = None) -> Any:
    """Draw where a matrix has entries, in the colours of the columns, or rows, they come from.

    Args:
        pattern: A `Coloring`; or a `SparsityPattern`, or a matrix, whose entries are black.
        title: Stands above the picture; by default what is drawn.
    Returns: A matplotlib figure: ``figure.savefig("pattern.png")``.
    Raises: LibraryError: If matplotlib is not installed.

    Example:
        >>> pattern = fg.sparsity.jacobian_sparsity(np.diff)(np.ones(8))
        >>> figure = fg.sparsity.spy(fg.sparsity.coloring(pattern))
        >>> figure.axes[0].get_title()
        '<Coloring of 7x8 with 14 entries: 2 columns>'
    """
    module = load(
        "matplotlib.figure",
        "spy needs matplotlib, which is not installed: pip install 'funcgrad[viz]'. "
        "pattern.toarray() shows small patterns without it.",
    )
    drawn = pattern if isinstance(pattern, Coloring) else SparsityPattern.of(pattern)
    entries = (drawn.pattern if isinstance(drawn, Coloring) else drawn).matrix.tocoo()
    m, n = entries.shape
    figure = module.Figure(figsize=(6, 6), dpi=120, layout="constrained")
    axes = figure.subplots()
    largest = max(m, n, 1)
    # An entry is as large as its place, and no smaller than a dot that can be seen.
    side = max(72 * 5 / largest, 0.7)
    colors: dict[str, Any] = {"c": "black"}
    if isinstance(drawn, Coloring):
        colors = {"c": _numbers(drawn), "cmap": "turbo"}
    axes.scatter(entries.col, entries.row, s=side**2, marker="s", lw=0, **colors)
    axes.set_xlim(-0.5, n - 0.5)
    axes.set_ylim(m - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.set_title(title if title is not None else repr(drawn))
    return figure


def _numbers(colors: Coloring) -> Any:
    """For each entry the number of the product that it is taken from, spread over all hues."""
    m, n = colors.pattern.shape
    is_row = colors.sources >= colors.n_columns * m
    found = np.where(
        is_row,
        colors.n_columns + (colors.sources - colors.n_columns * m) // max(n, 1),
        colors.sources // max(m, 1),
    )
    # Neighbouring colours differ clearly: the golden ratio spreads any number of them.
    return (found * 0.6180339887) % 1.0
