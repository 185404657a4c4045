"""Operations with JAX's names of `jax.lax`: strict about dtypes and shapes, promote nothing.

This module is a page of names; the work is in the modules that it names.
"""

# ruff: noqa: F401
# ruff: noqa: F403

from typing import TYPE_CHECKING

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.lax.branches import cond, switch
from funcgrad.lax.collectives import *
from funcgrad.lax.contraction import *
from funcgrad.lax.convolution import *
from funcgrad.lax.elementwise import *
from funcgrad.lax.fourier import FftType, fft
from funcgrad.lax.gamma_derivatives import igamma_grad_a, random_gamma_grad
from funcgrad.lax.gathering import *
from funcgrad.lax.implicit import custom_linear_solve, custom_root
from funcgrad.lax.loops import fori_loop, map, scan, while_loop
from funcgrad.lax.meanings import MEANINGS
from funcgrad.lax.operands import of_any_elements as _of_any_elements
from funcgrad.lax.platform import *
from funcgrad.lax.precision import *
from funcgrad.lax.prefix import associative_scan
from funcgrad.lax.ragged import *
from funcgrad.lax.random_bits import RandomAlgorithm, rng_bit_generator
from funcgrad.lax.reductions import *
from funcgrad.lax.shape_tuples import *
from funcgrad.lax.shapes import *
from funcgrad.lax.slicing import *
from funcgrad.lax.special import *
from funcgrad.lax.windows import padtype_to_pads, reduce_window

if TYPE_CHECKING:  # it is loaded on first use
    from funcgrad.lax import linalg

_MOVING = (
    "broadcast", "broadcast_in_dim", "collapse", "concatenate", "dynamic_index_in_dim",
    "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "eq", "expand_dims", "full", "full_like", "gather",
    "index_in_dim", "index_take", "ne", "reshape", "rev", "select", "select_n", "slice",
    "slice_in_dim", "split", "squeeze", "stack", "tile", "transpose", "unstack",
)  # fmt: skip
for _name in _MOVING:
    vars()[_name] = _of_any_elements(vars()[_name])

__all__ = page(vars(), "linalg")

share(__name__, MEANINGS)
