"""Exchange between computations: share out data and keys, and speak once.

These functions work on concrete values, outside of transformations; within, use the collectives
of `funcgrad.lax`. All processes of the axis call them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from funcgrad.api.vectorization import vmap
from funcgrad.base.pytree import tree_flatten, tree_unflatten
from funcgrad.base.ranks import Ranks
from funcgrad.core.axes import axes_in_scope, named_axis
from funcgrad.distributed.processes import axis_of, world
from funcgrad.errors import ArgumentError, DistributedError, ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.primitives.objects import flatten_held, is_traced, map_values
from funcgrad.random.keys import fold_in

Tree = Any


def rank(axis_name: Hashable = None) -> int:
    """The number of this process, from 0.

    Args: axis_name: The axis along which it is counted; by default the innermost one of processes
            around the call, or all processes.

    Returns:
        A Python int. Within functions that are differentiated or compiled, `lax.axis_index` is
        the same for all ranks to trace.
    Example: fg.distributed.rank() -> 0
    """
    return axis_of_processes(axis_name, "rank").index


def size(axis_name: Hashable = None) -> int:
    """The number of processes.

    Args: axis_name: As of `rank`.
    Returns: A Python int.
    Example: fg.distributed.size() -> 1
    """
    return axis_of_processes(axis_name, "size").size


def is_main() -> bool:
    """Whether this is the process that writes files and shows progress: rank 0 of all.

    Returns: A bool: ``tqdm(..., disable=not is_main())``.
    Example: fg.distributed.is_main() -> True
    """
    return all_processes().index == 0


def echo(*values: Any, **options: Any) -> None:
    """Print on rank 0 of all processes, and nothing on the others.

    Args:
        values: As of `print`.
        options: As of `print`.
    Example: fg.distributed.echo("epoch", 3) -> epoch 3
    """
    if is_main():
        print(*values, **{"flush": True, **options})


def broadcast(tree: Tree, root: int = 0, axis_name: Hashable = None) -> Tree:
    """Broadcast the values of one process to all.

    Args:
        tree: A pytree; that of the root counts.
        root: Number of the process.
        axis_name: As of `rank`.
    Returns: A pytree like that of the root.
    Raises: ArgumentError: If there is no such process.
    Example: fg.distributed.broadcast({"w": 1.0}) -> {'w': 1.0}
    """
    axis = axis_of_processes(axis_name, "broadcast")
    _check_root(root, axis, "broadcast")
    _check_concrete(tree, "broadcast")
    return axis.from_root(tree, root)


def gather(tree: Tree, axis: int = 0, axis_name: Hashable = None) -> Tree:
    """Whole arrays of the parts of all processes: the converse of `shard`.

    Args:
        tree: A pytree of arrays, with the same structure in all processes.
        axis: The axis along which parts follow one another; they may differ in length.
        axis_name: As of `rank`.
    Returns: A pytree like ``tree``, in all processes.
    Raises: DistributedError: If the structures differ.
    Example: fg.distributed.gather(np.arange(3)) -> array([0, 1, 2])
    """
    ranks = axis_of_processes(axis_name, "gather")
    _check_concrete(tree, "gather")
    leaves, treedef = tree_flatten(tree)
    rows = ranks.everyones((str(treedef), leaves))
    if len({row[0] for row in rows}) > 1:
        listed = "\n".join(f"  rank {i:<8} {row[0]}" for i, row in enumerate(rows))
        raise located(DistributedError, "gather: the pytrees of the ranks differ.", listed)
    columns = zip(*(row[1] for row in rows), strict=True)
    return tree_unflatten(treedef, [np.concatenate(parts, axis) for parts in columns])


def scatter(tree: Tree, root: int = 0, axis: int = 0, axis_name: Hashable = None) -> Tree:
    """The part of this process of arrays that one process has.

    Args:
        tree: A pytree of arrays; that of the root counts.
        root: Number of the process.
        axis: The axis that is divided, as by `shard`.
        axis_name: As of `rank`.
    Returns: A pytree like that of the root.

    Raises:
        ArgumentError: If there is no such process.
        ShapeError: If an array does not have the axis.
    Example: fg.distributed.scatter(np.arange(3)) -> array([0, 1, 2])
    """
    return shard(broadcast(tree, root, axis_name), axis, axis_name)


def shard(tree: Tree, axis: int = 0, axis_name: Hashable = None) -> Tree:
    """The part of this process of arrays that all processes have.

    Args:
        tree: A pytree of arrays.
        axis: The axis that is divided: `local_range` says how.
        axis_name: As of `rank`.
    Returns: A pytree like ``tree`` of copies.
    Raises: ShapeError: If an array does not have the axis.
    Example: fg.distributed.shard({"x": np.arange(3)}) -> {'x': array([0, 1, 2])}
    """
    ranks = axis_of_processes(axis_name, "shard")
    _check_concrete(tree, "shard")

    def part(leaf: Any) -> Any:
        array = np.asarray(leaf)
        if not -array.ndim <= axis < array.ndim:
            raise located(ShapeError, f"shard: an array of shape {array.shape} has no axis {axis}.")
        places = _part(array.shape[axis], ranks)
        cut = (*(slice(None) for _ in range(axis % array.ndim)), slice(places.start, places.stop))
        return array[cut].copy()

    return map_values(part, tree)


def local_range(n: int, axis_name: Hashable = None) -> range:
    """The elements of this process among ``n``: neighbours, as many for each as can be.

    Args:
        n: Number of elements.
        axis_name: As of `rank`.
    Returns: A range of their numbers. Together the ranges of all processes are ``range(n)``.
    Example: fg.distributed.local_range(5) -> range(0, 5)
    """
    return _part(n, axis_of_processes(axis_name, "local_range"))


def local_keys(key: Any, n: int, axis_name: Hashable = None) -> Any:
    """Keys of the elements of this process among ``n``, whatever the number of processes.

    Args:
        key: A key of `funcgrad.random`, the same in all processes.
        n: Number of elements in all processes.
        axis_name: As of `rank`.
    Returns: An array of keys: that of element ``i`` is ``fold_in(key, i)``.
    Example: fg.distributed.local_keys(fg.random.key(0), 3).shape -> (3,)
    """
    numbers = np.asarray(local_range(n, axis_name), np.int64)
    return vmap(lambda i: fold_in(key, i))(numbers)


def _part(n: int, axis: Any) -> range:
    return range(n * axis.index // axis.size, n * (axis.index + 1) // axis.size)


def all_processes() -> Any:
    """The axis of all processes."""
    return axis_of("all", world(), False, False)


def axis_of_processes(name: Hashable, operation: str) -> Any:
    """An axis of processes, by its name."""
    if name is not None:
        found, _ = named_axis(name, operation)
        if not isinstance(found, Ranks):
            raise located(ArgumentError, f"{operation}: {name!r} is an axis of vmap.")
        return found
    bound: Sequence[Any] = [axis for axis, _ in axes_in_scope() if isinstance(axis, Ranks)]
    return bound[-1] if bound else all_processes()


def _check_root(root: int, axis: Ranks, operation: str) -> None:
    if not 0 <= root < axis.size:
        raise located(
            ArgumentError, f"{operation}: there is no rank {root} among {axis.size} processes."
        )


def _check_concrete(tree: Tree, operation: str) -> None:
    if any(is_traced(leaf) for leaf in flatten_held(tree)[0]):
        raise located(
            ArgumentError,
            f"{operation} works on concrete values, and this is a traced one.",
            "Within transformed functions use the collectives of funcgrad.lax.",
        )
