"""Predicted and measured memory of some programs, printed as JSON: run in a process of its own."""

from __future__ import annotations

import gc
import json
import tracemalloc

import numpy as np

import funcgrad as fg
from funcgrad import lax

N = 400
TABLE = np.linspace(0.0, 1.0, N * N).reshape(N, N)


def network(w, x):
    h = np.tanh(x @ w[0])
    return (np.tanh(h @ w[1]) ** 2).mean()


def walk(x):
    return lax.scan(lambda c, s: (np.tanh(c * s), c), x[0], x)


def by_matrices(x):
    return lax.fori_loop(0, 5, lambda i, c: np.tanh(c @ x), x)


def until(x):
    return lax.while_loop(lambda c: c[0, 0] < 9, lambda c: c * 2 @ x, x)


def either(x):
    return lax.cond(x[0, 0] > 0, lambda c: c @ c, lambda c: c * 2 @ c @ c, x)


def chain_of_sorts(x):
    for _ in range(6):
        x = np.sort(x) * 2 + 1
    return x


PROGRAMS = {
    "elementwise": (lambda x, y: np.exp(x) * y, ((N, N), (N, N)), {}),
    "network": (fg.value_and_grad(network), ([(N, N), (N, N)], (2 * N, N)), {}),
    "softmax": (
        fg.grad(lambda x: (np.exp(x) / np.exp(x).sum(1, keepdims=True) * TABLE).sum()),
        ((N, N),),
        {},
    ),
    "constants": (lambda x: x @ TABLE @ TABLE, ((N, N),), {}),
    "lookup": (lambda x: x[np.arange(3 * N) % N].cumsum(0), ((N, N),), {}),
    "scatter": (lambda x: x.T.at[3:, 2].set(0.0) @ x, ((N, N),), {}),
    "scan": (walk, ((N, N),), {}),
    "gradient of scan": (fg.grad(lambda x: walk(x)[0].sum()), ((N, N),), {}),
    "loop of products": (by_matrices, ((N, N),), {}),
    "gradient of products": (fg.grad(lambda x: by_matrices(x).sum()), ((N, N),), {}),
    "while": (until, ((N, N),), {}),
    "branch": (either, ((N, N),), {}),
    "sorts": (chain_of_sorts, ((N, N),), {}),
    "donated": (lambda x, y: (x + y, x * y), ((N, N), (N, N)), {"donate_argnums": 0}),
    "single precision": (lambda x: np.float32(2) * x @ x, ((N, N),), {"dtype": np.float32}),
}


def measured(name):
    function, shapes, options = PROGRAMS[name]
    dtype = options.pop("dtype", np.float64)

    def types(shape):
        if isinstance(shape, list):
            return [types(inner) for inner in shape]
        return fg.ShapeDtypeStruct(shape, dtype)

    compiled = fg.jit(function, **options).lower(*map(types, shapes)).compile()
    memory = compiled.memory_analysis()
    gc.collect()
    tracemalloc.start()  # here: it makes compiling slow
    before = tracemalloc.get_traced_memory()[0]
    args = fg.tree.map(lambda t: np.ones(t.shape, t.dtype), [types(shape) for shape in shapes])
    arguments = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.reset_peak()
    result = compiled(*args)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del result
    return {
        "predicted": memory.peak_memory_in_bytes - memory.constant_size_in_bytes,
        "measured": peak - before,
        "arguments": (memory.argument_size_in_bytes, arguments),
    }


if __name__ == "__main__":
    print(json.dumps({name: measured(name) for name in PROGRAMS}))
