"""The releases of llvmlite that kernels are known to be translated right for.

Kernels are translated by calls of llvmlite of which some are private. Each minor version of Numba
brings one of llvmlite; with one that was never tested Numba compiles the kernels, through what it
promises to keep (`native.numba_path`), and LLVM is called as llvmlite promises it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

from funcgrad.base import environment
from funcgrad.errors import ArgumentError, UntestedVersionWarning

FIRST, LAST = (0, 46), (0, 50)
"""The first and the last minor version of llvmlite that was tested: Numba's 0.63 and 0.68."""


def is_by_numba(version: Callable[[], str]) -> bool:
    """Whether kernels are compiled by Numba's public interface.

    Args: version: Gives that of llvmlite.
    Raises: ArgumentError: The environment says something else.
    """
    given = environment.text("FUNCGRAD_NUMBA")
    if not given:
        return not _is_tested(version())
    if given not in ("lean", "public"):
        raise ArgumentError(
            f"FUNCGRAD_NUMBA={given!r} is no way to compile kernels. Give lean or public, or leave "
            "it out."
        )
    return given == "public"


@cache
def _is_tested(version: str) -> bool:
    """Whether a release was; warns, once, where it was not."""
    parts = version.split(".")[:2]
    if all(part.isdecimal() for part in parts) and FIRST <= tuple(map(int, parts)) <= LAST:
        return True
    first, last = (".".join(map(str, x)) for x in (FIRST, LAST))
    warnings.warn(
        UntestedVersionWarning(
            f"llvmlite {version} was not tested with this release of funcgrad ({first} to {last} "
            "were). Numba compiles the kernels, through its public interface: that takes longer, "
            "and they are not kept on disk. Results are the same. FUNCGRAD_NUMBA=lean translates "
            "them as usual all the same; FUNCGRAD_NUMBA=public chooses this without a warning."
        ),
        stacklevel=2,
    )
    return False
