"""Drawings of boxes and arrows, from text: ``docs/drawings/*.txt`` becomes ``*.svg`` beside it.

    python -m docs.tools.drawings

A line ``row: name; name: text; ...`` places boxes beside each other, the next such line those
below; ``/`` in a text begins a new line, and a name in parentheses is text without a box. A line
``from -> to: text`` is an arrow, ``from -- to`` a line. ``#`` begins a comment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "drawings"

LETTER, LINE = 7.4, 18  # width of a letter and height of a line, at 14 pixels
PADDING, GAP, BETWEEN = 14, 46, 46  # inside of a box, between neighbours, between rows
MARGIN = 12
STYLE = """\
text { font: 14px system-ui, sans-serif; fill: #1c2733; text-anchor: middle; }
text.on-arrow { font-size: 12px; fill: #55606c; }
text.on-arrow { paint-order: stroke; stroke: #fff; stroke-width: 5px; }
rect { fill: #e8f1fa; stroke: #2a78c2; stroke-width: 1.5; }
path { stroke: #55606c; stroke-width: 1.5; fill: none; }
marker path { fill: #55606c; stroke: none; }"""


@dataclass(frozen=True)
class Box:
    """A text and where its middle is."""

    lines: tuple[str, ...]
    framed: bool
    x: float
    y: float

    @property
    def width(self) -> float:
        return max(len(line) for line in self.lines) * LETTER + 2 * PADDING

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 1.2 * PADDING


@dataclass(frozen=True)
class Arrow:
    """A line between two boxes."""

    start: str
    end: str
    text: str
    pointed: bool


def parse(source: str) -> tuple[dict[str, Box], list[Arrow]]:
    """The boxes with their places, and the arrows."""
    rows: list[list[tuple[str, Box]]] = []
    arrows = []
    for line in source.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("row:"):
            rows.append([box_of(part) for part in line.removeprefix("row:").split(";")])
            continue
        found = re.fullmatch(r"(\w+) (->|--) (\w+)(?:: (.*))?", line.strip())
        if found is None:
            raise ValueError(f"neither a row nor an arrow: {line!r}")
        arrows.append(Arrow(found[1], found[3], found[4] or "", found[2] == "->"))
    return placed(rows), arrows


def box_of(part: str) -> tuple[str, Box]:
    name, _, text = part.strip().partition(": ")
    framed = not name.startswith("(")
    name = name.strip("()")
    return name, Box(tuple((text or name).split(" / ")), framed, 0, 0)


def placed(rows: list[list[tuple[str, Box]]]) -> dict[str, Box]:
    """Boxes of a row in the middle above those of the next."""
    widths = [sum(b.width for _, b in row) + GAP * (len(row) - 1) for row in rows]
    out: dict[str, Box] = {}
    y = float(MARGIN)
    for row, width in zip(rows, widths, strict=True):
        height = max(box.height for _, box in row)
        x = MARGIN + (max(widths) - width) / 2
        for name, box in row:
            out[name] = Box(box.lines, box.framed, x + box.width / 2, y + height / 2)
            x += box.width + GAP
        y += height + BETWEEN
    return out


def border(box: Box, other: Box) -> tuple[float, float]:
    """Where a line from the middle of a box to that of another leaves the box."""
    dx, dy = other.x - box.x, other.y - box.y
    if abs(dy) < 1:
        return box.x + (box.width / 2 if dx > 0 else -box.width / 2), box.y
    share = (box.height / 2) / abs(dy)
    reach = max(-box.width / 2 + PADDING, min(box.width / 2 - PADDING, dx * share))
    return box.x + reach, box.y + (box.height / 2 if dy > 0 else -box.height / 2)


def drawn_arrow(arrow: Arrow, boxes: dict[str, Box]) -> str:
    start, end = boxes[arrow.start], boxes[arrow.end]
    (x0, y0), (x1, y1) = border(start, end), border(end, start)
    head = ' marker-end="url(#head)"' if arrow.pointed else ""
    line = f'<path d="M{x0:.1f} {y0:.1f} L{x1:.1f} {y1:.1f}"{head}/>'
    if arrow.text:
        x, y = (x0 + x1) / 2, (y0 + y1) / 2 + 4
        line += f'\n<text class="on-arrow" x="{x:.1f}" y="{y:.1f}">{escape(arrow.text)}</text>'
    return line


def drawn_box(box: Box) -> str:
    parts = []
    if box.framed:
        x, y = box.x - box.width / 2, box.y - box.height / 2
        size = f'width="{box.width:.1f}" height="{box.height:.1f}"'
        parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} rx="5"/>')
    top = box.y - (len(box.lines) - 1) * LINE / 2 + 5
    for i, line in enumerate(box.lines):
        parts.append(f'<text x="{box.x:.1f}" y="{top + i * LINE:.1f}">{escape(line)}</text>')
    return "\n".join(parts)


def draw(source: str) -> str:
    """The drawing as SVG."""
    boxes, arrows = parse(source)
    width = max(box.x + box.width / 2 for box in boxes.values()) + MARGIN
    height = max(box.y + box.height / 2 for box in boxes.values()) + MARGIN
    head = (
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker>'
    )
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f"<defs><style>{STYLE}</style>{head}</defs>",
            '<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>',
            *(drawn_box(box) for box in boxes.values()),
            *(drawn_arrow(arrow, boxes) for arrow in arrows),
            "</svg>\n",
        ]
    )


def main() -> None:
    """Draw every text of the folder."""
    for path in sorted(FOLDER.glob("*.txt")):
        path.with_suffix(".svg").write_text(
            draw(path.read_text(encoding="utf-8")), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
