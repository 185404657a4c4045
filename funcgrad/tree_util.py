"""Pytrees under the names of ``jax.tree_util``."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from funcgrad.base.pytree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    IsLeaf,
    KeyEntry,
    KeyPath,
    PyTreeDef,
    SequenceKey,
    broadcast_prefix,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
    register_pytree_node,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
    tuple_of,
)
from funcgrad.errors import ArgumentError, TreeError

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all_leaves", "default_registry", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip

T = TypeVar("T", bound=type)
_MISSING = object()


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every element is a leaf.

    Args:
        iterable: Any elements.
        is_leaf: Says of a node whether it counts as a leaf.
    Example: fg.tree_util.all_leaves([1, 2.0]) -> True
    """
    return all(tree_structure(x, is_leaf).is_leaf for x in iterable)


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _MISSING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Fold the leaves of a tree from left to right.

    Args:
        function: Takes the result so far and a leaf.
        tree: A pytree.
        initializer: The first result; by default the first leaf.
        is_leaf: Says of a node whether it counts as a leaf.
    Example: fg.tree_util.tree_reduce(lambda a, b: a + b, {"x": 1, "y": [2, 3]}) -> 6
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is _MISSING:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _MISSING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Fold the leaves of a tree in pairs, then the results, and so on.

    Args:
        operation: Associative function of two leaves.
        tree: A pytree.
        identity: The result for a tree without leaves.
        is_leaf: Tells of subtrees that are to count as leaves.
    Raises: ArgumentError: If there are neither leaves nor an identity.
    Example: fg.tree_util.tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcde"))
        -> '(((ab)(cd))e)'
    """
    leaves = tree_leaves(tree, is_leaf)
    while len(leaves) > 1:
        pairs = [operation(a, b) for a, b in zip(leaves[::2], leaves[1::2], strict=False)]
        leaves = pairs + leaves[2 * len(pairs) :]
    if leaves:
        return leaves[0]
    if identity is _MISSING:
        raise ArgumentError("tree_reduce_associative: a tree without leaves needs an identity.")
    return identity


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    Args:
        tree: A pytree.
        is_leaf: Says of a node whether it counts as a leaf.
    Example: fg.tree_util.tree_all({"a": 1, "b": (2, 3)}) -> True
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Turn a tree of trees inside out.

    Args:
        outer_treedef: Structure of the tree down to the inner trees.
        inner_treedef: Structure of the inner trees; by default that of the first one.
        pytree_to_transpose: A tree of structure ``outer_treedef`` whose leaves are trees.
    Returns: A tree of structure ``inner_treedef`` whose leaves have structure ``outer_treedef``.
    Raises: TreeError: If the tree has another number of leaves than those structures together.

    Example:
        >>> from funcgrad import tree_util as tu
        >>> outer, inner = tu.tree_structure([0, 0]), tu.tree_structure((0, 0))
        >>> tu.tree_transpose(outer, inner, [(1, 2), (3, 4)])
        ([1, 3], [2, 4])
    """
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    leaves, n = tree_leaves(pytree_to_transpose), inner_treedef.num_leaves
    # Numbers of leaves only: auxiliary data of outer containers may depend on the inner trees.
    if len(leaves) != outer_treedef.num_leaves * n:
        raise TreeError(
            f"tree_transpose: a tree of structure {outer_treedef} of trees of structure "
            f"{inner_treedef} has {outer_treedef.num_leaves * n} leaves, got {len(leaves)}."
        )
    columns = (leaves[i::n] for i in range(n))
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """``prefix_tree`` with its leaves repeated to the structure of ``full_tree``.

    Args:
        prefix_tree: A pytree that is a prefix of the other.
        full_tree: The pytree whose structure the result has.
        is_leaf: Function that says which nodes are taken for leaves.
    Example: fg.tree_util.tree_broadcast(0, {"a": 1, "b": (2, 3)}) -> {'a': 0, 'b': (0, 0)}
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return tree_structure(full_tree).unflatten(leaves)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The leaves, each paired with its path; see `tree_flatten_with_path`.

    Args:
        tree: A tree.
        is_leaf: Function that says which nodes are taken for leaves.
        is_leaf_takes_path: Whether that function gets the path, too.

    Example:
        >>> fg.tree_util.tree_leaves_with_path({"a": 1, "b": (2, 3)})
        [((DictKey(key='a'),), 1), ((DictKey(key='b'), SequenceKey(idx=0)), 2), ((DictKey(key='b'),
        SequenceKey(idx=1)), 3)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Map a function of paths and leaves over pytrees.

    As `tree_map`, where ``f`` gets the path first.

    Args:
        f: Function of a path of keys and of leaves.
        tree: A tree.
        *rest: Further trees of the same structure.
        is_leaf: Function that says which nodes are taken for leaves.
        is_leaf_takes_path: Whether that function gets the path, too.

    Example:
        >>> from funcgrad import tree_util as tu
        >>> tu.tree_map_with_path(lambda path, x: tu.keystr(path) + "=" + str(x), {"a": [1]})
        {'a': ["['a'][0]=1"]}
    """
    rows, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [treedef.flatten_up_to(r) for r in rest]
    paths, leaves = [p for p, _ in rows], [x for _, x in rows]
    return treedef.unflatten([f(*xs) for xs in zip(paths, leaves, *others, strict=True)])


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a single leaf.

    Args: treedef: The structure of a tree.
    Example: fg.tree_util.treedef_is_leaf(fg.tree_util.tree_structure(1)) -> True
    """
    return treedef.is_leaf


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Structures of the children of the root.

    Args: treedef: The structure of a tree.
    Example: fg.tree_util.treedef_children(fg.tree_util.tree_structure({"a": 1, "b": (2, 3)}))
        -> [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of the given structures.

    Args: treedefs: Structures of trees.

    Example:
        >>> fg.tree_util.treedef_tuple(
        ...     [fg.tree_util.tree_structure(1), fg.tree_util.tree_structure([1])]
        ... )
        PyTreeDef((*, [*]))
    """
    return tuple_of(treedefs)


def register_pytree_node_class(cls: T) -> T:
    """Class decorator: a pytree with methods ``tree_flatten`` and ``tree_unflatten``.

    Args: cls: The class; it is returned.

    Example:
        >>> @fg.tree_util.register_pytree_node_class
        ... class Scaled:
        ...     def __init__(self, x): self.x = x
        ...     def tree_flatten(self): return (self.x,), None
        ...     @classmethod
        ...     def tree_unflatten(cls, aux, children): return cls(*children)
        >>> fg.tree_util.tree_map(lambda x: 2 * x, Scaled(3)).x
        6
    """
    kind: Any = cls
    register_pytree_node(cls, lambda x: x.tree_flatten(), kind.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Sequence[Any]], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make a class a pytree whose children have keys.

    Args:
        nodetype: The class.
        flatten_with_keys: Returns ``(key, child)`` pairs and auxiliary data.
        unflatten_func: Makes an instance of auxiliary data and children.
        flatten_func: A faster version without keys.

    Example:
        >>> import types
        >>> class Point(types.SimpleNamespace): pass
        >>> fg.tree_util.register_pytree_with_keys(
        ...     Point,
        ...     lambda p: ([(fg.tree_util.GetAttrKey("x"), p.x)], None),
        ...     lambda meta, children: Point(x=children[0]),
        ... )
        >>> fg.tree_util.tree_map_with_path(lambda path, x: f"{path[0]} is {x}", Point(x=3)).x
        '.x is 3'
    """

    def flatten(tree: Any) -> tuple[Iterable[Any], Hashable]:
        pairs, meta = flatten_with_keys(tree)
        return [child for _, child in pairs], meta

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: T) -> T:
    """Class decorator: a pytree with ``tree_flatten_with_keys`` and ``tree_unflatten``.

    Args: cls: The class; it is returned.

    Example:
        >>> import types
        >>> @fg.tree_util.register_pytree_with_keys_class
        ... class Point(types.SimpleNamespace):
        ...     def tree_flatten_with_keys(self):
        ...         return [(fg.tree_util.GetAttrKey("x"), self.x)], None
        ...     @classmethod
        ...     def tree_unflatten(cls, meta, children): return cls(x=children[0])
        >>> fg.tree_util.tree_map(lambda x: 2 * x, Point(x=3)).x
        6
    """
    kind: Any = cls
    flatten = kind.tree_flatten if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls, lambda x: x.tree_flatten_with_keys(), kind.tree_unflatten, flatten
    )
    return cls


def register_dataclass(
    nodetype: T | None = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Make a dataclass a pytree; usable as a function or as a decorator.

    Args:
        nodetype: The dataclass.
        data_fields: Fields that hold subtrees. By default all fields but those declared with
            ``dataclasses.field(metadata={"static": True})``.
        meta_fields: Fields that belong to the structure.
        drop_fields: Fields that are neither, and take their default.
    Raises: ArgumentError: If the fields do not cover the dataclass exactly.

    Example:
        >>> from dataclasses import dataclass
        >>> @fg.tree_util.register_dataclass
        ... @dataclass
        ... class Layer:
        ...     w: float
        ...     b: float
        >>> fg.tree_util.tree_map(lambda x: -x, Layer(1.0, 2.0))
        Layer(w=-1.0, b=-2.0)
    """
    if nodetype is None:
        return functools.partial(
            register_dataclass,
            data_fields=data_fields,
            meta_fields=meta_fields,
            drop_fields=drop_fields,
        )
    data, meta = _split_fields(nodetype, data_fields, meta_fields, drop_fields)

    def with_keys(x: Any) -> tuple[list[Any], Hashable]:
        pairs = [(GetAttrKey(name), getattr(x, name)) for name in data]
        return pairs, tuple(getattr(x, name) for name in meta)

    def flatten(x: Any) -> tuple[list[Any], Hashable]:
        return [getattr(x, name) for name in data], tuple(getattr(x, name) for name in meta)

    def unflatten(values: Any, children: Sequence[Any]) -> Any:
        fields = dict(zip(meta, values, strict=True))
        fields.update(zip(data, children, strict=True))
        return nodetype(**fields)

    register_pytree_node(nodetype, flatten, unflatten, with_keys)
    return nodetype


def _split_fields(
    cls: type,
    data_fields: Sequence[str] | None,
    meta_fields: Sequence[str] | None,
    drop_fields: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not dataclasses.is_dataclass(cls):
        if data_fields is None or meta_fields is None:
            raise ArgumentError(
                f"register_dataclass: {cls.__name__} is no dataclass, so data_fields and "
                "meta_fields must both be given."
            )
        return tuple(data_fields), tuple(meta_fields)
    fields = [f for f in dataclasses.fields(cls) if f.init]
    if data_fields is None or meta_fields is None:
        own = [f.name for f in dataclasses.fields(cls) if not f.init and f.name not in drop_fields]
        if own:
            raise ArgumentError(
                f"register_dataclass: {cls.__name__} makes its field {own[0]!r} itself (init=False)"
                ", so that no instance could be made with another. Name the other fields, or this "
                f"one: drop_fields=[{own[0]!r}]."
            )
        meta = tuple(f.name for f in fields if f.metadata.get("static", False))
        meta = meta if meta_fields is None else tuple(meta_fields)
        named = set(meta) | set(drop_fields)
        data = tuple(f.name for f in fields if f.name not in named)
        return (data if data_fields is None else tuple(data_fields)), meta
    given = [*data_fields, *meta_fields]
    if sorted(given) != sorted(f.name for f in fields if f.name not in drop_fields):
        raise ArgumentError(
            f"register_dataclass: data_fields, meta_fields and drop_fields of {cls.__name__} must "
            f"name each of its fields {[f.name for f in fields]} once, got {given}."
        )
    return tuple(data_fields), tuple(meta_fields)


def register_static(cls: T) -> T:
    """Class decorator: instances are part of the structure and hold no leaves.

    The class must be hashable and comparable.

    Args: cls: The class; it is returned.

    Example:
        >>> import enum
        >>> @fg.tree_util.register_static
        ... class Mode(enum.Enum):
        ...     FAST = 1
        >>> fg.tree_util.tree_leaves({"mode": Mode.FAST, "x": 2.0})
        [2.0]
    """
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls


def static(**kwargs: Any) -> Any:
    """A field of a dataclass that belongs to the structure: see `register_dataclass`.

    Args: **kwargs: As of `dataclasses.field`.

    Example:
        >>> from dataclasses import dataclass
        >>> @fg.tree_util.register_dataclass
        ... @dataclass
        ... class Layer:
        ...     w: float
        ...     activation: str = fg.tree.static(default="tanh")
        >>> fg.tree.leaves(Layer(1.0))
        [1.0]
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


class _Whole:
    """A function with arguments of its own, as a part of a structure: equal to the function."""

    def __init__(self, func: functools.partial[Any]) -> None:
        self.func = func

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.func(*args, **keywords)

    def __hash__(self) -> int:
        return hash(self.func)

    def __eq__(self, other: object) -> bool:
        return self.func == (other.func if type(other) is _Whole else other)

    def __repr__(self) -> str:
        return repr(self.func)


@register_pytree_node_class
class Partial(functools.partial):
    """`functools.partial` as a pytree: the bound arguments are subtrees.

    Args:
        func: The function.
        *args: Its first arguments.
        **keywords: Its keyword arguments.

    Example:
        >>> add = fg.tree_util.Partial(lambda a, b: a + b, 1)
        >>> fg.tree_util.tree_map(lambda x: 10 * x, add)(2)
        12
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        # Python puts the arguments of an inner one among those of this one. They stay leaves so if
        # they were, and must not become such if they were not.
        if isinstance(func, functools.partial) and not isinstance(func, Partial):
            func = _Whole(func)
        return super().__new__(cls, func, *args, **keywords)

    def tree_flatten(self) -> tuple[tuple[Any, ...], Hashable]:
        return (self.args, self.keywords), self.func

    @classmethod
    def tree_unflatten(cls, func: Any, children: Sequence[Any]) -> Partial:
        args, keywords = children
        return cls(func, *args, **keywords)


class _Registry:
    """The registry of classes of nodes, of which there is one."""

    def flatten(self, tree: Any, leaf_predicate: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
        """Flatten a pytree: see `tree_flatten`."""
        return tree_flatten(tree, leaf_predicate)

    def flatten_with_path(
        self, tree: Any, leaf_predicate: IsLeaf = None
    ) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
        """Flatten a pytree with paths: see `tree_flatten_with_path`."""
        return tree_flatten_with_path(tree, leaf_predicate)

    def flatten_one_level(self, tree: Any) -> tuple[Iterable[Any], Hashable] | None:
        """Flatten one level; ``None`` of a leaf: see the function of that name."""
        return flatten_one_level(tree) if self.is_node(tree) else None

    def flatten_one_level_with_keys(self, tree: Any) -> tuple[Iterable[Any], Hashable] | None:
        """Flatten one level with keys; ``None`` of a leaf: see the function of that name."""
        return flatten_one_level_with_keys(tree) if self.is_node(tree) else None

    def is_node(self, tree: Any) -> bool:
        """Whether something is no leaf."""
        return tree is not None and is_tree_node(type(tree))

    def register_node(
        self,
        type: type,
        to_iterable: Callable[[Any], Any],
        from_iterable: Callable[[Any, Any], Any],
        to_iterable_with_keys: Callable[[Any], Any] | None = None,
    ) -> None:
        """Register a type: see `register_pytree_node` and `register_pytree_with_keys`."""
        if to_iterable_with_keys is None:
            register_pytree_node(type, to_iterable, from_iterable)
        else:
            register_pytree_with_keys(type, to_iterable_with_keys, from_iterable, to_iterable)


default_registry = _Registry()
"""The registry of classes of nodes as an object; the functions of this module do the same."""


if sys.version_info >= (3, 14):
    # It keeps the place of an argument that is not bound, and has no leaves.
    register_pytree_node(
        type(functools.Placeholder), lambda x: ((), None), lambda _, parts: functools.Placeholder
    )
