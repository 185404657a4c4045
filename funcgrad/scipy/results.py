"""Results of solvers: named values, by attribute or by key, as SciPy's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from funcgrad.base.pytree import register_pytree_node


class Result:
    """Named values; a pytree, whose texts are constants of its structure.

    Args: values: The values by name.
    Example: fg.scipy.optimize.OptimizeResults(x=1.0, success=True).x -> 1.0
    """

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"this result has no {name!r}; it has {', '.join(self.__dict__)}.")

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def keys(self) -> list[str]:
        """The names."""
        return list(self.__dict__)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a name, if it is there."""
        return self.__dict__.get(name, default)

    def __repr__(self) -> str:
        width = max(map(len, self.__dict__), default=0)
        return "\n".join(f"{name:>{width}}: {value}" for name, value in self.__dict__.items())


Meta = tuple[tuple[str, ...], tuple[tuple[str, Any], ...]]


def _flatten(result: Result) -> tuple[list[Any], Meta]:
    values = vars(result)
    texts = tuple((name, x) for name, x in values.items() if isinstance(x, str))
    names = tuple(name for name, x in values.items() if not isinstance(x, str))
    return [values[name] for name in names], (names, texts)


def register_result(kind: type[Result]) -> type[Result]:
    """Make a class of results a pytree."""

    def unflatten(meta: Meta, values: Any) -> Result:
        result = object.__new__(kind)
        result.__dict__.update(zip(meta[0], values, strict=True))
        result.__dict__.update(meta[1])
        return result

    register_pytree_node(kind, _flatten, unflatten)
    return kind


register_result(Result)
