"""What is baked into compiled functions and changes later, and random numbers drawn by tracing."""

from __future__ import annotations

import functools
import random
import subprocess
import sys
import threading
import types
import warnings

import numpy as np
import pytest
from numpy import random as npr

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import ImpureFunctionWarning
from funcgrad.observers import captures

ONES = np.ones(3)
SCALE = 2.0
COUNT = 0
FLAG = True
TABLE = np.arange(3.0)
LARGE = np.zeros((300, 100))
RNG = np.random.default_rng(0)
OLD_RNG = np.random.RandomState(0)


def scaled(x):
    return x * SCALE  # reads it


@pytest.fixture(autouse=True)
def _threads_of_this_test_alone(monkeypatch):
    """Threads that other tests have left, as a progress bar's, might draw for all one knows."""
    others = {*threading.enumerate()} - {threading.current_thread()}
    everyone = threading.enumerate
    own = lambda: [thread for thread in everyone() if thread not in others]  # noqa: E731
    monkeypatch.setattr(threading, "enumerate", own)


def until_warned(f, *args, calls=1):
    """What a function warns of, and after how many calls."""

    def call():
        for _ in range(calls):
            f(*args)

    with pytest.warns(ImpureFunctionWarning) as caught:
        call()
    assert len(caught) == 1, "once"
    assert caught[0].filename == __file__
    return str(caught[0].message)


def slope(f):
    return fg.grad(lambda x: f(x).sum())


def place_of(text):
    return next(row for row in text.splitlines() if row.startswith(("  read at ", "  at ")))


# Variables.


class Model:
    def loss(self, x):
        return x * SCALE  # reads it


READERS = {
    "itself": lambda: lambda x: x * SCALE,  # reads it
    "helper": lambda: lambda x: scaled(x) + 1,
    "inner": lambda: lambda x: (lambda y: y * SCALE)(x),  # reads it
    "partial": lambda: functools.partial(lambda k, x: k * scaled(x), 2.0),
    "method": lambda: Model().loss,
    "gradient": lambda: fg.grad(lambda x: (x * SCALE).sum()),  # reads it
    "mapped": lambda: fg.vmap(scaled),
    "compiled": lambda: fg.jit(scaled),
}


@pytest.fixture(autouse=True)
def forget_draws(monkeypatch):
    monkeypatch.setattr(captures, "_reported_draws", {})


@pytest.mark.parametrize("name", READERS)
def test_a_global_number_that_is_set_anew(name, monkeypatch):
    f = fg.jit(READERS[name]())
    before = f(ONES)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    text = until_warned(f, ONES, calls=5)
    assert "the global variable `SCALE` was 2.0 when it was traced, and is 3.0 now" in text
    assert "# reads it" in place_of(text)
    assert "Pass it as an argument, or forget what was compiled after a change" in text
    np.testing.assert_array_equal(f(ONES), before)
    if name != "compiled":  # the inner one has a cache of its own
        f.clear_cache()
        assert (f(ONES) > before).all()


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        (1, 2, "was 1 when it was traced, and is 2 now"),
        (7, 7.0, "was 7 when it was traced, and is 7.0 now"),
        (True, False, "was True when it was traced, and is False now"),
        (np.float32(1), np.float32(2), "is np.float32(2.0) now"),
        (1.0, ONES, "is a ndarray now"),
        (ONES, ONES + 1, "is another array than when it was traced"),
        (np.nan, 1.0, "was nan"),
    ],
)
def test_a_closed_over_variable_that_is_set_anew(first, second, shown):
    value = first

    @fg.jit
    def f(x):
        return x + value  # the reader

    f(ONES)
    value = second
    text = until_warned(f, ONES)
    assert "jit(f): the variable `value`" in text
    assert shown in text
    assert "# the reader" in place_of(text)


def until_silent(change, f, *args):
    """Nothing is warned of, whatever changes between the calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(1, 6):
            f(*args)
            change(i)


def printed(x):
    return (x, SCALE)


def shown(v):
    printed(v)


CALLED_LATER = {
    "a callback": lambda x: fg.debug.callback(lambda v: (v, SCALE), x),
    "a callback by name": lambda x: fg.debug.callback(printed, x),
    "what a callback calls": lambda x: fg.debug.callback(shown, x),
    "a callback with options": lambda x: fg.debug.callback(functools.partial(printed), x),
    "a pure callback": lambda x: fg.pure_callback(
        lambda v: np.asarray(v) * SCALE, fg.ShapeDtypeStruct((3,), np.float64), x
    ),
    "a callback of every lane": lambda x: fg.vmap(
        lambda y: fg.debug.callback(lambda v: (v, SCALE), y)
    )(x),
    "a callback in a loop": lambda x: fg.lax.fori_loop(
        0, 3, lambda i, c: (fg.debug.callback(printed, c), c)[1], x
    ),
}


@pytest.mark.parametrize("name", CALLED_LATER)
def test_what_callbacks_read_is_not_baked_in(name, monkeypatch):
    body = CALLED_LATER[name]
    f = fg.jit(lambda x: (body(x), x * 2)[1])
    until_silent(lambda i: monkeypatch.setitem(globals(), "SCALE", float(i)), f, ONES)


def test_what_a_callback_and_the_function_read_is_baked_in(monkeypatch):
    def f(x):
        fg.debug.callback(printed, x)
        return x * SCALE  # reads it

    compiled = fg.jit(f)
    compiled(ONES)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert "# reads it" in place_of(until_warned(compiled, ONES))


@pytest.mark.parametrize(
    "read",
    [
        lambda a: lambda x: x * a.shape[0],
        lambda a: lambda x: x * a.size + a.ndim,
        lambda a: lambda x: x * len(a),
        lambda a: lambda x: x.astype(a.dtype),
    ],
)
def test_types_of_arrays_do_not_change(read):
    a = np.zeros(4)
    until_silent(a.fill, fg.jit(read(a)), ONES)


def test_an_equal_array_is_no_change():
    a = np.arange(3.0)
    f = fg.jit(lambda x: x + a)

    def change(i):
        nonlocal a
        a = a.copy()

    until_silent(change, f, ONES)


def arrays():
    large = np.zeros((300, 100))
    yield "closed over", (w := np.ones(3)), lambda x: x + w, "the array `w` (f64[3])"
    yield "a view of it", (v := np.ones((3, 1))), lambda x: x + v.T[0], "the array `v`"
    yield "an element", (u := np.ones(3)), lambda x: x + u[0], "the array `u`"
    yield "in a list", (t := [np.ones(3)])[0], lambda x: x + t[0], "an array (f64[3])"
    holder = types.SimpleNamespace(w=np.ones(3))
    yield "attribute", holder.w, lambda x: x + holder.w, "an array (f64[3])"
    b = np.ones(3)
    yield "in a loop", b, lambda x: fg.lax.fori_loop(0, 3, lambda i, c: c + b, x), "the array `b`"
    yield (
        "in a branch",
        holder.__dict__.setdefault("v", np.ones(3)),
        lambda x: fg.lax.cond(x[0] > 0, lambda c: c * holder.v, lambda c: c, x),
        "an array (f64[3])",
    )
    yield "large", large, lambda x: x.sum() + large.sum() + fnp.sum(large), "the array `large`"


@pytest.mark.parametrize(("what", "array", "f", "name"), list(arrays()), ids=lambda x: str(x)[:12])
@pytest.mark.parametrize(
    "transform", [lambda f: f, fg.jit, lambda f: fg.grad(lambda x: f(x).sum())]
)
def test_an_array_that_is_written_to(what, array, f, name, transform):
    compiled = fg.jit(transform(f))
    compiled(ONES)
    array[:] += 5
    text = until_warned(compiled, ONES, calls=4)
    assert name in text
    assert "has been written to since it was traced" in text
    assert "test_captures.py:" in place_of(text)


@pytest.mark.parametrize("place", ["attribute", "in a dict", "in an operation"])
def test_an_array_that_one_object_alone_holds(place):
    held = types.SimpleNamespace(w=np.ones(3), inside={"v": np.ones(3)})
    f, write = {
        "attribute": (lambda x: x + held.w, lambda: np.add(held.w, 5, out=held.w)),
        "in a dict": (
            lambda x: x + held.inside["v"],
            lambda: np.add(held.inside["v"], 5, out=held.inside["v"]),
        ),
        "in an operation": (
            lambda x: fg.lax.scan(lambda c, _: (c * held.w, None), x, length=2)[0],
            lambda: np.add(held.w, 5, out=held.w),
        ),
    }[place]
    compiled = fg.jit(f)
    compiled(ONES)
    write()
    assert "an array (f64[3])" in until_warned(compiled, ONES, calls=4)


def test_every_call_path_notices():
    w = np.ones(3)
    f = fg.jit(lambda x, k=1.0: x * k + w)
    f(x=ONES)
    w[0] = 7
    with pytest.warns(ImpureFunctionWarning, match="`w`"):
        f(x=ONES)
    g = fg.jit(lambda x: x + w)
    fg.grad(lambda x: g(x).sum())(ONES)
    w[0] = 8
    with pytest.warns(ImpureFunctionWarning, match="`w`"):
        fg.grad(lambda x: g(x).sum())(ONES)


def test_late_changes_are_noticed_within_twice_the_calls():
    w = np.ones(3)
    f = fg.jit(lambda x: x + w)
    for _ in range(100):
        f(ONES)
    w[1] = 2
    assert "`w`" in until_warned(f, ONES, calls=101)


def test_what_does_not_change_is_silent():
    global COUNT
    value, other, unset = 1.0, np.array([np.nan, 1.0, 2.0]), float("nan")
    count = 0

    @fg.jit
    def f(x):
        global COUNT
        nonlocal count
        COUNT += 1
        count += 1
        if FLAG:
            x = x + value * TABLE + other
        return x + np.ones(3) + unset

    @fg.jit
    def of_argument(value):
        return value + 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(40):
            f(ONES)
            of_argument(ONES)
            COUNT += 1
            count += 1
    assert f.cache_info().traces == 1


def test_an_attribute_with_the_name_of_a_variable_is_no_variable(monkeypatch):
    holder = types.SimpleNamespace(SCALE=1.0)
    f = fg.jit(lambda x: x * holder.SCALE)
    f(ONES)
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(9):
            f(ONES)


def test_functions_without_surroundings_keep_the_short_path():
    f = fg.jit(lambda x: x + np.ones(3) * 2)
    f(ONES)
    (entry,) = f._cache.values()
    assert entry.around is None


# Random numbers.


def drawn_by_a_helper():
    return np.random.normal()  # draws


DRAWS = {
    "np.random": lambda x: x + np.random.normal(),  # draws
    "renamed": lambda x: x + npr.uniform(),  # draws
    "helper": lambda x: x + drawn_by_a_helper(),
    "generator": lambda x: x + RNG.normal(),  # draws
    "RandomState": lambda x: x + OLD_RNG.normal(),  # draws
    "random": lambda x: x + random.random(),  # draws
    "permuted": lambda x: x[np.random.permutation(3)],  # draws
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        lambda f: fg.grad(lambda x: f(x).sum()),
        lambda f: fg.vmap(lambda x: f(x * ONES)),
    ],
    ids=["itself", "grad", "vmap"],
)
def test_random_numbers_that_tracing_draws(name, transform):
    f = fg.jit(transform(DRAWS[name]))
    text = until_warned(f, ONES, calls=3)
    assert "has drawn random numbers from" in text
    assert "# draws" in place_of(text)
    assert "funcgrad.random, from a key that is an argument" in text


LOOPS = {
    "scan": lambda body: fg.lax.scan(lambda c, _: (body(c), None), 1.0, length=3),
    "fori_loop": lambda body: fg.lax.fori_loop(0, 3, lambda i, c: body(c), 1.0),
    "while_loop": lambda body: fg.lax.while_loop(lambda c: c < 9, lambda c: body(c) + 10, 1.0),
    "cond": lambda body: fg.lax.cond(True, body, lambda c: c, 1.0),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_random_numbers_that_loops_draw(loop):
    with pytest.warns(ImpureFunctionWarning, match=f"{loop}.* has drawn random numbers") as caught:
        LOOPS[loop](lambda c: c + np.random.normal())
    assert len(caught) == 1


@pytest.mark.parametrize("loop", LOOPS)
def test_an_outer_function_does_not_repeat_it(loop):
    def f(x):
        y = LOOPS[loop](lambda c: c + np.random.normal())
        return x + (y[0] if loop == "scan" else y)

    with pytest.warns(ImpureFunctionWarning) as caught:
        fg.jit(f)(ONES)
    assert len(caught) == 1


def test_random_numbers_outside_of_the_trace_are_silent():
    noise = np.random.normal(size=3)

    def f(x):
        fg.debug.callback(lambda v: np.random.normal(), x)
        return x + noise + fg.random.normal(fg.random.key(0), (3,))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            np.random.normal()
            fg.jit(f)(ONES)
            fg.grad(lambda x: (x * np.random.normal()).sum())(ONES)


def test_what_another_thread_draws_is_not_blamed():
    stop = threading.Event()

    def draw():
        while not stop.is_set():
            np.random.normal()

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for k in range(20):
                fg.jit(lambda x, k=k: x * float(k) + 1)(ONES)
    finally:
        stop.set()
        thread.join()


def test_a_variable_that_is_not_assigned_yet():
    @fg.jit
    def f(x):
        return x if x.ndim == 1 else x + later

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(ONES)
        later = 2.0
        for _ in range(3):
            f(ONES)
    np.testing.assert_array_equal(f(np.ones((1, 1))), [[3.0]])


@pytest.fixture
def other_bits():
    """`numpy.random` draws from another generator."""
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(0))
    yield
    np.random.set_bit_generator(before)


def test_draws_from_another_generator_of_numpys(other_bits):
    assert "# draws" in place_of(until_warned(fg.jit(DRAWS["np.random"]), ONES))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fg.jit(lambda x: x + 3)(ONES)


# How the function draws cannot be seen from its names.
HIDDEN = types.SimpleNamespace(draw=np.random.mtrand._rand.normal)


def draws_hidden(x):
    return x + HIDDEN.draw()


def test_draws_that_are_found_by_no_name_are_reported_at_the_call(monkeypatch):
    # Threads that tests before this one left might draw.
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.current_thread()])
    text = until_warned(lambda: fg.jit(draws_hidden)(ONES))  # the call
    assert "# the call" in place_of(text)


def test_draws_of_no_name_may_be_those_of_another_thread():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fg.jit(draws_hidden)(ONES)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("draws", [False, True])
def test_a_function_that_loads_numpys_random_numbers(draws, monkeypatch):
    module = np.random
    state = module.get_state()
    monkeypatch.delitem(sys.modules, "numpy.random")

    def f(x):
        sys.modules["numpy.random"] = module
        module.seed(0)  # as when it is loaded
        return x + (module.normal() if draws else 0.0)

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fg.jit(f)(ONES)
    finally:
        module.set_state(state)
    assert [w.category for w in caught] == [ImpureFunctionWarning] * draws


def test_a_trace_that_imports_numpys_random_numbers_draws_none() -> None:
    """SciPy imports them, and is imported where its functions are asked for first."""
    code = """
import sys, numpy as np, funcgrad as fg
assert "numpy.random" not in sys.modules

def import_it(x):
    np.random
    return x

fg.jit(import_it)(1.0)
assert "numpy.random" in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
