"""A function of its floating arguments alone, for what looks at its derivatives.

``OfFloats(f, args) : [float] -> [leaf of the result]``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from funcgrad.api.arguments import has_type, leaf_paths, name_of
from funcgrad.base.pytree import tree_unflatten
from funcgrad.core.avals import aval_of
from funcgrad.primitives.objects import flatten_held


class OfFloats:
    """The leaves of a function's results, from the floating leaves of its arguments.

    Args:
        f: The function.
        args: Its arguments; leaves that are not floating are fixed.
        kwargs: Its keyword arguments.
        kinds: The kinds of dtypes that count as floating.
        fixed: Paths of arguments that are fixed as a whole, such as ``args[0]``.

    Attributes:
        leaves: All leaves of the arguments.
        paths: Their paths.
        active: The places of the floating ones among them.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None = None,
        kinds: str = "fc",
        fixed: Iterable[str] = (),
    ) -> None:
        given = tuple(args), dict(kwargs or {})
        self.f, self.__name__ = f, name_of(f)
        self.leaves, self._tree = flatten_held(given)
        self.paths = leaf_paths(given[0]) + leaf_paths(given[1], "kwargs")
        self.active = [
            i
            for i, x in enumerate(self.leaves)
            if not self.paths[i].startswith(tuple(fixed)) and has_type(x)
            if aval_of(x).dtype.kind in kinds
        ]

    @property
    def point(self) -> list[Any]:
        """The floating leaves."""
        return [self.leaves[i] for i in self.active]

    def __call__(self, *values: Any) -> list[Any]:
        full = list(self.leaves)
        for i, value in zip(self.active, values, strict=True):
            full[i] = value
        args, kwargs = tree_unflatten(self._tree, full)
        return list(flatten_held(self.f(*args, **kwargs))[0])

    def floating(self, *values: Any) -> list[Any]:
        """The floating leaves of the results alone."""
        return [x for x in self(*values) if aval_of(x).dtype.kind in "fc"]


def slope_at_zero(
    central: Callable[[float], float], widest: float, halvings: int
) -> tuple[float, float, float]:
    """Extrapolate central differences of falling steps, by Ridders' method (1982).

    Args:
        central: From a step to the difference.
        widest: The first step.
        halvings: How many steps there are, each half of the one before.
    Returns: The slope, an estimate of its error, and the step that it was found with.
    """
    rows: list[list[float]] = []
    best, error, narrow, step = float("nan"), float("inf"), widest, widest
    for _ in range(halvings):
        row = [central(step)]
        for k, coarse in enumerate(rows[-1] if rows else (), start=1):
            row.append(row[-1] + (row[-1] - coarse) / (4.0**k - 1.0))
            change = max(abs(row[-1] - row[-2]), abs(row[-1] - coarse))
            if change <= error:
                best, error, narrow = row[-1], change, step
        rows.append(row)
        step /= 2
    return best, error, narrow
