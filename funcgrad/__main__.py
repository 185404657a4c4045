"""``python -m funcgrad``: whether an installation works, and what it consists of.

``python -m funcgrad lint script.py`` lints the functions that a script differentiates, and
``python -m funcgrad lint --rules`` lists what it looks for.

A handful of checks of all its parts, native code included, against NumPy and closed forms; it needs
nothing that is not installed with funcgrad, and takes seconds.
"""

from __future__ import annotations

import pickle
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.linting.script import main as lint_command

X = np.linspace(0.1, 0.9, 7)
A = np.add.outer(X, X**2) + 3 * np.eye(7)


def _scan(x: Any) -> Any:
    return fg.lax.scan(lambda c, y: (np.sin(c + y), c), 0.0, x)[0]


def _loop(x: Any) -> float:
    c = 0.0
    for y in x:
        c = float(np.sin(c + y))
    return c


def _differences(f: Callable[[Any], Any], x: Any) -> Any:
    steps = 1e-6 * np.eye(len(x))
    return np.array([(f(x + h) - f(x - h)) / 2e-6 for h in steps])


def _large(x: Any) -> Any:
    return np.exp(-x * x).sum()


CHECKS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "gradient": lambda: (fg.grad(lambda x: np.sum(np.sin(x)))(X), np.cos(X)),
    "second derivative": lambda: (fg.hessian(lambda x: np.sum(x**3))(X), np.diag(6 * X)),
    "vmap": lambda: (fg.vmap(np.dot, (0, None))(A, X), A @ X),
    "jit": lambda: (fg.jit(lambda x: np.tanh(x) / (1 + x))(X), np.tanh(X) / (1 + X)),
    "jit of a gradient": lambda: (
        fg.jit(fg.grad(lambda x: np.sum(np.exp(x) * x)))(X),
        np.exp(X) * (1 + X),
    ),
    "native loop": lambda: (fg.jit(_scan)(X), _loop(X)),
    "native loop, backwards": lambda: (fg.jit(fg.grad(_scan))(X), _differences(_loop, X)),
    "matrix product": lambda: (fg.jit(lambda a: a @ a.T)(A), A @ A.T),
    "LAPACK": lambda: (A @ fg.jit(np.linalg.solve)(A, X), X),
    "sort": lambda: (fg.jit(np.sort)(X[::-1]), X),
    "FFT": lambda: (fg.jit(np.fft.rfft)(X), np.fft.rfft(X)),
    "special function": lambda: (fg.jit(fg.scipy.special.gammaln)(X + 1)[3], np.log(_GAMMA)),
    "random numbers": lambda: (
        fg.random.normal(fg.random.key(0), (3,)),
        fg.jit(lambda key: fg.random.normal(key, (3,)))(fg.random.key(0)),
    ),
    "threads": lambda: (fg.jit(_large)(np.ones(1 << 20)), np.exp(-1.0) * (1 << 20)),
    "pickle": lambda: (pickle.loads(pickle.dumps(fg.jit(_large)))(X), _large(X)),
}
_GAMMA = 0.8862269254527580  # of 3/2: half of the root of pi


def check() -> list[str]:
    """Run all checks.

    Returns: What went wrong, a text each.
    """
    wrong = []
    for name, run in CHECKS.items():
        try:
            found, expected = run()
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
        except Exception:
            wrong.append(f"{name}:\n{traceback.format_exc()}")
    return wrong


def main() -> int:
    """Print the installation and what is wrong with it; 0 if it works."""
    fg.print_environment_info()
    start = time.monotonic()
    wrong = check()
    for text in wrong:
        print(text)
    seconds = time.monotonic() - start
    verdict = f"{len(wrong)} of {len(CHECKS)} checks failed" if wrong else "works"
    print(f"funcgrad {fg.__version__} {verdict} ({len(CHECKS)} checks, {seconds:.1f} s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(lint_command(fg, sys.argv[2:]) if sys.argv[1:2] == ["lint"] else main())
