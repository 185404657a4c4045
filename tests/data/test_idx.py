"""IDX files: what is read, and what is refused, with the file and the position in it."""

from __future__ import annotations

import gzip
import re
import struct
import tracemalloc

import numpy as np
import pytest

from funcgrad import data
from funcgrad.errors import FileFormatError

CODES = {"u1": 8, "i1": 9, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}
SHAPES = [(), (0,), (5,), (2, 3), (2, 0, 3), (1, 2, 3, 4)]


def encoded(array: np.ndarray) -> bytes:
    code = CODES[array.dtype.str[1:]]
    header = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("code", CODES)
def test_every_dtype_and_shape(code, shape, pack, tmp_path):
    rng = np.random.default_rng(0)
    expected = (rng.normal(size=shape) * 100).astype(code) if shape else np.array(7, code)
    path = tmp_path / "array"
    path.write_bytes(pack(encoded(expected)))
    actual = data.read_idx(str(path))
    np.testing.assert_array_equal(actual, expected, strict=True)
    assert actual.dtype.isnative
    assert actual.flags.writeable


GOOD = encoded(np.arange(6, dtype="i2").reshape(2, 3))  # 12 bytes of header, 12 of elements
HUGE = bytes([0, 0, 8, 3]) + struct.pack(">3I", *[2**32 - 1] * 3)
REFUSED = {
    "empty": (b"", 0, "within the header, of which 4 bytes are missing"),
    "another format": (b"\x89PNG\r\n\x1a\n" * 3, 0, "two zero bytes, this one with 89 50"),
    "text": (b"label,pixel\n", 0, "this one with 6c 61"),
    "dtype": (b"\0\0\x0a\1" + b"\0" * 8, 2, "0a stands for no dtype; known are 08 (uint8)"),
    "cut in the header": (
        GOOD[:9],
        9,
        "within the lengths of 2 axes, of which 3 bytes are missing",
    ),
    "too long": (GOOD + b"\0", 24, "the array int16[2, 3] ends, but the file does not"),
    "axes": (b"\0\0\x08\xff" + b"\0" * 1020, 3, "no array has the 255 axes"),
    "hidden by a zero": (
        bytes([0, 0, 8, 4]) + struct.pack(">4I", 0, *[2**32 - 1] * 3),
        3,
        "no array has the 4 axes",
    ),
}


def message(path) -> str:
    with pytest.raises(FileFormatError) as caught:
        data.read_idx(path)
    assert isinstance(caught.value, ValueError)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("is_gzip", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_idx_file_is_refused(name, is_gzip, tmp_path):
    content, position, text = REFUSED[name]
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content) if is_gzip else content)
    found = message(path)
    assert f"at byte {position}" in found
    assert text in found
    assert ("of its decompressed content" in found) == is_gzip


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / "file"
    for end in range(len(GOOD)):
        path.write_bytes(GOOD[:end])
        message(path)
        path.write_bytes(gzip.compress(GOOD[:end]))
        message(path)
    packed = gzip.compress(GOOD)
    for end in range(2, len(packed)):
        path.write_bytes(packed[:end])
        message(path)


def test_damage_of_a_compressed_file_is_seen(tmp_path):
    path, packed = tmp_path / "file", bytearray(gzip.compress(GOOD))
    for place in range(10, len(packed)):
        damaged = packed.copy()
        damaged[place] ^= 0x40
        path.write_bytes(damaged)
        message(path)


def test_a_length_that_the_file_cannot_have_takes_no_memory(tmp_path):
    path = tmp_path / "file"
    tracemalloc.start()
    path.write_bytes(HUGE + b"\0" * 100)
    assert re.search(r"take 79228162458924105\d+ bytes|no array has", message(path))
    path.write_bytes(bytes([0, 0, 8, 1]) + struct.pack(">I", 2**32 - 1) + b"\0" * 100)
    assert "take 4294967295 bytes, but the file has 100 more" in message(path)
    path.write_bytes(gzip.compress(bytes([0, 0, 8, 1]) + struct.pack(">I", 2**32 - 1)))
    assert re.search(r"take 4294967295 bytes, but \d+ compressed bytes cannot hold", message(path))
    assert tracemalloc.get_traced_memory()[1] < 2**21
    tracemalloc.stop()


def test_a_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(GOOD + b"\0" * 2**25))
    tracemalloc.start()
    assert "ends, but the file does not" in message(path)
    assert tracemalloc.get_traced_memory()[1] < 2**21
    tracemalloc.stop()


def test_a_missing_file_is_the_error_of_python(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        data.read_idx(tmp_path / "nothing")


# MNIST.


def write_mnist(folder, **changes) -> None:
    rng = np.random.default_rng(0)
    for name, count in (("train", 5), ("t10k", 3)):
        arrays = {
            f"{name}-images-idx3-ubyte": rng.integers(0, 256, (count, 4, 4), np.uint8),
            f"{name}-labels-idx1-ubyte": rng.integers(0, 10, count, np.uint8),
        }
        for file, array in arrays.items():
            content = encoded(changes.get(file, array))
            if "labels" in file:
                (folder / file).write_bytes(content)
            else:
                (folder / f"{file}.gz").write_bytes(gzip.compress(content))


def test_mnist(tmp_path):
    write_mnist(tmp_path)
    found = data.mnist(tmp_path)
    assert [x.shape for x in found] == [(5, 4, 4), (5,), (3, 4, 4), (3,)]
    assert found.test_labels.dtype == np.uint8


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"train-labels-idx1-ubyte": np.zeros(4, "u1")}, "has 5 images, but .* has 4 labels"),
        (
            {"t10k-images-idx3-ubyte": np.zeros(3, "u1")},
            r"t10k-images-idx3-ubyte.gz should hold .* 3 axes, but it holds uint8\[3\]",
        ),
        ({"train-labels-idx1-ubyte": np.zeros(5, "i4")}, r"but it holds int32\[5\]"),
    ],
)
def test_files_under_wrong_names_are_refused(changes, text, tmp_path):
    write_mnist(tmp_path, **changes)
    with pytest.raises(FileFormatError, match=text):
        data.mnist(tmp_path)


def test_a_missing_part_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither .*train-images-idx3-ubyte nor train"):
        data.mnist(tmp_path)
