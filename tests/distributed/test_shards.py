"""Arrays of which every process has a part: optimisers, messages, checkpoints, and crashes."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad import data, distributed, optim
from funcgrad.distributed import flat_shards
from funcgrad.errors import ArgumentError, ShapeError, TreeError
from tests.distributed import faults, memory, shards
from tests.distributed.launching import needs_mpi, run
from tests.examples.program import load
from tests.examples.program import run as run_example

LANES = 4


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("divide", "least"), [(shards.with_divided_state, 20), (shards.with_divided_parameters, 1)]
)
@pytest.mark.parametrize("name", shards.OPTIMIZERS)
def test_divided_optimisers_are_those_of_whole_arrays(name, divide, least):
    make = shards.OPTIMIZERS[name]
    wanted = shards.expected(make(), LANES)
    f = fg.vmap(divide(make(), "data", least), axis_name="data")
    for mapped in (f, fg.jit(f)):
        found = mapped(shards.gradients(LANES))
        for lane in range(LANES):
            shards.assert_near(fg.tree.map(lambda x, i=lane: x[i], found), wanted)


@pytest.mark.parametrize("name", ["several", "finite", "looped", "looked up"])
def test_loops_and_branches_keep_parts(name, monkeypatch):
    """An optimiser that runs in one gathers nothing if each step needs corresponding elements.

    Of an array whose rows a loop looks up it gathers one row at a time.
    """

    def looped(updates, params=None):
        def one(g):
            return fg.lax.fori_loop(0, 3, lambda i, c: 0.5 * c + g, g)

        return fg.tree.map(one, updates)

    made = {**shards.OPTIMIZERS, "looped": lambda: optim.stateless(looped)}[name]()
    gathered = []
    whole = flat_shards.AxisOfShards.whole

    def counted(self, part, shape):
        gathered.append(shape)
        return whole(self, part, shape)

    monkeypatch.setattr(flat_shards.AxisOfShards, "whole", counted)
    optimizer = distributed.sharded(made, "data", least=1)

    def run(g):
        own = distributed.flat_shard(g, "data", least=1)
        updates, _ = optimizer.update(own, optimizer.init(own), own)
        return updates["w"].part

    for mapped in (fg.vmap(run, axis_name="data"), fg.jit(fg.vmap(run, axis_name="data"))):
        assert mapped({"w": np.ones((LANES, 6, 4))}).shape == (LANES, 6)
    assert set(gathered) <= ({(4,)} if name == "looked up" else set())


def test_parameters_that_are_whole_beside_parts_get_whole_updates():
    """Rows of stacked arrays may be too small to be divided where all of them are not."""
    params = {"w": np.ones((3, 4, 4)), "b": np.ones((3, 4)), "c": np.ones(5)}
    grads = fg.tree.map(lambda p: np.arange(2.0 * p.size).reshape(2, *p.shape) / 9, params)
    optimizer = optim.chain(optim.clip_by_global_norm(0.5), optim.adam(0.1))
    sharded = distributed.sharded(optimizer, "data", least=8)

    def run(g):
        own = distributed.flat_shard(params, "data", least=8, stacked=True)
        state = sharded.init(own)
        for _ in range(2):
            total = lambda own: sum((distributed.unshard(own[k], "data") * g[k]).sum() for k in g)  # noqa: E731
            updates, state = sharded.update(fg.grad(total)(own), state, own)
            own = optim.apply_updates(own, updates)
        assert isinstance(own["w"], distributed.FlatShard)
        assert own["b"].shape == (3, 4)
        return distributed.unshard(own, "data")

    wanted, state = params, optimizer.init(params)
    for _ in range(2):
        mean = fg.tree.map(lambda g: g.mean(0), grads)
        updates, state = optimizer.update(mean, state, wanted)
        wanted = optim.apply_updates(wanted, updates)
    for mapped in (fg.vmap(run, axis_name="data"), fg.jit(fg.vmap(run, axis_name="data"))):
        shards.assert_near(fg.tree.map(lambda x: x[1], mapped(grads)), wanted)


def test_gradients_that_are_summed_or_equal_already():
    wanted = shards.expected(optim.adam(0.1), LANES)
    each = shards.gradients(LANES)
    means = fg.tree.map(lambda g: np.broadcast_to(g.mean(0), g.shape), each)
    shares = fg.tree.map(lambda g: g / LANES, each)
    for reduce, given_ in ((None, means), ("sum", shares)):
        f = shards.with_divided_state(optim.adam(0.1), "data", 1, reduce=reduce)
        found = fg.vmap(f, axis_name="data")(given_)
        shards.assert_near(fg.tree.map(lambda x: x[0], found), wanted)


@given(st.lists(st.integers(1, 5), max_size=3), st.integers(1, 6), st.integers(1, 12))
def test_any_array_is_divided_and_put_together(shape, n, least):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)

    def f(_):
        own = distributed.flat_shard({"x": x}, "data", least=least)
        is_divided = isinstance(own["x"], distributed.FlatShard)
        assert is_divided == (bool(shape) and x.size >= least)
        if is_divided:
            assert own["x"].part.shape == (-(-x.size // n),)
        return distributed.unshard(own, "data")["x"]

    np.testing.assert_array_equal(
        fg.vmap(f, axis_name="data")(np.zeros(n)), np.broadcast_to(x, (n, *shape))
    )


def test_short_messages_round_each_gradient_once():
    rng = np.random.default_rng(0)
    grads = rng.normal(size=(LANES, 60)).astype(np.float32)
    grads[:, :4] = [[np.inf, -np.inf, np.nan, 0.0]] * LANES
    optimizer = distributed.sharded(optim.sgd(1.0), "data", least=1, message_dtype="bfloat16")

    def f(g):
        return optimizer.update(g, optimizer.init(g), g)[0]

    found = fg.jit(fg.vmap(f, axis_name="data"))(grads)
    with np.errstate(invalid="ignore"):
        wanted = -grads.mean(0)
    np.testing.assert_array_equal(found[0, :3], wanted[:3])
    # bfloat16 has 8 bits of which the first is implied.
    bound = np.abs(grads[:, 3:] / LANES).sum(0) * 2.0**-8 * (1 + 2.0**-12)
    assert np.all(np.abs(found[:, 3:] - wanted[3:]) <= bound)
    assert found.dtype == np.float32


def test_what_is_not_among_the_largest_is_sent_later():
    rng = np.random.default_rng(1)
    grads = rng.normal(size=(LANES, 8, 5))
    tx = distributed.top_k_mean(0.2, "data")

    def f(g):
        state = tx.init(np.zeros((8, 5)))
        sent = []
        for _ in range(6):
            mean, state = tx.update(g, state)
            sent.append(mean)
        return np.stack(sent), state.errors.part

    for mapped in (fg.vmap(f, axis_name="data"), fg.jit(fg.vmap(f, axis_name="data"))):
        sent, kept = mapped(grads)
        assert np.all(sent == sent[0])
        assert np.all(np.count_nonzero(sent[0].reshape(6, -1), axis=1) <= LANES * 8)
        # Nothing is lost: what was given is what was sent, and what is kept.
        total = sent[0].sum(0).reshape(-1) * LANES + kept.sum(0)
        np.testing.assert_allclose(total, 6 * grads.sum(0).reshape(-1), rtol=1e-12, atol=1e-12)


def test_optimisers_in_which_lanes_meet():
    meeting = optim.chain(optim.stateless(shards.averaged), optim.adam(0.1))
    wanted = shards.expected(optim.adam(0.1), LANES)
    f = fg.vmap(shards.with_divided_state(meeting, "data", 1), axis_name="data")
    for mapped in (f, fg.jit(f)):
        found = mapped(shards.gradients(LANES))
        shards.assert_near(fg.tree.map(lambda x: x[0], found), wanted)


def test_under_shard_map():
    mesh = fg.make_mesh((LANES,), ("data",))
    f = shards.with_divided_state(optim.adam(0.1), "data", 1)
    own = lambda gs: f(fg.tree.map(lambda g: g[0], gs))  # noqa: E731
    spec = fg.P("data")
    mapped = fg.shard_map(own, mesh=mesh, in_specs=spec, out_specs=fg.P(), check_vma=False)
    wanted = shards.expected(optim.adam(0.1), LANES)
    shards.assert_near(mapped(shards.gradients(LANES)), wanted)


@pytest.mark.nightly
@pytest.mark.skipif(not importlib.util.find_spec("optax"), reason="there is no optax")
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=needs_mpi)])
def test_optimisers_of_optax(n):
    command = ("-m", "tests.distributed.optax_shards")
    if n > 1:
        assert f"optax holds on {n}" in run(n, *command, timeout=600)
        return
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, timeout=600
    )
    assert "optax holds on 1" in done.stdout, done.stderr


@needs_mpi
@pytest.mark.parametrize(
    ("n", "how"),
    [(2, "turns"), *(pytest.param(n, "laws", marks=pytest.mark.nightly) for n in (2, 3, 4))],
)
def test_laws_on_ranks(n, how, tmp_path):
    said = run(n, "-m", "tests.distributed.shards", tmp_path, how, timeout=600)
    assert f"{how} holds on {n}" in said


@needs_mpi
@pytest.mark.parametrize(
    ("n", "others"),
    [(2, (1,)), pytest.param(3, (1, 2, 4, 5), marks=pytest.mark.nightly)],
)
def test_any_number_of_ranks_goes_on(n, others, tmp_path):
    run(n, "-m", "tests.distributed.shards", tmp_path, "save")
    kept = sorted(path.name for path in (tmp_path / "state").rglob("*.npz"))
    assert kept == ["manifest.npz", *(f"part-{i:05d}.npz" for i in range(n)), "whole.npz"]
    for m in others:
        assert f"on {m}" in run(m, "-m", "tests.distributed.shards", tmp_path, "load")


def test_checkpoints_of_one_process(tmp_path, monkeypatch):
    path = tmp_path / "state"
    with distributed.spmd():
        state = shards.state()
        distributed.save(path, state)
        found = distributed.load(path, like=state)
        assert fg.tree.structure(found) == fg.tree.structure(state)
        for x, y in zip(fg.tree.leaves(found), fg.tree.leaves(state), strict=True):
            np.testing.assert_array_equal(x, y)
        with pytest.raises(ArgumentError, match="state holds divided arrays"):
            distributed.load(path)
        other = {**state, "params": {**state["params"], "w": distributed.flat_shard(np.ones(4000))}}
        with pytest.raises(ShapeError, match=r"like\['params'\]\['w'\] has shape \(4000,\), but"):
            distributed.load(path, like=other)
        with pytest.raises(ShapeError, match="Which arrays are divided depends on `least`"):
            distributed.load(path, like={"w": distributed.flat_shard(np.ones(4000))})
        with pytest.raises(TreeError, match="another structure"):
            distributed.load(path, like={**state, "more": 1})
        # An error in the middle leaves the last checkpoint as it is.
        with pytest.raises(ArgumentError, match="object"):
            distributed.save(path, {**state, "small": object()})
        assert len(list(path.iterdir())) == 2
        assert distributed.load(path, like=state)["step"] == 3
        (part,) = path.rglob("part-00000.npz")
        damaged = bytearray(part.read_bytes())
        damaged[damaged.index(state["params"]["w"].part.tobytes()) + 1] ^= 1
        part.write_bytes(bytes(damaged))
        with pytest.raises(fg.errors.FileFormatError, match="damaged"):
            distributed.load(path, like=state)
        data.save(part, {"checkpoint": "another", "rank": 0, "parts": []})
        with pytest.raises(fg.errors.FileFormatError, match="not of the checkpoint"):
            distributed.load(path, like=state)
        file = tmp_path / "file"
        file.write_text("")
        with pytest.raises(ArgumentError, match="is a file, but divided arrays need a folder"):
            distributed.save(file, state)


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap"])
def test_stencils_of_parts_are_parts_of_stencils(mode):
    x = np.random.default_rng(3).normal(size=(8, 9))

    def of_part(x):
        return shards.laplacian(distributed.halo(x, 1, (0, 1), ("i", "j"), mode=mode))

    def divided(x):
        return x.reshape(4, 2, 3, 3).transpose(0, 2, 1, 3)

    def joined(parts):
        return parts.transpose(0, 2, 1, 3).reshape(8, 9)

    mapped = fg.vmap(fg.vmap(of_part, axis_name="j"), axis_name="i")
    wanted = shards.laplacian(np.pad(x, 1, mode=mode))
    for f in (mapped, fg.jit(mapped)):
        np.testing.assert_allclose(joined(f(divided(x))), wanted, rtol=1e-12, atol=1e-12)
    gradient = fg.grad(lambda parts: np.sum(mapped(parts) ** 2))(divided(x))
    whole = fg.grad(lambda x: np.sum(shards.laplacian(np.pad(x, 1, mode=mode)) ** 2))(x)
    np.testing.assert_allclose(joined(gradient), whole, rtol=1e-11, atol=1e-11)


def test_stages_of_a_pipeline():
    rng = np.random.default_rng(6)
    ws, xs = rng.normal(size=(3, 4, 4)), rng.normal(size=(5, 2, 4))
    for stage in (shards.stage, fg.checkpoint(shards.stage)):
        run = lambda w, stage=stage: distributed.pipeline(stage, w, xs, "stage")  # noqa: E731
        mapped = fg.vmap(run, axis_name="stage")
        for f in (mapped, fg.jit(mapped)):
            found = f(ws)
            np.testing.assert_allclose(found[2], shards.staged(ws, xs), rtol=1e-12)
            assert np.all(found[:2] == 0)
        gradient = fg.jit(fg.grad(lambda ws, f=mapped: np.sum(f(ws) ** 2)))(ws)
        whole = fg.grad(lambda ws: np.sum(shards.staged(ws, xs) ** 2))(ws)
        np.testing.assert_allclose(gradient, whole, rtol=1e-11, atol=1e-12)


@pytest.mark.nightly
@needs_mpi
@pytest.mark.parametrize("n", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_pmap_of_unchanged_programs(n):
    program = Path(shards.__file__).with_name("mapped.py")
    assert run(n, "-m", "funcgrad.interop.jax", program).count("mapped alike") == n


@needs_mpi
def test_a_slow_rank_is_named():
    assert "named" in run(2, "-m", "tests.distributed.slow_rank")


def test_waits_of_one_process():
    with distributed.waits() as waits:
        assert waits.ranks == waits.slow == ()
        with pytest.raises(ArgumentError, match="another profile"), distributed.waits():
            pass
    assert waits.slow == ()
    assert len(waits.ranks) == 1
    assert waits.ranks[0].own == waits.ranks[0].seconds > 0
    with pytest.raises(ZeroDivisionError), distributed.waits() as failed:
        1 / 0  # noqa: B018
    assert failed.ranks == ()


@needs_mpi
@pytest.mark.skipif(not (memory.PROC / "clear_refs").exists(), reason="Linux tells the most")
@pytest.mark.nightly
def test_memory_is_as_predicted(monkeypatch):
    """By the model, by the compiled program, and by the system; two percent are MPI's own."""
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "65536")
    cases = "1024,256", "512,1024", "256,256,16"
    said = run(2, "-m", "tests.distributed.memory", "--inside", *cases)
    rows = [line.strip("| ").split(" | ") for line in said.splitlines() if line.startswith("|")]
    assert [row[1] for row in rows] == [name for name in memory.DIVIDED for _ in cases]
    for row in rows:
        # In the sum of a whole stack, MPI has memory that the program does not know of.
        is_of_mpi = row[1:3] == ["nothing", "16 x 256"]
        assert all(abs(float(x) - 1) < 0.05 for x in (row[-2:-1] if is_of_mpi else row[-2:])), said
    most = {row[1]: float(row[6].removesuffix(" MB")) for row in rows[:: len(cases)]}
    assert most["parameters"] < most["state"] < 0.7 * most["nothing"]


def test_parts_have_memory_of_their_own():
    with distributed.spmd():
        own = distributed.flat_shard(np.ones(2000))
    assert own.part.base is None


def test_refusals():
    with pytest.raises(
        ArgumentError, match=r"flat_shard: there is no axis of processes.*\n.*\n.*spmd"
    ):
        distributed.flat_shard(np.ones(2000))
    with pytest.raises(ArgumentError, match="sharded: reduce must be one of"):
        distributed.sharded(optim.sgd(0.1), reduce="max")
    with pytest.raises(ArgumentError, match="message_dtype must be None or 'bfloat16', got 'int8'"):
        distributed.sharded(optim.sgd(0.1), message_dtype="int8")
    with pytest.raises(ArgumentError, match="mode must be one of"):
        distributed.halo(np.ones(3), axis_name="i", mode="mirror")
    with pytest.raises(ArgumentError, match=r"halo: widths must not be negative, got \[-1\]"):
        distributed.halo(np.ones(3), -1, axis_name="i")
    with pytest.raises(ArgumentError, match="halo: 2 axes need as many names"):
        distributed.halo(np.ones((3, 3)), axis=(0, 1), axis_name="i")
    with pytest.raises(ShapeError, match=r"axis 0 of a part of shape \(2,\) is shorter than 3"):
        fg.vmap(lambda x: distributed.halo(x, 3, axis_name="i"), axis_name="i")(np.ones((2, 2)))
    grown = lambda w: distributed.pipeline(lambda w, x: np.ones(3), w, np.ones((4, 2)), "i")  # noqa: E731
    with pytest.raises(ShapeError, match=r"a stage makes float64\[3\] of float64\[2\]"):
        fg.vmap(grown, axis_name="i")(np.ones(2))
    with pytest.raises(ArgumentError, match="fraction must be above 0 and at most 1, got 0"):
        distributed.top_k_mean(0)


def test_training_goes_on_where_it_was_saved(tmp_path, monkeypatch):
    example = load("train_sharded")
    save = distributed.save

    def save_and_stop(path, tree):
        save(path, tree)
        if tree["step"] == 4:
            raise KeyboardInterrupt

    few = ("--hidden", 16, "--every", 2, "--batch-size", 32, "--save", tmp_path / "state")
    (tmp_path / "state").mkdir()  # as by a process that was killed before it had saved anything
    begun = run_example(example, *few, "--steps", 8, "--resume")
    monkeypatch.setattr(distributed, "save", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        run_example(example, *few[:-1], tmp_path / "other", "--steps", 8)
    monkeypatch.undo()
    resumed = run_example(example, *few[:-1], tmp_path / "other", "--steps", 8, "--resume")
    assert resumed == begun
    assert final(tmp_path / "other", 1) == final(tmp_path / "state", 1)


@needs_mpi
@pytest.mark.nightly
def test_training_goes_on_with_equal_bits_after_kills(tmp_path):
    """In every phase ranks are killed; each time all end, and nothing is lost but a few steps."""
    kills = itertools.islice(faults.trainings(np.random.default_rng(5), tmp_path), 110)
    hits = [kill for kill in kills if kill["phase"]]
    assert len(hits) >= 100, faults.summary(hits)
    assert all(kill["is_named"] for kill in hits)
    assert max(kill["seconds"] for kill in hits) < 30
    assert {kill["phase"] for kill in hits} == set(faults.LONGEST)


def final(folder, n=2):
    """The bytes of all arrays of the checkpoint of so many processes."""
    number = data.load(folder / "manifest.npz")["checkpoint"]
    parts = [data.load(folder / number / f"part-{i:05d}.npz")["parts"] for i in range(n)]
    return [x.tobytes() for row in parts for x in row]
