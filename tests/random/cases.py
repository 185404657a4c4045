"""Draws whose values were recorded from JAX, as functions of the `random` module that draws.

Every case is ``(name, draw)`` with ``draw(random, key)``; the same functions ran on `jax.random`
when `recorded.py` was written, and run on `funcgrad.random` in the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SEEDS = {"zero": 0, "forty_two": 42, "large": 2**33 + 5, "negative": -7}

f32, f64 = np.float32, np.float64
LOGITS = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]))
WEIGHTS = np.array([0.1, 0.4, 0.2, 0.25, 0.05])
MEAN, COVARIANCE = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
LETTERS = np.arange(12).reshape(4, 3)

Draw = Callable[[Any, Any], Any]

EXACT: dict[str, Draw] = {
    "key": lambda r, k: k,
    "split": lambda r, k: r.split(k),
    "split_3": lambda r, k: r.split(k, 3),
    "split_5": lambda r, k: r.split(k, 5),
    "split_shape": lambda r, k: r.split(k, (2, 2)),
    "split_none": lambda r, k: r.split(k, ()),
    "fold_in": lambda r, k: r.fold_in(k, 7),
    "fold_in_large": lambda r, k: r.fold_in(k, 2**32 - 1),
    "bits_default": lambda r, k: r.bits(k, (3,)),
    "bits_u8": lambda r, k: r.bits(k, (5,), np.uint8),
    "bits_u16": lambda r, k: r.bits(k, (4,), np.uint16),
    "bits_u32": lambda r, k: r.bits(k, (2, 3), np.uint32),
    "bits_u64": lambda r, k: r.bits(k, (3,), np.uint64),
    "bits_scalar": lambda r, k: r.bits(k, (), np.uint32),
    "bits_empty": lambda r, k: r.bits(k, (0, 2), np.uint32),
    "uniform_f32": lambda r, k: r.uniform(k, (7,), f32),
    "uniform_f64": lambda r, k: r.uniform(k, (2, 3), f64),
    "uniform_default": lambda r, k: r.uniform(k, (3,)),
    "uniform_scalar": lambda r, k: r.uniform(k, (), f32),
    "uniform_twice": lambda r, k: r.uniform(k, (4,), f32, minval=-1.0, maxval=1.0),
    "randint": lambda r, k: r.randint(k, (5,), 0, 10),
    "randint_i32": lambda r, k: r.randint(k, (5,), -3, 1000, np.int32),
    "randint_u8": lambda r, k: r.randint(k, (5,), 0, 256, np.uint8),
    "randint_i8": lambda r, k: r.randint(k, (5,), -200, 100, np.int8),
    "randint_i16": lambda r, k: r.randint(k, (5,), -5, 5, np.int16),
    "randint_u32": lambda r, k: r.randint(k, (5,), 5, 2**32, np.uint32),
    "randint_all_u32": lambda r, k: r.randint(k, (3,), 0, 2**32, np.uint32),
    "randint_all_i32": lambda r, k: r.randint(k, (3,), -(2**31), 2**31, np.int32),
    "randint_empty_range": lambda r, k: r.randint(k, (2,), 5, 5),
    "randint_arrays": lambda r, k: r.randint(k, (2, 2), np.array([0, 10]), np.array([5, 1000])),
    "randint_wide": lambda r, k: r.randint(k, (3,), -(2**62), 2**62),
    "bernoulli_f32": lambda r, k: r.bernoulli(k, f32(0.3), (8,)),
    "bernoulli_f64": lambda r, k: r.bernoulli(k, 0.3, (8,)),
    "bernoulli_array": lambda r, k: r.bernoulli(k, np.array([0.0, 0.5, 1.0])),
    "bernoulli_high": lambda r, k: r.bernoulli(k, f32(0.3), (5,), mode="high"),
    "rademacher": lambda r, k: r.rademacher(k, (6,)),
    "rademacher_f32": lambda r, k: r.rademacher(k, (6,), f32),
    "categorical": lambda r, k: r.categorical(k, LOGITS),
    "categorical_axis": lambda r, k: r.categorical(k, LOGITS, axis=0),
    "categorical_f32": lambda r, k: r.categorical(k, LOGITS.astype(f32)),
    "categorical_shape": lambda r, k: r.categorical(k, LOGITS, shape=(4, 2)),
    # JAX's indices are int32 here.
    "categorical_once": lambda r, k: r.categorical(k, LOGITS, shape=(2, 2), replace=False).astype(
        np.int64
    ),
    "permutation": lambda r, k: r.permutation(k, 9),
    "permutation_long": lambda r, k: r.permutation(k, 3000)[:8],
    "permutation_array": lambda r, k: r.permutation(k, np.array([2.5, 1.5, 0.5, -1.0])),
    "permutation_rows": lambda r, k: r.permutation(k, LETTERS),
    "permutation_axis": lambda r, k: r.permutation(k, LETTERS, axis=1),
    "permutation_independent": lambda r, k: r.permutation(k, LETTERS, axis=1, independent=True),
    "choice": lambda r, k: r.choice(k, 10, (4,)),
    "choice_array": lambda r, k: r.choice(k, LETTERS, (3,), axis=1),
    "choice_once": lambda r, k: r.choice(k, 10, (2, 2), replace=False),
    "choice_once_array": lambda r, k: r.choice(k, LETTERS, (2,), replace=False),
    "choice_p": lambda r, k: r.choice(k, 5, (6,), p=WEIGHTS),
    "choice_p_f32": lambda r, k: r.choice(k, 5, (6,), p=WEIGHTS.astype(f32)),
    "choice_p_once": lambda r, k: r.choice(k, 5, (3,), replace=False, p=WEIGHTS),
    "choice_p_array": lambda r, k: r.choice(k, WEIGHTS, (), p=WEIGHTS),
    "geometric": lambda r, k: r.geometric(k, 0.3, (6,)),
    "poisson": lambda r, k: r.poisson(k, np.array([0.0, 0.5, 3.0, 9.5]), (4, 4)),
    "poisson_large": lambda r, k: r.poisson(k, np.array([12.0, 30.0]), (4, 2)),
    "poisson_i32": lambda r, k: r.poisson(k, 4.0, (5,), np.int32),
    "binomial": lambda r, k: r.binomial(
        k, np.array([5.0, 20.0, 1000.0, 1e6]), np.array([0.3, 0.7, 0.4, 0.9]), (4, 4)
    ),
    "binomial_f32": lambda r, k: r.binomial(k, 20, f32(0.3), (6,), f32),
    "multinomial": lambda r, k: r.multinomial(
        k, np.array([10.0, 1000.0]), np.array([[0.2, 0.3, 0.5], [0.1, 0.9, 0.0]])
    ),
}
"""Draws that must agree in every bit."""

CLOSE: dict[str, Draw] = {
    "uniform_range_f32": lambda r, k: r.uniform(k, (5,), f32, minval=-0.3, maxval=2.7),
    "uniform_range_f64": lambda r, k: r.uniform(k, (5,), f64, minval=-0.3, maxval=2.7),
    "normal_f32": lambda r, k: r.normal(k, (7,), f32),
    "normal_f64": lambda r, k: r.normal(k, (2, 3), f64),
    "normal_default": lambda r, k: r.normal(k),
    "normal_c64": lambda r, k: r.normal(k, (3,), np.complex64),
    "normal_c128": lambda r, k: r.normal(k, (3,), np.complex128),
    "truncated_normal_f32": lambda r, k: r.truncated_normal(k, -2.0, 2.0, (5,), f32),
    "truncated_normal_f64": lambda r, k: r.truncated_normal(k, -1.0, 3.0, (5,), f64),
    "truncated_normal_arrays": lambda r, k: r.truncated_normal(
        k, np.array([-1.0, 0.0]), np.array([0.5, 3.0])
    ),
    "exponential_f32": lambda r, k: r.exponential(k, (5,), f32),
    "exponential_f64": lambda r, k: r.exponential(k, (5,), f64),
    "gumbel_f32": lambda r, k: r.gumbel(k, (5,), f32),
    "gumbel_f64": lambda r, k: r.gumbel(k, (5,), f64),
    "gumbel_high": lambda r, k: r.gumbel(k, (5,), f32, mode="high"),
    "laplace_f32": lambda r, k: r.laplace(k, (5,), f32),
    "laplace_f64": lambda r, k: r.laplace(k, (5,), f64),
    "logistic_f32": lambda r, k: r.logistic(k, (5,), f32),
    "logistic_f64": lambda r, k: r.logistic(k, (5,), f64),
    "cauchy_f32": lambda r, k: r.cauchy(k, (5,), f32),
    "cauchy_f64": lambda r, k: r.cauchy(k, (5,), f64),
    "pareto": lambda r, k: r.pareto(k, np.array([1.5, 3.0]), (2,)),
    "rayleigh": lambda r, k: r.rayleigh(k, np.array(2.0), (4,)),
    "weibull_min": lambda r, k: r.weibull_min(k, 2.0, 1.5, (4,)),
    "maxwell": lambda r, k: r.maxwell(k, (4,)),
    "gamma": lambda r, k: r.gamma(k, np.array([2.5, 0.3, 1.0, 40.0]), (6, 4)),
    "gamma_f32": lambda r, k: r.gamma(k, np.array([2.5, 0.3], f32), (6, 2), f32),
    "gamma_scalar": lambda r, k: r.gamma(k, 1.5),
    "loggamma": lambda r, k: r.loggamma(k, np.array([2.5, 0.02]), (6, 2)),
    "beta": lambda r, k: r.beta(k, 0.5, 2.0, (5,)),
    "dirichlet": lambda r, k: r.dirichlet(k, np.array([0.5, 2.0, 3.0]), (4,)),
    "chisquare": lambda r, k: r.chisquare(k, 3.0, (5,)),
    "t": lambda r, k: r.t(k, 2.5, (5,)),
    "f": lambda r, k: r.f(k, 3.0, 8.0, (5,)),
    "generalized_normal": lambda r, k: r.generalized_normal(k, 1.5, (5,)),
    "ball": lambda r, k: r.ball(k, 3, 2, (4,)),
    "lognormal": lambda r, k: r.lognormal(k, 0.7, (5,)),
    "double_sided_maxwell": lambda r, k: r.double_sided_maxwell(k, 0.5, 2.0, (5,)),
    "triangular": lambda r, k: r.triangular(k, -1.0, 0.5, 2.0, (5,)),
    "wald": lambda r, k: r.wald(k, np.array(1.7), (5,)),
    "multivariate_normal": lambda r, k: r.multivariate_normal(k, MEAN, COVARIANCE, (4,)),
    "orthogonal": lambda r, k: r.orthogonal(k, 3, (2,)),
    "orthogonal_wide": lambda r, k: r.orthogonal(k, 2, (), f32, 4),
}
"""Draws that go through elementary functions, which round differently in the last places."""
