"""Run a program written for autograd: ``python -m funcgrad.interop.autograd script.py ...``."""

from funcgrad.interop.autograd.installing import install
from funcgrad.interop.running import run

if __name__ == "__main__":
    run("funcgrad.interop.autograd", install)
