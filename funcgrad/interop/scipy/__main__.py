"""Run a program for SciPy under funcgrad: ``python -m funcgrad.interop.scipy script.py ...``."""

from funcgrad.interop.running import run
from funcgrad.interop.scipy.installing import install

if __name__ == "__main__":
    run("funcgrad.interop.scipy", install)
