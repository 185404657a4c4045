"""Divided arrays on processes: ``python -m tests.distributed.shards FOLDER turns|laws|save|load``.

References are whole: an optimiser without wrappers and the mean of the gradients of all lanes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import distributed, lax, optim, random

RNG = np.random.default_rng(4)
PARAMS = {
    "w": RNG.normal(size=(5, 7)),
    "b": RNG.normal(size=3),
    "deep": [RNG.normal(size=(2, 3, 4))],
}
STEPS = 3


def normalized(updates: Any, params: Any = None) -> Any:
    """Updates divided by what needs all elements: means along an axis, extremes, sorted numbers."""

    def one(g: Any) -> Any:
        row = fnp.mean(fnp.abs(g), axis=-1, keepdims=True)
        extent = fnp.max(g) - fnp.min(g) + fnp.sort(g.reshape(-1))[0] ** 2
        return g / (row + extent) * fnp.prod(1 + 0.01 * fnp.tanh(g)) * fnp.all(fnp.isfinite(g))

    return fg.tree.map(one, updates)


def noisy(updates: Any, params: Any = None) -> Any:
    """Updates with random numbers for whole arrays."""
    return fg.tree.map(lambda g: g + 0.1 * random.normal(random.key(3), g.shape), updates)


def controlled(updates: Any, params: Any = None) -> Any:
    """Updates by loops and branches, with sums in conditions, and a carry that begins whole."""

    def one(g: Any) -> Any:
        total = fnp.sum(g)
        g = lax.cond(total > 0, lambda g: g / (1 + fnp.max(fnp.abs(g))), lambda g: 2 * g, g)
        rate, rows = np.arange(1.0, 4.0), np.zeros(g.shape)
        g, sums = lax.scan(lambda c, x: (c * x + 0.1, fnp.sum(c)), g, rate)
        g, _ = lax.while_loop(
            lambda c: fnp.sum(c[0] ** 2) > 1.0, lambda c: (0.5 * c[0], c[1] + 1), (g, 0)
        )
        return lax.scan(lambda c, x: (c + g * x, None), rows, rate)[0] + fnp.sum(sums)

    return fg.tree.map(one, updates)


def by_rows(updates: Any, params: Any = None) -> Any:
    """Updates by loops over rows, which make rows, sums of rows, and both ways."""

    def one(g: Any) -> Any:
        if g.ndim < 2:
            return g

        def row(total: Any, x: Any) -> Any:
            total = 0.5 * total + x / (1 + fnp.max(fnp.abs(x)))
            return total, (fnp.tanh(total) * x, fnp.sum(x))

        total, (rows, sums) = lax.scan(row, fnp.zeros(g.shape[1:]), g, reverse=True)
        return g + rows + total + fnp.sum(sums**2)

    return fg.tree.map(one, updates)


def averaged(updates: Any, params: Any = None) -> Any:
    """Updates that lanes compare, though they are equal already."""
    return fg.tree.map(lambda g: lax.pmean(g, "data"), updates)


def looked_up(updates: Any, params: Any = None) -> Any:
    """Loops that look rows up and write others, from both ends."""

    def of_array(g: Any) -> Any:
        if g.ndim < 2:
            return g
        n = len(g)
        at = lambda i: fnp.at(g)[i].get()  # noqa: E731

        def step(i: Any, made: Any) -> Any:
            row = at(i) + fnp.sum(at(n - 1 - i) ** 2)
            return made.at[i].set(0.5 * row)

        def rest(carry: Any) -> Any:
            i, made = carry
            return i + 1, made.at[i].add(2.0).at[fnp.stack([i, i + 1])].add(made[i] * at(i + 1))

        if g.ndim > 2:
            return lax.fori_loop(0, n, step, fnp.zeros_like(g))
        return lax.while_loop(lambda carry: carry[0] < n - 1, rest, (0, 0.5 * g))[1]

    return fg.tree.map(of_array, updates)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: optim.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optim.adam(optim.cosine_decay_schedule(0.1, 10)),
    "clipped": lambda: optim.chain(optim.clip_by_global_norm(0.5), optim.adamw(1e-2)),
    "lamb": lambda: optim.lamb(1e-2),
    "several": lambda: optim.MultiSteps(optim.adam(1e-2), 2),
    "finite": lambda: optim.apply_if_finite(optim.adam(1e-2), 2),
    "noisy": lambda: optim.chain(optim.stateless(noisy), optim.rmsprop(1e-2)),
    "controlled": lambda: optim.chain(optim.stateless(controlled), optim.adam(1e-2)),
    "by rows": lambda: optim.chain(optim.stateless(by_rows), optim.adam(1e-2)),
    "looked up": lambda: optim.chain(optim.stateless(looked_up), optim.adam(1e-2)),
    "normalized": lambda: optim.chain(optim.stateless(normalized), optim.adam(1e-2)),
}


def gradients(n: int) -> list[Any]:
    """For each step the gradients of all lanes, which are the first axis."""
    rng = np.random.default_rng(n)
    return [fg.tree.map(lambda p: rng.normal(size=(n, *p.shape)), PARAMS) for _ in range(STEPS)]


def expected(optimizer: Any, n: int) -> Any:
    """Parameters after all steps with the means of gradients."""
    params, state = PARAMS, optimizer.init(PARAMS)
    for each in gradients(n):
        mean = fg.tree.map(lambda g: g.mean(0), each)
        updates, state = optimizer.update(mean, state, params)
        params = optim.apply_updates(params, updates)
    return params


def with_divided_state(
    optimizer: Any, axis: str, least: int, **options: Any
) -> Callable[[Any], Any]:
    """From the gradients of a lane to parameters, where the state is divided."""
    sharded = distributed.sharded(optimizer, axis, least=least, **options)

    def run(each: Any) -> Any:
        params, state = PARAMS, sharded.init(PARAMS)
        for grads in each:
            updates, state = sharded.update(grads, state, params)
            params = optim.apply_updates(params, updates)
        return params

    return run


def with_divided_parameters(optimizer: Any, axis: str, least: int) -> Callable[[Any], Any]:
    """The same, where parameters and gradients are divided, too."""
    sharded = distributed.sharded(optimizer, axis, least=least)

    def linear(own: Any, grads: Any) -> Any:
        whole = distributed.unshard(own, axis)
        products = fg.tree.map(lambda p, g: fnp.sum(p * g), whole, grads)
        return sum(fg.tree.leaves(products))

    def run(each: Any) -> Any:
        own = distributed.flat_shard(PARAMS, axis, least=least)
        state = sharded.init(own)
        for grads in each:
            updates, state = sharded.update(fg.grad(linear)(own, grads), state, own)
            own = optim.apply_updates(own, updates)
        return distributed.unshard(own, axis)

    return run


def assert_near(found: Any, wanted: Any) -> None:
    for x, y in zip(fg.tree.leaves(found), fg.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


def laws(takes_turns: bool) -> None:
    """All optimisers, eagerly and compiled, or every fourth one in one way in turn."""
    n, i = distributed.size(), distributed.rank()
    own = fg.tree.map(lambda g: g[i], gradients(n))
    ways = (lambda f: f, fg.jit)
    for k, (name, make) in enumerate(OPTIMIZERS.items()):
        if takes_turns and k % 4:
            continue
        wanted = expected(make(), n)
        tries = list(product((with_divided_state, with_divided_parameters), ways, (1, 20)))
        for run, way, least in tries[k // 4 % 8 :: 8] if takes_turns else tries:
            f = run(make(), "data", least)
            with distributed.spmd():
                assert_near(way(f)(own), wanted)
        distributed.echo(name)
    messages()
    updates_in_turn()
    stacked_layers()


def messages() -> None:
    """Layers are gathered one ahead, and again for the backward pass; sums begin early."""
    n = 128
    params = [RNG.normal(size=(n, n)) / n for _ in range(4)]
    x = RNG.normal(size=(32, n))

    def layer(w: Any, x: Any) -> Any:
        return fnp.tanh(x @ w)

    def again(own: Any, x: Any) -> Any:
        return layer(distributed.unshard(own), x)

    def loss(own: Any, x: Any, layer: Any) -> Any:
        for w in own:
            x = layer(w, x)
        return fnp.sum(x**2)

    with distributed.spmd():
        own = distributed.flat_shard(params)
        wanted = fg.grad(lambda p: loss(p, x, layer) * distributed.size())(params)
        # Products: 4 forward, 4 for weights, 3 for what layers got; 4 where all is computed again.
        for f, products, gathered in (
            (fg.checkpoint(again), 15, 8),
            (distributed.fully_sharded(layer), 11, 7),
        ):
            f = fg.jit(fg.grad(lambda own, x, f=f: loss(own, x, f)))
            assert_near(distributed.unshard(f(own, x)), wanted)
            text = f.lower(own, x).as_text().partition("# kernel 0")[0]
            if distributed.size() > 1:
                begun = text.count("all_gather by MPI_Iallgather")
                assert text.count("matrix product") == products, text
                assert text.count("all_gather by MPI_Allgather") + begun == gathered, text
                assert text.index("MPI_Iallgather") < text.index("matrix product"), text
                # A sum is made where its gradient is: other products follow.
                sent = text.index("psum_scatter by")
                assert "matrix product" in text[sent:], text


def updates_in_turn() -> None:
    """Of whole updates there is one at a time: each is gathered in front of its addition."""
    params = [np.ones((96, 128), np.float32)] * 4
    optimizer = distributed.sharded(optim.adam(0.1))

    def step(params: Any, state: Any) -> Any:
        updates, state = optimizer.update(params, state, params)
        return optim.apply_updates(params, updates), state

    with distributed.spmd():
        state = optimizer.init(params)
        text = fg.jit(step).lower(params, state).as_text()
    plan = text[text.index("\nplan") : text.index("# kernel 0")]
    steps = [line for line in plan.splitlines() if "all_gather" in line or "apply_updates" in line]
    kinds = ["all_gather" in line for line in steps if "[all_gather]" not in line]
    if distributed.size() > 1:
        assert kinds == [True, False] * 4, plan


def stacked_layers() -> None:
    """Layers that a scan goes over are gathered one by one, forward and backward."""
    ws, x = RNG.normal(size=(5, 6, 6)) / 3, RNG.normal(size=(3, 6))
    optimizer = optim.chain(optim.clip_by_global_norm(0.1), optim.lamb(1e-2))
    sharded = distributed.sharded(optimizer, least=1)
    layer = distributed.fully_sharded(lambda w, x: fnp.tanh(x @ w))

    def loss(ws: Any, layer: Any) -> Any:
        return fnp.sum(lax.scan(lambda x, w: (layer(w, x), None), x, ws)[0] ** 2)

    def step(own: Any, state: Any) -> Any:
        updates, state = sharded.update(fg.grad(loss)(own, layer), state, own)
        return optim.apply_updates(own, updates), state

    wanted, state = ws, optimizer.init(ws)
    for _ in range(2):
        grads = fg.grad(loss)(wanted, lambda w, x: fnp.tanh(x @ w))
        updates, state = optimizer.update(grads, state, wanted)
        wanted = optim.apply_updates(wanted, updates)
    for way in (lambda f: f, fg.jit):
        with distributed.spmd():
            own = distributed.flat_shard(ws, least=1, stacked=True)
            assert own.part.shape == (5, -(-36 // distributed.size()))
            state = sharded.init(own)
            for _ in range(2):
                own, state = way(step)(own, state)
            assert_near(distributed.unshard(own), wanted)


def laplacian(wide: Any) -> Any:
    """A stencil of two axes that is not linear and not symmetric."""
    return wide[2:, 1:-1] * wide[1:-1, 2:] + wide[:-2, :-2] - 4 * wide[1:-1, 1:-1] ** 2


def stage(w: Any, x: Any) -> Any:
    """A layer that has no value at zeros."""
    return fnp.tanh(x @ w) / fnp.sum(x**2)


def staged(ws: Any, xs: Any) -> Any:
    """All layers, one after the other."""
    for w in ws:
        xs = fnp.stack([stage(w, x) for x in xs])
    return xs


def neighbours() -> None:
    """Halos and pipelines on ranks, and their gradients, against one process."""
    n, i = distributed.size(), distributed.rank()
    x = RNG.normal(size=(3 * n, 6))
    ws, xs = RNG.normal(size=(n, 4, 4)), RNG.normal(size=(5, 2, 4))

    def halved(x: Any, mode: str) -> Any:
        wide = distributed.halo(x, axis_name="data", mode=mode)
        return laplacian(fnp.pad(wide, ((0, 0), (1, 1))))

    with distributed.spmd():
        own = distributed.shard(x)
        for mode in ("constant", "edge", "wrap"):
            pad = lambda x, m=mode: fnp.pad(fnp.pad(x, ((1, 1), (0, 0)), m), ((0, 0), (1, 1)))  # noqa: E731
            of_part = lambda x, m=mode: fnp.sum(halved(x, m) ** 2)  # noqa: E731
            wanted = fg.grad(lambda x, pad=pad: fnp.sum(laplacian(pad(x)) ** 2))(x)
            assert_near(
                distributed.gather(fg.jit(lambda x, m=mode: halved(x, m))(own)), laplacian(pad(x))
            )
            assert_near(distributed.gather(fg.jit(fg.grad(of_part))(own)), wanted)
        run = lambda w: distributed.pipeline(fg.checkpoint(stage), w, xs)  # noqa: E731
        assert_near(lax.psum(fg.jit(run)(ws[i]), "data"), staged(ws, xs))
        wanted = fg.grad(lambda ws: fnp.sum(staged(ws, xs) ** 2))(ws)
        assert_near(fg.jit(fg.grad(lambda w: fnp.sum(run(w) ** 2)))(ws[i]), wanted[i])


def quarters() -> None:
    """A stencil of quarters of a plane, on two by two ranks, and its gradient."""
    x = RNG.normal(size=(8, 6))

    def own(x: Any) -> Any:
        return x.reshape(2, 4, 2, 3)[int(lax.axis_index("i")), :, int(lax.axis_index("j"))]

    def of_part(x: Any) -> Any:
        return laplacian(distributed.halo(x, 1, (0, 1), ("i", "j"), mode="edge"))

    with distributed.mesh({"i": 2, "j": 2}):
        whole = lambda x: laplacian(fnp.pad(x, 1, "edge"))  # noqa: E731
        assert_near(fg.jit(of_part)(own(x)), own(whole(x)))
        found = fg.jit(fg.grad(lambda x: fnp.sum(of_part(x) ** 2)))(own(x))
        assert_near(found, own(fg.grad(lambda x: fnp.sum(whole(x) ** 2))(x)))


def state() -> Any:
    """A state to be saved, which differs between numbers of processes only in how it is divided."""
    own = distributed.flat_shard(PARAMS, least=4)
    kept = distributed.sharded(optim.adam(1e-2), least=4).init(PARAMS)
    return {"params": own, "state": kept, "step": 3, "small": np.arange(3), "none": None}


def main() -> None:
    folder, what = Path(sys.argv[1]), sys.argv[2]
    if what in ("laws", "turns"):
        laws(what == "turns")
        neighbours()
        if distributed.size() == 4:
            quarters()
    with distributed.spmd():
        if what == "save":
            for _ in range(2):
                distributed.save(folder / "state", state())
        if what == "load":
            found = distributed.load(folder / "state", like=state())
            assert_near(distributed.unshard(found["params"]), PARAMS)
            assert fg.tree.structure(found) == fg.tree.structure(state())
            assert (found["step"], found["none"]) == (3, None)
        distributed.echo(f"{what} holds on {distributed.size()}")


if __name__ == "__main__":
    main()
