"""Checks in traced and compiled functions, under the names of ``jax.experimental.checkify``.

This module is a page of names; the work is in `funcgrad.api.checking`.
"""

from funcgrad.api.checking import (
    Error,
    all_checks,
    automatic_checks,
    check,
    check_error,
    checkify,
    debug_check,
    div_checks,
    float_checks,
    index_checks,
    init_error,
    nan_checks,
    user_checks,
)
from funcgrad.base.namespaces import present
from funcgrad.errors import FailedCheckError as JaxRuntimeError
from funcgrad.observers.checks import Kinds as ErrorCategory

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
    "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
    "init_error", "nan_checks", "user_checks",
]  # fmt: skip

present(__name__)
