"""The folder of kernels keeps to its limit, without being added up by everybody who adds to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from funcgrad.base.digests import digest
from funcgrad.compiler.runtime.disk_cache import DiskCache

pytestmark = pytest.mark.lean

FACTS = {"symbol": "kernel"}
CODE = bytes(900)


def key(number: int) -> str:
    """As the keys of kernels are: as good as random."""
    return digest(str(number).encode())


def write(store: DiskCache, number: int) -> None:
    store.write(key(number), "text", CODE, FACTS)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One entry for each time that a folder is added up."""
    seen = []
    scan = os.scandir

    def watched(folder: Any) -> Any:
        seen.append(folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", watched)
    return seen


def size_of(folder: Path) -> int:
    return sum((folder / name).stat().st_size for name in os.listdir(folder))


def test_many_short_processes_keep_to_the_limit(tmp_path: Path, scans: list[Any]) -> None:
    limit = 200_000
    folder = tmp_path / "kernels"
    largest = 0
    for number in range(700):  # each in a process of its own
        write(DiskCache(folder, limit), number)
        if number % 10 == 0:
            largest = max(largest, size_of(folder))
    assert 0.9 * limit < largest < 1.15 * limit
    assert len(scans) < 150
    assert DiskCache(folder).read(key(699), FACTS) == CODE
    assert DiskCache(folder).read(key(0), FACTS) is None


def test_long_processes_see_what_others_add(tmp_path: Path, scans: list[Any]) -> None:
    limit = 200_000
    folder = tmp_path / "kernels"
    stores = [DiskCache(folder, limit) for _ in range(4)]
    largest = 0
    for number in range(700):
        write(stores[number % 4], number)
        if number % 10 == 0:
            largest = max(largest, size_of(folder))
    assert 0.9 * limit < largest < 1.15 * limit
    assert len(scans) < 300


def test_a_kernel_more_in_a_large_folder_adds_up_nothing(tmp_path: Path, scans: list[Any]) -> None:
    number = next(n for n in range(100) if key(n) > "01")
    write(DiskCache(tmp_path / "kernels"), number)
    assert scans == []


def test_one_process_does_not_rely_on_chance(tmp_path: Path) -> None:
    limit = 100_000
    store = DiskCache(tmp_path / "kernels", limit)
    for number in range(200):  # of keys that choose nobody
        store.write(f"f{number:063x}", "text", CODE, FACTS)
        assert size_of(store.folder) <= limit * 33 / 32 + len(CODE) * 2


def test_a_folder_for_reading_is_not_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DiskCache(tmp_path / "kernels")
    for number in range(20):
        write(store, number)
    looked_at = []
    files = DiskCache._files

    def watched(self: DiskCache) -> Any:
        for found in files(self):
            looked_at.append(found)
            yield found

    monkeypatch.setattr(DiskCache, "_files", watched)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert DiskCache(store.folder).is_read_only
    assert len(looked_at) == 1
