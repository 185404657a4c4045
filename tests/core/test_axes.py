"""Axes whose lanes are processes: what they have to agree on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from funcgrad import lax
from funcgrad.core.axes import axis_scope
from funcgrad.errors import AxisNameError
from funcgrad.higher_order.jit import along_processes
from tests.compiler.pretended import Pretended


class Asked(Pretended):
    """Processes that note what they had to agree on."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, str]] = []

    def demand_agreement(self, value: int, what: str) -> None:
        self.asked.append((value, what))


def test_decisions_about_messages_are_agreed_on() -> None:
    ranks = Asked()
    with axis_scope(ranks, ranks.size), along_processes():
        found = lax.while_loop(lambda c: c < 3, lambda c: lax.psum(c, "data"), np.float64(1.0))
        assert found == 4.0
        assert ranks.asked == [(on, "while_loop: the condition") for on in (1, 1, 0)]
        ranks.asked.clear()
        lax.cond(found > 1, lambda c: lax.psum(c, "data"), lambda c: c, found)
        assert ranks.asked == [(1, "cond or switch: the index")]
        ranks.asked.clear()
        lax.cond(found > 1, lambda c: c + 1, lambda c: c, found)  # without messages
        assert ranks.asked == []


def test_processes_are_shown_by_the_name_of_their_axis() -> None:
    ranks: Any = Asked()
    with axis_scope(ranks, 2), pytest.raises(AxisNameError) as caught:
        lax.psum(1.0, "other")
    assert "  in scope      'data' (length 2)" in str(caught.value).splitlines()
