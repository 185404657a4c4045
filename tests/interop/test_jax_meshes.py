"""Meshes under the name of JAX: who may name their axes, and what programs hold."""

from __future__ import annotations

import subprocess
import sys

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


def test_names_of_axes_are_used_once():
    _run(NAMES)


def test_programs_of_libraries_are_called():
    _run(INTERNALS)


def _run(program: str) -> None:
    subprocess.run([sys.executable, "-c", INSTALLED + program], check=True)
