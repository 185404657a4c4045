"""Processes that are not there: an axis whose messages a library of this file pretends to send.

All other processes have what this one has, so a sum is a multiple. Between beginning and end of a
message in the background, the library has overwritten the memory of the result, and at the end it
checks that nobody has written there, or to what is sent.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from funcgrad.base.ranks import Ranks
from funcgrad.core.axes import axis_scope
from funcgrad.higher_order.jit import along_processes
from funcgrad.lowering import Background, NativeCall, Ref

IN_PLACE = -1
NOTHING = 7
"""The word of a state where nothing is under way."""

_CALL = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 3)
_BEGIN = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 4)


def _word(address: int) -> Any:
    return ctypes.c_int64.from_address(address)


class Pretended(Ranks):
    """The processes.

    Attributes:
        log: What was called: names of operations and numbers of elements.
        under_way: Of messages in the background, by their numbers: what is sent, where it is, and
            where the result goes.
    """

    has_background = True

    def __init__(self, size: int = 2, in_place: bool = True) -> None:
        self.label = "data"
        self.size = size
        self.index = 0
        self.deterministic = False
        self.in_place = in_place
        self.is_stuck = False
        self.log: list[tuple[str, int]] = []
        self.under_way: dict[int, tuple[np.ndarray, int, np.ndarray]] = {}
        self.wrong: list[str] = []
        self._functions: list[Any] = []

    def total(self, x: Any) -> Any:
        return x * x.dtype.type(self.size)

    def native(self, operation: str, *details: Any) -> tuple[NativeCall, ...]:
        (x,) = details
        sent, received, state = Ref(0), Ref(1), Ref(2)
        if operation == "total":
            address = self._address(_CALL, lambda *words: self._total(x, *words))
            arguments = (sent, received, x.size)
            return (NativeCall("total", address, arguments, self._placed(arguments)),)
        assert operation == "total in background"
        address = self._address(_BEGIN, lambda *words: self._begin(x, *words))
        arguments = (sent, received, x.size, state)
        ask = (state, Ref(2, 1), 0)
        end = (state, 0, 0)
        background = Background(
            NativeCall("ask", self._address(_CALL, self._ask), ask, ask),
            NativeCall("end", self._address(_CALL, self._end), end, end),
            NOTHING,
        )
        placed = self._placed(arguments)
        return (NativeCall("begin", address, arguments, placed, background),)

    def _placed(self, arguments: tuple[int | Ref, ...]) -> tuple[int | Ref, ...]:
        return (IN_PLACE, *arguments[1:]) if self.in_place else ()

    def _address(self, kind: Any, function: Any) -> int:
        made = kind(function)
        self._functions.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value or 0

    def _array(self, x: Any, address: int) -> np.ndarray:
        raw = (ctypes.c_char * (x.size * x.dtype.itemsize)).from_address(address)
        return np.frombuffer(raw, x.dtype)

    def _total(self, x: Any, sent: int, received: int, n: int) -> int:
        self.log.append(("total", n))
        source = self._array(x, received if sent == IN_PLACE else sent)
        self._array(x, received)[...] = self.total(source)
        return 0

    def _begin(self, x: Any, sent: int, received: int, n: int, state: int) -> int:
        self.log.append(("begin", n))
        if _word(state).value != NOTHING:
            self.wrong.append("a state that is in use")
        result = self._array(x, received)
        data = self._array(x, received if sent == IN_PLACE else sent).copy()
        result[...] = 99
        number = 1000 + len(self.log)
        self.under_way[number] = data, sent, result
        _word(state).value = number
        return 0

    def _ask(self, state: int, flag: int, _: int) -> int:
        self.log.append(("ask", 0))
        _word(flag).value = 0
        if not self.is_stuck and len(self.log) % 2:
            self._finish(state)
        return 0

    def _end(self, state: int, *_: int) -> int:
        self.log.append(("end", 0))
        self._finish(state)
        return 0

    def _finish(self, state: int) -> None:
        number = _word(state).value
        if number == NOTHING:
            return
        data, sent, result = self.under_way.pop(number)
        if not np.all(result == 99):
            self.wrong.append("a result that somebody has written to")
        if sent != IN_PLACE and not np.array_equal(self._array(data, sent), data):
            self.wrong.append("an array that was written to while it was being sent")
        result[...] = self.total(data)
        _word(state).value = NOTHING


@contextmanager
def pretended(**options: Any) -> Iterator[Pretended]:
    """An axis of processes called "data"."""
    ranks = Pretended(**options)
    with axis_scope(ranks, ranks.size), along_processes():
        yield ranks
    assert not ranks.wrong
