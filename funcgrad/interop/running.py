"""Programs of other libraries, run unchanged from the command line."""

import atexit
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

from funcgrad.interop.missing import MissingNameError


def run(
    package: str, install: Callable[[], None], summary: Callable[[str], str] | None = None
) -> None:
    """Run the script or module that the command line names, as if Python had been given it.

    Args:
        package: The package whose command this is.
        install: Prepares the process for the script.
        summary: Text about a script that has run, below its own output: for ``--summary`` before
            the script, and if it stops at a missing name.
    Raises: SystemExit: If there is no such script.
    """
    is_asked = summary is not None and sys.argv[1:2] == ["--summary"]
    is_module = sys.argv[1 + is_asked : 2 + is_asked] == ["-m"]
    del sys.argv[: 1 + is_asked + is_module]
    if not sys.argv or sys.argv[0].startswith("-"):
        sys.exit(_usage(package, has_summary=summary is not None))
    script = sys.argv[0]
    if not is_module and not Path(script).exists():
        sys.exit(f"{package}: there is no file {script!r}. Modules are run by -m, as by Python.")
    sys.path[0] = str(Path.cwd() if is_module else Path(script).resolve().parent)
    install()

    def write() -> None:
        if summary is not None:
            print(summary(script), file=sys.stderr)

    if is_asked:
        atexit.register(write)
    try:
        if is_module:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except MissingNameError:
        if not is_asked:
            atexit.register(write)  # below the traceback
        raise


def _usage(package: str, has_summary: bool) -> str:
    name = package.rpartition(".")[2]
    options = "[--summary] " if has_summary else ""
    text = (
        f"usage: python -m {package} {options}script.py [arguments]\n"
        f"       python -m {package} {options}-m module [arguments]\n"
        f"Runs a program unchanged. In it, the name {name} stands for funcgrad's functions."
    )
    if has_summary:
        text += (
            "\nWith --summary, its last lines on standard error say which names were replaced by "
            "what, which are\nmissing, and how long the program and the compiler took."
        )
    return text
