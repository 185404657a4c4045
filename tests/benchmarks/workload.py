"""What a workload is, and the register of all of them.

A *workload* is a function of a few sizes that makes a `Problem`: arguments, the program once
for every library with JAX's names, and the same mathematics in NumPy, by which results are judged
before anything is timed. A *row* of the benchmarks is a workload or the gradient of one.

    @workload(small=(8, 5), normal=(1024, 512), large=(8192, 512), rows=BOTH)
    def softmax(rows: int, columns: int) -> Problem:
        '''Softmax of {rows} rows of {columns} numbers.'''
        ...

Workloads stand in two sets, a file for each group of them. Those of `tests/benchmarks/workloads`
are the ones that the library was tuned for; those of `tests/benchmarks/fresh` come from the field's
catalogues, and nothing is ever tuned for one of them: the distance between the two sets says how
much of the speed is a mechanism. The files import NumPy alone, because new processes import them
before the clock of a first call starts.
"""

from __future__ import annotations

import fnmatch
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Program = Callable[..., Any]
Builder = Callable[[Any], Program]
"""Makes a program of a library: of its module, which has the names `numpy`, `lax`, `grad`, ..."""

SETS = {
    "tuned": (
        "dispatch",
        "scalars",
        "elementwise",
        "reductions",
        "linear_algebra",
        "networks",
        "images",
        "stencils",
        "simulation",
        "statistics",
        "derivatives",
        "indexing",
        "signals",
        "programs",
    ),
    "fresh": (
        "kernels",
        "eliminations",
        "weather",
        "filters",
        "particles",
        "lattices",
        "estimation",
        "control",
        "iterations",
        "models",
        "complex_numbers",
        "integers",
        "pricing",
        "pictures",
        "everyday",
    ),
}
"""The groups of each set, which is a folder: see `FOLDERS`."""

FOLDERS = {"tuned": "tests.benchmarks.workloads", "fresh": "tests.benchmarks.fresh"}
GROUPS = tuple(group for groups in SETS.values() for group in groups)
SIZES = ("small", "normal", "large")

FORWARD, GRADIENT, BOTH = (False,), (True,), (False, True)
"""Which rows a workload has: the program itself, its value and gradient, or both."""


@dataclass(frozen=True)
class Problem:
    """A workload of certain sizes.

    Args:
        arguments: Of the program: NumPy arrays in dicts, lists and tuples. Those of float64 are
            converted to the dtype of the run.
        program: Makes the program for a library with JAX's names.
        reference: The same in NumPy, exact in float64.
        argnums: The arguments in which a row that is a gradient differentiates.
        is_gradient: The program gives derivatives itself, those of the sum of all elements of
            what `reference` gives, in the arguments `argnums`: a tree like that argument, or a
            tuple of them where there are several.
        torch: Makes the program of PyTorch's module.
        values: Makes the program of the module of objects for numbers, `tests.benchmarks.values`.
        as_written: Peers with NumPy's names that can run `program` itself; PyTorch runs `scan` and
            `fori_loop` in Python.
        feedback: The first result takes the place of the first argument in the next call, which
            may overwrite that argument: steps of a training or simulation.
        mode: "jit"; "eager": nothing is compiled, and funcgrad is given NumPy's functions; "call":
            the call itself is what counts, and several ways to make it are shown.
        tolerance: Allowed error, as a multiple of what is usual.
        agreeing: Share of the elements that must be right, where rounding decides about others.
        sampling_error: Allowed error of a result that is random.
        complex_step: The reference takes complex numbers, and jumps: finite differences cannot
            judge gradients.
        loops: The reference is loops over elements that Numba compiles: a peer of this name.
    """

    arguments: tuple[Any, ...]
    program: Builder
    reference: Program
    argnums: tuple[int, ...] = (0,)
    is_gradient: bool = False
    torch: Builder | None = None
    values: Builder | None = None
    as_written: tuple[str, ...] = ()
    feedback: bool = False
    mode: str = "jit"
    tolerance: float = 1.0
    agreeing: float = 1.0
    sampling_error: float = 0.0
    complex_step: bool = False
    loops: bool = False


@dataclass(frozen=True)
class Workload:
    """A maker of problems, its sizes by name, and the rows that it stands for.

    Libraries that lack one of the dotted names in ``needs`` are left out.
    """

    group: str
    name: str
    make: Callable[..., Problem]
    sizes: dict[str, tuple[Any, ...]]
    rows: tuple[bool, ...]
    needs: tuple[str, ...] = ()

    def problem(self, size: str) -> Problem:
        """The problem of this size, always with the same numbers."""
        return self.make(*self.sizes[size])

    def title(self, size: str) -> str:
        """What is computed, with its sizes, in a sentence."""
        names = inspect.signature(self.make).parameters
        values = (_spoken(value) for value in self.sizes[size])
        fields = dict(zip(names, values, strict=True))
        return (inspect.getdoc(self.make) or "").splitlines()[0].format(**fields).rstrip(".")


def _spoken(size: Any) -> str:
    """A size as it stands in titles."""
    if isinstance(size, tuple):
        return "-".join(map(str, size))
    return f"{size:,}" if isinstance(size, int) else str(size)


@dataclass(frozen=True)
class Row:
    """A line of the tables: a workload, or value and gradient of it."""

    workload: Workload
    differentiate: bool

    @property
    def name(self) -> str:
        return self.workload.name + ("-gradient" if self.differentiate else "")

    @property
    def group(self) -> str:
        return self.workload.group

    def title(self, size: str) -> str:
        return self.workload.title(size) + (": value and gradient" if self.differentiate else "")


_workloads: dict[str, Workload] = {}


def workload(
    *,
    small: tuple[Any, ...],
    normal: tuple[Any, ...],
    large: tuple[Any, ...],
    rows: tuple[bool, ...] = FORWARD,
    name: str = "",
    needs: tuple[str, ...] = (),
) -> Callable[[Callable[..., Problem]], Callable[..., Problem]]:
    """Register the decorated maker of problems under its own name, or another.

    Args:
        small: Its arguments for tests, computed in an instant.
        normal: Those of the tables.
        large: Those that leave the caches of the processor behind.
        rows: `FORWARD`, `GRADIENT` or `BOTH`.
        name: Where several workloads share a maker.
        needs: Dotted names, as "lax.scan", of newer parts of the libraries with JAX's names.
    """
    sizes = dict(zip(SIZES, (small, normal, large), strict=True))

    def register(make: Callable[..., Problem]) -> Callable[..., Problem]:
        key = name or make.__name__.replace("_", "-")
        if key in _workloads:
            raise ValueError(f"two workloads are called {key!r}")
        group = make.__module__.rpartition(".")[2]
        _workloads[key] = Workload(group, key, make, sizes, rows, needs)
        return make

    return register


def all_rows() -> dict[str, Row]:
    """Every row by its name, group by group."""
    for group in GROUPS:
        import_group(group)
    found = (Row(each, gradient) for each in _workloads.values() for gradient in each.rows)
    return {row.name: row for row in sorted(found, key=lambda row: GROUPS.index(row.group))}


def set_of(group: str) -> str:
    """The set that a group belongs to."""
    return next(name for name, groups in SETS.items() if group in groups)


def import_group(group: str) -> None:
    """Register the workloads of a group."""
    importlib.import_module(f"{FOLDERS[set_of(group)]}.{group}")


def row_of(group: str, name: str) -> Row:
    """One row, for a process that shall import no other group."""
    import_group(group)
    is_gradient = name not in _workloads
    return Row(_workloads[name.removesuffix("-gradient") if is_gradient else name], is_gradient)


def select(rows: dict[str, Row], patterns: Sequence[str]) -> Iterator[Row]:
    """The rows whose name or group matches one of the patterns of a shell.

    Raises:
        ValueError: A pattern matches nothing.
    """
    for pattern in patterns:
        if not any(_is_match(row, pattern) for row in rows.values()):
            groups = ", ".join(dict.fromkeys(row.group for row in rows.values()))
            raise ValueError(f"{pattern!r} is no row and no group of rows (groups: {groups})")
    return (row for row in rows.values() if any(_is_match(row, p) for p in patterns))


def _is_match(row: Row, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in (row.name, row.group))


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    """Apply a function to every leaf of dicts, lists and tuples, in the order of `leaves`."""
    if isinstance(tree, dict):
        return {key: map_arrays(function, tree[key]) for key in sorted(tree)}
    if isinstance(tree, (list, tuple)):
        return type(tree)(map_arrays(function, value) for value in tree)
    return function(tree)


def leaves(tree: Any) -> list[Any]:
    """The leaves of dicts (by sorted keys), lists and tuples, without those that are None."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (list, tuple)):
        return [leaf for value in tree for leaf in leaves(value)]
    return [] if tree is None else [tree]


def converted(tree: Any, dtype: str) -> Any:
    """Arrays of float64 as ``dtype``; others as they are."""

    def convert(leaf: Any) -> Any:
        is_double = getattr(leaf, "dtype", None) == np.float64
        return np.asarray(leaf, dtype) if is_double else leaf

    return map_arrays(convert, tree)
