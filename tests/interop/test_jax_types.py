"""Types of arrays under the name of JAX: how they are divided, and what their lanes are."""

from __future__ import annotations

import pytest

from tests import forks

BEFORE = """
from funcgrad.interop import jax as neighbour
neighbour.install()
import numpy as np, jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
rows, matrix = np.arange(24.0).reshape(4, 6), np.arange(48.0).reshape(6, 8)

def spec(x):
    return jax.typeof(x).sharding.spec

def near(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), 1e-4)

def refused(error, text, function, *args):
    try:
        function(*args)
    except error as caught:
        assert text in str(caught), caught
    else:
        raise SystemExit(f"not refused: {text}")
"""

OPERATIONS = """
with jax.set_mesh(mesh):
    x, w = jax.device_put(rows, P("x", "y")), jax.device_put(matrix, P(None, "y"))
    seen = []

    @jax.jit
    def f(x, w):
        values = (x, jnp.sin(x) + 1, x.T, x[:, None] * jnp.ones((5, 1)), x.sum(0), x @ w,
                  x.reshape(2, 2, 6), x.reshape(4, 2, 3), jnp.zeros(3),
                  jax.lax.scan(lambda c, _: (2 * c, None), x, None, length=2)[0],
                  jax.lax.cond(x[0, 0] > 0, jnp.cos, jnp.sin, x), jax.jit(jnp.negative)(x),
                  jax.device_put(x, P("y")))
        seen.append([tuple(spec(v)) for v in values])
        return values

    out = f(x, w)
    assert seen[0] == [
        ("x", "y"), ("x", "y"), ("y", "x"), ("x", None, "y"), ("y",), ("x", "y"),
        ("x", None, "y"), ("x", "y", None), (None,), ("x", "y"), ("x", "y"), ("x", "y"),
        ("y", None),
    ], seen
    placed = [tuple(v.sharding.spec) for v in out if isinstance(v.sharding, NamedSharding)]
    assert placed == [s for s in seen[0] if s != (None,)], placed
    near(out[5], rows @ matrix)
    f(rows, matrix)
    assert len(seen) == 2, len(seen)
    chosen = jax.sharding.auto_axes(lambda x: x + 1, out_sharding=P("y"))
    for made, wanted in ((chosen(x), "y"), (chosen(x, out_sharding=P("x")), "x")):
        assert made.sharding.spec[0] == wanted and (made == x + 1).all()
    given = jax.sharding.explicit_axes(spec)
    assert tuple(given(rows, in_sharding=P("y", None))) == ("y", None)
    assert all(s.count(None) == len(s) for s in seen[1][:5]), seen[1]
    f(x, w)
    assert len(seen) == 2

    # Gradients lie as arguments, also of values and with auxiliary results.
    def loss(x, w):
        return jnp.sum(jnp.sin(x @ w))

    for wrap in (lambda f: f, jax.jit):
        a, b = wrap(jax.grad(loss, (0, 1)))(x, w)
        assert a.sharding == NamedSharding(mesh, P("x", "y")), a.sharding
        assert b.sharding == NamedSharding(mesh, P(None, "y")), b.sharding
        value, a = wrap(jax.value_and_grad(loss))(x, w)
        assert a.sharding == NamedSharding(mesh, P("x", "y"))
        a, aux = wrap(jax.grad(lambda x, w: (loss(x, w), x), has_aux=True))(x, w)
        assert a.sharding == NamedSharding(mesh, P("x", "y")) and aux.shape == (4, 6)

    # A mapped axis is divided in results as it is in arguments.
    g = jax.shard_map(lambda v: jax.lax.psum(v, "y"), in_specs=P("y"), out_specs=P())
    for wrap in (lambda f: f, jax.jit):
        out = wrap(jax.vmap(g))(x)
        assert out.sharding == NamedSharding(mesh, P("x", None)), out.sharding
        near(out, rows[:, :3] + rows[:, 3:])
        out = wrap(jax.vmap(g, 0, 1))(x)
        assert out.sharding == NamedSharding(mesh, P(None, "x")), out.sharding
    refused(ValueError, "Only one of spmd_axis_name", jax.vmap(g, spmd_axis_name="y"), x)
"""

LANES = """
with jax.set_mesh(mesh):
    x = jax.device_put(rows, P("x", "y"))
    w = jax.device_put(rows[0], P(reduced={"x"}))
    s = jax.device_put(rows[0], P(unreduced={"x"}))

    def of(x):
        mat = jax.typeof(x).mat
        return tuple(map(sorted, mat))

    # What is left out follows from types, in compiled programs as well; others stay whole.
    def f(x, w, s):
        assert (of(x), of(w), of(s)) == ((["x", "y"], [], []), ([], [], ["x"]), ([], ["x"], []))
        assert x.shape == (2, 3)
        return jax.lax.psum(jnp.sum(x, 1), "y"), 2 * w, s.reshape(2, 3)

    specs = (P("x"), P(reduced={"x"}), P(unreduced={"x"}))
    for wrap in (lambda f: f, jax.jit):
        a, b, c = wrap(jax.shard_map(f, out_specs=specs))(x, w, s)
        assert [v.sharding for v in (a, b, c)] == [NamedSharding(mesh, p) for p in specs]
        near(a, rows.sum(1)), near(b, 2 * rows[0]), near(jax.reshard(c, P()).ravel(), rows[0])
    shards = [np.asarray(v.data) for v in c.addressable_shards]
    near(shards[0].ravel(), rows[0]), near(shards[1].ravel(), rows[0])
    assert not shards[2].any() and not shards[3].any()

    @jax.jit
    @jax.shard_map(out_specs=P("x"), axis_names={"x"})
    def half(x):
        assert x.shape == (2, 6) and spec(x) == spec(2 * x) == P(None, "y"), spec(x)
        return x * 2

    assert half(x).sharding == NamedSharding(mesh, P("x", "y"))
    near(jax.smap(lambda x: x * 2, out_axes=0, axis_name="x")(x), 2 * rows)

    # Each kind is the other's cotangent.
    @jax.shard_map(out_specs=P())
    def loss(x, w, s):
        part = jax.lax.all_gather(w, "y", tiled=True, to="invarying") if False else w
        halves = part.reshape(2, 3)[jax.lax.axis_index("y")]
        return jax.lax.psum(jnp.sum(x * halves), ("x", "y")) + jnp.sum(jax.lax.psum(s, "x") ** 2)

    for wrap in (lambda f: f, jax.jit):
        a, b, c = wrap(jax.grad(loss, (0, 1, 2)))(x, w, s)
        assert b.sharding == NamedSharding(mesh, P(unreduced={"x"})), b.sharding
        assert c.sharding == NamedSharding(mesh, P(reduced={"x"})), c.sharding
        near(jax.reshard(b, P()), rows.sum(0)), near(c, 2 * rows[0])
        near(a, np.tile(rows[0], (4, 1)))

    z = jnp.einsum("ab,bc->ac", x, jax.device_put(matrix, P("y", None)),
                   out_sharding=P("x", None, unreduced={"y"}))
    assert z.sharding.spec.unreduced == {"y"}
    total = jax.shard_map(lambda z: jax.lax.psum(z, "y"), out_specs=P("x"))(z)
    near(total, rows @ matrix)
    refused(NotImplementedError, "unreduced rule for sin",
            jax.shard_map(jnp.sin, out_specs=P("x")), z)
    refused(TypeError, "must be a tuple or a str",
            jax.shard_map(lambda x: jax.lax.pcast(x, {"x"}, to="varying"), out_specs=P("x")), w)
"""

DECLARED = """
lanes = jax.make_mesh((2, 1), ("x", "y"))

def over(f):
    return jax.shard_map(f, mesh=lanes, in_specs=(P("x"), P()), out_specs=P("x"))

def swapped(x, y):
    return jax.lax.scan(lambda c, _: ((c[1], c[0]), None), (x, y), None, length=2)[0]

def chosen(x, y):
    return jax.lax.cond(True, lambda x, y: x, lambda x, y: y, x, y)

def counted(x, y):
    return jax.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] + x), (0, y))[1]

def pushed(x, y):
    return jax.linearize(jnp.sin, y)[1](x)

x, y = np.arange(4.0), np.arange(2.0)
for f in (swapped, chosen, counted, pushed):
    cast = lambda x, y: f(x, jax.lax.pcast(y, "x", to="varying"))
    for wrap in (lambda f: f, jax.jit):
        refused(TypeError, "This might be fixed by applying `jax.lax.pcast(..., ('x',), to='vary",
                wrap(over(f)), x, y)
        wrap(over(cast))(x, y)
near(over(lambda x, y: x * y)(x, y), x * np.tile(y, 2))
with jax.auto_pcast(False):
    refused(ValueError, "requires varying manual axes to match", over(lambda x, y: x * y), x, y)
    near(over(lambda x, y: 2 * x)(x, y), 2 * x)
    near(over(lambda x, y: x * jax.lax.pcast(y, "x", to="varying"))(x, y), x * np.tile(y, 2))
"""


@pytest.mark.parametrize(
    "program", [OPERATIONS, LANES, DECLARED], ids=["operations", "lanes", "declared"]
)
def test_types_follow_operations(program: str) -> None:
    run = forks.run(BEFORE, program)
    assert run.returncode == 0, run.stdout + run.stderr
