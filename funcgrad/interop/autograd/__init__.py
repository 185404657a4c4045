"""HIPS autograd's names: programs written for it run after a change of their imports.

``import funcgrad.interop.autograd.numpy as np`` and ``from funcgrad.interop.autograd import grad``
stand for ``import autograd.numpy as np`` and ``from autograd import grad``. Programs that are not
to be changed at all run by ``python -m funcgrad.interop.autograd script.py``, or after `install`.

Containers are differentiated as pytrees, so that ``autograd.builtins`` has little left to do.
``docs/interop.md`` lists the differences.
"""

# With the modules that ``import autograd`` gives, too.
from funcgrad.base.namespaces import present
from funcgrad.interop.autograd import builtins as builtins
from funcgrad.interop.autograd import core as core
from funcgrad.interop.autograd import differential_operators as differential_operators
from funcgrad.interop.autograd import extend as extend
from funcgrad.interop.autograd import misc as misc
from funcgrad.interop.autograd import numpy as numpy
from funcgrad.interop.autograd import scipy as scipy
from funcgrad.interop.autograd import test_util as test_util
from funcgrad.interop.autograd import tracer as tracer
from funcgrad.interop.autograd import util as util
from funcgrad.interop.autograd import wrap_util as wrap_util
from funcgrad.interop.autograd.builtins import dict, isinstance, list, tuple, type
from funcgrad.interop.autograd.differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_jvp_reversemode,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from funcgrad.interop.autograd.extend import primitive
from funcgrad.interop.autograd.installing import complete as _complete
from funcgrad.interop.autograd.installing import install, uninstall

__all__ = [
    "checkpoint", "deriv", "dict", "elementwise_grad", "grad", "grad_and_aux", "grad_named",
    "hessian", "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "install",
    "isinstance", "jacobian", "list", "make_ggnvp", "make_hvp", "make_jvp", "make_jvp_reversemode",
    "make_vjp", "multigrad_dict", "primitive", "tensor_jacobian_product", "tuple", "type",
    "uninstall", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip

present(__name__)
_complete()
