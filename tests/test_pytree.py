"""Pytrees: round trips, order, prefixes, paths, registration, messages."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad.tree_util as tu
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.pytree import broadcast_prefix

Pair = namedtuple("Pair", ["a", "b"])

LEAVES = st.integers() | st.floats(allow_nan=False)
TREES = st.recursive(
    LEAVES | st.none(),
    lambda t: (
        st.lists(t, max_size=3)
        | st.lists(t, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), t, max_size=3)
        | st.dictionaries(st.text(max_size=2), t, max_size=3).map(OrderedDict)
        | st.tuples(t, t).map(lambda xy: Pair(*xy))
    ),
    max_leaves=12,
)


@given(TREES)
def test_round_trip(tree: Any) -> None:
    leaves, treedef = tu.tree_flatten(tree)
    assert treedef.num_leaves == len(leaves)
    back = tu.tree_unflatten(treedef, leaves)
    assert back == tree
    assert type(back) is type(tree)
    assert tu.tree_structure(back) is treedef


@given(TREES)
def test_paths_lead_to_leaves(tree: Any) -> None:
    for path, leaf in tu.tree_leaves_with_path(tree):
        node = tree
        for key in path:
            node = (
                getattr(node, key.name)
                if isinstance(key, tu.GetAttrKey)
                else (node[key.key] if isinstance(key, tu.DictKey) else node[key.idx])
            )
        assert node is leaf


@given(TREES)
def test_map_composes(tree: Any) -> None:
    twice = tu.tree_map(lambda x: (x, 1)[0], tu.tree_map(lambda x: x, tree))
    assert twice == tree


@given(TREES)
def test_agrees_with_jax(tree: Any) -> None:
    jtu = pytest.importorskip("jax.tree_util")
    leaves, treedef = jtu.tree_flatten(tree)
    ours, ourdef = tu.tree_flatten(tree)
    assert ours == leaves
    assert [tu.keystr(p) for p, _ in tu.tree_leaves_with_path(tree)] == [
        jtu.keystr(p) for p, _ in jtu.tree_leaves_with_path(tree)
    ]
    assert treedef.num_leaves == ourdef.num_leaves


def test_orders() -> None:
    assert tu.tree_leaves({"b": 1, "a": 2}) == [2, 1]
    assert tu.tree_leaves(OrderedDict([("b", 1), ("a", 2)])) == [1, 2]
    d = defaultdict(list, {"b": 1, "a": 2})
    assert tu.tree_leaves(d) == [2, 1]
    assert tu.tree_map(lambda x: x, d).default_factory is list


def test_repr_and_equality() -> None:
    treedef = tu.tree_structure({"a": 1, "b": (1, [None, 2])})
    assert repr(treedef) == "PyTreeDef({'a': *, 'b': (*, [None, *])})"
    assert treedef == tu.tree_structure({"b": (5, [None, 6]), "a": 7})
    assert treedef != tu.tree_structure({"a": 1, "b": (1, [2, None])})


def test_prefix() -> None:
    assert broadcast_prefix((0, None), ([1, 2], {"k": 3}), is_leaf=lambda x: x is None) == [
        0,
        0,
        None,
    ]
    with pytest.raises(TreeError, match=r"differ in structure at `\[1\]`: expected a list, got a"):
        broadcast_prefix((0, [1]), (1, 2))


def test_reduce_all_transpose() -> None:
    assert tu.tree_reduce(lambda a, b: a + b, [1, (2, 3)], 10) == 16
    assert tu.tree_all({"a": True, "b": [True]})
    inner = tu.tree_structure({"x": 0})
    assert tu.tree_transpose(tu.tree_structure([0, 0]), inner, [{"x": 1}, {"x": 2}]) == {
        "x": [1, 2]
    }


def test_dataclasses() -> None:
    @tu.register_dataclass
    @dataclass
    class Layer:
        w: Any
        name: str = field(metadata={"static": True})

    layer = Layer(1.0, "first")
    assert tu.tree_leaves(layer) == [1.0]
    assert tu.tree_map(lambda x: x + 1, layer) == Layer(2.0, "first")
    assert tu.keystr(tu.tree_leaves_with_path(layer)[0][0]) == ".w"
    assert tu.tree_structure(layer) != tu.tree_structure(Layer(1.0, "second"))
    with pytest.raises(TreeError, match="registered as a pytree already"):
        tu.register_dataclass(Layer)


def test_partial_and_static() -> None:
    partial = tu.Partial(max, 3)
    assert tu.tree_leaves(partial) == [3]
    assert tu.tree_map(lambda x: x + 4, partial)(5) == 7

    @tu.register_static
    @dataclass(frozen=True)
    class Config:
        depth: int

    assert tu.tree_leaves(Config(3)) == []
    assert tu.tree_map(lambda x: x, Config(3)) == Config(3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tu.tree_flatten({"a": 1, 2: 3}), "keys that can be sorted, got keys of types int"),
        (lambda: tu.tree_unflatten(tu.tree_structure((1, 2)), [1]), "has 2 leaves, got 1"),
        (lambda: tu.tree_map(lambda a, b: a, {"k": 1}, {"j": 1}), "expected PyTreeDef({'k': *})"),
        (lambda: tu.tree_map(lambda a, b: a, [1, [2]], [1, 2]), "at `[1]`: expected a list"),
    ],
)
def test_messages(call: Any, text: str) -> None:
    with pytest.raises(TreeError) as info:
        call()
    assert text in str(info.value)


def test_register_dataclass_checks_fields() -> None:
    @dataclass
    class Point:
        x: float
        y: float

    with pytest.raises(ArgumentError, match="must name each of its fields"):
        tu.register_dataclass(Point, ["x"], [])
