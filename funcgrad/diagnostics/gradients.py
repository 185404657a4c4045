"""Are these gradients right? Against differences of the function, and against gradients by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.api.differentiation import vjp
from funcgrad.api.floats import OfFloats, slope_at_zero
from funcgrad.base.pytree import keystr, tree_flatten_with_path, tree_structure
from funcgrad.base.records import dataclass
from funcgrad.core.avals import aval_of
from funcgrad.diagnostics.tables import short, table
from funcgrad.errors import ArgumentError

METHODS = ("richardson", "differences", "complex")

_RTOL = {"richardson": 1e-7, "differences": 1e-5, "complex": 1e-10}
_SINGLE_RTOL = 1e-3
_HALVINGS = 6


@dataclass(frozen=True)
class GradientCheck:
    """Comparison of the gradient of one leaf with differences.

    Attributes:
        path: The leaf, such as ``args[0]['w']``.
        checked: How many of its entries were compared, and of how many.
        max_abs: Largest absolute difference.
        max_rel: Largest difference relative to the largest entry of the leaf's gradient.
        worst: Index of the entry that differs most.
        verdict: ``"ok"``, ``"wrong"``, ``"not finite"``, or ``"kink"``: slopes to the left and to
            the right differ, and the gradient lies between them.
    """

    path: str
    checked: tuple[int, int]
    max_abs: float
    max_rel: float
    worst: tuple[int, ...]
    verdict: str

    def __bool__(self) -> bool:
        return self.verdict in ("ok", "kink")


@dataclass(frozen=True)
class GradientChecks:
    """The result of `check_gradients`: true if every leaf is right; prints as a table.

    Attributes:
        name: Name of the function.
        method: How the reference was computed.
        leaves: One `GradientCheck` per floating leaf.
    """

    name: str
    method: str
    leaves: tuple[GradientCheck, ...]

    def __bool__(self) -> bool:
        return all(self.leaves)

    def __str__(self) -> str:
        rows = [
            [
                leaf.path,
                f"{leaf.checked[0]} of {leaf.checked[1]}",
                short(leaf.max_abs),
                short(leaf.max_rel),
                leaf.verdict + ("" if leaf else f" at {list(leaf.worst)}"),
            ]
            for leaf in self.leaves
        ]
        header = ["leaf", "checked", "max abs", "max rel", "verdict"]
        wrong = [leaf.path for leaf in self.leaves if not leaf]
        last = f"wrong: {', '.join(wrong)}" if wrong else "all gradients are right"
        head = f"gradients of {self.name} against {_NAMES[self.method]}"
        return "\n".join([head, table(header, rows), last])


_NAMES = {
    "richardson": "Richardson extrapolation of central differences",
    "differences": "central differences",
    "complex": "complex steps",
}


def check_gradients(
    f: Callable[..., Any],
    args: Sequence[Any],
    method: str = "richardson",
    rtol: float | None = None,
    atol: float = 1e-8,
    max_entries: int = 100,
    seed: int = 0,
) -> GradientChecks:
    """Compare the gradient with a reference that uses values of the function alone.

    Every floating leaf is checked entry by entry (unlike `funcgrad.testing.check_grads`, which
    checks directions and raises). If the result is no scalar, the gradient of its product with a
    random direction is checked.

    Args:
        f: Function of arrays or pytrees with real floating results.
        args: Tuple or list of arguments: the point. Leaves that are not real floating are kept as
            they are. Single precision is checked at a double of the same value, as far as the
            function computes in double then.
        method: ``"richardson"`` extrapolates central differences of falling steps (up to 12
            evaluations per entry), ``"differences"`` takes one (2 evaluations), ``"complex"`` the
            imaginary part at a tiny imaginary step: exact up to rounding, for functions that are
            analytic and take complex numbers (no ``abs``, no comparisons).
        rtol: Tolerance relative to the leaf's largest entry; by default from method and dtype.
        atol: Absolute tolerance.
        max_entries: How many entries of a leaf are compared; of larger ones a random sample.
        seed: Seed of the sample and of the direction.
    Returns: A `GradientChecks`: true if all is well, and a table as text.
    Raises: ArgumentError: If there is nothing to check, or the method is unknown.

    Example:
        >>> report = fg.diagnostics.check_gradients(lambda x: np.sum(np.sin(x)), (np.ones(3),))
        >>> bool(report), [leaf.verdict for leaf in report.leaves]
        (True, ['ok'])
    """
    check_callable(f, "check_gradients")
    if method not in METHODS or not isinstance(args, tuple | list) or max_entries < 1:
        raise ArgumentError(
            "check_gradients needs a tuple of arguments, max_entries >= 1 and a method out of "
            f"{', '.join(METHODS)}, got args of type {type(args).__name__}, "
            f"max_entries={max_entries} and method={method!r}."
        )
    checker = _Checker(f, tuple(args), method, rtol, atol, np.random.default_rng(seed))
    leaves = [checker.check(i, max_entries) for i in checker.active]
    return GradientChecks(name_of(f), method, tuple(leaves))


class _Checker:
    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        method: str,
        rtol: float | None,
        atol: float,
        rng: np.random.Generator,
    ) -> None:
        self.f = f
        self.method = method
        self.atol = atol
        self.rng = rng
        self.floats = OfFloats(f, args, kinds="f")
        self.active, self.paths = self.floats.active, self.floats.paths
        if not self.active:
            raise ArgumentError(
                f"check_gradients: no argument of {name_of(f)} is an array of real floating "
                "numbers, so that there is no gradient to check. Write 1.0 instead of 1."
            )
        point = self.floats.point
        values, pull = vjp(self.floats, *point)
        self.directions = self.directions_for(values)
        self.gradients = dict(zip(self.active, pull(self.directions), strict=True))
        wide = [np.array(x, np.float64) for x in point]
        self.is_double = all(np.asarray(x).dtype != np.float32 for x in self.floats(*wide))
        self.rtol = rtol
        self.start = wide if self.is_double else [np.array(x) for x in point]

    def directions_for(self, values: Sequence[Any]) -> list[Any]:
        is_scalar = len(values) == 1 and not np.ndim(values[0])
        found: list[Any] = []
        for x in values:
            x = np.asarray(x)
            if x.dtype.kind != "f":
                raise ArgumentError(
                    f"check_gradients: {name_of(self.f)} returned an array of dtype {x.dtype}; its "
                    "results must be real floating numbers. Return those alone."
                )
            one = np.ones(()) if is_scalar else self.rng.standard_normal(x.shape)
            found.append(np.asarray(one, x.dtype)[()])
        return found

    def value(self, active: Sequence[Any]) -> Any:
        pairs = zip(self.floats(*active), self.directions, strict=True)
        return sum(np.sum(np.asarray(x) * d) for x, d in pairs)

    def check(self, leaf: int, max_entries: int) -> GradientCheck:
        gradient = np.asarray(self.gradients[leaf], np.float64)
        entries = np.arange(gradient.size)
        if gradient.size > max_entries:
            entries = np.sort(self.rng.choice(gradient.size, max_entries, replace=False))
        found = gradient.ravel()[entries]
        place = self.active.index(leaf)
        with np.errstate(all="ignore"):
            expected = np.array([self.slope(place, int(e)) for e in entries], np.float64)
        if not entries.size:
            return GradientCheck(self.paths[leaf], (0, 0), 0.0, 0.0, (), "ok")
        difference = np.abs(found - expected)
        scale = float(np.max(np.abs(expected)))
        rtol = self.rtol_of(leaf) if self.rtol is None else self.rtol
        bad = ~(difference <= self.atol + rtol * scale)
        kinks = bad.copy()
        for k in np.flatnonzero(bad):
            kinks[k] = self.is_between_slopes(place, int(entries[k]), found[k], rtol)
        order = np.where(bad & ~kinks, np.nan_to_num(difference, nan=np.inf) + 1.0, -1.0)
        if not (bad & ~kinks).any():
            order = np.where(kinks, 0.0, difference)
        worst = np.unravel_index(int(entries[int(np.argmax(order))]), gradient.shape)
        kept = difference[~kinks]
        largest = float(kept.max()) if kept.size else 0.0
        return GradientCheck(
            self.paths[leaf],
            (len(entries), gradient.size),
            largest,
            largest / scale if scale else largest,
            tuple(int(i) for i in worst),
            self.verdict(found, expected, bad, kinks),
        )

    def rtol_of(self, leaf: int) -> float:
        is_single = not self.is_double or aval_of(self.floats.leaves[leaf]).dtype == np.float32
        return max(_RTOL[self.method], _SINGLE_RTOL * is_single)

    def verdict(self, found: Any, expected: Any, bad: Any, kinks: Any) -> str:
        if not (np.isfinite(found).all() and np.isfinite(expected).all()):
            return "not finite"
        if (bad & ~kinks).any():
            return "wrong"
        return "kink" if kinks.any() else "ok"

    def moved(self, place: int, entry: int, step: Any) -> Any:
        """The function at the point with one entry moved."""
        values = list(self.start)
        dtype = np.result_type(values[place].dtype, np.asarray(step).dtype)
        values[place] = values[place].astype(dtype)
        values[place].flat[entry] += step
        return self.value(values)

    def slope(self, place: int, entry: int) -> float:
        if self.method == "complex":
            tiny = 1e-30
            return float(np.imag(self.moved(place, entry, 1j * tiny)) / tiny)
        if self.method == "differences":
            return self.central(place, entry, self.step(place, entry))
        widest = 20 * self.step(place, entry)
        return slope_at_zero(partial(self.central, place, entry), widest, _HALVINGS)[0]

    def step(self, place: int, entry: int) -> float:
        size = max(1.0, abs(float(self.start[place].flat[entry])))
        return float(np.cbrt(np.finfo(self.start[place].dtype).eps)) * size

    def central(self, place: int, entry: int, step: float) -> float:
        high = self.moved(place, entry, self.start[place].dtype.type(step))
        low = self.moved(place, entry, self.start[place].dtype.type(-step))
        return float((high - low) / (2 * step))

    def is_between_slopes(self, place: int, entry: int, found: float, rtol: float) -> bool:
        """Whether one-sided slopes stay apart as steps fall, with the gradient between them."""
        if self.method == "complex" or not np.isfinite(found):
            return False
        kind = self.start[place].dtype.type
        here = self.moved(place, entry, kind(0))
        gaps = []
        for step in (self.step(place, entry), self.step(place, entry) / 8):
            right = float((self.moved(place, entry, kind(step)) - here) / step)
            left = float((here - self.moved(place, entry, kind(-step))) / step)
            gaps.append(abs(right - left))
        slack = self.atol + max(rtol, 1e-4) * (abs(left) + abs(right))
        stays = gaps[1] > 0.5 * gaps[0] > slack
        return stays and min(left, right) - slack <= found <= max(left, right) + slack


@dataclass(frozen=True)
class Comparison:
    """How one leaf of two trees compares.

    Attributes:
        path: The leaf; empty for a tree that is a leaf.
        exact: Whether all entries are equal.
        approximate: Whether they are equal up to the tolerances.
        max_diff: Largest absolute difference; ``None`` if there is nothing to compare.
        verdict: ``"exact"``, ``"approximate"``, ``"different"``, or what is wrong with the leaf.
    """

    path: str
    exact: bool
    approximate: bool
    max_diff: float | None
    verdict: str

    def __bool__(self) -> bool:
        return self.approximate


@dataclass(frozen=True)
class Comparisons:
    """The result of `compare`: true if all leaves agree approximately; prints as a table.

    Attributes:
        leaves: One `Comparison` per leaf, of either tree.
        structure: What differs in the structure of the trees; empty if nothing does.
    """

    leaves: tuple[Comparison, ...]
    structure: str = ""

    def __bool__(self) -> bool:
        return not self.structure and all(self.leaves)

    @property
    def exact(self) -> bool:
        """Whether all leaves are equal."""
        return not self.structure and all(leaf.exact for leaf in self.leaves)

    def __str__(self) -> str:
        rows = [
            [
                leaf.path or "(the leaf)",
                str(leaf.exact),
                str(leaf.approximate),
                short(leaf.max_diff),
                leaf.verdict,
            ]
            for leaf in self.leaves
        ]
        text = table(["leaf", "exact", "approximate", "max diff", "verdict"], rows)
        return f"{text}\n{self.structure}" if self.structure else text


def compare(manual: Any, automatic: Any, rtol: float = 1e-8, atol: float = 1e-12) -> Comparisons:
    """Compare gradients that were derived by hand with automatic ones, leaf by leaf.

    Args:
        manual: A pytree of arrays.
        automatic: A pytree that should be of the same structure, shapes and values.
        rtol: Tolerance relative to the largest entry of the leaf of ``automatic``.
        atol: Absolute tolerance.
    Returns: A `Comparisons`: true if all agree, and a table as text. NaNs agree with NaNs.

    Example:
        >>> x = np.array([0.5, 1.0])
        >>> automatic = fg.grad(lambda x: np.sum(np.tanh(x)))(x)
        >>> print(fg.diagnostics.compare({"x": 1 - np.tanh(x) ** 2}, {"x": automatic}))
        leaf   exact  approximate  max diff  verdict
        ['x']   True         True         0  exact
    """
    ours = {keystr(path): leaf for path, leaf in tree_flatten_with_path(manual)[0]}
    theirs = {keystr(path): leaf for path, leaf in tree_flatten_with_path(automatic)[0]}
    rows = list(_compared(ours, theirs, rtol, atol))
    structure = ""
    if ours.keys() == theirs.keys() and tree_structure(manual) != tree_structure(automatic):
        structure = (
            f"different structures: {tree_structure(manual)} by hand, "
            f"{tree_structure(automatic)} automatic"
        )
    return Comparisons(tuple(rows), structure)


def _compared(
    ours: dict[str, Any], theirs: dict[str, Any], rtol: float, atol: float
) -> Iterator[Comparison]:
    for path in dict.fromkeys([*ours, *theirs]):
        if path not in theirs:
            yield Comparison(path, False, False, None, "only by hand")
        elif path not in ours:
            yield Comparison(path, False, False, None, "only automatic")
        else:
            yield _comparison(path, np.asarray(ours[path]), np.asarray(theirs[path]), rtol, atol)


def _comparison(path: str, a: Any, b: Any, rtol: float, atol: float) -> Comparison:
    if a.shape != b.shape:
        return Comparison(path, False, False, None, f"shape {a.shape} against {b.shape}")
    exact = bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc"))
    if exact or not a.size:
        return Comparison(path, True, True, 0.0, "exact")
    with np.errstate(all="ignore"):
        difference = np.abs(a - b)
        difference[(np.isnan(a) & np.isnan(b)) | (a == b)] = 0
    largest = float(np.max(difference))
    finite = np.abs(b)[np.isfinite(b)]
    scale = float(finite.max()) if finite.size else 0.0
    approximate = largest <= atol + rtol * scale
    return Comparison(path, False, approximate, largest, ("different", "approximate")[approximate])
