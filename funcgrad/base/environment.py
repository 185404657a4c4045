"""The environment variables that funcgrad reads, all of them.

Whoever needs one asks here, by its name; nothing else looks into the environment for names that
begin with ``FUNCGRAD_``. `VARIABLES` is what ``docs/environment.md`` shows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from funcgrad.base.records import dataclass

PREFIX = "FUNCGRAD_"


@dataclass(frozen=True)
class Variable:
    """One of them.

    Attributes:
        name: Its name.
        values: What it may be.
        default: What holds where it is not set, or empty.
        read: When it is read.
        meaning: What it does.
    """

    name: str
    values: str
    default: str
    read: str
    meaning: str


_IMPORT = "when funcgrad is imported"
_COMPILE = "when a function is compiled"
_FIRST = "when the first function is compiled"

VARIABLES: dict[str, Variable] = {
    row[0]: Variable(*row)
    for row in (
        (
            "FUNCGRAD_BLAS",
            "own, scipy, mkl, or the path of a library",
            "own on Linux, else scipy",
            _COMPILE,
            "The library that multiplies matrices.",
        ),
        (
            "FUNCGRAD_CACHE_DIR",
            "a folder, or off",
            "funcgrad in the user's cache folder",
            _FIRST,
            "Where compiled kernels are kept for the next process.",
        ),
        (
            "FUNCGRAD_CACHE_SIZE",
            "bytes, or a number with K, M or G",
            "512M",
            _FIRST,
            "The oldest kernels are removed when the folder exceeds this size.",
        ),
        (
            "FUNCGRAD_CALL_PATHS",
            "0 or 1",
            "1",
            _IMPORT,
            "Call compiled functions by functions written for the types of their arguments.",
        ),
        (
            "FUNCGRAD_CHECK_RANKS",
            "0 or 1",
            "0",
            "when distributed.spmd or mesh is called",
            "Check before each collective that all processes are about to run the same one.",
        ),
        (
            "FUNCGRAD_DEBUG",
            "0, 1 or 2",
            "0",
            _COMPILE,
            "Print every kernel that is compiled, and why loops of Python stay unrolled (1), and "
            "programs, plans and sources (2).",
        ),
        (
            "FUNCGRAD_DEBUG_INFS",
            "0 or 1",
            "0",
            _IMPORT,
            "Like `debug_infs`, for the whole process.",
        ),
        (
            "FUNCGRAD_DEBUG_NANS",
            "0 or 1",
            "0",
            _IMPORT,
            "Like `debug_nans`, for the whole process.",
        ),
        (
            "FUNCGRAD_DEBUG_PYTHON_LOOPS",
            "0 or 1",
            "0",
            _IMPORT,
            "Like `debug_python_loops`, for the whole process.",
        ),
        (
            "FUNCGRAD_DISABLE_JIT",
            "0 or 1",
            "0",
            _IMPORT,
            "Like `disable_jit`, for the whole process.",
        ),
        (
            "FUNCGRAD_KEEP_MEMORY",
            "bytes, or a number with K, M or G",
            "256M",
            "when the first large result is made",
            "How much memory of freed results is kept for the next ones; 0 keeps none.",
        ),
        (
            "FUNCGRAD_KEEP_SUBNORMALS",
            "0 or 1",
            "0",
            _COMPILE,
            "Keep subnormal numbers of single precision, instead of zeros.",
        ),
        (
            "FUNCGRAD_NUMBA",
            "lean or public",
            "lean; public with a release of llvmlite that was not tested",
            _COMPILE,
            "How kernels become native code: by funcgrad's translation, or by Numba's public "
            "interface.",
        ),
        (
            "FUNCGRAD_NUM_THREADS",
            "a number, 1 or more",
            "the number of cores that the process may use",
            _COMPILE,
            "The number of threads that large kernels may use.",
        ),
        (
            "FUNCGRAD_REROLL",
            "0 or 1",
            "1",
            _IMPORT,
            "Whether loops that Python unrolls while it traces become loops again; see "
            "`reroll_loops`.",
        ),
        (
            "FUNCGRAD_REUSE_PLANS",
            "0 or 1",
            "1",
            _COMPILE,
            "Keep the plans of programs beside their kernels, and use those that are there.",
        ),
        (
            "FUNCGRAD_REUSE_TRACES",
            "0 or 1",
            "1",
            _IMPORT,
            "Reuse the trace of a function for others of the same code that read the same things.",
        ),
        (
            "FUNCGRAD_SCALAR_TAPE",
            "0 or 1",
            "1",
            _IMPORT,
            "Differentiate eager functions of Python's floats by a tape of their own.",
        ),
        (
            "FUNCGRAD_SKIP_PASSES",
            "names of passes, separated by commas",
            "none",
            _COMPILE,
            "Compiler passes to skip, to find the one that has a defect.",
        ),
        (
            "FUNCGRAD_VERIFY",
            "0 or 1",
            "0",
            _COMPILE,
            "Check the program after every pass of the compiler.",
        ),
    )
}

_WHEN_COMPILED = [name for name, variable in VARIABLES.items() if variable.read == _COMPILE]


def text(name: str) -> str | None:
    """Return the value of a variable without blanks around it; ``None`` where it is not set.

    Args: name: One of `VARIABLES`.
    """
    assert name in VARIABLES
    found = os.environ.get(name)
    return None if found is None else found.strip()


def when_compiled() -> tuple[str | None, ...]:
    """Return the values of what is read when a function is compiled, set or not."""
    return tuple([os.environ.get(name) for name in _WHEN_COMPILED])


def of_jax(name: str) -> str:
    """The value of a variable that JAX reads, for programs that import it; empty if it is not set.

    Args: name: Its name, which begins with ``JAX_`` or ``XLA_``.
    """
    assert name.startswith(("JAX_", "XLA_"))
    return os.environ.get(name, "")


def is_on(name: str) -> bool:
    """Whether a switch is on: set to anything but 0.

    Args: name: One of `VARIABLES`.
    """
    return (text(name) or VARIABLES[name].default) != "0"


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def n_bytes(name: str, default: int, refused: type[Exception]) -> int:
    """A size in bytes that a variable is set to, such as ``200M``.

    Args:
        name: One of `VARIABLES`.
        default: What holds where it is not set.
        refused: What is raised where it is not a size.
    """
    given = (text(name) or "").upper().removesuffix("B")
    if not given:
        return default
    digits = given.rstrip("KMG")
    if not (digits.isascii() and digits.isdigit()) or given[len(digits) :] not in _UNITS:
        raise refused(
            f"{name}={given!r} is not a size. Give bytes or a number with K, M or G: 512M."
        )
    return int(digits) * _UNITS[given[len(digits) :]]


def unknown() -> list[str]:
    """Variables that look like ours and are not read: misspelt, or of another version."""
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in VARIABLES)


def is_any_set(names: Iterable[str]) -> bool:
    """Whether one of the variables of another program is there."""
    return any(name in os.environ for name in names)
