"""Arrays that are updated at places: a sieve, a histogram, a table that is looked up."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

n = 60


@jax.jit
def sieve():
    def strike(p, is_prime):
        multiples = jnp.arange(n)
        struck = (multiples > p) & (multiples % p == 0)
        return lax.cond(is_prime[p], lambda m: m & ~struck, lambda m: m, is_prime)

    start = jnp.ones(n, bool).at[:2].set(False)
    return lax.fori_loop(2, 8, strike, start)


primes = jnp.nonzero(sieve())[0]
assert primes.tolist()[:6] == [2, 3, 5, 7, 11, 13]
assert len(primes) == 17

counts = jnp.zeros(4, jnp.int32).at[jnp.array([0, 2, 2, 3, 2])].add(1)
assert counts.tolist() == [1, 0, 3, 1]

table = jnp.arange(10.0) ** 2
squares = jax.vmap(lambda i: table[i])(jnp.array([3, 1, 9]))
assert squares.tolist() == [9.0, 1.0, 81.0]
picked = jax.jit(lambda i: table.at[i].get(mode="fill", fill_value=-1.0))
assert picked(4) == 16.0
assert picked(40) == -1.0

x = jnp.zeros(3)
y = x
y += 1.0
assert x.tolist() == [0.0, 0.0, 0.0]
assert y.tolist() == [1.0, 1.0, 1.0]

numbers = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)
rows = lax.gather(table.reshape(5, 2), jnp.array([[4], [0]]), numbers, slice_sizes=(1, 2))
assert np.array_equal(rows, [[64.0, 81.0], [0.0, 1.0]])
slope = jax.grad(lambda t: (t.at[jnp.array([1, 1])].mul(3.0) ** 2).sum())(jnp.ones(3))
assert slope.tolist() == [2.0, 162.0, 2.0]
