"""Policies: which results of a checkpointed function are kept for its derivative.

A policy is a function ``policy(primitive, *avals, **params) -> bool``, asked about the operations
whose results the derivative needs: whether they are saved rather than computed again. It decides
by what an operation says of itself, its lowering form or its parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.base.signatures import share
from funcgrad.core.avals import ShapedArray
from funcgrad.core.primitive import Primitive
from funcgrad.errors import ArgumentError
from funcgrad.lowering import Contraction

Policy = Callable[..., bool]


def everything_saveable(primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
    """Save every residual; nothing is computed again.

    Example:
        >>> policy = fg.checkpoint_policies.everything_saveable
        >>> float(fg.grad(fg.checkpoint(lambda x: np.sin(x) ** 2, policy=policy))(1.0))
        0.9092974268256818
    """
    return True


def nothing_saveable(primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
    """Save the arguments only; everything is computed again.

    Example:
        >>> policy = fg.checkpoint_policies.nothing_saveable
        >>> float(fg.grad(fg.checkpoint(lambda x: np.sin(x) ** 2, policy=policy))(1.0))
        0.9092974268256818
    """
    return False


def dots_saveable(primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
    """Save results of contractions, such as matrix products.

    Example:
        >>> policy = fg.checkpoint_policies.dots_saveable
        >>> float(fg.grad(fg.checkpoint(lambda x: np.sin(x) ** 2, policy=policy))(1.0))
        0.9092974268256818
    """
    return isinstance(primitive.lower(*avals), Contraction)


def dots_with_no_batch_dims_saveable(
    primitive: Primitive, *avals: ShapedArray, **params: Any
) -> bool:
    """Save results of contractions without batch axes, such as products with weights.

    Example:
        >>> policy = fg.checkpoint_policies.dots_with_no_batch_dims_saveable
        >>> float(fg.grad(fg.checkpoint(lambda x: np.sin(x) ** 2, policy=policy))(1.0))
        0.9092974268256818
    """
    form = primitive.lower(*avals)
    return isinstance(form, Contraction) and not set(form.lhs) & set(form.rhs) & set(form.out)


@dataclass(frozen=True)
class _ByName:
    """A policy about values that `checkpoint_name` has named."""

    names: frozenset[str]

    def __str__(self) -> str:
        return f"{type(self).__name__.strip('_')}({', '.join(sorted(self.names))})"

    def excludes(self, name: str) -> bool:
        """Whether the value of this name must not be saved, whatever computed it."""
        return False


class _SaveOnly(_ByName):
    def __call__(self, primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
        return params.get("value_name") in self.names


class _SaveNamesExcept(_ByName):
    def __call__(self, primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
        return "value_name" in params and params["value_name"] not in self.names


class _SaveAnythingExcept(_ByName):
    def __call__(self, primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
        return params.get("value_name") not in self.names

    def excludes(self, name: str) -> bool:
        return name in self.names


@dataclass(frozen=True)
class _Either:
    first: Policy
    second: Policy

    def __call__(self, primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
        return self.first(primitive, *avals, **params) or self.second(primitive, *avals, **params)


def _names(names: tuple[Any, ...], function: str) -> frozenset[str]:
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(
                f"{function} takes names given to values by checkpoint_name, one by one, got "
                f"{name!r}. Write {function}('a', 'b')."
            )
    return frozenset(names)


def save_only_these_names(*names: str) -> Policy:
    """Save the values of these names, and nothing else.

    Example:
        >>> policy = fg.checkpoint_policies.save_only_these_names("s")
        >>> f = fg.checkpoint(lambda x: fg.checkpoint_name(np.sin(x), "s") ** 2, policy=policy)
        >>> float(fg.grad(f)(1.0))
        0.9092974268256818
    """
    return _SaveOnly(_names(names, "save_only_these_names"))


def save_any_names_but_these(*names: str) -> Policy:
    """Save all values that have a name, except those of these names.

    Example:
        >>> policy = fg.checkpoint_policies.save_any_names_but_these("s")
        >>> f = fg.checkpoint(lambda x: fg.checkpoint_name(np.sin(x), "s") ** 2, policy=policy)
        >>> float(fg.grad(f)(1.0))
        0.9092974268256818
    """
    return _SaveNamesExcept(_names(names, "save_any_names_but_these"))


def save_anything_except_these_names(*names: str) -> Policy:
    """Save all residuals, named or not, except the values of these names.

    Example:
        >>> policy = fg.checkpoint_policies.save_anything_except_these_names("s")
        >>> f = fg.checkpoint(lambda x: fg.checkpoint_name(np.sin(x), "s") ** 2, policy=policy)
        >>> float(fg.grad(f)(1.0))
        0.9092974268256818
    """
    return _SaveAnythingExcept(_names(names, "save_anything_except_these_names"))


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Save what one of two policies saves.

    Args:
        policy_1: A policy.
        policy_2: Another one.

    Example:
        >>> from funcgrad import checkpoint_policies as kept
        >>> policy = kept.save_from_both_policies(kept.dots_saveable, kept.nothing_saveable)
        >>> float(fg.grad(fg.checkpoint(lambda x: np.sin(x) ** 2, policy=policy))(1.0))
        0.9092974268256818
    """
    for policy in (policy_1, policy_2):
        check_policy(policy, "save_from_both_policies")
    return _Either(policy_1, policy_2)


def check_policy(policy: Any, function: str) -> None:
    """Raise unless ``policy`` can be asked."""
    factories = (
        save_only_these_names,
        save_any_names_but_these,
        save_anything_except_these_names,
        save_from_both_policies,
    )
    if policy in factories:
        raise ArgumentError(
            f"{function}: {policy.__name__} makes a policy from names. Call it: "
            f"policy={policy.__name__}(...)."
        )
    if not callable(policy):
        raise ArgumentError(
            f"{function}: a policy is a function of checkpoint_policies, such as dots_saveable, or "
            f"policy(primitive, *avals, **params) -> bool; got {policy!r}."
        )


share(
    __name__,
    {
        "primitive": "The operation.",
        "*avals": "Types of its operands.",
        "**params": "Its parameters.",
        "*names": "Names given by `checkpoint_name`.",
    },
)
