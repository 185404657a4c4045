"""Random numbers from explicit keys: the same key gives the same numbers, always.

A program that was written for JAX draws here what it drew there: keys, splits and bits have JAX's
layout (threefry2x32, its partitionable form). Samples are float64 and int64 unless another dtype
is asked for; those are the numbers that JAX draws with ``jax_enable_x64``, and with
``dtype=np.float32`` those of its default. Distributions that stem from gamma-distributed numbers
(`gamma`, `loggamma`, `beta`, `dirichlet`, `chisquare`, `t`, `f`, `generalized_normal`, `ball`) draw
other numbers than JAX: quantiles of uniform ones, with derivatives in their parameters.
"""

# ruff: noqa: F401
# ruff: noqa: F403

from funcgrad.base.namespaces import page, present
from funcgrad.base.signatures import share
from funcgrad.random.choices import categorical, choice, permutation
from funcgrad.random.compound import *
from funcgrad.random.counts import binomial, multinomial, poisson
from funcgrad.random.distributions import *
from funcgrad.random.keys import *
from funcgrad.random.matrices import multivariate_normal, orthogonal
from funcgrad.random.meanings import MEANINGS
from funcgrad.random.uniform import bits, randint, uniform

__all__ = page(vars())

share(__name__, MEANINGS)
present(__name__)
