"""Run a program written for JAX: ``python -m funcgrad.interop.jax script.py ...``."""

from funcgrad.interop.jax.installing import install
from funcgrad.interop.jax.summary import summary_of
from funcgrad.interop.running import run

if __name__ == "__main__":
    run("funcgrad.interop.jax", install, summary_of)
