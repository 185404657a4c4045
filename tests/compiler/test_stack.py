"""Compiled code needs little stack, so that it runs on threads that have little.

No function grows its frame while it runs, and no chain of calls takes more than `abi.MOST_STACK`.
What needs more, LLVM and Python's parser, runs on threads of our own where a thread has little.
"""

from __future__ import annotations

import _thread
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.base import stacks
from funcgrad.compiler import abi
from funcgrad.compiler.loops.library import fourier, tiles
from funcgrad.compiler.loops.library.selection import Selection
from funcgrad.compiler.loops.library.small_layouts import InLanes, InRows
from funcgrad.compiler.loops.library.small_matrices import NAMES
from funcgrad.compiler.native import llvm_backend
from funcgrad.compiler.runtime import kernel_store
from funcgrad.errors import StackError
from tests.compiler.frames import deepest, grows
from tests.compiler.kernels import Code, assembled, products
from tests.compiler.test_platforms import texts

pytestmark = pytest.mark.lean

PROCESSORS = {
    "AVX-512": ("x86_64-unknown-linux-gnu", "+avx512f,+avx512vl,+avx512dq,+avx512bw,+fma"),
    "AVX2": ("x86_64-unknown-linux-gnu", "+avx,+avx2,+fma"),
    "SSE2": ("x86_64-unknown-linux-gnu", "+sse2"),
    "ARM": ("aarch64-unknown-linux-gnu", "+neon"),
}


def routines(machine: str, features: str) -> Iterator[tuple[str, Code]]:
    """All that is written by hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platform, "machine", lambda: machine)
        found = list(texts())
    yield from found
    for letter in "sdcz":
        size = 4 if letter in "sc" else 8
        shape, doubles = tiles.inner_shape(size, features), tiles.inner_shape(8, features)
        for name, program in products(letter, shape):
            yield f"{letter} {name}", assembled(program)
        if letter in "cz":
            kinds = tuple(fourier.Pass(radix, False) for radix in fourier.RADICES)
            rows = fourier.Layout(False, True)
            program = fourier.Fourier.named(letter, shape.lanes, kinds, rows, rows, False)
            yield f"{letter} Fourier", assembled(program)
        for layout in (InLanes, InRows):
            for name in NAMES:
                code = assembled(layout.named(name, letter, doubles.lanes))
                yield f"{letter} {layout.__name__} {name}", code
    for kind, size in (("f32", 4), ("f64", 8), ("i8", 1), ("i64", 8)):
        yield f"select {kind}", assembled(Selection.named(kind, size))


def object_file(code: Code, triple: str, features: str) -> bytes:
    machine = llvm.Target.from_triple(triple).create_target_machine(
        features=features, opt=llvm_backend.BRIEF_SELECTION if code.is_brief else 3
    )
    module = llvm.parse_assembly(code.text, llvm.create_context())
    module.triple, module.data_layout = triple, str(machine.target_data)
    return machine.emit_object(module)


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROCESSORS)
def test_routines_need_little_stack(name: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple, features = PROCESSORS[name]
    needs = {}
    for what, code in routines(triple.partition("-")[0], features):
        assert grows(code.text) == [], what
        needs[what] = deepest(code.text, object_file(code, triple, features))
    assert max(needs.values()) <= abi.MOST_STACK, needs
    assert max(needs.values()) > 2000  # matrices of small systems


@pytest.mark.nightly
def test_all_routines_need_little_stack_here() -> None:
    features = kernel_store.machine_facts()["features"]
    for what, code in routines(platform.machine(), features):
        effort = llvm_backend.Effort.BRIEF if code.is_brief else llvm_backend.Effort.TILES
        made = llvm_backend.Emission(code.text, effort).result()
        assert deepest(code.text, made) <= abi.MOST_STACK, what


def test_growing_frames_are_found() -> None:
    plain = "define void @f() {\nentry:\n  %a = alloca i64\n  ret void\n}\n"
    late = "define void @f() {\nentry:\n  br label %b\nb:\n  %a = alloca i64\n  ret void\n}\n"
    unknown = "define void @f(i64 %n) {\nentry:\n  %a = alloca i8, i64 %n\n  ret void\n}\n"
    assert grows(plain) == []
    assert len(grows(late)) == 1
    assert len(grows(unknown)) == 1
    large = (
        "declare void @use(ptr)\n"
        "define internal void @g() noinline {\n  %a = alloca [40000 x i8]\n"
        "  call void @use(ptr %a)\n  ret void\n}\n"
        "define void @f() {\n  %a = alloca [90000 x i8]\n  call void @use(ptr %a)\n"
        "  call void @g()\n  ret void\n}\n"
    )
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for triple, features in PROCESSORS.values():
        code = object_file(Code(large, "f"), triple, features)
        assert 130_000 <= deepest(large, code) < 131_000


# Kernels.


def many(n: int, shape: tuple[int, ...], dtype: Any) -> Callable[..., Any]:
    """A loop whose kernel has as many numbers at a time as one can have."""

    def body(i: Any, xs: Any) -> Any:
        return tuple(x + y[::-1] for x, y in zip(xs, xs[::-1], strict=True))

    def loop(x: Any) -> Any:
        return fg.lax.fori_loop(0, 5, body, tuple(x * (k + 1) for k in range(n)))

    return loop


X = np.linspace(0.1, 1, 48).reshape(4, 12)
KERNELS: dict[str, tuple[Callable[..., Any], Any]] = {
    "functions": (lambda x: fnp.tanh(x) * fnp.sin(x) + fnp.exp(x), X),
    "softmax": (lambda x: fnp.exp(x - x.max(1)[:, None]) / fnp.exp(x).sum(1)[:, None], X),
    "gradient": (fg.grad(lambda x: (fnp.tanh(x @ x.T) * x.sum()).sum()), X),
    "scan": (lambda x: fg.lax.scan(lambda c, y: (c * 0.5 + y, c.sum()), x[0], x), X),
    "scatter": (lambda x: fnp.zeros(9).at[(x * 9).astype(int) % 9].add(x), X),
    "sort": (lambda x: fnp.sort(x, 1)[:, ::2].cumsum(0), X),
    "many numbers": (many(30, (16,), float), np.arange(16.0)),
    "lanes": (fg.vmap(many(4, (16,), float)), np.ones((300, 16))),
}
NIGHTLY = {
    "all numbers": (many(70, (16,), complex), np.arange(16.0) + 1j),
    "all lanes": (fg.vmap(many(70, (16,), complex)), np.ones((300, 16)) + 0j),
}


@pytest.fixture(name="emitted")
def with_emitted(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What is compiled from now on, with nothing known before."""
    found: dict[str, bytes] = {}
    object_file = llvm_backend._object_file

    def noted(assembly: str, effort: Any) -> bytes:
        found[assembly] = object_file(assembly, effort)
        return found[assembly]

    monkeypatch.setattr(llvm_backend, "_object_file", noted)
    monkeypatch.setattr(kernel_store, "_ADDRESSES", {})
    monkeypatch.setattr(kernel_store, "_disk", lambda: None)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", [*KERNELS, *(pytest.param(x, marks=pytest.mark.nightly) for x in NIGHTLY)]
)
def test_kernels_need_little_stack(name: str, emitted: dict[str, bytes]) -> None:
    function, x = (KERNELS | NIGHTLY)[name]
    fg.jit(function)(x)
    assert emitted
    for assembly, code in emitted.items():
        assert grows(assembly) == []
        assert deepest(assembly, code) <= abi.MOST_STACK


# Threads.

THREADS = """
import sys, threading
import numpy as np
import funcgrad as fg, funcgrad.numpy as fnp

R = np.random.default_rng(0)
A = R.standard_normal((300, 300))
S = A @ A.T + 300 * np.eye(300)
FEW = np.stack([S[:24, :24]] * 20)
C = R.standard_normal((2048, 64)) + 0j
X = R.standard_normal((100, 50))

def loss(x):
    step = fg.checkpoint(lambda c, y: (fnp.tanh(c) * 0.5 + y, c.sum()))
    return fg.lax.scan(step, x[0], x)[1].sum() + (x @ x.T).sum()

PROGRAMS = [
    (lambda x: fnp.fft.fft(x, axis=0), C),
    (lambda x: fnp.fft.fft(x.T.copy(), axis=1), C.astype(np.complex64)),
    (lambda x: x @ x, A), (lambda x: x @ x, A.astype(np.float32)), (lambda x: x[:3] @ x, A),
    (fnp.linalg.cholesky, S), (fnp.linalg.cholesky, FEW), (fnp.linalg.cholesky, FEW + 0j),
    (lambda x: fnp.linalg.solve(x, x[0]), S), (lambda x: fnp.linalg.solve(x, x), FEW + 0j),
    (fnp.linalg.det, FEW), (fg.grad(lambda x: fnp.linalg.slogdet(x)[1].sum()), FEW),
    (lambda x: fnp.linalg.svd(x)[1], S), (fnp.sort, X.ravel()), (lambda x: fnp.cumsum(x, 0), X),
    (lambda x: x.sum(0) + fnp.sin(x).sum(), X), (fg.grad(loss), X), (fg.hessian(loss), X[:4, :4]),
    (lambda x: fnp.zeros(9).at[(x * 9).astype(int) % 9].add(x), X),
    (lambda x: fg.pure_callback(np.sin, x, x) + 1, X),
    (fg.vmap(lambda y: fg.lax.while_loop(lambda y: y.sum() < 9, lambda y: y + 1, y)), abs(X)),
    (lambda x: fg.scipy.integrate.odeint(lambda y, t: -y, x[0], np.arange(4.0)), X),
]
threading.stack_size(int(sys.argv[1]) * 1024)
done, failed = [], []

def run(function, x):
    try:
        compiled = fg.jit(function, threads=2)
        first = compiled(x)
        again = compiled(x)
        for a, b in zip(fg.tree.leaves(first), fg.tree.leaves(again)):
            np.testing.assert_array_equal(a, b)
        done.append(first)
    except BaseException as error:
        failed.append(error)

for function, x in PROGRAMS[:: int(sys.argv[2])]:
    thread = threading.Thread(target=run, args=(function, x))
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
assert threading.stack_size() == int(sys.argv[1]) * 1024
print("all", len(done))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the sizes are those of Linux")
@pytest.mark.parametrize(
    ("each", "number"), [(3, 8), pytest.param(1, 22, marks=pytest.mark.nightly)]
)
def test_programs_compile_and_run_on_threads_with_little_stack(each: int, number: int) -> None:
    command = [sys.executable, "-c", THREADS, "64", str(each)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == f"all {number}\n"


def in_a_thread(nbytes: int, function: Callable[[], Any]) -> Any:
    """What a function returns in a thread with so much stack; the process has that size then.

    The C library gives a new thread the stack of one that has ended, of up to four times the size
    that was asked for. Threads with such a stack keep it until the function has returned.
    """
    found: list[Any] = []
    has_ended = threading.Event()

    def run() -> None:
        is_other = stacks.thread_size() not in (nbytes, None)
        if not is_other:
            try:
                found.append(function())
            finally:
                has_ended.set()
        ready.release()
        has_ended.wait(120)

    before = threading.stack_size(nbytes)
    try:
        for _ in range(20):
            ready = threading.Semaphore(0)
            _thread.start_new_thread(run, ())
            assert ready.acquire(timeout=120)
            if has_ended.is_set():
                break
    finally:
        has_ended.set()
        threading.stack_size(before)
    return found[0]


needs_sizes = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux says how much stack a thread has left"
)


@needs_sizes
def test_the_compiler_has_threads_of_its_own() -> None:
    assert stacks.thread_size() is None  # the main thread
    sizes: list[Any] = []
    done = threading.Event()

    def note() -> None:
        sizes.append(stacks.thread_size())
        done.set()

    def ask() -> tuple[Any, Any, Any]:
        stacks.start(note)
        assert done.wait(60)
        thread = threading.get_ident()
        other = stacks.with_room(threading.get_ident)
        return stacks.thread_size(), other != thread, stacks.left()

    small, is_other, left = in_a_thread(1 << 16, ask)
    assert sizes == [stacks.SIZE]
    assert (small, is_other) == (1 << 16, True)
    assert 0 < left < 1 << 16
    large, is_other, left = in_a_thread(1 << 20, ask)
    assert (large, is_other, left) == (1 << 20, False, None)
    assert stacks.with_room(threading.get_ident) == threading.get_ident()


@needs_sizes
def test_what_is_raised_with_room_is_raised_here() -> None:
    def fail() -> None:
        raise KeyError("k")

    def ask() -> str:
        with pytest.raises(KeyError, match="k"):
            stacks.with_room(fail)
        return "done"

    assert in_a_thread(1 << 16, ask) == "done"


@needs_sizes
def test_too_little_stack_is_an_error_before_it_is_a_crash() -> None:
    def nested(depth: int, x: Any) -> Any:
        """Every level is some calls of C deeper."""
        return (
            fg.jit(lambda x: sorted([0], key=lambda _: kept.append(nested(depth - 1, x))) and x)(x)
            if depth
            else x
        )

    kept: list[Any] = []

    def ask() -> str:
        with pytest.raises(StackError) as caught:
            fg.jit(lambda x: nested(500, x))(1.0)
        return str(caught.value)

    said = in_a_thread(1 << 16, ask)
    assert said.startswith("tracing jit(")
    assert " needs 20 KiB of stack, and this thread has " in said
    assert " of 64 KiB left. Call the function once in a thread with more stack " in said
    assert " before that is started); later calls need little.\n" in said
    assert issubclass(StackError, RecursionError)


def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    with pytest.raises(RuntimeError, match="while the interpreter ends"):
        stacks.start(lambda: None)
    assert not stacks._waiting
    monkeypatch.undo()
    if stacks._library() is not None:
        monkeypatch.setattr(stacks, "SIZE", 1)  # less than the system allows is its own default
        done = threading.Event()
        stacks.start(done.set)
        assert done.wait(60)
    monkeypatch.setattr(stacks, "_library", lambda: None)
    done = threading.Event()
    stacks.start(done.set)
    assert done.wait(60)
    assert stacks.left() is None or stacks.left() > 0
