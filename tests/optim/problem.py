"""The problem that all optimisers are recorded on, and the optimisers, by name.

A quadratic form in a matrix and a vector with a quartic term: its gradient is written down here, so
that nothing but the optimiser is compared. Optimisers are given by the name and the arguments of
the function that makes them, which are the same for optax and for funcgrad.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEPS = 50
SHAPES = {"w": (3, 4), "b": (4,)}
Tree = dict[str, np.ndarray]


def start() -> Tree:
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=shape) for name, shape in SHAPES.items()}


def scales() -> Tree:
    rng = np.random.default_rng(1)
    return {name: np.exp(rng.normal(size=shape)) for name, shape in SHAPES.items()}


def value(params: Any) -> Any:
    """``sum(a (p - 1/2)**2 / 2 + (p - 1/2)**4 / 4) + sum(w b) / 10``."""
    total = 0.1 * (params["w"] * params["b"]).sum()
    for name, a in scales().items():
        d = params[name] - 0.5
        total = total + (a * d**2 / 2 + d**4 / 4).sum()
    return total


def gradient(params: Tree) -> Tree:
    centered = {name: params[name] - 0.5 for name in SHAPES}
    own = {name: a * centered[name] + centered[name] ** 3 for name, a in scales().items()}
    return {"w": own["w"] + 0.1 * params["b"], "b": own["b"] + 0.1 * params["w"].sum(0)}


MASK = {"w": True, "b": False}
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("sgd", {"learning_rate": 0.02}),
    "sgd momentum": ("sgd", {"learning_rate": 0.02, "momentum": 0.9}),
    "sgd nesterov": ("sgd", {"learning_rate": 0.02, "momentum": 0.9, "nesterov": True}),
    "sign_sgd": ("sign_sgd", {"learning_rate": 0.01}),
    "rmsprop": ("rmsprop", {"learning_rate": 0.005}),
    "rmsprop outside": (
        "rmsprop",
        {"learning_rate": 0.01, "decay": 0.99, "eps": 1e-3, "eps_in_sqrt": False},
    ),
    "rmsprop centered": (
        "rmsprop",
        {"learning_rate": 0.01, "centered": True, "momentum": 0.9, "initial_scale": 1.0},
    ),
    "rmsprop nesterov": (
        "rmsprop",
        {"learning_rate": 0.01, "momentum": 0.8, "nesterov": True, "bias_correction": True},
    ),
    "rmsprop corrected": (
        "rmsprop",
        {"learning_rate": 0.01, "centered": True, "bias_correction": True, "eps": 1e-2},
    ),
    "adam": ("adam", {"learning_rate": 0.05}),
    "adam eps": (
        "adam",
        {"learning_rate": 0.05, "b1": 0.8, "b2": 0.9, "eps": 0.1, "eps_root": 0.2},
    ),
    "adamw": ("adamw", {"learning_rate": 0.05, "weight_decay": 0.1}),
    "adamw masked": ("adamw", {"learning_rate": 0.05, "weight_decay": 0.1, "mask": MASK}),
    "nadam": ("nadam", {"learning_rate": 0.05}),
    "nadamw": ("nadamw", {"learning_rate": 0.05, "weight_decay": 0.1}),
    "adamax": ("adamax", {"learning_rate": 0.05}),
    "yogi": ("yogi", {"learning_rate": 0.05}),
    "radam": ("radam", {"learning_rate": 0.05}),
    "radam nesterov": ("radam", {"learning_rate": 0.05, "b2": 0.9, "nesterov": True}),
    "adagrad": ("adagrad", {"learning_rate": 0.1}),
    "adadelta": (
        "adadelta",
        {"learning_rate": 1.0, "rho": 0.95, "eps": 1e-4, "weight_decay": 0.01},
    ),
    "lion": ("lion", {"learning_rate": 0.01, "weight_decay": 0.1}),
    "lamb": ("lamb", {"learning_rate": 0.02, "weight_decay": 0.1}),
    "lbfgs": ("lbfgs", {"learning_rate": 0.1, "memory_size": 5, "linesearch": None}),
    "lbfgs unscaled": (
        "lbfgs",
        {"learning_rate": 0.02, "memory_size": 3, "scale_init_precond": False, "linesearch": None},
    ),
}


def precise(schedule: Any) -> Any:
    """A schedule in float64: from an int32 optax computes some of them in float32."""
    return lambda count: schedule(count * np.float64(1.0))


# Chains, from a namespace with optax's names.
CHAINS: dict[str, Any] = {
    "clip": lambda o: o.chain(o.clip(0.3), o.sgd(0.1)),
    "clip_by_global_norm": lambda o: o.chain(o.clip_by_global_norm(1.0), o.sgd(0.1, 0.9)),
    "clip_by_block_rms": lambda o: o.chain(o.clip_by_block_rms(0.2), o.sgd(0.1)),
    "scale_by_schedule": lambda o: o.chain(
        o.scale_by_adam(), o.scale_by_schedule(precise(o.cosine_decay_schedule(-0.1, 40, 0.1)))
    ),
    "schedule": lambda o: o.adam(precise(o.warmup_cosine_decay_schedule(0.0, 0.2, 10, 45, 0.01))),
    "ema": lambda o: o.chain(o.ema(0.9), o.sgd(0.1)),
    "ema biased": lambda o: o.chain(o.ema(0.9, debias=False), o.sgd(0.1)),
    "trust ratio": lambda o: o.chain(
        o.scale_by_trust_ratio(min_norm=0.1, trust_coefficient=0.5, eps=0.1), o.sgd(0.1)
    ),
    "masked": lambda o: o.chain(o.masked(o.scale(0.1), MASK), o.sgd(0.02)),
    "multi_transform": lambda o: o.multi_transform(
        {"a": o.adam(0.05), "s": o.sgd(0.01, 0.5)}, {"w": "a", "b": "s"}
    ),
    "freeze": lambda o: o.multi_transform(
        {"a": o.adam(0.05), "s": o.set_to_zero()}, {"w": "a", "b": "s"}
    ),
    "MultiSteps": lambda o: o.MultiSteps(
        o.adam(0.05), 4, accumulator_dtype=np.float64
    ).gradient_transformation(),
    "MultiSteps sum": lambda o: o.MultiSteps(
        o.sgd(0.02, 0.9), lambda n: 1 + n % 3, use_grad_mean=False, accumulator_dtype=np.float64
    ).gradient_transformation(),
    "apply_if_finite": lambda o: o.apply_if_finite(o.adam(0.05), 3),
    "inject_hyperparams": lambda o: o.inject_hyperparams(o.adamw)(
        learning_rate=precise(o.exponential_decay(0.1, 10, 0.7)), weight_decay=0.05
    ),
    "lbfgs backtracking": lambda o: o.lbfgs(
        memory_size=4,
        linesearch=o.scale_by_backtracking_linesearch(15, increase_factor=2.0, atol=1e-9),
    ),
    "lbfgs zoom": lambda o: o.lbfgs(
        memory_size=4,
        linesearch=o.scale_by_zoom_linesearch(20, tol=1e-9, initial_guess_strategy="one"),
    ),
    "sgd backtracking": lambda o: o.chain(
        o.sgd(1.0),
        o.scale_by_backtracking_linesearch(20, decrease_factor=0.7, max_learning_rate=2.0),
    ),
}

SCHEDULES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "constant": ("constant_schedule", (0.3,)),
    "linear": ("linear_schedule", (1.0, 0.2, 20, 5)),
    "polynomial": ("polynomial_schedule", (1.0, 0.2, 3, 20)),
    "exponential": ("exponential_decay", (1.0, 7, 0.6, 3)),
    "exponential staircase": ("exponential_decay", (1.0, 7, 0.6, 3, True)),
    "exponential bounded": ("exponential_decay", (1.0, 7, 0.6, 0, False, 0.2)),
    "exponential growing": ("exponential_decay", (1.0, 7, 1.6, 0, False, 3.0)),
    "cosine": ("cosine_decay_schedule", (1.0, 30, 0.1, 1.5)),
    "warmup cosine": ("warmup_cosine_decay_schedule", (0.1, 1.0, 8, 30, 0.05)),
    "warmup exponential": (
        "warmup_exponential_decay_schedule",
        (0.1, 1.0, 8, 5, 0.7, 2, True, 0.3),
    ),
    "piecewise constant": ("piecewise_constant_schedule", (1.0, {10: 0.5, 25: 0.1})),
    "piecewise linear": ("piecewise_interpolate_schedule", ("linear", 1.0, {10: 2.0, 30: 0.1})),
    "piecewise cosine": ("piecewise_interpolate_schedule", ("cosine", 1.0, {10: 2.0, 30: 0.1})),
    "linear one-cycle": ("linear_onecycle_schedule", (40, 2.0)),
    "cosine one-cycle": ("cosine_onecycle_schedule", (40, 2.0)),
    "sgdr": (
        "sgdr_schedule",
        (
            [
                {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 3, "decay_steps": 15},
                {"init_value": 0.1, "peak_value": 0.5, "warmup_steps": 5, "decay_steps": 20},
            ],
        ),
    ),
}
COUNTS = range(45)
