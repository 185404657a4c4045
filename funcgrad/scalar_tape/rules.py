"""Rules for numbers as expressions, of which operators of traced numbers are written.

What an operation on two Python floats costs is mostly calls and look-ups. So the rule of such an
operation is given as text, which is put in the place where it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.core.facets import Facet

at_numbers: Facet[Callable[..., tuple[Any, ...] | None] | None] = Facet("at_numbers", None)
"""``at_numbers(x)`` or ``at_numbers(x, y)``: result and a partial derivative by each argument.

A short form of evaluation and JVP rule at Python's floats and float64 scalars. The derivatives are
finite floats, a factor of the tangent each. ``None`` where the rule does not apply.
"""

keeps_weak = Facet("keeps_weak", False)
"""Whether the result of weak arguments is weak, as that of Python's own operators."""


@dataclass(frozen=True, eq=False)
class NumberCode:
    """A result and its partial derivatives, as expressions of Python's floats.

    A rule applies where the result and the derivatives are finite and nothing is divided by zero.

    Args:
        out: The result, in ``x`` and, with a second argument, ``y``.
        slopes: For each argument the factor of its tangent, in ``x``, ``y`` and ``out``.
        where: A condition without which the rule does not apply.
        names: What the expressions refer to besides.
    """

    out: str
    slopes: tuple[str, ...]
    where: str = ""
    names: Mapping[str, Any] = field(default_factory=dict)

    def statements(self, then: Callable[[Sequence[str]], Sequence[str]]) -> list[str]:
        """Lines that follow the rule: they bind ``out`` and go on if the rule applies.

        Args: then: Lines to go on with, for expressions of the derivatives.
        """
        lines, depth = [], 0

        def add(text: str) -> None:
            lines.append("    " * depth + text)

        if self.where:
            add(f"if {self.where}:")
            depth += 1
        add(f"out = {self.out}")
        add("if isfinite(out):")
        depth += 1
        known = []
        for k, slope in enumerate(self.slopes):
            # Arguments and the result are known to be finite.
            if slope.isidentifier() or _is_number(slope):
                known.append(slope)
                continue
            add(f"slope{k} = {slope}")
            add(f"if isfinite(slope{k}):")
            depth += 1
            known.append(f"slope{k}")
        for line in then(known):
            add(line)
        return lines


number_code: Facet[NumberCode | None] = Facet("number_code", None)
"""The rule for numbers as text, if operators are to be written of it."""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def written(lines: Sequence[str], names: Mapping[str, Any], called: str) -> Any:
    """The function that lines of Python define, by the name ``called``."""
    space = {"isfinite": math.isfinite, **names}
    exec(compile("\n".join(lines), "<numbers>", "exec"), space)
    return space[called]


def guarded(lines: Sequence[str]) -> list[str]:
    """Lines after which nothing has happened if they divide by zero."""
    return ["try:", *("    " + line for line in lines), "except ZeroDivisionError:", "    pass"]


@lru_cache(4096)
def rule_of(code: NumberCode) -> Callable[..., tuple[Any, ...] | None]:
    """The rule as a function of one or two numbers."""
    arguments = ("x", "y")[: len(code.slopes)]
    lines = guarded(code.statements(lambda slopes: [f"return out, {', '.join(slopes)}"]))
    head = f"def rule({', '.join(arguments)}):"
    return written([head, *("    " + line for line in lines)], code.names, "rule")
