"""Lint: what is likely to be wrong with a derivative, line by line.

``lint : (a -> b) -> a -> LintReport``. Wrong derivatives are rarely wrong formulas: they are cut
paths, kinks, hidden NaNs, keys that are used twice. Each rule looks for one of them.
"""

from funcgrad.base.namespaces import present
from funcgrad.linting.checker import lint, rules
from funcgrad.linting.derivatives import DerivativeChecks, DerivativeRow, check_derivatives
from funcgrad.linting.findings import Finding, LintReport

__all__ = [
    "DerivativeChecks", "DerivativeRow", "Finding", "LintReport", "check_derivatives", "lint",
    "rules",
]  # fmt: skip

present(__name__)
