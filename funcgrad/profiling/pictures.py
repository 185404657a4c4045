"""Profiles as pictures: a flame graph in SVG, a table in HTML, and a timeline as trace events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from funcgrad.compiler.plans import nodes_of
from funcgrad.profiling.timing import costs_of

_WIDTH, _ROW, _LETTER = 1000.0, 20, 7.0
_COLORS = {"forward": "#5b8ff9", "backward": "#f6903d", "remat": "#9270ca", "": "#c2c8d5"}
_LEAST = 0.5


def flame_graph(profile: Any) -> str:
    """Functions in the first row, their lines in the second, the phases of these in the third."""
    boxes: list[str] = []
    functions: dict[tuple[str, str], list[Any]] = {}
    for line in profile.lines:
        functions.setdefault((line.location.file, line.location.function), []).append(line)
    scale = _WIDTH / max(sum(line.seconds for line in profile.lines), 1e-30)
    x = 0.0
    boxes += _box(0, 0, _WIDTH, profile.name, profile.seconds, "")
    for (_, function), lines in functions.items():
        width = sum(line.seconds for line in lines) * scale
        boxes += _box(x, 1, width, function, width / scale, "")
        for line in lines:
            boxes += _box(x, 2, line.seconds * scale, str(line.location), line.seconds, "")
            for phase in ("forward", "backward", "remat"):
                seconds = getattr(line, phase)
                boxes += _box(x, 3, seconds * scale, phase, seconds, phase)
                x += seconds * scale
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {4 * _ROW}" '
        'width="100%" font-family="monospace" font-size="11">'
    )
    return "\n".join([head, *boxes, "</svg>"])


def _box(x: float, row: int, width: float, text: str, seconds: float, phase: str) -> Iterator[str]:
    if width < _LEAST:
        return
    shown = text[: int((width - 4) / _LETTER)] if width > 3 * _LETTER else ""
    yield (
        f'<g><title>{escape(text)}: {seconds * 1e3:.4g} ms</title><rect x="{x:.2f}" '
        f'y="{row * _ROW}" width="{width:.2f}" height="{_ROW - 1}" fill="{_COLORS[phase]}" rx="2"/>'
        f'<text x="{x + 3:.2f}" y="{row * _ROW + 14}">{escape(shown)}</text></g>'
    )


def html(profile: Any) -> str:
    """The table and the flame graph."""
    head, rows = profile.rows()
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(x)}</td>" for x in row[:-1])
        + f'<td style="text-align:left"><code>{escape(row[-1])}</code></td></tr>'
        for row in rows
    )
    lines = str(profile).splitlines()
    return (
        f"<p>{escape(lines[0])}</p><table><tr>{cells}</tr>{body}</table>{flame_graph(profile)}"
        f"<pre>{escape(chr(10).join(lines[len(rows) + 2 :]))}</pre>"
    )


def trace(profile: Any) -> str:
    """Runs of steps as events of the Trace Event Format (complete events, microseconds)."""
    measured = profile.measured
    threads = {thread: k for k, thread in enumerate(dict.fromkeys(row[4] for row in measured.log))}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": k, "args": {"name": f"thread {k}"}}
        for k in threads.values()
    ]
    names: dict[tuple[int, int], tuple[str, list[str]]] = {}
    for program, step, begin, end, thread in measured.log:
        key = program, step
        if key not in names:
            names[key] = _described(measured.programs[program].steps[step])
        name, lines = names[key]
        events.append(
            {"ph": "X", "name": name, "pid": 1, "tid": threads[thread], "ts": begin * 1e6,
             "dur": (end - begin) * 1e6, "args": {"lines": lines}}
        )  # fmt: skip
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _described(step: Any) -> tuple[str, list[str]]:
    if step.job is None:
        return "check of donated arrays", []
    lines = [str(line) for line in costs_of(nodes_of(step.job)) if line is not None]
    return lines[0] if lines else "step", lines
