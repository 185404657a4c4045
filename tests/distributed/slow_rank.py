"""A rank that is slower than the others, in compiled and in evaluated steps."""

from __future__ import annotations

import platform
import time
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad import distributed, lax


def step(w: Any, x: Any) -> Any:
    gradient = fg.grad(lambda w: np.mean(np.tanh(x @ w)))(w)
    return w - lax.pmean(gradient, "data") - lax.psum_scatter(w @ w, "data", tiled=True).sum()


def main() -> None:
    x, w = np.ones((6, 8)), np.ones((8, 8)) / 8
    with distributed.spmd(axis_name="data"):
        last = distributed.size() - 1
        for run in (fg.jit(step), step):
            run(w, x)
            with distributed.waits() as waits:
                for _ in range(5):
                    if distributed.rank() == last:
                        time.sleep(0.2)
                    run(w, x)
            assert waits.slow == (last,), str(waits)
            assert [row.rank for row in waits.ranks] == list(range(last + 1))
            assert waits.ranks[last].host == platform.node()
            for row in waits.ranks[:last]:
                assert row.messages > row.own, str(waits)
                assert abs(row.seconds - waits.ranks[last].seconds) < 0.5 * row.seconds
            (line,) = (row for row in str(waits).splitlines() if "slow" in row)
            assert line.split()[:2] == [str(last), platform.node()[:20]]
        distributed.echo("the slow rank is named")


if __name__ == "__main__":
    main()
