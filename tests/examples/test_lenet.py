"""A convolutional network: unseen digits are read rightly."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("lenet")


@pytest.mark.nightly
def test_98_percent_of_unseen_digits_are_read_rightly(tmp_path):
    result = run(example, "--output", tmp_path / "lenet.png")
    assert result.accuracy >= 0.98
    assert result.losses[-1] < 0.1 * result.losses[0]
    assert {leaf.dtype for leaf in example.fg.tree.leaves(result.params)} == {np.dtype("float32")}
    check_picture(tmp_path / "lenet.png")


def test_dropout_is_for_training_only():
    network = example.make_network(0.5)
    (x, _), _ = example.load_data()
    params, _ = network.init(example.fg.random.key(0), x)
    key = example.fg.random.key(1)
    one, other = (network.apply(params, (), x[:4], key=key, train=t)[0] for t in (False, True))
    np.testing.assert_array_equal(one, network.apply(params, (), x[:4])[0])
    assert not np.allclose(one, other)
