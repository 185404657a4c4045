"""Keys as values: with a shape and a dtype, in loops, structures and every transformation."""

import copy
import pickle

import jax
import jax.numpy as jnp
from jax import lax, random

key = random.key(0)
keys = random.split(key, (3, 2))
assert isinstance(key, jax.Array)
assert (key.shape, key.ndim, key.size) == ((), 0, 1)
assert str(key.dtype) == "key<fry>"
assert key.dtype == keys.dtype == random.key_dtype()
assert jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
assert not jnp.issubdtype(random.PRNGKey(0).dtype, jax.dtypes.prng_key)
assert str(key) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"

words = random.key_data(keys)
assert words.shape == (3, 2, 2)
assert words.dtype == jnp.uint32
assert jnp.array_equal(random.wrap_key_data(words, impl=random.key_impl(keys)), keys)
assert jnp.array_equal(random.split(random.PRNGKey(0), (3, 2)), words)

assert keys.T.shape == keys.reshape(2, 3).shape == keys.ravel().reshape(2, -1).shape == (2, 3)
assert keys[1:, 0].shape == (2,)
assert jnp.stack([key, key]).shape == jnp.broadcast_to(key, (2,)).shape == (2,)
assert jnp.concatenate([keys, keys]).shape == (6, 2)
assert bool((jnp.where(True, keys[0], keys[1]) == keys[0]).all())
assert bool(keys.at[0, 0].set(keys[2, 1])[0, 0] == keys[2, 1])
for function in (lambda: key + 1, lambda: jnp.sin(key), lambda: jnp.where(True, key, 0)):
    try:
        function()
    except (TypeError, ValueError):
        pass
    else:
        raise AssertionError

draws = jax.vmap(jax.vmap(random.uniform))(keys)
assert draws.shape == (3, 2)
assert jnp.array_equal(jax.vmap(jax.vmap(random.uniform), -1, -1)(keys), draws)
assert jnp.array_equal(jnp.vectorize(random.uniform)(keys), draws)
assert jnp.array_equal(lax.map(lambda row: jax.vmap(random.uniform)(row), keys), draws)
assert bool(jax.jit(lambda i: keys[i, 0])(2) == keys[2, 0])


def step(key, _):
    key, use = random.split(key)
    return key, random.uniform(use)


last, numbers = jax.jit(lambda key: lax.scan(step, key, length=3))(key)
again = lax.fori_loop(0, 3, lambda i, key: step(key, None)[0], key)
assert bool(last == again)
assert numbers.shape == (3,)
either = lax.cond(True, lambda key: key, lambda key: random.fold_in(key, 1), key)
assert bool(either == random.clone(key))

state = {"key": key, "step": 0}
assert len(jax.tree.leaves(state)) == 2
assert jax.tree.map(jnp.shape, {"keys": keys}) == {"keys": (3, 2)}
gradient = jax.grad(lambda x, key: x * random.uniform(key))(2.0, key)
assert jnp.allclose(gradient, random.uniform(key))
gradient = jax.grad(lambda state: state["x"] * random.uniform(state["key"]), allow_int=True)(
    {"x": 2.0, "key": key}
)
assert gradient["key"].dtype == jax.dtypes.float0

kept = pickle.loads(pickle.dumps(copy.deepcopy(keys)))
assert jnp.array_equal(kept, keys)
shape = jax.eval_shape(random.split, jax.ShapeDtypeStruct((), key.dtype))
assert (shape.shape, shape.dtype) == ((2,), key.dtype)
