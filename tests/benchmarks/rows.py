"""The benchmarks that run in one process: what each side calls, row by row.

funcgrad comes first in every row and is what the others are compared with. A missing peer is left
out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import methodcaller
from typing import Any

import numpy as np
from libraries import Library, report_absence
from models import (
    ORBIT,
    RECURRENT_SIZES,
    Training,
    digits_training,
    lotka_volterra,
    recurrent_arguments,
    recurrent_network,
    wide_training,
)
from stopwatch import Side

Libraries = Mapping[str, Library]

TINY_SIZES = (32, 16, 10)


@dataclass(frozen=True)
class Row:
    """One benchmark.

    Args:
        title: What is measured.
        goal: What funcgrad aims at, in words.
        sides: Makes the competitors from the loaded libraries; the flag asks for tiny sizes.
    """

    title: str
    goal: str
    sides: Callable[[Libraries, bool], list[Side]]


def eager_grad(libraries: Libraries, tiny: bool) -> list[Side]:
    """``grad`` of a scalar function of four operations, nothing compiled, one float in and out."""
    ours = libraries["funcgrad"].root.grad(four_operations(np))
    sides = [Side("funcgrad, plain NumPy", lambda: ours(1.0))]
    try:
        autograd = importlib.import_module("autograd")
        anp = importlib.import_module("autograd.numpy")
    except ImportError as error:
        report_absence("autograd", error)
    else:
        tape = autograd.grad(four_operations(anp))
        sides.append(Side("autograd", lambda: tape(1.0)))
    if "jax" in libraries:
        jax = libraries["jax"]
        theirs = jax.root.grad(four_operations(jax.numpy))
        sides.append(Side("jax, not jitted", lambda: theirs(1.0), jax.root.effects_barrier))
    return sides


def four_operations(xnp: Any) -> Callable[[Any], Any]:
    """tanh(x) * sin(x) + x**2 in the names of one namespace."""
    return lambda x: xnp.tanh(x) * xnp.sin(x) + x**2


def call_sides(
    libraries: Libraries, function: Callable[[Library], Callable[[Any], Any]], argument: Any
) -> list[Side]:
    """One jitted call on ready arguments, as each library's users write it."""
    ours = libraries["funcgrad"].root.jit(function(libraries["funcgrad"]))
    sides = [Side("funcgrad, NumPy in and out", lambda: ours(argument))]
    if "jax" in libraries:
        jax = libraries["jax"]
        theirs, device_argument = jax.root.jit(function(jax)), jax.own(argument)
        is_array = isinstance(argument, np.ndarray)
        wait = methodcaller("block_until_ready") if is_array else jax.wait
        sides += [
            Side("jax, its arrays, not waited for", lambda: theirs(device_argument)),
            Side("jax, its arrays, blocking", lambda: wait(theirs(device_argument))),
            Side("jax, NumPy in, blocking", lambda: wait(theirs(argument))),
        ]
    return sides


def small_call(libraries: Libraries, tiny: bool) -> list[Side]:
    """``jit(lambda x: x + 1)`` on ten float32 numbers."""
    return call_sides(libraries, lambda library: lambda x: x + 1, np.zeros(10, np.float32))


def tree_call(libraries: Libraries, tiny: bool) -> list[Side]:
    """``x + 1`` on each of the 50 leaves, float32[4], of a dict."""
    leaves = {f"leaf{i}": np.full(4, i, np.float32) for i in range(50)}

    def function(library: Library) -> Callable[[Any], Any]:
        map_leaves = library.root.tree.map
        return lambda tree: map_leaves(lambda x: x + 1, tree)

    return call_sides(libraries, function, leaves)


def training_sides(libraries: Libraries, train: Callable[[Library], Training]) -> list[Side]:
    """Jitted training steps with donated state, fed back in; a sample ends by waiting for it."""
    trainings = {name: train(library) for name, library in libraries.items()}
    return [Side(name, training, training.wait) for name, training in trainings.items()]


def digits(libraries: Libraries, tiny: bool) -> list[Side]:
    """MLP 64-256-128-10 with Adam, batch 128, float32."""
    return training_sides(libraries, digits_training)


def wide(libraries: Libraries, tiny: bool) -> list[Side]:
    """MLP 784-1024-1024-1024-10 with momentum, batch 512, float32."""
    if tiny:
        return training_sides(libraries, lambda library: wide_training(library, 8, TINY_SIZES))
    return training_sides(libraries, wide_training)


def orbit(libraries: Libraries, steps: int, differentiate: bool) -> list[Side]:
    """Lotka-Volterra by Runge-Kutta in a scan, float64; or the gradient of its end."""
    sides = []
    for name, library in libraries.items():
        library.set_double(True)
        run = lotka_volterra(library, steps)
        if differentiate:
            run = library.root.grad(run, (0, 1))
        sides.append(Side(name, jitted_call(library, run, ORBIT)))
    return sides


def jitted_call(
    library: Library, function: Callable[..., Any], arguments: Any
) -> Callable[[], Any]:
    """A jitted call with the library's own arrays, waited for."""
    compiled, own = library.root.jit(function), library.own(arguments)
    return lambda: library.wait(compiled(*own))


def recurrence(libraries: Libraries, tiny: bool, differentiate: bool) -> list[Side]:
    """A recurrent network over a sequence, float32; or its loss and gradient."""
    sizes = (3, 2, 8) if tiny else RECURRENT_SIZES
    sides = []
    for name, library in libraries.items():
        forward, loss = recurrent_network(library)
        library.set_double(False)
        run = library.root.value_and_grad(loss) if differentiate else forward
        sides.append(Side(name, jitted_call(library, run, recurrent_arguments(*sizes))))
    return sides


ROWS = {
    "eager-grad": Row(
        "eager grad of tanh(x) * sin(x) + x**2 at 1.0",
        "at most autograd's time, 20 times faster than jax",
        eager_grad,
    ),
    "small-call": Row("jit(x + 1), float32[10]", "2 times faster than jax", small_call),
    "tree-call": Row("jit(x + 1), dict of 50 float32[4]", "2 times faster than jax", tree_call),
    "digits-step": Row(
        "train step, MLP 64-256-128-10, Adam, batch 128, float32",
        "1.5 times faster than jax",
        digits,
    ),
    "wide-step": Row(
        "train step, MLP 784-1024-1024-1024-10, momentum, batch 512, float32",
        "at least 0.95 of jax's speed",
        wide,
    ),
    "orbit": Row(
        "scan: Lotka-Volterra, RK4, 1,000 steps, float64",
        "1.3 times faster than jax",
        lambda libraries, tiny: orbit(libraries, 10 if tiny else 1000, False),
    ),
    "orbit-gradient": Row(
        "gradient of its end in all six numbers",
        "8 times faster than jax",
        lambda libraries, tiny: orbit(libraries, 10 if tiny else 1000, True),
    ),
    "recurrence": Row(
        "scan: recurrent network, 100 steps, batch 32, 128 units, float32",
        "1.2 times faster than jax",
        lambda libraries, tiny: recurrence(libraries, tiny, False),
    ),
    "recurrence-gradient": Row(
        "its loss and gradient",
        "1.2 times faster than jax",
        lambda libraries, tiny: recurrence(libraries, tiny, True),
    ),
}
