"""Checkpoint files of several processes, of replicated values and of sharded arrays.

Replicated values are one file, which rank 0 writes and reads. Sharded arrays are a folder: a
file for each rank, one of everything else, and ``manifest.npz``, which names the folder of these
files and is replaced at last. So there is always one checkpoint that is complete. Each file has
checksums, and the number of the checkpoint that it belongs to.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Hashable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from funcgrad.base.pytree import keystr, tree_flatten_with_path, tree_leaves, tree_unflatten
from funcgrad.data.saving import load as load_file
from funcgrad.data.saving import save as save_file
from funcgrad.distributed.exchange import all_processes
from funcgrad.distributed.flat_shards import AxisOfShards, FlatShard, flatten_shards, is_shard
from funcgrad.errors import ArgumentError, DistributedError, FileFormatError, ShapeError
from funcgrad.higher_order.staging import located

Tree = Any
PathLike = str | os.PathLike[str]

MANIFEST = "manifest.npz"
WHOLE = "whole.npz"


def save(path: PathLike, tree: Tree, axis_name: Hashable = None) -> None:
    """Write a pytree that all processes have.

    Arrays that all have are written by rank 0. If there is a `FlatShard` among the leaves, the path
    is that of a folder, into which every process writes its parts at the same time. An older
    checkpoint of this path stays as it is until the new one is complete, and then goes.

    Args:
        path: As of `funcgrad.data.save`. All processes must see the folder.
        tree: As of `funcgrad.data.save`, and with any `FlatShard`.
        axis_name: The axis along which arrays are divided, as of `flat_shard`. It has to be one of
            all processes.

    Raises:
        DistributedError: In all processes, if one of them could not write its file.
        ArgumentError: If arrays are divided among some of the processes only, or there is a file in
            place of the folder.

    Example:
        >>> import pathlib, tempfile, funcgrad as fg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fg.distributed.save(pathlib.Path(folder) / "state.npz", {"step": 3})
        ...     fg.distributed.load(pathlib.Path(folder) / "state.npz")
        {'step': 3}
    """
    leaves, treedef = flatten_shards(tree)
    if not any(map(is_shard, leaves)):
        _on_main(lambda: save_file(path, tree))
        return
    axis = _axis_of_all(axis_name, "save")
    folder = Path(path)
    number = _on_main(lambda: _new_folder(folder))
    parts = [np.asarray(x.part) for x in leaves if is_shard(x)]
    if any(part.ndim > 1 for part in parts):
        raise located(
            ArgumentError,
            "save: shards of stacked arrays cannot be saved.",
            "Save a FlatShard for each of them: [FlatShard(part, x.shape) for part in x.part].",
        )
    rest = tree_unflatten(treedef, [None if is_shard(x) else x for x in leaves])
    everyone = all_processes()

    def write() -> None:
        own = {"checkpoint": number, "rank": everyone.index, "parts": parts}
        save_file(folder / number / _name_of_part(everyone.index), own)
        if everyone.index == 0:
            save_file(folder / number / WHOLE, {"checkpoint": number, "tree": rest})

    try:
        _on_all(write)
    except Exception:
        if everyone.index == 0:
            shutil.rmtree(folder / number, ignore_errors=True)
        raise
    shapes = [list(x.shape) for x in leaves if is_shard(x)]
    manifest = {"checkpoint": number, "ranks": axis.size, "shapes": shapes}
    _on_main(lambda: _make_current(folder, manifest))


def load(path: PathLike, like: Tree = None, axis_name: Hashable = None) -> Tree:
    """Read what `save` has written, in any number of processes.

    Args:
        path: As of `save`.
        like: As of `funcgrad.data.load`. For a folder it is needed; of each `FlatShard` only the
            shape of the whole array counts.
        axis_name: As of `save`.
    Returns: The pytree. Arrays that were divided are divided among the processes that there are
        now.

    Raises:
        DistributedError: In all processes, if one of them could not read a file.
        ShapeError: If a divided array has another shape than in ``like``.

    Example:
        >>> import pathlib, tempfile, numpy as np, funcgrad as fg
        >>> with tempfile.TemporaryDirectory() as folder, fg.distributed.spmd():
        ...     state = {"step": 3, "w": fg.distributed.flat_shard(np.arange(3.0), least=1)}
        ...     fg.distributed.save(pathlib.Path(folder) / "state", state)
        ...     fg.distributed.load(pathlib.Path(folder) / "state", like=state)
        {'step': 3, 'w': FlatShard([0. 1. 2.], shape=(3,))}
    """
    if not _on_main(lambda: os.path.isdir(path)):
        return _on_main(lambda: load_file(path, like))
    folder = Path(path)
    leaves, treedef = flatten_shards(like)
    if not any(map(is_shard, leaves)):
        raise located(
            ArgumentError,
            f"load: {os.fspath(path)} holds divided arrays.",
            "Pass like=tree, with a FlatShard for each of them.",
        )
    axis = _axis_of_all(axis_name, "load")
    manifest = _on_main(lambda: load_file(folder / MANIFEST))
    number, shapes = manifest["checkpoint"], [tuple(s) for s in manifest["shapes"]]
    _check_shapes(path, like, shapes)
    rest = tree_unflatten(treedef, [None if is_shard(x) else x for x in leaves])
    whole = {"checkpoint": number, "tree": rest}
    read = _on_main(lambda: load_file(folder / number / WHOLE, whole))
    parts = iter(_on_all(lambda: _parts(folder / number, number, manifest["ranks"], shapes, axis)))
    others = iter(tree_leaves(read["tree"]))
    return tree_unflatten(treedef, [next(parts if is_shard(x) else others) for x in leaves])


def _axis_of_all(name: Hashable, what: str) -> AxisOfShards:
    """The axis along which arrays are divided, which has to be one of all processes."""
    axis, n = AxisOfShards(name, 0, what), all_processes().size
    if axis.size != n:
        raise located(
            ArgumentError,
            f"{what}: arrays are divided among {axis.size} of {n} processes.",
            "Put those of other axes of the mesh together before, or write several files.",
        )
    return axis


def _new_folder(folder: Path) -> str:
    """A number for a checkpoint, and the folder for its files; what was left over goes."""
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"save: {folder} is a file, but divided arrays need a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    current = _current(folder)
    for old in folder.iterdir():
        if old.is_dir() and old.name != current:
            shutil.rmtree(old)
    number = secrets.token_hex(8)
    (folder / number).mkdir()
    return number


def _current(folder: Path) -> str | None:
    """The number of the checkpoint that is complete."""
    if not (folder / MANIFEST).exists():
        return None
    return load_file(folder / MANIFEST)["checkpoint"]


def _make_current(folder: Path, manifest: dict[str, Any]) -> None:
    """Let the new checkpoint be the one of its folder."""
    old = _current(folder)
    save_file(folder / MANIFEST, manifest)
    if old is not None:
        shutil.rmtree(folder / old, ignore_errors=True)


def _name_of_part(index: int) -> str:
    return f"part-{index:05d}.npz"


def _check_shapes(path: PathLike, like: Tree, found: list[tuple[int, ...]]) -> None:
    """Raise an error unless there are as many divided arrays, of the same shapes, as in a tree."""
    pairs = tree_flatten_with_path(like, is_leaf=is_shard)[0]
    wanted = [(keystr(at), x.shape) for at, x in pairs if is_shard(x)]
    if len(wanted) != len(found):
        raise located(
            ShapeError,
            f"load: {os.fspath(path)} has {len(found)} divided arrays, like {len(wanted)}.",
            "Which arrays are divided depends on `least` of flat_shard and sharded.",
        )
    for (at, shape), other in zip(wanted, found, strict=True):
        if shape != other:
            raise located(
                ShapeError, f"load: like{at} has shape {shape}, but {other} in {os.fspath(path)}."
            )


def _parts(
    folder: Path, number: str, n: int, shapes: list[tuple[int, ...]], axis: AxisOfShards
) -> list[FlatShard]:
    """The parts of this process of arrays that were divided among ``n`` processes."""
    index = all_processes().index
    files: dict[int, list[np.ndarray]] = {}

    def elements(k: int, start: int, stop: int) -> np.ndarray:
        """Elements of an array, by those of the old parts that they were in."""
        length = -(-prod(shapes[k]) // n)
        pieces = []
        for j in range(start // length, -(-stop // length)):
            if j not in files:
                files[j] = _read_part(folder / _name_of_part(j), number, j)
            low, high = max(start, j * length), min(stop, (j + 1) * length)
            pieces.append(files[j][k][low - j * length : high - j * length])
        return np.concatenate(pieces)

    found = []
    for k, shape in enumerate(shapes):
        length, size = axis.length(shape), prod(shape)
        start = min(index * length, size - 1)
        own = elements(k, start, min(max(start + 1, (index + 1) * length), size))
        part = np.zeros(length, own.dtype)
        kept = own[: max(size - index * length, 0)]
        part[: len(kept)] = kept
        found.append(FlatShard(part, shape))
    return found


def _read_part(path: Path, number: str, index: int) -> list[np.ndarray]:
    file = load_file(path)
    if file.get("checkpoint") != number or file.get("rank") != index:
        raise FileFormatError(f"{path} is not of the checkpoint in whose folder it is.")
    return file["parts"]


def _on_main(function: Callable[[], Any]) -> Any:
    """Compute on rank 0 for all; errors are raised in all."""
    axis = all_processes()
    result, failure, error = None, None, None
    if axis.index == 0:
        result, failure, error = _tried(function)
    result, failure = axis.from_root((result, failure), 0)
    if error is not None:
        raise error
    if failure is not None:
        raise located(DistributedError, f"rank 0 failed: {failure}")
    return result


def _on_all(function: Callable[[], Any]) -> Any:
    """Compute on every rank; if one fails, all do."""
    axis = all_processes()
    result, failure, error = _tried(function)
    failures = [(i, said) for i, said in enumerate(axis.everyones(failure)) if said is not None]
    if error is not None:
        raise error
    if failures:
        raise located(DistributedError, f"rank {failures[0][0]} failed: {failures[0][1]}")
    return result


def _tried(function: Callable[[], Any]) -> tuple[Any, str | None, Exception | None]:
    """Call a function; return its result, or a description of the error and the error itself."""
    try:
        return function(), None, None
    except Exception as error:
        return None, f"{type(error).__name__}: {error}", error
