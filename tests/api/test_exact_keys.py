"""What is made for one value is not used for an equal one of other bits or another type."""

from __future__ import annotations

import itertools
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.base.exact import exact_key

NAN = float("nan")
Pair = namedtuple("Pair", ["a", "b"])


@dataclass(frozen=True)
class Settings:
    value: Any
    label: str = ""


@dataclass
class State:
    x: Any
    kept: Any


fg.tree_util.register_dataclass(State, ["x"], ["kept"])

ALIKE: list[tuple[Any, ...]] = [
    (0.0, -0.0, 0, False, 0j, complex(0, -0.0), np.float64(0.0), np.float64(-0.0), np.float32(0)),
    (1.0, 1, True, np.int64(1), np.int32(1), np.bool_(True)),
    (NAN, -NAN, np.float64(NAN), np.float32(NAN)),
    ((0.0,), (-0.0,), (0,), ((0.0,),), ((-0.0,),)),
    (frozenset([1]), frozenset([True]), frozenset([1.0])),
    (Settings(0.0), Settings(-0.0), Settings(0), Settings((0.0,)), Settings((-0.0,))),
    (Pair(1, 2), Pair(True, 2), (1, 2)),
    (Decimal("0"), Decimal("-0"), Decimal("0.0")),
    (range(0, 3, 2), range(0, 4, 2)),
    ("a", np.str_("a"), b"a"),
]


def told(value: Any) -> str:
    """The value as text that tells it apart."""
    return repr((type(value), value, np.signbit(value) if value != value else None))


@pytest.mark.parametrize("values", ALIKE, ids=str)
def test_static_arguments(values: Any) -> None:
    seen: list[Any] = []

    def f(x: Any, s: Any) -> Any:
        seen.append(s)
        return x

    by_place, by_name = fg.jit(f, static_argnums=1), fg.jit(f, static_argnames="s")
    for _ in range(3):
        for s in values:
            by_place(1.0, s)
            by_name(1.0, s=s)
    assert [told(s) for s in seen] == [told(s) for s in values for _ in range(2)]


@pytest.mark.parametrize("values", ALIKE, ids=str)
def test_data_of_structures(values: Any) -> None:
    seen: list[Any] = []

    def f(state: State) -> State:
        seen.append(state.kept)
        return state

    jitted = fg.jit(f)
    for s in values:
        for _ in range(2):
            assert told(jitted(State(1.0, s)).kept) == told(s)
    assert [told(s) for s in seen] == [told(s) for s in values]
    for s, t in itertools.combinations(values, 2):
        assert fg.tree_util.tree_structure(State(1.0, s)) != fg.tree_util.tree_structure(
            State(1.0, t)
        )


def test_data_that_is_equal_may_be_mapped_together() -> None:
    total = fg.tree_util.tree_map(lambda a, b: a + b, State(1.0, 1), State(2.0, True))
    assert (total.x, told(total.kept)) == (3.0, told(1))
    total = fg.tree_util.tree_map(lambda a, b: a + b, {1: 1.0}, {True: 2.0})
    assert total == {1: 3.0}
    total = fg.tree_util.tree_map(lambda a, b: a + b, State(1.0, NAN), State(2.0, float("nan")))
    assert total.x == 3.0


def signed(x: Any, s: Any) -> Any:
    return x * np.copysign(1.0, s)


@pytest.mark.parametrize(("plus", "minus"), [(0.0, -0.0), (np.float64(0), np.float64(-0.0))])
def test_numbers_that_are_read(plus: Any, minus: Any) -> None:
    def closed(s: Any) -> Any:
        return lambda x: signed(x, s)

    makers: list[Any] = [
        lambda s: fg.jit(closed(s))(1.0),
        lambda s: fg.jit(partial(signed, s=s))(1.0),
        lambda s: fg.grad(fg.checkpoint(closed(s)))(1.0),
        lambda s: fg.grad(fg.checkpoint(signed, static_argnums=1))(1.0, s),
        lambda s: fg.lax.fori_loop(0, 1, lambda i, c: signed(c, s), 1.0),
        lambda s: fg.lax.scan(lambda c, _: (signed(c, s), None), 1.0, None, length=1)[0],
        lambda s: fg.lax.cond(np.True_, closed(s), lambda x: x, 1.0),
        lambda s: fg.jit(lambda d: sum(signed(x, k) for k, x in d.items()))({s: 1.0}),
        lambda s: fg.make_jaxpr(signed, static_argnums=1)(1.0, s) and signed(1.0, s),
    ]
    for make in makers:
        assert [float(make(s)) for s in (plus, minus, plus)] == [1.0, -1.0, 1.0]


def test_keys_of_dicts() -> None:
    f = fg.jit(lambda d: sum(x * (2 if k is True else 3) for k, x in d.items()))
    for _ in range(60):  # structures that are used often have functions of their own
        assert [f({True: 1.0}), f({1: 1.0}), f({1.0: 1.0})] == [2.0, 3.0, 3.0]


def test_arguments_of_rules_that_are_not_differentiated() -> None:
    @partial(fg.custom_vjp, nondiff_argnums=(1,))
    def f(x: Any, s: Any) -> Any:
        return signed(x, s)

    f.defvjp(lambda x, s: (signed(x, s), None), lambda s, _, ct: (signed(ct, s),))
    jitted = fg.jit(f, static_argnums=1)
    for s, expected in ((0.0, 1.0), (-0.0, -1.0), (0.0, 1.0)):
        assert fg.grad(f)(1.0, s) == expected
        assert jitted(1.0, s) == expected


def test_what_the_user_says_is_equal() -> None:
    class Same:
        def __init__(self, note: str) -> None:
            self.note = note

        def __hash__(self) -> int:
            return 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Same)

    assert exact_key(Same("a")) == exact_key(Same("b"))
    assert exact_key((Same("a"), 1)) != exact_key((Same("b"), True))
    assert exact_key({"a": [0.0]}) != exact_key({"a": [-0.0]})
    assert exact_key(np.zeros(1)) != exact_key(-np.zeros(1))
    assert exact_key(slice(1, None)) != exact_key(slice(True, None))
