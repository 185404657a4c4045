"""Rules: small functions that look at a function at a point, by name.

A rule is a generator of findings, given the `Subject`; or, for what happens in loops as well, a
function that is shown each step of an evaluation, or of a derivative, and gives a finding or
nothing. A file for each subject; `RULES` lists them all.
"""

from __future__ import annotations

from funcgrad.linting.rule import RULES
from funcgrad.linting.rules import dependence, keys, numbers, points, shapes, size, state

__all__ = ["RULES", "dependence", "keys", "numbers", "points", "shapes", "size", "state"]
