"""Gradient flow: the table against NumPy, and what the monitors keep."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("gradient_flow")
STEPS = 6


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("flow") / "flow.png"
    return path, *run(example, "--steps", STEPS, "--batch-size", 64, "--output", path)


@pytest.mark.nightly
def test_the_table_is_that_of_numpy(found):
    _, report, _ = found
    assert [leaf.path for leaf in report.leaves] == [
        f"params['{name}']" for name in ("b1", "b2", "b3", "w1", "w2", "w3")
    ]
    for leaf, gradient in zip(report.leaves, report.gradients, strict=True):
        assert leaf.mean == pytest.approx(gradient.mean(), rel=1e-6, abs=1e-12)
        assert leaf.std == pytest.approx(gradient.std(), rel=1e-6)
        assert leaf.zeros == pytest.approx(np.mean(gradient == 0))
    assert report.verdict == "healthy"


@pytest.mark.nightly
def test_histograms_are_kept_of_everything(found):
    path, _, history = found
    assert set(history.statistics) == {"gradients", "updates", "activations"}
    for name, params in example.init_params(0).items():
        for monitor in ("gradients", "updates"):
            seen = history.statistics[monitor][f"['{name}']"]
            assert len(seen) == STEPS
            assert all(one.counts.sum() == params.size for one in seen)
        first = history.data_statistics["updates"][f"['{name}']"][0]
        assert float(first.mean) == pytest.approx(params.mean(), abs=1e-12)
        assert float(first.std) == pytest.approx(params.std())
    assert history.statistics["activations"]["['layer 2']"][0].counts.sum() == 64 * 128
    ratios = [values[-1] for values in history.ratios["updates"].values()]
    assert all(1e-4 < ratio < 1 for ratio in ratios)
    assert history.values["loss"][-1] < history.values["loss"][0]
    check_picture(path)
    for name in ("gradients", "updates", "weights", "activations"):
        check_picture(path.with_stem(f"flow_{name}"))


def test_digits_are_enlarged():
    image = example.enlarged(np.arange(64.0)[None]).reshape(28, 28)
    np.testing.assert_array_equal(image[3:-2:3, 3:-2:3], np.arange(64.0).reshape(8, 8))
    assert not image[:2].any()
