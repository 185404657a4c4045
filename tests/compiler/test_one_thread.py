"""The second instance of OpenBLAS, which has one thread.

The references are NumPy's own functions, in a process whose OpenBLAS has one thread.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import funcgrad as fg
from funcgrad.base import stacks
from funcgrad.compiler import foreign, one_thread

MODULES = (
    "numpy.linalg._umath_linalg",
    "scipy.linalg.cython_lapack",
    "scipy.linalg.cython_blas",
)
is_there = pytest.mark.skipif(
    not foreign.distance_to_one_thread(MODULES[0]), reason="for wheels on Linux with glibc"
)


def run(code: str, n_threads: int = 2, **variables: str) -> str:
    """What a process prints whose OpenBLAS has so many threads."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "OPENBLAS_NUM_THREADS": str(n_threads), **variables},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


START = """
import ctypes, os, sys, threading, time
import numpy as np
import funcgrad as fg
from funcgrad.compiler import foreign, one_thread

stack = np.random.default_rng(0).normal(size=(20, 60, 60))
square = np.random.default_rng(1).normal(size=(150, 150))
works = {
    "svd": lambda a: np.linalg.svd(a),
    "eigh": lambda a: np.linalg.eigh(a + a.swapaxes(-1, -2)),
    "qr": lambda a: np.linalg.qr(a),
    "inv": lambda a: np.linalg.inv(a),
    "lstsq": lambda a: fg.vmap(lambda x: np.linalg.lstsq(x, x[:, :2])[0])(a),
    "gradient": fg.vmap(fg.grad(lambda x: np.linalg.svd(x, compute_uv=False).sum())),
}
"""

DIGESTS = """
import hashlib
for name, work in works.items():
    for threads in (1, 2):
        for a in (stack, stack.astype(np.float32), square[None]):
            found = fg.jit(work, threads=threads)(a)
            bits = b"".join(np.ascontiguousarray(x).tobytes() for x in fg.tree.leaves(found))
            print(name, a.shape, a.dtype, hashlib.sha256(bits).hexdigest())
print(bool(one_thread.libraries()), file=sys.__stdout__)
"""


@is_there
def test_results_are_those_of_a_process_whose_library_has_one_thread() -> None:
    *first, is_used = run(START + DIGESTS, 1).splitlines()
    *second, is_used_here = run(START + DIGESTS, 2).splitlines()
    assert first == second
    assert (is_used, is_used_here) == ("False", "True")


@is_there
def test_those_are_numpys() -> None:
    code = """
for name, work in list(works.items())[:3]:
    for found, expected in zip(fg.jit(work)(stack), work(stack)):
        print(np.array_equal(found, expected))
"""
    assert set(run(START + code, 1).split()) == {"True"}


@is_there
def test_the_process_is_as_it_was() -> None:
    code = """
def state():
    names = ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads")
    everywhere = ctypes.CDLL(None)
    return (
        sorted(sys.modules), os.sched_getaffinity(0), len(os.listdir("/proc/self/fd")),
        [foreign._asks_for_threads(x)() for x in MODULES], [hasattr(everywhere, x) for x in names],
        threading.active_count(), dict(os.environ), sys.getdlopenflags(),
    )

def n_threads():
    return len(os.listdir("/proc/self/task"))

for module in MODULES:
    foreign._table(module)
before, threads = state(), n_threads()
for module in MODULES:
    assert foreign.distance_to_one_thread(module)
    assert foreign.distance_to_one_thread(module)
until = time.monotonic() + 30
while n_threads() > threads and time.monotonic() < until:
    time.sleep(0.001)  # the thread that has loaded it ends
print(state() == before, n_threads() - threads, len(one_thread.libraries()))
for library in one_thread._LIBRARIES.values():
    for name in ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads"):
        if hasattr(library, name):
            print(library[name]())
""".replace("MODULES", repr(MODULES))
    assert run(START + code, 2).split() == ["True", "0", "2", "1", "1"]


@is_there
def test_whoever_sets_the_threads_of_the_library_means_the_first_instance() -> None:
    code = """
import numpy.linalg._umath_linalg as module
fg.jit(works["svd"])(stack)
(library,) = one_thread._LIBRARIES.values()
ask, = [foreign._asks_for_threads(module.__name__)]
put = ctypes.CDLL(module.__file__)[ask.__name__.replace("get", "set")]
for number in (1, 3, 2):
    put(number)
    fg.jit(lambda a: works["svd"](a * number))(stack)
    print(ask(), library[ask.__name__]())
"""
    assert run(START + code, 2).splitlines() == ["1 1", "3 1", "2 1"]


@is_there
def test_it_is_there_for_programs_that_are_compiled_while_the_library_is_limited() -> None:
    code = """
import numpy.linalg._umath_linalg as module
ask = foreign._asks_for_threads(module.__name__)
ctypes.CDLL(module.__file__)[ask.__name__.replace("get", "set")](1)
fg.jit(works["svd"])(stack)
print(len(one_thread.libraries()))
"""
    assert run(START + code, 2) == "1"


BUSY = """
def used():  # by the threads of OpenBLAS: all others that are there
    return sum(int(open(f"/proc/self/task/{x}/schedstat").read().split()[0]) for x in others)

me = threading.get_native_id()
others = [x for x in os.listdir("/proc/self/task") if int(x) != me]
def sleeps(thread):  # and does not wait for a processor, which it may for long
    return open(f"/proc/self/task/{thread}/stat").read().rpartition(")")[2].split()[0] == "S"

def rest():
    before = -1
    while before != used() or not all(map(sleeps, others)):
        before = used()
        time.sleep(0.1)
    return before
"""


@is_there
def test_threads_of_the_library_sleep_while_stacks_are_decomposed() -> None:
    code = """
calls = [fg.jit(work) for work in works.values()]
for call in calls:
    call(stack)
before = rest()
for call in calls:
    for _ in range(3):
        call(stack)
print(used() - before)
"""
    assert run(START + BUSY + code, 3) == "0"


@is_there
def test_large_matrices_have_the_threads_of_the_library() -> None:
    code = """
a = np.random.default_rng(0).normal(size=(700, 700))
before = rest()
fg.jit(lambda a: np.linalg.eigvalsh(a), threads=2)(a)
print(used() > before, one_thread.libraries())
"""
    assert run(START + BUSY + code, 2) == "True []"


@is_there
def test_memory_of_the_copies_is_given_back() -> None:
    code = """
kept = []
make = os.memfd_create
os.memfd_create = lambda *args: kept.append(os.dup(make(*args))) or os.dup(kept[-1])
for module in MODULES:
    assert foreign.distance_to_one_thread(module)
sizes = [os.fstat(x) for x in kept]
print(len(kept), sum(512 * x.st_blocks for x in sizes), sum(x.st_size for x in sizes))
""".replace("MODULES", repr(MODULES))
    n_files, kept, whole = map(int, run(START + code).split())
    assert n_files == 5
    assert 5 * kept < whole


@is_there
def test_forks_between_calls_of_other_threads() -> None:
    """Within a call OpenBLAS holds a lock that stays closed in a child, as it does under NumPy."""
    code = """
gate = threading.Lock()
expected = [x.tobytes() for x in works["svd"](stack)]
call = fg.jit(works["svd"])
stop = False

def work():
    while not stop:
        with gate:
            call(stack)
        time.sleep(0.001)  # else the gate is hardly ever another's

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
wrong = 0
for k in range(6):
    with gate:
        child = os.fork()
    if not child:
        found = [call, fg.jit(lambda a: works["svd"](a))][k % 2](stack)
        fine = all(np.allclose(np.abs(a), np.abs(np.frombuffer(b).reshape(a.shape)))
                   for a, b in zip(found, expected))
        os._exit(0 if fine else 1)
    wrong += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
stop = True
for thread in threads:
    thread.join()
print(wrong)
"""
    assert run(START + code, 2) == "0"


@is_there
def test_threads_with_small_stacks_load_and_use_it() -> None:
    code = """
expected = [np.linalg.svd(x, compute_uv=False) for x in stack]
found = []
threading.stack_size(64 * 1024)
call = fg.jit(lambda a: np.linalg.svd(a, compute_uv=False))
threads = [threading.Thread(target=lambda: found.append(call(stack))) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print([bool(np.allclose(x, expected)) for x in found], len(one_thread.libraries()))
"""
    assert run(START + code, 2) == "[True, True, True, True] 1"


@is_there
def test_the_configuration_names_it() -> None:
    foreign.distance_to_one_thread(MODULES[0])
    config: Any = fg.show_config("dicts")
    assert "openblas" in config["threads"]["OpenBLAS on one thread"]


# Where there can be none, the ordinary library is called.


@is_there
@pytest.mark.parametrize(
    ("place", "name"),
    [
        (os, "memfd_create"),
        (os, "sched_setaffinity"),
        (one_thread, "between_forks"),
        (stacks, "start"),
    ],
)
def test_what_is_not_allowed(place: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_thread, "_DISTANCES", {})
    monkeypatch.setattr(one_thread, "_LIBRARIES", {})
    error = RuntimeError if place is stacks else PermissionError

    def refuse(*args: Any) -> Any:
        raise error("not here")

    monkeypatch.setattr(place, name, refuse)
    n_files = len(os.listdir("/proc/self/fd"))
    assert foreign.distance_to_one_thread(MODULES[0]) == 0
    assert len(os.listdir("/proc/self/fd")) == n_files


@is_there
def test_a_file_that_is_another_one_than_the_loaded_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(one_thread, "_DISTANCES", {})
    file = foreign._table(MODULES[0]).__file__
    ask = foreign._asks_for_threads(MODULES[0])
    original = ctypes.CDLL(file)
    copy = tmp_path / "module.so"
    data = bytearray(Path(file).read_bytes())
    copy.write_bytes(data)
    name = os.path.basename(one_thread._file_of(ask)).encode()
    assert one_thread._loaded_again(str(copy), name, one_thread._base(original)) is not None
    at = data.index(b"\x00" * 64, 0x4000)
    data[at] = 1
    middle = len(data) // 4
    data[middle] ^= 1
    copy.write_bytes(data)
    assert one_thread._loaded_again(str(copy), name, one_thread._base(original)) is None
    assert one_thread._loaded_again(str(copy), b"another library") is None


@pytest.mark.parametrize("ask", ["openblas_get_num_threads", "MKL_Get_Max_Threads"])
def test_libraries_that_others_may_use_too(ask: str) -> None:
    assert not one_thread._is_possible(ask)


@is_there
def test_symbols_that_all_libraries_see() -> None:
    """The second instance would find the variables of the first."""
    code = """
import numpy.linalg._umath_linalg as module
file = one_thread._file_of(foreign._asks_for_threads(module.__name__))
ctypes.CDLL(file, os.RTLD_GLOBAL | os.RTLD_NOW)
found = fg.jit(lambda a: np.linalg.svd(a, compute_uv=False))(stack)
print(np.allclose(found, np.linalg.svd(stack, compute_uv=False)), one_thread.libraries())
"""
    assert run(START + code, 2) == "True []"
