"""What `record_torch` writes and `test_torch` reads."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("recorded_torch.npz")


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers by which outputs are multiplied before they are summed and differentiated."""
    return np.cos(np.arange(math.prod(shape), dtype=float)).reshape(shape)


def recorded() -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """Inputs, outputs and gradients of every case: ``cases[name]["grad"][key]``."""
    with np.load(FILE) as file:
        index, values = json.loads(file["index"].item()), file["values"]
    cases: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    start = 0
    for path, (shape, dtype) in index.items():
        stop = start + math.prod(shape)
        name, kind, key = path.split("/")
        array = values[start:stop].astype(dtype).reshape(shape)
        cases.setdefault(name, {}).setdefault(kind, {})[key] = array
        start = stop
    return cases
