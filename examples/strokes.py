"""Shared by the example programs: the shapes of the ten digits, as strokes of a pen."""

from __future__ import annotations

import numpy as np

PIECES = 24
"""Segments of a shape."""

Stroke = list[list[float]]
"""Points (x, y) in a square from (-1, -1) to (1, 1), with y downwards."""


def arc(x: float, y: float, a: float, b: float, start: float, end: float) -> Stroke:
    """Points of an ellipse with half axes a and b; angles in turns, clockwise from the right."""
    t = 2 * np.pi * np.linspace(start, end, 13)
    return np.stack([x + a * np.cos(t), y + b * np.sin(t)], axis=1).tolist()


SHAPES: list[list[Stroke]] = [
    # 0
    [arc(0, 0, 0.6, 0.95, -0.25, 0.75)],
    [arc(0, 0, 0.45, 0.9, -0.2, 0.8)],
    # 1
    [[[0, -1], [0, 1]]],
    [[[-0.4, -0.6], [0.05, -1], [0.05, 1]]],
    # 2
    [[*arc(0, -0.45, 0.55, 0.5, -0.5, 0.1), [-0.6, 0.95], [0.65, 0.95]]],
    [[*arc(0, -0.5, 0.5, 0.45, -0.55, 0.15), *arc(-0.35, 0.75, 0.2, 0.2, -0.2, -0.9), [0.7, 0.9]]],
    # 3
    [[*arc(-0.05, -0.5, 0.5, 0.45, -0.55, 0.25), *arc(-0.05, 0.48, 0.6, 0.5, -0.25, 0.45)]],
    [[[-0.5, -0.95], [0.5, -0.95], [-0.05, -0.15], *arc(-0.05, 0.42, 0.55, 0.52, -0.2, 0.42)]],
    # 4
    [[[-0.5, -0.95], [-0.6, 0.1], [0.6, 0.1]], [[0.4, -0.9], [0.35, 1]]],
    [[[0.35, 1], [0.35, -1], [-0.65, 0.3], [0.7, 0.3]]],
    # 5
    [[[0.6, -0.95], [-0.45, -0.95], [-0.5, -0.1], *arc(-0.05, 0.4, 0.55, 0.52, -0.33, 0.42)]],
    [[[0.5, -0.9], [-0.4, -0.85], [-0.35, -0.15], *arc(0, 0.35, 0.5, 0.55, -0.28, 0.36)]],
    # 6
    [[[0.35, -0.95], [-0.35, -0.2], *arc(0, 0.45, 0.5, 0.5, -0.5, 0.55)]],
    [[*arc(0.35, 0.2, 0.9, 1.15, -0.3, -0.5), *arc(0, 0.5, 0.48, 0.45, 0.5, 1.5)]],
    # 7
    [[[-0.6, -0.9], [0.6, -0.9], [-0.1, 1]]],
    [[[-0.6, -0.9], [0.6, -0.9], [-0.1, 1]], [[-0.3, 0.05], [0.45, 0.05]]],
    # 8
    [[*arc(0, -0.5, 0.42, 0.42, 0.25, 1.25), *arc(0, 0.45, 0.52, 0.5, -0.25, 0.75)]],
    [
        [
            *arc(0, -0.5, 0.4, 0.4, -0.1, -0.75),
            *arc(0, 0.45, 0.5, 0.52, -0.25, 0.75),
            [0.35, -0.75],
        ]
    ],
    # 9
    [[*arc(0, -0.45, 0.5, 0.48, 0, 1), [0.42, 1]]],
    [[*arc(0, -0.45, 0.48, 0.45, -0.05, 0.95), *arc(-0.2, 0.1, 0.68, 0.85, -0.1, 0.33)]],
]
"""Two variants of each digit; each is a list of strokes, and a stroke a list of points."""


def segments(strokes: list[Stroke]) -> np.ndarray:
    """Strokes as `PIECES` short segments (pieces, 2, 2), shared according to their lengths."""
    parts = [np.array(s) for s in strokes]
    lengths = [np.linalg.norm(np.diff(p, axis=0), axis=1).sum() for p in parts]
    counts = np.maximum(1, np.round(PIECES * np.array(lengths) / sum(lengths)).astype(int))
    counts[-1] += PIECES - counts.sum()
    found = []
    for points, count in zip(parts, counts, strict=True):
        along = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        places = np.linspace(0, along[-1], count + 1)
        line = np.stack([np.interp(places, along, points[:, i]) for i in range(2)], axis=1)
        found.append(np.stack([line[:-1], line[1:]], axis=1))
    return np.concatenate(found)


TEMPLATES = np.array([segments(shape) for shape in SHAPES]).reshape(10, 2, PIECES, 2, 2)
"""The segments of both variants of each digit."""
