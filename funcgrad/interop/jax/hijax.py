"""``jax.experimental.hijax``: operations that are classes, with an implementation and rules.

Such an operation is a function with rules of its own (`funcgrad.api.custom_call`), whose mapping
follows from its implementation. Types other than those of arrays, and rules for rematerialisation
and for results that are not used, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from funcgrad.api.custom import CustomFunction
from funcgrad.api.rule_results import SymbolicZero
from funcgrad.base.dialect import default_dtype, enter_dialect, leave_dialect
from funcgrad.base.pytree import tree_flatten, tree_map, tree_unflatten
from funcgrad.errors import ArgumentError
from funcgrad.interop.jax.custom import OfPackage
from funcgrad.interop.jax.primitives import Zero
from funcgrad.interop.jax.types import type_of, typed
from funcgrad.interop.jax.widths import rules
from funcgrad.numpy import moveaxis

_DERIVED = object()
"""A rule that follows from another one, as all do here that can."""

linearize_from_jvp = vjp_from_lin = vjp_from_jvp = (_DERIVED, _DERIVED)
jvp_from_lin = _DERIVED


class VJPHiPrimitive:
    """Base class of operations; a subclass has an implementation, `expand`, and rules.

    ``__init__`` sets three attributes before it calls this one:

    Attributes:
        in_avals: Types of the arguments, each a type or a pytree of types.
        out_aval: Type of the result, or a pytree of types.
        params: Static parameters by name, which become attributes.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]

    vjp_fwd: Any = None
    vjp_bwd_retval: Any = None
    vjp_bwd: Any = None
    jvp: Any = None
    lin: Any = None
    linearized: Any = None
    batch: Any = None

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(
                    f"subclass {type(self).__name__} should set `self.{name}` in its __init__ "
                    "before it calls super().__init__()"
                )
        vars(self).update(self.params)
        leaves, tree = tree_flatten((self.in_avals, self.out_aval))
        self._key = (type(self), tuple(map(str, leaves)), tree, tuple(self.params.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VJPHiPrimitive) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]" if self.params else type(self).__name__

    def expand(self, *args: Any) -> Any:
        """Compute the result by operations that can be traced."""
        raise NotImplementedError(f"subclass {type(self).__name__} must implement `expand`")

    def __call__(self, *args: Any) -> Any:
        """Apply the operation.

        Raises: ArgumentError: If the arguments do not have the types that it declares.
        """
        self._check(args)
        function = OfPackage(self.expand)
        function.name = function.rules.name = type(self).__name__
        if _is_written(self.jvp) or _is_written(self.lin):
            function.defjvp(self._of_tangents, symbolic_zeros=True)
        if _is_written(self.vjp_fwd):
            self._define_vjp(function)
        if self.batch is not None:
            function.def_vmap(self._of_lanes)
        return function(*args)

    def _check(self, args: tuple[Any, ...]) -> None:
        given, tree = tree_flatten(args)
        declared, expected = tree_flatten(tuple(self.in_avals))
        types = [type_of(x) for x in given]
        token = enter_dialect(rules())
        try:
            is_same = tree == expected and list(map(_bits, types)) == list(map(_bits, declared))
        finally:
            leave_dialect(token)
        if not is_same:
            raise ArgumentError(
                f"{type(self).__name__} was made for arguments of other types.\n"
                f"  expected      {', '.join(map(str, declared))}\n"
                f"  got           {', '.join(map(str, types))}\n"
                "Make one for these: its types are those of in_avals."
            )

    # Forward mode.

    def _of_tangents(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        given = tree_map(_to_zero, tangents)
        if _is_written(self.jvp):
            out, dot = self.jvp(primals, given)
        else:
            nonzeros = tree_map(lambda t: not isinstance(t, Zero), given)
            out, residuals = self.lin(nonzeros, *primals)
            dot = self.linearized(residuals, *given)
        return out, _without_zeros(dot)

    # Reverse mode.

    def _define_vjp(self, function: CustomFunction) -> None:
        def forward(*args: Any) -> tuple[Any, Any]:
            values, nonzeros = (
                tree_map(lambda x, name=name: getattr(x, name), args)
                for name in ("value", "perturbed")
            )
            out, residuals = self.vjp_fwd(nonzeros, *values)
            return out, (residuals, _Flags(nonzeros))

        def backward(kept: Any, cotangent: Any) -> tuple[Any, ...]:
            residuals, flags = kept
            ct = tree_map(_to_zero, cotangent)
            if self.vjp_bwd is None:
                return tuple(map(_without_zeros, self.vjp_bwd_retval(residuals, ct)))
            sums = tree_map(_Accumulator, flags.tree)
            self.vjp_bwd(residuals, ct, *sums)
            return tuple(tree_map(lambda each: each.total, sums))

        function.defvjp(forward, backward, symbolic_zeros=True)

    # Batching.

    def _of_lanes(self, size: int, is_mapped: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        axis = SimpleNamespace(size=size, name=None, spmd_name=None, explicit_mesh_axis=None)
        dims = tree_map(lambda flag: 0 if flag else None, tuple(is_mapped))
        out, out_dims = self.batch(axis, args, dims)
        leaves, tree = tree_flatten(out)
        flat = [out_dims] * len(leaves) if _is_dim(out_dims) else _dims_of(out_dims)
        moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(leaves, flat, strict=True)]
        flags = [d is not None for d in flat]
        return tree_unflatten(tree, moved), tree_unflatten(tree, flags)


class _Flags:
    """Flags of the arguments that have cotangents: a part of the residuals without values."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree


class _Accumulator:
    """The sum of the cotangents of an argument.

    Args: is_wanted: Whether there is one; otherwise nothing is added.
    """

    def __init__(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self.total: Any = None

    def accum(self, ct: Any) -> None:
        """Add a cotangent."""
        if self._is_wanted and not isinstance(ct, Zero):
            self.total = ct if self.total is None else self.total + ct


def _bits(aval: Any) -> tuple[Any, Any]:
    """Shape and dtype that are compared: a number of Python's has the bits of arrays."""
    return aval.shape, default_dtype(aval.dtype)


def _is_written(rule: Any) -> bool:
    """Whether a rule was written down, and does not follow from another one."""
    return rule is not None and rule is not _DERIVED


def _to_zero(x: Any) -> Any:
    """A tangent or cotangent, where a zero is JAX's symbol."""
    return Zero(typed(x.aval)) if isinstance(x, SymbolicZero) else x


def _without_zeros(tree: Any) -> Any:
    """Tangents or cotangents with `None` for zeros."""
    is_zero = lambda x: x is None or isinstance(x, Zero)  # noqa: E731
    return tree_map(lambda x: None if is_zero(x) else x, tree, is_leaf=is_zero)


def _is_dim(x: Any) -> bool:
    return x is None or isinstance(x, int)


def _dims_of(tree: Any) -> list[int | None]:
    return tree_flatten(tree, is_leaf=lambda x: x is None)[0]
