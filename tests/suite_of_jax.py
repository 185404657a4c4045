"""The tests that JAX has for its public functions, on funcgrad.

    python -m tests.suite_of_jax --sources FOLDER              all files
    python -m tests.suite_of_jax --sources FOLDER lax_test     one of them
    python -m tests.suite_of_jax --sources FOLDER --write      and the table of the page
    python -m tests.suite_of_jax --recorded --write            that of what was recorded

``FOLDER`` is ``tests/`` of JAX's source tree, which is not kept here; with it go the installed
release of JAX and ``pip install absl-py``. Tools for tests (comparisons, random arguments, the
choice of cases) are those of that release. All else that a file imports answers from funcgrad; of
JAX's private modules a file gets what has no counterpart. Dtypes below 32 bits are left out of the
cases, and words of messages are not compared. What is no test of public functions is named in
``suite_of_jax.txt``, by its reason, and not counted. A file runs in a process of its own, without
64 bits, or with them where it needs two dtypes; one that cannot be imported counts as a test that
fails. Every test is recorded in the folder ``--out`` and is not run again, so that a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import subprocess
import sys
import unittest
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.recording import (
    FINISHED,
    FLAGS,
    PAGE,
    ROOT,
    STARTED,
    Recorder,
    lines_of,
    out_of_scope,
    print_classes,
    write_between,
)

NO_TOOLS = 3
"""How a process ends in which JAX's tools cannot be imported."""
PRIVATE = "jax._src."
FILES = (
    "batching_test", "checkify_test", "custom_api_test", "custom_linear_solve_test",
    "custom_root_test", "dtypes_test", "experimental_rnn_test", "fft_test", "image_test",
    "jet_test", "lax_autodiff_test", "lax_control_flow_test", "lax_numpy_einsum_test",
    "lax_numpy_indexing_test", "lax_numpy_operators_test", "lax_numpy_reducers_test",
    "lax_numpy_setops_test", "lax_numpy_test", "lax_numpy_ufuncs_test",
    "lax_numpy_vectorize_test", "lax_scipy_sparse_test", "lax_scipy_special_functions_test",
    "lax_scipy_spectral_dac_test", "lax_scipy_test", "lax_test", "lax_vmap_op_test",
    "lax_vmap_test", "linalg_test", "lobpcg_test", "nn_test", "ode_test", "optimizers_test",
    "polynomial_test", "random_lax_test", "random_test", "scipy_fft_test",
    "scipy_interpolate_test", "scipy_ndimage_test", "scipy_optimize_test", "scipy_signal_test",
    "scipy_spatial_test", "scipy_stats_test", "stax_test", "tree_util_test",
)  # fmt: skip
NEED_64_BITS = ("lax_numpy_operators_test", "lax_numpy_test", "lax_numpy_ufuncs_test")
PUBLIC = {
    "ad_checkpoint": ("jax.ad_checkpoint", "jax"),
    "api": ("jax",),
    "api_util": ("jax.api_util",),
    "array": ("jax",),
    "checkify": ("jax.experimental.checkify", "jax.errors"),
    "core": ("jax.errors", "jax.core", "jax.extend.core", "jax._src.core"),
    "custom_batching": ("jax.custom_batching",),
    "custom_derivatives": ("jax",),
    "debugging": ("jax.debug",),
    "dtypes": ("jax.dtypes",),
    "errors": ("jax.errors",),
    "indexing": ("jax",),
    "interpreters.ad": ("jax.interpreters.ad",),
    "interpreters.batching": ("jax.interpreters.batching",),
    "interpreters.mlir": ("jax.interpreters.mlir",),
    "interpreters.partial_eval": ("jax.interpreters.partial_eval",),
    "lax": ("jax.lax",),
    "lax.control_flow": ("jax.lax",),
    "lax.lax": ("jax.lax",),
    "lax.linalg": ("jax.lax.linalg",),
    "lax.parallel": ("jax.lax",),
    "lax.utils": ("jax.lax",),
    "linear_util": ("jax.extend.linear_util",),
    "mesh": ("jax.sharding",),
    "nn.initializers": ("jax.nn.initializers",),
    "numpy": ("jax.numpy",),
    "numpy.lax_numpy": ("jax.numpy",),
    "ops.scatter": ("jax.ops",),
    "random": ("jax.random",),
    "random.core": ("jax.random",),
    "random.prng": ("jax.random",),
    "scipy": ("jax.scipy",),
    "scipy.special": ("jax.scipy.special",),
    "shard_map": ("jax",),
    "sharding_impls": ("jax.sharding",),
    "tree_util": ("jax.tree_util",),
    "typing": ("jax.typing",),
}
"""Private modules, and the public ones that answer first for what files import from them."""
TOOLS = (
    "test_util", "test_warning_util", "public_test_util", "internal_test_util.lax_test_util",
    "lax_reference", "literals", "util", "numpy.util", "numpy.indexing", "compilation_cache",
)  # fmt: skip
"""Private modules that files get whole."""
CASES = "10"
"""Of each test that is made of random choices; JAX's own default."""
LISTED = Path(__file__).with_suffix(".txt")
BEGIN, END = "<!-- suite of jax -->", "<!-- end of suite of jax -->"
SHARE = 98.0
"""Of the tests of public functions, in percent, that are to pass."""


# The process that runs the tests of one file.


class _Private(ModuleType):
    """A private module: what public ones have under its names, and the rest of its own.

    Args:
        name: Its name.
        public: The public modules.
        own: The module of the installed release, if it has it.
    """

    def __init__(self, name: str, public: Sequence[ModuleType], own: ModuleType | None) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        vars(self).update(_public=public, _own=own)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from funcgrad.interop.missing import MissingNameError  # noqa: PLC0415 (behind the tools)

        for module in vars(self)["_public"]:
            with contextlib.suppress(AttributeError, MissingNameError):
                return getattr(module, name)
        return getattr(vars(self)["_own"], name)


def _public(name: str) -> list[ModuleType]:
    """The public modules that answer for a private one."""
    names = PUBLIC.get(name.removeprefix(PRIVATE), ())
    return [importlib.import_module(public) for public in names]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds private modules that JAX's tools do not import, or the release does not have."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.startswith("jaxlib."):
            return importlib.machinery.PathFinder.find_spec(name, path)
        if name.startswith(PRIVATE):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        return _Private(spec.name, _public(spec.name), None)

    def exec_module(self, module: ModuleType) -> None: ...


def _tools() -> dict[str, ModuleType]:
    """JAX's own tools for tests and what they import, which is taken out of the process again."""
    import jax._src.test_util as tools  # noqa: PLC0415

    supported = tools.supported_dtypes

    def wide() -> set[Any]:
        dtypes = {np.dtype(dtype): dtype for dtype in supported()}
        return {t for d, t in dtypes.items() if d.kind in "biu" or d.itemsize >= 4} - _narrow(
            dtypes
        )

    tools.supported_dtypes = wide
    for name in TOOLS:
        importlib.import_module(PRIVATE + name)
    names = [n for n in sys.modules if n.partition(".")[0] in ("jax", "jaxlib")]
    return {name: sys.modules.pop(name) for name in names}


def _narrow(dtypes: dict[Any, Any]) -> set[Any]:
    """Dtypes of integers that NumPy does not have."""
    return {t for d, t in dtypes.items() if d.name in ("int2", "int4", "uint2", "uint4")}


def prepare() -> None:
    """Let ``jax`` be funcgrad, and have what files import beside it."""
    own = _tools()
    from funcgrad.interop.jax import install  # noqa: PLC0415 (JAX's tools come first)

    install()
    for name, module in own.items():
        if name.startswith("jaxlib"):
            sys.modules.setdefault(name, module)
    import jax  # noqa: PLC0415 (which is funcgrad from here on)

    for name in sorted(own):
        if not name.startswith(PRIVATE):
            continue
        short = name.removeprefix(PRIVATE)
        packages = {n.rpartition(".")[0] for n in own}
        if short not in TOOLS and (short in PUBLIC or name in packages):
            sys.modules[name] = _Private(name, _public(name), own[name])
        else:
            sys.modules[name] = own[name]
    sys.meta_path.insert(0, _Finder())
    for name in own:
        parent, _, leaf = name.rpartition(".")
        if name.startswith(PRIVATE) and parent in sys.modules:
            setattr(sys.modules[parent], leaf, sys.modules[name])
    _steer(jax, own)


def _steer(jax: Any, own: dict[str, ModuleType]) -> None:
    """Let JAX's tools transform by funcgrad, and have its settings; compare no words."""
    import jax.test_util as public  # noqa: PLC0415
    import ml_dtypes  # noqa: PLC0415

    from funcgrad.random.key_arrays import KeyArray  # noqa: PLC0415 (behind the tools)

    tools, tested = own[PRIVATE + "test_util"], own[PRIVATE + "public_test_util"]
    tools.api = _Private("api", [jax], own[PRIVATE + "api"])  # type: ignore[attr-defined]
    tools.check_grads = public.check_grads  # type: ignore[attr-defined]
    own[PRIVATE + "internal_test_util.lax_test_util"].lax = jax.lax  # type: ignore[attr-defined]
    for name in ("tree_all", "tree_flatten", "tree_map", "tree_unflatten"):
        for module in (tools, tested):
            setattr(module, name, getattr(jax.tree_util, name))
    for name in ("int2", "uint2", "int4", "uint4"):  # in lists of dtypes of the files
        setattr(jax.numpy, name, getattr(ml_dtypes, name))
    sys.modules[PRIVATE + "random.prng"].PRNGKeyArray = KeyArray  # type: ignore[attr-defined]
    settings: Any = own[PRIVATE + "config"]
    update = settings.config.update

    def update_both(name: str, value: Any) -> None:
        update(name, value)
        with contextlib.suppress(Exception):  # settings of JAX alone
            jax.config.update(name, value)

    settings.config.update = update_both
    for name in _BLOCKS:
        ours = getattr(jax, name) if name in jax.__all__ else _flag(jax.config, f"jax_{name}")
        both = _Both(getattr(settings, name), ours)
        settings.config_states[f"jax_{name}"] = both
        for module in (settings, jax):
            setattr(module, name, both)
    if os.environ.get("JAX_ENABLE_X64") == "1":
        jax.config.update("jax_enable_x64", True)

    def raises(self: unittest.TestCase, error: Any, words: Any, *args: Any, **options: Any) -> Any:
        return self.assertRaises(error, *args, **options)  # noqa: PT027

    tools.JaxTestCase.assertRaisesRegex = raises  # type: ignore[attr-defined]
    tools.JaxTestCase.assertRaisesWithLiteralMatch = raises  # type: ignore[attr-defined]


_BLOCKS = (
    "check_static_indices", "default_prng_impl", "enable_x64", "numpy_dtype_promotion",
    "numpy_rank_promotion",
)  # fmt: skip
"""Settings that are chosen for blocks, also by classes of tests."""


def _flag(config: Any, name: str) -> Any:
    """Blocks with another value of a flag."""

    @contextlib.contextmanager
    def block(value: Any) -> Iterator[None]:
        before = config.read(name)
        config.update(name, value)
        try:
            yield
        finally:
            config.update(name, before)

    return block


class _Both:
    """A setting of JAX's tools, which within blocks is that of funcgrad, too."""

    def __init__(self, state: Any, ours: Any) -> None:
        self._state, self._ours = state, ours

    @contextlib.contextmanager
    def __call__(self, value: Any = True) -> Iterator[None]:
        with self._state(value), self._ours(value):
            yield

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


def run_file(path: Path, record: Path) -> None:
    """Run the tests of a file in this process, but for those that are recorded."""
    try:
        prepare()
    except ImportError as error:
        print(f"JAX's tools for tests cannot be imported: {error}", file=sys.stderr)
        sys.exit(NO_TOOLS)
    import pytest  # noqa: PLC0415

    recorder = Recorder(record)
    sys.argv = sys.argv[:1]  # flags of JAX's tools are read from it
    flags = [*FLAGS, "-W", "ignore", "-c", os.devnull]
    code = pytest.main([*flags, "--rootdir", str(path.parent), str(path)], plugins=[recorder])
    if code in (0, 1, 2, 5):
        recorder.write(path.name, FINISHED, "", 0.0)
    os._exit(0)


# The process that starts them.


def outcomes(record: Path) -> dict[str, tuple[str, str]]:
    """What became of each test, and its message."""
    found: dict[str, tuple[str, str]] = {}
    for test, outcome, message, _ in lines_of(record):
        if outcome == FINISHED:
            continue
        if found.get(test, (STARTED,))[0] in (STARTED, "passed"):
            found[test] = ("failed" if outcome == "error" else outcome, message)
    return found


def listed_patterns() -> dict[str, str]:
    """Patterns of tests of other things than public functions, with the reasons."""
    return {name.replace("[", "[[]"): reason for name, reason in out_of_scope(LISTED).items()}


def reason_of(test: str, listed: dict[str, str]) -> str:
    """Why a test is not counted; empty if it is."""
    name = test.replace(".py::", "::")
    return next(
        (reason for known, reason in listed.items() if fnmatch.fnmatchcase(name, known)), ""
    )


def run_in_processes(path: Path, record: Path, limit: float) -> None:
    """Run a file; behind a test that ends its process, or does not end, in another one."""
    wide = path.stem in NEED_64_BITS
    environment = {**os.environ, "JAX_ENABLE_X64": "1" if wide else "0", "JAX_PLATFORMS": "cpu"}
    environment.setdefault("JAX_NUM_GENERATED_CASES", CASES)
    command = [sys.executable, "-m", "tests.suite_of_jax", "--inside", str(path), str(record)]
    while not any(line[1] == FINISHED for line in lines_of(record)):
        known = len(lines_of(record))
        with (
            record.with_suffix(".log").open("a") as log,
            contextlib.suppress(subprocess.TimeoutExpired),
        ):
            subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                timeout=limit,
                check=False,
            )
        if len(lines_of(record)) == known:
            print(record.with_suffix(".log").read_text()[-1500:])
            return


def row_of(name: str, found: dict[str, tuple[str, str]], listed: dict[str, str]) -> list[Any]:
    """A row of the table: file, tests, those that are counted, pass, and reasons for the rest."""
    ran = {test: end for test, (end, _) in found.items() if end != "skipped"}
    beside = Counter(filter(None, (reason_of(test, listed) for test in ran)))
    counted = {test: end for test, end in ran.items() if not reason_of(test, listed)}
    good = sum(end == "passed" for end in counted.values())
    return [name, len(ran), len(counted), good, "; ".join(f"{r} ({n})" for r, n in beside.items())]


def table_of(rows: Sequence[Sequence[Any]]) -> str:
    """The table of files, and the sum."""
    total = ["all", *(sum(row[i] for row in rows) for i in (1, 2, 3)), ""]
    lines = [
        "| file | tests | of public functions | pass | | not counted |",
        "|---|---|---|---|---|---|",
    ]
    for name, ran, counted, good, reasons in (*rows, total):
        share = f"{100 * good / counted:.1f} %" if counted else ""
        lines.append(f"| {name} | {ran} | {counted} | {good} | {share} | {reasons} |")
    return "\n".join(lines)


def write_table(rows: Sequence[Sequence[Any]], cases: str) -> None:
    """Put the table into the page."""
    made = (
        f"{len(rows)} of {len(FILES)} files of JAX {importlib.metadata.version('jax')}, "
        f"{datetime.now(UTC):%Y-%m-%d}, by `python -m tests.suite_of_jax --write`, "
        f"{cases} cases of each test that is made of random choices. What is not counted is named, "
        "by its reason, in `tests/suite_of_jax.txt`:"
    )
    write_between(PAGE, BEGIN, END, f"{made}\n\n{table_of(rows)}")


def report(found: dict[str, tuple[str, str]], most: int, listed: dict[str, str]) -> None:
    """Print classes of failures, the largest first."""
    failing = {
        test: message
        for test, (outcome, message) in found.items()
        if outcome not in ("passed", "skipped") and not reason_of(test, listed)
    }
    print_classes(failing, most)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--inside"]:
        run_file(*map(Path, arguments[1:]))
    parser = argparse.ArgumentParser(prog="tests.suite_of_jax", description=(__doc__ or "")[:66])
    parser.add_argument("files", nargs="*", default=[], help="names of files without .py")
    parser.add_argument("--sources", type=Path, default=Path("suite-of-jax"))
    parser.add_argument("--out", type=Path, default=Path("suite-of-jax-results"))
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for one process")
    parser.add_argument("--most", type=int, default=25, help="classes of failures to name")
    parser.add_argument("--recorded", action="store_true", help="run nothing: what is recorded")
    parser.add_argument("--write", action="store_true", help="write the table of the page")
    options = parser.parse_args(arguments)
    names = options.files or FILES
    missing = [
        n for n in names if not options.recorded and not (options.sources / f"{n}.py").is_file()
    ]
    if missing:
        print(f"{options.sources} has no {missing[0]}.py: it is in JAX's source tree, under tests/")
        return 2
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    every: dict[str, tuple[str, str]] = {}
    rows, listed = [], listed_patterns()
    for name in names:
        record = out / f"{name}.jsonl"
        if not options.recorded:
            run_in_processes((options.sources / f"{name}.py").resolve(), record, options.limit)
        found = outcomes(record)
        if found:
            is_whole = any(line[1] == FINISHED for line in lines_of(record))
            rows.append(row_of(name if is_whole else f"{name}, in part", found, listed))
            print(f"{name}: {rows[-1][3]} of {rows[-1][2]} pass", flush=True)
        every |= found
    report(every, options.most, listed)
    print(table_of(rows))
    if options.write:
        write_table(rows, os.environ.get("JAX_NUM_GENERATED_CASES", CASES))
    counted, good = (sum(row[i] for row in rows) for i in (2, 3))
    return 0 if 100 * good >= SHARE * counted else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
