"""``python -m tests.matrix``: fresh environments for every Python, and the bounds of what we need.

For every interpreter that is found (3.11 to 3.14) and for the lowest and the newest NumPy, SciPy
and Numba that ``pyproject.toml`` admits: the wheel is installed into a new environment and checked
from a folder outside of the tree by ``python -m funcgrad``; the source distribution once. With
``--suite`` the test suite runs there, too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PACKAGES = ("numpy", "scipy", "numba")

# What is lower than this has no wheels for that Python.
LOWEST: dict[str, dict[str, str]] = {
    "3.11": {"numpy": "2.0.0", "scipy": "1.14.0", "numba": "0.63.0"},
    "3.12": {"numpy": "2.0.0", "scipy": "1.14.0", "numba": "0.63.0"},
    "3.13": {"numpy": "2.1.0", "scipy": "1.14.1", "numba": "0.63.0"},
    "3.14": {"numpy": "2.3.2", "scipy": "1.16.1", "numba": "0.63.0"},
}

LEFT_OUT = (
    ".git",
    ".venv",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    "build",
    "dist",
    "*.egg-info",
)
"""What is no part of a copy of the tree."""


def bounds() -> dict[str, tuple[str, str]]:
    """Lower and upper bounds of the dependencies; one that is tested when it is imported has none.

    Numba and its LLVM are such a dependency (`funcgrad.compiler.runtime.releases`).
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {}
    for text in project["dependencies"]:
        match = re.fullmatch(r"(\w+)>=([\d.]+)(?:,<([\d.]+))?", text)
        assert match is not None, f"{text} has no lower bound"
        assert match[3] or match[1] == "numba", f"{text} has no upper bound"
        found[match[1]] = (match[2], match[3] or "")
    return found


def interpreters() -> dict[str, str]:
    """The interpreters of this machine, by version."""
    places = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep)]
    roots = [
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")),
        Path("/opt/hostedtoolcache"),
    ]
    places += [p for root in roots for p in root.glob("[Pv]*/3.*/bin")]
    found: dict[str, str] = {}
    for version in PYTHONS:
        for place in places:
            python = place / f"python{version}"
            if version not in found and python.exists() and version_of(python) == version:
                found[version] = str(python)
    return found


def version_of(python: Path) -> str:
    """What an interpreter says it is; empty if it does not run."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return run.stdout.strip()


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command, which has to succeed, without this tree on the path."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "FUNCGRAD_CACHE_DIR")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    environment["FUNCGRAD_CACHE_DIR"] = str(cwd / "cache")
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def environment(python: str, folder: Path) -> Path:
    """The interpreter of a new environment."""
    run(python, "-m", "venv", folder, cwd=folder.parent)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def build(python: str, folder: Path) -> tuple[Path, Path]:
    """A wheel and a source distribution, made from a copy of the tree."""
    tree = folder / "tree"
    kept = ("funcgrad", "pyproject.toml", "README.md", "LICENSE")
    tree.mkdir()
    for name in kept:
        source = ROOT / name
        skip = shutil.ignore_patterns("__pycache__")
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tree / name, **({"ignore": skip} if source.is_dir() else {}))  # type: ignore
    builder = environment(python, folder / "builder")
    run(builder, "-m", "pip", "install", "-q", "build", cwd=folder)
    run(builder, "-m", "build", "-o", folder / "dist", tree, cwd=folder)
    return next((folder / "dist").glob("*.whl")), next((folder / "dist").glob("*.tar.gz"))


def check(python: str, version: str, which: str, package: Path, folder: Path, suite: bool) -> str:
    """Install a package with the lowest or newest dependencies, and use it.

    Returns:
        The versions that were installed, and the verdict.
    """
    folder.mkdir()
    inside = environment(python, folder / "venv")
    pins = [f"{k}=={v}" for k, v in LOWEST[version].items()] if which == "lowest" else []
    extra = "[test]" if suite else ""
    options = ("-q", "--disable-pip-version-check", "--only-binary", ",".join(PACKAGES))
    run(inside, "-m", "pip", "install", *options, f"{package}{extra}", *pins, cwd=folder)
    verdict = run(inside, "-W", "error", "-m", "funcgrad", cwd=folder).splitlines()[-1]
    code = "from importlib.metadata import version as v; print(*(f'{p} {v(p)}' for p in %r))"
    versions = run(inside, "-c", code % (PACKAGES,), cwd=folder).strip()
    place = run(inside, "-c", "import funcgrad; print(funcgrad.__file__)", cwd=folder)
    assert str(folder) in place, f"not what was installed: {place}"
    if suite:
        # Tests read sources, pages and examples: they run in a copy of all, with the dependencies
        # of this environment.
        shutil.copytree(ROOT, folder / "tree", ignore=shutil.ignore_patterns(*LEFT_OUT))
        run(inside, "-m", "pytest", "-q", "-n", "auto", cwd=folder / "tree")
        verdict += ", suite passed"
    return f"{versions}: {verdict}"


def main(arguments: list[str] | None = None) -> int:
    """Check all combinations, or those that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix")
    parser.add_argument("--python", nargs="*", default=PYTHONS, choices=PYTHONS)
    parser.add_argument("--which", nargs="*", default=["lowest", "newest"])
    parser.add_argument("--suite", action="store_true", help="run the test suite, too")
    options = parser.parse_args(arguments)
    bounds()
    found = {v: p for v, p in interpreters().items() if v in options.python}
    failed = [f"Python {v}: no interpreter" for v in options.python if v not in found]
    for text in failed:
        print(text, flush=True)
    n_failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, sdist = build(next(iter(found.values())), folder)
        rows = [(v, which, wheel) for v in found for which in options.which]
        rows.append((next(iter(found)), options.which[-1], sdist))
        for i, (version, which, package) in enumerate(rows):
            start = time.monotonic()
            kind = "wheel" if package is wheel else "sdist"
            try:
                suite = options.suite and kind == "wheel"
                text = check(found[version], version, which, package, folder / str(i), suite)
            except (RuntimeError, AssertionError) as error:
                n_failed += 1
                text = f"FAILED\n{error}"
            seconds = time.monotonic() - start
            print(f"Python {version}, {which}, {kind}: {text} ({seconds:.0f} s)", flush=True)
            shutil.rmtree(folder / str(i), ignore_errors=True)
    return 1 if n_failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
