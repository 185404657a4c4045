"""Optimisers as pairs of pure functions ``(init, update)`` that chain, with optax's names.

This module is a page of names; the work is in the modules that it names.
"""

# ruff: noqa: F401
# ruff: noqa: F403

from funcgrad.base.namespaces import page, present
from funcgrad.base.signatures import share
from funcgrad.optim.clipping import *
from funcgrad.optim.line_search import *
from funcgrad.optim.masking import masked, multi_transform
from funcgrad.optim.meanings import MEANINGS
from funcgrad.optim.minimizing import minimize
from funcgrad.optim.optimizers import *
from funcgrad.optim.quasi_newton import lbfgs, scale_by_lbfgs
from funcgrad.optim.scaling import *
from funcgrad.optim.schedules import *
from funcgrad.optim.transformation import *
from funcgrad.optim.wrappers import *

__all__ = page(vars())

share(__name__, MEANINGS)
present(__name__)
