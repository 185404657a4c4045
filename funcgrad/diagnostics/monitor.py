"""Watching a training loop: norms and distributions of gradients and updates, step by step.

A monitor is a gradient transformation that changes nothing and keeps norms in its state, so that
it can stand before and after others in a chain, and is compiled with the step. A `History`
collects what the states hold, outside of the compiled code.

Means and standard deviations are computed in two passes, since the difference of two large sums
would lose them where the mean is large.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import keystr, tree_flatten_with_path, tree_leaves, tree_map
from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError
from funcgrad.optim.transformation import GradientTransformation
from funcgrad.tree_util import register_dataclass


@dataclass(frozen=True)
class Statistics:
    """Distribution of the finite entries of an array; of magnitudes, where they are complex.

    Attributes:
        mean: Their mean.
        std: Their standard deviation.
        norm: Root of the sum of the squares of all entries.
        low: The smallest one.
        high: The largest one.
        counts: How many lie in each of the bins, which divide low to high evenly.
    """

    mean: Any
    std: Any
    norm: Any
    low: Any
    high: Any
    counts: Any

    @property
    def edges(self) -> np.ndarray:
        """Borders of the bins: one more than there are bins."""
        return np.linspace(self.low, self.high, len(self.counts) + 1)


register_dataclass(
    Statistics, data_fields=["mean", "std", "norm", "low", "high", "counts"], meta_fields=[]
)


@dataclass(frozen=True)
class MonitorState:
    """Statistics of the updates that a monitor saw last; a pytree.

    Attributes:
        count: How many updates it saw.
        norms: Norm of every leaf, a pytree like the parameters.
        largest: Largest absolute entry.
        non_finite: How many entries are NaN or infinite.
        data_norms: Norm of every parameter, if it got them; zeros otherwise.
        statistics: `Statistics` of every leaf, a list; empty without bins.
        data_statistics: Those of every parameter, if it got them.
        name: Which monitor it is.
    """

    count: Any
    norms: Any
    largest: Any
    non_finite: Any
    data_norms: Any
    statistics: list[Statistics]
    data_statistics: list[Statistics]
    name: str


register_dataclass(
    MonitorState,
    data_fields=[
        *("count", "norms", "largest", "non_finite", "data_norms"),
        *("statistics", "data_statistics"),
    ],
    meta_fields=["name"],
)


def monitor(name: str = "gradients", bins: int = 0) -> GradientTransformation:
    """A gradient transformation that changes nothing and keeps norms in its state.

    One pass over the updates, compiled with the rest of the step. Give the parameters to ``update``
    to have ratios of update to data as well.

    Args:
        name: Under which a `History` collects it, such as ``"before clipping"``.
        bins: How many bins histograms have. With 0 there are neither histograms nor means and
            standard deviations, which take further passes.
    Returns: A pair ``(init, update)``, for `funcgrad.optim.chain` among others.
    Raises: ArgumentError: If the name is no text, or the number of bins no integer of at least 0.

    Example:
        >>> watch = fg.diagnostics.monitor("before clipping")
        >>> state = watch.init({"w": np.ones(2)})
        >>> updates, state = watch.update({"w": np.array([3.0, 4.0])}, state)
        >>> float(state.norms["w"])
        5.0
    """
    if not isinstance(name, str):
        raise ArgumentError(f"monitor needs a text as name, got a {type(name).__name__}.")

    if type(bins) is not int or bins < 0:
        raise ArgumentError(f"monitor needs a number of bins of at least 0, got {bins!r}.")

    def statistics(tree: Any) -> list[Statistics]:
        return [_statistics(x, bins) for x in tree_leaves(tree)] if bins else []

    def init(params: Any) -> MonitorState:
        zeros = tree_map(lambda p: fnp.zeros((), _real(p)), params)
        zero = np.zeros((), np.int64)
        kinds = [np.dtype(_real(p)) for p in tree_leaves(params)]
        largest = fnp.zeros((), np.result_type(*kinds) if kinds else np.float64)
        nothing = statistics(tree_map(fnp.zeros_like, params))
        return MonitorState(zero, zeros, largest, zero.copy(), zeros, nothing, nothing, name)

    def update(updates: Any, state: MonitorState, params: Any = None) -> tuple[Any, MonitorState]:
        leaves = [fnp.asarray(u) for u in tree_leaves(updates)]
        norms = tree_map(_norm, updates)
        largest = state.largest * 0
        non_finite = state.non_finite * 0
        for leaf in leaves:
            if leaf.size:
                largest = fnp.maximum(largest, fnp.max(fnp.abs(leaf)).astype(largest.dtype))
            non_finite = non_finite + fnp.sum(~fnp.isfinite(leaf))
        seen = state.count + 1, norms, largest, non_finite
        if params is None:
            data, of_data = state.data_norms, state.data_statistics
        else:
            data, of_data = tree_map(_norm, params), statistics(params)
        return updates, MonitorState(*seen, data, statistics(updates), of_data, name)

    return GradientTransformation(init, update)


def _real(x: Any) -> Any:
    """The dtype of norms."""
    dtype = fnp.asarray(x).dtype
    return np.zeros((), dtype).real.dtype if dtype.kind in "fc" else np.dtype(np.float64)


def _norm(x: Any) -> Any:
    x = fnp.asarray(x)
    magnitude = fnp.abs(x).astype(_real(x))
    return fnp.sqrt(fnp.sum(magnitude * magnitude))


def _statistics(x: Any, bins: int) -> Statistics:
    x = fnp.asarray(x)
    real = _real(x)
    values = fnp.abs(x) if x.dtype.kind == "c" else x.astype(real)
    norm = _norm(x)
    if not x.size:
        zero = norm * 0
        return Statistics(zero, zero, norm, zero, zero, fnp.zeros(bins, np.int64))
    is_finite = fnp.isfinite(values)
    count = fnp.maximum(fnp.sum(is_finite), 1).astype(real)
    mean = fnp.sum(fnp.where(is_finite, values, 0)) / count
    deviations = fnp.where(is_finite, values - mean, 0)
    std = fnp.sqrt(fnp.sum(deviations * deviations) / count)
    low = fnp.min(fnp.where(is_finite, values, np.inf))
    high = fnp.max(fnp.where(is_finite, values, -np.inf))
    is_any = low <= high
    low, high = fnp.where(is_any, low, 0).astype(real), fnp.where(is_any, high, 0).astype(real)
    width = fnp.where(low < high, high - low, 1)
    shares = fnp.where(is_finite, (values - low) / width, 0)
    places = fnp.minimum((shares * bins).astype(np.int64), bins - 1)
    counts = fnp.bincount(places.ravel(), is_finite.ravel(), length=bins).astype(np.int64)
    return Statistics(mean.astype(real), std.astype(real), norm, low, high, counts)


class History:
    """Record of a training loop, step by step, as lists of numbers.

    Attributes:
        norms: For every monitor the norm of all updates together.
        leaf_norms: For every monitor and every leaf its norm.
        ratios: For every monitor and every leaf the ratio of update to data, NaN where the
            parameter is 0; only of monitors that got the parameters.
        largest: For every monitor the largest absolute entry.
        non_finite: For every monitor the number of entries that are NaN or infinite.
        statistics: For every monitor that has bins, and every leaf, its `Statistics`: mean,
            standard deviation, norm, histogram.
        data_statistics: The same of the parameters, if a monitor with bins got them.
        values: What else was recorded, such as the loss.

    Example:
        >>> watch, history = fg.diagnostics.monitor("all"), fg.diagnostics.History()
        >>> state = watch.init(np.ones(2))
        >>> for scale in (1.0, 2.0):
        ...     _, state = watch.update(scale * np.array([3.0, 4.0]), state)
        ...     history.record(state, loss=scale**2)
        >>> history.norms["all"], history.values["loss"]
        ([5.0, 10.0], [1.0, 4.0])
        >>> watch = fg.diagnostics.monitor("entries", bins=2)
        >>> history.record(watch.update(np.array([3.0, 4.0]), watch.init(np.ones(2)))[1])
        >>> (seen,) = history.statistics["entries"][""]
        >>> float(seen.mean), float(seen.std), seen.counts, seen.edges
        (3.5, 0.5, array([1, 1]), array([3. , 3.5, 4. ]))
    """

    def __init__(self) -> None:
        self.norms: dict[str, list[float]] = {}
        self.leaf_norms: dict[str, dict[str, list[float]]] = {}
        self.ratios: dict[str, dict[str, list[float]]] = {}
        self.largest: dict[str, list[float]] = {}
        self.non_finite: dict[str, list[int]] = {}
        self.statistics: dict[str, dict[str, list[Statistics]]] = {}
        self.data_statistics: dict[str, dict[str, list[Statistics]]] = {}
        self.values: dict[str, list[float]] = {}

    def record(self, state: Any, **values: Any) -> None:
        """Append one step.

        Args:
            state: A pytree with the states of monitors in it, such as that of an optimiser.
            **values: Further numbers, such as ``loss=``.
        Raises: ArgumentError: If two monitors have the same name, or nothing is to be recorded.
        """
        leaves = tree_leaves(state, lambda x: isinstance(x, MonitorState))
        states = [x for x in leaves if isinstance(x, MonitorState)]
        names = [x.name for x in states]
        if len(set(names)) != len(names):
            raise ArgumentError(
                f"History.record: two monitors have the same name, out of {', '.join(names)}. "
                "Name them: monitor('before clipping'), monitor('after clipping')."
            )
        if not states and not values:
            raise ArgumentError(
                "History.record: there is no state of a monitor in it. Put a "
                "funcgrad.diagnostics.monitor into the chain, and pass the state of the chain."
            )
        for seen in states:
            self._add(seen)
        for name, value in values.items():
            self.values.setdefault(name, []).append(float(value))

    def _add(self, seen: MonitorState) -> None:
        rows = [(keystr(path), float(x)) for path, x in tree_flatten_with_path(seen.norms)[0]]
        total = float(np.sqrt(sum(norm**2 for _, norm in rows)))
        self.norms.setdefault(seen.name, []).append(total)
        self.largest.setdefault(seen.name, []).append(float(seen.largest))
        self.non_finite.setdefault(seen.name, []).append(int(seen.non_finite))
        of_leaves = self.leaf_norms.setdefault(seen.name, {})
        ratios = self.ratios.setdefault(seen.name, {})
        has_data = any(x > 0 for x in tree_leaves(seen.data_norms))
        for (path, norm), data in zip(rows, tree_leaves(seen.data_norms), strict=True):
            of_leaves.setdefault(path, []).append(norm)
            if has_data:
                ratios.setdefault(path, []).append(norm / float(data) if data > 0 else np.nan)
        for kept, found in (
            (self.statistics, seen.statistics),
            (self.data_statistics, seen.data_statistics if has_data else []),
        ):
            for (path, _), one in zip(rows, found, strict=False):
                kept.setdefault(seen.name, {}).setdefault(path, []).append(
                    tree_map(np.asarray, one)
                )
