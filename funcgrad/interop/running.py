"""Programs of other libraries, run unchanged from the command line."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path


def run(package: str, install: Callable[[], None]) -> None:
    """Run the script that the command line names, as if Python had been given it.

    Args:
        package: The package whose command this is.
        install: Prepares the process for the script.

    Raises:
        SystemExit: If no script is named.
    """
    if len(sys.argv) < 2:
        sys.exit(f"usage: python -m {package} script.py [arguments]")
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    install()
    runpy.run_path(sys.argv[0], run_name="__main__")
