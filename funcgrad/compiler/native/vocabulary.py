"""The vocabulary of kernels: all words, by name."""

from __future__ import annotations

from funcgrad.compiler.native import memory, numbers, system, vectors  # noqa: F401 (define words)
from funcgrad.compiler.native.words import WORDS

__all__ = ["WORDS"]
