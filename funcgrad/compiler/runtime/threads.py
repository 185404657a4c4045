"""Large kernels on several threads: a pool whose workers run native code only.

A step that is worth it is split into more parts than there are threads. The thread that runs the
program offers them in the pool and takes part itself, so that it never waits for a worker to wake
up, only for parts that a worker has begun: a worker without a processor costs one part. Each thread
begins with neighbouring parts, the same ones in each step, so that it finds in its cache what it
wrote or read before; one that has no more takes the last one of another (work stealing). One
program at a time uses the pool; others meanwhile run their parts alone. Results do not depend on
who ran what.

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
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from funcgrad.base import environment
from funcgrad.base.forking import in_children
from funcgrad.compiler import abi
from funcgrad.compiler.loops.builder import SystemProgram, is_other, read_word
from funcgrad.compiler.loops.language import SLOTS, WORDS, Expression, Variable, call, equal, of
from funcgrad.errors import ArgumentError

MOST_THREADS = 256
"""The most threads that take part in a job."""

# Byte offsets in the pool, most of them in cache lines of their own.
_JOB = 0  # number of the job
_DONE = 64  # parts that have been run
_OWNER = 128  # whether a program uses the pool
_SLOTS, _ARGS, _BYTES, _KERNEL = 192, 200, 208, 216  # the job; arguments of its first part, ...
_ERROR, _CONTROL, _THREADS, _COUNT = 224, 232, 240, 248  # ... control register, number of parts
_SLEEPERS = 256  # workers that sleep
_FUTEX = 320  # what they sleep on
_SLEEPER = 384  # what the program sleeps on: 1 where it has to be woken
_RANGES = 448  # for each thread: number of the job (32 bits), end (16) and begin (16) of its parts
_LINE = 64
_POOL_WORDS = (_RANGES + MOST_THREADS * _LINE) // 8

_WAIT, _WAKE = 128, 129  # operations of a futex, of one process
_WAIT_AS, _WAKE_THESE = 137, 138  # the same, of those that sleep with certain bits
_BITS = 32

Words = Mapping[str, Expression]

VARIABLE = "FUNCGRAD_NUM_THREADS"

SPINS = 5000
"""How often a thread that waits looks before it sleeps: about 100 microseconds, in which kernels
between two large ones end (Sapphire Rapids; with 2,000 it was woken for every second product)."""


def is_available() -> bool:
    """Whether this machine can run kernels on several threads."""
    return sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


class _Pool(SystemProgram):
    """Base of the programs of the thread pool: its workers, and the callers of parallel kernels."""

    pool = Variable("pool")

    def see(self, offset: int) -> Variable:
        """Atomic load from the state that all threads share."""
        return self.run("load_shared", self.pool + offset)

    def show(self, offset: Expression | int, value: Expression | float) -> None:
        """Atomic store to the state that all threads share."""
        self.do("store_shared", self.pool + offset, value)

    def get(self, offset: int) -> Expression:
        """Read what nobody changes meanwhile."""
        return read_word(self.pool + offset, 0)

    def stop(self, slots: Expression) -> Variable:
        """The error code with which all that runs is to stop."""
        return self.run("load_shared", slots + 8 * abi.STOP_SLOT)

    def take(self, worker: Expression | int) -> Variable:
        """The number of a part that the caller has to run now, or -1.

        The first worker has number 1, the program 0. The first part of the caller's own range, or
        the last one of another's.
        """
        taken, threads = self.let(-1), self.see(_THREADS)
        with self.when(worker < threads), self.count(worker, worker + threads) as k:
            number = call("select", k < threads, k, k - threads)
            place = self.let(self.pool + _RANGES + number * _LINE)
            with self.repeat(of(True)):
                parts = self.run("load_shared", place)
                begin, end = self.let(parts & 65535), self.let((parts >> 16) & 65535)
                # Parts of a later job have replaced these when they are taken.
                with self.when(~((begin < end) & (worker < self.see(_THREADS)))):
                    self.leave()
                is_own = self.let(equal(k, worker))
                rest = call("select", is_own, parts + 1, parts - (1 << 16))
                with self.when(call("replace_shared", place, parts, rest)):
                    self.change(taken, call("select", is_own, begin, end - 1))
                    self.leave()
            with self.when(taken >= 0):
                self.leave()
        return taken

    def run_part(self, part: Expression) -> None:
        """A part that was taken keeps its job alive until it is counted as done."""
        slots = self.let(self.get(_SLOTS))
        code = self.stop(slots)
        with self.when(equal(code, 0)):
            args = self.get(_ARGS) + part * self.get(_BYTES)
            self.change(code, call("call_address", self.get(_KERNEL), slots, args))
        with self.when(is_other(code, 0)):
            self.show(_ERROR, code)
        parts = self.let(self.get(_COUNT))
        done = self.run("add_shared", self.pool + _DONE, 1)
        with self.when(equal(done + 1, parts)), self.when(is_other(self.see(_SLEEPER), 0)):
            # If the job has ended meanwhile, this wakes the program during its next one: it looks
            # again.
            self.show(_SLEEPER, 0)
            self.do("futex", self.pool + _SLEEPER, _WAKE, 1, 0, 0)


class Parallel(_Pool):
    """The step that offers parts to the pool, and takes part itself: `abi.PARALLEL_WORDS`."""

    def write(self) -> None:
        words = self.given(abi.PARALLEL_WORDS)
        self.assign(self.pool.name, words["pool"])
        first = self.let(WORDS + 8 * len(words))
        nbytes = self.let(words["part_words"] * 8)
        look = self.word(SLOTS, abi.LOOK_SLOT)
        rest_time = self.run("room", 16)
        is_ours = call("replace_shared", self.pool + _OWNER, 0, 1)
        with self.when(~is_ours):  # another program uses the pool
            with self.count(0, words["count"]) as i:
                self.stop_if_failed(self.call(words["kernel"], SLOTS, first + i * nbytes))
                self.stop_if_failed(self.call(look, SLOTS))
            self.give_back(0)
        self._offer(words, first, nbytes)
        with self.when(self.see(_SLEEPERS) > 0):
            self.do("add_shared", self.pool + _FUTEX, 1)
            # Only those that may take part: others would spin in their place.
            others = self.let(words["threads"] - 1)
            those = of((1 << _BITS) - 1) >> call("select", others < _BITS, _BITS - others, 0)
            self.do("futex", self.pool + _FUTEX, _WAKE_THESE, words["count"], 0, those)
        with self.repeat(of(True)):
            part = self.take(0)
            with self.when(part < 0):
                self.leave()
            self.run_part(part)
            self.call(look, SLOTS)
        self._wait(words, look, rest_time)
        found, stop = self.see(_ERROR), self.stop(SLOTS)
        self.put_word(SLOTS, abi.OWNER_SLOT, 0)
        self.show(_OWNER, 0)
        self.give_back(call("select", is_other(stop, 0), stop, found))

    def _offer(self, words: Words, first: Expression, nbytes: Expression) -> None:
        self.put_word(SLOTS, abi.OWNER_SLOT, call("pthread_self"))
        values = {
            _SLOTS: SLOTS,
            _ARGS: first,
            _BYTES: nbytes,
            _KERNEL: words["kernel"],
            _CONTROL: call("read_control"),
            _COUNT: words["count"],
        }
        for offset, value in values.items():
            self.put_word(self.pool + offset, 0, value)
        self.show(_ERROR, 0)
        self.show(_THREADS, words["threads"])
        self.show(_DONE, 0)
        job = self.let((self.get(_JOB) + 1) & ((1 << 31) - 1))
        self.put_word(self.pool + _JOB, 0, job)
        with self.count(0, words["threads"]) as k:
            begin, end = (n * words["count"] // words["threads"] for n in (k, k + 1))
            self.show(_RANGES + k * _LINE, job * (1 << 32) + end * (1 << 16) + begin)

    def _wait(self, words: Words, look: Expression, rest_time: Expression) -> None:
        """Until all parts have been run."""
        waited = self.let(0)
        with self.repeat(is_other(call("load_shared", self.pool + _DONE), words["count"])):
            self.change(waited, waited + 1)
            with self.when(waited < SPINS):
                self.do("pause")
            with self.otherwise():
                self.show(_SLEEPER, 1)
                with self.when(is_other(self.see(_DONE), words["count"])):
                    # Not longer than until the next look.
                    self.put_word(rest_time, 0, 0)
                    self.put_word(rest_time, 1, abi.LOOKS_EVERY)
                    self.do("futex", self.pool + _SLEEPER, _WAIT, 1, rest_time, 0)
                    self.call(look, SLOTS)
        self.show(_SLEEPER, 0)


class Worker(_Pool):
    """The worker's loop: ``int64`` of the pool and of its number, which never returns."""

    facts = SystemProgram.facts_of("pool", "worker")

    def write(self) -> None:
        worker = Variable("worker")
        spins, is_counted, seen = self.let(0), self.let(0), self.let(0)
        place = _BITS - call("select", worker < _BITS, worker, _BITS)
        bit = self.let(of(1 << (_BITS - 1)) >> place)
        with self.repeat(of(True)):
            part = self.take(worker)
            with self.when(part >= 0):
                with self.when(is_other(is_counted, 0)):
                    self.do("add_shared", self.pool + _SLEEPERS, -1)
                    self.change(is_counted, 0)
                self.do("write_control", self.get(_CONTROL))
                self.run_part(part)
                self.change(spins, 0)
            with self.otherwise():
                self.change(spins, spins + 1)
                with self.when(spins <= SPINS):
                    self.do("pause")
                with self.otherwise():
                    with self.when(equal(is_counted, 0)):
                        # Jobs from here on wake it; those from before are seen in one more round.
                        self.change(seen, self.see(_FUTEX))
                        self.do("add_shared", self.pool + _SLEEPERS, 1)
                        self.change(is_counted, 1)
                    with self.otherwise():
                        self.do("futex", self.pool + _FUTEX, _WAIT_AS, seen, 0, bit)
                        self.do("add_shared", self.pool + _SLEEPERS, -1)
                        self.change(is_counted, 0)
                        self.change(spins, 0)


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

    Args: worker: Address of the worker's loop.
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


def is_pool(address: int) -> bool:
    """Whether there is a pool at an address."""
    return any(pool.address == address for pool in _POOLS)


_POOLS: list[Pool] = []
"""All pools: programs know their addresses, also those that a child has from its parent."""
