"""`shard_map`: parts and whole arrays, derivatives outside and inside, in one process, on ranks."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad import P, distributed, lax
from funcgrad.errors import ArgumentError, AxisNameError, MissingRuleError, ShapeError
from funcgrad.higher_order.mesh_lanes import lane_type
from funcgrad.passes.dce import without_dead
from tests.distributed import sharded
from tests.distributed.launching import needs_mpi, run

MESH = fg.make_mesh((4, 2), ("x", "y"))
OTHER = fg.make_mesh((3,), ("x",))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", sharded.ARRAYS)
def test_functions_of_parts_are_those_of_whole_arrays(name):
    sharded.check_array(name)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", sharded.LOSSES)
def test_what_is_equal_in_all_lanes_counts_once(name):
    sharded.check_loss(name)


def test_untracked_lanes_count_each():
    sharded.check_untracked()


@needs_mpi
@pytest.mark.parametrize(
    ("n", "how"),
    [(2, "turns"), *(pytest.param(n, "all", marks=pytest.mark.nightly) for n in (2, 3, 4, 8))],
)
def test_ranks_share_the_lanes_out(n, how):
    module = f"tests.distributed.{Path(sharded.__file__).stem}"
    assert f"checks hold on {n}" in run(n, "-m", module, how, timeout=600)


@st.composite
def specs(draw):
    """Lengths of a mesh, a spec over it, and a shape that it divides."""
    lengths = dict(
        zip("abc", draw(st.lists(st.integers(1, 3), min_size=3, max_size=3)), strict=True)
    )
    names = draw(st.permutations("abc"))
    ndim = draw(st.integers(1, 3))
    places = [draw(st.sampled_from([None, *range(ndim)])) for _ in names]
    rows = [tuple(n for n, p in zip(names, places, strict=True) if p == i) for i in range(ndim)]
    shape = tuple(
        draw(st.integers(0, 2)) * int(np.prod([lengths[n] for n in row], dtype=int)) for row in rows
    )
    entries = [row[0] if len(row) == 1 else row or None for row in rows]
    return lengths, P(*entries), shape


@given(specs())
def test_any_division_is_put_together_again(drawn):
    lengths, spec, shape = drawn
    mesh = fg.make_mesh(tuple(lengths.values()), tuple(lengths))
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    shapes = []

    def part(x):
        shapes.append(x.shape)
        return 2 * x

    np.testing.assert_array_equal(
        fg.shard_map(part, mesh=mesh, in_specs=spec, out_specs=spec)(x), 2 * x
    )
    assert shapes == [fg.sharding.NamedSharding(mesh, spec).shard_shape(shape)]


def test_forms_of_specs_and_meshes():
    x = np.arange(8.0)
    with fg.sharding.set_mesh(MESH):
        f = fg.shard_map(
            lambda t: t["a"] + t["b"], in_specs=({"a": P("x"), "b": P()},), out_specs=P("x")
        )
        np.testing.assert_array_equal(f({"a": x, "b": 1.0}), x + 1)

    @fg.shard_map(mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    def g(x):
        with pytest.raises(AxisNameError, match="'y'"):
            lax.psum(x, "y")
        return x * lax.axis_size("x")

    np.testing.assert_array_equal(g(x), 4 * x)
    stack = np.stack([x, 2 * x])
    np.testing.assert_array_equal(fg.vmap(g)(stack), 4 * stack)
    assert g(x.astype(np.float32)).dtype == np.float32
    with MESH:
        total = fg.shard_map(
            lambda x: lax.psum(x, ("x", "y")), in_specs=P(("x", "y")), out_specs=P()
        )
        assert total(np.arange(8)).tolist() == [28]


def test_parts_are_arrays_as_others_are():
    x, w = np.arange(8.0), np.array([3.0, 5.0, 7.0, 9.0])

    def assigned(x):
        x = x.copy()
        x[0] = -1.0
        return x

    def shifted(w, x):
        return x + w[lax.axis_index("x")]

    f = fg.shard_map(assigned, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    g = fg.shard_map(shifted, mesh=MESH, in_specs=(P(), P("x")), out_specs=P("x"))
    for wrap in (lambda f: f, fg.jit):
        assert wrap(f)(x).tolist() == [-1.0, 1.0, -1.0, 3.0, -1.0, 5.0, -1.0, 7.0]
        assert wrap(g)(w, x).tolist() == (x + np.repeat(w, 2)).tolist()
    assert x.tolist() == list(range(8))
    key = fg.random.key(0)
    h = fg.shard_map(
        lambda k, x: x + fg.random.normal(fg.random.fold_in(k, lax.axis_index("x")), x.shape),
        mesh=MESH, in_specs=(P(), P("x")), out_specs=P("x"),
    )  # fmt: skip
    drawn = [fg.random.normal(fg.random.fold_in(key, k), (2,)) for k in range(4)]
    np.testing.assert_allclose(h(key, np.zeros(8)), np.concatenate(drawn))
    inner = fg.shard_map(
        lambda x: fg.shard_map(
            lambda x: lax.psum(x, "y"), mesh=MESH, in_specs=P("y"), out_specs=P(), axis_names={"y"}
        )(x),
        mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"},
    )  # fmt: skip
    assert inner(x).tolist() == [1.0, 5.0, 9.0, 13.0]


def test_one_axis_by_its_place():
    x = np.arange(16.0).reshape(8, 2)
    with fg.set_mesh(MESH):

        @fg.sharding.smap(in_axes=(0, None), out_axes=(0, None), axis_name="x")
        def f(part, whole):
            assert part.shape == (2, 2)
            assert fg.sharding.get_abstract_mesh().manual_axes == ("x",)
            inner = fg.sharding.smap(np.sin, in_axes=1, out_axes=1, axis_name="y")
            return inner(part), lax.psum(whole["a"] * lax.axis_index("x"), "x")

        for g in (f, fg.jit(f)):
            sines, total = g(x, {"a": 2.0})
            np.testing.assert_allclose(sines, np.sin(x))
            assert total == 12.0
        with pytest.raises(ArgumentError, match="counted from the front"):
            fg.sharding.smap(np.sin, in_axes=-1, out_axes=0, axis_name="x")
    assert fg.sharding.get_abstract_mesh().empty


@given(specs())
def test_parts_are_where_shard_map_takes_them(drawn):
    lengths, spec, shape = drawn
    mesh = fg.make_mesh(tuple(lengths.values()), tuple(lengths))
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    found = fg.shard_map(lambda x: x[None], mesh=mesh, in_specs=spec, out_specs=P(tuple(lengths)))(
        x
    )
    parts = [x[index] for index in fg.sharding.NamedSharding(mesh, spec).parts(shape)]
    np.testing.assert_array_equal(found, np.stack(parts))


def test_copies_that_are_asked_for():
    def loss(w, x):
        return lax.psum(np.sum(fg.lax.pvary(w, "x") * x), "x")

    f = fg.shard_map(loss, mesh=MESH, in_specs=(P(), P("x")), out_specs=P())
    inner = fg.shard_map(
        lambda w, x: fg.grad(lambda v: np.sum(v * x))(lax.pcast(w, "x", to="varying")),
        mesh=MESH, in_specs=(P(), P("x")), out_specs=P("x"),
    )  # fmt: skip
    x = np.arange(4.0)
    assert fg.grad(f)(np.ones(1), x).tolist() == [6.0]
    assert inner(np.ones(1), x).tolist() == [0.0, 1.0, 2.0, 3.0]  # of each lane, unsummed


def test_kinds_of_values_are_followed_and_dual_in_derivatives():
    seen = []

    def f(w, x):
        found = fg.grad(lambda w: np.sum(np.sin(w) * x))(w)
        total = lax.pcast(x, "x", to="unreduced")
        row = (w, x, found, total, 2 * total.T, fg.jit(np.negative)(total), w * w, w * x)
        seen.append([tuple(map(sorted, lane_type(v))) for v in row])
        return found, lax.psum(total, "x")

    specs = {"in_specs": (P(reduced={"x"}), P("x")), "out_specs": (P(unreduced={"x"}), P())}
    g = fg.shard_map(f, mesh=OTHER, **specs)
    w, x = np.arange(2.0), np.arange(6.0)
    for wrap in (lambda g: g, fg.jit):
        found, total = wrap(g)(w, x)
        np.testing.assert_allclose(found, np.cos(w) * x.reshape(3, 2).sum(0))
        assert total.tolist() == x.reshape(3, 2).sum(0).tolist()
    varying, unreduced, reduced = (["x"], [], []), ([], ["x"], []), ([], [], ["x"])
    kinds = [reduced, varying, *[unreduced] * 4, reduced, varying]
    assert seen == [kinds, kinds]
    assert P("x", unreduced={"y"}).dual == P("x", reduced={"y"}) != P("x")
    assert pickle.loads(pickle.dumps(P("x", unreduced={"y"}))) == P("x", unreduced={"y"})


def _accumulate(ref, x):
    ref[...] += lax.axis_index("x").astype(float) + x
    return lax.psum(x, "x")


@pytest.mark.parametrize("around", [lambda f: f, fg.jit])
def test_references_are_divided_as_arrays_are(around):
    mesh = fg.make_mesh((2,), ("x",))
    f = around(fg.shard_map(_accumulate, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P()))
    ref = fg.new_ref(np.ones(4))
    assert f(ref, np.arange(4.0)).tolist() == [2.0, 4.0]
    assert ref[...].tolist() == [1.0, 2.0, 4.0, 5.0]

    def left(x):
        ref = fg.new_ref(np.zeros(4))
        f(ref, x**2)
        return np.sum(ref[...])

    assert fg.grad(left)(np.arange(4.0)).tolist() == [0.0, 2.0, 4.0, 6.0]
    whole = fg.shard_map(_accumulate, mesh=mesh, in_specs=(P(), P("x")), out_specs=P())
    with pytest.raises(ArgumentError, match="may differ along axis 'x'"):
        whole(fg.new_ref(np.ones(2)), np.arange(4.0))


def test_values_of_lanes_are_shown():
    mesh, shown = fg.make_mesh((2, 3), ("x", "y")), []

    def f(x):
        shown.extend([repr(x), repr(lax.psum(x, "y"))])
        return x

    f = fg.shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    f(np.arange(6).reshape(2, 3))
    assert "at mesh coordinates (x, y) = (1, 2):\n[[5]]" in shown[0]
    assert "at mesh coordinates (x) = (1):\n[[12]]" in shown[1]
    fg.jit(f)(np.arange(6).reshape(2, 3))
    assert "at mesh" not in shown[2]


def test_pairs_of_lanes_are_read_more_than_once():
    def shift(x):
        return lax.ppermute(x, "i", zip([0, 1], [1, 0], strict=True))

    with pytest.raises(TypeError, match="must be a list of pairs, got a zip"):
        fg.vmap(shift, axis_name="i")(np.arange(2))


@pytest.mark.parametrize(("later", "now"), [("x", "y"), ("y", "x")])
def test_sums_along_one_axis_wait_for_those_along_another(later, now):
    def f(x):
        term = lax.pcast(x, later, to="unreduced")
        part = lax.psum_scatter(term, now, tiled=True)
        return lax.psum(part, later), lax.psum(lax.psum(term, now), later)

    both = ("x", "y")
    part, total = _map(P(both), (P(now), P()), f=f)(np.arange(32.0))
    assert total.tolist() == part.tolist() == np.arange(32.0).reshape(8, 4).sum(0).tolist()
    with pytest.raises(MissingRuleError, match="no unreduced rule for"):
        _map(P(both), P(), f=lambda x: lax.pmax(lax.pcast(x, later, to="unreduced"), now))(
            np.arange(32.0)
        )


def test_a_mesh_is_entered_by_threads_and_again():
    def nested(k):
        with MESH, fg.sharding.set_mesh(OTHER), MESH:
            f = fg.shard_map(lambda x: lax.psum(x, "x"), in_specs=P("x"), out_specs=P())
            return f(np.full(4 * k, 1.0)).tolist()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(nested, range(40)))
    assert found == [[4.0] * k for k in range(40)]
    nothing = fg.shard_map(lambda x: x, in_specs=P(), out_specs=P())
    with pytest.raises(ArgumentError, match="there is no mesh"):
        nothing(1.0)


def test_a_mesh_is_set_for_good():
    def run():
        double = fg.shard_map(
            lambda x: 2 * lax.axis_index("x") + x, in_specs=P("x"), out_specs=P("x")
        )
        fg.set_mesh(OTHER)
        assert fg.sharding.get_abstract_mesh() == OTHER
        fg.set_mesh(MESH)
        with fg.set_mesh(OTHER) as mesh:
            assert fg.sharding.get_abstract_mesh() == mesh == OTHER
        assert fg.sharding.get_abstract_mesh() == MESH
        return double(np.zeros(4)).tolist()

    assert copy_context().run(run) == [0.0, 2.0, 4.0, 6.0]
    assert fg.sharding.get_abstract_mesh().empty
    with pytest.raises(ArgumentError, match="set_mesh needs a mesh, got a tuple"):
        fg.set_mesh((4, 2))


def test_meshes_and_specs_are_values():
    assert MESH == fg.make_mesh((4, 2), ("x", "y")) != fg.make_mesh((2, 4), ("x", "y"))
    assert hash(MESH) == hash(fg.make_mesh((4, 2), ("x", "y")))
    assert (MESH.size, MESH.empty, MESH.shape) == (8, False, {"x": 4, "y": 2})
    assert repr(fg.sharding.NamedSharding(MESH, P("x"))) == (
        "NamedSharding(Mesh('x': 4, 'y': 2), PartitionSpec('x'))"
    )
    with pytest.raises(ArgumentError, match=r"a grid of shape \(2,\) needs 1 different names"):
        fg.make_mesh((2,), ("x", "y"))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda x: _map(P("x"), P())(x), ArgumentError, "may differ along axis 'x' of the mesh"),
        (lambda x: _map(P("z"), P())(x), ArgumentError, "the mesh has no axis 'z'"),
        (lambda x: _map(P("x", "x"), P())(x), ArgumentError, "once by an axis"),
        (lambda x: _map(P("y", None, "x"), P())(x), ShapeError, r"3 entries, but `args\[0\]` has"),
        (lambda x: _map(P(("x", "y")), P())(x[:6]), ShapeError, "of length 6, cannot be divided"),
        (lambda x: _map((P("x"), P()), P())(x), ArgumentError, "in_specs is not a prefix"),
        (lambda x: _map(P("x"), P(), None)(x), ArgumentError, "there is no mesh"),
        (lambda x: _map(P("x"), P("x"))(x=x), ArgumentError, "arguments are given by position"),
        (
            lambda x: _map(P("x"), P("x"), axis_names={"q"})(x),
            ArgumentError,
            "the mesh has no axis 'q'",
        ),
        (
            lambda x: _map(P("x"), P("x"), f=_map(P("x"), P("x")))(x),
            ArgumentError,
            "a shard_map around maps axis 'x' of the mesh already",
        ),
        (
            lambda x: _map(P(), P("x"), f=lambda x: lax.psum(x, "x", axis_index_groups=[[0, 1]]))(
                x
            ),
            ArgumentError,
            "each of the 4 lanes along 'x' in one group",
        ),
        (lambda x: lax.pcast(x, "x", to="equal"), ArgumentError, "to must be 'varying', 'unred"),
        (lambda x: lax.pcast(x, {"x"}, to="reduced"), ArgumentError, "must be a tuple or a str"),
        (lambda x: P("x", reduced={"x"}), ArgumentError, "axis 'x' is named twice"),
        (lambda x: _sum_of(np.sin)(x), MissingRuleError, "no unreduced rule for sin"),
        (lambda x: _sum_of(fg.jit(np.sin))(x), MissingRuleError, "no unreduced rule for sin"),
        (lambda x: _sum_of(lambda s: s + 1.0)(x), ArgumentError, "would be added in each"),
        (lambda x: _sum_of(lambda s: s, P())(x), ArgumentError, "`result` is unreduced along"),
        (
            lambda x: _map(P("x"), P(), f=lambda x: lax.pcast(x, "x", to="unreduced") * x)(x),
            ArgumentError,
            "mul: one argument differs along axis 'x' of the mesh, another is a sum",
        ),
        (
            lambda x: _map(P("x"), P(), f=lambda x: lax.pcast(x, "y", to="unreduced"))(x),
            ArgumentError,
            "a value that is invarying along axis 'y' of the mesh cannot be taken for unreduced",
        ),
        (
            lambda x: _map(P(), P(reduced={"x"}))(x),
            ArgumentError,
            "`result` is not reduced along axis 'x' of the mesh",
        ),
    ],
)
def test_errors_say_what_does_not_fit(make, error, text):
    with pytest.raises(error, match=text) as caught:
        make(np.ones((8, 2)))
    assert "test_sharding.py" in str(caught.value)


LATER = P(unreduced={"x"})


def _sum_of(f, out_specs=LATER):
    """A function of a sum that is left for later."""
    return _map(P("x"), out_specs, f=lambda x: f(lax.pcast(x, "x", to="unreduced")))


def _map(in_specs, out_specs, mesh=MESH, f=lambda x: x, **options):
    return fg.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def test_messages_whose_results_nobody_asks_for_are_left_out():
    def f(x):
        (_, y) = fg.jit(lambda y: (lax.pmean(y, "data"), y + 1))(x)
        fg.debug.callback(lambda v: None, x)
        return lax.psum(3 * x, "data"), y, 2 * x

    with distributed.spmd():
        program = fg.make_jaxpr(f)(np.ones(2)).program
    left, taken = without_dead(program, [False, True, True])
    assert taken == (True,)
    (call,) = (e for e in left.equations if e.primitive.name == "jit")
    assert [e.primitive.name for e in call.primitive.program.equations] == ["add"]
    names = [e.primitive.name for e in left.equations]
    assert "psum" not in names
    assert len(names) == 3  # the callback is left, whose effect is not a message
