"""Pytrees: nested containers of arrays, flattened to a list of leaves and a structure.

A container is a dict (leaves in order of sorted keys), list, tuple, namedtuple, OrderedDict,
defaultdict, ``None`` (no leaves) or an instance of a registered class; everything else is a leaf.
Structures are interned, so that comparing two of them is mostly an identity check. Flattening is
on the path of every compiled call, hence the tables keyed by type and by key tuples. Nothing
recurses: trees may be nested as deep as they like. One that contains itself is an error, which is
looked for at depths that double, so that others do not pay for it.
"""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeVar

from funcgrad.base.exact import exact_key, is_fixed, is_hashable, is_same
from funcgrad.base.forking import Lock
from funcgrad.base.records import dataclass
from funcgrad.base.tree_code import MISS, builder, taker
from funcgrad.errors import TreeError

IsLeaf = Callable[[Any], bool] | None


@dataclass(frozen=True)
class SequenceKey:
    """Position in a sequence.

    Example: fg.tree_util.keystr((fg.tree_util.SequenceKey(0),)) -> '[0]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@dataclass(frozen=True)
class DictKey:
    """Key of a dict.

    Example: fg.tree_util.keystr((fg.tree_util.DictKey("a"),)) -> "['a']"
    """

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """Name of an attribute.

    Example: fg.tree_util.keystr((fg.tree_util.GetAttrKey("a"),)) -> '.a'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """Position among the children of a custom node without named keys.

    Example: fg.tree_util.keystr((fg.tree_util.FlattenedIndexKey(0),)) -> '[<flat index 0>]'
    """

    key: int

    def __hash__(self) -> int:  # other than of a position in a sequence
        return hash((FlattenedIndexKey, self.key))

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


_PLAIN: tuple[tuple[type, str], ...] = (
    (SequenceKey, "idx"),
    (DictKey, "key"),
    (GetAttrKey, "name"),
    (FlattenedIndexKey, "key"),
)

KeyPath = tuple[Any, ...]


KeyEntry = TypeVar("KeyEntry", bound=Hashable)
"""A step of a path: a `SequenceKey`, `DictKey`, `GetAttrKey`, `FlattenedIndexKey` or another."""


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as Python would write it, such as ``['w'][0]``.

    Args:
        keys: The steps of the path.
        simple: Whether to write names and numbers only.
        separator: Written between steps.

    Example:
        >>> ((path, _),) = fg.tree_util.tree_leaves_with_path({"w": [1.0]})
        >>> fg.tree_util.keystr(path), fg.tree_util.keystr(path, simple=True, separator="/")
        ("['w'][0]", 'w/0')
    """
    return separator.join(map(_plain if simple else str, keys))


def _plain(key: Any) -> str:
    """Text of a step without brackets, dots and quotes."""
    for kind, field in _PLAIN:
        if isinstance(key, kind):
            return str(getattr(key, field))
    return str(key)


class _Node:
    """How one type of container is taken apart and put together."""

    __slots__ = ("flatten", "flatten_with_keys", "is_transient", "kind", "unflatten")

    def __init__(
        self,
        kind: type,
        flatten: Callable[[Any], tuple[Sequence[Any], Hashable]],
        unflatten: Callable[[Any, Sequence[Any]], Any],
        flatten_with_keys: Callable[[Any], Iterable[Any]],
        is_transient: bool = False,
    ) -> None:
        self.is_transient = is_transient
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
        self._form = exact_key(self._value)

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


def _copied(value: Any) -> Any:
    """The same data in containers and arrays of its own."""
    kind = type(value)
    if kind is dict:
        return {key: _copied(x) for key, x in value.items()}
    if kind is list or kind is tuple:
        return kind([_copied(x) for x in value])
    if is_hashable(value):
        return value
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise TreeError(
            f"the auxiliary data of a pytree node holds a {kind.__name__} that has no hash and "
            f"cannot be copied ({error}). Give its class __eq__ and __hash__, or leave it out."
        ) from None


def _missing(tree: Any) -> Any:
    """Stands for what takes trees apart where nothing may."""
    return MISS


class PyTreeDef:
    """The result of taking the leaves out of a pytree: its structure.

    Example: fg.tree_util.tree_structure({'a': 1, 'b': 2}) -> PyTreeDef({'a': *, 'b': *})
    """

    __slots__ = (
        "_build", "_children", "_form", "_hash", "_is_fixed", "_is_flat", "_meta", "_node", "_take",
        "_uses", "is_transient", "num_leaves",
    )  # fmt: skip

    def __init__(self, node: _Node | None, meta: Hashable, children: tuple[PyTreeDef, ...]) -> None:
        self._node = node
        self._meta = meta
        self._children = children
        # Transient structures are not remembered: each is met once and may be large.
        self.is_transient: bool = node is not None and (
            node.is_transient or any(c.is_transient for c in children)
        )
        self.num_leaves: int = 1 if node is None else sum(c.num_leaves for c in children)
        self._is_flat = node is not None and all(c._node is None for c in children)
        # Data that are equal by `==` do not suffice: generated code may depend on types and bits.
        self._form = meta._form if type(meta) is _Frozen else exact_key(meta)
        self._is_fixed = is_fixed(meta)
        self._hash = hash((None if node is None else node.kind, self._form, children))
        # Functions that are written for this structure once it has been used often.
        self._uses = 0
        self._build: Callable[[Sequence[Any]], Any] | None = None
        self._take: Callable[[Any], Any] | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PyTreeDef):
            return False
        pending = [(self, other)]
        while pending:
            a, b = pending.pop()
            if a is b:
                continue
            if a._hash != b._hash or not a.has_root_of(b) or len(a._children) != len(b._children):
                return False
            pending.extend(zip(a._children, b._children, strict=True))
        return True

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
        """Data of the container besides its children; the sorted keys of a dict."""
        return self.fresh_meta()

    def fresh_meta(self) -> Any:
        """Copy of `meta`, where containers may change it."""
        return self._meta.thaw() if type(self._meta) is _Frozen else self._meta

    @property
    def is_meta_changeable(self) -> bool:
        """Whether containers may change their `meta` in place."""
        return type(self._meta) is _Frozen

    def has_meta(self, meta: Any) -> bool:
        """Whether the container at the root holds ``meta`` besides its children."""
        return self._is_of(meta) or exact_key(meta) == self._form

    def _is_of(self, meta: Any) -> bool:
        """Whether data are seen at once to be the same."""
        return meta is self._meta or (self._is_fixed and is_same(meta, self._meta))

    def is_like(self, meta: Any) -> bool:
        """Tell whether data are equal, also 1 and True (see `has_meta`)."""
        if self._is_of(meta):
            return True
        if is_hashable(meta) and type(self._meta) is not _Frozen and bool(meta == self._meta):
            return True
        return exact_key(meta) == self._form

    def has_root_of(self, other: PyTreeDef) -> bool:
        """Whether the containers at the roots have one kind and hold the same data."""
        return self.kind is other.kind and self._form == other._form

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

    def node_data(self) -> tuple[type, Any] | None:
        """The type of the container at the root and its `meta`; ``None`` for a leaf."""
        if self._node is None:
            return None
        meta = self.meta
        return self._node.kind, list(meta) if self._node.kind is dict else meta

    @property
    def num_nodes(self) -> int:
        """Number of containers and leaves, the root among them."""
        return self.fold([1] * self.num_leaves, lambda _, parts: 1 + sum(parts))

    def walk(
        self,
        f_node: Callable[[Any, Any], Any],
        f_leaf: Callable[[Any], Any] | None,
        leaves: Iterable[Any],
    ) -> Any:
        """Call functions for leaves and containers, from the innermost containers outwards.

        Args:
            f_node: Called with what it returned for the children, and the meta of a container.
            f_leaf: Called with each leaf; without one, leaves are passed on.
            leaves: As many as the structure has.
        Returns: What the root became.
        """

        def visit(treedef: PyTreeDef, parts: Sequence[Any]) -> Any:
            data = treedef.node_data()
            assert data is not None
            return f_node(tuple(parts), data[1])

        given = list(leaves)
        return self.fold(given if f_leaf is None else list(map(f_leaf, given)), visit)

    def held_names(self) -> list[str | None]:
        """For every leaf what structures call its holder, ``None`` for those without."""

        def joined(treedef: PyTreeDef, parts: Sequence[list[str | None]]) -> list[str | None]:
            if treedef.kind in _holders:
                return [str(treedef._meta)] * treedef.num_leaves
            return [name for part in parts for name in part]

        return self.fold([[None]] * self.num_leaves, joined)

    def closed(self) -> PyTreeDef:
        """The structure that users see, in which holders of arrays are leaves; see `opened`."""
        return self.fold([_LEAF] * self.num_leaves, _closed) if _holders else self

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """The structure in which a structure stands for every leaf of this one.

        Args: inner: What stands for the leaves.
        """

        def join(treedef: PyTreeDef, parts: Sequence[PyTreeDef]) -> PyTreeDef:
            assert treedef._node is not None
            return _intern(treedef._node, treedef._meta, tuple(parts))

        return self.fold([inner] * self.num_leaves, join)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """A tree of this structure with the given leaves.

        Raises: TreeError: If the number of leaves is wrong.
        """
        leaves = leaves if isinstance(leaves, list | tuple) else list(leaves)
        if len(leaves) != self.num_leaves:
            raise TreeError(
                f"unflatten: the structure {self} has {self.num_leaves} leaves, got {len(leaves)}."
            )
        if self._build is not None:
            return self._build(leaves)
        self._uses += 1
        if self._uses > _OFTEN and _FEW_LEAVES <= self.num_leaves <= _MANY_LEAVES:
            self._build = builder(self)
        return self.fold(leaves, PyTreeDef._assemble)

    def flatten_alike(self, tree: Any) -> list[Any] | None:
        """The leaves of a tree of this structure; ``None`` if it must be flattened to know.

        It is known at once only of structures that are used often.
        """
        found = self._taken(tree)
        return found if found is not None and _leaf_types.issuperset(map(type, found)) else None

    def _taken(self, tree: Any) -> list[Any] | None:
        """The subtrees at the places of the leaves; ``None`` if that is not known at once."""
        take = self._take
        if take is None:
            if self._build is None:
                return None
            take = self._take = taker(self) if self._may_take() else _missing
        found = take(tree)
        return None if found is MISS else found

    def _may_take(self) -> bool:
        """Whether equal keys of its dicts are the same keys to a reader: not so for 1 and True."""
        pending = [self]
        while pending:
            each = pending.pop()
            if each.kind is dict and any(type(key) is not str for key in each.meta):
                return False
            pending += each._children
        return True

    def fold(
        self, leaves: Sequence[Any], assemble: Callable[[PyTreeDef, Sequence[Any]], Any]
    ) -> Any:
        """Put leaves together, from the innermost containers outwards.

        Args:
            leaves: As many as the structure has.
            assemble: Called with the structure of a container and what stands for its children;
                returns what stands for the container.
        """
        if self._node is None:
            return leaves[0]
        # Containers that wait for parts, with the structures of these and the parts there are.
        waiting: list[tuple[PyTreeDef, Iterator[PyTreeDef], list[Any]]] = []
        parts: list[Any] = []
        rest = iter((self,))
        start = 0
        while True:
            for treedef in rest:
                stop = start + treedef.num_leaves
                if treedef._node is None:
                    parts.append(leaves[start])
                elif treedef._is_flat:
                    parts.append(assemble(treedef, leaves[start:stop]))
                else:
                    waiting.append((treedef, rest, parts))
                    rest, parts = iter(treedef._children), []
                    break
                start = stop
            else:
                if not waiting:
                    return parts[0]
                complete, (treedef, rest, parts) = parts, waiting.pop()
                parts.append(assemble(treedef, complete))

    def _assemble(self, parts: Sequence[Any]) -> Any:
        """A container of the kind of the root that holds ``parts``."""
        meta = self._meta
        return self.unflatten_root(meta.thaw() if type(meta) is _Frozen else meta, parts)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of ``tree`` at the places of this structure's leaves.

        Raises: TreeError: If this is no prefix of the tree, with the path where they differ.
        """
        known = self._taken(tree)
        if known is not None:
            return known
        found: list[Any] = []
        pending = [(self, tree)]
        while pending:
            treedef, part = pending.pop()
            if treedef._node is None:
                found.append(part)
                continue
            children = treedef._take_apart(part)
            if children is None:
                raise self._difference(tree)
            if treedef._is_flat:
                found.extend(children)
            else:
                pending.extend(zip(reversed(treedef._children), reversed(children), strict=True))
        return found

    def _take_apart(self, tree: Any) -> Sequence[Any] | None:
        """The children of a container like the root; ``None`` if the tree is something else."""
        node = self._node
        if node is None or type(tree) is not node.kind:
            return None
        children, meta = node.flatten(tree)
        fits = len(children) == len(self._children) and self.is_like(meta)
        return children if fits else None

    def _difference(self, tree: Any) -> TreeError:
        """The error for a tree that differs, with the first place where it does."""
        pending: list[tuple[PyTreeDef, Any, _Path]] = [(self, tree, None)]
        while True:
            treedef, part, path = pending.pop()
            node = treedef._node
            if node is None:
                continue
            children = treedef._take_apart(part)
            if children is None:
                break
            keys = [key for key, _ in node.flatten_with_keys(part)]
            rows = list(zip(treedef._children, children, keys, strict=True))
            pending.extend((child, sub, (path, key)) for child, sub, key in reversed(rows))
        place = keystr(_keys_of(path))
        if type(part) is not node.kind:
            expected, got = f"a {node.kind.__name__}", f"a {type(part).__name__}"
        else:
            expected, got = str(treedef), str(tree_structure(part))
        where = f"`{place}`" if place else "the root"
        return TreeError(f"trees differ in structure at {where}: expected {expected}, got {got}.")

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
        node = _holders.get(kind) or _node_of(kind)
        if node is None:
            raise TreeError(
                f"a structure that was pickled holds a {kind.__name__}, which is not registered as "
                "a pytree in this process. Import the module that registers it first."
            )
        children = tuple(done.pop() for _ in range(n_children))
        done.append(_intern(node, meta, children))
    return done.pop()


_OFTEN = 50
_FEW_LEAVES, _MANY_LEAVES = 1, 2000
"""Functions are written for structures that are used more often, with so many leaves."""

_LEAF = PyTreeDef(None, None, ())
_interned: dict[tuple[_Node, Hashable, tuple[PyTreeDef, ...]], PyTreeDef] = {}
"""Structures by what `exact_key` gives for their data."""
_met_before: dict[tuple[_Node, Hashable, tuple[PyTreeDef, ...] | int], PyTreeDef] = {}
"""The same by their data itself, and their children or, if these are leaves, the number of them."""
_INTERN_LIMIT = 65536


def _interned_by_key(node: _Node, meta: Hashable, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    form = meta._form if type(meta) is _Frozen else exact_key(meta)
    found = _interned.get((node, form, children))
    if found is None:
        if len(_interned) >= _INTERN_LIMIT:
            _interned.clear()
        if not is_hashable(meta):
            meta = _Frozen(meta)
        found = PyTreeDef(node, meta, children)
        if not found.is_transient:
            found = _interned.setdefault((node, found._form, children), found)
    return found


def _intern(node: _Node, meta: Hashable, parts: tuple[PyTreeDef, ...] | int) -> PyTreeDef:
    """The structure of a container, first sought by its data itself.

    Args:
        node: Of the container.
        meta: Its data.
        parts: The structures of its children, or how many leaves they are.
    """
    key: tuple[_Node, Hashable, tuple[PyTreeDef, ...] | int] | None = (node, meta, parts)
    try:
        found = _met_before.get(key)  # type: ignore[arg-type]
    except TypeError:  # of data without a hash
        key = found = None
    if found is None or not found.has_meta(meta):
        children = (_LEAF,) * parts if isinstance(parts, int) else parts
        found = _interned_by_key(node, meta, children)
        if key is not None and not found.is_transient:
            if len(_met_before) >= _INTERN_LIMIT:
                _met_before.clear()
            _met_before[key] = found
    return found


_Path = tuple["_Path", Any] | None
"""A path as it is traversed: the path of the container and the key in it; ``None`` at the root."""


def _keys_of(path: _Path) -> KeyPath:
    keys = []
    while path is not None:
        path, key = path
        keys.append(key)
    return tuple(reversed(keys))


def _format(treedef: PyTreeDef) -> str:
    texts: list[str] = []
    pending: list[str | PyTreeDef] = [treedef]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            texts.append(piece)
        else:
            pending.extend(reversed(list(_pieces(piece))))
    return "".join(texts)


def _pieces(treedef: PyTreeDef) -> Iterator[str | PyTreeDef]:
    """The text of a container, with its children in their places."""
    kind, children = treedef.kind, treedef._children
    if kind is None or kind is type(None):
        yield "*" if kind is None else "None"
        return
    if kind in _holders:
        yield str(treedef._meta)
        return
    before, after = _BRACKETS.get(kind) or (f"CustomNode({_text_of(treedef)}, [", "])")
    names = [f"{key!r}: " for key in treedef.meta] if kind is dict else [""] * len(children)
    yield before
    for i, (name, child) in enumerate(zip(names, children, strict=True)):
        yield f", {name}" if i else name
        yield child
    yield "," + after if kind is tuple and len(children) == 1 else after


def _text_of(treedef: PyTreeDef) -> str:
    """The class of a container at the root, and its data."""
    kind: Any = treedef.kind
    if issubclass(kind, tuple) and hasattr(kind, "_fields") and treedef.meta is None:
        return f"namedtuple[{kind.__name__}]"
    return f"{kind.__name__}[{treedef.meta}]"


_BRACKETS: dict[type, tuple[str, str]] = {list: ("[", "]"), tuple: ("(", ")"), dict: ("{", "}")}


# The registry.

_lock = Lock()
_nodes: dict[type, _Node] = {}
NODES = MappingProxyType(_nodes)
"""The classes of containers that are known, to be read."""
_met: dict[type, None] = {}
"""Classes that nobody has registered: those of named tuples, in the order of their use."""
_leaf_types: set[type] = set()
_MAX_KINDS = 4096
"""How many classes are remembered of those that nobody has registered; functions make some, too."""


def _node_of(kind: type) -> _Node | None:
    """The node of a type, or None for leaves; remembers the answer."""
    node = _nodes.get(kind)
    if node is None and kind not in _leaf_types:
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return _node_met(kind)
        if len(_leaf_types) >= _MAX_KINDS:
            _leaf_types.clear()
        _leaf_types.add(kind)
    return node


def _node_met(kind: type) -> _Node:
    """The node of a class of named tuples."""
    with _lock:
        node = _nodes.get(kind)
        if node is None:
            if len(_met) >= _MAX_KINDS:
                for old in list(_met)[: _MAX_KINDS // 8]:
                    del _met[old], _nodes[old]
            node = _nodes[kind] = _namedtuple_node(kind)
            _met[kind] = None
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
    *,
    is_transient: bool = False,
) -> None:
    """Make a class a pytree.

    Args:
        nodetype: The class; its subclasses are not included.
        flatten_func: Returns the children and auxiliary data, which is compared by ``==`` and is
            best hashable. Of what is not (dicts, lists, arrays), structures hold copies.
        unflatten_func: Makes an instance of auxiliary data and children.
        flatten_with_keys_func: As ``flatten_func`` with ``(key, child)`` pairs as children.
        is_transient: Whether auxiliary data is rarely the same twice, so that structures need not
            be remembered.
    Raises: TreeError: If the class is registered already.

    Example:
        >>> class Point:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> fg.tree_util.register_pytree_node(
        ...     Point, lambda p: ((p.x, p.y), None), lambda _, xy: Point(*xy))
        >>> fg.tree_util.tree_leaves(Point(1.0, 2.0))
        [1.0, 2.0]
    """

    def flatten(tree: Any) -> tuple[tuple[Any, ...], Hashable]:
        children, meta = flatten_func(tree)
        try:
            return tuple(children), meta
        except TypeError:
            if isinstance(children, Iterable):
                raise
        raise TreeError(
            f"the function that flattens {nodetype.__name__} returns children that are no "
            f"iterable, but of type {type(children).__name__}. It has to return (children, "
            "auxiliary data)."
        )

    def with_keys(tree: Any) -> list[Any]:
        if flatten_with_keys_func is not None:
            return list(flatten_with_keys_func(tree)[0])
        return [(FlattenedIndexKey(i), x) for i, x in enumerate(flatten(tree)[0])]

    _add(_Node(nodetype, flatten, unflatten_func, with_keys, is_transient))


# Leaves that hold arrays.

_holders: dict[type, _Node] = {}


def register_holder(
    kind: type,
    held: Callable[[Any], tuple[tuple[Any, ...], str]],
    holding: Callable[[str, Sequence[Any]], Any],
) -> None:
    """Let what is a leaf to users be a container of arrays to transformations.

    Args:
        kind: The class.
        held: Gives the arrays of an instance, all of its shape, and what structures call it.
        holding: The inverse; of what are no such arrays (flags, tangents without values) it gives
            what stands at their place in a tree of users.
    """
    with _lock:
        _holders[kind] = _Node(
            kind,
            held,
            holding,
            lambda holder: [(FlattenedIndexKey(i), x) for i, x in enumerate(held(holder)[0])],
        )


def held_in(leaf: Any) -> Any:
    """The first array that a leaf holds; any other leaf itself."""
    return all_held_in(leaf)[0]


def all_held_in(leaf: Any) -> Sequence[Any]:
    """The arrays that a leaf holds; any other leaf itself."""
    node = _holders.get(type(leaf))
    return (leaf,) if node is None else node.flatten(leaf)[0]


def opened(leaves: list[Any], treedef: PyTreeDef) -> tuple[list[Any], PyTreeDef]:
    """Leaves and structure as transformations see them: arrays instead of what holds them."""
    if _holders.keys().isdisjoint(map(type, leaves)):
        return leaves, treedef
    inner, parts = [], []
    for leaf in leaves:
        node = _holders.get(type(leaf))
        if node is None:
            inner.append(leaf)
            parts.append(_LEAF)
        else:
            arrays, name = node.flatten(leaf)
            inner.extend(arrays)
            parts.append(_intern(node, name, (_LEAF,) * len(arrays)))
    return inner, treedef.fold(parts, _with_children)


def _with_children(treedef: PyTreeDef, children: Sequence[PyTreeDef]) -> PyTreeDef:
    assert treedef._node is not None
    return _intern(treedef._node, treedef._meta, tuple(children))


def _closed(treedef: PyTreeDef, children: Sequence[PyTreeDef]) -> PyTreeDef:
    return _LEAF if treedef.kind in _holders else _with_children(treedef, children)


def tuple_of(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of the given structures."""
    return _intern(_nodes[tuple], None, tuple(treedefs))


# Flattening.


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Leaves and structure of a tree.

    Args:
        tree: A pytree.
        is_leaf: Tells of subtrees that are to count as leaves.
    Returns: The list of leaves, in a fixed order, and the structure.
    Example: fg.tree_util.tree_flatten({"b": 2, "a": (1, None)})
        -> ([1, 2], PyTreeDef({'a': (*, None), 'b': *}))
    """
    if type(tree) in _leaf_types:
        return [tree], _LEAF
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> PyTreeDef:
    """The structure of a tree, whose leaves are appended to ``leaves``."""
    # Containers that wait for the structures of parts, with the parts and the structures there are.
    waiting: list[tuple[_Node, Hashable, Iterator[Any], list[PyTreeDef], Any]] = []
    made: list[PyTreeDef] = []
    rest = iter((tree,))
    depth = _SUSPECT
    while True:
        for part in rest:
            kind = type(part)
            if (is_leaf is not None and is_leaf(part)) or kind in _leaf_types:
                node = None
            else:  # of most containers it is known what they are
                node = _nodes.get(kind) or _node_of(kind)
            if node is None:
                leaves.append(part)
                made.append(_LEAF)
                continue
            parts, meta = node.flatten(part)
            if is_leaf is None and _leaf_types.issuperset(map(type, parts)):
                leaves.extend(parts)
                made.append(_intern(node, meta, len(parts)))
                continue
            waiting.append((node, meta, rest, made, part))
            if len(waiting) == depth:
                depth = _check_endless([row[-1] for row in waiting])
            rest, made = iter(parts), []
            break
        else:
            if not waiting:
                return made[0]
            complete, (node, meta, rest, made, _) = made, waiting.pop()
            made.append(_intern(node, meta, tuple(complete)))


_SUSPECT = 100
"""The depth at which a tree is first asked whether it contains itself."""


def _check_endless(containers: Sequence[Any]) -> int:
    """Raise if a container stands inside of itself.

    Args: containers: Containers, each inside of the one before it, from the root.
    Returns: The depth at which to ask again.
    """
    at: dict[int, int] = {}
    for depth, container in enumerate(containers):
        first = at.setdefault(id(container), depth)
        if first != depth:
            outer, inner = (keystr(_keys_along(containers[: d + 1])) for d in (first, depth))
            whole = f"{type(container).__name__} {f'at `{outer}`' if outer else 'that holds it'}"
            raise TreeError(
                f"a pytree contains itself, so it has no end: what is at `{inner}` is the {whole}. "
                "Leave it out, or pass that part as a copy."
            )
    return 2 * len(containers)


def _keys_along(containers: Sequence[Any]) -> KeyPath:
    """The path from the first of nested containers to the last."""
    keys: list[Any] = []
    for outer, inner in pairwise(containers):
        rows = _node_for("keystr", outer).flatten_with_keys(outer)
        keys += [key for key, part in rows if part is inner][:1]
    return tuple(keys)


def _container(tree: Any, is_leaf: IsLeaf) -> _Node | None:
    """How to take a tree apart; ``None`` if it counts as a leaf."""
    return None if is_leaf is not None and is_leaf(tree) else _node_of(type(tree))


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """A tree of the given structure and leaves; the inverse of `tree_flatten`.

    Args:
        treedef: The structure of a tree.
        leaves: The new leaves, in order.

    Example:
        >>> fg.tree_util.tree_unflatten(
        ...     fg.tree_util.tree_structure({"a": 1, "b": (2, 3)}), [10, 20, 30]
        ... )
        {'a': 10, 'b': (20, 30)}
    """
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree.

    Args:
        tree: A pytree.
        is_leaf: Says of a node whether it counts as a leaf.
    Example: fg.tree_util.tree_leaves({"a": 1, "b": (2, 3)}) -> [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree.

    Args:
        tree: A pytree.
        is_leaf: Says of a node whether it counts as a leaf.
    Example: fg.tree_util.tree_structure({"a": 1, "b": (2, 3)}) -> PyTreeDef({'a': *, 'b': (*, *)})
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply ``f`` to corresponding leaves.

    Args:
        f: Function of one leaf per tree.
        tree: Decides the structure.
        *rest: Trees of which ``tree`` is a prefix.
        is_leaf: Tells of subtrees of ``tree`` that are to count as leaves.
    Returns: A tree like ``tree``.
    Raises: TreeError: If a tree does not fit, with the path where it differs.
    Example: fg.tree_util.tree_map(lambda a, b: a + b, {"x": 1}, {"x": 2}) -> {'x': 3}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    others = [treedef.flatten_up_to(r) for r in rest]
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *others, strict=True)])


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Leaves of a pytree, each paired with its path, and the structure.

    Args:
        tree: A pytree.
        is_leaf: Tells of subtrees that are to count as leaves.
        is_leaf_takes_path: Whether ``is_leaf`` gets the path first, then the subtree.

    Example:
        >>> tree = {"a": [1, 2], "b": [3]}
        >>> at_a = lambda path, _: fg.tree_util.keystr(path) == "['a']"
        >>> [leaf for _, leaf in fg.tree_util.tree_flatten_with_path(tree, at_a, True)[0]]
        [[1, 2], 3]
    """
    rows: list[tuple[KeyPath, Any]] = []
    if is_leaf is None or not is_leaf_takes_path:
        _traverse(tree, rows, is_leaf)
        return rows, tree_structure(tree, is_leaf)
    # Find the structure in the same order, with the same answers.
    answers = iter(_traverse_by_path(tree, rows, is_leaf))
    return rows, tree_structure(tree, lambda _: next(answers))


def _traverse_by_path(
    tree: Any, rows: list[tuple[KeyPath, Any]], is_leaf: Callable[[KeyPath, Any], bool]
) -> list[bool]:
    """Traverse as `_traverse` does, and note the answers of ``is_leaf``."""
    answers: list[bool] = []
    pending: list[tuple[KeyPath, Any]] = [((), tree)]
    above: list[Any] = []
    depth = _SUSPECT
    while pending:
        path, part = pending.pop()
        answers.append(bool(is_leaf(path, part)))
        node = None if answers[-1] else _node_of(type(part))
        if node is None:
            rows.append((path, part))
        else:
            above[len(path) :] = [part]
            if len(above) == depth:
                depth = _check_endless(above)
            parts = [((*path, key), child) for key, child in node.flatten_with_keys(part)]
            pending.extend(reversed(parts))
    return answers


def _traverse(tree: Any, rows: list[tuple[KeyPath, Any]], is_leaf: IsLeaf) -> None:
    node = _container(tree, is_leaf)
    if node is None:
        rows.append(((), tree))
        return
    path: _Path = None
    prefix: KeyPath | None = ()
    rest = iter(node.flatten_with_keys(tree))
    waiting: list[tuple[_Path, KeyPath | None, Iterator[Any], Any]] = []
    depth = _SUSPECT
    while True:
        for key, part in rest:
            node = _container(part, is_leaf)
            if node is not None:
                waiting.append((path, prefix, rest, part))
                if len(waiting) == depth:
                    depth = _check_endless([tree, *(row[-1] for row in waiting)])
                path, prefix, rest = (path, key), None, iter(node.flatten_with_keys(part))
                break
            if prefix is None:  # Put together only where there are leaves, for trees may be deep.
                prefix = _keys_of(path)
            rows.append(((*prefix, key), part))
        else:
            if not waiting:
                return
            path, prefix, rest, _ = waiting.pop()


def is_tree_node(typ: type) -> bool:
    """Whether instances of a type are containers.

    Args: typ: A class.
    Example: fg.tree_util.is_tree_node(dict), fg.tree_util.is_tree_node(float) -> (True, False)
    """
    return _node_of(typ) is not None


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children of a container, and the rest of it.

    Raises: TreeError: If the tree is a leaf.
    Args: tree: A pytree.
    Example: fg.tree_util.flatten_one_level({"a": [1, 2], "b": 3}) -> ([[1, 2], 3], ('a', 'b'))
    """
    children, meta = _node_for("flatten_one_level", tree).flatten(tree)
    return list(children), meta


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """Children of a node, each paired with its key, and what else the node holds.

    Args: tree: A tree.
    Raises: TreeError: If the tree is a leaf.
    Example: fg.tree_util.flatten_one_level_with_keys({'a': 1, 'b': 2})
        -> ([(DictKey(key='a'), 1), (DictKey(key='b'), 2)], ('a', 'b'))
    """
    node = _node_for("flatten_one_level_with_keys", tree)
    return list(node.flatten_with_keys(tree)), node.flatten(tree)[1]


def _node_for(name: str, tree: Any) -> _Node:
    node = _node_of(type(tree))
    if node is None:
        raise TreeError(
            f"{name} needs a container, got a {type(tree).__name__}, which is a leaf. Register its "
            "class as a pytree to take it apart."
        )
    return node


def broadcast_prefix(
    prefix: Any, tree: Any, is_leaf: IsLeaf = None, is_opened: bool = False
) -> list[Any]:
    """The leaves of ``prefix``, each repeated for all leaves of ``tree`` below its place.

    Args:
        prefix: A tree that has leaves where the other has subtrees.
        tree: The other.
        is_leaf: Tells of subtrees of ``prefix`` that are to count as leaves.
        is_opened: Whether what is held by leaves counts, as transformations see it.
    Raises: TreeError: If ``prefix`` is no prefix of ``tree``, with the path where it differs.
    """
    leaves, treedef = tree_flatten(prefix, is_leaf)
    found: list[Any] = []
    for leaf, subtree in zip(leaves, treedef.flatten_up_to(tree), strict=True):
        leaves, structure = tree_flatten(subtree)
        inner = opened(leaves, structure)[1] if is_opened else structure
        found += [leaf] * inner.num_leaves
    return found
