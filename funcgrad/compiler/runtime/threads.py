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

from funcgrad.base import environment
from funcgrad.base.forking import in_children
from funcgrad.compiler import abi
from funcgrad.compiler.native.assembly import Code
from funcgrad.compiler.native.control_word import ControlWords, is_x86
from funcgrad.errors import ArgumentError

_POOL_WORDS = 64

# Byte offsets in the pool, most of them in cache lines of their own.
_TICKET = 0  # number of the job (32 bits), its parts (16), the next part to be taken (16)
_DONE = 64  # parts that have been run
_OWNER = 128  # whether a program uses the pool
_SLOTS, _ARGS, _BYTES, _KERNEL = 192, 200, 208, 216  # the job; arguments of its first part, ...
_ERROR, _CONTROL, _THREADS, _COUNT = 224, 232, 240, 248  # ... control register, number of parts
_SLEEPERS = 256  # workers that sleep
_FUTEX = 320  # what they sleep on
_SLEEPER = 384  # what the program sleeps on: 1 where it has to be woken

_WAIT, _WAKE = 128, 129  # operations of a futex, of one process

VARIABLE = "FUNCGRAD_NUM_THREADS"

SPINS = 2000
"""How often a thread that waits looks before it sleeps: less than 100 microseconds."""


def is_available() -> bool:
    """Whether this machine can run kernels on several threads."""
    return sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


@cache
def parallel_code() -> Code:
    """The step that offers parts to the pool, and takes part itself: `abi.PARALLEL_WORDS`."""
    writer = _Pool()
    writer.take()
    writer.run_part()
    writer.parallel()
    return writer.finished()


@cache
def worker_code() -> Code:
    """The worker's loop."""
    writer = _Pool()
    writer.take()
    writer.run_part()
    writer.worker()
    return writer.finished()


class _Pool(ControlWords):
    is_brief = True

    # The pool.

    def _field(self, offset: int) -> str:
        return self.after("%pool", offset)

    def _get(self, offset: int, kind: str = "i64") -> str:
        return self.let(f"load {kind}, ptr {self._field(offset)}")

    def _set(self, value: str, offset: int, kind: str = "i64") -> None:
        self.do(f"store {kind} {value}, ptr {self._field(offset)}")

    def _see(self, offset: int, kind: str = "i64") -> str:
        """Read the state that others may change."""
        align = int(kind[1:]) // 8
        return self.let(f"load atomic {kind}, ptr {self._field(offset)} seq_cst, align {align}")

    def _show(self, value: str, offset: int, kind: str = "i64") -> None:
        """Change what others see."""
        align = int(kind[1:]) // 8
        self.do(f"store atomic {kind} {value}, ptr {self._field(offset)} seq_cst, align {align}")

    def _change(self, operation: str, offset: int, kind: str = "i64") -> str:
        return self.let(f"atomicrmw {operation} ptr {self._field(offset)}, {kind} 1 seq_cst")

    def _stop(self, slots: str) -> str:
        place = self.entry(slots, abi.STOP_SLOT)
        return self.let(f"load atomic i64, ptr {place} monotonic, align 8")

    def _replace(self, place: str, old: str, new: str) -> str:
        """Whether a word was the old one, in whose place is the new one then."""
        pair = self.let(f"cmpxchg ptr {place}, i64 {old}, i64 {new} seq_cst seq_cst")
        return self.let(f"extractvalue {{ i64, i1 }} {pair}, 1")

    def _futex(self, place: str, operation: int, *words: str) -> None:
        self._declared["declare i64 @syscall(i64, ...)"] = None
        number = 202 if is_x86() else 98
        given = ", ".join((f"ptr {place}", f"i64 {operation}", *words))
        self.let(f"call i64 (i64, ...) @syscall(i64 {number}, {given})")

    def _pause(self) -> None:
        if is_x86():
            self.invoke("void", "llvm.x86.sse2.pause")
        else:
            self.invoke("void", "llvm.aarch64.hint", ("i32", 1))

    def _is_open(self, ticket: str) -> tuple[str, str]:
        """The next part, and whether it is one."""
        part = self.let(f"and i64 {ticket}, 65535")
        count = self.let(f"and i64 {self.let(f'lshr i64 {ticket}, 16')}, 65535")
        return part, self.test("ult", part, count)

    def take(self) -> None:
        """The number of a part that the caller has to run now, or -1.

        The first worker has number 1, the program 0.
        """
        with self.function("take", "ptr %pool, i64 %worker", "i64"):
            self.go("look")
            self.start("look")
            ticket, threads = self._see(_TICKET), self._see(_THREADS)
            part, is_open = self._is_open(ticket)
            is_invited = self.test("slt", "%worker", threads)
            with self.when(self.lacks(self.every(is_open, is_invited))):
                self.leave("-1")
            won = self._replace("%pool", ticket, self.let(f"add i64 {ticket}, 1"))
            self.fork(won, "taken", "look")
            self.start("taken")
            self.leave(part)

    def run_part(self) -> None:
        """A part that was taken keeps its job alive until it is counted as done."""
        with self.function("run_part", "ptr %pool, i64 %part"):
            slots, kernel = self._get(_SLOTS, "ptr"), self._get(_KERNEL, "ptr")
            args = self.at(self._get(_ARGS, "ptr"), ("%part", self._get(_BYTES)))
            stop = self._stop(slots)
            self.fork(self.test("ne", stop, 0), "note", "call")
            self.start("call")
            called = self.let(f"call i64 {kernel}(ptr {slots}, ptr {args})")
            self.fork(self.test("ne", called, 0), "note", "count")
            self.start("note")
            self._show(self.phi("i64", {"entry": stop, "call": called}), _ERROR)
            self.go("count")
            self.start("count")
            parts = self._get(_COUNT)
            done = self.let(f"add i64 {self._change('add', _DONE)}, 1")
            with self.when(self.test("eq", done, parts)):
                sleeps = self._see(_SLEEPER, "i32")
                with self.when(self.test("ne", sleeps, 0, "i32")):
                    # If the job has ended meanwhile, this wakes the program during its next one:
                    # it looks again.
                    self._show("0", _SLEEPER, "i32")
                    self._futex(self._field(_SLEEPER), _WAKE, "i64 1")

    # The program.

    def parallel(self) -> None:
        with self.function("fg_parallel", "ptr %slots, ptr %args", "i64"):
            rest_time = self.room("{ i64, i64 }")
            self.do(
                f"%pool = load ptr, ptr {self.entry('%args', abi.PARALLEL_WORDS.index('pool'))}"
            )
            self.name_words([f"{x}.w" for x in abi.PARALLEL_WORDS])
            kernel = self.let("inttoptr i64 %kernel.w to ptr")
            first = self.entry("%args", len(abi.PARALLEL_WORDS))
            nbytes = self.let("shl i64 %part_words.w, 3")
            look = self.word("%slots", abi.LOOK_SLOT, "ptr")
            is_ours = self._replace(self._field(_OWNER), "0", "1")
            with self.when(self.lacks(is_ours)):
                self._run_alone(kernel, first, nbytes, look)
            self._offer(kernel, first, nbytes)
            with self.when(self.test("sgt", self._see(_SLEEPERS), 0)):
                self._change("add", _FUTEX, "i32")
                self._futex(self._field(_FUTEX), _WAKE, "i64 %count.w")
            self.go("work")
            self.start("work")
            part = self.let("call i64 @take(ptr %pool, i64 0)")
            self.fork(self.test("slt", part, 0), "wait", "run")
            self.start("run")
            self.do(f"call void @run_part(ptr %pool, i64 {part})")
            self.let(f"call i64 {look}(ptr %slots)")
            self.go("work")
            self._wait(look, rest_time)
            found, stop = self._see(_ERROR), self._stop("%slots")
            result = self.pick(self.test("ne", stop, 0), stop, found)
            self.put_word("0", "%slots", abi.OWNER_SLOT)
            self._show("0", _OWNER)
            self.leave(result)

    def _run_alone(self, kernel: str, first: str, nbytes: str, look: str) -> None:
        """Another program uses the pool."""
        with self.count("0", "%count.w") as i:
            args = self.at(first, (i, nbytes))
            for call in (f"{kernel}(ptr %slots, ptr {args})", f"{look}(ptr %slots)"):
                code = self.let(f"call i64 {call}")
                with self.when(self.test("ne", code, 0)):
                    self.leave(code)
        self.leave("0")

    def _offer(self, kernel: str, first: str, nbytes: str) -> None:
        self.put_word(self.invoke("i64", "pthread_self"), "%slots", abi.OWNER_SLOT)
        self._set("%slots", _SLOTS, "ptr")
        self._set(first, _ARGS, "ptr")
        self._set(nbytes, _BYTES)
        self._set(kernel, _KERNEL, "ptr")
        self._show("0", _ERROR)
        self._set(self.control(), _CONTROL)
        self._show("%threads.w", _THREADS)
        self._set("%count.w", _COUNT)
        self._show("0", _DONE)
        job = self.let(f"add i64 {self.let(f'lshr i64 {self._see(_TICKET)}, 32')}, 1")
        job = self.let(f"shl i64 {job}, 32")
        count = self.let("shl i64 %count.w, 16")
        self._show(self.let(f"or i64 {job}, {count}"), _TICKET)

    def _wait(self, look: str, rest_time: str) -> None:
        """Until all parts have been run."""
        self.start("wait")
        self.go("look")
        self.start("look")
        self.do("%waited = phi i64 [ 0, %wait ], [ %waited.next, %pause ]")
        self.fork(self._are_all_done(), "finish", "again")
        self.start("again")
        self.do("%waited.next = add i64 %waited, 1")
        self.fork(self.test("ult", "%waited.next", SPINS), "pause", "sleep")
        self.start("pause")
        self._pause()
        self.go("look")
        self.start("sleep")
        self._show("1", _SLEEPER, "i32")
        self.fork(self._are_all_done(), "rise", "rest")
        self.start("rest")  # not longer than until the next look
        self.put_word("0", rest_time)
        self.put_word(str(abi.LOOKS_EVERY), rest_time, 1)
        self._futex(self._field(_SLEEPER), _WAIT, "i32 1", f"ptr {rest_time}")
        self.let(f"call i64 {look}(ptr %slots)")
        self.go("sleep")
        self.start("rise")
        self._show("0", _SLEEPER, "i32")
        self.go("finish")
        self.start("finish")

    def _are_all_done(self) -> str:
        return self.test("eq", self._see(_DONE), "%count.w")

    # The worker.

    def worker(self) -> None:
        with self.function("fg_worker", "ptr %pool, i64 %worker", "i64"):
            self.go("look")
            self.start("look")
            starts = ", ".join(f"[ 0, %{block} ]" for block in ("entry", "run", "slept"))
            self.do(f"%spins = phi i64 {starts}, [ %spins.next, %spin ]")
            part = self.let("call i64 @take(ptr %pool, i64 %worker)")
            self.fork(self.test("slt", part, 0), "idle", "run")
            self.start("run")
            self.set_control(self._get(_CONTROL))
            self.do(f"call void @run_part(ptr %pool, i64 {part})")
            self.go("look")
            self.start("idle")
            self.fork(self.test("ugt", "%spins", SPINS), "sleep", "spin")
            self.start("spin")
            self.do("%spins.next = add i64 %spins, 1")
            self._pause()
            self.go("look")
            self.start("sleep")
            seen = self._see(_FUTEX, "i32")
            self._change("add", _SLEEPERS)
            _, is_open = self._is_open(self._see(_TICKET))
            self.fork(is_open, "slept", "rest")
            self.start("rest")
            self._futex(self._field(_FUTEX), _WAIT, f"i32 {seen}", "ptr null")
            self.go("slept")
            self.start("slept")
            self._change("sub", _SLEEPERS)
            self.go("look")


def default_threads() -> int:
    """Threads of a program that asks for no number: the cores that this process may use.

    Only where threads are available.
    """
    given = environment.text(VARIABLE)
    if given:
        if not (given.isascii() and given.isdigit() and int(given) > 0):
            raise ArgumentError(
                f"{VARIABLE}={given!r} is no number of threads. Give 1 or more, or leave it out."
            )
        return int(given)
    return len(os.sched_getaffinity(0))


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
                number = self._n_workers + 1
                thread = threading.Thread(
                    target=self._run,
                    args=(self.address, number),
                    name=f"funcgrad-worker-{number}",
                    daemon=True,
                )
                try:
                    thread.start()
                except RuntimeError:
                    return  # as the process ends; callers run their parts alone
                self._n_workers = number


@cache
def pool(worker: int) -> Pool:
    """The pool, made when the first large kernel is planned."""
    found = Pool(worker)
    _POOLS.append(found)
    # A child has no workers; programs that were planned before run their parts alone.
    in_children(pool.cache_clear)
    return found


_POOLS: list[Pool] = []
"""All pools: programs know their addresses, also those that a child has from its parent."""
