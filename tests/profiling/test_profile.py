"""Profiles name the line that takes the time, whatever runs it, and leave everything as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.compiler.runtime import executable
from funcgrad.profiling import Profile
from funcgrad.tree_util import tree_leaves as leaves
from tests.linting.transformed import shows_slow_line, slow, ways


def text_of(profile: Profile) -> list[str]:
    return [line.text for line in profile.lines]


def slowest(profile: Profile) -> str:
    """The line of this file with the most time, but for the calls of Python."""
    return next(
        line.text for line in profile.lines if line.location.file == __file__ and line.calls
    )


def covering(f, x, seconds: float) -> Profile:
    """The best of three profiles: a busy machine may pause one anywhere, also between the lines."""
    profiles = []
    while not profiles or (len(profiles) < 3 and profiles[-1].coverage <= 0.95):
        profiles.append(fg.profile(f, seconds=seconds)(x))
    return max(profiles, key=lambda profile: profile.coverage)


def fused(x):
    a = x * 2 + 1
    b = np.sin(np.exp(np.sin(np.exp(np.sin(a)))))  # slow
    return np.sum(a * b)


def looped(x):
    def body(c, t):
        a = c * t
        b = np.tanh(np.sin(np.tanh(np.sin(np.tanh(a)))))  # slow
        return b, np.sum(b + a)

    c, ys = lax.scan(body, x, np.linspace(0, 1, 20))
    return np.sum(c) + np.sum(ys)


@fg.custom_vjp
def slow_back(x):
    return x * 2


def _slow_rule(x, ct):
    return (ct * np.sin(np.exp(np.sin(np.exp(np.sin(x))))),)  # slow


slow_back.defvjp(lambda x: (slow_back(x), x), _slow_rule)

WAYS = ways(fg, lax)
X = np.linspace(0, 1, 20_000)
# Arrays that the allocator keeps: the pages of larger ones may come anew from the system for every
# operation, which can take longer than the functions do.
EVALUATED = np.linspace(0, 1, 8_000)
ROWS = np.linspace(0, 1, 20_000).reshape(200, 100)

CASES = {
    "fused kernel": (fg.jit(fused), X),
    "evaluated by NumPy": (fused, EVALUATED),
    "gradient": (fg.jit(fg.value_and_grad(fused)), X),
    "loop": (fg.jit(looped), np.ones(500)),
    "loop, evaluated": (looped, np.ones(8_000)),
    "vmap": (fg.jit(fg.vmap(fused)), ROWS),
    "vmap of grad": (fg.jit(fg.vmap(fg.grad(fused))), ROWS),
    "checkpoint": (fg.jit(fg.grad(fg.checkpoint(fused))), X),
    "custom rule": (fg.jit(fg.grad(lambda x: np.sum(slow_back(x)))), X),
    "threads": (fg.jit(fused), np.linspace(0, 1, 1 << 18)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_slow_line_shows_first(name):
    f, x = CASES[name]
    profile = covering(f, x, seconds=0.2)
    assert slowest(profile).endswith("# slow"), str(profile)
    assert profile.coverage > 0.95, str(profile)
    assert sum(line.seconds for line in profile.lines) <= profile.seconds * 1.001
    for found, wanted in zip(leaves(profile.result), leaves(f(x)), strict=True):
        np.testing.assert_allclose(found, wanted)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("way", WAYS)
def test_slow_line_shows_first_whatever_is_made_of_it(way):
    gradient = fg.grad(WAYS[way](slow))
    assert shows_slow_line(fg.jit(gradient), X)
    assert covering(gradient, X, seconds=0.05).coverage > 0.95


PROGRAM_OF_JAX = """
import funcgrad
import jax
import jax.numpy as jnp


def f(x):
    a = x * 2
    return jnp.sum(jnp.sin(jnp.exp(jnp.sin(jnp.exp(jnp.sin(a))))))  # slow


profile = funcgrad.profile(jax.jit(jax.grad(f)), seconds=0.2)(jnp.ones(20_000))
print([line.text for line in profile.lines if line.calls][0])
"""


def test_programs_of_jax(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM_OF_JAX)
    command = [sys.executable, "-m", "funcgrad.interop.jax", str(script)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ran.stdout.strip().endswith("# slow"), ran.stderr


def test_phases_are_apart():
    remat = backward = 0.0
    for _ in range(4):  # on a busy machine a profile has few samples
        profile = fg.profile(fg.jit(fg.grad(fg.checkpoint(fused))), seconds=0.3)(X)
        line = next(line for line in profile.lines if line.text.endswith("# slow"))
        remat, backward = max(remat, line.remat), max(backward, line.backward)
        if remat > 0 and backward > 0:
            break
    assert remat > 0
    assert backward > 0
    eager = fg.profile(fg.grad(fused), seconds=0)(X).measured.transposes
    assert any(line.text().endswith("# slow") and eager[line] > 0 for line in eager)
    plain = fg.profile(fg.jit(fused), seconds=0.1)(X)
    assert all(line.backward == line.remat == 0 for line in plain.lines)


def test_counts():
    profile = fg.profile(fg.jit(fused), seconds=0.05)(X)
    rows = {line.text.split(" = ")[0]: line for line in profile.lines}
    assert rows["a"].flops == 2 * len(X)
    assert rows["b"].functions == 5 * len(X)
    assert rows["a"].nbytes == X.nbytes
    assert {row.calls for row in rows.values() if row.flops} == {1}
    loop = fg.profile(fg.jit(looped), seconds=0.05)(np.ones(50))
    assert next(x for x in loop.lines if x.text.endswith("# slow")).calls == 20
    eager = fg.profile(fused, seconds=0.05)(X)
    assert {x.text: x.functions for x in eager.lines if x.functions} == {rows["b"].text: 5 * len(X)}


def test_memory_names_the_line_that_holds_most():
    def f(x):
        big = np.outer(x, x) + 1
        return np.sum(np.linalg.inv(big + np.eye(len(x))))

    for g in (fg.jit(f), f):
        memory = fg.profile(g, seconds=0)(np.arange(200.0)).memory
        assert " at most, held by test_profile.py:" in str(memory)
        assert repr(memory.holders[0][0]).startswith("<test_profile.py:")
        assert memory.peak >= 200 * 200 * 8
        assert memory.holders[0][0].line in range(
            f.__code__.co_firstlineno + 1, f.__code__.co_firstlineno + 3
        )


def test_first_call_says_what_was_compiled():
    def f(x):
        return np.sum(np.sin(x) * 1.25)

    cold = fg.profile(fg.jit(f), seconds=0)(np.ones(3)).first
    assert 0 < cold.tracing < cold.seconds
    assert cold.n_kernels >= 0
    g = fg.jit(f)
    g(np.ones(3))
    warm = fg.profile(g, seconds=0)(np.ones(3))
    assert warm.first.tracing == 0
    assert "nothing was compiled" in str(warm)


def test_llvms_time_is_that_of_lines():
    size = float(np.random.default_rng().uniform())  # no cache has this kernel

    def f(x):
        y = np.sin(np.cos(np.exp(x) * size)) * np.tanh(x)
        return np.sum(y + 1)

    first = fg.profile(fg.jit(f), seconds=0)(np.linspace(0, 1, 64)).first
    assert first.n_kernels
    lines = {line.line - f.__code__.co_firstlineno: t for line, t in first.kernel_lines.items()}
    assert lines[1] > 5 * lines.get(2, 0.0) >= 0
    assert 0 < sum(lines.values()) <= first.kernels


def test_everything_is_as_before():
    g, interval = fg.jit(fg.grad(fused)), sys.getswitchinterval()
    expected = g(X)
    found = next(iter(g._cache.values())).executable
    table = found.table
    fg.profile(g, seconds=0.01)(X)
    assert found.table is table
    assert sys.getswitchinterval() == interval
    assert not executable.observers
    np.testing.assert_array_equal(g(X), expected)


def test_errors_of_the_function_pass_and_leave_nothing():
    def f(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fg.profile(f)(X)
    assert not executable.observers
    with pytest.raises(fg.errors.ArgumentError, match="another profile is running"):
        fg.profile(lambda x: fg.profile(fused)(x))(X)
    with pytest.raises(fg.errors.ArgumentError, match="must not be negative, but is -1"):
        fg.profile(fused, seconds=-1)


def test_table_and_pictures(tmp_path):
    # Long enough for samples of the line that takes little, also beside another process.
    profile = fg.profile(fg.jit(fg.grad(fused)), seconds=1.0)(X)
    text = str(profile)
    assert text.startswith("profile of fused: ")
    assert {"share", "time", "forward", "backward", "bound", "line"} <= set(
        text.splitlines()[1].split()
    )
    assert "in kernels of several lines" in text
    assert "this machine" in text
    svg = ElementTree.fromstring(profile.flame_graph(tmp_path / "flame.svg"))
    titles = [node.text for node in svg.iter("{http://www.w3.org/2000/svg}title")]
    assert any("# slow" in title for title in titles)
    assert (tmp_path / "flame.svg").read_text() == profile.flame_graph()
    events = json.loads(profile.trace(tmp_path / "trace.json"))["traceEvents"]
    runs = [event for event in events if event["ph"] == "X"]
    assert runs
    assert all(run["dur"] >= 0 and run["ts"] >= 0 for run in runs)
    assert any("# slow" in line for run in runs for line in run["args"]["lines"])
    ElementTree.fromstring(f"<div>{profile._repr_html_()}</div>")


def test_functions_in_one_line_are_one_row():
    first, second = (lambda x: np.sin(x) * 2), (lambda x: np.exp(x) + np.sum(x))  # both

    def f(x):
        return np.sum(first(x) * second(x))

    for g in (f, fg.jit(fg.grad(f))):
        profile = fg.profile(g, seconds=0.1)(np.linspace(0, 1, 20_000))
        places = [(line.location.file, line.location.line) for line in profile.lines]
        assert len(places) == len(set(places))
        assert sum(line.text.endswith("# both") for line in profile.lines) == 1
