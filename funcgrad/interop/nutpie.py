"""The sampler of nutpie on a `LogDensity`, in its own threads, without Python between two draws.

The package nutpie imports ArviZ, pandas, Matplotlib and SciPy for its results and its progress,
which takes longer than many posteriors. Here its compiled library is loaded alone, and draws are
arrays.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

import numpy as np

from funcgrad.base.forking import cached_property
from funcgrad.base.namespaces import present
from funcgrad.errors import ArgumentError, LibraryError
from funcgrad.interop.samplers import LogDensity

__all__ = ["Draws", "sample"]

_LIBRARY = "nutpie._lib"

_EXPAND = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.c_uint64,
    ctypes.c_uint64,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
)


class Draws:
    """The draws of all chains after tuning. Made by `sample`.

    Attributes:
        vectors: The vectors, of shape ``(chains, draws, n)``.
        statistics: The sampler's numbers of every draw, arrays of shape ``(chains, draws)``, by the
            names that nutpie gives them: ``"diverging"``, ``"logp"``, ``"depth"``, ``"step_size"``.
    """

    def __init__(
        self, density: LogDensity, vectors: np.ndarray, statistics: dict[str, np.ndarray]
    ) -> None:
        self._density = density
        self.vectors = vectors
        self.statistics = statistics

    def __repr__(self) -> str:
        chains, draws, n = self.vectors.shape
        return f"<{chains} chains of {draws} draws of {n} numbers>"

    @cached_property
    def parameters(self) -> Any:
        """The parameters: a tree of arrays that start with the axes ``(chains, draws)``."""
        return self._density.parameters(self.vectors)


def sample(
    density: LogDensity,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Draws:
    """Draw from a posterior by nutpie's No-U-Turn sampler.

    Args:
        density: The log density.
        draws: Draws of every chain, after tuning.
        tune: Draws before, by which step and metric are found.
        chains: How many chains.
        cores: How many chains run at the same time; by default as many as there are processors.
        seed: For draws and for starting points, which are uniform between -2 and 2.
        settings: Further settings of nutpie, such as ``target_accept=0.9`` and ``maxdepth=8``.
    Returns: The draws.

    Raises:
        ArgumentError: The first argument is no `LogDensity`, there are no draws or chains, or
            nutpie has no such setting.
        LibraryError: nutpie is not installed.
    """
    if not isinstance(density, LogDensity):
        raise ArgumentError(
            f"nutpie.sample takes a LogDensity, got {type(density).__name__}. Write "
            "LogDensity(log_density, parameters)."
        )
    if min(draws, chains) < 1 or tune < 0:
        raise ArgumentError(
            f"nutpie.sample draws at least once, in one chain: got draws={draws}, tune={tune}, "
            f"chains={chains}."
        )
    library = _library()
    chosen = library.PyNutsSettings.Diag(seed)
    given = {"num_draws": draws, "num_tune": tune, "num_chains": chains, **settings}
    for name, value in given.items():
        if not hasattr(chosen, name):
            raise ArgumentError(f"nutpie.sample: nutpie has no setting {name}.")
        setattr(chosen, name, value)
    n_cores = min(chains, cores or len(os.sched_getaffinity(0)))
    progress, storage = library.ProgressType.none(), library.PyStorage.arrow()
    model = _model(library, density)
    sampler = library.PySampler.from_pymc(chosen, n_cores, model, progress, storage)
    try:
        sampler.wait(None)
    except BaseException:
        sampler.abort()
        raise
    tables, statistics = sampler.take_results().get_arrow_trace()
    columns = [_columns(table) for table in statistics]
    kept = [~rows.pop("tuning").astype(bool) for rows in columns]
    vectors = np.empty((len(tables), draws, density.n))
    for chain, table in enumerate(tables):
        for k, name in enumerate(density.names):
            vectors[chain, :, k] = table.column(name).to_numpy()[kept[chain]]
    found = {
        name: np.stack([rows[name][flags] for rows, flags in zip(columns, kept, strict=True)])
        for name in columns[0]
    }
    return Draws(density, vectors, found)


def _model(library: Any, density: LogDensity) -> Any:
    """The model of nutpie: one variable for every number, starting points, and code by address."""
    n, names = density.n, density.names
    copy = _EXPAND(_copied)
    expand = ctypes.cast(copy, ctypes.c_void_p).value
    return library.PyMcModel(
        library.LogpFunc(density.address, 0, density),
        library.ExpandFunc(n, n, expand, 0, copy),
        library.PyVariable.new_variables(names, ["float64"] * n, [()] * n, {}, {}),
        n,
        {},
        {"unconstrained_parameter": names},
        lambda seed: np.random.default_rng(seed).uniform(-2, 2, n),
        None,
    )


def _copied(n: int, n_found: int, vector: int, found: int, data: int) -> int:
    """Copy a draw for nutpie; all draws are transformed together at the end."""
    ctypes.memmove(found, vector, 8 * n_found)
    return 0


def _columns(table: Any) -> dict[str, np.ndarray]:
    """The columns of a table that have a number for every draw."""
    found = {}
    for name in table.column_names:
        column = table.column(name)
        if not column.null_count and "List" not in str(column.type):
            found[name] = np.asarray(column.to_numpy())
    return found


def _library() -> Any:
    """The compiled library of nutpie, without the package around it if that is not loaded."""
    found = sys.modules.get(_LIBRARY)
    if found is None:
        package = importlib.util.find_spec("nutpie")
        places = package and package.submodule_search_locations
        spec = importlib.machinery.PathFinder.find_spec(_LIBRARY, places) if places else None
        if spec is None or spec.loader is None:
            raise LibraryError("nutpie.sample needs the package nutpie, which is not installed.")
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        sys.modules[_LIBRARY] = found
    return found


present(__name__)
