"""Programs of `shard_map` beside whole computations by NumPy, in one process or on ranks.

``mpiexec -n N python sharded.py`` runs them on N processes, each of which checks all results. The
derivatives of the whole computations are complex steps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import funcgrad as fg
from funcgrad import P, lax

RNG = np.random.default_rng(0)
MESH = fg.make_mesh((4, 2), ("x", "y"))
W, U = RNG.normal(size=(6, 6)) / 3, RNG.normal(size=(6, 6)) / 3
X, V = RNG.normal(size=(8, 6)), RNG.normal(size=(8, 6))
RING = [(k, (k + 1) % 4) for k in range(4)]
PAIRS = [[0, 2], [1, 3]]
HALVES = [[6, 0, 1, 2], [3, 4, 5, 7]]
FACTORS = np.arange(1.0, 9.0)[:, None]
MOVED = (7, -1, -1, 3, -1, 0, -1, -1)
"""Where lanes receive from, if anybody sends to them."""


class Case(NamedTuple):
    """A function of parts, and the same of whole arrays.

    Args:
        parts: Of a matrix that several lanes read, and of one that is divided.
        whole: The same by NumPy.
        in_specs: How the two matrices are divided.
        out_specs: How the result is put together.
    """

    parts: Callable[..., Any]
    whole: Callable[..., Any]
    in_specs: Any = (P(), P("x"))
    out_specs: Any = P()


def scanned(w: Any, x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        c = np.tanh(c @ w)
        return c, lax.pmean(c, "x")

    c, means = lax.scan(step, x, None, length=3)
    return lax.psum(np.sum(c), "x") + np.sum(means)


def scanned_whole(w: Any, x: Any) -> Any:
    total: Any = 0.0
    for _ in range(3):
        x = np.tanh(x @ w)
        total = total + np.sum(np.mean(x.reshape(4, 2, 6), 0))
    return np.sum(x) + total


def looped(w: Any, x: Any) -> Any:
    def step(state: Any) -> Any:
        k, c = state
        return k + 1, np.sin(c @ w)

    return lax.psum(np.sum(lax.while_loop(lambda s: s[0] < 3, step, (0, x))[1] ** 2), "x")


def looped_whole(w: Any, x: Any) -> Any:
    for _ in range(3):
        x = np.sin(x @ w)
    return np.sum(x**2)


def branched(w: Any, x: Any) -> Any:
    """A branch that mixes parts with what all share, and one that has the latter alone."""
    is_first = lax.axis_index("x") == 0
    out = lax.cond(is_first, lambda x: np.sin(x @ w), lambda x: np.exp(x / 9) * w[0], x)
    return lax.psum(np.sum(out), "x")


def branched_whole(w: Any, x: Any) -> Any:
    return np.sum(np.sin(x[:2] @ w)) + np.sum(np.exp(x[2:] / 9) * w[0])


@fg.custom_vjp
def by_rule(w: Any, x: Any) -> Any:
    return np.sin(x @ w)


def _pulled(known: Any, ct: Any) -> Any:
    w, x = known
    ct = ct * np.cos(x @ w)
    return x.T @ ct, ct @ w.T


by_rule.defvjp(lambda w, x: (by_rule(w, x), (w, x)), _pulled)


def layer(w: Any, x: Any) -> Any:
    """A block whose units are divided: the sum of a product of parts."""
    return lax.psum(np.tanh(x @ w) @ w.T, "y")


def looped_by_lane(w: Any, x: Any) -> Any:
    """As many steps as the number of the lane."""

    def step(state: Any) -> Any:
        k, c = state
        return k + 1, np.sin(c @ w)

    end = lax.axis_index("x")
    return lax.psum(np.sum(lax.while_loop(lambda s: s[0] < end, step, (0, x))[1] ** 2), "x")


def looped_by_lane_whole(w: Any, x: Any) -> Any:
    total: Any = 0.0
    for k, part in enumerate(x.reshape(4, 2, 6)):
        for _ in range(k):
            part = np.sin(part @ w)
        total = total + np.sum(part**2)
    return total


def named(w: Any, x: Any) -> Any:
    return lax.psum(
        np.sum(fg.vmap(lambda row: lax.psum(row @ w, "rows") ** 2, axis_name="rows")(x)), "x"
    )


def named_whole(w: Any, x: Any) -> Any:
    return 2 * np.sum((x @ w).reshape(4, 2, 6).sum(1) ** 2)


def accumulated(w: Any, x: Any) -> Any:
    """Terms of a sum, which a loop adds up before it is formed."""

    def step(total: Any, row: Any) -> Any:
        return total + lax.pcast(np.sin(row @ w), "x", to="unreduced"), None

    start = lax.pcast(0 * x[0], "x", to="unreduced")
    return np.sum(lax.psum(lax.scan(step, start, x)[0], "x") ** 2)


SPLIT = (P(reduced={"x"}), P("x"))

LOSSES = {
    "reduced": Case(
        lambda w, x: lax.psum(np.sum(np.sin(x @ (w + w.T))), "x"),
        lambda w, x: np.sum(np.sin(x @ (w + w.T))),
        SPLIT,
    ),
    "reduced in cond": Case(fg.checkpoint(branched), branched_whole, SPLIT),
    "reduced in custom_vjp": Case(
        lambda w, x: lax.psum(np.sum(by_rule(w, x)), "x"), lambda w, x: np.sum(np.sin(x @ w)), SPLIT
    ),
    "unreduced": Case(
        lambda w, x: lax.psum(np.sum(np.sin(x @ lax.psum(2 * w.T, "x"))), "x"),
        lambda w, x: np.sum(np.sin(x @ (2 * w.T))),
        (P(unreduced={"x"}), P("x")),
    ),
    "terms of a sum": Case(accumulated, lambda w, x: np.sum(np.sum(np.sin(x @ w), 0) ** 2), SPLIT),
    "terms in jit": Case(
        fg.jit(accumulated), lambda w, x: np.sum(np.sum(np.sin(x @ w), 0) ** 2), SPLIT
    ),
    "terms are scattered": Case(
        lambda w, x: (
            lax.psum(
                np.sum(
                    lax.psum_scatter(lax.pcast(x.T @ x, "y", to="unreduced"), "y", tiled=True) ** 2
                ),
                "y",
            )
            + 0 * np.sum(w)
        ),
        lambda w, x: np.sum((x.T @ x) ** 2) + 0 * np.sum(w),
        (P(), P("y")),
    ),
    "while_loop by lane": Case(looped_by_lane, looped_by_lane_whole),
    "a named axis inside": Case(named, named_whole),
    "products": Case(
        lambda w, x: lax.psum(np.sum(np.sin(x @ w)), "x"), lambda w, x: np.sum(np.sin(x @ w))
    ),
    "scan": Case(scanned, scanned_whole),
    "while_loop": Case(looped, looped_whole),
    "cond": Case(branched, branched_whole),
    "jit": Case(fg.jit(scanned), scanned_whole),
    "checkpoint": Case(fg.checkpoint(scanned), scanned_whole),
    "custom_vjp": Case(
        lambda w, x: lax.psum(np.sum(by_rule(w, x)), "x"), lambda w, x: np.sum(np.sin(x @ w))
    ),
    "both axes": Case(
        lambda w, x: lax.psum(np.sum(np.sin(lax.psum(x @ w, "y"))), "x"),
        lambda w, x: np.sum(np.sin(x @ w)),
        (P("y"), P("x", "y")),
    ),
    "vmap": Case(
        lambda w, x: lax.psum(np.sum(fg.vmap(lambda row: np.sin(row @ w))(x)), "x"),
        lambda w, x: np.sum(np.sin(x @ w)),
    ),
    "pmean of a square": Case(
        lambda w, x: lax.pmean(np.mean((x @ w) ** 2), "x"), lambda w, x: np.mean((x @ w) ** 2)
    ),
    "equal in all lanes": Case(lambda w, x: np.sum(np.sin(w)), lambda w, x: np.sum(np.sin(w))),
}
"""Functions of one number, equal in all lanes."""

ARRAYS = {
    "a sum left for later": Case(
        lambda w, x: 2 * lax.pcast(x.T @ (x @ w), "x", to="unreduced")[:4],
        lambda w, x: 2 * (x.T @ (x @ w))[:4],
        out_specs=P(unreduced={"x"}),
    ),
    "copies that are reduced": Case(
        lambda w, x: (lax.all_gather(x @ w, "x", tiled=True, to="reduced").T, np.sin(w)),
        lambda w, x: ((x @ w).T, np.sin(w)),
        SPLIT,
        P(reduced={"x"}),
    ),
    "identity": Case(lambda w, x: x, lambda w, x: x, out_specs=P("x")),
    "transposed parts": Case(lambda w, x: x.T, lambda w, x: x.T, (P(), P("x", "y")), P("y", "x")),
    "two names": Case(lambda w, x: 2 * x, lambda w, x: 2 * x, (P(), P(("y", "x"))), P(("y", "x"))),
    "copies": Case(lambda w, x: w * 1, lambda w, x: np.tile(w, (4, 1)), out_specs=P("x")),
    "a divided layer": Case(layer, lambda w, x: np.tanh(x @ w) @ w.T, (P(None, "y"), P()), P()),
    "all_gather": Case(
        lambda w, x: lax.all_gather(x @ w, "x", tiled=True) * (1 + lax.axis_index("x")),
        lambda w, x: np.concatenate([(x @ w) * (k + 1) for k in range(4)]),
        out_specs=P("x"),
    ),
    "psum_scatter": Case(
        lambda w, x: lax.psum_scatter(np.tile(x @ w, (4, 1)), "x", tiled=True),
        lambda w, x: np.tile((x @ w).reshape(4, 2, 6).sum(0), (4, 1)),
        out_specs=P("x"),
    ),
    "ppermute": Case(
        lambda w, x: lax.ppermute(x @ w, "x", RING),
        lambda w, x: np.roll(x @ w, 2, 0),
        out_specs=P("x"),
    ),
    "ppermute to some": Case(
        lambda w, x: lax.ppermute(x @ w, "x", RING[:2]),
        lambda w, x: np.concatenate([0 * x[:2], (x @ w)[:4], 0 * x[:2]]),
        out_specs=P("x"),
    ),
    "all_to_all": Case(
        lambda w, x: lax.all_to_all(np.tile(x, (2, 1)), "x", 0, 0),
        lambda w, x: np.stack(
            [np.tile(x[2 * j : 2 * j + 2], (2, 1))[k] for k in range(4) for j in range(4)]
        ),
        out_specs=P("x"),
    ),
    "all_gather of one": Case(
        lambda w, x: lax.all_gather(x @ w, "x", tiled=True, to="invarying"),
        lambda w, x: x @ w,
    ),
    "stacks of one": Case(
        lambda w, x: lax.all_gather(x @ w, "x", axis=1, to="invarying"),
        lambda w, x: (x @ w).reshape(4, 2, 6).swapaxes(0, 1),
    ),
    "psum_scatter along two axes": Case(
        lambda w, x: lax.psum_scatter(np.tile(x @ w, (8, 1)) * FACTORS, ("x", "y"), tiled=True),
        lambda w, x: np.sum(x @ w, 0) * FACTORS,
        (P(), P(("x", "y"))),
        P(("x", "y")),
    ),
    "ppermute along two axes": Case(
        lambda w, x: lax.ppermute(x @ w, ("x", "y"), [(0, 5), (7, 0), (3, 3)]),
        lambda w, x: np.stack([(x @ w)[k] if k >= 0 else 0 * w[0] for k in MOVED]),
        (P(), P(("x", "y"))),
        P(("x", "y")),
    ),
    "all_to_all along two axes": Case(
        lambda w, x: lax.all_to_all(np.tile(x @ w, (8, 1)) * FACTORS, ("x", "y"), 0, 0),
        lambda w, x: np.concatenate([(x @ w) * FACTORS[k] for k in range(8)]),
        (P(), P(("x", "y"))),
        P(("x", "y")),
    ),
    "psum in groups": Case(
        lambda w, x: lax.psum(x @ w, "x", axis_index_groups=PAIRS),
        lambda w, x: np.tile((x @ w).reshape(2, 2, 2, 6).sum(0), (2, 1, 1)).reshape(8, 6),
        out_specs=P("x"),
    ),
    "all_gather in groups along two axes": Case(
        lambda w, x: lax.all_gather(x, ("x", "y"), axis_index_groups=HALVES, tiled=True),
        lambda w, x: np.concatenate([x[h] for k in range(8) for h in HALVES if k in h]),
        (P(), P(("x", "y"))),
        P(("x", "y")),
    ),
    "psum_scatter in groups": Case(
        lambda w, x: lax.psum_scatter(x @ w, "x", axis_index_groups=PAIRS, tiled=True),
        lambda w, x: (x @ w).reshape(2, 2, 2, 6).sum(0).swapaxes(0, 1).reshape(4, 6),
        out_specs=P("x"),
    ),
    "all_to_all in groups": Case(
        lambda w, x: lax.all_to_all(x @ w, "x", 0, 0, axis_index_groups=PAIRS),
        lambda w, x: (x @ w).reshape(2, 2, 2, 6).swapaxes(0, 2).reshape(8, 6),
        out_specs=P("x"),
    ),
    "axis_index": Case(
        lambda w, x: x * lax.axis_index(("x", "y")),
        lambda w, x: x * np.repeat(np.arange(8), 6).reshape(4, 2, 6).repeat(1, 0).reshape(8, 6),
        (P(), P(("x", "y"))),
        P(("x", "y")),
    ),
    "pmax": Case(
        lambda w, x: lax.pmax(x, "x") * x,
        lambda w, x: np.tile(_largest(x.reshape(4, 2, 6)), (4, 1)) * x,
        out_specs=P("x"),
    ),
    "a tree": Case(
        lambda w, x: {"a": (x, lax.psum(x, "x")), "b": np.sum(w)},
        lambda w, x: {"a": (x, x.reshape(4, 2, 6).sum(0)), "b": np.sum(w)},
        out_specs={"a": (P("x"), P()), "b": P()},
    ),
}
"""Functions of arrays."""


def _largest(x: Any) -> Any:
    """The largest real parts along the first axis, with their imaginary ones."""
    return np.take_along_axis(x, np.argmax(x.real, 0)[None], 0)[0]


def sharded(case: Case, **options: Any) -> Callable[..., Any]:
    """The function of whole arrays."""
    return fg.shard_map(
        case.parts, mesh=MESH, in_specs=case.in_specs, out_specs=case.out_specs, **options
    )


def slope(f: Callable[..., Any], w: Any, x: Any) -> Any:
    """The derivative of a function of NumPy along ``(U, V)``."""
    step = 1e-30
    return fg.tree.map(lambda y: np.imag(y) / step, f(w + 1j * step * U, x + 1j * step * V))


def near(found: Any, expected: Any, what: str) -> None:
    """Check all leaves."""
    assert fg.tree.structure(found) == fg.tree.structure(expected), what
    for a, b in zip(fg.tree.leaves(found), fg.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, 1e-10, 1e-10, err_msg=what)


WAYS: tuple[Callable[..., Any], ...] = (lambda f: f, fg.jit)
"""Functions are evaluated, and compiled."""


def check_array(name: str, ways: Sequence[Callable[..., Any]] = WAYS) -> None:
    """Values and derivatives of a function of arrays, eager and compiled."""
    case = ARRAYS[name]
    f = sharded(case)
    for wrap in ways:
        near(wrap(f)(W, X), case.whole(W, X), name)
        out, dot = wrap(lambda w, x: fg.jvp(f, (w, x), (U, V)))(W, X)
        near(out, case.whole(W, X), name)
        near(dot, slope(case.whole, W, X), f"jvp of {name}")

        def loss(f: Callable[..., Any]) -> Callable[..., Any]:
            return lambda w, x: sum(np.sum(np.sin(y)) for y in fg.tree.leaves(f(w, x)))

        of_w, of_x = wrap(fg.grad(loss(f), (0, 1)))(W, X)
        near(np.sum(of_w * U) + np.sum(of_x * V), slope(loss(case.whole), W, X), f"grad of {name}")


def check_loss(name: str, ways: Sequence[Callable[..., Any]] = WAYS) -> None:
    """Values of a loss, and gradients taken outside and inside, of second order as well."""
    case = LOSSES[name]
    f = sharded(case)
    value, expected = case.whole(W, X), slope(case.whole, W, X)

    def along(gradients: Any) -> Any:
        return np.sum(gradients[0] * U) + np.sum(gradients[1] * V)

    inner = fg.shard_map(
        fg.grad(case.parts, (0, 1)),
        mesh=MESH,
        in_specs=case.in_specs,
        out_specs=tuple(spec.dual for spec in case.in_specs),
    )
    for wrap in ways:
        near(wrap(f)(W, X), value, name)
        near(along(wrap(fg.grad(f, (0, 1)))(W, X)), expected, f"gradient outside of {name}")
        near(along(wrap(inner)(W, X)), expected, f"gradient inside of {name}")
    if WAYS[0] not in ways:
        return
    outer_second = fg.grad(lambda w: along(fg.grad(f, (0, 1))(w, X)))(W)
    inner_second = fg.grad(lambda w: along(inner(w, X)))(W)
    near(inner_second, outer_second, f"second derivative of {name}")
    if "custom_vjp" not in name:
        near(fg.jvp(f, (W, X), (U, V)), (value, expected), f"jvp of {name}")
        step = 1e-5
        near_by = [along(fg.grad(f, (0, 1))(W + s * U, X)) for s in (step, -step)]
        difference = (near_by[0] - near_by[1]) / (2 * step)
        np.testing.assert_allclose(np.sum(outer_second * U), difference, 1e-6, 1e-6)


def check_untracked() -> None:
    """Without tracking a lane's gradient is that of the sum of all lanes, and results are taken."""

    def parts(w: Any, x: Any) -> Any:
        return lax.psum(np.sum(x @ w), "x")

    case = Case(parts, lambda w, x: np.sum(x @ w))
    f = sharded(case, check_vma=False)
    near(f(W, X), np.sum(X @ W), "value")
    near(fg.grad(f)(W, X), X.T @ np.ones((8, 6)), "gradient outside")
    inner = fg.shard_map(
        lambda w, x: fg.grad(parts)(w, x)[None],
        mesh=MESH, in_specs=case.in_specs, out_specs=P("x"), check_vma=False,
    )  # fmt: skip
    lanes = np.stack([4 * x.T @ np.ones((2, 6)) for x in X.reshape(4, 2, 6)])
    near(inner(W, X), lanes, "gradient inside")
    first = fg.shard_map(lambda x: x, mesh=MESH, in_specs=P("x"), out_specs=P(), check_vma=False)
    near(first(X), X[:2], "the first lane")


def check_around() -> None:
    """Loops and branches around `shard_map`, whose predicates see whole arrays."""
    spec = P("x")
    step = fg.shard_map(
        lambda x: x / 2 + lax.pmean(x, "x") / 8, mesh=MESH, in_specs=spec, out_specs=spec
    )

    def whole_step(x: Any) -> Any:
        return x / 2 + np.tile(x.reshape(4, 2, 6).mean(0), (4, 1)) / 8

    def around(step: Callable[..., Any], x: Any) -> Any:
        x = lax.while_loop(lambda x: x.max() > 0.1, step, x)
        return lax.cond(x.sum() > -100, step, lambda x: x, x)

    expected = around(whole_step, X)
    for f in (lambda f: f, fg.jit):
        near(f(lambda x: around(step, x))(X), expected, "around")


def main(takes_turns: bool) -> None:
    """Run all checks; if they take turns, every eighth one, in turn eagerly and compiled."""
    named = [*((check_array, name) for name in ARRAYS), *((check_loss, name) for name in LOSSES)]
    for i, (check, name) in enumerate(named[:: 8 if takes_turns else 1]):
        check(name, WAYS[i % 2 : i % 2 + 1] if takes_turns else WAYS)
    check_untracked()
    check_around()
    fg.distributed.echo(f"{len(named) + 1} checks hold on {fg.distributed.size()}")


if __name__ == "__main__":
    main("turns" in sys.argv)
