"""Three ways to a derivative: the same values, errors as predicted, formulas that grow."""

from __future__ import annotations

import itertools

import pytest

from tests.examples.program import check_picture, load, run

example = load("three_ways")


def test_errors_and_sizes_are_as_theory_says(tmp_path, capsys):
    found = run(example, "--depth", 5, "--output", tmp_path / "ways.png")
    errors = {name: error for name, (error, _) in found.items()}
    sizes = {name: size for name, (_, size) in found.items()}
    assert max(errors["automatic"], errors["symbolic"]) < 1e-13
    assert 1e-13 < errors["central difference"] < 1e-8 < errors["forward difference"] < 1e-5
    assert sizes["symbolic"] > 5 * sizes["automatic"]
    assert len([row for row in capsys.readouterr().out.splitlines() if row.endswith(" us")]) == 4
    check_picture(tmp_path / "ways.png")


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("x", [0.1, 0.3, 0.75])
def test_all_ways_agree(n, x):
    for name, (call, _) in example.ways(n).items():
        assert example.relative_error(call(x), x, n) < 1e-4, name


def test_formulas_are_simplified():
    assert example.text(example.differentiate(("*", 4.0, "x"))) == "4.0"
    assert example.text(example.differentiate(("-", 1.0, "x"))) == "(0.0 - 1.0)"
    assert example.differentiate(("*", "x", "x")) == ("+", "x", "x")
    sizes = [example.size(example.differentiate(example.formula(n))) for n in range(1, 7)]
    assert all(b > 2 * a for a, b in itertools.pairwise(sizes))
