"""Python that takes one kind of tree apart, and puts it together.

The text of such functions holds no names and values of users: types, keys and other data are
constants that it refers to by number. What takes a structure is handed over as a parameter, since
structures themselves use this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

MISS = object()
"""Result of a function that was written for other arguments."""


class TreeWriter:
    """Writes a function, line by line.

    Args: constants: Names that the text may use.
    """

    def __init__(self, **constants: Any) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {"MISS": MISS, **constants}
        self._names: dict[int, str] = {}
        self._count = 0

    def line(self, text: str) -> None:
        """Add a statement."""
        self.lines.append("    " + text)

    def constant(self, value: Any) -> str:
        """A name for a value."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"k{len(self.constants)}"
            self.constants[name] = value
        return name

    def variable(self) -> str:
        """A new name."""
        self._count += 1
        return f"t{self._count}"

    def unless(self, condition: str) -> None:
        """Give up where a condition does not hold."""
        self.line(f"if not ({condition}): return MISS")

    def take_apart(self, names: Sequence[str], trees: Sequence[Any]) -> list[str]:
        """Statements that find the leaves of trees.

        Returns: Names of the leaves, in order.
        """
        leaves: list[str] = []
        pending = list(zip(names, trees, strict=True))
        pending.reverse()
        while pending:
            name, tree = pending.pop()
            if tree.is_leaf:
                leaves.append(name)
            else:
                pending.extend(reversed(self._unpack(name, tree)))
        return leaves

    def _unpack(self, name: str, tree: Any) -> list[tuple[str, Any]]:
        """Take a container apart; its children are left to be taken apart in turn."""
        children = tree.children()
        if tree.kind is type(None):
            self.unless(f"{name} is None")
            return []
        parts = [self.variable() for _ in children]
        is_kind = f"type({name}) is {self.constant(tree.kind)}"
        has_length = f"len({name}) == {len(parts)}"
        values = name
        if tree.kind is dict and all(type(key) is str for key in tree.meta):
            self.unless(f"{is_kind} and {has_length}")
            for part, key in zip(parts, tree.meta, strict=True):
                self.line(f"{part} = {name}.get({self.constant(key)}, MISS)")
                self.unless(f"{part} is not MISS")
            return list(zip(parts, children, strict=True))
        if tree.kind in (list, tuple):
            self.unless(f"{is_kind} and {has_length}")
        else:
            self.unless(is_kind)
            values, meta = self.variable(), self.variable()
            self.line(f"{values}, {meta} = {self.constant(tree.flatten_root)}({name})")
            # Not `==`: data that is no longer hashable, such as an array, may have no bool.
            known = f"{self.constant(tree.has_meta)}({meta})"
            self.unless(f"{meta} is None" if tree.meta is None else known)
            self.unless(f"len({values}) == {len(parts)}")
        if parts:
            self.line(f"{', '.join(parts)}, = {values}")
        return list(zip(parts, children, strict=True))

    def put_together(self, tree: Any, leaves: Sequence[str]) -> str:
        """Statements that make a tree of named leaves; its name."""
        return tree.fold(leaves, self._assemble)

    def _assemble(self, tree: Any, parts: Sequence[str]) -> str:
        """Name a container of named parts: expressions of deep trees would nest too deeply."""
        name = self.variable()
        self.line(f"{name} = {self._container(tree, parts)}")
        return name

    def _container(self, tree: Any, parts: Sequence[str]) -> str:
        if tree.kind is type(None):
            return "None"
        if tree.kind is dict:
            keys = [self.constant(key) for key in tree.meta]
            return "{" + ", ".join(f"{k}: {p}" for k, p in zip(keys, parts, strict=True)) + "}"
        listed = "[" + ", ".join(parts) + "]"
        if tree.kind is list:
            return listed
        if tree.kind is tuple:
            return "(" + "".join(part + ", " for part in parts) + ")"
        unflatten = self.constant(tree.unflatten_root)
        if tree.is_meta_changeable:
            return f"{unflatten}({self.constant(tree.fresh_meta)}(), {listed})"
        return f"{unflatten}({self.constant(tree.meta)}, {listed})"

    def function(self, head: str, called: str) -> Callable[..., Any]:
        """The function that was written.

        Args:
            head: Its first line.
            called: How tracebacks call the text.
        """
        exec(compile("\n".join([head, *self.lines]), f"<{called}>", "exec"), self.constants)
        return self.constants[head[4 : head.index("(")]]


def builder(tree: Any) -> Callable[[Sequence[Any]], Any]:
    """A function from as many leaves as a structure has to the tree."""
    writer = TreeWriter()
    names = [writer.variable() for _ in range(tree.num_leaves)]
    writer.line(f"{''.join(name + ', ' for name in names)} = leaves")
    writer.line(f"return {writer.put_together(tree, names)}")
    return writer.function("def build(leaves):", "tree")


def taker(tree: Any) -> Callable[[Any], Any]:
    """A function from a tree to what would be its leaves; `MISS` for one of another structure."""
    writer = TreeWriter()
    leaves = writer.take_apart(["tree"], [tree])
    writer.line(f"return [{', '.join(leaves)}]")
    return writer.function("def take(tree):", "tree")
