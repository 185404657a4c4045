"""funcgrad: composable transformations of pure functions of NumPy arrays.

`grad`, `vmap`, `jit` and their relatives transform functions written with plain NumPy, SciPy's
ufuncs or `funcgrad.numpy`. Arrays are `numpy.ndarray`; `jit` compiles kernels by LLVM or by Numba.
This module is a page of names; the work is in the modules that it names.
"""

from typing import TYPE_CHECKING

from funcgrad import checkpoint_policies, dtypes, errors, lax, numpy, tree, tree_util
from funcgrad.api.arrays import (
    Array,
    block_until_ready,
    device_get,
    device_put,
    effects_barrier,
    named_call,
    named_scope,
    typeof,
)
from funcgrad.api.checkpointing import (
    checkpoint,
    checkpoint_name,
    checkpoint_sequential,
    print_saved_residuals,
    remat,
    saved_residuals,
)
from funcgrad.api.compilation import clear_caches, jit
from funcgrad.api.configuration import print_environment_info, show_config
from funcgrad.api.custom import (
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    custom_vmap,
)
from funcgrad.api.debugging import (
    checking_leaks,
    debug_infs,
    debug_nans,
    debug_python_loops,
    io_callback,
    pure_callback,
)
from funcgrad.api.devices import (
    default_backend,
    default_device,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from funcgrad.api.differentiation import (
    grad,
    jvp,
    linear_transpose,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
)
from funcgrad.api.jacobians import hessian, jacfwd, jacrev
from funcgrad.api.limits import limits
from funcgrad.api.precision import numpy_dtype_promotion, numpy_rank_promotion
from funcgrad.api.rule_results import SymbolicZero
from funcgrad.api.settings import config, default_matmul_precision, enable_x64, log_compiles
from funcgrad.api.staging import (
    ClosedJaxpr,
    ShapeDtypeStruct,
    ensure_compile_time_eval,
    eval_shape,
    make_jaxpr,
)
from funcgrad.api.two_passes import fwd_and_bwd
from funcgrad.api.vectorization import vmap
from funcgrad.base.namespaces import present
from funcgrad.base.placement import Device
from funcgrad.dtypes import float0
from funcgrad.higher_order.jit import disable_jit
from funcgrad.higher_order.reroll import reroll_loops

if TYPE_CHECKING:  # they are loaded on first use
    from funcgrad import (
        ad,
        ad_checkpoint,
        checkify,
        custom_batching,
        custom_derivatives,
        data,
        debug,
        diagnostics,
        distributed,
        experimental,
        extend,
        flatten_util,
        image,
        interop,
        linting,
        nn,
        ops,
        optim,
        profiling,
        random,
        ref,
        scipy,
        sharding,
        sparsity,
        stages,
        test_util,
        testing,
        typing,
    )
    from funcgrad.api.autograph import autograph
    from funcgrad.interop.c import cfunc, export
    from funcgrad.linting import check_derivatives, lint
    from funcgrad.profiling import profile
    from funcgrad.ref import Ref, empty_ref, free_ref, freeze, new_ref
    from funcgrad.sharding import NamedSharding, P, make_mesh, set_mesh, shard_map, smap

check_tracer_leaks = checking_leaks
jacobian = jacrev
__version__ = "0.2.0"

__all__ = [
    "Array", "ClosedJaxpr", "Device", "NamedSharding", "P", "Ref", "ShapeDtypeStruct",
    "SymbolicZero", "ad", "ad_checkpoint", "autograph", "block_until_ready", "cfunc",
    "check_derivatives", "check_tracer_leaks", "checkify", "checking_leaks", "checkpoint",
    "checkpoint_name", "checkpoint_policies", "checkpoint_sequential", "clear_caches",
    "closure_convert", "config", "custom_batching", "custom_derivatives", "custom_gradient",
    "custom_jvp", "custom_vjp", "custom_vmap", "data", "debug", "debug_infs", "debug_nans",
    "debug_python_loops", "default_backend", "default_device", "default_matmul_precision",
    "device_count", "device_get", "device_put", "devices", "diagnostics", "disable_jit",
    "distributed", "dtypes", "effects_barrier", "empty_ref", "enable_x64",
    "ensure_compile_time_eval", "errors", "eval_shape", "experimental", "export", "extend",
    "flatten_util", "float0", "free_ref", "freeze", "fwd_and_bwd", "grad", "hessian", "image",
    "interop", "io_callback", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "lax", "limits",
    "linear_transpose", "linearize", "lint", "linting", "local_device_count", "local_devices",
    "log_compiles", "make_jaxpr", "make_mesh", "named_call", "named_scope", "new_ref", "nn",
    "numpy", "numpy_dtype_promotion", "numpy_rank_promotion", "ops", "optim",
    "print_environment_info", "print_saved_residuals", "process_count", "process_index",
    "process_indices", "profile", "profiling", "pure_callback", "random", "ref", "remat",
    "reroll_loops", "saved_residuals", "scipy", "set_mesh", "shard_map", "sharding",
    "show_config", "smap", "sparsity", "stages", "stop_gradient", "test_util", "testing", "tree",
    "tree_util", "typeof", "typing", "value_and_grad", "vjp", "vmap",
]  # fmt: skip

present(__name__)
