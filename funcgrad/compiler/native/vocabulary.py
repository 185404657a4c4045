"""The vocabulary of kernels: all words, by name."""

from __future__ import annotations

from funcgrad.compiler.native import (  # noqa: F401 (define words)
    lanes,
    memory,
    numbers,
    system,
    vectors,
)
from funcgrad.compiler.native.words import WORDS

__all__ = ["WORDS"]
