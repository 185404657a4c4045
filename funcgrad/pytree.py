"""Pytrees: nested containers of arrays, flattened to a list of leaves and a structure.

A container is a dict (leaves in order of sorted keys), list, tuple, namedtuple, OrderedDict,
defaultdict, ``None`` (no leaves) or an instance of a registered class; everything else is a leaf.
Structures are interned, so that comparing two of them is mostly an identity check. Flattening is
on the path of every compiled call, hence the tables keyed by type and by key tuples.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from funcgrad.errors import TreeError

IsLeaf = Callable[[Any], bool] | None


@dataclass(frozen=True)
class SequenceKey:
    """Position in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@dataclass(frozen=True)
class DictKey:
    """Key of a dict."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """Name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """Position among the children of a custom node without named keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath) -> str:
    """A path as Python would write it, such as ``['w'][0]``."""
    return "".join(map(str, keys))


class _Node:
    """How one type of container is taken apart and put together."""

    __slots__ = ("flatten", "flatten_with_keys", "kind", "unflatten")

    def __init__(
        self,
        kind: type,
        flatten: Callable[[Any], tuple[Sequence[Any], Hashable]],
        unflatten: Callable[[Any, Sequence[Any]], Any],
        flatten_with_keys: Callable[[Any], Iterable[Any]],
    ) -> None:
        self.kind = kind
        self.flatten = flatten
        self.unflatten = unflatten
        self.flatten_with_keys = flatten_with_keys


class _Frozen:
    """Auxiliary data that has no hash, such as a dict of settings, as it was at some time.

    Structures are keys of caches and outlive the containers that they were taken from, which may be
    changed in place. So they keep a copy, and give copies.
    """

    __slots__ = ("_form", "_value")

    def __init__(self, value: Any) -> None:
        self._value = _copied(value)
        self._form = _form(self._value)

    def thaw(self) -> Any:
        """The data, for a container that may change it."""
        return _copied(self._value)

    def __hash__(self) -> int:
        return hash(self._form)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and self._form == other._form

    def __repr__(self) -> str:
        return repr(self._value)

    def __reduce__(self) -> Any:
        return _Frozen, (self._value,)


class _Compared:
    """A value that has ``==`` but no hash."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Compared)
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _copied(value: Any) -> Any:
    """The same data in containers and arrays of its own."""
    kind = type(value)
    if kind is dict:
        return {key: _copied(x) for key, x in value.items()}
    if kind is list or kind is tuple:
        return kind([_copied(x) for x in value])
    if _is_hashable(value):
        return value
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise TreeError(
            f"the auxiliary data of a pytree node holds a {kind.__name__} that has no hash and "
            f"cannot be copied ({error}). Give its class __eq__ and __hash__, or leave it out."
        ) from None


def _form(value: Any) -> Hashable:
    """What tells data apart, types included."""
    kind = type(value)
    if isinstance(value, dict):
        return kind, frozenset((key, _form(x)) for key, x in value.items())
    if isinstance(value, list | tuple):
        return kind, tuple(map(_form, value))
    if kind is np.ndarray and not value.dtype.hasobject:
        return kind, value.shape, value.dtype, value.tobytes()
    if kind is float:
        return kind, value.hex()
    if _is_hashable(value):
        return kind, value
    return kind, frozenset(value) if isinstance(value, set) else _Compared(value)


def _comparable(meta: Any) -> Hashable:
    return meta if _is_hashable(meta) else _Frozen(meta)


class PyTreeDef:
    """The structure of a pytree: what remains when the leaves are taken out."""

    __slots__ = ("_children", "_hash", "_meta", "_node", "num_leaves")

    def __init__(self, node: _Node | None, meta: Hashable, children: tuple[PyTreeDef, ...]) -> None:
        self._node = node
        self._meta = meta
        self._children = children
        self.num_leaves: int = 1 if node is None else sum(c.num_leaves for c in children)
        self._hash = hash((None if node is None else node.kind, meta, children))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, PyTreeDef)
            and self._hash == other._hash
            and self._node is other._node
            and self._meta == other._meta
            and self._children == other._children
        )

    @property
    def is_leaf(self) -> bool:
        """Whether the structure is a single leaf."""
        return self._node is None

    @property
    def kind(self) -> type | None:
        """Type of the container at the root; ``None`` for a leaf."""
        return None if self._node is None else self._node.kind

    @property
    def meta(self) -> Any:
        """What the container holds besides its children; the sorted keys of a dict."""
        return self.fresh_meta()

    def fresh_meta(self) -> Any:
        """As `meta`: a copy, where containers may change it."""
        return self._meta.thaw() if type(self._meta) is _Frozen else self._meta

    @property
    def is_meta_changeable(self) -> bool:
        """Whether containers may change their `meta` in place."""
        return type(self._meta) is _Frozen

    def has_meta(self, meta: Any) -> bool:
        """Whether the container at the root holds ``meta`` besides its children."""
        return meta is self._meta or _comparable(meta) == self._meta

    def has_root_of(self, other: PyTreeDef) -> bool:
        """Whether the containers at the roots have one kind and hold equal data."""
        return self._node is other._node and self._meta == other._meta

    @property
    def flatten_root(self) -> Callable[[Any], tuple[Sequence[Any], Hashable]]:
        """The function from a container of this kind to its children and meta."""
        assert self._node is not None
        return self._node.flatten

    @property
    def unflatten_root(self) -> Callable[[Any, Sequence[Any]], Any]:
        """The function from meta and children to a container of this kind."""
        assert self._node is not None
        return self._node.unflatten

    def children(self) -> list[PyTreeDef]:
        """Structures of the children of the root."""
        return list(self._children)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """A tree of this structure with the given leaves.

        Raises:
            TreeError: If the number of leaves is wrong.
        """
        leaves = leaves if isinstance(leaves, list | tuple) else list(leaves)
        if len(leaves) != self.num_leaves:
            raise TreeError(
                f"unflatten: the structure {self} has {self.num_leaves} leaves, got {len(leaves)}."
            )
        return self._build(leaves, 0)

    def _build(self, leaves: Sequence[Any], start: int) -> Any:
        node = self._node
        if node is None:
            return leaves[start]
        children = self._children
        meta = self._meta
        if type(meta) is _Frozen:
            meta = meta.thaw()
        if self.num_leaves == len(children) and all(c is _LEAF for c in children):
            return node.unflatten(meta, leaves[start : start + len(children)])
        parts = []
        for child in children:
            parts.append(child._build(leaves, start))
            start += child.num_leaves
        return node.unflatten(meta, parts)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of ``tree`` at the places of this structure's leaves."""
        found: list[Any] = []
        self._collect(tree, (), found)
        return found

    def _collect(self, tree: Any, path: KeyPath, found: list[Any]) -> None:
        if self._node is None:
            found.append(tree)
            return
        node = _node_of(type(tree))
        if node is not self._node:
            raise TreeError(
                f"trees differ in structure at {_place(path)}: expected {_describe(self)}, got "
                f"{_describe_value(tree)}."
            )
        children, meta = node.flatten(tree)
        if not self.has_meta(meta) or len(children) != len(self._children):
            raise TreeError(
                f"trees differ in structure at {_place(path)}: expected {self}, got "
                f"{tree_structure(tree)}."
            )
        keys = [key for key, _ in node.flatten_with_keys(tree)]
        for key, child, subtree in zip(keys, self._children, children, strict=True):
            child._collect(subtree, (*path, key), found)

    def __repr__(self) -> str:
        return f"PyTreeDef({_format(self)})"

    def __reduce__(self) -> Any:
        return _treedef_of_rows, (_rows_of(self),)


Row = tuple[type | None, Any, int]
"""Kind of a container, or ``None`` for a leaf; its meta; the number of its children."""


def _rows_of(treedef: PyTreeDef) -> list[Row]:
    """The nodes of a structure, every one before its children."""
    rows: list[Row] = []
    pending = [treedef]
    while pending:
        node = pending.pop()
        rows.append((node.kind, node._meta, len(node._children)))
        pending.extend(reversed(node._children))
    return rows


def _treedef_of_rows(rows: Sequence[Row]) -> PyTreeDef:
    """The inverse of `_rows_of`."""
    done: list[PyTreeDef] = []
    for kind, meta, n_children in reversed(rows):
        if kind is None:
            done.append(_LEAF)
            continue
        node = _node_of(kind)
        if node is None:
            raise TreeError(
                f"a structure that was pickled holds a {kind.__name__}, which is not registered as "
                "a pytree in this process. Import the module that registers it first."
            )
        children = tuple(done.pop() for _ in range(n_children))
        done.append(_intern(node, meta, children))
    return done.pop()


_LEAF = PyTreeDef(None, None, ())
_interned: dict[tuple[_Node, Hashable, tuple[PyTreeDef, ...]], PyTreeDef] = {}
_INTERN_LIMIT = 65536


def _intern(node: _Node, meta: Hashable, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    try:
        found = _interned.get((node, meta, children))
    except TypeError:
        meta = _Frozen(meta)
        found = _interned.get((node, meta, children))
    if found is None:
        if len(_interned) >= _INTERN_LIMIT:
            _interned.clear()
        key = (node, meta, children)
        found = _interned.setdefault(key, PyTreeDef(node, meta, children))
    return found


def _place(path: KeyPath) -> str:
    return f"`{keystr(path)}`" if path else "the root"


def _describe(treedef: PyTreeDef) -> str:
    return f"a {treedef._node.kind.__name__}" if treedef._node else "a leaf"


def _describe_value(tree: Any) -> str:
    return f"a {type(tree).__name__}"


def _format(treedef: PyTreeDef) -> str:
    if treedef._node is None:
        return "*"
    parts = [_format(c) for c in treedef._children]
    kind = treedef._node.kind
    if kind is dict:
        keys: Any = treedef._meta
        return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(keys, parts, strict=True)) + "}"
    if kind is list:
        return "[" + ", ".join(parts) + "]"
    if kind is tuple:
        return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
    if kind is type(None):
        return "None"
    return f"{kind.__name__}({', '.join(parts)})"


# The registry.

_lock = threading.RLock()
_nodes: dict[type, _Node] = {}
_leaf_types: set[type] = set()


def _node_of(kind: type) -> _Node | None:
    """The node of a type, or None for leaves; remembers the answer."""
    node = _nodes.get(kind)
    if node is None and kind not in _leaf_types:
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            with _lock:
                node = _nodes.setdefault(kind, _namedtuple_node(kind))
        else:
            _leaf_types.add(kind)
    return node


def _namedtuple_node(kind: Any) -> _Node:
    return _Node(
        kind,
        lambda x: (tuple(x), None),
        lambda _, parts: kind(*parts),
        lambda x: [(GetAttrKey(n), v) for n, v in zip(kind._fields, x, strict=True)],
    )


def _add(node: _Node) -> None:
    with _lock:
        if node.kind in _nodes:
            raise TreeError(
                f"{node.kind.__name__} is registered as a pytree already; a class can be "
                "registered once."
            )
        _nodes[node.kind] = node
        _leaf_types.discard(node.kind)


_sorted_keys: dict[tuple[Hashable, ...], tuple[Hashable, ...]] = {}


def _dict_keys(tree: dict[Any, Any]) -> tuple[Hashable, ...]:
    """The keys in sorted order."""
    order = tuple(tree)
    found = _sorted_keys.get(order)
    # 1 and True are equal keys of the table but different keys to a reader; sorting is cheap.
    if found is None or any(type(k) is not str for k in order):
        try:
            found = tuple(sorted(order))
        except TypeError:
            kinds = ", ".join(sorted({type(k).__name__ for k in order}))
            raise TreeError(
                f"a dict that is a pytree needs keys that can be sorted, got keys of types {kinds}"
                f": {list(order)!r:.80}. Use keys of one type, or an OrderedDict."
            ) from None
        if len(_sorted_keys) > _INTERN_LIMIT:
            _sorted_keys.clear()
        _sorted_keys[order] = found
    return found


def _flatten_dict(tree: dict[Any, Any]) -> tuple[list[Any], Hashable]:
    keys = _dict_keys(tree)
    return [tree[k] for k in keys], keys


def _dict_with_keys(tree: dict[Any, Any]) -> list[Any]:
    return [(DictKey(k), tree[k]) for k in _dict_keys(tree)]


def _items_with_keys(tree: Any) -> list[Any]:
    return [(SequenceKey(i), x) for i, x in enumerate(tree)]


def _zip_dict(keys: Any, parts: Sequence[Any]) -> dict[Any, Any]:
    return dict(zip(keys, parts, strict=True))


_add(_Node(dict, _flatten_dict, _zip_dict, _dict_with_keys))
_add(_Node(list, lambda x: (x, None), lambda _, parts: list(parts), _items_with_keys))
_add(_Node(tuple, lambda x: (x, None), lambda _, parts: tuple(parts), _items_with_keys))
_add(_Node(type(None), lambda x: ((), None), lambda _, parts: None, lambda x: []))
_add(
    _Node(
        OrderedDict,
        lambda x: (tuple(x.values()), tuple(x)),
        lambda keys, parts: OrderedDict(zip(keys, parts, strict=True)),
        lambda x: [(DictKey(k), v) for k, v in x.items()],
    )
)
_add(
    _Node(
        defaultdict,
        lambda x: (_flatten_dict(x)[0], (x.default_factory, _dict_keys(x))),
        lambda meta, parts: defaultdict(meta[0], zip(meta[1], parts, strict=True)),
        _dict_with_keys,
    )
)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Sequence[Any]], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make a class a pytree.

    Args:
        nodetype: The class; its subclasses are not included.
        flatten_func: Returns the children and auxiliary data, which is compared by ``==`` and is
            best hashable. Of what is not (dicts, lists, arrays), structures hold copies.
        unflatten_func: Makes an instance of auxiliary data and children.
        flatten_with_keys_func: As ``flatten_func`` with ``(key, child)`` pairs as children.

    Raises:
        TreeError: If the class is registered already.

    Example:
        >>> from funcgrad import tree_util
        >>> class Point:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> tree_util.register_pytree_node(
        ...     Point, lambda p: ((p.x, p.y), None), lambda _, xy: Point(*xy))
        >>> tree_util.tree_leaves(Point(1.0, 2.0))
        [1.0, 2.0]
    """

    def flatten(tree: Any) -> tuple[tuple[Any, ...], Hashable]:
        children, meta = flatten_func(tree)
        return tuple(children), meta

    def with_keys(tree: Any) -> list[Any]:
        if flatten_with_keys_func is not None:
            return list(flatten_with_keys_func(tree)[0])
        return [(FlattenedIndexKey(i), x) for i, x in enumerate(flatten(tree)[0])]

    _add(_Node(nodetype, flatten, unflatten_func, with_keys))


# Flattening.


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Leaves and structure of a tree.

    Args:
        tree: A pytree.
        is_leaf: Tells of subtrees that are to count as leaves.

    Returns:
        The list of leaves, in a fixed order, and the structure.

    Example:
        >>> from funcgrad import tree_util
        >>> tree_util.tree_flatten({"b": 2, "a": (1, None)})
        ([1, 2], PyTreeDef({'a': (*, None), 'b': *}))
    """
    leaves: list[Any] = []
    if is_leaf is not None:
        return leaves, _flatten_until(tree, leaves, is_leaf)
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> PyTreeDef:
    kind = type(tree)
    if kind in _leaf_types:
        leaves.append(tree)
        return _LEAF
    node = _node_of(kind)
    if node is None:
        leaves.append(tree)
        return _LEAF
    children, meta = node.flatten(tree)
    if _leaf_types.issuperset(map(type, children)):
        leaves.extend(children)
        return _intern(node, meta, (_LEAF,) * len(children))
    return _intern(node, meta, tuple([_flatten(child, leaves) for child in children]))


def _flatten_until(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool]) -> PyTreeDef:
    node = None if is_leaf(tree) else _node_of(type(tree))
    if node is None:
        leaves.append(tree)
        return _LEAF
    children, meta = node.flatten(tree)
    return _intern(node, meta, tuple([_flatten_until(c, leaves, is_leaf) for c in children]))


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """A tree of the given structure and leaves; the inverse of `tree_flatten`."""
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply ``f`` to corresponding leaves.

    Args:
        f: Function of one leaf per tree.
        tree: Decides the structure.
        *rest: Trees of which ``tree`` is a prefix.
        is_leaf: Tells of subtrees of ``tree`` that are to count as leaves.

    Returns:
        A tree like ``tree``.

    Raises:
        TreeError: If a tree does not fit, with the path where it differs.

    Example:
        >>> from funcgrad import tree_util
        >>> tree_util.tree_map(lambda a, b: a + b, {"x": 1}, {"x": 2})
        {'x': 3}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    others = [treedef.flatten_up_to(r) for r in rest]
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *others, strict=True)])


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """As `tree_flatten`, every leaf paired with its path."""
    rows: list[tuple[KeyPath, Any]] = []
    _walk(tree, (), rows, is_leaf)
    return rows, tree_structure(tree, is_leaf)


def _walk(tree: Any, path: KeyPath, rows: list[tuple[KeyPath, Any]], is_leaf: IsLeaf) -> None:
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(type(tree))
    if node is None:
        rows.append((path, tree))
        return
    for key, child in node.flatten_with_keys(tree):
        _walk(child, (*path, key), rows, is_leaf)


def broadcast_prefix(prefix: Any, tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of ``prefix``, each repeated for all leaves of ``tree`` below its place.

    Raises:
        TreeError: If ``prefix`` is no prefix of ``tree``, with the path where it differs.
    """
    leaves, treedef = tree_flatten(prefix, is_leaf)
    found: list[Any] = []
    for leaf, subtree in zip(leaves, treedef.flatten_up_to(tree), strict=True):
        found += [leaf] * tree_structure(subtree).num_leaves
    return found
