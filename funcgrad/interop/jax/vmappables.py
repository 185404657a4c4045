"""Classes whose values are mapped by rules of their own, as `register_vmappable` of JAX has them.

A value is no leaf of arrays then, but a whole that its class takes apart: into what a lane sees,
and out of that again. What says where the mapped axis is may be of any class, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from funcgrad import numpy
from funcgrad.base.pytree import PyTreeDef, broadcast_prefix, tree_flatten, tree_unflatten
from funcgrad.core.trace import current_trace, using_trace
from funcgrad.errors import ArgumentError
from funcgrad.transforms.batch import BatchTrace

Cont = Callable[..., Any]
"""Function that a rule calls for the parts of a value."""


class _Rules(NamedTuple):
    """The rules of a class.

    Attributes:
        spec_type: Class of what says where the mapped axis is.
        to_elt: ``to_elt(cont, get_index, value, spec)``: what a lane sees of a value.
        from_elt: ``from_elt(cont, axis_size, elt, spec)``: a value from what all lanes have.
    """

    spec_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


_RULES: dict[type, _Rules] = {}


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None = None,
) -> None:
    """Map values of a class by rules of its own.

    Args:
        data_type: The class.
        spec_type: Class of what stands for them in ``in_axes`` and ``out_axes``.
        axis_size_type: Must be int.
        to_elt: ``to_elt(cont, get_index, value, spec)``: what a lane sees of a value;
            ``cont(part, spec)`` says it of a part.
        from_elt: ``from_elt(cont, axis_size, elt, spec)``: the value that lanes make;
            ``cont(axis_size, elt, spec)`` says it of a part.
        make_iota: Must be None.
    Raises: ArgumentError: If sizes of axes are no integers.
    """
    if axis_size_type is not int or make_iota is not None:
        raise ArgumentError("register_vmappable: sizes of mapped axes are integers here.")
    _RULES[data_type] = _Rules(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Map values of a class as any others.

    Args: data_type: The class.
    """
    del _RULES[data_type]


def _has_rules(x: Any) -> bool:
    return type(x) in _RULES


def _is_spec(x: Any) -> bool:
    return x is None or any(type(x) is rules.spec_type for rules in _RULES.values())


def _specs(prefix: Any, tree: PyTreeDef) -> list[Any]:
    """Places of the mapped axis, one for each leaf of a tree."""
    stand_ins = tree_unflatten(tree, [object()] * tree.num_leaves)
    return broadcast_prefix(prefix, stand_ins, is_leaf=_is_spec)


def _no_index() -> NoReturn:
    raise ArgumentError("register_vmappable: the index of a lane is lax.axis_index of a name here.")


def mapping_by_rules(vmap: Callable[..., Any]) -> Callable[..., Any]:
    """A `vmap` that knows the classes that are registered when it is called.

    Args: vmap: The one for arrays.
    """

    @functools.wraps(vmap)
    def mapping(
        fun: Callable[..., Any],
        in_axes: Any = 0,
        out_axes: Any = 0,
        axis_name: Any = None,
        axis_size: int | None = None,
        **options: Any,
    ) -> Any:
        if not _RULES:
            return vmap(fun, in_axes, out_axes, axis_name, axis_size, **options)

        @functools.wraps(fun)
        def run(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = tree_flatten(args, _has_rules)
            specs = _specs(tuple(in_axes) if isinstance(in_axes, list) else in_axes, tree)
            arrays: list[Any] = []
            axes: list[Any] = []

            def collect(x: Any, spec: Any) -> Any:
                if _has_rules(x):
                    return _RULES[type(x)].to_elt(collect, _no_index, x, spec)
                arrays.append(x)
                axes.append(spec)
                return x if spec is None else numpy.take(x, 0, spec)  # what a lane has

            rows = list(zip(leaves, specs, strict=True))
            for row in rows:
                collect(*row)
            made: list[Any] = []

            def of_lane(*values: Any) -> tuple[()]:
                rest = iter(values)

                def element(x: Any, spec: Any) -> Any:
                    if _has_rules(x):
                        return _RULES[type(x)].to_elt(element, _no_index, x, spec)
                    return next(rest)

                out = fun(*tree_unflatten(tree, [element(*row) for row in rows]), **kwargs)
                outs, out_tree = tree_flatten(out, _has_rules)
                trace = current_trace()
                assert isinstance(trace, BatchTrace)
                pairs = zip(outs, _specs(out_axes, out_tree), strict=True)
                made.append(
                    tree_unflatten(out_tree, [_of_lanes(trace.size, x, spec) for x, spec in pairs])
                )
                return ()

            vmap(of_lane, tuple(axes), 0, axis_name, axis_size, **options)(*arrays)
            return made[-1]

        return run

    return mapping


def _of_lanes(size: int, x: Any, spec: Any) -> Any:
    """Value of all lanes, with the mapped axis where it is wanted."""
    if _has_rules(x):
        return _RULES[type(x)].from_elt(_of_lanes, size, x, spec)
    trace = current_trace()
    assert isinstance(trace, BatchTrace)
    assert trace.parent is not None
    value, dim = trace.unwrap(x)
    with using_trace(trace.parent):
        if spec is None:
            if dim is not None:
                raise ArgumentError("vmap: out_axes is None for a result that is mapped.")
            return value
        front = value if dim == 0 else numpy.broadcast_to(value, (size, *numpy.shape(value)))
        return numpy.moveaxis(front, 0, spec)
