"""The gallery: every example with its picture, what it prints, its code and its run time.

    python -m docs.tools.gallery                 run all, keep the pictures, write the page
    python -m docs.tools.gallery moons bayes     run these again
    python -m docs.tools.gallery --due           run those whose record is no longer true
    python -m docs.tools.gallery --page          write the page alone, from what earlier runs left

An example is run by the command that its docstring publishes, at a low priority. Pictures and
``runs.json`` (command, release, program, processor time, and what was printed) lie in
``docs/gallery``. Durations are struck out of what was printed: they are those of a machine that may
be busy, and ``docs/benchmarks.md`` has measured ones.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path
from typing import TypedDict

from PIL import Image

from tests.distributed import launching

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FOLDER = ROOT / "docs" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
RUNS = FOLDER / "runs.json"
TIMEOUT = 3600.0
PRINTED = 40
"""How many lines of what an example prints are shown."""
SHOWS_NAN = {"broken_training", "classical_bugs"}
"""Examples about numbers that are not finite."""

RISES = 1.1
"""A loss rises if the last one is larger than the first, or than so many times the smallest."""

GROUPS = {
    "First steps": ["scalar_graph", "xor", "four_points", "moons"],
    "Networks": [
        "train_digits",
        "compare_optimizers",
        "draw_digits",
        "mnist_mlp",
        "lenet",
        "char_transformer",
        "serve",
    ],
    "Derivatives": [
        "layers_by_hand",
        "cross_entropy_by_hand",
        "backprop_by_hand",
        "closed_forms",
        "three_ways",
        "second_order",
        "curvature",
        "checkpointing",
    ],
    "Science and statistics": ["physics", "bayes", "nuts"],
    "What goes wrong in training": [
        "vanishing",
        "exploding",
        "dead_units",
        "gradient_flow",
        "broken_training",
        "classical_bugs",
    ],
    "Many processes": [
        "train_distributed",
        "train_sharded",
        "tensor_parallel",
        "heat_distributed",
        "ensemble_dask",
    ],
}
"""Headings of the page, and the examples under them in reading order."""

TITLES = {
    "xor": "Exclusive or",
    "compare_optimizers": "Optimisers side by side",
    "draw_digits": "Digits of one's own",
    "mnist_mlp": "MNIST",
    "lenet": "LeNet",
    "char_transformer": "A transformer of characters",
    "train_digits": "Handwritten digits",
    "serve": "Serving a model",
    "bayes": "Bayesian inference",
    "vanishing": "Vanishing gradients",
    "exploding": "Exploding gradients",
    "train_distributed": "Training on many processes",
    "train_sharded": "Training with a divided state",
    "tensor_parallel": "A divided layer",
    "heat_distributed": "Heat in a divided plate",
    "ensemble_dask": "An ensemble with Dask",
}
"""Headings of examples whose file's name does not make one."""

INTRODUCTION = """\
# Gallery of examples

Each example is one file of `examples/`, which you can run by itself; `--help` shows its options.
The examples need the `examples` extra: `pip install '.[examples]'`. What several of them share
stands once: the command line and the frame of the pictures in `examples/program.py`, layers and
training loops in `training.py`, scanned digits in `digits.py`, and the search for the worst problem
of a network in `diagnosis.py`.

What they print and draw is recorded by `python -m docs.tools.gallery`, which runs each by the
command that is shown, with an empty cache. Durations are struck out (`#`) of what was printed,
since they depend on what else the machine does;
[benchmarks](benchmarks.md) are measured.
"""


class Run(TypedDict):
    """What one run of an example left.

    Attributes:
        command: As it is published.
        release: The version of funcgrad.
        program: A digest of the code of the example, and of what it shares and needs.
        seconds: Processor time of all processes.
        printed: Without durations.
        pictures: Names of files.
    """

    command: str
    release: str
    program: str
    seconds: float
    printed: str
    pictures: list[str]


def examples() -> list[str]:
    """Names of all examples: the files that are programs."""
    return sorted(p.stem for p in EXAMPLES.glob("*.py") if "__main__" in p.read_text("utf-8"))


def recorded() -> dict[str, Run]:
    """What earlier runs left."""
    found: dict[str, Run] = json.loads(RUNS.read_text(encoding="utf-8"))
    return found


def release() -> str:
    """The version that is documented."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version: str = tomllib.loads(text)["project"]["version"]
    return version


def command(name: str) -> str:
    """The command that the docstring of an example publishes first, below those that it needs."""
    before = rf"(?: {{4}}python examples/(?!{name}\.)\w+\.py.*\n)*"
    pattern = rf"^{before} {{4}}(?:mpiexec -n \d+ )?python examples/{name}\.py.*$"
    found = re.search(pattern, description(name)[1], re.MULTILINE)
    if found is None:
        raise ValueError(f"the docstring of examples/{name}.py shows no command that runs it")
    return textwrap.dedent(found[0])


def digest(name: str) -> str:
    """What identifies the code of an example, and of what it shares and needs."""
    files, left = set[str](), {*re.findall(r"examples/(\w+)\.py", command(name))}
    while left:
        files |= left
        left = {other for file in left for other in imports_of(file)} - files
    code = "".join(map(code_of, sorted(files)))
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def imports_of(name: str) -> set[str]:
    """The modules of the folder of examples that one of them imports."""
    imported = re.findall(r"^import (\w+)(?: as \w+)?$", code_of(name), re.MULTILINE)
    return {p.stem for p in EXAMPLES.glob("*.py")} & {*imported}


def code_of(name: str) -> str:
    """A module of the folder of examples, without its docstring."""
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""', 2)[2]


def due() -> list[str]:
    """Examples that have changed, or have a new command, or were last run by another release."""
    runs = recorded() if RUNS.exists() else {}
    now = {name: (command(name), release(), digest(name)) for name in examples()}
    return [
        name
        for name, (shell, version, program) in now.items()
        if name not in runs
        or (runs[name]["command"], runs[name]["release"], runs[name]["program"])
        != (shell, version, program)
    ]


def arguments_of(shell: str) -> list[str]:
    """A published command, with the programs of this environment."""
    program = {"python": sys.executable, "mpiexec": launching.MPIEXEC or "mpiexec"}
    words = (program.get(word, word) for word in shlex.split(shell))
    return [str(ROOT / word) if word.startswith("examples/") else word for word in words]


def run(name: str, kept: Path = FOLDER) -> Run:
    """Run one example in an empty folder; keeps its pictures in another one."""
    shell = command(name)
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            # Threads of OpenBLAS wait for each other for long where they share a core.
            **os.environ, "MPLBACKEND": "agg", "OPENBLAS_NUM_THREADS": "1",
            **(launching.ENVIRONMENT if shell.startswith("mpiexec") else {}),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "FUNCGRAD_CACHE_DIR": str(Path(folder) / "cache"),
        }  # fmt: skip
        before, printed, there = processor_time(), "", set[Path]()
        for row in shell.splitlines():
            there = set(Path(folder).iterdir())
            done = subprocess.run(
                arguments_of(row), cwd=folder, env=environment, capture_output=True, text=True,
                timeout=TIMEOUT,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(f"{row} ended with {done.returncode}:\n{done.stderr}")
            printed += done.stdout
        seconds = processor_time() - before
        made = sorted(set(Path(folder).iterdir()) - there)
        pictures = [p for p in made if p.suffix in (".png", ".svg")]
        for picture in pictures:
            keep(picture, kept / picture.name)
        names = [picture.name for picture in pictures]
    return {
        "command": shell, "release": release(), "program": digest(name),
        "seconds": round(seconds, 1), "printed": without_durations(printed), "pictures": names,
    }  # fmt: skip


def keep(picture: Path, path: Path) -> None:
    """Copy a picture; one of pixels with a palette, which takes a third of the bytes."""
    if picture.suffix == ".png":
        colors = Image.open(picture).convert("RGB").quantize(256, dither=Image.Dither.NONE)
        colors.save(path, optimize=True)
    else:
        shutil.copy(picture, path)


def processor_time() -> float:
    """Of all processes that were started from here and have ended."""
    used = os.times()
    return used.children_user + used.children_system


# A unit of time behind a number, which may be struck out already, or over a column of numbers.
UNIT = r"(?:us|ms|s|\w+/s)(?!\w)"
DURATION = re.compile(rf"(?:[\d.,]*\d|#)(?= {UNIT})")
COLUMN = re.compile(rf"(?<=\s){UNIT}")
NUMBER = re.compile(r"\S*\d\S*")


def without_durations(printed: str) -> str:
    """What a program has printed, with ``#`` where it tells of durations or of rates."""
    rows, columns = [], set[int]()
    for row in printed.splitlines():
        heads = set() if DURATION.search(row) else {m.end() for m in COLUMN.finditer(row)}
        columns = heads or (columns if NUMBER.search(row) else set())
        struck = NUMBER.sub(lambda m, c=columns: struck_out(m) if m.end() in c else m[0], row)
        rows.append(DURATION.sub(struck_out, struck))
    return "\n".join(rows) + "\n"


def struck_out(number: re.Match[str]) -> str:
    return "#".rjust(len(number[0]))


LOSS = re.compile(r"^\w+ +\d+ .*\bloss +([\d.e+-]+)", re.MULTILINE)
"""The loss at a numbered step, epoch or iteration; others are not of one training."""


def complaints(name: str, printed: str) -> list[str]:
    """What no example should print: NaN, infinities, and losses that rise."""
    found = []
    for row in [] if name in SHOWS_NAN else printed.splitlines():
        number = re.search(r"(?<![\w-])(?:nan|[+-]?inf(?:inity)?)(?![\w-])", row, re.IGNORECASE)
        if number is not None:
            found.append(f"{number[0]} in: {row.strip()}")
    losses = [float(x) for x in LOSS.findall(printed)]
    if losses and (losses[-1] > losses[0] or losses[-1] > RISES * min(losses)):
        found.append(f"the loss rises: {', '.join(map(str, losses))}")
    return found


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
            f"**{title}** `examples/{name}.py` takes {seconds} s of processor time.",
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
    parser.add_argument("--due", action="store_true", help="run what has changed since")
    parser.add_argument("--page", action="store_true", help="run nothing")
    args = parser.parse_args(arguments)
    FOLDER.mkdir(exist_ok=True)
    if hasattr(os, "nice"):
        os.nice(10)
    runs = recorded() if RUNS.exists() else {}
    for name in [] if args.page else due() if args.due else args.names or examples():
        runs[name] = run(name)
        print(f"{name}: {runs[name]['seconds']} s")
        text = json.dumps(runs, indent=1, sort_keys=True, ensure_ascii=False)
        RUNS.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(runs), encoding="utf-8")


if __name__ == "__main__":
    main()
