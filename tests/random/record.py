"""Write `recorded.py`: the values that JAX draws for every case.

Run by hand with JAX installed, from the root of the repository:

    python -m tests.random.record
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from tests.random.cases import CLOSE, EXACT, SEEDS

HEADER = '''"""Written by `tests.random.record` with JAX {version} (threefry2x32, 64-bit mode)."""

# fmt: off
RECORDED = {{
'''


def as_literal(value: Any) -> str:
    array = np.asarray(value)
    flat = array.ravel().tolist()
    return f"({str(array.dtype)!r}, {array.shape}, {flat!r})"


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    lines = [HEADER.format(version=jax.__version__)]
    for seed, number in SEEDS.items():
        for name, draw in {**EXACT, **CLOSE}.items():
            value = draw(jax.random, jax.random.PRNGKey(number))
            lines.append(f"    {f'{name}-{seed}'!r}: {as_literal(value)},\n")
    text = "".join([*lines, "}\n"]).replace("(nan+", '(float("nan")+')
    Path(__file__).with_name("recorded.py").write_text(text)


if __name__ == "__main__":
    main()
