"""Arrays of keys: values with a shape that every function and every transformation takes as one.

What is expected of them was recorded from JAX 0.10 (`recorded.py`), or is what NumPy does with an
array of as many integers.
"""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import checkify, data, dtypes, lax, random
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    KeyArrayError,
    OutOfBoundsError,
    ShapeError,
    TreeError,
)
from tests.random.cases import SEEDS
from tests.random.recorded import RECORDED


def recorded(name, seed):
    dtype, shape, values = RECORDED[f"{name}-{seed}"]
    return np.array(values, dtype).reshape(shape)


WORDS = np.stack([recorded("key", seed) for seed in SEEDS])
DRAWN = np.stack([recorded("uniform_default", seed) for seed in SEEDS])
SPLIT = np.stack([recorded("split", seed) for seed in SEEDS])
FOLDED = np.stack([recorded("fold_in", seed) for seed in SEEDS])

KEYS = random.wrap_key_data(WORDS)
KEY = KEYS[1]
MATRIX = random.split(KEY, (3, 2))


def integers(keys):
    """One integer for each key, by which NumPy can do what is expected of keys."""
    words = random.key_data(keys).astype(np.uint64)
    return words[..., 0] << np.uint64(32) | words[..., 1]


def assert_keys(keys, expected):
    assert dtypes.issubdtype(keys.dtype, dtypes.prng_key)
    np.testing.assert_array_equal(random.key_data(keys), expected)


def draw(key):
    return random.uniform(key, (3,))


# What they are.


def test_what_keys_tell_of_themselves():
    assert (KEY.shape, KEY.ndim, KEY.size, KEY.nbytes) == ((), 0, 1, 8)
    assert (MATRIX.shape, MATRIX.ndim, MATRIX.size, MATRIX.nbytes) == ((3, 2), 2, 6, 48)
    assert len(MATRIX) == 3
    assert str(KEY.dtype) == repr(KEY.dtype) == KEY.dtype.name == "key<fry>"
    assert KEY.dtype == random.key_dtype()
    assert KEY.dtype.type is dtypes.prng_key
    assert KEY.dtype != np.uint32
    assert KEY.dtype != np.uint64
    assert KEY.itemsize == KEY.dtype.itemsize == 8
    assert dtypes.itemsize_bits(KEY.dtype) == 64
    assert isinstance(KEY, fg.Array)
    assert str(random.key(3)) == "Array((), dtype=key<fry>) overlaying:\n[0 3]"
    assert str(fg.typeof(MATRIX)) == "key<fry>[3,2]"
    assert dtypes.canonicalize_dtype(KEY.dtype, allow_extended_dtype=True) is KEY.dtype


@pytest.mark.parametrize("issubdtype", [dtypes.issubdtype, fnp.issubdtype])
def test_their_dtype_is_of_the_kind_of_keys(issubdtype):
    assert issubdtype(KEY.dtype, dtypes.prng_key)
    assert issubdtype(KEY.dtype, dtypes.extended)
    assert not issubdtype(KEY.dtype, np.integer)
    assert not issubdtype(np.uint32, dtypes.prng_key)
    assert issubdtype(np.float32, np.floating)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 2), (2, 0, 3)])
def test_words_and_keys_are_the_same_numbers(shape):
    keys = random.split(KEY, shape)
    assert keys.shape == shape
    words = random.key_data(keys)
    assert words.shape == (*shape, 2)
    assert words.dtype == np.uint32
    again = random.wrap_key_data(words, impl=random.key_impl(keys))
    assert again.shape == shape
    assert_keys(again, words)
    assert_keys(random.clone(keys), words)
    assert_keys(pickle.loads(pickle.dumps(keys)), words)
    assert_keys(copy.deepcopy(keys), words)
    assert_keys(copy.copy(keys), words)
    assert pickle.loads(pickle.dumps(keys.dtype)) is keys.dtype


@pytest.mark.parametrize("seed", SEEDS)
def test_words_of_a_seed(seed):
    number = SEEDS[seed]
    assert_keys(random.key(number), recorded("key", seed))
    assert_keys(random.key(np.int64(number), impl="threefry2x32"), recorded("key", seed))
    assert_keys(fg.jit(random.key)(np.int64(number)), recorded("key", seed))
    np.testing.assert_array_equal(random.PRNGKey(number), recorded("key", seed))


def test_functions_of_keys_give_keys_and_of_words_words():
    assert_keys(random.split(KEY, 3), recorded("split_3", "forty_two"))
    assert_keys(random.fold_in(KEY, 7), FOLDED[1])
    assert random.clone(WORDS[1]).dtype == random.split(WORDS[1]).dtype == np.uint32
    np.testing.assert_array_equal(random.fold_in(WORDS[1], 7), FOLDED[1])
    assert random.key_data(WORDS) is WORDS


def test_keys_are_drawn_and_shuffled_as_any_elements():
    order = random.permutation(KEY, 4)
    assert_keys(random.permutation(KEY, KEYS), WORDS[order])
    chosen = random.choice(KEY, 4, (2,), replace=False)
    assert_keys(random.choice(KEY, KEYS, (2,), replace=False), WORDS[chosen])


# Elements.

INDICES = {
    "integer": 1, "negative": -1, "slice": slice(1, None), "both": (0, 1), "ellipsis": (..., 0),
    "new_axis": (slice(None), None), "array": np.array([2, 0, 2]), "list": [0, 1],
    "mask": np.array([True, False, True]), "empty": slice(0, 0), "full_mask": np.eye(3, 2) > 0,
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES)
def test_indices(name):
    index, expected = INDICES[name], integers(MATRIX)[INDICES[name]]
    np.testing.assert_array_equal(integers(MATRIX[index]), expected)
    np.testing.assert_array_equal(integers(MATRIX.at[index].get()), expected)


def test_traced_indices_and_updates():
    words = random.key_data(MATRIX)

    @fg.jit
    def f(i, keys):
        return keys[i], MATRIX[i, 0], keys.at[i, 1].set(KEY)

    row, one, changed = f(2, MATRIX)
    assert_keys(row, words[2])
    assert_keys(one, words[2, 0])
    words[2, 1] = WORDS[1]
    assert_keys(changed, words)


def test_elements_one_by_one():
    assert [k.shape for k in MATRIX] == [(2,)] * 3
    first, second = random.split(KEY)
    assert_keys(first, SPLIT[1, 0])
    assert_keys(second, SPLIT[1, 1])
    with pytest.raises(TypeError, match="iteration over a 0-d key array: a key has no elements"):
        first, second = KEY
    with pytest.raises(TypeError, match="unsized"):
        len(KEY)
    with pytest.raises(IndexError, match=r"a key, key<fry>\[\], has no axes.*random.PRNGKey"):
        KEY[0]
    with pytest.raises(
        OutOfBoundsError, match=re.escape("index 7 is out of bounds for axis 0 of key<fry>[3,2]")
    ):
        MATRIX[7]
    with pytest.raises(TypeError, match=r"keys = keys.at\[index\].set\(key\)"):
        MATRIX[0] = KEY


MOVES = {
    "reshape": lambda m, k: m.reshape(k, (2, 3)),
    "ravel": lambda m, k: m.ravel(k),
    "transpose": lambda m, k: m.transpose(k),
    "permute_dims": lambda m, k: m.permute_dims(k, (1, 0)),
    "swapaxes": lambda m, k: m.swapaxes(k, 0, -1),
    "moveaxis": lambda m, k: m.moveaxis(k, 0, -1),
    "expand_dims": lambda m, k: m.expand_dims(k, -1),
    "squeeze": lambda m, k: m.squeeze(m.expand_dims(k, 0)),
    "flip": lambda m, k: m.flip(k, 1),
    "roll": lambda m, k: m.roll(k, 1, axis=0),
    "rot90": lambda m, k: m.rot90(k),
    "tile": lambda m, k: m.tile(k, (2, 1)),
    "repeat": lambda m, k: m.repeat(k, 2, axis=1),
    "broadcast_to": lambda m, k: m.broadcast_to(k, (4, 3, 2)),
    "atleast_3d": lambda m, k: m.atleast_3d(k),
    "copy": lambda m, k: m.copy(k),
    "array": lambda m, k: m.array(k),
    "asarray": lambda m, k: m.asarray(k),
    "array_of_list": lambda m, k: m.array([k, k]),
    "stack": lambda m, k: m.stack([k, k], axis=-1),
    "concatenate": lambda m, k: m.concatenate([k, k[:1]]),
    "vstack": lambda m, k: m.vstack([k, k]),
    "hstack": lambda m, k: m.hstack([k, k]),
    "append": lambda m, k: m.append(k, k, axis=0),
    "delete": lambda m, k: m.delete(k, 1, axis=0),
    "diagonal": lambda m, k: m.diagonal(k),
    "take": lambda m, k: m.take(k, np.array([1, 0]), axis=1),
    "take_along_axis": lambda m, k: m.take_along_axis(k, np.array([[0], [1], [0]]), axis=1),
    "where": lambda m, k: m.where(np.array([True, False]), k, k[0]),
    "select": lambda m, k: m.select([np.array([True, False])], [k], k[0]),
    "choose": lambda m, k: m.choose(np.array([0, 1]), [k[0], k[1]]),
    "compress": lambda m, k: m.compress([True, False, True], k, axis=0),
    "full": lambda m, k: m.full((2, 2), k[0]),
    "zeros_like": lambda m, k: m.zeros_like(k),
    "full_like": lambda m, k: m.full_like(k, k[0, 0]),
    "tril": lambda m, k: m.tril(k),
    "split": lambda m, k: m.split(k, 3)[1],
    "broadcast_arrays": lambda m, k: m.broadcast_arrays(k, k[0])[1],
    "methods": lambda m, k: m.stack([k.T.ravel(), k.swapaxes(0, 1).reshape(-1), k.T.flatten()]),
    "more_methods": lambda m, k: k.repeat(2).take([0, 3]).squeeze().reshape(2, 1).transpose(1, 0),
}


@pytest.mark.parametrize("name", MOVES)
def test_functions_that_move_elements(name):
    expected = MOVES[name](np, integers(MATRIX))
    found = MOVES[name](fnp, MATRIX)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(integers(found), expected)


@pytest.mark.parametrize("name", ["stack", "concatenate", "where", "reshape", "take"])
def test_numpys_own_functions_do_likewise(name):
    np.testing.assert_array_equal(
        integers(MOVES[name](np, MATRIX)), MOVES[name](np, integers(MATRIX))
    )


def test_moves_are_compiled():
    """All of them as one program, whose results are those of the functions called one by one."""
    names = list(MOVES)
    found = fg.jit(lambda keys: [MOVES[name](fnp, keys) for name in names])(MATRIX)
    for name, keys in zip(names, found, strict=True):
        np.testing.assert_array_equal(integers(keys), MOVES[name](np, integers(MATRIX)), name)


def test_functions_of_lax():
    i = integers(MATRIX)
    rows = [
        (lax.reshape(MATRIX, (6,)), i.reshape(6)),
        (lax.concatenate([MATRIX, MATRIX], 1), np.concatenate([i, i], 1)),
        (lax.select(np.eye(3, 2) > 0, MATRIX, MATRIX), i),
        (lax.dynamic_slice(MATRIX, (1, 0), (2, 1)), i[1:, :1]),
        (lax.dynamic_index_in_dim(MATRIX, 1, keepdims=False), i[1]),
        (lax.dynamic_update_slice(MATRIX, MATRIX[:1], (2, 0)), np.stack([i[0], i[1], i[0]])),
        (lax.broadcast(KEY, (2,)), np.full(2, integers(KEY))),
        (lax.rev(MATRIX, (0,)), i[::-1]),
        (lax.transpose(MATRIX, (1, 0)), i.T),
        (lax.slice(MATRIX, (0, 1), (2, 2)), i[:2, 1:]),
        (lax.stop_gradient(MATRIX), i),
    ]
    for found, expected in rows:
        np.testing.assert_array_equal(integers(found), expected)


def test_comparisons():
    i = integers(MATRIX)
    np.testing.assert_array_equal(MATRIX[1, 1] == MATRIX, i == i[1, 1])
    np.testing.assert_array_equal(MATRIX[1] != MATRIX, i != i[1])
    np.testing.assert_array_equal(fnp.equal(MATRIX, MATRIX[:, :1]), i == i[:, :1])
    np.testing.assert_array_equal(fnp.isin(MATRIX, MATRIX[0]), np.isin(i, i[0]))
    assert fnp.array_equal(MATRIX, MATRIX.copy())
    assert not fnp.array_equal(MATRIX, MATRIX[0])
    assert (fnp.shape(MATRIX), fnp.ndim(MATRIX), fnp.size(MATRIX)) == ((3, 2), 2, 6)
    assert fnp.all(fnp.isfinite(MATRIX))
    assert not fnp.any(fnp.isnan(MATRIX))
    assert KEY != "a"
    assert (KEY is None) is False


REFUSED = {
    "add": lambda: KEY + 1,
    "radd": lambda: np.ones(3) + KEY,
    "neg": lambda: -KEY,
    "xor": lambda: KEY ^ KEY,
    "less": lambda: KEY < KEY,
    "sin": lambda: fnp.sin(KEY),
    "numpys_sin": lambda: np.sin(KEY),
    "sum": lambda: fnp.sum(KEYS),
    "sort": lambda: fnp.sort(KEYS),
    "astype": lambda: KEY.astype(np.uint32),
    "asarray": lambda: np.asarray(KEY),
    "dtype": lambda: fnp.asarray(KEY, dtype=np.float64),
    "lax_add": lambda: lax.add(KEY, KEY),
    "bool": lambda: bool(KEY),
    "mixed_where": lambda: fnp.where(True, KEY, 0),
    "mixed_stack": lambda: fnp.stack([KEY, np.zeros(())]),
    "mixed_equality": lambda: KEY == WORDS,
    "mixed_update": lambda: KEYS.at[0].set(0),
    "update_by_sum": lambda: KEYS.at[0].add(KEY),
    "psum": lambda: fg.vmap(lambda k: lax.psum(k, "i"), axis_name="i")(KEYS),
    "traced": lambda: fg.jit(lambda k: k * 2)(KEY),
    "traced_sum": lambda: fg.jit(fnp.sum)(KEYS),
    "ravel_pytree": lambda: fg.flatten_util.ravel_pytree({"k": KEY}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_numbers_refuses_keys(name):
    with pytest.raises(KeyArrayError, match=r"random keys, key<fry>\[4?\]") as caught:
        REFUSED[name]()
    assert isinstance(caught.value, TypeError)
    text = str(caught.value)
    assert "test_key_arrays.py" in text
    assert "random.key_data(keys)" in text


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fnp.cumsum(KEYS), KeyArrayError, "cumsum needs numbers, but got random keys"),
        (lambda: KEY - 1, KeyArrayError, "`-` needs numbers"),
        (lambda: random.split(KEYS), ArgumentError, "got key<fry>[4]. Use vmap over the keys."),
        (lambda: draw(1.0), ArgumentError, "key<fry>[] as made by random.key or its words, u32[2]"),
        (lambda: random.key(KEY), ArgumentError, "seed, got a key, key<fry>[]"),
        (lambda: random.key(np.arange(2)), ArgumentError, "Use vmap for several seeds"),
        (lambda: random.wrap_key_data(KEY), ArgumentError, "u32[...,2], got keys, key<fry>[]"),
        (lambda: random.wrap_key_data(np.zeros(3, np.uint32)), ArgumentError, "got u32[3]"),
        (lambda: random.key_data(np.ones(2)), ArgumentError, "got f64[2]"),
        (lambda: fg.grad(draw)(KEY), DtypeError, "key<fry>[]: random keys have no derivative"),
        (lambda: fg.jacrev(lambda x: KEYS)(1.0), DtypeError, "results, got key<fry>[4]"),
        (lambda: fg.vmap(draw)(KEY), ShapeError, "which has 0 axes"),
        (
            lambda: lax.scan(lambda k, _: (random.split(k), None), KEY, None, 2),
            ShapeError,
            "`init`: key<fry>[] initially, key<fry>[2] returned",
        ),
        (
            lambda: lax.scan(lambda k, _: (random.key_data(k), None), KEY, None, 2),
            TreeError,
            "PyTreeDef(key<fry>)",
        ),
        (
            lambda: lax.cond(True, lambda k: k, random.split, KEY),
            ShapeError,
            "key<fry>[2] from false_fun, key<fry>[] from true_fun",
        ),
        (lambda: hash(KEY), TypeError, "unhashable"),
    ],
)
def test_messages_name_keys_by_their_type(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call()


# Transformations.

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
