"""The collector of cycles begins less often while programs are traced, and as before afterwards."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.base.collector import RARELY


@pytest.fixture
def threshold():
    before = gc.get_threshold()
    gc.set_threshold(701, 9, 11)
    yield gc.get_threshold()
    gc.set_threshold(*before)


def test_thresholds_are_as_before(threshold):
    seen = []

    def f(x):
        seen.append(gc.get_threshold())
        return fg.jit(lambda y: np.sin(y))(x)

    fg.make_jaxpr(f)(1.0)
    assert seen == [(RARELY, *threshold[1:])]
    assert gc.get_threshold() == threshold


def test_thresholds_are_as_before_after_an_error(threshold):
    def f(x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fg.make_jaxpr(f)(1.0)
    assert gc.get_threshold() == threshold


def test_a_collector_that_is_off_stays_so(threshold):
    gc.set_threshold(0)
    fg.make_jaxpr(lambda x: np.sin(x))(1.0)
    assert gc.get_threshold()[0] == 0
