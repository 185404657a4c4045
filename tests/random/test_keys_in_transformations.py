"""Arrays of keys as arguments, results and carries of transformations, as leaves, and in files."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import checkify, data, lax, random, testing
from funcgrad.errors import KeyArrayError, TreeError
from tests.random.keys import (
    DRAWN,
    FOLDED,
    KEY,
    KEYS,
    MATRIX,
    SPLIT,
    WORDS,
    assert_keys,
    draw,
    recorded,
)

MAPS = {
    "jit_of_vmap": lambda f: fg.jit(fg.vmap(f)),
    "vmap_of_jit": lambda f: fg.vmap(fg.jit(f)),
    "last_axis": lambda f: lambda keys: fg.vmap(f, in_axes=-1)(fnp.reshape(keys, (4,))),
    "map": lambda f: lambda keys: lax.map(f, keys),
    "map_in_batches": lambda f: lambda keys: lax.map(f, keys, batch_size=3),
    "scan": lambda f: lambda keys: lax.scan(lambda c, k: (c, f(k)), (), keys)[1],
    "vectorize": lambda f: fnp.vectorize(f, signature="()->(n)"),
    "checkpoint": lambda f: fg.vmap(fg.checkpoint(f)),
    "switch": lambda f: fg.vmap(lambda k: lax.switch(1, [lambda k: f(k) * 0, f], k)),
    "cond_of_lanes": lambda f: fg.vmap(lambda k: lax.cond(f(k)[0] < 2, f, lambda k: -f(k), k)),
    "carry": lambda f: fg.vmap(lambda k: f(lax.fori_loop(0, 3, lambda i, k: random.clone(k), k))),
    "while": lambda f: fg.vmap(
        lambda k: f(lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1]), (0, k))[1])
    ),
    "jvp": lambda f: fg.vmap(
        lambda k: fg.jvp(lambda x, k: x * f(k), (1.0, k), (0.0, np.zeros((), fg.float0)))[0]
    ),
    "jacrev": lambda f: fg.vmap(lambda k: fg.jacrev(lambda x: x * f(k))(2.0)),
    "checkify": lambda f: lambda keys: checkify.checkify(fg.vmap(f))(keys)[1],
    "callback": lambda f: fg.vmap(
        lambda k: fg.pure_callback(
            f, fg.ShapeDtypeStruct((3,), np.float64), k, vmap_method="sequential"
        )
    ),
    "compiled_ahead": lambda f: fg.jit(fg.vmap(f)).lower(KEYS).compile(),
    "of_types": lambda f: fg.jit(fg.vmap(f)).lower(fg.ShapeDtypeStruct((4,), KEYS.dtype)).compile(),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MAPS)
def test_the_same_numbers_by_every_way_over_keys(name):
    np.testing.assert_array_equal(MAPS[name](draw)(KEYS), DRAWN)


RESULTS = {
    "jit": lambda: fg.jit(lambda k: (random.fold_in(k, 7), k))(KEYS[2]),
    "keywords": lambda: fg.jit(lambda *, k: {"a": random.fold_in(k, 7), "b": k})(k=KEYS[2]),
    "closed_over": lambda: fg.jit(lambda: (random.fold_in(KEYS[2], 7), KEYS[2]))(),
    "donated": lambda: fg.jit(lambda k: (random.fold_in(k, 7), k), donate_argnums=0)(
        KEYS[2].copy()
    ),
    "has_aux": lambda: fg.grad(lambda x, k: (x, (random.fold_in(k, 7), k)), has_aux=True)(
        1.0, KEYS[2]
    )[1],
    "vjp": lambda: fg.vjp(lambda x, k: (random.fold_in(k, 7), k), 1.0, KEYS[2])[0],
    "linearize": lambda: fg.linearize(lambda k: (random.fold_in(k, 7), k), KEYS[2])[0],
    "callback": lambda: fg.pure_callback(
        lambda k: (random.fold_in(k, 7), k), (fg.ShapeDtypeStruct((), KEY.dtype),) * 2, KEYS[2]
    ),
    "device_put": lambda: fg.device_put((random.fold_in(KEYS[2], 7), KEYS[2])),
    "untraced": lambda: fg.checkpoint(lambda k: (random.fold_in(k, 7), k))(KEYS[2]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_keys_as_results(name):
    folded, key = fg.tree_util.tree_leaves(RESULTS[name]())
    assert_keys(folded, FOLDED[2])
    assert_keys(key, WORDS[2])


def test_mapped_axes_count_as_those_of_keys():
    same = fg.vmap(lambda k: k, in_axes=1, out_axes=-1)(MATRIX)
    assert_keys(same, random.key_data(MATRIX))
    turned = fg.vmap(lambda k: k, in_axes=-1)(MATRIX)
    assert_keys(turned, random.key_data(MATRIX.T))
    tree = fg.vmap(lambda d: d, in_axes=({"k": 1, "x": None},), out_axes={"k": 0, "x": None})(
        {"k": MATRIX, "x": 1.0}
    )
    assert_keys(tree["k"], random.key_data(MATRIX.T))
    assert_keys(fg.vmap(lambda x: KEY)(np.ones(2)), WORDS[[1, 1]])
    rows = fg.vmap(lambda i, keys: keys[i], (0, None))(np.array([2, 0]), KEYS)
    assert_keys(rows, WORDS[[2, 0]])


def test_carries_and_outputs_of_loops():
    def step(key, _):
        key, sub = random.split(key)
        return key, sub

    key, expected = KEYS[3], []
    for _ in range(3):
        key, sub = random.split(key)
        expected.append(random.key_data(sub))
    for loop in (
        lambda k: lax.scan(step, k, None, 3),
        fg.jit(lambda k: lax.scan(step, k, None, 3)),
    ):
        last, subs = loop(KEYS[3])
        assert_keys(last, random.key_data(key))
        assert_keys(subs, np.stack(expected))
    assert_keys(expected_first(), SPLIT[3, 1])


def expected_first():
    return lax.scan(lambda k, _: tuple(random.split(k)), KEYS[3], None, 1)[1][0]


def test_derivatives_of_what_draws():
    value = recorded("uniform_default", "forty_two").sum()

    def f(x, key):
        return x * fnp.sum(draw(key))

    assert fg.grad(f)(2.0, KEY) == pytest.approx(value, rel=1e-15)
    assert fg.jit(fg.grad(fg.checkpoint(f)))(2.0, KEY) == pytest.approx(value, rel=1e-15)
    grads = fg.grad(lambda d: f(d["x"], d["k"][0]), allow_int=True)({"x": 2.0, "k": KEYS[1:2]})
    assert grads["x"] == pytest.approx(value, rel=1e-15)
    assert grads["k"].dtype == fg.float0
    assert grads["k"].shape == (1,)
    zeros = np.zeros((4,), fg.float0)
    (_, keys), (_dot, none) = fg.jvp(lambda k: (1.0, k), (KEYS,), (zeros,))
    assert_keys(keys, WORDS)
    assert none.dtype == fg.float0
    assert none.shape == (4,)
    _, pull = fg.vjp(lambda x, k: (f(x, k[1]), k), 2.0, KEYS)
    x_bar, k_bar = pull((1.0, zeros))
    assert x_bar == pytest.approx(value, rel=1e-15)
    assert k_bar.dtype == fg.float0
    assert k_bar.shape == (4,)


def test_custom_rules():
    value = recorded("uniform_default", "forty_two").sum()

    @fg.custom_vjp
    def f(key, x):
        return x * fnp.sum(draw(key))

    f.defvjp(
        lambda key, x: (f(key, x), key),
        lambda key, ct: (None, 10 * ct * fnp.sum(draw(key))),
    )
    assert fg.grad(f, 1)(KEY, 1.0) == pytest.approx(10 * value, rel=1e-15)

    @fg.custom_vjp
    def g(key, x):
        return x * fnp.sum(draw(key))

    g.defvjp(
        lambda key, x: (g(key.value, x.value), key.value),
        lambda key, ct: (np.zeros((), fg.float0), 10 * ct * fnp.sum(draw(key))),
        symbolic_zeros=True,
    )
    assert fg.grad(g, 1)(KEY, 1.0) == pytest.approx(10 * value, rel=1e-15)

    @fg.custom_jvp
    def h(key, x):
        return x * fnp.sum(draw(key)), key

    @h.defjvp
    def _(primals, tangents):
        key, _ = primals
        return h(*primals), (10 * tangents[1] * fnp.sum(draw(key)), tangents[0])

    assert fg.grad(lambda x: h(KEY, x)[0])(1.0) == pytest.approx(10 * value, rel=1e-15)

    def outer(key):
        @fg.custom_vjp
        def inner(x):
            return x * draw(key)[0]

        inner.defvjp(lambda x: (inner(x), ()), lambda _, ct: (10 * ct * draw(key)[0],))
        return fg.grad(inner)(1.0)

    np.testing.assert_allclose(fg.vmap(outer)(KEYS), 10 * DRAWN[:, 0], 1e-15)


def test_references_to_keys():
    """A state of random numbers that functions change, under `jit`, in loops and branches."""
    ref = fg.new_ref(KEYS[3])

    def use():
        ref[...], key = random.split(ref[...])
        return key

    key, expected = KEYS[3], []
    for _ in range(5):
        key, sub = random.split(key)
        expected.append(random.key_data(sub))
    assert_keys(use(), expected[0])
    assert_keys(fg.jit(use)(), expected[1])
    assert_keys(lax.scan(lambda c, _: (c, use()), (), None, 2)[1], np.stack(expected[2:4]))
    assert_keys(lax.cond(True, use, lambda: KEY), expected[4])
    assert (ref.shape, str(ref.dtype), repr(fg.new_ref(random.key(3)))) == (
        (), "key<fry>", "Ref((), dtype=key<fry>) overlaying:\n[0 3]",
    )  # fmt: skip
    assert_keys(pickle.loads(pickle.dumps(ref))[...], random.key_data(key))
    several = fg.new_ref(KEYS)

    @fg.jit
    def change(several):
        several[0] = KEY
        return several[1]

    assert_keys(change(several), WORDS[1])
    assert_keys(several[0], WORDS[1])
    with pytest.raises(KeyArrayError, match="met values that are no keys"):
        several[0] = 0
    with pytest.raises(KeyArrayError, match=r"ref.addupdate needs numbers"):
        fg.ref.addupdate(several, 0, KEY)
    assert_keys(fg.freeze(ref), random.key_data(key))


# Structures, types and files.


def test_keys_are_leaves():
    tree = {"k": KEYS, "x": (1.0, KEY)}
    leaves, treedef = fg.tree_util.tree_flatten(tree)
    assert len(leaves) == 3
    assert leaves[0] is KEYS
    assert str(treedef) == "PyTreeDef({'k': *, 'x': (*, *)})"
    assert fg.tree.map(np.shape, {"k": MATRIX}) == {"k": (3, 2)}
    same = fg.tree.map(lambda a, b: bool(fnp.array_equal(a, b)), tree, tree)
    assert same == {"k": True, "x": (True, True)}
    lowered = fg.jit(lambda t: t).lower(tree)
    assert lowered.out_tree == treedef
    assert fg.tree_util.treedef_tuple([treedef]) == fg.tree_util.tree_structure((tree,))
    assert fg.block_until_ready(tree) is tree


def test_types_without_values():
    struct = fg.ShapeDtypeStruct((3,), KEY.dtype)
    assert repr(struct) == "ShapeDtypeStruct(shape=(3,), dtype=key<fry>)"
    assert fg.eval_shape(fg.vmap(random.split), struct) == fg.ShapeDtypeStruct((3, 2), KEY.dtype)
    assert fg.eval_shape(fg.vmap(draw), struct) == fg.ShapeDtypeStruct((3, 3), np.float64)
    assert fg.eval_shape(lambda d: d, {"k": MATRIX})["k"] == fg.ShapeDtypeStruct((3, 2), KEY.dtype)
    args, _ = fg.jit(draw).lower(fg.ShapeDtypeStruct((), KEY.dtype)).args_info
    assert args == (fg.ShapeDtypeStruct((), KEY.dtype),)
    assert repr(fg.make_jaxpr(lambda k: k, return_shape=True)(KEY)[1]).endswith("dtype=key<fry>)")


def test_inside_of_a_transformation_they_are_what_they_are_outside():
    seen = []

    @fg.jit
    def f(key):
        seen.append((key.shape, str(key.dtype), isinstance(key, fg.Array), repr(key)))
        return key

    f(KEYS)
    assert seen == [((4,), "key<fry>", True, "Traced<key<fry>[4]> in jit(f)")]


def test_one_trace_for_all_keys():
    f = fg.jit(draw)
    for key in (KEY, *KEYS, random.key(5), *random.split(KEY)):
        f(key)
    assert f.cache_info().misses == 1
    f(random.PRNGKey(0))
    assert f.cache_info().misses == 2
    np.testing.assert_array_equal(f(KEY), DRAWN[1])


def test_files(tmp_path):
    path = tmp_path / "state.npz"
    data.save(path, {"key": KEYS, "epoch": 3})
    assert_keys(data.load(path)["key"], WORDS)
    like = {"key": fg.ShapeDtypeStruct((4,), KEY.dtype), "epoch": 0}
    assert_keys(data.load(path, like=like)["key"], WORDS)
    with pytest.raises(TreeError, match=re.escape("has key<fry>[4] at tree['key'], but like has")):
        data.load(path, like={"key": WORDS, "epoch": 0})
    data.save(path, WORDS)  # as programs saved them whose keys were arrays of words
    assert_keys(data.load(path, like=KEYS), WORDS)


def test_a_global_key_that_changes_is_noticed():
    space = {"draw": draw, "key": random.key(0)}
    exec(compile("def f():\n    return draw(key)\n", __file__, "exec"), space)
    f = fg.jit(space["f"])
    f()
    space["key"] = random.key(1)
    with pytest.warns(fg.errors.ImpureFunctionWarning, match="`key` is another array"):
        [f() for _ in range(3)]


def test_checks_of_functions_of_keys():
    testing.check_grads(lambda x, key: (x**2 * draw(key)[0], key), (2.0, KEY), order=1)

    def checked(key):
        checkify.check(draw(key)[0] < 0, "from {key}", key=key)
        return key

    error, key = checkify.checkify(checked)(KEY)
    assert "from Array((), dtype=key<fry>) overlaying:\n[ 0 42]" in error.get()
    assert_keys(key, WORDS[1])


def test_rules_for_batches_of_keys():
    @fg.custom_batching.custom_vmap
    def f(key):
        return random.fold_in(key, 7)

    @f.def_vmap
    def _(size, in_batched, keys):
        assert (size, in_batched) == (4, [True])
        return fg.vmap(lambda key: random.fold_in(key, 7))(keys), True

    assert_keys(fg.vmap(f)(KEYS), FOLDED)
