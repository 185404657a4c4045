"""Shared by the example programs: the scanned digits that come with scikit-learn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BRIGHTEST = 16.0


class Digits(NamedTuple):
    """Images `(n, 64)` of grey values between 0 and 1, labels 0-9, and the same for testing."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def load() -> Digits:
    """The 1,797 digits, three quarters of them for training, always the same ones."""
    images, labels = load_digits(return_X_y=True)
    x, test_x, y, test_y = train_test_split(
        images / BRIGHTEST, labels, random_state=0, stratify=labels
    )
    return Digits(x, y, test_x, test_y)
