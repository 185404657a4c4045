"""A picture for each group: how many times faster than each peer, as bars on a logarithmic axis.

Pictures are SVG with text as text, which keeps them small. They need Matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from tests.benchmarks.measures import Record
from tests.benchmarks.report import Key, by_key, peers_of, speeds

COLOURS = {"jax": "#4c72b0", "torch": "#dd8452", "autograd": "#55a868"}
CHARTED = ("run", "first call, cold")
ROW_INCHES, WIDTH_INCHES = 0.3, 8.0
LIMITS = (0.05, 100.0)
"""The axis ends here; longer bars are cut and say how long they are."""


def draw(records: Sequence[Record], folder: Path) -> dict[str, list[Path]]:
    """Write the pictures of all groups into a folder; returns their paths by group."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Path]] = {}
    for group in dict.fromkeys(record.group for record in records):
        of_group = by_key(record for record in records if record.group == group)
        for key, rows in of_group.items():
            if key.measure in CHARTED and peers_of(rows):
                path = folder / f"{file_name(group, key)}.svg"
                draw_group(rows, key, path)
                found.setdefault(group, []).append(path)
    return found


def file_name(group: str, key: Key) -> str:
    """Of a group's picture."""
    measure = "run" if key.measure == "run" else "first"
    return f"{group}-{measure}-{key.dtype}-{key.size}-{key.threads}"


def draw_group(records: Sequence[Record], key: Key, path: Path) -> None:
    """Bars for every row, one for each peer."""
    peers = [peer for peer in peers_of(records) if peer in COLOURS]
    height = 1.2 + ROW_INCHES * len(records) * max(len(peers), 1) * 0.6
    with mpl.rc_context({"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "benchmarks"}):
        figure, axes = plt.subplots(figsize=(WIDTH_INCHES, height), layout="constrained")
        thickness = 0.8 / max(len(peers), 1)
        for number, peer in enumerate(peers):
            for line, record in enumerate(records):
                if peer in record.samples:
                    add_bar(
                        axes,
                        line + number * thickness,
                        speeds(record, peer).median,
                        thickness,
                        peer,
                    )
        axes.set_yticks([n + 0.4 - thickness / 2 for n in range(len(records))])
        axes.set_yticklabels([record.row for record in records])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlim(*LIMITS)
        axes.axvline(1.0, color="black", linewidth=0.8)
        axes.set_xlabel("time of the peer / time of funcgrad")
        axes.set_title(key.title, fontsize=9)
        handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[peer]) for peer in peers]
        axes.legend(handles, peers, loc="lower right")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def add_bar(axes: plt.Axes, at: float, value: float, thickness: float, peer: str) -> None:
    """A bar from 1 to the ratio, and its number."""
    end = min(max(value, LIMITS[0]), LIMITS[1])
    axes.barh(at, end - 1.0, thickness, left=1.0, color=COLOURS[peer])
    is_faster = end >= 1.0
    axes.annotate(
        f"{value:.2g}" if value < 100 else f"{value:.0f}",
        (end, at),
        xytext=(2 if is_faster else -2, 0),
        textcoords="offset points",
        ha="left" if is_faster and value < LIMITS[1] else "right",
        va="center",
        fontsize=7,
    )
