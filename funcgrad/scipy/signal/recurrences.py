"""Recursive linear filters: recurrences ``a[0] y[n] = sum b[k] x[n-k] - sum a[k] y[n-k]``.

In the transposed direct form II, as SciPy's own: a loop over samples carries one number fewer than
there are coefficients, for all lines at once. It compiles to a native loop, and so do both of its
derivatives, with respect to coefficients, samples and state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lax.loops import scan
from funcgrad.numpy import creating, joining, linalg, rearranging, shaping
from funcgrad.numpy.promotion import as_value
from funcgrad.numpy.reducing import sum as total
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import cut, floating, line_axis, odd_extended, repeated_ends

__all__ = [
    "dlsim", "filtfilt", "lfilter", "lfilter_zi", "lfiltic", "sosfilt", "sosfilt_zi", "sosfiltfilt",
]  # fmt: skip


def _coefficients(function: str, b: Any, a: Any, *others: Any) -> list[Any]:
    """Coefficients of one length, those of ``a`` with a leading 1, and other values."""
    b, a, *values = floating(function, b, a, *others)
    b, a = shaping.atleast_1d(b), shaping.atleast_1d(a)
    for name, value in (("b", b), ("a", a)):
        if len(shape_of(value)) != 1 or not shape_of(value)[0]:
            raise ShapeError(
                f"{function}: {name} must be a vector of coefficients, got {aval_of(value)}."
            )
    n = max(shape_of(b)[0], shape_of(a)[0])
    b, a = (_with_zeros(v / a[0], n) for v in (b, a))
    return [b, a, *values]


def _with_zeros(v: Any, n: int) -> Any:
    missing = n - shape_of(v)[0]
    return joining.concatenate([v, creating.zeros(missing, aval_of(v).dtype)]) if missing else v


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Recursive filter of lines of samples, as `scipy.signal.lfilter`.

    Args:
        a: Coefficients of the denominator, a vector; the first must not be 0.
        zi: The state to begin with, as ``x`` with ``max(len(a), len(b)) - 1`` elements along
            ``axis``, or one that broadcasts to it; zeros if it is None.
    Returns: The filtered samples; with ``zi`` a pair, of them and of the final state.
    Raises: ShapeError: If coefficients are no vectors, or the state does not fit.
    Example: print(fg.scipy.signal.lfilter([1.0], [1.0, -0.5], np.array([1.0, 0.0, 0.0])))
        -> [1.   0.5  0.25]
    """
    given = () if zi is None else (zi,)
    b, a, x, *state = _coefficients("lfilter", b, a, x, *given)
    axis = line_axis(x, axis, "lfilter")
    lines = shaping.moveaxis(x, axis, 0)
    order = shape_of(b)[0] - 1
    shape = (order, *shape_of(lines)[1:])
    if state:
        wanted = tuple(order if i == axis else n for i, n in enumerate(shape_of(x)))
        z = shaping.moveaxis(_state("lfilter", state[0], wanted, axis), axis, 0)
    else:
        z = creating.zeros(shape, aval_of(x).dtype)
    final, y = _filtered(b, a, lines, z)
    y = shaping.moveaxis(y, 0, axis)
    return (y, shaping.moveaxis(final, 0, axis)) if state else y


def _state(function: str, zi: Any, wanted: tuple[int, ...], axis: int) -> Any:
    got = shape_of(zi)
    fits = len(got) == len(wanted) and all(
        m == n or (m == 1 and i != axis) for i, (m, n) in enumerate(zip(got, wanted, strict=True))
    )
    if not fits:
        raise ShapeError(f"{function}: zi must have shape {wanted}, got {aval_of(zi)}.")
    return shaping.broadcast_to(zi, wanted)


def _filtered(b: Any, a: Any, lines: Any, z: Any) -> tuple[Any, Any]:
    """Final state and filtered lines, all along the first axis; ``a[0]`` is 1."""
    order = shape_of(b)[0] - 1
    if not order:
        return z, b[0] * lines
    column = (order, *[1] * (len(shape_of(lines)) - 1))
    forward, back = shaping.reshape(b[1:], column), shaping.reshape(a[1:], column)
    first, nothing = b[0], creating.zeros((1, *shape_of(lines)[1:]), aval_of(lines).dtype)

    def step(z: Any, x: Any) -> tuple[Any, Any]:
        y = first * x + z[0]
        shifted = joining.concatenate([z[1:], nothing]) if order > 1 else 0
        return shifted + forward * x - back * y, y

    return scan(step, z, lines)


def lfilter_zi(b: Any, a: Any) -> Any:
    """State in which the response to a step is constant, as `scipy.signal.lfilter_zi`.

    Returns: A vector, to be multiplied by the first sample.
    Example: print(fg.scipy.signal.lfilter_zi([1.0], [1.0, -0.5])) -> [1.]
    """
    b, a = _coefficients("lfilter_zi", b, a)
    n = shape_of(b)[0]
    # z = A z + B with the companion matrix of a: its first column is -a, shifted by one otherwise.
    matrix = np.eye(n - 1, dtype=aval_of(b).dtype) - np.eye(n - 1, k=1, dtype=aval_of(b).dtype)
    first = np.eye(1, n - 1, dtype=aval_of(b).dtype)
    matrix = matrix + a[1:][:, None] * first
    return linalg.solve(matrix, b[1:] - a[1:] * b[0])


def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """State after given outputs and inputs, as `scipy.signal.lfiltic`.

    Args:
        y: Outputs before, the last one first; zeros follow.
        x: Inputs before, likewise; zeros by default.
    Returns: The state, for `lfilter`.
    Example: print(fg.scipy.signal.lfiltic([1.0], [1.0, -0.5], [4.0])) -> [2.]
    """
    b, a, y, x = floating("lfiltic", b, a, y, 0.0 if x is None else x)
    b, a, y, x = (shaping.atleast_1d(v) for v in (b, a, y, x))
    inputs, outputs = shape_of(b)[0] - 1, shape_of(a)[0] - 1
    order = max(inputs, outputs)
    b, a = _with_zeros(b / a[0], order + 1), _with_zeros(a / a[0], order + 1)
    x = _with_zeros(x[:inputs], order)
    y = _with_zeros(y[:outputs], order)
    return joining.stack(
        [
            total(b[m + 1 :] * x[: order - m]) - total(a[m + 1 :] * y[: order - m])
            for m in range(order)
        ]
    )


# Cascades of sections of second order.


def _sections(function: str, sos: Any, *others: Any) -> list[Any]:
    sos, *values = floating(function, sos, *others)
    if len(shape_of(sos)) != 2 or shape_of(sos)[1] != 6:
        raise ShapeError(f"{function}: sos must be (sections, 6), got {aval_of(sos)}.")
    return [sos, *values]


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filters of second order, one after the other, as `scipy.signal.sosfilt`.

    Args: zi: States to begin with: ``(sections, ...)`` with 2 elements along ``axis`` of ``x``.
    Returns: The filtered samples; with ``zi`` a pair, of them and of the final states.
    Raises: ShapeError: If ``sos`` or the states do not fit.

    Example:
        >>> sos = [[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]]
        >>> print(fg.scipy.signal.sosfilt(sos, np.array([1.0, 0.0, 0.0])))
        [1.   0.5  0.25]
    """
    given = () if zi is None else (zi,)
    sos, x, *state = _sections("sosfilt", sos, x, *given)
    axis = line_axis(x, axis, "sosfilt")
    count = shape_of(sos)[0]
    lines = shaping.moveaxis(x, axis, 0)
    if state:
        wanted = (count, *(2 if i == axis else n for i, n in enumerate(shape_of(x))))
        z = shaping.moveaxis(_state("sosfilt", state[0], wanted, axis + 1), axis + 1, 1)
    else:
        z = creating.zeros((count, 2, *shape_of(lines)[1:]), aval_of(x).dtype)
    finals = []
    for i in range(count):
        b, a = sos[i, :3] / sos[i, 3], sos[i, 3:] / sos[i, 3]
        final, lines = _filtered(b, a, lines, z[i])
        finals.append(final)
    y = shaping.moveaxis(lines, 0, axis)
    return (y, shaping.moveaxis(joining.stack(finals), 1, axis + 1)) if state else y


def sosfilt_zi(sos: Any) -> Any:
    """States in which the response to a step is constant, as `scipy.signal.sosfilt_zi`.

    Returns: ``(sections, 2)``.
    Example: fg.scipy.signal.sosfilt_zi(np.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]]))
        -> array([[1., 0.]])
    """
    (sos,) = _sections("sosfilt_zi", sos)
    states: list[Any] = []
    scale: Any = 1.0
    for i in range(shape_of(sos)[0]):
        b, a = sos[i, :3], sos[i, 3:]
        states.append(scale * lfilter_zi(b, a))
        scale = scale * total(b) / total(a)
    return joining.stack(states)


# Forwards and backwards.


def _edge(function: str, x: Any, axis: int, padtype: Any, padlen: Any, default: int) -> Any:
    if padtype not in ("odd", "even", "constant", None):
        raise ArgumentError(
            f"{function}: padtype must be 'odd', 'even', 'constant' or None, got {padtype!r}."
        )
    count = 0 if padtype is None else default if padlen is None else int(padlen)
    if shape_of(x)[axis] <= count:
        raise ShapeError(
            f"{function}: {aval_of(x)} must have more than padlen = {count} elements along axis "
            f"{axis}."
        )
    if padtype == "constant":
        return repeated_ends(x, count, axis), count
    return odd_extended(x, count, axis, padtype != "even"), count


def _both_ways(function: Any, x: Any, count: int, axis: int, zi: Any) -> Any:
    """A filter forwards and backwards over an extended line, without the extension."""
    y, _ = function(x, zi * cut(x, axis, 0, 1))
    n = shape_of(y)[axis]
    y = rearranging.flip(y, axis)
    y, _ = function(y, zi * cut(y, axis, 0, 1))
    return cut(rearranging.flip(y, axis), axis, count, n - count)


def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> Any:
    """Filter forwards and backwards, which shifts no phase, as `scipy.signal.filtfilt`.

    Args:
        padtype: How lines are extended: ``"odd"``, ``"even"``, ``"constant"``, or None.
        padlen: By how many samples; three times the number of coefficients by default.
        method: ``"pad"``. Gustafsson's method is not here.
        irlen: Of Gustafsson's method.
    Returns: The filtered samples.

    Raises:
        ArgumentError: If ``method`` or ``padtype`` are others.
        ShapeError: If lines are shorter than their extension.
    Example: print(np.round(fg.scipy.signal.filtfilt([0.5, 0.5], [1.0], np.arange(8.0)), 12))
        -> [0. 1. 2. 3. 4. 5. 6. 7.]
    """
    if method != "pad" or irlen is not None:
        raise ArgumentError(
            f"filtfilt: method must be 'pad', without irlen, got {method!r}. For Gustafsson's "
            "method of known values call scipy.signal.filtfilt."
        )
    b, a, x = _coefficients("filtfilt", b, a, x)
    axis = line_axis(x, axis, "filtfilt")
    default = 3 * shape_of(b)[0]
    extended, count = _edge("filtfilt", x, axis, padtype, padlen, default)
    shape = [-1 if i == axis else 1 for i in range(len(shape_of(x)))]
    zi = shaping.reshape(lfilter_zi(b, a), shape)
    return _both_ways(lambda v, z: lfilter(b, a, v, axis, z), extended, count, axis, zi)


def sosfiltfilt(
    sos: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None
) -> Any:
    """Sections of second order, forwards and backwards, as `scipy.signal.sosfiltfilt`.

    Args:
        sos: ``(sections, 6)``, known values if ``padlen`` is None: it depends on which are 0.
        padtype: As in `filtfilt`.
        padlen: By how many samples lines are extended.
    Returns: The filtered samples.
    Raises: ShapeError: If lines are shorter than their extension.

    Example:
        >>> fg.scipy.signal.sosfiltfilt(
        ...     np.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]]), np.sin(np.arange(12.0))
        ... )[:3]
        array([0.01625195, 1.19190706, 1.28057373])
    """
    zeros_at_ends = 0
    if padlen is None and padtype is not None:
        known = np.asarray(as_value(sos, "sosfiltfilt"))
        zeros_at_ends = int(min((known[:, 2] == 0).sum(), (known[:, 5] == 0).sum()))
    sos, x = _sections("sosfiltfilt", sos, x)
    axis = line_axis(x, axis, "sosfiltfilt")
    count = shape_of(sos)[0]
    default = 3 * (2 * count + 1 - zeros_at_ends)
    extended, padded = _edge("sosfiltfilt", x, axis, padtype, padlen, default)
    shape = [count, *(2 if i == axis else 1 for i in range(len(shape_of(x))))]
    zi = shaping.reshape(sosfilt_zi(sos), shape)

    def both(v: Any, z: Any) -> Any:
        wanted = (count, *(2 if i == axis else n for i, n in enumerate(shape_of(v))))
        return sosfilt(sos, v, axis, shaping.broadcast_to(z, wanted))

    return _both_ways(both, extended, padded, axis, zi)


def dlsim(system: Any, u: Any, t: Any = None, x0: Any = None) -> Any:
    """Output of a discrete-time system.

    As `scipy.signal.dlsim` for systems in state space: ``x' = A x + B u``, ``y = C x + D u``.

    Args:
        system: ``(A, B, C, D, dt)``; ``dt`` is a known number.
        u: Inputs, ``(steps, inputs)``, or ``(steps,)`` of one.
        t: None: the inputs are those at multiples of ``dt``.
        x0: The state to begin with; zeros by default.
    Returns: Times, outputs ``(steps, outputs)`` and states ``(steps, n)``.
    Raises: ArgumentError: If ``system`` is something else, or ``t`` is given.

    Example:
        >>> from funcgrad.scipy import signal
        >>> one = np.ones((1, 1))
        >>> times, y, x = signal.dlsim((0.5 * one, one, one, 0 * one, 1.0), np.array([1.0, 0, 0]))
        >>> print(times, y.ravel())
        [0. 1. 2.] [0.  1.  0.5]
    """
    if not isinstance(system, tuple | list) or len(system) != 5 or t is not None:
        raise ArgumentError(
            "dlsim needs a system (A, B, C, D, dt) and t=None; scipy.signal.tf2ss makes one of a "
            "transfer function, and scipy.signal.dlsim resamples inputs."
        )
    *matrices, dt = system
    a, b, c, d, u, start = floating("dlsim", *matrices, u, 0.0 if x0 is None else x0)
    u = u[:, None] if len(shape_of(u)) == 1 else shaping.atleast_1d(u)
    state = shaping.broadcast_to(start, (shape_of(a)[0],))

    def step(x: Any, v: Any) -> tuple[Any, tuple[Any, Any]]:
        return a @ x + b @ v, (c @ x + d @ v, x)

    _, (outputs, states) = scan(step, state, u)
    return np.arange(shape_of(u)[0]) * float(dt), outputs, states
