"""autograd's derivatives: ``operator(fun, argnum)`` is a function of the arguments of ``fun``.

They are `funcgrad.vjp` and `funcgrad.jvp` with autograd's conventions: a gradient belongs to any
real result of one element, whatever its shape; tangents and cotangents may be of another floating
type than what they belong to.
"""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import numpy as fnp
from funcgrad.api.arguments import aval_of_argument, leaf_paths, name_of
from funcgrad.api.differentiation import Differential, jvp, vjp
from funcgrad.api.jacobians import jacrev
from funcgrad.base.pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from funcgrad.base.signatures import signature_of
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.interop.autograd.extend import transparent
from funcgrad.interop.autograd.wrap_util import unary_to_nary
from funcgrad.primitives.objects import unwrapped

Function = Callable[..., Any]


def _floating(x: Any, what: str) -> Any:
    """An argument whose derivatives exist: arrays of integers as floats, as autograd takes them."""
    if _kind_of(x) in ("f", "c") or all(_kind_of(leaf) in ("f", "c") for leaf in tree_leaves(x)):
        return x
    x = tree_map(lambda leaf: leaf.astype(float) if _kind_of(leaf) in ("b", "i", "u") else leaf, x)
    for leaf, path in zip(tree_leaves(x), leaf_paths(x, "x"), strict=True):
        aval = aval_of_argument(leaf, path, what)
        if aval.dtype.kind not in "fc":
            raise DtypeError(
                f"{what} can't differentiate w.r.t. `{path}`, {aval}: integers and bools have no "
                "derivative. Pass a float (3.0 instead of 3, or x.astype(float))."
            )
    return x


def _kind_of(x: Any) -> str:
    """The kind of the dtype of an array or a float; empty for everything else."""
    return "f" if type(x) is float else getattr(getattr(x, "dtype", None), "kind", "")


def _ones(tree: Any) -> Any:
    return tree_map(lambda x: np.ones(np.shape(x), aval_of(x).dtype), tree)


def _like(tree: Any, example: Any) -> Any:
    """Tangents or cotangents in the types of what they belong to."""
    return tree_map(_leaf_like, tree, example)


def _leaf_like(leaf: Any, example: Any) -> Any:
    dtype, leaf = aval_of(example).dtype, unwrapped(leaf)
    if isinstance(leaf, Tracer):
        return leaf if leaf.dtype == dtype else leaf.astype(dtype)
    return np.asarray(leaf, dtype)


def _pullback(fun: Function, x: Any, what: str) -> tuple[Function, Any]:
    """The function of the cotangent, in the types of the value, and the value."""
    x = _floating(x, what)
    value, pull = vjp(fun, x)
    return lambda g: pull(g)[0], value


def _free_pullback(fun: Function, x: Any, what: str) -> tuple[Function, Any]:
    """Autograd's pair: as `_pullback`, for cotangents of any floating type."""
    pull, value = _pullback(fun, x, what)
    return lambda g: pull(_like(g, value)), value


def _check_one_real(value: Any, what: str) -> None:
    if type(value) is float or (_kind_of(value) == "f" and value.size == 1):
        return
    leaves, _ = tree_flatten(value)
    avals = [aval_of_argument(x, "value", what) for x in leaves]
    if sum(a.size for a in avals) != 1:
        shown = ", ".join(map(str, avals)) or repr(value)
        raise ShapeError(
            f"{what} only applies to real scalar-output functions, but it returned {shown}. Try "
            "jacobian, elementwise_grad or holomorphic_grad."
        )
    if avals[0].dtype.kind != "f":
        raise DtypeError(
            f"{what} only applies to real scalar-output functions, but it returned {avals[0]}. Try "
            "jacobian, elementwise_grad or holomorphic_grad."
        )


def _value_and_gradient(fun: Function, x: Any, what: str) -> tuple[Any, Any]:
    """The value, a real number in any shape, and the gradient."""
    x = _floating(x, what)
    tree = shape = None

    def number(x: Any) -> Any:
        nonlocal tree, shape
        out = fun(x)
        _check_one_real(out, what)
        if type(out) is float or getattr(out, "shape", None) == ():
            return out
        ((leaf,), tree) = tree_flatten(out)
        shape = np.shape(leaf)
        return fnp.reshape(leaf, ())

    value, _, gradient = Differential(number, what).at((x,), {})
    if tree is not None:
        value = tree_unflatten(tree, [fnp.reshape(value, shape)])
    return value, gradient


@unary_to_nary
def make_vjp(fun: Function, x: Any) -> tuple[Function, Any]:
    """The function that pulls cotangents back, and the value: ``make_vjp(fun)(x) -> (vjp, ans)``.

    Example:
        >>> vjp, ans = fg.interop.autograd.make_vjp(np.sin)(0.0)
        >>> float(vjp(2.0)), float(ans)
        (2.0, 0.0)
    """
    return _free_pullback(fun, x, f"make_vjp({name_of(fun)})")


@unary_to_nary
def make_jvp(fun: Function, x: Any) -> Function:
    """The function that pushes tangents forward: ``make_jvp(fun)(x)(v) -> (ans, tangent)``.

    Example:
        >>> ans, tangent = fg.interop.autograd.make_jvp(np.sin)(0.0)(2.0)
        >>> float(ans), float(tangent)
        (0.0, 2.0)
    """
    x = _floating(x, f"make_jvp({name_of(fun)})")
    return lambda v: jvp(fun, (x,), (_like(v, x),))


@unary_to_nary
def make_jvp_reversemode(fun: Function, x: Any) -> Function:
    """The function from a tangent of ``x`` to that of the result, without the value.

    Example: float(fg.interop.autograd.make_jvp_reversemode(np.sin)(0.0)(2.0)) -> 2.0
    """
    x = _floating(x, f"make_jvp_reversemode({name_of(fun)})")
    return lambda v: jvp(fun, (x,), (_like(v, x),))[1]


@unary_to_nary
def grad(fun: Function, x: Any) -> Any:
    """The gradient of a function with a real result of one element.

    ``grad(fun, argnum)`` is a function of the same arguments, whose result has the structure of
    the argument, or is a tuple with one for each of several positions.

    Example: fg.interop.autograd.grad(lambda x: np.sum(x ** 2))(np.array([1.0, 2.0]))
        -> array([2., 4.])
    """
    return _value_and_gradient(fun, x, f"grad({name_of(fun)})")[1]


@unary_to_nary
def value_and_grad(fun: Function, x: Any) -> tuple[Any, Any]:
    """The value and the gradient, such as `scipy.optimize.minimize` takes with ``jac=True``.

    Example:
        >>> value, slope = fg.interop.autograd.value_and_grad(lambda x: x ** 3)(2.0)
        >>> float(value), float(slope)
        (8.0, 12.0)
    """
    return _value_and_gradient(fun, x, f"value_and_grad({name_of(fun)})")


@unary_to_nary
def grad_and_aux(fun: Function, x: Any) -> tuple[Any, Any]:
    """The gradient of the first of two results, and the second.

    Example:
        >>> slope, extra = fg.interop.autograd.grad_and_aux(lambda x: (x ** 2, 5 * x))(3.0)
        >>> float(slope), float(extra)
        (6.0, 15.0)
    """
    what = f"grad_and_aux({name_of(fun)})"
    x = _floating(x, what)
    value, pull, extra = vjp(lambda y: tuple(fun(y)), x, has_aux=True)
    _check_one_real(value, what)
    return pull(_ones(value))[0], extra


@unary_to_nary
def elementwise_grad(fun: Function, x: Any) -> Any:
    """The sum of each column of the Jacobian; its diagonal where the function is elementwise.

    Example: fg.interop.autograd.elementwise_grad(np.square)(np.array([1.0, 2.0]))
        -> array([2., 4.])
    """
    what = f"elementwise_grad({name_of(fun)})"
    pull, value = _pullback(fun, x, what)
    for leaf in tree_leaves(value):
        aval = aval_of_argument(leaf, "value", what)
        if aval.dtype.kind != "f":
            raise DtypeError(
                f"{what} only applies to real-output functions, but it returned {aval}."
            )
    return pull(_ones(value))


@unary_to_nary
def deriv(fun: Function, x: Any) -> Any:
    """The derivative in forward mode, in the direction of ones.

    Example: float(fg.interop.autograd.deriv(np.sin)(0.0)) -> 1.0
    """
    x = _floating(x, f"deriv({name_of(fun)})")
    return jvp(fun, (x,), (_ones(x),))[1]


@unary_to_nary
def jacobian(fun: Function, x: Any) -> Any:
    """The Jacobian, of the shape of the result followed by that of the argument.

    Example: fg.interop.autograd.jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
        -> array([[2., 0.],
                  [0., 4.]])
    """
    x = _floating(x, f"jacobian({name_of(fun)})")
    return jacrev(fun)(x)


@unary_to_nary
def hessian(fun: Function, x: Any) -> Any:
    """The Jacobian of the Jacobian.

    Example: fg.interop.autograd.hessian(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]))
        -> array([[ 6.,  0.],
                  [ 0., 12.]])
    """
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def holomorphic_grad(fun: Function, x: Any) -> Any:
    """The derivative of a holomorphic function.

    Example: complex(fg.interop.autograd.holomorphic_grad(lambda z: z ** 2)(1 + 2j)) -> (2+4j)
    """
    if any(aval_of(leaf).dtype.kind != "c" for leaf in tree_leaves(x)):
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=3)
    return grad(lambda z: np.real(fun(z)))(x)


def grad_named(fun: Function, argname: str) -> Function:
    """The gradient with respect to the argument of a name.

    Args:
        fun: The function.
        argname: One of its positional parameters.
    Returns: A function of the same arguments, that one given by position.
    Example: float(fg.interop.autograd.grad_named(lambda a, b: a * b, "b")(3.0, 2.0)) -> 3.0
    """
    names = list(signature_of(fun).parameters)
    if argname not in names:
        raise ArgumentError(
            f"grad_named({name_of(fun)}): there is no argument {argname!r} among "
            f"{', '.join(names)}."
        )
    return grad(fun, names.index(argname))


@unary_to_nary
def make_hvp(fun: Function, x: Any) -> tuple[Function, Any]:
    """Products with the Hessian at a point: ``make_hvp(fun)(x) -> (hvp, gradient)``.

    Example:
        >>> hvp, slope = fg.interop.autograd.make_hvp(lambda x: x ** 3)(2.0)
        >>> float(hvp(1.0)), float(slope)
        (12.0, 12.0)
    """
    return _free_pullback(grad(fun), x, f"make_hvp({name_of(fun)})")


def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
    """A function ``(*args, tensor)``: the product of the Hessian with a tensor like the argument.

    Args:
        fun: The function, with a scalar result.
        argnum: Position of the argument.
    Returns: A function whose result has the structure of the argument.

    Example:
        >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 1.0])
        >>> fg.interop.autograd.hessian_tensor_product(lambda x: np.sum(x ** 3))(x, v)
        array([ 6., 12.])
    """
    gradient = grad(fun, argnum)

    def product(*args_and_tensor: Any, **kwargs: Any) -> Any:
        *args, tensor = args_and_tensor
        return make_jvp_reversemode(gradient, argnum)(*args, **kwargs)(tensor)

    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """A function ``(*args, tensor)``: the tensor, contracted with the axes of the result.

    Args:
        fun: The function.
        argnum: Position of the argument.
    Returns: A function: the Jacobian of ``tensordot(tensor, fun(*args), tensor.ndim)``.

    Example:
        >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 1.0])
        >>> fg.interop.autograd.tensor_jacobian_product(lambda x: x ** 2)(x, v)
        array([2., 4.])
    """

    def contracted(*args_and_tensor: Any, **kwargs: Any) -> Any:
        *args, tensor = args_and_tensor
        return np.tensordot(tensor, fun(*args, **kwargs), np.ndim(tensor))

    return jacobian(contracted, argnum)


vector_jacobian_product = tensor_jacobian_product


def _half_square(x: Any) -> Any:
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(f: Function, g: Function = _half_square, f_argnum: int = 0) -> Function:
    """Products with the generalized Gauss-Newton matrix of ``g(f(x))``.

    Args:
        f: The inner function.
        g: The outer function, with a scalar result; by default half the squared norm.
        f_argnum: Position of the argument of ``f``.
    Returns: ``make_ggnvp(f)(x)``: a function ``v -> J' H J v`` with the Jacobian of ``f`` at the
        point, and the Hessian of ``g`` at its value.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.autograd import make_ggnvp
        >>> make_ggnvp(lambda x: 3.0 * x)(np.array([1.0, 2.0]))(np.array([1.0, 0.0]))
        array([9., 0.])
    """

    @unary_to_nary
    def at_point(f: Function, x: Any) -> Function:
        pull, value = _free_pullback(f, x, f"make_ggnvp({name_of(f)})")
        push = make_jvp_reversemode(f)(x)
        curvature, _ = make_hvp(g)(value)
        return lambda v: pull(curvature(push(v)))

    return at_point(f, f_argnum)


def multigrad_dict(fun: Function) -> Function:
    """The gradients with respect to all arguments, by their names.

    Args: fun: The function, with a scalar result.
    Returns: A function of the same arguments, that returns an `OrderedDict` from parameters to
        gradients; that of ``*args`` is a tuple, that of ``**kwargs`` a dict.

    Example:
        >>> slopes = fg.interop.autograd.multigrad_dict(lambda a, b=2.0: a * b)(3.0)
        >>> {name: float(slope) for name, slope in slopes.items()}
        {'a': 2.0, 'b': 3.0}
    """
    signature = signature_of(fun)

    def gradients(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(arguments: dict[str, Any]) -> Any:
            again = inspect.BoundArguments(signature, OrderedDict(arguments))
            return fun(*again.args, **again.kwargs)

        found = grad(of_dict)(dict(bound.arguments))
        return OrderedDict((name, found[name]) for name in bound.arguments)

    return gradients


def checkpoint(fun: Function) -> Function:
    """The same function, which keeps nothing for the backward pass but its arguments.

    It runs a second time there. As in autograd it sees concrete values, and may branch on them;
    `funcgrad.checkpoint` has policies and budgets, and compiles.

    Args: fun: The function.
    Returns: A function of the same arguments.
    Example: float(fg.interop.autograd.grad(fg.interop.autograd.checkpoint(np.sin))(0.0)) -> 1.0
    """
    return transparent(fun)
