"""What reports of NaNs and infinities say of operands that have no values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import NonFiniteError


@fg.custom_vjp
def twice(x: Any) -> Any:
    return 2 * x


twice.defvjp(lambda x: (2 * x, x), lambda x, ct: (np.array([np.inf, 1.0]),))


def test_operands_without_values_are_shown_by_their_types() -> None:
    def f(x: Any) -> Any:
        return fg.checkpoint(twice)(x).sum()  # the rule

    with fg.debug_infs(), pytest.raises(NonFiniteError) as caught:
        fg.grad(f)(np.ones(2))
    operation, at, *rows, _ = str(caught.value).splitlines()
    assert operation.startswith("the transpose of ")
    assert operation.endswith(" gave the first inf.")
    line = f"test_nonfinite.py:{f.__code__.co_firstlineno + 1}   "
    assert at == f"  at            {line}return fg.checkpoint(twice)(x).sum()  # the rule"
    assert set(rows[:-2]) == {"  operand       f64[2]"}
    assert rows[-2:] == ["  result        f64[2] [inf 1.]", "  first at      [0], 1 in all"]
