"""The chart of the README: geometric means of the page on benchmarks, as bars.

    python -m docs.tools.overview

It reads the first table of geometric means of ``docs/benchmarks.md``, so the two cannot differ.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
CHART = DOCS / "benchmarks" / "overview.svg"
PEERS = {"jax": ("JAX", "#2a78c2"), "torch": ("PyTorch, eager", "#f0902c")}
WORDS = {
    "dispatch": "calls that do almost nothing", "linear_algebra": "linear algebra",
    "total": "all rows",
}  # fmt: skip
LEFT, RIGHT, BAR, ROW, TOP = 210, 720, 11, 34, 44
TICKS = (1, 2, 5, 10, 20, 50, 100)
MOST = 140.0
STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1c2733; }
.tick { fill: #55606c; text-anchor: middle; }
.group { text-anchor: end; }
.number { font-size: 11px; fill: #55606c; }
path { stroke: #d5dbe1; }"""


def means(page: str) -> dict[str, dict[str, float]]:
    """Group -> peer -> time of the peer / time of funcgrad."""
    table = re.search(r"^\| geometric mean \|(.*)\n\|.*\n((?:\|.*\n)*)", page, re.MULTILINE)
    assert table is not None
    peers = [cell.strip() for cell in table[1].split("|")[:-1]]
    out = {}
    for row in table[2].splitlines():
        group, *cells = [cell.strip() for cell in row.split("|")[1:-1]]
        if " / " not in group:
            out[group] = {p: float(c) for p, c in zip(peers, cells, strict=True) if p in PEERS}
    return out


def place(value: float) -> float:
    """Where a ratio stands on the logarithmic axis."""
    return LEFT + (RIGHT - LEFT) * math.log(value) / math.log(MOST)


def draw(found: dict[str, dict[str, float]]) -> str:
    """The chart as SVG."""
    height = TOP + ROW * len(found) + 34
    bottom = height - 34
    size = f'width="760" height="{height}" viewBox="0 0 760 {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<defs><style>{STYLE}</style></defs>",
        f'<rect width="760" height="{height}" fill="#fff"/>',
    ]
    for i, (name, color) in enumerate(PEERS.values()):
        x = LEFT + 150 * i
        parts.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{x + 18}" y="23">{name}</text>')
    for tick in TICKS:
        x = place(tick)
        parts.append(f'<path d="M{x:.1f} {TOP - 6} V{bottom}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 16}">{tick}</text>')
    for i, (group, ratios) in enumerate(found.items()):
        y = TOP + ROW * i
        parts.append(
            f'<text class="group" x="{LEFT - 10}" y="{y + 16}">{WORDS.get(group, group)}</text>'
        )
        for j, (peer, (_, color)) in enumerate(PEERS.items()):
            width = place(max(ratios[peer], 1.02)) - LEFT
            top = y + BAR * j
            extent = f'x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR - 1}"'
            parts.append(f'<rect {extent} fill="{color}"/>')
            at = f'x="{LEFT + width + 4:.1f}" y="{top + 9}"'
            parts.append(f'<text class="number" {at}>{ratios[peer]:.1f}</text>')
    middle = (LEFT + RIGHT) / 2
    label = "time of the other library / time of funcgrad, compiled calls, float32, 2 threads"
    parts.append(f'<text class="tick" x="{middle:.0f}" y="{height - 4}">{label}</text>')
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    """Write the chart."""
    CHART.write_text(
        draw(means((DOCS / "benchmarks.md").read_text(encoding="utf-8"))), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
