"""Names for annotations: types of arguments that many functions take.

They are for signatures alone, and no checks: whoever takes a `ShapeLike` says what else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Function = Callable[..., Any]
"""A function whose arguments are the user's."""

FlatFunction = Callable[..., Sequence[Any]]
"""A function of arrays, none of them in a pytree, that returns a sequence of them."""

Values = Sequence[Any]
"""Arrays, numbers or traced values, one after the other."""

Keywords = dict[str, Any]
"""Arguments by name."""

ShapeLike = int | Sequence[int]
"""A shape; a number is that of one axis."""

Axes = int | Sequence[int] | None
"""One axis, several, or all."""
