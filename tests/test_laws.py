"""Laws that hold for every row of the table of cases: those of `funcgrad.extend.laws`.

And one of the table: every rule of every primitive is given, derived or declared impossible.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from funcgrad import primitives
from funcgrad.core.primitive import Primitive
from funcgrad.errors import MissingRuleError
from funcgrad.extend import laws
from funcgrad.extend.checking import RULES, has_rule
from tests.cases import CASES, IMPOSSIBLE, NOT_ADJOINT, Case

ROWS = [(case, dtype) for case in CASES for dtype in case.dtypes]

_NUMBERS: dict[str, count[int]] = defaultdict(count)
PLACES = {id(case): next(_NUMBERS[case.primitive.name]) for case in CASES}
"""The place of each row among those of its primitive."""


def rows_of(table: list[tuple[Case, str]], is_daily: Callable[[Case, str], bool]) -> Any:
    """All rows of a table, of which those in other dtypes than the daily ones run in the night."""
    return pytest.mark.parametrize(
        ("case", "dtype"),
        [
            pytest.param(
                case,
                dtype,
                id=f"{case.name}-{np.dtype(dtype).name}",
                marks=[] if is_daily(case, dtype) else [pytest.mark.nightly],
            )
            for case, dtype in table
        ],
    )


def is_in_turn(case: Case, dtype: str) -> bool:
    """Whether every run tries a row in a dtype: every second one in its first, few in others."""
    place, number = PLACES[id(case)], case.dtypes.index(dtype)
    return place % 2 == 0 if number == 0 else (place + number) % 6 == 0


def is_tried(case: Case, dtype: str) -> bool:
    """Whether every run tries a row in a dtype, of laws that cost less: half of the others."""
    number = case.dtypes.index(dtype)
    return number == 0 or (PLACES[id(case)] + number) % 2 == 0


every_row = rows_of(ROWS, is_tried)


def of_order(order: int) -> list[tuple[Case, str]]:
    return [row for row in ROWS if row[0].order >= order]


def is_single(dtype: str) -> bool:
    return dtype in laws.SINGLE


@pytest.mark.parametrize("slope", [1.0, 1e-3, 1e-8, 0.0])
def test_small_derivatives_are_judged_on_their_own_scale(slope: float) -> None:
    """Wrong ones of any size are found, but for what rounding hides; right ones pass."""
    right = slope * np.cos(np.ones(2))
    (numeric,) = laws.difference(lambda x: [slope * np.sin(x) + 1e-3], [np.ones(2)], [np.ones(2)])
    laws.check_near(CASES[0], "forward", right, numeric, 1e-6, "tangent")
    with pytest.raises(AssertionError, match="tangent differs from central differences: error"):
        laws.check_near(CASES[0], "forward", 1.001 * right + 1e-11, numeric, 1e-6, "tangent")


@every_row
def test_evaluation(case: Case, dtype: str) -> None:
    laws.shape(case, case.draw(dtype))
    laws.inputs_are_unchanged(case, case.draw(dtype))


@rows_of(of_order(1), is_tried)
def test_first_order(case: Case, dtype: str) -> None:
    laws.forward(case, case.draw(dtype), is_single(dtype))
    laws.reverse(case, case.draw(dtype), is_single(dtype))


PARTIAL = [case for case in CASES if case.differentiable is not None]


@pytest.mark.parametrize("case", PARTIAL, ids=[case.name for case in PARTIAL])
def test_missing_partial_derivatives_are_declared(case: Case) -> None:
    args = case.draw()
    assert case.differentiable is not None
    for i, x in enumerate(args):
        if laws.is_inexact(x) and i not in case.differentiable:
            tangents = [np.ones_like(x) if k == i else None for k in range(len(args))]
            with pytest.raises(MissingRuleError, match="has no derivative with respect to"):
                case.primitive.jvp(args, tangents)


@rows_of(of_order(2), is_in_turn)
def test_second_order(case: Case, dtype: str) -> None:
    laws.forward_twice(case, case.draw(dtype), is_single(dtype))
    laws.forward_over_reverse(case, case.draw(dtype), is_single(dtype))


LINEAR = [(case, dtype, group) for case in CASES for dtype in case.dtypes for group in case.linear]


@pytest.mark.parametrize(
    ("case", "dtype", "group"),
    [
        pytest.param(
            case,
            dtype,
            group,
            id=f"{case.name}-{np.dtype(dtype).name}-{''.join(map(str, group))}",
            marks=[] if is_tried(case, dtype) else [pytest.mark.nightly],
        )
        for case, dtype, group in LINEAR
    ],
)
def test_transpose(case: Case, dtype: str, group: tuple[int, ...]) -> None:
    laws.transpose(case, case.draw(dtype), group)


@rows_of(ROWS, is_in_turn)
def test_batch(case: Case, dtype: str) -> None:
    laws.batch(case, [case.draw(dtype, seed) for seed in range(3)])


FAMILIES = {"collective", "factorization", "system", "by_matrix", "by_lapack"}
"""Bases of primitives, of which there are no instances."""


def all_primitives() -> dict[str, Any]:
    """Every primitive of the package: instances that are tables' rows, and dataclasses.

    The many rows of ``special_*.py`` obey the laws in `tests/scipy/test_special_tables.py`.
    """
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(primitives.__path__, primitives.__name__ + "."):
        if info.name.startswith(primitives.__name__ + ".special_"):
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if isinstance(value, Primitive) or (
                inspect.isclass(value)
                and issubclass(value, Primitive)
                and value.__module__ == module.__name__
                and not name.startswith("_")
                and is_table_free(value)
                and module.__name__ != STEPS_OF_PROCESSES
                and value.name not in OF_MESHES | FAMILIES
            ):
                found[value.name] = value
    return found


STEPS_OF_PROCESSES = "funcgrad.primitives.ranks"
"""What collectives are made of where lanes are processes: the laws of `tests/distributed` hold for
the collectives, and the steps are never differentiated or mapped."""


OF_MESHES = frozenset({"own_part", "pvary", "rank_copy", "rank_equal", "unvary"})
"""Operations along axes of a mesh, where what is equal in all lanes counts once: their laws are
those of whole computations in `tests/distributed/sharded.py`."""


def is_table_free(kind: type) -> bool:
    """Whether instances of a class are made with static parameters, not as rows of a table."""
    return "__dataclass_fields__" in vars(kind) or "__dataclass_fields__" in vars(kind.__base__)


PRIMITIVES = all_primitives()


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_primitive_has_a_row_and_every_rule_is_decided(name: str) -> None:
    declared = IMPOSSIBLE.get(name, {})
    rows = [case for case in CASES if case.primitive.name == name]
    assert rows
    for rule in RULES:
        if rule == "transpose":
            is_needed = any(case.linear for case in rows) or name in NOT_ADJOINT
            assert has_rule(PRIMITIVES[name], rule) == is_needed, "linear rows and the rule differ"
        else:
            assert has_rule(PRIMITIVES[name], rule) != (rule in declared), rule


def test_declarations_name_primitives() -> None:
    assert set(IMPOSSIBLE) <= set(PRIMITIVES)
