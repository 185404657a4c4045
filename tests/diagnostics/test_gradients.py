"""check_gradients against known right and wrong gradients, and compare against NumPy's verdicts."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.diagnostics import check_gradients, compare
from funcgrad.errors import ArgumentError

METHODS = ["richardson", "differences", "complex"]
PARAMS = {"w": np.linspace(-1, 1, 6).reshape(2, 3), "b": np.ones(3), "n": 3}


def smooth(params, x):
    return np.sum(np.tanh(x @ params["w"] + params["b"]) ** 2) * params["n"]


def scaled_sine(error):
    """The sine with a derivative that is wrong by a factor."""

    @fg.custom_vjp
    def sine(x):
        return np.sin(x)

    sine.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (ct * np.cos(x) * (1 + error),))
    return sine


@pytest.mark.parametrize("method", METHODS)
def test_right_gradients_of_all_floating_leaves(method):
    report = check_gradients(smooth, (PARAMS, np.ones((4, 2))), method)
    assert report
    assert [leaf.path for leaf in report.leaves] == ["args[0]['b']", "args[0]['w']", "args[1]"]
    assert [leaf.checked for leaf in report.leaves] == [(3, 3), (6, 6), (8, 8)]
    bound = {"richardson": 1e-8, "differences": 1e-6, "complex": 1e-13}[method]
    assert all(leaf.max_rel < bound for leaf in report.leaves)
    assert "all gradients are right" in str(report)


@pytest.mark.parametrize("method", METHODS[:2])
@pytest.mark.parametrize("error", [1.0, 1e-2, 1e-4])
def test_wrong_gradients_are_found_and_measured(method, error):
    sine = scaled_sine(error)
    x = np.array([0.1, 0.2, 0.3])
    report = check_gradients(lambda p: np.sum(sine(p["x"]) + p["y"]), ({"x": x, "y": x},), method)
    assert not report
    assert [bool(leaf) for leaf in report.leaves] == [False, True]
    worst = report.leaves[0]
    assert worst.verdict == "wrong"
    assert worst.worst == (0,)
    assert worst.max_abs == pytest.approx(error * np.cos(0.1), rel=1e-3)
    assert "wrong: args[0]['x']" in str(report)
    assert "wrong at [0]" in str(report)


@pytest.mark.parametrize(
    ("function", "x", "verdict"),
    [
        (fg.nn.relu, [0.0, 1.0], "kink"),
        (np.abs, [0.0, 1.0], "ok"),
        (np.sqrt, [0.0, 1.0], "not finite"),
        (lambda x: fg.lax.stop_gradient(x) + 0 * x, [1.0, 2.0], "wrong"),
        (lambda x: x * 0, [], "ok"),
    ],
)
def test_verdicts_at_special_points(function, x, verdict):
    report = check_gradients(lambda x: np.sum(function(x)), (np.array(x),))
    assert report.leaves[0].verdict == verdict
    assert bool(report) == (verdict in ("ok", "kink"))


@pytest.mark.parametrize(
    "function",
    [np.sin, lambda x: (np.sin(x) * np.float32(2)).astype(np.float32), lambda x: (x * x, [x])],
    ids=["wide", "narrow", "tree"],
)
def test_single_precision_and_results_that_are_trees(function):
    assert check_gradients(function, (np.array([0.5, 1.0, 2.0], np.float32),))


def test_large_leaves_are_sampled():
    report = check_gradients(lambda x: np.sum(x**2), (np.ones((20, 20)),), max_entries=7)
    assert report
    assert report.leaves[0].checked == (7, 400)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((1,),), "no argument of smooth"),
        ((np.ones(3),), "tuple of arguments"),
        (((1.0,), "forward"), "richardson, differences, complex"),
    ],
)
def test_what_cannot_be_checked_is_refused(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        check_gradients(smooth, *arguments)


def test_results_that_are_not_real_numbers_are_refused():
    with pytest.raises(ArgumentError, match="dtype int64"):
        check_gradients(lambda x: np.argmax(x), (np.ones(3),))


A = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("manual", "automatic", "verdicts"),
    [
        ({"a": A, "b": 1.0}, {"a": A.copy(), "b": 1.0}, ["exact", "exact"]),
        ([A], [A * (1 + 1e-13)], ["approximate"]),
        ([A, A], [A, A + 1e-3], ["exact", "different"]),
        ([np.array([1, np.nan, np.inf])], [np.array([1, np.nan, np.inf])], ["exact"]),
        ([np.array([1.0, np.nan])], [np.array([1 + 1e-14, np.nan])], ["approximate"]),
        ([np.array([1.0, np.inf])], [np.array([1.0, 2.0])], ["different"]),
        ([np.array([1.0, np.nan])], [np.array([1.0, 2.0])], ["different"]),
        ([A], [np.ones(3)], ["shape (2,) against (3,)"]),
        ({"a": A, "b": A}, {"a": A, "c": A}, ["exact", "only by hand", "only automatic"]),
        (A, A, ["exact"]),
        ([np.zeros((0, 2))], [np.zeros((0, 2))], ["exact"]),
        ([True, 2], [True, 2], ["exact", "exact"]),
    ],
)
def test_trees_are_compared_leaf_by_leaf(manual, automatic, verdicts):
    result = compare(manual, automatic)
    assert [leaf.verdict for leaf in result.leaves] == verdicts
    assert bool(result) == all(v in ("exact", "approximate") for v in verdicts)
    assert result.exact == all(v == "exact" for v in verdicts)
    assert all(verdict in str(result) for verdict in verdicts)


def test_the_largest_difference_is_told():
    (leaf,) = compare([A], [A + np.array([0.0, 0.25])]).leaves
    assert leaf.max_diff == 0.25


def test_trees_of_other_kinds_with_the_same_paths_are_different():
    result = compare([A, A], (A, A))
    assert not result
    assert "PyTreeDef([*, *]) by hand, PyTreeDef((*, *)) automatic" in str(result)
