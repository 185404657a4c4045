"""Starting programs on several processes, where there is an MPI."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BESIDE = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(BESIDE) if BESIDE.exists() else shutil.which("mpiexec")
HAS_MPI = MPIEXEC is not None and importlib.util.find_spec("mpi4py") is not None
needs_mpi = pytest.mark.skipif(
    not HAS_MPI, reason="there is no mpiexec or no mpi4py: pip install 'funcgrad[mpi]'"
)
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT),
    "FUNCGRAD_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Open MPI: more processes than cores, which wait without spinning, also as root in containers.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def start(n: int, *arguments: object) -> subprocess.Popen[str]:
    """Start a Python program on ``n`` processes."""
    assert MPIEXEC is not None
    return subprocess.Popen(
        [MPIEXEC, "-n", str(n), sys.executable, *map(str, arguments)],
        env={**os.environ, **ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def run(n: int, *arguments: object, timeout: float = 180) -> str:
    """What a Python program prints on ``n`` processes, which must succeed."""
    process = start(n, *arguments)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0, out + err
    return out


def failed(
    n: int, *arguments: object, disturb: Callable[[subprocess.Popen[str]], None] | None = None
) -> tuple[int, str, float]:
    """Code and messages of a program that fails once it has printed "ready", and how long it took.

    Args:
        n: Number of processes.
        arguments: The program and what it is given.
        disturb: What happens to it then.
    """
    process = start(n, *arguments)
    assert process.stdout is not None
    try:
        # Libraries of MPI may have something to say before.
        said = next((line for line in process.stdout if line == "ready\n"), None)
        assert said is not None, process.communicate(timeout=60)[1]
        begin = time.monotonic()
        if disturb is not None:
            disturb(process)
        _, err = process.communicate(timeout=60)
        return process.returncode, err, time.monotonic() - begin
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
