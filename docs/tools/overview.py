"""What the page on benchmarks says in total, for those who do not read it: a chart and a table.

    python -m docs.tools.overview

It reads the tables of geometric means of ``docs/benchmarks.md``, so they cannot differ. README and
``docs/start/why.md`` show the chart; the table stands on that page, between two comments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path

DOCS = Path(__file__).parents[1]
BENCHMARKS = DOCS / "benchmarks.md"
CHART = DOCS / "benchmarks" / "overview.svg"
PAGE = DOCS / "start" / "why.md"
PLACE = re.compile(r"(<!-- figures -->\n).*?(<!-- end of figures -->)", re.DOTALL)
PEERS = {
    "jax": ("JAX", "#2a78c2"),
    "torch": ("PyTorch, eager", "#f0902c"),
    "autograd": ("autograd (HIPS)", "#5a9e4b"),
}
WORDS = {
    "dispatch": "calls that do almost nothing", "linear_algebra": "linear algebra",
    "total": "all rows",
}  # fmt: skip
TIMES = {
    "Time of a call": "",
    "First call, empty cache": "first call, nothing compiled before",
    "Process start to first result, empty cache": "the same, from the start of Python",
    "First call in a second process": "first call in a second process",
}
"""Headings of the tables of the page, and what the last rows of ours call them."""
BEHIND = "rows behind / all"

LEFT, RIGHT, BAR, TOP = 210, 720, 11, 44
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
LEAST = 0.7
STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1c2733; }
.tick { fill: #55606c; text-anchor: middle; }
.group { text-anchor: end; }
.number { font-size: 11px; fill: #55606c; }
path { stroke: #d5dbe1; }
.one { stroke: #8a949e; }"""

Means = dict[str, dict[str, str]]
"""Group -> peer -> time of the peer / time of funcgrad, as it is written; gaps are left out."""


def means(page: str, heading: str) -> Means:
    """The table of geometric means under a heading, of which its beginning is enough."""
    table = re.search(
        rf"^### {heading}, .*\n\n\| geometric mean \|(.*)\n\|.*\n((?:\|.*\n)*)", page, re.MULTILINE
    )
    if table is None:
        return {}
    peers = [cell.strip() for cell in table[1].split("|")[:-1]]
    found: Means = {}
    for row in table[2].splitlines():
        group, *cells = (cell.strip() for cell in row.split("|")[1:-1])
        pairs = zip(peers, cells, strict=True)
        found[group] = {peer: cell for peer, cell in pairs if cell and peer in PEERS}
    return found


def peers_in(found: Means) -> list[str]:
    """The peers of which a table knows anything."""
    return [peer for peer in PEERS if any(peer in row for row in found.values())]


def ratios(found: Means) -> dict[str, dict[str, float]]:
    """The figures as numbers."""
    return {
        group: {peer: float(cell) for peer, cell in row.items()}
        for group, row in found.items()
        if group != BEHIND
    }


def draw(found: dict[str, dict[str, float]]) -> str:
    """The chart as SVG: bars that begin at 1, on a logarithmic axis."""
    peers = [peer for peer in PEERS if any(peer in row for row in found.values())]
    most = max((value for row in found.values() for value in row.values()), default=1.0) * 1.4
    scale = (RIGHT - LEFT) / math.log(most / LEAST)

    def place(value: float) -> float:
        return LEFT + scale * math.log(max(value, LEAST) / LEAST)

    step = BAR * len(peers) + 12
    bottom = TOP + step * len(found)
    height = bottom + 34
    size = f'width="760" height="{height}" viewBox="0 0 760 {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<defs><style>{STYLE}</style></defs>",
        f'<rect width="760" height="{height}" fill="#fff"/>',
    ]
    for i, peer in enumerate(peers):
        name, color = PEERS[peer]
        x = LEFT + 150 * i
        parts.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{x + 18}" y="23">{name}</text>')
    for tick in TICKS:
        if LEAST <= tick <= most:
            x = place(tick)
            line = 'class="one" ' if tick == 1 else ""
            parts.append(f'<path {line}d="M{x:.1f} {TOP - 6} V{bottom}"/>')
            parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 16}">{tick}</text>')
    for i, (group, row) in enumerate(found.items()):
        y = TOP + step * i
        middle = y + (BAR * len(peers)) / 2 + 4
        word = WORDS.get(group, group)
        parts.append(f'<text class="group" x="{LEFT - 10}" y="{middle:.0f}">{word}</text>')
        for j, peer in enumerate(peers):
            if peer not in row:
                continue
            start, end = sorted((place(1.0), place(row[peer])))
            top = y + BAR * j
            extent = f'x="{start:.1f}" y="{top}" width="{max(end - start, 1):.1f}"'
            parts.append(f'<rect {extent} height="{BAR - 1}" fill="{PEERS[peer][1]}"/>')
            at = f'x="{max(end, place(1.0)) + 4:.1f}" y="{top + 9}"'
            parts.append(f'<text class="number" {at}>{row[peer]:.1f}</text>')
    middle = (LEFT + RIGHT) / 2
    label = "time of the other library / time of funcgrad, compiled calls, float32, 2 threads"
    parts.append(f'<text class="tick" x="{middle:.0f}" y="{height - 4}">{label}</text>')
    return "\n".join([*parts, "</svg>\n"])


def table(page: str) -> str:
    """The table of `PAGE`: groups, and in its last rows how many are behind, and first calls."""
    found = {heading: means(page, heading) for heading in TIMES}
    calls = found.pop("Time of a call")
    peers = peers_in(calls)

    def row(name: str, figures: dict[str, str]) -> Iterable[str]:
        return [name, *(figures.get(peer, "") for peer in peers)]

    rows = [row(WORDS.get(group, group), figures) for group, figures in calls.items()]
    rows[-1] = row("rows in which funcgrad is slower", calls[BEHIND])
    rows += [row(TIMES[name], figures["total"]) for name, figures in found.items() if figures]
    head = ["", *(f"against {PEERS[peer][0]}" for peer in peers)]
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def with_table(text: str, page: str) -> str:
    """A page with the table at its place."""
    return PLACE.sub(lambda place: f"{place[1]}{table(page)}{place[2]}", text)


def main() -> None:
    """Write the chart and the table."""
    page = BENCHMARKS.read_text(encoding="utf-8")
    CHART.write_text(draw(ratios(means(page, "Time of a call"))), encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), page), encoding="utf-8")


if __name__ == "__main__":
    main()
