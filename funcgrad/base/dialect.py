"""Dialects: the library whose rules traced arrays follow where rules differ.

In NumPy arrays change: ``x.copy()`` can be assigned to, ``x.sort()`` sorts ``x``. In JAX they do
not: both give an array. The rule is that of the code that makes the transformation, so it belongs
to the context of a call: programs for either library run side by side in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np


class Dialect:
    """The rules of a library; compared by identity.

    Args:
        name: Of the library.
        dtypes: In which dtype a program computes where it names another one.
        narrow: From a value that a program hands over, or gets, to the same value in such dtypes;
            ``None`` if there are none.

    Attributes:
        weak: From what control flow gives to a weak array, where its type was weak; ``None`` if all
            results are strong.
        array: From a concrete value to the array of the library that rules of users are given;
            ``None`` if they are given NumPy's.
        generator: Name of the generator of random bits that keys without another one belong to.
        is_partitionable: Whether random numbers do not depend on how many are drawn.
        checks_places: Whether known indices out of bounds raise.
        places: Dtype of places in sorted arrays, ``None`` for that of indices.
        converted: From a traced array that a program has converted, and the dtype that it named,
            to the array that it gets; ``None`` if it gets that.
    """

    __slots__ = (
        "array", "checks_places", "converted", "dtypes", "generator", "is_partitionable", "name",
        "narrow", "places", "weak",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        dtypes: Mapping[np.dtype[Any], np.dtype[Any]],
        narrow: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name = name
        self.dtypes = dtypes
        self.narrow = narrow
        self.weak: Callable[[Any], Any] | None = None
        self.array: Callable[[Any], Any] | None = None
        self.generator = "threefry2x32"
        self.is_partitionable = True
        self.checks_places = name == "numpy"
        self.places: np.dtype[Any] | None = None
        self.converted: Callable[[Any, np.dtype[Any]], Any] | None = None

    def __repr__(self) -> str:
        return self.name


NUMPY = Dialect("numpy", {})
_dialect: ContextVar[Dialect] = ContextVar("funcgrad_dialect", default=NUMPY)

dialect = _dialect.get
"""The rules that hold in this thread and context: `NUMPY`, or rules of JAX."""

enter_dialect = _dialect.set
"""Follow the rules of a library; returns the token for `leave_dialect`."""

leave_dialect = _dialect.reset

NARROWER: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
"""The dtype of half the bits, of those that have 64."""


def fails_as_nan() -> bool:
    """Whether what fails for an array is nan, as in JAX, instead of an error."""
    return dialect() is not NUMPY


def ignores_cotangents_of_integers() -> bool:
    """Whether rules may give cotangents of arguments that have none, as in JAX."""
    return dialect() is not NUMPY


def draws_together() -> bool:
    """Whether mapped keys of XLA's generator draw from the first of them, as in JAX."""
    return dialect() is not NUMPY


def repeats_cotangents() -> bool:
    """Whether an array that a rule gives for a container stands for all leaves, as in JAX."""
    return dialect() is not NUMPY


def reads_both_triangles() -> bool:
    """Whether factors and eigenvalues of symmetric matrices follow from both of their triangles.

    JAX takes the mean of the triangles, so that gradients are symmetric; NumPy reads one.
    """
    return dialect() is not NUMPY


def default_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which the dialect computes what is of another one, or the same."""
    return dialect().dtypes.get(dtype, dtype)
