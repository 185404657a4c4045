"""Programs in the styles of JAX and autograd run after the change of their imports, and are right.

Each module here has a ``main`` that asserts its results against a reference of its own and returns
figures. A sample runs every time, all of them nightly, where those of JAX and autograd themselves
are compared, too.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import funcgrad as fg

HERE = Path(__file__).parent
PROGRAMS = sorted(p.stem for p in HERE.glob("*.py") if not p.stem.startswith(("test_", "_")))
QUICK = {
    "bigram_model", "custom_primitive", "hidden_markov", "implicit_layer", "lens",
    "logistic_regression", "maml", "pagerank", "poisson_regression", "rosenbrock", "soft_sorting",
    "tsne",
}  # fmt: skip
STYLES = {
    "jax": (
        ("import funcgrad as jax", "import jax"),
        ("import funcgrad.", "import jax."),
        ("from funcgrad import", "from jax import"),
        ("from funcgrad.", "from jax."),
    ),
    "autograd": (("funcgrad.interop.autograd", "autograd"),),
}


def style_of(name: str) -> str:
    text = (HERE / f"{name}.py").read_text()
    return "autograd" if "funcgrad.interop.autograd" in text else "jax"


def run(name: str) -> dict[str, object]:
    module = f"tests.programs.{name}"
    sys.modules.pop(module, None)  # some keep a generator of random numbers
    figures: dict[str, object] = importlib.import_module(module).main()
    assert all(np.all(np.isfinite(leaf)) for leaf in fg.tree.leaves(figures))
    return figures


def test_there_are_enough_programs_of_both_styles():
    styles = [style_of(name) for name in PROGRAMS]
    assert len(PROGRAMS) >= 40
    assert min(styles.count("jax"), styles.count("autograd")) >= 10
    assert set(PROGRAMS) >= QUICK


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", sorted(QUICK))
def test_a_sample_of_the_programs(name):
    assert run(name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - QUICK))
def test_all_programs(name):
    assert run(name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_library_of_their_style_gives_the_same_figures(name, tmp_path):
    library = style_of(name)
    pytest.importorskip(library)
    text = (HERE / f"{name}.py").read_text()
    for ours, theirs in STYLES[library]:
        text = text.replace(ours, theirs)
    assert "funcgrad" not in text
    setup = "import jax\njax.config.update('jax_enable_x64', True)\n" if library == "jax" else ""
    end = "\nimport json\nprint(json.dumps(main(), default=float))\n"
    (tmp_path / "program.py").write_text(setup + text + end)
    command = [sys.executable, "-W", "ignore", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    expected = json.loads(done.stdout.splitlines()[-1])
    got = json.loads(json.dumps(run(name), default=float))
    for a, b in zip(fg.tree.leaves(got), fg.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-2, atol=1e-2)
