"""Affine pieces against index arrays: every move and every reshape of every box."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from funcgrad.patterns.index_sets import (
    Accumulate,
    AffineMove,
    Dimension,
    Fold,
    NotAffineError,
    Pick,
    Piece,
    Relation,
    collapsed,
    identity,
    moved,
    piece_of,
    reshaped,
    transformed,
    union,
)

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


def entries(relation: Relation) -> set[tuple[int, int]]:
    coo = relation.matrix.tocoo()
    return set(zip(coo.row.tolist(), coo.col.tolist(), strict=True))


def box(shape: tuple[int, ...], data: Any) -> Relation:
    """A part of the identity, with strides."""
    steps = [data.draw(st.integers(1, 2)) for _ in shape]
    starts = [data.draw(st.integers(0, n - 1)) for n in shape]
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    dims = [
        Dimension(i, step, data.draw(st.integers(1, (n - 1 - a) // step + 1)), s * step)
        for i, (n, step, a, s) in enumerate(zip(shape, steps, starts, strides, strict=True))
    ]
    column = sum(a * s for a, s in zip(starts, strides, strict=True))
    return Relation(shape, math.prod(shape), [piece_of(starts, dims, column)])


@given(shapes, st.data())
def test_reshape(shape: tuple[int, ...], data: Any) -> None:
    size = math.prod(shape)
    divisors = [n for n in range(1, size + 1) if size % n == 0]
    first = data.draw(st.sampled_from(divisors))
    second = data.draw(st.sampled_from([n for n in divisors if (size // first) % n == 0]))
    new = (first, second, size // first // second)
    relation = box(shape, data)
    found = transformed(relation, lambda p: reshaped(p, shape, new), new)
    assert entries(found) == entries(relation)
    back = transformed(found, lambda p: reshaped(p, new, shape), shape)
    assert entries(back) == entries(relation)


@given(
    st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(-4, 4),
    st.sampled_from([-3, -2, -1, 1, 2, 3]), st.lists(st.integers(-3, 3), min_size=1, max_size=3),
    st.data(),
)  # fmt: skip
def test_affine_moves(
    n: int, length: int, scale: int, shift: int, stride: int, taps: list[int], data: Any
) -> None:
    relation = box((n,), data)
    limits = data.draw(st.none() | st.tuples(st.integers(0, n), st.integers(0, n)))
    move = AffineMove(0, length, scale, shift, stride, tuple(taps), limits)
    found = Relation(
        (length,), n, [q for p in relation.pieces for q in moved(p, [move], (length,), ())]
    )
    low, high = limits or (0, n)
    expected = {
        (o, column)
        for i, column in entries(relation)
        for o in range(length)
        for tap in taps
        if low <= i < high and scale * i + shift == stride * o + tap
    }
    assert entries(found) == expected


@given(shapes, st.data())
def test_folds_picks_and_running_folds(shape: tuple[int, ...], data: Any) -> None:
    relation = box(shape, data)
    axis = data.draw(st.integers(0, len(shape) - 1))
    rest = tuple(n for i, n in enumerate(shape) if i != axis)
    kept = [i for i in range(len(shape)) if i != axis]
    others = {i: AffineMove(kept.index(i), shape[i]) for i in kept}
    index = data.draw(st.integers(0, shape[axis] - 1))
    dense = relation.matrix.toarray().reshape(*shape, -1)
    for move, expected in ((Fold(), dense.any(axis)), (Pick(index), dense.take(index, axis))):
        moves = [others.get(i, move) for i in range(len(shape))]
        found = transformed(relation, lambda p, m=moves: moved(p, m, rest, ()), rest)
        np.testing.assert_array_equal(found.matrix.toarray(), expected.reshape(-1, dense.shape[-1]))
    whole = [AffineMove(i, n) for i, n in enumerate(shape)]
    for reverse in (False, True):
        moves = [*whole[:axis], Accumulate(axis, shape[axis], reverse), *whole[axis + 1 :]]
        found = transformed(relation, lambda p, m=moves: moved(p, m, shape, ()), shape)
        turned = np.flip(dense, axis) if reverse else dense
        least = np.logical_or.accumulate(turned, axis)
        least = np.flip(least, axis) if reverse else least
        assert (found.matrix.toarray().reshape(dense.shape) >= least).all()


@given(shapes, st.data())
def test_unions_and_collapses(shape: tuple[int, ...], data: Any) -> None:
    parts = [box(shape, data) for _ in range(3)]
    parts[2] = Relation(shape, parts[2].width, [], parts[2].matrix)
    whole = union(parts)
    assert entries(whole) == set().union(*map(entries, parts))
    columns = {c for _, c in entries(whole)}
    assert entries(collapsed(whole, (2,))) >= {(i, c) for i in (0, 1) for c in columns}


def test_pieces_that_others_cover_go() -> None:
    whole = identity((8, 8), 64, 0)
    moves = [AffineMove(0, 8, limits=(2, 5)), AffineMove(1, 8)]
    part = Relation((8, 8), 64, moved(whole.pieces[0], moves, (8, 8), ()))
    assert len(part.pieces) == 1
    assert union([part, whole]).pieces == whole.pieces


def test_sides_that_continue_another_are_one() -> None:
    assert piece_of([0], [Dimension(0, 5, 4, 5), Dimension(0, 1, 5, 1)], 0) == Piece(
        (0,), (Dimension(0, 1, 20, 1),), 0
    )


def test_what_is_not_affine_becomes_a_matrix() -> None:
    def fails(piece: Piece) -> list[Piece]:
        if piece.starts != (0,):
            raise NotAffineError
        return [piece]

    odd = Relation((4,), 4, [Piece((1,), (), 1)])
    assert entries(transformed(odd, fails, (4,))) == {(1, 1)}
