"""Functions are traced once, as long as what they can read is the same."""

from __future__ import annotations

import functools
import math
import operator
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.core.program import Program
from funcgrad.core.trace import Tracer
from funcgrad.higher_order import remembered as memory
from funcgrad.transforms import stage as staging

X = np.array([0.5, -1.0, 2.0])


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that are traced."""
    memory.forget_all()
    found: list[str] = []
    init = staging.StageTrace.__init__

    def counted(self: Any, parent: Any, what: str) -> None:
        found.append(what)
        init(self, parent, what)

    monkeypatch.setattr(staging.StageTrace, "__init__", counted)
    return found


def root(x: Any) -> Any:
    """A loop whose functions are made anew by every call."""
    start = (x, x)
    return lax.while_loop(
        lambda s: abs(s[0] * s[0] - s[1]) > 1e-12 * s[1],
        lambda s: ((s[0] + s[1] / s[0]) / 2, s[1]),
        start,
    )[0]


def squares(x: Any) -> Any:
    return np.sum(np.sin(x) ** 2)


checkpointed = fg.checkpoint(squares)

# What is called again and again, and the value at X or 2.0.
REPEATED: dict[str, Callable[[], Any]] = {
    "jit of a function": lambda: fg.jit(squares)(X),
    "jit of a lambda": lambda: fg.jit(lambda x: x * 2 + 1)(X),
    "jit of grad": lambda: fg.jit(fg.grad(squares))(X),
    "jit of vmap of jit": lambda: fg.jit(fg.vmap(fg.jit(lambda x: x * 3)))(X),
    "jit of a partial": lambda: fg.jit(functools.partial(np.add, 1.0))(X),
    "checkpoint": lambda: fg.grad(checkpointed)(X),
    "checkpoint made anew": lambda: fg.grad(fg.checkpoint(squares))(X),
    "checkpoint of a lambda": lambda: fg.grad(fg.checkpoint(lambda x: np.sum(x**3)))(X),
    "while_loop": lambda: root(2.0),
    "grad of while_loop": lambda: fg.grad(root)(2.0),
    "fori_loop": lambda: lax.fori_loop(0, 3, lambda i, c: c * 2.0 + i, 1.0),
    "scan": lambda: lax.scan(lambda c, x: (c + x, c), 0.0, X),
    "scan that closes over an array": lambda: lax.scan(lambda c, x: (c + X * x, None), X, X)[0],
    "grad of scan": lambda: fg.grad(lambda x: lax.scan(lambda c, y: (c * y, None), x, X)[0])(1.0),
    "map": lambda: lax.map(lambda x: np.cos(x), X),
    "cond": lambda: lax.cond(True, lambda x: x * 2.0, lambda x: 0, 3.0),
    "switch": lambda: lax.switch(1, [np.sin, np.cos, lambda x: -x], 3.0),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_calls_trace_nothing(name: str, traces: list[str]) -> None:
    first = REPEATED[name]()
    assert traces
    del traces[:]
    for _ in range(3):
        again = REPEATED[name]()
        for a, b in zip(
            fg.tree_util.tree_leaves(first), fg.tree_util.tree_leaves(again), strict=True
        ):
            np.testing.assert_array_equal(a, b)
    assert not traces


# What changes between two calls must be seen, wherever a function may find it.


class Box:
    """An object of the user's."""

    scale = 1.0

    def apply(self, x: Any) -> Any:
        return x * self.scale


FACTOR: Any = 1.0
BOX = Box()
NAMES = {"factor": 1.0, "list": [1.0, {"deep": 1.0}]}
ARRAY = np.ones(3)
BIG = np.ones(100_000)
SPACE = SimpleNamespace(scale=1.0)
RNG = np.random.default_rng(0)


def helper(x: Any) -> Any:
    return x * FACTOR


def default(x: Any, y: Any = NAMES) -> Any:
    return x * y["factor"]


SETTINGS = ModuleType("settings")
SETTINGS.scale = SETTINGS.offset = 1.0  # type: ignore[attr-defined]
MODULES = [SETTINGS]
LAZY = ModuleType("lazy")
LAZY.__getattr__ = lambda name: SETTINGS.scale  # type: ignore[method-assign]


class Computed(ModuleType):
    """A module of a class of its own."""

    @property
    def scale(self) -> float:
        return float(SETTINGS.scale)


COMPUTED = Computed("computed")


def offset(x: Any) -> Any:
    return x * SETTINGS.offset  # type: ignore[attr-defined]


def scale_in(module: Any, x: Any) -> Any:
    return x * module.scale


@functools.wraps(fg.numpy.dot)
def named_as_a_library(x: Any) -> Any:
    return x * FACTOR


def around_a_module() -> Callable[[Any], Any]:
    module = SETTINGS
    return lambda x: x * module.scale  # type: ignore[attr-defined]


def set_settings(scale: float) -> None:
    SETTINGS.scale = SETTINGS.offset = scale  # type: ignore[attr-defined]


def set_global(scale: float) -> None:
    globals()["FACTOR"] = scale


def set_class(scale: float) -> None:
    Box.scale = scale


CHANGES: dict[str, tuple[Callable[[Any], Any], Callable[[float], Any]]] = {
    "global": (lambda x: x * FACTOR, set_global),
    "global of a helper": (lambda x: helper(x), set_global),
    "global of an inner lambda": (lambda x: (lambda y: y * FACTOR)(x), set_global),
    "attribute": (lambda x: x * BOX.scale, lambda s: setattr(BOX, "scale", s)),
    "method": (lambda x: BOX.apply(x), lambda s: setattr(BOX, "scale", s)),
    "bound method": (Box().apply, set_class),
    "class": (lambda x: x * Box.scale, set_class),
    "namespace": (lambda x: x * SPACE.scale, lambda s: setattr(SPACE, "scale", s)),
    "dict": (lambda x: x * NAMES["factor"], lambda s: NAMES.update(factor=s)),
    "nested": (lambda x: x * NAMES["list"][1]["deep"], lambda s: NAMES["list"][1].update(deep=s)),
    "default": (default, lambda s: NAMES.update(factor=s)),
    "partial": (functools.partial(default, y=NAMES), lambda s: NAMES.update(factor=s)),
    "array": (lambda x: x * ARRAY[0], lambda s: ARRAY.fill(s)),
    "large array": (lambda x: x * np.sum(BIG) / 100_000, lambda s: BIG.fill(s)),
    "function attribute": (lambda x: x * helper.scale, lambda s: setattr(helper, "scale", s)),
    "named lookup": (lambda x: x * globals()["FACTOR"], set_global),
    "module": (lambda x: x * SETTINGS.scale, set_settings),  # type: ignore[attr-defined]
    "module of two readers": (
        lambda x: offset(x) * SETTINGS.scale / SETTINGS.scale,  # type: ignore[attr-defined]
        set_settings,
    ),
    "module with a function for names": (lambda x: x * LAZY.scale, set_settings),
    "module with properties": (lambda x: x * COMPUTED.scale, set_settings),
    "module in a variable": (around_a_module(), set_settings),
    "module in a list": (lambda x: x * MODULES[0].scale, set_settings),  # type: ignore[attr-defined]
    "module as argument": (lambda x: scale_in(SETTINGS, x), set_settings),
    "attribute named by a string": (
        lambda x: x * operator.attrgetter("scale")(SETTINGS), set_settings),
    "wrapper of a library's function": (named_as_a_library, set_global),
    "attribute by name": (lambda x: x * BOX.scale, lambda s: setattr(BOX, "scale", s)),
    "sign of zero": (
        lambda x: x * np.copysign(1.0, FACTOR),
        lambda s: set_global(math.copysign(0.0, 1.5 - s)),
    ),
}  # fmt: skip

WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "jit": lambda f, x: fg.jit(f)(x),
    "jit of wrapper": lambda f, x: fg.jit(fg.vmap(f))(np.stack([x]))[0],
    "checkpoint": lambda f, x: fg.value_and_grad(fg.checkpoint(lambda y: f(y)))(x)[0],
    "while_loop": lambda f, x: lax.while_loop(
        lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, x)
    )[1],
    "scan": lambda f, x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "cond": lambda f, x: lax.cond(True, lambda y: f(y), lambda y: y, x),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_is_seen(change: str, way: str) -> None:
    f, set_scale = CHANGES[change]
    try:
        for scale in (1.0, 2.0, 1.0, 3.0, 3.0):
            set_scale(scale)
            np.testing.assert_array_equal(WAYS[way](f, 5.0), f(5.0))
    finally:
        set_scale(1.0)
        set_global(1.0)
        set_settings(1.0)


def local_numpy() -> Callable[[Any], Any]:
    numpy = np
    return lambda x: x + numpy.random.rand()


IMPURE: dict[str, Callable[[Any], Any]] = {
    "random state": lambda x: x + np.random.rand(),
    "random state of a local name": local_numpy(),
    "generator": lambda x: x + RNG.random(),
    "time": lambda x: x + time.perf_counter(),
    "import": lambda x: x + __import__("time").perf_counter(),
}


@pytest.mark.filterwarnings("ignore::funcgrad.errors.ImpureFunctionWarning")
@pytest.mark.parametrize("way", [w for w in WAYS if not w.startswith("jit")])
@pytest.mark.parametrize("name", IMPURE)
def test_what_is_not_in_the_code_is_asked_again(name: str, way: str) -> None:
    f = IMPURE[name]
    found = {float(WAYS[way](f, 5.0)) for _ in range(4)}
    assert len(found) == 4


@pytest.mark.parametrize("way", WAYS)
def test_functions_that_count_their_calls_are_called(way: str) -> None:
    calls = [0]
    seen: list[Any] = []

    def counted(x: Any) -> Any:
        calls[0] += 1
        return x * 2

    def collected(x: Any) -> Any:
        seen.append(x)
        return x * 2

    for i in range(1, 4):
        before = calls[0], len(seen)
        WAYS[way](counted, 1.0)
        WAYS[way](collected, 1.0)
        assert calls[0] > before[0], i
        assert len(seen) > before[1], i


@pytest.mark.parametrize("reader", [np.load, np.loadtxt])
def test_files_are_read_again(reader: Any, tmp_path: Path) -> None:
    path = tmp_path / "scale.npy"
    write = np.save if reader is np.load else np.savetxt
    for by_name in (lambda x: x * reader(path), lambda x: x * np.load(path)):
        for scale in (1.0, 2.0):
            write(path, scale if reader is np.load else [scale])
            if reader is np.load or "reader" in by_name.__code__.co_freevars:
                assert fg.jit(by_name)(5.0) == 5.0 * scale


# What runs later than it is traced belongs to one function only, also where another one is equal.


def calls_back(log: list[float], x: Any) -> Any:
    fg.debug.callback(lambda v: log.append(float(v)), x)
    return x * 2.0


def calls_pure(log: list[float], x: Any) -> Any:
    def kept(v: Any) -> Any:
        log.append(float(v))
        return np.asarray(v) * 2.0

    return fg.pure_callback(kept, fg.ShapeDtypeStruct((), np.float64), x)


def has_rule(log: list[float], x: Any) -> Any:
    @fg.custom_jvp
    def twice(y: Any) -> Any:
        return y * 2.0

    @twice.defjvp
    def twice_jvp(primals: Any, tangents: Any) -> Any:
        log.append(2.0)
        return twice(*primals), tangents[0] * 2.0

    return twice(x)


@pytest.mark.parametrize("way", ["jit", "while_loop", "scan", "cond"])
@pytest.mark.parametrize("body", [calls_back, calls_pure, has_rule])
def test_functions_that_run_later_are_the_latest(body: Any, way: str) -> None:
    def run() -> list[float]:
        log: list[float] = []
        value = lambda x: WAYS[way](lambda y: body(log, y), x)  # noqa: E731
        if body is has_rule:
            assert fg.jvp(value, (1.0,), (1.0,))[1] == 2.0
        else:
            assert value(1.0) == 2.0
        return log

    assert run()
    assert run()


def test_variables_of_functions_that_run_later_are_the_latest() -> None:
    def run(final: float) -> Any:
        scale = 1.0

        def read(v: Any) -> Any:
            return np.asarray(v) * scale

        f = fg.jit(lambda x: fg.pure_callback(read, fg.ShapeDtypeStruct((), np.float64), x))
        f(1.0)
        scale = final
        return f(1.0)

    assert [run(s) for s in (2.0, 3.0)] == [2.0, 3.0]


def test_large_constants_are_not_kept() -> None:
    def total(n: int) -> None:
        fg.jit(lambda x: x + np.arange(float(n))[::-1].copy())(1.0)

    memory.forget_all()
    total(100)
    assert len(memory._remembered) == 1
    total(1_000_000)
    assert len(memory._remembered) == 1


def test_traced_values_are_never_remembered() -> None:
    def outer(a: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * a), (0, a))[1]

    for x in (2.0, 3.0):
        assert fg.grad(outer)(x) == 3 * x**2
        assert fg.jit(fg.grad(outer))(x) == 3 * x**2
    kept = [entry for entry, *_ in memory._remembered.values()]
    assert not any(isinstance(x, Tracer) for e in kept for x in getattr(e, "leaves", ()))


def test_clear_cache_traces_again(traces: list[str]) -> None:
    f = fg.jit(squares)
    f(X)
    f.clear_cache()
    del traces[:]
    f(X)
    assert len(traces) == 1
    assert f.cache_info().traces == 1


def test_variables_that_the_compiler_reads_tell_functions_apart(
    traces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for skipped in ("refine", "schedule"):
        monkeypatch.setenv("FUNCGRAD_SKIP_PASSES", skipped)
        del traces[:]
        for _ in range(2):
            fg.jit(lambda x: x * 2 + 1)(X)
        assert len(traces) == 1


def test_options_and_names_tell_functions_apart(traces: list[str]) -> None:
    def f(x: Any, n: Any) -> Any:
        return x * n

    assert fg.jit(f)(2.0, 3) == 6.0
    assert fg.jit(f, static_argnums=1)(2.0, 3) == 6.0
    assert fg.jit(f, threads=1)(2.0, 3) == 6.0
    assert fg.jit(f, donate_argnums=0)(np.ones(3), 3)[0] == 3.0
    assert len(traces) == 4
    with fg.disable_jit():
        assert fg.grad(fg.checkpoint(f))(2.0, 3) == 3.0


def test_the_memory_is_bounded() -> None:
    traced = SimpleNamespace(program=Program([], [], []), captured=[], cells=())
    memory.forget_all()
    for i in range(memory._MAX_REMEMBERED + 20):
        memory.remembered([squares], i, lambda i=i: i, lambda _: traced)
    assert len(memory._remembered) == memory._MAX_REMEMBERED
    assert memory.remembered([squares], 5, lambda: "new", lambda _: traced) == "new"
    memory.forget_all()


def test_threads_share_what_is_remembered() -> None:
    found = [fg.jit(squares)(X) for _ in range(3)]
    assert len(set(found)) == 1


def test_functions_that_call_themselves() -> None:
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * power(x, n - 1)

    for _ in range(2):
        assert fg.grad(fg.checkpoint(power, static_argnums=1))(2.0, 3) == 12.0


def test_functions_of_libraries_are_traced_for_every_line(traces: list[str]) -> None:
    """Their equations are of the line that calls them, which errors name."""

    def one(x: Any) -> Any:
        return lax.cond(True, np.linalg.inv, np.linalg.pinv, x)  # one

    def other(x: Any) -> Any:
        return lax.cond(True, functools.partial(np.linalg.inv), np.linalg.pinv, x)  # other

    def looped(x: Any) -> Any:
        return lax.cond(True, fg.vmap(np.linalg.inv), np.linalg.pinv, x[None])[0]  # looped

    for function in (one, other, looped):
        del traces[:]
        for _ in range(2):
            with pytest.raises(np.linalg.LinAlgError) as caught:
                fg.jit(function)(np.zeros((2, 2)))
            assert str(caught.value).endswith(f"# {function.__name__}")
        assert len(traces) == 3
