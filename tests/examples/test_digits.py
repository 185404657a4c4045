"""The scanned digits: those of scikit-learn, divided so that all labels are in both parts."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from tests.examples.program import load

example = load("digits")


def test_they_are_those_of_scikit_learn_divided_once():
    found, again = example.load(), example.load()
    images, labels = load_digits(return_X_y=True)
    assert len(found.x) == len(found.y) == 1347
    assert len(found.test_x) == len(found.test_y) == 450

    def ordered(x, y):
        rows = np.column_stack([x, y])
        return rows[np.lexsort(rows.T)]

    x, y = np.concatenate([found.x, found.test_x]), np.concatenate([found.y, found.test_y])
    np.testing.assert_array_equal(ordered(16 * x, y), ordered(images, labels))
    assert np.ptp(np.bincount(found.test_y)) <= 3
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)
