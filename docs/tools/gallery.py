"""The gallery: every example with its picture, what it prints, its code and its run time.

    python -m docs.tools.gallery                 run all, keep the pictures, write the page
    python -m docs.tools.gallery moons bayes     run these again
    python -m docs.tools.gallery --page          write the page alone, from what earlier runs left

Pictures and ``runs.json`` (seconds, and what was printed) lie in ``docs/gallery``.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FOLDER = ROOT / "docs" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
RUNS = FOLDER / "runs.json"
TIMEOUT = 900.0
PRINTED = 40
"""How many lines of what an example prints are shown."""

GROUPS = {
    "First steps": ["scalar_graph", "xor", "four_points", "moons"],
    "Networks": ["train_digits", "mnist_mlp", "lenet", "char_transformer", "serve"],
    "Derivatives": ["second_order", "backprop_by_hand", "checkpointing"],
    "Science and statistics": ["physics", "bayes"],
    "What goes wrong in training": ["vanishing", "broken_training"],
    "Many processes": [
        "train_distributed",
        "tensor_parallel",
        "heat_distributed",
        "ensemble_dask",
    ],
}
"""Headings of the page, and the examples under them in reading order."""

TITLES = {
    "xor": "Exclusive or",
    "mnist_mlp": "MNIST",
    "lenet": "LeNet",
    "char_transformer": "A transformer of characters",
    "train_digits": "Handwritten digits",
    "serve": "Serving a model",
    "bayes": "Bayesian inference",
    "vanishing": "Vanishing gradients",
    "train_distributed": "Training on many processes",
    "tensor_parallel": "A divided layer",
    "heat_distributed": "Heat in a divided plate",
    "ensemble_dask": "An ensemble with Dask",
}
"""Headings of examples whose file's name does not make one."""

INTRODUCTION = """\
# Gallery of examples

Each example is one file of `examples/`, which you can run by itself; `--help` shows its options.
The examples need the `examples` extra: `pip install '.[examples]'`. The times are for one run,
including compilation with an empty cache, on two cores of a server.
"""


class Run(TypedDict):
    """What one run of an example left."""

    seconds: float
    printed: str
    pictures: list[str]


def examples() -> list[str]:
    """Names of all examples."""
    return sorted(path.stem for path in EXAMPLES.glob("*.py"))


def recorded() -> dict[str, Run]:
    """What earlier runs left."""
    found: dict[str, Run] = json.loads(RUNS.read_text(encoding="utf-8"))
    return found


def run(name: str, kept: Path = FOLDER) -> Run:
    """Run one example in an empty folder; keeps its pictures in another one."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ, "MPLBACKEND": "agg",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "FUNCGRAD_CACHE_DIR": str(Path(folder) / "cache"),
        }  # fmt: skip
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        start = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            raise RuntimeError(f"{name} ended with {done.returncode}:\n{done.stderr}")
        pictures = [p for p in sorted(Path(folder).iterdir()) if p.suffix in (".png", ".svg")]
        for picture in pictures:
            shutil.copy(picture, kept / picture.name)
        names = [picture.name for picture in pictures]
    return {"seconds": round(seconds, 1), "printed": done.stdout, "pictures": names}


def description(name: str) -> tuple[str, str]:
    """First sentence and rest of an example's docstring."""
    text = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8")))
    assert text is not None
    first, _, rest = text.partition("\n\n")
    return " ".join(first.split()), rest


def fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def markdown(text: str) -> str:
    """A docstring as Markdown: indented blocks become fences, stars are no emphasis."""
    parts = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("    "):
            rows = [row.removeprefix("    ") for row in paragraph.splitlines()]
            parts.append(fenced("\n".join(rows)))
        else:
            parts.append(paragraph)
    return "\n\n".join(parts)


def shown(printed: str) -> str:
    """The beginning and the end of what was printed, if it is long."""
    rows = printed.rstrip().splitlines()
    if len(rows) > PRINTED:
        rows = [*rows[: PRINTED // 2], "...", *rows[-PRINTED // 2 :]]
    return "\n".join(rows)


def section(name: str, left: Run) -> str:
    """One example."""
    title, text = description(name)
    pictures = "\n\n".join(f"![{title}](gallery/{picture})" for picture in left["pictures"])
    seconds = max(1, round(left["seconds"]))
    include = f"```{{literalinclude}} ../examples/{name}.py\n:language: python\n```"
    code = f"````{{dropdown}} The code\n{include}\n````"
    output = f"````{{dropdown}} What it prints\n{fenced(shown(left['printed']))}\n````"
    return "\n\n".join(
        [
            f"### {TITLES.get(name, name.replace('_', ' ').capitalize())}",
            f"**{title}** `examples/{name}.py` runs in {seconds} s.",
            pictures, markdown(text), output, code,
        ]
    )  # fmt: skip


def page(runs: dict[str, Run]) -> str:
    """The whole page."""
    parts = [INTRODUCTION.rstrip()]
    for heading, names in GROUPS.items():
        parts.append(f"## {heading}")
        parts += [section(name, runs[name]) for name in names]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Run what is asked for and write the page."""
    parser = argparse.ArgumentParser(description="Make the gallery of examples.")
    parser.add_argument("names", nargs="*", choices=[*examples(), []], metavar="EXAMPLE")
    parser.add_argument("--page", action="store_true", help="run nothing")
    args = parser.parse_args(arguments)
    FOLDER.mkdir(exist_ok=True)
    runs = recorded() if RUNS.exists() else {}
    for name in [] if args.page else args.names or examples():
        runs[name] = run(name)
        print(f"{name}: {runs[name]['seconds']} s")
        text = json.dumps(runs, indent=1, sort_keys=True, ensure_ascii=False)
        RUNS.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(runs), encoding="utf-8")


if __name__ == "__main__":
    main()
