"""Operations with JAX's names of `jax.lax`: strict about dtypes and shapes, promote nothing.

This module is a page of names; the work is in the modules that it names.
"""
# ruff: noqa: F403, F405

from typing import TYPE_CHECKING

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

__all__ = [
    "AccuracyMode", "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers",
    "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "FftType",
    "GatherDimensionNumbers", "GatherScatterMode", "Precision", "PrecisionLike",
    "RaggedDotDimensionNumbers", "RandomAlgorithm", "RoundingMethod", "ScatterDimensionNumbers",
    "Tolerance", "abs", "acos", "acosh", "add", "after_all", "all_gather", "all_to_all",
    "approx_max_k", "approx_min_k", "argmax", "argmin", "asin", "asinh", "associative_scan",
    "atan", "atan2", "atanh", "axis_index", "axis_size", "batch_matmul", "bessel_i0e",
    "bessel_i1e", "betainc", "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "broadcasted_iota", "cbrt", "ceil", "clamp", "clz", "collapse",
    "complex", "composite", "concatenate", "cond", "conj", "conv", "conv_dimension_numbers",
    "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_patches",
    "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
    "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding",
    "convert_element_type", "cos", "cosh", "create_token", "cumlogsumexp", "cummax", "cummin",
    "cumprod", "cumsum", "custom_linear_solve", "custom_root", "dce_sink", "digamma", "div",
    "dot", "dot_general", "dtype", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "empty", "eq", "erf", "erf_inv", "erfc", "exp", "exp2",
    "expand_dims", "expm1", "fft", "floor", "fori_loop", "full", "full_like", "gather", "ge",
    "gt", "igamma", "igamma_grad_a", "igammac", "imag", "index_in_dim", "index_take",
    "integer_pow", "iota", "is_finite", "le", "lgamma", "linalg", "log", "log1p", "logistic",
    "lt", "map", "max", "min", "mul", "mulhi", "ne", "neg", "nextafter", "optimization_barrier",
    "pad", "padtype_to_pads", "pbroadcast", "pcast", "platform_dependent", "pmax", "pmean",
    "pmin", "polygamma", "population_count", "pow", "ppermute", "pshuffle", "psum",
    "psum_scatter", "pswapaxes", "pvary", "ragged_dot", "ragged_dot_general",
    "random_gamma_grad", "real", "reciprocal", "reduce", "reduce_and", "reduce_max",
    "reduce_min", "reduce_or", "reduce_precision", "reduce_prod", "reduce_sum", "reduce_window",
    "reduce_window_shape_tuple", "reduce_xor", "rem", "reshape", "rev", "rng_bit_generator",
    "rng_uniform", "round", "rsqrt", "scaled_dot", "scan", "scatter", "scatter_add",
    "scatter_apply", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub", "select",
    "select_n", "shape_as_value", "shift_left", "shift_right_arithmetic", "shift_right_logical",
    "sign", "sin", "sinh", "slice", "slice_in_dim", "sort", "sort_key_val", "split", "sqrt",
    "square", "squeeze", "stack", "stage", "stop_gradient", "sub", "switch", "tan", "tanh",
    "tile", "top_k", "transpose", "unstack", "while_loop", "with_sharding_constraint", "zeta",
]  # fmt: skip

share(__name__, MEANINGS)
