"""What transformations return: objects that behave as the Python function that they were made of.

Unlike closures they can be pickled and copied: as the transformation, its function and its options,
never with what they have traced or compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, update_wrapper
from types import MethodType
from typing import Any


def global_name(value: Any) -> str | None:
    """The name in its module that leads to a value, if one does.

    It does for a decorated function, whose original has lost its own name to it.
    """
    name = getattr(value, "__qualname__", None)
    found = sys.modules.get(getattr(value, "__module__", None) or "")
    for part in name.split(".") if name else ():
        found = getattr(found, part, None)
    return name if found is value else None


class MadeOf:
    """Base of functions that know what they are made of.

    Attributes:
        transformation: The public function that made it.
        original: Its first argument.
        options: Its keyword arguments.
    """

    transformation: Callable[..., Any]
    original: Any
    options: dict[str, Any]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)  # type: ignore[arg-type]

    def __reduce__(self) -> Any:
        return global_name(self) or (partial(self.transformation, **self.options), (self.original,))


class Transformed(MadeOf):
    """A function made of another one.

    Args:
        run: Called with the tuple of positional and the dict of keyword arguments.
        transformation: The public function that makes such objects.
        fun: Its first argument, whose name, documentation and signature are taken over.
        options: Its keyword arguments.
    """

    def __init__(
        self,
        run: Callable[[tuple[Any, ...], dict[str, Any]], Any],
        transformation: Callable[..., Any],
        fun: Any,
        **options: Any,
    ) -> None:
        update_wrapper(self, fun, updated=())
        self._run = run
        self.transformation = transformation
        self.original = fun
        self.options = options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(args, kwargs)

    def __repr__(self) -> str:
        inner = getattr(self, "__name__", None) or repr(self.original)
        return f"<{self.transformation.__name__}({inner})>"
