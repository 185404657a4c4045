"""Networks: activations, normalisation, attention, initial weights, losses and layers.

Names that `jax.nn` has are JAX's, pooling is flax's, and losses are optax's.

This module is a page of names; the work is in the modules that it names.
"""

# ruff: noqa: F401
# ruff: noqa: F403

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.nn import initializers, layers, losses
from funcgrad.nn.activations import *
from funcgrad.nn.attention import dot_product_attention
from funcgrad.nn.linear import conv, conv_transpose, dense, embed, scaled_matmul
from funcgrad.nn.meanings import MEANINGS
from funcgrad.nn.normalization import *
from funcgrad.nn.norms import batch_norm, group_norm, layer_norm, rms_norm
from funcgrad.nn.pooling import avg_pool, max_pool, min_pool
from funcgrad.nn.regularization import dropout
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.exponentials import logsumexp

__all__ = page(vars(), "initializers", "layers", "losses")

share(__name__, MEANINGS)
present_results(__name__)
