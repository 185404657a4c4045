"""Arrays of keys: values with a shape, whose elements every function that moves elements takes.

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
from funcgrad import dtypes, lax, random
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    KeyArrayError,
    OutOfBoundsError,
    ShapeError,
    TreeError,
)
from tests.random.cases import SEEDS
from tests.random.keys import (
    FOLDED,
    KEY,
    KEYS,
    MATRIX,
    SPLIT,
    WORDS,
    assert_keys,
    draw,
    integers,
    recorded,
)

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
    "nan_to_num": lambda m, k: m.nan_to_num(k),
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
