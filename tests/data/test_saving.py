"""Saved trees come back as they were; damaged files are refused."""

from __future__ import annotations

import collections
import errno
import json
import math
import os
import re
import stat
import sys
import zipfile
from typing import Any, NamedTuple

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import data
from funcgrad.errors import ArgumentError, FileFormatError, TreeError
from tests.data import registered


class Point(NamedTuple):
    x: Any
    y: Any


class Other(NamedTuple):
    x: Any
    z: Any


DTYPES = [
    *("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"),
    *(">f4", "<U3", "S4", "M8[s]", "m8[ms]", "f4,i2"),
]
PLAIN = {
    "leaf": np.arange(3.0),
    "nested": {"w": [np.ones((2, 3), np.float32), (np.zeros(0),)], "b": None},
    "integers as keys": {3: 1.0, -1: {10: 2}},
    "empty containers": {"a": [], "b": (), "c": {}},
    "nothing": None,
    "numbers": [1, -(2**200), True, False, 0.1, -0.0, math.inf, 1 + 2j, "text ü \ud800", 2**63],
    "scalars": [np.float32(1.5), np.bool_(True), np.complex64(1j), np.int8(-3)],
    "without axes": [np.array(1.5), np.array(True)],
    "ordered": collections.OrderedDict([("b", 1), ("a", np.ones(2))]),
    "key": fg.random.key(3),
    "layouts": [np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(10)[::-3]],
    **{d: [np.arange(4).astype(d), np.zeros((2, 0), d), np.zeros((), d)] for d in DTYPES},
}


def assert_same(actual: Any, expected: Any) -> None:
    """Equal in structure, types, dtypes and bits."""
    pairs, structure = fg.tree.flatten(expected), fg.tree.structure(actual)
    assert structure == pairs[1]
    for a, b in zip(fg.tree.leaves(actual), pairs[0], strict=True):
        assert type(a) is type(b)
        if isinstance(b, np.ndarray | np.generic):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            assert a.tobytes() == b.tobytes()
        else:
            assert repr(a) == repr(b)


@pytest.mark.parametrize("has_example", [False, True], ids=["plain", "like"])
@pytest.mark.parametrize("name", PLAIN)
def test_trees_come_back(name, has_example, tmp_path):
    path = tmp_path / "tree.npz"
    data.save(path, PLAIN[name])
    loaded = data.load(str(path), like=PLAIN[name]) if has_example else data.load(path)
    assert_same(loaded, PLAIN[name])
    for leaf in fg.tree.leaves(loaded):
        if isinstance(leaf, np.ndarray):
            assert leaf.flags.writeable


def test_nan_comes_back(tmp_path):
    data.save(tmp_path / "t", [math.nan, np.array([np.nan, -0.0])])
    number, array = data.load(tmp_path / "t")
    assert math.isnan(number)
    assert np.signbit(array[1])
    assert np.isnan(array[0])


def test_trees_may_be_deep(tmp_path):
    tree: Any = 1.5
    for _ in range(5000):
        tree = [tree]
    data.save(tmp_path / "t", tree)
    loaded = data.load(tmp_path / "t")
    for _ in range(5000):
        (loaded,) = loaded
    assert loaded == 1.5


def test_numpy_opens_the_file(tmp_path):
    data.save(tmp_path / "t.npz", {"w": np.arange(3), "lr": 0.1})
    with np.load(tmp_path / "t.npz", allow_pickle=False) as entries:
        assert sorted(entries) == ["leaf_1", "structure"]
        np.testing.assert_array_equal(entries["leaf_1"], np.arange(3))
        header = json.loads(entries["structure"].tobytes())
    assert header["nodes"] == [["dict", ["lr", "w"]], ["leaf"], ["leaf"]]


def test_states_of_optimisers_come_back_with_an_example(tmp_path):
    params = {"w": np.ones((2, 3), np.float32), "b": np.zeros(3)}
    opt = fg.optim.chain(
        fg.optim.clip(1.0), fg.optim.masked(fg.optim.adam(0.1), {"w": True, "b": False})
    )
    _, state = opt.update(params, opt.init(params), params)
    data.save(tmp_path / "t", (params, state))
    assert_same(data.load(tmp_path / "t", like=(params, opt.init(params))), (params, state))


def test_registered_classes_come_back_with_an_example(tmp_path):
    data.save(tmp_path / "t", registered.Layer(np.ones(2), "relu"))
    loaded = data.load(tmp_path / "t", like=registered.Layer(np.zeros(2), "relu"))
    assert loaded.kind == "relu"
    np.testing.assert_array_equal(loaded.w, np.ones(2))


def test_an_example_may_be_of_shapes_only(tmp_path):
    tree = Point(np.ones((2, 3)), np.float32(3))
    data.save(tmp_path / "t", tree)
    assert_same(data.load(tmp_path / "t", like=fg.eval_shape(lambda t: t, tree)), tree)


@pytest.mark.parametrize(
    ("tree", "like", "text"),
    [
        (Point(1, 2), None, "holds a Point, which a file cannot make. .* load.path, like=tree"),
        (Point(1, 2), Other(1, 2), r"at tree it has a Point of \['x', 'y'\], like has a Other"),
        (
            {"a": [1.0]},
            {"a": [1.0, 2.0]},
            r"at tree\['a'\] it has a list of length 1, like has a l",
        ),
        ({"a": 1.0}, {"b": 1.0}, r"a dict with keys \['a'\], like has a dict with keys \['b'\]"),
        ([1.0, (2.0,)], [1.0, 2.0], r"at tree\[1\] it has a tuple of length 1, like has a leaf"),
        ([Point(None, 1)], [Point(0, 1)], r"at tree\[0\]\.x it has None, like has a leaf"),
        (np.ones(3), np.ones(4), r"float64\[3\] at tree, but like has float64\[4\] there"),
        ({"a": np.ones(3)}, {"a": np.ones(3, "f4")}, r"at tree\['a'\], but like has float32\[3\]"),
        ([1], ["a"], r"int64\[\] at tree\[0\], but like has a str there"),
    ],
)
def test_what_does_not_fit_is_named(tree, like, text, tmp_path):
    data.save(tmp_path / "t", tree)
    with pytest.raises(TreeError, match=text):
        data.load(tmp_path / "t", like=like)


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ([{"f": len}], r"tree\[0\]\['f'\] is a builtin_function_or_method"),
        ({"o": np.array([None])}, r"tree\['o'\] has dtype object"),
        (np.ma.ones(3), "tree is a MaskedArray"),
        ({1.5: 1}, "the key 1.5, a float"),
        ({True: 1}, "the key True, a bool"),
        (b"bytes", "tree is a bytes"),
        (collections.defaultdict(list, a=1), None),
    ],
)
def test_what_cannot_be_saved_is_named(tree, text, tmp_path):
    if text is None:
        data.save(tmp_path / "t", tree)
        with pytest.raises(TreeError, match="holds a defaultdict"):
            data.load(tmp_path / "t")
        return
    with pytest.raises(ArgumentError, match=text):
        data.save(tmp_path / "t", tree)
    assert os.listdir(tmp_path) == []


def test_traced_values_cannot_be_saved(tmp_path):
    with pytest.raises(ArgumentError, match=r"tree\['w'\] is traced and has no value"):
        fg.jit(lambda w: data.save(tmp_path / "t", {"w": w}))(1.0)


# The file.


def test_a_file_is_replaced_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "t"
    data.save(path, [1])

    def broken(*args: Any, **kwargs: Any) -> None:
        args[0].write(b"half")
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(OSError, match=f"disk full: '{re.escape(str(path))}'"):
        data.save(path, [2])
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["t"]
    assert data.load(path) == [1]
    data.save(path, [2])
    assert data.load(path) == [2]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "t", tmp_path / "link"
    mask = os.umask(0o027)
    try:
        data.save(path, [1])
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    link.symlink_to(path)
    data.save(link, [2])
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert data.load(path) == [2]


def test_a_missing_folder_is_the_error_of_python(tmp_path):
    with pytest.raises(FileNotFoundError):
        data.save(tmp_path / "no" / "t", [1])
    with pytest.raises(FileNotFoundError):
        data.load(tmp_path / "t")


TREE = {"w": np.arange(20.0), "b": [np.float32(2.5), 3, None], "s": "text"}


def refusal(path) -> str:
    with pytest.raises(FileFormatError) as caught:
        data.load(path)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / "t"
    data.save(path, TREE)
    content = path.read_bytes()
    for end in range(0, len(content), 7):
        path.write_bytes(content[:end])
        assert "damaged or incomplete" in refusal(path)


def test_a_changed_byte_is_refused_or_does_not_matter(tmp_path):
    path = tmp_path / "t"
    data.save(path, TREE)
    content = path.read_bytes()
    refused = 0
    for place in range(0, len(content), 2):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x15]) + content[place + 1 :])
        try:
            assert_same(data.load(path), TREE)
        except FileFormatError:
            refused += 1
    assert refused > 0.4 * len(content)


def rewritten(path, change, **arguments: Any) -> None:
    """The file with its structure changed, and a sound checksum."""
    with np.load(path) as entries:
        arrays = dict(entries)
    header = json.loads(arrays.pop("structure").tobytes())
    change(header, arrays)
    text = json.dumps(header).encode()
    save = arguments.get("save", np.savez)
    with open(path, "wb") as file:
        save(file, structure=np.frombuffer(text, np.uint8), **arrays)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda h, a: h.update(version=2), "has version 2 of the format; this funcgrad reads"),
        (lambda h, a: h.update(format="x"), "was not written by funcgrad.data.save"),
        (lambda h, a: a.pop("leaf_3"), "damaged"),
        (lambda h, a: a.update(leaf_9=np.ones(1)), "does not fit its arrays"),
        (lambda h, a: h["nodes"].pop(), "its structure is no tree"),
        (lambda h, a: h["nodes"].append(["leaf"]), "its structure is no tree"),
        (lambda h, a: h["nodes"].__setitem__(0, ["dict", -1]), "its structure is no tree"),
        (lambda h, a: h["leaves"].pop(), "damaged"),
        (lambda h, a: h["leaves"].__setitem__(1, ["pickle", "x"]), "no kind of leaves 'pickle'"),
        (lambda h, a: h["leaves"].__setitem__(1, ["int", "x"]), "damaged"),
        (lambda h, a: h.pop("nodes"), "damaged"),
    ],
)
def test_a_wrong_structure_is_refused(change, text, tmp_path):
    path = tmp_path / "t"
    data.save(path, TREE)
    rewritten(path, change)
    assert text in refusal(path)


def test_other_archives_are_refused(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, w=np.ones(3))
    assert "was not written by funcgrad.data.save" in refusal(path)
    path.write_bytes(b"")
    refusal(path)
    data.save(path, TREE)
    rewritten(path, lambda h, a: None, save=np.savez_compressed)
    assert "is compressed or too large" in refusal(path)


def test_an_array_larger_than_its_entry_takes_no_memory(tmp_path):
    path = tmp_path / "t.npz"
    data.save(path, [np.arange(4.0)])
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    huge = entries["leaf_0.npy"].replace(
        b"'shape': (4,), }           ", b"'shape': (40000000000,), } "
    )
    assert len(huge) == len(entries["leaf_0.npy"])
    assert huge != entries["leaf_0.npy"]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, huge if name == "leaf_0.npy" else content)
    assert "leaf_0.npy has not the size that its header says" in refusal(path)
