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
    """Run the script that the command line names, as if Python had been given it.

    Args:
        package: The package whose command this is.
        install: Prepares the process for the script.
        summary: Text about a script that has run, below its own output: for ``--summary`` before
            the script, and if it stops at a missing name.
    Raises: SystemExit: If no script is named.
    """
    is_asked = summary is not None and sys.argv[1:2] == ["--summary"]
    del sys.argv[: 1 + is_asked]
    if not sys.argv:
        name = package.rpartition(".")[2]
        options = "" if summary is None else "[--summary] "
        what = f"Runs a script unchanged. In it, the name {name} stands for funcgrad's functions."
        if summary is not None:
            what += (
                "\nWith --summary, its last lines on standard error say which names were replaced "
                "by what, which are\nmissing, and how long the script and the compiler took."
            )
        sys.exit(f"usage: python -m {package} {options}script.py [arguments]\n{what}")
    script = sys.argv[0]
    sys.path[0] = str(Path(script).resolve().parent)
    install()

    def write() -> None:
        if summary is not None:
            print(summary(script), file=sys.stderr)

    if is_asked:
        atexit.register(write)
    try:
        runpy.run_path(script, run_name="__main__")
    except MissingNameError:
        if not is_asked:
            atexit.register(write)  # below the traceback
        raise
