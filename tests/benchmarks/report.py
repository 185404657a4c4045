"""Records as Markdown: a table for each group and measure, geometric means, the machine."""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.benchmarks.measures import Record
from tests.benchmarks.stopwatch import Spread, ratios
from tests.benchmarks.workload import SETS, set_of

PACKAGES = (
    "funcgrad",
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "jax",
    "jaxlib",
    "torch",
    "autograd",
)
UNITS = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")),
}
OURS = "funcgrad"
BEHIND = "rows behind / all"


@dataclass(frozen=True)
class Measure:
    """How a measure is shown: its heading, its unit ("s", "bytes" or "" for a count)."""

    heading: str
    unit: str


MEASURES = {
    "run": Measure("Time of a call", "s"),
    "first call, cold": Measure("First call, empty cache", "s"),
    "process start to result, cold": Measure("Process start to first result, empty cache", "s"),
    "first call, warm": Measure("First call in a second process", "s"),
    "process start to result, warm": Measure("Process start to first result, second process", "s"),
    "quiet": Measure("Single calls: median", "s"),
    "quiet-worst": Measure("Single calls: longest", "s"),
    "busy": Measure("Single calls beside a spinning process: median", "s"),
    "busy-worst": Measure("Single calls beside a spinning process: longest", "s"),
    "memory": Measure("Peak memory of a call beyond its arguments", "bytes"),
    "import": Measure("Import in a new process", "s"),
    "kernels, cold": Measure("Kernels", ""),
    "kernels compiled, cold": Measure("Kernels compiled by a first process", ""),
    "kernels compiled, warm": Measure("Kernels compiled by a second process", ""),
    "kernels for another size, cold": Measure("Kernels compiled for other sizes", ""),
    "Numba imported, warm": Measure("Is Numba imported by a second process?", ""),
}
COMPARED = tuple(name for name, measure in MEASURES.items() if measure.unit)
"""Measures of which all sides have a figure."""


def quantity(spread: Spread, unit: str) -> str:
    """A median in the scale that suits it."""
    scale, name = next((u for u in UNITS[unit] if spread.median >= u[0]), UNITS[unit][-1])
    return f"{spread.median / scale:.3g} {name}"


def multiple(spread: Spread) -> str:
    """A ratio, and its quartiles where there was more than one round."""
    if spread.lower == spread.upper:
        return f"{spread.median:.2f}"
    return f"{spread.median:.2f} [{spread.lower:.2f}, {spread.upper:.2f}]"


def speeds(record: Record, side: str) -> Spread:
    """The side's figure as a multiple of funcgrad's, from the ratio of each round."""
    return Spread.of(ratios(record.samples[side], record.samples[OURS]))


def peers_of(records: Iterable[Record]) -> list[str]:
    """Every side but funcgrad and the limits, in the order of their first appearance."""
    names = dict.fromkeys(name for record in records for name in record.samples)
    return [name for name in names if name != OURS and not is_limit(name)]


def is_limit(side: str) -> bool:
    """Is this side no library, but what none can beat?"""
    return side.startswith("limit: ")


def geometric_mean(values: Sequence[float]) -> float:
    """The mean of ratios."""
    return math.exp(statistics.fmean(math.log(value) for value in values))


@dataclass(frozen=True)
class Key:
    """What the records of a table have in common."""

    measure: str
    dtype: str
    size: str
    threads: int

    @staticmethod
    def of(record: Record) -> Key:
        return Key(record.measure, record.dtype, record.size, record.threads)

    @property
    def title(self) -> str:
        """The measure and its setting."""
        threads = f"{self.threads} thread" + ("s" if self.threads > 1 else "")
        setting = (self.dtype, f"size {self.size}" if self.size != "normal" else "", threads)
        return ", ".join([MEASURES[self.measure].heading, *(part for part in setting if part)])


def by_key(records: Iterable[Record]) -> dict[Key, list[Record]]:
    """Records that succeeded, those of equal measure and setting together."""
    found: dict[Key, list[Record]] = {}
    for record in records:
        if record.samples and record.measure in MEASURES:
            found.setdefault(Key.of(record), []).append(record)
    return {key: found[key] for key in sorted(found, key=_position)}


def _position(key: Key) -> tuple[int, str, str, int]:
    return list(MEASURES).index(key.measure), key.dtype, key.size, -key.threads


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells as a Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def comparison_table(records: Sequence[Record]) -> str:
    """funcgrad's figures, and those of all others as multiples of them."""
    peers = peers_of(records)
    unit = MEASURES[records[0].measure].unit
    rows = []
    for record in records:
        cells = [f"{record.row}: {record.title}", quantity(Spread.of(record.samples[OURS]), unit)]
        cells += [multiple(speeds(record, p)) if p in record.samples else "" for p in peers]
        limits = [name for name in record.samples if is_limit(name)]
        cells.append("; ".join(f"{multiple(speeds(record, n))} {n[7:]}" for n in limits))
        rows.append(cells)
    heading = ["what", OURS, *peers, "limit"]
    width = len(heading) if any(cells[-1] for cells in rows) else -1
    return table(heading[:width], [cells[:width] for cells in rows])


def count_table(records: Sequence[Record]) -> str:
    """Counts of funcgrad, all of a row in one line."""
    counts: dict[str, dict[str, float]] = {}
    for record in records:
        counts.setdefault(record.row, {})[record.measure] = record.samples[OURS][0]
    names = [name for name in MEASURES if any(name in found for found in counts.values())]
    rows = [
        [row, *(f"{found[name]:.0f}" if name in found else "" for name in names)]
        for row, found in counts.items()
    ]
    return table(["what", *(MEASURES[name].heading for name in names)], rows)


def mean_rows(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Geometric means of the peers' multiples: by group, and in total, by peer."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        for peer in peers_of([record]):
            median = speeds(record, peer).median
            for group in (record.group, "total"):
                found.setdefault(group, {}).setdefault(peer, []).append(median)
    total = found.pop("total", {})
    return {
        group: {peer: geometric_mean(values) for peer, values in sides.items()}
        for group, sides in {**found, "total": total}.items()
    }


def mean_table(records: Sequence[Record]) -> str:
    """The geometric means of groups, the number of rows behind that in total."""
    peers = peers_of(records)
    rows = []
    for group, means in mean_rows(records).items():
        rows.append([group, *(f"{means[p]:.2f}" if p in means else "" for p in peers)])
    behind = [BEHIND]
    for peer in peers:
        medians = [speeds(r, peer).median for r in records if peer in r.samples]
        behind.append(f"{sum(median < 1 for median in medians)} / {len(medians)}")
    return table(["geometric mean", *peers], [*rows, behind])


def summary(records: Sequence[Record]) -> str:
    """The geometric means of everything that is compared."""
    parts = [
        f"### {key.title}\n\n{mean_table(found)}"
        for key, found in by_key(records).items()
        if key.measure in COMPARED and key.measure != "import"
    ]
    return "\n\n".join(parts)


def group_section(group: str, records: Sequence[Record], charts: Sequence[str]) -> str:
    """Charts and tables of one group."""
    parts = [f"## {group.replace('_', ' ').capitalize()}", *charts]
    counts = []
    for key, found in by_key(records).items():
        if key.measure in COMPARED:
            parts.append(f"**{key.title}**\n\n{comparison_table(found)}")
        else:
            counts += found
    if counts:
        parts.append(f"**Kernels**\n\n{count_table(counts)}")
    parts += [f"- {r.row}: {r.measure} failed: {r.error}" for r in records if r.error]
    return "\n\n".join(parts)


def pages(records: Sequence[Record], charts: dict[str, list[str]]) -> dict[str, str]:
    """What there is to tell about each set of rows that has records."""
    by_set = {name: [r for r in records if set_of(r.group) == name] for name in SETS}
    return {name: page(name, found, charts) for name, found in by_set.items() if found}


def page(name: str, records: Sequence[Record], charts: dict[str, list[str]]) -> str:
    """A set of rows, group by group; ``charts`` are the lines that show a group's pictures."""
    groups = dict.fromkeys(record.group for record in records)
    sections = [
        group_section(g, [r for r in records if r.group == g], charts.get(g, [])) for g in groups
    ]
    means = f"## Geometric means: {name} rows\n\n{summary(records)}"
    return "\n\n".join([machine(), means, *sections])


def side_by_side(texts: dict[str, str]) -> str:
    """The totals of all sets, read from their pages: each of those may be from another run."""
    totals = {name: mean_totals(text) for name, text in texts.items()}
    headings = dict.fromkeys(heading for found in totals.values() for heading in found)
    peers = dict.fromkeys(
        peer for found in totals.values() for cells in found.values() for peer in cells
    )
    rows = [
        [heading, name, *(found[heading].get(peer, "") for peer in peers)]
        for heading in headings
        for name, found in totals.items()
        if heading in found
    ]
    heading = ["geometric mean (rows behind / all)", "set", *peers]
    return f"## Tuned and fresh rows\n\n{table(heading, rows)}"


def mean_totals(text: str) -> dict[str, dict[str, str]]:
    """Heading -> peer -> "mean (behind / all)" of the tables that `summary` writes."""
    found: dict[str, dict[str, str]] = {}
    for part in text.split("\n### ")[1:]:
        heading, _, rest = part.partition("\n")
        lines = [line.strip("| ").split("|") for line in rest.splitlines() if line[:1] == "|"]
        cells = {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines}
        peers, totals, behind = (cells.get(k, []) for k in ("geometric mean", "total", BEHIND))
        pairs = zip(peers, totals, behind, strict=False)
        found[heading] = {peer: f"{total} ({count})" for peer, total, count in pairs if total}
    return found


def machine() -> str:
    """Processor, cores and versions as a Markdown list."""
    versions = [f"{name} {version(name)}" for name in PACKAGES]
    return "\n".join(
        [
            f"- processor: {processor()}, {os.cpu_count()} cores, {simd()}",
            f"- system: {platform.system()}, Python {platform.python_version()}",
            f"- versions: {', '.join(versions)}",
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
