"""Files in the IDX format, in which the MNIST images come: an array, plain or compressed by gzip.

Such a file is a header of big-endian numbers, ``00 00 (dtype) (n) (length) * n``, with one byte for
each of the first four and four bytes for each length, followed by the elements. The header is not
to be trusted: memory is taken only for what the file can hold, and the file must end where it says.
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from funcgrad.errors import FileFormatError

DTYPES: dict[int, np.dtype[Any]] = {
    0x08: np.dtype("u1"),
    0x09: np.dtype("i1"),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}
GZIP = b"\x1f\x8b"
# The shortest code of deflate stands for 258 bytes in two bits.
MOST_PER_COMPRESSED_BYTE = 1032
CHUNK = 1 << 20


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """The array in a file of the IDX format.

    Args: path: The file; if it is compressed by gzip, which its first bytes tell, it is
            decompressed while it is read.
    Returns: An array of uint8, int8, int16, int32, float32 or float64, in the byte order of the
        machine.

    Raises:
        OSError: If the file cannot be read.
        FileFormatError: If it is something else, is damaged, or is shorter or longer than its
            header says: with the name of the file and the position in it.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "labels-idx1-ubyte"
        ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 4]))
        ...     print(fg.data.read_idx(path))
        [5 0 4]
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        is_gzip = file.read(2) == GZIP
        file.seek(0)
        if not is_gzip:
            return _Reader(path, file, size).array()
        with gzip.GzipFile(fileobj=file) as unpacked:
            return _Reader(path, unpacked, size * MOST_PER_COMPRESSED_BYTE, size).array()


class _Reader:
    """One pass over a file; ``size`` is how many bytes it holds at most."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        file: BinaryIO | gzip.GzipFile,
        size: int,
        compressed: int | None = None,
    ) -> None:
        self._path = os.fspath(path)
        self._file = file
        self._size = size
        self._compressed = compressed
        self._position = 0

    def array(self) -> np.ndarray:
        magic = self._read(4, "the header")
        if magic[:2] != b"\0\0":
            self._refuse(
                0, f"an IDX file begins with two zero bytes, this one with {magic[:2].hex(' ')}"
            )
        dtype = DTYPES.get(magic[2])
        if dtype is None:
            known = ", ".join(f"{code:02x} ({d.name})" for code, d in DTYPES.items())
            self._refuse(2, f"{magic[2]:02x} stands for no dtype; known are {known}")
        lengths = self._read(4 * magic[3], f"the lengths of {magic[3]} axes")
        shape = tuple(int(n) for n in np.frombuffer(lengths, ">u4"))
        self._check_shape(shape, dtype)
        count = math.prod(shape) * dtype.itemsize
        what = f"the elements of an array {dtype.name}{list(shape)}"
        self._check_room(count, what)
        content = self._read(count, what)
        end = self._position
        if self._take(1):
            self._refuse(end, f"the array {dtype.name}{list(shape)} ends, but the file does not")
        return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="))

    def _check_shape(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        # NumPy must be able to represent the size, also where an axis of length 0 hides the others.
        total = math.prod(n for n in shape if n) * dtype.itemsize
        if len(shape) > 32 or total >= 1 << 63:
            self._refuse(3, f"no array has the {len(shape)} axes {list(shape)}")

    def _check_room(self, count: int, what: str) -> None:
        if self._position + count <= self._size:
            return
        if self._compressed is None:
            left = f"the file has {self._size - self._position} more"
        else:
            left = f"{self._compressed} compressed bytes cannot hold them"
        self._refuse(self._position, f"{what} take {count} bytes, but {left}")

    def _read(self, count: int, what: str) -> bytearray:
        """The next bytes, in memory that grows with what is there."""
        start, found = self._position, bytearray()
        while len(found) < count:
            part = self._take(min(count - len(found), CHUNK))
            if not part:
                self._refuse(
                    start + len(found),
                    f"the file ends there, within {what}, of which {count - len(found)} bytes are "
                    "missing",
                )
            found += part
        return found

    def _take(self, count: int) -> bytes:
        try:
            part = self._file.read(count)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self._refuse(
                self._position, f"the compressed data is damaged there or cut off ({error})"
            )
        self._position += len(part)
        return part

    def _refuse(self, position: int, reason: str) -> NoReturn:
        unpacked = "" if self._compressed is None else " of its decompressed content"
        raise FileFormatError(
            f"{self._path} is no sound IDX file: at byte {position}{unpacked}, {reason}."
        )


class Mnist(NamedTuple):
    """Images ``(n, rows, columns)`` and labels ``(n,)``, both uint8."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def mnist(folder: str | os.PathLike[str]) -> Mnist:
    """The four files of MNIST, or of a set in the same form, such as Fashion-MNIST.

    Args:
        folder: Where ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``,
            ``t10k-images-idx3-ubyte`` and ``t10k-labels-idx1-ubyte`` are, with or without ``.gz``.
    Returns: Four arrays of uint8.

    Raises:
        FileNotFoundError: If a file is missing.
        FileFormatError: If a file is damaged, or holds something else than its name says.
    """
    parts = []
    for name in ("train", "t10k"):
        images_path, images = _part(Path(folder), f"{name}-images-idx3-ubyte", 3)
        labels_path, labels = _part(Path(folder), f"{name}-labels-idx1-ubyte", 1)
        if len(images) != len(labels):
            raise FileFormatError(
                f"{images_path} has {len(images)} images, but {labels_path} has {len(labels)} "
                "labels."
            )
        parts += [images, labels]
    return Mnist(*parts)


def _part(folder: Path, name: str, ndim: int) -> tuple[Path, np.ndarray]:
    paths = [folder / (name + suffix) for suffix in ("", ".gz")]
    path = next((p for p in paths if p.exists()), None)
    if path is None:
        raise FileNotFoundError(f"there is neither {paths[0]} nor {paths[1].name}.")
    array = read_idx(path)
    if array.ndim != ndim or array.dtype != np.uint8:
        raise FileFormatError(
            f"{path} should hold an array of uint8 with {ndim} axes, but it holds "
            f"{array.dtype.name}{list(array.shape)}."
        )
    return path, array
