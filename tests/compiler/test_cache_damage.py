"""The folder of compiled kernels: damage, strangers, full disks, and processes that share it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.runtime import dependencies, kernel_store, linker
from funcgrad.compiler.runtime import disk_cache as cache
from funcgrad.compiler.runtime.disk_cache import CacheWarning, DiskCache
from funcgrad.errors import CacheError
from funcgrad.higher_order.remembered import forget_all
from tests.fuzz.guards import survives

pytestmark = pytest.mark.lean

KEY = "0123456789abcdef" * 4
FACTS = {"symbol": "f", "abi": 1}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cold folder, used by a process that remembers no kernel but the executor."""
    kernel_store.executor()
    monkeypatch.setattr(kernel_store, "_ADDRESSES", {})
    before = kernel_store.cache_dir()
    kernel_store.set_cache_dir(tmp_path / "kernels")
    yield tmp_path / "kernels"
    kernel_store.set_cache_dir(before)


def loss(x: Any) -> Any:
    return np.cumsum(np.sin(x) * 3.25 + np.tanh(x)) / 1.75


def compile_anew() -> tuple[int, int, int]:
    """Kernels compiled, loaded and found damaged by a process that starts over."""
    kernel_store._ADDRESSES.clear()
    forget_all()
    stats = kernel_store.stats()
    before = (stats.compiled, stats.loaded_from_disk, stats.damaged)
    x = np.linspace(0.0, 1.0, 50)
    np.testing.assert_allclose(fg.jit(loss)(x), loss(x), rtol=1e-14)
    after = (stats.compiled, stats.loaded_from_disk, stats.damaged)
    return after[0] - before[0], after[1] - before[1], after[2] - before[2]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def replace_with_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_with_link(path: Path) -> None:
    other = path.parent.parent / path.name
    path.rename(other)
    path.symlink_to(other)


def replace_with_hard_link(path: Path) -> None:
    os.link(path, path.parent.parent / path.name)


def replace_with_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def extend(more: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes() + more) and None


def rewrite(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    return lambda path: path.write_text(json.dumps(change(json.loads(path.read_text()))))


DAMAGES: list[tuple[str, Callable[[Path], None]]] = [
    (".o", cut),
    (".o", empty),
    (".o", garble),
    (".json", cut),
    (".json", empty),
    (".json", lambda path: path.write_bytes(b"\xff\xfe{")),
    (".json", rewrite(lambda facts: [facts])),
    (".json", rewrite(lambda facts: None)),
    (".json", rewrite(lambda facts: {**facts, "cpu": "another"})),
    (".json", rewrite(lambda facts: {**facts, "digest": "0" * 64})),
    (".json", rewrite(lambda facts: {"digest": facts["digest"]})),
    (".json", lambda path: path.write_bytes(b"[" * 100_000)),
    *((suffix, extend(b)) for suffix in (".o", ".json") for b in (b"\0", b" ", b"\n" * 5000)),
    # As large as if nothing were wrong, and with all that was recorded.
    (".json", rewrite(lambda facts: dict(reversed(facts.items())))),
    (".json", lambda path: path.write_text(path.read_text().replace("{", '{"digest": "",', 1))),
    # Whoever could have written it.
    *(
        (suffix, harm)
        for suffix in (".o", ".json")
        for harm in (
            lambda path: path.chmod(0o620),
            lambda path: path.chmod(0o602),
            lambda path: path.chmod(0o666),
            replace_with_link,
            replace_with_hard_link,
            replace_with_pipe,
        )
    ),
]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("number", range(len(DAMAGES)))
def test_damaged_entries_are_compiled_again(folder: Path, number: int) -> None:
    suffix, damage = DAMAGES[number]
    compiled, loaded, _ = compile_anew()
    assert compiled
    assert not loaded
    for path in folder.glob(f"*{suffix}"):
        damage(path)
    assert compile_anew() == (compiled, 0, compiled)
    assert compile_anew() == (0, compiled, 0)


@pytest.mark.parametrize("suffix", [".o", ".json"])
def test_files_of_other_users_are_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    compiled = compile_anew()[0]
    foreign = {path.stat().st_ino for path in folder.glob(f"*{suffix}")}
    fstat = os.fstat

    def fstat_of_theirs(handle: int) -> os.stat_result:
        status = fstat(handle)
        if status.st_ino not in foreign:
            return status
        fields = list(status)
        fields[4] += 1  # st_uid
        return os.stat_result(fields)

    with monkeypatch.context() as there:
        there.setattr(os, "fstat", fstat_of_theirs)
        assert compile_anew() == (compiled, 0, compiled)
    assert compile_anew() == (0, compiled, 0)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("fact", sorted(kernel_store._environment()))
def test_kernels_of_other_surroundings_are_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fact: str
) -> None:
    """Of other processors, versions, sources: under a key of their own, and not under this one."""
    ours = kernel_store._environment()
    compiled = compile_anew()[0]
    monkeypatch.setattr(kernel_store, "_environment", lambda: {**ours, fact: "another"})
    assert compile_anew() == (compiled, 0, 0)
    names = {path.name for path in folder.iterdir()}
    monkeypatch.setattr(kernel_store, "_environment", lambda: ours)
    assert compile_anew() == (0, compiled, 0)
    assert len(names) == 6 * compiled
    for path in folder.glob("*.json"):
        rewrite(lambda facts: {**facts, fact: "another"})(path)
    assert compile_anew() == (compiled, 0, compiled)


def test_what_objects_depend_on_is_recorded() -> None:
    facts = kernel_store._environment()
    assert {"abi", "translator", "llvmlite", "llvm", "python", "cpu"} <= set(facts)


def test_a_link_in_the_place_of_a_new_file_is_not_written_through(tmp_path: Path) -> None:
    store = DiskCache(tmp_path / "kernels")
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for suffix in (".py", ".o", ".json"):
        (store.folder / (KEY + suffix)).symlink_to(precious)
        name = f".new-{os.getpid()}-{threading.get_ident()}-{KEY}{suffix}"
        (store.folder / name).symlink_to(precious)
    store.write(KEY, "text", b"code", FACTS)
    assert store.read(KEY, FACTS) == b"code"
    assert precious.read_text() == "mine"
    assert store.size() == sum(path.lstat().st_size for path in store.folder.iterdir())
    (store.folder / f"{1:064x}.o").symlink_to(precious)
    store.clear()
    assert precious.read_text() == "mine"


def test_missing_parts_are_compiled_again(folder: Path) -> None:
    compiled = compile_anew()[0]
    for suffix in (".o", ".json"):
        for path in folder.glob(f"*{suffix}"):
            path.unlink()
        assert compile_anew() == (compiled, 0, 0)
    for path in folder.glob("*.py"):  # for readers only
        path.unlink()
    assert compile_anew() == (0, compiled, 0)


def test_exchanged_objects_are_noticed(folder: Path) -> None:
    compiled = compile_anew()[0]
    first, second, *_ = sorted(folder.glob("*.o"))
    a, b = first.read_bytes(), second.read_bytes()
    first.write_bytes(b)
    second.write_bytes(a)
    assert compile_anew() == (2, compiled - 2, 2)


def test_a_folder_in_the_place_of_a_file(folder: Path) -> None:
    compiled = compile_anew()[0]
    replace_with_folder(next(folder.glob("*.json")))
    with pytest.warns(CacheWarning, match="is not kept"):
        assert compile_anew() == (1, compiled - 1, 1)


def test_a_full_disk_is_a_warning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.warns(CacheWarning, match="No space left") as record:
        compiled, _, _ = compile_anew()
    assert len(record) == 1
    assert compiled > 1
    assert list(folder.iterdir()) == []


def test_the_folder_vanishes(folder: Path) -> None:
    compiled = compile_anew()[0]
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    with pytest.warns(CacheWarning, match="is not kept"):
        assert compile_anew() == (compiled, 0, 0)
    # What only asks about the folder finds nothing in it.
    assert kernel_store.cache_size() == 0
    kernel_store.cache_clear()
    config = fg.show_config("dicts")
    assert config is not None


def test_nothing_is_kept_without_a_folder(folder: Path) -> None:
    kernel_store.set_cache_dir(None)
    compiled = compile_anew()[0]
    assert compile_anew() == (compiled, 0, 0)
    assert not any(folder.iterdir())


# What was found out about the machine.

NOTE = {"abi": 1, "cpu": "znver5", "features": "+avx,-prefer"}


@pytest.mark.parametrize(
    "damage", [damage for suffix, damage in DAMAGES if suffix == ".o" and damage is not garble]
)
def test_damaged_notes_are_forgotten(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    store = DiskCache(tmp_path / "kernels")
    assert store.recall(KEY) is None
    store.note(KEY, NOTE)
    assert store.recall(KEY) == NOTE
    assert store.recall(KEY[::-1]) is None
    damage(store.folder / f"{KEY}.facts")
    assert store.recall(KEY) is None


def test_notes_belong_to_their_key_and_go_with_the_kernels(tmp_path: Path) -> None:
    store = DiskCache(tmp_path / "kernels")
    store.note(KEY, NOTE)
    (store.folder / f"{KEY}.facts").rename(store.folder / f"{KEY[::-1]}.facts")
    assert store.recall(KEY[::-1]) is None
    store.clear()
    assert not any(store.folder.iterdir())


def test_facts_are_asked_for_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    found = kernel_store.machine_facts()
    monkeypatch.setattr(kernel_store, "machine_facts", lambda: asked.append(1) or found)

    def find() -> dict[str, object]:
        """As a process does it once."""
        kernel_store._noted.cache_clear()
        kernel_store._machine.cache_clear()
        return kernel_store._environment.__wrapped__()

    first = find()
    assert len(asked) == 1
    monkeypatch.setattr(kernel_store, "sources_digest", None)  # is not asked either
    if dependencies.installation() is not None:
        assert (find(), len(asked)) == (first, 1)
        assert list(first) == list(find())
    kernel_store.set_cache_dir(None)
    monkeypatch.undo()
    assert find() == first


@pytest.mark.parametrize("error", [RecursionError, MemoryError])
def test_what_the_process_lacks_is_no_defect_of_a_kernel(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """A first call deep in a recursion; there is nothing to report, and the next one compiles."""

    def fail(self: Any) -> None:
        raise error

    with monkeypatch.context() as there:
        there.setattr(kernel_store._Build, "_emission", fail)
        with pytest.raises(error):
            compile_anew()
    assert compile_anew()[0] > 0


# Which folders are used.


def test_folders_are_private(tmp_path: Path) -> None:
    store = DiskCache(tmp_path / "deep" / "kernels")
    store.write(KEY, "text", b"code", FACTS)
    assert store.folder.stat().st_mode & 0o777 == 0o700
    for path in store.folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert store.read(KEY, FACTS) == b"code"


def test_folders_above_are_private_too(tmp_path: Path) -> None:
    """Without this, no folder that a process with umask 0 makes could be used."""
    before = os.umask(0)
    try:
        store = DiskCache(tmp_path / "new" / "deep" / "kernels")
    finally:
        os.umask(before)
    for folder in (store.folder, store.folder.parent, store.folder.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720])
def test_folders_that_others_can_write_to_are_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(CacheError, match=rf"writable by others \(mode {mode:04o}\)"):
        DiskCache(tmp_path)
    # Below a symbolic link, too.
    link = tmp_path.parent / f"link-{mode}"
    link.symlink_to(tmp_path.parent)
    with pytest.raises(CacheError, match="writable by others"):
        DiskCache(link / tmp_path.name)


def test_folders_that_others_can_rename_are_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(CacheError, match="where everybody may rename it"):
        DiskCache(shared / "kernels")
    shared.chmod(0o1777)
    DiskCache(shared / "kernels")


def test_links_above_the_folder_are_followed_once(tmp_path: Path) -> None:
    mine, theirs, link = (tmp_path / name for name in ("mine", "theirs", "link"))
    for folder in (mine, theirs):
        (folder / "kernels").mkdir(mode=0o700, parents=True)
    link.symlink_to(mine)
    store = DiskCache(link / "kernels")
    link.unlink()
    link.symlink_to(theirs)
    store.write(KEY, "text", b"code", FACTS)
    assert len(list((mine / "kernels").iterdir())) == 3
    assert not any((theirs / "kernels").iterdir())


def test_links_that_lead_to_each_other_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(CacheError, match="is a link"):
        DiskCache(one)


@pytest.mark.parametrize("leads_somewhere", [True, False])
def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, leads_somewhere: bool) -> None:
    place, link = tmp_path / "kernels", tmp_path / "link"
    if leads_somewhere:
        place.mkdir(mode=0o700)
    link.symlink_to(place)
    with pytest.raises(CacheError, match=r"is a link.*to the folder itself: .*kernels"):
        DiskCache(link)
    assert place.exists() == leads_somewhere


def test_folders_of_other_users_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(CacheError, match="belongs to user"):
        DiskCache(tmp_path)


def test_read_only_folders_without_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What the system says, also where root may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.R_OK)
    with pytest.raises(CacheError, match="is not readable"):
        DiskCache(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    with pytest.raises(CacheError, match="is not writable, and there are no kernels in it"):
        DiskCache(tmp_path)
    monkeypatch.setenv("FUNCGRAD_CACHE_DIR", str(tmp_path))
    with pytest.raises(CacheError):
        cache.open_default()
    monkeypatch.delenv("FUNCGRAD_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.warns(CacheWarning, match="are not kept"):  # nobody asked for this folder
        assert cache.open_default() is None


def refuse_to_write(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As a disk that is mounted for reading, also where root may write everywhere."""

    def is_there(path: Any) -> bool:
        return os.fspath(path).startswith(str(folder))

    def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(path: Any, *args: Any, **options: Any) -> Any:
            if is_there(path):
                raise OSError(errno.EROFS, "Read-only file system")
            return function(path, *args, **options)

        return called

    access, open_file = os.access, os.open

    def opened(path: Any, flags: int, *mode: int) -> int:
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        assert not (writes and is_there(path)), "it tried to write"
        return open_file(path, flags, *mode)

    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK and access(path, mode))
    monkeypatch.setattr(os, "open", opened)
    for name in ("utime", "replace", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))


def test_a_read_only_folder_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled = compile_anew()[0]
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    with monkeypatch.context() as there:
        refuse_to_write(there, folder)
        there.setenv("FUNCGRAD_DEBUG", "1")
        kernel_store.set_cache_dir(folder)
        assert compile_anew() == (0, compiled, 0)
        assert "read-only" not in capsys.readouterr().err
        for slope in (2.5, 1.5):  # of patterns that are not there
            f = fg.jit(lambda x, k=slope: np.exp(x * k) if k > 2.0 else np.arctan(x) ** 2 * k)
            y = f(np.linspace(0.0, 1.0, 50))
            assert y.shape == (50,)
        said = capsys.readouterr().err
        assert said.count("is read-only: what it does not hold is compiled by every process") == 1
        config = fg.show_config("dicts")
        assert config is not None
        assert config["cache"]["new kernels"] == "are not kept: the folder is read-only"
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    kernel_store.set_cache_dir(folder)
    config = fg.show_config("dicts")
    assert config is not None
    assert "new kernels" not in config["cache"]


@pytest.mark.parametrize("harm", [garble, lambda path: path.chmod(0o666)])
def test_read_only_folders_are_trusted_no_more_than_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None]
) -> None:
    compiled = compile_anew()[0]
    for path in folder.glob("*.o"):
        harm(path)
    with monkeypatch.context() as there:
        refuse_to_write(there, folder)
        kernel_store.set_cache_dir(folder)
        assert compile_anew() == (compiled, 0, compiled)
        assert compile_anew() == (compiled, 0, compiled)  # nothing was repaired
        there.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        with pytest.raises(CacheError, match="belongs to user"):
            kernel_store.set_cache_dir(folder)


def test_a_time_of_use_that_cannot_be_kept_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DiskCache(tmp_path / "kernels")
    store.write(KEY, "text", b"code", FACTS)

    def refuse(path: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert store.read(KEY, FACTS) == b"code"
    assert store.damaged == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs another user or a mode")
def test_permissions_that_the_system_enforces() -> None:
    """A folder of mode 0500, and a user who is not root."""
    place = Path(tempfile.mkdtemp())
    try:
        store = DiskCache(place)
        store.write(KEY, "text", b"code", FACTS)
        is_root = os.getuid() == 0
        for path in (*place.iterdir(), place):
            if is_root:
                os.chown(path, 65534, 65534)
            path.chmod(0o500 if path == place else 0o400)

        def use() -> None:
            if is_root:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            store = DiskCache(place)
            assert store.is_read_only
            assert store.read(KEY, FACTS) == b"code"
            store.write("f" * 64, "text", b"code", FACTS)
            assert store.read("f" * 64, FACTS) is None
            assert len(list(place.iterdir())) == 3
            assert store.damaged == 0

        assert survives(use) == ""
    finally:
        place.chmod(0o700)
        shutil.rmtree(place)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a user without a name")
@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME", None])
def test_a_home_that_cannot_be_used_is_a_warning(
    variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers run as users without a name, with no home or that of somebody else."""
    place = Path(tempfile.mkdtemp())
    try:
        for name in ("HOME", "XDG_CACHE_HOME", "FUNCGRAD_CACHE_DIR"):
            monkeypatch.delenv(name, raising=False)
        if variable is not None:
            monkeypatch.setenv(variable, str(place / "of-another-user"))
        (place / "of-another-user").mkdir()
        place.chmod(0o000)

        def use() -> None:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(54321)
                os.setuid(54321)
            elif variable is None:  # a user who has a name
                return
            with pytest.warns(CacheWarning, match="compiled kernels are not kept"):
                assert cache.open_default() is None
            os.environ["FUNCGRAD_CACHE_DIR"] = "~/kernels" if variable is None else f"{place}/x"
            with pytest.raises(CacheError, match="Set FUNCGRAD_CACHE_DIR to a folder that you"):
                cache.open_default()

        assert survives(use) == ""
    finally:
        place.chmod(0o700)
        shutil.rmtree(place)


@pytest.mark.parametrize("name", ["~nobody-has-this-name/kernels", "k" * 300, "nul\0in a name"])
def test_names_that_no_folder_can_have(name: str, tmp_path: Path) -> None:
    before = kernel_store.cache_dir()
    with pytest.raises(CacheError, match="Set FUNCGRAD_CACHE_DIR to a folder that you can write"):
        kernel_store.set_cache_dir(name if name.startswith("~") else tmp_path / name)
    assert kernel_store.cache_dir() == before


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    for place in (path, path / "kernels"):
        with pytest.raises(CacheError, match="cannot be created"):
            DiskCache(place)


def test_files_of_others_are_not_touched(tmp_path: Path) -> None:
    names = ["model.py", "results.json", "a.o", "notes.txt", ".new-thing", KEY[:-1] + ".py"]
    for name in names:
        (tmp_path / name).write_bytes(b"x" * 1000)
    tmp_path.chmod(0o700)
    store = DiskCache(tmp_path, limit=2000)
    for k in range(10):
        store.write(f"{k:064x}", "text", bytes(500), FACTS)
    assert store.size() <= 2000
    store.clear()
    assert store.size() == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)


def test_the_oldest_kernels_go_first(tmp_path: Path) -> None:
    store = DiskCache(tmp_path / "kernels", limit=10_000)
    for k in range(30):
        store.write(f"{k:064x}", "text", bytes(1000), FACTS)
        for path in store.folder.glob(f"{k:064x}*"):
            os.utime(path, (k, k))
        assert store.size() <= 10_000
    assert store.read(f"{29:064x}", FACTS) is not None
    assert store.read(f"{0:064x}", FACTS) is None


def test_what_is_being_written_by_others_stays(tmp_path: Path) -> None:
    store = DiskCache(tmp_path / "kernels", limit=2_000)
    young, old = (store.folder / f".new-1-1-{k:064x}.o" for k in (98, 99))
    for path in (young, old):
        path.write_bytes(bytes(700))
        path.chmod(0o600)
    os.utime(old, (1, 1))  # whoever wrote it was killed
    for k in range(9):
        store.write(f"{k:064x}", "text", bytes(1000), FACTS)
    assert young.exists()
    assert not old.exists()


def test_files_that_others_remove_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DiskCache(tmp_path / "kernels")
    for k in range(3):
        store.write(f"{k:064x}", "text", b"code", FACTS)
    scan = os.scandir

    class Entry:
        """What is gone when it is asked about."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name, self.path = entry.name, entry.path

        def stat(self, **_: Any) -> os.stat_result:
            return os.stat(self.path) if self.name[63] != "1" else os.stat(self.path + ".gone")

    @contextmanager
    def scanned(folder: Any) -> Iterator[Any]:
        with scan(folder) as entries:
            yield map(Entry, entries)

    whole = store.size()
    monkeypatch.setattr(os, "scandir", scanned)
    assert store.size() == whole // 3 * 2


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (None, 512 * 2**20),
        ("", 512 * 2**20),
        ("0", 0),
        ("123456", 123_456),
        ("3k", 3 * 2**10),
        ("200M", 200 * 2**20),
        ("200 MB".replace(" ", ""), 200 * 2**20),
        (" 2g ", 2 * 2**30),
    ],
)
def test_sizes_of_the_folder(
    text: str | None, size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUNCGRAD_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.delenv("FUNCGRAD_CACHE_SIZE", raising=False)
    if text is not None:
        monkeypatch.setenv("FUNCGRAD_CACHE_SIZE", text)
    opened = cache.open_default()
    assert opened is not None
    assert opened.limit == size


@pytest.mark.parametrize("text", ["many", "-1", "1.5G", "5KM", "M", "²", "12 M"])
def test_what_is_no_size(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FUNCGRAD_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setenv("FUNCGRAD_CACHE_SIZE", text)
    with pytest.raises(CacheError) as caught:
        cache.open_default()
    assert str(caught.value) == (
        f"FUNCGRAD_CACHE_SIZE={text.upper()!r} is not a size. Give bytes or a number with K, M or "
        "G: 512M."
    )


@pytest.mark.parametrize("text", ["off", "OFF", "", "  "])
def test_no_folder_at_all(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_CACHE_DIR", text)
    assert cache.open_default() is None


# Processes on one folder.

PROCESS = """
import sys
import numpy as np
import funcgrad as fg
from funcgrad.compiler.runtime import dependencies, kernel_store, linker

f = fg.jit(fg.value_and_grad(lambda w, x: np.sum(np.tanh(x @ w) ** 2) + np.mean(w)))
value, slope = f(np.full(3, 0.25), np.linspace(0.0, 1.0, 12).reshape(4, 3))
stats = kernel_store.stats()
print(float(value).hex(), slope.tobytes().hex(), stats.compiled, stats.loaded_from_disk,
      stats.damaged, any(name.startswith("numba") for name in sys.modules),
      "llvmlite" in sys.modules)
"""


def test_processes_share_a_cold_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "FUNCGRAD_CACHE_DIR": str(tmp_path / "kernels")}
    command = [sys.executable, "-W", "error", "-c", PROCESS]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    def finish(process: subprocess.Popen[str]) -> list[str]:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        return out.split()

    cold = [finish(process) for process in [start() for _ in range(4)]]
    assert all(row[4] == "0" for row in cold)
    warm = finish(start())
    assert {tuple(row[:2]) for row in [*cold, warm]} == {tuple(warm[:2])}
    assert (warm[2], warm[4], warm[5]) == ("0", "0", "False")
    # LLVM is not loaded where code is linked without it and the processor is known from before.
    is_known = linker.IS_AVAILABLE and dependencies.installation() is not None
    assert warm[6] == str(not is_known)
    names = [path.name for path in (tmp_path / "kernels").iterdir()]
    assert not [name for name in names if name.startswith(".new-")]
    assert len([name for name in names if name.endswith(".facts")]) == is_known
    assert len(names) == 3 * int(warm[3]) + is_known
