"""Where in the user's code something happened.

A location is taken at every staged equation, so taking one must be cheap: it keeps a code object
and a line number and reads no file, and a line has one location however often it runs. Text is
only looked up when a message is made.
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
_MAX_CODES = 1 << 16
_stand_ins: dict[CodeType, str] = {}
F = TypeVar("F", bound=Callable[..., Any])


class SourceLocation:
    """A line of the user's code.

    Args:
        code: Code object of the user's function.
        line: Line number in its file.
    """

    __slots__ = ("code", "line")

    def __init__(self, code: CodeType, line: int) -> None:
        self.code = code
        self.line = line

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


class _Code:
    """What is known of a code object.

    Attributes:
        code: The object; kept, so that its identity is not used twice. Equal ones may be of
            different files.
        is_internal: Whether it belongs to funcgrad, NumPy or SciPy.
        carrier: The local variable with the earlier line that a function `stands_for`.
        lines: The locations in it that have been taken.
    """

    __slots__ = ("carrier", "code", "is_internal", "lines")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        name = code.co_filename
        self.is_internal = name.startswith(_INTERNAL_ROOTS) or name.endswith(_INTERNAL_FILES)
        self.carrier = _stand_ins.get(code)
        self.lines: dict[int, SourceLocation] = {}

    def location(self, line: int) -> SourceLocation:
        found = self.lines.get(line)
        if found is None:
            found = self.lines[line] = SourceLocation(self.code, line)
        return found


_codes: dict[int, _Code] = {}


def _known(code: CodeType) -> _Code:
    found = _codes.get(id(code))
    if found is None:
        if len(_codes) >= _MAX_CODES:
            _codes.clear()
        found = _codes[id(code)] = _Code(code)
    return found


def _is_internal(code: CodeType) -> bool:
    return _known(code).is_internal


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


def current_location() -> SourceLocation | None:
    """The innermost line outside funcgrad, NumPy and SciPy that is executing now.

    A function that `stands_for` an earlier line counts as that line.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        known = _known(frame.f_code)
        if not known.is_internal:
            return known.location(frame.f_lineno)
        if known.carrier is not None:
            earlier = frame.f_locals.get(known.carrier)
            if earlier is not None:
                found: SourceLocation | None = earlier.source
                return found
        frame = frame.f_back
    return None


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
