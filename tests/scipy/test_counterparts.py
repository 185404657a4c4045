"""Functions of SciPy that no other test of every run calls, with the results of their originals."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.integrate
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse.linalg

import funcgrad as fg

IMAGE = np.sin(np.arange(35.0) ** 1.3).reshape(5, 7)
LOWER = scipy.sparse.csr_array(np.tril(IMAGE[:, :5]) + 3 * np.eye(5))
ZEROS, POLES = [0.5, -0.25], [-0.5, 0.75, 0.25 + 0.5j]


def second(x: Any, axis: int, output: Any, mode: str, cval: float) -> Any:
    return scipy.ndimage.correlate1d(x, [1, -2, 1], axis, output, mode, cval)


def our_second(x: Any, axis: int, output: Any, mode: str, cval: float) -> Any:
    return fg.scipy.ndimage.correlate1d(x, [1, -2, 1], axis, output, mode, cval)


CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("integrate.nquad", lambda f: f(lambda x, y: np.exp(-x * y), [[0, 1], [0, 2]])[0]),
    ("ndimage.generic_gradient_magnitude", lambda f: f(IMAGE, second)),
    ("ndimage.generic_laplace", lambda f: f(IMAGE, second, mode="nearest")),
    ("ndimage.minimum_filter1d", lambda f: f(IMAGE, 3, axis=0, mode="wrap")),
    ("optimize.fminbound", lambda f: f(lambda x: (x - 0.3) ** 2 + x, -2.0, 3.0)),
    ("signal.freqs_zpk", lambda f: f(ZEROS, POLES, 2.0, np.linspace(0.1, 3.0, 7))),
    ("signal.freqz_zpk", lambda f: f(ZEROS, POLES, 2.0, 9)),
    ("sparse.linalg.spsolve_triangular", lambda f: f(LOWER, IMAGE[:, 5])),
]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_results_are_those_of_scipy(
    name: str, call: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = call(reduce(getattr, name.split("."), scipy))
    monkeypatch.setitem(globals(), "second", our_second)
    found = call(reduce(getattr, name.split("."), fg.scipy))
    pairs = (
        zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    )
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5 if "fminbound" in name else 1e-10)


def test_functions_of_trees() -> None:
    tree = {"b": [1, (2, 3)], "a": 4}
    util = fg.tree_util
    structure = util.tree_structure(tree)
    children = util.treedef_children(structure)
    assert [util.treedef_is_leaf(child) for child in children] == [True, False]
    assert util.tree_broadcast({"b": 1, "a": 2}, tree) == {"b": [1, (1, 1)], "a": 2}
    assert util.tree_reduce_associative(lambda x, y: x + y, tree) == 10
