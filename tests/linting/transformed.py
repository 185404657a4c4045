"""Faults in a function that something is done to: mapped, looped over, recomputed, given rules.

``python -m tests.linting.transformed 0``, and 1 and 2, print what lint, `check_derivatives` and
`profile` find of each under `funcgrad.interop.jax`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.interop.jax import install

X = np.array([1.0, 0.0, 2.0])
SCALE = 1.0


def rounded(x: Any) -> Any:
    return np.sum(np.round(x))  # here


def at_zero(x: Any) -> Any:
    return np.sum(np.abs(x) * 2)  # here


def chosen(x: Any) -> Any:
    return np.sum(np.where(x > 0, x, 3 * x))  # here


def steps(x: Any) -> Any:
    return np.sum((x + 0.5) // 0.5 * x + x)  # here


def root(x: Any) -> Any:
    return np.sum(np.sqrt(x))  # here


def powers(x: Any) -> Any:
    return np.sum(np.exp(x + 800))  # here


def guarded(x: Any) -> Any:
    return np.sum(np.where(x != 0, x * np.log(x), 0.0))  # here


def cancels(x: Any) -> Any:
    large = 0.1 / float(np.finfo(x.dtype).eps)
    return np.sum((x + large) - large)  # here


def square(x: Any) -> Any:
    column = np.eye(3, dtype=x.dtype) @ np.reshape(x, (3, 1))
    return np.sum((column - x) ** 2)  # here


def drawn_twice(x: Any) -> Any:
    key = fg.random.key(0)
    a = fg.random.normal(key, (), x.dtype)  # here
    return np.sum(x * a * fg.random.uniform(key, (), x.dtype))  # here


def given_away(x: Any) -> Any:
    return np.sum(x) * float(x[0])  # here


def reads_global(x: Any) -> Any:
    return np.sum(x * SCALE)  # here


def set_scale(value: float) -> None:
    global SCALE
    SCALE = value


def in_python(x: Any) -> Any:
    for _ in range(80):
        x = np.sin(x) + 0.1  # here
    return np.sum(x)


def drops(x: Any) -> Any:
    np.sum(x**2)  # here
    return np.sum(np.sin(x))


FAULTS: dict[str, Callable[..., Any]] = {
    "cut-derivative": rounded,
    "kink": at_zero,
    "kink-of-choice": chosen,
    "jump": steps,
    "singular-derivative": root,
    "overflow": powers,
    "hidden-nan": guarded,
    "lost-digits": cancels,
    "accidental-broadcast": square,
    "reused-key": drawn_twice,
    "left-trace": given_away,
    "changing-state": reads_global,
    "unrolled-loop": in_python,
    "unused-result": drops,
}
"""Functions of `X` with a fault, by the rule that finds it."""

UNSEEN = {
    "scan": ["lost-digits"],
    "cond": ["lost-digits"],
    "scan of checkpoint": ["lost-digits"],
    "custom_vjp": ["lost-digits"],
    "custom_jvp": ["cut-derivative", "lost-digits"],
}
"""What lint cannot see: roundings within one operation, and what a rule says to be a number 0."""


def clean(x: Any) -> Any:
    return np.sum(np.exp(-x) * np.sin(x + 1)) + np.sum(np.sqrt(x + 1))


def slow(x: Any) -> Any:
    a = x * 2
    b = np.sin(np.exp(np.sin(np.exp(np.sin(a)))))  # slow
    return np.sum(a * b)


def with_own_pull(f: Callable[..., Any], custom_vjp: Any, vjp: Any) -> Callable[..., Any]:
    """A function with a rule of its own backwards, which says what the derivative is."""
    ruled = custom_vjp(lambda x: f(x))
    ruled.defvjp(lambda x: vjp(f, x), lambda pull, ct: pull(ct))
    return ruled


def with_own_push(f: Callable[..., Any], custom_jvp: Any, jvp: Any) -> Callable[..., Any]:
    """A function with a rule of its own forwards."""
    ruled = custom_jvp(lambda x: f(x))
    ruled.defjvp(lambda primals, tangents: jvp(f, primals, tangents))
    return ruled


def ways(library: Any, lax: Any) -> dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """What is done to a function of a vector, by funcgrad or by what has JAX's names."""

    def scanned(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: lax.scan(lambda c, row: (c + f(row), None), 0.0, x[None])[0]

    def branched(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: lax.cond(len(x) > 2, f, lambda x: 2 * f(x), x)

    return {
        "jit": library.jit,
        "vmap": lambda f: lambda x: np.sum(library.vmap(f)(x[None])),
        "scan": scanned,
        "cond": branched,
        "checkpoint": library.checkpoint,
        "custom_vjp": lambda f: with_own_pull(f, library.custom_vjp, library.vjp),
        "custom_jvp": lambda f: with_own_push(f, library.custom_jvp, library.jvp),
        "scan of checkpoint": lambda f: scanned(library.checkpoint(f)),
        "jit of vmap": lambda f: library.jit(lambda x: np.sum(library.vmap(f)(x[None]))),
    }


def missed(change: Callable[..., Any], x: Any) -> list[str]:
    """The rules that do not find their faults once something is done to the function."""
    return [rule for rule, f in FAULTS.items() if not _is_found(change(f), rule, x)]


def _is_found(f: Callable[..., Any], rule: str, x: Any) -> bool:
    # In a loop, a key that is used twice is also used in each round.
    rules = {"reused-key", "constant-key"} if rule == "reused-key" else {rule}
    places = (finding.location for finding in fg.lint(f, x) if finding.rule in rules)
    return any(place is not None and place.text().endswith("# here") for place in places)


def shows_slow_line(f: Callable[..., Any], x: Any) -> bool:
    """Whether a profile of the gradient of a function of `slow` has its line first.

    Other processes may have the processor for most of one profile, so there are three.
    """
    profiles = (fg.profile(f, seconds=0.05)(x) for _ in range(3))
    return any(
        next(line.text for line in profile.lines if line.calls).endswith("# slow")
        and profile.coverage > 0.95
        for profile in profiles
    )


PARTS = 12
"""Parts of the ways, each for a process."""


def main(part: int) -> None:
    """Lint, check and profile a part under the names of JAX, and print what is missed."""
    install()
    jax = importlib.import_module("jax")

    x = jax.numpy.array(X)
    for way, change in [*ways(jax, jax.lax).items()][part::PARTS]:
        is_right = bool(fg.check_derivatives(change(clean), x + 0.1))
        is_first = shows_slow_line(jax.jit(jax.grad(change(slow))), jax.numpy.ones(20_000))
        print(f"{way}: {missed(change, x)} {len(fg.lint(change(clean), x))} {is_right} {is_first}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
