"""PyTorch's optimisers, and the arguments with which funcgrad does the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Case(NamedTuple):
    torch: tuple[str, dict[str, Any]]
    ours: Callable[[Any], Any]  # from the module of optimisers


TORCH: dict[str, Case] = {
    "sgd": Case(("SGD", {"lr": 0.02}), lambda o: o.sgd(0.02)),
    "sgd momentum": Case(("SGD", {"lr": 0.02, "momentum": 0.9}), lambda o: o.sgd(0.02, 0.9)),
    "sgd nesterov": Case(
        ("SGD", {"lr": 0.02, "momentum": 0.9, "nesterov": True}), lambda o: o.sgd(0.02, 0.9, True)
    ),
    "sgd decay": Case(
        ("SGD", {"lr": 0.02, "weight_decay": 0.1}),
        lambda o: o.chain(o.add_decayed_weights(0.1), o.sgd(0.02)),
    ),
    "rmsprop": Case(
        ("RMSprop", {"lr": 0.01}),
        lambda o: o.rmsprop(0.01, decay=0.99, eps_in_sqrt=False),
    ),
    "rmsprop momentum": Case(
        ("RMSprop", {"lr": 0.01, "alpha": 0.9, "eps": 1e-3, "momentum": 0.9, "centered": True}),
        lambda o: o.rmsprop(
            0.01, decay=0.9, eps=1e-3, eps_in_sqrt=False, centered=True, momentum=0.9
        ),
    ),
    "adam": Case(("Adam", {"lr": 0.05}), lambda o: o.adam(0.05)),
    "adam decay": Case(
        ("Adam", {"lr": 0.05, "weight_decay": 0.1}),
        lambda o: o.chain(o.add_decayed_weights(0.1), o.adam(0.05)),
    ),
    "adamw": Case(("AdamW", {"lr": 0.05}), lambda o: o.adamw(0.05, weight_decay=1e-2)),
    "adagrad": Case(
        ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.1, "eps": 0.0}),
        lambda o: o.adagrad(0.1, eps=0.0),
    ),
    "adadelta": Case(
        ("Adadelta", {"lr": 1.0, "rho": 0.95, "eps": 1e-4}),
        lambda o: o.adadelta(1.0, rho=0.95, eps=1e-4),
    ),
}
