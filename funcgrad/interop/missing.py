"""Stand-ins for names that another library has and funcgrad has not, until they are used."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from funcgrad.errors import FuncgradError


class MissingNameError(FuncgradError, NotImplementedError):
    """A program uses a name of another library for which funcgrad has nothing."""


_PAGES = {"jax": "docs/interop_jax.md", "autograd": "docs/interop.md"}


class Missing(type):
    """The class of classes that stand for names that are not here.

    Being classes, they can be imported, written in annotations, which type checkers accept, and
    asked for in ``isinstance``; using one is an error.

    Args: path: Such as ``jax.pmap``.
    """

    _path: str

    def __new__(cls, path: str, *args: Any) -> Any:
        if args:  # a class that is derived from one
            return super().__new__(cls, path, *args)
        module, _, name = path.rpartition(".")
        return super().__new__(cls, name, (), {"__module__": module, "_path": path})

    def __init__(cls, path: str, *args: Any) -> None:
        super().__init__(cls.__name__, cls.__bases__, dict(vars(cls)))

    def _error(cls) -> MissingNameError:
        library = cls._path.partition(".")[0]
        page = _PAGES.get(library, _PAGES["jax"])
        return MissingNameError(
            f"{cls._path} is not there: this program runs on funcgrad, which answers to the name "
            f"{library} and has not all of it. {page} lists what it has."
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "_path" in vars(cls):
            raise cls._error()
        return super().__call__(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return Missing(f"{cls._path}.{name}")

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __iter__(cls) -> Any:
        raise cls._error()

    def __repr__(cls) -> str:
        return f"<{cls._path}, which is missing>" if "_path" in vars(cls) else super().__repr__()


def recorded_names(module: str) -> dict[str, str]:
    """Names of another library by module, from the table ``names.txt`` beside a module of ours.

    Args: module: Path of the module of ours.
    Returns: The names with blanks between them; ``"*"`` where they are not recorded.
    """
    lines = Path(module).with_name("names.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.partition(":") for line in lines if not line.startswith("#"))
    return {path: names.strip() for path, _, names in rows}


def stand_in(path: str) -> Any:
    """Stand-in for a missing name: for an error, a class that nothing raises.

    Args: path: Such as ``jax.errors.JaxRuntimeError``.
    """
    module, _, name = path.rpartition(".")
    if name.endswith(("Error", "Exception")):
        return type(name, (Exception,), {"__module__": module})
    return Missing(path)


def named(module: ModuleType, names: str) -> dict[str, Any]:
    """Names of a module, separated by blanks, with their values."""
    return {name: getattr(module, name) for name in names.split()}
