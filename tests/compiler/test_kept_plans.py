"""Plans on disk: the same tables of steps as if they were planned again, or none."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.compiler import fingerprints, kept_plans, pipeline
from funcgrad.compiler.fingerprints import fingerprint
from funcgrad.compiler.nest.lower import simplified
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.executable import Executable, StepTable
from funcgrad.higher_order.remembered import forget_all

pytestmark = pytest.mark.lean

RNG = np.random.default_rng(0)
X = RNG.random((6, 8))
LARGE = RNG.random((700, 900))
MANY = RNG.random((40, 5, 5))
LONG = RNG.random(64)
TABLE = RNG.random((6, 8))
ROOT = Path(kernel_store.__file__).parents[3]


def looped(x: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        c = np.where(c > row, c, np.roll(c, 1)) * 0.5
        return lax.cond(np.sum(c) > 1, lambda c: c - 0.1, lambda c: c + 0.1, c), c

    return lax.scan(step, np.ones(8), x)


def until_small(x: Any) -> Any:
    return lax.while_loop(lambda c: np.max(c) > 0.1, lambda c: c.at[1:].set(c[:-1] * 0.5) * 0.9, x)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scalars": (lambda x: x * 3 + 2**40, (2,)),
    "numbers like addresses": (lambda x: (x[:3] + (1 << 45), x * 1e-300), (np.arange(9),)),
    "elementwise": (lambda x: (np.sin(x) * TABLE, x.sum(0), x.T.reshape(-1)), (X,)),
    "gradient": (fg.value_and_grad(lambda x: np.sum(np.tanh(x[1:] - x[:-1]) ** 2)), (X,)),
    "loop": (looped, (X,)),
    "gradient of a loop": (fg.grad(lambda x: np.sum(looped(x)[1])), (X,)),
    "endless loop": (until_small, (X,)),
    "threads": (lambda x: (np.exp(x).sum(), np.cumsum(x, 1), x @ x.T), (LARGE,)),
    "indices": (lambda x, i: (x[i], x.at[i].add(1.0)), (X, np.array([2, 0, 2]))),
    "small matrices": (lambda a: np.linalg.solve(a, a[:, 0, :, None]), (MANY + 5 * np.eye(5),)),
    "transform": (lambda x: np.fft.fft(x) * np.arange(64), (LONG,)),
    "convolution": (
        lambda x, k: lax.conv(x, k, (1, 1), "SAME"),
        (RNG.random((2, 3, 16, 16)), RNG.random((4, 3, 3, 3))),
    ),
    "complex": (lambda x: np.abs(np.exp(1j * x)) + np.complex64(2), (X,)),
    "integers": (lambda x: (x % 7) << 2 ^ (x // 3), (np.arange(40),)),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the facts of this machine and, so far, no plan."""
    monkeypatch.setenv("FUNCGRAD_REUSE_PLANS", "1")
    before = kernel_store.cache_dir()
    kernel_store.set_cache_dir(tmp_path / "kernels")
    caches = kernel_store._noted, kernel_store._environment, kernel_store._planner
    for cache in caches:
        cache.cache_clear()
    kernel_store._environment()
    kernel_store._noted.cache_clear()
    yield tmp_path / "kernels"
    kernel_store.set_cache_dir(before)
    for cache in caches:
        cache.cache_clear()


def made(monkeypatch: pytest.MonkeyPatch, f: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """An executable of a function, its results, and how often it was planned."""
    forget_all()
    found: list[Executable] = []
    planned = []
    with monkeypatch.context() as here:
        here.setattr(pipeline, "observers", [lambda program, executable: found.append(executable)])
        place = pipeline.place
        here.setattr(pipeline, "place", lambda *args: (planned.append(1), place(*args))[1])
        results = fg.jit(lambda *args: f(*args))(*args)
    return found[-1], results, len(planned)


def words_of(table: StepTable) -> list[Any]:
    """What a table says, without addresses of other tables and of arrays."""
    known = kernel_store.digests_by_address()
    rows = []
    for step in table.steps:
        words = [known.get(w, w) for w in (step.address, *step.words)]
        words = ["elsewhere" if isinstance(w, int) and w > 1 << 44 else w for w in words]
        rows.append((words, step.flushes, step.computes, [a.tolist() for a in step.held]))
    return rows


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_from_disk_is_the_plan(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, args = PROGRAMS[name]
    first, expected, n_planned = made(monkeypatch, f, *args)
    assert n_planned
    again, found, n_planned = made(monkeypatch, f, *args)
    assert not n_planned
    assert [words_of(t) for t in (*again.nested, again.table)] == [
        words_of(t) for t in (*first.nested, first.table)
    ]
    leaves = map(fg.tree_util.tree_leaves, (expected, found))
    for a, b in zip(*leaves, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
    assert again.plan.sources == first.plan.sources
    facts = "out_types", "in_types", "sources", "new_bytes", "is_native", "calls_libraries"
    assert [getattr(again, x) for x in facts] == [getattr(first, x) for x in facts]


def test_donated_arguments_keep_their_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        forget_all()
        x = LARGE.copy()
        f = fg.jit(lambda x: x * 1.0078125, donate_argnums=0)
        assert f(x) is x
        np.testing.assert_array_equal(x, LARGE * 1.0078125)


def test_errors_tell_the_line_of_this_process(folder: Path) -> None:
    messages = []
    for _ in range(2):
        forget_all()

        def f(x: Any, i: Any) -> Any:
            return np.sin(x)[i] * 1.015625

        with pytest.raises(IndexError) as caught:
            fg.jit(f)(LONG, np.array([3, 99]))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "99" in messages[1]
    assert "test_kept_plans.py" in messages[1]


def test_what_is_damaged_is_planned_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    f, args = PROGRAMS["gradient"]
    before = set(folder.glob("*.facts"))
    made(monkeypatch, f, *args)
    (plan,) = set(folder.glob("*.facts")) - before
    content = plan.read_bytes()
    assert made(monkeypatch, f, *args)[2] == 0
    plan.write_bytes(content.replace(b'"words"', b'"wards"', 1)[:-1] + b" ")
    assert made(monkeypatch, f, *args)[2]
    assert plan.read_bytes() == content
    assert made(monkeypatch, f, *args)[2] == 0
    plan.chmod(0o666)  # anybody may have written it
    assert made(monkeypatch, f, *args)[2]


def test_a_plan_without_its_kernels_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    f, args = PROGRAMS["gradient"]
    made(monkeypatch, f, *args)
    monkeypatch.setattr(kernel_store, "_ADDRESSES", {})
    for path in folder.glob("*.o"):
        path.unlink()
    _, results, n_planned = made(monkeypatch, f, *args)
    assert n_planned
    np.testing.assert_allclose(results[1], f(*args)[1])


@pytest.mark.parametrize("f", [np.sort, lambda x: fg.pure_callback(np.sin, x, x)])
def test_plans_with_objects_of_this_process_are_not_kept(
    f: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(made(monkeypatch, f, LONG)[2] for _ in range(2))


def text_of(f: Callable[..., Any], *args: Any) -> str | None:
    found = fingerprint(simplified(fg.jit(f).trace(*args).program))
    return None if found is None else found.text


def test_fingerprints_tell_programs_apart() -> None:
    x = np.linspace(0.0, 1.0, 5)
    table = np.arange(5.0)
    other = table.copy()
    other[3] = np.nextafter(3.0, 4.0)
    programs = [
        lambda x: x + 1.0,
        lambda x: x + 2.0,
        lambda x: x - 1.0,
        lambda x: x + np.float32(1),
        lambda x: (x + 1.0, x),
        lambda x: x + table,
        lambda x: x + other,
        lambda x: x[1:],
        lambda x: x[:-1],
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * 0.5, x),
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * 0.25, x),
        lambda x: lax.fori_loop(0, 4, lambda i, c: c * 0.5, x),
    ]
    texts = [text_of(f, x) for f in programs]
    texts += [text_of(programs[0], x[:4]), text_of(programs[0], x.astype(np.float32))]
    assert None not in texts
    assert len(set(texts)) == len(texts)
    assert text_of(lambda y: y + table.copy(), x) == texts[5]


def test_operations_of_users_have_no_fingerprint() -> None:
    class Mine(fg.extend.Primitive):
        def abstract_eval(self, x: Any) -> Any:
            return x

        def impl(self, x: Any) -> Any:
            return x

        lower = fg.extend.by_callback

    mine = Mine()
    assert text_of(lambda x: mine(x), LONG) is None
    assert text_of(lambda x: fg.pure_callback(lambda x: x, x, x), LONG) is None


SCRIPT = """
import sys
import numpy as np
import funcgrad as fg
from funcgrad import lax
from funcgrad.compiler import pipeline

arrange = pipeline.arrange
planned = []
pipeline.arrange = lambda *args, **more: (planned.append(1), arrange(*args, **more))[1]

@fg.jit
def f(x, i):
    def step(c, row):
        return np.roll(c, 1) * row.sum() + np.maximum(c, 0.5), c[i]
    return lax.scan(step, x[0], x @ x.T)

x = np.linspace(0.0, 1.0, 30).reshape(6, 5)
print(len(planned), [float(np.sum(y)) for y in f(x, 2)], bool(planned), "llvmlite" in sys.modules)
"""


def test_a_second_process_plans_nothing(tmp_path: Path) -> None:
    outputs = []
    for seed in "0", "1", "2":
        known = {"FUNCGRAD_CACHE_DIR": str(tmp_path / "kernels"), "FUNCGRAD_REUSE_PLANS": "1"}
        environment = os.environ | known | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
        )
        assert not run.returncode, run.stderr
        outputs.append(run.stdout.partition(" ")[2])
    first, *rest = outputs
    assert first.endswith("True True\n")
    assert rest == [first.replace("True True", "False False")] * 2


def test_a_switch_keeps_plans_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_REUSE_PLANS", "0")
    f, args = PROGRAMS["gradient"]
    monkeypatch.setattr(kept_plans.KeptPlan, "read", None)
    assert all(made(monkeypatch, f, *args)[2] for _ in range(2))


@pytest.mark.filterwarnings("ignore::funcgrad.errors.ImpureFunctionWarning")
def test_plans_keep_what_was_closed_over(folder: Path) -> None:
    """An error of a plan from disk is that of the constants that it was compiled with."""
    mask, x = np.array([True, False, True, False]), np.linspace(0.0, 1.0, 64)
    i = np.arange(4)

    def f(x: Any, i: Any, j: Any) -> Any:
        first = x[np.where(mask, i, 0)]
        return first, np.sin(x)[j] * 1.0234375

    messages = []
    for _ in range(2):
        mask[:] = True, False, True, False
        forget_all()
        g = fg.jit(f)
        g(x, i, i)
        mask[:] = False
        for given in ((i + 62, i), (i, i + 61)):
            with pytest.raises(IndexError) as caught:
                g(x, *given)
            messages.append(str(caught.value))
    assert messages[:2] == messages[2:]
    assert "first = x" in messages[0]
    assert "np.sin" in messages[1]


def test_constants_of_a_program_are_not_on_disk_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = RNG.random(50_000)
    before = set(folder.glob("*.facts"))
    first = made(monkeypatch, lambda x: (x * table).sum(), table)[1]
    (plan,) = set(folder.glob("*.facts")) - before
    assert plan.stat().st_size < table.nbytes // 4
    _, again, n_planned = made(monkeypatch, lambda x: (x * table).sum(), table)
    assert not n_planned
    assert first == again


NAMELESS = """
import numpy as np, funcgrad as fg

@fg.extend.primitive
class Mine(fg.extend.Primitive):
    def abstract_eval(self, x): return x
    def impl(self, x): return x * FACTOR
    def lower(self, *avals): return fg.extend.Pointwise("{0} * FACTOR")

found = fg.jit(lambda x: Mine()(x))(np.linspace(0.0, 1.0, 5))
"""


def test_classes_that_say_that_they_are_pythons_are_not(folder: Path) -> None:
    for factor in ("2.0", "3.0"):
        names: dict[str, Any] = {}
        exec(NAMELESS.replace("FACTOR", factor), names)  # globals without a name
        np.testing.assert_array_equal(names["found"], np.linspace(0.0, 1.0, 5) * float(factor))


def test_functions_of_nobody_have_no_fingerprint() -> None:
    description = fingerprints._Description()
    names: dict[str, Any] = {}
    exec("f = lambda x: x", names)
    borrowed = functools.wraps(simplified)(lambda program: program)
    for function in (names["f"], borrowed):
        with pytest.raises(fingerprints._UnknownError):
            description.told(function)


def test_numbers_are_told_apart_by_their_bits() -> None:
    description = fingerprints._Description()
    numbers = [0.0, -0.0, np.nan, -np.nan, np.inf, 1.0, 1, True, 1j, complex(np.nan, 1)]
    assert len({description.told(x) for x in numbers}) == len(numbers)


def test_what_was_derived_of_an_operation_is_no_part_of_it() -> None:
    f, x = (lambda x: np.sin(x) + 1.0), np.ones(3)
    before = text_of(f, x)
    fg.grad(lambda x: f(x).sum())(x)
    fg.grad(lambda x: x + 1.0)(3.0)  # in Python's numbers
    assert text_of(f, x) == before


def test_large_constants_are_not_copied_for_a_plan_that_is_not_kept() -> None:
    table = np.ones(fingerprints.MOST_BYTES // 8 + 1)
    program = simplified(fg.jit(lambda x: x + table).trace(1.0).program)
    kept = kept_plans.KeptPlan(program, (), 1)
    assert kept.program is program
    assert fingerprint(program) is None
