"""The libraries under test behind one face: how each runs a problem of the benchmarks.

funcgrad takes JAX's names on purpose, so both run the same source. PyTorch runs a definition of
its own, or the source itself where NumPy's names are enough for it; so does HIPS autograd. Numba
runs references that are loops. A peer that is not installed is reported and left out, and so is
one that has no definition of a row.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.benchmarks.workload import Problem, Program, leaves, map_arrays

PEERS = ("jax", "torch", "autograd", "numba", "values")
OWN_PEERS = {"values": "tests.benchmarks.values"}
"""Those that are no packages but modules of the benchmarks."""


@dataclass(frozen=True)
class Library:
    """What differs between the libraries.

    Args:
        name: As it stands in the tables.
        root: The names that programs see: ``root.numpy``, ``root.grad``, ...
        own: Converts a NumPy array to the array type that the library works on.
        wait: Waits until the arrays of a tree are computed.
        compile: Compiles a program; the flag lets a call overwrite its first argument.
        write: The program of a problem, or None where the library cannot run it.
        differentiate: Value and gradient of a scalar program in some of its arguments; None where
            programs must differentiate themselves.
        lacks: Which of some dotted names of JAX's does it lack?
    """

    name: str
    root: Any
    own: Callable[[np.ndarray], Any]
    wait: Callable[[Any], Any]
    compile: Callable[[Program, bool], Program]
    write: Callable[[Problem], Program | None]
    differentiate: Callable[[Program, tuple[int, ...]], Program] | None
    lacks: Callable[[Sequence[str]], list[str]] = lambda names: []

    def own_tree(self, tree: Any) -> Any:
        """Every array of a tree as one of the library's own."""
        return map_arrays(lambda x: self.own(x) if isinstance(x, np.ndarray) else x, tree)

    def program(self, problem: Problem, differentiate: bool) -> Program | None:
        """The function to be timed, or None where the library cannot run it."""
        written = self.write(problem)
        if written is None or (differentiate and self.differentiate is None):
            return None
        function = written
        if differentiate and self.differentiate is not None:
            function = self.differentiate(scalar_loss(self.root.numpy, written), problem.argnums)
        return self.compile(function, problem.feedback) if problem.mode != "eager" else function


def scalar_loss(xnp: Any, function: Program) -> Program:
    """What a gradient is taken of: the result, or the mean square of one that is no scalar."""

    def loss(*arguments: Any) -> Any:
        result = function(*arguments)
        return result if result.ndim == 0 else xnp.mean(result * result)

    return loss


def is_available(root: Any, name: str) -> bool:
    """Does a dotted name exist?"""
    missing = object()
    found = reduce(lambda at, part: getattr(at, part, missing), name.split("."), root)
    return found is not missing


def traced(root: Any, name: str, **conversion: Any) -> Library:
    """A library with JAX's names and a `jit`."""

    def compiled(function: Program, donate: bool) -> Program:
        return root.jit(function, donate_argnums=(0,) if donate else ())

    def lacks(names: Sequence[str]) -> list[str]:
        return [needed for needed in names if not is_available(root, needed)]

    def write(problem: Problem) -> Program | None:
        is_plain = problem.mode == "eager" and name == "funcgrad"
        return problem.program(PLAIN if is_plain else root)

    PLAIN = SimpleNamespace(**{**vars(root), "numpy": np})
    return Library(
        name,
        root,
        lacks=lacks,
        compile=compiled,
        write=write,
        differentiate=root.value_and_grad,
        **conversion,
    )


def funcgrad_library(double: bool) -> Library:
    """funcgrad: its arrays are NumPy's and its results are always ready."""
    return traced(importlib.import_module("funcgrad"), "funcgrad", own=np.array, wait=finished)


def jax_library(double: bool) -> Library:
    """JAX: arrays live on its device, results arrive asynchronously."""
    root = importlib.import_module("jax")
    for module in ("numpy", "nn", "scipy.special", "scipy.linalg", "experimental.ode"):
        importlib.import_module(f"jax.{module}")
    root.config.update("jax_enable_x64", double)
    return traced(root, "jax", own=root.numpy.array, wait=root.block_until_ready)


def finished(tree: Any) -> Any:
    """Wait for results that are always ready."""
    return tree


def as_it_is(function: Program, donate: bool) -> Program:
    """What a library without a compiler makes of a program."""
    return function


def autograd_library(double: bool) -> Library:
    """HIPS autograd, which has no compiler: each call traces anew where it differentiates."""
    autograd = importlib.import_module("autograd")

    def differentiate(function: Program, argnums: tuple[int, ...]) -> Program:
        """With a tuple of gradients, as JAX gives it."""
        return autograd.value_and_grad(function, argnums)

    def grad(function: Program) -> Program:
        return autograd.grad(function)

    root = SimpleNamespace(
        numpy=importlib.import_module("autograd.numpy"),
        grad=grad,
        value_and_grad=autograd.value_and_grad,
    )

    def write(problem: Problem) -> Program | None:
        return problem.program(root) if "autograd" in problem.as_written else None

    return Library("autograd", root, np.array, finished, as_it_is, write, differentiate)


@dataclass(frozen=True)
class PythonLoops:
    """JAX's loops where there is nothing but Python's: its steps one after the other.

    Args:
        torch: Stacks results.
    """

    torch: Any

    def fori_loop(self, start: int, stop: int, body: Program, carry: Any) -> Any:
        """Call ``body(i, carry)`` for each i."""
        for i in range(start, stop):
            carry = body(i, carry)
        return carry

    def scan(
        self,
        step: Program,
        carry: Any,
        xs: Any,
        length: int | None = None,
        reverse: bool = False,
    ) -> tuple[Any, Any]:
        """The last carry, and the results of all steps stacked."""
        count = len(leaves(xs)[0]) if length is None else length
        results = []
        for i in reversed(range(count)) if reverse else range(count):
            carry, result = step(carry, map_arrays(lambda x, i=i: None if x is None else x[i], xs))
            results.append(result)
        return carry, self._stacked(results[::-1] if reverse else results)

    def _stacked(self, trees: list[Any]) -> Any:
        if isinstance(trees[0], tuple):
            return tuple(self._stacked(list(parts)) for parts in zip(*trees, strict=True))
        return None if trees[0] is None else self.torch.stack(trees)


def torch_library(double: bool) -> Library:
    """PyTorch as its users run it first: eager, on the CPU; as many threads as processors."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    root = SimpleNamespace(numpy=torch, lax=PythonLoops(torch), vmap=torch.func.vmap)

    def own(array: np.ndarray) -> Any:
        """Indices are int64 where PyTorch's users have them."""
        tensor = torch.tensor(array)
        return tensor.long() if tensor.dtype == torch.int32 else tensor

    def differentiate(function: Program, argnums: tuple[int, ...]) -> Program:
        def run(*arguments: Any) -> Any:
            given = list(arguments)
            for number in argnums:
                given[number] = map_arrays(lambda x: x.detach().requires_grad_(), given[number])
            variables = [given[number] for number in argnums]
            with torch.enable_grad():
                value = function(*given)
                found = iter(torch.autograd.grad(value, leaves(variables)))
            return value.detach(), tuple(map_arrays(lambda _: next(found), variables))

        return run

    def compiled(function: Program, donate: bool) -> Program:
        """Record nothing where no gradient is asked for."""
        return torch.no_grad()(function)

    def write(problem: Problem) -> Program | None:
        if problem.torch is not None:
            return problem.torch(torch)
        return problem.program(root) if "torch" in problem.as_written else None

    return Library("torch", root, own, finished, compiled, write, differentiate)


def values_library(double: bool) -> Library:
    """Objects for numbers, in micrograd's style; only what is written for them."""

    def write(problem: Problem) -> Program | None:
        return problem.values(root) if problem.values is not None else None

    root = importlib.import_module(OWN_PEERS["values"])
    return Library("values", root, np.array, finished, as_it_is, write, None)


@cache
def compiled_loops(function: Program) -> Program:
    """Loops as Numba compiles them."""
    return importlib.import_module("numba").njit(function)


def numba_library(double: bool) -> Library:
    """Numba: the reference where that is loops written by hand."""

    def write(problem: Problem) -> Program | None:
        return problem.reference if problem.loops else None

    def compiled(function: Program, donate: bool) -> Program:
        is_compiled = hasattr(function, "py_func")  # where the judge uses it as well
        return function if is_compiled else compiled_loops(function)

    return Library(
        "numba", importlib.import_module("numba"), np.array, finished, compiled, write, None
    )


CONSTRUCTORS: dict[str, Callable[[bool], Library]] = {
    "funcgrad": funcgrad_library,
    "jax": jax_library,
    "torch": torch_library,
    "autograd": autograd_library,
    "numba": numba_library,
    "values": values_library,
}


def is_installed(name: str) -> bool:
    """Can a peer be imported? (It is not.)"""
    return importlib.util.find_spec(OWN_PEERS.get(name, name)) is not None


def installed(peers: Sequence[str]) -> list[str]:
    """Those of the peers that are there; the others are reported."""
    missing = [name for name in peers if not is_installed(name)]
    if missing:
        names = ", ".join(missing)
        print(f"left out, not installed: {names} (pip install '.[bench]')", file=sys.stderr)
    return [name for name in peers if name not in missing]


def peers_of(problem: Problem, libraries: Sequence[str]) -> list[str]:
    """Libraries that have a definition of a problem: the others need not be imported."""
    known = {
        "torch": problem.torch is not None or "torch" in problem.as_written,
        "autograd": "autograd" in problem.as_written,
        "numba": problem.loops,
        "values": problem.values is not None,
    }
    return [name for name in libraries if known.get(name, True)]


def load(names: Sequence[str], dtype: str) -> dict[str, Library]:
    """Import libraries, for programs of this dtype."""
    return {name: CONSTRUCTORS[name](dtype == "float64") for name in names}
