"""What compiled programs tell of themselves: plans, cost and memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from tests.compiler import memory_of_programs

X = np.linspace(0.1, 1.0, 12).reshape(4, 3)
SQUARE = np.linspace(0.1, 1.0, 9).reshape(3, 3)
UNIT = np.eye(3)[0]


def by_numpy(x):
    """Something that only NumPy computes, of the shape of its argument."""
    return x * fg.scipy.linalg.solve_toeplitz(UNIT, x[0])


A = np.linspace(-1.0, 1.0, 9).reshape(3, 3)
C = X + 1j
Z = np.float64(0.0)


def compiled(function, *args, **options):
    return fg.jit(function, **options).lower(*args).compile()


def plan_of(function, *args):
    text = fg.jit(function).lower(*args).as_text()
    return text.partition("\nplan\n")[2].partition("\n# kernel")[0]


# Memory.


@cache
def measured():
    """Predicted and measured sizes, from a fresh process."""
    done = subprocess.run(
        [sys.executable, memory_of_programs.__file__], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", memory_of_programs.PROGRAMS)
def test_the_predicted_peak_is_the_measured_one(name):
    found = measured()[name]
    assert found["measured"] == pytest.approx(found["predicted"], rel=0.05)


@pytest.mark.parametrize("name", memory_of_programs.PROGRAMS)
def test_arguments_take_what_is_predicted(name):
    predicted, found = measured()[name]["arguments"]
    assert found == pytest.approx(predicted, rel=0.05)


def test_sizes_have_the_names_that_jax_has_for_them():
    memory = compiled(lambda x: (x @ A, x.sum().astype(np.float32)), X).memory_analysis()
    assert memory.argument_size_in_bytes == X.nbytes
    assert memory.output_size_in_bytes == X.nbytes + 4
    assert memory.constant_size_in_bytes == A.nbytes
    assert memory.alias_size_in_bytes == 0
    assert memory.generated_code_size_in_bytes > 0
    assert memory.unknown == ()


def test_results_in_donated_arguments_take_no_memory():
    plain = compiled(lambda x: x + 1, X).memory_analysis()
    donated = compiled(lambda x: x + 1, X, donate_argnums=0).memory_analysis()
    assert donated.alias_size_in_bytes == X.nbytes
    slot = 8
    assert plain.peak_memory_in_bytes - donated.peak_memory_in_bytes == X.nbytes + slot


def test_memory_shows_the_lines_of_what_is_large():
    def f(x):
        y = np.exp(x @ A)  # the large one
        return y @ y.T

    memory = compiled(f, X).memory_analysis()
    assert "# the large one" in memory.largest[0][2]
    assert re.search(r"peak +[\d.]+ k?B", repr(memory))


def test_memory_says_what_numpy_may_need():
    memory = compiled(lambda x: by_numpy(x) + 1, X).memory_analysis()  # decomposed here
    (unknown,) = memory.unknown
    assert re.fullmatch(r"what NumPy needs inside of toeplitz_solve at test_report.py:\d+", unknown)
    assert "not counted: what NumPy needs" in repr(memory)


def test_results_of_numpy_go_with_their_last_reader():
    def sorts(x, n):
        for _ in range(n):
            x = by_numpy(x) + x
        return x

    few, many = (
        compiled(sorts, X, n, static_argnums=1).memory_analysis().temp_size_in_bytes
        for n in (3, 30)
    )
    assert many - few < X.nbytes + 8 * 2 * 27  # a slot for each, and its memory for one only


# Cost.


def loop(n):
    return lambda x: lax.fori_loop(0, n, lambda i, c: c * x + 1, x)


COSTS = {
    "addition": (lambda x: x + 1, (X,), 12, 0),
    "expression": (lambda x: (x + 1) * x / 3 - x, (X,), 48, 0),
    "function": (lambda x: np.exp(x) + np.tanh(x), (X,), 12, 24),
    "root": (lambda x: np.sqrt(x), (X,), 0, 12),
    "comparison": (lambda x: np.where(x > 0, x, 2 * x), (X,), 36, 0),
    "conversion": (lambda x: x.astype(np.float32), (X,), 0, 0),
    "views": (lambda x: x.T[::-1].reshape(2, 6), (X,), 0, 0),
    "sum": (lambda x: x.sum(), (X,), 12, 0),
    "running sum": (lambda x: x.cumsum(0), (X,), 12, 0),
    "product": (lambda x: x @ A, (X,), 2 * 4 * 3 * 3, 0),
    "complex product": (lambda x: x @ x.T, (C,), 8 * 4 * 4 * 3, 0),
    "complex sum": (lambda x: x + x, (C,), 24, 0),
    "complex multiplication": (lambda x: x * x, (C,), 72, 0),
    "lookup": (lambda x: x[np.array([0, 2])], (X,), 0, 0),
    "accumulation": (lambda x: x.at[np.array([0, 2])].add(1.0), (X,), 6, 0),
    "nothing": (lambda x: x, (X,), 0, 0),
    "empty": (lambda x: np.exp(x) * 2, (X[:0],), 0, 0),
    "small loop": (loop(5), (X[0],), 5 * 2 * 3, 0),
    "large loop": (lambda x: lax.fori_loop(0, 7, lambda i, c: np.tanh(c @ x), x),
                   (np.ones((20, 20)),), 7 * 2 * 20**3, 7 * 400),
    "nested loops": (lambda x: lax.fori_loop(0, 3, lambda i, c: loop(5)(c), x),
                     (X[0],), 3 * 5 * 2 * 3, 0),
    "branch": (lambda x: lax.cond(x[0, 0] > 0, lambda c: c + 1, lambda c: c * 2 + 1, x),
               (X,), 12 * 2 + 1, 0),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", COSTS)
def test_operations_are_counted(name):
    function, args, flops, functions = COSTS[name]
    cost = compiled(function, *args).cost_analysis()
    counters = 2 * 15 if "loop" in name or name == "branch" else 0
    assert flops <= cost["flops"] <= flops + counters
    assert cost["transcendentals"] == functions
    assert cost.unknown == ()


BYTES = {
    "addition": (lambda x: x + 1, (X,), 2 * X.nbytes),
    "twice the same": (lambda x: x + x.T.T * x, (X,), 2 * X.nbytes),
    "fused": (lambda x: np.exp(x + 1) * 2 - 3, (X,), 2 * X.nbytes),
    "a row": (lambda x: x[0] + 1, (X,), 2 * 3 * 8),
    "broadcast": (lambda x: x + x[0], (X,), 2 * X.nbytes),
    "sum": (lambda x: x.sum(), (X,), X.nbytes + 8),
    "product": (lambda x: x @ A, (X,), 2 * X.nbytes + A.nbytes),
    "lookup": (lambda x: x[np.array([0, 3, 1])], (X,), 2 * 9 * 8 + 3 * 8),
    "loop": (loop(1000), (X,), 2 * X.nbytes),  # nobody reads its counter
    "numpy": (lambda x: fg.scipy.linalg.signm(x), (SQUARE,), 2 * SQUARE.nbytes),
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_bytes_are_counted(name):
    function, args, nbytes = BYTES[name]
    assert compiled(function, *args).cost_analysis()["bytes accessed"] == nbytes


def loop_of_numpy(x):
    return lax.fori_loop(0, 3, lambda i, c: by_numpy(c) + i, x)


UNKNOWN = {
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 99, lambda c: c * 2, x),
              r"the number of iterations of while at test_report.py:\d+, counted as one"),
    "numpy": (by_numpy, r"the arithmetic of toeplitz_solve"),
    "loop of numpy": (loop_of_numpy, r"the arithmetic of toeplitz_solve at test_report.py:\d+"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_nobody_knows_is_said(name):
    function, pattern = UNKNOWN[name]
    cost = compiled(lambda x: function(x), X).cost_analysis()
    assert re.match(pattern, cost.unknown[0])
    assert f"not counted: {cost.unknown[0]}" in repr(cost)


def test_every_step_has_its_cost_and_its_lines():
    def f(x):
        y = x @ A  # the product
        return np.exp(y)  # the function

    cost = compiled(f, X).cost_analysis()
    product, kernel = cost.steps
    assert (product.step, kernel.step) == ("matrix product", "kernel 0")
    assert "# the product   [contract]" in product.source[0]
    assert "# the function   [exp]" in kernel.source[0]
    assert kernel.transcendentals == 12
    assert sum(step.flops for step in cost.steps) == cost["flops"] == 72
    assert sum(step.seconds for step in cost.steps) == pytest.approx(cost["optimal_seconds"])
    assert cost["optimal_seconds"] > 0
    assert "# the product" in repr(cost)


def test_the_stages_tell_types_and_cost():
    lowered = fg.jit(lambda x, y: {"a": x @ y}).lower(X, y=A)
    assert lowered.cost_analysis()["flops"] == lowered.compile().cost_analysis()["flops"] == 72
    assert lowered.as_text() == lowered.compile().as_text()
    for stage in (lowered, lowered.compile()):
        assert stage.out_info == {"a": fg.ShapeDtypeStruct((4, 3), np.float64)}
        (args, kwargs) = stage.args_info
        assert args == (fg.ShapeDtypeStruct((4, 3), np.float64),)
        assert kwargs == {"y": fg.ShapeDtypeStruct((3, 3), np.float64)}
        assert stage.in_tree == fg.tree.structure(((X,), {"y": A}))
        assert stage.out_tree == fg.tree.structure({"a": 1})


# Plans.


def test_plans_show_arguments_by_their_paths():
    text = fg.jit(lambda w, x: w["a"] @ x).lower({"a": X}, A).as_text()
    assert text.startswith("arguments\n  a:f64[4,3]  args[0]['a']\n  b:f64[3,3]  args[1]\n")


def test_steps_show_what_they_read_and_write_and_for_which_lines():
    def f(x):
        y = x @ A  # the product
        return np.exp(y) + x  # the function

    plan = plan_of(f, X)
    assert "a:f64[4,3], b:f64[3,3] -> c:f64[4,3]; 264 B" in plan
    assert "c:f64[4,3], a:f64[4,3] -> e:f64[4,3]; 288 B" in plan
    rows = [row.strip() for row in plan.splitlines()]
    assert any(
        re.fullmatch(r"# test_report.py:\d+ .*# the product   \[contract\]", r) for r in rows
    )
    assert any(
        re.fullmatch(r"# test_report.py:\d+ .*# the function   \[exp, add\]", r) for r in rows
    )


def test_kernels_show_the_lines_of_their_statements():
    text = fg.jit(lambda x: np.exp(x) + 1).lower(X).as_text()
    number = sys._getframe().f_lineno - 1
    kernel = text.partition("# kernel 0")[2]
    # Numbers, or vectors of them, in which each loop has its own.
    assert re.search(rf"v0(_\d)? = exp\(x0\1\)  # exp, test_report.py:{number}\n", kernel)
    assert re.search(rf"v1(_\d)? = v0\1 \+ c0  # add, test_report.py:{number}\n", kernel)
    assert re.search(r"p0 = ptr_f64\(.*\)  # a:f64\[4,3\]\n", kernel)
    assert re.search(r"p1 = ptr_f64\(.*\)  # c:f64\[4,3\]\n", kernel)


def test_derivatives_belong_to_the_line_that_they_are_of():
    def f(x):
        y = np.tanh(x)  # here
        return y.sum()

    assert "# here   [tanh" in plan_of(fg.grad(f), X)


def test_a_kernel_of_several_functions_is_compiled_once_and_shown_with_each_ones_lines():
    def f(x):
        return np.expm1(x) * 3  # of f

    def g(x):
        return np.expm1(x) * 3  # of g

    first, second = fg.jit(f), fg.jit(g)
    first(X)
    second(X)
    assert second.cache_info().kernels_reused == 1
    assert "# of f" in first.lower(X).as_text()
    assert "# of g" in second.lower(X).as_text()


PLANS = {
    "scan": (lambda x: lax.scan(lambda c, s: (np.tanh(c @ s), c), x, np.ones((50, 30, 30))),
             (np.ones((30, 30)),), "  50 times   # test_report.py"),
    "gates": (lambda x: lax.scan(lambda c, s: (np.tanh(np.sum(c) + s @ x)[:, ::4], None),
                                 np.ones((5, 7)), np.ones((50, 5, 30))),
              (np.ones((30, 28)),), "matrix product f64: 1 x [250,30] @ [30,28]"),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c @ x * 2, x),
              (np.ones((30, 30)),), "  while   # test_report.py"),
    "branch": (lambda x: lax.cond(x[0, 0] > 0, lambda c: c @ c, lambda c: c, x),
               (np.ones((30, 30)),), "  branch 0   # test_report.py"),
    "small loop": (loop(5), (X[0],), "kernel 0"),
    "scatter": (lambda x: x.at[np.array([0, 2])].add(1.0), (X,), "kernel 1"),
    "assembly": (lambda x: np.concatenate([x, x + 1]), (X,), "kernel 1"),
    "nothing": (lambda x: (), (X,), ""),
    "numpy": (lambda x: by_numpy(x), (X,), "\n  numpy: toeplitz_solve; "),
    "loop of numpy": (lambda x: loop_of_numpy(x), (X,), "\n    numpy: toeplitz_solve; "),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_every_kind_of_step_can_be_shown(name):
    function, args, expected = PLANS[name]
    lowered = fg.jit(function).lower(*args)
    assert expected in lowered.as_text()
    assert set(lowered.cost_analysis()) == {
        "flops", "transcendentals", "bytes accessed", "optimal_seconds"
    }  # fmt: skip
    assert lowered.compile().memory_analysis().peak_memory_in_bytes > 0
