"""All public names, and what the reference says of each; needs no Sphinx.

A name is public if it is in the ``__all__`` of ``funcgrad`` or of a module that can be reached from
there by such names. The same object may have several public names: the first, in the order of the
modules, is described, and the others refer to it.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import funcgrad

OF_OTHERS = ("numpy", "scipy")
"""Libraries whose functions have counterparts here by the same path."""

LINKS = {
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
}


@dataclass(frozen=True, eq=False)
class Name:
    """One public name of one module."""

    module: str
    name: str
    value: object

    @property
    def path(self) -> str:
        """``funcgrad.numpy.sin``."""
        return f"{self.module}.{self.name}"

    @property
    def is_ours(self) -> bool:
        """Whether this is code of funcgrad, not a name of another library or of Python."""
        return self.home.split(".")[0] == "funcgrad"

    @property
    def home(self) -> str:
        """The module in which the object, or the function that it wraps, was written."""
        value = inspect.unwrap(self.value) if callable(self.value) else self.value
        return getattr(value, "__module__", None) or type(value).__module__

    @property
    def is_host_function(self) -> bool:
        """Whether it passes known values on to the function of the other library."""
        return " itself, for known values only." in self.summary

    @property
    def is_result(self) -> bool:
        """Whether it is a class that nobody makes by hand: a result, a state, a type, flags."""
        if not isinstance(self.value, type):
            return False
        return (
            issubclass(self.value, tuple | enum.Enum)
            or isinstance(self.value, type(Protocol))
            or dataclasses.is_dataclass(self.value)
            or bool(re.search(r"\bresult of|The solution|Common type", self.summary))
        )

    @property
    def kind(self) -> str:
        """``function``, ``class``, ``exception`` or ``data``."""
        if isinstance(self.value, type):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if callable(self.value) else "data"

    @property
    def documentation(self) -> str:
        """The docstring; empty for constants, whose type's docstring says nothing about them."""
        if self.kind == "data" and not self.is_ours:
            return ""
        if isinstance(self.value, types.GenericAlias | types.UnionType):
            return ""
        return inspect.getdoc(self.value) or ""

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring; what a constant is; whose a name of others is."""
        if not self.documentation:
            return f"``{self.value!r}``"
        if not self.is_ours:
            spelled = getattr(self.value, "__qualname__", None) or self.name
            return f"``{self.home}.{spelled}`` itself.".replace("``builtins.", "Python's ``")
        return " ".join(self.documentation.partition("\n\n")[0].split())

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters; empty if Python does not know them."""
        try:
            return list(inspect.signature(self.value).parameters)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return []

    @property
    def signature(self) -> str:
        """Parameters and defaults as Python writes them, without annotations."""
        try:
            found = inspect.signature(self.value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return ""
        plain = [
            q.replace(annotation=q.empty, default=_Default.of(q.default))
            for q in found.parameters.values()
        ]
        return str(found.replace(parameters=plain, return_annotation=found.empty))

    @functools.cached_property
    def original(self) -> str | None:
        """The function of NumPy or SciPy with the same path, such as ``numpy.sin``."""
        theirs = self.path.removeprefix("funcgrad.")
        if theirs.split(".")[0] not in OF_OTHERS:
            return None
        try:
            module = importlib.import_module(theirs.rpartition(".")[0])
        except ImportError:
            return None
        return theirs if hasattr(module, self.name) else None

    @property
    def link(self) -> str | None:
        """Where the original is documented."""
        if self.original is None:
            return None
        return LINKS[self.original.split(".")[0]].format(self.original)


class _Default:
    """A default value that is written by its name, if it has one."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    @staticmethod
    def of(value: object) -> object:
        if value is inspect.Parameter.empty:
            return value
        text = getattr(value, "__name__", None) or repr(value)
        return _Default("..." if "<" in text or "\n" in text else text)


def modules() -> list[types.ModuleType]:
    """All public modules, those included that are loaded when they are asked for."""
    return list(dict.fromkeys(_modules_of(funcgrad)))


def _modules_of(module: types.ModuleType) -> Iterator[types.ModuleType]:
    yield module
    for name in sorted(module.__all__):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            yield from _modules_of(value)


def names_of(module: types.ModuleType) -> list[Name]:
    """The public names of a module but for its modules, in alphabetical order."""
    return [
        Name(module.__name__, name, getattr(module, name))
        for name in sorted(module.__all__, key=lambda name: (name.lower(), name))
        if not isinstance(getattr(module, name), types.ModuleType)
    ]


@functools.cache
def all_names() -> tuple[Name, ...]:
    """Every public name of every public module."""
    return tuple(name for module in modules() for name in names_of(module))


@functools.cache
def first_names() -> dict[int, Name]:
    """Identity of a described object -> the name under which it is described."""
    found: dict[int, Name] = {}
    for name in all_names():
        if name.documentation:
            known = found.setdefault(id(name.value), name)
            if name.name == getattr(name.value, "__name__", None) != known.name:
                found[id(name.value)] = name  # `abs` is described as `absolute`
    return found


def described_as(name: Name) -> Name:
    """The name under which the object is described: usually the same."""
    return first_names().get(id(name.value), name)


def described_parameters(documentation: str) -> set[str]:
    """Names in the section ``Args:`` or ``Attributes:`` of a docstring."""
    section = re.search(
        r"^(?:Args|Attributes):\n((?:[ ]+.*\n?|\n)*)", documentation, flags=re.MULTILINE
    )
    if section is None:
        return set()
    heads = re.findall(r"^ {4}(\S[^:]*):", section[1], flags=re.MULTILINE)
    return {q.strip(" *`") for head in heads for q in head.split(",")}


def undescribed(name: Name) -> list[str]:
    """Parameters that the docstring has no line for; results of functions have fields instead."""
    if name.is_result:
        return []
    text = name.documentation
    if name.kind == "function" and not inspect.isroutine(name.value):
        text = inspect.getdoc(type(name.value).__call__) or ""
    known = described_parameters(text)
    return [q for q in name.parameters if q not in known and not q.startswith("_")]
