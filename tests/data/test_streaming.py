"""Sources in files, and batches of them: each example once, for any number of processes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad import data
from funcgrad.data import direct, sources
from funcgrad.errors import ArgumentError, FileFormatError, LibraryError, ShapeError

SHAPES = st.tuples(
    st.integers(0, 300), st.sampled_from([1, 2, 4, 8]), st.integers(1, 5), st.integers(1, 4)
)


@given(SHAPES, st.one_of(st.none(), st.integers(0, 9)), st.integers(0, 4))
def test_streams_of_parts_are_parts_of_streams(shape, seed, start):
    n, lanes, rows, window = shape
    tree = {"x": np.arange(n), "y": np.arange(n)[:, None] * [1, 10]}
    options = {"seed": seed, "lanes": lanes, "window": window}
    size = lanes * rows
    stream = data.stream(tree, size, **options)
    whole = list(stream)
    assert len(whole) == len(stream)
    seen = np.concatenate([b["x"] for b in whole]) if whole else np.zeros(0, int)
    assert len(np.unique(seen)) == len(seen) <= n
    if seed is None:
        np.testing.assert_array_equal(seen, np.arange(n // size * size))
    for batch in whole:
        assert batch["x"].shape == (size,)
        np.testing.assert_array_equal(batch["y"], batch["x"][:, None] * [1, 10])
    for of in {1, lanes, max(lanes // 2, 1)}:
        parts = [
            list(data.stream(tree, size, part=(i, of), start=start, **options)) for i in range(of)
        ]
        joined = [np.concatenate([p["x"] for p in batch]) for batch in zip(*parts, strict=True)]
        assert len(joined) == max(len(whole) - start, 0)
        for found, batch in zip(joined, whole[start:], strict=True):
            np.testing.assert_array_equal(found, batch["x"])


def test_all_examples_come_but_for_a_few_and_in_another_order_each_time():
    n = 10_000
    orders = [np.concatenate(list(data.stream(np.arange(n), 80, seed=s))) for s in range(2)]
    for order in orders:
        assert len(order) > 0.95 * n
        # Places are as far from the sorted ones as of a random order, to a tenth.
        assert abs(np.abs(order - np.arange(len(order))).mean() / (n / 3) - 1) < 0.1
    assert np.mean(orders[0][:9000] == orders[1][:9000]) < 0.01
    again = np.concatenate(list(data.stream(np.arange(n), 80, seed=fg.random.key(1))))
    np.testing.assert_array_equal(again, orders[1])


def written(folder, kind, lengths):
    """Files with arrays of these lengths, and the whole arrays."""
    n = sum(lengths)
    x, y = np.arange(3.0 * n, dtype=np.float32).reshape(n, 3), np.arange(n) % 7
    start = 0
    for i, length in enumerate(lengths):
        rows = slice(start, start + length)
        start += length
        path = folder / f"{i:03d}.{kind}"
        if kind == "npy":
            np.save(path, x[rows])
        elif kind == "npz":
            np.savez(path, x=x[rows], y=y[rows])
        else:
            pyarrow = pytest.importorskip("pyarrow")
            parquet = pytest.importorskip("pyarrow.parquet")
            flat = pyarrow.array(x[rows].reshape(-1))
            table = pyarrow.table(
                {"x": pyarrow.FixedSizeListArray.from_arrays(flat, 3), "y": y[rows]}
            )
            if kind == "parquet":
                parquet.write_table(table, path, row_group_size=4)
            else:
                with pyarrow.ipc.new_file(path, table.schema) as file:
                    file.write_table(table, max_chunksize=4)
    return x if kind == "npy" else {"x": x, "y": y}


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "arrow"])
def test_files_are_read_where_the_examples_are(tmp_path, kind, cached):
    whole = written(tmp_path, kind, [5, 0, 9, 1])
    source = data.folder(tmp_path, cached=cached)
    assert len(source) == 15
    for start, stop in [(0, 15), (0, 0), (4, 6), (5, 5), (5, 14), (13, 15), (14, 99), (3, 2)]:
        found = source[start:stop]
        wanted = fg.tree.map(lambda x, a=start, b=stop: x[a:b], whole)
        for x, y in zip(fg.tree.leaves(found), fg.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype
    batches = list(data.stream({"all": source, "more": np.arange(15)}, 4, lanes=2, seed=0))
    assert sum(len(b["more"]) for b in batches) >= 12
    for batch in batches:
        wanted = fg.tree.map(lambda x, rows=batch["more"]: x[rows], whole)
        for x, y in zip(fg.tree.leaves(batch["all"]), fg.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("cached", [True, False])
def test_more_files_than_may_be_open(tmp_path, cached, monkeypatch):
    whole = written(tmp_path, "npy", [2] * 200)
    source = data.folder(tmp_path, cached=cached)
    monkeypatch.setattr(sources, "array_header", None)  # headers are read once
    for _ in range(2):
        np.testing.assert_array_equal(source[0:400], whole)
    before = len(os.listdir("/proc/self/fd"))
    assert before < 120
    del source
    assert len(os.listdir("/proc/self/fd")) < before - 30


@given(st.integers(1, 300), st.integers(1, 3000), st.randoms())
def test_reads_past_the_cache_are_those_through_it(tmp_path_factory, n, width, rng):
    folder = tmp_path_factory.mktemp("files")
    whole = np.random.default_rng(n).integers(0, 256, (n, width), np.uint8)
    cuts = sorted(rng.randint(0, n) for _ in range(2))
    for i, part in enumerate(np.split(whole, cuts)):
        np.save(folder / f"{i}.npy", part)
    source = data.folder(folder, cached=False)
    kept, found = [], []
    for _ in range(6):
        start = rng.randint(0, n)
        rows = slice(start, rng.randint(start, n))
        if rng.random() < 0.5:
            kept.append(source.expect(rows))  # Some of them more than once, or never read.
        if rng.random() < 0.7:
            found.append((rows, source.read(rows)))
    for rows, x in found:  # No buffer is used again while somebody sees it.
        np.testing.assert_array_equal(x, whole[rows])
        x[:] = 0
    shutil.rmtree(folder)


@pytest.mark.parametrize("seed", [None, 0])
def test_streams_past_the_cache_give_the_same_batches(tmp_path, seed):
    written(tmp_path, "npz", [40, 7, 53])
    streams = [
        data.stream(data.folder(tmp_path, cached=cached), 8, seed=seed) for cached in (True, False)
    ]
    rows = 0
    for a, b in zip(*streams, strict=True):
        for x, y in zip(fg.tree.leaves(a), fg.tree.leaves(b), strict=True):
            np.testing.assert_array_equal(x, y)
            assert y.flags.aligned
            assert y.flags.writeable
        rows += len(a["y"])
    assert rows >= 96


def test_buffers_are_used_again_when_nothing_sees_them():
    buffers = direct.Buffers()
    first = buffers.take(direct.PAGE)
    assert first.ctypes.data % direct.PAGE == 0
    address, view = first.ctypes.data, first[100:200].view(np.int32)
    del first
    assert buffers.take(direct.PAGE).ctypes.data != address
    del view
    assert address in {buffers.take(direct.PAGE).ctypes.data for _ in range(2)}


def test_buffers_of_threads_share_huge_pages_and_no_bytes():
    buffers = direct.Buffers()
    with ThreadPoolExecutor(4) as threads:
        sizes = [direct.PAGE + i % 3 for i in range(4 * direct.PIECES)]
        held = list(threads.map(buffers.take, sizes))
    starts = [x.ctypes.data for x in held]
    assert not any(start % direct.PAGE for start in starts)
    assert any(start % direct.HUGE_PAGE == 0 for start in starts)
    for i, x in enumerate(held):
        x[:] = i
    for i, (x, size) in enumerate(zip(held, sizes, strict=True)):
        assert len(x) == size
        assert (x == i).all()


def test_free_buffers_of_other_sizes_make_room(monkeypatch):
    monkeypatch.setattr(direct, "MOST_FREE", 4 * direct.PAGE)
    buffers = direct.Buffers()
    held = [buffers.take(direct.PAGE) for _ in range(4)]
    held.clear()
    assert buffers.nbytes == 4 * direct.PAGE
    large = buffers.take(3 * direct.PAGE)
    address = large.ctypes.data
    del large
    assert buffers.nbytes == 4 * direct.PAGE
    assert buffers.take(3 * direct.PAGE).ctypes.data == address


def test_a_file_where_reads_past_the_cache_are_not_allowed(tmp_path, monkeypatch):
    whole = written(tmp_path, "npy", [3])
    monkeypatch.setattr(direct.os, "O_DIRECT", 1 << 30, raising=False)  # as on some disks
    monkeypatch.setattr(direct, "DirectFile", lambda path: os.open(path / "no", os.O_RDONLY))
    np.testing.assert_array_equal(data.folder(tmp_path, cached=False)[0:3], whole)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child_reads_with_threads_of_its_own(tmp_path):
    whole = written(tmp_path, "npy", [50, 50])
    source = data.folder(tmp_path, cached=False)
    soon = source.expect(slice(0, 60))
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(source[0:60], whole[:60]) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(source[0:60], whole[:60])
    assert soon is not None


def refused(tmp_path, match, error=FileFormatError):
    with pytest.raises(error, match=match):
        data.folder(tmp_path)


def test_files_that_are_not_sound(tmp_path):
    refused(tmp_path, r"there are no files \* in .* that end in \.npy, \.npz", ArgumentError)
    path = tmp_path / "a.npy"
    np.save(path, np.arange(8.0))
    raw = path.read_bytes()
    path.write_bytes(raw[:-1])
    refused(tmp_path, "a.npy is shorter than its header says")
    path.write_bytes(b"hello")
    refused(tmp_path, "a.npy holds no array of NumPy")
    path.write_bytes(raw.replace(b"'<f8'", b"'|O' "))
    refused(tmp_path, "a.npy holds objects of Python")
    np.save(path, np.ones((4, 3), order="F"))
    refused(tmp_path, "in Fortran's order")
    np.save(path, np.float64(1))
    refused(tmp_path, "which is no array of examples")
    np.save(path, np.arange(8.0))
    np.save(tmp_path / "b.npy", np.arange(8))
    refused(tmp_path, r"b.npy has examples of type int64\[\], and .*a.npy float64\[\]")
    np.savez(tmp_path / "b.npz", x=np.arange(3))
    (tmp_path / "b.npy").unlink()
    refused(tmp_path, "Files of a folder must be alike")
    path.unlink()
    np.savez_compressed(tmp_path / "b.npz", x=np.arange(3))
    refused(tmp_path, "b.npz is compressed.*numpy.savez")
    np.savez(tmp_path / "b.npz", x=np.arange(3), y=np.arange(4))
    refused(tmp_path, r"arrays of \[3, 4\] rows")
    raw = (tmp_path / "b.npz").read_bytes()
    # An entry is before the begin; or needs a later version of the format.
    late = re.sub(rb"PK\x01\x02..(.)", lambda found: found[0][:-1] + b"\xff", raw, flags=re.DOTALL)
    assert late != raw
    for content in (b"PK", raw[:40] + raw[80:], late):
        (tmp_path / "b.npz").write_bytes(content)
        refused(tmp_path, "b.npz is no archive of NumPy")


@pytest.mark.parametrize("cached", [True, False])
def test_headers_that_are_none(tmp_path, cached):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(8.0))
    raw = path.read_bytes()
    for content in (
        b"", raw[:3], raw.replace(b"'descr':", b"'descr':("), raw.replace(b"(8,)", b"(-8,)"),
    ):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"a\.npy holds no array of NumPy"):
            data.folder(tmp_path, cached=cached)
    path.unlink()
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("of/", b"")
        archive.writestr("of/x.npy", raw)
    assert len(data.folder(tmp_path, cached=cached)) == 8
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("y.npy", b"")
    with pytest.raises(FileFormatError, match=r"a\.npz holds no array of NumPy"):
        data.folder(tmp_path, cached=cached)


@pytest.mark.parametrize("cached", [True, False])
def test_a_file_that_becomes_shorter(tmp_path, cached):
    np.save(tmp_path / "a.npy", np.arange(8.0))
    source = data.folder(tmp_path, cached=cached)
    file = source._source(0)
    os.truncate(tmp_path / "a.npy", 150)
    with pytest.raises(FileFormatError, match=r"a\.npy has become shorter while it was read"):
        file[0:8]
    with pytest.raises(FileFormatError, match=r"a\.npy has changed since data.folder was called"):
        source[0:8]


@pytest.mark.parametrize("cached", [True, False])
def test_files_that_change_between_epochs(tmp_path, cached):
    for name in "abc":
        np.save(tmp_path / f"{name}.npy", np.arange(80.0))
    source = data.folder(tmp_path, cached=cached)
    np.testing.assert_array_equal(
        np.concatenate(list(data.stream(source, 40))) % 80, [*range(80)] * 3
    )
    np.save(tmp_path / "b.npy", np.arange(80))  # as long, of another type
    with pytest.raises(FileFormatError, match=r"b\.npy has changed since data.folder was called"):
        list(data.stream(source, 40, seed=1))
    source = data.folder(tmp_path, "[ac].npy", cached=cached)
    (tmp_path / "c.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"c\.npy"):
        list(data.stream(source, 40, seed=1))


class Other(data.Source):
    """Numbers which are not as many, or not like the first ones, after some."""

    def __init__(self, rest):
        self.rest = rest

    def __len__(self):
        return 96

    def __getitem__(self, rows):
        return np.arange(96.0)[rows] if rows.start < 48 else self.rest


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize(
    "rest", [np.arange(5.0), np.zeros((3, 2)), np.arange(3), {"x": np.ones(3)}]
)
def test_examples_that_are_not_like_the_first_ones(rest, seed):
    with pytest.raises(ShapeError, match=r"data.stream: examples \d+ to \d+ "):
        list(data.stream(Other(rest), 8, seed=seed))


def test_tables_of_what_is_no_number(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"x": [1.0, None]}), tmp_path / "a.parquet")
    refused(tmp_path, "column 'x' has missing values")
    parquet.write_table(pyarrow.table({"x": ["a", "b"]}), tmp_path / "a.parquet")
    refused(tmp_path, "column 'x' is of type string, which is no number")
    parquet.write_table(pyarrow.table({"x": [[1.0], [1.0, 2.0]]}), tmp_path / "a.parquet")
    refused(tmp_path, "a.parquet: column 'x' is of type list<.*>, which is no number")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_tables_that_are_not_sound(tmp_path, kind):
    written(tmp_path, kind, [100])
    path = tmp_path / f"000.{kind}"
    raw = path.read_bytes()
    for content in (b"", b"hello", raw[: len(raw) // 2]):
        path.write_bytes(content)
        refused(tmp_path, rf"000.{kind} is damaged, or no table of its kind; pyarrow says: \w")
    path.write_bytes(raw[:8] + b"\xff" * 500 + raw[508:])
    with pytest.raises(FileFormatError, match=rf"000.{kind} is damaged"):
        list(data.stream(data.folder(tmp_path), 8))


def test_tables_without_pyarrow(tmp_path, monkeypatch):
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "a.parquet").write_bytes(b"")
    refused(tmp_path, "a.parquet is read by pyarrow, which is not installed", LibraryError)


def test_numbers_that_do_not_fit():
    x = np.arange(32)
    for options, match in (
        ({"size": 12}, "size=12 must be a multiple of lanes=8"),
        ({"size": 16, "part": (0, 3)}, r"part=\(0, 3\)"),
        ({"size": 16, "part": (2, 2)}, "counted from 0"),
        ({"size": 16, "start": -1}, "start must be at least 0, got -1"),
        ({"size": 0}, "size must be at least 1"),
        ({"size": 8, "seed": 1.5}, "seed must be an integer or a key"),
    ):
        with pytest.raises(ArgumentError, match=match):
            data.stream(x, **options)
    with pytest.raises(ShapeError, match=r"source\['y'\] has 3 examples, but source\['x'\] has 32"):
        data.stream({"x": x, "y": np.arange(3)}, 8)
    with pytest.raises(ShapeError, match="has no axis of examples; it is a float"):
        data.stream(1.5, 8)


RAY = """
    import numpy as np
    import ray
    import ray.data
    from funcgrad import data

    def columns(batch):
        return {"id": batch["id"], "x": np.stack([batch["id"] * 0.5, batch["id"] ** 2.0], 1)}

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
    source = data.from_ray(ray.data.range(500, override_num_blocks=7).map_batches(columns))
    np.testing.assert_array_equal(source[68:75]["id"], np.arange(68, 75))
    whole = list(data.stream(source, 40, seed=3))
    for n in (1, 2, 4):
        parts = [list(data.stream(source, 40, seed=3, part=(i, n))) for i in range(n)]
        for all_parts, batch in zip(zip(*parts), whole):
            for name in batch:
                joined = np.concatenate([part[name] for part in all_parts])
                np.testing.assert_array_equal(joined, batch[name])
    for batch in whole:
        np.testing.assert_array_equal(columns(batch)["x"], batch["x"])
    assert len({i for batch in whole for i in batch["id"]}) == 40 * len(whole) >= 440
    empty = data.from_ray(ray.data.from_items([{"a": "x"}]).limit(0))
    assert len(empty) == 0
    try:
        data.from_ray(ray.data.from_items([{"a": "x"}]))[0:1]
    except data.sources.ArgumentError as error:
        assert "column 'a' holds str, which is no number" in str(error)
"""


@pytest.mark.nightly
def test_a_dataset_of_ray_gives_the_same_batches_to_any_number_of_processes():
    pytest.importorskip("ray")
    subprocess.run([sys.executable, "-c", textwrap.dedent(RAY)], check=True, timeout=300)


READS = """
    import resource, sys
    import numpy as np
    from funcgrad import data
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total = 0
    for batch in data.stream(data.folder(sys.argv[1]), 512, seed=0):
        total += batch.nbytes
    print(total, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_memory_is_that_of_the_windows(tmp_path):
    for i in range(4):
        np.save(tmp_path / f"{i}.npy", np.zeros((20_000, 1024), np.float32))
    code = textwrap.dedent(READS)
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    )
    total, peak = map(int, done.stdout.split())
    assert total > 0.95 * 4 * 20_000 * 4096
    # Eight blocks of a megabyte for each of eight lanes, and batches.
    assert peak < 100e6


class Watched(data.Source):
    """Numbers, and what is expected and read of them."""

    def __init__(self, n):
        self.n = n
        self.said = []

    def __len__(self):
        return self.n

    def __getitem__(self, rows):
        self.said.append(("read", rows.start, rows.stop))
        return np.arange(self.n)[rows]

    def expect(self, rows):
        self.said.append(("expect", rows.start, min(rows.stop, self.n)))


@pytest.mark.parametrize("seed", [None, 4])
def test_what_is_read_has_been_expected_one_window_ahead(seed):
    source = Watched(2_000)
    for _ in data.stream(source, 40, seed=seed, lanes=2, window=3, start=2):
        pass
    expected, ahead, most = set(), 0, 0
    for what, start, stop in source.said:
        rows = set(range(start, stop))
        if what == "read":
            assert rows <= expected
            ahead -= len(rows)
        else:
            ahead += len(rows - expected)
            expected |= rows
            most = max(most, ahead)
    block = data.stream(source, 40, seed=seed, lanes=2, window=3)._block
    assert 0 < most <= (3 if seed is None else 2 * 2 * 3) * block
