"""References: arrays that change, inside and outside of transformations.

Every program is written twice: with references, and with NumPy's arrays and Python's loops, which
are what its values and derivatives are compared with.
"""

from __future__ import annotations

import copy
import pickle
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import errors, lax

X = np.array([0.5, -1.25, 2.0, 0.75])


def slopes(function: Callable[[Any], Any], x: Any, h: float = 1e-5) -> Any:
    columns = [(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(x.size)]
    return np.stack(columns, -1)


# Programs: with references, and with NumPy.


def here(x: Any) -> Any:
    ref = fg.new_ref(np.zeros(4))
    ref[0] = x[0] * 2
    ref[1:] += x[:3] ** 2
    ref[-1] *= x[1]
    before = fg.ref.swap(ref, 1, x[3])
    fg.ref.addupdate(ref, np.array([2, 2, 0]), x[:3])
    fg.ref.set(ref, slice(0, 2), ref[1::-1])
    return ref[...] * before + fg.ref.get(ref, 2)


def here_numpy(x: Any) -> Any:
    y = np.zeros(4)
    y[0] = x[0] * 2
    y[1:] += x[:3] ** 2
    y[-1] *= x[1]
    before = y[1]
    y[1] = x[3]
    np.add.at(y, np.array([2, 2, 0]), x[:3])
    y[:2] = y[1::-1].copy()
    return y * before + y[2]


def counted_loop(x: Any) -> Any:
    ref, total, xs = fg.new_ref(x), fg.new_ref(0.0), fg.new_ref(x)

    def body(i: Any, carry: Any) -> Any:
        ref[i] = ref[i - 1] * carry
        total[...] += ref[i]
        return carry + xs[i]

    last = lax.fori_loop(1, 4, body, 1.0)
    return fnp.stack([*ref[...], total[...], last])


def counted_loop_numpy(x: Any) -> Any:
    y, total, carry = x.copy(), 0.0, 1.0
    for i in range(1, 4):
        y[i] = y[i - 1] * carry
        total += y[i]
        carry = carry + x[i]
    return np.stack([*y, total, carry])


def scans(x: Any) -> Any:
    state, scale = fg.new_ref(np.ones(2)), fg.new_ref(x[0])

    def step(carry: Any, v: Any) -> Any:
        before = state[...]
        state[1] = state[0] * v
        state[0] = fnp.sin(before[1]) + carry
        return carry + v, before * scale[...]

    carry, ys = lax.scan(step, 0.25, x, reverse=True)
    return fnp.concatenate([ys.ravel(), state[...], fnp.reshape(carry, 1)])


def scans_numpy(x: Any) -> Any:
    state, carry, ys = np.ones(2), 0.25, []
    for v in x[::-1]:
        before = state.copy()
        state[1] = state[0] * v
        state[0] = np.sin(before[1]) + carry
        carry = carry + v
        ys.insert(0, before * x[0])
    return np.concatenate([*ys, state, [carry]])


def while_it_lasts(x: Any) -> Any:
    value, count = fg.new_ref(x[2]), fg.new_ref(0)

    def body(carry: Any) -> Any:
        value[...] = value[...] * (1.25 + x[0])
        count[...] += 1
        return carry + count[...] * x[1]

    end = lax.while_loop(lambda carry: value[...] < 12.0, body, x[3])
    return fnp.stack([value[...], end, count[...] * x[0]])


def while_it_lasts_numpy(x: Any) -> Any:
    value, count, carry = x[2], 0, x[3]
    while value < 12.0:
        value = value * (1.25 + x[0])
        count += 1
        carry = carry + count * x[1]
    return np.stack([value, carry, count * x[0]])


def branches(x: Any) -> Any:
    a, b, whole = fg.new_ref(x), fg.new_ref(x[:2]), fg.new_ref(x)

    def grows(k: Any) -> Any:
        a[k] = a[k] * 3.0
        return b[0]

    def stays(k: Any) -> Any:
        b[1] = a[k] ** 2
        return b[0] + 1.0

    first = lax.cond(x[0] > 0, grows, stays, 1)
    second = lax.cond(x[1] > 0, grows, stays, 2)
    third = lax.switch(2, [grows, stays, lambda k: whole[k] * b[1] * a[0] * x[2]], 3)
    return fnp.concatenate([a[...], b[...], fnp.stack([first, second, third])])


def branches_numpy(x: Any) -> Any:
    a, b = x.copy(), x[:2].copy()
    a[1] *= 3.0
    first = b[0]
    b[1] = a[2] ** 2
    second = b[0] + 1.0
    return np.concatenate([a, b, [first, second, x[3] * b[1] * a[0] * x[2]]])


def nested(x: Any) -> Any:
    grid, seen, xs = fg.new_ref(np.zeros((2, 4))), fg.new_ref(1.0), fg.new_ref(x)

    def row(i: Any, _: Any) -> None:
        def element(j: Any, __: Any) -> None:
            def odd() -> None:
                grid[i, j] = xs[j] * seen[...]

            def even() -> None:
                seen[...] += xs[j] * grid[i - 1, j]

            lax.cond((i + j) % 2 == 1, odd, even)

        lax.fori_loop(0, 4, element, None)

    lax.fori_loop(0, 2, row, None)
    return fnp.concatenate([grid[...].ravel(), fnp.reshape(seen[...], 1)])


def nested_numpy(x: Any) -> Any:
    grid, seen = np.zeros((2, 4)), 1.0
    for i in range(2):
        for j in range(4):
            if (i + j) % 2 == 1:
                grid[i, j] = x[j] * seen
            else:
                seen += x[j] * grid[i - 1, j]
    return np.concatenate([grid.ravel(), [seen]])


def in_calls(x: Any) -> Any:
    a, b = fg.new_ref(x), fg.new_ref(x[0])

    @fg.jit
    def passed(ref: Any, y: Any) -> Any:
        ref[0] = ref[1] * y
        return ref[0] + b[...]

    @fg.checkpoint
    def again(y: Any, ref: Any) -> Any:
        b[...] = fnp.sin(b[...]) * y
        ref[3] += b[...]
        return b[...] ** 2

    first = passed(a, x[1])
    second = again(x[2], a)
    third = passed(a, second)
    return fnp.concatenate([a[...], fnp.stack([b[...], first, second, third])])


def in_calls_numpy(x: Any) -> Any:
    a, b = x.copy(), x[0]
    a[0] = a[1] * x[1]
    first = a[0] + b
    b = np.sin(b) * x[2]
    a[3] += b
    second = b**2
    a[0] = a[1] * second
    third = a[0] + b
    return np.concatenate([a, [b, first, second, third]])


def mapped(x: Any) -> Any:
    rows, columns, shared = fg.new_ref(np.zeros((4, 2))), fg.new_ref(np.ones((3, 4))), fg.new_ref(x)

    def lane(v: Any, row: Any, pair: Any) -> Any:
        row[0] = v * shared[1]
        pair["column"][1:] *= row[0]
        row[1] += pair["column"][2]
        return row[1] + v

    out = fg.vmap(lane, in_axes=(0, 0, 1))(x, rows, {"column": columns})
    return fnp.concatenate([out, rows[...].ravel(), columns[...].ravel()])


def mapped_numpy(x: Any) -> Any:
    rows, columns, out = np.zeros((4, 2)), np.ones((3, 4)), []
    for i, v in enumerate(x):
        rows[i, 0] = v * x[1]
        columns[1:, i] *= rows[i, 0]
        rows[i, 1] += columns[2, i]
        out.append(rows[i, 1] + v)
    return np.concatenate([out, rows.ravel(), columns.ravel()])


def walked(x: Any) -> Any:
    rows, last = fg.new_ref(np.ones((4, 2))), fg.new_ref(0.0)

    def step(carry: Any, pair: Any) -> Any:
        v, row = pair
        before = row[0]
        row[0] = carry * v
        last[...] = row[0] + row[1]
        return carry + v, before * v

    carry, ys = lax.scan(step, 2.0, (x, rows), reverse=True)
    lax.scan(lambda c, row: (row.__setitem__(1, row[1] * row[0]), None), None, rows)
    return fnp.concatenate([ys, rows[...].ravel(), fnp.stack([last[...], carry])])


def walked_numpy(x: Any) -> Any:
    rows, last, carry, ys = np.ones((4, 2)), 0.0, 2.0, np.zeros(4)
    for i in reversed(range(4)):
        ys[i] = rows[i, 0] * x[i]
        rows[i, 0] = carry * x[i]
        last = rows[i, 0] + rows[i, 1]
        carry += x[i]
    rows[:, 1] *= rows[:, 0]
    return np.concatenate([ys, rows.ravel(), [last, carry]])


def of_nothing(x: Any) -> Any:
    empty, one, xs = fg.new_ref(np.zeros((0, 3))), fg.new_ref(np.zeros(1)), fg.new_ref(x)

    def body(i: Any, _: Any) -> None:
        empty[...] *= x[0]
        empty[:, 1] = x[:0]
        one[...] += empty[...].sum() + xs[i]

    lax.fori_loop(0, 3, body, None)
    lax.fori_loop(0, 0, body, None)
    return one[...]


def of_nothing_numpy(x: Any) -> Any:
    return np.array([x[:3].sum()])


def of_complex_numbers(x: Any) -> Any:
    z, xs = fg.new_ref(np.zeros(2, complex)), fg.new_ref(x)

    def body(i: Any, _: Any) -> None:
        z[0] = z[0] * 1j + xs[i]
        z[1] = z[1] + z[0] * z[0]

    lax.fori_loop(0, 4, body, None)
    return fnp.concatenate([z[...].real, z[...].imag])


def of_complex_numbers_numpy(x: Any) -> Any:
    a, b = 0j, 0j
    for v in x:
        a = a * 1j + v
        b = b + a * a
    return np.array([a.real, b.real, a.imag, b.imag])


PROGRAMS = {
    f.__name__: (f, globals()[f"{f.__name__}_numpy"])
    for f in (
        here, counted_loop, scans, while_it_lasts, branches, nested, in_calls, mapped, walked,
        of_nothing, of_complex_numbers,
    )
}  # fmt: skip
TRANSFORMED: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "nothing": lambda f: f,
    "jit": lambda f: fg.jit(f),
    "vmap": lambda f: lambda x: fg.vmap(f)(np.stack([x, x * 1.5]))[0],
    "jvp": lambda f: lambda x: fg.jvp(f, (x,), (x,))[0],
    "vjp": lambda f: lambda x: fg.vjp(f, x)[0],
    "linearize": lambda f: lambda x: fg.linearize(f, x)[0],
    "checkpoint": lambda f: lambda x: fg.vjp(fg.checkpoint(f), x)[0],
    "jit of vmap": lambda f: lambda x: fg.jit(fg.vmap(f))(x[None])[0],
    "vmap of vjp": lambda f: lambda x: fg.vmap(lambda v: fg.vjp(f, v)[0])(x[None])[0],
    "map": lambda f: lambda x: lax.map(f, x[None])[0],
    "cond": lambda f: lambda x: lax.cond(x[0] > 0, f, f, x),
    "custom_jvp": lambda f: lambda x: with_rule(f)(x),
}


def with_rule(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    g = fg.custom_jvp(lambda x: f(x))
    g.defjvp(lambda primals, tangents: fg.jvp(f, primals, tangents))
    return g


def check_values(name: str) -> None:
    function, of_numpy = PROGRAMS[name]
    expected = of_numpy(X)
    for kind, transform in TRANSFORMED.items():
        got = transform(function)(X)
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13, err_msg=kind)


def check_derivatives(name: str) -> None:
    function, of_numpy = PROGRAMS[name]
    expected = slopes(of_numpy, X)
    derivatives = {
        "jacrev": fg.jacrev(function),
        "jacfwd": fg.jacfwd(function),
        "jit": fg.jit(fg.jacrev(function)),
        "checkpoint": fg.jacrev(fg.checkpoint(function)),
        "jit inside": fg.jacrev(fg.jit(function)),
        "vmap inside": fg.jacrev(lambda x: fg.vmap(function)(x[None])[0]),
        "vmap outside": lambda x: fg.vmap(fg.jacrev(function))(x[None])[0],
    }
    for kind, derivative in derivatives.items():
        np.testing.assert_allclose(derivative(X), expected, 1e-6, 1e-7, err_msg=kind)
    second = fg.jacfwd(fg.jacrev(function))(X)
    expected = slopes(lambda x: slopes(of_numpy, x, 1e-3), X, 1e-3)
    np.testing.assert_allclose(second, expected, rtol=1e-3, atol=1e-3)
    twice = fg.jacrev(fg.jacrev(function))(X)
    np.testing.assert_allclose(twice, second, rtol=1e-11, atol=1e-11)


# In every run without kernels: programs are made all the same, and evaluated step by step.


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_numpys(name: str) -> None:
    with fg.debug_nans():
        check_values(name)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_programs(name: str) -> None:
    with fg.debug_nans():
        check_derivatives(name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_are_numpys(name: str) -> None:
    check_values(name)
    check_derivatives(name)


def test_a_compiled_program() -> None:
    np.testing.assert_allclose(fg.jit(counted_loop)(X), counted_loop_numpy(X), rtol=1e-13)
    slope = fg.jit(fg.grad(lambda x: counted_loop(x).sum()))(X)
    np.testing.assert_allclose(slope, slopes(counted_loop_numpy, X).sum(0), 1e-7)


# Outside of transformations.


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1", "?", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (0, 2), (2, 3)])
def test_outside_it_is_a_box(dtype: str, shape: tuple[int, ...]) -> None:
    start = np.arange(np.prod(shape), dtype=int).reshape(shape).astype(dtype)
    ref, array = fg.new_ref(start), start.copy()
    assert (ref.shape, ref.dtype) == (shape, start.dtype)
    assert (ref.ndim, ref.size) == (len(shape), start.size)
    got = ref[...]
    assert type(got) is np.ndarray
    assert got.dtype == start.dtype
    got[...] = 1  # a copy
    ref[...] = 1
    array[...] = 1
    ref[...] *= np.array(3).astype(dtype)
    array[...] *= np.array(3).astype(dtype)
    if shape:
        ref[-1:] = 0
        array[-1:] = 0
        assert len(ref) == len(array)
        assert all(np.array_equal(a, b) for a, b in zip(ref, array, strict=True))
    if len(shape) == 2 and shape[0]:
        ref[1, [0, 0, 2]] = [1, 0, 1]
        array[1, [0, 0, 2]] = [1, 0, 1]
        ref[ref[...] == 0] = 1
        array[array == 0] = 1
    np.testing.assert_array_equal(ref[...], array)
    np.testing.assert_array_equal(start, start.copy())
    assert repr(ref) == "Ref" + repr(array)[5:]
    assert np.array_equal(fg.freeze(ref), array)


def test_it_shares_memory_with_nothing() -> None:
    start = np.zeros(3)
    ref = fg.new_ref(start)
    whole, part = ref[...], ref[1:]
    passed = fg.jit(lambda: ref[...])()
    ref[:] = 1.0
    start[:] = 2.0
    for array in (whole, part, passed):
        assert not array.any()
    inside: list[Any] = []
    fg.grad(lambda x: inside.append(ref[...]) or x * ref[0])(1.0)
    ref[:] = 5.0
    assert np.array_equal(inside[0], np.ones(3))
    frozen = fg.freeze(other := fg.new_ref(frozen_from := np.ones(2)))
    frozen[0] = 3.0
    assert frozen_from[0] == 1.0
    assert other.shape == (2,)


def test_one_array_in_two_references() -> None:
    a, b = fg.new_ref(np.zeros(2)), fg.new_ref(np.zeros(2))

    def both() -> None:
        a[...] = b[...] = a[...] + 1.0

    fg.jit(both)()
    a[0] = 7.0
    assert np.array_equal(b[...], [1.0, 1.0])


def test_copies_are_references_of_their_own() -> None:
    ref = fg.new_ref([1.0, 2.0])
    for other in (copy.copy(ref), copy.deepcopy(ref), pickle.loads(pickle.dumps(ref))):
        other[0] = 9.0
        assert np.array_equal(other[...], [9.0, 2.0])
    assert ref[0] == 1.0


# References of outside in compiled functions.


def test_the_caller_sees_what_jit_does() -> None:
    ref, runs = fg.new_ref(np.zeros(3)), []

    @fg.jit
    def step(x: Any) -> Any:
        runs.append(1)
        ref[1] += x
        return ref[...].sum() * 2

    assert step(1.5) == 3.0
    assert step(2.0) == 7.0
    ref[0] = 10.0
    assert step(0.0) == 27.0
    assert np.array_equal(ref[...], [10.0, 3.5, 0.0])
    assert len(runs) == 1
    assert fg.grad(lambda x: step(fg.stop_gradient(1.0)) * x)(2.0) == 29.0
    assert ref[1] == 4.5


def test_jit_is_traced_once_for_all_references_of_a_type() -> None:
    runs = []

    @fg.jit
    def step(ref: Any, x: Any, *, more: Any) -> Any:
        runs.append(1)
        ref[...] = ref[...] * x
        more["ref"][0] += x
        return ref[...].sum(), more["ref"][0]

    refs = [fg.new_ref(np.full(2, float(i))) for i in range(3)]
    log = fg.new_ref(np.zeros(1))
    for ref in refs:
        total, logged = step(ref, 2.0, more={"ref": log})
    assert (total, logged) == (8.0, 6.0)
    assert [ref[0] for ref in refs] == [0.0, 2.0, 4.0]
    assert len(runs) == 1
    assert step.cache_info().traces == 1
    assert "Ref" not in str(step.cache_info())
    step(fg.new_ref(np.ones(3)), 2.0, more={"ref": log})
    assert len(runs) == 2
    step.clear_cache()
    step(refs[0], 2.0, more={"ref": log})
    assert len(runs) == 3


def test_static_arguments_beside_references() -> None:
    step = fg.jit(lambda n, ref: ref.__setitem__(0, ref[0] + n), static_argnums=0)
    ref = fg.new_ref(np.zeros(2))
    step(2, ref)
    step(3, ref)
    assert ref[0] == 5.0
    # One that is static is closed over.
    other = fg.new_ref(np.zeros(2))
    both = fg.jit(lambda a, b: a.__setitem__(0, b[0] * 2), static_argnums=0)
    both(other, ref)
    assert other[0] == 10.0


@pytest.mark.parametrize("run", ["plain", "jit"])
def test_loops_change_references_of_outside(run: str) -> None:
    ref = fg.new_ref(0)

    def count(n: Any) -> None:
        def body(i: Any) -> Any:
            ref[...] += i
            return i + 1

        lax.while_loop(lambda i: i < n, body, 0)
        lax.cond(n > 3, lambda: ref.__setitem__(..., -ref[...]), lambda: None)

    function = fg.jit(count) if run == "jit" else count
    function(4)
    assert ref[...] == -6
    function(3)
    assert ref[...] == -3
    assert ref.dtype == np.int64


def test_values_that_do_not_depend_are_written_through_derivatives() -> None:
    log = fg.new_ref(np.zeros(2))

    def f(x: Any, scale: Any) -> Any:
        log[0] += 1.0
        log[1] = scale
        return lax.fori_loop(0, 2, lambda i, y: y * scale, x)

    assert fg.grad(f)(1.0, 3.0) == 9.0
    assert fg.jvp(lambda x: f(x, 2.0), (1.0,), (1.0,))[1] == 4.0
    assert fg.vmap(lambda x: f(x, 5.0))(np.ones(2))[0] == 25.0
    assert np.array_equal(log[...], [3.0, 5.0])
    # As arguments, too.
    assert fg.grad(lambda x, ref: x * ref[1])(1.0, log) == 5.0
    fg.vmap(lambda x, ref: ref.__setitem__(0, 7.0) or x, (0, None))(np.ones(2), log)
    assert log[0] == 7.0


def test_reading_in_a_loop_is_no_writing() -> None:
    ref = fg.new_ref(2.0)
    f = lambda x: lax.fori_loop(0, 3, lambda i, y: y * ref[...], x)  # noqa: E731
    np.testing.assert_array_equal(fg.vmap(f)(np.array([1.0, 2.0])), [8.0, 16.0])
    assert fg.grad(f)(1.0) == 8.0
    assert fg.make_jaxpr(fg.grad(lambda x: x))(1.0) is not None


def test_other_threads_may_read_an_argument() -> None:
    ref, seen = fg.new_ref(np.ones(2)), []

    def watched(own: Any) -> None:
        thread = threading.Thread(target=lambda: seen.append(ref[0]))
        thread.start()
        thread.join()
        own[0] = 2.0

    fg.jit(watched)(ref)
    assert (seen, ref[0]) == ([1.0], 2.0)


def test_eval_shape_changes_nothing() -> None:
    ref = fg.new_ref(np.zeros(2))
    f = lambda x: ref.__setitem__(0, x) or ref[...]  # noqa: E731
    assert fg.eval_shape(f, 1.0).shape == (2,)
    assert fg.jit(f).eval_shape(1.0).shape == (2,)
    assert not ref[...].any()


def test_empty_and_frozen_and_freed() -> None:
    ref = fg.empty_ref(fg.ShapeDtypeStruct((2, 3), np.float32))
    assert (ref.shape, ref.dtype) == ((2, 3), np.float32)
    f = lambda x: fg.freeze(fg.new_ref(x))[0]  # noqa: E731
    assert fg.grad(f)(np.ones(2))[0] == 1.0
    assert isinstance(ref, fg.Ref)
    assert not isinstance(ref, fg.Array)
    fg.new_ref(1.0, memory_space=None, kind="no_grad_no_remat")


def test_stashing_gradients() -> None:
    # What a backward pass meets, written where the caller finds it.
    stash = fg.new_ref(np.zeros(()))

    @fg.custom_vjp
    def tap(x: Any) -> Any:
        return x

    def backward(_: Any, ct: Any) -> Any:
        stash[...] = ct
        return (ct,)

    tap.defvjp(lambda x: (x, None), backward)
    fg.grad(lambda x: fnp.sin(tap(x * 3.0)))(1.0)
    np.testing.assert_allclose(stash[...], np.cos(3.0))


@fg.custom_vjp
def noted(ref: Any, x: Any) -> Any:
    """The argument, whose cotangent is written to a reference."""
    return x


def note(ref: Any, ct: Any) -> tuple[Any, Any]:
    ref[...] = ct
    return None, ct


noted.defvjp(lambda ref, x: (x, ref), note)


@fg.custom_vjp
def wrongly_noted(ref: Any, x: Any) -> Any:
    return x


wrongly_noted.defvjp(lambda ref, x: (x, ref), lambda ref, ct: (ref[...], ct))


@pytest.mark.parametrize("run", ["plain", "jit"])
def test_rules_get_references(run: str) -> None:
    def f(x: Any, refs: Any) -> Any:
        for ref in refs:
            x = fnp.sin(noted(ref, x))
        return x

    refs = [fg.new_ref(0.0), fg.new_ref(0.0)]
    gradient = fg.grad(f) if run == "plain" else fg.jit(fg.grad(f))
    found = gradient(0.3, refs)
    np.testing.assert_allclose(found, np.cos(np.sin(0.3)) * np.cos(0.3))
    np.testing.assert_allclose(refs[0][...], found)
    np.testing.assert_allclose(refs[1][...], np.cos(np.sin(0.3)))
    assert noted(refs[0], 2.0) == 2.0


# Gradients in references.


def changed(ref: Any, w: Any) -> Any:
    ref[0] = ref[0] * ref[1]
    ref[1:] += w
    return fnp.sum(ref[...] ** 2)


def changed_array(x: Any, w: Any) -> tuple[Any, Any]:
    y = fnp.concatenate([(x[0] * x[1])[None], x[1:] + w])
    return y, fnp.sum(y**2)


@pytest.mark.parametrize("run", ["plain", "jit"])
def test_gradients_of_references(run: str) -> None:
    """Before, the reference holds the cotangent of the final content, and then the first one's."""

    def pulled(ref: Any, w: Any, gradient: Any) -> Any:
        value, pull = fg.vjp(changed, ref, w)
        return value, pull.with_refs(gradient, fg.ad.GradValue())(3.0)[1]

    x, w, ct = np.array([2.0, 3.0]), 0.5, np.array([1.0, -2.0])
    (final, value), pull = fg.vjp(changed_array, x, w)
    wanted = pull((ct, 3.0))
    ref, gradient = fg.new_ref(x), fg.new_ref(ct)
    found = (fg.jit(pulled) if run == "jit" else pulled)(ref, w, gradient)
    np.testing.assert_allclose(found, [value, wanted[1]])
    np.testing.assert_allclose(ref[...], final)
    np.testing.assert_allclose(gradient[...], wanted[0])


def test_gradients_are_added_over_a_loop() -> None:
    weights, data = np.arange(6.0).reshape(2, 3) / 6, np.arange(24.0).reshape(4, 2, 3) / 24

    def loss(w: Any, x: Any) -> Any:
        return fnp.sum(fnp.tanh(w * x))

    @fg.jit
    def total(w: Any, xs: Any) -> Any:
        gradient = fg.new_ref(np.zeros_like(w))

        def body(carry: Any, x: Any) -> Any:
            value, pull = fg.vjp(loss, w, x)
            pull.with_refs(gradient, fg.ad.DontWant())(np.ones_like(value))
            return carry, value

        return lax.scan(body, None, xs)[1], fg.freeze(gradient)

    values, gradient = total(weights, data)
    np.testing.assert_allclose(values, [loss(weights, x) for x in data])
    np.testing.assert_allclose(gradient, sum(fg.grad(loss)(weights, x) for x in data))


def test_gradients_that_are_not_wanted_are_not_computed() -> None:
    tree = {"w": np.ones((3, 3)), "b": np.ones(3)}
    _, pull = fg.vjp(lambda p, x: p["w"] @ x + p["b"], tree, np.ones(3))
    some = pull.with_refs({"w": fg.ad.GradValue(), "b": fg.ad.DontWant()}, fg.ad.DontWant())
    ct = np.array([1.0, 2.0, 3.0])
    found = some(ct)
    np.testing.assert_array_equal(found[0]["w"], pull(ct)[0]["w"])
    assert found[0]["b"] == found[1] == fg.ad.DidntWant()
    assert fg.tree.leaves(found[1]) == []
    assert str(fg.make_jaxpr(some)(ct)).count("contract") == 1
    assert str(fg.make_jaxpr(pull)(ct)).count("contract") == 2


# What is refused. `REF` stands for a reference of outside.

_ARRAY = "a reference to f64[2] is no array, and one is needed here."


def given(function: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: function(fg.new_ref(np.ones(2)))


def leaves_grad(ref: Any) -> Any:
    return fg.grad(lambda x: ref.__setitem__(0, x) or x)(1.0)


def leaves_vmap(ref: Any) -> Any:
    return fg.vmap(lambda x: ref.__setitem__(0, x) or x)(np.ones(2))


def leaves_loop(ref: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        ref[0] += x
        return x

    return fg.grad(lambda x: lax.fori_loop(0, 2, body, x))(1.0)


def leaves_inner(ref: Any) -> Any:
    def outer(x: Any) -> Any:
        own = fg.new_ref(x)
        fg.grad(lambda y: own.__setitem__(..., y) or y)(2.0)
        return own[...]

    return fg.grad(outer)(1.0)


def escapes(ref: Any) -> Any:
    kept: list[Any] = []
    fg.jit(lambda x: kept.append(fg.new_ref(x)) or x)(1.0)
    return kept[0][...]


def frozen_before(ref: Any) -> Any:
    fg.freeze(ref)
    return ref[...]


def freed_before(ref: Any) -> Any:
    fg.free_ref(ref)
    ref[0] = 1.0


def frozen_in_jit(ref: Any) -> Any:
    fg.jit(lambda: fg.freeze(ref))()


def closed_over_twice(ref: Any) -> Any:
    fg.jit(lambda other: other[0] + ref[0])(ref)


def closed_over_and_mapped(ref: Any) -> Any:
    fg.vmap(lambda other: other[...] + ref[0])(ref)


def condition_writes(ref: Any) -> Any:
    def asks(i: Any) -> Any:
        ref[0] = 1.0
        return i < 3

    lax.while_loop(asks, lambda i: i + 1, 0)


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "operator": (lambda ref: np.ones(2) + ref, errors.ArgumentError, _ARRAY),
    "function": (lambda ref: np.sin(ref), errors.ArgumentError, _ARRAY),
    "function of NumPy": (lambda ref: np.sum(ref), errors.ArgumentError, _ARRAY),
    "conversion": (lambda ref: np.asarray(ref), errors.ArgumentError, _ARRAY),
    "our function": (lambda ref: fnp.sin(ref), errors.ArgumentError, _ARRAY),
    "gradient by it": (lambda ref: fg.grad(lambda r: r[0])(ref), errors.ArgumentError, _ARRAY),
    "linearize": (lambda ref: fg.linearize(lambda r: r[0], ref), errors.ArgumentError, _ARRAY),
    "vjp": (
        lambda ref: fg.vjp(lambda r: r[0], ref)[1](1.0), errors.ArgumentError,
        "vjp(<lambda>): an argument is a reference, whose gradient must be accumulated into a "
        "reference.",
    ),
    "value of a gradient in a reference": (
        lambda ref: fg.vjp(lambda r: r[0], ref)[1].with_refs(fg.ad.GradValue()),
        errors.ArgumentError,
        "with_refs of vjp(<lambda>): `wanted[0]`: an argument is a reference, whose gradient must "
        "be accumulated into a reference.",
    ),
    "gradient of another shape": (
        lambda ref: fg.vjp(lambda x: x, 1.0)[1].with_refs(ref), errors.ArgumentError,
        "with_refs of vjp(<lambda>): `wanted[0]`: the cotangent of f64[] cannot be added to a "
        "reference to f64[2].",
    ),
    "gradient of an integer": (
        lambda ref: fg.vjp(lambda i: 1.0 * i, np.arange(2))[1].with_refs(ref),
        errors.ArgumentError, "`wanted[0]`: the cotangent of i64[2] cannot be added",
    ),
    "gradient in an array": (
        lambda ref: fg.vjp(lambda x: x, 1.0)[1].with_refs(np.zeros(())), errors.ArgumentError,
        "`wanted[0]` must be a reference, GradValue() or DontWant(), got a ndarray.",
    ),
    "one gradient for two references": (
        lambda ref: fg.vjp(lambda a, b: a[0] * b[0], ref, fg.new_ref(np.ones(2)))[1].with_refs(
            *[fg.new_ref(np.zeros(2))] * 2
        ),
        errors.ArgumentError,
        "with_refs of vjp(<lambda>): a reference to f64[2] stands for the gradient of a reference, "
        "and of another argument.",
    ),
    "too few gradients": (
        lambda ref: fg.vjp(lambda x, y: x * y, 1.0, 1.0)[1].with_refs(fg.ad.DontWant()),
        errors.TreeError, "with_refs of vjp(<lambda>) needs an entry for every argument.",
    ),
    "passed twice to vjp": (
        lambda ref: fg.vjp(lambda a, b: a[0], ref, ref), errors.ArgumentError,
        "vjp(<lambda>) got the same reference to f64[2] twice.",
    ),
    "cotangent of a reference": (
        lambda ref: fg.grad(lambda x: wrongly_noted(ref, x))(1.0), errors.ArgumentError,
        "returned a cotangent for a reference to f64[2].",
    ),
    "rule outside of its jit": (
        lambda ref: fg.grad(fg.jit(lambda x, r: noted(r, x)))(1.0, ref), errors.ArgumentError,
        "gets a reference to f64[2] of jit(<lambda>), which has returned when derivatives are "
        "taken of it from outside.",
    ),
    "jvp": (lambda ref: fg.jvp(lambda r: r[0], (ref,), (1.0,)), errors.ArgumentError, _ARRAY),
    "returned by jit": (lambda ref: fg.jit(lambda: ref)(), errors.ArgumentError, _ARRAY),
    "own returned by jit": (
        lambda ref: fg.jit(lambda: fg.new_ref(np.zeros(2)))(), errors.ArgumentError, _ARRAY,
    ),
    "returned by vmap": (
        lambda ref: fg.vmap(lambda x: ref)(np.ones(2)), errors.ArgumentError, _ARRAY,
    ),
    "returned by grad": (lambda ref: fg.grad(lambda x: ref)(1.0), errors.ArgumentError, _ARRAY),
    "returned by cond": (
        lambda ref: lax.cond(True, lambda: ref, lambda: ref), errors.ArgumentError, _ARRAY,
    ),
    "carried": (
        lambda ref: lax.fori_loop(0, 2, lambda i, r: r, ref), errors.ArgumentError, _ARRAY,
    ),
    "walked and closed over": (
        lambda ref: lax.scan(lambda c, r: (c, ref[0]), 0, ref), errors.ArgumentError,
        "a reference to f64[2] is an argument of scan(<lambda>), and is used otherwise",
    ),
    "reference to it": (
        fg.new_ref, errors.ArgumentError,
        "new_ref: references to references are not made. Read it: ref[...].",
    ),
    "passed twice": (
        lambda ref: fg.jit(lambda a, b: a[0])(ref, ref), errors.ArgumentError,
        "jit(<lambda>) got the same reference to f64[2] twice.",
    ),
    "mapped twice": (
        lambda ref: fg.vmap(lambda a, b: a[...])(ref, ref), errors.ArgumentError,
        "vmap(<lambda>) got the same reference to f64[2] twice.",
    ),
    "passed and closed over": (
        closed_over_twice, errors.ArgumentError,
        "a reference to f64[2] is an argument of jit(<lambda>), and is used otherwise",
    ),
    "mapped and closed over": (
        closed_over_and_mapped, errors.ArgumentError,
        "a reference to f64[2] is an argument of vmap(<lambda>), and is used otherwise",
    ),
    "frozen": (frozen_before, errors.ArgumentError, "a reference to f64[2] was frozen at test_ref"),
    "freed": (freed_before, errors.ArgumentError, "a reference to f64[2] was freed at test_ref"),
    "frozen inside": (
        frozen_in_jit, errors.ArgumentError,
        "a reference to f64[2] was made outside of jit(<lambda>), inside evaluation, and cannot "
        "end inside.",
    ),
    "own carried": (
        lambda ref: fg.jit(lambda: lax.fori_loop(0, 2, lambda i, r: r, fg.new_ref(np.ones(2))))(),
        errors.ArgumentError, "fori_loop(<lambda>): `init_val`: " + _ARRAY,
    ),
    "gradient names it": (
        lambda ref: fg.grad(lambda p: p["r"][0])({"r": ref}), errors.ArgumentError, _ARRAY,
    ),
    "leak of grad": (
        leaves_grad, errors.UnexpectedTracerError,
        "`ref[index] = value` would put a traced f64[2] of grad(<lambda>) into a reference of "
        "outside of it, made inside evaluation: the value would leak.",
    ),
    "leak of vmap": (
        leaves_vmap, errors.UnexpectedTracerError,
        "`ref[index] = value` would put a traced f64[2] of vmap(<lambda>) into a reference of "
        "outside of it, made inside evaluation: the value would leak.",
    ),
    "leak of a loop": (
        leaves_loop, errors.UnexpectedTracerError,
        "`fori_loop(body)` would put a traced f64[2] of grad(<lambda>) into a reference of outside",
    ),
    "leak of an inner derivative": (
        leaves_inner, errors.UnexpectedTracerError,
        "`ref[index] = value` would put a traced f64[] of grad(<lambda>) into a reference of "
        "outside of it, made inside grad(outer): the value would leak.",
    ),
    "escaped": (
        escapes, errors.UnexpectedTracerError,
        "a reference to f64[] has escaped: it was used, but jit(<lambda>), which made it, has "
        "returned.",
    ),
    "make_jaxpr": (
        lambda ref: fg.make_jaxpr(lambda: ref[0])(), errors.ArgumentError,
        "a reference to f64[2], made inside evaluation, is used inside make_jaxpr(<lambda>), which "
        "knows no references of outside.",
    ),
    "lower": (
        lambda ref: fg.jit(lambda: ref[0]).lower(), errors.ArgumentError,
        "a reference to f64[2], made inside evaluation, is used inside jit(<lambda>), which "
        "knows no references of outside.",
    ),
    "condition": (
        condition_writes, errors.ArgumentError,
        "while_loop(<lambda>): asks writes into a reference to f64[2], but a condition is asked, "
        "not told.",
    ),
    "unknown kind": (
        lambda ref: fg.new_ref(1.0, kind="other"), errors.ArgumentError,
        "new_ref: kind must be None or 'no_grad_no_remat', got 'other'.",
    ),
    "no reference": (
        lambda ref: fg.freeze(np.ones(2)), errors.ArgumentError,
        "freeze needs a reference, as new_ref makes them, got a ndarray.",
    ),
    "complex number": (
        lambda ref: ref.__setitem__(0, 1j), errors.DtypeError,
        "y[index] = value: c128[] would lose its imaginary part in an array of float64.",
    ),
    "place that is not there": (lambda ref: ref[2], IndexError, "index 2 is out of bounds"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    function, kind, text = REFUSED[case]
    ref = fg.new_ref(np.ones(2))
    with pytest.raises(kind, match=re.escape(text)) as caught:
        function(ref)
    message = str(caught.value)
    if "reference to f64[2]" in message and "references to" not in message:
        assert "made at       test_ref.py" in message
    if issubclass(kind, errors.UnexpectedTracerError):
        assert "at            test_ref.py" in message
    if "frozen" not in case and case != "freed":
        ref[0] = 4.0
        assert np.array_equal(ref[...], [4.0, 1.0])
