"""Summary of a program that has run under the name ``jax``: what was replaced, by what, how fast.

Modules keep the names that were asked for, so that nothing is noted while the program runs.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType

from funcgrad.compiler.runtime import kernel_store
from funcgrad.interop.jax.installing import Module, asked_for
from funcgrad.interop.jax.modules import SOURCES, VERSION, Source
from funcgrad.interop.jax.widths import is_x64
from funcgrad.interop.missing import Missing

_NONE = Source({})


def summary_of(script: str) -> str:
    """Lines about the modules, the missing names and the times of this process.

    Args: script: The program.
    """
    modules = [m for _, m in sorted(sys.modules.items()) if isinstance(m, Module)]
    missing = [path for module in modules for path in _missing_in(module)]
    bits = 64 if is_x64() else 32
    stats = kernel_store.stats()
    seconds = sum(spent for _, spent in stats.log)
    lines = [
        f"{script} ran on funcgrad, which answered to the name jax as JAX {VERSION} does, with "
        f"{bits} bits (jax_enable_x64 is {'on' if is_x64() else 'off'}).",
        *(line for module in modules if (line := _line_of(module))),
        f"  missing, an error only where called: {', '.join(missing) or 'nothing'}",
        f"  {time.process_time():.1f} s of processor time since the start; compiled kernels: "
        f"{stats.compiled} new, {stats.loaded_from_disk} from disk, in {seconds:.1f} s",
    ]
    return "\n".join(lines)


def _line_of(module: ModuleType) -> str:
    """The names of a module that were asked for, and where they come from; empty if none were."""
    names = sorted(name for name, value in asked_for(module).items() if _is_answer(name, value))
    if not names:
        return ""
    origins = ", ".join(SOURCES.get(module.__name__, _NONE).modules) or "funcgrad.interop.jax"
    return f"  {module.__name__}, by {origins}: {', '.join(names)}"


def _is_answer(name: str, value: object) -> bool:
    return not (name.startswith("__") or isinstance(value, ModuleType) or _is_missing(value))


def _missing_in(module: ModuleType) -> list[str]:
    """Paths of the names that were asked for and are missing."""
    return [
        f"{module.__name__}.{n}" for n, value in asked_for(module).items() if _is_missing(value)
    ]


def _is_missing(value: object) -> bool:
    return isinstance(value, Missing)
