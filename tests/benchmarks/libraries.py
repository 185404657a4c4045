"""The libraries under test behind one face, so that each benchmark is written once.

funcgrad takes JAX's names on purpose; what differs is only how an array reaches the library and how
one waits for a result. A peer that is not installed is reported and left out.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Library:
    """A library with JAX's vocabulary: ``root.jit``, ``root.nn``, ``root.tree``, ``numpy``, ..."""

    name: str
    root: ModuleType
    numpy: ModuleType
    to_own_array: Callable[[np.ndarray], Any]
    wait: Callable[[Any], Any]
    set_double: Callable[[bool], None]
    """Keep float64 as it is, where a library would not do so by itself."""

    def own(self, tree: Any) -> Any:
        """Convert every NumPy array of a pytree to the array type that the library works on."""
        return self.root.tree.map(self.to_own_array, tree)


def funcgrad_library() -> Library:
    """funcgrad: its arrays are NumPy's and its results are always ready."""
    root = importlib.import_module("funcgrad")
    return Library("funcgrad", root, root.numpy, np.array, lambda tree: tree, lambda double: None)


def jax_library() -> Library:
    """JAX: arrays live on its device, results arrive asynchronously."""
    root = importlib.import_module("jax")

    def set_double(double: bool) -> None:
        root.config.update("jax_enable_x64", double)

    return Library("jax", root, root.numpy, root.numpy.array, root.block_until_ready, set_double)


CONSTRUCTORS: dict[str, Callable[[], Library]] = {
    "funcgrad": funcgrad_library,
    "jax": jax_library,
}
PEERS = ("jax",)


def load_all() -> list[Library]:
    """funcgrad and those of its peers that are installed."""
    libraries = [funcgrad_library()]
    for name in PEERS:
        try:
            libraries.append(CONSTRUCTORS[name]())
        except ImportError as error:
            report_absence(name, error)
    return libraries


def report_absence(name: str, error: ImportError) -> None:
    """Tell the reader on stderr which peer is missing."""
    print(f"skipped {name}: {error} (peers: pip install '.[bench]')", file=sys.stderr)
