"""L-BFGS: directions of Newton's method from the last few changes of the gradient.

The inverse Hessian is approximated from pairs of a change ``s`` of the parameters and the change
``y`` of the gradient that it made (Liu and Nocedal, 1989). With ``rho = 1 / <s, y>``, the product
with a gradient ``q`` takes two loops over the pairs:

    from the last pair to the first:   a = rho <s, q>,   q <- q - a y
    q <- gamma q
    from the first pair to the last:   b = rho <y, q>,   q <- q + (a - b) s

where ``gamma = <s, y> / <y, y>`` of the last pair. The pairs are the rows of arrays that are filled
in turn; both loops are `scan`s. Names and arguments are optax's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import tree_leaves, tree_map
from funcgrad.dtypes import FLOAT64, real_dtype
from funcgrad.errors import ArgumentError
from funcgrad.lax import dynamic_index_in_dim, dynamic_update_index_in_dim, scan
from funcgrad.numpy.promotion import to_dtype
from funcgrad.optim.line_search import scale_by_zoom_linesearch
from funcgrad.optim.scaling import scale, scale_by_learning_rate
from funcgrad.optim.transformation import (
    Array,
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    ScalarOrSchedule,
    State,
    Step,
    Updates,
    chain,
    dtype_of,
    first_count,
    identity,
    inner,
    like,
    needed,
    next_count,
    zeros_like,
)


class ScaleByLBFGSState(NamedTuple):
    """The last parameters and gradient, and the pairs, each a row of every array."""

    count: Array
    params: Params
    updates: Updates
    diff_params_memory: Any
    diff_updates_memory: Any
    weights_memory: Array


def scale_by_lbfgs(
    memory_size: int = 10, scale_init_precond: bool = True
) -> GradientTransformation:
    """Gradients multiplied by an approximation of the inverse Hessian.

    Args: scale_init_precond: Whether the approximation starts at a multiple of the identity: in the
            first step, the one that makes the norm of the update at most 1. Otherwise it starts at
            the identity.
    Raises: ArgumentError: If nothing could be remembered.

    Example:
        >>> o, p = fg.optim.scale_by_lbfgs(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 0.4472136 , -0.89442719])
    """
    if memory_size < 1:
        raise ArgumentError(
            f"optim.scale_by_lbfgs: memory_size must be at least 1, got {memory_size}."
        )

    def init(params: Params) -> State:
        def rows(p: Any) -> Array:
            return fnp.zeros((memory_size, *fnp.shape(p)), dtype_of(p))

        weights = fnp.zeros(memory_size, _real_dtype(params))
        return ScaleByLBFGSState(
            first_count(),
            zeros_like(params),
            zeros_like(params),
            tree_map(rows, params),
            tree_map(rows, params),
            weights,
        )

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        params = needed(params, "scale_by_lbfgs")
        dtype = _real_dtype(params)
        has_pair = state.count > 0

        def changes(new: Any, old: Any) -> Any:
            return tree_map(
                lambda x, y: fnp.where(has_pair, to_dtype(x, dtype_of(y)) - y, fnp.zeros_like(y)),
                new,
                old,
            )

        s, y = changes(params, state.params), changes(updates, state.updates)
        product, square = to_dtype(inner(s, y), dtype), to_dtype(inner(y, y), dtype)
        # The row of the last pair; the rows after it are older than all before.
        last = (state.count + np.int32(memory_size - 1)) % np.int32(memory_size)

        def stored(rows: Array, row: Array) -> Array:
            return dynamic_update_index_in_dim(rows, row, last, 0)

        memory = ScaleByLBFGSState(
            next_count(state.count),
            tree_map(fnp.array, params),
            tree_map(lambda u, p: to_dtype(fnp.array(u), dtype_of(p)), updates, params),
            tree_map(stored, state.diff_params_memory, s),
            tree_map(stored, state.diff_updates_memory, y),
            stored(state.weights_memory, _inverse(product, 0.0)),
        )
        gamma = fnp.ones_like(square)
        if scale_init_precond:
            length = fnp.sqrt(to_dtype(inner(updates, updates), dtype))
            of_pair = fnp.where(square > 0, product * _inverse(square, 0.0), 1.0)
            gamma = fnp.where(has_pair, of_pair, fnp.minimum(1.0, _inverse(length, 1.0)))
        return _product(memory, updates, gamma, last, memory_size), memory

    return GradientTransformation(init, update)


def _real_dtype(params: Params) -> np.dtype[Any]:
    dtypes = [real_dtype(dtype_of(p)) for p in tree_leaves(params)]
    return np.result_type(*dtypes) if dtypes else FLOAT64


def _inverse(x: Array, of_zero: float) -> Array:
    is_zero = x == 0
    return fnp.where(is_zero, of_zero, 1.0 / fnp.where(is_zero, 1.0, x))


def _product(
    memory: ScaleByLBFGSState, updates: Updates, gamma: Array, last: Array, memory_size: int
) -> Updates:
    """The two loops."""
    order = (last + fnp.arange(1, memory_size + 1, dtype=np.int32)) % np.int32(memory_size)
    dtype = dtype_of(gamma)

    def pair(i: Array) -> tuple[Any, Any, Array]:
        def row(rows: Array) -> Array:
            return dynamic_index_in_dim(rows, i, 0, keepdims=False)

        s, y = tree_map(row, memory.diff_params_memory), tree_map(row, memory.diff_updates_memory)
        return s, y, row(memory.weights_memory)

    def added(q: Updates, factor: Array, direction: Any) -> Updates:
        return tree_map(lambda x, d: x + to_dtype(like(factor, d) * d, dtype_of(x)), q, direction)

    def backward(q: Updates, i: Array) -> tuple[Updates, Array]:
        s, y, rho = pair(i)
        a = rho * to_dtype(inner(s, q), dtype)
        return added(q, -a, y), a

    def forward(q: Updates, row: tuple[Array, Array]) -> tuple[Updates, None]:
        i, a = row
        s, y, rho = pair(i)
        b = rho * to_dtype(inner(y, q), dtype)
        return added(q, a - b, s), None

    q, shares = scan(backward, tree_map(fnp.asarray, updates), order, reverse=True)
    q = tree_map(lambda x: like(gamma, x) * x, q)
    return scan(forward, q, (order, shares))[0]


def lbfgs(
    learning_rate: ScalarOrSchedule | None = None,
    memory_size: int = 10,
    scale_init_precond: bool = True,
    linesearch: GradientTransformation | None = scale_by_zoom_linesearch(  # noqa: B008
        max_linesearch_steps=20, initial_guess_strategy="one"
    ),
) -> GradientTransformationExtraArgs:
    """L-BFGS with a line search (Liu and Nocedal, 1989).

    Args:
        learning_rate: A positive number or a schedule that multiplies the direction; by default 1.
        scale_init_precond: Whether the approximation starts at a multiple of the identity: see
            `scale_by_lbfgs`.
        linesearch: The search, by default `scale_by_zoom_linesearch`. ``None``: there is none.
    Returns: A transformation whose update needs ``value=``, ``grad=`` and ``value_fn=`` for the
        search: see `value_and_grad_from_state` for a loop.

    Example:
        >>> f = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        >>> opt = fg.optim.lbfgs()
        >>> @fg.jit
        ... def step(x, state):
        ...     value, grad = fg.optim.value_and_grad_from_state(f)(x, state=state)
        ...     updates, state = opt.update(grad, state, x, value=value, grad=grad, value_fn=f)
        ...     return fg.optim.apply_updates(x, updates), state
        >>> x = np.array([-1.2, 1.0])
        >>> state = opt.init(x)
        >>> for _ in range(40):
        ...     x, state = step(x, state)
        >>> print(x.round(6))
        [1. 1.]
    """
    first = scale(-1.0) if learning_rate is None else scale_by_learning_rate(learning_rate)
    search = identity() if linesearch is None else linesearch
    return chain(scale_by_lbfgs(memory_size, scale_init_precond), first, search)
