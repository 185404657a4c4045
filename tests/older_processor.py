"""LLVM is told that this processor is an older one, which the environment names.

A plugin of pytest: ``FUNCGRAD_TESTS_PROCESSOR=x86-64 python -m pytest -p tests.older_processor``.
"""

from __future__ import annotations

import os

from funcgrad.compiler.native import llvm_backend

VARIABLE = "FUNCGRAD_TESTS_PROCESSOR"

FEATURES = {"haswell": "+sse2,+avx,+avx2,+fma,-prefer-256-bit", "x86-64": "+sse2"}
"""By LLVM's names of processors their features, as far as this library asks for them."""

NAME = os.environ[VARIABLE]
llvm_backend.cpu = lambda: (NAME, FEATURES[NAME])
