"""Reads and writes at computed places: gathers, scatters, sparse products, sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, GRADIENT, Problem, workload


@workload(small=(10, 4, 12), normal=(20_000, 128, 8192), large=(200_000, 256, 65_536), rows=BOTH)
def embedding(words: int, width: int, count: int) -> Problem:
    """{count} rows of an embedding of {words} words, width {width}; the gradient scatters."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(words, width))
    places = rng.integers(0, words, count).astype(np.int32)

    def gather(table: Any, places: Any) -> Any:
        return table[places]

    def torch_program(torch: Any) -> Callable[..., Any]:
        return lambda table, places: torch.nn.functional.embedding(places, table)

    return Problem(
        (table, places),
        lambda xp: gather,
        gather,
        torch=torch_program,
        as_written=("autograd",),
    )


@workload(small=(10, 30), normal=(1000, 1_000_000), large=(100_000, 20_000_000), rows=FORWARD)
def histogram(bins: int, count: int) -> Problem:
    """{count} numbers counted into {bins} bins, by `.at[].add`."""
    places = np.random.default_rng(0).integers(0, bins, count).astype(np.int32)
    weights = np.random.default_rng(1).uniform(size=count)

    def program(xp: Any) -> Callable[..., Any]:
        def run(weights: Any, places: Any) -> Any:
            return xp.numpy.zeros(bins, weights.dtype).at[places].add(weights)

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(weights: Any, places: Any) -> Any:
            return torch.zeros(bins, dtype=weights.dtype).index_add_(0, places, weights)

        return run

    return Problem(
        (weights, places),
        program,
        lambda weights, places: np.bincount(places, weights, bins),
        torch=torch_program,
        tolerance=100.0,
    )


def sparse(rows: int, entries: int) -> tuple[np.ndarray, ...]:
    """Values, rows (sorted) and columns of a sparse square matrix, and a vector."""
    rng = np.random.default_rng(0)
    where = np.repeat(np.arange(rows), entries).astype(np.int32)
    columns = rng.integers(0, rows, rows * entries).astype(np.int32)
    return rng.normal(size=rows * entries), where, columns, rng.normal(size=rows)


@workload(small=(10, 3), normal=(50_000, 16), large=(1_000_000, 16), rows=BOTH)
def spmv(rows: int, entries: int) -> Problem:
    """Sparse matrix of {rows} rows with {entries} entries each times a vector, by `segment_sum`."""

    def program(xp: Any) -> Callable[..., Any]:
        def run(values: Any, where: Any, columns: Any, x: Any) -> Any:
            return xp.ops.segment_sum(
                values * x[columns], where, num_segments=rows, indices_are_sorted=True
            )

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(values: Any, where: Any, columns: Any, x: Any) -> Any:
            zeros = torch.zeros(rows, dtype=values.dtype)
            return zeros.index_add(0, where, values * x[columns])

        return run

    return Problem(
        sparse(rows, entries),
        program,
        lambda values, where, columns, x: np.bincount(where, values * x[columns], rows),
        argnums=(0, 3),
        torch=torch_program,
    )


@workload(small=(6, 4), normal=(1000, 1000), large=(5000, 5000), rows=BOTH)
def take_along(rows: int, columns: int) -> Problem:
    """Rows of a matrix {rows} x {columns} in another order each: `take_along_axis`."""
    rng = np.random.default_rng(0)
    order = np.argsort(rng.uniform(size=(rows, columns)), axis=1).astype(np.int32)

    def formula(xnp: Any) -> Callable[..., Any]:
        return lambda x, order: xnp.take_along_axis(x, order, axis=1)

    def torch_program(torch: Any) -> Callable[..., Any]:
        return lambda x, order: torch.take_along_dim(x, order, dim=1)

    arguments = rng.normal(size=(rows, columns)), order
    return Problem(arguments, lambda xp: formula(xp.numpy), formula(np), torch=torch_program)


@workload(small=(30,), normal=(200_000,), large=(5_000_000,), rows=BOTH)
def sort(count: int) -> Problem:
    """{count} numbers sorted."""
    return sorting((count,))


@workload(small=(6, 5), normal=(2000, 100), large=(20_000, 1000), rows=BOTH)
def sort_rows(rows: int, columns: int) -> Problem:
    """{rows} rows of {columns} numbers sorted."""
    return sorting((rows, columns))


def sorting(shape: tuple[int, ...]) -> Problem:
    def torch_program(torch: Any) -> Callable[[Any], Any]:
        return lambda x: torch.sort(x, dim=-1).values

    return Problem(
        (np.random.default_rng(0).normal(size=shape),),
        lambda xp: lambda x: xp.numpy.sort(x, axis=-1),
        lambda x: np.sort(x, axis=-1),
        torch=torch_program,
    )


@workload(small=(30,), normal=(200_000,), large=(5_000_000,), rows=FORWARD)
def argsort_take(count: int) -> Problem:
    """Payloads of {count} numbers in the order of their keys."""
    rng = np.random.default_rng(0)

    def formula(xnp: Any) -> Callable[..., Any]:
        return lambda keys, x: x[xnp.argsort(keys)]

    return Problem(
        (rng.permutation(count).astype(np.float64), rng.normal(size=count)),
        lambda xp: formula(xp.numpy),
        formula(np),
        as_written=("torch",),
    )


@workload(small=(12, 4), normal=(20_000, 64), large=(200_000, 128), rows=GRADIENT)
def graph_layer(nodes: int, width: int) -> Problem:
    """Message passing on a graph of {nodes} nodes with 8 edges each, width {width}."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(nodes, width)), rng.normal(size=(width, width)) / np.sqrt(width)
    senders = rng.integers(0, nodes, 8 * nodes).astype(np.int32)
    receivers = rng.integers(0, nodes, 8 * nodes).astype(np.int32)

    def program(xp: Any) -> Callable[..., Any]:
        def run(w: Any, x: Any, senders: Any, receivers: Any) -> Any:
            messages = (x @ w)[senders]
            return xp.numpy.tanh(xp.ops.segment_sum(messages, receivers, num_segments=nodes))

        return run

    def reference(w: Any, x: Any, senders: Any, receivers: Any) -> Any:
        sums = np.zeros((nodes, width))
        np.add.at(sums, receivers, (x @ w)[senders])
        return np.tanh(sums)

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(w: Any, x: Any, senders: Any, receivers: Any) -> Any:
            return torch.tanh(torch.zeros_like(x).index_add(0, receivers, (x @ w)[senders]))

        return run

    return Problem(
        (w, x, senders, receivers),
        program,
        reference,
        argnums=(0, 1),
        torch=torch_program,
        tolerance=10.0,
    )
