"""The processor of this process, by its architecture."""

from __future__ import annotations

import platform


def is_x86() -> bool:
    """Whether it is one of Intel's architecture, with 64 bits."""
    return platform.machine().lower() in ("x86_64", "amd64")


def is_arm() -> bool:
    """Whether it is one of ARM's architecture, with 64 bits."""
    return platform.machine().lower() in ("aarch64", "arm64")
