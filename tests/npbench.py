"""NPBench's programs, traced, compiled and differentiated.

``FOLDER`` is a source tree of https://github.com/spcl/npbench. Its NumPy programs run as they are,
but for ``import funcgrad.numpy as np``. Their results are compared with NumPy's, gradients of a
weighted sum of their results with central differences along each argument, and where these do not
agree, because a program jumps or is chaotic, with complex steps. Times are those of the processor,
with one thread, and those of first calls include tracing and all kernels. Each program runs in a
process of its own that ends after ``--limit`` seconds of the processor: what it has found by then
is in the table.

    python -m tests.npbench --sources FOLDER                      all programs
    python -m tests.npbench --sources FOLDER --only lu,cholesky   some of them
    python -m tests.npbench --sources FOLDER --peers              and Numba's and JAX's versions
    python -m tests.npbench --sources FOLDER --write              and write the table of the docs
    python -m tests.npbench --sources FOLDER --kept FILE          go on where an earlier run ended
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
from tests.recording import write_between

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- npbench -->", "<!-- end of npbench -->"
COLUMNS = (
    "program", "NumPy, ms", "first value", "value", "right", "first gradient", "in time",
    "gradient", "right", "gradient/value", "Numba/value", "JAX/gradient", "note",
)  # fmt: skip
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"
ENOUGH = 0.2
SETTLED, SLOPE = 2.0, 2.0
"""A first gradient may take so many seconds, and so many times what NumPy needs."""


class Program:
    """A program of NPBench.

    Args:
        sources: The source tree.
        info: Its description there.
        preset: Which sizes.
    """

    def __init__(self, sources: Path, info: dict[str, Any], preset: str) -> None:
        self.folder = sources / "npbench" / "benchmarks" / info["relative_path"]
        self.info = info
        self.changed: list[str] = []
        self.data: dict[str, Any] = dict(info["parameters"][preset])
        init = info.get("init")
        if init:
            make = self._functions("", "")[init["func_name"]]
            made = make(*(self.data[x] for x in init["input_args"]))
            names = init["output_args"]
            self.data.update(zip(names, made if len(names) > 1 else [made], strict=True))

    def _functions(self, version: str, numpy: str, is_rewritten: bool = False) -> dict[str, Any]:
        path = self.folder / f"{self.info['module_name']}{version}.py"
        text = path.read_text()
        if numpy:
            text = text.replace("import numpy as np", f"import {numpy} as np")
        names: dict[str, Any] = {"__name__": path.stem}
        exec(compile(text, str(path), "exec"), names)
        if is_rewritten:
            own = {k: f for k, f in names.items() if getattr(f, "__globals__", None) is names}
            names.update((name, fg.autograph(function)) for name, function in own.items())
        return names

    def function(
        self, version: str = "_numpy", numpy: str = "", is_rewritten: bool = False
    ) -> Callable[..., Any]:
        names = self._functions(version, numpy, is_rewritten)
        return names.get(self.info["func_name"]) or names["nopython_mode"]

    def pure(
        self, function: Callable[..., Any], copies: bool, names: Sequence[str] = ()
    ) -> Callable[..., list[Any]]:
        """What a program returns or writes, as a function of some arrays, or those that vary."""

        def run(*arrays: Any) -> list[Any]:
            values = dict(self.data)
            values.update(zip(names or self.varied, arrays, strict=True))
            for name in self.info["array_args"]:
                if copies:
                    values[name] = values[name].copy()
            out = function(*(values[x] for x in self.info["input_args"]))
            outs = [] if out is None else list(out) if isinstance(out, tuple | list) else [out]
            return [*outs, *(values[x] for x in self.changed)]

        return run

    def find_changed(self, function: Callable[..., Any]) -> None:
        """Find the arguments that a program writes to."""
        names = self.info["array_args"]
        values = {**self.data, **{x: self.data[x].copy() for x in names}}
        function(*(values[x] for x in self.info["input_args"]))
        self.changed = [
            x
            for x in names
            if x in self.info["output_args"] or not np.array_equal(values[x], self.data[x])
        ]

    @property
    def varied(self) -> list[str]:
        """Names of the arguments that gradients are taken of: arrays of floats."""
        return [x for x in self.info["array_args"] if self.data[x].dtype.kind in "fc"]

    @property
    def point(self) -> list[Any]:
        return [self.data[x] for x in self.varied]


def seconds(function: Callable[..., Any], *args: Any) -> float:
    """Processor time of a call after the first: the mean of calls that take a fifth of a second."""
    function(*args)
    count, start = 0, time.process_time()
    while True:
        function(*args)
        count += 1
        passed = time.process_time() - start
        if passed > ENOUGH:
            return passed / count


def first(function: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    """Processor time of the first call, and its result."""
    start = time.process_time()
    found = function(*args)
    return time.process_time() - start, found


def is_close(x: Any, y: Any) -> bool:
    """Whether results agree but for rounding, which sums of many terms have."""
    is_single = np.asarray(y).dtype in (np.float32, np.complex64)
    scale = np.max(np.abs(y), initial=0.0, where=np.isfinite(y))
    tolerance = 1e-3 if is_single else 1e-6
    return bool(np.allclose(x, y, tolerance, max(1e-8, 0.01 * tolerance * scale), equal_nan=True))


def is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fc" if not hasattr(x, "dtype") else x.dtype.kind in "fc"


def weighted(outs: Sequence[Any]) -> Any:
    """The sum of all results that are floats, each element with a weight of its own."""
    total = 0.0
    for x in outs:
        if is_float(x):
            weights = np.cos(0.7 * np.arange(x.size)).reshape(x.shape)
            total = total + (x * weights.astype(np.zeros(0, x.dtype).real.dtype)).sum()
    return total


def sum_of(outs: Sequence[Any]) -> Any:
    """What is differentiated: the real part of the weighted sum of results."""
    return weighted(outs).real


def tell(**found: Any) -> None:
    print(json.dumps(found, default=float), flush=True)


def measure(program: Program, peers: bool) -> None:
    """Print what is found of a program, one line for each part of it."""
    plain = program.pure(program.function(), True)
    point, given = program.point, dict(program.data)
    with np.errstate(all="ignore"):
        program.find_changed(program.function())
        wanted = plain(*point)
        tell(numpy=seconds(plain, *point))
    value, everything, function, (compile_time, got) = compiled(program)
    close = all(map(is_close, got, wanted))
    tell(value_first=compile_time, right=close, value=seconds(value, *everything))
    if point and any(map(is_float, wanted)):
        pure = program.pure(function, True)
        gradient = fg.jit(fg.grad(lambda xs: sum_of(pure(*xs))))
        compile_time, got = first(gradient, point)
        tell(gradient_first=compile_time)
        few = FEW_STEPS.get(program.info.get("short_name"), {})
        if few:  # a program of the same code
            program.data.update(few)
            got = fg.jit(fg.grad(lambda xs: sum_of(pure(*xs))))(point)
        wrong = differing(lambda *xs: weighted(plain(*xs)), point, got)
        program.data.update(given)
        tell(slope=not wrong)
        if wrong:
            tell(note=f"differences disagree for {', '.join(program.varied[i] for i in wrong)}")
        del got  # its memory is that of later results
        tell(gradient=seconds(gradient, point))
    if peers:
        measure_peers(program, point)


FEW_STEPS = {"nbody": {"Nt": 4}}
"""Chaotic programs, whose gradients are compared after few steps: later ones amplify rounding."""

WAYS = (("", False, True), ("by autograph", True, True), ("integers are static", False, False))
"""What the note says, whether functions are rewritten, whether integers are arguments."""


def compiled(program: Program) -> tuple[Callable[..., Any], list[Any], Callable[..., Any], Any]:
    """A program, compiled as it is, else rewritten, else for the integers that it is given.

    Returns:
        The compiled function, its arguments, the program's function, and the time and the result of
        the first call.
    """
    refused: list[Exception] = []
    for note, is_rewritten, has_integers in WAYS:
        function = program.function(numpy="funcgrad.numpy", is_rewritten=is_rewritten)
        names = program.info["array_args"] if has_integers else program.varied
        value = fg.jit(program.pure(function, True, names))
        arguments = [program.data[x] for x in names]
        try:
            found = first(value, *arguments)
        except (TypeError, ValueError, RuntimeError) as error:
            refused.append(error)
            continue
        tell(note=note)
        return value, arguments, function, found
    raise refused[0]


def differing(loss: Callable[..., Any], point: Sequence[Any], gradient: Sequence[Any]) -> list[int]:
    """Numbers of the arguments for which a gradient is not what differences or steps say."""
    rng = np.random.default_rng(0)
    wrong = []
    for i, (x, slopes) in enumerate(zip(point, gradient, strict=True)):
        direction = rng.normal(size=x.shape)
        product = float(np.sum(np.real(slopes) * direction))
        bound = 0.05 if x.dtype in (np.float32, np.complex64) else 1e-3
        if not any(
            abs(product - found) <= bound * max(abs(product), abs(found), 1e-8)
            for found in _slopes(loss, point, i, direction)
        ):
            wrong.append(i)
    return wrong


STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


def _slopes(
    loss: Callable[..., Any], point: Sequence[Any], number: int, direction: Any
) -> Iterator[float]:
    """Slopes along a direction of one argument: of differences, then of a complex step."""

    def at(moved: Any, others: Sequence[Any]) -> Any:
        with np.errstate(all="ignore"):
            return loss(*others[:number], moved, *others[number + 1 :])

    x = point[number]
    wider = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}
    points = [point, [y.astype(wider.get(y.dtype, y.dtype)) for y in point]]
    for others, step in product(points[::-1] if x.dtype in wider else points[:1], STEPS):
        own = others[number]
        # Matrices may be no longer positive definite, results may not fit into wider arrays.
        with suppress(np.linalg.LinAlgError, TypeError):
            ends = [at(own + (s * step * direction).astype(own.dtype), others) for s in (1.0, -1.0)]
            yield float(np.real(ends[0] - ends[1]) / (2 * step))
    if x.dtype == np.float64:
        # What is written into must hold complex numbers, too.
        others = [y.astype(complex) if y.dtype == np.float64 else y for y in point]
        with warnings.catch_warnings(), suppress(TypeError, ValueError):
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            yield float(np.imag(at(x + 1e-30j * direction, others))) / 1e-30


def measure_peers(program: Program, point: Sequence[Any]) -> None:
    """Print the times of the versions of others that run: Numba's first that does, and JAX's."""
    numba = importlib.import_module("numba")
    for version in ("_numba_npr", "_numba_np", "_numba_n"):
        if not (program.folder / f"{program.info['module_name']}{version}.py").exists():
            continue
        try:
            function = program.function(version)
            if not hasattr(function, "py_func"):
                function = numba.njit(parallel=True)(function)
            run = program.pure(function, True)
            run(*point)
            tell(numba=seconds(run, *point))
            break
        except Exception as error:
            tell(peers=f"Numba: {type(error).__name__}")
    if point and (program.folder / f"{program.info['module_name']}_jax.py").exists():
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        try:
            function = program.function("_jax")
            # Under a `jit` of its own, its loops would have bounds that are traced.
            pure = program.pure(getattr(function, "__wrapped__", function), False)
            gradient = jax.jit(jax.grad(lambda xs: sum_of(pure(*xs))))
            arrays = list(map(jax.numpy.asarray, point))
            if not any(map(is_float, pure(*arrays)[: -len(program.changed) or None])):
                raise ValueError("it returns nothing that could be differentiated")
            jax.block_until_ready(gradient(arrays))
            tell(jax=seconds(lambda: jax.block_until_ready(gradient(arrays))))
        except Exception as error:
            tell(peers=f"JAX: {type(error).__name__}")


def described(sources: Path) -> dict[str, dict[str, Any]]:
    files = sorted((sources / "bench_info").glob("*.json"))
    return {f.stem: json.loads(f.read_text())["benchmark"] for f in files}


def run_apart(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What a process of its own finds of a program."""
    command = [
        sys.executable,
        "-m",
        "tests.npbench",
        "--sources",
        str(options.sources),
        "--one",
        name,
    ]
    command += ["--preset", options.preset, *(["--peers"] if options.peers else [])]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        one = dict.fromkeys(
            ("FUNCGRAD_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
        )
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        ended = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **one, "FUNCGRAD_CACHE_DIR": cache, "XLA_FLAGS": flags},
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (options.limit,) * 2),
        )
    for line in ended.stdout.splitlines():
        if line.startswith("{"):
            found.update(json.loads(line))
    if ended.returncode:
        last = ended.stderr.strip().splitlines()
        found["ended"] = last[-1][:150] if last else f"after {options.limit} s"
    return found


def row(name: str, found: dict[str, Any]) -> str:
    def shown(key: str) -> str:
        return f"{1e3 * found[key]:.2f}" if key in found else "-"

    def ratio(above: str, below: str) -> str:
        return f"{found[above] / found[below]:.2f}" if {above, below} <= found.keys() else "-"

    limit = SETTLED + SLOPE * found.get("numpy", 0.0)
    in_time = "-" if "gradient_first" not in found else str(found["gradient_first"] <= limit)
    cells = [
        name,
        shown("numpy"),
        shown("value_first"),
        shown("value"),
        str(found.get("right", "-")),
    ]
    cells += [shown("gradient_first"), in_time, shown("gradient"), str(found.get("slope", "-"))]
    cells += [ratio("gradient", "value"), ratio("numba", "value"), ratio("jax", "gradient")]
    notes = [found.get("ended", found.get("note", "")), found.get("peers", "")]
    return "| " + " | ".join([*cells, "; ".join(filter(None, notes))]) + " |"


def mean(rows: Sequence[dict[str, Any]], above: str, below: str) -> str:
    """Geometric mean of a ratio over the programs that have it."""
    logs = [
        np.log(r[above] / r[below]) for r in rows if {above, below} <= r.keys() and r[below] > 0
    ]
    return f"{np.exp(np.mean(logs)):.2f} over {len(logs)}" if logs else "-"


def means(rows: Sequence[dict[str, Any]]) -> list[str]:
    pairs = (("gradient", "value"), ("numba", "value"), ("jax", "gradient"))
    return [f"{above}/{below}: {mean(rows, above, below)}" for above, below in pairs]


def table_of(rows: dict[str, dict[str, Any]]) -> str:
    """The table of the docs."""
    table = [HEAD, *(row(name, found) for name, found in rows.items())]
    return "\n".join(
        [*table, "", "Geometric means: " + "; ".join(means(list(rows.values()))) + "."]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--only", default="", help="names of programs, with commas")
    parser.add_argument("--preset", default="S")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--write", action="store_true", help="write the table into the docs")
    parser.add_argument("--kept", type=Path, help="a file of results, which are not made again")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    programs = described(options.sources)
    if options.one:
        measure(Program(options.sources, programs[options.one], options.preset), options.peers)
        return
    print(HEAD, flush=True)
    kept = options.kept
    rows: dict[str, Any] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    for name in options.only.split(",") if options.only else programs:
        if name not in rows:
            rows[name] = run_apart(name, options)
            if kept:
                kept.write_text(json.dumps(rows))
        print(row(name, rows[name]), flush=True)
    rows = {name: rows[name] for name in programs if name in rows}
    print(*means(list(rows.values())), sep="\n")
    if options.write:
        made = f"On a machine that others used at the same time, {time.strftime('%Y-%m-%d')}"
        pieces = "in pieces, by `python -m tests.npbench --kept --write`"
        way = pieces if kept else "by `python -m tests.npbench --write`"
        write_between(
            PAGE, BEGIN, END, f"{made}, {way}, sizes {options.preset}:\n\n{table_of(rows)}"
        )


if __name__ == "__main__":
    main()
