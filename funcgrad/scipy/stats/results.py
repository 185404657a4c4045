"""Results that unpack to fewer values than they have, as SciPy's do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from funcgrad.base.pytree import GetAttrKey, register_pytree_node

__all__ = ["Extended"]


class Extended(tuple[Any, ...]):
    """A tuple of the first values, with all of them as attributes; a pytree of all.

    Subclasses are told the names of the values, and how many of them the tuple has.
    """

    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, fields: Sequence[str], n_unpacked: int) -> None:
        cls.FIELDS = tuple(fields)
        cls.N_UNPACKED = n_unpacked
        register_pytree_node(
            cls,
            lambda result: (result.values(), None),
            lambda _, values: cls(*values),
            lambda result: (
                [
                    (GetAttrKey(name), value)
                    for name, value in zip(cls.FIELDS, result.values(), strict=True)
                ],
                None,
            ),
        )

    N_UNPACKED: ClassVar[int] = 0

    def __new__(cls, *values: Any) -> Any:
        result = super().__new__(cls, values[: cls.N_UNPACKED])
        for name, value in zip(cls.FIELDS, values, strict=True):
            vars(result)[name] = value
        return result

    def values(self) -> tuple[Any, ...]:
        """All values, also those that are not unpacked."""
        return tuple(vars(self)[name] for name in self.FIELDS)

    def __reduce__(self) -> Any:
        return type(self), self.values()

    def __repr__(self) -> str:
        values = zip(self.FIELDS, self.values(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={x!r}' for name, x in values)})"
