"""Trials: what a function would take if it were written otherwise, each in a file of its own."""

from funcgrad.profiling.what_if import (
    axis_order,
    checkpointing,
    contractions,
    donation,
    rerolling,
    single_precision,
)
from funcgrad.profiling.what_if.trial import Subject, Trial, WhatIf, try_all

__all__ = ["Subject", "Trial", "WhatIf", "try_all"]

# The files, by the order in which their trials are made.
_FILES = (donation, single_precision, axis_order, checkpointing, rerolling, contractions)
