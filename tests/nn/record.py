"""Write `recorded.py`: the weights that JAX draws with its default arguments.

Run by hand with JAX installed, from the root of the repository:

    python -m tests.nn.record
"""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np

FAMILIES = (
    "glorot_uniform", "glorot_normal", "lecun_uniform", "lecun_normal", "he_uniform", "he_normal",
    "uniform", "normal", "truncated_normal", "orthogonal",
)  # fmt: skip
CASES = (("float32", (4, 3)), ("float64", (3, 2, 2)))
WINDOWS = (("float32", (3, 2, 2)), ("float64", (2, 3, 2, 3)))
HEADER = '''"""Written by `tests.nn.record` with JAX {version} (64-bit mode, key 3)."""

# ruff: noqa: E501
# fmt: off
RECORDED = {{
'''


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    lines = [HEADER.format(version=jax.__version__)]
    for family in (*FAMILIES, "delta_orthogonal"):
        for dtype, shape in WINDOWS if family == "delta_orthogonal" else CASES:
            init = getattr(jax.nn.initializers, family)()
            values = np.asarray(init(jax.random.PRNGKey(3), shape, dtype)).ravel().tolist()
            name = f"{family}-{dtype}"
            lines.append(f"    {name!r}: ({family!r}, {dtype!r}, {shape}, {values!r}),\n")
    Path(__file__).with_name("recorded.py").write_text("".join([*lines, "}\n"]))


if __name__ == "__main__":
    main()
