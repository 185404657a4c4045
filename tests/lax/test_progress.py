"""Loops that show their progress: the same results, and bars that are closed."""

from __future__ import annotations

import importlib.util
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import ArgumentError, FuncgradWarning, ProgressWarning, TimeLimitError
from funcgrad.higher_order import progress as progress_module


class Bar:
    """What tqdm would draw."""

    made: list[Bar]

    def __init__(self, total: int | None, desc: str, unit: str, leave: bool | None) -> None:
        self.total, self.desc, self.unit = total, desc, unit
        self.updates: list[int] = []
        self.is_open = True
        self.thread = threading.current_thread()
        self.made.append(self)

    def update(self, n: int = 1) -> None:
        assert self.is_open
        self.updates.append(n)

    def close(self) -> None:
        self.is_open = False

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Bar]]:
    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    Bar.made = []
    yield Bar.made
    assert not any(bar.is_open for bar in Bar.made)


rng = np.random.default_rng(0)
W = rng.normal(size=(6, 6)) / 3
XS = rng.normal(size=(205, 6))  # two steps a part, but for the last


def scanned(w: Any, xs: Any, label: str | None, reverse: bool = False) -> Any:
    def step(c: Any, x: Any) -> Any:
        c = np.tanh(w @ c + x)
        return c, c[0] * w[0, 0]

    c, ys = lax.scan(step, np.zeros(6), xs, reverse=reverse, progress=label)
    return c.sum() + (ys * np.arange(1.0, 1 + len(ys))).sum()


def counted(w: Any, xs: Any, label: str | None) -> Any:
    return lax.fori_loop(3, 150, lambda i, c: np.sin(w @ c + i), xs[0], progress=label).sum()


def until(w: Any, xs: Any, label: str | None, **options: Any) -> Any:
    return lax.while_loop(
        lambda s: (s[1] < 150) & (abs(s[0][0]) < 1e9),
        lambda s: (np.cos(w @ s[0]), s[1] + 1),
        (xs[0], 0),
        progress=label,
        **options,
    )[0].sum()


LOOPS: dict[str, Callable[..., Any]] = {
    "scan": scanned,
    "reversed scan": lambda w, xs, label: scanned(w, xs, label, reverse=True),
    "fori_loop": counted,
    "while_loop": until,
    "while_loop in bounded memory": lambda w, xs, label: until(w, xs, label, max_checkpoints=3),
}
LAYERS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "jit": fg.jit,
    "value_and_grad": lambda f: fg.value_and_grad(f, argnums=(0, 1)),
    "jit of value_and_grad": lambda f: fg.jit(fg.value_and_grad(f, argnums=(0, 1))),
    "value_and_grad of jit": lambda f: fg.value_and_grad(fg.jit(f), argnums=(0, 1)),
    "jvp": lambda f: lambda w, xs: fg.jvp(f, (w, xs), (w, xs)),
    "vmap": lambda f: lambda w, xs: fg.vmap(f, (0, None))(np.stack([w, 0.5 * w]), xs),
    "jit in jit": lambda f: fg.jit(lambda w, xs: 2 * fg.jit(f)(w, xs)),
    "checkpoint": lambda f: fg.jit(fg.grad(fg.checkpoint(f))),
}
BACKWARD = {"value_and_grad", "jit of value_and_grad", "value_and_grad of jit", "checkpoint"}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("loop", LOOPS)
def test_results_are_the_same_to_the_bit(bars: list[Bar], loop: str, layer: str) -> None:
    f = LOOPS[loop]
    plain = LAYERS[layer](lambda w, xs: f(w, xs, None))(W, XS)
    assert not bars
    shown = LAYERS[layer](lambda w, xs: f(w, xs, "steps"))(W, XS)
    for a, b in zip(fg.tree.leaves(plain), fg.tree.leaves(shown), strict=True):
        np.testing.assert_array_equal(a, b)
    forwards = [bar for bar in bars if bar.desc == "steps"]
    backwards = [bar for bar in bars if bar.desc == "steps, backward"]
    assert len(forwards) + len(backwards) == len(bars)
    assert len(backwards) == (layer in BACKWARD)
    # What only a derivative is asked of records its steps, without running the loop before.
    assert forwards or (layer == "checkpoint" and loop.startswith("while"))
    n = {"scan": 205, "reversed scan": 205, "fori_loop": 147}.get(loop, 150)
    for bar in forwards:
        assert bar.unit == "step"
        assert bar.total == (None if loop.startswith("while") else n)
        assert sum(bar.updates) == n
    for bar in backwards:
        assert bar.unit == "step"
        # A while_loop is pulled in segments of many steps, whose number nobody knows.
        assert bar.total == (None if loop.startswith("while") else n)
        assert sum(bar.updates) == (1 if loop.startswith("while") else n)


@pytest.mark.parametrize("loop", ["scan", "while_loop"])
def test_one_step_at_a_time_without_compilation(bars: list[Bar], loop: str) -> None:
    with fg.disable_jit():
        expected = LOOPS[loop](W, XS[:20], None)
        np.testing.assert_array_equal(LOOPS[loop](W, XS[:20], "steps"), expected)
    assert [set(bar.updates) for bar in bars] == [{1}]


def test_nothing_is_called_from_step_to_step(bars: list[Bar]) -> None:
    n = 100_000
    f = fg.jit(lambda x: lax.fori_loop(0, n, lambda i, c: c * 0.5 + x, x, progress="a"))
    assert f(1.0) == 2.0
    g = fg.jit(lambda x: lax.while_loop(lambda c: c < n, lambda c: c + x, 0.0, progress="b"))
    assert g(1.0) == n
    a, b = bars
    assert len(a.updates) == progress_module.PARTS
    assert len(b.updates) < 40
    assert sum(a.updates) == sum(b.updates) == n


@pytest.mark.sampled(2)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 99, 100, 101, 199, 200])
@pytest.mark.parametrize("reverse", [False, True])
def test_every_step_is_in_one_part(bars: list[Bar], length: int, reverse: bool) -> None:
    xs = np.arange(float(length))

    def f(label: str | None) -> Any:
        def step(c, x):
            return (0.5 * c + x, (c, x))

        return lax.scan(step, 1.0, xs, reverse=reverse, progress=label)

    for a, b in zip(fg.tree.leaves(f(None)), fg.tree.leaves(f("x")), strict=True):
        np.testing.assert_array_equal(a, b)
    assert sum(sum(bar.updates) for bar in bars) == length
    parts = progress_module.parts_of(length, reverse)
    steps = [i for start, stop in parts for i in range(start, stop)]
    assert sorted(steps) == list(range(length))
    assert len({stop - start for start, stop in parts}) <= 2
    assert length < 2 or all(stop - start > 1 for start, stop in parts)


def test_loops_that_call_numpy_inside(bars: list[Bar]) -> None:
    def f(x: Any, label: str | None) -> Any:
        def step(i, c):
            return fg.scipy.linalg.sqrtm(c @ c.T + np.eye(3)).real * c * 0.1

        return lax.fori_loop(0, 205, step, x, progress=label)

    x = W[:3, :3]
    np.testing.assert_array_equal(fg.jit(f, static_argnums=1)(x, "a"), f(x, None))
    assert len(bars[0].updates) == 102


@pytest.mark.parametrize("compiled", [False, True])
def test_conditions_with_effects_are_asked_once_a_step(bars: list[Bar], compiled: bool) -> None:
    seen: list[int] = []

    def condition(c: Any) -> Any:
        fg.debug.callback(lambda value: seen.append(int(value)), c)
        return c < 9

    def f(c):
        return lax.while_loop(condition, lambda c: c + 1, c, progress="asked")

    assert (fg.jit(f) if compiled else f)(0) == 9
    assert seen == list(range(10))
    assert sum(bars[0].updates) == 9


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_bars_are_closed_when_a_loop_is_left(bars: list[Bar], error: type) -> None:
    def raise_at_five(value: Any) -> None:
        if value == 5:
            raise error

    def body(i: Any, c: Any) -> Any:
        fg.debug.callback(raise_at_five, i)
        return c + 1

    for f in (
        lambda x: lax.fori_loop(0, 9, body, x, progress="a"),
        lambda x: lax.while_loop(lambda c: c < 9, lambda c: body(c, c), x, progress="b"),
    ):
        for g in (f, fg.jit(f)):
            with pytest.raises(error):
                g(0)
    assert len(bars) == 4
    assert not any(bar.is_open for bar in bars)


def test_bars_are_closed_at_a_limit(bars: list[Bar]) -> None:
    f = fg.jit(lambda x: lax.fori_loop(0, 10**12, lambda i, c: c * 0.9 + x, x, progress="a"))
    for seconds in (0.05, 0.5, 5.0):  # a busy machine may pause for longer before the loop begins
        with pytest.raises(TimeLimitError), fg.limits(seconds=seconds):
            f(1.0)
        if bars:
            break
    assert [bar.is_open for bar in bars] == [False]


def test_loops_in_loops_show_both(bars: list[Bar]) -> None:
    def inner(c: Any) -> Any:
        return lax.fori_loop(0, 7, lambda j, d: 0.5 * d + 1, c, progress="inner")

    def f(x):
        return lax.fori_loop(0, 4, lambda i, c: inner(c), x, progress="outer")

    def plain(x):
        return lax.fori_loop(0, 4, lambda i, c: lax.fori_loop(0, 7, lambda j, d: 0.5 * d + 1, c), x)

    assert fg.jit(f)(3.0) == plain(3.0)
    assert [bar.desc for bar in bars].count("inner") == 4
    assert [bar.desc for bar in bars].count("outer") == 1


def test_threads_have_their_own_bars(bars: list[Bar]) -> None:
    f = fg.jit(lambda x: counted(x, XS, "a"))
    threads = [threading.Thread(target=f, args=(W,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {bar.thread for bar in bars} == set(threads)
    assert len(bars) == 3


def test_watched_loops_name_the_step(bars: list[Bar]) -> None:
    def f(x):
        return lax.fori_loop(0, 500, lambda i, c: np.log(c), x, progress="a")

    with pytest.raises(fg.errors.NonFiniteError, match="in step       1 of 500"), fg.debug_nans():
        fg.jit(f)(0.5)


def test_second_derivatives(bars: list[Bar]) -> None:
    def f(x, label):
        return lax.scan(
            lambda c, y: (np.sin(c * y), None), x, np.linspace(0.5, 1.5, 120), progress=label
        )[0]

    def second(label):
        return fg.jit(fg.grad(fg.grad(lambda x: f(x, label))))(0.7)

    np.testing.assert_array_equal(second("a"), second(None))
    assert {bar.desc for bar in bars} <= {"a", "a, backward"}


def test_without_tqdm_nothing_is_shown_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(progress_module, "_has_warned", False)
    with pytest.warns(ProgressWarning, match="tqdm is not installed: pip install tqdm") as caught:
        program = fg.make_jaxpr(lambda x: counted(x, XS, "a"))(W)
    assert caught[0].filename == __file__
    assert issubclass(ProgressWarning, FuncgradWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(program) == str(fg.make_jaxpr(lambda x: counted(x, XS, "a"))(W))
    assert str(program) == str(fg.make_jaxpr(lambda x: counted(x, XS, None))(W))


def test_the_real_bar(capsys: pytest.CaptureFixture[str]) -> None:
    lax.fori_loop(0, 300, lambda i, c: c + i, 0, progress="real\nlabel")
    lax.while_loop(lambda c: c < 10, lambda c: c + 1, 0, progress="counter")
    text = capsys.readouterr().err
    assert "300/300" in text
    assert "counter: 10step" in text


def test_reports_and_warnings_know_such_loops(bars: list[Bar]) -> None:
    f = fg.jit(lambda x: counted(x, XS, "a"))
    assert "in parts that show its progress" in f.lower(W).as_text()
    assert "progress=a" in str(fg.make_jaxpr(f)(W))
    with warnings.catch_warnings(), fg.debug_python_loops():
        warnings.simplefilter("error")
        fg.jit(lambda x: counted(x, XS[::2], "other"))(W)


def test_labels_are_strings() -> None:
    for call in (
        lambda label: counted(W, XS, label),
        lambda label: scanned(W, XS, label),
        lambda label: until(W, XS, label),
    ):
        with pytest.raises(ArgumentError, match=r"progress is the label of a bar.*got True") as e:
            call(True)
        assert "test_progress.py" in str(e.value)
