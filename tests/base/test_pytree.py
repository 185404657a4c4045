"""Pytrees: round trips, order, prefixes, paths, registration, messages."""

from __future__ import annotations

import copy
import functools
import os
import pickle
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.tree_util as tu
from funcgrad.base import pytree
from funcgrad.base.pytree import broadcast_prefix
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.flatten_util import ravel_pytree

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


@pytest.mark.skipif(sys.version_info < (3, 14), reason="partial has no places of arguments")
def test_partial_of_a_later_argument() -> None:
    place = functools.Placeholder  # type: ignore[attr-defined]
    partial = tu.Partial(lambda a, b, c: a * b + c, place, 3.0)
    assert tu.tree_leaves(partial) == [3.0]
    doubled = tu.tree_map(lambda x: 2 * x, partial)
    assert doubled(5.0, 1.0) == 31.0
    assert fg.jit(lambda f, x: f(x, 1.0))(doubled, 5.0) == 31.0
    assert fg.grad(lambda f: f(5.0, 1.0))(partial).args == (place, 5.0)
    assert fg.grad(functools.partial(lambda a, b: a * b, place, 3.0))(2.0) == 3.0


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


# Auxiliary data without a hash.


class Settings:
    """A value with ``==`` and no hash."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self.mode == other.mode

    __hash__ = None  # type: ignore[assignment]


class Layer:
    """A node with one leaf and any auxiliary data."""

    def __init__(self, w: Any, aux: Any) -> None:
        self.w = w
        self.aux = aux


tu.register_pytree_node(Layer, lambda x: ((x.w,), x.aux), lambda aux, c: Layer(c[0], aux))

# Pairs of data that differ, and how the first becomes the second in place, if it can.
UNHASHABLE: dict[str, tuple[Any, Any, Any]] = {
    "dict": ({"a": 1}, {"a": 2}, lambda x: x.update(a=2)),
    "dict of another length": ({"a": 1}, {"a": 1, "b": 2}, lambda x: x.update(b=2)),
    "bool and int": ({"a": 1}, {"a": True}, lambda x: x.update(a=True)),
    "signs of zeros": ({"a": 0.0}, {"a": -0.0}, lambda x: x.update(a=-0.0)),
    "list": ([1, 2], [1, 3], lambda x: x.__setitem__(1, 3)),
    "set": ({1, 2}, {1, 3}, lambda x: (x.discard(2), x.add(3))),
    "nested": (({"a": [1, {"b": 2}]}, 3), ({"a": [1, {"b": 5}]}, 3), None),
    "array": (np.ones(3), np.zeros(3), lambda x: x.fill(0)),
    "array of another dtype": (np.ones(3), np.ones(3, np.float32), None),
    "array in a dict": ({"a": np.ones(3)}, {"a": np.zeros(3)}, lambda x: x["a"].fill(0)),
    "array and None": ((np.ones(3), 1), (None, 1), None),
    "object": (Settings("a"), Settings("b"), lambda x: setattr(x, "mode", "b")),
    "object in a list": ([Settings("a")], [Settings("b")], lambda x: setattr(x[0], "mode", "b")),
}


@pytest.mark.parametrize("name", UNHASHABLE)
def test_auxiliary_data_without_a_hash(name: str) -> None:
    first, second, _ = copy.deepcopy(UNHASHABLE[name])
    tree = {"x": Layer(1.0, first), "y": 2.0}
    leaves, treedef = tu.tree_flatten(tree)
    assert leaves == [1.0, 2.0]
    same = tu.tree_structure({"x": Layer(5.0, copy.deepcopy(first)), "y": 2.0})
    assert treedef == same
    assert hash(treedef) == hash(same)
    assert treedef != tu.tree_structure({"x": Layer(1.0, second), "y": 2.0})
    back = tu.tree_map(lambda a, b: a + b, tree, tree)
    assert back["x"].w == 2.0
    assert type(back["x"].aux) is type(first)
    assert tu.tree_structure(back) == treedef
    with pytest.raises(TreeError, match=r"differ in structure at `\['x'\]`"):
        tu.tree_map(lambda a, b: a, tree, {"x": Layer(1.0, second), "y": 2.0})
    assert pickle.loads(pickle.dumps(treedef)) == treedef


@pytest.mark.parametrize("name", [n for n, row in UNHASHABLE.items() if row[2] is not None])
def test_structures_do_not_follow_data_that_is_changed_in_place(name: str) -> None:
    first, second, change = copy.deepcopy(UNHASHABLE[name])
    layer = Layer(1.0, first)
    before = tu.tree_structure(layer)
    unchanged = tu.tree_unflatten(before, [1.0])
    change(layer.aux)
    assert tu.tree_structure(layer) == tu.tree_structure(Layer(1.0, second))
    assert tu.tree_structure(layer) != before
    assert tu.tree_structure(unchanged) == before
    change(unchanged.aux)
    assert tu.tree_structure(tu.tree_unflatten(before, [1.0])) == before


@pytest.mark.parametrize("name", UNHASHABLE)
def test_transformations_of_nodes_with_such_data(name: str) -> None:
    first, second, change = copy.deepcopy(UNHASHABLE[name])
    layer = Layer(np.array([1.0, 2.0]), first)
    gradient = fg.grad(lambda x: (x.w**2).sum())(layer)
    np.testing.assert_array_equal(gradient.w, [2.0, 4.0])
    mapped = fg.vmap(lambda x: tu.tree_map(lambda w: 3 * w, x))(layer)
    np.testing.assert_array_equal(mapped.w, [3.0, 6.0])
    seen = []

    @fg.jit
    def double(x: Any) -> Any:
        seen.append(x.aux)
        return Layer(2 * x.w, x.aux)

    for _ in range(3):
        out = double(layer)
        np.testing.assert_array_equal(out.w, [2.0, 4.0])
        assert tu.tree_structure(out) == tu.tree_structure(layer)
    assert len(seen) == 1
    if change is not None:
        change(layer.aux)
    else:
        layer.aux = second
    for _ in range(3):
        out = double(layer)
        assert tu.tree_structure(out) == tu.tree_structure(Layer(1.0, second))
        if change is not None:
            out.aux = None
    assert len(seen) == 2
    carry, _ = fg.lax.scan(lambda c, _: (double(c), None), layer, None, length=2)
    np.testing.assert_array_equal(carry.w, [4.0, 8.0])


def test_data_that_cannot_be_kept_is_named() -> None:
    class Opaque(Settings):
        def __deepcopy__(self, memo: Any) -> Any:
            raise RuntimeError("no copies")

    with pytest.raises(TreeError, match=r"holds a Opaque that has no hash and cannot be copied"):
        tu.tree_structure(Layer(1.0, {"a": Opaque("x")}))


# Structures between processes.


@given(TREES)
def test_structures_survive_pickling_and_copying(tree: Any) -> None:
    treedef = tu.tree_structure(tree)
    for back in (
        *(pickle.loads(pickle.dumps(treedef, protocol)) for protocol in range(6)),
        copy.copy(treedef),
        copy.deepcopy(treedef),
    ):
        assert back == treedef
        assert hash(back) == hash(treedef)
        assert back is treedef
        assert repr(back) == repr(treedef)


def test_deep_structures_survive_pickling() -> None:
    treedef = tu.tree_structure(None)
    deep: Any = 1.0
    for i in range(300):
        deep = (deep, None) if i % 2 else {"a": deep, "b": [2.0]}
    treedef = tu.tree_structure(deep)
    limit = sys.getrecursionlimit()
    data = pickle.dumps(treedef)
    sys.setrecursionlimit(200)
    try:
        assert pickle.loads(data) is treedef
    finally:
        sys.setrecursionlimit(limit)


def test_structures_are_equal_in_another_process(tmp_path: Path) -> None:
    tree = {"b": (1.0, [None, Pair(2.0, 3.0)]), "a": OrderedDict(z=1.0)}
    program = (
        "import pickle, sys\n"
        "from collections import OrderedDict\n"
        "import funcgrad.tree_util as tu\n"
        "from tests.base.test_pytree import Layer, Pair\n"
        "treedef = pickle.load(open(sys.argv[1], 'rb'))\n"
        "tree = {'b': (1.0, [None, Pair(2.0, 3.0)]), 'a': OrderedDict(z=1.0)}\n"
        "assert treedef[0] == tu.tree_structure(tree)\n"
        "assert hash(treedef[0]) == hash(tu.tree_structure(tree))\n"
        "assert treedef[1] == tu.tree_structure(Layer(1.0, {'a': 'text'}))\n"
    )
    file = tmp_path / "treedef"
    file.write_bytes(
        pickle.dumps((tu.tree_structure(tree), tu.tree_structure(Layer(1.0, {"a": "text"}))))
    )
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": "7"}
    subprocess.run(
        [sys.executable, "-c", program, str(file)], check=True, timeout=120, env=environment
    )


def test_a_structure_of_an_unregistered_class_is_refused() -> None:
    class Here:
        pass

    with pytest.raises(TreeError, match=r"holds a Here, which is not registered"):
        pytree._treedef_of_rows([(Here, None, 0)])


# Vectors of leaves.


@pytest.mark.parametrize(
    ("tree", "other"),
    [
        ({"a": np.ones(2), "b": 3.0}, {"a": np.ones(3), "b": 3.0}),
        ([np.ones(2, np.float32)], [np.ones(2)]),
        ((np.ones((2, 3)), None), (np.ones((3, 2)), None)),
        ([], ()),
        (1.0, [1.0]),
    ],
)
def test_ways_back_from_equal_trees_are_equal(tree: Any, other: Any) -> None:
    vector, unravel = ravel_pytree(tree)
    same = ravel_pytree(tu.tree_map(lambda x: 2 * x, tree))[1]
    assert unravel == same
    assert hash(unravel) == hash(same)
    assert unravel != ravel_pytree(other)[1]
    copied = pickle.loads(pickle.dumps(unravel))
    assert copied == unravel
    assert tu.tree_structure(copied(vector)) == tu.tree_structure(tree)
    f = fg.jit(lambda back, v: back(v), static_argnums=0)
    f(unravel, vector)
    f(same, vector)
    assert f.cache_info().hits == 1


def test_ways_back_are_traced_through_once() -> None:
    vector, _ = ravel_pytree({"a": np.ones(2), "b": 3.0})
    counts = []
    for scale in (1.0, 2.0):
        unravel = ravel_pytree({"a": scale * np.ones(2), "b": scale})[1]
        f = fg.jit(lambda v, unravel=unravel: unravel(v)["a"] * 2)
        np.testing.assert_array_equal(f(vector), [2.0, 2.0])
        counts.append(f.cache_info().traces)
    assert counts == [1, 0]


# Depth: nothing recurses along a tree. All of these are deeper than Python's stack.

DEPTH = 5000
NESTS: dict[str, Any] = {
    "lists": lambda tree: [tree],
    "tuples": lambda tree: (tree,),
    "dicts": lambda tree: {"b": None, "a": tree},
    "named tuples": lambda tree: Pair(tree, ()),
    "linked list": lambda tree: (tree, 2.5),
}


def nested(kind: str, leaf: Any = 1.5, depth: int = DEPTH) -> Any:
    tree = leaf
    for _ in range(depth):
        tree = NESTS[kind](tree)
    return tree


def innermost(tree: Any) -> Any:
    while isinstance(tree, list | tuple | dict):
        tree = tree["a"] if isinstance(tree, dict) else tree[0]
    return tree


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", NESTS)
def test_trees_may_be_deep(kind: str) -> None:
    tree = nested(kind)
    leaves, treedef = tu.tree_flatten(tree)
    assert leaves == [1.5] + [2.5] * (len(leaves) - 1)
    assert treedef == tu.tree_structure(nested(kind))
    assert treedef != tu.tree_structure(nested(kind, leaf=[1.5]))
    assert hash(treedef) == hash(tu.tree_structure(nested(kind)))
    assert innermost(tu.tree_unflatten(treedef, range(len(leaves)))) == 0
    assert innermost(tu.tree_map(lambda a, b: a + b, tree, nested(kind, 4.0))) == 5.5
    assert innermost(tu.tree_map(lambda x: x, tree, is_leaf=lambda x: x == 1.5)) == 1.5
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    text = str(treedef)
    assert text.count("*") == len(leaves)
    assert text.startswith(f"PyTreeDef({str(tu.tree_structure(NESTS[kind](0)))[10:].split('*')[0]}")


@pytest.mark.parametrize("kind", ["lists", "dicts"])
def test_paths_of_deep_trees(kind: str) -> None:
    ((path, leaf),), _ = tu.tree_flatten_with_path(nested(kind))
    assert len(path) == DEPTH
    assert leaf == 1.5
    step = "[0]" if kind == "lists" else "['a']"
    with pytest.raises(TreeError, match="trees differ in structure at `") as caught:
        tu.tree_map(lambda a, b: a, nested(kind, leaf=(1.5,)), nested(kind, leaf=[1.5]))
    assert str(caught.value).endswith(f"{step}`: expected a tuple, got a list.")
    assert str(caught.value).count(step) == DEPTH


def test_data_that_change_between_two_looks_make_another_structure() -> None:
    @dataclass(unsafe_hash=True)
    class Setting:
        size: int

    class Holder:
        def __init__(self, x: float, *data: object) -> None:
            self.x, self.data = x, data

    tu.register_pytree_node(Holder, lambda h: ((h.x,), h.data), lambda data, x: Holder(*x, *data))
    setting = Setting(1)
    held = Holder(1.0, "a", setting, (setting, None))
    first = tu.tree_structure(held)
    assert tu.tree_structure(held) is first
    setting.size = 2
    assert tu.tree_structure(held) != first
    seen = [tu.tree_structure(Holder(1.0, ("a", n), len)) for n in (1, True, 1.0, 1, True, 1.0)]
    assert len(set(seen)) == 3
    assert seen[:3] == seen[3:]


def test_structures_that_were_made_apart_are_compared_without_recursion() -> None:
    """Interned ones are the same objects, unless the table has been emptied between them."""
    one = tu.tree_structure(nested("lists"))
    pytree._interned.clear()
    pytree._met_before.clear()
    other = tu.tree_structure(nested("lists"))
    assert one.children()[0] is not other.children()[0]
    assert one == other


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["lists", "tuples", "dicts"])
def test_deep_trees_pass_transformations(kind: str) -> None:
    def square(tree: Any) -> Any:
        return tu.tree_reduce(lambda a, x: a + x * x, tree, 0.0)

    rule = fg.custom_vjp(square)
    rule.defvjp(lambda tree: (square(tree), tree), lambda tree, ct: (tree,))
    tree = nested(kind, depth=1200)
    assert innermost(fg.grad(square)(tree)) == 3.0
    assert innermost(fg.grad(fg.checkpoint(square))(tree)) == 3.0
    assert innermost(fg.grad(rule)(tree)) == 1.5
    assert fg.jvp(square, (tree,), (tree,))[1] == 4.5
    assert fg.vmap(square)(nested(kind, np.array([1.5, 2.0]), 1200))[1] == 4.0
    identity = fg.jit(lambda x: x)
    for _ in range(3):
        assert innermost(identity(tree)) == 1.5


def test_leaves_chosen_by_path():
    tree = {"a": [1, (2, 3)], "b": {"c": [4]}, "d": None}

    def is_leaf(path, part):
        return len(path) == 2

    rows, treedef = tu.tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path=True)
    assert [(tu.keystr(p), x) for p, x in rows] == [
        ("['a'][0]", 1),
        ("['a'][1]", (2, 3)),
        ("['b']['c']", [4]),
    ]
    assert treedef.unflatten([x for _, x in rows]) == tree
    assert tu.tree_leaves_with_path(tree, is_leaf, True) == rows
    doubled = fg.tree.map_with_path(
        lambda p, x: [x, x], tree, is_leaf=is_leaf, is_leaf_takes_path=True
    )
    assert doubled["b"]["c"] == [[4], [4]]


def test_paths_without_brackets():
    tree = {"w": [1, {"x": 2}]}
    paths = [p for p, _ in tu.tree_leaves_with_path(tree)]
    assert [tu.keystr(p, simple=True, separator="/") for p in paths] == ["w/0", "w/1/x"]
    assert tu.keystr(paths[0], separator=" ") == "['w'] [0]"


def test_one_level():
    children, rest = tu.flatten_one_level({"a": [1, 2], "b": None})
    assert (list(children), rest) == ([[1, 2], None], ("a", "b"))
    pairs, _ = tu.flatten_one_level_with_keys((5, 6))
    assert [(str(k), x) for k, x in pairs] == [("[0]", 5), ("[1]", 6)]
    assert tu.is_tree_node(list)
    assert not tu.is_tree_node(np.ndarray)
    with pytest.raises(TreeError, match="flatten_one_level needs a container, got a float"):
        tu.flatten_one_level(1.0)


def test_folds_of_leaves_in_pairs():
    fold = fg.tree.reduce_associative
    assert fold(lambda a, b: f"({a}{b})", {"x": "a", "y": ["b", "c"]}) == "((ab)c)"
    assert fold(max, [], identity=0) == 0
    assert fold(max, [3], identity=7) == 3
    with pytest.raises(ArgumentError, match="needs an identity"):
        fold(max, [None])


def test_static_fields():
    @tu.register_dataclass
    @dataclass
    class Layer:
        w: float
        name: str = fg.tree.static(default="one", metadata={"unit": "m"})

    leaves, treedef = fg.tree.flatten(Layer(2.0, "two"))
    assert leaves == [2.0]
    assert treedef.unflatten([3.0]) == Layer(3.0, "two")
    assert treedef != fg.tree.structure(Layer(2.0))
    assert dict(fields(Layer)[1].metadata) == {"unit": "m", "static": True}


def endless(kind: str) -> Any:
    """A tree that contains itself."""
    if kind == "list":
        tree: Any = [1.0]
        tree.append(tree)
    elif kind == "dict":
        tree = {"a": 1.0}
        tree["b"] = (2.0, tree)
    elif kind == "below":
        inner: Any = [1.0]
        inner.append({"c": inner})
        tree = {"x": [0.0, inner]}
    else:
        tree = Box([1.0])
        tree.content.append(tree)
    return tree


class Box:
    """A registered container that can be changed."""

    def __init__(self, content: Any) -> None:
        self.content = content


tu.register_pytree_node(Box, lambda b: ((b.content,), None), lambda _, parts: Box(*parts))

ENDLESS = {
    "list": "what is at `[1]` is the list that holds it",
    "dict": "what is at `['b'][1]` is the dict that holds it",
    "below": "what is at `['x'][1][1]['c']` is the list at `['x'][1]`",
    "box": "what is at `[<flat index 0>][1]` is the Box that holds it",
}
WALKS: list[Callable[[Any], Any]] = [
    tu.tree_flatten,
    tu.tree_leaves,
    tu.tree_structure,
    tu.tree_flatten_with_path,
    tu.tree_leaves_with_path,
    lambda t: tu.tree_flatten(t, is_leaf=lambda x: x is None),
    lambda t: tu.tree_flatten_with_path(t, lambda path, x: False, is_leaf_takes_path=True),
    lambda t: tu.tree_map(lambda x: x, t),
    lambda t: tu.tree_map_with_path(lambda path, x: x, t),
    lambda t: tu.tree_reduce(lambda a, b: a + b, t),
    lambda t: tu.tree_all(t),
]


@pytest.mark.parametrize("kind", ENDLESS)
def test_trees_that_contain_themselves(kind: str) -> None:
    for walk in WALKS:
        with pytest.raises(TreeError) as caught:
            walk(endless(kind))
        text = str(caught.value)
        assert text.startswith("a pytree contains itself, so it has no end: ")
        assert ENDLESS[kind] in text


def test_transformations_of_trees_that_contain_themselves() -> None:
    tree = endless("list")
    calls: list[Callable[[], Any]] = [
        lambda: fg.jit(lambda t: 0)(tree),
        lambda: fg.jit(lambda x: tree)(1.0),
        lambda: fg.grad(lambda t: t[0] ** 2)(tree),
        lambda: fg.grad(lambda x: (x, tree), has_aux=True)(1.0),
        lambda: fg.vmap(lambda t: t[0])(tree),
        lambda: fg.jvp(lambda t: t[0], (tree,), (tree,)),
        lambda: fg.vjp(lambda t: t[0], tree),
        lambda: fg.checkpoint(lambda t: t[0])(tree),
        lambda: fg.lax.scan(lambda c, x: (c, x), tree, np.ones(3)),
        lambda: fg.lax.cond(True, lambda t: t, lambda t: t, tree),
        lambda: fg.lax.while_loop(lambda t: False, lambda t: t, tree),
        lambda: fg.eval_shape(lambda t: t[0], tree),
        lambda: fg.make_jaxpr(lambda t: t[0])(tree),
    ]
    for call in calls:
        with pytest.raises(TreeError, match="a pytree contains itself"):
            call()


def test_parts_that_are_shared_are_no_trees_without_end() -> None:
    part: Any = [1.0]
    for _ in range(12):
        part = [part, part]
    assert len(tu.tree_leaves(part)) == 2**12
    deep: Any = [1.0]
    for _ in range(5000):
        deep = [deep, 2.0]
    assert len(tu.tree_leaves_with_path(deep)) == 5001


def test_structures_are_composed() -> None:
    outer, inner = tu.tree_structure((0, [0, None])), tu.tree_structure({"a": 0, "b": (0,)})
    tree = {"a": 1, "b": (2,)}
    assert outer.compose(inner) == tu.tree_structure((tree, [tree, None]))
    assert tu.tree_structure(0).compose(inner) == inner
    assert outer.compose(tu.tree_structure(0)) == outer


def test_partial_keeps_an_inner_one() -> None:
    inner = functools.partial(max, 2)
    partial = tu.Partial(inner, 3)
    assert partial.args == (3,)
    assert partial() == 3
    assert partial.func == inner == tu.Partial(inner, 1).func
    assert hash(partial.func) == hash(tu.Partial(inner, 1).func)
    assert tu.tree_structure(partial) == tu.tree_structure(tu.Partial(inner, 5))


def test_partial_of_a_partial_keeps_its_leaves() -> None:
    inner = tu.Partial(functools.partial(max, 2), 3)
    outer = tu.Partial(inner, 4)
    assert tu.tree_leaves(outer) == [3, 4]
    assert outer() == 4
    scaled = tu.Partial(tu.Partial(np.multiply, 2.0), 5.0)
    assert [float(x) for x in tu.tree_leaves(fg.grad(lambda f: f())(scaled))] == [5.0, 2.0]


def test_nodes_are_counted_and_visited() -> None:
    treedef = tu.tree_structure({"a": 1, "b": (2, None), "c": {}})
    assert (treedef.num_leaves, treedef.num_nodes) == (2, 6)
    assert tu.tree_structure(0).num_nodes == 1
    seen: list[object] = []

    def node(parts: tuple[object, ...], meta: object) -> object:
        seen.append(meta)
        return parts

    assert treedef.walk(node, lambda x: 10 * x, [1, 2]) == (10, (20, ()), ())
    assert seen == [None, None, [], ["a", "b", "c"]]


def test_transpose_looks_at_leaves_only() -> None:
    class Cached:
        def __init__(self, leaves: list[object], treedef: object) -> None:
            self.leaves, self.treedef = leaves, treedef

    def unflatten(meta: object, leaves: Any) -> Cached:
        if tu.all_leaves(leaves):
            return Cached(list(leaves), meta)
        return Cached(*tu.tree_flatten(tu.tree_unflatten(meta, leaves)))

    tu.register_pytree_node(Cached, lambda c: (c.leaves, c.treedef), unflatten)
    outer = tu.tree_structure(Cached(*tu.tree_flatten({"a": 1, "b": 2})))
    inner = tu.tree_structure([1, 2])
    found = tu.tree_transpose(outer, inner, Cached(*tu.tree_flatten({"a": [3, 4], "b": [5, 6]})))
    assert [c.leaves for c in found] == [[3, 5], [4, 6]]
    with pytest.raises(TreeError, match=r"has 4 leaves, got 3"):
        tu.tree_transpose(tu.tree_structure([0, 0]), inner, [[1, 2], [3]])


def test_children_that_are_no_iterable() -> None:
    class Bad:
        pass

    tu.register_pytree_node(Bad, lambda x: (7, 7), lambda meta, children: Bad())
    with pytest.raises(TreeError, match=r"flattens Bad returns children that are no iterable"):
        tu.tree_leaves(Bad())


def test_fields_that_a_class_makes_itself() -> None:
    @dataclass
    class Made:
        x: int
        y: int = field(default=4, init=False)

    with pytest.raises(ArgumentError, match=r"drop_fields=\['y'\]"):
        tu.register_dataclass(Made)
    tu.register_dataclass(Made, data_fields=["x"], meta_fields=[])
    assert tu.tree_leaves(Made(2)) == [2]
