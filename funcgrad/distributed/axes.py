"""`spmd` and `mesh`: names of axes for processes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import ExitStack
from functools import update_wrapper
from math import prod
from types import TracebackType
from typing import Any

from funcgrad.base import environment
from funcgrad.base.records import dataclass
from funcgrad.core.axes import axis_scope
from funcgrad.distributed.failing import note_exit
from funcgrad.distributed.processes import Alone, Processes, axis_of, subgroups, world
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.jit import along_processes
from funcgrad.higher_order.staging import located


@dataclass(eq=False)
class Spmd:
    """A function, or a block, in which names stand for axes of processes."""

    function: Callable[..., Any] | None
    lengths: dict[Hashable, int]
    communicator: Any
    deterministic: bool
    check: bool

    def __post_init__(self) -> None:
        self._entered: list[tuple[ExitStack, list[Alone | Processes]]] = []
        if self.function is not None:
            update_wrapper(self, self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.function is None:  # a decorator
            (function,) = args
            return Spmd(function, self.lengths, self.communicator, self.deterministic, self.check)
        with self:
            return self.function(*args, **kwargs)

    def __enter__(self) -> Spmd:
        communicator = world() if self.communicator is None else self.communicator
        names, shape = list(self.lengths), tuple(self.lengths.values())
        groups = [communicator] if len(names) == 1 else subgroups(communicator, shape)
        axes = [
            axis_of(name, group, self.deterministic, self.check)
            for name, group in zip(names, groups, strict=True)
        ]
        stack = ExitStack()
        for axis in axes:
            stack.enter_context(axis_scope(axis, axis.size))
        stack.enter_context(along_processes())
        self._entered.append((stack, axes))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        note_exit(error)
        stack, axes = self._entered.pop()
        stack.close()
        if error is None:
            for axis in axes:
                axis.end()


def spmd(
    f: Callable[..., Any] | None = None,
    axis_name: Hashable = "data",
    comm: Any = None,
    *,
    deterministic: bool = False,
    check: bool | None = None,
) -> Any:
    """Bind the name of an axis to processes: each runs the function on values of its own.

    Inside, the collectives of `funcgrad.lax` along the name combine the values of all processes,
    eagerly, in compiled functions, loops and derivatives, as they combine the examples of
    ``vmap(f, axis_name=...)``. Their derivatives are those under `vmap`: the gradient that a
    process gets is that of the *sum* of the results of all processes with respect to its own
    argument.

    Args:
        f: A function; without it, a context manager (``with spmd(axis_name="data"):``) or a
            decorator.
        axis_name: The name.
        comm: A communicator of mpi4py; by default all processes that MPI started. A program that
            was not started by MPI is one process.
        deterministic: Whether sums are formed pairwise in the order of ranks, the same for every
            machine and, for equal powers of two of parts, every number of ranks. Costs memory for
            the values of all processes.
        check: Whether processes compare, before each collective, what they are about to do, and
            raise `DistributedError` where they differ. By default the variable
            ``FUNCGRAD_CHECK_RANKS`` decides. Costs a message per collective, which are then not
            native.
    Returns: A function like ``f``.
    Raises: LibraryError: If MPI started the process, and mpi4py is missing.

    Example:
        >>> mean = fg.distributed.spmd(lambda x: fg.lax.pmean(x, "data"))
        >>> mean(np.array([1.0, 3.0]))  # of one process
        array([1., 3.])
    """
    if f is not None and not callable(f):
        raise located(ArgumentError, f"spmd: f must be a function, got {f!r}.")
    return Spmd(f, {axis_name: 0}, comm, deterministic, _checks(check))


def mesh(
    axes: Mapping[Hashable, int],
    f: Callable[..., Any] | None = None,
    comm: Any = None,
    *,
    deterministic: bool = False,
    check: bool | None = None,
) -> Any:
    """Bind several names to the axes of a grid of processes, the last one varying fastest.

    Args:
        axes: Names and lengths. One length may be -1: whatever is left of the processes.
        f: As of `spmd`.
        comm: As of `spmd`.
        deterministic: As of `spmd`.
        check: As of `spmd`.
    Returns: As `spmd`.
    Raises: ArgumentError: If there are not as many processes as the grid has.

    Example:
        >>> with fg.distributed.mesh({"data": 1, "model": -1}):
        ...     print(fg.lax.axis_size(("data", "model")))
        1
    """
    total = world() if comm is None else comm
    n = 1 if total is None else total.Get_size()
    lengths = dict(axes)
    known = prod(k for k in lengths.values() if k != -1)
    if list(lengths.values()).count(-1) == 1 and known and n % known == 0:
        lengths = {name: n // known if k == -1 else k for name, k in lengths.items()}
    if not lengths or prod(lengths.values()) != n or min(lengths.values()) < 1:
        raise located(
            ArgumentError,
            f"mesh: {dict(axes)} does not fit {n} process{'es' * (n != 1)}.",
            "The product of the lengths is the number after mpiexec -n; one may be -1.",
        )
    return Spmd(f, lengths, total, deterministic, _checks(check))


def _checks(check: bool | None) -> bool:
    return environment.is_on("FUNCGRAD_CHECK_RANKS") if check is None else check
