"""Elements of stacks that are read in turn, as rows of one array.

A re-rolled loop leaves its results in stacks. What reads their elements one by one, those of a few
stacks in turn, reads slices of these, interleaved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.core.program import Atom, Var
from funcgrad.higher_order.loop_body import ScannedWindows
from funcgrad.primitives.shape import Concatenate, Slice, reshape, shape_of

LEAST_TURNS = 4
"""How often each stack must have its turn."""

_MOST_PERIODS = 4
"""How many numbers of stacks are tried."""


@dataclass(frozen=True)
class Element:
    """One element of what a scan has stacked."""

    stack: Var
    index: int


Resolved = Atom | Element


@dataclass(frozen=True)
class Turns:
    """Rows of stacks, one of each in turn.

    Args:
        parts: The stacks, and which of their rows.
        size: How many rows.
    """

    parts: tuple[tuple[Var, ScannedWindows], ...]
    size: int

    @property
    def stacks(self) -> list[Var]:
        """The stacks, each once."""
        return list(dict.fromkeys(stack for stack, _ in self.parts))

    def rows(self, read: Callable[[Var], Any]) -> Any:
        """The rows as one array.

        Args: read: Gives the value of a stack.
        """
        count, rest = divmod(self.size, len(self.parts))
        each = [
            read(stack)
            if windows.step == 1 and count == stack.aval.shape[0]
            else windows.rows(read(stack), count)
            for stack, windows in self.parts
        ]
        if len(each) == 1:
            return each[0]
        shape = each[0].shape[1:]
        turns = Concatenate(1).bind(*(reshape(x, (count, 1, *shape)) for x in each))
        whole = reshape(turns, (count * len(each), *shape))
        if not rest:
            return whole
        last = [
            _windows(Element(stack, windows.starts[0] + count * windows.step), 1).rows(
                read(stack), 1
            )
            for stack, windows in self.parts[:rest]
        ]
        return Concatenate(0).bind(whole, *last)


def parts_of(found: Sequence[Resolved]) -> list[Resolved | Turns]:
    """Names, of which those of neighbours are one that are elements read in turn.

    Args: found: What is read, one after the other.
    """
    parts: list[Resolved | Turns] = []
    elements: list[Element] = []
    for name in found:
        if type(name) is Element:
            elements.append(name)
        else:
            parts += _parts_of_elements(elements)
            parts.append(name)
            elements = []
    return parts + _parts_of_elements(elements)


def _parts_of_elements(found: list[Element]) -> list[Resolved | Turns]:
    """Parts of elements alone: from each place on as many as are read in turn."""
    following: dict[Var, list[int]] = {}
    """For each stack the places where it is read, the last one first."""
    for place in reversed(range(len(found))):
        following.setdefault(found[place].stack, []).append(place)
    parts: list[Resolved | Turns] = []
    start = 0
    while start < len(found):
        later = following[found[start].stack]
        while later and later[-1] <= start:
            later.pop()
        periods = [place - start for place in reversed(later[-_MOST_PERIODS:])]
        each = [turns for p in periods if (turns := _in_turn(found, start, p)) is not None]
        longest = max(each, key=lambda turns: turns.size, default=None)
        parts.append(longest or found[start])
        start += 1 if longest is None else longest.size
    return parts


def _in_turn(found: list[Element], start: int, period: int) -> Turns | None:
    """The most elements that are read in turn from a place on, of so many stacks."""
    far = start + (LEAST_TURNS - 1) * period
    if far >= len(found) or found[far].stack is not found[start].stack:
        return None
    first = found[start : start + period]
    if len({x.stack.aval.shape[1:] for x in first}) > 1:  # parts of different lengths of one array
        return None
    second = found[start + period : start + 2 * period]
    steps = [y.index - x.index for x, y in zip(first, second, strict=True)]
    size = period
    while start + size < len(found):
        turn, i = divmod(size, period)
        x, step = found[start + size], steps[i]
        is_next = x.stack is first[i].stack and x.index == first[i].index + turn * step
        if not is_next or not step:
            break
        size += 1
    if size < LEAST_TURNS * period:
        return None
    return Turns(tuple((x.stack, _windows(x, n)) for x, n in zip(first, steps, strict=True)), size)


def stacks_of(part: Resolved | Turns) -> Sequence[Any]:
    """Names that one of `parts_of` is made of."""
    if type(part) is Turns:
        return part.stacks
    return [part.stack if type(part) is Element else part]


def value_of(part: Resolved, read: Callable[[Any], Any]) -> Any:
    """Value of a name.

    Args:
        part: The name.
        read: Gives the value of a stack, or of what is no element of one.
    """
    return element_of(read(part.stack), part.index) if type(part) is Element else read(part)


def rows_of(parts: Sequence[Resolved | Turns], read: Callable[[Any], Any]) -> Any:
    """All of them, as the rows of one array."""

    def rows(part: Resolved | Turns) -> Any:
        if type(part) is Turns:
            return part.rows(read)
        value = value_of(part, read)  # type: ignore[arg-type]
        return reshape(value, (1, *shape_of(value)))

    each = [rows(part) for part in parts]
    return each[0] if len(each) == 1 else Concatenate(0).bind(*each)


def element_of(stack: Any, index: int) -> Any:
    """One element of the value of a stack."""
    shape = stack.shape
    starts = (index, *(0 for _ in shape[1:]))
    window = Slice(starts, (index + 1, *shape[1:]), (1,) * len(shape))
    return reshape(window.bind(stack), shape[1:])


def _windows(first: Element, step: int) -> ScannedWindows:
    """Elements of a stack, from one on."""
    shape = first.stack.aval.shape[1:]
    starts = (first.index, *(0 for _ in shape))
    return ScannedWindows(starts, (1, *shape), (1,) * len(starts), 0, step)
