"""Every pattern of indices against NumPy: read, written and differentiated, in every way to run.

A pattern is a sequence of kinds of items: a slice ``s``, a known integer ``i``, ``None`` ``n``, an
ellipsis ``e``, an array of integers ``a``, an array of bools ``b``. NumPy's own indexing of arrays
is the reference, also for derivatives: a gradient is the cotangent added up at the places read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

KINDS = "sineab"
CONSUMING = frozenset("siab")
SHAPE = (2, 3, 4, 2, 3)
SLICES = (slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2))
ARRAYS = (np.array([1, 0]), np.array([0, -1]), np.array([[1], [0]]))

Case = tuple[str, int]
"""A pattern and the rank of the array."""


def index_of(pattern: str, rank: int) -> tuple[Any, ...]:
    """An index of the pattern; what its items are depends on where they stand."""
    shape = SHAPE[:rank]
    skipped = rank - sum(kind in CONSUMING for kind in pattern)
    items: list[Any] = []
    axis = 0
    for place, kind in enumerate(pattern):
        if kind == "n":
            items.append(None)
        elif kind == "e":
            items.append(Ellipsis)
            axis += skipped
        else:
            items.append(_item(kind, place, shape[axis]))
            axis += 1
    return tuple(items)


def _item(kind: str, place: int, length: int) -> Any:
    if kind == "s":
        return SLICES[place % len(SLICES)]
    if kind == "i":
        return (0, -1)[place % 2]
    if kind == "a":
        return ARRAYS[place % len(ARRAYS)]
    mask = np.zeros(length, bool)
    mask[[0, -1]] = True
    return mask


def is_valid(pattern: str, rank: int) -> bool:
    """Whether NumPy takes the pattern for an array of this rank."""
    return sum(kind in CONSUMING for kind in pattern) <= rank and pattern.count("e") <= 1


def cases(length: int) -> list[Case]:
    patterns = map("".join, itertools.product(KINDS, repeat=length))
    return [(p, rank) for p in patterns for rank in range(1, 6) if is_valid(p, rank)]


def sampled(length: int, number: int) -> list[Case]:
    every = cases(length)
    chosen = np.random.default_rng(20 + length).choice(len(every), number, replace=False)
    return [every[i] for i in chosen]


def array_of(rank: int) -> Any:
    return np.arange(1.0, 1 + np.prod(SHAPE[:rank])).reshape(SHAPE[:rank])


class Reference:
    """What NumPy makes of an index."""

    def __init__(self, pattern: str, rank: int) -> None:
        self.index = index_of(pattern, rank)
        self.x = array_of(rank)
        self.read = self.x[self.index]
        self.value = np.random.default_rng(rank).normal(size=self.read.shape)
        self.written, self.added = self.x.copy(), self.x.copy()
        self.written[self.index] = self.value
        np.add.at(self.added, self.index, self.value)
        self.pulled = np.zeros_like(self.x)
        np.add.at(self.pulled, self.index, self.value)
        # An element that was written has its derivative by the value that was written last.
        numbers = np.full(self.x.shape, -1)
        numbers[self.index] = np.arange(self.read.size).reshape(self.read.shape)
        self.ct = np.random.default_rng(rank + 9).normal(size=self.x.shape)
        self.ct_x = np.where(numbers < 0, self.ct, 0.0)
        self.ct_value = np.zeros(self.read.size)
        self.ct_value[numbers[numbers >= 0]] = self.ct[numbers >= 0]
        self.ct_value = self.ct_value.reshape(self.read.shape)

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.x, self.value, self.ct

    @property
    def values(self) -> dict[str, Any]:
        return {"get": self.read, "set": self.written, "add": self.added}

    @property
    def derivatives(self) -> dict[str, Any]:
        return {
            "jvp of x[i]": self.ct[self.index],
            "vjp of x[i]": self.pulled,
            "vjp of set by x": self.ct_x,
            "vjp of set by value": self.ct_value,
            "vjp of add by x": self.ct,
            "vjp of add by value": self.ct[self.index],
        }

    def compute_values(self, x: Any, value: Any, ct: Any) -> dict[str, Any]:
        """The same by funcgrad, of arrays or traced values."""
        place = fnp.at(x)[self.index]
        return {"get": place.get(), "set": place.set(value), "add": place.add(value)}

    def compute_derivatives(self, x: Any, value: Any, ct: Any) -> dict[str, Any]:
        index = self.index
        set_x, set_value = fg.vjp(lambda y, v: y.at[index].set(v), x, value)[1](ct)
        add_x, add_value = fg.vjp(lambda y, v: y.at[index].add(v), x, value)[1](ct)
        return {
            "jvp of x[i]": fg.jvp(lambda y: y[index], (x,), (ct,))[1],
            "vjp of x[i]": fg.vjp(lambda y: y[index], x)[1](value)[0],
            "vjp of set by x": set_x,
            "vjp of set by value": set_value,
            "vjp of add by x": add_x,
            "vjp of add by value": add_value,
        }

    def compute_all(self, *arguments: Any) -> dict[str, Any]:
        return self.compute_values(*arguments) | self.compute_derivatives(*arguments)


def check(case: Case, got: dict[str, Any], expected: dict[str, Any]) -> None:
    assert got.keys() == expected.keys()
    for name, y in expected.items():
        assert np.shape(got[name]) == np.shape(y), (case, name)
        np.testing.assert_allclose(got[name], y, rtol=1e-13, err_msg=f"{case} {name}")


def check_eager(case: Case) -> None:
    reference = Reference(*case)
    got = reference.compute_all(*reference.arguments)
    check(case, got, reference.values | reference.derivatives)


def check_mapped(case: Case) -> None:
    """Two examples, of which the second is twice the first."""
    reference = Reference(*case)
    expected = reference.values | reference.derivatives
    doubled = [np.stack([a, 2 * a]) for a in reference.arguments]
    got = fg.vmap(reference.compute_all)(*doubled)
    check(case, {name: y[0] for name, y in got.items()}, expected)
    check(case, {name: y[1] / 2 for name, y in got.items()}, expected)
    fixed = fg.vmap(lambda value: fnp.at(reference.x)[reference.index].set(value))(doubled[1])
    np.testing.assert_array_equal(fixed[0], reference.written, err_msg=f"{case} set, mapped value")


def check_compiled(group: list[Case], kind: str) -> None:
    """Many cases in one program: their values or their derivatives."""
    references = [Reference(*case) for case in group]

    def everything(arguments: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
        pairs = zip(references, arguments, strict=True)
        return [getattr(r, f"compute_{kind}")(*a) for r, a in pairs]

    got = fg.jit(everything)([r.arguments for r in references])
    for case, reference, ys in zip(group, references, got, strict=True):
        check(case, ys, getattr(reference, kind))


def check_all_compiled(rows: list[Case], kind: str, size: int = 100) -> None:
    for rank in range(1, 6):
        same = [case for case in rows if case[1] == rank]
        for i in range(0, len(same), size):
            check_compiled(same[i : i + size], kind)


SHORT = [case for length in range(3) for case in cases(length)]
MANY = [*SHORT, *sampled(3, 80)]
SOME = [*sampled(4, 40), *sampled(5, 40)]
WAYS: dict[str, Callable[[Case], None]] = {"eager": check_eager, "mapped": check_mapped}


@pytest.mark.parametrize("way", WAYS)
def test_all_patterns_of_up_to_two_items_and_some_of_three(way: str) -> None:
    for case in MANY:
        WAYS[way](case)


def test_all_patterns_of_up_to_two_items_and_some_of_three_compiled() -> None:
    check_all_compiled(MANY, "values")


@pytest.mark.nightly
def test_derivatives_of_some_patterns_compiled() -> None:
    check_all_compiled([*sampled(2, 10), *sampled(3, 15), *sampled(4, 5)], "derivatives")


@pytest.mark.parametrize("way", WAYS)
def test_some_patterns_of_four_and_five_items(way: str) -> None:
    for case in SOME:
        WAYS[way](case)


@pytest.mark.parametrize("case", [("saeb", 3), ("aea", 2), ("aeai", 3), ("nbea", 2)], ids=str)
def test_an_ellipsis_that_stands_for_no_axis_separates_index_arrays(case: Case) -> None:
    reference = Reference(*case)
    got = fg.jit(lambda x: x[reference.index])(reference.x)
    assert got.shape == reference.read.shape
    np.testing.assert_array_equal(got, reference.read)


@pytest.mark.nightly
@pytest.mark.parametrize("length", [3, 4, 5])
@pytest.mark.parametrize("way", WAYS)
def test_all_patterns_of_three_to_five_items(way: str, length: int) -> None:
    for case in cases(length):
        WAYS[way](case)


@pytest.mark.nightly
@pytest.mark.parametrize("length", [3, 4, 5])
def test_all_patterns_of_three_to_five_items_compiled(length: int) -> None:
    check_all_compiled(cases(length), "values")


@pytest.mark.nightly
def test_derivatives_of_all_patterns_of_up_to_three_items_compiled() -> None:
    check_all_compiled([*SHORT, *cases(3)], "derivatives", size=50)
