"""The primitive that runs a program compiled.

Differentiating, batching or staging a compiled call transforms its program, and compiles the
result; the memory on the program keeps that linear in the depth of nesting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from funcgrad.base import environment
from funcgrad.compiler.pipeline import compile_program
from funcgrad.compiler.runtime.executable import Executable
from funcgrad.core.avals import ShapedArray
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.primitive import BatchDim, Primitive, Value, is_linear, mapped_length
from funcgrad.core.program import Program, evaluate
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.higher_order.checked_programs import check_program
from funcgrad.higher_order.linearity import parted, together
from funcgrad.higher_order.series import taylor_of_call
from funcgrad.lowering import Call, Form
from funcgrad.observers.checks import Kinds
from funcgrad.observers.limits import Limits, current_limits, reset_limits, set_limits
from funcgrad.observers.nonfinite import WATCHED_FROM_START, watching
from funcgrad.passes.dce import without_dead
from funcgrad.transforms import programs

Mask = tuple[bool, ...]

STEPWISE = "stepwise"
"""Instead of `True`: functions are traced to programs, which are run operation by operation."""

LIMITED = "limited"
"""Instead of `False`: programs are compiled, and keep to `limits`."""

ALONG = "along"
"""Instead of `False`: programs are compiled for the axes of processes around."""

_disabled: ContextVar[bool | str] = ContextVar(
    "funcgrad_disable_jit",
    default=environment.is_on("FUNCGRAD_DISABLE_JIT")
    or (STEPWISE if WATCHED_FROM_START else False),
)


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Evaluate `jit` functions with NumPy, one operation at a time, within a block.

    Python then sees concrete values, so that ``print`` and a debugger work inside them.

    Args: disable: Whether to disable compilation.

    Example:
        >>> with fg.disable_jit():
        ...     y = fg.jit(lambda x: x + 1)(2.0)
        >>> y
        3.0
    """
    token = _disabled.set(disable or _how_compiled())
    try:
        yield
    finally:
        _disabled.reset(token)


how_jit_runs = _disabled.get
"""Answer of `is_jit_disabled`: `LIMITED` or `ALONG`; `False` where calls take the shortest way."""


def is_jit_disabled() -> bool | str:
    """Whether the current context evaluates without compiling: not `False`, maybe `STEPWISE`."""
    mode = _disabled.get()
    return False if mode in (LIMITED, ALONG) else mode


def _how_compiled() -> bool | str:
    """How `jit` runs where it compiles."""
    return LIMITED if current_limits() else ALONG if axes_in_scope() else False


@contextmanager
def along_processes() -> Iterator[None]:
    """A block in which compiled programs belong to the axes of processes around it."""
    mode = _disabled.set(_disabled.get() or ALONG)
    try:
        yield
    finally:
        _disabled.reset(mode)


@contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """Keep to limits within a block."""
    outer = current_limits()
    token = set_limits(limits if outer is None else limits.within(outer))
    mode = _disabled.set(is_jit_disabled() or LIMITED)
    try:
        yield
    finally:
        _disabled.reset(mode)
        reset_limits(token)


@contextmanager
def stepwise(enable: bool = True, is_sampled: bool = False) -> Iterator[None]:
    """Run programs operation by operation within a block; functions are traced to them as ever.

    Args:
        enable: Whether to do so.
        is_sampled: Whether rounds of long loops are compiled, most of those that come late.
    """
    mode = _disabled.get()
    if mode is not True:
        mode = STEPWISE if enable else _how_compiled()
    token = _disabled.set(mode)
    rounds = _rounds.set(defaultdict(Rounds) if is_sampled else None)
    try:
        yield
    finally:
        _rounds.reset(rounds)
        _disabled.reset(token)


_SEEN = 32
"""Rounds of a loop that are all seen; later, half as many each time that their number doubles."""


class Rounds:
    """Rounds of one loop, in all its calls, of which those that come late are sampled.

    Attributes:
        taken: How many there have been.
        due: The number of the one that is seen next.
    """

    def __init__(self) -> None:
        self.taken = self.due = 0

    @property
    def unseen(self) -> int:
        """How many come before the one that is seen next."""
        return self.due - self.taken

    def seen(self) -> None:
        """Count one that was evaluated operation by operation."""
        self.taken += 1
        self.due = self.taken + max(1, 2 ** self.taken.bit_length() // _SEEN) - 1


_rounds: ContextVar[defaultdict[Program, Rounds] | None] = ContextVar(
    "funcgrad_rounds", default=None
)
"""Rounds of loops in the block, by their bodies; ``None`` where every round is to be seen."""


def sampled_rounds(body: Program) -> Rounds | None:
    """The rounds of a loop, where they are sampled."""
    rounds = _rounds.get()
    return None if rounds is None else rounds[body]


@contextmanager
def watching_stepwise(kind: str, enable: bool) -> Iterator[None]:
    """Watch for "nan" or "inf" within a block; programs are run operation by operation then."""
    with watching(kind, enable) as kinds, stepwise(bool(kinds)):
        yield


def executable_of(
    program: Program,
    threads: int | None = None,
    memory: int | None = None,
    is_joined: bool = False,
    is_general: bool = False,
) -> Executable:
    """The compiled form of a program, compiled once for every number of threads and limit."""
    return program.memo(
        ("executable", threads, memory, is_joined, is_general),
        lambda: compile_program(program, (), threads, memory, is_joined, is_general),
    )


def run_program(
    program: Program, args: Sequence[Any], threads: int | None = None, memory: int | None = None
) -> Any:
    """Evaluate a program: compiled, unless that is disabled."""
    with using_trace(EVAL):
        if is_jit_disabled():
            return evaluate(program, args)
        return executable_of(program, threads, memory)(*args)


class ProgramCall(Primitive):
    """Run ``program``: what compiled calls and checkpoints have in common.

    Attributes:
        program: The program.
    """

    program: Program

    multiple_results = True
    is_composite = True
    taylor = taylor_of_call
    makes_no_nans = True

    @property
    def is_effectful(self) -> bool:  # type: ignore[override]
        return self.program.is_effectful

    def of(self, program: Program) -> ProgramCall:
        """A call of a program that is made from this one's."""
        return replace(self, program=program)

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return [a.strong() for a in self.program.out_avals]

    def lower(self, *avals: ShapedArray) -> Form:
        return Call(self.program)

    def pruned(self, used: Mask) -> tuple[ProgramCall, Mask, Mask]:
        """A call for some of the results, and which of the arguments it takes."""
        program, needed = without_dead(self.program, used)
        return self.of(program), needed, used

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        is_active = tuple(t is not None for t in tangents)
        derived = programs.jvp_program(self.program, is_active)
        results = self.of(derived.program).bind(*primals, *(t for t in tangents if t is not None))
        n = len(self.program.outputs)
        return results[:n], scatter(results[n:], derived.is_active_out)

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, Sequence[Any]]:
        inner = check_program(self.program, kinds)
        results = self.of(inner.program).bind(*args)
        return results[: inner.n_outputs], inner.found(results)

    def linear_parts(self, is_linear: Mask) -> list[tuple[Program, Mask]]:
        return [(self.program, is_linear)]

    def transposed(self, linear: Mask, is_active_ct: Mask) -> tuple[Program, Mask]:
        """The program of the transpose, and which linear inputs get cotangents."""
        derived = programs.transpose_program(self.program, linear, is_active_ct)
        return derived.program, derived.is_active_in

    def transpose(self, ct: Any, *args: Any) -> Sequence[Any]:
        mask = tuple(is_linear(a) for a in args)
        program, is_active_in = self.transposed(mask, tuple(c is not None for c in ct))
        known = [a for a in args if not is_linear(a)]
        results = self.of(program).bind(*known, *(c for c in ct if c is not None))
        return scatter(results, is_active_in)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = mapped_length(args, dims)
        derived = programs.batch_program(self.program, tuple(d is not None for d in dims), size)
        outs = self.of(derived.program).bind(*args)
        return outs, [0 if mapped else None for mapped in derived.is_mapped_out]


class Jit(ProgramCall):
    """Run ``program``, compiled.

    Attributes:
        program: The program.
        threads: How many threads large kernels may use; ``None`` for no limit. What is derived
            from the call keeps to it.
        memory: Bytes that a call may need besides its arguments; ``None`` for no limit. Programs
            that are derived from the call keep to it, each by itself.
    """

    threads: int | None = None
    memory: int | None = None

    @property
    def thread_limit(self) -> int | None:
        return self.threads

    def impl(self, *args: Any) -> Any:
        return run_program(self.program, args, self.threads, self.memory)

    def linearize(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Any, Any]:
        is_active = tuple(t is not None for t in tangents)
        return self._apply(programs.linearize_program(self.program, is_active), primals, tangents)

    def separate(self, args: Sequence[Value], is_linear: Sequence[bool]) -> list[Value]:
        split = programs.separate_program(self.program, tuple(is_linear))
        return together(*self._apply(split, *parted(args, is_linear)))

    def _apply(
        self,
        split: programs.LinearizedProgram,
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> tuple[Any, Any]:
        results = self.of(split.forward).bind(*primals)
        outs = results[: split.n_outputs]
        if not any(split.is_active_out):
            return outs, [None] * len(outs)
        residuals = [primals[i] if kind == "in" else results[i] for kind, i in split.residuals]
        nonzero = [t for t in tangents if t is not None]
        out_dots = self.of(split.tangent).bind(*residuals, *nonzero)
        return outs, scatter(out_dots, split.is_active_out)

    def params(self) -> dict[str, Any]:
        limits = {"threads": self.threads, "memory": self.memory}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        return {"name": self.program.name, **given, "program": self.program}


def scatter(values: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """The values at the places where ``mask`` holds, ``None`` elsewhere."""
    rest = iter(values)
    return [next(rest) if present else None for present in mask]
