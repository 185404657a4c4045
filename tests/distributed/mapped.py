"""A program with `jax.pmap`, to be run unchanged on any number of processes that divides four."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

x, w = jnp.arange(8.0).reshape(4, 2), jnp.ones(2)


def meeting(w, x):
    return jax.lax.psum(x @ w, "i") + x.sum() + jax.lax.axis_index("i")


found = jax.pmap(meeting, "i", in_axes=(None, 0))(w, x)
wanted = jax.vmap(meeting, in_axes=(None, 0), axis_name="i")(w, x)
np.testing.assert_allclose(found, wanted)


def loss(w, x):
    return jax.pmap(lambda w, x: jnp.tanh(x @ w), in_axes=(None, 0))(w, x).sum()


whole = jax.grad(lambda w, x: jnp.tanh(x @ w).sum())(w, x)
np.testing.assert_allclose(jax.grad(loss)(w, x), whole, rtol=1e-6)


@partial(jax.pmap, axis_name="b", static_broadcasted_argnums=1, out_axes=1)
def centred(x, k):
    return {"a": x * k - jax.lax.pmean(x, "b")}


x = np.asarray(x)
np.testing.assert_allclose(centred(x, 3)["a"], (3 * x - x.mean(0)).T, rtol=1e-6)
assert jax.pmap(lambda: 1, axis_size=4)().tolist() == [1, 1, 1, 1]
print("mapped alike")
