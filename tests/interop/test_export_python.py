"""Exported modules of Python: imported without funcgrad, and compared with the process."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError
from funcgrad.interop.c import ExportedModule
from tests.interop.test_export import RANGES, R, check, signature_of
from tests.processors import PROGRAMS
from tests.test_compositions import LETTERS, POINT, SAMPLES, WORDS

pytest.importorskip("numba")

PRODUCTS = frozenset(
    (
        "products", "products in single", "complex products", "large products", "gradient",
        "wide loop",
    )
)  # fmt: skip
"""Programs whose sums NumPy's library forms in a module, in an order of its own."""


def exported(f: Any, args: Sequence[Any], name: str) -> tuple[ExportedModule, list[np.ndarray]]:
    """A function whose results are listed, and what it returns in the process."""
    known = [np.asarray(x) for x in fg.tree.leaves(fg.jit(f, threads=1)(*args))]

    def flat(*args: Any) -> Any:
        found = fg.tree.leaves(f(*args))
        return tuple(found) if len(found) > 1 else found[0]

    signature = f"{signature_of(args)} -> {signature_of(known)}"
    return fg.export(flat, signature, name, language="python"), known


def imported(made: ExportedModule, folder: Path) -> Any:
    """The function of a module."""
    spec = importlib.util.spec_from_file_location(made.name, made.write(folder))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[made.name] = module  # Numba looks there for what its cache keeps
    spec.loader.exec_module(module)
    return getattr(module, made.name)


@pytest.mark.parametrize(
    "name",
    [
        x if x == "scan" else pytest.param(x, marks=pytest.mark.nightly)
        for x in PROGRAMS
        if x != "subnormal"
    ],
)
def test_programs(name, tmp_path):
    f, args = PROGRAMS[name]
    made, known = exported(f, args, f"module_{name.replace(' ', '_')}")
    found = imported(made, tmp_path)(*args)
    found = found if isinstance(found, tuple) else (found,)
    check(name, found, known)
    if name not in PRODUCTS:
        for x, y in zip(found, known, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.nightly
@pytest.mark.parametrize("name", SAMPLES)
def test_compositions(name, tmp_path):
    """Words of transformations on the programs of their laws, a module each."""
    for number, word in enumerate(WORDS[::29]):
        f: Any = SAMPLES[name].program
        for letter in reversed(word):
            f = LETTERS[letter](f)
        try:
            made, known = exported(f, (POINT,), f"module_{name}_{number}")
        except ArgumentError as error:
            assert "a library of NumPy or SciPy evaluates a step" in str(error)  # noqa: PT017
            continue
        found = imported(made, tmp_path)(POINT)
        np.testing.assert_allclose(found, known[0], rtol=1e-12, atol=1e-12, err_msg=str(word))


def test_a_process_without_funcgrad(tmp_path):
    """Sizes of a range, a refused index with its line, and the second process of a cache."""

    def picked(x, i):
        return fg.jit(lambda x, i: np.exp(x)[i])(x, i)

    made = fg.export(
        picked, "float64[n], int64[3] -> float64[3]", "picked", {"n": range(3, 500)}, "python"
    )
    made.write(tmp_path)
    program = """
import sys
sys.modules["funcgrad"] = None
import numpy as np
from picked import picked
for n in (3, 7, 400):
    x = np.linspace(0.0, 1.0, n)
    np.testing.assert_allclose(picked(x, [0, 2, n - 1]), np.exp(x)[[0, 2, n - 1]], rtol=1e-15)
for x, i in ((np.zeros(4), [0, 1, 9]), (np.zeros(500), [0, 1, 2]), (np.zeros((2, 2)), [0, 1, 2])):
    try:
        picked(x, i)
    except ValueError as error:
        print(str(error).splitlines()[0])
"""
    for _ in range(2):
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        first, second, third = done.stdout.splitlines()
        assert first == "an index is out of bounds: gather of float64, int64"
        assert second == "the module has no code for the sizes (500,)"
        assert third == "expected the shapes [(2,), (3,)], got [(2, 2), (3,)]"


def test_folds_have_the_order_of_the_process(tmp_path):
    """Ten sums of parts are added by a loop in a kernel whose other loops have vectors."""

    def totals(x):
        def step(x, _):
            x = np.tanh(x * 1.5)
            return x, np.sum(x)

        return fg.lax.scan(step, x, None, length=10)[1]

    x = R.standard_normal(100_000)
    made, known = exported(totals, (x,), "totals")
    np.testing.assert_array_equal(imported(made, tmp_path)(x), known[0])


@pytest.mark.nightly
def test_threads(tmp_path):
    """Calls of several threads at the same time, each with a size of its own."""
    f = fg.value_and_grad(lambda x: np.sum(np.log1p(np.exp(x)) * x))
    made = fg.export(
        f, "float64[n] -> float64, float64[n]", "of_threads", {"n": range(2000)}, "python"
    )
    function = imported(made, tmp_path)
    args = [R.standard_normal(n) for n in (0, 1, 33, 1999)] * 20
    known = [fg.jit(f, threads=1)(x) for x in args]
    with ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(function, args), known, strict=True):
            for x, y in zip(found, expected, strict=True):
                np.testing.assert_array_equal(x, y)


@pytest.mark.nightly
@pytest.mark.parametrize("name", RANGES)
def test_ranges_of_sizes(name, tmp_path):
    f, text = RANGES[name]
    sizes = {key: range(1, 301) for key in "nm" if key in text.partition("->")[0]}
    made = fg.export(f, text, f"module_of_{name}", sizes, "python")
    function = imported(made, tmp_path)
    for row in ((1, 1), (4, 3), (17, 5), (300, 40), (33, 33)):
        known = dict(zip("nm", row, strict=False))
        args = [R.standard_normal(t.shape(known)).astype(t.dtype) for t in made.signature.leaves]
        expected = fg.tree.leaves(fg.jit(f, threads=1)(*args))
        check(f"{name} {row}", fg.tree.leaves(function(*args)), expected)


def test_other_languages_are_refused():
    with pytest.raises(ArgumentError, match='language is "c" or "python", got \'rust\''):
        fg.export(np.sin, "float64 -> float64", "f", None, "rust")  # type: ignore[call-overload]


def test_functions_of_words_may_have_any_name_of_llvm(tmp_path):
    """Elements that are read backwards: their function's name has a sign."""
    x = np.linspace(-1.0, 1.0, 100)
    made, known = exported(lambda x: x[::-1] * 2.0, (x,), "backwards")
    np.testing.assert_array_equal(imported(made, tmp_path)(x), known[0])
