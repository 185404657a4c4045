"""Tuned numbers stand in one file of the compiler."""

from __future__ import annotations

import ast
from pathlib import Path

import funcgrad.compiler
from funcgrad.compiler import machine
from funcgrad.compiler.machine import CACHES, MEMORY_BYTES_PER_CYCLE, VECTOR_BYTES, cycles_of_moving

COMPILER = Path(funcgrad.compiler.__path__[0])

PLANNERS = (
    *COMPILER.glob("nest/*.py"),
    *COMPILER.glob("loops/**/*.py"),
    *(COMPILER / "runtime" / f"{name}.py" for name in ("matmul", "routines")),
    COMPILER / "pipeline.py",
)
"""Files that decide how something is computed."""

STRUCTURE = {
    "places.py": {"NOWHERE"},  # a place that there is not
    "segment.py": {"_LOOK_BACK"},
    "bounds.py": {"STEPS"},
    "split.py": {"MOST_PARTS", "MOST_RANGES"},  # room in tables
    "pipeline.py": {"ATTEMPTS", "_ENDLESS"},
    "language.py": {"SCOPES"},
    "elements.py": {"_LN2"},
    "fourier.py": {"RADICES"},
    "selection.py": {"AT_A_TIME"},  # lanes that one comparison with a threshold looks at
    "small_matrices.py": {"ARRAYS"},
    "unswitch.py": {"FARTHEST"},  # numbers whose differences have room in 64 bits
}
"""Numbers that say how something is represented, or how far passes look."""


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


def test_no_other_file_that_plans_holds_a_tuned_number() -> None:
    found = {path.name: numbers(path) for path in PLANNERS if numbers(path)}
    assert found == STRUCTURE


def test_there_are_at_most_thirty() -> None:
    assert len(numbers(Path(machine.__file__))) <= 30


def test_bytes_move_as_fast_as_the_cache_that_has_room_for_twice_as_many() -> None:
    for size, rate in CACHES:
        assert cycles_of_moving(size // 2) == VECTOR_BYTES / rate
        assert cycles_of_moving(size // 2 + 1) > VECTOR_BYTES / rate
    assert cycles_of_moving(1 << 40) == VECTOR_BYTES / MEMORY_BYTES_PER_CYCLE
