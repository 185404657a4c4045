"""Tuned numbers stand in one file of the compiler."""

from __future__ import annotations

import ast
from pathlib import Path

import funcgrad.compiler
from funcgrad.compiler import machine
from funcgrad.compiler.machine import CACHES, MEMORY_BYTES_PER_CYCLE, VECTOR_BYTES, cycles_of_moving

NEST = Path(funcgrad.compiler.__path__[0]) / "nest"

STRUCTURE = {
    "places.py": {"NOWHERE"},  # a place that there is not
    "segment.py": {"_LOOK_BACK"},
    "bounds.py": {"STEPS"},
    "split.py": {"MOST_PARTS", "MOST_RANGES"},  # room in tables
}
"""Numbers that say how something is represented, or how far passes look."""

PLANNERS = {"contractions.py", "slides.py", "strided.py"}
"""Passes that still hold numbers of their own."""


def numbers(path: Path) -> set[str]:
    """Module constants that are given as literal numbers."""
    found = set()
    for statement in ast.parse(path.read_text()).body:
        if not isinstance(statement, ast.Assign) or isinstance(statement.value, ast.Dict | ast.Set):
            continue
        parts = list(ast.walk(statement.value))
        is_number = any(
            isinstance(x, ast.Constant) and type(x.value) in (int, float) for x in parts
        )
        if is_number and not any(isinstance(x, ast.Name | ast.Call) for x in parts):
            found |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return found


def test_no_other_file_of_loop_nests_holds_a_tuned_number() -> None:
    found = {path.name: numbers(path) for path in NEST.glob("*.py") if path.name not in PLANNERS}
    assert {name: names for name, names in found.items() if names} == STRUCTURE


def test_there_are_at_most_thirty() -> None:
    assert len(numbers(Path(machine.__file__))) <= 30


def test_bytes_move_as_fast_as_the_cache_that_has_room_for_twice_as_many() -> None:
    for size, rate in CACHES:
        assert cycles_of_moving(size // 2) == VECTOR_BYTES / rate
        assert cycles_of_moving(size // 2 + 1) > VECTOR_BYTES / rate
    assert cycles_of_moving(1 << 40) == VECTOR_BYTES / MEMORY_BYTES_PER_CYCLE
