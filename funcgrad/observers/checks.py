"""Checks of a running program: the data of `funcgrad.checkify`.

A `Site` is a place in a program where something is looked for; it has a number, and a message with
gaps that values of the run fill. A `Fault` is what a primitive knows of one such place: flags, true
where something is wrong, and the values for the gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from funcgrad.base.pytree import PyTreeDef, tree_structure, tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray

USER, NAN, DIVISION, INDEX = "user", "nan", "division", "index"

EXPLICIT = "explicit"
"""Instead of kinds: what checks that are written down look for, of all kinds."""

REPEATED = "repeated"
"""Instead of kinds: the program has run already, and is run a second time for its residuals."""

Kinds = frozenset[str]
"""Kinds of faults to look for: some of the words above."""

Slot = tuple[ShapedArray, ...]
"""Types of the values that fill the gaps of a message: sites with equal ones share memory."""


@dataclass(frozen=True)
class Site:
    """A place where something can be found wrong.

    Args:
        kind: What is looked for.
        message: Text with gaps, as `str.format` fills them.
        structure: Of the pair of positional and named values for the gaps.
        slot: Types of these values.
        line: The user's line, or ``None``.
        is_debugging: Whether nothing happens unless the check is functionalised.
    """

    kind: str
    message: str
    structure: PyTreeDef
    slot: Slot = ()
    line: str | None = None
    is_debugging: bool = False

    def text(self, values: Sequence[Any]) -> str:
        """The message of a run, and the line."""
        args, named = tree_unflatten(self.structure, [np.asarray(x)[()] for x in values])
        text = self.message.format(*args, **named)
        return text if self.line is None else f"{text}\n  at            {self.line}"


def structure_of(count: int) -> PyTreeDef:
    """Structure of ``count`` positional values and no named ones."""
    return tree_structure(((0,) * count, {}))


def slots_of(sites: Iterable[Site]) -> list[Slot]:
    """The distinct ones, without the empty one, in the order of the sites."""
    return [slot for slot in dict.fromkeys(site.slot for site in sites) if slot]


@dataclass(frozen=True)
class Fault:
    """Flags and values of a primitive at a place where something can be wrong.

    Args:
        kind: What was looked for.
        message: Text with gaps for ``values``.
        flags: Array of bools, true where something is wrong.
        values: Integer arrays that broadcast to the shape of the flags; a message names those at
            the first flag.
    """

    kind: str
    message: str
    flags: Any
    values: tuple[Any, ...] = ()
