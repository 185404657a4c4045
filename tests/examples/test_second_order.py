"""The example of second derivatives: what it finds, and its picture."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import matplotlib.image
import numpy as np
import pytest
import scipy.optimize

PROGRAM = Path(__file__).parents[2] / "examples" / "second_order.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("second_order", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules["second_order"] = module
    spec.loader.exec_module(module)
    return module


def test_derivatives_are_those_that_scipy_has_written_down(example):
    rng = np.random.default_rng(3)
    assert max(example.differences_from_scipy(*rng.normal(size=(2, 5))).values()) < 1e-12


def test_both_methods_converge_and_newton_does_as_by_hand(example):
    newton, lbfgs = example.newton_path(example.START), example.lbfgs_path(example.START)
    np.testing.assert_allclose(newton[-1], 1.0, atol=1e-12)
    np.testing.assert_allclose(lbfgs[-1], 1.0, atol=1e-8)
    x = example.START
    for point in newton:
        np.testing.assert_allclose(point, x, rtol=1e-9)
        x = x - np.linalg.solve(scipy.optimize.rosen_hess(x), scipy.optimize.rosen_der(x))


def test_the_learned_rate_is_the_best_one(example, tmp_path, capsys):
    example.main(["--out-dir", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    learned, best = (
        [
            float(word.strip(","))
            for word in line.split()
            if word.strip(",").replace(".", "").isdigit()
        ]
        for line in lines
        if "loss after training" in line
    )
    assert learned[-1] <= 1.02 * best[-1]
    assert abs(learned[0] / best[1] - 1) < 0.05
    pixels = matplotlib.image.imread(tmp_path / "second_order.png")
    assert min(pixels.shape[:2]) > 300
    assert pixels[..., :3].std() > 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate-steps", "0"], "--rate-steps must be at least 1"),
        (["--seed", "-1"], "--seed at least 0"),
        (["--out-dir", str(PROGRAM)], "argument --out-dir: "),
    ],
)
def test_bad_values_end_with_a_message_and_code_2(example, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        example.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
