"""Results as a Markdown table, and the machine that they were measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from stopwatch import Comparison, Spread

PACKAGES = ("funcgrad", "numpy", "scipy", "numba", "llvmlite", "jax", "jaxlib", "autograd")
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "XLA_FLAGS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Line:
    """One row of the table, already as text."""

    what: str
    side: str
    figure: str
    ratio: str = ""
    goal: str = ""


HEADING = Line("what", "side", "median [quartiles]", "time / funcgrad's", "goal")


def duration(spread: Spread) -> str:
    """Median and quartiles in the unit that suits the median."""
    scale, unit = next((u for u in UNITS if spread.median >= u[0]), UNITS[-1])
    median, lower, upper = (f"{v / scale:.3g}" for v in (spread.median, spread.lower, spread.upper))
    return f"{median} {unit} [{lower}, {upper}]"


def multiple(spread: Spread) -> str:
    """A ratio and its quartiles."""
    return f"**{spread.median:.2f}** [{spread.lower:.2f}, {spread.upper:.2f}]"


def comparison_lines(what: str, goal: str, comparison: Comparison) -> list[Line]:
    """A line for each side; the first side is the reference of the ratios."""
    reference = next(iter(comparison.samples))
    lines = []
    for index, side in enumerate(comparison.samples):
        ratio = multiple(comparison.ratio(side, reference)) if index else "1"
        texts = ("", "") if index else (what, goal)
        lines.append(Line(texts[0], side, duration(comparison.time(side)), ratio, texts[1]))
    return lines


def table(lines: Sequence[Line]) -> str:
    """Lines as a Markdown table."""
    rows = [[line.what, line.side, line.figure, line.ratio, line.goal] for line in lines]
    heading = [HEADING.what, HEADING.side, HEADING.figure, HEADING.ratio, HEADING.goal]
    return "\n".join("| " + " | ".join(r) + " |" for r in (heading, ["---"] * 5, *rows))


def machine() -> str:
    """Processor, cores, versions and thread settings as a Markdown list."""
    versions = [f"{name} {version(name)}" for name in PACKAGES]
    settings = [f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ]
    return "\n".join(
        [
            f"- processor: {processor()}, {os.cpu_count()} cores, {simd()}",
            f"- system: {platform.system()}, Python {platform.python_version()}",
            f"- versions: {', '.join(versions)}",
            f"- threads: {', '.join(settings) or 'defaults: every library may use all cores'}",
        ]
    )


def processor() -> str:
    """The processor's name where the system tells it, and the numbers that identify it."""
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor() or platform.machine()
    pairs = (line.split(":", 1) for line in cpuinfo.read_text().splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in pairs}
    name = fields.get("model name", platform.machine())
    return f"{name} (family {fields.get('cpu family')}, model {fields.get('model')})"


def simd() -> str:
    """The widest vector extensions that NumPy found."""
    found = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    return "SIMD up to " + (found[-1] if found else "the baseline")


def version(package: str) -> str:
    """Installed version, or that there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
