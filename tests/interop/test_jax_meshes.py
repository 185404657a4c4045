"""Meshes under the name of JAX: who may name their axes, and what programs hold."""

from __future__ import annotations

from tests import forks

INSTALLED = "from funcgrad.interop import jax as neighbour; neighbour.install()\n"

NAMES = """
import numpy as np, jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P, NamedSharding

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((2, 2, 1), ("x", "y", "z"))

def refused(text, function, *args):
    try:
        function(*args)
    except ValueError as error:
        assert text in str(error), error
    else:
        raise SystemExit(f"not refused: {text}")

f = jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
rows = jnp.arange(16.0).reshape(4, 4)
assert np.array_equal(jax.vmap(f, spmd_axis_name="y")(rows), jnp.sin(rows))
refused("spmd_axis_name cannot appear", jax.vmap(f, spmd_axis_name="x"), rows)
refused("spmd_axis_name cannot appear", jax.vmap(f, spmd_axis_name=("y", "x")), rows)

# Within lanes, arrays are not put elsewhere; compiled programs do not ask.
def put(place):
    return jax.shard_map(lambda x: x + jax.device_put(1, place), mesh=mesh, in_specs=P("x"),
                         out_specs=P("x"))

assert put(None)(rows)[0, 0] == jax.jit(put(jax.devices()[1]))(rows)[0, 0] == 1.0
refused("got device", put(jax.devices()[1]), rows)

# Where a mesh has no devices, arguments say which.
def on(mesh):
    return jax.shard_map(lambda x: x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))

placed = jax.device_put(rows, NamedSharding(mesh, P("y")))
assert on(mesh.abstract_mesh)(placed).sharding == NamedSharding(mesh, P("x"))
assert jax.jit(on(mesh.abstract_mesh))(placed).sharding == NamedSharding(mesh, P("x"))
refused("AbstractMesh has no devices", on(mesh.abstract_mesh), rows)
refused("does not match", on(jax.make_mesh((2,), "x").abstract_mesh), placed)

# Copies for lanes are made where there are lanes.
with jax.set_mesh(mesh):
    refused("should be called under jax.shard_map", lambda: jax.lax.pcast(rows, "x", to="varying"))
    assert jax.lax.pcast(rows, "z", to="varying") is rows

assert placed.sharding.is_equivalent_to(NamedSharding(mesh, P(("y",), None)), 2)
assert not placed.sharding.is_equivalent_to(NamedSharding(mesh, P(None, "y")), 2)
"""

INTERNALS = """
import numpy as np, jax, jax.numpy as jnp
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend import linear_util as lu, random
from jax._src import api_util, core
from jax._src.interpreters import partial_eval as pe

def squares_of(f, *args):
    sub = lu.wrap_init(f, debug_info=api_util.debug_info("test", f, args, {}))
    jaxpr, avals, consts = pe.trace_to_jaxpr_dynamic(sub, list(map(core.typeof, args)))
    assert [a.shape for a in avals] == [(3,)]
    return core.call_p.bind(*consts, *args, call_jaxpr=jaxpr)[0] ** 2

x = jnp.arange(3.0)
for g in (lambda x: squares_of(lambda x: [2 * x], x), lambda x: squares_of(lambda: [2 * x])):
    for f in (g, jax.jit(g)):
        assert f(x).tolist() == [0.0, 4.0, 16.0]
        assert jax.grad(lambda x: f(x).sum())(x).tolist() == [0.0, 8.0, 16.0]

# What is dead needs no rules.
dead = jax.extend.core.Primitive("dead")
dead.def_abstract_eval(lambda x: x)

def passing(x):
    dead.bind(x)
    return jax.jit(lambda x: (dead.bind(x), 2 * x)[1])(x)

assert jax.jit(passing)(x).tolist() == [0.0, 2.0, 4.0]

double = custom_partitioning(lambda x: 2 * x)
double.def_partition(partition=None, sharding_rule="i -> i")
assert jax.jit(double)(x).tolist() == [0.0, 2.0, 4.0]

keys = random.random_seed(np.arange(4).reshape(2, 2), random.threefry_prng_impl)
assert keys.shape == (2, 2) and (keys[1, 0] == jax.random.key(2))
"""

PROGRAMS = """
import itertools
import numpy as np, jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from jax._src import core
from jax._src.interpreters import partial_eval as pe

jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((2, 2), ("x", "y"))
scale = jnp.arange(2.0)

def parts(a, b, c):
    total = jax.lax.psum(a * b, "x")
    return total, jnp.sin(c) * scale, jax.jit(jnp.cos)(a)

f = jax.shard_map(parts, mesh=mesh, in_specs=(P("x"), P(), P("y")),
                  out_specs=(P(), P("y"), P("x")))
args = jnp.arange(4.0), jnp.arange(2.0), jnp.arange(4.0) + 1
program = jax.make_jaxpr(f)(*args)
(call,) = program.eqns
names = [e.primitive.name for e in call.params["jaxpr"].eqns]
assert names == ["pvary", "mul", "psum_invariant", "sin", "pvary", "mul", "jit"], names
assert call.params["jaxpr"].eqns[2].params["axes"] == ("x",)
assert call.primitive.name == "shard_map" and call.params["mesh"] == mesh
assert call.params["in_specs"] == (P("x"), P(), P("y"))

def scaled(x):
    return jax.lax.all_gather(2 * x, "x")

# Texts have the names by which parts are asked for; numbers and gathered values have copies, too.
of_scaled = jax.jit(jax.shard_map(scaled, mesh=mesh, in_specs=P(), out_specs=P("x")))
text = str(of_scaled.trace(jnp.arange(2.0)).jaxpr)
assert text.count("pvary[axes=('x',)]") == 1 and "= pvary" in str(program), text
free = jax.shard_map(scaled, mesh=mesh, in_specs=P(), out_specs=P("x"), check_vma=False)
assert "pvary" not in str(jax.make_jaxpr(free)(jnp.arange(2.0)))
step = lambda c, x: (c + x, c)
(loop,) = jax.make_jaxpr(lambda c, x: jax.lax.scan(step, c, x))(scale[0], scale).eqns
assert loop.params["num_carry"] == 1 and "add" in str(loop.params["jaxpr"])

def close(found, wanted):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)

def loss(*args):
    return sum(jnp.sum(out**2) for out in f(*args))

# The operation is the function, under every transformation of it.
run = lambda *args: core.eval_jaxpr(program.jaxpr, program.consts, *args)
close(run(*args), f(*args))
close(jax.jit(f)(*args), f(*args))
of_run = lambda *args: sum(jnp.sum(out**2) for out in run(*args))
for argnum in range(3):
    wanted = jax.grad(loss, argnum)(*args)
    close(jax.grad(of_run, argnum)(*args), wanted)
    close(jax.jit(jax.grad(loss, argnum))(*args), wanted)
close(jax.jvp(of_run, args, args), jax.jvp(loss, args, args))
rows = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), args)
close(jax.vmap(run)(*rows), jax.vmap(f)(*rows))

divided = jax.make_jaxpr(jax.vmap(
    jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x")), spmd_axis_name="y"
))(jnp.ones((4, 4)))
assert divided.eqns[0].params["in_specs"] == (P("y", "x"),)
assert divided.eqns[0].params["jaxpr"].in_avals[0].shape == (2, 2)
twice = jax.make_jaxpr(jax.vmap(jax.vmap(
    jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
), spmd_axis_name="y"))(jnp.ones((4, 4, 4)))
assert twice.eqns[0].params["in_specs"] == (P("y", None, "x"),)

# What is left for some results is what they need.
for used in itertools.product([False, True], repeat=3):
    pruned, kept = pe.dce_jaxpr(program, list(used))
    core.check_jaxpr(pruned)
    assert kept == [used[0] or used[2], used[0], used[1]]
    consts = [c for v, c in zip(program.jaxpr.constvars, program.consts) if v in pruned.constvars]
    given = [x for x, on in zip(args, kept) if on]
    wanted = [x for x, on in zip(f(*args), used) if on]
    close(core.eval_jaxpr(pruned, consts, *given), wanted)
    if any(used):
        assert len(pruned.eqns[0].params["jaxpr"].eqns) == 3 * used[0] + 3 * used[1] + used[2]
"""


DERIVATIVES = """
# What a lane does in a derivative is the derivative of what it does: copies become sums.
def pulled(f, in_specs, out_specs, x, ct):
    g = jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    out, pull = jax.vjp(g, x)
    (call,) = jax.make_jaxpr(pull)(ct).eqns
    assert call.primitive.name == "shard_map"
    assert call.params["in_specs"][-1] == out_specs and call.params["out_specs"] == (in_specs,)
    close(pull(ct), jax.jit(lambda x, ct: jax.vjp(g, x)[1](ct))(x, ct))
    again = jax.make_jaxpr(lambda ct: jax.vjp(pull, ct)[1]((x,)))(ct).eqns  # and so on
    assert all(e.primitive.name == "shard_map" for e in again), again
    return [e.primitive.name for e in call.params["jaxpr"].eqns], pull(ct)[0]

whole, one = jnp.arange(2.0), jnp.arange(1.0) + 1
names, found = pulled(lambda x: x, P(), P("x"), one, whole)
assert names == ["psum_invariant"] and found.tolist() == [1.0]
names, found = pulled(lambda x: jax.lax.psum(x, "x"), P("x"), P(), whole, one)
assert names == ["pvary"] and found.tolist() == [1.0, 1.0]
names, found = pulled(lambda x: jax.lax.psum(x, "x"), P("x"), P("x"), whole, whole + 1)
assert names == ["psum_invariant", "pvary"] and found.tolist() == [3.0, 3.0]
names, found = pulled(lambda x: x * jnp.sin(x), P("x"), P("x"), whole, whole + 1)
close(found, (whole + 1) * (jnp.sin(whole) + whole * jnp.cos(whole)))
"""


def test_shard_map_is_one_operation_of_a_program():
    _run(PROGRAMS + DERIVATIVES)


REFUSALS = """
import numpy as np, jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
kinds = {"axis_types": (AxisType.Explicit,) * 2}
mesh = jax.make_mesh((2, 2), ("x", "y"), **kinds)

# Lanes of one axis are divided by the other, compiled or not.
with jax.set_mesh(mesh):
    x = jax.device_put(jnp.arange(16.0).reshape(4, 4), P("x", "y"))
    f = jax.shard_map(lambda x: 2 * x, out_specs=P("x", None), axis_names={"x"})
    assert f(x).sharding == jax.jit(f)(x).sharding == x.sharding, f(x).sharding
    g = jax.shard_map(lambda x: 2 * x.T, out_specs=P(None, "x"), axis_names={"x"})
    assert g(x).sharding.spec == jax.jit(g)(x).sharding.spec == P("y", "x")

# Terms of a sum are for programs whose types say how arrays are divided.
identity = lambda x: x
for mesh, names, kind in (
    (jax.make_mesh((2, 2), ("x", "y")), {"x", "y"}, ValueError),
    (mesh, {"x"}, NotImplementedError),
):
    f = jax.shard_map(identity, mesh=mesh, in_specs=P(unreduced={"x"}),
                      out_specs=P(), axis_names=names)
    try:
        f(jnp.arange(4.0))
    except kind as error:
        assert "all of type `Explicit`" in str(error)
    else:
        raise AssertionError(kind)

# Cotangents of integers are left out, whatever they are; their shape is checked.
@jax.custom_vjp
def scaled(x, n):
    return x * n

scaled.defvjp(lambda x, n: (x * n, n), lambda n, g: (g * n, jnp.zeros(shape, n.dtype)))
shape = (3,)
loss = lambda x, n: scaled(x, n).sum()
found = jax.grad(loss, (0, 1), allow_int=True)(jnp.ones(3), jnp.arange(3))
np.testing.assert_array_equal(found[0], [0, 1, 2])
assert found[1].dtype == jax.dtypes.float0
shape = (2,)
try:
    jax.grad(loss)(jnp.ones(3), jnp.arange(3))
except TypeError as error:
    assert "has none" in str(error)
else:
    raise AssertionError(shape)
"""


TERMS = """
# A sum that leaves as terms is the sum; its terms are those of the lanes, also behind `jit`.
mesh = jax.make_mesh((2, 2), ("x", "y"), **kinds)

def parts(data):
    return [s.data.tolist() for s in data.addressable_shards]

with jax.set_mesh(mesh):
    x = jax.device_put(jnp.arange(8.0), P("y"))
    spec = P("x", unreduced={"y"})
    for wrap in (lambda f: f, jax.jit):
        outward = wrap(jax.shard_map(lambda x: 2 * x, in_specs=P("y"), out_specs=spec))
        inward = wrap(jax.shard_map(lambda x: jax.lax.psum(x, "y"), in_specs=spec,
                                    out_specs=P("x")))
        first = wrap(jax.shard_map(lambda x: x, in_specs=spec, out_specs=P(("y", "x")),
                                   check_vma=False))
        out = outward(x)
        total = [2 * (i % 4 + (i % 4 + 4)) for i in (0, 1, 2, 3, 0, 1, 2, 3)]
        assert out.tolist() == jax.reshard(out, P()).tolist() == total, out
        assert parts(out) == [[0, 2, 4, 6], [8, 10, 12, 14]] * 2, parts(out)
        assert out.sharding.spec == spec and inward(out).tolist() == total
        assert first(out).tolist() == [0, 2, 4, 6] * 2 + [8, 10, 12, 14] * 2
        weights = jnp.arange(8.0)
        for f in (lambda x: (outward(x) * weights).sum(),
                  lambda x: (inward(outward(x)) * weights).sum()):
            wanted = 2 * (weights[:4] + weights[4:])
            assert wrap(jax.grad(f))(x).tolist() == [*wanted, *wanted]
        assert wrap(jax.grad(lambda out: (inward(out) * weights).sum()))(out).tolist() == [*weights]
        assert parts(wrap(jax.grad(lambda x: jnp.sum(x)))(out)) == [[1] * 4] * 4

    # References say how the arrays in them are divided, and Jacobians that are zero differ as
    # their arguments do.
    ref = jax.new_ref(jnp.zeros(4, "float32", out_sharding=P("x")))

    @jax.jit
    @jax.shard_map(out_specs=None)
    def count(ref):
        ref[...] += jax.lax.axis_index("x").astype("float32")

    count(ref)
    assert ref[...].tolist() == [0, 0, 1, 1]

    @jax.shard_map(in_specs=(P("x"), P("y")), out_specs=(P("x"), P("y")))
    def zeros(x, y):
        found = jax.jacrev(lambda x, y: x, 1)(x, y), jax.grad(lambda x, y: x.sum(), 1)(x, y)
        assert [jax.typeof(z).mat.varying for z in found] == [{"y"}] * 2
        return x, found[1]

    zeros(x, x)
"""


def test_types_of_lanes_and_refusals():
    _run(REFUSALS + TERMS)


def test_names_of_axes_are_used_once():
    _run(NAMES)


def test_programs_of_libraries_are_called():
    _run(INTERNALS)


def _run(program: str) -> None:
    done = forks.run(INSTALLED, program)
    assert done.returncode == 0, done.stderr
