"""Steps of collectives along axes of processes: what one message does.

Collectives (`funcgrad.primitives.collectives`) say what lanes tell each other. Where lanes are
processes, each is made of at most one of these steps and of ordinary operations that bring axes
into order. A step works on whole contiguous arrays, with the processes along the first axis. It is
an effect: all processes of the axis take part, in the same order. They have no derivatives of
their own, as only programs whose derivatives were taken are made of them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from funcgrad.base.ranks import Ranks
from funcgrad.core.avals import ShapedArray, shaped
from funcgrad.core.primitive import Primitive
from funcgrad.lowering import Array, Constant, Extern, Form, NativeCall, Reshape, Routine


class RankStep(Primitive):
    """Base of the steps.

    Attributes:
        ranks: The processes.
    """

    ranks: Ranks

    is_effectful = True

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        return (self.ranks,)

    def form(self, result: ShapedArray, x: ShapedArray, calls: tuple[NativeCall, ...]) -> Form:
        """Native calls of ``(x, result)``, or the evaluation."""
        if not calls:
            return Extern()
        arrays = (Array(x.shape, x.dtype), Array(result.shape, result.dtype))
        return Routine(arrays, (1,), calls)

    def refusal(self, operand: int, value: int, position: int, *avals: Any, **_: Any) -> Exception:
        return self.ranks.failure(self.name, value)


class RankMessage(RankStep):
    """Base of the steps that may go on while other steps run.

    Attributes:
        in_background: Whether other steps run until somebody reads the result.
    """

    in_background: bool = False

    operation: ClassVar[str]

    def as_message(self, group: int = 0, in_background: bool = False) -> Primitive | None:
        if group or not self.ranks.has_background:
            return None
        return replace(self, in_background=in_background)

    def params(self) -> dict[str, Any]:
        own: dict[str, Any] = {"ranks": self.ranks}
        return own | {"in_background": True} if self.in_background else own

    def lower(self, x: ShapedArray) -> Form:
        operation = self.operation + " in background" * self.in_background
        return self.form(self.abstract_eval(x), x, self.ranks.native(operation, x))


class RankTotal(RankMessage):
    """The sum over processes.

    Attributes:
        message_group: As of `Primitive.message_group`.
    """

    message_group: int = 0

    name = "psum"
    operation = "total"
    agrees = True

    def as_message(self, group: int = 0, in_background: bool = False) -> Primitive | None:
        if not self.ranks.has_background:
            return None
        return replace(self, message_group=group, in_background=in_background)

    def params(self) -> dict[str, Any]:
        own = super().params()
        return own | {"group": self.message_group} if self.message_group else own

    def impl(self, x: Any) -> Any:
        return self.ranks.total(x)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x.strong()


class RankGather(RankMessage):
    """The arrays of all processes, stacked."""

    name = "all_gather"
    operation = "gathered"
    agrees = True

    def impl(self, x: Any) -> Any:
        return self.ranks.gathered(x)

    def as_message(self, group: int = 0, in_background: bool = False) -> Primitive | None:
        return super().as_message(group, in_background) if self.ranks.size > 1 else None

    def lower(self, x: ShapedArray) -> Form:
        return super().lower(x) if self.ranks.size > 1 else Reshape()

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return shaped((self.ranks.size, *x.shape), x.dtype)


class RankPart(RankMessage):
    """The sum over processes, of which each gets the element of its number."""

    name = "psum_scatter"
    operation = "part_of_total"
    agrees = False

    def as_message(self, group: int = 0, in_background: bool = False) -> Primitive | None:
        if in_background and not self.ranks.has_scattered_background:
            return None
        return super().as_message(group, in_background)

    def impl(self, x: Any) -> Any:
        return self.ranks.part_of_total(x)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return shaped(x.shape[1:], x.dtype)


class RankHalf(RankMessage):
    """One half of an array added to the same half of another process's, which gets the other half.

    Attributes:
        distance: Between the numbers of both; the higher one gets the second half.
    """

    distance: int = 1

    name = "psum_scatter"
    operation = "half_of_total"
    agrees = False

    def as_message(self, group: int = 0, in_background: bool = False) -> Primitive | None:
        return None if in_background else super().as_message(group)

    @property
    def partner(self) -> int:
        """The number of the other process."""
        return self.ranks.index ^ self.distance

    def halves(self, n: int) -> tuple[int, int]:
        """Begins of the own half of ``n`` elements, and of the other one."""
        return (n // 2, 0) if self.ranks.index & self.distance else (0, n // 2)

    def impl(self, x: Any) -> Any:
        half = len(x) // 2
        own, other = (x[start : start + half] for start in self.halves(len(x)))
        return np.add(own, self.ranks.passed(other, self.partner, self.partner))

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return shaped((x.shape[0] // 2, *x.shape[1:]), x.dtype)

    def lower(self, x: ShapedArray) -> Form:
        calls = self.ranks.native(self.operation, x, self.partner, *self.halves(x.size))
        return self.form(self.abstract_eval(x), x, calls)


class RankExchange(RankStep):
    """Element ``i`` goes to process ``i``; what arrives, in the order of the senders."""

    name = "all_to_all"
    agrees = False

    def impl(self, x: Any) -> Any:
        return self.ranks.exchanged(x)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x.strong()

    def lower(self, x: ShapedArray) -> Form:
        return self.form(x, x, self.ranks.native("exchanged", x))


class RankPass(RankStep):
    """Receive the values of another process; undefined if there is none.

    Attributes:
        pairs: Numbers of senders and receivers.
    """

    pairs: tuple[tuple[int, int], ...]

    name = "ppermute"
    agrees = False

    @property
    def destination(self) -> int | None:
        return dict(self.pairs).get(self.ranks.index)

    @property
    def source(self) -> int | None:
        return {receiver: sender for sender, receiver in self.pairs}.get(self.ranks.index)

    def impl(self, x: Any) -> Any:
        return self.ranks.passed(x, self.destination, self.source)

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x.strong()

    def lower(self, x: ShapedArray) -> Form:
        calls = self.ranks.native("passed", x, self.destination, self.source)
        return self.form(x, x, calls)


class RankIndex(Primitive):
    """The number of this process, an int32.

    Attributes:
        ranks: The processes.
    """

    ranks: Ranks

    name = "axis_index"
    agrees = False

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        return (self.ranks,)

    def impl(self) -> Any:
        return np.int32(self.ranks.index)

    def abstract_eval(self) -> ShapedArray:
        return shaped((), np.dtype(np.int32))

    def lower(self) -> Form:
        return Constant()
