"""Strip mining: vectorise loops.

``strip_mine : loop -> loops``. A loop whose index stands for that of lanes becomes one over whole
vectors, without masks (``present``), and one over what is left. Accumulators have a vector in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from funcgrad.base.records import dataclass
from funcgrad.compiler.loops.language import (
    Apply,
    Assign,
    Body,
    Expression,
    For,
    If,
    Statement,
    Variable,
    assigned,
    call,
    rebuilt,
    renamed,
    rewritten,
)

Names = Mapping[str, str]
"""Other names of variables."""


@dataclass(frozen=True)
class Vectors:
    """The vectors of a loop.

    Attributes:
        wide: Elements that an iteration computes at once.
        narrow: The same for what is left then: those of one register, or 1, where a vector would
            wait for what was stored of the last one with a mask.
        is_rest: Whether folds take its elements as what is left of longer vectors.
        register: Elements of one register, if the results of several are to be folded one by one.
        is_split: Whether whole vectors have a loop of their own, without masks, even where those
            for what is left have the same length and take the same accumulators.
        is_overlapping: Whether the last vector ends with the row, so that none needs a mask: it
            computes again some of what the one before has computed.
        is_exact: Whether the loop ends with its last short vector, so that none needs a mask.
    """

    wide: int
    narrow: int
    is_rest: bool = False
    register: int = 0
    is_split: bool = False
    is_overlapping: bool = False
    is_exact: bool = False

    @property
    def has_rest(self) -> bool:
        """Whether a second loop takes what is left."""
        return self.wide != self.narrow


def strip_mine(
    loop: For, vectors: Vectors, suffixes: Iterator[str], carried: Names
) -> list[Statement]:
    """A loop in vectors.

    Args:
        loop: The loop, whose step is 1.
        vectors: The vectors.
        suffixes: Ends of names, so that each variable of a body is one value.
        carried: Variables that stay the same from one iteration to the next, or are read behind the
            loop, with their names in what is left.
    """
    made: list[Statement] = []
    m = Variable("m")
    start, own = loop.start, {*assigned(loop.body), loop.index} - {*carried}

    def present(x: Expression) -> Expression:
        match x:
            case Apply("present", (Variable(name), value, _)) if name == loop.index:
                return present(value)
        return rebuilt(x, present)

    def at(lanes: Expression, body: Body, names: Names) -> list[Statement]:
        suffix = next(suffixes)
        names = {**names, **{name: name + suffix for name in own}}
        return [Assign(names[loop.index], lanes), *renamed(body, names)]

    def over_whole(start: Expression, count: int, names: Names) -> Variable:
        """Append the loop over whole vectors from an index on; the index behind them."""
        whole = Variable(f"whole{next(suffixes)}" if made else "whole")
        made.append(Assign(whole.name, loop.stop - ((loop.stop - start) & (count - 1))))
        body = at(call("lanes", m, count), rewritten(loop.body, present), names)
        made.append(For(m.name, start, whole, count, body))
        return whole

    is_split = vectors.is_split and not vectors.is_overlapping
    if vectors.has_rest or is_split or vectors.is_exact:
        start = over_whole(start, vectors.wide, {})
    if vectors.narrow == 1:
        start = over_whole(start, vectors.wide // 4, {})
        return [*made, For(loop.index, start, loop.stop, 1, loop.body, is_cold=True)]
    names = carried if vectors.has_rest or vectors.is_rest else {}
    if vectors.is_exact:
        if vectors.has_rest:
            over_whole(start, vectors.narrow, names)
        return made
    if is_split and not vectors.has_rest:
        lanes = call("some_lanes", start, loop.stop, vectors.narrow)
        return [*made, If(start < loop.stop, at(lanes, loop.body, names))]
    lanes = call("first_lanes", m, loop.stop, vectors.narrow)
    if vectors.is_overlapping:
        lanes = call("lanes", call("minimum", m, loop.stop - vectors.narrow), vectors.narrow)
    return [*made, For(m.name, start, loop.stop, vectors.narrow, at(lanes, loop.body, names))]
