"""Watching a training loop: norms of gradients and updates, step by step.

A monitor is a gradient transformation that changes nothing and keeps norms in its state, so that
it can stand before and after others in a chain, and is compiled with the step. A `History`
collects what the states hold, outside of the compiled code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.errors import ArgumentError
from funcgrad.optim.transformation import GradientTransformation
from funcgrad.pytree import keystr, tree_flatten_with_path, tree_leaves, tree_map
from funcgrad.records import dataclass
from funcgrad.tree_util import register_dataclass


@dataclass(frozen=True)
class MonitorState:
    """What a monitor saw last; a pytree of scalars.

    Attributes:
        count: How many updates it saw.
        norms: Norm of every leaf, a pytree like the parameters.
        largest: Largest absolute entry.
        non_finite: How many entries are NaN or infinite.
        data_norms: Norm of every parameter, if it got them; zeros otherwise.
        name: Which monitor it is.
    """

    count: Any
    norms: Any
    largest: Any
    non_finite: Any
    data_norms: Any
    name: str


register_dataclass(
    MonitorState,
    data_fields=["count", "norms", "largest", "non_finite", "data_norms"],
    meta_fields=["name"],
)


def monitor(name: str = "gradients") -> GradientTransformation:
    """A gradient transformation that changes nothing and keeps norms in its state.

    One pass over the updates, compiled with the rest of the step. Give the parameters to ``update``
    to have ratios of update to data as well.

    Args:
        name: Under which a `History` collects it, such as ``"before clipping"``.

    Returns:
        A pair ``(init, update)``, for `funcgrad.optim.chain` among others.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> watch = fg.diagnostics.monitor("before clipping")
        >>> state = watch.init({"w": np.ones(2)})
        >>> updates, state = watch.update({"w": np.array([3.0, 4.0])}, state)
        >>> float(state.norms["w"])
        5.0
    """
    if not isinstance(name, str):
        raise ArgumentError(f"monitor needs a text as name, got a {type(name).__name__}.")

    def init(params: Any) -> MonitorState:
        zeros = tree_map(lambda p: fnp.zeros((), _real(p)), params)
        zero = np.zeros((), np.int64)
        kinds = [np.dtype(_real(p)) for p in tree_leaves(params)]
        largest = fnp.zeros((), np.result_type(*kinds) if kinds else np.float64)
        return MonitorState(zero, zeros, largest, zero.copy(), zeros, name)

    def update(updates: Any, state: MonitorState, params: Any = None) -> tuple[Any, MonitorState]:
        leaves = [fnp.asarray(u) for u in tree_leaves(updates)]
        norms = tree_map(_norm, updates)
        largest = state.largest * 0
        non_finite = state.non_finite * 0
        for leaf in leaves:
            if leaf.size:
                largest = fnp.maximum(largest, fnp.max(fnp.abs(leaf)).astype(largest.dtype))
            non_finite = non_finite + fnp.sum(~fnp.isfinite(leaf))
        data = state.data_norms if params is None else tree_map(_norm, params)
        return updates, MonitorState(state.count + 1, norms, largest, non_finite, data, name)

    return GradientTransformation(init, update)


def _real(x: Any) -> Any:
    """The dtype of norms."""
    dtype = fnp.asarray(x).dtype
    return np.zeros((), dtype).real.dtype if dtype.kind in "fc" else np.dtype(np.float64)


def _norm(x: Any) -> Any:
    x = fnp.asarray(x)
    magnitude = fnp.abs(x).astype(_real(x))
    return fnp.sqrt(fnp.sum(magnitude * magnitude))


class History:
    """What happened in a training loop, step by step, as lists of numbers.

    Attributes:
        norms: For every monitor the norm of all updates together.
        leaf_norms: For every monitor and every leaf its norm.
        ratios: For every monitor and every leaf the ratio of update to data, NaN where the
            parameter is 0; only of monitors that got the parameters.
        largest: For every monitor the largest absolute entry.
        non_finite: For every monitor the number of entries that are NaN or infinite.
        values: What else was recorded, such as the loss.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> watch, history = fg.diagnostics.monitor("all"), fg.diagnostics.History()
        >>> state = watch.init(np.ones(2))
        >>> for scale in (1.0, 2.0):
        ...     _, state = watch.update(scale * np.array([3.0, 4.0]), state)
        ...     history.record(state, loss=scale**2)
        >>> history.norms["all"], history.values["loss"]
        ([5.0, 10.0], [1.0, 4.0])
    """

    def __init__(self) -> None:
        self.norms: dict[str, list[float]] = {}
        self.leaf_norms: dict[str, dict[str, list[float]]] = {}
        self.ratios: dict[str, dict[str, list[float]]] = {}
        self.largest: dict[str, list[float]] = {}
        self.non_finite: dict[str, list[int]] = {}
        self.values: dict[str, list[float]] = {}

    def record(self, state: Any, **values: Any) -> None:
        """Append one step.

        Args:
            state: A pytree with the states of monitors in it, such as that of an optimiser.
            **values: Further numbers, such as ``loss=``.

        Raises:
            ArgumentError: If two monitors have the same name, or nothing is to be recorded.
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
