"""Where in the user's code something happened.

A location is taken at every staged equation, so taking one must be cheap: it keeps a code object
and a line number and reads no file. Text is only looked up when a message is made.
"""

from __future__ import annotations

import importlib.util
import linecache
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

_SEPARATOR = os.sep


def _folder_of(package: str) -> str:
    """Where a package lies, found without importing it: SciPy is loaded at its first use."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return os.path.dirname(os.path.abspath(spec.origin)) + _SEPARATOR


_INTERNAL_ROOTS = tuple(map(_folder_of, ("funcgrad", "numpy", "scipy")))
_INTERNAL_FILES = ("functools.py", "contextlib.py", "<__array_function__ internals>")
_is_internal_code: dict[CodeType, bool] = {}
_stand_ins: dict[CodeType, str] = {}
F = TypeVar("F", bound=Callable[..., Any])


class SourceLocation:
    """A line of the user's code: one object, however many equations it makes.

    Args:
        code: Code object of the user's function.
        line: Line number in its file.
    """

    __slots__ = ("code", "line")
    code: CodeType
    line: int

    def __new__(cls, code: CodeType, line: int) -> SourceLocation:
        # By identity: equal code objects may be of different files. A location keeps its code.
        key = (id(code), line)
        found = _locations.get(key)
        if found is None:
            if len(_locations) >= _MAX_LOCATIONS:
                _locations.clear()
            found = _locations[key] = super().__new__(cls)
            found.code = code
            found.line = line
        return found

    def __reduce__(self) -> Any:
        return SourceLocation, (self.code, self.line)

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
        return f"{os.path.basename(self.file)}:{self.line}"

    def __str__(self) -> str:
        text = self.text()
        return f"{self.short()}   {text}" if text else f"{self.short()} in {self.function}"


_locations: dict[tuple[int, int], SourceLocation] = {}
_MAX_LOCATIONS = 1 << 16


def _is_internal(code: CodeType) -> bool:
    known = _is_internal_code.get(code)
    if known is None:
        name = code.co_filename
        known = name.startswith(_INTERNAL_ROOTS) or name.endswith(_INTERNAL_FILES)
        _is_internal_code[code] = known
    return known


def stands_for(variable: str) -> Callable[[F], F]:
    """Mark a function that runs on behalf of an earlier line of the user's.

    Args:
        variable: Its local variable whose ``source`` is that line: an equation that it evaluates,
            or transposes.
    """

    def mark(function: F) -> F:
        _stand_ins[function.__code__] = variable
        return function

    return mark


def _location_for(frame: FrameType) -> SourceLocation | None:
    """The line that a marked function stands for."""
    carrier = frame.f_locals.get(_stand_ins[frame.f_code])
    return None if carrier is None else carrier.source


def current_location() -> SourceLocation | None:
    """The innermost line outside funcgrad, NumPy and SciPy that is executing now.

    A function that `stands_for` an earlier line counts as that line.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_internal(frame.f_code):
        if frame.f_code in _stand_ins:
            earlier = _location_for(frame)
            if earlier is not None:
                return earlier
        frame = frame.f_back
    return None if frame is None else SourceLocation(frame.f_code, frame.f_lineno)


def asking_library() -> str:
    """``"SciPy"`` if its code runs between the user's line and this call, else ``"NumPy"``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_internal(frame.f_code):
        if frame.f_code.co_filename.startswith(_INTERNAL_ROOTS[2]):
            return "SciPy"
        frame = frame.f_back
    return "NumPy"


def location_of(traceback: TracebackType | None) -> SourceLocation | None:
    """The innermost line outside funcgrad, NumPy and SciPy that an exception passed."""
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not _is_internal(code):
            found = SourceLocation(code, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
