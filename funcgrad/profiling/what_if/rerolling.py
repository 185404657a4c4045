"""Loops of Python as loops of the program, or unrolled."""

from __future__ import annotations

from collections.abc import Iterator

from funcgrad.api.staging import StagedFunction
from funcgrad.compiler.nest.lower import simplified
from funcgrad.compiler.pipeline import compile_program
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.higher_order.reroll import is_rerolling, reroll_loops
from funcgrad.profiling.what_if.trial import Subject, Trial, compared, trial


@trial("loops of Python")
def rerolling(subject: Subject) -> Iterator[Trial]:
    """The program with its loops of Python found again, or left unrolled: whichever it has not."""
    programs = []
    for enable in (is_rerolling(), not is_rerolling()):
        # A jitted function keeps its program; a new one has none.
        fresh = subject.remade(lambda f: f) or subject.f
        with reroll_loops(enable), using_trace(EVAL):
            staged = StagedFunction(fresh, subject.args, subject.kwargs, "what if")
            programs.append(staged.program)
    sizes = [len(simplified(program).equations) for program in programs]
    if sizes[0] == sizes[1]:
        return
    leaves = [*subject.leaves]
    runs = [compile_program(program) for program in programs]
    before, after = compared(lambda: runs[0](*leaves), lambda: runs[1](*leaves))
    ways = ("one loop", "unrolled")
    what = f"loops of Python {ways[sizes[1] > sizes[0]]}"
    yield Trial(
        "loops of Python", what, None, before, after, f"{sizes[0]} -> {sizes[1]} operations"
    )
