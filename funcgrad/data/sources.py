"""Examples in files, of which only those are read that are asked for.

A source has a length, the number of examples, and gives those of a slice as a pytree of arrays.
Files of NumPy are read at the place where the examples are: neither mapped into memory, where they
would count as used, nor read as a whole. Parquet and Arrow files are read by pyarrow, group by
group. Headers are not to be trusted: nothing is unpickled, and a file has to be as long as it says.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import sys
import zipfile
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from funcgrad.base.imports import load as load_module
from funcgrad.base.pytree import tree_flatten, tree_map
from funcgrad.data.direct import OpenFile, Reader, open_direct
from funcgrad.data.saving import DAMAGE, array_header
from funcgrad.errors import ArgumentError, FileFormatError

MOST_OPEN = 64
"""The most files that a folder keeps open."""

HEADER_BYTES = 1 << 16
"""The most bytes of a header of NumPy."""

ADVISE: Callable[[int, int, int, int], None] | None = getattr(os, "posix_fadvise", None)
"""By which the system is told what is read next; not all have it."""

LOCAL_HEADER = 30
"""Bytes of the header of an entry of an archive, before its name."""


class Source:
    """Examples that are read when they are asked for.

    ``len(source)`` is their number, and ``source[start:stop]`` a pytree of arrays. A subclass has
    these two; nothing else is asked of it.

    Example:
        >>> class Squares(fg.data.Source):
        ...     def __len__(self):
        ...         return 100
        ...     def __getitem__(self, rows):
        ...         return np.arange(100)[rows] ** 2
        >>> next(iter(fg.data.stream(Squares(), 4, lanes=1)))
        array([0, 1, 4, 9])
    """

    def __len__(self) -> int:
        raise NotImplementedError

    def __getitem__(self, rows: slice) -> Any:
        raise NotImplementedError

    def read(self, rows: slice) -> Any:
        """Read examples into arrays that nobody else has: a pytree like ``self[rows]``."""
        return tree_map(np.array, self[rows])

    def expect(self, rows: slice) -> Any:
        """Prefetch examples that are read soon; without effect by default.

        Returns: Anything that has to be kept until they are read. If it is not, nobody wants them.
        """


def read(source: Any, rows: slice) -> Any:
    """Read examples of a source, or of anything that has slices, into new arrays."""
    return source.read(rows) if isinstance(source, Source) else tree_map(np.array, source[rows])


def view(source: Any, rows: slice) -> Any:
    """Read examples for inspection, possibly as views of the source."""
    return tree_map(np.asarray, source[rows])


class _Array(Source):
    """The rows of an array in a file: contiguous, from a position on."""

    def __init__(self, path: Path, reader: Reader | None, start: int, nbytes: int) -> None:
        self.path = path
        self.reader = reader
        self.direct = None if reader is None else open_direct(path)
        self.file = OpenFile(path)
        head = io.BytesIO(self._bytes(start, min(nbytes, HEADER_BYTES)))
        try:
            shape, is_fortran, dtype = array_header(head)
        except ValueError as error:
            raise FileFormatError(f"{path} holds no array of NumPy ({error}).") from None
        if dtype.hasobject:
            raise FileFormatError(f"{path} holds objects of Python, which are not read.")
        if is_fortran and len(shape) > 1:
            raise FileFormatError(
                f"{path} holds an array in Fortran's order, whose rows are not contiguous. Save "
                "np.ascontiguousarray(array)."
            )
        if not shape:
            raise FileFormatError(f"{path} holds a number, which is no array of examples.")
        self.start = start + head.tell()
        if math.prod(shape) * dtype.itemsize > nbytes - head.tell():
            raise FileFormatError(f"{path} is shorter than its header says.")
        self.shape, self.dtype = shape, dtype

    def close(self) -> None:
        """Close the file, which is opened again when something is read; its header is known."""
        self.file.close()
        if self.direct is not None:
            self.direct.file.close()

    def _bytes(self, position: int, nbytes: int) -> bytes:
        if not nbytes:
            return b""
        if self.reader is None or self.direct is None:
            file = self.file.get()
            return os.pread(file.number, nbytes, position)
        # At once, for reads that were begun before would take their time.
        return self.direct.read(self.reader.buffers, position, nbytes).tobytes()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(len(self))
        shape = max(stop - start, 0), *self.shape[1:]
        found = self._direct(*self._span(rows))
        # An array in an archive may begin anywhere.
        if found is not None and found.ctypes.data % self.dtype.alignment == 0:
            return found.view(self.dtype).reshape(shape)
        out = np.empty(shape, self.dtype)
        if found is not None:
            out.reshape(-1).view(np.uint8)[:] = found
        elif out.nbytes:
            _fill(self.path, self.file, out, self._span(rows)[0])
        return out

    def read(self, rows: slice) -> Any:
        return self[rows]

    def expect(self, rows: slice) -> Any:
        position, nbytes = self._span(rows)
        if not nbytes:
            return None
        if self.reader is not None and self.direct is not None:
            return self.reader.begin(self.direct, position, nbytes)
        if ADVISE is not None:
            file = self.file.get()
            ADVISE(file.number, position, nbytes, os.POSIX_FADV_WILLNEED)
        return None

    def _direct(self, position: int, nbytes: int) -> np.ndarray | None:
        """Bytes that are read past the cache, if any are."""
        if self.reader is None or self.direct is None or not nbytes:
            return None
        return self.reader.read(self.direct, position, nbytes)

    def _span(self, rows: slice) -> tuple[int, int]:
        """The first byte of some rows, and how many there are."""
        start, stop, _ = rows.indices(len(self))
        row = math.prod(self.shape[1:]) * self.dtype.itemsize
        return self.start + start * row, max(stop - start, 0) * row


def _fill(path: Path, file: OpenFile, out: np.ndarray, position: int) -> None:
    """Read the bytes of an array."""
    left, opened = out.reshape(-1).view(np.uint8).data, file.get()
    while left:
        n = os.preadv(opened.number, [left], position)
        if not n:
            raise FileFormatError(f"{path} has become shorter while it was read.")
        left, position = left[n:], position + n


def _of_npy(path: Path, reader: Reader | None) -> Source:
    return _Array(path, reader, 0, path.stat().st_size)


class _Archive(Source):
    """The rows of all arrays of an archive, by their names."""

    def __init__(self, path: Path, reader: Reader | None) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        except DAMAGE as error:
            raise FileFormatError(f"{path} is no archive of NumPy ({error}).") from None
        size = path.stat().st_size
        self.arrays: dict[str, _Array] = {}
        with open(path, "rb") as file:
            for entry in sorted(entries, key=lambda entry: entry.filename):
                if entry.compress_type != zipfile.ZIP_STORED:
                    raise FileFormatError(
                        f"{path} is compressed, so that parts of it cannot be read. Write it with "
                        "numpy.savez."
                    )
                if entry.header_offset < 0:
                    raise FileFormatError(f"{path} is no archive of NumPy (parts are missing).")
                file.seek(entry.header_offset)
                head = file.read(LOCAL_HEADER)
                start = entry.header_offset + LOCAL_HEADER
                start += sum(int.from_bytes(head[i : i + 2], "little") for i in (26, 28))
                if start + entry.file_size > size:
                    raise FileFormatError(f"{path} is shorter than its header says.")
                name = entry.filename.removesuffix(".npy")
                self.arrays[name] = _Array(path, reader, start, entry.file_size)
        lengths = {len(array) for array in self.arrays.values()}
        if len(lengths) != 1:
            raise FileFormatError(f"{path} holds arrays of {sorted(lengths)} rows.")

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def __getitem__(self, rows: slice) -> Any:
        return {name: array[rows] for name, array in self.arrays.items()}

    def read(self, rows: slice) -> Any:
        return self[rows]

    def expect(self, rows: slice) -> Any:
        return [array.expect(rows) for array in self.arrays.values()]

    def close(self) -> None:
        """Close the file, as of one array."""
        for array in self.arrays.values():
            array.close()


class _Groups(Source):
    """Rows that come in groups, of which the last one that was read is kept.

    Args:
        lengths: Rows of each group; there is at least one group.
        group: The columns of a group, by their names.
    """

    def __init__(self, lengths: list[int], group: Callable[[int], dict[str, np.ndarray]]) -> None:
        self.group = group
        self.starts = np.cumsum([0, *lengths])
        self.kept: tuple[int, dict[str, np.ndarray]] = -1, {}

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(len(self))
        pieces = []
        for i, low, high in _spans(self.starts, start, stop):
            if self.kept[0] != i:
                self.kept = i, self.group(i)
            pieces.append({name: column[low:high] for name, column in self.kept[1].items()})
        return joined(pieces)


def _of_tables(path: Path, empty: Any, lengths: list[int], table: Callable[[int], Any]) -> Source:
    """The rows of several tables of Arrow; of an empty one, if there are none."""

    def group(i: int) -> dict[str, np.ndarray]:
        with _naming(path):
            found = table(i) if lengths else empty
        return _columns(path, found)

    return _Groups(lengths or [0], group)


def _columns(path: Path, table: Any) -> dict[str, np.ndarray]:
    found = {}
    for name in table.column_names:
        column = table.column(name)
        column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        if column.null_count:
            raise FileFormatError(f"{path}: column {name!r} has missing values.")
        size = getattr(column.type, "list_size", None)
        array = (column if size is None else column.flatten()).to_numpy(zero_copy_only=False)
        if array.dtype.hasobject:
            raise FileFormatError(
                f"{path}: column {name!r} is of type {column.type}, which is no number."
            )
        found[name] = array if size is None else array.reshape(-1, size)
    return found


def _of_parquet(path: Path, reader: Reader | None) -> Source:
    module = load_module("pyarrow.parquet", _needs_pyarrow(path))
    with _naming(path):
        file = module.ParquetFile(path)
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        lengths = [group.num_rows for group in groups]
        empty = file.schema_arrow.empty_table()
    return _of_tables(path, empty, lengths, file.read_row_group)


def _of_arrow(path: Path, reader: Reader | None) -> Source:
    module = load_module("pyarrow", _needs_pyarrow(path))
    with _naming(path):
        file = module.ipc.open_file(module.memory_map(str(path)))
        lengths = [file.get_batch(i).num_rows for i in range(file.num_record_batches)]
        empty = file.schema.empty_table()
    return _of_tables(
        path, empty, lengths, lambda i: module.Table.from_batches([file.get_batch(i)])
    )


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors of pyarrow say which file it was."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (ValueError, OSError, LookupError, NotImplementedError) as error:
        said = str(error).strip()
        raise FileFormatError(
            f"{path} is damaged, or no table of its kind; pyarrow says: {said}"
        ) from None


def _needs_pyarrow(path: Path) -> str:
    return f"{path} is read by pyarrow, which is not installed: pip install pyarrow."


READERS: dict[str, Callable[[Path, Reader | None], Source]] = {
    ".npy": _of_npy,
    ".npz": _Archive,
    ".parquet": _of_parquet,
    ".arrow": _of_arrow,
    ".feather": _of_arrow,
}
"""Readers of files, by the ends of names."""


class _Folder(Source):
    """The rows of several files, one after the other."""

    def __init__(self, paths: list[Path], reader: Reader | None) -> None:
        self.paths = paths
        self.reader = reader
        self.stamps = [_stamp(path) for path in paths]
        self.sources: dict[int, Source] = {}
        self.open: OrderedDict[int, None] = OrderedDict()
        lengths, first = [], None
        for i, path in enumerate(paths):
            source = self._source(i)
            kind = _kind_of(source)
            if first is None:
                first = kind
            elif kind != first:
                _refuse_other(paths[0], first, path, kind)
            lengths.append(len(source))
        self.starts = np.cumsum([0, *lengths])

    def _source(self, i: int) -> Source:
        if _stamp(self.paths[i]) != self.stamps[i]:
            raise FileFormatError(
                f"{self.paths[i]} has changed since data.folder was called. Call it again, and "
                "begin the epoch anew: its batches are others."
            )
        source = self.sources.get(i)
        if source is None:
            source = self.sources[i] = READERS[self.paths[i].suffix](self.paths[i], self.reader)
        self.open[i] = None
        self.open.move_to_end(i)
        if len(self.open) > MOST_OPEN:
            oldest, _ = self.open.popitem(last=False)
            closed = self.sources[oldest]
            if isinstance(closed, _Array | _Archive):
                closed.close()
            else:
                del self.sources[oldest]
        return source

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, rows: slice) -> Any:
        return joined([source[own] for source, own in self._pieces(rows)])

    def read(self, rows: slice) -> Any:
        return joined([source.read(own) for source, own in self._pieces(rows)])

    def expect(self, rows: slice) -> Any:
        return [source.expect(own) for source, own in self._pieces(rows)]

    def _pieces(self, rows: slice) -> Iterator[tuple[Source, slice]]:
        """Files that have some of these rows, and which rows of theirs they are."""
        start, stop, _ = rows.indices(len(self))
        for i, low, high in _spans(self.starts, start, stop):
            yield self._source(i), slice(low, high)


def _stamp(path: Path) -> tuple[int, int, int]:
    """Identity and version of a file: inode, size and time of modification."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _spans(starts: np.ndarray, start: int, stop: int) -> list[tuple[int, int, int]]:
    """Numbers of pieces, and which of their rows are in a range; at least one piece."""
    first = max(min(bisect_right(starts, start), len(starts) - 1) - 1, 0)
    spans = []
    for i in range(first, len(starts) - 1):
        low, high = int(starts[i]), int(starts[i + 1])
        spans.append((i, max(start, low) - low, max(min(stop, high), max(start, low)) - low))
        if high >= stop:
            break
    return spans


def joined(pieces: list[Any]) -> Any:
    """Pytrees of rows, one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    return tree_map(lambda *parts: np.concatenate(parts), *pieces)


def _kind_of(source: Source) -> tuple[Any, list[tuple[Any, ...]]]:
    """Structure of the examples, their dtypes, and their shapes."""
    leaves, treedef = tree_flatten(source[0:0])
    return treedef, [(x.dtype, x.shape[1:]) for x in leaves]


def _refuse_other(first: Path, wanted: Any, path: Path, found: Any) -> NoReturn:
    if wanted[0] != found[0]:
        said = f"holds {found[0]}, and {first} {wanted[0]}"
    else:
        pairs = zip(found[1], wanted[1], strict=True)
        (dtype, shape), (other, others) = next(p for p in pairs if p[0] != p[1])
        said = f"has examples of type {dtype}{list(shape)}, and {first} {other}{list(others)}"
    raise FileFormatError(f"data.folder: {path} {said}. Files of a folder must be alike.")


def folder(
    path: str | os.PathLike[str], pattern: str = "*", *, cached: bool | None = None
) -> Source:
    """Examples in the files of a folder, in the order of their names.

    Args:
        path: The folder.
        pattern: Which files, as of `pathlib.Path.glob`; of these, ``.npy``, ``.npz``, ``.parquet``,
            ``.arrow`` and ``.feather``, of which the last three are read by pyarrow.
        cached: Whether the system keeps what has been read in memory that is free. By default, if
            the files are not larger than half of the memory of the machine: what would not be found
            there the next time is read faster without. Only of ``.npy`` and ``.npz`` files.
    Returns: A source: ``len(source)`` examples, of which ``source[start:stop]`` reads some. They
        are arrays from ``.npy`` files, and dicts of arrays by the names of arrays or columns from
        others. The first axis counts the examples.

    Raises:
        ArgumentError: If there are no such files.
        FileFormatError: If a file is damaged, compressed, not like the first one, or holds anything
            but numbers; or, when it is read, if it has changed in between.
        LibraryError: If pyarrow is needed, and not installed.

    Example:
        >>> import pathlib, tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as path:
        ...     for i in range(3):
        ...         np.save(pathlib.Path(path) / f"{i}.npy", np.arange(4) + 4 * i)
        ...     source = fg.data.folder(path)
        ...     len(source), source[3:6]
        (12, array([3, 4, 5]))
    """
    files = sorted(p for p in Path(path).glob(pattern) if p.suffix in READERS and p.is_file())
    if not files:
        raise ArgumentError(
            f"data.folder: there are no files {pattern} in {os.fspath(path)} that end in "
            f"{', '.join(READERS)}."
        )
    if cached is None:
        cached = sum(p.stat().st_size for p in files) <= _memory() // 2
    return _Folder(files, None if cached else Reader())


def _memory() -> int:
    """Bytes of the memory of the machine; without bound where the system does not say."""
    names = "SC_PHYS_PAGES", "SC_PAGE_SIZE"
    if not set(names) <= set(getattr(os, "sysconf_names", ())):
        return sys.maxsize
    return math.prod(map(os.sysconf, names))


class _OfRay(_Groups):
    """Blocks in Ray's store, which another process that is connected to the same Ray reads, too.

    Args:
        blocks: References to the columns of each block.
        lengths: Rows of each.
    """

    def __init__(self, blocks: list[Any], lengths: list[int]) -> None:
        super().__init__(lengths or [0], self._block)
        self.blocks = blocks
        self.lengths = lengths

    def _block(self, i: int) -> dict[str, np.ndarray]:
        columns: dict[str, np.ndarray] = _ray().get(self.blocks[i]) if self.blocks else {}
        for name, column in columns.items():
            if column.dtype.hasobject:
                raise ArgumentError(
                    f"data.from_ray: column {name!r} holds {type(column[0]).__name__}, which is no "
                    "number, or arrays of several shapes."
                )
        return columns

    def __reduce__(self) -> Any:
        return _received, (_ray().cloudpickle.dumps((self.blocks, self.lengths)),)


def _received(sent: bytes) -> _OfRay:
    ray = _ray()
    if not ray.is_initialized():
        raise ArgumentError(
            "data.from_ray: a source was sent to a process that is not connected to Ray. Connect "
            "it before, by ray.init(address=...), with the address of the process that made the "
            "source: ray.get_runtime_context().gcs_address."
        )
    return _OfRay(*ray.cloudpickle.loads(sent))


def _ray() -> Any:
    return load_module("ray", "data.from_ray needs Ray: pip install 'ray[data]'.")


def from_ray(dataset: Any) -> Source:
    """Examples of a dataset of Ray.

    It is computed once, in Ray's workers. Its blocks stay in Ray's store, which is shared memory
    and, where that is full, the disk. A stream reads the blocks that it needs. The source can be
    pickled, and so sent to processes that are connected to the same Ray.

    Args: dataset: A ``ray.data.Dataset`` whose columns are numbers or arrays of one shape.

    Returns:
        A source: its examples are dicts of arrays by the names of columns, in the order of the
        dataset.
    Raises: ArgumentError: If a column holds anything but numbers.

    Example:
        >>> import ray, numpy as np, funcgrad as fg  # doctest: +SKIP
        >>> source = fg.data.from_ray(ray.data.range(1000))  # doctest: +SKIP
        >>> source[3:6]  # doctest: +SKIP
        {'id': array([3, 4, 5])}
    """
    ray = _ray()
    # Otherwise blocks come in the order in which workers finish them.
    dataset.context.execution_options.preserve_order = True
    blocks = dataset.to_numpy_refs()
    count = ray.remote(lambda columns: len(next(iter(columns.values()), ())))
    return _OfRay(blocks, ray.get([count.remote(block) for block in blocks]))
