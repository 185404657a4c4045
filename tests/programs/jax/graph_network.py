"""Messages along the edges of a graph find how far each node is from the first one."""

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax, ops


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Graph:
    senders: jax.Array
    receivers: jax.Array
    lengths: jax.Array
    count: int = dataclasses.field(metadata={"static": True})


def distances(graph):
    start = jnp.full(graph.count, jnp.inf).at[0].set(0.0)

    def relax(_, d):
        through = d[graph.senders] + graph.lengths
        return jnp.minimum(d, ops.segment_min(through, graph.receivers, graph.count))

    return lax.fori_loop(0, graph.count, relax, start)


def smooth(graph):
    """How near all are, with weights that fall with the distance."""
    weights = jnp.exp(-graph.lengths)
    return ops.segment_sum(weights, graph.receivers, num_segments=graph.count)


edges = [(0, 1, 1.0), (1, 2, 2.0), (0, 2, 5.0), (2, 3, 1.0), (1, 3, 7.0), (3, 4, 0.5)]
senders, receivers, lengths = zip(*edges, strict=True)
graph = Graph(jnp.array(senders), jnp.array(receivers), jnp.array(lengths), 5)
assert jax.jit(distances)(graph).tolist() == [0.0, 1.0, 3.0, 4.0, 4.5]
assert len(jax.tree.leaves(graph)) == 3


def total(lengths):
    return smooth(dataclasses.replace(graph, lengths=lengths)).sum()


assert jnp.allclose(jax.grad(total)(graph.lengths), -jnp.exp(-graph.lengths))
assert jnp.allclose(jax.jacfwd(total)(graph.lengths), jax.jacrev(total)(graph.lengths))
