"""Rule for traced indices out of bounds: NumPy's, or JAX's.

JAX cannot raise from compiled code, so its programs are written for clamped reads and dropped
writes: they have its rule, and it can be chosen for the whole process. Functions that were traced
keep the rule that they were traced with.
"""

from __future__ import annotations

from typing import Any

from funcgrad.base.dialect import NUMPY, dialect
from funcgrad.errors import ArgumentError

RAISE, CLAMP = "raise", "clamp"


class IndexRule:
    """The rule for everything that is traced from now on.

    Attributes:
        name: What was chosen for the process.
    """

    __slots__ = ("name",)

    def __init__(self) -> None:
        self.name = RAISE

    @property
    def clamps(self) -> bool:
        """Whether it is JAX's, in this context."""
        return self.name == CLAMP or dialect() is not NUMPY

    @property
    def mode(self) -> str | None:
        """The mode of ``x.at[...]`` with which it treats traced indices as this rule does."""
        return None if self.clamps else "promise_in_bounds"

    def choose(self, name: Any) -> bool:
        """Follow another rule in the whole process; whether that changes anything.

        Raises: ArgumentError: If there is no such rule.
        """
        if name not in (RAISE, CLAMP):
            raise ArgumentError(f'out_of_bounds is "{RAISE}" or "{CLAMP}", not {name!r}.')
        changes = bool(self.name != name)
        self.name = name
        return changes


INDEX_RULE = IndexRule()
