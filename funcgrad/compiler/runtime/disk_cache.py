"""Compiled kernels on disk: what makes a second process start without a compiler.

One kernel is three files named by its key: ``<key>.py``, the readable source; ``<key>.o``, the
object file; and ``<key>.json``, what the object needs (symbol, versions, CPU) and its digest. The
JSON file is written last and every file atomically, so any number of processes may share a folder;
a file that is damaged, cut short or made for something else is noticed by its digest or its facts
and counts as absent. The JSON file is compared, byte by byte, and never parsed; nothing is
unpickled and nothing but the object is executed, which is why folder and files must belong to the
user alone: a file of somebody else, one that others may write to, and one with a second name count
as damaged.

What all keys have in common and takes long to find is noted in a file of its own, ``<key>.facts``,
which begins with its digest; so is the plan of a program, which is numbers and digests of kernels.

The least recently used kernels go when the folder exceeds its limit. To add up its files takes
longer than to compile where there are many, so not every process that adds a few does it: the keys,
which are as good as random, choose those that do, in proportion to what is added. A folder that
cannot be written to, such as one that came with the image of a container, is read all the same, and
nothing is added. This file knows neither Numba nor LLVM.
"""

from __future__ import annotations

import json
import os
import re
import stat
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from funcgrad.base import environment
from funcgrad.base.digests import digest
from funcgrad.errors import CacheError, FuncgradWarning

FOLDER_VARIABLE = "FUNCGRAD_CACHE_DIR"
SIZE_VARIABLE = "FUNCGRAD_CACHE_SIZE"
DEFAULT_SIZE = 512 * 2**20
_SUFFIXES = (".py", ".o", ".json")
_FACTS = ".facts"
_OWN_NAME = re.compile(r"(\.new-.+-)?[0-9a-f]{64}\.(py|o|json|facts)")
_TEMPORARY = ".new-"
_STALE_SECONDS = 3600
# Of the limit, what all processes together add on average until one of them adds up the folder, and
# what one process adds at most.
_SHARE = 32


class CacheWarning(FuncgradWarning, RuntimeWarning):
    """Kernels are not kept on disk, and every process compiles its own."""


def default_folder() -> Path | None:
    """The folder that the environment asks for, or ``None`` where it says ``off``.

    ``FUNCGRAD_CACHE_DIR`` if set, else ``funcgrad`` in the user's cache folder
    (``XDG_CACHE_HOME``).

    Raises: CacheError: The path begins with a home folder that the system does not know.
    """
    asked = environment.text(FOLDER_VARIABLE)
    if asked is not None:
        return None if asked.lower() in ("", "off") else from_home(asked)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else from_home("~/.cache")) / "funcgrad"


def from_home(path: str | Path) -> Path:
    """A path whose ``~`` is replaced by the home folder.

    Args: path: It may begin with ``~`` or ``~user``.
    Raises: CacheError: There is no such home folder. Containers often run as a user without a name,
            and without ``HOME``.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise CacheError(
            f"the folder of compiled kernels {str(path)!r} is in a home folder that is not known: "
            f"HOME is not set, or there is no such user. {_ADVICE}"
        ) from error


def size_limit() -> int:
    """The largest size of the folder in bytes: ``FUNCGRAD_CACHE_SIZE``, such as ``200M``."""
    return environment.n_bytes(SIZE_VARIABLE, DEFAULT_SIZE, CacheError)


def open_default() -> DiskCache | None:
    """The cache in `default_folder`; a folder nobody asked for may fail with a warning only."""
    try:
        folder = default_folder()
        return None if folder is None else DiskCache(folder, size_limit())
    except CacheError as error:
        if environment.text(FOLDER_VARIABLE) is not None:
            raise
        warnings.warn(CacheWarning(f"compiled kernels are not kept: {error}"), stacklevel=2)
        return None


class DiskCache:
    """A private folder of compiled kernels.

    Args:
        folder: Created with mode 0700 where it does not exist.
        limit: Size in bytes above which old kernels are removed.
    Raises: CacheError: The folder cannot be used, or others could write to it.

    Attributes:
        is_read_only: Whether nothing can be added.
        damaged: How many files could not be used.
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_SIZE) -> None:
        self.folder = _made_private(folder)
        self.is_read_only = not os.access(self.folder, os.W_OK)
        if self.is_read_only and self.is_empty:
            raise CacheError(
                f"the folder of compiled kernels {str(folder)!r} is not writable, and there are no "
                f"kernels in it. {_ADVICE}"
            )
        self.limit = limit
        self.damaged = 0
        self._size = 0  # what is known of it
        self._added = 0  # since it was added up
        self._warned = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept in it."""
        return next(self._files(), None) is None

    def read(self, key: str, facts: dict[str, Any]) -> bytes | None:
        """The object file of ``key`` if it is there, whole, and made for the same ``facts``."""
        try:
            record, code = (self._content(self._path(key, end)) for end in (".json", ".o"))
        except FileNotFoundError:
            return None
        except OSError:
            self.damaged += 1
            return None
        if record != _record(code, facts):
            self.damaged += 1
            return None
        return code

    def write(self, key: str, source: str, code: bytes, facts: dict[str, Any]) -> None:
        """Keep an object file, unless nothing can be added. A full disk is a warning."""
        contents = (source.encode(), code, _record(code, facts))
        self._keep(key, dict(zip(_SUFFIXES, contents, strict=True)))

    def recall(self, key: str) -> dict[str, Any] | None:
        """Value that was noted under ``key``, if it is there and whole."""
        try:
            content = self._content(self._path(key, _FACTS))
        except OSError:
            return None
        stated, _, text = content.partition(b"\n")
        if stated != _digest_of_note(key, text):
            return None
        return json.loads(text)

    def note(self, key: str, facts: dict[str, Any]) -> None:
        """Keep facts that take long to find, as `write` keeps an object file."""
        text = json.dumps(facts, indent=1).encode()
        self._keep(key, {_FACTS: _digest_of_note(key, text) + b"\n" + text})

    def size(self) -> int:
        """Bytes of all files."""
        return sum(status.st_size for _, status in self._files())

    def clear(self) -> None:
        """Remove all kernels. Those in use stay valid, for they are in memory."""
        for path, _ in list(self._files()):
            path.unlink(missing_ok=True)
        self._size = self._added = 0

    def _keep(self, key: str, contents: dict[str, bytes]) -> None:
        """Write the files of a key, in their order, unless nothing can be added."""
        if self.is_read_only:
            return
        try:
            for suffix, content in contents.items():
                self._replace(self._path(key, suffix), content)
            self._grow(key, sum(map(len, contents.values())))
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(CacheWarning(f"a compiled kernel is not kept: {error}"), stacklevel=3)

    def _path(self, key: str, suffix: str) -> Path:
        return self.folder / (key + suffix)

    def _content(self, path: Path) -> bytes:
        """Content of a file of our own, which counts as used."""
        # Neither a link nor a pipe is opened, for whoever made it would choose what is read.
        handle = os.open(path, os.O_RDONLY | _NO_LINK | _BINARY)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not _is_private(status) or status.st_size > self.limit:
                raise PermissionError(f"{str(path)!r} is not a file of this cache")
            content = file.read()
        # When a kernel was last used decides only which one goes first; disks that are mounted for
        # reading do not keep it, and nothing goes there.
        with suppress(OSError):
            os.utime(path)
        return content

    def _replace(self, path: Path, content: bytes) -> None:
        # Not `tempfile`: importing it costs as much as loading thirty kernels.
        name = f"{_TEMPORARY}{os.getpid()}-{threading.get_ident()}-{path.name}"
        temporary = self.folder / name
        try:
            try:
                handle = os.open(temporary, _NEW, 0o600)
            except FileExistsError:  # of a process of the same number that was killed
                temporary.unlink()
                handle = os.open(temporary, _NEW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """The cache's own files; those of others are not touched. A vanished folder has none."""
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                if _OWN_NAME.fullmatch(entry.name):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # removed by another process meanwhile
                    if not stat.S_ISDIR(status.st_mode):
                        yield Path(entry.path), status

    def _grow(self, key: str, added: int) -> None:
        self._size += added
        self._added += added
        is_chosen = int(key[:8], 16) * self.limit < (added * _SHARE) << 32
        if is_chosen or self._added * _SHARE > self.limit:
            self._size, self._added = self.size(), 0
        if self._size > self.limit:
            self._evict()

    def _evict(self) -> None:
        """Remove the least recently used kernels until a tenth of the limit is free."""
        kernels: dict[str, list[tuple[Path, os.stat_result]]] = {}
        for path, status in self._files():
            is_new = path.name.startswith(_TEMPORARY)
            kernel = path.name if is_new else path.stem
            kernels.setdefault(kernel, []).append((path, status))
        remaining = sum(status.st_size for files in kernels.values() for _, status in files)
        by_age = sorted(kernels.items(), key=lambda item: max(s.st_mtime_ns for _, s in item[1]))
        recent = time.time() - _STALE_SECONDS
        for name, files in by_age:
            if remaining <= self.limit * 0.9:
                break
            if name.startswith(_TEMPORARY) and files[0][1].st_mtime > recent:
                continue  # being written by another process
            for path, status in files:
                path.unlink(missing_ok=True)
                remaining -= status.st_size
        self._size, self._added = remaining, 0


def _digest_of_note(key: str, text: bytes) -> bytes:
    return digest(key.encode() + text).encode()


def _record(code: bytes, facts: dict[str, Any]) -> bytes:
    """The JSON file of a kernel."""
    return json.dumps({**facts, "digest": digest(code)}, indent=1).encode()


_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def _is_private(status: os.stat_result) -> bool:
    """Whether an open file is a plain one that nobody else can have written."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    is_mine = status.st_uid == os.getuid() and not status.st_mode & _OTHERS_WRITE
    return is_mine and status.st_nlink == 1


def _made_private(folder: Path) -> Path:
    """The folder that a path leads to now, made and found to be the user's own."""
    try:
        is_link = folder.is_symlink()
        if not is_link:
            _make(folder)
            # From here on without the links that are above it.
            real = folder.resolve(strict=True)
            status = real.stat()
    except (OSError, ValueError) as error:
        raise CacheError(
            f"the folder of compiled kernels {str(folder)!r} cannot be created: {error}. {_ADVICE}"
        ) from error
    if is_link:
        raise CacheError(
            f"the folder of compiled kernels {str(folder)!r} is a link, which may lead elsewhere "
            f"tomorrow. Set {FOLDER_VARIABLE} to the folder itself: {os.path.realpath(folder)!r}"
        )
    if hasattr(os, "getuid"):
        _check_owner(real, status)
        for parent in real.parents:
            _check_parent(real, parent)
    if not os.access(real, os.R_OK | os.X_OK):
        raise CacheError(
            f"the folder of compiled kernels {str(folder)!r} is not readable. {_ADVICE}"
        )
    return real


def _make(folder: Path) -> None:
    """A folder and those above it that are missing, each for its user alone."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


_ADVICE = f"Set {FOLDER_VARIABLE} to a folder that you can write to, or to 'off'."


def _check_owner(folder: Path, status: os.stat_result) -> None:
    # Whoever can write here can make this process run their code.
    if status.st_uid != os.getuid():
        raise CacheError(
            f"the folder of compiled kernels {str(folder)!r} belongs to user "
            f"{status.st_uid}, not to you (user {os.getuid()}). Set {FOLDER_VARIABLE} to a folder "
            "of your own, or to 'off'."
        )
    if status.st_mode & _OTHERS_WRITE:
        raise CacheError(
            f"the folder of compiled kernels {str(folder)!r} is writable by others (mode "
            f"{stat.S_IMODE(status.st_mode):04o}). Run: chmod 700 {str(folder)!r}"
        )


def _check_parent(folder: Path, parent: Path) -> None:
    # Whoever can rename a folder above can put their own in its place.
    mode = parent.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise CacheError(
            f"the folder of compiled kernels {str(folder)!r} lies in {str(parent)!r}, where "
            f"everybody may rename it (mode {stat.S_IMODE(mode):04o}). {_ADVICE}"
        )
