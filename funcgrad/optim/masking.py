"""Transformations for parts of a tree: some of its leaves, or a different one for each group."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from funcgrad.base.pytree import broadcast_prefix, tree_leaves, tree_structure
from funcgrad.errors import ArgumentError
from funcgrad.optim.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    State,
    Step,
    Updates,
    with_extra_args_support,
)


class MaskedNode(NamedTuple):
    """Stands where a leaf was masked out; it has no leaves itself."""


class MaskedState(NamedTuple):
    inner_state: Any


def masked(
    inner: GradientTransformation, mask: Any | Callable[[Params], Any]
) -> GradientTransformationExtraArgs:
    """A transformation for some leaves; the updates of the others pass unchanged.

    Args:
        inner: The transformation.
        mask: A tree of bools, true for the leaves that `inner` gets, or a function from the
            parameters (or updates) to one. A bool may stand for a whole subtree.

    Raises:
        ArgumentError: If a leaf of the mask is not a Python or NumPy bool.
        TreeError: If the mask does not fit the tree.

    Example:
        >>> tx = fg.optim.masked(fg.optim.scale(10.0), {"w": True, "b": False})
        >>> tx.update({"w": 1.0, "b": 1.0}, tx.init({"w": 0.0, "b": 0.0}))[0]
        {'b': 1.0, 'w': 10.0}
    """
    inner = with_extra_args_support(inner)

    def parts(tree: Any, bools: list[bool]) -> Any:
        structure = tree_structure(tree)
        pairs = zip(tree_leaves(tree), bools, strict=True)
        return structure.unflatten([x if chosen else MaskedNode() for x, chosen in pairs])

    def init(params: Params) -> State:
        return MaskedState(inner.init(parts(params, _bools(mask, params))))

    def update(
        updates: Updates, state: State, params: Params | None = None, **extra_args: Any
    ) -> Step:
        bools = _bools(mask, updates)
        chosen = parts(updates, bools)
        given = None if params is None else parts(params, bools)
        changed, after = inner.update(chosen, state.inner_state, given, **extra_args)
        new = iter(tree_leaves(changed))
        leaves = [
            next(new) if is_chosen else x
            for x, is_chosen in zip(tree_leaves(updates), bools, strict=True)
        ]
        return tree_structure(updates).unflatten(leaves), MaskedState(after)

    return GradientTransformationExtraArgs(init, update)


def _bools(mask: Any, tree: Any) -> list[bool]:
    """The mask as one bool per leaf of a tree."""
    bools = broadcast_prefix(mask(tree) if callable(mask) else mask, tree)
    for value in bools:
        if not isinstance(value, bool | np.bool_):
            raise ArgumentError(
                f"optim.masked: a mask is a tree of bools that are known before the step, got a "
                f"{type(value).__name__}."
            )
    return bools


class MultiTransformState(NamedTuple):
    inner_states: dict[Hashable, Any]


def multi_transform(
    transforms: Mapping[Hashable, GradientTransformation],
    param_labels: Any | Callable[[Params], Any],
) -> GradientTransformationExtraArgs:
    """A transformation for each group of leaves.

    Args:
        transforms: Transformations by label.
        param_labels: A tree of labels, or a function from the parameters (or updates) to one. A
            label may stand for a whole subtree.
    Raises: ArgumentError: If a label has no transformation.

    Example:
        >>> tx = fg.optim.multi_transform(
        ...     {"train": fg.optim.sgd(1.0), "freeze": fg.optim.set_to_zero()},
        ...     {"w": "train", "b": "freeze"},
        ... )
        >>> params = {"w": 0.0, "b": 0.0}
        >>> tx.update({"w": 1.0, "b": 1.0}, tx.init(params), params)[0]
        {'b': array(0.), 'w': -1.0}
    """

    def labels(tree: Any) -> list[Any]:
        wanted = broadcast_prefix(
            param_labels(tree) if callable(param_labels) else param_labels, tree
        )
        for label in wanted:
            if label not in transforms:
                raise ArgumentError(
                    f"optim.multi_transform: there is no transformation for label {label!r}, only "
                    f"for {list(transforms)}."
                )
        return wanted

    def of_group(label: Hashable) -> Callable[[Any], Any]:
        return lambda tree: tree_structure(tree).unflatten([x == label for x in labels(tree)])

    groups = {label: masked(tx, of_group(label)) for label, tx in transforms.items()}

    def init(params: Params) -> State:
        return MultiTransformState({label: tx.init(params) for label, tx in groups.items()})

    def update(
        updates: Updates, state: State, params: Params | None = None, **extra_args: Any
    ) -> Step:
        states = {}
        for label, tx in groups.items():
            before = state.inner_states[label]
            updates, states[label] = tx.update(updates, before, params, **extra_args)
        return updates, MultiTransformState(states)

    return GradientTransformationExtraArgs(init, update)
