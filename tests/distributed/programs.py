"""Programs that every process of a test runs: ``mpiexec -n N python programs.py NAME``.

Their references are those of `vmap` on the array of all lanes, which other tests compare with NumPy
and closed forms, and NumPy itself. Every process checks its own lane.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import funcgrad as fg
from funcgrad import distributed, lax
from funcgrad.compiler.runtime import in_flight
from funcgrad.errors import DistributedError

RNG = np.random.default_rng(0)
AXIS = "i"


def p(x):
    return lax.psum(x, AXIS)


def ring(n):
    return [(k, (k + 1) % n) for k in range(n)]


def collectives(n):
    """Functions of one lane, and the arrays of all lanes."""
    x, square = RNG.normal(size=(n, 3, 2)), RNG.normal(size=(n, n, 3))
    long = RNG.normal(size=(n, 2 * n, 3))
    nan = np.where(np.arange(3 * n).reshape(n, 3) == 4, np.nan, 1.0)
    return {
        "psum": (p, x),
        "psum of bools": (lambda x: p(x > 0), x),
        "psum of complex": (lambda x: p(x * (1 + 2j)), x),
        "psum of int8": (lambda x: p((10 * x).astype(np.int8)), x),
        "psum of nothing": (lambda x: p(x[:0]), x),
        "psum of a tree": (lambda x: sum(fg.tree.leaves(p({"a": x, "b": (x[0, 0], x[0])}))), x),
        "pmean": (lambda x: lax.pmean(x, AXIS), x),
        "pmax": (lambda x: lax.pmax(x, AXIS), x),
        "pmin": (lambda x: lax.pmin(x, AXIS), x),
        "pmax of nan": (lambda x: lax.pmax(x, AXIS), nan),
        "pbroadcast": (lambda x: lax.pbroadcast(x, AXIS, n - 1), x),
        "all_gather": (lambda x: lax.all_gather(x, AXIS), x),
        "all_gather behind": (lambda x: lax.all_gather(x, AXIS, axis=-1), x),
        "all_gather tiled": (lambda x: lax.all_gather(x, AXIS, axis=1, tiled=True), x),
        "psum_scatter": (lambda x: lax.psum_scatter(x, AXIS), square),
        "psum_scatter tiled": (lambda x: lax.psum_scatter(x, AXIS, tiled=True), long),
        "psum_scatter elsewhere": (
            lambda x: lax.psum_scatter(x.T, AXIS, scatter_dimension=1, tiled=True),
            long,
        ),
        "axis_index": (lambda x: x * lax.axis_index(AXIS) + lax.axis_size(AXIS), x),
        "ppermute": (lambda x: lax.ppermute(x, AXIS, ring(n)[:-1]), x),
        "ppermute of a number": (lambda x: lax.ppermute(x[0, 0], AXIS, ring(n)[:-1]), x),
        "pshuffle": (lambda x: lax.pshuffle(x, AXIS, list(range(n))[::-1]), x),
        "all_to_all": (lambda x: lax.all_to_all(x, AXIS, 0, 1), square),
        "all_to_all tiled": (lambda x: lax.all_to_all(x, AXIS, 0, 1, tiled=True), long),
    }


def scanned(x):
    def step(c, _):
        c = np.sin(c) + lax.pmean(c * c, AXIS)
        return c, lax.ppermute(c, AXIS, ring(lax.axis_size(AXIS)))

    c, ys = lax.scan(step, x, None, length=3)
    return c + ys.sum(0)


def looped(x):
    def step(s):
        return s[0] + 1, np.cos(s[1]) * lax.pmean(s[1], AXIS)

    return lax.while_loop(lambda s: s[0] < 3, step, (0, x))[1]


def branched(x):
    return lax.cond(p(x.sum()) > -100.0, lambda x: p(x * x), lambda x: x, x)


@fg.custom_vjp
def by_vjp(x):
    return p(x) * x


by_vjp.defvjp(lambda x: (by_vjp(x), x), lambda x, ct: (p(ct * x) + ct * p(x),))


@fg.custom_jvp
def by_jvp(x):
    return p(x * x)


by_jvp.defjvp(lambda x, t: (by_jvp(x[0]), p(2 * x[0] * t[0])))


def logsumexp(x):
    m = lax.pmax(x, AXIS)
    return np.log(p(np.exp(x - m))) + m


PROGRAMS = {
    "scan": scanned,
    "while": looped,
    "cond": branched,
    "checkpoint": lambda x: fg.checkpoint(lambda x: np.sin(p(x * x)))(x) * x,
    "custom_vjp": by_vjp,
    "custom_jvp": by_jvp,
    "vmap": lambda x: fg.vmap(lambda a: p(a * a) * a)(x),
    "logsumexp": logsumexp,
}


def words(f, x):
    """The value of a function, its derivatives in both modes, and second ones both ways."""

    def loss(x):
        return (f(x) ** 2).sum()

    def along(x):
        return (fg.grad(loss)(x) * np.cos(x)).sum()

    yield "value", f
    if f is not by_vjp:
        yield "jvp", lambda x: fg.jvp(f, (x,), (np.sin(x),))[1]
        yield "hvp", lambda x: fg.jvp(fg.grad(loss), (x,), (np.cos(x),))[1]
    yield "grad", fg.grad(loss)
    yield "second", fg.grad(along)


def check(f, x, what, tolerance=1e-11, **options):
    """A function on ranks is that of lanes: eager and compiled."""
    i = distributed.rank()
    expected = fg.vmap(f, axis_name=AXIS)(x)
    for wrap in (lambda f: f, fg.jit):
        with distributed.spmd(axis_name=AXIS, **options):
            found = wrap(f)(x[i])
        np.testing.assert_allclose(found, expected[i], tolerance, tolerance, err_msg=what)
        assert found.dtype == expected.dtype, what


def laws(which):
    """Axes of ranks give what axes of lanes give."""
    n = distributed.size()
    for name, (f, x) in collectives(n).items():
        for deterministic in (False, True) if which == "all" else (False,):
            check(f, x, name, deterministic=deterministic)
    x = RNG.normal(size=(n, 3))
    for name, f in PROGRAMS.items() if which == "all" else ():
        for word, g in words(f, x):
            check(g, x, f"{word} of {name}")
    for name, (f, x) in collectives(n).items():
        if which == "all" and name in ("all_gather behind", "psum_scatter tiled", "ppermute"):
            check(fg.grad(lambda x, f=f: (f(x) ** 3).sum()), x, f"gradient of {name}")


def matrices():
    """Matrices of all lanes, and one more: large enough for messages in the background."""
    return RNG.normal(size=(distributed.size(), 120, 120)), RNG.normal(size=(120, 120)) / 11


def background():
    """Sums that begin early and go on in the background, beside products, in loops and branches."""
    xs, w = matrices()
    i, n = distributed.rank(), distributed.size()
    x = xs[i]
    rows = RNG.normal(size=(n, 4, 120))

    def plain(x, w):
        return lax.psum(x * 2.0, "data") + w @ w

    def several(x, w, rows):
        y = x @ w
        t = lax.psum((y, rows[0], rows[1], x), "data")
        z = np.sin(w @ x)
        return t, lax.psum(z, "data") * z, lax.psum(rows[2].astype(np.float32), "data")

    def looped(x, w):
        def step(c, _):
            t = lax.pmean(c, "data")
            return np.tanh(c @ w) + t, t.sum()

        return lax.scan(step, x, None, length=3)

    def expected_of_loop():
        cs, sums = xs, []
        for _ in range(3):
            t = cs.mean(0)
            sums.append(t.sum())
            cs = np.tanh(cs @ w) + t
        return cs[i], sums

    def branched(x, w):
        grow = lambda x: lax.psum(x + 1.0, "data") * (x @ w)  # noqa: E731
        return lax.cond(lax.psum(x[0, 0], "data") < 1e9, grow, lambda x: x, x)

    with distributed.spmd():
        f = fg.jit(plain)
        text = f.lower(x, w).as_text()
        assert text.index("MPI_Iallreduce") < text.index("matrix product") < text.index("MPI_Wait")
        for scale in (1.0, 2.0):
            np.testing.assert_allclose(f(scale * x, w), 2 * scale * xs.sum(0) + w @ w, 1e-9, 1e-9)
        found = fg.jit(several, donate_argnums=0)(x.copy(), w, rows[i])
        z = np.sin(w @ xs)
        first = ((xs @ w).sum(0), rows[:, 0].sum(0), rows[:, 1].sum(0), xs.sum(0))
        last = rows[:, 2].sum(0)
        for a, b in zip(fg.tree.leaves(found), (*first, z.sum(0) * z[i], last), strict=True):
            np.testing.assert_allclose(a, b, 1e-5 if b is last else 1e-9, 1e-5)
        c, sums = fg.jit(looped)(x, w)
        expected, expected_sums = expected_of_loop()
        np.testing.assert_allclose(c, expected, 1e-9, 1e-9)
        np.testing.assert_allclose(sums, expected_sums, 1e-9, 1e-9)
        found = fg.jit(branched)(x, w)
        np.testing.assert_allclose(found, (xs + 1.0).sum(0) * (x @ w), 1e-9, 1e-9)
    uneven()
    stopped(x, w, xs)


def uneven():
    """Ranks with parts of other lengths, down to one example, send the same messages."""
    n, i = distributed.size(), distributed.rank()
    sizes = (100, 110, 120)
    params = [
        (RNG.normal(size=(a, b)) / a, RNG.normal(size=b)) for a, b in itertools.pairwise(sizes)
    ]
    x = RNG.normal(size=(2 * n - 1, 100))
    own = slice(2 * i, 2 * i + 2)  # the last one has one

    def loss(params, x):
        for w, b in params:
            x = np.tanh(x @ w + b)
        return (x**2).sum()

    with distributed.spmd():
        found = fg.jit(lambda p, x: lax.psum(fg.grad(loss)(p, x), "data"))(params, x[own])
    expected = fg.grad(loss)(params, x)
    for a, b in zip(fg.tree.leaves(found), fg.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-9)


def stopped(x, w, xs):
    """All ranks fail while a sum is under way, catch that, and go on."""

    def chosen(x, w, k):
        total = lax.psum(x, "data")
        return total, np.linalg.inv(w @ w * k)

    with distributed.spmd():
        f = fg.jit(chosen)
        for k in (3.0, 0.0, 5.0, 0.0, 7.0):
            if not k:
                assert "ingular" in caught(lambda k=k: f(x, w, k), np.linalg.LinAlgError)
                continue
            total, inverse = f(x, w, k)
            np.testing.assert_allclose(total, xs.sum(0), 1e-9, 1e-9)
            np.testing.assert_allclose(inverse @ w @ w * k, np.eye(120), 1e-6, 1e-6)
        deadline = time.monotonic() + 20
        while in_flight.release():
            assert time.monotonic() < deadline


def grids():
    """Meshes: sums along each axis, and along both."""
    n, i = distributed.size(), distributed.rank()
    x = RNG.normal(size=(2, n // 2))
    f = fg.jit(lambda x: (lax.psum(x, "a"), lax.psum(x, "b"), lax.psum(x, ("a", "b"))))
    with distributed.mesh({"a": 2, "b": -1}):
        assert lax.axis_size(("a", "b")) == n
        place = divmod(i, n // 2)
        assert (lax.axis_index("a"), lax.axis_index("b")) == place
        assert lax.axis_index(("a", "b")) == i
        found = f(x[place])
    np.testing.assert_allclose(found[0], x[:, place[1]].sum())
    np.testing.assert_allclose(found[1], x[place[0]].sum())
    np.testing.assert_allclose(found[2], x.sum())


def tools():
    """Data, keys and files."""
    n, i = distributed.size(), distributed.rank()
    whole = {"x": np.arange(7.0), "y": np.arange(14).reshape(7, 2)}
    own = distributed.shard(whole)
    places = distributed.local_range(7)
    np.testing.assert_array_equal(own["y"], whole["y"][places.start : places.stop])
    np.testing.assert_array_equal(distributed.gather(own)["y"], whole["y"])
    mine = whole if i == n - 1 else None
    np.testing.assert_array_equal(distributed.scatter(mine, n - 1)["x"], own["x"])
    assert distributed.broadcast(("of", i), n - 1) == ("of", n - 1)
    keys = distributed.gather(distributed.local_keys(fg.random.key(3), 7))
    for key, k in zip(keys, range(7), strict=True):
        assert key == fg.random.fold_in(fg.random.key(3), k)
    assert len(distributed.shard(keys)) == len(places)
    path = Path(sys.argv[2])
    distributed.save(path, {"step": 3 + 0 * i})
    assert distributed.load(path) == {"step": 3}
    raised = caught(lambda: distributed.load(path.with_suffix(".missing")), Exception)
    assert "missing" in raised
    raised = caught(lambda: distributed.gather([1.0] * (i + 1)))
    assert "the pytrees of the ranks differ" in raised
    distributed.echo("said once")


def caught(function, kind=DistributedError):
    try:
        function()
    except kind as error:
        return str(error)
    raise AssertionError("no error")


def refusals():
    """What would hang is refused, by all ranks; after it they still meet."""
    i = distributed.rank()

    def choose(x):
        return lax.cond(x.sum() > 1.5 + i, lambda x: lax.psum(x, "data"), lambda x: x, x)

    def repeat(x):
        step = lambda s: (s[0] + 1, lax.psum(s[1], "data"))  # noqa: E731
        return lax.while_loop(lambda s: s[0] < x[0] + i, step, (0, x))

    def agreed(x):
        step = lambda s: (s[0] + 1, lax.psum(s[1], "data"))  # noqa: E731
        return lax.while_loop(lambda s: s[0] < lax.pmax(2 + i, "data"), step, (0, x))[0]

    x = np.ones(2)
    with distributed.spmd():
        for f, word in ((choose, "switch"), (repeat, "while")):
            text = caught(lambda f=f: fg.jit(f)(x))
            assert f"{word}: its predicate may differ between the ranks of axis 'data'" in text
            assert "  at            programs.py:" in text
            assert "  collective    programs.py:" in text
            text = caught(lambda f=f: f(x))
            assert "differs between the ranks of axis 'data'" in text
            assert "  rank 1        " in text
            assert "  at            programs.py:" in text
        assert agreed(x) == fg.jit(agreed)(x) == distributed.size() + 1

    def gradient(x):
        return fg.jit(fg.grad(lambda x: lax.psum(x * x, "data").sum()))(x)

    rows = {
        "psum of f64[3]": lambda: lax.psum(np.ones(2 + i), "data"),
        "psum of f32[2]": lambda: lax.psum(x.astype([np.float64, np.float32][i % 2]), "data"),
        f"all_to_all of f64[{distributed.size()}]": lambda: (
            lax.psum(x, "data")
            if i != 1
            else lax.all_to_all(np.ones(distributed.size()), "data", 0, 0)
        ),
        "psum of f64[4]": lambda: gradient(np.ones(3 + i)),
    }
    for seen, run in rows.items():
        with distributed.spmd(check=True):
            text = caught(run)
        assert "the ranks of axis 'data' differ in their collective number" in text, text
        assert f"  rank 1        {seen}" in text, text
        assert "    at          programs.py:" in text, text

    def leave():
        with distributed.spmd(check=True):
            if i:
                lax.psum(x, "data")

    assert "  rank 0        the end of the block" in caught(leave)
    with distributed.spmd(check=True):
        np.testing.assert_array_equal(gradient(x), 2 * x * distributed.size())


def end(how):
    """One rank fails while the others wait for it."""
    w = RNG.normal(size=(120, 120)) / 11

    def alone(_, x):
        return lax.pmean(x, "data")

    def beside(_, x):
        return lax.pmean(x, "data") + np.tanh(w @ x @ w)

    is_beside = how.endswith(" beside products")
    how = how.removesuffix(" beside products")
    x = np.ones((120, 120)) if is_beside else np.ones(3)
    f = fg.jit(lambda x: lax.fori_loop(0, 10**9, beside if is_beside else alone, x))
    with distributed.spmd():
        lax.psum(np.ones(1), "data")
        print("ready", flush=True)
        if how == "raise" and distributed.rank() == 1:
            raise ValueError("this rank is ill")
        if how == "raise everywhere":
            raise ValueError("this rank is ill")
        if how == "exit" and distributed.rank() == 1:
            sys.exit(3)
        if how == "kill" and distributed.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "sleep":
            time.sleep(100)
        f(x)


def main():
    name, *rest = sys.argv[1:]
    if name == "laws":
        laws(*rest)
    elif name == "background":
        background()
    elif name == "others":
        tools()
        refusals()
        if distributed.size() % 2 == 0:
            grids()
    else:
        end(name)
    if distributed.is_main():
        print(f"{name} hold", flush=True)


if __name__ == "__main__":
    main()
