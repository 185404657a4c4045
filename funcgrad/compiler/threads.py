"""Large kernels on several threads: a pool whose workers run native code only.

A step that is worth it is split into parts of its outermost loop. The thread that runs the program
offers them in the pool and takes part itself, so that it never waits for a worker to wake up, only
for parts that a worker has begun. One program at a time uses the pool; others meanwhile run their
parts alone. Results do not depend on who ran what.

Workers spin for some microseconds, then sleep in the kernel (a futex): this file therefore does
nothing except on Linux. They are Python threads that call native code once, which never returns,
so no part of Python waits for them, not even when the process ends or forks.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

PARALLEL_SYMBOL = "fg_parallel"
WORKER_SYMBOL = "fg_worker"

PARALLEL_WORDS = ["begin", "end", "pool", "count", "kernel", "part_words"]
"""Meaning of the first words of a parallel step's arguments; then follow those of its parts."""

POOL_WORDS = 64

# Byte offsets in the pool, each in a cache line of its own.
#   0  ticket: number of the job (32 bits), its parts (16), the next part to be taken (16)
#  64  parts that have been run
# 128  whether a program uses the pool
# 192  the job: slots, arguments of the first part, bytes per part, kernel, error, control register
# 256  workers that sleep
# 320  the futex that they sleep on
_COMMON = """
define internal i64 @take(ptr %pool) alwaysinline nounwind {
; The number of a part that the caller has to run now, or -1.
entry:
  br label %look

look:
  %ticket = load atomic i64, ptr %pool seq_cst, align 8
  %next = and i64 %ticket, 65535
  %shifted = lshr i64 %ticket, 16
  %count = and i64 %shifted, 65535
  %some = icmp ult i64 %next, %count
  br i1 %some, label %claim, label %nothing

claim:
  %after = add i64 %ticket, 1
  %pair = cmpxchg ptr %pool, i64 %ticket, i64 %after seq_cst seq_cst
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %taken, label %look

taken:
  ret i64 %next

nothing:
  ret i64 -1
}

define internal void @run_part(ptr %pool, i64 %part) nounwind {
; A part that was taken keeps its job alive until it is counted as done.
entry:
  %job = getelementptr inbounds i8, ptr %pool, i64 192
  %slots = load ptr, ptr %job
  %args.place = getelementptr inbounds i8, ptr %job, i64 8
  %first = load ptr, ptr %args.place
  %bytes.place = getelementptr inbounds i8, ptr %job, i64 16
  %bytes = load i64, ptr %bytes.place
  %kernel.place = getelementptr inbounds i8, ptr %job, i64 24
  %kernel = load ptr, ptr %kernel.place
  %distance = mul nsw i64 %part, %bytes
  %args = getelementptr inbounds i8, ptr %first, i64 %distance
  %code = call i64 %kernel(ptr %slots, ptr %args)
  %failed = icmp ne i64 %code, 0
  br i1 %failed, label %note, label %count

note:
  %error = getelementptr inbounds i8, ptr %pool, i64 224
  store atomic i64 %code, ptr %error seq_cst, align 8
  br label %count

count:
  %done = getelementptr inbounds i8, ptr %pool, i64 64
  %before = atomicrmw add ptr %done, i64 1 seq_cst
  ret void
}

declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
DECLARATIONS
"""

_PARALLEL = """
define i64 @fg_parallel(ptr %slots, ptr %args) nounwind {
entry:
  %control = alloca i32
  %pool.place = getelementptr inbounds i64, ptr %args, i64 2
  %pool = load ptr, ptr %pool.place
  %count.place = getelementptr inbounds i64, ptr %args, i64 3
  %count = load i64, ptr %count.place
  %kernel.place = getelementptr inbounds i64, ptr %args, i64 4
  %kernel = load ptr, ptr %kernel.place
  %words.place = getelementptr inbounds i64, ptr %args, i64 5
  %words = load i64, ptr %words.place
  %first = getelementptr inbounds i64, ptr %args, i64 6
  %bytes = shl i64 %words, 3
  %owner = getelementptr inbounds i8, ptr %pool, i64 128
  %pair = cmpxchg ptr %owner, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %offer, label %alone

alone:
  %i = phi i64 [ 0, %entry ], [ %i.next, %alone.ran ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %alone.run, label %alone.done

alone.run:
  %distance = mul nsw i64 %i, %bytes
  %part.args = getelementptr inbounds i8, ptr %first, i64 %distance
  %code = call i64 %kernel(ptr %slots, ptr %part.args)
  %failed = icmp ne i64 %code, 0
  br i1 %failed, label %alone.failed, label %alone.ran

alone.ran:
  %i.next = add nsw i64 %i, 1
  br label %alone

alone.failed:
  ret i64 %code

alone.done:
  ret i64 0

offer:
  %job = getelementptr inbounds i8, ptr %pool, i64 192
  store ptr %slots, ptr %job
  %job.args = getelementptr inbounds i8, ptr %job, i64 8
  store ptr %first, ptr %job.args
  %job.bytes = getelementptr inbounds i8, ptr %job, i64 16
  store i64 %bytes, ptr %job.bytes
  %job.kernel = getelementptr inbounds i8, ptr %job, i64 24
  store ptr %kernel, ptr %job.kernel
  %error = getelementptr inbounds i8, ptr %pool, i64 224
  store atomic i64 0, ptr %error seq_cst, align 8
READ_MODE
  %job.control = getelementptr inbounds i8, ptr %pool, i64 232
  %control.value = load i32, ptr %control
  store i32 %control.value, ptr %job.control
  %done = getelementptr inbounds i8, ptr %pool, i64 64
  store atomic i64 0, ptr %done seq_cst, align 8
  %old = load atomic i64, ptr %pool seq_cst, align 8
  %old.job = lshr i64 %old, 32
  %new.job = add i64 %old.job, 1
  %new.high = shl i64 %new.job, 32
  %new.count = shl i64 %count, 16
  %new = or i64 %new.high, %new.count
  store atomic i64 %new, ptr %pool seq_cst, align 8
  %sleepers.place = getelementptr inbounds i8, ptr %pool, i64 256
  %sleepers = load atomic i64, ptr %sleepers.place seq_cst, align 8
  %asleep = icmp sgt i64 %sleepers, 0
  br i1 %asleep, label %wake, label %work

wake:
  %futex = getelementptr inbounds i8, ptr %pool, i64 320
  %before = atomicrmw add ptr %futex, i32 1 seq_cst
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %futex, i64 129, i64 2147483647)
  br label %work

work:
  %part = call i64 @take(ptr %pool)
  %none = icmp slt i64 %part, 0
  br i1 %none, label %wait, label %run

run:
  call void @run_part(ptr %pool, i64 %part)
  br label %work

wait:
  %waited = phi i64 [ 0, %work ], [ %waited.next, %pause ], [ %waited.next, %yield ]
  %n.done = load atomic i64, ptr %done seq_cst, align 8
  %all = icmp eq i64 %n.done, %count
  br i1 %all, label %finish, label %again

again:
  %waited.next = add i64 %waited, 1
  %patient = icmp ult i64 %waited, 1000
  br i1 %patient, label %pause, label %yield

pause:
  PAUSE
  br label %wait

yield:
  %yielded = call i32 @sched_yield()
  br label %wait

finish:
  %result = load atomic i64, ptr %error seq_cst, align 8
  store atomic i64 0, ptr %owner seq_cst, align 8
  ret i64 %result
}
"""

_WORKER = """
define i64 @fg_worker(ptr %pool) nounwind {
entry:
  %control = alloca i32
  %sleepers = getelementptr inbounds i8, ptr %pool, i64 256
  %futex = getelementptr inbounds i8, ptr %pool, i64 320
  br label %look

look:
  %spins = phi i64 [ 0, %entry ], [ 0, %run ], [ %spins.next, %spin ], [ 0, %slept ]
  %part = call i64 @take(ptr %pool)
  %none = icmp slt i64 %part, 0
  br i1 %none, label %idle, label %run

run:
  %job.control = getelementptr inbounds i8, ptr %pool, i64 232
  %control.value = load i32, ptr %job.control
  store i32 %control.value, ptr %control
WRITE_MODE
  call void @run_part(ptr %pool, i64 %part)
  br label %look

idle:
  %tired = icmp ugt i64 %spins, SPINS
  br i1 %tired, label %sleep, label %spin

spin:
  %spins.next = add i64 %spins, 1
  PAUSE
  br label %look

sleep:
  %seen = load atomic i32, ptr %futex seq_cst, align 4
  %before = atomicrmw add ptr %sleepers, i64 1 seq_cst
  %ticket = load atomic i64, ptr %pool seq_cst, align 8
  %next = and i64 %ticket, 65535
  %shifted = lshr i64 %ticket, 16
  %count = and i64 %shifted, 65535
  %some = icmp ult i64 %next, %count
  br i1 %some, label %slept, label %rest

rest:
  %ended = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %futex, i64 128, i32 %seen, ptr null)
  br label %slept

slept:
  %after = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  br label %look
}
"""

_MACHINES = {
    "x86_64": {
        "FUTEX": "202",
        "PAUSE": "call void @llvm.x86.sse2.pause()",
        "READ_MODE": "  call void @llvm.x86.sse.stmxcsr(ptr %control)",
        "WRITE_MODE": "  call void @llvm.x86.sse.ldmxcsr(ptr %control)",
        "DECLARATIONS": "declare void @llvm.x86.sse2.pause()\n"
        "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)",
    },
    "aarch64": {
        "FUTEX": "98",
        "PAUSE": "call void @llvm.aarch64.hint(i32 1)",
        "READ_MODE": "  store i32 0, ptr %control",
        "WRITE_MODE": "",
        "DECLARATIONS": "declare void @llvm.aarch64.hint(i32)",
    },
}

SPINS = 200
"""How often an idle worker looks for work before it sleeps: some 10 microseconds."""

LEAST_WORK = 1 << 18
"""Work (see `codegen.Kernel`) of the smallest part that is worth a thread."""


def is_available() -> bool:
    """Whether this machine can run kernels on several threads."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def assembly(which: str) -> str:
    """The step that offers parts to the pool (`PARALLEL_SYMBOL`), or the worker's loop."""
    text = _COMMON + (_PARALLEL if which == PARALLEL_SYMBOL else _WORKER)
    text = text.replace("SPINS", str(SPINS))
    for name, replacement in _MACHINES[platform.machine()].items():
        text = text.replace(name, replacement)
    return text


def default_threads() -> int:
    """Threads of a program that asks for no number: the cores that this process may use."""
    given = os.environ.get("FUNCGRAD_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


class Pool:
    """The workers of this process.

    Args:
        worker: Address of the worker's loop.
    """

    def __init__(self, worker: int) -> None:
        raw = np.zeros(POOL_WORDS + 8, np.int64)
        self._raw = raw
        self.address = int(raw.ctypes.data) + -int(raw.ctypes.data) % 64
        self._run: Callable[[int], int] = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(worker)
        self._n_workers = 0
        self._lock = threading.Lock()

    def grow(self, n_workers: int) -> None:
        """Start workers until there are so many."""
        with self._lock:
            while self._n_workers < n_workers:
                name = f"funcgrad-worker-{self._n_workers}"
                threading.Thread(
                    target=self._run, args=(self.address,), name=name, daemon=True
                ).start()
                self._n_workers += 1


@cache
def pool(worker: int) -> Pool:
    """The pool, made when the first large kernel is planned."""
    found = Pool(worker)
    if hasattr(os, "register_at_fork"):
        # A child has no workers; programs that were planned before run their parts alone.
        os.register_at_fork(after_in_child=pool.cache_clear)
    return found


def part_ranges(length: int, work: int, threads: int) -> list[tuple[int, int]]:
    """Ranges of an outermost loop that are worth a thread each; one range if it is too small."""
    count = min(2 * threads, work // LEAST_WORK, length, 1024) if threads > 1 else 1
    if count < 2:
        return [(0, length)]
    size = -(-length // count)
    if length >= 64 * count:
        size = -(-size // 64) * 64  # whole vectors, and no cache line in two parts
    return [(a, min(a + size, length)) for a in range(0, length, size)]


__all__: list[Any] = [
    "PARALLEL_SYMBOL",
    "PARALLEL_WORDS",
    "WORKER_SYMBOL",
    "assembly",
    "default_threads",
    "is_available",
    "part_ranges",
    "pool",
]
