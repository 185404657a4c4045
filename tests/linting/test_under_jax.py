"""Programs for JAX, which import funcgrad under that name, are linted as others are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """\
from funcgrad.interop import jax as neighbour

neighbour.install()
import jax
import jax.numpy as jnp
import funcgrad as fg

W = jnp.array([1.0, 0.0, 2.0])


def kink(w):
    return jnp.sum(jnp.maximum(w, 0.0) * 2.0)  # kink


def cut(w):
    return jnp.sum(jnp.round(w))  # cut-derivative


def key_used_twice(w, key):
    a = jax.random.normal(key, (3,))
    return jnp.sum(w * a * jax.random.uniform(key, (3,)))  # reused-key


def root(w):
    def step(c, x):
        return c + jnp.sqrt(x), None  # singular-derivative

    return jax.lax.scan(step, 0.0, w)[0]


def column(w, y):
    return jnp.mean((w - y) ** 2)  # accidental-broadcast


def number(w):
    return jnp.sum(w) * float(w[0])  # left-trace


for f, args in [
    (kink, (W,)),
    (jax.jit(kink), (W,)),
    (lambda w: jnp.sum(jax.vmap(kink)(w[None])), (W,)),
    (cut, (W,)),
    (key_used_twice, (W, jax.random.key(0))),
    (root, (W,)),
    (jax.checkpoint(root), (W,)),
    (column, (W[:, None], W)),
    (number, (W,)),
]:
    for found in fg.lint(f, *args):
        assert found.location.text().endswith("# " + found.rule), str(found)
        print(found.rule)
"""


def test_faults_are_found_at_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert not found.returncode, found.stderr
    assert found.stdout.split() == [
        "kink", "kink", "kink", "cut-derivative", "reused-key", "singular-derivative",
        "singular-derivative", "accidental-broadcast", "left-trace",
    ]  # fmt: skip
