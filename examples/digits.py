"""Shared by the example programs: the scanned digits that come with scikit-learn."""

from __future__ import annotations

from importlib.metadata import distribution
from typing import NamedTuple

import numpy as np

from funcgrad import data

FILE = "sklearn/datasets/data/digits.csv.gz"
"""Read without importing scikit-learn, which takes longer than most of the programs."""
BRIGHTEST = 16.0


class Digits(NamedTuple):
    """Images `(n, 64)` of grey values between 0 and 1, labels 0-9, and the same for testing."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def load() -> Digits:
    """The 1,797 digits, three quarters of them for training, always the same ones."""
    rows = np.loadtxt(str(distribution("scikit-learn").locate_file(FILE)), delimiter=",")
    images, labels = rows[:, :-1] / BRIGHTEST, rows[:, -1].astype(np.intp)
    training, testing = data.train_test_split((images, labels), 0.25, seed=0, stratify=labels)
    return Digits(*training, *testing)
