"""Table of programs as users write them, each with one fault at a line that ends with ``# here``.

They are methods, closures, functions of modules, under `vmap`, `scan`, `checkpoint`, `cond` and
rules of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Program = tuple[Callable[..., Any], tuple[Any, ...]]
FAULTS: dict[str, tuple[tuple[str, ...], Callable[[], Program]]] = {}
CLEAN: dict[str, Callable[[], Program]] = {}
POINTS = ("jump", "kink", "kink-of-choice", "singular-derivative")
"""Rules of which each may be the first to see that there is no derivative."""


def case(*rules: str) -> Any:
    """Publish a program in which one of some rules finds a fault."""

    def register(make: Callable[[], Program]) -> Callable[[], Program]:
        FAULTS[make.__name__] = rules, make
        return make

    return register


def clean(make: Callable[[], Program]) -> Callable[[], Program]:
    """Publish a program without a fault."""
    CLEAN[make.__name__] = make
    return make


RNG = np.random.default_rng(7)
X = RNG.normal(size=(30, 4))
Y = RNG.normal(size=30)
W = RNG.normal(size=4)


# ---- cut paths
