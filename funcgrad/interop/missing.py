"""Stand-ins for names that another library has and funcgrad has not, until they are used."""

from __future__ import annotations

from typing import Any

from funcgrad.errors import FuncgradError


class MissingNameError(FuncgradError, NotImplementedError):
    """A program uses a name of another library for which funcgrad has nothing."""


_PAGES = {"jax": "docs/interop_jax.md", "autograd": "docs/interop.md"}


class Missing:
    """A name that is not here: it can be imported and written in annotations.

    Args:
        path: Such as ``jax.pmap``.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.__name__ = self.__qualname__ = path.rpartition(".")[2]
        self.__module__ = path.rpartition(".")[0]

    def _error(self) -> MissingNameError:
        library = self._path.partition(".")[0]
        page = _PAGES.get(library, _PAGES["jax"])
        return MissingNameError(
            f"{self._path} is not there: this program runs on funcgrad, which answers to the name "
            f"{library} and has not all of it. {page} lists what it has."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._error()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._path}.{name}")

    def __getitem__(self, item: Any) -> Any:
        return self

    def __setitem__(self, key: Any, rule: Any) -> None:
        """Rules of operations that are not here are never asked for."""

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __iter__(self) -> Any:
        raise self._error()

    def __enter__(self) -> Any:
        raise self._error()

    def __exit__(self, *error: object) -> None:
        pass

    def __bool__(self) -> bool:
        raise self._error()

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __subclasscheck__(self, cls: type) -> bool:
        return False

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()

    def __repr__(self) -> str:
        return f"<{self._path}, which is missing>"


def stand_in(path: str) -> Any:
    """What stands for a name that is not here: of an error, a class that nothing raises.

    Args:
        path: Such as ``jax.errors.JaxRuntimeError``.
    """
    module, _, name = path.rpartition(".")
    if name.endswith(("Error", "Exception")):
        return type(name, (Exception,), {"__module__": module})
    return Missing(path)
