"""Is this network learning? The gradient of every parameter, with a verdict in words.

Verdicts compare what can be compared. A gradient *vanishes* or *explodes* in comparison with that
of the layer nearest to the loss, whose gradient passes through no other layer; a step is *too
large* in comparison with the data that it changes. That a parameter is *disconnected* follows from
the derivative's structure, not from its value: its cotangent does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.api.arguments import check_callable, leaf_paths, name_of
from funcgrad.api.differentiation import vjp
from funcgrad.base.forking import cached_property
from funcgrad.base.pytree import tree_leaves, tree_structure
from funcgrad.base.records import dataclass
from funcgrad.core.avals import aval_of
from funcgrad.core.program import Atom, Equation, Var
from funcgrad.core.trace import Tracer
from funcgrad.diagnostics.activations import Activation, activations_of
from funcgrad.diagnostics.record import Record, record
from funcgrad.diagnostics.tables import short, table
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.optim.scaling import check_rate
from funcgrad.transforms.linearize import linearize_flat

VANISHING = 1e-3
"""A gradient vanishes below this share of that of the last layer (root mean squares)."""
EXPLODING = 1e3
"""And explodes above this multiple of it, or of the parameter itself."""
LARGE_STEP = 0.1
"""A step is too large above this share of the parameter (norms)."""
DEAD = 0.75
"""Share of dead units from which on a layer is reported."""
SATURATED = 0.5
"""Share of saturated values from which on a layer is reported."""

_SHOWN = 4

HEALTHY, CANCELLED = "healthy", "cancelled"
# From the worst, which hides what follows, to the mildest.
VERDICTS = (
    "not finite",
    "disconnected",
    "dead units",
    "saturated",
    "zero gradient",
    "exploding",
    "vanishing",
    "step too large",
    CANCELLED,
    HEALTHY,
)


@dataclass(frozen=True)
class LeafReport:
    """Measurements of one parameter, with verdicts.

    Attributes:
        path: The parameter, such as ``params['w']``.
        shape: Its shape.
        norm: Norm of its gradient.
        mean: Mean of the gradient's entries.
        std: Their standard deviation.
        min: The least entry.
        max: The largest entry.
        mean_abs: Mean of the absolute values.
        zeros: Share of the entries that are 0.
        non_finite: How many entries are NaN or infinite.
        ratio: Norm of the update divided by that of the parameter; without updates, of the
            gradient. ``None`` if the parameter is 0.
        verdict: One of `VERDICTS`.
        reason: A sentence; empty if it is healthy.
    """

    path: str
    shape: tuple[int, ...]
    norm: float
    mean: float
    std: float
    min: float
    max: float
    mean_abs: float
    zeros: float
    non_finite: int
    ratio: float | None
    verdict: str
    reason: str

    def __bool__(self) -> bool:
        return self.verdict in (HEALTHY, CANCELLED)


@dataclass(frozen=True)
class GradientReport:
    """The result of `gradient_report`: true if all is healthy; prints as a table with reasons.

    Attributes:
        loss: Value of the loss.
        leaves: One `LeafReport` per parameter.
        activations: What the activation functions did.
        gradients: The gradient, leaf by leaf; zeros for what is disconnected.
        has_updates: Whether ratios are of updates and not of gradients.
    """

    loss: float
    leaves: tuple[LeafReport, ...]
    activations: tuple[Activation, ...]
    gradients: tuple[np.ndarray, ...]
    has_updates: bool

    def __bool__(self) -> bool:
        return all(self.leaves)

    @property
    def verdict(self) -> str:
        """The worst verdict; ``"healthy"`` also if some gradients cancel."""
        worst = min((VERDICTS.index(leaf.verdict) for leaf in self.leaves), default=-1)
        return HEALTHY if VERDICTS[worst] == CANCELLED else VERDICTS[worst]

    @property
    def problems(self) -> dict[str, str]:
        """Verdicts by path, of the leaves that are not healthy."""
        return {leaf.path: leaf.verdict for leaf in self.leaves if not leaf}

    def __str__(self) -> str:
        rows = [
            [
                leaf.path,
                short(leaf.norm),
                short(leaf.mean),
                short(leaf.std),
                short(leaf.min),
                short(leaf.max),
                f"{leaf.zeros:.1%}",
                str(leaf.non_finite),
                short(leaf.ratio),
                leaf.verdict,
            ]
            for leaf in self.leaves
        ]
        ratio = "update/data" if self.has_updates else "grad/data"
        header = ["leaf", "norm", "mean", "std", "min", "max", "zeros", "non-finite", ratio]
        head = f"loss {self.loss:.6g}: {self.verdict}"
        return "\n".join([head, table([*header, "verdict"], rows), *self._reasons()])

    def _reasons(self) -> Iterator[str]:
        """Explain the verdicts, each with its first few parameters."""
        for verdict in VERDICTS:
            leaves = [leaf for leaf in self.leaves if leaf.verdict == verdict and leaf.reason]
            yield from (f"{verdict}: {leaf.path}: {leaf.reason}" for leaf in leaves[:_SHOWN])
            if len(leaves) > _SHOWN:
                yield f"{verdict}: and {len(leaves) - _SHOWN} more"


def gradient_report(
    loss: Callable[..., Any],
    params: Any,
    *batch: Any,
    learning_rate: float | None = None,
    updates: Any = None,
    has_aux: bool = False,
) -> GradientReport:
    """The gradient of a loss at one batch, parameter by parameter, with a verdict for each.

    Verdicts, from the worst to the mildest:

    * ``not finite``: there is a NaN or an infinity; `find_nan` finds its origin.
    * ``disconnected``: no derivative reaches the parameter, whatever the values. The reason says
      whether the loss does not use it, or which operation has no derivative.
    * ``dead units``: at least three quarters of the layer's units are off for the whole batch:
      the rectifier behind the parameter gives 0 for every example, or whole columns of a matrix
      (along the last axis, the outputs of ``x @ w``) have the gradient 0. Rows may: they belong to
      inputs that are 0, or to words that do not occur.
    * ``saturated``: at least half of the values of the sigmoid behind it are on its flat parts.
    * ``zero gradient``: all entries are 0, though the parameter is connected.
    * ``exploding``: the root mean square is 1,000 times that of the last layer, or the norm 1,000
      times that of the parameter.
    * ``vanishing``: the root mean square is below a thousandth of that of the last layer.
    * ``step too large``: the update is over a tenth of the parameter (norms).
    * ``cancelled``: the contributions of the examples are not small but add up to rounding noise,
      as those of a bias in front of a normalisation: it can be left out. Not an illness.

    Args:
        loss: Maps the parameters and the batch to a real scalar.
        params: Pytree of arrays; there is a row for every one of real floating numbers.
        *batch: Further arguments of ``loss``.
        learning_rate: Of plain gradient descent, for the ratio of update to data.
        updates: What will be added to the parameters, a pytree like them: for other optimisers.
        has_aux: Whether ``loss`` returns a pair, of which the first is the loss.
    Returns: A `GradientReport`.

    Raises:
        ArgumentError: If the loss is not a real scalar, no parameter is floating, or the learning
            rate is not positive and finite.
        TreeError: If ``updates`` have another structure than ``params``.

    Example:
        >>> def loss(params, x):
        ...     return np.mean(np.tanh(x @ params["w"]) ** 2)
        >>> params = {"w": np.full((2, 3), 0.1), "unused": np.ones(3)}
        >>> report = fg.diagnostics.gradient_report(loss, params, np.ones((4, 2)))
        >>> report.problems
        {"params['unused']": 'disconnected'}
    """
    check_callable(loss, "gradient_report")
    check_rate(learning_rate)
    what = f"gradient_report({name_of(loss)})"

    def alone(params: Any, *batch: Any) -> Any:
        return loss(params, *batch)[0] if has_aux else loss(params, *batch)

    recorded = record(alone, (params, *batch), {}, what)
    types = [atom.aval for atom in recorded.outputs]
    if len(types) != 1 or types[0].shape or types[0].dtype.kind != "f":
        raise ArgumentError(
            f"{what}: the loss must be one real number, but it is "
            f"({', '.join(map(str, types))}). Write loss(params, *batch), or has_aux=True if it "
            "returns more."
        )
    leaves = tree_leaves(params)
    steps: Sequence[Any] | None = None
    if updates is not None:
        if tree_structure(updates) != tree_structure(params):
            raise TreeError(
                f"{what}: updates must have the structure of params, {tree_structure(params)}, "
                f"got {tree_structure(updates)}."
            )
        steps = tree_leaves(updates)
    examiner = _Examiner(recorded, leaves, leaf_paths(params, "params"), what)
    if steps is None and learning_rate is not None:
        steps = [learning_rate * g for g in examiner.gradients]
    rows = tuple(examiner.rows(steps))
    value = float(recorded.value(recorded.outputs[0]))
    activations = tuple(activation for _, activation in examiner.activations)
    gradients = tuple(examiner.gradients[i] for i in examiner.active)
    return GradientReport(value, rows, activations, gradients, steps is not None)


class _Examiner:
    """Facts about the parameters of a recorded loss, from which verdicts follow."""

    def __init__(
        self, recorded: Record, leaves: Sequence[Any], paths: Sequence[str], what: str
    ) -> None:
        self.record = recorded
        self.leaves = leaves
        self.paths = paths
        self.names = recorded.inputs[: len(leaves)]
        self.readers = recorded.readers()
        self.active = [i for i, x in enumerate(leaves) if aval_of(x).dtype.kind == "f"]
        if not self.active:
            raise ArgumentError(f"{what}: no parameter is an array of real floating numbers.")
        cotangents = self.pull()
        self.connected = {i: ct is not None for i, ct in cotangents.items()}
        self.gradients = [
            np.zeros(np.shape(x)) if cotangents.get(i) is None else np.asarray(cotangents[i])
            for i, x in enumerate(leaves)
        ]
        self.activations = list(activations_of(recorded))
        self.behind = {id(equation): activation for equation, activation in self.activations}
        self.order = {id(equation): i for i, equation in enumerate(recorded.equations)}
        self.reference = self.last_layer()

    def pull(self) -> dict[int, Any]:
        """Gradients of the active leaves; ``None`` where none exists."""
        is_active = [i in self.active for i in range(len(self.record.inputs))]
        values = [self.record.values[v] for v in self.record.inputs]
        with np.errstate(all="ignore"):
            _, linear = linearize_flat(
                lambda *xs: self.record.run(xs, {}), values, is_active, self.record.name
            )
            one = self.record.outputs[0].aval.dtype.type(1)
            cts = linear.pull([one])
        return {i: cts[i] for i in self.active}

    def last_layer(self) -> float:
        """Root mean square of the gradient of the parameters that are used last."""
        used = [i for i in self.active if self.connected[i] and np.any(self.gradients[i])]
        last = sorted(used, key=self.first_use)[-2:]
        return max((rms(self.gradients[i]) for i in last), default=0.0)

    def first_use(self, leaf: int) -> int:
        """When the first operation reads it."""
        return min(self.order[id(e)] for e in self.readers[self.names[leaf]])

    def rows(self, steps: Sequence[Any] | None) -> Iterator[LeafReport]:
        for i in self.active:
            gradient = self.gradients[i]
            data = float(np.linalg.norm(np.asarray(self.leaves[i])))
            step = gradient if steps is None else np.asarray(steps[i])
            with np.errstate(all="ignore"):
                ratio = float(np.linalg.norm(step)) / data if data else None
                verdict, reason = self.verdict(i, gradient, ratio, steps is not None)
                yield LeafReport(
                    self.paths[i],
                    gradient.shape,
                    float(np.linalg.norm(gradient)),
                    *_moments(gradient),
                    int(np.sum(~np.isfinite(gradient))),
                    ratio,
                    verdict,
                    reason,
                )

    def verdict(
        self, leaf: int, gradient: Any, ratio: float | None, has_updates: bool
    ) -> tuple[str, str]:
        if not np.isfinite(gradient).all():
            count = int(np.sum(~np.isfinite(gradient)))
            return "not finite", f"{count} of {gradient.size} entries are not; find_nan finds why"
        if not self.connected[leaf]:
            return "disconnected", self.why_disconnected(leaf)
        dead = self.why_dead(leaf, gradient)
        if dead:
            return "dead units", dead
        activation = self.activation_behind(leaf)
        if activation is not None and activation.saturated >= SATURATED:
            return "saturated", (
                f"{activation.saturated:.0%} of the values of {activation.name} are on its flat "
                f"parts, at {activation.line}"
            )
        if gradient.size and not np.any(gradient):
            return "zero gradient", "all entries are 0, as those behind units that are off are"
        return self.size_verdict(leaf, gradient, ratio, has_updates)

    def size_verdict(
        self, leaf: int, gradient: Any, ratio: float | None, has_updates: bool
    ) -> tuple[str, str]:
        share = rms(gradient) / self.reference if self.reference else 1.0
        data = float(np.linalg.norm(np.asarray(self.leaves[leaf])))
        multiple = float(np.linalg.norm(gradient)) / data if data else 0.0
        if share > EXPLODING or multiple > EXPLODING:
            return "exploding", (
                f"its gradient is {share:.1g} times that of the last layer, and {multiple:.1g} "
                "times the parameter"
            )
        if share < VANISHING:
            if self.is_cancelled(leaf, gradient):
                return CANCELLED, (
                    "contributions to its gradient cancel up to rounding: a normalisation behind "
                    "it takes out what it adds"
                )
            return "vanishing", f"its gradient is {share:.1g} times that of the last layer"
        if has_updates and ratio is not None and ratio > LARGE_STEP:
            return "step too large", f"the update is {ratio:.2g} times the parameter"
        return HEALTHY, ""

    def why_dead(self, leaf: int, gradient: Any) -> str:
        """About dead units of the layer; empty if there are few."""
        activation = self.activation_behind(leaf)
        if activation is not None and activation.dead_share >= DEAD:
            return (
                f"{len(activation.dead)} of {activation.units} units of {activation.name} are off "
                f"for the whole batch, at {activation.line}"
            )
        if gradient.ndim != 2 or not np.any(gradient):
            return ""
        columns = ~np.any(gradient.reshape(-1, gradient.shape[-1]), axis=0)
        if columns.mean() < DEAD:
            return ""
        return f"{int(columns.sum())} of {len(columns)} columns of its gradient are 0"

    def activation_behind(self, leaf: int) -> Activation | None:
        """The activation function that its layer ends with, if there is one."""
        seen: set[Atom] = {self.names[leaf]}
        waiting = [self.names[leaf]]
        found = []
        while waiting:
            for equation in self.readers.get(waiting.pop(), []):
                if id(equation) in self.behind:
                    found.append(equation)
                    continue
                waiting += [v for v in equation.outputs if v not in seen]
                seen.update(equation.outputs)
        first = min(found, key=lambda e: self.order[id(e)], default=None)
        return None if first is None else self.behind[id(first)]

    def why_disconnected(self, leaf: int) -> str:
        """The operation without derivative, or that nothing uses the parameter."""
        depends = self.depending_on(leaf)
        if self.record.outputs[0] not in depends:
            return "the loss does not depend on it"
        for equation in self.cuts(leaf, depends):
            line = "" if equation.source is None else f", at {equation.source}"
            return f"{equation.primitive.name} has no derivative{line}"
        raise AssertionError("a parameter without cotangent is cut off somewhere")

    def depending_on(self, leaf: int) -> set[Atom]:
        found: set[Atom] = {self.names[leaf]}
        for equation in self.record.equations:
            if not found.isdisjoint(equation.inputs):
                found.update(equation.outputs)
        return found

    def cuts(self, leaf: int, depends: set[Atom]) -> list[Equation]:
        """Operations that cut a derivative: active operands, a result that counts as constant."""
        needed: set[Atom] = {self.record.outputs[0]}
        for equation in reversed(self.record.equations):
            if not needed.isdisjoint(equation.outputs):
                needed.update(a for a in equation.inputs if isinstance(a, Var))
        found: list[Equation] = []

        def look(equation: Equation, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
            was_active = any(isinstance(x, Tracer) for x in inputs)
            is_active = any(isinstance(x, Tracer) for x in outs)
            if was_active and not is_active and not needed.isdisjoint(equation.outputs):
                found.append(equation)

        values = [self.record.values[v] for v in self.record.inputs]
        is_leaf = [v is self.names[leaf] for v in self.record.inputs]
        linearize_flat(lambda *xs: self.record.run(xs, {}, look), values, is_leaf, self.record.name)
        return [e for e in found if not depends.isdisjoint(e.outputs)]

    @cached_property
    def cotangents(self) -> dict[Var, np.ndarray]:
        """Derivatives with respect to all that is computed directly from parameters."""
        readers = [e for i in self.active for e in self.readers.get(self.names[i], [])]
        return self.record.gradients([v for e in readers for v in e.outputs])

    def is_cancelled(self, leaf: int, gradient: Any) -> bool:
        """Whether the gradient is rounding noise of contributions that are far larger."""
        readers = self.readers[self.names[leaf]]
        total = np.zeros(gradient.shape)
        for equation in readers:
            operands = [self.record.value(a) for a in equation.inputs]
            place = equation.inputs.index(self.names[leaf])

            def apply(x: Any, e: Equation = equation, xs: Any = operands, i: int = place) -> Any:
                out = e.primitive.bind(*xs[:i], x, *xs[i + 1 :])
                return list(out) if e.primitive.multiple_results else [out]

            results, pull = vjp(apply, operands[place])
            cts = [
                np.abs(self.cotangents[v]).astype(v.aval.dtype)
                if v in self.cotangents
                else np.zeros_like(x)
                for v, x in zip(equation.outputs, results, strict=True)
            ]
            total += np.abs(pull(cts)[0])
        noise = float(np.sqrt(np.finfo(gradient.dtype).eps))
        return float(np.linalg.norm(gradient)) <= noise * float(np.linalg.norm(total))


def rms(gradient: Any) -> float:
    """Root mean square of the entries that are not 0: those of words that do not occur are."""
    entries = gradient[gradient != 0]
    return float(np.sqrt(np.mean(np.square(entries, dtype=np.float64)))) if entries.size else 0.0


def _moments(gradient: Any) -> tuple[float, float, float, float, float, float]:
    """Mean, standard deviation, least and largest entry, mean absolute value, share of zeros."""
    if not gradient.size:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    return (
        float(gradient.mean()),
        float(gradient.std()),
        float(gradient.min()),
        float(gradient.max()),
        float(np.abs(gradient).mean()),
        float((gradient == 0).mean()),
    )
