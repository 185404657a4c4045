"""Every workload runs, and what it computes is right; so is the judgement about that.

Each run of the suite verifies funcgrad alone, at small sizes, in one dtype, in this process: all
fresh workloads and a sample of the tuned rows. The nightly one verifies the rest, both dtypes, and
the peers that are installed.
"""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

from tests.benchmarks.libraries import PEERS, is_installed, load, peers_of
from tests.benchmarks.sides import verified_calls
from tests.benchmarks.verify import Judge, Mismatch
from tests.benchmarks.workload import (
    GROUPS,
    SIZES,
    Problem,
    Row,
    all_rows,
    converted,
    leaves,
    map_arrays,
    row_of,
    select,
    set_of,
)

ROWS = all_rows()
OURS = load(["funcgrad"], "float64")["funcgrad"]

PROMISED = [
    *(
        "ode-ensemble",
        "ode-ensemble-gradients",
        "heat-3d",
        "heat-3d-gradient",
        "rosenbrock-gradient",
    ),
    *("horizontal-diffusion", "jacobi-2d", "n-body-force", "n-body", "im2col", "convolution"),
    *("logistic-regression-gradient", "spmv", "correlation", "correlation-gradient", "mlp-adam"),
    *("mlp-rmsprop", "gaussian-mixture-gradient", "bundle-adjustment-gradient", "recurrence"),
    *("transformer-block-gradient", "orbit", "rosenbrock-hessian", "hessian-product", "greeks"),
    *("black-scholes", "softmax-gradient", "layer-norm-gradient", "sum-axis-1", "lstm-gradient"),
    *("lenet-gradient", "per-example-gradients", "embedding-gradient", "sort", "game-of-life"),
    *("cholesky-gradient", "solve-gradient", "advection", "diffusion", "fft-convolution"),
    *("mandelbrot", "program-1000", "program-20000", "small-call", "small-network", "monte-carlo"),
    *("cumulative-sum", "linear-recurrence", "axpy-chain", "transcendental-chain", "eager-grad"),
]


def missing(row):
    return OURS.lacks(row.workload.needs)


def is_in_every_run(number: int, row: Row) -> bool:
    """Every fresh workload, without its gradient where it has another row, and some tuned rows."""
    if set_of(row.group) == "fresh":
        return row.differentiate == row.workload.rows[0]
    return number % 8 == 0


@pytest.mark.sampled(32)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if is_in_every_run(i, row) else pytest.mark.nightly)
        for i, (name, row) in enumerate(ROWS.items())
    ],
)
def test_funcgrad_computes_what_numpy_computes(name):
    row = ROWS[name]
    if missing(row):
        pytest.skip(f"funcgrad has no {missing(row)}")
    problem = row.workload.problem("small")
    assert list(verified_calls({"funcgrad": OURS}, row, problem, "float64")) == ["funcgrad"]


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.filterwarnings("default")  # peers may warn as they like
def test_peers_compute_what_numpy_computes(peer, dtype):
    if not is_installed(peer):
        pytest.skip(f"{peer} is not installed")
    libraries = load([peer, "funcgrad"], dtype)
    for row in ROWS.values():
        if not missing(row):
            calls = verified_calls(libraries, row, row.workload.problem("small"), dtype)
            assert "funcgrad" in calls, row.name


def test_there_are_eighty_fresh_workloads_and_sixteen_of_every_day():
    fresh = {row.workload.name: row for row in ROWS.values() if set_of(row.group) == "fresh"}
    assert len(fresh) == 96
    assert sum(row.group == "everyday" for row in fresh.values()) == 16


def test_numba_runs_references_that_are_loops():
    row = ROWS["seidel"]
    problem = row.workload.problem("small")
    assert peers_of(problem, ["funcgrad", "torch", "numba", "values"]) == ["funcgrad", "numba"]
    calls = verified_calls(load(["numba"], "float64"), row, problem, "float64")
    assert hasattr(calls["numba"].program, "py_func")
    gradient = ROWS["adi-gradient"]
    problem = gradient.workload.problem("small")
    assert verified_calls(load(["numba"], "float64"), gradient, problem, "float64") == {}


def test_the_workloads_that_the_documentation_promises_are_there():
    assert set(PROMISED) <= set(ROWS)


@pytest.mark.parametrize("size", SIZES)
def test_titles_say_what_is_computed_and_its_size(size):
    titles = {row.name: row.title(size) for row in ROWS.values()}
    assert not [name for name, title in titles.items() if len(title) < 10 or "{" in title]
    assert titles["mlp-inference-32"].startswith("Inference of a network of ")
    assert ROWS["scale"].title("normal") == "2 x + 1 of 4,000,000 numbers"
    assert ROWS["softmax-gradient"].title("small") == (
        "Softmax of 8 rows of 5 numbers: value and gradient"
    )


def test_every_group_has_rows_and_rows_are_found_alone():
    assert {row.group for row in ROWS.values()} == set(GROUPS)
    for row in ROWS.values():
        assert row_of(row.group, row.name) == row


def test_makers_take_as_many_sizes_as_they_name():
    for row in ROWS.values():
        for sizes in row.workload.sizes.values():
            inspect.signature(row.workload.make).bind(*sizes)


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["softmax"], ["softmax"]),
        (["softmax*"], ["softmax", "softmax-gradient"]),
        (["scale", "orbit"], ["scale", "orbit"]),
        (["orbit", "scale"], ["scale", "orbit"]),
    ],
)
def test_rows_are_selected_by_patterns(patterns, names):
    assert [row.name for row in select(ROWS, patterns)] == names


def test_a_group_is_a_pattern_and_an_unknown_one_an_error():
    assert {row.group for row in select(ROWS, ["stencils"])} == {"stencils"}
    with pytest.raises(ValueError, match="'stencil' is no row and no group of rows"):
        select(ROWS, ["stencil"])


def test_arguments_take_the_dtype_of_the_run():
    tree = {"x": np.zeros(2), "i": [np.zeros(2, np.int32)], "n": 1.5}
    found = converted(tree, "float32")
    assert [getattr(leaf, "dtype", None) for leaf in leaves(found)] == [
        np.dtype("int32"),
        None,
        np.dtype("float32"),
    ]
    assert map_arrays(np.size, tree) == {"x": 2, "i": [2], "n": 1}


# The judge.


def cube(x):
    return np.sum(x**3)


ARGUMENTS = (np.array([1.0, -2.0, 0.5]),)
CUBE = Problem(ARGUMENTS, lambda xp: cube, cube)


def test_right_values_and_gradients_pass():
    Judge(CUBE, False, "float64").check(np.array(-6.875))
    Judge(CUBE, True, "float64").check((np.array(-6.875), (3 * ARGUMENTS[0] ** 2,)))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array(-6.8750001), "array 0 is wrong by 1.5e-08"),
        (np.array(np.nan), "array 0 is wrong by nan"),
        (np.zeros(2), r"array 0 has shape \(2,\) instead of \(\)"),
        ((np.zeros(()), np.zeros(())), "2 arrays instead of 1"),
    ],
)
def test_wrong_values_are_found(value, message):
    with pytest.raises(Mismatch, match=message):
        Judge(CUBE, False, "float64").check(value)


@pytest.mark.parametrize("component", range(3))
def test_a_wrong_component_of_a_gradient_is_found(component):
    gradient = 3 * ARGUMENTS[0] ** 2
    gradient[component] *= 1.001
    with pytest.raises(Mismatch, match="the gradient is wrong by"):
        Judge(CUBE, True, "float64").check((np.array(-6.875), (gradient,)))
    if component != 2:  # of which a thousandth is less than the tolerance of float32
        Judge(CUBE, True, "float32").check((np.array(-6.875), (gradient,)))


def test_gradients_that_a_program_gives_itself_are_those_of_the_sum():
    problem = replace(CUBE, reference=lambda x: x**3, is_gradient=True)
    Judge(problem, False, "float64").check(3 * ARGUMENTS[0] ** 2)
    with pytest.raises(Mismatch, match="the gradient is wrong by"):
        Judge(problem, False, "float64").check(ARGUMENTS[0])


def test_finite_differences_that_do_not_converge_are_no_judge():
    def noise(x):
        return np.random.default_rng(int(abs(x.sum()) * 1e12)).normal() * 1e-3

    problem = replace(CUBE, reference=noise, tolerance=1e-3)
    with pytest.raises(Mismatch, match="finite differences are uncertain"):
        Judge(problem, True, "float64").check((np.array(noise(*ARGUMENTS)), ARGUMENTS))


def test_complex_steps_judge_gradients_of_functions_that_jump():
    def jumping(x):
        return np.sum(np.where(x * x > 1.0 + 1e-4, x, x**3))

    x = np.array([1.0, -2.0, 0.5])
    problem = Problem((x,), lambda xp: jumping, jumping, complex_step=True)
    slopes = np.where(x * x > 1.0 + 1e-4, 1.0, 3 * x**2)
    Judge(problem, True, "float64").check((np.array(jumping(x)), (slopes,)))
    with pytest.raises(Mismatch, match="the gradient is wrong by"):
        Judge(problem, True, "float64").check((np.array(jumping(x)), (slopes + 1e-3,)))


def test_a_share_of_the_elements_may_disagree_where_rounding_decides():
    problem = replace(CUBE, reference=lambda x: np.arange(10.0), agreeing=0.9)
    one_wrong = np.arange(10.0)
    one_wrong[3] = -1
    Judge(problem, False, "float64").check(one_wrong)
    one_wrong[4] = -1
    with pytest.raises(Mismatch, match="array 0 is wrong"):
        Judge(problem, False, "float64").check(one_wrong)


def test_libraries_agree_but_for_random_numbers():
    judge = Judge(CUBE, False, "float32")
    judge.check_agreement(np.ones(2), np.ones(2) + 1e-4)
    with pytest.raises(Mismatch, match="array 0 is wrong"):
        judge.check_agreement(np.ones(2), np.ones(2) + 1e-2)
    random = Judge(replace(CUBE, sampling_error=0.1), False, "float32")
    random.check_agreement(np.ones(2), np.zeros(2))
