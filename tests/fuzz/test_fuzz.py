"""Random programs: a bounded number in every run, a million in a night (`tests.nightly`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.fuzz import properties, running
from tests.fuzz.guards import survives
from tests.fuzz.language import LAYOUTS, Program, Step, argument
from tests.fuzz.properties import CHEAP, COMPILED, Different, check, compare, holds
from tests.fuzz.running import alike, checked, problem, run
from tests.fuzz.shrinking import shrunk, without_unused
from tests.fuzz.writing import ANYWHERE, programs, seeded


def report(failures: Any) -> str:
    return "\n".join(map(str, failures))


def test_programs_without_the_compiler() -> None:
    _, failures = run(0, 50, 60.0, compiled_every=0)
    assert not failures, report(failures)


@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(s, marks=pytest.mark.nightly) for s in range(4, 60))]
)
def test_programs_with_the_compiler(seed: int) -> None:
    assert not list(checked(seed, list(COMPILED)))


@settings(max_examples=5)
@given(programs("f8", layouts=ANYWHERE, laws=1, nesting=1, most=4))
def test_properties_of_what_hypothesis_draws(program: Program) -> None:
    for name in CHEAP:
        error = holds(name, program)
        if error is not None:
            raise error


# The tool itself.


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_number_has_its_turn(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "run_batch", fails_at_every_ninth)
    monkeypatch.setattr(running, "reduced", lambda seed, name, message, _: seed)
    done, found = run(1000, 100, 60.0, jobs, compiled_every=9, most=1000)
    assert done == 100
    assert sorted(found) == [seed for seed in range(1000, 1100) if seed % 9 == 0]


def fails_at_every_ninth(first: int, last: int, compiled_every: int) -> list[Any]:
    return [(s, "", f"{s} failed") for s in range(first, last) if s % compiled_every == 0]


def test_programs_are_the_same_for_the_same_seed() -> None:
    for seed in range(20):
        first, second = seeded(seed), seeded(seed)
        assert first.as_test("compiled") == second.as_test("compiled")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_keep_types_and_values(layout: str) -> None:
    for shape in ((), (3,), (2, 3), (0, 2), (1,)):
        for dtype in ("f8", "f4", "c16", "i4", "?"):
            x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
            found = LAYOUTS[layout](x)
            assert (found.shape, found.dtype) == (x.shape, x.dtype)
            if not layout.startswith("one"):
                np.testing.assert_array_equal(found, x)
    x = LAYOUTS["misaligned"](np.arange(3.0))
    assert not x.flags.aligned
    assert not LAYOUTS["read-only"](np.arange(3.0)).flags.writeable


def broken(program: Program) -> None:
    """Sines of anything do not exist, says this property."""
    if any("np.sin(" in step.text for step in program.every()):
        raise Different("there is a sine")


def test_failures_are_shrunk_and_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(properties.PROPERTIES, "broken", broken)
    seeds = (s for s in range(2000) if any("np.sin({0})" in x.text for x in seeded(s).every()))
    for _ in range(3):
        seed = next(seeds)
        small = shrunk(seeded(seed), lambda p: holds("broken", p) is not None, 20.0)
        assert len(list(small.every())) <= 2, small
        assert len(small.outputs) == 1
    # The property looks into steps, which a pasted test does not have: another one for that.
    program = without_unused(seeded(seed))
    scope: dict[str, Any] = {"np": np, "argument": argument, "check": check}
    exec(program.as_test("traced") + "\ntest_found()", scope)


@pytest.mark.parametrize(
    ("found", "is_equal"),
    [
        (complex(np.inf, 1 + 1e-15), True),
        (complex(np.inf, 1.001), False),
        (complex(-np.inf, 1), False),
        (complex(2.0, 1), False),
        (complex(np.nan, 1), False),
    ],
)
def test_the_finite_part_of_an_infinite_number_is_rounded(found: complex, is_equal: bool) -> None:
    arrays = np.array([found, 3.0]), np.array([complex(np.inf, 1), 3.0])
    if is_equal:
        compare(*arrays, 1e-9, 1.0, "")
    else:
        with pytest.raises(Different):
            compare(*arrays, 1e-9, 1.0, "")


def test_blas_makes_infinite_products_nan() -> None:
    """As found by program 26200224: NumPy's sum of the same products is infinite, its ``@`` NaN."""
    x = np.array([[1 + 1j, complex(-np.inf, 1)]], np.complex64)
    with np.errstate(invalid="ignore"):
        nan, infinite = x[:, ::-1] @ x.T, np.sum(x[:, ::-1] * x, axis=1)[:, None]
    if np.isnan(nan).all():
        compare(infinite, nan, 1e-5, 1.0, "")
        with pytest.raises(Different):
            compare(np.ones_like(nan), nan, 1e-5, 1.0, "")


def test_a_wrong_result_is_found_in_a_pasted_program() -> None:
    def f(m: Any, v0: Any) -> Any:
        return (v0 * (2.0 if type(v0) is np.ndarray else 2.5),)

    with pytest.raises(Different, match="jit"):
        check("compiled", f, argument(np.array([1.0, 2.0])))
    with pytest.raises(Different, match="jvp"):
        check("traced", f, argument(np.array([1.0, 2.0])))


def test_shrinking_keeps_to_what_was_found() -> None:
    found = "ShapeError: y[index] = value: the indexed part of f64[7,1,1] has shape (4, 0), to"
    assert alike("ShapeError: y[index] = value: the indexed part of f64[2] has shape (1, 0)", found)
    assert not alike("ShapeError: fori_loop(f16_0): the carry must keep its types.", found)
    assert alike("Different: lane 1 of arguments (0, 1): 3", "Different: lane 0 of arguments (0)")
    assert not alike("Different: jvp: 1.0 instead of 2.0", "Different: jit: 1.0 instead of 2.0")
    assert not alike("", found)


def test_a_fault_ends_a_child_only() -> None:
    assert survives(lambda: None) == ""
    assert survives(lambda: 1 / 0) == "ZeroDivisionError: division by zero"  # type: ignore[arg-type]
    program = Program({0: argument(np.ones(3))}, (Step(1, "np.sin({0})", (0,)),), (1,))
    assert problem("compiled", replace(program, steps=(Step(1, "{out} = {0} * 2", (0,)),))) == ""
