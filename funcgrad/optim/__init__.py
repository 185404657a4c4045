"""Optimisers as pairs of pure functions ``(init, update)`` that chain, with optax's names.

This module is a page of names; the work is in the modules that it names.
"""
# ruff: noqa: F403, F405

from funcgrad.base.namespaces import present
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

__all__ = [
    "EmptyState", "GradientTransformation", "GradientTransformationExtraArgs", "MultiSteps",
    "adadelta", "adagrad", "adam", "adamax", "adamw", "add_decayed_weights", "apply_if_finite",
    "apply_updates", "chain", "clip", "clip_by_block_rms", "clip_by_global_norm",
    "constant_schedule", "cosine_decay_schedule", "cosine_onecycle_schedule", "ema",
    "exponential_decay", "global_norm", "identity", "incremental_update", "inject_hyperparams",
    "join_schedules", "lamb", "lbfgs", "linear_onecycle_schedule", "linear_schedule", "lion",
    "masked", "minimize", "multi_transform", "nadam", "nadamw", "params_ema",
    "piecewise_constant_schedule", "piecewise_interpolate_schedule", "polynomial_schedule", "radam",
    "rmsprop", "scale", "scale_by_adadelta", "scale_by_adam", "scale_by_adamax",
    "scale_by_backtracking_linesearch", "scale_by_lbfgs", "scale_by_learning_rate", "scale_by_lion",
    "scale_by_radam", "scale_by_rms", "scale_by_rss", "scale_by_schedule", "scale_by_sign",
    "scale_by_stddev", "scale_by_trust_ratio", "scale_by_yogi", "scale_by_zoom_linesearch",
    "set_to_zero", "sgd", "sgdr_schedule", "sign_sgd", "stateless", "trace",
    "value_and_grad_from_state", "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule", "with_extra_args_support", "yogi", "zero_nans",
]  # fmt: skip

share(__name__, MEANINGS)
present(__name__)
