"""Large kernels on several threads: a pool whose workers run native code only.

A step that is worth it is split into more parts than there are threads. The thread that runs the
program offers them in the pool and takes part itself, so that it never waits for a worker to wake
up, only for parts that a worker has begun: a worker without a processor costs one part. One program
at a time uses the pool; others meanwhile run their parts alone. Results do not depend on who ran
what.

Whoever has to wait spins for some microseconds, then sleeps in the kernel (a futex), so that the
processor is free for the one that is waited for: this file therefore does nothing except on Linux.
Workers are Python threads that call native code once, which never returns, so no part of Python
waits for them, not even when the process ends or forks.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable
from functools import cache

import numpy as np

from funcgrad import environment
from funcgrad.compiler.abi import LOOK_SLOT, LOOKS_EVERY, OWNER_SLOT, STOP_SLOT
from funcgrad.errors import ArgumentError

PARALLEL_SYMBOL = "fg_parallel"
WORKER_SYMBOL = "fg_worker"

_POOL_WORDS = 64

# Byte offsets in the pool, each in a cache line of its own.
#   0  ticket: number of the job (32 bits), its parts (16), the next part to be taken (16)
#  64  parts that have been run
# 128  whether a program uses the pool
# 192  the job: slots, arguments of the first part, bytes per part, kernel, error, control register,
#      number of threads, number of parts
# 256  workers that sleep
# 320  the futex that they sleep on
# 384  the futex that the program sleeps on: 1 where it has to be woken
_COMMON = """
define internal i64 @take(ptr %pool, i64 %worker) alwaysinline nounwind {
; The number of a part that the caller has to run now, or -1. The first worker has number 1, the
; program 0.
entry:
  %threads.place = getelementptr inbounds i8, ptr %pool, i64 240
  br label %look

look:
  %ticket = load atomic i64, ptr %pool seq_cst, align 8
  %threads = load atomic i64, ptr %threads.place seq_cst, align 8
  %next = and i64 %ticket, 65535
  %shifted = lshr i64 %ticket, 16
  %count = and i64 %shifted, 65535
  %open = icmp ult i64 %next, %count
  %invited = icmp slt i64 %worker, %threads
  %some = and i1 %open, %invited
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
  %stop.place = getelementptr inbounds i64, ptr %slots, i64 STOP_SLOT
  %stop = load atomic i64, ptr %stop.place monotonic, align 8
  %stops = icmp ne i64 %stop, 0
  br i1 %stops, label %note, label %call

call:
  %called = call i64 %kernel(ptr %slots, ptr %args)
  %failed = icmp ne i64 %called, 0
  br i1 %failed, label %note, label %count

note:
  %code = phi i64 [ %stop, %entry ], [ %called, %call ]
  %error = getelementptr inbounds i8, ptr %pool, i64 224
  store atomic i64 %code, ptr %error seq_cst, align 8
  br label %count

count:
  %parts.place = getelementptr inbounds i8, ptr %pool, i64 248
  %parts = load i64, ptr %parts.place
  %done = getelementptr inbounds i8, ptr %pool, i64 64
  %before = atomicrmw add ptr %done, i64 1 seq_cst
  %after = add i64 %before, 1
  %last = icmp eq i64 %after, %parts
  br i1 %last, label %look, label %leave

look:
  %sleeper = getelementptr inbounds i8, ptr %pool, i64 384
  %sleeps = load atomic i32, ptr %sleeper seq_cst, align 4
  %asleep = icmp ne i32 %sleeps, 0
  br i1 %asleep, label %wake, label %leave

wake:
  ; If the job has ended meanwhile, this wakes the program during its next one: it looks again.
  store atomic i32 0, ptr %sleeper seq_cst, align 4
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %sleeper, i64 129, i64 1)
  br label %leave

leave:
  ret void
}

declare i64 @syscall(i64, ...)
declare i64 @pthread_self()
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
  %threads.place = getelementptr inbounds i64, ptr %args, i64 6
  %threads = load i64, ptr %threads.place
  %first = getelementptr inbounds i64, ptr %args, i64 7
  %bytes = shl i64 %words, 3
  %look.place = getelementptr inbounds i64, ptr %slots, i64 LOOK_SLOT
  %look.function = load ptr, ptr %look.place
  %owner.slot = getelementptr inbounds i64, ptr %slots, i64 OWNER_SLOT
  %rest.time = alloca { i64, i64 }
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
  br i1 %failed, label %alone.failed, label %alone.look

alone.look:
  %alone.stop = call i64 %look.function(ptr %slots)
  %alone.stops = icmp ne i64 %alone.stop, 0
  br i1 %alone.stops, label %alone.failed, label %alone.ran

alone.ran:
  %i.next = add nsw i64 %i, 1
  br label %alone

alone.failed:
  %alone.code = phi i64 [ %code, %alone.run ], [ %alone.stop, %alone.look ]
  ret i64 %alone.code

alone.done:
  ret i64 0

offer:
  %self = call i64 @pthread_self()
  store i64 %self, ptr %owner.slot
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
  %job.threads = getelementptr inbounds i8, ptr %pool, i64 240
  store atomic i64 %threads, ptr %job.threads seq_cst, align 8
  %job.count = getelementptr inbounds i8, ptr %pool, i64 248
  store i64 %count, ptr %job.count
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
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %futex, i64 129, i64 %count)
  br label %work

work:
  %part = call i64 @take(ptr %pool, i64 0)
  %none = icmp slt i64 %part, 0
  br i1 %none, label %wait, label %run

run:
  call void @run_part(ptr %pool, i64 %part)
  %stop = call i64 %look.function(ptr %slots)
  br label %work

wait:
  %sleeper = getelementptr inbounds i8, ptr %pool, i64 384
  br label %look

look:
  %waited = phi i64 [ 0, %wait ], [ %waited.next, %pause ]
  %n.done = load atomic i64, ptr %done seq_cst, align 8
  %all = icmp eq i64 %n.done, %count
  br i1 %all, label %finish, label %again

again:
  %waited.next = add i64 %waited, 1
  %patient = icmp ult i64 %waited, SPINS
  br i1 %patient, label %pause, label %sleep

pause:
  PAUSE
  br label %look

sleep:
  store atomic i32 1, ptr %sleeper seq_cst, align 4
  %now.done = load atomic i64, ptr %done seq_cst, align 8
  %now.all = icmp eq i64 %now.done, %count
  br i1 %now.all, label %rise, label %rest

rest:
  ; Not longer than until the next look.
  store i64 0, ptr %rest.time
  %rest.ns = getelementptr inbounds i64, ptr %rest.time, i64 1
  store i64 LOOKS_EVERY, ptr %rest.ns
  %ended = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %sleeper, i64 128, i32 1, ptr %rest.time)
  %waited.stop = call i64 %look.function(ptr %slots)
  br label %sleep

rise:
  store atomic i32 0, ptr %sleeper seq_cst, align 4
  br label %finish

finish:
  %found = load atomic i64, ptr %error seq_cst, align 8
  %stop.place = getelementptr inbounds i64, ptr %slots, i64 STOP_SLOT
  %stopped = load atomic i64, ptr %stop.place monotonic, align 8
  %stops = icmp ne i64 %stopped, 0
  %result = select i1 %stops, i64 %stopped, i64 %found
  store i64 0, ptr %owner.slot
  store atomic i64 0, ptr %owner seq_cst, align 8
  ret i64 %result
}
"""

_WORKER = """
define i64 @fg_worker(ptr %pool, i64 %worker) nounwind {
entry:
  %control = alloca i32
  %sleepers = getelementptr inbounds i8, ptr %pool, i64 256
  %futex = getelementptr inbounds i8, ptr %pool, i64 320
  br label %look

look:
  %spins = phi i64 [ 0, %entry ], [ 0, %run ], [ %spins.next, %spin ], [ 0, %slept ]
  %part = call i64 @take(ptr %pool, i64 %worker)
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

VARIABLE = "FUNCGRAD_NUM_THREADS"

SPINS = 2000
"""How often a thread that waits looks before it sleeps: less than 100 microseconds."""


def is_available() -> bool:
    """Whether this machine can run kernels on several threads."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def assembly(which: str) -> str:
    """The step that offers parts to the pool (`PARALLEL_SYMBOL`), or the worker's loop."""
    text = _COMMON + (_PARALLEL if which == PARALLEL_SYMBOL else _WORKER)
    text = text.replace("SPINS", str(SPINS))
    slots = {"STOP_SLOT": STOP_SLOT, "OWNER_SLOT": OWNER_SLOT, "LOOK_SLOT": LOOK_SLOT}
    for name, number in {**slots, "LOOKS_EVERY": LOOKS_EVERY}.items():
        text = text.replace(name, str(number))
    for name, replacement in _MACHINES[platform.machine()].items():
        text = text.replace(name, replacement)
    return text


def default_threads() -> int:
    """Threads of a program that asks for no number: the cores that this process may use."""
    given = environment.text(VARIABLE)
    if given:
        if not (given.isdigit() and int(given) > 0):
            raise ArgumentError(
                f"{VARIABLE}={given!r} is no number of threads. Give 1 or more, or leave it out."
            )
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


class Pool:
    """The workers of this process.

    Args:
        worker: Address of the worker's loop.
    """

    def __init__(self, worker: int) -> None:
        raw = np.zeros(_POOL_WORDS + 8, np.int64)
        self._raw = raw
        self.address = int(raw.ctypes.data) + -int(raw.ctypes.data) % 64
        self._run: Callable[[int, int], int] = ctypes.CFUNCTYPE(
            ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
        )(worker)
        self._n_workers = 0
        self._lock = threading.Lock()

    def grow(self, n_workers: int) -> None:
        """Start workers until there are so many."""
        with self._lock:
            while self._n_workers < n_workers:
                self._n_workers += 1
                threading.Thread(
                    target=self._run,
                    args=(self.address, self._n_workers),
                    name=f"funcgrad-worker-{self._n_workers}",
                    daemon=True,
                ).start()


@cache
def pool(worker: int) -> Pool:
    """The pool, made when the first large kernel is planned."""
    found = Pool(worker)
    _POOLS.append(found)
    if hasattr(os, "register_at_fork"):
        # A child has no workers; programs that were planned before run their parts alone.
        os.register_at_fork(after_in_child=pool.cache_clear)
    return found


_POOLS: list[Pool] = []
"""All pools: programs know their addresses, also those that a child has from its parent."""
