"""Pytrees in files: parameters, states of optimisers, keys and counters, without `pickle`.

A file is a ``.npz`` archive, which `numpy.load` opens: an entry ``leaf_0``, ``leaf_1``, ... for
each array, in the order of the leaves, and an entry ``structure`` of bytes, a JSON text. That lists
the containers, every one before its children, and the leaves::

    {"format": "funcgrad.tree", "version": 1,
     "nodes": [["dict", ["b", "w"]], ["leaf"], ["list", 1], ["leaf"]],
     "leaves": [["array"], ["float", "0x1.8p+0"]]}

Nothing in a file is executed, and no class is looked up by a name that a file gives: containers
other than dicts, lists, tuples and ``None`` are made from an example. Entries are not compressed,
so that a small file cannot ask for much memory.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import functools
import io
import json
import math
import os
import stat
import struct
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from funcgrad.base.pytree import PyTreeDef, held_in, keystr, tree_flatten, tree_flatten_with_path
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, FileFormatError, TreeError
from funcgrad.random import key_data, key_impl, wrap_key_data
from funcgrad.random.key_arrays import KEY, KeyArray, KeyDtype

FORMAT = "funcgrad.tree"
VERSION = 1
STRUCTURE = "structure.npy"
CHUNK = 1 << 20

Node = list[Any]
"""Kind of a container, and its keys, fields or number of children; or ``["leaf"]``."""

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""Exceptions that reading an archive raises when bytes of it are wrong."""


# Writing.


def save(path: str | os.PathLike[str], tree: Any) -> None:
    """Write a pytree into a file.

    The file is complete or is not there: it is written under another name in the same folder,
    flushed to the disk, and then takes the place of an older one.

    Args:
        path: Name of the file, which is used as it is. ``.npz`` is the usual ending.
        tree: A pytree of NumPy arrays and scalars of any dtype but object, arrays of random keys,
            Python numbers, strings and ``None``. Keys of dicts must be strings or integers.

    Raises:
        ArgumentError: If the tree holds anything else, with its path in the tree.
        OSError: If the file cannot be written; an older one is still there.

    Example:
        >>> import pathlib, tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "params.npz"
        ...     fg.data.save(path, {"w": np.ones(2), "layers": [3, None]})
        ...     fg.data.load(path)
        {'layers': [3, None], 'w': array([1., 1.])}
    """
    pairs, treedef = tree_flatten_with_path(tree)
    nodes = _nodes_of(treedef)
    described: list[list[Any]] = []
    arrays: dict[str, np.ndarray] = {}
    for i, (at, leaf) in enumerate(pairs):
        described.append(_described(leaf, f"tree{keystr(at)}"))
        if isinstance(leaf, np.ndarray | np.generic):
            arrays[f"leaf_{i}"] = np.asarray(leaf)
        elif isinstance(leaf, KeyArray):
            arrays[f"leaf_{i}"] = key_data(leaf)
    text = json.dumps(
        {"format": FORMAT, "version": VERSION, "nodes": nodes, "leaves": described},
        separators=(",", ":"),
    )
    structure = np.frombuffer(text.encode("ascii"), np.uint8)
    # Through a link to the file that it names, whose place the new one takes.
    with _replacing(Path(os.path.realpath(path))) as file:
        np.savez(file, structure=structure, **arrays)  # type: ignore[arg-type]


def _described(leaf: Any, place: str) -> list[Any]:
    """Description of a leaf in the text: all of it, if it is no array."""
    kind = type(leaf)
    if kind is bool or kind is str:
        return [kind.__name__, leaf]
    if kind is int:
        return ["int", str(leaf) if abs(leaf) < 1 << 63 else hex(leaf)]
    if kind is float:
        return ["float", leaf.hex()]
    if kind is complex:
        return ["complex", leaf.real.hex(), leaf.imag.hex()]
    if isinstance(held_in(leaf), Tracer):
        raise ArgumentError(
            f"data.save: {place} is traced and has no value. Call save outside of the transformed "
            "function, with its results."
        )
    if isinstance(leaf, np.generic) or kind in (np.ndarray, np.memmap):
        dtype = leaf.dtype
        if dtype.hasobject or np.lib.format.descr_to_dtype(_descr(dtype)) != dtype:
            raise ArgumentError(
                f"data.save: {place} has dtype {dtype}, which files of NumPy cannot hold safely. "
                "Convert it to numbers."
            )
        return ["array" if isinstance(leaf, np.ndarray) else "scalar"]
    if isinstance(leaf, KeyArray):
        return ["keys", key_impl(leaf)]
    raise ArgumentError(
        f"data.save: {place} is a {kind.__name__}. Leaves must be NumPy arrays or scalars, numbers "
        "or strings."
    )


def _descr(dtype: np.dtype[Any]) -> Any:
    return np.lib.format.dtype_to_descr(dtype)


def _nodes_of(treedef: PyTreeDef) -> list[Node]:
    """The containers of a structure and its leaves, every one before its children."""
    nodes: list[Node] = []
    pending = [treedef]
    while pending:
        part = pending.pop()
        nodes.append(_node_of(part))
        pending.extend(reversed(part.children()))
    return nodes


def _node_of(treedef: PyTreeDef) -> Node:
    kind = treedef.kind
    if kind is None:
        return ["leaf"]
    if kind is type(None):
        return ["None"]
    if kind is list or kind is tuple:
        return [kind.__name__, len(treedef.children())]
    if kind is dict or kind is collections.OrderedDict:
        keys = list(treedef.meta)
        for key in keys:
            if type(key) is not str and type(key) is not int:
                raise ArgumentError(
                    f"data.save: a dict has the key {key!r}, a {type(key).__name__}. Keys must be "
                    "strings or integers."
                )
        return [kind.__name__, keys]
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and fields is not None:
        return ["namedtuple", kind.__name__, list(fields)]
    return ["class", kind.__name__, len(treedef.children())]


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Any]:
    """A file that takes the place of ``path`` at the end, or is removed after an error."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode_for(path))
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        if isinstance(error, OSError) and error.filename is None:  # of a write, as of a full disk
            error.filename = os.fspath(path)
        raise
    _flush_folder(path.parent)


def _mode_for(path: Path) -> int:
    """The permissions that the file has, or that a new one would get."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _flush_folder(folder: Path) -> None:
    """Make the new name durable, where folders can be flushed at all."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# Reading.


def load(path: str | os.PathLike[str], like: Any = None) -> Any:
    """Read a pytree that `save` has written.

    Args:
        path: The file.
        like: A pytree of the same structure, with leaves of the same shapes and dtypes: such as
            newly made parameters, or what `eval_shape` returns. It is needed for named tuples and
            instances of registered classes, which are made as there; and it is a check.
    Returns: The tree: arrays as arrays, NumPy's scalars as such, numbers of Python as such, all
        exactly as they were. Dicts have their keys sorted.

    Raises:
        OSError: If the file cannot be read.
        FileFormatError: If it was not written by `save`, or is damaged or incomplete, or was
            written by a later version of funcgrad.
        TreeError: If the tree is not like ``like``, with the path where it differs, or needs it.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "state.npz"
        ...     fg.data.save(path, {"epoch": 3, "rates": (0.1, 0.2)})
        ...     fg.data.load(path)
        {'epoch': 3, 'rates': (0.1, 0.2)}
    """
    with open(path, "rb") as file:
        try:
            nodes, leaves = _content(file)
        except _Refusal as refusal:
            raise FileFormatError(f"{os.fspath(path)} {refusal}.") from None
        except (*DAMAGE, OSError) as error:
            # A position before the begin of the file is one that the file itself has named.
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise
            raise FileFormatError(
                f"{os.fspath(path)} is damaged or incomplete, or was not written by "
                f"funcgrad.data.save ({type(error).__name__}: {error})."
            ) from None
    if like is None:
        return _built(nodes, leaves, os.fspath(path))
    return _restored(nodes, leaves, like, os.fspath(path))


class _Refusal(Exception):
    """The file is not what it should be; the message says what it is."""


def _content(file: Any) -> tuple[list[Node], list[Any]]:
    """The nodes and leaves in a file."""
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        if STRUCTURE not in archive.namelist():
            raise _Refusal("is an archive that was not written by funcgrad.data.save")
        header = json.loads(_array(archive, STRUCTURE, size).tobytes().decode("ascii"))
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise _Refusal("is an archive that was not written by funcgrad.data.save")
        if header.get("version") != VERSION:
            raise _Refusal(
                f"has version {header.get('version')!r} of the format; this funcgrad reads version "
                f"{VERSION}. Read it with the version of funcgrad that wrote it, or a later one"
            )
        nodes, described = header["nodes"], header["leaves"]
        leaves = [
            _leaf(kind, values, functools.partial(_array, archive, f"leaf_{i}.npy", size))
            for i, (kind, *values) in enumerate(described)
        ]
        stored = sum(kind in ("array", "scalar", "keys") for kind, *_ in described)
        if len(archive.namelist()) != stored + 1 or _leaves_in(nodes) != len(leaves):
            raise _Refusal("is damaged: its structure does not fit its arrays")
    return nodes, leaves


def _leaf(kind: str, values: Sequence[Any], array: Callable[[], np.ndarray]) -> Any:
    if kind == "array":
        return array()
    if kind == "scalar":
        return array()[()]
    if kind == "keys":
        return wrap_key_data(array(), impl=values[0])
    if kind == "int":
        return int(values[0], 0)
    if kind == "float":
        return float.fromhex(values[0])
    if kind == "complex":
        return complex(*map(float.fromhex, values))
    if kind in ("bool", "str"):
        return values[0]
    raise _Refusal(f"is damaged: there is no kind of leaves {kind!r}")


def _array(archive: zipfile.ZipFile, name: str, size: int) -> np.ndarray:
    """An entry, for which no more memory is taken than the file has bytes."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > size:
        raise _Refusal(f"is not as funcgrad.data.save writes it: {name} is compressed or too large")
    with archive.open(info) as entry:
        start = io.BytesIO(entry.read(min(info.file_size, 1 << 16)))
        shape, is_fortran, dtype = array_header(start)
        count = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or start.tell() + count != info.file_size:
            raise _Refusal(f"is damaged: {name} has not the size that its header says")
        content = bytearray(start.read())
        while part := entry.read(CHUNK):  # Up to the end, where the checksum is compared.
            content += part
    flat = np.frombuffer(content, dtype) if dtype.itemsize else np.empty(math.prod(shape), dtype)
    return flat.reshape(shape, order="F" if is_fortran else "C")


def array_header(start: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether the order is Fortran's, and type of an array in a file of NumPy.

    Raises: ValueError: If the bytes are no header.
    """
    version = np.lib.format.read_magic(start)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    try:
        shape, is_fortran, dtype = read(start)
    except (tokenize.TokenError, RecursionError, MemoryError) as error:  # of Python's own parser
        raise ValueError(f"its header cannot be read: {error}") from None
    if min(shape, default=0) < 0:
        raise ValueError(f"its header has the shape {shape}")
    return shape, is_fortran, dtype


_PLAIN: dict[str, Callable[[Any, list[Any]], Any]] = {
    "None": lambda _, parts: None,
    "list": lambda _, parts: parts,
    "tuple": lambda _, parts: tuple(parts),
    "dict": lambda keys, parts: dict(zip(keys, parts, strict=True)),
    "OrderedDict": lambda keys, parts: collections.OrderedDict(zip(keys, parts, strict=True)),
}


def _count(node: Node) -> int:
    """The number of children."""
    if len(node) == 1:
        return 0
    return len(node[-1]) if isinstance(node[-1], list) else node[-1]


def _leaves_in(nodes: Sequence[Node]) -> int:
    """How many leaves there are.

    Raises: _Refusal: If the nodes are no tree.
    """
    missing = 1
    for node in nodes:
        if type(_count(node)) is not int or _count(node) < 0 or missing < 1:
            raise _Refusal("is damaged: its structure is no tree")
        missing += _count(node) - 1
    if missing:
        raise _Refusal("is damaged: its structure is no tree")
    return sum(node == ["leaf"] for node in nodes)


def _built(nodes: Sequence[Node], leaves: Sequence[Any], path: str) -> Any:
    """The tree, made of plain containers."""
    left, done = list(leaves), []
    for node in reversed(nodes):
        if node == ["leaf"]:
            done.append(left.pop())
            continue
        make = _PLAIN.get(node[0])
        if make is None:
            raise TreeError(
                f"{path} holds a {node[1]}, which a file cannot make. Give load a tree of the same "
                "structure: load(path, like=tree)."
            )
        parts = [done.pop() for _ in range(_count(node))]
        done.append(make(node[-1], parts))
    return done[0]


def _restored(nodes: list[Node], leaves: list[Any], like: Any, path: str) -> Any:
    """The tree, made as ``like`` is made."""
    expected, treedef = tree_flatten(like)
    wanted = _nodes_of(treedef)
    if nodes != wanted:
        place, i = _difference(nodes, wanted)
        raise TreeError(
            f"{path} has another structure than like: at {place} it has {_in_words(nodes[i])}, "
            f"like has {_in_words(wanted[i])}."
        )
    places = [place for place, node in _places(nodes) if node == ["leaf"]]
    for i, (place, leaf, other) in enumerate(zip(places, leaves, expected, strict=True)):
        if _are_words(leaf, other):
            leaf = leaves[i] = wrap_key_data(leaf)
        saved, given = _type_of(leaf), _type_of(other)
        if saved != given:
            raise TreeError(f"{path} has {saved} at {place}, but like has {given} there.")
    return treedef.unflatten(leaves)


def _are_words(leaf: Any, other: Any) -> bool:
    """Whether words of keys were saved where there are keys now."""
    is_words = isinstance(leaf, np.ndarray) and leaf.dtype == np.uint32 and leaf.shape[-1:] == (2,)
    return is_words and getattr(other, "dtype", None) is KEY


def _type_of(leaf: Any) -> str:
    if isinstance(leaf, str):
        return "a str"
    if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        dtype = leaf.dtype if isinstance(leaf.dtype, KeyDtype) else np.dtype(leaf.dtype)
        return f"{dtype.name}{list(leaf.shape)}"
    if isinstance(leaf, bool | int | float | complex):
        return f"{aval_of(leaf).dtype.name}[]"
    return f"a {type(leaf).__name__}"


def _places(nodes: Sequence[Node]) -> Iterator[tuple[str, Node]]:
    """Every node with its path, such as ``tree['w'][0]``."""
    pending = ["tree"]
    for node in nodes:
        place = pending.pop()
        yield place, node
        keys = node[-1] if isinstance(node[-1], list) else range(_count(node))
        steps = [f".{key}" if node[0] == "namedtuple" else f"[{key!r}]" for key in keys]
        pending.extend(place + step for step in reversed(steps))


def _difference(nodes: Sequence[Node], wanted: Sequence[Node]) -> tuple[str, int]:
    """First difference of two structures: a path, and the number of the node."""
    rows = enumerate(zip(_places(nodes), wanted, strict=False))
    return next((place, i) for i, ((place, node), other) in rows if node != other)


def _in_words(node: Node) -> str:
    if node == ["leaf"]:
        return "a leaf"
    if node == ["None"]:
        return "None"
    if node[0] in ("namedtuple", "class"):
        return f"a {node[1]} of {node[2]}"
    inside = f"of length {node[1]}" if isinstance(node[1], int) else f"with keys {node[1]}"
    return f"a {node[0]} {inside}"
