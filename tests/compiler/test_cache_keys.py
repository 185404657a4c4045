"""What compiled kernels depend on, and who is told where they came from."""

from __future__ import annotations

import ast
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler import pipeline
from funcgrad.compiler.runtime import dependencies, kernel_store

pytestmark = pytest.mark.lean

FOLDER = Path(pipeline.__file__).parent
NATIVE = "funcgrad.compiler.native"


def test_every_source_of_the_compiler_is_part_of_the_key(tmp_path: Path) -> None:
    copy = tmp_path / "compiler"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    digests = {dependencies.sources_digest(copy)}
    paths = sorted(copy.rglob("*.py"))
    assert copy / "native" / "vecmath" / "powers.py" in paths
    for path in paths:
        text = path.read_bytes()
        path.write_bytes(text + b"\n# changed\n")
        digests.add(dependencies.sources_digest(copy))
        path.write_bytes(text)
    (copy / "native" / "vecmath" / "new.py").write_text("A = 1\n")
    digests.add(dependencies.sources_digest(copy))
    (copy / "native" / "vecmath" / "new.py").rename(copy / "native" / "vecmath" / "renamed.py")
    digests.add(dependencies.sources_digest(copy))
    assert len(digests) == len(paths) + 3


def test_the_key_does_not_depend_on_the_place(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "a", ignore=shutil.ignore_patterns("__pycache__"))
    assert dependencies.sources_digest(tmp_path / "a") == dependencies.sources_digest(FOLDER)
    digest = dependencies.sources_digest(*dependencies.SOURCES)
    assert kernel_store._environment()["translator"] == digest


def test_files_beside_the_folder_are_part_of_the_key(tmp_path: Path) -> None:
    assert dependencies.SOURCES[0] == FOLDER
    copies = [Path(shutil.copy(path, tmp_path)) for path in dependencies.SOURCES[1:]]
    digests = {dependencies.sources_digest(FOLDER), dependencies.sources_digest(FOLDER, *copies)}
    for copy in copies:
        copy.write_bytes(copy.read_bytes() + b"\n# changed\n")
        digests.add(dependencies.sources_digest(FOLDER, *copies))
    assert len(digests) == len(copies) + 2


def test_what_is_installed_is_seen_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "compiler"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    boot, processor = tmp_path / "boot", tmp_path / "cpuinfo"
    boot.write_text("1")
    monkeypatch.setattr(dependencies, "SOURCES", (copy,))
    monkeypatch.setattr(dependencies, "_BOOT", str(boot))
    monkeypatch.setattr(dependencies, "_PROCESSOR", str(processor))

    def processors(features: str, speed: str = "2596.134") -> None:
        one = f"model name\t: X\ncpu MHz\t\t: {speed}\nflags\t\t: {features}\n"
        processor.write_text(f"{one}bogomips\t: {speed}\n\nprocessor\t: 1\n{one}\n")

    processors("avx avx2 avx512f")
    path = copy / "native" / "vecmath" / "powers.py"
    text, status = path.read_text(), path.stat()

    def rewrite_in_place() -> None:
        """Other text of the same size, with the same time of its last change."""
        path.write_text(text.replace("return", "RETURN", 1))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    changes: list[Callable[[], object]] = [
        lambda: None,
        rewrite_in_place,
        lambda: path.write_text(text + "\n"),
        lambda: path.rename(copy / "native" / "vecmath" / "renamed.py"),
        lambda: (copy / "native" / "new.py").write_text("A = 1\n"),
        lambda: boot.write_text("2"),
        lambda: processors("avx avx2"),
        lambda: monkeypatch.setattr(sys, "version", "4.0"),
    ]
    seen = set()
    for change in changes:
        change()
        seen.add(dependencies.installation())
        assert dependencies.installation() in seen
    assert len(seen) == len(changes)
    processors("avx avx2", "1400.000")
    assert dependencies.installation() in seen
    libraries = list(dependencies.llvm_files())
    assert libraries
    for file in (boot, processor):
        text = file.read_text()
        file.unlink()
        assert dependencies.installation() is None
        file.write_text(text)


def test_what_translates_kernels_is_part_of_the_key() -> None:
    root = FOLDER.parents[1]
    pending, found = [f"{NATIVE}.translate", f"{NATIVE}.llvm_backend"], set()
    while pending:
        name = pending.pop()
        path = root / (name.replace(".", "/") + ".py")
        path = path if path.exists() else root / name.replace(".", "/") / "__init__.py"
        if name in found or not path.exists():
            continue
        found.add(name)
        assert any(path.is_relative_to(source) for source in dependencies.SOURCES), name
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("funcgrad"):
                assert node.module is not None
                pending += [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
    assert {f"{NATIVE}.{name}" for name in ("vocabulary", "vecmath.arithmetic")} <= found
    assert "funcgrad.intrinsics" in found


def test_functions_that_are_compiled_at_once_count_their_own_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.linspace(0.0, 1.0, 5)
    first = fg.jit(lambda x: np.cumsum(x * 1.03125) * 2)
    second = fg.jit(lambda x: (np.sin(x * 1.0625), np.sum(np.cos(x) / 1.09375), np.cumprod(x - 3)))
    place = pipeline.place
    others: list[threading.Thread] = []

    def place_while_others_compile(*args: Any) -> Any:
        if not others:
            others.append(threading.Thread(target=second, args=(x,)))
            others[0].start()
            others[0].join()
        return place(*args)

    monkeypatch.setattr(pipeline, "place", place_while_others_compile)
    first(x)
    for f in (first, second):
        info = f.cache_info()
        kernels = f.lower(x).as_text().count("# kernel ")
        assert info.kernels_compiled + info.kernels_loaded + info.kernels_reused == kernels


def test_programs_of_other_rooms_are_part_of_the_key() -> None:
    """They are kept by their names, whatever they do."""
    words = "(SystemProgram)", "kernel_store.code_address"
    paths = [*FOLDER.parent.rglob("*.py")]
    written = [path for path in paths if all(word in path.read_text() for word in words)]
    assert len(written) > 2
    for path in written:
        assert any(path.is_relative_to(source) for source in dependencies.SOURCES), path
