"""What programs ask about their surroundings: devices, flags, types, errors."""

import jax
import jax.numpy as jnp
from jax import core, dtypes, errors, sharding, typing

assert jax.default_backend() == "cpu"
assert jax.device_count() == len(jax.devices()) == 1
assert jax.devices()[0].platform == "cpu"
assert jax.process_index() == 0

x = jax.device_put(jnp.arange(3.0), jax.devices()[0])
assert x.block_until_ready() is x
assert jax.block_until_ready([x])[0] is x
assert x.devices() == set(jax.devices())

mesh = sharding.Mesh(jax.devices(), ("data",))
placed = jax.device_put(x, sharding.NamedSharding(mesh, sharding.PartitionSpec("data")))
assert placed.tolist() == [0.0, 1.0, 2.0]

seen = []


@jax.jit
def f(x: typing.ArrayLike) -> jax.Array:
    seen.append(isinstance(x, core.Tracer))
    jax.debug.callback(lambda v: seen.append(float(v)), x)
    return jnp.float32(x) * 2


assert f(1.5).dtype == jnp.float32
assert seen == [True, 1.5]

try:
    jax.jit(lambda x: x if x > 0 else -x)(1.0)
except errors.TracerBoolConversionError:
    pass
else:
    raise AssertionError

assert jnp.issubdtype(jnp.float32, jnp.floating)
assert dtypes.canonicalize_dtype("float32") == jnp.float32
assert not dtypes.issubdtype(x.dtype, dtypes.prng_key)
shape = jax.eval_shape(lambda x: jnp.outer(x, x), x)
assert shape.shape == (3, 3)
assert jax.typeof(x).shape == (3,)
lowered = jax.jit(lambda x: jnp.sin(x)).lower(x)
assert jnp.allclose(lowered.compile()(x), jnp.sin(x))
with jax.disable_jit():
    assert f(2.0) == 4.0
jax.config.update("jax_debug_nans", True)
try:
    jnp.log(jax.jit(lambda x: x - 1.0)(0.0))
    jax.jit(jnp.log)(-1.0)
except FloatingPointError:
    pass
else:
    raise AssertionError
jax.config.update("jax_debug_nans", False)
each = jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
assert each.tolist() == [0.25, 0.75]
