"""Pictures of reports, by matplotlib, which is loaded when the first one is drawn.

Every function returns a figure: ``figure.savefig("flow.png")``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.base.imports import load
from funcgrad.base.pytree import keystr, tree_flatten_with_path
from funcgrad.diagnostics.activations import ActivationReport
from funcgrad.diagnostics.health import GradientReport
from funcgrad.diagnostics.monitor import History
from funcgrad.diagnostics.tables import short
from funcgrad.errors import ArgumentError

_MOST_PANELS = 30
_MOST_LINES = 12
_MOST_COLUMNS = 60
_COLORS = {
    "healthy": "tab:green",
    "cancelled": "tab:gray",
    "vanishing": "tab:blue",
    "exploding": "tab:red",
    "dead units": "tab:brown",
    "saturated": "tab:orange",
    "zero gradient": "black",
    "step too large": "tab:pink",
    "disconnected": "black",
    "not finite": "tab:purple",
}


def _figure(width: float, height: float) -> Any:
    module = load(
        "matplotlib.figure",
        "pictures need matplotlib, which is not installed: pip install 'funcgrad[viz]'. The "
        "reports print as tables without it.",
    )
    return module.Figure(figsize=(width, height), dpi=120, layout="constrained")


def plot_gradient_flow(report: GradientReport, title: str = "gradient flow") -> Any:
    """Mean and largest absolute gradient of every parameter, coloured by verdict.

    Args:
        report: Made by `gradient_report`.
        title: Stands above the picture.
    Returns: A matplotlib figure.
    Raises: LibraryError: If matplotlib is not installed.

    Example:
        >>> report = fg.diagnostics.gradient_report(lambda w: np.sum(w**2), np.ones(3))
        >>> figure = fg.diagnostics.plot_gradient_flow(report)
    """
    leaves = report.leaves
    figure = _figure(min(4 + 0.3 * len(leaves), 24), 4.8)
    axes = figure.subplots()
    places = np.arange(len(leaves))
    for verdict in dict.fromkeys(leaf.verdict for leaf in leaves):
        chosen = [i for i in places if leaves[i].verdict == verdict]
        color = _COLORS[verdict]
        largest = [_largest(leaves[i]) for i in chosen]
        axes.bar(chosen, largest, color=color, alpha=0.35)
        means = [leaves[i].mean_abs for i in chosen]
        axes.bar(chosen, means, color=color, label=verdict)
    positive = [x for leaf in leaves for x in (_largest(leaf), leaf.mean_abs) if 0 < x < np.inf]
    if positive:
        axes.set_yscale("log")
        axes.set_ylim(min(positive) / 3, max(positive) * 3)
    axes.set_xlim(-0.8, len(leaves) - 0.2)
    axes.set_xticks(places, [leaf.path for leaf in leaves], rotation=90, fontsize=8)
    axes.set(title=title, ylabel="|gradient|: mean (dark), max (light)")
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside right upper", title="verdict")
    return figure


def _largest(leaf: Any) -> float:
    return float(max(abs(leaf.min), abs(leaf.max)))


def plot_histograms(tree: Any, bins: int = 50, title: str = "") -> Any:
    """A histogram of the entries of every leaf, with mean and standard deviation.

    Args:
        tree: Pytree of real arrays: parameters, gradients or activations.
        bins: Number of bins.
        title: Stands above the picture.
    Returns: A matplotlib figure.

    Raises:
        ArgumentError: If there are no leaves, or more than can be seen.
        LibraryError: If matplotlib is not installed.

    Example:
        >>> figure = fg.diagnostics.plot_histograms({"w": np.linspace(-1, 1, 100)})
    """
    rows = [(keystr(path), np.asarray(x)) for path, x in tree_flatten_with_path(tree)[0]]
    return _panels(
        [(name, *_histogram(x, bins), _caption(x)) for name, x in rows], title, "entries"
    )


def _histogram(x: Any, bins: int) -> tuple[Any, Any]:
    finite = x[np.isfinite(x)]
    counts, edges = np.histogram(finite, bins=bins)
    return counts, edges


def _caption(x: Any) -> str:
    bad = int(np.sum(~np.isfinite(x)))
    finite = x[np.isfinite(x)]
    text = f"mean {short(finite.mean())}, std {short(finite.std())}" if finite.size else "empty"
    return text + (f", {bad} not finite" if bad else "")


def _panels(rows: Sequence[tuple[str, Any, Any, str]], title: str, ylabel: str) -> Any:
    if not 1 <= len(rows) <= _MOST_PANELS:
        raise ArgumentError(
            f"a picture shows 1 to {_MOST_PANELS} histograms, got {len(rows)}: choose some leaves."
        )
    columns = min(len(rows), 4)
    lines = -(-len(rows) // columns)
    figure = _figure(3.2 * columns, 2.4 * lines + 0.4 * bool(title))
    panels = figure.subplots(lines, columns, squeeze=False)
    for axes in panels.flat[len(rows) :]:
        axes.axis("off")
    for axes, (name, counts, edges, caption) in zip(panels.flat, rows, strict=False):
        axes.stairs(counts, edges, fill=True, alpha=0.7)
        axes.set_title(f"{name}\n{caption}", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3)
    for axes in panels[:, 0]:
        axes.set_ylabel(ylabel)
    if title:
        figure.suptitle(title)
    return figure


def plot_norms(history: History, title: str = "norms over time") -> Any:
    """Plot a `History` step by step: norms, ratios of update to data, other values.

    Args:
        history: With at least one step.
        title: Stands above the picture.
    Returns: A matplotlib figure.

    Raises:
        ArgumentError: If nothing was recorded.
        LibraryError: If matplotlib is not installed.

    Example:
        >>> history = fg.diagnostics.History()
        >>> history.record((), loss=1.0)
        >>> figure = fg.diagnostics.plot_norms(history)
    """
    panels: list[tuple[str, Mapping[str, Sequence[float]]]] = []
    if history.norms:
        panels.append(("norm", history.norms))
    panels += [
        (f"update / data\n{name}", ratios) for name, ratios in history.ratios.items() if ratios
    ]
    panels += [(name, {name: values}) for name, values in history.values.items()]
    if not panels:
        raise ArgumentError("plot_norms: nothing was recorded. Call history.record in every step.")
    figure = _figure(8.5, 0.5 + 2.3 * len(panels))
    for axes, (label, lines) in zip(
        np.atleast_1d(figure.subplots(len(panels))), panels, strict=True
    ):
        for name, values in list(lines.items())[:_MOST_LINES]:
            axes.plot(range(1, len(values) + 1), values, linewidth=1.2, label=name)
        hidden = len(lines) - _MOST_LINES
        if hidden > 0:
            axes.plot([], [], " ", label=f"and {hidden} more")
        if any(0 < x < np.inf for values in lines.values() for x in values):
            axes.set_yscale("log")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        if len(lines) > 1:
            axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    axes.set_xlabel("step")
    figure.suptitle(title)
    return figure


def plot_distributions(
    history: History, name: str, data: bool = False, title: str | None = None
) -> Any:
    """Histograms over time: how the entries of every leaf are distributed, step by step.

    Args:
        history: Of a monitor that has bins.
        name: Which monitor.
        data: Whether the parameters are shown instead of the updates that passed the monitor.
        title: Stands above the picture; by default the name of the monitor.
    Returns: A matplotlib figure: a panel for every leaf, a column for every step (evenly chosen, if
        there are many), darker where there are more entries, with the mean (line) and the mean
        plus and minus the standard deviation (dashed).

    Raises:
        ArgumentError: If there are no histograms of that name, or too many leaves.
        LibraryError: If matplotlib is not installed.

    Example:
        >>> watch, history = fg.diagnostics.monitor("all", bins=9), fg.diagnostics.History()
        >>> state = watch.init(np.zeros(50))
        >>> for scale in (1.0, 2.0):
        ...     history.record(watch.update(scale * np.linspace(-1, 1, 50), state)[1])
        >>> figure = fg.diagnostics.plot_distributions(history, "all")
    """
    leaves = (history.data_statistics if data else history.statistics).get(name, {})
    if not 1 <= len(leaves) <= _MOST_PANELS:
        raise ArgumentError(
            f"plot_distributions shows 1 to {_MOST_PANELS} leaves, and monitor {name!r} has "
            f"recorded histograms of {len(leaves)}: monitor({name!r}, bins=30) records them."
        )
    columns = min(len(leaves), 3)
    lines = -(-len(leaves) // columns)
    figure = _figure(4 * columns, 2.6 * lines + 0.4)
    panels = figure.subplots(lines, columns, squeeze=False)
    for axes in panels.flat[len(leaves) :]:
        axes.axis("off")
    for axes, (path, steps) in zip(panels.flat, leaves.items(), strict=False):
        borders = np.linspace(0, len(steps), min(len(steps), _MOST_COLUMNS) + 1).astype(int)
        mesh = [(i, end) for i, end in itertools.pairwise(borders) if steps[i].low < steps[i].high]
        if mesh:
            _draw_columns(axes, steps, mesh)
        means, stds = (np.array([getattr(s, what) for s in steps]) for what in ("mean", "std"))
        axes.plot(means, color="tab:red", linewidth=1.2, label="mean")
        for sign, label in ((-1, None), (1, "plus, minus the standard deviation")):
            axes.plot(
                means + sign * stds, color="tab:red", linewidth=0.8, linestyle="--", label=label
            )
        axes.set_title(path or "all", fontsize=9)
        axes.tick_params(labelsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("step")
    figure.suptitle(name if title is None else title)
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _draw_columns(axes: Any, steps: Sequence[Any], places: Sequence[tuple[int, int]]) -> None:
    """Histograms with bins of their own, each from step i to `end`, as one mesh.

    Every histogram has two columns of corners; the cells between two histograms have no width.
    """
    counts = np.array([steps[i].counts for i, _ in places], float)
    shares = counts / np.maximum(counts.max(axis=1, keepdims=True), 1)
    corners = np.repeat([steps[i].edges for i, _ in places], 2, axis=0).T
    cells = np.zeros((counts.shape[1], 2 * len(places) - 1))
    cells[:, ::2] = np.sqrt(shares).T
    across = np.broadcast_to(np.ravel(places), corners.shape)
    axes.pcolormesh(across, corners, cells, cmap="Blues", vmin=0, vmax=1)


def plot_activations(report: ActivationReport | GradientReport, title: str = "activations") -> Any:
    """Histogram of every activation, and the shares of saturated values and dead units.

    Args:
        report: Made by `activation_report` or `gradient_report`.
        title: Stands above the picture.
    Returns: A matplotlib figure.

    Raises:
        ArgumentError: If there are no activation functions.
        LibraryError: If matplotlib is not installed.

    Example:
        >>> report = fg.diagnostics.activation_report(np.tanh, np.linspace(-3, 3, 100))
        >>> figure = fg.diagnostics.plot_activations(report)
    """
    rows = report.activations if isinstance(report, GradientReport) else report.rows
    if not rows:
        raise ArgumentError("plot_activations: the function applies no activation functions.")
    figure = _figure(10.5, min(3.2 + 0.12 * len(rows), 9))
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    names = [f"{i}: {row.name}" for i, row in enumerate(rows)]
    shades = load("matplotlib").colormaps["viridis"]
    for i, row in enumerate(rows):
        centres = (row.edges[1:] + row.edges[:-1]) / 2
        area = max(float(np.sum(row.counts * np.diff(row.edges))), np.finfo(float).tiny)
        label = f"{names[i]}, mean {short(row.mean)}, std {short(row.std)}"
        color = shades(0.9 * i / max(len(rows) - 1, 1))
        left.plot(centres, row.counts / area, color=color, label=label if i < _MOST_LINES else None)
    left.set(title="values", xlabel="value", ylabel="density")
    left.grid(alpha=0.3)
    left.legend(fontsize=8)
    places = np.arange(len(rows))
    saturated = [100 * row.saturated for row in rows]
    dead = [100 * row.dead_share for row in rows]
    right.barh(places - 0.2, saturated, 0.4, color="tab:orange", label="saturated values")
    right.barh(places + 0.2, dead, 0.4, color="tab:brown", label="dead units")
    right.set_yticks(places, names, fontsize=8)
    right.invert_yaxis()
    right.set(title="out of work", xlabel="per cent", xlim=(0, 100))
    right.grid(axis="x", alpha=0.3)
    right.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    figure.suptitle(title)
    return figure
