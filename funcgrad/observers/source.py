"""Source locations: the user's line at which something happened.

The user's line is the innermost one that is neither funcgrad's, NumPy's or SciPy's own, nor of a
method of an observer, nor Python's or an installed package's: a line of pandas helps nobody. Where
everything that runs is installed, it is the innermost one of these.

A location is taken at every staged equation, so taking one must be cheap: it keeps a code object
and a line number and reads no file. Text is only looked up when a message is made.
"""

from __future__ import annotations

import dis
import importlib.util
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from funcgrad.base.tables import keep
from funcgrad.core.observers import describe_location, is_observers
from funcgrad.core.program import evaluate
from funcgrad.transforms.linearize import LinearMap, pull_entry

_SEPARATOR = os.sep


def _folder_of(package: str) -> str:
    """Find the folder of a package without importing it: SciPy is loaded at its first use."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return os.path.dirname(os.path.abspath(spec.origin)) + _SEPARATOR


_OWN_ROOTS = tuple(map(_folder_of, ("funcgrad", "numpy", "scipy")))
_OWN_FILES = ("<__array_function__ internals>", "<call path>", "<numbers>", "<tree>")
# Python's own modules, and what starts programs that are installed.
_INSTALLED_ROOTS = tuple(
    os.path.dirname(os.path.abspath(path)) + _SEPARATOR
    for path in (os.__file__, sys.executable)
    if path
)
_INSTALLED_FOLDERS = tuple(
    f"{_SEPARATOR}{name}{_SEPARATOR}" for name in ("site-packages", "dist-packages")
)

# The owner of code.
_OWN, _INSTALLED, _USERS = range(3)
_owners: dict[str, int] = {}
"""By file name."""
_MAX_FILES = 4096
_stand_ins: dict[int, tuple[str, str]] = {}
"""By the identity of code, whose hash is not kept; functions of modules stay."""

FORWARD, BACKWARD, REMAT = "", "backward", "remat"
"""Phases: the function and its tangents, its transpose, and residuals that are computed again."""
F = TypeVar("F", bound=Callable[..., Any])


Scope = tuple[str, ...]
_scope: ContextVar[Scope] = ContextVar("funcgrad_scope", default=())


@contextmanager
def in_scope(name: str) -> Iterator[None]:
    """A block with a name, inside of the one around it."""
    token = _scope.set((*_scope.get(), name))
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def outside_scopes() -> Iterator[None]:
    """A block whose locations have no names but those given inside: of a program of its own."""
    token = _scope.set(())
    try:
        yield
    finally:
        _scope.reset(token)


class SourceLocation:
    """A line of the user's code: one object, however many equations it makes.

    Args:
        code: Code object of the user's function.
        line: Line number in its file.
        scope: Names of the blocks (`named_scope`) in which it was executed, from the outside
            inwards, since the program that it belongs to began to be traced.
        phase: `FORWARD`, or `BACKWARD` or `REMAT` of what is run for the line's derivative.
    """

    __slots__ = ("code", "line", "phase", "scope")
    code: CodeType
    line: int
    scope: Scope
    phase: str

    def __new__(
        cls, code: CodeType, line: int, scope: Scope = (), phase: str = FORWARD
    ) -> SourceLocation:
        # By identity: equal code objects may be of different files. A location keeps its code.
        key = (id(code), line, scope, phase)
        found = _locations.get(key)
        if found is None:
            if len(_locations) >= _MAX_LOCATIONS:
                _locations.clear()
            found = _locations[key] = super().__new__(cls)
            found.code = code
            found.line = line
            found.scope = scope
            found.phase = phase
        return found

    def __reduce__(self) -> Any:
        return SourceLocation, (self.code, self.line, self.scope, self.phase)

    def in_phase(self, phase: str) -> SourceLocation:
        """The line in another phase."""
        if phase == self.phase:
            return self
        return SourceLocation(self.code, self.line, self.scope, phase)

    @property
    def unscoped(self) -> SourceLocation:
        """The line alone."""
        return SourceLocation(self.code, self.line) if self.scope or self.phase else self

    @property
    def shared(self) -> SourceLocation:
        """The line alone, one for all functions that are written in it, as lambdas are."""
        if self.file.startswith("<"):  # other texts have that name
            return self.unscoped
        if len(_shared) >= _MAX_LOCATIONS:
            _shared.clear()
        return _shared.setdefault((self.file, self.line), self.unscoped)

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_name

    def text(self) -> str:
        """The line itself, stripped, or an empty string if the source cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def short(self) -> str:
        """``file.py:14``."""
        return f"{_in_one_line(os.path.basename(self.file))}:{self.line}"

    def __str__(self) -> str:
        text = self.text()
        where = self.short()
        return _in_one_line(f"{where}   {text}" if text else f"{where} in {self.function}")

    def __repr__(self) -> str:
        return f"<{self.short()}>"


def _in_one_line(text: str) -> str:
    """Text whose line breaks and the like are spelt out, for it is going to be a comment."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text)


_locations: dict[tuple[int, int, Scope, str], SourceLocation] = {}
_MAX_LOCATIONS = 1 << 16
_shared: dict[tuple[str, int], SourceLocation] = {}
"""By file and number."""


_places: dict[tuple[int, int, Scope], SourceLocation] = {}
"""Locations by the instruction that was executed; they keep their code."""


def _place(frame: FrameType, key: tuple[int, int, Scope]) -> SourceLocation:
    """The location of a frame of the user's, which is kept."""
    # Code that a library has generated may have no lines but its first.
    line = frame.f_lineno or frame.f_code.co_firstlineno
    if len(_places) >= _MAX_LOCATIONS:
        _places.clear()
    found = _places[key] = SourceLocation(frame.f_code, line, key[2])
    return found


def _owner(code: CodeType) -> int:
    name = code.co_filename
    known = _owners.get(name)
    if known is None:
        if name.startswith(_OWN_ROOTS) or name in _OWN_FILES:
            known = _OWN
        else:
            known = _INSTALLED if _is_installed(name) else _USERS
        keep(_owners, name, known, _MAX_FILES)
    return known


def _is_installed(name: str) -> bool:
    return name.startswith((*_INSTALLED_ROOTS, "<frozen ")) or any(
        folder in name for folder in _INSTALLED_FOLDERS
    )


def is_own(code: CodeType) -> bool:
    """Whether code belongs to funcgrad, NumPy or SciPy."""
    return _owner(code) == _OWN


def is_users(code: CodeType) -> bool:
    """Whether code is neither funcgrad's nor installed."""
    return _owner(code) == _USERS


def stands_for(variable: str, phase: str = FORWARD) -> Callable[[F], F]:
    """Mark a function that runs on behalf of an earlier line of the user's.

    Args:
        variable: Its local variable whose ``source`` is that line: an equation that it evaluates,
            or transposes.
        phase: What it runs of the line, if that is another phase than the line's own.
    """

    def mark(function: F) -> F:
        _stand_ins[id(function.__code__)] = variable, phase
        return function

    return mark


# Interpreters that run what was recorded earlier.
stands_for("equation")(evaluate)
stands_for("entry")(LinearMap.push)
stands_for("entry", BACKWARD)(pull_entry)


def _location_for(frame: FrameType) -> SourceLocation | None:
    """The line that a marked function stands for."""
    variable, phase = _stand_ins[id(frame.f_code)]
    carrier = frame.f_locals.get(variable)
    source: SourceLocation | None = None if carrier is None else carrier.source
    return source.in_phase(phase) if source is not None and phase else source


def current_location() -> SourceLocation | None:
    """The user's line that is executing now.

    A function that `stands_for` an earlier line counts as that line.
    """
    return location_at(sys._getframe(1), _scope.get())


def place() -> str:
    """The user's line that is executing now, as a further line of a message, if it is known."""
    return "".join(f"\n{line}" for line in describe_location(current_location(), "at"))


def equation_location() -> SourceLocation | None:
    """`current_location`, asked by what records an equation for other functions of funcgrad.

    These two are not looked at: a frame becomes an object when it is asked for, which takes long.
    """
    return location_at(sys._getframe(3), _scope.get())


def location_at(frame: FrameType | None, scope: Scope = ()) -> SourceLocation | None:
    """The user's line that a frame, of whatever thread, is executing for.

    Args:
        frame: The frame.
        scope: The names that the location has, if it is not that of an earlier line.
    """
    installed: FrameType | None = None
    owners = _owners
    while frame is not None:
        code = frame.f_code
        owner = owners.get(code.co_filename)
        if owner is None:
            owner = _owner(code)
        if owner == _USERS:
            # By the place in the code, whose line need not be looked up each time.
            key = (id(code), frame.f_lasti, scope)
            found = _places.get(key)
            if found is not None:
                return found
            if not is_observers(code):
                return _place(frame, key)
        elif owner == _INSTALLED:
            installed = installed or frame
        elif id(code) in _stand_ins:
            earlier = _location_for(frame)
            if earlier is not None:
                return earlier
        frame = frame.f_back
    if installed is None:
        return None
    line = installed.f_lineno or installed.f_code.co_firstlineno
    return SourceLocation(installed.f_code, line, scope)


def frames_to_user() -> list[FrameType]:
    """The frames from the caller's, which is funcgrad's, outwards to the user's line."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        if _owner(frame.f_code) == _USERS:
            return frames
        frame = frame.f_back
    is_installed = [_owner(frame.f_code) == _INSTALLED for frame in frames]
    return frames[: is_installed.index(True) + 1] if any(is_installed) else frames


def is_called_through(places: Sequence[str]) -> bool:
    """Whether there are only certain files of funcgrad between this call and code of others.

    Args: places: What their paths inside of funcgrad begin with.
    """
    root = _OWN_ROOTS[0]
    starts = (*(root + place.replace("/", _SEPARATOR) for place in places), *_OWN_FILES)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _owner(frame.f_code) == _OWN:
        if not frame.f_code.co_filename.startswith(starts):
            return False
        frame = frame.f_back
    return True


def is_called_within(places: Sequence[str]) -> bool:
    """Whether one of certain files of funcgrad is between this call and code of others.

    Args: places: What their paths inside of funcgrad begin with.
    """
    starts = tuple(_OWN_ROOTS[0] + place.replace("/", _SEPARATOR) for place in places)
    return any(frame.f_code.co_filename.startswith(starts) for frame in frames_to_user())


def called_function(folder: str) -> str | None:
    """Name of the function in a folder of funcgrad that the user's line has called."""
    root = _OWN_ROOTS[0] + folder + _SEPARATOR
    frames = [f for f in frames_to_user() if f.f_code.co_filename.startswith(root)]
    return frames[-1].f_code.co_name if frames else None


def requesting_function() -> str:
    """Name of the function that called the caller of this one."""
    return sys._getframe(2).f_code.co_name


_SUBSCRIPTS = ("BINARY_SUBSCR", "BINARY_SLICE")


def is_called_by_subscript() -> bool:
    """Whether the caller of this function's caller is at an expression ``a[b]``."""
    frame = sys._getframe(2)
    code, place = frame.f_code.co_code, frame.f_lasti
    name = dis.opname[code[place]]
    # Since Python 3.14 it is an operator like others, told apart by its argument.
    return name in _SUBSCRIPTS or (
        name == "BINARY_OP" and dis._nb_ops[code[place + 1]][0] == "NB_SUBSCR"  # type: ignore[attr-defined]
    )


def is_called_by_scipy() -> bool:
    """Whether SciPy's code runs between the user's line and this call."""
    return any(f.f_code.co_filename.startswith(_OWN_ROOTS[2]) for f in frames_to_user())


def is_called_by_sparse_product() -> bool:
    """Whether the caller of this function's caller is a product of one of SciPy's matrices."""
    code = sys._getframe(2).f_code
    return code.co_name == "_matmul_dispatch" and code.co_filename.startswith(_OWN_ROOTS[2])


def location_of(traceback: TracebackType | None) -> SourceLocation | None:
    """The user's line, the innermost one that an exception passed."""
    found: dict[int, SourceLocation] = {}
    while traceback is not None:
        code = traceback.tb_frame.f_code
        found[_owner(code)] = SourceLocation(code, traceback.tb_lineno or code.co_firstlineno)
        traceback = traceback.tb_next
    return found.get(_USERS) or found.get(_INSTALLED)


def is_raised_by_us(traceback: TracebackType | None) -> bool:
    """Whether an exception was raised by funcgrad, NumPy or SciPy."""
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return is_own(traceback.tb_frame.f_code)
