"""Run a program written for autograd: ``python -m funcgrad.interop.autograd script.py ...``."""

import runpy
import sys
from pathlib import Path

from funcgrad.interop.autograd.installing import install

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m funcgrad.interop.autograd script.py [arguments]")
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    install()
    runpy.run_path(sys.argv[0], run_name="__main__")
