"""``python -m tests.posteriors``: gradients of log densities by address, beside those of peers.

The densities are those of `tests.interop.posteriors`. Peers are Stan, as the library in the wheel
``stanli``, and PyTensor, as ``nutpie`` compiles a model of ``pymc``: each is compared where it is
installed. Values and gradients are checked, and calls of both addresses are timed in turn, from a
loop that Numba compiles. Ratios above 1 say that a peer takes longer.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from scipy import special

from funcgrad.interop.samplers import LogDensity
from tests.interop import posteriors
from tests.interop.posteriors_in_stan import code_of, data_of, order_of

MEAN, WORST, OF_PYTENSOR = 1.2, 0.5, 5.0
"""Stan's time in ours, in the geometric mean and at least; and PyTensor's in the mean."""

Call = tuple[Any, tuple[int, ...]]
"""A pointer to a function of C, and its arguments."""

NEAR = {"probit": 2e-6}
"""How near gradients are where it is not 1e-7: Stan's of a normal distribution function has fewer
digits than that of SciPy's formulas."""


def point(n: int) -> np.ndarray:
    return 0.3 * np.random.default_rng(n).standard_normal(n)


def ours(density: LogDensity, x: np.ndarray) -> tuple[Call, np.ndarray, np.ndarray]:
    """A call of the address; where it puts the value and the gradient."""
    value, gradient = np.empty(1), np.empty(density.n)
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, *[pointer] * 4)
    given = (density.n, x.ctypes.data, gradient.ctypes.data, value.ctypes.data, 0)
    return (kind(density.address), given), value, gradient


def of_stan(name: str, density: LogDensity, x: np.ndarray) -> tuple[Call, float, Any, Any]:
    """A call of Stan's gradient, the value and gradient, and what must live as long.

    Elements of the gradient are in our order. There is none if constraints differ.
    """
    stanli = import_module("stanli")
    log_density, example, _ = posteriors.made(name)
    model = stanli.Model(stan_code=code_of(name), data=data_of(name, log_density))
    assert model.n_unconstrained == density.n
    order = order_of(name, example)
    there = x.copy() if order is None else x[order]
    value, slope = model.log_prob_grad(there)
    gradient = None
    if order is not None:
        gradient = np.empty_like(slope)
        gradient[order] = slope
    out = np.empty(1), np.empty(density.n)
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[pointer] * 4)
    function = kind(ctypes.cast(stanli._lib.stanli_grad, pointer).value or 0)
    handle = getattr(model._m, "value", model._m)
    given = (handle, there.ctypes.data, out[0].ctypes.data, out[1].ctypes.data)
    return (function, given), value, gradient, (model, there, out)


class OfPyTensor:
    """The names of NumPy and SciPy, which take PyTensor's variables too."""

    def __init__(self, plain: Any, special: dict[str, Any]) -> None:
        self._plain, self._special = plain, special

    def __getattr__(self, name: str) -> Any:
        pt = import_module("pytensor.tensor")
        plain = getattr(self._plain, name)
        if not callable(plain):
            return OfPyTensor(plain, self._special) if name == "linalg" else plain
        of_variables = self._special.get(name) or getattr(pt, name, None)

        def chosen(*args: Any, **named: Any) -> Any:
            rows = [x for arg in args for x in (arg if isinstance(arg, list | tuple) else [arg])]
            has_variable = any(isinstance(x, pt.TensorVariable) for x in rows)
            return (of_variables if has_variable else plain)(*args, **named)

        return chosen


def module_of_pytensor() -> Any:
    """The densities, with PyTensor in the place of NumPy."""
    pt, slinalg = import_module("pytensor.tensor"), import_module("pytensor.tensor.slinalg")
    of_densities = import_module("pymc.distributions.dist_math")
    known = {
        "expit": pt.sigmoid,
        "betaln": of_densities.betaln,
        "log_ndtr": lambda x: of_densities.normal_lcdf(0.0, 1.0, x),
        "cholesky": lambda x: slinalg.cholesky(x, lower=True),
        "solve": lambda a, b: slinalg.solve_triangular(a, b, lower=True),
        "size": lambda x: x.size,
    }
    spec = importlib.util.spec_from_file_location("posteriors_of_pytensor", posteriors.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.rows = {name: module.made(name) for name in module.MODELS}
    module.np, module.special = OfPyTensor(np, known), OfPyTensor(special, known)
    return module


def in_pytensor(density: LogDensity, made: posteriors.Made, vector: Any) -> tuple[Any, bool]:
    """The log density of a variable, and whether its constraints are ours."""
    pt, transforms = (
        import_module("pytensor.tensor"),
        import_module("pymc.distributions.transforms"),
    )
    log_density, example, _ = made
    parameters, total, start, is_ours = {}, 0.0, 0, True
    rows = zip(sorted(example), density._constraints, density._inner, strict=True)
    for key, constraint, shape in rows:
        size = int(np.prod(shape))
        x = vector[start : start + size].reshape(shape) if shape else vector[start]
        start += size
        kind, _, ends = constraint.name.partition("(")
        if kind == "real":
            parameters[key] = x
            continue
        found = {
            "positive": transforms.log,
            "ordered": transforms.ordered,
            "simplex": transforms.simplex,
        }.get(kind) or transforms.Interval(*map(float, ends.rstrip(")").split(",")))
        is_ours &= kind != "simplex"
        parameters[key] = found.backward(x)
        total += pt.sum(found.log_jac_det(x))
    return log_density(parameters) + total, is_ours


def of_pytensor(
    module: Any, name: str, density: LogDensity, x: np.ndarray
) -> tuple[Call, float, Any, Any]:
    """A call of PyTensor's gradient, as in `of_stan`."""
    nutpie, pymc = import_module("nutpie"), import_module("pymc")
    with pymc.Model() as model:
        vector = pymc.Flat("vector", shape=density.n)
        total, is_ours = in_pytensor(density, module.rows[name], vector)
        pymc.Potential("density", total)
    made = nutpie.compile_pymc_model(model)
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_size_t, *[pointer] * 4)
    value, gradient = np.empty(1), np.empty(density.n)
    given = (
        density.n, x.ctypes.data, gradient.ctypes.data, value.ctypes.data,
        made.user_data.ctypes.data,
    )  # fmt: skip
    function = kind(made.compiled_logp_func.address)
    assert function(*given) == 0
    found = gradient.copy() if is_ours else None
    return (function, given), float(value[0]), found, (made, value, gradient)


def looped(call: Call) -> Callable[[int], Any]:
    """A function that calls an address so many times, without Python."""
    numba = import_module("numba")
    function, given = call
    names = ", ".join(f"x{k}" for k in range(len(given)))
    text = f"def loop(n, {names}):\n for _ in range(n):\n  function({names})\n"
    made: dict[str, Any] = {"function": function}
    exec(text, made)
    loop = numba.njit(made["loop"])
    loop(1, *given)
    return lambda n: loop(n, *given)


def times(calls: list[Call], seconds: float = 3e-3, rounds: int = 15) -> list[float]:
    """Processor time of each call, in microseconds: medians over rounds of all in turn."""
    loops, counts = [looped(call) for call in calls], []
    for loop in loops:
        start = time.process_time()
        loop(5)
        counts.append(max(3, int(5 * seconds / max(time.process_time() - start, 1e-6))))
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for loop, count, row in zip(loops, counts, found, strict=True):
            start = time.process_time()
            loop(count)
            row.append((time.process_time() - start) / count * 1e6)
    return [float(np.median(row)) for row in found]


def measured(
    names: list[str], peers: list[str]
) -> Iterator[tuple[str, float, dict[str, float], list[str]]]:
    """Names, our time, those of peers, and peers whose gradients differ."""
    makers: dict[str, Callable[[str, LogDensity, np.ndarray], Any]] = {}
    if "Stan" in peers:
        makers["Stan"] = of_stan
    if "PyTensor" in peers:
        module = module_of_pytensor()
        makers["PyTensor"] = lambda *args: of_pytensor(module, *args)
    for name in names:
        density = posteriors.density(name)
        x = point(density.n)
        call, _, gradient = ours(density, x)
        assert call[0](*call[1]) == 0
        calls, wrong, kept = [call], [], []
        for peer, make in makers.items():
            theirs, _, slope, alive = make(name, density, x)
            kept.append(alive)
            calls.append(theirs)
            scale = float(np.abs(gradient).max())
            near = NEAR.get(name, 1e-7)
            if slope is not None and not np.allclose(slope, gradient, near, 1e-8 * scale):
                wrong.append(peer)
        mine, *others = times(calls)
        yield name, mine, dict(zip(makers, others, strict=True)), wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.posteriors", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(posteriors.MODELS))
    modules = {"Stan": "stanli", "PyTensor": "nutpie"}
    there = [peer for peer, name in modules.items() if importlib.util.find_spec(name)]
    parser.add_argument("--peers", nargs="*", choices=modules, default=there)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ratios: dict[str, list[float]] = {}
    differing = []
    for name, mine, others, wrong in measured(options.names, options.peers):
        texts = [f"{peer} {x:8.2f} us, {x / mine:5.2f}" for peer, x in others.items()]
        print(f"{name:26} {mine:8.2f} us  ", "  ".join(texts), *wrong, flush=True)
        differing += [f"{name} ({peer})" for peer in wrong]
        for peer, x in others.items():
            ratios.setdefault(peer, []).append(x / mine)
    for peer, found in ratios.items():
        mean = np.exp(np.mean(np.log(found)))
        print(f"{peer}: {len(found)} densities, mean {mean:.2f}, least {min(found):.2f}")
    print("gradients differ:", *differing or ["none"])
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
