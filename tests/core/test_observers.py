"""Observers: they receive what happens, and the calculus works without any."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.observers import Observer as Base
from funcgrad.core.observers import _attached, attach, current_location, detach
from funcgrad.errors import ConcretizationTypeError, UnexpectedTracerError

X = np.array([0.5, 2.0])


class Log(Base):
    """Writes down what it receives."""

    def __init__(self):
        self.events = []

    @contextmanager
    def tracing(self, what):
        self.events.append(f"tracing {what}")
        yield
        self.events.append("traced")

    @contextmanager
    def evaluating(self, operation):
        self.events.append(f"evaluating {operation}")
        yield

    def computed(self, operation, operands, results, primitive):
        kind = primitive.is_elementwise if primitive else "none"
        self.events.append(f"{operation} {len(operands)} {len(results)} {kind}")

    def ended(self, *traces):
        self.events.append(f"ended {traces[0].what}")

    def failed(self, error, trace):
        self.events.append(f"failed {type(error).__name__} {trace.what}")

    def refused(self, tracer, wanted):
        self.events.append(f"refused {wanted} {tracer.aval}")


@contextmanager
def attached(observer):
    attach(observer)
    try:
        yield observer
    finally:
        detach(observer)


@contextmanager
def without_observers():
    known = list(_attached)
    for observer in known:
        detach(observer)
    try:
        yield
    finally:
        for observer in known:
            attach(observer)


def square(x):
    return fg.numpy.sum(x * x)


def test_a_gradient_from_the_first_operation_to_the_last():
    with attached(Log()) as log:
        fg.grad(square)(X)
    assert log.events[:4] == [
        "evaluating mul",
        "mul 2 1 True",
        "the derivative of mul 4 6 True",  # two values, and placeholders of their tangents
        "evaluating reduce_sum",
    ]
    assert "ended grad(square)" in log.events
    assert any(event.startswith("the transpose of reduce_sum") for event in log.events)


def test_a_trace_is_enclosed():
    with attached(Log()) as log:
        fg.make_jaxpr(square)(X)
    assert log.events == ["tracing make_jaxpr(square)", "traced", "ended make_jaxpr(square)"]


def test_errors_and_refusals():
    def decides(x):
        return x if x > 0 else -x

    with without_observers(), attached(Log()) as log, pytest.raises(ConcretizationTypeError) as e:
        fg.make_jaxpr(decides)(1.0)
    assert str(e.value) == (
        "a truth value was asked for, but this is a traced bool[] inside make_jaxpr(decides), "
        "whose contents are not known."
    )
    assert "refused bool bool[]" in log.events
    assert "failed ConcretizationTypeError make_jaxpr(decides)" in log.events


@pytest.mark.parametrize("wanted", [hash, int, float, complex, range])
def test_without_observers_errors_are_plain(wanted):
    with without_observers():
        with pytest.raises(ConcretizationTypeError, match="asked for, but this is a traced i64"):
            fg.make_jaxpr(lambda x: wanted(x))(np.int64(3))
        assert current_location() is None
        kept = []
        fg.make_jaxpr(lambda x: kept.append(x) or x)(1.0)
        with pytest.raises(UnexpectedTracerError, match="has escaped"):
            kept[0] + 1.0


def test_transformations_compute_the_same_without_observers():
    with without_observers():
        assert np.array_equal(fg.grad(square)(X), 2 * X)
        assert np.array_equal(fg.hessian(square)(X), 2 * np.eye(2))
        assert np.array_equal(fg.jit(fg.vmap(fg.grad(square)))(X[None]), 2 * X[None])


def test_attached_twice_is_told_once_and_detached_twice():
    log = Log()
    with attached(log):
        with attached(log):
            fg.lax.sin(1.0)
        fg.lax.sin(1.0)
    fg.lax.sin(1.0)
    assert log.events == ["evaluating sin", "sin 1 1 True"] * 2


def test_observers_see_the_line_at_which_an_event_happened():
    class Lines(Base):
        def __init__(self):
            self.lines = set()

        def computed(self, operation, operands, results, primitive):
            self._note()

        def _note(self):
            self.lines.add(str(current_location()).partition("   ")[2])

    def f(x):
        y = np.sin(x)
        return np.sum(y * y)

    with attached(Lines()) as observer:
        fg.grad(f)(X)
        fg.jit(f)(X)
    assert observer.lines == {"y = np.sin(x)", "return np.sum(y * y)"}
